//! How many are there, over time: requests that wait, connections held, loops that leak.

use super::tally::WINDOW;

/// Time spent by any number of visitors, integrated over windows of 100 ms: each stay costs two of them, however long it is.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    /// Windows of the run; the memory of the windows is only taken by the first stay.
    windows: usize,
    /// Visitor-ns in windows that a stay covers in part.
    parts: Vec<u64>,
    /// Change of the number of stays that cover the window whole.
    steps: Vec<i64>,
}

impl Occupancy {
    /// Nobody, over a run up to `horizon`.
    pub fn new(horizon: u64) -> Self {
        Occupancy {
            windows: horizon.div_ceil(WINDOW) as usize,
            ..Occupancy::default()
        }
    }

    /// Adds a stay over [from, to); what lies beyond the horizon's last window is left out.
    #[inline]
    pub fn add(&mut self, from: u64, to: u64) {
        if from >= to || (from / WINDOW) as usize >= self.windows {
            return;
        }
        if self.parts.is_empty() {
            (self.parts, self.steps) = (vec![0; self.windows + 1], vec![0; self.windows + 1]);
        }
        let to = to.min(self.windows as u64 * WINDOW);
        let (first, last) = ((from / WINDOW) as usize, (to / WINDOW) as usize);
        if first == last {
            self.parts[first] += to - from;
            return;
        }
        self.parts[first] += WINDOW - from % WINDOW;
        self.parts[last] += to % WINDOW;
        self.steps[first + 1] += 1;
        self.steps[last] -= 1;
    }

    /// Visitor-ns of each window.
    pub fn per_window(&self) -> Vec<u64> {
        if self.parts.is_empty() {
            return vec![0; self.windows];
        }
        let mut whole = 0i64;
        let cells = self.parts.iter().zip(&self.steps).map(|(part, step)| {
            whole += step;
            part + whole as u64 * WINDOW
        });
        cells.take(self.windows).collect()
    }

    /// Adds the stays of another.
    pub fn merge(&mut self, other: &Occupancy) {
        if self.parts.is_empty() {
            *self = other.clone();
            return;
        }
        self.parts
            .iter_mut()
            .zip(&other.parts)
            .for_each(|(m, t)| *m += t);
        self.steps
            .iter_mut()
            .zip(&other.steps)
            .for_each(|(m, t)| *m += t);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_fall_into_their_windows() {
        let mut found = Occupancy::new(5 * WINDOW);
        let half = WINDOW / 2;
        found.add(half, 3 * WINDOW + half);
        found.add(WINDOW, 2 * WINDOW);
        found.add(4 * WINDOW, 9 * WINDOW);
        found.add(half, half + 7);
        assert_eq!(
            found.per_window(),
            [half + 7, 2 * WINDOW, WINDOW, half, WINDOW]
        );
        let mut sum = Occupancy::new(5 * WINDOW);
        assert_eq!(sum.per_window(), [0; 5]);
        sum.merge(&found);
        sum.merge(&found);
        assert_eq!(sum.per_window()[1], 4 * WINDOW);
    }
}
