//! Wrong scenarios, one fault each: what a planner is told. Every message says where, what was found and what would be
//! right; one fault gives one message; nothing panics and nothing wrong is accepted.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use pollpace::model::Model;
use pollpace::random::mix;
use pollpace::scenario::diagnostics::Severity;
use pollpace::scenario::{LoadError, Rejected, load, parse};

/// A scenario without fault, in which each test breaks one thing.
const RIGHT: &str = include_str!("wrong_files/right.toml");

/// What is told where `old` becomes `new`: one message, on a line that changed.
fn replaced(old: &str, new: &str) -> String {
    let text = broken(old, new);
    let rejected = parse("fleet.toml", &text, &[]).expect_err("it is wrong");
    let from = RIGHT.find(old).expect("what was taken out");
    let lines = line(&text, from)..=line(&text, from + new.len());
    let told = one_message(&rejected);
    let at = line(&text, rejected.diagnostics[0].place.span.start);
    assert!(lines.contains(&at), "line {at} is not in {lines:?}\n{told}");
    told
}

/// What is told where `old` is left out: one message, on the table that lacks it.
fn left_out(old: &str) -> String {
    one_message(&parse("fleet.toml", &broken(old, ""), &[]).expect_err("it is wrong"))
}

/// What is told about a text that has little in common with the right one.
fn text(text: &str) -> String {
    one_message(&parse("fleet.toml", text, &[]).expect_err("it is wrong"))
}

/// What is told about one wrong override of the right scenario.
fn set(assignment: &str) -> String {
    one_message(&parse("fleet.toml", RIGHT, &[assignment.into()]).expect_err("it is wrong"))
}

/// What is told about `fleet.toml` in a folder that holds these files.
fn files(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a temporary file");
    }
    let rejected = match load(&folder.path().join("fleet.toml"), &[]) {
        Err(LoadError::Rejected(rejected)) => rejected,
        other => panic!("it is wrong, but {other:?}"),
    };
    one_message(&rejected).replace(&format!("{}/", folder.path().display()), "")
}

/// The right scenario with recorded arrivals or durations from `measured.csv`, which holds `csv`.
fn measured(old: &str, new: &str, csv: &str) -> String {
    files(&[("fleet.toml", &broken(old, new)), ("measured.csv", csv)])
}

/// The warnings where `old` becomes `new`, which is no error.
fn warned(old: &str, new: &str) -> String {
    parse("fleet.toml", &broken(old, new), &[])
        .expect("it is only doubtful")
        .warnings
}

/// The warnings where the right scenario is overridden, which is no error.
fn warned_by(assignment: &str) -> String {
    parse("fleet.toml", RIGHT, &[assignment.into()])
        .expect("it is only doubtful")
        .warnings
}

fn broken(old: &str, new: &str) -> String {
    assert_eq!(RIGHT.matches(old).count(), 1, "{old} stands once");
    RIGHT.replace(old, new)
}

fn line(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The one message of a rejection, which has a line, a column and a help.
fn one_message(rejected: &Rejected) -> String {
    let all = rejected.to_string();
    assert_eq!(
        rejected.diagnostics.len(),
        1,
        "one fault, one message:\n{all}"
    );
    let diagnostic = &rejected.diagnostics[0];
    assert_eq!(diagnostic.severity, Severity::Error);
    assert!(!diagnostic.help.is_empty() && !diagnostic.label.is_empty());
    let place = &diagnostic.place;
    let source = &rejected.sources[place.source];
    let line = line(&source.text, place.span.start);
    assert!(
        all.contains(&format!("--> {}:{line}:", source.name)),
        "{all}"
    );
    assert!(all.contains("help: "), "{all}");
    let told = all.rsplit_once("\n\n1 error in ").expect("a last line").0;
    told.to_string()
}

#[test]
fn the_right_scenario_is_accepted_without_a_warning() {
    assert_eq!(
        parse("fleet.toml", RIGHT, &[])
            .expect("it is right")
            .warnings,
        ""
    );
}

// ---- The text
#[test]
fn a_text_that_is_no_toml() {
    assert_snapshot!(text(r#"<run>
<seed>1</seed>"#), @r#"
    error: this is not valid TOML
     --> fleet.toml:1:6
      |
    1 | <run>
      |      ^ key with no value, expected `=`
      |
      = help: in TOML, tables begin with [name] or [[name]], and values are written as in key = "text", 42, 0.5, [1, 2] or { key = 1 }
    "#);
}

#[test]
fn a_string_without_its_end() {
    assert_snapshot!(replaced(r#"name = "batch""#, r#"name = "batch"#), @r#"
    error: this is not valid TOML
      --> fleet.toml:11:14
       |
    11 | name = "batch
       |              ^ invalid basic string, expected `"`
       |
       = help: in TOML, tables begin with [name] or [[name]], and values are written as in key = "text", 42, 0.5, [1, 2] or { key = 1 }
    "#);
}

#[test]
fn a_key_that_stands_twice() {
    assert_snapshot!(replaced("seed = 7", r#"seed = 7
seed = 8"#), @r#"
    error: this is not valid TOML
     --> fleet.toml:5:1
      |
    5 | seed = 8
      | ^^^^ duplicate key
      |
      = help: in TOML, tables begin with [name] or [[name]], and values are written as in key = "text", 42, 0.5, [1, 2] or { key = 1 }
    "#);
}

#[test]
fn an_empty_text() {
    assert_snapshot!(text(""), @r"
    error: `run` is missing
     --> fleet.toml:1:1
      |
    1 |
      | ^ found no `run`
      |
      = help: add [run] with horizon = …
    ");
}

// ---- Keys
#[test]
fn a_key_of_the_scenario_with_a_slip() {
    assert_snapshot!(replaced("[run]", "[rum]"), @r"
    error: unknown key `rum`
     --> fleet.toml:3:2
      |
    3 | [rum]
      |  ^^^ not a key of this table
      |
      = help: did you mean `run`?
    ");
}

#[test]
fn a_key_of_the_run_with_a_slip() {
    assert_snapshot!(replaced(r#"warm_up = "1min""#, r#"warmup = "1min""#), @r#"
    error: run: unknown key `warmup`
     --> fleet.toml:6:1
      |
    6 | warmup = "1min"
      | ^^^^^^ not a key of this table
      |
      = help: did you mean `warm_up`?
    "#);
}

#[test]
fn a_required_key_with_a_slip_is_told_once() {
    assert_snapshot!(replaced(r#"horizon = "10min""#, r#"horizn = "10min""#), @r#"
    error: run: unknown key `horizn`
     --> fleet.toml:5:1
      |
    5 | horizn = "10min"
      | ^^^^^^ not a key of this table
      |
      = help: did you mean `horizon`?
    "#);
}

#[test]
fn a_key_of_a_server_with_a_slip() {
    assert_snapshot!(replaced("executes = 500", "executs = 500"), @r"
    error: server.batch: unknown key `executs`
      --> fleet.toml:13:1
       |
    13 | executs = 500
       | ^^^^^^^ not a key of this table
       |
       = help: did you mean `executes`?
    ");
}

#[test]
fn a_key_of_a_station_with_a_slip() {
    assert_snapshot!(replaced("workers = 4", "worker = 4"), @r#"
    error: server.batch.tasks_get: unknown key `worker`
      --> fleet.toml:14:15
       |
    14 | tasks_get = { worker = 4, service = { exponential = { mean = "2ms" } }, queue = 1000 }
       |               ^^^^^^ not a key of this table
       |
       = help: did you mean `workers`?
    "#);
}

#[test]
fn a_key_of_a_hint_with_a_slip() {
    assert_snapshot!(replaced(r#"drawn = "per_answer""#, r#"drawm = "per_answer""#), @r#"
    error: hint.mixed: unknown key `drawm`
      --> fleet.toml:23:1
       |
    23 | drawm = "per_answer"
       | ^^^^^ not a key of this table
       |
       = help: did you mean `drawn`?
    "#);
}

#[test]
fn a_key_of_a_hint_part_with_a_slip() {
    assert_snapshot!(replaced("absent = true", "abscent = true"), @r"
    error: hint.mixed.mix.1: unknown key `abscent`
      --> fleet.toml:26:18
       |
    26 |   { weight = 10, abscent = true },
       |                  ^^^^^^^ not a key of this table
       |
       = help: did you mean `absent`?
    ");
}

#[test]
fn a_key_of_a_tenant_with_a_slip() {
    assert_snapshot!(replaced("servers = { batch = 3", "sever = { batch = 3"), @r"
    error: tenant.agents: unknown key `sever`
      --> fleet.toml:42:1
       |
    42 | sever = { batch = 3, edge = 1 }
       | ^^^^^ not a key of this table
       |
       = help: did you mean `servers`?
    ");
}

#[test]
fn a_key_of_an_abort_with_a_slip() {
    assert_snapshot!(replaced(r#"then = "cancel""#, r#"than = "cancel""#), @r#"
    error: tenant.agents.abort: unknown key `than`
      --> fleet.toml:44:45
       |
    44 | abort = { probability = 0.1, after = "20s", than = "cancel" }
       |                                             ^^^^ not a key of this table
       |
       = help: did you mean `then`?
    "#);
}

#[test]
fn a_key_of_a_distribution_with_a_slip() {
    assert_snapshot!(replaced("exponential = { mean", "exponental = { mean"), @r#"
    error: server.batch.tasks_get.service: unknown key `exponental`
      --> fleet.toml:14:40
       |
    14 | tasks_get = { workers = 4, service = { exponental = { mean = "2ms" } }, queue = 1000 }
       |                                        ^^^^^^^^^^ not one of the choices
       |
       = help: did you mean { exponential = … }?
    "#);
}

#[test]
fn a_parameter_with_a_slip() {
    assert_snapshot!(replaced("sigma = 0.4", "sigm = 0.4"), @r#"
    error: server.batch.delay.lognormal: unknown key `sigm`
      --> fleet.toml:15:42
       |
    15 | delay = { lognormal = { median = "20ms", sigm = 0.4 } }
       |                                          ^^^^ not a key of this table
       |
       = help: did you mean `sigma`?
    "#);
}

#[test]
fn a_key_of_a_policy_with_a_slip() {
    assert_snapshot!(replaced(r#"floor = "500ms""#, r#"flor = "500ms""#), @r#"
    error: policy.envelope: unknown key `flor`
      --> fleet.toml:56:1
       |
    56 | flor = "500ms"
       | ^^^^ not a key of this table
       |
       = help: did you mean `floor`?
    "#);
}

#[test]
fn a_key_of_a_rule_with_a_slip() {
    assert_snapshot!(replaced(r#"json = "string""#, r#"jsn = "string""#), @r#"
    error: policy.envelope.rules.1: unknown key `jsn`
      --> fleet.toml:60:5
       |
    60 |   { jsn = "string", then = "parse" },
       |     ^^^ not a key of this table
       |
       = help: did you mean `json`?
    "#);
}

#[test]
fn a_key_of_an_objective_with_a_slip() {
    assert_snapshot!(replaced("max = 6000", "mx = 6000"), @r"
    error: objective.0: unknown key `mx`
      --> fleet.toml:74:1
       |
    74 | mx = 6000
       | ^^ not a key of this table
       |
       = help: did you mean `max`?
    ");
}

#[test]
fn a_key_that_is_like_no_other() {
    assert_snapshot!(replaced("seed = 7", "colour = 7"), @r"
    error: run: unknown key `colour`
     --> fleet.toml:4:1
      |
    4 | colour = 7
      | ^^^^^^ not a key of this table
      |
      = help: the keys here are: seed, horizon, warm_up, drain, replications, confidence, event_limit
    ");
}

#[test]
fn a_run_without_its_horizon() {
    assert_snapshot!(left_out(r#"horizon = "10min"
"#), @r#"
    error: run: `horizon` is missing
     --> fleet.toml:3:1
      |
    3 | [run]
      | ^^^^^ found no `horizon`
      |
      = help: add horizon = "10s"
    "#);
}

#[test]
fn a_server_without_its_name() {
    assert_snapshot!(left_out(r#"name = "batch"
"#), @r#"
    error: server.0: `name` is missing
      --> fleet.toml:10:1
       |
    10 | [[server]]
       | ^^^^^^^^^^ found no `name`
       |
       = help: add name = "…"
    "#);
}

#[test]
fn a_tenant_without_its_arrivals() {
    assert_snapshot!(left_out(r#"arrivals = { at_once = { tasks = 50 } }
"#), @r"
    error: tenant.nightly: `arrivals` is missing
      --> fleet.toml:47:1
       |
    47 | [[tenant]]
       | ^^^^^^^^^^ found no `arrivals`
       |
       = help: add arrivals = { at_once = … } or { offset = … } or { periodic = … } or { poisson = … } or { on_off = … } or { recorded = … } or { closed_loop = … }
    ");
}

#[test]
fn a_tenant_without_its_policy() {
    assert_snapshot!(left_out(r#"policy = "patient"
"#), @r#"
    error: tenant.nightly: `policy` is missing
      --> fleet.toml:47:1
       |
    47 | [[tenant]]
       | ^^^^^^^^^^ found no `policy`
       |
       = help: add policy = "…"
    "#);
}

#[test]
fn a_tenant_without_its_servers() {
    assert_snapshot!(left_out(r#"servers = { batch = 3, edge = 1 }
"#), @r"
    error: tenant.agents.servers: its tasks need a server
      --> fleet.toml:37:1
       |
    37 | [[tenant]]
       | ^^^^^^^^^^ found no servers
       |
       = help: write servers = { NAME = 1 }
    ");
}

#[test]
fn a_distribution_without_its_mean() {
    assert_snapshot!(replaced(r#"{ mean = "2ms" }"#, "{}"), @r#"
    error: server.batch.tasks_get.service.exponential: `mean` is missing
      --> fleet.toml:14:54
       |
    14 | tasks_get = { workers = 4, service = { exponential = {} }, queue = 1000 }
       |                                                      ^^ found no `mean`
       |
       = help: add mean = "250ms"
    "#);
}

#[test]
fn a_step_without_its_start() {
    assert_snapshot!(replaced(r#"from = "10s", "#, ""), @r#"
    error: hint.aging.steps.1: `from` is missing
      --> fleet.toml:34:3
       |
    34 |   { value = "soon" },
       |   ^^^^^^^^^^^^^^^^^^ found no `from`
       |
       = help: add from = "10s"
    "#);
}

#[test]
fn a_rule_without_its_outcome() {
    assert_snapshot!(replaced(r#", then = "parse""#, ""), @r#"
    error: policy.envelope.rules.1: `then` is missing
      --> fleet.toml:60:3
       |
    60 |   { json = "string" },
       |   ^^^^^^^^^^^^^^^^^^^ found no `then`
       |
       = help: add then = "use" or "default" or "absent" or "floor" or "ceiling" or "round" or "truncate" or "parse" or "wrap_i32_timer" or "wrap_i64_ns" or "forever" or "forget" or "error" or "reject"
    "#);
}

#[test]
fn an_objective_without_its_metric() {
    assert_snapshot!(left_out(r#"metric = "completion_latency_p99_ms"
"#), @r#"
    error: objective.0: `metric` is missing
      --> fleet.toml:71:1
       |
    71 | [[objective]]
       | ^^^^^^^^^^^^^ found no `metric`
       |
       = help: add metric = "…"
    "#);
}

// ---- Types
#[test]
fn a_table_that_is_a_number() {
    assert_snapshot!(replaced(r#"timer = { minimum = "1ms", maximum = "1h" }"#, "timer = 1"), @r"
    error: policy.envelope.timer: expected a table
      --> fleet.toml:63:9
       |
    63 | timer = 1
       |         ^ found a whole number
       |
       = help: write { quantum = …, minimum = …, maximum = …, beyond = …, overhead = … }
    ");
}

#[test]
fn a_list_that_is_a_table() {
    assert_snapshot!(replaced(r#"mix = [
  { weight = 80, ms = { uniform = { low = 100, high = 2000 } } },
  { weight = 10, absent = true },
  { weight = 10, value = nan },
]"#, "mix = { value = 5000 }"), @r"
    error: hint.mixed.mix: expected a list
      --> fleet.toml:24:7
       |
    24 | mix = { value = 5000 }
       |       ^^^^^^^^^^^^^^^^ found a table
       |
       = help: write mix = [{ weight = 1, value = 0 }]
    ");
}

#[test]
fn one_bracket_for_a_list_of_tables() {
    assert_snapshot!(text(r#"[run]
horizon = "1min"
[server]
name = "batch""#), @r"
    error: server: expected a list
     --> fleet.toml:3:1
      |
    3 | [server]
      | ^^^^^^^^ found a table
      |
      = help: write [[server]], with two brackets on each side
    ");
}

#[test]
fn two_brackets_for_a_table_of_names() {
    assert_snapshot!(text(r#"[run]
horizon = "1min"
[[policy]]
name = "envelope""#), @r"
    error: policy: expected a table
     --> fleet.toml:3:1
      |
    3 | [[policy]]
      | ^^^^^^^^^^ found a list
      |
      = help: write [policy.NAME]
    ");
}

#[test]
fn a_name_that_is_a_number() {
    assert_snapshot!(replaced(r#"name = "nightly""#, "name = 7"), @r"
    error: tenant.1.name: expected a string
      --> fleet.toml:48:8
       |
    48 | name = 7
       |        ^ found a whole number
       |
       = help: write it in double quotes
    ");
}

#[test]
fn a_count_that_is_a_string() {
    assert_snapshot!(replaced("count = 20", r#"count = "20""#), @r#"
    error: tenant.agents.count: expected a whole number
      --> fleet.toml:39:9
       |
    39 | count = "20"
       |         ^^^^ found a string
       |
       = help: write digits only, as in 10
    "#);
}

#[test]
fn a_count_that_is_not_whole() {
    assert_snapshot!(replaced("count = 20", "count = 20.5"), @r"
    error: tenant.agents.count: expected a whole number
      --> fleet.toml:39:9
       |
    39 | count = 20.5
       |         ^^^^ found a number that is not whole
       |
       = help: write digits only, as in 10
    ");
}

#[test]
fn a_share_that_is_a_string() {
    assert_snapshot!(replaced("probability = 0.1", r#"probability = "10%""#), @r#"
    error: tenant.agents.abort.probability: expected a number
      --> fleet.toml:44:25
       |
    44 | abort = { probability = "10%", after = "20s", then = "cancel" }
       |                         ^^^^^ found a string
       |
       = help: it must be a number from 0 to 1, as in 0.1
    "#);
}

#[test]
fn a_duration_that_is_a_list() {
    assert_snapshot!(replaced(r#"default = "1s""#, r#"default = ["1s"]"#), @r#"
    error: policy.envelope.default: expected a duration
      --> fleet.toml:55:11
       |
    55 | default = ["1s"]
       |           ^^^^^^ found a list
       |
       = help: write it as in "250ms"
    "#);
}

#[test]
fn a_rate_that_is_a_number() {
    assert_snapshot!(replaced(r#"rate = "2/s""#, "rate = 2"), @r#"
    error: tenant.agents.arrivals.poisson.rate: expected a rate
      --> fleet.toml:40:33
       |
    40 | arrivals = { poisson = { rate = 2, tasks = 900 } }
       |                                 ^ found a whole number
       |
       = help: write it as in "40/s"
    "#);
}

#[test]
fn a_distribution_that_is_a_boolean() {
    assert_snapshot!(replaced(r#"after = "20s""#, "after = true"), @r#"
    error: tenant.agents.abort.after: expected a distribution
      --> fleet.toml:44:38
       |
    44 | abort = { probability = 0.1, after = true, then = "cancel" }
       |                                      ^^^^ found a boolean
       |
       = help: write a constant, or a table such as { exponential = { mean = … } }
    "#);
}

#[test]
fn a_hint_of_a_server_that_is_a_list() {
    assert_snapshot!(replaced(r#"hint = "aging""#, "hint = [5000]"), @r"
    error: server.edge.hint: expected a hint
      --> fleet.toml:20:8
       |
    20 | hint = [5000]
       |        ^^^^^^ found a list
       |
       = help: write the name of a [hint.NAME] table, or milliseconds such as 5000
    ");
}

#[test]
fn a_date() {
    assert_snapshot!(replaced("seed = 7", "seed = 2026-01-01"), @r"
    error: run.seed: expected a whole number
     --> fleet.toml:4:8
      |
    4 | seed = 2026-01-01
      |        ^^^^^^^^^^ found a date
      |
      = help: write digits only, as in 42
    ");
}

// ---- Quantities
#[test]
fn a_duration_without_a_unit() {
    assert_snapshot!(replaced(r#"horizon = "10min""#, "horizon = 600"), @r#"
    error: run.horizon: expected a duration
     --> fleet.toml:5:11
      |
    5 | horizon = 600
      |           ^^^ found a whole number
      |
      = help: durations have a unit: "600ms" or "600s"
    "#);
}

#[test]
fn a_duration_whose_unit_is_left_out_of_the_string() {
    assert_snapshot!(replaced(r#"warm_up = "1min""#, r#"warm_up = "60""#), @r#"
    error: run.warm_up: not a duration
     --> fleet.toml:6:11
      |
    6 | warm_up = "60"
      |           ^^^^ found "60"
      |
      = help: a duration needs a unit: the units are ns, us, ms, s, min, h and d, as in "250ms"
    "#);
}

#[test]
fn a_duration_with_a_unit_that_is_none() {
    assert_snapshot!(replaced(r#"warm_up = "1min""#, r#"warm_up = "1m""#), @r#"
    error: run.warm_up: not a duration
     --> fleet.toml:6:11
      |
    6 | warm_up = "1m"
      |           ^^^^ found "1m"
      |
      = help: there is no unit `m`: the units are ns, us, ms, s, min, h and d, as in "250ms"
    "#);
}

#[test]
fn a_duration_without_a_number() {
    assert_snapshot!(replaced(r#"warm_up = "1min""#, r#"warm_up = "min""#), @r#"
    error: run.warm_up: not a duration
     --> fleet.toml:6:11
      |
    6 | warm_up = "min"
      |           ^^^^^ found "min"
      |
      = help: a duration begins with a number: the units are ns, us, ms, s, min, h and d, as in "250ms"
    "#);
}

#[test]
fn a_duration_below_zero() {
    assert_snapshot!(replaced(r#"floor = "500ms""#, r#"floor = "-500ms""#), @r#"
    error: policy.envelope.floor: not a duration
      --> fleet.toml:56:9
       |
    56 | floor = "-500ms"
       |         ^^^^^^^^ found "-500ms"
       |
       = help: a duration is 0 or above, as in "250ms"
    "#);
}

#[test]
fn a_duration_beyond_a_century() {
    assert_snapshot!(replaced(r#"ceiling = "5s""#, r#"ceiling = "40000d""#), @r#"
    error: policy.envelope.ceiling: not a duration
      --> fleet.toml:57:11
       |
    57 | ceiling = "40000d"
       |           ^^^^^^^^ found "40000d"
       |
       = help: a duration is at most 100 years (36500d)
    "#);
}

#[test]
fn a_duration_of_zero_where_time_must_pass() {
    assert_snapshot!(replaced(r#"initial = "2s""#, r#"initial = "0s""#), @r#"
    error: policy.patient.error_backoff.initial: a duration of zero makes no sense here
      --> fleet.toml:69:29
       |
    69 | error_backoff = { initial = "0s" }
       |                             ^^^^ found 0
       |
       = help: it must be above 0, as in "10s"
    "#);
}

#[test]
fn a_rate_without_a_unit_of_time() {
    assert_snapshot!(replaced(r#"rate = "2/s""#, r#"rate = "2""#), @r#"
    error: tenant.agents.arrivals.poisson.rate: not a rate
      --> fleet.toml:40:33
       |
    40 | arrivals = { poisson = { rate = "2", tasks = 900 } }
       |                                 ^^^ found "2"
       |
       = help: a rate is a number per unit of time, as in "40/s", "3/min" or "1000/h"
    "#);
}

#[test]
fn a_rate_with_a_unit_that_is_none() {
    assert_snapshot!(replaced(r#"rate = "2/s""#, r#"rate = "2/fortnight""#), @r#"
    error: tenant.agents.arrivals.poisson.rate: not a rate
      --> fleet.toml:40:33
       |
    40 | arrivals = { poisson = { rate = "2/fortnight", tasks = 900 } }
       |                                 ^^^^^^^^^^^^^ found "2/fortnight"
       |
       = help: the unit of time of a rate is ns, us, ms, s, min, h or d, as in "40/s"
    "#);
}

#[test]
fn a_rate_of_zero() {
    assert_snapshot!(replaced(r#"rate = "2/s""#, r#"rate = "0/s""#), @r#"
    error: tenant.agents.arrivals.poisson.rate: not a rate
      --> fleet.toml:40:33
       |
    40 | arrivals = { poisson = { rate = "0/s", tasks = 900 } }
       |                                 ^^^^^ found "0/s"
       |
       = help: a rate is finite and above zero, as in "40/s"
    "#);
}

#[test]
fn a_rate_beyond_one_per_nanosecond() {
    assert_snapshot!(replaced(r#"rate = "2/s""#, r#"rate = "1e300/s""#), @r#"
    error: tenant.agents.arrivals.poisson.rate: not a rate
      --> fleet.toml:40:33
       |
    40 | arrivals = { poisson = { rate = "1e300/s", tasks = 900 } }
       |                                 ^^^^^^^^^ found "1e300/s"
       |
       = help: a rate is at most one per nanosecond (1000000000/s)
    "#);
}

#[test]
fn a_count_of_zero() {
    assert_snapshot!(replaced("count = 20", "count = 0"), @r"
    error: tenant.agents.count: out of range
      --> fleet.toml:39:9
       |
    39 | count = 0
       |         ^ found 0
       |
       = help: it must be from 1 to 4294967295
    ");
}

#[test]
fn a_count_beyond_32_bits() {
    assert_snapshot!(replaced("count = 20", "count = 4294967296"), @r"
    error: tenant.agents.count: out of range
      --> fleet.toml:39:9
       |
    39 | count = 4294967296
       |         ^^^^^^^^^^ found 4294967296
       |
       = help: it must be from 1 to 4294967295
    ");
}

#[test]
fn a_seed_below_zero() {
    assert_snapshot!(replaced("seed = 7", "seed = -1"), @r"
    error: run.seed: out of range
     --> fleet.toml:4:8
      |
    4 | seed = -1
      |        ^^ found -1
      |
      = help: it must be from 0 to 9223372036854775807
    ");
}

#[test]
fn a_seed_beyond_all_integers() {
    assert_snapshot!(replaced("seed = 7", "seed = 99999999999999999999999999999999999999999"), @r"
    error: run.seed: out of range
     --> fleet.toml:4:8
      |
    4 | seed = 99999999999999999999999999999999999999999
      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ found too many digits
      |
      = help: it must be from 0 to 9223372036854775807
    ");
}

#[test]
fn a_share_above_one() {
    assert_snapshot!(replaced("probability = 0.1", "probability = 1.5"), @r#"
    error: tenant.agents.abort.probability: out of range
      --> fleet.toml:44:25
       |
    44 | abort = { probability = 1.5, after = "20s", then = "cancel" }
       |                         ^^^ found 1.5
       |
       = help: it must be a number from 0 to 1, as in 0.1
    "#);
}

#[test]
fn a_jitter_below_zero() {
    assert_snapshot!(replaced("proportional = 0.1", "proportional = -0.1"), @r"
    error: policy.envelope.jitter.proportional: out of range
      --> fleet.toml:62:27
       |
    62 | jitter = { proportional = -0.1 }
       |                           ^^^^ found -0.1
       |
       = help: it must be a number from 0 to 1, as in 0.1
    ");
}

#[test]
fn a_factor_below_one() {
    assert_snapshot!(replaced("factor = 2", "factor = 0.5"), @r#"
    error: policy.patient.backoff.geometric.factor: out of range
      --> fleet.toml:67:52
       |
    67 | backoff = { geometric = { initial = "1s", factor = 0.5, cap = "4s" } }
       |                                                    ^^^ found 0.5
       |
       = help: it must be a number from 1 to 1000, as in 2
    "#);
}

#[test]
fn a_confidence_of_one() {
    assert_snapshot!(replaced("confidence = 0.95", "confidence = 1.0"), @r"
    error: run.confidence: out of range
     --> fleet.toml:8:14
      |
    8 | confidence = 1.0
      |              ^^^ found 1.0
      |
      = help: it must be a number from 0.5 to below 1, as in 0.95
    ");
}

#[test]
fn a_weight_below_zero() {
    assert_snapshot!(replaced("weight = 80", "weight = -80"), @r"
    error: hint.mixed.mix.0.weight: out of range
      --> fleet.toml:25:14
       |
    25 |   { weight = -80, ms = { uniform = { low = 100, high = 2000 } } },
       |              ^^^ found -80.0
       |
       = help: it must be a finite number, 0 or above
    ");
}

#[test]
fn a_bound_that_is_not_a_number() {
    assert_snapshot!(replaced("max = 6000", "max = nan"), @r"
    error: objective.0.max: out of range
      --> fleet.toml:74:7
       |
    74 | max = nan
       |       ^^^ found NaN
       |
       = help: it must be a finite number
    ");
}

// ---- Choices
#[test]
fn a_word_with_a_slip() {
    assert_snapshot!(replaced(r#"on_error = "retry""#, r#"on_error = "retri""#), @r#"
    error: policy.patient.on_error: unknown value "retri"
      --> fleet.toml:68:12
       |
    68 | on_error = "retri"
       |            ^^^^^^^ not one of the choices
       |
       = help: did you mean "retry"?
    "#);
}

#[test]
fn a_word_like_no_other() {
    assert_snapshot!(replaced(r#"on_error = "retry""#, r#"on_error = "panic""#), @r#"
    error: policy.patient.on_error: unknown value "panic"
      --> fleet.toml:68:12
       |
    68 | on_error = "panic"
       |            ^^^^^^^ not one of the choices
       |
       = help: write "retry" or "end"
    "#);
}

#[test]
fn a_word_that_is_a_table() {
    assert_snapshot!(replaced(r#"on_error = "retry""#, "on_error = { retry = 3 }"), @r#"
    error: policy.patient.on_error: unknown key `retry`
      --> fleet.toml:68:14
       |
    68 | on_error = { retry = 3 }
       |              ^^^^^ not one of the choices
       |
       = help: did you mean "retry"?
    "#);
}

#[test]
fn a_word_where_a_table_is_meant() {
    assert_snapshot!(replaced("jitter = { proportional = 0.1 }", r#"jitter = "proportional""#), @r#"
    error: policy.envelope.jitter: unknown value "proportional"
      --> fleet.toml:62:10
       |
    62 | jitter = "proportional"
       |          ^^^^^^^^^^^^^^ not one of the choices
       |
       = help: did you mean { proportional = … }?
    "#);
}

#[test]
fn a_table_where_a_word_is_meant() {
    assert_snapshot!(replaced("jitter = { proportional = 0.1 }", "jitter = { full = true }"), @r#"
    error: policy.envelope.jitter: unknown key `full`
      --> fleet.toml:62:12
       |
    62 | jitter = { full = true }
       |            ^^^^ not one of the choices
       |
       = help: did you mean "full"?
    "#);
}

#[test]
fn a_choice_that_is_a_number() {
    assert_snapshot!(replaced("jitter = { proportional = 0.1 }", "jitter = 0.1"), @r#"
    error: policy.envelope.jitter: expected one of the choices
      --> fleet.toml:62:10
       |
    62 | jitter = 0.1
       |          ^^^ found a number that is not whole
       |
       = help: write "none" or "full" or "equal" or { proportional = … } or { additive = … } or { minus = … } or { window = … } or { decorrelated = … }
    "#);
}

#[test]
fn a_choice_without_a_key() {
    assert_snapshot!(replaced("jitter = { proportional = 0.1 }", "jitter = {}"), @r#"
    error: policy.envelope.jitter: the table is empty
      --> fleet.toml:62:10
       |
    62 | jitter = {}
       |          ^^ found no key
       |
       = help: write "none" or "full" or "equal" or { proportional = … } or { additive = … } or { minus = … } or { window = … } or { decorrelated = … }
    "#);
}

#[test]
fn two_of_two_choices() {
    assert_snapshot!(replaced("jitter = { proportional = 0.1 }", r#"jitter = { proportional = 0.1, additive = "1s" }"#), @r#"
    error: policy.envelope.jitter: both `proportional` and `additive` are given
      --> fleet.toml:62:32
       |
    62 | jitter = { proportional = 0.1, additive = "1s" }
       |                                ^^^^^^^^ only one can hold
       |
       = help: keep one of them
    "#);
}

#[test]
fn two_distributions_in_one() {
    assert_snapshot!(replaced(r#"exponential = { mean = "2ms" }"#, r#"exponential = { mean = "2ms" }, constant = "1ms""#), @r#"
    error: server.batch.tasks_get.service: both `exponential` and `constant` are given
      --> fleet.toml:14:72
       |
    14 | tasks_get = { workers = 4, service = { exponential = { mean = "2ms" }, constant = "1ms" }, queue = 1000 }
       |                                                                        ^^^^^^^^ only one can hold
       |
       = help: keep one of them
    "#);
}

#[test]
fn a_class_of_hints_that_is_none() {
    assert_snapshot!(replaced(r#"class = "negative""#, r#"class = "negativ""#), @r#"
    error: policy.envelope.rules.0.class: unknown value "negativ"
      --> fleet.toml:59:13
       |
    59 |   { class = "negativ", then = "floor" },
       |             ^^^^^^^^^ not one of the choices
       |
       = help: did you mean "negative"?
    "#);
}

// ---- Hints
#[test]
fn a_mixture_without_parts() {
    assert_snapshot!(left_out(r#"mix = [
  { weight = 80, ms = { uniform = { low = 100, high = 2000 } } },
  { weight = 10, absent = true },
  { weight = 10, value = nan },
]
"#), @r"
    error: hint.mixed.mix: the mixture is empty
      --> fleet.toml:22:1
       |
    22 | [hint.mixed]
       | ^^^^^^^^^^^^ found no mix
       |
       = help: add mix = [{ weight = 1, value = 1000 }]
    ");
}

#[test]
fn a_mixture_whose_weights_are_all_zero() {
    assert_snapshot!(replaced(r#"mix = [
  { weight = 80, ms = { uniform = { low = 100, high = 2000 } } },
  { weight = 10, absent = true },
  { weight = 10, value = nan },
"#, r#"mix = [
  { weight = 0, value = 5 },
"#), @r"
    error: hint.mixed.mix: the weights sum to zero
      --> fleet.toml:24:7
       |
    24 | mix = [
       |       ^ nothing could be drawn
       |
       = help: give at least one of them a weight above 0
    ");
}

#[test]
fn a_mixture_drawn_by_age() {
    assert_snapshot!(replaced(r#"drawn = "per_answer"
mix ="#, r#"drawn = "by_age"
mix ="#), @r#"
    error: hint.mixed.mix: a mixture needs drawn = "per_task" or "per_answer"
      --> fleet.toml:24:7
       |
    24 | mix = [
       |       ^ drawn by steps
       |
       = help: use steps = [{ from = …, value = … }]
    "#);
}

#[test]
fn steps_drawn_per_task() {
    assert_snapshot!(replaced(r#"drawn = "by_age"
steps ="#, r#"drawn = "per_task"
steps ="#), @r#"
    error: hint.aging.steps: steps need drawn = "by_age", "by_progress" or "by_load"
      --> fleet.toml:32:9
       |
    32 | steps = [
       |         ^ drawn per task or per answer
       |
       = help: say what the steps follow, or use mix
    "#);
}

#[test]
fn a_list_of_no_steps() {
    assert_snapshot!(replaced(r#"steps = [
  { from = "0s", value = 500 },
  { from = "10s", value = "soon" },
]"#, "steps = []"), @r"
    error: hint.aging.steps: there are no steps
      --> fleet.toml:32:9
       |
    32 | steps = []
       |         ^^ found no steps
       |
       = help: add steps = [{ from = …, value = … }]
    ");
}

#[test]
fn steps_that_do_not_rise() {
    assert_snapshot!(replaced(r#"from = "10s""#, r#"from = "0s""#), @r#"
    error: hint.aging.steps.1.from: steps must rise
      --> fleet.toml:34:12
       |
    34 |   { from = "0s", value = "soon" },
       |            ^^^^ not above the step before
       |
       = help: put them in order
    "#);
}

#[test]
fn an_age_that_is_a_number() {
    assert_snapshot!(replaced(r#"from = "10s""#, "from = 10"), @r#"
    error: hint.aging.steps.1.from: an age is a duration
      --> fleet.toml:34:12
       |
    34 |   { from = 10, value = "soon" },
       |            ^^ found 10
       |
       = help: write it as in "10s"
    "#);
}

#[test]
fn progress_beyond_the_end() {
    assert_snapshot!(replaced(r#"drawn = "by_age"
steps = [
  { from = "0s", value = 500 },
  { from = "10s", value = "soon" },"#, r#"drawn = "by_progress"
steps = [
  { from = 0, value = 500 },
  { from = 50, value = "soon" },"#), @r#"
    error: hint.aging.steps.1.from: progress is a number from 0 to 1
      --> fleet.toml:34:12
       |
    34 |   { from = 50, value = "soon" },
       |            ^^ found 50
       |
       = help: write it as in 0.5
    "#);
}

#[test]
fn progress_that_is_a_duration() {
    assert_snapshot!(replaced(r#"drawn = "by_age"
steps = [
  { from = "0s", value = 500 },
  { from = "10s""#, r#"drawn = "by_progress"
steps = [
  { from = "10s""#), @r#"
    error: hint.aging.steps.0.from: progress is a number from 0 to 1
      --> fleet.toml:33:12
       |
    33 |   { from = "10s", value = "soon" },
       |            ^^^^^ found a duration
       |
       = help: write it as in 0.5
    "#);
}

#[test]
fn a_load_that_is_a_duration() {
    assert_snapshot!(replaced(r#"drawn = "by_age"
steps = [
  { from = "0s", value = 500 },
  { from = "10s""#, r#"drawn = "by_load"
steps = [
  { from = "10s""#), @r#"
    error: hint.aging.steps.0.from: a load is a number of tasks
      --> fleet.toml:33:12
       |
    33 |   { from = "10s", value = "soon" },
       |            ^^^^^ found a duration
       |
       = help: write it as in 100
    "#);
}

#[test]
fn two_kinds_of_hint_in_one_part() {
    assert_snapshot!(replaced("{ weight = 10, absent = true }", "{ weight = 10, absent = true, value = 5 }"), @r"
    error: hint.mixed.mix.1: a hint is one of ms, absent, null, value
      --> fleet.toml:26:3
       |
    26 |   { weight = 10, absent = true, value = 5 },
       |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ found absent and value
       |
       = help: write one, as in { weight = 6, value = 0 } or { weight = 80, ms = { lognormal = { median = 2000, sigma = 0.8 } } }
    ");
}

#[test]
fn no_kind_of_hint_in_a_part() {
    assert_snapshot!(replaced("{ weight = 10, absent = true }", "{ weight = 10 }"), @r"
    error: hint.mixed.mix.1: a hint is one of ms, absent, null, value
      --> fleet.toml:26:3
       |
    26 |   { weight = 10 },
       |   ^^^^^^^^^^^^^^^ found none of them
       |
       = help: write one, as in { weight = 6, value = 0 } or { weight = 80, ms = { lognormal = { median = 2000, sigma = 0.8 } } }
    ");
}

#[test]
fn a_hint_that_is_not_absent() {
    assert_snapshot!(replaced("absent = true", "absent = false"), @r"
    error: hint.mixed.mix.1.absent: this can only be true
      --> fleet.toml:26:27
       |
    26 |   { weight = 10, absent = false },
       |                           ^^^^^ found false
       |
       = help: write absent = true, or leave it out
    ");
}

#[test]
fn a_hint_whose_value_is_a_boolean() {
    assert_snapshot!(replaced("value = nan", "value = true"), @r#"
    error: hint.mixed.mix.2.value: expected a number or a string
      --> fleet.toml:27:26
       |
    27 |   { weight = 10, value = true },
       |                          ^^^^ found a boolean
       |
       = help: write value = 0, value = nan or value = "soon"
    "#);
}

// ---- Distributions
#[test]
fn a_range_upside_down() {
    assert_snapshot!(replaced("low = 100, high = 2000", "low = 100, high = 20"), @r"
    error: hint.mixed.mix.0.ms.uniform: `high` is below `low`
      --> fleet.toml:25:55
       |
    25 |   { weight = 80, ms = { uniform = { low = 100, high = 20 } } },
       |                                                       ^^ an empty range
       |
       = help: swap them
    ");
}

#[test]
fn bounds_upside_down() {
    assert_snapshot!(replaced(r#"min = "1s", max = "5min""#, r#"min = "1s", max = "1ms""#), @r#"
    error: tenant.agents.duration: `max` is below `min`
      --> fleet.toml:41:68
       |
    41 | duration = { gamma = { mean = "30s", cv = 0.5 }, min = "1s", max = "1ms" }
       |                                                                    ^^^^^ an empty range
       |
       = help: swap them
    "#);
}

#[test]
fn bounds_without_a_distribution() {
    assert_snapshot!(replaced(r#"{ gamma = { mean = "30s", cv = 0.5 }, min = "1s", max = "5min" }"#, r#"{ min = "1s", max = "5min" }"#), @r#"
    error: tenant.agents.duration: bounds need a distribution
      --> fleet.toml:41:12
       |
    41 | duration = { min = "1s", max = "5min" }
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ found only bounds
       |
       = help: write { constant = … } or { uniform = … } or { exponential = … } or { normal = … } or { lognormal = … } or { gamma = … } or { weibull = … } or { pareto = … } or { mixture = … } or { empirical = … }
    "#);
}

#[test]
fn a_gamma_given_in_two_ways() {
    assert_snapshot!(replaced(r#"{ mean = "30s", cv = 0.5 }"#, r#"{ mean = "30s", cv = 0.5, shape = 2 }"#), @r#"
    error: tenant.agents.duration.gamma: `mean` and `shape` do not go together
      --> fleet.toml:41:48
       |
    41 | duration = { gamma = { mean = "30s", cv = 0.5, shape = 2 }, min = "1s", max = "5min" }
       |                                                ^^^^^ given in two ways
       |
       = help: give scale and shape, or mean and cv
    "#);
}

#[test]
fn a_lognormal_given_in_two_ways() {
    assert_snapshot!(replaced(r#"{ median = "20ms", sigma = 0.4 }"#, r#"{ mean = "20ms", sigma = 0.4 }"#), @r#"
    error: server.batch.delay.lognormal: `mean` and `sigma` do not go together
      --> fleet.toml:15:40
       |
    15 | delay = { lognormal = { mean = "20ms", sigma = 0.4 } }
       |                                        ^^^^^ given in two ways
       |
       = help: give median and sigma, or mean and cv
    "#);
}

#[test]
fn a_spread_below_zero() {
    assert_snapshot!(replaced("sigma = 0.4", "sigma = -0.4"), @r#"
    error: server.batch.delay.lognormal.sigma: out of range
      --> fleet.toml:15:50
       |
    15 | delay = { lognormal = { median = "20ms", sigma = -0.4 } }
       |                                                  ^^^^ found -0.4
       |
       = help: it must be a finite number above 0
    "#);
}

#[test]
fn a_mean_of_zero() {
    assert_snapshot!(replaced(r#"{ mean = "2ms" }"#, r#"{ mean = "0ms" }"#), @r#"
    error: server.batch.tasks_get.service.exponential: `mean` must be above zero
      --> fleet.toml:14:63
       |
    14 | tasks_get = { workers = 4, service = { exponential = { mean = "0ms" } }, queue = 1000 }
       |                                                               ^^^^^ not above zero
       |
       = help: write it as in "250ms"
    "#);
}

#[test]
fn a_range_that_is_not_finite() {
    assert_snapshot!(replaced("{ low = 100, high = 2000 }", "{ low = 100, high = nan }"), @r"
    error: hint.mixed.mix.0.ms.uniform.high: out of range
      --> fleet.toml:25:55
       |
    25 |   { weight = 80, ms = { uniform = { low = 100, high = nan } } },
       |                                                       ^^^ found NaN
       |
       = help: it must be a finite number
    ");
}

#[test]
fn a_distribution_of_durations_below_zero() {
    assert_snapshot!(replaced(r#"duration = { gamma = { mean = "30s", cv = 0.5 }"#, r#"duration = { uniform = { low = "-1s", high = "30s" }"#), @r#"
    error: tenant.agents.duration.uniform.low: not a duration
      --> fleet.toml:41:32
       |
    41 | duration = { uniform = { low = "-1s", high = "30s" }, min = "1s", max = "5min" }
       |                                ^^^^^ found "-1s"
       |
       = help: a duration is 0 or above, as in "250ms"
    "#);
}

#[test]
fn a_mixture_of_durations_whose_weights_are_all_zero() {
    assert_snapshot!(replaced(r#"{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }"#, r#"{ weight = 0, of = "10s" }"#), @r#"
    error: tenant.nightly.duration.mixture: the weights sum to zero
      --> fleet.toml:50:24
       |
    50 | duration = { mixture = [{ weight = 0, of = "10s" }] }
       |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ nothing could be drawn
       |
       = help: give at least one of them a weight above 0
    "#);
}

#[test]
fn weights_without_a_finite_sum() {
    assert_snapshot!(replaced(r#"{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }"#, r#"{ weight = 1e308, of = "10s" }, { weight = 1e308, of = "1min" }"#), @r#"
    error: tenant.nightly.duration.mixture: the weights have no finite sum
      --> fleet.toml:50:24
       |
    50 | duration = { mixture = [{ weight = 1e308, of = "10s" }, { weight = 1e308, of = "1min" }] }
       |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ nothing could be drawn
       |
       = help: only their ratios count: make them smaller
    "#);
}

#[test]
fn a_mixture_without_weights() {
    assert_snapshot!(replaced(r#"{ weight = 1, of = "10s" }"#, r#"{ of = "10s" }"#), @r#"
    error: tenant.nightly.duration.mixture.0: `weight` is missing
      --> fleet.toml:50:25
       |
    50 | duration = { mixture = [{ of = "10s" }, { weight = 2, of = "1min" }] }
       |                         ^^^^^^^^^^^^^^ found no `weight`
       |
       = help: add weight = 1
    "#);
}

#[test]
fn a_file_of_measurements_that_is_not_there() {
    assert_snapshot!(files(&[("fleet.toml", &broken(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "lost.csv", column = "ms" } }"#))]), @r#"
    error: tenant.nightly.duration.empirical: cannot read lost.csv: No such file or directory (os error 2)
      --> fleet.toml:50:35
       |
    50 | duration = { empirical = { file = "lost.csv", column = "ms" } }
       |                                   ^^^^^^^^^^ cannot be used
       |
       = help: it must be a CSV file with a header line; its path is taken from the folder of the scenario file
    "#);
}

#[test]
fn a_column_that_is_not_there() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "milis" } }"#, "id,millis\n1,250\n"), @r#"
    error: tenant.nightly.duration.empirical: measured.csv has no column `milis`
      --> fleet.toml:50:60
       |
    50 | duration = { empirical = { file = "measured.csv", column = "milis" } }
       |                                                            ^^^^^^^ cannot be used
       |
       = help: did you mean "millis"?
    "#);
}

#[test]
fn a_cell_that_is_no_number() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "ms" } }"#, "ms\n250\nsoon\n"), @r#"
    error: tenant.nightly.duration.empirical: measured.csv line 3: `soon` is not a usable number
      --> fleet.toml:50:60
       |
    50 | duration = { empirical = { file = "measured.csv", column = "ms" } }
       |                                                            ^^^^ cannot be used
       |
       = help: the column holds finite numbers, 0 or above
    "#);
}

#[test]
fn a_cell_below_zero() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "ms" } }"#, "ms\n-250\n"), @r#"
    error: tenant.nightly.duration.empirical: measured.csv line 2: `-250` is not a usable number
      --> fleet.toml:50:60
       |
    50 | duration = { empirical = { file = "measured.csv", column = "ms" } }
       |                                                            ^^^^ cannot be used
       |
       = help: the column holds finite numbers, 0 or above
    "#);
}

#[test]
fn a_row_with_too_many_cells() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "ms" } }"#, "ms\n250\n1,2\n"), @r#"
    error: tenant.nightly.duration.empirical: cannot read measured.csv: CSV error: record 2 (line: 3, byte: 7): found record with 2 fields, but the previous record has 1 fields
      --> fleet.toml:50:35
       |
    50 | duration = { empirical = { file = "measured.csv", column = "ms" } }
       |                                   ^^^^^^^^^^^^^^ cannot be used
       |
       = help: it must be a CSV file with a header line; its path is taken from the folder of the scenario file
    "#);
}

#[test]
fn a_file_of_measurements_without_rows() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "ms" } }"#, "ms\n"), @r#"
    error: tenant.nightly.duration.empirical: measured.csv has no rows
      --> fleet.toml:50:35
       |
    50 | duration = { empirical = { file = "measured.csv", column = "ms" } }
       |                                   ^^^^^^^^^^^^^^ cannot be used
       |
       = help: a distribution needs at least one value
    "#);
}

#[test]
fn a_unit_of_zero() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "ms", unit = "0s" } }"#, "ms\n250\n"), @r#"
    error: tenant.nightly.duration.empirical.unit: a duration of zero makes no sense here
      --> fleet.toml:50:73
       |
    50 | duration = { empirical = { file = "measured.csv", column = "ms", unit = "0s" } }
       |                                                                         ^^^^ found 0
       |
       = help: it must be above 0, as in "10s"
    "#);
}

#[test]
fn measurements_that_last_for_ages() {
    assert_snapshot!(measured(r#"duration = { mixture = [{ weight = 1, of = "10s" }, { weight = 2, of = "1min" }] }"#, r#"duration = { empirical = { file = "measured.csv", column = "ns" } }"#, "ns\n4000000000000\n"), @r#"
    error: tenant.nightly.duration.empirical: measured.csv has times beyond 36500d (100 years)
      --> fleet.toml:50:60
       |
    50 | duration = { empirical = { file = "measured.csv", column = "ns" } }
       |                                                            ^^^^ too long for a duration
       |
       = help: say what 1 in the column means, as in unit = "1us"
    "#);
}

#[test]
fn recorded_arrivals_that_are_not_there() {
    assert_snapshot!(measured("arrivals = { at_once = { tasks = 50 } }", r#"arrivals = { recorded = { file = "lost.csv", column = "s" } }"#, ""), @r#"
    error: tenant.nightly.arrivals.recorded: cannot read lost.csv: No such file or directory (os error 2)
      --> fleet.toml:49:34
       |
    49 | arrivals = { recorded = { file = "lost.csv", column = "s" } }
       |                                  ^^^^^^^^^^ cannot be used
       |
       = help: it must be a CSV file with a header line; its path is taken from the folder of the scenario file
    "#);
}

// ---- What does not fit together
#[test]
fn no_server() {
    let from = RIGHT.find("[[server]]").expect("servers");
    let to = RIGHT.find("[hint.mixed]").expect("hints");
    assert_snapshot!(left_out(&RIGHT[from..to]), @r#"
    error: server: there is no server
     --> fleet.toml:1:1
      |
    1 | title = "A small fleet"
      | ^ found no [[server]]
      |
      = help: add [[server]] with a name
    "#);
}

#[test]
fn a_ceiling_below_the_floor() {
    assert_snapshot!(replaced(r#"ceiling = "5s""#, r#"ceiling = "200ms""#), @r#"
    error: policy.envelope.ceiling: the ceiling 200ms is below the floor 500ms
      --> fleet.toml:57:11
       |
    57 | ceiling = "200ms"
       |           ^^^^^^^ below the floor
       |
       = help: raise it, or say who wins: bounds_conflict = "floor_wins" or "ceiling_wins"
    "#);
}

#[test]
fn a_ceiling_below_the_floor_where_the_floor_wins() {
    assert_snapshot!(warned(r#"ceiling = "5s""#, r#"ceiling = "200ms"
bounds_conflict = "floor_wins""#), @r#"
    warning: policy.envelope.ceiling: the ceiling 200ms is below the floor 500ms
      --> fleet.toml:57:11
       |
    57 | ceiling = "200ms"
       |           ^^^^^^^ has no effect: the floor wins
       |
       = help: raise it, or leave it out
    "#);
}

#[test]
fn a_ceiling_below_the_floor_where_the_ceiling_wins() {
    assert_snapshot!(warned(r#"ceiling = "5s""#, r#"ceiling = "200ms"
bounds_conflict = "ceiling_wins""#), @r#"
    warning: policy.envelope.ceiling: the ceiling 200ms is below the floor 500ms
      --> fleet.toml:57:11
       |
    57 | ceiling = "200ms"
       |           ^^^^^^^ wins: the floor has no effect
       |
       = help: raise it, or leave the floor out
    "#);
}

#[test]
fn a_cap_below_the_first_wait() {
    assert_snapshot!(warned(r#"cap = "4s""#, r#"cap = "500ms""#), @r#"
    warning: policy.patient.backoff.geometric.cap: the cap 500ms is below the initial wait 1s
      --> fleet.toml:67:61
       |
    67 | backoff = { geometric = { initial = "1s", factor = 2, cap = "500ms" } }
       |                                                             ^^^^^^^ every wait is the cap
       |
       = help: swap them, or leave the growth out
    "#);
}

#[test]
fn a_warm_up_as_long_as_the_run() {
    assert_snapshot!(replaced(r#"warm_up = "1min""#, r#"warm_up = "10min""#), @r#"
    error: run.warm_up: the warm-up leaves nothing to observe
     --> fleet.toml:6:11
      |
    6 | warm_up = "10min"
      |           ^^^^^^^ 10min of 10min
      |
      = help: make it shorter than the horizon
    "#);
}

#[test]
fn a_hint_that_is_not_there() {
    assert_snapshot!(replaced(r#"hint = "mixed""#, r#"hint = "mixt""#), @r#"
    error: server.batch.hint: there is no [hint.mixt]
      --> fleet.toml:16:8
       |
    16 | hint = "mixt"
       |        ^^^^^^ unknown hint
       |
       = help: the hints are: aging, mixed
    "#);
}

#[test]
fn a_server_that_is_not_there() {
    assert_snapshot!(replaced("edge = 1 }", "egde = 1 }"), @r#"
    error: tenant.agents.servers: there is no server "egde"
      --> fleet.toml:42:24
       |
    42 | servers = { batch = 3, egde = 1 }
       |                        ^^^^ unknown server
       |
       = help: the servers are: batch, edge
    "#);
}

#[test]
fn a_policy_that_is_not_there() {
    assert_snapshot!(replaced(r#"policy = "patient""#, r#"policy = "hasty""#), @r#"
    error: tenant.nightly.policy: there is no [policy.hasty]
      --> fleet.toml:52:10
       |
    52 | policy = "hasty"
       |          ^^^^^^^ unknown policy
       |
       = help: the policies are: envelope, patient; or take a preset: `pollpace policies` lists them
    "#);
}

#[test]
fn weights_of_servers_that_are_all_zero() {
    assert_snapshot!(replaced("servers = { batch = 3, edge = 1 }", "servers = { batch = 0, edge = 0 }"), @r"
    error: tenant.agents.servers: the weights sum to zero
      --> fleet.toml:42:11
       |
    42 | servers = { batch = 0, edge = 0 }
       |           ^^^^^^^^^^^^^^^^^^^^^^^ nothing could be drawn
       |
       = help: give at least one of them a weight above 0
    ");
}

#[test]
fn weights_of_ends_that_are_all_zero() {
    assert_snapshot!(replaced("ends = { completed = 9, failed = 1 }", "ends = { completed = 0 }"), @r"
    error: tenant.agents.ends: the weights sum to zero
      --> fleet.toml:43:8
       |
    43 | ends = { completed = 0 }
       |        ^^^^^^^^^^^^^^^^^ nothing could be drawn
       |
       = help: give at least one of them a weight above 0
    ");
}

#[test]
fn servers_that_are_none() {
    assert_snapshot!(replaced("servers = { batch = 3, edge = 1 }", "servers = {}"), @r"
    error: tenant.agents.servers: its tasks need a server
      --> fleet.toml:42:11
       |
    42 | servers = {}
       |           ^^ found no servers
       |
       = help: write servers = { NAME = 1 }
    ");
}

#[test]
fn two_servers_of_one_name() {
    assert_snapshot!(replaced(r#"hint = "aging""#, r#"hint = "aging"
[[server]]
name = "batch""#), @r#"
    error: two of [[server]] are called "batch"
      --> fleet.toml:22:8
       |
    22 | name = "batch"
       |        ^^^^^^^ the same name again
       |
       = help: give each its own name
    "#);
}

#[test]
fn two_tenants_of_one_name() {
    let text = RIGHT.replace("nightly", "agents");
    let rejected = parse("fleet.toml", &text, &[]).expect_err("it is wrong");
    assert_snapshot!(one_message(&rejected), @r#"
    error: two of [[tenant]] are called "agents"
      --> fleet.toml:48:8
       |
    48 | name = "agents"
       |        ^^^^^^^^ the same name again
       |
       = help: give each its own name
    "#);
}

#[test]
fn a_name_that_cannot_stand_in_a_path() {
    assert_snapshot!(replaced(r#"name = "nightly""#, r#"name = "nightly.run""#), @r#"
    error: "nightly.run" is not a usable name
      --> fleet.toml:48:8
       |
    48 | name = "nightly.run"
       |        ^^^^^^^^^^^^^ stands in paths and columns
       |
       = help: use letters, digits, - and _
    "#);
}

#[test]
fn a_name_without_letters() {
    assert_snapshot!(replaced(r#"name = "nightly""#, r#"name = """#), @r#"
    error: "" is not a usable name
      --> fleet.toml:48:8
       |
    48 | name = ""
       |        ^^ stands in paths and columns
       |
       = help: use letters, digits, - and _
    "#);
}

#[test]
fn a_policy_whose_name_cannot_stand_in_a_path() {
    assert_snapshot!(replaced("[policy.patient]", r#"[policy."very patient"]
[policy.patient]"#), @r#"
    error: "very patient" is not a usable name
      --> fleet.toml:65:9
       |
    65 | [policy."very patient"]
       |         ^^^^^^^^^^^^^^ stands in paths and columns
       |
       = help: use letters, digits, -, _ and dots
    "#);
}

#[test]
fn an_abort_without_a_time() {
    assert_snapshot!(replaced(r#"after = "20s", "#, ""), @r#"
    error: tenant.agents.abort: an abort needs a time
      --> fleet.toml:44:9
       |
    44 | abort = { probability = 0.1, then = "cancel" }
       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ found none of after, shutdown_at, deadline
       |
       = help: write it as in abort = { probability = 0.1, after = "20s" }
    "#);
}

#[test]
fn a_probability_of_nothing() {
    assert_snapshot!(replaced(r#"after = "20s", "#, r#"deadline = "20s", "#), @r#"
    error: tenant.agents.abort.probability: it is the share of the tasks to which `after` applies
      --> fleet.toml:44:25
       |
    44 | abort = { probability = 0.1, deadline = "20s", then = "cancel" }
       |                         ^^^ found no `after`
       |
       = help: add after = …, or leave it out: shutdown_at and deadline apply to every task
    "#);
}

#[test]
fn bursts_without_length() {
    assert_snapshot!(replaced(r#"arrivals = { poisson = { rate = "2/s", tasks = 900 } }"#, r#"arrivals = { on_off = { rate = "2/s", on = "0s", off = "0s" } }"#), @r#"
    error: tenant.agents.arrivals: on and off are both zero
      --> fleet.toml:40:12
       |
    40 | arrivals = { on_off = { rate = "2/s", on = "0s", off = "0s" } }
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a cycle without length
       |
       = help: make at least one of them longer
    "#);
}

#[test]
fn too_many_replications() {
    assert_snapshot!(replaced("replications = 4", "replications = 4000000000"), @r"
    error: run.replications: too many replications
     --> fleet.toml:7:16
      |
    7 | replications = 4000000000
      |                ^^^^^^^^^^ found 4000000000
      |
      = help: at most 100000; intervals shrink with their square root only
    ");
}

#[test]
fn too_many_tenants() {
    assert_snapshot!(replaced("count = 20", "count = 4000000000"), @r"
    error: tenant.agents.count: too many tenants for one run
      --> fleet.toml:39:9
       |
    39 | count = 4000000000
       |         ^^^^^^^^^^ 4000000001 over all classes
       |
       = help: at most 67108864: scale the fleet down, and the results up
    ");
}

#[test]
fn too_many_servers() {
    assert_snapshot!(replaced(r#"count = 2
"#, r#"count = 2000000
"#), @r"
    error: server.batch.count: too many servers for one run
      --> fleet.toml:12:9
       |
    12 | count = 2000000
       |         ^^^^^^^ 2000001 over all classes
       |
       = help: at most 1048576: scale the fleet down, and the results up
    ");
}

#[test]
fn too_many_workers() {
    assert_snapshot!(replaced("workers = 4", "workers = 4000000000"), @r#"
    error: server.batch.tasks_get.workers: too many workers for one run
      --> fleet.toml:14:25
       |
    14 | tasks_get = { workers = 4000000000, service = { exponential = { mean = "2ms" } }, queue = 1000 }
       |                         ^^^^^^^^^^ 8000000001 over all classes
       |
       = help: at most 268435456: scale the fleet down, and the results up
    "#);
}

#[test]
fn too_many_windows() {
    assert_snapshot!(replaced(r#"horizon = "10min""#, r#"horizon = "36500d""#), @r#"
    error: run.horizon: too many rate windows for one run
     --> fleet.toml:5:11
      |
    5 | horizon = "36500d"
      |           ^^^^^^^^ 126144000000 windows of 100 ms over all pairs of classes
      |
      = help: at most 134217728: make the horizon shorter, or use fewer classes
    "#);
}

#[test]
fn a_ramp_without_a_start() {
    assert_snapshot!(replaced(r#"default = "1s""#, r#"default = "1s"
role = "ramp_ceiling""#), @r#"
    error: policy.envelope.role: a ramp needs its own start
      --> fleet.toml:56:8
       |
    56 | role = "ramp_ceiling"
       |        ^^^^^^^^^^^^^^ found no backoff with `initial`
       |
       = help: add backoff = { geometric = { initial = "20ms", factor = 2 } }
    "#);
}

#[test]
fn a_rule_that_asks_for_a_floor_that_is_not_there() {
    assert_snapshot!(left_out(r#"floor = "500ms"
"#), @r#"
    error: policy.envelope.rules.0.then: the policy has no floor
      --> fleet.toml:58:32
       |
    58 |   { class = "negative", then = "floor" },
       |                                ^^^^^^^ uses the floor
       |
       = help: add floor = …, or choose another outcome
    "#);
}

#[test]
fn a_rule_that_leaves_nothing_to_the_next() {
    assert_snapshot!(replaced(r#"{ class = "negative", then = "floor" }"#, r#"{ then = "floor" }"#), @r#"
    error: policy.envelope.rules.0: a rule without conditions matches everything
      --> fleet.toml:59:3
       |
    59 |   { then = "floor" },
       |   ^^^^^^^^^^^^^^^^^^ the rules after it never count
       |
       = help: put it last
    "#);
}

#[test]
fn a_rule_whose_range_is_upside_down() {
    assert_snapshot!(replaced(r#"class = "negative""#, "min = 5, max = 1"), @r#"
    error: policy.envelope.rules.0.max: `max` is below `min`
      --> fleet.toml:59:20
       |
    59 |   { min = 5, max = 1, then = "floor" },
       |                    ^ matches nothing
       |
       = help: swap them
    "#);
}

#[test]
fn a_backoff_of_no_steps() {
    assert_snapshot!(replaced(r#"backoff = { geometric = { initial = "1s", factor = 2, cap = "4s" } }"#, "backoff = { steps = [] }"), @r#"
    error: policy.patient.backoff: the table has no steps
      --> fleet.toml:67:11
       |
    67 | backoff = { steps = [] }
       |           ^^^^^^^^^^^^^^ found none
       |
       = help: write it as in { steps = [{ waits = 6, wait = "10s" }] }
    "#);
}

#[test]
fn a_timer_whose_maximum_is_below_its_minimum() {
    assert_snapshot!(replaced(r#"minimum = "1ms", maximum = "1h""#, r#"minimum = "1s", maximum = "1ms""#), @r#"
    error: policy.envelope.timer.maximum: the timer's maximum is below its minimum
      --> fleet.toml:63:37
       |
    63 | timer = { minimum = "1s", maximum = "1ms" }
       |                                     ^^^^^ 1ms is below 1s
       |
       = help: make it at least 1s
    "#);
}

#[test]
fn a_backoff_for_errors_that_end_the_loop() {
    assert_snapshot!(replaced(r#"on_error = "retry"
"#, r#"on_error = "end"
"#), @r#"
    error: policy.patient.error_backoff: the loop ends on an error
      --> fleet.toml:69:17
       |
    69 | error_backoff = { initial = "2s" }
       |                 ^^^^^^^^^^^^^^^^^^ never used
       |
       = help: drop it, or write on_error = "retry"
    "#);
}

#[test]
fn a_metric_with_a_slip() {
    assert_snapshot!(replaced("completion_latency_p99_ms", "completion_latency_p99"), @r#"
    error: objective.0.metric: there is no metric "completion_latency_p99"
      --> fleet.toml:72:10
       |
    72 | metric = "completion_latency_p99"
       |          ^^^^^^^^^^^^^^^^^^^^^^^^ unknown metric
       |
       = help: did you mean "completion_latency_p99_ms"?
    "#);
}

#[test]
fn a_metric_like_no_other() {
    assert_snapshot!(replaced("completion_latency_p99_ms", "happiness"), @r#"
    error: objective.0.metric: there is no metric "happiness"
      --> fleet.toml:72:10
       |
    72 | metric = "happiness"
       |          ^^^^^^^^^^^ unknown metric
       |
       = help: metrics are named as in summary.csv, such as completion_latency_p99_ms or tasks_get_rate_mean_per_s
    "#);
}

#[test]
fn a_group_that_is_not_there() {
    assert_snapshot!(replaced(r#"over = "tenant.agents""#, r#"over = "tenant.agent""#), @r#"
    error: objective.0.over: there is no group "tenant.agent"
      --> fleet.toml:73:8
       |
    73 | over = "tenant.agent"
       |        ^^^^^^^^^^^^^^ unknown group
       |
       = help: did you mean "tenant.agents"?
    "#);
}

#[test]
fn an_objective_without_a_bound() {
    assert_snapshot!(left_out(r#"max = 6000
"#), @r#"
    error: objective.0: an objective needs a bound
      --> fleet.toml:71:1
       |
    71 | [[objective]]
       | ^^^^^^^^^^^^^ found neither `max` nor `min`
       |
       = help: add one, as in { metric = "completion_latency_p99_ms", max = 3000 }
    "#);
}

#[test]
fn an_objective_that_cannot_be_met() {
    assert_snapshot!(replaced("max = 6000", r#"min = 7000
max = 6000"#), @r"
    error: objective.0.max: `max` is below `min`
      --> fleet.toml:75:7
       |
    75 | max = 6000
       |       ^^^^ cannot be met
       |
       = help: swap them
    ");
}

// ---- Files and policies that extend others
#[test]
fn a_policy_that_extends_one_that_is_not_there() {
    assert_snapshot!(replaced(r#"extends = "envelope""#, r#"extends = "envelop""#), @r#"
    error: policy.patient.extends: there is no [policy.envelop]
      --> fleet.toml:66:11
       |
    66 | extends = "envelop"
       |           ^^^^^^^^^ unknown policy
       |
       = help: did you mean "envelope"?
    "#);
}

#[test]
fn a_policy_that_extends_a_number() {
    assert_snapshot!(replaced(r#"extends = "envelope""#, "extends = 1"), @r"
    error: policy.patient.extends: expected a string
      --> fleet.toml:66:11
       |
    66 | extends = 1
       |           ^ found a whole number
       |
       = help: write it in double quotes
    ");
}

#[test]
fn a_policy_that_extends_itself() {
    assert_snapshot!(replaced(r#"extends = "envelope""#, r#"extends = "patient""#), @r#"
    error: policy.patient.extends: this policy extends itself
      --> fleet.toml:66:11
       |
    66 | extends = "patient"
       |           ^^^^^^^^^ goes round in a circle
       |
       = help: remove one of the `extends`
    "#);
}

#[test]
fn policies_that_extend_each_other() {
    let circle = broken(
        "[policy.envelope]",
        "[policy.envelope]\nextends = \"patient\"",
    );
    assert_snapshot!(text(&circle), @r#"
    error: policy.envelope.extends: this policy extends itself
      --> fleet.toml:67:11
       |
    67 | extends = "envelope"
       |           ^^^^^^^^^^ goes round in a circle
       |
       = help: remove one of the `extends`
    "#);
}

#[test]
fn a_file_that_extends_one_that_is_not_there() {
    assert_snapshot!(files(&[("fleet.toml", r#"extends = "base.toml"
"#)]), @r#"
    error: extends: cannot read base.toml
     --> fleet.toml:1:11
      |
    1 | extends = "base.toml"
      |           ^^^^^^^^^^^ No such file or directory (os error 2)
      |
      = help: the path is taken from the folder of this file
    "#);
}

#[test]
fn a_file_that_extends_a_number() {
    assert_snapshot!(files(&[("fleet.toml", r#"extends = 5
"#)]), @r#"
    error: extends: expected a string
     --> fleet.toml:1:11
      |
    1 | extends = 5
      |           ^ found a whole number
      |
      = help: write the name of one file, as in extends = "base.toml"
    "#);
}

#[test]
fn files_that_extend_each_other() {
    assert_snapshot!(files(&[("fleet.toml", r#"extends = "base.toml"
"#), ("base.toml", r#"extends = "fleet.toml"
"#)]), @r#"
    error: extends: this file extends itself
     --> base.toml:1:11
      |
    1 | extends = "fleet.toml"
      |           ^^^^^^^^^^^^ goes round in a circle
      |
      = help: remove one of the `extends`
    "#);
}

#[test]
fn a_fault_in_the_file_that_is_extended() {
    assert_snapshot!(files(&[("fleet.toml", r#"extends = "base.toml"
"#), ("base.toml", &broken("count = 20", "count = 0"))]), @r"
    error: tenant.agents.count: out of range
      --> base.toml:39:9
       |
    39 | count = 0
       |         ^ found 0
       |
       = help: it must be from 1 to 4294967295
    ");
}

#[test]
fn a_base_that_is_no_toml() {
    assert_snapshot!(files(&[("fleet.toml", r#"extends = "base.toml"
"#), ("base.toml", r#"[run
"#)]), @r#"
    error: this is not valid TOML
     --> base.toml:1:5
      |
    1 | [run
      |     ^ unclosed table, expected `]`
      |
      = help: in TOML, tables begin with [name] or [[name]], and values are written as in key = "text", 42, 0.5, [1, 2] or { key = 1 }
    "#);
}

#[test]
fn two_tenants_of_one_name_over_a_base() {
    assert_snapshot!(files(&[("fleet.toml", r#"extends = "base.toml"
[[tenant]]
name = "agents"
count = 3
[[tenant]]
name = "agents"
arrivals = { at_once = {} }
duration = "1s"
servers = { edge = 1 }
policy = "patient"
"#), ("base.toml", RIGHT)]), @r#"
    error: two of [[tenant]] are called "agents"
     --> fleet.toml:6:8
      |
    6 | name = "agents"
      |        ^^^^^^^^ the same name again
      |
      = help: give each its own name
    "#);
}

// ---- Overrides
#[test]
fn an_override_without_a_value() {
    assert_snapshot!(set("policy.envelope.floor"), @r"
    error: an override is `path=value`
     --> --set:1:1
      |
    1 | policy.envelope.floor
      | ^^^^^^^^^^^^^^^^^^^^^ there is no `=`
      |
      = help: write it as in --set policy.envelope.floor=500ms
    ");
}

#[test]
fn an_override_without_a_path() {
    assert_snapshot!(set(" = 5s"), @r"
    error: a part of the path is empty
     --> --set:1:2
      |
    1 |  = 5s
      |  ^ nothing is here
      |
      = help: write it as in --set policy.envelope.floor=500ms
    ");
}

#[test]
fn an_override_of_a_tenant_that_is_not_there() {
    assert_snapshot!(set("tenant.agent.count=5"), @r"
    error: `tenant` has no `agent`
     --> --set:1:8
      |
    1 | tenant.agent.count=5
      |        ^^^^^ nothing is here
      |
      = help: did you mean `agents`?
    ");
}

#[test]
fn an_override_of_a_server_like_no_other() {
    assert_snapshot!(set("server.cloud.count=5"), @r"
    error: `server` has no `cloud`
     --> --set:1:8
      |
    1 | server.cloud.count=5
      |        ^^^^^ nothing is here
      |
      = help: there are: batch, edge
    ");
}

#[test]
fn an_override_of_a_policy_that_is_not_there() {
    assert_snapshot!(set("policy.envelop.floor=1s"), @r"
    error: there is no [policy.envelop]
     --> --set:1:8
      |
    1 | policy.envelop.floor=1s
      |        ^^^^^^^ nothing is here
      |
      = help: did you mean `envelope`?
    ");
}

#[test]
fn an_override_beyond_the_end_of_a_list() {
    assert_snapshot!(set("policy.envelope.rules.7.then=use"), @r"
    error: `policy.envelope.rules` has no `7`
     --> --set:1:23
      |
    1 | policy.envelope.rules.7.then=use
      |                       ^ nothing is here
      |
      = help: its members are counted from 0 to 1
    ");
}

#[test]
fn an_override_of_the_wrong_type() {
    assert_snapshot!(set("tenant.agents.count=many"), @r"
    error: tenant.agents.count: expected a whole number
     --> --set:1:21
      |
    1 | tenant.agents.count=many
      |                     ^^^^ found a string
      |
      = help: write digits only, as in 10
    ");
}

#[test]
fn an_override_without_a_unit() {
    assert_snapshot!(set("policy.envelope.floor = 500"), @r#"
    error: policy.envelope.floor: expected a duration
     --> --set:1:25
      |
    1 | policy.envelope.floor = 500
      |                         ^^^ found a whole number
      |
      = help: durations have a unit: "500ms" or "500s"
    "#);
}

#[test]
fn an_override_of_a_key_that_is_none() {
    assert_snapshot!(set("policy.envelope.flor=500ms"), @r"
    error: policy.envelope: unknown key `flor`
     --> --set:1:17
      |
    1 | policy.envelope.flor=500ms
      |                 ^^^^ not a key of this table
      |
      = help: did you mean `floor`?
    ");
}

#[test]
fn an_override_below_a_value() {
    assert_snapshot!(set("run.horizon.minutes=5"), @r#"
    error: run.horizon: expected a duration
     --> --set:1:13
      |
    1 | run.horizon.minutes=5
      |             ^^^^^^^ found a table
      |
      = help: write it as in "250ms"
    "#);
}

#[test]
fn an_override_that_does_not_fit() {
    assert_snapshot!(set("policy.envelope.ceiling=100ms"), @r#"
    error: policy.envelope.ceiling: the ceiling 100ms is below the floor 500ms
     --> --set:1:25
      |
    1 | policy.envelope.ceiling=100ms
      |                         ^^^^^ below the floor
      |
      = help: raise it, or say who wins: bounds_conflict = "floor_wins" or "ceiling_wins"
    "#);
}

#[test]
fn an_override_with_a_table_that_is_wrong() {
    assert_snapshot!(set("tenant.agents.arrivals={ poisson = { rate = 5 } }"), @r#"
    error: tenant.agents.arrivals.poisson.rate: expected a rate
     --> --set:1:45
      |
    1 | tenant.agents.arrivals={ poisson = { rate = 5 } }
      |                                             ^ found a whole number
      |
      = help: write it as in "40/s"
    "#);
}

// ---- Several at once

#[test]
fn several_faults_are_told_in_the_order_of_the_file() {
    let text = RIGHT
        .replace("horizon = \"10min\"", "horizon = 600")
        .replace("executes = 500", "executs = 500")
        .replace("probability = 0.1", "probability = 1.5")
        .replace("on_error = \"retry\"", "on_error = \"retri\"");
    let rejected = parse("fleet.toml", &text, &["run.seed=x".into()]).expect_err("it is wrong");
    assert_snapshot!(rejected, @r#"
    error: run.horizon: expected a duration
     --> fleet.toml:5:11
      |
    5 | horizon = 600
      |           ^^^ found a whole number
      |
      = help: durations have a unit: "600ms" or "600s"

    error: server.batch: unknown key `executs`
      --> fleet.toml:13:1
       |
    13 | executs = 500
       | ^^^^^^^ not a key of this table
       |
       = help: did you mean `executes`?

    error: tenant.agents.abort.probability: out of range
      --> fleet.toml:44:25
       |
    44 | abort = { probability = 1.5, after = "20s", then = "cancel" }
       |                         ^^^ found 1.5
       |
       = help: it must be a number from 0 to 1, as in 0.1

    error: policy.patient.on_error: unknown value "retri"
      --> fleet.toml:68:12
       |
    68 | on_error = "retri"
       |            ^^^^^^^ not one of the choices
       |
       = help: did you mean "retry"?

    error: run.seed: expected a whole number
     --> --set:1:10
      |
    1 | run.seed=x
      |          ^ found a string
      |
      = help: write digits only, as in 42

    5 errors in fleet.toml
    "#);
}

#[test]
fn several_parts_that_do_not_fit_are_told_in_the_order_of_the_file() {
    let text = RIGHT
        .replace("hint = \"mixed\"", "hint = \"mixt\"")
        .replace("edge = 1 }", "egde = 1 }")
        .replace("ceiling = \"5s\"", "ceiling = \"100ms\"");
    let rejected = parse("fleet.toml", &text, &[]).expect_err("it is wrong");
    assert_snapshot!(rejected, @r#"
    error: server.batch.hint: there is no [hint.mixt]
      --> fleet.toml:16:8
       |
    16 | hint = "mixt"
       |        ^^^^^^ unknown hint
       |
       = help: the hints are: aging, mixed

    error: tenant.agents.servers: there is no server "egde"
      --> fleet.toml:42:24
       |
    42 | servers = { batch = 3, egde = 1 }
       |                        ^^^^ unknown server
       |
       = help: the servers are: batch, edge

    error: policy.envelope.ceiling: the ceiling 100ms is below the floor 500ms
      --> fleet.toml:57:11
       |
    57 | ceiling = "100ms"
       |           ^^^^^^^ below the floor
       |
       = help: raise it, or say who wins: bounds_conflict = "floor_wins" or "ceiling_wins"

    3 errors in fleet.toml
    "#);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = load(Path::new("no/such/fleet.toml"), &[]).expect_err("it is not there");
    assert_snapshot!(error, @r"cannot read no/such/fleet.toml: No such file or directory (os error 2)");
}

// ---- Things nobody would write

/// Words that do harm in some places.
const NASTY: [&str; 24] = [
    "0",
    "-1",
    "1e308",
    "nan",
    "-inf",
    "99999999999999999999999999999999999999999",
    "true",
    "\"\"",
    "\"é\"",
    "\"0s\"",
    "\"36500d\"",
    "\"1e300/s\"",
    "[]",
    "{}",
    "[[",
    "]",
    "=",
    ".",
    ",",
    "\n",
    "\r\n",
    "\u{feff}",
    "\u{3000}",
    "#",
];

/// The text as words, blanks and signs, which make the text again when they are put together.
fn words(text: &str) -> Vec<&str> {
    let sign = |c: char| !(c.is_alphanumeric() || "_.\"-".contains(c));
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(sign).unwrap_or(rest.len()).max(1);
        let end = if sign(first) { first.len_utf8() } else { end };
        let (word, tail) = rest.split_at(end);
        words.push(word);
        rest = tail;
    }
    words
}

/// `text` with some words deleted, doubled, or replaced by others.
fn garbled(text: &str, seed: u64) -> String {
    let mut words = words(text);
    let mut draw = (0..).map(|i| mix(mix(seed) ^ i) as usize);
    let mut pick = |n: usize| draw.next().expect("endless") % n;
    for _ in 0..=pick(3) {
        let at = pick(words.len());
        match pick(4) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at]),
            2 => words[at] = words[pick(words.len())],
            _ => words[at] = NASTY[pick(NASTY.len())],
        }
    }
    words.concat()
}

// Limits, faults, budgets

#[test]
fn a_limit_without_a_measure() {
    assert_snapshot!(set("server.batch.limits=[{ per = 'server' }]"), @r#"
    error: server.batch.limits.0: a limit is a bucket or a quota
     --> --set:1:22
      |
    1 | server.batch.limits=[{ per = 'server' }]
      |                      ^^^^^^^^^^^^^^^^^^ found neither
      |
      = help: write { per = "server", bucket = { rate = "25/s", burst = 250 } } or { per = "tenant", quota = { requests = 5000, length = "1h" } }
    "#);
}

#[test]
fn a_limit_with_two_measures() {
    assert_snapshot!(set("server.batch.limits=[{ per = 'server', bucket = { rate = '5/s' }, quota = { requests = 5, length = '1h' } }]"), @r#"
    error: server.batch.limits.0: a limit is a bucket or a quota
     --> --set:1:22
      |
    1 | server.batch.limits=[{ per = 'server', bucket = { rate = '5/s' }, quota = { requests = 5, length = '1h' } }]
      |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ found both
      |
      = help: write { per = "server", bucket = { rate = "25/s", burst = 250 } } or { per = "tenant", quota = { requests = 5000, length = "1h" } }
    "#);
}

#[test]
fn a_limit_for_nobody() {
    assert_snapshot!(set("server.batch.limits=[{ per = 'user', bucket = { rate = '5/s' } }]"), @r#"
    error: server.batch.limits.0.per: unknown value "user"
     --> --set:1:30
      |
    1 | server.batch.limits=[{ per = 'user', bucket = { rate = '5/s' } }]
      |                              ^^^^^^ not one of the choices
      |
      = help: write "server" or "tenant" or "client"
    "#);
}

#[test]
fn a_bucket_without_a_rate() {
    assert_snapshot!(set("server.batch.limits=[{ per = 'server', bucket = { burst = 5 } }]"), @r#"
    error: server.batch.limits.0.bucket: `rate` is missing
     --> --set:1:49
      |
    1 | server.batch.limits=[{ per = 'server', bucket = { burst = 5 } }]
      |                                                 ^^^^^^^^^^^^^ found no `rate`
      |
      = help: add rate = "40/s"
    "#);
}

#[test]
fn an_outage_without_a_time() {
    assert_snapshot!(set("server.batch.outage={ forgets = true }"), @r#"
    error: server.batch.outage: an outage needs a time
     --> --set:1:21
      |
    1 | server.batch.outage={ forgets = true }
      |                     ^^^^^^^^^^^^^^^^^^ found neither windows nor random
      |
      = help: write it as in { windows = [{ from = "2min", length = "30s" }] } or { random = { up = "1h", down = "30s" } }
    "#);
}

#[test]
fn an_outage_of_no_length() {
    assert_snapshot!(set("server.batch.outage={ windows = [{ from = '1min', length = '0s' }] }"), @r#"
    error: server.batch.outage.windows.0.length: a duration of zero makes no sense here
     --> --set:1:60
      |
    1 | server.batch.outage={ windows = [{ from = '1min', length = '0s' }] }
      |                                                            ^^^^ found 0
      |
      = help: it must be above 0, as in "10s"
    "#);
}

#[test]
fn an_outage_whose_cycle_takes_no_time() {
    assert_snapshot!(set("server.batch.outage={ random = { up = '0s', down = '0s' } }"), @r#"
    error: server.batch.outage.random: up and down are shorter than 1ms together
     --> --set:1:32
      |
    1 | server.batch.outage={ random = { up = '0s', down = '0s' } }
      |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^ a cycle too short
      |
      = help: make at least one of them longer
    "#);
}

#[test]
fn an_unknown_answer_of_a_server_that_is_down() {
    assert_snapshot!(set("server.batch.outage={ windows = [{ from = '1min', length = '1s' }], answers = 'silence' }"), @r#"
    error: server.batch.outage.answers: unknown value "silence"
     --> --set:1:79
      |
    1 | server.batch.outage={ windows = [{ from = '1min', length = '1s' }], answers = 'silence' }
      |                                                                               ^^^^^^^^^ not one of the choices
      |
      = help: did you mean "silent"?
    "#);
}

#[test]
fn a_loss_above_one() {
    assert_snapshot!(set("server.batch.loss={ request = 1.5 }"), @r#"
    error: server.batch.loss.request: out of range
     --> --set:1:31
      |
    1 | server.batch.loss={ request = 1.5 }
      |                               ^^^ found 1.5
      |
      = help: it must be a number from 0 to 1, as in 0.1
    "#);
}

#[test]
fn a_minimum_gap_of_zero() {
    assert_snapshot!(set("server.batch.minimum_gap={ gap = '0s' }"), @r#"
    error: server.batch.minimum_gap.gap: a duration of zero makes no sense here
     --> --set:1:34
      |
    1 | server.batch.minimum_gap={ gap = '0s' }
      |                                  ^^^^ found 0
      |
      = help: it must be above 0, as in "10s"
    "#);
}

#[test]
fn a_slow_period_that_takes_no_time_at_all() {
    assert_snapshot!(set("server.batch.slow=[{ from = '1min', length = '1s', factor = 0 }]"), @r#"
    error: server.batch.slow.0.factor: out of range
     --> --set:1:61
      |
    1 | server.batch.slow=[{ from = '1min', length = '1s', factor = 0 }]
      |                                                             ^ found 0.0
      |
      = help: it must be a finite number above 0
    "#);
}

#[test]
fn a_retry_after_without_a_unit() {
    assert_snapshot!(set("server.batch.retry_after={ after = 5 }"), @r#"
    error: server.batch.retry_after.after: expected a duration
     --> --set:1:36
      |
    1 | server.batch.retry_after={ after = 5 }
      |                                    ^ found a whole number
      |
      = help: durations have a unit: "5ms" or "5s"
    "#);
}

#[test]
fn a_budget_of_nothing() {
    assert_snapshot!(set("budget={ when_spent = 'skip' }"), @r#"
    error: budget: the budget limits nothing
     --> --set:1:8
      |
    1 | budget={ when_spent = 'skip' }
      |        ^^^^^^^^^^^^^^^^^^^^^^^ found none of fleet, tenant, server, pollers
      |
      = help: write it as in budget = { fleet = { rate = "800/s", burst = 20 } }, or leave it out
    "#);
}

#[test]
fn an_unknown_way_to_spend() {
    assert_snapshot!(set("budget={ fleet = { rate = '5/s' }, when_spent = 'drop' }"), @r#"
    error: budget.when_spent: unknown value "drop"
     --> --set:1:49
      |
    1 | budget={ fleet = { rate = '5/s' }, when_spent = 'drop' }
      |                                                 ^^^^^^ not one of the choices
      |
      = help: write "queue" or "skip"
    "#);
}

#[test]
fn no_pollers_at_all() {
    assert_snapshot!(set("budget={ pollers = { host = 0 } }"), @r#"
    error: budget.pollers.host: out of range
     --> --set:1:29
      |
    1 | budget={ pollers = { host = 0 } }
      |                             ^ found 0
      |
      = help: it must be from 1 to 4294967295
    "#);
}

#[test]
fn a_breaker_that_never_closes() {
    assert_snapshot!(set("policy.envelope.breaker={ opens = { consecutive = 5 } }"), @r#"
    error: policy.envelope.breaker: `open` is missing
     --> --set:1:25
      |
    1 | policy.envelope.breaker={ opens = { consecutive = 5 } }
      |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ found no `open`
      |
      = help: add open = "10s"
    "#);
}

#[test]
fn a_breaker_that_two_things_open() {
    assert_snapshot!(set("policy.envelope.breaker={ opens = { consecutive = 5, share = { of = 0.5, within = '10s' } }, open = '5s' }"), @r#"
    error: policy.envelope.breaker.opens: both `consecutive` and `share` are given
     --> --set:1:54
      |
    1 | policy.envelope.breaker={ opens = { consecutive = 5, share = { of = 0.5, within = '10s' } }, open = '5s' }
      |                                                      ^^^^^ only one can hold
      |
      = help: keep one of them
    "#);
}

#[test]
fn a_breaker_opened_by_nothing() {
    assert_snapshot!(set("policy.envelope.breaker={ opens = {}, open = '5s' }"), @r#"
    error: policy.envelope.breaker.opens: the table is empty
     --> --set:1:35
      |
    1 | policy.envelope.breaker={ opens = {}, open = '5s' }
      |                                   ^^ found no key
      |
      = help: write { consecutive = … } or { failures = … } or { share = … }
    "#);
}

#[test]
fn retries_without_an_attempt() {
    assert_snapshot!(set("policy.envelope.retries={ attempts = 0 }"), @r#"
    error: policy.envelope.retries.attempts: out of range
     --> --set:1:38
      |
    1 | policy.envelope.retries={ attempts = 0 }
      |                                      ^ found 0
      |
      = help: it must be from 1 to 4294967295
    "#);
}

#[test]
fn too_many_requests_in_a_poll() {
    assert_snapshot!(set("policy.envelope.requests_per_poll=20000"), @r#"
    error: policy.envelope.requests_per_poll: too many requests in one poll
     --> --set:1:35
      |
    1 | policy.envelope.requests_per_poll=20000
      |                                   ^^^^^ found 20000
      |
      = help: at most 10000
    "#);
}

#[test]
fn a_timeout_of_zero() {
    assert_snapshot!(set("policy.envelope.timeout='0s'"), @r#"
    error: policy.envelope.timeout: a duration of zero makes no sense here
     --> --set:1:25
      |
    1 | policy.envelope.timeout='0s'
      |                         ^^^^ found 0
      |
      = help: it must be above 0, as in "10s"
    "#);
}

#[test]
fn an_unknown_push() {
    assert_snapshot!(set("policy.envelope.push='wake'"), @r#"
    error: policy.envelope.push: unknown value "wake"
     --> --set:1:22
      |
    1 | policy.envelope.push='wake'
      |                      ^^^^^^ not one of the choices
      |
      = help: did you mean "wakes"?
    "#);
}

#[test]
fn a_loop_that_runs_nowhere() {
    assert_snapshot!(set("policy.envelope.runs='server'"), @r#"
    error: policy.envelope.runs: unknown value "server"
     --> --set:1:22
      |
    1 | policy.envelope.runs='server'
      |                      ^^^^^^^^ not one of the choices
      |
      = help: did you mean "on_server"?
    "#);
}

#[test]
fn a_reconnect_without_a_time() {
    assert_snapshot!(set("tenant.agents.reconnect={ spread = '1s' }"), @r#"
    error: tenant.agents.reconnect: a reconnect needs a time
     --> --set:1:25
      |
    1 | tenant.agents.reconnect={ spread = '1s' }
      |                         ^^^^^^^^^^^^^^^^^ found neither at nor every
      |
      = help: write it as in { at = ["5min"] } or { every = { exponential = { mean = "1h" } } }
    "#);
}

#[test]
fn reconnects_without_a_pause() {
    assert_snapshot!(set("tenant.agents.reconnect={ every = '0s' }"), @r#"
    error: tenant.agents.reconnect.every: reconnects without a time between them
     --> --set:1:35
      |
    1 | tenant.agents.reconnect={ every = '0s' }
      |                                   ^^^^ found 0
      |
      = help: make it longer
    "#);
}

#[test]
fn a_host_loop_whose_polls_cost_nothing() {
    assert_snapshot!(set("tenant.agents.host_loop={ wake_up = '0.2ms' }"), @r#"
    error: tenant.agents.host_loop: `poll` is missing
     --> --set:1:25
      |
    1 | tenant.agents.host_loop={ wake_up = '0.2ms' }
      |                         ^^^^^^^^^^^^^^^^^^^^^ found no `poll`
      |
      = help: add poll = "250ms"
    "#);
}

#[test]
fn a_question_without_a_time() {
    assert_snapshot!(set("tenant.agents.input={ answer = '5s' }"), @r#"
    error: tenant.agents.input: `after` is missing
     --> --set:1:21
      |
    1 | tenant.agents.input={ answer = '5s' }
      |                     ^^^^^^^^^^^^^^^^^ found no `after`
      |
      = help: add after = "250ms"
    "#);
}

#[test]
fn a_bound_on_no_cancellation() {
    assert_snapshot!(set("tenant.nightly.abort={ after = '5s', cancel_bound = '1s' }"), @r#"
    error: tenant.nightly.abort.cancel_bound: it bounds the wait for the answer to `tasks/cancel`
     --> --set:1:53
      |
    1 | tenant.nightly.abort={ after = '5s', cancel_bound = '1s' }
      |                                                     ^^^^ no `tasks/cancel` is sent
      |
      = help: add then = "cancel", or leave it out
    "#);
}

#[test]
fn a_tenant_without_weight() {
    assert_snapshot!(set("tenant.agents.weight=0"), @r#"
    error: tenant.agents.weight: out of range
     --> --set:1:22
      |
    1 | tenant.agents.weight=0
      |                      ^ found 0.0
      |
      = help: it must be a finite number above 0
    "#);
}

#[test]
fn too_many_hosts() {
    assert_snapshot!(set("tenant.agents.hosts=100000000"), @r#"
    error: tenant.agents.hosts: too many hosts for one run
     --> --set:1:21
      |
    1 | tenant.agents.hosts=100000000
      |                     ^^^^^^^^^ 2000000000 over all classes
      |
      = help: at most 67108864: scale the fleet down, and the results up
    "#);
}

#[test]
fn a_negative_price() {
    assert_snapshot!(set("tenant.agents.cost={ request = -1 }"), @r#"
    error: tenant.agents.cost.request: out of range
     --> --set:1:32
      |
    1 | tenant.agents.cost={ request = -1 }
      |                                ^^ found -1.0
      |
      = help: it must be a finite number, 0 or above
    "#);
}

#[test]
fn a_loop_that_may_wait_for_ever() {
    assert_snapshot!(warned_by("server.batch.loss={ answer = 0.1 }"), @r#"
    warning: policy.envelope: tenant "agents" gives no request up, and server "batch" leaves some without an answer
      --> fleet.toml:54:1
       |
    54 | [policy.envelope]
       | ^^^^^^^^^^^^^^^^^ found no timeout
       |
       = help: add timeout = "60s", or such a loop waits for ever

    warning: policy.patient: tenant "nightly" gives no request up, and server "batch" leaves some without an answer
      --> fleet.toml:65:1
       |
    65 | [policy.patient]
       | ^^^^^^^^^^^^^^^^ found no timeout
       |
       = help: add timeout = "60s", or such a loop waits for ever
    "#);
}

#[test]
fn a_loop_that_asks_for_ever_for_what_is_forgotten() {
    let told = parse(
        "fleet.toml",
        RIGHT,
        &[
            "server.batch.ttl='5min'".into(),
            "policy.patient.on_unknown_task='retry'".into(),
        ],
    )
    .expect("it is only doubtful")
    .warnings;
    assert!(
        told.contains("polls tasks for ever that server \"batch\" has forgotten"),
        "{told}"
    );
    assert!(
        told.contains("add max_errors, max_polls or give_up_after"),
        "{told}"
    );
}

#[test]
fn a_push_that_never_comes() {
    assert_snapshot!(warned_by("policy.envelope.push='wakes'"), @r#"
    warning: policy.envelope.push: no server of tenant "agents" sends notifications
     --> --set:1:22
      |
    1 | policy.envelope.push='wakes'
      |                      ^^^^^^^ waits for them in vain
      |
      = help: add notifications = {} to the server
    "#);
}

#[test]
fn a_hold_longer_than_the_timeout() {
    assert_snapshot!(warned_by("policy.envelope={ long_poll = '30s', timeout = '10s' }"), @r#"
    warning: policy.envelope.long_poll: the host gives a request up after 10s, and the server holds it for 30s
     --> --set:1:31
      |
    1 | policy.envelope={ long_poll = '30s', timeout = '10s' }
      |                               ^^^^^ held for longer than the timeout
      |
      = help: make the timeout longer, or the hold shorter
    "#);
}

#[test]
fn garbled_scenarios_are_told_apart_without_a_panic() {
    let mut accepted = 0;
    for seed in 0..4000 {
        let text = garbled(RIGHT, seed);
        match parse("fleet.toml", &text, &[]) {
            Err(rejected) => {
                assert!(!rejected.diagnostics.is_empty(), "no reason:\n{text}");
                assert!(
                    rejected.to_string().contains("help: "),
                    "{rejected}\n{text}"
                );
            }
            Ok(loaded) => {
                accepted += 1;
                Model::new(&loaded.scenario);
                let printed = loaded.scenario.to_toml();
                let again = parse("printed.toml", &printed, &[]).expect(&text).scenario;
                assert_eq!(again.to_toml(), printed, "{text}");
            }
        }
    }
    assert!(
        (400..3600).contains(&accepted),
        "{accepted} of 4000 are right"
    );
}

#[test]
fn garbled_overrides_are_told_apart_without_a_panic() {
    let right = [
        "policy.envelope.jitter.proportional = 0.2",
        "tenant.agents.arrivals = { poisson = { rate = \"5/s\" } }",
        "hint.mixed.mix.0.ms.uniform.high=3000",
        "server.batch.tasks_get.workers=8",
    ];
    for seed in 0..2000 {
        let assignment = garbled(right[seed as usize % right.len()], seed);
        if let Err(rejected) = parse("fleet.toml", RIGHT, std::slice::from_ref(&assignment)) {
            assert!(
                rejected.to_string().contains("help: "),
                "{rejected}\n{assignment}"
            );
        }
    }
}
