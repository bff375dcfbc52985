//! Polls in the middle of a coupled loop: the three events of a poll that nothing keeps from being sent, served and answered.
//!
//! Each does what [`super::coupled`], [`super::gate`] and [`super::guard`] do step by step. It looks first whether anything stands in the way;
//! if so nothing has happened yet, and the event is left to them.

use super::Simulation;
use super::coupled::Phase;
use super::host::mark;
use super::queue::{Event, Kind, Line, Step};
use super::server::{Answer, hint_of};
use crate::metrics::tally::{Failure, WINDOW};
use crate::policy::{Decision, FOREVER, Saw, SteadyWait};
use crate::random::Purpose;

impl Simulation<'_> {
    /// A timer fires, and the poll is sent. `false`: nothing has happened.
    #[inline(always)]
    pub(super) fn sends_steadily(&mut self, event: Event) -> bool {
        let (model, now) = (self.model, event.time);
        let (task, state) = (
            &mut self.slab.tasks[event.slot() as usize],
            &mut self.loops[event.slot() as usize],
        );
        let pair = &model.pairs[task.pair as usize];
        let Some(lane) = &pair.coupled_lane else {
            return false;
        };
        let sleeps = task.polled() && state.phase == Phase::Sleeping && state.timer == now;
        let out = (pair.delay).draw(|| task.key.draw(Purpose::DelayOut, u64::from(task.polls) + 1));
        let arrival = now.saturating_add(out);
        if !sleeps
            || task.abort < now
            || state.attempt > 0
            || now == task.sent
            || state.ready == now
            || out > lane.timeout
            || !self.waiting_riders.is_empty()
        {
            return false;
        }
        if state.breaker < u32::MAX && !self.breakers[state.breaker as usize].is_closed() {
            return false;
        }
        if !self.gates.let_pass(task, state, now) {
            return false;
        }

        // It has passed every gate.
        if state.breaker < u32::MAX {
            state.openings = self.breakers[state.breaker as usize].openings;
        }
        (state.turns, state.ready, state.timer) = (0, now, u64::MAX);
        (state.phase, state.rides, state.instant) = (Phase::InFlight, false, false);
        let tally = &mut self.pairs[task.pair as usize];
        if model.observed(now) {
            if model.budget.is_some() || state.connection < u32::MAX {
                tally.budget_delay.record(0);
            }
            tally.sent += 1;
            self.members[task.member as usize].polls += 1;
            if task.polls > 0 {
                tally.gap.record(now - task.sent);
            }
        }
        if now < model.horizon {
            tally.windows[(now / WINDOW) as usize] += 1;
        }
        task.polls += 1;
        (task.at_once, task.sent, task.tick) = (0, now, state.tick);
        self.totals.sent += 1;
        state.flight = task.polls as u16;
        let step = if out == 0 { Step::Sends } else { Step::Arrives };
        let arrives = Event::new(
            arrival,
            step.of(event.order),
            Kind::Poll,
            state.flight,
            event.slot(),
        );
        self.queue.line_up(Line::Polls, arrives);
        true
    }

    /// A poll arrives, is served, finds its task as it was, and the answer is on its way. `false`: nothing has happened.
    #[inline(always)]
    pub(super) fn is_served_steadily(&mut self, event: Event) -> bool {
        let (model, now) = (self.model, event.time);
        let task = &self.slab.tasks[event.slot() as usize];
        let pair = &model.pairs[task.pair as usize];
        let Some(lane) = &pair.coupled_lane else {
            return false;
        };
        let state = &self.loops[event.slot() as usize];
        let awaits = state.phase == Phase::InFlight && state.flight == event.tag();
        if !awaits || !task.polled() || !self.riders.is_empty() {
            return false;
        }
        let server = &model.servers[task.server_class as usize];
        if !server.limits.is_empty() && self.guards.count(model, task, now).is_some() {
            return false;
        }

        // The server takes it.
        let index = u64::from(task.polls);
        let constant = lane.service.as_constant().is_some();
        let service = (lane.service).draw(|| task.key.draw(Purpose::Service, index));
        let station = &mut self.stations[task.server as usize];
        let served = match station.serve_mostly_idle(now, service, lane.queue_limit) {
            Ok(served) => served,
            Err(found) => {
                // Rate limits have counted it already.
                if model.observed(task.sent) {
                    self.pairs[task.pair as usize].queue_length.record(found);
                }
                self.refuse(event.slot(), Failure::QueueFull, u64::MAX);
                return true;
            }
        };
        station.busy_ns += model.observed_part(served.start, served.done);
        if served.start > now {
            self.server_tallies[task.server_class as usize].count_waiting(model, now, served);
        }
        if model.observed(task.sent) {
            self.pairs[task.pair as usize].count_served(now, served, service, constant);
        }
        let done = served.done;
        let back = (pair.delay).draw(|| task.key.draw(Purpose::DelayBack, index));
        let seen = done.saturating_add(back);
        if task.end <= done || seen > task.sent.saturating_add(lane.timeout) {
            self.read_in_time(event.slot(), done);
            return true;
        }
        let hint = (lane.hint).unwrap_or_else(|| hint_of(model, task, index, done));
        let state = &mut self.loops[event.slot() as usize];
        (state.read_at, state.phase, state.seen_at) = (done, Phase::Answering, seen);
        state.answer = Answer::Working(hint);
        let answered = Event::new(
            seen,
            Step::Seen.of(event.order),
            Kind::Answer,
            event.tag(),
            event.slot(),
        );
        self.queue.line_up(Line::Answers, answered);
        true
    }

    /// The answer to a poll comes to its host, which waits for the next one. `false`: nothing has happened.
    #[inline(always)]
    pub(super) fn goes_on_steadily(&mut self, event: Event) -> bool {
        let (model, now) = (self.model, event.time);
        let task = &mut self.slab.tasks[event.slot() as usize];
        let pair = &model.pairs[task.pair as usize];
        let Some(lane) = &pair.coupled_lane else {
            return false;
        };
        let state = &mut self.loops[event.slot() as usize];
        let awaits = state.phase == Phase::Answering && state.flight == event.tag();
        let Answer::Working(hint) = state.answer else {
            return false;
        };
        if !awaits
            || !task.polled()
            || task.traced
            || task.abort < now
            || state.attempt > 0
            || state.rides
            || state.probe
            || state.awaits_result
            || task.polls - state.uncounted >= lane.max_polls
            || !self.riders.is_empty()
        {
            return false;
        }

        // The host waits.
        let bits = if lane.draws_jitter {
            task.key.draw(Purpose::Jitter, u64::from(task.polls))
        } else {
            0
        };
        let mut remembered = None;
        let waits = pair.waits.as_ref().filter(|w| w.holds(&task.state));
        let wait = if let Some(waits) = waits {
            waits.decide(&task.state, bits)
        } else {
            let state = remembered.insert(task.state);
            match model.policies[lane.policy].decide(state, Saw::Unchanged(hint), bits) {
                Decision::Wait(wait) => SteadyWait::from(wait),
                Decision::AwaitResult | Decision::End(_) => return false,
            }
        };
        let next = (now.saturating_add(wait.wait)).saturating_add(lane.overhead);
        let near = task.created.saturating_add(lane.lifetime).min(model.stop);
        if next > near || wait.wait >= FOREVER {
            return false;
        }
        if state.breaker < u32::MAX
            && !self.breakers[state.breaker as usize].note_success(state.openings)
        {
            return false;
        }

        // All of it has happened.
        task.streak += 1;
        match remembered {
            None => task.state.note(wait),
            Some(state) => task.state = state,
        }
        self.fingerprint = self.fingerprint.wrapping_add(mark(task, now, 0));
        self.totals.seen += 1;
        let tally = &mut self.pairs[task.pair as usize];
        if model.observed(task.sent) {
            tally.count_unchanged(hint, lane.hint.is_some());
        }
        if model.observed(now) {
            tally.count_wait(wait);
        }
        (state.phase, state.has_result) = (Phase::Sleeping, false);
        (state.since, state.timer, state.tick) = (now, next, 0);
        let places = state.places > 0;
        self.queue.push(Event::new(
            next,
            Step::Sends.of(event.order),
            Kind::Timer,
            event.tag(),
            event.slot(),
        ));
        if places {
            self.give_places_back(event.slot());
        }
        true
    }
}
