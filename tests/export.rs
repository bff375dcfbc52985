//! Exported policies, run by Node.js and Python, decide as the policies themselves do: to the nanosecond, over random hints, answers and states.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pollpace::export::{Language, export};
use pollpace::model::compile_policy;
use pollpace::policy::{Decision, LoopEnd, Policy, RawHint, Saw, State};
use pollpace::random::mix;
use pollpace::scenario::policy::Policy as Written;
use pollpace::scenario::presets;

#[path = "common/python.rs"]
mod python;

use python::{printed, python};

/// Steps of each policy.
const STEPS: u64 = 10_000;

/// Envelopes with every stage in every form, beside the presets.
const ENVELOPES: [&str; 8] = [
    "default = \"1s\"\non_timeout = \"polls_on\"\nfloor = \"500ms\"\nceiling = \"5s\"\njitter = { proportional = 0.1 }\nbackoff = { geometric = { factor = 1.5, cap = \"30s\" } }",
    "floor = \"250ms\"\nceiling = \"60s\"\njitter = \"full\"\nabsent = \"keep_last\"\nbackoff = { additive = { step = \"333ms\", cap = \"1h\" } }\nbackoff_reset = \"on_change_or_error\"\nbounds = \"before_jitter\"",
    "role = \"floor\"\ndefault = \"2s\"\nceiling = \"30s\"\nceiling_covers = \"own_terms\"\nabsent = \"creation\"\njitter = { additive = \"700ms\" }\nerror_backoff = { initial = \"1s\", factor = 2, cap = \"60s\" }\nmax_errors = 7",
    "read = \"creation\"\njitter = { decorrelated = 3 }\nceiling = \"20s\"\nerror_backoff = { factor = 2, cap = \"10s\", sticks = true }\nfirst_poll = \"at_once\"",
    "read = \"first_answer\"\njitter = { window = \"100ms\" }\njitter_step = \"70ms\"\nbackoff = { steps = [{ waits = 3, wait = \"100ms\" }, { waits = 2, wait = \"1s\" }] }\nbackoff_reset = \"never\"\nfirst_poll = { after = \"300ms\" }",
    "rules = [{ class = \"text\", then = \"parse\" }, { min = 7, max = 9, then = \"ceiling\" }, { json = \"integer\", max = 1000, then = \"round\" }, { class = \"beyond_i64_ns\", then = \"wrap_i64_ns\" }, { class = \"negative\", then = \"forget\" }, { json = \"null\", then = \"forever\" }, { then = \"round\" }]\nfloor = \"1ms\"\nceiling = \"1d\"\nabsent = \"keep_last\"\njitter = { minus = \"250ms\" }",
    "rules = [{ then = \"wrap_i32_timer\" }]\njitter = \"equal\"\ntimer = { quantum = \"15ms\", minimum = \"1ms\", maximum = \"20s\", beyond = \"forever\" }\nbounds = \"before_backoff\"\nbackoff = { geometric = { initial = \"20ms\", factor = 1.7 } }\nbackoff_of = \"without_hint\"\nslow_down = \"1234567ns\"",
    "rules = [{ then = \"wrap_i64_ns\" }]\nmax_questions = 3\nstuck_after = 4\non_question = \"polls_once_more\"\nfloor = \"123456789ns\"\nerror_backoff = { initial = \"50ms\", factor = 3, reset = \"never\", sticks = true }",
];

/// Hints as JSON, with what the policy sees; `None` where the key is left out.
fn hint(r: u64) -> (Option<String>, RawHint) {
    let number = |text: String| {
        let value = text.parse().unwrap();
        (Some(text), RawHint::Number(value))
    };
    let text = |text: &str, read: f64| (Some(text.to_string()), RawHint::Text(read));
    let size = mix(r ^ 5);
    match r % 24 {
        0..=2 => (None, RawHint::Absent),
        3 => (Some("null".into()), RawHint::Null),
        4 => number("0".into()),
        5 => number(format!("-{}", size % 10)),
        6 => number(format!("{}.{}", size % 5000, size % 997)),
        7 => number(format!("{}", 2_147_483_640 + size % 16)),
        8 => number(format!("{}", 9_223_372_036_850 + size % 10)),
        9 => number(format!("{}e{}", 1 + size % 9, size % 45)),
        10 => number("1e400".into()),
        11 => number(format!("{}.5", size % 12)),
        12 => text("\"soon\"", f64::NAN),
        13 => text("\" 1500 \"", 1500.0),
        14 if size.is_multiple_of(2) => text("\"\\u00a07\"", f64::NAN),
        14 => text("\"12.5e2\"", 1250.0),
        15 => text("true", f64::NAN),
        16 => text("{\"ms\": 5}", f64::NAN),
        17 => number(format!("-{}.25", size % 3)),
        _ => number(format!("{}", size % 8000)),
    }
}

/// A step: as JSON, and as the policy sees it.
fn step(number: u64) -> (String, Saw, u64) {
    let r = mix(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (json, raw) = hint(mix(r ^ 1));
    let u = match r % 50 {
        0 => 0,
        1 => u64::MAX,
        _ => mix(r ^ 2),
    };
    let new = mix(r ^ 3).is_multiple_of(3);
    let (name, saw) = match mix(r ^ 4) % 40 {
        _ if number == 0 => ("created", Saw::Created(raw)),
        0 => ("created", Saw::Created(raw)),
        1..=3 => ("error", Saw::Error),
        4 => ("timed_out", Saw::TimedOut),
        5 => ("slow_down", Saw::SlowDown),
        6..=8 => ("asks", Saw::Asks { hint: raw, new }),
        9..=11 => ("changed", Saw::Changed(raw)),
        _ => ("unchanged", Saw::Unchanged(raw)),
    };
    let hint = json.map_or(String::new(), |json| format!("\"hint\":{json},"));
    let line = format!("{{\"saw\":\"{name}\",{hint}\"u\":\"{u}\",\"is_new\":{new}}}");
    (line, saw, u)
}

/// The steps of a policy and what it decides.
fn play(policy: &Policy, seed: u64) -> (String, String) {
    let (mut steps, mut decided) = (String::new(), String::new());
    let mut state = State::default();
    for number in 0..STEPS {
        let (line, saw, u) = step(if number == 0 { 0 } else { seed << 32 | number });
        if matches!(saw, Saw::Created(_)) {
            state = State::default();
        }
        let _ = writeln!(steps, "{line}");
        let _ = match policy.decide(&mut state, saw, u) {
            Decision::Wait(wait) => writeln!(decided, "wait {}", wait.wait),
            Decision::AwaitResult => writeln!(decided, "await_result"),
            Decision::End(LoopEnd::Error) => writeln!(decided, "end error"),
            Decision::End(LoopEnd::Rejected) => writeln!(decided, "end rejected"),
            Decision::End(LoopEnd::Question) => writeln!(decided, "end question"),
        };
    }
    (steps, decided)
}

/// Every preset that can be exported, and the envelopes above.
fn policies() -> Vec<(String, Written)> {
    let presets = presets::all().iter();
    let presets = presets.filter(|(name, p)| export(name, &p.policy, &[], Language::Json).is_ok());
    let presets = presets.map(|(name, p)| (name.to_string(), p.policy.clone()));
    let envelopes = (0..).zip(ENVELOPES).map(|(number, body)| {
        let policy = pollpace::scenario::read::<Written>("envelope", body);
        (
            format!("envelope-{number}"),
            policy.unwrap_or_else(|e| panic!("{e}")),
        )
    });
    presets.chain(envelopes).collect()
}

/// Runs all policies in a language. `run` gives the command for a policy's file and its steps.
fn same(language: Language, ending: &str, run: impl Fn(&Path, &Path) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let all = policies();
    assert!(all.len() >= 20, "{}", all.len());
    for (seed, (name, policy)) in (1..).zip(&all) {
        let file = folder.path().join(format!("policy{seed}.{ending}"));
        std::fs::write(&file, export(name, policy, &[], language).unwrap()).unwrap();
        let (steps, decided) = play(&compile_policy(name, policy), seed);
        let input = folder.path().join("steps.jsonl");
        std::fs::write(&input, &steps).unwrap();
        let printed = printed(&mut run(&file, &input)).replace("\r\n", "\n");
        let differs = steps
            .lines()
            .zip(decided.lines().zip(printed.lines()))
            .position(|(_, (a, b))| a != b);
        if let Some(at) = differs {
            let line = |text: &str| text.lines().nth(at).unwrap_or_default().to_string();
            panic!(
                "{name}, step {at}: {} gives {}, and the policy {}",
                line(&steps),
                line(&printed),
                line(&decided)
            );
        }
        assert_eq!(printed.lines().count() as u64, STEPS, "{name}");
    }
}

#[test]
#[ignore = "needs Python"]
fn exported_python_decides_as_the_policy_does() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/decide.py");
    same(Language::Python, "py", |file, steps| {
        let mut command = python();
        command.arg(&script).arg(file).arg(steps);
        command
    });
}

#[test]
#[ignore = "needs Node.js and the npm packages of tests/node"]
fn exported_typescript_decides_as_the_policy_does() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let given = std::env::var_os("POLLPACE_NODE_MODULES").map(PathBuf::from);
    let modules = given.unwrap_or(home.join("target/node"));
    assert!(
        modules.join("node_modules/typescript").is_dir(),
        "there is no typescript in {}: .ci/run installs it, or set POLLPACE_NODE_MODULES to a folder with the packages of tests/node/package.json",
        modules.display()
    );
    same(Language::TypeScript, "ts", |file, steps| {
        let mut command = Command::new("node");
        command
            .arg(home.join("tests/node/decide.mjs"))
            .arg(file)
            .arg(steps);
        command.env("POLLPACE_NODE_MODULES", &modules);
        command
    });
}

#[test]
fn what_a_function_of_answers_cannot_say_is_refused_by_name() {
    let refused = |name: &str| {
        let preset = presets::find(name).unwrap();
        export(name, &preset.policy, &[], Language::Python)
            .unwrap_err()
            .to_string()
    };
    assert!(refused("vscode").contains("push: notifications change waits"));
    let clock = refused("k8s-poll-until-context-timeout");
    assert!(clock.contains("pace = \"fixed_rate\""), "{clock}");
    assert!(refused("mcp-ts-sdk-1.x-server-autopoll").contains("runs = \"on_server\""));
    assert!(refused("mcpjam-taskstab").contains("schedule"));
    let fastmcp = presets::find("fastmcp-4.x").unwrap();
    for language in [Language::Json, Language::TypeScript, Language::Python] {
        let text = export("fastmcp-4.x", &fastmcp.policy, &fastmcp.limits, language).unwrap();
        assert!(text.contains("\"default_ms\": 500.0"), "{text}");
        assert!(text.contains("true and 2.0 are taken as 1 and 2"), "{text}");
    }
}
