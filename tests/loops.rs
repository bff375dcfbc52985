//! What loops of real hosts do beyond a wait: one timer for many tasks, batches, leases, questions, deadlines that cut or refuse, cancels.

use std::sync::atomic::AtomicBool;

use pollpace::experiment::{self, Results};
use pollpace::scenario;

/// Runs one tenant `t` under policy `p`; the tables' own lines are given.
fn run(server: &str, tenant: &str, policy: &str) -> Results {
    let text = format!(
        "[run]\nhorizon = \"20s\"\nreplications = 1\n[[server]]\nname = \"s\"\n{server}\n[[tenant]]\nname = \"t\"\nservers = {{ s = 1 }}\npolicy = \"p\"\n{tenant}\n[policy.p]\n{policy}\n"
    );
    let loaded = scenario::parse("loops", &text, &[]).unwrap_or_else(|e| panic!("{e}"));
    experiment::run(&loaded.scenario, &AtomicBool::new(false), |_| {}).unwrap()
}

/// A metric of the fleet.
#[track_caller]
fn value(results: &Results, metric: &str) -> f64 {
    let estimate = results.estimate("fleet", metric);
    let mean = estimate.unwrap_or_else(|| panic!("no {metric}")).mean;
    mean.unwrap_or_else(|| panic!("{metric} is undefined"))
}

#[test]
fn a_batch_is_one_request_and_tells_every_task_its_state() {
    let tasks = "arrivals = { at_once = { tasks = 100 } }\nduration = { uniform = { low = \"0s\", high = \"15s\" } }";
    let server = "delay = \"50ms\"";
    let common = "default = \"2s\"\nschedule = \"earliest_due\"";
    let single = run(server, tasks, common);
    let batched = run(server, tasks, &format!("{common}\nbatch = 50"));
    // All tasks tick together: every 2.1 s, until the last has ended.
    let ticks = value(&single, "polls_per_task_max");
    let requests = value(&batched, "requests_tasks_get");
    assert!(
        requests <= 2.0 * ticks,
        "{requests} requests in {ticks} ticks"
    );
    assert!(requests >= ticks, "{requests} requests in {ticks} ticks");
    for same in [
        "polls_per_task_mean",
        "completion_latency_mean_ms",
        "completion_latency_max_ms",
        "tasks_completed",
    ] {
        assert_eq!(value(&single, same), value(&batched, same), "{same}");
    }
}

#[test]
fn who_rides_on_a_refused_request_is_refused_too() {
    let tasks = "arrivals = { at_once = { tasks = 10 } }\nduration = \"5s\"";
    let server = "delay = \"50ms\"\nlimits = [{ per = \"server\", quota = { requests = 1, length = \"4s\" } }]";
    let policy = "default = \"1s\"\nschedule = \"earliest_due\"\nbatch = 10";
    let results = run(server, tasks, policy);
    // Sent at 1, 2.1, 3.2, 4.3, 5.4, …: the second and the third are over the quota, the one at 5.4 s too; that of 8.7 s sees the end.
    assert_eq!(value(&results, "tasks_completed"), 10.0);
    assert_eq!(
        value(&results, "polls_per_task_min"),
        value(&results, "polls_per_task_max")
    );
    let sent = value(&results, "requests_tasks_get");
    assert_eq!(
        sent,
        value(&results, "polls_per_task_mean"),
        "one request for all ten"
    );
    assert!(value(&results, "tasks_get_refused") >= 3.0);
}

#[test]
fn an_abort_of_the_carrier_does_not_take_the_others_with_it() {
    let tasks = "arrivals = { at_once = { tasks = 10 } }\nduration = \"5s\"\nabort = { probability = 0.5, after = \"1030ms\" }";
    let policy = "default = \"1s\"\nschedule = \"earliest_due\"\nbatch = 10";
    let results = run("delay = \"50ms\"", tasks, policy);
    let aborts = value(&results, "aborts");
    assert!((1.0..10.0).contains(&aborts), "{aborts}");
    assert_eq!(value(&results, "tasks_completed"), 10.0 - aborts);
    assert_eq!(value(&results, "abort_latency_max_ms"), 0.0);
}

#[test]
fn a_lease_keeps_doubled_loops_from_doubling_the_load() {
    let tenant =
        |more: &str| format!("arrivals = {{ at_once = {{}} }}\nduration = \"18s\"\n{more}");
    // Polls are in flight from 0, 1.2, 2.4, … for 0.2 s.
    let doubles = "reconnect = { at = [\"1300ms\"], duplicates = true }";
    let policy = "default = \"1s\"\nfirst_poll = \"at_once\"";
    let server = "delay = \"100ms\"";
    let sent =
        |tenant: &str, policy: &str| value(&run(server, tenant, policy), "requests_tasks_get");
    let alone = sent(&tenant(""), policy);
    assert!(sent(&tenant(doubles), policy) > 1.8 * alone);
    let leased = sent(&tenant(doubles), &format!("{policy}\nlease = true"));
    assert_eq!(leased, alone);
}

#[test]
fn one_request_in_flight_paces_all_tasks_of_a_host() {
    let tasks = "arrivals = { at_once = { tasks = 10 } }\nduration = \"1h\"";
    let rate = |policy: &str| {
        let text = format!("default = \"100ms\"\n{policy}\ngive_up_after = \"20s\"");
        value(
            &run("delay = \"50ms\"", tasks, &text),
            "tasks_get_rate_mean_per_s",
        )
    };
    // Each task: one poll in 200 ms. In turn: one poll of all in 100 ms.
    assert!((rate("") - 50.0).abs() < 1.0);
    assert!((rate("in_flight = 1") - 10.0).abs() < 0.2);
    assert!((rate("in_flight = 3") - 30.0).abs() < 0.6);
}

#[test]
fn a_question_is_polled_away_at_once_or_not_at_all() {
    let tenant = "arrivals = { at_once = {} }\nduration = \"8s\"\ninput = { after = \"2500ms\", answer = \"1s\" }";
    let outcome = |policy: &str| {
        let text = format!("default = \"2s\"\n{policy}");
        let results = run("delay = \"50ms\"", tenant, &text);
        let polls = value(&results, "polls_per_task_max");
        (polls, value(&results, "tasks_completed"))
    };
    // Polls at 2 and 4.1 s, where the question is seen (4.2 s); it is answered at 5.25 s, and the task ends at 10.75 s.
    assert_eq!(outcome("on_question = \"polls_on\""), (6.0, 1.0));
    // One more at once, at 4.2 s, and then at 6.3, 8.4, 10.5 and 12.6 s.
    assert_eq!(outcome("on_question = \"polls_once_more\""), (7.0, 1.0));
    // One each 0.1 s, from 4.2 s until the answer has been read (5.25 s), then at 7.3, 9.4, 11.5 s.
    let (polls, done) = outcome("on_question = \"polls_at_once\"");
    assert!((15.0..=18.0).contains(&polls), "{polls}");
    assert_eq!(done, 1.0);
    // The result is asked for at 4.2 s and told when it is there.
    let text = "default = \"2s\"\non_question = \"awaits_result\"";
    let results = run("delay = \"50ms\"", tenant, text);
    assert_eq!(value(&results, "polls_per_task_max"), 3.0);
    assert_eq!(
        value(&results, "completion_latency_max_ms"),
        50.0,
        "the way back"
    );
    assert_eq!(outcome("on_question = \"ends\""), (2.0, 0.0));
}

#[test]
fn questions_come_one_after_another_and_some_hosts_have_enough() {
    let tenant = "arrivals = { at_once = {} }\nduration = \"8s\"\ninput = { questions = 3, after = \"1500ms\", answer = \"500ms\" }";
    let outcome = |policy: &str| {
        let text = format!("default = \"500ms\"\n{policy}");
        let results = run("", tenant, &text);
        let of = |metric: &str| value(&results, metric);
        (of("requests_tasks_update"), of("tasks_completed"))
    };
    assert_eq!(outcome(""), (3.0, 1.0));
    assert_eq!(outcome("max_questions = 3"), (3.0, 1.0));
    assert_eq!(outcome("max_questions = 2").1, 0.0);
    // The question stands for two answers: 500 ms.
    assert_eq!(outcome("stuck_after = 2"), (3.0, 1.0));
    let never = "arrivals = { at_once = {} }\nduration = \"8s\"\ninput = { after = \"1500ms\", answer = \"1h\" }";
    let stuck = run(
        "",
        never,
        "default = \"500ms\"\nstuck_after = 5\ncancels = [\"question\"]",
    );
    // Two polls before, one that shows the question, and five that show it again.
    assert_eq!(value(&stuck, "polls_per_task_max"), 8.0);
    assert_eq!(value(&stuck, "requests_tasks_cancel"), 1.0);
    assert_eq!(value(&stuck, "orphans"), 0.0);
}

#[test]
fn the_last_wait_can_see_an_end_that_others_miss() {
    // Polls at 2, 4, 6, 8; the loop ends at 9 s; the task at 8.5 s.
    let tenant = "arrivals = { at_once = {} }\nduration = \"8500ms\"";
    let outcome = |more: &str| {
        let policy = format!("default = \"2s\"\ngive_up_after = \"9s\"\n{more}");
        let results = run("", tenant, &policy);
        let of = |metric: &str| value(&results, metric);
        (
            of("polls_per_task_max"),
            of("tasks_completed"),
            of("orphans"),
            of("requests_tasks_cancel"),
        )
    };
    assert_eq!(outcome(""), (4.0, 0.0, 1.0, 0.0));
    assert_eq!(outcome("last_wait = \"refused\""), (4.0, 0.0, 1.0, 0.0));
    assert_eq!(outcome("last_wait = \"trimmed\""), (5.0, 1.0, 0.0, 0.0));
    assert_eq!(
        outcome("last_wait = { trimmed_less = \"200ms\" }"),
        (5.0, 1.0, 0.0, 0.0)
    );
    assert_eq!(
        outcome("last_wait = { trimmed_less = \"1500ms\" }"),
        (4.0, 0.0, 1.0, 0.0)
    );
    // Who cancels leaves nothing behind. (At 9 s the task has ended by itself.)
    assert_eq!(outcome("cancels = [\"deadline\"]"), (4.0, 0.0, 0.0, 1.0));
}

#[test]
fn a_loop_can_end_with_the_ttl() {
    let tenant = "arrivals = { at_once = {} }\nduration = \"1h\"";
    let results = run(
        "ttl = \"5s\"",
        tenant,
        "default = \"2s\"\nends_at_ttl = true",
    );
    assert_eq!(value(&results, "tasks_gave_up"), 1.0);
    assert_eq!(value(&results, "polls_per_task_max"), 2.0);
    // Else it learns it from the server.
    let results = run("ttl = \"5s\"", tenant, "default = \"2s\"");
    assert_eq!(value(&results, "tasks_expired"), 1.0);
    assert_eq!(value(&results, "polls_per_task_max"), 3.0);
}

#[test]
fn a_timeout_need_not_be_an_error() {
    let tenant = "arrivals = { at_once = {} }\nduration = \"10s\"";
    // The server is slow for the first polls: each takes 3 s, and is given up after 1 s.
    let server = "tasks_get = { workers = 100, service = \"10ms\" }\nslow = [{ from = \"0s\", length = \"4s\", factor = 300 }]";
    let outcome = |policy: &str| {
        let text = format!("default = \"1s\"\ntimeout = \"1s\"\non_error = \"end\"\n{policy}");
        value(&run(server, tenant, &text), "tasks_completed")
    };
    assert_eq!(outcome(""), 0.0);
    assert_eq!(outcome("on_timeout = \"polls_on\""), 1.0);
}

#[test]
fn what_the_tenant_leaves_open_its_policy_says() {
    let tenant = |more: &str| {
        format!(
            "arrivals = {{ at_once = {{ tasks = 4 }} }}\nduration = \"1h\"\nabort = {{ after = \"3s\"{more} }}"
        )
    };
    let policy =
        "default = \"1s\"\non_abort = { then = \"cancel\", notifications = \"per_request\" }";
    let of = |more: &str, metric: &str| value(&run("", &tenant(more), policy), metric);
    assert_eq!(of("", "requests_tasks_cancel"), 4.0);
    // Three polls and the creation, of each.
    assert_eq!(of("", "requests_notifications_cancelled"), 16.0);
    assert_eq!(of(", then = \"detach\"", "requests_tasks_cancel"), 0.0);
    assert_eq!(
        of(
            ", notifications = \"none\"",
            "requests_notifications_cancelled"
        ),
        0.0
    );
}

#[test]
fn hints_in_turn_are_not_drawn() {
    let tenant = "arrivals = { at_once = { tasks = 10 } }\nduration = \"18s\"";
    let server = "hint = \"h\"\n[hint.h]\ndrawn = \"in_turn\"\nmix = [{ weight = 1, value = 1000 }, { weight = 4, absent = true }]";
    let results = run(server, tenant, "default = \"6s\"");
    // Two tasks take 18 polls, eight take 3.
    assert_eq!(
        value(&results, "requests_tasks_get"),
        2.0 * 18.0 + 8.0 * 3.0
    );
}

#[test]
fn a_question_that_is_left_open_holds_nothing_up() {
    // One task at a time: the second runs when the first has ended, though nobody answers it.
    let tenant = "arrivals = { at_once = { tasks = 3 } }\nduration = \"4s\"\ninput = { after = \"1500ms\", answer = \"1s\" }";
    let results = run(
        "executes = 1",
        tenant,
        "default = \"1s\"\non_question = \"ends\"",
    );
    assert_eq!(value(&results, "tasks_asked"), 3.0);
    assert_eq!(value(&results, "tasks_completed"), 0.0);
}

#[test]
fn a_request_for_the_result_brings_every_question_and_the_result() {
    let tenant = "arrivals = { at_once = {} }\nduration = \"8s\"\ninput = { questions = 3, after = \"1500ms\", answer = \"500ms\" }";
    let policy = "default = \"1s\"\non_question = \"awaits_result\"\nat_end = \"tasks/result\"";
    let results = run("delay = \"50ms\"", tenant, policy);
    assert_eq!(value(&results, "requests_tasks_update"), 3.0);
    assert_eq!(value(&results, "tasks_completed"), 1.0);
    assert_eq!(
        value(&results, "requests_tasks_result"),
        0.0,
        "it has it already"
    );
    // Updates that are refused are sent again.
    let limited = "delay = \"50ms\"\nlimits = [{ per = \"server\", quota = { requests = 2, length = \"4s\" } }]";
    let results = run(limited, tenant, policy);
    assert_eq!(value(&results, "tasks_completed"), 1.0);
    assert!(value(&results, "requests_tasks_update") > 3.0);
}

#[test]
fn a_deadline_ends_a_held_request() {
    let tenant = "arrivals = { at_once = {} }\nduration = \"1h\"";
    let results = run(
        "",
        tenant,
        "default = \"1s\"\nlong_poll = \"30s\"\ngive_up_after = \"10s\"",
    );
    assert_eq!(value(&results, "tasks_gave_up"), 1.0);
    // Ten of the twenty seconds.
    assert_eq!(value(&results, "active_tasks_mean"), 0.5);
}

#[test]
fn riders_time_out_retry_and_start_again_with_their_carrier() {
    let tasks = "arrivals = { at_once = { tasks = 20 } }\nduration = \"10s\"";
    let policy =
        |more: &str| format!("default = \"1s\"\nschedule = \"earliest_due\"\nbatch = 20\n{more}");
    // Given up before it arrives: nobody hangs.
    let results = run(
        "delay = \"300ms\"",
        tasks,
        &policy("timeout = \"200ms\"\ngive_up_after = \"15s\""),
    );
    assert_eq!(value(&results, "tasks_gave_up"), 20.0);
    assert_eq!(
        value(&results, "polls_per_task_min"),
        value(&results, "polls_per_task_max")
    );
    assert!(value(&results, "polls_per_task_min") > 10.0);
    // A request that fails is sent again once, for all.
    let down =
        "delay = \"50ms\"\noutage = { windows = [{ from = \"1500ms\", length = \"700ms\" }] }";
    let retries = "retries = { attempts = 2, wait = \"300ms\" }";
    let results = run(down, tasks, &policy(retries));
    assert_eq!(value(&results, "tasks_get_retries"), 1.0);
    assert_eq!(value(&results, "tasks_completed"), 20.0);
    // A host that starts again in mid flight sends one request more, not twenty.
    let restarted = format!("{tasks}\nreconnect = {{ at = [\"1050ms\"] }}");
    let usual = value(
        &run("delay = \"100ms\"", tasks, &policy("")),
        "requests_tasks_get",
    );
    let after = value(
        &run("delay = \"100ms\"", &restarted, &policy("")),
        "requests_tasks_get",
    );
    assert!(after <= usual + 21.0, "{after}, usually {usual}");
    // A shutdown sends nothing more.
    let shut = format!(
        "{tasks}\nabort = {{ shutdown_at = \"1050ms\", then = \"cancel\", cancel_bound = \"1s\" }}"
    );
    let results = run("delay = \"100ms\"", &shut, &policy(""));
    assert_eq!(value(&results, "requests_tasks_get"), 1.0);
}

#[test]
fn doubles_keep_to_the_connection_of_their_host() {
    let tenant = "arrivals = { at_once = { tasks = 4 } }\nduration = \"18s\"\nreconnect = { at = [\"1s\", \"2s\"], duplicates = true }";
    let results = run(
        "delay = \"50ms\"",
        tenant,
        "default = \"100ms\"\nin_flight = 1",
    );
    // One round trip of 100 ms after the other.
    assert!(value(&results, "tasks_get_rate_mean_per_s") <= 10.1);
}

#[test]
fn the_timer_of_a_loop_that_has_gone_polls_nobody() {
    let tenant = "arrivals = { at_once = { tasks = 2 } }\nduration = \"19500ms\"\nabort = { probability = 0.5, after = \"5s\" }";
    let server = "hint = \"h\"\n[hint.h]\ndrawn = \"in_turn\"\nmix = [{ weight = 1, value = 10000 }, { weight = 1, value = 15000 }]";
    let results = run(server, tenant, "schedule = \"least_interval\"");
    // Whichever was aborted: the other is polled at its own times, unless both live.
    let (aborts, sent) = (
        value(&results, "aborts"),
        value(&results, "requests_tasks_get"),
    );
    assert_eq!(aborts, 1.0, "the seed aborts one of two");
    assert_eq!(sent, 1.0, "at 10 s or at 15 s");
}
