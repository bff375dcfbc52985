//! How the tests of cases run a scenario of `models/cases/` and read its values.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pollpace::experiment::{self, Results};
use pollpace::scenario::{self, Scenario};

/// The file of a case.
pub fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/cases/{name}.toml"))
}

pub fn load(name: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| o.to_string()).collect();
    let loaded = scenario::load(&case(name), &overrides).unwrap_or_else(|e| panic!("{e}"));
    loaded.scenario
}

pub fn run(name: &str, overrides: &[&str]) -> Results {
    experiment::run(&load(name, overrides), &AtomicBool::new(false), |_| {}).unwrap()
}

/// The mean over the replications of a metric that is defined in each.
pub fn mean(results: &Results, group: &str, metric: &str) -> f64 {
    let estimate = results
        .estimate(group, metric)
        .unwrap_or_else(|| panic!("no {metric} of {group}"));
    assert_eq!(
        estimate.n as usize,
        results.replications.len(),
        "{metric} of {group}"
    );
    estimate.mean.unwrap()
}

#[track_caller]
pub fn exactly(value: f64, expected: f64) {
    within(value, expected, 1e-9 * expected.abs());
}

#[track_caller]
pub fn within(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value}, expected {expected} ± {tolerance}"
    );
}

/// Inside a relative tolerance.
#[track_caller]
pub fn near(value: f64, expected: f64, tolerance: f64) {
    within(value, expected, tolerance * expected.abs());
}
