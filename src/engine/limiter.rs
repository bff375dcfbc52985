//! Token buckets, places, and the fair queue of those who wait for one.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Bucket, LimitKind};

/// Binary digits of a nanosecond's fraction in a bucket's clock: that of [`Bucket::period`].
const FRACTION: u32 = crate::model::FRACTION;

/// A token bucket, kept as the instant at which it will be full again (GCRA, the virtual scheduling of ITU-T I.371): exact, with nothing
/// to do while time passes.
#[derive(Clone, Copy, Debug)]
pub struct Tokens {
    bucket: Bucket,
    /// When it is full again, in units of 2^-20 ns.
    full: u128,
    /// A token is there so long before that, in the same units.
    head: u128,
}

impl Tokens {
    /// A full bucket.
    pub fn new(bucket: Bucket) -> Self {
        Tokens {
            bucket,
            full: 0,
            head: bucket.period * u128::from(bucket.burst - 1),
        }
    }

    /// When the next token is there, ns, rounded up.
    #[inline]
    pub fn next(&self) -> u64 {
        let at = self.full.saturating_sub(self.head);
        u64::try_from((at + (1 << FRACTION) - 1) >> FRACTION).unwrap_or(u64::MAX)
    }

    /// Takes a token that is there at `now`.
    #[inline]
    pub fn take(&mut self, now: u64) {
        let now = u128::from(now) << FRACTION;
        // What came within the last nanosecond could not be taken sooner: rounding must not slow the bucket down.
        if now >= self.full + (1 << FRACTION) {
            self.full = now;
        }
        self.full += self.bucket.period;
    }
}

/// How many requests a limit of a server has let pass.
#[derive(Clone, Copy, Debug)]
pub enum Passed {
    /// A bucket.
    Tokens(Tokens),
    /// A fixed window.
    Quota {
        /// How many each window lets pass.
        requests: u32,
        /// Its length, ns.
        length: u64,
        /// Number of the window that was counted last.
        window: u64,
        /// Requests passed in it.
        count: u32,
    },
}

impl Passed {
    /// Nothing has passed.
    pub fn new(kind: LimitKind) -> Self {
        match kind {
            LimitKind::Bucket(bucket) => Passed::Tokens(Tokens::new(bucket)),
            LimitKind::Quota { requests, length } => Passed::Quota {
                requests,
                length,
                window: 0,
                count: 0,
            },
        }
    }

    /// When the next request may pass: at most `now` where it may at once.
    #[inline]
    pub fn next(&self, now: u64) -> u64 {
        match *self {
            Passed::Tokens(tokens) => tokens.next(),
            Passed::Quota {
                requests,
                length,
                window,
                count,
            } => {
                if now / length > window || count < requests {
                    now
                } else {
                    (window + 1).saturating_mul(length)
                }
            }
        }
    }

    /// Counts a request that passes at `now`.
    #[inline]
    pub fn take(&mut self, now: u64) {
        match self {
            Passed::Tokens(tokens) => tokens.take(now),
            Passed::Quota {
                length,
                window,
                count,
                ..
            } => {
                let current = now / *length;
                if current > *window {
                    (*window, *count) = (current, 0);
                }
                *count += 1;
            }
        }
    }
}

/// Someone who waits: a slot, and the number of its wait, by which one that is over is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The slot.
    pub slot: u32,
    /// The number of the wait.
    pub number: u32,
}

/// A queue in which tenants take turns by their weights: deficit round robin (Shreedhar and Varghese 1995), every poll costing the same.
#[derive(Clone, Debug, Default)]
pub struct FairQueue {
    /// The tenants that wait, by number.
    flows: BTreeMap<u32, Flow>,
    /// Their turns.
    turns: VecDeque<u32>,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    waiting: VecDeque<Ticket>,
    /// Polls that it may still send in its turn, in units of 2^-16.
    deficit: u64,
    /// Polls that each turn grants, in the same units.
    quantum: u64,
    /// Has the turn at the head of the queue been granted?
    granted: bool,
}

/// A poll, in units of a deficit.
const POLL: u64 = 1 << 16;

impl FairQueue {
    /// Puts a ticket of `tenant` at the end of its line. `share` is its weight relative to the least of all.
    pub fn push(&mut self, tenant: u32, share: f64, ticket: Ticket) {
        let flow = self.flows.entry(tenant).or_insert_with(|| {
            self.turns.push_back(tenant);
            Flow {
                quantum: (share * POLL as f64) as u64,
                ..Flow::default()
            }
        });
        flow.waiting.push_back(ticket);
    }

    /// Takes the ticket whose turn it is.
    pub fn pop(&mut self) -> Option<Ticket> {
        loop {
            let tenant = *self.turns.front()?;
            let flow = self.flows.get_mut(&tenant)?;
            if !flow.granted {
                flow.deficit += flow.quantum.max(1);
                flow.granted = true;
            }
            if flow.deficit < POLL {
                flow.granted = false;
                self.turns.rotate_left(1);
                continue;
            }
            flow.deficit -= POLL;
            let ticket = flow.waiting.pop_front();
            if flow.waiting.is_empty() {
                self.flows.remove(&tenant);
                self.turns.pop_front();
            }
            return ticket;
        }
    }

    /// Does nobody wait?
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// One limit of a budget: tokens or places, and those who wait for them.
#[derive(Clone, Debug)]
pub struct Limiter {
    tokens: Option<Tokens>,
    /// Places in all.
    places: u32,
    taken: u32,
    /// Those who wait.
    pub waiting: FairQueue,
    /// Is the event of the next token on its way?
    pub armed: bool,
}

impl Limiter {
    /// A limit on a rate.
    pub fn of_rate(bucket: Bucket) -> Self {
        Limiter {
            tokens: Some(Tokens::new(bucket)),
            ..Limiter::of_places(u32::MAX)
        }
    }

    /// A limit on polls in flight.
    pub fn of_places(places: u32) -> Self {
        Limiter {
            tokens: None,
            places,
            taken: 0,
            waiting: FairQueue::default(),
            armed: false,
        }
    }

    /// Is there something to take at `now`?
    pub fn has_room(&self, now: u64) -> bool {
        match &self.tokens {
            Some(tokens) => tokens.next() <= now,
            None => self.taken < self.places,
        }
    }

    /// Takes a token or a place.
    pub fn take(&mut self, now: u64) {
        match &mut self.tokens {
            Some(tokens) => tokens.take(now),
            None => self.taken += 1,
        }
    }

    /// Gives a place back.
    pub fn give_back(&mut self) {
        if self.tokens.is_none() {
            self.taken -= 1;
        }
    }

    /// When the next token is there; `None` where places are limited.
    pub fn next_token(&self) -> Option<u64> {
        self.tokens.as_ref().map(Tokens::next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn bucket(per_s: f64, burst: u32) -> Bucket {
        Bucket {
            period: ((S as f64 / per_s) * (1u64 << FRACTION) as f64) as u128,
            burst,
        }
    }

    fn ticket(slot: u32) -> Ticket {
        Ticket { slot, number: 0 }
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut tokens = Tokens::new(bucket(4.0, 3));
        let mut taken = Vec::new();
        let mut now = 0;
        while taken.len() < 6 {
            now = now.max(tokens.next());
            tokens.take(now);
            taken.push(now / 1_000_000);
        }
        assert_eq!(taken, [0, 0, 0, 250, 500, 750]);
        // Two seconds later it is full again, and not more than full.
        now += 2 * S;
        (0..3).for_each(|_| tokens.take(now));
        assert_eq!(tokens.next(), now + S / 4);
    }

    #[test]
    fn a_rate_that_no_nanosecond_divides_does_not_drift() {
        let mut tokens = Tokens::new(bucket(3.0, 1));
        (0..3_000_000).for_each(|_| {
            let at = tokens.next();
            tokens.take(at);
        });
        let drift = tokens.next().abs_diff(1_000_000 * S);
        assert!(drift < 4, "{drift} ns after a million seconds");
    }

    #[test]
    fn a_quota_is_counted_by_windows_of_the_clock() {
        let mut passed = Passed::new(LimitKind::Quota {
            requests: 2,
            length: 10 * S,
        });
        passed.take(S);
        passed.take(2 * S);
        assert_eq!(passed.next(3 * S), 10 * S, "spent until the window ends");
        assert_eq!(passed.next(10 * S), 10 * S);
        passed.take(10 * S);
        assert_eq!(passed.next(11 * S), 11 * S);
    }

    #[test]
    fn tenants_take_turns_however_long_their_lines() {
        let mut queue = FairQueue::default();
        (0..5).for_each(|i| queue.push(7, 1.0, ticket(i)));
        queue.push(3, 1.0, ticket(100));
        queue.push(9, 1.0, ticket(200));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|t| t.slot).collect();
        assert_eq!(order, [0, 100, 200, 1, 2, 3, 4]);
    }

    #[test]
    fn a_weight_is_a_share_of_the_turns() {
        let mut queue = FairQueue::default();
        for i in 0..40 {
            queue.push(1, 2.5, ticket(i));
            queue.push(2, 1.0, ticket(100 + i));
        }
        let first: Vec<u32> = (0..35)
            .filter_map(|_| queue.pop())
            .map(|t| t.slot)
            .collect();
        let of_first = first.iter().filter(|slot| **slot < 100).count();
        assert_eq!(of_first, 25, "2.5 of 3.5");
    }

    #[test]
    fn places_are_given_back() {
        let mut limiter = Limiter::of_places(2);
        limiter.take(0);
        limiter.take(0);
        assert!(!limiter.has_room(0));
        limiter.give_back();
        assert!(limiter.has_room(0));
    }
}
