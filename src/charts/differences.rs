//! Two policies, metric by metric: the paired difference with its interval.

use serde::{Deserialize, Serialize};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Differences {
    /// The heading.
    pub title: String,
    /// The first of the two.
    pub a: String,
    /// The second of the two.
    pub b: String,
    /// From top to bottom.
    pub rows: Vec<DifferenceRow>,
    /// The line at the foot.
    pub provenance: String,
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferenceRow {
    /// The metric, in words or by name.
    pub label: String,
    /// Its unit; empty where it has none.
    pub unit: String,
    /// The mean of the first.
    pub a_mean: f64,
    /// The mean of the second.
    pub b_mean: f64,
    /// Second less first: lower end, mean, upper end; in the metric's unit.
    pub difference: (f64, f64, f64),
}
