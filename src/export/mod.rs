//! The policy outside the simulator: the same decisions as a small function in another language, without dependencies, which a host can paste.
//!
//! What an exported function says is exactly what [`crate::policy::Policy::decide`] says, to the nanosecond: the wait after each answer. Parts of a policy that
//! change waits in another way (a common timer, notifications, a breaker …) cannot be said by it; such a policy is refused.

use minijinja::Environment;
use serde_json::{Map, Value, json};

use crate::policy::hint::MAX_I64_NS_IN_MS;
use crate::scenario::fields::Field;
use crate::scenario::limits::OnRetryAfter;
use crate::scenario::policy::{
    AtEnd, Backoff, FirstPoll, Jitter, LastWait, OnError, Pace, Policy, Push, Runs, Schedule,
};
use crate::scenario::units::Duration;

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The parameters alone.
    Json,
    /// TypeScript (ES2020).
    TypeScript,
    /// Python (3.9 or later).
    Python,
}

/// Why a policy cannot be said by a function of answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{policy}\" cannot be exported as it is: {}", parts.join("; "))]
pub struct Refused {
    /// The policy.
    pub policy: String,
    /// The parts that it cannot say, each with its key.
    pub parts: Vec<String>,
}

/// Above this a number of nanoseconds has no exact number of milliseconds in a double.
const EXACT: u64 = 1 << 53;

/// The policy called `name` in a language; `limits` say what the loop that it stands for does and it does not.
///
/// # Errors
/// [`Refused`] with every part that it cannot say.
pub fn export(
    name: &str,
    policy: &Policy,
    limits: &[String],
    to: Language,
) -> Result<String, Refused> {
    let parts = unsaid(policy);
    if !parts.is_empty() {
        return Err(Refused {
            policy: name.into(),
            parts,
        });
    }
    let parameters = parameters(policy);
    let pretty = serde_json::to_string_pretty(&parameters).unwrap_or_default();
    let template = match to {
        Language::Json => {
            let whole = json!({ "policy": name, "version": env!("CARGO_PKG_VERSION"), "parameters": parameters, "left_to_the_host": left(policy), "not_said": limits });
            return Ok(serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n");
        }
        Language::TypeScript => include_str!("policy.ts"),
        Language::Python => include_str!("policy.py"),
    };
    let values = minijinja::context! {
        name => name,
        version => env!("CARGO_PKG_VERSION"),
        parameters => pretty,
        left => left(policy).join("; "),
        limits => limits.to_vec(),
        max_i64_ns_in_ms => format!("{MAX_I64_NS_IN_MS:?}"),
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let rendered = environment.render_str(template, values);
    // The templates are part of the program, and their values are all here.
    Ok(rendered.unwrap_or_default() + "\n")
}

/// The parts of a policy that change waits and are no matter of answers.
fn unsaid(policy: &Policy) -> Vec<String> {
    let ends = policy.give_up_after.is_some() || policy.ends_at_ttl;
    let parts = [
        (
            policy.pace == Pace::FixedRate,
            "pace = \"fixed_rate\": waits count from the last tick",
        ),
        (
            policy.push != Push::Ignored,
            "push: notifications change waits",
        ),
        (
            policy.schedule != Schedule::PerTask,
            "schedule: all tasks of a host have one timer",
        ),
        (
            policy.in_flight.is_some(),
            "in_flight: polls of a connection wait for each other",
        ),
        (policy.lease, "lease: loops of a task share a request"),
        (
            policy.retry_after != OnRetryAfter::Ignored,
            "retry_after: waits follow it",
        ),
        (
            policy.retries.is_some(),
            "retries: the transport has waits of its own",
        ),
        (
            policy.breaker.is_some(),
            "breaker: a circuit breaker holds polls back",
        ),
        (
            policy.long_poll.is_some(),
            "long_poll: the server holds polls",
        ),
        (
            policy.requests_per_poll.0 > 1,
            "requests_per_poll: several requests in one poll",
        ),
        (
            policy.runs == Runs::OnServer,
            "runs = \"on_server\": it reads a store, and polls nobody",
        ),
        (
            policy.last_wait != LastWait::Slept && ends,
            "last_wait: the last wait depends on the clock",
        ),
    ];
    let mut unsaid: Vec<String> = parts
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, part)| part.into())
        .collect();
    let spans = spans(policy).into_iter();
    unsaid.extend(
        spans
            .filter(|(_, span)| span.0 > EXACT)
            .map(|(key, span)| format!("{key} = \"{span}\": longer than 104 days")),
    );
    unsaid
}

/// The spans that stand in the parameters, with their keys.
fn spans(policy: &Policy) -> Vec<(&'static str, Duration)> {
    let mut spans = vec![
        ("default", policy.default),
        ("slow_down", policy.slow_down),
        ("jitter_step", policy.jitter_step),
        ("timer.quantum", policy.timer.quantum),
        ("timer.minimum", policy.timer.minimum),
    ];
    let mut add = |key, span: Option<Duration>| spans.extend(span.map(|span| (key, span)));
    add("floor", policy.floor);
    add("ceiling", policy.ceiling);
    add("timer.maximum", policy.timer.maximum.map(|s| s.0));
    match &policy.backoff {
        Backoff::None => {}
        Backoff::Geometric(g) => {
            add("backoff.geometric.initial", g.initial.map(|s| s.0));
            add("backoff.geometric.cap", g.cap.map(|s| s.0));
        }
        Backoff::Additive(a) => {
            add("backoff.additive.step", Some(a.step.0));
            add("backoff.additive.cap", a.cap.map(|s| s.0));
        }
        Backoff::Steps(steps) => {
            let longest = steps.iter().map(|s| s.wait.0).max();
            add("backoff.steps", longest);
        }
    }
    if let Some(errors) = &policy.error_backoff {
        add("error_backoff.initial", errors.initial.map(|s| s.0));
        add("error_backoff.cap", errors.cap.map(|s| s.0));
    }
    match &policy.jitter {
        Jitter::Additive(span) | Jitter::Minus(span) => add("jitter", Some(span.0)),
        Jitter::Window(low) => add("jitter.window", Some(*low)),
        _ => {}
    }
    if let FirstPoll::After(wait) = policy.first_poll {
        add("first_poll.after", Some(wait));
    }
    spans
}

/// What the loop around the function has to do by itself.
fn left(policy: &Policy) -> Vec<String> {
    let mut left = Vec::new();
    if let Some(age) = policy.give_up_after {
        left.push(format!("giving up at {age}"));
    }
    if policy.ends_at_ttl {
        left.push("giving up at the server's ttl".into());
    }
    if let Some(polls) = policy.max_polls {
        left.push(format!("giving up after {} polls", polls.0));
    }
    if let Some(timeout) = policy.timeout {
        left.push(format!("the timeout of a request ({})", timeout.0));
    }
    if policy.ends_with_cancel() {
        left.push("tasks/cancel where the loop ends by itself or is aborted".into());
    }
    if policy.at_end == AtEnd::TasksResult {
        left.push("tasks/result for a completed task".into());
    }
    left.push("an unknown task, and an abort during a wait".into());
    left
}

fn ms(span: Duration) -> Value {
    json!(span.0 as f64 / 1e6)
}

fn word<T: Field>(value: &T) -> Value {
    match value.write() {
        Some(toml::Value::String(text)) => json!(text),
        _ => Value::Null,
    }
}

/// The parameters, with the words of the scenario; spans in milliseconds.
fn parameters(policy: &Policy) -> Value {
    let span = |span: Option<Duration>| span.map_or(Value::Null, ms);
    let (mut floor, mut ceiling) = (policy.floor.unwrap_or(Duration(0)), policy.ceiling);
    match policy.bounds_conflict {
        crate::scenario::policy::Conflict::FloorWins => ceiling = ceiling.map(|c| c.max(floor)),
        crate::scenario::policy::Conflict::CeilingWins => {
            floor = ceiling.map_or(floor, |c| c.min(floor));
        }
        crate::scenario::policy::Conflict::Error => {}
    }
    let rules = policy.rules.iter().map(|rule| {
        let class = rule.class.as_ref().map_or(Value::Null, word);
        let kind = rule.json.as_ref().map_or(Value::Null, word);
        json!({ "class": class, "json": kind, "min": rule.min.map(|n| n.0), "max": rule.max.map(|n| n.0), "then": word(&rule.then) })
    });
    let errors = policy
        .error_backoff
        .as_ref()
        .filter(|_| policy.on_error == OnError::Retry)
        .map(|e| {
            json!({ "kind": "geometric", "initial_ms": span(e.initial.map(|s| s.0)), "factor": e.factor.0, "cap_ms": span(e.cap.map(|s| s.0)),
                    "reset": word(&e.reset), "sticks": e.sticks })
        });
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| {
        all.insert(key.into(), value);
    };
    put("role", word(&policy.role));
    put("read", word(&policy.read));
    put("absent", word(&policy.absent));
    put("default_ms", ms(policy.default));
    put("floor_ms", ms(floor));
    put("ceiling_ms", span(ceiling));
    put("ceiling_covers", word(&policy.ceiling_covers));
    put("bounds", word(&policy.bounds));
    put("rules", rules.collect());
    put("backoff", backoff(&policy.backoff));
    put("backoff_of", word(&policy.backoff_of));
    put("backoff_reset", word(&policy.backoff_reset));
    put("on_error", word(&policy.on_error));
    put("on_timeout", word(&policy.on_timeout));
    put("error_backoff", json!(errors));
    put("max_errors", json!(policy.max_errors.map(|n| n.0)));
    put("jitter", jitter(&policy.jitter));
    put("jitter_step_ms", ms(policy.jitter_step));
    put(
        "first_poll",
        match policy.first_poll {
            FirstPoll::AtOnce => json!({ "kind": "at_once" }),
            FirstPoll::AfterWait => json!({ "kind": "after_wait" }),
            FirstPoll::After(wait) => json!({ "kind": "after", "after_ms": ms(wait) }),
        },
    );
    let timer = &policy.timer;
    put(
        "timer",
        json!({ "quantum_ms": ms(timer.quantum), "minimum_ms": ms(timer.minimum), "maximum_ms": span(timer.maximum.map(|s| s.0)), "beyond": word(&timer.beyond) }),
    );
    put("slow_down_ms", ms(policy.slow_down));
    put("on_question", word(&policy.on_question));
    put("max_questions", json!(policy.max_questions.map(|n| n.0)));
    put("stuck_after", json!(policy.stuck_after.map(|n| n.0)));
    Value::Object(all)
}

fn backoff(backoff: &Backoff) -> Value {
    let span = |span: Option<Duration>| span.map_or(Value::Null, ms);
    match backoff {
        Backoff::None => json!({ "kind": "none" }),
        Backoff::Geometric(g) => {
            json!({ "kind": "geometric", "initial_ms": span(g.initial.map(|s| s.0)), "factor": g.factor.0, "cap_ms": span(g.cap.map(|s| s.0)) })
        }
        Backoff::Additive(a) => {
            json!({ "kind": "additive", "step_ms": ms(a.step.0), "cap_ms": span(a.cap.map(|s| s.0)) })
        }
        Backoff::Steps(steps) => {
            let steps: Vec<Value> = steps
                .iter()
                .map(|s| json!([s.waits.0, ms(s.wait.0)]))
                .collect();
            json!({ "kind": "steps", "steps": steps })
        }
    }
}

fn jitter(jitter: &Jitter) -> Value {
    match jitter {
        Jitter::None => json!({ "kind": "none" }),
        Jitter::Full => json!({ "kind": "full" }),
        Jitter::Equal => json!({ "kind": "equal" }),
        Jitter::Proportional(share) => json!({ "kind": "proportional", "share": share.0 }),
        Jitter::Additive(span) => json!({ "kind": "additive", "span_ms": ms(span.0) }),
        Jitter::Minus(span) => json!({ "kind": "minus", "span_ms": ms(span.0) }),
        Jitter::Window(low) => json!({ "kind": "window", "span_ms": ms(*low) }),
        Jitter::Decorrelated(factor) => json!({ "kind": "decorrelated", "factor": factor.0 }),
    }
}
