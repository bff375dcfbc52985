//! Scenarios like another one but for a single thing: what its servers suggest, or how many tasks it has.
//!
//! Whatever is not changed keeps its random streams, so that a scenario and its what-ifs can be compared pair by pair.

use std::collections::BTreeMap;

use crate::scenario::Scenario;
use crate::scenario::faults::Notifications;
use crate::scenario::fields::{Count, Share, Weight};
use crate::scenario::policy::{Policy, Push};
use crate::scenario::units::Duration;
use crate::scenario::written::{Arrivals, Drawn, Hint, HintPart, HintRef, Wire};

/// The largest hint that is still a sane one, in ms: 2^31 - 1, just over 24 days.
pub const HUGE_HINT_MS: f64 = 2_147_483_647.0;

/// The scenario with servers that all suggest `ms` in every answer.
pub fn with_hint(scenario: &Scenario, ms: f64) -> Scenario {
    let mut changed = scenario.clone();
    changed.hint = BTreeMap::new();
    for server in &mut changed.server {
        server.hint = Some(HintRef::Constant(ms));
    }
    changed
}

/// The scenario with hosts that all follow one policy.
pub fn with_policy(scenario: &Scenario, name: &str, policy: &Policy) -> Scenario {
    let mut changed = scenario.clone();
    changed.policy = BTreeMap::from([(name.to_string(), policy.clone())]);
    for tenant in &mut changed.tenant {
        tenant.policy = name.into();
    }
    changed
}

/// The scenario with servers that all draw each task's hint from these, in equal shares.
pub fn with_hints(scenario: &Scenario, hints: &[Wire]) -> Scenario {
    const NAME: &str = "what-if";
    let part = |wire: &Wire| HintPart {
        weight: Weight(1.0),
        wire: wire.clone(),
    };
    let mix = Hint {
        drawn: Drawn::PerTask,
        mix: hints.iter().map(part).collect(),
        steps: Vec::new(),
    };
    let mut changed = scenario.clone();
    changed.hint = BTreeMap::from([(NAME.to_string(), mix)]);
    for server in &mut changed.server {
        server.hint = Some(HintRef::Name(NAME.into()));
    }
    changed
}

/// The scenario with `factor` times as many tasks of every tenant class: more frequent arrivals where these have a rate or a period, else more tasks
/// of each member or more members, whichever are more numerous (and so nearer to the factor once they are whole).
pub fn with_tasks(scenario: &Scenario, factor: f64) -> Scenario {
    let mut changed = scenario.clone();
    let scaled = |n: Count| {
        Count(
            (f64::from(n.0) * factor)
                .round()
                .clamp(1.0, f64::from(u32::MAX)) as u32,
        )
    };
    // More tasks may take more events, too.
    let limit = &mut changed.run.event_limit;
    *limit = limit.map(|n| (n as f64 * factor).ceil() as u64);
    for tenant in &mut changed.tenant {
        let members = &mut tenant.count;
        let mut scale = |tasks: &mut Count| {
            let more = if tasks.0 >= members.0 {
                tasks
            } else {
                &mut *members
            };
            *more = scaled(*more);
        };
        match &mut tenant.arrivals {
            Arrivals::Poisson(poisson) => {
                poisson.rate.count *= factor;
                poisson.tasks = poisson.tasks.map(scaled);
            }
            Arrivals::OnOff(bursts) => bursts.rate.count *= factor,
            Arrivals::Periodic(periodic) => {
                let every = periodic.every.0.0 as f64 / factor;
                periodic.every.0 = Duration((every.round() as u64).max(1));
                periodic.tasks = periodic.tasks.map(scaled);
            }
            Arrivals::AtOnce(at) => scale(&mut at.tasks),
            Arrivals::Offset(offset) => scale(&mut offset.tasks),
            Arrivals::ClosedLoop(closed) => scale(&mut closed.tasks),
            Arrivals::Recorded(_) => *members = scaled(*members),
        }
    }
    changed
}

/// The scenario with `factor` times the capacity of every server: workers of its task store, tasks that it executes at once, and rate limits.
pub fn with_capacity(scenario: &Scenario, factor: u32) -> Scenario {
    let more = |n: Count| Count(n.0.saturating_mul(factor));
    let mut changed = scenario.clone();
    for server in &mut changed.server {
        server.tasks_get.workers = more(server.tasks_get.workers);
        server.executes = server.executes.map(more);
        for limit in &mut server.limits {
            if let Some(bucket) = &mut limit.bucket {
                bucket.rate.count *= f64::from(factor);
            }
            if let Some(quota) = &mut limit.quota {
                quota.requests = more(quota.requests);
            }
        }
    }
    changed
}

/// The scenario with servers that notify every change of a status, and hosts that are woken by it.
pub fn with_push(scenario: &Scenario) -> Scenario {
    let mut changed = scenario.clone();
    for server in &mut changed.server {
        server.notifications = Some(Notifications {
            share: Share(1.0),
            delay: server.delay.clone(),
        });
    }
    for policy in changed.policy.values_mut() {
        policy.push = Push::Wakes;
    }
    changed
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::{self, tests::SMALL};

    fn small(overrides: &[&str]) -> Scenario {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let loaded = crate::scenario::parse("test", SMALL, &overrides).unwrap();
        loaded.scenario
    }

    fn mean(scenario: &Scenario, metric: &str) -> f64 {
        let results = experiment::run(scenario, &AtomicBool::new(false), |_| {}).unwrap();
        let estimate = results.estimate("fleet", metric).unwrap();
        estimate.mean.unwrap()
    }

    #[test]
    fn every_hint_is_the_one_asked_for() {
        let scenario = small(&[]);
        let changed = with_hint(&scenario, HUGE_HINT_MS);
        assert!(mean(&scenario, "hints_absent") > 0.0);
        assert_eq!(mean(&changed, "hints_absent"), 0.0);
        assert!(mean(&changed, "hints_sane") > 0.0);
        let mixed = with_hints(&scenario, &[Wire::Value(-1.0), Wire::Absent]);
        assert_eq!(mean(&mixed, "hints_sane"), 0.0);
        assert!(mean(&mixed, "hints_negative") > 0.0 && mean(&mixed, "hints_absent") > 0.0);
        // Tasks and their durations are as they were.
        assert_eq!(mean(&scenario, "tasks"), mean(&mixed, "tasks"));
    }

    #[test]
    fn tasks_are_scaled_whatever_their_arrivals() {
        for arrivals in [
            "{ at_once = { tasks = 20 } }",
            "{ offset = { after = \"1s\", tasks = 20 } }",
            "{ closed_loop = { tasks = 20, think = \"1h\" } }",
            "{ periodic = { every = \"1s\" } }",
        ] {
            let scenario = small(&[&format!("tenant.t.arrivals={arrivals}")]);
            let changed = with_tasks(&scenario, 1.5);
            assert_eq!(mean(&scenario, "tasks"), 20.0, "{arrivals}");
            assert_eq!(mean(&changed, "tasks"), 30.0, "{arrivals}");
        }
        // Where each member has one task, there are more members.
        let scenario = small(&["tenant.t.count=10", "tenant.t.arrivals={ at_once = {} }"]);
        assert_eq!(mean(&with_tasks(&scenario, 1.5), "tasks"), 15.0);
        let poisson = small(&["run.horizon=1000s"]);
        let ratio = mean(&with_tasks(&poisson, 2.0), "tasks") / mean(&poisson, "tasks");
        assert!((ratio - 2.0).abs() < 0.15, "{ratio}");
    }
}
