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
