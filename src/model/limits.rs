//! Rate limits, budgets, breakers and retries, ready to run.

use super::TimeSampler;
use crate::policy::FOREVER;
use crate::scenario::written;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// Time in which a token is gained, in units of 2^-20 ns.
    pub period: u128,
    /// Tokens that it holds.
    pub burst: u32,
}

/// Binary digits of a nanosecond's fraction in [`Bucket::period`].
pub const FRACTION: u32 = 20;

impl Bucket {
    pub(super) fn new(bucket: &written::Bucket) -> Self {
        let ns = bucket.rate.per.0 as f64 / bucket.rate.count;
        Bucket {
            period: libm::rint(ns * (1u64 << FRACTION) as f64) as u128,
            burst: bucket.burst.0,
        }
    }
}

/// A server's limit on the rate of requests.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// What each has its own.
    pub per: Per,
    /// How it is counted.
    pub kind: LimitKind,
}

/// What each has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each server.
    Server,
    /// Each tenant.
    Tenant,
    /// Each host.
    Host,
}

/// How a rate is limited.
#[derive(Clone, Copy, Debug)]
pub enum LimitKind {
    /// A token bucket.
    Bucket(Bucket),
    /// So many in each window.
    Quota {
        /// How many.
        requests: u32,
        /// How long.
        length: u64,
    },
}

impl Limit {
    pub(super) fn new(limit: &written::RateLimit) -> Option<Self> {
        let kind = match (&limit.bucket, &limit.quota) {
            (Some(bucket), _) => LimitKind::Bucket(Bucket::new(bucket)),
            (None, Some(quota)) => LimitKind::Quota {
                requests: quota.requests.0,
                length: quota.length.0.0,
            },
            (None, None) => return None,
        };
        let per = match limit.per {
            written::Per::Server => Per::Server,
            written::Per::Tenant => Per::Tenant,
            written::Per::Client => Per::Host,
        };
        Some(Limit { per, kind })
    }
}

/// What stands in `Retry-After` of a refusal.
#[derive(Clone, Debug)]
pub enum RetryAfter {
    /// Nothing.
    Absent,
    /// Until a limit lets pass.
    UntilAllowed,
    /// A time.
    After(TimeSampler),
}

impl RetryAfter {
    pub(super) fn new(written: &written::RetryAfter) -> Self {
        match written {
            written::RetryAfter::Absent => RetryAfter::Absent,
            written::RetryAfter::UntilAllowed => RetryAfter::UntilAllowed,
            written::RetryAfter::After(time) => RetryAfter::After(TimeSampler::new(time)),
        }
    }
}

/// The shortest time between two polls of a task.
#[derive(Clone, Copy, Debug)]
pub struct MinimumGap {
    /// The time, skew included.
    pub gap: u64,
    /// Does it hold before the first poll too?
    pub from_issue: bool,
}

impl MinimumGap {
    pub(super) fn new(gap: &written::MinimumGap) -> Self {
        MinimumGap {
            gap: gap.gap.0.0.saturating_add(gap.skew.0),
            from_issue: gap.from == written::GapFrom::Issue,
        }
    }
}

/// Budgets of all hosts together.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Of the fleet.
    pub fleet: Option<Bucket>,
    /// Of each tenant.
    pub tenant: Option<Bucket>,
    /// For each server.
    pub server: Option<Bucket>,
    /// Polls in flight of each host.
    pub host_pollers: Option<u32>,
    /// … of each tenant.
    pub tenant_pollers: Option<u32>,
    /// … to each server.
    pub server_pollers: Option<u32>,
    /// Is a poll that must wait left out?
    pub skips: bool,
}

impl Budget {
    pub(super) fn new(budget: &written::Budget) -> Self {
        Budget {
            fleet: budget.fleet.as_ref().map(Bucket::new),
            tenant: budget.tenant.as_ref().map(Bucket::new),
            server: budget.server.as_ref().map(Bucket::new),
            host_pollers: budget.pollers.host.map(|c| c.0),
            tenant_pollers: budget.pollers.tenant.map(|c| c.0),
            server_pollers: budget.pollers.server.map(|c| c.0),
            skips: budget.when_spent == written::WhenSpent::Skip,
        }
    }
}

/// A circuit breaker.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    /// What opens it.
    pub opens: Opens,
    /// How long it stays open.
    pub open: u64,
    /// Polls that try the server at once when it is half open.
    pub probes: u32,
    /// What happens to polls that it holds back.
    pub held_back: HeldBack,
}

/// What opens a breaker.
#[derive(Clone, Copy, Debug)]
pub enum Opens {
    /// Failures in a row.
    Consecutive(u32),
    /// Failures in a window.
    Failures {
        /// How many.
        count: u32,
        /// How long.
        within: u64,
    },
    /// A share of failures in a window.
    Share {
        /// The share.
        of: f64,
        /// How long.
        within: u64,
        /// Fewer answers never open it.
        least: u32,
    },
}

/// What happens to polls that a breaker holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// They wait.
    Wait,
    /// They are left out.
    Skip,
    /// They fail at once.
    Fail,
}

impl Breaker {
    pub(super) fn new(breaker: &written::Breaker) -> Self {
        Breaker {
            opens: match &breaker.opens {
                written::Opens::Consecutive(n) => Opens::Consecutive(n.0),
                written::Opens::Failures(f) => Opens::Failures {
                    count: f.count.0,
                    within: f.within.0.0,
                },
                written::Opens::Share(s) => Opens::Share {
                    of: s.of.0,
                    within: s.within.0.0,
                    least: s.least.0,
                },
            },
            open: breaker.open.0.0,
            probes: breaker.probes.0,
            held_back: match breaker.held_back {
                written::HeldBack::Wait => HeldBack::Wait,
                written::HeldBack::Skip => HeldBack::Skip,
                written::HeldBack::Fail => HeldBack::Fail,
            },
        }
    }
}

/// Retries of the transport inside one poll.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// Requests at most, the first one included.
    pub requests: u32,
    /// Wait before the first retry.
    pub wait: u64,
    /// Each further wait is so many times longer.
    pub factor: f64,
    /// No wait is longer.
    pub cap: u64,
    /// Waits are uniform on the upper part of [0, wait): this share of it.
    pub jitter: f64,
}

impl Retries {
    pub(super) fn new(retries: &written::Retries) -> Self {
        Retries {
            requests: retries.attempts.0.saturating_pow(retries.layers.0),
            wait: retries.wait.0,
            factor: retries.factor.0,
            cap: retries.cap.map_or(FOREVER, |s| s.0.0),
            jitter: match retries.jitter {
                written::RetryJitter::None => 0.0,
                written::RetryJitter::Full => 1.0,
                written::RetryJitter::Minus(share) => share.0,
            },
        }
    }

    /// The wait before retry number `n` (from 1); `u` is a uniform 64-bit fraction of one.
    pub fn before(&self, n: u32, u: u64) -> u64 {
        let grown = self.wait as f64 * libm::pow(self.factor, f64::from(n - 1));
        let wait = ((grown + 0.5) as u64).min(self.cap);
        let span = (wait as f64 * self.jitter) as u64;
        let drawn = ((u128::from(span) * u128::from(u)) >> 64) as u64;
        wait - span + drawn
    }
}
