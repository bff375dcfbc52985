//! How many polls fell into each second, in bounded memory.

use super::event::Instant;

/// Windows kept, at most; a log with more of them gets longer ones.
const WINDOWS_MAX: i64 = 1 << 22;
const SECOND: i64 = 1_000_000_000;

/// Counts by window [k·w, (k+1)·w); w is a second, or for logs of more than 48 days two, four and so on.
#[derive(Clone, Debug)]
pub struct Windows {
    /// w, in seconds.
    pub width_s: i64,
    /// k of the first one kept.
    first: i64,
    counts: Vec<u32>,
}

impl Default for Windows {
    fn default() -> Self {
        Windows {
            width_s: 1,
            first: 0,
            counts: Vec::new(),
        }
    }
}

impl Windows {
    /// Counts what happened at `at`.
    pub fn count(&mut self, at: Instant) {
        let mut k = at.div_euclid(SECOND * self.width_s);
        if self.counts.is_empty() {
            self.first = k;
        }
        let length =
            |w: &Windows, k: i64| (k.max(w.first + w.counts.len() as i64 - 1)) - k.min(w.first) + 1;
        while length(self, k) > WINDOWS_MAX {
            self.widen();
            k = k.div_euclid(2);
        }
        if k < self.first {
            let missing = (self.first - k) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = k;
        }
        let place = (k - self.first) as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    /// Puts windows together by twos.
    fn widen(&mut self) {
        let first = self.first.div_euclid(2);
        let mut counts = vec![0u32; self.counts.len() / 2 + 1];
        for (i, count) in self.counts.iter().enumerate() {
            let at = (self.first + i as i64).div_euclid(2) - first;
            counts[at as usize] = counts[at as usize].saturating_add(*count);
        }
        (self.first, self.counts) = (first, counts);
        self.width_s *= 2;
    }

    /// The most in one window, per second.
    pub fn peak_per_s(&self) -> f64 {
        let most = self.counts.iter().max().copied().unwrap_or(0);
        f64::from(most) / self.width_s as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_whole_seconds() {
        let mut windows = Windows::default();
        for at in [5.2, 5.9, 6.0, 6.1, 6.9, -0.1, -0.9, 100.0] {
            windows.count((at * 1e9) as i64);
        }
        assert_eq!((windows.peak_per_s(), windows.width_s), (3.0, 1));
        assert_eq!(windows.counts.iter().sum::<u32>(), 8);
    }

    #[test]
    fn a_long_log_gets_longer_windows_and_loses_no_poll() {
        let mut windows = Windows::default();
        for day in 0..200 {
            for _ in 0..3 {
                windows.count(day * 86_400 * SECOND);
            }
        }
        assert_eq!((windows.width_s, windows.peak_per_s()), (8, 3.0 / 8.0));
        assert_eq!(windows.counts.iter().sum::<u32>(), 600);
        assert!(windows.counts.len() as i64 <= WINDOWS_MAX);
    }
}
