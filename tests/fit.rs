//! `pollpace fit`: logs become scenarios, and the scenarios give the logs' own load and latency.

#[path = "fit/loops.rs"]
mod loops;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use loops::{Fleet, Truth};
use pollpace::logs::fitted::{self, Fitted};
use pollpace::logs::ids::Ids;
use pollpace::logs::scenario::Choice;
use pollpace::logs::{self, Log, LogError, files};
use pollpace::{experiment, scenario};

/// A log on disk, what was read of it, and where its scenario stands.
struct Fit {
    log: Log,
    fitted: Fitted,
    out: PathBuf,
    _folder: tempfile::TempDir,
}

fn read(texts: &[&str]) -> (tempfile::TempDir, Result<Log, LogError>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..texts.len())
        .map(|i| folder.path().join(format!("log-{i}")))
        .collect();
    for (path, text) in paths.iter().zip(texts) {
        fs::write(path, text).unwrap();
    }
    let log = logs::read(&paths, None, Ids::salted("pepper"), |_| {});
    (folder, log)
}

fn fit(texts: &[&str]) -> Fit {
    let (folder, log) = read(texts);
    let log = log.unwrap();
    let fitted = fitted::fit(&log, |_, name| name.into()).unwrap();
    let out = folder.path().join("out");
    files::write(&out, &log, &fitted, &Choice::default()).unwrap();
    Fit {
        log,
        fitted,
        out,
        _folder: folder,
    }
}

/// Mean rate and mean completion latency of the fitted scenario.
fn simulated(out: &Path) -> (f64, f64) {
    let set = ["run.replications=4".to_string()];
    let scenario = scenario::load(&out.join("scenario.toml"), &set)
        .unwrap()
        .scenario;
    let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
    let of = |metric| {
        results
            .estimate("fleet", metric)
            .and_then(|e| e.mean)
            .unwrap()
    };
    (
        of("tasks_get_rate_mean_per_s"),
        of("completion_latency_mean_ms"),
    )
}

#[track_caller]
fn within(found: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (found - expected).abs() <= share * expected,
        "{what}: {found}, where the log has {expected}"
    );
}

/// Fits a log of the truth, runs its scenario, and holds it against what really happened.
#[track_caller]
fn comes_back(truth: &Truth, text: &str) -> Fit {
    let fit = fit(&[text]);
    assert_eq!(fit.log.unread_lines(), 0);
    within(
        fit.fitted.rate_per_s(),
        truth.rate,
        1e-3,
        "the log's own rate",
    );
    let (rate, latency_ms) = simulated(&fit.out);
    println!(
        "rate {rate} / {}, latency {latency_ms} / {}",
        truth.rate, truth.latency_ms
    );
    println!(
        "{}",
        fs::read_to_string(fit.out.join("scenario.toml")).unwrap()
    );
    within(rate, truth.rate, 0.05, "rate");
    within(latency_ms, truth.latency_ms, 0.05, "completion latency, ms");
    fit
}

#[test]
fn constant_hints_and_censored_durations_come_back() {
    let truth = loops::simulate(&Fleet::plain(), 1);
    for text in [
        loops::csv(&truth),
        loops::json_rpc(&truth, false),
        loops::json_rpc(&truth, true),
    ] {
        let fit = comes_back(&truth, &text);
        let tenant = &fit.fitted.tenants[0];
        assert_eq!((tenant.tasks, tenant.observed.exactly), (2_000, 0));
        let pacing = tenant.pacing.as_ref().unwrap();
        assert!(pacing.uses_hints && pacing.explained > 0.99);
        let latency = &tenant.latency;
        assert!(latency.least_mean_ms.unwrap() < truth.latency_ms);
        assert!(latency.most_mean_ms.unwrap() > truth.latency_ms);
    }
}

#[test]
fn drawn_hints_with_a_floor_and_a_default_come_back() {
    let mut fleet = Fleet::plain();
    fleet.hint = |c| match c.unit() {
        u if u < 0.2 => None,
        u if u < 0.3 => Some("0".into()),
        _ => Some(format!("{:.0}", c.between(100.0, 9_000.0))),
    };
    // A floor of 2 s, under which zero becomes the floor, a ceiling of 7 s, a default of 4 s.
    fleet.wait = |hint, _, _| match hint {
        None => 4.0,
        Some(ms) => (ms.parse::<f64>().unwrap() / 1e3).clamp(2.0, 7.0),
    };
    for vary in [false, true] {
        fleet.vary = vary;
        let truth = loops::simulate(&fleet, 2);
        let fit = comes_back(&truth, &loops::csv(&truth));
        assert_eq!(fit.fitted.servers[0].hints.vary(), vary);
        let pacing = fit.fitted.tenants[0].pacing.clone().unwrap();
        within(pacing.floor_ms.unwrap(), 2_000.0, 1e-3, "floor");
        within(pacing.ceiling_ms.unwrap(), 7_000.0, 1e-3, "ceiling");
        within(pacing.default_ms, 4_000.0, 1e-3, "default");
    }
}

#[test]
fn refusals_come_back() {
    let mut fleet = Fleet::plain();
    fleet.refused = 0.1;
    fleet.wait_after_refusal = 8.0;
    let truth = loops::simulate(&fleet, 3);
    for text in [loops::csv(&truth), loops::json_rpc(&truth, false)] {
        let fit = comes_back(&truth, &text);
        within(
            fit.fitted.servers[0].failed_share,
            0.1,
            0.05,
            "share refused",
        );
        let refusals = fs::read_to_string(fit.out.join("refusals.csv")).unwrap();
        assert!(
            refusals.contains("tasks/get,http 429,agents,batch,"),
            "{refusals}"
        );
    }
}

#[test]
fn aborts_come_back() {
    let mut fleet = Fleet::plain();
    fleet.abort = (0.5, 20.0);
    for cancels in [false, true] {
        fleet.cancels = cancels;
        let truth = loops::simulate(&fleet, 4);
        let fit = comes_back(&truth, &loops::json_rpc(&truth, true));
        let tenant = &fit.fitted.tenants[0];
        within(tenant.aborts() as f64, truth.aborts as f64, 0.02, "aborts");
        assert_eq!(tenant.cancels(), cancels);
        let scenario = fs::read_to_string(fit.out.join("scenario.toml")).unwrap();
        let then = if cancels {
            "then = \"cancel\""
        } else {
            "then = \"detach\""
        };
        assert!(scenario.contains(then), "{scenario}");
    }
}

/// Callers give up on tasks that have not ended: the share that would, were all tasks endless, is larger than the share that does.
#[test]
fn patience_is_that_of_callers_whose_tasks_do_not_end_first() {
    let mut fleet = Fleet::plain();
    (fleet.tasks, fleet.abort, fleet.cancels) = (4_000, (1.0, 60.0), true);
    let truth = loops::simulate(&fleet, 5);
    let fit = fit(&[&loops::csv(&truth)]);
    let tenant = &fit.fitted.tenants[0];
    assert!(tenant.aborts() * 2 < tenant.tasks);
    let patience = &tenant.patience;
    let median = patience.values_ms[patience.values_ms.len() / 2];
    // The exponential's median, of the part that was seen.
    let expected = -60e3 * (1.0 - 0.5 * (1.0 - patience.beyond)).ln();
    within(median, expected, 0.08, "median patience, ms");
}

#[test]
fn dates_make_durations_exact_even_by_another_clock() {
    let mut fleet = Fleet::plain();
    for ahead in [0.0, 7.25] {
        fleet.dated = Some(ahead);
        let truth = loops::simulate(&fleet, 6);
        for text in [loops::csv(&truth), loops::json_rpc(&truth, true)] {
            let fit = comes_back(&truth, &text);
            let tenant = &fit.fitted.tenants[0];
            assert!(tenant.observed.exactly > 1_900 && tenant.observed.between == 0);
            let known = &tenant.latency.known_ms;
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            within(
                mean,
                truth.latency_ms,
                0.02,
                "the log's own completion latency",
            );
        }
    }
}

#[test]
fn first_polls_at_once_backoffs_and_jitter_come_back() {
    let mut fleet = Fleet::plain();
    fleet.hint = |_| None;
    fleet.at_once = true;
    fleet.wait = |_, number, _| (0.5 * 1.5f64.powi(number as i32)).min(15.0);
    let backoff = loops::simulate(&fleet, 7);
    let fit = comes_back(&backoff, &loops::csv(&backoff));
    let steps = fit.fitted.tenants[0].pacing.clone().unwrap().steps_ms;
    within(steps[0], 750.0, 0.01, "first step");
    within(steps[5], 5_695.0, 0.01, "sixth step");

    fleet.at_once = false;
    fleet.wait = |_, _, c| c.between(3.0, 7.0);
    let jittered = loops::simulate(&fleet, 8);
    comes_back(&jittered, &loops::csv(&jittered));

    fleet.hint = |_| Some("5000".into());
    fleet.wait = |_, _, c| c.between(0.0, 5.0);
    let full = loops::simulate(&fleet, 9);
    comes_back(&full, &loops::csv(&full));
}

#[test]
fn without_creations_tasks_begin_with_their_first_poll() {
    let mut fleet = Fleet::plain();
    (fleet.created, fleet.at_once) = (false, true);
    let truth = loops::simulate(&fleet, 10);
    let text: String = loops::csv(&truth);
    comes_back(&truth, &text);
}

/// A log that is cut out of the middle: tasks under way at its beginning are told, and left out of the durations.
#[test]
fn tasks_under_way_are_left_out() {
    let truth = loops::simulate(&Fleet::plain(), 11);
    let text = loops::csv(&truth);
    let (head, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().skip(4_000).collect();
    let fit = fit(&[&format!("{head}\n{}", rows.join("\n"))]);
    let observed = fit.fitted.tenants[0].observed;
    assert!((20..150).contains(&observed.under_way), "{observed:?}");
    let (rate, _) = simulated(&fit.out);
    within(rate, fit.fitted.rate_per_s(), 0.05, "rate");
}

#[test]
fn interleaved_files_are_one_log() {
    let truth = loops::simulate(&Fleet::plain(), 12);
    let text = loops::csv(&truth);
    let (head, rows) = text.split_once('\n').unwrap();
    let part = |odd: usize| {
        let rows: Vec<&str> = rows
            .lines()
            .enumerate()
            .filter(|(i, _)| i % 2 == odd)
            .map(|(_, row)| row)
            .collect();
        format!("{head}\n{}\n", rows.join("\n"))
    };
    let whole = fit(&[&text]);
    let parts = fit(&[&part(1), &part(0)]);
    let of = |f: &Fit| {
        let t = &f.fitted.tenants[0];
        (
            t.tasks,
            t.polls,
            t.ends,
            t.observed.between,
            t.observed.beyond,
        )
    };
    assert_eq!(of(&whole), of(&parts));
    assert_eq!(
        whole.fitted.tenants[0].arrivals_s,
        parts.fitted.tenants[0].arrivals_s
    );
    assert_eq!(
        whole.fitted.tenants[0].durations.values_ms,
        parts.fitted.tenants[0].durations.values_ms
    );
}
