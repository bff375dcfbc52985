//! A budget on the polls of a whole fleet: what it does to the interval, the load and the delay.
//!
//! The budget lets one poll pass every 1/R seconds. Tasks that are due wait for their turn, first
//! come, first served, and are due again one interval after their poll was sent. The load is then
//! bounded, and the price is paid in delay.

use super::range::{is_non_negative, is_positive};

/// Interval that each task gets under a budget: the larger of T and N/R.
///
/// * Range: `tasks` ≥ 0 (a mean number is allowed), `interval_s` > 0, `budget_rate_per_s` > 0; NaN
///   otherwise.
/// * Holds in the steady state, for a fixed number of tasks that take turns. A task counts until
///   its end has been seen: in an open system N is near λ(E\[D\] + T/2) for the interval T that
///   results, and a budget which binds gives near λE\[D\]/(R - λ/2).
/// * Source: a round of N polls at R per second takes N/R.
///
/// ```
/// use pollpace::theory::interval_under_budget;
/// assert_eq!(interval_under_budget(500.0, 5.0, 20.0), 25.0);
/// assert_eq!(interval_under_budget(80.0, 5.0, 20.0), 5.0);
/// ```
pub fn interval_under_budget(tasks: f64, interval_s: f64, budget_rate_per_s: f64) -> f64 {
    if is_non_negative(tasks) && is_positive(interval_s) && is_positive(budget_rate_per_s) {
        interval_s.max(tasks / budget_rate_per_s)
    } else {
        f64::NAN
    }
}

/// Polls per second of a fleet under a budget: the smaller of N/T and R.
///
/// * Range: as for [`interval_under_budget`]; NaN otherwise.
/// * Holds under the conditions of [`interval_under_budget`].
/// * Source: N tasks, each at that interval.
///
/// ```
/// use pollpace::theory::aggregate_rate_under_budget;
/// assert_eq!(aggregate_rate_under_budget(500.0, 5.0, 20.0), 20.0);
/// assert_eq!(aggregate_rate_under_budget(80.0, 5.0, 20.0), 16.0);
/// ```
pub fn aggregate_rate_under_budget(tasks: f64, interval_s: f64, budget_rate_per_s: f64) -> f64 {
    if is_non_negative(tasks) && is_positive(interval_s) && is_positive(budget_rate_per_s) {
        (tasks / interval_s).min(budget_rate_per_s)
    } else {
        f64::NAN
    }
}

/// Mean time from the end of a task to the poll that sees it, under a budget: half the interval that
/// the task gets.
///
/// * Range: as for [`interval_under_budget`]; NaN otherwise.
/// * Holds under the conditions of [`interval_under_budget`], for an end that is uniform within its
///   interval. The quantiles are those of that interval, see
///   [`completion_delay_quantile_fixed_interval`](super::completion_delay_quantile_fixed_interval).
///   A budget that picks tasks at random is as fair on average, but its intervals are random and
///   the delay is that of [`residual_mean`](super::residual_mean).
/// * Source: mean of the uniform distribution.
///
/// ```
/// use pollpace::theory::completion_delay_mean_under_budget;
/// assert_eq!(completion_delay_mean_under_budget(500.0, 5.0, 20.0), 12.5);
/// ```
pub fn completion_delay_mean_under_budget(
    tasks: f64,
    interval_s: f64,
    budget_rate_per_s: f64,
) -> f64 {
    interval_under_budget(tasks, interval_s, budget_rate_per_s) / 2.0
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::{BinaryHeap, VecDeque};

    use super::super::testing::assert_close;
    use super::*;
    use crate::random::{Key, Purpose, unit};

    /// Send times of each task's polls up to `until`, one poll per unit of time; first polls are due
    /// at random within the interval.
    fn fleet(tasks: usize, interval: u64, until: u64) -> Vec<Vec<u64>> {
        let mut due: BinaryHeap<_> = (0..tasks)
            .map(|task| {
                let phase = unit(Key(16).draw(Purpose::Phase, task as u64));
                Reverse(((phase * interval as f64) as u64, task))
            })
            .collect();
        let mut sent = vec![Vec::new(); tasks];
        let mut free = 0;
        while let Some(Reverse((time, task))) = due.pop() {
            let send = time.max(free);
            if send > until {
                break;
            }
            free = send + 1;
            sent[task].push(send);
            due.push(Reverse((send + interval, task)));
        }
        sent
    }

    #[test]
    fn interval_load_and_delay_match_tasks_that_take_turns() {
        for tasks in [1, 3, 20, 40, 41, 100, 250] {
            for interval in [7, 40, 100] {
                let (n, interval_s) = (tasks as f64, interval as f64);
                let expected = interval_under_budget(n, interval_s, 1.0);
                let sent = fleet(tasks, interval, 2500);
                // The first round sorts the phases.
                let settled = 600;
                let (mut gaps, mut residual_sum) = (0_u64, 0);
                for polls in &sent {
                    let from = polls.partition_point(|&send| send < settled);
                    for pair in polls[from..].windows(2) {
                        let gap = pair[1] - pair[0];
                        assert_eq!(gap as f64, expected, "{tasks} tasks every {interval}");
                        gaps += 1;
                        // Ends in the middle of each unit of time, in half units.
                        residual_sum += (0..gap).map(|end| 2 * (gap - end) - 1).sum::<u64>();
                    }
                }
                let delay = residual_sum as f64 / 2.0 / (gaps as f64 * expected);
                let expected_delay = completion_delay_mean_under_budget(n, interval_s, 1.0);
                assert_close(delay, expected_delay, 1e-12);
                let (from, rounds) = (settled as f64, (1800.0 / expected).floor());
                let count = sent
                    .iter()
                    .flatten()
                    .filter(|&&send| (from..from + rounds * expected).contains(&(send as f64)))
                    .count();
                let rate = count as f64 / (rounds * expected);
                assert_close(rate, aggregate_rate_under_budget(n, interval_s, 1.0), 1e-12);
            }
        }
    }

    #[test]
    fn an_open_system_counts_tasks_until_they_are_seen() {
        // One poll per unit of time; tasks of 500 units on average arrive at 0.5 per unit, at random.
        let (arrival_rate, duration_mean) = (0.5, 500.0);
        let draw = |purpose, task| unit(Key(16).draw(purpose, task));
        let mut turns: VecDeque<f64> = VecDeque::new();
        let (mut arrival, mut task) = (0.0, 0);
        let (mut polled, mut times) = (0.0, 0.0);
        for time in 0..100_000 {
            let now = f64::from(time);
            while arrival <= now {
                turns.push_back(arrival + 1000.0 * draw(Purpose::Duration, task));
                task += 1;
                arrival -= libm::log(draw(Purpose::Arrival, task)) / arrival_rate;
            }
            if time > 20_000 {
                polled += turns.len() as f64;
                times += 1.0;
            }
            if let Some(end) = turns.pop_front()
                && end > now
            {
                turns.push_back(end);
            }
        }
        let interval = arrival_rate * duration_mean / (1.0 - arrival_rate / 2.0);
        let tasks = arrival_rate * (duration_mean + interval / 2.0);
        assert_close(interval_under_budget(tasks, 5.0, 1.0), interval, 1e-12);
        // A little more, since the number of tasks, and so the interval, is random.
        assert_close(polled / times, tasks, 0.03);
    }

    #[test]
    fn matches_reference_values() {
        assert_eq!(interval_under_budget(0.0, 5.0, 20.0), 5.0);
        assert_eq!(aggregate_rate_under_budget(0.0, 5.0, 20.0), 0.0);
        for tasks in [0.0, 1.0, 99.0, 100.0, 101.0, 1e6] {
            let interval_s = interval_under_budget(tasks, 5.0, 20.0);
            let rate_per_s = aggregate_rate_under_budget(tasks, 5.0, 20.0);
            assert_close(tasks / interval_s, rate_per_s, 1e-15);
        }
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(interval_under_budget(bad, 1.0, 1.0).is_nan());
            assert!(interval_under_budget(1.0, bad, 1.0).is_nan());
            assert!(aggregate_rate_under_budget(bad, 1.0, 1.0).is_nan());
            assert!(aggregate_rate_under_budget(1.0, 1.0, bad).is_nan());
            assert!(completion_delay_mean_under_budget(1.0, 1.0, bad).is_nan());
        }
        assert!(interval_under_budget(1.0, 0.0, 1.0).is_nan());
        assert!(interval_under_budget(1.0, 1.0, 0.0).is_nan());
    }
}
