//! The files of a fit: a scenario, a CSV file for each of its distributions, and `fit.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::fitted::{Fitted, QUANTILES};
use super::sample::{quantile, sorted, thinned};
use super::scenario::{Choice, Stems};
use super::{Log, LogError, summary};
use crate::disk::write_whole;
use crate::scenario;

/// The name of the scenario.
pub const SCENARIO: &str = "scenario.toml";

/// Writes all files into `folder`, and gives their names with what the scenario's reader warns of. Nothing is written where the scenario would not be valid.
///
/// # Errors
/// [`LogError::Scenario`] where the scenario is not valid, as with a policy that there is not; [`LogError::Write`] with what the system says.
pub fn write(
    folder: &Path,
    log: &Log,
    fitted: &Fitted,
    choice: &Choice,
) -> Result<(Vec<String>, String), LogError> {
    let stems = Stems::new(fitted);
    let mut files = distributions(fitted, &stems);
    files.insert("aborts.csv".into(), aborts(fitted));
    files.insert("refusals.csv".into(), refusals(log, fitted));
    files.insert("fit.json".into(), summary::json(log, fitted, choice));
    let title = summary::title(log, fitted);
    let text = super::scenario::scenario(fitted, choice, &stems, &title);
    files.insert(SCENARIO.into(), text.into_bytes());
    let made = !folder.exists();
    fs::create_dir_all(folder).map_err(|e| unwritable(folder, &e))?;
    let checked = check(folder, &files);
    if checked.is_err() && made {
        let _ = fs::remove_dir(folder);
    }
    let warnings = checked?;
    for (name, contents) in files.iter().filter(|(name, _)| *name != SCENARIO) {
        write_whole(&folder.join(name), contents).map_err(LogError::Write)?;
    }
    // Last, so that a scenario that is there has its files.
    write_whole(&folder.join(SCENARIO), &files[SCENARIO]).map_err(LogError::Write)?;
    Ok((files.into_keys().collect(), warnings))
}

fn unwritable(folder: &Path, error: &io::Error) -> LogError {
    let told = format!("cannot write {}: {error}", folder.display());
    LogError::Write(io::Error::new(error.kind(), told))
}

/// Reads the scenario as `pollpace run` will.
fn check(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<String, LogError> {
    let trial = tempfile::Builder::new()
        .prefix(".pollpace-")
        .tempdir_in(folder)
        .map_err(|e| unwritable(folder, &e))?;
    for (name, contents) in files {
        fs::write(trial.path().join(name), contents).map_err(|e| unwritable(folder, &e))?;
    }
    match scenario::load(&trial.path().join(SCENARIO), &[]) {
        Ok(loaded) => Ok(loaded.warnings),
        Err(error) => {
            // The place on trial is no place that a reader can look at.
            let hidden = format!("{}/", trial.path().display());
            Err(LogError::Scenario(error.to_string().replace(&hidden, "")))
        }
    }
}

/// A CSV text of numbers in columns of equal length.
fn columns<const N: usize>(
    names: [&str; N],
    rows: impl IntoIterator<Item = [f64; N]>,
    decimals: usize,
) -> Vec<u8> {
    let mut out = names.join(",").into_bytes();
    out.push(b'\n');
    for row in rows {
        let cells = row.map(|x| {
            let text = format!("{x:.decimals$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        });
        out.extend_from_slice(cells.join(",").as_bytes());
        out.push(b'\n');
    }
    out
}

/// The distributions that the scenario draws from; one without a value has no file.
fn distributions(fitted: &Fitted, stems: &Stems) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for tenant in &fitted.tenants {
        let mut add = |what: &str, column: &str, values: &[f64]| {
            if !values.is_empty() {
                let text = columns([column], values.iter().map(|x| [*x]), 6);
                files.insert(stems.file(what, "tenant", &tenant.name), text);
            }
        };
        add("arrivals", "arrival_s", &tenant.arrivals_s);
        add("durations", "ms", &tenant.durations.values_ms);
        add("creations", "ms", &tenant.creations_ms);
        add("aborts", "after_ms", &tenant.patience.values_ms);
    }
    for server in &fitted.servers {
        let round_trips = thinned(server.round_trips_ms.clone(), QUANTILES);
        if !round_trips.is_empty() {
            let rows = round_trips.iter().map(|ms| [*ms, ms / 2.0]);
            let text = columns(["round_trip_ms", "one_way_ms"], rows, 6);
            files.insert(stems.file("round-trips", "server", &server.name), text);
        }
        let hints = sorted(server.hints.counts().sane.kept.iter().copied());
        if !hints.is_empty() {
            let text = columns(["ms"], hints.iter().map(|ms| [*ms]), 3);
            files.insert(stems.file("hints", "server", &server.name), text);
        }
    }
    files
}

fn written(mut rows: csv::Writer<Vec<u8>>) -> Vec<u8> {
    let _ = rows.flush();
    rows.into_inner().unwrap_or_default()
}

/// `aborts.csv`: a row for each task that was given up, with the polls leaked after it.
fn aborts(fitted: &Fitted) -> Vec<u8> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    let head = [
        "task",
        "tenant",
        "server",
        "how",
        "after_ms",
        "leaked_polls",
    ];
    let _ = rows.write_record(head);
    for abort in &fitted.aborts {
        let _ = rows.write_record([
            &format!("{:016x}", abort.task),
            &abort.tenant,
            &abort.server,
            abort.how,
            &format!("{:.3}", abort.after_ms),
            &abort.leaked.to_string(),
        ]);
    }
    written(rows)
}

/// `refusals.csv`: a row for each kind of refusal of each tenant and server.
fn refusals(log: &Log, fitted: &Fitted) -> Vec<u8> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    let head = [
        "method",
        "outcome",
        "tenant",
        "server",
        "count",
        "per_s",
        "retry_after_p50_s",
        "retry_after_max_s",
    ];
    let _ = rows.write_record(head);
    for refusal in summary::refusals(log, fitted) {
        let after = sorted(refusal.retry_after_s.iter().copied());
        let shown = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        let _ = rows.write_record([
            refusal.method,
            &refusal.outcome,
            &refusal.tenant,
            &refusal.server,
            &refusal.count.to_string(),
            &format!("{:.6}", refusal.count as f64 / fitted.span_s),
            &shown(quantile(&after, 0.5)),
            &shown(after.last().copied()),
        ]);
    }
    written(rows)
}
