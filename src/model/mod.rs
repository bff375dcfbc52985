//! The scenario made ready to run: names become indices, durations integers, mixtures tables.
//!
//! Nothing here can fail: whatever could be wrong was told by [`crate::scenario`]. Classes are put in the order of their
//! names, because that order decides between events of one instant.

mod compile;
pub mod distribution;
mod faults;
mod hints;
mod limits;
mod partition;
mod quantiles;

pub use compile::compile_policy;
pub use distribution::TimeSampler;
pub use faults::{HostLoop, Input, Notifications, Outage, Reconnect, Slow};
pub use hints::{HintSource, Mix, Part};
pub use limits::{
    Breaker, Bucket, Budget, FRACTION, HeldBack, Limit, LimitKind, MinimumGap, Opens, Per, Retries,
    RetryAfter,
};

use std::sync::Arc;

use crate::policy::{Policy, RawHint, Steady};

/// Everything the engine needs of a scenario.
#[derive(Clone, Debug)]
pub struct Model {
    /// The seed of every draw.
    pub seed: u64,
    /// Tasks arrive before this.
    pub horizon: u64,
    /// Observation starts here.
    pub warm_up: u64,
    /// Nothing after this instant happens: the horizon without a drain, else [`u64::MAX`].
    pub stop: u64,
    /// Limit on events.
    pub event_limit: u64,
    /// Tenant classes, by name.
    pub tenants: Vec<TenantClass>,
    /// Server classes, by name.
    pub servers: Vec<ServerClass>,
    /// Policies; tenant classes refer to them by index.
    pub policies: Vec<Policy>,
    /// How the polls of each policy are carried.
    pub carriers: Vec<Carrier>,
    /// (tenant class, server class), tenant-major.
    pub pairs: Vec<Pair>,
    /// Budgets of all hosts together.
    pub budget: Option<Budget>,
    /// Hash of the resolved scenario.
    pub scenario_hash: u64,
    /// How a run falls into parts that have nothing to do with each other.
    pub partition: Partition,
    /// Threads that share one run.
    pub threads: u32,
}

/// How a run falls into parts that have nothing to do with each other. The outcome is the same, byte for byte, whatever the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// Not at all.
    Whole,
    /// Groups of servers, so many, each with the tasks that run there.
    Servers(u32),
    /// Each task.
    Tasks,
}

/// A tenant class.
#[derive(Clone, Debug)]
pub struct TenantClass {
    /// Its name.
    pub name: String,
    /// Number of its first member among all members.
    pub first_member: u32,
    /// How many members it has.
    pub count: u32,
    /// Hash of its name, the root of its draws.
    pub key: u64,
    /// When its tasks come.
    pub arrivals: Arrivals,
    /// How long they run.
    pub duration: TimeSampler,
    /// Cumulative shares of the server classes below.
    pub server_shares: Vec<f64>,
    /// Server classes, as indices.
    pub server_classes: Vec<u16>,
    /// Cumulative shares of completed, failed, cancelled.
    pub end_shares: [f64; 3],
    /// Delay of the creation.
    pub creation_delay: TimeSampler,
    /// When and how its callers give up.
    pub abort: Option<Abort>,
    /// Its policy, as an index.
    pub policy: usize,
    /// Number of its first host among all hosts.
    pub first_host: u32,
    /// Hosts of each member.
    pub hosts: u32,
    /// Its share of a budget.
    pub weight: f64,
    /// Tasks that pause for an answer.
    pub input: Option<Input>,
    /// When its hosts start again.
    pub reconnect: Option<Reconnect>,
    /// The capacity of its hosts.
    pub host_loop: Option<HostLoop>,
    /// What its polling costs.
    pub cost: Cost,
}

/// What polling costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Price of a request.
    pub request: f64,
    /// Tokens burnt by a poll.
    pub poll_tokens: f64,
    /// Price of a token.
    pub token: f64,
}

/// What a tenant class and a server class have in common.
#[derive(Clone, Debug)]
pub struct Pair {
    /// One-way delay of its polls.
    pub delay: TimeSampler,
    /// Can anything but a full queue keep a poll from being served, or change what it reads?
    pub guarded: bool,
    /// Do its loops depend on each other, or on anything that only the clock can tell? Then timers, answers and aborts are events.
    pub coupled: bool,
    /// The decisions of its loops, where they are ready made.
    pub waits: Option<Steady>,
    /// What a poll in the middle of a loop needs to know, where such polls are all alike.
    pub lane: Option<Lane>,
    /// … of a coupled loop.
    pub coupled_lane: Option<Lane>,
}

/// What a poll in the middle of a loop needs to know: one that is served, finds its task as it was, and is followed by the next one.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The policy, as an index.
    pub policy: usize,
    /// So many polls are sent at most.
    pub max_polls: u32,
    /// Is the jitter of waits drawn?
    pub draws_jitter: bool,
    /// What a timer is late by.
    pub overhead: u64,
    /// The hint, where it is always the same.
    pub hint: Option<RawHint>,
    /// Does a request take the server no time, so that none ever waits for another?
    pub instant: bool,
    /// How long it takes.
    pub service: TimeSampler,
    /// So many wait at most.
    pub queue_limit: u64,
    /// Polls later than this after the task's creation stand at the end of a loop.
    pub lifetime: u64,
    /// A request is given up after this; [`crate::policy::FOREVER`] for never.
    pub timeout: u64,
}

/// How the polls of a policy are carried: what stands around its decisions.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// A request is given up after this; [`crate::policy::FOREVER`] for never.
    pub timeout: u64,
    /// Requests sent together.
    pub requests_per_poll: u32,
    /// Retries that the policy does not see.
    pub retries: Option<Retries>,
    /// Does an unknown task end the loop?
    pub unknown_ends: bool,
    /// How long a poll is held at the server; 0 for not at all.
    pub hold: u64,
    /// What a notification does.
    pub push: Push,
    /// Does the loop run on the server?
    pub on_server: bool,
    /// Between host and server.
    pub breaker: Option<Breaker>,
    /// How the timers of a host's tasks hang together.
    pub schedule: Schedule,
    /// Tasks that share a request, with a common timer.
    pub batch: u32,
    /// Does a loop share a request of its task that is in flight?
    pub lease: bool,
    /// Polls in flight between a host and a server; [`u32::MAX`] for no limit.
    pub in_flight: u32,
}

/// How the timers of one host's tasks hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each task has its own.
    PerTask,
    /// One, at the earliest due: all tasks are polled.
    LeastInterval,
    /// One, at the earliest due: those that are due are polled.
    EarliestDue,
}

/// What a notification of a changed status does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// Nothing.
    Ignored,
    /// A poll is sent.
    Wakes,
    /// It counts as an answer.
    Replaces,
    /// A new wait begins.
    Restarts,
    /// The next poll is left out.
    Postpones,
}

/// When and how callers give up.
#[derive(Clone, Debug)]
pub struct Abort {
    /// Share of tasks to which `after` applies.
    pub probability: f64,
    /// Time from creation.
    pub after: Option<TimeSampler>,
    /// A shutdown of the host.
    pub shutdown_at: Option<u64>,
    /// The caller's patience.
    pub deadline: Option<u64>,
    /// Does the caller wait for a poll in flight?
    pub waits_for_request: bool,
    /// What becomes of the task.
    pub then: Then,
    /// How long the caller waits for the answer to `tasks/cancel`.
    pub cancel_bound: u64,
    /// Control returns so long after the abort at the latest; [`crate::policy::FOREVER`] for no such limit.
    pub grace: u64,
    /// `notifications/cancelled` that are sent.
    pub notices: Notices,
}

/// What becomes of an aborted task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The id is kept.
    Detach,
    /// `tasks/cancel` is sent.
    Cancel,
    /// The id is lost.
    Forget,
}

/// `notifications/cancelled` after an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notices {
    /// None.
    None,
    /// One.
    One,
    /// One for each request of the task.
    PerRequest,
}

/// When tasks come.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// `tasks` at `at`.
    AtOnce {
        /// How many.
        tasks: u32,
        /// When.
        at: u64,
    },
    /// `tasks` at an offset drawn once per member.
    Offset {
        /// How many.
        tasks: u32,
        /// The offset.
        after: TimeSampler,
    },
    /// One every period.
    Periodic {
        /// The period.
        every: u64,
        /// The first one.
        phase: TimeSampler,
        /// At most so many.
        limit: u32,
    },
    /// A Poisson process.
    Poisson {
        /// Mean time between arrivals, ns.
        gap: f64,
        /// At most so many.
        limit: u32,
    },
    /// Poisson while on.
    OnOff {
        /// Mean time between arrivals while on, ns.
        gap: f64,
        /// Length of an on phase.
        on: TimeSampler,
        /// Length of an off phase.
        off: TimeSampler,
    },
    /// Recorded times, ascending.
    Recorded(Arc<[u64]>),
    /// `tasks` at a time.
    ClosedLoop {
        /// How many.
        tasks: u32,
        /// Pause between them.
        think: TimeSampler,
    },
}

/// A server class.
#[derive(Clone, Debug)]
pub struct ServerClass {
    /// Its name.
    pub name: String,
    /// Number of its first server among all servers.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// Tasks executed at once; [`u32::MAX`] for no limit.
    pub executes: u32,
    /// Requests served at once.
    pub workers: u32,
    /// Service time.
    pub service: TimeSampler,
    /// Requests that may wait.
    pub queue_limit: u64,
    /// One-way delay.
    pub delay: TimeSampler,
    /// What it suggests.
    pub hint: HintSource,
    /// Growth of the service for each request found.
    pub growth: f64,
    /// Rate limits.
    pub limits: Vec<Limit>,
    /// What stands in its refusals.
    pub retry_after: RetryAfter,
    /// What stands in its good answers.
    pub retry_after_on_success: Option<u64>,
    /// Shortest time between two polls of a task.
    pub minimum_gap: Option<MinimumGap>,
    /// When it is down.
    pub outage: Option<Outage>,
    /// When it is slow.
    pub slow: Vec<Slow>,
    /// Probability that a request is lost.
    pub request_loss: f64,
    /// Probability that an answer is lost.
    pub answer_loss: f64,
    /// Age at which a task is deleted; [`crate::policy::FOREVER`] for never.
    pub ttl: u64,
    /// Notifications that it sends.
    pub notifications: Option<Notifications>,
    /// Hash of its name, the root of its own draws.
    pub key: u64,
}

impl ServerClass {
    /// Is the end of a task unknown until it has come, because tasks wait for their turn?
    pub fn limits_execution(&self) -> bool {
        self.executes != u32::MAX
    }

    /// Does a request take it no time, so that none ever waits for another?
    #[inline]
    pub fn is_instant(&self) -> bool {
        self.service.as_constant() == Some(0)
    }

    /// Must a poll be answered when its service ends, because what the answer says is not known before?
    pub fn reads_late(&self) -> bool {
        self.limits_execution() || matches!(self.hint, HintSource::ByLoad(_))
    }
}

impl Model {
    /// Falls into the smallest parts that there are, whether it is worth while or not.
    pub fn part_all(&mut self) {
        self.partition = partition::finest(self);
    }

    /// Couples every pair, needed or not: timers, answers and aborts all become events. The outcome is the same, byte for byte, and slower; tests
    /// hold the engine's two ways equal with it.
    pub fn couple_all(&mut self) {
        for pair in &mut self.pairs {
            pair.coupled = true;
        }
        compile::find_lanes(self);
        self.partition = Partition::Whole;
    }

    /// All tenants.
    pub fn members(&self) -> u32 {
        self.tenants.last().map_or(0, |t| t.first_member + t.count)
    }

    /// The host of a task: the tasks of a tenant go to its hosts in turn.
    pub fn host_of(&self, class: u16, member: u32, ordinal: u32) -> u32 {
        let tenant = &self.tenants[class as usize];
        tenant.first_host + (member - tenant.first_member) * tenant.hosts + ordinal % tenant.hosts
    }

    /// All hosts.
    pub fn hosts(&self) -> u32 {
        self.tenants
            .last()
            .map_or(0, |t| t.first_host + t.count * t.hosts)
    }

    /// All servers.
    pub fn server_count(&self) -> u32 {
        self.servers.last().map_or(0, |s| s.first + s.count)
    }

    /// Does `time` lie in [warm-up, horizon)?
    #[inline]
    pub fn observed(&self, time: u64) -> bool {
        time.wrapping_sub(self.warm_up) < self.horizon - self.warm_up
    }

    /// The part of [from, to) inside [warm-up, horizon).
    #[inline]
    pub fn observed_part(&self, from: u64, to: u64) -> u64 {
        to.min(self.horizon).saturating_sub(from.max(self.warm_up))
    }
}
