//! Closed forms of `pollpace::theory` for pollers in step, limits, outages, budgets, costs and aborts, held against the simulator.
//!
//! The rules are those of `tests/theory.rs`: what is deterministic holds exactly; what is random holds inside the 99.9 % confidence interval
//! over independent replications, with fixed seeds, and each interval must be narrow.

#[path = "common/theory.rs"]
mod common;

use std::f64::consts::TAU;
use std::sync::atomic::AtomicBool;

use common::*;
use pollpace::engine;
use pollpace::engine::trace::{Follow, PollRow};
use pollpace::experiment::{Estimate, Results};
use pollpace::model::Model;
use pollpace::theory::*;

impl Fleet<'_> {
    /// The polls of the first task in each replication.
    fn stories(&self) -> impl Iterator<Item = Vec<PollRow>> {
        let scenario = self.scenario();
        let model = Model::new(&scenario);
        (0..scenario.run.replications.0).map(move |number| {
            let follow = Follow {
                tenant: None,
                number: 1,
            };
            let outcome = engine::run(&model, number, Some(follow), &AtomicBool::new(false));
            let rows = outcome.unwrap().story.unwrap().rows;
            rows.into_iter().filter_map(|row| row.poll).collect()
        })
    }
}

/// The value of a metric where all replications agree.
fn exact(results: &Results, group: &str, metric: &str) -> f64 {
    let values = results.values(group, metric);
    assert!(
        values.iter().all(|v| v.is_some() && *v == values[0]),
        "{metric} of {group}: {values:?}"
    );
    values[0].unwrap()
}

/// `expected` lies inside the interval, and the interval is no wider than ± `narrow` of it.
fn inside(estimate: Estimate, expected: f64, narrow: f64, what: &str) {
    let (lo, hi) = (estimate.lo.unwrap(), estimate.hi.unwrap());
    let half = (hi - lo) / 2.0 / expected.abs();
    println!(
        "{what}: simulated {:.5} ± {:.2} %, theory {expected:.5}",
        estimate.mean.unwrap(),
        100.0 * half
    );
    assert!(
        lo <= expected && expected <= hi,
        "{what}: [{lo}, {hi}] does not hold {expected}"
    );
    assert!(
        half > 0.0 && half <= narrow,
        "{what}: the interval is ± {half} of {expected}, wider than {narrow}"
    );
}

fn mean(results: &Results, metric: &str, expected: f64, narrow: f64, what: &str) {
    let estimate = results.estimate("fleet", metric).unwrap();
    inside(estimate, expected, narrow, &format!("{what}, {metric}"));
}

fn of(values: &[f64]) -> Estimate {
    let values: Vec<Option<f64>> = values.iter().map(|x| Some(*x)).collect();
    Estimate::new(&values, CONFIDENCE)
}

// O10: does jitter undo synchrony?

#[test]
fn o10_each_cycle_of_jitter_takes_the_same_share_of_the_coherence() {
    // (jitter of 1 s, its ends, cycles)
    for (jitter, low_s, high_s, cycles) in [
        ("{ proportional = 0.1 }", 0.9, 1.1, vec![1, 5, 12, 20]),
        ("{ proportional = 0.25 }", 0.75, 1.25, vec![1, 2, 3]),
        ("{ additive = \"500ms\" }", 1.0, 1.5, vec![1, 4]),
        ("\"equal\"", 0.5, 1.0, vec![1, 2]),
    ] {
        let fleet = Fleet {
            run: "horizon = \"1s\"\nreplications = 4000\nseed = 10",
            tenant: "arrivals = { at_once = {} }\nduration = \"30s\"",
            policy: &format!("default = \"1s\"\njitter = {jitter}"),
            ..Fleet::default()
        };
        let mean_s = (low_s + high_s) / 2.0;
        let sent_s: Vec<Vec<f64>> = fleet
            .stories()
            .map(|polls| polls.iter().map(|poll| poll.sent as f64 / 1e9).collect())
            .collect();
        for cycles in cycles {
            // All lean to the same side of the circle, whose cosine is what is left; across it nothing is.
            let along: Vec<f64> = sent_s
                .iter()
                .map(|sent| (TAU * sent[cycles - 1] / mean_s).cos())
                .collect();
            let across: Vec<f64> = sent_s
                .iter()
                .map(|sent| (TAU * sent[cycles - 1] / mean_s).sin())
                .collect();
            let what = format!("{jitter}, {cycles} cycles");
            let coherence = phase_coherence_uniform(cycles as u64, low_s, high_s);
            // About 3.3 of at most 0.7/√4000.
            inside(of(&along), coherence, 0.037 / coherence, &what);
            let across = of(&across);
            assert!(
                across.lo.unwrap() < 0.0 && 0.0 < across.hi.unwrap(),
                "{what}"
            );
        }
    }
}

#[test]
fn o10_without_jitter_pollers_stay_in_step() {
    let fleet = Fleet {
        run: "horizon = \"1s\"\nreplications = 3",
        tenant: "arrivals = { at_once = {} }\nduration = \"200s\"",
        policy: "default = \"1s\"",
        ..Fleet::default()
    };
    for polls in fleet.stories() {
        let sent: Vec<u64> = polls.iter().map(|poll| poll.sent).collect();
        let in_step: Vec<u64> = (1..=200).map(|n| n * 1_000_000_000).collect();
        assert_eq!(sent, in_step);
    }
    assert_eq!(phase_coherence_uniform(200, 1.0, 1.0), 1.0);
}

// O11: token buckets, and quotas per window.

#[test]
fn o11_a_bucket_refuses_the_first_request_that_finds_no_token() {
    // (tokens, refill per s, gap in ms); the first one ends with a token to the digit.
    for (burst, refill, gap_ms) in [(100, 20, 20), (250, 25, 25), (40, 10, 80), (1, 3, 250)] {
        let fleet = Fleet {
            run: "horizon = \"120s\"\nreplications = 1\ndrain = \"none\"",
            server: &format!(
                "limits = [{{ per = \"server\", bucket = {{ rate = \"{refill}/s\", burst = {burst} }} }}]"
            ),
            tenant: "arrivals = { at_once = {} }\nduration = \"1h\"",
            policy: &format!("default = \"{gap_ms}ms\"\nfirst_poll = \"at_once\""),
            ..Fleet::default()
        };
        let what = format!("{burst} tokens, {refill}/s, a request every {gap_ms} ms");
        let (burst, refill) = (f64::from(burst), f64::from(refill));
        let offered = 1e3 / f64::from(gap_ms);
        let polls = fleet.stories().next().unwrap();
        let passed = polls.iter().position(|poll| poll.status == "429").unwrap();
        let expected = token_bucket_requests_before_refusal(burst, refill, offered);
        assert_eq!(passed as f64, expected, "{what}");
        // As a fluid, it lasts a little longer.
        let refused_s = polls[passed].sent as f64 / 1e9;
        let fluid_s = token_bucket_first_refusal(burst, refill, offered);
        assert!(
            refused_s <= fluid_s && fluid_s < refused_s + 1.0 / (offered - refill),
            "{what}: {refused_s} s, as a fluid {fluid_s} s"
        );
        if burst >= 2.0 {
            let accepted = exact(&fleet.run(), "fleet", "tasks_get_accepted");
            let granted = token_bucket_granted(120.0, burst, refill, offered);
            assert!(
                (accepted - granted).abs() <= 2.0,
                "{what}: {accepted} accepted, theory says {granted}"
            );
        }
    }
}

#[test]
fn o11_as_many_pollers_as_tokens_come_are_never_refused() {
    for (pollers, refused) in [(100, false), (101, true)] {
        let results = Fleet {
            run: "horizon = \"1h\"\nreplications = 3\ndrain = \"none\"\nseed = 11",
            server: "limits = [{ per = \"server\", bucket = { rate = \"20/s\", burst = 100 } }]",
            tenant: &format!(
                "count = {pollers}\narrivals = {{ offset = {{ after = {{ uniform = {{ low = \"0s\", high = \"5s\" }} }} }} }}\nduration = \"2h\""
            ),
            policy: "default = \"5s\"\nfirst_poll = \"at_once\"",
            ..Fleet::default()
        }
        .run();
        let refusals = results.values("fleet", "tasks_get_refused_429");
        assert!(
            refusals.iter().all(|n| (n.unwrap() > 0.0) == refused),
            "{pollers} pollers: {refusals:?}"
        );
    }
}

#[test]
fn o11_a_quota_is_spent_at_a_known_time_and_dark_until_its_window_ends() {
    // (quota, window in s, gap in ms)
    for (quota, window_s, gap_ms) in [(100, 10, 50), (1000, 60, 40), (7, 1, 125), (100, 10, 100)] {
        let fleet = Fleet {
            run: &format!(
                "horizon = \"{}s\"\nreplications = 1\ndrain = \"none\"",
                5 * window_s
            ),
            server: &format!(
                "limits = [{{ per = \"server\", quota = {{ requests = {quota}, length = \"{window_s}s\" }} }}]"
            ),
            tenant: "arrivals = { at_once = {} }\nduration = \"1h\"",
            policy: &format!("default = \"{gap_ms}ms\"\nfirst_poll = \"at_once\""),
            ..Fleet::default()
        };
        let what = format!("{quota} per {window_s} s, a request every {gap_ms} ms");
        let (offered, window_s) = (1e3 / f64::from(gap_ms), f64::from(window_s));
        let results = fleet.run();
        let dark = exact(&results, "fleet", "tasks_get_refused_429")
            / exact(&results, "fleet", "requests_tasks_get");
        let expected = quota_dark_share(quota, window_s, offered);
        assert!(
            (dark - expected).abs() < 1e-12,
            "{what}: {dark}, {expected}"
        );
        let polls = fleet.stories().next().unwrap();
        let refused = polls.iter().find(|poll| poll.status == "429");
        let spent_s = quota_spent_after(quota, offered);
        assert_eq!(
            refused.map(|poll| poll.sent as f64 / 1e9),
            (spent_s < window_s).then_some(spent_s),
            "{what}"
        );
    }
}

// O15: requests in an outage.

/// Requests of one client that an outage refuses, the first of them sent at its start.
fn refused_in_outage(outage_s: f64, round_trip_s: f64, policy: &str) -> f64 {
    let way_s = round_trip_s / 2.0;
    let results = Fleet {
        run: "horizon = \"2h\"\nreplications = 1\ndrain = \"none\"",
        server: &format!(
            "delay = \"{way_s}s\"\noutage = {{ windows = [{{ from = \"{way_s}s\", length = \"{outage_s}s\" }}] }}"
        ),
        tenant: "arrivals = { at_once = {} }\nduration = \"3h\"",
        policy: &format!("first_poll = \"at_once\"\n{policy}"),
        ..Fleet::default()
    }
    .run();
    let refused = exact(&results, "fleet", "tasks_get_refused_503");
    assert_eq!(exact(&results, "fleet", "tasks_get_refused"), refused);
    // Once it is over the rest is answered.
    let sent = exact(&results, "fleet", "requests_tasks_get");
    assert!(sent > refused, "{sent} sent, {refused} refused");
    refused
}

#[test]
fn o15_an_outage_sees_a_request_per_wait_and_round_trip() {
    for (outage_s, interval_s, round_trip_s) in [
        (3600.0, 1.0, 0.0),
        (3600.0, 1.0, 0.25),
        (100.0, 7.0, 0.0),
        (98.0, 7.0, 0.0),
        (100.0, 9.9, 0.1),
        (2.0, 30.0, 0.2),
    ] {
        let policy = format!("default = \"{interval_s}s\"");
        assert_eq!(
            refused_in_outage(outage_s, round_trip_s, &policy),
            outage_requests_fixed_interval(outage_s, interval_s, round_trip_s),
            "{outage_s} {interval_s} {round_trip_s}"
        );
    }
}

#[test]
fn o15_without_a_wait_it_sees_one_per_round_trip() {
    for (outage_s, round_trip_s) in [(30.0, 0.004), (30.0, 0.05), (1.0, 0.3)] {
        // Good answers are not asked for again at once, so that the run ends.
        let policy = "default = \"1min\"\nerror_backoff = { initial = \"1ns\", factor = 1 }";
        let found = refused_in_outage(outage_s, round_trip_s, policy);
        let expected = outage_requests_without_wait(outage_s, round_trip_s);
        assert_eq!(found, expected, "{outage_s} {round_trip_s}");
    }
}

#[test]
fn o15_waits_that_grow_after_errors_see_fewer() {
    for (outage_s, first_s, factor, ceiling_s, round_trip_s) in [
        (3600.0, 1.0, 2.0, 30.0, 0.0),
        (3600.0, 0.5, 1.5, 20.0, 0.1),
        (600.0, 1.0, 2.0, f64::INFINITY, 0.0),
        (1023.0, 1.0, 2.0, f64::INFINITY, 0.0),
        (100.0, 5.0, 1.0, 60.0, 0.5),
    ] {
        let cap = if ceiling_s.is_finite() {
            format!(", cap = \"{ceiling_s}s\"")
        } else {
            String::new()
        };
        let policy = format!(
            "default = \"10s\"\nerror_backoff = {{ initial = \"{first_s}s\", factor = {factor}{cap} }}"
        );
        assert_eq!(
            refused_in_outage(outage_s, round_trip_s, &policy),
            outage_requests_geometric_backoff(outage_s, first_s, factor, ceiling_s, round_trip_s),
            "{outage_s} {first_s} {factor} {ceiling_s} {round_trip_s}"
        );
    }
}

#[test]
fn o15_a_breaker_lets_one_probe_pass_in_each_open_period() {
    for (outage_s, failures, interval_s, open_s, round_trip_s) in [
        (3600.0, 5, 2.0, 300.0, 0.0),
        (3600.0, 5, 2.0, 60.0, 0.1),
        (1000.0, 3, 1.0, 10.0, 0.5),
        (1000.0, 1, 4.0, 8.0, 0.0),
        (5.0, 5, 2.0, 300.0, 0.0),
        (8.0, 5, 2.0, 300.0, 0.0),
    ] {
        let policy = format!(
            "default = \"{interval_s}s\"\nbreaker = {{ opens = {{ consecutive = {failures} }}, open = \"{open_s}s\" }}"
        );
        assert_eq!(
            refused_in_outage(outage_s, round_trip_s, &policy),
            outage_requests_breaker(outage_s, failures, interval_s, open_s, round_trip_s),
            "{outage_s} {failures} {interval_s} {open_s} {round_trip_s}"
        );
    }
}

#[test]
fn o15_a_silent_server_is_asked_once_per_wait_and_timeout() {
    for (outage_s, interval_s, timeout_s) in [(3600.0, 1.0, 0.25), (100.0, 7.0, 3.0)] {
        let results = Fleet {
            run: "horizon = \"2h\"\nreplications = 1\ndrain = \"none\"",
            server: &format!(
                "outage = {{ windows = [{{ from = \"0s\", length = \"{outage_s}s\" }}], answers = \"silent\" }}"
            ),
            tenant: "arrivals = { at_once = {} }\nduration = \"3h\"",
            policy: &format!(
                "first_poll = \"at_once\"\ndefault = \"{interval_s}s\"\ntimeout = \"{timeout_s}s\""
            ),
            ..Fleet::default()
        }
        .run();
        assert_eq!(
            exact(&results, "fleet", "tasks_get_timed_out"),
            outage_requests_fixed_interval(outage_s, interval_s, timeout_s)
        );
    }
}

#[test]
fn o15_requests_that_are_given_up_are_work_all_the_same() {
    // They come 50 ms after they were sent, 30 ms after their host has given them up: a poll every 1.02 s.
    for requests in [1, 5] {
        let results = Fleet {
            run: "horizon = \"102s\"\nwarm_up = \"51s\"\nreplications = 1\ndrain = \"none\"",
            server: "delay = \"50ms\"\ntasks_get = { service = \"10ms\" }",
            tenant: "arrivals = { at_once = {} }\nduration = \"1h\"",
            policy: &format!(
                "default = \"1s\"\ntimeout = \"20ms\"\nrequests_per_poll = {requests}"
            ),
            ..Fleet::default()
        }
        .run();
        let sent = 50.0 * f64::from(requests);
        assert_eq!(exact(&results, "fleet", "tasks_get_timed_out"), sent);
        let busy = exact(&results, "fleet", "utilisation");
        assert!((busy - sent * 0.01 / 51.0).abs() < 1e-12, "{busy}");
    }
}

#[test]
fn o15_an_outage_that_begins_anywhere_sees_its_length_over_the_period() {
    let results = Fleet {
        run: "horizon = \"200s\"\nreplications = 20\ndrain = \"none\"\nseed = 15",
        server: "outage = { windows = [{ from = \"50s\", length = \"100s\" }] }",
        tenant: "count = 200\narrivals = { offset = { after = { uniform = { low = \"0s\", high = \"7s\" } } } }\nduration = \"1h\"",
        policy: "default = \"7s\"\nfirst_poll = \"at_once\"",
        ..Fleet::default()
    }
    .run();
    let refused = 200.0 * 100.0 / 7.0;
    mean(
        &results,
        "tasks_get_refused_503",
        refused,
        0.003,
        "random start",
    );
}

// O16: the budget of a fleet.

/// Equal tenants that take turns under a budget of 20 polls a second.
fn under_budget(run: &str, tenants: u32, tasks: u32, arrivals: &str, duration: &str) -> Results {
    Fleet {
        run,
        tenant: &format!(
            "count = {tenants}\narrivals = {{ {arrivals} = {{ tasks = {tasks}{} }} }}\nduration = {duration}",
            if arrivals == "offset" {
                ", after = { uniform = { low = \"0s\", high = \"5s\" } }"
            } else {
                ""
            }
        ),
        policy: "default = \"5s\"",
        more: "[budget]\nfleet = { rate = \"20/s\" }",
        ..Fleet::default()
    }
    .run()
}

#[test]
fn o16_a_budget_stretches_the_interval_of_all_alike() {
    for (tenants, tasks) in [(50, 10), (500, 1), (1, 500), (20, 10)] {
        let run = "horizon = \"800s\"\nwarm_up = \"300s\"\nreplications = 3\ndrain = \"none\"";
        let results = under_budget(run, tenants, tasks, "offset", "\"1h\"");
        let n = f64::from(tenants * tasks);
        let what = format!("{tenants} tenants of {tasks} tasks");
        // The start has died away; from then on they take turns.
        let rate = aggregate_rate_under_budget(n, 5.0, 20.0);
        assert_eq!(
            exact(&results, "fleet", "tasks_get_rate_mean_per_s"),
            rate,
            "{what}"
        );
        let interval_ms = 1e3 * interval_under_budget(n, 5.0, 20.0);
        for statistic in ["min", "mean", "max"] {
            let gap = exact(&results, "fleet", &format!("gap_{statistic}_ms"));
            assert_eq!(gap, interval_ms, "{what}: {statistic} gap");
        }
    }
}

#[test]
fn o16_a_budget_that_is_not_spent_changes_nothing() {
    let run = "horizon = \"200s\"\nwarm_up = \"50s\"\nreplications = 3\ndrain = \"none\"";
    let results = under_budget(run, 80, 1, "at_once", "\"1h\"");
    assert_eq!(interval_under_budget(80.0, 5.0, 20.0), 5.0);
    assert_eq!(exact(&results, "fleet", "gap_min_ms"), 5000.0);
    assert_eq!(exact(&results, "fleet", "gap_max_ms"), 5000.0);
    assert_eq!(
        exact(&results, "fleet", "tasks_get_rate_mean_per_s"),
        aggregate_rate_under_budget(80.0, 5.0, 20.0)
    );
}

#[test]
fn o16_under_a_budget_the_end_is_seen_half_the_longer_interval_late() {
    // Tasks follow each other; their durations are spread over four of the longer intervals.
    // The run stops at the horizon: after it no task is followed by another, and the rest would have the budget to themselves.
    let run =
        "horizon = \"3300s\"\nwarm_up = \"300s\"\nreplications = 20\ndrain = \"none\"\nseed = 16";
    let duration = "{ uniform = { low = \"100s\", high = \"200s\" } }";
    let results = under_budget(run, 50, 10, "closed_loop", duration);
    let delay_ms = 1e3 * completion_delay_mean_under_budget(500.0, 5.0, 20.0);
    mean(
        &results,
        "completion_latency_mean_ms",
        delay_ms,
        0.02,
        "500 tasks, 20 polls/s",
    );
    assert_eq!(exact(&results, "fleet", "tasks_get_rate_mean_per_s"), 20.0);
}

#[test]
fn o16_who_needs_less_than_its_share_leaves_the_rest_to_the_other() {
    let results = Fleet {
        run: "horizon = \"1100s\"\nwarm_up = \"300s\"\nreplications = 3\ndrain = \"none\"",
        tenant: "arrivals = { offset = { tasks = 160, after = \"0s\" } }\nduration = \"1h\"",
        policy: "default = \"5s\"",
        more: "[budget]\nfleet = { rate = \"20/s\" }\n\
               [[tenant]]\nname = \"small\"\nservers = { s = 1 }\npolicy = \"p\"\n\
               arrivals = { offset = { tasks = 40, after = \"0s\" } }\nduration = \"1h\"",
        ..Fleet::default()
    }
    .run();
    let gap_s = |tenant: &str| {
        results
            .estimate(tenant, "gap_mean_ms")
            .unwrap()
            .mean
            .unwrap()
            / 1e3
    };
    // 40 tasks and half of the budget: nearly their own interval.
    let small_s = gap_s("tenant.small");
    assert!((5.0..5.11).contains(&small_s), "{small_s}");
    // 8 polls a second for the small one leave 12.
    let large_s = gap_s("tenant.t");
    let expected_s = interval_under_budget(160.0, 5.0, 12.0);
    assert!(
        (large_s / expected_s - 1.0).abs() < 0.02,
        "{large_s}, {expected_s}"
    );
}

// O17: which interval.

#[test]
fn o17_the_best_interval_balances_polls_and_delay() {
    // A poll costs 1, a second of delay 1.2; durations are spread over whole intervals of each length that is tried.
    let (cost_per_poll, cost_per_delay_s, duration_s) = (1.0, 1.2, 1500.0);
    let best_s = best_interval(duration_s, cost_per_poll, cost_per_delay_s);
    assert!((best_s - 50.0).abs() < 1e-9);
    let tasks = 1000.0;
    let cost_of_each = |interval_s: f64| -> Vec<f64> {
        let results = Fleet {
            run: "horizon = \"1h\"\nreplications = 20\nseed = 17",
            tenant: &format!(
                "arrivals = {{ at_once = {{ tasks = {tasks} }} }}\nduration = {{ uniform = {{ low = \"1000s\", high = \"2000s\" }} }}\n\
                 cost = {{ request = {cost_per_poll} }}"
            ),
            policy: &format!("default = \"{interval_s}s\""),
            ..Fleet::default()
        }
        .run();
        let requests = results.values("fleet", "cost");
        let delay_ms = results.values("fleet", "completion_latency_mean_ms");
        requests
            .iter()
            .zip(delay_ms)
            // Creation is a request as well, at any interval.
            .map(|(requests, delay_ms)| {
                requests.unwrap() / tasks - cost_per_poll
                    + cost_per_delay_s * delay_ms.unwrap() / 1e3
            })
            .collect()
    };
    let closed = |interval_s: f64| {
        cost_mean_fixed_interval(interval_s, duration_s, cost_per_poll, cost_per_delay_s)
    };
    let least = cost_of_each(best_s);
    inside(of(&least), closed(best_s), 0.03, "at the best interval");
    for share in [0.5, 0.8, 1.25, 2.0] {
        let interval_s = share * best_s;
        let cost = cost_of_each(interval_s);
        let what = format!("at {interval_s} s");
        inside(of(&cost), closed(interval_s), 0.03, &what);
        // The same tasks meet each interval, so that costs are compared pair by pair.
        let more: Vec<f64> = cost.iter().zip(&least).map(|(c, l)| c - l).collect();
        let expected = closed(interval_s) - closed(best_s);
        inside(
            of(&more),
            expected,
            0.5,
            &format!("{what}, more than least"),
        );
        assert!(of(&more).lo.unwrap() > 0.0, "{what}");
    }
}

#[test]
fn o17_floor_and_ceiling_keep_a_load_and_a_delay() {
    let (floor_s, ceiling_s) = feasible_intervals(300.0, 50.0, 0.95, 19.0);
    assert_eq!((floor_s, ceiling_s), (6.0, 20.0));
    let at = |interval_s: f64| {
        Fleet {
            run: "horizon = \"1400s\"\nwarm_up = \"200s\"\nreplications = 10\nseed = 18",
            tenant: "count = 300\narrivals = { closed_loop = {} }\nduration = { uniform = { low = \"60s\", high = \"180s\" } }",
            policy: &format!("default = \"{interval_s}s\""),
            ..Fleet::default()
        }
        .run()
    };
    let rate = |results: &Results| {
        results
            .estimate("fleet", "tasks_get_rate_mean_per_s")
            .unwrap()
    };
    let p95_ms = |results: &Results| {
        results
            .estimate("fleet", "completion_latency_p95_ms")
            .unwrap()
    };
    // A poll is sent every interval, to one task or to the next: the load is exact but for the ends of the window.
    let (shortest, longest) = (at(floor_s), at(ceiling_s));
    assert_eq!(rate(&shortest).mean, Some(50.0));
    assert!(p95_ms(&shortest).hi.unwrap() < 19_000.0);
    assert!(rate(&longest).hi.unwrap() < 50.0);
    // A histogram is off by 0.1 % at most.
    assert!((p95_ms(&longest).mean.unwrap() / 19_000.0 - 1.0).abs() < 0.01);
    // Beyond either, one of the limits is broken.
    assert!(rate(&at(0.95 * floor_s)).lo.unwrap() > 50.0);
    assert!(p95_ms(&at(1.05 * ceiling_s)).lo.unwrap() > 19_000.0);
}

// O18: tasks met while they run.

#[test]
fn o18_a_shutdown_meets_long_tasks_more_often_than_short_ones() {
    let median_log = 30_f64.ln();
    for (duration, (mean_s, second_s2)) in [
        ("\"30s\"", constant_moments(30.0)),
        (
            "{ uniform = { low = \"0s\", high = \"60s\" } }",
            uniform_moments(0.0, 60.0),
        ),
        (
            "{ exponential = { mean = \"30s\" } }",
            exponential_moments(30.0),
        ),
        (
            "{ lognormal = { median = \"30s\", sigma = 0.5 } }",
            lognormal_moments(median_log, 0.5),
        ),
    ] {
        let results = Fleet {
            // Ten mean durations fill the fleet.
            run: "horizon = \"400s\"\nreplications = 20\nseed = 18",
            // Each call is held to the end, and its caller waits for it in spite of the abort: for just the time that is left.
            tenant: &format!(
                "arrivals = {{ poisson = {{ rate = \"15/s\" }} }}\nduration = {duration}\nabort = {{ shutdown_at = \"350s\" }}"
            ),
            policy: "first_poll = \"at_once\"\nlong_poll = \"1h\"\nwait = \"ignored\"",
            ..Fleet::default()
        }
        .run();
        let remaining_s = remaining_mean_running_task(mean_s, second_s2);
        mean(
            &results,
            "abort_latency_mean_ms",
            1e3 * remaining_s,
            0.05,
            duration,
        );
        // Little: as many are met as run.
        mean(&results, "aborts", 15.0 * mean_s, 0.05, duration);
    }
}

#[test]
fn o18_the_tasks_that_a_shutdown_meets_are_longer_than_others() {
    for (duration, (mean_s, second_s2)) in [
        ("\"30s\"", constant_moments(30.0)),
        (
            "{ exponential = { mean = \"30s\" } }",
            exponential_moments(30.0),
        ),
        (
            "{ lognormal = { median = \"30s\", sigma = 0.5 } }",
            lognormal_moments(30_f64.ln(), 0.5),
        ),
    ] {
        let shut_down = |abort: &str, policy: &str| {
            Fleet {
                run: "horizon = \"400s\"\nreplications = 20\nseed = 18",
                server: "notifications = {}",
                tenant: &format!(
                    "arrivals = {{ poisson = {{ rate = \"15/s\" }} }}\nduration = {duration}\n\
                     abort = {{ shutdown_at = \"350s\"{abort} }}"
                ),
                policy,
                ..Fleet::default()
            }
            .run()
        };
        // The same tasks twice: what is left of them, and how many requests they have had, the creation and a poll every 2 s. Ends are
        // pushed, so that no task is met which has ended and was not yet seen to.
        let left = shut_down(
            "",
            "first_poll = \"at_once\"\nlong_poll = \"1h\"\nwait = \"ignored\"",
        );
        let so_far = shut_down(
            ", notifications = \"per_request\"",
            "default = \"2s\"\npush = \"replaces\"",
        );
        let of_each = |results: &Results, metric: &str| -> Vec<f64> {
            let values = results.values("fleet", metric);
            values.into_iter().map(Option::unwrap).collect()
        };
        let left_ms = of_each(&left, "abort_latency_mean_ms");
        let requests = of_each(&so_far, "requests_notifications_cancelled");
        let met = of_each(&so_far, "aborts");
        assert_eq!(met, of_each(&left, "aborts"));
        let ages_s = requests
            .iter()
            .zip(&met)
            .map(|(n, met)| 2.0 * (n / met - 0.5));
        let totals_s: Vec<f64> = ages_s
            .zip(left_ms)
            .map(|(age_s, ms)| age_s + ms / 1e3)
            .collect();
        let expected_s = duration_mean_running_task(mean_s, second_s2);
        inside(
            of(&totals_s),
            expected_s,
            0.04,
            &format!("{duration}, in all"),
        );
    }
}

#[test]
fn o18_an_abort_within_every_task_is_another_question() {
    let results = Fleet {
        run: "horizon = \"1s\"\nreplications = 20\nseed = 19",
        tenant: "arrivals = { at_once = { tasks = 2000 } }\nduration = \"30s\"\nabort = { after = { uniform = { low = \"0s\", high = \"30s\" } } }",
        policy: "first_poll = \"at_once\"\nlong_poll = \"1h\"\nwait = \"ignored\"",
        ..Fleet::default()
    }
    .run();
    mean(
        &results,
        "abort_latency_mean_ms",
        15_000.0,
        0.02,
        "half of the duration",
    );
}

// O19: retries in layers.

#[test]
fn o19_each_layer_multiplies_the_requests_of_a_failed_poll() {
    for (attempts, layers) in [(1, 1), (4, 1), (3, 2), (4, 3), (5, 4)] {
        let fleet = |outage: &str| {
            Fleet {
                run: "horizon = \"1h\"\nreplications = 1",
                server: outage,
                tenant: "arrivals = { at_once = {} }\nduration = \"2h\"",
                policy: &format!(
                    "default = \"10min\"\nmax_polls = 2\n\
                     retries = {{ attempts = {attempts}, layers = {layers}, wait = \"10ms\", factor = 1 }}"
                ),
                ..Fleet::default()
            }
            .run()
        };
        let down = fleet("outage = { windows = [{ from = \"0s\", length = \"2h\" }] }");
        let all = retry_amplification(attempts, layers);
        assert_eq!(exact(&down, "fleet", "requests_tasks_get"), 2.0 * all);
        assert_eq!(
            exact(&down, "fleet", "tasks_get_retries"),
            2.0 * (all - 1.0)
        );
        assert_eq!(exact(&down, "fleet", "tasks_gave_up"), 1.0);
        // A server that answers is asked once.
        let up = fleet("");
        assert_eq!(exact(&up, "fleet", "requests_tasks_get"), 2.0);
    }
}
