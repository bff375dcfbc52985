//! The poll loops of real hosts, as policies that come with the program: `policy = "fastmcp-4.x"` works in any scenario.
//!
//! Each is a file of `models/policies/`, which says what it is, for which versions it holds, where its code was read and how sure that is.

use std::path::Path;
use std::sync::LazyLock;

use super::diagnostics::{Diagnostic, Severity, nearest};
use super::fields::{choice, record};
use super::tree::{self, Key, Loader, Node, Value};
use super::written::Policy;

record! {
    /// The poll loop of a real host.
    pub struct Preset {
        /// What it is, in a sentence or two.
        about: String,
        /// What kind of loop.
        kind: LoopKind,
        /// The versions it holds for.
        versions: String,
        /// Where its code was read.
        source: String,
        /// How sure that is.
        evidence: Evidence,
        /// What it does and the policy below does not say.
        limits: Vec<String>,
        /// The loop.
        policy: Policy,
    }
}

choice! {
    /// What kind of loop a preset is.
    pub enum LoopKind {
        words {
            /// A host polls a server.
            "host_loop" => HostLoop,
            /// A server polls its own store.
            "server_poller" => ServerPoller,
            /// A rule or a specification that leaves a part of a loop open.
            "not_a_loop" => NotALoop,
        }
        tables {}
    }
}

choice! {
    /// How sure a preset is.
    pub enum Evidence {
        words {
            /// The code was run.
            "executed" => Executed,
            /// The code was read.
            "read" => Read,
            /// Neither.
            "unverified" => Unverified,
        }
        tables {}
    }
}

/// The files: name and text.
static FILES: &[(&str, &str)] = &[
    ("anda", include_str!("../../models/policies/anda.toml")),
    (
        "anolisa-cosh-ng",
        include_str!("../../models/policies/anolisa-cosh-ng.toml"),
    ),
    (
        "apify-mcpc-legacy",
        include_str!("../../models/policies/apify-mcpc-legacy.toml"),
    ),
    (
        "apify-mcpc-modern",
        include_str!("../../models/policies/apify-mcpc-modern.toml"),
    ),
    (
        "azure-core-lropoller",
        include_str!("../../models/policies/azure-core-lropoller.toml"),
    ),
    (
        "botocore-waiter",
        include_str!("../../models/policies/botocore-waiter.toml"),
    ),
    (
        "csharp-1.x",
        include_str!("../../models/policies/csharp-1.x.toml"),
    ),
    (
        "csharp-2.x",
        include_str!("../../models/policies/csharp-2.x.toml"),
    ),
    (
        "fastmcp-2.14-3.x",
        include_str!("../../models/policies/fastmcp-2.14-3.x.toml"),
    ),
    (
        "fastmcp-4.0.0-beta-pr4550",
        include_str!("../../models/policies/fastmcp-4.0.0-beta-pr4550.toml"),
    ),
    (
        "fastmcp-4.x",
        include_str!("../../models/policies/fastmcp-4.x.toml"),
    ),
    ("ggcode", include_str!("../../models/policies/ggcode.toml")),
    (
        "google-api-core-python",
        include_str!("../../models/policies/google-api-core-python.toml"),
    ),
    (
        "google-cloud-go-longrunning",
        include_str!("../../models/policies/google-cloud-go-longrunning.toml"),
    ),
    (
        "google-cloud-rust-lro",
        include_str!("../../models/policies/google-cloud-rust-lro.toml"),
    ),
    (
        "k8s-poll-until-context-timeout",
        include_str!("../../models/policies/k8s-poll-until-context-timeout.toml"),
    ),
    (
        "mark3labs-kit",
        include_str!("../../models/policies/mark3labs-kit.toml"),
    ),
    (
        "mcp-go-waitfortask",
        include_str!("../../models/policies/mcp-go-waitfortask.toml"),
    ),
    (
        "mcp-py-1.x",
        include_str!("../../models/policies/mcp-py-1.x.toml"),
    ),
    (
        "mcp-py-pr3005",
        include_str!("../../models/policies/mcp-py-pr3005.toml"),
    ),
    (
        "mcp-ts-sdk-1.x-client",
        include_str!("../../models/policies/mcp-ts-sdk-1.x-client.toml"),
    ),
    (
        "mcp-ts-sdk-1.x-server-autopoll",
        include_str!("../../models/policies/mcp-ts-sdk-1.x-server-autopoll.toml"),
    ),
    (
        "mcp-ts-sdk-1.x-server-tasks-result-wait",
        include_str!("../../models/policies/mcp-ts-sdk-1.x-server-tasks-result-wait.toml"),
    ),
    (
        "mcpjam-driver",
        include_str!("../../models/policies/mcpjam-driver.toml"),
    ),
    (
        "mcpjam-taskstab",
        include_str!("../../models/policies/mcpjam-taskstab.toml"),
    ),
    (
        "openai-node",
        include_str!("../../models/policies/openai-node.toml"),
    ),
    (
        "openai-python",
        include_str!("../../models/policies/openai-python.toml"),
    ),
    (
        "rfc8628-golang-oauth2",
        include_str!("../../models/policies/rfc8628-golang-oauth2.toml"),
    ),
    (
        "rfc8628-oauth2-rs",
        include_str!("../../models/policies/rfc8628-oauth2-rs.toml"),
    ),
    (
        "rfc8628-spec",
        include_str!("../../models/policies/rfc8628-spec.toml"),
    ),
    ("rmcp", include_str!("../../models/policies/rmcp.toml")),
    (
        "ruby-mcp-client",
        include_str!("../../models/policies/ruby-mcp-client.toml"),
    ),
    (
        "smithy-go",
        include_str!("../../models/policies/smithy-go.toml"),
    ),
    (
        "smithy-rs",
        include_str!("../../models/policies/smithy-rs.toml"),
    ),
    (
        "strands-py",
        include_str!("../../models/policies/strands-py.toml"),
    ),
    (
        "terraform-statechangeconf",
        include_str!("../../models/policies/terraform-statechangeconf.toml"),
    ),
    (
        "urllib3-retry-after",
        include_str!("../../models/policies/urllib3-retry-after.toml"),
    ),
    ("vscode", include_str!("../../models/policies/vscode.toml")),
];

/// The presets, by name.
static PRESETS: LazyLock<Vec<(&'static str, Preset)>> = LazyLock::new(|| {
    let read = |(name, text): &(&'static str, &'static str)| {
        let preset = super::read::<Preset>(&file_name(name), text);
        preset.ok().map(|preset| (*name, preset))
    };
    FILES.iter().filter_map(read).collect()
});

/// All presets with their names, in alphabetical order.
pub fn all() -> &'static [(&'static str, Preset)] {
    &PRESETS
}

/// The preset of this name.
pub fn find(name: &str) -> Option<&'static Preset> {
    let place = PRESETS.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(&PRESETS[place].1)
}

/// The text of a preset's file.
pub fn text(name: &str) -> Option<&'static str> {
    let place = FILES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(FILES[place].1)
}

/// Where a preset's file stands among the sources.
pub fn file_name(name: &str) -> String {
    format!("models/policies/{name}.toml (built in)")
}

/// Lays the presets that tenants follow or policies extend beside the policies of the file, where it has none of that name. A policy that extends its own name
/// extends the preset; one that only bears the name of a preset is told.
pub(super) fn bring(tree: &mut Node, loader: &mut Loader) {
    let said = |node: Option<&Node>| match node.map(|n| &n.value) {
        Some(Value::Text(name)) => Some(name.clone()),
        _ => None,
    };
    let mut named = Vec::new();
    if let Some(Value::Array(tenants)) = tree.get("tenant").map(|n| &n.value) {
        named.extend(tenants.iter().filter_map(|t| said(t.get("policy"))));
    }
    if let Some(Value::Table(policies)) = tree.get("policy").map(|n| &n.value) {
        named.extend(policies.iter().filter_map(|(_, p)| said(p.get("extends"))));
    }
    for name in named {
        bring_one(&name, tree, loader);
    }
    let Some(policies) = policies(tree) else {
        return;
    };
    for (key, own) in policies {
        let Some(preset) = policy_of(&key.name, loader) else {
            continue;
        };
        // The preset itself has been brought before.
        if own.place.source == preset.place.source {
            continue;
        }
        if said(own.get("extends")).as_ref() == Some(&key.name) {
            if let Value::Table(keys) = &mut own.value {
                keys.retain(|(k, _)| k.name != "extends");
            }
            *own = tree::merge(preset, own.clone());
        } else if own.get("extends").is_none() && own.place.source == key.place.source {
            loader.diagnostics.push(Diagnostic {
                severity: Severity::Warning,
                place: key.place.clone(),
                message: format!("policy.{}: a preset has this name, too", key.name),
                label: "stands in its place, whole".into(),
                help: format!(
                    "add extends = \"{}\" to change the preset, or choose another name",
                    key.name
                ),
            });
        }
    }
}

/// Brings the preset that an override speaks of: `policy.NAME.…=…`.
pub(super) fn bring_for(assignment: &str, tree: &mut Node, loader: &mut Loader) {
    let path = assignment.split('=').next().unwrap_or_default();
    let parts = tree::parts(path);
    if parts.first().is_none_or(|first| first != "policy") {
        return;
    }
    let names = (2..=parts.len()).rev().map(|end| parts[1..end].join("."));
    if let Some(name) = names.into_iter().find(|name| text(name).is_some()) {
        bring_one(&name, tree, loader);
    }
}

/// Adds a preset's policy, if there is one of that name and the file has none.
fn bring_one(name: &str, tree: &mut Node, loader: &mut Loader) {
    if tree.get("policy").is_some_and(|p| p.get(name).is_some()) {
        return;
    }
    let Some(policy) = policy_of(name, loader) else {
        return;
    };
    let key = |name: &str| Key {
        name: name.into(),
        place: policy.place.clone(),
        layer: 0,
    };
    let Value::Table(top) = &mut tree.value else {
        return;
    };
    if !top.iter().any(|(k, _)| k.name == "policy") {
        let none = Node {
            value: Value::Table(Vec::new()),
            place: policy.place.clone(),
        };
        top.push((key("policy"), none));
    }
    if let Some(policies) = policies(tree) {
        policies.push((key(name), policy.clone()));
    }
}

/// The policies of a file.
fn policies(tree: &mut Node) -> Option<&mut Vec<(Key, Node)>> {
    let Value::Table(top) = &mut tree.value else {
        return None;
    };
    let (_, policies) = top.iter_mut().find(|(k, _)| k.name == "policy")?;
    match &mut policies.value {
        Value::Table(entries) => Some(entries),
        _ => None,
    }
}

/// The policy of a preset, as read from its file, which is read once.
fn policy_of(name: &str, loader: &mut Loader) -> Option<Node> {
    let file = text(name)?;
    let source = file_name(name);
    let known = loader.sources.iter().position(|s| s.name == source);
    let read = loader.parse(&source, file, Path::new(""))?;
    let mut policy = read.get("policy")?.clone();
    if let Some(known) = known {
        loader.sources.pop();
        policy.stands_in(known);
    }
    Some(policy)
}

/// The preset that `name` may have meant, where it is nearer than any of `others`.
pub fn near(name: &str, others: &[&str]) -> Option<&'static str> {
    let mut names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    names.extend(others);
    let near = nearest(name, names.iter().copied())?;
    let place = FILES.binary_search_by_key(&near, |(name, _)| name).ok()?;
    Some(FILES[place].0)
}

/// A help that names policies, with a word of presets.
pub(super) fn or_one(help: String) -> String {
    if help.starts_with("did you mean") {
        return help;
    }
    format!("{help}; or take a preset: `pollpace policies` lists them")
}

/// What to write where no preset is called `name`.
pub fn suggestion(name: &str) -> String {
    let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"? `pollpace policies` lists them all"),
        None => "`pollpace policies` lists them all".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_here_and_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/policies");
        let files = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = files
            .map(|f| {
                f.unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into()
            })
            .collect();
        names.sort();
        let here: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(here, names);
        for (name, text) in FILES {
            if let Err(wrong) = super::super::read::<Preset>(&file_name(name), text) {
                panic!("{wrong}");
            }
            assert_eq!(find(name).unwrap().policy.timer.overhead.0, 0, "{name}");
        }
    }
}
