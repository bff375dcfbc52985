//! The policy as written: the `[policy.NAME]` tables of a scenario file, part of [`super::written`].

use super::fields::{Count, Factor, Number, Positive, Share, Span, choice, record};
use super::limits::{Breaker, OnRetryAfter, Retries};
use super::units::Duration;
use super::written::{CancelNotices, InFlight, Then};

record! {
    /// How a host turns hints and answers into waits: the envelope of its own.
    pub struct Policy {
        /// Take over another policy, of this scenario or one that comes with the program (`pollpace policies`), and override it.
        extends: Option<String>,
        /// What the hint is for this host.
        role: Role = Role::Value,
        /// Which hint it reads.
        read: ReadAt = ReadAt::EveryAnswer,
        /// The value when an answer has no hint (or a bad one that falls back to the default).
        default: Duration = Duration(1_000_000_000),
        /// What an answer without a hint means.
        absent: WhenAbsent = WhenAbsent::Default,
        /// What bad hints become: the first rule that matches counts; hints that none matches follow the envelope's own rules.
        rules: Vec<Rule>,
        /// Lower bound of a wait; none where left out.
        floor: Option<Duration>,
        /// Upper bound of a wait; none where left out.
        ceiling: Option<Duration>,
        /// What happens where the ceiling is below the floor.
        bounds_conflict: Conflict = Conflict::Error,
        /// Does the ceiling cut the server's terms too, or the host's own only?
        ceiling_covers: Covers = Covers::All,
        /// The last stage after which the bounds hold.
        bounds: BoundsAt = BoundsAt::Final,
        /// How waits grow while the status is unchanged.
        backoff: Backoff = Backoff::None,
        /// Which waits grow.
        backoff_of: BackoffOf = BackoffOf::EveryWait,
        /// When the backoff starts again.
        backoff_reset: Reset = Reset::OnChange,
        /// What an error answer does.
        on_error: OnError = OnError::Retry,
        /// What a timeout does.
        on_timeout: OnTimeout = OnTimeout::IsError,
        /// Waits after error answers; where left out, the same as after any other answer.
        error_backoff: Option<ErrorBackoff>,
        /// Randomness of each wait.
        jitter: Jitter = Jitter::None,
        /// Jittered waits are the least one plus whole multiples of this, both ends included; any where 0.
        jitter_step: Duration = Duration(0),
        /// When the first poll is sent.
        first_poll: FirstPoll = FirstPoll::AfterWait,
        /// Is the wait counted from the answer or from the last tick?
        pace: Pace = Pace::FixedDelay,
        /// What the host's timer makes of a wait.
        timer: Timer = Timer { quantum: Duration(0), minimum: Duration(0), maximum: None, beyond: Beyond::Minimum, overhead: Duration(0) },
        /// Can an abort interrupt the wait?
        wait: WaitManner = WaitManner::Interruptible,
        /// The loop ends at this age of the task; a poll due later is not sent. Never where left out.
        give_up_after: Option<Duration>,
        /// The loop ends when the server may have deleted the task, too: at its `ttl`.
        ends_at_ttl: bool = false,
        /// What becomes of a wait that reaches beyond the deadline.
        last_wait: LastWait = LastWait::Slept,
        /// The loop ends after so many polls. No limit where left out.
        max_polls: Option<Count>,
        /// What is called when the end was seen.
        at_end: AtEnd = AtEnd::Nothing,
        /// A request without an answer is given up after this, and counts as an error answer; never where left out.
        timeout: Option<Span>,
        /// Requests that one poll sends together; the last one's answer is read.
        requests_per_poll: Count = Count(1),
        /// Retries of the transport inside one poll; none where left out.
        retries: Option<Retries>,
        /// What the host makes of `Retry-After`.
        retry_after: OnRetryAfter = OnRetryAfter::Ignored,
        /// Added to this and every later wait of the task by each `slow_down` (RFC 8628, section 3.5).
        slow_down: Duration = Duration(5_000_000_000),
        /// What an answer that the task is unknown does.
        on_unknown_task: OnUnknown = OnUnknown::End,
        /// The loop ends after so many error answers in a row (over its life where the error backoff never starts again). No limit where left out.
        max_errors: Option<Count>,
        /// Polls wait at the server for a change, for so long at most (a long poll); they are answered at once where left out.
        long_poll: Option<Span>,
        /// What a notification of a changed status does.
        push: Push = Push::Ignored,
        /// Where the loop runs.
        runs: Runs = Runs::OnHost,
        /// A circuit breaker between each host and each server; none where left out.
        breaker: Option<Breaker>,
        /// What `input_required` does to the loop.
        on_question: OnQuestion = OnQuestion::PollsOn,
        /// A question beyond so many ends the loop. No limit where left out.
        max_questions: Option<Count>,
        /// The loop ends when so many answers in a row show a question that is not new. No limit where left out.
        stuck_after: Option<Count>,
        /// What an abort does, where the tenant does not say otherwise.
        on_abort: OnAbort = OnAbort::default(),
        /// Other ends of the loop at which `tasks/cancel` is sent.
        cancels: Vec<CancelsAt>,
        /// How the timers of one host's tasks hang together.
        schedule: Schedule = Schedule::PerTask,
        /// With a common timer: so many tasks of a server share one request.
        batch: Count = Count(1),
        /// A loop whose task has a request in flight, sent by another loop, waits for its answer instead of sending one.
        lease: bool = false,
        /// Polls in flight at a time between one host and one server; no limit where left out.
        in_flight: Option<Count>,
    }
}

record! {
    /// What an abort does to a loop and its task; a tenant's `abort` can override each.
    pub struct OnAbort {
        /// With a poll in flight: does the caller wait for it?
        request: InFlight = InFlight::Aborts,
        /// What the host does when control has returned to the caller.
        then: Then = Then::Detach,
        /// With `then = "cancel"`: control returns when `tasks/cancel` is answered, at the latest after this; at once where left out.
        cancel_bound: Option<Duration>,
        /// Control returns so long after the abort at the latest, whatever the loop is doing; it ends then. No such limit where left out.
        grace: Option<Duration>,
        /// `notifications/cancelled` that the host sends.
        notifications: CancelNotices = CancelNotices::None,
    }
}

impl Policy {
    /// Does the host cancel its task at some end of the loop?
    pub fn ends_with_cancel(&self) -> bool {
        !self.cancels.is_empty() || self.on_abort.then == Then::Cancel
    }
}

impl Default for OnAbort {
    fn default() -> Self {
        OnAbort {
            request: InFlight::Aborts,
            then: Then::Detach,
            cancel_bound: None,
            grace: None,
            notifications: CancelNotices::None,
        }
    }
}

choice! {
    /// Which waits a backoff lets grow.
    pub enum BackoffOf {
        words {
            /// All.
            "every_wait" => EveryWait,
            /// Those for which there is no hint; a hint is followed as it is.
            "without_hint" => WithoutHint,
        }
        tables {}
    }
}

choice! {
    /// What becomes of a wait that reaches beyond the deadline of a loop.
    pub enum LastWait {
        words {
            /// The host sleeps until the deadline, and gives up.
            "slept" => Slept,
            /// The host gives up at once.
            "refused" => Refused,
            /// It is cut to the deadline, where a last poll is sent.
            "trimmed" => Trimmed,
        }
        tables {
            /// It is cut so that this much is left; with no more than this left the host gives up at once.
            "trimmed_less" => TrimmedLess(Span),
        }
    }
}

choice! {
    /// What `input_required` does to a loop. Its host answers the question in each case but the last.
    pub enum OnQuestion {
        words {
            /// Polls go on at their interval.
            "polls_on" => PollsOn,
            /// Polls follow each other without a wait as long as the status stands.
            "polls_at_once" => PollsAtOnce,
            /// One poll follows at once, then they go on at their interval.
            "polls_once_more" => PollsOnceMore,
            /// The result is asked for, in a request that the server holds until the end; it counts as a poll.
            "awaits_result" => AwaitsResult,
            /// The loop ends.
            "ends" => Ends,
        }
        tables {}
    }
}

choice! {
    /// An end of a loop at which `tasks/cancel` is sent.
    pub enum CancelsAt {
        words {
            /// The host gives up: at its deadline, or after its last poll.
            "deadline" => Deadline,
            /// An error ends the loop.
            "error" => Error,
            /// A question ends it.
            "question" => Question,
        }
        tables {}
    }
}

choice! {
    /// How the timers of one host's tasks hang together.
    pub enum Schedule {
        words {
            /// Not at all: each task has its own.
            "per_task" => PerTask,
            /// One timer, at the earliest of their dues; when it fires, all of them are polled.
            "least_interval" => LeastInterval,
            /// One timer, at the earliest of their dues; when it fires, those that are due are polled.
            "earliest_due" => EarliestDue,
        }
        tables {}
    }
}

choice! {
    /// What a hint is for a host.
    pub enum Role {
        words {
            /// The wait, before bounds.
            "value" => Value,
            /// Nothing: `default` is used.
            "ignored" => Ignored,
            /// A lower bound under the host's own terms.
            "floor" => Floor,
            /// The ceiling of the host's own backoff.
            "ramp_ceiling" => RampCeiling,
        }
        tables {}
    }
}

choice! {
    /// Which hint a host reads.
    pub enum ReadAt {
        words {
            /// That of every answer.
            "every_answer" => EveryAnswer,
            /// That of the creation only.
            "creation" => Creation,
            /// That of the first answer to a poll, for ever.
            "first_answer" => FirstAnswer,
        }
        tables {}
    }
}

choice! {
    /// What an answer without a hint means.
    pub enum WhenAbsent {
        words {
            /// The default.
            "default" => Default,
            /// The last hint that there was.
            "keep_last" => KeepLast,
            /// The creation's.
            "creation" => Creation,
        }
        tables {}
    }
}

choice! {
    /// Who wins where the ceiling is below the floor.
    pub enum Conflict {
        words {
            /// The scenario is rejected.
            "error" => Error,
            /// The floor; `check` warns.
            "floor_wins" => FloorWins,
            /// The ceiling; `check` warns.
            "ceiling_wins" => CeilingWins,
        }
        tables {}
    }
}

choice! {
    /// What the ceiling covers.
    pub enum Covers {
        words {
            /// Every wait.
            "all" => All,
            /// The host's own terms; a server's hint passes.
            "own_terms" => OwnTerms,
        }
        tables {}
    }
}

choice! {
    /// Where the bounds hold.
    pub enum BoundsAt {
        words {
            /// For the final wait: the envelope's promise.
            "final" => Final,
            /// After the backoff; jitter may leave them.
            "before_jitter" => BeforeJitter,
            /// For the hint or default alone; backoff and jitter may leave them.
            "before_backoff" => BeforeBackoff,
        }
        tables {}
    }
}

record! {
    /// One rule for hints: every condition given must hold.
    pub struct Rule {
        /// The class of the hint.
        class: Option<HintClass>,
        /// The JSON type.
        json: Option<JsonType>,
        /// Smallest number of milliseconds that matches.
        min: Option<Number>,
        /// Largest number of milliseconds that matches.
        max: Option<Number>,
        /// What becomes of the hint.
        then: Outcome,
    }
}

choice! {
    /// Classes of raw hints.
    pub enum HintClass {
        words {
            /// The key is not there.
            "absent" => Absent,
            /// `null`.
            "null" => Null,
            /// 0.
            "zero" => Zero,
            /// Below 0.
            "negative" => Negative,
            /// Not whole.
            "fractional" => Fractional,
            /// NaN or infinite.
            "non_finite" => NonFinite,
            /// A string.
            "text" => Text,
            /// Above 2^31 - 1 ms.
            "beyond_i32_ms" => BeyondI32Ms,
            /// Above 2^63 - 1 ns.
            "beyond_i64_ns" => BeyondI64Ns,
            /// Whole, positive, not beyond.
            "sane" => Sane,
        }
        tables {}
    }
}

choice! {
    /// JSON types of a hint.
    pub enum JsonType {
        words {
            /// A number with or without a point.
            "number" => Number,
            /// A whole number.
            "integer" => Integer,
            /// A string.
            "string" => String,
            /// `null`.
            "null" => Null,
        }
        tables {}
    }
}

choice! {
    /// What becomes of a hint.
    pub enum Outcome {
        words {
            /// It is used as it is (below zero: no wait).
            "use" => Use,
            /// The default is used.
            "default" => Default,
            /// As an answer without a hint: see `absent`.
            "absent" => Absent,
            /// The floor is used.
            "floor" => Floor,
            /// The ceiling is used.
            "ceiling" => Ceiling,
            /// It is rounded to whole milliseconds.
            "round" => Round,
            /// Its fraction is cut off.
            "truncate" => Truncate,
            /// A string is parsed as a number, which is then used; the default where it is none.
            "parse" => Parse,
            /// As a 32-bit millisecond timer takes it: outside 1 to 2^31 - 1 it becomes 1 ms.
            "wrap_i32_timer" => WrapI32Timer,
            /// As nanoseconds in 64 bits, wrapped; below zero: no wait.
            "wrap_i64_ns" => WrapI64Ns,
            /// The loop never polls again.
            "forever" => Forever,
            /// A kept hint is forgotten and the default is used.
            "forget" => Forget,
            /// The loop ends with an error.
            "error" => Error,
            /// The whole answer is rejected, and the loop ends.
            "reject" => Reject,
        }
        tables {}
    }
}

choice! {
    /// How waits grow while the status is unchanged.
    pub enum Backoff {
        words {
            /// They do not.
            "none" => None,
        }
        tables {
            /// Each is a multiple of the one before.
            "geometric" => Geometric(Geometric),
            /// Each is longer by a step.
            "additive" => Additive(Additive),
            /// A table of waits; the last one repeats.
            "steps" => Steps(Vec<BackoffStep>),
        }
    }
}

record! {
    /// Waits that are multiplied.
    pub struct Geometric {
        /// The first wait; the hint or default (bounded) where left out.
        initial: Option<Span>,
        /// Each wait is so many times the one before.
        factor: Factor,
        /// No wait grows beyond this.
        cap: Option<Span>,
    }
}

record! {
    /// Waits that grow by a step.
    pub struct Additive {
        /// Each wait is longer by this.
        step: Span,
        /// No wait grows beyond this.
        cap: Option<Span>,
    }
}

record! {
    /// So many waits of one length.
    pub struct BackoffStep {
        /// How many.
        waits: Count,
        /// How long each.
        wait: Span,
    }
}

choice! {
    /// When a backoff starts again.
    pub enum Reset {
        words {
            /// When the status changes.
            "on_change" => OnChange,
            /// When the status changes, and after an error answer.
            "on_change_or_error" => OnChangeOrError,
            /// Never.
            "never" => Never,
        }
        tables {}
    }
}

choice! {
    /// What an error answer does.
    pub enum OnError {
        words {
            /// Another poll follows.
            "retry" => Retry,
            /// The loop ends.
            "end" => End,
        }
        tables {}
    }
}

choice! {
    /// What a request does that is given up after `timeout`.
    pub enum OnTimeout {
        words {
            /// It is an error answer.
            "is_error" => IsError,
            /// The next poll follows after the same wait as after an answer without a hint.
            "polls_on" => PollsOn,
        }
        tables {}
    }
}

record! {
    /// Waits after consecutive error answers.
    pub struct ErrorBackoff {
        /// The wait after the first; where left out, the interval then in use times the factor.
        initial: Option<Span>,
        /// Each further one is so many times longer.
        factor: Factor = Factor(2.0),
        /// No wait grows beyond this.
        cap: Option<Span>,
        /// When it starts again.
        reset: ErrorReset = ErrorReset::OnSuccess,
        /// The wait is the interval from then on, for a host that latches it (`read`, `absent`).
        sticks: bool = false,
    }
}

choice! {
    /// When the error backoff starts again.
    pub enum ErrorReset {
        words {
            /// After a good answer.
            "on_success" => OnSuccess,
            /// Never: errors of a task are counted over its life.
            "never" => Never,
        }
        tables {}
    }
}

choice! {
    /// Randomness of a wait d; u is uniform on [0, 1).
    pub enum Jitter {
        words {
            /// d.
            "none" => None,
            /// Uniform on [0, d).
            "full" => Full,
            /// Uniform on [d/2, d).
            "equal" => Equal,
        }
        tables {
            /// Uniform on d ± this share of it.
            "proportional" => Proportional(Share),
            /// Uniform on [d, d + this).
            "additive" => Additive(Span),
            /// Uniform on [d - this, d).
            "minus" => Minus(Span),
            /// Uniform on [this, d).
            "window" => Window(Duration),
            /// Uniform on [d, this many times the last wait).
            "decorrelated" => Decorrelated(Positive),
        }
    }
}

choice! {
    /// When the first poll is sent.
    pub enum FirstPoll {
        words {
            /// With the creation's answer.
            "at_once" => AtOnce,
            /// After one wait of the policy.
            "after_wait" => AfterWait,
        }
        tables {
            /// After a time of its own.
            "after" => After(Duration),
        }
    }
}

choice! {
    /// What a wait is counted from.
    pub enum Pace {
        words {
            /// The answer: the period is wait + round trip.
            "fixed_delay" => FixedDelay,
            /// The last tick: the period is the wait; a tick that is missed while a poll is in flight fires at once, further ones are dropped.
            "fixed_rate" => FixedRate,
        }
        tables {}
    }
}

record! {
    /// What a host's timer makes of a wait.
    pub struct Timer {
        /// Waits are cut to whole multiples of this; 0 does not cut.
        quantum: Duration = Duration(0),
        /// No timer is shorter.
        minimum: Duration = Duration(0),
        /// Longer waits than this become what `beyond` says; no limit where left out.
        maximum: Option<Span>,
        /// What a wait above the maximum becomes.
        beyond: Beyond = Beyond::Minimum,
        /// Added to every wait: how late the timer fires.
        overhead: Duration = Duration(0),
    }
}

choice! {
    /// What a wait above the timer's maximum becomes.
    pub enum Beyond {
        words {
            /// The minimum: a 32-bit timer turns "almost never" into a flood.
            "minimum" => Minimum,
            /// The maximum.
            "maximum" => Maximum,
            /// It never fires.
            "forever" => Forever,
        }
        tables {}
    }
}

choice! {
    /// Can an abort interrupt a wait?
    pub enum WaitManner {
        words {
            /// At once.
            "interruptible" => Interruptible,
            /// The flag is looked at when the sleep ends.
            "checked_after_sleep" => CheckedAfterSleep,
            /// The flag is never looked at: the loop polls on until the end.
            "ignored" => Ignored,
        }
        tables {
            /// The sleep is cut into slices, and the flag is looked at after each.
            "sliced" => Sliced(Span),
        }
    }
}

choice! {
    /// What is called when the end was seen.
    pub enum AtEnd {
        words {
            /// Nothing: the result came with the answer.
            "nothing" => Nothing,
            /// `tasks/result`, for a completed task.
            "tasks/result" => TasksResult,
        }
        tables {}
    }
}

choice! {
    /// What an answer that the task is unknown (-32602) does.
    pub enum OnUnknown {
        words {
            /// The loop ends: the task has expired.
            "end" => End,
            /// It counts as any other error answer.
            "retry" => Retry,
        }
        tables {}
    }
}

choice! {
    /// What a notification of a changed status does.
    pub enum Push {
        words {
            /// Nothing.
            "ignored" => Ignored,
            /// The wait ends and a poll is sent.
            "wakes" => Wakes,
            /// It counts as the answer to a poll: the end is seen without one.
            "replaces" => Replaces,
            /// A new wait begins, as after an answer with that status.
            "restarts" => Restarts,
            /// The next poll is left out; the one after it comes at its time.
            "postpones" => Postpones,
        }
        tables {}
    }
}

choice! {
    /// Where a loop runs.
    pub enum Runs {
        words {
            /// On the host: each poll is a `tasks/get`.
            "on_host" => OnHost,
            /// On the server, for a request of the host that waits: each poll is a read of the store, and takes no way; the end comes to the host after one.
            "on_server" => OnServer,
        }
        tables {}
    }
}
