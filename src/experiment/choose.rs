//! Which cell of a sweep? The feasible one with the least load; where there is none, what stands in the way.

use super::Verdict;
use super::sweep::CellResult;

/// The feasible cell with the least `tasks/get` rate; of equals, the first in the plan.
pub fn choose(cells: &[CellResult]) -> Option<&CellResult> {
    let rate = |cell: &CellResult| {
        let rate = cell.estimate("tasks_get_rate_mean_per_s").mean;
        rate.unwrap_or(f64::INFINITY)
    };
    let feasible = cells.iter().filter(|cell| cell.feasible());
    feasible.min_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.number.cmp(&b.number)))
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
    use crate::experiment::plan::Plan;
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
    }
}
