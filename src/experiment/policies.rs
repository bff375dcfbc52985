//! Poll loops of real hosts over one scenario: what a fleet would do if all its hosts ran the loop of one SDK.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::gate::{self, gate};
use super::what_if::with_policy;
use super::{Results, run};
use crate::catalogue::{WORST_HINTS, is_worst_hint};
use crate::engine::RunError;
use crate::scenario::presets::Preset;
use crate::scenario::written::Objective;
use crate::scenario::{self, Rejected, Scenario};

/// The scenario on which [`verdicts`] judges.
pub const BENCH: &str = include_str!("../../models/gate-bench.toml");

/// A poll loop, and what came of it.
#[derive(Debug)]
pub struct Tried {
    /// The name of its preset; `None` for the scenario as written.
    pub preset: Option<&'static str>,
    /// The results, worst hints included, or why the run did not get to its end.
    pub results: Result<Results, RunError>,
}

/// Runs the scenario as written and then with each of these presets on every host, on the current thread pool, with the same tasks and draws. `done` is
/// called after each replication.
///
/// # Errors
/// [`RunError::Interrupted`] where `stop` was set, and [`RunError::NoArrival`].
pub fn compare(
    scenario: &Scenario,
    presets: &[(&'static str, &'static Preset)],
    stop: &AtomicBool,
    done: impl Fn() + Sync,
) -> Result<Vec<Tried>, RunError> {
    let own = std::iter::once((None, scenario.clone()));
    let others = presets
        .iter()
        .map(|(name, preset)| (Some(*name), with_policy(scenario, name, &preset.policy)));
    let all: Vec<(Option<&'static str>, Scenario)> = own.chain(others).collect();
    let tried: Vec<Tried> = all
        .into_par_iter()
        .map(|(preset, mut scenario)| {
            scenario.objective = vec![worst_hints()];
            Tried {
                preset,
                results: run(&scenario, stop, |_| done()),
            }
        })
        .collect();
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Interrupted);
    }
    let mut failed = tried.iter().filter_map(|t| t.results.as_ref().err());
    match failed.find(|error| !error.hangs()) {
        Some(error) => Err(error.clone()),
        None => Ok(tried),
    }
}

/// How many replications [`compare`] runs for so many presets.
pub fn replications(scenario: &Scenario, presets: usize) -> u64 {
    (presets as u64 + 1) * u64::from(scenario.run.replications.0)
}

/// An objective that is always met, and asks for the metrics of the worst hints.
fn worst_hints() -> Objective {
    Objective {
        metric: WORST_HINTS[0].name.into(),
        over: "fleet".into(),
        max: Some(f64::INFINITY),
        min: None,
    }
}

/// What the gate says of each preset on the scenario [`BENCH`], whose aborts have to be over within a second: the numbers of the trips that are tripped or
/// unknown; none where it may be deployed.
///
/// # Errors
/// [`Rejected`] where the scenario is no scenario; [`RunError::Interrupted`] where `stop` was set.
pub fn verdicts(
    presets: &[(&'static str, &'static Preset)],
    stop: &AtomicBool,
    done: impl Fn() + Sync,
) -> Result<Result<Vec<Vec<usize>>, RunError>, Rejected> {
    let bench = scenario::parse("gate-bench.toml", BENCH, &[])?.scenario;
    let verdict = |(name, preset): &(&'static str, &'static Preset)| {
        let scenario = with_policy(&bench, name, &preset.policy);
        let asked = scenario.objective.iter();
        let asked: Vec<Objective> = asked
            .filter(|o| gate::bounds_abort_latency(o) && !is_worst_hint(&o.metric))
            .cloned()
            .collect();
        let answer = gate(&scenario, &asked, None, stop, &done)?;
        let trips = (1..).zip(&answer.trips);
        let failed = trips.filter(|(_, trip)| trip.tripped() != Some(false));
        Ok(failed.map(|(number, _)| number).collect())
    };
    Ok(presets.par_iter().map(verdict).collect())
}
