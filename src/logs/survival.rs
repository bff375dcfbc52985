//! How long things last, from observations that are exact, between two instants, or not over yet.
//!
//! Where all observations are exact or right-censored, the estimate is that of Kaplan and Meier (1958, J. Am. Stat. Assoc. 53, 457–481).
//!
//! Where some are known only between two instants, it is a histogram of great likelihood, found by self-consistency (Turnbull, 1976, J. R. Stat. Soc. B 38, 290–295), an EM: the
//! mass of a bar is the mean, over all observations, of the chance that the observation lies in it, given the masses so far. After each round, densities of neighbours
//! are smoothed (the EMS of Silverman, Jones, Wilson and Nychka, 1990, J. R. Stat. Soc. B 52, 271–324); the last rounds are without, so that no mass is left where no observation is. Bars
//! are half as wide as the intervals around them, and mass is spread evenly within a bar.
//!
//! Turnbull's own estimate has neither bars nor smoothing: its mass may only lie where an interval begins and the next end of any is the end of one. Loops that poll at nearly the
//! same ages leave slivers of that kind between the first and the last of them, and all of the mass would be there, just before a poll: completion latencies would come
//! out too short.
//!
//! Censoring is taken to be independent of what is measured.

/// One observation, in any unit, 0 or above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observed {
    /// Exactly this long.
    Exactly(f64),
    /// Longer than the first, at most as long as the second.
    Between(f64, f64),
    /// Longer than this.
    Beyond(f64),
}

/// Mass on an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mass {
    /// Where it begins.
    pub low: f64,
    /// Where it ends; as `low` for a point, infinite for what is beyond every observation.
    pub high: f64,
    /// Share of all.
    pub share: f64,
}

/// Rounds with smoothing …
const SMOOTHED: usize = 200;
/// … and without.
const PLAIN: usize = 10;
/// Bars, at most.
const BARS: usize = 20_000;
/// A bar is so wide for each unit of the middle length of the intervals around it.
const WIDTH: f64 = 0.5;
/// Intervals that count as around a bar.
const AROUND: usize = 50;

/// The estimate: masses in ascending order, which sum to 1. Empty for no observations.
pub fn estimate(observations: &[Observed]) -> Vec<Mass> {
    let between = |o: &Observed| matches!(o, Observed::Between(low, high) if low < high);
    let mut masses = if observations.iter().any(between) {
        histogram(observations)
    } else {
        kaplan_meier(observations)
    };
    masses.retain(|m| m.share > 0.0);
    masses
}

/// The product-limit estimate of exact and right-censored observations.
fn kaplan_meier(observations: &[Observed]) -> Vec<Mass> {
    // Of what happens at one instant, ends come before censoring.
    let mut times: Vec<(f64, bool)> = observations
        .iter()
        .map(|o| match *o {
            Observed::Exactly(x) | Observed::Between(_, x) => (x, false),
            Observed::Beyond(x) => (x, true),
        })
        .collect();
    times.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut masses: Vec<Mass> = Vec::new();
    let mut surviving = 1.0;
    for (at, (time, censored)) in times.iter().enumerate() {
        if *censored {
            continue;
        }
        let share = surviving / (times.len() - at) as f64;
        surviving -= share;
        match masses.last_mut() {
            Some(last) if last.low == *time => last.share += share,
            _ => masses.push(Mass {
                low: *time,
                high: *time,
                share,
            }),
        }
    }
    if let Some((longest, true)) = times.last() {
        masses.push(Mass {
            low: *longest,
            high: f64::INFINITY,
            share: surviving,
        });
    }
    masses
}

/// What an observation covers: from a place in one bar to a place in another, each place as the bar's number and the part of it that lies below.
struct Covers {
    low: (usize, f64),
    high: (usize, f64),
}

/// The histogram of greatest likelihood.
fn histogram(observations: &[Observed]) -> Vec<Mass> {
    let edges = edges(observations);
    let bars = edges.len() - 1;
    let place = |x: f64| {
        let bar = edges.partition_point(|e| *e <= x).clamp(1, bars) - 1;
        (
            bar,
            ((x - edges[bar]) / (edges[bar + 1] - edges[bar])).clamp(0.0, 1.0),
        )
    };
    let last = edges[bars];
    let covers: Vec<Covers> = observations
        .iter()
        .map(|o| match *o {
            Observed::Between(low, high) if low < high => Covers {
                low: place(low),
                high: place(high),
            },
            // An exact observation lies in its bar, wherever in it.
            Observed::Exactly(x) | Observed::Between(_, x) => Covers {
                low: (place(x).0, 0.0),
                high: (place(x).0, 1.0),
            },
            // What is beyond has a bar of its own after the last.
            Observed::Beyond(x) if x < last => Covers {
                low: place(x),
                high: (bars, 1.0),
            },
            Observed::Beyond(_) => Covers {
                low: (bars, 0.0),
                high: (bars, 1.0),
            },
        })
        .collect();
    let mut shares: Vec<f64> = edges.windows(2).map(|e| (e[1] - e[0]) / last).collect();
    let censored = |o: &&Observed| matches!(o, Observed::Beyond(_));
    let beyond = observations.iter().filter(censored).count() as f64 / observations.len() as f64;
    shares.iter_mut().for_each(|s| *s *= 1.0 - 0.5 * beyond);
    shares.push(0.5 * beyond);
    for round in 0..SMOOTHED + PLAIN {
        improve(&covers, &mut shares);
        if round < SMOOTHED {
            smooth(&edges, &mut shares);
        }
    }
    let ends = edges.iter().copied().chain([f64::INFINITY]);
    ends.clone()
        .zip(ends.skip(1))
        .zip(shares)
        .map(|((low, high), share)| Mass { low, high, share })
        .collect()
}

/// The edges of the bars, from 0 to the last end that was seen.
fn edges(observations: &[Observed]) -> Vec<f64> {
    let mut intervals: Vec<(f64, f64)> = Vec::new();
    let mut last = 0.0f64;
    for o in observations {
        match *o {
            Observed::Between(low, high) => {
                intervals.push((0.5 * (low + high), high - low));
                last = last.max(high);
            }
            Observed::Exactly(x) => last = last.max(x),
            Observed::Beyond(_) => {}
        }
    }
    intervals.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let narrowest = last / BARS as f64;
    let mut edges = vec![0.0];
    let mut edge = 0.0;
    while edge < last {
        let next = intervals.partition_point(|i| i.0 < edge);
        let to = (next + AROUND).min(intervals.len());
        let around = &intervals[to.saturating_sub(AROUND)..to];
        let mut lengths: Vec<f64> = around.iter().map(|i| i.1).collect();
        let middle = lengths.len() / 2;
        let (_, length, _) = lengths.select_nth_unstable_by(middle, f64::total_cmp);
        edge += (WIDTH * *length).max(narrowest);
        edges.push(edge);
    }
    edges
}

/// One round of the EM.
fn improve(covers: &[Covers], shares: &mut [f64]) {
    let mut below = Vec::with_capacity(shares.len() + 1);
    let mut sum = 0.0;
    below.push(0.0);
    for share in shares.iter() {
        sum += share;
        below.push(sum);
    }
    let under = |(bar, part): (usize, f64)| below[bar] + part * shares[bar];
    // What an observation gives to a bar is the part of the bar that it covers ÷ the mass that it covers in all: a step at its first bar and one
    // after its last, less what of these two it does not cover.
    let mut steps = vec![0.0; shares.len() + 1];
    let mut parts = vec![0.0; shares.len()];
    let mut all = 0.0;
    for c in covers {
        let mass = under(c.high) - under(c.low);
        if mass > 0.0 {
            let each = 1.0 / mass;
            steps[c.low.0] += each;
            steps[c.high.0 + 1] -= each;
            parts[c.low.0] -= each * c.low.1;
            parts[c.high.0] -= each * (1.0 - c.high.1);
            all += 1.0;
        }
    }
    let mut given = 0.0;
    for ((share, step), part) in shares.iter_mut().zip(&steps).zip(&parts) {
        given += step;
        *share = (*share * (given + part) / all).max(0.0);
    }
}

/// Smooths the densities of the bars (¼, ½, ¼; the first and the last have no neighbour but themselves on one side), and leaves their sum as it is.
fn smooth(edges: &[f64], shares: &mut [f64]) {
    let bars = edges.len() - 1;
    let width = |i: usize| edges[i + 1] - edges[i];
    let sum: f64 = shares[..bars].iter().sum();
    let density: Vec<f64> = (0..bars).map(|i| shares[i] / width(i)).collect();
    for (i, share) in shares[..bars].iter_mut().enumerate() {
        let (before, after) = (density[i.saturating_sub(1)], density[(i + 1).min(bars - 1)]);
        *share = width(i) * (0.25 * before + 0.5 * density[i] + 0.25 * after);
    }
    let smoothed: f64 = shares[..bars].iter().sum();
    if smoothed > 0.0 {
        shares[..bars].iter_mut().for_each(|s| *s *= sum / smoothed);
    }
}

/// `count` values at evenly spaced quantiles of the finite part, mass spread uniformly within its interval, and the share of the mass that is beyond
/// every observation.
pub fn quantiles(masses: &[Mass], count: usize) -> (Vec<f64>, f64) {
    let finite: Vec<&Mass> = masses.iter().filter(|m| m.high.is_finite()).collect();
    let inside: f64 = finite.iter().map(|m| m.share).sum();
    let total: f64 = masses.iter().map(|m| m.share).sum();
    if finite.is_empty() || inside <= 0.0 {
        return (Vec::new(), if total > 0.0 { 1.0 } else { 0.0 });
    }
    let mut values = Vec::with_capacity(count);
    let (mut at, mut below) = (0, 0.0);
    for i in 0..count {
        let wanted = (i as f64 + 0.5) / count as f64 * inside;
        while at + 1 < finite.len() && below + finite[at].share < wanted {
            below += finite[at].share;
            at += 1;
        }
        let m = finite[at];
        let part = ((wanted - below) / m.share).clamp(0.0, 1.0);
        values.push(m.low + part * (m.high - m.low));
    }
    (values, (1.0 - inside / total).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::Observed::*;
    use super::*;
    use crate::random::mix;

    fn close(found: &[Mass], expected: &[(f64, f64, f64)]) {
        let same = |m: &Mass, e: &(f64, f64, f64)| {
            m.low == e.0 && m.high == e.1 && (m.share - e.2).abs() < 1e-4
        };
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(|(m, e)| same(m, e)),
            "{found:?} is not {expected:?}"
        );
    }

    #[test]
    fn exact_observations_have_a_mass_each() {
        let found = estimate(&[Exactly(3.0), Exactly(1.0), Exactly(3.0), Exactly(2.0)]);
        close(
            &found,
            &[(1.0, 1.0, 0.25), (2.0, 2.0, 0.25), (3.0, 3.0, 0.5)],
        );
    }

    /// The remission times of 21 patients under 6-MP (Freireich, 1963), with the survival that textbooks give: 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448.
    #[test]
    fn with_right_censoring_it_is_the_estimate_of_kaplan_and_meier() {
        let ended = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0].map(Exactly);
        let left = [
            6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ]
        .map(Beyond);
        let found = estimate(&[&ended[..], &left[..]].concat());
        let mut survival = 1.0;
        let curve: Vec<f64> = found
            .iter()
            .map(|m| {
                survival -= m.share;
                (survival * 1000.0f64).round() / 1000.0
            })
            .collect();
        assert_eq!(curve, [0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448, 0.0]);
        assert_eq!(found.last().map(|m| m.high), Some(f64::INFINITY));
    }

    /// Where intervals do not overlap, each has the mass of its count.
    #[test]
    fn disjoint_intervals_have_the_masses_of_their_counts() {
        let counts = [(0.0, 200), (2.0, 100), (4.0, 150), (8.0, 50)];
        let observations: Vec<Observed> = counts
            .iter()
            .flat_map(|(low, count)| vec![Between(*low, low + 2.0); *count])
            .collect();
        let masses = estimate(&observations);
        for (low, count) in counts {
            let inside = masses
                .iter()
                .filter(|m| m.low >= low && m.high <= low + 2.0);
            let share: f64 = inside.map(|m| m.share).sum();
            assert!(
                (share - count as f64 / 500.0).abs() < 2e-3,
                "{low}: {share}"
            );
        }
        let nowhere: f64 = masses
            .iter()
            .filter(|m| m.low >= 6.0 && m.high <= 8.0)
            .map(|m| m.share)
            .sum();
        assert_eq!(nowhere, 0.0);
    }

    /// A first poll at once sees the few tasks that are over already; how many happen to be is no reason to move mass within the first interval.
    #[test]
    fn a_sliver_does_not_shape_what_lies_beside_it() {
        for few in [0, 2, 6] {
            let mut observations = vec![Between(0.02, 5.0); 300];
            observations.extend([Between(5.0, 10.0); 250]);
            observations.extend(vec![Between(0.0, 0.02); few]);
            let (values, _) = quantiles(&estimate(&observations), 1_000);
            let early = values.iter().filter(|x| **x < 2.5).count() as f64;
            let first = values.iter().filter(|x| **x < 5.0).count() as f64;
            assert!(
                (0.42..0.62).contains(&(early / first)),
                "{few}: {early} of {first}"
            );
        }
    }

    /// Exact and censored observations beside intervals keep their weights.
    #[test]
    fn exact_and_censored_observations_count_beside_intervals() {
        let mut observations = vec![Between(0.0, 4.0); 40];
        observations.extend([Exactly(7.0); 40]);
        observations.extend([Beyond(8.0); 20]);
        let masses = estimate(&observations);
        let share = |low: f64, high: f64| -> f64 {
            masses
                .iter()
                .filter(|m| m.low >= low && m.high <= high)
                .map(|m| m.share)
                .sum()
        };
        assert!((share(0.0, 4.0) - 0.4).abs() < 1e-3);
        assert!((share(6.0, 8.0) - 0.4).abs() < 1e-3);
        assert!((share(8.0, f64::INFINITY) - 0.2).abs() < 1e-3);
    }

    /// Loops that poll at nearly the same ages: the mass stays spread over their intervals, and does not gather just before the polls.
    #[test]
    fn mass_does_not_gather_between_loops_that_poll_nearly_together() {
        let uniform = |i: u64| (mix(i) >> 11) as f64 / (1u64 << 53) as f64;
        let observations: Vec<Observed> = (0..2_000)
            .map(|i| {
                let late = 0.05 * uniform(i);
                let k = (uniform(i + 5_000) * 3.0).floor();
                Between(
                    (5.0 * k + late * k).max(0.0),
                    5.0 * (k + 1.0) + late * (k + 1.0),
                )
            })
            .collect();
        let (values, _) = quantiles(&estimate(&observations), 3_000);
        let mean = values.iter().sum::<f64>() / 3_000.0;
        assert!((mean - 7.5).abs() < 0.15, "{mean}");
    }

    #[test]
    fn what_is_beyond_or_missing_is_told() {
        assert!(estimate(&[]).is_empty());
        close(&estimate(&[Beyond(4.0)]), &[(4.0, f64::INFINITY, 1.0)]);
    }

    /// Exponential durations seen through a grid of random phase: mean and deciles come back.
    #[test]
    fn exponential_durations_come_back_through_a_grid() {
        let uniform = |i: u64| (mix(i) >> 11) as f64 / (1u64 << 53) as f64;
        let observations: Vec<Observed> = (0..4_000)
            .map(|i| {
                let duration = -30.0 * (1.0 - uniform(2 * i)).ln();
                let phase = 5.0 * uniform(2 * i + 1);
                let seen = phase + ((duration - phase) / 5.0).ceil().max(0.0) * 5.0;
                Between((seen - 5.0).max(0.0), seen)
            })
            .collect();
        let (values, beyond) = quantiles(&estimate(&observations), 1_000);
        let mean = values.iter().sum::<f64>() / 1_000.0;
        assert_eq!(beyond, 0.0);
        assert!((mean - 30.0).abs() < 1.0, "{mean}");
        for (decile, expected) in [(1, 3.16), (5, 20.79), (9, 69.08)] {
            let found = values[decile * 100];
            assert!(
                (found - expected).abs() < 0.06 * expected + 0.6,
                "{decile}: {found}"
            );
        }
    }

    #[test]
    fn quantiles_spread_mass_and_tell_what_is_beyond() {
        let masses = [
            (0.0, 10.0, 0.5),
            (10.0, 10.0, 0.25),
            (10.0, f64::INFINITY, 0.25),
        ]
        .map(|(low, high, share)| Mass { low, high, share });
        let (values, beyond) = quantiles(&masses, 3);
        assert_eq!((values, beyond), (vec![2.5, 7.5, 10.0], 0.25));
    }
}
