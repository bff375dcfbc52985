//! What a choice makes least: a metric of the fleet, or a weighted sum of some.

use std::fmt;
use std::str::FromStr;

use super::sweep::CellResult;
use crate::catalogue;
use crate::scenario::checks::metric_meant;

/// The metric that is least at the choice, where nothing else is asked for.
pub const LOAD: &str = "tasks_get_rate_mean_per_s";

/// A weighted sum of metrics of the fleet, such as `tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    weight: f64,
    /// Where the metric stands among [`catalogue::names`].
    metric: usize,
}

/// Why a text is no cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CostError(String);

impl Default for Cost {
    fn default() -> Self {
        LOAD.parse().expect("the load is in the catalogue")
    }
}

impl FromStr for Cost {
    type Err = CostError;

    /// Terms apart by `+`, each a metric or `weight * metric`.
    fn from_str(text: &str) -> Result<Self, CostError> {
        let terms = text.split('+').map(|term| term.trim().parse());
        let terms: Vec<Term> = terms.collect::<Result<_, _>>()?;
        Ok(Cost { terms })
    }
}

impl FromStr for Term {
    type Err = CostError;

    fn from_str(text: &str) -> Result<Self, CostError> {
        let (weight, metric) = match text.split_once('*') {
            None => (1.0, text),
            Some((weight, metric)) => {
                let weight = weight.trim();
                let number: Option<f64> = weight.parse().ok();
                let usable = number.filter(|w| w.is_finite());
                let wrong = || {
                    CostError(format!(
                        "\"{weight}\" is no weight: write a number before *, as in 0.5 * completion_latency_p99_ms"
                    ))
                };
                (usable.ok_or_else(wrong)?, metric.trim())
            }
        };
        let metric = catalogue::position(metric).ok_or_else(|| {
            CostError(format!(
                "there is no metric \"{metric}\": {}",
                metric_meant(metric)
            ))
        })?;
        Ok(Term { weight, metric })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            if i > 0 {
                f.write_str(" + ")?;
            }
            if term.weight != 1.0 {
                write!(f, "{} * ", term.weight)?;
            }
            f.write_str(&catalogue::names()[term.metric])?;
        }
        Ok(())
    }
}

impl Cost {
    /// Is it the load and nothing else?
    pub fn is_load(&self) -> bool {
        *self == Cost::default()
    }

    /// Does it name one of the metrics of the worst hints?
    pub fn asks_for_worst_hints(&self) -> bool {
        let mut names = self.terms.iter().map(|t| &catalogue::names()[t.metric]);
        names.any(|name| catalogue::is_worst_hint(name))
    }

    /// Its value where `value` gives the mean of each metric by its place in the catalogue; undefined where one of them is.
    pub fn of(&self, value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        self.terms
            .iter()
            .map(|t| Some(t.weight * value(t.metric)?))
            .sum()
    }

    /// Its mean at a cell; infinite where it is undefined in a replication, so that such a cell is never chosen.
    pub fn at(&self, cell: &CellResult) -> f64 {
        let fleet = cell.estimates.first();
        let mean = |metric: usize| {
            let estimate = fleet?.get(metric)?;
            let defined = estimate.n as usize == cell.replications.len();
            estimate.mean.filter(|_| defined)
        };
        self.of(mean).unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_read_as_it_is_shown() {
        let text = "tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms";
        let cost: Cost = text.parse().unwrap();
        assert_eq!(cost.to_string(), text);
        let load = catalogue::position(LOAD).unwrap();
        let value = |m: usize| Some(if m == load { 10.0 } else { 200.0 });
        assert_eq!(cost.of(value), Some(110.0));
        assert_eq!(cost.of(|m| (m == load).then_some(1.0)), None);
        assert!(Cost::default().is_load() && !cost.is_load());
    }

    #[test]
    fn what_is_no_cost_is_told() {
        let wrong = |text: &str| text.parse::<Cost>().unwrap_err().to_string();
        assert!(
            wrong("tasks_get_rate_mean_per").contains("did you mean \"tasks_get_rate_mean_per_s\"")
        );
        assert!(wrong("much * tasks").contains("\"much\" is no weight"));
        assert!(wrong("tasks + ").contains("no metric \"\""));
    }
}
