//! Runs that fall into parts with nothing to do with each other, part after part.
//!
//! A part is a group of servers with their tasks, or a single task, which needs no queue of events: its polls follow one another. What happens in
//! a part is what happens in a whole run, and every tally is a sum, so the outcome is the same, byte for byte. Parts are faster: their state stays in
//! the cache, and threads share them.
//!
//! Arrivals belong to members, not to parts: each thread draws all of them, and hands those of its parts on, a span of time after another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::coupled::Loop;
use super::host::server_of;
use super::limiter::Ticket;
use super::queue::{Event, Kind, Line, Queue, Step, order};
use super::steady::Stride;
use super::task::Slab;
use super::{Outcome, RunError, Simulation, members};
use crate::model::{Model, Partition};

/// Arrivals that are drawn before they are handled, about.
const ARRIVALS_AHEAD: f64 = 65_536.0;

/// Runs one replication by its parts. `None` where it has none, or where it fails: which failure comes first, a whole run tells.
pub(super) fn run(
    model: &Model,
    replication: u32,
    stop: &AtomicBool,
) -> Option<Result<Outcome, RunError>> {
    if model.partition == Partition::Whole {
        return None;
    }
    let threads = model.threads.max(1);
    let share = |thread: u32| -> Result<Simulation, RunError> {
        let mut simulation = Simulation::new(model, replication, None);
        simulation.given_arrivals = true;
        match model.partition {
            Partition::Servers(parts) => simulation.run_servers(parts, (thread, threads), stop)?,
            Partition::Tasks => simulation.run_tasks((thread, threads), stop)?,
            Partition::Whole => {}
        }
        simulation.close_breakers();
        Ok(simulation)
    };
    let shares: Vec<_> = (0..threads).into_par_iter().map(share).collect();
    let mut sum: Option<Simulation> = None;
    for share in shares {
        match (share, &mut sum) {
            (Err(RunError::Interrupted), _) => return Some(Err(RunError::Interrupted)),
            (Err(_), _) => return None,
            (Ok(share), None) => sum = Some(share),
            (Ok(share), Some(sum)) => sum.absorb(&share),
        }
    }
    let sum = sum.filter(|sum| sum.totals.events <= model.event_limit)?;
    Some(Ok(sum.conclude(replication)))
}

/// What a part has of its own.
struct Part {
    queue: Queue,
    slab: Slab,
    loops: Vec<Loop>,
    riders: HashMap<(u32, u16), Vec<Ticket>>,
    waiting_riders: HashMap<u32, Vec<Ticket>>,
    now: u64,
}

impl Part {
    /// A part in which about so many tasks are alive at once.
    fn new(alive: f64) -> Self {
        Part {
            queue: Queue::of_many(),
            // Room for chance, so that thousands of slabs are not moved as they grow, leaving holes behind.
            slab: Slab::with_capacity((alive + 4.0 * alive.sqrt()) as usize),
            loops: Vec::new(),
            riders: HashMap::new(),
            waiting_riders: HashMap::new(),
            now: 0,
        }
    }
}

/// The arrivals of a member.
struct Stream {
    class: u16,
    member: u32,
    /// The next one; [`u64::MAX`] where there is none.
    next: u64,
}

impl Simulation<'_> {
    /// Runs the parts of one of several threads: groups of servers, so many in all.
    fn run_servers(
        &mut self,
        parts: u32,
        (thread, threads): (u32, u32),
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        let model = self.model;
        let part_of = |server: u32| {
            let part = u64::from(server) * u64::from(parts) / u64::from(model.server_count());
            let mine = part % u64::from(threads) == u64::from(thread);
            mine.then_some((part / u64::from(threads)) as usize)
        };
        let mine = parts.div_ceil(threads);
        let alive = model.alive() / f64::from(parts);
        let mut parts: Vec<Part> = (0..mine).map(|_| Part::new(alive)).collect();
        let mut streams = self.streams()?;
        let spans = (self.expected() / ARRIVALS_AHEAD).clamp(1.0, 10_000.0) as u64;
        for span in 1..=spans {
            let until = (u128::from(model.horizon) * u128::from(span) / u128::from(spans)) as u64;
            for stream in &mut streams {
                self.draw_arrivals(stream, until, |simulation, event, ordinal| {
                    let key = simulation.member_key(event.tag(), event.slot());
                    let key = key.part(u64::from(ordinal));
                    if let Some(part) = part_of(server_of(model, event.tag(), key).1) {
                        parts[part].queue.line_up(Line::Creations, event);
                    }
                });
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let last = span == spans;
            for part in &mut parts {
                self.exchange(part);
                let until = if last {
                    model.stop.saturating_add(1)
                } else {
                    until
                };
                self.run(until, stop)?;
                if last {
                    self.leave_tasks();
                }
                self.exchange(part);
            }
        }
        self.now = parts.iter().map(|part| part.now).max().unwrap_or(0);
        Ok(())
    }

    /// Goes to another part, or back.
    fn exchange(&mut self, part: &mut Part) {
        std::mem::swap(&mut self.queue, &mut part.queue);
        std::mem::swap(&mut self.slab, &mut part.slab);
        std::mem::swap(&mut self.loops, &mut part.loops);
        std::mem::swap(&mut self.riders, &mut part.riders);
        std::mem::swap(&mut self.waiting_riders, &mut part.waiting_riders);
        std::mem::swap(&mut self.now, &mut part.now);
    }

    /// Runs the tasks of one of several threads, one after another.
    fn run_tasks(
        &mut self,
        (thread, threads): (u32, u32),
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        self.queue = Queue::of_few();
        let mut end = 0;
        for mut stream in self.streams()? {
            let mut failed = None;
            self.draw_arrivals(&mut stream, u64::MAX, |simulation, event, ordinal| {
                if ordinal % threads != thread || failed.is_some() {
                    return;
                }
                if ordinal.is_multiple_of(64) && stop.load(Ordering::Relaxed) {
                    failed = Some(RunError::Interrupted);
                    return;
                }
                simulation.live(event);
                end = end.max(simulation.now);
                failed = simulation.failed.take();
            });
            if let Some(error) = failed.or(self.failed.take()) {
                return Err(error);
            }
        }
        self.now = end;
        Ok(())
    }

    /// A task from its creation to its end.
    fn live(&mut self, created: Event) {
        let until = self.model.stop.saturating_add(1);
        self.now = created.time;
        self.totals.events += 1;
        self.create(created);
        while let Some(mut event) = self.queue.pop_before(until) {
            loop {
                self.now = event.time;
                self.totals.events += 1;
                if event.kind() != Kind::Poll {
                    self.handle(event);
                    break;
                }
                match self.stride(event) {
                    // Nothing else waits: what follows is next.
                    Stride::On(next) if self.queue.is_empty() && next.time < until => event = next,
                    Stride::On(next) => {
                        self.queue.push(next);
                        break;
                    }
                    Stride::Served(done) => {
                        self.answer_now(event.slot(), done);
                        break;
                    }
                    Stride::Halt => {
                        self.poll_arrives(event.slot(), event.tag());
                        break;
                    }
                }
            }
            if self.failed.is_some() {
                return;
            }
        }
        self.leave_tasks();
        self.slab.clear();
        self.loops.clear();
    }

    /// The arrivals of all members.
    fn streams(&mut self) -> Result<Vec<Stream>, RunError> {
        let members = members(self.model);
        let first = |(class, member)| Stream {
            class,
            member,
            next: self.first_arrival(class, member).unwrap_or(u64::MAX),
        };
        let streams = members.map(first).collect();
        self.failed.take().map_or(Ok(streams), Err)
    }

    /// Hands the arrivals of a member before `until` on, with the ordinals of their tasks.
    fn draw_arrivals(
        &mut self,
        stream: &mut Stream,
        until: u64,
        mut hand_on: impl FnMut(&mut Self, Event, u32),
    ) {
        let Stream { class, member, .. } = *stream;
        let abort = self.model.tenants[class as usize].abort.as_ref();
        let shutdown = abort.and_then(|a| a.shutdown_at).unwrap_or(u64::MAX);
        while stream.next < until.min(self.model.horizon) {
            let ordinal = self.members[member as usize].created;
            let event = Event::new(
                stream.next,
                order(Step::Ends, member, ordinal),
                Kind::Create,
                class,
                member,
            );
            hand_on(self, event, ordinal);
            if stream.next >= shutdown {
                // That was the last one.
                stream.next = u64::MAX;
                return;
            }
            self.members[member as usize].created += 1;
            let next = self.next_arrival(class, member, stream.next);
            stream.next = next.unwrap_or(u64::MAX);
        }
    }

    /// Tasks of the whole run, about.
    fn expected(&self) -> f64 {
        let tenants = self.model.tenants.iter();
        tenants
            .map(|t| t.arrivals.expected(self.model.horizon) * f64::from(t.count))
            .sum()
    }

    /// Adds what another thread has seen.
    fn absorb(&mut self, other: &Self) {
        let pairs = self.pairs.iter_mut().zip(&other.pairs);
        pairs.for_each(|(mine, theirs)| mine.merge(theirs));
        for (mine, theirs) in self.server_tallies.iter_mut().zip(&other.server_tallies) {
            // Both have counted the same workers.
            let workers = mine.workers;
            mine.merge(theirs);
            mine.workers = workers;
        }
        for (mine, theirs) in self.stations.iter_mut().zip(&other.stations) {
            mine.busy_ns += theirs.busy_ns;
        }
        for (mine, theirs) in self.members.iter_mut().zip(&other.members) {
            mine.polls += theirs.polls;
            mine.counted |= theirs.counted;
        }
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.totals.add(&other.totals);
        self.now = self.now.max(other.now);
    }
}
