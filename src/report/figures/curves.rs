//! The curves of a sweep: floors and ceilings each over the other, or the first thing that is varied with a line for each value of the rest.

use super::super::table::label;
use super::Grid;
use super::sweep::{Swept, interval, spread};
use crate::charts::curves::{
    Curves, CurvesColumn, CurvesLine, CurvesMetric, CurvesPoint, MOST_LINES,
};
use crate::experiment::cost::LOAD;
use crate::experiment::sweep::CellResult;
use crate::scenario::units::Duration;
use crate::theory;

/// The metrics that are always shown where they are defined.
const METRICS: [&str; 4] = [
    LOAD,
    "completion_latency_p50_ms",
    "completion_latency_p99_ms",
    "abort_latency_p99_ms",
];
/// Rows of the figure.
const MOST_METRICS: usize = 8;

/// A metric of a group, and its words.
struct Metric {
    over: String,
    name: String,
    label: String,
}

/// What stands on the x axis of a column and what has a line: for each cell its x, and the key of its line.
struct Layout {
    heading: String,
    x_label: String,
    x: Vec<(f64, String)>,
    categories: bool,
    /// The lines, in order.
    lines: Vec<String>,
    /// For each cell, in the order of the results: (x, line).
    places: Vec<(f64, usize)>,
}

/// The figure.
pub(super) fn of(swept: &Swept<'_>) -> Curves {
    let metrics = metrics(swept);
    let layouts = match Grid::of(swept.plan) {
        Some(_) => vec![
            over_bound(swept, "floor", "ceiling"),
            over_bound(swept, "ceiling", "floor"),
        ],
        None => vec![over_first(swept)],
    };
    Curves {
        title: swept
            .title()
            .unwrap_or_else(|| "Each metric over what is varied".into()),
        columns: layouts
            .iter()
            .map(|layout| column(swept, &metrics, layout))
            .collect(),
        metrics: metrics
            .into_iter()
            .map(|m| CurvesMetric {
                limits: limits(swept, &m),
                label: m.label,
            })
            .collect(),
        provenance: swept.provenance.clone(),
    }
}

/// The metrics that have a value somewhere: the usual ones, and those of the objectives.
fn metrics(swept: &Swept<'_>) -> Vec<Metric> {
    let metric = |over: &str, name: &str| {
        let of = match over {
            "fleet" => String::new(),
            group => format!("{group}: "),
        };
        Metric {
            over: over.into(),
            name: name.into(),
            label: format!("{of}{}", label(name).trim_matches('`')),
        }
    };
    let mut metrics: Vec<Metric> = METRICS
        .into_iter()
        .map(|name| metric("fleet", name))
        .collect();
    for o in swept.objectives {
        if metrics
            .iter()
            .any(|m| m.over == o.over && m.name == o.metric)
        {
            continue;
        }
        metrics.push(metric(&o.over, &o.metric));
    }
    metrics.retain(|m| {
        swept
            .cells
            .iter()
            .any(|c| interval(swept.estimate(c, &m.over, &m.name)).is_some())
    });
    metrics.truncate(MOST_METRICS);
    metrics
}

fn limits(swept: &Swept<'_>, metric: &Metric) -> Vec<f64> {
    let own = swept
        .objectives
        .iter()
        .filter(|o| o.metric == metric.name && o.over == metric.over);
    own.flat_map(|o| [o.min, o.max]).flatten().collect()
}

/// One bound over the other, in seconds.
fn over_bound(swept: &Swept<'_>, x: &str, line: &str) -> Layout {
    let value = |cell: &CellResult, name: &str| {
        let parameters = &swept.plan.cells[cell.number].parameters;
        let found = parameters.iter().find(|(n, _)| n == name);
        found
            .and_then(|(_, v)| Duration::parse(v).ok())
            .unwrap_or(Duration(0))
    };
    let all = |name: &str| {
        let mut all: Vec<Duration> = swept.cells.iter().map(|c| value(c, name)).collect();
        all.sort();
        all.dedup();
        all
    };
    let lines = all(line);
    let place = |cell: &CellResult| {
        let own = value(cell, line);
        let at = lines.iter().position(|l| *l == own).unwrap_or(0);
        (seconds(value(cell, x)), at)
    };
    Layout {
        heading: format!("over the {x}, a line per {line}"),
        x_label: x.into(),
        x: all(x)
            .into_iter()
            .map(|d| (seconds(d), d.to_string()))
            .collect(),
        categories: false,
        places: swept.cells.iter().map(place).collect(),
        lines: lines.iter().map(ToString::to_string).collect(),
    }
}

fn seconds(d: Duration) -> f64 {
    d.0 as f64 / 1e9
}

/// A number, or a duration in seconds.
fn size(text: &str) -> Option<f64> {
    let time = Duration::parse(text).ok().map(seconds);
    time.or_else(|| text.parse().ok())
        .filter(|x: &f64| x.is_finite())
}

/// The first axis of numbers or durations, else the first that has more than one value; the others make the lines.
fn over_first(swept: &Swept<'_>) -> Layout {
    let parameters = |cell: &CellResult| &swept.plan.cells[cell.number].parameters;
    let names = swept.plan.parameters();
    let values = |i: usize| {
        let mut seen: Vec<&String> = Vec::new();
        for cell in swept.cells {
            let value = &parameters(cell)[i].1;
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        seen
    };
    let several: Vec<usize> = (0..names.len()).filter(|i| values(*i).len() > 1).collect();
    let sized = |i: &&usize| values(**i).iter().all(|v| size(v).is_some());
    let first = several.iter().find(sized).or(several.first()).copied();
    let Some(first) = first else {
        return Layout {
            heading: String::new(),
            x_label: "the scenario".into(),
            x: vec![(0.0, "as it is".into())],
            categories: true,
            lines: vec![String::new()],
            places: vec![(0.0, 0); swept.cells.len()],
        };
    };
    let numbers = sized(&&first);
    let words = values(first);
    let x_of = |value: &String| match numbers {
        true => size(value).unwrap_or(0.0),
        false => words.iter().position(|w| *w == value).unwrap_or(0) as f64,
    };
    let mut x: Vec<(f64, String)> = words.iter().map(|w| (x_of(w), w.to_string())).collect();
    x.sort_by(|a, b| a.0.total_cmp(&b.0));
    let others: Vec<usize> = several.iter().copied().filter(|i| *i != first).collect();
    let (lines, of) = lines_of(swept, &others);
    let places = swept.cells.iter().zip(of);
    let places = places.map(|(cell, line)| (x_of(&parameters(cell)[first].1), line));
    let per: Vec<&str> = others.iter().map(|i| names[*i]).collect();
    let heading = match per.is_empty() {
        true => format!("over {}", names[first]),
        false => format!("over {}, a line per {}", names[first], per.join(" / ")),
    };
    Layout {
        heading,
        x_label: names[first].into(),
        x,
        categories: !numbers,
        lines,
        places: places.collect(),
    }
}

/// The combinations of these parameters in the order of the plan, and for each cell which it has.
fn lines_of(swept: &Swept<'_>, parameters: &[usize]) -> (Vec<String>, Vec<usize>) {
    let mut lines: Vec<String> = Vec::new();
    let mut of = Vec::new();
    for cell in swept.cells {
        let all = &swept.plan.cells[cell.number].parameters;
        let own: Vec<&str> = parameters.iter().map(|i| all[*i].1.as_str()).collect();
        let key = own.join(" / ");
        of.push(lines.iter().position(|l| *l == key).unwrap_or(lines.len()));
        if of.last() == Some(&lines.len()) {
            lines.push(key);
        }
    }
    (lines, of)
}

fn column(swept: &Swept<'_>, metrics: &[Metric], layout: &Layout) -> CurvesColumn {
    let choice = swept
        .cells
        .iter()
        .position(|c| Some(c.number) == swept.chosen);
    let chosen = choice.map(|i| layout.places[i].1);
    let shown = spread(layout.lines.len(), MOST_LINES - 1, chosen);
    let line = |line: usize| {
        let mut own: Vec<(f64, &CellResult)> = (layout.places.iter().zip(swept.cells))
            .filter(|(place, _)| place.1 == line)
            .map(|(place, cell)| (place.0, cell))
            .collect();
        own.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points = |m: &Metric| {
            let point = |(x, cell): &(f64, &CellResult)| {
                Some(CurvesPoint {
                    x: *x,
                    value: interval(swept.estimate(cell, &m.over, &m.name))?,
                    chosen: Some(cell.number) == swept.chosen,
                })
            };
            own.iter().filter_map(point).collect()
        };
        let closed = |m: &Metric| {
            if m.over != "fleet" {
                return Vec::new();
            }
            let point = |(x, cell): &(f64, &CellResult)| {
                let scenario = &swept.plan.cells[cell.number].scenario;
                Some((*x, theory::fleet::value(scenario, &m.name)?))
            };
            own.iter().filter_map(point).collect()
        };
        CurvesLine {
            label: layout.lines[line].clone(),
            chosen: chosen == Some(line),
            points: metrics.iter().map(points).collect(),
            closed_form: metrics.iter().map(closed).collect(),
        }
    };
    CurvesColumn {
        heading: layout.heading.clone(),
        x_label: layout.x_label.clone(),
        x: layout.x.clone(),
        categories: layout.categories,
        lines: shown.into_iter().map(line).collect(),
    }
}
