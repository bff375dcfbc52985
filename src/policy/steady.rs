//! Decisions ready made: those on answers that all bear the same hint, while nothing else happens.
//!
//! That is what nearly all polls are. What stands before the jitter is then a function of the number of waits since the backoff started alone,
//! and is written down once for each of them.

use super::decide::{Grown, Reading, bound};
use super::stages::part;
use super::{
    BoundsAt, Decision, FOREVER, Jitter, Nanos, Policy, RawHint, Saw, Stage, State, Timer, Wait,
};

/// Backoffs that take longer to settle are not written down.
const MOST_ROWS: u32 = 256;

/// The decisions of a policy on a hint that stays the same: [`Steady::decide`] is [`Policy::decide`] for [`Saw::Unchanged`] with that hint, for
/// states of which [`Steady::holds`]: those after the creation and one answer, as long as there are no errors, questions or `slow_down`s.
#[derive(Clone, Debug)]
pub struct Steady {
    /// By number of the wait, up to the last that differs from the one before.
    rows: Box<[Row]>,
    /// All after them.
    settled: Row,
    /// A state for which they hold.
    state: State,
    timer: Timer,
    /// Does the timer change any wait?
    timed: bool,
}

/// A wait before its jitter, and what holds after it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    /// The wait.
    backed: Nanos,
    /// The least that jitter makes of it.
    least: Nanos,
    /// Jittered waits are uniform over so much above that.
    span: Nanos,
    /// Does no bound touch any of them?
    unbounded: bool,
    /// Bounds of the jittered wait.
    floor: Nanos,
    ceiling: Nanos,
    /// The stages that changed it, a bit each.
    touched: u16,
    /// The last of them.
    cause: Stage,
}

/// A wait, and how it came about: a [`super::Wait`] without its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyWait {
    /// The effective interval.
    pub wait: Nanos,
    /// The last stage that changed it.
    pub cause: Stage,
    /// Which stages changed it, a bit each.
    pub touched: u16,
}

impl From<Wait> for SteadyWait {
    fn from(wait: Wait) -> Self {
        SteadyWait {
            wait: wait.wait,
            cause: wait.cause,
            touched: wait.touched,
        }
    }
}

impl From<SteadyWait> for Wait {
    fn from(wait: SteadyWait) -> Self {
        Wait {
            wait: wait.wait,
            cause: wait.cause,
            touched: wait.touched,
            steps: [wait.wait; 4],
        }
    }
}

impl Steady {
    /// Those of a policy on a hint; `None` where they depend on more than the number of the wait.
    pub fn new(policy: &Policy, hint: RawHint) -> Option<Self> {
        let last = policy.backoff.settles_at().filter(|k| *k < MOST_ROWS)?;
        if policy.jitter_step > 0 || matches!(policy.jitter, Jitter::Decorrelated { .. }) {
            return None;
        }
        let mut state = State::default();
        for saw in [Saw::Created(hint), Saw::Unchanged(hint)] {
            let Decision::Wait(_) = policy.decide(&mut state, saw, 0) else {
                return None;
            };
        }
        let before = state;
        let Reading::Value(base, stage) = policy.read_answer(&mut state, hint) else {
            return None;
        };
        if state != before {
            return None;
        }
        let row = |k| Row::new(policy, policy.grow(k, base, stage));
        let timer = policy.timer;
        Some(Steady {
            rows: (0..last).map(row).collect::<Option<_>>()?,
            settled: row(last)?,
            state,
            timer,
            timed: timer.quantum > 1 || timer.minimum > 0 || timer.maximum < FOREVER,
        })
    }

    /// Are the decisions those of a loop that remembers `state`?
    #[inline(always)]
    pub fn holds(&self, state: &State) -> bool {
        let own = &self.state;
        let kept = state.kept == own.kept && state.creation == own.creation;
        let from = (state.kept_from, state.creation_from) == (own.kept_from, own.creation_from);
        let calm = state.errors | state.slow_downs | state.asked == 0;
        kept && from && calm
    }

    /// The decision of a loop that remembers `state`, which [`State::note`] is to be told; `u` is a uniform 64-bit fraction of one for the jitter.
    #[inline(always)]
    pub fn decide(&self, state: &State, u: u64) -> SteadyWait {
        let row = self.rows.get(usize::from(state.waits));
        let row = row.unwrap_or(&self.settled);
        let mut wait = row.least + part(row.span, u);
        let (mut touched, mut cause) = (row.touched, row.cause);
        let mut change = |changed: bool, stage: Stage| {
            touched |= u16::from(changed) << stage as u8;
            cause = if changed { stage } else { cause };
        };
        change(wait != row.backed, Stage::Jitter);
        if !row.unbounded {
            let jittered = wait;
            let floored = jittered.max(row.floor);
            wait = floored.min(row.ceiling);
            change(floored != jittered, Stage::Floor);
            change(wait != floored, Stage::Ceiling);
        }
        if self.timed {
            let bounded = wait;
            wait = self.timer.apply(bounded);
            change(wait != bounded, Stage::Timer);
        }
        SteadyWait {
            wait,
            cause,
            touched,
        }
    }
}

impl State {
    /// Remembers a wait that was ready made.
    #[inline(always)]
    pub fn note(&mut self, wait: SteadyWait) {
        self.waits = self.waits.saturating_add(1);
        self.previous = wait.wait;
    }
}

impl Row {
    fn new(policy: &Policy, grown: Grown) -> Option<Self> {
        let Grown {
            steps,
            mut touched,
            mut cause,
            ceiling,
        } = grown;
        let mut backed = steps[2];
        if policy.bounds == BoundsAt::BeforeJitter {
            backed = bound(backed, policy.floor, ceiling, &mut touched, &mut cause);
        }
        // "For ever" has no jitter.
        let (least, span) = if backed < FOREVER {
            policy.jitter.range(backed, backed)
        } else {
            return None;
        };
        let (floor, ceiling) = if policy.bounds == BoundsAt::Final {
            // The floor comes first.
            (policy.floor, ceiling)
        } else {
            (0, Nanos::MAX)
        };
        Some(Row {
            backed,
            least,
            span,
            unbounded: floor <= least && least.saturating_add(span) <= ceiling,
            floor,
            ceiling,
            touched,
            cause,
        })
    }
}
