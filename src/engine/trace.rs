//! The story of one task, told while the engine runs.

use super::Simulation;
use super::task::Task;
use crate::policy::{HintClass, RawHint, Stage, Wait};

/// Which task to follow.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// Only tasks of this tenant class.
    pub tenant: Option<u16>,
    /// The Nth task created (of that class), from 1.
    pub number: u64,
}

/// One row of the story.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When, ns.
    pub at: u64,
    /// Rows of one instant are told in this order.
    pub rank: u8,
    /// What happened.
    pub event: &'static str,
    /// A poll's details.
    pub poll: Option<PollRow>,
    /// The wait that was chosen then.
    pub wait: Option<WaitRow>,
    /// Anything else worth saying.
    pub note: String,
}

/// A poll as the host saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct PollRow {
    /// Its number, from 1.
    pub number: u32,
    /// When it was sent, ns.
    pub sent: u64,
    /// When its answer was seen, ns; `None` where it never was.
    pub seen: Option<u64>,
    /// The status in the answer, or the error.
    pub status: &'static str,
}

/// A wait, stage by stage.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitRow {
    /// The hint in the answer; `None` where it was an error.
    pub hint: Option<RawHint>,
    /// What each stage made of it.
    pub wait: Wait,
}

impl WaitRow {
    /// The hint as on the wire.
    pub fn hint_text(&self) -> String {
        match self.hint {
            None | Some(RawHint::Absent) => String::new(),
            Some(RawHint::Null) => "null".into(),
            Some(RawHint::Number(ms)) => format!("{ms}"),
            Some(RawHint::Text(number)) if number.is_nan() => "text".into(),
            Some(RawHint::Text(number)) => format!("\"{number}\""),
        }
    }

    /// Its class.
    pub fn class(&self) -> Option<HintClass> {
        self.hint.map(RawHint::class)
    }

    /// The stages that changed the wait, in words, in the order of their names here; `cause` says which was last.
    pub fn stages(&self) -> String {
        let names: Vec<&str> = Stage::ALL
            .iter()
            .filter(|s| self.wait.touched >> **s as u8 & 1 == 1)
            .map(|s| s.name())
            .collect();
        names.join(" + ")
    }
}

/// The follower and what it has written.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    /// Which task.
    pub follow: Follow,
    /// Tasks of that class seen so far.
    pub created: u64,
    /// The rows, in the order of telling.
    pub rows: Vec<Row>,
    /// Who it is about: tenant class, member, ordinal, server class, server.
    pub subject: Option<(u16, u32, u32, u16, u32)>,
}

impl Tracer {
    /// Is the task now created the one to follow?
    pub fn wants(&mut self, class: u16) -> bool {
        if self.subject.is_some() || self.follow.tenant.is_some_and(|t| t != class) {
            return false;
        }
        self.created += 1;
        self.created == self.follow.number.max(1)
    }

    /// Adds a row.
    pub fn tell(&mut self, at: u64, rank: u8, event: &'static str, note: String) -> &mut Row {
        self.rows.push(Row {
            at,
            rank,
            event,
            poll: None,
            wait: None,
            note,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }
}

impl Simulation<'_> {
    #[cold]
    pub(super) fn begin_story(&mut self, slot: u32, task: &Task) {
        if let Some(tracer) = &mut self.tracer {
            tracer.subject = Some((
                task.class,
                task.member,
                task.ordinal,
                task.server_class,
                task.server,
            ));
        }
        self.tell(slot, task.created, 0, "created", || "working".into());
    }

    /// Adds a row to the story, if this task's is told.
    #[inline]
    pub(super) fn tell(
        &mut self,
        slot: u32,
        at: u64,
        rank: u8,
        event: &'static str,
        note: impl FnOnce() -> String,
    ) {
        if self.tracer.is_some() && self.slab.tasks[slot as usize].traced {
            self.tell_now(at, rank, event, note());
        }
    }

    #[cold]
    fn tell_now(&mut self, at: u64, rank: u8, event: &'static str, note: String) {
        if let Some(tracer) = &mut self.tracer {
            tracer.tell(at, rank, event, note);
        }
    }

    #[inline]
    pub(super) fn tell_poll(&mut self, slot: u32, seen: Option<u64>, status: &'static str) {
        if self.tracer.is_some() && self.slab.tasks[slot as usize].traced {
            self.tell_poll_now(slot, seen, status);
        }
    }

    #[cold]
    fn tell_poll_now(&mut self, slot: u32, seen: Option<u64>, status: &'static str) {
        let task = &self.slab.tasks[slot as usize];
        let row = PollRow {
            number: task.polls,
            sent: task.sent,
            seen,
            status,
        };
        if let Some(tracer) = &mut self.tracer {
            tracer
                .tell(seen.unwrap_or(task.sent), 3, "poll", String::new())
                .poll = Some(row);
        }
    }

    /// Adds a wait to the row of what it follows: a poll, a notification, a breaker that held a poll back, or the creation.
    #[cold]
    pub(super) fn tell_wait(&mut self, slot: u32, at: u64, hint: Option<RawHint>, wait: Wait) {
        let polled = self.slab.tasks[slot as usize].polls > 0;
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let event = if polled { "poll" } else { "created" };
        if let Some(row) = tracer
            .rows
            .iter_mut()
            .rev()
            .find(|r| r.at == at && [event, "notification", "held back"].contains(&r.event))
        {
            row.wait = Some(WaitRow { hint, wait });
        }
    }
}
