//! The format from the outside: the published JSON Schema fits what is shipped, a scenario that is printed reads back as
//! the same, and its hash follows what it says and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use pollpace::experiment::plan::Experiment;
use pollpace::scenario::distribution::{Kind, Written};
use pollpace::scenario::fields::Span;
use pollpace::scenario::units::Duration;
use pollpace::scenario::written::Jitter;
use pollpace::scenario::{Scenario, load, parse};
use serde_json::Value;

/// Most of what the format can say, in one scenario.
const RICH: &str = include_str!("schema/rich.toml");

/// Every TOML file in `folder` and below.
fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(toml_files(&path));
        } else if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The shipped models: path and text.
fn models() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let files = toml_files(&folder).into_iter();
    files
        // Those are loops, not fleets.
        .filter(|path| !path.starts_with(folder.join("policies")))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a text");
            (path, text)
        })
        .collect()
}

/// TOML as JSON; what JSON cannot say (`nan`, `inf`) is left out.
fn json(value: toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(i) => i.into(),
        toml::Value::Float(x) => serde_json::Number::from_f64(x)?.into(),
        toml::Value::Boolean(b) => Value::Bool(b),
        toml::Value::Datetime(d) => Value::String(d.to_string()),
        toml::Value::Array(items) => items.into_iter().filter_map(json).collect(),
        toml::Value::Table(table) => {
            let entries = table.into_iter();
            Value::Object(entries.filter_map(|(k, v)| Some((k, json(v)?))).collect())
        }
    })
}

/// What the schema has against a text.
fn faults(text: &str) -> Vec<String> {
    let schema = Scenario::json_schema();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let table: toml::Table = text.parse().expect("TOML");
    let instance = json(toml::Value::Table(table)).expect("JSON");
    let errors = validator.iter_errors(&instance);
    errors
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

#[test]
fn the_schema_fits_the_shipped_models() {
    let mut validated = 0;
    for (path, text) in models() {
        let table: toml::Table = text.parse().expect("TOML");
        if table.contains_key("extends") {
            continue;
        }
        assert_eq!(faults(&text), [""; 0], "{}", path.display());
        validated += 1;
    }
    assert!(validated > 0, "no model was found");
}

#[test]
fn the_schema_fits_most_of_what_can_be_said() {
    assert_eq!(faults(RICH), [""; 0]);
    assert_eq!(faults(include_str!("wrong_files/right.toml")), [""; 0]);
}

#[test]
fn the_schema_knows_wrong_from_right() {
    for (right, wrong) in [
        ("seed = 11", "sead = 11"),
        ("replications = 3", "replications = 0"),
        ("horizon = \"10min\"", "horizon = 600"),
        ("jitter = \"full\"", "jitter = \"ful\""),
        ("step = \"1s\", cap", "cap"),
    ] {
        assert_eq!(RICH.matches(right).count(), 1, "{right} stands once");
        assert!(
            !faults(&RICH.replace(right, wrong)).is_empty(),
            "{wrong} passes"
        );
    }
}

#[test]
fn the_schema_of_experiments_fits_those_that_are_shipped_and_knows_wrong_from_right() {
    let schema = Experiment::json_schema();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let fits = |text: &str| {
        let table: toml::Table = text.parse().expect("TOML");
        validator.is_valid(&json(toml::Value::Table(table)).expect("JSON"))
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files = toml_files(&folder);
    assert!(!files.is_empty(), "no experiment was found");
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        assert!(fits(&text), "{}", file.display());
    }
    let right = "scenario = \"fleet.toml\"\nwarm_up = \"mser5\"\n[[axis]]\nname = \"hosts\"\npath = \"tenant.t.count\"\nrange = { from = 1, to = 9, points = 3, scale = \"logarithmic\" }";
    assert!(fits(right));
    for (one, wrong) in [
        ("scenario = \"fleet.toml\"", "scenario = 3"),
        ("name", "nam"),
        ("mser5", "mser6"),
        ("points = 3", "points = 0"),
        ("from = 1, ", ""),
    ] {
        assert_eq!(right.matches(one).count(), 1, "{one} stands once");
        assert!(!fits(&right.replace(one, wrong)), "{wrong} passes");
    }
}

/// The scenario that a scenario's print says.
fn printed_and_read(scenario: &Scenario) -> Scenario {
    let printed = scenario.to_toml();
    match parse("printed.toml", &printed, &[]) {
        Ok(loaded) => loaded.scenario,
        Err(rejected) => panic!("{rejected}\n{printed}"),
    }
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    let mut scenarios = vec![parse("rich.toml", RICH, &[]).expect("it is right").scenario];
    for (path, text) in models() {
        let table: toml::Table = text.parse().expect("TOML");
        // A file without a run is a part for others to extend.
        if table.contains_key("run") || table.contains_key("extends") {
            scenarios.push(load(&path, &[]).expect("it is right").scenario);
        }
    }
    assert!(scenarios.len() > 1, "no model was found");
    for scenario in scenarios {
        let again = printed_and_read(&scenario);
        // Compared as printed where a hint is `nan`, which differs from itself.
        if !scenario.to_toml().contains("nan") {
            assert_eq!(again, scenario);
        }
        assert_eq!(again.to_toml(), scenario.to_toml());
        assert_eq!(again.hash(), scenario.hash());
    }
}

fn hash(text: &str) -> u64 {
    parse("rich.toml", text, &[])
        .expect("it is right")
        .scenario
        .hash()
}

#[test]
fn the_hash_follows_neither_comments_nor_the_order_of_keys_nor_the_title_nor_spelling() {
    for (one, same) in [
        ("seed = 11", "# eleven\nseed = 11"),
        (
            "seed = 11\nhorizon = \"10min\"",
            "horizon = \"10min\"\nseed = 11",
        ),
        ("title = \"Most\"", "title = \"Least\""),
        ("horizon = \"10min\"", "horizon = \"600s\""),
        ("{ weight = 3, value = 0 }", "{ value = 0.0, weight = 3.0 }"),
        ("drain = \"all\"\n", ""),
        (
            "jitter = \"full\"\nfloor = \"1s\"",
            "floor = \"1s\"\njitter = \"full\"",
        ),
    ] {
        assert_eq!(RICH.matches(one).count(), 1, "{one} stands once");
        assert_eq!(
            hash(RICH),
            hash(&RICH.replace(one, same)),
            "{one} or {same}"
        );
    }
}

#[test]
fn the_hash_follows_what_is_said() {
    for (one, other) in [
        ("seed = 11", "seed = 12"),
        ("horizon = \"10min\"", "horizon = \"601s\""),
        ("{ weight = 3, value = 0 }", "{ weight = 3, value = 1 }"),
        ("replications = 3", "replications = 4"),
    ] {
        assert_ne!(hash(RICH), hash(&RICH.replace(one, other)), "{other}");
    }
}

#[test]
fn the_hash_follows_measurements_but_not_where_they_stand() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let measured = |name: &str, csv: &str| {
        let home = folder.path().join(name);
        fs::create_dir(&home).expect("a folder");
        fs::write(home.join("measured.csv"), csv).expect("a file");
        let text = RICH.replace(
            "duration = { weibull = { scale = \"30s\", shape = 1.5 } }",
            "duration = { empirical = { file = \"measured.csv\", column = \"ms\" } }",
        );
        let path = home.join("fleet.toml");
        fs::write(&path, text).expect("a file");
        let scenario = load(&path, &[]).expect("it is right").scenario;
        assert_eq!(printed_and_read(&scenario).hash(), scenario.hash());
        scenario.hash()
    };
    let here = measured("here", "ms\n250\n500\n");
    assert_eq!(here, measured("there", "ms\n500\n250\n"));
    assert_ne!(here, measured("elsewhere", "ms\n250\n501\n"));
    assert_ne!(here, hash(RICH));
}

#[test]
fn what_is_laid_on_top_takes_the_place_of_another_choice() {
    let said = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|o| o.to_string()).collect();
        match parse("rich.toml", RICH, &overrides) {
            Ok(loaded) => loaded.scenario,
            Err(rejected) => panic!("{rejected}"),
        }
    };
    // A policy that extends another, in the same file, may choose another jitter.
    let jitter = |scenario: &Scenario| scenario.policy["calm"].jitter.clone();
    let ms = |ms: u64| Duration(ms * 1_000_000);
    assert_eq!(jitter(&said(&[])), Jitter::Additive(Span(ms(50))));
    // So may an override, twice; and it may give a gamma in the other way.
    let set = said(&[
        "policy.calm.jitter.minus=10ms",
        "policy.calm.jitter.window=20ms",
        "tenant.burst.duration.gamma.scale=5s",
        "tenant.burst.duration.gamma.shape=2",
    ]);
    assert_eq!(jitter(&set), Jitter::Window(ms(20)));
    let Kind::Gamma { written, .. } = set.tenant[1].duration.kind else {
        panic!("a gamma")
    };
    assert_eq!(written, Written::Natural(ms(5000), 2.0));
}
