//! The program as a user runs it: exit codes, files, messages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn pollpace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollpace"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn run(args: &[&str]) -> Output {
    pollpace().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const FLEET: &str = "models/mixed-fleet.toml";
const QUICK: [&str; 4] = ["--replications", "3", "--set", "run.horizon=90s"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn rows(path: &Path) -> Vec<csv::StringRecord> {
    csv::Reader::from_path(path)
        .unwrap()
        .records()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn a_run_shows_a_table_and_keeps_its_files() {
    let out = folder();
    let output = run(&[
        &["run", FLEET, "--out", out.path().to_str().unwrap()],
        &QUICK[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "tasks/get rate, mean (1/s)",
        "Objectives",
        "Alerts",
        "hints_zero_or_below",
        "fingerprint",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    let mut names: Vec<String> = fs::read_dir(out.path())
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "abort-latency.svg",
            "alerts.json",
            "figures.json",
            "hint-effect.svg",
            "over-time.svg",
            "replications.csv",
            "summary.csv",
            "summary.json",
            "timeseries.csv"
        ]
    );

    let metrics = pollpace::catalogue::names().len();
    assert_eq!(rows(&out.path().join("summary.csv")).len(), 5 * metrics);
    assert_eq!(
        rows(&out.path().join("replications.csv")).len(),
        3 * 5 * metrics
    );
    assert_eq!(rows(&out.path().join("timeseries.csv")).len(), 5 * 90);
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(out.path().join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["provenance"]["seed"], 42);
    assert!(
        summary["groups"]["fleet"]["completion_latency_p99_ms"]["mean"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        summary["groups"]["tenant.pipelines"]["abort_latency_p99_ms"]["mean"].is_null(),
        "undefined, not zero"
    );
}

#[test]
fn every_row_tells_how_to_repeat_it() {
    let out = folder();
    run(&[
        &[
            "run",
            FLEET,
            "--quiet",
            "--out",
            out.path().to_str().unwrap(),
        ],
        &QUICK[..],
    ]
    .concat());
    for file in ["summary.csv", "replications.csv", "timeseries.csv"] {
        let mut reader = csv::Reader::from_path(out.path().join(file)).unwrap();
        let head = reader.headers().unwrap().clone();
        let first = reader.records().next().unwrap().unwrap();
        let cell = |name: &str| first[head.iter().position(|h| h == name).unwrap()].to_string();
        assert_eq!(cell("scenario"), "mixed-fleet.toml");
        assert_eq!(cell("parameters"), "run.horizon=90s; run.replications=3");
        assert_eq!(cell("seed"), "42");
        assert_eq!(cell("scenario_hash").len(), 16);
        assert_eq!(cell("version"), env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let bytes: Vec<Vec<Vec<u8>>> = ["1", "2", "8"]
        .iter()
        .map(|threads| {
            let out = folder();
            run(&[
                &[
                    "run",
                    FLEET,
                    "--quiet",
                    "--threads",
                    threads,
                    "--out",
                    out.path().to_str().unwrap(),
                ],
                &QUICK[..],
            ]
            .concat());
            let read = |f: &str| fs::read(out.path().join(f)).unwrap();
            [
                "summary.csv",
                "replications.csv",
                "timeseries.csv",
                "summary.json",
                "alerts.json",
                "over-time.svg",
                "hint-effect.svg",
                "abort-latency.svg",
                "figures.json",
            ]
            .map(read)
            .to_vec()
        })
        .collect();
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
}

#[test]
fn plot_draws_the_same_figures_again() {
    let (out, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |folder: &tempfile::TempDir| folder.path().to_str().unwrap().to_string();
    let made = run(&[
        &["run", FLEET, "--quiet", "--png", "--out", &path(&out)],
        &QUICK[..],
    ]
    .concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let plotted = run(&["plot", &path(&out), "--png", "--out", &path(&again)]);
    assert_eq!(plotted.status.code(), Some(0), "{}", text(&plotted.stderr));
    assert!(text(&plotted.stderr).contains("hint-effect.png"));
    for stem in ["over-time", "hint-effect", "abort-latency"] {
        for kind in ["svg", "png"] {
            let name = format!("{stem}.{kind}");
            let read = |folder: &tempfile::TempDir| fs::read(folder.path().join(&name)).unwrap();
            assert!(read(&out) == read(&again), "{name}");
        }
    }
    // Written over themselves, they stay the same.
    let before = fs::read(out.path().join("figures.json")).unwrap();
    assert!(run(&["plot", &path(&out), "--quiet"]).status.success());
    assert!(before == fs::read(out.path().join("figures.json")).unwrap());
}

#[test]
fn plot_tells_what_it_cannot_draw() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let plot = || {
        let plotted = run(&["plot", folder]);
        assert_eq!(plotted.status.code(), Some(2));
        text(&plotted.stderr).to_string()
    };
    assert!(plot().contains("holds no figures"));
    let file = out.path().join("figures.json");
    fs::write(&file, "{\"version\": \"0.0.0\", \"figures\": []}").unwrap();
    assert!(plot().contains("made by version 0.0.0"));
    fs::write(&file, "{\"version\": ").unwrap();
    assert!(plot().contains("is damaged"));
}

#[test]
fn formats_are_those_of_the_files() {
    let json = run(&[&["run", FLEET, "--format", "json"], &QUICK[..]].concat());
    assert!(
        serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap()["groups"]["fleet"]
            .is_object()
    );
    let csv = run(&[&["run", FLEET, "--format", "csv"], &QUICK[..]].concat());
    assert!(text(&csv.stdout).starts_with("scenario,parameters,group,metric,mean,lo,hi"));
    let quiet = run(&[&["run", FLEET, "--quiet"], &QUICK[..]].concat());
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty());
}

#[test]
fn an_objective_that_is_not_met_gives_exit_code_1() {
    let output = run(&[&["run", FLEET, "--set", "objective.0.max=1"], &QUICK[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NOT MET  completion_latency_p50_ms"));
}

#[test]
fn wrong_input_gives_exit_code_2_and_its_place() {
    let output = run(&["run", FLEET, "--set", "policy.envelope.flor=500ms"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(
        message.contains("--set:1") && message.contains("did you mean `floor`?"),
        "{message}"
    );
    assert_eq!(run(&["run", "no-such-file.toml"]).status.code(), Some(2));
    assert_eq!(
        run(&["run", FLEET, "--no-such-flag"]).status.code(),
        Some(2)
    );
    let tenant = run(&["trace", FLEET, "--tenant", "agent"]);
    assert_eq!(tenant.status.code(), Some(2));
    assert!(text(&tenant.stderr).contains("the tenants are: agents, pipelines"));
}

#[test]
fn a_loop_that_takes_no_time_is_told_by_name() {
    let output = run(&["check", "tests/data/no-time.toml"]);
    assert_eq!(output.status.code(), Some(0), "the file is well-formed");
    let output = run(&["run", "tests/data/no-time.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    for name in [
        "tenant \"greedy\"",
        "server \"instant\"",
        "policy \"bare\"",
        "floor",
    ] {
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn what_cannot_be_written_is_a_failure_of_the_program() {
    let out = folder();
    let file = out.path().join("a-file");
    fs::write(&file, "").unwrap();
    let output = run(&[
        &["run", FLEET, "--quiet", "--out", file.to_str().unwrap()],
        &QUICK[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("a-file"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told_and_a_closed_pipe_is_no_failure() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = pollpace()
        .args(["check", FLEET])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let shell = format!(
        "{} check {FLEET} | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_pollpace")
    );
    let piped = Command::new("bash")
        .args(["-c", &shell])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert_eq!(piped.status.code(), Some(0), "{}", text(&piped.stderr));
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_is_finished() {
    let out = folder();
    // Long enough to be interrupted on any machine: many replications of half a second or so.
    let mut child = pollpace()
        .args([
            "run",
            FLEET,
            "--replications",
            "100000",
            "--threads",
            "1",
            "--out",
            out.path().to_str().unwrap(),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let code = child.wait().unwrap().code();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code, Some(130));
    assert!(text(&output.stderr).contains("what is finished is kept"));
    assert!(rows(&out.path().join("summary.csv")).len() > 100);
}

#[test]
fn check_prints_what_it_would_read_again() {
    let printed = text(&run(&["check", FLEET]).stdout);
    let out = folder();
    let again = out.path().join("again.toml");
    fs::write(&again, &printed).unwrap();
    let reprinted = text(&run(&["check", again.to_str().unwrap()]).stdout);
    let body = |s: &str| s.split_once('\n').map(|(_, body)| body.to_string());
    assert_eq!(body(&printed), body(&reprinted));
    let hash = |s: &str| {
        s.lines()
            .next()
            .and_then(|l| l.rsplit(' ').next().map(String::from))
    };
    assert_eq!(hash(&printed), hash(&reprinted));
}

#[test]
fn a_story_has_a_row_per_poll() {
    let output = run(&[
        "trace", FLEET, "--tenant", "agents", "--task", "3", "--format", "csv",
    ]);
    let story = text(&output.stdout);
    let events: Vec<&str> = story
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(1).unwrap())
        .collect();
    assert_eq!(events.first(), Some(&"created"));
    assert_eq!(events.last(), Some(&"settled"));
    assert!(events.contains(&"poll") && events.contains(&"terminal"));
    assert!(
        text(&run(&["trace", FLEET]).stdout).contains("read → bounded → backed off → jittered")
    );
}

#[test]
fn schema_and_completions_are_printed() {
    let schema: serde_json::Value = serde_json::from_slice(&run(&["schema"]).stdout).unwrap();
    assert_eq!(schema["title"], "pollpace scenario");
    let schema = |of: &str| -> serde_json::Value {
        serde_json::from_slice(&run(&["schema", of]).stdout).unwrap()
    };
    assert_eq!(schema("scenario")["title"], "pollpace scenario");
    assert_eq!(schema("experiment")["title"], "pollpace experiment");
    assert_eq!(schema("results")["title"], "pollpace results");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(!run(&["completions", shell]).stdout.is_empty(), "{shell}");
    }
}
