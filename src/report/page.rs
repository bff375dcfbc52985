//! `decision.md` and `report.html`: one decision, two forms. The second is one file that needs no network, with sliders over the cells.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::decision::{Page, left, numbers, subject};
use super::table::bound;
use crate::experiment::cost::LOAD;
use crate::experiment::plan::Plan;
use crate::experiment::sweep::CellResult;
use crate::scenario::written::Objective;

/// Cells that the sliders know; of more, only the first, and the choice.
const MOST_CELLS: usize = 5_000;

/// Why a page could not be made.
pub type PageError = minijinja::Error;

/// Text to paste into a design document.
///
/// # Errors
/// The template could not be filled in.
pub fn markdown(page: &Page) -> Result<String, PageError> {
    let environment = environment()?;
    let template = environment.get_template("decision.md")?;
    let mut text = template.render(Serde(page))?;
    text.push('\n');
    Ok(text)
}

/// One file for a browser.
///
/// # Errors
/// The template could not be filled in.
pub fn html(
    page: &Page,
    plan: &Plan,
    cells: &[CellResult],
    chosen: Option<usize>,
) -> Result<String, PageError> {
    let environment = environment()?;
    let template = environment.get_template("report.html")?;
    let axes = axes(plan, chosen);
    let data = Data {
        cells: cells
            .iter()
            .filter(|cell| cell.number < MOST_CELLS || chosen == Some(cell.number))
            .map(|cell| data(plan, &axes, cell, chosen))
            .collect(),
        cut: cells.len().saturating_sub(MOST_CELLS),
        axes: &axes,
    };
    let data = serde_json::to_string(&data).unwrap_or_default();
    template.render(Serde(Whole {
        page,
        axes: &axes,
        // Inside a script element nothing may look like its end.
        data: data.replace('<', "\\u003c"),
    }))
}

fn environment() -> Result<Environment<'static>, PageError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|name| match name {
        "report.html" => AutoEscape::Html,
        _ => AutoEscape::None,
    });
    environment.add_filter("plain", plain);
    environment.add_filter("cell", |text: String| plain(text).replace('|', "\\|"));
    environment.add_template("decision.md", include_str!("templates/decision.md"))?;
    environment.add_template("report.html", include_str!("templates/report.html"))?;
    Ok(environment)
}

/// Text that stays text in Markdown, on one line: no tags, no breaks.
fn plain(text: String) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('\\', "\\\\").replace('<', "&lt;")
}

#[derive(Serialize)]
struct Whole<'p> {
    #[serde(flatten)]
    page: &'p Page,
    axes: &'p [Axis],
    data: String,
}

/// A slider: what is varied.
#[derive(Serialize)]
struct Axis {
    /// Of its element: the name, for it has letters, digits, `-` and `_` only.
    id: String,
    name: String,
    /// In the order of the plan.
    values: Vec<String>,
    /// Where it stands at first.
    start: usize,
}

#[derive(Serialize)]
struct Data<'p> {
    axes: &'p [Axis],
    cells: Vec<CellData>,
    /// Cells that are left out.
    cut: usize,
}

#[derive(Serialize)]
struct CellData {
    number: usize,
    /// Its place on each axis.
    at: Vec<usize>,
    title: String,
    load: Option<f64>,
    judged: bool,
    feasible: bool,
    chosen: bool,
    missed: Vec<String>,
    numbers: Vec<(String, String)>,
    margins: Vec<(String, String)>,
}

/// The axes, at the choice, or at the first cell.
fn axes(plan: &Plan, chosen: Option<usize>) -> Vec<Axis> {
    let start = &plan.cells[chosen.unwrap_or(0)].parameters;
    let axis = |(at, name): (usize, &str)| {
        let mut values: Vec<String> = Vec::new();
        for cell in &plan.cells {
            let value = &cell.parameters[at].1;
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        let here = values.iter().position(|v| *v == start[at].1);
        // The page has ids of its own.
        let taken = matches!(name, "map" | "map-note" | "data" | "explore-title");
        // A colon stands in no name of an axis.
        let taken = taken || name.starts_with("cell-") || name.ends_with("-value");
        Axis {
            id: if taken {
                format!("axis:{name}")
            } else {
                name.into()
            },
            name: name.into(),
            start: here.unwrap_or(0),
            values,
        }
    };
    let names = plan.parameters();
    names.into_iter().enumerate().map(axis).collect()
}

fn data(plan: &Plan, axes: &[Axis], cell: &CellResult, chosen: Option<usize>) -> CellData {
    let made = &plan.cells[cell.number];
    let place = |(axis, (_, value)): (&Axis, &(String, String))| {
        axis.values.iter().position(|v| v == value).unwrap_or(0)
    };
    let plain = |text: String| text.replace('`', "");
    let asked: Vec<Objective> = cell.verdicts.iter().map(|v| v.objective.clone()).collect();
    let missed = cell.verdicts.iter().filter(|v| !v.holds_at_the_bound());
    CellData {
        number: cell.number,
        at: axes.iter().zip(&made.parameters).map(place).collect(),
        title: made.in_words(),
        load: cell.estimate(LOAD).mean,
        judged: !cell.verdicts.is_empty(),
        feasible: cell.feasible(),
        chosen: chosen == Some(cell.number),
        missed: missed
            .map(|v| plain(format!("{} {}", subject(v), bound(&v.objective))))
            .collect(),
        numbers: numbers(
            plan,
            &asked,
            cell,
            plan.worst_hints || chosen == Some(cell.number),
        )
        .into_iter()
        .map(|row| (plain(row.label), row.value))
        .collect(),
        margins: cell
            .verdicts
            .iter()
            .map(|v| {
                (
                    plain(format!("{} {}", subject(v), bound(&v.objective))),
                    left(v),
                )
            })
            .collect(),
    }
}
