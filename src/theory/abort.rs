//! Aborted tasks: how long until the poller notices, and what it still sends.
//!
//! The answer depends on how the poller sleeps: wakened by the abort, looking at a flag after the
//! sleep, looking every slice of it, or never looking. Times of abort do not depend on the phase of
//! the polls.

use super::range::{is_fraction, is_non_negative, is_positive};
use super::renewal::residual_mean;
use super::rounding::{intervals_to_cover, intervals_within};

/// Mean abort latency of a serial loop whose sleep the abort interrupts, but not its request.
///
/// r²/(2(T + r)): zero while asleep, the rest of the request while one is in flight.
///
/// * Range: `interval_s` ≥ 0, `round_trip_s` ≥ 0, not both 0; NaN otherwise.
/// * Holds for constant T and r and an abort uniform within a cycle of T + r. If the abort cuts the
///   request too, the latency is 0.
/// * Source: chance r/(T + r) of a request in flight, with a mean rest of r/2.
///
/// ```
/// use pollpace::theory::abort_latency_mean_interruptible;
/// assert_eq!(abort_latency_mean_interruptible(5.0, 0.0), 0.0);
/// assert_eq!(abort_latency_mean_interruptible(3.0, 1.0), 0.125);
/// ```
pub fn abort_latency_mean_interruptible(interval_s: f64, round_trip_s: f64) -> f64 {
    let cycle_s = interval_s + round_trip_s;
    if is_non_negative(interval_s) && is_non_negative(round_trip_s) && is_positive(cycle_s) {
        round_trip_s * round_trip_s / (2.0 * cycle_s)
    } else {
        f64::NAN
    }
}

/// Mean abort latency of a poller that looks at the abort flag only after each sleep.
///
/// E\[X²\]/(2E\[X\]), which for a fixed interval T is T/2; the quantiles are those of
/// [`residual_quantile_uniform`](super::residual_quantile_uniform).
///
/// * Range: `interval_mean_s` > 0 (s), `interval_second_moment_s2` ≥ 0 (s²); NaN otherwise.
/// * Holds for independent, identically distributed sleeps, an abort that does not depend on their
///   phase, and a zero round trip.
/// * Source: inspection paradox, see [`residual_mean`].
///
/// ```
/// use pollpace::theory::abort_latency_mean_after_sleep;
/// assert_eq!(abort_latency_mean_after_sleep(300.0, 90_000.0), 150.0);
/// ```
pub fn abort_latency_mean_after_sleep(interval_mean_s: f64, interval_second_moment_s2: f64) -> f64 {
    residual_mean(interval_mean_s, interval_second_moment_s2)
}

/// Mean abort latency of a poller that sleeps in slices and looks after each: half a slice.
///
/// * Range: `slice_s` > 0; NaN otherwise.
/// * Holds when slices divide the interval and the round trip is zero.
/// * Source: mean of the uniform distribution on (0, slice).
///
/// ```
/// use pollpace::theory::abort_latency_mean_sliced;
/// assert_eq!(abort_latency_mean_sliced(0.5), 0.25);
/// ```
pub fn abort_latency_mean_sliced(slice_s: f64) -> f64 {
    abort_latency_quantile_sliced(0.5, slice_s)
}

/// Quantile of the abort latency of a poller that sleeps in slices: p slices.
///
/// * Range: `p` in \[0, 1\], `slice_s` > 0; NaN otherwise.
/// * Holds under the conditions of [`abort_latency_mean_sliced`].
/// * Source: quantile of the uniform distribution on (0, slice).
///
/// ```
/// use pollpace::theory::abort_latency_quantile_sliced;
/// assert_eq!(abort_latency_quantile_sliced(0.95, 30.0), 28.5);
/// ```
pub fn abort_latency_quantile_sliced(p: f64, slice_s: f64) -> f64 {
    abort_latency_quantile_watched(p, slice_s, 0.0)
}

/// Mean abort latency of a server that looks for cancelled tasks every `watch_interval_s`: half of
/// it and one call.
///
/// * Range: `watch_interval_s` > 0, `call_s` ≥ 0 (how long the look itself takes); NaN otherwise.
/// * Holds for looks at fixed times that do not depend on the abort.
/// * Source: mean of the uniform distribution, shifted by the call.
///
/// ```
/// use pollpace::theory::abort_latency_mean_watched;
/// assert_eq!(abort_latency_mean_watched(2.0, 0.25), 1.25);
/// ```
pub fn abort_latency_mean_watched(watch_interval_s: f64, call_s: f64) -> f64 {
    abort_latency_quantile_watched(0.5, watch_interval_s, call_s)
}

/// Quantile of the abort latency of a server that looks for cancelled tasks every
/// `watch_interval_s`.
///
/// * Range: `p` in \[0, 1\], `watch_interval_s` > 0, `call_s` ≥ 0; NaN otherwise.
/// * Holds under the conditions of [`abort_latency_mean_watched`].
/// * Source: quantile of the uniform distribution, shifted by the call.
///
/// ```
/// use pollpace::theory::abort_latency_quantile_watched;
/// assert_eq!(abort_latency_quantile_watched(0.5, 2.0, 0.25), 1.25);
/// ```
pub fn abort_latency_quantile_watched(p: f64, watch_interval_s: f64, call_s: f64) -> f64 {
    if is_fraction(p) && is_positive(watch_interval_s) && is_non_negative(call_s) {
        p * watch_interval_s + call_s
    } else {
        f64::NAN
    }
}

/// Abort latency of a poller at a fixed interval that never looks at the abort: the time from the
/// abort to the poll that sees the end of the task.
///
/// T⌈D/T⌉ - A, and 0 if the end was seen before the abort.
///
/// * Range: `duration_s` > 0, `abort_s` ≥ 0 (from the start of the task), `interval_s` > 0; NaN
///   otherwise.
/// * Holds for a zero round trip and a task that the abort does not shorten.
/// * Source: counting multiples of T.
///
/// ```
/// use pollpace::theory::abort_latency_ignored;
/// assert_eq!(abort_latency_ignored(600.0, 60.0, 5.0), 540.0);
/// assert_eq!(abort_latency_ignored(603.0, 60.0, 5.0), 545.0);
/// ```
pub fn abort_latency_ignored(duration_s: f64, abort_s: f64, interval_s: f64) -> f64 {
    if is_positive(duration_s) && is_non_negative(abort_s) && is_positive(interval_s) {
        (intervals_to_cover(duration_s / interval_s) * interval_s - abort_s).max(0.0)
    } else {
        f64::NAN
    }
}

/// Polls that a poller at a fixed interval which never looks at the abort sends after it.
///
/// ⌈D/T⌉ - ⌊A/T⌋, and 0 if the end was seen before the abort. A poll sent at the very moment of the
/// abort is not counted as leaked.
///
/// * Range: `duration_s` > 0, `abort_s` ≥ 0 (from the start of the task), `interval_s` > 0; NaN
///   otherwise.
/// * Holds under the conditions of [`abort_latency_ignored`].
/// * Source: counting the multiples of T after A, up to the first that is not before D.
///
/// ```
/// use pollpace::theory::leaked_polls_fixed_interval;
/// assert_eq!(leaked_polls_fixed_interval(600.0, 60.0, 5.0), 108.0);
/// assert_eq!(leaked_polls_fixed_interval(600.0, 62.0, 5.0), 108.0);
/// ```
pub fn leaked_polls_fixed_interval(duration_s: f64, abort_s: f64, interval_s: f64) -> f64 {
    if is_positive(duration_s) && is_non_negative(abort_s) && is_positive(interval_s) {
        let sent_in_all = intervals_to_cover(duration_s / interval_s);
        let sent_before = intervals_within(abort_s / interval_s);
        (sent_in_all - sent_before).max(0.0)
    } else {
        f64::NAN
    }
}

/// Mean number of poll loops alive that should have ended with an abort.
///
/// λE\[rest\], for aborts at rate λ each of which leaves a loop running for E\[rest\] on average.
///
/// * Range: `abort_rate_per_s` ≥ 0, `remaining_mean_s` ≥ 0; NaN otherwise.
/// * Holds in the steady state, for any arrival process.
/// * Source: Little's law.
///
/// ```
/// use pollpace::theory::leaked_loops_mean;
/// assert_eq!(leaked_loops_mean(1.0 / 60.0, 300.0), 5.0);
/// ```
pub fn leaked_loops_mean(abort_rate_per_s: f64, remaining_mean_s: f64) -> f64 {
    if is_non_negative(abort_rate_per_s) && is_non_negative(remaining_mean_s) {
        abort_rate_per_s * remaining_mean_s
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;

    #[test]
    fn ignored_abort_matches_a_count() {
        // Halves are exact in binary.
        for half_duration in 1..80 {
            for half_abort in 0..90 {
                let duration_s = f64::from(half_duration) / 2.0;
                let abort_s = f64::from(half_abort) / 2.0;
                for interval_s in [0.5, 1.0, 2.5, 7.0] {
                    let mut time_s = 0.0;
                    let mut leaked = 0.0;
                    while time_s < duration_s {
                        time_s += interval_s;
                        leaked += if time_s > abort_s { 1.0 } else { 0.0 };
                    }
                    let polls = leaked_polls_fixed_interval(duration_s, abort_s, interval_s);
                    assert_eq!(polls, leaked);
                    let latency_s = abort_latency_ignored(duration_s, abort_s, interval_s);
                    assert_eq!(latency_s, (time_s - abort_s).max(0.0));
                }
            }
        }
    }

    #[test]
    fn checked_after_sleep_matches_an_even_grid_of_aborts() {
        let aborts = 1000;
        let interval_s = 5.0;
        let sum_s: f64 = (0..aborts)
            .map(|k| (f64::from(k) + 0.5) / f64::from(aborts) * interval_s)
            .map(|abort_s| interval_s - abort_s)
            .sum();
        let expected_s = abort_latency_mean_after_sleep(interval_s, interval_s * interval_s);
        assert_close(sum_s / f64::from(aborts), expected_s, 1e-12);
        assert_eq!(expected_s, 2.5);
    }

    #[test]
    fn interruptible_matches_an_even_grid_of_aborts() {
        let (interval_s, round_trip_s) = (5.0, 0.4);
        let aborts = 54_000;
        let sum_s: f64 = (0..aborts)
            .map(|k| (f64::from(k) + 0.5) / f64::from(aborts) * (interval_s + round_trip_s))
            .map(|abort_s| (round_trip_s - abort_s).max(0.0))
            .sum();
        let expected_s = abort_latency_mean_interruptible(interval_s, round_trip_s);
        assert_close(sum_s / f64::from(aborts), expected_s, 1e-6);
    }

    #[test]
    fn uniform_latencies() {
        assert_eq!(abort_latency_mean_sliced(5.0), 2.5);
        assert_eq!(abort_latency_quantile_sliced(0.95, 300.0), 285.0);
        assert_eq!(abort_latency_mean_watched(2.0, 0.5), 1.5);
        assert_eq!(abort_latency_quantile_watched(1.0, 2.0, 0.5), 2.5);
        assert_close(leaked_loops_mean(1.0 / 60.0, 300.0), 5.0, 1e-15);
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(abort_latency_mean_interruptible(bad, 2.0).is_nan());
            assert!(abort_latency_mean_after_sleep(bad, 1.0).is_nan());
            assert!(abort_latency_mean_sliced(bad).is_nan());
            assert!(abort_latency_quantile_sliced(bad, 1.0).is_nan());
            assert!(abort_latency_mean_watched(1.0, bad).is_nan());
            assert!(abort_latency_ignored(bad, 1.0, 1.0).is_nan());
            assert!(leaked_polls_fixed_interval(1.0, bad, 1.0).is_nan());
            assert!(leaked_loops_mean(bad, 1.0).is_nan());
        }
    }
}
