//! What servers suggested, counted by class: once per task, and once per answer.

use std::collections::BTreeMap;

use super::sample::Reservoir;
use super::task::Task;
use crate::policy::{HintClass, RawHint};

/// Sane hints kept of a server.
const SANE_MAX: usize = 10_000;
/// Different bad hints kept of a server, beyond one of each class.
const BAD_MAX: usize = 16;
/// Hints of a task vary where those of more than this share of the tasks with two hints do.
const VARIED: f64 = 0.05;

/// Hints of one server.
#[derive(Clone, Debug)]
pub struct Hints {
    /// The first hint of each task.
    pub per_task: Counts,
    /// That of every answer.
    pub per_answer: Counts,
    /// Tasks with two hints or more.
    pub compared: u64,
    /// Tasks whose hints were not all the same.
    pub varied: u64,
}

/// Hints by class.
#[derive(Clone, Debug)]
pub struct Counts {
    /// How many of each class, in the order of [`HintClass::ALL`].
    pub classes: [u64; HintClass::COUNT],
    /// A sample of the sane ones, in ms.
    pub sane: Reservoir<f64>,
    /// The bad ones by class and value (as bits): a new value of a class is counted with a known one when there are too many.
    pub bad: BTreeMap<(u8, u64), u64>,
}

impl Default for Hints {
    fn default() -> Self {
        Hints {
            per_task: Counts::new(),
            per_answer: Counts::new(),
            compared: 0,
            varied: 0,
        }
    }
}

impl Hints {
    /// The hint of an answer that does not end its task.
    pub fn count(&mut self, task: &mut Task, hint: RawHint) {
        self.per_answer.count(hint);
        let small = super::task::SmallHint::new(hint);
        match task.hints {
            0 => self.per_task.count(hint),
            1 => self.compared += 1,
            _ => {}
        }
        if task.hints > 0 && task.hint != small && !task.varied {
            task.varied = true;
            self.varied += 1;
        }
        task.hints = (task.hints + 1).min(2);
        task.hint = small;
    }

    /// Do the hints of a task change from answer to answer?
    pub fn vary(&self) -> bool {
        self.varied as f64 > VARIED * self.compared as f64
    }

    /// Those that the scenario draws from.
    pub fn counts(&self) -> &Counts {
        if self.vary() {
            &self.per_answer
        } else {
            &self.per_task
        }
    }
}

impl Counts {
    fn new() -> Self {
        Counts {
            classes: [0; HintClass::COUNT],
            sane: Reservoir::new(SANE_MAX),
            bad: BTreeMap::new(),
        }
    }

    fn count(&mut self, hint: RawHint) {
        let class = hint.class();
        self.classes[class as usize] += 1;
        let value = match hint {
            RawHint::Absent | RawHint::Null => return,
            RawHint::Number(ms) if class == HintClass::Sane => return self.sane.offer(ms),
            RawHint::Number(ms) | RawHint::Text(ms) => ms,
        };
        let class = class as u8;
        let key = (class, value.to_bits());
        let of_class = (class, 0)..=(class, u64::MAX);
        let known = match self.bad.len() {
            n if n >= BAD_MAX && !self.bad.contains_key(&key) => {
                self.bad.range(of_class).next().map(|(key, _)| *key)
            }
            _ => None,
        };
        *self.bad.entry(known.unwrap_or(key)).or_default() += 1;
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.classes.iter().sum()
    }
}
