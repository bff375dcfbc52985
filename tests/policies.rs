//! `pollpace policies`: presets listed, shown, compared, exported; and presets in scenarios.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

use pollpace::experiment::policies::verdicts;
use pollpace::report::policies::markdown;
use pollpace::scenario::{self, presets};

fn pollpace(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollpace"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const FLEET: &str = "[run]\nhorizon = \"1min\"\nreplications = 1\n[[server]]\nname = \"s\"\nhint = 100\n[[tenant]]\nname = \"t\"\n\
                     arrivals = { at_once = {} }\nduration = \"1h\"\nservers = { s = 1 }\n";

fn parse(more: &str, overrides: &[&str]) -> Result<scenario::Scenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|o| o.to_string()).collect();
    let loaded = scenario::parse("fleet.toml", &format!("{FLEET}{more}"), &overrides);
    loaded.map(|l| l.scenario).map_err(|e| e.to_string())
}

#[test]
fn a_preset_needs_no_file() {
    let by_name = parse("policy = \"fastmcp-4.x\"\n", &[]).unwrap();
    let preset = &presets::find("fastmcp-4.x").unwrap().policy;
    assert_eq!(&by_name.policy["fastmcp-4.x"], preset);
    let mine = "policy = \"mine\"\n[policy.mine]\nextends = \"fastmcp-4.x\"\nfloor = \"250ms\"\n";
    let extended = parse(mine, &[]).unwrap();
    assert_eq!(extended.policy["mine"].floor.unwrap().to_string(), "250ms");
    assert_eq!(extended.policy["mine"].backoff, preset.backoff);
    // An override may name a preset, and speak of one, quoted or not.
    let named = parse(
        "policy = \"mine\"\n[policy.mine]\n",
        &["tenant.t.policy=vscode"],
    )
    .unwrap();
    assert!(named.policy.contains_key("vscode"));
    for path in [
        "policy.fastmcp-4.x.floor=1s",
        "policy.\"fastmcp-4.x\".floor=1s",
    ] {
        let changed = parse("policy = \"fastmcp-4.x\"\n", &[path]).unwrap();
        assert_eq!(
            changed.policy["fastmcp-4.x"].floor.unwrap().to_string(),
            "1s",
            "{path}"
        );
    }
    // A policy of the file comes before a preset of its name.
    let own = parse(
        "policy = \"vscode\"\n[policy.vscode]\ndefault = \"7s\"\n",
        &[],
    )
    .unwrap();
    assert_eq!(own.policy["vscode"].default.to_string(), "7s");
    let wrong = parse("policy = \"fastmcp-5.x\"\n", &[]).unwrap_err();
    assert!(wrong.contains("did you mean \"fastmcp-4.x\"?"), "{wrong}");
}

#[test]
fn what_a_preset_is_stands_in_words_and_as_toml() {
    let shown = stdout(&pollpace(&["policies", "show", "mcp-ts-sdk-1.x-client"]));
    for part in [
        "evidence  the code was run",
        "Bad hints: 0 → 1ms; −5 → 1ms; 0.5 → 1ms; 2³¹ ms → 1ms; 10¹³ ms → 1ms; a string → rejected.",
        "An abort in a wait is seen after the sleep",
        "[policy.\"mcp-ts-sdk-1.x-client\"]",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    // What it prints is that policy.
    for (name, preset) in presets::all() {
        let shown = stdout(&pollpace(&["policies", "show", name]));
        let toml = &shown[shown.find("[policy.").unwrap()..];
        let text = format!("{FLEET}policy = \"{name}\"\n{toml}");
        let loaded = scenario::parse("shown", &text, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(loaded.scenario.policy[*name], preset.policy, "{name}");
    }
    let unknown = pollpace(&["policies", "show", "vs-code"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean \"vscode\"?"));
}

#[test]
fn many_loops_run_over_one_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let args = [
        "policies",
        "compare",
        "models/gate-bench.toml",
        "--policy",
        "anda",
        "--policy",
        "mcp-py-pr3005",
        "--out",
    ];
    let args = [&args[..], &[out.to_str().unwrap(), "--threads", "1"]].concat();
    let first = pollpace(&args);
    assert!(first.status.success(), "{}", stderr(&first));
    let table = stdout(&first);
    assert!(
        table.contains("anda") && table.contains("(the scenario's own)"),
        "{table}"
    );
    let csv = std::fs::read(out.join("policies.csv")).unwrap();
    let svg = std::fs::read(out.join("poll-loops.svg")).unwrap();
    let again = pollpace(&[&args[..args.len() - 1], &["2"]].concat());
    assert_eq!(stdout(&again), table, "on any number of threads");
    assert_eq!(std::fs::read(out.join("policies.csv")).unwrap(), csv);
    assert_eq!(std::fs::read(out.join("poll-loops.svg")).unwrap(), svg);
    // The hot loop of a hint of 0 shows.
    let rows = String::from_utf8(csv).unwrap();
    let worst = |name: &str| -> f64 {
        let head = format!("{name},fleet,worst_hint_tasks_get_rate_mean_per_s,");
        let row = rows.lines().find(|l| l.starts_with(&head)).unwrap();
        row[head.len()..]
            .split(',')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!(worst("mcp-py-pr3005") > 8.0 * worst("anda"));
}

#[test]
fn an_export_says_what_it_cannot_say() {
    let refused = pollpace(&["policies", "export", "vscode", "--to", "python"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("push: notifications change waits"));
    let json = pollpace(&["policies", "export", "anda", "--to", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["parameters"]["floor_ms"], 250.0);
    let own = [
        "policies",
        "export",
        "envelope",
        "--to",
        "typescript",
        "--scenario",
        "models/mixed-fleet.toml",
    ];
    let own = pollpace(&own);
    assert!(stdout(&own).contains("\"kind\": \"proportional\""));
    let unknown = [
        "policies",
        "export",
        "nothing",
        "--to",
        "json",
        "--scenario",
        "models/mixed-fleet.toml",
    ];
    let unknown = pollpace(&unknown);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("there is no [policy.nothing]"));
}

#[test]
fn the_page_of_presets_has_the_table_of_the_program() {
    let all: Vec<_> = presets::all().iter().map(|(name, p)| (*name, p)).collect();
    let stop = AtomicBool::new(false);
    let verdicts = verdicts(&all, &stop, || {}).unwrap().unwrap();
    let table = markdown(&all, &verdicts);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policies.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let marker = "<!-- the table is written by the tests -->\n\n";
    let (before, after) = page.split_once(marker).unwrap();
    let after = after.find("## ").map(|at| &after[at..]).unwrap();
    let right = format!("{before}{marker}{table}\n{after}");
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &right).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == right,
        "docs/policies.md is out of date: run the test with POLLPACE_WRITE_DOCS=1"
    );
}

/// The figure of the README: `pollpace policies compare models/mixed-fleet.toml --replications 1`.
#[test]
#[ignore = "takes half a minute as a debug build"]
fn the_figure_of_the_readme_is_that_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = [
        "policies",
        "compare",
        "models/mixed-fleet.toml",
        "--replications",
        "1",
        "--quiet",
        "--out",
        out,
    ];
    let run = pollpace(&args);
    assert!(run.status.success(), "{}", stderr(&run));
    let drawn = std::fs::read_to_string(folder.path().join("poll-loops.svg")).unwrap();
    // What the README says of it.
    let rows = std::fs::read_to_string(folder.path().join("policies.csv")).unwrap();
    let values = |metric: &str| -> Vec<(String, f64)> {
        let rows = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| row[1] == "fleet" && row[2] == metric);
        rows.map(|row| (row[0].into(), row[3].parse().unwrap_or(0.0)))
            .collect()
    };
    let usual = values("tasks_get_rate_mean_per_s");
    let own = usual
        .iter()
        .find(|(preset, _)| preset.is_empty())
        .unwrap()
        .1;
    let above = |metric: &str, bound: f64| {
        let values = values(metric);
        values
            .iter()
            .filter(|(preset, v)| !preset.is_empty() && *v > bound)
            .count()
    };
    assert_eq!(
        above("worst_hint_tasks_get_rate_mean_per_s", 20.0 * own),
        12
    );
    assert_eq!(above("worst_hint_abort_latency_p99_ms", 60_000.0), 5);
    assert_eq!(usual.len(), 1 + 36);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/figures/poll-loops.svg");
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == drawn,
        "docs/figures/poll-loops.svg is out of date: run the test with POLLPACE_WRITE_DOCS=1"
    );
}
