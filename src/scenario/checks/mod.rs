//! Whether the tables of a scenario fit together: references, bounds, sums, sizes.

mod policies;
mod servers;
mod tenants;

use std::collections::BTreeSet;

use super::diagnostics::{Place, nearest};
use super::distribution::{Distribution, Empirical, Kind, Unit};
use super::fields::Reader;
use super::tree::{Node, Value};
use super::units::MS;
use super::written::{Arrivals, RetryAfter, Scenario, Tenant, Wire};
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
/// Errors in a row that a policy can count.
pub const MAX_ERRORS: u32 = 255;
/// Requests that one poll can send together.
pub const MAX_REQUESTS_PER_POLL: u32 = 10_000;

/// Waits in a table of a backoff: so many a loop counts.
const MAX_STEPS: u64 = u16::MAX as u64;

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
    check.budget(reader);
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
        if let RetryAfter::After(time) = &server.retry_after {
            visit(time, each);
        }
        if let Some(random) = server.outage.as_ref().and_then(|o| o.random.as_ref()) {
            visit(&random.up, each);
            visit(&random.down, each);
        }
        if let Some(notifications) = &server.notifications {
            visit(&notifications.delay, each);
        }
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
        if let Some(every) = tenant.reconnect.as_ref().and_then(|r| r.every.as_ref()) {
            visit(every, each);
        }
        if let Some(input) = &tenant.input {
            visit(&input.after, each);
            visit(&input.answer, each);
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
        let several = |t: &&Tenant| t.hosts.0 > 1;
        let processes = &mut scenario.tenant.iter().filter(several).map(|t| {
            let each = u64::from(t.hosts.0);
            (&*t.name, u64::from(t.count.0).saturating_mul(each))
        });
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
            ("hosts", "tenant", "hosts", processes, MAX_MEMBERS),
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
            // Versions stand in the names of presets.
            let usable = |c: char| usable(c) || kind == "policy" && c == '.';
            if name.is_empty() || !name.chars().all(usable) {
                reader.error(
                    place,
                    format!("{name:?} is not a usable name"),
                    "stands in paths and columns",
                    if kind == "policy" {
                        "use letters, digits, -, _ and dots"
                    } else {
                        "use letters, digits, - and _"
                    },
                );
            }
        }
    }

    /// Is something written at `path` itself?
    fn is_written(&self, path: &str) -> bool {
        self.tree.find(path).is_some()
    }

    /// A budget limits something.
    fn budget(&self, reader: &mut Reader) {
        let Some(budget) = &self.scenario.budget else {
            return;
        };
        let rates = [&budget.fleet, &budget.tenant, &budget.server];
        let places = &budget.pollers;
        let pollers = [&places.host, &places.tenant, &places.server];
        if rates.iter().all(|r| r.is_none()) && pollers.iter().all(|p| p.is_none()) {
            self.error(
                reader,
                "budget",
                "the budget limits nothing",
                "found none of fleet, tenant, server, pollers",
                "write it as in budget = { fleet = { rate = \"800/s\", burst = 20 } }, or leave it out",
            );
        }
    }

    fn objectives(&self, reader: &mut Reader) {
        let names = catalogue::names();
        for (i, objective) in self.scenario.objective.iter().enumerate() {
            let path = format!("objective.{i}");
            if !names.contains(&objective.metric) {
                let help = metric_meant(&objective.metric);
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

/// What may have been meant by the name of a metric that there is not.
pub fn metric_meant(metric: &str) -> String {
    match nearest(metric, catalogue::names().iter().map(String::as_str)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "metrics are named as in summary.csv, such as completion_latency_p99_ms or tasks_get_rate_mean_per_s".into(),
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
