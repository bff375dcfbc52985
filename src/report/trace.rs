//! The story of a task as a table or as CSV.

use serde::Serialize;

use super::files::csv_text;
use super::table::plain_table;
use crate::engine::trace::Row;
use crate::engine::{Story, seconds};
use crate::policy::FOREVER;

/// A row as written to CSV: one per poll or event.
#[derive(Serialize)]
struct TraceRow {
    at_s: String,
    event: &'static str,
    poll: Option<u32>,
    sent_s: Option<String>,
    seen_s: Option<String>,
    status: String,
    hint_ms: String,
    hint_class: &'static str,
    hint_read_ms: Option<f64>,
    bounded_ms: Option<f64>,
    backed_off_ms: Option<f64>,
    jittered_ms: Option<f64>,
    wait_ms: Option<f64>,
    cause: &'static str,
    stages: String,
}

impl TraceRow {
    fn new(row: &Row) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (poll, wait) = (row.poll.as_ref(), row.wait.as_ref());
        let step = |i: usize| wait.map(|w| ms(w.wait.steps[i]));
        TraceRow {
            at_s: seconds(row.at),
            event: row.event,
            poll: poll.map(|p| p.number),
            sent_s: poll.map(|p| seconds(p.sent)),
            seen_s: poll.and_then(|p| p.seen.map(seconds)),
            status: poll.map_or(row.note.clone(), |p| p.status.into()),
            hint_ms: wait.map(|w| w.hint_text()).unwrap_or_default(),
            hint_class: wait.and_then(|w| w.class()).map_or("", |c| c.name()),
            hint_read_ms: step(0),
            bounded_ms: step(1),
            backed_off_ms: step(2),
            jittered_ms: step(3),
            wait_ms: wait.map(|w| ms(w.wait.wait)),
            cause: wait.map_or("", |w| w.wait.cause.name()),
            stages: wait.map(|w| w.stages()).unwrap_or_default(),
        }
    }
}

/// The story as CSV.
pub fn csv(story: &Story) -> Vec<u8> {
    csv_text(story.rows.iter().map(TraceRow::new))
}

/// The story as a table.
pub fn table(story: &Story) -> String {
    let mut table = plain_table();
    table.set_header([
        "at (s)",
        "event",
        "sent → seen (s)",
        "status",
        "hint (ms)",
        "class",
        "read → bounded → backed off → jittered (ms)",
        "wait (ms)",
        "cause",
    ]);
    for row in story.rows.iter().map(TraceRow::new) {
        let number = |x: Option<f64>| x.map_or("–".into(), milliseconds);
        let sent = match (&row.sent_s, &row.seen_s) {
            (Some(sent), Some(seen)) => format!("{sent} → {seen}"),
            (Some(sent), None) => format!("{sent} → never"),
            _ => String::new(),
        };
        let stages = match row.hint_read_ms {
            Some(_) => [
                row.hint_read_ms,
                row.bounded_ms,
                row.backed_off_ms,
                row.jittered_ms,
            ]
            .map(number)
            .join(" → "),
            None => String::new(),
        };
        let event = row
            .poll
            .map_or(row.event.to_string(), |n| format!("poll {n}"));
        table.add_row([
            row.at_s,
            event,
            sent,
            row.status,
            row.hint_ms,
            row.hint_class.into(),
            stages,
            row.wait_ms.map_or(String::new(), milliseconds),
            row.cause.into(),
        ]);
    }
    table.to_string()
}

/// Milliseconds to the microsecond.
fn milliseconds(ms: f64) -> String {
    if ms >= FOREVER as f64 / 1e6 {
        return "for ever".into();
    }
    let text = format!("{ms:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
