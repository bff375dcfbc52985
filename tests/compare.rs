//! `pollpace compare`: paired differences as a user sees them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const FLEET: &str = "models/mixed-fleet.toml";
const QUICK: [&str; 4] = ["--replications", "5", "--set", "run.horizon=90s"];

/// Runs, and gives the exit code with both outputs.
fn compare(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("compare")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

type Row = HashMap<String, String>;

/// The rows of `differences.csv` of a quick comparison, and what it printed.
fn differences(arguments: &[&str]) -> (Vec<Row>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = ["--out", folder.path().to_str().unwrap()];
    let (code, shown, told) = compare(&[arguments, &QUICK[..], &out].concat());
    assert_eq!(code, Some(0), "{told}");
    (rows(&folder.path().join("differences.csv")), shown, told)
}

fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(fs::File::open(path).unwrap());
    reader.deserialize().map(Result::unwrap).collect()
}

fn row<'r>(rows: &'r [Row], group: &str, metric: &str) -> &'r Row {
    rows.iter()
        .find(|r| r["group"] == group && r["metric"] == metric)
        .unwrap()
}

fn value(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

#[test]
fn a_floor_is_compared_more_sharply_in_pairs() {
    let arguments = [FLEET, FLEET, "--set-b", "policy.envelope.floor=1s"];
    let (rows, shown, _) = differences(&arguments);
    let load = row(&rows, "fleet", "tasks_get_rate_mean_per_s");
    let (lo, hi) = (value(load, "lo"), value(load, "hi"));
    assert!(hi < 0.0, "a higher floor sends fewer polls: {load:?}");
    let paired = (hi - lo) / 2.0;
    let unpaired = value(load, "unpaired_half_width");
    assert!(2.0 * paired < unpaired, "{paired} against {unpaired}");
    assert!(value(load, "correlation") > 0.8);
    let difference = value(load, "b") - value(load, "a");
    assert!((value(load, "difference") - difference).abs() < 1e-9);
    // The same tasks meet both.
    let tasks = row(&rows, "fleet", "tasks");
    assert_eq!(tasks["a"], tasks["b"]);
    assert_eq!(value(tasks, "difference"), 0.0);
    let shown_load = shown
        .lines()
        .find(|l| l.contains("tasks_get_rate_mean_per_s"));
    let shown_load = shown_load.unwrap();
    assert!(shown_load.contains("× narrower"), "{shown_load}");
    assert!(shown.contains("policy.envelope.floor=1s"), "{shown}");
}

#[test]
fn every_row_tells_how_to_repeat_it() {
    let arguments = [
        FLEET,
        FLEET,
        "--set-a",
        "policy.envelope.floor=200ms",
        "--set-b",
        "policy.envelope.floor=1s",
        "--seed",
        "7",
    ];
    let (rows, _, _) = differences(&arguments);
    // The fleet, two tenant classes, two server classes.
    assert_eq!(rows.len(), 5 * pollpace::catalogue::names().len());
    for row in &rows {
        let common = "run.horizon=90s; policy.envelope.floor";
        let run = "run.seed=7; run.replications=5";
        assert_eq!(row["parameters_a"], format!("{common}=200ms; {run}"));
        assert_eq!(row["parameters_b"], format!("{common}=1s; {run}"));
        assert_eq!((&*row["seed"], &*row["replications"]), ("7", "5"));
        assert_ne!(row["scenario_hash_a"], row["scenario_hash_b"]);
        assert_eq!(row["version"], env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn a_scenario_against_itself_differs_by_exactly_0() {
    let (rows, shown, told) = differences(&[FLEET, FLEET]);
    assert!(told.contains("A and B are the same scenario"), "{told}");
    let mut defined = 0;
    for row in &rows {
        assert_eq!(row["a"], row["b"], "{row:?}");
        // Undefined in both, never 0.
        if row["difference"].is_empty() {
            assert!(row["lo"].is_empty() && row["hi"].is_empty());
            continue;
        }
        defined += 1;
        for column in ["difference", "lo", "hi"] {
            assert_eq!(value(row, column), 0.0, "{row:?}");
        }
    }
    assert!(defined > 100 && defined < rows.len(), "{defined}");
    assert!(shown.contains("exact") && !shown.contains("narrower"));
}

#[test]
fn what_has_no_sample_is_shown_as_undefined() {
    let arguments = [FLEET, FLEET, "--set-b", "tenant.agents.abort.probability=0"];
    let (rows, shown, _) = differences(&arguments);
    let abort = row(&rows, "fleet", "abort_latency_p99_ms");
    assert!(!abort["a"].is_empty());
    assert_eq!((&*abort["b"], &*abort["difference"]), ("", ""));
    let line = shown
        .lines()
        .find(|l| l.contains("abort_latency_p99_ms"))
        .unwrap();
    assert_eq!(line.matches('–').count(), 4, "{line}");
}

#[test]
fn the_chance_of_the_first_is_used_for_both() {
    let set_b = ["--set-b", "run.seed=5", "--set-b", "run.confidence=0.9"];
    let (rows, _, told) = differences(&[&[FLEET, FLEET][..], &set_b[..]].concat());
    assert!(
        told.contains("both run with run.seed=42, as A says (B says 5)"),
        "{told}"
    );
    assert!(
        told.contains("run.confidence=0.95, as A says (B says 0.9)"),
        "{told}"
    );
    let load = row(&rows, "fleet", "tasks_get_rate_mean_per_s");
    assert_eq!((value(load, "difference"), &*load["seed"]), (0.0, "42"));
    assert!(load["parameters_b"].ends_with("run.seed=42; run.confidence=0.95"));

    let set_b = [
        "--set-b",
        "run.replications=9",
        "--set-b",
        "run.horizon=80s",
    ];
    let (code, shown, told) = compare(
        &[
            &[FLEET, FLEET, "--set", "run.horizon=90s"][..],
            &["--set-a", "run.replications=3"][..],
            &set_b[..],
        ]
        .concat(),
    );
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("run.replications=3, as A says (B says 9)"),
        "{told}"
    );
    assert!(told.contains("B from 1min to 80s"), "{told}");
    assert!(shown.contains("over 3 replications"), "{shown}");
}

#[test]
fn metrics_and_groups_are_chosen_by_name() {
    let set_b = ["--set-b", "policy.envelope.floor=1s"];
    let asked = ["--group", "tenant.pipelines", "--metric", "gap_p50_ms"];
    let (code, shown, _) =
        compare(&[&[FLEET, FLEET][..], &QUICK[..], &set_b[..], &asked[..]].concat());
    assert_eq!(code, Some(0));
    assert!(shown.contains("gap_p50_ms (tenant.pipelines)"), "{shown}");
    assert!(!shown.contains("useless_share"), "{shown}");

    for (wrong, told) in [
        (
            ["--metric", "gap_p55_ms"],
            "--metric: there is no metric \"gap_p55_ms\": did you mean \"gap_p50_ms\"?",
        ),
        (
            ["--group", "tenant.pipeline"],
            "--group: there is no group \"tenant.pipeline\": did you mean \"tenant.pipelines\"?",
        ),
        (["--group", "mars"], "the groups are: fleet, tenant.agents"),
    ] {
        let (code, shown, stderr) = compare(&[&[FLEET, FLEET][..], &wrong[..]].concat());
        assert_eq!((code, &*shown), (Some(2), ""));
        assert!(stderr.contains(told), "{stderr}");
    }
}

#[test]
fn a_group_of_one_side_only_is_not_compared() {
    let arguments = [
        FLEET,
        "models/gated.toml",
        "--set-b",
        "tenant.agents.name=others",
    ];
    let (rows, _, _) = differences(&arguments);
    assert!(rows.iter().any(|r| r["group"] == "tenant.pipelines"));
    assert!(rows.iter().all(|r| r["group"] != "tenant.agents"));
    let (code, _, told) = compare(&[&arguments[..], &["--group", "tenant.agents"]].concat());
    assert_eq!(code, Some(2));
    assert!(
        told.contains("there is no group \"tenant.agents\""),
        "{told}"
    );
}

#[test]
fn the_side_that_fails_is_told() {
    let (code, _, told) = compare(&["tests/data/no-time.toml", FLEET]);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("A, no-time.toml: a loop that takes no time"),
        "{told}"
    );
}
