//! Polls in step and out of step: the wait behind a burst, spreading it out, and the polls that
//! fall into a short bucket of time by chance.

use super::binomial::binomial_pmf;
use super::range::{is_fraction, is_non_negative, is_positive};

/// Mean wait before service of requests that arrive at one instant: (N - 1)s/2.
///
/// * Range: `requests` ≥ 1, `service_s` ≥ 0; NaN otherwise.
/// * Holds for one server, idle before, a constant service time, and any order of service that does
///   not break off a request. Pollers that sleep after the answer are in step for one cycle only.
/// * Source: mean of 0, s, ..., (N - 1)s.
///
/// ```
/// use pollpace::theory::burst_wait_mean;
/// assert!((burst_wait_mean(40, 0.1) - 1.95).abs() < 1e-12);
/// ```
pub fn burst_wait_mean(requests: u64, service_s: f64) -> f64 {
    burst_wait_max(requests, service_s) / 2.0
}

/// Wait before service of the last of the requests that arrive at one instant: (N - 1)s.
///
/// * Range: `requests` ≥ 1, `service_s` ≥ 0; NaN otherwise.
/// * Holds under the conditions of [`burst_wait_mean`].
/// * Source: the last request waits for all others.
///
/// ```
/// use pollpace::theory::burst_wait_max;
/// assert_eq!(burst_wait_max(7, 2.0), 12.0);
/// ```
pub fn burst_wait_max(requests: u64, service_s: f64) -> f64 {
    if requests >= 1 && is_non_negative(service_s) {
        (requests - 1) as f64 * service_s
    } else {
        f64::NAN
    }
}

/// Time a server needs to serve all requests that arrive at one instant: Ns.
///
/// * Range: `service_s` ≥ 0; NaN otherwise. No requests take no time.
/// * Holds under the conditions of [`burst_wait_mean`]; s may be a mean.
/// * Source: sum of the service times.
///
/// ```
/// use pollpace::theory::burst_drain;
/// assert_eq!(burst_drain(40, 0.25), 10.0);
/// ```
pub fn burst_drain(requests: u64, service_s: f64) -> f64 {
    if is_non_negative(service_s) {
        requests as f64 * service_s
    } else {
        f64::NAN
    }
}

/// Requests per second of a burst spread uniformly over `spread_s`: N/J.
///
/// * Range: `spread_s` > 0; NaN otherwise.
/// * Holds as a mean over the spread; in a short bucket chance adds to it, see
///   [`bucket_quantile_random_phases`]. The product with [`spread_delay_mean`] is N/2 whatever the
///   spread: a lower peak is paid for in delay.
/// * Source: definition of the uniform density.
///
/// ```
/// use pollpace::theory::spread_peak_rate_per_s;
/// assert_eq!(spread_peak_rate_per_s(90_000, 300.0), 300.0);
/// ```
pub fn spread_peak_rate_per_s(requests: u64, spread_s: f64) -> f64 {
    if is_positive(spread_s) {
        requests as f64 / spread_s
    } else {
        f64::NAN
    }
}

/// Mean delay that spreading a burst uniformly over `spread_s` adds to each request: J/2.
///
/// * Range: `spread_s` ≥ 0; NaN otherwise.
/// * Holds for delays uniform on (0, J).
/// * Source: mean of the uniform distribution.
///
/// ```
/// use pollpace::theory::spread_delay_mean;
/// assert_eq!(spread_delay_mean(300.0), 150.0);
/// ```
pub fn spread_delay_mean(spread_s: f64) -> f64 {
    if is_non_negative(spread_s) {
        spread_s / 2.0
    } else {
        f64::NAN
    }
}

/// Shortest spread that keeps a burst within a headroom of `headroom_rate_per_s`: N/H.
///
/// * Range: `headroom_rate_per_s` > 0; NaN otherwise.
/// * Holds for the mean rate over the spread, as in [`spread_peak_rate_per_s`].
/// * Source: N/J ≤ H solved for J.
///
/// ```
/// use pollpace::theory::spread_needed;
/// assert_eq!(spread_needed(90_000, 300.0), 300.0);
/// ```
pub fn spread_needed(requests: u64, headroom_rate_per_s: f64) -> f64 {
    if is_positive(headroom_rate_per_s) {
        requests as f64 / headroom_rate_per_s
    } else {
        f64::NAN
    }
}

/// Mean number of polls in a bucket of `bucket_s`, pollers at one interval with random phases: Nw/T.
///
/// * Range: 0 ≤ `bucket_s` ≤ `interval_s`, `interval_s` > 0; NaN otherwise.
/// * Holds for any phases on average; fixed interval, zero round trip.
/// * Source: mean of the binomial distribution.
///
/// ```
/// use pollpace::theory::bucket_mean_random_phases;
/// assert_eq!(bucket_mean_random_phases(1200, 1.0, 30.0), 40.0);
/// ```
pub fn bucket_mean_random_phases(pollers: u64, bucket_s: f64, interval_s: f64) -> f64 {
    if is_bucket(bucket_s, interval_s) {
        pollers as f64 * (bucket_s / interval_s)
    } else {
        f64::NAN
    }
}

/// Quantile of the number of polls in a bucket of `bucket_s`, pollers at one interval with random
/// phases: the smallest k with P(polls ≤ k) ≥ p.
///
/// * Range: `p` in \[0, 1\], 0 ≤ `bucket_s` ≤ `interval_s`, `interval_s` > 0; NaN otherwise.
/// * Holds for independent phases, uniform over the interval, a fixed interval and a zero round
///   trip. It is the law of one bucket over many draws of the phases. Buckets of one run are not
///   independent of each other and repeat each interval, and the largest of many buckets lies higher.
/// * Source: each poller falls into the bucket with probability w/T, so their number is
///   Binomial(N, w/T). The sum takes time in proportion to the result.
///
/// ```
/// use pollpace::theory::bucket_quantile_random_phases;
/// assert_eq!(bucket_quantile_random_phases(0.95, 1000, 1.0, 30.0), 43.0);
/// ```
pub fn bucket_quantile_random_phases(p: f64, pollers: u64, bucket_s: f64, interval_s: f64) -> f64 {
    if !is_bucket(bucket_s, interval_s) || !is_fraction(p) {
        return f64::NAN;
    }
    let probability = bucket_s / interval_s;
    let mut cdf = 0.0;
    // The last one is reached only if rounding keeps the sum below p, as it may for p = 1.
    for polls in 0..pollers {
        cdf += binomial_pmf(polls, pollers, probability);
        if cdf >= p {
            return polls as f64;
        }
    }
    pollers as f64
}

fn is_bucket(bucket_s: f64, interval_s: f64) -> bool {
    0.0 <= bucket_s && bucket_s <= interval_s && is_positive(interval_s)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, assert_close};
    use super::*;

    #[test]
    fn burst_matches_reference_values_and_a_loop() {
        assert_close(burst_wait_mean(40, 0.1), 1.95, 1e-14);
        assert_close(burst_wait_max(40, 0.1), 3.9, 1e-14);
        assert_close(burst_drain(40, 0.1), 4.0, 1e-14);
        for requests in [1_u64, 2, 7, 100] {
            let service_s = 0.25;
            let (mut free_s, mut wait_sum_s, mut wait_max_s) = (0.0, 0.0, 0.0);
            for _ in 0..requests {
                wait_sum_s += free_s;
                wait_max_s = free_s;
                free_s += service_s;
            }
            assert_eq!(
                burst_wait_mean(requests, service_s),
                wait_sum_s / requests as f64
            );
            assert_eq!(burst_wait_max(requests, service_s), wait_max_s);
            assert_eq!(burst_drain(requests, service_s), free_s);
        }
    }

    #[test]
    fn spreading_trades_peak_for_delay() {
        for spread_s in [1.0, 30.0, 600.0] {
            let product = spread_peak_rate_per_s(1000, spread_s) * spread_delay_mean(spread_s);
            assert_close(product, 500.0, 1e-14);
        }
        let spread_s = spread_needed(1000, 40.0);
        assert_close(spread_peak_rate_per_s(1000, spread_s), 40.0, 1e-14);
    }

    #[test]
    fn bucket_quantile_matches_exact_rational_sums() {
        // Summed in exact rational arithmetic for 1/30.
        assert_eq!(bucket_quantile_random_phases(0.5, 1000, 1.0, 30.0), 33.0);
        assert_eq!(bucket_quantile_random_phases(0.95, 1000, 1.0, 30.0), 43.0);
        assert_eq!(bucket_quantile_random_phases(0.999, 1000, 1.0, 30.0), 52.0);
        // cdf(390) = 0.99906771...
        assert_eq!(
            bucket_quantile_random_phases(0.999, 10_000, 1.0, 30.0),
            390.0
        );
        assert_close(
            bucket_mean_random_phases(10_000, 1.0, 30.0),
            1e4 / 30.0,
            1e-15,
        );
    }

    #[test]
    fn bucket_quantile_matches_random_phases() {
        let mut random = Random(9);
        let mut counts: Vec<usize> = (0..4001)
            .map(|_| (0..200).filter(|_| random.uniform(0.0, 20.0) < 1.0).count())
            .collect();
        counts.sort_unstable();
        for (p, index) in [(0.5, 2000), (0.9, 3600)] {
            let quantile = bucket_quantile_random_phases(p, 200, 1.0, 20.0);
            assert!((counts[index] as f64 - quantile).abs() <= 1.0);
        }
    }

    #[test]
    fn bucket_quantile_edges() {
        assert_eq!(bucket_quantile_random_phases(0.0, 10, 1.0, 20.0), 0.0);
        assert_eq!(bucket_quantile_random_phases(1.0, 10, 20.0, 20.0), 10.0);
        assert_eq!(bucket_quantile_random_phases(0.5, 10, 20.0, 20.0), 10.0);
        assert_eq!(bucket_quantile_random_phases(0.9, 10, 0.0, 20.0), 0.0);
        assert_eq!(bucket_quantile_random_phases(0.9, 0, 1.0, 20.0), 0.0);
    }

    #[test]
    fn out_of_range_is_nan() {
        assert!(burst_wait_mean(0, 1.0).is_nan());
        assert!(burst_wait_max(2, -1.0).is_nan());
        assert!(burst_drain(2, f64::NAN).is_nan());
        assert!(spread_peak_rate_per_s(2, 0.0).is_nan());
        assert!(spread_delay_mean(-1.0).is_nan());
        assert!(spread_needed(2, 0.0).is_nan());
        assert!(bucket_mean_random_phases(2, 2.0, 1.0).is_nan());
        assert!(bucket_quantile_random_phases(0.5, 2, 2.0, 1.0).is_nan());
        assert!(bucket_quantile_random_phases(1.5, 2, 1.0, 2.0).is_nan());
    }
}
