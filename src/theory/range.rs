//! What counts as an argument in range. All of these refuse NaN and infinity.

/// Greater than 0.
pub(super) fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// 0 or greater.
pub(super) fn is_non_negative(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}

/// Within \[0, 1\].
pub(super) fn is_fraction(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges() {
        assert!(is_positive(f64::MIN_POSITIVE) && !is_positive(0.0));
        assert!(is_non_negative(0.0) && !is_non_negative(-f64::MIN_POSITIVE));
        assert!(is_fraction(0.0) && is_fraction(1.0) && !is_fraction(1.0 + f64::EPSILON));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!is_positive(bad) && !is_non_negative(bad) && !is_fraction(bad));
        }
    }
}
