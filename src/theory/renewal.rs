//! Polling at random intervals: the wait for the next poll, and how many polls a task takes.
//!
//! The intervals X are independent draws of one distribution, one draw per interval. A jitter drawn
//! once per client is not this case: it is a fixed interval that differs between clients.

use super::range::{is_fraction, is_non_negative, is_positive};

/// Mean (s) and second moment (s²) of an interval uniform on (`low_s`, `high_s`).
///
/// * Range: 0 ≤ `low_s` ≤ `high_s`; a pair of NaN otherwise. Equal ends give a fixed interval.
/// * Holds always.
/// * Source: (a + b)/2 and (a² + ab + b²)/3, the moments of the uniform distribution.
///
/// ```
/// use pollpace::theory::uniform_moments;
/// assert_eq!(uniform_moments(120.0, 180.0), (150.0, 22_800.0));
/// ```
pub fn uniform_moments(low_s: f64, high_s: f64) -> (f64, f64) {
    if 0.0 <= low_s && low_s <= high_s && high_s.is_finite() {
        let second_moment_s2 = (low_s * low_s + low_s * high_s + high_s * high_s) / 3.0;
        ((low_s + high_s) / 2.0, second_moment_s2)
    } else {
        (f64::NAN, f64::NAN)
    }
}

/// Mean time from an arbitrary moment, such as the end of a task, to the next poll.
///
/// E\[X²\]/(2E\[X\]), never less than half the mean interval.
///
/// * Range: `interval_mean_s` > 0 (s), `interval_second_moment_s2` ≥ 0 (s²); NaN otherwise.
/// * Holds for independent, identically distributed intervals, a moment that does not depend on the
///   polls, and many intervals before it.
/// * Source: the inspection paradox of renewal theory (Feller, volume II, chapter XI; Ross,
///   *Stochastic Processes*): a moment picked at random falls into an interval with a chance
///   proportional to its length.
///
/// ```
/// use pollpace::theory::residual_mean;
/// assert_eq!(residual_mean(20.0, 400.0), 10.0); // fixed: half the interval
/// assert_eq!(residual_mean(20.0, 800.0), 20.0); // exponential: a whole one
/// ```
pub fn residual_mean(interval_mean_s: f64, interval_second_moment_s2: f64) -> f64 {
    if is_positive(interval_mean_s) && is_non_negative(interval_second_moment_s2) {
        interval_second_moment_s2 / (2.0 * interval_mean_s)
    } else {
        f64::NAN
    }
}

/// Mean time from an arbitrary moment to the next poll, intervals uniform on (`low_s`, `high_s`).
///
/// (a² + ab + b²)/(3(a + b)). For a nominal interval T this is
///
/// | jitter | low | high | mean delay |
/// | --- | --- | --- | --- |
/// | none | T | T | T/2 |
/// | symmetric ±p | (1 - p)T | (1 + p)T | T/2 · (1 + p²/3) |
/// | equal | T/2 | T | 7T/18 |
/// | full | 0 | T | T/3 |
///
/// * Range: 0 ≤ `low_s` ≤ `high_s`, `high_s` > 0; NaN otherwise.
/// * Holds under the conditions of [`residual_mean`].
/// * Source: [`residual_mean`] of [`uniform_moments`].
///
/// ```
/// use pollpace::theory::residual_mean_uniform;
/// assert_eq!(residual_mean_uniform(120.0, 180.0), 76.0);
/// assert_eq!(residual_mean_uniform(0.0, 60.0), 20.0);
/// ```
pub fn residual_mean_uniform(low_s: f64, high_s: f64) -> f64 {
    let (mean_s, second_moment_s2) = uniform_moments(low_s, high_s);
    residual_mean(mean_s, second_moment_s2)
}

/// Probability that the next poll comes within `delay_s` of an arbitrary moment, intervals uniform
/// on (`low_s`, `high_s`).
///
/// x/E\[X\] up to a, and 1 - (b - x)²/(b² - a²) from there to b.
///
/// * Range: 0 ≤ `low_s` ≤ `high_s`, `high_s` > 0; NaN otherwise, and for a `delay_s` of NaN. Any
///   other delay is allowed: 0 below 0, 1 above `high_s`.
/// * Holds under the conditions of [`residual_mean`].
/// * Source: the equilibrium distribution of renewal theory, (1/E\[X\]) ∫₀ˣ (1 - F(t)) dt.
///
/// ```
/// use pollpace::theory::residual_cdf_uniform;
/// assert_eq!(residual_cdf_uniform(30.0, 0.0, 60.0), 0.75);
/// assert_eq!(residual_cdf_uniform(30.0, 54.0, 66.0), 0.5);
/// ```
pub fn residual_cdf_uniform(delay_s: f64, low_s: f64, high_s: f64) -> f64 {
    if !is_interval(low_s, high_s) || delay_s.is_nan() {
        f64::NAN
    } else if delay_s <= low_s {
        delay_s.max(0.0) / ((low_s + high_s) / 2.0)
    } else if delay_s < high_s {
        let left_s = high_s - delay_s;
        1.0 - left_s * left_s / ((high_s - low_s) * (high_s + low_s))
    } else {
        1.0
    }
}

/// The delay within which the next poll comes with probability `p`, intervals uniform on
/// (`low_s`, `high_s`).
///
/// * Range: `p` in \[0, 1\], 0 ≤ `low_s` ≤ `high_s`, `high_s` > 0; NaN otherwise.
/// * Holds under the conditions of [`residual_mean`].
/// * Source: inverse of [`residual_cdf_uniform`].
///
/// ```
/// use pollpace::theory::residual_quantile_uniform;
/// assert!((residual_quantile_uniform(0.95, 120.0, 180.0) - 150.0).abs() < 1e-9);
/// ```
pub fn residual_quantile_uniform(p: f64, low_s: f64, high_s: f64) -> f64 {
    if !is_interval(low_s, high_s) || !is_fraction(p) {
        return f64::NAN;
    }
    let below_low_s = p * (low_s + high_s) / 2.0;
    if below_low_s <= low_s {
        below_low_s
    } else {
        high_s - ((1.0 - p) * (high_s - low_s) * (high_s + low_s)).sqrt()
    }
}

/// Mean polls per task of known duration at random intervals, the one that sees the end included.
///
/// D/E\[X\] + E\[X²\]/(2E\[X\]²), first poll after the first interval; one more if a poll is sent at the
/// start as well. So symmetric jitter keeps the rate, full jitter on (0, T) doubles it and equal
/// jitter on (T/2, T) raises it by a third.
///
/// * Range: `duration_s` ≥ 0, `interval_mean_s` > 0 (s), `interval_second_moment_s2` ≥ 0 (s²); NaN
///   otherwise.
/// * Holds for independent, identically distributed intervals that do not sit on a lattice, zero
///   round trip and a duration of many intervals. The duration may be a mean.
/// * Source: second-order renewal theorem (Feller, volume II, chapter XI), or Wald's identity
///   with [`residual_mean`].
///
/// ```
/// use pollpace::theory::{polls_mean_renewal, uniform_moments};
/// let (mean_s, second_moment_s2) = uniform_moments(120.0, 180.0);
/// let polls = polls_mean_renewal(6000.0, mean_s, second_moment_s2);
/// assert!((polls - 40.506_666_667).abs() < 1e-9);
/// ```
pub fn polls_mean_renewal(
    duration_s: f64,
    interval_mean_s: f64,
    interval_second_moment_s2: f64,
) -> f64 {
    if is_non_negative(duration_s) {
        let delay_s = residual_mean(interval_mean_s, interval_second_moment_s2);
        (duration_s + delay_s) / interval_mean_s
    } else {
        f64::NAN
    }
}

fn is_interval(low_s: f64, high_s: f64) -> bool {
    0.0 <= low_s && low_s <= high_s && is_positive(high_s)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, assert_close};
    use super::*;

    const RANGES: [(f64, f64); 6] = [
        (120.0, 180.0),
        (0.0, 60.0),
        (30.0, 60.0),
        (54.0, 66.0),
        (45.0, 75.0),
        (270.0, 330.0),
    ];

    #[test]
    fn uniform_matches_reference_values() {
        // Mean residual, cdf at 30 s, quantiles 0.95 and 0.3, polls of a task of 6000 s.
        let expected = [
            [76.0, 0.2, 150.0, 45.0, 40.50666666666667],
            [
                20.0,
                0.75,
                46.58359213500125,
                9.800398407955464,
                200.66666666666666,
            ],
            [
                23.333333333333332,
                0.6666666666666666,
                48.38104996137774,
                13.5,
                133.85185185185185,
            ],
            [30.1, 0.5, 57.51471862576143, 18.0, 100.50166666666667],
            [30.625, 0.5, 61.58359213500125, 18.0, 100.51041666666667],
            [150.5, 0.1, 287.5735931288071, 90.0, 20.501666666666665],
        ];
        for ((low_s, high_s), [mean_s, cdf, q95_s, q30_s, polls]) in
            RANGES.into_iter().zip(expected)
        {
            assert_close(residual_mean_uniform(low_s, high_s), mean_s, 1e-14);
            assert_close(residual_cdf_uniform(30.0, low_s, high_s), cdf, 1e-14);
            assert_close(residual_quantile_uniform(0.95, low_s, high_s), q95_s, 1e-13);
            assert_close(residual_quantile_uniform(0.3, low_s, high_s), q30_s, 1e-13);
            let (mean_s, second_moment_s2) = uniform_moments(low_s, high_s);
            assert_close(
                polls_mean_renewal(6000.0, mean_s, second_moment_s2),
                polls,
                1e-14,
            );
        }
    }

    #[test]
    fn cdf_is_the_integral_of_the_survival_function() {
        for (low_s, high_s) in RANGES {
            let steps = 6000;
            let step_s = high_s / f64::from(steps);
            let mut integral_s = 0.0;
            let mut mean_s = 0.0;
            for k in 0..steps {
                let middle_s = (f64::from(k) + 0.5) * step_s;
                let survival = ((high_s - middle_s) / (high_s - low_s)).clamp(0.0, 1.0);
                integral_s += survival * step_s;
                let end_s = f64::from(k + 1) * step_s;
                let cdf = residual_cdf_uniform(end_s, low_s, high_s);
                assert!((cdf - integral_s / ((low_s + high_s) / 2.0)).abs() < 1e-6);
                mean_s += (1.0 - residual_cdf_uniform(middle_s, low_s, high_s)) * step_s;
            }
            assert_close(mean_s, residual_mean_uniform(low_s, high_s), 1e-6);
        }
    }

    #[test]
    fn quantile_inverts_the_cdf() {
        for (low_s, high_s) in RANGES {
            for k in 0..=100 {
                let p = f64::from(k) / 100.0;
                let delay_s = residual_quantile_uniform(p, low_s, high_s);
                assert!((residual_cdf_uniform(delay_s, low_s, high_s) - p).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn equal_ends_are_a_fixed_interval() {
        assert_eq!(residual_mean_uniform(20.0, 20.0), 10.0);
        assert_eq!(residual_cdf_uniform(5.0, 20.0, 20.0), 0.25);
        assert_eq!(residual_cdf_uniform(20.0, 20.0, 20.0), 1.0);
        assert_eq!(residual_quantile_uniform(0.95, 20.0, 20.0), 19.0);
        assert_eq!(residual_quantile_uniform(1.0, 20.0, 20.0), 20.0);
        assert_eq!(polls_mean_renewal(600.0, 20.0, 400.0), 30.5);
    }

    #[test]
    fn delay_and_polls_match_random_tasks() {
        let mut random = Random(6);
        for (low_s, high_s) in [(0.0, 60.0), (45.0, 75.0)] {
            let tasks = 10_000;
            let (mut polls, mut delay_s) = (0.0, 0.0);
            for _ in 0..tasks {
                let duration_s = random.uniform(1000.0, 3000.0);
                let mut time_s = 0.0;
                while time_s < duration_s {
                    time_s += random.uniform(low_s, high_s);
                    polls += 1.0;
                }
                delay_s += time_s - duration_s;
            }
            let (mean_s, second_moment_s2) = uniform_moments(low_s, high_s);
            let expected = polls_mean_renewal(2000.0, mean_s, second_moment_s2);
            assert_close(polls / f64::from(tasks), expected, 0.02);
            let expected_s = residual_mean(mean_s, second_moment_s2);
            assert_close(delay_s / f64::from(tasks), expected_s, 0.03);
        }
    }

    #[test]
    fn out_of_range_is_nan() {
        assert!(uniform_moments(2.0, 1.0).0.is_nan());
        assert!(residual_mean(0.0, 1.0).is_nan());
        assert!(residual_mean_uniform(0.0, 0.0).is_nan());
        assert!(residual_cdf_uniform(1.0, 2.0, 1.0).is_nan());
        assert!(residual_cdf_uniform(f64::NAN, 1.0, 2.0).is_nan());
        assert!(residual_quantile_uniform(1.1, 1.0, 2.0).is_nan());
        assert!(polls_mean_renewal(-1.0, 1.0, 1.0).is_nan());
        assert!(polls_mean_renewal(1.0, f64::NAN, 1.0).is_nan());
        assert_eq!(residual_cdf_uniform(-1.0, 1.0, 2.0), 0.0);
        assert_eq!(residual_cdf_uniform(3.0, 1.0, 2.0), 1.0);
    }
}
