//! Numbers for people.

use crate::experiment::Estimate;

/// Four significant digits, thousands apart; `–` where undefined.
pub fn number(x: Option<f64>) -> String {
    match x {
        Some(x) if x.is_finite() => significant(x),
        _ => "–".into(),
    }
}

/// Mean and half-width: `12.3 ± 0.4`.
pub fn estimate(e: &Estimate) -> String {
    match (e.mean, e.hi) {
        (Some(mean), Some(hi)) if hi > mean => {
            format!("{} ± {}", significant(mean), half_width(hi - mean))
        }
        (mean, _) => number(mean),
    }
}

/// A bound with four significant digits, rounded so that what it came from still meets it: up for an upper bound.
pub fn bound(x: f64, upper: bool) -> String {
    if x == 0.0 || !x.is_finite() {
        return number(Some(x));
    }
    let unit = 10f64.powf(x.abs().log10().floor() - 3.0);
    let steps = x / unit;
    significant(if upper { steps.ceil() } else { steps.floor() } * unit)
}

/// Two significant digits are enough for an uncertainty.
pub fn half_width(x: f64) -> String {
    if x >= 100.0 {
        return significant(x.round());
    }
    let digits = (1.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    trim(format!("{x:.digits$}"))
}

fn significant(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let digits = (3.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = trim(format!("{x:.digits$}"));
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), String::new()), |(w, r)| {
            (w, format!(".{r}"))
        });
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |w| ("-", w));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

fn trim(text: String) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let shown: Vec<String> = [0.0, 0.012_345, 1.0, 999.96, 1234.5, 1_234_567.0, -45.678]
            .iter()
            .map(|x| number(Some(*x)))
            .collect();
        assert_eq!(
            shown,
            ["0", "0.01235", "1", "1,000", "1,234", "1,234,567", "-45.68"]
        );
        assert_eq!(number(None), "–");
        assert_eq!(number(Some(f64::NAN)), "–");
    }

    #[test]
    fn a_bound_is_rounded_away_from_what_has_to_meet_it() {
        assert_eq!(bound(1019.0994, true), "1,020");
        assert_eq!(bound(1019.0994, false), "1,019");
        assert_eq!(bound(0.802_41, true), "0.8025");
        assert_eq!(bound(-12.345, true), "-12.34");
        assert_eq!(bound(500.0, true), "500");
    }

    #[test]
    fn uncertainties_have_two() {
        let e = Estimate {
            mean: Some(12.3456),
            lo: Some(12.0),
            hi: Some(12.691),
            n: 5,
        };
        assert_eq!(estimate(&e), "12.35 ± 0.35");
        let exact = Estimate {
            mean: Some(3.0),
            lo: Some(3.0),
            hi: Some(3.0),
            n: 5,
        };
        assert_eq!(estimate(&exact), "3");
    }
}
