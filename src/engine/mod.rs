//! The discrete-event loop: clock, order within an instant, and what happens at each event.
//!
//! One event per poll: the event stands at the poll's arrival at its server. There the FIFO gives the end of service
//! at once (the order of arrival is the order of events), the state is read at that end, the answer's delay is drawn, the policy decides, and
//! the next poll is sent and its arrival pushed. Where a server limits how many tasks it executes, a task's end is not known at
//! arrival, and a second event stands at the end of service.
//!
//! A host's abort and the policy's deadline are known in advance; they are looked at when a wait is chosen and when an answer comes,
//! and need no events. Everything that a step causes lies at its own instant or later, which the order of keys respects.
//!
//! That is the *plain* path of a task (`host`, `server`). Where its server may refuse, lose or forget, the path is *guarded* (`guard`). Where
//! loops depend on each other, or on something that only the clock can tell, it is *coupled* (`coupled`): timers, answers and aborts are events
//! as well, and between a timer and a send stand the host's event loop (`fleet`), breakers and budgets (`gate`).
//!
//! The engine knows nothing of files, replications or reports.

mod breaker;
mod coupled;
mod ends;
mod fleet;
mod gate;
mod guard;
mod host;
mod limiter;
mod outage;
mod partition;
mod push;
pub mod queue;
mod server;
mod share;
mod station;
mod steady;
mod steady_coupled;
mod task;
pub mod trace;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::metrics::tally::{Fold, PairTally, ServerTally, TenantTally};
use crate::model::{Arrivals, HintSource, Model};
use crate::policy::RawHint;
use crate::random::{self, Key, Purpose};
use breaker::Breaker;
use coupled::Loop;
use fleet::Host;
use gate::Gates;
use guard::Guards;
use limiter::Ticket;
use queue::{Event, Kind, Line, Queue, Step, order};
pub use station::Served;
use station::Station;
use steady::Stride;
use task::Slab;
use trace::{Follow, Row, Tracer};

/// Polls of one task, or tasks of a closed loop, at one instant after which the run is stopped.
pub const POLLS_AT_ONE_INSTANT: u16 = 10_000;

/// On and off phases in a row without an arrival after which the run is stopped.
pub const PHASES_WITHOUT_ARRIVAL: u32 = 1_000_000;

/// So many tasks alive fit into a processor's nearest cache.
const FEW: usize = 256;
/// … and so many into its next one.
const MANY: usize = 4096;

/// Why a run stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A loop that takes no time.
    #[error(
        "a loop that takes no time: tenant \"{tenant}\" sent {POLLS_AT_ONE_INSTANT} {what} to server \"{server}\" at the instant {at_s} s; \
         policy \"{policy}\" lets the wait be 0 and nothing else takes time. Give the policy a floor, the timer a minimum, \
         the server a delay or a service time, or a closed loop a pause (`think`)"
    )]
    NoTime {
        /// Polls of one task, or tasks of one host that each follow the end of another.
        what: &'static str,
        /// Tenant class.
        tenant: String,
        /// Server class.
        server: String,
        /// Policy.
        policy: String,
        /// When, in seconds.
        at_s: String,
    },
    /// Bursts too short to hold an arrival.
    #[error(
        "tenant \"{tenant}\": {PHASES_WITHOUT_ARRIVAL} on and off phases passed without an arrival by the instant {at_s} s; \
         make `on` and `off` longer, or the rate higher"
    )]
    NoArrival {
        /// Tenant class.
        tenant: String,
        /// When, in seconds.
        at_s: String,
    },
    /// More events than the scenario allows.
    #[error(
        "more than {limit} events (run.event_limit) by the instant {at_s} s, most polls by tenant \"{tenant}\"; \
         raise the limit, or make the fleet smaller"
    )]
    EventLimit {
        /// The limit.
        limit: u64,
        /// The tenant class that had sent most polls.
        tenant: String,
        /// When, in seconds.
        at_s: String,
    },
    /// Someone asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// Did the run not get on, because polls took no time or were too many?
    pub fn hangs(&self) -> bool {
        matches!(self, RunError::NoTime { .. } | RunError::EventLimit { .. })
    }
}

/// Counts over the whole run, whatever is observed: for checks of conservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// `tasks/get` sent.
    pub sent: u64,
    /// Their answers, errors included, seen by a host.
    pub seen: u64,
    /// Requests that an abort had dropped, or a host that gave them up for another reason than a timeout.
    pub dropped: u64,
    /// Requests that timed out.
    pub timed_out: u64,
    /// Requests without an answer that no timeout ended.
    pub lost: u64,
    /// `tasks/get` whose answer, or timeout, was still to come when the run stopped.
    pub in_flight: u64,
    /// Tasks created.
    pub tasks: u64,
    /// Events handled.
    pub events: u64,
}

impl Totals {
    /// Adds those of another part of the run.
    fn add(&mut self, other: &Totals) {
        self.sent += other.sent;
        self.seen += other.seen;
        self.dropped += other.dropped;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        self.in_flight += other.in_flight;
        self.tasks += other.tasks;
        self.events += other.events;
    }
}

/// What one replication gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which replication.
    pub replication: u32,
    /// Tallies of (tenant class, server class), tenant-major.
    pub pairs: Vec<PairTally>,
    /// Tallies of server classes.
    pub servers: Vec<ServerTally>,
    /// Tallies of tenant classes.
    pub tenants: Vec<TenantTally>,
    /// Wrapping sum over polls of mix(task, poll number, sent, seen, outcome).
    pub fingerprint: u64,
    /// Counts over the whole run.
    pub totals: Totals,
    /// The last instant at which something happened.
    pub end: u64,
    /// The story that was asked for.
    pub story: Option<Story>,
}

/// The story of one task.
#[derive(Clone, Debug)]
pub struct Story {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Tenant class, member, ordinal, server class, server; `None` where no such task was created.
    pub subject: Option<(u16, u32, u32, u16, u32)>,
}

/// Runs one replication. `stop` is looked at now and then.
///
/// # Errors
/// [`RunError`]: a loop that takes no time, the event limit, or `stop`.
pub fn run(
    model: &Model,
    replication: u32,
    follow: Option<Follow>,
    stop: &AtomicBool,
) -> Result<Outcome, RunError> {
    if follow.is_none()
        && let Some(outcome) = partition::run(model, replication, stop)
    {
        return outcome;
    }
    let mut simulation = Simulation::new(model, replication, follow);
    simulation.start();
    simulation.run(model.stop.saturating_add(1), stop)?;
    Ok(simulation.finish(replication))
}

/// A member's place in its arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Tasks created so far.
    created: u32,
    /// Number of the on phase.
    phase: u32,
    /// End of the on phase.
    phase_end: u64,
    /// Tasks in a row of a closed loop that took no time.
    at_once: u16,
    /// Polls sent in the observed interval.
    polls: u64,
    /// It has such a task.
    counted: bool,
}

struct Simulation<'m> {
    model: &'m Model,
    key: Key,
    queue: Queue,
    slab: Slab,
    members: Vec<Member>,
    stations: Vec<Station>,
    pairs: Vec<PairTally>,
    server_tallies: Vec<ServerTally>,
    tenant_tallies: Vec<TenantTally>,
    /// Of coupled tasks, by slot.
    loops: Vec<Loop>,
    /// Arrivals are handed to it as events, and cause no next one.
    given_arrivals: bool,
    /// Where hosts have a state of their own.
    hosts: Vec<Host>,
    gates: Gates,
    /// Loops that ride on a poll in flight, by carrier and number of its poll.
    riders: HashMap<(u32, u16), Vec<Ticket>>,
    /// … and on one that is still to be sent.
    waiting_riders: HashMap<u32, Vec<Ticket>>,
    guards: Guards,
    breakers: Vec<Breaker>,
    /// Breakers by host and server.
    breaker_numbers: HashMap<(u32, u32), u32>,
    fingerprint: u64,
    totals: Totals,
    now: u64,
    tracer: Option<Box<Tracer>>,
    /// Set by a handler that cannot go on.
    failed: Option<RunError>,
}

impl<'m> Simulation<'m> {
    fn new(model: &'m Model, replication: u32, follow: Option<Follow>) -> Self {
        let stations = model
            .servers
            .iter()
            .flat_map(|s| (0..s.count).map(|_| Station::new(s.workers)));
        let pairs = model.tenants.len() * model.servers.len();
        let workers = model
            .servers
            .iter()
            .map(|s| u64::from(s.count) * u64::from(s.workers));
        let key = Key::new(model.seed, u64::from(replication));
        Simulation {
            model,
            key,
            queue: Queue::default(),
            slab: Slab::default(),
            members: vec![Member::default(); model.members() as usize],
            stations: stations.collect(),
            pairs: (0..pairs).map(|_| PairTally::new(model.horizon)).collect(),
            server_tallies: workers
                .map(|w| ServerTally::new(model.horizon, w))
                .collect(),
            tenant_tallies: vec![TenantTally::default(); model.tenants.len()],
            loops: Vec::new(),
            given_arrivals: false,
            hosts: fleet::hosts(model),
            gates: Gates::new(model),
            riders: HashMap::new(),
            waiting_riders: HashMap::new(),
            guards: Guards::new(model, key),
            breakers: Vec::new(),
            breaker_numbers: HashMap::new(),
            fingerprint: 0,
            totals: Totals::default(),
            now: 0,
            tracer: follow.map(|follow| {
                Box::new(Tracer {
                    follow,
                    ..Tracer::default()
                })
            }),
            failed: None,
        }
    }

    /// Handles the events before `until`.
    fn run(&mut self, until: u64, stop: &AtomicBool) -> Result<(), RunError> {
        let mut until_look = 1u32;
        while let Some(event) = self.queue.pop_before(until) {
            if self.slab.tasks.len() > FEW {
                self.fetch_ahead(event.kind());
            }
            debug_assert!(event.time >= self.now, "time runs backwards: {event:?}");
            self.now = event.time;
            self.totals.events += 1;
            self.handle(event);
            until_look -= 1;
            if until_look == 0 {
                self.look(stop)?;
                // The limit is met to the event.
                let left = self.model.event_limit - self.totals.events;
                until_look = left.saturating_add(1).min(4096) as u32;
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Asks for what the events that come after one of `kind` will need.
    #[inline(always)]
    fn fetch_ahead(&self, kind: Kind) {
        let n = if self.slab.tasks.len() <= MANY { 6 } else { 16 };
        if self.loops.is_empty() {
            let coming = self.queue.ahead(n);
            if let Some(task) = coming.and_then(|e| self.slab.tasks.get(e.slot() as usize)) {
                prefetch(task);
            }
            return;
        }
        let ahead = |n| match kind {
            Kind::Answer => self.queue.ahead_in(Line::Answers, n),
            Kind::Poll => self.queue.ahead_in(Line::Polls, n),
            _ => self.queue.ahead(n),
        };
        let Some(coming) = ahead(n) else {
            return;
        };
        let slot = coming.slot() as usize;
        if let Some(task) = self.slab.tasks.get(slot) {
            prefetch(task);
        }
        if let Some(state) = self.loops.get(slot) {
            prefetch(state);
            if kind == Kind::Timer
                && let Some(sooner) = ahead(8)
                && let Some(state) = self.loops.get(sooner.slot() as usize)
                && let Some(breaker) = self.breakers.get(state.breaker as usize)
            {
                prefetch(breaker);
            }
        }
    }

    /// What happens at an event.
    #[inline(always)]
    fn handle(&mut self, event: Event) {
        match event.kind() {
            Kind::Create => self.create(event),
            Kind::Queue => self.start_or_wait(event.slot()),
            Kind::TaskEnd => self.task_ends(event.slot()),
            Kind::Served => self.served(event.slot(), event.tag()),
            Kind::Cancelled => self.cancelled(event.slot()),
            Kind::Poll => match self.stride(event) {
                Stride::On(next) => self.queue.push(next),
                Stride::Served(done) => self.answer_now(event.slot(), done),
                Stride::Halt if self.is_served_steadily(event) => {}
                Stride::Halt => self.poll_arrives(event.slot(), event.tag()),
            },
            Kind::Result => self.result_arrives(event.slot()),
            Kind::Cancel => self.cancel_arrives(event.slot()),
            Kind::Update => self.update_comes(event.slot()),
            Kind::Release => self.release_comes(event.slot(), event.tag()),
            Kind::Answer if self.goes_on_steadily(event) => {}
            Kind::Answer => self.answer_arrives(event.slot(), event.tag()),
            Kind::Notice => self.notice_comes(event.slot()),
            Kind::Reconnect => self.reconnect(event),
            Kind::Timer if self.sends_steadily(event) => {}
            Kind::Timer => self.timer_fires(event.slot()),
            Kind::CommonTimer => self.common_timer_fires(event.slot(), event.tag()),
            Kind::Turn => self.turn_comes(event.slot()),
            Kind::WakeUp => self.wake_up(event.slot(), event.tag()),
            Kind::Refill => self.refill(event.slot()),
            Kind::HalfOpen => self.half_opens(event.slot()),
            Kind::Abort => self.abort_comes(event.slot()),
            Kind::GiveUp => self.give_up_comes(event.slot()),
            Kind::Settle => self.settle_comes(event.slot()),
        }
    }

    /// Looks, now and then, for a reason to stop.
    #[cold]
    fn look(&mut self, stop: &AtomicBool) -> Result<(), RunError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let limit = self.model.event_limit;
        if self.totals.events > limit {
            return Err(RunError::EventLimit {
                limit,
                tenant: self.busiest(),
                at_s: seconds(self.now),
            });
        }
        Ok(())
    }

    /// The tenant class that has sent most polls before the horizon; of equals, the first.
    fn busiest(&self) -> String {
        let servers = self.model.servers.len();
        let sent = |pairs: &[PairTally]| -> u64 {
            let windows = pairs.iter().flat_map(|p| &p.windows);
            windows.map(|n| u64::from(*n)).sum()
        };
        let by_tenant = self.pairs.chunks(servers).map(sent);
        let most = (0..)
            .zip(by_tenant)
            .max_by_key(|(i, n)| (*n, std::cmp::Reverse(*i)));
        most.map_or(String::new(), |(i, _): (usize, _)| {
            self.model.tenants[i].name.clone()
        })
    }

    /// … of a run that has come to its end.
    fn finish(mut self, replication: u32) -> Outcome {
        self.leave_tasks();
        self.close_breakers();
        self.conclude(replication)
    }

    /// Tallies what was still going on.
    fn leave_tasks(&mut self) {
        while let Some(event) = self.queue.pop() {
            if !matches!(event.kind(), Kind::Poll | Kind::Served | Kind::Answer) {
                continue;
            }
            let task = &self.slab.tasks[event.slot() as usize];
            if task.coupled() {
                self.leave_dropped(event);
            } else {
                self.totals.in_flight += 1;
                if task.polled() {
                    self.tell_poll(event.slot(), None, "in flight");
                }
            }
        }
        self.leave_in_flight();
        for slot in 0..self.slab.tasks.len() {
            if self.slab.tasks[slot].polled() {
                self.leave_running(slot as u32);
            }
        }
    }

    /// Gives the results away.
    fn conclude(mut self, replication: u32) -> Outcome {
        self.tally_tenants();
        let model = self.model;
        for (class, tally) in model.servers.iter().zip(&mut self.server_tallies) {
            let stations = &self.stations[class.first as usize..][..class.count as usize];
            tally.busy_ns = stations.iter().map(|s| u128::from(s.busy_ns)).sum();
        }
        for (i, pair) in self.pairs.iter_mut().enumerate() {
            let server = &model.servers[i % model.servers.len()];
            let tenant = &model.tenants[i / model.servers.len()];
            pair.fold(Fold {
                warm_up: model.warm_up,
                service: server.service.as_constant().unwrap_or(0),
                hint: match server.hint {
                    HintSource::Constant(hint) => hint,
                    _ => RawHint::Absent,
                },
                on_server: model.carriers[tenant.policy].on_server,
                cost: tenant.cost,
            });
        }
        let story = self.tracer.take().map(|tracer| {
            let mut rows = tracer.rows;
            rows.retain(|row| row.at <= self.model.stop);
            rows.sort_by_key(|row| (row.at, row.rank));
            Story {
                rows,
                subject: tracer.subject,
            }
        });
        Outcome {
            replication,
            pairs: self.pairs,
            servers: self.server_tallies,
            tenants: self.tenant_tallies,
            fingerprint: self.fingerprint,
            totals: self.totals,
            end: self.now,
            story,
        }
    }

    /// How the tenants shared, and how many hosts have a capacity.
    fn tally_tenants(&mut self) {
        for (tenant, tally) in self.model.tenants.iter().zip(&mut self.tenant_tallies) {
            let first = tenant.first_member as usize;
            for member in &self.members[first..first + tenant.count as usize] {
                if member.counted || member.polls > 0 {
                    tally.share(member.polls, tenant.weight);
                }
            }
            if tenant.host_loop.is_some() {
                tally.looping_hosts = u64::from(tenant.count) * u64::from(tenant.hosts);
            }
        }
    }

    /// Pushes the first arrival of every member, and the first reconnect of every host.
    fn start(&mut self) {
        self.plan_reconnects();
        for (class, member) in members(self.model) {
            if let Arrivals::ClosedLoop { tasks, .. } = &self.model.tenants[class as usize].arrivals
            {
                (1..*tasks).for_each(|_| self.push_create(class, member, 0));
            }
            if let Some(time) = self.first_arrival(class, member) {
                self.push_create(class, member, time);
            }
        }
    }

    /// The first arrival of a member.
    fn first_arrival(&mut self, class: u16, member: u32) -> Option<u64> {
        let key = self.member_key(class, member);
        match &self.model.tenants[class as usize].arrivals {
            Arrivals::AtOnce { at, .. } => Some(*at),
            Arrivals::Offset { after: phase, .. } | Arrivals::Periodic { phase, .. } => {
                Some(phase.draw(|| key.draw(Purpose::Phase, 0)))
            }
            Arrivals::Poisson { gap, .. } => Some(exponential(*gap, key.draw(Purpose::Arrival, 0))),
            Arrivals::OnOff { on, .. } => {
                self.members[member as usize].phase_end = on.draw(|| key.draw(Purpose::OnOff, 0));
                self.on_off_arrival(class, member, 0)
            }
            Arrivals::Recorded(times) => times.first().copied(),
            Arrivals::ClosedLoop { .. } => Some(0),
        }
    }

    /// The arrival of a member that follows the one of its last task at `time`.
    fn next_arrival(&mut self, class: u16, member: u32, time: u64) -> Option<u64> {
        let created = self.members[member as usize].created;
        let key = self.member_key(class, member);
        match &self.model.tenants[class as usize].arrivals {
            Arrivals::AtOnce { tasks, .. } | Arrivals::Offset { tasks, .. } => {
                (created < *tasks).then_some(time)
            }
            Arrivals::Periodic { every, limit, .. } => {
                (created < *limit).then(|| time.saturating_add(*every))
            }
            Arrivals::Poisson { gap, limit } => (created < *limit).then(|| {
                time.saturating_add(exponential(
                    *gap,
                    key.draw(Purpose::Arrival, u64::from(created)),
                ))
            }),
            Arrivals::OnOff { .. } => self.on_off_arrival(class, member, time),
            Arrivals::Recorded(times) => times.get(created as usize).copied(),
            Arrivals::ClosedLoop { .. } => None,
        }
    }

    /// The next arrival after `time` of a stream that is Poisson while on.
    fn on_off_arrival(&mut self, class: u16, member: u32, time: u64) -> Option<u64> {
        let Arrivals::OnOff { gap, on, off } = &self.model.tenants[class as usize].arrivals else {
            return None;
        };
        let key = self.member_key(class, member);
        let state = &mut self.members[member as usize];
        let mut at = time.saturating_add(exponential(
            *gap,
            key.draw(Purpose::Arrival, u64::from(state.created)),
        ));
        let first_phase = state.phase;
        while at > state.phase_end {
            if state.phase - first_phase >= PHASES_WITHOUT_ARRIVAL {
                self.failed = Some(RunError::NoArrival {
                    tenant: self.model.tenants[class as usize].name.clone(),
                    at_s: seconds(state.phase_end),
                });
                return None;
            }
            let rest = at - state.phase_end;
            let pause = off.draw(|| key.draw(Purpose::OnOff, 2 * u64::from(state.phase) + 1));
            let start = state.phase_end.saturating_add(pause);
            if start >= self.model.horizon {
                return None;
            }
            state.phase += 1;
            state.phase_end = start
                .saturating_add(on.draw(|| key.draw(Purpose::OnOff, 2 * u64::from(state.phase))));
            at = start.saturating_add(rest);
        }
        Some(at)
    }

    fn push_create(&mut self, class: u16, member: u32, time: u64) {
        self.push_create_in(Step::Ends, class, member, time);
    }

    /// `step` is that of the creation's cause, where it is a late one: it comes no sooner than what caused it.
    fn push_create_in(&mut self, step: Step, class: u16, member: u32, time: u64) {
        if time < self.model.horizon {
            let order = order(step, member, self.members[member as usize].created);
            self.queue
                .push(Event::new(time, order, Kind::Create, class, member));
        }
    }

    #[inline]
    fn member_key(&self, class: u16, member: u32) -> Key {
        let tenant = &self.model.tenants[class as usize];
        self.key
            .part(tenant.key)
            .part(u64::from(member - tenant.first_member))
    }
}

/// Every member, with its class.
fn members(model: &Model) -> impl Iterator<Item = (u16, u32)> {
    let classes = (0u16..).zip(&model.tenants);
    classes.flat_map(|(class, t)| {
        (t.first_member..t.first_member + t.count).map(move |member| (class, member))
    })
}

/// A time in seconds, exactly.
pub fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// An exponential time of mean `mean` ns.
fn exponential(mean: f64, bits: u64) -> u64 {
    (-mean * libm::log1p(-random::unit(bits)) + 0.5) as u64
}

/// Asks the processor to fetch what is likely to be used soon.
#[inline]
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault; the pointer comes from a reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        _mm_prefetch(start, _MM_HINT_T0);
        _mm_prefetch(start.wrapping_add(64), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
