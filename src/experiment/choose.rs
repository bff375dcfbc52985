//! Which cell of a sweep? The feasible one with the least load; how sure that is, and what would move it; where there is none, what stands in
//! the way.

use rayon::prelude::*;

use super::cost::{Cost, LOAD};
use super::plan::Plan;
use super::sweep::CellResult;
use super::{Estimate, Replication, Verdict, group_names};
use crate::catalogue;
use crate::random::{Key, Purpose};
use crate::scenario::written::Objective;

/// Resamples of the bootstrap.
const RESAMPLES: u64 = 1000;

/// The feasible cell with the least cost; of equals, that with the least load, then the first in the plan. There is none from a part of a sweep, and none whose cost is undefined.
pub fn choose<'c>(cells: &'c [CellResult], cost: &Cost) -> Option<&'c CellResult> {
    if cells.iter().any(|cell| !cell.whole) {
        return None;
    }
    let load = Cost::default();
    let feasible = cells.iter().filter(|cell| cell.feasible());
    let with_cost = feasible.map(|cell| ([cost.at(cell), load.at(cell)], cell));
    let known = with_cost.filter(|([cost, _], _)| cost.is_finite());
    let least = known.min_by(|(a, first), (b, second)| {
        let by_cost = a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]));
        by_cost.then(first.number.cmp(&second.number))
    });
    least.map(|(_, cell)| cell)
}

/// Holds other objectives against the results of a sweep.
pub fn judge_by(plan: &Plan, cells: &mut [CellResult], objectives: &[Objective]) {
    for cell in cells {
        cell.judge(objectives, &plan.cells[cell.number].scenario);
    }
}

/// The cells that no other beats in load, completion latency and abort latency at once, in the order of the plan. Where there are no aborts, their latency
/// is the same everywhere.
pub fn pareto(cells: &[CellResult]) -> Vec<&CellResult> {
    let values = |cell: &CellResult| {
        [LOAD, "completion_latency_p99_ms", "abort_latency_p99_ms"]
            .map(|metric| cell.estimate(metric).mean.unwrap_or(f64::INFINITY))
    };
    let values: Vec<[f64; 3]> = cells.iter().map(values).collect();
    let beats = |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).all(|(a, b)| a <= b) && a != b;
    let beaten = |at: usize| values.iter().any(|other| beats(other, &values[at]));
    let cells = cells.iter().enumerate();
    cells
        .filter(|(at, _)| !beaten(*at))
        .map(|(_, cell)| cell)
        .collect()
}

/// What the choice would be if a bound were another.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// Number of the objective, from 0.
    pub objective: usize,
    /// Its bound moves by a tenth of its size: 0.9 is tighter, 1.1 looser.
    pub factor: f64,
    /// The cell that would be chosen; `None` where nothing would be feasible.
    pub choice: Option<usize>,
}

/// How the choice moves when each objective is tightened and loosened by a tenth.
pub fn shifts(
    plan: &Plan,
    cells: &[CellResult],
    objectives: &[Objective],
    cost: &Cost,
) -> Vec<Shift> {
    let mut shifts = Vec::new();
    for objective in 0..objectives.len() {
        for factor in [0.9, 1.1] {
            let mut moved = objectives.to_vec();
            let bounds = &mut moved[objective];
            bounds.max = bounds.max.map(|max| max + (factor - 1.0) * max.abs());
            bounds.min = bounds.min.map(|min| min - (factor - 1.0) * min.abs());
            let mut judged = cells.to_vec();
            judge_by(plan, &mut judged, &moved);
            shifts.push(Shift {
                objective,
                factor,
                choice: choose(&judged, cost).map(|c| c.number),
            });
        }
    }
    shifts
}

/// The share of bootstrap resamples over the replications that choose the same cell (Efron 1979). Replications are drawn together for all cells that have as many, because they share
/// their chance. `None` where a cell has only one: nothing can be drawn from it.
pub fn confidence(
    plan: &Plan,
    cells: &[CellResult],
    objectives: &[Objective],
    cost: &Cost,
) -> Option<f64> {
    let chosen = choose(cells, cost)?.number;
    if cells.iter().any(|cell| cell.replications.len() < 2) {
        return None;
    }
    let level = plan.base.run.confidence.0;
    // Where each objective stands among the values of a cell.
    let places: Vec<Vec<Option<(usize, usize)>>> = cells
        .iter()
        .map(|cell| {
            let groups = group_names(&plan.cells[cell.number].scenario);
            let place = |over: &str, metric: &str| {
                let group = groups.iter().position(|g| g == over)?;
                Some((group, catalogue::position(metric)?))
            };
            let asked = objectives.iter().map(|o| place(&o.over, &o.metric));
            asked.collect()
        })
        .collect();
    let load = Cost::default();
    let same = (0..RESAMPLES).into_par_iter().filter(|resample| {
        let key = Key::new(plan.base.run.seed, *resample);
        let best = cells
            .iter()
            .zip(&places)
            .filter_map(|(cell, places)| {
                let drawn = resampled(&cell.replications, key);
                let estimate = |place: &Option<(usize, usize)>| {
                    let (group, metric) = (*place)?;
                    let values: Vec<Option<f64>> =
                        drawn.iter().map(|r| r.values[group][metric]).collect();
                    Some(Estimate::new(&values, level))
                };
                let holds = objectives.iter().zip(places).all(|(objective, place)| {
                    let estimate = estimate(place).unwrap_or(Estimate::UNDEFINED);
                    Verdict::new(objective, estimate, drawn.len()).holds_at_the_bound()
                });
                if !holds {
                    return None;
                }
                let mean = |metric: usize| mean(&drawn, metric);
                Some((cost.of(mean)?, load.of(mean)?, cell.number))
            })
            .min_by(|a, b| {
                let by_cost = a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
                by_cost.then(a.2.cmp(&b.2))
            });
        best.is_some_and(|(_, _, number)| number == chosen)
    });
    Some(same.count() as f64 / RESAMPLES as f64)
}

/// The mean of a metric of the fleet; `None` where it is undefined in one of them.
fn mean(replications: &[&Replication], metric: usize) -> Option<f64> {
    let values = replications.iter().map(|r| r.values[0][metric]);
    let sum: Option<f64> = values.sum();
    sum.map(|sum| sum / replications.len() as f64)
        .filter(|mean| mean.is_finite())
}

/// As many replications, drawn with replacement.
fn resampled(replications: &[Replication], key: Key) -> Vec<&Replication> {
    let n = replications.len();
    let draw = |i: usize| {
        let u = key.draw(Purpose::Resample, i as u64);
        &replications[((n as u128 * u128::from(u)) >> 64) as usize]
    };
    (0..n).map(draw).collect()
}

/// An objective that stands in the way where nothing is feasible.
#[derive(Clone, Debug, PartialEq)]
pub struct Obstacle {
    /// The objective, and how the cell fares that comes nearest to it.
    pub nearest: Verdict,
    /// How many cells miss it.
    pub missed: usize,
    /// The tightest bound with which some cell would be feasible, all other objectives as they are; `None` where there is no such bound.
    pub needed: Option<f64>,
}

/// The objectives that some cell misses, those that most cells miss first.
pub fn obstacles(cells: &[CellResult]) -> Vec<Obstacle> {
    let objectives = cells.first().map_or(0, |c| c.verdicts.len());
    let mut obstacles: Vec<Obstacle> = (0..objectives)
        .filter_map(|i| {
            let all = cells.iter().map(|cell| &cell.verdicts[i]);
            let missed = all.clone().filter(|v| !v.holds_at_the_bound()).count();
            let defined = all.clone().filter(|v| v.estimate.mean.is_some());
            let nearest = defined.min_by(|a, b| a.excess().total_cmp(&b.excess()));
            let nearest = nearest.or(cells.first().map(|c| &c.verdicts[i]))?.clone();
            let others_hold = |cell: &&CellResult| {
                let mut others = cell.verdicts.iter().enumerate().filter(|(n, _)| *n != i);
                others.all(|(_, v)| v.holds_at_the_bound())
            };
            let ends = cells.iter().filter(others_hold).map(|c| &c.verdicts[i]);
            let ends = ends.filter_map(Verdict::unfavourable_end);
            let needed = match nearest.objective.max {
                Some(_) => ends.reduce(f64::min),
                None => ends.reduce(f64::max),
            };
            (missed > 0).then_some(Obstacle {
                nearest,
                missed,
                needed,
            })
        })
        .collect();
    obstacles.sort_by_key(|o| std::cmp::Reverse(o.missed));
    obstacles
}

/// The cell that misses the fewest objectives, and of these by the least part of their bounds.
pub fn nearest(cells: &[CellResult]) -> Option<&CellResult> {
    let missed_by = |cell: &CellResult| (cell.missed().len(), cell.violation());
    cells.iter().min_by(|a, b| {
        let (a, b) = (missed_by(a), missed_by(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::store::Store;
    use crate::experiment::sweep::{Shard, Watch};
    use crate::scenario;

    struct Nobody;

    impl Watch for Nobody {
        fn plan(&self, _: u64) {}
        fn done(&self) {}
    }

    #[test]
    fn the_choice_meets_the_objectives_with_the_least_load() {
        // Constant hints of 200 ms, tasks of 2 s to 3 s: the latency is at most the wait, so the floor decides alone.
        let text = format!(
            "{}\n[[objective]]\nmetric = \"completion_latency_max_ms\"\nmax = 1000",
            crate::experiment::tests::SMALL
                .replace("name = \"s\"", "name = \"s\"\nhint = 200")
                .replace("\"3s\"", "{ uniform = { low = \"2s\", high = \"3s\" } }")
        );
        let experiment = scenario::read(
            "experiment",
            r#"
            scenario = "-"
            constraints = ["floor <= ceiling"]
            axis = [
              { name = "floor", path = "policy.p.floor", values = ["100ms", "900ms", "2s"] },
              { name = "ceiling", path = "policy.p.ceiling", values = ["1s", "4s"] },
            ]
            "#,
        )
        .unwrap();
        let load = |overrides: &[String]| Ok(scenario::parse("test", &text, overrides)?.scenario);
        let plan = Plan::new("experiment", experiment, load).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let cells = plan
            .run(Shard::WHOLE, &store, &AtomicBool::new(false), &Nobody)
            .unwrap();
        assert_eq!(
            cells.len(),
            5,
            "a floor of 2 s does not go with a ceiling of 1 s"
        );
        let chosen = choose(&cells, &Cost::default()).unwrap();
        assert_eq!(
            plan.cells[chosen.number].in_words(),
            "floor 900ms, ceiling 1s"
        );
        let missed = obstacles(&cells);
        assert_eq!(
            missed[0].missed, 1,
            "only the floor of 2 s misses the latency"
        );
        assert_eq!(plan.missing(Shard::WHOLE, &store), (0, 15));

        // Every resample sees the same latencies, give or take: floor and limit are far apart.
        let objectives = &plan.base.objective;
        assert_eq!(
            confidence(&plan, &cells, objectives, &Cost::default()),
            Some(1.0)
        );
        // At 900 ms no floor but 100 ms is left; at 1,100 ms nothing else comes in.
        let moved: Vec<Option<usize>> = shifts(&plan, &cells, objectives, &Cost::default())
            .iter()
            .map(|s| s.choice)
            .collect();
        let words = |n: usize| plan.cells[n].in_words();
        assert_eq!(
            moved.iter().map(|c| c.map(words)).collect::<Vec<_>>(),
            [
                Some("floor 100ms, ceiling 1s".into()),
                Some("floor 900ms, ceiling 1s".into()),
            ]
        );
        // Each floor is on the front, once for both ceilings: they are equal, and neither beats the other.
        assert_eq!(pareto(&cells).len(), 5);
    }
}
