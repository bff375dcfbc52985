//! Pollers that begin in step: how fast jitter spreads their phases.
//!
//! The coherence is the length of the mean of the phases, each a point on the unit circle: 1 if all
//! poll at the same moment, near 0 if their polls are spread over the interval. A coherence of R
//! leaves a wave in the load: once little more than the first harmonic is left, its crest is at
//! 1 + 2R times the mean rate.
//!
//! The intervals are free-running: each begins at the poll before it, with a new draw of its own. A
//! delay drawn anew at every tick of a fixed grid is not this case. It brings the coherence of one
//! cycle, and no later cycle lowers it further.

use std::f64::consts::TAU;

use super::range::is_positive;
use super::rounding::intervals_to_cover;

/// Coherence of the polls number `cycles` of pollers that began in step, intervals uniform on
/// (`low_s`, `high_s`).
///
/// |sin x / x|ᵏ after k cycles, with x = 2πj/T for intervals of T ± j. Here T is the mean of the two
/// ends and j half their distance, so that jitter which is only added or only taken away is covered.
///
/// * Range: 0 ≤ `low_s` ≤ `high_s`, `high_s` > 0; NaN otherwise. The result has no unit and is
///   within 0 and 1.
/// * Holds for independent intervals and many pollers, of which n leave a noise near 1/√n. It also
///   holds for the polls that all send around one moment, k mean intervals after the start, as long
///   as j is small against T. More jitter is not always better: a j of T/2 spreads the phases
///   evenly at once, a j of 0.7 T leaves some of their order.
/// * Source: the order parameter of Kuramoto (*Chemical Oscillations, Waves, and Turbulence*), which
///   is the mean resultant length of directional statistics (Mardia & Jupp). It is the modulus of the
///   characteristic function at 2π/T, and that of a sum of independent intervals is a product.
///
/// ```
/// use pollpace::theory::phase_coherence_uniform;
/// let coherence = phase_coherence_uniform(12, 270.0, 330.0);
/// assert!((coherence - 0.449_2).abs() < 1e-4);
/// ```
pub fn phase_coherence_uniform(cycles: u64, low_s: f64, high_s: f64) -> f64 {
    let each = ln_coherence_of_one_cycle(low_s, high_s);
    if cycles == 0 && !each.is_nan() {
        // Apart, because a cycle that leaves no order would give 0 * -inf.
        1.0
    } else {
        libm::exp(cycles as f64 * each)
    }
}

/// Cycles after which the coherence of pollers that began in step is down to `coherence`, intervals
/// uniform on (`low_s`, `high_s`).
///
/// ⌈ln R / ln |sin x / x|⌉ for a coherence R, with x as in [`phase_coherence_uniform`].
///
/// * Range: 0 < `coherence` ≤ 1, 0 ≤ `low_s` ≤ `high_s`, `high_s` > 0; NaN otherwise. Infinite
///   without jitter, unless `coherence` is 1.
/// * Holds under the conditions of [`phase_coherence_uniform`].
/// * Source: [`phase_coherence_uniform`] solved for the cycles.
///
/// ```
/// use pollpace::theory::cycles_to_coherence_uniform;
/// assert_eq!(cycles_to_coherence_uniform(0.05, 270.0, 330.0), 45.0); // 300 s ± 10 %
/// assert_eq!(cycles_to_coherence_uniform(0.05, 285.0, 315.0), 182.0); // 300 s ± 5 %
/// ```
pub fn cycles_to_coherence_uniform(coherence: f64, low_s: f64, high_s: f64) -> f64 {
    let each = ln_coherence_of_one_cycle(low_s, high_s);
    if each.is_nan() || !(0.0 < coherence && coherence <= 1.0) {
        f64::NAN
    } else if coherence == 1.0 {
        0.0
    } else if each == 0.0 {
        f64::INFINITY
    } else {
        intervals_to_cover(libm::log(coherence) / each).max(1.0)
    }
}

/// ln |sin x / x| with x = 2πj/T = 2π(b - a)/(b + a); NaN for ends out of range.
fn ln_coherence_of_one_cycle(low_s: f64, high_s: f64) -> f64 {
    if !(0.0 <= low_s && low_s <= high_s && is_positive(high_s)) {
        return f64::NAN;
    }
    let jitter = (high_s - low_s) / (high_s + low_s);
    if jitter == 0.5 || jitter == 1.0 {
        // The sine of a rounded π is not quite 0.
        f64::NEG_INFINITY
    } else {
        ln_sine_ratio(TAU * jitter)
    }
}

fn ln_sine_ratio(angle: f64) -> f64 {
    if angle < 0.03 {
        // The ratio is too near 1 for its logarithm; this is the Taylor series.
        let square = angle * angle;
        -square * (1.0 / 6.0 + square * (1.0 / 180.0 + square / 2835.0))
    } else {
        libm::log((libm::sin(angle) / angle).abs())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;
    use crate::random::{Key, Purpose, unit};

    const POLLERS: u64 = 40_000;

    /// Send time of a poller's poll number `cycles`, begun at 0.
    fn sent_s(poller: u64, cycles: u64, low_s: f64, high_s: f64) -> f64 {
        let key = Key::new(10, 0).part(poller);
        (0..cycles)
            .map(|cycle| low_s + (high_s - low_s) * unit(key.draw(Purpose::Jitter, cycle)))
            .sum()
    }

    /// Length of the sum of the phases, per poller.
    fn resultant(times_s: impl Iterator<Item = f64>, interval_s: f64) -> f64 {
        let (mut east, mut north) = (0.0, 0.0);
        for time_s in times_s {
            let angle = TAU * time_s / interval_s;
            east += libm::cos(angle);
            north += libm::sin(angle);
        }
        libm::hypot(east, north) / POLLERS as f64
    }

    #[test]
    fn coherence_matches_reference_values() {
        assert_close(
            phase_coherence_uniform(1, 0.75, 1.25),
            std::f64::consts::FRAC_2_PI,
            1e-14,
        );
        assert_close(
            phase_coherence_uniform(12, 270.0, 330.0),
            0.449_226_950_723_978,
            1e-13,
        );
        assert_eq!(phase_coherence_uniform(0, 1.0, 3.0), 1.0);
        assert_eq!(phase_coherence_uniform(1_000_000, 5.0, 5.0), 1.0);
        // ± half of the mean, and full jitter.
        assert_eq!(phase_coherence_uniform(1, 15.0, 45.0), 0.0);
        assert_eq!(phase_coherence_uniform(1, 0.0, 60.0), 0.0);
        assert!(phase_coherence_uniform(1, 9.0, 51.0) > 0.2);
    }

    #[test]
    fn little_jitter_joins_its_series() {
        for angle in [1e-3, 0.0299, 0.03, 0.031_f64] {
            let direct = libm::log(libm::sin(angle) / angle);
            assert_close(ln_sine_ratio(angle), direct, 1e-15 / (angle * angle));
        }
        // x²/6 per cycle, and ln 20 in all.
        let cycles = cycles_to_coherence_uniform(0.05, 1.0 - 1e-9, 1.0 + 1e-9);
        assert_close(cycles, 6.0 * libm::log(20.0) / (TAU * TAU * 1e-18), 1e-6);
    }

    #[test]
    fn coherence_matches_random_phases() {
        for (cycles, low_s, high_s) in [
            (1, 45.0, 75.0),
            (2, 45.0, 75.0),
            (3, 45.0, 75.0),
            (12, 270.0, 330.0),
            (20, 270.0, 330.0),
            // Jitter that is only added, and equal jitter.
            (1, 120.0, 180.0),
            (4, 120.0, 180.0),
            (1, 30.0, 60.0),
        ] {
            let times_s = (0..POLLERS).map(|poller| sent_s(poller, cycles, low_s, high_s));
            let found = resultant(times_s, (low_s + high_s) / 2.0);
            let expected = phase_coherence_uniform(cycles, low_s, high_s);
            // One poller of many is off by 1/√n at most: 0.005.
            assert!(
                (found - expected).abs() < 0.012,
                "{cycles} {low_s} {high_s}: {found} is not {expected}"
            );
        }
    }

    #[test]
    fn coherence_at_one_moment_is_that_of_the_cycle() {
        // All polls within half an interval of 20 s and 45 s, whatever their number.
        for cycles in [20, 45] {
            let around_s = cycles as f64;
            let polls_s = (0..POLLERS).flat_map(|poller| {
                let key = Key::new(10, 1).part(poller);
                let mut time_s = 0.0;
                (0..2 * cycles)
                    .map(move |cycle| {
                        time_s += 0.9 + 0.2 * unit(key.draw(Purpose::Jitter, cycle));
                        time_s
                    })
                    .filter(move |time_s| (around_s - 0.5..around_s + 0.5).contains(time_s))
            });
            let found = resultant(polls_s, 1.0);
            let expected = phase_coherence_uniform(cycles, 0.9, 1.1);
            assert!((found - expected).abs() < 0.012, "{found} {expected}");
        }
    }

    #[test]
    fn the_crest_of_the_load_is_one_and_twice_the_coherence() {
        let cycles = 20;
        let near = (0..POLLERS)
            .map(|poller| sent_s(poller, cycles, 0.9, 1.1))
            .filter(|time_s| (time_s - time_s.round()).abs() < 0.025)
            .count();
        let mean = 0.05 * POLLERS as f64;
        let crest = 1.0 + 2.0 * phase_coherence_uniform(cycles, 0.9, 1.1);
        assert_close(near as f64 / mean, crest, 0.05);
    }

    #[test]
    fn a_grid_with_delays_keeps_the_coherence_of_one_cycle() {
        for tick in [1, 30] {
            let times_s = (0..POLLERS).map(|poller| {
                let key = Key::new(10, 2).part(poller);
                60.0 * tick as f64 + 30.0 * unit(key.draw(Purpose::Jitter, tick))
            });
            let found = resultant(times_s, 60.0);
            let expected = phase_coherence_uniform(1, 45.0, 75.0);
            assert!((found - expected).abs() < 0.012, "{found} {expected}");
        }
    }

    #[test]
    fn cycles_are_the_first_that_reach_the_coherence() {
        for (low_s, high_s) in [
            (0.9, 1.1),
            (0.95, 1.05),
            (0.999, 1.001),
            (0.99999, 1.00001),
            (2.0, 3.0),
            (0.1, 5.0),
        ] {
            for coherence in [0.999, 0.5, 0.05, 1e-6] {
                let cycles = cycles_to_coherence_uniform(coherence, low_s, high_s);
                let at = |cycles: f64| phase_coherence_uniform(cycles as u64, low_s, high_s);
                assert!(at(cycles) <= coherence && coherence < at(cycles - 1.0));
            }
        }
        assert_eq!(cycles_to_coherence_uniform(1.0, 0.9, 1.1), 0.0);
        assert_eq!(cycles_to_coherence_uniform(1.0, 1.0, 1.0), 0.0);
        assert_eq!(cycles_to_coherence_uniform(0.05, 1.0, 1.0), f64::INFINITY);
        assert_eq!(cycles_to_coherence_uniform(0.05, 0.5, 1.5), 1.0);
        assert_eq!(cycles_to_coherence_uniform(0.05, 0.0, 1.0), 1.0);
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(phase_coherence_uniform(3, bad, 2.0).is_nan());
            assert!(phase_coherence_uniform(3, 1.0, bad).is_nan());
            assert!(cycles_to_coherence_uniform(0.5, bad, 2.0).is_nan());
            assert!(cycles_to_coherence_uniform(bad, 1.0, 2.0).is_nan());
        }
        assert!(phase_coherence_uniform(3, 0.0, 0.0).is_nan());
        assert!(phase_coherence_uniform(3, 2.0, 1.0).is_nan());
        assert!(cycles_to_coherence_uniform(0.0, 1.0, 2.0).is_nan());
        assert!(cycles_to_coherence_uniform(1.1, 1.0, 2.0).is_nan());
    }
}
