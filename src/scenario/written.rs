//! The scenario as written: the tables of a `models/*.toml` file, their keys, defaults and meaning.
//!
//! This is the reference of the format: `pollpace schema` and `pollpace check` are made from it.

use std::collections::BTreeMap;

use serde_json::json;

use super::distribution::{Distribution, Empirical, read_times, weights_sum};
use super::fields::{
    Confidence, Count, Field, Number, Positive, Reader, Share, Span, Weight, choice, object,
    property, record,
};
use super::tree::{Node, Value};
use super::units::{Duration, Rate};

pub use super::faults::*;
pub use super::limits::*;
pub use super::policy::*;

/// A distribution of durations.
pub type Time = Distribution<Duration>;
/// A distribution of plain numbers.
pub type Plain = Distribution<Number>;

record! {
    /// A fleet of hosts that poll servers, and the question put to it.
    pub struct Scenario {
        /// What this scenario is about, in a line.
        title: String = String::new(),
        /// Length, seed and repetitions.
        run: Run,
        /// The server classes.
        server: Vec<Server>,
        /// Hints that servers refer to by name.
        hint: BTreeMap<String, Hint>,
        /// The tenant classes.
        tenant: Vec<Tenant>,
        /// Policies that tenants refer to by name.
        policy: BTreeMap<String, Policy>,
        /// Budgets for the polls of all hosts together; none where left out.
        budget: Option<Budget>,
        /// What the fleet has to achieve.
        objective: Vec<Objective>,
    }
}

record! {
    /// Length, seed and repetitions of a run.
    pub struct Run {
        /// Every draw is a function of this and of what is drawn; the same seed gives the same bytes.
        seed: u64 = 1,
        /// Tasks arrive in [0, horizon).
        horizon: Span,
        /// Nothing before this instant is observed; the state is kept.
        warm_up: Duration = Duration(0),
        /// After the horizon: `all` runs on until every task is settled, `none` stops after the horizon's own instant.
        drain: Drain = Drain::All,
        /// Independent repetitions, from which the intervals are estimated.
        replications: Count = Count(10),
        /// Level of the confidence intervals.
        confidence: Confidence = Confidence(0.95),
        /// A limit on the events of one replication; none where left out.
        event_limit: Option<u64>,
    }
}

choice! {
    /// What happens after the horizon.
    pub enum Drain {
        words {
            /// Run on until every task is settled.
            "all" => All,
            /// Stop after the horizon's own instant.
            "none" => None,
        }
        tables {}
    }
}

record! {
    /// A class of servers that are alike.
    pub struct Server {
        /// Its name; tenants and result rows refer to it.
        name: String,
        /// How many there are.
        count: Count = Count(1),
        /// Tasks that one server executes at once; the rest wait as `working`. No limit where left out.
        executes: Option<Count>,
        /// How it answers requests.
        tasks_get: Station = Station { workers: Count(1), service: Distribution::constant(Duration(0)), queue: None, growth: Weight(0.0) },
        /// One-way network delay, drawn for each direction of each request.
        delay: Time = Distribution::constant(Duration(0)),
        /// The `pollInterval` it suggests: the name of a hint, or a number of milliseconds. Absent where left out.
        hint: Option<HintRef>,
        /// Limits on the rate of requests, over which it answers 429. A request must pass all of them; refusals cost it no time.
        limits: Vec<RateLimit>,
        /// What stands in `Retry-After` of its refusals.
        retry_after: RetryAfter = RetryAfter::Absent,
        /// `Retry-After` in its good answers; absent where left out.
        retry_after_on_success: Option<Duration>,
        /// The shortest time between two polls of a task; any where left out.
        minimum_gap: Option<MinimumGap>,
        /// When it is down; never where left out.
        outage: Option<Outage>,
        /// When it is slow.
        slow: Vec<SlowPeriod>,
        /// Messages that are lost on their way, in either direction.
        loss: Loss = Loss { request: Share(0.0), answer: Share(0.0) },
        /// A task is deleted at this age, whatever its status; never where left out.
        ttl: Option<Span>,
        /// Notifications of changed statuses; none where left out.
        notifications: Option<Notifications>,
    }
}

record! {
    /// The station that answers `tasks/get` and the other requests from the task store: FIFO, several workers.
    pub struct Station {
        /// Requests served at once.
        workers: Count = Count(1),
        /// Service time; the state is read at its end.
        service: Time = Distribution::constant(Duration(0)),
        /// Requests that may wait; one more is refused with 503. No limit where left out.
        queue: Option<u64>,
        /// Service grows by this share of itself for each request that an arriving one finds, waiting or served.
        growth: Weight = Weight(0.0),
    }
}

/// The hint of a server: by name, or a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum HintRef {
    /// A `[hint.NAME]` table.
    Name(String),
    /// Always this many milliseconds.
    Constant(f64),
}

impl Field for HintRef {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        match &node.value {
            Value::Text(name) => Some(HintRef::Name(name.clone())),
            Value::Integer(i) => Some(HintRef::Constant(*i as f64)),
            Value::Float(x) => Some(HintRef::Constant(*x)),
            _ => {
                reader.mismatch(node, "a hint", &format!("write {}", Self::example()));
                None
            }
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(match self {
            HintRef::Name(name) => toml::Value::String(name.clone()),
            HintRef::Constant(x) => toml::Value::Float(*x),
        })
    }
    fn example() -> String {
        "the name of a [hint.NAME] table, or milliseconds such as 5000".into()
    }
    fn schema() -> serde_json::Value {
        json!({ "anyOf": [{ "type": "string", "description": "the name of a [hint.NAME] table" }, { "type": "number", "description": "milliseconds" }] })
    }
}

record! {
    /// What a server puts into `pollInterval`.
    pub struct Hint {
        /// When the hint is drawn.
        drawn: Drawn = Drawn::PerTask,
        /// The mixture that it is drawn from (with `per_task` and `per_answer`).
        mix: Vec<HintPart>,
        /// Steps over a task's age, its progress or the server's load; a step holds from its `from` on, inclusive.
        steps: Vec<HintStep>,
    }
}

choice! {
    /// When a hint is drawn, or what it follows.
    pub enum Drawn {
        words {
            /// Once per task; every answer carries the same.
            "per_task" => PerTask,
            /// Once per task, without chance: of a tenant's tasks, as many as its weight says take the first part, then the second, and so on, and again.
            "in_turn" => InTurn,
            /// Anew for each answer.
            "per_answer" => PerAnswer,
            /// By the share of the task's duration that has passed (`from` is 0 to 1).
            "by_progress" => ByProgress,
            /// By the time since the task's creation (`from` is a duration).
            "by_age" => ByAge,
            /// By the number of unfinished tasks that the server holds (`from` is that number).
            "by_load" => ByLoad,
        }
        tables {}
    }
}

/// A part of a hint mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct HintPart {
    /// Its weight.
    pub weight: Weight,
    /// What is on the wire.
    pub wire: Wire,
}

/// What a hint is on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Wire {
    /// Milliseconds drawn from a distribution, rounded to whole ones (a fractional hint is a `value`).
    Ms(Plain),
    /// The key is not there.
    Absent,
    /// `null`.
    Null,
    /// A number, however bad.
    Value(f64),
    /// A string.
    Text(String),
}

impl Wire {
    const KEYS: [&'static str; 4] = ["ms", "absent", "null", "value"];

    /// Reads the one of `ms`, `absent`, `null`, `value` that the table has.
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let given: Vec<&str> = Self::KEYS
            .into_iter()
            .filter(|k| node.get(k).is_some())
            .collect();
        if given.is_empty() && Self::KEYS.iter().any(|k| reader.is_misspelt(k)) {
            return None;
        }
        let [key] = given[..] else {
            let found = if given.is_empty() {
                "found none of them".into()
            } else {
                format!("found {}", given.join(" and "))
            };
            reader.error(
                &node.place,
                "a hint is one of ms, absent, null, value",
                found,
                "write one, as in { weight = 6, value = 0 } or { weight = 80, ms = { lognormal = { median = 2000, sigma = 0.8 } } }",
            );
            return None;
        };
        let value = node.get(key)?;
        reader.within(key, |reader| match (key, &value.value) {
            ("ms", _) => Plain::read(value, reader).map(Wire::Ms),
            ("absent", Value::Boolean(true)) => Some(Wire::Absent),
            ("null", Value::Boolean(true)) => Some(Wire::Null),
            ("value", Value::Integer(i)) => Some(Wire::Value(*i as f64)),
            ("value", Value::Float(x)) => Some(Wire::Value(*x)),
            ("value", Value::Text(text)) => Some(Wire::Text(text.clone())),
            ("value", _) => {
                reader.mismatch(
                    value,
                    "a number or a string",
                    "write value = 0, value = nan or value = \"soon\"",
                );
                None
            }
            _ => {
                reader.error(
                    &value.place,
                    "this can only be true",
                    match value.value {
                        Value::Boolean(_) => "found false".into(),
                        _ => format!("found {}", value.kind()),
                    },
                    format!("write {key} = true, or leave it out"),
                );
                None
            }
        })
    }

    fn write_into(&self, table: &mut toml::Table) {
        let (key, value) = match self {
            Wire::Ms(ms) => ("ms", ms.write()),
            Wire::Absent => ("absent", Some(toml::Value::Boolean(true))),
            Wire::Null => ("null", Some(toml::Value::Boolean(true))),
            Wire::Value(x) => ("value", Some(toml::Value::Float(*x))),
            Wire::Text(text) => ("value", Some(toml::Value::String(text.clone()))),
        };
        if let Some(value) = value {
            table.insert(key.into(), value);
        }
    }

    fn properties() -> serde_json::Map<String, serde_json::Value> {
        let map = json!({
            "ms": property(Plain::schema(), "milliseconds drawn from a distribution, rounded to whole ones", None),
            "absent": { "const": true, "description": "the key is not there" },
            "null": { "const": true, "description": "null" },
            "value": { "type": ["number", "string"], "description": "a number, however bad (TOML's nan and inf included), or a string" },
        });
        map.as_object().cloned().unwrap_or_default()
    }
}

impl Field for HintPart {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let entries = reader.table(node, &format!("write {}", Self::example()))?;
        reader.unknown_keys(entries, &["weight", "ms", "absent", "null", "value"]);
        let weight = reader.optional(node, "weight");
        let wire = Wire::read(node, reader);
        Some(HintPart {
            weight: weight?.unwrap_or(Weight(1.0)),
            wire: wire?,
        })
    }
    fn write(&self) -> Option<toml::Value> {
        let mut table = toml::Table::new();
        table.insert("weight".into(), self.weight.write()?);
        self.wire.write_into(&mut table);
        Some(toml::Value::Table(table))
    }
    fn example() -> String {
        "{ weight = 1, value = 0 }".into()
    }
    fn schema() -> serde_json::Value {
        let mut properties = Wire::properties();
        properties.insert(
            "weight".into(),
            property(
                Weight::schema(),
                "share of this part, relative to the other weights",
                Some(toml::Value::Float(1.0)),
            ),
        );
        object(
            properties,
            &[],
            "a part of a mixture of hints: one of ms, absent, null, value",
        )
    }
}

/// A step of a hint that changes over a task's life or with load.
#[derive(Clone, Debug, PartialEq)]
pub struct HintStep {
    /// From here on: an age in ns, a share of progress, or a number of tasks.
    pub from: StepStart,
    /// What is on the wire.
    pub wire: Wire,
}

/// Where a step begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepStart {
    /// An age.
    Age(Duration),
    /// A share of progress, or a number of tasks.
    Number(f64),
}

impl Field for HintStep {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let entries = reader.table(node, &format!("write {}", Self::example()))?;
        reader.unknown_keys(entries, &["from", "ms", "absent", "null", "value"]);
        let from = match node.get("from") {
            Some(at) => reader.within("from", |reader| match &at.value {
                Value::Text(_) => Duration::read(at, reader).map(StepStart::Age),
                _ => Weight::read(at, reader).map(|x| StepStart::Number(x.0)),
            }),
            None => {
                reader.missing(node, "from", "\"10s\"");
                None
            }
        };
        let wire = Wire::read(node, reader);
        Some(HintStep {
            from: from?,
            wire: wire?,
        })
    }
    fn write(&self) -> Option<toml::Value> {
        let mut table = toml::Table::new();
        let from = match self.from {
            StepStart::Age(age) => age.write()?,
            StepStart::Number(x) => toml::Value::Float(x),
        };
        table.insert("from".into(), from);
        self.wire.write_into(&mut table);
        Some(toml::Value::Table(table))
    }
    fn example() -> String {
        "{ from = \"10s\", value = 30000 }".into()
    }
    fn schema() -> serde_json::Value {
        let mut properties = Wire::properties();
        properties.insert("from".into(), json!({ "anyOf": [Duration::schema(), { "type": "number", "minimum": 0 }], "description": "the step holds from here on, inclusive" }));
        object(
            properties,
            &["from"],
            "a step of a hint: from where, and one of ms, absent, null, value",
        )
    }
}

record! {
    /// A class of tenants that are alike.
    pub struct Tenant {
        /// Its name; result rows refer to it, and its random streams are keyed by it.
        name: String,
        /// How many there are, each with its own random streams.
        count: Count = Count(1),
        /// Hosts of each tenant; its tasks go to them in turn.
        hosts: Count = Count(1),
        /// Its share of a budget for which tenants wait, relative to the others'.
        weight: Positive = Positive(1.0),
        /// When a member's tasks are created.
        arrivals: Arrivals,
        /// How long a task runs at the server.
        duration: Time,
        /// Which server classes its tasks go to, by weight; within a class each server is as likely.
        servers: BTreeMap<String, Weight>,
        /// How its tasks end at the server.
        ends: Ends = Ends { completed: Weight(1.0), failed: Weight(0.0), cancelled: Weight(0.0) },
        /// Delay between asking for a task and holding its id; the task's clock starts then.
        creation_delay: Time = Distribution::constant(Duration(0)),
        /// When and how a caller gives up on a task; never where left out.
        abort: Option<Abort>,
        /// Tasks that pause for an answer of their host; none where left out.
        input: Option<Input>,
        /// When its hosts are restarted or lose their connection; never where left out.
        reconnect: Option<Reconnect>,
        /// The capacity of each host's event loop; without limit where left out.
        host_loop: Option<HostLoop>,
        /// What its polling costs.
        cost: Cost = Cost { request: Weight(0.0), poll_tokens: Weight(0.0), token: Weight(0.0) },
        /// The policy that its hosts follow.
        policy: String,
    }
}

choice! {
    /// When the tasks of a member are created.
    pub enum Arrivals {
        words {}
        tables {
            /// So many tasks at one instant.
            "at_once" => AtOnce(AtOnce),
            /// So many tasks at an offset drawn once per member.
            "offset" => Offset(Offset),
            /// One task every period, from a phase drawn once per member on.
            "periodic" => Periodic(Periodic),
            /// Independent arrivals at a constant rate.
            "poisson" => Poisson(Poisson),
            /// Bursts: Poisson arrivals while on, none while off.
            "on_off" => OnOff(OnOff),
            /// The times of a CSV column (seconds, or the unit given), the same for every member.
            "recorded" => Recorded(Recorded),
            /// So many tasks at a time: a settled task is followed by the next.
            "closed_loop" => ClosedLoop(ClosedLoop),
        }
    }
}

record! {
    /// Tasks that are created together.
    pub struct AtOnce {
        /// How many.
        tasks: Count = Count(1),
        /// When.
        at: Duration = Duration(0),
    }
}

record! {
    /// Tasks at an offset drawn once per member.
    pub struct Offset {
        /// The offset.
        after: Time,
        /// How many tasks.
        tasks: Count = Count(1),
    }
}

record! {
    /// One task every period.
    pub struct Periodic {
        /// The period.
        every: Span,
        /// When the first one comes, drawn once per member.
        phase: Time = Distribution::constant(Duration(0)),
        /// At most so many tasks per member; no limit where left out.
        tasks: Option<Count>,
    }
}

record! {
    /// A Poisson process.
    pub struct Poisson {
        /// Mean arrivals per member.
        rate: Rate,
        /// At most so many tasks per member; no limit where left out.
        tasks: Option<Count>,
    }
}

record! {
    /// Bursts.
    pub struct OnOff {
        /// Mean arrivals per member while on.
        rate: Rate,
        /// How long it is on; a run begins with it.
        on: Time,
        /// How long it is off.
        off: Time,
    }
}

record! {
    /// Tasks at a time.
    pub struct ClosedLoop {
        /// How many tasks a member has at a time.
        tasks: Count = Count(1),
        /// Pause between the settling of a task and the creation of the next.
        think: Time = Distribution::constant(Duration(0)),
    }
}

/// Recorded times.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded(pub Empirical);

impl Field for Recorded {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        read_times(node, reader).map(Recorded)
    }
    fn write(&self) -> Option<toml::Value> {
        Some(self.0.write())
    }
    fn example() -> String {
        Empirical::EXAMPLE.into()
    }
    fn schema() -> serde_json::Value {
        Empirical::schema()
    }
}

record! {
    /// How tasks end at the server, by weight.
    pub struct Ends {
        /// Weight of `completed`.
        completed: Weight = Weight(1.0),
        /// Weight of `failed`.
        failed: Weight = Weight(0.0),
        /// Weight of `cancelled` by the server.
        cancelled: Weight = Weight(0.0),
    }
}

record! {
    /// When and how a caller gives up. The first of the times that are given counts; it is an abort only if the host has not seen the end.
    pub struct Abort {
        /// Share of the tasks to which `after` applies.
        probability: Share = Share(1.0),
        /// Time from the task's creation to the abort.
        after: Option<Time>,
        /// A host shutdown at this instant of the run: every task still polled is aborted.
        shutdown_at: Option<Duration>,
        /// The caller's patience: every task is aborted at this age.
        deadline: Option<Duration>,
        /// With a poll in flight: does the caller wait for it? As the policy's `on_abort` says where left out.
        request: Option<InFlight>,
        /// What the host does when control has returned to the caller; as the policy's `on_abort` says where left out.
        then: Option<Then>,
        /// With `then = "cancel"`: control returns when `tasks/cancel` is answered, at the latest after this; as the policy's `on_abort` says where left out.
        cancel_bound: Option<Duration>,
        /// Control returns to the caller so long after the abort at the latest, whatever the loop is doing; it ends then. As the policy's `on_abort` says where left out.
        grace: Option<Duration>,
        /// `notifications/cancelled` that the host sends; as the policy's `on_abort` says where left out.
        notifications: Option<CancelNotices>,
    }
}

impl Abort {
    /// The manner of the abort: what is left open here is as the policy says.
    pub fn manner(&self, policy: Option<&OnAbort>) -> OnAbort {
        let own = OnAbort::default();
        let policy = policy.unwrap_or(&own);
        OnAbort {
            request: self.request.clone().unwrap_or(policy.request.clone()),
            then: self.then.clone().unwrap_or(policy.then.clone()),
            cancel_bound: self.cancel_bound.or(policy.cancel_bound),
            grace: self.grace.or(policy.grace),
            notifications: self
                .notifications
                .clone()
                .unwrap_or(policy.notifications.clone()),
        }
    }
}

choice! {
    /// What an abort does to a poll in flight.
    pub enum InFlight {
        words {
            /// The request is aborted; control returns at once.
            "aborts" => Aborts,
            /// The caller waits for the answer.
            "waits" => Waits,
        }
        tables {}
    }
}

choice! {
    /// What becomes of an aborted task.
    pub enum Then {
        words {
            /// The id is kept and the task goes on at the server.
            "detach" => Detach,
            /// `tasks/cancel` is sent; the server ends the task when it arrives.
            "cancel" => Cancel,
            /// The id is lost and the task goes on at the server.
            "forget" => Forget,
        }
        tables {}
    }
}

choice! {
    /// `notifications/cancelled` after an abort.
    pub enum CancelNotices {
        words {
            /// None.
            "none" => None,
            /// One.
            "one" => One,
            /// One for each request of the task so far, its creation included, as the TypeScript SDK 1.x sends them.
            "per_request" => PerRequest,
        }
        tables {}
    }
}

/// A bound on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The metric, named as in the results.
    pub metric: String,
    /// Which group's value.
    pub over: String,
    /// The value may not be above this.
    pub max: Option<f64>,
    /// The value may not be below this.
    pub min: Option<f64>,
}

impl Field for Objective {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let entries = reader.table(node, &format!("write {}", Self::example()))?;
        reader.unknown_keys(entries, &["metric", "over", "max", "min"]);
        let metric = reader.required(node, "metric");
        let over = reader.optional(node, "over");
        let max: Option<Option<Number>> = reader.optional(node, "max");
        let min: Option<Option<Number>> = reader.optional(node, "min");
        let objective = Objective {
            metric: metric?,
            over: over?.unwrap_or("fleet".into()),
            max: max?.map(|n| n.0),
            min: min?.map(|n| n.0),
        };
        if objective.max.is_none() && objective.min.is_none() {
            if !reader.is_misspelt("max") && !reader.is_misspelt("min") {
                reader.error(
                    &node.place,
                    "an objective needs a bound",
                    "found neither `max` nor `min`",
                    format!("add one, as in {}", Self::example()),
                );
            }
            return None;
        }
        Some(objective)
    }
    fn write(&self) -> Option<toml::Value> {
        let mut table = toml::Table::new();
        table.insert("metric".into(), toml::Value::String(self.metric.clone()));
        table.insert("over".into(), toml::Value::String(self.over.clone()));
        for (key, bound) in [("max", self.max), ("min", self.min)] {
            if let Some(x) = bound {
                table.insert(key.into(), toml::Value::Float(x));
            }
        }
        Some(toml::Value::Table(table))
    }
    fn example() -> String {
        "{ metric = \"completion_latency_p99_ms\", max = 3000 }".into()
    }
    fn schema() -> serde_json::Value {
        let properties = json!({
            "metric": { "type": "string", "description": "as named in the results, such as completion_latency_p99_ms" },
            "over": { "type": "string", "default": "fleet", "description": "fleet, tenant.NAME or server.NAME" },
            "max": { "type": "number" },
            "min": { "type": "number" },
        });
        json!({ "type": "object", "description": "a bound on a metric", "properties": properties, "required": ["metric"],
                "anyOf": [{ "required": ["max"] }, { "required": ["min"] }], "additionalProperties": false })
    }
}

/// Reports weights of `ends` or `servers` that sum to zero.
pub fn check_weights<'a>(
    weights: impl Iterator<Item = &'a Weight>,
    node: Option<&Node>,
    reader: &mut Reader,
) {
    if let Some(node) = node {
        weights_sum(weights.map(|w| w.0), node, reader);
    }
}
