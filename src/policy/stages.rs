//! The stages behind the hint: backoff, jitter, timer. Each is a pure function of a wait in nanoseconds.

use super::{FOREVER, Nanos};

/// Longest table of growth factors; waits saturate long before.
const LEVELS: usize = 64;

/// How waits grow while the status is unchanged.
#[derive(Clone, Debug, PartialEq)]
pub enum Backoff {
    /// They do not.
    None,
    /// Wait k is `initial` (or the bounded base) × factor^k, at most `cap`.
    Geometric {
        /// First wait; the base where there is none.
        initial: Option<Nanos>,
        /// factor^k, ready made.
        powers: Box<[f64; LEVELS]>,
        /// No wait is longer.
        cap: Nanos,
    },
    /// Wait k is the base + k × step, at most `cap`.
    Additive {
        /// Growth of each wait.
        step: Nanos,
        /// No wait is longer.
        cap: Nanos,
    },
    /// Wait k is that of the step whose `until` is the first above k; the last repeats.
    Steps(Vec<Step>),
}

/// A step of a backoff table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step holds for waits numbered below this.
    pub until: u32,
    /// The wait.
    pub wait: Nanos,
}

impl Backoff {
    /// A geometric backoff.
    pub fn geometric(initial: Option<Nanos>, factor: f64, cap: Option<Nanos>) -> Self {
        let mut powers = Box::new([1.0; LEVELS]);
        for k in 1..LEVELS {
            powers[k] = powers[k - 1] * factor;
        }
        Backoff::Geometric {
            initial,
            powers,
            cap: cap.unwrap_or(FOREVER),
        }
    }

    /// A table of (how many waits, each how long).
    pub fn steps(steps: impl IntoIterator<Item = (u32, Nanos)>) -> Self {
        let mut until = 0u32;
        let table = steps.into_iter().map(|(waits, wait)| {
            until = until.saturating_add(waits);
            Step { until, wait }
        });
        Backoff::Steps(table.collect())
    }

    /// The number of the wait from which on they are all alike, whatever the base; `None` where they grow for ever.
    pub(super) fn settles_at(&self) -> Option<u32> {
        match self {
            Backoff::None | Backoff::Additive { step: 0, .. } => Some(0),
            Backoff::Geometric { .. } => Some(LEVELS as u32 - 1),
            Backoff::Additive { cap: FOREVER, .. } => None,
            Backoff::Additive { step, cap } => u32::try_from(cap / step + 1).ok(),
            Backoff::Steps(steps) => Some(steps.last().map_or(0, |s| s.until)),
        }
    }

    /// The first wait, where it does not depend on the base.
    pub fn own_start(&self) -> Option<Nanos> {
        match self {
            Backoff::Geometric { initial, .. } => *initial,
            Backoff::Steps(steps) => steps.first().map(|s| s.wait),
            Backoff::None | Backoff::Additive { .. } => None,
        }
    }

    /// The wait numbered `k` (from 0) since the backoff started, for a bounded base of `base`.
    #[inline]
    pub fn wait(&self, base: Nanos, k: u32) -> Nanos {
        match self {
            Backoff::None => base,
            Backoff::Geometric {
                initial,
                powers,
                cap,
            } => {
                let first = initial.unwrap_or(base);
                let grown = first as f64 * powers[(k as usize).min(LEVELS - 1)];
                ((grown + 0.5) as u64).min(*cap)
            }
            Backoff::Additive { step, cap } => {
                base.saturating_add(step.saturating_mul(k as u64)).min(*cap)
            }
            Backoff::Steps(steps) => {
                let step = steps.iter().find(|s| k < s.until).or(steps.last());
                step.map_or(base, |s| s.wait)
            }
        }
    }
}

/// Randomness of a wait d.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// d.
    None,
    /// Uniform on [0, d).
    Full,
    /// Uniform on [d/2, d).
    Equal,
    /// Uniform on d ± `share`·d; the share as a 32-bit fraction of one.
    Proportional {
        /// share × 2^32.
        share_q32: u64,
    },
    /// Uniform on [d, d + span).
    Additive(Nanos),
    /// Uniform on [d - span, d).
    Minus(Nanos),
    /// Uniform on [low, d).
    Window(Nanos),
    /// Uniform on [d, factor × the last wait).
    Decorrelated {
        /// The factor.
        factor: f64,
    },
}

/// `span` × u, for u a 64-bit fraction of one.
#[inline]
pub(super) fn part(span: Nanos, u: u64) -> Nanos {
    ((span as u128 * u as u128) >> 64) as u64
}

impl Jitter {
    /// Proportional jitter of ± `share` (0 to 1).
    pub fn proportional(share: f64) -> Self {
        Jitter::Proportional {
            share_q32: libm::round(share * 4_294_967_296.0) as u64,
        }
    }

    /// Does it draw at all?
    pub fn draws(&self) -> bool {
        !matches!(self, Jitter::None)
    }

    /// The wait `d` with jitter; `previous` is the last wait, `u` a uniform 64-bit fraction of one. With a `step` above 0 each whole multiple of it
    /// between the least wait and the greatest is as likely, both included.
    #[inline]
    pub fn apply(&self, d: Nanos, previous: Nanos, step: Nanos, u: u64) -> Nanos {
        if step == 0 {
            return self.draw(d, previous, u);
        }
        let (least, greatest) = (self.draw(d, previous, 0), self.greatest(d, previous));
        least + step * part((greatest - least) / step + 1, u)
    }

    /// The bound that draws do not reach.
    fn greatest(&self, d: Nanos, previous: Nanos) -> Nanos {
        match *self {
            Jitter::Additive(span) => d + span,
            Jitter::Proportional { .. } | Jitter::Decorrelated { .. } => {
                self.draw(d, previous, u64::MAX)
            }
            _ => d,
        }
    }

    #[inline]
    fn draw(&self, d: Nanos, previous: Nanos, u: u64) -> Nanos {
        let (least, span) = self.range(d, previous);
        least + part(span, u)
    }

    /// The least wait, and the span above it over which waits are uniform.
    #[inline]
    pub(super) fn range(&self, d: Nanos, previous: Nanos) -> (Nanos, Nanos) {
        match *self {
            Jitter::None => (d, 0),
            Jitter::Full => (0, d),
            Jitter::Equal => (d / 2, d - d / 2),
            Jitter::Proportional { share_q32 } => {
                let half = ((d as u128 * share_q32 as u128) >> 32) as u64;
                (d - half, 2 * half + 1)
            }
            Jitter::Additive(span) => (d, span),
            Jitter::Minus(span) => {
                let span = span.min(d);
                (d - span, span)
            }
            Jitter::Window(low) => {
                let low = low.min(d);
                (low, d - low)
            }
            Jitter::Decorrelated { factor } => {
                let high = ((previous as f64 * factor) as u64).min(FOREVER).max(d);
                (d, high - d)
            }
        }
    }
}

/// What a host's timer makes of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Waits are cut to whole multiples; 0 does not cut.
    pub quantum: Nanos,
    /// No timer is shorter.
    pub minimum: Nanos,
    /// The longest wait it can do.
    pub maximum: Nanos,
    /// What a longer one becomes.
    pub beyond: Nanos,
    /// How late it fires.
    pub overhead: Nanos,
}

impl Timer {
    /// A perfect timer.
    pub const PERFECT: Timer = Timer {
        quantum: 0,
        minimum: 0,
        maximum: FOREVER,
        beyond: FOREVER,
        overhead: 0,
    };

    /// The wait that the timer does, before its overhead.
    #[inline]
    pub fn apply(&self, wait: Nanos) -> Nanos {
        if wait > self.maximum {
            return self.beyond;
        }
        if wait >= FOREVER {
            return FOREVER;
        }
        let cut = if self.quantum > 1 {
            wait - wait % self.quantum
        } else {
            wait
        };
        cut.max(self.minimum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const S: u64 = 1_000_000_000;

    #[test]
    fn geometric_waits_grow_to_the_cap() {
        let backoff = Backoff::geometric(Some(15 * S), 2.0, Some(120 * S));
        let waits: Vec<u64> = (0..6).map(|k| backoff.wait(7, k) / S).collect();
        assert_eq!(waits, [15, 30, 60, 120, 120, 120]);
        assert_eq!(
            Backoff::geometric(None, 2.0, None).wait(S, 4_000_000),
            FOREVER.min((S as f64 * 2f64.powi(63)) as u64)
        );
    }

    #[test]
    fn a_table_repeats_its_last_step() {
        let backoff = Backoff::steps([(2, 10 * S), (1, 30 * S)]);
        let waits: Vec<u64> = (0..5).map(|k| backoff.wait(7, k) / S).collect();
        assert_eq!(waits, [10, 10, 30, 30, 30]);
    }

    #[test]
    fn jitter_stays_in_its_interval() {
        for u in [0, 1, u64::MAX / 2, u64::MAX] {
            let inside = |jitter: Jitter, low: u64, high: u64| {
                let wait = jitter.apply(S, 2 * S, 0, u);
                assert!((low..=high).contains(&wait), "{jitter:?} {u} -> {wait}");
            };
            inside(Jitter::Full, 0, S);
            inside(Jitter::Equal, S / 2, S);
            inside(Jitter::proportional(0.1), 900_000_000, 1_100_000_000);
            inside(Jitter::Additive(S / 2), S, S + S / 2);
            inside(Jitter::Minus(S / 4), S - S / 4, S);
            inside(Jitter::Window(S / 3), S / 3, S);
            inside(Jitter::Decorrelated { factor: 3.0 }, S, 6 * S);
        }
    }

    #[test]
    fn jitter_in_steps_reaches_both_ends() {
        let drawn: Vec<u64> = (0..4)
            .map(|i| Jitter::Window(2 * S).apply(5 * S, 0, S, i << 62) / S)
            .collect();
        assert_eq!(drawn, [2, 3, 4, 5]);
    }

    #[test]
    fn a_32_bit_timer_turns_never_into_a_flood() {
        let ms = 1_000_000;
        let node = Timer {
            quantum: ms,
            minimum: ms,
            maximum: 2_147_483_647 * ms,
            beyond: ms,
            overhead: 0,
        };
        assert_eq!(node.apply(2_147_483_648 * ms), ms);
        assert_eq!(node.apply(1_900_000), ms);
        assert_eq!(node.apply(0), ms);
        assert_eq!(node.apply(300 * ms), 300 * ms);
    }
}
