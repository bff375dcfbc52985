//! From the written scenario to the model.

use super::distribution::{Sampler, TimeSampler, cumulative};
use super::hints::{HintSource, Mix, Part, Steps};
use super::partition;
use super::{
    Abort, Arrivals, Breaker, Budget, Carrier, Cost, HostLoop, Input, Lane, Limit, MinimumGap,
    Model, Notices, Notifications, Outage, Pair, Partition, Push, Reconnect, Retries, RetryAfter,
    Schedule, ServerClass, Slow, TenantClass, Then,
};
use crate::policy::{self, FOREVER, LastWait, Policy, RawHint, Steady};
use crate::scenario::units::Duration;
use crate::scenario::{Fnv, Scenario, written};

impl Model {
    /// Compiles a checked scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let horizon = scenario.run.horizon.0.0;
        let mut servers: Vec<&written::Server> = scenario.server.iter().collect();
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut tenants: Vec<&written::Tenant> = scenario.tenant.iter().collect();
        tenants.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<&String> = scenario.policy.keys().collect();
        let mut model = Model {
            seed: scenario.run.seed,
            horizon,
            warm_up: scenario.run.warm_up.0,
            stop: if scenario.run.drain == written::Drain::All {
                u64::MAX
            } else {
                horizon
            },
            event_limit: scenario.run.event_limit.unwrap_or(u64::MAX),
            tenants: Vec::new(),
            servers: Vec::new(),
            policies: scenario
                .policy
                .iter()
                .map(|(name, p)| compile_policy(name, p))
                .collect(),
            carriers: scenario.policy.values().map(compile_carrier).collect(),
            pairs: Vec::new(),
            budget: scenario.budget.as_ref().map(Budget::new),
            scenario_hash: scenario.hash(),
            partition: Partition::Whole,
            threads: 1,
        };
        for server in &servers {
            let first = model.server_count();
            model.servers.push(compile_server(server, first, scenario));
        }
        for tenant in tenants {
            let (first_member, first_host) = (model.members(), model.hosts());
            let policy = names
                .iter()
                .position(|n| **n == tenant.policy)
                .unwrap_or_default();
            let class = |name: &String| {
                servers
                    .iter()
                    .position(|s| s.name == *name)
                    .unwrap_or_default() as u16
            };
            let ends = [
                &tenant.ends.completed,
                &tenant.ends.failed,
                &tenant.ends.cancelled,
            ];
            let mut end_shares = [1.0; 3];
            end_shares.copy_from_slice(&cumulative(ends.iter().map(|w| w.0)));
            model.tenants.push(TenantClass {
                name: tenant.name.clone(),
                first_member,
                count: tenant.count.0,
                key: name_key(&tenant.name),
                arrivals: compile_arrivals(&tenant.arrivals),
                duration: TimeSampler::new(&tenant.duration),
                server_shares: cumulative(tenant.servers.values().map(|w| w.0)),
                server_classes: tenant.servers.keys().map(class).collect(),
                end_shares,
                creation_delay: TimeSampler::new(&tenant.creation_delay),
                abort: tenant
                    .abort
                    .as_ref()
                    .map(|abort| compile_abort(abort, scenario.policy.get(&tenant.policy))),
                policy,
                first_host,
                hosts: tenant.hosts.0,
                weight: tenant.weight.0,
                input: tenant.input.as_ref().map(Input::new),
                reconnect: tenant.reconnect.as_ref().map(Reconnect::new),
                host_loop: tenant.host_loop.as_ref().map(HostLoop::new),
                cost: Cost {
                    request: tenant.cost.request.0,
                    poll_tokens: tenant.cost.poll_tokens.0,
                    token: tenant.cost.token.0,
                },
            });
        }
        model.pairs = model
            .tenants
            .iter()
            .flat_map(|tenant| model.servers.iter().map(move |server| (tenant, server)))
            .map(|(tenant, server)| {
                let carrier = &model.carriers[tenant.policy];
                Pair {
                    delay: if carrier.on_server {
                        TimeSampler::Constant(0)
                    } else {
                        server.delay.clone()
                    },
                    guarded: guarded(server) || carrier.requests_per_poll > 1,
                    coupled: coupled(&model, tenant, server, carrier),
                    waits: match server.hint {
                        HintSource::Constant(hint) => {
                            Steady::new(&model.policies[tenant.policy], hint)
                        }
                        _ => None,
                    },
                    lane: None,
                    coupled_lane: None,
                }
            })
            .collect();
        find_lanes(&mut model);
        model.partition = partition::worth_while(&model);
        model
    }
}

/// Can anything but a full queue keep a poll from being served, or change what it reads?
fn guarded(server: &ServerClass) -> bool {
    !server.limits.is_empty()
        || server.minimum_gap.is_some()
        || server.outage.is_some()
        || !server.slow.is_empty()
        || server.request_loss > 0.0
        || server.answer_loss > 0.0
        || server.ttl < FOREVER
        || server.growth > 0.0
        || server.retry_after_on_success.is_some()
}

/// Finds the lanes of all pairs.
pub(super) fn find_lanes(model: &mut Model) {
    for i in 0..model.pairs.len() {
        let lane = lane(model, i);
        let pair = &mut model.pairs[i];
        (pair.lane, pair.coupled_lane) = if pair.coupled {
            (None, lane)
        } else {
            (lane, None)
        };
    }
}

/// What polls in the middle of a loop need to know; `None` where they are not all alike.
fn lane(model: &Model, pair: usize) -> Option<Lane> {
    let server = &model.servers[pair % model.servers.len()];
    let tenant = &model.tenants[pair / model.servers.len()];
    let (policy, carrier) = (
        &model.policies[tenant.policy],
        &model.carriers[tenant.policy],
    );
    let pair = &model.pairs[pair];
    let fails = server.outage.is_some()
        || server.request_loss > 0.0
        || server.answer_loss > 0.0
        || server.ttl < FOREVER
        || server.minimum_gap.is_some()
        || server.retry_after_on_success.is_some();
    let changes = server.reads_late() || !server.slow.is_empty() || server.growth > 0.0;
    // Rate limits couple the polls of different tasks, but for that they are alike.
    let guarded = !pair.coupled && pair.guarded || carrier.on_server && !server.limits.is_empty();
    let hosts = tenant.host_loop.is_some() || tenant.reconnect.is_some() || tenant.input.is_some();
    let carried = carrier.requests_per_poll > 1
        || carrier.hold > 0
        || carrier.lease
        || carrier.push != Push::Ignored && server.notifications.is_some()
        || carrier.schedule != Schedule::PerTask;
    if guarded || fails || changes || hosts || carried || !policy.fixed_delay {
        return None;
    }
    let hint = match server.hint {
        HintSource::Constant(hint) => Some(hint),
        _ => None,
    };
    let mut lifetime = policy.give_up_after;
    if policy.ends_at_ttl {
        lifetime = lifetime.min(server.ttl);
    }
    if let LastWait::TrimmedLess(least) = policy.last_wait {
        lifetime = lifetime.saturating_sub(least).saturating_sub(1);
    }
    Some(Lane {
        policy: tenant.policy,
        max_polls: policy.max_polls,
        draws_jitter: policy.jitter.draws(),
        overhead: policy.timer.overhead,
        hint,
        instant: server.is_instant(),
        service: server.service.clone(),
        queue_limit: server.queue_limit,
        lifetime,
        timeout: carrier.timeout,
    })
}

/// Do loops of this pair depend on each other, or on something that only the clock can tell?
fn coupled(model: &Model, tenant: &TenantClass, server: &ServerClass, carrier: &Carrier) -> bool {
    let host = tenant.reconnect.is_some() || tenant.host_loop.is_some() || tenant.input.is_some();
    let carried = carrier.timeout < FOREVER
        || carrier.requests_per_poll > 1
        || carrier.retries.is_some()
        || carrier.hold > 0
        || carrier.breaker.is_some()
        || carrier.schedule != Schedule::PerTask
        || carrier.in_flight < u32::MAX;
    let pushed = carrier.push != Push::Ignored && server.notifications.is_some();
    let lost = server.request_loss > 0.0
        || server.answer_loss > 0.0
        || server
            .outage
            .as_ref()
            .is_some_and(|o| o.silent || server.reads_late());
    let bounded_abort = tenant
        .abort
        .as_ref()
        .is_some_and(|a| a.grace < FOREVER || a.then == Then::Cancel && a.cancel_bound > 0);
    model.budget.is_some()
        || host
        || carried
        || pushed
        || lost
        || bounded_abort
        || server.minimum_gap.is_some()
}

/// The root of a class's draws: its name, not its place in the file.
fn name_key(name: &str) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.eat(name.as_bytes());
    hash.0
}

fn compile_server(server: &written::Server, first: u32, scenario: &Scenario) -> ServerClass {
    ServerClass {
        name: server.name.clone(),
        first,
        count: server.count.0,
        executes: server.executes.map_or(u32::MAX, |c| c.0),
        workers: server.tasks_get.workers.0,
        service: TimeSampler::new(&server.tasks_get.service).tabulated(),
        queue_limit: server.tasks_get.queue.unwrap_or(u64::MAX),
        delay: TimeSampler::new(&server.delay).tabulated(),
        hint: match &server.hint {
            None => HintSource::Constant(RawHint::Absent),
            Some(written::HintRef::Constant(ms)) => HintSource::Constant(RawHint::Number(*ms)),
            Some(written::HintRef::Name(name)) => compile_hint(&scenario.hint[name]),
        },
        growth: server.tasks_get.growth.0,
        limits: server.limits.iter().filter_map(Limit::new).collect(),
        retry_after: RetryAfter::new(&server.retry_after),
        retry_after_on_success: server.retry_after_on_success.map(|d| d.0),
        minimum_gap: server.minimum_gap.as_ref().map(MinimumGap::new),
        outage: server.outage.as_ref().map(Outage::new),
        slow: server.slow.iter().map(Slow::new).collect(),
        request_loss: server.loss.request.0,
        answer_loss: server.loss.answer.0,
        ttl: server.ttl.map_or(FOREVER, |s| s.0.0),
        notifications: server.notifications.as_ref().map(Notifications::new),
        key: name_key(&server.name),
    }
}

fn compile_carrier(p: &written::Policy) -> Carrier {
    use written as w;
    Carrier {
        timeout: p.timeout.map_or(FOREVER, |s| s.0.0),
        requests_per_poll: p.requests_per_poll.0,
        retries: p.retries.as_ref().map(Retries::new),
        unknown_ends: p.on_unknown_task == w::OnUnknown::End,
        hold: p.long_poll.map_or(0, |s| s.0.0),
        push: match p.push {
            w::Push::Ignored => Push::Ignored,
            w::Push::Wakes => Push::Wakes,
            w::Push::Replaces => Push::Replaces,
            w::Push::Restarts => Push::Restarts,
            w::Push::Postpones => Push::Postpones,
        },
        on_server: p.runs == w::Runs::OnServer,
        breaker: p.breaker.as_ref().map(Breaker::new),
        schedule: match p.schedule {
            w::Schedule::PerTask => Schedule::PerTask,
            w::Schedule::LeastInterval => Schedule::LeastInterval,
            w::Schedule::EarliestDue => Schedule::EarliestDue,
        },
        batch: p.batch.0,
        lease: p.lease,
        in_flight: p.in_flight.map_or(u32::MAX, |c| c.0),
    }
}

fn compile_hint(hint: &written::Hint) -> HintSource {
    let mix = || Mix {
        shares: cumulative(hint.mix.iter().map(|p| p.weight.0)),
        parts: hint.mix.iter().map(|p| compile_wire(&p.wire)).collect(),
    };
    let steps = || {
        let step = |s: &written::HintStep| {
            let from = match s.from {
                written::StepStart::Age(age) => age.0 as f64,
                written::StepStart::Number(x) => x,
            };
            (from, compile_wire(&s.wire))
        };
        Steps(hint.steps.iter().map(step).collect()).tabulated()
    };
    match hint.drawn {
        written::Drawn::PerTask | written::Drawn::PerAnswer => match &hint.mix[..] {
            [only] if let Part::Fixed(hint) = compile_wire(&only.wire) => {
                HintSource::Constant(hint)
            }
            _ if hint.drawn == written::Drawn::PerTask => HintSource::PerTask(mix(), None),
            _ => HintSource::PerAnswer(mix().tabulated()),
        },
        written::Drawn::InTurn => {
            let tasks: f64 = hint.mix.iter().map(|p| p.weight.0).sum();
            HintSource::PerTask(mix(), Some(tasks as u32))
        }
        written::Drawn::ByProgress => HintSource::ByProgress(steps()),
        written::Drawn::ByAge => HintSource::ByAge(steps()),
        written::Drawn::ByLoad => HintSource::ByLoad(steps()),
    }
}

fn compile_wire(wire: &written::Wire) -> Part {
    Part::Fixed(match wire {
        written::Wire::Ms(ms) => {
            let sampler = Sampler::new(ms);
            match sampler.as_constant() {
                Some(ms) => RawHint::Number(libm::rint(ms)),
                None => return Part::Drawn(Box::new(sampler)),
            }
        }
        written::Wire::Absent => RawHint::Absent,
        written::Wire::Null => RawHint::Null,
        written::Wire::Value(ms) => RawHint::Number(*ms),
        written::Wire::Text(text) => RawHint::Text(read_number(text)),
    })
}

/// The number that a lenient parser reads in a text, NaN where there is none.
fn read_number(text: &str) -> f64 {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    text.parse().unwrap_or(f64::NAN)
}

fn compile_arrivals(arrivals: &written::Arrivals) -> Arrivals {
    let limit = |tasks: Option<crate::scenario::fields::Count>| tasks.map_or(u32::MAX, |c| c.0);
    match arrivals {
        written::Arrivals::AtOnce(a) => Arrivals::AtOnce {
            tasks: a.tasks.0,
            at: a.at.0,
        },
        written::Arrivals::Offset(a) => Arrivals::Offset {
            tasks: a.tasks.0,
            after: TimeSampler::new(&a.after),
        },
        written::Arrivals::Periodic(a) => Arrivals::Periodic {
            every: a.every.0.0,
            phase: TimeSampler::new(&a.phase),
            limit: limit(a.tasks),
        },
        written::Arrivals::Poisson(a) => Arrivals::Poisson {
            gap: 1e9 / a.rate.per_second(),
            limit: limit(a.tasks),
        },
        written::Arrivals::OnOff(a) => Arrivals::OnOff {
            gap: 1e9 / a.rate.per_second(),
            on: TimeSampler::new(&a.on),
            off: TimeSampler::new(&a.off),
        },
        written::Arrivals::Recorded(a) => {
            Arrivals::Recorded(a.0.sorted.iter().map(|ns| *ns as u64).collect())
        }
        written::Arrivals::ClosedLoop(a) => Arrivals::ClosedLoop {
            tasks: a.tasks.0,
            think: TimeSampler::new(&a.think),
        },
    }
}

/// What the tenant leaves open its policy says.
fn compile_abort(abort: &written::Abort, policy: Option<&written::Policy>) -> Abort {
    let manner = abort.manner(policy.map(|p| &p.on_abort));
    Abort {
        probability: abort.probability.0,
        after: abort.after.as_ref().map(TimeSampler::new),
        shutdown_at: abort.shutdown_at.map(|d| d.0),
        deadline: abort.deadline.map(|d| d.0),
        waits_for_request: manner.request == written::InFlight::Waits,
        then: match manner.then {
            written::Then::Detach => Then::Detach,
            written::Then::Cancel => Then::Cancel,
            written::Then::Forget => Then::Forget,
        },
        cancel_bound: manner.cancel_bound.map_or(0, |d| d.0),
        grace: manner.grace.map_or(FOREVER, |d| d.0),
        notices: match manner.notifications {
            written::CancelNotices::None => Notices::None,
            written::CancelNotices::One => Notices::One,
            written::CancelNotices::PerRequest => Notices::PerRequest,
        },
    }
}

/// A policy as written, ready to run.
pub fn compile_policy(name: &str, p: &written::Policy) -> Policy {
    use written as w;
    let ns = |d: Option<Duration>| d.map(|d| d.0);
    let (mut floor, mut ceiling) = (ns(p.floor).unwrap_or(0), ns(p.ceiling).unwrap_or(FOREVER));
    match p.bounds_conflict {
        w::Conflict::FloorWins => ceiling = ceiling.max(floor),
        w::Conflict::CeilingWins => floor = floor.min(ceiling),
        w::Conflict::Error => {}
    }
    let rules: Vec<policy::Rule> = p.rules.iter().map(compile_rule).collect();
    Policy {
        name: name.into(),
        role: match p.role {
            w::Role::Value => policy::Role::Value,
            w::Role::Ignored => policy::Role::Ignored,
            w::Role::Floor => policy::Role::Floor,
            w::Role::RampCeiling => policy::Role::RampCeiling,
        },
        read: match p.read {
            w::ReadAt::EveryAnswer => policy::ReadAt::EveryAnswer,
            w::ReadAt::Creation => policy::ReadAt::Creation,
            w::ReadAt::FirstAnswer => policy::ReadAt::FirstAnswer,
        },
        absent: match p.absent {
            w::WhenAbsent::Default => policy::WhenAbsent::Default,
            w::WhenAbsent::KeepLast => policy::WhenAbsent::KeepLast,
            w::WhenAbsent::Creation => policy::WhenAbsent::Creation,
        },
        rules: policy::Rules::new(&rules),
        default: p.default.0,
        floor,
        ceiling,
        ceiling_cuts_hints: p.ceiling_covers == w::Covers::All,
        bounds: match p.bounds {
            w::BoundsAt::Final => policy::BoundsAt::Final,
            w::BoundsAt::BeforeJitter => policy::BoundsAt::BeforeJitter,
            w::BoundsAt::BeforeBackoff => policy::BoundsAt::BeforeBackoff,
        },
        backoff: match &p.backoff {
            w::Backoff::None => policy::Backoff::None,
            w::Backoff::Geometric(g) => policy::Backoff::geometric(
                g.initial.map(|s| s.0.0),
                g.factor.0,
                g.cap.map(|s| s.0.0),
            ),
            w::Backoff::Additive(a) => policy::Backoff::Additive {
                step: a.step.0.0,
                cap: a.cap.map_or(FOREVER, |s| s.0.0),
            },
            w::Backoff::Steps(steps) => {
                policy::Backoff::steps(steps.iter().map(|s| (s.waits.0, s.wait.0.0)))
            }
        },
        hints_stop_backoff: p.backoff_of == w::BackoffOf::WithoutHint,
        reset: match p.backoff_reset {
            w::Reset::OnChange => policy::Reset::OnChange,
            w::Reset::OnChangeOrError => policy::Reset::OnChangeOrError,
            w::Reset::Never => policy::Reset::Never,
        },
        errors: match (&p.on_error, &p.error_backoff) {
            (w::OnError::End, _) => policy::OnError::End,
            (w::OnError::Retry, None) => policy::OnError::Retry,
            (w::OnError::Retry, Some(e)) => policy::OnError::BackOff {
                waits: policy::Backoff::geometric(
                    e.initial.map(|s| s.0.0),
                    e.factor.0,
                    e.cap.map(|s| s.0.0),
                ),
                reset_on_success: e.reset == w::ErrorReset::OnSuccess,
                sticks: e.sticks,
            },
        },
        timeouts_are_errors: p.on_timeout == w::OnTimeout::IsError,
        jitter: match &p.jitter {
            w::Jitter::None => policy::Jitter::None,
            w::Jitter::Full => policy::Jitter::Full,
            w::Jitter::Equal => policy::Jitter::Equal,
            w::Jitter::Proportional(share) => policy::Jitter::proportional(share.0),
            w::Jitter::Additive(span) => policy::Jitter::Additive(span.0.0),
            w::Jitter::Minus(span) => policy::Jitter::Minus(span.0.0),
            w::Jitter::Window(low) => policy::Jitter::Window(low.0),
            w::Jitter::Decorrelated(factor) => policy::Jitter::Decorrelated { factor: factor.0 },
        },
        jitter_step: p.jitter_step.0,
        first_poll: match p.first_poll {
            w::FirstPoll::AtOnce => policy::FirstPoll::AtOnce,
            w::FirstPoll::AfterWait => policy::FirstPoll::AfterWait,
            w::FirstPoll::After(wait) => policy::FirstPoll::After(wait.0),
        },
        fixed_delay: p.pace == w::Pace::FixedDelay,
        timer: policy::Timer {
            quantum: p.timer.quantum.0,
            minimum: p.timer.minimum.0,
            maximum: p.timer.maximum.map_or(FOREVER, |s| s.0.0),
            beyond: match p.timer.beyond {
                w::Beyond::Minimum => p.timer.minimum.0,
                w::Beyond::Maximum => p.timer.maximum.map_or(FOREVER, |s| s.0.0),
                w::Beyond::Forever => FOREVER,
            },
            overhead: p.timer.overhead.0,
        },
        manner: match p.wait {
            w::WaitManner::Interruptible => policy::WaitManner::Interruptible,
            w::WaitManner::CheckedAfterSleep => policy::WaitManner::CheckedAfterSleep,
            w::WaitManner::Sliced(slice) => policy::WaitManner::Sliced(slice.0.0),
            w::WaitManner::Ignored => policy::WaitManner::Ignored,
        },
        give_up_after: ns(p.give_up_after).unwrap_or(FOREVER),
        last_wait: match &p.last_wait {
            w::LastWait::Slept => policy::LastWait::Slept,
            w::LastWait::Refused => policy::LastWait::Refused,
            w::LastWait::Trimmed => policy::LastWait::Trimmed,
            w::LastWait::TrimmedLess(least) => policy::LastWait::TrimmedLess(least.0.0),
        },
        ends_at_ttl: p.ends_at_ttl,
        max_polls: p.max_polls.map_or(u32::MAX, |c| c.0),
        fetches_result: p.at_end == w::AtEnd::TasksResult,
        slow_down: p.slow_down.0,
        max_errors: p.max_errors.map_or(u32::MAX, |c| c.0),
        on_question: match p.on_question {
            w::OnQuestion::PollsOn => policy::OnQuestion::PollsOn,
            w::OnQuestion::PollsAtOnce => policy::OnQuestion::PollsAtOnce,
            w::OnQuestion::PollsOnceMore => policy::OnQuestion::PollsOnceMore,
            w::OnQuestion::AwaitsResult => policy::OnQuestion::AwaitsResult,
            w::OnQuestion::Ends => policy::OnQuestion::Ends,
        },
        max_questions: p.max_questions.map_or(u8::MAX, |c| c.0 as u8),
        stuck_after: p.stuck_after.map_or(u8::MAX, |c| c.0 as u8),
        cancels: policy::Cancels {
            at_deadline: p.cancels.contains(&w::CancelsAt::Deadline),
            at_error: p.cancels.contains(&w::CancelsAt::Error),
            at_question: p.cancels.contains(&w::CancelsAt::Question),
        },
        retry_after: match &p.retry_after {
            w::OnRetryAfter::Ignored => policy::OnRetryAfter::Ignored,
            w::OnRetryAfter::Obeyed(o) => policy::OnRetryAfter::Obeyed {
                is_wait: o.role == w::RetryRole::Wait,
                ceiling: if o.ceiling { ceiling } else { FOREVER },
                limit: ns(o.limit.map(|s| s.0)).unwrap_or(FOREVER),
                beyond: match o.beyond {
                    w::BeyondLimit::Cut => policy::BeyondLimit::Cut,
                    w::BeyondLimit::Ignore => policy::BeyondLimit::Ignore,
                    w::BeyondLimit::End => policy::BeyondLimit::End,
                },
                on_success: o.on_success,
            },
        },
    }
}

fn compile_rule(rule: &written::Rule) -> policy::Rule {
    use written as w;
    policy::Rule {
        class: rule.class.as_ref().map(|class| match class {
            w::HintClass::Absent => policy::HintClass::Absent,
            w::HintClass::Null => policy::HintClass::Null,
            w::HintClass::Zero => policy::HintClass::Zero,
            w::HintClass::Negative => policy::HintClass::Negative,
            w::HintClass::Fractional => policy::HintClass::Fractional,
            w::HintClass::NonFinite => policy::HintClass::NonFinite,
            w::HintClass::Text => policy::HintClass::Text,
            w::HintClass::BeyondI32Ms => policy::HintClass::BeyondI32Ms,
            w::HintClass::BeyondI64Ns => policy::HintClass::BeyondI64Ns,
            w::HintClass::Sane => policy::HintClass::Sane,
        }),
        json: rule.json.as_ref().map(|json| match json {
            w::JsonType::Number => policy::JsonType::Number,
            w::JsonType::Integer => policy::JsonType::Integer,
            w::JsonType::String => policy::JsonType::String,
            w::JsonType::Null => policy::JsonType::Null,
        }),
        min_ms: rule.min.map(|n| n.0),
        max_ms: rule.max.map(|n| n.0),
        outcome: match rule.then {
            w::Outcome::Use => policy::Outcome::Use,
            w::Outcome::Default => policy::Outcome::Default,
            w::Outcome::Absent => policy::Outcome::Absent,
            w::Outcome::Floor => policy::Outcome::Floor,
            w::Outcome::Ceiling => policy::Outcome::Ceiling,
            w::Outcome::Round => policy::Outcome::Round,
            w::Outcome::Truncate => policy::Outcome::Truncate,
            w::Outcome::Parse => policy::Outcome::Parse,
            w::Outcome::WrapI32Timer => policy::Outcome::WrapI32Timer,
            w::Outcome::WrapI64Ns => policy::Outcome::WrapI64Ns,
            w::Outcome::Forever => policy::Outcome::Forever,
            w::Outcome::Forget => policy::Outcome::Forget,
            w::Outcome::Error => policy::Outcome::Error,
            w::Outcome::Reject => policy::Outcome::Reject,
        },
    }
}
