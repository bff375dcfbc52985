//! The host-owned envelope: how a host turns hints and answers into waits.
//!
//! A decision is a pure function of (policy, per-task [`State`], what the host just saw, one uniform draw). This module
//! knows neither clock nor I/O nor engine, so the policy that was simulated can be lifted into a real host.
//! The stages, in order: read the hint, classify it, bound it, back off, jitter, bound again, timer.
//! Budgets and breakers stand between a decision and a send; they need the fleet's state and are no part of it.

mod decide;
pub mod hint;
mod stages;
mod steady;

pub use hint::{HintClass, JsonType, Outcome, RawHint, Rule, Rules};
pub use stages::{Backoff, Jitter, Step, Timer};
pub use steady::{Steady, SteadyWait};

/// A time or a span of time in nanoseconds.
pub type Nanos = u64;

/// A wait that never ends (about 146 years).
pub const FOREVER: Nanos = 1 << 62;

/// A host's rules, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name in the scenario.
    pub name: String,
    /// What the hint is for this host.
    pub role: Role,
    /// Which hint it reads.
    pub read: ReadAt,
    /// What an answer without a hint means.
    pub absent: WhenAbsent,
    /// What each kind of hint becomes.
    pub rules: Rules,
    /// The value when there is no hint.
    pub default: Nanos,
    /// Lower bound; 0 where there is none.
    pub floor: Nanos,
    /// Upper bound; [`FOREVER`] where there is none.
    pub ceiling: Nanos,
    /// Does the ceiling cut a server's hint too?
    pub ceiling_cuts_hints: bool,
    /// The last stage after which the bounds hold.
    pub bounds: BoundsAt,
    /// Growth while the status is unchanged.
    pub backoff: Backoff,
    /// Does it leave waits that follow a server's hint as they are?
    pub hints_stop_backoff: bool,
    /// When it starts again.
    pub reset: Reset,
    /// What an error answer does.
    pub errors: OnError,
    /// Is a timeout one? Else polls go on as after an answer without a hint.
    pub timeouts_are_errors: bool,
    /// Randomness.
    pub jitter: Jitter,
    /// Jittered waits are whole multiples of this above their least; 0 for any.
    pub jitter_step: Nanos,
    /// When the first poll is sent.
    pub first_poll: FirstPoll,
    /// Is the wait counted from the answer (else from the last tick)?
    pub fixed_delay: bool,
    /// The host's timer.
    pub timer: Timer,
    /// Can an abort interrupt a wait?
    pub manner: WaitManner,
    /// Age of the task at which the loop ends.
    pub give_up_after: Nanos,
    /// What becomes of a wait that reaches beyond that.
    pub last_wait: LastWait,
    /// Does the server's `ttl` end the loop as well?
    pub ends_at_ttl: bool,
    /// Polls after which the loop ends.
    pub max_polls: u32,
    /// Is `tasks/result` called for a completed task?
    pub fetches_result: bool,
    /// Added to every later wait by each `slow_down`.
    pub slow_down: Nanos,
    /// Error answers in a row after which the loop ends.
    pub max_errors: u32,
    /// What the host makes of `Retry-After`.
    pub retry_after: OnRetryAfter,
    /// What `input_required` does to the loop.
    pub on_question: OnQuestion,
    /// Questions of a task after which the next one ends the loop; 255 for no limit.
    pub max_questions: u8,
    /// Answers in a row that show a question that is not new, of which the last ends the loop; 255 for no limit.
    pub stuck_after: u8,
    /// Ends of the loop at which `tasks/cancel` is sent.
    pub cancels: Cancels,
}

/// What becomes of a wait that reaches beyond the deadline of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWait {
    /// The host sleeps until the deadline, and gives up.
    Slept,
    /// The host gives up at once.
    Refused,
    /// It is cut to the deadline, where a last poll is sent.
    Trimmed,
    /// A wait that would leave this or less is cut so that this is left; with no more than this left the host gives up at once.
    TrimmedLess(Nanos),
}

/// What `input_required` does to a loop. Its host answers the question in each case but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnQuestion {
    /// Polls go on at their interval.
    PollsOn,
    /// Polls follow each other without a wait as long as the status stands.
    PollsAtOnce,
    /// One poll follows at once, then they go on at their interval.
    PollsOnceMore,
    /// The result is asked for, in a request that the server holds until the end.
    AwaitsResult,
    /// The loop ends.
    Ends,
}

/// Ends of a loop at which its host sends `tasks/cancel`; an abort is the caller's (see the scenario's `on_abort`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cancels {
    /// When the host gives up at its deadline, or after its last poll.
    pub at_deadline: bool,
    /// When an error ends the loop.
    pub at_error: bool,
    /// When a question ends it.
    pub at_question: bool,
}

/// What a host makes of `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRetryAfter {
    /// Nothing.
    Ignored,
    /// The wait follows it.
    Obeyed {
        /// Is it the wait (else a lower bound of it)?
        is_wait: bool,
        /// Cuts it; [`FOREVER`] where nothing does.
        ceiling: Nanos,
        /// Longer times become what `beyond` says.
        limit: Nanos,
        /// What happens to longer times.
        beyond: BeyondLimit,
        /// Is it read from good answers too?
        on_success: bool,
    },
}

/// What happens to a `Retry-After` above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeyondLimit {
    /// Cut to the limit.
    Cut,
    /// Ignored.
    Ignore,
    /// The loop ends.
    End,
}

/// What a hint is for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The wait, before bounds.
    Value,
    /// Nothing.
    Ignored,
    /// A lower bound under the host's own terms.
    Floor,
    /// The ceiling of the host's own backoff.
    RampCeiling,
}

/// Which hint a host reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// That of every answer.
    EveryAnswer,
    /// That of the creation only.
    Creation,
    /// That of the first answer to a poll, for ever.
    FirstAnswer,
}

/// What an answer without a hint means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// The default.
    Default,
    /// The last hint that there was.
    KeepLast,
    /// The creation's.
    Creation,
}

/// The last stage after which a wait is bounded. The base is bounded before the backoff in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundsAt {
    /// The jitter: the final wait lies inside the bounds.
    Final,
    /// The backoff: jitter may leave them.
    BeforeJitter,
    /// None: backoff and jitter may leave them.
    BeforeBackoff,
}

/// When a backoff starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// When the status changes.
    OnChange,
    /// When the status changes, and after an error answer.
    OnChangeOrError,
    /// Never.
    Never,
}

/// What an error answer does.
#[derive(Clone, Debug, PartialEq)]
pub enum OnError {
    /// The loop ends.
    End,
    /// The next poll follows after the same wait as after an answer without a hint.
    Retry,
    /// The next poll follows after a wait of its own.
    BackOff {
        /// Waits by the number of errors before.
        waits: Backoff,
        /// Does a good answer start it again?
        reset_on_success: bool,
        /// Does the wait become the interval from then on?
        sticks: bool,
    },
}

/// When the first poll is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPoll {
    /// With the creation's answer.
    AtOnce,
    /// After one wait of the policy.
    AfterWait,
    /// After a time of its own.
    After(Nanos),
}

/// Can an abort interrupt a wait?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitManner {
    /// At once.
    Interruptible,
    /// When the sleep ends.
    CheckedAfterSleep,
    /// After each slice of this length.
    Sliced(Nanos),
    /// Never.
    Ignored,
}

/// What the loop of one task remembers between answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct State {
    /// The hint kept from an earlier answer, after classification.
    kept: Nanos,
    /// The creation's hint, after classification.
    creation: Nanos,
    /// The wait chosen last.
    previous: Nanos,
    /// Waits since the backoff started, 65,535 for all beyond.
    waits: u16,
    /// Questions that were asked, 255 for all beyond.
    questions: u8,
    /// Answers in a row that showed the question, 255 for all beyond.
    asked: u8,
    /// Consecutive error answers, 255 for all beyond.
    errors: u8,
    /// `slow_down` answers, 255 for all beyond.
    slow_downs: u8,
    /// Where `kept` is from; `None` while there is nothing kept.
    kept_from: Option<Stage>,
    /// Where `creation` is from; `None` where the creation had no hint.
    creation_from: Option<Stage>,
}

/// What a host sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Saw {
    /// The creation's answer with its hint; the wait before the first poll is asked for.
    Created(RawHint),
    /// An answer: not the end, and the status as it was.
    Unchanged(RawHint),
    /// An answer: not the end, but the status has changed.
    Changed(RawHint),
    /// An answer: the task asks for input (`input_required`).
    Asks {
        /// Its hint.
        hint: RawHint,
        /// A question that the host has not seen before.
        new: bool,
    },
    /// An error answer, or a poll that a breaker let fail.
    Error,
    /// A request that was given up.
    TimedOut,
    /// A refusal because polls come too fast.
    SlowDown,
}

/// What the host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Waits so long, then polls.
    Wait(Wait),
    /// Asks for the result at once, in a request that is answered at the end.
    AwaitResult,
    /// Ends the loop.
    End(LoopEnd),
}

/// Why a loop ended of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// A hint or an error answer that the policy ends on.
    Error,
    /// An answer was rejected because of its hint.
    Rejected,
    /// A question that the policy does not answer, or one too many.
    Question,
}

/// The stages that can set or change a wait. The last one that changed it is its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// The hint as it was.
    Hint,
    /// The default, for want of a hint.
    Default,
    /// A rule that replaced a bad hint.
    BadHint,
    /// The floor.
    Floor,
    /// The ceiling.
    Ceiling,
    /// Backoff on unchanged status.
    Backoff,
    /// Backoff on errors.
    ErrorBackoff,
    /// Jitter.
    Jitter,
    /// The host's timer.
    Timer,
    /// No wait: the first poll at once, or after a time of its own.
    FirstPoll,
    /// The server's `slow_down`, added before the jitter.
    SlowDown,
    /// `Retry-After`, after the jitter and before the timer.
    RetryAfter,
    /// A question, which some hosts do not let wait.
    Question,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = 13;
    /// The first so many are counted in every combination; the others are too rare for that.
    pub const COMBINED: usize = 10;
    /// All of them.
    pub const ALL: [Stage; Self::COUNT] = [
        Stage::Hint,
        Stage::Default,
        Stage::BadHint,
        Stage::Floor,
        Stage::Ceiling,
        Stage::Backoff,
        Stage::ErrorBackoff,
        Stage::Jitter,
        Stage::Timer,
        Stage::FirstPoll,
        Stage::SlowDown,
        Stage::RetryAfter,
        Stage::Question,
    ];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Hint => "hint",
            Stage::Default => "default",
            Stage::BadHint => "bad_hint",
            Stage::Floor => "floor",
            Stage::Ceiling => "ceiling",
            Stage::Backoff => "backoff",
            Stage::ErrorBackoff => "error_backoff",
            Stage::Jitter => "jitter",
            Stage::Timer => "timer",
            Stage::FirstPoll => "first_poll",
            Stage::SlowDown => "slow_down",
            Stage::RetryAfter => "retry_after",
            Stage::Question => "question",
        }
    }
}

/// A wait, and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The effective interval: what the host waits, the timer's overhead not included.
    pub wait: Nanos,
    /// The last stage that changed it.
    pub cause: Stage,
    /// Which stages changed it, a bit each.
    pub touched: u16,
    /// After each step: the hint read, bounded, backed off, jittered. For traces.
    pub steps: [Nanos; 4],
}

#[cfg(test)]
mod tests;
