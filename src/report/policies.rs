//! Presets: a table of them all, one of them in words, and all of them over one scenario.

use std::fmt::Write;

use super::columns::{Column, row};
use super::figures::hints::ask;
use super::files::csv_text;
use super::table::{align_numbers, plain_table};
use super::{Provenance, format};
use crate::catalogue;
use crate::charts::hint_effect::Effect;
use crate::charts::{LoopRow, PollLoops};
use crate::experiment::Results;
use crate::experiment::gate::Trip;
use crate::experiment::policies::Tried;
use crate::model::compile_policy;
use crate::policy::{self, RawHint};
use crate::scenario::fields::Field;
use crate::scenario::limits::OnRetryAfter;
use crate::scenario::policy::{
    AtEnd, Backoff, BackoffOf, Jitter, LastWait, OnQuestion, OnTimeout, OnUnknown, Pace, Policy,
    Push, ReadAt, Role, Runs, Schedule, WaitManner, WhenAbsent,
};
use crate::scenario::presets::{Evidence, LoopKind, Preset};
use crate::scenario::written::{CancelNotices, Then};

/// A hint of each bad kind, for the table.
const ZERO: RawHint = RawHint::Number(0.0);
const NEGATIVE: RawHint = RawHint::Number(-5.0);
const HUGE: RawHint = RawHint::Number(2_147_483_648.0);

/// All presets in a table; `verdicts` are the trips that each does not pass on the built-in scenario.
pub fn table(presets: &[(&'static str, &'static Preset)], verdicts: &[Vec<usize>]) -> String {
    let mut table = plain_table();
    table.set_header([
        "preset",
        "default",
        "floor",
        "ceiling",
        "hint 0",
        "hint −5",
        "hint 2³¹",
        "first poll",
        "jitter",
        "backoff",
        "abort in a wait",
        "gate",
    ]);
    for ((name, preset), trips) in presets.iter().zip(verdicts) {
        let policy = &preset.policy;
        let more = [
            first_poll(policy),
            word(&policy.jitter),
            word(&policy.backoff),
            abort(policy),
            verdict(trips),
        ];
        let name_and_kind = [format!("{name}{}", kind(preset))];
        let cells = name_and_kind.into_iter().chain(values(name, policy));
        table.add_row(cells.chain(more));
    }
    let mut out = format!("{table}\n");
    let _ = writeln!(
        out,
        "hint …: the wait after an answer with it, jitter at its middle · gate: what `pollpace gate` says of it on a small fleet (models/gate-bench.toml) \
         whose aborts have to be over within 1 s"
    );
    for (number, trip) in (1..).zip(Trip::ALL) {
        let _ = writeln!(out, "  trip {number}: {}", trip.what());
    }
    out
}

/// The same as a table of Markdown, with the evidence in the place of jitter and backoff.
pub fn markdown(presets: &[(&'static str, &'static Preset)], verdicts: &[Vec<usize>]) -> String {
    let mut out = String::from(
        "| preset | default | floor | ceiling | hint 0 | hint −5 | hint 2³¹ | abort in a wait | evidence | gate |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for ((name, preset), trips) in presets.iter().zip(verdicts) {
        let _ = writeln!(
            out,
            "| [{name}](../models/policies/{name}.toml){} | {} | {} | {} | {} |",
            kind(preset),
            values(name, &preset.policy).join(" | "),
            abort(&preset.policy),
            word(&preset.evidence),
            verdict(trips),
        );
    }
    out
}

/// Default, floor, ceiling, and what becomes of a hint of 0, a negative and a huge one.
fn values(name: &str, policy: &Policy) -> [String; 6] {
    let compiled = compile_policy(name, policy);
    let bound = |d: Option<_>| d.map_or("–".into(), |d| format!("{d}"));
    let [zero, negative, huge] = [ZERO, NEGATIVE, HUGE].map(|hint| effect(&compiled, hint));
    let (floor, ceiling) = (bound(policy.floor), bound(policy.ceiling));
    [
        policy.default.to_string(),
        floor,
        ceiling,
        zero,
        negative,
        huge,
    ]
}

/// What kind of loop it is, where it is no host's.
fn kind(preset: &Preset) -> &'static str {
    match preset.kind {
        LoopKind::HostLoop => "",
        LoopKind::ServerPoller => " (server)",
        LoopKind::NotALoop => " (no loop)",
    }
}

/// What the gate says.
fn verdict(trips: &[usize]) -> String {
    if trips.is_empty() {
        return "passes".into();
    }
    let numbers: Vec<String> = trips.iter().map(usize::to_string).collect();
    format!("trips {}", numbers.join(", "))
}

/// What becomes of a hint, in a word or two.
fn effect(policy: &policy::Policy, hint: RawHint) -> String {
    if policy.role == policy::Role::Ignored {
        return "ignored".into();
    }
    match ask(policy, hint) {
        Effect::Waits { middle_ms, .. } => duration(middle_ms),
        Effect::Forever => "for ever".into(),
        Effect::Error => "error".into(),
        Effect::Rejected => "rejected".into(),
    }
}

/// Milliseconds in the unit that suits.
fn duration(ms: f64) -> String {
    let (value, unit) = match ms {
        ms if ms >= 86_400_000.0 => (ms / 86_400_000.0, "d"),
        ms if ms >= 3_600_000.0 => (ms / 3_600_000.0, "h"),
        ms if ms >= 60_000.0 => (ms / 60_000.0, "min"),
        ms if ms >= 1000.0 => (ms / 1000.0, "s"),
        ms => (ms, "ms"),
    };
    format!("{}{unit}", format::number(Some(value)))
}

/// How a value is written in a scenario, without quotes and braces.
fn word<T: Field>(value: &T) -> String {
    let text = value.write().map_or(String::new(), |v| v.to_string());
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '"' | '{' | '}'))
        .collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace(" = ", " ")
}

fn first_poll(policy: &Policy) -> String {
    use crate::scenario::policy::FirstPoll;
    match &policy.first_poll {
        FirstPoll::AtOnce => "at once".into(),
        FirstPoll::AfterWait => "after a wait".into(),
        FirstPoll::After(wait) => format!("after {wait}"),
    }
}

fn abort(policy: &Policy) -> String {
    match &policy.wait {
        WaitManner::Interruptible => "at once".into(),
        WaitManner::CheckedAfterSleep => "after the sleep".into(),
        WaitManner::Sliced(slice) => format!("within {}", slice.0),
        WaitManner::Ignored => "never".into(),
    }
}

/// A preset in words: what it is, how sure that is, and what its loop does.
pub fn words(name: &str, preset: &Preset) -> String {
    let mut out = format!("{name}\n\n{}\n\n", preset.about);
    let kind = match preset.kind {
        LoopKind::HostLoop => "a host polls a server",
        LoopKind::ServerPoller => "a server polls its own store",
        LoopKind::NotALoop => "no loop by itself",
    };
    let evidence = match preset.evidence {
        Evidence::Executed => "the code was run",
        Evidence::Read => "the code was read",
        Evidence::Unverified => "unverified",
    };
    for (label, text) in [
        ("kind", kind),
        ("versions", &preset.versions),
        ("source", &preset.source),
        ("evidence", evidence),
    ] {
        let _ = writeln!(out, "{label:<9} {text}");
    }
    out.push('\n');
    for line in policy_words(name, &preset.policy) {
        let _ = writeln!(out, "* {line}");
    }
    if !preset.limits.is_empty() {
        out.push_str("\nNot said by the policy below:\n");
        for limit in &preset.limits {
            let _ = writeln!(out, "* {limit}");
        }
    }
    out
}

/// What the loop of a policy does, a sentence each.
pub fn policy_words(name: &str, policy: &Policy) -> Vec<String> {
    let mut lines = vec![interval(policy)];
    lines.extend(bounds(policy));
    if policy.role != Role::Ignored {
        lines.push(hints(name, policy));
    }
    lines.extend(growth(policy));
    lines.push(format!(
        "The first poll is sent {}{}.",
        first_poll(policy),
        match policy.pace {
            Pace::FixedDelay => "; waits count from the answer",
            Pace::FixedRate => "; polls tick at a fixed rate",
        }
    ));
    lines.push(aborts(policy));
    lines.extend(ends(policy));
    lines.extend(others(policy));
    lines
}

fn interval(policy: &Policy) -> String {
    let default = policy.default;
    let hint = match policy.read {
        ReadAt::EveryAnswer => "the hint of each answer",
        ReadAt::Creation => "the hint of the creation, for the whole task",
        ReadAt::FirstAnswer => "the hint of the first answer, for ever after",
    };
    let absent = match policy.absent {
        _ if policy.read != ReadAt::EveryAnswer => "",
        WhenAbsent::Default => "",
        WhenAbsent::KeepLast => "the last hint there was, or ",
        WhenAbsent::Creation => "the creation's hint, or ",
    };
    match policy.role {
        Role::Ignored => format!("It waits {default}, whatever the server suggests."),
        Role::Value => format!("It waits for {hint}; without one, {absent}{default}."),
        Role::Floor => format!(
            "It waits {default}, and no less than {hint}{}.",
            match policy.absent {
                WhenAbsent::KeepLast => " (the last one stays)",
                _ => "",
            }
        ),
        Role::RampCeiling => {
            format!("Its ramp ends at {hint}; without one, at {absent}{default}.")
        }
    }
}

fn bounds(policy: &Policy) -> Option<String> {
    use crate::scenario::policy::Covers;
    let own = match policy.ceiling_covers {
        Covers::All => "",
        Covers::OwnTerms => " (its own terms; the server's pass)",
    };
    match (policy.floor, policy.ceiling) {
        (Some(floor), Some(ceiling)) => {
            Some(format!("No wait is below {floor} or above {ceiling}{own}."))
        }
        (Some(floor), None) => Some(format!("No wait is below {floor}; none is too long.")),
        (None, Some(ceiling)) => Some(format!(
            "No wait is above {ceiling}{own}; none is too short."
        )),
        (None, None) => None,
    }
}

fn hints(name: &str, policy: &Policy) -> String {
    let compiled = compile_policy(name, policy);
    let told: Vec<String> = [
        ("0", ZERO),
        ("−5", NEGATIVE),
        ("0.5", RawHint::Number(0.5)),
        ("2³¹ ms", HUGE),
        ("10¹³ ms", RawHint::Number(1e13)),
        ("a string", RawHint::Text(f64::NAN)),
    ]
    .iter()
    .map(|(words, hint)| format!("{words} → {}", effect(&compiled, *hint)))
    .collect();
    format!("Bad hints: {}.", told.join("; "))
}

fn growth(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    if policy.backoff != Backoff::None {
        let of = match policy.backoff_of {
            BackoffOf::EveryWait => "",
            BackoffOf::WithoutHint => ", where there is no hint",
        };
        lines.push(format!("Its waits grow: {}{of}.", word(&policy.backoff)));
    }
    if policy.jitter != Jitter::None {
        lines.push(format!("Its jitter: {}.", word(&policy.jitter)));
    }
    lines
}

fn aborts(policy: &Policy) -> String {
    let then = match policy.on_abort.then {
        Then::Detach => "the id is kept",
        Then::Cancel => "tasks/cancel is sent",
        Then::Forget => "the id is lost",
    };
    let notices = match policy.on_abort.notifications {
        CancelNotices::None => "",
        CancelNotices::One => ", with a notifications/cancelled",
        CancelNotices::PerRequest => ", with a notifications/cancelled for each request there was",
    };
    format!(
        "An abort in a wait is seen {}; {then}{notices}.",
        abort(policy)
    )
}

fn ends(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    let age = match (policy.give_up_after, policy.ends_at_ttl) {
        (Some(age), true) => Some(format!("{age}, or at the server's ttl")),
        (Some(age), false) => Some(age.to_string()),
        (None, true) => Some("the server's ttl".into()),
        (None, false) => None,
    };
    if let Some(age) = age {
        let last = match &policy.last_wait {
            LastWait::Slept => "it sleeps until then",
            LastWait::Refused => "a wait that does not fit ends it at once",
            LastWait::Trimmed => "the last wait is cut, and a last poll sent then",
            LastWait::TrimmedLess(_) => "the last wait is cut so that its least one is left",
        };
        lines.push(format!("It gives up at {age}: {last}."));
    }
    if let Some(most) = policy.max_polls {
        lines.push(format!("It gives up after {} polls.", most.0));
    }
    let errors = match (&policy.on_error, &policy.error_backoff) {
        (crate::scenario::policy::OnError::End, _) => "An error ends it".to_string(),
        (_, Some(backoff)) => format!("After an error it waits: {}", word(backoff)),
        (_, None) => "An error changes nothing: it polls on".to_string(),
    };
    let most = policy.max_errors;
    let most = most.map_or(String::new(), |n| format!("; {} in a row end it", n.0));
    lines.push(format!("{errors}{most}."));
    if !policy.cancels.is_empty() {
        let at: Vec<String> = policy.cancels.iter().map(word).collect();
        lines.push(format!("It cancels its task at: {}.", at.join(", ")));
    }
    lines
}

fn others(policy: &Policy) -> Vec<String> {
    let question = match policy.on_question {
        OnQuestion::PollsOn => None,
        OnQuestion::PollsAtOnce => Some("it polls without a wait while the question stands"),
        OnQuestion::PollsOnceMore => Some("it polls once at once"),
        OnQuestion::AwaitsResult => Some("it asks for the result, and polls no more"),
        OnQuestion::Ends => Some("its loop ends"),
    };
    let push = match policy.push {
        Push::Ignored => None,
        Push::Wakes => Some("it polls at once"),
        Push::Replaces => Some("it takes it as an answer"),
        Push::Restarts => Some("its wait begins anew"),
        Push::Postpones => Some("it leaves the next poll out"),
    };
    let schedule = match policy.schedule {
        Schedule::PerTask => None,
        Schedule::LeastInterval => {
            Some("One timer, at the least interval, polls all tasks of a host.")
        }
        Schedule::EarliestDue => {
            Some("One timer, at the earliest due, serves all tasks of a host.")
        }
    };
    let questions = [
        policy
            .max_questions
            .map(|n| format!("More than {} questions end it.", n.0)),
        policy
            .stuck_after
            .map(|n| format!("{} answers in a row without a new question end it.", n.0)),
    ];
    let server = (policy.runs == Runs::OnServer)
        .then_some("It runs on the server: each poll is a read of the store.");
    let after = (policy.retry_after != OnRetryAfter::Ignored)
        .then(|| format!("It obeys Retry-After: {}.", word(&policy.retry_after)));
    let slower = (policy.read == ReadAt::Creation).then(|| {
        format!(
            "Each slow_down makes every later wait {} longer.",
            policy.slow_down
        )
    });
    let lines = [
        after,
        slower,
        policy
            .lease
            .then(|| "Loops of one task share a request in flight.".into()),
        (policy.batch.0 > 1)
            .then(|| format!("{} tasks of a server share a request.", policy.batch.0)),
        (policy.at_end != AtEnd::Nothing)
            .then(|| "It asks for the result of a completed task.".into()),
        (policy.on_timeout == OnTimeout::PollsOn)
            .then(|| "A timeout changes nothing: it polls on.".into()),
        (policy.on_unknown_task == OnUnknown::Retry)
            .then(|| "An unknown task is an error like any other.".into()),
        (policy.timer.minimum.0 > 0).then(|| format!("Its timer: {}.", word(&policy.timer))),
        question.map(|what| format!("When the task asks for input, {what}.")),
        push.map(|what| format!("On a notification {what}.")),
        schedule.map(String::from),
        policy.in_flight.map(|n| {
            format!(
                "At most {} of its polls are in flight between a host and a server.",
                n.0
            )
        }),
        policy
            .timeout
            .map(|t| format!("A request is given up after {}.", t.0)),
        policy
            .retries
            .as_ref()
            .map(|r| format!("Its transport retries: {}.", word(r))),
        server.map(String::from),
    ];
    lines.into_iter().chain(questions).flatten().collect()
}

/// The metrics of the table over one scenario, with their headings.
const METRICS: [(&str, &str); 7] = [
    ("tasks_get_rate_mean_per_s", "tasks/get\n(1/s)"),
    ("tasks_get_rate_1s_peak_per_s", "… 1 s peak\n(1/s)"),
    ("completion_latency_p50_ms", "completion\np50 (ms)"),
    ("completion_latency_p99_ms", "… p99\n(ms)"),
    ("abort_latency_p99_ms", "abort\np99 (ms)"),
    (
        "worst_hint_tasks_get_rate_mean_per_s",
        "all hints 0:\ntasks/get (1/s)",
    ),
    (
        "worst_hint_abort_latency_p99_ms",
        "all hints huge:\nabort p99 (ms)",
    ),
];

/// The name of a row.
fn name(tried: &Tried) -> &'static str {
    tried.preset.unwrap_or("(the scenario's own)")
}

fn mean(results: &Results, metric: &str) -> Option<f64> {
    results.estimate("fleet", metric)?.mean
}

/// Those tried, the busiest first; those that did not get to their end before them.
pub fn by_load(tried: &mut [Tried]) {
    let load = |t: &Tried| match &t.results {
        Ok(results) => mean(results, METRICS[0].0).unwrap_or(-1.0),
        Err(_) => f64::INFINITY,
    };
    tried.sort_by(|a, b| load(b).total_cmp(&load(a)).then(name(a).cmp(name(b))));
}

/// The table of all over one scenario.
pub fn comparison(tried: &[Tried], title: &str, provenance: &Provenance) -> String {
    let mut table = plain_table();
    table.set_header(std::iter::once("").chain(METRICS.map(|(_, heading)| heading)));
    for one in tried {
        let values = METRICS.map(|(metric, _)| match &one.results {
            Ok(results) => format::number(mean(results, metric)),
            Err(_) => "without end".into(),
        });
        table.add_row(std::iter::once(name(one).to_string()).chain(values));
    }
    align_numbers(&mut table);
    let title = if title.is_empty() {
        String::new()
    } else {
        format!("{title}\n")
    };
    format!(
        "{title}{table}\nMeans over replications, the busiest first; – undefined: without a sample in a replication, or beyond what was seen\n\n{}\n",
        provenance.line()
    )
}

row! {
    struct Row<'a> {
        preset: Option<&'a str>,
        group: &'a str,
        metric: &'a str,
        mean: Option<f64>,
        lo: Option<f64>,
        hi: Option<f64>,
        replications: u64,
        scenario: &'a str,
        parameters: &'a str,
        seed: u64,
        scenario_hash: &'a str,
        version: &'a str,
    }
}

/// The columns of `policies.csv`.
pub fn columns() -> Vec<Column> {
    Row::columns()
}

/// `policies.csv`: one row per preset, group and metric; none for a preset whose run has no end.
pub fn csv(tried: &[Tried], provenance: &Provenance) -> Vec<u8> {
    let done = tried
        .iter()
        .filter_map(|t| Some((t, t.results.as_ref().ok()?)));
    csv_text(done.flat_map(|(one, results)| {
        let groups = results.groups.iter().zip(&results.estimates);
        groups.flat_map(move |(group, estimates)| {
            catalogue::names()
                .iter()
                .zip(estimates)
                .map(move |(metric, e)| Row {
                    preset: one.preset,
                    group,
                    metric,
                    mean: e.mean,
                    lo: e.lo,
                    hi: e.hi,
                    replications: u64::from(e.n),
                    scenario: &provenance.scenario,
                    parameters: &provenance.parameters,
                    seed: provenance.seed,
                    scenario_hash: &provenance.scenario_hash,
                    version: &provenance.version,
                })
        })
    }))
}

/// The figure of all over one scenario.
pub fn figure(tried: &[Tried], title: &str, provenance: &Provenance) -> PollLoops {
    let row = |one: &Tried| {
        let of = |metric: &str| mean(one.results.as_ref().ok()?, metric);
        let seconds = |metric: &str| of(metric).map(|ms| ms / 1e3);
        // A loop on the server sends none.
        let rate = |metric: &str| of(metric).filter(|rate| *rate > 0.0);
        LoopRow {
            name: name(one).into(),
            own: one.preset.is_none(),
            rate_per_s: [
                rate("tasks_get_rate_mean_per_s"),
                rate("worst_hint_tasks_get_rate_mean_per_s"),
            ],
            completion_s: [
                seconds("completion_latency_p50_ms"),
                seconds("completion_latency_p99_ms"),
            ],
            abort_s: [
                seconds("abort_latency_p99_ms"),
                seconds("worst_hint_abort_latency_p99_ms"),
            ],
        }
    };
    PollLoops {
        title: "Poll loops of real hosts over one fleet".into(),
        fleet: title.into(),
        rows: tried.iter().map(row).collect(),
        provenance: provenance.line(),
    }
}
