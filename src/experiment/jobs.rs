//! Replications of scenarios: what is kept already is not run again.

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::Replication;
use super::store::{Store, Unit, scenario_key};
use super::sweep::{SweepError, Watch};
use super::worst_hint;
use crate::engine::{self, Outcome, RunError};
use crate::metrics::alerts::alerts;
use crate::metrics::summary::Group;
use crate::model::Model;
use crate::scenario::Scenario;

/// Replications of one scenario.
#[derive(Clone, Debug)]
pub struct Job<'s> {
    /// The cell that it is for.
    pub cell: usize,
    /// What it is, in words.
    pub words: String,
    /// What is run.
    pub scenario: Cow<'s, Scenario>,
    /// By which its units are found.
    pub key: u64,
    /// How many replications.
    pub replications: u32,
    /// Is a run that does not get on a finding, rather than a failure? It is kept without values then.
    pub may_hang: bool,
}

impl Job<'_> {
    /// Replications of a scenario made for a question about a cell.
    pub fn of(cell: usize, words: String, scenario: Scenario, replications: u32) -> Self {
        Job {
            cell,
            words,
            key: scenario_key(&scenario),
            scenario: Cow::Owned(scenario),
            replications,
            may_hang: true,
        }
    }

    /// Those of the same cell whose servers all give the worst hints.
    pub fn worst_hints(&self) -> Vec<Job<'static>> {
        let job = |(words, scenario): (&str, Scenario)| {
            let words = format!("{} and {words}", self.words);
            Job::of(self.cell, words, scenario, self.replications)
        };
        worst_hint::scenarios(&self.scenario)
            .into_iter()
            .map(job)
            .collect()
    }

    /// How many groups its results have: the fleet, its tenant and server classes.
    fn groups(&self) -> usize {
        1 + self.scenario.tenant.len() + self.scenario.server.len()
    }

    /// The kept unit of a replication.
    pub fn find(&self, replication: u32, store: &Store) -> Option<Unit> {
        store.find(self.key, replication, self.groups())
    }

    /// The replications that are not kept.
    pub fn missing(&self, store: &Store) -> Vec<u32> {
        let missing = |r: &u32| self.find(*r, store).is_none();
        (0..self.replications).filter(missing).collect()
    }
}

/// Runs what is missing of all jobs, on the current thread pool. What `stop` leaves unfinished is missing still.
///
/// # Errors
/// The first job that failed; what was finished before is kept.
pub fn complete(
    jobs: &[Job],
    store: &Store,
    stop: &AtomicBool,
    watch: &impl Watch,
) -> Result<(), SweepError> {
    let missing: Vec<(&Job, Model, Vec<u32>)> = jobs
        .iter()
        .map(|job| (job, job.missing(store)))
        .filter(|(_, missing)| !missing.is_empty())
        .map(|(job, missing)| (job, Model::new(&job.scenario), missing))
        .collect();
    let units: Vec<(usize, u32)> = missing
        .iter()
        .enumerate()
        .flat_map(|(at, (_, _, missing))| missing.iter().map(move |r| (at, *r)))
        .collect();
    watch.plan(units.len() as u64);
    let failed: Mutex<Option<(usize, SweepError)>> = Mutex::new(None);
    // One at a time: a piece of several is not shared once it has been begun.
    units
        .par_iter()
        .with_max_len(1)
        .for_each(|(at, replication)| {
            let gone_wrong = || failed.lock().is_ok_and(|f| f.is_some());
            if stop.load(Ordering::Relaxed) || gone_wrong() {
                return;
            }
            let (job, model, _) = &missing[*at];
            match run_unit(job, model, *replication, store, stop) {
                Ok(()) => watch.done(),
                Err(SweepError::Run { error, .. }) if *error == RunError::Interrupted => {}
                Err(error) => {
                    if let Ok(mut failed) = failed.lock()
                        && failed.as_ref().is_none_or(|(first, _)| at < first)
                    {
                        *failed = Some((*at, error));
                    }
                }
            }
        });
    let failed = failed
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

/// Runs one replication, and keeps what came of it.
fn run_unit(
    job: &Job,
    model: &Model,
    number: u32,
    store: &Store,
    stop: &AtomicBool,
) -> Result<(), SweepError> {
    let unit = match engine::run(model, number, None, stop) {
        Ok(outcome) => unit(job.key, &outcome, model),
        Err(error) if job.may_hang && error.hangs() => {
            Unit::undefined(job.key, number, job.groups())
        }
        Err(error) => {
            return Err(SweepError::Run {
                number: job.cell,
                parameters: job.words.clone(),
                error: Box::new(error),
            });
        }
    };
    Ok(store.keep(job.key, &unit)?)
}

/// What is kept of a run. Objectives are asked when it is read: they are no part of it.
fn unit(key: u64, outcome: &Outcome, model: &Model) -> Unit {
    let replication = Replication::new(outcome, &Group::all(model), model);
    let limits = vec![None; outcome.pairs.len()];
    let seen = alerts(
        &outcome.pairs,
        &outcome.servers,
        &outcome.tenants,
        1,
        model,
        &limits,
    );
    Unit::new(key, &replication, &seen)
}
