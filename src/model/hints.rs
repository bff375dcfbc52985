//! What servers suggest, ready to draw.

use crate::policy::RawHint;

use super::distribution::{Sampler, pick};
use crate::random::unit;

/// Where a server's hints come from.
#[derive(Clone, Debug)]
pub enum HintSource {
    /// Always the same.
    Constant(RawHint),
    /// Drawn once per task; or taken in turn, by so many tasks of a tenant.
    PerTask(Mix, Option<u32>),
    /// Drawn for each answer.
    PerAnswer(Mix),
    /// By share of the duration passed.
    ByProgress(Steps),
    /// By age in ns.
    ByAge(Steps),
    /// By unfinished tasks at the server.
    ByLoad(Steps),
}

/// A mixture of hints.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Cumulative shares.
    pub shares: Vec<f64>,
    /// The parts.
    pub parts: Vec<Part>,
}

/// Hints by steps of something; before the first step there is none.
#[derive(Clone, Debug)]
pub struct Steps(pub Vec<(f64, Part)>);

/// One part of a mixture, or one step.
#[derive(Clone, Debug)]
pub enum Part {
    /// Always the same.
    Fixed(RawHint),
    /// Milliseconds from a distribution, rounded to whole ones.
    Drawn(Box<Sampler>),
}

impl Part {
    /// The same for many draws.
    fn tabulated(self) -> Self {
        match self {
            Part::Drawn(sampler) => Part::Drawn(Box::new(sampler.tabulated())),
            fixed => fixed,
        }
    }

    /// The hint; `bits` are drawn only where needed.
    pub fn hint(&self, bits: impl FnOnce() -> u64) -> RawHint {
        match self {
            Part::Fixed(hint) => *hint,
            Part::Drawn(sampler) => RawHint::Number(libm::rint(sampler.draw(bits()))),
        }
    }
}

impl Mix {
    /// The same for a draw in every answer.
    pub fn tabulated(mut self) -> Self {
        self.parts = self.parts.into_iter().map(Part::tabulated).collect();
        self
    }

    /// Draws that take the parts in turn: those of task number `ordinal` (from 0) of a round of `tasks`.
    pub fn turn(ordinal: u32, tasks: u32) -> u64 {
        let place = f64::from(ordinal % tasks) + 0.5;
        (place / f64::from(tasks) * 2f64.powi(64)) as u64
    }

    /// A hint from two draws: which part, and its value.
    pub fn hint(&self, part_bits: u64, value_bits: impl FnOnce() -> u64) -> RawHint {
        let part = if self.parts.len() == 1 {
            0
        } else {
            pick(&self.shares, unit(part_bits))
        };
        self.parts[part].hint(value_bits)
    }
}

impl Steps {
    /// The same for a draw in every answer.
    pub fn tabulated(mut self) -> Self {
        let steps = self.0.into_iter();
        self.0 = steps.map(|(from, part)| (from, part.tabulated())).collect();
        self
    }

    /// The hint of the step that holds at `x`.
    pub fn hint(&self, x: f64, bits: impl FnOnce() -> u64) -> RawHint {
        let at = self.0.partition_point(|(from, _)| *from <= x);
        match at.checked_sub(1) {
            Some(i) => self.0[i].1.hint(bits),
            None => RawHint::Absent,
        }
    }
}
