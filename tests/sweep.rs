//! Sweeps that are killed, cut into parts, merged and resumed: the tables are the same, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const EXPERIMENT: &str = r#"
    title = "A small sweep"
    scenario = "fleet.toml"
    constraints = ["floor <= ceiling"]
    replications = 3

    [[axis]]
    name = "floor"
    path = "policy.p.floor"
    values = ["500ms", "1s", "2s"]

    [[axis]]
    name = "ceiling"
    path = "policy.p.ceiling"
    values = ["1s", "4s"]
"#;

const FLEET: &str = r#"
    [run]
    seed = 5
    horizon = "2min"
    warm_up = "20s"
    [[server]]
    name = "s"
    hint = "h"
    tasks_get = { service = "1ms" }
    delay = { exponential = { mean = "10ms" } }
    [hint.h]
    mix = [{ weight = 3, ms = { uniform = { low = 100, high = 9000 } } }, { weight = 1, value = 0 }]
    [[tenant]]
    name = "t"
    count = 40
    arrivals = { poisson = { rate = "1/s" } }
    duration = { exponential = { mean = "10s" } }
    servers = { s = 1 }
    abort = { probability = 0.1, after = "5s" }
    policy = "p"
    [policy.p]
    jitter = { proportional = 0.1 }
    [[objective]]
    metric = "completion_latency_p99_ms"
    max = 4200
"#;

/// A folder with the experiment in it.
fn folder(experiment: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sweep.toml"), experiment).unwrap();
    fs::write(folder.path().join("fleet.toml"), FLEET).unwrap();
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollpace"));
    command.current_dir(folder).args(arguments);
    command
        .env_remove("SLURM_ARRAY_TASK_ID")
        .env_remove("JOB_COMPLETION_INDEX");
    command
}

fn pollpace(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Runs, and expects an exit code.
fn expect(code: i32, folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = pollpace(folder, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{out}\n{err}"
    );
    (out, err)
}

/// The tables, the figures and the pages of a folder of results.
fn tables(folder: &Path) -> Vec<Vec<u8>> {
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    [
        "cells.csv",
        "results.csv",
        "trade-off.svg",
        "figures.json",
        "decision.md",
        "report.html",
    ]
    .map(read)
    .to_vec()
}

/// The tables of an uninterrupted sweep.
fn reference() -> (tempfile::TempDir, Vec<Vec<u8>>) {
    let folder = folder(EXPERIMENT);
    expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "whole", "--threads", "1"],
    );
    let tables = tables(&folder.path().join("whole"));
    (folder, tables)
}

fn units(folder: &Path) -> usize {
    fs::read_dir(folder.join("units")).map_or(0, Iterator::count)
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_stopped() {
    let (folder, reference) = reference();
    let out = folder.path().join("killed");
    let mut seen = Vec::new();
    for wait_ms in [40, 90, 150] {
        let mut child = command(
            folder.path(),
            &["sweep", "sweep.toml", "--out", "killed", "--threads", "2"],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
        sleep(Duration::from_millis(wait_ms));
        // SIGKILL: there is nothing that the program could tidy up.
        let _ = child.kill();
        child.wait().unwrap();
        seen.push(units(&out));
    }
    assert!(seen.is_sorted(), "what is finished is kept: {seen:?}");
    expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "killed"],
    );
    assert!(tables(&out) == reference, "after {seen:?} of 15 units");
}

#[test]
fn any_number_of_parts_and_threads_gives_the_same_tables() {
    let (folder, reference) = reference();
    for parts in [1, 3, 7] {
        let names: Vec<String> = (1..=parts)
            .map(|part| format!("part-{part}-of-{parts}"))
            .collect();
        for (part, name) in (1..).zip(&names) {
            let shard = format!("{part}/{parts}");
            let threads = if part % 2 == 0 { "2" } else { "1" };
            expect(
                0,
                folder.path(),
                &[
                    "sweep",
                    "sweep.toml",
                    "--out",
                    name,
                    "--shard",
                    &shard,
                    "--threads",
                    threads,
                ],
            );
        }
        let merged = format!("merged-{parts}");
        let mut arguments = vec!["merge"];
        arguments.extend(names.iter().map(String::as_str));
        arguments.extend(["--out", &merged]);
        expect(0, folder.path(), &arguments);
        assert!(
            tables(&folder.path().join(merged)) == reference,
            "{parts} parts"
        );
    }
}

#[test]
fn a_merge_without_a_part_says_that_it_is_unfinished() {
    let (folder, _) = reference();
    for part in ["1/3", "3/3"] {
        let name = part.replace('/', "-");
        expect(
            0,
            folder.path(),
            &["sweep", "sweep.toml", "--out", &name, "--shard", part],
        );
    }
    let (out, _) = expect(1, folder.path(), &["merge", "1-3", "3-3", "--out", "half"]);
    assert!(out.contains("Some cells are not finished"), "{out}");
}

#[test]
fn the_environment_of_a_job_says_which_part() {
    let (folder, _) = reference();
    let listed = |name: &str, value: &str| {
        let output = command(
            folder.path(),
            &["sweep", "sweep.toml", "--list", "--shard", "/3"],
        )
        .env(name, value)
        .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let first = listed("SLURM_ARRAY_TASK_ID", "1");
    assert_eq!(first, listed("JOB_COMPLETION_INDEX", "0"));
    assert!(
        first.starts_with("0  floor 500ms, ceiling 1s\n3  "),
        "{first}"
    );
    let (_, err) = expect(
        2,
        folder.path(),
        &["sweep", "sweep.toml", "--list", "--shard", "/3"],
    );
    assert!(err.contains("SLURM_ARRAY_TASK_ID"), "{err}");
    for wrong in ["0/3", "4/3", "x/3", "2"] {
        let (_, err) = expect(2, folder.path(), &["sweep", "sweep.toml", "--shard", wrong]);
        assert!(err.contains("--shard 2/7"), "{err}");
    }
}

#[test]
fn replications_are_added_without_running_any_again() {
    let (folder, _) = reference();
    let more = EXPERIMENT.replace("replications = 3", "replications = 5");
    fs::write(folder.path().join("sweep.toml"), more).unwrap();
    let (list, _) = expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "whole", "--list"],
    );
    assert!(
        list.contains("10 of 25 replications are still to be run"),
        "{list}"
    );
    let before: Vec<PathBuf> = fs::read_dir(folder.path().join("whole/units"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    let times = |files: &[PathBuf]| -> Vec<_> {
        files
            .iter()
            .map(|f| f.metadata().unwrap().modified().unwrap())
            .collect()
    };
    let then = times(&before);
    expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "whole"]);
    assert_eq!(times(&before), then);
    let (list, _) = expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "whole", "--list"],
    );
    assert!(
        list.contains("0 of 25 replications are still to be run"),
        "{list}"
    );
}

#[test]
fn results_of_another_scenario_are_never_mixed_in() {
    let (folder, reference) = reference();
    let other = FLEET.replace("seed = 5", "seed = 6");
    fs::write(folder.path().join("fleet.toml"), other).unwrap();
    let (_, err) = expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "whole"]);
    assert!(err.contains("another sweep or version"), "{err}");
    let changed = tables(&folder.path().join("whole"));
    assert!(changed != reference);
    // And back again: both are there.
    fs::write(folder.path().join("fleet.toml"), FLEET).unwrap();
    let (_, err) = expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "whole"]);
    assert!(
        err.contains("15 of 15 replications are there already"),
        "{err}"
    );
    assert!(tables(&folder.path().join("whole")) == reference);
    // Nor are parts of two sweeps merged.
    fs::write(
        folder.path().join("sweep.toml"),
        EXPERIMENT.replace("\"4s\"", "\"5s\""),
    )
    .unwrap();
    expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "other"]);
    let (_, err) = expect(
        2,
        folder.path(),
        &["merge", "whole", "other", "--out", "both"],
    );
    assert!(err.contains("different sweeps"), "{err}");
}

#[test]
fn a_precision_adds_replications_where_they_are_needed() {
    let precise = EXPERIMENT.replace(
        "replications = 3",
        "precision = { metrics = [\"tasks_get_rate_mean_per_s\"], relative_half_width = 0.01, min = 3, max = 40 }",
    );
    let folder = folder(&precise);
    expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "precise"],
    );
    let mut reader = csv::Reader::from_path(folder.path().join("precise/cells.csv")).unwrap();
    let column = |name: &str| {
        reader
            .headers()
            .unwrap()
            .iter()
            .position(|h| h == name)
            .unwrap()
    };
    let mut reader_of = csv::Reader::from_path(folder.path().join("precise/cells.csv")).unwrap();
    let [mean, hi, n] = [
        "tasks_get_rate_mean_per_s",
        "tasks_get_rate_mean_per_s_hi",
        "replications",
    ]
    .map({
        let mut column = column;
        move |name| column(name)
    });
    let mut numbers = Vec::new();
    for row in reader_of.records() {
        let row = row.unwrap();
        let value = |at: usize| row[at].parse::<f64>().unwrap();
        let relative = value(hi) / value(mean) - 1.0;
        assert!(
            relative <= 0.01 || value(n) == 40.0,
            "{relative} with {}",
            value(n)
        );
        numbers.push(value(n));
    }
    assert!(numbers.iter().any(|n| *n > 3.0), "{numbers:?}");
    // The same from another number of threads, and from what is kept.
    let first = tables(&folder.path().join("precise"));
    expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "again", "--threads", "1"],
    );
    assert!(tables(&folder.path().join("again")) == first);
    expect(0, folder.path(), &["merge", "precise", "--out", "merged"]);
    assert!(tables(&folder.path().join("merged")) == first);
}

#[test]
fn mser5_finds_one_warm_up_for_all_cells() {
    let folder = folder(&EXPERIMENT.replace(
        "replications = 3",
        "replications = 2\n    warm_up = \"mser5\"",
    ));
    let (_, err) = expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "cut"]);
    let cut = err
        .lines()
        .find_map(|l| l.strip_prefix("MSER-5 on a pilot: observation starts at "));
    let cut = cut
        .and_then(|c| pollpace::scenario::units::Duration::parse(c).ok())
        .unwrap();
    // Tasks of 10 s on the average fill the fleet in some 30 s.
    assert!((5.0..60.0).contains(&cut.as_seconds()), "{cut}");
}

#[test]
fn choose_asks_the_results_again_with_other_objectives() {
    let (folder, _) = reference();
    let chosen = |arguments: &[&str]| {
        expect(
            0,
            folder.path(),
            &[&["choose", "whole"], arguments].concat(),
        )
        .0
    };
    let own = chosen(&[]);
    for part in [
        "Chosen: floor 2s, ceiling 4s",
        "Margins",
        "tighter",
        "bootstrap",
        "Pareto",
    ] {
        assert!(own.contains(part), "{part} is missing in\n{own}");
    }
    // A stricter bound than any floor above 500 ms keeps.
    let strict = chosen(&["--objective", "completion_latency_p99_ms<=1100"]);
    assert!(
        strict.starts_with("Chosen: floor 1s, ceiling 1s"),
        "{strict}"
    );
    // The highest load, as it were: the least completion latency.
    let fresh = chosen(&["--least", "completion_latency_mean_ms"]);
    assert!(
        fresh.starts_with("Chosen: floor 500ms, ceiling 1s"),
        "{fresh}"
    );
    let (out, _) = expect(
        1,
        folder.path(),
        &[
            "choose",
            "whole",
            "--objective",
            "completion_latency_p99_ms<=5",
        ],
    );
    assert!(out.contains("missed in 5 of 5 cells"), "{out}");
    // A metric without a sample meets nothing.
    let (out, _) = expect(
        1,
        folder.path(),
        &["choose", "whole", "--objective", "budget_delay_p99_ms<=5"],
    );
    assert!(out.contains("budget_delay_p99_ms"), "{out}");
    for (wrong, told) in [
        ("completion_latency_p9_ms<=5", "did you mean"),
        ("completion_latency_p99_ms<=fast", "is no number"),
        ("completion_latency_p99_ms", "write it as in"),
        ("tenant.x:completion_latency_p99_ms<=5", "tenant.t"),
    ] {
        let (_, err) = expect(2, folder.path(), &["choose", "whole", "--objective", wrong]);
        assert!(err.contains(told), "{err}");
    }
    let (_, err) = expect(2, folder.path(), &["choose", "."]);
    assert!(err.contains("holds no sweep"), "{err}");
}

#[test]
fn a_sweep_over_a_policy_that_others_extend_is_merged_alike() {
    let folder = folder(&EXPERIMENT.replace("policy.p.floor", "policy.base.floor"));
    let fleet = FLEET.replace(
        "[policy.p]",
        "[policy.base]\n    [policy.p]\n    extends = \"base\"",
    );
    fs::write(folder.path().join("fleet.toml"), fleet).unwrap();
    expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "whole"]);
    for part in ["1/2", "2/2"] {
        expect(
            0,
            folder.path(),
            &["sweep", "sweep.toml", "--out", &part[..1], "--shard", part],
        );
    }
    expect(0, folder.path(), &["merge", "1", "2", "--out", "merged"]);
    let cells = |name: &str| fs::read(folder.path().join(name).join("results.csv")).unwrap();
    assert!(cells("merged") == cells("whole"));
    expect(0, folder.path(), &["choose", "merged"]);
}

#[test]
fn a_warm_up_that_is_found_counts_in_the_list_and_must_fit() {
    let found = EXPERIMENT.replace(
        "replications = 3",
        "replications = 2\n    warm_up = \"mser5\"",
    );
    let folder = folder(&found);
    expect(0, folder.path(), &["sweep", "sweep.toml", "--out", "cut"]);
    let (list, _) = expect(
        0,
        folder.path(),
        &["sweep", "sweep.toml", "--out", "cut", "--list"],
    );
    assert!(
        list.contains("0 of 10 replications are still to be run"),
        "{list}"
    );
    let short = found
        + "\n[[axis]]\nname = \"horizon\"\npath = \"run.horizon\"\nvalues = [\"2min\", \"4s\"]\n";
    fs::write(folder.path().join("sweep.toml"), short).unwrap();
    fs::write(
        folder.path().join("fleet.toml"),
        FLEET.replace("warm_up = \"20s\"", ""),
    )
    .unwrap();
    let (_, err) = expect(2, folder.path(), &["sweep", "sweep.toml", "--out", "short"]);
    assert!(err.contains("horizon 4s"), "{err}");
}
