//! What a planner writes: a TOML file, read strictly, with every fault told at its place.
//!
//! Three steps: [`tree`] turns text into values that know where they stand (following `extends`, laying `--set` on
//! top), [`fields`] and [`written`] turn values into typed tables, [`checks`] sees whether they fit together. What
//! comes out is a [`Scenario`] with every default filled in; nothing after this module can fail on input.

pub mod checks;
pub mod diagnostics;
pub mod distribution;
pub mod faults;
pub mod fields;
pub mod limits;
pub mod policy;
pub mod presets;
pub mod tree;
pub mod units;
pub mod written;

use std::collections::{HashMap, HashSet};
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
    /// An experiment that does not hang together.
    #[error("{path}: {wrong}")]
    Experiment {
        /// The experiment's file.
        path: String,
        /// What is wrong, and what would be right.
        wrong: String,
    },
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

/// A scenario file as one text, with everything that it extends laid into it and the paths in it resolved; its policies still extend each other, so that
/// overrides of it do what overrides of the file do.
///
/// # Errors
/// As for [`load`].
pub fn in_one_text(path: &Path) -> Result<String, LoadError> {
    let mut loader = Loader::default();
    let tree = loader.load(path).map_err(|error| LoadError::Io {
        path: path.display().to_string(),
        error,
    })?;
    match tree {
        Some(tree) if loader.diagnostics.is_empty() => {
            Ok(toml::to_string_pretty(&tree.plain()).unwrap_or_default())
        }
        _ => Err(LoadError::Rejected(Rejected {
            sources: loader.sources,
            diagnostics: loader.diagnostics,
        })),
    }
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
        // An override may name a preset, and the next one speak of it.
        presets::bring(&mut tree, &mut loader);
        for assignment in overrides {
            presets::bring_for(assignment, &mut tree, &mut loader);
            loader.set(&mut tree, assignment);
            presets::bring(&mut tree, &mut loader);
        }
        let mut reader = Reader::default();
        inherit_policies(&mut tree, &mut reader);
        scenario = Scenario::read(&tree, &mut reader);
        // Whether the parts fit together is asked where all of them could be read; else one slip would be told many times.
        if let Some(scenario) = &scenario
            && reader.diagnostics.is_empty()
        {
            checks::check(scenario, &tree, &mut reader);
        }
        loader.diagnostics.append(&mut reader.diagnostics);
    }
    // A fault in a policy shows again in those that extend it; once is enough.
    let mut told = HashSet::new();
    loader
        .diagnostics
        .retain(|d| told.insert((d.place.clone(), d.label.clone(), d.help.clone())));
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

/// Follows `extends` between the policies of one file: a policy is laid over the one it names. Then bases stand before
/// those that extend them, so that a fault is told of the policy that has it.
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
    let mut depths = HashMap::new();
    for at in 0..entries.len() {
        let path = format!("policy.{}.extends", entries[at].0.name);
        let mut seen = vec![entries[at].0.name.clone()];
        while let Some(base) = entries[at].1.get("extends").cloned() {
            let wrong = |reader: &mut Reader, wrong: String, found: &str, right: String| {
                reader.within(&path, |r| r.error(&base.place, wrong, found, right));
            };
            let Value::Text(name) = &base.value else {
                reader.within(&path, |r| String::read(&base, r));
                break;
            };
            let Some((_, below)) = entries.iter().find(|(k, _)| k.name == *name) else {
                let mut names: Vec<&str> = entries.iter().map(|(k, _)| k.name.as_str()).collect();
                names.extend(presets::near(name, &names));
                let right = presets::or_one(checks::suggestion(name, &names, "policies"));
                let there_is = format!("there is no [policy.{name}]");
                wrong(reader, there_is, "unknown policy", right);
                break;
            };
            if seen.contains(name) {
                let right = "remove one of the `extends`".into();
                let itself = "this policy extends itself".into();
                wrong(reader, itself, "goes round in a circle", right);
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
        depths.insert(entries[at].0.name.clone(), seen.len());
    }
    entries.sort_by_key(|(key, _)| depths[&key.name]);
}

impl Scenario {
    /// The scenario as TOML with all defaults: what `pollpace check` prints.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&self.write()).unwrap_or_default()
    }

    /// A hash of what the scenario says, independent of how it was written (64 bits, FNV-1a over the form with all
    /// defaults). Seed and replications are part of it; threads, output and the title are not. Of the files it names
    /// the values count, not where they stand.
    pub fn hash(&self) -> u64 {
        let mut said = self.write();
        if let Some(toml::Value::Table(top)) = &mut said {
            top.remove("title");
        }
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        if let Some(mut said) = said {
            forget_files(&mut said);
            hash.eat(said.to_string().as_bytes());
        }
        checks::each_empirical(self, &mut |e| {
            hash.eat(&(e.sorted.len() as u64).to_le_bytes());
            e.sorted
                .iter()
                .for_each(|x| hash.eat(&x.to_bits().to_le_bytes()))
        });
        hash.0
    }

    /// The JSON Schema (draft 2020-12) of a scenario file. A file that `extends` another may leave out what the other has.
    pub fn json_schema() -> serde_json::Value {
        let mut whole = <Scenario as Field>::schema();
        let extends = serde_json::json!({ "type": "string", "description": "take over another file and override it" });
        whole["properties"]["extends"] = extends;
        let mut part = whole.clone();
        forget_required(&mut part);
        serde_json::json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "pollpace scenario",
            "if": { "type": "object", "required": ["extends"] },
            "then": part,
            "else": whole,
        })
    }
}

/// Drops every `required`.
fn forget_required(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(map) => {
            map.retain(|key, value| key != "required" || !value.is_array());
            map.values_mut().for_each(forget_required);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(forget_required),
        _ => {}
    }
}

/// Drops the description of every CSV column, whose values are hashed themselves.
fn forget_files(value: &mut toml::Value) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                match value {
                    toml::Value::Table(column)
                        if ["empirical", "recorded"].contains(&&**key)
                            && column.contains_key("file") =>
                    {
                        column.clear();
                    }
                    _ => forget_files(value),
                }
            }
        }
        toml::Value::Array(items) => items.iter_mut().for_each(forget_files),
        _ => {}
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
