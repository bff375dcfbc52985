//! Outages, slow periods, reconnects and pauses, ready to run.

use super::TimeSampler;
use crate::scenario::written;

/// When servers are down.
#[derive(Clone, Debug)]
pub struct Outage {
    /// [from, to), ascending and apart, the same for every server of the class.
    pub windows: Vec<(u64, u64)>,
    /// Random times up and down of each server.
    pub random: Option<(TimeSampler, TimeSampler)>,
    /// Is a request that comes then left without an answer?
    pub silent: bool,
    /// Are tasks forgotten?
    pub forgets: bool,
}

/// When servers are slow.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    /// From here on.
    pub from: u64,
    /// Up to here.
    pub to: u64,
    /// Service takes so many times as long.
    pub factor: f64,
}

/// Notifications that a server sends.
#[derive(Clone, Debug)]
pub struct Notifications {
    /// Probability that one comes.
    pub share: f64,
    /// How long it takes.
    pub delay: TimeSampler,
}

/// When hosts start again.
#[derive(Clone, Debug)]
pub struct Reconnect {
    /// Fixed times.
    pub at: Vec<u64>,
    /// Time between reconnects.
    pub every: Option<TimeSampler>,
    /// Over which the first polls are spread.
    pub spread: u64,
    /// Do the old loops run on?
    pub duplicates: bool,
}

/// The capacity of a host's event loop.
#[derive(Clone, Copy, Debug)]
pub struct HostLoop {
    /// Processor time of a wake-up.
    pub wake_up: u64,
    /// Processor time of a poll.
    pub poll: u64,
    /// The next wake-up comes no sooner than this after a batch.
    pub pause: u64,
}

/// Tasks that pause for an answer.
#[derive(Clone, Debug)]
pub struct Input {
    /// Share of tasks that ask.
    pub probability: f64,
    /// How many each of them asks at most.
    pub questions: u32,
    /// Time from the start to the question, or from an answer to the next.
    pub after: TimeSampler,
    /// Time from seeing it to the answer.
    pub answer: TimeSampler,
}

impl Outage {
    pub(super) fn new(outage: &written::Outage) -> Self {
        let mut windows: Vec<(u64, u64)> = outage
            .windows
            .iter()
            .map(|w| (w.from.0, w.from.0.saturating_add(w.length.0.0)))
            .collect();
        windows.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for (from, to) in windows {
            match apart.last_mut() {
                Some(last) if last.1 >= from => last.1 = last.1.max(to),
                _ => apart.push((from, to)),
            }
        }
        Outage {
            windows: apart,
            random: outage
                .random
                .as_ref()
                .map(|r| (TimeSampler::new(&r.up), TimeSampler::new(&r.down))),
            silent: outage.answers == written::DownAnswer::Silent,
            forgets: outage.forgets,
        }
    }
}

impl Slow {
    pub(super) fn new(slow: &written::SlowPeriod) -> Self {
        Slow {
            from: slow.from.0,
            to: slow.from.0.saturating_add(slow.length.0.0),
            factor: slow.factor.0,
        }
    }
}

impl Reconnect {
    pub(super) fn new(reconnect: &written::Reconnect) -> Self {
        let mut at: Vec<u64> = reconnect.at.iter().map(|d| d.0).collect();
        at.sort_unstable();
        at.dedup();
        Reconnect {
            at,
            every: reconnect.every.as_ref().map(TimeSampler::new),
            spread: reconnect.spread.0,
            duplicates: reconnect.duplicates,
        }
    }
}

impl HostLoop {
    pub(super) fn new(host: &written::HostLoop) -> Self {
        HostLoop {
            wake_up: host.wake_up.0,
            poll: host.poll.0,
            pause: host.pause.0,
        }
    }
}

impl Input {
    pub(super) fn new(input: &written::Input) -> Self {
        Input {
            probability: input.probability.0,
            questions: input.questions.0,
            after: TimeSampler::new(&input.after),
            answer: TimeSampler::new(&input.answer),
        }
    }
}

impl Notifications {
    pub(super) fn new(notifications: &written::Notifications) -> Self {
        Notifications {
            share: notifications.share.0,
            delay: TimeSampler::new(&notifications.delay),
        }
    }
}
