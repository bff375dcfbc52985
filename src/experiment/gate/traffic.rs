//! Is the traffic of polls bounded, however many tasks there are? The budgets that a scenario declares, and whether its polls keep to them.

use super::trips::Finding;
use super::{Condition, Tried};
use crate::experiment::Results;
use crate::scenario::Scenario;
use crate::scenario::written::{Bucket, Server, Tenant};

/// The token buckets of a scenario: what each is of, and how many of them a class of it has.
fn buckets(scenario: &Scenario) -> Vec<(String, u32, &Bucket)> {
    let Some(budget) = &scenario.budget else {
        return Vec::new();
    };
    let mut found = Vec::new();
    found.extend(budget.fleet.iter().map(|b| ("fleet".to_string(), 1, b)));
    if let Some(bucket) = &budget.tenant {
        let of = |t: &Tenant| (format!("tenant.{}", t.name), t.count.0, bucket);
        found.extend(scenario.tenant.iter().map(of));
    }
    if let Some(bucket) = &budget.server {
        let of = |s: &Server| (format!("server.{}", s.name), s.count.0, bucket);
        found.extend(scenario.server.iter().map(of));
    }
    found
}

/// Is there a budget at all? Each kind of bucket covers every poll.
pub fn declared(scenario: &Scenario) -> Vec<Finding> {
    let names = |kind, bucket: &Option<Bucket>| {
        let each = if kind == "fleet" { "" } else { "each " };
        bucket.as_ref().map(|b| {
            let (rate, burst) = (b.rate, b.burst.0);
            format!("{each}{kind}: {rate}, burst {burst}")
        })
    };
    let declared: Vec<String> = match &scenario.budget {
        Some(b) => [
            ("fleet", &b.fleet),
            ("tenant", &b.tenant),
            ("server", &b.server),
        ]
        .into_iter()
        .filter_map(|(kind, bucket)| names(kind, bucket))
        .collect(),
        None => Vec::new(),
    };
    let evidence = match (&scenario.budget, declared.is_empty()) {
        (_, false) => format!("declared budget: {}", declared.join("; ")),
        (None, true) => "no budget is declared: add one, as in budget = { fleet = { rate = \"800/s\", burst = 20 } }".into(),
        (Some(_), true) => "the budget has no rate, only places in flight (pollers): add fleet, tenant or server".into(),
    };
    vec![Finding::new(None, Some(declared.is_empty()), evidence)]
}

/// The largest rate with more tasks, against what the budgets let pass in a second: rate and burst.
pub fn peaks(tried: &Tried, results: &Results) -> Vec<Finding> {
    const METRIC: &str = "tasks_get_rate_1s_peak_per_s";
    if tried.condition != Condition::Concurrency {
        return Vec::new();
    }
    buckets(&tried.scenario)
        .into_iter()
        .map(|(group, count, bucket)| {
            let each = (bucket.rate.per_second() + f64::from(bucket.burst.0)).floor();
            let allowed = f64::from(count) * each;
            let values = results.values(&group, METRIC);
            let peak = values.iter().copied().collect::<Option<Vec<f64>>>();
            let peak = peak.and_then(|all| all.into_iter().reduce(f64::max));
            let evidence = match peak {
                Some(peak) => format!(
                    "{group}: peak {peak} polls in a second, its budget lets {allowed} pass"
                ),
                None => format!(
                    "{group}: the observed interval holds no whole second, so its peak is unknown"
                ),
            };
            Finding::new(
                Some(tried.condition),
                peak.map(|peak| peak > allowed),
                evidence,
            )
            .measured(METRIC, peak, Some(allowed))
            .over(&group)
        })
        .collect()
}
