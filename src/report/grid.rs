//! A grid of floors and ceilings: table, CSV, figure, recommendation.

use std::fmt::Write;

use super::table::{align_numbers, objectives, plain_table};
use super::{Provenance, format};
use crate::catalogue;
use crate::charts::trade_off::{Line, Point, TradeOff};
use crate::experiment::grid::{Cell, Grid, choose, obstacles};

/// The metric on the latency axis.
const LATENCY: &str = "completion_latency_p99_ms";
const RATE: &str = "tasks_get_rate_mean_per_s";

/// `cells.csv`: a row per cell, three columns per metric of the fleet (mean, `_lo`, `_hi`).
pub fn cells_csv(cells: &[Cell], provenance: &Provenance) -> Vec<u8> {
    let names = catalogue::names();
    let chosen = choose(cells).map(|c| (c.floor, c.ceiling));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut head: Vec<String> = ["floor_ms", "ceiling_ms", "feasible", "chosen"]
        .map(String::from)
        .to_vec();
    head.extend(
        names
            .iter()
            .flat_map(|n| [n.clone(), format!("{n}_lo"), format!("{n}_hi")]),
    );
    head.extend(
        [
            "scenario",
            "parameters",
            "replications",
            "seed",
            "scenario_hash",
            "version",
        ]
        .map(String::from),
    );
    let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
    let rows = cells.iter().map(|cell| {
        let mut row = vec![
            (cell.floor.0 as f64 / 1e6).to_string(),
            (cell.ceiling.0 as f64 / 1e6).to_string(),
            cell.feasible().to_string(),
            (chosen == Some((cell.floor, cell.ceiling))).to_string(),
        ];
        row.extend(
            cell.fleet
                .iter()
                .flat_map(|e| [number(e.mean), number(e.lo), number(e.hi)]),
        );
        row.extend([
            provenance.scenario.clone(),
            provenance.parameters.clone(),
            cell.replications.to_string(),
            provenance.seed.to_string(),
            format!("{:016x}", cell.scenario_hash),
            provenance.version.clone(),
        ]);
        row
    });
    for row in std::iter::once(head).chain(rows) {
        writer.write_record(&row).expect("writing to memory");
    }
    writer.into_inner().expect("writing to memory")
}

/// The trade-off figure of a grid.
pub fn figure(grid: &Grid, cells: &[Cell], provenance: &Provenance) -> TradeOff {
    let chosen = choose(cells).map(|c| (c.floor, c.ceiling));
    let interval = |cell: &Cell, metric| {
        let e = cell.estimate(metric);
        e.mean
            .map(|mean| (e.lo.unwrap_or(mean), mean, e.hi.unwrap_or(mean)))
    };
    let line = |ceiling: &crate::scenario::units::Duration| Line {
        label: format!("ceiling {ceiling}"),
        points: cells
            .iter()
            .filter(|cell| cell.ceiling == *ceiling)
            .filter_map(|cell| {
                Some(Point {
                    label: cell.floor.to_string(),
                    latency_ms: interval(cell, LATENCY)?,
                    rate_per_s: interval(cell, RATE)?,
                    feasible: cell.feasible(),
                    chosen: chosen == Some((cell.floor, cell.ceiling)),
                })
            })
            .collect(),
    };
    let limit = grid
        .base
        .objective
        .iter()
        .find(|o| o.metric == LATENCY && o.over == "fleet")
        .and_then(|o| o.max);
    TradeOff {
        title: "Load against freshness: one point per floor, filled where the objectives are met"
            .into(),
        lines: grid.file.ceilings.iter().map(line).collect(),
        latency_limit_ms: limit,
        provenance: provenance.line(),
    }
}

/// The table of cells and the recommendation; none where the grid was interrupted.
pub fn text(grid: &Grid, cells: &[Cell], interrupted: bool, provenance: &Provenance) -> String {
    let mut out = format!("{}\n{}\n", grid.base.title, matrix(grid, cells));
    out.push_str(
        "each cell: tasks/get rate of the fleet, p99 completion latency; ✓ meets every objective at the unfavourable end of its \
         interval, ✗ misses those numbered, ▶ is the choice\n\n",
    );
    if interrupted {
        out.push_str("The grid was interrupted: no recommendation from a part of it.\n");
    } else if grid.base.objective.is_empty() {
        out.push_str("The scenario has no objectives, so there is nothing to choose by: add [[objective]].\n");
    } else {
        match choose(cells) {
            Some(cell) => recommend(&mut out, grid, cells, cell),
            None => explain(&mut out, cells),
        }
    }
    let _ = writeln!(out, "\n{}", provenance.line());
    out
}

fn matrix(grid: &Grid, cells: &[Cell]) -> comfy_table::Table {
    let chosen = choose(cells).map(|c| (c.floor, c.ceiling));
    let mut table = plain_table();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    let mut head = vec!["ceiling \\ floor".to_string()];
    head.extend(grid.file.floors.iter().map(ToString::to_string));
    table.set_header(head);
    for ceiling in &grid.file.ceilings {
        let mut row = vec![ceiling.to_string()];
        row.extend(grid.file.floors.iter().map(|floor| {
            let cell = cells
                .iter()
                .find(|c| c.floor == *floor && c.ceiling == *ceiling);
            let Some(cell) = cell else {
                return String::new();
            };
            let mark = if chosen == Some((*floor, *ceiling)) {
                "▶ ".to_string()
            } else if cell.feasible() {
                "✓ ".to_string()
            } else if cell.verdicts.is_empty() {
                String::new()
            } else {
                format!(
                    "✗{} ",
                    cell.missed()
                        .iter()
                        .map(usize::to_string)
                        .collect::<Vec<_>>()
                        .join(",")
                )
            };
            let whole = |metric| {
                let mean = cell.estimate(metric).mean;
                mean.map_or("–".into(), |x| format::number(Some(x.round())))
            };
            format!("{mark}{}/s\n{} ms", whole(RATE), whole(LATENCY))
        }));
        table.add_row(row);
    }
    align_numbers(&mut table);
    table
}

fn recommend(out: &mut String, grid: &Grid, cells: &[Cell], cell: &Cell) {
    let feasible = cells.iter().filter(|c| c.feasible()).count();
    let (floor, ceiling) = (cell.floor, cell.ceiling);
    let _ = writeln!(
        out,
        "Recommended: floor {floor}, ceiling {ceiling}: the least load (mean tasks/get rate) of the {feasible} cells that meet the objectives"
    );
    let _ = writeln!(
        out,
        "  tasks/get rate {} per s, completion latency p50 {} ms, p99 {} ms, abort latency p99 {} ms",
        format::estimate(&cell.estimate(RATE)),
        format::estimate(&cell.estimate("completion_latency_p50_ms")),
        format::estimate(&cell.estimate(LATENCY)),
        format::estimate(&cell.estimate("abort_latency_p99_ms"))
    );
    let _ = writeln!(out, "\n{}", objectives(&cell.verdicts).trim_end());
    let _ = writeln!(out, "\n[policy.{}]", grid.file.policy);
    let default = grid.base.policy.get(&grid.file.policy).map(|p| p.default);
    if let Some(default) = default.filter(|d| *d < floor || *d > ceiling) {
        let inside = default.clamp(floor, ceiling);
        let _ = writeln!(
            out,
            "default = \"{inside}\"  # the present {default} lies outside the bounds and never takes effect"
        );
    }
    let _ = writeln!(out, "floor = \"{floor}\"\nceiling = \"{ceiling}\"");
    if !cell.alerts.is_empty() {
        let _ = writeln!(
            out,
            "\nAlerts at the choice (counts over all {} replications)",
            cell.replications
        );
        for alert in &cell.alerts {
            let _ = writeln!(out, "  {}", alert.line());
        }
    }
}

fn explain(out: &mut String, cells: &[Cell]) {
    out.push_str("No floor and ceiling of this grid meets every objective. The obstacles:\n");
    for (verdict, misses) in obstacles(cells) {
        let bound = verdict.objective.max.or(verdict.objective.min);
        let _ = writeln!(
            out,
            "  {} ({}) against {}: missed in {misses} of {} cells; its best value is {}",
            verdict.objective.metric,
            verdict.objective.over,
            format::number(bound),
            cells.len(),
            format::estimate(&verdict.estimate)
        );
    }
    out.push_str("Widen the grid, loosen an objective, or give the servers more capacity.\n");
}
