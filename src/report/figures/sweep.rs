//! The figures of a sweep: trade-off and map of a grid of floors and ceilings, curves, abort latency.

use super::super::Provenance;
use super::{Grid, curves};
use crate::catalogue;
use crate::charts::Figure;
use crate::charts::abort_latency::{AbortLatency, AbortRow};
use crate::charts::floor_ceiling_map::{FloorCeilingMap, MapCell};
use crate::charts::trade_off::{Line, Point, TradeOff};
use crate::experiment::cost::LOAD;
use crate::experiment::plan::Plan;
use crate::experiment::sweep::CellResult;
use crate::experiment::{Estimate, group_names};
use crate::model::Model;
use crate::policy::WaitManner;
use crate::scenario::written::Objective;

/// The metric on the latency axis.
const LATENCY: &str = "completion_latency_p99_ms";
const ABORT: &str = "abort_latency_p99_ms";
/// Rows of the figure of abort latency.
const MOST_ROWS: usize = 24;

/// The figures of a sweep whose choice, by these objectives, is the cell numbered `chosen`.
pub fn of_sweep(
    plan: &Plan,
    cells: &[CellResult],
    objectives: &[Objective],
    chosen: Option<usize>,
    provenance: &Provenance,
) -> Vec<Figure> {
    let swept = Swept {
        plan,
        cells,
        objectives,
        chosen,
        provenance: provenance.line(),
    };
    let mut figures = Vec::new();
    if let Some(grid) = Grid::of(plan) {
        figures.push(Figure::TradeOff(swept.trade_off(&grid)));
        figures.push(Figure::FloorCeilingMap(swept.map(&grid)));
    }
    figures.push(Figure::Curves(curves::of(&swept)));
    figures.push(Figure::AbortLatency(swept.abort_latency()));
    figures
}

/// The results of a sweep, and what they are asked.
pub(super) struct Swept<'a> {
    pub plan: &'a Plan,
    pub cells: &'a [CellResult],
    pub objectives: &'a [Objective],
    pub chosen: Option<usize>,
    pub provenance: String,
}

/// Lower end, mean, upper end; the mean alone where there is no interval. `None` where the mean is undefined or not finite.
pub(super) fn interval(e: Estimate) -> Option<(f64, f64, f64)> {
    let mean = e.mean.filter(|x| x.is_finite())?;
    let end = |x: Option<f64>| x.filter(|x| x.is_finite()).unwrap_or(mean);
    Some((end(e.lo), mean, end(e.hi)))
}

/// So many of `n` things, evenly spread, the first and the last of them, and `one` that must be among them.
pub(super) fn spread(n: usize, most: usize, one: Option<usize>) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    let mut all: Vec<usize> = (0..most).map(|k| k * (n - 1) / (most - 1).max(1)).collect();
    if let Some(one) = one.filter(|one| !all.contains(one)) {
        let nearest = (0..most).min_by_key(|k| all[*k].abs_diff(one));
        if let Some(k) = nearest {
            all[k] = one;
        }
    }
    all
}

impl Swept<'_> {
    /// The estimate of a metric over a group; undefined where the cell has none.
    pub fn estimate(&self, cell: &CellResult, over: &str, metric: &str) -> Estimate {
        if over == "fleet" {
            return cell.estimate(metric);
        }
        let groups = group_names(&self.plan.cells[cell.number].scenario);
        let group = groups.iter().position(|name| name == over);
        let at = catalogue::names().iter().position(|name| name == metric);
        let found = group
            .zip(at)
            .and_then(|(g, m)| Some(*cell.estimates.get(g)?.get(m)?));
        found.unwrap_or(Estimate::UNDEFINED)
    }

    /// The strictest upper bound that an objective sets on a metric of the fleet.
    fn limit(&self, metric: &str) -> Option<f64> {
        let own = self
            .objectives
            .iter()
            .filter(|o| o.metric == metric && o.over == "fleet");
        own.filter_map(|o| o.max).reduce(f64::min)
    }

    /// The question of the sweep, or what its scenario is about.
    pub fn title(&self) -> Option<String> {
        let titles = [&self.plan.experiment.title, &self.plan.base.title];
        titles.into_iter().find(|t| !t.is_empty()).cloned()
    }

    fn trade_off(&self, grid: &Grid) -> TradeOff {
        let point = |floor, ceiling| {
            let cell = grid.cell(self.plan, self.cells, (floor, ceiling))?;
            Some(Point {
                label: floor.to_string(),
                latency_ms: interval(cell.estimate(LATENCY))?,
                rate_per_s: interval(cell.estimate(LOAD))?,
                feasible: cell.feasible(),
                chosen: self.chosen == Some(cell.number),
            })
        };
        let line = |ceiling: &_| Line {
            label: format!("ceiling {ceiling}"),
            points: grid
                .floors
                .iter()
                .filter_map(|floor| point(*floor, *ceiling))
                .collect(),
        };
        let title =
            "Load against freshness: one point per floor, filled where the objectives are met";
        TradeOff {
            title: title.into(),
            lines: grid
                .ceilings
                .iter()
                .map(line)
                .filter(|l| !l.points.is_empty())
                .collect(),
            latency_limit_ms: self.limit(LATENCY),
            rate_limit_per_s: self.limit(LOAD),
            provenance: self.provenance.clone(),
        }
    }

    fn map(&self, grid: &Grid) -> FloorCeilingMap {
        let mut cells = Vec::new();
        for (i, floor) in grid.floors.iter().enumerate() {
            for (j, ceiling) in grid.ceilings.iter().enumerate() {
                let Some(cell) = grid.cell(self.plan, self.cells, (*floor, *ceiling)) else {
                    continue;
                };
                let mean = |metric| cell.estimate(metric).mean.filter(|x| x.is_finite());
                cells.push(MapCell {
                    floor: i,
                    ceiling: j,
                    load_per_s: mean(LOAD),
                    completion_p99_ms: mean(LATENCY),
                    abort_p99_ms: mean(ABORT),
                    feasible: (!cell.verdicts.is_empty()).then(|| cell.feasible()),
                    chosen: self.chosen == Some(cell.number),
                });
            }
        }
        FloorCeilingMap {
            title: self.title().unwrap_or_else(|| "Floors and ceilings".into()),
            floors: grid.floors.iter().map(ToString::to_string).collect(),
            ceilings: grid.ceilings.iter().map(ToString::to_string).collect(),
            cells,
            completion_limit_ms: self.limit(LATENCY),
            abort_limit_ms: self.limit(ABORT),
            provenance: self.provenance.clone(),
        }
    }

    /// A row for each way in which the policies of aborted tasks wait, and each ceiling: of the cells that have it, the one that is most like the choice.
    fn abort_latency(&self) -> AbortLatency {
        let mut kinds: Vec<(Waits, Vec<&CellResult>)> = Vec::new();
        for cell in self.cells.iter().filter(|c| abort_row(c, "").is_some()) {
            let kind = manners(&self.plan.cells[cell.number].scenario);
            match kinds.iter_mut().find(|k| k.0 == kind) {
                Some((_, cells)) => cells.push(cell),
                None => kinds.push((kind, vec![cell])),
            }
        }
        let chosen = self.chosen.map(|n| &self.plan.cells[n].parameters);
        let likeness = |cell: &CellResult| {
            let own = &self.plan.cells[cell.number].parameters;
            chosen.map_or(0, |c| c.iter().zip(own).filter(|(a, b)| a == b).count())
        };
        // Of equals, the first in the plan.
        let like = |cells: &Vec<&CellResult>| {
            cells
                .iter()
                .copied()
                .rev()
                .max_by_key(|c| likeness(c))
                .map(|c| c.number)
        };
        let shown: Vec<usize> = kinds.iter().filter_map(|(_, cells)| like(cells)).collect();
        let choice = shown.iter().position(|n| Some(*n) == self.chosen);
        let rows = spread(shown.len(), MOST_ROWS, choice)
            .into_iter()
            .filter_map(|k| {
                let cell = self.cells.iter().find(|c| c.number == shown[k])?;
                let mut row = abort_row(cell, &self.differing(&shown, shown[k]))?;
                row.chosen = self.chosen == Some(cell.number);
                Some(row)
            });
        AbortLatency {
            title: "How long an abort takes to give control back".into(),
            rows: rows.collect(),
            limit_ms: limit_of(self.objectives),
            provenance: self.provenance.clone(),
        }
    }

    /// The parameters of a cell in which these cells differ, in words.
    fn differing(&self, shown: &[usize], number: usize) -> String {
        let own = &self.plan.cells[number].parameters;
        let differs = |i: &usize| {
            shown
                .iter()
                .any(|n| self.plan.cells[*n].parameters[*i] != own[*i])
        };
        let words: Vec<String> = (0..own.len())
            .filter(differs)
            .map(|i| format!("{} {}", own[i].0, own[i].1))
            .collect();
        match words.is_empty() {
            true => self.plan.cells[number].in_words(),
            false => words.join(", "),
        }
    }
}

/// How waits end on an abort and how long they are at most, by tenant class, as something that can be compared.
type Waits = Vec<((u8, u64), u64)>;

/// The manners and ceilings of the policies of tenants that abort.
fn manners(scenario: &crate::scenario::Scenario) -> Waits {
    let model = Model::new(scenario);
    let aborting = model.tenants.iter().filter(|t| t.abort.is_some());
    aborting
        .map(|t| {
            let policy = &model.policies[t.policy];
            let manner = match policy.manner {
                WaitManner::Interruptible => (0, 0),
                WaitManner::CheckedAfterSleep => (1, 0),
                WaitManner::Sliced(slice) => (2, slice),
                WaitManner::Ignored => (3, 0),
            };
            (manner, policy.ceiling)
        })
        .collect()
}

fn abort_row(cell: &CellResult, label: &str) -> Option<AbortRow> {
    row(label, |statistic| {
        cell.estimate(&format!("abort_latency_{statistic}_ms"))
    })
}

/// The distribution of abort latency from its statistics; `None` where no abort has settled.
pub(super) fn row(label: &str, estimate: impl Fn(&str) -> Estimate) -> Option<AbortRow> {
    let mean = |statistic| estimate(statistic).mean.filter(|x| x.is_finite());
    Some(AbortRow {
        label: label.into(),
        chosen: false,
        min_ms: mean("min")?,
        p50_ms: mean("p50")?,
        p90_ms: mean("p90")?,
        p95_ms: mean("p95")?,
        p99_ms: mean("p99"),
        max_ms: mean("max"),
    })
}

/// The strictest objective on a quantile of abort latency, and the quantile.
pub(super) fn limit_of(objectives: &[Objective]) -> Option<(f64, String)> {
    let own = objectives.iter().filter_map(|o| {
        let of = o
            .metric
            .strip_prefix("abort_latency_")?
            .strip_suffix("_ms")?;
        Some((o.max?, of.to_string()))
    });
    own.min_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::store::Store;
    use crate::experiment::sweep::{Shard, Watch};

    struct Unwatched;

    impl Watch for Unwatched {
        fn plan(&self, _units: u64) {}
        fn done(&self) {}
    }

    /// The figures of a sweep over a small fleet whose tasks are aborted while they wait, with an objective.
    fn figures(axes: &str) -> Vec<Figure> {
        let fleet = format!(
            "{}\nceiling = \"2s\"\nwait = \"checked_after_sleep\"\n[[objective]]\nmetric = \"completion_latency_p99_ms\"\nmax = 900\n",
            crate::experiment::tests::SMALL.replace(
                "duration = \"3s\"",
                "duration = \"3s\"\nabort = { probability = 0.5, after = \"1500ms\" }"
            )
        );
        let text = format!("scenario = \"small.toml\"\n{axes}");
        let experiment = crate::scenario::read("sweep", &text).unwrap();
        let load =
            |overrides: &[String]| Ok(crate::scenario::parse("small", &fleet, overrides)?.scenario);
        let plan = Plan::new("sweep", experiment, load).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (store, stop) = (Store::new(folder.path()), AtomicBool::new(false));
        let cells = plan.run(Shard::WHOLE, &store, &stop, &Unwatched).unwrap();
        let chosen = crate::experiment::choose::choose(&cells, &plan.cost).map(|c| c.number);
        let provenance = Provenance::new("sweep", &[], &plan.base);
        let figures = of_sweep(&plan, &cells, &plan.base.objective, chosen, &provenance);
        figures
            .iter()
            .for_each(|f| assert!(f.svg().is_ok(), "{}", f.name()));
        figures
    }

    const FLOORS: &str = "constraints = [\"floor <= ceiling\"]\n[[axis]]\nname = \"floor\"\npath = \"policy.p.floor\"\nvalues = [\"500ms\", \"1s\", \"2s\"]\n\
                          [[axis]]\nname = \"ceiling\"\npath = \"policy.p.ceiling\"\nvalues = [\"1s\", \"2s\"]\n";

    #[test]
    fn a_grid_has_four_figures_with_the_choice_in_each() {
        let figures = figures(FLOORS);
        let [
            Figure::TradeOff(trade_off),
            Figure::FloorCeilingMap(map),
            Figure::Curves(curves),
            Figure::AbortLatency(abort),
        ] = &figures[..]
        else {
            panic!("{figures:?}");
        };
        // With a default of 1 s, a floor of 2 s is the one that waits too long.
        let points = trade_off.lines.iter().flat_map(|l| &l.points);
        assert_eq!(points.clone().filter(|p| p.chosen).count(), 1);
        assert_eq!(trade_off.latency_limit_ms, Some(900.0));
        assert_eq!(map.cells.len(), 5, "2s over 1s is left out");
        let infeasible: Vec<(usize, usize)> = map
            .cells
            .iter()
            .filter(|c| c.feasible == Some(false))
            .map(|c| (c.floor, c.ceiling))
            .collect();
        assert_eq!(infeasible, [(2, 1)]);
        let lines: Vec<usize> = curves.columns.iter().map(|c| c.lines.len()).collect();
        assert_eq!((curves.metrics.len(), lines), (4, vec![2, 3]));
        assert_eq!(curves.metrics[2].limits, [900.0]);
        assert_eq!(abort.rows.len(), 2, "a row for each ceiling");
        assert_eq!(abort.rows.iter().filter(|r| r.chosen).count(), 1);
    }

    #[test]
    fn another_sweep_has_curves_over_its_first_numbers_and_a_row_for_each_manner() {
        let figures = figures(
            "[[axis]]\nname = \"wait\"\npath = \"policy.p.wait\"\nvalues = [\"interruptible\", \"checked_after_sleep\"]\n\
             [[axis]]\nname = \"members\"\npath = \"tenant.t.count\"\nvalues = [3, 1]\n",
        );
        let [Figure::Curves(curves), Figure::AbortLatency(abort)] = &figures[..] else {
            panic!("{figures:?}");
        };
        let column = &curves.columns[0];
        assert_eq!(column.x, [(1.0, "1".to_string()), (3.0, "3".to_string())]);
        let lines: Vec<&str> = column.lines.iter().map(|l| l.label.as_str()).collect();
        assert_eq!(
            (column.x_label.as_str(), lines),
            ("members", vec!["interruptible", "checked_after_sleep"])
        );
        assert!(!column.categories);
        let labels: Vec<&str> = abort.rows.iter().map(|r| r.label.as_str()).collect();
        assert!(
            labels[0].contains("wait interruptible") && labels.len() == 2,
            "{labels:?}"
        );
        assert!(abort.rows[0].p50_ms < abort.rows[1].p50_ms);
    }

    #[test]
    fn where_nothing_is_a_number_x_has_categories() {
        let figures = figures(
            "[[axis]]\nname = \"wait\"\npath = \"policy.p.wait\"\nvalues = [\"interruptible\", \"ignored\"]\n",
        );
        let Figure::Curves(curves) = &figures[0] else {
            panic!("{figures:?}");
        };
        assert!(curves.columns[0].categories && curves.columns[0].lines.len() == 1);
        assert_eq!(curves.columns[0].x[1], (1.0, "ignored".to_string()));
    }

    #[test]
    fn what_is_spread_keeps_its_ends_and_the_one() {
        assert_eq!(spread(3, 5, None), [0, 1, 2]);
        assert_eq!(spread(20, 5, None), [0, 4, 9, 14, 19]);
        assert_eq!(spread(20, 5, Some(8)), [0, 4, 8, 14, 19]);
        assert_eq!(spread(20, 5, Some(4)), [0, 4, 9, 14, 19]);
    }

    #[test]
    fn the_strictest_objective_on_aborts_is_found() {
        let objective = |metric: &str, max| Objective {
            metric: metric.into(),
            over: "fleet".into(),
            max,
            min: None,
        };
        let all = [
            objective("abort_latency_p99_ms", Some(500.0)),
            objective("abort_latency_p95_ms", Some(300.0)),
            objective("completion_latency_p99_ms", Some(1.0)),
            objective("abort_latency_p50_ms", None),
        ];
        assert_eq!(limit_of(&all), Some((300.0, "p95".into())));
        assert_eq!(limit_of(&all[2..]), None);
    }
}
