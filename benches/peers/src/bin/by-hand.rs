//! W1 by hand, whole buckets at once: the practical bound.
//!
//! A bucket is sorted and run as a slice. It is narrower than the shortest interval, so nothing is ever pushed into the one being run.

use w1_peers::buckets::{Ring, log2_width};
use w1_peers::carried::{Arrivals, Fleet};
use w1_peers::{INTERVAL_MIN, tasks};

fn main() {
    let tasks = tasks();
    let mut fleet = Fleet::new(tasks);
    let mut arrivals = Arrivals::new(tasks);
    let mut ring = Ring::new(log2_width(tasks));
    assert!(ring.end(0) < INTERVAL_MIN);
    let (mut now, mut due) = (0, Vec::new());
    while fleet.outcome.latencies.len() < tasks as usize {
        while let Some(first) = arrivals.before(ring.end(now)) {
            ring.push(first, now);
        }
        ring.take(now, &mut due);
        for &poll in &due {
            if let Some(next) = fleet.serve(poll) {
                ring.push(next, now);
            }
        }
        now += 1;
    }
    fleet.outcome.print();
}
