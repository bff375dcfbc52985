//! The worst hint: what becomes of a fleet on the day that its servers all suggest 0, or all suggest weeks.
//!
//! A floor fitted to a few bad hints fails on that day; these are runs of their own, with the same tasks and durations.

use std::sync::atomic::AtomicBool;

use super::Replication;
use super::what_if::{HUGE_HINT_MS, with_hint};
use crate::catalogue::{self, Extreme, WORST_HINTS, is_worst_hint};
use crate::engine::{self, RunError};
use crate::metrics::summary::Group;
use crate::model::Model;
use crate::scenario::Scenario;
use crate::scenario::written::Objective;

/// Does an objective ask for it?
pub fn asked(objectives: &[Objective]) -> bool {
    objectives.iter().any(|o| is_worst_hint(&o.metric))
}

/// The scenario with hints that are all 0, and with hints that are all huge, each with its words.
pub fn scenarios(scenario: &Scenario) -> [(&'static str, Scenario); 2] {
    [
        ("all hints 0", with_hint(scenario, 0.0)),
        ("all hints 2^31 - 1 ms", with_hint(scenario, HUGE_HINT_MS)),
    ]
}

/// Puts the metrics of the worst hints into a replication, from the same one with hints of 0 and with huge hints.
pub fn fill(replication: &mut Replication, zero: &Replication, huge: &Replication) {
    for worst in WORST_HINTS {
        let from = match worst.extreme {
            Extreme::Zero => zero,
            Extreme::Huge => huge,
        };
        let at = catalogue::position(worst.name).zip(catalogue::position(worst.of));
        let Some((to, of)) = at else { continue };
        for (group, source) in replication.values.iter_mut().zip(&from.values) {
            group[to] = source[of];
        }
    }
}

/// The scenario under its worst hints, ready to run.
pub(super) struct Runs([Model; 2]);

impl Runs {
    pub fn new(scenario: &Scenario) -> Self {
        Runs(scenarios(scenario).map(|(_, scenario)| Model::new(&scenario)))
    }

    /// Runs replication `replication.number` under both, and puts what comes of it into `replication`. A loop that takes no time leaves its metrics undefined.
    pub fn fill(&self, replication: &mut Replication, stop: &AtomicBool) -> Result<(), RunError> {
        let mut extremes = Vec::new();
        for model in &self.0 {
            let groups = Group::all(model);
            extremes.push(match engine::run(model, replication.number, None, stop) {
                Ok(outcome) => Replication::new(&outcome, &groups, model),
                Err(error) if error.hangs() => {
                    Replication::undefined(replication.number, groups.len())
                }
                Err(error) => return Err(error),
            });
        }
        fill(replication, &extremes[0], &extremes[1]);
        Ok(())
    }
}
