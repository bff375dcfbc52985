//! Estimates over replications.

use std::cell::Cell;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of a metric over replications, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the replications in which the metric is defined; `None` where it is defined in none, or censored in one.
    pub mean: Option<f64>,
    /// Lower end of the interval; `None` with fewer than two values.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
    /// Replications in which it is defined.
    pub n: u32,
}

impl Estimate {
    /// Of a metric without a sample.
    pub const UNDEFINED: Estimate = Estimate {
        mean: None,
        lo: None,
        hi: None,
        n: 0,
    };

    /// Mean and two-sided interval by Student's t, `confidence` being its level.
    pub fn new(values: &[Option<f64>], confidence: f64) -> Self {
        let defined: Vec<f64> = values.iter().filter_map(|v| *v).collect();
        let uncensored = defined.iter().filter(|x| !x.is_nan()).count();
        let n = defined.len();
        if n == 0 || uncensored < n {
            return Estimate {
                mean: None,
                lo: None,
                hi: None,
                n: uncensored as u32,
            };
        }
        let mean = defined.iter().sum::<f64>() / n as f64;
        if n < 2 {
            return Estimate {
                mean: Some(mean),
                lo: None,
                hi: None,
                n: 1,
            };
        }
        let squares: f64 = defined.iter().map(|x| (x - mean) * (x - mean)).sum();
        let error = (squares / (n - 1) as f64 / n as f64).sqrt();
        let half = if error == 0.0 {
            0.0
        } else {
            student_t(confidence, (n - 1) as f64) * error
        };
        Estimate {
            mean: Some(mean),
            lo: Some(mean - half),
            hi: Some(mean + half),
            n: n as u32,
        }
    }
}

/// The two-sided quantile of Student's t with `freedom` degrees.
pub(super) fn student_t(confidence: f64, freedom: f64) -> f64 {
    thread_local! {
        // The last one asked for: thousands of estimates in a row ask for the same, and it is found by iteration.
        static LAST: Cell<[f64; 3]> = const { Cell::new([f64::NAN; 3]) };
    }
    let [last_confidence, last_freedom, last] = LAST.get();
    if (last_confidence, last_freedom) == (confidence, freedom) {
        return last;
    }
    let quantile = StudentsT::new(0.0, 1.0, freedom)
        .map_or(f64::NAN, |t| t.inverse_cdf(0.5 + confidence / 2.0));
    LAST.set([confidence, freedom, quantile]);
    quantile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_t_are_those_of_the_tables() {
        for (confidence, freedom, t) in [
            (0.95, 1.0, 12.706_204_736),
            (0.95, 9.0, 2.262_157_163),
            (0.999, 9.0, 4.780_912_586),
            (0.99, 29.0, 2.756_385_904),
        ] {
            assert!(
                (student_t(confidence, freedom) - t).abs() < 1e-6,
                "{confidence} {freedom}"
            );
        }
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        let one = Estimate::new(&[Some(3.0), None], 0.95);
        assert_eq!((one.mean, one.lo, one.n), (Some(3.0), None, 1));
        assert_eq!(Estimate::new(&[None], 0.95).mean, None);
        let censored = Estimate::new(&[Some(3.0), Some(f64::NAN)], 0.95);
        assert_eq!((censored.mean, censored.n), (None, 1));
    }

    #[test]
    fn the_interval_is_the_textbook_one() {
        let e = Estimate::new(&[Some(1.0), Some(2.0), Some(3.0)], 0.95);
        // t(0.975, 2) = 4.302653; s/√3 = 0.577350
        assert!((e.hi.unwrap() - (2.0 + 4.302_653 * 0.577_350)).abs() < 1e-4);
    }
}
