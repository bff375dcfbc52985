//! The points of a search: `optimum.csv`.

use super::Provenance;
use super::columns;
use super::decision::SHOWN;
use super::sweep::{number, write_csv};
use crate::experiment::optimise::Optimum;
use crate::experiment::plan::Plan;

/// A row per point, in the order of their evaluation.
pub fn csv(plan: &Plan, found: &Optimum, provenance: &Provenance) -> Vec<u8> {
    let rows = found.points.iter().enumerate().map(|(at, point)| {
        let mut row = vec![at.to_string()];
        row.extend(point.cell.parameters.iter().map(|(_, value)| value.clone()));
        row.extend([
            (at == found.best).to_string(),
            point.result.feasible().to_string(),
            number(Some(point.violation).filter(|v| v.is_finite())),
            number(Some(point.cost).filter(|c| c.is_finite())),
        ]);
        for metric in SHOWN {
            let e = point.result.estimate(metric);
            row.extend([e.mean, e.lo, e.hi].map(number));
        }
        row.extend([
            provenance.scenario.clone(),
            point.result.replications.len().to_string(),
            point.cell.scenario.run.seed.to_string(),
            format!("{:016x}", point.cell.key),
            provenance.version.clone(),
        ]);
        row
    });
    write_csv(&columns::optimum(&plan.parameters()), rows)
}
