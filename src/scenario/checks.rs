//! Whether the tables of a scenario fit together: references, bounds, sums, sizes.

use std::collections::BTreeSet;

use super::diagnostics::{Place, nearest};
use super::distribution::{Distribution, Empirical, Kind, Unit};
use super::fields::{Reader, Share};
use super::tree::{Node, Value};
use super::units::MS;
use super::written::{
    Arrivals, Backoff, Conflict, Drawn, Hint, HintRef, OnError, Outcome, Policy, Role, Scenario,
    Server, StepStart, Tenant, Wire, check_weights,
};
use crate::catalogue;

/// Hosts (members of all tenant classes) that one run can hold.
pub const MAX_MEMBERS: u64 = 1 << 26;
/// Servers (of all classes) that one run can hold.
pub const MAX_SERVERS: u64 = 1 << 20;
/// Workers (of all servers) that one run can hold.
pub const MAX_WORKERS: u64 = 1 << 28;
/// Replications of one scenario: the values of each are kept.
pub const MAX_REPLICATIONS: u32 = 100_000;
/// Pairs of tenant class and server class that one run can hold.
pub const MAX_PAIRS: usize = 4096;
/// Rate windows (100 ms each, per tenant class and server class) that one run can hold.
pub const MAX_WINDOWS: u64 = 1 << 27;

/// Reports everything that does not fit.
pub fn check(scenario: &Scenario, tree: &Node, reader: &mut Reader) {
    let check = Check { scenario, tree };
    check.run(reader);
    for server in &scenario.server {
        check.server(server, reader);
    }
    for (name, hint) in &scenario.hint {
        check.hint(name, hint, reader);
    }
    for tenant in &scenario.tenant {
        check.tenant(tenant, reader);
    }
    // In the order of the tree, where bases stand before those that extend them.
    if let Some(Value::Table(policies)) = tree.get("policy").map(|node| &node.value) {
        for (key, _) in policies {
            check.policy(&key.name, &scenario.policy[&key.name], reader);
        }
    }
    check.objectives(reader);
}

/// Calls `each` for every CSV column that the scenario uses, in a fixed order.
pub fn each_empirical(scenario: &Scenario, each: &mut impl FnMut(&Empirical)) {
    fn visit<U: Unit>(distribution: &Distribution<U>, each: &mut impl FnMut(&Empirical)) {
        match &distribution.kind {
            Kind::Empirical(e) => each(e),
            Kind::Mixture(parts) => parts.iter().for_each(|(_, part)| visit(part, each)),
            _ => {}
        }
    }
    for server in &scenario.server {
        visit(&server.tasks_get.service, each);
        visit(&server.delay, each);
    }
    for hint in scenario.hint.values() {
        let wires = hint
            .mix
            .iter()
            .map(|p| &p.wire)
            .chain(hint.steps.iter().map(|s| &s.wire));
        for wire in wires {
            if let Wire::Ms(ms) = wire {
                visit(ms, each);
            }
        }
    }
    for tenant in &scenario.tenant {
        visit(&tenant.duration, each);
        visit(&tenant.creation_delay, each);
        if let Some(after) = tenant.abort.as_ref().and_then(|a| a.after.as_ref()) {
            visit(after, each);
        }
        match &tenant.arrivals {
            Arrivals::Offset(a) => visit(&a.after, each),
            Arrivals::Periodic(a) => visit(&a.phase, each),
            Arrivals::OnOff(a) => {
                visit(&a.on, each);
                visit(&a.off, each);
            }
            Arrivals::ClosedLoop(a) => visit(&a.think, each),
            Arrivals::Recorded(a) => each(&a.0),
            Arrivals::AtOnce(_) | Arrivals::Poisson(_) => {}
        }
    }
}

struct Check<'s> {
    scenario: &'s Scenario,
    tree: &'s Node,
}

impl Check<'_> {
    /// Where the value at `path` stands; the nearest table above it where it was left out.
    fn place(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(node) = self.tree.find(path) {
                return node.place.clone();
            }
            match path.rsplit_once('.') {
                Some((above, _)) => path = above,
                None => return self.tree.place.clone(),
            }
        }
    }

    fn error(
        &self,
        reader: &mut Reader,
        path: &str,
        wrong: impl Into<String>,
        found: impl Into<String>,
        right: impl Into<String>,
    ) {
        let place = self.place(path);
        reader.within(path, |reader| reader.error(&place, wrong, found, right));
    }

    fn run(&self, reader: &mut Reader) {
        let scenario = self.scenario;
        if scenario.server.is_empty() {
            self.error(
                reader,
                "server",
                "there is no server",
                "found no [[server]]",
                "add [[server]] with a name",
            );
        }
        if scenario.tenant.is_empty() {
            self.error(
                reader,
                "tenant",
                "there is no tenant",
                "found no [[tenant]]",
                "add [[tenant]] with name, arrivals, duration, servers and policy",
            );
        }
        let horizon = scenario.run.horizon.0;
        if scenario.run.warm_up >= horizon {
            let found = format!("{} of {horizon}", scenario.run.warm_up);
            self.error(
                reader,
                "run.warm_up",
                "the warm-up leaves nothing to observe",
                found,
                "make it shorter than the horizon",
            );
        }
        if scenario.run.replications.0 > MAX_REPLICATIONS {
            self.error(
                reader,
                "run.replications",
                "too many replications",
                format!("found {}", scenario.run.replications.0),
                format!("at most {MAX_REPLICATIONS}; intervals shrink with their square root only"),
            );
        }
        let sizes = |key, sizes: &mut dyn Iterator<Item = (&str, u64)>| -> (u64, String) {
            let (mut all, mut largest) = (0_u64, ("", 0));
            for (name, size) in sizes {
                all = all.saturating_add(size);
                largest = if size > largest.1 {
                    (name, size)
                } else {
                    largest
                };
            }
            (all, format!("{}.{key}", largest.0))
        };
        let hosts = &mut scenario
            .tenant
            .iter()
            .map(|t| (&*t.name, u64::from(t.count.0)));
        let servers = &mut scenario
            .server
            .iter()
            .map(|s| (&*s.name, u64::from(s.count.0)));
        let workers = &mut scenario.server.iter().map(|s| {
            let each = u64::from(s.tasks_get.workers.0);
            (&*s.name, u64::from(s.count.0).saturating_mul(each))
        });
        for (what, kind, key, sizes_of, most) in [
            (
                "tenants",
                "tenant",
                "count",
                hosts as &mut dyn Iterator<Item = _>,
                MAX_MEMBERS,
            ),
            ("servers", "server", "count", servers, MAX_SERVERS),
            (
                "workers",
                "server",
                "tasks_get.workers",
                workers,
                MAX_WORKERS,
            ),
        ] {
            let (all, largest) = sizes(key, sizes_of);
            if all > most {
                self.error(
                    reader,
                    &format!("{kind}.{largest}"),
                    format!("too many {what} for one run"),
                    format!("{all} over all classes"),
                    format!("at most {most}: scale the fleet down, and the results up"),
                );
            }
        }
        let pairs = scenario.server.len() * scenario.tenant.len();
        if pairs > MAX_PAIRS {
            self.error(
                reader,
                "tenant",
                "too many classes for one run",
                format!("{pairs} pairs of tenant and server classes"),
                format!("at most {MAX_PAIRS}: use `count` for those that are alike"),
            );
        }
        let windows = horizon.0.div_ceil(100 * MS).saturating_mul(pairs as u64);
        if windows > MAX_WINDOWS {
            self.error(
                reader,
                "run.horizon",
                "too many rate windows for one run",
                format!("{windows} windows of 100 ms over all pairs of classes"),
                format!("at most {MAX_WINDOWS}: make the horizon shorter, or use fewer classes"),
            );
        }
        for kind in ["server", "tenant", "hint", "policy"] {
            self.names(kind, reader);
        }
    }

    /// Names stand in paths and columns, and there is one of each.
    fn names(&self, kind: &str, reader: &mut Reader) {
        let named: Vec<(&str, &Place)> = match self.tree.get(kind).map(|node| &node.value) {
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(|item| item.get("name"))
                .filter_map(|name| match &name.value {
                    Value::Text(text) => Some((text.as_str(), &name.place)),
                    _ => None,
                })
                .collect(),
            Some(Value::Table(entries)) => entries
                .iter()
                .map(|(key, _)| (key.name.as_str(), &key.place))
                .collect(),
            _ => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for (name, place) in named {
            if !seen.insert(name) {
                reader.error(
                    place,
                    format!("two of [[{kind}]] are called \"{name}\""),
                    "the same name again",
                    "give each its own name",
                );
            }
            let usable = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(usable) {
                reader.error(
                    place,
                    format!("{name:?} is not a usable name"),
                    "stands in paths and columns",
                    "use letters, digits, - and _",
                );
            }
        }
    }

    fn server(&self, server: &Server, reader: &mut Reader) {
        if let Some(HintRef::Name(name)) = &server.hint
            && !self.scenario.hint.contains_key(name)
        {
            let path = format!("server.{}.hint", server.name);
            let known: Vec<&str> = self.scenario.hint.keys().map(String::as_str).collect();
            self.error(
                reader,
                &path,
                format!("there is no [hint.{name}]"),
                "unknown hint",
                suggestion(name, &known, "hints"),
            );
        }
    }

    fn hint(&self, name: &str, hint: &Hint, reader: &mut Reader) {
        let path = format!("hint.{name}");
        let mixed = matches!(hint.drawn, Drawn::PerTask | Drawn::PerAnswer);
        if mixed && !hint.steps.is_empty() {
            self.error(
                reader,
                &format!("{path}.steps"),
                "steps need drawn = \"by_age\", \"by_progress\" or \"by_load\"",
                "drawn per task or per answer",
                "say what the steps follow, or use mix",
            );
        }
        if mixed && hint.mix.is_empty() && hint.steps.is_empty() {
            self.error(
                reader,
                &format!("{path}.mix"),
                "the mixture is empty",
                "found no mix",
                "add mix = [{ weight = 1, value = 1000 }]",
            );
        } else if mixed && !hint.mix.is_empty() {
            let at = format!("{path}.mix");
            reader.within(&at, |r| {
                check_weights(hint.mix.iter().map(|p| &p.weight), self.tree.find(&at), r)
            });
        }
        if mixed {
            return;
        }
        if !hint.mix.is_empty() {
            self.error(
                reader,
                &format!("{path}.mix"),
                "a mixture needs drawn = \"per_task\" or \"per_answer\"",
                "drawn by steps",
                "use steps = [{ from = …, value = … }]",
            );
        } else if hint.steps.is_empty() {
            self.error(
                reader,
                &format!("{path}.steps"),
                "there are no steps",
                "found no steps",
                "add steps = [{ from = …, value = … }]",
            );
        }
        for (i, step) in hint.steps.iter().enumerate() {
            let at = format!("{path}.steps.{i}.from");
            match (&hint.drawn, step.from) {
                (Drawn::ByAge, StepStart::Number(x)) => self.error(
                    reader,
                    &at,
                    "an age is a duration",
                    format!("found {x}"),
                    "write it as in \"10s\"",
                ),
                (Drawn::ByProgress, StepStart::Number(x)) if x <= 1.0 => {}
                (Drawn::ByProgress, _) => self.error(
                    reader,
                    &at,
                    "progress is a number from 0 to 1",
                    match step.from {
                        StepStart::Age(_) => "found a duration".into(),
                        StepStart::Number(x) => format!("found {x}"),
                    },
                    "write it as in 0.5",
                ),
                (Drawn::ByLoad, StepStart::Age(_)) => self.error(
                    reader,
                    &at,
                    "a load is a number of tasks",
                    "found a duration",
                    "write it as in 100",
                ),
                _ => {}
            }
            let before = i.checked_sub(1).map(|j| hint.steps[j].from);
            let falls = match (before, step.from) {
                (Some(StepStart::Age(a)), StepStart::Age(b)) => b <= a,
                (Some(StepStart::Number(a)), StepStart::Number(b)) => b <= a,
                _ => false,
            };
            if falls {
                self.error(
                    reader,
                    &at,
                    "steps must rise",
                    "not above the step before",
                    "put them in order",
                );
            }
        }
    }

    fn tenant(&self, tenant: &Tenant, reader: &mut Reader) {
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
        let policies: Vec<&str> = self.scenario.policy.keys().map(String::as_str).collect();
        if !self.scenario.policy.contains_key(&tenant.policy) {
            self.error(
                reader,
                &format!("{path}.policy"),
                format!("there is no [policy.{}]", tenant.policy),
                "unknown policy",
                suggestion(&tenant.policy, &policies, "policies"),
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

    fn policy(&self, name: &str, policy: &Policy, reader: &mut Reader) {
        let path = format!("policy.{name}");
        let at = |key: &str| format!("{path}.{key}");
        if let (Some(floor), Some(ceiling)) = (policy.floor, policy.ceiling)
            && ceiling < floor
        {
            let place = self.place(&at("ceiling"));
            let wrong = format!("the ceiling {ceiling} is below the floor {floor}");
            match policy.bounds_conflict {
                Conflict::Error => self.error(reader, &at("ceiling"), wrong, "below the floor", "raise it, or say who wins: bounds_conflict = \"floor_wins\" or \"ceiling_wins\""),
                Conflict::FloorWins => reader.within(&at("ceiling"), |r| r.warning(&place, wrong, "has no effect: the floor wins", "raise it, or leave it out")),
                Conflict::CeilingWins => reader.within(&at("ceiling"), |r| r.warning(&place, wrong, "wins: the floor has no effect", "raise it, or leave the floor out")),
            }
        }
        if policy.role == Role::RampCeiling
            && !matches!(&policy.backoff, Backoff::Geometric(g) if g.initial.is_some())
        {
            self.error(
                reader,
                &at("role"),
                "a ramp needs its own start",
                "found no backoff with `initial`",
                "add backoff = { geometric = { initial = \"20ms\", factor = 2 } }",
            );
        }
        let caps = match &policy.backoff {
            Backoff::Geometric(g) => g.initial.zip(g.cap),
            _ => None,
        };
        let error_caps = policy
            .error_backoff
            .as_ref()
            .and_then(|e| e.cap.map(|cap| (e.initial, cap)));
        for (key, caps) in [
            ("backoff.geometric.cap", caps),
            ("error_backoff.cap", error_caps),
        ] {
            if let Some((initial, cap)) = caps
                && cap < initial
            {
                let place = self.place(&at(key));
                let wrong = format!("the cap {} is below the initial wait {}", cap.0, initial.0);
                reader.within(&at(key), |r| {
                    r.warning(
                        &place,
                        wrong,
                        "every wait is the cap",
                        "swap them, or leave the growth out",
                    )
                });
            }
        }
        if let Backoff::Steps(steps) = &policy.backoff
            && steps.is_empty()
        {
            self.error(
                reader,
                &at("backoff"),
                "the table has no steps",
                "found none",
                "write it as in { steps = [{ waits = 6, wait = \"10s\" }] }",
            );
        }
        if let Some(maximum) = policy.timer.maximum
            && maximum.0 < policy.timer.minimum
        {
            self.error(
                reader,
                &at("timer.maximum"),
                "the timer's maximum is below its minimum",
                format!("{} is below {}", maximum.0, policy.timer.minimum),
                format!("make it at least {}", policy.timer.minimum),
            );
        }
        for (i, rule) in policy.rules.iter().enumerate() {
            let at = format!("{path}.rules.{i}");
            if rule.class.is_none()
                && rule.json.is_none()
                && rule.min.is_none()
                && rule.max.is_none()
                && i + 1 < policy.rules.len()
            {
                self.error(
                    reader,
                    &at,
                    "a rule without conditions matches everything",
                    "the rules after it never count",
                    "put it last",
                );
            }
            if let (Some(min), Some(max)) = (rule.min, rule.max)
                && min > max
            {
                self.error(
                    reader,
                    &format!("{at}.max"),
                    "`max` is below `min`",
                    "matches nothing",
                    "swap them",
                );
            }
            let unbounded = match rule.then {
                Outcome::Floor => policy.floor.is_none().then_some("floor"),
                Outcome::Ceiling => policy.ceiling.is_none().then_some("ceiling"),
                _ => None,
            };
            if let Some(bound) = unbounded {
                self.error(
                    reader,
                    &format!("{at}.then"),
                    format!("the policy has no {bound}"),
                    format!("uses the {bound}"),
                    format!("add {bound} = …, or choose another outcome"),
                );
            }
        }
        if policy.on_error == OnError::End && policy.error_backoff.is_some() {
            self.error(
                reader,
                &at("error_backoff"),
                "the loop ends on an error",
                "never used",
                "drop it, or write on_error = \"retry\"",
            );
        }
    }

    fn objectives(&self, reader: &mut Reader) {
        let names = catalogue::names();
        for (i, objective) in self.scenario.objective.iter().enumerate() {
            let path = format!("objective.{i}");
            if !names.contains(&objective.metric) {
                let help = match nearest(&objective.metric, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "metrics are named as in summary.csv, such as completion_latency_p99_ms or tasks_get_rate_mean_per_s".into(),
                };
                self.error(
                    reader,
                    &format!("{path}.metric"),
                    format!("there is no metric \"{}\"", objective.metric),
                    "unknown metric",
                    help,
                );
            }
            let groups = groups(self.scenario);
            if !groups.contains(&objective.over) {
                let known: Vec<&str> = groups.iter().map(String::as_str).collect();
                self.error(
                    reader,
                    &format!("{path}.over"),
                    format!("there is no group \"{}\"", objective.over),
                    "unknown group",
                    suggestion(&objective.over, &known, "groups"),
                );
            }
            if let (Some(min), Some(max)) = (objective.min, objective.max)
                && min > max
            {
                self.error(
                    reader,
                    &format!("{path}.max"),
                    "`max` is below `min`",
                    "cannot be met",
                    "swap them",
                );
            }
        }
    }
}

/// The groups that results are given for: the fleet, each tenant class, each server class.
pub fn groups(scenario: &Scenario) -> Vec<String> {
    let mut tenants: Vec<String> = scenario
        .tenant
        .iter()
        .map(|t| format!("tenant.{}", t.name))
        .collect();
    let mut servers: Vec<String> = scenario
        .server
        .iter()
        .map(|s| format!("server.{}", s.name))
        .collect();
    tenants.sort();
    servers.sort();
    [vec!["fleet".to_string()], tenants, servers].concat()
}

/// What to write instead of a name that is not known.
pub fn suggestion(word: &str, known: &[&str], what: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.is_empty() => format!("this scenario has no {what} yet: add one"),
        None => format!("the {what} are: {}", known.join(", ")),
    }
}
