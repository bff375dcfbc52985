//! The answer of the gate: what the conditions gave, which trips are tripped, and by what.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::files::{estimate_json, pretty};
use super::table::{align_numbers, plain_table};
use super::{Provenance, format};
use crate::catalogue;
use crate::experiment::Results;
use crate::experiment::gate::{Answer, Condition, Finding, Tried, Tripped};

/// Findings of one condition that are shown; the others are in the JSON.
const SHOWN: usize = 3;

/// The columns of the table: a metric of the fleet, and its heading.
const COLUMNS: [(&str, &str); 6] = [
    ("tasks_get_rate_mean_per_s", "tasks/get\nmean (1/s)"),
    ("tasks_get_rate_1s_peak_per_s", "… 1 s peak\n(1/s)"),
    ("completion_latency_p99_ms", "completion\np99 (ms)"),
    ("abort_latency_p99_ms", "abort\np99 (ms)"),
    ("aborts", "aborts"),
    ("orphans", "orphans"),
];

/// The verdict, the table of conditions, and the evidence.
pub fn text(answer: &Answer, title: &str, provenance: &Provenance) -> String {
    let mut out = String::new();
    if !title.is_empty() {
        let _ = writeln!(out, "{title}");
    }
    let _ = writeln!(out, "{}", conditions(&answer.tried));
    for condition in Condition::ALL {
        let _ = writeln!(out, "  {:<13} {}", condition.name(), condition.what());
    }
    out.push('\n');
    for (number, tripped) in (1..).zip(&answer.trips) {
        trip(&mut out, number, tripped);
    }
    let _ = writeln!(out, "\n{}\n\n{}", verdict(answer), provenance.line());
    out
}

fn verdict(answer: &Answer) -> String {
    if answer.passes() {
        return "MAY BE DEPLOYED: no trip is tripped in any condition".into();
    }
    let told = [("tripped", Some(true)), ("unknown", None)].map(|(word, wanted)| {
        let numbered = (1..).zip(&answer.trips);
        let those = numbered.filter(|(_, t)| t.tripped() == wanted);
        let those: Vec<String> = those.map(|(n, _): (u32, _)| n.to_string()).collect();
        (!those.is_empty()).then(|| format!("{word}: {}", those.join(", ")))
    });
    let told: Vec<String> = told.into_iter().flatten().collect();
    format!("MAY NOT BE DEPLOYED: {}", told.join("; "))
}

fn conditions(tried: &[Tried]) -> comfy_table::Table {
    let mut table = plain_table();
    let head = ["condition"]
        .into_iter()
        .chain(COLUMNS.map(|(_, head)| head));
    table.set_header(head.chain(["least median\ngap (ms)"]));
    for one in tried {
        let mut row = vec![one.condition.name().to_string()];
        match &one.results {
            Ok(results) => {
                let value = |metric| results.estimate("fleet", metric);
                row.extend(COLUMNS.map(|(metric, _)| {
                    value(metric).map_or(format::number(None), |e| format::estimate(&e))
                }));
                row.push(format::number(least_median_gap_ms(results)));
            }
            Err(_) => row.extend(["stopped"; COLUMNS.len() + 1].map(String::from)),
        }
        table.add_row(row);
    }
    align_numbers(&mut table);
    table
}

/// The least of the median gaps of all pairs of tenant and server class.
fn least_median_gap_ms(results: &Results) -> Option<f64> {
    let medians = results.pairs.iter().filter_map(|p| p.gap.quantile(0.5, 0));
    medians.min().map(|ns| ns as f64 / 1e6)
}

fn state(tripped: Option<bool>) -> &'static str {
    match tripped {
        Some(true) => "TRIPPED",
        Some(false) => "ok",
        None => "UNKNOWN",
    }
}

/// A trip, and the worst findings of each condition: all that is not well, or one that is.
fn trip(out: &mut String, number: u32, tripped: &Tripped) {
    let _ = writeln!(
        out,
        "{number}  {:<8} {}",
        state(tripped.tripped()),
        tripped.trip.what()
    );
    let places = std::iter::once(None).chain(Condition::ALL.map(Some));
    for place in places {
        let of_place = || tripped.findings.iter().filter(|f| f.condition == place);
        let bad: Vec<&Finding> = of_place().filter(|f| f.tripped != Some(false)).collect();
        let shown: Vec<&Finding> = match bad.is_empty() {
            true => of_place().take(1).collect(),
            false => bad.iter().take(SHOWN).copied().collect(),
        };
        for finding in shown {
            line(out, finding);
        }
        if bad.len() > SHOWN {
            let _ = writeln!(out, "{:29}… and {} more", "", bad.len() - SHOWN);
        }
    }
}

fn line(out: &mut String, finding: &Finding) {
    let place = finding.condition.map_or("scenario", Condition::name);
    let _ = write!(out, "   {:<8} {place:<13} ", state(finding.tripped));
    // Where the evidence names the group itself, it is not told twice.
    let told = finding.metric.starts_with("abort_latency") || finding.metric.ends_with("_per_s");
    match (finding.tenant.as_str(), finding.server.as_str()) {
        _ if told => {}
        ("", "") => {}
        ("", server) => drop(write!(out, "server {server}: ")),
        (tenant, "") => drop(write!(out, "tenant {tenant}: ")),
        (tenant, server) => drop(write!(out, "tenant {tenant} on server {server}: ")),
    }
    let _ = writeln!(out, "{}", finding.evidence);
}

/// Everything as JSON: verdict, trips with all findings, conditions with all metrics of all groups.
pub fn json(answer: &Answer, title: &str, confidence: f64, provenance: &Provenance) -> Vec<u8> {
    let objectives = answer.objectives.iter();
    let objectives =
        objectives.map(|o| json!({ "metric": o.metric, "over": o.over, "max": o.max }));
    let trips = (1..).zip(&answer.trips).map(|(number, t): (u32, _)| {
        json!({
            "number": number,
            "trip": t.trip,
            "what": t.trip.what(),
            "tripped": t.tripped(),
            "findings": t.findings,
        })
    });
    pretty(&json!({
        "provenance": provenance,
        "title": title,
        "confidence": confidence,
        "may_be_deployed": answer.passes(),
        "tight_loop_ms": answer.tight_loop.map(|d| d.0 as f64 / 1e6),
        "objectives": objectives.collect::<Vec<_>>(),
        "trips": trips.collect::<Vec<_>>(),
        "conditions": answer.tried.iter().map(condition_json).collect::<Vec<_>>(),
    }))
}

fn condition_json(tried: &Tried) -> Value {
    let (stopped, groups) = match &tried.results {
        Ok(results) => (None, groups_json(results)),
        Err(error) => (Some(error.to_string()), Map::new()),
    };
    json!({
        "condition": tried.condition,
        "what": tried.condition.what(),
        "scenario_hash": format!("{:016x}", tried.scenario.hash()),
        "stopped": stopped,
        "replications": tried.results.as_ref().map_or(0, |r| r.replications.len()),
        "groups": groups,
    })
}

fn groups_json(results: &Results) -> Map<String, Value> {
    let names = catalogue::names();
    let metrics = |estimates: &Vec<_>| -> Map<String, Value> {
        let values = estimates.iter().map(estimate_json);
        names.iter().cloned().zip(values).collect()
    };
    let groups = results.groups.iter().cloned();
    groups
        .zip(results.estimates.iter().map(|e| metrics(e).into()))
        .collect()
}
