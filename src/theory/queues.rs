//! Wait of polls before one server: behind Poisson polls, and behind periodic ones.
//!
//! Polls of many short, unrelated tasks arrive like a Poisson process and wait as in M/G/1. A few
//! long-lived pollers at one fixed interval are more regular and wait less: N·D/D/1, N sources of
//! one period, each with its own random phase. M/D/1 at the same load is an upper bound for it.

use super::binomial::binomial_pmf;
use super::range::{is_fraction, is_non_negative, is_positive};

/// Mean wait before service of polls that arrive as a Poisson process.
///
/// λE\[S²\]/(2(1 - ρ)) with ρ = λE\[S\].
///
/// * Range: `arrival_rate_per_s` ≥ 0, `service_mean_s` ≥ 0 (s), `service_second_moment_s2` ≥ 0
///   (s²); NaN otherwise. Infinite from a utilisation ρ of 1 on.
/// * Holds in the steady state for one server, Poisson arrivals (many independent tasks, or
///   exponential intervals), independent service times, and service in order of arrival.
/// * Source: Pollaczek-Khinchine formula.
///
/// ```
/// use pollpace::theory::wait_mean_mg1;
/// // Exponential service of mean 20 ms, utilisation 0.6.
/// assert!((wait_mean_mg1(30.0, 0.02, 0.0008) - 0.03).abs() < 1e-12);
/// ```
pub fn wait_mean_mg1(
    arrival_rate_per_s: f64,
    service_mean_s: f64,
    service_second_moment_s2: f64,
) -> f64 {
    if is_non_negative(arrival_rate_per_s)
        && is_non_negative(service_mean_s)
        && is_non_negative(service_second_moment_s2)
    {
        let utilisation = arrival_rate_per_s * service_mean_s;
        if utilisation < 1.0 {
            arrival_rate_per_s * service_second_moment_s2 / (2.0 * (1.0 - utilisation))
        } else {
            f64::INFINITY
        }
    } else {
        f64::NAN
    }
}

/// Mean wait before service of polls that arrive as a Poisson process and all take `service_s`.
///
/// ρs/(2(1 - ρ)) with ρ = λs.
///
/// * Range: `arrival_rate_per_s` ≥ 0, `service_s` ≥ 0; NaN otherwise. Infinite from a utilisation ρ
///   of 1 on.
/// * Holds under the conditions of [`wait_mean_mg1`]. An upper bound for periodic polls, see
///   [`wait_mean_ndd1`].
/// * Source: Pollaczek-Khinchine formula for M/D/1.
///
/// ```
/// use pollpace::theory::wait_mean_md1;
/// assert!((wait_mean_md1(30.0, 0.02) - 0.015).abs() < 1e-12);
/// ```
pub fn wait_mean_md1(arrival_rate_per_s: f64, service_s: f64) -> f64 {
    wait_mean_mg1(arrival_rate_per_s, service_s, service_s * service_s)
}

/// Probability that the server has more than `wait_s` of work left at an arbitrary moment, pollers
/// at one interval with random phases.
///
/// With x = w/s and d = T/s: the sum over n > x of
/// C(N, n) ((n - x)/d)ⁿ (1 - (n - x)/d)^(N - n) (d - N + x)/(d - n + x).
///
/// * Range: `wait_s` ≥ 0, `interval_s` > 0, `service_s` > 0; NaN otherwise. 1 if the pollers
///   overload the server (Ns > T). Each term is formed from logarithms and is positive, so a
///   thousand pollers and tails of 10⁻¹⁰⁰ are no harder than ten and 10⁻¹.
/// * Holds in the steady state for one server, a constant service time, and periodic polls: a fixed
///   gap from one send to the next, not a sleep after the answer. Phases are independent and uniform.
/// * Source: Roberts & Virtamo, *The superposition of periodic cell arrival streams in an ATM
///   multiplexer*, IEEE Transactions on Communications 39 (1991).
///
/// ```
/// use pollpace::theory::virtual_wait_tail_ndd1;
/// // Busy at all: the utilisation.
/// assert_eq!(virtual_wait_tail_ndd1(0.0, 40, 50.0, 1.0), 0.8);
/// ```
pub fn virtual_wait_tail_ndd1(wait_s: f64, pollers: u64, interval_s: f64, service_s: f64) -> f64 {
    if is_non_negative(wait_s) && is_positive(interval_s) && is_positive(service_s) {
        let period = interval_s / service_s;
        if is_overload(pollers, period) {
            1.0
        } else {
            virtual_wait_tail(wait_s / service_s, pollers, period)
        }
    } else {
        f64::NAN
    }
}

/// Probability that a poll waits more than `wait_s` for service, pollers at one interval with random
/// phases.
///
/// * Range: `wait_s` ≥ 0, `pollers` ≥ 1 (the one that waits included), `interval_s` > 0,
///   `service_s` > 0; NaN otherwise. 1 if the pollers overload the server (Ns > T).
/// * Holds under the conditions of [`virtual_wait_tail_ndd1`].
/// * Source: a poll finds the work of the other N - 1, so its wait has the law of
///   [`virtual_wait_tail_ndd1`] for N - 1 pollers; its own poll before is done, since no busy period
///   outlasts the interval.
///
/// ```
/// use pollpace::theory::wait_tail_ndd1;
/// let tail = wait_tail_ndd1(3.0, 40, 50.0, 1.0);
/// assert!((tail - 0.131_816_661_6).abs() < 1e-9);
/// ```
pub fn wait_tail_ndd1(wait_s: f64, pollers: u64, interval_s: f64, service_s: f64) -> f64 {
    if is_non_negative(wait_s) && is_ndd1(pollers, interval_s, service_s) {
        let period = interval_s / service_s;
        if is_overload(pollers, period) {
            1.0
        } else {
            virtual_wait_tail(wait_s / service_s, pollers - 1, period)
        }
    } else {
        f64::NAN
    }
}

/// Mean wait of a poll for service, pollers at one interval with random phases.
///
/// (s/2) Σ (N - 1)(N - 2)···(N - k)/dᵏ over k = 1, ..., N - 1, with d = T/s. For many pollers at one
/// utilisation it rises to [`wait_mean_md1`].
///
/// * Range: `pollers` ≥ 1 (the one that waits included), `interval_s` > 0, `service_s` > 0; NaN
///   otherwise. Infinite if the pollers overload the server (Ns > T).
/// * Holds under the conditions of [`virtual_wait_tail_ndd1`], of whose tail for N - 1 pollers it is
///   the integral.
/// * Source: Brumelle's formula (H = λG). The mean work of m pollers is V(m) = (m/d)(W(m) + s/2), a
///   poll finds that of the others, W(m) = V(m - 1), and V(0) = 0.
///
/// ```
/// use pollpace::theory::wait_mean_ndd1;
/// assert!((wait_mean_ndd1(40, 50.0, 1.0) - 1.377_077_806_9).abs() < 1e-9);
/// ```
pub fn wait_mean_ndd1(pollers: u64, interval_s: f64, service_s: f64) -> f64 {
    if !is_ndd1(pollers, interval_s, service_s) {
        return f64::NAN;
    }
    let period = interval_s / service_s;
    if is_overload(pollers, period) {
        return f64::INFINITY;
    }
    let work = (1..pollers).fold(0.0, |wait, others| others as f64 / period * (wait + 0.5));
    work * service_s
}

/// The wait for service that a poll exceeds with probability 1 - `p`, pollers at one interval with
/// random phases.
///
/// * Range: `p` in \[0, 1\], `pollers` ≥ 1 (the one that waits included), `interval_s` > 0,
///   `service_s` > 0; NaN otherwise. 0 up to the chance 1 - (N - 1)s/T of finding the server idle,
///   (N - 1)s for p = 1, infinite if the pollers overload the server (Ns > T).
/// * Holds under the conditions of [`virtual_wait_tail_ndd1`].
/// * Source: inverse of [`wait_tail_ndd1`], by bisection.
///
/// ```
/// use pollpace::theory::wait_quantile_ndd1;
/// assert!((wait_quantile_ndd1(0.95, 40, 50.0, 1.0) - 4.195_793_528).abs() < 1e-9);
/// ```
pub fn wait_quantile_ndd1(p: f64, pollers: u64, interval_s: f64, service_s: f64) -> f64 {
    if !is_ndd1(pollers, interval_s, service_s) || !is_fraction(p) {
        return f64::NAN;
    }
    let period = interval_s / service_s;
    if is_overload(pollers, period) {
        return f64::INFINITY;
    }
    let others = pollers - 1;
    let exceeds = |wait: f64| virtual_wait_tail(wait, others, period) > 1.0 - p;
    if !exceeds(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, others as f64);
    if p == 1.0 {
        // The tail ends there, but underflows to 0 long before.
        return high * service_s;
    }
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if exceeds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high * service_s
}

fn is_ndd1(pollers: u64, interval_s: f64, service_s: f64) -> bool {
    pollers >= 1 && is_positive(interval_s) && is_positive(service_s)
}

/// Whether `pollers` need more than the period, given in services; a full load that binary fractions
/// push over the edge (7 polls of 0.1 s in 0.7 s) is not an overload.
fn is_overload(pollers: u64, period: f64) -> bool {
    pollers as f64 > period * (1.0 + 1e-12)
}

/// P(work > `wait`) for `pollers` not above `period`; `wait` and `period` are in services.
fn virtual_wait_tail(wait: f64, pollers: u64, period: f64) -> f64 {
    let sources = pollers as f64;
    if wait == 0.0 {
        // The sum comes to the utilisation too, but for rounding.
        return (sources / period).min(1.0);
    }
    if wait >= sources {
        return 0.0;
    }
    // Kept off 0, so that at full load the last ratio below is 1 and not 0/0.
    let slack = (period - sources + wait).max(f64::MIN_POSITIVE);
    let first = wait.floor() as u64 + 1;
    let tail: f64 = (first..=pollers)
        .map(|n| {
            let within = n as f64 - wait;
            // P(n arrivals in the last `within`) * P(the others keep below the line before that).
            binomial_pmf(n, pollers, within / period) * (slack / (slack + (pollers - n) as f64))
        })
        .sum();
    tail.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, assert_close};
    use super::*;

    #[test]
    fn mg1_matches_reference_values() {
        assert_close(wait_mean_md1(0.3 / 0.02, 0.02), 0.004285714285714286, 1e-13);
        assert_close(wait_mean_md1(0.6 / 0.02, 0.02), 0.015, 1e-13);
        assert_close(wait_mean_md1(0.8 / 0.02, 0.02), 0.04, 1e-13);
        assert_close(wait_mean_mg1(30.0, 0.02, 0.0008), 0.03, 1e-13);
        let second_moment_s2 = 0.0004 * std::f64::consts::E;
        assert_close(
            wait_mean_mg1(25.0, 0.02, second_moment_s2),
            0.027182818284590453,
            1e-13,
        );
        assert_eq!(wait_mean_md1(50.0, 0.02), f64::INFINITY);
        assert_eq!(wait_mean_md1(0.0, 0.02), 0.0);
    }

    #[test]
    fn md1_matches_lindley_recursion() {
        let mut random = Random(12);
        let (arrival_rate_per_s, service_s) = (30.0, 0.02);
        let (mut wait_s, mut sum_s) = (0.0_f64, 0.0);
        let polls = 300_000;
        for _ in 0..polls {
            sum_s += wait_s;
            let gap_s = -libm::log(random.uniform(0.0, 1.0)) / arrival_rate_per_s;
            wait_s = (wait_s + service_s - gap_s).max(0.0);
        }
        let expected_s = wait_mean_md1(arrival_rate_per_s, service_s);
        assert_close(sum_s / f64::from(polls), expected_s, 0.03);
    }

    #[test]
    fn ndd1_matches_reference_values() {
        // Tail at 1.5 and 3 services, 0.95 quantile, mean (its integral with a step of 0.005).
        for (pollers, period, tails, quantile, mean) in [
            (
                20,
                50.0,
                [0.039680107468620135, 0.0018733434075932432],
                1.370497546815429,
                0.292167820589704,
            ),
            (
                40,
                50.0,
                [0.37219908641967264, 0.13181666156299007],
                4.195793528441462,
                1.377077806881728,
            ),
            (
                60,
                80.0,
                [0.32186573390929385, 0.10943872952544374],
                3.9949773033794047,
                1.224316522370592,
            ),
        ] {
            assert_close(wait_tail_ndd1(1.5, pollers, period, 1.0), tails[0], 1e-12);
            assert_close(wait_tail_ndd1(3.0, pollers, period, 1.0), tails[1], 1e-12);
            assert_close(
                wait_quantile_ndd1(0.95, pollers, period, 1.0),
                quantile,
                1e-12,
            );
            assert_close(wait_mean_ndd1(pollers, period, 1.0), mean, 1e-11);
        }
    }

    #[test]
    fn ndd1_matches_exact_rational_sums() {
        // Summed in exact rational arithmetic.
        for (wait, pollers, period, tail) in [
            (0.0, 1000, 1050.0, 0.9514285714285714),
            (5.0, 1000, 1050.0, 0.5608416088411994),
            (20.0, 1000, 1050.0, 0.06104874807359219),
            (60.0, 1000, 1050.0, 2.294448085900093e-06),
            (100.0, 500, 510.0, 5.172169185212414e-20),
        ] {
            assert_close(wait_tail_ndd1(wait, pollers, period, 1.0), tail, 1e-10);
        }
    }

    #[test]
    fn ndd1_sum_starts_at_the_utilisation() {
        for (pollers, period) in [(1, 1.5), (40, 50.0), (999, 1000.0)] {
            let tail = virtual_wait_tail_ndd1(1e-9, pollers, period, 1.0);
            assert_close(tail, pollers as f64 / period, 1e-7);
        }
    }

    #[test]
    fn ndd1_mean_is_the_integral_of_the_tail() {
        for (pollers, period, until) in [(3, 3.5, 2), (40, 50.0, 39), (1000, 1050.0, 130)] {
            // Simpson's rule between whole numbers of services, where the tail is smooth.
            let tail = |wait: f64| wait_tail_ndd1(wait, pollers, period, 1.0);
            let integral: f64 = (0..until)
                .map(f64::from)
                .map(|from| {
                    let ends = tail(from) + tail(from + 1.0);
                    let quarters = tail(from + 0.25) + tail(from + 0.75);
                    (ends + 4.0 * quarters + 2.0 * tail(from + 0.5)) / 12.0
                })
                .sum();
            assert_close(integral, wait_mean_ndd1(pollers, period, 1.0), 1e-4);
        }
    }

    #[test]
    fn ndd1_matches_random_phases() {
        let mut random = Random(13);
        let (pollers, period, draws) = (40, 50.0, 2000);
        let mut waits = Vec::new();
        for _ in 0..draws {
            let mut phases: Vec<f64> = (0..pollers).map(|_| random.uniform(0.0, period)).collect();
            phases.sort_by(f64::total_cmp);
            // The first cycle brings the server into its steady state.
            let mut free = 0.0_f64;
            for cycle in 0..2 {
                for phase in &phases {
                    let sent = phase + f64::from(cycle) * period;
                    let start = sent.max(free);
                    free = start + 1.0;
                    if cycle == 1 {
                        waits.push(start - sent);
                    }
                }
            }
        }
        waits.sort_by(f64::total_cmp);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert_close(mean, wait_mean_ndd1(pollers, period, 1.0), 0.04);
        let quantile = waits[waits.len() * 95 / 100];
        assert_close(
            quantile,
            wait_quantile_ndd1(0.95, pollers, period, 1.0),
            0.04,
        );
    }

    #[test]
    fn ndd1_small_cases_by_hand() {
        // Two pollers: the other came u < 1 services before with chance 1/d, and leaves 1 - u.
        assert_close(wait_mean_ndd1(2, 10.0, 1.0), 0.05, 1e-14);
        assert_close(wait_tail_ndd1(0.25, 2, 10.0, 1.0), 0.075, 1e-14);
        assert_close(wait_quantile_ndd1(0.95, 2, 10.0, 1.0), 0.5, 1e-12);
        // One poller never waits.
        assert_eq!(wait_mean_ndd1(1, 10.0, 1.0), 0.0);
        assert_eq!(wait_tail_ndd1(0.0, 1, 10.0, 1.0), 0.0);
        assert_eq!(wait_quantile_ndd1(1.0, 1, 10.0, 1.0), 0.0);
    }

    #[test]
    fn ndd1_scales_with_the_service_time() {
        let mean = wait_mean_ndd1(40, 50.0, 1.0);
        assert_close(wait_mean_ndd1(40, 5.0, 0.1), 0.1 * mean, 1e-12);
        let quantile = wait_quantile_ndd1(0.99, 40, 50.0, 1.0);
        assert_close(
            wait_quantile_ndd1(0.99, 40, 5.0, 0.1),
            0.1 * quantile,
            1e-12,
        );
    }

    #[test]
    fn ndd1_rises_to_md1() {
        let bound = wait_mean_md1(0.8, 1.0);
        let mut last = 0.0;
        for pollers in [4, 40, 400, 4000] {
            let mean = wait_mean_ndd1(pollers, pollers as f64 / 0.8, 1.0);
            assert!(last < mean && mean < bound);
            last = mean;
        }
        assert_close(last, bound, 0.02);
    }

    #[test]
    fn ndd1_at_and_beyond_full_load() {
        assert!(wait_mean_ndd1(7, 0.7, 0.1).is_finite());
        assert_eq!(virtual_wait_tail_ndd1(0.0, 7, 0.7, 0.1), 1.0);
        assert!(virtual_wait_tail_ndd1(0.05, 7, 0.7, 0.1) < 1.0);
        assert_close(virtual_wait_tail_ndd1(1e-17, 7, 7.0, 1.0), 1.0, 1e-12);
        assert_eq!(wait_mean_ndd1(8, 0.7, 0.1), f64::INFINITY);
        assert_eq!(wait_quantile_ndd1(0.5, 8, 0.7, 0.1), f64::INFINITY);
        assert_eq!(wait_tail_ndd1(1.0, 8, 0.7, 0.1), 1.0);
        assert_eq!(wait_tail_ndd1(6.0, 7, 10.0, 1.0), 0.0);
        assert_eq!(wait_quantile_ndd1(1.0, 7, 10.0, 1.0), 6.0);
        assert_eq!(wait_quantile_ndd1(0.3, 7, 10.0, 1.0), 0.0);
    }

    #[test]
    fn out_of_range_is_nan() {
        assert!(wait_mean_mg1(-1.0, 1.0, 1.0).is_nan());
        assert!(wait_mean_md1(1.0, f64::NAN).is_nan());
        assert!(virtual_wait_tail_ndd1(-1.0, 2, 10.0, 1.0).is_nan());
        assert!(wait_tail_ndd1(1.0, 0, 10.0, 1.0).is_nan());
        assert!(wait_mean_ndd1(2, 0.0, 1.0).is_nan());
        assert!(wait_quantile_ndd1(1.1, 2, 10.0, 1.0).is_nan());
        assert!(wait_quantile_ndd1(0.5, 2, 10.0, f64::NAN).is_nan());
    }
}
