//! What a planner reads: tables on the terminal, CSV and JSON files.
//!
//! Every row of a file carries what is needed to repeat it. A file appears whole or not at all: it is written beside its place and renamed.

pub mod advice;
pub mod columns;
pub mod compare;
pub mod decision;
pub mod figures;
pub mod files;
pub mod fleet;
pub mod format;
pub mod gate;
pub mod optimum;
pub mod page;
pub mod policies;
pub mod series;
pub mod sweep;
pub mod table;
pub mod trace;

use serde::Serialize;

/// What is needed to repeat a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Provenance {
    /// The scenario's file name, without its folders.
    pub scenario: String,
    /// What was overridden on the command line, `path=value`, in order.
    pub parameters: String,
    /// The seed.
    pub seed: u64,
    /// Hash of the resolved scenario, in hexadecimal.
    pub scenario_hash: String,
    /// Version of this program.
    pub version: String,
}

impl Provenance {
    /// Of a scenario called `scenario` run with `overrides`.
    pub fn new(scenario: &str, overrides: &[String], resolved: &crate::scenario::Scenario) -> Self {
        Provenance {
            scenario: scenario.into(),
            parameters: overrides.join("; "),
            seed: resolved.run.seed,
            scenario_hash: format!("{:016x}", resolved.hash()),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// One line for the foot of a table or a figure.
    pub fn line(&self) -> String {
        let parameters = if self.parameters.is_empty() {
            String::new()
        } else {
            format!(" · {}", self.parameters)
        };
        format!(
            "{}{parameters} · seed {} · scenario {} · pollpace {}",
            self.scenario, self.seed, self.scenario_hash, self.version
        )
    }
}
