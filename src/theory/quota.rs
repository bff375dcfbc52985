//! Servers that refuse: token buckets, and quotas of so many requests per window of time.
//!
//! A token bucket holds at most B tokens, gains r tokens per second and starts full; a request that
//! finds a whole token takes it, any other is refused. A quota grants Q requests per window of W and
//! refuses the rest until the next window begins.

use super::range::{is_non_negative, is_positive};
use super::rounding::{intervals_to_cover, intervals_within};

/// Time from the first request to the first that a token bucket refuses: B/(λ - r).
///
/// * Range: `bucket` ≥ 0 (tokens), `refill_rate_per_s` ≥ 0, `offered_rate_per_s` ≥ 0; NaN otherwise.
///   Infinite if the bucket refills as fast as requests come.
/// * Holds for a bucket that starts full and requests that come smoothly, as if they were a fluid.
///   Requests at even gaps are refused a little earlier: by less than 1/(λ - r), the time that the
///   last token would have lasted. For those, [`token_bucket_requests_before_refusal`] is exact. A
///   burst of more than B requests is refused at once.
/// * Source: the bucket loses λ - r tokens per second.
///
/// ```
/// use pollpace::theory::token_bucket_first_refusal;
/// assert_eq!(token_bucket_first_refusal(250.0, 25.0, 50.0), 10.0);
/// assert_eq!(token_bucket_first_refusal(250.0, 25.0, 25.0), f64::INFINITY);
/// ```
pub fn token_bucket_first_refusal(
    bucket: f64,
    refill_rate_per_s: f64,
    offered_rate_per_s: f64,
) -> f64 {
    if !is_token_bucket(bucket, refill_rate_per_s, offered_rate_per_s) {
        f64::NAN
    } else if offered_rate_per_s <= refill_rate_per_s {
        f64::INFINITY
    } else {
        bucket / (offered_rate_per_s - refill_rate_per_s)
    }
}

/// Requests at even gaps that a token bucket grants before the first it refuses.
///
/// ⌊(B - 1)/(1 - r/λ)⌋ + 1, so the first request that is refused comes that number of gaps of 1/λ
/// after the first of all.
///
/// * Range: `bucket` ≥ 0 (tokens), `refill_rate_per_s` ≥ 0, `offered_rate_per_s` ≥ 0; NaN otherwise.
///   Infinite if the bucket refills as fast as requests come, but 0 if it never holds a whole token.
/// * Holds for a bucket that starts full and refills without steps, and requests at even gaps.
/// * Source: request n + 1 finds B - n(1 - r/λ) tokens and needs one.
///
/// ```
/// use pollpace::theory::token_bucket_requests_before_refusal;
/// // The 666th request, sent 16.625 s after the first; as a fluid 16.667 s.
/// assert_eq!(token_bucket_requests_before_refusal(250.0, 25.0, 40.0), 665.0);
/// ```
pub fn token_bucket_requests_before_refusal(
    bucket: f64,
    refill_rate_per_s: f64,
    offered_rate_per_s: f64,
) -> f64 {
    if !is_token_bucket(bucket, refill_rate_per_s, offered_rate_per_s) {
        f64::NAN
    } else if bucket < 1.0 {
        0.0
    } else if offered_rate_per_s <= refill_rate_per_s {
        f64::INFINITY
    } else {
        let lost_each = (offered_rate_per_s - refill_rate_per_s) / offered_rate_per_s;
        intervals_within((bucket - 1.0) / lost_each) + 1.0
    }
}

/// Requests that a token bucket grants within `time_s` of the first: the smaller of λt and B + rt.
///
/// * Range: `time_s` ≥ 0, `bucket` ≥ 0 (tokens), `refill_rate_per_s` ≥ 0, `offered_rate_per_s` ≥ 0;
///   NaN otherwise.
/// * Holds for a bucket of two tokens or more that starts full, and requests that come smoothly:
///   at even gaps, within two of the number granted. A smaller bucket grants less, down to half,
///   because it overflows in the gap after a refusal, and one of less than a token grants nothing.
/// * Source: the arrival curve of a leaky bucket (Le Boudec & Thiran, *Network Calculus*).
///
/// ```
/// use pollpace::theory::token_bucket_granted;
/// assert_eq!(token_bucket_granted(10.0, 250.0, 25.0, 40.0), 400.0);
/// assert_eq!(token_bucket_granted(60.0, 250.0, 25.0, 40.0), 1750.0);
/// ```
pub fn token_bucket_granted(
    time_s: f64,
    bucket: f64,
    refill_rate_per_s: f64,
    offered_rate_per_s: f64,
) -> f64 {
    if is_non_negative(time_s) && is_token_bucket(bucket, refill_rate_per_s, offered_rate_per_s) {
        (offered_rate_per_s * time_s).min(bucket + refill_rate_per_s * time_s)
    } else {
        f64::NAN
    }
}

/// Time from the start of a window to the first request that its quota refuses: Q/λ.
///
/// * Range: `offered_rate_per_s` ≥ 0; NaN otherwise. A result not below the length of the window
///   means that the quota is not spent.
/// * Holds for requests at even gaps, the first at the start of the window; one gap later if the
///   first comes after a gap.
/// * Source: counting requests.
///
/// ```
/// use pollpace::theory::quota_spent_after;
/// // 30 calls every 10 s against 5000 per hour: dark after 27.8 minutes.
/// assert!((quota_spent_after(5000, 3.0) / 60.0 - 27.78).abs() < 0.01);
/// ```
pub fn quota_spent_after(quota: u64, offered_rate_per_s: f64) -> f64 {
    if !is_non_negative(offered_rate_per_s) {
        f64::NAN
    } else if offered_rate_per_s == 0.0 {
        f64::INFINITY
    } else {
        quota as f64 / offered_rate_per_s
    }
}

/// Share of each window for which its quota is spent, which is also the share of requests refused.
///
/// 1 - Q/(λW), and 0 if the quota lasts.
///
/// * Range: `window_s` > 0, `offered_rate_per_s` ≥ 0; NaN otherwise. The result has no unit.
/// * Holds under the conditions of [`quota_spent_after`], for requests that keep coming while they
///   are refused.
/// * Source: the rest of the window after [`quota_spent_after`].
///
/// ```
/// use pollpace::theory::quota_dark_share;
/// assert_eq!(quota_dark_share(1000, 3600.0, 0.5), 4.0 / 9.0);
/// assert_eq!(quota_dark_share(1000, 3600.0, 0.2), 0.0);
/// ```
pub fn quota_dark_share(quota: u64, window_s: f64, offered_rate_per_s: f64) -> f64 {
    if is_positive(window_s) {
        let lit_share = quota_spent_after(quota, offered_rate_per_s) / window_s;
        if lit_share.is_nan() {
            f64::NAN
        } else {
            (1.0 - lit_share).max(0.0)
        }
    } else {
        f64::NAN
    }
}

/// Most pollers that a quota never refuses, with their phases spread evenly over the interval.
///
/// ⌊QT/W⌋ for one call per poll, and ⌊⌊Q/k⌋T/W⌋ for k.
///
/// * Range: `calls_per_poll` ≥ 1, `window_s` > 0, `interval_s` > 0; NaN otherwise.
/// * Holds for a fixed interval from send to send, evenly spread phases, and the calls of one poll
///   sent together. It holds wherever the windows begin, and for a window that slides. If the
///   interval divides the window it holds for any phases; if not, see
///   [`pollers_within_quota_in_step`]. It is also the number that a token bucket refilled with Q
///   tokens per W bears in the long run, at one call per poll.
/// * Source: N pollers send at even gaps of T/N, so a window holds ⌈NW/T⌉ of their polls at most.
///
/// ```
/// use pollpace::theory::pollers_within_quota;
/// assert_eq!(pollers_within_quota(1, 1000, 3600.0, 30.0), 8.0);
/// assert_eq!(pollers_within_quota(6, 5000, 3600.0, 10.0), 2.0);
/// ```
pub fn pollers_within_quota(
    calls_per_poll: u64,
    quota: u64,
    window_s: f64,
    interval_s: f64,
) -> f64 {
    if calls_per_poll >= 1 && is_positive(window_s) && is_positive(interval_s) {
        let polls = (quota / calls_per_poll) as f64;
        intervals_within(polls * interval_s / window_s)
    } else {
        f64::NAN
    }
}

/// Most pollers that a quota never refuses, in step with each other or with phases not known.
///
/// ⌊Q/(k⌈W/T⌉)⌋ for k calls per poll.
///
/// * Range: `calls_per_poll` ≥ 1, `window_s` > 0, `interval_s` > 0; NaN otherwise.
/// * Holds for a fixed interval from send to send, and the calls of one poll sent together. It holds
///   wherever the windows begin, and for a window that slides.
/// * Source: a window holds ⌈W/T⌉ polls of one poller at most, and in step those of all.
///
/// ```
/// use pollpace::theory::{pollers_within_quota, pollers_within_quota_in_step};
/// assert_eq!(pollers_within_quota_in_step(1, 1000, 3600.0, 30.0), 8.0);
/// // A window shorter than the interval: ten at once, or ten in each of thirty seconds.
/// assert_eq!(pollers_within_quota_in_step(1, 10, 1.0, 30.0), 10.0);
/// assert_eq!(pollers_within_quota(1, 10, 1.0, 30.0), 300.0);
/// ```
pub fn pollers_within_quota_in_step(
    calls_per_poll: u64,
    quota: u64,
    window_s: f64,
    interval_s: f64,
) -> f64 {
    if calls_per_poll >= 1 && is_positive(window_s) && is_positive(interval_s) {
        let polls_each = intervals_to_cover(window_s / interval_s);
        intervals_within(quota as f64 / (calls_per_poll as f64 * polls_each))
    } else {
        f64::NAN
    }
}

/// Shortest interval at which a quota never refuses pollers, with their phases spread evenly over
/// the interval.
///
/// NW/Q for one call per poll, and NW/⌊Q/k⌋ for k. The plain NkW/Q is a little shorter if k does not
/// divide the quota: the last poll of a window then no longer has all of its calls granted.
///
/// * Range: `pollers` ≥ 1, `calls_per_poll` ≥ 1, `window_s` > 0; NaN otherwise. Infinite if the
///   quota is less than the calls of one poll.
/// * Holds under the conditions of [`pollers_within_quota`]. One poller alone always meets that on
///   phases.
/// * Source: [`pollers_within_quota`] solved for the interval.
///
/// ```
/// use pollpace::theory::shortest_interval_within_quota;
/// assert_eq!(shortest_interval_within_quota(9, 1, 1000, 3600.0), 32.4);
/// // 277 polls of 18 calls a day; 86400 · 18/5000 would be 311.04 s.
/// let interval_s = shortest_interval_within_quota(1, 18, 5000, 86_400.0);
/// assert!((interval_s - 311.913).abs() < 1e-3);
/// ```
pub fn shortest_interval_within_quota(
    pollers: u64,
    calls_per_poll: u64,
    quota: u64,
    window_s: f64,
) -> f64 {
    if pollers >= 1 && calls_per_poll >= 1 && is_positive(window_s) {
        pollers as f64 * window_s / (quota / calls_per_poll) as f64
    } else {
        f64::NAN
    }
}

/// Shortest interval at which a quota never refuses pollers, in step with each other or with phases
/// not known: W/⌊Q/(Nk)⌋ for k calls per poll.
///
/// * Range: `pollers` ≥ 1, `calls_per_poll` ≥ 1, `window_s` > 0; NaN otherwise. Infinite if the
///   quota is less than the calls of one poll of each.
/// * Holds under the conditions of [`pollers_within_quota_in_step`].
/// * Source: [`pollers_within_quota_in_step`] solved for the interval.
///
/// ```
/// use pollpace::theory::shortest_interval_within_quota_in_step;
/// // 111 polls of each in an hour.
/// let interval_s = shortest_interval_within_quota_in_step(9, 1, 1000, 3600.0);
/// assert!((interval_s - 32.432).abs() < 1e-3);
/// ```
pub fn shortest_interval_within_quota_in_step(
    pollers: u64,
    calls_per_poll: u64,
    quota: u64,
    window_s: f64,
) -> f64 {
    if pollers >= 1 && calls_per_poll >= 1 && is_positive(window_s) {
        let polls_each = intervals_within(quota as f64 / (pollers as f64 * calls_per_poll as f64));
        window_s / polls_each
    } else {
        f64::NAN
    }
}

fn is_token_bucket(bucket: f64, refill_rate_per_s: f64, offered_rate_per_s: f64) -> bool {
    is_non_negative(bucket)
        && is_non_negative(refill_rate_per_s)
        && is_non_negative(offered_rate_per_s)
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;
    use crate::random::{Key, Purpose, unit};

    /// Requests n/λ, n = 0, 1, ...: whether each is granted. Tokens are counted in parts of 1/λ, so
    /// that whole numbers are enough.
    fn granted_in_turn(bucket: u64, refill: u64, offered: u64) -> impl Iterator<Item = bool> {
        let mut parts = bucket * offered;
        (0..).map(move |request| {
            if request > 0 {
                parts = (parts + refill).min(bucket * offered);
            }
            let granted = parts >= offered;
            parts -= if granted { offered } else { 0 };
            granted
        })
    }

    #[test]
    fn token_bucket_matches_reference_values() {
        assert_close(
            token_bucket_first_refusal(250.0, 25.0, 40.0),
            16.666666666666668,
            1e-15,
        );
        assert_close(
            token_bucket_first_refusal(100.0, 20.0, 50.0),
            10.0 / 3.0,
            1e-15,
        );
        assert_eq!(token_bucket_first_refusal(40.0, 10.0, 12.0), 20.0);
        assert_eq!(token_bucket_granted(120.0, 100.0, 20.0, 50.0), 2500.0);
        assert_eq!(token_bucket_granted(120.0, 40.0, 10.0, 12.0), 1240.0);
        assert_eq!(
            token_bucket_requests_before_refusal(0.5, 9.0, 1.0),
            0.0,
            "no whole token"
        );
        assert_eq!(
            token_bucket_requests_before_refusal(1.0, 9.0, 9.0),
            f64::INFINITY
        );
        assert_eq!(token_bucket_requests_before_refusal(7.0, 0.0, 9.0), 7.0);
        // In binary (1.7 - 1.0)/(1 - 0.3/1.0) is not quite 1.
        assert_eq!(token_bucket_requests_before_refusal(1.7, 0.3, 1.0), 2.0);
    }

    #[test]
    fn token_bucket_matches_requests_at_even_gaps() {
        for bucket in 1..30 {
            for offered in [1, 3, 7, 12, 40] {
                for refill in 0..offered {
                    let (size, refill_rate, rate) = (bucket as f64, refill as f64, offered as f64);
                    let first = granted_in_turn(bucket, refill, offered)
                        .position(|granted| !granted)
                        .unwrap() as f64;
                    assert_eq!(
                        token_bucket_requests_before_refusal(size, refill_rate, rate),
                        first
                    );
                    let early_s =
                        token_bucket_first_refusal(size, refill_rate, rate) - first / rate;
                    let last_token_s = 1.0 / (rate - refill_rate);
                    assert!(
                        last_token_s - 1.0 / rate - 1e-9 < early_s && early_s < last_token_s + 1e-9
                    );
                    if bucket == 1 {
                        continue; // see the test of small buckets
                    }
                    let mut granted = 0.0;
                    for (request, yes) in granted_in_turn(bucket, refill, offered)
                        .take(200)
                        .enumerate()
                    {
                        granted += if yes { 1.0 } else { 0.0 };
                        let time_s = request as f64 / rate;
                        let fluid = token_bucket_granted(time_s, size, refill_rate, rate);
                        assert!((granted - fluid).abs() < 2.0);
                    }
                }
            }
        }
    }

    #[test]
    fn a_bucket_of_one_token_overflows_between_requests() {
        // 0 tokens, 0.9: refused, 1.8 cut to 1: granted, ...
        let granted = granted_in_turn(1, 9, 10).take(1000).filter(|&yes| yes);
        assert_eq!(granted.count(), 500);
        assert_eq!(token_bucket_granted(100.0, 1.0, 9.0, 10.0), 901.0);
    }

    #[test]
    fn token_bucket_matches_random_requests() {
        let (bucket, refill, offered) = (250.0, 25.0, 40.0);
        let (mut tokens, mut time_s, mut granted) = (bucket, 0.0, 0.0);
        for request in 0.. {
            let drawn = unit(Key(11).draw(Purpose::Arrival, request));
            let gap_s = -libm::log(drawn) / offered;
            time_s += gap_s;
            if time_s > 600.0 {
                break;
            }
            tokens = f64::min(bucket, tokens + refill * gap_s);
            if tokens >= 1.0 {
                tokens -= 1.0;
                granted += 1.0;
            }
        }
        let expected = token_bucket_granted(600.0, bucket, refill, offered);
        assert_close(granted, expected, 0.002);
    }

    /// Calls granted and refused of each window in turn; calls come at `gap_s`, the first at 0.
    fn windows(quota: u64, window_s: u64, gap_s: u64, count: u64) -> Vec<(u64, u64)> {
        let mut windows = vec![(0, 0); count as usize];
        for call in 0.. {
            let Some(window) = windows.get_mut((call * gap_s / window_s) as usize) else {
                break;
            };
            if window.0 < quota {
                window.0 += 1;
            } else {
                window.1 += 1;
            }
        }
        windows
    }

    #[test]
    fn spent_quota_matches_a_count() {
        for (quota, window_s, gap_s) in [(10, 64, 4), (3, 64, 1), (16, 64, 4), (20, 64, 4)] {
            let rate = 1.0 / gap_s as f64;
            let spent_s = quota_spent_after(quota, rate);
            let refused_s = quota * gap_s; // the call after the quota
            assert_eq!(spent_s, refused_s as f64);
            let (mut granted, mut refused) = (0, 0);
            for window in windows(quota, window_s, gap_s, 5) {
                granted += window.0;
                refused += window.1;
            }
            let share = quota_dark_share(quota, window_s as f64, rate);
            assert_eq!(share, refused as f64 / (granted + refused) as f64);
            assert_eq!(share > 0.0, spent_s < window_s as f64);
        }
        assert_close(quota_spent_after(5000, 3.0), 1666.6666666666667, 1e-15);
        assert_close(quota_spent_after(120, 209.0), 0.574_162_7, 1e-6);
        assert_eq!(quota_spent_after(1, 0.0), f64::INFINITY);
        assert_eq!(quota_dark_share(1, 60.0, 0.0), 0.0);
        assert_eq!(quota_dark_share(0, 60.0, 1.0), 1.0);
    }

    /// Whether the quota refuses a call of polls at these times within 40 windows from `start_s` on.
    fn refuses(
        polls_s: impl Iterator<Item = u64>,
        calls_per_poll: u64,
        quota: u64,
        window_s: u64,
        start_s: u64,
    ) -> bool {
        let mut calls = [0; 40];
        for poll_s in polls_s.filter(|&poll_s| poll_s >= start_s) {
            let Some(window) = calls.get_mut(((poll_s - start_s) / window_s) as usize) else {
                break;
            };
            *window += calls_per_poll;
        }
        calls.iter().any(|&calls| calls > quota)
    }

    #[test]
    fn pollers_within_quota_are_never_refused_and_one_more_is() {
        for calls in [1, 2, 3] {
            for quota in [3, 7, 10] {
                for window_s in [5, 12] {
                    for interval_s in [1, 3, 4, 7, 30] {
                        check_pollers(calls, quota, window_s, interval_s);
                    }
                }
            }
        }
    }

    fn check_pollers(calls: u64, quota: u64, window_s: u64, interval_s: u64) {
        let what = format!("{calls} calls, {quota} per {window_s} s, every {interval_s} s");
        let most = pollers_within_quota(calls, quota, window_s as f64, interval_s as f64) as u64;
        for (pollers, refused) in [(most, false), (most + 1, true)] {
            if pollers == 0 {
                continue;
            }
            // Times in parts of a second, so that the gap is a whole number of them.
            let spread = (0..).map(|poll| poll * interval_s);
            let found = [0, 1, 2].map(|start| {
                let start = start * pollers;
                refuses(spread.clone(), calls, quota, window_s * pollers, start)
            });
            assert_eq!(found, [refused; 3], "{what}, {pollers} spread");
        }
        let most =
            pollers_within_quota_in_step(calls, quota, window_s as f64, interval_s as f64) as u64;
        for (pollers, refused) in [(most, false), (most + 1, true)] {
            let in_step = (0..).map(|poll| poll * interval_s);
            let found = [0, 1, 2]
                .map(|start| refuses(in_step.clone(), calls * pollers, quota, window_s, start));
            assert_eq!(found, [refused; 3], "{what}, {pollers} in step");
        }
    }

    #[test]
    fn any_phases_do_if_the_interval_divides_the_window() {
        let (quota, window_s, interval_s) = (1000, 3600, 30);
        let most = pollers_within_quota(1, quota, 3600.0, 30.0);
        assert_eq!(most, pollers_within_quota_in_step(1, quota, 3600.0, 30.0));
        for run in 0..5 {
            let mut polls_s: Vec<u64> = (0..most as u64)
                .flat_map(|poller| {
                    let phase = unit(Key::new(11, run).part(poller).draw(Purpose::Phase, 0));
                    let phase_s = (phase * interval_s as f64) as u64;
                    (0..600).map(move |poll| phase_s + poll * interval_s)
                })
                .collect();
            polls_s.sort_unstable();
            assert!(!refuses(polls_s.into_iter(), 1, quota, window_s, 0));
        }
    }

    #[test]
    fn quota_limits_match_reference_values() {
        for (interval_s, most) in [(30.0, 125.0), (10.0, 41.0), (5.0, 20.0)] {
            assert_eq!(pollers_within_quota(1, 15_000, 3600.0, interval_s), most);
        }
        // A token bucket of 20 per second, asked every 5 s.
        assert_eq!(pollers_within_quota(1, 20, 1.0, 5.0), 100.0);
        // 288 polls a day: 17 calls fit into 5000, 18 do not.
        assert_eq!(pollers_within_quota(17, 5000, 86_400.0, 300.0), 1.0);
        assert_eq!(pollers_within_quota(18, 5000, 86_400.0, 300.0), 0.0);
        assert_close(
            shortest_interval_within_quota(1, 18, 5000, 86_400.0),
            311.04,
            0.01,
        );
        assert_eq!(shortest_interval_within_quota(1, 5, 4, 60.0), f64::INFINITY);
        assert_eq!(
            shortest_interval_within_quota_in_step(5, 1, 4, 60.0),
            f64::INFINITY
        );
    }

    #[test]
    fn shortest_intervals_bear_their_pollers_and_shorter_ones_do_not() {
        for pollers in 1..12 {
            for calls in 1..4 {
                for quota in 40..60 {
                    let spread_s = shortest_interval_within_quota(pollers, calls, quota, 60.0);
                    let in_step_s =
                        shortest_interval_within_quota_in_step(pollers, calls, quota, 60.0);
                    let most = |interval_s| pollers_within_quota(calls, quota, 60.0, interval_s);
                    assert!(most(spread_s) >= pollers as f64);
                    assert!(most(spread_s * (1.0 - 1e-9)) < pollers as f64);
                    let most =
                        |interval_s| pollers_within_quota_in_step(calls, quota, 60.0, interval_s);
                    assert!(most(in_step_s) >= pollers as f64);
                    assert!(most(in_step_s * (1.0 - 1e-9)) < pollers as f64);
                    assert!(spread_s <= in_step_s);
                }
            }
        }
    }

    #[test]
    fn out_of_range_is_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(token_bucket_first_refusal(bad, 1.0, 2.0).is_nan());
            assert!(token_bucket_first_refusal(1.0, bad, 2.0).is_nan());
            assert!(token_bucket_requests_before_refusal(1.0, 1.0, bad).is_nan());
            assert!(token_bucket_granted(bad, 1.0, 1.0, 1.0).is_nan());
            assert!(quota_spent_after(1, bad).is_nan());
            assert!(quota_dark_share(1, bad, 1.0).is_nan());
            assert!(quota_dark_share(1, 1.0, bad).is_nan());
            assert!(pollers_within_quota(1, 1, bad, 1.0).is_nan());
            assert!(pollers_within_quota_in_step(1, 1, 1.0, bad).is_nan());
            assert!(shortest_interval_within_quota(1, 1, 1, bad).is_nan());
            assert!(shortest_interval_within_quota_in_step(1, 1, 1, bad).is_nan());
        }
        assert!(pollers_within_quota(0, 1, 1.0, 1.0).is_nan());
        assert!(pollers_within_quota_in_step(0, 1, 1.0, 1.0).is_nan());
        assert!(shortest_interval_within_quota(0, 1, 1, 1.0).is_nan());
        assert!(shortest_interval_within_quota_in_step(1, 0, 1, 1.0).is_nan());
    }
}
