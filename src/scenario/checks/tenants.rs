//! Whether tenants fit to servers and policies.

use super::super::distribution::Kind;
use super::super::fields::{Reader, Share};
use super::super::presets;
use super::super::tree::Value;
use super::super::written::{
    Arrivals, DownAnswer, OnUnknown, Push, Server, Tenant, Then, check_weights,
};
use super::{Check, suggestion};

impl Check<'_> {
    pub(super) fn tenant(&self, tenant: &Tenant, reader: &mut Reader) {
        let path = format!("tenant.{}", tenant.name);
        let servers: Vec<&str> = self
            .scenario
            .server
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        let keys = match self.tree.find(&format!("{path}.servers")).map(|n| &n.value) {
            // Where there is no server at all, that was told.
            Some(Value::Table(entries)) if !servers.is_empty() => entries.as_slice(),
            _ => &[],
        };
        for (key, _) in keys.iter().filter(|(k, _)| !servers.contains(&&*k.name)) {
            let name = &key.name;
            reader.within(&format!("{path}.servers"), |r| {
                r.error(
                    &key.place,
                    format!("there is no server \"{name}\""),
                    "unknown server",
                    suggestion(name, &servers, "servers"),
                );
            });
        }
        let at = |key: &str| self.tree.find(&format!("{path}.{key}"));
        if tenant.servers.is_empty() {
            self.error(
                reader,
                &format!("{path}.servers"),
                "its tasks need a server",
                "found no servers",
                "write servers = { NAME = 1 }",
            );
        } else {
            reader.within(&path, |r| {
                r.within("servers", |r| {
                    check_weights(tenant.servers.values(), at("servers"), r)
                })
            });
        }
        let ends = [
            &tenant.ends.completed,
            &tenant.ends.failed,
            &tenant.ends.cancelled,
        ];
        reader.within(&path, |r| {
            r.within("ends", |r| check_weights(ends.into_iter(), at("ends"), r))
        });
        let mut policies: Vec<&str> = self.scenario.policy.keys().map(String::as_str).collect();
        policies.extend(presets::near(&tenant.policy, &policies));
        if !self.scenario.policy.contains_key(&tenant.policy) {
            self.error(
                reader,
                &format!("{path}.policy"),
                format!("there is no [policy.{}]", tenant.policy),
                "unknown policy",
                presets::or_one(suggestion(&tenant.policy, &policies, "policies")),
            );
        }
        if let Some(abort) = &tenant.abort
            && abort.after.is_none()
            && abort.shutdown_at.is_none()
            && abort.deadline.is_none()
        {
            self.error(
                reader,
                &format!("{path}.abort"),
                "an abort needs a time",
                "found none of after, shutdown_at, deadline",
                "write it as in abort = { probability = 0.1, after = \"20s\" }",
            );
        }
        if let Some(abort) = &tenant.abort
            && abort.after.is_none()
            && abort.probability != Share(1.0)
            && (abort.shutdown_at.is_some() || abort.deadline.is_some())
        {
            self.error(
                reader,
                &format!("{path}.abort.probability"),
                "it is the share of the tasks to which `after` applies",
                "found no `after`",
                "add after = …, or leave it out: shutdown_at and deadline apply to every task",
            );
        }
        if let Some(abort) = &tenant.abort
            && abort.cancel_bound.is_some()
            && abort
                .manner(
                    self.scenario
                        .policy
                        .get(&tenant.policy)
                        .map(|p| &p.on_abort),
                )
                .then
                != Then::Cancel
        {
            self.error(
                reader,
                &format!("{path}.abort.cancel_bound"),
                "it bounds the wait for the answer to `tasks/cancel`",
                "no `tasks/cancel` is sent",
                "add then = \"cancel\", or leave it out",
            );
        }
        if let Some(reconnect) = &tenant.reconnect {
            let at = format!("{path}.reconnect");
            match &reconnect.every {
                None if reconnect.at.is_empty() && !self.is_written(&format!("{at}.at")) => self.error(
                    reader,
                    &at,
                    "a reconnect needs a time",
                    "found neither at nor every",
                    "write it as in { at = [\"5min\"] } or { every = { exponential = { mean = \"1h\" } } }",
                ),
                Some(every) if matches!(every.kind, Kind::Constant(t) if t.0 == 0) => self.error(
                    reader,
                    &format!("{at}.every"),
                    "reconnects without a time between them",
                    "found 0",
                    "make it longer",
                ),
                _ => {}
            }
        }
        self.carries(tenant, reader);
        if let Arrivals::OnOff(on_off) = &tenant.arrivals
            && let (Kind::Constant(on), Kind::Constant(off)) = (&on_off.on.kind, &on_off.off.kind)
            && on.0 + off.0 == 0
        {
            self.error(
                reader,
                &format!("{path}.arrivals"),
                "on and off are both zero",
                "a cycle without length",
                "make at least one of them longer",
            );
        }
    }

    /// Warns of what a tenant's policy waits for in vain.
    fn carries(&self, tenant: &Tenant, reader: &mut Reader) {
        let Some(policy) = self.scenario.policy.get(&tenant.policy) else {
            return;
        };
        let used = |s: &&Server| tenant.servers.get(&s.name).is_some_and(|w| w.0 > 0.0);
        let mut servers = self.scenario.server.iter().filter(used);
        let loses = |s: &Server| {
            let silent = s
                .outage
                .as_ref()
                .is_some_and(|o| o.answers == DownAnswer::Silent);
            silent || s.loss.request.0 > 0.0 || s.loss.answer.0 > 0.0
        };
        let at = format!("policy.{}", tenant.policy);
        if policy.timeout.is_none()
            && let Some(server) = servers.clone().find(|s| loses(s))
        {
            let place = self.place(&at);
            reader.within(&at, |r| {
                r.warning(
                    &place,
                    format!(
                        "tenant \"{}\" gives no request up, and server \"{}\" leaves some without an answer",
                        tenant.name, server.name
                    ),
                    "found no timeout",
                    "add timeout = \"60s\", or such a loop waits for ever",
                )
            });
        }
        let forgets = |s: &Server| s.ttl.is_some() || s.outage.as_ref().is_some_and(|o| o.forgets);
        let ends = policy.give_up_after.is_some()
            || policy.max_polls.is_some()
            || policy.max_errors.is_some();
        if policy.on_unknown_task == OnUnknown::Retry
            && !ends
            && let Some(server) = servers.clone().find(|s| forgets(s))
        {
            let at = format!("{at}.on_unknown_task");
            let place = self.place(&at);
            reader.within(&at, |r| {
                r.warning(
                    &place,
                    format!(
                        "tenant \"{}\" polls tasks for ever that server \"{}\" has forgotten",
                        tenant.name, server.name
                    ),
                    "nothing ends such a loop",
                    "write \"end\", or add max_errors, max_polls or give_up_after",
                )
            });
        }
        if policy.push != Push::Ignored && servers.all(|s| s.notifications.is_none()) {
            let at = format!("{at}.push");
            let place = self.place(&at);
            reader.within(&at, |r| {
                r.warning(
                    &place,
                    format!(
                        "no server of tenant \"{}\" sends notifications",
                        tenant.name
                    ),
                    "waits for them in vain",
                    "add notifications = {} to the server",
                )
            });
        }
    }
}
