//! Can a server force a near-tight loop? The gaps between the polls of a task, in a condition and under each of its hints by itself.

use super::conditions::named;
use super::trips::{Finding, Trip, short, stopped};
use super::{Condition, TIGHT, TIGHT_ROUND_TRIPS, Tried};
use crate::experiment::Results;
use crate::metrics::tally::PairTally;
use crate::model::Model;
use crate::policy::Stage;
use crate::scenario::Scenario;
use crate::scenario::units::Duration;

/// Quantiles of gaps are known to this share of themselves.
const RESOLUTION: f64 = 0.001;

/// The median gaps of each tenant class on each server class: in the condition, and where every task meets one of its hints. Alone, a tight hint shows however
/// many polls other hints would have; among others it shows where a budget would slow it down if all tasks had it.
pub fn tight(tried: &Tried, asked: Option<Duration>) -> Vec<Finding> {
    let condition = tried.condition;
    let mut found = match &tried.results {
        Ok(results) => gaps(condition, &tried.scenario, results, asked),
        Err(error) => stopped(error, condition, Trip::TightLoop),
    };
    for one in &tried.hints {
        let alone = match &one.results {
            Ok(results) => gaps(condition, &one.scenario, results, asked),
            Err(error) => stopped(error, condition, Trip::TightLoop),
        };
        found.extend(alone.into_iter().map(|finding| Finding {
            evidence: format!("every hint {}: {}", named(&one.hint), finding.evidence),
            ..finding
        }));
    }
    found
}

/// The median gaps of one run.
fn gaps(
    condition: Condition,
    scenario: &Scenario,
    results: &Results,
    asked: Option<Duration>,
) -> Vec<Finding> {
    let model = Model::new(scenario);
    let servers = model.servers.len();
    let mut found = Vec::new();
    for (class, tenant) in model.tenants.iter().enumerate() {
        let own = class * servers..(class + 1) * servers;
        if results.pairs[own.clone()].iter().all(|p| p.created == 0) {
            let none = "no task was created in the observed interval".to_string();
            found.push(Finding::new(Some(condition), None, none).at(&tenant.name, ""));
        }
        for pair in own {
            let server = &model.servers[pair % servers].name;
            let gap = median_gap(condition, &model, pair, &results.pairs[pair], asked);
            found.extend(gap.map(|finding| finding.at(&tenant.name, server)));
        }
    }
    found
}

/// Is the median gap of a pair too short? Where no task was polled twice, the waits that loops chose tell as much if they are long: two sends are no nearer
/// to each other than the wait between them. `None` where the tenant class has no task there.
fn median_gap(
    condition: Condition,
    model: &Model,
    pair: usize,
    tally: &PairTally,
    asked: Option<Duration>,
) -> Option<Finding> {
    let (bound, because) = bound(model, pair, tally, asked);
    let below = |ns: u64| (ns as f64) < bound as f64 * (1.0 - RESOLUTION);
    let ms = |ns: u64| ns as f64 / 1e6;
    let held = |what: &str, ns: u64| {
        let compared = if below(ns) { "below" } else { "not below" };
        let (value, bound) = (short(ms(ns)), short(ms(bound)));
        format!("{what} {value} ms, {compared} {bound} ms{because}")
    };
    let finding = |tripped, evidence| Finding::new(Some(condition), tripped, evidence);
    if let Some(gap) = tally.gap.quantile(0.5, 0) {
        let measured = finding(Some(below(gap)), held("median gap", gap));
        return Some(measured.measured("gap_p50_ms", Some(ms(gap)), Some(ms(bound))));
    }
    if tally.created == 0 {
        return None;
    }
    let twice = "no task was polled twice";
    Some(match median_wait(tally) {
        Wait::Unseen => finding(None, format!("{twice}, and none waited for its next poll")),
        Wait::Forever => finding(Some(false), format!("{twice}, most wait forever")),
        Wait::Least(wait) => {
            let long = (!below(wait)).then_some(false);
            let evidence = format!("{twice}, {}", held("median wait", wait));
            finding(long, evidence).measured("interval_p50_ms", Some(ms(wait)), Some(ms(bound)))
        }
    })
}

/// The median of the waits that loops chose, but for those that a policy sets apart for the first poll.
enum Wait {
    /// There was none.
    Unseen,
    /// It is at least this long, ns.
    Least(u64),
    /// More than half of them never end.
    Forever,
}

/// Waits that never end are counted, but not among the intervals; those of first polls are among them, and taken for the longest.
fn median_wait(tally: &PairTally) -> Wait {
    let waits: u64 = tally.causes.iter().sum();
    let waits = waits - tally.causes[Stage::FirstPoll as usize];
    if waits == 0 {
        return Wait::Unseen;
    }
    let share = 0.5 * waits as f64 / tally.interval.count() as f64;
    match tally.interval.quantile(share.min(1.0), 0) {
        Some(wait) if share <= 1.0 => Wait::Least(wait),
        _ => Wait::Forever,
    }
}

/// What is near a tight loop for a pair, ns, and why.
fn bound(
    model: &Model,
    pair: usize,
    tally: &PairTally,
    asked: Option<Duration>,
) -> (u64, &'static str) {
    let delay = model.pairs[pair].delay.quantile(0.5);
    let store = tally.store_latency.quantile(0.5, 0).unwrap_or(0);
    let round_trips = TIGHT_ROUND_TRIPS * (2 * delay + store);
    match asked {
        Some(asked) => (asked.0, " (asked for)"),
        None if round_trips > TIGHT.0 => (round_trips, " (2 median round trips)"),
        None => (TIGHT.0, ""),
    }
}
