//! What goes wrong at servers and hosts, as written: outages, losses, slow periods, reconnects, pauses. Part of [`super::written`].

use super::distribution::Distribution;
use super::fields::{Count, Positive, Share, Span, choice, record};
use super::units::Duration;
use super::written::Time;

record! {
    /// When the servers of a class are down, and what a request meets then. What is in service or waits when a server goes down is lost.
    pub struct Outage {
        /// Fixed times at which every server of the class is down.
        windows: Vec<Window>,
        /// Random times, drawn for each server on its own.
        random: Option<UpDown>,
        /// What a request to a server that is down gets.
        answers: DownAnswer = DownAnswer::Refused,
        /// Does a server that comes up again know nothing of its tasks? Polls of these are answered with -32602, unknown task.
        forgets: bool = false,
    }
}

record! {
    /// A stretch of time.
    pub struct Window {
        /// When it begins.
        from: Duration,
        /// How long it is.
        length: Span,
    }
}

record! {
    /// Times up and times down, in turn; a run begins with a time up.
    pub struct UpDown {
        /// How long a server is up.
        up: Time,
        /// How long it is down.
        down: Time,
    }
}

choice! {
    /// What a request to a server that is down gets.
    pub enum DownAnswer {
        words {
            /// An error answer at once (503, or a refused connection).
            "refused" => Refused,
            /// No answer at all: only the host's timeout ends the request.
            "silent" => Silent,
        }
        tables {}
    }
}

record! {
    /// A stretch of time in which the servers of a class are slow.
    pub struct SlowPeriod {
        /// When it begins.
        from: Duration,
        /// How long it is.
        length: Span,
        /// Service of requests that come in it takes so many times as long.
        factor: Positive,
    }
}

record! {
    /// Messages that are lost on their way.
    pub struct Loss {
        /// Share of the requests that never come to the server.
        request: Share = Share(0.0),
        /// Share of the answers that never come to the host.
        answer: Share = Share(0.0),
    }
}

record! {
    /// Notifications of a changed status that a server sends to the task's host.
    pub struct Notifications {
        /// Share of them that come.
        share: Share = Share(1.0),
        /// How long they take, instead of the one-way delay.
        delay: Time = Distribution::constant(Duration(0)),
    }
}

record! {
    /// Hosts that are restarted, or lose their connection: all loops of such a host start again.
    pub struct Reconnect {
        /// Fixed times, the same for every host.
        at: Vec<Duration>,
        /// Time between reconnects, drawn for each host on its own.
        every: Option<Time>,
        /// The first polls are spread evenly over this; at once where it is 0.
        spread: Duration = Duration(0),
        /// Do the old loops run on beside the new ones?
        duplicates: bool = false,
    }
}

record! {
    /// One event loop for all tasks of a host: timers that are due at a wake-up run as one batch.
    pub struct HostLoop {
        /// Processor time of a wake-up.
        wake_up: Duration,
        /// Processor time of a poll, its answer included.
        poll: Duration,
        /// The next wake-up comes no sooner than this after the end of a batch.
        pause: Duration = Duration(1_000_000),
    }
}

record! {
    /// Tasks that pause in the status `input_required` until their host has answered.
    pub struct Input {
        /// Share of the tasks that ask.
        probability: Share = Share(1.0),
        /// Questions of such a task, one after another.
        questions: Count = Count(1),
        /// Time from the start of the task to its question, and from each answer to the next question; what would come after the task's end is not asked.
        after: Time,
        /// Time from the moment when the host sees the question until it sends `tasks/update`.
        answer: Time,
    }
}
