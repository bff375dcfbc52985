//! The scenario made ready to run: names become indices, durations integers, mixtures tables.
//!
//! Nothing here can fail: whatever could be wrong was told by [`crate::scenario`]. Classes are put in the order of their
//! names, because that order decides between events of one instant.

mod compile;
pub mod distribution;
mod hints;

pub use distribution::TimeSampler;
pub use hints::{HintSource, Part};

use std::sync::Arc;

use crate::policy::Policy;

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
    /// Hash of the resolved scenario.
    pub scenario_hash: u64,
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
    /// Is `tasks/cancel` sent?
    pub cancels: bool,
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
}

impl ServerClass {
    /// Is the end of a task unknown until it has come, because tasks wait for their turn?
    pub fn limits_execution(&self) -> bool {
        self.executes != u32::MAX
    }

    /// Must a poll be answered when its service ends, because what the answer says is not known before?
    pub fn reads_late(&self) -> bool {
        self.limits_execution() || matches!(self.hint, HintSource::ByLoad(_))
    }
}

impl Model {
    /// All hosts.
    pub fn members(&self) -> u32 {
        self.tenants.last().map_or(0, |t| t.first_member + t.count)
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
