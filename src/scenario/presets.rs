//! The poll loops of real hosts, as policies that come with the program: `policy = "fastmcp-4.x"` works in any scenario.
//!
//! Each is a file of `models/policies/`, which says what it is, for which versions it holds, where its code was read and how sure that is.

use std::sync::LazyLock;

use super::diagnostics::nearest;
use super::fields::{choice, record};
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
    format!("models/policies/{name}.toml")
}

/// The preset that `name` may have meant, where it is nearer than any of `others`.
pub fn near(name: &str, others: &[&str]) -> Option<&'static str> {
    let mut names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    names.extend(others);
    let near = nearest(name, names.iter().copied())?;
    let place = FILES.binary_search_by_key(&near, |(name, _)| name).ok()?;
    Some(FILES[place].0)
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
