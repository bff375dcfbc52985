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
const MOST_ROWS: usize = 20;

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

    fn title(&self) -> Option<String> {
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
    use super::*;

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
