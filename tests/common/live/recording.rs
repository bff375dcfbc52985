//! Recordings of real poll loops (`experiments/live/`): settings, runs, what was sent, calibrations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A setting: an entry of `scenarios.json`. Its fields are explained in `experiments/live/README.md`.
#[derive(Clone, Debug, Deserialize)]
pub struct Setting {
    pub name: String,
    pub program: String,
    pub preset: String,
    pub create_hint: Option<String>,
    pub hints: Vec<Option<String>>,
    pub status: String,
    pub status_ms: Option<f64>,
    pub end_status: String,
    pub task_ms: f64,
    pub abort_at_ms: Option<f64>,
    pub horizon_ms: f64,
    pub client_default_ms: Option<f64>,
    pub max_attempts: Option<u32>,
    pub round_trip_ms: f64,
    pub call: Option<String>,
    pub runs: usize,
}

/// A row of `runs.csv`.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    pub program: String,
    pub package: String,
    pub version: String,
    pub scenario: String,
    pub polls: u64,
    pub total_ms: f64,
    pub gap_median_ms: Option<f64>,
    pub abort_latency_ms: Option<f64>,
    pub cancelled_notices: u64,
    pub tasks_cancel: u64,
    pub polls_after_abort: Option<u64>,
    pub ending: String,
}

#[derive(Deserialize)]
struct SendRow {
    version: String,
    scenario: String,
    program: String,
    run: u32,
    method: String,
}

#[derive(Deserialize)]
struct CalibrationRow {
    version: String,
    scenario: String,
    program: String,
    kind: String,
    wait_ms: f64,
    median_ms: f64,
}

/// How late the timer fires after a wait, and how long a request takes then, both ms.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    pub wait_ms: f64,
    pub late_ms: f64,
    pub request_ms: f64,
}

/// All runs of one setting with one version of a package.
#[derive(Clone, Debug)]
pub struct Group {
    pub setting: Setting,
    pub package: String,
    pub version: String,
    pub runs: Vec<Run>,
    /// Of each run whose sends were kept: what was sent, repeats left out. Of long runs only the beginning was kept.
    pub orders: Vec<Vec<String>>,
    pub calibrations: Vec<Calibration>,
    /// The longest of them is cut: only its beginning was kept.
    pub cut: bool,
}

/// The settings, and each program with the packages that it is run with: name and version.
#[derive(Deserialize)]
pub struct Plan {
    pub programs: Vec<Program>,
    pub scenarios: Vec<Setting>,
}

#[derive(Deserialize)]
pub struct Program {
    pub program: String,
    pub packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    pub package: String,
    pub version: String,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/live")
}

pub fn plan() -> Plan {
    let text = std::fs::read_to_string(folder().join("scenarios.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn table<T: for<'a> Deserialize<'a>>(folder: &Path, file: &str) -> Vec<T> {
    let path = folder.join(file);
    let mut reader =
        csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// The recording in a folder, in the order of the plan.
pub fn recording(folder: &Path) -> Vec<Group> {
    let runs: Vec<Run> = table(folder, "runs.csv");
    let sends: Vec<SendRow> = table(folder, "sends.csv");
    let calibrations: Vec<CalibrationRow> = table(folder, "calibration.csv");
    let plan = plan();
    let mut groups = Vec::new();
    for setting in &plan.scenarios {
        let of =
            |program: &str, scenario: &str| program == setting.program && scenario == setting.name;
        let program = plan.programs.iter().find(|p| p.program == setting.program);
        for Package { package, version } in &program.unwrap().packages {
            let mine = |r: &&Run| {
                of(&r.program, &r.scenario) && (&r.package, &r.version) == (package, version)
            };
            let mut orders = BTreeMap::<u32, Vec<String>>::new();
            let mut kept = BTreeMap::<u32, usize>::new();
            for send in sends
                .iter()
                .filter(|s| of(&s.program, &s.scenario) && s.version == *version)
            {
                *kept.entry(send.run).or_default() += 1;
                if send.method == "store.getTask again" {
                    // A second read in the same round.
                    continue;
                }
                let order = orders.entry(send.run).or_default();
                if order.last() != Some(&send.method) {
                    order.push(send.method.clone());
                }
            }
            let rows: Vec<&CalibrationRow> = calibrations
                .iter()
                .filter(|c| of(&c.program, &c.scenario) && c.version == *version)
                .collect();
            groups.push(Group {
                setting: setting.clone(),
                package: package.clone(),
                version: version.clone(),
                runs: runs.iter().filter(mine).cloned().collect(),
                orders: orders.into_values().collect(),
                calibrations: pairs(&rows),
                cut: kept.values().any(|&sends| sends >= SENDS_KEPT),
            });
        }
    }
    groups.retain(|group| !group.runs.is_empty());
    groups
}

/// Of a run with more sends only so many were kept.
const SENDS_KEPT: usize = 60;

fn pairs(rows: &[&CalibrationRow]) -> Vec<Calibration> {
    let of = |kind: &str, wait_ms: f64| {
        rows.iter()
            .find(|r| r.kind == kind && r.wait_ms == wait_ms)
            .unwrap()
            .median_ms
    };
    rows.iter()
        .filter(|r| r.kind == "timer")
        .map(|r| Calibration {
            wait_ms: r.wait_ms,
            late_ms: r.median_ms.max(0.0),
            request_ms: of("request", r.wait_ms),
        })
        .collect()
}

/// The middle value; of an even number the mean of the two in the middle. `None` of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}
