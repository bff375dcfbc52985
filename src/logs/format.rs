//! What a format of logs is: something that reads lines. Each has a file of its own.

use super::collector::Collector;
use super::csv::Csv;
use super::event::Reason;
use super::json_rpc::JsonRpc;

/// A reader of lines, which tells a [`Collector`] what they say. One reader reads all files, in turn.
pub trait Format {
    /// Reads a line that is not blank.
    ///
    /// # Errors
    /// Why the line tells nothing, or why the whole file cannot.
    fn line(&mut self, line: &str, collector: &mut Collector) -> Result<(), Fault>;

    /// A file is at its end.
    fn end_of_file(&mut self);
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// It tells nothing; the next one may.
    Line(Reason),
    /// Nothing of this file can be read: what is wrong, and what would be right.
    File(String),
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        Fault::Line(reason)
    }
}

/// The formats that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON-RPC lines.
    JsonRpc,
    /// CSV.
    Csv,
}

impl Kind {
    /// The format of a file that begins with this line: JSON-RPC lines begin with a brace.
    pub fn of(line: &str) -> Self {
        if line.starts_with(['{', '[']) {
            Kind::JsonRpc
        } else {
            Kind::Csv
        }
    }

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::JsonRpc => "json-rpc",
            Kind::Csv => "csv",
        }
    }
}

/// A reader of each format; each keeps what it has to know from file to file.
#[derive(Default)]
pub struct Formats {
    json_rpc: JsonRpc,
    csv: Csv,
}

impl Formats {
    /// The reader of a format.
    pub fn reader(&mut self, kind: Kind) -> &mut dyn Format {
        match kind {
            Kind::JsonRpc => &mut self.json_rpc,
            Kind::Csv => &mut self.csv,
        }
    }
}
