//! What stands between a decision and a send: the breaker of host and server, then the budgets, in a fixed order.
//!
//! Places (polls in flight) come before rates, and the fleet's rate comes last, so that a rate holds at the instant of sending. A loop keeps the
//! places it has while it waits for what comes after them.

use std::collections::HashMap;

use super::POLLS_AT_ONE_INSTANT;
use super::Simulation;
use super::breaker::{Breaker, Change, Passage};
use super::coupled::{Loop, Phase};
use super::limiter::{Limiter, Ticket};
use super::queue::{Event, Kind, Step, order};
use super::task::Task;
use crate::metrics::tally::Failure;
use crate::model::{HeldBack, Model};
use crate::policy::Saw;

/// The budgets, in the order in which a poll passes them.
const STAGES: usize = 7;
/// So many of them are places, given back when the poll is over.
const OF_PLACES: usize = 4;
/// The last place is that on the connection of a host and a server, which its policy limits.
const CONNECTION: usize = 3;

/// The numbers of the bits that are set, ascending.
#[inline(always)]
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// The limiters of all budgets.
#[derive(Debug, Default)]
pub struct Gates {
    /// The limiters, stage by stage.
    limiters: Vec<Limiter>,
    /// Where each stage begins; `None` where there is no such budget.
    first: [Option<u32>; STAGES],
    /// Limiters of connections stand from here on; by host and server.
    connections_from: u32,
    connections: HashMap<(u32, u32), u32>,
    /// Least weight of all tenants.
    least_weight: f64,
    /// Stages at which polls may have to pass a limiter, a bit each.
    stages: u8,
}

impl Gates {
    /// The limiters of a model.
    pub fn new(model: &Model) -> Self {
        let mut gates = Gates {
            least_weight: model
                .tenants
                .iter()
                .map(|t| t.weight)
                .fold(f64::INFINITY, f64::min),
            ..Gates::default()
        };
        let Some(budget) = &model.budget else {
            return gates;
        };
        let (hosts, tenants, servers) = (model.hosts(), model.members(), model.server_count());
        let stages: [(u32, Option<Limiter>); STAGES] = [
            (hosts, budget.host_pollers.map(Limiter::of_places)),
            (tenants, budget.tenant_pollers.map(Limiter::of_places)),
            (servers, budget.server_pollers.map(Limiter::of_places)),
            (0, None),
            (tenants, budget.tenant.map(Limiter::of_rate)),
            (servers, budget.server.map(Limiter::of_rate)),
            (1, budget.fleet.map(Limiter::of_rate)),
        ];
        for (stage, (count, limiter)) in stages.into_iter().enumerate() {
            if let Some(limiter) = limiter {
                gates.stages |= 1 << stage;
                gates.first[stage] = Some(gates.limiters.len() as u32);
                gates.limiters.extend((0..count).map(|_| limiter.clone()));
            }
        }
        gates.connections_from = gates.limiters.len() as u32;
        gates
    }

    /// The limiter of a stage that a loop has to pass.
    fn limiter(&self, stage: usize, task: &Task, state: &Loop) -> Option<u32> {
        let host = state.host;
        if stage == CONNECTION {
            return (state.connection != u32::MAX).then_some(state.connection);
        }
        let within = match stage {
            0 => host,
            1 | 4 => task.member,
            2 | 5 => task.server,
            _ => 0,
        };
        self.first[stage].map(|first| first + within)
    }

    /// Takes what a poll needs of all limiters, if it is there and nobody waits for it; else nothing.
    #[inline(always)]
    pub fn let_pass(&mut self, task: &Task, state: &mut Loop, now: u64) -> bool {
        let free = bits(self.stages).all(|stage| {
            let id = self.limiter(stage, task, state);
            let limiter = id.map(|id| &self.limiters[id as usize]);
            limiter.is_none_or(|l| l.waiting.is_empty() && l.has_room(now))
        });
        if !free {
            return false;
        }
        for stage in bits(self.stages) {
            if let Some(id) = self.limiter(stage, task, state) {
                self.limiters[id as usize].take(now);
                if stage < OF_PLACES {
                    state.places |= 1 << stage;
                }
            }
        }
        true
    }

    /// The stage of a limiter.
    fn stage(&self, limiter: u32) -> usize {
        if limiter >= self.connections_from {
            return CONNECTION;
        }
        let after = |first: &Option<u32>| first.is_some_and(|first| first <= limiter);
        (0..STAGES)
            .rfind(|stage| after(&self.first[*stage]))
            .unwrap_or(0)
    }
}

impl Simulation<'_> {
    /// The number of the breaker between a host and the server of a task; [`u32::MAX`] where its policy has none.
    pub(super) fn breaker_of(&mut self, task: &Task, host: u32) -> u32 {
        let policy = self.model.tenants[task.class as usize].policy;
        let Some(rules) = self.model.carriers[policy].breaker else {
            return u32::MAX;
        };
        let next = self.breakers.len() as u32;
        let number = *self
            .breaker_numbers
            .entry((host, task.server))
            .or_insert(next);
        if number == next {
            self.breakers.push(Breaker::new(rules, task.pair));
        }
        number
    }

    /// The limiter of the connection between a host and the server of a task; [`u32::MAX`] where its policy has none.
    pub(super) fn connection_of(&mut self, task: &Task, host: u32) -> u32 {
        let policy = self.model.tenants[task.class as usize].policy;
        let limit = self.model.carriers[policy].in_flight;
        if limit == u32::MAX {
            return u32::MAX;
        }
        let gates = &mut self.gates;
        let next = gates.limiters.len() as u32;
        let connections = &mut gates.connections;
        let number = *connections.entry((host, task.server)).or_insert(next);
        if number == next {
            gates.stages |= 1 << CONNECTION;
            gates.limiters.push(Limiter::of_places(limit));
        }
        number
    }

    /// A poll is due: it asks its breaker, then its budgets.
    #[inline(never)]
    pub(super) fn gate(&mut self, slot: u32) {
        let now = self.now;
        let state = &mut self.loops[slot as usize];
        state.turns = if state.ready == now {
            state.turns + 1
        } else {
            0
        };
        state.ready = now;
        if state.turns >= POLLS_AT_ONE_INSTANT {
            return self.fail_without_time(slot, now, "polls of one task");
        }
        if self.shares_request(slot) {
            self.let_riders_off(slot);
            return;
        }
        let state = &self.loops[slot as usize];
        if state.breaker == u32::MAX {
            return self.pass(slot, 0);
        }
        let number = state.breaker;
        let passage = self.breakers[number as usize].ask(now);
        self.loops[slot as usize].openings = self.breakers[number as usize].openings;
        let pair = self.slab.tasks[slot as usize].pair as usize;
        match passage {
            Passage::Free => self.pass(slot, 0),
            Passage::Probe => {
                self.loops[slot as usize].probe = true;
                if self.model.observed(now) {
                    self.pairs[pair].probes += 1;
                }
                self.tell(slot, now, 5, "probe", || "the breaker lets it pass".into());
                self.pass(slot, 0);
            }
            Passage::Barred => {
                if self.model.observed(now) {
                    self.pairs[pair].held_back += 1;
                }
                self.tell(slot, now, 5, "held back", || "the breaker is open".into());
                self.bar(slot, number);
            }
        }
    }

    /// The breaker holds a poll back.
    fn bar(&mut self, slot: u32, number: u32) {
        let policy = self.model.tenants[self.slab.tasks[slot as usize].class as usize].policy;
        let manner = self.model.carriers[policy]
            .breaker
            .map_or(HeldBack::Wait, |b| b.held_back);
        match manner {
            HeldBack::Wait => {
                let ticket = self.ticket(slot);
                self.loops[slot as usize].phase = Phase::Barred;
                self.breakers[number as usize].waiting.push_back(ticket);
                self.try_again(number);
            }
            HeldBack::Skip => self.wait_again(slot),
            HeldBack::Fail => {
                self.let_riders_off(slot);
                self.decide::<false>(slot, self.now, Saw::Error, None, u64::MAX);
            }
        }
    }

    /// Sees to it that those who wait for a breaker have their turn: now, or when it becomes half open.
    pub(super) fn try_again(&mut self, number: u32) {
        let breaker = &mut self.breakers[number as usize];
        if breaker.armed || breaker.waiting.is_empty() {
            return;
        }
        // Half open, and a probe has come to nothing: at this instant.
        let at = breaker.opens_until().unwrap_or(self.now).max(self.now);
        breaker.armed = true;
        self.push_shared_event(at, Kind::HalfOpen, number);
    }

    /// A breaker becomes half open: the first of those who wait try the server.
    #[inline(never)]
    pub(super) fn half_opens(&mut self, number: u32) {
        self.breakers[number as usize].armed = false;
        loop {
            let breaker = &mut self.breakers[number as usize];
            // One who waits behind others that have gone may still wait.
            let Some(ticket) = breaker.waiting.pop_front() else {
                return;
            };
            if !self.still_waits(ticket) {
                continue;
            }
            match self.breakers[number as usize].ask(self.now) {
                Passage::Barred => {
                    // Back to the head of the line.
                    let ticket = self.ticket(ticket.slot);
                    self.breakers[number as usize].waiting.push_front(ticket);
                    if self.breakers[number as usize].opens_until().is_some() {
                        self.try_again(number);
                    }
                    return;
                }
                passage => {
                    let openings = self.breakers[number as usize].openings;
                    self.loops[ticket.slot as usize].openings = openings;
                    if passage == Passage::Probe {
                        self.loops[ticket.slot as usize].probe = true;
                        let pair = self.slab.tasks[ticket.slot as usize].pair as usize;
                        if self.model.observed(self.now) {
                            self.pairs[pair].probes += 1;
                        }
                        self.tell(ticket.slot, self.now, 5, "probe", || {
                            "the breaker is half open".into()
                        });
                    }
                    self.loops[ticket.slot as usize].ready = self.now;
                    self.pass(ticket.slot, 0);
                }
            }
        }
    }

    /// Redeems a ticket. Is its loop still there, and not to be settled now because its caller has aborted?
    fn still_waits(&mut self, ticket: Ticket) -> bool {
        if !self.redeem(ticket) {
            return false;
        }
        if self.looks_at_abort(ticket.slot) {
            self.settle_abort(ticket.slot, self.now);
            return false;
        }
        true
    }

    /// Tells the breaker what became of a poll; those whom it holds back pass when it closes.
    pub(super) fn report_to_breaker(&mut self, slot: u32, failure: Option<Failure>) {
        let state = &mut self.loops[slot as usize];
        if state.breaker == u32::MAX {
            return;
        }
        let (number, openings) = (state.breaker, state.openings);
        let probe = std::mem::take(&mut state.probe);
        let failed = failure.is_some_and(|f| !matches!(f, Failure::TooSoon | Failure::UnknownTask));
        let change = self.breakers[number as usize].report(failed, probe, openings, self.now);
        let pair = self.breakers[number as usize].pair as usize;
        match change {
            Change::None => {}
            Change::Opened => {
                if self.model.observed(self.now) {
                    self.pairs[pair].opened += 1;
                }
                self.try_again(number);
            }
            Change::Reopened => self.try_again(number),
            Change::Closed(since) => {
                let open = self.model.observed_part(since, self.now);
                self.pairs[pair].open_ns += u128::from(open);
                let waiting = std::mem::take(&mut self.breakers[number as usize].waiting);
                for ticket in waiting {
                    if self.still_waits(ticket) {
                        let openings = self.breakers[number as usize].openings;
                        self.loops[ticket.slot as usize].openings = openings;
                        self.loops[ticket.slot as usize].ready = self.now;
                        self.pass(ticket.slot, 0);
                    }
                }
            }
        }
    }

    /// A poll passes the budgets from `stage` on, and is sent; or it waits at one, or is left out.
    fn pass(&mut self, slot: u32, stage: usize) {
        let now = self.now;
        for stage in bits(self.gates.stages >> stage << stage) {
            let (task, state) = (&self.slab.tasks[slot as usize], &self.loops[slot as usize]);
            let Some(id) = self.gates.limiter(stage, task, state) else {
                continue;
            };
            let limiter = &mut self.gates.limiters[id as usize];
            if limiter.waiting.is_empty() && limiter.has_room(now) {
                limiter.take(now);
                if stage < OF_PLACES {
                    self.loops[slot as usize].places |= 1 << stage;
                }
                continue;
            }
            let skips = self.model.budget.as_ref().is_some_and(|b| b.skips);
            if skips && stage != CONNECTION {
                return self.leave_out(slot);
            }
            let ticket = self.ticket(slot);
            self.loops[slot as usize].phase = Phase::Queued;
            let task = &self.slab.tasks[slot as usize];
            let weight = self.model.tenants[task.class as usize].weight;
            let share = weight / self.gates.least_weight;
            let waiting = &mut self.gates.limiters[id as usize].waiting;
            waiting.push(task.member, share, ticket);
            return self.arm(id);
        }
        let limited =
            self.model.budget.is_some() || self.loops[slot as usize].connection < u32::MAX;
        if limited && self.model.observed(now) {
            let waited = now - self.loops[slot as usize].ready;
            let pair = self.slab.tasks[slot as usize].pair as usize;
            self.pairs[pair].budget_delay.record(waited);
        }
        let tick = self.loops[slot as usize].tick;
        self.send::<false>(slot, now, tick);
    }

    /// A poll that its budget does not let pass is left out.
    fn leave_out(&mut self, slot: u32) {
        self.give_places_back(slot);
        let state = &mut self.loops[slot as usize];
        if std::mem::take(&mut state.probe) {
            let (number, openings) = (state.breaker, state.openings);
            self.breakers[number as usize].give_up_probe(openings);
            self.try_again(number);
        }
        if self.model.observed(self.now) {
            let pair = self.slab.tasks[slot as usize].pair as usize;
            self.pairs[pair].skipped += 1;
        }
        self.tell(slot, self.now, 5, "left out", || {
            "the budget is spent".into()
        });
        self.wait_again(slot);
    }

    /// Gives the places of a loop back, and passes them on.
    pub(super) fn give_places_back(&mut self, slot: u32) {
        let state = &mut self.loops[slot as usize];
        let places = std::mem::take(&mut state.places);
        let state = *state;
        if places == 0 {
            return;
        }
        let task = self.slab.tasks[slot as usize];
        for stage in (0..OF_PLACES).filter(|stage| places >> stage & 1 == 1) {
            if let Some(id) = self.gates.limiter(stage, &task, &state) {
                self.gates.limiters[id as usize].give_back();
                if !self.gates.limiters[id as usize].waiting.is_empty() {
                    self.arm(id);
                }
            }
        }
    }

    /// Sees to it that those who wait at a limiter have their turn, if there is something to take: at this instant or when the next token comes.
    fn arm(&mut self, id: u32) {
        let now = self.now;
        let limiter = &mut self.gates.limiters[id as usize];
        if limiter.armed || limiter.waiting.is_empty() {
            return;
        }
        let at = match limiter.next_token() {
            Some(at) => at.max(now),
            None if limiter.has_room(now) => now,
            None => return,
        };
        limiter.armed = true;
        self.push_shared_event(at, Kind::Refill, id);
    }

    /// A limiter has something to give: those whose turn it is pass.
    #[inline(never)]
    pub(super) fn refill(&mut self, id: u32) {
        self.gates.limiters[id as usize].armed = false;
        let stage = self.gates.stage(id);
        while self.gates.limiters[id as usize].has_room(self.now) {
            let Some(ticket) = self.gates.limiters[id as usize].waiting.pop() else {
                return;
            };
            if !self.still_waits(ticket) {
                continue;
            }
            self.gates.limiters[id as usize].take(self.now);
            if stage < OF_PLACES {
                self.loops[ticket.slot as usize].places |= 1 << stage;
            }
            self.pass(ticket.slot, stage + 1);
        }
        self.arm(id);
    }

    /// Pushes an event that belongs to no task.
    pub(super) fn push_shared_event(&mut self, time: u64, kind: Kind, number: u32) {
        if time > self.model.stop || time == u64::MAX {
            return;
        }
        self.queue
            .push(Event::new(time, order(Step::Sends, 0, 0), kind, 0, number));
    }

    /// Adds the time that breakers were still open when the run stopped.
    pub(super) fn close_breakers(&mut self) {
        let stop = self.model.stop.min(self.model.horizon);
        for breaker in &self.breakers {
            if let Some(since) = breaker.open_since() {
                let open = self.model.observed_part(since, stop);
                self.pairs[breaker.pair as usize].open_ns += u128::from(open);
            }
        }
    }
}
