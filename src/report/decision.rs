//! The decision as a page: what `decision.md` and `report.html` say.

use std::collections::BTreeSet;

use serde::Serialize;

use super::sweep::{alert_line, mark};
use super::table::{bound, label};
use super::{Provenance, fleet, format};
use crate::catalogue::{Extreme, WORST_HINTS, is_worst_hint};
use crate::experiment::choose::{Obstacle, Shift};
use crate::experiment::cost::LOAD;
use crate::experiment::decision::{Chosen, Decision, Headroom, MOST_TASKS};
use crate::experiment::plan::Plan;
use crate::experiment::sweep::CellResult;
use crate::experiment::{Estimate, Verdict};
use crate::scenario::written::Objective;

/// Alternatives beyond so many are left to `cells.csv`.
const MOST_ALTERNATIVES: usize = 12;
/// What is told of every cell.
pub const SHOWN: [&str; 4] = [
    LOAD,
    "completion_latency_p50_ms",
    "completion_latency_p99_ms",
    "abort_latency_p99_ms",
];

/// A decision in words.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    question: String,
    fleet: Vec<String>,
    cost: String,
    cells: usize,
    confidence: String,
    /// Where the objectives hold: at an end of an interval, or at the mean of the only replication.
    held_at: String,
    choice: Option<Choice>,
    obstacles: Vec<Obstructed>,
    remedies: Vec<String>,
    figures: Vec<Picture>,
    alternatives: Table,
    /// Alternatives that are not shown.
    cut: usize,
    assumed: Vec<String>,
    commands: Vec<String>,
    provenance: String,
}

#[derive(Clone, Debug, Serialize)]
struct Choice {
    words: String,
    feasible: usize,
    replications: usize,
    toml: String,
    json: String,
    numbers: Vec<Row>,
    headroom: String,
    margins: Vec<Margin>,
    resamples: Option<String>,
    alerts: Vec<String>,
}

/// A number with its name.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is.
    pub label: String,
    /// The number, with its uncertainty.
    pub value: String,
}

#[derive(Clone, Debug, Serialize)]
struct Margin {
    objective: String,
    bound: String,
    value: String,
    left: String,
    tighter: String,
    looser: String,
}

#[derive(Clone, Debug, Serialize)]
struct Obstructed {
    objective: String,
    bound: String,
    nearest: String,
    missed: usize,
    needed: String,
}

/// A figure beside the page.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Its file, beside the page.
    pub file: String,
    /// What it shows.
    pub caption: String,
    /// Its SVG, for the page that has everything in itself.
    pub svg: String,
}

#[derive(Clone, Debug, Serialize)]
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Page {
    /// The page of a decision by the results `cells`, with the figures that stand beside it and the commands that repeat it.
    pub fn new(
        plan: &Plan,
        cells: &[CellResult],
        decision: &Decision,
        figures: Vec<Picture>,
        commands: Vec<String>,
        provenance: &Provenance,
    ) -> Self {
        let chosen = decision.chosen.as_ref();
        let titles = [&plan.experiment.title, &plan.base.title];
        let title = titles.into_iter().find(|t| !t.is_empty());
        let front = &decision.front;
        let shown = front.iter().take(MOST_ALTERNATIVES);
        Page {
            question: title.map_or("Which floor and which ceiling?".into(), |t| one_line(t)),
            fleet: fleet::in_words(&plan.base),
            cost: match decision.cost.is_load() {
                true => "load (mean `tasks/get` rate)".into(),
                false => format!("`{}`", decision.cost),
            },
            cells: cells.len(),
            confidence: percent(plan.base.run.confidence.0),
            held_at: held_at(plan, cells),
            choice: chosen.map(|chosen| Choice::new(plan, cells, decision, chosen)),
            obstacles: decision.obstacles.iter().map(Obstructed::new).collect(),
            remedies: remedies(plan, decision),
            figures,
            alternatives: alternatives(
                plan,
                &columns(plan, &decision.objectives, cells),
                shown.map(|n| &cells[*n]),
                chosen,
            ),
            cut: front.len().saturating_sub(MOST_ALTERNATIVES),
            assumed: assumed(plan),
            commands,
            provenance: provenance.line(),
        }
    }
}

impl Choice {
    fn new(plan: &Plan, cells: &[CellResult], decision: &Decision, chosen: &Chosen) -> Self {
        let made = &plan.cells[chosen.cell.number];
        let (toml, json) = fleet::snippets(plan, made);
        let replications = chosen.cell.replications.len();
        Choice {
            words: made.in_words(),
            feasible: cells.iter().filter(|c| c.feasible()).count(),
            replications,
            toml,
            json,
            numbers: numbers(plan, &decision.objectives, &chosen.cell, true),
            headroom: headroom(&chosen.headroom),
            margins: margins(plan, decision, chosen),
            resamples: chosen.confidence.map(|share| {
                format!(
                    "Of 1,000 bootstrap resamples of the {replications} replications, {:.1} % choose the same cell.",
                    100.0 * share
                )
            }),
            alerts: chosen.cell.alerts.iter().map(alert_line).collect(),
        }
    }
}

/// The numbers of a cell: those told of every cell, those of the objectives and of the experiment's `show`, and the worst hints where these `were_run`.
pub fn numbers(
    plan: &Plan,
    objectives: &[Objective],
    cell: &CellResult,
    were_run: bool,
) -> Vec<Row> {
    let mut metrics: Vec<&str> = SHOWN.to_vec();
    let fleet_wide = objectives.iter().filter(|o| o.over == "fleet");
    metrics.extend(fleet_wide.map(|o| o.metric.as_str()));
    metrics.extend(plan.experiment.show.iter().map(String::as_str));
    metrics.extend(WORST_HINTS.map(|w| w.name));
    let mut seen: Vec<&str> = Vec::new();
    metrics.retain(|m| {
        !seen.contains(m) && {
            seen.push(m);
            true
        }
    });
    metrics.retain(|m| were_run || !is_worst_hint(m));
    let row = |metric: &str| Row {
        label: label(metric),
        value: value(metric, &cell.estimate(metric)),
    };
    metrics.into_iter().map(row).collect()
}

/// An estimate in words. A load that is undefined under the worst hints is that of loops that take no time.
pub fn value(metric: &str, estimate: &Estimate) -> String {
    let of_load = WORST_HINTS
        .iter()
        .any(|w| w.name == metric && w.extreme == Extreme::Zero);
    match estimate.mean {
        None if of_load => "WITHOUT END: polls that take no time".into(),
        _ => format::estimate(estimate),
    }
}

pub(super) fn headroom(headroom: &Headroom) -> String {
    let tasks = format::number(headroom.tasks.map(f64::round));
    match headroom.at_least {
        true => format!(
            "Headroom: it stays feasible with {MOST_TASKS} times the tasks ({tasks} in the observed time); more was not tried."
        ),
        false => format!(
            "Headroom: it stays feasible up to {:.2} times the tasks ({tasks} in the observed time, to within 2 %).",
            headroom.factor
        ),
    }
}

/// An objective's subject.
pub fn subject(verdict: &Verdict) -> String {
    let o = &verdict.objective;
    match o.over.as_str() {
        "fleet" => label(&o.metric),
        over => format!("{} of {over}", label(&o.metric)),
    }
}

/// What is left of each bound, in words: the distance and its share of the bound.
pub fn left(verdict: &Verdict) -> String {
    let margin = -verdict.excess();
    let bound = verdict.objective.max.or(verdict.objective.min);
    let share = bound.filter(|b| *b != 0.0 && margin.is_finite());
    let share = share.map(|b| format!(" ({:.1} %)", 100.0 * margin / b.abs()));
    format::number(Some(margin)) + &share.unwrap_or_default()
}

fn margins(plan: &Plan, decision: &Decision, chosen: &Chosen) -> Vec<Margin> {
    let told = |objective: usize, tighter: bool| {
        let found = |s: &&Shift| s.objective == objective && (s.factor < 1.0) == tighter;
        match chosen.shifts.iter().find(found).and_then(|s| s.choice) {
            Some(number) if number == chosen.cell.number => "the same".to_string(),
            Some(number) => plan.cells[number].in_words(),
            None => "nothing is feasible".into(),
        }
    };
    let verdicts = chosen.cell.verdicts.iter().take(decision.objectives.len());
    let margin = |(i, verdict): (usize, &Verdict)| Margin {
        objective: subject(verdict),
        bound: bound(&verdict.objective),
        value: format::estimate(&verdict.estimate),
        left: left(verdict),
        tighter: told(i, true),
        looser: told(i, false),
    };
    verdicts.enumerate().map(margin).collect()
}

impl Obstructed {
    fn new(obstacle: &Obstacle) -> Self {
        let verdict = &obstacle.nearest;
        Obstructed {
            objective: subject(verdict),
            bound: bound(&verdict.objective),
            nearest: format::estimate(&verdict.estimate),
            missed: obstacle.missed,
            needed: match obstacle.needed {
                Some(needed) => format::bound(needed, verdict.objective.max.is_some()),
                None => "– (others are missed too)".into(),
            },
        }
    }
}

pub(super) fn remedies(plan: &Plan, decision: &Decision) -> Vec<String> {
    if decision.obstacles.is_empty() && decision.chosen.is_none() {
        return vec![format!(
            "The cost {} is undefined at every cell that meets the objectives: choose by another.",
            decision.cost
        )];
    }
    let told = decision.remedies.iter().map(|remedy| {
        let cell = plan.cells[remedy.cell].in_words();
        match remedy.helps {
            true => format!("With {}, {cell} would meet every objective.", remedy.what),
            false => format!("{} would not be enough at {cell}.", capital(&remedy.what)),
        }
    });
    told.collect()
}

/// The metrics that tables of cells show: load and latencies as far as they are defined anywhere, those of the objectives of the fleet, and the experiment's own.
pub fn columns<'p>(
    plan: &'p Plan,
    objectives: &'p [Objective],
    cells: &[CellResult],
) -> Vec<&'p str> {
    let mut metrics: Vec<&str> = SHOWN.to_vec();
    metrics.retain(|m| cells.iter().any(|c| c.estimate(m).mean.is_some()));
    let fleet_wide = objectives.iter().filter(|o| o.over == "fleet");
    metrics.extend(fleet_wide.map(|o| o.metric.as_str()));
    metrics.extend(plan.experiment.show.iter().map(String::as_str));
    let mut seen = BTreeSet::new();
    metrics.retain(|m| seen.insert(*m));
    metrics
}

fn alternatives<'c>(
    plan: &Plan,
    columns: &[&str],
    cells: impl Iterator<Item = &'c CellResult>,
    chosen: Option<&Chosen>,
) -> Table {
    let chosen = chosen.map(|c| c.cell.number);
    let mut head: Vec<String> = vec![String::new()];
    head.extend(plan.parameters().into_iter().map(String::from));
    head.extend(columns.iter().map(|m| label(m)));
    let row = |cell: &CellResult| {
        let parameters = &plan.cells[cell.number].parameters;
        let mut row = vec![mark(cell, chosen == Some(cell.number)).trim().to_string()];
        row.extend(parameters.iter().map(|(_, value)| value.clone()));
        row.extend(columns.iter().map(|m| format::estimate(&cell.estimate(m))));
        row
    };
    Table {
        head,
        rows: cells.map(row).collect(),
    }
}

fn assumed(plan: &Plan) -> Vec<String> {
    let run = &plan.base.run;
    let cell = &plan.cells[0].scenario.run;
    let replications = match &plan.experiment.precision {
        Some(p) => format!("{} to {}", p.min.0, p.max.0),
        None => cell.replications.0.to_string(),
    };
    vec![
        format!(
            "{replications} replications of {}, observed from {} on; intervals by Student's t over the replications.",
            cell.horizon.0, cell.warm_up
        ),
        common_random_numbers(plan),
        "Arrivals, durations, hints and delays stay as the scenario describes them: no trend, no time of day beyond what it says.".into(),
        format!("Seed {}; another seed is another sample of the same fleet.", run.seed),
        "Not modelled: contents of requests, connections, TLS, clocks that disagree, servers that take over each other's load.".into(),
    ]
}

fn held_at(plan: &Plan, cells: &[CellResult]) -> String {
    let level = percent(plan.base.run.confidence.0);
    match cells.iter().all(|cell| cell.replications.len() > 1) {
        true => format!("at the unfavourable end of its {level} % interval"),
        false => "at its mean (one replication has no interval)".into(),
    }
}

/// What cells share. Where more than policies is varied, not all is the same.
fn common_random_numbers(plan: &Plan) -> String {
    let of_policy = |path: &String| path.starts_with("policy.");
    let axes = &plan.experiment.axis;
    let mut paths = axes.iter().flat_map(|a| a.path.iter().chain(a.zip.keys()));
    let mut sets = plan.experiment.variant.iter().flat_map(|v| &v.set);
    match paths.all(of_policy) && sets.all(of_policy) {
        true => "The same tasks, durations and hints meet every cell (common random numbers), so cells differ by their policies and not by chance.".into(),
        false => "What a cell does not change keeps its random draws (common random numbers); cells that differ by more than policies need not meet the same tasks.".into(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn percent(share: f64) -> String {
    format::number(Some(100.0 * share))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
