//! Polls that share a request: the tasks of a batch, and loops that find their task's request in flight already.
//!
//! One of them *carries* the request, the others *ride* on it: they are no requests of their own, pass no budget and no queue, and see an answer when the carrier's
//! would be seen. What it says of each task is read when the carrier's is.

use super::Simulation;
use super::coupled::Phase;
use super::limiter::Ticket;
use super::server::Answer;
use crate::metrics::tally::Failure;

impl Simulation<'_> {
    /// Requests that the poll of a loop consists of; none where it rides on another one's.
    pub(super) fn requests_of(&self, slot: u32) -> u64 {
        let task = &self.slab.tasks[slot as usize];
        if task.coupled() && self.loops[slot as usize].rides {
            0
        } else {
            self.requests_per_poll(task.class)
        }
    }

    /// The polls of a common timer are due: so many tasks of a server share a request.
    pub(super) fn send_in_batches(
        &mut self,
        due: Vec<u32>,
        batch: u32,
        still: impl Fn(&Self, u32) -> bool,
    ) {
        // The carrier of the last request to each server, and how many tasks it has.
        let mut open: Vec<(u32, u32, u32)> = Vec::new();
        for slot in due {
            // Another one's poll may have changed it.
            if !still(self, slot) {
                continue;
            }
            let state = &mut self.loops[slot as usize];
            // Ticks of a loop at a fixed rate are those of the common timer.
            (state.timer, state.tick) = (u64::MAX, self.now);
            let server = self.slab.tasks[slot as usize].server;
            let place = open.iter().position(|(of, ..)| *of == server);
            if let Some(place) = place
                && open[place].2 < batch
                && !self.looks_at_abort(slot)
                && self.carries(open[place].1)
            {
                open[place].2 += 1;
                self.ride(slot, open[place].1);
                continue;
            }
            self.poll_is_due(slot);
            if let Some(place) = place {
                open[place] = (server, slot, 1);
            } else {
                open.push((server, slot, 1));
            }
        }
    }

    /// Is the poll of a loop on its way, or waiting to be?
    fn carries(&self, slot: u32) -> bool {
        let phase = self.loops[slot as usize].phase;
        let under_way = [Phase::Ready, Phase::Queued, Phase::Barred, Phase::InFlight];
        self.slab.tasks[slot as usize].polled() && under_way.contains(&phase)
    }

    /// A loop rides on the poll of another one, which may still wait to be sent.
    fn ride(&mut self, slot: u32, carrier: u32) {
        let ticket = self.ticket(slot);
        let state = &mut self.loops[slot as usize];
        (state.phase, state.rides) = (Phase::Riding, false);
        let carrier_state = &self.loops[carrier as usize];
        if carrier_state.phase == Phase::InFlight {
            let flight = carrier_state.flight;
            self.board(slot);
            self.riders
                .entry((carrier, flight))
                .or_default()
                .push(ticket);
        } else {
            self.waiting_riders.entry(carrier).or_default().push(ticket);
        }
    }

    /// A loop whose policy has a lease finds the request of another loop of its task in flight. Does it ride on it?
    pub(super) fn shares_request(&mut self, slot: u32) -> bool {
        let class = self.slab.tasks[slot as usize].class as usize;
        let policy = self.model.tenants[class].policy;
        if !self.model.carriers[policy].lease || self.hosts.is_empty() {
            return false;
        }
        let first = self.first_of(slot);
        let host = &self.hosts[self.loops[slot as usize].host as usize];
        let other = host.loops().iter().copied().find(|other| {
            let state = &self.loops[*other as usize];
            let has_one = matches!(
                state.phase,
                Phase::InFlight | Phase::Held | Phase::Answering
            );
            *other != slot && has_one && !state.rides && self.first_of(*other) == first
        });
        let Some(other) = other else { return false };
        let (phase, flight) = (
            self.loops[other as usize].phase,
            self.loops[other as usize].flight,
        );
        let ticket = self.ticket(slot);
        self.loops[slot as usize].phase = Phase::Riding;
        self.board(slot);
        if phase == Phase::Answering {
            self.slab.release(ticket.slot);
            let (at, answer) = (
                self.loops[other as usize].seen_at,
                self.loops[other as usize].answer,
            );
            self.answer_on_its_way(slot, at, answer);
        } else {
            self.riders.entry((other, flight)).or_default().push(ticket);
        }
        true
    }

    /// The request that a loop rides on is sent: its poll is on the way.
    fn board(&mut self, slot: u32) {
        let now = self.now;
        let task = &mut self.slab.tasks[slot as usize];
        let gap = now - task.sent;
        task.at_once = if gap == 0 { task.at_once + 1 } else { 0 };
        task.polls += 1;
        task.sent = now;
        task.tick = self.loops[slot as usize].tick;
        let (flight, stuck) = (
            task.polls as u16,
            task.at_once >= super::POLLS_AT_ONE_INSTANT,
        );
        let state = &mut self.loops[slot as usize];
        (state.rides, state.flight, state.instant) = (true, flight, false);
        if stuck {
            self.fail_without_time(slot, now, "polls of one task");
        }
    }

    /// A poll is sent, to arrive at `arrival`, and those that wait to ride on it with it.
    #[inline]
    pub(super) fn take_riders_along(&mut self, carrier: u32, arrival: u64) {
        if self.waiting_riders.is_empty() {
            return;
        }
        let Some(waiting) = self.waiting_riders.remove(&carrier) else {
            return;
        };
        let flight = self.loops[carrier as usize].flight;
        for ticket in waiting {
            if self.redeem(ticket) {
                let again = self.ticket(ticket.slot);
                self.board(ticket.slot);
                if arrival > self.times_out_at(ticket.slot) {
                    // As the carrier's, its poll is given up before it arrives.
                    self.slab.release(ticket.slot);
                    self.answer_on_its_way(ticket.slot, u64::MAX, Answer::Ended);
                    continue;
                }
                self.riders
                    .entry((carrier, flight))
                    .or_default()
                    .push(again);
            }
        }
    }

    /// The poll that others wait to ride on will not be sent, or is given up: they are polled by themselves.
    #[inline]
    pub(super) fn let_riders_off(&mut self, carrier: u32) {
        if !(self.waiting_riders.is_empty() && self.riders.is_empty()) {
            self.let_them_off(carrier);
        }
    }

    fn let_them_off(&mut self, carrier: u32) {
        let flight = self.loops[carrier as usize].flight;
        let waiting = self.waiting_riders.remove(&carrier).unwrap_or_default();
        let riding = self.riders.remove(&(carrier, flight)).unwrap_or_default();
        for ticket in waiting.into_iter().chain(riding) {
            if self.redeem(ticket) {
                let aborts = self.slab.tasks[ticket.slot as usize].abort <= self.now;
                self.set_down(ticket.slot);
                // One that is aborted at this very instant is not polled once more.
                if !aborts {
                    self.poll_is_due(ticket.slot);
                }
            }
        }
    }

    /// The host of a carrier starts again, and with it all that ride on its poll.
    pub(super) fn set_riders_down(&mut self, carrier: u32) {
        let flight = self.loops[carrier as usize].flight;
        let waiting = self.waiting_riders.remove(&carrier).unwrap_or_default();
        let riding = self.riders.remove(&(carrier, flight)).unwrap_or_default();
        for ticket in waiting.into_iter().chain(riding) {
            if self.redeem(ticket) {
                self.set_down(ticket.slot);
            }
        }
    }

    /// A loop rides no more, and sleeps without a timer.
    fn set_down(&mut self, slot: u32) {
        self.drop_poll(slot, "its request is given up");
        let state = &mut self.loops[slot as usize];
        (state.phase, state.timer, state.since) = (Phase::Sleeping, u64::MAX, self.now);
    }

    /// The answer to a poll will be seen at `seen`: those that ride on it see theirs then, too.
    #[inline]
    pub(super) fn answer_riders(&mut self, carrier: u32, seen: u64, answer: Answer) {
        if !self.riders.is_empty() {
            self.answer_them(carrier, seen, answer);
        }
    }

    fn answer_them(&mut self, carrier: u32, seen: u64, answer: Answer) {
        let read_at = self.loops[carrier as usize].read_at;
        let again =
            matches!(answer, Answer::Failed(failure, _) if self.may_send_again(carrier, failure));
        for ticket in self.take_riders(carrier) {
            if !self.redeem(ticket) {
                continue;
            }
            let rider = ticket.slot;
            if again && seen <= self.times_out_at(rider) {
                // It rides on the retry.
                let ticket = self.ticket(rider);
                self.drop_poll(rider, "its request is sent again");
                (
                    self.loops[rider as usize].phase,
                    self.loops[rider as usize].rides,
                ) = (Phase::Riding, false);
                self.waiting_riders.entry(carrier).or_default().push(ticket);
                continue;
            }
            let own = match answer {
                // An answer of the server as a whole.
                Answer::Failed(failure, after) if failure != Failure::UnknownTask => {
                    Answer::Failed(failure, after)
                }
                _ if !self.knows(rider, read_at) => Answer::Failed(Failure::UnknownTask, u64::MAX),
                _ => self.status_at(rider, read_at),
            };
            self.answer_on_its_way(rider, seen, own);
        }
    }

    /// Has the transport of a poll that failed a retry left?
    fn may_send_again(&self, slot: u32, failure: Failure) -> bool {
        let task = &self.slab.tasks[slot as usize];
        let policy = self.model.tenants[task.class as usize].policy;
        let attempt = self.loops[slot as usize].attempt + 1;
        let tries = !matches!(failure, Failure::UnknownTask | Failure::TooSoon);
        let left = self.model.carriers[policy].retries;
        tries && task.polled() && left.is_some_and(|retries| attempt < retries.requests)
    }

    /// The request is lost: no answer will come to those that ride on it either.
    pub(super) fn lose_riders(&mut self, carrier: u32) {
        for ticket in self.take_riders(carrier) {
            if self.redeem(ticket) {
                self.vanish(ticket.slot);
            }
        }
    }

    /// A poll that its host has given up comes to its server: those that rode on it have given up as well.
    pub(super) fn forget_riders(&mut self, carrier: u32, flight: u16) {
        for ticket in self.riders.remove(&(carrier, flight)).unwrap_or_default() {
            self.slab.release(ticket.slot);
        }
    }

    fn take_riders(&mut self, carrier: u32) -> Vec<Ticket> {
        if self.riders.is_empty() {
            return Vec::new();
        }
        let flight = self.loops[carrier as usize].flight;
        self.riders.remove(&(carrier, flight)).unwrap_or_default()
    }
}
