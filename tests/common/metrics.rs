//! How the tests of metrics run a story and read its values.

use std::sync::atomic::AtomicBool;

use pollpace::experiment::{self, Results};
use pollpace::scenario::{self, Scenario};

pub fn parse(text: &str) -> Scenario {
    match scenario::parse("metrics", text, &[]) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{errors}\n{text}"),
    }
}

pub fn run(text: &str) -> Results {
    experiment::run(&parse(text), &AtomicBool::new(false), |_| {}).unwrap()
}

/// The value of the only replication; a censored quantile is undefined too.
pub fn value(results: &Results, group: &str, metric: &str) -> Option<f64> {
    let [value] = results.values(group, metric)[..] else {
        panic!("no metric {metric} of {group}");
    };
    value.filter(|x| !x.is_nan())
}

/// Exact but for the last bits of a division.
pub fn is(results: &Results, group: &str, metric: &str, expected: f64) {
    let found = value(results, group, metric);
    let same = found.is_some_and(|x| (x - expected).abs() <= 1e-9 * expected.abs());
    assert!(
        same,
        "{metric} of {group}: found {found:?}, counted {expected}"
    );
}
