//! Limits of servers and hosts, as written: rates, budgets, breakers, prices. Part of [`super::written`].

use super::fields::{Count, Factor, Share, Span, Weight, choice, record};
use super::units::{Duration, Rate};
use super::written::Time;

record! {
    /// A token bucket: it holds `burst` tokens at first and at most, and gains them at `rate`; each request takes one.
    pub struct Bucket {
        /// Tokens gained.
        rate: Rate,
        /// Tokens that it holds.
        burst: Count = Count(1),
    }
}

record! {
    /// So many requests in each window [k × length, (k + 1) × length).
    pub struct Quota {
        /// How many.
        requests: Count,
        /// How long a window is.
        length: Span,
    }
}

record! {
    /// A limit on the rate of requests, over which a server answers 429: a `bucket` or a `quota`.
    pub struct RateLimit {
        /// What each has a limit of its own.
        per: Per,
        /// A token bucket.
        bucket: Option<Bucket>,
        /// A fixed window.
        quota: Option<Quota>,
    }
}

choice! {
    /// What each has a rate limit of its own.
    pub enum Per {
        words {
            /// Each server of the class.
            "server" => Server,
            /// Each tenant, over all servers of the class.
            "tenant" => Tenant,
            /// Each host, over all servers of the class.
            "client" => Client,
        }
        tables {}
    }
}

choice! {
    /// What stands in `Retry-After` of a refusal (429 or 503).
    pub enum RetryAfter {
        words {
            /// The header is not there.
            "absent" => Absent,
            /// The time until a rate limit lets the next request pass, in whole seconds, rounded up; absent from a 503.
            "until_allowed" => UntilAllowed,
        }
        tables {
            /// A time, however absurd.
            "after" => After(Time),
        }
    }
}

record! {
    /// The shortest time between two polls of a task that a server takes; sooner ones are refused with `slow_down` (RFC 8628, section 3.5).
    pub struct MinimumGap {
        /// The shortest time.
        gap: Span,
        /// What the server's clock adds to it.
        skew: Duration = Duration(0),
        /// What the time before the first poll is counted from.
        from: GapFrom = GapFrom::Issue,
    }
}

choice! {
    /// What a minimum gap is counted from.
    pub enum GapFrom {
        words {
            /// The task's creation, then the last poll, refused or not.
            "issue" => Issue,
            /// The last poll, refused or not; the first poll may come at once.
            "last_poll" => LastPoll,
        }
        tables {}
    }
}

record! {
    /// Budgets for the polls of all hosts together. A poll that its budget does not let pass waits for its turn or skips it.
    pub struct Budget {
        /// Polls of the whole fleet.
        fleet: Option<Bucket>,
        /// Polls of each tenant.
        tenant: Option<Bucket>,
        /// Polls to each server.
        server: Option<Bucket>,
        /// Polls in flight at once.
        pollers: Pollers = Pollers { host: None, tenant: None, server: None },
        /// What happens to a poll that must wait.
        when_spent: WhenSpent = WhenSpent::Queue,
    }
}

record! {
    /// Polls in flight at once; a poll that waits for a token holds its place.
    pub struct Pollers {
        /// Of each host.
        host: Option<Count>,
        /// Of each tenant.
        tenant: Option<Count>,
        /// To each server.
        server: Option<Count>,
    }
}

choice! {
    /// What happens to a poll that its budget does not let pass.
    pub enum WhenSpent {
        words {
            /// It waits; tenants take turns by their weights (deficit round robin).
            "queue" => Queue,
            /// It is left out: its loop waits as long again.
            "skip" => Skip,
        }
        tables {}
    }
}

record! {
    /// A circuit breaker between each host and each server.
    pub struct Breaker {
        /// What opens it. Failures are error answers and timeouts; `slow_down` and unknown tasks are none.
        opens: Opens,
        /// How long it stays open.
        open: Span,
        /// Polls that may try the server at once when it is half open.
        probes: Count = Count(1),
        /// What happens to polls that it holds back.
        held_back: HeldBack = HeldBack::Wait,
    }
}

choice! {
    /// What opens a breaker.
    pub enum Opens {
        words {}
        tables {
            /// So many failures in a row.
            "consecutive" => Consecutive(Count),
            /// So many failures in a window of time.
            "failures" => Failures(FailuresWithin),
            /// A share of the answers in a window of time.
            "share" => Share(ShareWithin),
        }
    }
}

record! {
    /// Failures in a window of time.
    pub struct FailuresWithin {
        /// How many.
        count: Count,
        /// How long the window is.
        within: Span,
    }
}

record! {
    /// A share of failures in a window of time.
    pub struct ShareWithin {
        /// The share.
        of: Share,
        /// How long the window is.
        within: Span,
        /// With fewer answers in the window it stays closed.
        least: Count = Count(10),
    }
}

choice! {
    /// What happens to polls that a breaker holds back.
    pub enum HeldBack {
        words {
            /// They wait until it lets them pass; when it closes, all at once.
            "wait" => Wait,
            /// They are left out: their loops wait as long again.
            "skip" => Skip,
            /// They fail at once, as after an error answer.
            "fail" => Fail,
        }
        tables {}
    }
}

record! {
    /// Retries of the transport inside one poll, which the policy does not see.
    pub struct Retries {
        /// Attempts of each layer, the first one included.
        attempts: Count,
        /// Layers that retry, each around the one below: attempts^layers requests at most.
        layers: Count = Count(1),
        /// Wait before the first retry.
        wait: Duration = Duration(0),
        /// Each further wait is so many times longer.
        factor: Factor = Factor(2.0),
        /// No wait grows beyond this.
        cap: Option<Span>,
        /// Randomness of these waits.
        jitter: RetryJitter = RetryJitter::None,
    }
}

choice! {
    /// Randomness of the waits between retries.
    pub enum RetryJitter {
        words {
            /// None.
            "none" => None,
            /// Uniform on [0, wait).
            "full" => Full,
        }
        tables {
            /// Uniform on [wait less this share of it, wait).
            "minus" => Minus(Share),
        }
    }
}

choice! {
    /// What a host makes of `Retry-After`.
    pub enum OnRetryAfter {
        words {
            /// Nothing.
            "ignored" => Ignored,
        }
        tables {
            /// The wait follows it.
            "obeyed" => Obeyed(Obeyed),
        }
    }
}

record! {
    /// How a host obeys `Retry-After`.
    pub struct Obeyed {
        /// The wait itself, or a lower bound of the host's own.
        role: RetryRole = RetryRole::Floor,
        /// Does the policy's ceiling cut it?
        ceiling: bool = false,
        /// Longer times become what `beyond` says; no limit where left out.
        limit: Option<Span>,
        /// What happens to longer times.
        beyond: BeyondLimit = BeyondLimit::Cut,
        /// Is it read from good answers too?
        on_success: bool = false,
    }
}

choice! {
    /// What `Retry-After` is for a host.
    pub enum RetryRole {
        words {
            /// The wait.
            "wait" => Wait,
            /// A lower bound of the wait that the policy chose.
            "floor" => Floor,
        }
        tables {}
    }
}

choice! {
    /// What happens to a `Retry-After` above the limit.
    pub enum BeyondLimit {
        words {
            /// It is cut to the limit.
            "cut" => Cut,
            /// It is ignored.
            "ignore" => Ignore,
            /// The loop ends with an error.
            "end" => End,
        }
        tables {}
    }
}

record! {
    /// What polling costs, in a currency of the planner's choice.
    pub struct Cost {
        /// Price of a request of any method.
        request: Weight = Weight(0.0),
        /// Tokens that a model burns on each poll (an agent that polls by model turns).
        poll_tokens: Weight = Weight(0.0),
        /// Price of a token.
        token: Weight = Weight(0.0),
    }
}
