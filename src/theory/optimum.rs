//! Which interval to choose: the cheapest, and the range that keeps both a load and a delay.

use super::fixed_interval::{FirstPoll, polls_mean_fixed_interval};
use super::range::{is_fraction, is_non_negative, is_positive};

/// Mean cost of one task at a fixed interval: c(E\[D\]/T + 1/2) + dT/2 for a cost c per poll and a
/// cost d per second of delay.
///
/// * Range: `interval_s` > 0, `duration_mean_s` ≥ 0, `cost_per_poll` ≥ 0, `cost_per_delay_s` ≥ 0 (per
///   second, in the currency of the other); NaN otherwise. The result is in that currency.
/// * Holds under the condition of [`polls_mean_fixed_interval`], with the first poll after an
///   interval.
/// * Source: [`polls_mean_fixed_interval`], and
///   [`completion_delay_mean_fixed_interval`](super::completion_delay_mean_fixed_interval).
///
/// ```
/// use pollpace::theory::cost_mean_fixed_interval;
/// assert_eq!(cost_mean_fixed_interval(20.0, 600.0, 1.0, 0.5), 35.5);
/// ```
pub fn cost_mean_fixed_interval(
    interval_s: f64,
    duration_mean_s: f64,
    cost_per_poll: f64,
    cost_per_delay_s: f64,
) -> f64 {
    if is_non_negative(cost_per_poll) && is_non_negative(cost_per_delay_s) {
        let polls =
            polls_mean_fixed_interval(duration_mean_s, interval_s, FirstPoll::AfterInterval);
        cost_per_poll * polls + cost_per_delay_s * interval_s / 2.0
    } else {
        f64::NAN
    }
}

/// Interval at which polls and delay together cost least: √(2cE\[D\]/d).
///
/// There the polls cost as much as the delay, not counting half a poll per task that any interval
/// costs. The optimum is flat: an interval longer by a quarter costs 2.5 % more, and one of twice
/// or half the length 25 %.
///
/// * Range: `duration_mean_s` ≥ 0, `cost_per_poll` ≥ 0, `cost_per_delay_s` > 0 (per second, in the
///   currency of the other); NaN otherwise.
/// * Holds if the result is short against the durations; the minimum is that of
///   [`cost_mean_fixed_interval`]. For exponential durations the best interval is shorter: at a
///   result of 0.6 mean durations by a tenth, but the result costs hardly more.
/// * Source: the square-root law of the economic order quantity (Harris 1913). c E\[D\]/T falls and
///   dT/2 rises; their sum is least where they are equal.
///
/// ```
/// use pollpace::theory::best_interval;
/// assert_eq!(best_interval(600.0, 1.0, 3.0), 20.0);
/// ```
pub fn best_interval(duration_mean_s: f64, cost_per_poll: f64, cost_per_delay_s: f64) -> f64 {
    if is_non_negative(duration_mean_s)
        && is_non_negative(cost_per_poll)
        && is_positive(cost_per_delay_s)
    {
        (2.0 * cost_per_poll * duration_mean_s / cost_per_delay_s).sqrt()
    } else {
        f64::NAN
    }
}

/// Shortest and longest interval that keep both a limit on the load and a limit on a quantile of the
/// delay: N/R and limit/p.
///
/// An empty range, the first above the second, means that both limits cannot be kept by polling at
/// a fixed interval: the server needs more capacity, or the end must be pushed.
///
/// * Range: `tasks` ≥ 0 (a mean number is allowed), `capacity_rate_per_s` > 0 (polls), `p` in (0, 1\],
///   `delay_limit_s` ≥ 0 (for the quantile p); a pair of NaN otherwise.
/// * Holds for a fixed number of tasks, a zero round trip and no wait at the server. So leave room:
///   at the floor the server is used to its full capacity. As a floor and a ceiling around hints
///   the pair keeps both limits whatever the hints are.
/// * Source: [`aggregate_rate_closed`](super::aggregate_rate_closed) and
///   [`completion_delay_quantile_fixed_interval`](super::completion_delay_quantile_fixed_interval)
///   solved for the interval.
///
/// ```
/// use pollpace::theory::feasible_intervals;
/// let (floor_s, ceiling_s) = feasible_intervals(300.0, 50.0, 0.95, 19.0);
/// assert_eq!((floor_s, ceiling_s), (6.0, 20.0));
/// ```
pub fn feasible_intervals(
    tasks: f64,
    capacity_rate_per_s: f64,
    p: f64,
    delay_limit_s: f64,
) -> (f64, f64) {
    if is_non_negative(tasks)
        && is_positive(capacity_rate_per_s)
        && is_fraction(p)
        && is_positive(p)
        && is_non_negative(delay_limit_s)
    {
        (tasks / capacity_rate_per_s, delay_limit_s / p)
    } else {
        (f64::NAN, f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::super::{completion_delay_mean_exponential, polls_mean_exponential};
    use super::*;
    use crate::random::{Key, Purpose, unit};

    #[test]
    fn matches_reference_values() {
        assert_close(
            best_interval(600.0, 1.0, 0.01),
            346.410_161_513_775_4,
            1e-14,
        );
        assert_eq!(best_interval(600.0, 0.0, 1.0), 0.0);
        let best_s = best_interval(600.0, 1.0, 3.0);
        assert_eq!(
            cost_mean_fixed_interval(best_s, 600.0, 1.0, 3.0),
            30.0 + 30.0 + 0.5
        );
        let (floor_s, ceiling_s) = feasible_intervals(2000.0, 50.0, 0.95, 28.5);
        assert_close(ceiling_s, 30.0, 1e-15);
        assert!(floor_s > ceiling_s, "more capacity is needed");
    }

    #[test]
    fn the_best_interval_costs_least_in_a_loop() {
        let (cost_per_poll, cost_per_delay_s) = (1.0, 1.2);
        let best_s = best_interval(6000.0, cost_per_poll, cost_per_delay_s);
        assert_close(best_s, 100.0, 1e-15);
        let tasks = 10_000;
        let cost = |interval_s: f64| {
            let sum: f64 = (0..tasks)
                .map(|task| {
                    let duration_s = 3000.0 + 6000.0 * unit(Key(17).draw(Purpose::Duration, task));
                    let (mut time_s, mut polls) = (0.0, 0.0);
                    while time_s < duration_s {
                        time_s += interval_s;
                        polls += 1.0;
                    }
                    cost_per_poll * polls + cost_per_delay_s * (time_s - duration_s)
                })
                .sum();
            sum / tasks as f64
        };
        let least = cost(best_s);
        for (factor, more) in [(0.5, 1.25), (0.8, 1.025), (1.25, 1.025), (2.0, 1.25)] {
            let interval_s = factor * best_s;
            let found = cost(interval_s);
            let closed =
                cost_mean_fixed_interval(interval_s, 6000.0, cost_per_poll, cost_per_delay_s);
            assert_close(found, closed, 0.01);
            // Half a poll, on average, is paid at any interval.
            assert_close((found - 0.5) / (least - 0.5), more, 0.01);
        }
    }

    #[test]
    fn exponential_durations_want_a_little_less() {
        let cost = |interval_s: f64| {
            polls_mean_exponential(600.0, interval_s, FirstPoll::AfterInterval)
                + 0.01 * completion_delay_mean_exponential(600.0, interval_s)
        };
        let exact_s = (1..10_000)
            .map(|tenths| f64::from(tenths) / 10.0)
            .min_by(|&one, &other| cost(one).total_cmp(&cost(other)))
            .unwrap();
        let best_s = best_interval(600.0, 1.0, 0.01);
        assert!((0.55..0.6).contains(&(best_s / 600.0)));
        assert!((0.89..0.93).contains(&(exact_s / best_s)));
        assert!((1.0..1.005).contains(&(cost(best_s) / cost(exact_s))));
    }

    #[test]
    fn feasible_intervals_keep_both_limits_and_others_do_not() {
        let (tasks, capacity_rate_per_s, delay_limit_s) = (300, 50.0, 19.0);
        let (floor_s, ceiling_s) =
            feasible_intervals(tasks as f64, capacity_rate_per_s, 0.95, delay_limit_s);
        for (interval_s, load_kept, delay_kept) in [
            (0.95 * floor_s, false, true),
            (1.05 * floor_s, true, true),
            (0.97 * ceiling_s, true, true),
            (1.03 * ceiling_s, true, false),
        ] {
            let key = Key::new(17, 1);
            // Whole intervals, polls at a phase and every interval from there.
            let until_s = 100.0 * interval_s;
            let polls: usize = (0..tasks)
                .map(|task| {
                    let first_s = interval_s * unit(key.draw(Purpose::Phase, task));
                    ((until_s - first_s) / interval_s).ceil() as usize
                })
                .sum();
            assert_eq!(polls as f64 / until_s <= capacity_rate_per_s, load_kept);
            let within = (0..20_000)
                .filter(|&task| {
                    let duration_s = 2000.0 * unit(key.draw(Purpose::Duration, task));
                    let seen_s = (duration_s / interval_s).ceil() * interval_s;
                    seen_s - duration_s <= delay_limit_s
                })
                .count();
            assert_eq!(within as f64 / 20_000.0 >= 0.95, delay_kept, "{interval_s}");
        }
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(cost_mean_fixed_interval(bad, 1.0, 1.0, 1.0).is_nan());
            assert!(cost_mean_fixed_interval(1.0, bad, 1.0, 1.0).is_nan());
            assert!(cost_mean_fixed_interval(1.0, 1.0, 1.0, bad).is_nan());
            assert!(best_interval(bad, 1.0, 1.0).is_nan());
            assert!(best_interval(1.0, bad, 1.0).is_nan());
            assert!(best_interval(1.0, 1.0, bad).is_nan());
            assert!(feasible_intervals(bad, 1.0, 0.5, 1.0).0.is_nan());
            assert!(feasible_intervals(1.0, bad, 0.5, 1.0).1.is_nan());
            assert!(feasible_intervals(1.0, 1.0, bad, 1.0).0.is_nan());
            assert!(feasible_intervals(1.0, 1.0, 0.5, bad).1.is_nan());
        }
        assert!(best_interval(1.0, 1.0, 0.0).is_nan());
        assert!(feasible_intervals(1.0, 1.0, 0.0, 1.0).0.is_nan());
    }
}
