//! Tasks met in the middle of their run: how long they still run, and how long they are in all.
//!
//! A task that runs at an arbitrary moment is longer than others, because long tasks run at more
//! moments. An abort by a user who does not know how the task goes meets it in this way.

use super::range::{is_non_negative, is_positive};
use super::renewal::residual_mean;

/// Mean (s) and second moment (s²) of a constant: m and m².
///
/// * Range: `value_s` ≥ 0; a pair of NaN otherwise, and if the square overflows.
/// * Holds always.
/// * Source: definition.
///
/// ```
/// use pollpace::theory::constant_moments;
/// assert_eq!(constant_moments(30.0), (30.0, 900.0));
/// ```
pub fn constant_moments(value_s: f64) -> (f64, f64) {
    in_range_moments(is_non_negative(value_s), value_s, value_s * value_s)
}

/// Mean (s) and second moment (s²) of an exponential distribution: m and 2m².
///
/// * Range: `mean_s` ≥ 0; a pair of NaN otherwise, and if the square overflows.
/// * Holds always.
/// * Source: Johnson, Kotz & Balakrishnan, *Continuous Univariate Distributions*, volume 1.
///
/// ```
/// use pollpace::theory::exponential_moments;
/// assert_eq!(exponential_moments(30.0), (30.0, 1800.0));
/// ```
pub fn exponential_moments(mean_s: f64) -> (f64, f64) {
    in_range_moments(is_non_negative(mean_s), mean_s, 2.0 * mean_s * mean_s)
}

/// Mean (s) and second moment (s²) of a lognormal distribution: e^(μ + σ²/2) and e^(2μ + 2σ²).
///
/// * Range: `log_mean` is μ, the mean of the logarithm of a value in seconds (the logarithm of the
///   median); `log_sd` is σ ≥ 0, without unit. A pair of NaN otherwise, and if the second moment
///   overflows: at a median of 1 s that is for σ above about 18.
/// * Holds always.
/// * Source: as for [`exponential_moments`].
///
/// ```
/// use pollpace::theory::lognormal_moments;
/// let (mean_s, second_moment_s2) = lognormal_moments(30_f64.ln(), 1.0);
/// assert!((mean_s - 49.461_638).abs() < 1e-6);
/// assert!((second_moment_s2 - 6650.150_489).abs() < 1e-6);
/// ```
pub fn lognormal_moments(log_mean: f64, log_sd: f64) -> (f64, f64) {
    let variance = log_sd * log_sd;
    in_range_moments(
        log_mean.is_finite() && is_non_negative(log_sd),
        libm::exp(log_mean + variance / 2.0),
        libm::exp(2.0 * log_mean + 2.0 * variance),
    )
}

/// Mean time that a task which runs at an arbitrary moment still has to run: E\[D²\]/(2E\[D\]).
///
/// Half the duration if all are equal, a whole mean duration if they are exponential, and more than
/// that if they vary more. It has run for as long already, on average.
///
/// * Range: `duration_mean_s` > 0 (s), `duration_second_moment_s2` ≥ 0 (s²); NaN otherwise.
/// * Holds in the steady state, for a moment that does not depend on the tasks, such as one of
///   aborts that come at a rate to whatever runs; times that rate it is the mean of
///   [`leaked_loops_mean`](super::leaked_loops_mean). If instead every task is as likely to be
///   aborted, at a moment uniform within its own run, the mean rest is E\[D\]/2.
/// * Source: the inspection paradox, as in [`residual_mean`]. Arrivals need not be Poisson.
///
/// ```
/// use pollpace::theory::{exponential_moments, remaining_mean_running_task};
/// let (mean_s, second_moment_s2) = exponential_moments(300.0);
/// assert_eq!(remaining_mean_running_task(mean_s, second_moment_s2), 300.0);
/// assert_eq!(remaining_mean_running_task(300.0, 90_000.0), 150.0);
/// ```
pub fn remaining_mean_running_task(duration_mean_s: f64, duration_second_moment_s2: f64) -> f64 {
    residual_mean(duration_mean_s, duration_second_moment_s2)
}

/// Mean duration, from start to end, of a task that runs at an arbitrary moment: E\[D²\]/E\[D\].
///
/// * Range: `duration_mean_s` > 0 (s), `duration_second_moment_s2` ≥ 0 (s²); NaN otherwise.
/// * Holds under the conditions of [`remaining_mean_running_task`].
/// * Source: a task is met with a chance proportional to its duration.
///
/// ```
/// use pollpace::theory::{duration_mean_running_task, exponential_moments};
/// let (mean_s, second_moment_s2) = exponential_moments(300.0);
/// assert_eq!(duration_mean_running_task(mean_s, second_moment_s2), 600.0);
/// ```
pub fn duration_mean_running_task(duration_mean_s: f64, duration_second_moment_s2: f64) -> f64 {
    if is_positive(duration_mean_s) && is_non_negative(duration_second_moment_s2) {
        duration_second_moment_s2 / duration_mean_s
    } else {
        f64::NAN
    }
}

fn in_range_moments(in_range: bool, mean_s: f64, second_moment_s2: f64) -> (f64, f64) {
    if in_range && second_moment_s2.is_finite() {
        (mean_s, second_moment_s2)
    } else {
        (f64::NAN, f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::super::uniform_moments;
    use super::*;
    use crate::random::{Key, Purpose, unit};

    const TASKS: u64 = 200_000;

    fn uniform(purpose: Purpose, index: u64) -> f64 {
        unit(Key(18).draw(purpose, index))
    }

    fn exponential(task: u64) -> f64 {
        -30.0 * libm::log(uniform(Purpose::Duration, task))
    }

    /// Median 30 s, σ = 0.5; normal draws by Box and Muller.
    fn lognormal(task: u64) -> f64 {
        let radius = (-2.0 * libm::log(uniform(Purpose::Duration, 2 * task))).sqrt();
        let angle = std::f64::consts::TAU * uniform(Purpose::Duration, 2 * task + 1);
        30.0 * libm::exp(0.5 * radius * libm::cos(angle))
    }

    /// Tasks that start 1 s apart, or at random, looked at every 10 s from outside: the mean
    /// remaining time and the mean duration of all that are found running.
    fn inspect(random_starts: bool, duration_s: impl Fn(u64) -> f64) -> (f64, f64) {
        let (mut start_s, mut found, mut remaining_s, mut total_s) = (0.0, 0.0, 0.0, 0.0);
        for task in 0..TASKS {
            start_s += if random_starts {
                -libm::log(uniform(Purpose::Arrival, task))
            } else {
                1.0
            };
            let end_s = start_s + duration_s(task);
            // Not at whole seconds, where tasks may start.
            let mut look_s = (start_s / 10.0).ceil() * 10.0 + 0.37;
            while look_s < end_s {
                found += 1.0;
                remaining_s += end_s - look_s;
                total_s += end_s - start_s;
                look_s += 10.0;
            }
        }
        (remaining_s / found, total_s / found)
    }

    #[test]
    fn running_tasks_match_a_look_from_outside() {
        type Draw = fn(u64) -> f64;
        let cases: [(Draw, (f64, f64)); 4] = [
            (|_| 30.0, constant_moments(30.0)),
            (exponential, exponential_moments(30.0)),
            (lognormal, lognormal_moments(libm::log(30.0), 0.5)),
            (
                |task| 50.0 * uniform(Purpose::Duration, task),
                uniform_moments(0.0, 50.0),
            ),
        ];
        for (draw, (mean_s, second_moment_s2)) in cases {
            for random_starts in [false, true] {
                let (remaining_s, total_s) = inspect(random_starts, draw);
                let expected_s = remaining_mean_running_task(mean_s, second_moment_s2);
                assert_close(remaining_s, expected_s, 0.02);
                let expected_s = duration_mean_running_task(mean_s, second_moment_s2);
                assert_close(total_s, expected_s, 0.02);
            }
        }
    }

    #[test]
    fn a_moment_within_every_task_is_another_question() {
        let sum_s: f64 = (0..TASKS)
            .map(|task| exponential(task) * (1.0 - uniform(Purpose::AbortTime, task)))
            .sum();
        assert_close(sum_s / TASKS as f64, 15.0, 0.01);
    }

    #[test]
    fn moments_match_random_draws() {
        for (draw, (mean_s, second_moment_s2)) in [
            (exponential as fn(u64) -> f64, exponential_moments(30.0)),
            (lognormal, lognormal_moments(libm::log(30.0), 0.5)),
        ] {
            let (mut sum_s, mut sum_s2) = (0.0, 0.0);
            for task in 0..TASKS {
                let duration_s = draw(task);
                sum_s += duration_s;
                sum_s2 += duration_s * duration_s;
            }
            assert_close(sum_s / TASKS as f64, mean_s, 0.01);
            assert_close(sum_s2 / TASKS as f64, second_moment_s2, 0.02);
        }
    }

    #[test]
    fn matches_reference_values() {
        let (mean_s, second_moment_s2) = lognormal_moments(libm::log(30.0), 1.0);
        // 15 e^1.5
        let remaining_s = remaining_mean_running_task(mean_s, second_moment_s2);
        assert_close(remaining_s, 67.225_336_055_071, 1e-12);
        assert_eq!(lognormal_moments(0.0, 0.0), (1.0, 1.0));
        assert_eq!(constant_moments(0.0), (0.0, 0.0));
        assert_eq!(duration_mean_running_task(30.0, 900.0), 30.0);
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(constant_moments(bad).0.is_nan());
            assert!(exponential_moments(bad).1.is_nan());
            assert!(lognormal_moments(0.0, bad).0.is_nan());
            assert!(remaining_mean_running_task(bad, 1.0).is_nan());
            assert!(duration_mean_running_task(1.0, bad).is_nan());
        }
        assert!(lognormal_moments(f64::NAN, 1.0).0.is_nan());
        assert!(constant_moments(1e200).0.is_nan());
        assert!(lognormal_moments(0.0, 19.0).0.is_nan());
        assert!(lognormal_moments(0.0, 18.0).0.is_finite());
        assert!(duration_mean_running_task(0.0, 0.0).is_nan());
    }
}
