//! Do 95 % intervals hold the truth in 95 % of the seeds?
//!
//! Tasks come as a Poisson stream and run for a time that is uniform over whole poll intervals, so that the time from an end to the
//! next poll is uniform over one interval, exactly. No task runs for longer than the warm-up, so the stream of polls is stationary
//! where it is observed; every task that is counted is followed to its end. The truth is that of `theory`, with nothing left over.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use pollpace::experiment::{self, Estimate, Results};
use pollpace::scenario::{self, Scenario};
use pollpace::theory::{
    FirstPoll, aggregate_rate_open, completion_delay_mean_fixed_interval,
    completion_delay_quantile_fixed_interval,
};
use rayon::prelude::*;

/// Seeds, from 1 on.
const SEEDS: u64 = 1000;
/// Replications that an interval is made of.
const SIZES: [usize; 3] = [5, 10, 30];
/// The observed interval, s.
const LENGTH_S: f64 = 50.0;
const INTERVAL_S: f64 = 1.0;
const LEVEL: f64 = 0.95;

const RATE: &str = "tasks_get_rate_mean_per_s";
const LATENCY: &str = "completion_latency_mean_ms";
const P95: &str = "completion_latency_p95_ms";
const POLLS: &str = "polls_per_task_mean";

/// A fleet that polls each second, without delays.
fn fleet(arrivals_per_s: f64, duration: &str) -> Scenario {
    let text = format!(
        r#"
        [run]
        horizon = "54s"
        warm_up = "4s"
        replications = 30
        confidence = {LEVEL}
        [[server]]
        name = "s"
        [[tenant]]
        name = "t"
        arrivals = {{ poisson = {{ rate = "{arrivals_per_s}/s" }} }}
        duration = {duration}
        servers = {{ s = 1 }}
        policy = "p"
        [policy.p]
        default = "{INTERVAL_S}s"
        "#
    );
    match scenario::parse("coverage", &text, &[]) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}"),
    }
}

/// A metric with its truth.
struct Asked {
    what: &'static str,
    metric: &'static str,
    truth: f64,
}

/// How often the intervals held the truth: for each metric asked, for each size.
fn shares(scenario: &Scenario, asked: &[Asked]) -> Vec<[f64; SIZES.len()]> {
    let runs: Vec<Vec<[bool; SIZES.len()]>> = (1..=SEEDS)
        .into_par_iter()
        .map(|seed| {
            let mut scenario = scenario.clone();
            scenario.run.seed = seed;
            let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
            asked.iter().map(|a| held(&results, a)).collect()
        })
        .collect();
    let share = |metric: usize, size: usize| {
        runs.iter().filter(|run| run[metric][size]).count() as f64 / SEEDS as f64
    };
    (0..asked.len())
        .map(|metric| std::array::from_fn(|size| share(metric, size)))
        .collect()
}

/// Do the intervals of the first replications of a run hold the truth? That of all of them is the one that the run gives.
fn held(results: &Results, asked: &Asked) -> [bool; SIZES.len()] {
    let values = results.values("fleet", asked.metric);
    SIZES.map(|size| {
        let estimate = Estimate::new(&values[..size], LEVEL);
        if size == values.len() {
            assert_eq!(results.estimate("fleet", asked.metric), Some(estimate));
        }
        let (lo, hi) = (estimate.lo.unwrap(), estimate.hi.unwrap());
        lo <= asked.truth && asked.truth <= hi
    })
}

/// Mean nearest-rank p95 of as many values, uniform over the poll interval, as tasks come in the observed interval (at least one), in s:
/// value ⌈pn⌉ of n has the mean ⌈pn⌉ ÷ (n + 1) (David & Nagaraja, *Order Statistics*, 2.1).
fn p95_mean_s(arrivals_per_s: f64) -> f64 {
    let mean = arrivals_per_s * LENGTH_S;
    let chance = |n: f64| libm::exp(n * libm::log(mean) - mean - libm::lgamma(n + 1.0));
    let (mut sum, mut weight) = (0.0, 0.0);
    for n in 1..(2.0 * mean) as u32 + 100 {
        let n = f64::from(n);
        weight += chance(n);
        sum += chance(n) * libm::ceil(0.95 * n) / (n + 1.0);
    }
    INTERVAL_S * sum / weight
}

/// Mean polls of a task whose duration is log-normal: Σ P(D > kT), the chance that poll k + 1 is sent.
fn polls_mean_lognormal(median_s: f64, sigma: f64) -> f64 {
    let beyond = |k: u32| {
        let z = libm::log(f64::from(k) * INTERVAL_S / median_s) / sigma;
        0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
    };
    1.0 + (1..1_000_000).map(beyond).sum::<f64>()
}

/// Shares of seeds in which a sound interval of 95 % may hold the truth.
fn sound(share: f64) -> bool {
    (0.93..=0.97).contains(&share)
}

/// The lines of the measured table.
fn lines(table: &mut String, case: &str, asked: &[Asked], shares: &[[f64; SIZES.len()]]) {
    for (asked, shares) in asked.iter().zip(shares) {
        let _ = write!(table, "| {case} | {} | {:.2} |", asked.what, asked.truth);
        for share in shares {
            let _ = write!(table, " {:.1} % |", 100.0 * share);
        }
        table.push('\n');
    }
}

/// Rate, mean latency, p95 latency, and that p95 against the mean of such quantiles.
fn asked(arrivals_per_s: f64) -> [Asked; 4] {
    let rate_per_s = aggregate_rate_open(arrivals_per_s, 2.0, INTERVAL_S, FirstPoll::AfterInterval);
    let latency = |what, metric, truth_s: f64| Asked {
        what,
        metric,
        truth: 1000.0 * truth_s,
    };
    [
        Asked {
            what: "mean `tasks/get` rate (1/s)",
            metric: RATE,
            truth: rate_per_s,
        },
        latency(
            "mean completion latency (ms)",
            LATENCY,
            completion_delay_mean_fixed_interval(INTERVAL_S),
        ),
        latency(
            "p95 completion latency (ms)",
            P95,
            completion_delay_quantile_fixed_interval(0.95, INTERVAL_S),
        ),
        latency(
            "… against the mean of such a p95",
            P95,
            p95_mean_s(arrivals_per_s),
        ),
    ]
}

#[test]
#[ignore = "runs 90,000 replications: a minute or two"]
fn intervals_of_95_percent_hold_the_truth_in_93_to_97_percent_of_1000_seeds() {
    let uniform = "{ uniform = { low = \"1s\", high = \"3s\" } }";
    let mut table = String::from(
        "| tasks in a replication | metric | truth | 5 replications | 10 | 30 |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    let many = asked(100.0);
    let of_many = shares(&fleet(100.0, uniform), &many);
    lines(&mut table, "5,000", &many, &of_many);
    let few = asked(2.0);
    let of_few = shares(&fleet(2.0, uniform), &few);
    lines(&mut table, "100", &few, &of_few);
    let heavy = [Asked {
        what: "mean polls per task, durations log-normal with σ = 2",
        metric: POLLS,
        truth: polls_mean_lognormal(2.0, 2.0),
    }];
    let heavy_tailed = "{ lognormal = { median = \"2s\", sigma = 2.0 } }";
    let of_heavy = shares(&fleet(1.0, heavy_tailed), &heavy);
    lines(&mut table, "50", &heavy, &of_heavy);
    println!("{table}");

    assert!(of_many.iter().flatten().all(|share| sound(*share)));
    // A quantile of few tasks is not, on average, that of all: an interval for the one need not hold the other.
    let unbiased = [&of_few[0], &of_few[1], &of_few[3]];
    assert!(unbiased.into_iter().flatten().all(|share| sound(*share)));
    assert!(of_few[2][2] < 0.93, "the page says that it falls short");
    // A mean that rests on few tasks is skewed.
    let short = of_heavy.iter().flatten().all(|share| *share < 0.93);
    assert!(short, "the page says that it falls short");
    measured_page(&table);
}

#[test]
fn the_bias_of_a_quantile_of_5000_tasks_is_far_below_its_standard_error() {
    let deviation_s = (0.95_f64 * 0.05 / (100.0 * LENGTH_S)).sqrt() * INTERVAL_S;
    let bias_s = 0.95 * INTERVAL_S - p95_mean_s(100.0);
    for (replications, share) in [(5.0, 0.07), (10.0, 0.1), (30.0, 0.18)] {
        let standard_error_s = deviation_s / f64::sqrt(replications);
        assert!(0.0 < bias_s && bias_s < share * standard_error_s);
    }
}

/// The page of statistics has the measured table.
fn measured_page(table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/statistics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (start, end) = ("<!-- measured by tests/coverage.rs -->\n", "<!-- end -->\n");
    let (before, rest) = page.split_once(start).expect("the start of the table");
    let (written, after) = rest.split_once(end).expect("the end of the table");
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        std::fs::write(path, [before, start, table, end, after].concat()).unwrap();
    } else {
        assert!(
            written == table,
            "docs/statistics.md is out of date: run the test with POLLPACE_WRITE_DOCS=1"
        );
    }
}
