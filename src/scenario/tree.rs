//! A scenario file as a tree of values that remember where they stand.
//!
//! Here TOML is parsed, `extends` is followed, and overrides are laid on top; what a key *means* is no concern of
//! this module. Tables merge key by key; lists whose members have a `name` (servers, tenants) merge by that name; anything else is replaced.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostics::{Diagnostic, Place, Severity, Source, nearest};

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// What stands there.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number; wider than TOML's so that overflow can be told.
    Integer(i128),
    /// A number with a point, or `nan`, or `inf`.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or time; no scenario value is one.
    Datetime(String),
    /// A list.
    Array(Vec<Node>),
    /// A table, keys in order.
    Table(Vec<(Key, Node)>),
}

/// A key and its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key itself.
    pub name: String,
    /// Where it stands.
    pub place: Place,
    /// How many times something was laid over what this stands in before the key came: 0 where nothing was.
    pub layer: u32,
}

impl Node {
    /// Its value without its place.
    pub fn plain(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) | Value::Datetime(text) => toml::Value::String(text.clone()),
            Value::Integer(i) => {
                i64::try_from(*i).map_or(toml::Value::Float(*i as f64), Into::into)
            }
            Value::Float(x) => toml::Value::Float(*x),
            Value::Boolean(b) => toml::Value::Boolean(*b),
            Value::Array(items) => toml::Value::Array(items.iter().map(Node::plain).collect()),
            Value::Table(entries) => {
                let plain = |(key, node): &(Key, Node)| (key.name.clone(), node.plain());
                toml::Value::Table(entries.iter().map(plain).collect())
            }
        }
    }

    /// Moves it and all in it to another source of the same text.
    pub fn stands_in(&mut self, source: usize) {
        self.place.source = source;
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.stands_in(source)),
            Value::Table(entries) => {
                for (key, item) in entries {
                    key.place.source = source;
                    item.stands_in(source);
                }
            }
            _ => {}
        }
    }

    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number that is not whole",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The member called `name`: a key of a table, or the element of a list whose `name` is that.
    pub fn get(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(k, _)| k.name == name).map(|(_, n)| n),
            Value::Array(items) => items
                .iter()
                .find(|item| item.name() == Some(name))
                .or_else(|| name.parse::<usize>().ok().and_then(|i| items.get(i))),
            _ => None,
        }
    }

    /// The node at a dotted path such as `policy.envelope.floor` or `tenant.agents.count`.
    pub fn find(&self, path: &str) -> Option<&Node> {
        let parts: Vec<String> = parts(path).into_iter().filter(|p| !p.is_empty()).collect();
        self.below(&parts)
    }

    /// The node at the path of these parts. A name with dots in it may stand in several of them.
    fn below(&self, path: &[String]) -> Option<&Node> {
        if path.is_empty() {
            return Some(self);
        }
        (1..=path.len()).find_map(|n| self.get(&path[..n].join("."))?.below(&path[n..]))
    }

    /// The text under `name` if this is a named table.
    fn name(&self) -> Option<&str> {
        let Value::Table(entries) = &self.value else {
            return None;
        };
        match &entries.iter().find(|(k, _)| k.name == "name")?.1.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads files into trees and keeps their texts for messages.
#[derive(Debug, Default)]
pub struct Loader {
    /// Every text read so far.
    pub sources: Vec<Source>,
    /// What was wrong with them.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loader {
    /// The tree of a text; relative paths in it are taken from `folder`. `None` where it is no TOML at all.
    pub fn parse(&mut self, name: &str, text: &str, folder: &Path) -> Option<Node> {
        self.parse_below(name, text, folder, &mut Vec::new())
    }

    /// The tree of a file, with everything it extends.
    pub fn load(&mut self, path: &Path) -> std::io::Result<Option<Node>> {
        let text = fs::read_to_string(path)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut above = vec![canonical(path)];
        Ok(self.parse_below(&path.display().to_string(), &text, &folder, &mut above))
    }

    fn parse_below(
        &mut self,
        name: &str,
        text: &str,
        folder: &Path,
        above: &mut Vec<PathBuf>,
    ) -> Option<Node> {
        let source = self.sources.len();
        self.sources.push(Source {
            name: name.into(),
            text: text.into(),
        });
        let (table, errors) = DeTable::parse_recoverable(text);
        // What follows the first error is mostly its consequence.
        if let Some(error) = errors.first() {
            let span = error.span().unwrap_or(0..0);
            self.error(
                Place { source, span },
                "this is not valid TOML",
                error.message(),
                "in TOML, tables begin with [name] or [[name]], and values are written as in key = \"text\", 42, 0.5, [1, 2] or { key = 1 }",
            );
            return None;
        }
        let mut node = convert_table(table.get_ref(), table.span(), source);
        resolve_paths(&mut node, folder);
        let Value::Table(entries) = &mut node.value else {
            unreachable!("a document is a table")
        };
        let Some(at) = entries.iter().position(|(k, _)| k.name == "extends") else {
            return Some(node);
        };
        // Without its base a file lacks so much that reading on would only bury the one fault.
        let (_, extends) = entries.remove(at);
        let Value::Text(base) = &extends.value else {
            self.error(
                extends.place.clone(),
                "extends: expected a string",
                &format!("found {}", extends.kind()),
                "write the name of one file, as in extends = \"base.toml\"",
            );
            return None;
        };
        let path = folder.join(base);
        let real = canonical(&path);
        if above.contains(&real) {
            self.error(
                extends.place,
                "extends: this file extends itself",
                "goes round in a circle",
                "remove one of the `extends`",
            );
            return None;
        }
        let base_text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) => {
                self.error(
                    extends.place,
                    &format!("extends: cannot read {}", path.display()),
                    &e.to_string(),
                    "the path is taken from the folder of this file",
                );
                return None;
            }
        };
        above.push(real);
        let base_folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let base = self.parse_below(&path.display().to_string(), &base_text, &base_folder, above);
        above.pop();
        Some(merge(base?, node))
    }

    /// Lays `path=value` from the command line over the tree. The value is TOML; where it is none, it is taken as text.
    pub fn set(&mut self, tree: &mut Node, assignment: &str) {
        let source = self.sources.len();
        self.sources.push(Source {
            name: "--set".into(),
            text: assignment.into(),
        });
        let place = |span: Range<usize>| Place { source, span };
        let Some((path, text)) = assignment.split_once('=') else {
            self.error(
                place(0..assignment.len()),
                "an override is `path=value`",
                "there is no `=`",
                "write it as in --set policy.envelope.floor=500ms",
            );
            return;
        };
        if path.matches('"').count() % 2 == 1 || path.matches('\'').count() % 2 == 1 {
            self.error(
                place(0..path.len()),
                "a quote of the path is not closed",
                "found an odd number of quotes before the `=`",
                "write it as in --set 'policy.\"fastmcp-4.x\".floor=50ms'",
            );
            return;
        }
        let start = path.len() + 1 + (text.len() - text.trim_start().len());
        let text = text.trim();
        let value = match DeValue::parse(text) {
            Ok(value) => shift(convert(&value, source), start),
            Err(_) => Node {
                value: Value::Text(text.trim_matches('"').into()),
                place: place(start..start + text.len()),
            },
        };
        let mut node = &mut *tree;
        let mut above: Vec<&str> = Vec::new();
        let mut written = spans(path);
        while !written.is_empty() {
            // A name with dots in it need not be quoted where it is known.
            let known = (1..written.len()).rev().find(|n| {
                let joined = &path[written[0].start..written[*n].end];
                node.get(joined.trim()).is_some()
            });
            let rest = written.split_off(known.unwrap_or(0) + 1);
            let whole = written[0].start..written[written.len() - 1].end;
            written = rest;
            let text = &path[whole.clone()];
            let from = whole.start + (text.len() - text.trim_start().len());
            let part = text.trim();
            let place = place(from..from + part.len());
            let part = part.trim_matches(['"', '\'']);
            let is_last = written.is_empty();
            node = match step(node, &above, part, &place, is_last) {
                Ok(node) => node,
                Err((message, help)) => {
                    self.error(place, &message, "nothing is here", &help);
                    return;
                }
            };
            above.push(part);
        }
        *node = value;
    }

    /// Adds an error.
    pub fn error(&mut self, place: Place, message: &str, label: &str, help: &str) {
        self.diagnostics.push(Diagnostic {
            severity: Severity::Error,
            place,
            message: message.into(),
            label: label.into(),
            help: help.into(),
        });
    }
}

/// Where the parts of a dotted path stand in it. Dots between quotes divide nothing.
fn spans(path: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let (mut start, mut quoted) = (0, None);
    for (at, letter) in path.char_indices() {
        match letter {
            '"' | '\'' if quoted.is_none() => quoted = Some(letter),
            '"' | '\'' if quoted == Some(letter) => quoted = None,
            '.' if quoted.is_none() => {
                spans.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    spans.push(start..path.len());
    spans
}

/// The parts of a dotted path, without quotes.
pub fn parts(path: &str) -> Vec<String> {
    let part = |span: Range<usize>| path[span].trim().trim_matches(['"', '\'']).to_string();
    spans(path).into_iter().map(part).collect()
}

/// One step of an override's path into `node`, making tables on the way. An error is what is wrong and what would be right.
fn step<'n>(
    node: &'n mut Node,
    above: &[&str],
    part: &str,
    place: &Place,
    is_last: bool,
) -> Result<&'n mut Node, (String, String)> {
    if part.is_empty() {
        return Err((
            "a part of the path is empty".into(),
            "write it as in --set policy.envelope.floor=500ms".into(),
        ));
    }
    if !matches!(node.value, Value::Table(_) | Value::Array(_)) {
        // A short form (`jitter = "none"`) gives way to the long one.
        *node = Node {
            value: Value::Table(Vec::new()),
            place: place.clone(),
        };
    }
    match &mut node.value {
        Value::Array(items) => {
            let names: Vec<&str> = items.iter().filter_map(Node::name).collect();
            let at = items
                .iter()
                .position(|i| i.name() == Some(part))
                .or_else(|| part.parse().ok().filter(|i| *i < items.len()));
            let help = match nearest(part, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if !names.is_empty() => format!("there are: {}", names.join(", ")),
                None if items.is_empty() => "the list is empty".into(),
                None => format!("its members are counted from 0 to {}", items.len() - 1),
            };
            match at {
                Some(i) => Ok(&mut items[i]),
                None => Err((format!("`{}` has no `{part}`", above.join(".")), help)),
            }
        }
        Value::Table(entries) => {
            let at = entries.iter().position(|(k, _)| k.name == part);
            // A hint or a policy that is not there is a slip, not one more that nobody uses.
            if let (None, ["hint" | "policy"], false) = (at, above, is_last) {
                let names: Vec<&str> = entries.iter().map(|(k, _)| k.name.as_str()).collect();
                let help = match nearest(part, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", names.join(", ")),
                };
                return Err((format!("there is no [{}.{part}]", above[0]), help));
            }
            let at = at.unwrap_or_else(|| {
                let key = Key {
                    name: part.into(),
                    place: place.clone(),
                    layer: next_layer(entries),
                };
                let made = Node {
                    value: Value::Table(Vec::new()),
                    place: place.clone(),
                };
                entries.push((key, made));
                entries.len() - 1
            });
            Ok(&mut entries[at].1)
        }
        _ => unreachable!("made a table above"),
    }
}

/// The layer of keys that are laid over these.
fn next_layer(below: &[(Key, Node)]) -> u32 {
    below.iter().map(|(k, _)| k.layer + 1).max().unwrap_or(0)
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// `over` laid on top of `base`.
pub fn merge(base: Node, over: Node) -> Node {
    let place = over.place.clone();
    let value = match (base.value, over.value) {
        (Value::Table(mut base), Value::Table(over)) => {
            let layer = next_layer(&base);
            for (mut key, node) in over {
                key.layer += layer;
                match base.iter().position(|(k, _)| k.name == key.name) {
                    // What is laid on top goes last, so that in a one-of-many table the last key is the one meant.
                    Some(i) => {
                        let (_, below) = base.remove(i);
                        base.push((key, merge(below, node)));
                    }
                    None => base.push((key, node)),
                }
            }
            Value::Table(base)
        }
        (Value::Array(mut base), Value::Array(over))
            if over.iter().all(|n| n.name().is_some())
                && base.iter().all(|n| n.name().is_some()) =>
        {
            let mut free = vec![true; base.len()];
            for node in over {
                // A second member of the same name finds the first one taken, and stays for the checks to see.
                match (0..free.len()).find(|i| free[*i] && base[*i].name() == node.name()) {
                    Some(i) => {
                        free[i] = false;
                        let below = base.remove(i);
                        base.insert(i, merge(below, node));
                    }
                    None => base.push(node),
                }
            }
            Value::Array(base)
        }
        (_, over) => over,
    };
    Node { value, place }
}

/// Makes the paths under `file` keys relative to the folder of the file that names them.
fn resolve_paths(node: &mut Node, folder: &Path) {
    match &mut node.value {
        Value::Table(entries) => {
            for (key, value) in entries {
                match &mut value.value {
                    Value::Text(text) if key.name == "file" => {
                        *text = folder.join(&*text).display().to_string();
                    }
                    _ => resolve_paths(value, folder),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| resolve_paths(item, folder)),
        _ => {}
    }
}

fn shift(mut node: Node, by: usize) -> Node {
    node.place.span = node.place.span.start + by..node.place.span.end + by;
    node.value = match node.value {
        Value::Array(items) => Value::Array(items.into_iter().map(|n| shift(n, by)).collect()),
        Value::Table(entries) => Value::Table(
            entries
                .into_iter()
                .map(|(mut k, n)| {
                    k.place.span = k.place.span.start + by..k.place.span.end + by;
                    (k, shift(n, by))
                })
                .collect(),
        ),
        value => value,
    };
    node
}

fn convert(value: &Spanned<DeValue<'_>>, source: usize) -> Node {
    let place = Place {
        source,
        span: value.span(),
    };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(i) => Value::Integer(
            i128::from_str_radix(&i.as_str().replace('_', ""), i.radix()).unwrap_or(
                if i.as_str().starts_with('-') {
                    i128::MIN
                } else {
                    i128::MAX
                },
            ),
        ),
        DeValue::Float(x) => Value::Float(parse_float(x.as_str())),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Datetime(d.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(|i| convert(i, source)).collect()),
        DeValue::Table(table) => return convert_table(table, place.span, source),
    };
    Node { value, place }
}

fn parse_float(text: &str) -> f64 {
    text.replace('_', "").parse().unwrap_or(f64::NAN)
}

fn convert_table(table: &DeTable<'_>, span: std::ops::Range<usize>, source: usize) -> Node {
    let mut entries: Vec<(Key, Node)> = table
        .iter()
        .map(|(key, value)| {
            let place = Place {
                source,
                span: key.span(),
            };
            (
                Key {
                    name: key.get_ref().to_string(),
                    place,
                    layer: 0,
                },
                convert(value, source),
            )
        })
        .collect();
    entries.sort_by_key(|(key, _)| key.place.span.start);
    Node {
        value: Value::Table(entries),
        place: Place { source, span },
    }
}
