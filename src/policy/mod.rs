//! The host-owned envelope: how a host turns hints and answers into waits.
//!
//! A decision is a pure function of (policy, per-task [`State`], what the host just saw, one uniform draw). This module
//! knows neither clock nor I/O nor engine, so the policy that was simulated can be lifted into a real host.
//! The stages, in order: read the hint, classify it, bound it, back off, jitter, bound again, timer.
//! Budgets and breakers stand between a decision and a send; they need the fleet's state and are no part of it.

pub mod hint;
mod stages;

pub use hint::{HintClass, JsonType, Outcome, RawHint, Rule, Rules};
pub use stages::{Backoff, Jitter, Step, Timer};

use hint::{ms_to_ns, wrap_i64_ns};

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

/// A hint as read: a value and where it is from, or an end.
enum Reading {
    Value(Nanos, Stage),
    End(LoopEnd),
}

impl Policy {
    /// The host's decision after what it saw; `u` is a uniform 64-bit fraction of one for the jitter.
    ///
    /// The wait before the first poll is asked for with [`Saw::Created`], whatever [`FirstPoll`] says.
    #[inline(always)]
    pub fn decide(&self, state: &mut State, saw: Saw, u: u64) -> Decision {
        let (reading, first) = match saw {
            Saw::Created(hint) => {
                let reading = self.read_creation(state, hint);
                let first = self.first_poll != FirstPoll::AfterWait;
                // An error that the wait would raise is not raised where it is not slept.
                let reading = match reading {
                    Reading::End(LoopEnd::Error) if first => {
                        Reading::Value(self.default, Stage::BadHint)
                    }
                    other => other,
                };
                (reading, first)
            }
            Saw::Unchanged(hint) | Saw::Changed(hint) => {
                let changed = matches!(saw, Saw::Changed(_));
                self.note_success(state, changed);
                state.asked = 0;
                (self.read_answer(state, hint), false)
            }
            Saw::Asks { hint, new } => return self.decide_on_question(state, hint, new, u),
            Saw::Error => return self.decide_after_error(state, u),
            Saw::TimedOut if self.timeouts_are_errors => return self.decide_after_error(state, u),
            Saw::TimedOut => {
                let (value, stage) = self.without_hint(state);
                (Reading::Value(value, stage), false)
            }
            Saw::SlowDown => {
                state.slow_downs = state.slow_downs.saturating_add(1);
                let (value, stage) = self.without_hint(state);
                (Reading::Value(value, stage), false)
            }
        };
        let (base, stage) = match reading {
            Reading::End(end) => return Decision::End(end),
            Reading::Value(base, stage) => (base, stage),
        };
        if first {
            let wait = if let FirstPoll::After(wait) = self.first_poll {
                wait
            } else {
                0
            };
            state.previous = wait;
            return Decision::Wait(Wait {
                wait,
                cause: Stage::FirstPoll,
                touched: bit(Stage::FirstPoll),
                steps: [wait; 4],
            });
        }
        Decision::Wait(self.shape(state, base, stage, u))
    }

    /// Counts a good answer.
    #[inline(always)]
    fn note_success(&self, state: &mut State, changed: bool) {
        let kept = matches!(
            self.errors,
            OnError::BackOff {
                reset_on_success: false,
                ..
            }
        );
        if !kept {
            state.errors = 0;
        }
        if changed && self.reset != Reset::Never {
            state.waits = 0;
        }
    }

    /// What follows an answer that shows a question.
    #[cold]
    fn decide_on_question(&self, state: &mut State, hint: RawHint, new: bool, u: u64) -> Decision {
        self.note_success(state, new);
        let reading = self.read_answer(state, hint);
        if new {
            state.asked = 0;
            state.questions = state.questions.saturating_add(1);
        }
        state.asked = state.asked.saturating_add(1);
        let too_many = state.questions > self.max_questions;
        let stuck = self.stuck_after < u8::MAX && state.asked > self.stuck_after;
        if too_many || stuck || self.on_question == OnQuestion::Ends {
            return Decision::End(LoopEnd::Question);
        }
        let (base, stage) = match reading {
            Reading::End(end) => return Decision::End(end),
            Reading::Value(base, stage) => (base, stage),
        };
        match self.on_question {
            OnQuestion::AwaitsResult => Decision::AwaitResult,
            OnQuestion::PollsAtOnce => {
                // The ramp begins anew after the round.
                if self.reset != Reset::Never {
                    state.waits = 0;
                }
                Decision::Wait(at_once())
            }
            OnQuestion::PollsOnceMore if new => Decision::Wait(at_once()),
            _ => Decision::Wait(self.shape(state, base, stage, u)),
        }
    }

    /// The instant of the next poll, where that of a wait is `next` and the loop's deadline is `deadline`; both after the answer seen at
    /// `from`; [`Nanos::MAX`] for never. `None`: the host gives up at once. An instant beyond the deadline is that of a host that gives up at the deadline.
    pub fn next_poll(&self, from: Nanos, next: Nanos, deadline: Nanos) -> Option<Nanos> {
        match self.last_wait {
            _ if deadline == Nanos::MAX => Some(next),
            LastWait::Slept => Some(next),
            LastWait::Refused => (next <= deadline).then_some(next),
            LastWait::Trimmed if next <= deadline => Some(next),
            LastWait::Trimmed => (from < deadline).then_some(deadline),
            LastWait::TrimmedLess(least) => {
                let latest = deadline.checked_sub(least).filter(|at| *at > from)?;
                Some(if next >= latest { latest } else { next })
            }
        }
    }

    /// The wait that follows an error answer.
    fn decide_after_error(&self, state: &mut State, u: u64) -> Decision {
        let errors = u32::from(state.errors);
        state.errors = state.errors.saturating_add(1);
        if errors + 1 >= self.max_errors {
            return Decision::End(LoopEnd::Error);
        }
        if self.reset == Reset::OnChangeOrError {
            state.waits = 0;
        }
        let (base, stage) = self.without_hint(state);
        match &self.errors {
            OnError::End => Decision::End(LoopEnd::Error),
            OnError::Retry => Decision::Wait(self.shape(state, base, stage, u)),
            OnError::BackOff { waits, sticks, .. } => {
                let own = waits.own_start().is_none();
                // What multiplies the interval does so from the first error on.
                let k = if own { errors + 1 } else { errors };
                let mut wait = waits.wait(base, k);
                if *sticks {
                    wait = self.change_interval(state, waits, base, errors);
                }
                if self.role == Role::Floor && stage != Stage::Default {
                    wait = wait.max(base);
                }
                let (touched, cause) = (bit(Stage::ErrorBackoff), Stage::ErrorBackoff);
                Decision::Wait(self.finish(state, [wait; 3], touched, cause, self.ceiling, u))
            }
        }
    }

    /// An error has changed the interval for good, `slow_down`s so far included.
    fn change_interval(
        &self,
        state: &mut State,
        waits: &Backoff,
        base: Nanos,
        errors: u32,
    ) -> Nanos {
        let slower = self.slow_down.saturating_mul(u64::from(state.slow_downs));
        let now = base.saturating_add(slower).min(FOREVER);
        let changed = if waits.own_start().is_some() {
            waits.wait(now, errors)
        } else {
            waits.wait(now, 1)
        };
        state.slow_downs = 0;
        (state.kept, state.kept_from) = (changed, Some(Stage::ErrorBackoff));
        (state.creation, state.creation_from) = (changed, Some(Stage::ErrorBackoff));
        changed
    }

    /// Bound, back off, jitter, bound again, timer.
    #[inline(always)]
    fn shape(&self, state: &mut State, base: Nanos, stage: Stage, u: u64) -> Wait {
        let floor_role = self.role == Role::Floor;
        let (own, mut cause) = if floor_role {
            (self.default, Stage::Default)
        } else {
            (base, stage)
        };
        let mut touched = bit(cause);
        let hint_passes = !self.ceiling_cuts_hints;
        let mut ceiling = if cause == Stage::Hint && hint_passes {
            FOREVER
        } else {
            self.ceiling
        };
        let bounded = bound(own, self.floor, ceiling, &mut touched, &mut cause);
        let k = u32::from(state.waits);
        state.waits = state.waits.saturating_add(1);
        let mut backed = if self.hints_stop_backoff && stage != Stage::Default {
            bounded
        } else {
            self.backoff.wait(bounded, k)
        };
        if self.role == Role::RampCeiling {
            backed = backed.min(bounded);
        }
        if backed != bounded {
            touched |= bit(Stage::Backoff);
            cause = Stage::Backoff;
        }
        if floor_role && stage != Stage::Default {
            // The server's term is a floor under the host's own ones, backoff included.
            let term = if hint_passes {
                base
            } else {
                base.min(self.ceiling)
            };
            if term > backed {
                backed = term;
                touched |= bit(stage);
                cause = stage;
                ceiling = if hint_passes { FOREVER } else { ceiling };
            }
        }
        self.finish(state, [base, bounded, backed], touched, cause, ceiling, u)
    }

    #[inline(always)]
    fn finish(
        &self,
        state: &mut State,
        steps: [Nanos; 3],
        mut touched: u16,
        mut cause: Stage,
        ceiling: Nanos,
        u: u64,
    ) -> Wait {
        let mut backed = steps[2];
        if state.slow_downs > 0 && self.slow_down > 0 {
            let slower = self.slow_down.saturating_mul(u64::from(state.slow_downs));
            backed = backed.saturating_add(slower).min(FOREVER);
            touched |= bit(Stage::SlowDown);
            cause = Stage::SlowDown;
        }
        if self.bounds == BoundsAt::BeforeJitter {
            backed = bound(backed, self.floor, ceiling, &mut touched, &mut cause);
        }
        // "For ever" has no jitter.
        let mut wait = if backed < FOREVER {
            let previous = state.previous.max(backed);
            self.jitter.apply(backed, previous, self.jitter_step, u)
        } else {
            FOREVER
        };
        if wait != backed {
            touched |= bit(Stage::Jitter);
            cause = Stage::Jitter;
        }
        if self.bounds == BoundsAt::Final {
            wait = bound(wait, self.floor, ceiling, &mut touched, &mut cause);
        }
        let jittered = wait;
        let timed = self.timer.apply(wait);
        if timed != wait {
            touched |= bit(Stage::Timer);
            cause = Stage::Timer;
            wait = timed;
        }
        state.previous = wait;
        Wait {
            wait,
            cause,
            touched,
            steps: [steps[0], steps[1], backed, jittered],
        }
    }

    /// What `Retry-After` in the answer makes of a decision. `good` says that the answer was no error.
    pub fn obey(
        &self,
        state: &mut State,
        decision: Decision,
        after: Nanos,
        good: bool,
    ) -> Decision {
        let (
            Decision::Wait(mut wait),
            OnRetryAfter::Obeyed {
                is_wait,
                ceiling,
                limit,
                beyond,
                on_success,
            },
        ) = (decision, self.retry_after)
        else {
            return decision;
        };
        let after = match beyond {
            _ if good && !on_success => return decision,
            BeyondLimit::End if after > limit => return Decision::End(LoopEnd::Error),
            BeyondLimit::Ignore if after > limit => return decision,
            _ => after.min(limit).min(ceiling),
        };
        if is_wait || after > wait.wait {
            wait.wait = self.timer.apply(after);
            wait.cause = Stage::RetryAfter;
            wait.touched |= bit(Stage::RetryAfter);
            state.previous = wait.wait;
        }
        Decision::Wait(wait)
    }

    /// How long a loop waits whose poll was left out: as long again; the default where it has not waited yet.
    pub fn again(&self, state: &State) -> Nanos {
        let own = self.default.max(self.floor).min(self.ceiling);
        if state.previous > 0 {
            state.previous
        } else {
            own
        }
    }

    fn read_creation(&self, state: &mut State, hint: RawHint) -> Reading {
        if self.read == ReadAt::FirstAnswer {
            // This host does not look at the creation.
            return Reading::Value(self.default, Stage::Default);
        }
        let reading = self.classify(state, hint);
        if let Reading::Value(value, stage) = reading
            && stage != Stage::Default
        {
            (state.creation, state.creation_from) = (value, Some(stage));
            (state.kept, state.kept_from) = (value, Some(stage));
        }
        reading
    }

    #[inline(always)]
    fn read_answer(&self, state: &mut State, hint: RawHint) -> Reading {
        let fixed = match self.read {
            ReadAt::EveryAnswer => false,
            ReadAt::Creation => true,
            ReadAt::FirstAnswer => state.kept_from.is_some(),
        };
        if fixed {
            let (value, from) = self.without_hint(state);
            return Reading::Value(value, from);
        }
        let reading = self.classify(state, hint);
        let Reading::Value(value, stage) = reading else {
            return reading;
        };
        if self.read == ReadAt::EveryAnswer && stage == Stage::Default {
            return self
                .remembered(state)
                .map_or(reading, |(value, from)| Reading::Value(value, from));
        }
        // With `first_answer` even a default, once used, stays.
        let keeps = self.read == ReadAt::FirstAnswer
            || self.absent == WhenAbsent::KeepLast && !self.forgets(hint);
        if keeps {
            (state.kept, state.kept_from) = (value, Some(stage));
        }
        reading
    }

    /// Does this hint make the host forget an earlier one?
    #[inline(always)]
    fn forgets(&self, hint: RawHint) -> bool {
        self.rules.outcome(hint, hint.class()) == Outcome::Forget
    }

    /// What an answer without a hint means to this host: the value, and where it is from.
    #[inline(always)]
    fn without_hint(&self, state: &State) -> (Nanos, Stage) {
        self.remembered(state)
            .unwrap_or((self.default, Stage::Default))
    }

    /// The hint that stands in for one that is not there.
    #[inline(always)]
    fn remembered(&self, state: &State) -> Option<(Nanos, Stage)> {
        match (self.read, self.absent) {
            (ReadAt::FirstAnswer, _) | (ReadAt::EveryAnswer, WhenAbsent::KeepLast) => {
                state.kept_from.map(|from| (state.kept, from))
            }
            (ReadAt::Creation, _) | (ReadAt::EveryAnswer, WhenAbsent::Creation) => {
                state.creation_from.map(|from| (state.creation, from))
            }
            (ReadAt::EveryAnswer, WhenAbsent::Default) => None,
        }
    }

    /// What the rules make of a hint.
    #[inline(always)]
    fn classify(&self, state: &mut State, hint: RawHint) -> Reading {
        if self.role == Role::Ignored {
            return Reading::Value(self.default, Stage::Default);
        }
        let class = hint.class();
        let ms = hint.number().unwrap_or(0.0);
        let missing = matches!(class, HintClass::Absent | HintClass::Null);
        let replaced = if missing {
            Stage::Default
        } else {
            Stage::BadHint
        };
        match self.rules.outcome(hint, class) {
            Outcome::Use => Reading::Value(ms_to_ns(ms), Stage::Hint),
            Outcome::Default => Reading::Value(self.default, replaced),
            // As an answer without a hint.
            Outcome::Absent => Reading::Value(self.default, Stage::Default),
            Outcome::Floor => Reading::Value(self.floor, replaced),
            Outcome::Ceiling => Reading::Value(self.ceiling, replaced),
            Outcome::Round => changed(ms, libm::rint(ms)),
            Outcome::Truncate => changed(ms, libm::trunc(ms)),
            Outcome::Parse => match hint {
                RawHint::Text(number) if number.is_finite() => {
                    Reading::Value(ms_to_ns(number), Stage::Hint)
                }
                RawHint::Number(ms) => Reading::Value(ms_to_ns(ms), Stage::Hint),
                _ => Reading::Value(self.default, Stage::BadHint),
            },
            Outcome::WrapI32Timer => {
                let fits = (1.0..=hint::MAX_I32_MS).contains(&ms);
                if fits {
                    changed(ms, libm::trunc(ms))
                } else {
                    Reading::Value(1_000_000, Stage::BadHint)
                }
            }
            Outcome::WrapI64Ns => {
                let wrapped = wrap_i64_ns(ms);
                Reading::Value(
                    wrapped,
                    if wrapped == ms_to_ns(ms) {
                        Stage::Hint
                    } else {
                        Stage::BadHint
                    },
                )
            }
            Outcome::Forever => Reading::Value(FOREVER, Stage::BadHint),
            Outcome::Forget => {
                state.kept_from = None;
                Reading::Value(self.default, replaced)
            }
            Outcome::Error => Reading::End(LoopEnd::Error),
            Outcome::Reject => Reading::End(LoopEnd::Rejected),
        }
    }
}

#[inline]
fn bit(stage: Stage) -> u16 {
    1 << stage as u8
}

/// No wait, because a question does not wait.
fn at_once() -> Wait {
    Wait {
        wait: 0,
        cause: Stage::Question,
        touched: bit(Stage::Question),
        steps: [0; 4],
    }
}

fn changed(before: f64, after: f64) -> Reading {
    Reading::Value(
        ms_to_ns(after),
        if before == after {
            Stage::Hint
        } else {
            Stage::BadHint
        },
    )
}

/// `min(max(wait, floor), ceiling)`, telling which of them cut.
#[inline]
fn bound(wait: Nanos, floor: Nanos, ceiling: Nanos, touched: &mut u16, cause: &mut Stage) -> Nanos {
    let mut bounded = wait;
    if bounded < floor {
        bounded = floor;
        *touched |= bit(Stage::Floor);
        *cause = Stage::Floor;
    }
    if bounded > ceiling {
        bounded = ceiling;
        *touched |= bit(Stage::Ceiling);
        *cause = Stage::Ceiling;
    }
    bounded
}

#[cfg(test)]
mod tests;
