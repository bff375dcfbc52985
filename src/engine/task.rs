//! What the engine keeps of a task while it is alive.

use crate::policy::{RawHint, State};
use crate::random::Key;

/// A task: exactly two cache lines, so that both can be fetched ahead.
#[derive(Clone, Copy, Debug)]
#[repr(align(128))]
pub struct Task {
    /// Root of its draws.
    pub key: Key,
    /// When it ends at the server; [`u64::MAX`] while that is unknown.
    pub end: u64,
    /// When its caller aborts; [`u64::MAX`] for never.
    pub abort: u64,
    /// When its host held the id.
    pub created: u64,
    /// When the poll in flight, or the last one, was sent.
    pub sent: u64,
    /// The last tick of a fixed-rate loop.
    pub tick: u64,
    /// What the policy remembers.
    pub state: State,
    /// The hint drawn once for the task: the number in it.
    pub(super) hint_ms: f64,
    /// Polls sent.
    pub polls: u32,
    /// Polls sent after the abort.
    pub leaked: u32,
    /// Consecutive polls that brought no change.
    pub streak: u32,
    /// Its server.
    pub server: u32,
    /// Its tenant, among all members.
    pub member: u32,
    /// Which task of its tenant.
    pub ordinal: u32,
    /// (tenant class, server class).
    pub pair: u16,
    /// Tenant class.
    pub class: u16,
    /// Server class.
    pub server_class: u16,
    /// Polls at one instant in a row.
    pub at_once: u16,
    /// The hint drawn once for the task: its kind.
    pub(super) hint_kind: HintKind,
    /// How it ends at the server.
    pub outcome: Outcome,
    /// How far it is.
    pub life: Life,
    /// It was created inside the observed interval.
    pub counted: bool,
    /// Its story is being told.
    pub traced: bool,
    /// How its polls are carried.
    pub path: Path,
    /// Events and queues that refer to its slot.
    pub holds: u16,
}

/// How the polls of a task are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Path {
    /// Nothing comes between a poll and its answer but delays and a queue.
    Plain,
    /// Its server may refuse, lose or forget: see [`super::guard`].
    Guarded,
    /// Its timers, answers and aborts are events as well: see [`super::coupled`].
    Coupled,
}

/// How far the loop of a slot's task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Life {
    /// The slot is spare.
    Spare,
    /// It is polled.
    Polled,
    /// Its loop has ended.
    Settled,
    /// … and it will end unseen by a host that wanted it, at an instant not yet known.
    SettledUnseen,
}

/// The kinds of [`RawHint`], apart from their numbers: together they take 16 bytes, apart 9.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum HintKind {
    Absent,
    Null,
    Number,
    Text,
}

impl Task {
    /// Has its loop ended?
    #[inline]
    pub fn settled(&self) -> bool {
        self.life >= Life::Settled
    }

    /// Are its timers, answers and aborts events?
    #[inline]
    pub fn coupled(&self) -> bool {
        self.path == Path::Coupled
    }

    /// Is it polled?
    #[inline]
    pub fn polled(&self) -> bool {
        self.life == Life::Polled
    }

    /// A task without polls, created at `created` and as yet without a place or an end.
    pub fn new(key: Key, created: u64) -> Self {
        Task {
            key,
            end: u64::MAX,
            abort: u64::MAX,
            created,
            sent: created,
            tick: created,
            state: State::default(),
            hint_ms: 0.0,
            polls: 0,
            leaked: 0,
            streak: 0,
            server: 0,
            member: 0,
            ordinal: 0,
            pair: 0,
            class: 0,
            server_class: 0,
            at_once: 0,
            hint_kind: HintKind::Absent,
            outcome: Outcome::Completed,
            holds: 0,
            life: Life::Polled,
            counted: false,
            traced: false,
            path: Path::Plain,
        }
    }

    /// The hint drawn once for the task.
    #[inline]
    pub fn hint(&self) -> RawHint {
        match self.hint_kind {
            HintKind::Absent => RawHint::Absent,
            HintKind::Null => RawHint::Null,
            HintKind::Number => RawHint::Number(self.hint_ms),
            HintKind::Text => RawHint::Text(self.hint_ms),
        }
    }

    /// Keeps the hint drawn once for the task.
    pub fn set_hint(&mut self, hint: RawHint) {
        (self.hint_kind, self.hint_ms) = match hint {
            RawHint::Absent => (HintKind::Absent, 0.0),
            RawHint::Null => (HintKind::Null, 0.0),
            RawHint::Number(ms) => (HintKind::Number, ms),
            RawHint::Text(ms) => (HintKind::Text, ms),
        };
    }
}

/// How a task ends at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// With a result.
    Completed,
    /// With an error.
    Failed,
    /// Cancelled, by the server or at the host's request.
    Cancelled,
}

impl Outcome {
    /// The status on the wire.
    pub fn status(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }
}

const _: () = assert!(size_of::<Task>() == 128);

/// The tasks alive, in slots that are used again.
#[derive(Debug, Default)]
pub struct Slab {
    /// The slots.
    pub tasks: Vec<Task>,
    spare: Vec<u32>,
}

impl Slab {
    /// Slots for so many tasks, before there are more.
    pub fn with_capacity(tasks: usize) -> Self {
        Slab {
            tasks: Vec::with_capacity(tasks),
            spare: Vec::new(),
        }
    }

    /// Puts a task into a slot.
    pub fn insert(&mut self, task: Task) -> u32 {
        match self.spare.pop() {
            Some(slot) => {
                self.tasks[slot as usize] = task;
                slot
            }
            None => {
                if self.tasks.len() == self.tasks.capacity() {
                    // By an eighth: thousands of slabs that double would take twice the memory of their tasks.
                    self.tasks.reserve_exact(self.tasks.len() / 8 + 64);
                }
                self.tasks.push(task);
                (self.tasks.len() - 1) as u32
            }
        }
    }

    /// Forgets all tasks.
    pub fn clear(&mut self) {
        self.tasks.clear();
        self.spare.clear();
    }

    /// Drops one hold on a slot, and the task with the last of them once its loop has ended.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        let task = &mut self.tasks[slot as usize];
        task.holds -= 1;
        self.sweep(slot);
    }

    /// Frees the slot if nothing refers to it any more.
    #[inline]
    pub fn sweep(&mut self, slot: u32) {
        let task = &mut self.tasks[slot as usize];
        if task.settled() && task.holds == 0 {
            task.life = Life::Spare;
            self.spare.push(slot);
        }
    }
}
