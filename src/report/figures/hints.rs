//! What the policies of a run make of hints, and which hints came in.
//!
//! The waits are those of [`crate::policy`] itself, asked hint by hint; nothing is modelled again here.

use super::super::Provenance;
use crate::charts::hint_effect::{BadHint, Effect, HintEffect, PolicyEffect, SaneHint};
use crate::experiment::Results;
use crate::metrics::histogram::Histogram;
use crate::model::Model;
use crate::policy::{Decision, FOREVER, HintClass, LoopEnd, Policy, RawHint, Saw, State};
use crate::scenario::Scenario;

/// Policies that are shown.
const MOST_POLICIES: usize = 4;
/// Draws of the jitter that are tried, as 64-bit fractions of one: least, middle, greatest.
const DRAWS: [u64; 3] = [0, 1 << 63, u64::MAX];
/// The greatest sane hint, ms.
const GREATEST: f64 = 2_147_483_647.0;
/// Sane hints per decade.
const PER_DECADE: i32 = 12;
/// The classes of bad hints, with a hint of each and its words.
const BAD: [(HintClass, RawHint, &str); 9] = [
    (HintClass::Absent, RawHint::Absent, "absent"),
    (HintClass::Null, RawHint::Null, "null"),
    (HintClass::Zero, RawHint::Number(0.0), "zero (0)"),
    (HintClass::Negative, RawHint::Number(-1.0), "negative (−1)"),
    (
        HintClass::Fractional,
        RawHint::Number(0.5),
        "fractional (0.5)",
    ),
    (
        HintClass::NonFinite,
        RawHint::Number(f64::NAN),
        "not a number (NaN)",
    ),
    (HintClass::Text, RawHint::Text(f64::NAN), "text (\"soon\")"),
    (
        HintClass::BeyondI32Ms,
        RawHint::Number(GREATEST + 1.0),
        "2³¹ ms and more",
    ),
    (
        HintClass::BeyondI64Ns,
        RawHint::Number(1e13),
        "2⁶³ ns and more",
    ),
];

/// The figure.
pub(super) fn of(results: &Results, scenario: &Scenario, provenance: &Provenance) -> HintEffect {
    let model = Model::new(scenario);
    let mut used: Vec<usize> = model.tenants.iter().map(|t| t.policy).collect();
    used.sort_unstable();
    used.dedup();
    let policy = |at: &usize| effect(*at, results, &model);
    HintEffect {
        title: "What came in, and what the policy made of it".into(),
        policies: used.iter().take(MOST_POLICIES).map(policy).collect(),
        provenance: provenance.line(),
    }
}

/// A policy with the hints of the tenants that follow it.
fn effect(at: usize, results: &Results, model: &Model) -> PolicyEffect {
    let policy = &model.policies[at];
    let followers: Vec<usize> = (0..model.tenants.len())
        .filter(|t| model.tenants[*t].policy == at)
        .collect();
    let servers = model.servers.len();
    let mut counts = [0u64; HintClass::COUNT];
    let mut sane = Histogram::default();
    for tally in followers
        .iter()
        .flat_map(|t| results.pairs.iter().skip(t * servers).take(servers))
    {
        counts
            .iter_mut()
            .zip(tally.hints)
            .for_each(|(sum, n)| *sum += n);
        sane.merge(&tally.sane_hints);
    }
    let all: u64 = counts.iter().sum();
    let share = |class: HintClass| (all > 0).then(|| counts[class as usize] as f64 / all as f64);
    let bad = BAD.iter().map(|(class, hint, label)| BadHint {
        label: (*label).into(),
        effect: ask(policy, *hint),
        share: share(*class),
    });
    let ms = |ns: u64| ns as f64 / 1e6;
    PolicyEffect {
        label: label(policy, &followers, model),
        floor_ms: (policy.floor > 0).then(|| ms(policy.floor)),
        ceiling_ms: (policy.ceiling < FOREVER).then(|| ms(policy.ceiling)),
        bad: bad.collect(),
        sane: sane_hints(policy)
            .into_iter()
            .map(|hint_ms| SaneHint {
                hint_ms,
                effect: ask(policy, RawHint::Number(hint_ms)),
            })
            .collect(),
        sane_share: share(HintClass::Sane),
        seen: seen(&sane),
    }
}

fn label(policy: &Policy, followers: &[usize], model: &Model) -> String {
    let names: Vec<&str> = followers
        .iter()
        .map(|t| model.tenants[*t].name.as_str())
        .collect();
    let words = if names.len() == 1 {
        "tenant class"
    } else {
        "tenant classes"
    };
    format!(
        "policy {}, followed by {words} {}",
        policy.name,
        names.join(", ")
    )
}

/// Whole milliseconds from 1 to 2^31 - 1, evenly on a logarithmic scale, and the bounds with their neighbours.
fn sane_hints(policy: &Policy) -> Vec<f64> {
    let steps = 0..=(10 * PER_DECADE);
    let even = steps.map(|k| libm::round(libm::pow(10.0, f64::from(k) / f64::from(PER_DECADE))));
    let bounds = [policy.floor, policy.ceiling].map(|ns| ns as f64 / 1e6);
    let near = bounds
        .into_iter()
        .flat_map(|ms| [libm::floor(ms), libm::ceil(ms)]);
    let mut hints: Vec<f64> = even
        .chain(near)
        .filter(|ms| (1.0..=GREATEST).contains(ms))
        .chain([GREATEST])
        .collect();
    hints.sort_by(f64::total_cmp);
    hints.dedup();
    hints
}

/// What becomes of a task whose creation and answers all carry this hint: the wait after its first answer.
pub fn ask(policy: &Policy, hint: RawHint) -> Effect {
    let mut waits = [0u64; DRAWS.len()];
    for (wait, u) in waits.iter_mut().zip(DRAWS) {
        let mut state = State::default();
        let created = policy.decide(&mut state, Saw::Created(hint), u);
        let decision = match created {
            Decision::Wait(_) => policy.decide(&mut state, Saw::Changed(hint), u),
            other => other,
        };
        *wait = match decision {
            Decision::Wait(w) if w.wait >= FOREVER => return Effect::Forever,
            Decision::Wait(w) => w.wait,
            // No question is put here.
            Decision::AwaitResult => 0,
            Decision::End(LoopEnd::Error | LoopEnd::Question) => return Effect::Error,
            Decision::End(LoopEnd::Rejected) => return Effect::Rejected,
        };
    }
    let [low, middle, high] = waits.map(|ns| ns as f64 / 1e6);
    Effect::Waits {
        low_ms: low.min(middle).min(high),
        middle_ms: middle,
        high_ms: high.max(middle).max(low),
    }
}

/// Where sane hints lay, in stretches of a sixth of a decade, ms.
fn seen(hints: &Histogram) -> Vec<(f64, f64, f64)> {
    let all = hints.count();
    let edge = |k: i32| libm::pow(10.0, f64::from(k) / 6.0);
    // Hints are recorded in µs.
    let below = |ms: f64| hints.at_most((ms * 1e3) as u64);
    let stretches = (0..56).map(|k| (edge(k), edge(k + 1)));
    stretches
        .map(|(low, high)| {
            (
                low,
                high,
                below(high).saturating_sub(below(low * (1.0 - 1e-9) - 1e-3)),
            )
        })
        .filter(|s| s.2 > 0)
        .map(|(low, high, n)| (low, high, n as f64 / all as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use std::sync::atomic::AtomicBool;

    /// The small fleet with a hint of 0 three times as often as one of 2 s, and these lines in its policy.
    fn figure(policy: &str) -> PolicyEffect {
        let text = format!(
            "{}{policy}\n[hint.h]\nmix = [{{ weight = 3, value = 0 }}, {{ weight = 1, value = 2000 }}]\n",
            experiment::tests::SMALL.replace("name = \"s\"", "name = \"s\"\nhint = \"h\"")
        );
        let scenario = crate::scenario::parse("test", &text, &[]).unwrap().scenario;
        let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
        let provenance = Provenance::new("test", &[], &scenario);
        of(&results, &scenario, &provenance).policies.remove(0)
    }

    fn effect_of(figure: &PolicyEffect, class: &str) -> Effect {
        figure
            .bad
            .iter()
            .find(|b| b.label.starts_with(class))
            .unwrap()
            .effect
    }

    fn waits(ms: f64) -> Effect {
        Effect::Waits {
            low_ms: ms,
            middle_ms: ms,
            high_ms: ms,
        }
    }

    #[test]
    fn bad_hints_become_what_the_policy_makes_of_them() {
        let figure = figure(
            "floor = \"500ms\"\nceiling = \"5s\"\njitter = { proportional = 0.1 }\nrules = [{ class = \"text\", then = \"error\" }, \
             { class = \"null\", then = \"reject\" }, { class = \"negative\", then = \"forever\" }]",
        );
        assert_eq!(
            (figure.floor_ms, figure.ceiling_ms),
            (Some(500.0), Some(5000.0))
        );
        assert_eq!(effect_of(&figure, "text"), Effect::Error);
        assert_eq!(effect_of(&figure, "null"), Effect::Rejected);
        // The ceiling bounds even a wait for ever.
        assert!(matches!(
            effect_of(&figure, "negative"),
            Effect::Waits {
                high_ms: 5000.0,
                ..
            }
        ));
        let Effect::Waits {
            low_ms, high_ms, ..
        } = effect_of(&figure, "absent")
        else {
            panic!("it waits");
        };
        assert!((low_ms - 900.0).abs() < 1e-3 && (high_ms - 1100.0).abs() < 1e-3);
        let least = figure.sane.iter().map(|s| match s.effect {
            Effect::Waits { low_ms, .. } => low_ms,
            _ => f64::NAN,
        });
        assert_eq!(
            least.reduce(f64::min),
            Some(500.0),
            "the envelope's promise holds after jitter"
        );
    }

    #[test]
    fn without_bounds_a_rule_for_ever_is_one() {
        let figure = figure("rules = [{ class = \"zero\", then = \"forever\" }]");
        assert_eq!(effect_of(&figure, "zero"), Effect::Forever);
        assert_eq!(effect_of(&figure, "2³¹"), waits(2_147_483_648.0));
    }

    #[test]
    fn shares_and_places_of_hints_are_those_of_the_run() {
        let figure = figure("floor = \"100ms\"");
        let zero = figure
            .bad
            .iter()
            .find(|b| b.label.starts_with("zero"))
            .unwrap();
        let sum: f64 = figure
            .bad
            .iter()
            .filter_map(|b| b.share)
            .chain(figure.sane_share)
            .sum();
        assert!((sum - 1.0).abs() < 1e-12 && zero.share > Some(0.0));
        let (low, high, share) = figure.seen[0];
        assert!(figure.seen.len() == 1 && low <= 2000.0 && 2000.0 <= high && share == 1.0);
        assert_eq!(effect_of(&figure, "absent"), waits(1000.0));
    }
}
