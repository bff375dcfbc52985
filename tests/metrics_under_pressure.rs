//! The metrics of refusals, faults, limits, pushes and costs against numbers counted by hand: the other half of `metrics.rs`.
//!
//! One story each: a few tasks, nothing drawn, and the arithmetic beside it. What a policy sees is told by traces.

#[path = "common/metrics.rs"]
mod common;

use std::sync::atomic::AtomicBool;

use common::*;
use pollpace::engine::trace::Follow;
use pollpace::engine::{self, Outcome};
use pollpace::model::Model;

const MS: u64 = 1_000_000;

// Rate limits and `Retry-After`

/// Two requests pass in each window of 10 s: the polls at 1 and 2 s. What comes of the refusals depends on what the header says and what the host
/// makes of it; the task ends at 10 s, when the next window begins.
fn quota(retry_after: &str, host: &str) -> String {
    let server = format!(
        r#"
        limits = [{{ per = "server", quota = {{ requests = 2, length = "10s" }} }}]
        retry_after = {retry_after}
        "#
    );
    story(&server, "", host)
}

#[test]
fn a_refusal_that_says_when_to_come_again_is_obeyed() {
    // Refused at 3 s: allowed in 7 s.
    let text = quota(r#""until_allowed""#, "retry_after = { obeyed = {} }");
    assert_eq!(
        polls(&text),
        [
            (1000, Some(1000), "working", Some((1000, "default"))),
            (2000, Some(2000), "working", Some((1000, "default"))),
            (3000, Some(3000), "429", Some((7000, "retry_after"))),
            (10_000, Some(10_000), "completed", None),
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "requests_tasks_get", 4.0);
    is(&results, "fleet", "tasks_get_accepted", 3.0);
    is(&results, "fleet", "tasks_get_refused", 1.0);
    is(&results, "fleet", "tasks_get_refused_429", 1.0);
    is(&results, "fleet", "tasks_get_refused_503", 0.0);
    // Four waits: after the creation and three answers. Four answers, three of them useless.
    is(&results, "fleet", "wait_share_retry_after", 1.0 / 4.0);
    is(&results, "fleet", "useless_share", 3.0 / 4.0);
}

#[test]
fn retry_after_of_nothing_of_zero_and_of_a_century() {
    let after_refusal = |retry_after: &str, host: &str| {
        let polls = polls(&quota(retry_after, host));
        (polls[2].3, polls.len())
    };
    let century = r#"{ after = "36500d" }"#;
    // Absent: at 3, 4, … 10 s.
    let absent = after_refusal(r#""absent""#, "retry_after = { obeyed = {} }");
    assert_eq!(absent, (Some((1000, "default")), 10));
    // A floor of zero changes nothing; a wait of zero becomes the timer's minimum: 3, 3.5, … 10 s.
    let zero = r#"{ after = "0s" }"#;
    let floor = after_refusal(zero, "retry_after = { obeyed = {} }");
    assert_eq!(floor, (Some((1000, "default")), 10));
    let wait = after_refusal(
        zero,
        "retry_after = { obeyed = { role = \"wait\" } }\ntimer = { minimum = \"500ms\" }",
    );
    assert_eq!(wait, (Some((500, "retry_after")), 17));
    // A century, cut to 5 s: 3, 8, 13 s. Ignored: 3, 4, … 10 s. Under the policy's ceiling of 4 s: 3, 7, 11 s.
    let cut = after_refusal(century, "retry_after = { obeyed = { limit = \"5s\" } }");
    assert_eq!(cut, (Some((5000, "retry_after")), 5));
    let ignored = after_refusal(
        century,
        "retry_after = { obeyed = { limit = \"5s\", beyond = \"ignore\" } }",
    );
    assert_eq!(ignored, (Some((1000, "default")), 10));
    let under = after_refusal(
        century,
        "retry_after = { obeyed = { ceiling = true } }\nceiling = \"4s\"",
    );
    assert_eq!(under, (Some((4000, "retry_after")), 5));
    // Or the loop ends.
    let end = quota(
        century,
        "retry_after = { obeyed = { limit = \"5s\", beyond = \"end\" } }",
    );
    is(&run(&end), "fleet", "tasks_loop_error", 1.0);
    is(&run(&end), "fleet", "orphans", 1.0);
    is(&run(&end), "fleet", "requests_tasks_get", 3.0);
}

/// A token each 2 s, polls each 1.7 s, waits as the header says, in whole seconds: passed at 1.7, 4.4, 7.1, 9.8, 12.5 s; refused, each time 1 s
/// before, at 3.4 (the token comes at 3.7), 6.1 (6.4), 8.8 (9.1), 11.5 s (11.8).
#[test]
fn a_bucket_says_whole_seconds() {
    let text = story(
        r#"
        limits = [{ per = "tenant", bucket = { rate = "30/min" } }]
        retry_after = "until_allowed"
        "#,
        "",
        "default = \"1700ms\"\nretry_after = { obeyed = { role = \"wait\" } }",
    );
    let sent: Vec<u64> = polls(&text).iter().map(|p| p.0).collect();
    assert_eq!(
        sent,
        [1700, 3400, 4400, 6100, 7100, 8800, 9800, 11_500, 12_500]
    );
    let results = run(&text);
    is(&results, "fleet", "tasks_get_refused_429", 4.0);
    is(&results, "fleet", "tasks_get_accepted", 5.0);
    is(&results, "fleet", "wait_share_retry_after", 4.0 / 9.0);
}

/// Two tenants of two hosts each, two tasks per host: eight polls at 1 s, of which a limit of one lets pass one each.
#[test]
fn a_limit_is_kept_for_each_server_tenant_or_client() {
    for (per, passed) in [("server", 1.0), ("tenant", 2.0), ("client", 4.0)] {
        let results = run(&story(
            &format!(
                r#"limits = [{{ per = "{per}", quota = {{ requests = 1, length = "10s" }} }}]"#
            ),
            "count = 2\nhosts = 2\narrivals = { at_once = { tasks = 4 } }",
            "max_polls = 1",
        ));
        is(&results, "fleet", "tasks_get_accepted", passed);
        is(&results, "fleet", "tasks_get_refused_429", 8.0 - passed);
    }
}

// `slow_down`

#[test]
fn polls_that_come_too_soon_are_told_to_slow_down() {
    // At 1 s, sooner than 2 s after the creation: from then on 3 s more between all polls.
    let text = story(r#"minimum_gap = { gap = "2s" }"#, "", "slow_down = \"3s\"");
    assert_eq!(
        polls(&text),
        [
            (1000, Some(1000), "slow_down", Some((4000, "slow_down"))),
            (5000, Some(5000), "working", Some((4000, "slow_down"))),
            (9000, Some(9000), "working", Some((4000, "slow_down"))),
            (13_000, Some(13_000), "completed", None),
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "tasks_get_slow_down", 1.0);
    is(&results, "fleet", "tasks_get_refused", 1.0);
    is(&results, "fleet", "tasks_get_refused_429", 0.0);
    is(&results, "fleet", "wait_share_slow_down", 3.0 / 4.0);
}

#[test]
fn a_gap_counts_from_the_last_poll_and_with_the_servers_skew() {
    let sent = |gap: &str| -> Vec<(u64, &str)> {
        let text = story(&format!("minimum_gap = {gap}"), "", "slow_down = \"3s\"");
        polls(&text).iter().map(|p| (p.0, p.2)).collect()
    };
    assert_eq!(
        sent(r#"{ gap = "2s", from = "last_poll" }"#),
        [
            (1000, "working"),
            (2000, "slow_down"),
            (6000, "working"),
            (10_000, "completed")
        ]
    );
    // A gap of 2 + 3 s: 4 s after the refused poll at 2 s is too soon again, and the waits are 7 s.
    assert_eq!(
        sent(r#"{ gap = "2s", skew = "3s", from = "last_poll" }"#),
        [
            (1000, "working"),
            (2000, "slow_down"),
            (6000, "slow_down"),
            (13_000, "completed")
        ]
    );
    // A poll at the very instant is not too soon.
    assert_eq!(sent(r#"{ gap = "1s" }"#).len(), 10);
}

#[test]
fn a_slow_down_of_a_century_overflows_nothing() {
    let text = story(
        r#"minimum_gap = { gap = "36500d" }"#,
        "",
        "slow_down = \"36500d\"\nceiling = \"1s\"\nmax_polls = 9",
    );
    is(&run(&text), "fleet", "tasks_get_slow_down", 9.0);
}

// Unknown tasks

#[test]
fn a_task_beyond_its_ttl_is_unknown() {
    // The last instant of its life is just before its age is the `ttl`: the second poll is the first to be told.
    let text = story("ttl = \"2s\"", "", "");
    assert_eq!(
        polls(&text)[1],
        (2000, Some(2000), "-32602 (unknown task)", None)
    );
    let results = run(&story("ttl = \"2500ms\"", "", ""));
    is(&results, "fleet", "tasks_expired", 1.0);
    is(&results, "fleet", "tasks_get_unknown_task", 1.0);
    is(&results, "fleet", "tasks_get_accepted", 3.0);
    is(&results, "fleet", "tasks_get_refused", 0.0);
    is(&results, "fleet", "useless_share", 1.0);
    is(&results, "fleet", "orphans", 0.0);
    // Retried, at 3, 4 and 5 s, until three errors in a row are enough.
    let stubborn = "on_unknown_task = \"retry\"\nmax_errors = 3";
    let results = run(&story("ttl = \"2500ms\"", "", stubborn));
    is(&results, "fleet", "tasks_expired", 0.0);
    is(&results, "fleet", "tasks_loop_error", 1.0);
    is(&results, "fleet", "tasks_get_unknown_task", 3.0);
    is(&results, "fleet", "requests_tasks_get", 5.0);
    // Each request of a poll is answered so.
    let results = run(&story("ttl = \"2500ms\"", "", "requests_per_poll = 3"));
    is(&results, "fleet", "requests_tasks_get", 9.0);
    is(&results, "fleet", "tasks_get_unknown_task", 3.0);
}

/// Down from 1.5 to 2.5 s: the poll at 2 s is refused, the poll at 3 s meets a server that has forgotten.
#[test]
fn a_restart_forgets_the_tasks_from_before() {
    let outage =
        r#"outage = { windows = [{ from = "1500ms", length = "1s" }], forgets = FORGETS }"#;
    let text = story(&outage.replace("FORGETS", "true"), "", "");
    let told: Vec<&str> = polls(&text).iter().map(|p| p.2).collect();
    assert_eq!(told, ["working", "503 (down)", "-32602 (unknown task)"]);
    let results = run(&text);
    is(&results, "fleet", "tasks_get_refused_503", 1.0);
    is(&results, "fleet", "tasks_expired", 1.0);
    let results = run(&story(&outage.replace("FORGETS", "false"), "", ""));
    is(&results, "fleet", "tasks_completed", 1.0);
    is(&results, "fleet", "tasks_expired", 0.0);
    is(&results, "fleet", "requests_tasks_get", 10.0);
}

// Broken connections, timeouts, losses

/// Service 500 ms; down from 1.2 to 2.2 s. The poll at 1 s is in service then; the next comes as the server is up again and sees the end.
const BREAKING: &str = r#"
    tasks_get = { service = "500ms" }
    outage = { windows = [{ from = "1200ms", length = "1s" }] }
"#;

#[test]
fn a_server_that_goes_down_breaks_what_it_has() {
    let text = story(BREAKING, "duration = \"2500ms\"", "");
    assert_eq!(
        polls(&text),
        [
            (
                1000,
                Some(1200),
                "connection broken",
                Some((1000, "default"))
            ),
            (2200, Some(2700), "completed", None),
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "tasks_get_broken", 1.0);
    is(&results, "fleet", "tasks_get_accepted", 2.0);
    is(&results, "fleet", "tasks_get_seen", 2.0);
    // It has worked 200 ms on the first, 500 on the second.
    is(&results, "fleet", "utilisation", 0.7 / 20.0);
}

#[test]
fn a_server_that_goes_down_silently_leaves_a_loop_without_an_answer() {
    let silent = BREAKING.replace("] }", "], answers = \"silent\" }");
    let results = run(&story(&silent, "duration = \"2500ms\"", ""));
    is(&results, "fleet", "tasks_get_lost", 1.0);
    is(&results, "fleet", "tasks_get_unseen", 1.0);
    is(&results, "fleet", "tasks_get_broken", 0.0);
    is(&results, "fleet", "tasks_running", 1.0);
    is(&results, "fleet", "tasks_unseen", 1.0);
    is(&results, "fleet", "aborts", 0.0);
    // A timeout of 700 ms: next at 2.7 s.
    let text = story(&silent, "duration = \"2500ms\"", "timeout = \"700ms\"");
    assert_eq!(
        polls(&text),
        [
            (1000, Some(1700), "timed out", Some((1000, "default"))),
            (2700, Some(3200), "completed", None),
        ]
    );
    is(&run(&text), "fleet", "tasks_get_lost", 0.0);
    is(&run(&text), "fleet", "tasks_get_timed_out", 1.0);
}

/// A hundred milliseconds of service take ten times as long up to 2 s: the poll at 1 s would be answered at 2 s.
#[test]
fn a_late_answer_is_work_for_the_server_and_nothing_for_its_host() {
    let text = story(
        r#"
        tasks_get = { service = "100ms" }
        slow = [{ from = "0s", length = "2s", factor = 10 }]
        "#,
        "duration = \"2550ms\"",
        "timeout = \"500ms\"",
    );
    assert_eq!(
        polls(&text),
        [
            (1000, Some(1500), "timed out", Some((1000, "default"))),
            (2500, Some(2600), "completed", None),
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "tasks_get_timed_out", 1.0);
    is(&results, "fleet", "tasks_get_accepted", 2.0);
    is(&results, "fleet", "tasks_get_seen", 1.0);
    is(&results, "fleet", "tasks_get_unseen", 1.0);
    // The end came as good news only.
    is(&results, "fleet", "useless_share", 0.0);
    is(&results, "fleet", "completion_latency_mean_ms", 50.0);
    is(&results, "fleet", "utilisation", 1.1 / 20.0);
    // An answer at the very instant of the timeout is in time.
    let text = text.replace("500ms", "1s");
    assert_eq!(polls(&text)[0].2, "working");
}

#[test]
fn requests_are_lost_before_the_server_and_answers_after_it() {
    for (loss, accepted) in [("request", 0.0), ("answer", 1.0)] {
        let server = format!("loss = {{ {loss} = 1 }}");
        let results = run(&story(&server, "", ""));
        is(&results, "fleet", "requests_tasks_get", 1.0);
        is(&results, "fleet", "tasks_get_accepted", accepted);
        is(&results, "fleet", "tasks_get_lost", 1.0);
        is(&results, "fleet", "tasks_running", 1.0);
        // Given up after 500 ms each: sent at 1, 2.5, 4 s.
        let results = run(&story(&server, "", "timeout = \"500ms\"\nmax_polls = 3"));
        is(&results, "fleet", "requests_tasks_get", 3.0);
        is(&results, "fleet", "tasks_get_accepted", 3.0 * accepted);
        is(&results, "fleet", "tasks_get_timed_out", 3.0);
        is(&results, "fleet", "tasks_get_lost", 0.0);
        is(&results, "fleet", "tasks_gave_up", 1.0);
    }
}

// Retries

/// Down until 2 s. Two layers of two attempts are four requests: 1, 1.1, 1.3, 1.7 s; then the policy hears of it, waits, and polls at 2.7 s.
#[test]
fn retries_multiply_by_their_layers_and_the_policy_sees_one_failure() {
    let text = story(
        r#"outage = { windows = [{ from = "0s", length = "2s" }] }"#,
        "duration = \"2500ms\"",
        "retries = { attempts = 2, layers = 2, wait = \"100ms\" }",
    );
    let seen: Vec<(u64, Option<(u64, &str)>)> = polls(&text).iter().map(|p| (p.0, p.3)).collect();
    let told = Some((1000, "default"));
    assert_eq!(
        seen,
        [
            (1000, None),
            (1100, None),
            (1300, None),
            (1700, told),
            (2700, None)
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "requests_tasks_get", 5.0);
    is(&results, "fleet", "tasks_get_retries", 3.0);
    is(&results, "fleet", "tasks_get_refused_503", 4.0);
    is(&results, "fleet", "effective_interval_count", 2.0);
    is(&results, "fleet", "polls_per_task_mean", 5.0);
    // No wait above 150 ms: 1, 1.1, 1.25, 1.4, 2.4 s; no attempt more than the policy's one poll.
    let capped = text.replace("wait = \"100ms\"", "wait = \"100ms\", cap = \"150ms\"");
    assert_eq!(polls(&capped)[3].0, 1400);
    let once = text.replace("[policy.plain]", "[policy.plain]\nmax_polls = 1");
    is(&run(&once), "fleet", "requests_tasks_get", 4.0);
    is(&run(&once), "fleet", "tasks_gave_up", 1.0);
}

/// A silent server, a timeout of 100 ms, three attempts with 50 ms between them, and a loop that gives up at 1.3 s of age. Polls at 1.0 s,
/// 1.15 s; the second times out at 1.25 s, and a third attempt at 1.35 s (50 ms doubled) would come after the deadline.
#[test]
fn a_retry_that_would_come_after_the_deadline_is_not_sent_and_its_failure_counts_once() {
    let results = run(&story(
        r#"outage = { windows = [{ from = "0s", length = "1h" }], answers = "silent" }"#,
        "",
        r#"
        timeout = "100ms"
        retries = { attempts = 3, wait = "50ms" }
        give_up_after = "1300ms"
        "#,
    ));
    is(&results, "fleet", "requests_tasks_get", 2.0);
    is(&results, "fleet", "tasks_get_timed_out", 2.0);
    is(&results, "fleet", "tasks_get_retries", 1.0);
    is(&results, "fleet", "tasks_gave_up", 1.0);
}

/// Refused at 1 s; the retry due at 1.5 s is not sent, because the caller aborts at 1.2 s.
#[test]
fn a_retry_that_an_abort_prevents_is_not_counted() {
    let results = run(&story(
        r#"outage = { windows = [{ from = "0s", length = "2s" }] }"#,
        "abort = { after = \"1200ms\" }",
        "retries = { attempts = 2, wait = \"500ms\" }",
    ));
    is(&results, "fleet", "requests_tasks_get", 1.0);
    is(&results, "fleet", "tasks_get_retries", 0.0);
}

#[test]
fn one_poll_may_be_several_requests() {
    let results = run(&story("", "duration = \"2500ms\"", "requests_per_poll = 3"));
    is(&results, "fleet", "requests_tasks_get", 9.0);
    is(&results, "fleet", "tasks_get_accepted", 9.0);
    is(&results, "fleet", "tasks_get_seen", 9.0);
    is(&results, "fleet", "useless_share", 6.0 / 9.0);
    is(&results, "fleet", "effective_interval_count", 3.0);
    is(&results, "fleet", "tasks_get_rate_1s_peak_per_s", 3.0);
}

// Notifications

/// A task of 2.5 s; the notification of its end comes at 2.6 s. Without it the third poll would see it at 3 s.
#[test]
fn a_notification_wakes_replaces_restarts_or_postpones() {
    // Manner, polls, when the end is seen, notifications counted.
    for (push, polls, latency, notices) in [
        ("ignored", 3.0, 500.0, 0.0),
        ("wakes", 3.0, 100.0, 1.0),
        ("replaces", 2.0, 100.0, 1.0),
        ("restarts", 3.0, 1100.0, 1.0),
        ("postpones", 3.0, 1500.0, 1.0),
    ] {
        let results = run(&story(
            r#"notifications = { delay = "100ms" }"#,
            "duration = \"2500ms\"",
            &format!("push = \"{push}\""),
        ));
        is(&results, "fleet", "requests_tasks_get", polls);
        is(&results, "fleet", "completion_latency_mean_ms", latency);
        is(&results, "fleet", "notifications", notices);
        is(&results, "fleet", "tasks_completed", 1.0);
    }
}

/// A notification that restarts a loop between two retries ends the retries: the poll that follows is one of the policy's.
#[test]
fn a_notification_ends_the_retries() {
    let text = story(
        r#"
        notifications = {}
        outage = { windows = [{ from = "0s", length = "1100ms" }] }
        "#,
        "duration = \"1200ms\"",
        "push = \"restarts\"\nretries = { attempts = 2, wait = \"500ms\" }",
    );
    // Refused at 1 s; the retry due at 1.5 s gives way to a new wait from 1.2 s on.
    let results = run(&text);
    is(&results, "fleet", "requests_tasks_get", 2.0);
    is(&results, "fleet", "tasks_get_retries", 0.0);
    is(&results, "fleet", "completion_latency_mean_ms", 1000.0);
}

// Long polls

/// Polls at 1 s, held for 2 s at most; after the answer a wait of 1 s. The task ends at 4.5 s.
fn held(server: &str, policy: &str) -> String {
    story(
        server,
        "duration = \"4500ms\"",
        &format!("long_poll = \"2s\"\n{policy}"),
    )
}

#[test]
fn a_held_poll_is_answered_on_a_change_or_at_the_end_of_the_hold() {
    let text = held("", "");
    assert_eq!(
        polls(&text),
        [
            (1000, Some(3000), "working", Some((1000, "default"))),
            (4000, Some(4500), "completed", None),
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "held_connections_mean", 2.5 / 20.0);
    is(&results, "fleet", "held_connections_peak", 1.0);
    is(&results, "fleet", "completion_latency_mean_ms", 0.0);
    // Observed from 2.5 to 4.2 s: the first is still held, the second not yet let go.
    let cut = text
        .replace(
            "horizon = \"20s\"",
            "horizon = \"4200ms\"\nwarm_up = \"2500ms\"",
        )
        .replace("replications = 1", "replications = 1\ndrain = \"none\"");
    let results = run(&cut);
    is(&results, "fleet", "held_connections_mean", 0.7 / 1.7);
    is(&results, "fleet", "held_connections_peak", 1.0);
    // Between the two nothing is held.
    let results = run(&cut.replace("4200ms", "3s"));
    is(&results, "fleet", "held_connections_mean", 1.0);
    is(&results, "fleet", "held_connections_peak", 1.0);
}

#[test]
fn a_held_poll_times_out_breaks_and_is_told_of_a_task_that_is_gone() {
    let seen = |text: &str| -> Vec<(u64, Option<u64>, &str)> {
        polls(text).iter().map(|p| (p.0, p.1, p.2)).collect()
    };
    assert_eq!(
        seen(&held("", "timeout = \"1500ms\"")),
        [
            (1000, Some(2500), "timed out"),
            (3500, Some(4500), "completed")
        ]
    );
    let outage = r#"outage = { windows = [{ from = "1800ms", length = "1s" }] }"#;
    let broken = held(outage, "");
    assert_eq!(
        seen(&broken),
        [
            (1000, Some(1800), "connection broken"),
            (2800, Some(4500), "completed")
        ]
    );
    let results = run(&broken);
    is(&results, "fleet", "held_connections_mean", 2.5 / 20.0);
    is(&results, "fleet", "tasks_get_broken", 1.0);
    // Deleted at 1.5 s: the poll that is held then is told.
    let gone = held("ttl = \"1500ms\"", "");
    assert_eq!(seen(&gone), [(1000, Some(1500), "-32602 (unknown task)")]);
    is(&run(&gone), "fleet", "tasks_expired", 1.0);
}

/// Dropped by the abort at 1.2 s, while it is served (500 ms): it is not held for a host that does not wait.
#[test]
fn a_poll_that_an_abort_has_dropped_is_not_held() {
    let text = story(
        "tasks_get = { service = \"500ms\" }",
        "abort = { after = \"1200ms\" }",
        "long_poll = \"5s\"",
    );
    let results = run(&text);
    is(&results, "fleet", "held_connections_mean", 0.0);
    is(&results, "fleet", "tasks_detached", 1.0);
    is(&results, "fleet", "tasks_get_unseen", 1.0);
    let outcome = follow(&text, 1);
    assert_eq!((outcome.totals.sent, outcome.totals.dropped), (1, 1));
}

// Questions

/// The task asks at 1.5 s, is answered 700 ms after its host has seen that, and then runs 1 s more.
const ASKING: &str = r#"
    duration = "2500ms"
    input = { after = "1500ms", answer = "700ms" }
"#;

#[test]
fn a_task_that_asks_pauses_until_it_is_answered() {
    let text = story("", ASKING, "");
    let told: Vec<(u64, &str)> = polls(&text).iter().map(|p| (p.0, p.2)).collect();
    // Seen at 2 s, answered at 2.7 s, ended at 3.7 s.
    assert_eq!(
        told,
        [
            (1000, "working"),
            (2000, "input_required"),
            (3000, "working"),
            (4000, "completed")
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "tasks_asked", 1.0);
    is(&results, "fleet", "requests_tasks_update", 1.0);
    // A creation, four polls, an update.
    is(&results, "fleet", "requests", 6.0);
    is(&results, "fleet", "completion_latency_mean_ms", 300.0);
    // Both changes of the status are news: only the first poll was useless, and no poll since the last change.
    is(&results, "fleet", "useless_share", 1.0 / 4.0);
    is(&results, "fleet", "unchanged_streak_max", 0.0);
}

#[test]
fn a_task_that_asks_keeps_its_place_and_its_held_poll_is_answered() {
    // One at a time. The first ends at 3.7 s, seen at 4 s; the second runs from then, asks at 5.2 s, is answered at 6.7 s, ends at 7.7 s, seen at 8 s.
    let two = format!("{ASKING}\narrivals = {{ at_once = {{ tasks = 2 }} }}");
    let results = run(&story("executes = 1", &two, ""));
    is(&results, "fleet", "requests_tasks_get", 4.0 + 8.0);
    is(&results, "fleet", "tasks_asked", 2.0);
    is(&results, "fleet", "requests_tasks_update", 2.0);
    is(&results, "fleet", "completion_latency_mean_ms", 300.0);
    // A long poll: held until the question at 1.5 s, answered at 2.2 s, ended at 3.2 s.
    let text = story("", ASKING, "long_poll = \"2s\"");
    let told: Vec<(u64, Option<u64>, &str)> =
        polls(&text).iter().map(|p| (p.0, p.1, p.2)).collect();
    assert_eq!(
        told,
        [
            (1000, Some(1500), "input_required"),
            (2500, Some(2500), "working"),
            (3500, Some(3500), "completed")
        ]
    );
}

#[test]
fn whoever_has_given_up_on_a_task_answers_it_no_more() {
    // The question is seen at 2 s; the answer would be sent at 2.7 s.
    let early = format!("{ASKING}\nabort = {{ after = \"2300ms\" }}");
    let results = run(&story("", &early, ""));
    is(&results, "fleet", "tasks_asked", 1.0);
    is(&results, "fleet", "requests_tasks_update", 0.0);
    is(&results, "fleet", "tasks_detached", 1.0);
    // Sent before the abort, it comes to the server after it, which ends the task and takes the next.
    let two = format!(
        "{ASKING}\nabort = {{ after = \"2900ms\" }}\narrivals = {{ at_once = {{ tasks = 2 }} }}"
    );
    let text = story("executes = 1\ndelay = \"300ms\"", &two, "");
    // Polls at 1 s and 2.6 s (the question, asked at 1.5 s, is read at 2.9 s): it is not even seen.
    is(&run(&text), "fleet", "requests_tasks_update", 0.0);
}

#[test]
fn a_task_that_asks_and_is_cancelled_gives_its_place_away_once() {
    // Cancelled at 1.7 s, while it asks; the second task starts then, and is cancelled too, before it asks: no place is left over or missing.
    let text = story(
        "executes = 1",
        &format!(
            "{ASKING}\nabort = {{ after = \"1700ms\", then = \"cancel\" }}\narrivals = {{ periodic = {{ every = \"1s\", tasks = 3 }} }}"
        ),
        "",
    );
    let results = run(&text);
    is(&results, "fleet", "tasks_cancel_sent", 3.0);
    is(&results, "fleet", "requests_tasks_cancel", 3.0);
    is(&results, "fleet", "orphans", 0.0);
}

/// The server is down from 2.5 to 3.5 s: the answer at 2.7 s is refused. The poll at 3 s, too; that at 4 s sees the question again, the answer
/// of 4.7 s is taken.
#[test]
fn an_answer_that_is_refused_is_given_again_and_the_task_has_asked_once() {
    let results = run(&story(
        r#"outage = { windows = [{ from = "2500ms", length = "1s" }] }"#,
        ASKING,
        "",
    ));
    is(&results, "fleet", "requests_tasks_update", 2.0);
    is(&results, "fleet", "tasks_asked", 1.0);
    // Ended at 5.7 s, seen at 6 s.
    is(&results, "fleet", "requests_tasks_get", 6.0);
    is(&results, "fleet", "completion_latency_mean_ms", 300.0);
}

// Budgets

/// Class x has two tenants with two hosts each and two tasks per host, on a server of its own; class y one tenant of one host with four
/// tasks, on another. All twelve poll at 1 s, and each poll takes 1 s.
fn budgeted(budget: &str) -> String {
    format!(
        r#"
        [run]
        horizon = "20s"
        replications = 1
        [[server]]
        name = "sx"
        tasks_get = {{ workers = 20, service = "1s" }}
        [[server]]
        name = "sy"
        tasks_get = {{ workers = 20, service = "1s" }}
        [[tenant]]
        name = "x"
        count = 2
        hosts = 2
        arrivals = {{ at_once = {{ tasks = 4 }} }}
        duration = "1h"
        servers = {{ sx = 1 }}
        policy = "once"
        [[tenant]]
        name = "y"
        arrivals = {{ at_once = {{ tasks = 4 }} }}
        duration = "1h"
        servers = {{ sy = 1 }}
        policy = "once"
        [policy.once]
        max_polls = 1
        [budget]
        {budget}
        "#
    )
}

#[test]
fn each_budget_holds_for_what_it_names() {
    // Lines of polls, one passing each second: one line of twelve; eight and four; three of four; four of two and one of four.
    let (twelve, eight, four, two) = (66.0, 28.0, 6.0, 1.0);
    for (budget, sum, longest) in [
        ("fleet = { rate = \"1/s\" }", twelve, 11.0),
        ("server = { rate = \"1/s\" }", eight + four, 7.0),
        ("tenant = { rate = \"1/s\" }", 3.0 * four, 3.0),
        ("pollers = { server = 1 }", eight + four, 7.0),
        ("pollers = { tenant = 1 }", 3.0 * four, 3.0),
        ("pollers = { host = 1 }", 4.0 * two + four, 3.0),
        // A burst passes at once: two lines short by one and two.
        ("server = { rate = \"1/s\", burst = 2 }", 21.0 + 3.0, 6.0),
    ] {
        let results = run(&budgeted(budget));
        is(&results, "fleet", "budget_delay_count", 12.0);
        is(
            &results,
            "fleet",
            "budget_delay_mean_ms",
            sum * 1000.0 / 12.0,
        );
        is(&results, "fleet", "budget_delay_min_ms", 0.0);
        is(&results, "fleet", "budget_delay_max_ms", longest * 1000.0);
        is(&results, "fleet", "requests_tasks_get", 12.0);
        is(&results, "fleet", "budget_skipped", 0.0);
    }
    // Without a budget nothing waits for one.
    let free = run(&budgeted("").replace("[budget]", ""));
    is(&free, "fleet", "budget_delay_count", 0.0);
    assert_eq!(value(&free, "fleet", "budget_delay_mean_ms"), None);
}

/// Three polls at 1 s, one passes each second: two are left out and come again at 2 s, one at 3 s.
#[test]
fn a_poll_that_is_left_out_waits_as_long_again() {
    let text = story(
        "",
        "arrivals = { at_once = { tasks = 3 } }",
        "max_polls = 1",
    ) + "[budget]\nfleet = { rate = \"1/s\" }\nwhen_spent = \"skip\"\n";
    let results = run(&text);
    is(&results, "fleet", "budget_skipped", 3.0);
    is(&results, "fleet", "requests_tasks_get", 3.0);
    is(&results, "fleet", "budget_delay_count", 3.0);
    is(&results, "fleet", "budget_delay_max_ms", 0.0);
    // Waits that the policy chose: one per task.
    is(&results, "fleet", "effective_interval_count", 3.0);
    is(
        &results,
        "fleet",
        "active_tasks_mean",
        (1.0 + 2.0 + 3.0) / 20.0,
    );
}

/// One place. Task a polls at 1 s, to be served for 5 s, and is aborted at 1.5 s; task b's poll, which waits, is sent then.
#[test]
fn an_abort_gives_the_place_of_its_poll_back() {
    let text = |abort: &str| {
        format!(
            r#"
            run = {{ horizon = "20s", replications = 1 }}
            server = [{{ name = "store", tasks_get = {{ workers = 9, service = "5s" }} }}]
            tenant = [
              {{ name = "a", arrivals = {{ at_once = {{}} }}, duration = "1h", servers = {{ store = 1 }}, policy = "once"{abort} }},
              {{ name = "b", arrivals = {{ at_once = {{}} }}, duration = "1h", servers = {{ store = 1 }}, policy = "once" }},
            ]
            policy.once = {{ max_polls = 1 }}
            budget = {{ pollers = {{ server = 1 }} }}
            "#
        )
    };
    let results = run(&text(", abort = { after = \"1500ms\" }"));
    is(&results, "tenant.b", "budget_delay_max_ms", 500.0);
    let results = run(&text(""));
    is(&results, "tenant.b", "budget_delay_max_ms", 5000.0);
}

/// Tenants x and y have two each; x polls four times a task, y twice. By weight (1 and 2) that is 4, 4, 1, 1.
#[test]
fn fairness_is_jains_index_of_polls_by_weight() {
    let text = r#"
        run = { horizon = "20s", warm_up = "WARM", replications = 1 }
        server = [{ name = "store" }]
        tenant = [
          { name = "early", arrivals = { at_once = {} }, duration = "1h", servers = { store = 1 }, policy = "twice" },
          { name = "x", count = 2, arrivals = { at_once = { at = "5s" } }, duration = "1h", servers = { store = 1 }, policy = "four" },
          { name = "y", count = 2, weight = 2, arrivals = { at_once = { at = "5s" } }, duration = "1h", servers = { store = 1 }, policy = "twice" },
        ]
        policy.twice = { max_polls = 2 }
        policy.four = { max_polls = 4 }
    "#;
    // Without a warm-up the early one has 2.
    let results = run(&text.replace("WARM", "0s"));
    is(&results, "fleet", "fairness_jain", 144.0 / (5.0 * 38.0));
    is(&results, "tenant.x", "fairness_jain", 1.0);
    // With it, it has no task that counts.
    let results = run(&text.replace("WARM", "4s"));
    is(&results, "fleet", "fairness_jain", 100.0 / (4.0 * 34.0));
}

// Breakers

/// Down until 5.5 s; polls each second; two failures in a row open the breaker at 2 s, for 2.5 s.
fn broken(held_back: &str) -> String {
    story(
        r#"outage = { windows = [{ from = "0s", length = "5500ms" }] }"#,
        "",
        &format!(
            r#"breaker = {{ opens = {{ consecutive = 2 }}, open = "2500ms", held_back = "{held_back}" }}"#
        ),
    )
}

#[test]
fn a_breaker_makes_polls_wait_skip_or_fail() {
    // Waits: due at 3 s, sent as a probe at 4.5 s, refused; due at 5.5 s, sent at 7 s, answered; 8, 9, 10 s. Left out at 3 and 4 s: the probes are
    // those of 5 s (refused) and, after 6 and 7 s, of 8 s; 9, 10 s. A poll that fails at once is an answer, with a wait after it.
    for (held_back, sent, held, waits, open) in [
        (
            "wait",
            vec![1000, 2000, 4500, 7000, 8000, 9000, 10_000],
            2.0,
            7.0,
            5.0,
        ),
        (
            "skip",
            vec![1000, 2000, 5000, 8000, 9000, 10_000],
            4.0,
            6.0,
            6.0,
        ),
        (
            "fail",
            vec![1000, 2000, 5000, 8000, 9000, 10_000],
            4.0,
            10.0,
            6.0,
        ),
    ] {
        let text = broken(held_back);
        let told: Vec<u64> = polls(&text).iter().map(|p| p.0).collect();
        assert_eq!(told, sent, "{held_back}");
        let results = run(&text);
        is(&results, "fleet", "breaker_opened", 1.0);
        is(&results, "fleet", "breaker_probes", 2.0);
        is(&results, "fleet", "breaker_held_back", held);
        is(&results, "fleet", "breaker_open_s", open);
        is(&results, "fleet", "tasks_get_refused_503", 3.0);
        is(&results, "fleet", "effective_interval_count", waits);
    }
}

#[test]
fn a_breaker_opens_by_failures_in_a_window_or_by_their_share() {
    let opened = |outage: &str, opens: &str| {
        let results = run(&story(
            &format!("outage = {{ windows = [{outage}] }}"),
            "",
            &format!("breaker = {{ opens = {opens}, open = \"2s\" }}"),
        ));
        let of = |metric| value(&results, "fleet", metric).unwrap();
        (of("breaker_opened"), of("breaker_open_s"))
    };
    // Failures at 1 and 2 s. The first is no longer in a window of 1 s at 2 s; in one of 1.5 s it is, and a good probe at 4 s closes.
    let short = r#"{ from = "0s", length = "2500ms" }"#;
    let within = |w: &str| format!("{{ failures = {{ count = 2, within = \"{w}\" }} }}");
    assert_eq!(opened(short, &within("1s")), (0.0, 0.0));
    assert_eq!(opened(short, &within("1500ms")), (1.0, 2.0));
    // Good at 1 and 2 s, failed at 3 and 4 s: half of four.
    let later = r#"{ from = "2500ms", length = "2s" }"#;
    let share = |of: &str| format!("{{ share = {{ of = {of}, within = \"10s\", least = 4 }} }}");
    assert_eq!(opened(later, &share("0.5")), (1.0, 2.0));
    assert_eq!(opened(later, &share("0.51")), (0.0, 0.0));
}

/// Two tasks of one host, created at 0 and 0.5 s, down until 2 s: refused at 1 and 1.5 s, open until 3.5 s. The first one's probe is in service for
/// 400 ms then, and its caller aborts at 3.7 s: the second one's goes at once, and closes the breaker at 4.1 s.
#[test]
fn a_probe_that_an_abort_drops_lets_the_next_one_try() {
    let text = story(
        r#"
        tasks_get = { workers = 9, service = "400ms" }
        outage = { windows = [{ from = "0s", length = "2s" }] }
        "#,
        r#"
        arrivals = { periodic = { every = "500ms", tasks = 2 } }
        duration = "3500ms"
        abort = { after = "3700ms" }
        "#,
        r#"breaker = { opens = { consecutive = 2 }, open = "2s" }"#,
    );
    let results = run(&text);
    is(&results, "fleet", "breaker_opened", 1.0);
    is(&results, "fleet", "breaker_probes", 2.0);
    is(&results, "fleet", "breaker_open_s", 2.6);
    is(&results, "fleet", "tasks_detached", 1.0);
    is(&results, "fleet", "tasks_completed", 1.0);
    is(&results, "fleet", "requests_tasks_get", 4.0);
}

/// Probes of a server that stays down, each after a century, overflow nothing.
#[test]
fn a_breaker_that_opens_for_a_century_ends() {
    let text = broken("wait")
        .replace("5500ms", "36500d")
        .replace("\"2500ms\"", "\"36500d\"");
    is(&run(&text), "fleet", "breaker_opened", 1.0);
}

// Reconnects

#[test]
fn a_reconnect_starts_a_loop_again() {
    let tenant = |reconnect: &str| format!("duration = \"4s\"\nreconnect = {reconnect}");
    // 1, 2, 2.5, 3.5, 4.5 s.
    let text = story("", &tenant("{ at = [\"2500ms\"] }"), "");
    let sent: Vec<u64> = polls(&text).iter().map(|p| p.0).collect();
    assert_eq!(sent, [1000, 2000, 2500, 3500, 4500]);
    is(&run(&text), "fleet", "reconnects", 1.0);
    // Spread over a second.
    let spread = story("", &tenant("{ at = [\"2500ms\"], spread = \"1s\" }"), "");
    let third = polls(&spread)[2].0;
    assert!((2500..3500).contains(&third), "{third}");
    // The old loop at 1, 2, 3, 4 s beside a new one at 2.5, 3.5, 4.5 s; the task is one, and its own loop is the first.
    let double = story("", &tenant("{ at = [\"2500ms\"], duplicates = true }"), "");
    let results = run(&double);
    is(&results, "fleet", "requests_tasks_get", 7.0);
    is(&results, "fleet", "tasks", 1.0);
    is(&results, "fleet", "tasks_completed", 1.0);
    is(&results, "fleet", "polls_per_task_max", 4.0);
    is(&results, "fleet", "completion_latency_mean_ms", 0.0);
    // Each host of a tenant for itself.
    let two = tenant("{ at = [\"2500ms\", \"2600ms\"] }") + "\nhosts = 2\ncount = 3";
    is(&run(&story("", &two, "")), "fleet", "reconnects", 12.0);
}

/// The poll of 1 s is served until 2 s, and dropped at 1.5 s; that of 1.5 s is served after it, until 3 s.
#[test]
fn a_reconnect_drops_the_poll_in_flight() {
    let text = story(
        "tasks_get = { service = \"1s\" }",
        "duration = \"2500ms\"\nreconnect = { at = [\"1500ms\"] }",
        "",
    );
    assert_eq!(
        polls(&text),
        [
            (1000, None, "dropped by its host", None),
            (1500, Some(3000), "completed", None)
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "requests_tasks_get", 2.0);
    is(&results, "fleet", "tasks_get_seen", 1.0);
    is(&results, "fleet", "tasks_get_unseen", 1.0);
    is(&results, "fleet", "utilisation", 2.0 / 20.0);
}

/// The host does not hold the id before 1 s: a reconnect at 0.5 s finds no loop.
#[test]
fn a_reconnect_before_the_id_is_held_changes_nothing() {
    let text = story(
        "",
        "creation_delay = \"1s\"\nduration = \"1500ms\"\nreconnect = { at = [\"500ms\"] }",
        "",
    );
    let sent: Vec<u64> = polls(&text).iter().map(|p| p.0).collect();
    assert_eq!(sent, [2000, 3000]);
}

#[test]
fn a_doubled_loop_gives_up_and_is_cancelled_with_its_task() {
    let doubled = "reconnect = { at = [\"1500ms\"], duplicates = true }";
    // 1, 2, 3 s and 1.5, 2.5 s.
    let results = run(&story("", doubled, "give_up_after = \"3200ms\""));
    is(&results, "fleet", "requests_tasks_get", 6.0 - 1.0);
    // One cancel, one notice, for a task with a place of its own.
    let cancel = format!(
        "{doubled}\nabort = {{ after = \"2200ms\", then = \"cancel\", notifications = \"one\" }}"
    );
    let results = run(&story("executes = 1", &cancel, ""));
    is(&results, "fleet", "requests_tasks_cancel", 1.0);
    is(&results, "fleet", "requests_notifications_cancelled", 1.0);
    is(&results, "fleet", "tasks_cancel_sent", 1.0);
    // A server that takes no two polls of a task within 0.8 s meets both loops: 1 s, 1.5 s is too soon.
    let text = story(
        r#"minimum_gap = { gap = "800ms" }"#,
        doubled,
        "max_polls = 1",
    );
    is(&run(&text), "fleet", "tasks_get_slow_down", 0.0);
    let text = text.replace("max_polls = 1", "max_polls = 2");
    // 1 s; 1.5 s too soon; 2 s too soon after 1.5 s.
    is(&run(&text), "fleet", "tasks_get_slow_down", 2.0);
}

// Host loops

/// Three timers at 1 s. The wake-up takes 100 µs, each poll 300 µs, its answer included: sent at 1.0001, 1.0004, 1.0007 s, seen 300 µs after; done
/// at 1.001 s.
#[test]
fn a_host_runs_what_is_due_as_one_batch() {
    let text = story(
        "",
        r#"
        arrivals = { at_once = { tasks = 3 } }
        duration = "500ms"
        host_loop = { wake_up = "100us", poll = "300us" }
        "#,
        "",
    );
    let times = |text: &str| -> Vec<(u64, Option<u64>)> {
        let all = (1..=3).flat_map(|n| follow(text, n).story.unwrap().rows);
        let polls = all.filter_map(|row| row.poll);
        polls
            .map(|p| (p.sent / 1000, p.seen.map(|s| s / 1000)))
            .collect()
    };
    assert_eq!(
        times(&text),
        [
            (1_000_100, Some(1_000_400)),
            (1_000_400, Some(1_000_700)),
            (1_000_700, Some(1_001_000))
        ]
    );
    let results = run(&text);
    is(&results, "fleet", "host_wake_ups", 1.0);
    is(&results, "fleet", "host_utilisation", 0.001 / 20.0);
    is(&results, "tenant.agents", "host_utilisation", 0.001 / 20.0);
    assert_eq!(value(&results, "server.store", "host_wake_ups"), None);
    // Answers that take 200 µs come while the host is busy, and are read after the batch.
    let late = text.replace("name = \"store\"", "name = \"store\"\ndelay = \"100us\"");
    let seen: Vec<Option<u64>> = times(&late).iter().map(|t| t.1).collect();
    assert_eq!(seen, [Some(1_001_000); 3]);
    // A second host takes the second task.
    let two = run(&text.replace("host_loop", "hosts = 2\nhost_loop"));
    is(&two, "fleet", "host_wake_ups", 2.0);
    is(&two, "fleet", "host_utilisation", (0.0007 + 0.0004) / 40.0);
}

/// Tasks are due at 1 s and at 1.0005 s. The first batch (100 + 300 µs) ends at 1.0004 s; the next wake-up comes 1 ms later.
#[test]
fn a_host_pauses_after_a_batch() {
    let text = story(
        "",
        r#"
        arrivals = { periodic = { every = "500us", tasks = 2 } }
        duration = "500ms"
        host_loop = { wake_up = "100us", poll = "300us" }
        "#,
        "",
    );
    let rows = follow(&text, 2).story.unwrap().rows;
    let sent: Vec<u64> = rows
        .iter()
        .filter_map(|r| Some(r.poll.as_ref()?.sent / 1000))
        .collect();
    assert_eq!(sent, [1_001_500]);
    is(&run(&text), "fleet", "host_wake_ups", 2.0);
}

// Cancels and notices

/// 200 ms each way; aborted at 1.5 s, between two polls. The cancel comes at 1.7 s, its answer at 1.9 s.
#[test]
fn a_caller_waits_for_the_answer_to_its_cancel_or_for_the_bound() {
    let outage = r#"outage = { windows = [{ from = "1600ms", length = "1s" }] }"#;
    let silent = outage.replace("] }", "], answers = \"silent\" }");
    for (server, bound, latency, orphans) in [
        ("", "", 0.0, 0.0),
        ("", ", cancel_bound = \"1s\"", 400.0, 0.0),
        ("", ", cancel_bound = \"300ms\"", 300.0, 0.0),
        (outage, ", cancel_bound = \"1s\"", 400.0, 1.0),
        (&silent, ", cancel_bound = \"1s\"", 1000.0, 1.0),
    ] {
        let server = format!("delay = \"200ms\"\n{server}");
        let abort = format!("abort = {{ after = \"1500ms\", then = \"cancel\"{bound} }}");
        let timeout = if server.contains("silent") {
            "timeout = \"10s\""
        } else {
            ""
        };
        let results = run(&story(&server, &abort, timeout));
        is(&results, "fleet", "abort_latency_mean_ms", latency);
        is(&results, "fleet", "orphans", orphans);
        is(&results, "fleet", "tasks_cancel_sent", 1.0);
        is(&results, "fleet", "requests_tasks_cancel", 1.0);
    }
}

#[test]
fn an_abort_notifies_once_or_once_per_request() {
    // A creation and the polls of 1 and 2 s before it.
    for (notices, n) in [("none", 0.0), ("one", 1.0), ("per_request", 3.0)] {
        let abort = format!(
            "abort = {{ after = \"2500ms\", then = \"forget\", notifications = \"{notices}\" }}"
        );
        let results = run(&story("", &abort, ""));
        is(&results, "fleet", "requests_notifications_cancelled", n);
        is(&results, "fleet", "requests", 3.0 + n);
        is(&results, "fleet", "tasks_forgotten", 1.0);
        is(&results, "fleet", "tasks_detached", 0.0);
        is(&results, "fleet", "orphans", 1.0);
    }
}

// Loops on the server, and what polling costs

/// Reads at 1, 2, … 10 s. The caller aborts at 2.5 s and has control at once; the loop runs on for 7.5 s and reads eight times more.
#[test]
fn a_loop_on_the_server_reads_its_store_and_leaks() {
    let results = run(&story(
        "delay = \"100ms\"",
        "abort = { after = \"2500ms\" }\ncost = { request = 1, poll_tokens = 7 }",
        "runs = \"on_server\"\nwait = \"ignored\"",
    ));
    is(&results, "fleet", "store_reads", 10.0);
    is(&results, "fleet", "store_reads_leaked", 8.0);
    is(&results, "fleet", "store_read_rate_mean_per_s", 10.0 / 20.0);
    is(&results, "fleet", "leaked_loops_mean", 7.5 / 20.0);
    is(&results, "fleet", "abort_latency_mean_ms", 0.0);
    is(&results, "fleet", "requests_tasks_get", 0.0);
    is(&results, "fleet", "leaked_polls", 0.0);
    // The end has still to come to the host.
    is(&results, "fleet", "completion_latency_mean_ms", 100.0);
    // One request, the creation; a read is no poll of a model.
    is(&results, "fleet", "cost", 1.0);
    is(&results, "fleet", "tokens", 0.0);
}

#[test]
fn requests_and_tokens_have_their_price() {
    // Ten polls of 100 tokens, eleven requests.
    let cost = "cost = { request = 0.5, poll_tokens = 100, token = 0.01 }";
    let results = run(&story("", cost, ""));
    is(&results, "fleet", "tokens", 1000.0);
    is(&results, "fleet", "cost", 11.0 * 0.5 + 1000.0 * 0.01);
    is(&results, "server.store", "cost", 15.5);
    is(&run(&story("", "", "")), "fleet", "cost", 0.0);
}

// Helpers

/// One task of 10 s of one tenant `agents` on one server `store`, polled each second unless the policy says otherwise.
fn story(server: &str, tenant: &str, policy: &str) -> String {
    let text = format!(
        r#"
        [run]
        horizon = "20s"
        replications = 1
        [[server]]
        name = "store"
        {server}
        [[tenant]]
        name = "agents"
        arrivals = {{ at_once = {{}} }}
        duration = "10s"
        servers = {{ store = 1 }}
        policy = "plain"
        {tenant}
        [policy.plain]
        {policy}
        "#
    );
    // What a story says itself takes the place of what is the same in most.
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let key = line.split(" = ").next().unwrap_or_default().trim();
        let own = ["arrivals", "duration"].contains(&key);
        if own {
            lines.retain(|l| l.split(" = ").next().unwrap_or_default().trim() != key);
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// The run with the story of the tenant class's task number `number`, from 1.
fn follow(text: &str, number: u64) -> Outcome {
    let follow = Follow {
        tenant: Some(0),
        number,
    };
    let model = Model::new(&parse(text));
    engine::run(&model, 0, Some(follow), &AtomicBool::new(false)).unwrap()
}

/// A poll as its host saw it: sent and seen in ms, the status, and the wait in ms that followed with its cause.
type Poll = (u64, Option<u64>, &'static str, Option<(u64, &'static str)>);

/// The polls in the story of the first task.
fn polls(text: &str) -> Vec<Poll> {
    let rows = follow(text, 1).story.unwrap().rows;
    let polls = rows
        .iter()
        .filter_map(|row| Some((row.poll.as_ref()?, &row.wait)));
    polls
        .map(|(p, wait)| {
            let wait = wait
                .as_ref()
                .map(|w| (w.wait.wait / MS, w.wait.cause.name()));
            (p.sent / MS, p.seen.map(|seen| seen / MS), p.status, wait)
        })
        .collect()
}
