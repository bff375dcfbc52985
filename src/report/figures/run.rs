//! The figures of a run: rates and queues over time, abort latency by tenant class, what became of the hints.

use super::super::Provenance;
use super::super::series::{self, Series};
use super::hints;
use super::sweep::{limit_of, row};
use crate::charts::Figure;
use crate::charts::abort_latency::AbortLatency;
use crate::experiment::{Estimate, Results};
use crate::scenario::Scenario;

/// The figures of a run, whose series are those of [`series::all`].
pub fn of_run(
    results: &Results,
    series: &[Series],
    scenario: &Scenario,
    provenance: &Provenance,
) -> Vec<Figure> {
    vec![
        Figure::OverTime(series::figure(series, scenario, provenance)),
        Figure::AbortLatency(abort_latency(results, scenario, provenance)),
        Figure::HintEffect(hints::of(results, scenario, provenance)),
    ]
}

/// A row for each tenant class, and one for the fleet where there are several.
fn abort_latency(results: &Results, scenario: &Scenario, provenance: &Provenance) -> AbortLatency {
    let estimate = |group: &str, statistic: &str| {
        let metric = format!("abort_latency_{statistic}_ms");
        results
            .estimate(group, &metric)
            .unwrap_or(Estimate::UNDEFINED)
    };
    let tenants: Vec<&String> = results
        .groups
        .iter()
        .filter(|g| g.starts_with("tenant."))
        .collect();
    let fleet = (tenants.len() > 1)
        .then(|| row("fleet", |s| estimate("fleet", s)))
        .flatten();
    let own = tenants
        .iter()
        .filter_map(|group| row(group.trim_start_matches("tenant."), |s| estimate(group, s)));
    AbortLatency {
        title: "How long an abort takes to give control back, by tenant class".into(),
        rows: own.chain(fleet).collect(),
        limit_ms: limit_of(&scenario.objective),
        provenance: provenance.line(),
    }
}
