//! What happens at a host: tasks are created, answers are seen, waits are chosen, polls are sent, loops end.

use super::coupled::Phase;
use super::queue::{Event, Kind, Step};
use super::server::{Answer, delay, duration};
use super::task::{Life, Outcome, Path, Task};
use super::trace::{PollRow, WaitRow};
use super::{POLLS_AT_ONE_INSTANT, RunError, Simulation, seconds};
use crate::metrics::tally::{Failure, Final, PairTally, WINDOW};
use crate::model::distribution::pick;
use crate::model::{Arrivals, HintSource, Model, Notices, Then};
use crate::policy::{
    Decision, FOREVER, HintClass, LoopEnd, Policy, RawHint, Saw, Stage, Wait, WaitManner,
};
use crate::random::{Key, Purpose, mix, unit};

impl Simulation<'_> {
    /// A member asks for a task.
    pub(super) fn create(&mut self, event: Event) {
        let model = self.model;
        let (class, member) = (event.tag, event.slot);
        let tenant = &model.tenants[class as usize];
        let shutdown = tenant.abort.as_ref().and_then(|a| a.shutdown_at);
        if shutdown.is_some_and(|at| at <= event.time) {
            // A host that was shut down asks for nothing more.
            return;
        }
        let ordinal = self.members[member as usize].created;
        self.members[member as usize].created += 1;
        self.push_next_arrival(class, member, event.time);

        let key = self.member_key(class, member).part(u64::from(ordinal));
        let server_class = match tenant.server_classes[..] {
            [only] => only,
            ref several => {
                several[pick(
                    &tenant.server_shares,
                    unit(key.draw(Purpose::ServerClass, 0)),
                )]
            }
        };
        let servers = &model.servers[server_class as usize];
        let server =
            servers.first + (unit(key.draw(Purpose::Server, 0)) * f64::from(servers.count)) as u32;
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
        if let HintSource::PerTask(mix) = &servers.hint {
            task.set_hint(mix.hint(key.draw(Purpose::HintPart, 0), || {
                key.draw(Purpose::HintValue, 0)
            }));
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
            count_hint(&mut self.pairs[pair as usize], hint);
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
                let saw = if coupled && self.notes_status(slot, asks) {
                    Saw::Changed(hint)
                } else {
                    Saw::Unchanged(hint)
                };
                let status = if asks { "input_required" } else { "working" };
                (saw, Some(hint), status, self.retry_after_on_success(slot))
            }
            Answer::Failed(Failure::UnknownTask, _) if self.unknown_ends(slot) => {
                self.tell_poll(slot, Some(seen), Failure::UnknownTask.text());
                self.end_loop(slot, seen, Final::Expired);
                return self.slab.sweep(slot);
            }
            Answer::Failed(failure, retry_after) => {
                let saw = if failure == Failure::TooSoon {
                    Saw::SlowDown
                } else {
                    Saw::Error
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
        let requests = if PLAIN || !task.coupled() {
            1
        } else {
            let policy = model.tenants[task.class as usize].policy;
            u64::from(model.carriers[policy].requests_per_poll)
        };
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
                    count_hint(pair, hint);
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
        self.totals.dropped += self.requests_per_poll(task.class);
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
            return self.end_loop(slot, at, Final::GaveUp);
        }
        let bits = if policy.jitter.draws() {
            task.key.draw(Purpose::Jitter, u64::from(task.polls))
        } else {
            0
        };
        let mut decision = policy.decide(&mut task.state, saw, bits);
        if !PLAIN && retry_after < u64::MAX {
            let good = !matches!(saw, Saw::Error | Saw::SlowDown);
            decision = policy.obey(&mut task.state, decision, retry_after, good);
        }
        match decision {
            Decision::End(end) => {
                let why = if end == LoopEnd::Rejected {
                    "answer rejected"
                } else {
                    "error"
                };
                self.tell(slot, at, 6, "loop ended", || why.into());
                self.end_loop(slot, at, Final::LoopError);
            }
            Decision::Wait(wait) => {
                // A first poll at once is no wait.
                let at_once = wait.cause == Stage::FirstPoll && wait.wait == 0;
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
        let deadline = match policy.give_up_after {
            FOREVER.. => u64::MAX,
            age => task.created.saturating_add(age),
        };
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
            self.tell(slot, deadline.max(from), 6, "loop ended", || {
                "gave up at its deadline".into()
            });
            return self.end_loop(slot, deadline.max(from), Final::GaveUp);
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
            if task.polls > 0 {
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

    /// The host sees the end of a task, in the answer to a poll or (not `polled`) in a notification.
    pub(super) fn end_seen(&mut self, slot: u32, seen: u64, polled: bool) {
        let model = self.model;
        let mut task = self.slab.tasks[slot as usize];
        if task.coupled() {
            task.outcome = self.slab.tasks[self.first_of(slot) as usize].outcome;
        }
        let fetches = policy(model, task.class).fetches_result;
        let fetches = fetches && task.outcome == Outcome::Completed;
        if task.counted {
            // What a loop on the server sees has still to come to the host.
            let way = if model.carriers[model.tenants[task.class as usize].policy].on_server {
                let index = u64::from(task.polls);
                let delay = &model.servers[task.server_class as usize].delay;
                delay.draw(|| task.key.draw(Purpose::DelayBack, index))
            } else {
                0
            };
            let latency = seen.saturating_add(way) - task.end;
            let pair = &mut self.pairs[task.pair as usize];
            pair.completion.record(latency);
            if !fetches {
                pair.result.record(latency);
            }
        }
        if polled {
            self.tell_poll(slot, Some(seen), task.outcome.status());
        }
        self.end_loop(
            slot,
            seen,
            match task.outcome {
                Outcome::Completed => Final::Completed,
                Outcome::Failed => Final::Failed,
                Outcome::Cancelled => Final::Cancelled,
            },
        );
        if fetches {
            // Settled, but the slot is needed until the result is held.
            self.send_result(slot, seen);
        }
        self.slab.sweep(slot);
    }

    /// An aborted loop ends: control returns to the caller at `at`.
    pub(super) fn settle_abort(&mut self, slot: u32, at: u64) {
        let task = self.slab.tasks[slot as usize];
        if at > self.model.stop {
            return;
        }
        self.tell(slot, task.abort, 5, "abort", String::new);
        let rules = self.model.tenants[task.class as usize].abort.as_ref();
        let then = rules.map_or(Then::Detach, |a| a.then);
        // What an abort sends is sent once for a task, however many loops poll it.
        let first = !task.coupled() || self.first_of(slot) == slot;
        if let Some(rules) = rules
            && first
        {
            self.send_notices(slot, rules.notices, at);
        }
        if then == Then::Cancel && first {
            self.send_cancel(slot, at);
            let bound = rules.map_or(0, |a| a.cancel_bound);
            if self.waits_for_cancel(task.class) {
                self.drop_poll(slot, "dropped by the abort");
                self.leave_queues(slot);
                self.loops[slot as usize].phase = Phase::Cancelling;
                let bound = at.saturating_add(bound);
                if bound <= self.model.stop {
                    self.push_task_event(slot, bound, Step::Aborts, Kind::Settle);
                }
                return;
            }
        }
        let how = match then {
            Then::Detach => Final::Detached,
            Then::Cancel => Final::CancelSent,
            Then::Forget => Final::Forgotten,
        };
        self.end_loop(slot, at, how);
        self.slab.sweep(slot);
    }

    /// Does a caller that aborts wait for the answer to `tasks/cancel`?
    pub(super) fn waits_for_cancel(&self, class: u16) -> bool {
        let rules = self.model.tenants[class as usize].abort.as_ref();
        rules.is_some_and(|a| a.then == Then::Cancel && a.cancel_bound > 0)
    }

    /// `notifications/cancelled` of an abort.
    fn send_notices(&mut self, slot: u32, notices: Notices, at: u64) {
        let task = &self.slab.tasks[slot as usize];
        if !self.model.observed(at) {
            return;
        }
        self.pairs[task.pair as usize].notices_cancelled += match notices {
            Notices::None => 0,
            Notices::One => 1,
            // The creation is a request too.
            Notices::PerRequest => u64::from(task.polls) + 1,
        };
    }

    /// The loop of a task ends at `at`. The caller sweeps the slot where it may be free.
    pub(super) fn end_loop(&mut self, slot: u32, at: u64, how: Final) {
        let model = self.model;
        let task = &mut self.slab.tasks[slot as usize];
        task.life = Life::Settled;
        if task.coupled() {
            self.forgo_question(slot);
        }
        let task = self.slab.tasks[slot as usize];
        let pair = task.pair as usize;
        if task.coupled() {
            self.leave_queues(slot);
            self.leave_host(slot);
            let first = self.first_of(slot);
            if first != slot {
                // Whatever else is counted, the first loop of the task counts.
                self.slab.release(first);
                self.leak(slot, at);
                return self.tell(slot, at, 8, "settled", || final_text(how).into());
            }
        }
        let active = model.observed_part(task.created, at);
        self.pairs[pair].active_ns += u128::from(active);
        let aborted = matches!(how, Final::Detached | Final::CancelSent | Final::Forgotten);
        let wanted = !aborted;
        let seen = matches!(how, Final::Completed | Final::Failed | Final::Cancelled);
        if task.abort < at {
            self.leak(slot, at);
        }
        if task.counted {
            let lost = matches!(
                how,
                Final::GaveUp | Final::LoopError | Final::NeverPolledAgain | Final::Forgotten
            );
            let pair = &mut self.pairs[pair];
            pair.finals[how as usize] += 1;
            pair.orphans += u64::from(lost);
            pair.polls_per_task.record(u64::from(task.polls));
            pair.streak.record(u64::from(task.streak));
            // A task whose server has not yet said when it ends will end unseen as well.
            let unseen = !seen && task.abort >= at && wanted;
            // Where the server has not yet said when the task ends, it is counted when it does.
            if unseen && task.end == u64::MAX {
                self.slab.tasks[slot as usize].life = Life::SettledUnseen;
            }
            pair.unseen += u64::from(unseen && task.end <= model.stop && task.end != u64::MAX);
            if task.abort < at || aborted {
                let returned = self.returns_at(&task, at);
                tally_abort(&mut self.pairs[task.pair as usize], &task, returned);
            }
        }
        let limits = model.servers[task.server_class as usize].limits_execution();
        if !limits && how != Final::CancelSent && task.end < u64::MAX {
            self.tell(slot, task.end, 0, "terminal", || {
                task.outcome.status().into()
            });
        }
        if task.abort < at && wanted {
            self.tell(slot, task.abort, 5, "abort", || "nobody looked".into());
        }
        if at != u64::MAX {
            self.tell(slot, at, 8, "settled", || final_text(how).into());
        }
        if let Arrivals::ClosedLoop { think, .. } = &model.tenants[task.class as usize].arrivals
            && at != u64::MAX
        {
            let key = self.member_key(task.class, task.member);
            let pause = think.draw(|| key.draw(Purpose::Think, u64::from(task.ordinal)));
            let creation = &model.tenants[task.class as usize].creation_delay;
            let asked = task
                .created
                .saturating_sub(creation.draw(|| task.key.draw(Purpose::CreationDelay, 0)));
            let again = at.saturating_add(pause);
            let member = &mut self.members[task.member as usize];
            member.at_once = if again == asked {
                member.at_once + 1
            } else {
                0
            };
            if member.at_once >= POLLS_AT_ONE_INSTANT {
                self.fail_without_time(slot, at, "tasks, each after the end of another,");
            } else {
                let late = aborted || how == Final::GaveUp;
                let step = if late { Step::Aborts } else { Step::Seen };
                self.push_create_in(step, task.class, task.member, again);
            }
        }
        if !seen && wanted {
            self.slab.sweep(slot);
        }
    }

    /// When control returns to a caller whose loop ends at `at`; `None` for never. A loop on the server keeps no caller waiting.
    fn returns_at(&self, task: &Task, at: u64) -> Option<u64> {
        let policy = self.model.tenants[task.class as usize].policy;
        let on_server = self.model.carriers[policy].on_server;
        let at = if on_server { task.abort } else { at };
        (at != u64::MAX).then_some(at)
    }

    /// A loop has run on after its abort, until `to`.
    fn leak(&mut self, slot: u32, to: u64) {
        let task = &self.slab.tasks[slot as usize];
        let pair = &mut self.pairs[task.pair as usize];
        pair.leaking.add(task.abort, to);
        pair.leaking_ns += u128::from(self.model.observed_part(task.abort, to));
    }

    /// Tallies a task that was still being polled when the run stopped.
    pub(super) fn leave_running(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        let model = self.model;
        let stop = model.stop;
        let aborted = task.abort <= stop && task.abort < u64::MAX;
        if aborted {
            self.leak(slot, stop);
        }
        if task.coupled() && self.first_of(slot) != slot {
            return;
        }
        let active = model.observed_part(task.created, stop);
        self.pairs[task.pair as usize].active_ns += u128::from(active);
        if task.counted {
            self.pairs[task.pair as usize].finals[Final::Running as usize] += 1;
            if aborted {
                let returned = self.returns_at(&task, u64::MAX);
                tally_abort(&mut self.pairs[task.pair as usize], &task, returned);
            } else {
                self.pairs[task.pair as usize].unseen +=
                    u64::from(task.end <= stop && task.end < u64::MAX);
            }
        }
        if aborted {
            self.tell(slot, task.abort, 5, "abort", || {
                "not settled when the run stopped".into()
            });
        }
        // A loop that waits for an answer that will not come outlasts a drained run.
        let at = if stop < u64::MAX { stop } else { self.now };
        self.tell(slot, at, 9, "stopped", || {
            "the run stopped while it was polled".into()
        });
    }

    #[cold]
    fn begin_story(&mut self, slot: u32, task: &Task) {
        if let Some(tracer) = &mut self.tracer {
            tracer.subject = Some((
                task.class,
                task.member,
                task.ordinal,
                task.server_class,
                task.server,
            ));
        }
        self.tell(slot, task.created, 0, "created", || "working".into());
    }

    /// Adds a row to the story, if this task's is told.
    #[inline]
    pub(super) fn tell(
        &mut self,
        slot: u32,
        at: u64,
        rank: u8,
        event: &'static str,
        note: impl FnOnce() -> String,
    ) {
        if self.tracer.is_some() && self.slab.tasks[slot as usize].traced {
            self.tell_now(at, rank, event, note());
        }
    }

    #[cold]
    fn tell_now(&mut self, at: u64, rank: u8, event: &'static str, note: String) {
        if let Some(tracer) = &mut self.tracer {
            tracer.tell(at, rank, event, note);
        }
    }

    #[inline]
    pub(super) fn tell_poll(&mut self, slot: u32, seen: Option<u64>, status: &'static str) {
        if self.tracer.is_some() && self.slab.tasks[slot as usize].traced {
            self.tell_poll_now(slot, seen, status);
        }
    }

    #[cold]
    fn tell_poll_now(&mut self, slot: u32, seen: Option<u64>, status: &'static str) {
        let task = &self.slab.tasks[slot as usize];
        let row = PollRow {
            number: task.polls,
            sent: task.sent,
            seen,
            status,
        };
        if let Some(tracer) = &mut self.tracer {
            tracer
                .tell(seen.unwrap_or(task.sent), 3, "poll", String::new())
                .poll = Some(row);
        }
    }

    /// Adds a wait to the row of what it follows: a poll, a notification, a breaker that held a poll back, or the creation.
    #[cold]
    fn tell_wait(&mut self, slot: u32, at: u64, hint: Option<RawHint>, wait: Wait) {
        let polled = self.slab.tasks[slot as usize].polls > 0;
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let event = if polled { "poll" } else { "created" };
        if let Some(row) = tracer
            .rows
            .iter_mut()
            .rev()
            .find(|r| r.at == at && [event, "notification", "held back"].contains(&r.event))
        {
            row.wait = Some(WaitRow { hint, wait });
        }
    }
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

/// A poll's part of the fingerprint.
#[inline]
fn mark(task: &Task, seen: u64, outcome: u64) -> u64 {
    let poll = u64::from(task.polls) << 2 | outcome;
    let what = task.key.0 ^ poll.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let when = task.sent.wrapping_mul(0xD134_2543_DE82_EF95) ^ seen.rotate_left(32);
    mix(what.wrapping_add(when))
}

/// An abort of a counted task, settled at `at` or not at all.
fn tally_abort(pair: &mut PairTally, task: &Task, at: Option<u64>) {
    pair.aborts += 1;
    pair.leaked_per_abort.record(u64::from(task.leaked));
    match at {
        Some(at) => pair.abort.record(at - task.abort),
        None => pair.aborts_unsettled += 1,
    }
}

#[inline]
fn count_hint(pair: &mut PairTally, hint: RawHint) {
    let class = hint.class();
    pair.hints[class as usize] += 1;
    if let RawHint::Number(ms) = hint {
        // Minus zero becomes zero: which of the two is the least would depend on the order of merging.
        let ms = ms + 0.0;
        pair.hint_least = pair.hint_least.min(ms);
        pair.hint_greatest = pair.hint_greatest.max(ms);
        if class == HintClass::Sane {
            pair.sane_hints.record((ms * 1000.0) as u64);
        }
    }
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

fn final_text(how: Final) -> &'static str {
    match how {
        Final::Completed => "completed",
        Final::Failed => "failed",
        Final::Cancelled => "cancelled",
        Final::Detached => "aborted; the id is kept",
        Final::CancelSent => "aborted; tasks/cancel sent",
        Final::GaveUp => "gave up",
        Final::LoopError => "error",
        Final::NeverPolledAgain => "never polled again",
        Final::Running => "running",
        Final::Forgotten => "aborted; the id is lost",
        Final::Expired => "the server does not know the task",
    }
}
