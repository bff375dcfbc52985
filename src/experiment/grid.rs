//! Floors × ceilings: which pair meets the objectives with the least load?
//!
//! The same tasks, durations and hints meet every cell (common random numbers). A cell is feasible if every objective holds at
//! the unfavourable end of its confidence interval, not just at the mean.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use super::{Estimate, Verdict};
use crate::engine::{Outcome, RunError};
use crate::metrics::alerts::Alert;
use crate::scenario::fields::{Count, record};
use crate::scenario::units::Duration;
use crate::scenario::{self, LoadError, Scenario};

record! {
    /// A grid of floors and ceilings on one policy of a scenario.
    pub struct GridFile {
        /// The scenario file; the path is taken from this file's folder.
        scenario: String,
        /// The policy whose bounds are tried.
        policy: String,
        /// The floors.
        floors: Vec<Duration>,
        /// The ceilings; pairs with a ceiling below the floor are left out.
        ceilings: Vec<Duration>,
        /// Replications of each cell; the scenario's where left out.
        replications: Option<Count>,
    }
}

/// A grid ready to run: the scenario of each cell.
#[derive(Clone, Debug)]
pub struct Grid {
    /// As written.
    pub file: GridFile,
    /// The scenario with its own bounds.
    pub base: Scenario,
    cells: Vec<(Duration, Duration, Scenario)>,
}

/// One pair of bounds and what came of it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The floor.
    pub floor: Duration,
    /// The ceiling.
    pub ceiling: Duration,
    /// Estimates of the fleet, in the order of [`crate::catalogue::names`].
    pub fleet: Vec<Estimate>,
    /// How the objectives fare.
    pub verdicts: Vec<Verdict>,
    /// What a planner should look at.
    pub alerts: Vec<Alert>,
    /// Hash of the cell's scenario.
    pub scenario_hash: u64,
    /// Replications that were finished.
    pub replications: usize,
}

impl Cell {
    /// A fleet-wide estimate.
    pub fn estimate(&self, metric: &str) -> Estimate {
        let at = crate::catalogue::names().iter().position(|n| n == metric);
        at.map_or(Estimate::UNDEFINED, |at| self.fleet[at])
    }

    /// Does every objective hold at the unfavourable end of its interval? Without an objective there is nothing to meet.
    pub fn feasible(&self) -> bool {
        !self.verdicts.is_empty() && self.missed().is_empty()
    }

    /// The numbers, from 1, of the objectives that do not hold there.
    pub fn missed(&self) -> Vec<usize> {
        let numbered = self.verdicts.iter().enumerate();
        numbered
            .filter(|(_, v)| !v.holds_at_the_bound())
            .map(|(i, _)| i + 1)
            .collect()
    }
}

impl Grid {
    /// Prepares the cells of the grid `file`, called `name`, whose scenario `load` reads with overrides.
    ///
    /// # Errors
    /// What is wrong with the scenario, or with it under the grid's bounds; a grid without a pair.
    pub fn new(
        name: &str,
        mut file: GridFile,
        load: impl Fn(&[String]) -> Result<Scenario, LoadError>,
    ) -> Result<Self, LoadError> {
        let base = load(&[])?;
        let wrong = |wrong: String| LoadError::Grid {
            path: name.into(),
            wrong,
        };
        if !base.policy.contains_key(&file.policy) {
            let known: Vec<&str> = base.policy.keys().map(String::as_str).collect();
            return Err(wrong(format!(
                "{} has no policy \"{}\"; its policies are: {}",
                file.scenario,
                file.policy,
                known.join(", ")
            )));
        }
        for bounds in [&mut file.floors, &mut file.ceilings] {
            bounds.sort();
            bounds.dedup();
        }
        let mut cells = Vec::new();
        for ceiling in &file.ceilings {
            for floor in file.floors.iter().filter(|floor| *floor <= ceiling) {
                let mut overrides = vec![
                    format!("policy.{}.floor={floor}", file.policy),
                    format!("policy.{}.ceiling={ceiling}", file.policy),
                ];
                overrides.extend(
                    file.replications
                        .map(|n| format!("run.replications={}", n.0)),
                );
                cells.push((*floor, *ceiling, load(&overrides)?));
            }
        }
        if cells.is_empty() {
            return Err(wrong("no floor goes with any ceiling; give floors and ceilings so that some ceiling is not below some floor".into()));
        }
        Ok(Grid { file, base, cells })
    }

    /// Reads a grid file and its scenario.
    ///
    /// # Errors
    /// What is wrong with either.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| LoadError::Io {
            path: name.clone(),
            error,
        })?;
        let file: GridFile = scenario::read(&name, &text)?;
        let scenario = path.parent().unwrap_or(Path::new("")).join(&file.scenario);
        Self::new(&name, file, |overrides| {
            scenario::load(&scenario, overrides).map(|l| l.scenario)
        })
    }

    /// How many replications there are to run.
    pub fn replications(&self) -> u64 {
        self.cells
            .iter()
            .map(|(_, _, s)| u64::from(s.run.replications.0))
            .sum()
    }

    /// Runs all cells; `done` is called after each replication. Cells that `stop` leaves unfinished are left out.
    ///
    /// # Errors
    /// The first cell (in order) that failed.
    pub fn run(
        &self,
        stop: &AtomicBool,
        done: impl Fn(&Outcome) + Sync,
    ) -> Result<Vec<Cell>, RunError> {
        let cells: Result<Vec<Cell>, RunError> = self
            .cells
            .par_iter()
            .map(|(floor, ceiling, scenario)| {
                let results = super::run(scenario, stop, &done)?;
                Ok(Cell {
                    floor: *floor,
                    ceiling: *ceiling,
                    fleet: results.estimates[0].clone(),
                    verdicts: results.verdicts,
                    alerts: results.alerts,
                    scenario_hash: scenario.hash(),
                    replications: results.replications.len(),
                })
            })
            .collect();
        let mut cells = cells?;
        let wanted = self
            .cells
            .first()
            .map_or(0, |(_, _, s)| s.run.replications.0 as usize);
        cells.retain(|cell| cell.replications == wanted);
        Ok(cells)
    }
}

/// The feasible cell with the least `tasks/get` rate; of equals, the one with the lower ceiling, then the higher floor.
pub fn choose(cells: &[Cell]) -> Option<&Cell> {
    let rate = |cell: &Cell| {
        cell.estimate("tasks_get_rate_mean_per_s")
            .mean
            .unwrap_or(f64::INFINITY)
    };
    cells.iter().filter(|cell| cell.feasible()).min_by(|a, b| {
        rate(a)
            .total_cmp(&rate(b))
            .then(a.ceiling.cmp(&b.ceiling))
            .then(b.floor.cmp(&a.floor))
    })
}

/// Where nothing is feasible: for each objective, how many cells miss it, and its best value.
pub fn obstacles(cells: &[Cell]) -> Vec<(Verdict, usize)> {
    let objectives = cells.first().map_or(0, |c| c.verdicts.len());
    let mut missed: Vec<(Verdict, usize)> = (0..objectives)
        .filter_map(|i| {
            let all = cells.iter().map(|cell| &cell.verdicts[i]);
            let misses = all.clone().filter(|v| !v.holds_at_the_bound()).count();
            let best = all
                .filter(|v| v.estimate.mean.is_some())
                .min_by(|a, b| a.excess().total_cmp(&b.excess()));
            let shown = best.or(cells.first().map(|c| &c.verdicts[i]))?;
            (misses > 0).then(|| (shown.clone(), misses))
        })
        .collect();
    missed.sort_by_key(|(_, misses)| std::cmp::Reverse(*misses));
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_meets_the_objectives_with_the_least_load() {
        // Constant hints of 200 ms, tasks of 10 s to 20 s: the latency is at most the wait, so the floor decides alone.
        let text = format!(
            "{}\n[[objective]]\nmetric = \"completion_latency_max_ms\"\nmax = 1000",
            crate::experiment::tests::SMALL
                .replace("name = \"s\"", "name = \"s\"\nhint = 200")
                .replace("\"3s\"", "{ uniform = { low = \"2s\", high = \"3s\" } }")
        );
        let grid: GridFile = scenario::read(
            "grid",
            "scenario = \"-\"\npolicy = \"p\"\nfloors = [\"100ms\", \"900ms\", \"2s\"]\nceilings = [\"1s\", \"4s\"]",
        )
        .unwrap();
        let load = |overrides: &[String]| Ok(scenario::parse("test", &text, overrides)?.scenario);
        let cells = Grid::new("grid", grid, load)
            .unwrap()
            .run(&AtomicBool::new(false), |_| {})
            .unwrap();
        assert_eq!(
            cells.len(),
            5,
            "a floor of 2 s does not go with a ceiling of 1 s"
        );
        let chosen = choose(&cells).unwrap();
        assert_eq!(
            (chosen.floor.to_string(), chosen.ceiling.to_string()),
            ("900ms".into(), "1s".into())
        );
        let missed = obstacles(&cells);
        assert_eq!(missed[0].1, 1, "only the floor of 2 s misses the latency");
    }
}
