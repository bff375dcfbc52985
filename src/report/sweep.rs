//! A sweep: tables and CSV.

use std::io::{self, Write};

use rayon::prelude::*;

use super::columns::{self, Column};
use super::decision;
pub use super::figures::Grid;
use super::table::{align_numbers, label, plain_table};
use super::{Provenance, format};
use crate::catalogue;
use crate::experiment::Estimate;
use crate::experiment::choose::choose;
use crate::experiment::cost::LOAD;
use crate::experiment::plan::{Cell, Plan};
use crate::experiment::store::Seen;
use crate::experiment::sweep::CellResult;

/// The metric on the latency axis.
const LATENCY: &str = "completion_latency_p99_ms";
/// A list of more cells than this is cut.
const LISTED: usize = 40;

/// `cells.csv`: a row per cell, its parameters, then three columns per metric of the fleet (mean, `_lo`, `_hi`).
pub fn cells_csv(plan: &Plan, cells: &[CellResult], provenance: &Provenance) -> Vec<u8> {
    let names = catalogue::names();
    let chosen = chosen_of(plan, cells);
    let rows = cells.iter().map(|cell| {
        let made = &plan.cells[cell.number];
        let mut row = vec![cell.number.to_string()];
        row.extend(made.parameters.iter().map(|(_, value)| value.clone()));
        row.push(cell.feasible().to_string());
        row.push((chosen == Some(cell.number)).to_string());
        let empty = vec![Estimate::UNDEFINED; names.len()];
        let fleet = cell.estimates.first().unwrap_or(&empty);
        row.extend(
            fleet
                .iter()
                .flat_map(|e| [number(e.mean), number(e.lo), number(e.hi)]),
        );
        row.extend(repeat_with(made, cell, provenance));
        row
    });
    write_csv(&columns::cells(&plan.parameters()), rows)
}

/// Writes `results.csv`: a row per cell, replication, group and metric.
///
/// # Errors
/// What `out` says.
pub fn results_csv(
    plan: &Plan,
    cells: &[CellResult],
    provenance: &Provenance,
    out: &mut dyn Write,
) -> io::Result<()> {
    // There may be more rows than fit into memory: so many cells at a time, as many of these as there are threads at once.
    const CELLS: usize = 32;
    out.write_all(&write_csv(
        &columns::results(&plan.parameters()),
        std::iter::empty(),
    ))?;
    for some in cells.chunks(CELLS) {
        let rows = some.par_iter().map(|cell| rows_of(plan, cell, provenance));
        for text in rows.collect::<Vec<_>>() {
            out.write_all(&text)?;
        }
    }
    Ok(())
}

/// The rows of a cell in `results.csv`. What many rows share is written once.
fn rows_of(plan: &Plan, cell: &CellResult, provenance: &Provenance) -> Vec<u8> {
    let made = &plan.cells[cell.number];
    let names: Vec<String> = catalogue::names().iter().map(|n| field(n)).collect();
    let groups: Vec<String> = crate::experiment::group_names(&made.scenario)
        .iter()
        .map(|g| field(g))
        .collect();
    let parameters = made.parameters.iter().map(|(_, value)| field(value));
    let cell_number = std::iter::once(cell.number.to_string());
    let head = cell_number.chain(parameters).collect::<Vec<_>>().join(",");
    let tail: Vec<String> = repeat_with(made, cell, provenance)
        .map(|value| field(&value))
        .collect();
    let mut text = String::new();
    for replication in &cell.replications {
        let end = format!("{:016x},{}", replication.fingerprint, tail.join(","));
        for (group, values) in groups.iter().zip(&replication.values) {
            let start = format!("{head},{},{group}", replication.number);
            for (name, value) in names.iter().zip(values) {
                let value = number(value.filter(|x| x.is_finite()));
                for part in [&*start, ",", name, ",", &value, ",", &end, "\n"] {
                    text.push_str(part);
                }
            }
        }
    }
    text.into_bytes()
}

/// A value as it stands between the commas of a CSV file.
fn field(value: &str) -> String {
    // A row of one empty value is written in quotes, to be seen.
    if value.is_empty() {
        return String::new();
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([value]).expect("writing to memory");
    let line = writer.into_inner().expect("writing to memory");
    String::from_utf8_lossy(&line).trim_end_matches('\n').into()
}

/// The number of the choice; there is none from a part of a sweep.
fn chosen_of(plan: &Plan, cells: &[CellResult]) -> Option<usize> {
    choose(cells, &plan.cost).map(|c| c.number)
}

/// What is needed to repeat a row.
fn repeat_with(
    made: &Cell,
    cell: &CellResult,
    provenance: &Provenance,
) -> impl Iterator<Item = String> {
    [
        provenance.scenario.clone(),
        cell.replications.len().to_string(),
        made.scenario.run.seed.to_string(),
        format!("{:016x}", made.key),
        provenance.version.clone(),
    ]
    .into_iter()
}

/// Whole numbers, too, with a decimal point: readers that look at the first rows only take no column for one of whole numbers.
pub(super) fn number(x: Option<f64>) -> String {
    x.map_or(String::new(), |x| format!("{x:?}"))
}

/// A CSV text: a head from the columns, and rows that have a value for each.
pub(super) fn write_csv(columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = columns.iter().map(|column| &column.name);
    writer.write_record(head).expect("writing to memory");
    for row in rows {
        writer.write_record(&row).expect("writing to memory");
    }
    writer.into_inner().expect("writing to memory")
}

/// How a cell fares: the choice, feasible, or the objectives that it misses; with a space behind it.
pub(super) fn mark(cell: &CellResult, chosen: bool) -> String {
    match () {
        () if !cell.whole => "… ".into(),
        () if chosen => "▶ ".into(),
        () if cell.feasible() => "✓ ".into(),
        () if cell.verdicts.is_empty() => String::new(),
        () => {
            let missed: Vec<String> = cell.missed().iter().map(usize::to_string).collect();
            format!("✗{} ", missed.join(","))
        }
    }
}

/// The cells with their main values: floors by ceilings where these are what is varied.
pub fn table(plan: &Plan, cells: &[CellResult]) -> String {
    let table = match Grid::of(plan) {
        Some(grid) => matrix(plan, &grid, cells),
        None => list(plan, cells),
    };
    format!(
        "{table}\ntasks/get rate of the fleet, p99 completion latency; ✓ meets every objective at the unfavourable end of its \
         interval, ✗ misses those numbered, ▶ is the choice\n"
    )
}

fn whole(e: Estimate) -> String {
    e.mean
        .map_or("–".into(), |x| format::number(Some(x.round())))
}

/// Ceilings by floors.
fn matrix(plan: &Plan, grid: &Grid, cells: &[CellResult]) -> comfy_table::Table {
    let chosen = chosen_of(plan, cells);
    let mut table = plain_table();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    let mut head = vec!["ceiling \\ floor".to_string()];
    head.extend(grid.floors.iter().map(ToString::to_string));
    table.set_header(head);
    for ceiling in &grid.ceilings {
        let mut row = vec![ceiling.to_string()];
        row.extend(grid.floors.iter().map(|floor| {
            let Some(cell) = grid.cell(plan, cells, (*floor, *ceiling)) else {
                return String::new();
            };
            let mark = mark(cell, chosen == Some(cell.number));
            format!(
                "{mark}{}/s\n{} ms",
                whole(cell.estimate(LOAD)),
                whole(cell.estimate(LATENCY))
            )
        }));
        table.add_row(row);
    }
    align_numbers(&mut table);
    table
}

/// A row per cell.
fn list(plan: &Plan, cells: &[CellResult]) -> comfy_table::Table {
    let chosen = chosen_of(plan, cells);
    let mut table = rows(
        plan,
        &decision::columns(plan, &plan.base.objective, cells),
        cells.iter().take(LISTED),
        chosen,
    );
    if cells.len() > LISTED {
        table.add_row(vec![format!(
            "… {} more in cells.csv",
            cells.len() - LISTED
        )]);
    }
    table
}

/// The parameters and the main values of cells.
pub(super) fn rows<'c>(
    plan: &Plan,
    columns: &[&str],
    cells: impl Iterator<Item = &'c CellResult>,
    chosen: Option<usize>,
) -> comfy_table::Table {
    let mut table = plain_table();
    let mut head: Vec<String> = plan.parameters().into_iter().map(String::from).collect();
    head.push(String::new());
    head.extend(columns.iter().map(|m| label(m)));
    table.set_header(head);
    for cell in cells {
        let parameters = &plan.cells[cell.number].parameters;
        let mut row: Vec<String> = parameters.iter().map(|(_, v)| v.clone()).collect();
        row.push(mark(cell, chosen == Some(cell.number)));
        row.extend(columns.iter().map(|m| format::estimate(&cell.estimate(m))));
        table.add_row(row);
    }
    align_numbers(&mut table);
    table
}

/// An alert in a line.
pub(super) fn alert_line(seen: &Seen) -> String {
    let place = match (seen.tenant.as_str(), seen.server.as_str()) {
        ("", server) => format!("server {server}"),
        (tenant, "") => format!("tenant {tenant}"),
        (tenant, server) => format!("tenant {tenant} on server {server}"),
    };
    let worst = match seen.worst {
        Some(x) if !seen.worst_is.is_empty() => {
            format!("; {}: {}", seen.worst_is, format::number(Some(x)))
        }
        _ => String::new(),
    };
    format!(
        "{} ({place}): {} cases{worst}",
        seen.alert,
        format::number(Some(seen.count as f64))
    )
}
