//! Times as logs write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::event::{Instant, Reason};

/// Numbers from here on are no seconds: as such they would lie beyond the year 5000.
const NO_SECONDS: f64 = 1e11;

/// A number of seconds.
///
/// # Errors
/// [`Reason::Milliseconds`] or [`Reason::NotATime`].
pub fn from_seconds(seconds: f64) -> Result<Instant, Reason> {
    match seconds {
        s if s.abs() >= NO_SECONDS => Err(Reason::Milliseconds),
        // Whole seconds and the rest apart, so that nothing is lost of the digits that are there.
        s if s.is_finite() => {
            let whole = s.floor();
            let ns = whole as i128 * 1_000_000_000 + ((s - whole) * 1e9).round() as i128;
            Instant::try_from(ns).map_err(|_| Reason::NotATime)
        }
        _ => Err(Reason::NotATime),
    }
}

/// A number of seconds, or ISO 8601 (UTC where it has no offset).
///
/// # Errors
/// [`Reason::Milliseconds`] or [`Reason::NotATime`].
pub fn parse(text: &str) -> Result<Instant, Reason> {
    if let Ok(seconds) = text.parse::<f64>() {
        return from_seconds(seconds);
    }
    let timestamp = match text.parse::<Timestamp>() {
        Ok(timestamp) => timestamp,
        Err(_) => text
            .parse::<DateTime>()
            .and_then(|civil| TimeZone::UTC.to_timestamp(civil))
            .map_err(|_| Reason::NotATime)?,
    };
    Instant::try_from(timestamp.as_nanosecond()).map_err(|_| Reason::NotATime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_the_same_instants() {
        let at = 1_767_225_600_250_000_000;
        for text in [
            "1767225600.25",
            "2026-01-01T00:00:00.25Z",
            "2026-01-01T01:00:00.250+01:00",
            "2026-01-01 00:00:00.250",
        ] {
            assert_eq!(parse(text), Ok(at), "{text}");
        }
        assert_eq!(parse("-0.5"), Ok(-500_000_000));
    }

    #[test]
    fn milliseconds_and_nonsense_are_told_apart() {
        assert_eq!(parse("1767225600250"), Err(Reason::Milliseconds));
        for text in ["", "12:30", "nan", "inf", "soon", "9e10"] {
            let wrong = parse(text);
            assert!(
                matches!(wrong, Err(Reason::NotATime | Reason::Milliseconds)),
                "{text}: {wrong:?}"
            );
        }
    }
}
