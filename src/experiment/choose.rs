//! Which cell of a sweep? The feasible one with the least load; how sure that is, and what would move it; where there is none, what stands in
//! the way.

use super::plan::Plan;
use super::sweep::CellResult;
use super::{Estimate, Replication, Verdict, group_names, judge};
use crate::catalogue;
use crate::random::{Key, Purpose};
use crate::scenario::written::Objective;

/// The metric that is least at the choice, where nothing else is asked for.
pub const LOAD: &str = "tasks_get_rate_mean_per_s";
/// Resamples of the bootstrap.
const RESAMPLES: u64 = 1000;

/// The feasible cell with the least `tasks/get` rate; of equals, the first in the plan.
pub fn choose(cells: &[CellResult]) -> Option<&CellResult> {
    choose_by(cells, LOAD)
}

/// The feasible cell with the least mean of a metric of the fleet; of equals, the first in the plan.
pub fn choose_by<'c>(cells: &'c [CellResult], metric: &str) -> Option<&'c CellResult> {
    let value = |cell: &CellResult| cell.estimate(metric).mean.unwrap_or(f64::INFINITY);
    let feasible = cells.iter().filter(|cell| cell.feasible());
    feasible.min_by(|a, b| value(a).total_cmp(&value(b)).then(a.number.cmp(&b.number)))
}

/// Holds other objectives against the results of a sweep.
pub fn judge_by(plan: &Plan, cells: &mut [CellResult], objectives: &[Objective]) {
    for cell in cells {
        let names = group_names(&plan.cells[cell.number].scenario);
        let verdict = |o: &Objective| judge(o, &names, &cell.estimates, cell.replications.len());
        cell.verdicts = objectives.iter().map(verdict).collect();
    }
}

/// The cells that no other beats in load, completion latency and abort latency at once, in the order of the plan. Where there are no aborts, their latency
/// is the same everywhere.
pub fn pareto(cells: &[CellResult]) -> Vec<&CellResult> {
    let values = |cell: &CellResult| {
        [LOAD, "completion_latency_p99_ms", "abort_latency_p99_ms"]
            .map(|metric| cell.estimate(metric).mean.unwrap_or(f64::INFINITY))
    };
    let beats = |a: &CellResult, b: &CellResult| {
        let (a, b) = (values(a), values(b));
        a.iter().zip(&b).all(|(a, b)| a <= b) && a != b
    };
    let beaten = |cell: &&CellResult| cells.iter().any(|other| beats(other, cell));
    cells.iter().filter(|cell| !beaten(cell)).collect()
}

/// What the choice would be if a bound were another.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// Number of the objective, from 0.
    pub objective: usize,
    /// Its bound is multiplied by this: for an upper bound, below 1 is tighter.
    pub factor: f64,
    /// The cell that would be chosen; `None` where nothing would be feasible.
    pub choice: Option<usize>,
}

/// How the choice moves when each objective is tightened and loosened by a tenth.
pub fn shifts(
    plan: &Plan,
    cells: &[CellResult],
    objectives: &[Objective],
    metric: &str,
) -> Vec<Shift> {
    let mut shifts = Vec::new();
    for objective in 0..objectives.len() {
        for factor in [0.9, 1.1] {
            let mut moved = objectives.to_vec();
            let bounds = &mut moved[objective];
            bounds.max = bounds.max.map(|max| max * factor);
            bounds.min = bounds.min.map(|min| min * (2.0 - factor));
            let mut judged = cells.to_vec();
            judge_by(plan, &mut judged, &moved);
            shifts.push(Shift {
                objective,
                factor,
                choice: choose_by(&judged, metric).map(|c| c.number),
            });
        }
    }
    shifts
}

/// The share of bootstrap resamples over the replications that choose the same cell (Efron 1979). Replications are drawn together for all cells, because they share
/// their chance.
pub fn confidence(
    plan: &Plan,
    cells: &[CellResult],
    objectives: &[Objective],
    metric: &str,
) -> Option<f64> {
    let chosen = choose_by(cells, metric)?.number;
    let names = catalogue::names();
    let level = plan.base.run.confidence.0;
    // Where each objective and the metric stand among the values of a cell.
    let places: Vec<Vec<Option<(usize, usize)>>> = cells
        .iter()
        .map(|cell| {
            let groups = group_names(&plan.cells[cell.number].scenario);
            let place = |over: &str, metric: &str| {
                let group = groups.iter().position(|g| g == over)?;
                Some((group, names.iter().position(|n| n == metric)?))
            };
            let asked = objectives.iter().map(|o| place(&o.over, &o.metric));
            asked.chain([place("fleet", metric)]).collect()
        })
        .collect();
    let same = (0..RESAMPLES).filter(|resample| {
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
                let load = estimate(places.last()?)?.mean?;
                holds.then_some((load, cell.number))
            })
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.is_some_and(|(_, number)| number == chosen)
    });
    Some(same.count() as f64 / RESAMPLES as f64)
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

/// Where nothing is feasible: for each objective, how many cells miss it, and its best value.
pub fn obstacles(cells: &[CellResult]) -> Vec<(Verdict, usize)> {
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
        let chosen = choose(&cells).unwrap();
        assert_eq!(
            plan.cells[chosen.number].in_words(),
            "floor 900ms, ceiling 1s"
        );
        let missed = obstacles(&cells);
        assert_eq!(missed[0].1, 1, "only the floor of 2 s misses the latency");
        assert_eq!(plan.missing(Shard::WHOLE, &store), (0, 15));

        // Every resample sees the same latencies, give or take: floor and limit are far apart.
        let objectives = &plan.base.objective;
        assert_eq!(confidence(&plan, &cells, objectives, LOAD), Some(1.0));
        // At 900 ms no floor but 100 ms is left; at 1,100 ms nothing else comes in.
        let moved: Vec<Option<usize>> = shifts(&plan, &cells, objectives, LOAD)
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
