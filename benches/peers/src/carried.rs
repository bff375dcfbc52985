//! One event per poll, which carries the state of its task along.
//!
//! The event stands at the poll's arrival at its server. There the end of service is known: a FIFO server begins with a poll when it
//! has come and the one before is done (Lindley's recursion).

use crate::buckets::Timed;
use crate::{DELAY, Outcome, SERVERS, SERVICE, duration, gap, interval, server};

/// A poll that arrives at its server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// When, ns.
    pub time: u64,
    /// When the task ends, ns.
    pub end: u64,
    /// Which task.
    pub task: u32,
    /// Number of the next poll.
    pub next: u16,
    /// The task's server.
    pub server: u16,
}

impl Ord for Poll {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.task).cmp(&(other.time, other.task))
    }
}

impl PartialOrd for Poll {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Timed for Poll {
    #[inline(always)]
    fn time(&self) -> u64 {
        self.time
    }
}

/// The servers, and what is seen of them.
pub struct Fleet {
    /// When each server is done with what it has, ns.
    free: [u64; SERVERS],
    /// So far.
    pub outcome: Outcome,
}

impl Fleet {
    /// Idle servers, for so many tasks.
    pub fn new(tasks: u32) -> Self {
        let latencies = Vec::with_capacity(tasks as usize);
        Fleet {
            free: [0; SERVERS],
            outcome: Outcome {
                polls: 0,
                latencies,
            },
        }
    }

    /// Serves a poll; gives the task's next one, or none where the task has ended.
    #[inline(always)]
    pub fn serve(&mut self, poll: Poll) -> Option<Poll> {
        self.outcome.polls += 1;
        let free = &mut self.free[poll.server as usize];
        let done = poll.time.max(*free) + SERVICE;
        *free = done;
        if done >= poll.end {
            self.outcome.latencies.push(done + DELAY - poll.end);
            return None;
        }
        let wait = interval(poll.task, u32::from(poll.next));
        Some(Poll {
            time: done + 2 * DELAY + wait,
            next: poll.next + 1,
            ..poll
        })
    }
}

/// First polls, made when they are wanted. Arrivals touch no server, so they need no queue.
pub struct Arrivals {
    task: u32,
    tasks: u32,
    /// When `task` arrives, ns.
    time: u64,
}

impl Arrivals {
    /// Those of so many tasks.
    pub fn new(tasks: u32) -> Self {
        Arrivals {
            task: 0,
            tasks,
            time: gap(0, tasks),
        }
    }

    /// When the next task arrives, ns, if there is one.
    pub fn next(&self) -> Option<u64> {
        (self.task < self.tasks).then_some(self.time)
    }

    /// The first poll of the next task that arrives before `until`.
    #[inline(always)]
    pub fn before(&mut self, until: u64) -> Option<Poll> {
        let (task, time) = (self.task, self.next().filter(|&t| t < until)?);
        self.task += 1;
        if self.task < self.tasks {
            self.time += gap(self.task, self.tasks);
        }
        Some(Poll {
            time: time + interval(task, 0) + DELAY,
            end: time + duration(task),
            task,
            next: 1,
            server: server(task) as u16,
        })
    }
}
