//! When one server is down.

use crate::model::Outage;
use crate::random::{Key, Purpose};

/// The times at which one server is down: the fixed ones of its class, and its own random ones, drawn as far as they have been asked for.
#[derive(Clone, Debug)]
pub struct Downtime {
    /// Random windows [from, to), ascending.
    random: Vec<(u64, u64)>,
    /// Draws of random times.
    key: Key,
    /// The random windows are known up to here.
    known: u64,
    /// No random window begins at this instant or after it: tasks could otherwise be polled through outages for ever.
    last: u64,
}

impl Downtime {
    /// The schedule of a server with this key; random times end at `last`.
    pub fn new(key: Key, last: u64) -> Self {
        Downtime {
            random: Vec::new(),
            key,
            known: 0,
            last,
        }
    }

    /// The fixed and the random windows, the latter known up to `time`.
    fn windows<'w>(&'w mut self, outage: &'w Outage, time: u64) -> [&'w [(u64, u64)]; 2] {
        if let Some((up, down)) = &outage.random {
            while self.known <= time && self.known < self.last {
                let index = 2 * self.random.len() as u64;
                let up = up.draw(|| self.key.draw(Purpose::UpDown, index));
                let down = down.draw(|| self.key.draw(Purpose::UpDown, index + 1));
                let from = self.known.saturating_add(up);
                // A cycle without length would never pass.
                let to = from.saturating_add(down).max(self.known.saturating_add(1));
                self.known = to;
                if from >= self.last {
                    break;
                }
                self.random.push((from, to));
            }
        }
        [&outage.windows, &self.random]
    }

    /// The end of the window that holds `time`; `None` where the server is up.
    pub fn until(&mut self, outage: &Outage, time: u64) -> Option<u64> {
        let holding = |windows: &[(u64, u64)]| {
            let begun = windows.partition_point(|w| w.0 <= time);
            let last = windows[..begun].last()?;
            (time < last.1).then_some(last.1)
        };
        self.windows(outage, time)
            .into_iter()
            .filter_map(holding)
            .max()
    }

    /// When the server first goes down in (after, to]; `None` where it stays up.
    pub fn first_within(&mut self, outage: &Outage, after: u64, to: u64) -> Option<u64> {
        let first = |windows: &[(u64, u64)]| {
            let begun = windows.partition_point(|w| w.0 <= after);
            windows.get(begun).map(|w| w.0).filter(|from| *from <= to)
        };
        self.windows(outage, to).into_iter().filter_map(first).min()
    }

    /// When the server last came up, at `time` or before; 0 where it never went down.
    pub fn last_up(&mut self, outage: &Outage, time: u64) -> u64 {
        let last = |windows: &[(u64, u64)]| {
            let over = windows.partition_point(|w| w.1 <= time);
            windows[..over].last().map(|w| w.1)
        };
        self.windows(outage, time)
            .into_iter()
            .filter_map(last)
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimeSampler;

    #[test]
    fn fixed_windows_are_half_open() {
        let outage = Outage {
            windows: vec![(10, 20), (30, 40)],
            random: None,
            silent: false,
            forgets: false,
        };
        let mut down = Downtime::new(Key(1), 1000);
        let until: Vec<Option<u64>> = [9, 10, 19, 20, 35].map(|t| down.until(&outage, t)).into();
        assert_eq!(until, [None, Some(20), Some(20), None, Some(40)]);
        assert_eq!(down.first_within(&outage, 20, 29), None);
        assert_eq!(down.first_within(&outage, 20, 30), Some(30));
        assert_eq!(
            (down.last_up(&outage, 19), down.last_up(&outage, 25)),
            (0, 20)
        );
    }

    #[test]
    fn random_windows_follow_each_other() {
        let outage = Outage {
            windows: Vec::new(),
            random: Some((TimeSampler::Constant(100), TimeSampler::Constant(10))),
            silent: false,
            forgets: false,
        };
        let mut down = Downtime::new(Key(1), 1000);
        assert_eq!(down.until(&outage, 99), None);
        assert_eq!(down.until(&outage, 215), Some(220));
        assert_eq!(down.last_up(&outage, 219), 110);
        // The last one begins at 980; the next would at 1090, beyond the end.
        assert_eq!(down.until(&outage, 985), Some(990));
        assert_eq!(down.first_within(&outage, 990, u64::MAX), None);
    }
}
