//! One server: the station that answers from the task store, and the tasks it executes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// A request that the station took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Service starts.
    pub start: u64,
    /// Service ends; the state is read.
    pub done: u64,
    /// Requests that were waiting when it came.
    pub found: u64,
}

impl Served {
    /// A request that takes no time.
    #[inline]
    pub fn at_once(now: u64) -> Self {
        Served {
            start: now,
            done: now,
            found: 0,
        }
    }
}

/// The state of one server.
///
/// FIFO: a request's start is known at its arrival (Lindley's recursion; Kiefer and Wolfowitz with several workers),
/// so requests must be handed over in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Station {
    /// When the only worker is free (one worker).
    free: u64,
    /// Busy worker time that is observed, ns.
    pub busy_ns: u64,
    /// When each worker is free (several).
    workers: BinaryHeap<Reverse<u64>>,
    /// When each waiting request starts, ascending.
    starts: VecDeque<u64>,
    /// Tasks being executed (where that is limited).
    pub executing: u32,
    /// Tasks that wait for their turn, as slots.
    pub backlog: VecDeque<u32>,
    /// Unfinished tasks (where execution is limited).
    pub unfinished: u32,
    /// Ends of unfinished tasks, and how many end then (where it is not, and a hint follows the load).
    ends: BTreeMap<u64, u32>,
    /// How many those are.
    held: u64,
}

impl Station {
    /// A station with so many workers.
    pub fn new(workers: u32) -> Self {
        let workers = if workers > 1 {
            (0..workers).map(|_| Reverse(0)).collect()
        } else {
            BinaryHeap::new()
        };
        Station {
            workers,
            ..Station::default()
        }
    }

    /// The same as [`Station::serve`], for requests that mostly find the station idle.
    #[inline(always)]
    pub fn serve_mostly_idle(&mut self, now: u64, service: u64, limit: u64) -> Result<Served, u64> {
        if self.free <= now && self.workers.is_empty() {
            // Idle: nobody waits.
            if !self.starts.is_empty() {
                self.starts.clear();
            }
            self.free = now.saturating_add(service);
            return Ok(Served {
                start: now,
                done: self.free,
                found: 0,
            });
        }
        self.serve_or_queue(now, service, limit)
    }

    #[inline(never)]
    fn serve_or_queue(&mut self, now: u64, service: u64, limit: u64) -> Result<Served, u64> {
        self.serve(now, service, limit)
    }

    /// A request comes at `now`. Refused where more than `limit` would wait: then it gives how many it found.
    #[inline]
    pub fn serve(&mut self, now: u64, service: u64, limit: u64) -> Result<Served, u64> {
        let free = match self.workers.peek() {
            None => self.free,
            Some(Reverse(free)) => *free,
        };
        if free <= now {
            // Idle: nobody waits.
            self.starts.clear();
            self.occupy(now.saturating_add(service));
            return Ok(Served {
                start: now,
                done: now.saturating_add(service),
                found: 0,
            });
        }
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
        let found = self.starts.len() as u64;
        if found >= limit {
            return Err(found);
        }
        self.starts.push_back(free);
        self.occupy(free.saturating_add(service));
        Ok(Served {
            start: free,
            done: free.saturating_add(service),
            found,
        })
    }

    /// Requests that wait or are served at `now`.
    pub fn present(&mut self, now: u64) -> u64 {
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
        let busy = match self.workers.len() {
            0 => usize::from(self.free > now),
            _ => self.workers.iter().filter(|free| free.0 > now).count(),
        };
        (self.starts.len() + busy) as u64
    }

    /// Everything that waited or was served is gone; the workers are free from `at` on.
    pub fn start_anew(&mut self, at: u64) {
        self.starts.clear();
        self.free = at;
        let workers = self.workers.len();
        self.workers = (0..workers).map(|_| Reverse(at)).collect();
    }

    /// The worker that is free first is busy until `done`.
    #[inline]
    fn occupy(&mut self, done: u64) {
        match self.workers.peek_mut() {
            None => self.free = done,
            Some(mut first) => *first = Reverse(done),
        }
    }

    /// A task that will end at `end` is now here (only asked for where a hint follows the load).
    pub fn hold_until(&mut self, end: u64) {
        *self.ends.entry(end).or_default() += 1;
        self.held += 1;
    }

    /// A task that would have ended at `end` is cancelled, and ends at `at`.
    pub fn end_early(&mut self, end: u64, at: u64) {
        if let Some(n) = self.ends.get_mut(&end) {
            *n -= 1;
            *self.ends.entry(at).or_default() += 1;
        }
    }

    /// Unfinished tasks at `now`.
    pub fn unfinished(&mut self, now: u64) -> u64 {
        while let Some(first) = self.ends.first_entry().filter(|e| *e.key() <= now) {
            self.held -= u64::from(first.remove());
        }
        self.held + u64::from(self.unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_instant_queue_up() {
        let mut station = Station::new(1);
        let done: Vec<_> = (0..4)
            .filter_map(|_| station.serve(10, 5, u64::MAX).ok())
            .map(|s| (s.start, s.done, s.found))
            .collect();
        assert_eq!(done, [(10, 15, 0), (15, 20, 0), (20, 25, 1), (25, 30, 2)]);
        assert_eq!(
            station.serve(20, 5, u64::MAX).map(|s| s.found),
            Ok(1),
            "the third has started"
        );
    }

    #[test]
    fn two_workers_serve_two_at_a_time() {
        let mut station = Station::new(2);
        let starts: Vec<_> = (0..4)
            .filter_map(|_| station.serve(0, 5, u64::MAX).ok())
            .map(|s| s.start)
            .collect();
        assert_eq!(starts, [0, 0, 5, 5]);
    }

    #[test]
    fn a_full_queue_refuses() {
        let mut station = Station::new(1);
        let taken: Vec<bool> = (0..4).map(|_| station.serve(0, 5, 2).is_ok()).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert!(station.serve(5, 5, 2).is_ok(), "one has left the queue");
    }

    #[test]
    fn a_station_that_starts_anew_is_idle() {
        let mut station = Station::new(2);
        (0..5).for_each(|_| assert!(station.serve(0, 10, u64::MAX).is_ok()));
        assert_eq!(station.present(5), 5);
        assert_eq!(station.present(10), 3);
        station.start_anew(12);
        assert_eq!(station.present(13), 0);
        assert_eq!(station.serve(13, 10, u64::MAX).map(|s| s.start), Ok(13));
    }

    #[test]
    fn unfinished_tasks_are_counted_until_their_end() {
        let mut station = Station::new(1);
        station.hold_until(10);
        station.hold_until(5);
        station.hold_until(20);
        station.end_early(20, 7);
        let unfinished: Vec<u64> = [4, 5, 7, 10].map(|now| station.unfinished(now)).into();
        assert_eq!(unfinished, [3, 2, 1, 0]);
    }
}
