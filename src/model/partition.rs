//! Which parts of a run have nothing to do with each other.

use super::{Arrivals, Model, Partition, Per, Schedule};

/// Tasks alive at once in a part, about: their states stay in a processor's cache.
const ALIVE_PER_PART: f64 = 1024.0;
/// Smaller runs are not worth parting into groups of servers.
const ALIVE_TO_PART: f64 = 4.0 * ALIVE_PER_PART;

/// The smallest parts.
pub fn finest(model: &Model) -> Partition {
    let open = |arrivals: &Arrivals| !matches!(arrivals, Arrivals::ClosedLoop { .. });
    if !model.tenants.iter().all(|t| open(&t.arrivals)) {
        return Partition::Whole;
    }
    if tasks_are_alone(model) {
        return Partition::Tasks;
    }
    if servers_are_alone(model) {
        return Partition::Servers(model.server_count());
    }
    Partition::Whole
}

/// The parts that make a run faster.
pub fn worth_while(model: &Model) -> Partition {
    let Partition::Servers(servers) = finest(model) else {
        return finest(model);
    };
    let alive = model.alive();
    if alive < ALIVE_TO_PART || servers < 2 {
        return Partition::Whole;
    }
    Partition::Servers(((alive / ALIVE_PER_PART) as u32).min(servers))
}

/// Does no task meet another one anywhere?
fn tasks_are_alone(model: &Model) -> bool {
    let servers = model.servers.iter().all(|s| {
        let shared = !s.limits.is_empty() || s.outage.is_some() || s.reads_late();
        s.is_instant() && !shared && s.slow.is_empty() && s.growth == 0.0
    });
    servers && model.pairs.iter().all(|pair| !pair.coupled)
}

/// Do tasks meet others at their server only?
fn servers_are_alone(model: &Model) -> bool {
    let hosts = model.tenants.iter().all(|t| {
        let carrier = &model.carriers[t.policy];
        t.host_loop.is_none()
            && t.reconnect.is_none()
            && carrier.schedule == Schedule::PerTask
            // The most polls held at once are counted for all servers of a class.
            && carrier.hold == 0
    });
    let mut limits = model.servers.iter().flat_map(|s| &s.limits);
    model.budget.is_none() && hosts && limits.all(|limit| limit.per == Per::Server)
}

impl Model {
    /// Tasks alive at once, about.
    pub fn alive(&self) -> f64 {
        let class = |t: &super::TenantClass| {
            let duration = (t.duration.mean() / self.horizon as f64).min(1.0);
            t.arrivals.expected(self.horizon) * f64::from(t.count) * duration
        };
        self.tenants.iter().map(class).sum()
    }
}

impl Arrivals {
    /// Tasks of one member before `horizon`, about.
    pub fn expected(&self, horizon: u64) -> f64 {
        let horizon = horizon as f64;
        match self {
            Arrivals::AtOnce { tasks, .. }
            | Arrivals::Offset { tasks, .. }
            | Arrivals::ClosedLoop { tasks, .. } => f64::from(*tasks),
            Arrivals::Periodic { every, limit, .. } => {
                (horizon / (*every).max(1) as f64).min(f64::from(*limit))
            }
            Arrivals::Poisson { gap, limit } => (horizon / gap).min(f64::from(*limit)),
            Arrivals::OnOff { gap, on, off } => {
                let on = on.mean();
                horizon / gap * (on / (on + off.mean()).max(1.0))
            }
            Arrivals::Recorded(times) => times.len() as f64,
        }
    }
}
