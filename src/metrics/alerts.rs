//! What a planner should look at, with evidence: which server and tenant, how many, the worst original value.

use serde::Serialize;

use super::histogram::Histogram;
use super::tally::{BURST_FACTOR, Failure, PairTally, ServerTally, TenantTally, WINDOW};
use crate::model::Model;
use crate::policy::{FOREVER, HintClass, Policy, Stage};

/// Gaps up to this are a near-tight loop.
const TIGHT_NS: u64 = 20_000_000;
/// A sane hint this many times the median is an outlier.
const OUTLIER_FACTOR: f64 = 100.0;
/// More polls in the second half of the observed interval than in the first, times this, are a rise.
const RISE_FACTOR: f64 = 1.1;
/// … if the first half has so many, over all replications.
const RISE_LEAST: u64 = 1000;
/// Task stores and host loops busier than this are saturated.
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
            tenant if self.server.is_empty() => format!("tenant {tenant}"),
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
    tenants: &[TenantTally],
    replications: u64,
    model: &Model,
    abort_limits_ms: &[Option<f64>],
) -> Vec<Alert> {
    let mut found = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        let tenant = &model.tenants[i / model.servers.len()];
        let server = &model.servers[i % model.servers.len()];
        let policy = &model.policies[tenant.policy];
        let findings = [
            hints_zero_or_below(pair),
            hint_outliers(pair),
            hints_malformed(pair),
            default_never_takes_effect(pair, policy),
            synchronised_bursts(pair, replications, model),
            rate_still_rising(pair, model),
            near_tight_loops(pair),
            polls_refused(pair),
            polls_unanswered(pair),
            breaker_opened(pair, replications),
            abort_latency_beyond_objective(pair, abort_limits_ms[i]),
            polls_leaked_after_aborts(pair),
            store_reads_leaked_after_aborts(pair, replications, model),
            tasks_orphaned(pair),
        ];
        found.extend(
            findings
                .into_iter()
                .flatten()
                .map(|finding| finding.of(&tenant.name, &server.name)),
        );
    }
    for (class, tenant) in model.tenants.iter().enumerate() {
        let own = &pairs[class * servers.len()..(class + 1) * servers.len()];
        found.extend(no_tasks(own).map(|finding| finding.of(&tenant.name, "")));
        let saturated = host_saturated(&tenants[class], replications, model);
        found.extend(saturated.map(|finding| finding.of(&tenant.name, "")));
    }
    for (tally, server) in servers.iter().zip(&model.servers) {
        let finding = store_saturated(tally, u64::from(server.count), model);
        found.extend(finding.map(|finding| finding.of("", &server.name)));
    }
    found
}

/// An alert without its place.
struct Finding {
    alert: &'static str,
    count: u64,
    worst: Option<f64>,
    worst_is: &'static str,
    message: String,
}

impl Finding {
    fn of(self, tenant: &str, server: &str) -> Alert {
        Alert {
            alert: self.alert,
            tenant: tenant.into(),
            server: server.into(),
            count: self.count,
            worst: self.worst,
            worst_is: self.worst_is,
            message: self.message,
        }
    }
}

fn hints_of(pair: &PairTally, classes: &[HintClass]) -> u64 {
    classes
        .iter()
        .map(|class| pair.hints[*class as usize])
        .sum()
}

fn hints_zero_or_below(pair: &PairTally) -> Option<Finding> {
    let count = hints_of(pair, &[HintClass::Zero, HintClass::Negative]);
    let worst = pair.hint_least;
    (count > 0).then(|| Finding {
        alert: "hints_zero_or_below",
        count,
        worst: Some(worst),
        worst_is: "least hint, ms",
        message: format!("{count} hints of zero or below, the least {worst} ms"),
    })
}

fn hint_outliers(pair: &PairTally) -> Option<Finding> {
    let median_ms = pair
        .sane_hints
        .quantile(0.5, 0)
        .map(|us| us as f64 / 1000.0);
    let limit_us = median_ms.map_or(u64::MAX, |m| (m * OUTLIER_FACTOR * 1000.0) as u64);
    let beyond = hints_of(pair, &[HintClass::BeyondI32Ms, HintClass::BeyondI64Ns]);
    let count = beyond + above(&pair.sane_hints, limit_us);
    let worst = pair.hint_greatest;
    let median = median_ms.map_or(String::new(), |m| format!("; the median is {m:.0} ms"));
    (count > 0).then(|| Finding {
        alert: "hint_outliers",
        count,
        worst: Some(worst),
        worst_is: "greatest hint, ms",
        message: format!("{count} hints beyond 2^31 - 1 ms or {OUTLIER_FACTOR} times the median, the greatest {worst} ms{median}"),
    })
}

fn hints_malformed(pair: &PairTally) -> Option<Finding> {
    let count = hints_of(
        pair,
        &[HintClass::Text, HintClass::NonFinite, HintClass::Fractional],
    );
    (count > 0).then(|| Finding {
        alert: "hints_malformed",
        count,
        worst: None,
        worst_is: "",
        message: format!("{count} hints that are strings, not whole or not finite"),
    })
}

fn default_never_takes_effect(pair: &PairTally, policy: &Policy) -> Option<Finding> {
    let bounded_above = policy.ceiling < FOREVER && policy.default > policy.ceiling;
    let count = pair.touched[Stage::Default as usize];
    ((policy.default < policy.floor || bounded_above) && count > 0).then(|| Finding {
        alert: "default_never_takes_effect",
        count,
        worst: Some(policy.default as f64 / 1e6),
        worst_is: "default, ms",
        message: format!(
            "the default of policy \"{}\" lies outside its floor and ceiling: {count} waits that fell back to it were cut to a bound",
            policy.name
        ),
    })
}

fn synchronised_bursts(pair: &PairTally, replications: u64, model: &Model) -> Option<Finding> {
    let peak = f64::from(pair.peak) * 10.0;
    let mean =
        pair.sent as f64 / replications as f64 / (model.horizon - model.warm_up) as f64 * 1e9;
    (pair.bursts > 0).then(|| Finding {
        alert: "synchronised_bursts",
        count: pair.bursts,
        worst: Some(peak),
        worst_is: "peak rate of a 100 ms window, per s",
        message: format!(
            "{} windows of 100 ms above {BURST_FACTOR} times the mean, the peak {peak}/s against a mean of {mean:.1}/s",
            pair.bursts
        ),
    })
}

fn rate_still_rising(pair: &PairTally, model: &Model) -> Option<Finding> {
    let [early, late] = halves(&pair.windows, model);
    let rise = late as f64 / early as f64;
    (early >= RISE_LEAST && rise > RISE_FACTOR).then(|| Finding {
        alert: "rate_still_rising",
        count: late - early,
        worst: Some(rise),
        worst_is: "second half ÷ first half",
        message: format!(
            "the second half of the observed interval has {rise:.2} times the polls of the first: the fleet is still filling, so make run.warm_up longer than most tasks last"
        ),
    })
}

fn near_tight_loops(pair: &PairTally) -> Option<Finding> {
    let count = pair.gap.at_most(TIGHT_NS);
    let worst = pair.gap.min().map(|ns| ns as f64 / 1e6);
    (count > 0).then(|| Finding {
        alert: "near_tight_loops",
        count,
        worst,
        worst_is: "least gap, ms",
        message: format!(
            "{count} of {} gaps of at most 20 ms, the least {:.3} ms",
            pair.gap.count(),
            worst.unwrap_or(0.0)
        ),
    })
}

fn polls_refused(pair: &PairTally) -> Option<Finding> {
    let count = pair.refused;
    let share = count as f64 / (count + pair.accepted) as f64;
    (count > 0).then(|| Finding {
        alert: "polls_refused",
        count,
        worst: Some(share),
        worst_is: "share of the polls",
        message: format!(
            "{count} polls refused, {:.1} % of all: {}",
            share * 100.0,
            refusals(pair).join(", ")
        ),
    })
}

/// How many polls were refused for each reason that there was.
fn refusals(pair: &PairTally) -> Vec<String> {
    let reasons = [
        (Failure::QueueFull, "with 503 because the queue was full"),
        (Failure::Down, "because the server was down"),
        (Failure::Limited, "with 429 because of a rate limit"),
        (Failure::TooSoon, "with slow_down"),
    ];
    let counted = reasons.map(|(why, text)| (pair.failures[why as usize], text));
    let given = counted.into_iter().filter(|(n, _)| *n > 0);
    given.map(|(n, text)| format!("{n} {text}")).collect()
}

fn polls_unanswered(pair: &PairTally) -> Option<Finding> {
    let timed_out = pair.failures[Failure::TimedOut as usize];
    let broken = pair.failures[Failure::Broken as usize];
    let count = timed_out + broken + pair.lost;
    let share = count as f64 / pair.sent as f64;
    (count > 0).then(|| Finding {
        alert: "polls_unanswered",
        count,
        worst: Some(share),
        worst_is: "share of the polls",
        message: format!(
            "{count} polls without an answer, {:.1} % of all: {timed_out} timed out, {broken} at a server that went down, {} lost for good",
            share * 100.0,
            pair.lost
        ),
    })
}

fn breaker_opened(pair: &PairTally, replications: u64) -> Option<Finding> {
    let open_s = pair.open_ns as f64 / 1e9 / replications as f64;
    (pair.opened > 0).then(|| Finding {
        alert: "breaker_opened",
        count: pair.opened,
        worst: Some(open_s),
        worst_is: "seconds not closed, per replication",
        message: format!(
            "breakers opened {} times, and were not closed for {open_s:.1} s a replication in sum; {} polls held back",
            pair.opened, pair.held_back
        ),
    })
}

fn store_reads_leaked_after_aborts(
    pair: &PairTally,
    replications: u64,
    model: &Model,
) -> Option<Finding> {
    let length = (model.horizon - model.warm_up) as f64 * replications as f64;
    let loops = pair.leaking_ns as f64 / length;
    (pair.store_reads_leaked > 0).then(|| Finding {
        alert: "store_reads_leaked_after_aborts",
        count: pair.store_reads_leaked,
        worst: Some(loops),
        worst_is: "leaked loops running, mean over time",
        message: format!(
            "{} reads of the store by loops whose request was aborted; {loops:.1} of them run at any time",
            pair.store_reads_leaked
        ),
    })
}

fn tasks_orphaned(pair: &PairTally) -> Option<Finding> {
    let tasks: u64 = pair.finals.iter().sum();
    let share = pair.orphans as f64 / tasks as f64;
    (pair.orphans > 0).then(|| Finding {
        alert: "tasks_orphaned",
        count: pair.orphans,
        worst: Some(share),
        worst_is: "share of the tasks",
        message: format!(
            "{} tasks whose end no one learns, {:.1} % of all",
            pair.orphans,
            share * 100.0
        ),
    })
}

fn host_saturated(tally: &TenantTally, replications: u64, model: &Model) -> Option<Finding> {
    let hosts = tally.looping_hosts as f64;
    let utilisation = tally.busy_ns as f64 / ((model.horizon - model.warm_up) as f64 * hosts);
    (hosts > 0.0 && utilisation > SATURATED).then(|| Finding {
        alert: "host_saturated",
        count: tally.looping_hosts / replications,
        worst: Some(utilisation),
        worst_is: "utilisation",
        message: format!(
            "its hosts' event loops are busy {:.0} % of the time",
            utilisation * 100.0
        ),
    })
}

fn abort_latency_beyond_objective(pair: &PairTally, limit_ms: Option<f64>) -> Option<Finding> {
    let limit = limit_ms?;
    let count = above(&pair.abort, (limit * 1e6) as u64) + pair.aborts_unsettled;
    (count > 0).then(|| Finding {
        alert: "abort_latency_beyond_objective",
        count,
        worst: pair.abort.max().map(|ns| ns as f64 / 1e6),
        worst_is: "greatest abort latency, ms",
        message: format!(
            "{count} of {} aborts settled later than {limit} ms, or not at all",
            pair.aborts
        ),
    })
}

fn polls_leaked_after_aborts(pair: &PairTally) -> Option<Finding> {
    (pair.leaked > 0).then(|| Finding {
        alert: "polls_leaked_after_aborts",
        count: pair.leaked,
        worst: pair.leaked_per_abort.max().map(|n| n as f64),
        worst_is: "most leaked polls of one task",
        message: format!(
            "{} polls sent after aborts, {:.1} per aborted task",
            pair.leaked,
            pair.leaked_per_abort.mean().unwrap_or(0.0)
        ),
    })
}

fn no_tasks(pairs: &[PairTally]) -> Option<Finding> {
    let none = pairs
        .iter()
        .all(|pair| pair.created == 0 && pair.finals.iter().sum::<u64>() == 0);
    none.then(|| Finding {
        alert: "no_tasks",
        count: 0,
        worst: None,
        worst_is: "",
        message: "none of its tasks was created between warm-up and horizon: do its arrivals lie outside?".into(),
    })
}

fn store_saturated(tally: &ServerTally, servers: u64, model: &Model) -> Option<Finding> {
    // Busy time and workers are both summed over the replications.
    let utilisation =
        tally.busy_ns as f64 / ((model.horizon - model.warm_up) as f64 * tally.workers as f64);
    (utilisation > SATURATED).then(|| Finding {
        alert: "store_saturated",
        count: servers,
        worst: Some(utilisation),
        worst_is: "utilisation",
        message: format!(
            "its task stores are busy {:.0} % of the time",
            utilisation * 100.0
        ),
    })
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
