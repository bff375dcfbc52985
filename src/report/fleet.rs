//! A fleet in words, and its policies as snippets to paste.

use std::collections::BTreeSet;

use super::format;
use crate::experiment::plan::{Cell, Plan};
use crate::scenario::fields::Field;
use crate::scenario::policy::Policy;
use crate::scenario::written::{HintPart, HintRef, Server, Tenant, Wire};
use crate::scenario::{self, Scenario, tree};

/// Tenants, servers and hints, a line each.
pub fn in_words(scenario: &Scenario) -> Vec<String> {
    let list = |what: &str, parts: Vec<String>| format!("{what}: {}.", parts.join("; "));
    let hints: Vec<String> = scenario.server.iter().map(|s| hint(s, scenario)).collect();
    vec![
        list("Tenants", scenario.tenant.iter().map(tenant).collect()),
        list("Servers", scenario.server.iter().map(server).collect()),
        list("Hints", hints),
    ]
}

fn tenant(tenant: &Tenant) -> String {
    let abort = tenant.abort.as_ref().map_or(String::new(), |abort| {
        let share = format::number(Some(100.0 * abort.probability.0));
        let after = abort.after.as_ref();
        let parts = [
            after.map(|after| format!("{share} % aborted after {}", shown(after))),
            abort.shutdown_at.map(|at| format!("a shutdown at {at}")),
            abort.deadline.map(|age| format!("a deadline of {age}")),
        ];
        let parts = parts.into_iter().flatten();
        parts.map(|part| format!(", {part}")).collect()
    });
    format!(
        "{} × {} (arrivals {}, durations {}{abort})",
        tenant.count.0,
        tenant.name,
        shown(&tenant.arrivals),
        shown(&tenant.duration)
    )
}

fn server(server: &Server) -> String {
    let station = &server.tasks_get;
    format!(
        "{} × {} ({} worker{}, service {}, one-way delay {})",
        server.count.0,
        server.name,
        station.workers.0,
        if station.workers.0 == 1 { "" } else { "s" },
        shown(&station.service),
        shown(&server.delay)
    )
}

fn hint(server: &Server, scenario: &Scenario) -> String {
    let said = match &server.hint {
        None => "none".into(),
        Some(HintRef::Constant(ms)) => format!("{ms} ms"),
        Some(HintRef::Name(name)) => match scenario.hint.get(name) {
            Some(hint) if hint.steps.is_empty() => {
                let sum: f64 = hint.mix.iter().map(|p| p.weight.0).sum();
                let part = |p: &HintPart| {
                    let share = (1000.0 * p.weight.0 / sum).round() / 10.0;
                    format!("{share} % {}", wire(&p.wire))
                };
                let parts: Vec<String> = hint.mix.iter().map(part).collect();
                format!(
                    "{}, {}",
                    parts.join(", "),
                    shown(&hint.drawn).replace('_', " ")
                )
            }
            Some(hint) => shown(&hint.drawn).replace('_', " "),
            None => name.clone(),
        },
    };
    format!("{} gives {said}", server.name)
}

fn wire(wire: &Wire) -> String {
    match wire {
        Wire::Ms(distribution) => format!("{} ms", shown(distribution)),
        Wire::Absent => "absent".into(),
        Wire::Null => "null".into(),
        Wire::Value(x) => x.to_string(),
        Wire::Text(text) => format!("{text:?}"),
    }
}

/// A value as it would stand in the scenario, short: a distribution without what it does not use.
fn shown(field: &impl Field) -> String {
    field.write().map_or(String::new(), |value| short(&value))
}

fn short(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Table(entries) => {
            let entry = |(key, value): (&String, &toml::Value)| match value {
                toml::Value::Table(_) => format!("{key} ({})", short(value)),
                _ => format!("{key} {}", short(value)),
            };
            entries.iter().map(entry).collect::<Vec<_>>().join(", ")
        }
        toml::Value::Float(x) => x.to_string(),
        other => other.to_string(),
    }
}

/// What a cell sets, as TOML and as JSON: whole policies without what is at its default, other values by their paths.
pub fn snippets(plan: &Plan, cell: &Cell) -> (String, String) {
    let path = |set: &str| {
        set.split_once('=')
            .map_or(String::new(), |(p, _)| p.trim().to_string())
    };
    let base = &plan.experiment.set;
    let own = cell.overrides.iter().filter(|set| !base.contains(set));
    let own: Vec<&String> = own.filter(|set| !path(set).starts_with("run.")).collect();
    let named = |set: &&String| tree::parts(&path(set)).into_iter().nth(1);
    let policies: BTreeSet<String> = own
        .iter()
        .filter(|set| path(set).starts_with("policy."))
        .filter_map(named)
        .collect();
    let mut bodies = toml::Table::new();
    for name in policies {
        if let Some(policy) = cell.scenario.policy.get(&name) {
            bodies.insert(name, bare(policy).into());
        }
    }
    let mut all = toml::Table::new();
    if !bodies.is_empty() {
        all.insert("policy".into(), bodies.into());
    }
    let mut text = toml::to_string(&all).unwrap_or_default();
    let mut json = serde_json::json!(all);
    for set in own.iter().filter(|set| !path(set).starts_with("policy.")) {
        if let Some((path, value)) = set.split_once('=') {
            text.push_str(&format!("# {path} = {value}\n"));
            // The value is TOML, as on the command line; what is none is text.
            let read = format!("value = {value}").parse::<toml::Table>();
            json[path] = read.map_or(value.into(), |table| serde_json::json!(table["value"]));
        }
    }
    let json = serde_json::to_string_pretty(&json).unwrap_or_default();
    (text.trim_end().to_string(), json)
}

/// A policy without what is at its default; its own `default` is put inside its bounds, which is where it takes effect.
fn bare(policy: &Policy) -> toml::Table {
    let mut inside = policy.clone();
    inside.default = inside.default.max(inside.floor.unwrap_or(inside.default));
    inside.default = inside.default.min(inside.ceiling.unwrap_or(inside.default));
    inside.extends = None;
    let table = |policy: &Policy| match policy.write() {
        Some(toml::Value::Table(table)) => table,
        _ => toml::Table::new(),
    };
    let untouched = scenario::read::<Policy>("policy", "");
    let untouched = untouched.as_ref().map(table).unwrap_or_default();
    let kept = |(key, value): &(String, toml::Value)| {
        key == "default" || untouched.get(key) != Some(value)
    };
    table(&inside).into_iter().filter(kept).collect()
}
