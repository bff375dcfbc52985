//! A fleet whose best floor and ceiling are known: `choose` finds them to within a step of its grid, `optimise` to within one per cent.
//!
//! Hosts want to follow the servers' hints as far as they can: the share of waits that floor or ceiling change is to be least. Two limits keep them
//! from following all: a load, and the latency of an abort that a sleep holds up. N pollers with log-normal hints H of their own load the server with
//! N·E[1/clamp(H, f, c)] (O8). An abort at any time finds a sleep of I = clamp(H, f, c), which lasts for another uniform share of it (O6b), so that its latency is at most A with
//! probability E[min(A/I, 1)] = A·E[1/clamp(H, A, c)] for A between f and c (O6, O8): a bound on a quantile gives the ceiling, whatever the floor, and the bound on the load
//! then gives the floor. A lower ceiling would change more waits, and need a higher floor, so the pair is the best.

use std::sync::atomic::AtomicBool;

use pollpace::experiment::choose::choose;
use pollpace::experiment::optimise::optimise;
use pollpace::experiment::plan::{Cell, Experiment, Plan};
use pollpace::experiment::store::Store;
use pollpace::experiment::sweep::{Shard, Watch};
use pollpace::scenario::units::Duration;
use pollpace::scenario::{self, LoadError, Scenario};
use pollpace::theory::mean_inverse_clamped_lognormal;

const POLLERS: f64 = 12_000.0;
const MEDIAN_S: f64 = 5.0;
const SIGMA: f64 = 1.5;
/// The bounds of the two objectives.
const RATE_PER_S: f64 = 2_684.0;
const ABORT_P99_S: f64 = 7.8;

/// Offsets and abort times are spread over 48 s and 24 s: many intervals, and whole numbers of 3 s and 8 s, so that phases are even.
const FLEET: &str = r#"
    [run]
    seed = 11
    horizon = "90s"
    warm_up = "50s"
    drain = "none"
    replications = 10
    [[server]]
    name = "s"
    hint = "own"
    [hint.own]
    mix = [{ weight = 1, ms = { lognormal = { median = 5000, sigma = 1.5 } } }]
    [[tenant]]
    name = "pollers"
    count = 12000
    arrivals = { offset = { after = { uniform = { low = "0s", high = "48s" } } } }
    duration = "1h"
    servers = { s = 1 }
    policy = "p"
    [[tenant]]
    name = "quitters"
    count = 12000
    arrivals = { at_once = { at = "50s" } }
    duration = "1h"
    servers = { s = 1 }
    abort = { after = { uniform = { low = "10s", high = "34s" } } }
    policy = "p"
    [policy.p]
    wait = "checked_after_sleep"
    [[objective]]
    metric = "tasks_get_rate_mean_per_s"
    over = "tenant.pollers"
    max = 2684
    [[objective]]
    metric = "abort_latency_p99_ms"
    over = "tenant.quitters"
    max = 7800
"#;

const EXPERIMENT: &str = r#"
    scenario = "-"
    least = "wait_touched_floor + wait_touched_ceiling"
    constraints = ["floor <= ceiling"]
    [[axis]]
    name = "floor"
    path = "policy.p.floor"
    range = { from = "2.4s", to = "3.6s", points = 7, scale = "logarithmic" }
    [[axis]]
    name = "ceiling"
    path = "policy.p.ceiling"
    range = { from = "6.5s", to = "10s", points = 7, scale = "logarithmic" }
"#;

struct Nobody;

impl Watch for Nobody {
    fn plan(&self, _: u64) {}
    fn done(&self) {}
}

fn load(overrides: &[String]) -> Result<Scenario, LoadError> {
    Ok(scenario::parse("fleet", FLEET, overrides)?.scenario)
}

fn plan() -> Plan {
    let experiment: Experiment = scenario::read("experiment", EXPERIMENT).unwrap();
    Plan::new("experiment", experiment, load).unwrap()
}

/// Where a function that rises changes sign.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The best floor and ceiling, s.
fn known() -> (f64, f64) {
    let inverse = |f: f64, c: f64| mean_inverse_clamped_lognormal(MEDIAN_S.ln(), SIGMA, f, c);
    let ceiling = root(ABORT_P99_S, 20.0, |c| {
        0.99 - ABORT_P99_S * inverse(ABORT_P99_S, c)
    });
    let floor = root(1.0, ceiling, |f| RATE_PER_S - POLLERS * inverse(f, ceiling));
    (floor, ceiling)
}

fn bounds(cell: &Cell) -> (f64, f64) {
    let value = |at: usize| Duration::parse(&cell.parameters[at].1).unwrap().0 as f64 / 1e9;
    (value(0), value(1))
}

#[test]
fn the_known_pair_is_at_both_limits() {
    let (floor, ceiling) = known();
    assert!(
        (floor - 3.0).abs() < 0.01 && (ceiling - 8.01).abs() < 0.01,
        "{floor} {ceiling}"
    );
}

#[test]
#[ignore = "a minute: run by .ci/run"]
fn the_known_floor_and_ceiling_are_chosen_and_found() {
    let (floor, ceiling) = known();
    let folder = tempfile::tempdir().unwrap();
    let (plan, store, stop) = (plan(), Store::new(folder.path()), AtomicBool::new(false));

    let cells = plan.run(Shard::WHOLE, &store, &stop, &Nobody).unwrap();
    let chosen = choose(&cells, &plan.cost).unwrap();
    let (f, c) = bounds(&plan.cells[chosen.number]);
    // Seven values each: the ratios of neighbours.
    let (floor_step, ceiling_step) = (1.5f64.powf(1.0 / 6.0), (10.0f64 / 6.5).powf(1.0 / 6.0));
    assert!(
        f / floor < floor_step * 1.002 && floor / f < floor_step * 1.002,
        "{f} {floor}"
    );
    assert!(
        c / ceiling < ceiling_step * 1.002 && ceiling / c < ceiling_step * 1.002,
        "{c} {ceiling}"
    );

    let found = optimise(&plan, &load, 0.003, (&store, &stop, &Nobody)).unwrap();
    let best = &found.points[found.best];
    let (f, c) = bounds(&best.cell);
    println!(
        "known {floor:.4} {ceiling:.4}, found {f} {c}, in {} cells",
        found.points.len()
    );
    assert!(best.result.feasible());
    assert!((f / floor - 1.0).abs() < 0.01, "{f} {floor}");
    assert!((c / ceiling - 1.0).abs() < 0.01, "{c} {ceiling}");
    assert!((found.points.len() as u64) < found.grid / 50);
}
