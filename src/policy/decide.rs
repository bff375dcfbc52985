//! A decision, stage by stage: read the hint, classify it, bound it, back off, jitter, bound again, timer.

use super::hint::{self, HintClass, Outcome, RawHint, ms_to_ns, wrap_i64_ns};
use super::{
    Backoff, BeyondLimit, BoundsAt, Decision, FOREVER, FirstPoll, LastWait, LoopEnd, Nanos,
    OnError, OnQuestion, OnRetryAfter, Policy, ReadAt, Reset, Role, Saw, Stage, State, Wait,
    WhenAbsent,
};

/// A wait before its jitter.
pub(super) struct Grown {
    /// The hint read, bounded, backed off.
    pub steps: [Nanos; 3],
    /// The stages that changed it, a bit each.
    pub touched: u16,
    /// The last of them.
    pub cause: Stage,
    /// The ceiling that holds for it.
    pub ceiling: Nanos,
}

/// A hint as read: a value and where it is from, or an end.
pub(super) enum Reading {
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
        let grown = self.grow(u32::from(state.waits), base, stage);
        state.waits = state.waits.saturating_add(1);
        let Grown {
            steps,
            touched,
            cause,
            ceiling,
        } = grown;
        self.finish(state, steps, touched, cause, ceiling, u)
    }

    /// What stands before the jitter: bound, back off. `k` numbers the wait since the backoff started.
    #[inline(always)]
    pub(super) fn grow(&self, k: u32, base: Nanos, stage: Stage) -> Grown {
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
        Grown {
            steps: [base, bounded, backed],
            touched,
            cause,
            ceiling,
        }
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
    pub(super) fn read_answer(&self, state: &mut State, hint: RawHint) -> Reading {
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
pub(super) fn bit(stage: Stage) -> u16 {
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
pub(super) fn bound(
    wait: Nanos,
    floor: Nanos,
    ceiling: Nanos,
    touched: &mut u16,
    cause: &mut Stage,
) -> Nanos {
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
