//! JSON-RPC lines: dumps of stdio, of proxies, of hosts. `docs/fitting.md` defines the format.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;

use super::collector::Collector;
use super::event::{Answer, Instant, Method, Outcome, Reason, Request};
use super::format::{Fault, Format};
use super::wire::{CLIENT, Envelope, Message, Params, SERVER, Side, parse, task_in};

/// Requests that wait for their answers, at most; older ones of a log that has no answers are let go.
const PENDING_MAX: usize = 1 << 17;
/// Sessions whose labels are remembered.
const SESSIONS_MAX: usize = 1 << 17;
/// Answered requests that a `notifications/cancelled` can still name.
const RECENT_MAX: usize = 1 << 17;

/// A request without its answer so far.
#[derive(Clone, Copy)]
struct Pending {
    sent: Instant,
    tenant: u16,
    server: u16,
    /// `None` where it is not about tasks.
    method: Option<Method>,
    /// 0 where no task is named (yet).
    task: u64,
}

/// Reads JSON-RPC lines.
#[derive(Default)]
pub struct JsonRpc {
    /// Which file is read.
    file: u64,
    pending: HashMap<u64, Pending>,
    recent: HashMap<u64, Pending>,
    /// The keys of `recent`, oldest first.
    order: VecDeque<u64>,
    /// Tenant and server of each session, as its last line with labels had them.
    labels: HashMap<u64, (u16, u16)>,
}

impl Format for JsonRpc {
    fn line(&mut self, line: &str, collector: &mut Collector) -> Result<(), Fault> {
        if !line.starts_with('{') {
            let json = serde_json::from_str::<&RawValue>(line).is_ok();
            let reason = if json {
                Reason::NotAnObject
            } else {
                Reason::NotJson
            };
            return Err(reason.into());
        }
        let envelope: Envelope = parse(line, Reason::NotAMessage)?;
        let inside = [envelope.message, envelope.msg, envelope.payload];
        for raw in inside.into_iter().flatten() {
            if raw.get().starts_with('{') {
                let message = parse(raw.get(), Reason::NotAMessage)?;
                return self.message(&envelope, &message, collector);
            }
            if let Ok(text) = serde_json::from_str::<String>(raw.get())
                && text.trim_start().starts_with('{')
            {
                let message = parse(&text, Reason::NotAMessage)?;
                return self.message(&envelope, &message, collector);
            }
        }
        let message = parse(line, Reason::NotAMessage)?;
        self.message(&envelope, &message, collector)
    }

    fn end_of_file(&mut self) {
        self.file += 1;
    }
}

impl JsonRpc {
    fn message(
        &mut self,
        envelope: &Envelope,
        message: &Message,
        collector: &mut Collector,
    ) -> Result<(), Fault> {
        let at = envelope.at()?;
        let side = envelope.side()?;
        let connection = self.connection(envelope, collector);
        if let Some(method) = &message.method {
            // Without a direction, what only servers ask tells who asks.
            let side = side.unwrap_or(match &**method {
                "sampling/createMessage" | "elicitation/create" | "roots/list" => SERVER,
                _ => CLIENT,
            });
            let (tenant, server) = self.labels(connection, envelope, collector);
            let pending = Pending {
                sent: at,
                tenant,
                server,
                method: Method::named(method),
                task: 0,
            };
            return self.request(connection, side, pending, message, collector);
        }
        let answers = message.result.is_some()
            || message.error.is_some()
            || envelope.http_status.is_some_and(|status| status >= 400);
        if !answers {
            return Err(Reason::NotAMessage.into());
        }
        self.answer(connection, side, at, envelope, message, collector)
    }

    /// A number for the connection of a line.
    fn connection(&self, envelope: &Envelope, collector: &Collector) -> u64 {
        if let Some(session) = envelope.session.or(envelope.connection) {
            return collector.ids.hash(u64::MAX, session.get().as_bytes()) << 1;
        }
        let label = |name: &Option<Cow<str>>| {
            let name = name.as_deref().unwrap_or_default();
            collector.ids.hash(self.file, name.as_bytes())
        };
        (label(&envelope.tenant) ^ label(&envelope.server).rotate_left(17)) << 1
    }

    /// Tenant and server of a request: its own, else those that its session had before.
    fn labels(
        &mut self,
        connection: u64,
        envelope: &Envelope,
        collector: &mut Collector,
    ) -> (u16, u16) {
        let known = self.labels.get(&connection).copied();
        let tenant = match (&envelope.tenant, known) {
            (None, Some((tenant, _))) => tenant,
            (name, _) => collector.tenant(name.as_deref().unwrap_or("tenant")),
        };
        let server = match (&envelope.server, known) {
            (None, Some((_, server))) => server,
            (name, _) => collector.server(name.as_deref().unwrap_or("server")),
        };
        let labelled = envelope.tenant.is_some() || envelope.server.is_some();
        if labelled && known != Some((tenant, server)) {
            if self.labels.len() >= SESSIONS_MAX {
                self.labels.clear();
            }
            self.labels.insert(connection, (tenant, server));
        }
        (tenant, server)
    }

    fn request(
        &mut self,
        connection: u64,
        side: Side,
        mut pending: Pending,
        message: &Message,
        collector: &mut Collector,
    ) -> Result<(), Fault> {
        let params = match (pending.method, message.params) {
            (Some(_), Some(raw)) => parse::<Params>(raw.get(), Reason::NotATask)?,
            _ => Params::default(),
        };
        if let Some(id) = &params.task_id {
            pending.task = collector.task(pending.server, id);
        }
        match pending.method {
            None | Some(Method::Create) => {}
            Some(Method::Status) => return self.status(&pending, message, collector),
            Some(Method::Cancelled) => {
                return self.cancelled(connection, side, pending, &params, collector);
            }
            Some(_) if params.task_id.is_none() => return Err(Reason::NoTaskId.into()),
            Some(method) => collector.sent(&pending.request(method)),
        }
        let Some(id) = message.id else {
            return match pending.method {
                None => {
                    collector.other_messages += 1;
                    Ok(())
                }
                Some(_) => Err(Reason::NoRequestId.into()),
            };
        };
        if pending.method.is_none() {
            collector.other_messages += 1;
        }
        if self.pending.len() >= PENDING_MAX {
            self.forget_oldest();
        }
        let key = collector.ids.hash(connection | side, id.get().as_bytes());
        self.pending.insert(key, pending);
        Ok(())
    }

    /// Lets the older half of the unanswered requests go.
    fn forget_oldest(&mut self) {
        let mut times: Vec<Instant> = self.pending.values().map(|p| p.sent).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.pending.retain(|_, p| p.sent > median);
    }

    /// A notification of a task's status.
    fn status(
        &self,
        pending: &Pending,
        message: &Message,
        collector: &mut Collector,
    ) -> Result<(), Fault> {
        let raw = message.params.ok_or(Reason::NoTaskId)?;
        let (id, answer) = task_in(raw)?;
        let id = id.ok_or(Reason::NoTaskId)?;
        let mut request = pending.request(Method::Status);
        request.task = collector.task(pending.server, &id);
        collector.answered(&request, request.sent, &answer);
        Ok(())
    }

    /// `notifications/cancelled`: an abort where it names a request about a task.
    fn cancelled(
        &self,
        connection: u64,
        side: Side,
        pending: Pending,
        params: &Params,
        collector: &mut Collector,
    ) -> Result<(), Fault> {
        let id = params.request_id.ok_or(Reason::NoRequestId)?;
        let key = collector.ids.hash(connection | side, id.get().as_bytes());
        let named = self.pending.get(&key).or(self.recent.get(&key));
        match named {
            None => Err(Reason::UnknownRequestCancelled.into()),
            Some(named) if named.task != 0 => {
                let mut request = named.request(Method::Cancelled);
                request.sent = pending.sent;
                collector.sent(&request);
                Ok(())
            }
            Some(_) => {
                collector.other_messages += 1;
                Ok(())
            }
        }
    }

    fn answer(
        &mut self,
        connection: u64,
        side: Option<Side>,
        at: Instant,
        envelope: &Envelope,
        message: &Message,
        collector: &mut Collector,
    ) -> Result<(), Fault> {
        let id = message.id.ok_or(Reason::NoRequestId)?.get().as_bytes();
        let key_of = |side: Side| collector.ids.hash(connection | side, id);
        let keys = [key_of(CLIENT), key_of(SERVER)];
        let there = keys.map(|key| self.pending.contains_key(&key));
        let key = match (side, there) {
            (_, [false, false]) => return Err(Reason::AnswerWithoutRequest.into()),
            (None, [true, true]) => return Err(Reason::AmbiguousAnswer.into()),
            (Some(side), [true, true]) => keys[1 - side as usize],
            (_, [client, _]) => keys[usize::from(!client)],
        };
        let Some(mut pending) = self.pending.remove(&key) else {
            return Err(Reason::AnswerWithoutRequest.into());
        };
        let Some(method) = pending.method else {
            collector.other_messages += 1;
            return Ok(());
        };
        if at < pending.sent {
            return Err(Reason::AnsweredBeforeItWasSent.into());
        }
        let outcome = match (envelope.http_status, &message.error) {
            (Some(status), _) if status >= 400 => Outcome::Http(status),
            (_, Some(error)) => Outcome::Rpc(error.code),
            _ => Outcome::Good,
        };
        let mut answer = Answer::bare(outcome);
        if let (Outcome::Good, Some(raw)) = (outcome, message.result)
            && raw.get().starts_with('{')
            && method != Method::Result
        {
            let id;
            (id, answer) = task_in(raw)?;
            if method == Method::Create {
                pending.task = id.map_or(0, |id| collector.task(pending.server, &id));
            }
        }
        answer.retry_after_s = envelope.retry_after_s;
        self.remember(key, pending);
        if method == Method::Create && pending.task == 0 && outcome == Outcome::Good {
            collector.other_messages += 2; // a call without a task, and its answer
            return Ok(());
        }
        collector.answered(&pending.request(method), at, &answer);
        Ok(())
    }

    fn remember(&mut self, key: u64, pending: Pending) {
        if self.order.len() >= RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.recent.remove(&oldest);
        }
        if self.recent.insert(key, pending).is_none() {
            self.order.push_back(key);
        }
    }
}

impl Pending {
    fn request(&self, method: Method) -> Request {
        Request {
            sent: self.sent,
            tenant: self.tenant,
            server: self.server,
            task: self.task,
            method,
        }
    }
}
