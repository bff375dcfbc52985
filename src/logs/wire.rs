//! JSON-RPC lines as they stand in a file: an envelope, a message in it, a task in that.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::event::{Answer, Instant, Outcome, Reason, Status};
use super::times;
use crate::policy::RawHint;

/// The side of a connection that sends; only that there are two counts.
pub(super) type Side = u64;
pub(super) const CLIENT: Side = 0;
pub(super) const SERVER: Side = 1;

/// A line.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub ts: Option<&'a RawValue>,
    #[serde(borrow)]
    pub time: Option<&'a RawValue>,
    #[serde(borrow)]
    pub timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    pub dir: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub direction: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub session: Option<&'a RawValue>,
    #[serde(borrow)]
    pub connection: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tenant: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub server: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub msg: Option<&'a RawValue>,
    #[serde(borrow)]
    pub payload: Option<&'a RawValue>,
    pub http_status: Option<u16>,
    pub retry_after_s: Option<f64>,
}

/// A message of JSON-RPC 2.0.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    pub error: Option<ErrorBody>,
}

#[derive(Deserialize)]
pub(super) struct ErrorBody {
    pub code: i64,
}

/// What of the parameters counts.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub task_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub request_id: Option<&'a RawValue>,
}

/// A task, in `result.task`, in `result` or in the parameters of a notification.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TaskBody<'a> {
    #[serde(borrow)]
    task: Option<&'a RawValue>,
    #[serde(borrow)]
    pub task_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    created_at: Option<&'a RawValue>,
    #[serde(borrow)]
    last_updated_at: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "even_null")]
    poll_interval: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "even_null")]
    poll_interval_ms: Option<&'a RawValue>,
}

/// `null` is a value here: a hint that is null is not one that is absent.
fn even_null<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Reads JSON; what is JSON but of other types is told with `shape`.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str, shape: Reason) -> Result<T, Reason> {
    serde_json::from_str(text).map_err(|e| if e.is_data() { shape } else { Reason::NotJson })
}

impl Envelope<'_> {
    /// When the message passed.
    pub(super) fn at(&self) -> Result<Instant, Reason> {
        let raw = self.ts.or(self.time).or(self.timestamp);
        time_of(raw.ok_or(Reason::NoTime)?)
    }

    /// Who sent it, where the line says so.
    pub(super) fn side(&self) -> Result<Option<Side>, Reason> {
        let Some(direction) = self.dir.as_deref().or(self.direction.as_deref()) else {
            return Ok(None);
        };
        Ok(Some(match direction {
            "client->server" | "c2s" | "out" | "sent" | "send" => CLIENT,
            "server->client" | "s2c" | "in" | "received" | "recv" => SERVER,
            _ => return Err(Reason::UnknownDirection),
        }))
    }
}

/// A time: a number of seconds, or a string.
fn time_of(raw: &RawValue) -> Result<Instant, Reason> {
    let text = raw.get();
    times::parse(text.trim_matches('"'))
}

/// The task's id and what is said of it.
pub(super) fn task_in(raw: &RawValue) -> Result<(Option<Cow<'_, str>>, Answer), Reason> {
    let mut body: TaskBody = parse(raw.get(), Reason::NotATask)?;
    if let Some(inner) = body.task {
        body = parse(inner.get(), Reason::NotATask)?;
    }
    let mut answer = Answer::bare(Outcome::Good);
    if let Some(status) = &body.status
        && body.task_id.is_some()
    {
        answer.status = Some(Status::named(status).ok_or(Reason::UnknownStatus)?);
    }
    answer.created = body.created_at.map(time_of).transpose()?;
    answer.updated = body.last_updated_at.map(time_of).transpose()?;
    answer.hint = match body.poll_interval_ms.or(body.poll_interval) {
        None => RawHint::Absent,
        Some(raw) => hint_of(raw.get()),
    };
    Ok((body.task_id, answer))
}

/// A hint as it stands in JSON.
fn hint_of(json: &str) -> RawHint {
    match json.parse::<f64>() {
        Ok(ms) => RawHint::Number(ms),
        Err(_) if json == "null" => RawHint::Null,
        // A string, true, an array: no number in any case. The number that a string holds is kept, its text is not.
        Err(_) => RawHint::Text(json.trim_matches('"').trim().parse().unwrap_or(f64::NAN)),
    }
}
