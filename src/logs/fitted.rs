//! What a log says of a fleet: distributions of each tenant and server, ready to be written as a scenario.

use std::collections::BTreeMap;

use super::collector::{Collector, OfServer, OfTenant};
use super::event::{Instant, Status};
use super::hints::Hints;
use super::latency::Latency;
use super::life::{CANCEL, Life, Tasks};
use super::pacing::{self, Pacing};
use super::sample::{sorted, thinned};
use super::survival::{self, Mass, Observed};
use super::task::{Last, Task};
use super::{Log, LogError};

/// Observations that a survival estimate is made of, at most; of more tasks every k-th is taken.
const OBSERVATIONS: usize = 50_000;
/// Values that stand for a distribution that was estimated.
pub const QUANTILES: usize = 2_000;
/// Values of a distribution that was observed exactly, at most.
const VALUES: usize = 20_000;
/// A poll without an answer is still in flight when the log ends so soon after it, s.
const IN_FLIGHT_S: f64 = 60.0;
/// What outlasts every observation is taken to last so many times the longest.
const BEYOND: f64 = 2.0;

/// What a log says.
pub struct Fitted {
    /// The first instant of the log.
    pub start: Instant,
    /// From the first to the last instant, s.
    pub span_s: f64,
    /// The tenants that have tasks.
    pub tenants: Vec<Tenant>,
    /// The servers that have tasks.
    pub servers: Vec<Server>,
    /// Tasks that were given up.
    pub aborts: Vec<Abort>,
    /// What the tenants are called in results, as the log's collector numbers them.
    pub tenant_names: Vec<String>,
    /// … and the servers.
    pub server_names: Vec<String>,
}

/// What it says of a tenant.
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its tasks.
    pub tasks: u64,
    /// When they were asked for, s since the start, ascending.
    pub arrivals_s: Vec<f64>,
    /// From asking for a task to holding its id, ms, ascending; empty where the log has no creation.
    pub creations_ms: Vec<f64>,
    /// How long tasks last.
    pub durations: Lasting,
    /// Tasks whose duration is known, known between two polls, longer than seen, and those that were under way when the log began.
    pub observed: ObservedTasks,
    /// When callers give up.
    pub patience: Lasting,
    /// Tasks completed, failed, cancelled by the server.
    pub ends: [u64; 3],
    /// Tasks given up, by how the log shows it.
    pub given_up: BTreeMap<&'static str, u64>,
    /// Polls sent after the abort.
    pub leaked: u64,
    /// From the end at the server to the host's seeing it.
    pub latency: Latency,
    /// Tasks by server.
    pub servers: BTreeMap<String, u64>,
    /// Its policy; `None` without a wait.
    pub pacing: Option<Pacing>,
    /// Polls sent.
    pub polls: u64,
    /// Polls refused.
    pub refused: u64,
    /// Polls without an answer.
    pub unanswered: u64,
    /// Its hosts call `tasks/result` for most tasks that completed.
    pub calls_result: bool,
    /// Tasks that asked for input.
    pub asked_input: u64,
}

/// A distribution of how long something lasts.
#[derive(Clone, Debug, Default)]
pub struct Lasting {
    /// Values at evenly spaced quantiles of what is inside the observations, ms, ascending.
    pub values_ms: Vec<f64>,
    /// Share that outlasts every observation.
    pub beyond: f64,
    /// How long that is taken to last, ms.
    pub beyond_ms: f64,
}

/// How well durations are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedTasks {
    /// From `createdAt` and `lastUpdatedAt`.
    pub exactly: u64,
    /// Between two polls.
    pub between: u64,
    /// Longer than seen.
    pub beyond: u64,
    /// Under way when the log began, and left out.
    pub under_way: u64,
}

/// What a log says of a server.
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its tasks.
    pub tasks: u64,
    /// From a poll to its answer, ms, ascending.
    pub round_trips_ms: Vec<f64>,
    /// Its hints.
    pub hints: Hints,
    /// Share of its polls that were refused or not answered.
    pub failed_share: f64,
    /// What must be added to its clock, ns; `None` where its times do not fit those of the log.
    pub clock: Option<Instant>,
    /// A date that it writes is so much too early at most, ms; 0 where it writes fractions of a second.
    pub resolution_ms: f64,
}

/// A task that was given up.
pub struct Abort {
    /// Its hashed id.
    pub task: u64,
    /// Its tenant's name.
    pub tenant: String,
    /// Its server's name.
    pub server: String,
    /// How the log shows it.
    pub how: &'static str,
    /// When, ms since its host held the id.
    pub after_ms: f64,
    /// Polls sent after that.
    pub leaked: u16,
}

/// Reads the distributions off a log. `names` says what a tenant's or a server's name becomes in results.
///
/// # Errors
/// [`LogError::NoTask`] or [`LogError::TooLittle`].
pub fn fit(log: &Log, names: impl Fn(&str, &str) -> String) -> Result<Fitted, LogError> {
    let collector = &log.collector;
    let (start, end) = enough(log)?;
    let named = |kind, list: &[String]| list.iter().map(|name| names(kind, name)).collect();
    let tenant_names: Vec<String> = named("tenant", &collector.tenants.list);
    let server_names: Vec<String> = named("server", &collector.servers.list);
    let servers = of_servers(collector, &server_names);
    let mut fitted = Fitted {
        start,
        span_s: (end - start) as f64 / 1e9,
        tenants: Vec::new(),
        servers: Vec::new(),
        aborts: Vec::new(),
        tenant_names,
        server_names,
    };
    let mut by_tenant: Vec<Vec<u32>> = vec![Vec::new(); collector.of_tenant.len()];
    for (at, task) in collector.tasks.iter().enumerate() {
        by_tenant[usize::from(task.tenant)].push(at as u32);
    }
    for (number, tasks) in by_tenant.into_iter().enumerate() {
        if !tasks.is_empty() {
            of_tenant(
                &mut fitted,
                collector,
                number,
                &tasks,
                &servers,
                (start, end),
            );
        }
    }
    fitted.servers = servers;
    fitted.servers.retain(|s| s.tasks > 0);
    Ok(fitted)
}

/// The span of a log that has enough in it.
fn enough(log: &Log) -> Result<(Instant, Instant), LogError> {
    let collector = &log.collector;
    let (lines, unread) = (log.lines(), log.unread_lines());
    let Some((start, end)) = collector.span.filter(|_| !collector.tasks.is_empty()) else {
        let mut found = match lines {
            1 => "1 line".to_string(),
            _ => format!("{lines} lines"),
        };
        if let Some((reason, first)) = log.unread.iter().max_by_key(|(_, of)| of.count) {
            found += &format!(
                ", {unread} of them not readable (the first of most of them, {}:{}, {})",
                first.path.display(),
                first.line,
                reason.text()
            );
        }
        found +=
            "; it needs lines about tasks: tools/call that make them, tasks/get that poll them";
        return Err(LogError::NoTask { found });
    };
    let polls = collector.polls();
    if polls < 2 || start >= end {
        let polls = match polls {
            0 => "no poll (tasks/get)".to_string(),
            1 => "one poll (tasks/get)".to_string(),
            _ => format!("{polls} polls (tasks/get) at one instant"),
        };
        let found =
            format!("{polls} in {lines} lines; it needs two polls at least, at different times");
        return Err(LogError::TooLittle { found });
    }
    Ok((start, end))
}

fn of_servers(collector: &Collector, names: &[String]) -> Vec<Server> {
    let mut servers: Vec<Server> = collector
        .of_server
        .iter()
        .zip(names)
        .map(|(of, name)| Server {
            name: name.clone(),
            tasks: 0,
            round_trips_ms: sorted(of.round_trips_ms.kept.iter().map(|x| f64::from(*x))),
            hints: of.hints.clone(),
            failed_share: 0.0,
            clock: clock(of),
            resolution_ms: of.resolution_ns() as f64 / 1e6,
        })
        .collect();
    let end = collector.span.map_or(0, |(_, end)| end);
    let mut in_flight = vec![0; servers.len()];
    for task in &collector.tasks {
        servers[usize::from(task.server)].tasks += 1;
        let since_s = task
            .last_sent
            .seconds()
            .map(|sent| (end - task.base) as f64 / 1e9 - sent);
        let at_the_end = since_s.is_some_and(|s| s < IN_FLIGHT_S);
        in_flight[usize::from(task.server)] += u64::from(task.last == Last::InFlight && at_the_end);
    }
    for ((server, of), in_flight) in servers.iter_mut().zip(&collector.of_server).zip(in_flight) {
        server.failed_share = of.failed_share(in_flight);
    }
    servers
}

impl OfServer {
    /// How much too early its dates are at most, ns: those without fractions are cut to whole seconds.
    fn resolution_ns(&self) -> Instant {
        if self.fractions { 0 } else { 1_000_000_000 }
    }

    /// Share of the polls that were refused or not answered; those of unknown tasks and those in flight at the log's end are neither.
    fn failed_share(&self, in_flight: u64) -> f64 {
        let others = self.good + self.unknown + in_flight;
        self.polls.saturating_sub(others) as f64 / self.polls.max(1) as f64
    }
}

/// What to add to a server's clock: nothing where that fits, else the middle of what does.
fn clock(of: &OfServer) -> Option<Instant> {
    /// Dates are written with milliseconds, at best.
    const SLACK: Instant = 2_000_000;
    let (least, most) = of.clock;
    let least = least.saturating_sub(SLACK + of.resolution_ns());
    let most = most.saturating_add(SLACK);
    match () {
        () if least <= 0 && most >= 0 => Some(0),
        () if least <= most && least > Instant::MIN && most < Instant::MAX => {
            Some(least + (most - least) / 2)
        }
        () => None,
    }
}

/// What a log says of the tenant with this number, whose tasks stand at these places.
fn of_tenant(
    fitted: &mut Fitted,
    collector: &Collector,
    number: usize,
    tasks: &[u32],
    servers: &[Server],
    span: (Instant, Instant),
) {
    let of = &collector.of_tenant[number];
    let each = || tasks.iter().map(|at| &collector.tasks[*at as usize]);
    let with = Tasks::new(of, each(), servers, span);
    let mut tenant = Tenant::new(fitted.tenant_names[number].clone(), of, tasks.len());
    let every = tasks.len().div_ceil(OBSERVATIONS);
    let (mut durations, mut patience) = (Vec::new(), Vec::new());
    for (n, task) in each().enumerate() {
        let server = &servers[usize::from(task.server)];
        *tenant.servers.entry(server.name.clone()).or_default() += 1;
        tenant.arrivals_s.push(with.arrival_s(task));
        tenant.asked_input += u64::from(task.asked_input);
        let Some(life) = with.life(task) else {
            tenant.observed.under_way += 1;
            continue;
        };
        tenant.count(task, &life);
        if let Some((after_ms, how)) = life.abort {
            fitted.aborts.push(Abort {
                task: task.id,
                tenant: tenant.name.clone(),
                server: server.name.clone(),
                how,
                after_ms,
                leaked: task.leaked,
            });
        }
        if n % every == 0 {
            durations.push(life.duration);
            patience.push(match (life.abort, life.seen_ms) {
                (Some((after, _)), _) => Observed::Exactly(after),
                (None, Some(seen)) => Observed::Beyond(seen),
                (None, None) => Observed::Beyond(life.followed_ms),
            });
        }
    }
    tenant.arrivals_s.sort_unstable_by(f64::total_cmp);
    tenant.durations = lasting(&durations);
    if !tenant.given_up.is_empty() {
        tenant.patience = lasting(&patience);
    }
    tenant.latency.known_ms.sort_unstable_by(f32::total_cmp);
    tenant.calls_result = of.results * 2 > tenant.ends[0] && tenant.ends[0] > 0;
    fitted.tenants.push(tenant);
}

impl Tenant {
    fn new(name: String, of: &OfTenant, tasks: usize) -> Self {
        let creations = sorted(of.creations_ms.kept.iter().map(|x| f64::from(*x)));
        Tenant {
            name,
            tasks: tasks as u64,
            arrivals_s: Vec::with_capacity(tasks),
            creations_ms: thinned(creations, QUANTILES),
            durations: Lasting::default(),
            observed: ObservedTasks::default(),
            patience: Lasting::default(),
            ends: [0; 3],
            given_up: BTreeMap::new(),
            leaked: 0,
            latency: Latency::default(),
            servers: BTreeMap::new(),
            pacing: pacing::fit(of),
            polls: of.polls,
            refused: of.refused,
            unanswered: of.polls.saturating_sub(of.good + of.refused),
            calls_result: false,
            asked_input: 0,
        }
    }

    fn count(&mut self, task: &Task, life: &Life) {
        match life.duration {
            Observed::Exactly(_) => self.observed.exactly += 1,
            Observed::Between(..) => self.observed.between += 1,
            Observed::Beyond(_) => self.observed.beyond += 1,
        }
        match life.natural_end {
            Some(Status::Completed) => self.ends[0] += 1,
            Some(Status::Failed) => self.ends[1] += 1,
            Some(Status::Cancelled) => self.ends[2] += 1,
            _ => {}
        }
        if let Some(latency) = life.latency_ms {
            self.latency.count(latency);
        }
        if let Some((_, how)) = life.abort {
            *self.given_up.entry(how).or_default() += 1;
            self.leaked += u64::from(task.leaked);
        }
    }

    /// Tasks given up.
    pub fn aborts(&self) -> u64 {
        self.given_up.values().sum()
    }

    /// Do callers cancel what they give up?
    pub fn cancels(&self) -> bool {
        self.given_up.get(CANCEL).copied().unwrap_or(0) * 2 >= self.aborts().max(1)
    }
}

/// The distribution behind observations in ms.
fn lasting(observations: &[Observed]) -> Lasting {
    let exactly = |o: &Observed| match o {
        Observed::Exactly(x) => Some(*x),
        _ => None,
    };
    if let Some(values) = observations.iter().map(exactly).collect::<Option<Vec<_>>>() {
        return Lasting {
            values_ms: thinned(sorted(values), VALUES),
            ..Lasting::default()
        };
    }
    let masses: Vec<Mass> = survival::estimate(observations);
    let (values_ms, beyond) = survival::quantiles(&masses, QUANTILES);
    let longest = observations.iter().map(|o| match o {
        Observed::Exactly(x) | Observed::Beyond(x) | Observed::Between(_, x) => *x,
    });
    Lasting {
        values_ms,
        beyond,
        beyond_ms: BEYOND * longest.fold(1.0, f64::max),
    }
}

impl Fitted {
    /// Polls per second over the span.
    pub fn rate_per_s(&self) -> f64 {
        self.tenants.iter().map(|t| t.polls).sum::<u64>() as f64 / self.span_s
    }
}
