//! Public reports of polling load in which something gives way: long polls, aborts that leak, outages, limits, budgets. The rules are those of
//! `tests/cases.rs`: scenarios stand in `models/cases/` with the links of their reports, expected values are those of arithmetic and closed
//! forms, "exact" is exact, and arithmetic on a report's own figures is tested as arithmetic.

#[path = "common/cases.rs"]
mod common;

use std::sync::atomic::AtomicBool;

use common::*;
use pollpace::engine::trace::{Follow, PollRow, Row};
use pollpace::engine::{self, Story};
use pollpace::experiment::Results;
use pollpace::metrics::tally::WINDOW;
use pollpace::model::Model;
use pollpace::theory::*;

// D02: one call that waits instead of many that poll

#[test]
fn d02_a_call_that_waits_replaces_thousands() {
    let results = run("D02-wait-instead-of-polling", &[]);
    let polls = |tenant: &str| mean(&results, tenant, "polls_per_task_mean");
    within(polls("tenant.short"), 7200.0, 1.0);
    exactly(polls("tenant.held-for-an-hour"), 1.0);
    exactly(polls("tenant.held-for-20s"), 180.0);
    let latest_ms = |tenant: &str| mean(&results, tenant, "completion_latency_max_ms");
    exactly(latest_ms("tenant.held-for-an-hour"), 0.0);
    exactly(latest_ms("tenant.held-for-20s"), 0.0);
}

#[test]
fn d02_an_answer_that_was_held_is_no_later_than_its_way() {
    let results = run("D02-wait-instead-of-polling", &[]);
    let delay_ms = |tenant: &str, statistic: &str| {
        mean(
            &results,
            tenant,
            &format!("completion_latency_{statistic}_ms"),
        )
    };
    // The way back, or nearly a round trip more for a task that ends between two calls.
    exactly(delay_ms("tenant.held-from-afar", "min"), 25.0);
    exactly(delay_ms("tenant.held-from-afar", "p95"), 25.0);
    assert!(delay_ms("tenant.held-from-afar", "mean") <= 50.0);
    assert!(delay_ms("tenant.held-from-afar", "max") <= 75.0);
    // Half an interval and half a round trip, and the way back.
    let short_ms = 1e3 * completion_delay_mean_serial_loop(0.5, 0.05, 0.5);
    near(delay_ms("tenant.short-from-afar", "mean"), short_ms, 0.02);
}

// D03: a loop that ignores the abort

#[test]
fn d03_a_loop_that_ignores_the_abort_polls_to_the_end() {
    let results = run("D03-loop-that-ignores-the-abort", &[]);
    let leaked = leaked_polls_fixed_interval(600.0, 60.0, 5.0);
    exactly(leaked, 108.0);
    let ignores = "tenant.host-ignores";
    exactly(mean(&results, ignores, "leaked_polls"), leaked);
    within(
        mean(&results, ignores, "abort_latency_mean_ms") / 1e3,
        540.0,
        5.0,
    );
    let looks = "tenant.host-looks-after-its-sleep";
    exactly(mean(&results, looks, "leaked_polls"), 0.0);
    near(
        mean(&results, looks, "abort_latency_mean_ms") / 1e3,
        2.5,
        0.02,
    );
    let longest_s = largest(&results, looks, "abort_latency_max_ms") / 1e3;
    assert!((4.99..=5.0).contains(&longest_s), "{longest_s}");
    let interrupted = "tenant.host-is-interrupted";
    exactly(mean(&results, interrupted, "abort_latency_count"), 1000.0);
    exactly(largest(&results, interrupted, "abort_latency_max_ms"), 0.0);
}

#[test]
fn d03_on_the_server_the_loop_leaks_though_nobody_waits_for_it() {
    let results = run("D03-loop-that-ignores-the-abort", &[]);
    let of = |tenant: &str, metric: &str| mean(&results, tenant, metric);
    for (tenant, leaked) in [
        ("tenant.server-ignores", 108.0),
        ("tenant.server-stops", 0.0),
    ] {
        exactly(of(tenant, "store_reads_leaked"), leaked);
        // Until the abort at 60 s a read every 5 s.
        exactly(of(tenant, "store_reads"), 12.0 + leaked);
        exactly(of(tenant, "requests_tasks_get"), 0.0);
        exactly(of(tenant, "aborts"), 1.0);
        exactly(of(tenant, "abort_latency_max_ms"), 0.0);
    }
}

#[test]
fn d03_a_read_by_the_server_itself_is_no_request() {
    // Neither limits nor losses on the way are for it; and while its server is down, what it does not read is no refused `tasks/get`.
    let undisturbed = run("D03-loop-that-ignores-the-abort", &[]);
    let disturbances = [
        "server.tasks.limits=[{ per = \"server\", quota = { requests = 1, length = \"1h\" } }]",
        "server.tasks.minimum_gap={ gap = \"1min\" }",
        "server.tasks.loss={ request = 0.5, answer = 0.5 }",
        "server.tasks.outage.windows=[{ from = \"2min\", length = \"3min\" }]",
    ];
    for disturbance in disturbances {
        let results = run("D03-loop-that-ignores-the-abort", &[disturbance]);
        for metric in ["store_reads", "store_reads_leaked", "abort_latency_max_ms"] {
            let tenant = "tenant.server-ignores";
            exactly(
                mean(&results, tenant, metric),
                mean(&undisturbed, tenant, metric),
            );
            for refused in ["429", "503"] {
                let metric = format!("tasks_get_refused_{refused}");
                exactly(mean(&results, tenant, &metric), 0.0);
            }
        }
    }
}

#[test]
fn d03_cancelled_requests_leave_five_loops_running() {
    let results = run("D03-loops-that-pile-up", &[]);
    let loops = mean(&results, "tenant.cancels-every-minute", "leaked_loops_mean");
    near(loops, leaked_loops_mean(1.0 / 60.0, 300.0), 0.03);
    // A loop sees the end half an interval late.
    near(loops, leaked_loops_mean(1.0 / 60.0, 302.5), 0.015);
    near(leaked_loops_mean(1.0 / 60.0, 300.0), 5.0, 1e-12);
}

// D11: in step after an outage, and several calls per poll

#[test]
fn d11_calls_add_up_to_the_reports_table() {
    let results = run("D11-calls-against-a-daily-cap", &[]);
    let calls = |devices: u32| {
        let tenant = format!("tenant.devices-and-zones-{devices}");
        mean(&results, &tenant, "requests_tasks_get")
    };
    let refused = |devices: u32| {
        let tenant = format!("tenant.devices-and-zones-{devices}");
        mean(&results, &tenant, "tasks_get_refused_429")
    };
    for (devices, expected) in [
        (2, 2880.0),
        (4, 3456.0),
        (6, 4032.0),
        (8, 4608.0),
        (10, 5184.0),
        (11, 5472.0),
        (16, 6912.0),
        (22, 8640.0),
    ] {
        exactly(calls(devices), expected);
        assert_eq!(refused(devices) > 0.0, expected > 5000.0, "{devices}");
    }
    exactly(refused(9), 0.0);
    // 277 polls of 18 calls go through, and 14 calls of the next: no call of the cap is left.
    let ten = "tenant.devices-and-zones-10";
    exactly(mean(&results, ten, "tasks_get_accepted"), 5000.0);
    exactly(mean(&results, ten, "tasks_get_refused_429"), 184.0);
}

#[test]
fn d11_eighteen_calls_fit_under_the_cap_every_311_seconds() {
    let shortest_s = shortest_interval_within_quota(1, 18, 5000, 86_400.0);
    near(shortest_s, 311.0, 0.01);
    let refused = |interval_s: f64| {
        let interval = format!("policy.every-5min.default={interval_s}s");
        let results = run("D11-calls-against-a-daily-cap", &[&interval]);
        mean(
            &results,
            "tenant.devices-and-zones-10",
            "tasks_get_refused_429",
        )
    };
    exactly(refused((shortest_s + 0.1).round()), 0.0);
    assert!(refused(shortest_s - 0.5) > 0.0);
}

#[test]
fn d11_jitter_alone_undoes_what_an_outage_puts_in_step() {
    let scenario = load("D11-in-step-after-an-outage", &["run.replications=1"]);
    let model = Model::new(&scenario);
    let outcome = engine::run(&model, 0, None, &AtomicBool::new(false)).unwrap();
    let coherence = |tenant: &str, around_s: f64| {
        let class = model.tenants.iter().position(|t| t.name == tenant).unwrap();
        coherence_around(&outcome.pairs[class].windows, around_s, 300.0)
    };
    for tenant in ["no-jitter", "jittered"] {
        assert!(coherence(tenant, 900.0) < 0.05, "{tenant}: random phases");
    }
    // The twelfth poll and its cycle, from the end of the break on.
    let twelfth_s = 3600.0 + 12.0 * 300.0;
    within(coherence("no-jitter", twelfth_s), 1.0, 1e-6);
    within(coherence("jittered", twelfth_s), 0.4492, 0.03);
    exactly(phase_coherence_uniform(12, 300.0, 300.0), 1.0);
    within(phase_coherence_uniform(12, 270.0, 330.0), 0.4492, 1e-4);
}

#[test]
fn d11_ten_percent_of_jitter_needs_45_cycles_and_five_percent_182() {
    for (jitter, low_s, high_s, cycles) in [(0.1, 270.0, 330.0, 45.0), (0.05, 285.0, 315.0, 182.0)]
    {
        exactly(cycles_to_coherence_uniform(0.05, low_s, high_s), cycles);
        // Each cycle takes the same share of the coherence; the gaps of one long loop show which.
        // Phases are shares of the interval, so that a thousandth of it shows the same sooner.
        let overrides = [
            "run.horizon=120000s".to_string(),
            "tenant.no-jitter.count=1".into(),
            "tenant.jittered.count=1".into(),
            "tenant.jittered.reconnect.at=[]".into(),
            "tenant.jittered.duration=2d".into(),
            "server.vendor.outage.windows=[]".into(),
            "policy.every-5min-jittered.default=300ms".into(),
            format!("policy.every-5min-jittered.jitter={{ proportional = {jitter} }}"),
        ];
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let sent = sends_s("D11-in-step-after-an-outage", &overrides, "jittered");
        let gaps: Vec<f64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 390_000);
        let each = length_of_mean(gaps.iter().map(|gap| gap / 0.3));
        within(0.05_f64.ln() / each.ln(), cycles, 1.0);
    }
}

// D12: a retry every second

#[test]
fn d12_blocked_routers_ask_a_thousand_times_as_often() {
    let scale = 1000.0; // five hundred stand for half a million
    let results = run("D12-retry-every-second", &[]);
    let rate = |tenant: &str| scale * mean(&results, tenant, "tasks_get_rate_mean_per_s");
    near(rate("tenant.healthy"), 488.3, 0.01);
    near(rate("tenant.unanswered"), 500_000.0, 0.01);
    near(
        rate("tenant.unanswered") / rate("tenant.healthy"),
        1024.0,
        0.01,
    );
    exactly(mean(&results, "tenant.unanswered", "tasks_get_seen"), 0.0);
}

#[test]
fn d12_doubling_waits_take_the_flood_down_to_a_trickle() {
    let hour = ["run.horizon=1h", "tenant.unanswered.count=1"];
    let results = run("D12-retry-every-second", &hour);
    let tenant = "tenant.unanswered-with-backoff";
    let requests = 1000.0 * mean(&results, tenant, "requests_tasks_get");
    near(requests / 3600.0, 1667.0, 0.02);
    let sent = sends_s("D12-retry-every-second", &hour, "unanswered-with-backoff");
    assert_eq!(
        sent,
        [
            1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 255.0, 511.0, 1023.0, 2047.0, 3071.0
        ]
    );
}

// D15: an hourly quota

#[test]
fn d15_the_ninth_wait_breaks_the_hourly_quota() {
    let results = run("D15-hourly-quota", &[]);
    let of = |tenant: &str, metric: &str| mean(&results, tenant, metric);
    exactly(of("tenant.nine-waits", "requests_tasks_get"), 1080.0);
    exactly(of("tenant.nine-waits", "tasks_get_accepted"), 1000.0);
    exactly(of("tenant.nine-waits", "tasks_get_refused_429"), 80.0);
    exactly(of("tenant.eight-waits", "tasks_get_accepted"), 960.0);
    exactly(of("tenant.eight-waits", "tasks_get_refused_429"), 0.0);
    exactly(pollers_within_quota(1, 1000, 3600.0, 30.0), 8.0);
    within(of("tenant.watch", "requests_tasks_get"), 120.0, 1.0);
    exactly(of("tenant.dispatches", "requests_tasks_get"), 3240.0);
    exactly(of("tenant.clones", "requests_tasks_get"), 10_800.0);
    exactly(of("tenant.clones", "tasks_get_accepted"), 5000.0);
    // The report's 1,000 an hour from nine dispatches: they poll for a third of the time.
    near(1000.0 / 3240.0, 0.3086, 1e-3);
}

#[test]
fn d15_nine_waits_fit_every_32_and_a_half_seconds() {
    let shortest_s = shortest_interval_within_quota_in_step(9, 1, 1000, 3600.0);
    near(shortest_s, 32.4, 0.01);
    let refused = |interval_s: f64| {
        let interval = format!("policy.every-30s.default={interval_s:.3}s");
        let results = run("D15-hourly-quota", &[&interval]);
        mean(&results, "tenant.nine-waits", "tasks_get_refused_429")
    };
    exactly(refused(shortest_s + 0.01), 0.0);
    assert!(refused(shortest_s - 0.01) > 0.0);
}

#[test]
fn d15_five_clones_spend_their_quota_in_28_minutes() {
    let rows = polls("D15-hourly-quota", &[], "clones");
    let refused = rows.iter().find(|poll| poll.status == "429").unwrap();
    let spent_s = quota_spent_after(5000, 3.0);
    near(spent_s / 60.0, 27.78, 0.01);
    near(refused.sent as f64 / 1e9, spent_s, 0.01);
}

// D16: 30 s, 10 s or 5 s, and the limits

#[test]
fn d16_half_an_interval_is_the_price_of_fewer_polls() {
    let results = run("D16-azure-intervals-and-limits", &[]);
    let of = |tenant: &str, metric: &str| mean(&results, tenant, metric);
    exactly(of("tenant.machine-every-5s", "polls_per_task_mean"), 36.0);
    exactly(of("tenant.machine-every-30s", "polls_per_task_mean"), 6.0);
    let delay_s = |tenant: &str| of(tenant, "completion_latency_mean_ms") / 1e3;
    near(delay_s("tenant.machines-every-5s"), 2.5, 0.02);
    near(delay_s("tenant.machines-every-30s"), 15.0, 0.02);
    exactly(delay_s("tenant.short-operation"), 27.0);
}

#[test]
fn d16_a_bucket_of_250_lasts_a_quarter_of_a_minute() {
    let case = "D16-azure-intervals-and-limits";
    let results = run(case, &[]);
    for tenant in ["tenant.forty-a-second", "tenant.two-hundred-waits"] {
        exactly(mean(&results, tenant, "requests_tasks_get"), 2400.0);
        near(mean(&results, tenant, "tasks_get_accepted"), 1750.0, 0.01);
    }
    let rows = polls(case, &[], "forty-a-second");
    let refused = rows.iter().find(|poll| poll.status == "429").unwrap();
    near(refused.sent as f64 / 1e9, 16.67, 0.02);
}

#[test]
fn d16_one_wait_more_than_fits_is_refused() {
    let case = "D16-waits-within-a-limit";
    let results = run(case, &[]);
    for (tenant, server, policy_s, most) in [
        ("every-30s", "hourly-30s", 30.0, 125.0),
        ("every-10s", "hourly-10s", 10.0, 41.0),
        ("every-5s", "hourly-5s", 5.0, 20.0),
        ("from-the-bucket", "bucket-100", 5.0, 100.0),
    ] {
        let quota = if server == "bucket-100" {
            72_000 // 20 a second
        } else {
            15_000
        };
        exactly(pollers_within_quota(1, quota, 3600.0, policy_s), most);
        let group = format!("server.{server}");
        let refused = |results: &Results| mean(results, &group, "tasks_get_refused_429");
        exactly(refused(&results), 0.0);
        let rounds = 3600.0 / policy_s;
        exactly(mean(&results, &group, "tasks_get_accepted"), rounds * most);
        let one_more = format!("tenant.{tenant}.count={}", most + 1.0);
        assert!(refused(&run(case, &[&one_more])) > 0.0, "{tenant}");
    }
}

#[test]
fn d16_an_empty_bucket_of_100_is_full_again_after_five_seconds() {
    // The second of two rounds of 100 finds what has come in between.
    for (interval_ms, refused) in [(5000, 0.0), (4999, 1.0), (4900, 2.0), (2500, 50.0)] {
        let overrides = [
            format!("policy.from-the-bucket.default={interval_ms}ms"),
            format!("run.horizon={}ms", interval_ms + 1),
        ];
        let results = run("D16-waits-within-a-limit", &[&overrides[0], &overrides[1]]);
        let group = "server.bucket-100";
        exactly(mean(&results, group, "requests_tasks_get"), 200.0);
        exactly(mean(&results, group, "tasks_get_refused_429"), refused);
    }
}

// D17: capped geometric schedules

#[test]
fn d17_doubled_waits_end_up_to_two_minutes_late() {
    let results = run("D17-capped-backoff", &[]);
    let polls = |tenant: &str| mean(&results, tenant, "polls_per_task_mean");
    let late_s = |tenant: &str| mean(&results, tenant, "completion_latency_max_ms") / 1e3;
    for (duration_s, doubling, flat) in [
        (100, (3.0, 5.0), (7.0, 5.0)),
        (250, (5.0, 95.0), (17.0, 5.0)),
        (500, (7.0, 85.0), (34.0, 10.0)),
    ] {
        for (policy, expected) in [("doubling", doubling), ("flat", flat)] {
            let tenant = format!("tenant.{policy}-{duration_s}s");
            exactly(polls(&tenant), expected.0);
            exactly(late_s(&tenant), expected.1);
        }
    }
    exactly(polls("tenant.growing-by-half"), 7.0);
    within(late_s("tenant.growing-by-half"), 28.91, 0.005);
}

#[test]
fn d17_the_schedules_poll_by_poll() {
    let case = "D17-capped-backoff";
    assert_eq!(
        sends_s(case, &[], "doubling-500s"),
        [15.0, 45.0, 105.0, 225.0, 345.0, 465.0, 585.0]
    );
    let sent = sends_s(case, &[], "growing-by-half-to-the-last");
    let expected = [
        5.0, 12.5, 23.75, 40.62, 65.94, 103.91, 148.91, 193.91, 238.91, 283.91, 328.91,
    ];
    assert_eq!(sent.len(), expected.len());
    for (sent, expected) in sent.iter().zip(expected) {
        within(*sent, expected, 0.01);
    }
}

// D19: short and long polls of a queue

#[test]
fn d19_a_million_polls_a_day_are_half_a_dollar() {
    let results = run("D19-short-and-long-polls-of-a-queue", &[]);
    let of = |tenant: &str, metric: &str| mean(&results, tenant, metric);
    near(of("tenant.short", "requests_tasks_get"), 1_136_842.0, 0.001);
    near(of("tenant.short", "cost"), 0.5684, 0.01);
    exactly(of("tenant.held", "requests_tasks_get"), 4320.0);
    exactly(
        60.0 * of("tenant.five-held", "tasks_get_rate_mean_per_s"),
        15.0,
    );
}

#[test]
fn d19_the_reports_own_counts_say_77_percent() {
    let overrides = ["policy.every-76ms.default=1h"];
    let results = run("D19-short-and-long-polls-of-a-queue", &overrides);
    let held = 30.0 * mean(&results, "tenant.held", "requests_tasks_get");
    exactly(held, 129_600.0);
    near(30.0 * 86_400.0 / 552_896.0, 4.688, 0.01);
    near(1.0 - held / 552_896.0, 0.7656, 0.02);
    // The claimed cut is that from one poll a second.
    near(1.0 - held / (30.0 * 86_400.0), 0.95, 1e-9);
}

// D21: retries in an outage

#[test]
fn d21_a_retry_at_once_is_a_request_per_round_trip() {
    let results = run("D21-retries-in-an-outage", &[]);
    let requests = mean(&results, "tenant.page", "requests_tasks_get");
    near(requests / 1260.0, 209.0, 0.01);
    near(requests, 263_356.0, 0.01);
    // The reports' own figures.
    near(969_675.0 / 1874.0, 517.4, 0.01);
    near(14_294.0 / 151_780.0, 0.09418, 0.01);
}

#[test]
fn d21_backoff_or_a_breaker_bounds_an_hour_of_outage() {
    let results = run("D21-retries-in-an-outage", &[]);
    let each = |tenant: &str, count: f64| mean(&results, tenant, "requests_tasks_get") / count;
    within(each("tenant.every-second", 1.0), 3600.0, 1.0);
    within(each("tenant.doubling", 1000.0), 123.0, 2.0);
    within(each("tenant.behind-a-breaker", 1.0), 16.0, 1.0);
    exactly(
        mean(&results, "tenant.behind-a-breaker", "breaker_opened"),
        1.0,
    );
    // Whether or not the start of the outage is in step, once the waits have grown it is one in 30 s.
    let late = run("D21-retries-in-an-outage", &["run.warm_up=30min"]);
    near(
        mean(&late, "tenant.doubling", "tasks_get_rate_mean_per_s"),
        33.33,
        0.02,
    );
}

#[test]
fn d21_the_flood_trips_a_breaker_within_a_second() {
    let rows = polls("D21-retries-in-an-outage", &[], "page-behind-a-breaker");
    // Until it opens, polls follow each other without a pause.
    let pause = rows
        .windows(2)
        .position(|pair| pair[1].sent > pair[0].seen.unwrap());
    let last = &rows[pause.unwrap()];
    assert_eq!(last.number, 120);
    near(last.seen.unwrap() as f64 / 1e9, 0.5742, 0.02);
}

// D22: a server that enforces its interval

#[test]
fn d22_a_client_on_time_is_refused_and_slower_than_one_that_waits_longer() {
    let case = "D22-slow-down";
    let results = run(case, &[]);
    let polls_of = |tenant: &str| mean(&results, tenant, "polls_per_task_mean");
    within(polls_of("tenant.as-suggested"), 7.0, 1.0);
    exactly(polls_of("tenant.every-6s"), 10.0);
    let refused = |tenant: &str| mean(&results, tenant, "tasks_get_slow_down");
    exactly(refused("tenant.as-suggested"), 1.0);
    exactly(refused("tenant.every-6s"), 0.0);
    exactly(refused("tenant.first-poll-at-once"), 1.0);

    assert_eq!(
        sends_s(case, &[], "as-suggested"),
        [5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    );
    let rows = rows(case, &[], "as-suggested");
    let waits_s: Vec<u64> = rows
        .iter()
        .filter_map(|row| row.wait.as_ref())
        .map(|row| row.wait.wait / 1_000_000_000)
        .collect();
    assert_eq!(waits_s, [5, 5, 10, 10, 10, 10, 10]);
}

#[test]
fn d22_a_first_poll_at_once_costs_an_interval() {
    let polls = polls("D22-slow-down", &[], "first-poll-at-once");
    let told: Vec<(u64, &str)> = polls
        .iter()
        .map(|poll| (poll.sent / 1_000_000_000, poll.status))
        .collect();
    assert_eq!(told[0], (0, "slow_down"));
    assert_eq!(told[1], (10, "working"));
}

// How the stories above are told

/// The largest of the values of the replications.
fn largest(results: &Results, group: &str, metric: &str) -> f64 {
    let values = results.values(group, metric);
    values.into_iter().map(Option::unwrap).fold(0.0, f64::max)
}

/// The story of a tenant's first task.
fn rows(name: &str, overrides: &[&str], tenant: &str) -> Vec<Row> {
    let model = Model::new(&load(name, overrides));
    let class = model.tenants.iter().position(|t| t.name == tenant).unwrap();
    let follow = Follow {
        tenant: Some(class as u16),
        number: 1,
    };
    let outcome = engine::run(&model, 0, Some(follow), &AtomicBool::new(false)).unwrap();
    let Some(Story { rows, .. }) = outcome.story else {
        panic!("no story")
    };
    rows
}

/// The polls of a tenant's first task.
fn polls(name: &str, overrides: &[&str], tenant: &str) -> Vec<PollRow> {
    let rows = rows(name, overrides, tenant);
    rows.into_iter().filter_map(|row| row.poll).collect()
}

/// When the polls of a tenant's first task were sent, in seconds.
fn sends_s(name: &str, overrides: &[&str], tenant: &str) -> Vec<f64> {
    let polls = polls(name, overrides, tenant);
    polls.iter().map(|poll| poll.sent as f64 / 1e9).collect()
}

/// Coherence of the polls that were sent within half an interval of an instant, from their counts in windows.
fn coherence_around(windows: &[u32], around_s: f64, interval_s: f64) -> f64 {
    let width_s = WINDOW as f64 / 1e9;
    let first = ((around_s - interval_s / 2.0) / width_s).round() as usize;
    let cells = (interval_s / width_s).round() as usize;
    let phases = windows[first..first + cells]
        .iter()
        .enumerate()
        .flat_map(|(cell, count)| {
            let phase = cell as f64 / cells as f64;
            std::iter::repeat_n(phase, *count as usize)
        });
    length_of_mean(phases)
}

/// Length of the mean of points on the unit circle, given in turns.
fn length_of_mean(turns: impl Iterator<Item = f64>) -> f64 {
    let (mut east, mut north, mut points) = (0.0, 0.0, 0.0);
    for turn in turns {
        let angle = std::f64::consts::TAU * turn;
        east += angle.cos();
        north += angle.sin();
        points += 1.0;
    }
    f64::hypot(east, north) / points
}
