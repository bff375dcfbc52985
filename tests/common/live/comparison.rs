//! The runs of a recording held against the simulation of their setting.

use std::collections::BTreeSet;

use super::recording::{Group, Run, median};
use super::simulation::Simulated;
use What::*;

/// How far a median may lie from the simulation, as a share of what was measured.
const TOLERANCE: f64 = 0.15;

/// What takes less than this for both, ms, takes no time: it is the program's own work, which is not modelled. Gaps are always compared.
const AT_ONCE_MS: f64 = 2.0;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Ending,
    Order,
    Polls,
    Notices,
    Cancels,
    AfterAbort,
    Gap,
    Total,
    AbortLatency,
}

impl What {
    pub fn words(self) -> &'static str {
        match self {
            Ending => "its ending",
            Order => "the order",
            Polls => "polls",
            Notices => "notices",
            Cancels => "`tasks/cancel`",
            AfterAbort => "polls after the abort",
            Gap => "the gap",
            Total => "the total",
            AbortLatency => "abort latency",
        }
    }
}

/// What was compared, and what of it differs, in words.
#[derive(Default)]
pub struct Comparison {
    pub compared: Vec<What>,
    pub differs: Vec<(What, String)>,
}

impl Comparison {
    fn note(&mut self, what: What, same: bool, words: impl FnOnce() -> String) {
        self.compared.push(what);
        if !same {
            self.differs.push((what, words()));
        }
    }
}

impl Group {
    pub fn label(&self) -> String {
        format!("{} {}", self.setting.name, self.version)
    }

    pub fn median(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(self.runs.iter().filter_map(of))
    }
}

/// Do all runs have the same number of polls, so that it does not hang on a millisecond?
pub fn steady(group: &Group) -> bool {
    group.runs.iter().all(|r| r.polls == group.runs[0].polls)
}

/// The rules for the recording that is kept.
pub fn recorded_rules(group: &Group) -> Rules {
    Rules {
        steady: steady(group),
        busy: false,
    }
}

/// How strictly.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The number of polls has to be the same, not only near.
    pub steady: bool,
    /// Allows for a busy machine. Numbers of polls that need not be the same are left to the gaps. Other numbers of polls, in the median, the total and
    /// the abort latency hang on all waits before: they may be those of a timer a millisecond off.
    pub busy: bool,
}

/// Holds the runs of a group against the simulation.
pub fn compare(group: &Group, simulated: &Simulated, rules: Rules) -> Comparison {
    let mut comparison = Comparison::default();
    compare_what_is_sent(group, simulated, &mut comparison);
    compare_counts(group, simulated, rules, &mut comparison);
    for (what, measured, told) in times(group, simulated) {
        let (low, high) = if rules.busy && what != Gap {
            let around = group.simulate_around();
            let times = around.iter().flat_map(|s| times(group, s));
            range(times.filter(|t| t.0 == what).map(|(_, _, told)| told))
        } else {
            (told, told)
        };
        let near =
            low - measured <= TOLERANCE * measured && measured - high <= TOLERANCE * measured;
        comparison.note(what, near || at_once(what, measured, told), || {
            format!("{measured:.3} ms measured, {told:.3} simulated")
        });
    }
    comparison
}

/// The least and the greatest.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, greatest), value| {
        (value.min(least), value.max(greatest))
    })
}

/// Is it too short to be compared?
pub fn at_once(what: What, measured: f64, told: f64) -> bool {
    what != Gap && measured < AT_ONCE_MS && told < AT_ONCE_MS
}

/// Endings and orders, of every run.
fn compare_what_is_sent(group: &Group, simulated: &Simulated, comparison: &mut Comparison) {
    let endings: BTreeSet<&str> = group.runs.iter().map(|r| r.ending.as_str()).collect();
    let same = endings == BTreeSet::from([simulated.ending]);
    comparison.note(Ending, same, || {
        format!("{endings:?} measured, {} simulated", simulated.ending)
    });
    // Of a long run the beginning was kept.
    let same = |order: &Vec<String>| {
        *order == simulated.order
            || order.len() < simulated.order.len()
                && simulated.order.starts_with(order)
                && group.cut
    };
    let other = group.orders.iter().find(|order| !same(order));
    comparison.note(Order, other.is_none() && !group.orders.is_empty(), || {
        format!("{other:?} measured, {:?} simulated", simulated.order)
    });
}

/// Numbers of what was sent.
fn compare_counts(group: &Group, simulated: &Simulated, rules: Rules, comparison: &mut Comparison) {
    let polls: Vec<f64> = group.runs.iter().map(|r| r.polls as f64).collect();
    let (least, greatest) = range(polls.iter().copied());
    let told = simulated.polls as f64;
    let same = if !rules.steady && rules.busy {
        // The gap tells, which is compared as well.
        true
    } else if !rules.steady {
        ((1.0 - TOLERANCE) * least..=(1.0 + TOLERANCE) * greatest).contains(&told)
    } else if rules.busy {
        let middle = median(polls.iter().copied()).unwrap();
        let (low, high) = range(group.simulate_around().iter().map(|s| s.polls as f64));
        (low..=high).contains(&middle)
    } else {
        polls.iter().all(|&polls| polls == told)
    };
    comparison.note(Polls, same, || {
        format!("{polls:?} measured, {told} simulated")
    });
    let cancels: u64 = group.runs.iter().map(|r| r.tasks_cancel).sum();
    comparison.note(Cancels, cancels == simulated.tasks_cancel, || {
        format!(
            "{cancels} in all measured, {} simulated",
            simulated.tasks_cancel
        )
    });
    if group.setting.abort_at_ms.is_none() {
        return;
    }
    // One notice per request of the loop, or a number that does not depend on it.
    let per_request = !group.setting.on_server() && simulated.notices > 0;
    let base = |polls: u64| if per_request { polls } else { 0 };
    let expected = simulated.notices - base(simulated.polls);
    let other = group
        .runs
        .iter()
        .find(|r| r.cancelled_notices != base(r.polls) + expected);
    comparison.note(Notices, other.is_none(), || {
        format!(
            "{:?} measured, {} simulated",
            other.map(|r| r.cancelled_notices),
            simulated.notices
        )
    });
    let after = group.median(|r| r.polls_after_abort.map(|n| n as f64));
    let told = simulated.polls_after_abort.map(|n| n as f64);
    // What hangs on a millisecond does so here, too.
    let off = (group.median(|r| Some(r.polls as f64)).unwrap() - simulated.polls as f64).abs();
    let same = match (after, told) {
        (Some(after), Some(told)) if rules.busy && told > 0.0 => (after - told).abs() <= off,
        _ => after == told,
    };
    comparison.note(AfterAbort, same, || {
        format!("{after:?} polls measured, {told:?} simulated")
    });
}

/// The times that both have: what, median measured, simulated, ms.
pub fn times(group: &Group, simulated: &Simulated) -> Vec<(What, f64, f64)> {
    let given_up = simulated.ending == "horizon";
    let total = Some(simulated.total_ms).filter(|_| !given_up);
    let pairs = [
        (
            Gap,
            group.median(|r| r.gap_median_ms),
            simulated.gap_median_ms,
        ),
        (Total, group.median(|r| Some(r.total_ms)), total),
        (
            AbortLatency,
            group.median(|r| r.abort_latency_ms),
            simulated.abort_latency_ms,
        ),
    ];
    pairs
        .into_iter()
        .filter_map(|(what, measured, told)| Some((what, measured?, told?)))
        .collect()
}
