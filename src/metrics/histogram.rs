//! A histogram of whole numbers, mergeable in any order.
//!
//! 512 cells per power of two: a quantile is off by at most 0.1 % (values below 1,024 are exact). Count, sum, minimum and
//! maximum are exact. The crate `hdrhistogram` does the same; recording here costs a third of it, and every poll records six values.

/// Cells per power of two.
const CELLS: u32 = 512;

/// How often each value was seen, to 0.1 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Counts of the cells from `base` on; whole powers of two, as far as values have reached.
    cells: Vec<u64>,
    base: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            cells: Vec::new(),
            base: 0,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

#[inline]
fn cell(value: u64) -> usize {
    let shift = 54u32.saturating_sub(value.leading_zeros());
    (shift * CELLS) as usize + (value >> shift) as usize
}

/// The middle of a cell.
fn middle(cell: usize) -> u64 {
    if cell < 2 * CELLS as usize {
        return cell as u64;
    }
    let shift = (cell / CELLS as usize - 1) as u32;
    let low = (cell as u64 - u64::from(shift * CELLS)) << shift;
    low + (1 << shift) / 2
}

impl Histogram {
    /// Records a value below 2^62; larger ones count as 2^62 - 1.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        match self.cells.get_mut(cell(value).wrapping_sub(self.base)) {
            Some(count) => *count += 1,
            None => return self.record_outside(value),
        }
        self.count += 1;
        self.sum += u128::from(value);
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Records a value that has no cell as yet.
    #[cold]
    fn record_outside(&mut self, value: u64) {
        let value = value.min((1 << 62) - 1);
        let at = cell(value);
        if at < self.base || at >= self.base + self.cells.len() {
            self.reach(at, at);
        }
        self.record(value);
    }

    /// Records a value `n` times.
    pub fn record_many(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.record(value);
        let at = cell(value.min((1 << 62) - 1)) - self.base;
        self.cells[at] += n - 1;
        self.count += n - 1;
        self.sum += u128::from(value) * u128::from(n - 1);
    }

    /// Makes room for the cells from `low` to `high`.
    #[cold]
    fn reach(&mut self, low: usize, high: usize) {
        let step = CELLS as usize;
        let (mut low, mut end) = (low / step * step, (high / step + 1) * step);
        if !self.cells.is_empty() {
            low = low.min(self.base);
            end = end.max(self.base + self.cells.len());
        }
        let mut cells = vec![0; end - low];
        let shift = self.base.saturating_sub(low);
        cells[shift..shift + self.cells.len()].copy_from_slice(&self.cells);
        (self.cells, self.base) = (cells, low);
    }

    /// Adds everything that another has seen.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        let (low, high) = (cell(other.min), cell(other.max));
        if low < self.base || high >= self.base + self.cells.len() {
            self.reach(low, high);
        }
        let mine = &mut self.cells[low - self.base..];
        let theirs = &other.cells[low - other.base..=high - other.base];
        mine.iter_mut().zip(theirs).for_each(|(m, t)| *m += t);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Their mean; `None` where there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// How many values are at most `value` (to the resolution of a cell).
    pub fn at_most(&self, value: u64) -> u64 {
        let end = (cell(value) + 1).saturating_sub(self.base);
        self.cells[..end.min(self.cells.len())].iter().sum()
    }

    /// The nearest-rank quantile of these values and `beyond` more that are larger than any: `None` where there are none,
    /// or where the rank falls among those beyond.
    pub fn quantile(&self, p: f64, beyond: u64) -> Option<u64> {
        let [quantile] = self.quantiles([p], beyond);
        quantile
    }

    /// Several of them, for ascending `ps`, in one pass.
    pub fn quantiles<const N: usize>(&self, ps: [f64; N], beyond: u64) -> [Option<u64>; N] {
        const STRIDE: usize = 16;
        let total = self.count + beyond;
        let (mut at, mut below) = (cell(self.min).saturating_sub(self.base), 0);
        ps.map(|p| {
            let rank = (libm::ceil(p * total as f64) as u64).clamp(1, total.max(1));
            if rank > self.count {
                return None;
            }
            if rank == self.count && p >= 1.0 {
                return Some(self.max);
            }
            while let Some(cells) = self.cells.get(at..at + STRIDE)
                && below + cells.iter().sum::<u64>() < rank
            {
                below += cells.iter().sum::<u64>();
                at += STRIDE;
            }
            while below + self.cells[at] < rank {
                below += self.cells[at];
                at += 1;
            }
            Some(middle(at + self.base).clamp(self.min, self.max))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_seen_is_undefined() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.mean(), empty.quantile(0.5, 0), empty.max()),
            (None, None, None)
        );
    }

    #[test]
    fn a_quantile_that_censoring_reaches_is_undefined() {
        let mut h = Histogram::default();
        (1..=90).for_each(|v| h.record(v));
        assert_eq!(h.quantile(0.9, 10), Some(90));
        assert_eq!(h.quantile(0.91, 10), None);
        assert_eq!(h.quantile(0.5, 10), Some(50));
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in prop::collection::vec(prop_oneof![0u64..5_000, 0u64..1 << 61], 1..200), p in 0.01f64..1.0) {
            let mut h = Histogram::default();
            values.iter().for_each(|v| h.record(*v));
            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (exact, found) = (values[rank - 1] as f64, h.quantile(p, 0).unwrap() as f64);
            prop_assert!((found - exact).abs() <= 0.001 * exact, "{} is not {}", found, exact);
            let several = h.quantiles([p / 2.0, p, p, 1.0], 3);
            let each = [p / 2.0, p, p, 1.0].map(|p| h.quantile(p, 3));
            prop_assert_eq!(several, each);
            prop_assert_eq!(h.max(), values.last().copied());
            prop_assert_eq!(h.sum(), values.iter().map(|v| u128::from(*v)).sum::<u128>());
        }

        #[test]
        fn merging_is_recording_together(a in prop::collection::vec(0u64..1 << 40, 0..50), b in prop::collection::vec(0u64..1 << 40, 0..50)) {
            let (mut left, mut right, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
            a.iter().for_each(|v| { left.record(*v); both.record(*v); });
            b.iter().for_each(|v| { right.record(*v); both.record(*v); });
            right.merge(&left);
            prop_assert_eq!((right.count(), right.sum(), right.min(), right.max()), (both.count(), both.sum(), both.min(), both.max()));
            let seen = |h: &Histogram| -> Vec<(usize, u64)> {
                h.cells.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, n)| (i + h.base, *n)).collect()
            };
            prop_assert_eq!(seen(&right), seen(&both));
        }
    }
}
