//! A decision: the cell that is chosen and what stands behind it; where there is none, what would have to give.

use std::sync::atomic::AtomicBool;

use super::choose::{self, Obstacle, Shift};
use super::cost::Cost;
use super::jobs::{self, Job};
use super::plan::{Cell, Plan};
use super::store::Store;
use super::sweep::{CellResult, SweepError, Watch};
use super::what_if::{with_capacity, with_push, with_tasks};
use crate::scenario::Scenario;
use crate::scenario::written::Objective;

/// Headroom is looked for up to so many times the tasks.
pub const MOST_TASKS: f64 = 16.0;
/// … and found to within this ratio.
const RESOLUTION: f64 = 1.02;
/// Times the capacity of the servers that are tried where nothing is feasible.
const CAPACITIES: [u32; 3] = [2, 4, 8];

/// What to do, and why.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What has to be achieved.
    pub objectives: Vec<Objective>,
    /// What is least.
    pub cost: Cost,
    /// The choice; `None` where nothing is feasible.
    pub chosen: Option<Chosen>,
    /// The cells that no other beats in load, completion latency and abort latency at once.
    pub front: Vec<usize>,
    /// Where nothing is feasible: what stands in the way.
    pub obstacles: Vec<Obstacle>,
    /// Where nothing is feasible: what would help, and what would not.
    pub remedies: Vec<Remedy>,
}

/// The choice, and what stands behind it.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its results, those of the worst hints among them.
    pub cell: CellResult,
    /// What the choice would be if a bound were another.
    pub shifts: Vec<Shift>,
    /// Share of bootstrap resamples that choose the same cell.
    pub confidence: Option<f64>,
    /// How many tasks it bears.
    pub headroom: Headroom,
}

/// The largest number of tasks at which a cell stays feasible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// As a multiple of the scenario's.
    pub factor: f64,
    /// Tasks created in [warm-up, horizon) then, mean over the replications.
    pub tasks: Option<f64>,
    /// Is it feasible even with [`MOST_TASKS`] times the tasks, so that nothing larger was tried?
    pub at_least: bool,
}

/// A change of the fleet, and whether it would make the nearest cell feasible.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What is changed.
    pub what: String,
    /// The cell that it was tried on.
    pub cell: usize,
    /// Does it help?
    pub helps: bool,
}

/// Runs scenarios that are like a cell's but for one thing, and judges them by the same objectives.
struct WhatIf<'a, W: Watch> {
    plan: &'a Plan,
    objectives: &'a [Objective],
    store: &'a Store,
    stop: &'a AtomicBool,
    watch: &'a W,
}

impl<W: Watch> WhatIf<'_, W> {
    fn run(
        &self,
        cell: &Cell,
        replications: usize,
        words: &str,
        scenario: Scenario,
    ) -> Result<CellResult, SweepError> {
        let words = format!("{} {words}", cell.in_words());
        let own = Job::of(cell.number, words, scenario, replications as u32);
        let worst = if self.plan.worst_hints {
            own.worst_hints()
        } else {
            Vec::new()
        };
        let jobs: Vec<Job> = std::iter::once(own).chain(worst).collect();
        jobs::complete(&jobs, self.store, self.stop, self.watch)?;
        Ok(CellResult::gather(&jobs, self.store, self.objectives))
    }

    /// Doubles the tasks until an objective is missed, then halves the interval between the last factor that is feasible and the first that is not.
    fn headroom(&self, cell: &Cell, chosen: &CellResult) -> Result<Headroom, SweepError> {
        let tasks = |result: &CellResult| result.estimate("tasks").mean;
        let mut best = Headroom {
            factor: 1.0,
            tasks: tasks(chosen),
            at_least: false,
        };
        let replications = chosen.replications.len();
        let try_factor = |factor: f64, best: &mut Headroom| {
            let scenario = with_tasks(&cell.scenario, factor);
            let words = format!("with {factor:.3} times the tasks");
            let result = self.run(cell, replications, &words, scenario)?;
            let feasible = result.feasible();
            if feasible {
                (best.factor, best.tasks) = (factor, tasks(&result));
            }
            Ok::<bool, SweepError>(feasible)
        };
        let mut too_many = 2.0;
        while try_factor(too_many, &mut best)? {
            if too_many >= MOST_TASKS {
                return Ok(Headroom {
                    at_least: true,
                    ..best
                });
            }
            too_many *= 2.0;
        }
        while too_many / best.factor > RESOLUTION {
            let middle = (too_many * best.factor).sqrt();
            if !try_factor(middle, &mut best)? {
                too_many = middle;
            }
        }
        Ok(best)
    }

    /// More capacity, the least that helps, and push.
    fn remedies(&self, cells: &[CellResult]) -> Result<Vec<Remedy>, SweepError> {
        let Some(nearest) = choose::nearest(cells) else {
            return Ok(Vec::new());
        };
        let cell = &self.plan.cells[nearest.number];
        let replications = nearest.replications.len();
        let helps = |words: &str, scenario: Scenario| {
            let result = self.run(cell, replications, words, scenario)?;
            Ok::<bool, SweepError>(result.feasible())
        };
        let remedy = |what: &str, helps: bool| Remedy {
            what: what.into(),
            cell: cell.number,
            helps,
        };
        let mut remedies = Vec::new();
        for factor in CAPACITIES {
            let words = format!("{factor} times the servers' capacity");
            let works = helps(
                &format!("with {words}"),
                with_capacity(&cell.scenario, factor),
            )?;
            if works || factor == CAPACITIES[CAPACITIES.len() - 1] {
                remedies.push(remedy(&words, works));
                break;
            }
        }
        let words = "a notification of every change (push), which wakes the host";
        let works = helps("with push", with_push(&cell.scenario))?;
        remedies.push(remedy(words, works));
        Ok(remedies)
    }
}

/// Decides by the results of a whole sweep. What is asked about the choice (worst hints, headroom) or for want of one (remedies) is run here, and kept like the rest.
///
/// # Errors
/// A run failed, or its result could not be kept.
pub fn decide(
    plan: &Plan,
    cells: &[CellResult],
    objectives: &[Objective],
    cost: &Cost,
    (store, stop, watch): (&Store, &AtomicBool, &impl Watch),
) -> Result<Decision, SweepError> {
    let what_if = WhatIf {
        plan,
        objectives,
        store,
        stop,
        watch,
    };
    let mut decision = Decision {
        objectives: objectives.to_vec(),
        cost: cost.clone(),
        chosen: None,
        front: choose::pareto(cells).iter().map(|c| c.number).collect(),
        obstacles: Vec::new(),
        remedies: Vec::new(),
    };
    let Some(best) = choose::choose(cells, cost) else {
        decision.obstacles = choose::obstacles(cells);
        if !decision.obstacles.is_empty() {
            decision.remedies = what_if.remedies(cells)?;
        }
        return Ok(decision);
    };
    let cell = &plan.cells[best.number];
    decision.chosen = Some(Chosen {
        cell: plan.with_worst_hints(best, objectives, (store, stop, watch))?,
        shifts: choose::shifts(plan, cells, objectives, cost),
        confidence: choose::confidence(plan, cells, objectives, cost),
        headroom: what_if.headroom(cell, best)?,
    });
    Ok(decision)
}
