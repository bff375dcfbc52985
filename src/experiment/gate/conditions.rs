//! The six conditions: what is put to the policies of a scenario, everything else being as written.

use serde::Serialize;

use crate::experiment::what_if::{HUGE_HINT_MS, with_hints, with_tasks};
use crate::model::TimeSampler;
use crate::scenario::Scenario;
use crate::scenario::distribution::{Distribution, Kind};
use crate::scenario::fields::Share;
use crate::scenario::units::Duration;
use crate::scenario::written::{Abort, Time, Wire};

/// An hour, as a hint.
const HOUR_MS: f64 = 3_600_000.0;
/// Tasks in *concurrency*, as a multiple of the scenario's.
pub const MORE_TASKS: f64 = 2.0;

/// One of the six.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Servers ask for polls without a pause.
    Low,
    /// The scenario as it is.
    Normal,
    /// Servers ask for no polls, or almost none.
    High,
    /// Servers send what is no interval.
    Malformed,
    /// Every task is aborted while it runs.
    Cancellation,
    /// There are more tasks.
    Concurrency,
}

impl Condition {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Condition; 6] = [
        Condition::Low,
        Condition::Normal,
        Condition::High,
        Condition::Malformed,
        Condition::Cancellation,
        Condition::Concurrency,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Low => "low",
            Condition::Normal => "normal",
            Condition::High => "high",
            Condition::Malformed => "malformed",
            Condition::Cancellation => "cancellation",
            Condition::Concurrency => "concurrency",
        }
    }

    /// What it puts to a policy, in a line.
    pub fn what(self) -> &'static str {
        match self {
            Condition::Low => "hints of 0, 1 and 10 ms",
            Condition::Normal => "the scenario as it is",
            Condition::High => "hints of an hour and of 2^31 - 1 ms",
            Condition::Malformed => {
                "hints of -250, 0.5, NaN, \"soon\", null, none, 2^31, 1e15 and 1e300"
            }
            Condition::Cancellation => "every task aborted while it runs, hints as in high",
            Condition::Concurrency => "twice the tasks",
        }
    }

    /// The scenario under it. Hints are drawn for each task, in equal shares, and are the same in all of its answers. What one hint alone does to a loop may not
    /// show among the others, so each is tried by itself, too: see [`Condition::of_hint`].
    pub fn of(self, scenario: &Scenario) -> Scenario {
        match self {
            Condition::Normal => scenario.clone(),
            Condition::Low | Condition::High | Condition::Malformed => {
                with_hints(scenario, &self.hints())
            }
            Condition::Cancellation => {
                let mut changed = with_hints(scenario, &Condition::High.hints());
                for tenant in &mut changed.tenant {
                    tenant.abort = Some(while_it_runs(tenant.abort.take(), &tenant.duration));
                }
                changed
            }
            Condition::Concurrency => with_tasks(scenario, MORE_TASKS),
        }
    }

    /// The scenario with servers that give this hint, and no other, to every task.
    pub fn of_hint(scenario: &Scenario, hint: &Wire) -> Scenario {
        with_hints(scenario, std::slice::from_ref(hint))
    }

    /// The hints that it puts in place of the scenario's; none where it leaves those.
    pub fn hints(self) -> Vec<Wire> {
        match self {
            Condition::Low => [0.0, 1.0, 10.0].map(Wire::Value).to_vec(),
            Condition::High => [HOUR_MS, HUGE_HINT_MS].map(Wire::Value).to_vec(),
            Condition::Malformed => vec![
                Wire::Value(-250.0),
                Wire::Value(0.5),
                Wire::Value(f64::NAN),
                Wire::Text("soon".into()),
                Wire::Null,
                Wire::Absent,
                Wire::Value(HUGE_HINT_MS + 1.0),
                Wire::Value(1e15),
                Wire::Value(1e300),
            ],
            _ => Vec::new(),
        }
    }
}

/// A hint in words, as in [`Condition::what`].
pub fn named(hint: &Wire) -> String {
    match hint {
        Wire::Absent => "none".into(),
        Wire::Null => "null".into(),
        Wire::Text(text) => format!("{text:?}"),
        Wire::Value(ms) if *ms == HUGE_HINT_MS => "2^31 - 1 ms".into(),
        Wire::Value(ms) if *ms == HUGE_HINT_MS + 1.0 => "2^31 ms".into(),
        Wire::Value(ms) if *ms == HOUR_MS => "an hour".into(),
        Wire::Value(ms) if ms.is_nan() => "NaN".into(),
        Wire::Value(ms) if ms.abs() >= 1e15 => format!("{ms:e} ms"),
        Wire::Value(ms) => format!("{ms} ms"),
        // No condition draws one.
        Wire::Ms(_) => "drawn".into(),
    }
}

/// Every task is aborted at an age that is uniform up to one that nine tasks of ten outlive; in the manner written, where there is one.
fn while_it_runs(written: Option<Abort>, duration: &Time) -> Abort {
    let manner = written.unwrap_or(Abort {
        probability: Share(1.0),
        after: None,
        shutdown_at: None,
        deadline: None,
        request: None,
        then: None,
        cancel_bound: None,
        grace: None,
        notifications: None,
    });
    let after = Distribution {
        kind: Kind::Uniform {
            low: Duration(0),
            high: outlived_by_most(duration),
        },
        min: None,
        max: None,
    };
    Abort {
        probability: Share(1.0),
        after: Some(after),
        shutdown_at: None,
        deadline: None,
        ..manner
    }
}

/// An age that nine tasks of ten outlive; at least 1 ns.
fn outlived_by_most(duration: &Time) -> Duration {
    Duration(TimeSampler::new(duration).quantile(0.1).max(1))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::{Results, run, tests::SMALL};
    use crate::policy::HintClass;

    fn scenario(overrides: &[&str]) -> Scenario {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let loaded = crate::scenario::parse("test", SMALL, &overrides).unwrap();
        loaded.scenario
    }

    fn results(condition: Condition, overrides: &[&str]) -> Results {
        let changed = condition.of(&scenario(overrides));
        run(&changed, &AtomicBool::new(false), |_| {}).unwrap()
    }

    fn mean(results: &Results, metric: &str) -> f64 {
        results.estimate("fleet", metric).unwrap().mean.unwrap()
    }

    #[test]
    fn every_hint_comes_up() {
        // The floor keeps a hint of 0 from being a loop that takes no time.
        let horizon = &["run.horizon=200s", "policy.p.floor=100ms"];
        let seen = |condition| results(condition, horizon).pairs[0].hints;
        let counts = seen(Condition::Malformed);
        for class in HintClass::ALL {
            let wanted = !matches!(class, HintClass::Zero | HintClass::Sane);
            assert_eq!(counts[class as usize] > 0, wanted, "{class:?}");
        }
        let low = results(Condition::Low, horizon);
        assert!(low.pairs[0].hints[HintClass::Zero as usize] > 0);
        assert_eq!(low.pairs[0].hint_greatest, 10.0);
        let high = results(Condition::High, horizon);
        assert_eq!(high.pairs[0].hint_greatest, HUGE_HINT_MS);
        assert_eq!(high.pairs[0].hint_least, HOUR_MS);
    }

    #[test]
    fn a_hint_by_itself_is_the_only_one_and_has_a_name() {
        let names = |condition: Condition| condition.hints().iter().map(named).collect::<Vec<_>>();
        assert_eq!(names(Condition::Low), ["0 ms", "1 ms", "10 ms"]);
        assert_eq!(names(Condition::High), ["an hour", "2^31 - 1 ms"]);
        let malformed = [
            "-250 ms", "0.5 ms", "NaN", "\"soon\"", "null", "none", "2^31 ms", "1e15 ms",
            "1e300 ms",
        ];
        assert_eq!(names(Condition::Malformed), malformed);
        let changed = Condition::of_hint(&scenario(&[]), &Wire::Value(-250.0));
        let results = run(&changed, &AtomicBool::new(false), |_| {}).unwrap();
        for class in HintClass::ALL {
            let seen = results.pairs[0].hints[class as usize] > 0;
            assert_eq!(seen, class == HintClass::Negative, "{class:?}");
        }
    }

    #[test]
    fn every_task_is_aborted_while_it_runs() {
        for duration in [
            "3s",
            "{ uniform = { low = \"2s\", high = \"4s\" } }",
            "{ gamma = { mean = \"30s\", cv = 0.2 } }",
        ] {
            let overrides = &[
                &*format!("tenant.t.duration={duration}"),
                "policy.p.ceiling=10s",
            ];
            let results = results(Condition::Cancellation, overrides);
            let tasks = mean(&results, "tasks");
            let aborts = mean(&results, "aborts");
            assert!(
                tasks > 0.0 && aborts >= 0.9 * tasks,
                "{duration}: {aborts} of {tasks}"
            );
        }
    }

    #[test]
    fn the_written_manner_stays_and_its_time_does_not() {
        let abort = "tenant.t.abort={ probability = 0, deadline = \"1ms\", after = \"1h\", then = \"cancel\", request = \"waits\" }";
        let changed = Condition::Cancellation.of(&scenario(&[abort]));
        let abort = changed.tenant[0].abort.clone().unwrap();
        use crate::scenario::written::{InFlight, Then};
        let manner = (abort.then, abort.request);
        assert_eq!(manner, (Some(Then::Cancel), Some(InFlight::Waits)));
        assert_eq!((abort.probability, abort.deadline), (Share(1.0), None));
        assert_eq!(
            outlived_by_most(&abort.after.unwrap()),
            Duration(301_500_000)
        );
    }

    #[test]
    fn the_age_that_most_tasks_outlive_is_the_tenth_part_of_their_distribution() {
        // -ln(0.9) of the mean, for an exponential.
        let changed = scenario(&["tenant.t.duration={ exponential = { mean = \"10s\" } }"]);
        let age = outlived_by_most(&changed.tenant[0].duration);
        assert!((age.as_seconds() - 1.0536).abs() < 0.01, "{age}");
        let constant = scenario(&[]);
        assert_eq!(
            outlived_by_most(&constant.tenant[0].duration),
            Duration(3_000_000_000)
        );
    }

    #[test]
    fn twice_the_tasks() {
        let tasks = |condition| mean(&results(condition, &["run.horizon=1000s"]), "tasks");
        let ratio = tasks(Condition::Concurrency) / tasks(Condition::Normal);
        assert!((ratio - 2.0).abs() < 0.15, "{ratio}");
    }
}
