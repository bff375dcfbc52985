//! W1 by hand, over an ordinary queue: event by event, push and pop.

use w1_peers::buckets::{Queue, log2_width};
use w1_peers::carried::{Arrivals, Fleet};
use w1_peers::{INTERVAL_MIN, tasks};

fn main() {
    let tasks = tasks();
    let mut fleet = Fleet::new(tasks);
    let mut arrivals = Arrivals::new(tasks);
    let mut queue = Queue::new(log2_width(tasks));
    // A first poll comes at least an interval after its task arrives, so arrivals are admitted half of that ahead.
    let mut admitted = 0;
    loop {
        let Some(poll) = queue.pop() else {
            let Some(next) = arrivals.next() else { break };
            admitted = next + INTERVAL_MIN / 2;
            while let Some(first) = arrivals.before(admitted) {
                queue.push(first);
            }
            continue;
        };
        if poll.time >= admitted {
            assert!(poll.time < admitted + INTERVAL_MIN, "too few tasks");
            admitted = poll.time + INTERVAL_MIN / 2;
            while let Some(first) = arrivals.before(admitted) {
                queue.push(first);
            }
        }
        if let Some(next) = fleet.serve(poll) {
            queue.push(next);
        }
    }
    fleet.outcome.print();
}
