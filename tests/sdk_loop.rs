//! The poll loop of a real client, measured and predicted.
//!
//! The MCP TypeScript SDK 1.30.0 was measured on two machines (`tests/data/`). One number is fitted openly for each setting,
//! how late the timer fires; polls, total time and abort latency are then predicted and held against the runs. Each setting is a
//! scenario in `models/sdk-1.30.0/`, with the same task behind an envelope beside it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pollpace::experiment;
use pollpace::scenario;
use pollpace::scenario::written::Scenario;
use serde::Deserialize;

/// The bounds of the envelope, as written in `models/sdk-1.30.0/base.toml`.
const FLOOR_MS: f64 = 50.0;
const CEILING_MS: f64 = 100.0;

#[test]
fn every_run_that_was_measured_belongs_to_a_setting() {
    for data in data_sets() {
        let mut known: Vec<Key> = data.settings.iter().map(|s| s.runs[0].key()).collect();
        known.sort();
        known.dedup();
        assert_eq!(
            known.len(),
            data.settings.len(),
            "one setting, one scenario"
        );
        assert_eq!(
            data.settings.iter().map(|s| s.runs.len()).sum::<usize>(),
            data.runs
        );
    }
}

#[test]
fn the_scenarios_carry_the_overhead_that_the_data_gives() {
    for setting in data_sets().iter().flat_map(|data| &data.settings) {
        let scenario = setting.scenario();
        for (name, policy) in &scenario.policy {
            let written_ms = policy.timer.overhead.0 as f64 / 1e6;
            let fitted_ms = setting.overhead_ms();
            assert!(
                (written_ms - fitted_ms).abs() < 1e-6,
                "{} {name}: {written_ms}, fitted {fitted_ms}",
                setting.file
            );
        }
    }
}

#[test]
fn the_scenarios_say_what_was_set_and_when_the_clocks_began() {
    for data in data_sets() {
        for setting in &data.settings {
            let (scenario, run) = (setting.scenario(), &setting.runs[0]);
            assert_eq!(hint_of(&scenario), run.hint_ms, "{}", setting.file);
            let policy = &scenario.policy["sdk"];
            assert_eq!(
                policy.default.0 as f64 / 1e6,
                run.client_default_ms,
                "{}",
                setting.file
            );
            for tenant in &scenario.tenant {
                let ms = constant_ms(&tenant.duration);
                assert_eq!(
                    ms + data.clock_offset_ms,
                    run.task_duration_ms,
                    "{}",
                    setting.file
                );
                let abort = tenant.abort.as_ref().and_then(|a| a.after.as_ref());
                assert_eq!(abort.map(constant_ms), run.abort_at_ms, "{}", setting.file);
            }
        }
    }
}

#[test]
fn the_loop_is_predicted_from_its_timer_alone() {
    for data in data_sets() {
        for setting in &data.settings {
            let told = setting.predict("sdk");
            let check = |what: &str, predicted: f64, measured: &dyn Fn(&Run) -> Option<f64>| {
                let (least, greatest) = setting.range(measured).unwrap();
                assert!(
                    (0.95 * least..=1.05 * greatest).contains(&predicted),
                    "{}: {predicted} {what}, measured {least} to {greatest}",
                    setting.file
                );
            };
            check("polls", told.polls, &|run| Some(run.polls));
            check("ms in all", told.total_ms, &|run| Some(run.total_ms));
            assert_eq!(
                told.abort_latency_ms.is_some(),
                setting.aborts(),
                "{}",
                setting.file
            );
            if let Some(ms) = told.abort_latency_ms {
                check("ms of abort latency", ms, &|run| run.abort_latency_ms);
            }
        }
    }
}

#[test]
fn a_bad_hint_floods_the_loop_and_not_the_envelope() {
    for file in ["hint-0", "hint-minus-5", "hint-half", "hint-beyond-32-bits"] {
        let setting = setting(file);
        let (raw, behind) = (setting.predict("sdk"), setting.predict("envelope"));
        assert!(raw.polls >= 90.0, "{file}: {raw:?}");
        // 0 becomes the floor, -5 and 0.5 the default, 50 ms as well: polls at 0, 50, 100 and 150 ms and a little. A hint of
        // 25 days is cut at the ceiling: polls at 0, 100 and 200 ms.
        let polls = if file == "hint-beyond-32-bits" {
            3.0
        } else {
            4.0
        };
        assert_eq!(behind.polls, polls, "{file}");
    }
}

#[test]
fn behind_the_envelope_every_gap_is_bounded_and_so_is_the_delay() {
    let settings: Vec<Setting> = data_sets()
        .into_iter()
        .flat_map(|data| data.settings)
        .collect();
    for setting in settings.iter().filter(|s| !s.aborts()) {
        let (file, late_ms) = (&setting.file, setting.overhead_ms());
        let told = setting.predict("envelope");
        let (least, greatest) = told.gap_ms.unwrap();
        // Quantiles are told within 0.1 %; the least and the greatest are exact.
        assert!(least >= FLOOR_MS, "{file}: {told:?}");
        assert!(greatest <= CEILING_MS + late_ms + 1e-6, "{file}: {told:?}");
        let ends_ms = setting.duration_ms();
        assert!(
            told.polls <= (ends_ms / FLOOR_MS).floor() + 2.0,
            "{file}: {told:?}"
        );
        assert!(
            told.total_ms >= ends_ms && told.total_ms <= ends_ms + CEILING_MS + late_ms,
            "{file}: {told:?}"
        );
    }
}

#[test]
fn an_abort_waits_for_the_timer_and_not_behind_the_envelope() {
    for (file, latency_ms) in [
        ("hint-300-aborted", 260.0),
        ("hint-200-aborted", 50.0),
        ("earlier-hint-300-aborted", 260.0),
    ] {
        let setting = setting(file);
        let (raw, behind) = (setting.predict("sdk"), setting.predict("envelope"));
        assert_eq!(
            (raw.polls, raw.abort_latency_ms),
            (1.0, Some(latency_ms)),
            "{file}"
        );
        assert_eq!(behind.abort_latency_ms, Some(0.0), "{file}");
        assert_eq!(
            behind.total_ms,
            setting.runs[0].abort_at_ms.unwrap(),
            "{file}"
        );
    }
    // The ceiling has let one more poll out before an abort at 150 ms.
    assert_eq!(setting("hint-200-aborted").predict("envelope").polls, 2.0);
}

/// A hint that is no number ends the loop; the envelope replaces it.
#[test]
fn a_hint_that_is_no_number_ends_the_loop_and_not_the_task_behind_the_envelope() {
    for part in [
        "{ value = \"soon\" }",
        "{ null = true }",
        "{ value = nan }",
        "{ value = inf }",
    ] {
        let text = format!(
            "extends = \"{}\"\n[[server]]\nname = \"in-process\"\nhint = \"bad\"\n[hint.bad]\nmix = [{part}]\n",
            model("base").display()
        );
        let scenario = scenario::parse("a hint that is no number", &text, &[])
            .unwrap()
            .scenario;
        let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
        let mean = |group: &str, metric: &str| results.estimate(group, metric).unwrap().mean;
        assert_eq!(mean("tenant.sdk", "tasks_loop_error"), Some(1.0), "{part}");
        assert_eq!(
            mean("tenant.envelope", "tasks_completed"),
            Some(1.0),
            "{part}"
        );
    }
}

/// The tables of the document are those of the simulation. Where they differ, paste what is printed.
#[test]
fn the_document_shows_what_the_simulation_gives() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measured-loop.md");
    let document = std::fs::read_to_string(path).unwrap();
    for data in data_sets() {
        let table = table(&data);
        assert!(
            document.contains(&table),
            "docs/measured-loop.md lacks this table:\n\n{table}"
        );
    }
}

// The data

/// The runs of one measurement.
struct DataSet {
    /// How long before the stream call the task's own clock began.
    clock_offset_ms: f64,
    /// How many runs there are.
    runs: usize,
    settings: Vec<Setting>,
}

/// What was set in some runs, and the scenario that says the same.
#[derive(Clone)]
struct Setting {
    file: String,
    runs: Vec<Run>,
}

/// One run: a row of the data.
#[derive(Clone, Debug, Deserialize)]
struct Run {
    hint_ms: Option<f64>,
    client_default_ms: f64,
    task_duration_ms: f64,
    abort_at_ms: Option<f64>,
    polls: f64,
    total_ms: f64,
    gap_median_ms: Option<f64>,
    abort_latency_ms: Option<f64>,
}

/// What makes a setting: hint, task duration, abort.
type Key = (String, String, String);

impl Run {
    fn key(&self) -> Key {
        let text = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        (
            text(self.hint_ms),
            self.task_duration_ms.to_string(),
            text(self.abort_at_ms),
        )
    }
}

/// Both measurements.
fn data_sets() -> [DataSet; 2] {
    let ours = [
        ("hint-0", "0", "125", ""),
        ("hint-5", "5", "125", ""),
        ("hint-none", "", "125", ""),
        ("hint-300-aborted", "300", "100000", "40"),
        ("hint-10", "10", "125", ""),
        ("hint-20", "20", "500", ""),
        ("hint-100", "100", "1000", ""),
        ("hint-minus-5", "-5", "125", ""),
        ("hint-half", "0.5", "125", ""),
        ("hint-beyond-32-bits", "2147483648", "125", ""),
        ("hint-0-for-1s", "0", "1000", ""),
        ("hint-5-for-1s", "5", "1000", ""),
        ("hint-200-aborted", "200", "100000", "150"),
    ];
    let earlier = [
        ("earlier-hint-0", "0", "125", ""),
        ("earlier-hint-5", "5", "125", ""),
        ("earlier-hint-none", "", "125", ""),
        ("earlier-hint-300-aborted", "300", "100000", "40"),
    ];
    [
        data_set("mcp-ts-sdk-1.30.0-loop.csv", 0.0, &ours),
        data_set("mcp-ts-sdk-1.30.0-loop-earlier.csv", 10.0, &earlier),
    ]
}

fn data_set(file: &str, clock_offset_ms: f64, settings: &[(&str, &str, &str, &str)]) -> DataSet {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file);
    let mut reader = csv::Reader::from_path(path).unwrap();
    let runs: Vec<Run> = reader.deserialize().map(|row| row.unwrap()).collect();
    let settings = settings.iter().map(|(file, hint, duration, abort)| {
        let key = (hint.to_string(), duration.to_string(), abort.to_string());
        let runs: Vec<Run> = runs
            .iter()
            .filter(|run| run.key() == key)
            .cloned()
            .collect();
        assert!(!runs.is_empty(), "{file} was measured");
        Setting {
            file: file.to_string(),
            runs,
        }
    });
    DataSet {
        clock_offset_ms,
        runs: runs.len(),
        settings: settings.collect(),
    }
}

fn setting(file: &str) -> Setting {
    let mut all = data_sets().into_iter().flat_map(|data| data.settings);
    all.find(|setting| setting.file == file).unwrap()
}

impl Setting {
    fn aborts(&self) -> bool {
        self.runs[0].abort_at_ms.is_some()
    }

    /// How late the timer fires: the median of the runs' median gaps, less the wait. The round trip within one process
    /// is the client's own time and is part of it. 0 where there is no gap.
    fn overhead_ms(&self) -> f64 {
        let mut gaps: Vec<f64> = self
            .runs
            .iter()
            .filter_map(|run| run.gap_median_ms)
            .collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len();
        if n == 0 {
            return 0.0;
        }
        (gaps[(n - 1) / 2] + gaps[n / 2]) / 2.0 - self.runs[0].wait_ms()
    }

    /// Smallest and largest of what was measured.
    fn range(&self, measured: &dyn Fn(&Run) -> Option<f64>) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.runs.iter().filter_map(measured).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        Some((least, values.iter().copied().reduce(f64::max)?))
    }

    fn scenario(&self) -> Scenario {
        scenario::load(&model(&self.file), &[])
            .unwrap_or_else(|e| panic!("{e}"))
            .scenario
    }

    /// When the task ends, from the stream call on.
    fn duration_ms(&self) -> f64 {
        constant_ms(&self.scenario().tenant[0].duration)
    }

    /// Runs the scenario as it is shipped, and tells what the caller of one of its tenants sees.
    fn predict(&self, tenant: &str) -> Told {
        let results = experiment::run(&self.scenario(), &AtomicBool::new(false), |_| {}).unwrap();
        let group = format!("tenant.{tenant}");
        let mean = |metric: &str| results.estimate(&group, metric).unwrap().mean;
        let abort_latency_ms = mean("abort_latency_max_ms");
        // The stream's last event is the result, or the abort's error.
        let total_ms = match (self.runs[0].abort_at_ms, abort_latency_ms) {
            (Some(at), Some(latency)) => at + latency,
            _ => self.duration_ms() + mean("result_latency_max_ms").unwrap(),
        };
        Told {
            polls: mean("polls_per_task_max").unwrap(),
            total_ms,
            abort_latency_ms,
            gap_ms: mean("gap_min_ms").zip(mean("gap_max_ms")),
        }
    }
}

impl Run {
    /// The wait that a Node.js timer makes of the interval: whole milliseconds from 1 to 2^31 - 1, else 1.
    fn wait_ms(&self) -> f64 {
        let interval = self.hint_ms.unwrap_or(self.client_default_ms);
        if (1.0..=2_147_483_647.0).contains(&interval) {
            interval.trunc()
        } else {
            1.0
        }
    }
}

/// What a caller sees.
#[derive(Debug)]
struct Told {
    polls: f64,
    total_ms: f64,
    abort_latency_ms: Option<f64>,
    gap_ms: Option<(f64, f64)>,
}

fn model(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/sdk-1.30.0/{name}.toml"))
}

fn constant_ms(time: &scenario::written::Time) -> f64 {
    match time.kind {
        scenario::distribution::Kind::Constant(duration) => duration.0 as f64 / 1e6,
        _ => panic!("{time:?} is not constant"),
    }
}

fn hint_of(scenario: &Scenario) -> Option<f64> {
    match scenario.server[0].hint {
        None => None,
        Some(scenario::written::HintRef::Constant(ms)) => Some(ms),
        Some(scenario::written::HintRef::Name(_)) => panic!("not a constant hint"),
    }
}

// The document

/// The table of a data set.
fn table(data: &DataSet) -> String {
    let mut table = String::from(
        "| hint, task | timer late by | polls | measured | total | measured | abort latency | measured | behind the envelope |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for setting in &data.settings {
        let (raw, behind) = (setting.predict("sdk"), setting.predict("envelope"));
        let range =
            |digits: usize, measured: &dyn Fn(&Run) -> Option<f64>| match setting.range(measured) {
                Some((least, greatest)) if least == greatest => format!("{least:.digits$}"),
                Some((least, greatest)) => format!("{least:.digits$} to {greatest:.digits$}"),
                None => String::new(),
            };
        let ms = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.1}"));
        let abort = behind
            .abort_latency_ms
            .map_or(String::new(), |ms| format!(", abort {ms:.1}"));
        let late = if setting.runs[0].gap_median_ms.is_some() {
            format!("{:.2}", setting.overhead_ms())
        } else {
            "no gap".into()
        };
        let polls = |n: f64| {
            if n == 1.0 {
                "1 poll".to_string()
            } else {
                format!("{n} polls")
            }
        };
        table += &format!(
            "| {} | {late} | {} | {} | {:.1} | {} | {} | {} | {}, {:.1} in all{abort} |\n",
            setting.runs[0].label(),
            raw.polls,
            range(0, &|run| Some(run.polls)),
            raw.total_ms,
            range(1, &|run| Some(run.total_ms)),
            ms(raw.abort_latency_ms),
            range(1, &|run| run.abort_latency_ms),
            polls(behind.polls),
            behind.total_ms,
        );
    }
    table
}

impl Run {
    fn label(&self) -> String {
        let hint = self.hint_ms.map_or("none".to_string(), |ms| ms.to_string());
        let task = match self.abort_at_ms {
            Some(at) => format!("aborted after {at} ms"),
            None => format!("{} ms", self.task_duration_ms),
        };
        format!("{hint}, {task}")
    }
}
