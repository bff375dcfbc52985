//! Interval hints H that differ between tasks and are held between a floor f and a ceiling c.
//!
//! A task that keeps its own hint polls at the rate 1/clamp(H), so N tasks that are always active
//! load the server with N·E\[1/clamp(H)\]. By Jensen's inequality that is never less than
//! N/E\[clamp(H)\], and for wide hints it is several times as much. The mean detection delay per task
//! is E\[clamp(H)\]/2. If instead every interval draws a hint afresh, the rate is 1/E\[clamp(H)\] and
//! the delay is that of [`residual_mean`](super::residual_mean).

use std::f64::consts::FRAC_1_SQRT_2;

use super::range::is_non_negative;

/// Mean of 1/clamp(H): polls per second of one task, hints lognormal.
///
/// Φ(z_f)/f + e^(-μ + σ²/2) \[Φ(z_c + σ) - Φ(z_f + σ)\] + (1 - Φ(z_c))/c with z = (ln · - μ)/σ.
///
/// * Range: `log_mean` is μ, the mean of ln H with H in seconds (the logarithm of the median);
///   `log_sd` is σ ≥ 0, without unit; 0 < `floor_s` ≤ `ceiling_s`, which may be infinite. NaN
///   otherwise, and for σ above about 37, where e^(σ²/2) overflows.
/// * Holds for tasks that are always active and keep their hint.
/// * Source: partial moments of the lognormal distribution (Johnson, Kotz & Balakrishnan,
///   *Continuous Univariate Distributions*, volume 1).
///
/// ```
/// use pollpace::theory::mean_inverse_clamped_lognormal;
/// let rate_per_s = mean_inverse_clamped_lognormal(5_f64.ln(), 1.5, 1.0, 60.0);
/// assert!((rate_per_s - 0.348_140_577_9).abs() < 1e-9);
/// ```
pub fn mean_inverse_clamped_lognormal(
    log_mean: f64,
    log_sd: f64,
    floor_s: f64,
    ceiling_s: f64,
) -> f64 {
    mean_power_clamped_lognormal(-1.0, log_mean, log_sd, floor_s, ceiling_s)
}

/// Mean of clamp(H) in seconds, hints lognormal; half of it is the mean detection delay per task.
///
/// fΦ(z_f) + e^(μ + σ²/2) \[Φ(z_c - σ) - Φ(z_f - σ)\] + c(1 - Φ(z_c)) with z = (ln · - μ)/σ.
///
/// * Range: as for [`mean_inverse_clamped_lognormal`], but for a finite ceiling; NaN otherwise.
/// * Holds always; as a delay, for tasks that keep their hint, with the end uniform within it.
/// * Source: as for [`mean_inverse_clamped_lognormal`].
///
/// ```
/// use pollpace::theory::mean_clamped_lognormal;
/// let interval_s = mean_clamped_lognormal(5_f64.ln(), 1.5, 1.0, 60.0);
/// assert!((interval_s - 11.650_805_727_8).abs() < 1e-9);
/// ```
pub fn mean_clamped_lognormal(log_mean: f64, log_sd: f64, floor_s: f64, ceiling_s: f64) -> f64 {
    mean_power_clamped_lognormal(1.0, log_mean, log_sd, floor_s, ceiling_s)
}

/// Mean of 1/clamp(H): polls per second of one task, hints uniform on (`low_s`, `high_s`).
///
/// \[(f - a)/f + ln(c/f) + (b - c)/c\]/(b - a) if the floor and the ceiling are within (a, b).
///
/// * Range: 0 ≤ `low_s` ≤ `high_s`, 0 < `floor_s` ≤ `ceiling_s`, all finite; NaN otherwise. Floor
///   and ceiling may lie outside (a, b).
/// * Holds for tasks that are always active and keep their hint.
/// * Source: integral of 1/clamp(h) over (a, b).
///
/// ```
/// use pollpace::theory::mean_inverse_clamped_uniform;
/// let rate_per_s = mean_inverse_clamped_uniform(0.1, 120.0, 1.0, 60.0);
/// assert!((rate_per_s - 0.049_994_533_5).abs() < 1e-9);
/// ```
pub fn mean_inverse_clamped_uniform(low_s: f64, high_s: f64, floor_s: f64, ceiling_s: f64) -> f64 {
    if !are_uniform_bounds(low_s, high_s, floor_s, ceiling_s) {
        return f64::NAN;
    }
    if low_s == high_s {
        return 1.0 / low_s.clamp(floor_s, ceiling_s);
    }
    let from_s = floor_s.clamp(low_s, high_s);
    let to_s = ceiling_s.clamp(low_s, high_s);
    let at_floor = (from_s - low_s) / floor_s;
    let between = if from_s < to_s {
        libm::log(to_s / from_s)
    } else {
        0.0
    };
    let at_ceiling = (high_s - to_s) / ceiling_s;
    (at_floor + between + at_ceiling) / (high_s - low_s)
}

/// Mean of clamp(H) in seconds, hints uniform on (`low_s`, `high_s`); half of it is the mean
/// detection delay per task.
///
/// \[f(f - a) + (c² - f²)/2 + c(b - c)\]/(b - a) if the floor and the ceiling are within (a, b).
///
/// * Range: as for [`mean_inverse_clamped_uniform`]; NaN otherwise.
/// * Holds always; as a delay, for tasks that keep their hint, with the end uniform within it.
/// * Source: integral of clamp(h) over (a, b).
///
/// ```
/// use pollpace::theory::mean_clamped_uniform;
/// assert_eq!(mean_clamped_uniform(0.0, 4.0, 1.0, 3.0), 2.0);
/// ```
pub fn mean_clamped_uniform(low_s: f64, high_s: f64, floor_s: f64, ceiling_s: f64) -> f64 {
    if !are_uniform_bounds(low_s, high_s, floor_s, ceiling_s) {
        return f64::NAN;
    }
    if low_s == high_s {
        return low_s.clamp(floor_s, ceiling_s);
    }
    let from_s = floor_s.clamp(low_s, high_s);
    let to_s = ceiling_s.clamp(low_s, high_s);
    let at_floor = floor_s * (from_s - low_s);
    let between = (to_s - from_s) * (to_s + from_s) / 2.0;
    let at_ceiling = ceiling_s * (high_s - to_s);
    (at_floor + between + at_ceiling) / (high_s - low_s)
}

fn are_uniform_bounds(low_s: f64, high_s: f64, floor_s: f64, ceiling_s: f64) -> bool {
    0.0 <= low_s
        && low_s <= high_s
        && high_s.is_finite()
        && 0.0 < floor_s
        && floor_s <= ceiling_s
        && ceiling_s.is_finite()
}

/// E\[clamp(H)^k\] for k = `power`, of which both lognormal means are cases.
///
/// E\[H^k; f < H < c\] = e^(kμ + k²σ²/2) · P(f < H' < c), where ln H' has its mean moved by kσ².
fn mean_power_clamped_lognormal(
    power: f64,
    log_mean: f64,
    log_sd: f64,
    floor_s: f64,
    ceiling_s: f64,
) -> f64 {
    if !(log_mean.is_finite() && is_non_negative(log_sd) && 0.0 < floor_s && floor_s <= ceiling_s) {
        return f64::NAN;
    }
    if log_sd == 0.0 {
        return libm::pow(libm::exp(log_mean).clamp(floor_s, ceiling_s), power);
    }
    let z_floor = (libm::log(floor_s) - log_mean) / log_sd;
    let z_ceiling = (libm::log(ceiling_s) - log_mean) / log_sd;
    let shift = power * log_sd;
    let at_floor = libm::pow(floor_s, power) * normal_cdf(z_floor);
    let between = libm::exp(power * log_mean + shift * shift / 2.0)
        * normal_between(z_floor - shift, z_ceiling - shift);
    let at_ceiling = libm::pow(ceiling_s, power) * normal_cdf(-z_ceiling);
    at_floor + between + at_ceiling
}

/// P(Z < `z`) for a standard normal Z.
fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// P(`low` < Z < `high`) for a standard normal Z.
fn normal_between(low: f64, high: f64) -> f64 {
    if low > 0.0 {
        // In the upper tail both cdf values round to 1; their mirror images keep their digits.
        normal_cdf(-low) - normal_cdf(-high)
    } else {
        normal_cdf(high) - normal_cdf(low)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;

    /// Mean of `f(h)` over the uniform distribution, by the midpoint rule.
    fn uniform_mean(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
        let steps = 20_000;
        let width = (high - low) / f64::from(steps);
        let sum: f64 = (0..steps)
            .map(|k| f(low + (f64::from(k) + 0.5) * width))
            .sum();
        sum / f64::from(steps)
    }

    /// Mean of `f(h)` over the lognormal distribution, by the midpoint rule over 20 sigma.
    fn lognormal_mean(log_mean: f64, log_sd: f64, f: impl Fn(f64) -> f64) -> f64 {
        20.0 * uniform_mean(-10.0, 10.0, |z| {
            let density = libm::exp(-z * z / 2.0) * FRAC_1_SQRT_2 / std::f64::consts::PI.sqrt();
            density * f(libm::exp(log_mean + log_sd * z))
        })
    }

    #[test]
    fn lognormal_matches_reference_values() {
        let median_5_s = libm::log(5.0);
        let rate = mean_inverse_clamped_lognormal(median_5_s, 1.5, 1.0, 60.0);
        assert_close(rate, 0.3481405779025576, 1e-13);
        let mean_s = mean_clamped_lognormal(median_5_s, 1.5, 1.0, 60.0);
        assert_close(mean_s, 11.650805727845416, 1e-13);
        let median_30_s = libm::log(30.0);
        let rate = mean_inverse_clamped_lognormal(median_30_s, 0.8, 5.0, 300.0);
        assert_close(rate, 0.04497484965643011, 1e-13);
        let mean_s = mean_clamped_lognormal(median_30_s, 0.8, 5.0, 300.0);
        assert_close(mean_s, 41.14903907877745, 1e-13);
    }

    #[test]
    fn lognormal_matches_integrals() {
        for (log_mean, log_sd, floor_s, ceiling_s) in [
            (1.6, 1.5, 1.0, 60.0),
            (3.4, 0.8, 5.0, 300.0),
            (-2.0, 1.0, 1.0, 60.0),
            (0.0, 2.0, 3.0, 3.0),
        ] {
            let clamped = |h: f64| h.clamp(floor_s, ceiling_s);
            let rate = lognormal_mean(log_mean, log_sd, |h| 1.0 / clamped(h));
            let closed = mean_inverse_clamped_lognormal(log_mean, log_sd, floor_s, ceiling_s);
            assert_close(closed, rate, 1e-5);
            let mean_s = lognormal_mean(log_mean, log_sd, clamped);
            let closed_s = mean_clamped_lognormal(log_mean, log_sd, floor_s, ceiling_s);
            assert_close(closed_s, mean_s, 1e-5);
        }
    }

    #[test]
    fn lognormal_limits() {
        let median_5_s = libm::log(5.0);
        let inverse = mean_inverse_clamped_lognormal(median_5_s, 0.0, 1.0, 60.0);
        assert_close(inverse, 0.2, 1e-15);
        assert_close(
            mean_clamped_lognormal(median_5_s, 0.0, 10.0, 60.0),
            10.0,
            1e-15,
        );
        // No clamp in practice: E[1/H] = e^(-mu + sigma^2/2).
        let inverse = mean_inverse_clamped_lognormal(median_5_s, 1.0, 1e-30, f64::INFINITY);
        assert_close(inverse, 0.2 * libm::exp(0.5), 1e-13);
    }

    #[test]
    fn uniform_matches_reference_value_and_integrals() {
        let rate = mean_inverse_clamped_uniform(0.1, 120.0, 1.0, 60.0);
        assert_close(rate, 0.04999453346307006, 1e-13);
        for (low_s, high_s, floor_s, ceiling_s) in [
            (0.1, 120.0, 1.0, 60.0),
            (2.0, 9.0, 1.0, 60.0),
            (0.0, 0.5, 1.0, 60.0),
            (70.0, 90.0, 1.0, 60.0),
            (0.0, 10.0, 4.0, 4.0),
            (5.0, 10.0, 1.0, 7.0),
        ] {
            let clamped = |h: f64| h.clamp(floor_s, ceiling_s);
            let rate = uniform_mean(low_s, high_s, |h| 1.0 / clamped(h));
            let closed = mean_inverse_clamped_uniform(low_s, high_s, floor_s, ceiling_s);
            assert_close(closed, rate, 1e-5);
            let mean_s = uniform_mean(low_s, high_s, clamped);
            let closed_s = mean_clamped_uniform(low_s, high_s, floor_s, ceiling_s);
            assert_close(closed_s, mean_s, 1e-5);
            assert!(closed * closed_s >= 1.0 - 1e-12, "Jensen");
        }
        assert_eq!(mean_inverse_clamped_uniform(8.0, 8.0, 1.0, 60.0), 0.125);
        assert_eq!(mean_clamped_uniform(8.0, 8.0, 1.0, 6.0), 6.0);
    }

    #[test]
    fn normal_tail_keeps_its_digits() {
        // 1 - Phi(10) = 7.619853024160525e-24.
        assert_close(normal_between(10.0, 40.0), 7.619853024160525e-24, 1e-12);
        assert_close(normal_between(-1.0, 1.0), 0.6826894921370859, 1e-14);
    }

    #[test]
    fn out_of_range_is_nan() {
        assert!(mean_inverse_clamped_lognormal(1.0, -1.0, 1.0, 2.0).is_nan());
        assert!(mean_inverse_clamped_lognormal(1.0, 1.0, 3.0, 2.0).is_nan());
        assert!(mean_clamped_lognormal(f64::NAN, 1.0, 1.0, 2.0).is_nan());
        assert!(mean_clamped_lognormal(1.0, 1.0, 0.0, 2.0).is_nan());
        assert!(mean_inverse_clamped_uniform(2.0, 1.0, 1.0, 2.0).is_nan());
        assert!(mean_clamped_uniform(1.0, 2.0, 0.0, 2.0).is_nan());
        assert!(mean_clamped_uniform(1.0, f64::NAN, 1.0, 2.0).is_nan());
    }
}
