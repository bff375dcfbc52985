//! Polls in the middle of a loop, in one go: nearly all polls are.
//!
//! Such a poll is served, finds its task as it was, and is followed by the next one, and nothing stands near that could come between. What it
//! does is what [`super::server`] and [`super::host`] do step by step; whatever else a poll may meet is left to them.

use super::Simulation;
use super::host::mark;
use super::queue::{Event, Kind, Step};
use super::server::hint_of;
use super::station::Served;
use crate::metrics::tally::WINDOW;
use crate::policy::{Decision, FOREVER, RawHint, Saw, SteadyWait};
use crate::random::Purpose;
use crate::scenario::units::LONGEST;

/// Before this instant (36 years) a wait and any three durations can be added to a time.
const CALM: u64 = 1 << 60;
const _: () = assert!(CALM as u128 + FOREVER as u128 + 3 * LONGEST.0 as u128 <= u64::MAX as u128);

/// What became of a poll.
pub(super) enum Stride {
    /// It was served, answered, and followed by the next one, which arrives in this event.
    On(Event),
    /// It was served, and will be read at this instant; the rest is left to be done.
    Served(u64),
    /// Nothing was done: it is none in the middle of a loop.
    Halt,
}

impl Simulation<'_> {
    /// A poll comes to its server.
    #[inline(always)]
    pub(super) fn stride(&mut self, event: Event) -> Stride {
        let (model, now) = (self.model, event.time);
        let task = &mut self.slab.tasks[event.slot() as usize];
        let pair = &model.pairs[task.pair as usize];
        let Some(lane) = &pair.lane else {
            return Stride::Halt;
        };
        let (key, index) = (task.key, u64::from(task.polls));
        if task.polls >= lane.max_polls || !task.polled() || task.traced {
            return Stride::Halt;
        }

        // The server takes it.
        let service = lane.service.draw(|| key.draw(Purpose::Service, index));
        let served = if lane.instant {
            Served::at_once(now)
        } else {
            let station = &mut self.stations[task.server as usize];
            let Ok(served) = station.serve_mostly_idle(now, service, lane.queue_limit) else {
                return Stride::Halt;
            };
            station.busy_ns += model.observed_part(served.start, served.done);
            if served.start > now {
                self.server_tallies[task.server_class as usize].count_waiting(model, now, served);
            }
            served
        };
        let done = served.done;
        let tally = &mut self.pairs[task.pair as usize];
        let observed = model.observed(task.sent);
        if observed {
            let constant = lane.service.as_constant().is_some();
            tally.count_served(now, served, service, constant);
        }
        if task.end <= done || done > CALM {
            return Stride::Served(done);
        }

        // Its answer is seen, the host waits, and sends the next one.
        let (back, out) = match pair.delay.as_constant() {
            Some(delay) => (delay, delay),
            None => (
                pair.delay.draw(|| key.draw(Purpose::DelayBack, index)),
                pair.delay.draw(|| key.draw(Purpose::DelayOut, index + 1)),
            ),
        };
        let seen = done + back;
        let bits = if lane.draws_jitter {
            key.draw(Purpose::Jitter, index)
        } else {
            0
        };
        let mut hint = RawHint::Absent;
        let mut remembered = None;
        let waits = pair.waits.as_ref().filter(|w| w.holds(&task.state));
        let wait = if let Some(waits) = waits {
            waits.decide(&task.state, bits)
        } else {
            hint = hint_of(model, task, index, done);
            let state = remembered.insert(task.state);
            match model.policies[lane.policy].decide(state, Saw::Unchanged(hint), bits) {
                Decision::Wait(wait) => SteadyWait::from(wait),
                Decision::AwaitResult | Decision::End(_) => return Stride::Served(done),
            }
        };
        let next = seen + wait.wait + lane.overhead;
        let arrival = next + out;
        let near = task.created.saturating_add(lane.lifetime);
        let near = near.min(task.abort).min(model.stop);
        if arrival > near || wait.wait >= FOREVER || next == task.sent {
            return Stride::Served(done);
        }

        // All of it has happened; all of it was observed, if the first and the last of it was.
        let inside = observed && arrival < model.horizon;
        task.streak += 1;
        self.fingerprint = self.fingerprint.wrapping_add(mark(task, seen, 0));
        self.totals.seen += 1;
        self.totals.sent += 1;
        if observed {
            tally.count_unchanged(hint, lane.hint.is_some());
        }
        if inside || model.observed(seen) {
            tally.count_wait(wait);
        }
        if inside || next < model.horizon {
            tally.windows[(next / WINDOW) as usize] += 1;
        }
        if inside || model.observed(next) {
            tally.sent += 1;
            tally.gap.record(next - task.sent);
            self.members[task.member as usize].polls += 1;
        }
        task.polls += 1;
        (task.sent, task.at_once) = (next, 0);
        match remembered {
            None => task.state.note(wait),
            Some(state) => task.state = state,
        }
        let step = if out == 0 { Step::Sends } else { Step::Arrives };
        Stride::On(Event::new(
            arrival,
            step.of(event.order),
            Kind::Poll,
            task.polls as u16,
            event.slot(),
        ))
    }
}
