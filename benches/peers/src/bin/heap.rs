//! W1 on a plain binary heap, three events per poll: what one writes first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use w1_peers::{DELAY, Outcome, SERVERS, SERVICE, duration, gap, interval, server, tasks};

/// In the order of their keys: time, number in the order of scheduling.
type Event = (u64, u64, u32, Kind);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Create,
    Arrive,
    Served,
    Answer,
}

#[derive(Clone, Copy, Default)]
struct Task {
    end: u64,
    server: usize,
    polls: u32,
    /// Its last answer tells that it has ended.
    ended: bool,
}

#[derive(Default)]
struct Calendar {
    events: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
}

impl Calendar {
    fn schedule(&mut self, time: u64, task: u32, kind: Kind) {
        self.events
            .push(Reverse((time, self.scheduled, task, kind)));
        self.scheduled += 1;
    }
}

fn main() {
    let tasks = tasks();
    let mut outcome = Outcome::default();
    let mut calendar = Calendar::default();
    let mut fleet = vec![Task::default(); tasks as usize];
    let mut queues = vec![VecDeque::new(); SERVERS];
    calendar.schedule(gap(0, tasks), 0, Kind::Create);
    while let Some(Reverse((now, _, id, kind))) = calendar.events.pop() {
        let task = &mut fleet[id as usize];
        match kind {
            Kind::Create => {
                task.end = now + duration(id);
                task.server = server(id);
                calendar.schedule(now + interval(id, 0) + DELAY, id, Kind::Arrive);
                if id + 1 < tasks {
                    calendar.schedule(now + gap(id + 1, tasks), id + 1, Kind::Create);
                }
            }
            Kind::Arrive => {
                let queue = &mut queues[task.server];
                queue.push_back(id);
                if queue.len() == 1 {
                    calendar.schedule(now + SERVICE, id, Kind::Served);
                }
            }
            Kind::Served => {
                outcome.polls += 1;
                task.polls += 1;
                task.ended = now >= task.end;
                calendar.schedule(now + DELAY, id, Kind::Answer);
                let queue = &mut queues[task.server];
                queue.pop_front();
                if let Some(&next) = queue.front() {
                    calendar.schedule(now + SERVICE, next, Kind::Served);
                }
            }
            Kind::Answer if task.ended => outcome.latencies.push(now - task.end),
            Kind::Answer => {
                let wait = interval(id, task.polls);
                calendar.schedule(now + wait + DELAY, id, Kind::Arrive);
            }
        }
    }
    outcome.print();
}
