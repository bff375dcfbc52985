//! What was fitted, as the text of a scenario.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use super::fitted::{Fitted, Lasting, Server, Tenant};
use super::hints::Counts;
use super::pacing::{FirstPoll, Jitter, Pacing};
use crate::policy::HintClass;
use crate::scenario::units::Duration;

/// Aborted tasks are polled on where they have more leaked polls than this, on average.
pub const LEAKING: f64 = 0.5;
/// A request is given up after so many times the longest round trip.
const PATIENCE: f64 = 1.01;

/// The hosts' policy.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Its name, for every tenant; else each has the envelope that its waits show.
    pub named: Option<String>,
    /// The hosts' request timeout; else one that is longer than every answer of the log took.
    pub timeout: Option<Duration>,
}

/// What the files of a tenant or a server are called after.
pub struct Stems(BTreeMap<(&'static str, String), String>);

impl Stems {
    /// Stems of all tenants and servers: their names, as far as these can stand in a file's name, each once.
    pub fn new(fitted: &Fitted) -> Self {
        let tenants = fitted.tenants.iter().map(|t| ("tenant", &t.name));
        let servers = fitted.servers.iter().map(|s| ("server", &s.name));
        let mut stems = BTreeMap::new();
        let mut used = HashSet::new();
        for (kind, name) in tenants.chain(servers) {
            let plain = |c: char| {
                if c.is_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '_'
                }
            };
            let stem: String = name.chars().take(60).map(plain).collect();
            let mut own = stem.clone();
            let mut number = 2;
            while !used.insert((kind, own.to_lowercase())) {
                own = format!("{stem}-{number}");
                number += 1;
            }
            stems.insert((kind, name.clone()), own);
        }
        Stems(stems)
    }

    /// The file of `what` of a tenant or a server.
    pub fn file(&self, what: &str, kind: &'static str, name: &str) -> String {
        let stem = self.0.get(&(kind, name.to_string()));
        format!("{what}-{}.csv", stem.map_or("", String::as_str))
    }
}

/// A TOML string.
fn text(s: &str) -> String {
    toml::Value::String(s.into()).to_string()
}

/// A duration with whole microseconds.
fn span(ms: f64) -> String {
    let ns = (ms * 1e3).round().clamp(0.0, 3e12) as u64 * 1_000;
    text(&Duration(ns).to_string())
}

fn number(x: f64) -> String {
    toml::Value::Float((x * 1e6).round() / 1e6).to_string()
}

fn empirical(file: &str, column: &str) -> String {
    format!(
        "{{ empirical = {{ file = {}, column = {} }} }}",
        text(file),
        text(column)
    )
}

/// Values in ms: a constant where they are all the same, else the column of a file.
fn values(values_ms: &[f64], file: &str, column: &str) -> String {
    match values_ms {
        [first, .., last] if last - first > 1e-3 => empirical(file, column),
        [first, ..] => span(*first),
        [] => span(0.0),
    }
}

/// The scenario.
pub fn scenario(fitted: &Fitted, choice: &Choice, stems: &Stems, title: &str) -> String {
    let mut out = String::from(
        "# Made by `pollpace fit`; what it takes for granted and what it leaves out stands in docs/fitting.md of pollpace.\n",
    );
    let horizon = Duration((fitted.span_s * 1e6).ceil() as u64 * 1_000 + 1_000);
    let _ = writeln!(out, "title = {}\n", text(title));
    let _ = writeln!(
        out,
        "[run]\nhorizon = {}\ndrain = \"none\" # as the log: it ends where it ends",
        text(&horizon.to_string())
    );
    for server in &fitted.servers {
        self::server(&mut out, server, choice, stems);
    }
    for tenant in &fitted.tenants {
        self::tenant(&mut out, tenant, choice, stems);
    }
    if choice.named.is_none() {
        for tenant in &fitted.tenants {
            policy(&mut out, tenant, fitted, choice);
        }
    }
    out
}

fn server(out: &mut String, server: &Server, choice: &Choice, stems: &Stems) {
    let name = text(&server.name);
    let file = stems.file("round-trips", "server", &server.name);
    let one_way: Vec<f64> = server.round_trips_ms.iter().map(|ms| ms / 2.0).collect();
    let _ = writeln!(out, "\n[[server]]\nname = {name}");
    let _ = writeln!(
        out,
        "delay = {} # half a round trip, each way",
        values(&one_way, &file, "one_way_ms")
    );
    let counts = server.hints.counts();
    let hinted = counts.total() > counts.classes[HintClass::Absent as usize];
    if hinted {
        let _ = writeln!(out, "hint = {name}");
    }
    if choice.named.is_none() && server.failed_share > 0.0 {
        let share = number(server.failed_share);
        let _ = writeln!(
            out,
            "loss = {{ answer = {share} }} # polls refused or not answered"
        );
    }
    if hinted {
        let drawn = if server.hints.vary() {
            "per_answer"
        } else {
            "per_task"
        };
        let _ = writeln!(out, "\n[hint.{name}]\ndrawn = \"{drawn}\"\nmix = [");
        let file = stems.file("hints", "server", &server.name);
        for part in mix(counts, &file) {
            let _ = writeln!(out, "    {part},");
        }
        let _ = writeln!(out, "]");
    }
}

/// The parts of a hint mixture.
fn mix(counts: &Counts, file: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = |count: u64, wire: String| {
        if count > 0 {
            parts.push(format!("{{ weight = {count}, {wire} }}"));
        }
    };
    let of = |class: HintClass| counts.classes[class as usize];
    part(of(HintClass::Absent), "absent = true".into());
    part(of(HintClass::Null), "null = true".into());
    for ((class, bits), count) in &counts.bad {
        let ms = f64::from_bits(*bits);
        let value = match HintClass::ALL[usize::from(*class)] {
            // Of a string only the number in it is known; what else stood there stays in the log.
            HintClass::Text if ms.is_nan() => text("text"),
            HintClass::Text => text(&ms.to_string()),
            _ => toml::Value::Float(ms).to_string(),
        };
        part(*count, format!("value = {value}"));
    }
    let sane = &counts.sane.kept;
    let constant = sane
        .first()
        .filter(|first| sane.iter().all(|ms| ms == *first));
    part(
        of(HintClass::Sane),
        match constant {
            Some(ms) => format!("value = {}", toml::Value::Float(*ms)),
            None => format!("ms = {}", empirical(file, "ms")),
        },
    );
    parts
}

fn tenant(out: &mut String, tenant: &Tenant, choice: &Choice, stems: &Stems) {
    let file = |what| stems.file(what, "tenant", &tenant.name);
    let name = text(&tenant.name);
    let _ = writeln!(out, "\n[[tenant]]\nname = {name}");
    let arrivals = text(&file("arrivals"));
    let _ = writeln!(
        out,
        "arrivals = {{ recorded = {{ file = {arrivals}, column = \"arrival_s\", unit = \"1s\" }} }}"
    );
    let _ = writeln!(
        out,
        "duration = {}",
        duration(&tenant.durations, &file("durations"))
    );
    let servers: Vec<String> = tenant
        .servers
        .iter()
        .map(|(server, tasks)| format!("{} = {tasks}", text(server)))
        .collect();
    let _ = writeln!(out, "servers = {{ {} }}", servers.join(", "));
    if tenant.ends.iter().any(|n| *n > 0) {
        let [completed, failed, cancelled] = tenant.ends;
        let _ = writeln!(
            out,
            "ends = {{ completed = {completed}, failed = {failed}, cancelled = {cancelled} }}"
        );
    }
    if !tenant.creations_ms.is_empty() {
        let delay = values(&tenant.creations_ms, &file("creations"), "ms");
        let _ = writeln!(out, "creation_delay = {delay}");
    }
    if tenant.patience.beyond < 1.0 && !tenant.patience.values_ms.is_empty() {
        let then = if tenant.cancels() { "cancel" } else { "detach" };
        let _ = writeln!(
            out,
            "abort = {{ probability = {}, after = {}, then = \"{then}\" }}",
            number(1.0 - tenant.patience.beyond),
            values(&tenant.patience.values_ms, &file("aborts"), "after_ms")
        );
    }
    let policy = choice.named.as_deref().unwrap_or(&tenant.name);
    let _ = writeln!(out, "policy = {}", text(policy));
}

/// A distribution of durations, with what outlasts every observation as a part of its own.
fn duration(lasting: &Lasting, file: &str) -> String {
    let inside = values(&lasting.values_ms, file, "ms");
    let beyond = span(lasting.beyond_ms);
    match lasting {
        _ if lasting.values_ms.is_empty() => beyond,
        _ if lasting.beyond <= 0.0 => inside,
        _ => format!(
            "{{ mixture = [{{ weight = {}, of = {inside} }}, {{ weight = {}, of = {beyond} }}] }} # the second: longer than seen",
            number(1.0 - lasting.beyond),
            number(lasting.beyond)
        ),
    }
}

fn policy(out: &mut String, tenant: &Tenant, fitted: &Fitted, choice: &Choice) {
    let _ = writeln!(out, "\n[policy.{}]", text(&tenant.name));
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    if let Some(pacing) = &tenant.pacing {
        line(format!(
            "# explains {:.0} % of {} waits",
            100.0 * pacing.explained,
            pacing.waits
        ));
        envelope(pacing, &mut line);
    } else {
        line("first_poll = \"at_once\" # no wait in the log: tasks have one poll each".into());
    }
    let leaking = tenant.leaked as f64 > LEAKING * tenant.aborts() as f64;
    if leaking {
        line("wait = \"ignored\" # tasks are polled on after their abort".into());
    }
    if tenant.calls_result {
        line("at_end = \"tasks/result\"".into());
    }
    let of = |s: &&Server| tenant.servers.contains_key(&s.name);
    let failing = fitted
        .servers
        .iter()
        .filter(of)
        .any(|s| s.failed_share > 0.0);
    let longest = fitted
        .servers
        .iter()
        .filter(of)
        .filter_map(|s| s.round_trips_ms.last());
    let timeout_ms = match choice.timeout {
        Some(timeout) => Some(timeout.0 as f64 / 1e6),
        None => failing.then(|| longest.fold(0.0f64, |a, b| a.max(*b)) * PATIENCE + 1.0),
    };
    let Some(timeout_ms) = timeout_ms else { return };
    line(format!("timeout = {}", span(timeout_ms)));
    let Some(pacing) = &tenant.pacing else { return };
    if let Some(gap_ms) = pacing.gap_after_error_ms {
        // From the send to the timeout, unless the loop ticks; then the wait.
        let before_ms = if pacing.fixed_rate { 0.0 } else { timeout_ms };
        let wait = span((gap_ms - before_ms - pacing.overhead_ms).max(1.0));
        line(format!(
            "error_backoff = {{ initial = {wait}, factor = 1 }}"
        ));
    }
}

fn envelope(pacing: &Pacing, line: &mut impl FnMut(String)) {
    if !pacing.uses_hints {
        line("role = \"ignored\"".into());
    }
    line(format!("default = {}", span(pacing.default_ms)));
    let bounds = [("floor", pacing.floor_ms), ("ceiling", pacing.ceiling_ms)];
    for (key, bound) in bounds {
        if let Some(ms) = bound {
            line(format!("{key} = {}", span(ms)));
        }
    }
    let rules: Vec<String> = pacing
        .rules
        .iter()
        .map(|(class, then)| format!("{{ class = \"{}\", then = \"{then}\" }}", class.name()))
        .collect();
    if !rules.is_empty() {
        line(format!("rules = [{}]", rules.join(", ")));
    }
    if !pacing.steps_ms.is_empty() {
        line(format!(
            "backoff = {{ steps = [{}] }}",
            steps(&pacing.steps_ms)
        ));
    }
    let jitter = match pacing.jitter {
        Jitter::None => None,
        Jitter::Full => Some("\"full\"".into()),
        Jitter::Equal => Some("\"equal\"".into()),
        Jitter::Proportional(share) => Some(format!("{{ proportional = {} }}", number(share))),
        Jitter::Additive(ms) => Some(format!("{{ additive = {} }}", span(ms))),
    };
    if let Some(jitter) = jitter {
        line(format!("jitter = {jitter}"));
    }
    if pacing.fixed_rate {
        line("pace = \"fixed_rate\"".into());
    }
    match pacing.first_poll {
        FirstPoll::AtOnce => line("first_poll = \"at_once\"".into()),
        FirstPoll::AfterWait => {}
        FirstPoll::After(ms) => line(format!("first_poll = {{ after = {} }}", span(ms))),
    }
    if pacing.overhead_ms >= 0.01 {
        line(format!(
            "timer = {{ overhead = {} }}",
            span(pacing.overhead_ms)
        ));
    }
}

/// A backoff table; neighbours that are alike are one step.
fn steps(steps_ms: &[f64]) -> String {
    let mut steps: Vec<(u32, f64)> = Vec::new();
    for ms in steps_ms {
        match steps.last_mut() {
            Some((waits, first)) if (*ms - *first).abs() <= 0.02 * *first => *waits += 1,
            _ => steps.push((1, *ms)),
        }
    }
    let step =
        |(waits, ms): &(u32, f64)| format!("{{ waits = {waits}, wait = {} }}", span(ms.max(0.001)));
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}
