//! What a planner writes: a TOML file, read strictly, with every fault told at its place.
//!
//! Three steps: [`tree`] turns text into values that know where they stand (following `extends`, laying `--set` on
//! top), [`fields`] and [`written`] turn values into typed tables, [`checks`] sees whether they fit together. What
//! comes out is a [`Scenario`] with every default filled in; nothing after this module can fail on input.

pub mod checks;
pub mod diagnostics;
pub mod distribution;
pub mod fields;
pub mod tree;
pub mod units;
pub mod written;

use std::path::Path;

pub use diagnostics::{Diagnostic, Rejected, Source};
pub use written::Scenario;

use diagnostics::Severity;
use fields::{Field, Reader};
use tree::{Loader, Node, Value};

/// A scenario that was read, with the warnings it gave.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The scenario, defaults filled in.
    pub scenario: Scenario,
    /// What may not be as meant, ready to print; empty where there is nothing.
    pub warnings: String,
}

/// Why a file could not become a scenario.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It was read and is wrong.
    #[error(transparent)]
    Rejected(#[from] Rejected),
}

/// Reads a scenario file and lays `overrides` (`path=value`) on top.
///
/// # Errors
/// [`LoadError::Io`] where the file cannot be read, [`LoadError::Rejected`] with every fault found in it.
pub fn load(path: &Path, overrides: &[String]) -> Result<Loaded, LoadError> {
    let mut loader = Loader::default();
    let tree = loader.load(path).map_err(|error| LoadError::Io {
        path: path.display().to_string(),
        error,
    })?;
    Ok(finish(loader, tree, overrides)?)
}

/// Reads a scenario from a text called `name`; files it names are looked for in the current folder.
///
/// # Errors
/// [`Rejected`] with every fault found.
pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Loaded, Rejected> {
    let mut loader = Loader::default();
    let tree = loader.parse(name, text, Path::new(""));
    finish(loader, tree, overrides)
}

fn finish(
    mut loader: Loader,
    tree: Option<Node>,
    overrides: &[String],
) -> Result<Loaded, Rejected> {
    let mut scenario = None;
    if let Some(mut tree) = tree {
        for assignment in overrides {
            loader.set(&mut tree, assignment);
        }
        let mut reader = Reader::default();
        inherit_policies(&mut tree, &mut reader);
        scenario = Scenario::read(&tree, &mut reader);
        if let Some(scenario) = &scenario {
            checks::check(scenario, &tree, &mut reader);
        }
        loader.diagnostics.append(&mut reader.diagnostics);
    }
    let failed = loader
        .diagnostics
        .iter()
        .any(|d| d.severity == Severity::Error);
    match scenario {
        Some(scenario) if !failed => {
            let warnings = diagnostics::render(&loader.sources, &loader.diagnostics);
            Ok(Loaded { scenario, warnings })
        }
        _ => Err(Rejected {
            sources: loader.sources,
            diagnostics: loader.diagnostics,
        }),
    }
}

/// Follows `extends` between the policies of one file: a policy is laid over the one it names.
fn inherit_policies(tree: &mut Node, reader: &mut Reader) {
    let Value::Table(top) = &mut tree.value else {
        return;
    };
    let Some((_, policies)) = top.iter_mut().find(|(k, _)| k.name == "policy") else {
        return;
    };
    let Value::Table(entries) = &mut policies.value else {
        return;
    };
    for at in 0..entries.len() {
        let mut seen = vec![entries[at].0.name.clone()];
        while let Some(base) = entries[at].1.get("extends").cloned() {
            let Value::Text(name) = &base.value else {
                break;
            };
            let Some((_, below)) = entries.iter().find(|(k, _)| k.name == *name) else {
                let names = entries.iter().map(|(k, _)| k.name.as_str());
                let help = match diagnostics::nearest(name, names) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "it extends a policy of this scenario".into(),
                };
                reader.within("policy", |r| {
                    r.error(
                        &base.place,
                        format!("there is no policy \"{name}\""),
                        "unknown policy",
                        help,
                    )
                });
                break;
            };
            if seen.contains(name) {
                reader.within("policy", |r| {
                    r.error(
                        &base.place,
                        "a policy extends itself",
                        "goes round in a circle",
                        "remove one of the `extends`",
                    )
                });
                break;
            }
            seen.push(name.clone());
            let below = below.clone();
            let mut own = entries[at].1.clone();
            if let Value::Table(keys) = &mut own.value {
                keys.retain(|(k, _)| k.name != "extends");
            }
            entries[at].1 = tree::merge(below, own);
        }
        if let Value::Table(keys) = &mut entries[at].1.value {
            keys.retain(|(k, _)| k.name != "extends");
        }
    }
}

impl Scenario {
    /// The scenario as TOML with all defaults: what `pollpace check` prints.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&self.write()).unwrap_or_default()
    }

    /// A hash of what the scenario says, independent of how it was written (64 bits, FNV-1a over the form with all
    /// defaults and the values of the files it names). Seed and replications are part of it; threads and output are not.
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        hash.eat(self.to_toml().as_bytes());
        checks::each_empirical(self, &mut |e| {
            e.sorted
                .iter()
                .for_each(|x| hash.eat(&x.to_bits().to_le_bytes()))
        });
        hash.0
    }

    /// The JSON Schema (draft 2020-12) of a scenario file.
    pub fn json_schema() -> serde_json::Value {
        let serde_json::Value::Object(mut body) = <Scenario as Field>::schema() else {
            unreachable!("a record")
        };
        if let Some(properties) = body.get_mut("properties").and_then(|p| p.as_object_mut()) {
            let extends = serde_json::json!({ "type": "string", "description": "take over another file and override it" });
            properties.insert("extends".into(), extends);
        }
        // A file that extends another may leave out what the other has.
        body.remove("required");
        let mut schema = serde_json::Map::new();
        schema.insert(
            "$schema".into(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        schema.insert("title".into(), "pollpace scenario".into());
        schema.append(&mut body);
        serde_json::Value::Object(schema)
    }
}

/// FNV-1a, 64 bits.
pub(crate) struct Fnv(pub u64);

impl Fnv {
    pub fn eat(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Reads a text called `name` as any kind of record.
///
/// # Errors
/// [`Rejected`] with every fault found.
pub fn read<T: Field>(name: &str, text: &str) -> Result<T, Rejected> {
    let mut loader = Loader::default();
    let mut reader = Reader::default();
    let read = loader
        .parse(name, text, Path::new(""))
        .and_then(|tree| T::read(&tree, &mut reader));
    loader.diagnostics.append(&mut reader.diagnostics);
    match read {
        Some(value) if loader.diagnostics.is_empty() => Ok(value),
        _ => Err(Rejected {
            sources: loader.sources,
            diagnostics: loader.diagnostics,
        }),
    }
}
