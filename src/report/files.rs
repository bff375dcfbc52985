//! Result files.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::columns::{Column, row};
use super::series::{self, Series};
use super::{Provenance, figures};
use crate::catalogue;
use crate::disk::write_whole;
use crate::experiment::{Estimate, Results, Verdict, fingerprint};
use crate::scenario::Scenario;

/// A CSV text from rows.
///
/// # Panics
/// Never: rows of plain fields always serialise.
pub fn csv_text<R: Serialize>(rows: impl IntoIterator<Item = R>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).expect("rows hold plain fields");
    }
    writer.into_inner().expect("writing to memory")
}

row! {
    struct SummaryRow<'a> {
        scenario: &'a str,
        parameters: &'a str,
        group: &'a str,
        metric: &'a str,
        mean: Option<f64>,
        lo: Option<f64>,
        hi: Option<f64>,
        confidence: f64,
        defined: u32,
        replications: usize,
        seed: u64,
        scenario_hash: &'a str,
        version: &'a str,
    }
}

/// The columns of `summary.csv`.
pub fn summary_columns() -> Vec<Column> {
    SummaryRow::columns()
}

/// `summary.csv`: one row per group and metric.
pub fn summary_csv(results: &Results, scenario: &Scenario, provenance: &Provenance) -> Vec<u8> {
    let names = catalogue::names();
    let rows = results
        .groups
        .iter()
        .zip(&results.estimates)
        .flat_map(|(group, estimates)| {
            names
                .iter()
                .zip(estimates)
                .map(move |(metric, e)| SummaryRow {
                    scenario: &provenance.scenario,
                    parameters: &provenance.parameters,
                    group,
                    metric,
                    mean: e.mean,
                    lo: e.lo,
                    hi: e.hi,
                    confidence: scenario.run.confidence.0,
                    defined: e.n,
                    replications: results.replications.len(),
                    seed: provenance.seed,
                    scenario_hash: &provenance.scenario_hash,
                    version: &provenance.version,
                })
        });
    csv_text(rows)
}

row! {
    struct ReplicationRow<'a> {
        scenario: &'a str,
        parameters: &'a str,
        group: &'a str,
        metric: &'a str,
        value: Option<f64>,
        replication: u32,
        seed: u64,
        scenario_hash: &'a str,
        fingerprint: String,
        version: &'a str,
    }
}

/// The columns of `replications.csv`.
pub fn replications_columns() -> Vec<Column> {
    ReplicationRow::columns()
}

/// `replications.csv`: one row per replication, group and metric.
pub fn replications_csv(results: &Results, provenance: &Provenance) -> Vec<u8> {
    let names = catalogue::names();
    let rows = results.replications.iter().flat_map(|replication| {
        let names = &names;
        results
            .groups
            .iter()
            .zip(&replication.values)
            .flat_map(move |(group, values)| {
                names
                    .iter()
                    .zip(values)
                    .map(move |(metric, value)| ReplicationRow {
                        scenario: &provenance.scenario,
                        parameters: &provenance.parameters,
                        group,
                        metric,
                        value: value.filter(|x| x.is_finite()),
                        replication: replication.number,
                        seed: provenance.seed,
                        scenario_hash: &provenance.scenario_hash,
                        fingerprint: format!("{:016x}", replication.fingerprint),
                        version: &provenance.version,
                    })
            })
    });
    csv_text(rows)
}

row! {
    struct SeriesRow<'a> {
        scenario: &'a str,
        parameters: &'a str,
        group: &'a str,
        window_start_s: f64,
        window_s: f64,
        tasks_get_rate_per_s: f64,
        tasks_get_rate_100ms_peak_per_s: f64,
        queue_length: Option<f64>,
        held_connections: Option<f64>,
        leaked_loops: f64,
        replications: usize,
        seed: u64,
        scenario_hash: &'a str,
        version: &'a str,
    }
}

/// The columns of `timeseries.csv`.
pub fn timeseries_columns() -> Vec<Column> {
    SeriesRow::columns()
}

/// Rates and occupancies over time: see [`series`].
pub fn timeseries_csv(results: &Results, series: &[Series], provenance: &Provenance) -> Vec<u8> {
    let rows = series.iter().flat_map(|s| {
        s.windows.iter().map(|w| SeriesRow {
            scenario: &provenance.scenario,
            parameters: &provenance.parameters,
            group: &s.group,
            window_start_s: w.start_s,
            window_s: w.length_s,
            tasks_get_rate_per_s: w.rate_per_s,
            tasks_get_rate_100ms_peak_per_s: w.peak_per_s,
            queue_length: w.waiting,
            held_connections: w.held,
            leaked_loops: w.leaking,
            replications: results.replications.len(),
            seed: provenance.seed,
            scenario_hash: &provenance.scenario_hash,
            version: &provenance.version,
        })
    });
    csv_text(rows)
}

/// `summary.json`: the content of the CSV files but the time series, with objectives and alerts.
pub fn summary_json(results: &Results, scenario: &Scenario, provenance: &Provenance) -> Vec<u8> {
    let names = catalogue::names();
    let by_name = |values: Vec<Value>| -> Value {
        names
            .iter()
            .cloned()
            .zip(values)
            .collect::<Map<_, _>>()
            .into()
    };
    let groups: Map<String, Value> = results
        .groups
        .iter()
        .zip(&results.estimates)
        .map(|(group, estimates)| {
            (
                group.clone(),
                by_name(estimates.iter().map(estimate_json).collect()),
            )
        })
        .collect();
    let replications: Vec<Value> = results
        .replications
        .iter()
        .map(|r| {
            let groups: Map<String, Value> = results
                .groups
                .iter()
                .zip(&r.values)
                .map(|(group, values)| (group.clone(), by_name(values.iter().map(|v| json!(v.filter(|x| x.is_finite()))).collect())))
                .collect();
            json!({ "replication": r.number, "fingerprint": format!("{:016x}", r.fingerprint), "groups": groups })
        })
        .collect();
    pretty(&json!({
        "provenance": provenance,
        "title": scenario.title,
        "confidence": scenario.run.confidence.0,
        "interrupted": results.interrupted,
        "fingerprint": format!("{:016x}", fingerprint(&results.replications)),
        "objectives": results.verdicts.iter().map(verdict_json).collect::<Vec<_>>(),
        "alerts": results.alerts,
        "groups": groups,
        "replications": replications,
    }))
}

/// `alerts.json`: what to look at, with evidence.
pub fn alerts_json(results: &Results, provenance: &Provenance) -> Vec<u8> {
    pretty(&json!({ "provenance": provenance, "alerts": results.alerts }))
}

pub(super) fn estimate_json(e: &Estimate) -> Value {
    json!({ "mean": e.mean, "lo": e.lo, "hi": e.hi, "defined": e.n })
}

fn verdict_json(v: &Verdict) -> Value {
    json!({ "metric": v.objective.metric, "over": v.objective.over, "max": v.objective.max, "min": v.objective.min,
            "estimate": estimate_json(&v.estimate), "met": v.met })
}

pub(super) fn pretty(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Writes all result files of a run into `folder`, figures as SVG and with `png` as PNG too, and gives their names. A run of one window, or of more server
/// classes than colours, has no figure over time.
///
/// # Errors
/// The first file that could not be written; those before it are whole.
pub fn write_run(
    folder: &Path,
    results: &Results,
    scenario: &Scenario,
    provenance: &Provenance,
    png: bool,
) -> io::Result<Vec<String>> {
    let series = series::all(results, scenario);
    let files: [(&str, Vec<u8>); 5] = [
        ("summary.csv", summary_csv(results, scenario, provenance)),
        ("replications.csv", replications_csv(results, provenance)),
        (
            "timeseries.csv",
            timeseries_csv(results, &series, provenance),
        ),
        ("summary.json", summary_json(results, scenario, provenance)),
        ("alerts.json", alerts_json(results, provenance)),
    ];
    for (name, contents) in &files {
        write_whole(&folder.join(name), contents)?;
    }
    let figures = figures::of_run(results, &series, scenario, provenance);
    let mut names: Vec<String> = files.iter().map(|(name, _)| (*name).into()).collect();
    names.extend(figures::write(folder, &figures, png)?);
    Ok(names)
}
