//! What one run saw, as integers that merge in any order; costs and shares of tenants, which are floats, are added in one order within a run.
//!
//! Only the finest cell is recorded: a [`PairTally`] for each (tenant class, server class), a [`ServerTally`] for each server
//! class. Groups (a tenant class, a server class, the fleet) are sums of these, made at the end.

use super::histogram::Histogram;
use super::occupancy::Occupancy;
use crate::engine::Served;
use crate::model::{Cost, Model};
use crate::policy::{FOREVER, HintClass, RawHint, Stage, SteadyWait};

/// Width of the finest rate window.
pub const WINDOW: u64 = 100_000_000;

/// A window with so many times the mean is a burst, if it holds [`BURST_LEAST`] polls.
pub const BURST_FACTOR: f64 = 10.0;
/// Fewer polls in a window are no burst.
pub const BURST_LEAST: u32 = 10;

/// How a task's loop ended, as its host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Final {
    /// The host saw it completed.
    Completed,
    /// The host saw it failed.
    Failed,
    /// The host saw it cancelled by the server.
    Cancelled,
    /// Aborted; the id is kept.
    Detached,
    /// Aborted; `tasks/cancel` was sent.
    CancelSent,
    /// The loop ended by its deadline or number of polls.
    GaveUp,
    /// The loop ended by an error or a rejected answer.
    LoopError,
    /// The loop waits for ever.
    NeverPolledAgain,
    /// Still polling when the run stopped.
    Running,
    /// Aborted; the id is lost.
    Forgotten,
    /// The host was told that the server does not know the task: it was deleted, or forgotten in a restart.
    Expired,
}

impl Final {
    /// How many there are.
    pub const COUNT: usize = 11;
}

/// Why a poll failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Failure {
    /// 503: the queue was full.
    QueueFull,
    /// 503 or a refused connection: the server was down.
    Down,
    /// 429: a rate limit.
    Limited,
    /// `slow_down`: sooner after the last poll than the server takes.
    TooSoon,
    /// -32602: the server does not know the task.
    UnknownTask,
    /// The connection broke because the server went down.
    Broken,
    /// No answer in time.
    TimedOut,
}

impl Failure {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// The error as told in traces.
    pub fn text(self) -> &'static str {
        match self {
            Failure::QueueFull => "503",
            Failure::Down => "503 (down)",
            Failure::Limited => "429",
            Failure::TooSoon => "slow_down",
            Failure::UnknownTask => "-32602 (unknown task)",
            Failure::Broken => "connection broken",
            Failure::TimedOut => "timed out",
        }
    }
}

/// Everything seen between one tenant class and one server class.
#[derive(Clone, Debug)]
pub struct PairTally {
    /// `tasks/get` sent per window of 100 ms, warm-up included, up to the horizon.
    pub windows: Vec<u32>,
    /// Most polls in one observed window of one replication.
    pub peak: u32,
    /// Observed windows of one replication with far more polls than its mean: see [`BURST_FACTOR`].
    pub bursts: u64,
    /// `tools/call` sent.
    pub created: u64,
    /// `tasks/get` sent.
    pub sent: u64,
    /// … taken by the server.
    pub accepted: u64,
    /// … refused.
    pub refused: u64,
    /// … whose answer was seen.
    pub seen: u64,
    /// … seen, with the status as it was.
    pub unchanged: u64,
    /// … seen, being an error.
    pub errors_seen: u64,
    /// `tasks/result` sent.
    pub results: u64,
    /// Results asked for and not held: refused, or on their way when the run stopped.
    pub results_missing: u64,
    /// `tasks/cancel` sent.
    pub cancels: u64,
    /// Polls sent after the abort.
    pub leaked: u64,
    /// Hints by class.
    pub hints: [u64; HintClass::COUNT],
    /// Smallest number among the hints, ms.
    pub hint_least: f64,
    /// Largest number among the hints, ms.
    pub hint_greatest: f64,
    /// Sane hints, µs.
    pub sane_hints: Histogram,
    /// Waits by the stage that changed them last.
    pub causes: [u64; Stage::COUNT],
    /// Waits by each stage that changed them.
    pub touched: [u64; Stage::COUNT],
    /// Waits by the stages that changed them, a bit each; folded into `touched`.
    pub masks: Vec<u64>,
    /// Time between sends, ns.
    pub gap: Histogram,
    /// Waits chosen, ns.
    pub interval: Histogram,
    /// Polls that found an idle store whose service time is constant; folded into the four histograms below.
    pub idle: u64,
    /// Hints that were the one that is always the same; folded into the hints.
    pub same_hints: u64,
    /// Wait in the store's queue, ns.
    pub store_wait: Histogram,
    /// Service, ns.
    pub store_service: Histogram,
    /// Both, ns.
    pub store_latency: Histogram,
    /// Requests waiting that an arriving one finds.
    pub queue_length: Histogram,
    /// Polls per task.
    pub polls_per_task: Histogram,
    /// Consecutive polls without a change.
    pub streak: Histogram,
    /// Completion latency, ns.
    pub completion: Histogram,
    /// Result latency, ns.
    pub result: Histogram,
    /// Abort latency, ns.
    pub abort: Histogram,
    /// Leaked polls per aborted task.
    pub leaked_per_abort: Histogram,
    /// Tasks by how their loop ended.
    pub finals: [u64; Final::COUNT],
    /// Tasks that ended at the server unseen by a host that still wanted them.
    pub unseen: u64,
    /// Tasks aborted.
    pub aborts: u64,
    /// … whose control had not returned when the run stopped.
    pub aborts_unsettled: u64,
    /// Task-nanoseconds between creation and settlement, inside [warm-up, horizon).
    pub active_ns: u128,
    /// Polls that failed, by [`Failure`].
    pub failures: [u64; Failure::COUNT],
    /// Polls without an answer that no timeout ended.
    pub lost: u64,
    /// Polls that the transport sent again.
    pub retries: u64,
    /// Polls that a breaker held back.
    pub held_back: u64,
    /// Polls that a breaker let try the server.
    pub probes: u64,
    /// Times that a breaker opened.
    pub opened: u64,
    /// Breaker-nanoseconds not closed, inside [warm-up, horizon).
    pub open_ns: u128,
    /// Polls that a budget left out.
    pub skipped: u64,
    /// Wait of a poll for its budget, ns; recorded where there is a budget.
    pub budget_delay: Histogram,
    /// `tasks/update` sent.
    pub updates: u64,
    /// Tasks whose host saw them ask for input.
    pub asked: u64,
    /// `notifications/cancelled` sent.
    pub notices_cancelled: u64,
    /// Notifications of changed statuses that came.
    pub notices: u64,
    /// Loops that run after their abort.
    pub leaking: Occupancy,
    /// Loop-nanoseconds after the abort, inside [warm-up, horizon).
    pub leaking_ns: u128,
    /// Reads of the store by loops on the server.
    pub store_reads: u64,
    /// … after the abort.
    pub store_reads_leaked: u64,
    /// Tasks whose end no one learns.
    pub orphans: u64,
    /// Tokens burnt by polls.
    pub tokens: f64,
    /// Price of requests and tokens.
    pub cost: f64,
}

/// What a replication's end needs to know of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    /// Start of the observation.
    pub warm_up: u64,
    /// The constant service time of the store; 0 where it is none.
    pub service: u64,
    /// The hint that is always the same; absent where there is none.
    pub hint: RawHint,
    /// Do the loops run on the server?
    pub on_server: bool,
    /// What polling costs.
    pub cost: Cost,
}

impl PairTally {
    /// An empty tally for a run up to `horizon`.
    pub fn new(horizon: u64) -> Self {
        PairTally {
            windows: vec![0; horizon.div_ceil(WINDOW) as usize],
            peak: 0,
            bursts: 0,
            created: 0,
            sent: 0,
            accepted: 0,
            refused: 0,
            seen: 0,
            unchanged: 0,
            errors_seen: 0,
            results: 0,
            results_missing: 0,
            cancels: 0,
            leaked: 0,
            hints: [0; HintClass::COUNT],
            hint_least: f64::INFINITY,
            hint_greatest: f64::NEG_INFINITY,
            sane_hints: Histogram::default(),
            causes: [0; Stage::COUNT],
            touched: [0; Stage::COUNT],
            masks: vec![0; 1 << Stage::COMBINED],
            gap: Histogram::default(),
            interval: Histogram::default(),
            idle: 0,
            same_hints: 0,
            store_wait: Histogram::default(),
            store_service: Histogram::default(),
            store_latency: Histogram::default(),
            queue_length: Histogram::default(),
            polls_per_task: Histogram::default(),
            streak: Histogram::default(),
            completion: Histogram::default(),
            result: Histogram::default(),
            abort: Histogram::default(),
            leaked_per_abort: Histogram::default(),
            finals: [0; Final::COUNT],
            unseen: 0,
            aborts: 0,
            aborts_unsettled: 0,
            active_ns: 0,
            failures: [0; Failure::COUNT],
            lost: 0,
            retries: 0,
            held_back: 0,
            probes: 0,
            opened: 0,
            open_ns: 0,
            skipped: 0,
            budget_delay: Histogram::default(),
            updates: 0,
            asked: 0,
            notices_cancelled: 0,
            notices: 0,
            leaking: Occupancy::new(horizon),
            leaking_ns: 0,
            store_reads: 0,
            store_reads_leaked: 0,
            orphans: 0,
            tokens: 0.0,
            cost: 0.0,
        }
    }

    /// Requests of all methods.
    pub fn requests(&self) -> u64 {
        self.created
            + self.sent
            + self.results
            + self.cancels
            + self.updates
            + self.notices_cancelled
    }

    /// Counts a poll that came at `now` and that its server has taken; `constant` says that all polls take that `service`.
    #[inline(always)]
    pub fn count_served(&mut self, now: u64, served: Served, service: u64, constant: bool) {
        self.accepted += 1;
        if served.start == now && constant {
            // The commonest case, told by a count.
            self.idle += 1;
        } else {
            self.store_wait.record(served.start - now);
            self.store_service.record(service);
            self.store_latency.record(served.done - now);
            self.queue_length.record(served.found);
        }
    }

    /// Counts a wait that was chosen.
    #[inline(always)]
    pub fn count_wait(&mut self, wait: SteadyWait) {
        if wait.wait < FOREVER {
            self.interval.record(wait.wait);
        }
        self.causes[wait.cause as usize] += 1;
        self.masks[wait.touched as usize % (1 << Stage::COMBINED)] += 1;
    }

    /// Counts an answer that a task goes on as before; `same` says that its hint is the one that is always the same.
    #[inline(always)]
    pub fn count_unchanged(&mut self, hint: RawHint, same: bool) {
        self.seen += 1;
        self.unchanged += 1;
        if same {
            self.same_hints += 1;
        } else {
            self.count_hints(hint, 1);
        }
    }

    /// Counts `n` hints that are alike.
    #[inline]
    pub fn count_hints(&mut self, hint: RawHint, n: u64) {
        let class = hint.class();
        self.hints[class as usize] += n;
        if let RawHint::Number(ms) = hint
            && n > 0
        {
            // Minus zero becomes zero: which of the two is the least would depend on the order of merging.
            let ms = ms + 0.0;
            self.hint_least = self.hint_least.min(ms);
            self.hint_greatest = self.hint_greatest.max(ms);
            if class == HintClass::Sane {
                self.sane_hints.record_many((ms * 1000.0) as u64, n);
            }
        }
    }

    /// Ends a replication: counts which stages changed waits, finds bursts among the windows observed, records the polls that
    /// found an idle store, tells reads of the store from `tasks/get`, and adds up the cost.
    pub fn fold(&mut self, fold: Fold) {
        let Fold {
            warm_up, service, ..
        } = fold;
        let same = std::mem::take(&mut self.same_hints);
        self.count_hints(fold.hint, same);
        if fold.on_server {
            self.store_reads = std::mem::take(&mut self.sent);
            self.store_reads_leaked = std::mem::take(&mut self.leaked);
            (self.accepted, self.refused, self.seen) = (0, 0, 0);
            (self.unchanged, self.errors_seen) = (0, 0);
            (self.failures, self.lost, self.retries) = ([0; Failure::COUNT], 0, 0);
            self.windows.fill(0);
        }
        self.tokens = self.sent as f64 * fold.cost.poll_tokens;
        self.cost = self.requests() as f64 * fold.cost.request + self.tokens * fold.cost.token;
        let idle = std::mem::take(&mut self.idle);
        self.store_wait.record_many(0, idle);
        self.queue_length.record_many(0, idle);
        self.store_service.record_many(service, idle);
        self.store_latency.record_many(service, idle);
        for stage in 0..Stage::COMBINED {
            let with = (0..self.masks.len()).filter(|mask| mask >> stage & 1 == 1);
            self.touched[stage] = with.map(|mask| self.masks[mask]).sum();
        }
        let observed = &self.windows[((warm_up / WINDOW) as usize).min(self.windows.len())..];
        let sum: u64 = observed.iter().map(|n| u64::from(*n)).sum();
        let far = BURST_FACTOR * sum as f64 / observed.len().max(1) as f64;
        let burst = |n: &&u32| **n >= BURST_LEAST && f64::from(**n) > far;
        self.bursts = observed.iter().filter(burst).count() as u64;
        self.peak = observed.iter().max().copied().unwrap_or(0);
    }

    /// Adds everything that another has seen.
    pub fn merge(&mut self, other: &PairTally) {
        for (mine, theirs) in self.windows.iter_mut().zip(&other.windows) {
            *mine += theirs;
        }
        let counts = [
            (&mut self.idle, other.idle),
            (&mut self.same_hints, other.same_hints),
            (&mut self.bursts, other.bursts),
            (&mut self.created, other.created),
            (&mut self.sent, other.sent),
            (&mut self.accepted, other.accepted),
            (&mut self.refused, other.refused),
            (&mut self.seen, other.seen),
            (&mut self.unchanged, other.unchanged),
            (&mut self.errors_seen, other.errors_seen),
            (&mut self.results, other.results),
            (&mut self.results_missing, other.results_missing),
            (&mut self.cancels, other.cancels),
            (&mut self.leaked, other.leaked),
            (&mut self.unseen, other.unseen),
            (&mut self.aborts, other.aborts),
            (&mut self.aborts_unsettled, other.aborts_unsettled),
            (&mut self.lost, other.lost),
            (&mut self.retries, other.retries),
            (&mut self.held_back, other.held_back),
            (&mut self.probes, other.probes),
            (&mut self.opened, other.opened),
            (&mut self.skipped, other.skipped),
            (&mut self.updates, other.updates),
            (&mut self.asked, other.asked),
            (&mut self.notices_cancelled, other.notices_cancelled),
            (&mut self.notices, other.notices),
            (&mut self.store_reads, other.store_reads),
            (&mut self.store_reads_leaked, other.store_reads_leaked),
            (&mut self.orphans, other.orphans),
        ];
        for (mine, theirs) in counts {
            *mine += theirs;
        }
        let arrays: [(&mut [u64], &[u64]); 6] = [
            (&mut self.failures, &other.failures),
            (&mut self.hints, &other.hints),
            (&mut self.causes, &other.causes),
            (&mut self.touched, &other.touched),
            (&mut self.masks, &other.masks),
            (&mut self.finals, &other.finals),
        ];
        for (mine, theirs) in arrays {
            mine.iter_mut().zip(theirs).for_each(|(m, t)| *m += t);
        }
        self.peak = self.peak.max(other.peak);
        self.hint_least = self.hint_least.min(other.hint_least);
        self.hint_greatest = self.hint_greatest.max(other.hint_greatest);
        self.active_ns += other.active_ns;
        self.open_ns += other.open_ns;
        self.leaking_ns += other.leaking_ns;
        self.leaking.merge(&other.leaking);
        self.tokens += other.tokens;
        self.cost += other.cost;
        let histograms = [
            (&mut self.sane_hints, &other.sane_hints),
            (&mut self.gap, &other.gap),
            (&mut self.interval, &other.interval),
            (&mut self.store_wait, &other.store_wait),
            (&mut self.store_service, &other.store_service),
            (&mut self.store_latency, &other.store_latency),
            (&mut self.queue_length, &other.queue_length),
            (&mut self.polls_per_task, &other.polls_per_task),
            (&mut self.streak, &other.streak),
            (&mut self.completion, &other.completion),
            (&mut self.result, &other.result),
            (&mut self.abort, &other.abort),
            (&mut self.leaked_per_abort, &other.leaked_per_abort),
            (&mut self.budget_delay, &other.budget_delay),
        ];
        for (mine, theirs) in histograms {
            mine.merge(theirs);
        }
    }
}

/// What the task stores of one server class did.
#[derive(Clone, Debug)]
pub struct ServerTally {
    /// Requests waiting.
    pub waiting: Occupancy,
    /// Busy worker time inside [warm-up, horizon), ns.
    pub busy_ns: u128,
    /// Requests waiting, integrated over [warm-up, horizon): request-ns.
    pub waiting_ns: u128,
    /// Workers of all servers of the class.
    pub workers: u64,
    /// Polls held until something changes.
    pub held: Occupancy,
    /// Polls held, integrated over [warm-up, horizon): connection-ns.
    pub held_ns: u128,
    /// Polls held now.
    pub held_now: u64,
    /// Since when that many.
    pub held_since: u64,
    /// Most polls held at once in [warm-up, horizon).
    pub held_peak: u64,
}

impl ServerTally {
    /// An empty tally for a run up to `horizon`.
    pub fn new(horizon: u64, workers: u64) -> Self {
        ServerTally {
            waiting: Occupancy::new(horizon),
            busy_ns: 0,
            waiting_ns: 0,
            workers,
            held: Occupancy::new(horizon),
            held_ns: 0,
            held_now: 0,
            held_since: 0,
            held_peak: 0,
        }
    }

    /// Counts how long a request waited that came at `now` and was taken.
    #[inline(always)]
    pub fn count_waiting(&mut self, model: &Model, now: u64, served: Served) {
        if served.start > now {
            self.waiting_ns += u128::from(model.observed_part(now, served.start));
            self.waiting.add(now, served.start);
        }
    }

    /// Adds what another class did. The peak of two classes is the sum of theirs: an upper bound.
    pub fn merge(&mut self, other: &ServerTally) {
        self.waiting.merge(&other.waiting);
        self.held.merge(&other.held);
        self.busy_ns += other.busy_ns;
        self.waiting_ns += other.waiting_ns;
        self.workers += other.workers;
        self.held_ns += other.held_ns;
        self.held_peak += other.held_peak;
    }
}

/// What the hosts of one tenant class did, and how its tenants shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct TenantTally {
    /// Hosts whose event loop has a capacity.
    pub looping_hosts: u64,
    /// Their processor time inside [warm-up, horizon), ns.
    pub busy_ns: u128,
    /// Their wake-ups.
    pub wake_ups: u64,
    /// Times that a host started again.
    pub reconnects: u64,
    /// Tenants with a task.
    pub sharers: f64,
    /// Their polls by weight, summed.
    pub shares: f64,
    /// … squared and summed.
    pub squares: f64,
}

impl TenantTally {
    /// Counts a tenant who sent so many polls; `weight` is its share of a budget.
    pub fn share(&mut self, polls: u64, weight: f64) {
        let share = polls as f64 / weight;
        self.sharers += 1.0;
        self.shares += share;
        self.squares += share * share;
    }

    /// Jain's index of fairness (Jain, Chiu, Hawe 1984): 1 where all have the same, 1/n where one has everything.
    pub fn fairness(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.shares * self.shares / (self.sharers * self.squares))
    }

    /// Adds what another class did.
    pub fn merge(&mut self, other: &TenantTally) {
        self.looping_hosts += other.looping_hosts;
        self.busy_ns += other.busy_ns;
        self.wake_ups += other.wake_ups;
        self.reconnects += other.reconnects;
        self.sharers += other.sharers;
        self.shares += other.shares;
        self.squares += other.squares;
    }
}
