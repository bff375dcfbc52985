//! What happens at a host: tasks are created, answers are seen, waits are chosen, polls are sent, loops end.

use super::coupled::Phase;
use super::queue::{Event, Kind, Step};
use super::server::{Answer, delay, duration};
use super::task::{Outcome, Path, Task};
use super::{POLLS_AT_ONE_INSTANT, RunError, Simulation, seconds};
use crate::metrics::tally::{Failure, Final, WINDOW};
use crate::model::distribution::pick;
use crate::model::{HintSource, Mix, Model};
use crate::policy::{
    Decision, FOREVER, LastWait, LoopEnd, Policy, RawHint, Saw, Stage, Wait, WaitManner,
};
use crate::random::{Key, Purpose, mix, unit};

impl Simulation<'_> {
    /// A member asks for a task.
    pub(super) fn create(&mut self, event: Event) {
        let model = self.model;
        let (class, member) = (event.tag(), event.slot());
        let tenant = &model.tenants[class as usize];
        let shutdown = tenant.abort.as_ref().and_then(|a| a.shutdown_at);
        if shutdown.is_some_and(|at| at <= event.time) {
            // A host that was shut down asks for nothing more.
            return;
        }
        let ordinal = if self.given_arrivals {
            event.order as u32
        } else {
            let ordinal = self.members[member as usize].created;
            self.members[member as usize].created += 1;
            if let Some(next) = self.next_arrival(class, member, event.time) {
                self.push_create(class, member, next);
            }
            ordinal
        };
        let key = self.member_key(class, member).part(u64::from(ordinal));
        let (server_class, server) = server_of(model, class, key);
        let servers = &model.servers[server_class as usize];
        let pair = class * model.servers.len() as u16 + server_class;
        if model.observed(event.time) {
            self.pairs[pair as usize].created += 1;
        }
        let created = event.time.saturating_add(
            tenant
                .creation_delay
                .draw(|| key.draw(Purpose::CreationDelay, 0)),
        );
        if created > model.stop {
            return;
        }
        self.totals.tasks += 1;
        self.members[member as usize].counted |= model.observed(created);
        let traced = self.tracer.as_mut().is_some_and(|t| t.wants(class));
        let mut task = Task {
            abort: self.abort_time(class, key, created),
            server,
            member,
            ordinal,
            pair,
            class,
            server_class,
            outcome: self.outcome(class, key),
            counted: model.observed(created),
            traced,
            path: match &model.pairs[pair as usize] {
                pair if pair.coupled => Path::Coupled,
                pair if pair.guarded => Path::Guarded,
                _ => Path::Plain,
            },
            ..Task::new(key, created)
        };
        if let HintSource::PerTask(mix, turns) = &servers.hint {
            let part = match turns {
                Some(tasks) => Mix::turn(ordinal, *tasks),
                None => key.draw(Purpose::HintPart, 0),
            };
            task.set_hint(mix.hint(part, || key.draw(Purpose::HintValue, 0)));
        }
        if !servers.limits_execution() {
            task.end = created.saturating_add(duration(model, &task));
        }
        let slot = self.slab.insert(task);
        if task.coupled() {
            self.begin_loop(slot);
        }
        if let HintSource::ByLoad(_) = servers.hint
            && !servers.limits_execution()
        {
            // A task that will ask for input has no end as yet.
            let end = self.slab.tasks[slot as usize].end;
            self.stations[server as usize].hold_until(end);
        }
        if servers.limits_execution() {
            self.push_task_event(slot, created, Step::Ends, Kind::Queue);
        }
        if traced {
            self.begin_story(slot, &task);
        }
        let hint = self.hint(slot, 0, created);
        if model.observed(created) {
            self.pairs[pair as usize].count_hints(hint, 1);
        }
        self.decide::<false>(slot, created, Saw::Created(hint), Some(hint), u64::MAX);
    }

    /// How the task ends at the server.
    pub(super) fn outcome(&self, class: u16, key: Key) -> Outcome {
        let shares = &self.model.tenants[class as usize].end_shares;
        if shares[0] >= 1.0 {
            return Outcome::Completed;
        }
        match pick(shares, unit(key.draw(Purpose::End, 0))) {
            0 => Outcome::Completed,
            1 => Outcome::Failed,
            _ => Outcome::Cancelled,
        }
    }

    /// When the caller of a task created at `created` gives up.
    fn abort_time(&self, class: u16, key: Key, created: u64) -> u64 {
        let Some(abort) = &self.model.tenants[class as usize].abort else {
            return u64::MAX;
        };
        let mut at = u64::MAX;
        if let Some(after) = &abort.after
            && unit(key.draw(Purpose::AbortCoin, 0)) < abort.probability
        {
            at = created.saturating_add(after.draw(|| key.draw(Purpose::AbortTime, 0)));
        }
        if let Some(shutdown) = abort.shutdown_at {
            // A creation in flight at the shutdown is aborted when its id is held.
            at = at.min(shutdown.max(created));
        }
        at.min(
            abort
                .deadline
                .map_or(u64::MAX, |d| created.saturating_add(d)),
        )
    }

    /// The answer to the poll in flight is seen at `seen`, unless something comes between.
    #[inline]
    pub(super) fn answer_comes(&mut self, slot: u32, seen: u64, answer: Answer) {
        let model = self.model;
        let task = &mut self.slab.tasks[slot as usize];
        task.holds -= 1;
        if task.coupled() {
            return self.answer_on_its_way(slot, seen, answer);
        }
        let aborted = task.abort < seen && task.abort <= model.stop;
        if task.settled() || aborted && aborts_requests(model, task.class) {
            return self.drop_answer(slot, seen);
        }
        if seen > model.stop {
            self.totals.in_flight += 1;
            return self.tell_poll(slot, None, "in flight");
        }
        match answer {
            // The commonest case.
            Answer::Working(hint) if task.path == Path::Plain && !aborted => {
                self.count_answer::<true>(slot, seen, answer);
                self.tell_poll(slot, Some(seen), "working");
                let saw = Saw::Unchanged(hint);
                self.decide::<true>(slot, seen, saw, Some(hint), u64::MAX);
            }
            _ => self.see(slot, seen, answer, aborted),
        }
    }

    /// The host sees an answer; `aborted` says that its caller has given up before.
    #[inline(never)]
    pub(super) fn see(&mut self, slot: u32, seen: u64, answer: Answer, aborted: bool) {
        self.count_answer::<false>(slot, seen, answer);
        let (saw, hint, status, after) = match answer {
            Answer::Ended => return self.end_seen(slot, seen, true),
            Answer::Working(hint) | Answer::Asks(hint) => {
                let asks = matches!(answer, Answer::Asks(_));
                let coupled = self.slab.tasks[slot as usize].coupled();
                let changed = coupled && self.notes_status(slot, asks);
                let saw = saw_status(hint, asks, changed);
                let status = if asks { "input_required" } else { "working" };
                (saw, Some(hint), status, self.retry_after_on_success(slot))
            }
            Answer::Failed(Failure::UnknownTask, _) if self.unknown_ends(slot) => {
                self.tell_poll(slot, Some(seen), Failure::UnknownTask.text());
                self.end_loop(slot, seen, Final::Expired);
                return self.slab.sweep(slot);
            }
            Answer::Failed(failure, retry_after) => {
                let saw = match failure {
                    Failure::TooSoon => Saw::SlowDown,
                    Failure::TimedOut => Saw::TimedOut,
                    _ => Saw::Error,
                };
                (saw, None, failure.text(), retry_after)
            }
        };
        let class = self.slab.tasks[slot as usize].class;
        let waited_for = aborted && policy(self.model, class).manner != WaitManner::Ignored;
        self.tell_poll(slot, Some(seen), status);
        if waited_for {
            return self.settle_abort(slot, seen);
        }
        self.decide::<false>(slot, seen, saw, hint, after);
    }

    /// Counts an answer that a host sees.
    #[inline(always)]
    pub(super) fn count_answer<const PLAIN: bool>(&mut self, slot: u32, seen: u64, answer: Answer) {
        let model = self.model;
        // The answer to a question is a change, as the question is.
        let known = !PLAIN
            && self.slab.tasks[slot as usize].coupled()
            && self.loops[slot as usize].knows_question;
        let changed = match answer {
            Answer::Working(_) => known,
            Answer::Asks(_) => !known,
            _ => false,
        };
        let requests = if PLAIN { 1 } else { self.requests_of(slot) };
        let task = &mut self.slab.tasks[slot as usize];
        let (outcome, failure) = match answer {
            Answer::Working(_) | Answer::Asks(_) => (0, None),
            Answer::Ended => (1, None),
            Answer::Failed(Failure::TimedOut, _) => (3, Some(Failure::TimedOut)),
            Answer::Failed(failure, _) => (2, Some(failure)),
        };
        task.streak = if changed {
            0
        } else {
            task.streak + u32::from(outcome != 1)
        };
        self.fingerprint = self.fingerprint.wrapping_add(mark(task, seen, outcome));
        let timed_out = failure == Some(Failure::TimedOut);
        if timed_out {
            self.totals.timed_out += requests;
        } else {
            self.totals.seen += requests;
        }
        if model.observed(task.sent) {
            let pair = &mut self.pairs[task.pair as usize];
            if timed_out {
                pair.failures[Failure::TimedOut as usize] += requests;
                return;
            }
            pair.seen += requests;
            if failure.is_some() {
                pair.errors_seen += requests;
            }
            match answer {
                Answer::Working(hint) | Answer::Asks(hint) => {
                    pair.unchanged += if changed { 0 } else { requests };
                    pair.count_hints(hint, 1);
                }
                _ => {}
            }
        }
    }

    /// `Retry-After` in a good answer, ns; [`u64::MAX`] where there is none.
    fn retry_after_on_success(&self, slot: u32) -> u64 {
        let class = self.slab.tasks[slot as usize].server_class as usize;
        self.model.servers[class]
            .retry_after_on_success
            .unwrap_or(u64::MAX)
    }

    /// Does an unknown task end the loop?
    fn unknown_ends(&self, slot: u32) -> bool {
        let class = self.slab.tasks[slot as usize].class as usize;
        self.model.carriers[self.model.tenants[class].policy].unknown_ends
    }

    /// The answer comes to nobody: the abort has dropped the request, now or before.
    #[cold]
    pub(super) fn drop_answer(&mut self, slot: u32, seen: u64) {
        let task = self.slab.tasks[slot as usize];
        self.totals.dropped += self.requests_of(slot);
        self.mark_dropped(slot, seen);
        if task.coupled() {
            self.loops[slot as usize].phase = Phase::Idle;
        }
        if !task.settled() {
            self.tell_poll(slot, None, "dropped by the abort");
            self.settle_abort(slot, task.abort);
        }
        self.slab.sweep(slot);
    }

    /// A poll whose answer nobody sees, in the fingerprint.
    pub(super) fn mark_dropped(&mut self, slot: u32, seen: u64) {
        let task = &self.slab.tasks[slot as usize];
        self.fingerprint = self.fingerprint.wrapping_add(mark(task, seen, 3));
    }

    /// The policy decides at `at`, and the next poll is sent or the loop ends.
    ///
    /// `PLAIN` says that the task's path is known to be plain, for speed.
    #[inline]
    pub(super) fn decide<const PLAIN: bool>(
        &mut self,
        slot: u32,
        at: u64,
        saw: Saw,
        hint: Option<RawHint>,
        retry_after: u64,
    ) {
        let model = self.model;
        let task = &mut self.slab.tasks[slot as usize];
        let policy = policy(model, task.class);
        let mut polls = task.polls;
        if !PLAIN && task.coupled() {
            polls -= self.loops[slot as usize].uncounted;
        }
        if polls >= policy.max_polls {
            return self.give_up(slot, at, "gave up after its last poll");
        }
        let bits = if policy.jitter.draws() {
            task.key.draw(Purpose::Jitter, u64::from(task.polls))
        } else {
            0
        };
        let waits = model.pairs[task.pair as usize].waits.as_ref();
        let waits = waits.filter(|waits| {
            matches!(saw, Saw::Unchanged(_)) && !task.traced && waits.holds(&task.state)
        });
        let mut decision = match waits {
            Some(waits) => {
                let wait = waits.decide(&task.state, bits);
                task.state.note(wait);
                Decision::Wait(wait.into())
            }
            None => policy.decide(&mut task.state, saw, bits),
        };
        if !PLAIN && retry_after < u64::MAX {
            let good = !matches!(saw, Saw::Error | Saw::TimedOut | Saw::SlowDown);
            decision = policy.obey(&mut task.state, decision, retry_after, good);
        }
        match decision {
            Decision::End(end) => {
                let (why, cancels) = match end {
                    LoopEnd::Rejected => ("answer rejected", policy.cancels.at_error),
                    LoopEnd::Error => ("error", policy.cancels.at_error),
                    LoopEnd::Question => ("a question left open", policy.cancels.at_question),
                };
                self.tell(slot, at, 6, "loop ended", || why.into());
                self.end_of_its_own(slot, at, Final::LoopError, cancels);
            }
            Decision::AwaitResult => {
                self.loops[slot as usize].awaits_result = true;
                self.tell(slot, at, 6, "asks for the result", String::new);
                self.sleep(slot, at, at, at);
            }
            Decision::Wait(mut wait) => {
                if policy.last_wait != LastWait::Slept
                    && policy.fixed_delay
                    && !self.trims(slot, at, &mut wait)
                {
                    return self.give_up(slot, at, REFUSED);
                }
                let task = &self.slab.tasks[slot as usize];
                // A first poll at once is no wait, nor is one that follows a question at once.
                let at_once =
                    matches!(wait.cause, Stage::FirstPoll | Stage::Question) && wait.wait == 0;
                if model.observed(at) && !at_once {
                    let pair = &mut self.pairs[task.pair as usize];
                    if wait.wait < FOREVER {
                        pair.interval.record(wait.wait);
                    }
                    pair.causes[wait.cause as usize] += 1;
                    let combined = wait.touched as usize & ((1 << Stage::COMBINED) - 1);
                    pair.masks[combined] += 1;
                }
                if task.traced {
                    self.tell_wait(slot, at, hint, wait);
                }
                let late = if at_once { 0 } else { policy.timer.overhead };
                self.wait::<PLAIN>(slot, at, policy, wait.wait, late);
            }
        }
    }

    /// Cuts a wait that does not fit the loop's deadline; `false` where the host does not begin it.
    fn trims(&self, slot: u32, from: u64, wait: &mut Wait) -> bool {
        let class = self.slab.tasks[slot as usize].class;
        let policy = policy(self.model, class);
        let late = policy.timer.overhead;
        let next = from.saturating_add(wait.wait).saturating_add(late);
        let fits = policy.next_poll(from, next, self.gives_up_at(slot));
        if let Some(cut) = fits.filter(|cut| *cut < next) {
            wait.wait = (cut - from).saturating_sub(late);
        }
        fits.is_some()
    }

    /// The host sleeps from `from` on, and polls unless the loop ends before.
    #[inline]
    fn wait<const PLAIN: bool>(
        &mut self,
        slot: u32,
        from: u64,
        policy: &Policy,
        wait: u64,
        late: u64,
    ) {
        let task = &self.slab.tasks[slot as usize];
        let (next, tick) = match policy.fixed_delay {
            _ if wait >= FOREVER => (u64::MAX, 0),
            true => (from.saturating_add(wait).saturating_add(late), 0),
            false => next_tick(task.tick, from, wait, late),
        };
        if !PLAIN && task.coupled() {
            return self.sleep(slot, from, next, tick);
        }
        let deadline = self.gives_up_at(slot);
        let Some(next) = policy.next_poll(from, next, deadline) else {
            return self.give_up(slot, from, REFUSED);
        };
        let task = &self.slab.tasks[slot as usize];
        if task.abort < next && task.abort <= deadline {
            let abort = task.abort;
            match policy.manner {
                WaitManner::Interruptible => return self.settle_abort(slot, abort),
                WaitManner::CheckedAfterSleep if next.min(deadline) < u64::MAX => {
                    return self.settle_abort(slot, next.min(deadline));
                }
                WaitManner::Sliced(slice) => {
                    let look =
                        from.saturating_add(((abort - from) / slice + 1).saturating_mul(slice));
                    return self.settle_abort(slot, look.min(next).min(deadline));
                }
                // Nobody looks, or the sleep has no end to look at.
                WaitManner::CheckedAfterSleep | WaitManner::Ignored => {}
            }
        }
        if next > deadline {
            if deadline > self.model.stop {
                return;
            }
            return self.give_up(slot, deadline.max(from), "gave up at its deadline");
        }
        if next == u64::MAX {
            self.tell(slot, from, 6, "loop ended", || "waits for ever".into());
            return self.end_loop(slot, u64::MAX, Final::NeverPolledAgain);
        }
        if next <= self.model.stop {
            self.send::<PLAIN>(slot, next, tick);
        }
    }

    /// A poll is sent at `next`.
    #[inline]
    pub(super) fn send<const PLAIN: bool>(&mut self, slot: u32, next: u64, tick: u64) {
        let model = self.model;
        let task = &mut self.slab.tasks[slot as usize];
        let gap = next - task.sent;
        let leaked = next > task.abort;
        let requests = if PLAIN || !task.coupled() {
            1
        } else {
            self.loops[slot as usize].rides = false;
            model.carriers[model.tenants[task.class as usize].policy].requests_per_poll
        };
        let pair = &mut self.pairs[task.pair as usize];
        if next < model.horizon {
            pair.windows[(next / WINDOW) as usize] += requests;
        }
        if model.observed(next) {
            pair.sent += u64::from(requests);
            self.members[task.member as usize].polls += u64::from(requests);
            if leaked {
                pair.leaked += u64::from(requests);
            }
            // The first poll of a double follows no other of its loop.
            let follows = PLAIN || !task.coupled() || {
                let state = &self.loops[slot as usize];
                // Who asks for the result polls no more.
                task.sent >= state.born && !state.awaits_result
            };
            if task.polls > 0 && follows {
                pair.gap.record(gap);
            }
        }
        task.at_once = if gap == 0 { task.at_once + 1 } else { 0 };
        task.polls += 1;
        task.sent = next;
        task.tick = tick;
        task.leaked += u32::from(leaked);
        self.totals.sent += u64::from(requests);
        if task.at_once >= POLLS_AT_ONE_INSTANT {
            let at = task.sent;
            return self.fail_without_time(slot, at, "polls of one task");
        }
        let out = delay(model, task, Purpose::DelayOut, u64::from(task.polls));
        let (arrival, coupled) = (next.saturating_add(out), task.coupled());
        self.push_task_event(
            slot,
            arrival,
            if out == 0 { Step::Sends } else { Step::Arrives },
            Kind::Poll,
        );
        if !PLAIN && coupled {
            self.on_its_way(slot, arrival);
        } else {
            self.drop_request_before(slot, arrival);
        }
    }

    /// An abort that drops the poll in flight before its next event at `event`: what it causes may lie before that event, and
    /// must be told now.
    #[inline]
    pub(super) fn drop_request_before(&mut self, slot: u32, event: u64) {
        let task = &self.slab.tasks[slot as usize];
        let comes = task.abort < event && task.abort <= self.model.stop && !task.settled();
        if comes && aborts_requests(self.model, task.class) {
            let abort = task.abort;
            self.tell_poll(slot, None, "dropped by the abort");
            self.settle_abort(slot, abort);
        }
    }

    #[cold]
    pub(super) fn fail_without_time(&mut self, slot: u32, at: u64, what: &'static str) {
        let task = &self.slab.tasks[slot as usize];
        let tenant = &self.model.tenants[task.class as usize];
        self.failed = Some(RunError::NoTime {
            what,
            tenant: tenant.name.clone(),
            server: self.model.servers[task.server_class as usize].name.clone(),
            policy: self.model.policies[tenant.policy].name.clone(),
            at_s: seconds(at),
        });
    }
}

/// The server class and the server of the task whose draws have the root `key`.
pub(super) fn server_of(model: &Model, class: u16, key: Key) -> (u16, u32) {
    let tenant = &model.tenants[class as usize];
    let server_class = match tenant.server_classes[..] {
        [only] => only,
        ref several => {
            let u = unit(key.draw(Purpose::ServerClass, 0));
            several[pick(&tenant.server_shares, u)]
        }
    };
    let servers = &model.servers[server_class as usize];
    let u = unit(key.draw(Purpose::Server, 0));
    let server = servers.first + (u * f64::from(servers.count)) as u32;
    (server_class, server)
}

/// The policy that the hosts of a tenant class follow.
#[inline]
pub(super) fn policy(model: &Model, class: u16) -> &Policy {
    &model.policies[model.tenants[class as usize].policy]
}

/// Does an abort drop a poll in flight, so that control returns at once?
pub(super) fn aborts_requests(model: &Model, class: u16) -> bool {
    let waits = model.tenants[class as usize]
        .abort
        .as_ref()
        .is_some_and(|a| a.waits_for_request);
    !waits && policy(model, class).manner != WaitManner::Ignored
}

/// What the policy of a host sees in a status that is not the end.
pub(super) fn saw_status(hint: RawHint, asks: bool, changed: bool) -> Saw {
    match (asks, changed) {
        (true, new) => Saw::Asks { hint, new },
        (false, true) => Saw::Changed(hint),
        (false, false) => Saw::Unchanged(hint),
    }
}

/// Why a loop ends before its deadline.
pub(super) const REFUSED: &str = "gave up: the next wait does not fit its deadline";

/// A poll's part of the fingerprint.
#[inline]
pub(super) fn mark(task: &Task, seen: u64, outcome: u64) -> u64 {
    let poll = u64::from(task.polls) << 2 | outcome;
    let what = task.key.0 ^ poll.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let when = task.sent.wrapping_mul(0xD134_2543_DE82_EF95) ^ seen.rotate_left(32);
    mix(what.wrapping_add(when))
}

/// The next tick of a loop at a fixed rate, and the tick it counts from: the tick that fell due while a poll was in flight fires
/// at once, further ones are dropped.
fn next_tick(last: u64, from: u64, every: u64, late: u64) -> (u64, u64) {
    let due = last.saturating_add(every);
    if due >= from || every == 0 {
        let due = due.max(from);
        // The timer fires late, but the grid does not move.
        return (due.saturating_add(late), due);
    }
    (from, from - (from - last) % every)
}
