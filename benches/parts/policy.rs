//! Decisions: from an answer with its hint to the next wait.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pollpace::policy::{RawHint, Saw, State};

use crate::workloads;

/// Decisions in one sample, on answers whose hints differ.
const DECISIONS: usize = 10_000;

/// A policy: what is set in W1 to get it.
const POLICIES: [(&str, &[&str]); 3] = [
    (
        "envelope",
        &[
            "policy.steady.floor=\"500ms\"",
            "policy.steady.ceiling=\"3s\"",
        ],
    ),
    (
        "geometric-backoff",
        &[
            "policy.steady.ceiling=\"30s\"",
            "policy.steady.backoff={ geometric = { factor = 1.5, cap = \"30s\" } }",
        ],
    ),
    ("preset", &["tenant.agents.policy=\"mcp-py-1.x\""]),
];

#[divan::bench(args = POLICIES.map(|(name, _)| name))]
fn decide(bencher: Bencher, name: &str) {
    let set = POLICIES
        .iter()
        .find(|p| p.0 == name)
        .map_or(&[][..], |p| p.1);
    let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
    let model = workloads::w1(1_000, &set);
    let policy = &model.policies[model.tenants[0].policy];
    let hints = [
        RawHint::Number(800.0),
        RawHint::Number(2_000.0),
        RawHint::Absent,
        RawHint::Number(0.0),
    ];
    bencher.counter(ItemsCount::new(DECISIONS)).bench_local(|| {
        let mut state = State::default();
        policy.decide(&mut state, Saw::Created(RawHint::Absent), 0);
        for number in 0..DECISIONS {
            let saw = Saw::Unchanged(hints[number % hints.len()]);
            // Spread over all fractions of one.
            let u = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            black_box(policy.decide(&mut state, black_box(saw), u));
        }
    });
}
