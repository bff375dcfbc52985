//! Rounding of a quotient of two times to whole intervals, forgiving of decimal fractions.
//!
//! `1.1 / 0.1` is a hair above 11 in binary floating point, and a plain `ceil` would book a twelfth
//! poll. Both functions take a quotient within one part in 10¹² of a whole number as that number.

const RELATIVE_TOLERANCE: f64 = 1e-12;

/// The smallest whole number not below `quotient`.
pub(super) fn intervals_to_cover(quotient: f64) -> f64 {
    nearest_whole(quotient).unwrap_or_else(|| quotient.ceil())
}

/// The largest whole number not above `quotient`.
pub(super) fn intervals_within(quotient: f64) -> f64 {
    nearest_whole(quotient).unwrap_or_else(|| quotient.floor())
}

/// Relative to the whole number, so that a tiny positive quotient is never taken for 0.
fn nearest_whole(quotient: f64) -> Option<f64> {
    let whole = quotient.round();
    ((quotient - whole).abs() <= RELATIVE_TOLERANCE * whole.abs()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_fractions_count_as_whole() {
        for k in 1..2000 {
            let whole = f64::from(k);
            for step in [0.1, 0.02, 0.3, 0.7, 1.1, 30.0] {
                let quotient = whole * step / step;
                assert_eq!(intervals_to_cover(quotient), whole);
                assert_eq!(intervals_within(quotient), whole);
            }
        }
        assert_eq!(intervals_to_cover(1.1 / 0.1), 11.0);
        assert_eq!(intervals_within(0.7 / 0.1), 7.0);
    }

    #[test]
    fn real_fractions_are_rounded() {
        assert_eq!(intervals_to_cover(17.5), 18.0);
        assert_eq!(intervals_within(17.5), 17.0);
        assert_eq!(intervals_to_cover(1e-13), 1.0);
        assert_eq!(intervals_to_cover(0.0), 0.0);
        assert_eq!(intervals_to_cover(f64::INFINITY), f64::INFINITY);
        assert!(intervals_to_cover(f64::NAN).is_nan());
    }
}
