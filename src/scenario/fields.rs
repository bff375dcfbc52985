//! How a table in a file becomes a Rust value: one definition gives the type, the strict reader, the JSON Schema
//! and the printed form with all defaults, so that the four cannot drift apart.
//!
//! `record!` defines a table with fixed keys, `choice!` a value that is one of several (`"none"`, or a table with one key such
//! as `{ proportional = 0.1 }`). Readers report every fault they meet to the [`Reader`] and give `None`.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::diagnostics::{Diagnostic, Place, Severity, nearest};
use super::tree::{Key, Node, Value};
use super::units::{Duration, LONGEST, Rate};

/// Collects what is wrong, and knows where in the scenario the reading is.
#[derive(Debug, Default)]
pub struct Reader {
    /// Dotted path of the value being read.
    path: Vec<String>,
    /// Paths of keys that are not there because they are misspelt, which was told already.
    misspelt: Vec<String>,
    /// Everything found so far.
    pub diagnostics: Vec<Diagnostic>,
}

impl Reader {
    /// Reads below `key`.
    pub fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.into());
        let result = read(self);
        self.path.pop();
        result
    }

    /// The path being read, for messages.
    pub fn path(&self) -> String {
        self.path.join(".")
    }

    /// Reports an error at `place`: what is wrong, what was found, what would be right.
    pub fn error(
        &mut self,
        place: &Place,
        wrong: impl Into<String>,
        found: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.report(
            Severity::Error,
            place,
            wrong.into(),
            found.into(),
            right.into(),
        );
    }

    /// Reports a warning.
    pub fn warning(
        &mut self,
        place: &Place,
        wrong: impl Into<String>,
        found: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.report(
            Severity::Warning,
            place,
            wrong.into(),
            found.into(),
            right.into(),
        );
    }

    fn report(
        &mut self,
        severity: Severity,
        place: &Place,
        wrong: String,
        found: String,
        right: String,
    ) {
        let path = self.path();
        let message = if path.is_empty() {
            wrong
        } else {
            format!("{path}: {wrong}")
        };
        self.diagnostics.push(Diagnostic {
            severity,
            place: place.clone(),
            message,
            label: found,
            help: right,
        });
    }

    /// Reports that `node` is of the wrong kind.
    pub fn mismatch(&mut self, node: &Node, expected: &str, example: &str) {
        self.error(
            &node.place,
            format!("expected {expected}"),
            format!("found {}", node.kind()),
            example,
        );
    }

    /// The entries of a table.
    pub fn table<'n>(&mut self, node: &'n Node, example: &str) -> Option<&'n [(Key, Node)]> {
        match &node.value {
            Value::Table(entries) => Some(entries),
            _ => {
                self.mismatch(node, "a table", example);
                None
            }
        }
    }

    /// Reports keys of `entries` that are not among `known`.
    pub fn unknown_keys(&mut self, entries: &[(Key, Node)], known: &[&str]) {
        for (key, _) in entries
            .iter()
            .filter(|(k, _)| !known.contains(&k.name.as_str()))
        {
            let help = match nearest(&key.name, known.iter().copied()) {
                Some(near) => {
                    self.within(near, |reader| reader.misspelt.push(reader.path()));
                    format!("did you mean `{near}`?")
                }
                None => format!("the keys here are: {}", known.join(", ")),
            };
            self.error(
                &key.place,
                format!("unknown key `{}`", key.name),
                "not a key of this table",
                help,
            );
        }
    }

    /// Whether `key` is missing here only because it is misspelt.
    pub fn is_misspelt(&mut self, key: &str) -> bool {
        self.within(key, |reader| reader.misspelt.contains(&reader.path()))
    }

    /// Reports that `key` is missing from the table at `node`, unless it is there with a slip.
    pub fn missing(&mut self, node: &Node, key: &str, example: &str) {
        if self.is_misspelt(key) {
            return;
        }
        let right = if self.path.is_empty() && example.starts_with('{') {
            let keys = example.trim_matches(['{', ' ', '}']);
            format!("add [{key}] with {keys}")
        } else {
            format!("add {key} = {example}")
        };
        self.error(
            &node.place,
            format!("`{key}` is missing"),
            format!("found no `{key}`"),
            right,
        );
    }

    /// Reads the value of `key` in the table at `node`, which must be there.
    pub fn required<T: Field>(&mut self, node: &Node, key: &str) -> Option<T> {
        match node.get(key) {
            Some(value) => self.within(key, |reader| T::read(value, reader)),
            None => {
                self.missing(node, key, &T::example());
                None
            }
        }
    }

    /// Reads the value of `key` in the table at `node`, if it is there.
    pub fn optional<T: Field>(&mut self, node: &Node, key: &str) -> Option<Option<T>> {
        match node.get(key) {
            Some(value) => self.within(key, |reader| T::read(value, reader)).map(Some),
            None => Some(None),
        }
    }
}

/// A value that a scenario file can hold.
pub trait Field: Sized {
    /// Reads it; what is wrong goes to the reader.
    fn read(node: &Node, reader: &mut Reader) -> Option<Self>;
    /// As it would be written, defaults filled in; `None` where there is nothing to write.
    fn write(&self) -> Option<toml::Value>;
    /// The JSON Schema of the written form.
    fn schema() -> serde_json::Value;
    /// How it could be written, for messages.
    fn example() -> String;
    /// The value where the key is absent; `None` where the key must be there.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Field> Field for Option<T> {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        T::read(node, reader).map(Some)
    }
    fn write(&self) -> Option<toml::Value> {
        self.as_ref().and_then(T::write)
    }
    fn example() -> String {
        T::example()
    }
    fn schema() -> serde_json::Value {
        T::schema()
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Field> Field for Box<T> {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        T::read(node, reader).map(Box::new)
    }
    fn write(&self) -> Option<toml::Value> {
        T::write(self)
    }
    fn example() -> String {
        T::example()
    }
    fn schema() -> serde_json::Value {
        T::schema()
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let Value::Array(items) = &node.value else {
            let right = match &reader.path[..] {
                [key] => format!("write [[{key}]], with two brackets on each side"),
                path => format!(
                    "write {} = {}",
                    path.last().map_or("", String::as_str),
                    Self::example()
                ),
            };
            reader.mismatch(node, "a list", &right);
            return None;
        };
        // Every member is read, so that every fault is told.
        let read: Vec<Option<T>> = items
            .iter()
            .enumerate()
            .map(|(i, item)| {
                let name = match item.get("name").map(|n| &n.value) {
                    Some(Value::Text(name)) => name.clone(),
                    _ => i.to_string(),
                };
                reader.within(&name, |reader| T::read(item, reader))
            })
            .collect();
        read.into_iter().collect()
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Array(
            self.iter().filter_map(T::write).collect(),
        ))
    }
    fn example() -> String {
        format!("[{}]", T::example())
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "array", "items": T::schema() })
    }
    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

impl<T: Field> Field for BTreeMap<String, T> {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let right = match &reader.path[..] {
            [key] => format!("write [{key}.NAME]"),
            _ => format!("write {}", Self::example()),
        };
        let entries = reader.table(node, &right)?;
        let read: Vec<Option<(String, T)>> = entries
            .iter()
            .map(|(key, value)| {
                reader
                    .within(&key.name, |reader| T::read(value, reader))
                    .map(|v| (key.name.clone(), v))
            })
            .collect();
        read.into_iter().collect()
    }
    fn write(&self) -> Option<toml::Value> {
        let table = self
            .iter()
            .filter_map(|(k, v)| Some((k.clone(), v.write()?)))
            .collect();
        Some(toml::Value::Table(table))
    }
    fn example() -> String {
        format!("{{ NAME = {} }}", T::example())
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
    fn absent() -> Option<Self> {
        Some(BTreeMap::new())
    }
}

impl Field for String {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => {
                reader.mismatch(node, "a string", "write it in double quotes");
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.clone()))
    }
    fn example() -> String {
        "\"…\"".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "string" })
    }
}

impl Field for bool {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match node.value {
            Value::Boolean(b) => Some(b),
            _ => {
                reader.mismatch(node, "true or false", "write true or false, without quotes");
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Boolean(*self))
    }
    fn example() -> String {
        "true".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "boolean" })
    }
}

impl Field for u64 {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match node.value {
            Value::Integer(i) if (0..=i64::MAX as i128).contains(&i) => Some(i as u64),
            Value::Integer(i) => {
                reader.error(
                    &node.place,
                    "out of range",
                    found_integer(i),
                    "it must be from 0 to 9223372036854775807",
                );
                None
            }
            _ => {
                reader.mismatch(node, "a whole number", "write digits only, as in 42");
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Integer(*self as i64))
    }
    fn example() -> String {
        "42".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

/// An integer that was found, for messages.
fn found_integer(i: i128) -> String {
    if i == i128::MAX || i == i128::MIN {
        return "found too many digits".into();
    }
    format!("found {i}")
}

/// A whole number from 1 to 2^32 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u32);

impl Field for Count {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match node.value {
            Value::Integer(i) if (1..=u32::MAX as i128).contains(&i) => Some(Count(i as u32)),
            Value::Integer(i) => {
                reader.error(
                    &node.place,
                    "out of range",
                    found_integer(i),
                    format!("it must be from 1 to {}", u32::MAX),
                );
                None
            }
            _ => {
                reader.mismatch(node, "a whole number", "write digits only, as in 10");
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Integer(self.0 as i64))
    }
    fn example() -> String {
        "10".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX })
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Integer(i) => Some(i as f64),
        Value::Float(x) => Some(x),
        _ => None,
    }
}

/// Defines a number type with a range.
macro_rules! ranged {
    ($(#[doc = $doc:literal])* $Name:ident, $example:literal, $test:expr, $right:literal, $schema:tt) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $Name(pub f64);

        impl Field for $Name {
            fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
                let test: fn(f64) -> bool = $test;
                match number(node) {
                    Some(x) if test(x) => Some($Name(x)),
                    Some(x) => {
                        reader.error(&node.place, "out of range", format!("found {x:?}"), concat!("it must be ", $right));
                        None
                    }
                    None => {
                        reader.mismatch(node, "a number", concat!("it must be ", $right));
                        None
                    }
                }
            }
            fn write(&self) -> Option<toml::Value> {
                Some(toml::Value::Float(self.0))
            }
            fn example() -> String {
                $example.into()
            }
            fn schema() -> serde_json::Value {
                json!($schema)
            }
        }
    };
}

ranged!(
    /// A finite number of any sign.
    Number, "1", |x| x.is_finite(), "a finite number", { "type": "number" });
ranged!(
    /// A finite number above zero.
    Positive, "1", |x| x.is_finite() && x > 0.0, "a finite number above 0", { "type": "number", "exclusiveMinimum": 0 });
ranged!(
    /// A finite number, zero or above.
    Weight, "1", |x| x.is_finite() && x >= 0.0, "a finite number, 0 or above", { "type": "number", "minimum": 0 });
ranged!(
    /// A number from 0 to 1.
    Share, "0.1", |x| (0.0..=1.0).contains(&x), "a number from 0 to 1, as in 0.1", { "type": "number", "minimum": 0, "maximum": 1 });
ranged!(
    /// A confidence level.
    Confidence, "0.95", |x| (0.5..1.0).contains(&x), "a number from 0.5 to below 1, as in 0.95", { "type": "number", "minimum": 0.5, "exclusiveMaximum": 1 });
ranged!(
    /// A growth factor.
    Factor, "2", |x| (1.0..=1000.0).contains(&x), "a number from 1 to 1000, as in 2", { "type": "number", "minimum": 1, "maximum": 1000 });

impl Field for Duration {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match &node.value {
            Value::Text(text) => match Duration::parse(text) {
                Ok(duration) => Some(duration),
                Err(right) => {
                    reader.error(
                        &node.place,
                        "not a duration",
                        format!("found {text:?}"),
                        right,
                    );
                    None
                }
            },
            _ => {
                let example = match number(node) {
                    Some(x) if (0.0..1e9).contains(&x) => {
                        format!("durations have a unit: \"{x}ms\" or \"{x}s\"")
                    }
                    _ => "write it as in \"250ms\"".into(),
                };
                reader.mismatch(node, "a duration", &example);
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.to_string()))
    }
    fn example() -> String {
        "\"250ms\"".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "string", "pattern": "^[0-9_]*\\.?[0-9_]*\\s*(ns|us|µs|ms|s|min|h|d)$",
                "description": format!("a duration, at most {LONGEST}") })
    }
}

/// A duration above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Span(pub Duration);

impl Field for Span {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let duration = Duration::read(node, reader)?;
        if duration.0 == 0 {
            reader.error(
                &node.place,
                "a duration of zero makes no sense here",
                "found 0",
                "it must be above 0, as in \"10s\"",
            );
            return None;
        }
        Some(Span(duration))
    }
    fn write(&self) -> Option<toml::Value> {
        self.0.write()
    }
    fn example() -> String {
        "\"10s\"".into()
    }
    fn schema() -> serde_json::Value {
        Duration::schema()
    }
}

impl Field for Rate {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match &node.value {
            Value::Text(text) => match Rate::parse(text) {
                Ok(rate) => Some(rate),
                Err(right) => {
                    reader.error(&node.place, "not a rate", format!("found {text:?}"), right);
                    None
                }
            },
            _ => {
                reader.mismatch(node, "a rate", "write it as in \"40/s\"");
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.to_string()))
    }
    fn example() -> String {
        "\"40/s\"".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "string", "pattern": "^[0-9_.]+/(ns|us|µs|ms|s|min|h|d)$" })
    }
}

/// One property of an object's schema.
pub fn property(
    schema: serde_json::Value,
    doc: &str,
    default: Option<toml::Value>,
) -> serde_json::Value {
    let serde_json::Value::Object(mut map) = schema else {
        return schema;
    };
    let doc = doc.trim();
    if !doc.is_empty() {
        map.insert("description".into(), json!(doc));
    }
    if let Some(default) = default {
        map.insert(
            "default".into(),
            serde_json::to_value(&default).unwrap_or_default(),
        );
    }
    serde_json::Value::Object(map)
}

/// The schema of a table with these properties.
pub fn object(
    properties: Map<String, serde_json::Value>,
    required: &[&str],
    doc: &str,
) -> serde_json::Value {
    json!({ "type": "object", "description": doc.trim(), "properties": properties, "required": required, "additionalProperties": false })
}

/// Defines a table with fixed keys: the struct and its [`Field`].
///
/// A key without `= default` must be there, unless its type says what absence means (`Option`, lists, maps).
macro_rules! record {
    ($(#[doc = $doc:literal])* pub struct $Name:ident {
        $( $(#[doc = $fdoc:literal])* $field:ident : $Type:ty $(= $default:expr)? ),* $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Name { $( $(#[doc = $fdoc])* pub $field: $Type, )* }

        impl $crate::scenario::fields::Field for $Name {
            #[allow(unused_variables, clippy::question_mark)]
            fn read(node: &$crate::scenario::tree::Node, reader: &mut $crate::scenario::fields::Reader) -> Option<Self> {
                use $crate::scenario::fields::Field;
                let entries = reader.table(node, &format!("write {}", Self::example()))?;
                reader.unknown_keys(entries, &[$(stringify!($field)),*]);
                $(
                    let absent: fn() -> Option<$Type> = $crate::scenario::fields::record!(@absent $Type $(, $default)?);
                    let $field: Option<$Type> = match node.get(stringify!($field)) {
                        Some(value) => reader.within(stringify!($field), |reader| <$Type as Field>::read(value, reader)),
                        None => absent().or_else(|| { reader.missing(node, stringify!($field), &<$Type as Field>::example()); None }),
                    };
                )*
                Some($Name { $($field: $field?),* })
            }
            fn write(&self) -> Option<toml::Value> {
                let mut table = toml::Table::new();
                $( if let Some(value) = $crate::scenario::fields::Field::write(&self.$field) {
                    table.insert(stringify!($field).into(), value);
                } )*
                Some(toml::Value::Table(table))
            }
            fn example() -> String {
                let required: Vec<&str> = [$(
                    (stringify!($field), $crate::scenario::fields::record!(@absent $Type $(, $default)?)().is_none())
                ),*].into_iter().filter_map(|(key, required)| required.then_some(key)).collect();
                let keys = if required.is_empty() { vec![$(stringify!($field)),*] } else { required };
                format!("{{ {} = … }}", keys.join(" = …, "))
            }
            fn schema() -> serde_json::Value {
                use $crate::scenario::fields::{Field, object, property};
                let mut properties = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    let absent: fn() -> Option<$Type> = $crate::scenario::fields::record!(@absent $Type $(, $default)?);
                    let default = absent();
                    if default.is_none() { required.push(stringify!($field)); }
                    let written = default.as_ref().and_then(Field::write).filter(|v| v.as_array().is_none_or(|a| !a.is_empty()));
                    properties.insert(stringify!($field).into(),
                        property(<$Type as Field>::schema(), concat!("" $(, $fdoc)*), written));
                )*
                object(properties, &required, concat!("" $(, $doc)*))
            }
        }
    };
    (@absent $Type:ty) => { <$Type as $crate::scenario::fields::Field>::absent };
    (@absent $Type:ty, $default:expr) => { || Some($default) };
}
pub(crate) use record;

/// Defines a value that is one of several: plain words, or tables with one key.
macro_rules! choice {
    ($(#[doc = $doc:literal])* pub enum $Name:ident {
        words { $( $(#[doc = $wdoc:literal])* $word:literal => $Word:ident ),* $(,)? }
        tables { $( $(#[doc = $tdoc:literal])* $key:literal => $Table:ident($Type:ty) ),* $(,)? }
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Name {
            $( $(#[doc = $wdoc])* $Word, )*
            $( $(#[doc = $tdoc])* $Table($Type), )*
        }

        impl $crate::scenario::fields::Field for $Name {
            fn read(node: &$crate::scenario::tree::Node, reader: &mut $crate::scenario::fields::Reader) -> Option<Self> {
                #[allow(unused_imports)]
                use $crate::scenario::{fields::{Field, choose}, tree::Value};
                const WORDS: &[&str] = &[$($word),*];
                const KEYS: &[&str] = &[$($key),*];
                if let Value::Text(text) = &node.value {
                    match text.as_str() {
                        $( $word => return Some($Name::$Word), )*
                        _ => {}
                    }
                }
                let (key, value) = choose(node, reader, WORDS, KEYS)?;
                let _ = value;
                match key.as_str() {
                    $( $key => reader.within($key, |reader| <$Type as Field>::read(value, reader)).map($Name::$Table), )*
                    _ => None,
                }
            }
            fn write(&self) -> Option<toml::Value> {
                #[allow(unused_imports)]
                use $crate::scenario::fields::Field;
                match self {
                    $( $Name::$Word => Some(toml::Value::String($word.into())), )*
                    $( $Name::$Table(value) => {
                        let mut table = toml::Table::new();
                        table.insert($key.into(), value.write()?);
                        Some(toml::Value::Table(table))
                    } )*
                }
            }
            fn example() -> String {
                $crate::scenario::fields::forms(&[$($word),*], &[$($key),*])
            }
            fn schema() -> serde_json::Value {
                #[allow(unused_imports)]
                use $crate::scenario::fields::{Field, property};
                let any: Vec<serde_json::Value> = vec![
                    $( serde_json::json!({ "const": $word, "description": concat!("" $(, $wdoc)*).trim() }), )*
                    $( serde_json::json!({ "type": "object", "properties": { $key: property(<$Type as Field>::schema(), concat!("" $(, $tdoc)*), None) },
                        "required": [$key], "additionalProperties": false }), )*
                ];
                serde_json::json!({ "description": concat!("" $(, $doc)*).trim(), "anyOf": any })
            }
        }
    };
}
pub(crate) use choice;

/// The forms of a one-of-many value, for messages.
pub fn forms(words: &[&str], keys: &[&str]) -> String {
    let words = words.iter().map(|w| format!("\"{w}\""));
    let tables = keys.iter().map(|k| format!("{{ {k} = … }}"));
    words.chain(tables).collect::<Vec<_>>().join(" or ")
}

/// The one key of a one-of-many table; where tables were laid over each other, the key laid last.
pub fn choose<'n>(
    node: &'n Node,
    reader: &mut Reader,
    words: &[&str],
    keys: &[&str],
) -> Option<(&'n String, &'n Node)> {
    let help = |found: &str| {
        let near = nearest(found, words.iter().chain(keys).copied());
        match near {
            Some(near) if words.contains(&near) => format!("did you mean \"{near}\"?"),
            Some(near) => format!("did you mean {{ {near} = … }}?"),
            None => format!("write {}", forms(words, keys)),
        }
    };
    let entries = match &node.value {
        Value::Table(entries) => entries,
        Value::Text(text) => {
            reader.error(
                &node.place,
                format!("unknown value \"{text}\""),
                "not one of the choices",
                help(text),
            );
            return None;
        }
        _ => {
            let found = format!("found {}", node.kind());
            reader.error(&node.place, "expected one of the choices", found, help(""));
            return None;
        }
    };
    let Some((last, value)) = entries.last() else {
        reader.error(&node.place, "the table is empty", "found no key", help(""));
        return None;
    };
    // Keys of lower layers are those that the last one was laid over.
    let given: Vec<&Key> = entries
        .iter()
        .map(|(k, _)| k)
        .filter(|k| k.layer == last.layer)
        .collect();
    let unknown: Vec<&Key> = given
        .iter()
        .copied()
        .filter(|k| !keys.contains(&k.name.as_str()))
        .collect();
    for key in &unknown {
        reader.error(
            &key.place,
            format!("unknown key `{}`", key.name),
            "not one of the choices",
            help(&key.name),
        );
    }
    if unknown.is_empty() && given.len() > 1 {
        reader.error(
            &last.place,
            format!("both `{}` and `{}` are given", given[0].name, last.name),
            "only one can hold",
            "keep one of them",
        );
    }
    (unknown.is_empty() && given.len() == 1).then_some((&last.name, value))
}
