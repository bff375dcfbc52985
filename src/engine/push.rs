//! What a server tells before it is asked: notifications of changed statuses, polls held until something changes, and questions to the host
//! (`input_required`).

use super::Simulation;
use super::coupled::Phase;
use super::host::{policy, saw_status};
use super::queue::{Kind, Step};
use super::server::{Answer, delay, duration};
use super::task::Life;
use crate::metrics::tally::Failure;
use crate::model::{HintSource, Push};
use crate::policy::{FOREVER, OnQuestion};
use crate::random::{Purpose, unit};

/// What a notification is about: the task has ended.
pub const END: u16 = 0;
/// … it asks for input.
pub const QUESTION: u16 = 1;
/// … it works again.
pub const WORKS: u16 = 2;

/// Draws of `tasks/update` have indices beyond those of polls.
const UPDATE: u64 = 1 << 35;

impl Simulation<'_> {
    /// The status of a task changes at `at`: its host is notified, if the notification comes.
    pub(super) fn announce(&mut self, slot: u32, at: u64, what: u16) {
        let task = self.slab.tasks[slot as usize];
        let model = self.model;
        let policy = model.tenants[task.class as usize].policy;
        if model.carriers[policy].push == Push::Ignored || !task.coupled() {
            return;
        }
        let Some(notifications) = &model.servers[task.server_class as usize].notifications else {
            return;
        };
        // Of each question there are three kinds.
        let index = u64::from(what) + 3 * u64::from(self.loops[slot as usize].question);
        if unit(task.key.draw(Purpose::NoticeCoin, index)) >= notifications.share {
            return;
        }
        let takes = notifications
            .delay
            .draw(|| task.key.draw(Purpose::NoticeDelay, index));
        // A server that is down, or knows the task no more, has nothing to tell.
        if self.is_down(slot, at) || !self.knows(slot, at) {
            return;
        }
        let comes = at.saturating_add(takes);
        if comes <= model.stop {
            self.push_task_event(slot, comes, Step::Seen, Kind::Notice);
            // Which status it tells is read when it comes: a later one may have overtaken it.
        }
    }

    /// A notification comes to its host.
    #[inline(never)]
    pub(super) fn notice_comes(&mut self, slot: u32) {
        let now = self.now;
        self.slab.tasks[slot as usize].holds -= 1;
        let (task, state) = (self.slab.tasks[slot as usize], self.loops[slot as usize]);
        if !task.polled() || state.phase == Phase::Cancelling {
            return self.slab.sweep(slot);
        }
        if self.model.observed(now) {
            self.pairs[task.pair as usize].notices += 1;
        }
        self.tell(slot, now, 4, "notification", String::new);
        let policy = self.model.tenants[task.class as usize].policy;
        let sleeps = state.phase == Phase::Sleeping && state.attempt == 0;
        match self.model.carriers[policy].push {
            Push::Wakes if sleeps && self.looks_at_abort(slot) => self.settle_abort(slot, now),
            Push::Wakes if sleeps => {
                self.loops[slot as usize].timer = u64::MAX;
                if self.model.tenants[task.class as usize].host_loop.is_some() {
                    self.ready_to_run(slot);
                } else {
                    self.loops[slot as usize].tick = now;
                    self.gate(slot);
                }
            }
            Push::Replaces => {
                self.loops[slot as usize].attempt = 0;
                self.loops[slot as usize].awaits_result = false;
                self.drop_poll(slot, "dropped by its host");
                self.leave_queues(slot);
                if task.end <= now {
                    return self.end_seen(slot, now, false);
                }
                self.status_told(slot);
            }
            Push::Restarts => {
                self.loops[slot as usize].attempt = 0;
                self.loops[slot as usize].awaits_result = false;
                self.drop_poll(slot, "dropped by its host");
                self.leave_queues(slot);
                self.status_told(slot);
            }
            Push::Postpones if sleeps && state.timer < u64::MAX => {
                let again = self.model.policies[policy].again(&task.state);
                let next = state.timer.saturating_add(again);
                self.sleep(slot, state.since, next, next);
            }
            Push::Ignored | Push::Wakes | Push::Postpones => {}
        }
    }

    /// A notification without an end is an answer: a new wait begins.
    fn status_told(&mut self, slot: u32) {
        let hint = self.hint_now(slot);
        let asks = self.asks(slot, self.now);
        let changed = self.notes_status(slot, asks);
        let saw = saw_status(hint, asks, changed);
        self.decide::<false>(slot, self.now, saw, Some(hint), u64::MAX);
    }

    /// The poll of a loop, if it has one, is given up by its host; `why` is told.
    pub(super) fn drop_poll(&mut self, slot: u32, why: &'static str) {
        let state = &self.loops[slot as usize];
        let rides = state.phase == Phase::Riding && state.rides;
        if rides
            || matches!(
                state.phase,
                Phase::InFlight | Phase::Held | Phase::Answering
            )
        {
            if state.phase == Phase::Held {
                self.let_go(slot, self.now);
            }
            self.loops[slot as usize].phase = Phase::Idle;
            let requests = self.requests_of(slot);
            self.totals.dropped += requests;
            self.mark_dropped(slot, self.now);
            self.tell_poll(slot, None, why);
        }
    }

    /// When the task of a loop ends, and whether it asks for input at `at`.
    pub(super) fn end_and_question(&self, slot: u32, at: u64) -> (u64, bool) {
        let first = self.first_of(slot);
        (self.slab.tasks[first as usize].end, self.asks(slot, at))
    }

    /// Does the task ask for input at `at`?
    pub(super) fn asks(&self, slot: u32, at: u64) -> bool {
        let state = &self.loops[self.first_of(slot) as usize];
        state.asks_at <= at && !state.answered
    }

    /// The host learns whether a task asks for input. Has the status changed since it last knew, or is the question another? A new question is
    /// answered.
    pub(super) fn notes_status(&mut self, slot: u32, asks: bool) -> bool {
        let state = &mut self.loops[slot as usize];
        let changed = state.knows_question != asks;
        state.knows_question = asks;
        let first = self.first_of(slot);
        let new = asks && !self.loops[first as usize].asked;
        let class = self.slab.tasks[slot as usize].class;
        if new {
            self.count_question(first);
        }
        // Who ends at a question leaves it open: the task goes on without an answer.
        if new && policy(self.model, class).on_question != OnQuestion::Ends {
            self.loops[first as usize].asked = true;
            self.answer_question(first);
        }
        changed || new
    }

    /// Draws whether and when a task asks for input; until it has the answer its end is unknown.
    pub(super) fn plan_question(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        let model = self.model;
        let Some(input) = &model.tenants[task.class as usize].input else {
            return;
        };
        if unit(task.key.draw(Purpose::InputCoin, 0)) >= input.probability {
            return;
        }
        let after = input.after.draw(|| task.key.draw(Purpose::InputTime, 0));
        let duration = duration(model, &task);
        if after >= duration {
            return;
        }
        self.loops[slot as usize].left = duration - after;
        if !model.servers[task.server_class as usize].limits_execution() {
            self.begin_question(slot, task.created.saturating_add(after));
        }
    }

    /// When a task asks its next question, whose last was answered at `at`; `None` where that was the last.
    fn plan_next_question(&mut self, slot: u32, at: u64) -> Option<u64> {
        let task = self.slab.tasks[slot as usize];
        let input = self.model.tenants[task.class as usize].input.as_ref()?;
        let question = self.loops[slot as usize].question + 1;
        // Whom nobody polls any more nobody will answer.
        if question >= input.questions || task.settled() {
            return None;
        }
        let after = input
            .after
            .draw(|| task.key.draw(Purpose::InputTime, u64::from(question)));
        let state = &mut self.loops[slot as usize];
        if after >= state.left {
            return None;
        }
        (state.question, state.left) = (question, state.left - after);
        Some(at.saturating_add(after))
    }

    /// A task that works again will ask another question at `at`.
    fn ask_again(&mut self, slot: u32, at: u64) {
        let state = &mut self.loops[slot as usize];
        (state.asked, state.answered, state.answer_sent) = (false, false, false);
        self.begin_question(slot, at);
    }

    /// A task that asks for input will do so at `at`.
    pub(super) fn begin_question(&mut self, slot: u32, at: u64) {
        self.loops[slot as usize].asks_at = at;
        self.slab.tasks[slot as usize].end = u64::MAX;
        self.announce(slot, at, QUESTION);
        self.something_changes(slot, at);
    }

    /// The loop of a task has ended whose host has not answered its question: the task goes on without an answer, so that it ends, and gives its place up.
    pub(super) fn forgo_question(&mut self, slot: u32) {
        let (task, state) = (self.slab.tasks[slot as usize], self.loops[slot as usize]);
        let pending = state.left > 0 && !state.answered && !state.asked && task.end == u64::MAX;
        if !pending || self.first_of(slot) != slot {
            return;
        }
        if state.asks_at == u64::MAX {
            // It has not started yet, and will run on without asking.
            self.loops[slot as usize].left = 0;
            return;
        }
        self.loops[slot as usize].answered = true;
        let end = state.asks_at.max(self.now).saturating_add(state.left);
        self.slab.tasks[slot as usize].end = end;
        let server = &self.model.servers[task.server_class as usize];
        if server.limits_execution() {
            self.push_task_event(slot, end, Step::Ends, Kind::TaskEnd);
        } else if let HintSource::ByLoad(_) = server.hint {
            self.stations[task.server as usize].end_early(u64::MAX, end);
        }
        self.something_changes(slot, end);
    }

    /// How long a task runs before it asks for input; `None` where it does not.
    pub(super) fn runs_before_question(&self, slot: u32) -> Option<u64> {
        let task = &self.slab.tasks[slot as usize];
        let left = if task.coupled() {
            self.loops[slot as usize].left
        } else {
            0
        };
        (left > 0).then(|| duration(self.model, task) - left)
    }

    /// A task that asks is counted once.
    fn count_question(&mut self, slot: u32) {
        let task = &self.slab.tasks[slot as usize];
        let (pair, counted) = (task.pair as usize, task.counted);
        if !std::mem::replace(&mut self.loops[slot as usize].asking_counted, true) {
            self.pairs[pair].asked += u64::from(counted);
        }
    }

    /// Draws of the `tasks/update` that answers the question of a task.
    fn update_index(&self, slot: u32) -> u64 {
        UPDATE + u64::from(self.loops[slot as usize].question)
    }

    /// The host answers a question that it has seen.
    fn answer_question(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        let model = self.model;
        let Some(input) = &model.tenants[task.class as usize].input else {
            return;
        };
        let state = &mut self.loops[slot as usize];
        let question = u64::from(state.question);
        let takes = input
            .answer
            .draw(|| task.key.draw(Purpose::InputAnswer, question));
        state.answer_sent = false;
        let sent = self.now.saturating_add(takes);
        if sent <= model.stop {
            self.push_task_event(slot, sent, Step::Sends, Kind::Update);
        }
    }

    /// A `tasks/update` is sent, or comes to the server.
    pub(super) fn update_comes(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.loops[slot as usize].answer_sent, true) {
            let task = self.slab.tasks[slot as usize];
            // Whoever has given up on a task answers it no more.
            if task.polled() && self.loops[slot as usize].phase != Phase::Cancelling {
                if self.model.observed(self.now) {
                    self.pairs[task.pair as usize].updates += 1;
                }
                let out = delay(
                    self.model,
                    &task,
                    Purpose::DelayOut,
                    self.update_index(slot),
                );
                if out == 0 {
                    self.update_arrives(slot);
                } else {
                    let arrival = self.now.saturating_add(out);
                    self.push_task_event(slot, arrival, Step::Arrives, Kind::Update);
                }
            } else {
                self.loops[slot as usize].asked = false;
                if task.settled() {
                    self.forgo_question(slot);
                }
            }
        } else {
            self.update_arrives(slot);
        }
        self.slab.release(slot);
    }

    /// A `tasks/update` comes to the server: the task works again.
    fn update_arrives(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        if task.end < u64::MAX {
            // It was cancelled.
        } else if let Ok(served) = self.serve_other(slot, self.update_index(slot)) {
            self.loops[slot as usize].answered = true;
            self.announce(slot, served.done, WORKS);
            if let Some(asks_at) = self.plan_next_question(slot, served.done) {
                self.tell(slot, served.done, 0, "answered", || "working".into());
                self.something_changes(slot, served.done);
                return self.ask_again(slot, asks_at);
            }
            let left = self.loops[slot as usize].left;
            let end = served.done.saturating_add(left);
            let server = &self.model.servers[task.server_class as usize];
            self.slab.tasks[slot as usize].end = end;
            if server.limits_execution() {
                self.push_task_event(slot, end, Step::Ends, Kind::TaskEnd);
            } else {
                if let HintSource::ByLoad(_) = server.hint {
                    self.stations[task.server as usize].end_early(u64::MAX, end);
                }
                let unseen = task.life == Life::SettledUnseen && end <= self.model.stop;
                self.pairs[task.pair as usize].unseen += u64::from(unseen);
                self.announce(slot, end, END);
            }
            self.tell(slot, served.done, 0, "answered", || "working".into());
            self.something_changes(slot, served.done);
        } else {
            // Refused: the host tries again, when it sees the question the next time.
            self.loops[slot as usize].asked = false;
            self.loops[slot as usize].knows_question = false;
            if self.loops[slot as usize].awaits_result {
                let again = policy(self.model, task.class).again(&task.state).max(1);
                self.something_changes(slot, self.now.saturating_add(again));
            }
            if task.settled() {
                self.forgo_question(slot);
            }
        }
    }

    /// Holds a poll whose service has ended at `done`, because nothing has changed. Is it held?
    pub(super) fn holds(&mut self, slot: u32, done: u64) -> bool {
        let task = self.slab.tasks[slot as usize];
        let policy = self.model.tenants[task.class as usize].policy;
        let awaits = self.loops[slot as usize].awaits_result;
        let hold = match self.model.carriers[policy].hold {
            _ if awaits => FOREVER,
            hold => hold,
        };
        if hold == 0 || !awaits && self.asks(slot, done) != self.loops[slot as usize].knows_question
        {
            return false;
        }
        let state = &mut self.loops[slot as usize];
        state.phase = Phase::Held;
        state.held_from = done;
        state.held_until = done.saturating_add(hold);
        self.tally_held(slot, true, done);
        self.push_release(slot, done);
        true
    }

    /// Pushes the event at which a held poll may be answered, or is given up by its host.
    fn push_release(&mut self, slot: u32, now: u64) {
        let first = self.first_of(slot);
        let state = self.loops[slot as usize];
        let (question, end) = (
            self.loops[first as usize].asks_at,
            self.slab.tasks[first as usize].end,
        );
        let server = &self.model.servers[self.slab.tasks[slot as usize].server_class as usize];
        let deleted = self.slab.tasks[slot as usize]
            .created
            .saturating_add(server.ttl);
        let forever = |at: u64| if at >= FOREVER { u64::MAX } else { at };
        let mut at = forever(state.held_until.min(deleted)).min(self.times_out_at(slot));
        for change in [end, question] {
            if change > now {
                at = at.min(change);
            }
        }
        if let Some(broke) = self.breaks_within(slot, now, at) {
            at = broke;
        }
        if at <= self.model.stop {
            self.push_task_event(slot, at, Step::Reads, Kind::Release);
        }
    }

    /// The status of a task changes at `at`, which was not known: polls of it that are held are looked at then.
    pub(super) fn something_changes(&mut self, slot: u32, at: u64) {
        let task = &self.slab.tasks[slot as usize];
        if !task.coupled() || at > self.model.stop {
            return;
        }
        let reconnect = &self.model.tenants[task.class as usize].reconnect;
        let doubles = reconnect.as_ref().is_some_and(|r| r.duplicates);
        self.look_at_held(slot, at);
        if doubles {
            let host = &self.hosts[self.loops[slot as usize].host as usize];
            for other in host.loops().to_vec() {
                if other != slot && self.first_of(other) == slot {
                    self.look_at_held(other, at);
                }
            }
        }
    }

    /// The poll of a loop, if it is held, is looked at at `at`.
    fn look_at_held(&mut self, slot: u32, at: u64) {
        if self.loops[slot as usize].phase == Phase::Held {
            self.push_task_event(slot, at, Step::Reads, Kind::Release);
        }
    }

    /// A held poll may be answered.
    #[inline(never)]
    pub(super) fn release_comes(&mut self, slot: u32, flight: u16) {
        let now = self.now;
        self.slab.tasks[slot as usize].holds -= 1;
        let state = self.loops[slot as usize];
        if state.phase != Phase::Held || state.flight != flight {
            return self.slab.sweep(slot);
        }
        let first = self.first_of(slot);
        let (end, due) = (self.slab.tasks[first as usize].end, self.times_out_at(slot));
        let changed =
            end <= now || !state.awaits_result && self.asks(slot, now) != state.knows_question;
        if state.awaits_result && self.asks(slot, now) {
            // The question comes to the host on the request that it waits with.
            self.notes_status(slot, true);
        }
        let down = self.is_down(slot, now);
        let unknown = !self.knows(slot, now);
        if !changed && !down && !unknown && now < state.held_until && now < due {
            return self.push_release(slot, now);
        }
        self.let_go(slot, self.now);
        self.loops[slot as usize].phase = Phase::InFlight;
        // As the event of a poll does, an answer gives one hold back.
        self.slab.tasks[slot as usize].holds += 1;
        if down {
            return self.breaks(slot, now);
        }
        if unknown {
            return self.answer_unknown(slot, now);
        }
        if !changed && now >= due {
            return self.answer_comes(slot, now, Answer::Failed(Failure::TimedOut, u64::MAX));
        }
        self.answer_now(slot, now);
    }

    /// A poll is no longer held, from `at` on.
    pub(super) fn let_go(&mut self, slot: u32, at: u64) {
        self.tally_held(slot, false, at);
        let task = self.slab.tasks[slot as usize];
        let from = self.loops[slot as usize].held_from;
        let tally = &mut self.server_tallies[task.server_class as usize];
        tally.held.add(from, at);
        tally.held_ns += u128::from(self.model.observed_part(from, at));
    }

    fn tally_held(&mut self, slot: u32, begins: bool, at: u64) {
        let class = self.slab.tasks[slot as usize].server_class as usize;
        let tally = &mut self.server_tallies[class];
        // So many were held since the last change.
        if self.model.observed_part(tally.held_since, at) > 0 {
            tally.held_peak = tally.held_peak.max(tally.held_now);
        }
        tally.held_since = at;
        if begins {
            tally.held_now += 1;
        } else {
            tally.held_now -= 1;
        }
    }
}
