//! Logs in, a scenario out: what `pollpace fit` does.
//!
//! A [`format`](mod@format) reads lines and tells a [`collector`] what they say, as requests and answers ([`event`]); a further format is a file of its own. The collector keeps a small record
//! of each task and tallies, whatever the log's length. [`fitted`] reads distributions off them ([`survival`] for what was seen only between polls, [`pacing`]
//! for the policy, [`hints`] for the servers), and [`files`] writes the scenario.
//!
//! Bodies are never kept, and ids only as keyed hashes ([`ids`]).

pub mod collector;
pub mod csv;
pub mod event;
pub mod files;
pub mod fitted;
pub mod format;
pub mod hints;
pub mod ids;
pub mod json_rpc;
pub mod latency;
pub mod life;
pub mod pacing;
pub mod sample;
pub mod scenario;
pub mod summary;
pub mod survival;
pub mod table;
pub mod task;
pub mod times;
pub mod windows;
mod wire;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use collector::Collector;
use event::Reason;
use format::{Fault, Formats, Kind};
use ids::Ids;

use crate::scenario::Fnv;

/// Longer lines are not read.
const LINE_MAX: u64 = 16 << 20;

/// A log that was read.
pub struct Log {
    /// What it says.
    pub collector: Collector,
    /// The files, in the order in which they were read.
    pub files: Vec<FileRead>,
    /// Lines that could not be read, by reason.
    pub unread: BTreeMap<Reason, Unread>,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct FileRead {
    /// Its path.
    pub path: PathBuf,
    /// Its format.
    pub kind: Kind,
    /// Its lines that are not blank; a CSV header is one.
    pub lines: u64,
}

/// Lines that could not be read for the same reason.
#[derive(Clone, Debug)]
pub struct Unread {
    /// How many.
    pub count: u64,
    /// The file of the first.
    pub path: PathBuf,
    /// Its number in that file, from 1.
    pub line: u64,
}

/// Why logs tell nothing.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A file has nothing in it.
    #[error("{0} is empty; a log is JSON-RPC lines or a CSV file with a header (docs/fitting.md)")]
    Empty(String),
    /// A file is not what its format says.
    #[error("{path}:{line}: {wrong}")]
    File {
        /// The file.
        path: String,
        /// The line.
        line: u64,
        /// What is wrong, and what would be right.
        wrong: String,
    },
    /// Nothing in the log is about a task.
    #[error("the log has no task: {found}")]
    NoTask {
        /// What it has instead, and what it would need.
        found: String,
    },
    /// There is too little to fit.
    #[error("the log has too little to fit: {found}")]
    TooLittle {
        /// What there is, and what it would need.
        found: String,
    },
    /// The scenario made of the log is not valid, as with an unknown policy.
    #[error("the scenario made of the log is not valid:\n{0}")]
    Scenario(String),
    /// A file could not be written.
    #[error(transparent)]
    Write(io::Error),
}

/// Reads logs, as one.
///
/// `kind` is their format, found out for each file where it is `None`. `progress` is told of bytes as they are read.
///
/// # Errors
/// The first file that cannot be read, is empty, or is not of its format; lines that cannot be read are counted instead.
pub fn read(
    paths: &[PathBuf],
    kind: Option<Kind>,
    ids: Ids,
    mut progress: impl FnMut(u64),
) -> Result<Log, LogError> {
    let mut log = Log {
        collector: Collector::new(ids),
        files: Vec::new(),
        unread: BTreeMap::new(),
    };
    let mut formats = Formats::default();
    for path in paths {
        log.read_file(path, kind, &mut formats, &mut progress)?;
    }
    log.collector.finish();
    Ok(log)
}

impl Log {
    /// Lines that are not blank.
    pub fn lines(&self) -> u64 {
        self.files.iter().map(|f| f.lines).sum()
    }

    /// Lines that could not be read.
    pub fn unread_lines(&self) -> u64 {
        self.unread.values().map(|u| u.count).sum()
    }

    fn read_file(
        &mut self,
        path: &Path,
        kind: Option<Kind>,
        formats: &mut Formats,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), LogError> {
        let unreadable = |error| LogError::Io {
            path: path.display().to_string(),
            error,
        };
        let mut input = BufReader::with_capacity(1 << 18, File::open(path).map_err(unreadable)?);
        let mut bytes = Vec::new();
        let (mut number, mut seen) = (0, None);
        loop {
            bytes.clear();
            let read = next_line(&mut input, &mut bytes).map_err(unreadable)?;
            if read == 0 {
                break;
            }
            progress(read);
            number += 1;
            let line = match std::str::from_utf8(&bytes) {
                _ if read > LINE_MAX => Err(Reason::TooLong),
                Ok(text) => Ok(text.trim_start_matches('\u{feff}').trim()),
                Err(_) => Err(Reason::NotUtf8),
            };
            if line == Ok("") {
                continue;
            }
            let file = seen.get_or_insert_with(|| FileRead {
                path: path.into(),
                kind: kind.unwrap_or_else(|| line.map_or(Kind::Csv, Kind::of)),
                lines: 0,
            });
            file.lines += 1;
            let reader = formats.reader(file.kind);
            let done = line
                .map_err(Fault::Line)
                .and_then(|line| reader.line(line, &mut self.collector));
            match done {
                Ok(()) => {}
                Err(Fault::Line(reason)) => self.count_unread(reason, path, number),
                Err(Fault::File(wrong)) => {
                    return Err(LogError::File {
                        path: path.display().to_string(),
                        line: number,
                        wrong,
                    });
                }
            }
        }
        let file = seen.ok_or_else(|| LogError::Empty(path.display().to_string()))?;
        formats.reader(file.kind).end_of_file();
        self.files.push(file);
        Ok(())
    }

    fn count_unread(&mut self, reason: Reason, path: &Path, line: u64) {
        let unread = self.unread.entry(reason).or_insert_with(|| Unread {
            count: 0,
            path: path.into(),
            line,
        });
        unread.count += 1;
    }
}

/// Reads a line into `bytes`, without what is beyond [`LINE_MAX`], and gives its length with the line break; 0 at the end.
fn next_line(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<u64> {
    let mut read = input.by_ref().take(LINE_MAX).read_until(b'\n', bytes)? as u64;
    if read == LINE_MAX && bytes.last() != Some(&b'\n') {
        loop {
            let buffer = input.fill_buf()?;
            let end = buffer.iter().position(|b| *b == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            input.consume(used);
            read += used as u64;
            if end.is_some() || used == 0 {
                read = read.max(LINE_MAX + 1);
                break;
            }
        }
    }
    Ok(read)
}
/// A label of a log as a name of a scenario: letters, digits, `-` and `_`. One that has other characters is told from its likes by four digits of its hash.
pub fn usable_name(label: &str) -> String {
    let usable = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if !label.is_empty() && label.chars().all(usable) {
        return label.into();
    }
    let clean: String = label
        .chars()
        .map(|c| if usable(c) { c } else { '-' })
        .collect();
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.eat(label.as_bytes());
    format!("{clean}-{:04x}", hash.0 & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::usable_name;

    #[test]
    fn labels_become_names_that_a_scenario_can_have() {
        assert_eq!(usable_name("agents_1-a"), "agents_1-a");
        let (dot, space) = (usable_name("acme.prod"), usable_name("acme prod"));
        assert!(dot.starts_with("acme-prod-") && space.starts_with("acme-prod-"));
        assert_ne!(dot, space);
        assert!(usable_name("").starts_with('-'));
    }
}
