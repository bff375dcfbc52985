//! Growing intervals: polls and delay of a geometric backoff with a ceiling.
//!
//! Interval k is min(a gᵏ⁻¹, C) for a first interval a, a factor g and a ceiling C, the first poll
//! is sent after the first interval, and nothing resets the schedule. The round trip is zero.

use super::range::{is_non_negative, is_positive};
use super::rounding::intervals_to_cover;

/// Polls that one task of known duration takes under geometric backoff, the one that sees the end
/// included.
///
/// ⌈log_g(1 + D(g - 1)/a)⌉ before the ceiling is reached, and one more per C of time after that.
///
/// * Range: `duration_s` ≥ 0, `first_interval_s` > 0, `factor` ≥ 1, `ceiling_s` > 0 (infinite for
///   no ceiling); NaN otherwise. At least 1. Add 1 for a schedule that also polls at the start.
/// * Holds for a zero round trip and no reset.
/// * Source: n intervals sum to a(gⁿ - 1)/(g - 1).
///
/// ```
/// use pollpace::theory::polls_geometric_backoff;
/// assert_eq!(polls_geometric_backoff(1000.0, 1.0, 2.0, f64::INFINITY), 10.0);
/// // 15, 45, 105, 225, 345, 465, 585 s
/// assert_eq!(polls_geometric_backoff(500.0, 15.0, 2.0, 120.0), 7.0);
/// ```
pub fn polls_geometric_backoff(
    duration_s: f64,
    first_interval_s: f64,
    factor: f64,
    ceiling_s: f64,
) -> f64 {
    if is_non_negative(duration_s) {
        Schedule::new(first_interval_s, factor, ceiling_s)
            .map_or(f64::NAN, |schedule| schedule.polls_to_cover(duration_s))
    } else {
        f64::NAN
    }
}

/// Time from the end of one task of known duration to the poll that sees it, under geometric
/// backoff.
///
/// Never more than (g - 1)D + a, nor than C.
///
/// * Range: `duration_s` ≥ 0, `first_interval_s` > 0, `factor` ≥ 1, `ceiling_s` > 0 (infinite for
///   no ceiling); NaN otherwise. A factor above 1 by very little costs digits, about
///   10⁻¹⁶/(g - 1) of them in relative terms.
/// * Holds for a zero round trip and no reset.
/// * Source: send time of the poll counted by [`polls_geometric_backoff`], less D.
///
/// ```
/// use pollpace::theory::completion_delay_geometric_backoff;
/// assert_eq!(completion_delay_geometric_backoff(250.0, 15.0, 2.0, 120.0), 95.0);
/// ```
pub fn completion_delay_geometric_backoff(
    duration_s: f64,
    first_interval_s: f64,
    factor: f64,
    ceiling_s: f64,
) -> f64 {
    if is_non_negative(duration_s) {
        Schedule::new(first_interval_s, factor, ceiling_s).map_or(f64::NAN, |schedule| {
            let seen_s = schedule.send_time_s(schedule.polls_to_cover(duration_s));
            (seen_s - duration_s).max(0.0)
        })
    } else {
        f64::NAN
    }
}

/// Latest time from the start of a task at which geometric backoff sees its end: gD + a.
///
/// So doubling is within twice the duration and a first interval: it is 2-competitive.
///
/// * Range: `duration_s` ≥ 0, `first_interval_s` > 0, `factor` ≥ 1; NaN otherwise.
/// * Holds with or without a ceiling (which only makes detection earlier), for a zero round trip.
/// * Source: the last poll before the end was sent before D, and tₙ = g tₙ₋₁ + a.
///
/// ```
/// use pollpace::theory::detection_bound_geometric_backoff;
/// assert_eq!(detection_bound_geometric_backoff(1000.0, 1.0, 2.0), 2001.0);
/// ```
pub fn detection_bound_geometric_backoff(
    duration_s: f64,
    first_interval_s: f64,
    factor: f64,
) -> f64 {
    if is_non_negative(duration_s) && is_positive(first_interval_s) && is_factor(factor) {
        factor * duration_s + first_interval_s
    } else {
        f64::NAN
    }
}

/// Mean ratio of detection time to duration under geometric backoff: (g - 1)/ln g.
///
/// * Range: `factor` ≥ 1, without unit as is the result; NaN otherwise. 1 for a factor of 1.
/// * Holds for durations that are log-uniform over whole powers of g (or over many of them) and long
///   against the first interval, without a ceiling.
/// * Source: ln D is uniform within its step of ln g, so the ratio is gᵁ with U uniform on (0, 1).
///
/// ```
/// use pollpace::theory::detection_ratio_log_uniform;
/// assert!((detection_ratio_log_uniform(2.0) - 1.442_695).abs() < 1e-6);
/// ```
pub fn detection_ratio_log_uniform(factor: f64) -> f64 {
    if !is_factor(factor) {
        f64::NAN
    } else if factor == 1.0 {
        1.0
    } else {
        (factor - 1.0) / libm::log(factor)
    }
}

/// Send times in seconds from the start of a task, up to and including the first that is not before
/// `until_s`.
///
/// The intervals are min(x, C) for x = a, ga + b, g(ga + b) + b, ...: geometric for an increment b
/// of 0, additive for a factor of 1.
///
/// * Range: see the panics. `ceiling_s` may be infinite. There is always at least one time; their
///   number, and so the memory, grows as `until_s` over the ceiling.
/// * Holds for a zero round trip and no reset.
/// * Source: the recursion itself, summed without a closed form.
///
/// # Panics
///
/// Unless `first_interval_s` > 0, `factor` ≥ 1, `increment_s` ≥ 0, `ceiling_s` > 0 and `until_s` is
/// finite.
///
/// ```
/// use pollpace::theory::backoff_send_times;
/// let times = backoff_send_times(15.0, 2.0, 0.0, 120.0, 250.0);
/// assert_eq!(times, [15.0, 45.0, 105.0, 225.0, 345.0]);
/// ```
pub fn backoff_send_times(
    first_interval_s: f64,
    factor: f64,
    increment_s: f64,
    ceiling_s: f64,
    until_s: f64,
) -> Vec<f64> {
    assert!(first_interval_s > 0.0, "first_interval_s must be positive");
    assert!(factor >= 1.0, "factor must be at least 1");
    assert!(increment_s >= 0.0, "increment_s must not be negative");
    assert!(ceiling_s > 0.0, "ceiling_s must be positive");
    assert!(until_s.is_finite(), "until_s must be finite");
    let mut interval_s = first_interval_s;
    let mut time_s = 0.0;
    let mut times_s = Vec::new();
    loop {
        time_s += interval_s.min(ceiling_s);
        times_s.push(time_s);
        if time_s >= until_s {
            return times_s;
        }
        interval_s = interval_s * factor + increment_s;
    }
}

fn is_factor(factor: f64) -> bool {
    factor >= 1.0 && factor.is_finite()
}

/// A geometric backoff as a ramp of growing intervals followed by constant ones.
pub(super) struct Schedule {
    first_interval_s: f64,
    factor: f64,
    ceiling_s: f64,
    /// Intervals shorter than the ceiling; infinite if all are.
    ramp_polls: f64,
}

impl Schedule {
    /// None for arguments out of range.
    pub(super) fn new(first_interval_s: f64, factor: f64, ceiling_s: f64) -> Option<Schedule> {
        if !(is_positive(first_interval_s) && is_factor(factor) && ceiling_s > 0.0) {
            return None;
        }
        let ramp_polls = if ceiling_s <= first_interval_s {
            0.0
        } else if factor == 1.0 {
            f64::INFINITY
        } else {
            intervals_to_cover(libm::log(ceiling_s / first_interval_s) / libm::log(factor))
        };
        Some(Schedule {
            first_interval_s,
            factor,
            ceiling_s,
            ramp_polls,
        })
    }

    fn polls_to_cover(&self, duration_s: f64) -> f64 {
        let firsts = duration_s / self.first_interval_s;
        let growth = self.factor - 1.0;
        let polls = if growth == 0.0 {
            intervals_to_cover(firsts)
        } else {
            intervals_to_cover(libm::log1p(firsts * growth) / libm::log1p(growth))
        };
        // Counted without the ceiling first: a duration that ends with the ramp is rounded there.
        let polls = if polls <= self.ramp_polls {
            polls
        } else {
            let rest_s = duration_s - self.send_time_s(self.ramp_polls);
            self.ramp_polls + intervals_to_cover(rest_s / self.ceiling_s)
        };
        polls.max(1.0)
    }

    /// Sum of that many intervals.
    pub(super) fn send_time_s(&self, polls: f64) -> f64 {
        let growth = self.factor - 1.0;
        let ramp = polls.min(self.ramp_polls);
        let ramp_firsts = if growth == 0.0 {
            ramp
        } else {
            (libm::pow(self.factor, ramp) - 1.0) / growth
        };
        let ramp_s = self.first_interval_s * ramp_firsts;
        if polls > ramp {
            ramp_s + (polls - ramp) * self.ceiling_s
        } else {
            // Apart, because an infinite ceiling would give 0 * inf.
            ramp_s
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;

    const NO_CEILING: f64 = f64::INFINITY;

    #[test]
    fn uncapped_matches_reference_values() {
        for (duration_s, first_interval_s, factor, polls, seen_s) in [
            (1000.0, 1.0, 2.0, 10.0, 1023.0),
            (3600.0, 5.0, 1.5, 15.0, 4368.938903808594),
            (7.0, 0.02, 2.0, 9.0, 10.22),
            (86_400.0, 0.5, 2.0, 18.0, 131_071.5),
        ] {
            let closed = polls_geometric_backoff(duration_s, first_interval_s, factor, NO_CEILING);
            assert_eq!(closed, polls);
            let delay_s = completion_delay_geometric_backoff(
                duration_s,
                first_interval_s,
                factor,
                NO_CEILING,
            );
            assert_close(duration_s + delay_s, seen_s, 1e-13);
        }
    }

    #[test]
    fn capped_matches_reference_values() {
        for (duration_s, polls, delay_s) in
            [(100.0, 3.0, 5.0), (250.0, 5.0, 95.0), (500.0, 7.0, 85.0)]
        {
            assert_eq!(polls_geometric_backoff(duration_s, 15.0, 2.0, 120.0), polls);
            assert_eq!(
                completion_delay_geometric_backoff(duration_s, 15.0, 2.0, 120.0),
                delay_s
            );
        }
        assert_eq!(polls_geometric_backoff(120.0, 5.0, 1.5, 45.0), 7.0);
        assert_eq!(
            completion_delay_geometric_backoff(120.0, 5.0, 1.5, 45.0),
            28.90625
        );
    }

    #[test]
    fn send_times_match_reference_values() {
        let times_s = backoff_send_times(5.0, 1.5, 0.0, 45.0, 300.0);
        let expected_s = [
            5.0, 12.5, 23.75, 40.625, 65.9375, 103.90625, 148.90625, 193.90625, 238.90625,
            283.90625, 328.90625,
        ];
        assert_eq!(times_s, expected_s);
        let times_s = backoff_send_times(2.0, 1.0, 3.0, 10.0, 40.0);
        assert_eq!(times_s, [2.0, 7.0, 15.0, 25.0, 35.0, 45.0]);
        assert_eq!(backoff_send_times(2.0, 1.0, 0.0, NO_CEILING, -1.0), [2.0]);
    }

    #[test]
    fn closed_form_matches_send_times() {
        for first_interval_s in [0.02, 0.5, 1.0, 15.0] {
            for factor in [1.0, 1.1, 1.5, 2.0, 3.0] {
                for ceiling_s in [0.01, 0.5, 7.0, 120.0, NO_CEILING] {
                    check_against_send_times(first_interval_s, factor, ceiling_s);
                }
            }
        }
    }

    /// Durations at, just before and just after each send time, and half-way between.
    fn check_against_send_times(first_interval_s: f64, factor: f64, ceiling_s: f64) {
        let until_s = 40.0 * first_interval_s.min(ceiling_s);
        let times_s = backoff_send_times(first_interval_s, factor, 0.0, ceiling_s, until_s);
        let mut last_s = 0.0;
        for (index, &time_s) in times_s.iter().enumerate() {
            let polls = (index + 1) as f64;
            let gap_s = time_s - last_s;
            for duration_s in [
                time_s,
                time_s - 1e-6 * gap_s,
                last_s + 1e-6 * gap_s,
                last_s + gap_s / 2.0,
            ] {
                let closed =
                    polls_geometric_backoff(duration_s, first_interval_s, factor, ceiling_s);
                assert_eq!(
                    closed, polls,
                    "{duration_s} {first_interval_s} {factor} {ceiling_s}"
                );
                let delay_s = completion_delay_geometric_backoff(
                    duration_s,
                    first_interval_s,
                    factor,
                    ceiling_s,
                );
                assert!((delay_s - (time_s - duration_s)).abs() <= 1e-12 * time_s);
                let bound_s =
                    detection_bound_geometric_backoff(duration_s, first_interval_s, factor);
                assert!(time_s <= bound_s * (1.0 + 1e-12));
            }
            last_s = time_s;
        }
    }

    #[test]
    fn ratio_matches_reference_values_and_an_even_grid() {
        for (factor, ratio) in [
            (1.5, 1.2331517311882159),
            (2.0, std::f64::consts::LOG2_E),
            (3.0, 1.8204784532536746),
        ] {
            assert_close(detection_ratio_log_uniform(factor), ratio, 1e-14);
            let draws = 4000;
            let sum: f64 = (0..draws)
                .map(|k| (f64::from(k) + 0.5) / f64::from(draws) * 4.0)
                .map(|steps| 1e6 * libm::pow(factor, steps))
                .map(|duration_s| {
                    let delay_s =
                        completion_delay_geometric_backoff(duration_s, 1.0, factor, NO_CEILING);
                    (duration_s + delay_s) / duration_s
                })
                .sum();
            assert_close(sum / f64::from(draws), ratio, 1e-3);
        }
        assert_eq!(detection_ratio_log_uniform(1.0), 1.0);
    }

    #[test]
    fn a_task_over_at_once_takes_one_poll() {
        assert_eq!(polls_geometric_backoff(0.0, 5.0, 2.0, NO_CEILING), 1.0);
        assert_eq!(
            completion_delay_geometric_backoff(0.0, 5.0, 2.0, NO_CEILING),
            5.0
        );
        assert_eq!(completion_delay_geometric_backoff(0.0, 5.0, 2.0, 3.0), 3.0);
    }

    #[test]
    fn out_of_range_is_nan() {
        assert!(polls_geometric_backoff(-1.0, 1.0, 2.0, 9.0).is_nan());
        assert!(polls_geometric_backoff(1.0, 0.0, 2.0, 9.0).is_nan());
        assert!(polls_geometric_backoff(1.0, 1.0, 0.9, 9.0).is_nan());
        assert!(polls_geometric_backoff(1.0, 1.0, 2.0, f64::NAN).is_nan());
        assert!(completion_delay_geometric_backoff(f64::NAN, 1.0, 2.0, 9.0).is_nan());
        assert!(detection_bound_geometric_backoff(1.0, 1.0, 0.5).is_nan());
        assert!(detection_ratio_log_uniform(0.5).is_nan());
    }

    #[test]
    #[should_panic(expected = "factor must be at least 1")]
    fn send_times_refuse_a_shrinking_schedule() {
        backoff_send_times(1.0, 0.5, 0.0, 9.0, 9.0);
    }
}
