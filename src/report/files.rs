//! Result files.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Provenance;
use crate::catalogue;
use crate::experiment::{Estimate, Results, Verdict, fingerprint};
use crate::metrics::occupancy::Occupancy;
use crate::metrics::summary::Group;
use crate::metrics::tally::WINDOW;
use crate::model::Model;
use crate::scenario::Scenario;

/// Most rows of a group in a time series; longer runs get wider windows.
const SERIES_ROWS: u64 = 10_000;

/// Writes `contents` to `path` by way of a temporary file beside it, so that a reader sees the old file or the new one.
///
/// # Errors
/// What the system says, with the path.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    let named =
        |e: io::Error| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()));
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(named)?;
    let mut file = tempfile::Builder::new()
        .prefix(".pollpace-")
        .tempfile_in(folder)
        .map_err(named)?;
    file.write_all(contents).map_err(named)?;
    set_mode(file.path()).map_err(named)?;
    file.persist(path).map_err(|e| named(e.error))?;
    Ok(())
}

/// Temporary files are private; results are for everyone whom the folder lets in.
fn set_mode(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

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

#[derive(Serialize)]
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

#[derive(Serialize)]
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

#[derive(Serialize)]
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

/// Rates and queue lengths per window, means over the replications. Windows are 1 s, or the least power of ten times it that
/// keeps a group at 10,000 rows.
pub fn timeseries_csv(results: &Results, scenario: &Scenario, provenance: &Provenance) -> Vec<u8> {
    let model = Model::new(scenario);
    let mut width = 10u64;
    while model.horizon / (width * WINDOW) > SERIES_ROWS {
        width *= 10;
    }
    let n = results.replications.len().max(1) as f64;
    let mut rows = Vec::new();
    for (group, name) in Group::all(&model).into_iter().zip(&results.groups) {
        let cells = results.pairs.first().map_or(0, |p| p.windows.len());
        let mut sent = vec![0u64; cells];
        let own = results
            .pairs
            .iter()
            .enumerate()
            .filter(|(i, _)| group.has(*i, model.servers.len()));
        own.for_each(|(_, pair)| {
            sent.iter_mut()
                .zip(&pair.windows)
                .for_each(|(sum, n)| *sum += u64::from(*n))
        });
        let own = || {
            let all = results.pairs.iter().enumerate();
            all.filter(|(i, _)| group.has(*i, model.servers.len()))
        };
        let leaking = sum_of(own().map(|(_, pair)| &pair.leaking), cells);
        let servers = match group {
            Group::Tenant(_) => None,
            Group::Server(i) => Some(&results.servers[i..=i]),
            Group::Fleet => Some(&results.servers[..]),
        };
        let waiting = servers.map(|s| sum_of(s.iter().map(|s| &s.waiting), cells));
        let held = servers.map(|s| sum_of(s.iter().map(|s| &s.held), cells));
        for (k, window) in sent.chunks(width as usize).enumerate() {
            let start = k as u64 * width * WINDOW;
            let length = (model.horizon - start).min(width * WINDOW);
            let seconds = length as f64 / 1e9;
            let mean = |cells: &Vec<u64>| {
                let first = k * width as usize;
                let sum: u64 = cells[first..first + window.len()].iter().sum();
                sum as f64 / length as f64 / n
            };
            rows.push(SeriesRow {
                scenario: &provenance.scenario,
                parameters: &provenance.parameters,
                group: name,
                window_start_s: start as f64 / 1e9,
                window_s: seconds,
                tasks_get_rate_per_s: window.iter().sum::<u64>() as f64 / n / seconds,
                tasks_get_rate_100ms_peak_per_s: window
                    .iter()
                    .max()
                    .map_or(0.0, |m| *m as f64 * 10.0 / n),
                queue_length: waiting.as_ref().map(mean),
                held_connections: held.as_ref().map(mean),
                leaked_loops: mean(&leaking),
                replications: results.replications.len(),
                seed: provenance.seed,
                scenario_hash: &provenance.scenario_hash,
                version: &provenance.version,
            });
        }
    }
    csv_text(rows)
}

/// Visitor-ns of each window, over several occupancies.
fn sum_of<'o>(parts: impl Iterator<Item = &'o Occupancy>, windows: usize) -> Vec<u64> {
    let mut sum = vec![0u64; windows];
    for part in parts {
        sum.iter_mut()
            .zip(part.per_window())
            .for_each(|(s, n)| *s += n);
    }
    sum
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

fn estimate_json(e: &Estimate) -> Value {
    json!({ "mean": e.mean, "lo": e.lo, "hi": e.hi, "defined": e.n })
}

fn verdict_json(v: &Verdict) -> Value {
    json!({ "metric": v.objective.metric, "over": v.objective.over, "max": v.objective.max, "min": v.objective.min,
            "estimate": estimate_json(&v.estimate), "met": v.met })
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Writes all result files of a run into `folder` and gives their names.
///
/// # Errors
/// The first file that could not be written; those before it are whole.
pub fn write_run(
    folder: &Path,
    results: &Results,
    scenario: &Scenario,
    provenance: &Provenance,
) -> io::Result<Vec<&'static str>> {
    let files: [(&'static str, Vec<u8>); 5] = [
        ("summary.csv", summary_csv(results, scenario, provenance)),
        ("replications.csv", replications_csv(results, provenance)),
        (
            "timeseries.csv",
            timeseries_csv(results, scenario, provenance),
        ),
        ("summary.json", summary_json(results, scenario, provenance)),
        ("alerts.json", alerts_json(results, provenance)),
    ];
    for (name, contents) in &files {
        write_whole(&folder.join(name), contents)?;
    }
    Ok(files.iter().map(|(name, _)| *name).collect())
}
