//! What happens at a server: requests arrive, are served, and read the state; tasks are executed, in turn where that is limited.

use super::Simulation;
use super::coupled::Phase;
use super::queue::{Event, Kind, Line, Step, order};
use super::station::Served;
use super::task::{Life, Outcome, Path, Task};
use crate::metrics::tally::Failure;
use crate::model::{HintSource, Model, RetryAfter};
use crate::policy::RawHint;
use crate::random::Purpose;

/// The answer to a poll.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// The task has ended.
    Ended,
    /// It goes on; the hint as on the wire.
    Working(RawHint),
    /// It waits for input; the hint as on the wire.
    Asks(RawHint),
    /// An error, and `Retry-After` in ns; [`u64::MAX`] where it has none. A timeout stands for an answer that did not come.
    Failed(Failure, u64),
}

/// Draws of requests other than polls have indices beyond those of polls.
const RESULT: u64 = 1 << 33;
const CANCEL: u64 = 1 << 34;

impl Simulation<'_> {
    /// Pushes an event of a task, which from now on refers to its slot.
    #[inline]
    pub(super) fn push_task_event(&mut self, slot: u32, time: u64, step: Step, kind: Kind) {
        let task = &mut self.slab.tasks[slot as usize];
        task.holds += 1;
        let event = Event::new(
            time,
            order(step, task.member, task.ordinal),
            kind,
            task.polls as u16,
            slot,
        );
        match kind {
            Kind::Poll if task.coupled() => self.queue.line_up(Line::Polls, event),
            Kind::Answer => self.queue.line_up(Line::Answers, event),
            _ => self.queue.push(event),
        }
    }

    /// A poll comes to its server; `flight` are the low bits of its number.
    #[inline]
    pub(super) fn poll_arrives(&mut self, slot: u32, flight: u16) {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        if task.path != Path::Plain {
            return self.arrives_on_its_path(slot, flight);
        }
        let (index, observed) = (u64::from(task.polls), model.observed(task.sent));
        let pair = task.pair as usize;
        let class = &model.servers[task.server_class as usize];
        let service = class
            .service
            .draw(|| task.key.draw(Purpose::Service, index));
        match self.serve(slot, service) {
            Ok(served) => {
                self.count_served(slot, served, service, observed);
                if class.reads_late() {
                    self.slab.tasks[slot as usize].holds -= 1;
                    self.push_task_event(slot, served.done, Step::Reads, Kind::Served);
                    self.drop_request_before(slot, served.done);
                } else {
                    self.answer_now(slot, served.done);
                }
            }
            Err(found) => {
                if observed {
                    self.pairs[pair].queue_length.record(found);
                }
                self.refuse(slot, Failure::QueueFull, u64::MAX);
            }
        }
    }

    /// A poll that is not plain comes to its server.
    #[inline(never)]
    fn arrives_on_its_path(&mut self, slot: u32, flight: u16) {
        let task = &self.slab.tasks[slot as usize];
        if task.coupled() && !self.awaits(slot, flight) {
            self.forget_riders(slot, flight);
            self.arrives_too_late(slot);
        } else {
            self.arrives_guarded(slot);
        }
    }

    /// Counts a poll that its server has taken.
    #[inline(always)]
    pub(super) fn count_served(&mut self, slot: u32, served: Served, service: u64, observed: bool) {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        let class = &model.servers[task.server_class as usize];
        if observed {
            let constant = class.service.as_constant() == Some(service);
            self.pairs[task.pair as usize].count_served(self.now, served, service, constant);
        }
    }

    /// The service of a poll that is not plain ends at `done`, where the state is read: now, where nothing can change until then.
    pub(super) fn read_in_time(&mut self, slot: u32, done: u64) {
        let task = &self.slab.tasks[slot as usize];
        let (coupled, class) = (task.coupled(), task.class as usize);
        let late = self.model.servers[task.server_class as usize].reads_late();
        if coupled && done > self.times_out_at(slot) {
            // Whatever the answer will be, it comes too late.
            return self.answer_comes(slot, u64::MAX, Answer::Ended);
        }
        let tenant = &self.model.tenants[class];
        let may_change =
            coupled && (tenant.input.is_some() || self.model.carriers[tenant.policy].hold > 0);
        if !late && !may_change {
            return self.read_guarded(slot, done);
        }
        self.slab.tasks[slot as usize].holds -= 1;
        self.push_task_event(slot, done, Step::Reads, Kind::Served);
        if !coupled {
            self.drop_request_before(slot, done);
        }
    }

    /// A poll is refused, with `Retry-After` in `after` ns; [`u64::MAX`] where there is none.
    pub(super) fn refuse(&mut self, slot: u32, failure: Failure, after: u64) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        let index = u64::from(task.polls);
        if model.observed(task.sent) {
            let requests = self.requests_of(slot);
            let pair = &mut self.pairs[task.pair as usize];
            pair.refused += requests;
            pair.failures[failure as usize] += requests;
        }
        let after = match &model.servers[task.server_class as usize].retry_after {
            RetryAfter::After(time) => time.draw(|| task.key.draw(Purpose::RetryAfter, index)),
            RetryAfter::UntilAllowed => after,
            RetryAfter::Absent => u64::MAX,
        };
        let back = delay(model, &task, Purpose::DelayBack, index);
        self.answer_comes(
            slot,
            self.now.saturating_add(back),
            Answer::Failed(failure, after),
        );
    }

    /// The service of a poll ends at an event of its own: the state is read, and the answer goes back.
    pub(super) fn served(&mut self, slot: u32, flight: u16) {
        let task = &self.slab.tasks[slot as usize];
        match task.path {
            Path::Plain => self.answer_now(slot, self.now),
            Path::Coupled if !self.awaits(slot, flight) => self.slab.release(slot),
            Path::Guarded | Path::Coupled => self.read_guarded(slot, self.now),
        }
    }

    /// The answer to a poll, as the task stands at `done`, goes back.
    #[inline(always)]
    pub(super) fn answer_now(&mut self, slot: u32, done: u64) {
        let task = &self.slab.tasks[slot as usize];
        let index = u64::from(task.polls);
        let back = delay(self.model, task, Purpose::DelayBack, index);
        if task.coupled() {
            self.loops[slot as usize].read_at = done;
        }
        let answer = self.status_at(slot, done);
        self.answer_comes(slot, done.saturating_add(back), answer);
    }

    /// What an answer says of a task whose state is read at `done`.
    #[inline]
    pub(super) fn status_at(&mut self, slot: u32, done: u64) -> Answer {
        let task = &self.slab.tasks[slot as usize];
        let index = u64::from(task.polls);
        let (end, asks) = match task.path {
            Path::Plain | Path::Guarded => (task.end, false),
            Path::Coupled => self.end_and_question(slot, done),
        };
        if end <= done {
            Answer::Ended
        } else if asks {
            Answer::Asks(self.hint(slot, index, done))
        } else {
            Answer::Working(self.hint(slot, index, done))
        }
    }

    /// The hint in answer number `index`, given at `at`.
    #[inline]
    pub(super) fn hint(&mut self, slot: u32, index: u64, at: u64) -> RawHint {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        if let HintSource::ByLoad(steps) = &model.servers[task.server_class as usize].hint {
            let load = self.stations[task.server as usize].unfinished(self.now);
            return steps.hint(load as f64, || task.key.draw(Purpose::HintValue, index));
        }
        hint_of(model, task, index, at)
    }

    /// Hands a request to the task's server; refused, it gives how many it found waiting.
    #[inline]
    pub(super) fn serve(&mut self, slot: u32, service: u64) -> Result<Served, u64> {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        let (server, class) = (task.server as usize, task.server_class as usize);
        if model.servers[class].is_instant() {
            return Ok(Served::at_once(self.now));
        }
        let limit = model.servers[class].queue_limit;
        let served = self.stations[server].serve(self.now, service, limit)?;
        let (mut start, mut done) = (served.start, served.done);
        if model.servers[class].outage.is_some()
            && let Some(broke) = self.breaks_within(slot, self.now, done)
        {
            // A server that goes down works on it no longer.
            (start, done) = (start.min(broke), done.min(broke));
        }
        let worked = Served {
            start,
            done,
            ..served
        };
        self.stations[server].busy_ns += model.observed_part(worked.start, worked.done);
        self.server_tallies[class].count_waiting(model, self.now, worked);
        Ok(served)
    }

    /// A request for the result: through the same queue, no poll.
    #[inline(never)]
    pub(super) fn result_arrives(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        if let Ok(served) = self.serve_other(slot, RESULT) {
            let held =
                served
                    .done
                    .saturating_add(delay(self.model, &task, Purpose::DelayBack, RESULT));
            if held <= self.model.stop {
                if task.counted {
                    let pair = &mut self.pairs[task.pair as usize];
                    pair.result.record(held - task.end);
                    pair.results_missing -= 1;
                }
                self.tell(slot, held, 7, "result held", String::new);
            }
        }
        self.slab.release(slot);
    }

    /// Sends `tasks/result` at `at`.
    pub(super) fn send_result(&mut self, slot: u32, at: u64) {
        let task = self.slab.tasks[slot as usize];
        if self.model.observed(at) {
            self.pairs[task.pair as usize].results += 1;
        }
        self.pairs[task.pair as usize].results_missing += u64::from(task.counted);
        let out = delay(self.model, &task, Purpose::DelayOut, RESULT);
        self.push_task_event(
            slot,
            at.saturating_add(out),
            if out == 0 { Step::Seen } else { Step::Arrives },
            Kind::Result,
        );
    }

    /// Sends `tasks/cancel` at `at`.
    pub(super) fn send_cancel(&mut self, slot: u32, at: u64) {
        let task = self.slab.tasks[slot as usize];
        if self.model.observed(at) {
            self.pairs[task.pair as usize].cancels += 1;
        }
        let out = delay(self.model, &task, Purpose::DelayOut, CANCEL);
        self.push_task_event(
            slot,
            at.saturating_add(out),
            if out == 0 {
                Step::Aborts
            } else {
                Step::Arrives
            },
            Kind::Cancel,
        );
    }

    /// A `tasks/cancel` comes; the task is cancelled when it has been served.
    #[inline(never)]
    pub(super) fn cancel_arrives(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        let limits = self.model.servers[task.server_class as usize].limits_execution();
        let down = self.is_down(slot, self.now);
        let served = self.serve_other(slot, CANCEL);
        let server = &self.model.servers[task.server_class as usize];
        let silent = server.outage.as_ref().is_some_and(|o| o.silent);
        if !(down && silent) {
            let answered = served.map_or(self.now, |s| s.done);
            self.cancel_answered(slot, answered);
        }
        match served {
            Ok(served) if limits => {
                self.push_task_event(slot, served.done, Step::Reads, Kind::Cancelled);
            }
            Ok(served) if task.end > served.done => {
                if let HintSource::ByLoad(_) = self.model.servers[task.server_class as usize].hint {
                    self.stations[task.server as usize].end_early(task.end, served.done);
                }
                let task = &mut self.slab.tasks[slot as usize];
                (task.end, task.outcome) = (served.done, Outcome::Cancelled);
                self.tell(slot, served.done, 0, "terminal", || "cancelled".into());
                self.something_changes(slot, served.done);
            }
            // It had ended before, or the request was refused and it goes on.
            _ => {
                if served.is_err() {
                    self.pairs[task.pair as usize].orphans += u64::from(task.counted);
                }
                if !limits {
                    self.tell(slot, task.end, 0, "terminal", || {
                        task.outcome.status().into()
                    });
                }
            }
        }
        self.slab.release(slot);
    }

    /// The answer to a `tasks/cancel` leaves at `done`: a caller who waits for it has control when it comes.
    fn cancel_answered(&mut self, slot: u32, done: u64) {
        let task = self.slab.tasks[slot as usize];
        if task.coupled() && self.loops[slot as usize].phase == Phase::Cancelling {
            let back = delay(self.model, &task, Purpose::DelayBack, CANCEL);
            let seen = done.saturating_add(back);
            let state = &mut self.loops[slot as usize];
            state.settles_at = state.settles_at.min(seen);
            if seen <= self.model.stop {
                self.push_task_event(slot, seen, Step::Seen, Kind::Settle);
            }
        }
    }

    /// A task is created at a server that limits how many it executes.
    #[inline(never)]
    pub(super) fn start_or_wait(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        let limit = self.model.servers[task.server_class as usize].executes;
        let station = &mut self.stations[task.server as usize];
        station.unfinished += 1;
        if station.executing < limit {
            station.executing += 1;
            self.start_task(slot);
            self.slab.release(slot);
        } else {
            // The hold passes from the event to the backlog.
            station.backlog.push_back(slot);
        }
    }

    fn start_task(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        if let Some(before) = self.runs_before_question(slot) {
            // Its end is known when it has its answer.
            return self.begin_question(slot, self.now.saturating_add(before));
        }
        let end = self.now.saturating_add(duration(self.model, &task));
        self.slab.tasks[slot as usize].end = end;
        self.push_task_event(slot, end, Step::Ends, Kind::TaskEnd);
    }

    /// A task ends at such a server, and the next one starts.
    #[inline(never)]
    pub(super) fn task_ends(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        // A task that was cancelled before has another end, and has given its place away already.
        if task.end == self.now {
            let unseen = task.life == Life::SettledUnseen;
            self.pairs[task.pair as usize].unseen += u64::from(unseen);
            self.tell(slot, self.now, 0, "terminal", || {
                task.outcome.status().into()
            });
            self.leave_server(task.server);
            if task.coupled() {
                self.announce(slot, self.now, super::push::END);
                self.something_changes(slot, self.now);
            }
        }
        self.slab.release(slot);
    }

    /// A `tasks/cancel` has been served at such a server.
    #[inline(never)]
    pub(super) fn cancelled(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        if task.end > self.now {
            // A task that asks for input has no end as yet, but has its place.
            let station = &self.stations[task.server as usize];
            let waiting = task.end == u64::MAX && station.backlog.contains(&slot);
            let mine = &mut self.slab.tasks[slot as usize];
            (mine.end, mine.outcome) = (self.now, Outcome::Cancelled);
            self.tell(slot, self.now, 0, "terminal", || "cancelled".into());
            if waiting {
                let station = &mut self.stations[task.server as usize];
                station.unfinished -= 1;
                station.backlog.retain(|waits| *waits != slot);
                self.slab.release(slot);
            } else {
                self.leave_server(task.server);
            }
        }
        self.slab.release(slot);
    }

    /// A place becomes free at a server.
    fn leave_server(&mut self, server: u32) {
        let station = &mut self.stations[server as usize];
        station.unfinished -= 1;
        match station.backlog.pop_front() {
            Some(next) => {
                self.start_task(next);
                self.slab.release(next);
            }
            None => station.executing -= 1,
        }
    }
}

/// The hint in answer number `index` about a task, given at `at`; not that of a server whose hints follow its load.
#[inline]
pub(super) fn hint_of(model: &Model, task: &Task, index: u64, at: u64) -> RawHint {
    let value = || task.key.draw(Purpose::HintValue, index);
    match &model.servers[task.server_class as usize].hint {
        HintSource::Constant(hint) => *hint,
        HintSource::PerTask(..) => task.hint(),
        HintSource::PerAnswer(mix) => mix.hint(task.key.draw(Purpose::HintPart, index), value),
        HintSource::ByAge(steps) => steps.hint(at.saturating_sub(task.created) as f64, value),
        HintSource::ByProgress(steps) => {
            let duration = duration(model, task);
            // A task that waits for its turn has not begun.
            let left = if task.end == u64::MAX {
                duration
            } else {
                task.end.saturating_sub(at)
            };
            let progress = if duration == 0 {
                1.0
            } else {
                1.0 - left as f64 / duration as f64
            };
            steps.hint(progress, value)
        }
        HintSource::ByLoad(_) => RawHint::Absent,
    }
}

/// A one-way delay.
#[inline]
pub(super) fn delay(model: &Model, task: &Task, purpose: Purpose, index: u64) -> u64 {
    model.pairs[task.pair as usize]
        .delay
        .draw(|| task.key.draw(purpose, index))
}

/// How long the task runs: drawn again rather than kept.
pub(super) fn duration(model: &Model, task: &Task) -> u64 {
    model.tenants[task.class as usize]
        .duration
        .draw(|| task.key.draw(Purpose::Duration, 0))
}
