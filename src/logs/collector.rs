//! Takes what the lines of a log say, one after the other, and keeps what a scenario needs: a small record of each task, and tallies.

use std::collections::{BTreeMap, HashMap};

use hashbrown::HashTable;

use super::event::{Answer, Instant, Method, Outcome, Request};
use super::hints::Hints;
use super::ids::Ids;
use super::sample::Reservoir;
use super::task::{GivenUp, Last, SmallHint, Task};
use super::windows::Windows;
use crate::policy::HintClass;

/// Different tenants and servers that are kept apart; the others are put together.
const NAMES_MAX: usize = 256;
/// The name of those that are put together.
const OTHERS: &str = "others";
/// Samples kept of each tenant or server.
const SAMPLE: usize = 10_000;

/// What the lines of a log say, put together.
pub struct Collector {
    /// Hashes ids.
    pub ids: Ids,
    /// Messages that are not about tasks.
    pub other_messages: u64,
    /// The tenants' names.
    pub tenants: Names,
    /// The servers' names.
    pub servers: Names,
    /// What was seen of each tenant.
    pub of_tenant: Vec<OfTenant>,
    /// What was seen of each server.
    pub of_server: Vec<OfServer>,
    /// Every task.
    pub tasks: Vec<Task>,
    /// Requests that did not go well, by method, outcome, tenant and server.
    pub refusals: BTreeMap<(Method, Outcome, u16, u16), Refusals>,
    /// Polls by second.
    pub windows: Windows,
    /// The first instant and the last.
    pub span: Option<(Instant, Instant)>,
    /// Requests and notifications by method.
    pub methods: BTreeMap<Method, u64>,
    index: HashTable<u32>,
}

/// Requests that were refused alike.
#[derive(Clone, Debug)]
pub struct Refusals {
    /// How many.
    pub count: u64,
    /// What stood in `Retry-After`, in s.
    pub retry_after_s: Reservoir<f32>,
}

/// What was seen of a tenant.
pub struct OfTenant {
    /// Waits between an answer and the next poll.
    pub waits: Reservoir<Waited>,
    /// Waits between a creation and the first poll.
    pub first_waits: Reservoir<Waited>,
    /// Time from asking for a task to holding its id, in ms.
    pub creations_ms: Reservoir<f32>,
    /// Polls sent.
    pub polls: u64,
    /// Polls with a good answer.
    pub good: u64,
    /// Polls refused.
    pub refused: u64,
    /// Calls of `tasks/result`.
    pub results: u64,
}

/// What was seen of a server.
pub struct OfServer {
    /// Time from a poll to its good answer, in ms.
    pub round_trips_ms: Reservoir<f32>,
    /// Its hints.
    pub hints: Hints,
    /// Polls sent to it.
    pub polls: u64,
    /// Polls with a good answer.
    pub good: u64,
    /// Polls of tasks that it did not know.
    pub unknown: u64,
    /// It writes dates with fractions of a second.
    pub fractions: bool,
    /// What must be added to its clock for that of the log, in ns: at least, at most.
    pub clock: (Instant, Instant),
}

/// A wait of a host.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// From the last answer, in ms.
    pub wait_ms: f32,
    /// From the last send, in ms.
    pub gap_ms: f32,
    /// The last hint.
    pub hint: SmallHint,
    /// What went before.
    pub after: Last,
    /// Which wait of its task, from 0.
    pub number: u32,
}

impl Default for OfTenant {
    fn default() -> Self {
        OfTenant {
            waits: Reservoir::new(SAMPLE),
            first_waits: Reservoir::new(SAMPLE),
            creations_ms: Reservoir::new(SAMPLE),
            polls: 0,
            good: 0,
            refused: 0,
            results: 0,
        }
    }
}

impl Default for OfServer {
    fn default() -> Self {
        OfServer {
            round_trips_ms: Reservoir::new(SAMPLE),
            hints: Hints::default(),
            polls: 0,
            good: 0,
            unknown: 0,
            fractions: false,
            clock: (Instant::MIN, Instant::MAX),
        }
    }
}

/// Names in the order of their first lines.
#[derive(Default)]
pub struct Names {
    /// The names.
    pub list: Vec<String>,
    /// Names beyond those that are kept apart were seen.
    pub overflowed: bool,
    index: HashMap<String, u16>,
    last: u16,
}

impl Names {
    fn number(&mut self, name: &str) -> u16 {
        if self
            .list
            .get(usize::from(self.last))
            .is_some_and(|n| n == name)
        {
            return self.last;
        }
        let name = match self.list.len() {
            n if n >= NAMES_MAX - 1 && !self.index.contains_key(name) => {
                self.overflowed = true;
                OTHERS
            }
            _ => name,
        };
        if let Some(number) = self.index.get(name) {
            self.last = *number;
            return *number;
        }
        self.last = self.list.len() as u16;
        self.index.insert(name.into(), self.last);
        self.list.push(name.into());
        self.last
    }
}

fn ms(ns: Instant) -> f32 {
    (ns as f64 / 1e6) as f32
}

/// Halfway between a request and its answer: when the server is taken to have read the state.
fn middle(sent: Instant, answered: Instant) -> Instant {
    sent + (answered - sent) / 2
}

impl Collector {
    /// Nothing so far.
    pub fn new(ids: Ids) -> Self {
        Collector {
            ids,
            other_messages: 0,
            tenants: Names::default(),
            servers: Names::default(),
            of_tenant: Vec::new(),
            of_server: Vec::new(),
            tasks: Vec::new(),
            refusals: BTreeMap::new(),
            windows: Windows::default(),
            span: None,
            methods: BTreeMap::new(),
            index: HashTable::new(),
        }
    }

    /// The number of a tenant.
    pub fn tenant(&mut self, name: &str) -> u16 {
        let number = self.tenants.number(name);
        if usize::from(number) == self.of_tenant.len() {
            self.of_tenant.push(OfTenant::default());
        }
        number
    }

    /// The number of a server.
    pub fn server(&mut self, name: &str) -> u16 {
        let number = self.servers.number(name);
        if usize::from(number) == self.of_server.len() {
            self.of_server.push(OfServer::default());
        }
        number
    }

    /// The hash that stands for a task's id. Ids mean something within their server.
    pub fn task(&self, server: u16, id: &str) -> u64 {
        let name = self.servers.list[usize::from(server)].as_bytes();
        // 0 stands for no task.
        self.ids.hash(self.ids.hash(0, name), id.as_bytes()).max(1)
    }

    /// Lets go of what only reading needs.
    pub fn finish(&mut self) {
        self.index = HashTable::new();
    }

    fn see(&mut self, at: Instant) {
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
    }

    /// The place of the task that a request is about.
    fn place(&mut self, request: &Request) -> usize {
        let tasks = &self.tasks;
        let same = |at: &u32| tasks[*at as usize].id == request.task;
        if let Some(at) = self.index.find(request.task, same) {
            return *at as usize;
        }
        let at = self.tasks.len();
        self.tasks.push(Task::new(
            request.task,
            request.sent,
            request.tenant,
            request.server,
        ));
        let tasks = &self.tasks;
        self.index
            .insert_unique(request.task, at as u32, |at| tasks[*at as usize].id);
        at
    }

    /// A request or a notification about a known task was sent. A creation is told by its answer alone.
    pub fn sent(&mut self, request: &Request) {
        self.see(request.sent);
        *self.methods.entry(request.method).or_default() += 1;
        match request.method {
            Method::Get => self.poll(request),
            Method::Result => self.of_tenant[usize::from(request.tenant)].results += 1,
            Method::Cancel => self.give_up(request, GivenUp::Cancel),
            Method::Cancelled => self.give_up(request, GivenUp::Notification),
            Method::Create | Method::Update | Method::Status => {}
        }
    }

    fn give_up(&mut self, request: &Request, how: GivenUp) {
        let at = self.place(request);
        let task = &mut self.tasks[at];
        // What comes after the end was seen gives nothing up.
        if task.terminal_seen.seconds().is_some() {
            return;
        }
        task.abort = task.earlier(task.abort, request.sent);
        if task.given_up != GivenUp::Cancel {
            task.given_up = how;
        }
    }

    fn poll(&mut self, request: &Request) {
        self.windows.count(request.sent);
        let place = self.place(request);
        let of_tenant = &mut self.of_tenant[usize::from(request.tenant)];
        of_tenant.polls += 1;
        self.of_server[usize::from(request.server)].polls += 1;
        let task = &mut self.tasks[place];
        let sent = task.offset(request.sent).seconds().unwrap_or_default();
        let aborted = task.abort.seconds().is_some_and(|abort| sent > abort);
        if aborted {
            task.leaked = task.leaked.saturating_add(1);
        }
        let in_order = request.sent >= task.last_answered;
        if in_order && !aborted && task.last_answered > Instant::MIN {
            let last_sent = task.last_sent.seconds().unwrap_or(sent);
            let waited = Waited {
                wait_ms: ms(request.sent - task.last_answered),
                gap_ms: ((sent - last_sent) * 1e3) as f32,
                hint: task.hint,
                after: task.last,
                number: task.polls,
            };
            if task.polls == 0 {
                of_tenant.first_waits.offer(waited);
            } else {
                of_tenant.waits.offer(waited);
            }
        }
        task.polls += 1;
        task.first_poll = task.earlier(task.first_poll, request.sent);
        task.last_sent = task.later(task.last_sent, request.sent);
        task.last = Last::InFlight;
    }

    /// An answer came at `at`, or a notification told the status of a task.
    pub fn answered(&mut self, request: &Request, at: Instant, answer: &Answer) {
        self.see(request.sent);
        self.see(at);
        if matches!(request.method, Method::Create | Method::Status) {
            *self.methods.entry(request.method).or_default() += 1;
        }
        if answer.outcome != Outcome::Good {
            self.refused(request, at, answer);
            return;
        }
        match request.method {
            Method::Create => self.created(request, at, answer),
            Method::Get => self.polled(request, at, answer),
            Method::Status => {
                let place = self.place(request);
                if let Some(status) = answer.status {
                    self.tasks[place].observe(status, at, at, answer.updated);
                }
            }
            Method::Result | Method::Cancel | Method::Update | Method::Cancelled => {}
        }
    }

    fn refused(&mut self, request: &Request, at: Instant, answer: &Answer) {
        let key = (
            request.method,
            answer.outcome,
            request.tenant,
            request.server,
        );
        let refusals = self.refusals.entry(key).or_insert_with(|| Refusals {
            count: 0,
            retry_after_s: Reservoir::new(SAMPLE),
        });
        refusals.count += 1;
        if let Some(seconds) = answer.retry_after_s {
            refusals.retry_after_s.offer(seconds as f32);
        }
        if request.method == Method::Get {
            self.of_tenant[usize::from(request.tenant)].refused += 1;
            let place = self.place(request);
            let task = &mut self.tasks[place];
            task.last = Last::Refused;
            task.last_answered = task.last_answered.max(at);
            if answer.outcome.is_unknown_task() {
                task.unknown = true;
                self.of_server[usize::from(request.server)].unknown += 1;
            }
        }
    }

    fn created(&mut self, request: &Request, at: Instant, answer: &Answer) {
        let place = self.place(request);
        let task = &mut self.tasks[place];
        (task.tenant, task.server) = (request.tenant, request.server);
        task.asked = task.offset(request.sent);
        task.created = task.offset(at);
        task.last_answered = task.last_answered.max(at);
        self.of_tenant[usize::from(request.tenant)]
            .creations_ms
            .offer(ms(at - request.sent));
        if let Some(created) = answer.created {
            // The server made the task between the request and the answer.
            let (least, most) = &mut self.of_server[usize::from(request.server)].clock;
            *least = (*least).max(request.sent - created);
            *most = (*most).min(at - created);
        }
        let read = middle(request.sent, at);
        self.learn(place, request, (read, at), answer);
    }

    fn polled(&mut self, request: &Request, at: Instant, answer: &Answer) {
        self.of_tenant[usize::from(request.tenant)].good += 1;
        let of_server = &mut self.of_server[usize::from(request.server)];
        of_server.good += 1;
        of_server.round_trips_ms.offer(ms(at - request.sent));
        if let Some(updated) = answer.updated {
            // What an answer tells has happened before it.
            of_server.clock.1 = of_server.clock.1.min(at - updated);
        }
        let place = self.place(request);
        let task = &mut self.tasks[place];
        if at >= task.last_answered {
            task.last = Last::Good;
            task.last_answered = at;
        }
        let read = middle(request.sent, at);
        self.learn(place, request, (read, at), answer);
    }

    /// What a good answer says of its task.
    fn learn(
        &mut self,
        place: usize,
        request: &Request,
        (read, seen): (Instant, Instant),
        answer: &Answer,
    ) {
        let dates = [answer.created, answer.updated];
        let fraction = |at: Instant| at % 1_000_000_000 != 0;
        self.of_server[usize::from(request.server)].fractions |=
            dates.into_iter().flatten().any(fraction);
        let task = &mut self.tasks[place];
        if let Some(created) = answer.created {
            task.server_created = task.offset(created);
        }
        let Some(status) = answer.status else { return };
        task.observe(status, read, seen, answer.updated);
        if !status.is_terminal() {
            self.of_server[usize::from(request.server)]
                .hints
                .count(task, answer.hint);
        }
    }

    /// Polls, good or not.
    pub fn polls(&self) -> u64 {
        self.of_tenant.iter().map(|t| t.polls).sum()
    }
}

impl Waited {
    /// The same, with the wait counted from the last send.
    pub fn from_send(&self) -> Self {
        Waited {
            wait_ms: self.gap_ms,
            ..*self
        }
    }

    /// Is the hint before it one that a host is meant to use?
    pub fn after_sane(&self) -> bool {
        self.hint.class == HintClass::Sane
    }
}
