//! What can keep a poll from being served, or change what it reads: lost messages, outages, rate limits, a minimum gap, slow periods, tasks
//! that the server no longer knows.

use super::Simulation;
use super::limiter::Passed;
use super::outage::Downtime;
use super::server::{Answer, delay};
use super::station::Served;
use super::task::Task;
use crate::metrics::tally::Failure;
use crate::model::{Model, Per};
use crate::random::{Key, Purpose, unit};

/// What the servers of a model remember of requests and of themselves.
#[derive(Debug, Default)]
pub struct Guards {
    /// For each server class and each of its limits, the counts of all whom it is kept for.
    passed: Vec<Vec<Vec<Passed>>>,
    /// Of each server, where its class has outages.
    downtimes: Vec<Downtime>,
    /// When each of these was last seen to have come up.
    up_since: Vec<u64>,
}

impl Guards {
    /// Those of a model.
    pub fn new(model: &Model, key: Key) -> Self {
        let counts = |server: &crate::model::ServerClass| -> Vec<Vec<Passed>> {
            let of = |per| match per {
                Per::Server => server.count,
                Per::Tenant => model.members(),
                Per::Host => model.hosts(),
            };
            let limits = server.limits.iter();
            limits
                .map(|l| vec![Passed::new(l.kind); of(l.per) as usize])
                .collect()
        };
        let outages = model.servers.iter().any(|s| s.outage.is_some());
        let downtimes = |server: &crate::model::ServerClass| -> Vec<Downtime> {
            let root = key.part(server.key);
            (0..server.count)
                .map(|n| Downtime::new(root.part(u64::from(n)), model.horizon))
                .collect()
        };
        let downtimes: Vec<Downtime> = if outages {
            model.servers.iter().flat_map(downtimes).collect()
        } else {
            Vec::new()
        };
        Guards {
            passed: model.servers.iter().map(counts).collect(),
            up_since: vec![0; downtimes.len()],
            downtimes,
        }
    }
}

impl Guards {
    /// Counts a request about a task against the limits of its server; `Some` is the instant at which it may pass, where it may not: then it is not counted.
    #[inline(always)]
    pub fn count(&mut self, model: &Model, task: &Task, now: u64) -> Option<u64> {
        let class = &model.servers[task.server_class as usize];
        let place = |per| match per {
            Per::Server => (task.server - class.first) as usize,
            Per::Tenant => task.member as usize,
            Per::Host => model.host_of(task.class, task.member, task.ordinal) as usize,
        };
        let passed = &mut self.passed[task.server_class as usize];
        let mut next = now;
        for (limit, counts) in class.limits.iter().zip(&*passed) {
            next = next.max(counts[place(limit.per)].next(now));
        }
        if next > now {
            return Some(next);
        }
        for (limit, counts) in class.limits.iter().zip(passed.iter_mut()) {
            counts[place(limit.per)].take(now);
        }
        None
    }
}

impl Simulation<'_> {
    /// A poll comes to a server that may not serve it.
    pub(super) fn arrives_guarded(&mut self, slot: u32) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        let index = u64::from(task.polls);
        let server = &model.servers[task.server_class as usize];
        let request = !self.reads_store(task.class);
        if request
            && server.request_loss > 0.0
            && unit(task.key.draw(Purpose::RequestLoss, index)) < server.request_loss
        {
            return self.loses(slot);
        }
        if self.is_down(slot, self.now) {
            if server.outage.as_ref().is_some_and(|o| o.silent) {
                return self.loses(slot);
            }
            return self.refuse(slot, Failure::Down, u64::MAX);
        }
        self.comes_up(slot);
        if let Some(gap) = server.minimum_gap.as_ref().filter(|_| request) {
            // Whichever loop of a task polls.
            let first = self.first_of(slot) as usize;
            let before = std::mem::replace(&mut self.loops[first].last_poll, self.now);
            let since = match before {
                u64::MAX if gap.from_issue => Some(task.created),
                u64::MAX => None,
                before => Some(before),
            };
            if since.is_some_and(|since| self.now < since.saturating_add(gap.gap)) {
                return self.refuse(slot, Failure::TooSoon, u64::MAX);
            }
        }
        let requests = self.requests_per_poll(task.class);
        let observed = model.observed(task.sent);
        for request in 1..=requests {
            if let Some(allowed) = self.over_limit(slot) {
                // Whole seconds, rounded up, as HTTP has them.
                let wait = (allowed - self.now).div_ceil(1_000_000_000) * 1_000_000_000;
                return self.refuse_from(slot, request, Failure::Limited, wait);
            }
            let service = self.service_now(slot, index);
            match self.serve(slot, service) {
                Ok(served) if request == requests => {
                    if observed {
                        // Those before the last are counted here.
                        self.pairs[task.pair as usize].accepted += requests - 1;
                    }
                    return match self.breaks_within(slot, self.now, served.done) {
                        None => {
                            self.count_served(slot, served, service, observed);
                            self.read_in_time(slot, served.done);
                        }
                        Some(at) if task.coupled() && at > self.times_out_at(slot) => {
                            // Its host has given it up before it breaks.
                            self.count_served(slot, served, service, observed);
                            self.read_in_time(slot, served.done);
                        }
                        Some(at) => {
                            self.pairs[task.pair as usize].accepted += u64::from(observed);
                            self.breaks(slot, at);
                        }
                    };
                }
                Ok(_) => {}
                Err(found) => {
                    if observed {
                        self.pairs[task.pair as usize].queue_length.record(found);
                    }
                    return self.refuse_from(slot, request, Failure::QueueFull, u64::MAX);
                }
            }
        }
    }

    /// A poll is refused from its request number `first` (from 1) on; those before it have been taken.
    fn refuse_from(&mut self, slot: u32, first: u64, failure: Failure, after: u64) {
        let task = &self.slab.tasks[slot as usize];
        let (pair, observed) = (task.pair as usize, self.model.observed(task.sent));
        self.refuse(slot, failure, after);
        if observed {
            // That has counted all of the poll's requests as refused.
            let pair = &mut self.pairs[pair];
            pair.accepted += first - 1;
            pair.refused -= first - 1;
            pair.failures[failure as usize] -= first - 1;
        }
    }

    /// The state is read, if the server is still there and knows the task.
    #[inline(never)]
    pub(super) fn read_guarded(&mut self, slot: u32, done: u64) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        let index = u64::from(task.polls);
        let server = &model.servers[task.server_class as usize];
        if server.answer_loss > 0.0
            && !self.reads_store(task.class)
            && unit(task.key.draw(Purpose::AnswerLoss, index)) < server.answer_loss
        {
            return self.loses(slot);
        }
        if !self.knows(slot, done) {
            return self.answer_unknown(slot, done);
        }
        let ended = task.coupled() && {
            let first = self.first_of(slot);
            self.slab.tasks[first as usize].end <= done
        };
        // A poll for which nobody waits any more is not held.
        if task.coupled() && !ended && !task.settled() && self.holds(slot, done) {
            self.slab.tasks[slot as usize].holds -= 1;
            return;
        }
        self.answer_now(slot, done);
    }

    /// The server does not know the task of a poll, and says so at `done`.
    pub(super) fn answer_unknown(&mut self, slot: u32, done: u64) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        if model.observed(task.sent) {
            let requests = self.requests_per_poll(task.class);
            self.pairs[task.pair as usize].failures[Failure::UnknownTask as usize] += requests;
        }
        let back = delay(model, &task, Purpose::DelayBack, u64::from(task.polls));
        if task.coupled() {
            self.loops[slot as usize].read_at = done;
        }
        let unknown = Answer::Failed(Failure::UnknownTask, u64::MAX);
        self.answer_comes(slot, done.saturating_add(back), unknown);
    }

    /// A poll whose host has given it up comes to the server: it is work all the same.
    pub(super) fn arrives_too_late(&mut self, slot: u32) {
        let task = self.slab.tasks[slot as usize];
        let requests = self.requests_per_poll(task.class);
        if !self.is_down(slot, self.now) {
            self.comes_up(slot);
            for _ in 0..requests {
                if self.over_limit(slot).is_none() {
                    let service = self.service_now(slot, u64::from(task.polls));
                    // What becomes of it nobody will know.
                    let _ = self.serve(slot, service);
                }
            }
        }
        self.slab.release(slot);
    }

    /// How long the service of a request takes that comes now: drawn by its index, longer while the server is slow, or the more it finds.
    fn service_now(&mut self, slot: u32, index: u64) -> u64 {
        let task = &self.slab.tasks[slot as usize];
        let server = &self.model.servers[task.server_class as usize];
        let drawn = server
            .service
            .draw(|| task.key.draw(Purpose::Service, index));
        if server.slow.is_empty() && server.growth == 0.0 {
            return drawn;
        }
        let slow = server
            .slow
            .iter()
            .filter(|s| (s.from..s.to).contains(&self.now));
        let factor: f64 = slow.map(|s| s.factor).product();
        let found = self.stations[task.server as usize].present(self.now);
        let load = 1.0 + server.growth * found as f64;
        (drawn as f64 * factor * load + 0.5) as u64
    }

    /// A request that is no poll comes to its server. `Err` where it is refused, or lost because the server goes down.
    pub(super) fn serve_other(&mut self, slot: u32, index: u64) -> Result<Served, u64> {
        if self.is_down(slot, self.now) || self.over_limit(slot).is_some() {
            return Err(0);
        }
        self.comes_up(slot);
        let service = self.service_now(slot, index);
        let served = self.serve(slot, service)?;
        match self.breaks_within(slot, self.now, served.done) {
            Some(_) => Err(0),
            None => Ok(served),
        }
    }

    /// When the server of a task goes down in (after, to].
    pub(super) fn breaks_within(&mut self, slot: u32, after: u64, to: u64) -> Option<u64> {
        let task = &self.slab.tasks[slot as usize];
        let outage = self.model.servers[task.server_class as usize]
            .outage
            .as_ref()?;
        self.guards.downtimes[task.server as usize].first_within(outage, after, to)
    }

    /// The server has a poll when it goes down, at `at`.
    pub(super) fn breaks(&mut self, slot: u32, at: u64) {
        let model = self.model;
        let task = self.slab.tasks[slot as usize];
        let server = &model.servers[task.server_class as usize];
        if server.outage.as_ref().is_some_and(|o| o.silent) {
            return self.loses(slot);
        }
        if model.observed(task.sent) {
            let requests = self.requests_per_poll(task.class);
            self.pairs[task.pair as usize].failures[Failure::Broken as usize] += requests;
        }
        let back = delay(model, &task, Purpose::DelayBack, u64::from(task.polls));
        let seen = at.saturating_add(back);
        self.answer_comes(slot, seen, Answer::Failed(Failure::Broken, u64::MAX));
    }

    /// A message is lost: no answer will come.
    fn loses(&mut self, slot: u32) {
        self.slab.tasks[slot as usize].holds -= 1;
        self.vanish(slot);
    }

    /// Is the server of a task down at `at`?
    pub(super) fn is_down(&mut self, slot: u32, at: u64) -> bool {
        let task = &self.slab.tasks[slot as usize];
        let Some(outage) = &self.model.servers[task.server_class as usize].outage else {
            return false;
        };
        let down = &mut self.guards.downtimes[task.server as usize];
        down.until(outage, at).is_some()
    }

    /// A server that has been down since it was last seen has lost what was in its queue.
    fn comes_up(&mut self, slot: u32) {
        let task = &self.slab.tasks[slot as usize];
        let Some(outage) = &self.model.servers[task.server_class as usize].outage else {
            return;
        };
        let number = task.server as usize;
        let up = self.guards.downtimes[number].last_up(outage, self.now);
        if std::mem::replace(&mut self.guards.up_since[number], up) != up {
            self.stations[number].start_anew(up);
        }
    }

    /// Does the server know the task at `at`?
    pub(super) fn knows(&mut self, slot: u32, at: u64) -> bool {
        let task = &self.slab.tasks[slot as usize];
        let server = &self.model.servers[task.server_class as usize];
        if at >= task.created.saturating_add(server.ttl) {
            return false;
        }
        match &server.outage {
            Some(outage) if outage.forgets => {
                let down = &mut self.guards.downtimes[task.server as usize];
                down.last_up(outage, at) <= task.created
            }
            _ => true,
        }
    }

    /// Are the polls of a tenant class reads of the store by the server itself? They take no way, and count against no limit.
    fn reads_store(&self, class: u16) -> bool {
        self.model.carriers[self.model.tenants[class as usize].policy].on_server
    }

    /// Counts a request against the limits of a server; `Some` is the instant at which it may pass, where it may not.
    pub(super) fn over_limit(&mut self, slot: u32) -> Option<u64> {
        let task = &self.slab.tasks[slot as usize];
        let (model, now) = (self.model, self.now);
        let class = &model.servers[task.server_class as usize];
        if class.limits.is_empty() || self.reads_store(task.class) {
            return None;
        }
        self.guards.count(model, task, now)
    }
}
