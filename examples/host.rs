//! A host that polls the durable tasks of a real MCP server, its waits decided by a policy of pollpace.
//!
//! ```text
//! cargo run --release --example host -- --tasks 8 --policy fastmcp-4.x --log host.jsonl
//! ```
//!
//! The server is built on the crate `rmcp`; this program starts itself a second time as that server, and talks to it over stdio. [`pollpace::policy`] knows neither
//! clock nor I/O: it is told what the host saw and a random number, and says how long to wait. What a host adds is here: the sleep, which an abort interrupts,
//! the request, and the id of the task, which outlives an abort, so that the task can be found again or cancelled.
//!
//! `--log` writes every message with its time, both ways: `pollpace fit` makes a scenario of it.

use std::fs::File;
use std::io::{self, Write};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, bail};
use clap::{Parser, ValueEnum};
use pollpace::export::{Language, export};
use pollpace::model::compile_policy;
use pollpace::policy::{Decision, FOREVER, Policy, RawHint, Saw, State};
use pollpace::random::mix;
use pollpace::scenario::{self, presets};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, ContentBlock, CreateTaskResult, GetTaskParams, GetTaskResult, Implementation,
    ServerCapabilities, ServerConfig, TaskStatus,
};
use rmcp::service::{Peer, RequestContext, RoleClient, RoleServer};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// A host that polls a real MCP server, its waits decided by a policy of pollpace
#[derive(Parser)]
struct Arguments {
    /// Tasks, one every so often
    #[arg(long, default_value_t = 6)]
    tasks: u32,
    /// Time between the creations of two tasks
    #[arg(long, default_value_t = 100, value_name = "MS")]
    every: u64,
    /// How long a task runs on average; durations are uniform up to twice that
    #[arg(long, default_value_t = 800, value_name = "MS")]
    mean: u64,
    /// What the server suggests in `pollIntervalMs`
    #[arg(long, default_value_t = 150, value_name = "MS")]
    hint: u64,
    /// A preset (`pollpace policies`); an envelope of 50 ms to 2 s with 10 % jitter where left out
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The caller of every third task gives up after this
    #[arg(long, value_name = "MS")]
    abort: Option<u64>,
    /// What becomes of an aborted task
    #[arg(long, value_enum, default_value_t = Then::Detach)]
    then: Then,
    /// Seed of durations and jitter
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write every message with its time into this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    log: Option<std::path::PathBuf>,
    /// Be the server
    #[arg(long, hide = true)]
    serve: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Then {
    /// Its id is kept, and its end is asked for later
    Detach,
    /// It is cancelled
    Cancel,
}

/// The policy where none is named.
const ENVELOPE: &str = "default = \"500ms\"\nfloor = \"50ms\"\nceiling = \"2s\"\njitter = { proportional = 0.1 }\nfirst_poll = \"after_wait\"\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.serve {
        let server = Server::default();
        let service = server
            .serve((tokio::io::stdin(), tokio::io::stdout()))
            .await?;
        service.waiting().await?;
        return Ok(());
    }
    host(&arguments).await
}

// ---- The server: a tool whose calls become tasks.

#[derive(Clone, Default)]
struct Server {
    tasks: TaskManager,
}

impl ServerHandler for Server {
    /// `work` runs for `ms` milliseconds, and suggests to poll it every `hint`.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name: &str| {
            let given = request
                .arguments
                .as_ref()
                .and_then(|a| a.get(name)?.as_u64());
            given.ok_or_else(|| ErrorData::invalid_params(format!("{name} is missing"), None))
        };
        let (ms, hint) = (argument("ms")?, argument("hint")?);
        let options = TaskOptions::new().with_poll_interval_ms(hint);
        let task = self.tasks.spawn(options, move |context| {
            Box::pin(async move {
                tokio::select! {
                    () = context.cancelled() => Err(TaskExit::Cancelled),
                    () = tokio::time::sleep(Duration::from_millis(ms)) => {
                        Ok(CallToolResult::success(vec![ContentBlock::text("done")]))
                    }
                }
            })
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_tasks()
                .build(),
        )
    }
}

// ---- The host.

/// What the loop of a task came to.
enum Ended {
    /// Its end was seen.
    Seen(TaskStatus),
    /// The caller gave up; control came back so long after.
    Aborted(Duration),
    /// The policy ended it.
    GaveUp(&'static str),
}

/// A task, its loop, and what was measured.
struct Followed {
    id: String,
    polls: u32,
    /// Each wait that was chosen, and how long the host slept.
    slept: Vec<(Duration, Duration)>,
    ended: Ended,
}

async fn host(arguments: &Arguments) -> anyhow::Result<()> {
    let policy = Arc::new(policy(arguments.policy.as_deref())?);
    let mut server = tokio::process::Command::new(std::env::current_exe()?)
        .arg("--serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("the server does not start")?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        bail!("the server has no standard streams");
    };
    let log = match &arguments.log {
        Some(file) => {
            let created = File::create(file);
            Some(Arc::new(Mutex::new(created.with_context(|| {
                format!("cannot write {}", file.display())
            })?)))
        }
        None => None,
    };
    let pipes = (
        Tap::new(stdout, "server->client", log.clone()),
        Tap::new(stdin, "client->server", log),
    );
    let config = ClientConfig::new(
        ClientCapabilities::builder().enable_tasks().build(),
        Implementation::from_build_env(),
    );
    let client = config.serve(pipes).await?;

    let mut loops = Vec::new();
    for number in 0..u64::from(arguments.tasks) {
        tokio::time::sleep(Duration::from_millis(if number > 0 {
            arguments.every
        } else {
            0
        }))
        .await;
        let ms = mix(arguments.seed ^ number << 8) % (2 * arguments.mean).max(1);
        let aborts = arguments.abort.filter(|_| number % 3 == 0);
        let (peer, policy) = (client.peer().clone(), policy.clone());
        let (hint, seed) = (arguments.hint, mix(arguments.seed.wrapping_add(number)));
        loops.push(tokio::spawn(async move {
            let (raise, abort) = watch::channel(None);
            if let Some(after) = aborts {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(after)).await;
                    let _ = raise.send(Some(Instant::now()));
                });
            }
            create_and_follow(&peer, &policy, (ms, hint), abort, seed).await
        }));
    }
    let mut kept = Vec::new();
    for (number, handle) in loops.into_iter().enumerate() {
        let followed = handle.await??;
        tell(number, &followed);
        // Whoever leaves a task keeps its id.
        if !matches!(followed.ended, Ended::Seen(_)) {
            kept.push(followed.id);
        }
    }
    for id in kept {
        let status = reconcile(client.peer(), &policy, &id, arguments.then).await?;
        println!("{id}: its id was kept, and it is {status} now");
    }
    client.cancel().await?;
    Ok(())
}

/// The policy by its name.
fn policy(name: Option<&str>) -> anyhow::Result<Policy> {
    let written = match name {
        Some(name) => match presets::find(name) {
            Some(preset) => preset.policy.clone(),
            None => bail!(
                "there is no preset called \"{name}\": {}",
                presets::suggestion(name)
            ),
        },
        None => scenario::read("the envelope", ENVELOPE)?,
    };
    let name = name.unwrap_or("envelope");
    // What changes waits in another way than by answers is no matter of this loop.
    export(name, &written, &[], Language::Json)?;
    Ok(compile_policy(name, &written))
}

async fn create_and_follow(
    peer: &Peer<RoleClient>,
    policy: &Policy,
    (ms, hint): (u64, u64),
    abort: watch::Receiver<Option<Instant>>,
    seed: u64,
) -> anyhow::Result<Followed> {
    let arguments = json!({ "ms": ms, "hint": hint });
    let call =
        CallToolRequestParams::new("work").with_arguments(serde_json::from_value(arguments)?);
    let CallToolResponse::Task(created) = peer.call_tool_once(call).await? else {
        bail!("the server made no task");
    };
    let hint = raw(created.task.poll_interval_ms);
    follow(
        peer,
        policy,
        created.task.task_id,
        Saw::Created(hint),
        abort,
        seed,
    )
    .await
}

/// Polls a task until its end is seen, the caller aborts or the policy gives up. The first thing seen is `saw`.
async fn follow(
    peer: &Peer<RoleClient>,
    policy: &Policy,
    id: String,
    mut saw: Saw,
    mut abort: watch::Receiver<Option<Instant>>,
    seed: u64,
) -> anyhow::Result<Followed> {
    let (mut state, mut polls, mut slept) = (State::default(), 0, Vec::new());
    let mut asked = false;
    let began = Instant::now();
    let ended = loop {
        if polls >= policy.max_polls {
            break Ended::GaveUp("after its last poll");
        }
        let u = mix(seed.wrapping_add(u64::from(polls)));
        let wait = match policy.decide(&mut state, saw, u) {
            Decision::Wait(wait) if wait.wait >= FOREVER => break Ended::GaveUp("waits for ever"),
            Decision::Wait(wait) => Duration::from_nanos(wait.wait),
            // The extension of 2026 has no tasks/result: the result stands in the last answer.
            Decision::AwaitResult => Duration::ZERO,
            Decision::End(_) => break Ended::GaveUp("the policy ends it"),
        };
        let from = Instant::now();
        let left = Duration::from_nanos(policy.give_up_after).saturating_sub(began.elapsed());
        if wait > left {
            tokio::time::sleep(left).await;
            break Ended::GaveUp("at its deadline");
        }
        tokio::select! {
            biased;
            raised = raised(&mut abort) => {
                if let Some(at) = raised {
                    break Ended::Aborted(at.elapsed());
                }
                // Nobody is left who could abort.
                tokio::time::sleep(wait.saturating_sub(from.elapsed())).await;
            }
            () = tokio::time::sleep(wait) => {}
        }
        if polls > 0 {
            slept.push((wait, from.elapsed()));
        }
        polls += 1;
        saw = match peer.get_task(GetTaskParams::new(id.clone())).await {
            Ok(answer) => {
                let (status, hint) = (answer.task.status(), raw(answer.task.task.poll_interval_ms));
                match status {
                    TaskStatus::Working => Saw::Unchanged(hint),
                    TaskStatus::InputRequired => Saw::Asks {
                        hint,
                        new: !std::mem::replace(&mut asked, true),
                    },
                    ended => break Ended::Seen(ended),
                }
            }
            Err(_) => Saw::Error,
        };
    };
    Ok(Followed {
        id,
        polls,
        slept,
        ended,
    })
}

/// When the caller gave up. Waits until that is so; `None` where nobody is left who could.
async fn raised(abort: &mut watch::Receiver<Option<Instant>>) -> Option<Instant> {
    let raised = abort.wait_for(Option::is_some).await;
    raised.ok().and_then(|at| *at)
}

fn raw(hint: Option<u64>) -> RawHint {
    hint.map_or(RawHint::Absent, |ms| RawHint::Number(ms as f64))
}

/// A task that was left is cancelled, or found again by its id.
async fn reconcile(
    peer: &Peer<RoleClient>,
    policy: &Policy,
    id: &str,
    then: Then,
) -> anyhow::Result<String> {
    if then == Then::Cancel {
        peer.cancel_task(CancelTaskParams::new(id.to_string()))
            .await?;
    }
    let (raise, abort) = watch::channel(None);
    let followed = follow(
        peer,
        policy,
        id.into(),
        Saw::Created(RawHint::Absent),
        abort,
        0,
    )
    .await?;
    drop(raise);
    match followed.ended {
        Ended::Seen(status) => Ok(word(status)),
        Ended::GaveUp(why) => Err(anyhow!("{id} was not found again: {why}")),
        Ended::Aborted(_) => Err(anyhow!("{id} was aborted again")),
    }
}

fn word(status: TaskStatus) -> String {
    serde_json::to_value(status)
        .ok()
        .and_then(|v| v.as_str().map(String::from))
        .unwrap_or_default()
}

/// A line about a task.
fn tell(number: usize, followed: &Followed) {
    let how = match &followed.ended {
        Ended::Seen(status) => word(*status),
        Ended::Aborted(after) => format!(
            "aborted, and control was back {:.1} ms later",
            after.as_secs_f64() * 1e3
        ),
        Ended::GaveUp(why) => (*why).into(),
    };
    let late: Vec<f64> = followed
        .slept
        .iter()
        .map(|(wait, slept)| (slept.as_secs_f64() - wait.as_secs_f64()) * 1e3)
        .collect();
    let most = late.iter().copied().fold(0.0, f64::max);
    println!(
        "task {number}: {} polls, {how}; its sleeps ended at most {most:.1} ms late",
        followed.polls
    );
}

// ---- The log: a tap on each of the two pipes.

/// A stream whose lines are logged with their times.
struct Tap<T> {
    inner: T,
    direction: &'static str,
    line: Vec<u8>,
    log: Option<Arc<Mutex<File>>>,
}

impl<T> Tap<T> {
    fn new(inner: T, direction: &'static str, log: Option<Arc<Mutex<File>>>) -> Self {
        Tap {
            inner,
            direction,
            line: Vec::new(),
            log,
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        let Some(log) = &self.log else { return };
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            if let Ok(message) = serde_json::from_slice::<Value>(&self.line) {
                let line = json!({ "ts": now.as_secs_f64(), "dir": self.direction, "tenant": "host", "server": "work", "message": message });
                if let Ok(mut log) = log.lock() {
                    // A full disk costs the log, not the host.
                    let _ = writeln!(log, "{line}");
                }
            }
            self.line.clear();
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Tap<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled()[before..].to_vec();
        self.note(&read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tap<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.note(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
