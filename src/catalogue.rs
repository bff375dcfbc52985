//! The names of the metrics: the vocabulary of result columns and objectives.
//!
//! Names are `<what>_<statistic>_<unit>`. Every metric has a row for every group; one that has no sample is undefined.

use std::sync::LazyLock;

/// A quantity of which every run sees many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The stem of its metrics' names.
    pub name: &'static str,
    /// The unit's suffix (`_ms`), empty where it is a number.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// The statistics of a distribution, in the order of the rows.
pub const STATISTICS: [&str; 8] = ["count", "mean", "p50", "p90", "p95", "p99", "min", "max"];

/// The distributions.
pub const DISTRIBUTIONS: [Distribution; 13] = [
    Distribution {
        name: "completion_latency",
        unit: "_ms",
        doc: "terminal state at the server until the terminal `tasks/get` answer is seen",
    },
    Distribution {
        name: "result_latency",
        unit: "_ms",
        doc: "terminal state at the server until the host holds the result: the answer to `tasks/result` where it is called, the terminal answer where the result is inside it",
    },
    Distribution {
        name: "abort_latency",
        unit: "_ms",
        doc: "abort signal until control returns to the caller",
    },
    Distribution {
        name: "gap",
        unit: "_ms",
        doc: "time between two sends of one task",
    },
    Distribution {
        name: "effective_interval",
        unit: "_ms",
        doc: "wait chosen by the policy, first waits included, the timer's overhead and waits without end not",
    },
    Distribution {
        name: "store_wait",
        unit: "_ms",
        doc: "time of a `tasks/get` in the queue of the task store",
    },
    Distribution {
        name: "store_service",
        unit: "_ms",
        doc: "service time of a `tasks/get`",
    },
    Distribution {
        name: "store_latency",
        unit: "_ms",
        doc: "wait and service of a `tasks/get`",
    },
    Distribution {
        name: "queue_length",
        unit: "",
        doc: "requests waiting that an arriving request finds",
    },
    Distribution {
        name: "polls_per_task",
        unit: "",
        doc: "polls of one task whose loop has ended, transport retries included",
    },
    Distribution {
        name: "unchanged_streak",
        unit: "",
        doc: "consecutive polls of a task, whose loop has ended, that brought no change: the status as it was, or an error",
    },
    Distribution {
        name: "leaked_polls_per_abort",
        unit: "",
        doc: "polls sent after the abort, per aborted task",
    },
    Distribution {
        name: "budget_delay",
        unit: "_ms",
        doc: "time that a `tasks/get` waits for its budgets, those that pass at once included; empty without a budget",
    },
];

/// Metrics of one value per run, with what they are.
pub const SCALARS: [(&str, &str); 97] = [
    (
        "tasks_get_rate_mean_per_s",
        "sends of `tasks/get` in [warm-up, horizon) ÷ its length",
    ),
    (
        "tasks_get_rate_1s_p95_per_s",
        "95 % quantile of the 1 s windows",
    ),
    (
        "tasks_get_rate_1s_p999_per_s",
        "99.9 % quantile of the 1 s windows",
    ),
    ("tasks_get_rate_1s_peak_per_s", "largest of the 1 s windows"),
    (
        "tasks_get_rate_100ms_p95_per_s",
        "95 % quantile of the 100 ms windows",
    ),
    (
        "tasks_get_rate_100ms_p999_per_s",
        "99.9 % quantile of the 100 ms windows",
    ),
    (
        "tasks_get_rate_100ms_peak_per_s",
        "largest of the 100 ms windows",
    ),
    (
        "tasks_get_rate_1s_dispersion",
        "index of dispersion of the 1 s windows: variance ÷ mean of their counts (1 for a Poisson stream)",
    ),
    (
        "tasks_get_rate_100ms_dispersion",
        "index of dispersion of the 100 ms windows",
    ),
    (
        "polls_per_active_task_per_s",
        "sends ÷ task-seconds from creation to settlement",
    ),
    ("requests", "requests of all methods"),
    ("requests_tools_call", "requests that create a task"),
    ("requests_tasks_get", "`tasks/get` sent"),
    ("requests_tasks_result", "`tasks/result` sent"),
    ("requests_tasks_cancel", "`tasks/cancel` sent"),
    ("requests_tasks_update", "`tasks/update` sent"),
    (
        "requests_notifications_cancelled",
        "`notifications/cancelled` sent after aborts",
    ),
    (
        "tasks_get_accepted",
        "`tasks/get` that the server took while their host still waited",
    ),
    (
        "tasks_get_refused",
        "`tasks/get` refused by the server, for whatever reason",
    ),
    (
        "tasks_get_refused_503",
        "… with 503, because the queue was full or the server down",
    ),
    (
        "tasks_get_refused_429",
        "… with 429, because of a rate limit",
    ),
    (
        "tasks_get_slow_down",
        "… with `slow_down`, because they came sooner after the last poll than the server takes",
    ),
    (
        "tasks_get_unknown_task",
        "`tasks/get` answered with -32602, because the task was deleted or forgotten",
    ),
    (
        "tasks_get_broken",
        "`tasks/get` that a server had when it went down",
    ),
    (
        "tasks_get_timed_out",
        "`tasks/get` that their host gave up for want of an answer",
    ),
    (
        "tasks_get_lost",
        "`tasks/get` without an answer, where no timeout ended them",
    ),
    (
        "tasks_get_retries",
        "`tasks/get` that the transport sent again, unseen by the policy",
    ),
    ("tasks_get_seen", "answers to `tasks/get` that a host saw"),
    (
        "tasks_get_unseen",
        "`tasks/get` whose answer no host saw: discarded after an abort, timed out, lost, or still in flight when the run stopped",
    ),
    (
        "useless_share",
        "share of the seen answers that brought no change: the status as it was, or an error",
    ),
    ("leaked_polls", "polls sent after an abort"),
    ("hints_absent", "answers without a hint"),
    ("hints_null", "hints that are null"),
    ("hints_zero", "hints of zero"),
    ("hints_negative", "hints below zero"),
    ("hints_fractional", "hints that are not whole"),
    ("hints_non_finite", "hints that are NaN or infinite"),
    ("hints_text", "hints that are strings"),
    ("hints_beyond_i32_ms", "hints above 2^31 - 1 ms"),
    ("hints_beyond_i64_ns", "hints above 2^63 - 1 ns"),
    (
        "hints_sane",
        "hints that are whole, positive and not beyond",
    ),
    (
        "wait_share_hint",
        "share of waits whose last change was: none, the hint as it was",
    ),
    ("wait_share_default", "… the default, for want of a hint"),
    ("wait_share_bad_hint", "… a rule that replaced a bad hint"),
    ("wait_share_floor", "… the floor"),
    ("wait_share_ceiling", "… the ceiling"),
    ("wait_share_backoff", "… backoff on unchanged status"),
    ("wait_share_error_backoff", "… backoff on errors"),
    ("wait_share_jitter", "… jitter"),
    ("wait_share_slow_down", "… the server's `slow_down`"),
    ("wait_share_retry_after", "… `Retry-After`"),
    ("wait_share_timer", "… the host's timer"),
    (
        "wait_share_first_poll",
        "… a first poll with a time of its own (a first poll at once is no wait)",
    ),
    (
        "wait_touched_default",
        "share of waits that began with the default, for want of a hint",
    ),
    (
        "wait_touched_bad_hint",
        "share of waits that began with what a rule put in place of a bad hint",
    ),
    (
        "wait_touched_floor",
        "share of waits that the floor changed at any stage",
    ),
    (
        "wait_touched_ceiling",
        "share of waits that the ceiling changed at any stage",
    ),
    (
        "wait_touched_backoff",
        "share of waits that the backoff changed at any stage",
    ),
    (
        "utilisation",
        "busy worker time ÷ worker time of the task stores, in [warm-up, horizon)",
    ),
    (
        "queue_length_time_mean",
        "requests waiting, averaged over time in [warm-up, horizon)",
    ),
    (
        "held_connections_mean",
        "long polls held by the servers, averaged over time in [warm-up, horizon)",
    ),
    (
        "held_connections_peak",
        "most long polls held at once (for the fleet: the sum over the server classes)",
    ),
    (
        "store_reads",
        "reads of the task store by loops that run on the server",
    ),
    ("store_reads_leaked", "… after the abort"),
    (
        "store_read_rate_mean_per_s",
        "store reads in [warm-up, horizon) ÷ its length",
    ),
    (
        "leaked_loops_mean",
        "loops that run on after their abort, averaged over time in [warm-up, horizon)",
    ),
    (
        "notifications",
        "notifications of changed statuses that came to a host",
    ),
    (
        "budget_skipped",
        "`tasks/get` left out because a budget was spent",
    ),
    (
        "fairness_jain",
        "Jain's index over the tenants with a task, of the polls that each sent in [warm-up, horizon) by its weight: 1 where all have the same, 1/n where one has everything",
    ),
    ("breaker_opened", "times that a closed breaker opened"),
    (
        "breaker_open_s",
        "time that breakers were open or half open, summed over the breakers",
    ),
    (
        "breaker_probes",
        "`tasks/get` that a half-open breaker let try the server",
    ),
    ("breaker_held_back", "`tasks/get` that a breaker held back"),
    (
        "host_utilisation",
        "busy time ÷ time of the event loops of hosts with a capacity",
    ),
    ("host_wake_ups", "wake-ups of these event loops"),
    (
        "reconnects",
        "hosts that were restarted or lost their connection",
    ),
    ("tasks", "tasks created in [warm-up, horizon)"),
    ("tasks_completed", "tasks whose host saw them completed"),
    ("tasks_failed", "tasks whose host saw them failed"),
    (
        "tasks_cancelled",
        "tasks whose host saw them cancelled by the server",
    ),
    ("tasks_detached", "aborted tasks whose id was kept"),
    (
        "tasks_cancel_sent",
        "aborted tasks for which `tasks/cancel` was sent",
    ),
    ("tasks_forgotten", "aborted tasks whose id was lost"),
    (
        "tasks_gave_up",
        "tasks whose loop ended by its deadline or its number of polls",
    ),
    (
        "tasks_loop_error",
        "tasks whose loop ended by an error or a rejected answer",
    ),
    (
        "tasks_expired",
        "tasks whose loop ended because the server did not know them",
    ),
    (
        "tasks_never_polled_again",
        "tasks whose loop waits for ever",
    ),
    (
        "tasks_running",
        "tasks whose loop was still polling when the run stopped",
    ),
    (
        "tasks_unseen",
        "tasks that ended at the server and whose end no host that still wanted it saw",
    ),
    (
        "tasks_asked",
        "tasks whose host saw them ask for input (`input_required`)",
    ),
    (
        "orphans",
        "tasks whose end no one learns: those given up, ended by an error, never polled again or forgotten, and those whose `tasks/cancel` was refused",
    ),
    (
        "tasks_detected_share",
        "share of the tasks, those aborted left out, whose end was seen",
    ),
    ("aborts", "tasks aborted before their end was seen"),
    (
        "aborts_unsettled",
        "aborted tasks whose control had not returned when the run stopped",
    ),
    (
        "active_tasks_mean",
        "tasks between creation and settlement, averaged over time in [warm-up, horizon)",
    ),
    ("tokens", "tokens that a model burnt on polls"),
    ("cost", "price of requests and tokens"),
];

/// A metric of the fleet on the day that every server suggests the same, the worst that it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstHint {
    /// Its name.
    pub name: &'static str,
    /// The metric that it is, with other hints.
    pub of: &'static str,
    /// Which hints.
    pub extreme: Extreme,
}

/// Hints that are all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// All are 0.
    Zero,
    /// All are 2^31 - 1 ms, the largest that is sane.
    Huge,
}

/// What is told of the worst hints: load where they are least, latencies where they are largest. It costs runs of its own, so these metrics are defined
/// only where an objective asks for one, and at a recommended cell.
pub const WORST_HINTS: [WorstHint; 4] = [
    WorstHint {
        name: "worst_hint_tasks_get_rate_mean_per_s",
        of: "tasks_get_rate_mean_per_s",
        extreme: Extreme::Zero,
    },
    WorstHint {
        name: "worst_hint_tasks_get_rate_1s_peak_per_s",
        of: "tasks_get_rate_1s_peak_per_s",
        extreme: Extreme::Zero,
    },
    WorstHint {
        name: "worst_hint_completion_latency_p99_ms",
        of: "completion_latency_p99_ms",
        extreme: Extreme::Huge,
    },
    WorstHint {
        name: "worst_hint_abort_latency_p99_ms",
        of: "abort_latency_p99_ms",
        extreme: Extreme::Huge,
    },
];

/// Is it one of the [`WORST_HINTS`]?
pub fn is_worst_hint(metric: &str) -> bool {
    WORST_HINTS.iter().any(|w| w.name == metric)
}

/// Every metric's name, in the order of the rows: scalars, distributions, worst hints.
pub fn names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let distributions = DISTRIBUTIONS.iter().flat_map(|d| {
            STATISTICS.iter().map(move |s| {
                let unit = if *s == "count" { "" } else { d.unit };
                format!("{}_{s}{unit}", d.name)
            })
        });
        let scalars = SCALARS.iter().map(|(name, _)| name.to_string());
        let worst = WORST_HINTS.iter().map(|w| w.name.to_string());
        scalars.chain(distributions).chain(worst).collect()
    });
    &NAMES
}

/// Where a metric stands among [`names`]; `None` where there is no such metric.
pub fn position(metric: &str) -> Option<usize> {
    names().iter().position(|name| name == metric)
}

/// What each metric is, in the order of [`names`]. Unlike those of [`SCALARS`], each can be read alone.
pub fn docs() -> &'static [String] {
    static DOCS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let worst = WORST_HINTS.iter().map(|w| {
            let hints = match w.extreme {
                Extreme::Zero => "0",
                Extreme::Huge => "2^31 - 1 ms",
            };
            format!("{}, were every hint {hints}", w.of)
        });
        let distributions = DISTRIBUTIONS
            .iter()
            .flat_map(|d| STATISTICS.iter().map(move |s| format!("{s} of {}", d.doc)));
        scalar_docs().chain(distributions).chain(worst).collect()
    });
    &DOCS
}

/// What the [`SCALARS`] are, each with what it leaves to the first of its kind.
fn scalar_docs() -> impl Iterator<Item = String> {
    let mut whole = "";
    SCALARS.iter().map(move |(_, doc)| {
        let Some(rest) = doc.strip_prefix("… ") else {
            whole = doc;
            return doc.to_string();
        };
        // What the others add to the first stands after its colon, or its comma.
        let end = whole.find(':').or(whole.find(','));
        format!("{}: {rest}", &whole[..end.unwrap_or(whole.len())])
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_metric_is_told_without_those_before_it() {
        let docs = super::docs();
        let doc = |name: &str| {
            let at = super::names().iter().position(|n| n == name).unwrap();
            docs[at].as_str()
        };
        assert_eq!(
            doc("store_reads_leaked"),
            "reads of the task store by loops that run on the server: after the abort"
        );
        assert_eq!(
            doc("wait_share_floor"),
            "share of waits whose last change was: the floor"
        );
        assert_eq!(
            doc("gap_min_ms"),
            "min of time between two sends of one task"
        );
        assert_eq!(docs.len(), super::names().len());
    }

    #[test]
    fn names_are_unique() {
        let mut names = super::names().to_vec();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().any(|n| n == "completion_latency_p99_ms"));
    }
}
