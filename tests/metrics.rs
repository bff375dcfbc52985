//! Every metric and every alert against numbers counted by hand.
//!
//! The fleets are small and nothing in them is drawn, so that each count follows from a few lines of arithmetic, which stand beside it.
//! Where two metrics could be taken for each other (accepted and refused, 1 s and 100 ms windows, floor and ceiling), the
//! fleet gives them different values: values swapped between names cannot pass.

#[path = "common/metrics.rs"]
mod common;

use common::*;
use pollpace::catalogue::{DISTRIBUTIONS, SCALARS};
use pollpace::experiment::Results;

// What is observed

/// Round trip 50 + 20 + 50 = 120 ms and a hint of 380 ms: a poll every 500 ms. Tasks of 2.5 s are created at 1, 5 and 9 s, their ends
/// (3.5, 7.5, 11.5 s) are read by the sixth poll at 2.95 s of age and seen at 3 s of age.
const WARM_UP: &str = r#"
    run = { horizon = "10s", warm_up = "2s", replications = 1 }
    server = [{ name = "store", hint = 380, delay = "50ms", tasks_get = { service = "20ms" } }]
    tenant = [{ name = "agents", arrivals = { periodic = { every = "4s", phase = "1s" } }, duration = "2.5s", servers = { store = 1 }, policy = "plain" }]
    [policy.plain]
"#;

#[test]
fn the_warm_up_and_the_horizon_cut_what_is_observed_never_the_state() {
    let results = run(WARM_UP);
    for group in ["fleet", "tenant.agents", "server.store"] {
        // Sent in [2, 10): 2.38, 2.88, 3.38, 3.88 of the first task, all six of the second, 9.38 and 9.88 of the third.
        is(&results, group, "requests_tasks_get", 12.0);
        is(&results, group, "tasks_get_rate_mean_per_s", 12.0 / 8.0);
        is(&results, group, "tasks_get_accepted", 12.0);
        // The answer to 9.88 is seen at the horizon, and it is seen.
        is(&results, group, "tasks_get_seen", 12.0);
        is(&results, group, "useless_share", 10.0 / 12.0);
        // Creations at 5 and 9 s.
        is(&results, group, "requests_tools_call", 2.0);
        is(&results, group, "requests", 14.0);
        is(&results, group, "tasks", 2.0);
        is(&results, group, "tasks_completed", 2.0);
        // Two creations and the ten answers that were not the end.
        is(&results, group, "hints_sane", 12.0);
        // The first task is active in [2, 4), the second in [5, 8), the third in [9, 10).
        is(&results, group, "active_tasks_mean", 6.0 / 8.0);
        is(&results, group, "polls_per_active_task_per_s", 12.0 / 6.0);
        // The wait chosen at 2 s counts, the one chosen at 10 s does not: 4 + 6 + 2.
        all_alike(&results, group, "effective_interval", "_ms", 12, 380.0);
        // Gaps by their later send: all of the twelve but those at 5.38 and 9.38, the first of their tasks.
        all_alike(&results, group, "gap", "_ms", 10, 500.0);
        // Tasks created in [2, 10) are followed to their end, the third beyond the horizon.
        all_alike(&results, group, "polls_per_task", "", 2, 6.0);
        all_alike(&results, group, "unchanged_streak", "", 2, 5.0);
        all_alike(&results, group, "completion_latency", "_ms", 2, 500.0);
        all_alike(&results, group, "store_service", "_ms", 12, 20.0);
    }
    is(&results, "server.store", "utilisation", 12.0 * 0.020 / 8.0);
    undefined(&results, "tenant.agents", "utilisation");
}

#[test]
fn requests_are_observed_when_they_are_sent_and_tasks_when_they_are_held() {
    // Asked for at 1, 5 and 9 s, held at 6.5, 10.5 and 14.5 s.
    let results = run(&WARM_UP.replace("policy = ", "creation_delay = \"5500ms\", policy = "));
    is(&results, "fleet", "requests_tools_call", 2.0);
    is(&results, "fleet", "tasks", 1.0);
    // All tasks were created before the warm-up's end. The patient cancel at 1.6 s, the sleeper at 3 s; the hasty one's dropped poll was
    // sent at 1 s, the late ones' are sent at 10.3 s.
    let results = run(&ENDS.replace("run = {", "run = { warm_up = \"2s\","));
    is(&results, "fleet", "tasks_cancel_sent", 0.0);
    is(&results, "fleet", "requests_tasks_cancel", 1.0);
    is(&results, "fleet", "tasks_get_unseen", 2.0);
}

#[test]
fn the_statistics_of_a_distribution_are_nearest_ranks() {
    // 200 polls at one instant before one worker of 1 ms: waits of 0, 1, … 199 ms, ends seen after 1, 2, … 200 ms.
    let results = run(&hinted_scenario(200, "value = 250").replace(
        "name = \"store\",",
        "name = \"store\", tasks_get = { service = \"1ms\" },",
    ));
    for (name, first) in [("store_wait", 0.0), ("completion_latency", 1.0)] {
        near(&results, "fleet", &format!("{name}_p90_ms"), first + 179.0);
        near(&results, "fleet", &format!("{name}_p95_ms"), first + 189.0);
        spread(
            &results,
            "fleet",
            name,
            "_ms",
            200,
            first + 99.5,
            [first + 99.0, first + 197.0, first, first + 199.0],
        );
    }
}

// Rates

/// Tasks without a duration, polled at once: one poll each, at the instant of its creation.
const RATES: &str = r#"
    run = { horizon = "2100s", warm_up = "100s", replications = 1 }
    server = [{ name = "store" }]
    tenant = [
      { name = "steady", arrivals = { periodic = { every = "1s" } }, duration = "0s", servers = { store = 1 }, policy = "once" },
      { name = "pairs", count = 2, arrivals = { periodic = { every = "10s" } }, duration = "0s", servers = { store = 1 }, policy = "once" },
      { name = "fives", count = 5, arrivals = { periodic = { every = "500s", phase = "100.35s" } }, duration = "0s", servers = { store = 1 }, policy = "once" },
      { name = "dozen", arrivals = { at_once = { tasks = 12, at = "1005.72s" } }, duration = "0s", servers = { store = 1 }, policy = "once" },
    ]
    [policy.once]
    first_poll = "at_once"
"#;

#[test]
fn rates_are_those_of_windows_of_one_second_and_of_a_tenth() {
    let results = run(RATES);
    let sent = 2000.0 + 400.0 + 20.0 + 12.0;
    is(&results, "fleet", "requests_tasks_get", sent);
    is(
        &results,
        "fleet",
        "tasks_get_rate_mean_per_s",
        sent / 2000.0,
    );
    // 2,000 windows of 1 s: one of 1 + 12 polls, four of 1 + 2 + 5, 196 of 1 + 2, 1,799 of 1. Ranks 1,900, 1,998 and 2,000.
    is(&results, "fleet", "tasks_get_rate_1s_p95_per_s", 3.0);
    is(&results, "fleet", "tasks_get_rate_1s_p999_per_s", 8.0);
    is(&results, "fleet", "tasks_get_rate_1s_peak_per_s", 13.0);
    // 20,000 windows of 100 ms: one of 12 polls, four of 5, 200 of 1 + 2, 1,800 of 1, the rest empty. Ranks 19,000, 19,980 and 20,000.
    is(&results, "fleet", "tasks_get_rate_100ms_p95_per_s", 10.0);
    is(&results, "fleet", "tasks_get_rate_100ms_p999_per_s", 30.0);
    is(&results, "fleet", "tasks_get_rate_100ms_peak_per_s", 120.0);
    // Sums of squares of the same counts.
    let dispersion = |windows: f64, squares: f64| {
        let mean = sent / windows;
        (squares - windows * mean * mean) / (windows - 1.0) / mean
    };
    let second = dispersion(2000.0, 169.0 + 4.0 * 64.0 + 196.0 * 9.0 + 1799.0);
    is(&results, "fleet", "tasks_get_rate_1s_dispersion", second);
    let tenth = dispersion(20_000.0, 144.0 + 4.0 * 25.0 + 200.0 * 9.0 + 1800.0);
    is(&results, "fleet", "tasks_get_rate_100ms_dispersion", tenth);
    // A tenant class has its own polls only; what never happened is undefined, not zero.
    is(
        &results,
        "tenant.dozen",
        "tasks_get_rate_1s_peak_per_s",
        12.0,
    );
    is(
        &results,
        "tenant.fives",
        "tasks_get_rate_1s_peak_per_s",
        5.0,
    );
    undefined(&results, "fleet", "gap_mean_ms");
    undefined(&results, "fleet", "wait_share_hint");
    undefined(&results, "fleet", "polls_per_active_task_per_s");
}

// The task store

/// One worker of 100 ms with room for two, 10 ms each way, a hint of 400 ms; a refused host waits 700 ms. In ms:
///
/// * five clerks' tasks of 250 poll at 0: served 10-110, 110-210, 210-310 (the third sees its end at 320), the fourth and fifth refused and told so at 20;
/// * the first polls again at 520, served 530-630, seen 640; the second at 620, served 630-730, seen 740;
/// * the fourth and fifth poll at 720 and come at 730, when the first's `tasks/result` (come at 650) has just left the queue for service
///   730-830: served 830-930 and 930-1030, seen 940 and 1040;
/// * results: the third's is sent at 320, served 330-430, held at 440; the first's held at 840; the second's comes at 750, finds two waiting
///   and is refused; the fourth's comes at 950, served 1030-1130, held at 1140; the fifth's comes at 1050, served 1130-1230, held at 1240;
/// * at 2000 a task of 150 that will fail polls, served 2010-2110, and again at 2520, served 2530-2630, seen 2640; a failed task has no result to fetch.
const STORE: &str = r#"
    run = { horizon = "10s", replications = 1 }
    server = [{ name = "counter", hint = 400, delay = "10ms", tasks_get = { service = "100ms", queue = 2 } }]
    tenant = [
      { name = "clerks", arrivals = { at_once = { tasks = 5 } }, duration = "250ms", servers = { counter = 1 }, policy = "fetching" },
      { name = "unlucky", arrivals = { at_once = { at = "2s" } }, duration = "150ms", servers = { counter = 1 }, policy = "fetching", ends = { completed = 0, failed = 1 } },
    ]
    [policy.fetching]
    first_poll = "at_once"
    error_backoff = { initial = "700ms" }
    at_end = "tasks/result"
"#;

#[test]
fn a_store_with_a_full_queue_refuses_polls_and_results() {
    let results = run(STORE);
    for group in ["fleet", "server.counter"] {
        is(&results, group, "requests_tools_call", 6.0);
        is(&results, group, "requests_tasks_get", 11.0);
        is(&results, group, "requests_tasks_result", 5.0);
        is(&results, group, "requests_tasks_cancel", 0.0);
        is(&results, group, "requests", 22.0);
        is(&results, group, "tasks_get_accepted", 9.0);
        is(&results, group, "tasks_get_refused", 2.0);
        is(&results, group, "tasks_get_seen", 11.0);
        is(&results, group, "tasks_get_unseen", 0.0);
        // `working` to the first, the second and the unlucky; two refusals.
        is(&results, group, "useless_share", 5.0 / 11.0);
        is(&results, group, "wait_share_hint", 3.0 / 5.0);
        is(&results, group, "wait_share_error_backoff", 2.0 / 5.0);
        is(&results, group, "tasks_completed", 5.0);
        is(&results, group, "tasks_failed", 1.0);
        is(&results, group, "tasks_detected_share", 1.0);
        // 640 + 740 + 320 + 940 + 1040 + 640.
        is(&results, group, "active_tasks_mean", 4.320 / 10.0);
        is(&results, group, "polls_per_active_task_per_s", 11.0 / 4.320);
        // Nine polls and four results of 100 ms.
        is(&results, group, "utilisation", 1.300 / 10.0);
        // Polls 100 + 200 + 100 + 200, results 80 + 80 + 80: those of the polls' queueing are not the whole queue.
        is(&results, group, "queue_length_time_mean", 0.840 / 10.0);
        spread(
            &results,
            group,
            "store_wait",
            "_ms",
            9,
            600.0 / 9.0,
            [0.0, 200.0, 0.0, 200.0],
        );
        all_alike(&results, group, "store_service", "_ms", 9, 100.0);
        spread(
            &results,
            group,
            "store_latency",
            "_ms",
            9,
            1500.0 / 9.0,
            [100.0, 300.0, 100.0, 300.0],
        );
        // 520, 620, 720, 720 and 520.
        spread(
            &results,
            group,
            "gap",
            "_ms",
            5,
            620.0,
            [620.0, 720.0, 520.0, 720.0],
        );
        spread(
            &results,
            group,
            "effective_interval",
            "_ms",
            5,
            520.0,
            [400.0, 700.0, 400.0, 700.0],
        );
        spread(
            &results,
            group,
            "polls_per_task",
            "",
            6,
            11.0 / 6.0,
            [2.0, 2.0, 1.0, 2.0],
        );
        spread(
            &results,
            group,
            "unchanged_streak",
            "",
            6,
            // Three saw the status as it was, two a refusal, one neither.
            5.0 / 6.0,
            [1.0, 1.0, 0.0, 1.0],
        );
        // 390, 490, 70, 690, 790 and 490.
        spread(
            &results,
            group,
            "completion_latency",
            "_ms",
            6,
            2920.0 / 6.0,
            [490.0, 790.0, 70.0, 790.0],
        );
        // 590, none, 190, 890, 990; the failed task's is its terminal answer: 490. The one that was refused is longer than any.
        is(&results, group, "result_latency_count", 5.0);
        near(&results, group, "result_latency_mean_ms", 630.0);
        near(&results, group, "result_latency_p50_ms", 590.0);
        is(&results, group, "result_latency_min_ms", 190.0);
        undefined(&results, group, "result_latency_p99_ms");
        undefined(&results, group, "result_latency_max_ms");
    }
    is(&results, "tenant.clerks", "requests_tasks_get", 9.0);
    is(&results, "tenant.clerks", "tasks_get_accepted", 7.0);
    is(&results, "tenant.unlucky", "tasks_get_refused", 0.0);
    is(&results, "tenant.unlucky", "tasks_failed", 1.0);
    is(&results, "tenant.unlucky", "tasks_completed", 0.0);
    is(&results, "tenant.unlucky", "requests_tasks_result", 0.0);
    all_alike(
        &results,
        "tenant.unlucky",
        "result_latency",
        "_ms",
        1,
        490.0,
    );
}

/// Five polls at one instant before one worker without a limit: they find 0, 0, 1, 2, 3 waiting.
#[test]
fn a_poll_finds_those_that_wait_not_the_one_in_service() {
    let results = run(&STORE
        .replace(", queue = 2", "")
        .replace("at_end = \"tasks/result\"", ""));
    // The clerks' first polls are served until 510, the first two are due again at 520 and 620: these and the unlucky's find none.
    is(&results, "tenant.clerks", "tasks_get_refused", 0.0);
    spread(
        &results,
        "tenant.clerks",
        "queue_length",
        "",
        7,
        6.0 / 7.0,
        [0.0, 3.0, 0.0, 3.0],
    );
    all_alike(&results, "tenant.unlucky", "queue_length", "", 2, 0.0);
}

// How loops end

/// Every tenant's tasks are created at 0 and polled each second, unless its policy says otherwise; the run stops at 10.5 s.
/// Aborts are at an age of 2.3 s, so during the third wait. `far` is 300 ms away: its polls at 1 s are in flight from 1 to 1.6 s.
const ENDS: &str = r#"
    run = { horizon = "10.5s", drain = "none", replications = 1 }
    server = [{ name = "near" }, { name = "far", delay = "300ms" }]
    tenant = [
      { name = "interrupted", arrivals = { at_once = { tasks = 3 } }, duration = "20s", servers = { near = 1 }, policy = "plain", abort = { after = "2.3s" } },
      { name = "sleeper", arrivals = { at_once = {} }, duration = "20s", servers = { near = 1 }, policy = "sleeping", abort = { after = "2.3s", then = "cancel" } },
      { name = "slicer", arrivals = { at_once = {} }, duration = "20s", servers = { near = 1 }, policy = "slicing", abort = { after = "2.3s" } },
      { name = "stubborn", arrivals = { at_once = {} }, duration = "5.5s", servers = { near = 1 }, policy = "ignoring", abort = { after = "2.3s" } },
      { name = "lingering", arrivals = { at_once = {} }, duration = "20s", servers = { near = 1 }, policy = "ignoring", abort = { after = "2.3s" } },
      { name = "waiting", arrivals = { at_once = {} }, duration = "10.2s", servers = { near = 1 }, policy = "plain" },
      { name = "resigned", arrivals = { at_once = { tasks = 12 } }, duration = "5s", servers = { near = 1 }, policy = "thrice" },
      { name = "broken", arrivals = { at_once = { tasks = 6 } }, duration = "20s", servers = { near = 1 }, policy = "strict" },
      { name = "eternal", arrivals = { at_once = { tasks = 7 } }, duration = "20s", servers = { near = 1 }, policy = "frozen" },
      { name = "failing", arrivals = { at_once = { tasks = 8 } }, duration = "500ms", servers = { near = 1 }, policy = "plain", ends = { completed = 0, failed = 1 } },
      { name = "withdrawn", arrivals = { at_once = { tasks = 9 } }, duration = "800ms", servers = { near = 1 }, policy = "plain", ends = { completed = 0, cancelled = 1 } },
      { name = "diligent", arrivals = { at_once = { tasks = 10 } }, duration = "900ms", servers = { near = 1 }, policy = "plain" },
      { name = "hasty", arrivals = { at_once = {} }, duration = "20s", servers = { far = 1 }, policy = "plain", abort = { after = "1.4s" } },
      { name = "patient", arrivals = { at_once = { tasks = 2 } }, duration = "20s", servers = { far = 1 }, policy = "plain", abort = { after = "1.4s", request = "waits", then = "cancel" } },
      { name = "late", arrivals = { at_once = { tasks = 2 } }, duration = "20s", servers = { far = 1 }, policy = "tardy" },
    ]
    [policy.plain]
    [policy.sleeping]
    wait = "checked_after_sleep"
    [policy.slicing]
    wait = { sliced = "250ms" }
    [policy.ignoring]
    wait = "ignored"
    [policy.thrice]
    max_polls = 3
    [policy.strict]
    rules = [{ class = "absent", then = "error" }]
    [policy.frozen]
    first_poll = "at_once"
    rules = [{ class = "absent", then = "forever" }]
    [policy.tardy]
    first_poll = { after = "10.3s" }
"#;

#[test]
fn every_loop_ends_in_one_of_nine_ways() {
    let results = run(ENDS);
    let fleet = |metric: &str, expected: f64| is(&results, "fleet", metric, expected);
    fleet("tasks", 65.0);
    // Ten diligent and the stubborn one, which nobody could stop.
    fleet("tasks_completed", 11.0);
    fleet("tasks_failed", 8.0);
    fleet("tasks_cancelled", 9.0);
    // Interrupted (3), slicer, hasty.
    fleet("tasks_detached", 5.0);
    // Sleeper, patient (2).
    fleet("tasks_cancel_sent", 3.0);
    fleet("requests_tasks_cancel", 3.0);
    fleet("tasks_gave_up", 12.0);
    fleet("tasks_loop_error", 6.0);
    fleet("tasks_never_polled_again", 7.0);
    // Lingering, waiting, late (2).
    fleet("tasks_running", 4.0);
    // Those that gave up on a task that ended at 5 s, and the waiting one's, which ended at 10.2 s between two polls.
    fleet("tasks_unseen", 13.0);
    // Without the eight that were aborted and left.
    fleet("tasks_detected_share", 28.0 / 57.0);
    is(&results, "tenant.waiting", "tasks_unseen", 1.0);
    is(&results, "tenant.withdrawn", "tasks_cancelled", 9.0);
    is(&results, "tenant.late", "tasks_running", 2.0);
    is(&results, "server.far", "tasks_detached", 1.0);
    is(&results, "server.far", "tasks_cancel_sent", 2.0);
    // Ends seen: 9 after 500 ms (the failing and the stubborn), 9 after 200, 10 after 100; 13 unseen are longer than any.
    fleet("completion_latency_count", 28.0);
    near(
        &results,
        "fleet",
        "completion_latency_mean_ms",
        7300.0 / 28.0,
    );
    near(&results, "fleet", "completion_latency_p50_ms", 500.0);
    fleet("completion_latency_min_ms", 100.0);
    undefined(&results, "fleet", "completion_latency_p99_ms");
    undefined(&results, "fleet", "completion_latency_max_ms");
}

#[test]
fn polls_are_sent_accepted_seen_or_dropped() {
    let results = run(ENDS);
    let fleet = |metric: &str, expected: f64| is(&results, "fleet", metric, expected);
    // In the order of the tenants: 6 + 2 + 2 + 6 + 10 + 10 + 36 + 0 + 7 + 8 + 9 + 10 + 1 + 2 + 2.
    fleet("requests_tasks_get", 111.0);
    fleet("requests_tools_call", 65.0);
    fleet("requests_tasks_result", 0.0);
    fleet("requests", 65.0 + 111.0 + 3.0);
    // The two late ones are still on their way to the server at the end.
    fleet("tasks_get_accepted", 109.0);
    fleet("tasks_get_refused", 0.0);
    // Nor is the answer to the hasty one seen: its request was dropped.
    fleet("tasks_get_seen", 108.0);
    fleet("tasks_get_unseen", 3.0);
    fleet("useless_share", 80.0 / 108.0);
    // 65 creations and 80 answers.
    fleet("hints_absent", 145.0);
    // Created but for the broken (6) and the eternal (7), whose first poll is no wait: 52. Then 80 answers but for the third of those who
    // give up (12) and the one that the patient had waited for (2): 66.
    // The eternal seven wait without end, which is no interval.
    fleet("effective_interval_count", 111.0);
    fleet("wait_share_first_poll", 2.0 / 118.0);
    fleet("effective_interval_min_ms", 1000.0);
    all_alike(&results, "fleet", "gap", "_ms", 52, 1000.0);
    // 6.9 + 3 + 2.5 + 6 + 10.5 + 10.5 + 36 + 0 + 73.5 + 8 + 9 + 10 + 1.4 + 3.2 + 21 task-seconds.
    near(&results, "fleet", "active_tasks_mean", 201.5 / 10.5);
    near(
        &results,
        "fleet",
        "polls_per_active_task_per_s",
        111.0 / 201.5,
    );
    all_alike(&results, "tenant.resigned", "polls_per_task", "", 12, 3.0);
}

#[test]
fn aborts_settle_by_the_manner_of_the_wait_and_leak_what_is_sent_after() {
    let results = run(ENDS);
    let latency = |tenant: &str, n, ms| all_alike(&results, tenant, "abort_latency", "_ms", n, ms);
    latency("tenant.interrupted", 3, 0.0);
    latency("tenant.sleeper", 1, 700.0);
    latency("tenant.slicer", 1, 200.0);
    // It polls on at 3, 4, 5 and sees the end at 6 s.
    latency("tenant.stubborn", 1, 3700.0);
    latency("tenant.hasty", 1, 0.0);
    latency("tenant.patient", 2, 200.0);
    is(&results, "fleet", "aborts", 10.0);
    is(&results, "fleet", "aborts_unsettled", 1.0);
    is(&results, "tenant.lingering", "aborts_unsettled", 1.0);
    // Ten aborts, one of them without an end: 0 four times, 200 three times, 700, 3700, and longer than any.
    is(&results, "fleet", "abort_latency_count", 9.0);
    near(&results, "fleet", "abort_latency_mean_ms", 5000.0 / 9.0);
    near(&results, "fleet", "abort_latency_p50_ms", 200.0);
    is(&results, "fleet", "abort_latency_min_ms", 0.0);
    undefined(&results, "fleet", "abort_latency_p99_ms");
    undefined(&results, "fleet", "abort_latency_max_ms");
    // The stubborn one's at 3, 4, 5, 6 s, the lingering one's from 3 to 10 s.
    is(&results, "fleet", "leaked_polls", 12.0);
    is(&results, "tenant.stubborn", "leaked_polls", 4.0);
    spread(
        &results,
        "fleet",
        "leaked_polls_per_abort",
        "",
        10,
        1.2,
        [0.0, 8.0, 0.0, 8.0],
    );
}

// Hints

/// Hints by class, as on the wire; the nth class is sent to n tasks.
const HINTS: [(&str, &str); 10] = [
    ("hints_absent", "absent = true"),
    ("hints_null", "null = true"),
    ("hints_zero", "value = 0"),
    ("hints_negative", "value = -5"),
    ("hints_fractional", "value = 0.5"),
    ("hints_non_finite", "value = nan"),
    ("hints_text", "value = \"soon\""),
    ("hints_beyond_i32_ms", "value = 2147483648"),
    ("hints_beyond_i64_ns", "value = 1e15"),
    ("hints_sane", "value = 250"),
];

/// Tasks of no duration that are polled at once: their creation carries a hint, the terminal answer none.
fn hinted_scenario(tasks: usize, wire: &str) -> String {
    format!(
        r#"
        run = {{ horizon = "10s", replications = 1 }}
        server = [{{ name = "store", hint = "wire" }}]
        tenant = [{{ name = "agents", arrivals = {{ at_once = {{ tasks = {tasks} }} }}, duration = "0s", servers = {{ store = 1 }}, policy = "once" }}]
        hint.wire = {{ mix = [{{ {wire} }}] }}
        policy.once = {{ first_poll = "at_once" }}
        "#
    )
}

fn hinted(tasks: usize, wire: &str) -> Results {
    run(&hinted_scenario(tasks, wire))
}

#[test]
fn each_hint_is_counted_in_its_class_and_in_no_other() {
    for (n, (metric, wire)) in HINTS.iter().enumerate() {
        let results = hinted(n + 1, wire);
        for (other, _) in HINTS {
            let expected = if other == *metric {
                n as f64 + 1.0
            } else {
                0.0
            };
            is(&results, "server.store", other, expected);
        }
    }
}

// Waits

/// Each tenant's name tells which stages change its waits; with `max_polls = n` there are n of them, the first one included.
const CAUSES: &str = r#"
    run = { horizon = "700s", replications = 1 }
    server = [{ name = "second", hint = 1000 }, { name = "short", hint = 10 }, { name = "silent" }, { name = "soon", hint = "soon" }]
    hint.soon = { mix = [{ value = "soon" }] }
    tenant = [
      { name = "hint", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "hint" },
      { name = "default", arrivals = { at_once = {} }, duration = "1h", servers = { silent = 1 }, policy = "default" },
      { name = "bad_hint", arrivals = { at_once = {} }, duration = "1h", servers = { soon = 1 }, policy = "bad_hint" },
      { name = "floor", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "floor" },
      { name = "ceiling", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "ceiling" },
      { name = "backoff", arrivals = { at_once = {} }, duration = "1h", servers = { short = 1 }, policy = "backoff" },
      { name = "jitter", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "jitter" },
      { name = "timer", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "timer" },
      { name = "first_poll", arrivals = { at_once = { tasks = 10 } }, duration = "1h", servers = { second = 1 }, policy = "first_poll" },
      { name = "floor-timer", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "floor-timer" },
      { name = "ceiling-jitter", arrivals = { at_once = {} }, duration = "1h", servers = { second = 1 }, policy = "ceiling-jitter" },
      { name = "default-floor", arrivals = { at_once = {} }, duration = "1h", servers = { silent = 1 }, policy = "default-floor" },
      { name = "bad_hint-ceiling", arrivals = { at_once = {} }, duration = "1h", servers = { soon = 1 }, policy = "bad_hint-ceiling" },
      { name = "backoff-timer", arrivals = { at_once = {} }, duration = "1h", servers = { short = 1 }, policy = "backoff-timer" },
    ]
    [policy]
    hint = { max_polls = 20 }
    default = { max_polls = 2 }
    bad_hint = { max_polls = 3 }
    floor = { max_polls = 4, floor = "2s" }
    ceiling = { max_polls = 5, ceiling = "500ms" }
    backoff = { max_polls = 7, backoff = { geometric = { factor = 2 } } }
    jitter = { max_polls = 8, jitter = { minus = "100ms" } }
    timer = { max_polls = 9, timer = { quantum = "300ms" } }
    first_poll = { max_polls = 1, first_poll = { after = "3s" } }
    floor-timer = { max_polls = 11, floor = "2s", timer = { quantum = "300ms" } }
    ceiling-jitter = { max_polls = 12, ceiling = "500ms", jitter = { minus = "100ms" } }
    default-floor = { max_polls = 13, floor = "2s" }
    bad_hint-ceiling = { max_polls = 14, ceiling = "500ms" }
    backoff-timer = { max_polls = 16, backoff = { geometric = { factor = 2 } }, timer = { quantum = "3ms" } }
"#;

#[test]
fn each_wait_has_the_cause_that_changed_it_last_and_touches_those_before() {
    let results = run(CAUSES);
    let waits = 134.0;
    is(&results, "fleet", "effective_interval_count", waits);
    let causes = [
        // The first wait of a backoff is the hint as it was.
        ("wait_share_hint", 20.0 + 1.0),
        ("wait_share_default", 2.0),
        ("wait_share_bad_hint", 3.0),
        ("wait_share_floor", 4.0 + 13.0),
        ("wait_share_ceiling", 5.0 + 14.0),
        ("wait_share_backoff", 6.0),
        // The store never refuses here; the store that does has this share.
        ("wait_share_error_backoff", 0.0),
        ("wait_share_jitter", 8.0 + 12.0),
        // 10 ms times a power of two is never a multiple of 3 ms.
        ("wait_share_timer", 9.0 + 11.0 + 16.0),
        ("wait_share_first_poll", 10.0),
    ];
    assert_eq!(causes.iter().map(|(_, n)| n).sum::<f64>(), waits);
    let touched = [
        ("wait_touched_default", 2.0 + 13.0),
        ("wait_touched_bad_hint", 3.0 + 14.0),
        ("wait_touched_floor", 4.0 + 11.0 + 13.0),
        ("wait_touched_ceiling", 5.0 + 12.0 + 14.0),
        ("wait_touched_backoff", 6.0 + 15.0),
    ];
    for (metric, n) in causes.into_iter().chain(touched) {
        is(&results, "fleet", metric, n / waits);
    }
    for tenant in [
        "hint",
        "default",
        "bad_hint",
        "floor",
        "ceiling",
        "jitter",
        "timer",
        "first_poll",
    ] {
        is(
            &results,
            &format!("tenant.{tenant}"),
            &format!("wait_share_{tenant}"),
            1.0,
        );
    }
}

// Alerts

/// A fleet at ease: nothing to look at.
#[test]
fn a_fleet_at_ease_has_no_alert() {
    assert_eq!(found(&run(WARM_UP)), []);
}

#[test]
fn hints_of_zero_or_below_are_told_with_the_least() {
    only(&hinted(3, "value = 0"), "hints_zero_or_below", 3, Some(0.0));
    only(
        &hinted(4, "value = -5"),
        "hints_zero_or_below",
        4,
        Some(-5.0),
    );
}

#[test]
fn hints_beyond_the_timer_are_told_with_the_greatest() {
    only(
        &hinted(5, "value = 2147483648"),
        "hint_outliers",
        5,
        Some(2147483648.0),
    );
    only(&hinted(6, "value = 1e15"), "hint_outliers", 6, Some(1e15));
}

#[test]
fn malformed_hints_are_told() {
    only(&hinted(2, "value = 0.5"), "hints_malformed", 2, None);
    only(&hinted(3, "value = nan"), "hints_malformed", 3, None);
    only(&hinted(4, "value = \"soon\""), "hints_malformed", 4, None);
}

#[test]
fn hints_that_are_merely_missing_are_no_finding() {
    for wire in ["absent = true", "null = true", "value = 250"] {
        assert_eq!(found(&hinted(5, wire)), [], "{wire}");
    }
}

#[test]
fn a_default_outside_the_bounds_is_told() {
    // Waits for want of a hint: those of the two tenants whose default of 1 s a bound cuts.
    let results = run(CAUSES);
    let told = of(&results, "default_never_takes_effect");
    assert!(
        told.contains(&("default-floor", "silent", 13, Some(1000.0))),
        "{told:?}"
    );
    // A default inside the bounds, or one that no wait asked for, is none.
    assert!(
        told.iter()
            .all(|(tenant, ..)| *tenant == "default-floor" || *tenant == "bad_hint-ceiling"),
        "{told:?}"
    );
}

#[test]
fn a_burst_is_told_with_its_peak() {
    // Fifty polls in one window of 100 ms, none in the other 99.
    only(
        &hinted(50, "value = 250"),
        "synchronised_bursts",
        1,
        Some(500.0),
    );
}

#[test]
fn a_fleet_that_is_still_filling_is_told() {
    // A task more each second, none ever ends: s polls at second s, 0 + 1 + … + 49 = 1225 in the first half, 50 + … + 99 = 3725 in the second.
    let results = run(r#"
        run = { horizon = "100s", drain = "none", replications = 1 }
        server = [{ name = "store", hint = 990, delay = "5ms" }]
        tenant = [{ name = "agents", arrivals = { periodic = { every = "1s", phase = "0.3s" } }, duration = "1h", servers = { store = 1 }, policy = "plain" }]
        [policy.plain]
    "#);
    let rising = of(&results, "rate_still_rising");
    assert_eq!(rising, [("agents", "store", 2500, Some(3725.0 / 1225.0))]);
}

#[test]
fn refused_polls_are_told_with_their_share() {
    let results = run(STORE);
    assert_eq!(
        of(&results, "polls_refused"),
        [("clerks", "counter", 2, Some(2.0 / 9.0))]
    );
}

#[test]
fn a_loop_without_a_pause_is_told_with_its_least_gap() {
    // Polls at 10, 20, … 90 ms: the eight gaps are a near-tight loop; the two between 30, 60 and 90 ms are none.
    let scenario = r#"
        run = { horizon = "1s", replications = 1 }
        server = [{ name = "store", hint = 10 }]
        tenant = [{ name = "agents", arrivals = { at_once = {} }, duration = "90ms", servers = { store = 1 }, policy = "plain" }]
        [policy.plain]
    "#;
    only(&run(scenario), "near_tight_loops", 8, Some(10.0));
    assert_eq!(found(&run(&scenario.replace("= 10 ", "= 30 "))), []);
}

#[test]
fn aborts_beyond_an_objective_are_told_where_it_holds() {
    let objective = |over: &str, max: u32| {
        run(&format!(
            "objective = [{{ metric = \"abort_latency_p99_ms\", over = \"{over}\", max = {max} }}]\n{ENDS}"
        ))
    };
    let name = "abort_latency_beyond_objective";
    // 700 ms and 3.7 s; the lingering one's never settles, and so has no greatest.
    let late = [
        ("sleeper", "near", 1, Some(700.0)),
        ("stubborn", "near", 1, Some(3700.0)),
        ("lingering", "near", 1, None),
    ];
    let fleet = objective("fleet", 500);
    let mut told = of(&fleet, name);
    told.sort_by_key(|(tenant, ..)| late.iter().position(|l| l.0 == *tenant));
    assert_eq!(told, late);
    // An objective on one server looks at no other.
    let far = objective("server.far", 100);
    assert_eq!(of(&far, name), [("patient", "far", 2, Some(200.0))]);
    // Without an objective nothing is late.
    assert_eq!(of(&run(ENDS), name), []);
}

#[test]
fn leaked_polls_are_told_with_the_most_of_one_task() {
    let results = run(ENDS);
    let mut told = of(&results, "polls_leaked_after_aborts");
    told.sort_by_key(|(_, _, count, _)| *count);
    assert_eq!(
        told,
        [
            ("stubborn", "near", 4, Some(4.0)),
            ("lingering", "near", 8, Some(8.0))
        ]
    );
}

#[test]
fn a_saturated_store_is_told_with_its_utilisation() {
    // Each poll takes the worker for 950 ms and comes 50 ms after the last answer: 9.5 of 10 s. After 250 ms it is 8 of 10.
    let scenario = r#"
        run = { horizon = "10s", replications = 1 }
        server = [{ name = "idle" }, { name = "busy", tasks_get = { service = "950ms" }, hint = 50 }]
        tenant = [{ name = "agents", arrivals = { at_once = {} }, duration = "1h", servers = { busy = 1 }, policy = "eager" }]
        policy.eager = { first_poll = "at_once", max_polls = 100 }
    "#;
    let results = run(scenario);
    assert_eq!(
        found(&results),
        [
            // Its loop gives up after 100 polls, and no one learns how the task ends.
            ("tasks_orphaned", "agents", "busy", 1, Some(1.0)),
            ("store_saturated", "", "busy", 1, Some(0.95))
        ]
    );
    let calm = run(&scenario.replace("= 50 ", "= 250 "));
    assert_eq!(of(&calm, "store_saturated"), []);
}

// The list is whole

#[test]
fn every_metric_stands_in_one_of_these_files_by_name() {
    let stories = [
        include_str!("metrics.rs"),
        include_str!("metrics_under_pressure.rs"),
    ];
    let names = SCALARS.iter().map(|(name, _)| *name);
    for name in names.chain(DISTRIBUTIONS.iter().map(|d| d.name)) {
        assert!(
            stories
                .iter()
                .any(|s| s.contains(&format!("\"{name}\""))
                    || s.contains(&format!("\"{name}_max_ms\""))),
            "nothing counts {name} by hand"
        );
    }
}

// Helpers

/// As exact as a quantile is: 0.1 %.
fn near(results: &Results, group: &str, metric: &str, expected: f64) {
    let found = value(results, group, metric);
    let same = found.is_some_and(|x| (x - expected).abs() <= 1e-3 * expected.abs());
    assert!(
        same,
        "{metric} of {group}: found {found:?}, counted {expected}"
    );
}

fn undefined(results: &Results, group: &str, metric: &str) {
    assert_eq!(value(results, group, metric), None, "{metric} of {group}");
}

/// A distribution: how many values, their mean, and [median, 99 % quantile, least, greatest].
fn spread(
    results: &Results,
    group: &str,
    name: &str,
    unit: &str,
    count: u32,
    mean: f64,
    of: [f64; 4],
) {
    let [p50, p99, min, max] = of;
    is(results, group, &format!("{name}_count"), f64::from(count));
    is(results, group, &format!("{name}_mean{unit}"), mean);
    near(results, group, &format!("{name}_p50{unit}"), p50);
    near(results, group, &format!("{name}_p99{unit}"), p99);
    is(results, group, &format!("{name}_min{unit}"), min);
    is(results, group, &format!("{name}_max{unit}"), max);
}

/// A distribution of one value.
fn all_alike(results: &Results, group: &str, name: &str, unit: &str, count: u32, value: f64) {
    spread(results, group, name, unit, count, value, [value; 4]);
}

/// All alerts: name, tenant, server, count, worst value.
fn found(results: &Results) -> Vec<(&str, &str, &str, u64, Option<f64>)> {
    let alerts = results.alerts.iter();
    alerts
        .map(|a| {
            (
                a.alert,
                a.tenant.as_str(),
                a.server.as_str(),
                a.count,
                a.worst,
            )
        })
        .collect()
}

/// The alerts of one name.
fn of<'r>(results: &'r Results, name: &str) -> Vec<(&'r str, &'r str, u64, Option<f64>)> {
    let alerts = found(results).into_iter().filter(|a| a.0 == name);
    alerts
        .map(|(_, tenant, server, count, worst)| (tenant, server, count, worst))
        .collect()
}

/// There is one alert, and it is this one, of the tenant `agents` on the server `store`.
fn only(results: &Results, name: &str, count: u64, worst: Option<f64>) {
    assert_eq!(found(results), [(name, "agents", "store", count, worst)]);
}
