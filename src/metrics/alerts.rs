//! What a planner should look at, with evidence: which server and tenant, how many, the worst original value.

use serde::Serialize;

use super::histogram::Histogram;
use super::tally::{PairTally, ServerTally, WINDOW};
use crate::model::Model;
use crate::policy::{FOREVER, HintClass, Stage};

/// Gaps below this are a near-tight loop, unless two round trips are longer.
const TIGHT_NS: u64 = 20_000_000;
/// A sane hint this many times the median is an outlier.
const OUTLIER_FACTOR: f64 = 100.0;
/// A 100 ms window this many times the mean is a burst.
const BURST_FACTOR: f64 = 10.0;
/// … if it holds at least so many polls.
const BURST_LEAST: u32 = 10;

/// More polls in the second half of the observed interval than in the first, times this, are a rise.
const RISE_FACTOR: f64 = 1.1;
/// … if the first half has so many, over all replications.
const RISE_LEAST: u64 = 1000;
/// Task stores busier than this are saturated.
const SATURATED: f64 = 0.9;

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alert {
    /// What kind of finding.
    pub alert: &'static str,
    /// The tenant class.
    pub tenant: String,
    /// The server class.
    pub server: String,
    /// How many cases, over all replications.
    pub count: u64,
    /// The worst original value.
    pub worst: Option<f64>,
    /// What `worst` is.
    pub worst_is: &'static str,
    /// The finding in a sentence.
    pub message: String,
}

impl Alert {
    /// The finding with its place, in a line.
    pub fn line(&self) -> String {
        let place = match self.tenant.as_str() {
            "" => format!("server {}", self.server),
            tenant => format!("tenant {tenant} on server {}", self.server),
        };
        format!("{} ({place}): {}", self.alert, self.message)
    }
}

/// The findings of a scenario's runs, from tallies pooled over the replications.
///
/// `abort_limits_ms` has, for each pair of tenant and server class, the strictest objective on its abort latency.
pub fn alerts(
    pairs: &[PairTally],
    servers: &[ServerTally],
    replications: u64,
    model: &Model,
    abort_limits_ms: &[Option<f64>],
) -> Vec<Alert> {
    let mut found = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        let tenant = &model.tenants[i / model.servers.len()];
        let server = &model.servers[i % model.servers.len()];
        let policy = &model.policies[tenant.policy];
        let mut alert = |alert, count, worst, worst_is, message| {
            let (tenant, server) = (tenant.name.clone(), server.name.clone());
            found.push(Alert {
                alert,
                tenant,
                server,
                count,
                worst,
                worst_is,
                message,
            });
        };
        let class = |c: HintClass| pair.hints[c as usize];

        let bad = class(HintClass::Zero) + class(HintClass::Negative);
        if bad > 0 {
            let worst = pair.hint_least;
            alert(
                "hints_zero_or_below",
                bad,
                Some(worst),
                "least hint, ms",
                format!("{bad} hints of zero or below, the least {worst} ms"),
            );
        }
        let beyond = class(HintClass::BeyondI32Ms) + class(HintClass::BeyondI64Ns);
        let median_ms = pair
            .sane_hints
            .quantile(0.5, 0)
            .map(|us| us as f64 / 1000.0);
        let limit_us = median_ms.map_or(u64::MAX, |m| (m * OUTLIER_FACTOR * 1000.0) as u64);
        let outliers = beyond + above(&pair.sane_hints, limit_us);
        if outliers > 0 {
            let worst = pair.hint_greatest;
            let median = median_ms.map_or(String::new(), |m| format!("; the median is {m:.0} ms"));
            alert(
                "hint_outliers",
                outliers,
                Some(worst),
                "greatest hint, ms",
                format!(
                    "{outliers} hints beyond 2^31 - 1 ms or {OUTLIER_FACTOR} times the median, the greatest {worst} ms{median}"
                ),
            );
        }
        let outside = policy.default < policy.floor
            || (policy.default > policy.ceiling && policy.ceiling < FOREVER);
        let defaults =
            pair.touched[Stage::Default as usize] + pair.touched[Stage::BadHint as usize];
        if outside && defaults > 0 {
            let worst = policy.default as f64 / 1e6;
            alert(
                "default_never_takes_effect",
                defaults,
                Some(worst),
                "default, ms",
                format!(
                    "the default of policy \"{}\" lies outside its floor and ceiling: {defaults} waits that fell back to it were cut to a bound",
                    policy.name
                ),
            );
        }
        let mean = pair.sent as f64 / replications as f64 * WINDOW as f64
            / (model.horizon - model.warm_up) as f64;
        let first = (model.warm_up / WINDOW) as usize;
        let peak = pair.windows[first..]
            .iter()
            .max()
            .map_or(0, |n| (u64::from(*n) / replications) as u32);
        if peak >= BURST_LEAST && f64::from(peak) > BURST_FACTOR * mean {
            let bursts = pair.windows[first..]
                .iter()
                .filter(|n| f64::from(**n) / replications as f64 > BURST_FACTOR * mean)
                .count();
            let worst = f64::from(peak) * 10.0;
            alert(
                "synchronised_bursts",
                bursts as u64,
                Some(worst),
                "peak rate of a 100 ms window, per s",
                format!(
                    "{bursts} windows of 100 ms above {BURST_FACTOR} times the mean, the peak {worst}/s against a mean of {:.1}/s",
                    mean * 10.0
                ),
            );
        }
        let [early, late] = halves(&pair.windows, model);
        if early >= RISE_LEAST && late as f64 > RISE_FACTOR * early as f64 {
            let rise = late as f64 / early as f64;
            alert(
                "rate_still_rising",
                late - early,
                Some(rise),
                "second half ÷ first half",
                format!(
                    "the second half of the observed interval has {rise:.2} times the polls of the first: the fleet is still filling, so make run.warm_up longer than most tasks last"
                ),
            );
        }
        let malformed =
            class(HintClass::Text) + class(HintClass::NonFinite) + class(HintClass::Fractional);
        if malformed > 0 {
            alert(
                "hints_malformed",
                malformed,
                None,
                "",
                format!("{malformed} hints that are strings, not whole or not finite"),
            );
        }
        if pair.refused > 0 {
            let share = pair.refused as f64 / (pair.refused + pair.accepted) as f64;
            alert(
                "polls_refused",
                pair.refused,
                Some(share),
                "share of the polls",
                format!(
                    "{} polls refused with 503 because the queue was full, {:.1} % of all",
                    pair.refused,
                    share * 100.0
                ),
            );
        }
        let tight = pair.gap.at_most(TIGHT_NS);
        if tight > 0 {
            let worst = pair.gap.min().map(|ns| ns as f64 / 1e6);
            alert(
                "near_tight_loops",
                tight,
                worst,
                "least gap, ms",
                format!(
                    "{tight} of {} gaps of at most 20 ms, the least {:.3} ms",
                    pair.gap.count(),
                    worst.unwrap_or(0.0)
                ),
            );
        }
        if let Some(limit) = abort_limits_ms[i] {
            let late = above(&pair.abort, (limit * 1e6) as u64) + pair.aborts_unsettled;
            if late > 0 {
                let worst = pair.abort.max().map(|ns| ns as f64 / 1e6);
                alert(
                    "abort_latency_beyond_objective",
                    late,
                    worst,
                    "greatest abort latency, ms",
                    format!(
                        "{late} of {} aborts settled later than {limit} ms, or not at all",
                        pair.aborts
                    ),
                );
            }
        }
        if pair.leaked > 0 {
            let worst = pair.leaked_per_abort.max().map(|n| n as f64);
            alert(
                "polls_leaked_after_aborts",
                pair.leaked,
                worst,
                "most leaked polls of one task",
                format!(
                    "{} polls sent after aborts, {:.1} per aborted task",
                    pair.leaked,
                    pair.leaked_per_abort.mean().unwrap_or(0.0)
                ),
            );
        }
    }
    for (tally, server) in servers.iter().zip(&model.servers) {
        let length = (model.horizon - model.warm_up) as f64;
        // Pooled over the replications, so are the workers.
        let utilisation = tally.busy_ns as f64 / (length * tally.workers as f64);
        if utilisation > SATURATED {
            found.push(Alert {
                alert: "store_saturated",
                tenant: String::new(),
                server: server.name.clone(),
                count: u64::from(server.count),
                worst: Some(utilisation),
                worst_is: "utilisation",
                message: format!(
                    "its task stores are busy {:.0} % of the time",
                    utilisation * 100.0
                ),
            });
        }
    }
    found
}

/// How many values are above `limit`.
fn above(h: &Histogram, limit: u64) -> u64 {
    match h.max() {
        Some(max) if max > limit => h.count() - h.at_most(limit.min((1 << 62) - 1)),
        _ => 0,
    }
}

/// Polls in the first and in the second half of [warm-up, horizon), by whole windows.
fn halves(windows: &[u32], model: &Model) -> [u64; 2] {
    let (first, end) = (
        (model.warm_up / WINDOW) as usize,
        (model.horizon / WINDOW) as usize,
    );
    let half = (end - first) / 2;
    let sum = |from: usize| {
        windows[from..from + half]
            .iter()
            .map(|n| u64::from(*n))
            .sum()
    };
    [sum(first), sum(first + half)]
}
