//! Hosts: the event loop that all tasks of a host share, and restarts that make all its loops start again.

use super::Simulation;
use super::coupled::{Loop, Phase};
use super::limiter::Ticket;
use super::queue::{Event, Kind, Step, order};
use super::task::Task;
use crate::model::{Model, Schedule, TenantClass};
use crate::policy::State;
use crate::random::{Key, Purpose};

/// A host.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Loops whose timers have fired since the last wake-up, in their order.
    ready: Vec<Ticket>,
    /// Its next wake-up is on its way.
    wakes: bool,
    /// No wake-up before this.
    free: u64,
    /// It works on a batch until this.
    busy: u64,
    /// Its loops, as slots, where it can start again or they have a common timer.
    loops: Vec<u32>,
    /// When the common timer of its loops fires; 0 while it is not set.
    due: u64,
    /// How often it has started again.
    reconnects: u64,
}

impl Host {
    /// Its loops, as slots, where it keeps them.
    pub fn loops(&self) -> &[u32] {
        &self.loops
    }
}

/// The hosts of a model, where they need a state of their own.
pub fn hosts(model: &Model) -> Vec<Host> {
    let stateful = |t: &TenantClass| t.host_loop.is_some() || keeps_loops(model, t);
    if model.tenants.iter().any(stateful) {
        vec![Host::default(); model.hosts() as usize]
    } else {
        Vec::new()
    }
}

/// Do hosts of a tenant class know their loops?
fn keeps_loops(model: &Model, tenant: &TenantClass) -> bool {
    tenant.reconnect.is_some() || model.carriers[tenant.policy].schedule != Schedule::PerTask
}

/// Polls of a doubled loop are numbered from so far apart, so that they draw other numbers.
const DOUBLES_APART: u32 = 1 << 24;

impl Simulation<'_> {
    /// A loop is one of its host's.
    pub(super) fn join_host(&mut self, slot: u32, host: u32) {
        let class = self.slab.tasks[slot as usize].class as usize;
        if keeps_loops(self.model, &self.model.tenants[class]) {
            self.hosts[host as usize].loops.push(slot);
        }
    }

    /// A loop has ended.
    pub(super) fn leave_host(&mut self, slot: u32) {
        let class = self.slab.tasks[slot as usize].class as usize;
        if keeps_loops(self.model, &self.model.tenants[class]) {
            let loops = &mut self.hosts[self.loops[slot as usize].host as usize].loops;
            loops.retain(|other| *other != slot);
        }
    }

    /// A loop sleeps until `next` by the common timer of its host.
    pub(super) fn arm_common_timer(&mut self, slot: u32, next: u64) {
        let (number, class) = (
            self.loops[slot as usize].host,
            self.slab.tasks[slot as usize].class,
        );
        let host = &mut self.hosts[number as usize];
        if next > self.model.stop || (1..=next).contains(&host.due) {
            return;
        }
        host.due = next;
        self.queue.push(Event::new(
            next,
            // With the timers of the instant; hosts of a member one after another.
            order(Step::Sends, self.slab.tasks[slot as usize].member, number),
            Kind::CommonTimer,
            class,
            number,
        ));
    }

    /// The common timer of a host fires.
    #[inline(never)]
    pub(super) fn common_timer_fires(&mut self, number: u32, class: u16) {
        let now = self.now;
        let host = &mut self.hosts[number as usize];
        if host.due != now {
            // It was set to an earlier time.
            return;
        }
        host.due = 0;
        let policy = self.model.tenants[class as usize].policy;
        let least = self.model.carriers[policy].schedule == Schedule::LeastInterval;
        let sleeps = |simulation: &Self, slot: u32| {
            let state = &simulation.loops[slot as usize];
            state.phase == Phase::Sleeping && state.attempt == 0 && state.timer < u64::MAX
        };
        let loops = self.hosts[number as usize].loops.clone();
        self.totals.events += loops.len() as u64;
        // A timer that was set for a loop that has gone polls nobody.
        let is_due = |slot: &u32| sleeps(self, *slot) && self.loops[*slot as usize].timer <= now;
        let all = least && loops.iter().any(is_due);
        let due = |simulation: &Self, slot: u32| {
            let state = &simulation.loops[slot as usize];
            // A task whose id its host does not hold yet has no loop as yet.
            let begun = state.since <= now;
            begun && sleeps(simulation, slot) && (all || state.timer <= now)
        };
        let polled: Vec<u32> = loops.into_iter().filter(|slot| due(self, *slot)).collect();
        let batch = self.model.carriers[policy].batch;
        self.send_in_batches(polled, batch, due);
        let left = self.hosts[number as usize].loops.iter().copied();
        let left = left.filter(|slot| sleeps(self, *slot));
        if let Some(slot) = left.min_by_key(|slot| self.loops[*slot as usize].timer) {
            self.arm_common_timer(slot, self.loops[slot as usize].timer);
        }
    }

    /// A timer has fired: the poll waits for its turn in the host's event loop.
    pub(super) fn ready_to_run(&mut self, slot: u32) {
        let ticket = self.ticket(slot);
        let state = &mut self.loops[slot as usize];
        state.phase = Phase::Ready;
        let number = state.host;
        let host = &mut self.hosts[number as usize];
        host.ready.push(ticket);
        if !host.wakes {
            host.wakes = true;
            let at = host.free.max(self.now);
            let member = self.slab.tasks[slot as usize].member;
            if at <= self.model.stop {
                self.queue.push(Event::new(
                    at,
                    // After all timers of the instant.
                    order(Step::Sends, member, u32::MAX),
                    Kind::WakeUp,
                    self.slab.tasks[slot as usize].class,
                    number,
                ));
            }
        }
    }

    /// A host wakes up: whatever is due runs as one batch.
    #[inline(never)]
    pub(super) fn wake_up(&mut self, number: u32, class: u16) {
        let Some(capacity) = self.model.tenants[class as usize].host_loop else {
            return;
        };
        let start = self.now;
        let batch = std::mem::take(&mut self.hosts[number as usize].ready);
        let mut at = start.saturating_add(capacity.wake_up);
        for ticket in batch {
            let still = self.slab.tasks[ticket.slot as usize].polled()
                && self.loops[ticket.slot as usize].ticket == ticket.number;
            if still && at <= self.model.stop {
                self.push_task_event(ticket.slot, at, Step::Sends, Kind::Turn);
                self.loops[ticket.slot as usize].timer = at;
                at = at.saturating_add(capacity.poll);
            }
            self.slab.release(ticket.slot);
        }
        let host = &mut self.hosts[number as usize];
        host.wakes = false;
        host.busy = at;
        host.free = at.saturating_add(capacity.pause);
        let tally = &mut self.tenant_tallies[class as usize];
        tally.busy_ns += u128::from(self.model.observed_part(start, at));
        tally.wake_ups += u64::from(self.model.observed(start));
    }

    /// A poll has its turn in the batch.
    #[inline(never)]
    pub(super) fn turn_comes(&mut self, slot: u32) {
        self.slab.release(slot);
        let state = &mut self.loops[slot as usize];
        // A restart has taken the turn away.
        let own = state.phase == Phase::Ready && state.timer == self.now;
        if own && self.slab.tasks[slot as usize].polled() {
            state.timer = u64::MAX;
            if self.looks_at_abort(slot) {
                return self.settle_abort(slot, self.now);
            }
            self.gate(slot);
        }
    }

    /// Until when the host of a loop is too busy to read an answer that comes now; `None` where it reads it at once.
    ///
    /// An answer that took no time is read in its own poll's turn.
    pub(super) fn busy_until(&self, slot: u32) -> Option<u64> {
        let class = self.slab.tasks[slot as usize].class as usize;
        self.model.tenants[class].host_loop.as_ref()?;
        let state = &self.loops[slot as usize];
        let busy = self.hosts[state.host as usize].busy;
        (!state.instant && busy > self.now).then_some(busy)
    }

    /// Pushes the first reconnects of every host.
    pub(super) fn plan_reconnects(&mut self) {
        for (class, tenant) in self.model.tenants.iter().enumerate() {
            let Some(reconnect) = &tenant.reconnect else {
                continue;
            };
            for host in tenant.first_host..tenant.first_host + tenant.count * tenant.hosts {
                for at in &reconnect.at {
                    self.push_reconnect(*at, class as u16, host, 0);
                }
                self.plan_next_reconnect(class as u16, host, 0);
            }
        }
    }

    fn plan_next_reconnect(&mut self, class: u16, host: u32, index: u64) {
        let model = self.model;
        let Some(reconnect) = &model.tenants[class as usize].reconnect else {
            return;
        };
        if let Some(every) = &reconnect.every {
            let key = self.host_key(class, host);
            let at = self
                .now
                .saturating_add(every.draw(|| key.draw(Purpose::Reconnect, index)).max(1));
            self.push_reconnect(at, class, host, 1);
        }
    }

    /// `drawn` is 1 where another one follows, after a time that is drawn.
    fn push_reconnect(&mut self, at: u64, class: u16, host: u32, drawn: u32) {
        if at >= self.model.horizon {
            return;
        }
        self.queue.push(Event::new(
            at,
            order(Step::Sends, host, drawn),
            Kind::Reconnect,
            class,
            host,
        ));
    }

    /// A host starts again, and with it all its loops.
    #[inline(never)]
    pub(super) fn reconnect(&mut self, event: Event) {
        let (class, number) = (event.tag(), event.slot());
        let Some(rules) = &self.model.tenants[class as usize].reconnect else {
            return;
        };
        let host = &mut self.hosts[number as usize];
        host.reconnects += 1;
        let (index, loops) = (host.reconnects, host.loops.clone());
        // Each loop that is looked at is work, as an event is.
        self.totals.events += loops.len() as u64;
        self.tenant_tallies[class as usize].reconnects += u64::from(self.model.observed(self.now));
        for slot in loops {
            let task = &self.slab.tasks[slot as usize];
            // A task whose id its host does not hold yet has no loop as yet.
            let begun = task.polled() && task.created <= self.now;
            if !begun || self.loops[slot as usize].phase == Phase::Cancelling {
                continue;
            }
            let u = task.key.draw(Purpose::Spread, index);
            let spread = ((u128::from(rules.spread) * u128::from(u)) >> 64) as u64;
            if rules.duplicates {
                // One new loop for each task, however many run already.
                if self.first_of(slot) == slot {
                    self.double(slot, spread, index as u32);
                }
            } else {
                self.start_again(slot, spread);
            }
        }
        if event.order & 1 == 1 {
            self.plan_next_reconnect(class, number, index);
        }
    }

    /// A second loop polls a task beside the one that still runs.
    fn double(&mut self, slot: u32, spread: u64, index: u32) {
        let (task, state) = (self.slab.tasks[slot as usize], self.loops[slot as usize]);
        let polls = index.wrapping_mul(DOUBLES_APART);
        let double = self.slab.insert(Task {
            state: State::default(),
            polls,
            leaked: 0,
            streak: 0,
            counted: false,
            traced: false,
            holds: 0,
            at_once: 0,
            ..task
        });
        if self.loops.len() < self.slab.tasks.len() {
            self.loops.resize(self.slab.tasks.len(), Loop::default());
        }
        // The double reads the state of the task in this one's slot.
        self.slab.tasks[slot as usize].holds += 1;
        let ticket = self.loops[double as usize].ticket;
        self.loops[double as usize] = Loop {
            ticket: ticket.wrapping_add(1),
            uncounted: polls,
            born: self.now,
            breaker: state.breaker,
            connection: state.connection,
            host: state.host,
            doubles: slot,
            ..Loop::default()
        };
        self.hosts[state.host as usize].loops.push(double);
        if (self.now + 1..=self.model.stop).contains(&task.abort) && task.abort < u64::MAX {
            self.push_task_event(double, task.abort, Step::Aborts, Kind::Abort);
        }
        let deadline = self.gives_up_at(double);
        if (self.now..=self.model.stop).contains(&deadline) && deadline < u64::MAX {
            self.push_task_event(double, deadline, Step::Aborts, Kind::GiveUp);
        }
        let next = self.now.saturating_add(spread);
        self.sleep(double, self.now, next, next);
    }

    fn host_key(&self, class: u16, host: u32) -> Key {
        let tenant = &self.model.tenants[class as usize];
        let within = host - tenant.first_host;
        let member = tenant.first_member + within / tenant.hosts;
        self.member_key(class, member)
            .part(u64::MAX - u64::from(within % tenant.hosts))
    }

    /// The slot where the state of a loop's task stands.
    pub(super) fn first_of(&self, slot: u32) -> u32 {
        match self.loops[slot as usize].doubles {
            u32::MAX => slot,
            first => first,
        }
    }
}
