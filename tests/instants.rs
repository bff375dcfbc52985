//! What happens first when several things fall on one instant, and where a run begins and ends: stories of single tasks.
//!
//! The order within an instant: a server ends a task; service ends and the state is read; polls arrive; answers are seen;
//! timers fire and polls are sent; aborts and deadlines.

use std::sync::atomic::AtomicBool;

use pollpace::engine::trace::{Follow, Row};
use pollpace::engine::{self, Outcome, RunError};
use pollpace::experiment::{self, Results};
use pollpace::model::Model;
use pollpace::scenario::{self, Scenario};

const MS: u64 = 1_000_000;

/// One tenant class "t" that polls one server class "s", every 5 s unless the policy says otherwise.
fn scenario(run: &str, server: &str, tenant: &str, policy: &str) -> Scenario {
    let text = format!(
        "[run]\nhorizon = \"60s\"\nreplications = 1\n{run}\n[[server]]\nname = \"s\"\n{server}\n[[tenant]]\nname = \"t\"\n\
         servers = {{ s = 1 }}\npolicy = \"p\"\n{tenant}\n[policy.p]\n{policy}\n"
    )
    .replace("horizon = \"60s\"\nreplications = 1\nhorizon", "replications = 1\nhorizon");
    match scenario::parse("instants", &text, &[]) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// One task of this length, and what else its tenant says.
fn one(duration: &str, more: &str) -> String {
    format!("arrivals = {{ at_once = {{}} }}\nduration = \"{duration}\"\n{more}")
}

fn follow(scenario: &Scenario, tenant: u16, number: u64) -> Outcome {
    let follow = Follow {
        tenant: Some(tenant),
        number,
    };
    engine::run(
        &Model::new(scenario),
        0,
        Some(follow),
        &AtomicBool::new(false),
    )
    .unwrap()
}

fn rows(scenario: &Scenario) -> Vec<Row> {
    follow(scenario, 0, 1).story.unwrap().rows
}

/// (sent, seen, status) of each poll in the story, in ms.
fn polls(scenario: &Scenario) -> Vec<(u64, Option<u64>, &'static str)> {
    let rows = rows(scenario);
    let polls = rows.iter().filter_map(|row| row.poll.as_ref());
    polls
        .map(|p| (p.sent / MS, p.seen.map(|seen| seen / MS), p.status))
        .collect()
}

/// When the task's loop settled, in ms, and how.
fn settled(scenario: &Scenario) -> Option<(u64, String)> {
    let rows = rows(scenario);
    let row = rows.into_iter().find(|row| row.event == "settled")?;
    Some((row.at / MS, row.note))
}

fn run(scenario: &Scenario) -> Results {
    experiment::run(scenario, &AtomicBool::new(false), |_| {}).unwrap()
}

fn value(results: &Results, metric: &str) -> f64 {
    results.values("fleet", metric)[0].unwrap()
}

const EVERY_5_S: &str = "default = \"5s\"";

#[test]
fn a_task_that_ends_as_its_state_is_read_has_ended() {
    // Read at once, after a way and a service, and at a server that finds out only when the task ends.
    let late = "delay = \"200ms\"\ntasks_get = { service = \"100ms\" }";
    for (server, duration, seen) in [
        ("", "5s", 5000),
        ("executes = 1", "5s", 5000),
        (late, "5.3s", 5500),
        (&format!("{late}\nexecutes = 1"), "5.3s", 5500),
    ] {
        let told = polls(&scenario("", server, &one(duration, ""), EVERY_5_S));
        assert_eq!(told, [(5000, Some(seen), "completed")], "{server}");
    }
    let told = polls(&scenario("", late, &one("5.300000001s", ""), EVERY_5_S));
    assert_eq!(
        told[0],
        (5000, Some(5500), "working"),
        "a nanosecond later it has not"
    );
}

#[test]
fn requests_of_one_instant_are_served_by_class_name_then_member_then_task() {
    let text = |tenants: [&str; 2]| {
        let tenant = |name: &str| {
            format!(
                "[[tenant]]\nname = \"{name}\"\ncount = 2\narrivals = {{ at_once = {{ tasks = 2 }} }}\nduration = \"1s\"\n\
                 servers = {{ s = 1 }}\npolicy = \"p\"\n"
            )
        };
        format!(
            "[run]\nhorizon = \"60s\"\n[[server]]\nname = \"s\"\ntasks_get = {{ service = \"1s\" }}\n{}{}[policy.p]\n{EVERY_5_S}\n",
            tenant(tenants[0]),
            tenant(tenants[1])
        )
    };
    for order in [["a", "b"], ["b", "a"]] {
        let scenario = scenario::parse("order", &text(order), &[])
            .unwrap()
            .scenario;
        let seen = |tenant, number| {
            let story = follow(&scenario, tenant, number).story.unwrap();
            let (_, member, ordinal, ..) = story.subject.unwrap();
            let settled = story
                .rows
                .iter()
                .find(|row| row.event == "settled")
                .unwrap();
            (member, ordinal, settled.at / MS)
        };
        let mut found: Vec<_> = (0..2)
            .flat_map(|t| (1..=4).map(move |n| (t, n)))
            .map(|(t, n)| seen(t, n))
            .collect();
        found.sort_unstable();
        let expected: Vec<_> = (0..8)
            .map(|i| (i / 2, i % 2, 6000 + 1000 * u64::from(i)))
            .collect();
        assert_eq!(found, expected, "{order:?}");
    }
}

#[test]
fn a_poll_that_arrives_as_the_worker_becomes_free_is_served() {
    // Two tasks 100 ms apart at a server that serves for 100 ms and lets nobody wait.
    let server = "tasks_get = { service = \"100ms\", queue = 0 }";
    let tenant = "arrivals = { periodic = { every = \"100ms\", tasks = 2 } }\nduration = \"0s\"";
    let results = run(&scenario("", server, tenant, EVERY_5_S));
    assert_eq!(value(&results, "tasks_get_refused"), 0.0);
    let sooner = tenant.replace("100ms", "99ms");
    let results = run(&scenario("", server, &sooner, EVERY_5_S));
    assert_eq!(value(&results, "tasks_get_refused"), 1.0);
}

#[test]
fn a_poll_at_the_instant_of_the_abort_is_sent_and_not_leaked() {
    for (server, last) in [
        ("", (10_000, Some(10_000), "working")),
        (
            "delay = \"100ms\"",
            (9_900 + 300, None, "dropped by the abort"),
        ),
    ] {
        // With a round trip of 200 ms the second poll leaves at 10.2 s.
        let after = last.0;
        let abort = format!("abort = {{ after = \"{after}ms\" }}");
        let scenario = scenario("", server, &one("1h", &abort), EVERY_5_S);
        let told = polls(&scenario);
        assert_eq!((told.len(), told[1]), (2, last), "{server}");
        assert_eq!(
            settled(&scenario),
            Some((after, "aborted; the id is kept".into()))
        );
        let results = run(&scenario);
        let found = ["aborts", "leaked_polls", "abort_latency_max_ms"].map(|m| value(&results, m));
        assert_eq!(found, [1.0, 0.0, 0.0], "{server}");
    }
}

#[test]
fn with_no_round_trip_an_answer_is_seen_before_an_abort_of_that_instant() {
    let scenario = scenario(
        "",
        "",
        &one("10s", "abort = { after = \"10s\" }"),
        EVERY_5_S,
    );
    assert_eq!(settled(&scenario), Some((10_000, "completed".into())));
    let results = run(&scenario);
    assert_eq!(value(&results, "aborts"), 0.0);
    assert_eq!(value(&results, "tasks_completed"), 1.0);
}

#[test]
fn without_a_drain_polls_of_the_horizon_are_sent_and_stand_in_no_rate() {
    let ten = "horizon = \"10s\"\ndrain = \"none\"";
    let scenario = scenario(ten, "", &one("1h", ""), EVERY_5_S);
    assert_eq!(
        polls(&scenario),
        [
            (5000, Some(5000), "working"),
            (10_000, Some(10_000), "working")
        ]
    );
    let results = run(&scenario);
    assert_eq!(results.replications[0].totals.sent, 2);
    assert_eq!(value(&results, "requests_tasks_get"), 1.0);
    assert_eq!(value(&results, "tasks_get_rate_mean_per_s"), 0.1);
    assert_eq!(value(&results, "tasks_get_rate_1s_peak_per_s"), 1.0);
    assert_eq!(value(&results, "tasks_running"), 1.0);
}

#[test]
fn a_poll_at_the_deadline_is_sent_and_none_after_it() {
    let policy = format!("{EVERY_5_S}\ngive_up_after = \"10s\"");
    let at = scenario("", "", &one("1h", ""), &policy);
    assert_eq!(polls(&at).len(), 2);
    assert_eq!(settled(&at), Some((10_000, "gave up".into())));
    let before = scenario("", "", &one("1h", ""), &policy.replace("10s", "9.999s"));
    assert_eq!(polls(&before).len(), 1);
    assert_eq!(settled(&before), Some((9_999, "gave up".into())));
}

#[test]
fn a_deadline_after_the_end_of_the_run_has_not_come() {
    let ten = "horizon = \"10s\"\ndrain = \"none\"";
    let policy = "default = \"7s\"\ngive_up_after = \"12s\"";
    let results = run(&scenario(ten, "", &one("1h", ""), policy));
    assert_eq!(value(&results, "tasks_running"), 1.0);
    assert_eq!(value(&results, "tasks_gave_up"), 0.0);
}

#[test]
fn an_abort_inside_a_service_settles_at_once_at_any_server() {
    // The poll of 5 s is in service until 5.4 s; the abort comes at 5.1 s and the cancel follows it through the queue.
    let tenant = one("1h", "abort = { after = \"5.1s\", then = \"cancel\" }");
    for more in ["", "executes = 1", "hint = \"h\""] {
        let server = format!("tasks_get = {{ service = \"400ms\" }}\n{more}");
        let policy = format!(
            "{EVERY_5_S}\n[hint.h]\ndrawn = \"by_load\"\nsteps = [{{ from = 0, value = 5000 }}]"
        );
        let scenario = scenario("", &server, &tenant, &policy);
        assert_eq!(
            settled(&scenario),
            Some((5100, "aborted; tasks/cancel sent".into())),
            "{more}"
        );
        assert_eq!(
            polls(&scenario),
            [(5000, None, "dropped by the abort")],
            "{more}"
        );
        let cancelled = rows(&scenario)
            .into_iter()
            .find(|row| row.event == "terminal" && row.note == "cancelled");
        assert_eq!(cancelled.map(|row| row.at / MS), Some(5800), "{more}");
        let results = run(&scenario);
        assert_eq!(value(&results, "abort_latency_max_ms"), 0.0, "{more}");
    }
}

#[test]
fn a_cancel_stands_in_the_queue_before_polls_that_come_after_the_abort() {
    // As above, and another task polls at 5.2 s: it is served after the poll (until 5.4 s) and the cancel (until 5.8 s).
    let text = |executes: &str| {
        format!(
            "[run]\nhorizon = \"10s\"\n[[server]]\nname = \"s\"\ntasks_get = {{ service = \"400ms\" }}\n{executes}\n\
             [[tenant]]\nname = \"aborted\"\nservers = {{ s = 1 }}\npolicy = \"p\"\n{}\n\
             [[tenant]]\nname = \"later\"\nservers = {{ s = 1 }}\npolicy = \"q\"\n{}\n\
             [policy.p]\n{EVERY_5_S}\n[policy.q]\ndefault = \"5.2s\"\n",
            one("1h", "abort = { after = \"5.1s\", then = \"cancel\" }"),
            one("1s", "")
        )
    };
    for executes in ["", "executes = 2"] {
        let scenario = scenario::parse("cancel", &text(executes), &[])
            .unwrap()
            .scenario;
        let story = follow(&scenario, 1, 1).story.unwrap();
        let poll = story.rows.into_iter().find_map(|row| row.poll).unwrap();
        assert_eq!(
            (poll.sent / MS, poll.seen),
            (5200, Some(6200 * MS)),
            "{executes}"
        );
    }
}

#[test]
fn a_wait_for_ever_ends_by_nothing_but_an_abort_that_can_interrupt_it() {
    let policy =
        "rules = [{ class = \"non_finite\", then = \"forever\" }]\nfirst_poll = { after = \"5s\" }";
    let hint = "\n[hint.h]\nmix = [{ value = inf }]";
    let never = |more: &str, abort: &str| {
        let scenario = scenario(
            "",
            "hint = \"h\"",
            &one("20s", abort),
            &format!("{policy}\n{more}{hint}"),
        );
        let results = run(&scenario);
        let found = [
            "tasks_never_polled_again",
            "tasks_gave_up",
            "aborts",
            "aborts_unsettled",
        ];
        (found.map(|m| value(&results, m)), settled(&scenario))
    };
    let abort = "abort = { after = \"8s\" }";
    assert_eq!(never("", ""), ([1.0, 0.0, 0.0, 0.0], None));
    assert_eq!(
        never("give_up_after = \"30s\"", ""),
        ([0.0, 1.0, 0.0, 0.0], Some((30_000, "gave up".into())))
    );
    let detached = |at| Some((at, "aborted; the id is kept".into()));
    assert_eq!(never("", abort), ([0.0, 0.0, 1.0, 0.0], detached(8000)));
    assert_eq!(
        never("wait = { sliced = \"2s\" }", abort),
        ([0.0, 0.0, 1.0, 0.0], detached(9000))
    );
    // A sleep that never ends is never followed by a look at the flag.
    for manner in ["wait = \"checked_after_sleep\"", "wait = \"ignored\""] {
        assert_eq!(
            never(manner, abort),
            ([1.0, 0.0, 1.0, 1.0], None),
            "{manner}"
        );
    }
}

#[test]
fn a_hint_by_load_is_that_of_the_end_of_service_and_knows_of_cancelled_tasks() {
    // Nine of ten tasks are cancelled at 0.1 s; the cancels are served one by one until 1 s. The first poll of the tenth arrives
    // at 0.95 s, while two tasks are unfinished, and its service ends at 1.1 s, when it is alone.
    let text = "[run]\nhorizon = \"10s\"\n[[server]]\nname = \"s\"\nhint = \"h\"\ntasks_get = { service = \"100ms\" }\n\
        [hint.h]\ndrawn = \"by_load\"\nsteps = [{ from = 0, value = 100 }, { from = 2, value = 3000 }]\n\
        [[tenant]]\nname = \"many\"\narrivals = { at_once = { tasks = 9 } }\nduration = \"1h\"\nservers = { s = 1 }\n\
        abort = { after = \"100ms\", then = \"cancel\" }\npolicy = \"p\"\n\
        [[tenant]]\nname = \"one\"\narrivals = { at_once = {} }\nduration = \"1h\"\nservers = { s = 1 }\n\
        abort = { after = \"5s\" }\npolicy = \"q\"\n[policy.p]\n[policy.q]\nfirst_poll = { after = \"950ms\" }\n";
    let scenario = scenario::parse("load", text, &[]).unwrap().scenario;
    let story = follow(&scenario, 1, 1).story.unwrap();
    let hints: Vec<String> = story
        .rows
        .iter()
        .filter_map(|row| row.wait.as_ref().map(|w| w.hint_text()))
        .collect();
    assert_eq!(hints[..2], ["3000", "100"]);
}

#[test]
fn a_result_that_a_full_queue_refused_is_missing_from_no_quantile() {
    // The server serves one request at a time and lets nobody wait. The poll of the second task is in service from 2.5 s to
    // 2.9 s; in between the first task's result is asked for.
    let server = "tasks_get = { service = \"400ms\", queue = 0 }\ndelay = \"50ms\"";
    let tenant = "arrivals = { periodic = { every = \"450ms\", tasks = 2 } }\nduration = \"1s\"";
    let policy = "default = \"2s\"\nat_end = \"tasks/result\"";
    let results = run(&scenario("", server, tenant, policy));
    assert_eq!(value(&results, "completion_latency_count"), 2.0);
    assert_eq!(value(&results, "requests_tasks_result"), 2.0);
    assert_eq!(value(&results, "result_latency_count"), 1.0);
    let p99 = value(&results, "result_latency_p99_ms");
    assert!(p99.is_nan(), "the upper quantiles are unknown: {p99}");
}

#[test]
fn a_loop_that_takes_no_time_is_told_by_name() {
    let fail = |tenant: &str, policy: &str| {
        let scenario = scenario("", "hint = 0", tenant, policy);
        match experiment::run(&scenario, &AtomicBool::new(false), |_| {}) {
            Err(error @ RunError::NoTime { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let polls = fail(&one("1h", ""), EVERY_5_S);
    assert!(
        polls.starts_with("a loop that takes no time: tenant \"t\" sent 10000 polls of one task to server \"s\" at the instant 0 s; policy \"p\""),
        "{polls}"
    );
    // Tasks without length that follow each other without a pause.
    let tasks = fail(
        "arrivals = { closed_loop = { tasks = 2 } }\nduration = \"0s\"",
        "first_poll = \"at_once\"",
    );
    assert!(
        tasks.contains("10000 tasks, each after the end of another, to server \"s\""),
        "{tasks}"
    );
    // A task that takes a while to end does not: its loop waits for nothing, but a server's service does.
    let served = scenario(
        "",
        "hint = 0\ntasks_get = { service = \"1ms\" }",
        &one("50s", ""),
        EVERY_5_S,
    );
    assert_eq!(value(&run(&served), "tasks_completed"), 1.0);
}

#[test]
fn the_event_limit_is_met_to_the_event() {
    let tenant = one("50s", "");
    let limited = |limit: u64| {
        let scenario = scenario(&format!("event_limit = {limit}"), "", &tenant, EVERY_5_S);
        experiment::run(&scenario, &AtomicBool::new(false), |_| {})
    };
    let events = run(&scenario("", "", &tenant, EVERY_5_S)).replications[0]
        .totals
        .events;
    assert_eq!(events, 11, "a creation and ten polls");
    assert!(limited(events).is_ok());
    let at_s = "50".to_string();
    assert_eq!(
        limited(events - 1).unwrap_err(),
        RunError::EventLimit {
            limit: events - 1,
            tenant: "t".into(),
            at_s
        }
    );
}

#[test]
fn bursts_too_short_to_hold_an_arrival_are_told() {
    let text = r#"
        [run]
        horizon = "60s"
        [[server]]
        name = "s"
        [[tenant]]
        name = "bursty"
        arrivals = { on_off = { rate = "1/s", on = { uniform = { low = "0s", high = "0s" } }, off = { uniform = { low = "0s", high = "0s" } } } }
        duration = "1s"
        servers = { s = 1 }
        policy = "p"
        [policy.p]
    "#;
    let scenario = pollpace::scenario::parse("bursts", text, &[])
        .unwrap()
        .scenario;
    let error = pollpace::engine::run(
        &pollpace::model::Model::new(&scenario),
        0,
        None,
        &std::sync::atomic::AtomicBool::new(false),
    )
    .unwrap_err();
    assert!(error.to_string().contains("tenant \"bursty\""), "{error}");
}

#[test]
fn a_host_that_was_shut_down_asks_for_nothing_more() {
    let text = |arrivals: &str| {
        format!(
            r#"
        [run]
        horizon = "60s"
        replications = 1
        [[server]]
        name = "s"
        [[tenant]]
        name = "t"
        arrivals = {arrivals}
        duration = "45s"
        creation_delay = "200ms"
        servers = {{ s = 1 }}
        abort = {{ shutdown_at = "30s" }}
        policy = "p"
        [policy.p]
    "#
        )
    };
    for (arrivals, tasks) in [
        ("{ closed_loop = { tasks = 1 } }", 1.0),
        ("{ periodic = { every = \"10s\", phase = \"9.9s\" } }", 3.0),
    ] {
        let scenario = pollpace::scenario::parse("shutdown", &text(arrivals), &[])
            .unwrap()
            .scenario;
        let results = run(&scenario);
        // The third of the periodic ones is asked for at 29.9 s and held at 30.1 s: it is aborted when its id is held.
        assert_eq!(
            (value(&results, "tasks"), value(&results, "aborts")),
            (tasks, tasks),
            "{arrivals}"
        );
        assert_eq!(value(&results, "abort_latency_max_ms"), 0.0, "{arrivals}");
    }
}

#[test]
fn a_queued_task_that_ends_after_its_host_gave_up_is_unseen() {
    for (drain, horizon, unseen) in [
        ("none", "12s", 2.0),
        ("none", "30s", 3.0),
        ("all", "30s", 3.0),
    ] {
        let text = format!(
            r#"
        [run]
        horizon = "{horizon}"
        drain = "{drain}"
        replications = 1
        [[server]]
        name = "s"
        executes = 1
        [[tenant]]
        name = "t"
        arrivals = {{ at_once = {{ tasks = 3 }} }}
        duration = "5s"
        servers = {{ s = 1 }}
        policy = "p"
        [policy.p]
        give_up_after = "2s"
    "#
        );
        let scenario = pollpace::scenario::parse("queued", &text, &[])
            .unwrap()
            .scenario;
        assert_eq!(
            value(&run(&scenario), "tasks_unseen"),
            unseen,
            "{drain} {horizon}"
        );
    }
}

#[test]
fn a_late_timer_does_not_move_the_grid_of_a_fixed_rate() {
    let text = r#"
        [run]
        horizon = "60s"
        replications = 1
        [[server]]
        name = "s"
        [[tenant]]
        name = "t"
        arrivals = { at_once = { tasks = 1 } }
        duration = "4.5s"
        servers = { s = 1 }
        policy = "p"
        [policy.p]
        pace = "fixed_rate"
        timer = { overhead = "10ms" }
    "#;
    let scenario = pollpace::scenario::parse("grid", text, &[])
        .unwrap()
        .scenario;
    let sent: Vec<u64> = polls(&scenario).iter().map(|(sent, _, _)| *sent).collect();
    assert_eq!(sent, [1010, 2010, 3010, 4010, 5010]);
}
