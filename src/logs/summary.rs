//! What a fit tells: `fit.json`, and notes on what the scenario leaves out.

use serde_json::{Map, Value, json};

use super::Log;
use super::event::Method;
use super::fitted::{Fitted, Server, Tenant};
use super::hints::Counts;
use super::latency::Latency;
use super::pacing::{FirstPoll, Jitter, Pacing};
use super::sample::{mean, quantile};
use super::scenario::{Choice, LEAKING};
use crate::policy::HintClass;
use crate::report::format::number;

/// A policy that explains less than this is worth a note.
const POOR: f64 = 0.8;
/// Tasks under way at the beginning, or unsaid requests, are worth a note above this share.
const NOTABLE: f64 = 0.05;

/// Requests of one kind that were refused.
pub struct Refusal {
    /// The method.
    pub method: &'static str,
    /// The status.
    pub outcome: String,
    /// The tenant.
    pub tenant: String,
    /// The server.
    pub server: String,
    /// How many.
    pub count: u64,
    /// A sample of `Retry-After`, in s.
    pub retry_after_s: Vec<f64>,
}

/// The refusals of a log; polls without an answer are none of them.
pub fn refusals<'a>(log: &'a Log, fitted: &'a Fitted) -> impl Iterator<Item = Refusal> + 'a {
    log.collector.refusals.iter().map(|(key, of)| {
        let (method, outcome, tenant, server) = key;
        Refusal {
            method: method.name(),
            outcome: outcome.name(),
            tenant: fitted.tenant_names[usize::from(*tenant)].clone(),
            server: fitted.server_names[usize::from(*server)].clone(),
            count: of.count,
            retry_after_s: of
                .retry_after_s
                .kept
                .iter()
                .map(|x| f64::from(*x))
                .collect(),
        }
    })
}

/// The title of the scenario.
pub fn title(log: &Log, fitted: &Fitted) -> String {
    let tasks = log.collector.tasks.len();
    let times = if tasks == 1 { "task" } else { "tasks" };
    format!(
        "Fitted from a log: {tasks} {times} in {} s",
        number(Some(fitted.span_s))
    )
}

/// What the scenario does not say, or says on thin ground.
pub fn notes(log: &Log, fitted: &Fitted, choice: &Choice) -> Vec<String> {
    let mut notes = Vec::new();
    let collector = &log.collector;
    if collector.tenants.overflowed || collector.servers.overflowed {
        notes.push("more than 255 different tenants or servers: those that came later are put together as `others`".into());
    }
    for tenant in &fitted.tenants {
        tenant_notes(tenant, choice, &mut notes);
    }
    for server in &fitted.servers {
        server_notes(server, choice, &mut notes);
    }
    let count = |method| collector.methods.get(&method).copied().unwrap_or(0);
    let notices = count(Method::Status);
    if notices > 0 {
        notes.push(format!("{notices} notifications of statuses count as news of their tasks; the scenario has none, and its hosts poll without them"));
    }
    notes
}

fn tenant_notes(tenant: &Tenant, choice: &Choice, notes: &mut Vec<String>) {
    let name = &tenant.name;
    let mut note = |text: String| notes.push(format!("tenant {name}: {text}"));
    let share = |n: u64| n as f64 / tenant.tasks as f64;
    if share(tenant.observed.under_way) > NOTABLE {
        note(format!(
            "{} of {} tasks were under way when the log began; they arrive with their first line, and their durations are left out",
            tenant.observed.under_way, tenant.tasks
        ));
    }
    if tenant.creations_ms.is_empty() {
        note("the log has no creation (tools/call): a task begins with createdAt, or else with its first poll, which is sent at once".into());
    }
    if tenant.durations.beyond > 0.0 {
        note(format!(
            "{} % of the tasks outlast all that the log shows; they are taken to last {} s, twice the longest observation",
            number(Some(100.0 * tenant.durations.beyond)),
            number(Some(tenant.durations.beyond_ms / 1e3))
        ));
    }
    if tenant.asked_input > 0 {
        note(format!(
            "{} tasks asked for input; the pause is part of their durations, `input` is not fitted",
            tenant.asked_input
        ));
    }
    match &tenant.pacing {
        None => note("there is no wait between two polls to fit a policy to".into()),
        Some(p) if p.explained < POOR && choice.named.is_none() => note(format!(
            "the envelope explains only {:.0} % of {} waits; if the hosts' SDK is known, name its policy with --policy",
            100.0 * p.explained,
            p.waits
        )),
        Some(_) => {}
    }
    if choice.named.is_some() && tenant.leaked as f64 > LEAKING * tenant.aborts() as f64 {
        note("tasks are polled on after their abort; whether the named policy does so is its own affair".into());
    }
}

fn server_notes(server: &Server, choice: &Choice, notes: &mut Vec<String>) {
    let name = &server.name;
    let mut note = |text: String| notes.push(format!("server {name}: {text}"));
    if server.failed_share > 0.0 {
        let share = number(Some(100.0 * server.failed_share));
        note(match choice.named {
            None => format!(
                "{share} % of the polls were refused or not answered; the scenario has them as answers that are lost, each as likely as any other, whatever the load"
            ),
            Some(_) => format!(
                "{share} % of the polls were refused or not answered; with --policy the scenario leaves them out"
            ),
        });
    }
    if server.round_trips_ms.last().is_none_or(|ms| *ms <= 0.0) {
        note("the log has no latencies: polls take no time in the scenario".into());
    }
    if server.clock.is_none() {
        note("its clock does not fit the log's; where a task's end lies in the log is known only between two polls".into());
    }
    if server.hints.vary() {
        note("the hints of a task change; the scenario draws them anew for each answer, whatever they follow".into());
    }
}

fn by_class(counts: &Counts) -> Value {
    HintClass::ALL
        .iter()
        .map(|class| {
            (
                class.name().to_string(),
                json!(counts.classes[*class as usize]),
            )
        })
        .filter(|(_, n)| *n != json!(0))
        .collect::<Map<_, _>>()
        .into()
}

fn latency_json(latency: &Latency) -> Value {
    let at = |p| latency.quantile_ms(p);
    json!({
        "known": { "count": latency.known_ms.len(), "mean_ms": latency.known_mean_ms(),
                   "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99) },
        "between_polls": latency.between,
        "mean_at_least_ms": latency.mean_ms().map(|(least, _)| least),
        "mean_at_most_ms": latency.mean_ms().map(|(_, most)| most),
    })
}

fn pacing_json(pacing: &Pacing) -> Value {
    let rules: Map<String, Value> = pacing
        .rules
        .iter()
        .map(|(class, then)| (class.name().into(), json!(then)))
        .collect();
    json!({
        "uses_hints": pacing.uses_hints, "default_ms": pacing.default_ms, "floor_ms": pacing.floor_ms, "ceiling_ms": pacing.ceiling_ms,
        "overhead_ms": pacing.overhead_ms, "rules": rules, "steps_ms": pacing.steps_ms,
        "jitter": jitter_words(pacing.jitter), "pace": if pacing.fixed_rate { "fixed_rate" } else { "fixed_delay" }, "first_poll": first_words(pacing.first_poll),
        "gap_after_error_ms": pacing.gap_after_error_ms, "explained_share": pacing.explained, "waits": pacing.waits,
    })
}

fn tenant_json(tenant: &Tenant) -> Value {
    json!({
        "tasks": tenant.tasks,
        "polls": tenant.polls, "polls_refused": tenant.refused, "polls_unanswered": tenant.unanswered,
        "durations": {
            "exactly": tenant.observed.exactly, "between_polls": tenant.observed.between, "longer_than_seen": tenant.observed.beyond,
            "under_way_at_start": tenant.observed.under_way,
            "mean_ms": mean(&tenant.durations.values_ms), "p50_ms": quantile(&tenant.durations.values_ms, 0.5),
            "share_beyond": tenant.durations.beyond, "beyond_taken_as_ms": (tenant.durations.beyond > 0.0).then_some(tenant.durations.beyond_ms),
        },
        "ends": { "completed": tenant.ends[0], "failed": tenant.ends[1], "cancelled": tenant.ends[2] },
        "aborts": { "count": tenant.aborts(), "how": tenant.given_up, "probability": (tenant.aborts() > 0).then_some(1.0 - tenant.patience.beyond),
                    "leaked_polls": tenant.leaked },
        "completion_latency": latency_json(&tenant.latency),
        "policy": tenant.pacing.as_ref().map(pacing_json),
        "servers": tenant.servers,
    })
}

fn server_json(server: &Server) -> Value {
    let at = |p| quantile(&server.round_trips_ms, p);
    json!({
        "tasks": server.tasks,
        "round_trip": { "mean_ms": mean(&server.round_trips_ms), "p50_ms": at(0.5), "p99_ms": at(0.99) },
        "hints": { "drawn": if server.hints.vary() { "per_answer" } else { "per_task" },
                   "by_task": by_class(&server.hints.per_task), "by_answer": by_class(&server.hints.per_answer) },
        "failed_share": server.failed_share,
        "clock_offset_ms": server.clock.map(|ns| ns as f64 / 1e6),
    })
}

/// The content of `fit.json`.
pub fn json(log: &Log, fitted: &Fitted, choice: &Choice) -> Vec<u8> {
    let files: Vec<Value> = log
        .files
        .iter()
        .map(|f| json!({ "file": f.path.display().to_string(), "format": f.kind.name(), "lines": f.lines }))
        .collect();
    let unread: Map<String, Value> = log
        .unread
        .iter()
        .map(|(reason, of)| {
            let first = format!("{}:{}", of.path.display(), of.line);
            (
                reason.name().into(),
                json!({ "count": of.count, "first": first, "why": reason.text() }),
            )
        })
        .collect();
    let refusals: Vec<Value> = refusals(log, fitted)
        .map(|r| json!({ "method": r.method, "outcome": r.outcome, "tenant": r.tenant, "server": r.server, "count": r.count }))
        .collect();
    let named = |of: Vec<(String, Value)>| of.into_iter().collect::<Map<_, _>>();
    let methods: Map<String, Value> = log
        .collector
        .methods
        .iter()
        .map(|(method, n)| (method.name().into(), json!(n)))
        .collect();
    let whole = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "logs": files, "lines": log.lines(), "unread": unread, "other_messages": log.collector.other_messages, "requests": methods,
        "start_s": fitted.start as f64 / 1e9, "span_s": fitted.span_s,
        "tasks": log.collector.tasks.len(), "polls": log.collector.polls(),
        "tasks_get_rate_mean_per_s": fitted.rate_per_s(),
        "tasks_get_rate_peak_per_s": log.collector.windows.peak_per_s(), "peak_window_s": log.collector.windows.width_s,
        "refusals": refusals,
        "tenants": named(fitted.tenants.iter().map(|t| (t.name.clone(), tenant_json(t))).collect()),
        "servers": named(fitted.servers.iter().map(|s| (s.name.clone(), server_json(s))).collect()),
        "notes": notes(log, fitted, choice),
    });
    let mut text = serde_json::to_vec_pretty(&whole).unwrap_or_default();
    text.push(b'\n');
    text
}

pub(super) fn jitter_words(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".into(),
        Jitter::Full => "full".into(),
        Jitter::Equal => "equal".into(),
        Jitter::Proportional(share) => format!("± {} %", number(Some(100.0 * share))),
        Jitter::Additive(ms) => format!("up to {} ms more", number(Some(ms))),
    }
}

pub(super) fn first_words(first: FirstPoll) -> String {
    match first {
        FirstPoll::AtOnce => "at once".into(),
        FirstPoll::AfterWait => "after a wait".into(),
        FirstPoll::After(ms) => format!("after {} ms", number(Some(ms))),
    }
}
