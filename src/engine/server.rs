//! What happens at a server: requests arrive, are served, and read the state; tasks are executed, in turn where that is limited.

use super::Simulation;
use super::queue::{Event, Kind, Step, order};
use super::station::Served;
use super::task::{Outcome, Task};
use crate::metrics::tally::WINDOW;
use crate::model::{HintSource, Model};
use crate::policy::RawHint;
use crate::random::Purpose;

/// The answer to a poll.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// The task has ended.
    Ended,
    /// It goes on; the hint as on the wire.
    Working(RawHint),
    /// The queue was full: 503.
    Refused,
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
        let order = order(step, task.member, task.ordinal);
        self.queue.push(Event {
            time,
            order,
            kind,
            class: task.class,
            slot,
        });
    }

    /// A poll comes to its server.
    #[inline]
    pub(super) fn poll_arrives(&mut self, slot: u32) {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        let (index, observed) = (u64::from(task.polls), model.observed(task.sent));
        let pair = task.pair as usize;
        let class = &model.servers[task.server_class as usize];
        let service = class
            .service
            .draw(|| task.key.draw(Purpose::Service, index));
        let served = match self.serve(slot, service) {
            Ok(served) => served,
            Err(found) => {
                if observed {
                    self.pairs[pair].refused += 1;
                    self.pairs[pair].queue_length.record(found);
                }
                let task = &self.slab.tasks[slot as usize];
                let back = delay(model, task, Purpose::DelayBack, index);
                return self.answer_comes(slot, self.now + back, Answer::Refused);
            }
        };
        if observed {
            let pair = &mut self.pairs[pair];
            pair.accepted += 1;
            if served.start == self.now && class.service.as_constant().is_some() {
                // The commonest case, told by a count.
                pair.idle += 1;
            } else {
                pair.store_wait.record(served.start - self.now);
                pair.store_service.record(service);
                pair.store_latency.record(served.done - self.now);
                pair.queue_length.record(served.found);
            }
        }
        if class.reads_late() {
            self.push_task_event(slot, served.done, Step::Reads, Kind::Served);
            self.slab.tasks[slot as usize].holds -= 1;
            self.drop_request_before(slot, served.done);
        } else {
            self.read(slot, served.done);
        }
    }

    /// The state is read at the end of service, and the answer goes back.
    #[inline]
    pub(super) fn read(&mut self, slot: u32, done: u64) {
        let task = &self.slab.tasks[slot as usize];
        let index = u64::from(task.polls);
        let back = delay(self.model, task, Purpose::DelayBack, index);
        let answer = if task.end <= done {
            Answer::Ended
        } else {
            Answer::Working(self.hint(slot, index, done))
        };
        self.answer_comes(slot, done.saturating_add(back), answer);
    }

    /// The hint in answer number `index`, given at `at`.
    #[inline]
    pub(super) fn hint(&mut self, slot: u32, index: u64, at: u64) -> RawHint {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        match &model.servers[task.server_class as usize].hint {
            HintSource::Constant(hint) => *hint,
            HintSource::PerTask(_) => task.hint(),
            HintSource::PerAnswer(mix) => mix.hint(task.key.draw(Purpose::HintPart, index), || {
                task.key.draw(Purpose::HintValue, index)
            }),
            HintSource::ByAge(steps) => steps.hint(at.saturating_sub(task.created) as f64, || {
                task.key.draw(Purpose::HintValue, index)
            }),
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
                steps.hint(progress, || task.key.draw(Purpose::HintValue, index))
            }
            HintSource::ByLoad(steps) => {
                let load = self.stations[task.server as usize].unfinished(self.now);
                steps.hint(load as f64, || task.key.draw(Purpose::HintValue, index))
            }
        }
    }

    /// Hands a request to the task's server; refused, it gives how many it found waiting.
    #[inline]
    fn serve(&mut self, slot: u32, service: u64) -> Result<Served, u64> {
        let model = self.model;
        let task = &self.slab.tasks[slot as usize];
        let limit = model.servers[task.server_class as usize].queue_limit;
        let served = self.stations[task.server as usize].serve(self.now, service, limit)?;
        let tally = &mut self.server_tallies[task.server_class as usize];
        tally.busy_ns += u128::from(model.observed_part(served.start, served.done));
        if served.start > self.now {
            tally.waiting_ns += u128::from(model.observed_part(self.now, served.start));
            spread(&mut tally.waiting, self.now, served.start);
        }
        Ok(served)
    }

    /// A request for the result: through the same queue, no poll.
    pub(super) fn result_arrives(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        if let Ok(served) = self.serve(slot, service(self.model, &task, RESULT)) {
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
    pub(super) fn cancel_arrives(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        match self.serve(slot, service(self.model, &task, CANCEL)) {
            Ok(served) if self.model.servers[task.server_class as usize].limits_execution() => {
                self.push_task_event(slot, served.done, Step::Reads, Kind::Cancelled);
            }
            Ok(served) if task.end > served.done => {
                if let HintSource::ByLoad(_) = self.model.servers[task.server_class as usize].hint {
                    self.stations[task.server as usize].end_early(task.end, served.done);
                }
                let task = &mut self.slab.tasks[slot as usize];
                (task.end, task.outcome) = (served.done, Outcome::Cancelled);
                self.tell(slot, served.done, 0, "terminal", || "cancelled".into());
            }
            // It had ended before, or the request was refused and it goes on.
            _ if !self.model.servers[task.server_class as usize].limits_execution() => {
                self.tell(slot, task.end, 0, "terminal", || {
                    task.outcome.status().into()
                });
            }
            _ => {}
        }
        self.slab.release(slot);
    }

    /// A task is created at a server that limits how many it executes.
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
        let end = self.now.saturating_add(duration(self.model, &task));
        self.slab.tasks[slot as usize].end = end;
        self.push_task_event(slot, end, Step::Ends, Kind::TaskEnd);
    }

    /// A task ends at such a server, and the next one starts.
    pub(super) fn task_ends(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        // A task that was cancelled before has another end, and has given its place away already.
        if task.end == self.now {
            self.pairs[task.pair as usize].unseen += u64::from(task.ends_unseen);
            self.tell(slot, self.now, 0, "terminal", || {
                task.outcome.status().into()
            });
            self.leave_server(task.server);
        }
        self.slab.release(slot);
    }

    /// A `tasks/cancel` has been served at such a server.
    pub(super) fn cancelled(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        if task.end > self.now {
            let waiting = task.end == u64::MAX;
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

/// A one-way delay.
#[inline]
pub(super) fn delay(model: &Model, task: &Task, purpose: Purpose, index: u64) -> u64 {
    model.servers[task.server_class as usize]
        .delay
        .draw(|| task.key.draw(purpose, index))
}

/// A service time.
fn service(model: &Model, task: &Task, index: u64) -> u64 {
    model.servers[task.server_class as usize]
        .service
        .draw(|| task.key.draw(Purpose::Service, index))
}

/// How long the task runs: drawn again rather than kept.
pub(super) fn duration(model: &Model, task: &Task) -> u64 {
    model.tenants[task.class as usize]
        .duration
        .draw(|| task.key.draw(Purpose::Duration, 0))
}

/// Adds the part of [from, to) in each window to that window.
fn spread(windows: &mut [u64], from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let window = at / WINDOW;
        let end = ((window + 1) * WINDOW).min(to);
        match windows.get_mut(window as usize) {
            Some(cell) => *cell += end - at,
            None => return,
        }
        at = end;
    }
}
