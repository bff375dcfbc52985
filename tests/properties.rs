//! What holds for every scenario: the envelope's promise, conservation, and sameness of bytes.
//!
//! Scenarios are generated as text, the way a planner writes them, so that reading, compiling and running are all part
//! of what is tested.

use std::sync::atomic::AtomicBool;

use pollpace::catalogue;
use pollpace::engine::trace::Follow;
use pollpace::engine::{self, Outcome, RunError, Totals};
use pollpace::experiment::{self, Results};
use pollpace::metrics::summary::{self, Group, Tallies};
use pollpace::metrics::tally::{Failure, Final};
use pollpace::model::{Model, Partition};
use pollpace::policy::{Cancels, Decision, Policy, RawHint, Saw, Stage, State, Steady, SteadyWait};
use pollpace::scenario::{self, Scenario};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn parse(text: &str) -> Scenario {
    match scenario::parse("generated", text, &[]) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// The results, or nothing for one of the two documented ways of not ending.
fn run(scenario: &Scenario) -> Option<Results> {
    match experiment::run(scenario, &AtomicBool::new(false), |_| {}) {
        Ok(results) => Some(results),
        Err(RunError::NoTime { .. } | RunError::EventLimit { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Every value of a group, as bits.
fn bits(results: &Results, group: &str) -> Vec<Option<u64>> {
    let at = results.groups.iter().position(|g| g == group).unwrap();
    let values = results.replications.iter().flat_map(|r| &r.values[at]);
    values.map(|v| v.map(f64::to_bits)).collect()
}

// The parts of a scenario, as text.

/// Durations from none to a few seconds, on a coarse grid so that things often fall on one instant.
fn duration() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("\"0s\"".to_string()),
        4 => (1u32..40).prop_map(|n| format!("\"{}ms\"", n * 100)),
        2 => (1u32..4000).prop_map(|n| format!("\"{n}ms\"")),
        1 => (1u32..3000).prop_map(|n| format!("{{ exponential = {{ mean = \"{n}ms\" }} }}")),
        1 => (1u32..2000).prop_map(|n| format!("{{ uniform = {{ low = \"0s\", high = \"{n}ms\" }} }}")),
    ]
}

/// Above zero.
fn span() -> impl Strategy<Value = String> {
    (1u32..30).prop_map(|n| format!("\"{}ms\"", n * 100))
}

fn short() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("\"0s\"".to_string()),
        2 => (1u32..50).prop_map(|n| format!("\"{n}ms\"")),
        1 => Just("\"100ms\"".to_string()),
        1 => Just("{ exponential = { mean = \"20ms\" } }".to_string()),
    ]
}

fn wire() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "value = 0",
        "value = -250",
        "value = 0.5",
        "value = nan",
        "value = inf",
        "value = 100",
        "value = 1500",
        "value = \"700\"",
        "value = \"soon\"",
        "value = 2147483648",
        "value = 1e300",
        "absent = true",
        "null = true",
        "ms = { lognormal = { median = 800, sigma = 1.0 } }",
        "ms = { uniform = { low = -100, high = 900 } }",
    ])
}

fn hint() -> impl Strategy<Value = String> {
    let mix = (
        prop::sample::select(vec!["per_task", "per_answer"]),
        prop::collection::vec((1u32..9, wire()), 1..4),
    )
        .prop_map(|(drawn, parts)| {
            let parts: Vec<String> = parts
                .iter()
                .map(|(weight, wire)| format!("{{ weight = {weight}, {wire} }}"))
                .collect();
            format!("drawn = \"{drawn}\"\nmix = [{}]", parts.join(", "))
        });
    let steps = (
        prop::sample::select(vec![
            ("by_age", ["\"0s\"", "\"1s\""]),
            ("by_progress", ["0", "0.5"]),
            ("by_load", ["1", "3"]),
        ]),
        wire(),
        wire(),
    )
        .prop_map(|((drawn, [first, second]), a, b)| {
            format!(
                "drawn = \"{drawn}\"\nsteps = [{{ from = {first}, {a} }}, {{ from = {second}, {b} }}]"
            )
        });
    prop_oneof![2 => mix, 1 => steps]
}

fn server(name: &'static str) -> impl Strategy<Value = String> {
    (
        1u32..3,
        prop::option::of(1u32..4),
        1u32..3,
        short(),
        prop::option::of(0u32..4),
        short(),
        any::<bool>(),
    )
        .prop_map(move |(count, executes, workers, service, queue, delay, hinted)| {
            let executes = executes.map_or(String::new(), |n| format!("executes = {n}\n"));
            let queue = queue.map_or(String::new(), |n| format!(", queue = {n}"));
            let hint = if hinted { "hint = \"h\"\n" } else { "" };
            format!(
                "[[server]]\nname = \"{name}\"\ncount = {count}\n{executes}{hint}delay = {delay}\n\
                 tasks_get = {{ workers = {workers}, service = {service}{queue} }}\n"
            )
        })
}

fn arrivals() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..6, 0u32..3)
            .prop_map(|(n, at)| format!("at_once = {{ tasks = {n}, at = \"{at}s\" }}")),
        (1u32..4, duration())
            .prop_map(|(n, after)| format!("offset = {{ tasks = {n}, after = {after} }}")),
        (span(), duration()).prop_map(|(every, phase)| format!(
            "periodic = {{ every = {every}, phase = {phase} }}"
        )),
        (1u32..4).prop_map(|n| format!("poisson = {{ rate = \"{n}/s\" }}")),
        (1u32..4, span(), duration()).prop_map(|(n, on, off)| format!(
            "on_off = {{ rate = \"{n}/s\", on = {on}, off = {off} }}"
        )),
        (1u32..3, duration())
            .prop_map(|(n, think)| format!("closed_loop = {{ tasks = {n}, think = {think} }}")),
    ]
}

fn abort() -> impl Strategy<Value = String> {
    let times = prop_oneof![
        3 => duration().prop_map(|after| format!("after = {after}")),
        1 => (0u32..8).prop_map(|at| format!("shutdown_at = \"{at}s\"")),
        1 => span().prop_map(|at| format!("deadline = {at}")),
        1 => (duration(), span()).prop_map(|(after, at)| format!("probability = 0.5, after = {after}, deadline = {at}")),
    ];
    let request = prop::sample::select(vec!["request = \"aborts\"", "request = \"waits\""]);
    let then = prop::sample::select(vec!["then = \"detach\"", "then = \"cancel\""]);
    prop_oneof![
        1 => Just(String::new()),
        2 => (times, request, then).prop_map(|(times, request, then)| {
            format!("abort = {{ {times}, {request}, {then} }}\n")
        }),
        1 => span().prop_map(|at| format!("abort = {{ deadline = {at} }}\n")),
    ]
}

fn tenant(name: &'static str, servers: &[&'static str]) -> impl Strategy<Value = String> {
    let servers = prop::sample::select(servers.to_vec());
    let ends = prop::sample::select(vec![
        "",
        "ends = { completed = 1, failed = 1, cancelled = 1 }\n",
    ]);
    (1u32..4, arrivals(), duration(), servers, ends, short(), abort()).prop_map(
        move |(count, arrivals, duration, servers, ends, creation, abort)| {
            format!(
                "[[tenant]]\nname = \"{name}\"\ncount = {count}\narrivals = {{ {arrivals} }}\nduration = {duration}\n\
                 servers = {servers}\npolicy = \"{name}\"\ncreation_delay = {creation}\n{ends}{abort}"
            )
        },
    )
}

const ANYWHERE: [&str; 3] = ["{ a = 1 }", "{ b = 1 }", "{ a = 1, b = 2 }"];

/// A line of text, or none.
fn maybe<S: Strategy<Value = String> + 'static>(line: S) -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), line]
}

fn chosen(key: &'static str, values: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    maybe(prop::sample::select(values.to_vec()).prop_map(move |value| format!("{key} = {value}\n")))
}

/// The body of a policy without floor and ceiling, every stage in every form.
fn policy_body() -> impl Strategy<Value = String> {
    let shaping = (
        maybe(duration_constant().prop_map(|d| format!("default = {d}\n"))),
        // A ramp needs a backoff of its own.
        chosen(
            "role",
            &["\"value\"", "\"ignored\"", "\"floor\"", "\"ramp_ceiling\""],
        ),
        chosen(
            "read",
            &["\"every_answer\"", "\"creation\"", "\"first_answer\""],
        ),
        chosen("absent", &["\"default\"", "\"keep_last\"", "\"creation\""]),
        chosen(
            "rules",
            &[
                "[{ then = \"use\" }]",
                "[{ class = \"text\", then = \"parse\" }, { then = \"round\" }]",
                "[{ class = \"zero\", then = \"forget\" }, { json = \"number\", then = \"truncate\" }]",
                "[{ json = \"integer\", min = 10, max = 1000, then = \"use\" }, { then = \"wrap_i32_timer\" }]",
                "[{ then = \"wrap_i64_ns\" }]",
                "[{ class = \"negative\", then = \"error\" }, { class = \"text\", then = \"reject\" }]",
                "[{ class = \"non_finite\", then = \"forever\" }, { class = \"null\", then = \"forever\" }]",
                "[{ max = 0.9, then = \"absent\" }, { min = -1, max = -1, then = \"forever\" }, { then = \"use\" }]",
            ],
        ),
        chosen(
            "backoff",
            &[
                "{ geometric = { factor = 2, cap = \"3s\" } }",
                "{ geometric = { initial = \"100ms\", factor = 1.5 } }",
                "{ additive = { step = \"100ms\" } }",
                "{ steps = [{ waits = 2, wait = \"100ms\" }, { waits = 1, wait = \"1s\" }] }",
            ],
        ),
        chosen(
            "backoff_reset",
            &["\"on_change\"", "\"on_change_or_error\"", "\"never\""],
        ),
        chosen(
            "jitter",
            &[
                "\"full\"",
                "\"equal\"",
                "{ proportional = 0.3 }",
                "{ additive = \"300ms\" }",
                "{ minus = \"300ms\" }",
                "{ window = \"100ms\" }",
                "{ decorrelated = 3 }",
            ],
        ),
        chosen(
            "error_backoff",
            &[
                "{ initial = \"200ms\" }",
                "{ initial = \"100ms\", factor = 3, cap = \"2s\", reset = \"never\" }",
                "{ factor = 2, cap = \"1s\", sticks = true }",
                "{ initial = \"50ms\", sticks = true }",
            ],
        ),
        chosen("backoff_of", &["\"without_hint\""]),
    );
    shaping.prop_map(
        |(default, role, read, absent, rules, backoff, reset, jitter, errors, of)| {
            let backoff = if role.contains("ramp") {
                "backoff = { geometric = { initial = \"20ms\", factor = 2 } }\n".into()
            } else {
                backoff
            };
            let step = if jitter.contains("window") || jitter.contains("full") {
                "jitter_step = \"70ms\"\n"
            } else {
                ""
            };
            [
                default, role, read, absent, rules, backoff, reset, jitter, errors, of,
            ]
            .concat()
                + step
        },
    )
}

fn duration_constant() -> impl Strategy<Value = String> {
    (0u32..20).prop_map(|n| format!("\"{}ms\"", n * 100))
}

fn bounds() -> impl Strategy<Value = String> {
    (0u32..10, 0u32..20, 0u32..4).prop_map(|(floor, more, which)| {
        let floor_line = format!("floor = \"{}ms\"\n", floor * 100);
        let ceiling_line = format!("ceiling = \"{}ms\"\n", (floor + more) * 100);
        match which {
            0 => String::new(),
            1 => floor_line,
            2 => ceiling_line,
            _ => floor_line + &ceiling_line,
        }
    })
}

fn policy(name: &'static str) -> impl Strategy<Value = String> {
    let looping = (
        chosen("first_poll", &["\"at_once\"", "{ after = \"300ms\" }"]),
        chosen("pace", &["\"fixed_rate\""]),
        chosen(
            "timer",
            &[
                "{ quantum = \"15ms\", minimum = \"1ms\", overhead = \"3ms\" }",
                "{ minimum = \"1ms\", maximum = \"2s\" }",
                "{ maximum = \"2s\", beyond = \"forever\" }",
            ],
        ),
        chosen(
            "wait",
            &[
                "\"checked_after_sleep\"",
                "{ sliced = \"70ms\" }",
                "\"ignored\"",
            ],
        ),
        chosen("give_up_after", &["\"0s\"", "\"1500ms\"", "\"4s\""]),
        chosen("max_polls", &["1", "7"]),
        chosen("at_end", &["\"tasks/result\""]),
        chosen("ceiling_covers", &["\"own_terms\""]),
        (
            chosen("bounds", &["\"before_jitter\"", "\"before_backoff\""]),
            chosen(
                "last_wait",
                &["\"refused\"", "\"trimmed\"", "{ trimmed_less = \"300ms\" }"],
            ),
            chosen("ends_at_ttl", &["true"]),
            chosen("cancels", &["[\"deadline\"]", "[\"error\", \"deadline\"]"]),
            chosen(
                "on_abort",
                &[
                    "{ request = \"waits\", then = \"cancel\" }",
                    "{ then = \"forget\", notifications = \"one\" }",
                ],
            ),
        ),
    );
    (bounds(), policy_body(), looping, any::<bool>()).prop_map(move |(bounds, body, l, ends)| {
        let end = if ends && !body.contains("error_backoff") {
            "on_error = \"end\"\n"
        } else {
            ""
        };
        let m = l.8;
        let looping = [l.0, l.1, l.2, l.3, l.4, l.5, l.6, l.7].concat();
        let looping = looping + &[m.0, m.1, m.2, m.3, m.4].concat();
        format!("[policy.{name}]\n{bounds}{body}{looping}{end}")
    })
}

/// A few seconds.
fn run_table() -> impl Strategy<Value = String> {
    (
        any::<u32>(),
        20u32..60,
        0u32..20,
        prop::sample::select(vec!["all", "none"]),
    )
        .prop_map(|(seed, horizon, warm_up, drain)| {
            format!(
                "[run]\nseed = {seed}\nhorizon = \"{}ms\"\nwarm_up = \"{}ms\"\ndrain = \"{drain}\"\n\
                 replications = 1\nevent_limit = 50000\n",
                horizon * 100,
                warm_up * 100
            )
        })
}

/// Two tenant classes on two server classes.
fn any_scenario() -> impl Strategy<Value = String> {
    (
        run_table(),
        server("a"),
        server("b"),
        hint(),
        tenant("t", &ANYWHERE),
        tenant("u", &ANYWHERE),
        policy("t"),
        policy("u"),
    )
        .prop_map(|(run, a, b, hint, t, u, p, q)| {
            format!("{run}{a}{b}[hint.h]\n{hint}\n{t}{u}{p}{q}")
        })
}

// What presses: faults, limits, and what stands around a policy's decisions.

/// A line of text, more often left out than there.
fn seldom(key: &'static str, values: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    let line = prop::sample::select(values.to_vec()).prop_map(move |v| format!("{key} = {v}\n"));
    prop_oneof![2 => Just(String::new()), 1 => line]
}

/// What a server refuses, delays or forgets, without anything that couples its loops.
fn guards() -> impl Strategy<Value = String> {
    (
        seldom(
            "limits",
            &[
                "[{ per = \"server\", bucket = { rate = \"3/s\", burst = 2 } }]",
                "[{ per = \"tenant\", quota = { requests = 3, length = \"1s\" } }]",
                "[{ per = \"client\", bucket = { rate = \"1/s\" } }, { per = \"server\", quota = { requests = 5, length = \"700ms\" } }]",
            ],
        ),
        seldom(
            "retry_after",
            &[
                "\"until_allowed\"",
                "{ after = \"0s\" }",
                "{ after = \"400ms\" }",
                "{ after = \"36500d\" }",
                "{ after = { exponential = { mean = \"500ms\" } } }",
            ],
        ),
        seldom("retry_after_on_success", &["\"0s\"", "\"300ms\""]),
        seldom(
            "outage",
            &[
                "{ windows = [{ from = \"1s\", length = \"700ms\" }, { from = \"2s\", length = \"1s\" }] }",
                "{ windows = [{ from = \"1500ms\", length = \"300ms\" }], forgets = true }",
                "{ random = { up = { exponential = { mean = \"1s\" } }, down = \"200ms\" } }",
                "{ random = { up = \"0s\", down = \"100ms\" } }",
                "{ windows = [{ from = \"900ms\", length = \"200ms\" }], random = { up = \"700ms\", down = { exponential = { mean = \"300ms\" } } }, forgets = true }",
            ],
        ),
        seldom(
            "slow",
            &[
                "[{ from = \"500ms\", length = \"1s\", factor = 3 }]",
                "[{ from = \"0s\", length = \"2s\", factor = 2 }, { from = \"1s\", length = \"4s\", factor = 0.5 }]",
            ],
        ),
        seldom("ttl", &["\"1ms\"", "\"1500ms\"", "\"4s\""]),
        any::<bool>(),
    )
        .prop_map(|(limits, after, good, outage, slow, ttl, grows)| {
            // A marker: the growth stands inside the station's table.
            let growth = if grows { "GROWS" } else { "" };
            [&limits, &after, &good, &outage, &slow, &ttl, growth].concat()
        })
}

/// What makes its loops depend on the clock.
fn faults() -> impl Strategy<Value = String> {
    (
        guards(),
        seldom(
            "minimum_gap",
            &[
                "{ gap = \"500ms\" }",
                "{ gap = \"300ms\", skew = \"100ms\", from = \"last_poll\" }",
            ],
        ),
        seldom(
            "loss",
            &[
                "{ request = 0.2 }",
                "{ answer = 0.2 }",
                "{ request = 0.1, answer = 0.1 }",
            ],
        ),
        seldom(
            "notifications",
            &[
                "{}",
                "{ share = 0.5, delay = \"100ms\" }",
                "{ delay = { exponential = { mean = \"300ms\" } } }",
            ],
        ),
        any::<bool>(),
    )
        .prop_map(|(guards, gap, loss, notifications, silent)| {
            let guards = if silent {
                guards.replace("outage = { ", "outage = { answers = \"silent\", ")
            } else {
                guards
            };
            [guards, gap, loss, notifications].concat()
        })
}

fn pressed_server<G>(name: &'static str, faults: G) -> impl Strategy<Value = String>
where
    G: Strategy<Value = String>,
{
    (server(name), faults).prop_map(|(server, faults)| {
        let server = if faults.contains("GROWS") {
            server.replace("tasks_get = { ", "tasks_get = { growth = 0.5, ")
        } else {
            server
        };
        server + &faults.replace("GROWS", "")
    })
}

/// A tenant whose aborts may forget, notify, or wait for the answer to a cancel no longer than the `bound`.
fn aborting_tenant(name: &'static str, bound: bool) -> impl Strategy<Value = String> {
    let bounds = if bound { 5 } else { 1 };
    (
        tenant(name, &ANYWHERE),
        0usize..bounds,
        0usize..3,
        any::<bool>(),
    )
        .prop_map(|(tenant, bound, notices, forgets)| {
            let bound = ["", "", "1ms", "300ms", "100d"][bound];
            let bound = if bound.is_empty() {
                String::new()
            } else {
                format!(", cancel_bound = \"{bound}\"")
            };
            let then = if forgets { "forget" } else { "detach" };
            let notices = [
                "",
                ", notifications = \"one\"",
                ", notifications = \"per_request\"",
            ][notices];
            tenant
                .replace("then = \"detach\"", &format!("then = \"{then}\"{notices}"))
                .replace(
                    "then = \"cancel\"",
                    &format!("then = \"cancel\"{bound}{notices}"),
                )
        })
}

fn pressed_tenant(name: &'static str) -> impl Strategy<Value = String> {
    let more = (
        seldom("hosts", &["2", "3"]),
        seldom("weight", &["0.3", "2.5"]),
        seldom(
            "input",
            &[
                "{ after = \"200ms\", answer = \"300ms\" }",
                "{ probability = 0.5, after = { exponential = { mean = \"500ms\" } }, answer = { exponential = { mean = \"500ms\" } } }",
                "{ after = \"0s\", answer = \"0s\" }",
                "{ after = \"100ms\", answer = { exponential = { mean = \"200ms\" } }, questions = 4 }",
            ],
        ),
        seldom(
            "reconnect",
            &[
                "{ at = [\"1s\", \"2s\"] }",
                "{ at = [\"1500ms\"], spread = \"1s\", duplicates = true }",
                "{ every = { exponential = { mean = \"1s\" } }, spread = \"300ms\" }",
                "{ every = \"1s\", at = [\"1s\", \"1500ms\"], spread = \"100ms\", duplicates = true }",
            ],
        ),
        seldom(
            "host_loop",
            &[
                "{ wake_up = \"100us\", poll = \"300us\" }",
                "{ wake_up = \"10ms\", poll = \"50ms\", pause = \"0s\" }",
                "{ wake_up = \"0s\", poll = \"0s\", pause = \"100ms\" }",
            ],
        ),
        seldom(
            "cost",
            &["{ request = 0.001, poll_tokens = 500, token = 0.00001 }"],
        ),
    );
    (aborting_tenant(name, true), more)
        .prop_map(|(tenant, m)| [tenant, m.0, m.1, m.2, m.3, m.4, m.5].concat())
}

/// What a policy makes of refusals.
fn obedience() -> impl Strategy<Value = String> {
    (
        seldom(
            "retry_after",
            &[
                "{ obeyed = {} }",
                "{ obeyed = { role = \"wait\", on_success = true, ceiling = true } }",
                "{ obeyed = { limit = \"1s\", beyond = \"ignore\" } }",
                "{ obeyed = { limit = \"1s\", beyond = \"end\" } }",
                "{ obeyed = { limit = \"1s\", on_success = true } }",
            ],
        ),
        seldom("slow_down", &["\"0s\"", "\"200ms\"", "\"36500d\""]),
        seldom("on_unknown_task", &["\"retry\""]),
        seldom("max_errors", &["1", "3"]),
    )
        .prop_map(|(after, slow_down, unknown, errors)| {
            [after, slow_down, unknown, errors].concat()
        })
}

/// How a policy's polls are carried.
fn carrier() -> impl Strategy<Value = String> {
    (
        obedience(),
        seldom("timeout", &["\"5ms\"", "\"200ms\"", "\"1s\""]),
        seldom("requests_per_poll", &["2", "3"]),
        seldom(
            "retries",
            &[
                "{ attempts = 3 }",
                "{ attempts = 2, layers = 3, wait = \"50ms\", jitter = \"full\" }",
                "{ attempts = 4, wait = \"200ms\", factor = 3, cap = \"1s\" }",
            ],
        ),
        seldom("long_poll", &["\"300ms\"", "\"2s\"", "\"1h\""]),
        chosen(
            "push",
            &["\"wakes\"", "\"replaces\"", "\"restarts\"", "\"postpones\""],
        ),
        seldom("runs", &["\"on_server\""]),
        seldom(
            "breaker",
            &[
                "{ opens = { consecutive = 2 }, open = \"500ms\" }",
                "{ opens = { failures = { count = 2, within = \"1s\" } }, open = \"1s\", probes = 2, held_back = \"skip\" }",
                "{ opens = { share = { of = 0.5, within = \"1s\", least = 2 } }, open = \"300ms\", held_back = \"fail\" }",
                "{ opens = { consecutive = 1 }, open = \"36500d\" }",
            ],
        ),
        questions(),
        (
            seldom("schedule", &["\"least_interval\"", "\"earliest_due\"", "\"least_interval\"\nbatch = 2", "\"earliest_due\"\nbatch = 5"]),
            seldom("in_flight", &["1", "2"]),
            seldom("lease", &["true"]),
            seldom("on_timeout", &["\"polls_on\""]),
        ),
    )
        .prop_map(|c| {
            let d = c.9;
            // Requests of a batch are answered at once.
            let answered = !c.8.contains("awaits_result");
            let schedule = match answered && c.2.is_empty() && c.4.is_empty() {
                true => d.0,
                false => d.0.replace("batch = 2", "").replace("batch = 5", ""),
            };
            [
                c.0, c.1, c.2, c.3, c.4, c.5, c.6, c.7, c.8, schedule, d.1, d.2, d.3,
            ]
            .concat()
        })
}

/// What a loop makes of questions.
fn questions() -> impl Strategy<Value = String> {
    (
        seldom(
            "on_question",
            &[
                "\"polls_at_once\"",
                "\"polls_once_more\"",
                "\"awaits_result\"",
                "\"ends\"",
            ],
        ),
        seldom("max_questions", &["1", "2"]),
        seldom("stuck_after", &["1", "3"]),
    )
        .prop_map(|(on, most, stuck)| [on, most, stuck].concat())
}

fn pressed_policy<C>(name: &'static str, carrier: C) -> impl Strategy<Value = String>
where
    C: Strategy<Value = String>,
{
    (policy(name), carrier).prop_map(|(policy, carrier)| policy + &carrier)
}

fn budget() -> impl Strategy<Value = String> {
    let table = (
        seldom(
            "fleet",
            &["{ rate = \"4/s\", burst = 2 }", "{ rate = \"50/s\" }"],
        ),
        seldom(
            "tenant",
            &["{ rate = \"2/s\" }", "{ rate = \"1/s\", burst = 3 }"],
        ),
        seldom("server", &["{ rate = \"3/s\", burst = 2 }"]),
        seldom(
            "pollers",
            &[
                "{ host = 1 }",
                "{ tenant = 2, server = 2 }",
                "{ host = 2, tenant = 1, server = 1 }",
            ],
        ),
        seldom("when_spent", &["\"skip\""]),
    );
    let table = table.prop_map(|(f, t, s, p, w)| match [f, t, s, p].concat() {
        limits if limits.is_empty() => limits,
        limits => format!("[budget]\n{limits}{w}"),
    });
    prop_oneof![2 => Just(String::new()), 1 => table]
}

/// A scenario with refusals, outages that refuse, slow times and tasks that are forgotten: nothing in it needs events beyond its polls.
fn any_guarded_scenario() -> impl Strategy<Value = String> {
    (
        run_table(),
        pressed_server("a", guards()),
        pressed_server("b", guards()),
        hint(),
        aborting_tenant("t", false),
        aborting_tenant("u", false),
        pressed_policy("t", obedience()),
        pressed_policy("u", obedience()),
    )
        .prop_map(|(run, a, b, hint, t, u, p, q)| {
            format!("{run}{a}{b}[hint.h]\n{hint}\n{t}{u}{p}{q}")
        })
}

/// A scenario with a bit of everything that can go wrong.
fn any_pressed_scenario() -> impl Strategy<Value = String> {
    (
        // Boxed: so large a tree of strategies would not fit on the stack of a test.
        run_table(),
        pressed_server("a", faults()).boxed(),
        pressed_server("b", faults()).boxed(),
        hint(),
        pressed_tenant("t").boxed(),
        pressed_tenant("u").boxed(),
        pressed_policy("t", carrier()).boxed(),
        pressed_policy("u", carrier()).boxed(),
        budget(),
    )
        .prop_map(|(run, a, b, hint, t, u, p, q, budget)| {
            format!("{run}{a}{b}[hint.h]\n{hint}\n{t}{u}{p}{q}{budget}")
        })
}

/// A run, or one of the two documented ways of not ending it.
fn outcome(model: &Model, follow: Option<Follow>) -> Option<Outcome> {
    match engine::run(model, 0, follow, &AtomicBool::new(false)) {
        Ok(outcome) => Some(outcome),
        Err(RunError::NoTime { .. } | RunError::EventLimit { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Metrics that count or add up, so that parts sum to the whole.
fn adds_up(name: &str) -> bool {
    let counts = [
        "requests",
        "hints_",
        "tasks_get_accepted",
        "tasks_get_refused",
        "tasks_get_seen",
        "tasks_get_unseen",
        "tasks_get_slow_down",
        "tasks_get_unknown_task",
        "tasks_get_broken",
        "tasks_get_timed_out",
        "tasks_get_lost",
        "tasks_get_retries",
        "leaked_polls",
        "leaked_loops_mean",
        "store_read",
        "notifications",
        "budget_skipped",
        "breaker_",
        "orphans",
        "aborts",
        "active_tasks_mean",
        "tasks_get_rate_mean_per_s",
        "tokens",
        "cost",
    ];
    let tasks =
        name.starts_with("tasks") && !name.starts_with("tasks_get") && !name.ends_with("share");
    let counted = counts
        .iter()
        .any(|c| name == *c || (name.starts_with(c) && !name.contains("per_abort")));
    tasks || name.ends_with("_count") || counted
}

/// The parts of the outcome of any scenario add up: see the comment at each line.
fn adds_up_under_pressure(model: &Model, outcome: &Outcome) -> Result<(), TestCaseError> {
    let totals = outcome.totals;
    let accounted =
        totals.seen + totals.dropped + totals.timed_out + totals.lost + totals.in_flight;
    prop_assert_eq!(totals.sent, accounted, "{:?}", totals);

    let names = catalogue::names();
    let groups = Group::all(model);
    let values: Vec<Vec<Option<f64>>> = groups
        .iter()
        .map(|group| {
            let (pairs, servers) = (&outcome.pairs, &outcome.servers);
            let tallies = Tallies::of(*group, pairs, servers, &outcome.tenants, model);
            summary::values(&tallies, model)
        })
        .collect();
    for (i, name) in names.iter().enumerate().filter(|(_, name)| adds_up(name)) {
        let sum = |of: fn(&Group) -> bool| -> f64 {
            let parts = groups.iter().zip(&values).filter(|(g, _)| of(g));
            parts.map(|(_, v)| v[i].unwrap_or(0.0)).sum()
        };
        let fleet = values[0][i].unwrap_or(0.0);
        let tenants = sum(|g| matches!(g, Group::Tenant(_)));
        let servers = sum(|g| matches!(g, Group::Server(_)));
        let close = |x: f64| (x - fleet).abs() <= 1e-9 * fleet.abs();
        prop_assert!(
            close(tenants) && close(servers),
            "{}: {} {} {}",
            name,
            fleet,
            tenants,
            servers
        );
    }

    let warm = model.warm_up == 0
        && model
            .tenants
            .iter()
            .all(|t| t.creation_delay.as_constant() == Some(0));
    let mut all_tasks = 0;
    for (number, pair) in outcome.pairs.iter().enumerate() {
        let carrier = &model.carriers[model.tenants[number / model.servers.len()].policy];
        // Every task has one end, or its loop runs; every settled one has its row in the histograms of tasks.
        let finals = |of: &[Final]| -> u64 { of.iter().map(|f| pair.finals[*f as usize]).sum() };
        let tasks: u64 = pair.finals.iter().sum();
        all_tasks += tasks;
        let settled = tasks - finals(&[Final::Running]);
        prop_assert_eq!(pair.polls_per_task.count(), settled);
        prop_assert_eq!(pair.streak.count(), settled);
        // Seen ends have latencies.
        let seen = finals(&[Final::Completed, Final::Failed, Final::Cancelled]);
        prop_assert_eq!(pair.completion.count(), seen);
        prop_assert_eq!(pair.result.count() + pair.results_missing, seen);
        prop_assert!(pair.unseen <= tasks - seen);
        // No one learns the end of those that were left, and of those whose cancel was refused.
        let left = finals(&[
            Final::GaveUp,
            Final::LoopError,
            Final::NeverPolledAgain,
            Final::Forgotten,
        ]);
        let cancelled = finals(&[Final::CancelSent, Final::Running]);
        let policy = &model.policies[model.tenants[number / model.servers.len()].policy];
        // A policy may cancel what it gives up.
        let own = if policy.cancels == Cancels::default() {
            0
        } else {
            finals(&[Final::GaveUp, Final::LoopError])
        };
        prop_assert!((left - own..=left + cancelled).contains(&pair.orphans));
        // A task asks once, however often its host has to answer.
        prop_assert!(pair.asked <= tasks);
        // Each wait has one cause, and is touched by it.
        let waits = pair.causes.iter().sum::<u64>();
        for (cause, touched) in pair.causes.iter().zip(&pair.touched).take(Stage::COMBINED) {
            prop_assert!(cause <= touched && *touched <= waits);
        }
        // A wait without end is no interval.
        prop_assert!(pair.interval.count() <= waits);
        // Every poll that came was taken or refused.
        prop_assert!(pair.accepted + pair.refused <= pair.sent);
        prop_assert!(pair.seen <= pair.accepted + pair.refused && pair.unchanged <= pair.seen);
        prop_assert!(pair.errors_seen + pair.unchanged <= pair.seen);
        let failed =
            |of: &[Failure]| -> u64 { of.iter().map(|f| pair.failures[*f as usize]).sum() };
        if !carrier.on_server {
            // Every refusal has its reason; unknown tasks and broken connections are among the polls that were taken.
            let refusals = [
                Failure::QueueFull,
                Failure::Down,
                Failure::Limited,
                Failure::TooSoon,
            ];
            prop_assert_eq!(pair.refused, failed(&refusals));
            prop_assert!(failed(&[Failure::UnknownTask, Failure::Broken]) <= pair.accepted);
            prop_assert!(pair.store_latency.count() <= pair.accepted);
            prop_assert!(failed(&[Failure::TimedOut]) + pair.lost + pair.seen <= pair.sent);
            prop_assert!(pair.retries <= pair.sent);
            let gaps = pair.gap.count();
            prop_assert!(gaps <= pair.sent, "{} gaps of {}", gaps, pair.sent);
        }
        prop_assert!(pair.leaked <= pair.sent);
        prop_assert!(pair.store_reads_leaked <= pair.store_reads);
        // Every abort is settled or not, and those that ended a loop are among them.
        let aborted = finals(&[Final::Detached, Final::CancelSent, Final::Forgotten]);
        prop_assert_eq!(pair.abort.count() + pair.aborts_unsettled, pair.aborts);
        prop_assert_eq!(pair.leaked_per_abort.count(), pair.aborts);
        prop_assert!(aborted <= pair.aborts);
        let tenant = &model.tenants[number / model.servers.len()];
        prop_assert!(pair.aborts == 0 || tenant.abort.is_some());
        // Windows hold the sends of the whole run up to the horizon.
        let windows: u64 = pair.windows.iter().map(|n| u64::from(*n)).sum();
        prop_assert!(pair.sent <= windows);
    }
    prop_assert!(all_tasks <= totals.tasks);
    prop_assert!(!warm || all_tasks == totals.tasks, "every task has one end");
    let shares: f64 = names
        .iter()
        .zip(&values[0])
        .filter(|(n, _)| n.starts_with("wait_share_"))
        .filter_map(|(_, v)| *v)
        .sum();
    let waits: u64 = outcome.pairs.iter().map(|p| p.interval.count()).sum();
    prop_assert!(
        waits == 0 || (shares - 1.0).abs() < 1e-9,
        "wait shares sum to {}",
        shares
    );
    // What is a share or a mean lies where it must.
    for (group, values) in groups.iter().zip(&values) {
        let value = |name: &str| values[names.iter().position(|n| n == name).unwrap()];
        for share in ["utilisation", "host_utilisation", "fairness_jain"] {
            let inside = value(share).is_none_or(|x| (0.0..=1.0 + 1e-9).contains(&x));
            prop_assert!(inside, "{} of {:?}: {:?}", share, group, value(share));
        }
        let (mean, peak) = (
            value("held_connections_mean"),
            value("held_connections_peak"),
        );
        prop_assert!(
            mean <= peak.map(|p| p + 1e-9),
            "{:?} held, {:?} at most",
            mean,
            peak
        );
    }
    Ok(())
}

/// What holds besides where nothing is lost, held or sent twice.
fn conserved(model: &Model, outcome: &Outcome) -> Result<(), TestCaseError> {
    adds_up_under_pressure(model, outcome)?;
    let totals = outcome.totals;
    prop_assert_eq!(totals.timed_out + totals.lost, 0);
    let drained = model.stop == u64::MAX;
    for pair in &outcome.pairs {
        let tasks: u64 = pair.finals.iter().sum();
        let running = pair.finals[Final::Running as usize];
        prop_assert!(
            !drained || running == 0,
            "a drained run leaves no task running"
        );
        // A hint stands in every answer that is no error and not the end, and in every creation's.
        prop_assert_eq!(pair.hints.iter().sum::<u64>(), tasks + pair.unchanged);
        // A drained run leaves no poll on its way.
        prop_assert!(!drained || pair.accepted + pair.refused == pair.sent);
        prop_assert_eq!(
            pair.store_latency.count(),
            pair.accepted - pair.failures[Failure::Broken as usize]
        );
    }
    Ok(())
}

/// The story of a task runs forward, and no answer is seen before its poll was sent.
fn causal(model: &Model, outcome: &Outcome) -> Result<(), TestCaseError> {
    let Some(story) = &outcome.story else {
        return Ok(());
    };
    let mut last = 0;
    let mut settled = None;
    let (mut polls, mut sent_before, mut seen_before) = (0, 0, 0);
    for row in &story.rows {
        prop_assert!(row.at >= last && row.at <= model.stop, "{:?}", story.rows);
        last = row.at;
        if row.event == "settled" {
            prop_assert!(settled.is_none(), "settled twice: {:?}", story.rows);
            settled = Some(row.at);
        }
        if let Some(poll) = &row.poll {
            polls += 1;
            prop_assert_eq!(
                poll.number,
                polls,
                "polls are told in their order: {:?}",
                &story.rows
            );
            // A loop is serial: the next poll is sent when the answer has been seen.
            prop_assert!(
                poll.sent >= sent_before && poll.sent >= seen_before,
                "{:?}",
                story.rows
            );
            prop_assert!(
                poll.seen
                    .is_none_or(|seen| seen >= poll.sent && seen == row.at)
            );
            sent_before = poll.sent;
            seen_before = poll.seen.unwrap_or(poll.sent);
            prop_assert!(
                settled.is_none_or(|at| at == row.at),
                "polls end with the loop: {:?}",
                story.rows
            );
        }
    }
    Ok(())
}

/// A scenario runs without a panic, following a task changes nothing, its story is causal, and `check` holds.
fn runs_whole(
    text: &str,
    number: u64,
    check: fn(&Model, &Outcome) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let model = Model::new(&parse(text));
    let plain = outcome(&model, None);
    let follow = Follow {
        tenant: None,
        number,
    };
    let followed = outcome(&model, Some(follow));
    prop_assert_eq!(plain.is_some(), followed.is_some());
    if let (Some(plain), Some(followed)) = (plain, followed) {
        prop_assert_eq!(bytes(&model, &plain), bytes(&model, &followed));
        check(&model, &plain)?;
        causal(&model, &followed)?;
    }
    Ok(())
}

/// The same cases in every run, so that a test that is green stays so. `PROPTEST_RNG_SEED` sets other ones.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() {
            default.cases
        } else {
            cases
        },
        rng_seed: if std::env::var_os("PROPTEST_RNG_SEED").is_some() {
            default.rng_seed
        } else {
            RngSeed::Fixed(1)
        },
        failure_persistence: None,
        ..default
    }
}

/// What a run gave, to the bit: fingerprint, totals and every value of every group.
fn bytes(model: &Model, outcome: &Outcome) -> (u64, Totals, Vec<Option<u64>>) {
    let totals = Totals {
        events: 0,
        ..outcome.totals
    };
    let values = Group::all(model).into_iter().flat_map(|group| {
        let (pairs, servers) = (&outcome.pairs, &outcome.servers);
        let tallies = Tallies::of(group, pairs, servers, &outcome.tenants, model);
        summary::values(&tallies, model)
    });
    let values = values.map(|v| v.map(f64::to_bits)).collect();
    (outcome.fingerprint, totals, values)
}

/// Two outcomes are the same, byte for byte; where not, it names the metric.
fn same_bytes(model: &Model, one: &Outcome, other: &Outcome) -> Result<(), TestCaseError> {
    let (a, b) = (bytes(model, one), bytes(model, other));
    let names = catalogue::names();
    for (i, (a, b)) in a.2.iter().zip(&b.2).enumerate() {
        prop_assert_eq!(a, b, "{}", names[i % names.len()]);
    }
    prop_assert_eq!((a.0, a.1), (b.0, b.1));
    Ok(())
}

/// The two ways of the engine give the same bytes and tell the same story.
fn same_when_coupled(text: &str, number: u64) -> Result<(), TestCaseError> {
    let scenario = parse(text);
    let mut model = Model::new(&scenario);
    let follow = Some(Follow {
        tenant: None,
        number,
    });
    let plain = outcome(&model, follow.clone());
    model.couple_all();
    let coupled = outcome(&model, follow);
    // More events may meet the limit.
    if let (Some(plain), Some(coupled)) = (plain, coupled) {
        // A hint may be NaN, which is not equal to itself.
        let story = |o: &Outcome| format!("{:#?}", o.story);
        prop_assert_eq!(story(&plain), story(&coupled));
        same_bytes(&model, &plain, &coupled)?;
    }
    Ok(())
}

/// A run by its smallest parts, on any number of threads, gives the bytes of a whole run. `instant` servers have no queue, so that each task is a part.
fn same_when_parted(text: &str, instant: bool, threads: u32) -> Result<(), TestCaseError> {
    let sets = ["a", "b"].map(|s| format!("server.{s}.tasks_get.service=\"0s\""));
    let sets = if instant { &sets[..] } else { &[] };
    let scenario = scenario::parse("random", text, sets).unwrap().scenario;
    let mut model = Model::new(&scenario);
    model.partition = Partition::Whole;
    let whole = outcome(&model, None);
    model.part_all();
    model.threads = threads;
    let parted = outcome(&model, None);
    prop_assert_eq!(whole.is_some(), parted.is_some());
    if let (Some(whole), Some(parted)) = (whole, parted) {
        prop_assert_eq!(whole.totals, parted.totals);
        prop_assert_eq!(whole.end, parted.end);
        same_bytes(&model, &whole, &parted)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(150))]

    /// The parts of a run change nothing, nor do the threads that share them.
    #[test]
    fn parting_changes_nothing(text in any_scenario(), instant: bool, threads in 1u32..4) {
        same_when_parted(&text, instant, threads)?;
    }

    /// … at servers that refuse, go down and forget as well.
    #[test]
    fn parting_changes_nothing_at_guarded_servers(text in any_guarded_scenario(), instant: bool, threads in 1u32..4) {
        same_when_parted(&text, instant, threads)?;
    }

    /// … and where loops are coupled.
    #[test]
    fn parting_changes_nothing_under_pressure(text in any_pressed_scenario(), instant: bool, threads in 1u32..4) {
        same_when_parted(&text, instant, threads)?;
    }

    /// Loops whose timers, answers and aborts are events do what loops do that settle them in advance, byte for byte.
    #[test]
    fn coupling_changes_nothing(text in any_scenario(), number in 1u64..5) {
        same_when_coupled(&text, number)?;
    }

    /// … at servers that refuse, go down and forget as well.
    #[test]
    fn coupling_changes_nothing_at_guarded_servers(text in any_guarded_scenario(), number in 1u64..5) {
        same_when_coupled(&text, number)?;
    }

    /// No scenario panics; what runs is conserved and causal, and following a task changes nothing.
    #[test]
    fn every_scenario_conserves_what_it_counts(text in any_scenario(), number in 1u64..5) {
        runs_whole(&text, number, conserved)?;
    }

    /// The same for whatever can go wrong at servers, hosts and between them.
    #[test]
    fn pressure_conserves_what_it_counts(text in any_pressed_scenario(), number in 1u64..5) {
        runs_whole(&text, number, adds_up_under_pressure)?;
    }
}

proptest! {
    #![proptest_config(config(50))]

    /// What one tenant sees is its own: a class that shares nothing with it changes no bit, nor does the order of the file.
    #[test]
    fn a_tenant_on_servers_of_its_own_changes_nothing_for_another(
        (run_table, hint) in (run_table(), hint()),
        (a, t, p) in (server("a"), tenant("t", &ANYWHERE[..1]), policy("t")),
        (b, u, q) in (server("b"), tenant("u", &ANYWHERE[1..2]), policy("u")),
    ) {
        let top = format!("{run_table}[hint.h]\n{hint}\n");
        let alone = run(&parse(&format!("{top}{a}{t}{p}")));
        let together = run(&parse(&format!("{top}{a}{b}{t}{u}{p}{q}")));
        let reordered = run(&parse(&format!("{q}{u}{b}{p}{t}{a}{top}")));
        prop_assert_eq!(together.is_some(), reordered.is_some());
        if let (Some(together), Some(reordered)) = (&together, reordered) {
            for group in &together.groups {
                prop_assert_eq!(bits(together, group), bits(&reordered, group), "{}", group);
            }
            prop_assert_eq!(experiment::fingerprint(&together.replications), experiment::fingerprint(&reordered.replications));
        }
        if let (Some(alone), Some(together)) = (alone, together) {
            for group in ["tenant.t", "server.a"] {
                prop_assert_eq!(bits(&alone, group), bits(&together, group), "{}", group);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(1000))]

    /// The envelope's promise: whatever the server says and the dice show, the final wait is inside [floor, ceiling].
    #[test]
    fn the_final_wait_of_an_envelope_is_inside_its_bounds(
        body in policy_body(),
        (floor, more) in (0u64..3000, 0u64..5000),
        seen in prop::collection::vec((saw(), any::<u64>()), 1..40),
    ) {
        let ceiling = floor + more;
        let policy = compiled(&format!("floor = \"{floor}ms\"\nceiling = \"{ceiling}ms\"\n{body}"));
        let bounds = floor * 1_000_000..=ceiling * 1_000_000;
        let mut state = State::default();
        for (saw, u) in seen {
            match policy.decide(&mut state, saw, u) {
                Decision::Wait(wait) => prop_assert!(bounds.contains(&wait.wait), "{:?} after {:?}", wait, saw),
                Decision::AwaitResult => {}
                Decision::End(_) => break,
            }
        }
    }

    /// Decisions that are ready made are those that the policy makes.
    #[test]
    fn ready_made_decisions_are_the_policys(
        body in policy_body(),
        hint in raw_hint(),
        draws in prop::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], 1..80),
    ) {
        for body in [body.clone(), body_with_bounds(&body)] {
            let policy = compiled(&body);
            let Some(steady) = Steady::new(&policy, hint) else {
                continue;
            };
            let mut state = State::default();
            for saw in [Saw::Created(hint), Saw::Unchanged(hint)] {
                policy.decide(&mut state, saw, draws[0]);
            }
            let mut ready_made = state;
            prop_assert!(steady.holds(&state));
            for u in &draws {
                let decision = policy.decide(&mut state, Saw::Unchanged(hint), *u);
                let Decision::Wait(wait) = decision else {
                    return Err(TestCaseError::fail(format!("{decision:?}")));
                };
                let steady = steady.decide(&ready_made, *u);
                ready_made.note(steady);
                prop_assert_eq!(SteadyWait::from(wait), steady);
                prop_assert_eq!(state, ready_made);
            }
        }
    }

    /// A decision is a function of what it is given: the same policy, state, answer and draw give the same wait and state.
    #[test]
    fn a_decision_is_a_pure_function(body in policy_body(), seen in prop::collection::vec((saw(), any::<u64>()), 1..20)) {
        let policy = compiled(&body_with_bounds(&body));
        let (mut one, mut other) = (State::default(), State::default());
        for (saw, u) in seen {
            prop_assert_eq!(policy.decide(&mut one, saw, u), policy.decide(&mut other, saw, u));
            prop_assert_eq!(one, other);
        }
    }
}

/// Any hint at all: any bits of a float, a string with or without a number in it, null, nothing.
fn raw_hint() -> impl Strategy<Value = RawHint> {
    let special = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        2_147_483_648.0,
        1e13,
    ];
    let number = prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(special.to_vec()),
        -10.0..10_000.0,
        (0u32..10_000).prop_map(f64::from),
    ];
    prop_oneof![
        6 => number.clone().prop_map(RawHint::Number),
        1 => number.prop_map(RawHint::Text),
        1 => Just(RawHint::Null),
        1 => Just(RawHint::Absent),
    ]
}

fn saw() -> impl Strategy<Value = Saw> {
    prop_oneof![
        1 => raw_hint().prop_map(Saw::Created),
        4 => raw_hint().prop_map(Saw::Unchanged),
        1 => raw_hint().prop_map(Saw::Changed),
        2 => Just(Saw::Error),
    ]
}

fn body_with_bounds(body: &str) -> String {
    format!("floor = \"100ms\"\nceiling = \"2s\"\n{body}")
}

/// The policy of a scenario that has only that.
fn compiled(body: &str) -> Policy {
    let scenario = parse(&format!(
        "[run]\nhorizon = \"1s\"\n[[server]]\nname = \"a\"\n[[tenant]]\nname = \"t\"\n\
         arrivals = {{ at_once = {{}} }}\nduration = \"1s\"\nservers = {{ a = 1 }}\npolicy = \"p\"\n[policy.p]\n{body}"
    ));
    Model::new(&scenario).policies[0].clone()
}

/// A fleet with a bit of everything, for the sameness of bytes.
const EVERYTHING: &str = r#"
    [run]
    seed = 7
    horizon = "40s"
    warm_up = "5s"
    replications = 12
    [[server]]
    name = "limited"
    count = 2
    executes = 5
    hint = "mixed"
    tasks_get = { workers = 2, service = { exponential = { mean = "8ms" } }, queue = 4 }
    delay = { lognormal = { median = "20ms", sigma = 0.4 } }
    [[server]]
    name = "open"
    hint = "load"
    tasks_get = { service = "2ms" }
    [hint.mixed]
    drawn = "per_answer"
    mix = [{ weight = 8, ms = { lognormal = { median = 900, sigma = 0.8 } } }, { value = 0 }, { value = nan }, { absent = true }]
    [hint.load]
    drawn = "by_load"
    steps = [{ from = 0, value = 200 }, { from = 10, value = 1000 }]
    [[tenant]]
    name = "bursty"
    count = 5
    arrivals = { on_off = { rate = "2/s", on = "3s", off = { exponential = { mean = "2s" } } } }
    duration = { gamma = { mean = "4s", cv = 1.2 } }
    servers = { limited = 1, open = 2 }
    abort = { probability = 0.4, after = { exponential = { mean = "3s" } }, then = "cancel" }
    policy = "envelope"
    [[tenant]]
    name = "loops"
    count = 3
    arrivals = { closed_loop = { tasks = 2, think = "500ms" } }
    duration = { weibull = { scale = "2s", shape = 0.8 } }
    servers = { open = 1 }
    ends = { completed = 8, failed = 1, cancelled = 1 }
    policy = "ramp"
    [policy.envelope]
    floor = "100ms"
    ceiling = "3s"
    jitter = { proportional = 0.2 }
    error_backoff = { initial = "300ms" }
    [policy.ramp]
    role = "ramp_ceiling"
    backoff = { geometric = { initial = "20ms", factor = 2 } }
    jitter = "equal"
    at_end = "tasks/result"
    [[objective]]
    metric = "completion_latency_p99_ms"
    max = 3000
"#;

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let scenario = parse(EVERYTHING);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| run(&scenario).unwrap())
    };
    let one = on(1);
    assert!(
        one.replications.iter().all(|r| r.totals.seen > 1000),
        "a run that sees something"
    );
    for other in [on(2), on(8)] {
        for (a, b) in one.replications.iter().zip(&other.replications) {
            assert_eq!(
                (a.number, a.fingerprint, a.totals),
                (b.number, b.fingerprint, b.totals)
            );
        }
        for group in &one.groups {
            assert_eq!(bits(&one, group), bits(&other, group), "{group}");
        }
        let pooled = |r: &Results| format!("{:?} {:?}", r.pairs, r.servers);
        assert!(pooled(&one) == pooled(&other), "pooled tallies differ");
        let told = |r: &Results| format!("{:?} {:?} {:?}", r.alerts, r.verdicts, r.estimates);
        assert_eq!(told(&one), told(&other));
    }
}

#[test]
fn replications_and_seeds_share_nothing() {
    let fingerprints = |seed: u64| -> Vec<u64> {
        let text = EVERYTHING.replace("seed = 7", &format!("seed = {seed}"));
        let results = run(&parse(&text)).unwrap();
        results.replications.iter().map(|r| r.fingerprint).collect()
    };
    let mut all = [fingerprints(7), fingerprints(8)].concat();
    assert_eq!(all[..12], fingerprints(7), "the same seed, the same run");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24);
}
