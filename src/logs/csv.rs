//! CSV logs: a row per request. `docs/fitting.md` defines the columns.

use csv_core::{ReadRecordResult, Reader};

use super::collector::Collector;
use super::event::{Answer, Instant, Method, Outcome, Reason, Request, Status};
use super::format::{Fault, Format};
use super::times;
use crate::policy::RawHint;

/// The columns that count, in the order of [`Row`]'s accessors.
const COLUMNS: [&str; 13] = [
    "ts",
    "tenant",
    "server",
    "task_id",
    "method",
    "http_status",
    "rpc_status",
    "task_status",
    "poll_interval_ms",
    "retry_after_s",
    "latency_ms",
    "created_at",
    "last_updated_at",
];
/// Those without which a log says nothing.
const NEEDED: [&str; 3] = ["ts", "task_id", "task_status"];

/// Reads rows.
pub struct Csv {
    /// Where each of [`COLUMNS`] stands, once the header is read.
    columns: Option<Columns>,
    reader: Reader,
    cells: Vec<u8>,
    ends: Vec<usize>,
}

struct Columns {
    at: [Option<usize>; COLUMNS.len()],
    cells: usize,
}

impl Default for Csv {
    fn default() -> Self {
        Csv {
            columns: None,
            // Its `default` has no table of states.
            reader: Reader::new(),
            cells: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl Format for Csv {
    fn line(&mut self, line: &str, collector: &mut Collector) -> Result<(), Fault> {
        let count = self.split(line)?;
        match &self.columns {
            None => {
                self.columns = Some(self.header(count)?);
                Ok(())
            }
            Some(columns) if columns.cells != count => Err(Reason::Cells.into()),
            Some(columns) => Ok(read(&self.row(columns), collector)?),
        }
    }

    fn end_of_file(&mut self) {
        self.columns = None;
    }
}

impl Csv {
    /// Splits a line into `cells`, and tells how many there are.
    fn split(&mut self, line: &str) -> Result<usize, Reason> {
        self.cells.resize(line.len() + 1, 0);
        self.ends.resize(line.len() + 2, 0);
        self.reader.reset();
        let (result, read, written, mut count) =
            self.reader
                .read_record(line.as_bytes(), &mut self.cells, &mut self.ends);
        if result == ReadRecordResult::InputEmpty && read == line.len() {
            // A line break, were there one, would end an unquoted cell and stand inside a quoted one.
            let (result, ..) =
                self.reader
                    .read_record(b"\n", &mut self.cells[written..], &mut self.ends[count..]);
            if result != ReadRecordResult::Record {
                return Err(Reason::OpenQuote);
            }
            count += 1;
        }
        Ok(count)
    }

    fn cell(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        // The line is UTF-8 and is cut at ASCII characters only.
        std::str::from_utf8(&self.cells[start..self.ends[at]])
            .unwrap_or_default()
            .trim()
    }

    fn header(&self, cells: usize) -> Result<Columns, Fault> {
        let names: Vec<&str> = (0..cells)
            .map(|at| self.cell(at).trim_start_matches('\u{feff}'))
            .collect();
        let at = COLUMNS.map(|column| names.iter().position(|name| *name == column));
        let missing: Vec<&str> = NEEDED
            .into_iter()
            .filter(|needed| !names.contains(needed))
            .collect();
        if !missing.is_empty() {
            return Err(Fault::File(format!(
                "the header has no column {}; a CSV log has a header with ts, task_id and task_status at least, a log of JSON-RPC begins with a brace",
                missing.join(", ")
            )));
        }
        Ok(Columns { at, cells })
    }

    fn row<'a>(&'a self, columns: &Columns) -> Row<'a> {
        Row(columns.at.map(|at| at.map_or("", |at| self.cell(at))))
    }
}

/// The cells of a row, in the order of [`COLUMNS`]; empty where the log has no such column.
struct Row<'a>([&'a str; COLUMNS.len()]);

impl<'a> Row<'a> {
    fn or(&self, at: usize, otherwise: &'a str) -> &'a str {
        match self.0[at] {
            "" => otherwise,
            text => text,
        }
    }

    fn number(&self, at: usize) -> Result<Option<f64>, Reason> {
        match self.0[at] {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(x) if x.is_finite() => Ok(Some(x)),
                _ => Err(Reason::NotANumber),
            },
        }
    }

    fn time(&self, at: usize) -> Result<Option<Instant>, Reason> {
        match self.0[at] {
            "" => Ok(None),
            text => times::parse(text).map(Some),
        }
    }

    fn outcome(&self) -> Result<Outcome, Reason> {
        let (http, rpc) = (self.number(5)?, self.number(6)?);
        Ok(match (http, rpc) {
            (Some(status), _) if status >= 400.0 => Outcome::Http(status.min(65_535.0) as u16),
            (_, Some(code)) if code != 0.0 => Outcome::Rpc(code as i64),
            _ => Outcome::Good,
        })
    }

    fn answer(&self) -> Result<Answer, Reason> {
        let status = match self.0[7] {
            "" => None,
            name => Some(Status::named(name).ok_or(Reason::UnknownStatus)?),
        };
        let hint = match self.0[8] {
            "" => RawHint::Absent,
            "null" => RawHint::Null,
            text => text
                .parse()
                .map_or(RawHint::Text(f64::NAN), RawHint::Number),
        };
        Ok(Answer {
            outcome: self.outcome()?,
            status,
            hint,
            retry_after_s: self.number(9)?,
            created: self.time(11)?,
            updated: self.time(12)?,
        })
    }
}

fn read(row: &Row, collector: &mut Collector) -> Result<(), Reason> {
    let sent = row.time(0)?.ok_or(Reason::NoTime)?;
    let method = Method::named(row.or(4, "tasks/get")).ok_or(Reason::UnknownMethod)?;
    let answer = row.answer()?;
    let latency_ms = row.number(10)?.unwrap_or(0.0);
    if !(0.0..1e12).contains(&latency_ms) {
        return Err(Reason::AnsweredBeforeItWasSent);
    }
    let server = collector.server(row.or(2, "server"));
    let task = match row.0[3] {
        "" if method == Method::Create && answer.outcome == Outcome::Good => {
            collector.other_messages += 1;
            return Ok(());
        }
        "" if method == Method::Create => 0,
        "" => return Err(Reason::NoTaskId),
        id => collector.task(server, id),
    };
    let request = Request {
        sent,
        tenant: collector.tenant(row.or(1, "tenant")),
        server,
        task,
        method,
    };
    if !matches!(method, Method::Create | Method::Status) {
        collector.sent(&request);
    }
    if method != Method::Cancelled {
        let answered = sent.saturating_add((latency_ms * 1e6).round() as i64);
        collector.answered(&request, answered, &answer);
    }
    Ok(())
}
