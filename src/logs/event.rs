//! What a log says, whatever its format: requests, answers, notifications.

use crate::policy::RawHint;

/// Nanoseconds since the log's origin (1970 where its times are dates).
pub type Instant = i64;

/// A request about a task, or a notification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When it was sent.
    pub sent: Instant,
    /// The tenant, as [`super::collector::Collector::tenant`] numbers it.
    pub tenant: u16,
    /// The server, as [`super::collector::Collector::server`] numbers it.
    pub server: u16,
    /// The hashed id of the task.
    pub task: u64,
    /// What it asks.
    pub method: Method,
}

/// Requests and notifications about tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// `tools/call` that made a task.
    Create,
    /// `tasks/get`: a poll.
    Get,
    /// `tasks/result`.
    Result,
    /// `tasks/cancel`.
    Cancel,
    /// `tasks/update`.
    Update,
    /// `notifications/cancelled` for a request of the task.
    Cancelled,
    /// `notifications/tasks/status` or `notifications/tasks`.
    Status,
}

impl Method {
    /// The method of that name; `None` where it is not about tasks.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "tools/call" => Method::Create,
            "tasks/get" => Method::Get,
            "tasks/result" => Method::Result,
            "tasks/cancel" => Method::Cancel,
            "tasks/update" => Method::Update,
            "notifications/cancelled" => Method::Cancelled,
            "notifications/tasks/status" | "notifications/tasks" => Method::Status,
            _ => return None,
        })
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Method::Create => "tools/call",
            Method::Get => "tasks/get",
            Method::Result => "tasks/result",
            Method::Cancel => "tasks/cancel",
            Method::Update => "tasks/update",
            Method::Cancelled => "notifications/cancelled",
            Method::Status => "notifications/tasks/status",
        }
    }
}

/// What an answer, or a notification, says of its task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Good, or why not.
    pub outcome: Outcome,
    /// The task's status, where it is told.
    pub status: Option<Status>,
    /// The hint.
    pub hint: RawHint,
    /// `Retry-After`, in s.
    pub retry_after_s: Option<f64>,
    /// `createdAt`, by the server's clock.
    pub created: Option<Instant>,
    /// `lastUpdatedAt`, by the server's clock.
    pub updated: Option<Instant>,
}

impl Answer {
    /// An answer that says nothing but how it went.
    pub fn bare(outcome: Outcome) -> Self {
        Answer {
            outcome,
            status: None,
            hint: RawHint::Absent,
            retry_after_s: None,
            created: None,
            updated: None,
        }
    }
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// It was answered.
    Good,
    /// Refused with this HTTP status, 400 or above.
    Http(u16),
    /// Answered with this JSON-RPC error.
    Rpc(i64),
}

impl Outcome {
    /// The code of JSON-RPC for invalid parameters, with which servers answer polls of tasks that they do not know.
    const UNKNOWN_TASK: i64 = -32602;

    /// Does the server not know the task (any more)?
    pub fn is_unknown_task(self) -> bool {
        matches!(self, Outcome::Rpc(Self::UNKNOWN_TASK) | Outcome::Http(404))
    }

    /// As it stands in results.
    pub fn name(self) -> String {
        match self {
            Outcome::Good => "good".into(),
            Outcome::Http(status) => format!("http {status}"),
            Outcome::Rpc(code) => format!("rpc {code}"),
        }
    }
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `working`, and `submitted`.
    Working,
    /// `input_required`.
    InputRequired,
    /// `completed`.
    Completed,
    /// `failed`.
    Failed,
    /// `cancelled`.
    Cancelled,
}

impl Status {
    /// The status of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "working" | "submitted" => Status::Working,
            "input_required" => Status::InputRequired,
            "completed" => Status::Completed,
            "failed" => Status::Failed,
            "cancelled" => Status::Cancelled,
            _ => return None,
        })
    }

    /// Has the task ended?
    pub fn is_terminal(self) -> bool {
        !matches!(self, Status::Working | Status::InputRequired)
    }
}

/// Why a line tells nothing. None of them quotes the line: what stands in a log stays there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Reason {
    NotJson,
    NotAnObject,
    NotAMessage,
    TooLong,
    NotUtf8,
    NoTime,
    NotATime,
    Milliseconds,
    UnknownDirection,
    AmbiguousAnswer,
    AnswerWithoutRequest,
    AnsweredBeforeItWasSent,
    NoTaskId,
    NoRequestId,
    NotATask,
    UnknownStatus,
    UnknownMethod,
    UnknownRequestCancelled,
    Cells,
    NotANumber,
    OpenQuote,
}

impl Reason {
    /// What is wrong with the line, and what would be right.
    pub fn text(self) -> &'static str {
        match self {
            Reason::NotJson => "is not JSON; a line is one whole JSON object",
            Reason::NotAnObject => {
                "is JSON, but no object (a batch?); a line is one message in its envelope"
            }
            Reason::NotAMessage => {
                "has no JSON-RPC message: neither `message`, `msg` or `payload`, nor `method`, `result` or `error` of its own"
            }
            Reason::TooLong => "is longer than 16 MB",
            Reason::NotUtf8 => "is not UTF-8",
            Reason::NoTime => "has no time: `ts`, in seconds or ISO 8601",
            Reason::NotATime => {
                "has a time that is neither a number of seconds nor ISO 8601, as in 2026-01-01T00:00:00.250Z"
            }
            Reason::Milliseconds => {
                "has a time of 1e11 or more: milliseconds, it seems; times are seconds"
            }
            Reason::UnknownDirection => {
                "has a direction that is not known; write client->server or server->client"
            }
            Reason::AmbiguousAnswer => {
                "is an answer to either of two requests of the same id, one of each side; `dir` would tell"
            }
            Reason::AnswerWithoutRequest => "is an answer whose request the log does not have",
            Reason::AnsweredBeforeItWasSent => "is an answer that is older than its request",
            Reason::NoTaskId => "is about a task, but has no task id",
            Reason::NoRequestId => "is a request or an answer without an id",
            Reason::NotATask => "has a task whose keys are not of the protocol's types",
            Reason::UnknownStatus => {
                "has a status that is not known; it is one of working, input_required, completed, failed, cancelled"
            }
            Reason::UnknownMethod => {
                "has a method that is not about tasks; it is one of tools/call, tasks/get, tasks/result, tasks/cancel, tasks/update, notifications/cancelled, notifications/tasks/status"
            }
            Reason::UnknownRequestCancelled => {
                "cancels a request that the log does not have, or of long ago"
            }
            Reason::Cells => "has another number of cells than the header",
            Reason::NotANumber => "has a cell that is no number where one is needed",
            Reason::OpenQuote => "has a quoted cell that does not end on its line",
        }
    }

    /// Its name in `fit.json`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NotJson => "not_json",
            Reason::NotAnObject => "not_an_object",
            Reason::NotAMessage => "not_a_message",
            Reason::TooLong => "too_long",
            Reason::NotUtf8 => "not_utf8",
            Reason::NoTime => "no_time",
            Reason::NotATime => "not_a_time",
            Reason::Milliseconds => "time_in_milliseconds",
            Reason::UnknownDirection => "unknown_direction",
            Reason::AmbiguousAnswer => "ambiguous_answer",
            Reason::AnswerWithoutRequest => "answer_without_request",
            Reason::AnsweredBeforeItWasSent => "answered_before_it_was_sent",
            Reason::NoTaskId => "no_task_id",
            Reason::NoRequestId => "no_request_id",
            Reason::NotATask => "not_a_task",
            Reason::UnknownStatus => "unknown_status",
            Reason::UnknownMethod => "unknown_method",
            Reason::UnknownRequestCancelled => "unknown_request_cancelled",
            Reason::Cells => "wrong_number_of_cells",
            Reason::NotANumber => "not_a_number",
            Reason::OpenQuote => "open_quote",
        }
    }
}
