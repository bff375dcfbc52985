//! Fingerprints of five small fleets: the same bytes on every machine, and from one version to the next.
//!
//! A fingerprint covers the task, number, time of sending, time of being seen and outcome of every poll. They change only on
//! purpose, and then the reason stands in CHANGELOG.md.

use std::sync::atomic::AtomicBool;

use pollpace::{experiment, scenario};

/// The fleet runs as it always did.
fn golden(text: &str, polls_sent: u64, fingerprint: u64) {
    let scenario = match scenario::parse("golden", text, &[]) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}"),
    };
    let results = experiment::run(&scenario, &AtomicBool::new(false), |_| {}).unwrap();
    let sent: u64 = results.replications.iter().map(|r| r.totals.sent).sum();
    let found = experiment::fingerprint(&results.replications);
    assert_eq!(
        (sent, format!("{found:#018x}")),
        (polls_sent, format!("{fingerprint:#018x}"))
    );
}

/// Poisson arrivals, log-normal tasks, a fixed wait and a way of constant length.
#[test]
fn a_plain_fleet() {
    let text = r#"
        [run]
        seed = 1
        horizon = "60s"
        replications = 2
        [[server]]
        name = "store"
        delay = "20ms"
        [[tenant]]
        name = "agents"
        count = 3
        arrivals = { poisson = { rate = "0.5/s" } }
        duration = { lognormal = { median = "8s", sigma = 1.0 } }
        servers = { store = 1 }
        policy = "steady"
        [policy.steady]
        default = "1s"
    "#;
    golden(text, 2413, 0xfd29_6332_da2c_86f5);
}

/// Hints of every class, through an envelope with jitter and through a host that trusts what it reads.
#[test]
fn bad_hints() {
    let text = r#"
        [run]
        seed = 2
        horizon = "30s"
        replications = 2
        [[server]]
        name = "careless"
        hint = "bad"
        delay = { exponential = { mean = "10ms" } }
        [hint.bad]
        drawn = "per_answer"
        mix = [
          { weight = 9, ms = { lognormal = { median = 1500, sigma = 0.8 } } },
          { absent = true }, { null = true }, { value = 0 }, { value = -250 }, { value = 1.5 }, { value = nan },
          { value = "700" }, { value = "soon" }, { value = 2147483648 }, { value = 1e300 },
        ]
        [[tenant]]
        name = "careful"
        arrivals = { at_once = { tasks = 20 } }
        duration = { uniform = { low = "5s", high = "25s" } }
        servers = { careless = 1 }
        policy = "envelope"
        [[tenant]]
        name = "trusting"
        arrivals = { at_once = { tasks = 20 } }
        duration = { uniform = { low = "5s", high = "25s" } }
        servers = { careless = 1 }
        policy = "raw"
        [policy.envelope]
        floor = "500ms"
        ceiling = "5s"
        jitter = { proportional = 0.2 }
        absent = "keep_last"
        [policy.raw]
        rules = [{ class = "text", then = "parse" }, { class = "null", then = "error" }, { then = "wrap_i32_timer" }]
    "#;
    golden(text, 741, 0xc258_aaf0_d893_6b3d);
}

/// Servers that execute few tasks and refuse polls, aborts that cancel, waits that grow after errors.
#[test]
fn scarce_servers() {
    let text = r#"
        [run]
        seed = 3
        horizon = "30s"
        replications = 2
        [[server]]
        name = "small"
        count = 2
        executes = 3
        tasks_get = { workers = 2, service = { exponential = { mean = "60ms" } }, queue = 1 }
        delay = "5ms"
        [[tenant]]
        name = "eager"
        count = 10
        arrivals = { periodic = { every = "6s", phase = { uniform = { low = "0s", high = "6s" } } } }
        duration = { exponential = { mean = "3s" } }
        servers = { small = 1 }
        ends = { completed = 8, failed = 1, cancelled = 1 }
        abort = { probability = 0.3, after = { exponential = { mean = "4s" } }, request = "waits", then = "cancel" }
        policy = "eager"
        [policy.eager]
        default = "300ms"
        first_poll = "at_once"
        error_backoff = { initial = "200ms", cap = "3s" }
        backoff = { additive = { step = "50ms", cap = "2s" } }
        backoff_reset = "on_change_or_error"
        wait = { sliced = "40ms" }
        give_up_after = "20s"
    "#;
    golden(text, 632, 0xecaf_747d_37d7_ccfb);
}

/// A closed loop that ramps up to the hint, a coarse timer, a fixed rate, and the result fetched.
#[test]
fn closed_loops() {
    let text = r#"
        [run]
        seed = 4
        horizon = "40s"
        warm_up = "10s"
        replications = 2
        [[server]]
        name = "open"
        hint = "age"
        tasks_get = { service = "2ms" }
        delay = { uniform = { low = "1ms", high = "9ms" } }
        [hint.age]
        drawn = "by_age"
        steps = [{ from = "0s", value = 250 }, { from = "5s", value = 2000 }]
        [[tenant]]
        name = "ramping"
        count = 4
        arrivals = { closed_loop = { tasks = 2, think = { exponential = { mean = "700ms" } } } }
        duration = { weibull = { scale = "4s", shape = 0.8 } }
        servers = { open = 1 }
        policy = "ramp"
        [[tenant]]
        name = "ticking"
        arrivals = { closed_loop = { tasks = 3 } }
        duration = "3200ms"
        servers = { open = 1 }
        policy = "ticks"
        [policy.ramp]
        role = "ramp_ceiling"
        backoff = { geometric = { initial = "20ms", factor = 2 } }
        timer = { quantum = "15ms", minimum = "1ms", overhead = "2ms" }
        at_end = "tasks/result"
        [policy.ticks]
        role = "ignored"
        default = "400ms"
        pace = "fixed_rate"
        jitter = "equal"
    "#;
    golden(text, 2833, 0x8824_dcbf_cb92_a1e6);
}

/// Bursts, hints by load and by progress, aborts of every manner, no drain.
#[test]
fn bursts_and_aborts() {
    let tenant = |name: &str, wait: &str| {
        format!(
            r#"
            [[tenant]]
            name = "{name}"
            count = 2
            arrivals = {{ on_off = {{ rate = "2/s", on = "2s", off = {{ exponential = {{ mean = "3s" }} }} }} }}
            duration = {{ gamma = {{ mean = "6s", cv = 1.3 }} }}
            servers = {{ loaded = 2, progressing = 1 }}
            creation_delay = "30ms"
            abort = {{ probability = 0.5, after = {{ uniform = {{ low = "1s", high = "9s" }} }}, shutdown_at = "25s" }}
            policy = "{name}"
            [policy.{name}]
            jitter = {{ decorrelated = 3 }}
            ceiling = "4s"
            wait = {wait}
            "#
        )
    };
    let text = format!(
        r#"
        [run]
        seed = 5
        horizon = "30s"
        drain = "none"
        replications = 2
        [[server]]
        name = "loaded"
        hint = "load"
        delay = "15ms"
        tasks_get = {{ service = "3ms" }}
        [[server]]
        name = "progressing"
        hint = "progress"
        delay = "15ms"
        [hint.load]
        drawn = "by_load"
        steps = [{{ from = 0, value = 300 }}, {{ from = 4, value = 900 }}]
        [hint.progress]
        drawn = "by_progress"
        steps = [{{ from = 0, value = 1000 }}, {{ from = 0.8, value = 200 }}]
        {}{}{}{}"#,
        tenant("interruptible", "\"interruptible\""),
        tenant("checking", "\"checked_after_sleep\""),
        tenant("slicing", "{ sliced = \"250ms\" }"),
        tenant("deaf", "\"ignored\""),
    );
    golden(&text, 649, 0x360f_45a6_188a_bf23);
}
