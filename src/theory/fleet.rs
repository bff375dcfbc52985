//! Closed forms of a whole scenario, where it meets their conditions.
//!
//! The other files of [`theory`](super) have formulas and leave their conditions to the caller; this one reads them off a scenario, and
//! gives nothing where any is missed. A scenario qualifies that is, but for what is named here, the plainest there is: one server class that answers at once, one tenant
//! class, one policy. Free are
//!
//! * the hint: one number, or drawn once per task from a mixture of hints of any class and of constants, uniforms, exponentials and log-normals;
//! * the policy's default, floor, ceiling and first poll (at once or after a wait);
//! * tasks that arrive at random and run for a constant or an exponential time, observed from where the fleet is in its steady state on; or tasks that all
//!   start at 0 and outlast the horizon.
//!
//! What a task keeps for an interval is asked of [`crate::policy`]. Values are means over the intervals of the fleet; a continuous distribution is taken at
//! evenly spread quantiles.

use std::sync::LazyLock;

use super::FirstPoll;
use crate::model::{HintSource, Model, Part};
use crate::policy::{Decision, FOREVER, Policy, RawHint, Saw, State};
use crate::scenario::Scenario;
use crate::scenario::distribution::Kind;
use crate::scenario::fields::Count;
use crate::scenario::policy as written;
use crate::scenario::written::{Arrivals, Drain, Wire};

/// Quantiles that stand for a continuous distribution.
const POINTS: u32 = 2000;
/// How far the fleet may still be from its steady state.
const TRANSIENT: f64 = 1e-4;

/// The value of a metric of the fleet, by its name in the results; `None` where there is no closed form of it for this scenario.
pub fn value(scenario: &Scenario, metric: &str) -> Option<f64> {
    if metric == "tasks_get_rate_mean_per_s" {
        return load_per_s(scenario);
    }
    let fleet = Fleet::of(scenario)?;
    let Tasks::Arriving { duration, .. } = fleet.tasks else {
        return None;
    };
    if scenario.run.drain != Drain::All {
        return None;
    }
    let s = match metric {
        "completion_latency_mean_ms" => fleet.mean(|ns| duration.delay_mean_s(seconds(ns))),
        "completion_latency_p50_ms" => fleet.delay_quantile_s(duration, 0.50),
        "completion_latency_p90_ms" => fleet.delay_quantile_s(duration, 0.90),
        "completion_latency_p95_ms" => fleet.delay_quantile_s(duration, 0.95),
        "completion_latency_p99_ms" => fleet.delay_quantile_s(duration, 0.99),
        _ => return None,
    };
    Some(s * 1e3)
}

/// Mean `tasks/get` rate of the fleet in its steady state, 1/s: arrivals times polls per task (O1, O3, O4); or of tasks that run all the time, a poll per
/// interval (O4, O8), counted from the start that they have in common.
pub fn load_per_s(scenario: &Scenario) -> Option<f64> {
    let fleet = Fleet::of(scenario)?;
    let run = &scenario.run;
    let (from, to) = (run.warm_up.0, run.horizon.0.0);
    Some(match fleet.tasks {
        Tasks::Arriving { per_s, duration } => {
            if fleet.settled_s(duration) > from as f64 / 1e9 {
                return None;
            }
            per_s * fleet.mean(|ns| duration.polls_mean(seconds(ns), fleet.first_poll))
        }
        Tasks::Running { tasks } => {
            let first = u64::from(fleet.first_poll == FirstPoll::AfterInterval);
            let before = |t: u64, ns: u64| t.div_ceil(ns).saturating_sub(first) as f64;
            tasks * fleet.mean(|ns| before(to, ns) - before(from, ns))
                / (seconds(to) - seconds(from))
        }
    })
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// How long a task runs.
#[derive(Clone, Copy)]
enum Runs {
    Constant(f64),
    Exponential(f64),
}

impl Runs {
    fn polls_mean(self, interval_s: f64, first_poll: FirstPoll) -> f64 {
        match self {
            Runs::Constant(s) => super::polls_fixed_interval(s, interval_s, first_poll),
            Runs::Exponential(s) => super::polls_mean_exponential(s, interval_s, first_poll),
        }
    }

    fn delay_mean_s(self, interval_s: f64) -> f64 {
        match self {
            Runs::Constant(s) => super::completion_delay_fixed_interval(s, interval_s),
            Runs::Exponential(s) => super::completion_delay_mean_exponential(s, interval_s),
        }
    }

    /// The probability of a delay of at most `x_s`. The end of an exponential task lies in its interval as one cut off there does, so the delay T - y has
    /// P(y ≥ T - x) = (e^(-(T - x)/m) - e^(-T/m))/(1 - e^(-T/m)).
    fn delay_at_most(self, x_s: f64, interval_s: f64) -> f64 {
        match self {
            Runs::Constant(_) => f64::from(u8::from(self.delay_mean_s(interval_s) <= x_s)),
            Runs::Exponential(_) if x_s >= interval_s => 1.0,
            Runs::Exponential(m) => {
                let left = libm::exp(-interval_s / m);
                (libm::exp((x_s - interval_s) / m) - left) / (1.0 - left)
            }
        }
    }
}

/// When the tasks of a fleet are there.
#[derive(Clone, Copy)]
enum Tasks {
    Arriving { per_s: f64, duration: Runs },
    Running { tasks: f64 },
}

/// A scenario that meets the conditions.
struct Fleet {
    tasks: Tasks,
    first_poll: FirstPoll,
    /// (weight, ns); weights sum to 1.
    intervals: Vec<(f64, u64)>,
}

/// The plainest scenario: everything that is not free has its default.
static PLAIN: LazyLock<Option<Scenario>> = LazyLock::new(|| {
    let text = "[run]\nhorizon = \"1s\"\n[[server]]\nname = \"s\"\n[[tenant]]\nname = \"t\"\narrivals = { at_once = {} }\nduration = \"1s\"\n\
                servers = { s = 1 }\npolicy = \"p\"\n[policy.p]\n";
    crate::scenario::parse("plain", text, &[])
        .ok()
        .map(|l| l.scenario)
});

/// Is the scenario plain but for what is free?
fn is_plain(scenario: &Scenario) -> bool {
    let (Some(plain), [_], [tenant]) = (&*PLAIN, &scenario.server[..], &scenario.tenant[..]) else {
        return false;
    };
    let mut bare = scenario.clone();
    bare.title = plain.title.clone();
    bare.run = plain.run.clone();
    bare.hint = plain.hint.clone();
    bare.objective.clear();
    bare.server[0].name = plain.server[0].name.clone();
    bare.server[0].count = Count(1);
    bare.server[0].hint = None;
    let own = &mut bare.tenant[0];
    own.name = plain.tenant[0].name.clone();
    own.count = Count(1);
    own.arrivals = plain.tenant[0].arrivals.clone();
    own.duration = plain.tenant[0].duration.clone();
    own.servers = plain.tenant[0].servers.clone();
    own.policy = plain.tenant[0].policy.clone();
    let Some(policy) = scenario.policy.get(&tenant.policy) else {
        return false;
    };
    let Some(reference) = plain.policy.get("p") else {
        return false;
    };
    let mut policy = policy.clone();
    policy.extends = None;
    policy.default = reference.default;
    policy.floor = reference.floor;
    policy.ceiling = reference.ceiling;
    if policy.first_poll == written::FirstPoll::AtOnce {
        policy.first_poll = reference.first_poll.clone();
    }
    bare.policy = [("p".to_string(), policy)].into();
    bare == *plain
}

impl Fleet {
    /// The fleet of a scenario that meets the conditions.
    fn of(scenario: &Scenario) -> Option<Self> {
        if !is_plain(scenario) {
            return None;
        }
        let tenant = &scenario.tenant[0];
        let bounded = tenant.duration.min.is_some() || tenant.duration.max.is_some();
        let duration = match &tenant.duration.kind {
            _ if bounded => return None,
            Kind::Constant(d) if d.0 > 0 => Runs::Constant(d.as_seconds()),
            Kind::Exponential { mean } => Runs::Exponential(mean.as_seconds()),
            _ => return None,
        };
        let members = f64::from(tenant.count.0);
        let outlasts = |s: f64| s >= scenario.run.horizon.0.as_seconds();
        let tasks = match (&tenant.arrivals, duration) {
            (Arrivals::Poisson(p), _) if p.tasks.is_none() => Tasks::Arriving {
                per_s: members * p.rate.per_second(),
                duration,
            },
            (Arrivals::AtOnce(at), Runs::Constant(s)) if at.at.0 == 0 && outlasts(s) => {
                Tasks::Running {
                    tasks: members * f64::from(at.tasks.0),
                }
            }
            _ => return None,
        };
        let model = Model::new(scenario);
        let policy = model.policies.get(model.tenants[0].policy)?;
        let first_poll = match policy.first_poll {
            crate::policy::FirstPoll::AtOnce => FirstPoll::Immediate,
            crate::policy::FirstPoll::AfterWait => FirstPoll::AfterInterval,
            crate::policy::FirstPoll::After(_) => return None,
        };
        if !hints_are_drawn_by_inversion(scenario) {
            return None;
        }
        Some(Fleet {
            tasks,
            first_poll,
            intervals: intervals(&model.servers[0].hint, policy)?,
        })
    }

    fn mean(&self, value: impl Fn(u64) -> f64) -> f64 {
        self.intervals
            .iter()
            .map(|(weight, ns)| weight * value(*ns))
            .sum()
    }

    /// When all but a share [`TRANSIENT`] of the tasks that are there have the age that they have in the steady state.
    fn settled_s(&self, duration: Runs) -> f64 {
        let longest = self.intervals.iter().map(|i| i.1).max().unwrap_or(0);
        seconds(longest)
            + match duration {
                Runs::Constant(s) => s,
                Runs::Exponential(mean_s) => -mean_s * libm::log(TRANSIENT),
            }
    }

    /// The delay that a share `p` of the tasks does not exceed, by bisection.
    fn delay_quantile_s(&self, duration: Runs, p: f64) -> f64 {
        let longest = self.intervals.iter().map(|i| i.1).max().unwrap_or(0);
        let (mut low, mut high) = (0.0, seconds(longest));
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.mean(|ns| duration.delay_at_most(middle, seconds(ns))) >= p {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

/// Are drawn hints of kinds whose draws are quantiles, without bounds?
fn hints_are_drawn_by_inversion(scenario: &Scenario) -> bool {
    let mixes = scenario.hint.values().flat_map(|h| &h.mix);
    mixes.into_iter().all(|part| match &part.wire {
        Wire::Ms(ms) => matches!(
            ms.kind,
            Kind::Constant(_)
                | Kind::Uniform { .. }
                | Kind::Exponential { .. }
                | Kind::Lognormal { .. }
        ),
        _ => true,
    })
}

/// The intervals that tasks keep, with their weights; `None` where some are drawn anew, have no length or no end.
fn intervals(hint: &HintSource, policy: &Policy) -> Option<Vec<(f64, u64)>> {
    let mut intervals = Vec::new();
    let mut add = |weight: f64, hint: RawHint| {
        let ns = kept(policy, hint)?;
        intervals.push((weight, ns));
        Some(())
    };
    match hint {
        HintSource::Constant(hint) => add(1.0, *hint)?,
        HintSource::PerTask(mix, _) => {
            let mut before = 0.0;
            for (share, part) in mix.shares.iter().zip(&mix.parts) {
                let weight = share - before;
                before = *share;
                match part {
                    Part::Fixed(hint) => add(weight, *hint)?,
                    Part::Drawn(_) => {
                        let step = u64::MAX / u64::from(POINTS);
                        for k in 0..u64::from(POINTS) {
                            add(
                                weight / f64::from(POINTS),
                                part.hint(|| k * step + step / 2),
                            )?;
                        }
                    }
                }
            }
        }
        _ => return None,
    }
    Some(intervals)
}

/// The interval of a task whose answers all carry this hint.
fn kept(policy: &Policy, hint: RawHint) -> Option<u64> {
    let mut state = State::default();
    policy.decide(&mut state, Saw::Created(hint), 0);
    match policy.decide(&mut state, Saw::Unchanged(hint), 0) {
        Decision::Wait(w) if w.wait > 0 && w.wait < FOREVER => Some(w.wait),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::testing::assert_close;
    use super::*;
    use crate::experiment;

    fn scenario(arrivals: &str, duration: &str, hint: &str, more: &str) -> Scenario {
        let text = format!(
            "[run]\nhorizon = \"10min\"\nwarm_up = \"5min\"\nreplications = 8\nconfidence = 0.999\n[[server]]\nname = \"b\"\nhint = \"h\"\n\
             [hint.h]\nmix = [{hint}]\n[[tenant]]\nname = \"a\"\ncount = 40\narrivals = {arrivals}\nduration = {duration}\n\
             servers = {{ b = 1 }}\npolicy = \"envelope\"\n[policy.envelope]\ndefault = \"3s\"\nfloor = \"1s\"\nceiling = \"20s\"\n{more}"
        );
        crate::scenario::parse("test", &text, &[]).unwrap().scenario
    }

    const LOGNORMAL: &str = "{ ms = { lognormal = { median = 5000, sigma = 1.5 } } }";
    const MIXED: &str = "{ weight = 3, value = 0 }, { weight = 4, value = 7000 }, { weight = 1, absent = true }, { weight = 2, ms = { uniform = { low = 500, high = 9000 } } }";

    #[test]
    fn the_simulator_meets_them() {
        let cases = [
            (
                "{ poisson = { rate = \"0.1/s\" } }",
                "{ exponential = { mean = \"20s\" } }",
                LOGNORMAL,
                "",
            ),
            (
                "{ poisson = { rate = \"0.1/s\" } }",
                "{ exponential = { mean = \"20s\" } }",
                MIXED,
                "first_poll = \"at_once\"",
            ),
            ("{ poisson = { rate = \"0.1/s\" } }", "\"31s\"", MIXED, ""),
            ("{ at_once = { tasks = 50 } }", "\"10min\"", LOGNORMAL, ""),
        ];
        for (arrivals, duration, hint, more) in cases {
            let scenario = scenario(arrivals, duration, hint, more);
            let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
            let mut held = 0;
            for metric in [
                "tasks_get_rate_mean_per_s",
                "completion_latency_mean_ms",
                "completion_latency_p50_ms",
                "completion_latency_p95_ms",
                "completion_latency_p99_ms",
            ] {
                let Some(exact) = value(&scenario, metric) else {
                    continue;
                };
                let e = results.estimate("fleet", metric).unwrap();
                let (lo, hi) = (e.lo.unwrap(), e.hi.unwrap());
                // Quantiles are known to 0.1 %.
                let slack = 1e-3 * exact;
                assert!(
                    lo - slack <= exact && exact <= hi + slack,
                    "{duration} {metric}: {exact} in {lo} to {hi}"
                );
                held += 1;
            }
            assert_eq!(held, if arrivals.contains("poisson") { 5 } else { 1 });
        }
    }

    #[test]
    fn tasks_that_always_run_are_those_of_o8() {
        let running = scenario("{ at_once = { tasks = 50 } }", "\"10min\"", LOGNORMAL, "");
        let o8 =
            2000.0 * super::super::mean_inverse_clamped_lognormal(libm::log(5.0), 1.5, 1.0, 20.0);
        assert_close(load_per_s(&running).unwrap(), o8, 5e-3);
    }

    #[test]
    fn a_condition_that_is_missed_gives_nothing() {
        let of = |duration: &str, hint: &str, more: &str| {
            let poisson = "{ poisson = { rate = \"0.1/s\" } }";
            load_per_s(&scenario(poisson, duration, hint, more))
        };
        assert!(of("\"31s\"", MIXED, "").is_some());
        assert_eq!(
            of("{ gamma = { mean = \"20s\", cv = 1 } }", MIXED, ""),
            None
        );
        assert_eq!(of("\"31s\"", MIXED, "jitter = \"full\""), None);
        assert_eq!(
            of("\"31s\"", MIXED, "backoff = { geometric = { factor = 2 } }"),
            None
        );
        assert_eq!(
            of("\"31s\"", MIXED, "[budget]\nfleet = { rate = \"9/s\" }"),
            None
        );
        assert_eq!(of("\"295s\"", MIXED, ""), None, "not in its steady state");
        assert_eq!(
            of(
                "\"31s\"",
                "{ ms = { gamma = { mean = 2000, cv = 1 } } }",
                ""
            ),
            None
        );
    }
}
