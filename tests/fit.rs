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

/// Lines that could not be read: reason, how many, and the first of them. Reasons in any order.
#[track_caller]
fn unread_by_reason(log: &Log, expected: &[(&str, u64, u64)]) {
    let found = log.unread.iter();
    let mut found: Vec<(&str, u64, u64)> =
        found.map(|(r, u)| (r.name(), u.count, u.line)).collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// Mean rate and mean completion latency of the fitted scenario.
fn simulated(out: &Path) -> (f64, f64) {
    let (rate, latency_ms) = simulated_rate(out);
    (rate, latency_ms.unwrap())
}

fn simulated_rate(out: &Path) -> (f64, Option<f64>) {
    let set = ["run.replications=4".to_string()];
    let scenario = scenario::load(&out.join("scenario.toml"), &set)
        .unwrap()
        .scenario;
    let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
    let of = |metric| results.estimate("fleet", metric).and_then(|e| e.mean);
    (
        of("tasks_get_rate_mean_per_s").unwrap(),
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
        let (least, most) = latency.mean_ms().unwrap();
        assert!(least < truth.latency_ms && truth.latency_ms < most);
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
            let mean = tenant.latency.known_mean_ms().unwrap();
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
fn loops_that_tick_come_back() {
    let mut fleet = Fleet::plain();
    (fleet.ticks, fleet.refused, fleet.wait_after_refusal) = (true, 0.05, 3.0);
    fleet.hint = |_| Some("1000".into());
    let truth = loops::simulate(&fleet, 17);
    let fit = comes_back(&truth, &loops::csv(&truth));
    let pacing = fit.fitted.tenants[0].pacing.clone().unwrap();
    assert!(
        pacing.fixed_rate && pacing.uses_hints && pacing.explained > 0.99,
        "{pacing:?}"
    );
    assert!(!fit_of_plain().fixed_rate);
}

/// The envelope of loops that wait from the answer on.
fn fit_of_plain() -> logs::pacing::Pacing {
    let fit = fit(&[&loops::csv(&loops::simulate(&Fleet::plain(), 18))]);
    fit.fitted.tenants[0].pacing.clone().unwrap()
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
    // Times are kept since a task's first line, so their last digits depend on which that is.
    let values = |f: &Fit| {
        let t = &f.fitted.tenants[0];
        [t.arrivals_s.clone(), t.durations.values_ms.clone()].concat()
    };
    for (a, b) in values(&whole).iter().zip(values(&parts)) {
        assert!((a - b).abs() <= 1e-4 * (1.0 + a), "{a} {b}");
    }
}

/// A file for each line of a log, so that errors can be told by line.
fn wrong(texts: &[&str]) -> String {
    let (folder, log) = read(texts);
    let wrong = match log.and_then(|log| fitted::fit(&log, |_, name| name.into())) {
        Ok(_) => panic!("this log is good"),
        Err(error) => error.to_string(),
    };
    wrong.replace(&format!("{}/", folder.path().display()), "")
}

const HEAD: &str = "ts,task_id,task_status,poll_interval_ms";

#[test]
fn logs_that_tell_nothing_say_why() {
    let needs = "it needs lines about tasks: tools/call that make them, tasks/get that poll them";
    let cases: [(&[&str], String); 7] = [
        (&[""], "log-0 is empty; a log is JSON-RPC lines or a CSV file with a header (docs/fitting.md)".into()),
        (&["\n \n"], "log-0 is empty; a log is JSON-RPC lines or a CSV file with a header (docs/fitting.md)".into()),
        (&[HEAD], format!("the log has no task: 1 line; {needs}")),
        (
            &["when,task\n1,a\n"],
            "log-0:1: the header has no column ts, task_id, task_status; a CSV log has a header with ts, task_id and task_status at least, a log of JSON-RPC begins with a brace".into(),
        ),
        (
            &["{\"ts\": 1, \"id\": 1, \"method\": \"ping\"}\n{oops\n{\"ts\": 2\n"],
            format!("the log has no task: 3 lines, 2 of them not readable (the first of most of them, log-0:2, is not JSON; a line is one whole JSON object); {needs}"),
        ),
        (
            &[&format!("{HEAD}\n1,a,working,\n")],
            "the log has too little to fit: one poll (tasks/get) in 2 lines; it needs two polls at least, at different times".into(),
        ),
        (
            &[&format!("{HEAD}\n1,a,working,\n1,b,working,\n")],
            "the log has too little to fit: 2 polls (tasks/get) at one instant in 3 lines; it needs two polls at least, at different times".into(),
        ),
    ];
    for (texts, expected) in cases {
        assert_eq!(wrong(texts), expected);
    }
}

/// Every reason that a CSV line has for not being read, with the number of the first.
#[test]
fn csv_lines_that_cannot_be_read_are_counted_by_reason() {
    let rows = [
        "ts,task_id,task_status,method,http_status,latency_ms",
        "1,a,working,tasks/get,200,5",
        "2,a,working",
        "soon,a,working,tasks/get,200,5",
        "1767225600250,a,working,tasks/get,200,5",
        ",a,working,tasks/get,200,5",
        "3,,working,tasks/get,200,5",
        "3,a,done,tasks/get,200,5",
        "3,a,working,tasks/poll,200,5",
        "3,a,working,tasks/get,200,fast",
        "3,a,working,tasks/get,200,-5",
        "3,\"a,working,tasks/get,200,5",
        "4,\"a\",completed,,,\"5\"",
        "5,a",
    ];
    let (_folder, log) = read(&[&rows.join("\n")]);
    let log = log.unwrap();
    unread_by_reason(
        &log,
        &[
            ("not_a_time", 1, 4),
            ("time_in_milliseconds", 1, 5),
            ("no_time", 1, 6),
            ("no_task_id", 1, 7),
            ("unknown_status", 1, 8),
            ("unknown_method", 1, 9),
            ("not_a_number", 1, 10),
            ("answered_before_it_was_sent", 1, 11),
            ("open_quote", 1, 12),
            ("wrong_number_of_cells", 2, 3),
        ],
    );
    assert_eq!((log.lines(), log.collector.polls()), (14, 2));
}

/// The same of JSON-RPC lines.
#[test]
fn json_rpc_lines_that_cannot_be_read_are_counted_by_reason() {
    let get = |id: u32| {
        format!("\"id\": {id}, \"method\": \"tasks/get\", \"params\": {{\"taskId\": \"a\"}}}}")
    };
    let long = format!("{{\"ts\": 1, \"x\": \"{}\"}}", "x".repeat(17 << 20));
    let lines = [
        format!("{{\"ts\": 1, {}", get(1)),
        "{\"ts\": 2, \"id\": 1, \"result\": {\"taskId\": \"a\", \"status\": \"working\"}}".into(),
        "[1, 2]".into(),
        "{\"ts\": 3".into(),
        "{\"ts\": 3, \"level\": \"info\", \"message\": \"started\"}".into(),
        format!("{{{}", get(2)),
        format!("{{\"ts\": \"noon\", {}", get(2)),
        format!("{{\"ts\": 3, \"dir\": \"up\", {}", get(2)),
        "{\"ts\": 3, \"id\": 9, \"result\": {}}".into(),
        "{\"ts\": 3, \"id\": 2, \"method\": \"tasks/get\"}".into(),
        "{\"ts\": 3, \"method\": \"tasks/get\", \"params\": {\"taskId\": \"a\"}}".into(),
        "{\"ts\": 3, \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": 77}}".into(),
        format!("{{\"ts\": 4, \"dir\": \"in\", {}", get(3)),
        format!("{{\"ts\": 4, \"dir\": \"out\", {}", get(3)),
        "{\"ts\": 5, \"id\": 3, \"result\": {\"taskId\": \"a\", \"status\": \"working\"}}".into(),
        "{\"ts\": 5, \"dir\": \"in\", \"id\": 3, \"result\": {\"taskId\": \"a\", \"status\": \"resting\"}}".into(),
        "{\"ts\": 5, \"dir\": \"out\", \"id\": 3, \"result\": {\"taskId\": 7}}".into(),
        format!("{{\"ts\": 6, {}", get(4)),
        "{\"ts\": 5, \"id\": 4, \"result\": {}}".into(),
        long,
        "{\"ts\": 7, \"id\": 5, \"method\": \"resources/list\"}".into(),
    ];
    let (_folder, log) = read(&[&lines.join("\n")]);
    let log = log.unwrap();
    unread_by_reason(
        &log,
        &[
            ("not_an_object", 1, 3),
            ("not_json", 1, 4),
            ("not_a_message", 1, 5),
            ("no_time", 1, 6),
            ("not_a_time", 1, 7),
            ("unknown_direction", 1, 8),
            ("answer_without_request", 1, 9),
            ("no_task_id", 1, 10),
            ("no_request_id", 1, 11),
            ("unknown_request_cancelled", 1, 12),
            ("ambiguous_answer", 1, 15),
            ("unknown_status", 1, 16),
            ("not_a_task", 1, 17),
            ("answered_before_it_was_sent", 1, 19),
            ("too_long", 1, 20),
        ],
    );
    assert_eq!(log.collector.other_messages, 1);
}

/// Envelopes of every documented shape say the same.
#[test]
fn envelopes_of_every_shape_say_the_same() {
    let exchange = |ask: &dyn Fn(&str, &str) -> String, tell: &dyn Fn(&str, &str) -> String| {
        let task = |status: &str| {
            format!("{{\"taskId\": \"a\", \"status\": \"{status}\", \"pollIntervalMs\": 2000}}")
        };
        let get = "\"method\": \"tasks/get\", \"params\": {\"taskId\": \"a\"}";
        [
            ask("10", &format!("\"id\": \"q\", {get}")),
            tell(
                "10.1",
                &format!("\"id\": \"q\", \"result\": {}", task("working")),
            ),
            ask("12.1", &format!("\"id\": \"r\", {get}")),
            tell(
                "12.2",
                &format!("\"id\": \"r\", \"result\": {}", task("completed")),
            ),
        ]
        .join("\n")
    };
    let bare = |at: &str, m: &str| format!("{{\"time\": {at}, \"jsonrpc\": \"2.0\", {m}}}");
    let payload = |dir: &'static str| {
        move |at: &str, m: &str| {
            format!(
                "{{\"timestamp\": \"{at}\", \"direction\": \"{dir}\", \"connection\": 4, \"payload\": {{{m}}}}}"
            )
        }
    };
    let quoted = |at: &str, m: &str| {
        format!(
            "{{\"ts\": {at}, \"msg\": \"a frame\", \"message\": \"{{{}}}\"}}",
            m.replace('"', "\\\"")
        )
    };
    let shapes = [
        exchange(&bare, &bare),
        exchange(&payload("send"), &payload("recv")),
        exchange(&payload("s2c"), &payload("c2s")),
        exchange(&quoted, &quoted),
    ];
    for text in shapes {
        let fit = fit(&[&text]);
        assert_eq!(fit.log.unread_lines(), 0, "{text}");
        let tenant = &fit.fitted.tenants[0];
        assert_eq!((tenant.polls, tenant.ends), (2, [1, 0, 0]), "{text}");
        let pacing = tenant.pacing.clone().unwrap();
        assert!(
            pacing.uses_hints && (pacing.default_ms - 2_000.0).abs() < 0.01,
            "{pacing:?}"
        );
    }
}

/// A host that goes on polling after its burst of `notifications/cancelled`, as the measured SDK does.
#[test]
fn polls_after_notifications_cancelled_are_leaked() {
    let mut lines = Vec::new();
    let mut line = |ts: f64, message: String| {
        lines.push(format!("{{\"ts\": {ts}, \"message\": {{{message}}}}}"))
    };
    for task in 0..20 {
        let (at, id) = (100.0 * f64::from(task), 100 * task);
        let state = |status: &str| {
            format!("\"taskId\": \"t{task}\", \"status\": \"{status}\", \"pollInterval\": 1000")
        };
        line(
            at,
            format!("\"id\": {id}, \"method\": \"tools/call\", \"params\": {{}}"),
        );
        line(
            at,
            format!(
                "\"id\": {id}, \"result\": {{\"task\": {{{}}}}}",
                state("working")
            ),
        );
        for poll in 1..=6 {
            if poll == 4 {
                for request in 0..poll {
                    line(
                        at + 3.5,
                        format!(
                            "\"method\": \"notifications/cancelled\", \"params\": {{\"requestId\": {}}}",
                            id + request
                        ),
                    );
                }
            }
            let at = at + f64::from(poll);
            line(
                at,
                format!(
                    "\"id\": {}, \"method\": \"tasks/get\", \"params\": {{\"taskId\": \"t{task}\"}}",
                    id + poll
                ),
            );
            let status = if poll < 6 { "working" } else { "completed" };
            line(
                at + 0.01,
                format!("\"id\": {}, \"result\": {{{}}}", id + poll, state(status)),
            );
        }
    }
    let fit = fit(&[&lines.join("\n")]);
    assert_eq!(fit.log.unread_lines(), 0);
    let tenant = &fit.fitted.tenants[0];
    assert_eq!((tenant.aborts(), tenant.leaked), (20, 60));
    assert_eq!(tenant.given_up["notifications/cancelled"], 20);
    let scenario = fs::read_to_string(fit.out.join("scenario.toml")).unwrap();
    assert!(
        scenario.contains("wait = \"ignored\"") && scenario.contains("then = \"detach\""),
        "{scenario}"
    );
    let (rate, _) = simulated_rate(&fit.out);
    within(rate, fit.fitted.rate_per_s(), 0.05, "rate");
}

/// The hint classes of both protocol revisions and of CSV cells, and what hosts make of the bad ones.
#[test]
fn bad_hints_are_counted_by_class_and_get_their_rules() {
    let hints = [
        "5000",
        "null",
        "0",
        "-250",
        "0.5",
        "\"3000\"",
        "\"soon\"",
        "2147483648",
        "",
    ];
    let mut lines = Vec::new();
    let mut id = 0;
    for round in 0..5 {
        for (n, hint) in hints.iter().enumerate() {
            let (task, mut at) = (
                format!("t{round}-{n}"),
                f64::from(round * 1_000 + n as i32 * 60),
            );
            let key = if round % 2 == 0 {
                "pollInterval"
            } else {
                "pollIntervalMs"
            };
            let hint = if hint.is_empty() {
                String::new()
            } else {
                format!(", \"{key}\": {hint}")
            };
            // Hints of 1 ms and more are used, as far as 32 bits go; all others become the default of 2 s.
            let wait = match n {
                0 => 5.0,
                7 => 0.001,
                _ => 2.0,
            };
            for poll in 0..4 {
                id += 1;
                let status = if poll < 3 { "working" } else { "completed" };
                lines.push(format!("{{\"ts\": {at}, \"message\": {{\"id\": {id}, \"method\": \"tasks/get\", \"params\": {{\"taskId\": \"{task}\"}}}}}}"));
                lines.push(format!("{{\"ts\": {at}, \"message\": {{\"id\": {id}, \"result\": {{\"taskId\": \"{task}\", \"status\": \"{status}\"{hint}}}}}}}"));
                at += wait;
            }
        }
    }
    let fit = fit(&[&lines.join("\n")]);
    assert_eq!(fit.log.unread_lines(), 0);
    let counts = &fit.fitted.servers[0].hints.per_task;
    let found: Vec<(&str, u64)> = pollpace::policy::HintClass::ALL
        .iter()
        .map(|c| (c.name(), counts.classes[*c as usize]))
        .filter(|(_, n)| *n > 0)
        .collect();
    let expected = [
        ("absent", 5),
        ("null", 5),
        ("zero", 5),
        ("negative", 5),
        ("fractional", 5),
        ("text", 10),
        ("beyond_i32_ms", 5),
        ("sane", 5),
    ];
    assert_eq!(found, expected);
    let pacing = fit.fitted.tenants[0].pacing.clone().unwrap();
    let rules: Vec<(&str, &str)> = pacing
        .rules
        .iter()
        .map(|(c, then)| (c.name(), *then))
        .collect();
    assert_eq!(
        rules,
        [("zero", "default"), ("beyond_i32_ms", "wrap_i32_timer")]
    );
    assert_eq!(pacing.explained, 1.0);
    let scenario = fs::read_to_string(fit.out.join("scenario.toml")).unwrap();
    assert!(
        scenario.contains("value = \"3000\"")
            && scenario.contains("value = \"text\"")
            && !scenario.contains("soon"),
        "{scenario}"
    );
}

/// Names and ids of a log with everything in it: what is private is in no file.
#[test]
fn bodies_and_ids_stay_in_the_log() {
    let mut fleet = Fleet::plain();
    (fleet.abort, fleet.refused, fleet.tasks) = ((0.5, 20.0), 0.05, 300);
    let truth = loops::simulate(&fleet, 13);
    let (_folder, log) = read(&[&loops::json_rpc(&truth, true)]);
    let log = log.unwrap();
    let ids = Ids::salted("pepper");
    let fitted = fitted::fit(&log, |kind, name| ids.name(kind, name)).unwrap();
    let out = tempfile::tempdir().unwrap();
    files::write(out.path(), &log, &fitted, &Choice::default()).unwrap();
    let mut names = 0;
    for entry in fs::read_dir(out.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for secret in ["task-1", "s3cr3t", "agents", "batch", "pepper"] {
            assert!(!text.contains(secret), "{} has {secret}", path.display());
            assert!(!path.file_name().unwrap().to_string_lossy().contains(secret));
        }
        names += 1;
    }
    assert_eq!(names, 10);
    scenario::load(&out.path().join("scenario.toml"), &[]).unwrap();
}

fn pollpace(args: &[&str]) -> (Option<i32>, String, String) {
    let output = assert_cmd::Command::cargo_bin("pollpace")
        .unwrap()
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_program_fits_runs_and_tells_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut fleet = Fleet::plain();
    fleet.tasks = 100;
    let text = loops::csv(&loops::simulate(&fleet, 14));
    fs::write(path("log.csv"), format!("{text}not a row\n")).unwrap();

    let (code, table, told) = pollpace(&["fit", &path("log.csv"), "--out", &path("out")]);
    assert_eq!(code, Some(0), "{told}");
    assert!(table.contains("not read: 1 line, first "), "{table}");
    assert!(
        table.contains("which has another number of cells than the header"),
        "{table}"
    );
    assert!(
        told.contains("random salt") && told.contains("now: pollpace run "),
        "{told}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(path("out/fit.json")).unwrap()).unwrap();
    assert_eq!(
        (
            json["tasks"].as_u64(),
            json["unread"]["wrong_number_of_cells"]["count"].as_u64()
        ),
        (Some(100), Some(1))
    );
    let (code, _, told) = pollpace(&[
        "run",
        &path("out/scenario.toml"),
        "--replications",
        "2",
        "-q",
    ]);
    assert_eq!(code, Some(0), "{told}");

    // Of a policy that there is not, nothing is written.
    let (code, _, told) = pollpace(&[
        "fit",
        &path("log.csv"),
        "--out",
        &path("other"),
        "--policy",
        "nobodys",
    ]);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("nobodys") && !Path::new(&path("other")).exists(),
        "{told}"
    );
    // An older scenario stays as it is.
    let before = fs::read(path("out/scenario.toml")).unwrap();
    let (code, ..) = pollpace(&[
        "fit",
        &path("log.csv"),
        "--out",
        &path("out"),
        "--policy",
        "nobodys",
    ]);
    assert_eq!(
        (code, fs::read(path("out/scenario.toml")).unwrap()),
        (Some(2), before)
    );

    // Of one that there is, the scenario names it.
    let preset = ["--policy", "mcp-ts-sdk-1.x-client"];
    let (code, _, told) = pollpace(
        &[
            &["fit", &path("log.csv"), "--out", &path("named")],
            &preset[..],
        ]
        .concat(),
    );
    let scenario = fs::read_to_string(path("named/scenario.toml")).unwrap();
    assert!(
        code == Some(0)
            && scenario.contains("policy = \"mcp-ts-sdk-1.x-client\"")
            && !scenario.contains("[policy"),
        "{told}{scenario}"
    );

    let (code, _, told) = pollpace(&["fit", &path("missing.csv"), "--out", &path("other")]);
    assert!(
        code == Some(2) && told.contains("cannot read ") && told.contains("missing.csv"),
        "{told}"
    );
    fs::write(path("file"), "").unwrap();
    let (code, _, told) = pollpace(&[
        "fit",
        &path("log.csv"),
        "--out",
        &path("file/out"),
        "--timeout",
        "30s",
    ]);
    assert!(
        code == Some(3) && told.contains("cannot write"),
        "{code:?} {told}"
    );
}

/// Salts that are the same give the same hashes; the rest of the results does not depend on them.
#[test]
fn results_are_the_same_in_every_run() {
    let mut fleet = Fleet::plain();
    (fleet.tasks, fleet.abort) = (500, (0.3, 20.0));
    let text = loops::csv(&loops::simulate(&fleet, 15));
    let results = |ids: Ids| {
        let (folder, _) = read(&[&text]);
        let log = logs::read(&[folder.path().join("log-0")], None, ids, |_| {}).unwrap();
        let fitted = fitted::fit(&log, |_, name| name.into()).unwrap();
        let out = folder.path().join("out");
        files::write(&out, &log, &fitted, &Choice::default()).unwrap();
        [
            "scenario.toml",
            "durations-agents.csv",
            "aborts-agents.csv",
            "aborts.csv",
        ]
        .map(|name| fs::read_to_string(out.join(name)).unwrap())
    };
    let (a, b, c) = (
        results(Ids::salted("a")),
        results(Ids::salted("a")),
        results(Ids::salted("c")),
    );
    assert_eq!(a, b);
    assert_eq!(a[..3], c[..3]);
    assert_ne!(a[3], c[3]);
}

/// The peak of memory of this process, in MB.
fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}

/// 300 MB of each format; run by hand: `cargo test --release --test fit -- --ignored --test-threads 1`. Memory goes with the tasks, not with the bytes: a gigabyte
/// of such CSV has 1.4 million of them, and takes 190 MB.
#[test]
#[ignore = "writes 300 MB twice"]
fn long_logs_stream() {
    use std::io::Write;
    for json in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut out = std::io::BufWriter::new(fs::File::create(&path).unwrap());
        let (mut bytes, mut task, mut id) = (0, 0u64, 0u64);
        if !json {
            writeln!(out, "ts,tenant,server,task_id,method,http_status,task_status,poll_interval_ms,retry_after_s,latency_ms").unwrap();
        }
        while bytes < 300_000_000 {
            let start = 0.01 * task as f64;
            for poll in 0..=10 {
                let at = start + 5.0 * f64::from(poll);
                let (method, status) = match poll {
                    0 => ("tools/call", "working"),
                    10 => ("tasks/get", "completed"),
                    _ => ("tasks/get", "working"),
                };
                id += 1;
                let text = if json {
                    format!(
                        "{{\"ts\": {at:.3}, \"session\": 1, \"message\": {{\"jsonrpc\": \"2.0\", \"id\": {id}, \"method\": \"{method}\", \"params\": {{\"taskId\": \"task-{task}\"}}}}}}\n{{\"ts\": {:.3}, \"session\": 1, \"message\": {{\"jsonrpc\": \"2.0\", \"id\": {id}, \"result\": {{\"taskId\": \"task-{task}\", \"status\": \"{status}\", \"pollIntervalMs\": 5000}}}}}}\n",
                        at + 0.02
                    )
                } else {
                    format!("{at:.3},agents,batch,task-{task},{method},200,{status},5000,,20\n")
                };
                bytes += text.len();
                out.write_all(text.as_bytes()).unwrap();
            }
            task += 1;
        }
        drop(out);
        let before = std::time::Instant::now();
        let log = logs::read(&[path], None, Ids::random(), |_| {}).unwrap();
        assert_eq!(
            (log.unread_lines(), log.collector.tasks.len() as u64),
            (0, task)
        );
        let fitted = fitted::fit(&log, |_, name| name.into()).unwrap();
        files::write(
            &folder.path().join("out"),
            &log,
            &fitted,
            &Choice::default(),
        )
        .unwrap();
        println!(
            "{task} tasks, {} s, peak {} MB",
            before.elapsed().as_secs_f64(),
            peak_mb()
        );
        assert!(peak_mb() < 200.0, "{} MB", peak_mb());
    }
}

/// Dates in whole seconds narrow down what polls tell; they are not taken for exact.
#[test]
fn dates_in_whole_seconds_are_not_exact() {
    let mut fleet = Fleet::plain();
    fleet.dated = Some(0.0);
    let truth = loops::simulate(&fleet, 16);
    let text = loops::csv(&truth);
    let (head, rows) = text.split_once('\n').unwrap();
    // The last two columns are the dates; their milliseconds are cut off.
    let cut = |date: &str| match date.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => String::new(),
    };
    let rows: Vec<String> = rows
        .lines()
        .map(|row| {
            let cells: Vec<&str> = row.split(',').collect();
            let (rest, dates) = cells.split_at(cells.len() - 2);
            format!("{},{},{}", rest.join(","), cut(dates[0]), cut(dates[1]))
        })
        .collect();
    let fit = comes_back(&truth, &format!("{head}\n{}", rows.join("\n")));
    let tenant = &fit.fitted.tenants[0];
    assert!(tenant.observed.exactly == 0 && tenant.observed.between > 1_900);
    let (least, most) = tenant.latency.mean_ms().unwrap();
    assert!(
        least < truth.latency_ms && truth.latency_ms < most,
        "{least} {most}"
    );
    assert!(most - least < 1_100.0, "{least} {most}");
}

/// The examples of docs/fitting.md are logs: the CSV and the JSON-RPC lines tell of the same task.
#[test]
fn the_examples_of_the_page_can_be_read() {
    let page = include_str!("../docs/fitting.md");
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_string()
    };
    let (_folder, json) = read(&[&block("json")]);
    let (_folder, csv) = read(&[&block("csv")]);
    for log in [json.unwrap(), csv.unwrap()] {
        assert_eq!(log.unread_lines(), 0);
        assert_eq!((log.collector.tasks.len(), log.collector.polls()), (1, 1));
        let task = log.collector.tasks[0];
        assert_eq!(task.end, Some(logs::event::Status::Completed));
        assert!((task.created.seconds().unwrap() - 0.04).abs() < 1e-6);
        assert!((task.terminal_seen.seconds().unwrap() - 5.079).abs() < 1e-5);
    }
}
