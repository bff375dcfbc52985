//! The closed forms of `pollpace::theory`, held against the simulator.
//!
//! What is deterministic holds exactly. What is random holds inside the 99.9 % confidence interval over independent
//! replications (Student's t), with fixed seeds; and each interval must be narrow, or it would prove nothing. Quantiles come
//! from histograms that are off by at most 0.1 %, by which their intervals are widened.
//!
//! Designs are fair: durations are uniform over whole intervals where a formula asks for an end that is uniform within
//! its interval, rates are counted over whole cycles or after the start has died away, and each replication gives one
//! independent value.

#[path = "common/theory.rs"]
mod common;

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use common::*;
use pollpace::engine::trace::Follow;
use pollpace::engine::{self, Outcome};
use pollpace::experiment::{Estimate, Results};
use pollpace::model::Model;
use pollpace::scenario::Scenario;
use pollpace::theory::*;

/// How far a quantile of a histogram may be off.
const RESOLUTION: f64 = 0.001;
/// Intervals of the jitters below: nominal 1 s.
const JITTERS: [(&str, f64, f64); 6] = [
    ("\"full\"", 0.0, 1.0),
    ("\"equal\"", 0.5, 1.0),
    ("{ proportional = 0.5 }", 0.5, 1.5),
    ("{ additive = \"500ms\" }", 1.0, 1.5),
    ("{ minus = \"250ms\" }", 0.75, 1.0),
    ("{ window = \"200ms\" }", 0.2, 1.0),
];

impl Fleet<'_> {
    /// A value of one's own from each replication.
    fn observe(&self, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        let scenario = self.scenario();
        let model = Model::new(&scenario);
        (0..scenario.run.replications.0)
            .map(|number| {
                value(&engine::run(&model, number, None, &AtomicBool::new(false)).unwrap())
            })
            .collect()
    }
}

/// The value of a metric of the fleet where all replications agree.
fn exact(results: &Results, metric: &str) -> f64 {
    let values = results.values("fleet", metric);
    assert!(
        values.iter().all(|v| v.is_some() && *v == values[0]),
        "{metric}: {values:?}"
    );
    values[0].unwrap()
}

/// Seconds as the whole milliseconds and nanoseconds that a metric in ms gives.
fn same_ns(found_ms: f64, expected_s: f64, what: &str) {
    let (found, expected) = ((found_ms * 1e6).round(), (expected_s * 1e9).round());
    assert!(
        found == expected,
        "{what}: {found} ns, theory says {expected} ns"
    );
}

fn estimate(results: &Results, metric: &str) -> Estimate {
    results.estimate("fleet", metric).unwrap()
}

/// `expected` lies inside the interval, widened by `resolution`, and the interval is no wider than ± `narrow` of it.
fn inside(estimate: Estimate, expected: f64, narrow: f64, resolution: f64, what: &str) {
    let (lo, hi) = (estimate.lo.unwrap(), estimate.hi.unwrap());
    let half = (hi - lo) / 2.0 / expected;
    println!(
        "{what}: simulated {:.5} ± {:.2} %, theory {expected:.5}",
        estimate.mean.unwrap(),
        100.0 * half
    );
    assert!(
        lo * (1.0 - resolution) <= expected && expected <= hi * (1.0 + resolution),
        "{what}: [{lo}, {hi}] does not hold {expected}"
    );
    assert!(
        half > 0.0 && half <= narrow,
        "{what}: the interval is ± {half} of {expected}, wider than {narrow}"
    );
}

fn mean(results: &Results, metric: &str, expected: f64, narrow: f64, what: &str) {
    inside(
        estimate(results, metric),
        expected,
        narrow,
        0.0,
        &format!("{what}, {metric}"),
    );
}

fn quantile(results: &Results, metric: &str, expected: f64, narrow: f64, what: &str) {
    inside(
        estimate(results, metric),
        expected,
        narrow,
        RESOLUTION,
        &format!("{what}, {metric}"),
    );
}

fn of(values: &[f64]) -> Estimate {
    let values: Vec<Option<f64>> = values.iter().map(|x| Some(*x)).collect();
    Estimate::new(&values, CONFIDENCE)
}

// O1, O2: a fixed interval.

#[test]
fn o1_o2_a_known_duration_takes_known_polls_and_is_seen_at_a_known_time() {
    // (duration, interval), s; the last two divide evenly, once with a quotient that floats miss.
    for (duration_s, interval_s) in [
        (437.5, 25.0),
        (600.0, 5.0),
        (0.4, 1.0),
        (60.0, 20.0),
        (1.1, 0.1),
    ] {
        for (first, convention) in [
            ("after_wait", FirstPoll::AfterInterval),
            ("at_once", FirstPoll::Immediate),
        ] {
            let results = Fleet {
                tenant: &format!("arrivals = {{ at_once = {{}} }}\nduration = \"{duration_s}s\""),
                policy: &format!("default = \"{interval_s}s\"\nfirst_poll = \"{first}\""),
                ..Fleet::default()
            }
            .run();
            let what = format!("D = {duration_s} s, T = {interval_s} s, {first}");
            let polls = polls_fixed_interval(duration_s, interval_s, convention);
            assert_eq!(exact(&results, "polls_per_task_max"), polls, "{what}");
            let delay_s = completion_delay_fixed_interval(duration_s, interval_s);
            same_ns(exact(&results, "completion_latency_max_ms"), delay_s, &what);
        }
    }
}

#[test]
fn o1_o2_durations_over_whole_intervals_are_seen_half_an_interval_late() {
    for (first, convention) in [
        ("after_wait", FirstPoll::AfterInterval),
        ("at_once", FirstPoll::Immediate),
    ] {
        let results = Fleet {
            run: "horizon = \"1s\"\nreplications = 20\nseed = 2",
            tenant: "arrivals = { at_once = { tasks = 2000 } }\nduration = { uniform = { low = \"100s\", high = \"200s\" } }",
            policy: &format!("default = \"20s\"\nfirst_poll = \"{first}\""),
            ..Fleet::default()
        }
        .run();
        let polls = polls_mean_fixed_interval(150.0, 20.0, convention);
        mean(&results, "polls_per_task_mean", polls, 0.01, first);
        let delay_ms = 1e3 * completion_delay_mean_fixed_interval(20.0);
        mean(
            &results,
            "completion_latency_mean_ms",
            delay_ms,
            0.015,
            first,
        );
        let p95_ms = 1e3 * completion_delay_quantile_fixed_interval(0.95, 20.0);
        quantile(&results, "completion_latency_p95_ms", p95_ms, 0.01, first);
    }
}

// O3: exponential durations.

#[test]
fn o3_exponential_durations_are_exact_for_short_and_long_intervals() {
    for interval_s in [10.0, 60.0, 300.0] {
        for (first, convention) in [
            ("after_wait", FirstPoll::AfterInterval),
            ("at_once", FirstPoll::Immediate),
        ] {
            let results = Fleet {
                run: "horizon = \"1s\"\nreplications = 20\nseed = 3",
                tenant: "arrivals = { at_once = { tasks = 2000 } }\nduration = { exponential = { mean = \"60s\" } }",
                policy: &format!("default = \"{interval_s}s\"\nfirst_poll = \"{first}\""),
                ..Fleet::default()
            }
            .run();
            let what = format!("T = {interval_s} s, {first}");
            let polls = polls_mean_exponential(60.0, interval_s, convention);
            mean(&results, "polls_per_task_mean", polls, 0.02, &what);
            let delay_ms = 1e3 * completion_delay_mean_exponential(60.0, interval_s);
            mean(
                &results,
                "completion_latency_mean_ms",
                delay_ms,
                0.015,
                &what,
            );
        }
    }
}

// O4: the load of a fleet.

#[test]
fn o4_an_open_system_polls_half_an_interval_longer_than_its_tasks_run() {
    for (first, convention) in [
        ("after_wait", FirstPoll::AfterInterval),
        ("at_once", FirstPoll::Immediate),
    ] {
        let results = Fleet {
            // The longest of the tasks alive at the end of the warm-up is nearly always younger than it.
            run: "horizon = \"1300s\"\nwarm_up = \"300s\"\nreplications = 20\ndrain = \"none\"\nseed = 4",
            tenant: "arrivals = { poisson = { rate = \"6/s\" } }\nduration = { lognormal = { median = \"20s\", sigma = 0.5 } }",
            policy: &format!("default = \"5s\"\nfirst_poll = \"{first}\""),
            ..Fleet::default()
        }
        .run();
        let duration_s = 20.0 * f64::exp(0.125);
        let rate = aggregate_rate_open(6.0, duration_s, 5.0, convention);
        mean(&results, "tasks_get_rate_mean_per_s", rate, 0.02, first);
    }
}

#[test]
fn o4_intervals_that_follow_durations_load_a_fleet_by_the_mean_of_their_ratio() {
    // Two classes of tasks, each polled at a twentieth of its mean duration.
    let results = Fleet {
        run: "horizon = \"2000s\"\nwarm_up = \"600s\"\nreplications = 20\ndrain = \"none\"\nseed = 5",
        tenant: "arrivals = { poisson = { rate = \"1/s\" } }\nduration = { uniform = { low = \"30s\", high = \"50s\" } }",
        policy: "default = \"2s\"",
        more: "[[tenant]]\nname = \"long\"\nservers = { s = 1 }\npolicy = \"q\"\narrivals = { poisson = { rate = \"1/s\" } }\n\
               duration = { uniform = { low = \"300s\", high = \"500s\" } }\n[policy.q]\ndefault = \"20s\"",
        ..Fleet::default()
    }
    .run();
    let rate = aggregate_rate_open_correlated(2.0, 20.0, FirstPoll::AfterInterval);
    mean(
        &results,
        "tasks_get_rate_mean_per_s",
        rate,
        0.03,
        "D/T = 20",
    );
    // What independence would say is 2.75 times as much.
    assert!(2.0 * (220.0 * 0.275 + 0.5) > 2.7 * rate);
}

#[test]
fn o4_a_closed_system_polls_at_tasks_over_interval_whatever_the_phases() {
    let results = Fleet {
        run: "horizon = \"110s\"\nwarm_up = \"10s\"\nreplications = 5\ndrain = \"none\"",
        tenant: "count = 50\narrivals = { offset = { after = { uniform = { low = \"0s\", high = \"5s\" } } } }\nduration = \"1h\"",
        policy: "default = \"5s\"",
        ..Fleet::default()
    }
    .run();
    let rate = aggregate_rate_closed(50.0, 5.0);
    assert_eq!(exact(&results, "tasks_get_rate_mean_per_s"), rate);
}

#[test]
fn o4_random_intervals_load_a_closed_system_by_their_mean() {
    let results = Fleet {
        run: "horizon = \"600s\"\nwarm_up = \"100s\"\nreplications = 20\ndrain = \"none\"\nseed = 6",
        tenant: "count = 100\narrivals = { offset = { after = { uniform = { low = \"0s\", high = \"5s\" } } } }\nduration = \"1h\"",
        policy: "default = \"5s\"\njitter = \"equal\"",
        ..Fleet::default()
    }
    .run();
    let rate = aggregate_rate_closed(100.0, 3.75);
    mean(
        &results,
        "tasks_get_rate_mean_per_s",
        rate,
        0.002,
        "equal jitter",
    );
}

// O5: a loop that sleeps after the answer.

#[test]
fn o5_a_serial_loop_adds_the_round_trip_to_its_period() {
    let results = Fleet {
        // 90 whole cycles of 1.25 s.
        run: "horizon = \"125s\"\nwarm_up = \"12.5s\"\nreplications = 1\ndrain = \"none\"",
        server: "delay = \"125ms\"",
        tenant: "arrivals = { at_once = {} }\nduration = \"1h\"",
        policy: "default = \"1s\"",
        ..Fleet::default()
    }
    .run();
    let rate = serial_loop_rate_per_s(1.0, 0.25);
    assert_eq!(exact(&results, "tasks_get_rate_mean_per_s"), rate);
}

#[test]
fn o5_the_end_is_seen_later_by_the_way_back_of_the_answer() {
    // A round trip of 0.4 s, read at half of it; with 0.2 s of service between legs of 0.1 s, at three quarters.
    for (server, read_fraction) in [
        ("delay = \"200ms\"", 0.5),
        (
            "delay = \"100ms\"\ntasks_get = { workers = 2000, service = \"200ms\" }",
            0.75,
        ),
    ] {
        let results = Fleet {
            run: "horizon = \"100s\"\nreplications = 20\nseed = 7",
            server,
            // Ten whole cycles of 5.4 s.
            tenant: "arrivals = { at_once = { tasks = 2000 } }\nduration = { uniform = { low = \"54s\", high = \"108s\" } }",
            policy: "default = \"5s\"",
            ..Fleet::default()
        }
        .run();
        let delay_ms = 1e3 * completion_delay_mean_serial_loop(5.0, 0.4, read_fraction);
        mean(
            &results,
            "completion_latency_mean_ms",
            delay_ms,
            0.015,
            server,
        );
        assert_eq!(exact(&results, "store_wait_max_ms"), 0.0, "no one waits");
    }
}

// O6, O7: random intervals.

#[test]
fn o6_o7_jitter_changes_delay_and_polls_as_renewal_theory_says() {
    for (jitter, low_s, high_s) in JITTERS {
        let results = Fleet {
            run: "horizon = \"1s\"\nreplications = 20\nseed = 8",
            // Fifty intervals and more: what the start leaves is far below a thousandth, and ten whole ones wide.
            tenant: "arrivals = { at_once = { tasks = 1200 } }\nduration = { uniform = { low = \"50s\", high = \"60s\" } }",
            policy: &format!("default = \"1s\"\njitter = {jitter}"),
            ..Fleet::default()
        }
        .run();
        let (mean_s, second_moment_s2) = uniform_moments(low_s, high_s);
        let delay_ms = 1e3 * residual_mean_uniform(low_s, high_s);
        assert!((delay_ms - 1e3 * residual_mean(mean_s, second_moment_s2)).abs() < 1e-9);
        mean(
            &results,
            "completion_latency_mean_ms",
            delay_ms,
            0.03,
            jitter,
        );
        let p95_s = residual_quantile_uniform(0.95, low_s, high_s);
        quantile(
            &results,
            "completion_latency_p95_ms",
            1e3 * p95_s,
            0.02,
            jitter,
        );
        let polls = polls_mean_renewal(55.0, mean_s, second_moment_s2);
        mean(&results, "polls_per_task_mean", polls, 0.005, jitter);
        let within = at_most(&results, p95_s);
        assert!(
            (within - residual_cdf_uniform(p95_s, low_s, high_s)).abs() < 0.01,
            "{jitter}: {within} of the delays lie within the quantile"
        );
    }
}

/// Share of the completion latencies up to `delay_s`.
fn at_most(results: &Results, delay_s: f64) -> f64 {
    let histogram = &results.pairs[0].completion;
    histogram.at_most((delay_s * 1e9) as u64) as f64 / histogram.count() as f64
}

// O6b: aborts.

/// Aborts of hour-long tasks, at an age that is uniform over whole intervals.
fn aborted(seed: u32, abort: &str, server: &str, policy: &str) -> Results {
    Fleet {
        run: &format!("horizon = \"1s\"\nreplications = 20\nseed = {seed}"),
        server,
        tenant: &format!(
            "arrivals = {{ at_once = {{ tasks = 1500 }} }}\nduration = \"1h\"\nabort = {{ {abort} }}"
        ),
        policy,
        ..Fleet::default()
    }
    .run()
}

const AT_RANDOM: &str = "after = { uniform = { low = \"100s\", high = \"200s\" } }";

#[test]
fn o6b_an_interruptible_sleep_settles_at_once_but_for_a_request_in_flight() {
    let results = aborted(9, AT_RANDOM, "", "default = \"5s\"");
    let nothing_ms = 1e3 * abort_latency_mean_interruptible(5.0, 0.0);
    assert_eq!(exact(&results, "abort_latency_max_ms"), nothing_ms);
    assert_eq!(exact(&results, "aborts"), 1500.0);
    let cut = aborted(9, AT_RANDOM, "delay = \"500ms\"", "default = \"3s\"");
    assert_eq!(
        exact(&cut, "abort_latency_max_ms"),
        0.0,
        "the request is cut too"
    );
    let waits = format!("{AT_RANDOM}, request = \"waits\"");
    // 25 whole cycles of 4 s.
    let results = aborted(9, &waits, "delay = \"500ms\"", "default = \"3s\"");
    let rest_ms = 1e3 * abort_latency_mean_interruptible(3.0, 1.0);
    mean(
        &results,
        "abort_latency_mean_ms",
        rest_ms,
        0.06,
        "the request is waited for",
    );
}

#[test]
fn o6b_a_flag_looked_at_after_the_sleep_costs_the_rest_of_the_sleep() {
    let policy = "default = \"5s\"\nwait = \"checked_after_sleep\"";
    let results = aborted(10, AT_RANDOM, "", policy);
    let rest_ms = 1e3 * abort_latency_mean_after_sleep(5.0, 25.0);
    mean(&results, "abort_latency_mean_ms", rest_ms, 0.02, "T = 5 s");
    let p95_ms = 1e3 * residual_quantile_uniform(0.95, 5.0, 5.0);
    quantile(&results, "abort_latency_p95_ms", p95_ms, 0.01, "T = 5 s");

    let results = aborted(10, AT_RANDOM, "", &format!("{policy}\njitter = \"full\""));
    let (mean_s, second_moment_s2) = uniform_moments(0.0, 5.0);
    let rest_ms = 1e3 * abort_latency_mean_after_sleep(mean_s, second_moment_s2);
    mean(
        &results,
        "abort_latency_mean_ms",
        rest_ms,
        0.025,
        "full jitter",
    );
}

/// The watch of a server, U(0, w) and one call, has the law of a slice: the format has no watcher of its own, so
/// its functions are held to the sliced sleep with a call of no length.
#[test]
fn o6b_a_sliced_sleep_costs_half_a_slice() {
    let results = aborted(
        11,
        AT_RANDOM,
        "",
        "default = \"20s\"\nwait = { sliced = \"2s\" }",
    );
    let slice_ms = 1e3 * abort_latency_mean_sliced(2.0);
    mean(&results, "abort_latency_mean_ms", slice_ms, 0.02, "slices");
    let p95_ms = 1e3 * abort_latency_quantile_sliced(0.95, 2.0);
    quantile(&results, "abort_latency_p95_ms", p95_ms, 0.01, "slices");
    assert_eq!(slice_ms, 1e3 * abort_latency_mean_watched(2.0, 0.0));
    assert_eq!(p95_ms, 1e3 * abort_latency_quantile_watched(0.95, 2.0, 0.0));
}

#[test]
fn o6b_an_ignored_abort_leaks_every_poll_until_the_end() {
    for (duration_s, abort_s) in [(600.0, 60.0), (603.0, 60.0), (600.0, 62.0), (600.0, 599.0)] {
        let results = Fleet {
            tenant: &format!(
                "arrivals = {{ at_once = {{}} }}\nduration = \"{duration_s}s\"\nabort = {{ after = \"{abort_s}s\" }}"
            ),
            policy: "default = \"5s\"\nwait = \"ignored\"",
            run: "horizon = \"1h\"\nreplications = 1",
            ..Fleet::default()
        }
        .run();
        let what = format!("D = {duration_s} s, abort at {abort_s} s");
        let leaked = leaked_polls_fixed_interval(duration_s, abort_s, 5.0);
        assert_eq!(exact(&results, "leaked_polls"), leaked, "{what}");
        same_ns(
            exact(&results, "abort_latency_max_ms"),
            abort_latency_ignored(duration_s, abort_s, 5.0),
            &what,
        );
    }
}

#[test]
fn o6b_leaked_loops_are_as_many_as_little_says() {
    // Each loop outlives its abort by 40 s; every loop alive sends a leaked poll every 5 s.
    let results = Fleet {
        run: "horizon = \"1100s\"\nwarm_up = \"100s\"\nreplications = 20\ndrain = \"none\"\nseed = 12",
        tenant: "arrivals = { poisson = { rate = \"4/s\" } }\nduration = \"60s\"\nabort = { after = \"20s\" }",
        policy: "default = \"5s\"\nwait = \"ignored\"",
        ..Fleet::default()
    }
    .run();
    let polls = leaked_loops_mean(4.0, 40.0) / 5.0 * 1000.0;
    mean(&results, "leaked_polls", polls, 0.02, "leaked loops");
}

// O8: hints between a floor and a ceiling.

/// The load of tasks that never end, their hints drawn as said.
fn hinted(seed: u32, drawn: &str, ms: &str) -> Results {
    Fleet {
        // Phases are spread over the longest wait, and the warm-up is longer than both together.
        run: &format!("horizon = \"380s\"\nwarm_up = \"140s\"\nreplications = 20\ndrain = \"none\"\nseed = {seed}"),
        server: "hint = \"h\"",
        tenant: "count = 800\narrivals = { offset = { after = { uniform = { low = \"0s\", high = \"60s\" } } } }\nduration = \"1h\"",
        policy: "floor = \"1s\"\nceiling = \"60s\"",
        more: &format!("[hint.h]\ndrawn = \"{drawn}\"\nmix = [{{ ms = {ms} }}]"),
    }
    .run()
}

#[test]
fn o8_hints_of_tasks_load_a_fleet_by_the_mean_of_their_inverse() {
    let log_mean = libm::log(5.0);
    let results = hinted(
        13,
        "per_task",
        "{ lognormal = { median = 5000, sigma = 1.5 } }",
    );
    let rate = 800.0 * mean_inverse_clamped_lognormal(log_mean, 1.5, 1.0, 60.0);
    mean(
        &results,
        "tasks_get_rate_mean_per_s",
        rate,
        0.03,
        "lognormal",
    );
    // The naive N/E[clamp] is a quarter of it.
    assert!(rate > 4.0 * 800.0 / mean_clamped_lognormal(log_mean, 1.5, 1.0, 60.0));

    let results = hinted(14, "per_task", "{ uniform = { low = 100, high = 120000 } }");
    let rate = 800.0 * mean_inverse_clamped_uniform(0.1, 120.0, 1.0, 60.0);
    mean(&results, "tasks_get_rate_mean_per_s", rate, 0.06, "uniform");
}

#[test]
fn o8_hints_of_answers_load_a_fleet_by_the_inverse_of_their_mean() {
    let results = hinted(
        15,
        "per_answer",
        "{ uniform = { low = 100, high = 20000 } }",
    );
    let interval_s = mean_clamped_uniform(0.1, 20.0, 1.0, 60.0);
    let rate = aggregate_rate_closed(800.0, interval_s);
    mean(
        &results,
        "tasks_get_rate_mean_per_s",
        rate,
        0.01,
        "per answer",
    );
}

#[test]
fn o8_tasks_are_seen_half_their_own_interval_late() {
    for (ms, interval_s, narrow) in [
        (
            "{ lognormal = { median = 5000, sigma = 1.5 } }",
            mean_clamped_lognormal(libm::log(5.0), 1.5, 1.0, 60.0),
            0.05,
        ),
        (
            "{ uniform = { low = 100, high = 120000 } }",
            mean_clamped_uniform(0.1, 120.0, 1.0, 60.0),
            0.03,
        ),
    ] {
        let results = Fleet {
            run: "horizon = \"1s\"\nreplications = 20\nseed = 16",
            server: "hint = \"h\"",
            // Many intervals wide, even of the longest.
            tenant: "arrivals = { at_once = { tasks = 1000 } }\nduration = { uniform = { low = \"120s\", high = \"720s\" } }",
            policy: "floor = \"1s\"\nceiling = \"60s\"",
            more: &format!("[hint.h]\nmix = [{{ ms = {ms} }}]"),
        }
        .run();
        mean(
            &results,
            "completion_latency_mean_ms",
            1e3 * interval_s / 2.0,
            narrow,
            ms,
        );
    }
}

// O9: bursts.

#[test]
fn o9_a_burst_drains_one_service_at_a_time() {
    let results = Fleet {
        server: "tasks_get = { service = \"100ms\" }",
        tenant: "arrivals = { at_once = { tasks = 40 } }\nduration = \"0s\"",
        policy: "first_poll = \"at_once\"",
        ..Fleet::default()
    }
    .run();
    let mean_s = burst_wait_mean(40, 0.1);
    same_ns(exact(&results, "store_wait_mean_ms"), mean_s, "mean wait");
    let last_s = burst_wait_max(40, 0.1);
    same_ns(exact(&results, "store_wait_max_ms"), last_s, "last wait");
    let drain_s = burst_drain(40, 0.1);
    same_ns(exact(&results, "store_latency_max_ms"), drain_s, "drain");
    assert_eq!(exact(&results, "tasks_get_rate_1s_peak_per_s"), 40.0);
}

#[test]
fn o9_a_burst_spread_over_a_window_trades_its_peak_for_delay() {
    let spread_s = spread_needed(3000, 10.0);
    let results = Fleet {
        run: &format!("horizon = \"{spread_s}s\"\nreplications = 20\nseed = 17"),
        tenant: "arrivals = { at_once = { tasks = 3000 } }\nduration = \"0s\"",
        policy: &format!("default = \"{spread_s}s\"\njitter = \"full\""),
        ..Fleet::default()
    }
    .run();
    let rate = spread_peak_rate_per_s(3000, spread_s);
    assert_eq!(exact(&results, "tasks_get_rate_mean_per_s"), rate);
    let delay_ms = 1e3 * spread_delay_mean(spread_s);
    mean(
        &results,
        "effective_interval_mean_ms",
        delay_ms,
        0.015,
        "spread",
    );
}

#[test]
fn o9_polls_of_random_phases_fill_a_bucket_binomially() {
    // One bucket of 1 s after the first cycle; every replication draws the phases anew.
    let mut counts = Fleet {
        run: "horizon = \"41s\"\nwarm_up = \"40s\"\nreplications = 1000\ndrain = \"none\"\nseed = 18",
        tenant: "count = 300\narrivals = { offset = { after = { uniform = { low = \"0s\", high = \"30s\" } } } }\nduration = \"1h\"",
        policy: "default = \"30s\"\nfirst_poll = \"at_once\"",
        ..Fleet::default()
    }
    .observe(|outcome| outcome.pairs[0].sent as f64);
    let expected = bucket_mean_random_phases(300, 1.0, 30.0);
    inside(of(&counts), expected, 0.04, 0.0, "polls in a bucket");
    // Order statistics that hold the 95 % quantile with 99.9 %: ranks np ± 3.29 √(np(1 - p)).
    counts.sort_by(f64::total_cmp);
    let (n, p) = (counts.len() as f64, 0.95);
    let spread = 3.29 * (n * p * (1.0 - p)).sqrt();
    let (lo, hi) = (
        counts[(n * p - spread) as usize],
        counts[(n * p + spread).ceil() as usize],
    );
    let quantile = bucket_quantile_random_phases(p, 300, 1.0, 30.0);
    println!("95 % quantile of a bucket: [{lo}, {hi}], theory {quantile}");
    assert!(lo <= quantile && quantile <= hi && hi - lo <= 2.0);
}

// O12: queues of Poisson polls. Each task sends one poll, at once, and is seen ended by it.

#[test]
fn o12_poisson_polls_wait_as_pollaczek_and_khinchine_say() {
    let second_moments = [
        ("\"20ms\"", 0.0004),
        ("{ exponential = { mean = \"20ms\" } }", 0.0008),
        ("{ lognormal = { mean = \"20ms\", cv = 1.0 } }", 0.0008),
    ];
    for (service, second_moment_s2) in second_moments {
        let results = Fleet {
            run: "horizon = \"1060s\"\nwarm_up = \"60s\"\nreplications = 20\nseed = 19",
            server: &format!("tasks_get = {{ service = {service} }}"),
            tenant: "arrivals = { poisson = { rate = \"30/s\" } }\nduration = \"0s\"",
            policy: "first_poll = \"at_once\"",
            ..Fleet::default()
        }
        .run();
        let wait_ms = 1e3 * wait_mean_mg1(30.0, 0.02, second_moment_s2);
        mean(&results, "store_wait_mean_ms", wait_ms, 0.05, service);
        if second_moment_s2 == 0.0004 {
            assert!((wait_ms - 1e3 * wait_mean_md1(30.0, 0.02)).abs() < 1e-9);
        }
        mean(&results, "utilisation", 0.6, 0.01, service);
        // Little's law, of the queue.
        let waiting = 30.0 * wait_ms / 1e3;
        mean(&results, "queue_length_time_mean", waiting, 0.06, service);
    }
}

// O13: queues of periodic polls.

#[test]
fn o13_periodic_polls_of_random_phases_wait_as_roberts_and_virtamo_say() {
    let fleet = Fleet {
        // From the third cycle on the queue repeats itself; exactly one cycle is observed.
        run: "horizon = \"150s\"\nwarm_up = \"100s\"\nreplications = 1000\ndrain = \"none\"\nseed = 20",
        server: "tasks_get = { service = \"1s\" }",
        tenant: "count = 40\narrivals = { offset = { after = { uniform = { low = \"0s\", high = \"50s\" } } } }\nduration = \"1h\"",
        policy: "default = \"50s\"\npace = \"fixed_rate\"\nfirst_poll = \"at_once\"",
        ..Fleet::default()
    };
    let waits = |outcome: &Outcome| outcome.pairs[0].store_wait.clone();
    let mean_s = fleet.observe(|o| waits(o).sum() as f64 / 40e9);
    let expected_s = wait_mean_ndd1(40, 50.0, 1.0);
    inside(of(&mean_s), expected_s, 0.05, 0.0, "mean wait");
    assert!(
        expected_s < 0.75 * wait_mean_md1(0.8, 1.0),
        "M/D/1 is far above"
    );

    // Of each cycle's 40 polls, the share that waits no longer than the quantile; its cell is 0.1 % wide.
    let p95_s = wait_quantile_ndd1(0.95, 40, 50.0, 1.0);
    let within = of(&fleet.observe(|o| waits(o).at_most((p95_s * 1e9) as u64) as f64 / 40.0));
    let cell = |side: f64| 1.0 - wait_tail_ndd1(p95_s * (1.0 + side * RESOLUTION), 40, 50.0, 1.0);
    println!("within {p95_s:.4} s: {within:?}, theory 0.95");
    assert!(within.lo.unwrap() <= cell(1.0) && cell(-1.0) <= within.hi.unwrap());
    assert!(within.hi.unwrap() - within.lo.unwrap() < 0.03);

    // The work that an arbitrary moment finds: its mean over time is the integral of its tail.
    let busy = of(&fleet.observe(|o| o.servers[0].busy_ns as f64 / 50e9));
    assert!((busy.mean.unwrap() - virtual_wait_tail_ndd1(0.0, 40, 50.0, 1.0)).abs() < 1e-9);
}

// O14: growing waits.

#[test]
fn o14_a_geometric_backoff_sends_known_polls() {
    let cases = [
        (1000.0, 1.0, 2.0, f64::INFINITY),
        (3600.0, 5.0, 1.5, f64::INFINITY),
        (7.0, 0.02, 2.0, f64::INFINITY),
        (86_400.0, 0.5, 2.0, f64::INFINITY),
        (100.0, 15.0, 2.0, 120.0),
        (250.0, 15.0, 2.0, 120.0),
        (500.0, 15.0, 2.0, 120.0),
        (300.0, 5.0, 1.5, 45.0),
    ];
    for (duration_s, first_s, factor, ceiling_s) in cases {
        let cap = if ceiling_s.is_finite() {
            format!(", cap = \"{ceiling_s}s\"")
        } else {
            String::new()
        };
        let fleet = Fleet {
            tenant: &format!("arrivals = {{ at_once = {{}} }}\nduration = \"{duration_s}s\""),
            policy: &format!(
                "backoff = {{ geometric = {{ initial = \"{first_s}s\", factor = {factor}{cap} }} }}"
            ),
            ..Fleet::default()
        };
        let what = format!("D = {duration_s} s, a = {first_s} s, g = {factor}, C = {ceiling_s} s");
        let results = fleet.run();
        let polls = polls_geometric_backoff(duration_s, first_s, factor, ceiling_s);
        assert_eq!(exact(&results, "polls_per_task_max"), polls, "{what}");
        // Each wait is rounded to whole nanoseconds: half of one a poll at the most.
        let found_s = exact(&results, "completion_latency_max_ms") / 1e3;
        let delay_s = completion_delay_geometric_backoff(duration_s, first_s, factor, ceiling_s);
        assert!(
            (delay_s - found_s).abs() <= polls * 0.5e-9 + 1e-9,
            "{what}: {found_s} s, theory says {delay_s} s"
        );
        let latest_s = detection_bound_geometric_backoff(duration_s, first_s, factor);
        assert!(duration_s + found_s <= latest_s + 1e-9, "{what}");

        let sent: Vec<f64> = sent_ns(&fleet.scenario(), 0)
            .iter()
            .map(|ns| *ns as f64 / 1e9)
            .collect();
        let expected = backoff_send_times(first_s, factor, 0.0, ceiling_s, duration_s);
        assert_eq!(sent.len(), expected.len(), "{what}");
        for (found, expected) in sent.iter().zip(&expected) {
            assert!((found - expected).abs() < polls * 1e-9, "{what}: {sent:?}");
        }
    }
}

#[test]
fn o14_additive_waits_are_those_of_the_recursion() {
    let scenario = Fleet {
        tenant: "arrivals = { at_once = {} }\nduration = \"200s\"",
        policy: "default = \"5s\"\nbackoff = { additive = { step = \"3s\", cap = \"20s\" } }",
        ..Fleet::default()
    }
    .scenario();
    let expected = backoff_send_times(5.0, 1.0, 3.0, 20.0, 200.0);
    let expected: Vec<u64> = expected.iter().map(|s| (s * 1e9) as u64).collect();
    assert_eq!(sent_ns(&scenario, 0), expected);
}

/// When the polls of the first task of a replication are sent.
fn sent_ns(scenario: &Scenario, replication: u32) -> Vec<u64> {
    let follow = Follow {
        tenant: None,
        number: 1,
    };
    let model = Model::new(scenario);
    let outcome = engine::run(&model, replication, Some(follow), &AtomicBool::new(false)).unwrap();
    let rows = outcome.story.unwrap().rows;
    rows.iter()
        .filter_map(|r| r.poll.as_ref().map(|p| p.sent))
        .collect()
}

#[test]
fn o14_log_uniform_durations_are_seen_late_by_a_fixed_ratio() {
    // Eight powers of the factor, from a thousand first waits on: a grid finer than the interval's width.
    for factor in [1.5f64, 2.0, 3.0] {
        let points = 4096;
        let mut csv = String::from("s\n");
        for i in 0..points {
            let power = 8.0 * (f64::from(i) + 0.5) / f64::from(points);
            writeln!(csv, "{}", 1e3 * factor.powf(power)).unwrap();
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), csv).unwrap();
        let tenants = 400;
        let fleet = Fleet {
            run: "horizon = \"1s\"\nreplications = 8\nseed = 21",
            tenant: &format!(
                "count = {tenants}\narrivals = {{ at_once = {{}} }}\nduration = {{ empirical = {{ file = {:?}, column = \"s\", unit = \"1s\" }} }}",
                file.path()
            ),
            policy: &format!(
                "backoff = {{ geometric = {{ initial = \"1s\", factor = {factor} }} }}"
            ),
            ..Fleet::default()
        };
        // The ratio is one of each task, so every task is followed in turn.
        let scenario = fleet.scenario();
        let model = Model::new(&scenario);
        let mut ratios = Vec::new();
        for number in 1..=tenants {
            let follow = Follow {
                tenant: None,
                number,
            };
            let replication = (number % 8) as u32;
            let story = engine::run(&model, replication, Some(follow), &AtomicBool::new(false))
                .unwrap()
                .story
                .unwrap();
            let at = |event: &str| story.rows.iter().find(|r| r.event == event).unwrap().at;
            ratios.push(at("settled") as f64 / at("terminal") as f64);
        }
        let expected = detection_ratio_log_uniform(factor);
        inside(of(&ratios), expected, 0.06, 0.0, &format!("g = {factor}"));
        assert!(ratios.iter().all(|r| (1.0..=factor * 1.001).contains(r)));
    }
}
