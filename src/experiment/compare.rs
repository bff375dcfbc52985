//! Two scenarios under common random numbers, metric by metric: the paired differences of their replications.
//!
//! Replication k of both has the same chance, so that what the two have in common leaves the difference. Its interval is narrower than that of two
//! independent runs, the more so the more alike they are.

use super::estimate::{Estimate, student_t};
use super::{Replication, Results};
use crate::catalogue;

/// A metric of a group in two scenarios, and what lies between.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The group, named as in the results.
    pub group: String,
    /// The metric.
    pub metric: String,
    /// Of the first; undefined where any of its replications has no sample, or a censored one.
    pub a: Estimate,
    /// Of the second, likewise.
    pub b: Estimate,
    /// Second less first, replication by replication, with Student's t over these differences; undefined where either is.
    pub difference: Estimate,
    /// Half-width of the interval that independent runs would give (Welch 1947); `None` with fewer than two replications.
    pub unpaired_half_width: Option<f64>,
    /// Pearson's correlation of the two over the replications; `None` where one of them does not vary.
    pub correlation: Option<f64>,
}

/// Why two results cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "A has the replications {a:?} and B has {b:?}: pairs need the same ones, so run both with the same number"
)]
pub struct NotPaired {
    a: Vec<u32>,
    b: Vec<u32>,
}

/// Compares every metric of every group that both results have, in the order of the first's groups and of [`catalogue::names`]. Intervals have the level `confidence`.
///
/// # Errors
/// [`NotPaired`] where the two have different replications.
pub fn compare(a: &Results, b: &Results, confidence: f64) -> Result<Vec<Difference>, NotPaired> {
    let numbers = |r: &Results| -> Vec<u32> { r.replications.iter().map(|r| r.number).collect() };
    if numbers(a) != numbers(b) {
        return Err(NotPaired {
            a: numbers(a),
            b: numbers(b),
        });
    }
    let names = catalogue::names();
    let mut differences = Vec::new();
    for (group_a, group) in a.groups.iter().enumerate() {
        let Some(group_b) = b.groups.iter().position(|other| other == group) else {
            continue;
        };
        for (at, metric) in names.iter().enumerate() {
            let values = |r: &[Replication], group: usize| -> Vec<Option<f64>> {
                r.iter().map(|r| r.values[group][at]).collect()
            };
            differences.push(difference(
                (group, metric),
                &values(&a.replications, group_a),
                &values(&b.replications, group_b),
                confidence,
            ));
        }
    }
    Ok(differences)
}

/// The difference of two metrics whose values stand in pairs.
fn difference(
    (group, metric): (&str, &str),
    a: &[Option<f64>],
    b: &[Option<f64>],
    confidence: f64,
) -> Difference {
    let paired: Vec<Option<f64>> = a.iter().zip(b).map(|(a, b)| Some((*b)? - (*a)?)).collect();
    let of = |values: &[Option<f64>]| estimate(values, confidence);
    let defined = paired.iter().all(|d| d.is_some_and(|d| !d.is_nan()));
    let spread = (defined && paired.len() >= 2).then(|| Spread::of(a, b));
    Difference {
        group: group.into(),
        metric: metric.into(),
        a: of(a),
        b: of(b),
        difference: of(&paired),
        unpaired_half_width: spread.as_ref().map(|s| s.welch(confidence)),
        correlation: spread.as_ref().and_then(Spread::correlation),
    }
}

/// Mean and interval, undefined where any value is; exact where all values are the same.
fn estimate(values: &[Option<f64>], confidence: f64) -> Estimate {
    let estimate = Estimate::new(values, confidence);
    let first = values.first().copied().flatten();
    match first {
        _ if values.iter().any(Option::is_none) => Estimate {
            n: estimate.n,
            ..Estimate::UNDEFINED
        },
        // Their mean would be rounded.
        Some(first) if values.iter().all(|v| *v == Some(first)) => Estimate {
            mean: Some(first),
            lo: estimate.lo.map(|_| first),
            hi: estimate.hi.map(|_| first),
            n: estimate.n,
        },
        _ => estimate,
    }
}

/// Sums of squares and products about the means.
struct Spread {
    n: f64,
    a: f64,
    b: f64,
    both: f64,
}

impl Spread {
    fn of(a: &[Option<f64>], b: &[Option<f64>]) -> Self {
        let (a, b) = (deviations(a), deviations(b));
        let sum = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum();
        Spread {
            n: a.len() as f64,
            a: sum(&a, &a),
            b: sum(&b, &b),
            both: sum(&a, &b),
        }
    }

    /// Half-width of Welch's interval for the difference of two independent means.
    fn welch(&self, confidence: f64) -> f64 {
        let of_mean = |squares: f64| squares / (self.n - 1.0) / self.n;
        let (a, b) = (of_mean(self.a), of_mean(self.b));
        if a + b == 0.0 {
            return 0.0;
        }
        let freedom = (a + b) * (a + b) * (self.n - 1.0) / (a * a + b * b);
        student_t(confidence, freedom) * (a + b).sqrt()
    }

    fn correlation(&self) -> Option<f64> {
        let scale = (self.a * self.b).sqrt();
        (scale > 0.0).then(|| (self.both / scale).clamp(-1.0, 1.0))
    }
}

/// Distances from the mean; all 0, and not almost, where all values are the same.
fn deviations(values: &[Option<f64>]) -> Vec<f64> {
    let values: Vec<f64> = values.iter().flatten().copied().collect();
    let first = values.first().copied().unwrap_or(0.0);
    let shifted: Vec<f64> = values.iter().map(|x| x - first).collect();
    let mean = shifted.iter().sum::<f64>() / values.len() as f64;
    shifted.iter().map(|x| x - mean).collect()
}

impl Difference {
    /// The change from the first to the second, in percent of the first; undefined where that is 0.
    pub fn change_percent(&self) -> Option<f64> {
        let (a, difference) = (self.a.mean?, self.difference.mean?);
        (a != 0.0).then(|| 100.0 * difference / a.abs())
    }

    /// Half-width of the paired interval; `None` with fewer than two replications.
    pub fn half_width(&self) -> Option<f64> {
        Some(self.difference.hi? - self.difference.mean?)
    }

    /// Is the difference the same in all of several replications?
    pub fn is_exact(&self) -> bool {
        self.half_width() == Some(0.0)
    }

    /// How many times narrower the paired interval is than that of independent runs; below 1 it is wider, and an exact one has no such number.
    pub fn narrower(&self) -> Option<f64> {
        let (paired, unpaired) = (self.half_width()?, self.unpaired_half_width?);
        (paired > 0.0).then(|| unpaired / paired)
    }

    /// Does the interval leave 0 out? Without an interval nothing is known.
    pub fn is_clear(&self) -> bool {
        let (lo, hi) = (self.difference.lo, self.difference.hi);
        lo.is_some_and(|lo| lo > 0.0) || hi.is_some_and(|hi| hi < 0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::{run, tests::SMALL};

    fn of(a: &[Option<f64>], b: &[Option<f64>]) -> Difference {
        difference(("fleet", "requests"), a, b, 0.95)
    }

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|x| Some(*x)).collect()
    }

    #[test]
    fn the_interval_is_that_of_the_differences() {
        // Differences 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653.
        let d = of(&some(&[10.0, 20.0, 30.0]), &some(&[11.0, 22.0, 33.0]));
        assert_eq!((d.a.mean, d.b.mean), (Some(20.0), Some(22.0)));
        assert_eq!(d.difference.mean, Some(2.0));
        let half = 4.302_653 / 3.0_f64.sqrt();
        assert!((d.half_width().unwrap() - half).abs() < 1e-5);
        assert_eq!(d.change_percent(), Some(10.0));
        assert_eq!(d.correlation, Some(1.0));
        // Welch: variances 100 and 121 of 3 values each, 221² × 2 / (100² + 121²) = 3.964 degrees, t = 2.7865.
        let unpaired = 2.7865 * (221.0_f64 / 3.0).sqrt();
        assert!((d.unpaired_half_width.unwrap() - unpaired).abs() < 0.01);
        assert!((d.narrower().unwrap() - unpaired / half).abs() < 0.01);
        assert!(!d.is_clear() && !d.is_exact(), "2 ± 2.48 holds 0");
    }

    #[test]
    fn without_spread_it_is_exact() {
        let a = [0.1, 0.7, 0.1];
        let d = of(&some(&a), &some(&a.map(|x| x + 0.5)));
        assert!((d.difference.mean.unwrap() - 0.5).abs() < 1e-12);
        let d = of(&some(&[0.1; 3]), &some(&[0.1; 3]));
        assert_eq!(d.difference.mean, Some(0.0));
        assert_eq!(d.a.lo, Some(0.1), "the mean of three 0.1 is 0.1");
        assert!(d.is_exact() && !d.is_clear());
        assert_eq!((d.narrower(), d.correlation), (None, None));
    }

    #[test]
    fn what_is_undefined_in_one_replication_is_undefined() {
        let (whole, partly) = (some(&[1.0, 2.0]), [Some(1.0), None]);
        for (a, b) in [(&whole[..], &partly[..]), (&partly[..], &whole[..])] {
            let d = of(a, b);
            assert_eq!(
                d.difference,
                Estimate {
                    n: 1,
                    ..Estimate::UNDEFINED
                }
            );
            assert_eq!((d.change_percent(), d.narrower()), (None, None));
        }
        let d = of(&whole, &partly);
        assert_eq!((d.a.mean, d.b.mean), (Some(1.5), None));
        let censored = of(&whole, &some(&[1.0, f64::NAN]));
        assert_eq!((censored.b.mean, censored.difference.mean), (None, None));
        assert_eq!(censored.unpaired_half_width, None);
    }

    #[test]
    fn one_replication_has_a_difference_and_no_interval() {
        let d = of(&some(&[4.0]), &some(&[3.0]));
        assert_eq!((d.difference.mean, d.half_width()), (Some(-1.0), None));
        assert_eq!(d.change_percent(), Some(-25.0));
        assert!(!d.is_clear() && !d.is_exact());
    }

    #[test]
    fn groups_are_those_of_both_and_replications_must_be_the_same() {
        let results = |text: &str, overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
            let loaded = crate::scenario::parse("test", text, &overrides).unwrap();
            run(&loaded.scenario, &AtomicBool::new(false), |_| {}).unwrap()
        };
        let (a, b) = (
            results(SMALL, &[]),
            results(&SMALL.replace("\"t\"", "\"u\""), &["policy.p.default=2s"]),
        );
        let differences = compare(&a, &b, 0.95).unwrap();
        let mut groups: Vec<&str> = differences.iter().map(|d| d.group.as_str()).collect();
        groups.dedup();
        assert_eq!(groups, ["fleet", "server.s"]);
        assert_eq!(differences.len(), 2 * catalogue::names().len());
        let fewer = results(SMALL, &["run.replications=2"]);
        let error = compare(&a, &fewer, 0.95).unwrap_err();
        assert!(error.to_string().contains("[0, 1, 2] and B has [0, 1]"));
    }
}
