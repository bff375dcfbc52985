//! Runs the cells of a plan: what is kept is not run again, and any part of the work can be done anywhere.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::jobs::{self, Job};
use super::plan::{Cell, Plan, WarmUp};
use super::store::{Seen, Store, Unit, scenario_key};
use super::{Estimate, Replication, Verdict, group_names, judge, worst_hint};
use crate::catalogue;
use crate::engine::{self, RunError};
use crate::metrics::tally::WINDOW;
use crate::model::Model;
use crate::scenario::Scenario;
use crate::scenario::units::Duration;
use crate::scenario::written::Objective;

/// A part of a plan: cell `n` is in part `n % parts` (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The part, from 1.
    pub part: usize,
    /// How many there are.
    pub parts: usize,
}

impl Shard {
    /// The whole plan.
    pub const WHOLE: Shard = Shard { part: 1, parts: 1 };

    /// Is the cell in this part?
    pub fn has(self, cell: usize) -> bool {
        cell % self.parts == self.part - 1
    }
}

/// A cell and what came of it.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// The cell's number in the plan.
    pub number: usize,
    /// Its replications, by number; fewer than wanted where the sweep was stopped.
    pub replications: Vec<Replication>,
    /// Estimates of each group, in the order of [`catalogue::names`].
    pub estimates: Vec<Vec<Estimate>>,
    /// How the objectives fare.
    pub verdicts: Vec<Verdict>,
    /// What a planner should look at, summed over the replications.
    pub alerts: Vec<Seen>,
    /// Are all replications there?
    pub whole: bool,
}

/// Why a sweep could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A cell's run failed.
    #[error("cell {number} ({parameters}): {error}")]
    Run {
        /// The cell.
        number: usize,
        /// Its values.
        parameters: String,
        /// Why.
        error: Box<RunError>,
    },
    /// A result could not be kept.
    #[error("a result could not be kept")]
    Keep(#[from] std::io::Error),
}

/// Why a warm-up could not be found.
#[derive(Debug, thiserror::Error)]
pub enum PilotError {
    /// The pilot's run failed.
    #[error("the pilot run of the first cell")]
    Run(#[from] RunError),
    /// A cell is too short for it.
    #[error(
        "MSER-5 starts the observation at {cut}, and the horizon of the cell with {cell} is {horizon}: make it longer, or put the cell with the longest transient first"
    )]
    Horizon {
        /// Where the observation would start.
        cut: Duration,
        /// Where the cell ends.
        horizon: Duration,
        /// The cell.
        cell: String,
    },
}

/// What happens while a sweep runs.
pub trait Watch: Sync {
    /// So many units are to be run from here on.
    fn plan(&self, units: u64);
    /// One has been run.
    fn done(&self);
}

impl Plan {
    /// Sets the warm-up of every cell to where MSER-5 cuts a pilot, if the plan says so, and gives it.
    ///
    /// # Errors
    /// The pilot's run failed, or its cut leaves nothing of a cell.
    pub fn find_warm_up(&mut self, stop: &AtomicBool) -> Result<Option<Duration>, PilotError> {
        if self.experiment.warm_up != WarmUp::Mser5 {
            return Ok(None);
        }
        let mut pilot = self.cells[0].scenario.clone();
        pilot.run.warm_up = Duration(0);
        let model = Model::new(&pilot);
        let outcome = engine::run(&model, 0, None, stop)?;
        let windows = outcome.pairs.iter().map(|p| &p.windows);
        let mut sent = vec![0.0; windows.clone().map(Vec::len).max().unwrap_or(0)];
        for pair in windows {
            sent.iter_mut()
                .zip(pair)
                .for_each(|(sum, n)| *sum += f64::from(*n));
        }
        let cut = Duration(mser5(&sent) as u64 * WINDOW);
        self.start_at(cut)?;
        Ok(Some(cut))
    }

    /// Starts the observation of every cell there.
    ///
    /// # Errors
    /// A cell is too short for it.
    pub fn start_at(&mut self, cut: Duration) -> Result<(), PilotError> {
        for cell in &mut self.cells {
            if cut >= cell.scenario.run.horizon.0 {
                return Err(PilotError::Horizon {
                    cut,
                    horizon: cell.scenario.run.horizon.0,
                    cell: cell.in_words(),
                });
            }
            cell.scenario.run.warm_up = cut;
            cell.key = scenario_key(&cell.scenario);
            cell.overrides.push(format!("run.warm_up={cut}"));
        }
        Ok(())
    }

    /// Runs what is missing of a part of the plan. What `stop` leaves unfinished is missing still.
    ///
    /// # Errors
    /// The first cell that failed; what was finished before is kept.
    pub fn run(
        &self,
        shard: Shard,
        store: &Store,
        stop: &AtomicBool,
        watch: &impl Watch,
    ) -> Result<Vec<CellResult>, SweepError> {
        let cells: Vec<&Cell> = self.cells.iter().filter(|c| shard.has(c.number)).collect();
        let mut wanted: Vec<u32> = cells
            .iter()
            .map(|c| self.replications_at_first(c))
            .collect();
        loop {
            let jobs: Vec<Job> = cells
                .iter()
                .zip(&wanted)
                .flat_map(|(cell, n)| self.jobs(cell, *n, self.worst_hints))
                .collect();
            jobs::complete(&jobs, store, stop, watch)?;
            let results: Vec<CellResult> = cells
                .par_iter()
                .zip(&wanted)
                .map(|(cell, n)| self.result(cell, *n, store, self.worst_hints))
                .collect();
            let more: Vec<u32> = results
                .iter()
                .zip(&wanted)
                .map(|(result, n)| self.replications_wanted(result, *n))
                .collect();
            if more == wanted || stop.load(Ordering::Relaxed) {
                return Ok(results);
            }
            wanted = more;
        }
    }

    /// What is kept of all cells, run or not.
    pub fn results(&self, store: &Store) -> Vec<CellResult> {
        let result = |cell: &Cell| {
            let mut n = self.replications_at_first(cell);
            loop {
                let result = self.result(cell, n, store, self.worst_hints);
                let more = self.replications_wanted(&result, n);
                if more == n || !result.whole {
                    return result;
                }
                n = more;
            }
        };
        self.cells.par_iter().map(result).collect()
    }

    /// A cell's results with the metrics of its worst hints, which are run if they are not kept.
    ///
    /// # Errors
    /// A run failed, or its result could not be kept.
    pub fn with_worst_hints(
        &self,
        result: &CellResult,
        objectives: &[Objective],
        (store, stop, watch): (&Store, &AtomicBool, &impl Watch),
    ) -> Result<CellResult, SweepError> {
        let cell = &self.cells[result.number];
        let jobs = self.jobs(cell, result.replications.len() as u32, true);
        jobs::complete(&jobs, store, stop, watch)?;
        Ok(CellResult::gather(&jobs, store, objectives))
    }

    /// Units that are missing of a part, and all of it, with the replications known at first.
    pub fn missing(&self, shard: Shard, store: &Store) -> (u64, u64) {
        let (mut missing, mut all) = (0, 0);
        for cell in self.cells.iter().filter(|c| shard.has(c.number)) {
            let n = self.replications_at_first(cell);
            for job in self.jobs(cell, n, self.worst_hints) {
                all += u64::from(job.replications);
                missing += job.missing(store).len() as u64;
            }
        }
        (missing, all)
    }

    pub(super) fn replications_at_first(&self, cell: &Cell) -> u32 {
        match &self.experiment.precision {
            Some(precision) => precision.min.0,
            None => cell.scenario.run.replications.0,
        }
    }

    /// Replications that a cell with `n` of them needs for the precision asked of it: at most twice as many at a time.
    fn replications_wanted(&self, result: &CellResult, n: u32) -> u32 {
        let Some(precision) = &self.experiment.precision else {
            return n;
        };
        let ratio = |metric: &String| {
            let at = catalogue::position(metric)?;
            let e = result.estimates[0][at];
            let (Some(hi), Some(mean)) = (e.hi, e.mean) else {
                // What is undefined is not known at all.
                return Some(f64::INFINITY);
            };
            let allowed = precision.relative_half_width.0 * mean.abs();
            Some(if hi == mean {
                0.0
            } else {
                (hi - mean) / allowed
            })
        };
        let worst = precision
            .metrics
            .iter()
            .filter_map(ratio)
            .fold(0.0, f64::max);
        if worst <= 1.0 || !result.whole {
            return n;
        }
        let needed = (f64::from(n) * (worst * worst).min(2.0))
            .ceil()
            .min(f64::from(n) * 2.0);
        (needed as u32).max(n + 1).min(precision.max.0.max(n))
    }

    /// The runs of a cell, of which `n` replications are wanted: of its scenario, and of that with the worst hints if these are asked for.
    pub(super) fn jobs<'p>(&self, cell: &'p Cell, n: u32, worst_hints: bool) -> Vec<Job<'p>> {
        let own = Job {
            cell: cell.number,
            words: cell.in_words(),
            scenario: Cow::Borrowed(&cell.scenario),
            key: cell.key,
            replications: n,
            may_hang: false,
        };
        let worst = if worst_hints {
            own.worst_hints()
        } else {
            Vec::new()
        };
        std::iter::once(own).chain(worst).collect()
    }

    /// What is kept of a cell, of which `n` replications are wanted.
    fn result(&self, cell: &Cell, n: u32, store: &Store, worst_hints: bool) -> CellResult {
        let jobs = self.jobs(cell, n, worst_hints);
        CellResult::gather(&jobs, store, &cell.scenario.objective)
    }
}

impl Cell {
    /// Its values in words: `floor 500ms, ceiling 2s`.
    pub fn in_words(&self) -> String {
        let words: Vec<String> = self
            .parameters
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        if words.is_empty() {
            return "the scenario as it is".into();
        }
        words.join(", ")
    }
}

impl CellResult {
    /// What is kept of a job, the first, with the metrics of its worst hints from the others, if there are any.
    pub fn gather(jobs: &[Job], store: &Store, objectives: &[Objective]) -> Self {
        let own = &jobs[0];
        let units = |job: &Job| -> Vec<Unit> {
            let found = (0..job.replications).map_while(|r| job.find(r, store));
            found.collect()
        };
        let replications =
            |units: &[Unit]| -> Vec<Replication> { units.iter().map(Unit::replication).collect() };
        let kept = units(own);
        let mut of_units = replications(&kept);
        let mut whole = of_units.len() == own.replications as usize;
        if let [_, zero, huge] = jobs {
            let (zero, huge) = (replications(&units(zero)), replications(&units(huge)));
            of_units.truncate(zero.len().min(huge.len()));
            whole &= of_units.len() == own.replications as usize;
            let worst = zero.iter().zip(&huge);
            of_units
                .iter_mut()
                .zip(worst)
                .for_each(|(own, (zero, huge))| worst_hint::fill(own, zero, huge));
        }
        let groups = of_units.first().map_or(0, |r| r.values.len());
        let confidence = own.scenario.run.confidence.0;
        let mut result = CellResult {
            number: own.cell,
            estimates: super::estimates(&of_units, groups, confidence),
            replications: of_units,
            verdicts: Vec::new(),
            alerts: sum_alerts(&kept),
            whole,
        };
        result.judge(objectives, &own.scenario);
        result
    }

    /// Holds objectives against its estimates; `scenario` is the one that was run.
    pub fn judge(&mut self, objectives: &[Objective], scenario: &Scenario) {
        let names = group_names(scenario);
        let verdict = |o: &Objective| judge(o, &names, &self.estimates, self.replications.len());
        self.verdicts = objectives.iter().map(verdict).collect();
    }

    /// A fleet-wide estimate.
    pub fn estimate(&self, metric: &str) -> Estimate {
        let at = catalogue::position(metric);
        let found = at.and_then(|at| Some(*self.estimates.first()?.get(at)?));
        found.unwrap_or(Estimate::UNDEFINED)
    }

    /// Does every objective hold at the unfavourable end of its interval? Without an objective no cell is feasible.
    pub fn feasible(&self) -> bool {
        self.whole && !self.verdicts.is_empty() && self.missed().is_empty()
    }

    /// By how much it misses its objectives, as shares of their bounds, summed; 0 where it meets all.
    pub fn violation(&self) -> f64 {
        let missed = self.verdicts.iter().filter(|v| !v.holds_at_the_bound());
        let part = |v: &Verdict| {
            let bound = v.objective.max.or(v.objective.min).unwrap_or(1.0);
            v.excess() / bound.abs().max(f64::MIN_POSITIVE)
        };
        missed.map(part).fold(0.0, |sum, part| sum + part)
    }

    /// The numbers, from 1, of the objectives that do not hold there.
    pub fn missed(&self) -> Vec<usize> {
        let numbered = self.verdicts.iter().zip(1..);
        numbered
            .filter(|(v, _)| !v.holds_at_the_bound())
            .map(|(_, i)| i)
            .collect()
    }
}

/// Alerts of one kind and place, summed over units. That a rate still rises is chance where it does in few of them.
fn sum_alerts(units: &[Unit]) -> Vec<Seen> {
    let mut sums: Vec<(Seen, usize)> = Vec::new();
    for seen in units.iter().flat_map(|u| &u.alerts) {
        let same = |s: &Seen| {
            (&s.alert, &s.tenant, &s.server) == (&seen.alert, &seen.tenant, &seen.server)
        };
        match sums.iter_mut().find(|(sum, _)| same(sum)) {
            Some((sum, times)) => {
                *times += 1;
                sum.count += seen.count;
                // The least hint is the worst, of all others the greatest value.
                let least = sum.worst_is.starts_with("least");
                let worse = if least { f64::min } else { f64::max };
                sum.worst = match (sum.worst, seen.worst) {
                    (Some(a), Some(b)) => Some(worse(a, b)),
                    (a, b) => a.or(b),
                };
            }
            None => sums.push((seen.clone(), 1)),
        }
    }
    let counts =
        |(sum, times): &(Seen, usize)| sum.alert != "rate_still_rising" || 2 * times > units.len();
    sums.into_iter()
        .filter(counts)
        .map(|(sum, _)| sum)
        .collect()
}

/// How many values at the start MSER-5 cuts: means of five are taken, and those before the cut left out that make the standard error of the mean
/// of the rest least (White 1997). At most half of the values are cut.
fn mser5(values: &[f64]) -> usize {
    let means: Vec<f64> = values
        .chunks_exact(5)
        .map(|five| five.iter().sum::<f64>() / 5.0)
        .collect();
    let n = means.len();
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    // From the end, so that each suffix costs one step.
    for cut in (0..n).rev() {
        sum += means[cut];
        squares += means[cut] * means[cut];
        let rest = (n - cut) as f64;
        let error = (squares - sum * sum / rest).max(0.0) / (rest * rest);
        if cut <= n / 2 && error <= best.0 {
            best = (error, cut);
        }
    }
    best.1 * 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mser5_cuts_a_ramp_and_leaves_what_is_steady() {
        let ramp = |t: usize| {
            if t < 100 {
                t as f64
            } else {
                100.0 + (t % 7) as f64
            }
        };
        let values: Vec<f64> = (0..600).map(ramp).collect();
        let cut = mser5(&values);
        assert!((85..=110).contains(&cut), "{cut}");
        let steady: Vec<f64> = (0..600).map(|t| (t % 5) as f64).collect();
        assert_eq!(mser5(&steady), 0);
        assert_eq!(mser5(&[1.0, 2.0]), 0, "too few to say");
    }

    #[test]
    fn parts_have_every_cell_once() {
        for parts in 1..8 {
            for cell in 0..20 {
                let of = (1..=parts)
                    .filter(|part| Shard { part: *part, parts }.has(cell))
                    .count();
                assert_eq!(of, 1);
            }
        }
    }
}
