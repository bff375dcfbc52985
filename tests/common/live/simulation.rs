//! The settings of recordings as scenarios, simulated with what was calibrated in the same process.

use std::sync::atomic::AtomicBool;

use pollpace::engine::trace::{Follow, PollRow, Row};
use pollpace::model::Model;
use pollpace::scenario::presets::{self, LoopKind};
use pollpace::{engine, scenario};

use super::recording::{Calibration, Group, Setting, median};

/// What the caller of the simulated loop sees, and what is sent.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// `result`, `error`, `aborted` or `horizon`.
    pub ending: &'static str,
    pub polls: u64,
    pub total_ms: f64,
    pub gap_median_ms: Option<f64>,
    pub abort_latency_ms: Option<f64>,
    pub notices: u64,
    pub tasks_cancel: u64,
    pub polls_after_abort: Option<u64>,
    pub order: Vec<String>,
}

impl Setting {
    pub fn on_server(&self) -> bool {
        presets::find(&self.preset).unwrap().kind == LoopKind::ServerPoller
    }

    /// Does a request make the task? A helper for a resource that is already there sends none.
    fn creates(&self) -> bool {
        matches!(
            self.program.as_str(),
            "npm/client-stream" | "python/mcp_poll" | "python/fastmcp_poll"
        )
    }

    /// The names of what is sent: the request that comes first, a poll, the request for the result.
    fn methods(&self) -> (Option<&str>, &'static str, Option<&'static str>) {
        match self.program.as_str() {
            "npm/server-poller" if self.call.as_deref() == Some("result") => (
                Some("tasks/result"),
                "store.getTask",
                Some("store.getTaskResult"),
            ),
            "npm/server-poller" => (
                Some("tools/call"),
                "store.getTask",
                Some("store.getTaskResult"),
            ),
            "npm/openai-poll" | "python/openai_poll" => (None, "GET", None),
            "python/botocore_wait" => (None, "DescribeTable", None),
            _ => (Some("tools/call"), "tasks/get", Some("tasks/result")),
        }
    }

    /// A hint as the scenario file has it. A header is text on the wire; what reads as a number is given as one, as in every preset for headers.
    fn hint(&self, hint: Option<&str>) -> String {
        let Some(hint) = hint else {
            return "absent = true".into();
        };
        match hint.parse::<f64>() {
            _ if hint == "null" => "null = true".into(),
            Ok(number) if number.is_infinite() => "value = inf".into(),
            Ok(number) => format!("value = {number:?}"),
            Err(_) => format!("value = {:?}", hint.trim_matches('"')),
        }
    }

    /// How long a request takes, ms. The peer of FastMCP is calibrated without the delay that it adds: two timers of half of it.
    fn request_ms(&self, calibration: &Calibration) -> f64 {
        if self.program == "python/fastmcp_poll" && self.round_trip_ms > 0.0 {
            calibration.request_ms + self.round_trip_ms + 2.0 * calibration.late_ms
        } else {
            calibration.request_ms
        }
    }

    /// The setting as a scenario file. `steps` says from which age of the task on each hint is in the answers, ns.
    fn text(&self, calibration: &Calibration, steps: &[(u64, String)]) -> String {
        let request_ms = self.request_ms(calibration);
        let creation_ms = if self.creates() { request_ms } else { 0.0 };
        let way = if self.on_server() {
            format!("tasks_get = {{ service = \"{}\" }}", ns(request_ms))
        } else {
            format!("delay = \"{}\"", ns(request_ms / 2.0))
        };
        let mut policy = format!("timer = {{ overhead = \"{}\" }}\n", ns(calibration.late_ms));
        if let Some(ms) = self.client_default_ms {
            policy += &format!("default = \"{}\"\n", ns(ms));
        }
        if let Some(attempts) = self.max_attempts {
            policy += &format!("max_polls = {attempts}\n");
        }
        if self.program == "python/mcp_poll" {
            // The program asks for it after the loop, as the package's documentation does.
            policy += "at_end = \"tasks/result\"\n";
        }
        let mut tenant = String::new();
        if let Some(ms) = self.abort_at_ms {
            tenant += &format!("abort = {{ after = \"{}\" }}\n", ns(ms - creation_ms));
        }
        if self.end_status == "failed" {
            tenant += "ends = { completed = 0, failed = 1 }\n";
        }
        let mut lasts_ms = self.task_ms - creation_ms;
        if self.status == "input_required" {
            // The first answer shows the question. The reply is at the server when the status is to change; where it is not, the peer has
            // the result for whoever asks for it: the reply comes at once and ends the task.
            let until_ms = self.status_ms.unwrap_or(0.0);
            lasts_ms = self.status_ms.map_or(0.001, |ms| self.task_ms - ms);
            tenant += &format!(
                "input = {{ probability = 1, after = \"0s\", answer = \"{}\" }}\n",
                ns(until_ms - 2.5 * request_ms)
            );
        }
        let steps: Vec<String> = steps
            .iter()
            .map(|(from, hint)| format!("{{ from = \"{from}ns\", {hint} }}"))
            .collect();
        format!(
            "[run]\nhorizon = \"{}\"\nreplications = 1\ndrain = \"none\"\n\
             [[server]]\nname = \"s\"\nhint = \"h\"\n{way}\n\
             [hint.h]\ndrawn = \"by_age\"\nsteps = [{}]\n\
             [policy.live]\nextends = \"{}\"\n{policy}\
             [[tenant]]\nname = \"t\"\narrivals = {{ at_once = {{}} }}\nservers = {{ s = 1 }}\npolicy = \"live\"\n\
             creation_delay = \"{}\"\nduration = \"{}\"\n{tenant}",
            ns(self.horizon_ms),
            steps.join(", "),
            self.preset,
            ns(creation_ms),
            ns(lasts_ms),
        )
    }
}

/// A duration of the scenario file.
fn ns(ms: f64) -> String {
    format!("{}ns", (ms * 1e6).round().max(0.0) as u64)
}

impl Group {
    /// The setting simulated, with the timer and the requests of the same process.
    pub fn simulate(&self) -> Simulated {
        self.simulate_with(self.calibration()).told(self)
    }

    /// The same with a timer that fires a millisecond sooner, as calibrated, and a millisecond later.
    pub fn simulate_around(&self) -> [Simulated; 3] {
        let calibration = self.calibration();
        [-1.0, 0.0, 1.0].map(|by_ms| {
            let late_ms = (calibration.late_ms + by_ms).max(0.0);
            let timer = Calibration {
                late_ms,
                ..calibration
            };
            self.simulate_with(timer).told(self)
        })
    }

    /// The calibration whose wait is nearest to the median wait of the simulated loop.
    fn calibration(&self) -> Calibration {
        let first = self.calibrations[0];
        let Some(wait_ms) = self.simulate_with(first).wait_median_ms() else {
            return first;
        };
        let distance = |c: &Calibration| (c.wait_ms - wait_ms).abs();
        let nearer = |a: Calibration, b: Calibration| {
            if distance(&b) < distance(&a) { b } else { a }
        };
        self.calibrations.iter().copied().fold(first, nearer)
    }

    /// Hints that change from answer to answer: each begins when the answer before it has been seen, which a simulation without it tells.
    fn simulate_with(&self, calibration: Calibration) -> Story {
        let setting = &self.setting;
        let created = if setting.creates() || setting.on_server() {
            setting.create_hint.as_deref()
        } else {
            None
        };
        let hint = |n: usize| setting.hint(setting.hints[n].as_deref());
        let mut steps = vec![(0, setting.hint(created)), (1, hint(0))];
        let mut story = run(&setting.text(&calibration, &steps));
        for n in 1..setting.hints.len() {
            let Some(seen) = story.polls.get(n - 1).and_then(|poll| poll.seen) else {
                break;
            };
            steps.push((seen - story.created + 1, hint(n)));
            story = run(&setting.text(&calibration, &steps));
        }
        story
    }
}

/// The story of the task.
struct Story {
    rows: Vec<Row>,
    created: u64,
    polls: Vec<PollRow>,
    notices: u64,
    cancels: u64,
}

fn run(text: &str) -> Story {
    let loaded = scenario::parse("setting", text, &[]).unwrap_or_else(|e| panic!("{text}\n{e}"));
    let model = Model::new(&loaded.scenario);
    let follow = Follow {
        tenant: Some(0),
        number: 1,
    };
    let outcome = engine::run(&model, 0, Some(follow), &AtomicBool::new(false)).unwrap();
    let rows = outcome.story.unwrap().rows;
    // A request for the result that the server holds until the end is told as a poll.
    let asks = rows.iter().position(|r| r.event == "asks for the result");
    let until = asks.map_or(u64::MAX, |i| rows[i].at);
    let mut polls: Vec<PollRow> = rows.iter().filter_map(|r| r.poll.clone()).collect();
    polls.retain(|poll| poll.sent < until);
    polls.sort_by_key(|poll| poll.sent);
    Story {
        created: rows.iter().find(|r| r.event == "created").unwrap().at,
        rows,
        polls,
        notices: outcome.pairs[0].notices_cancelled,
        cancels: outcome.pairs[0].cancels,
    }
}

impl Story {
    /// The median of the waits that were chosen, ms. A first poll at once is none.
    fn wait_median_ms(&self) -> Option<f64> {
        let waits = self.rows.iter().filter_map(|r| r.wait.as_ref());
        let ms = |wait: u64| wait as f64 / 1e6;
        median(
            waits
                .filter(|w| w.wait.cause != pollpace::policy::Stage::FirstPoll)
                .map(|w| ms(w.wait.wait)),
        )
    }

    fn find(&self, event: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.event == event)
    }

    /// How the call ends for its caller, and when (ns).
    fn ending(&self, on_server: bool) -> (&'static str, u64) {
        let settled = self.find("settled");
        let abort = self.find("abort").filter(|_| on_server);
        if let Some(abort) = abort {
            // The caller of a loop on the server does not wait for it.
            return ("aborted", abort.at);
        }
        match settled.map(|r| (r.at, r.note.as_str())) {
            None => ("horizon", 0),
            Some((at, note)) if note.starts_with("aborted") => ("aborted", at),
            Some((at, "completed")) => ("result", self.find("result held").map_or(at, |r| r.at)),
            Some((at, _)) => ("error", at),
        }
    }

    fn told(&self, group: &Group) -> Simulated {
        let setting = &group.setting;
        let (ending, at) = self.ending(setting.on_server());
        let abort = self.find("abort").map(|r| r.at);
        let sent: Vec<u64> = self.polls.iter().map(|p| p.sent).collect();
        let gaps = sent.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6);
        // The caller of a loop on the server sends one notice for its own request, which is none of the loop's.
        let notices = self.notices + u64::from(setting.on_server() && abort.is_some());
        let latency = abort.filter(|_| ending == "aborted");
        Simulated {
            ending,
            polls: sent.len() as u64,
            total_ms: at as f64 / 1e6,
            gap_median_ms: median(gaps),
            abort_latency_ms: latency.map(|abort| (at - abort) as f64 / 1e6),
            notices,
            tasks_cancel: self.cancels,
            polls_after_abort: abort
                .map(|abort| sent.iter().filter(|&&at| at > abort).count() as u64),
            order: self.order(setting, abort, notices),
        }
    }

    /// What is sent, in order, repeats left out.
    fn order(&self, setting: &Setting, abort: Option<u64>, notices: u64) -> Vec<String> {
        let (first, poll, result) = setting.methods();
        let mut sends: Vec<(u64, &str)> = self.polls.iter().map(|p| (p.sent, poll)).collect();
        let told = |event: &str| self.find(event).map(|r| r.at);
        if setting.program == "python/fastmcp_poll" {
            // In the older revision the reply goes into the open tasks/result.
            sends.extend(told("answered").map(|at| (at, "tasks/update")));
        }
        sends.extend(
            abort
                .filter(|_| notices > 0)
                .map(|at| (at, "notifications/cancelled")),
        );
        let completed = self.find("settled").is_some_and(|r| r.note == "completed");
        let fetched = told("result held")
            .or(told("asks for the result"))
            .or(told("settled").filter(|_| setting.on_server() && completed));
        sends.extend(fetched.zip(result));
        sends.sort_by_key(|(at, _)| *at);
        let mut order: Vec<String> = first.into_iter().map(String::from).collect();
        order.extend(sends.into_iter().map(|(_, method)| method.to_string()));
        order.dedup();
        order
    }
}
