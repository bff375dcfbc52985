//! The four trips: what is looked at in which condition, and what is found.

use serde::Serialize;

use super::{Condition, Tried, loops, traffic};
use crate::engine::RunError;
use crate::experiment::{Results, Verdict};
use crate::metrics::summary::Group;
use crate::model::{Abort, Model};
use crate::scenario::Scenario;
use crate::scenario::units::Duration;
use crate::scenario::written::Objective;

/// What may go wrong with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trip {
    /// A server can force a near-tight loop.
    TightLoop,
    /// An abort takes longer than its objective allows.
    AbortLatency,
    /// Poll traffic is unbounded across tasks.
    UnboundedTraffic,
    /// Durable state cannot be reconciled after a local stop.
    Unreconciled,
}

impl Trip {
    /// All of them, in the order of their numbers from 1.
    pub const ALL: [Trip; 4] = [
        Trip::TightLoop,
        Trip::AbortLatency,
        Trip::UnboundedTraffic,
        Trip::Unreconciled,
    ];

    /// What there is where it is tripped.
    pub fn what(self) -> &'static str {
        match self {
            Trip::TightLoop => "a near-tight loop that a server can force",
            Trip::AbortLatency => "an abort latency beyond its objective",
            Trip::UnboundedTraffic => "poll traffic that is unbounded across tasks",
            Trip::Unreconciled => "durable state that cannot be reconciled after a local stop",
        }
    }
}

/// A trip with what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tripped {
    /// Which trip.
    pub trip: Trip,
    /// What was found, the worst of each condition first.
    pub findings: Vec<Finding>,
}

impl Tripped {
    /// Is it tripped? One finding is enough; `None`, where none says so and one is unknown.
    pub fn tripped(&self) -> Option<bool> {
        let any = |wanted| self.findings.iter().any(|f| f.tripped == wanted);
        match () {
            () if any(Some(true)) => Some(true),
            () if any(None) || self.findings.is_empty() => None,
            () => Some(false),
        }
    }
}

/// A value against its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Where it was found; `None` in the scenario itself.
    pub condition: Option<Condition>,
    /// The tenant class; empty where it is of several.
    pub tenant: String,
    /// The server class; empty where it is of several.
    pub server: String,
    /// The metric; empty where nothing was measured.
    pub metric: String,
    /// Its value.
    pub value: Option<f64>,
    /// What it is held against.
    pub bound: Option<f64>,
    /// Does it trip? `None` where that is unknown.
    pub tripped: Option<bool>,
    /// The finding in words.
    pub evidence: String,
}

impl Finding {
    pub(super) fn new(
        condition: Option<Condition>,
        tripped: Option<bool>,
        evidence: String,
    ) -> Self {
        Finding {
            condition,
            tenant: String::new(),
            server: String::new(),
            metric: String::new(),
            value: None,
            bound: None,
            tripped,
            evidence,
        }
    }

    pub(super) fn measured(self, metric: &str, value: Option<f64>, bound: Option<f64>) -> Self {
        Finding {
            metric: metric.into(),
            value,
            bound,
            ..self
        }
    }

    pub(super) fn at(self, tenant: &str, server: &str) -> Self {
        Finding {
            tenant: tenant.into(),
            server: server.into(),
            ..self
        }
    }

    /// Of a group as results name it.
    pub(super) fn over(self, group: &str) -> Self {
        let tenant = group.strip_prefix("tenant.").unwrap_or_default();
        let server = group.strip_prefix("server.").unwrap_or_default();
        self.at(tenant, server)
    }

    /// How bad it is beside others of its kind: value ÷ bound, or the value where the bound is 0.
    fn ratio(&self) -> f64 {
        match (self.value, self.bound) {
            (Some(value), Some(bound)) if bound > 0.0 => value / bound,
            (Some(value), _) => value,
            _ => 1.0,
        }
    }

    /// Trips first, then what is unknown, then what holds.
    fn rank(&self) -> u8 {
        match self.tripped {
            Some(true) => 0,
            None => 1,
            Some(false) => 2,
        }
    }
}

/// All four, each with its findings.
pub fn all(
    scenario: &Scenario,
    objectives: &[Objective],
    tight_loop: Option<Duration>,
    tried: &[Tried],
) -> Vec<Tripped> {
    let look = |trip: Trip| {
        let mut findings = match trip {
            Trip::UnboundedTraffic => traffic::declared(scenario),
            _ => Vec::new(),
        };
        for one in tried {
            let mut found = match (&one.results, trip) {
                (_, Trip::TightLoop) => loops::tight(one, tight_loop),
                (Err(error), _) => stopped(error, one.condition, trip),
                (Ok(results), Trip::AbortLatency) => abort_latencies(one, results, objectives),
                (Ok(results), Trip::UnboundedTraffic) => traffic::peaks(one, results),
                (Ok(results), Trip::Unreconciled) => orphans(one, results),
            };
            // A gap is bad where it is small, everything else where it is large.
            let worse = if trip == Trip::TightLoop { 1.0 } else { -1.0 };
            found.sort_by(|a, b| {
                let by_ratio = (worse * a.ratio()).total_cmp(&(worse * b.ratio()));
                a.rank().cmp(&b.rank()).then(by_ratio)
            });
            findings.extend(found);
        }
        Tripped { trip, findings }
    };
    Trip::ALL.map(look).to_vec()
}

/// What a run that stopped says: its loop is tight, and nothing else is known.
pub(super) fn stopped(error: &RunError, condition: Condition, trip: Trip) -> Vec<Finding> {
    let asked = trip != Trip::UnboundedTraffic || condition == Condition::Concurrency;
    if !asked {
        return Vec::new();
    }
    let (tenant, server, evidence) = match error {
        RunError::NoTime {
            what,
            tenant,
            server,
            at_s,
            ..
        } => (
            tenant.as_str(),
            server.as_str(),
            format!("the run stopped at {at_s} s: too many {what} at one instant"),
        ),
        RunError::EventLimit {
            limit,
            tenant,
            at_s,
        } => (
            tenant.as_str(),
            "",
            format!("the run stopped at {at_s} s, after {limit} events (run.event_limit)"),
        ),
        other => ("", "", format!("the run stopped: {other}")),
    };
    let tripped = (trip == Trip::TightLoop).then_some(true);
    vec![Finding::new(Some(condition), tripped, evidence).at(tenant, server)]
}

/// Milliseconds, with a decimal below 100.
pub(super) fn short(ms: f64) -> String {
    if ms >= 100.0 || ms == 0.0 {
        format!("{ms:.0}")
    } else {
        format!("{ms:.1}")
    }
}

/// Can a task of this class be aborted?
fn aborts(abort: &Abort) -> bool {
    let drawn = abort.probability > 0.0 && abort.after.is_some();
    drawn || abort.shutdown_at.is_some() || abort.deadline.is_some()
}

/// The objectives, where there are aborts.
fn abort_latencies(tried: &Tried, results: &Results, objectives: &[Objective]) -> Vec<Finding> {
    let model = Model::new(&tried.scenario);
    let servers = model.servers.len();
    let may_abort = |over: &str| {
        let group = Group::all(&model)
            .into_iter()
            .find(|g| g.name(&model) == over);
        group.is_some_and(|group| {
            (0..model.tenants.len() * servers).any(|pair| {
                let tenant = &model.tenants[pair / servers];
                let goes_there = tenant.server_classes.contains(&((pair % servers) as u16));
                group.has(pair, servers) && goes_there && tenant.abort.as_ref().is_some_and(aborts)
            })
        })
    };
    let asked = objectives
        .iter()
        .filter(|o| tried.condition == Condition::Cancellation || may_abort(&o.over));
    asked
        .map(|objective| {
            let verdict = results.judge(objective);
            let worst = verdict.unfavourable_end();
            let evidence = told(&verdict, worst, results.replications.len());
            Finding::new(
                Some(tried.condition),
                Some(!verdict.holds_at_the_bound()),
                evidence,
            )
            .measured(&objective.metric, worst, objective.max)
            .over(&objective.over)
        })
        .collect()
}

fn told(verdict: &Verdict, worst: Option<f64>, replications: usize) -> String {
    let Objective {
        metric, over, max, ..
    } = &verdict.objective;
    let bound = max.unwrap_or(f64::NAN);
    match worst {
        Some(worst) if verdict.estimate.n as usize == replications => {
            format!(
                "{metric} ({over}): at most {} ms, objective {bound} ms",
                short(worst)
            )
        }
        _ => format!(
            "{metric} ({over}): undefined in {} of {replications} replications (no abort, or one that never settled), objective {bound} ms",
            replications - verdict.estimate.n as usize
        ),
    }
}

/// Tasks whose end no one learns.
fn orphans(tried: &Tried, results: &Results) -> Vec<Finding> {
    let condition = Some(tried.condition);
    let model = Model::new(&tried.scenario);
    let servers = model.servers.len();
    let mut found = Vec::new();
    for (i, pair) in results
        .pairs
        .iter()
        .enumerate()
        .filter(|(_, p)| p.orphans > 0)
    {
        let tasks: u64 = pair.finals.iter().sum();
        let evidence = format!(
            "{} of {tasks} tasks are orphans: no one learns their end",
            pair.orphans
        );
        found.push(
            Finding::new(condition, Some(true), evidence)
                .measured("orphans", Some(pair.orphans as f64), Some(0.0))
                .at(
                    &model.tenants[i / servers].name,
                    &model.servers[i % servers].name,
                ),
        );
    }
    found.extend(unseen_orphans(tried, &model, results));
    if !found.is_empty() {
        return found;
    }
    let tasks: u64 = results.pairs.iter().flat_map(|p| p.finals).sum();
    let aborted: u64 = results.pairs.iter().map(|p| p.aborts).sum();
    let evidence = match tried.condition {
        Condition::Cancellation => {
            format!("no orphan among {tasks} tasks, {aborted} of them aborted")
        }
        _ => format!("no orphan among {tasks} tasks"),
    };
    vec![Finding::new(condition, Some(false), evidence).measured("orphans", Some(0.0), Some(0.0))]
}

/// Where a tenant class could leave orphans and nothing was seen of it.
fn unseen_orphans(tried: &Tried, model: &Model, results: &Results) -> Vec<Finding> {
    let condition = Some(tried.condition);
    let servers = model.servers.len();
    let mut found = Vec::new();
    for (class, tenant) in model.tenants.iter().enumerate() {
        for server in 0..servers {
            let pair = &results.pairs[class * servers + server];
            if tried.condition == Condition::Cancellation && pair.created > 0 && pair.aborts == 0 {
                let evidence = "none of its tasks was aborted: more replications show it";
                found.push(
                    Finding::new(condition, None, evidence.into())
                        .at(&tenant.name, &model.servers[server].name),
                );
            }
        }
        let own = &results.pairs[class * servers..(class + 1) * servers];
        if own.iter().flat_map(|p| p.finals).sum::<u64>() == 0 {
            let evidence = "no task was created in the observed interval";
            found.push(Finding::new(condition, None, evidence.into()).at(&tenant.name, ""));
        }
    }
    found
}
