//! Polling at one fixed interval: polls per task, detection delay, and the load of many tasks.
//!
//! Unless a function says otherwise the round trip is zero and poll k is sent at k intervals after
//! the start of the task.

use super::range::{is_fraction, is_non_negative, is_positive};
use super::rounding::intervals_to_cover;

/// When the first poll of a task is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FirstPoll {
    /// One interval after the start: poll k at k intervals, k = 1, 2, ...
    AfterInterval,
    /// At the start: poll k at k - 1 intervals.
    Immediate,
}

impl FirstPoll {
    /// Polls beyond those sent one interval or more after the start.
    fn extra_polls(self) -> f64 {
        match self {
            FirstPoll::AfterInterval => 0.0,
            FirstPoll::Immediate => 1.0,
        }
    }
}

/// Polls that one task of known duration takes, the one that sees the end included.
///
/// ⌈D/T⌉, and one more if the first poll is immediate.
///
/// * Range: `duration_s` ≥ 0, `interval_s` > 0; NaN otherwise. At least 1.
/// * Holds for a zero round trip and a poll at exactly the end seeing the end.
/// * Source: counting the multiples of T in (0, D].
///
/// ```
/// use pollpace::theory::{FirstPoll, polls_fixed_interval};
/// assert_eq!(polls_fixed_interval(437.5, 25.0, FirstPoll::AfterInterval), 18.0);
/// assert_eq!(polls_fixed_interval(437.5, 25.0, FirstPoll::Immediate), 19.0);
/// assert_eq!(polls_fixed_interval(600.0, 5.0, FirstPoll::AfterInterval), 120.0);
/// ```
pub fn polls_fixed_interval(duration_s: f64, interval_s: f64, first_poll: FirstPoll) -> f64 {
    if is_non_negative(duration_s) && is_positive(interval_s) {
        let polls = intervals_to_cover(duration_s / interval_s) + first_poll.extra_polls();
        // Even a task that is over at once takes a poll to be seen.
        polls.max(1.0)
    } else {
        f64::NAN
    }
}

/// Mean polls per task of random duration.
///
/// E\[D\]/T + 1/2, and one more if the first poll is immediate.
///
/// * Range: `duration_mean_s` ≥ 0, `interval_s` > 0; NaN otherwise.
/// * Holds when the position of the end within its interval is uniform, as it nearly is for any
///   smooth distribution of durations several intervals wide; zero round trip.
/// * Source: E⌈x⌉ = E\[x\] + 1/2 for uniform fractional part.
///
/// ```
/// use pollpace::theory::{FirstPoll, polls_mean_fixed_interval};
/// assert_eq!(polls_mean_fixed_interval(600.0, 20.0, FirstPoll::AfterInterval), 30.5);
/// ```
pub fn polls_mean_fixed_interval(
    duration_mean_s: f64,
    interval_s: f64,
    first_poll: FirstPoll,
) -> f64 {
    if is_non_negative(duration_mean_s) && is_positive(interval_s) {
        duration_mean_s / interval_s + 0.5 + first_poll.extra_polls()
    } else {
        f64::NAN
    }
}

/// Time from the end of one task of known duration to the poll that sees it.
///
/// T⌈D/T⌉ - D, at least 0 and less than T, whether the first poll is immediate or not.
///
/// * Range: `duration_s` > 0, `interval_s` > 0; NaN otherwise. Zero is left out because there the
///   two conventions part: an immediate first poll sees the end at once, the other after T.
/// * Holds for a zero round trip. A task shorter than one interval is seen after T - D, which is
///   not T/2 on average.
/// * Source: distance to the next multiple of T.
///
/// ```
/// use pollpace::theory::completion_delay_fixed_interval;
/// assert_eq!(completion_delay_fixed_interval(437.5, 25.0), 12.5);
/// assert_eq!(completion_delay_fixed_interval(3.0, 30.0), 27.0);
/// assert_eq!(completion_delay_fixed_interval(60.0, 20.0), 0.0);
/// ```
pub fn completion_delay_fixed_interval(duration_s: f64, interval_s: f64) -> f64 {
    if is_positive(duration_s) && is_positive(interval_s) {
        let polls = intervals_to_cover(duration_s / interval_s);
        (polls * interval_s - duration_s).max(0.0)
    } else {
        f64::NAN
    }
}

/// Mean time from the end of a task of random duration to the poll that sees it: T/2.
///
/// * Range: `interval_s` > 0; NaN otherwise.
/// * Holds when the delay is uniform on (0, T), that is under the condition of
///   [`polls_mean_fixed_interval`].
/// * Source: mean of the uniform distribution.
///
/// ```
/// use pollpace::theory::completion_delay_mean_fixed_interval;
/// assert_eq!(completion_delay_mean_fixed_interval(20.0), 10.0);
/// ```
pub fn completion_delay_mean_fixed_interval(interval_s: f64) -> f64 {
    completion_delay_quantile_fixed_interval(0.5, interval_s)
}

/// Quantile of the time from the end of a task of random duration to the poll that sees it: pT.
///
/// * Range: `p` in \[0, 1\], `interval_s` > 0; NaN otherwise.
/// * Holds under the condition of [`polls_mean_fixed_interval`].
/// * Source: quantile of the uniform distribution.
///
/// ```
/// use pollpace::theory::completion_delay_quantile_fixed_interval;
/// assert_eq!(completion_delay_quantile_fixed_interval(0.95, 20.0), 19.0);
/// ```
pub fn completion_delay_quantile_fixed_interval(p: f64, interval_s: f64) -> f64 {
    if is_fraction(p) && is_positive(interval_s) {
        p * interval_s
    } else {
        f64::NAN
    }
}

/// Mean polls per task whose duration is exponential.
///
/// 1/(1 - e^(-T/m)) for mean duration m, and one more if the first poll is immediate.
///
/// * Range: `duration_mean_s` > 0, `interval_s` > 0; NaN otherwise.
/// * Holds for every ratio of interval to mean, long intervals included; zero round trip.
/// * Source: without memory each poll sees the end with the same chance 1 - e^(-T/m), so the number
///   of polls is geometric.
///
/// ```
/// use pollpace::theory::{FirstPoll, polls_mean_exponential};
/// let polls = polls_mean_exponential(60.0, 60.0, FirstPoll::AfterInterval);
/// assert!((polls - 1.581_976_706_869).abs() < 1e-12);
/// ```
pub fn polls_mean_exponential(duration_mean_s: f64, interval_s: f64, first_poll: FirstPoll) -> f64 {
    if is_positive(duration_mean_s) && is_positive(interval_s) {
        -1.0 / libm::expm1(-interval_s / duration_mean_s) + first_poll.extra_polls()
    } else {
        f64::NAN
    }
}

/// Mean time from the end of a task of exponential duration to the poll that sees it.
///
/// T/(1 - e^(-T/m)) - m for mean duration m, whether the first poll is immediate or not.
///
/// * Range: `duration_mean_s` > 0, `interval_s` > 0; NaN otherwise.
/// * Holds for every ratio of interval to mean; zero round trip. Above T/2, and near T - m where the
///   interval is long.
/// * Source: T times the geometric mean of [`polls_mean_exponential`], less the mean duration.
///
/// ```
/// use pollpace::theory::completion_delay_mean_exponential;
/// let delay_s = completion_delay_mean_exponential(60.0, 300.0);
/// assert!((delay_s - 242.035_096_471_891).abs() < 1e-9);
/// ```
pub fn completion_delay_mean_exponential(duration_mean_s: f64, interval_s: f64) -> f64 {
    if is_positive(duration_mean_s) && is_positive(interval_s) {
        let ratio = interval_s / duration_mean_s;
        let delay_in_means = if ratio < 0.01 {
            // The difference below cancels for short intervals; this is its Taylor series.
            let square = ratio * ratio;
            ratio / 2.0 + square / 12.0 - square * square / 720.0
        } else {
            -ratio / libm::expm1(-ratio) - 1.0
        };
        duration_mean_s * delay_in_means
    } else {
        f64::NAN
    }
}

/// Polls per second of an open system, where tasks arrive and leave.
///
/// λ(E\[D\]/T + 1/2), or λ(E\[D\]/T + 3/2) if the first poll is immediate.
///
/// * Range: `arrival_rate_per_s` ≥ 0, `duration_mean_s` ≥ 0, `interval_s` > 0; NaN otherwise.
/// * Holds for any arrival process of that rate, if durations do not depend on the interval and
///   under the condition of [`polls_mean_fixed_interval`]. If long tasks get long intervals, use
///   [`aggregate_rate_open_correlated`].
/// * Source: Little's law, L = λE\[D\] running tasks each polling at 1/T, plus half an interval per
///   task until its end is seen.
///
/// ```
/// use pollpace::theory::{FirstPoll, aggregate_rate_open};
/// assert_eq!(aggregate_rate_open(2.0, 50.0, 5.0, FirstPoll::AfterInterval), 21.0);
/// assert_eq!(aggregate_rate_open(2.0, 50.0, 5.0, FirstPoll::Immediate), 23.0);
/// ```
pub fn aggregate_rate_open(
    arrival_rate_per_s: f64,
    duration_mean_s: f64,
    interval_s: f64,
    first_poll: FirstPoll,
) -> f64 {
    if is_positive(interval_s) {
        let ratio_mean = duration_mean_s / interval_s;
        aggregate_rate_open_correlated(arrival_rate_per_s, ratio_mean, first_poll)
    } else {
        f64::NAN
    }
}

/// Polls per second of an open system whose intervals follow the durations.
///
/// λ(E\[D/T\] + 1/2), or λ(E\[D/T\] + 3/2) if the first poll is immediate.
///
/// * Range: `arrival_rate_per_s` ≥ 0, `duration_over_interval_mean` ≥ 0 (no unit: the mean over
///   tasks of duration by interval); NaN otherwise.
/// * Holds for any arrival process of that rate, each task keeping its own interval, with the end
///   uniform within it. E\[D/T\] is not E\[D\]E\[1/T\] when the two are correlated.
/// * Source: Little's law, as in [`aggregate_rate_open`].
///
/// ```
/// use pollpace::theory::{FirstPoll, aggregate_rate_open_correlated};
/// // Every task is given an interval of a twentieth of its duration.
/// assert_eq!(aggregate_rate_open_correlated(2.0, 20.0, FirstPoll::AfterInterval), 41.0);
/// ```
pub fn aggregate_rate_open_correlated(
    arrival_rate_per_s: f64,
    duration_over_interval_mean: f64,
    first_poll: FirstPoll,
) -> f64 {
    if is_non_negative(arrival_rate_per_s) && is_non_negative(duration_over_interval_mean) {
        arrival_rate_per_s * (duration_over_interval_mean + 0.5 + first_poll.extra_polls())
    } else {
        f64::NAN
    }
}

/// Polls per second of a closed system, where a fixed number of tasks runs all the time: N/T.
///
/// * Range: `tasks` ≥ 0 (a mean number is allowed), `interval_s` > 0; NaN otherwise.
/// * Holds for any phases, averaged over whole intervals, and for random intervals of mean
///   `interval_s`; zero round trip.
/// * Source: elementary renewal theorem.
///
/// ```
/// use pollpace::theory::aggregate_rate_closed;
/// assert_eq!(aggregate_rate_closed(100.0, 2.0), 50.0);
/// ```
pub fn aggregate_rate_closed(tasks: f64, interval_s: f64) -> f64 {
    if is_non_negative(tasks) && is_positive(interval_s) {
        tasks / interval_s
    } else {
        f64::NAN
    }
}

/// Polls per second of one serial loop that sleeps after each answer: 1/(T + r).
///
/// * Range: `interval_s` ≥ 0, `round_trip_s` ≥ 0, not both 0; NaN otherwise.
/// * Holds for a loop with one request in flight at a time; both may be means.
/// * Source: elementary renewal theorem for cycles of mean T + r.
///
/// ```
/// use pollpace::theory::serial_loop_rate_per_s;
/// assert_eq!(serial_loop_rate_per_s(1.0, 0.25), 0.8);
/// ```
pub fn serial_loop_rate_per_s(interval_s: f64, round_trip_s: f64) -> f64 {
    let cycle_s = interval_s + round_trip_s;
    if is_non_negative(interval_s) && is_non_negative(round_trip_s) && is_positive(cycle_s) {
        1.0 / cycle_s
    } else {
        f64::NAN
    }
}

/// Mean time from the end of a task to the answer that shows it, in a loop that sleeps after each
/// answer.
///
/// (T + r)/2 + (1 - q)r, where the server reads the state a fraction q of the round trip after the
/// poll was sent.
///
/// * Range: `interval_s` ≥ 0, `round_trip_s` ≥ 0, `read_fraction` in \[0, 1\] (1/2 for legs of equal
///   length); NaN otherwise.
/// * Holds for constant T and r and an end that is uniform within its cycle of T + r.
/// * Source: the next read is uniform on (0, T + r) away, and its answer takes (1 - q)r.
///
/// ```
/// use pollpace::theory::completion_delay_mean_serial_loop;
/// assert!((completion_delay_mean_serial_loop(5.0, 0.4, 0.5) - 2.9).abs() < 1e-12);
/// ```
pub fn completion_delay_mean_serial_loop(
    interval_s: f64,
    round_trip_s: f64,
    read_fraction: f64,
) -> f64 {
    if is_non_negative(interval_s) && is_non_negative(round_trip_s) && is_fraction(read_fraction) {
        (interval_s + round_trip_s) / 2.0 + (1.0 - read_fraction) * round_trip_s
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, assert_close};
    use super::FirstPoll::{AfterInterval, Immediate};
    use super::*;

    /// A loop that polls until the state read at `send + read_fraction * round_trip` is the end:
    /// polls sent, and the time of the last answer.
    fn poll_loop(
        duration_s: f64,
        interval_s: f64,
        first_poll: FirstPoll,
        round_trip_s: f64,
        read_fraction: f64,
    ) -> (f64, f64) {
        let mut time_s = match first_poll {
            AfterInterval => interval_s,
            Immediate => 0.0,
        };
        let mut polls = 0.0;
        loop {
            polls += 1.0;
            let read_s = time_s + read_fraction * round_trip_s;
            time_s += round_trip_s;
            if read_s >= duration_s {
                return (polls, time_s);
            }
            time_s += interval_s;
        }
    }

    #[test]
    fn polls_and_delay_match_reference_values() {
        for (duration_s, interval_s, polls, delay_s) in [
            (437.5, 25.0, 18.0, 12.5),
            (600.0, 5.0, 120.0, 0.0),
            (0.4, 1.0, 1.0, 0.6),
            (60.0, 20.0, 3.0, 0.0),
            (1.1, 0.1, 11.0, 0.0),
        ] {
            assert_eq!(
                polls_fixed_interval(duration_s, interval_s, AfterInterval),
                polls
            );
            assert_eq!(
                polls_fixed_interval(duration_s, interval_s, Immediate),
                polls + 1.0
            );
            let delay = completion_delay_fixed_interval(duration_s, interval_s);
            assert!((delay - delay_s).abs() < 1e-12);
        }
    }

    #[test]
    fn polls_and_delay_match_a_loop() {
        // Eighths are exact in binary, so the loop needs no tolerance.
        for eighths in 1..400 {
            let duration_s = f64::from(eighths) / 8.0;
            for interval_s in [0.125, 0.375, 1.0, 2.5, 7.0, 100.0] {
                for first_poll in [AfterInterval, Immediate] {
                    let (polls, time_s) = poll_loop(duration_s, interval_s, first_poll, 0.0, 0.0);
                    assert_eq!(
                        polls_fixed_interval(duration_s, interval_s, first_poll),
                        polls
                    );
                    let delay_s = completion_delay_fixed_interval(duration_s, interval_s);
                    assert_eq!(delay_s, time_s - duration_s);
                }
            }
        }
    }

    #[test]
    fn a_task_over_at_once_takes_one_poll() {
        assert_eq!(polls_fixed_interval(0.0, 5.0, AfterInterval), 1.0);
        assert_eq!(polls_fixed_interval(0.0, 5.0, Immediate), 1.0);
        assert!(completion_delay_fixed_interval(0.0, 5.0).is_nan());
    }

    #[test]
    fn means_match_an_even_grid_of_durations() {
        // Ends spread evenly over 50 whole intervals of 20 s.
        let durations: Vec<f64> = (0..10_000).map(|k| 100.05 + 0.1 * f64::from(k)).collect();
        let mean = |f: &dyn Fn(f64) -> f64| durations.iter().map(|&d| f(d)).sum::<f64>() / 1e4;
        let polls = mean(&|d| poll_loop(d, 20.0, AfterInterval, 0.0, 0.0).0);
        let delay_s = mean(&|d| poll_loop(d, 20.0, AfterInterval, 0.0, 0.0).1 - d);
        let expected = polls_mean_fixed_interval(600.0, 20.0, AfterInterval);
        assert_close(polls, expected, 1e-3);
        assert_close(delay_s, completion_delay_mean_fixed_interval(20.0), 1e-3);
        // 1000.8 s is 185.3 cycles of 5.4 s: near enough to whole ones.
        let delay_s = mean(&|d| poll_loop(d, 5.0, AfterInterval, 0.4, 0.5).1 - d);
        assert_close(
            delay_s,
            completion_delay_mean_serial_loop(5.0, 0.4, 0.5),
            5e-3,
        );
    }

    #[test]
    fn exponential_matches_reference_values() {
        for (interval_s, polls, delay_s) in [
            (1.0, 60.5013888824589, 0.5013888824588975),
            (10.0, 6.5138824630974606, 5.138824630974611),
            (60.0, 1.5819767068693265, 34.918602412159586),
            (300.0, 1.0067836549063043, 242.03509647189128),
        ] {
            assert_close(
                polls_mean_exponential(60.0, interval_s, AfterInterval),
                polls,
                1e-13,
            );
            assert_close(
                polls_mean_exponential(60.0, interval_s, Immediate),
                polls + 1.0,
                1e-13,
            );
            assert_close(
                completion_delay_mean_exponential(60.0, interval_s),
                delay_s,
                1e-12,
            );
        }
    }

    #[test]
    fn exponential_delay_joins_its_series() {
        for ratio in [1e-9, 1e-4, 0.00999, 0.01, 0.011] {
            let direct = -ratio / libm::expm1(-ratio) - 1.0;
            let tolerance = 1e-15 / ratio + 1e-13;
            assert_close(
                completion_delay_mean_exponential(1.0, ratio),
                direct,
                tolerance,
            );
        }
        assert_close(completion_delay_mean_exponential(1.0, 1e-9), 0.5e-9, 1e-9);
    }

    #[test]
    fn exponential_matches_random_tasks() {
        let mut random = Random(3);
        let (mut polls, mut delay_s) = (0.0, 0.0);
        for _ in 0..100_000 {
            let duration_s = -60.0 * libm::log(random.uniform(0.0, 1.0));
            let (task_polls, seen_s) = poll_loop(duration_s, 60.0, AfterInterval, 0.0, 0.0);
            polls += task_polls / 1e5;
            delay_s += (seen_s - duration_s) / 1e5;
        }
        assert_close(
            polls,
            polls_mean_exponential(60.0, 60.0, AfterInterval),
            0.01,
        );
        assert_close(delay_s, completion_delay_mean_exponential(60.0, 60.0), 0.01);
    }

    #[test]
    fn rates_match_reference_values() {
        let duration_mean_s = 30.0 * libm::exp(0.5);
        let rate = aggregate_rate_open(2.0, duration_mean_s, 5.0, AfterInterval);
        assert_close(rate, 20.78465524840154, 1e-13);
        assert_eq!(aggregate_rate_closed(8000.0, 10.0), 800.0);
        assert_close(serial_loop_rate_per_s(1.0, 0.25), 0.8, 1e-15);
        assert_eq!(1.0 / serial_loop_rate_per_s(0.0, 0.004), 0.004);
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(polls_fixed_interval(bad, 1.0, AfterInterval).is_nan());
            assert!(polls_fixed_interval(1.0, bad, AfterInterval).is_nan());
            assert!(polls_mean_fixed_interval(bad, 1.0, AfterInterval).is_nan());
            assert!(completion_delay_fixed_interval(1.0, bad).is_nan());
            assert!(completion_delay_quantile_fixed_interval(bad, 1.0).is_nan());
            assert!(completion_delay_mean_fixed_interval(bad).is_nan());
            assert!(polls_mean_exponential(bad, 1.0, AfterInterval).is_nan());
            assert!(completion_delay_mean_exponential(1.0, bad).is_nan());
            assert!(aggregate_rate_open(bad, 1.0, 1.0, AfterInterval).is_nan());
            assert!(aggregate_rate_open(1.0, bad, 1.0, AfterInterval).is_nan());
            assert!(aggregate_rate_open(1.0, 1.0, bad, AfterInterval).is_nan());
            assert!(aggregate_rate_closed(bad, 1.0).is_nan());
            assert!(serial_loop_rate_per_s(bad, 2.0).is_nan());
            assert!(completion_delay_mean_serial_loop(1.0, 1.0, bad).is_nan());
        }
        assert!(serial_loop_rate_per_s(0.0, 0.0).is_nan());
    }
}
