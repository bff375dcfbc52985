//! Samples of bounded size, and what is read off them.

use crate::random::mix;

/// A uniform sample of all values offered (algorithm R, Vitter, 1985), the same in every run: which value goes depends only on how many there were.
#[derive(Clone, Debug)]
pub struct Reservoir<T> {
    /// The values kept.
    pub kept: Vec<T>,
    /// How many were offered.
    pub offered: u64,
    most: usize,
}

impl<T> Reservoir<T> {
    /// An empty sample of `most` values at most.
    pub fn new(most: usize) -> Self {
        Reservoir {
            kept: Vec::new(),
            offered: 0,
            most,
        }
    }

    /// Offers a value.
    #[inline]
    pub fn offer(&mut self, value: T) {
        self.offered += 1;
        if self.kept.len() < self.most {
            self.kept.push(value);
            return;
        }
        let at = (u128::from(mix(self.offered)) * u128::from(self.offered)) >> 64;
        if let Some(slot) = self.kept.get_mut(at as usize) {
            *slot = value;
        }
    }
}

/// The quantile at `p` of ascending values, nearest rank; `None` of none.
pub fn quantile<T: Copy>(sorted: &[T], p: f64) -> Option<T> {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1)))
        .copied()
}

/// The values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The median; `None` of no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// Mean; `None` of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// At most `most` of the ascending values, evenly spaced among them.
pub fn thinned(sorted: Vec<f64>, most: usize) -> Vec<f64> {
    let n = sorted.len();
    if n <= most {
        return sorted;
    }
    let middle = |i: usize| ((2 * i + 1) as u128 * n as u128 / (2 * most as u128)) as usize;
    (0..most).map(|i| sorted[middle(i)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservoir_keeps_every_value_as_likely_as_any_other() {
        let mut sample = Reservoir::new(1_000);
        (0..100_000u32).for_each(|x| sample.offer(f64::from(x)));
        assert_eq!((sample.kept.len(), sample.offered), (1_000, 100_000));
        // The mean of 1,000 uniform values on [0, 100,000) has standard error 913.
        let found = mean(&sample.kept).unwrap();
        assert!((found - 50_000.0).abs() < 3_000.0, "{found}");
        let early = sample.kept.iter().filter(|x| **x < 10_000.0).count();
        assert!((60..140).contains(&early), "{early}");
    }

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        let values = [1.0, 2.0, 3.0, 4.0];
        let found = [0.0, 0.25, 0.5, 0.51, 1.0].map(|p| quantile(&values, p).unwrap());
        assert_eq!(found, [1.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(quantile::<f64>(&[], 0.5), None);
        assert_eq!(
            thinned((0..10).map(f64::from).collect(), 5),
            [1.0, 3.0, 5.0, 7.0, 9.0]
        );
    }
}
