//! The readable table of a run.

use std::fmt::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{Provenance, format};
use crate::experiment::{Estimate, Results, Verdict, fingerprint};
use crate::scenario::Scenario;
use crate::scenario::written::Objective;

/// The rows of the table: metric, and how it is called there. The rest is in the files.
const ROWS: [(&str, &str); 25] = [
    ("tasks_get_rate_mean_per_s", "tasks/get rate, mean (1/s)"),
    (
        "tasks_get_rate_1s_p95_per_s",
        "… p95 of its 1 s windows (1/s)",
    ),
    (
        "tasks_get_rate_1s_peak_per_s",
        "… peak of its 1 s windows (1/s)",
    ),
    (
        "tasks_get_rate_100ms_peak_per_s",
        "… peak of its 100 ms windows (1/s)",
    ),
    ("tasks_get_rate_1s_dispersion", "… index of dispersion, 1 s"),
    ("polls_per_task_mean", "polls per task, mean"),
    ("useless_share", "share of useless polls"),
    ("effective_interval_p50_ms", "effective interval, p50 (ms)"),
    ("gap_p50_ms", "gap between sends, p50 (ms)"),
    ("gap_min_ms", "… least (ms)"),
    ("completion_latency_p50_ms", "completion latency, p50 (ms)"),
    ("completion_latency_p95_ms", "… p95 (ms)"),
    ("completion_latency_p99_ms", "… p99 (ms)"),
    ("abort_latency_p50_ms", "abort latency, p50 (ms)"),
    ("abort_latency_p99_ms", "… p99 (ms)"),
    ("leaked_polls", "leaked polls"),
    ("store_latency_p99_ms", "task-store latency, p99 (ms)"),
    ("utilisation", "task-store utilisation"),
    ("queue_length_max", "longest queue"),
    ("tasks_get_refused", "tasks/get refused"),
    ("tasks", "tasks"),
    ("tasks_detected_share", "… share whose end was seen"),
    ("tasks_unseen", "… ended unseen"),
    ("aborts", "… aborted"),
    ("tasks_running", "… still running"),
];

/// Further rows, shown where a scenario has what they are about: where some value is above 0.
const ROWS_UNDER_PRESSURE: [(&str, &str); 18] = [
    ("tasks_get_refused_429", "tasks/get refused with 429"),
    ("tasks_get_slow_down", "tasks/get told to slow down"),
    ("tasks_get_timed_out", "tasks/get timed out"),
    ("tasks_get_lost", "tasks/get lost"),
    ("tasks_get_retries", "tasks/get sent again by the transport"),
    ("budget_delay_p99_ms", "wait for the budget, p99 (ms)"),
    ("budget_skipped", "tasks/get left out by the budget"),
    ("breaker_opened", "breakers opened"),
    ("breaker_open_s", "… not closed (s)"),
    ("breaker_held_back", "… polls held back"),
    ("held_connections_mean", "long polls held, mean"),
    ("store_reads", "store reads by loops on the server"),
    ("leaked_loops_mean", "loops running after their abort, mean"),
    ("host_utilisation", "host event loops, utilisation"),
    ("reconnects", "reconnects"),
    ("tasks_expired", "tasks expired"),
    ("orphans", "orphans"),
    ("cost", "cost"),
];

/// More groups than this make a table unreadable; then it shows the fleet only.
const MOST_GROUPS: usize = 5;

/// The table, the objectives and the alerts of a run.
pub fn run(results: &Results, scenario: &Scenario, provenance: &Provenance) -> String {
    let mut out = String::new();
    if !scenario.title.is_empty() {
        let _ = writeln!(out, "{}", scenario.title);
    }
    let shown = if results.groups.len() <= MOST_GROUPS {
        results.groups.len()
    } else {
        1
    };
    let mut table = plain_table();
    let head = std::iter::once("").chain(results.groups[..shown].iter().map(String::as_str));
    table.set_header(head);
    let rows = ROWS.into_iter().map(|row| (row, true));
    let further = ROWS_UNDER_PRESSURE.into_iter().map(|row| (row, false));
    for ((metric, label), always) in rows.chain(further) {
        let estimates = results.groups[..shown]
            .iter()
            .filter_map(|g| results.estimate(g, metric));
        let above_zero = |e: Estimate| e.mean.is_some_and(|mean| mean > 0.0);
        if !always && !estimates.clone().any(above_zero) {
            continue;
        }
        table.add_row(
            std::iter::once(label.to_string()).chain(estimates.map(|e| format::estimate(&e))),
        );
    }
    align_numbers(&mut table);
    let _ = writeln!(out, "{table}");
    let replications = results.replications.len();
    let _ = writeln!(
        out,
        "mean ± half-width of the {} % interval over {replications} replication{}; – is undefined: no sample, or censored",
        scenario.run.confidence.0 * 100.0,
        if replications == 1 { "" } else { "s" },
    );
    if shown < results.groups.len() {
        let _ = writeln!(
            out,
            "the fleet's values; those of its {} groups are in the files of --out",
            results.groups.len() - 1
        );
    }
    if !results.verdicts.is_empty() {
        let _ = write!(out, "\n{}", objectives(&results.verdicts));
    }
    if !results.alerts.is_empty() {
        let _ = writeln!(
            out,
            "\nAlerts (counts over all {replications} replications)"
        );
        for alert in &results.alerts {
            let _ = writeln!(out, "  {}", alert.line());
        }
    }
    let _ = writeln!(
        out,
        "\n{} · fingerprint {:016x}",
        provenance.line(),
        fingerprint(&results.replications)
    );
    out
}

/// A bound in words.
pub fn bound(objective: &Objective) -> String {
    match (objective.max, objective.min) {
        (Some(max), Some(min)) => format!(
            "from {} to {}",
            format::number(Some(min)),
            format::number(Some(max))
        ),
        (Some(max), None) => format!("at most {}", format::number(Some(max))),
        (None, min) => format!("at least {}", format::number(min)),
    }
}

/// How a metric is called where there is no row above it; its name where it has no other.
pub fn label(metric: &str) -> String {
    let known = match metric {
        "tasks_get_rate_mean_per_s" => "tasks/get rate (1/s)",
        "tasks_get_rate_1s_peak_per_s" => "tasks/get rate, peak of 1 s (1/s)",
        "tasks_get_rate_100ms_peak_per_s" => "tasks/get rate, peak of 100 ms (1/s)",
        "completion_latency_mean_ms" => "completion latency, mean (ms)",
        "completion_latency_p50_ms" => "completion latency, p50 (ms)",
        "completion_latency_p95_ms" => "completion latency, p95 (ms)",
        "completion_latency_p99_ms" => "completion latency, p99 (ms)",
        "abort_latency_mean_ms" => "abort latency, mean (ms)",
        "abort_latency_p50_ms" => "abort latency, p50 (ms)",
        "abort_latency_p99_ms" => "abort latency, p99 (ms)",
        "worst_hint_tasks_get_rate_mean_per_s" => "tasks/get rate if all hints are 0 (1/s)",
        "worst_hint_tasks_get_rate_1s_peak_per_s" => {
            "tasks/get rate, peak of 1 s, if all hints are 0 (1/s)"
        }
        "worst_hint_completion_latency_p99_ms" => {
            "completion latency, p99, if all hints are weeks (ms)"
        }
        "worst_hint_abort_latency_p99_ms" => "abort latency, p99, if all hints are weeks (ms)",
        other => return format!("`{other}`"),
    };
    known.into()
}

/// How the objectives fare, a numbered line each.
pub fn objectives(verdicts: &[Verdict]) -> String {
    let mut out = String::from("Objectives\n");
    for (number, v) in (1..).zip(verdicts) {
        let bound = bound(&v.objective);
        let met = if v.met { "met    " } else { "NOT MET" };
        let value = match v.estimate.mean {
            Some(_) => format::estimate(&v.estimate),
            None => {
                "undefined: there is no sample, or the end of too many tasks was never seen".into()
            }
        };
        let _ = writeln!(
            out,
            "  {number}  {met}  {} ({}) {bound}: {value}",
            v.objective.metric, v.objective.over
        );
    }
    out
}

/// A table with thin rules that fits the terminal.
pub fn plain_table() -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// Numbers stand to the right.
pub fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
