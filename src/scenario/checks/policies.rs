//! Whether the parts of a policy fit.

use super::super::fields::Reader;
use super::super::units::Duration;
use super::super::written::{
    Backoff, Conflict, HintClass, Jitter, JsonType, OnError, OnQuestion, Outcome, Policy, Role,
    Schedule, Then,
};
use super::{Check, MAX_ERRORS, MAX_REQUESTS_PER_POLL, MAX_STEPS};

impl Check<'_> {
    pub(super) fn policy(&self, name: &str, policy: &Policy, reader: &mut Reader) {
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
            .and_then(|e| e.initial.zip(e.cap));
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
        if let Some(errors) = policy.max_errors.filter(|n| n.0 > MAX_ERRORS) {
            self.error(
                reader,
                &at("max_errors"),
                "too many errors in a row",
                format!("found {}", errors.0),
                format!("at most {MAX_ERRORS}; leave it out for no limit"),
            );
        }
        if policy.requests_per_poll.0 > MAX_REQUESTS_PER_POLL {
            self.error(
                reader,
                &at("requests_per_poll"),
                "too many requests in one poll",
                format!("found {}", policy.requests_per_poll.0),
                format!("at most {MAX_REQUESTS_PER_POLL}"),
            );
        }
        for (key, limit) in [
            ("max_questions", policy.max_questions),
            ("stuck_after", policy.stuck_after),
        ] {
            if let Some(found) = limit.filter(|n| n.0 >= MAX_ERRORS) {
                self.error(
                    reader,
                    &at(key),
                    "too many answers to count",
                    format!("found {}", found.0),
                    format!("at most {}; leave it out for no limit", MAX_ERRORS - 1),
                );
            }
        }
        if let Backoff::Steps(steps) = &policy.backoff
            && steps.iter().map(|s| u64::from(s.waits.0)).sum::<u64>() > MAX_STEPS
        {
            self.error(
                reader,
                &at("backoff"),
                "the table is too long",
                format!("found more than {MAX_STEPS} waits"),
                "make it shorter: its last step repeats for ever",
            );
        }
        if policy.batch.0 > 1 && policy.schedule == Schedule::PerTask {
            self.error(
                reader,
                &at("batch"),
                "tasks share a request only where they have a common timer",
                "schedule is \"per_task\"",
                "add schedule = \"earliest_due\", or leave it out",
            );
        }
        let holds = policy.long_poll.is_some() || policy.on_question == OnQuestion::AwaitsResult;
        if policy.batch.0 > 1 && (holds || policy.requests_per_poll.0 > 1) {
            self.error(
                reader,
                &at("batch"),
                "a request for several tasks is one, and is answered at once",
                "found long_poll, on_question = \"awaits_result\" or requests_per_poll",
                "leave one of them out",
            );
        }
        if policy.on_abort.cancel_bound.is_some() && policy.on_abort.then != Then::Cancel {
            self.error(
                reader,
                &at("on_abort.cancel_bound"),
                "it bounds the wait for the answer to `tasks/cancel`",
                "no `tasks/cancel` is sent",
                "add then = \"cancel\", or leave it out",
            );
        }
        if policy.jitter == Jitter::None && policy.jitter_step > Duration(0) {
            self.error(
                reader,
                &at("jitter_step"),
                "there is no jitter",
                "never used",
                "add jitter = …, or leave it out",
            );
        }
        if let (Some(timeout), Some(hold)) = (policy.timeout, policy.long_poll)
            && timeout <= hold
        {
            let place = self.place(&at("long_poll"));
            reader.within(&at("long_poll"), |r| {
                r.warning(
                    &place,
                    format!(
                        "the host gives a request up after {}, and the server holds it for {}",
                        timeout.0, hold.0
                    ),
                    "held for longer than the timeout",
                    "make the timeout longer, or the hold shorter",
                )
            });
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
            let no_number = matches!(
                rule.class,
                Some(HintClass::Absent | HintClass::Null | HintClass::Text)
            ) || matches!(rule.json, Some(JsonType::String | JsonType::Null));
            let wants_number = matches!(
                rule.then,
                Outcome::Use | Outcome::Round | Outcome::Truncate | Outcome::WrapI64Ns
            );
            if no_number && (wants_number || rule.min.is_some() || rule.max.is_some()) {
                self.error(
                    reader,
                    &at,
                    "such a hint is no number",
                    "matches nothing",
                    "choose another outcome, such as default, absent or reject, and leave min and max out",
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
}
