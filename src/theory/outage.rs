//! Requests that a client sends to a server that is down, and what retries in several layers
//! multiply them to.
//!
//! The first request that fails is sent at the start of the outage, each failure is known one round
//! trip r after its request (for a server that does not answer, r is the timeout), and the client
//! waits from then on. A request sent at exactly the end of the outage is served and not counted. A
//! fleet of clients sends as many times more.

use super::backoff::Schedule;
use super::range::{is_non_negative, is_positive};
use super::rounding::intervals_to_cover;

/// Requests of one client in an outage, with one wait after every failure.
///
/// ⌈d/(T + r)⌉ for an outage of d.
///
/// * Range: `outage_s` ≥ 0, `interval_s` ≥ 0, `round_trip_s` ≥ 0, the last two not both 0; NaN
///   otherwise.
/// * Holds for constant T and r. If the outage begins at a random moment between two requests, the
///   mean is d/(T + r).
/// * Source: counting the multiples of T + r in \[0, d).
///
/// ```
/// use pollpace::theory::outage_requests_fixed_interval;
/// assert_eq!(outage_requests_fixed_interval(3600.0, 1.0, 0.0), 3600.0);
/// assert_eq!(outage_requests_fixed_interval(3600.0, 1.0, 0.25), 2880.0);
/// ```
pub fn outage_requests_fixed_interval(outage_s: f64, interval_s: f64, round_trip_s: f64) -> f64 {
    let cycle_s = interval_s + round_trip_s;
    if is_non_negative(outage_s)
        && is_non_negative(interval_s)
        && is_non_negative(round_trip_s)
        && is_positive(cycle_s)
    {
        intervals_to_cover(outage_s / cycle_s)
    } else {
        f64::NAN
    }
}

/// Requests of one client in an outage that asks again at once: one per round trip.
///
/// * Range: `outage_s` ≥ 0, `round_trip_s` > 0; NaN otherwise.
/// * Holds for one request in flight at a time.
/// * Source: [`outage_requests_fixed_interval`] without a wait.
///
/// ```
/// use pollpace::theory::outage_requests_without_wait;
/// // A refusal within 5 ms, for 21 minutes.
/// assert_eq!(outage_requests_without_wait(1260.0, 0.005), 252_000.0);
/// ```
pub fn outage_requests_without_wait(outage_s: f64, round_trip_s: f64) -> f64 {
    outage_requests_fixed_interval(outage_s, 0.0, round_trip_s)
}

/// Requests of one client in an outage, with a wait that grows after every failure up to a ceiling.
///
/// The waits are a, ag, ag², ..., none longer than C. Once they have grown up, the rate is
/// 1/(C + r).
///
/// * Range: `outage_s` ≥ 0, `first_wait_s` > 0, `factor` ≥ 1, `ceiling_s` > 0 (infinite for no
///   ceiling), `round_trip_s` ≥ 0; NaN otherwise.
/// * Holds for waits without jitter, and no success that resets them.
/// * Source: request n + 1 is sent after n waits and n round trips; n waits sum to
///   a(gⁿ - 1)/(g - 1) before the ceiling. The last n is found by bisection.
///
/// ```
/// use pollpace::theory::outage_requests_geometric_backoff;
/// // At 0, 1, 3, 7, 15 and 31 s, and every 30 s from there.
/// assert_eq!(outage_requests_geometric_backoff(3600.0, 1.0, 2.0, 30.0, 0.0), 124.0);
/// ```
pub fn outage_requests_geometric_backoff(
    outage_s: f64,
    first_wait_s: f64,
    factor: f64,
    ceiling_s: f64,
    round_trip_s: f64,
) -> f64 {
    let schedule = Schedule::new(first_wait_s, factor, ceiling_s);
    let Some(schedule) =
        schedule.filter(|_| is_non_negative(outage_s) && is_non_negative(round_trip_s))
    else {
        return f64::NAN;
    };
    if outage_s == 0.0 {
        return 0.0;
    }
    // A request within one part in 10¹² of the end is sent at the end, as in `rounding`.
    let is_over = |failures: f64| {
        schedule.send_time_s(failures) + failures * round_trip_s >= outage_s * (1.0 - 1e-12)
    };
    // The request after that many failures is sent during the outage, and at or after its end.
    let shortest_cycle_s = first_wait_s.min(ceiling_s) + round_trip_s;
    let (mut during, mut after) = (0.0, intervals_to_cover(outage_s / shortest_cycle_s));
    loop {
        let middle = ((during + after) / 2.0_f64).floor();
        if middle <= during || middle >= after {
            return after;
        } else if is_over(middle) {
            after = middle;
        } else {
            during = middle;
        }
    }
}

/// Requests of one client in an outage, with a breaker that opens after so many failures in a row.
///
/// K + ⌈(d - (K - 1)(T + r))/(W + r)⌉ - 1 for K failures at waits of T, then one probe after each
/// open period of W; ⌈d/(T + r)⌉ if the outage is over before the breaker opens.
///
/// * Range: `outage_s` ≥ 0, `failures` ≥ 1, `interval_s` ≥ 0, `open_s` ≥ 0, `round_trip_s` ≥ 0; each
///   wait and the round trip not both 0; NaN otherwise.
/// * Holds for a probe that is sent as soon as the open period ends, and whose failure opens the
///   breaker again. If a poller sends the probe only at its next turn, W is the open period
///   and the wait for that turn. The end of the outage is then noticed up to W + r late.
/// * Source: counting requests, as in [`outage_requests_fixed_interval`].
///
/// ```
/// use pollpace::theory::outage_requests_breaker;
/// // Five failures 2 s apart, then a probe every 5 minutes.
/// assert_eq!(outage_requests_breaker(3600.0, 5, 2.0, 300.0, 0.0), 16.0);
/// assert_eq!(outage_requests_breaker(5.0, 5, 2.0, 300.0, 0.0), 3.0);
/// ```
pub fn outage_requests_breaker(
    outage_s: f64,
    failures: u64,
    interval_s: f64,
    open_s: f64,
    round_trip_s: f64,
) -> f64 {
    let closed = outage_requests_fixed_interval(outage_s, interval_s, round_trip_s);
    let opened_s = (failures as f64 - 1.0) * (interval_s + round_trip_s);
    // Counts from the request that opens the breaker; 0 if the outage is over before.
    let open = outage_requests_fixed_interval((outage_s - opened_s).max(0.0), open_s, round_trip_s);
    if failures == 0 || closed.is_nan() || open.is_nan() {
        f64::NAN
    } else if closed < failures as f64 {
        closed
    } else {
        failures as f64 - 1.0 + open
    }
}

/// Calls at the bottom of a stack of layers for one call at its top, if all fail:
/// attemptsˡᵃʸᵉʳˢ.
///
/// * Range: `attempts` ≥ 1 (of each layer, the first one included); NaN otherwise. Without unit.
/// * Holds for the worst case, where each layer makes all of its attempts.
/// * Source: each attempt of a layer is a call to the layer below it.
///
/// ```
/// use pollpace::theory::retry_amplification;
/// assert_eq!(retry_amplification(4, 3), 64.0);
/// ```
pub fn retry_amplification(attempts: u64, layers: u64) -> f64 {
    if attempts >= 1 {
        libm::pow(attempts as f64, layers as f64)
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;
    use crate::random::{Key, Purpose, unit};

    /// Sends until the end of the outage; `wait_s` is told how many requests have failed.
    fn requests(outage_s: f64, round_trip_s: f64, wait_s: impl Fn(u64) -> f64) -> f64 {
        let (mut time_s, mut failed) = (0.0, 0);
        while time_s < outage_s {
            failed += 1;
            time_s += round_trip_s + wait_s(failed);
        }
        failed as f64
    }

    #[test]
    fn matches_reference_values() {
        assert_close(
            outage_requests_without_wait(1260.0, 0.004_784),
            263_356.0,
            0.001,
        );
        assert_eq!(outage_requests_fixed_interval(3600.0, 1.0, 0.0), 3600.0);
        assert_eq!(
            outage_requests_breaker(3600.0, 5, 2.0, 60.0, 0.1),
            5.0 + 59.0
        );
        // 1.1 s at 0.1 s: eleven, whatever the binary fractions say.
        assert_eq!(outage_requests_fixed_interval(1.1, 0.1, 0.0), 11.0);
        assert_eq!(
            outage_requests_geometric_backoff(1.1, 0.1, 1.0, f64::INFINITY, 0.0),
            11.0
        );
        assert_eq!(outage_requests_breaker(1.1, 4, 0.1, 0.1, 0.0), 11.0);
    }

    #[test]
    fn fixed_waits_and_breakers_match_a_loop() {
        // Eighths are exact in binary, so the loop needs no tolerance.
        for eighths in 0..300 {
            let outage_s = f64::from(eighths) / 8.0;
            for (interval_s, round_trip_s) in [(1.0, 0.0), (0.0, 0.125), (2.5, 0.25), (100.0, 1.0)]
            {
                assert_eq!(
                    outage_requests_fixed_interval(outage_s, interval_s, round_trip_s),
                    requests(outage_s, round_trip_s, |_| interval_s)
                );
                for failures in [1, 2, 5, 9] {
                    for open_s in [0.5, 3.0, 7.125, 60.0] {
                        let wait_s = |failed| {
                            if failed < failures {
                                interval_s
                            } else {
                                open_s
                            }
                        };
                        let closed = outage_requests_breaker(
                            outage_s,
                            failures,
                            interval_s,
                            open_s,
                            round_trip_s,
                        );
                        assert_eq!(closed, requests(outage_s, round_trip_s, wait_s));
                    }
                }
            }
        }
    }

    #[test]
    fn geometric_backoff_matches_a_loop() {
        for (first_wait_s, factor, ceiling_s) in [
            (1.0, 2.0, 30.0),
            (0.5, 1.5, 8.0),
            (0.5, 1.0, 8.0),
            (9.0, 2.0, 4.0),
            (0.25, 3.0, f64::INFINITY),
            (15.0, 2.0, 120.0),
        ] {
            for round_trip_s in [0.0, 0.125, 3.0] {
                let wait_s = |failed| {
                    f64::min(
                        first_wait_s * libm::pow(factor, failed as f64 - 1.0),
                        ceiling_s,
                    )
                };
                for quarters in 0..1000 {
                    let outage_s = f64::from(quarters) / 4.0;
                    let closed = outage_requests_geometric_backoff(
                        outage_s,
                        first_wait_s,
                        factor,
                        ceiling_s,
                        round_trip_s,
                    );
                    assert_eq!(closed, requests(outage_s, round_trip_s, wait_s));
                }
            }
        }
    }

    #[test]
    fn outages_from_any_moment_on_take_the_mean() {
        let (outage_s, interval_s, round_trip_s) = (37.0, 3.0, 0.5);
        let outages = 100_000;
        let sum: f64 = (0..outages)
            .map(|outage| {
                let until_first_s =
                    (interval_s + round_trip_s) * unit(Key(15).draw(Purpose::Phase, outage));
                requests(outage_s - until_first_s, round_trip_s, |_| interval_s)
            })
            .sum();
        assert_close(sum / outages as f64, 37.0 / 3.5, 0.001);
    }

    #[test]
    fn the_last_half_of_a_long_outage_is_asked_at_the_ceiling() {
        let at = |outage_s| outage_requests_geometric_backoff(outage_s, 1.0, 2.0, 30.0, 0.0);
        assert_eq!(at(3600.0) - at(1800.0), 60.0);
        // Beyond the whole numbers; and with a factor that hardly grows.
        let many = outage_requests_geometric_backoff(1e30, 1.0, 2.0, 10.0, 0.0);
        assert_close(many, 1e29, 1e-11);
        let many = outage_requests_geometric_backoff(1e12, 1e-3, 1.0 + 1e-9, 1e-2, 0.0);
        assert_close(many, 1e14, 1e-3);
    }

    #[test]
    fn amplification_matches_a_stack_of_calls() {
        fn calls(attempts: u64, layers: u64) -> u64 {
            if layers == 0 {
                1
            } else {
                (0..attempts).map(|_| calls(attempts, layers - 1)).sum()
            }
        }
        for attempts in 1..6 {
            for layers in 0..6 {
                let closed = retry_amplification(attempts, layers);
                assert_eq!(closed, calls(attempts, layers) as f64);
            }
        }
        for (attempts, layers) in [(3_u64, 33), (10, 15), (7, 18), (2, 52)] {
            let product = attempts.pow(layers as u32) as f64;
            assert_eq!(retry_amplification(attempts, layers), product);
        }
        assert_eq!(retry_amplification(2, 5000), f64::INFINITY);
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(outage_requests_fixed_interval(bad, 1.0, 1.0).is_nan());
            assert!(outage_requests_fixed_interval(1.0, bad, 2.0).is_nan());
            assert!(outage_requests_without_wait(1.0, bad).is_nan());
            assert!(outage_requests_geometric_backoff(bad, 1.0, 2.0, 9.0, 0.0).is_nan());
            assert!(outage_requests_geometric_backoff(9.0, bad, 2.0, 9.0, 0.0).is_nan());
            assert!(outage_requests_geometric_backoff(9.0, 1.0, bad, 9.0, 0.0).is_nan());
            assert!(outage_requests_geometric_backoff(9.0, 1.0, 2.0, 9.0, bad).is_nan());
            assert!(outage_requests_breaker(bad, 1, 1.0, 1.0, 0.0).is_nan());
            assert!(outage_requests_breaker(1.0, 1, bad, 1.0, 2.0).is_nan());
            assert!(outage_requests_breaker(1.0, 5, 1.0, bad, 2.0).is_nan());
        }
        assert!(outage_requests_without_wait(1.0, 0.0).is_nan());
        assert!(outage_requests_breaker(1.0, 0, 1.0, 1.0, 1.0).is_nan());
        assert!(outage_requests_breaker(9.0, 1, 1.0, 0.0, 0.0).is_nan());
        assert!(retry_amplification(0, 3).is_nan());
    }
}
