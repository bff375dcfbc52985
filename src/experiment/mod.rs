//! Many runs: replications in parallel, estimates, objectives, grids.
//!
//! A replication is a pure function of (model, number), so they run on any number of threads and in any order with the
//! same bytes: values are kept by number, and pooled tallies are sums of integers.

pub mod choose;
pub mod compare;
pub mod cost;
pub mod decision;
pub mod estimate;
pub mod gate;
pub mod jobs;
pub mod optimise;
pub mod plan;
pub mod policies;
pub mod store;
pub mod sweep;
pub mod what_if;
pub mod worst_hint;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::catalogue;
use crate::engine::{self, Outcome, RunError, Totals};
use crate::metrics::alerts::{Alert, alerts};
use crate::metrics::summary::{self, Group, Tallies};
use crate::metrics::tally::{PairTally, ServerTally, TenantTally};
use crate::model::Model;
use crate::scenario::Scenario;
use crate::scenario::written::Objective;
pub use estimate::Estimate;

/// What is kept of one replication.
#[derive(Clone, Debug)]
pub struct Replication {
    /// Its number.
    pub number: u32,
    /// For each group, the values in the order of [`catalogue::names`].
    pub values: Vec<Vec<Option<f64>>>,
    /// Fingerprint of its polls.
    pub fingerprint: u64,
    /// Counts over the whole run.
    pub totals: Totals,
}

impl Replication {
    /// What is kept of an outcome.
    pub fn new(outcome: &Outcome, groups: &[Group], model: &Model) -> Self {
        let values = |group: &Group| {
            let (pairs, servers) = (&outcome.pairs, &outcome.servers);
            let tallies = Tallies::of(*group, pairs, servers, &outcome.tenants, model);
            summary::values(&tallies, model)
        };
        Replication {
            number: outcome.replication,
            values: groups.iter().map(values).collect(),
            fingerprint: outcome.fingerprint,
            totals: outcome.totals,
        }
    }

    /// One of which nothing is defined.
    pub fn undefined(number: u32, groups: usize) -> Self {
        Replication {
            number,
            values: vec![vec![None; catalogue::names().len()]; groups],
            fingerprint: 0,
            totals: Totals::default(),
        }
    }
}

/// Everything a scenario's runs gave.
#[derive(Clone, Debug)]
pub struct Results {
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Finished replications, by number.
    pub replications: Vec<Replication>,
    /// Tallies of (tenant class, server class), summed over the replications.
    pub pairs: Vec<PairTally>,
    /// Tallies of server classes, summed over the replications.
    pub servers: Vec<ServerTally>,
    /// Tallies of tenant classes, summed over the replications.
    pub tenants: Vec<TenantTally>,
    /// For each group and metric, the estimate.
    pub estimates: Vec<Vec<Estimate>>,
    /// How the objectives fare.
    pub verdicts: Vec<Verdict>,
    /// What a planner should look at.
    pub alerts: Vec<Alert>,
    /// Was the run stopped before all replications were done?
    pub interrupted: bool,
}

/// How an objective fares.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The objective.
    pub objective: Objective,
    /// The estimate it is held against.
    pub estimate: Estimate,
    /// Is the metric defined in every replication?
    pub defined: bool,
    /// Is it, and the mean inside the bounds?
    pub met: bool,
}

impl Verdict {
    /// Holds an objective against an estimate over so many replications. What is undefined in any of them meets nothing.
    pub fn new(objective: &Objective, estimate: Estimate, replications: usize) -> Self {
        let defined = replications > 0 && estimate.n as usize == replications;
        let met = defined
            && estimate.mean.is_some_and(|mean| {
                objective.max.is_none_or(|max| mean <= max)
                    && objective.min.is_none_or(|min| mean >= min)
            });
        Verdict {
            objective: objective.clone(),
            estimate,
            defined,
            met,
        }
    }

    /// Does the objective hold at the unfavourable end of the interval (at the mean where there is none)?
    pub fn holds_at_the_bound(&self) -> bool {
        self.met && self.excess() <= 0.0
    }

    /// The end of the interval that an upper bound (else a lower one) is held against; the mean where there is no interval. `None` where the metric is undefined in a replication.
    pub fn unfavourable_end(&self) -> Option<f64> {
        let e = self.defined.then_some(&self.estimate)?;
        let end = match self.objective.max {
            Some(_) => e.hi,
            None => e.lo,
        };
        end.or(e.mean)
    }

    /// By how much the unfavourable end lies outside the bounds; at most 0 where it lies inside, infinite where the metric is undefined in a replication.
    pub fn excess(&self) -> f64 {
        if !self.defined {
            return f64::INFINITY;
        }
        let e = &self.estimate;
        let (low, high) = (e.lo.or(e.mean), e.hi.or(e.mean));
        let above = self
            .objective
            .max
            .map(|max| high.map_or(f64::INFINITY, |high| high - max));
        let below = self
            .objective
            .min
            .map(|min| low.map_or(f64::INFINITY, |low| min - low));
        above
            .into_iter()
            .chain(below)
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Wrapping sum of the fingerprints: one number for all replications.
pub fn fingerprint(replications: &[Replication]) -> u64 {
    replications
        .iter()
        .fold(0, |sum, r| sum.wrapping_add(r.fingerprint))
}

/// Runs the replications of a scenario on the current thread pool. `done` is called after each; `stop` ends the run early,
/// keeping what is finished.
///
/// # Errors
/// [`RunError`] of the first replication (by number) that failed; interruption is no error here.
pub fn run(
    scenario: &Scenario,
    stop: &AtomicBool,
    done: impl Fn(&Outcome) + Sync,
) -> Result<Results, RunError> {
    let mut model = Model::new(scenario);
    // Replications come first; threads that they leave idle share one.
    let threads = rayon::current_num_threads() as u32;
    model.threads = (threads / scenario.run.replications.0.max(1)).max(1);
    let model = model;
    let groups = Group::all(&model);
    let worst_hints =
        worst_hint::asked(&scenario.objective).then(|| worst_hint::Runs::new(scenario));
    let empty = || -> Vec<PairTally> {
        let pairs = model.tenants.len() * model.servers.len();
        (0..pairs).map(|_| PairTally::new(model.horizon)).collect()
    };
    let pooled = Mutex::new((
        empty(),
        model
            .servers
            .iter()
            .map(|_| ServerTally::new(model.horizon, 0))
            .collect::<Vec<_>>(),
        vec![TenantTally::default(); model.tenants.len()],
    ));
    let finished: Vec<Result<Replication, RunError>> = (0..scenario.run.replications.0)
        .into_par_iter()
        .with_max_len(1)
        .map(|number| {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let outcome = engine::run(&model, number, None, stop)?;
            let mut replication = Replication::new(&outcome, &groups, &model);
            if let Some(runs) = &worst_hints {
                runs.fill(&mut replication, stop)?;
            }
            if let Ok(mut pooled) = pooled.lock() {
                let (pairs, servers, tenants) = &mut *pooled;
                pairs
                    .iter_mut()
                    .zip(&outcome.pairs)
                    .for_each(|(sum, one)| sum.merge(one));
                servers
                    .iter_mut()
                    .zip(&outcome.servers)
                    .for_each(|(sum, one)| sum.merge(one));
                tenants
                    .iter_mut()
                    .zip(&outcome.tenants)
                    .for_each(|(sum, one)| sum.merge(one));
            }
            done(&outcome);
            Ok(replication)
        })
        .collect();
    let mut replications = Vec::new();
    for result in finished {
        match result {
            Ok(replication) => replications.push(replication),
            Err(RunError::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    let (pairs, servers, tenants) = pooled
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut results = Results {
        groups: groups.iter().map(|g| g.name(&model)).collect(),
        interrupted: stop.load(Ordering::Relaxed),
        estimates: estimates(&replications, groups.len(), scenario.run.confidence.0),
        replications,
        pairs,
        servers,
        tenants,
        verdicts: Vec::new(),
        alerts: Vec::new(),
    };
    results.verdicts = scenario
        .objective
        .iter()
        .map(|o| results.judge(o))
        .collect();
    let finished = results.replications.len().max(1) as u64;
    let limits = abort_limits_ms(scenario, &model, &groups);
    results.alerts = alerts(
        &results.pairs,
        &results.servers,
        &results.tenants,
        finished,
        &model,
        &limits,
    );
    Ok(results)
}

/// For each pair of tenant and server class, the strictest objective on an abort latency of a group that it belongs to.
fn abort_limits_ms(scenario: &Scenario, model: &Model, groups: &[Group]) -> Vec<Option<f64>> {
    let servers = model.servers.len();
    let objectives: Vec<(Group, f64)> = scenario
        .objective
        .iter()
        .filter(|o| o.metric.starts_with("abort_latency") && o.metric.ends_with("_ms"))
        .filter_map(|o| {
            let group = groups.iter().find(|g| g.name(model) == o.over)?;
            Some((*group, o.max?))
        })
        .collect();
    (0..model.tenants.len() * servers)
        .map(|pair| {
            let own = objectives.iter().filter(|(g, _)| g.has(pair, servers));
            own.map(|(_, max)| *max).reduce(f64::min)
        })
        .collect()
}

fn estimates(replications: &[Replication], groups: usize, confidence: f64) -> Vec<Vec<Estimate>> {
    let metrics = catalogue::names().len();
    (0..groups)
        .map(|g| {
            (0..metrics)
                .map(|m| {
                    let values: Vec<Option<f64>> =
                        replications.iter().map(|r| r.values[g][m]).collect();
                    Estimate::new(&values, confidence)
                })
                .collect()
        })
        .collect()
}

impl Results {
    /// The estimate of a metric for a group; `None` where there is no such metric or group.
    pub fn estimate(&self, group: &str, metric: &str) -> Option<Estimate> {
        let g = self.groups.iter().position(|name| name == group)?;
        let m = catalogue::position(metric)?;
        Some(self.estimates[g][m])
    }

    /// The values of a metric for a group, one per replication.
    pub fn values(&self, group: &str, metric: &str) -> Vec<Option<f64>> {
        let g = self.groups.iter().position(|name| name == group);
        let m = catalogue::position(metric);
        match (g, m) {
            (Some(g), Some(m)) => self.replications.iter().map(|r| r.values[g][m]).collect(),
            _ => Vec::new(),
        }
    }

    /// Holds an objective against the estimates. What is undefined meets nothing.
    pub fn judge(&self, objective: &Objective) -> Verdict {
        judge(
            objective,
            &self.groups,
            &self.estimates,
            self.replications.len(),
        )
    }
}

/// Holds an objective against the estimates of these groups. What is undefined in any replication meets nothing.
pub fn judge(
    objective: &Objective,
    groups: &[String],
    estimates: &[Vec<Estimate>],
    replications: usize,
) -> Verdict {
    let group = groups.iter().position(|name| *name == objective.over);
    let metric = catalogue::position(&objective.metric);
    let found = group
        .zip(metric)
        .and_then(|(g, m)| Some(*estimates.get(g)?.get(m)?));
    Verdict::new(
        objective,
        found.unwrap_or(Estimate::UNDEFINED),
        replications,
    )
}

/// The names of a scenario's groups, in the order of their results.
pub use crate::scenario::checks::groups as group_names;

#[cfg(test)]
pub(crate) mod tests {
    /// A small fleet for unit tests.
    pub const SMALL: &str = r#"
        [run]
        horizon = "20s"
        replications = 3
        [[server]]
        name = "s"
        [[tenant]]
        name = "t"
        arrivals = { poisson = { rate = "1/s" } }
        duration = "3s"
        servers = { s = 1 }
        policy = "p"
        [policy.p]
        default = "1s"
    "#;

    use super::*;

    #[test]
    fn an_objective_without_samples_is_not_met() {
        let text = format!(
            "{SMALL}\n[[objective]]\nmetric = \"abort_latency_p99_ms\"\nmax = 1000\n[[objective]]\nmetric = \"completion_latency_max_ms\"\nmax = 1000"
        );
        let scenario = crate::scenario::parse("test", &text, &[]).unwrap().scenario;
        let results = run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
        let met: Vec<bool> = results.verdicts.iter().map(|v| v.met).collect();
        assert_eq!(met, [false, true]);
    }

    #[test]
    fn a_stopped_run_keeps_what_is_finished() {
        let scenario = crate::scenario::parse("test", SMALL, &["run.replications=2".into()])
            .unwrap()
            .scenario;
        let results = run(&scenario, &AtomicBool::new(true), |_| {}).unwrap();
        assert!(results.interrupted);
    }
}
