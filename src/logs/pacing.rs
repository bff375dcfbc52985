//! The policy that a log shows: an envelope read off the waits between an answer and the next poll.
//!
//! Three readings are tried: hints that are used, with a floor, a ceiling and the timer's overhead; a table of waits by their number (a backoff); one wait
//! for all. Each is tried with waits that begin with the answer, and with ticks, where they begin with the send before. The one that explains most waits is taken, the simpler one where it explains nearly as many. Where none explains most of them, the waits are taken as jittered.

use super::collector::{OfTenant, Waited};
use super::sample::{mean, median, quantile, sorted};
use super::task::Last;
use crate::policy::HintClass;

/// A wait is explained where it differs from the expected one by no more than this share …
const TOLERANCE: f64 = 0.05;
/// … or by no more than this, in ms.
const TOLERANCE_MS: f64 = 20.0;
/// A reading must explain so much more than a simpler one.
const MARGIN: f64 = 0.05;
/// Where no reading explains more than this share of the waits, they are jittered.
const CLEAR: f64 = 0.8;
/// Waits that are no farther off than this, ms, are as expected.
const LEAST_OFF_MS: f64 = 0.5;
/// A narrow jitter needs so many waits, so large a share of them …
const NARROW: usize = 20;
const NARROW_SHARE: f64 = 0.03;
/// … and so many ms, which no timer is late by.
const NARROW_MS: f64 = 3.0;
/// Waits that a backoff table has, at most.
const STEPS: usize = 32;
/// Waits that a claim (a floor, a rule, a step) needs.
const ENOUGH: usize = 3;

/// An envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Pacing {
    /// Hints are used; else they are ignored.
    pub uses_hints: bool,
    /// The wait where there is no hint to use, ms.
    pub default_ms: f64,
    /// No wait is shorter, ms.
    pub floor_ms: Option<f64>,
    /// No wait is longer, ms.
    pub ceiling_ms: Option<f64>,
    /// How late the timer fires, ms.
    pub overhead_ms: f64,
    /// What becomes of bad hints, where it is not what an envelope makes of them by itself.
    pub rules: Vec<(HintClass, &'static str)>,
    /// Waits by their number; the last one repeats. Empty without a backoff.
    pub steps_ms: Vec<f64>,
    /// Randomness of each wait.
    pub jitter: Jitter,
    /// Waits count from the last send, not from its answer.
    pub fixed_rate: bool,
    /// When the first poll is sent.
    pub first_poll: FirstPoll,
    /// Mean time from a poll that was refused, or not answered, to the next, ms.
    pub gap_after_error_ms: Option<f64>,
    /// Share of the waits that this explains.
    pub explained: f64,
    /// Waits that were looked at.
    pub waits: usize,
}

/// Randomness of a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// None.
    None,
    /// Uniform on [0, d).
    Full,
    /// Uniform on [d/2, d).
    Equal,
    /// Uniform on d ± this share of it.
    Proportional(f64),
    /// Uniform on [d, d + so many ms).
    Additive(f64),
}

/// When the first poll is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstPoll {
    /// With the creation's answer.
    AtOnce,
    /// After a wait like any other.
    AfterWait,
    /// After a time of its own, ms.
    After(f64),
}

fn tolerance(expected_ms: f64) -> f64 {
    (TOLERANCE * expected_ms).max(TOLERANCE_MS)
}

fn near(wait_ms: f64, expected_ms: f64) -> bool {
    (wait_ms - expected_ms).abs() <= tolerance(expected_ms)
}

/// The value that nearly all of at least [`ENOUGH`] waits are near; `None` where there is no such value.
fn common(waits: &[f64]) -> Option<f64> {
    let middle = median(waits.iter().copied())?;
    let near = waits.iter().filter(|w| near(**w, middle)).count();
    (waits.len() >= ENOUGH && near * 10 >= waits.len() * 8).then_some(middle)
}

fn wait_of(w: &Waited) -> f64 {
    f64::from(w.wait_ms)
}

fn hint_of(w: &Waited) -> f64 {
    f64::from(w.hint.ms)
}

/// The envelope of a tenant; `None` where the log has no wait of it.
pub fn fit(of: &OfTenant) -> Option<Pacing> {
    let all: Vec<Waited> = [&of.waits.kept, &of.first_waits.kept]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    let mut good: Vec<Waited> = of.waits.kept.clone();
    good.retain(|w| w.after == Last::Good);
    if good.is_empty() {
        // Nothing but first waits: what they are is all that is known.
        good = of.first_waits.kept.clone();
    }
    let mut pacing = from(&good)?;
    // A loop that ticks has gaps between sends that are what its waits are in others.
    let ticks: Vec<Waited> = good.iter().map(Waited::from_send).collect();
    if good.iter().all(|w| w.number > 0)
        && let Some(mut ticking) = from(&ticks)
        && ticking.off_ms(&ticks) < 0.5 * (pacing.off_ms(&good) - LEAST_OFF_MS)
    {
        ticking.fixed_rate = true;
        pacing = ticking;
    }
    pacing.first_poll = pacing.first(&of.first_waits.kept);
    if pacing.first_poll == FirstPoll::AfterWait && !pacing.steps_ms.is_empty() {
        let first = median(of.first_waits.kept.iter().map(wait_of)).unwrap_or_default();
        pacing.steps_ms.insert(0, first);
    }
    let errors: Vec<f64> = all
        .iter()
        .filter(|w| w.after != Last::Good)
        .map(|w| f64::from(w.gap_ms))
        .collect();
    pacing.gap_after_error_ms = mean(&errors);
    Some(pacing)
}

/// The reading that explains most of the waits, or the jitter around one.
fn from(waits: &[Waited]) -> Option<Pacing> {
    let pacing = [constant(waits), by_hint(waits), by_number(waits)]
        .into_iter()
        .flatten()
        .reduce(|best, next| {
            // A hint that stands in the log and is followed explains more than a number does.
            let margin = if next.uses_hints { 0.0 } else { MARGIN };
            if next.explained >= best.explained + margin {
                next
            } else {
                best
            }
        })?;
    if pacing.explained >= CLEAR {
        return Some(pacing.narrowly_jittered(waits));
    }
    let explains_more = |jittered: &Pacing| jittered.explained > pacing.explained;
    Some(jittered(waits).filter(explains_more).unwrap_or(pacing))
}

impl Pacing {
    fn plain(default_ms: f64) -> Self {
        Pacing {
            uses_hints: false,
            default_ms,
            floor_ms: None,
            ceiling_ms: None,
            overhead_ms: 0.0,
            rules: Vec::new(),
            steps_ms: Vec::new(),
            jitter: Jitter::None,
            fixed_rate: false,
            first_poll: FirstPoll::AfterWait,
            gap_after_error_ms: None,
            explained: 0.0,
            waits: 0,
        }
    }

    fn bounded(&self, ms: f64) -> f64 {
        let raised = ms.max(self.floor_ms.unwrap_or(0.0));
        raised.min(self.ceiling_ms.unwrap_or(f64::INFINITY))
    }

    /// What a hint of this class becomes, bounds and overhead included.
    fn outcome(&self, class: HintClass, ms: f64, then: &str) -> f64 {
        let value = match then {
            "use" => ms.max(0.0),
            "parse" if ms > 0.0 => ms,
            "floor" => self.floor_ms.unwrap_or(0.0),
            // Of what a 32-bit timer takes as it is, only fractions have a class of their own.
            "wrap_i32_timer" if class == HintClass::Fractional && ms >= 1.0 => ms.trunc(),
            "wrap_i32_timer" => 1.0,
            _ => self.default_ms,
        };
        self.bounded(value) + self.overhead_ms
    }

    /// What an envelope makes of a class without a rule.
    fn own_rule(class: HintClass) -> &'static str {
        match class {
            HintClass::Sane | HintClass::BeyondI32Ms | HintClass::BeyondI64Ns => "use",
            HintClass::Zero => "floor",
            _ => "default",
        }
    }

    /// The wait that this policy would have chosen, before jitter.
    fn expected(&self, w: &Waited) -> f64 {
        if !self.steps_ms.is_empty() {
            let at = (w.number as usize).saturating_sub(1);
            return self.steps_ms[at.min(self.steps_ms.len() - 1)];
        }
        if !self.uses_hints {
            return self.default_ms + self.overhead_ms;
        }
        let class = w.hint.class;
        let rule = self.rules.iter().find(|(of, _)| *of == class);
        let then = rule.map_or(Self::own_rule(class), |(_, then)| then);
        self.outcome(class, hint_of(w), then)
    }

    fn explains(&self, w: &Waited) -> bool {
        let (wait, d) = (wait_of(w), self.expected(w));
        let (low, high) = match self.jitter {
            Jitter::None => return near(wait, d),
            Jitter::Full => (0.0, d),
            Jitter::Equal => (d / 2.0, d),
            Jitter::Proportional(share) => (d * (1.0 - share), d * (1.0 + share)),
            Jitter::Additive(span) => (d, d + span),
        };
        (low - tolerance(d)..=high + tolerance(d)).contains(&wait)
    }

    /// The middle difference between a wait and the expected one, ms.
    fn off_ms(&self, waits: &[Waited]) -> f64 {
        let off = |w: &Waited| (wait_of(w) - self.expected(w)).abs();
        median(waits.iter().map(off)).unwrap_or(0.0)
    }

    /// The same with the jitter that the tolerance has let pass, where it is more than the lateness of a timer: waits spread evenly around the expected one.
    fn narrowly_jittered(mut self, waits: &[Waited]) -> Self {
        if !self.steps_ms.is_empty() || self.fixed_rate {
            return self;
        }
        let explained = waits.iter().filter(|w| self.explains(w));
        let ratios = explained.map(|w| {
            (wait_of(w) - self.overhead_ms) / (self.expected(w) - self.overhead_ms).max(1e-9)
        });
        let ratios = sorted(ratios);
        let (Some(low), Some(high), Some(middle)) = (
            quantile(&ratios, 0.05),
            quantile(&ratios, 0.95),
            median(waits.iter().map(|w| self.expected(w))),
        ) else {
            return self;
        };
        // Nine tenths of an even spread.
        let share = (high - low) / 2.0 / 0.9;
        if ratios.len() >= NARROW && share >= NARROW_SHARE && share * middle >= NARROW_MS {
            self.jitter = Jitter::Proportional((share * 1000.0).round() / 1000.0);
        }
        self
    }

    fn judged(mut self, waits: &[Waited]) -> Self {
        let explained = waits.iter().filter(|w| self.explains(w)).count();
        self.explained = explained as f64 / waits.len().max(1) as f64;
        self.waits = waits.len();
        self
    }

    fn first(&self, firsts: &[Waited]) -> FirstPoll {
        let Some(middle) = median(firsts.iter().map(wait_of)) else {
            // Without a creation, a task begins with its first poll.
            return FirstPoll::AtOnce;
        };
        if middle <= TOLERANCE_MS.min(0.5 * self.default_ms) {
            return FirstPoll::AtOnce;
        }
        // The first step of a table is that of the first poll, or of the second; then its own time is the safer reading.
        let as_any = firsts.iter().filter(|w| self.explains(w)).count();
        if as_any * 10 >= firsts.len() * 7
            || (!self.steps_ms.is_empty() && middle < self.steps_ms[0])
        {
            return FirstPoll::AfterWait;
        }
        FirstPoll::After(middle)
    }
}

/// One wait for all.
fn constant(waits: &[Waited]) -> Option<Pacing> {
    let middle = median(waits.iter().map(wait_of))?;
    Some(Pacing::plain(middle).judged(waits))
}

/// Hints are used.
fn by_hint(waits: &[Waited]) -> Option<Pacing> {
    let sane: Vec<&Waited> = waits.iter().filter(|w| w.after_sane()).collect();
    let over = |w: &Waited| wait_of(w) - hint_of(w);
    let matched: Vec<f64> = sane
        .iter()
        .filter(|w| near(wait_of(w), hint_of(w)))
        .map(|w| over(w))
        .collect();
    if matched.is_empty() {
        return None;
    }
    let overhead = median(matched).unwrap_or(0.0).max(0.0);
    let beyond = |sign: f64| -> Vec<f64> {
        sane.iter()
            .filter(|w| sign * over(w) > tolerance(hint_of(w)))
            .map(|w| wait_of(w))
            .collect()
    };
    let bound = |waits: &[f64]| {
        let telling = waits.len() * 100 >= sane.len();
        common(waits)
            .filter(|_| telling)
            .map(|ms| (ms - overhead).max(0.0))
    };
    let missing = |w: &&Waited| matches!(w.hint.class, HintClass::Absent | HintClass::Null);
    let bare: Vec<f64> = waits.iter().filter(missing).map(wait_of).collect();
    let mut pacing = Pacing::plain(0.0);
    pacing.uses_hints = true;
    pacing.overhead_ms = overhead;
    pacing.floor_ms = bound(&beyond(1.0));
    pacing.ceiling_ms = bound(&beyond(-1.0));
    let middle = median(waits.iter().map(wait_of)).unwrap_or_default();
    pacing.default_ms = (median(bare).unwrap_or(middle) - overhead).max(0.0);
    pacing.rules = rules(&pacing, waits);
    Some(pacing.judged(waits))
}

/// What became of bad hints, class by class, where an envelope by itself would do something else.
fn rules(pacing: &Pacing, waits: &[Waited]) -> Vec<(HintClass, &'static str)> {
    let mut rules = Vec::new();
    for class in HintClass::ALL {
        if matches!(class, HintClass::Absent | HintClass::Null | HintClass::Sane) {
            continue;
        }
        let of: Vec<&Waited> = waits.iter().filter(|w| w.hint.class == class).collect();
        if of.len() < ENOUGH {
            continue;
        }
        let explained = |then: &str| {
            of.iter()
                .filter(|w| near(wait_of(w), pacing.outcome(class, hint_of(w), then)))
                .count()
        };
        let own = Pacing::own_rule(class);
        let number = class != HintClass::Text;
        let candidates = [
            ("default", true),
            ("floor", pacing.floor_ms.is_some()),
            ("use", number),
            ("wrap_i32_timer", number),
            ("parse", !number),
        ];
        let possible = candidates.into_iter().filter(|(_, possible)| *possible);
        let best = possible.map(|(then, _)| then).fold(own, |best, then| {
            if explained(then) > explained(best) {
                then
            } else {
                best
            }
        });
        if best != own {
            rules.push((class, best));
        }
    }
    rules
}

/// A table of waits by their number.
fn by_number(waits: &[Waited]) -> Option<Pacing> {
    let mut steps: Vec<f64> = Vec::new();
    for number in 1..=STEPS as u32 {
        let of = waits.iter().filter(|w| w.number == number);
        let of: Vec<f64> = of.map(wait_of).collect();
        if of.len() < ENOUGH {
            break;
        }
        steps.extend(median(of));
    }
    if steps.len() < 2 {
        return None;
    }
    let mut pacing = Pacing::plain(steps[0]);
    pacing.steps_ms = steps;
    Some(pacing.judged(waits))
}

/// Waits that are random around the hint, or around one value.
fn jittered(waits: &[Waited]) -> Option<Pacing> {
    let moments = |ratios: &[f64]| {
        let m = mean(ratios)?;
        let squares: Vec<f64> = ratios.iter().map(|r| (r - m).powi(2)).collect();
        Some((m, mean(&squares)?.sqrt()))
    };
    let values: Vec<f64> = waits.iter().map(wait_of).collect();
    let average = mean(&values)?;
    let (_, spread) = moments(&values)?;
    let share = |spread: f64| (3f64.sqrt() * spread).min(1.0);
    let mut around_mean = Pacing::plain(average);
    around_mean.jitter = Jitter::Proportional(share(spread / average.max(1e-9)));
    let around_mean = around_mean.judged(waits);

    let sane: Vec<&Waited> = waits.iter().filter(|w| w.after_sane()).collect();
    if sane.len() * 2 < waits.len() {
        return Some(around_mean);
    }
    let ratios: Vec<f64> = sane.iter().map(|w| wait_of(w) / hint_of(w)).collect();
    let (ratio, ratio_spread) = moments(&ratios)?;
    let over: Vec<f64> = sane.iter().map(|w| wait_of(w) - hint_of(w)).collect();
    let least_over = quantile(&sorted(over.iter().copied()), 0.02)?;
    let jitter = if least_over > -TOLERANCE_MS && ratio > 1.0 + TOLERANCE {
        Jitter::Additive(2.0 * mean(&over)?)
    } else if (ratio - 0.5).abs() < 0.08 && ratio_spread > 0.2 {
        Jitter::Full
    } else if (ratio - 0.75).abs() < 0.08 && ratio_spread > 0.1 {
        Jitter::Equal
    } else if (ratio - 1.0).abs() < 0.1 {
        Jitter::Proportional(share(ratio_spread))
    } else {
        return Some(around_mean);
    };
    let rest = waits.iter().filter(|w| !w.after_sane()).map(wait_of);
    let mut around_hint = Pacing::plain(median(rest).unwrap_or(average));
    around_hint.uses_hints = true;
    around_hint.jitter = jitter;
    let around_hint = around_hint.judged(waits);
    // A wide enough jitter around the mean explains anything: the hint is the better account where it varies.
    Some(if around_hint.explained + MARGIN >= around_mean.explained {
        around_hint
    } else {
        around_mean
    })
}
