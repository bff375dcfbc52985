//! May this policy be deployed? Six conditions, built in, and four trips: what a server, an abort or more tasks can make of it.
//!
//! Nothing is chosen here, and no objective but those on abort latencies is looked at. What could not be observed is no pass: a trip is passed only where every finding says so.

mod conditions;
mod loops;
mod traffic;
mod trips;

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::{Results, run};
use crate::catalogue::is_worst_hint;
use crate::engine::RunError;
use crate::scenario::Scenario;
use crate::scenario::units::{Duration, MS};
use crate::scenario::written::{Objective, Wire};
pub use conditions::{Condition, MORE_TASKS};
pub use trips::{Finding, Trip, Tripped};

/// A median gap below this is a near-tight loop, whatever the round trip is.
pub const TIGHT: Duration = Duration(20 * MS);
/// … and so is one below this many median round trips.
pub const TIGHT_ROUND_TRIPS: u64 = 2;

/// Replications of each hint by itself, or as many as the scenario asks for where that is fewer: every task meets the hint, so few show it.
pub const HINT_REPLICATIONS: u32 = 2;

/// A condition and what came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The condition.
    pub condition: Condition,
    /// The scenario under it.
    pub scenario: Scenario,
    /// Its results, or why it stopped: a loop that takes no time, or too many events.
    pub results: Result<Results, RunError>,
    /// Its hints, each by itself; none where it leaves the scenario's.
    pub hints: Vec<TriedHint>,
}

/// A hint that servers give to every task, and what came of it.
#[derive(Clone, Debug)]
pub struct TriedHint {
    /// The hint.
    pub hint: Wire,
    /// The scenario with it.
    pub scenario: Scenario,
    /// Its results, or why it stopped.
    pub results: Result<Results, RunError>,
}

/// The answer of the gate.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The objectives on abort latencies that were asked for.
    pub objectives: Vec<Objective>,
    /// The shortest median gap that was asked for, in place of [`TIGHT`] and [`TIGHT_ROUND_TRIPS`].
    pub tight_loop: Option<Duration>,
    /// The six conditions.
    pub tried: Vec<Tried>,
    /// The four trips.
    pub trips: Vec<Tripped>,
}

impl Answer {
    /// May the policies be deployed? Only if no trip is tripped, and nothing is unknown.
    pub fn passes(&self) -> bool {
        self.trips.iter().all(|t| t.tripped() == Some(false))
    }
}

/// Is this an upper bound on an abort latency?
pub fn bounds_abort_latency(objective: &Objective) -> bool {
    let metric = &objective.metric;
    objective.max.is_some() && metric.starts_with("abort_latency_") && metric.ends_with("_ms")
}

/// How many replications [`gate`] runs.
pub fn replications(scenario: &Scenario) -> u64 {
    let own = scenario.run.replications.0;
    let hints: usize = Condition::ALL.iter().map(|c| c.hints().len()).sum();
    Condition::ALL.len() as u64 * u64::from(own)
        + hints as u64 * u64::from(own.min(HINT_REPLICATIONS))
}

/// Runs the six conditions, and each of their hints by itself, on the current thread pool and looks for trips. `done` is called after each replication.
///
/// # Errors
/// [`RunError::Interrupted`] where `stop` was set, and [`RunError::NoArrival`].
pub fn gate(
    scenario: &Scenario,
    objectives: &[Objective],
    tight_loop: Option<Duration>,
    stop: &AtomicBool,
    done: impl Fn() + Sync,
) -> Result<Answer, RunError> {
    let results_of = |changed: &mut Scenario| {
        // They cost runs of their own, and are not asked for.
        changed.objective.retain(|o| !is_worst_hint(&o.metric));
        run(changed, stop, |_| done())
    };
    let alone = |hint: Wire| {
        let mut changed = Condition::of_hint(scenario, &hint);
        let replications = &mut changed.run.replications.0;
        *replications = (*replications).min(HINT_REPLICATIONS);
        TriedHint {
            results: results_of(&mut changed),
            scenario: changed,
            hint,
        }
    };
    let put = |condition: Condition| {
        let mut changed = condition.of(scenario);
        Tried {
            condition,
            results: results_of(&mut changed),
            scenario: changed,
            hints: condition.hints().into_par_iter().map(alone).collect(),
        }
    };
    let tried: Vec<Tried> = Condition::ALL.into_par_iter().map(put).collect();
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Interrupted);
    }
    let of_hints = tried.iter().flat_map(|one| &one.hints);
    let results = tried.iter().map(|one| &one.results);
    let results = results.chain(of_hints.map(|one| &one.results));
    let mut failed = results.filter_map(|results| results.as_ref().err());
    if let Some(error) = failed.find(|error| !error.hangs()) {
        return Err(error.clone());
    }
    Ok(Answer {
        trips: trips::all(scenario, objectives, tight_loop, &tried),
        objectives: objectives.to_vec(),
        tight_loop,
        tried,
    })
}
