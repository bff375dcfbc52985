//! Completion latencies of a log: from the end of a task at its server to its host's seeing it.

use super::sample::quantile;

/// Completion latencies.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// Where the task's own end is known, ms, ascending.
    pub known_ms: Vec<f32>,
    /// Tasks whose end is known only between two polls.
    pub between: u64,
    least_sum_ms: f64,
    most_sum_ms: f64,
}

impl Latency {
    /// Counts a task whose latency is at least and at most so long, ms.
    pub fn count(&mut self, (least, most): (f64, f64)) {
        if least == most {
            self.known_ms.push(least as f32);
        } else {
            self.between += 1;
        }
        self.least_sum_ms += least;
        self.most_sum_ms += most;
    }

    /// Tasks whose end was seen.
    pub fn tasks(&self) -> u64 {
        self.known_ms.len() as u64 + self.between
    }

    /// Mean over all tasks of the least that it can be and of the most, ms; `None` without tasks.
    pub fn mean_ms(&self) -> Option<(f64, f64)> {
        let tasks = self.tasks() as f64;
        (tasks > 0.0).then(|| (self.least_sum_ms / tasks, self.most_sum_ms / tasks))
    }

    /// The quantile at `p` where the tasks' ends are known, ms; `None` where no end is.
    pub fn quantile_ms(&self, p: f64) -> Option<f64> {
        quantile(&self.known_ms, p).map(f64::from)
    }

    /// The mean of those whose ends are known, ms.
    pub fn known_mean_ms(&self) -> Option<f64> {
        let sum: f64 = self.known_ms.iter().map(|ms| f64::from(*ms)).sum();
        (!self.known_ms.is_empty()).then(|| sum / self.known_ms.len() as f64)
    }
}
