//! From tallies to the values of the metrics, in the order of [`crate::catalogue::names`].
//!
//! `None` is undefined: no sample. NaN is censored: a quantile among tasks whose end was never seen; it spreads through means and is
//! shown as undefined too.

use std::borrow::Cow;

use super::histogram::Histogram;
use super::tally::{Failure, Final, PairTally, ServerTally, TenantTally, WINDOW};
use crate::catalogue::{SCALARS, WORST_HINTS};
use crate::model::Model;
use crate::policy::{HintClass, Stage};

/// A group of results: the fleet, one tenant class, or one server class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Everything.
    Fleet,
    /// A tenant class, by index.
    Tenant(usize),
    /// A server class, by index.
    Server(usize),
}

impl Group {
    /// All groups of a model: fleet, tenants, servers, each by name.
    pub fn all(model: &Model) -> Vec<Group> {
        let tenants = (0..model.tenants.len()).map(Group::Tenant);
        let servers = (0..model.servers.len()).map(Group::Server);
        std::iter::once(Group::Fleet)
            .chain(tenants)
            .chain(servers)
            .collect()
    }

    /// Its name in results: `fleet`, `tenant.NAME`, `server.NAME`.
    pub fn name(self, model: &Model) -> String {
        match self {
            Group::Fleet => "fleet".into(),
            Group::Tenant(i) => format!("tenant.{}", model.tenants[i].name),
            Group::Server(i) => format!("server.{}", model.servers[i].name),
        }
    }

    /// Does the pair numbered `pair` (tenant-major) belong to it?
    pub fn has(self, pair: usize, servers: usize) -> bool {
        match self {
            Group::Fleet => true,
            Group::Tenant(i) => pair / servers == i,
            Group::Server(i) => pair % servers == i,
        }
    }
}

/// The tallies of a group, merged where they are of more than one pair or class.
#[derive(Debug)]
pub struct Tallies<'t> {
    /// Of its pairs.
    pub pair: Cow<'t, PairTally>,
    /// Of its servers; `None` for a tenant class.
    pub server: Option<Cow<'t, ServerTally>>,
    /// Of its tenants; `None` for a server class.
    pub tenant: Option<TenantTally>,
}

impl<'t> Tallies<'t> {
    /// Those of `group` in one run.
    pub fn of(
        group: Group,
        pairs: &'t [PairTally],
        servers: &'t [ServerTally],
        tenants: &[TenantTally],
        model: &Model,
    ) -> Self {
        let own = || {
            pairs
                .iter()
                .enumerate()
                .filter(|(i, _)| group.has(*i, servers.len()))
                .map(|(_, p)| p)
        };
        let pair = match (own().next(), own().nth(1)) {
            (Some(only), None) => Cow::Borrowed(only),
            _ => {
                let mut sum = PairTally::new(model.horizon);
                own().for_each(|tally| sum.merge(tally));
                Cow::Owned(sum)
            }
        };
        let server = match (group, servers) {
            (Group::Tenant(_), _) => None,
            (Group::Server(i), _) => Some(Cow::Borrowed(&servers[i])),
            (Group::Fleet, [only]) => Some(Cow::Borrowed(only)),
            (Group::Fleet, _) => {
                let mut sum = ServerTally::new(model.horizon, 0);
                servers.iter().for_each(|tally| sum.merge(tally));
                Some(Cow::Owned(sum))
            }
        };
        let tenant = match group {
            Group::Tenant(i) => Some(tenants[i]),
            Group::Server(_) => None,
            Group::Fleet => {
                let mut sum = TenantTally::default();
                tenants.iter().for_each(|tally| sum.merge(tally));
                Some(sum)
            }
        };
        Tallies {
            pair,
            server,
            tenant,
        }
    }
}

/// The values of every metric for one group of one run, in the order of [`crate::catalogue::names`].
pub fn values(tallies: &Tallies, model: &Model) -> Vec<Option<f64>> {
    let pair = &*tallies.pair;
    let mut values: Vec<Option<f64>> = scalars(tallies, model)
        .iter()
        .map(|(_, value)| *value)
        .collect();
    let ms = 1e-6;
    distribution(&mut values, &pair.completion, pair.unseen, ms);
    let missing = pair.unseen + pair.results_missing;
    distribution(&mut values, &pair.result, missing, ms);
    distribution(&mut values, &pair.abort, pair.aborts_unsettled, ms);
    distribution(&mut values, &pair.gap, 0, ms);
    distribution(&mut values, &pair.interval, 0, ms);
    distribution(&mut values, &pair.store_wait, 0, ms);
    distribution(&mut values, &pair.store_service, 0, ms);
    distribution(&mut values, &pair.store_latency, 0, ms);
    distribution(&mut values, &pair.queue_length, 0, 1.0);
    distribution(&mut values, &pair.polls_per_task, 0, 1.0);
    distribution(&mut values, &pair.streak, 0, 1.0);
    distribution(&mut values, &pair.leaked_per_abort, 0, 1.0);
    distribution(&mut values, &pair.budget_delay, 0, ms);
    // These come from other runs.
    values.extend(WORST_HINTS.map(|_| None));
    values
}

/// The metrics of one value, by name, in the order of [`crate::catalogue::SCALARS`].
fn scalars(tallies: &Tallies, model: &Model) -> [(&'static str, Option<f64>); SCALARS.len()] {
    let (pair, server) = (&*tallies.pair, tallies.server.as_deref());
    let tenant = tallies.tenant.as_ref();
    let length = (model.horizon - model.warm_up) as f64;
    let seconds = length / 1e9;
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let count = |n: u64| Some(n as f64);
    let (one_second, tenth) = (
        windows(&pair.windows, 10, model),
        windows(&pair.windows, 1, model),
    );
    let per_s =
        |w: &Windows, p: f64, width_s: f64| w.counts.quantile(p, 0).map(|n| n as f64 / width_s);
    let waits: u64 = pair.causes.iter().sum();
    let cause = |stage: Stage| share(pair.causes[stage as usize], waits);
    let touched = |stage: Stage| share(pair.touched[stage as usize], waits);
    let finals = |how: Final| count(pair.finals[how as usize]);
    let tasks: u64 = pair.finals.iter().sum();
    let detected: u64 = [Final::Completed, Final::Failed, Final::Cancelled]
        .iter()
        .map(|f| pair.finals[*f as usize])
        .sum();
    let aborted: u64 = [Final::Detached, Final::CancelSent, Final::Forgotten]
        .iter()
        .map(|f| pair.finals[*f as usize])
        .sum();
    let failed = |why: &[Failure]| count(why.iter().map(|f| pair.failures[*f as usize]).sum());

    let utilisation = server
        .and_then(|s| (s.workers > 0).then(|| s.busy_ns as f64 / (length * s.workers as f64)));
    [
        (
            "tasks_get_rate_mean_per_s",
            Some(pair.sent as f64 / seconds),
        ),
        ("tasks_get_rate_1s_p95_per_s", per_s(&one_second, 0.95, 1.0)),
        (
            "tasks_get_rate_1s_p999_per_s",
            per_s(&one_second, 0.999, 1.0),
        ),
        ("tasks_get_rate_1s_peak_per_s", per_s(&one_second, 1.0, 1.0)),
        ("tasks_get_rate_100ms_p95_per_s", per_s(&tenth, 0.95, 0.1)),
        ("tasks_get_rate_100ms_p999_per_s", per_s(&tenth, 0.999, 0.1)),
        ("tasks_get_rate_100ms_peak_per_s", per_s(&tenth, 1.0, 0.1)),
        ("tasks_get_rate_1s_dispersion", one_second.dispersion()),
        ("tasks_get_rate_100ms_dispersion", tenth.dispersion()),
        (
            "polls_per_active_task_per_s",
            (pair.active_ns > 0).then(|| pair.sent as f64 / (pair.active_ns as f64 / 1e9)),
        ),
        ("requests", count(pair.requests())),
        ("requests_tools_call", count(pair.created)),
        ("requests_tasks_get", count(pair.sent)),
        ("requests_tasks_result", count(pair.results)),
        ("requests_tasks_cancel", count(pair.cancels)),
        ("requests_tasks_update", count(pair.updates)),
        (
            "requests_notifications_cancelled",
            count(pair.notices_cancelled),
        ),
        ("tasks_get_accepted", count(pair.accepted)),
        ("tasks_get_refused", count(pair.refused)),
        (
            "tasks_get_refused_503",
            failed(&[Failure::QueueFull, Failure::Down]),
        ),
        ("tasks_get_refused_429", failed(&[Failure::Limited])),
        ("tasks_get_slow_down", failed(&[Failure::TooSoon])),
        ("tasks_get_unknown_task", failed(&[Failure::UnknownTask])),
        ("tasks_get_broken", failed(&[Failure::Broken])),
        ("tasks_get_timed_out", failed(&[Failure::TimedOut])),
        ("tasks_get_lost", count(pair.lost)),
        ("tasks_get_retries", count(pair.retries)),
        ("tasks_get_seen", count(pair.seen)),
        ("tasks_get_unseen", count(pair.sent - pair.seen)),
        (
            "useless_share",
            share(pair.unchanged + pair.errors_seen, pair.seen),
        ),
        ("leaked_polls", count(pair.leaked)),
        (
            "hints_absent",
            count(pair.hints[HintClass::Absent as usize]),
        ),
        ("hints_null", count(pair.hints[HintClass::Null as usize])),
        ("hints_zero", count(pair.hints[HintClass::Zero as usize])),
        (
            "hints_negative",
            count(pair.hints[HintClass::Negative as usize]),
        ),
        (
            "hints_fractional",
            count(pair.hints[HintClass::Fractional as usize]),
        ),
        (
            "hints_non_finite",
            count(pair.hints[HintClass::NonFinite as usize]),
        ),
        ("hints_text", count(pair.hints[HintClass::Text as usize])),
        (
            "hints_beyond_i32_ms",
            count(pair.hints[HintClass::BeyondI32Ms as usize]),
        ),
        (
            "hints_beyond_i64_ns",
            count(pair.hints[HintClass::BeyondI64Ns as usize]),
        ),
        ("hints_sane", count(pair.hints[HintClass::Sane as usize])),
        ("wait_share_hint", cause(Stage::Hint)),
        ("wait_share_default", cause(Stage::Default)),
        ("wait_share_bad_hint", cause(Stage::BadHint)),
        ("wait_share_floor", cause(Stage::Floor)),
        ("wait_share_ceiling", cause(Stage::Ceiling)),
        ("wait_share_backoff", cause(Stage::Backoff)),
        ("wait_share_error_backoff", cause(Stage::ErrorBackoff)),
        ("wait_share_jitter", cause(Stage::Jitter)),
        ("wait_share_slow_down", cause(Stage::SlowDown)),
        ("wait_share_retry_after", cause(Stage::RetryAfter)),
        ("wait_share_timer", cause(Stage::Timer)),
        ("wait_share_first_poll", cause(Stage::FirstPoll)),
        ("wait_touched_default", touched(Stage::Default)),
        ("wait_touched_bad_hint", touched(Stage::BadHint)),
        ("wait_touched_floor", touched(Stage::Floor)),
        ("wait_touched_ceiling", touched(Stage::Ceiling)),
        ("wait_touched_backoff", touched(Stage::Backoff)),
        ("utilisation", utilisation),
        (
            "queue_length_time_mean",
            server.map(|s| s.waiting_ns as f64 / length),
        ),
        (
            "held_connections_mean",
            server.map(|s| s.held_ns as f64 / length),
        ),
        ("held_connections_peak", server.map(|s| s.held_peak as f64)),
        ("store_reads", count(pair.store_reads)),
        ("store_reads_leaked", count(pair.store_reads_leaked)),
        (
            "store_read_rate_mean_per_s",
            Some(pair.store_reads as f64 / seconds),
        ),
        ("leaked_loops_mean", Some(pair.leaking_ns as f64 / length)),
        ("notifications", count(pair.notices)),
        ("budget_skipped", count(pair.skipped)),
        ("fairness_jain", tenant.and_then(TenantTally::fairness)),
        ("breaker_opened", count(pair.opened)),
        ("breaker_open_s", Some(pair.open_ns as f64 / 1e9)),
        ("breaker_probes", count(pair.probes)),
        ("breaker_held_back", count(pair.held_back)),
        (
            "host_utilisation",
            tenant
                .filter(|t| t.looping_hosts > 0)
                .map(|t| t.busy_ns as f64 / (length * t.looping_hosts as f64)),
        ),
        ("host_wake_ups", tenant.map(|t| t.wake_ups as f64)),
        ("reconnects", tenant.map(|t| t.reconnects as f64)),
        ("tasks", count(tasks)),
        ("tasks_completed", finals(Final::Completed)),
        ("tasks_failed", finals(Final::Failed)),
        ("tasks_cancelled", finals(Final::Cancelled)),
        ("tasks_detached", finals(Final::Detached)),
        ("tasks_cancel_sent", finals(Final::CancelSent)),
        ("tasks_forgotten", finals(Final::Forgotten)),
        ("tasks_gave_up", finals(Final::GaveUp)),
        ("tasks_loop_error", finals(Final::LoopError)),
        ("tasks_expired", finals(Final::Expired)),
        ("tasks_never_polled_again", finals(Final::NeverPolledAgain)),
        ("tasks_running", finals(Final::Running)),
        ("tasks_unseen", count(pair.unseen)),
        ("tasks_asked", count(pair.asked)),
        ("orphans", count(pair.orphans)),
        ("tasks_detected_share", share(detected, tasks - aborted)),
        ("aborts", count(pair.aborts)),
        ("aborts_unsettled", count(pair.aborts_unsettled)),
        ("active_tasks_mean", Some(pair.active_ns as f64 / length)),
        ("tokens", Some(pair.tokens)),
        ("cost", Some(pair.cost)),
    ]
}

/// The statistics of a histogram, `beyond` further values being larger than any in it.
fn distribution(values: &mut Vec<Option<f64>>, h: &Histogram, beyond: u64, scale: f64) {
    let quantiles = h.quantiles([0.5, 0.9, 0.95, 0.99, 1.0], beyond);
    let [p50, p90, p95, p99, max] = quantiles.map(|quantile| match quantile {
        Some(x) => Some(x as f64 * scale),
        None if beyond > 0 => Some(f64::NAN),
        None => None,
    });
    values.extend([
        Some(h.count() as f64),
        h.mean().map(|x| x * scale),
        p50,
        p90,
        p95,
        p99,
        h.min().map(|x| x as f64 * scale),
        max,
    ]);
}

/// Counts per window.
struct Windows {
    counts: Histogram,
    squares: u128,
}

impl Windows {
    /// Variance ÷ mean of the counts.
    fn dispersion(&self) -> Option<f64> {
        let n = self.counts.count() as f64;
        let mean = self.counts.mean().filter(|m| *m > 0.0)?;
        (n >= 2.0).then(|| (self.squares as f64 - n * mean * mean) / (n - 1.0) / mean)
    }
}

/// The windows of `width` × 100 ms, [k·w, (k+1)·w), that lie wholly inside [warm-up, horizon).
fn windows(cells: &[u32], width: u64, model: &Model) -> Windows {
    let length = width * WINDOW;
    let (first, end) = (model.warm_up.div_ceil(length), model.horizon / length);
    let mut windows = Windows {
        counts: Histogram::default(),
        squares: 0,
    };
    for k in first..end {
        let from = (k * width) as usize;
        let n: u64 = cells[from..from + width as usize]
            .iter()
            .map(|c| u64::from(*c))
            .sum();
        windows.counts.record(n);
        windows.squares += u128::from(n) * u128::from(n);
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_stands_under_its_name() {
        let loaded = crate::scenario::parse("test", crate::experiment::tests::SMALL, &[]).unwrap();
        let model = Model::new(&loaded.scenario);
        let pairs = [PairTally::new(model.horizon)];
        let servers = [ServerTally::new(model.horizon, 1)];
        let tenants = [TenantTally::default()];
        let tallies = Tallies::of(Group::Tenant(0), &pairs, &servers, &tenants, &model);
        assert_eq!(
            values(&tallies, &model).len(),
            crate::catalogue::names().len()
        );
        let named = scalars(&tallies, &model).map(|(name, _)| name);
        assert_eq!(named, SCALARS.map(|(name, _)| name));
    }

    #[test]
    fn a_steady_stream_has_no_dispersion() {
        let loaded = crate::scenario::parse("test", crate::experiment::tests::SMALL, &[]).unwrap();
        let model = Model::new(&loaded.scenario);
        let cells: Vec<u32> = (0..model.horizon / WINDOW).map(|_| 3).collect();
        let w = windows(&cells, 10, &model);
        assert_eq!(w.dispersion(), Some(0.0));
        assert_eq!(w.counts.max(), Some(30));
    }
}
