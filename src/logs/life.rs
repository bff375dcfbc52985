//! What is known of one task of a log: when it began, how long it lasted, whether and when it was given up, how late its end was seen.

use super::collector::OfTenant;
use super::event::{Instant, Status};
use super::fitted::Server;
use super::sample::{median, quantile, sorted};
use super::survival::Observed;
use super::task::{GivenUp, Task};

/// A task is quiet when it has not been polled for so many of its longest usual gaps.
const QUIET_GAPS: f64 = 3.0;

/// How a log shows that a task was given up: `tasks/cancel`.
pub const CANCEL: &str = "tasks/cancel";
/// … a cancelled request.
const NOTIFICATION: &str = "notifications/cancelled";
/// … its loop ended because the server did not know it.
const UNKNOWN: &str = "unknown task";
/// … it was not polled any more.
const STOPPED: &str = "polls stopped";

/// A task, with its times in ms since its host held the id.
pub struct Life {
    /// When its end was seen.
    pub seen_ms: Option<f64>,
    /// How long it lasted.
    pub duration: Observed,
    /// When it was given up, and how the log shows it.
    pub abort: Option<(f64, &'static str)>,
    /// How it ended, if not by its caller's cancelling it.
    pub natural_end: Option<Status>,
    /// The completion latency, at least and at most; `None` where its end was not seen, or no one waited for it.
    pub latency_ms: Option<(f64, f64)>,
    /// How long the log follows it.
    pub followed_ms: f64,
}

/// What the tasks of a tenant are read with.
pub struct Tasks<'a> {
    servers: &'a [Server],
    start: Instant,
    end: Instant,
    /// Most tasks have a creation in the log, or a date of it.
    has_creations: bool,
    /// The longest usual gap between two polls, ms.
    usual_gap_ms: Option<f64>,
    /// The middle wait, ms.
    usual_wait_ms: f64,
}

impl<'a> Tasks<'a> {
    /// Of a tenant, in a log of this span.
    pub fn new(
        of: &OfTenant,
        tasks: impl ExactSizeIterator<Item = &'a Task>,
        servers: &'a [Server],
        (start, end): (Instant, Instant),
    ) -> Self {
        let all = || of.waits.kept.iter().chain(&of.first_waits.kept);
        let gaps = sorted(all().map(|w| f64::from(w.gap_ms.max(w.wait_ms))));
        let mut with = Tasks {
            servers,
            start,
            end,
            has_creations: false,
            usual_gap_ms: quantile(&gaps, 0.99),
            usual_wait_ms: median(all().map(|w| f64::from(w.wait_ms))).unwrap_or(0.0),
        };
        let count = tasks.len();
        let born = tasks.filter(|task| with.birth(task).is_some()).count();
        with.has_creations = born * 2 >= count;
        with
    }

    fn server(&self, task: &Task) -> &'a Server {
        &self.servers[usize::from(task.server)]
    }

    /// When the host held the task's id, s since its first line.
    fn birth(&self, task: &Task) -> Option<f64> {
        if let Some(created) = task.created.seconds() {
            return Some(created);
        }
        let clock = self.server(task).clock? as f64 / 1e9;
        let created = task.server_created.seconds()? + clock;
        // A task is not polled before it is there.
        let first = task.first_poll.seconds().unwrap_or(f64::INFINITY);
        (created <= first).then_some(created)
    }

    /// When it was asked for, s since the log's start.
    pub fn arrival_s(&self, task: &Task) -> f64 {
        let since = (task.base - self.start) as f64 / 1e9;
        let first = task.asked.seconds().or(self.birth(task));
        (since + first.or(task.first_poll.seconds()).unwrap_or(0.0)).max(0.0)
    }

    /// What is known of a task; `None` for one that was under way when the log began.
    pub fn life(&self, task: &Task) -> Option<Life> {
        let birth = match self.birth(task) {
            Some(birth) => birth,
            None if self.has_creations => return None,
            None => task.first_poll.seconds()?,
        };
        let since = |at: f64| ((at - birth) * 1e3).max(0.0);
        let seen_ms = task.terminal_seen.seconds().map(since);
        let given_up = self.given_up(task);
        let abort = given_up.map(|(at, how)| (since(at), how));
        let by_abort = given_up.is_some() && task.end == Some(Status::Cancelled);
        let polls = Polls {
            working_ms: task.last_working.seconds().map_or(0.0, since),
            read_ms: task.terminal_read.seconds().map(since),
        };
        let waited_for = seen_ms.filter(|_| !by_abort && abort.is_none());
        Some(Life {
            seen_ms,
            duration: match by_abort {
                true => Observed::Beyond(polls.working_ms),
                false => self.duration(task, polls),
            },
            abort,
            natural_end: task.end.filter(|_| !by_abort),
            latency_ms: waited_for.and_then(|seen| self.latency_ms(task, polls, seen, since)),
            followed_ms: since((self.end - task.base) as f64 / 1e9),
        })
    }

    /// How long a task lasted: by its dates where these are exact, else between two polls, and within what cut dates say.
    fn duration(&self, task: &Task, polls: Polls) -> Observed {
        let Some(read_ms) = polls.read_ms else {
            return Observed::Beyond(polls.working_ms);
        };
        let working_ms = polls.working_ms.min(read_ms);
        let dated_ms = match (task.server_created.seconds(), task.ended.seconds()) {
            (Some(created), Some(ended)) if ended >= created => (ended - created) * 1e3,
            _ => return Observed::Between(working_ms, read_ms),
        };
        let coarse_ms = self.server(task).resolution_ms;
        if coarse_ms == 0.0 {
            return Observed::Exactly(dated_ms);
        }
        // Both dates are cut: their difference is less than that off.
        let low = (dated_ms - coarse_ms).max(working_ms);
        let high = (dated_ms + coarse_ms).min(read_ms);
        match low < high {
            true => Observed::Between(low, high),
            false => Observed::Between(working_ms, read_ms),
        }
    }

    /// From the end to the host's seeing it, at least and at most. `since` gives ms since the host held the id.
    fn latency_ms(
        &self,
        task: &Task,
        polls: Polls,
        seen_ms: f64,
        since: impl Fn(f64) -> f64,
    ) -> Option<(f64, f64)> {
        let read_ms = polls.read_ms?;
        let server = self.server(task);
        let (from, to) = match (server.clock, task.ended.seconds()) {
            (Some(clock), Some(ended)) => {
                let ended_ms = since(ended + clock as f64 / 1e9);
                let cut_ms = server.resolution_ms.min((read_ms - ended_ms).max(0.0));
                (ended_ms, ended_ms + cut_ms)
            }
            _ => (polls.working_ms.min(read_ms), read_ms),
        };
        Some(((seen_ms - to).max(0.0), (seen_ms - from).max(0.0)))
    }

    /// When a task was given up, s since its first line, and how the log shows it.
    fn given_up(&self, task: &Task) -> Option<(f64, &'static str)> {
        let how = match task.given_up {
            GivenUp::Cancel => CANCEL,
            GivenUp::Notification => NOTIFICATION,
            GivenUp::No => "",
        };
        if let Some(abort) = task.abort.seconds() {
            return Some((abort, how));
        }
        if task.terminal_seen.seconds().is_some() {
            return None;
        }
        let last = task.last_sent.seconds().or(task.created.seconds());
        let answered = (task.last_answered > Instant::MIN)
            .then(|| task.offset(task.last_answered).seconds())
            .flatten();
        let last = answered.into_iter().chain(last).reduce(f64::max)?;
        if task.unknown {
            return Some((last, UNKNOWN));
        }
        let quiet_ms = ((self.end - task.base) as f64 / 1e9 - last) * 1e3;
        let usual = self.usual_gap_ms?.max(f64::from(task.hint.ms));
        // Somewhere in the wait that was not followed by a poll.
        let abort = last + 0.5 * self.usual_wait_ms / 1e3;
        (quiet_ms > QUIET_GAPS * usual).then_some((abort, STOPPED))
    }
}

/// What polls say of a task's end, ms since its host held the id.
#[derive(Clone, Copy)]
struct Polls {
    /// The latest reading that it had not ended; 0 without one.
    working_ms: f64,
    /// The earliest that it had.
    read_ms: Option<f64>,
}
