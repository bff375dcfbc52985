//! Whether servers and their hints fit.

use super::super::distribution::Kind;
use super::super::fields::Reader;
use super::super::units::MS;
use super::super::written::{Drawn, Hint, HintPart, HintRef, Server, StepStart, check_weights};
use super::{Check, suggestion};

impl Check<'_> {
    pub(super) fn server(&self, server: &Server, reader: &mut Reader) {
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
        let path = format!("server.{}", server.name);
        for (i, limit) in server.limits.iter().enumerate() {
            let found = match (&limit.bucket, &limit.quota) {
                (Some(_), None) | (None, Some(_)) => continue,
                (Some(_), Some(_)) => "found both",
                (None, None) => "found neither",
            };
            self.error(
                reader,
                &format!("{path}.limits.{i}"),
                "a limit is a bucket or a quota",
                found,
                "write { per = \"server\", bucket = { rate = \"25/s\", burst = 250 } } or { per = \"tenant\", quota = { requests = 5000, length = \"1h\" } }",
            );
        }
        if let Some(outage) = &server.outage {
            if outage.windows.is_empty()
                && outage.random.is_none()
                && !self.is_written(&format!("{path}.outage.windows"))
            {
                self.error(
                    reader,
                    &format!("{path}.outage"),
                    "an outage needs a time",
                    "found neither windows nor random",
                    "write it as in { windows = [{ from = \"2min\", length = \"30s\" }] } or { random = { up = \"1h\", down = \"30s\" } }",
                );
            }
            if let Some(random) = &outage.random
                && let (Kind::Constant(up), Kind::Constant(down)) =
                    (&random.up.kind, &random.down.kind)
                && up.0 + down.0 < MS
            {
                self.error(
                    reader,
                    &format!("{path}.outage.random"),
                    "up and down are shorter than 1ms together",
                    "a cycle too short",
                    "make at least one of them longer",
                );
            }
        }
    }

    pub(super) fn hint(&self, name: &str, hint: &Hint, reader: &mut Reader) {
        let path = format!("hint.{name}");
        let mixed = matches!(
            hint.drawn,
            Drawn::PerTask | Drawn::InTurn | Drawn::PerAnswer
        );
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
            let whole = |p: &HintPart| p.weight.0.fract() == 0.0 && p.weight.0 < 1e9;
            if hint.drawn == Drawn::InTurn && !hint.mix.iter().all(whole) {
                self.error(
                    reader,
                    &at,
                    "weights of parts in turn are numbers of tasks",
                    "found one that is not whole, or a billion or more",
                    "write it as in mix = [{ weight = 1, value = 500 }, { weight = 9, value = 30000 }]",
                );
            }
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
}
