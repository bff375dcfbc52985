//! Logs of poll loops that were never fitted: a small simulation of its own, which knows what really happened.

/// SplitMix64.
pub struct Chance(pub u64);

impl Chance {
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// A hint as JSON; `None` for no key.
pub type Hint = Option<String>;

/// What hosts and servers do; times in s.
pub struct Fleet {
    pub tasks: usize,
    pub rate: f64,
    pub end: f64,
    pub duration: fn(&mut Chance) -> f64,
    /// The hint of a task, drawn with its creation; `vary` draws it for every answer.
    pub hint: fn(&mut Chance) -> Hint,
    pub vary: bool,
    /// The wait after an answer with that hint; the number is that of the wait.
    pub wait: fn(&Hint, u32, &mut Chance) -> f64,
    /// Waits count from the send.
    pub ticks: bool,
    /// The first poll comes with the creation's answer.
    pub at_once: bool,
    pub refused: f64,
    pub wait_after_refusal: f64,
    /// Share of callers that give up, and the mean of their patience.
    pub abort: (f64, f64),
    pub cancels: bool,
    /// Answers carry createdAt and lastUpdatedAt; so much is the server's clock ahead.
    pub dated: Option<f64>,
    pub created: bool,
}

impl Fleet {
    pub fn plain() -> Self {
        Fleet {
            tasks: 2_000,
            rate: 2.0,
            end: 1_100.0,
            duration: |c| c.exponential(30.0),
            hint: |_| Some("5000".into()),
            vary: false,
            wait: |hint, _, _| {
                hint.as_ref()
                    .map_or(4.0, |ms| ms.parse::<f64>().unwrap() / 1e3)
            },
            ticks: false,
            at_once: false,
            refused: 0.0,
            wait_after_refusal: 5.0,
            abort: (0.0, 1.0),
            cancels: false,
            dated: None,
            created: true,
        }
    }
}

/// A request with its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub sent: f64,
    pub answered: f64,
    pub task: usize,
    pub method: &'static str,
    pub status: &'static str,
    pub hint: Hint,
    pub http: u16,
    pub dates: Option<(f64, f64)>,
}

/// A log, and what really happened.
pub struct Truth {
    pub exchanges: Vec<Exchange>,
    pub rate: f64,
    /// Mean completion latency, ms.
    pub latency_ms: f64,
    pub aborts: usize,
    pub completed: usize,
}

/// One way of the network.
fn way(chance: &mut Chance) -> f64 {
    chance.between(0.01, 0.04)
}

pub fn simulate(fleet: &Fleet, seed: u64) -> Truth {
    let mut chance = Chance(seed);
    let mut truth = Truth {
        exchanges: Vec::new(),
        rate: 0.0,
        latency_ms: 0.0,
        aborts: 0,
        completed: 0,
    };
    let mut at = 0.0;
    for task in 0..fleet.tasks {
        at += chance.exponential(1.0 / fleet.rate);
        follow(fleet, task, at, &mut chance, &mut truth);
    }
    truth.latency_ms /= truth.completed as f64;
    truth.exchanges.retain(|e| e.answered <= fleet.end);
    truth.exchanges.sort_by(|a, b| a.sent.total_cmp(&b.sent));
    let polls = truth
        .exchanges
        .iter()
        .filter(|e| e.method == "tasks/get")
        .count();
    let first = truth.exchanges[0].sent;
    let last = truth
        .exchanges
        .iter()
        .map(|e| e.answered)
        .fold(0.0, f64::max);
    truth.rate = polls as f64 / (last - first);
    truth
}

fn follow(fleet: &Fleet, task: usize, asked: f64, chance: &mut Chance, truth: &mut Truth) {
    let made = asked + way(chance);
    let created = made + way(chance);
    let ends = created + (fleet.duration)(chance);
    let abort = match chance.unit() < fleet.abort.0 {
        true => created + chance.exponential(fleet.abort.1),
        false => f64::INFINITY,
    };
    let mut hint = (fleet.hint)(chance);
    // The server's own account of the task's life is as long as it is, whenever it says that it began.
    let dates = |updated: f64| fleet.dated.map(|ahead| (created + ahead, updated + ahead));
    let exchange = |sent, answered, method, status, hint: Hint, http, dates| Exchange {
        sent,
        answered,
        task,
        method,
        status,
        hint,
        http,
        dates,
    };
    if fleet.created {
        truth.exchanges.push(exchange(
            asked,
            created,
            "tools/call",
            "working",
            hint.clone(),
            200,
            fleet.dated.map(|ahead| (made + ahead, made + ahead)),
        ));
    }
    let mut at = created;
    let mut last_was_refused = false;
    let mut last_sent = 0.0;
    for number in 0.. {
        let wait = match (number, last_was_refused) {
            (0, _) if fleet.at_once => 0.0,
            (_, true) => fleet.wait_after_refusal,
            _ => (fleet.wait)(&hint, number, chance),
        };
        let sent = match number {
            0 => at + wait,
            _ if fleet.ticks => at.max(last_sent + wait),
            _ => at + wait,
        };
        last_sent = sent;
        if sent > fleet.end {
            return;
        }
        if sent > abort {
            truth.aborts += 1;
            if fleet.cancels {
                let answered = abort + way(chance) + way(chance);
                truth.exchanges.push(exchange(
                    abort,
                    answered,
                    "tasks/cancel",
                    "cancelled",
                    None,
                    200,
                    None,
                ));
            }
            return;
        }
        let read = sent + way(chance);
        at = read + way(chance);
        last_was_refused = chance.unit() < fleet.refused;
        if last_was_refused {
            truth
                .exchanges
                .push(exchange(sent, at, "tasks/get", "", None, 429, None));
            continue;
        }
        if fleet.vary {
            hint = (fleet.hint)(chance);
        }
        if read >= ends {
            truth.exchanges.push(exchange(
                sent,
                at,
                "tasks/get",
                "completed",
                None,
                200,
                dates(ends),
            ));
            if at <= fleet.end {
                truth.completed += 1;
                truth.latency_ms += (at - ends) * 1e3;
            }
            return;
        }
        truth.exchanges.push(exchange(
            sent,
            at,
            "tasks/get",
            "working",
            hint.clone(),
            200,
            dates(created),
        ));
    }
}

/// 2026-01-01T00:00:00Z, where the logs begin.
const ORIGIN: f64 = 1_767_225_600.0;

fn iso(at: f64) -> String {
    let ms = (at * 1e3).round() as u64;
    let (s, ms) = (ms / 1000, ms % 1000);
    format!(
        "2026-01-01T{:02}:{:02}:{:02}.{ms:03}Z",
        s / 3600,
        s / 60 % 60,
        s % 60
    )
}

/// The log as CSV.
pub fn csv(truth: &Truth) -> String {
    let mut out = String::from(
        "ts,tenant,server,task_id,method,http_status,task_status,poll_interval_ms,latency_ms,created_at,last_updated_at\n",
    );
    for e in &truth.exchanges {
        let (created, updated) = e
            .dates
            .map_or(Default::default(), |(c, u)| (iso(c), iso(u)));
        out += &format!(
            "{},agents,batch,task-{},{},{},{},{},{:.3},{created},{updated}\n",
            iso(e.sent),
            e.task,
            e.method,
            e.http,
            e.status,
            e.hint.as_deref().unwrap_or(""),
            (e.answered - e.sent) * 1e3,
        );
    }
    out
}

/// The log as JSON-RPC lines, of the revision with `pollIntervalMs` and a flat task, or of the one before it.
pub fn json_rpc(truth: &Truth, flat: bool) -> String {
    let mut lines: Vec<(f64, String)> = Vec::new();
    for (id, e) in truth.exchanges.iter().enumerate() {
        let params = match e.method {
            "tools/call" => {
                "{\"name\":\"render\",\"arguments\":{\"secret\":\"s3cr3t\"}}".to_string()
            }
            _ => format!("{{\"taskId\":\"task-{}\"}}", e.task),
        };
        let envelope = |at: f64, dir: &str, more: &str, message: String| {
            format!(
                "{{\"ts\":{:.6},\"dir\":\"{dir}\",\"session\":\"s1\",\"tenant\":\"agents\",\"server\":\"batch\"{more},\"message\":{{\"jsonrpc\":\"2.0\",\"id\":{id}{message}}}}}\n",
                ORIGIN + at
            )
        };
        let asked = format!(",\"method\":\"{}\",\"params\":{params}", e.method);
        lines.push((e.sent, envelope(e.sent, "client->server", "", asked)));
        let hint_key = if flat {
            "pollIntervalMs"
        } else {
            "pollInterval"
        };
        let hint = e
            .hint
            .as_ref()
            .map_or(String::new(), |h| format!(",\"{hint_key}\":{h}"));
        let dates = e.dates.map_or(String::new(), |(c, u)| {
            format!(
                ",\"createdAt\":\"{}\",\"lastUpdatedAt\":\"{}\"",
                iso(c),
                iso(u)
            )
        });
        let task = format!(
            "\"taskId\":\"task-{}\",\"status\":\"{}\",\"statusMessage\":\"s3cr3t\"{hint}{dates}",
            e.task, e.status
        );
        let (more, answer) = match (e.http, e.method, flat) {
            (200, "tools/call", false) => ("", format!(",\"result\":{{\"task\":{{{task}}}}}")),
            (200, ..) => (
                "",
                format!(",\"result\":{{\"resultType\":\"task\",{task}}}"),
            ),
            _ => (",\"http_status\":429", String::new()),
        };
        lines.push((
            e.answered,
            envelope(e.answered, "server->client", more, answer),
        ));
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    lines.into_iter().map(|(_, line)| line).collect()
}
