//! The presets against the send times of the loops they stand for: `tests/data/poll-loops.csv`.
//!
//! A task that works for ever, a round trip of 50 ms, a horizon that is closed. Server pollers read their store, whose reads take the 50 ms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pollpace::engine;
use pollpace::engine::trace::Follow;
use pollpace::model::Model;
use pollpace::scenario::{self, presets};

/// What was sent, ms, and how the loop ended.
struct Sends {
    at_ms: Vec<f64>,
    ends: &'static str,
}

/// The hints of a row, as the scenario has them.
fn hint(hints: &str) -> String {
    let by_age = |first: &str, then: &str| {
        format!(
            "drawn = \"by_age\"\nsteps = [{{ from = \"0s\", {first} }}, {{ from = \"1ns\", {then} }}]"
        )
    };
    match hints {
        "no_hint" | "hint_absent" => "mix = [{ absent = true }]".into(),
        "create_1000_then_250" => by_age("value = 1000", "value = 250"),
        "create_250_then_absent" => by_age("value = 250", "absent = true"),
        other => format!(
            "mix = [{{ value = {} }}]",
            other.trim_start_matches("hint_")
        ),
    }
}

fn simulate(preset: &str, hints: &str, horizon_ms: u64) -> Sends {
    let on_server = presets::find(preset).unwrap().kind == presets::LoopKind::ServerPoller;
    let way = if on_server {
        "tasks_get = { service = \"50ms\" }"
    } else {
        "delay = \"25ms\""
    };
    let text = format!(
        "[run]\nhorizon = \"{horizon_ms}000001ns\"\nreplications = 1\ndrain = \"none\"\n[[server]]\nname = \"s\"\nhint = \"h\"\n{way}\n\
         [hint.h]\n{}\n[[tenant]]\nname = \"t\"\narrivals = {{ at_once = {{}} }}\nduration = \"1d\"\nservers = {{ s = 1 }}\npolicy = \"{preset}\"\n",
        hint(hints)
    );
    // The upper end of each draw stands in the table.
    let upper = ["policy.google-api-core-python.jitter=none".to_string()];
    let overrides = &upper[..usize::from(preset == "google-api-core-python")];
    let loaded = scenario::parse("row", &text, overrides).unwrap_or_else(|e| panic!("{e}"));
    let model = Model::new(&loaded.scenario);
    let follow = Follow {
        tenant: Some(0),
        number: 1,
    };
    let outcome = engine::run(&model, 0, Some(follow), &AtomicBool::new(false)).unwrap();
    let rows = outcome.story.unwrap().rows;
    let polls = rows.iter().filter(|r| r.poll.is_some());
    let at_ms = polls.map(|r| r.poll.as_ref().unwrap().sent as f64 / 1e6);
    let end = rows.iter().find(|r| r.event == "loop ended");
    Sends {
        at_ms: at_ms.collect(),
        ends: match end.map(|r| r.note.as_str()) {
            Some("error") => "error",
            Some("answer rejected") => "rejected",
            // The driver says at once that the time is up; the table lets it wait.
            Some(note) if note.starts_with("gave up") && preset == "mcpjam-driver" => "horizon",
            None | Some("waits for ever") => "horizon",
            Some(other) => panic!("{preset} {hints}: {other}"),
        },
    }
}

#[test]
fn presets_send_when_the_real_loops_do() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/poll-loops.csv");
    let mut rows = csv::Reader::from_path(data).unwrap();
    let (mut count, mut loops, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for row in rows.deserialize::<BTreeMap<String, String>>() {
        let row = row.unwrap();
        let (preset, hints) = (&row["preset"], &row["hints"]);
        let sends = simulate(preset, hints, row["horizon_ms"].parse().unwrap());
        let first: Vec<f64> = sends.at_ms.iter().take(10).copied().collect();
        let expected: Vec<f64> = row["first_ms"]
            .split_whitespace()
            .filter(|x| *x != "?")
            .map(|x| x.parse().unwrap())
            .collect();
        let known = row["first_ms"] != "?";
        // The table has tenths of a millisecond.
        let same = first.len() == expected.len()
            && first
                .iter()
                .zip(&expected)
                .all(|(a, b)| (a - b).abs() < 0.051);
        let counted = sends.at_ms.len() == row["count"].parse::<usize>().unwrap();
        if !counted || known && (!same || sends.ends != row["ends"]) {
            wrong.push(format!(
                "{preset} {hints}: {} sends, {:?}, {}; the table has {}, [{}], {}",
                sends.at_ms.len(),
                first,
                sends.ends,
                row["count"],
                row["first_ms"],
                row["ends"]
            ));
        }
        count += 1;
        loops.insert(preset.clone());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((count, loops.len()), (213, 29));
}
