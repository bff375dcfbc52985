//! Loops that depend on each other, or on something that only the clock can tell: budgets, breakers, timeouts, pushes, host loops.
//!
//! Their timers, answers and aborts are events, where other loops settle them in advance (see [`super::host`]). What happens at each is
//! the same code; `tests/properties.rs` holds both ways equal, byte for byte.

use super::Simulation;
use super::host::{REFUSED, aborts_requests, policy};
use super::limiter::Ticket;
use super::queue::{Event, Kind, Step};
use super::server::Answer;
use crate::metrics::tally::{Failure, Final};
use crate::model::{Push, Schedule};
use crate::policy::{FOREVER, RawHint, State, WaitManner};
use crate::random::Purpose;

/// Where a loop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nowhere: it has ended, or its poll is dropped.
    Idle,
    /// It waits for its timer.
    Sleeping,
    /// It waits for its turn in its host's event loop.
    Ready,
    /// It waits for its budget.
    Queued,
    /// A breaker holds it back.
    Barred,
    /// Its poll is on the way, or in the queue of the server.
    InFlight,
    /// It rides on the poll of another loop.
    Riding,
    /// The server holds its poll.
    Held,
    /// The answer is on its way, or the timeout is.
    Answering,
    /// There will be no answer, and no timeout.
    Lost,
    /// The caller waits for the answer to `tasks/cancel`.
    Cancelling,
}

/// What the engine keeps of a coupled loop beside its task: four cache lines, of which the first two are all that a poll in the middle of a loop
/// needs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub struct Loop {
    /// The timer that counts; events of others are stale.
    pub timer: u64,
    /// The tick that the timer counts as.
    pub tick: u64,
    /// Start of the wait.
    pub since: u64,
    /// When its poll came to the budget.
    pub ready: u64,
    /// When the state was read that its answer tells.
    pub read_at: u64,
    /// The answer on its way.
    pub answer: Answer,
    /// … is seen then.
    pub seen_at: u64,
    /// Its breaker; [`u32::MAX`] for none.
    pub breaker: u32,
    /// The limiter of its connection; [`u32::MAX`] for none.
    pub connection: u32,
    /// Its host.
    pub host: u32,
    /// Openings of its breaker when its poll passed: answers to polls of before tell nothing.
    pub openings: u32,
    /// Requests of this poll that the transport has sent again.
    pub attempt: u32,
    /// Sends that are no polls of the policy's.
    pub uncounted: u32,
    /// Low bits of the number of the poll in flight: events of others are stale.
    pub flight: u16,
    /// Turns at that instant in a row.
    pub turns: u16,
    /// Where it stands.
    pub phase: Phase,
    /// The places that it holds, a bit each.
    pub places: u8,
    /// Its poll rides on another loop's request.
    pub rides: bool,
    /// That answer has taken no time.
    pub instant: bool,
    /// Its poll is a probe.
    pub probe: bool,
    /// The poll in flight asks for the result: it is answered at the end.
    pub awaits_result: bool,
    /// The answer seen last was that to a request for the result.
    pub has_result: bool,
    /// Number of its wait in a queue: tickets of others are stale.
    pub ticket: u32,
    /// When the task asks for input; [`u64::MAX`] for never.
    pub asks_at: u64,
    /// How long it runs once it has the answer.
    pub left: u64,
    /// Questions that it has asked before this one.
    pub question: u32,
    /// Its host has seen the question.
    pub asked: bool,
    /// … and it was counted.
    pub asking_counted: bool,
    /// The answer is on its way to the server.
    pub answer_sent: bool,
    /// The answer has come.
    pub answered: bool,
    /// The status last known is `input_required`.
    pub knows_question: bool,
    /// Since when the server holds its poll.
    pub held_from: u64,
    /// Until when it does at most.
    pub held_until: u64,
    /// When the last poll came to a server with a minimum gap; [`u64::MAX`] for never.
    pub last_poll: u64,
    /// The loop that it doubles; [`u32::MAX`] for none.
    pub doubles: u32,
    /// When a double began; 0 for others.
    pub born: u64,
    /// When a caller who waits for `tasks/cancel` has control again.
    pub settles_at: u64,
}

const _: () = assert!(std::mem::offset_of!(Loop, ticket) <= 128);

impl Default for Loop {
    fn default() -> Self {
        Loop {
            phase: Phase::Idle,
            flight: 0,
            timer: u64::MAX,
            tick: 0,
            since: 0,
            ready: u64::MAX,
            turns: 0,
            ticket: 0,
            places: 0,
            rides: false,
            read_at: 0,
            answer: Answer::Ended,
            seen_at: 0,
            instant: false,
            attempt: 0,
            uncounted: 0,
            connection: u32::MAX,
            breaker: u32::MAX,
            probe: false,
            host: 0,
            asks_at: u64::MAX,
            left: 0,
            question: 0,
            awaits_result: false,
            has_result: false,
            asked: false,
            asking_counted: false,
            answer_sent: false,
            answered: false,
            knows_question: false,
            held_from: 0,
            held_until: 0,
            last_poll: u64::MAX,
            doubles: u32::MAX,
            born: 0,
            openings: 0,
            settles_at: u64::MAX,
        }
    }
}

impl Simulation<'_> {
    /// A coupled loop begins.
    #[inline(never)]
    pub(super) fn begin_loop(&mut self, slot: u32) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        if self.loops.len() < self.slab.tasks.len() {
            self.loops.resize(self.slab.tasks.len(), Loop::default());
        }
        let host = model.host_of(task.class, task.member, task.ordinal);
        let ticket = self.loops[slot as usize].ticket;
        self.loops[slot as usize] = Loop {
            host,
            // Tickets of the slot's earlier tasks are stale.
            ticket: ticket.wrapping_add(1),
            breaker: self.breaker_of(&task, host),
            connection: self.connection_of(&task, host),
            ..Loop::default()
        };
        self.join_host(slot, host);
        self.plan_question(slot);
        if task.abort <= model.stop && task.abort < u64::MAX {
            self.push_task_event(slot, task.abort, Step::Aborts, Kind::Abort);
        }
        let deadline = self.gives_up_at(slot);
        if deadline <= model.stop && deadline < u64::MAX {
            self.push_task_event(slot, deadline, Step::Aborts, Kind::GiveUp);
        }
        let end = self.slab.tasks[slot as usize].end;
        if end < u64::MAX {
            self.announce(slot, end, super::push::END);
        }
    }

    /// When the loop of a task gives up; [`u64::MAX`] for never.
    pub(super) fn gives_up_at(&self, slot: u32) -> u64 {
        let task = &self.slab.tasks[slot as usize];
        let policy = policy(self.model, task.class);
        let mut after = policy.give_up_after;
        if policy.ends_at_ttl {
            after = after.min(self.model.servers[task.server_class as usize].ttl);
        }
        deadline(after, task.created)
    }

    /// The loop sleeps from `from` until its timer at `next`, unless something comes between.
    #[inline(never)]
    pub(super) fn sleep(&mut self, slot: u32, from: u64, next: u64, tick: u64) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        let policy = policy(model, task.class);
        let deadline = self.gives_up_at(slot);
        let Some(next) = policy.next_poll(from, next, deadline) else {
            // The wait may have begun long ago: a notification has made it longer.
            return self.give_up(slot, from.max(self.now), REFUSED);
        };
        let state = &mut self.loops[slot as usize];
        state.phase = Phase::Sleeping;
        (state.since, state.timer, state.tick) = (from, next, tick);
        if next > deadline && from > deadline {
            return self.give_up(slot, from, "gave up at its deadline");
        }
        if next == u64::MAX {
            let server = &model.servers[task.server_class as usize];
            let pushed = server.notifications.is_some()
                && model.carriers[model.tenants[task.class as usize].policy].push != Push::Ignored;
            let tenant = &model.tenants[task.class as usize];
            let reconnects = tenant.reconnect.is_some();
            let graced = tenant.abort.as_ref().is_some_and(|a| a.grace < FOREVER);
            let interrupted = task.abort < u64::MAX
                && matches!(
                    policy.manner,
                    WaitManner::Interruptible | WaitManner::Sliced(_)
                );
            let interrupted = interrupted || task.abort < u64::MAX && graced;
            if !pushed && !interrupted && !reconnects && deadline == u64::MAX {
                self.tell(slot, from, 6, "loop ended", || "waits for ever".into());
                self.end_loop(slot, u64::MAX, Final::NeverPolledAgain);
            }
            return;
        }
        if model.carriers[model.tenants[task.class as usize].policy].schedule != Schedule::PerTask {
            return self.arm_common_timer(slot, next);
        }
        if next <= model.stop {
            self.push_task_event(slot, next, Step::Sends, Kind::Timer);
        }
    }

    /// The loop's poll is left out: it waits as long again.
    pub(super) fn wait_again(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        self.let_riders_off(slot);
        let policy = policy(self.model, task.class);
        let next = self.now.saturating_add(policy.again(&task.state));
        self.sleep(slot, self.now, next, next);
    }

    /// A timer fires.
    #[inline(never)]
    pub(super) fn timer_fires(&mut self, slot: u32) {
        let now = self.now;
        self.slab.release(slot);
        let (task, state) = (
            self.slab.tasks[slot as usize],
            &mut self.loops[slot as usize],
        );
        if !task.polled() || state.phase != Phase::Sleeping || state.timer != now {
            return;
        }
        state.timer = u64::MAX;
        self.poll_is_due(slot);
    }

    /// A loop has slept its wait.
    pub(super) fn poll_is_due(&mut self, slot: u32) {
        let now = self.now;
        let task = self.slab.tasks[slot as usize];
        if self.looks_at_abort(slot) {
            return self.settle_abort(slot, now);
        }
        if self.loops[slot as usize].attempt > 0 {
            // The transport's own: its poll has passed the gates.
            let tick = task.tick;
            if self.model.observed(now) {
                let requests = self.requests_per_poll(task.class);
                self.pairs[task.pair as usize].retries += requests;
            }
            return self.send::<false>(slot, now, tick);
        }
        if self.model.tenants[task.class as usize].host_loop.is_some() {
            self.ready_to_run(slot);
        } else {
            self.gate(slot);
        }
    }

    /// Has the task been aborted, under a policy that looks after its sleep?
    pub(super) fn looks_at_abort(&self, slot: u32) -> bool {
        let task = &self.slab.tasks[slot as usize];
        let looks = matches!(
            policy(self.model, task.class).manner,
            WaitManner::CheckedAfterSleep | WaitManner::Sliced(_)
        );
        looks && task.abort < self.now
    }

    /// A poll has passed every gate, and is on its way to arrive at `arrival`.
    #[inline(never)]
    pub(super) fn on_its_way(&mut self, slot: u32, arrival: u64) {
        let task = self.slab.tasks[slot as usize];
        let state = &mut self.loops[slot as usize];
        (state.phase, state.flight) = (Phase::InFlight, task.polls as u16);
        state.instant = false;
        self.take_riders_along(slot, arrival);
        let due = self.times_out_at(slot);
        if arrival > due {
            self.schedule_answer(slot, due, Answer::Failed(Failure::TimedOut, u64::MAX));
        }
    }

    /// When the poll in flight times out; [`u64::MAX`] for never.
    pub(super) fn times_out_at(&self, slot: u32) -> u64 {
        let task = &self.slab.tasks[slot as usize];
        let policy = self.model.tenants[task.class as usize].policy;
        match self.model.carriers[policy].timeout {
            FOREVER.. => u64::MAX,
            timeout => task.sent.saturating_add(timeout),
        }
    }

    /// Does an event about poll `flight` of the loop find it as it was left?
    pub(super) fn awaits(&self, slot: u32, flight: u16) -> bool {
        let state = &self.loops[slot as usize];
        state.phase == Phase::InFlight && state.flight == flight
    }

    /// The answer is on its way, to be seen at `seen`, unless the host gives the request up before.
    #[inline(never)]
    pub(super) fn answer_on_its_way(&mut self, slot: u32, seen: u64, answer: Answer) {
        self.answer_riders(slot, seen, answer);
        let task = self.slab.tasks[slot as usize];
        if task.settled() {
            return self.drop_answer(slot, seen);
        }
        let due = self.times_out_at(slot);
        if seen > due {
            let timed_out = Answer::Failed(Failure::TimedOut, u64::MAX);
            return self.schedule_answer(slot, due, timed_out);
        }
        let mut seen = seen;
        if let Some(host) = &self.model.tenants[task.class as usize].host_loop {
            self.loops[slot as usize].instant = seen == task.sent;
            // The poll's own processor time covers its answer.
            seen = seen.max(task.sent.saturating_add(host.poll));
        }
        self.schedule_answer(slot, seen, answer);
    }

    fn schedule_answer(&mut self, slot: u32, at: u64, answer: Answer) {
        let state = &mut self.loops[slot as usize];
        (state.phase, state.answer, state.seen_at) = (Phase::Answering, answer, at);
        self.push_task_event(slot, at, Step::Seen, Kind::Answer);
    }

    /// No answer will come: the request or its answer is lost on the way.
    pub(super) fn vanish(&mut self, slot: u32) {
        if self.slab.tasks[slot as usize].coupled() {
            self.lose_riders(slot);
        }
        let task = self.slab.tasks[slot as usize];
        if task.settled() {
            return self.drop_answer(slot, self.now);
        }
        let due = self.times_out_at(slot);
        if due < u64::MAX {
            let timed_out = Answer::Failed(Failure::TimedOut, u64::MAX);
            return self.schedule_answer(slot, due, timed_out);
        }
        let requests = self.requests_of(slot);
        self.totals.lost += requests;
        if self.model.observed(task.sent) {
            self.pairs[task.pair as usize].lost += requests;
        }
        let state = &mut self.loops[slot as usize];
        state.phase = Phase::Lost;
        if std::mem::take(&mut state.probe) {
            // It tells the breaker nothing.
            let (number, openings) = (state.breaker, state.openings);
            self.breakers[number as usize].give_up_probe(openings);
            self.try_again(number);
        }
        self.tell_poll(slot, None, "lost");
    }

    /// The answer to a poll comes to its host, or its timeout does.
    #[inline(never)]
    pub(super) fn answer_arrives(&mut self, slot: u32, flight: u16) {
        let now = self.now;
        self.slab.tasks[slot as usize].holds -= 1;
        let state = self.loops[slot as usize];
        if state.phase != Phase::Answering || state.flight != flight {
            return self.slab.sweep(slot);
        }
        let task = self.slab.tasks[slot as usize];
        if task.settled() {
            return self.drop_answer(slot, now);
        }
        if let Some(busy) = self.busy_until(slot) {
            // The host is busy with a batch; it reads the answer after it.
            return self.push_task_event(slot, busy, Step::Seen, Kind::Answer);
        }
        self.loops[slot as usize].phase = Phase::Idle;
        let failure = match state.answer {
            Answer::Failed(failure, _) => Some(failure),
            _ => None,
        };
        if !state.rides {
            self.report_to_breaker(slot, failure);
        }
        // A poll that is sent again keeps its places.
        if failure.is_some_and(|f| self.sends_again(slot, f)) {
            return;
        }
        self.give_places_back(slot);
        self.loops[slot as usize].attempt = 0;
        let state = &mut self.loops[slot as usize];
        state.has_result = std::mem::take(&mut state.awaits_result);
        let state = *state;
        // Riders of a request that was to be sent again, and is not.
        self.let_riders_off(slot);
        let aborted = task.abort < now;
        self.see(slot, now, state.answer, aborted);
    }

    /// The transport sends a failed request again, if it may. The policy does not see it.
    fn sends_again(&mut self, slot: u32, failure: Failure) -> bool {
        let task = self.slab.tasks[slot as usize];
        let policy_number = self.model.tenants[task.class as usize].policy;
        let Some(retries) = self.model.carriers[policy_number].retries else {
            return false;
        };
        let attempt = self.loops[slot as usize].attempt + 1;
        let tries = !matches!(failure, Failure::UnknownTask | Failure::TooSoon);
        // The carrier does, for all.
        let tries = tries && !self.loops[slot as usize].rides;
        let looks = policy(self.model, task.class).manner != WaitManner::Ignored;
        if !tries || attempt >= retries.requests || looks && task.abort < self.now {
            return false;
        }
        let wait = retries.before(
            attempt,
            task.key.draw(Purpose::Retry, u64::from(task.polls)),
        );
        let next = self.now.saturating_add(wait);
        if next > self.gives_up_at(slot) {
            return false;
        }
        self.count_answer::<false>(slot, self.now, Answer::Failed(failure, u64::MAX));
        self.tell_poll(slot, Some(self.now), failure.text());
        let state = &mut self.loops[slot as usize];
        (state.attempt, state.phase) = (attempt, Phase::Sleeping);
        (state.since, state.timer) = (self.now, next);
        state.uncounted += 1;
        if next <= self.model.stop {
            self.push_task_event(slot, next, Step::Sends, Kind::Timer);
        }
        true
    }

    /// The caller aborts.
    #[inline(never)]
    pub(super) fn abort_comes(&mut self, slot: u32) {
        let now = self.now;
        self.slab.tasks[slot as usize].holds -= 1;
        let task = self.slab.tasks[slot as usize];
        if !task.polled() {
            return self.slab.sweep(slot);
        }
        let (state, manner) = (
            self.loops[slot as usize],
            policy(self.model, task.class).manner,
        );
        match state.phase {
            Phase::Riding if !state.rides && manner == WaitManner::Interruptible => {
                return self.settle_abort(slot, now);
            }
            Phase::InFlight | Phase::Held | Phase::Answering | Phase::Riding => {
                if aborts_requests(self.model, task.class) {
                    if state.phase == Phase::Held || self.waits_for_cancel(task.class) {
                        self.drop_poll(slot, "dropped by the abort");
                    } else {
                        self.tell_poll(slot, None, "dropped by the abort");
                    }
                    self.settle_abort(slot, now);
                }
            }
            Phase::Lost if manner != WaitManner::Ignored => {
                if aborts_requests(self.model, task.class) {
                    self.settle_abort(slot, now);
                }
            }
            _ => match manner {
                WaitManner::Interruptible => return self.settle_abort(slot, now),
                WaitManner::Sliced(slice) => {
                    let slices = (now - state.since) / slice + 1;
                    let look = state.since.saturating_add(slices.saturating_mul(slice));
                    if look < state.timer {
                        self.push_task_event(slot, look, Step::Aborts, Kind::Settle);
                    }
                }
                WaitManner::CheckedAfterSleep | WaitManner::Ignored => {}
            },
        }
        if self.slab.tasks[slot as usize].polled()
            && self.loops[slot as usize].phase != Phase::Cancelling
        {
            let graced = now.saturating_add(self.grace(slot));
            if graced <= self.model.stop && graced < FOREVER {
                self.push_task_event(slot, graced, Step::Aborts, Kind::Settle);
            }
        }
    }

    /// How long after an abort control returns at the latest.
    fn grace(&self, slot: u32) -> u64 {
        let class = self.slab.tasks[slot as usize].class as usize;
        self.model.tenants[class]
            .abort
            .as_ref()
            .map_or(FOREVER, |a| a.grace)
    }

    /// The policy's deadline comes. A poll in flight is waited for.
    #[inline(never)]
    pub(super) fn give_up_comes(&mut self, slot: u32) {
        let now = self.now;
        self.slab.tasks[slot as usize].holds -= 1;
        let (task, state) = (self.slab.tasks[slot as usize], self.loops[slot as usize]);
        let waits = matches!(
            state.phase,
            Phase::Sleeping
                | Phase::Ready
                | Phase::Queued
                | Phase::Barred
                | Phase::Lost
                | Phase::Held
        ) || state.phase == Phase::Riding && !state.rides;
        if !task.polled() || !waits {
            return self.slab.sweep(slot);
        }
        let looks = !matches!(policy(self.model, task.class).manner, WaitManner::Ignored);
        if looks && task.abort <= now {
            return self.settle_abort(slot, now);
        }
        self.give_up(slot, now, "gave up at its deadline");
    }

    /// Control returns to the caller: a slice of its sleep is over, or `tasks/cancel` is answered, or its bound has come.
    #[inline(never)]
    pub(super) fn settle_comes(&mut self, slot: u32) {
        let now = self.now;
        self.slab.tasks[slot as usize].holds -= 1;
        let (task, state) = (self.slab.tasks[slot as usize], self.loops[slot as usize]);
        match state.phase {
            _ if !task.polled() => self.slab.sweep(slot),
            // The end of a slice is not what it waits for.
            Phase::Cancelling if now < state.settles_at => {}
            Phase::Cancelling => {
                self.end_loop(slot, now, Final::CancelSent);
                self.slab.sweep(slot);
            }
            Phase::Sleeping | Phase::Ready | Phase::Queued | Phase::Barred => {
                self.settle_abort(slot, now);
            }
            _ if now >= task.abort.saturating_add(self.grace(slot)) => self.settle_abort(slot, now),
            _ => {}
        }
    }

    /// The loop has ended, or starts anew: it leaves whatever it waits in.
    pub(super) fn leave_queues(&mut self, slot: u32) {
        let state = &mut self.loops[slot as usize];
        state.ticket = state.ticket.wrapping_add(1);
        state.timer = u64::MAX;
        match state.phase {
            // The events of the poll are still to come, and are told apart by the task's being settled.
            Phase::InFlight | Phase::Answering => {}
            Phase::Idle => self.let_riders_off(slot),
            Phase::Held => self.drop_poll(slot, "dropped by its host"),
            _ => {
                self.loops[slot as usize].phase = Phase::Idle;
                self.let_riders_off(slot);
            }
        }
        self.give_places_back(slot);
        let state = &mut self.loops[slot as usize];
        if std::mem::take(&mut state.probe) {
            let (breaker, openings) = (state.breaker, state.openings);
            self.breakers[breaker as usize].give_up_probe(openings);
            self.try_again(breaker);
        }
    }

    /// Its host has started again, and with it the loop. The first poll comes after `spread`.
    pub(super) fn start_again(&mut self, slot: u32, spread: u64) {
        // Those that ride on its poll start again, too.
        self.set_riders_down(slot);
        self.drop_poll(slot, "dropped by its host");
        self.leave_queues(slot);
        let state = &mut self.loops[slot as usize];
        (state.phase, state.attempt, state.awaits_result) = (Phase::Idle, 0, false);
        self.slab.tasks[slot as usize].state = State::default();
        self.tell(slot, self.now, 6, "reconnect", String::new);
        let next = self.now.saturating_add(spread);
        self.sleep(slot, self.now, next, next);
    }

    /// A ticket for a wait that begins now.
    pub(super) fn ticket(&mut self, slot: u32) -> Ticket {
        self.slab.tasks[slot as usize].holds += 1;
        let state = &mut self.loops[slot as usize];
        state.ticket = state.ticket.wrapping_add(1);
        Ticket {
            slot,
            number: state.ticket,
        }
    }

    /// Gives a ticket up. Does its holder still wait?
    pub(super) fn redeem(&mut self, ticket: Ticket) -> bool {
        self.slab.release(ticket.slot);
        self.slab.tasks[ticket.slot as usize].polled()
            && self.loops[ticket.slot as usize].ticket == ticket.number
    }

    /// An event about the answer to a poll was still to come when the run stopped. If an abort had dropped the poll, it is known what becomes
    /// of it: the same as of a poll that is not coupled.
    #[inline(never)]
    pub(super) fn leave_dropped(&mut self, event: Event) {
        let (slot, state) = (event.slot(), self.loops[event.slot() as usize]);
        let task = &self.slab.tasks[slot as usize];
        if !task.settled() || state.flight != event.tag() {
            return;
        }
        let late = self.model.servers[task.server_class as usize].reads_late();
        match (event.kind(), state.phase) {
            (Kind::Served, Phase::InFlight) if !late => self.answer_now(slot, event.time),
            (Kind::Answer, Phase::Answering) => self.drop_answer(slot, event.time),
            _ => {}
        }
    }

    /// Counts the polls that were in flight when the run stopped.
    pub(super) fn leave_in_flight(&mut self) {
        for slot in 0..self.loops.len() as u32 {
            let phase = self.loops[slot as usize].phase;
            let rides = phase == Phase::Riding && self.loops[slot as usize].rides;
            if rides || matches!(phase, Phase::InFlight | Phase::Held | Phase::Answering) {
                let polled = self.slab.tasks[slot as usize].polled();
                if phase == Phase::Held {
                    self.let_go(slot, self.model.stop);
                }
                self.totals.in_flight += self.requests_of(slot);
                if polled {
                    self.tell_poll(slot, None, "in flight");
                }
            }
        }
    }

    /// Requests that a poll of a tenant class consists of.
    pub(super) fn requests_per_poll(&self, class: u16) -> u64 {
        let policy = self.model.tenants[class as usize].policy;
        u64::from(self.model.carriers[policy].requests_per_poll)
    }

    /// The hint that stands in a notification.
    pub(super) fn hint_now(&mut self, slot: u32) -> RawHint {
        let index = u64::from(self.slab.tasks[slot as usize].polls);
        self.hint(slot, index, self.now)
    }
}

/// The instant of a deadline of so much after a task's creation.
fn deadline(after: u64, created: u64) -> u64 {
    match after {
        FOREVER.. => u64::MAX,
        after => created.saturating_add(after),
    }
}
