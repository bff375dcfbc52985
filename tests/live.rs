//! The presets against recordings of the packages they stand for (`experiments/live/`), and the page that shows both, `docs/live.md`.
//!
//! Each setting is simulated with the timer and the request that were calibrated in the same process. What is sent and how it ends has to be the
//! same; medians have to lie within 15 %. Where they do not, `DIFFERENCES` says why, and it has no entry too many.

#[path = "common/live/comparison.rs"]
mod comparison;
#[path = "common/live/recording.rs"]
mod recording;
#[path = "common/live/simulation.rs"]
mod simulation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use comparison::What::{self, *};
use comparison::{Rules, at_once, compare, recorded_rules, steady, times};
use recording::{Group, folder, median, plan, recording};

/// Where a recording and its simulation differ: the setting, the version ("" is each), in what, and why.
const DIFFERENCES: &[(&str, &str, &[What], &str)] = &[
    (
        "ts-client-no-hint",
        "1.30.0",
        &[Total],
        "the fourth poll falls just before or just after the end, by a millisecond; five of the nine runs were late",
    ),
    (
        "ts-client-hint-2147483647-aborted",
        "",
        &[Order, Notices],
        "the SDK sends its notices at the abort, the model when control returns, which is after 25 days",
    ),
    (
        "py-mcp-hint-1e13",
        "",
        &[Ending, Order, Polls, AfterAbort, Total],
        "the SDK takes whole numbers only where they are written without point and exponent; to the model 1e13 and 10000000000000 are the same number",
    ),
    (
        "fastmcp-input-required",
        "",
        &[Order, Polls, Gap],
        "FastMCP waits for the answer to each `tasks/update` before it polls again, and answers the question each time that it sees it; the model's host \
         answers once and polls on meanwhile",
    ),
];

/// Settings that cannot be said, and why.
const NOT_SIMULATED: &[(&str, &str)] = &[(
    "openai-node-unknown-status",
    "no status of the model is unknown to a host. The helper polls it again without a wait",
)];

fn recorded() -> PathBuf {
    folder().join("recorded")
}

fn why_not(group: &Group) -> Option<&'static str> {
    let entry = NOT_SIMULATED
        .iter()
        .find(|(name, _)| *name == group.setting.name);
    entry.map(|(_, why)| *why)
}

/// What is known to differ in this group, and why.
fn known(group: &Group) -> Option<(&'static [What], &'static str)> {
    DIFFERENCES
        .iter()
        .find(|(name, version, ..)| {
            *name == group.setting.name && (version.is_empty() || *version == group.version)
        })
        .map(|(_, _, what, why)| (*what, *why))
}

#[test]
fn every_setting_was_recorded_with_every_version() {
    let plan = plan();
    let groups = recording(&recorded());
    let packages = |program: &str| {
        let found = plan.programs.iter().find(|p| p.program == program);
        found.unwrap().packages.len()
    };
    let expected: usize = plan.scenarios.iter().map(|s| packages(&s.program)).sum();
    assert_eq!(groups.len(), expected);
    for group in &groups {
        assert_eq!(
            group.runs.len(),
            group.setting.runs,
            "{}",
            group.setting.name
        );
    }
}

#[test]
fn the_presets_do_what_the_packages_did() {
    let (mut wrong, mut listed) = (Vec::new(), BTreeSet::new());
    let mut compared = BTreeMap::<What, usize>::new();
    for group in recording(&recorded()) {
        if let Some(why) = why_not(&group) {
            listed.insert(why);
            continue;
        }
        let simulated = group.simulate();
        let comparison = compare(&group, &simulated, recorded_rules(&group));
        for what in comparison.compared {
            *compared.entry(what).or_default() += 1;
        }
        let (expected, why) = known(&group).unwrap_or_default();
        listed.insert(why);
        let found: Vec<What> = comparison.differs.iter().map(|d| d.0).collect();
        if found != expected {
            wrong.push(format!(
                "{}: listed is {expected:?}, found is {:?}",
                group.label(),
                comparison.differs
            ));
        }
    }
    let differences = DIFFERENCES.iter().map(|(name, _, _, why)| (name, why));
    for (name, why) in differences.chain(NOT_SIMULATED.iter().map(|(name, why)| (name, why))) {
        assert!(
            listed.contains(*why),
            "{name} is listed, and was not recorded"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let counts: Vec<(What, usize)> = compared.into_iter().collect();
    let expected = [
        (Ending, 105),
        (Order, 105),
        (Polls, 105),
        (Notices, 17),
        (Cancels, 105),
        (AfterAbort, 17),
        (Gap, 77),
        (Total, 103),
        (AbortLatency, 14),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn the_page_shows_what_was_measured_and_simulated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/live.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, _) = page.split_once(TABLE).expect("the page has a table");
    let fresh = format!("{before}{TABLE}{}", table());
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    } else {
        assert!(
            page == fresh,
            "docs/live.md is out of date: run the tests with POLLPACE_WRITE_DOCS=1"
        );
    }
}

/// The npm part, as it was recorded a moment ago. What is sent and how it ends has to be right in every run of every recording. A number or a median has to
/// be right in one of them: what the machine disturbed is right the next time, what a package does otherwise is not.
#[test]
#[ignore = "needs a fresh recording in the folder of POLLPACE_LIVE_RECORDED"]
fn the_npm_packages_of_today_agree() {
    let folders = std::env::var_os("POLLPACE_LIVE_RECORDED").expect(
        "POLLPACE_LIVE_RECORDED is not set. It names the folder of a fresh recording, or several, with colons between them: make one with \
         `experiments/live/run npm --only ts-client --out DIR` (Node.js 20 or later), then run this test with POLLPACE_LIVE_RECORDED=DIR",
    );
    let recordings: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let mut found = BTreeMap::<(String, What), Vec<String>>::new();
    let mut settings = BTreeMap::new();
    for folder in &recordings {
        for (label, what, how) in differences_of_today(folder, &mut settings) {
            found.entry((label, what)).or_default().push(how);
        }
    }
    assert!(
        !settings.is_empty(),
        "{folders:?}: no recording of the npm part"
    );
    found.retain(|(label, what), hows| {
        matches!(what, Ending | Order | Cancels | Notices) || hows.len() == settings[label]
    });
    let wrong: Vec<String> = found
        .iter()
        .map(|((label, what), hows)| format!("{label}: {what:?}: {}", hows.join("; again ")))
        .collect();
    assert!(
        wrong.is_empty(),
        "of {} settings:\n{}",
        settings.len(),
        wrong.join("\n")
    );
    println!("{} settings agree", settings.len());
}

/// The differences of a fresh recording that are not listed. `settings` counts how often each setting has been recorded.
fn differences_of_today(
    folder: &Path,
    settings: &mut BTreeMap<String, usize>,
) -> Vec<(String, What, String)> {
    let steadies: BTreeMap<String, bool> = recording(&recorded())
        .iter()
        .map(|group| (group.label(), steady(group)))
        .collect();
    let mut wrong = Vec::new();
    for group in recording(folder) {
        if !group.setting.program.starts_with("npm/") || why_not(&group).is_some() {
            continue;
        }
        let label = group.label();
        assert_eq!(group.runs.len(), group.setting.runs, "{label}");
        let rules = Rules {
            steady: steadies[&label],
            busy: true,
        };
        let (expected, _) = known(&group).unwrap_or_default();
        let found = compare(&group, &group.simulate(), rules).differs;
        let found = found
            .into_iter()
            .filter(|(what, _)| !expected.contains(what));
        wrong.extend(found.map(|(what, how)| (label.clone(), what, how)));
        *settings.entry(label).or_default() += 1;
    }
    wrong
}

// The page

/// What follows this on the page is written by the test.
const TABLE: &str = "## The table\n\n";

const HEAD: &str = "| setting | package | ends with | polls | gap (ms) | total (ms) | abort latency (ms) | verdict |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- |\n";

/// A summary, and a row for each setting and version.
fn table() -> String {
    let groups = recording(&recorded());
    let (mut simulated, mut agree, mut rows) = (0, 0, String::new());
    let mut shares = BTreeMap::<What, Vec<f64>>::new();
    for group in &groups {
        rows += &row(group);
        if why_not(group).is_some() {
            continue;
        }
        simulated += 1;
        let told = group.simulate();
        let differs = compare(group, &told, recorded_rules(group)).differs;
        agree += usize::from(differs.is_empty());
        for (what, measured, told) in times(group, &told) {
            if !at_once(what, measured, told) && differs.iter().all(|d| d.0 != what) {
                let share = 100.0 * (told - measured).abs() / measured;
                shares.entry(what).or_default().push(share);
            }
        }
    }
    let mut summary = format!(
        "{} rows; {simulated} are simulated, {agree} of them agree in everything that is compared.",
        groups.len()
    );
    for (what, shares) in shares {
        let most = shares.iter().copied().fold(0.0, f64::max);
        summary += &format!(
            " Of {} medians of {} that agree, half lie within {:.1} %, all within {most:.1} %.",
            shares.len(),
            what.words(),
            median(shares).unwrap()
        );
    }
    format!("{summary}\n\n{HEAD}{rows}")
}

fn row(group: &Group) -> String {
    let counts: BTreeSet<u64> = group.runs.iter().map(|r| r.polls).collect();
    let (least, greatest) = (counts.first().unwrap(), counts.last().unwrap());
    let polls = if least == greatest {
        least.to_string()
    } else {
        format!("{least} to {greatest}")
    };
    let measured = [
        (Gap, group.median(|r| r.gap_median_ms)),
        (Total, group.median(|r| Some(r.total_ms))),
        (AbortLatency, group.median(|r| r.abort_latency_ms)),
    ];
    let alone = measured.map(|(_, ms)| ms.map_or(String::new(), number));
    let ending = &group.runs[0].ending;
    let head = format!(
        "| `{}` | {} {} |",
        group.setting.name, group.package, group.version
    );
    if let Some(why) = why_not(group) {
        let [gap, total, abort] = alone;
        return format!(
            "{head} {ending} | {polls} | {gap} | {total} | {abort} | not simulated: {why} |\n"
        );
    }
    let simulated = group.simulate();
    let both = times(group, &simulated);
    let cell = |i: usize| {
        let (what, alone) = (measured[i].0, alone[i].clone());
        let pair = both.iter().find(|(w, ..)| *w == what);
        pair.map_or(alone, |&(_, measured, told)| {
            difference(what, measured, told)
        })
    };
    let ending = if ending == simulated.ending {
        ending.clone()
    } else {
        format!("{ending} → {}", simulated.ending)
    };
    let found = compare(group, &simulated, recorded_rules(group)).differs;
    let verdict = if found.is_empty() {
        "agrees".to_string()
    } else {
        let what: Vec<&str> = found.iter().map(|(what, _)| what.words()).collect();
        let why = known(group).map_or("unexplained", |(_, why)| why);
        format!("**differs** in {}: {why}", what.join(", "))
    };
    format!(
        "{head} {ending} | {polls} → {} | {} | {} | {} | {verdict} |\n",
        simulated.polls,
        cell(0),
        cell(1),
        cell(2)
    )
}

/// Measured, simulated, and the difference as a share of what was measured.
fn difference(what: What, measured: f64, told: f64) -> String {
    if at_once(what, measured, told) {
        return format!("{} → {}: at once", number(measured), number(told));
    }
    let share = 100.0 * (told - measured) / measured;
    format!("{} → {} ({share:+.1} %)", number(measured), number(told))
}

fn number(ms: f64) -> String {
    let digits = if ms < 10.0 { 2 } else { 1 };
    format!("{ms:.digits$}")
}
