//! Quantities as a planner writes them: durations, rates, probabilities, counts.
//!
//! Durations are exact integer nanoseconds: `"1.5s"` is parsed digit by digit, not through a float.

use std::fmt;

/// A span of simulated time in nanoseconds, written `"250ms"`, `"1.5s"`, `"2min"`, `"1h"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// The longest duration a file may state: 100 years.
pub const LONGEST: Duration = Duration(100 * 365 * 24 * 3600 * SECOND);

/// The highest rate a file may state: time is counted in whole nanoseconds.
pub const HIGHEST_PER_S: f64 = 1e9;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", MS),
    ("s", SECOND),
    ("min", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("d", 86_400 * SECOND),
];

impl Duration {
    /// Parses `"250ms"`; the error says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        const UNITS_ARE: &str = "the units are ns, us, ms, s, min, h and d, as in \"250ms\"";
        let text = text.trim();
        if text.starts_with('-') {
            return Err("a duration is 0 or above, as in \"250ms\"".into());
        }
        let split = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(text.len());
        let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
        if number.is_empty() {
            return Err(format!("a duration begins with a number: {UNITS_ARE}"));
        }
        let Some(&(_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(if unit.is_empty() {
                format!("a duration needs a unit: {UNITS_ARE}")
            } else {
                format!("there is no unit `{unit}`: {UNITS_ARE}")
            });
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err("a duration begins with one number, as in \"1.5s\"".into());
        }
        let digits = |d: &str| -> Option<u128> {
            if d.is_empty() {
                Some(0)
            } else {
                d.parse().ok()
            }
        };
        let fraction = &fraction[..fraction.len().min(18)];
        let ns = digits(whole)
            .and_then(|w| w.checked_mul(scale as u128))
            .zip(digits(fraction))
            .map(|(w, f)| w.saturating_add(f * scale as u128 / 10u128.pow(fraction.len() as u32)));
        match ns {
            Some(ns) if ns <= LONGEST.0 as u128 => Ok(Duration(ns as u64)),
            _ => Err("a duration is at most 100 years (36500d)".into()),
        }
    }

    /// Seconds, as a float.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (unit, scale) = UNITS
            .iter()
            .rev()
            .filter(|(name, _)| *name != "µs")
            .find(|(_, scale)| {
                // The largest unit that shows the value with at most three decimals.
                self.0 >= *scale && (self.0 as u128 * 1000).is_multiple_of(*scale as u128)
            })
            .copied()
            .unwrap_or(("ns", 1));
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let thousandths = (rest as u128 * 1000 / scale as u128) as u64;
        let text = format!("{thousandths:03}");
        write!(f, "{whole}.{}{unit}", text.trim_end_matches('0'))
    }
}

/// Events per second, written `"40/s"`, `"3/min"`, `"1000/h"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate {
    /// The number before the slash.
    pub count: f64,
    /// The unit of time behind it.
    pub per: Duration,
}

impl Rate {
    /// Parses `"40/s"`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let right = "a rate is a number per unit of time, as in \"40/s\", \"3/min\" or \"1000/h\"";
        let (count, unit) = text.split_once('/').ok_or(right)?;
        let count: f64 = count.trim().replace('_', "").parse().map_err(|_| right)?;
        let per = UNITS
            .iter()
            .find(|(name, _)| *name == unit.trim())
            .ok_or("the unit of time of a rate is ns, us, ms, s, min, h or d, as in \"40/s\"")?;
        if !(count.is_finite() && count > 0.0) {
            return Err("a rate is finite and above zero, as in \"40/s\"".into());
        }
        let rate = Rate {
            count,
            per: Duration(per.1),
        };
        if rate.per_second() > HIGHEST_PER_S {
            return Err("a rate is at most one per nanosecond (1000000000/s)".into());
        }
        Ok(rate)
    }

    /// Events per second.
    pub fn per_second(self) -> f64 {
        self.count / self.per.as_seconds()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS
            .iter()
            .find(|(_, scale)| *scale == self.per.0)
            .map_or("s", |u| u.0);
        write!(f, "{}/{unit}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        for (text, ns) in [
            ("250ms", 250 * MS),
            ("1.5s", 1_500 * MS),
            ("2min", 120 * SECOND),
            ("1h", 3600 * SECOND),
            ("4.784ms", 4_784_000),
            ("0s", 0),
            ("1_000ms", SECOND),
            ("0.1s", 100 * MS),
        ] {
            assert_eq!(Duration::parse(text), Ok(Duration(ns)), "{text}");
        }
        for wrong in [
            "",
            "250",
            "ms",
            "5 parsecs",
            "-1s",
            "1..5s",
            "1e3s",
            "40000d",
        ] {
            assert!(Duration::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_print_as_they_are_written() {
        for text in [
            "250ms", "1.5s", "2min", "1h", "4.784ms", "0s", "1.25min", "7ns",
        ] {
            let parsed = Duration::parse(text).unwrap();
            assert_eq!(
                Duration::parse(&parsed.to_string()),
                Ok(parsed),
                "{text} -> {parsed}"
            );
        }
        assert_eq!(Duration(1_500 * MS).to_string(), "1.5s");
        assert_eq!(Duration(143_170 * MS).to_string(), "143.17s");
    }

    #[test]
    fn rates_have_a_unit_of_time() {
        assert_eq!(Rate::parse("3/min").unwrap().per_second(), 0.05);
        assert_eq!(Rate::parse("40/s").unwrap().to_string(), "40/s");
        for wrong in ["40", "40/fortnight", "-1/s", "0/s", "nan/s", "/s", "2/ns"] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
