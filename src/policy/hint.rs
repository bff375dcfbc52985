//! Raw hints and what a host makes of them before any bound.

use super::{FOREVER, Nanos};

/// A hint as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawHint {
    /// The key is not there.
    Absent,
    /// `null`.
    Null,
    /// A number of milliseconds, however bad.
    Number(f64),
    /// A string; the number that a lenient parser reads in it, NaN where there is none.
    Text(f64),
}

/// The classes of raw hints, each with its own outcome in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HintClass {
    /// The key is not there.
    Absent,
    /// `null`.
    Null,
    /// 0.
    Zero,
    /// Below 0.
    Negative,
    /// Not whole.
    Fractional,
    /// NaN or infinite.
    NonFinite,
    /// A string.
    Text,
    /// Above 2^31 - 1 ms.
    BeyondI32Ms,
    /// Above 2^63 - 1 ns.
    BeyondI64Ns,
    /// Whole, positive, not beyond.
    Sane,
}

impl HintClass {
    /// How many classes there are.
    pub const COUNT: usize = 10;
    /// All of them, in the order of their numbers.
    pub const ALL: [HintClass; Self::COUNT] = [
        HintClass::Absent,
        HintClass::Null,
        HintClass::Zero,
        HintClass::Negative,
        HintClass::Fractional,
        HintClass::NonFinite,
        HintClass::Text,
        HintClass::BeyondI32Ms,
        HintClass::BeyondI64Ns,
        HintClass::Sane,
    ];

    /// The name in files and results.
    pub fn name(self) -> &'static str {
        match self {
            HintClass::Absent => "absent",
            HintClass::Null => "null",
            HintClass::Zero => "zero",
            HintClass::Negative => "negative",
            HintClass::Fractional => "fractional",
            HintClass::NonFinite => "non_finite",
            HintClass::Text => "text",
            HintClass::BeyondI32Ms => "beyond_i32_ms",
            HintClass::BeyondI64Ns => "beyond_i64_ns",
            HintClass::Sane => "sane",
        }
    }
}

/// 2^31 - 1 ms: the longest wait of a 32-bit millisecond timer.
pub const MAX_I32_MS: f64 = 2_147_483_647.0;
/// 2^63 - 1 ns, in ms.
pub const MAX_I64_NS_IN_MS: f64 = 9_223_372_036_854.775;

impl RawHint {
    /// The class of the hint. A number is negative before it is fractional, and beyond before it is fractional.
    #[inline]
    pub fn class(self) -> HintClass {
        match self {
            RawHint::Absent => HintClass::Absent,
            RawHint::Null => HintClass::Null,
            RawHint::Text(_) => HintClass::Text,
            RawHint::Number(ms) if !ms.is_finite() => HintClass::NonFinite,
            RawHint::Number(ms) if ms < 0.0 => HintClass::Negative,
            RawHint::Number(0.0) => HintClass::Zero,
            RawHint::Number(ms) if ms > MAX_I64_NS_IN_MS => HintClass::BeyondI64Ns,
            RawHint::Number(ms) if ms > MAX_I32_MS => HintClass::BeyondI32Ms,
            RawHint::Number(ms) if libm::trunc(ms) != ms => HintClass::Fractional,
            RawHint::Number(_) => HintClass::Sane,
        }
    }

    /// The number in it, where there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            RawHint::Number(ms) => Some(ms),
            _ => None,
        }
    }
}

/// JSON types that a rule can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// A string.
    String,
    /// `null`.
    Null,
}

/// What becomes of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Used as it is.
    Use,
    /// Replaced by the default.
    Default,
    /// Taken as an answer without a hint.
    Absent,
    /// Replaced by the floor.
    Floor,
    /// Replaced by the ceiling.
    Ceiling,
    /// Rounded to whole ms.
    Round,
    /// Cut to whole ms.
    Truncate,
    /// A string parsed as a number.
    Parse,
    /// Outside 1 to 2^31 - 1 ms it becomes 1 ms.
    WrapI32Timer,
    /// Wrapped as 64-bit nanoseconds.
    WrapI64Ns,
    /// Never polls again.
    Forever,
    /// A kept hint is forgotten; the default is used.
    Forget,
    /// The loop ends with an error.
    Error,
    /// The answer is rejected.
    Reject,
}

/// One rule: every condition given must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The class of the hint.
    pub class: Option<HintClass>,
    /// Its JSON type.
    pub json: Option<JsonType>,
    /// Smallest matching number, ms.
    pub min_ms: Option<f64>,
    /// Largest matching number, ms.
    pub max_ms: Option<f64>,
    /// What becomes of it.
    pub outcome: Outcome,
}

impl Outcome {
    /// Is it made of a number? Then it says nothing of hints that are none.
    pub fn needs_number(self) -> bool {
        use Outcome as O;
        // A 32-bit timer takes anything: what is no number is 1 ms to it.
        matches!(self, O::Use | O::Round | O::Truncate | O::WrapI64Ns)
    }
}

impl HintClass {
    /// Are hints of this class numbers?
    pub fn is_number(self) -> bool {
        !matches!(self, HintClass::Absent | HintClass::Null | HintClass::Text)
    }
}

impl Rule {
    /// Does the rule speak of this hint?
    pub fn matches(&self, hint: RawHint) -> bool {
        if self.outcome.needs_number() && hint.number().is_none() {
            return false;
        }
        let json = match (self.json, hint) {
            (None, _) => true,
            (Some(JsonType::Number), RawHint::Number(_)) => true,
            (Some(JsonType::Integer), RawHint::Number(ms)) => libm::trunc(ms) == ms,
            (Some(JsonType::String), RawHint::Text(_)) => true,
            (Some(JsonType::Null), RawHint::Null) => true,
            _ => false,
        };
        let number = hint.number();
        json && self.class.is_none_or(|c| c == hint.class())
            && self
                .min_ms
                .is_none_or(|min| number.is_some_and(|ms| ms >= min))
            && self
                .max_ms
                .is_none_or(|max| number.is_some_and(|ms| ms <= max))
    }
}

/// The rules of a policy, compiled: one outcome per class where the rules are about classes only.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    by_class: [Outcome; HintClass::COUNT],
    ordered: Vec<Rule>,
}

impl Rules {
    /// The envelope's own: sane and huge values are used (and then bounded), zero becomes the floor, and what is no
    /// valid interval becomes the default. `rules` come first; the first that matches counts.
    pub fn new(rules: &[Rule]) -> Self {
        let mut by_class = [Outcome::Default; HintClass::COUNT];
        by_class[HintClass::Zero as usize] = Outcome::Floor;
        for class in [
            HintClass::Sane,
            HintClass::BeyondI32Ms,
            HintClass::BeyondI64Ns,
        ] {
            by_class[class as usize] = Outcome::Use;
        }
        let only_classes = rules
            .iter()
            .all(|r| r.json.is_none() && r.min_ms.is_none() && r.max_ms.is_none());
        if !only_classes {
            return Rules {
                by_class,
                ordered: rules.to_vec(),
            };
        }
        for class in HintClass::ALL {
            let speaks = |r: &&Rule| {
                r.class.is_none_or(|c| c == class)
                    && (class.is_number() || !r.outcome.needs_number())
            };
            if let Some(rule) = rules.iter().find(speaks) {
                by_class[class as usize] = rule.outcome;
            }
        }
        Rules {
            by_class,
            ordered: Vec::new(),
        }
    }

    /// What becomes of `hint`.
    #[inline]
    pub fn outcome(&self, hint: RawHint, class: HintClass) -> Outcome {
        if self.ordered.is_empty() {
            return self.by_class[class as usize];
        }
        let rule = self.ordered.iter().find(|r| r.matches(hint));
        rule.map_or(self.by_class[class as usize], |r| r.outcome)
    }
}

/// Milliseconds as nanoseconds: below zero none, beyond the range for ever.
#[inline]
pub fn ms_to_ns(ms: f64) -> Nanos {
    // A float beyond the range saturates, and NaN becomes 0.
    ((ms * 1e6 + 0.5) as u64).min(FOREVER)
}

/// Nanoseconds wrapped in 64 bits, as a language with silent overflow computes them.
pub fn wrap_i64_ns(ms: f64) -> Nanos {
    let ns = (ms as i128).wrapping_mul(1_000_000) as i64;
    ns.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_class() {
        let classes = [
            (f64::NAN, HintClass::NonFinite),
            (f64::INFINITY, HintClass::NonFinite),
            (-0.0, HintClass::Zero),
            (0.0, HintClass::Zero),
            (-5.0, HintClass::Negative),
            (0.5, HintClass::Fractional),
            (1.0, HintClass::Sane),
            (2_147_483_647.0, HintClass::Sane),
            (2_147_483_648.0, HintClass::BeyondI32Ms),
            (1e13, HintClass::BeyondI64Ns),
        ];
        for (ms, class) in classes {
            assert_eq!(RawHint::Number(ms).class(), class, "{ms}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rule = |min, max, outcome| Rule {
            class: None,
            json: Some(JsonType::Number),
            min_ms: min,
            max_ms: max,
            outcome,
        };
        let rules = Rules::new(&[
            rule(Some(0.0), Some(10.0), Outcome::Floor),
            rule(Some(5.0), None, Outcome::Error),
        ]);
        let outcome = |ms| rules.outcome(RawHint::Number(ms), RawHint::Number(ms).class());
        assert_eq!(outcome(7.0), Outcome::Floor);
        assert_eq!(outcome(11.0), Outcome::Error);
        assert_eq!(
            outcome(-1.0),
            Outcome::Default,
            "what no rule matches follows the envelope"
        );
    }

    #[test]
    fn wrapping_is_that_of_64_bits() {
        assert_eq!(wrap_i64_ns(1e13), 0, "1e19 ns wraps below zero");
        assert_eq!(wrap_i64_ns(2e13), 1_553_255_926_290_448_384);
        assert_eq!(ms_to_ns(1e15), FOREVER);
        assert_eq!(ms_to_ns(0.5), 500_000);
        assert_eq!(ms_to_ns(-3.0), 0);
    }
}
