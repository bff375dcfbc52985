//! What a sweep advises, on the terminal.

use std::fmt::Write;

use super::decision::{columns, headroom, left, remedies, subject, value};
use super::sweep::{alert_line, rows, table};
use super::table::{bound, label, objectives};
use super::{Provenance, fleet, format};
use crate::catalogue::WORST_HINTS;
use crate::experiment::choose::Shift;
use crate::experiment::decision::{Chosen, Decision};
use crate::experiment::plan::Plan;
use crate::experiment::sweep::CellResult;

/// The table of cells and the recommendation; there is none without objectives, or where cells are missing.
pub fn of_sweep(
    plan: &Plan,
    cells: &[CellResult],
    decision: Option<&Decision>,
    provenance: &Provenance,
) -> String {
    let title = [&plan.experiment.title, &plan.base.title];
    let title = title.into_iter().find(|t| !t.is_empty());
    let mut out = title.map_or(String::new(), |t| format!("{t}\n"));
    let _ = writeln!(out, "{}", table(plan, cells));
    match decision {
        Some(decision) => match &decision.chosen {
            Some(chosen) => recommend(&mut out, plan, cells, decision, chosen),
            None => explain(&mut out, plan, cells, decision),
        },
        None if cells.iter().any(|cell| !cell.whole) => {
            out.push_str("Some cells are not finished: no recommendation from a part of the sweep.\n");
        }
        None => out.push_str("The scenario has no objectives, so there is nothing to choose by: add [[objective]].\n"),
    }
    let _ = writeln!(out, "\n{}", provenance.line());
    out
}

/// What stands behind a choice: margins, what would move it, how sure it is, the front; or what stands in the way of one.
pub fn of_choice(
    plan: &Plan,
    cells: &[CellResult],
    decision: &Decision,
    provenance: &Provenance,
) -> String {
    let mut out = String::new();
    match &decision.chosen {
        Some(chosen) => reasons(&mut out, plan, cells, decision, chosen),
        None => explain(&mut out, plan, cells, decision),
    }
    let _ = writeln!(out, "\n{}", provenance.line());
    out
}

fn recommend(
    out: &mut String,
    plan: &Plan,
    cells: &[CellResult],
    decision: &Decision,
    chosen: &Chosen,
) {
    let feasible = cells.iter().filter(|c| c.feasible()).count();
    let made = &plan.cells[chosen.cell.number];
    let least = match decision.cost.is_load() {
        true => "load (mean tasks/get rate)".to_string(),
        false => decision.cost.to_string(),
    };
    let _ = writeln!(
        out,
        "Recommended: {}: the least {least} of the {feasible} cells that meet the objectives",
        made.in_words()
    );
    let value = |metric: &str| format::estimate(&chosen.cell.estimate(metric));
    let _ = writeln!(
        out,
        "  tasks/get rate {} per s, completion latency p50 {} ms, p99 {} ms, abort latency p99 {} ms",
        value("tasks_get_rate_mean_per_s"),
        value("completion_latency_p50_ms"),
        value("completion_latency_p99_ms"),
        value("abort_latency_p99_ms")
    );
    worst_hints(out, chosen);
    let _ = writeln!(out, "  {}", headroom(&chosen.headroom));
    let _ = writeln!(out, "\n{}", objectives(&chosen.cell.verdicts).trim_end());
    let (toml, _) = fleet::snippets(plan, made);
    if !toml.is_empty() {
        let _ = writeln!(out, "\n{toml}");
    }
    if !chosen.cell.alerts.is_empty() {
        let _ = writeln!(
            out,
            "\nAlerts at the choice (counts over all {} replications)",
            chosen.cell.replications.len()
        );
        for seen in &chosen.cell.alerts {
            let _ = writeln!(out, "  {}", alert_line(seen));
        }
    }
}

/// The fleet on the day that every server suggests the same.
fn worst_hints(out: &mut String, chosen: &Chosen) {
    let [rate, _, completion, abort] = WORST_HINTS.map(|w| {
        let estimate = chosen.cell.estimate(w.name);
        value(w.name, &estimate)
    });
    let _ = writeln!(
        out,
        "  Worst hints: if all are 0, {rate} polls per s; if all are weeks, completion latency p99 {completion} ms, abort latency p99 {abort} ms"
    );
}

fn reasons(
    out: &mut String,
    plan: &Plan,
    cells: &[CellResult],
    decision: &Decision,
    chosen: &Chosen,
) {
    let words = |number: usize| plan.cells[number].in_words();
    let _ = writeln!(
        out,
        "Chosen: {}: the least {} of the feasible cells\n\nMargins",
        words(chosen.cell.number),
        decision.cost
    );
    for (verdict, number) in chosen.cell.verdicts.iter().zip(1..) {
        let _ = writeln!(
            out,
            "  {number}  {}, {}: {}; left at the unfavourable end: {}",
            subject(verdict),
            bound(&verdict.objective),
            format::estimate(&verdict.estimate),
            left(verdict),
        );
    }
    out.push_str("\nIf an objective were a tenth tighter or looser\n");
    for pair in chosen.shifts.chunks(2) {
        let told = |shift: &Shift| match shift.choice {
            Some(number) if number == chosen.cell.number => "the same cell".to_string(),
            Some(number) => words(number),
            None => "nothing is feasible".into(),
        };
        let _ = writeln!(
            out,
            "  {}  tighter: {}; looser: {}",
            pair[0].objective + 1,
            told(&pair[0]),
            told(&pair[1])
        );
    }
    if let Some(share) = chosen.confidence {
        let _ = writeln!(
            out,
            "\nOf 1,000 bootstrap resamples of the {} replications, {:.1} % choose the same cell",
            chosen.cell.replications.len(),
            100.0 * share
        );
    }
    out.push_str("\nBeyond what was asked\n");
    worst_hints(out, chosen);
    let _ = writeln!(out, "  {}", headroom(&chosen.headroom));
    out.push_str("\nThe Pareto front: cells that no other beats in load, completion latency and abort latency at once\n");
    let front = decision.front.iter().map(|n| &cells[*n]);
    let _ = writeln!(
        out,
        "{}",
        rows(
            plan,
            &columns(plan, &decision.objectives, cells),
            front,
            Some(chosen.cell.number)
        )
    );
}

fn explain(out: &mut String, plan: &Plan, cells: &[CellResult], decision: &Decision) {
    if decision.obstacles.is_empty() {
        out.push_str("No cell can be chosen.\n");
    } else {
        out.push_str("No cell of this sweep meets every objective. The obstacles:\n");
    }
    for obstacle in &decision.obstacles {
        let objective = &obstacle.nearest.objective;
        let needed = match obstacle.needed {
            Some(needed) => format!(
                "; with a bound of {} some cell would meet all",
                format::bound(needed, objective.max.is_some())
            ),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "  {} ({}), {}: missed in {} of {} cells; its best value is {}{needed}",
            label(&objective.metric),
            objective.over,
            bound(objective),
            obstacle.missed,
            cells.len(),
            format::estimate(&obstacle.nearest.estimate)
        );
    }
    if !decision.obstacles.is_empty() {
        out.push_str("What would have to give:\n");
    }
    for remedy in remedies(plan, decision) {
        let _ = writeln!(out, "  {remedy}");
    }
    out.push_str("  Or widen the axes, or loosen an objective.\n");
}
