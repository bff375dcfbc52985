//! How loops end: an end is seen, a caller aborts, a policy gives up, or the run stops.

use super::coupled::Phase;
use super::host::policy;
use super::queue::{Kind, Step};
use super::task::{Life, Outcome, Task};
use super::{POLLS_AT_ONE_INSTANT, Simulation};
use crate::metrics::tally::{Final, PairTally};
use crate::model::{Arrivals, Notices, Then};
use crate::random::Purpose;

impl Simulation<'_> {
    /// The host sees the end of a task, in the answer to a poll or (not `polled`) in a notification.
    pub(super) fn end_seen(&mut self, slot: u32, seen: u64, polled: bool) {
        let model = self.model;
        let mut task = self.slab.tasks[slot as usize];
        if task.coupled() {
            task.outcome = self.slab.tasks[self.first_of(slot) as usize].outcome;
        }
        let fetches = policy(model, task.class).fetches_result;
        // Who has asked for the result has it.
        let has_it = task.coupled() && self.loops[slot as usize].has_result;
        let fetches = fetches && task.outcome == Outcome::Completed && !has_it;
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
                self.loops[slot as usize].settles_at = bound;
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
            Notices::PerRequest => u64::from(task.polls) * self.requests_per_poll(task.class) + 1,
        };
    }

    /// The host gives a task up at `at`.
    pub(super) fn give_up(&mut self, slot: u32, at: u64, why: &'static str) {
        let class = self.slab.tasks[slot as usize].class;
        let cancels = policy(self.model, class).cancels.at_deadline;
        self.tell(slot, at, 6, "loop ended", || why.into());
        self.end_of_its_own(slot, at, Final::GaveUp, cancels);
    }

    /// A loop ends of its own accord at `at`, and its host sends `tasks/cancel` where its policy does so.
    pub(super) fn end_of_its_own(&mut self, slot: u32, at: u64, how: Final, cancels: bool) {
        let task = &self.slab.tasks[slot as usize];
        let first = !task.coupled() || self.first_of(slot) == slot;
        let cancels = cancels && first && at <= self.model.stop;
        if cancels {
            self.send_cancel(slot, at);
        }
        self.close_loop(slot, at, how, cancels);
    }

    /// The loop of a task ends at `at`. The caller sweeps the slot where it may be free.
    pub(super) fn end_loop(&mut self, slot: u32, at: u64, how: Final) {
        self.close_loop(slot, at, how, false);
    }

    /// `cancels` says that the host has cancelled the task of its own accord: it leaves no orphan, and wants no end.
    fn close_loop(&mut self, slot: u32, at: u64, how: Final, cancels: bool) {
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
                self.tell(slot, at, 8, "settled", || final_text(how).into());
                let others = [Final::Detached, Final::CancelSent, Final::Forgotten];
                let seen = [Final::Completed, Final::Failed, Final::Cancelled];
                if !others.contains(&how) && !seen.contains(&how) {
                    // Those who see an end or settle an abort do it themselves.
                    self.slab.sweep(slot);
                }
                return;
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
            pair.orphans += u64::from(lost && !cancels);
            pair.polls_per_task.record(u64::from(task.polls));
            pair.streak.record(u64::from(task.streak));
            // A task whose server has not yet said when it ends will end unseen as well.
            let unseen = !seen && task.abort >= at && wanted && !cancels;
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
        if !limits && how != Final::CancelSent && !cancels && task.end < u64::MAX {
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
        let mut from = task.abort;
        if task.coupled() {
            from = from.max(self.loops[slot as usize].born);
        }
        let pair = &mut self.pairs[task.pair as usize];
        pair.leaking.add(from, to);
        pair.leaking_ns += u128::from(self.model.observed_part(from, to));
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
            // A sleeper without a timer, whom a push or a reconnect could have woken, waits for ever.
            let asleep = task.coupled()
                && self.loops[slot as usize].phase == Phase::Sleeping
                && self.loops[slot as usize].timer == u64::MAX;
            let how = if asleep && stop == u64::MAX {
                Final::NeverPolledAgain
            } else {
                Final::Running
            };
            let pair = &mut self.pairs[task.pair as usize];
            pair.finals[how as usize] += 1;
            if how == Final::NeverPolledAgain {
                pair.orphans += 1;
                pair.polls_per_task.record(u64::from(task.polls));
                pair.streak.record(u64::from(task.streak));
            }
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
