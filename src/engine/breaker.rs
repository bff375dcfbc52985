//! A circuit breaker between one host and one server (Nygard, Release It!, 2007): closed, open, half open.

use std::collections::VecDeque;

use super::limiter::Ticket;
use crate::model::{Breaker as Rules, Opens};

/// Whether a poll may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It may.
    Free,
    /// It may, to try the server.
    Probe,
    /// It is held back.
    Barred,
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// It has opened, and had been closed.
    Opened,
    /// It has opened again: the probe failed.
    Reopened,
    /// It has closed, and had been open since this instant.
    Closed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// Until this instant.
    Open(u64),
    HalfOpen,
}

/// The state of one breaker.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Breaker {
    state: State,
    /// Failures in a row.
    failures: u32,
    /// How often it has opened, again included: answers to polls that passed before tell nothing.
    pub openings: u32,
    rules: Rules,
    /// When it last left the closed state.
    since: u64,
    /// Answers in the window: when, and whether they failed.
    recent: VecDeque<(u64, bool)>,
    failed_in_window: u32,
    /// Probes without an answer as yet.
    probing: u32,
    /// Polls that it holds back.
    pub waiting: VecDeque<Ticket>,
    /// Is the event of its becoming half open on its way?
    pub armed: bool,
    /// (tenant class, server class).
    pub pair: u16,
}

impl Breaker {
    /// A closed one.
    pub fn new(rules: Rules, pair: u16) -> Self {
        Breaker {
            rules,
            state: State::Closed,
            since: 0,
            failures: 0,
            recent: VecDeque::new(),
            failed_in_window: 0,
            probing: 0,
            openings: 0,
            waiting: VecDeque::new(),
            armed: false,
            pair,
        }
    }

    /// May a poll pass at `now`? A probe that may is on its way from here on.
    pub fn ask(&mut self, now: u64) -> Passage {
        if matches!(self.state, State::Open(until) if until <= now) {
            (self.state, self.probing) = (State::HalfOpen, 0);
        }
        match self.state {
            State::Closed => Passage::Free,
            State::HalfOpen if self.probing < self.rules.probes => {
                self.probing += 1;
                Passage::Probe
            }
            State::HalfOpen | State::Open(_) => Passage::Barred,
        }
    }

    /// Do all polls pass?
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// A good answer was seen, to a poll that passed after so many openings and was no probe. `false` where more than a count comes of it: then
    /// nothing has happened.
    #[inline]
    pub fn note_success(&mut self, openings: u32) -> bool {
        if openings != self.openings || self.state != State::Closed {
            // It tells nothing.
            return true;
        }
        if let Opens::Consecutive(_) = self.rules.opens {
            self.failures = 0;
            return true;
        }
        false
    }

    /// When it becomes half open; `None` where it is not open.
    pub fn opens_until(&self) -> Option<u64> {
        match self.state {
            State::Open(until) => Some(until),
            _ => None,
        }
    }

    /// Since when it has not been closed.
    pub fn open_since(&self) -> Option<u64> {
        (self.state != State::Closed).then_some(self.since)
    }

    /// A probe that passed after so many openings comes to nothing: its loop has ended, or started again.
    pub fn give_up_probe(&mut self, openings: u32) {
        if openings == self.openings {
            self.probing = self.probing.saturating_sub(1);
        }
    }

    /// An answer was seen at `now`, to a poll that passed after so many openings.
    pub fn report(&mut self, failed: bool, probe: bool, openings: u32, now: u64) -> Change {
        if openings != self.openings {
            // Sent before it last opened.
            return Change::None;
        }
        match self.state {
            State::Closed => {
                if self.trips(failed, now) {
                    (self.state, self.since) =
                        (State::Open(now.saturating_add(self.rules.open)), now);
                    self.forget();
                    self.openings += 1;
                    return Change::Opened;
                }
                Change::None
            }
            State::HalfOpen if probe => {
                if failed {
                    self.state = State::Open(now.saturating_add(self.rules.open));
                    self.openings += 1;
                    return Change::Reopened;
                }
                self.state = State::Closed;
                self.forget();
                Change::Closed(self.since)
            }
            // A late answer to a poll sent before it opened.
            State::HalfOpen | State::Open(_) => Change::None,
        }
    }

    /// Counts an answer, and says whether it is one failure too many.
    fn trips(&mut self, failed: bool, now: u64) -> bool {
        let within = match self.rules.opens {
            Opens::Consecutive(most) => {
                self.failures = if failed { self.failures + 1 } else { 0 };
                return self.failures >= most;
            }
            Opens::Failures { within, .. } | Opens::Share { within, .. } => within,
        };
        let counts_successes = matches!(self.rules.opens, Opens::Share { .. });
        if failed || counts_successes {
            self.recent.push_back((now, failed));
            self.failed_in_window += u32::from(failed);
        }
        while let Some((at, failure)) = self.recent.front().copied()
            && at.saturating_add(within) <= now
        {
            self.recent.pop_front();
            self.failed_in_window -= u32::from(failure);
        }
        match self.rules.opens {
            Opens::Consecutive(_) => false,
            Opens::Failures { count, .. } => self.failed_in_window >= count,
            Opens::Share { of, least, .. } => {
                let answers = self.recent.len();
                failed
                    && answers >= least as usize
                    && f64::from(self.failed_in_window) >= of * answers as f64
            }
        }
    }

    fn forget(&mut self) {
        (self.failures, self.failed_in_window) = (0, 0);
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HeldBack;

    fn breaker(opens: Opens) -> Breaker {
        let rules = Rules {
            opens,
            open: 100,
            probes: 1,
            held_back: HeldBack::Wait,
        };
        Breaker::new(rules, 0)
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_probe_closes_it() {
        let mut b = breaker(Opens::Consecutive(3));
        let failures: Vec<Change> = [true, true, false, true, true, true]
            .iter()
            .enumerate()
            .map(|(i, failed)| b.report(*failed, false, b.openings, i as u64))
            .collect();
        assert_eq!(failures[5], Change::Opened);
        assert!(
            failures[..5].iter().all(|c| *c == Change::None),
            "a success counts from the start"
        );
        assert_eq!(b.ask(50), Passage::Barred);
        assert_eq!(b.ask(105), Passage::Probe);
        assert_eq!(b.ask(105), Passage::Barred, "one probe at a time");
        assert_eq!(b.report(true, true, b.openings, 110), Change::Reopened);
        assert_eq!(b.opens_until(), Some(210));
        assert_eq!(b.ask(210), Passage::Probe);
        assert_eq!(b.report(false, true, b.openings, 220), Change::Closed(5));
        assert_eq!(b.ask(220), Passage::Free);
    }

    #[test]
    fn failures_count_within_their_window_only() {
        let mut b = breaker(Opens::Failures {
            count: 3,
            within: 10,
        });
        for at in [0, 5, 10, 16] {
            assert_eq!(b.report(true, false, 0, at), Change::None, "at {at}");
        }
        assert_eq!(b.report(true, false, 0, 17), Change::Opened);
    }

    #[test]
    fn a_share_needs_enough_answers() {
        let mut b = breaker(Opens::Share {
            of: 0.5,
            within: 1000,
            least: 4,
        });
        let changes: Vec<Change> = [true, true, false, true]
            .iter()
            .enumerate()
            .map(|(i, failed)| b.report(*failed, false, b.openings, i as u64))
            .collect();
        assert_eq!(changes[..3], [Change::None; 3]);
        assert_eq!(changes[3], Change::Opened);
    }

    #[test]
    fn late_answers_change_nothing() {
        let mut b = breaker(Opens::Consecutive(1));
        assert_eq!(b.report(true, false, 0, 0), Change::Opened);
        assert_eq!(b.report(false, false, 0, 1), Change::None);
        assert_eq!(b.ask(2), Passage::Barred);
        // Nor when it has closed again.
        assert_eq!(b.ask(100), Passage::Probe);
        assert_eq!(b.report(false, true, 1, 110), Change::Closed(0));
        assert_eq!(b.report(true, false, 0, 120), Change::None);
        assert_eq!(b.ask(121), Passage::Free);
    }

    #[test]
    fn a_probe_that_comes_to_nothing_lets_another_pass() {
        let mut b = breaker(Opens::Consecutive(1));
        b.report(true, false, 0, 0);
        assert_eq!(b.ask(100), Passage::Probe);
        b.give_up_probe(1);
        assert_eq!(b.ask(100), Passage::Probe);
    }
}
