//! What `choose` says beside the choice: the worst hints, the headroom, what would have to give.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Constant hints of 500 ms, tasks that come as a Poisson stream: the load is known, and grows with the tasks.
const FLEET: &str = r#"
    [run]
    seed = 2
    horizon = "4min"
    warm_up = "1min"
    replications = 5
    [[server]]
    name = "s"
    hint = 500
    tasks_get = { service = "4ms" }
    [[tenant]]
    name = "t"
    count = 20
    arrivals = { poisson = { rate = "30/min" } }
    duration = { exponential = { mean = "8s" } }
    servers = { s = 1 }
    policy = "p"
    [policy.p]
    jitter = { proportional = 0.1 }
"#;

const EXPERIMENT: &str = r#"
    title = "Floors | and `pipes` <script>alert(1)</script>"
    scenario = "fleet.toml"
    [[axis]]
    name = "floor"
    path = "policy.p.floor"
    values = ["250ms", "1s", "2s"]
    [[axis]]
    name = "ceiling"
    path = "policy.p.ceiling"
    values = ["2s", "8s"]
"#;

fn pollpace(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into()
}

/// A folder with the sweep of the fleet, `more` at its end, in `out`.
fn swept(more: &str, code: i32) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sweep.toml"), EXPERIMENT).unwrap();
    fs::write(folder.path().join("fleet.toml"), format!("{FLEET}\n{more}")).unwrap();
    let output = pollpace(folder.path(), &["sweep", "sweep.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    (folder, text(&output.stdout))
}

/// The values of a column of `cells.csv`, by cell.
fn column(folder: &Path, name: &str) -> Vec<Option<f64>> {
    let mut reader = csv::Reader::from_path(folder.join("out/cells.csv")).unwrap();
    let at = reader.headers().unwrap().iter().position(|h| h == name);
    let at = at.unwrap_or_else(|| panic!("no column {name}"));
    let rows = reader.records().map(|r| r.unwrap()[at].parse().ok());
    rows.collect()
}

fn objective(metric: &str, max: f64) -> String {
    format!("[[objective]]\nmetric = \"{metric}\"\nmax = {max}\n")
}

const RATE: &str = "tasks_get_rate_mean_per_s";
const WORST_RATE: &str = "worst_hint_tasks_get_rate_mean_per_s";
const WORST_LATENCY: &str = "worst_hint_completion_latency_p99_ms";

#[test]
fn the_choice_shows_the_worst_hints_and_an_objective_shows_them_everywhere() {
    let (folder, shown) = swept(&objective("completion_latency_p99_ms", 2200.0), 0);
    assert!(
        shown.contains("Recommended: floor 2s, ceiling 8s"),
        "{shown}"
    );
    assert!(shown.contains("Worst hints: if all are 0"), "{shown}");
    let defined = column(folder.path(), WORST_RATE);
    assert_eq!(
        defined.iter().flatten().count(),
        1,
        "only at the choice: {defined:?}"
    );

    // With an objective every cell is run under them; the load of hints of 0 is that of a constant hint at the floor.
    let worst = objective(WORST_RATE, 60.0) + &objective(WORST_LATENCY, 2300.0);
    let (folder, shown) = swept(&worst, 0);
    assert!(
        shown.contains("Recommended: floor 2s, ceiling 2s"),
        "{shown}"
    );
    let (rate, worst_rate) = (
        column(folder.path(), RATE),
        column(folder.path(), WORST_RATE),
    );
    // Cells: floors 250 ms, 1 s, 2 s, each with ceilings 2 s and 8 s. Hints of 500 ms become the floors of 1 s and 2 s, too.
    for (cell, (rate, worst)) in rate.iter().zip(&worst_rate).enumerate() {
        let (rate, worst) = (rate.unwrap(), worst.unwrap());
        if cell < 2 {
            // The store serves no more than 250 per second.
            assert!(
                (1.5 * rate..250.0).contains(&worst),
                "{cell}: {rate} {worst}"
            );
        } else {
            assert_eq!(rate, worst, "{cell}");
        }
    }
    let latency = column(folder.path(), WORST_LATENCY);
    assert!(latency.iter().step_by(2).all(|l| l.unwrap() < 2300.0));
    assert!(
        latency
            .iter()
            .skip(1)
            .step_by(2)
            .all(|l| l.unwrap() > 7000.0)
    );
}

#[test]
fn a_floor_of_nothing_under_hints_of_zero_is_no_failure_of_the_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = EXPERIMENT.replace("\"250ms\", \"1s\"", "\"0s\"");
    fs::write(folder.path().join("sweep.toml"), experiment).unwrap();
    // No service time and no delay: polls without a wait take no time at all.
    let fleet = FLEET.replace("tasks_get = { service = \"4ms\" }", "");
    let fleet = format!("{fleet}\n{}", objective(WORST_RATE, 1000.0));
    fs::write(folder.path().join("fleet.toml"), fleet).unwrap();
    let output = pollpace(folder.path(), &["sweep", "sweep.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let worst = column(folder.path(), WORST_RATE);
    assert_eq!(worst[..2], [None, None], "{worst:?}");
    assert!(text(&output.stdout).contains("Recommended: floor 2s"));
}

#[test]
fn the_headroom_is_where_an_objective_breaks() {
    let now = {
        let (folder, _) = swept(&objective("completion_latency_p99_ms", 2200.0), 0);
        column(folder.path(), RATE)[5].unwrap()
    };
    // Half as much load again is allowed, and the load grows with the tasks.
    let bounds = objective("completion_latency_p99_ms", 2200.0) + &objective(RATE, 1.5 * now);
    let (_folder, shown) = swept(&bounds, 0);
    let said = shown.split("feasible up to ").nth(1).unwrap();
    let factor: f64 = said.split(' ').next().unwrap().parse().unwrap();
    // The bound is held against the upper end of the interval, so a little less.
    assert!((1.30..1.52).contains(&factor), "{shown}");
}

#[test]
fn where_nothing_is_feasible_the_page_says_what_would_have_to_give() {
    // A store that can serve 250 requests per second, and is asked for more: only capacity, or push, would help.
    let more = objective("completion_latency_p99_ms", 2500.0);
    let busy = FLEET.replace("service = \"4ms\"", "service = \"40ms\"");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sweep.toml"), EXPERIMENT).unwrap();
    fs::write(folder.path().join("fleet.toml"), format!("{busy}\n{more}")).unwrap();
    let output = pollpace(folder.path(), &["sweep", "sweep.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("missed in 6 of 6 cells"), "{shown}");
    assert!(
        shown.contains(
            "With 2 times the servers' capacity, floor 2s, ceiling 2s would meet every objective"
        ) || shown.contains(
            "With 4 times the servers' capacity, floor 2s, ceiling 2s would meet every objective"
        ),
        "{shown}"
    );
    let page = fs::read_to_string(folder.path().join("out/decision.md")).unwrap();
    assert!(page.contains("What stands in the way"), "{page}");
    assert!(page.contains("servers' capacity"), "{page}");

    // A latency that no ceiling allows: push helps, capacity does not; the bound that some cell would meet is told.
    let (folder, shown) = swept(&objective("completion_latency_p99_ms", 100.0), 1);
    assert!(
        shown.contains("8 times the servers' capacity would not be enough"),
        "{shown}"
    );
    assert!(
        shown.contains("With a notification of every change (push)"),
        "{shown}"
    );
    let best = column(folder.path(), "completion_latency_p99_ms_hi");
    let best = best.into_iter().flatten().fold(f64::INFINITY, f64::min);
    assert!(
        shown.contains(&format!(
            "with a bound of {:.1} ",
            (10.0 * best).ceil() / 10.0
        )),
        "{best} {shown}"
    );
}

#[test]
fn an_objective_without_samples_is_not_met() {
    // Nobody aborts.
    let (_folder, shown) = swept(&objective("abort_latency_p99_ms", 1000.0), 1);
    assert!(
        shown.contains("missed in 6 of 6 cells; its best value is –"),
        "{shown}"
    );
}

#[test]
fn a_weighted_cost_chooses_another_cell() {
    let (folder, shown) = swept(&objective("completion_latency_p99_ms", 2200.0), 0);
    assert!(shown.contains("Recommended: floor 2s"), "{shown}");
    let choose = |least: &str| {
        pollpace(
            folder.path(),
            &["choose", "out", "--least", least, "--out", "chosen"],
        )
    };
    let output = choose("tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms");
    let shown = text(&output.stdout);
    assert!(shown.contains("Chosen: floor 250ms, ceiling 2s: the least tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms"), "{shown}");
    assert!(shown.contains("Headroom") && shown.contains("bootstrap resamples"));
    let page = fs::read_to_string(folder.path().join("chosen/decision.md")).unwrap();
    assert!(page.contains("--least 'tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms'"));
    let wrong = choose("tasks_get_rate_mean + 1");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("--least: there is no metric \"tasks_get_rate_mean\""));
}

#[test]
fn names_from_files_cannot_break_the_pages() {
    let (folder, _) = swept(&objective("completion_latency_p99_ms", 2200.0), 0);
    let html = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(
        !html.contains("<script>alert(1)"),
        "escaped in text and in data"
    );
    assert!(html.contains("&lt;script&gt;alert(1)"));
    for outside in ["http://", "https://", "src=", "@import"] {
        let found = html.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !found.contains(outside),
            "{outside}: the page needs no network"
        );
    }
}

#[test]
fn optimise_finds_what_lies_between_and_goes_on_where_it_stopped() {
    let (folder, _) = swept(&objective("completion_latency_p99_ms", 1500.0), 0);
    let optimise = || pollpace(folder.path(), &["optimise", "sweep.toml", "--out", "best"]);
    let first = optimise();
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let shown = text(&first.stdout);
    // The latency of a wait of at most W (hints of 500 ms become the floor, ±10 %) has its p99 just below W: the bound of 1.5 s gives the floor.
    let floor = shown.split("Best: floor ").nth(1).unwrap();
    let floor = floor.split(',').next().unwrap();
    let floor = floor.trim_end_matches('s').parse::<f64>().unwrap();
    assert!((1.40..1.53).contains(&floor), "{shown}");
    let table = fs::read(folder.path().join("best/optimum.csv")).unwrap();
    let units = fs::read_dir(folder.path().join("best/units"))
        .unwrap()
        .count();
    assert_eq!(optimise().stdout, first.stdout);
    assert_eq!(
        fs::read(folder.path().join("best/optimum.csv")).unwrap(),
        table
    );
    assert_eq!(
        fs::read_dir(folder.path().join("best/units"))
            .unwrap()
            .count(),
        units
    );

    let wrong = pollpace(
        folder.path(),
        &["optimise", "sweep.toml", "--resolution", "0"],
    );
    assert_eq!(wrong.status.code(), Some(2));
    let axes = fs::read_to_string(folder.path().join("sweep.toml")).unwrap();
    fs::write(
        folder.path().join("one.toml"),
        axes.replace("\"2s\", \"8s\"", "\"8s\""),
    )
    .unwrap();
    let wrong = pollpace(folder.path(), &["optimise", "one.toml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("axis \"ceiling\" is from 8s to 8s"),
        "{}",
        text(&wrong.stderr)
    );
}
