//! `pollpace gate`: each trip is tripped by a small scenario, and passed by the mended one.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Passes: floor, ceiling, waits that can be interrupted, a budget.
const SOUND: &str = r#"
    [run]
    seed = 3
    horizon = "60s"
    replications = 3
    [budget]
    fleet = { rate = "10000/s", burst = 10 }
    [[server]]
    name = "s"
    delay = "5ms"
    hint = 500
    [[server]]
    name = "idle"
    [[tenant]]
    name = "t"
    count = 10
    arrivals = { poisson = { rate = "12/min" } }
    duration = "10s"
    servers = { s = 1 }
    policy = "p"
    [policy.p]
    floor = "500ms"
    ceiling = "2s"
    [[objective]]
    metric = "abort_latency_p99_ms"
    max = 1000
"#;

const CONDITIONS: [&str; 6] = [
    "low",
    "normal",
    "high",
    "malformed",
    "cancellation",
    "concurrency",
];

fn gate(file: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["gate", file])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A scenario at the gate.
struct Put(tempfile::TempDir);

impl Put {
    fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("fleet.toml"), scenario).unwrap();
        Put(folder)
    }

    fn gate(&self, arguments: &[&str]) -> Output {
        gate(
            self.0.path().join("fleet.toml").to_str().unwrap(),
            arguments,
        )
    }

    /// The whole answer; the exit code is that of its verdict.
    fn answer(&self, arguments: &[&str]) -> Value {
        let output = self.gate(&[arguments, &["--format", "json"]].concat());
        answer(&output)
    }
}

fn answer(output: &Output) -> Value {
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let passes = answer["may_be_deployed"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!passes)));
    answer
}

/// Whether trip `number` is tripped; `None` where that is unknown.
fn tripped(answer: &Value, number: usize) -> Option<bool> {
    answer["trips"][number - 1]["tripped"].as_bool()
}

fn all_tripped(answer: &Value) -> [Option<bool>; 4] {
    [1, 2, 3, 4].map(|number| tripped(answer, number))
}

fn findings(answer: &Value, number: usize) -> &Vec<Value> {
    answer["trips"][number - 1]["findings"].as_array().unwrap()
}

/// The conditions in which a trip is tripped; `scenario` for what is declared.
fn where_tripped(answer: &Value, number: usize) -> Vec<String> {
    let bad = findings(answer, number)
        .iter()
        .filter(|f| f["tripped"] == true);
    let mut places: Vec<String> = bad
        .map(|f| f["condition"].as_str().unwrap_or("scenario").to_string())
        .collect();
    places.dedup();
    places
}

const PASSED: [Option<bool>; 4] = [Some(false); 4];

#[test]
fn a_sound_policy_passes() {
    let sound = Put::new(SOUND);
    let answer = sound.answer(&[]);
    assert_eq!(all_tripped(&answer), PASSED);
    let conditions: Vec<&str> = answer["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["condition"].as_str().unwrap())
        .collect();
    assert_eq!(conditions, CONDITIONS);
    // The gap of the floor and the round trip, in every condition but those with long waits.
    let low = &findings(&answer, 1)[0];
    assert_eq!(
        (&low["condition"], &low["tenant"]),
        (&"low".into(), &"t".into())
    );
    assert_eq!(
        (&low["value"], &low["bound"]),
        (&510.0.into(), &20.0.into())
    );
    let shown = text(&sound.gate(&[]).stdout);
    assert!(shown.contains("\nMAY BE DEPLOYED"), "{shown}");
    assert!(sound.gate(&["--quiet"]).stdout.is_empty());
}

#[test]
fn a_policy_without_a_floor_lets_a_server_force_a_tight_loop() {
    let raw = SOUND.replace(
        "floor = \"500ms\"",
        "rules = [{ class = \"zero\", then = \"use\" }]",
    );
    let raw = Put::new(&raw);
    let answer = raw.answer(&[]);
    assert_eq!(
        all_tripped(&answer),
        [Some(true), Some(false), Some(false), Some(false)]
    );
    assert_eq!(where_tripped(&answer, 1), ["low"]);
    let found = &findings(&answer, 1)[0];
    assert_eq!(
        (&found["tenant"], &found["server"]),
        (&"t".into(), &"s".into())
    );
    // Hints of 0, 1 and 10 ms and a round trip of 10 ms; a shorter gap has more polls.
    let gap = found["value"].as_f64().unwrap();
    assert!((10.0..=11.01).contains(&gap), "{gap}");
    // What is near is for the planner to say.
    assert_eq!(all_tripped(&raw.answer(&["--tight-loop", "5ms"])), PASSED);
    let strict = Put::new(SOUND).answer(&["--tight-loop", "600ms"]);
    assert_eq!(strict["tight_loop_ms"], 600.0);
    assert_eq!(where_tripped(&strict, 1), ["low", "normal", "concurrency"]);
}

#[test]
fn two_round_trips_are_near_where_the_way_is_long() {
    // A wait of 40 ms: twice the round trip of 10 ms allows it, and that of 100 ms does not.
    let fast = SOUND.replace("floor = \"500ms\"", "floor = \"40ms\"");
    assert_eq!(tripped(&Put::new(&fast).answer(&[]), 1), Some(false));
    let far = Put::new(&fast.replace("delay = \"5ms\"", "delay = \"50ms\"")).answer(&[]);
    let low = &findings(&far, 1)[0];
    assert_eq!(
        (&low["value"], &low["bound"]),
        (&140.0.into(), &200.0.into())
    );
    assert_eq!(tripped(&far, 1), Some(true));
}

#[test]
fn a_hint_beyond_a_timer_of_32_bits_is_a_flood() {
    let timer = "rules = [{ min = 2147483648, then = \"use\" }]\n\
                 timer = { minimum = \"1ms\", maximum = \"2147483647ms\" }";
    let wraps = Put::new(&SOUND.replace("ceiling = \"2s\"", timer)).answer(&[]);
    assert_eq!(where_tripped(&wraps, 1), ["malformed"]);
    let bounded = format!("ceiling = \"2s\"\n{timer}");
    let bounded = Put::new(&SOUND.replace("ceiling = \"2s\"", &bounded)).answer(&[]);
    assert_eq!(all_tripped(&bounded), PASSED);
}

#[test]
fn a_run_that_stops_trips_by_name_and_leaves_the_rest_unknown() {
    // A budget would let time pass between its polls.
    let budget = "fleet = { rate = \"10000/s\", burst = 10 }";
    let zero = "rules = [{ class = \"zero\", then = \"use\" }]";
    let instant = SOUND
        .replace("delay = \"5ms\"", "")
        .replace(budget, "pollers = { host = 100 }")
        .replace("floor = \"500ms\"", zero);
    let answer = Put::new(&instant).answer(&[]);
    assert_eq!(all_tripped(&answer), [Some(true), None, Some(true), None]);
    let instant = |f: &&Value| {
        let evidence = f["evidence"].as_str().unwrap();
        evidence.contains("polls of one task at one instant")
    };
    let found = findings(&answer, 1).iter().find(instant).unwrap();
    assert_eq!(
        (&found["tenant"], &found["server"]),
        (&"t".into(), &"s".into())
    );
    let stopped = |n: usize| answer["conditions"][n]["stopped"].as_str().unwrap_or("");
    assert!(stopped(0).contains("a loop that takes no time") && stopped(1).is_empty());

    let limited = Put::new(SOUND);
    let answer = limited.answer(&["--set", "run.event_limit=200"]);
    assert_eq!(where_tripped(&answer, 1), CONDITIONS);
    assert_eq!(tripped(&answer, 2), None, "nothing was measured");
    assert_eq!(findings(&answer, 1)[0]["tenant"], "t");
    let shown = limited.gate(&["--set", "run.event_limit=200"]);
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("MAY NOT BE DEPLOYED: tripped: 1; unknown: 2, 3, 4"),
        "{shown}"
    );
}

#[test]
fn a_sleep_that_cannot_be_interrupted_exceeds_the_abort_latency() {
    let sleeps = SOUND.replace(
        "floor = \"500ms\"",
        "floor = \"500ms\"\nwait = \"checked_after_sleep\"",
    );
    let sleeps = Put::new(&sleeps);
    let answer = sleeps.answer(&[]);
    assert_eq!(
        all_tripped(&answer),
        [Some(false), Some(true), Some(false), Some(false)]
    );
    // Only there are tasks aborted.
    assert_eq!(where_tripped(&answer, 2), ["cancellation"]);
    // It is held against the unfavourable end of the interval, not against the mean.
    let estimate = &answer["conditions"][4]["groups"]["fleet"]["abort_latency_p90_ms"];
    let (mean, hi) = (
        estimate["mean"].as_f64().unwrap(),
        estimate["hi"].as_f64().unwrap(),
    );
    assert!(mean < hi);
    let between = format!("abort_latency_p90_ms<={}", (mean + hi) / 2.0);
    let answer = sleeps.answer(&["--objective", &between]);
    assert_eq!(tripped(&answer, 2), Some(true));
    assert_eq!(findings(&answer, 2)[0]["value"].as_f64(), Some(hi));
    let above = format!("tenant.t:abort_latency_p90_ms<={}", hi + 1.0);
    assert_eq!(
        all_tripped(&sleeps.answer(&["--objective", &above])),
        PASSED
    );
}

#[test]
fn aborts_of_the_scenario_are_judged_in_every_condition() {
    let aborts =
        "policy = \"p\"\n    abort = { after = { uniform = { low = \"1s\", high = \"9s\" } } }";
    let sleeps = SOUND.replace("policy = \"p\"", aborts).replace(
        "floor = \"500ms\"",
        "floor = \"1500ms\"\nwait = \"checked_after_sleep\"",
    );
    let answer = Put::new(&sleeps).answer(&[]);
    assert_eq!(where_tripped(&answer, 2), CONDITIONS);
}

#[test]
fn an_objective_without_a_sample_is_not_met() {
    let sound = Put::new(SOUND);
    let answer = sound.answer(&["--objective", "server.idle:abort_latency_p99_ms<=1000"]);
    assert_eq!(
        all_tripped(&answer),
        [Some(false), Some(true), Some(false), Some(false)]
    );
    let found = &findings(&answer, 2)[0];
    assert_eq!(
        (&found["server"], &found["value"]),
        (&"idle".into(), &Value::Null)
    );
    assert!(
        found["evidence"]
            .as_str()
            .unwrap()
            .contains("undefined in 3 of 3 replications"),
        "{found}"
    );
}

#[test]
fn without_an_objective_on_aborts_the_input_is_wrong() {
    let mute = Put::new(&SOUND.replace("abort_latency_p99_ms", "completion_latency_p99_ms"));
    let output = mute.gate(&[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let told = text(&output.stderr);
    for part in [
        "[[objective]]",
        "metric = \"abort_latency_p99_ms\"",
        "--objective '",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let given = mute.answer(&["--objective", "abort_latency_p99_ms<=1000"]);
    assert_eq!(all_tripped(&given), PASSED);
    for (wrong, told) in [
        (
            "completion_latency_p99_ms<=1",
            "upper bounds on abort latencies only",
        ),
        (
            "abort_latency_p99_ms>=1",
            "upper bounds on abort latencies only",
        ),
        (
            "abort_latency_count<=1",
            "upper bounds on abort latencies only",
        ),
        (
            "abort_latency_p9_ms<=1",
            "did you mean \"abort_latency_p90_ms\"?",
        ),
        (
            "tenant.u:abort_latency_p99_ms<=1",
            "did you mean \"tenant.t\"?",
        ),
        ("abort_latency_p99_ms<=soon", "\"soon\" is no number"),
    ] {
        let output = mute.gate(&["--objective", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(
            text(&output.stderr).contains(told),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn traffic_needs_a_rate_that_bounds_it() {
    let budget = "[budget]\n    fleet = { rate = \"10000/s\", burst = 10 }";
    let with = |other: &str| Put::new(&SOUND.replace(budget, other)).answer(&[]);
    for (budget, told) in [
        ("", "no budget is declared"),
        (
            "[budget]\npollers = { host = 4 }",
            "no rate, only places in flight",
        ),
    ] {
        let answer = with(budget);
        assert_eq!(
            all_tripped(&answer),
            [Some(false), Some(false), Some(true), Some(false)]
        );
        assert_eq!(where_tripped(&answer, 3), ["scenario"]);
        let evidence = findings(&answer, 3)[0]["evidence"].as_str().unwrap();
        assert!(evidence.contains(told), "{evidence}");
    }
    // Rate and burst of each of the ten tenants; of the server.
    for (budget, group, bound) in [
        (
            "[budget]\ntenant = { rate = \"90/min\", burst = 6 }",
            "t",
            70.0,
        ),
        (
            "[budget]\nserver = { rate = \"100/s\", burst = 7 }",
            "s",
            107.0,
        ),
    ] {
        let answer = with(budget);
        assert_eq!(all_tripped(&answer), PASSED, "{budget}");
        let found = findings(&answer, 3).iter();
        let found = found.filter(|f| f["tenant"] == group || f["server"] == group);
        let found: Vec<&Value> = found.collect();
        assert_eq!(found[0]["bound"], bound);
        assert!(
            found[0]["value"].as_f64().unwrap() > 0.3 * bound,
            "{found:?}"
        );
    }
}

#[test]
fn polls_that_send_more_than_they_ask_for_exceed_the_budget() {
    // About 80 polls a second with twice the tasks. A token lets a poll pass, with all of its requests.
    let small = SOUND.replace("10000/s", "100/s");
    assert_eq!(all_tripped(&Put::new(&small).answer(&[])), PASSED);
    let three = small.replace(
        "floor = \"500ms\"",
        "floor = \"500ms\"\nrequests_per_poll = 3",
    );
    let answer = Put::new(&three).answer(&[]);
    assert_eq!(where_tripped(&answer, 3), ["concurrency"]);
    let found = findings(&answer, 3).iter().find(|f| f["tripped"] == true);
    let found = found.unwrap();
    assert_eq!(found["bound"], 110.0);
    assert!(found["value"].as_f64().unwrap() > 200.0, "{found}");
}

#[test]
fn what_is_forgotten_after_a_stop_cannot_be_reconciled() {
    let then = |then: &str| {
        let abort = format!(
            "policy = \"p\"\n    abort = {{ probability = 0, after = \"1s\", then = \"{then}\" }}"
        );
        Put::new(&SOUND.replace("policy = \"p\"", &abort)).answer(&[])
    };
    let answer = then("forget");
    assert_eq!(
        all_tripped(&answer),
        [Some(false), Some(false), Some(false), Some(true)]
    );
    assert_eq!(where_tripped(&answer, 4), ["cancellation"]);
    let found = findings(&answer, 4).iter().find(|f| f["tripped"] == true);
    assert!(found.unwrap()["value"].as_f64().unwrap() > 300.0);
    for manner in ["detach", "cancel"] {
        assert_eq!(all_tripped(&then(manner)), PASSED, "{manner}");
    }
    // A loop that gives up leaves an orphan wherever its tasks last longer.
    let gives_up = SOUND.replace("floor = \"500ms\"", "floor = \"500ms\"\nmax_polls = 3");
    let places = where_tripped(&Put::new(&gives_up).answer(&[]), 4);
    assert!(places.contains(&"normal".to_string()), "{places:?}");
}

#[test]
fn a_hint_that_is_tight_by_itself_trips_though_others_hide_it() {
    let hidden = SOUND
        .replace("delay = \"5ms\"", "delay = \"50ms\"")
        .replace(
            "floor = \"500ms\"",
            "default = \"500ms\"\nrules = [{ class = \"negative\", then = \"use\" }, { class = \"zero\", then = \"default\" }, { min = 0, max = 100, then = \"default\" }]",
        )
        .replace("ceiling = \"2s\"", "ceiling = \"500ms\"");
    let put = Put::new(&hidden);
    let answer = put.answer(&[]);
    assert_eq!(
        all_tripped(&answer),
        [Some(true), Some(false), Some(false), Some(false)]
    );
    assert_eq!(where_tripped(&answer, 1), ["malformed"]);
    let of_malformed = findings(&answer, 1)
        .iter()
        .filter(|f| f["condition"] == "malformed");
    let (bad, good): (Vec<&Value>, Vec<&Value>) = of_malformed.partition(|f| f["tripped"] == true);
    // One of the nine, and not the mixture.
    assert_eq!((bad.len(), good.len()), (1, 9));
    assert_eq!(
        (&bad[0]["value"], &bad[0]["bound"]),
        (&100.0.into(), &200.0.into())
    );
    let shown = text(&put.gate(&[]).stdout);
    let told = "tenant t on server s: every hint -250 ms: median gap 100 ms, below 200 ms";
    assert!(shown.contains(told), "{shown}");
    let mended = hidden.replace("{ class = \"negative\", then = \"use\" }, ", "");
    assert_eq!(all_tripped(&Put::new(&mended).answer(&[])), PASSED);
}

#[test]
fn a_single_task_meets_every_hint() {
    let one = SOUND
        .replace("count = 10", "count = 1")
        .replace("{ poisson = { rate = \"12/min\" } }", "{ at_once = {} }");
    let answer = Put::new(&one).answer(&["--replications", "1"]);
    assert_eq!(all_tripped(&answer), PASSED);
    // The six conditions, and the hints of three of them.
    assert_eq!(findings(&answer, 1).len(), 6 + 3 + 2 + 9);
}

#[test]
fn tasks_that_are_not_polled_twice_pass_by_their_waits_only() {
    // Waits of 8 s and more, and tasks of 10 s: aborted ones are polled once.
    let long = SOUND
        .replace("floor = \"500ms\"", "floor = \"9s\"")
        .replace("ceiling = \"2s\"", "ceiling = \"20s\"");
    let answer = Put::new(&long).answer(&[]);
    let once = |answer: &Value, told: &str| {
        let found = findings(answer, 1).iter();
        let mut found = found.filter(|f| f["evidence"].as_str().unwrap().contains(told));
        found.next().unwrap_or_else(|| panic!("{answer}")).clone()
    };
    let found = once(&answer, "no task was polled twice, median wait");
    assert_eq!(
        (&found["metric"], &found["tripped"]),
        (&"interval_p50_ms".into(), &false.into())
    );
    assert_eq!(tripped(&answer, 1), Some(false));
    // Tasks that end before their first answer is followed by a second poll, with waits that are short.
    let brief = SOUND
        .replace("floor = \"500ms\"", "floor = \"1ms\"\ndefault = \"1ms\"")
        .replace("ceiling = \"2s\"", "ceiling = \"1ms\"")
        .replace("duration = \"10s\"", "duration = \"1ms\"");
    let answer = Put::new(&brief).answer(&[]);
    let found = once(
        &answer,
        "no task was polled twice, median wait 1.0 ms, below 20.0 ms",
    );
    assert_eq!(found["tripped"], Value::Null);
    assert_eq!(tripped(&answer, 1), None);
}

#[test]
fn a_class_that_never_has_a_task_proves_nothing() {
    let never = SOUND.replace(
        "    [policy.p]",
        "    [[tenant]]\n    name = \"late\"\n    arrivals = { offset = { after = \"61s\" } }\n    duration = \"10min\"\n    servers = { s = 1 }\n    policy = \"p\"\n    [policy.p]",
    );
    let answer = Put::new(&never).answer(&[]);
    assert_eq!((tripped(&answer, 1), tripped(&answer, 4)), (None, None));
}

#[test]
fn the_shipped_scenarios_say_what_they_are_shipped_for() {
    let answer_of = |file: &str, arguments: &[&str]| {
        answer(&gate(file, &[arguments, &["--format", "json"]].concat()))
    };
    assert_eq!(all_tripped(&answer_of("models/gated.toml", &[])), PASSED);
    let mixed = answer_of("models/mixed-fleet.toml", &[]);
    assert_eq!(
        all_tripped(&mixed),
        [Some(false), Some(false), Some(true), Some(false)]
    );
    assert_eq!(where_tripped(&mixed, 3), ["scenario"]);

    // The measured loop takes a hint of 0 as it is; the same loop behind an envelope does not.
    let objective = ["--objective", "tenant.sdk:abort_latency_p99_ms<=1000"];
    let sdk = answer_of("models/sdk-1.30.0/hint-0.toml", &objective);
    let tight: Vec<&Value> = findings(&sdk, 1)
        .iter()
        .filter(|f| f["tripped"] == true)
        .collect();
    assert!(where_tripped(&sdk, 1).contains(&"low".to_string()));
    assert!(tight.iter().all(|f| f["tenant"] == "sdk"), "{tight:?}");
    assert_eq!(where_tripped(&sdk, 2), ["cancellation"]);
}

#[test]
fn the_answer_is_the_same_on_any_number_of_threads() {
    let answers = ["1", "2", "8"].map(|threads| {
        gate(
            "models/gated.toml",
            &["--format", "json", "--threads", threads],
        )
        .stdout
    });
    assert!(!answers[0].is_empty() && answers[0] == answers[1] && answers[1] == answers[2]);
}

#[test]
fn the_page_shows_what_the_gate_prints() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/gate.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("```text\n").unwrap();
    let (_, after) = rest.split_once("```\n").unwrap();
    let shown = text(&gate("models/mixed-fleet.toml", &[]).stdout);
    let fresh = format!("{before}```text\n{shown}```\n{after}");
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        fs::write(&path, &fresh).unwrap();
    } else {
        assert!(
            page == fresh,
            "docs/gate.md is out of date: run the tests with POLLPACE_WRITE_DOCS=1"
        );
    }
}
