//! What is kept of a task of a log: some 90 bytes.
//!
//! Times are seconds since the task's first line, in 32 bits: seven digits, so a tenth of a millisecond after twenty minutes. Lines of a task may come in any
//! order; what depends on their order (gaps, leaked polls, hints that change) takes them as they come.

use super::event::{Instant, Status};
use crate::policy::{HintClass, RawHint};

/// Seconds since the first line of the task; not a number where there is no such instant.
#[derive(Clone, Copy, Debug)]
pub struct Offset(f32);

impl Offset {
    /// No instant.
    pub const NONE: Offset = Offset(f32::NAN);

    /// The seconds, where there is an instant.
    pub fn seconds(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(f64::from(self.0))
    }
}

/// A hint in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmallHint {
    /// Its class.
    pub class: HintClass,
    /// The number in it, where it has one.
    pub ms: f32,
}

impl SmallHint {
    /// The hint with seven digits.
    pub fn new(hint: RawHint) -> Self {
        SmallHint {
            class: hint.class(),
            ms: match hint {
                RawHint::Number(ms) | RawHint::Text(ms) if !ms.is_nan() => ms as f32,
                _ => 0.0,
            },
        }
    }
}

/// How the last poll of a task went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It has a good answer, or there was only the creation.
    Good,
    /// It was refused.
    Refused,
    /// It has no answer so far.
    InFlight,
}

/// How the log shows that a caller gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// It does not.
    No,
    /// `tasks/cancel`.
    Cancel,
    /// `notifications/cancelled` for a request of the task.
    Notification,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Its hashed id.
    pub id: u64,
    /// The instant of its first line.
    pub base: Instant,
    /// When its last answer was there; the creation's counts.
    pub last_answered: Instant,
    /// When its creation was asked for.
    pub asked: Offset,
    /// When its host held the id.
    pub created: Offset,
    /// `createdAt`, by the server's clock.
    pub server_created: Offset,
    /// When its first poll was sent.
    pub first_poll: Offset,
    /// When its last poll was sent.
    pub last_sent: Offset,
    /// The latest instant at which it was seen unfinished.
    pub last_working: Offset,
    /// The earliest instant at which it was seen ended, by the server's reading …
    pub terminal_read: Offset,
    /// … and when the host had that answer.
    pub terminal_seen: Offset,
    /// `lastUpdatedAt` of that answer, by the server's clock.
    pub ended: Offset,
    /// When its caller gave up.
    pub abort: Offset,
    /// Polls sent.
    pub polls: u32,
    /// The last hint.
    pub hint: SmallHint,
    /// Polls sent after the abort.
    pub leaked: u16,
    /// Its tenant.
    pub tenant: u16,
    /// Its server.
    pub server: u16,
    /// How it ended.
    pub end: Option<Status>,
    /// How its last poll went.
    pub last: Last,
    /// How its caller gave up.
    pub given_up: GivenUp,
    /// Hints counted so far: none, one, two or more.
    pub hints: u8,
    /// Not all its hints are the same.
    pub varied: bool,
    /// It asked for input.
    pub asked_input: bool,
    /// The server did not know it.
    pub unknown: bool,
}

const _: () = assert!(size_of::<Task>() <= 96, "there are millions of them");

impl Task {
    /// A task of which nothing is known but its first line.
    pub fn new(id: u64, base: Instant, tenant: u16, server: u16) -> Self {
        let none = Offset::NONE;
        Task {
            id,
            base,
            last_answered: Instant::MIN,
            asked: none,
            created: none,
            server_created: none,
            first_poll: none,
            last_sent: none,
            last_working: none,
            terminal_read: none,
            terminal_seen: none,
            ended: none,
            abort: none,
            polls: 0,
            hint: SmallHint::new(RawHint::Absent),
            leaked: 0,
            tenant,
            server,
            end: None,
            last: Last::Good,
            given_up: GivenUp::No,
            hints: 0,
            varied: false,
            asked_input: false,
            unknown: false,
        }
    }

    /// An instant as this task keeps it.
    pub fn offset(&self, at: Instant) -> Offset {
        Offset((at.saturating_sub(self.base) as f64 / 1e9) as f32)
    }

    /// Keeps the earlier of two instants.
    pub fn earlier(&self, known: Offset, at: Instant) -> Offset {
        Offset(known.0.min(self.offset(at).0))
    }

    /// Keeps the later of two instants.
    pub fn later(&self, known: Offset, at: Instant) -> Offset {
        Offset(known.0.max(self.offset(at).0))
    }

    /// What an answer, read by the server at `read` and seen by the host at `seen`, says of the task's status.
    pub fn observe(
        &mut self,
        status: Status,
        read: Instant,
        seen: Instant,
        updated: Option<Instant>,
    ) {
        self.asked_input |= status == Status::InputRequired;
        if !status.is_terminal() {
            self.last_working = self.later(self.last_working, read);
            return;
        }
        let earlier = self.earlier(self.terminal_read, read);
        if self.terminal_read.seconds() == earlier.seconds() {
            return;
        }
        self.terminal_read = earlier;
        self.terminal_seen = self.offset(seen);
        self.end = Some(status);
        self.ended = updated.map_or(Offset::NONE, |at| self.offset(at));
    }
}
