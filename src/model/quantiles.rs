//! A quantile function as a table: draws that are made for every poll take no logarithm and no exponential.
//!
//! The probabilities are cut into octaves towards both ends, where quantile functions are steep, and each octave into cells of equal width. In a
//! cell stands the cubic through four exact values. Where the cubic is not exact enough, and beyond the outermost octaves, the function itself is
//! asked. Only sums and products are taken, so that a draw is the same on every machine.

use std::sync::Arc;

/// Octaves to each side of the median; beyond them lie 2^-13 of all draws at each end.
const OCTAVES: u32 = 12;
/// Cells of an octave, as a power of two.
const CELL_BITS: u32 = 4;
const CELLS: usize = 1 << CELL_BITS;
/// Largest relative error of a cubic.
const TOLERANCE: f64 = 1e-6;
/// Probabilities have so many bits.
const BITS: u32 = 53;

/// The table: below the median, then above it, from the median outwards.
#[derive(Clone, Debug)]
pub struct Quantiles(Arc<[Cubic]>);

/// Coefficients, ascending; not a number where the function itself is to be asked.
type Cubic = [f64; 4];

impl Quantiles {
    /// The table of a function of a probability in [0, 1).
    pub fn new(quantile: impl Fn(f64) -> f64) -> Self {
        let cell = |number: usize| {
            let (above, number) = (
                number >= OCTAVES as usize * CELLS,
                number % (OCTAVES as usize * CELLS),
            );
            let octave = (number / CELLS) as i32;
            let width = libm::scalbn(1.0, -octave - 2 - CELL_BITS as i32);
            let first = (number % CELLS + CELLS) as f64;
            let at = |t: f64| {
                let tail = (first + t) * width;
                quantile(if above { 1.0 - tail } else { tail })
            };
            let cubic = through([at(0.0), at(1.0 / 3.0), at(2.0 / 3.0), at(1.0)]);
            let is_exact = |t: f64| (value(&cubic, t) - at(t)).abs() <= TOLERANCE * at(t).abs();
            // Half-way between the points that it goes through, where it is farthest off.
            if [1.0 / 6.0, 0.5, 5.0 / 6.0].into_iter().all(is_exact) {
                cubic
            } else {
                [f64::NAN; 4]
            }
        };
        Quantiles((0..2 * OCTAVES as usize * CELLS).map(cell).collect())
    }

    /// The quantile at [`crate::random::unit`] of 64 bits; `None` where the function itself is to be asked.
    #[inline]
    pub fn at(&self, bits: u64) -> Option<f64> {
        let above = (bits >> 63) as usize;
        // The distance to the nearer end, in units of 2^-53, as [`crate::random::unit`] has it: odd, and below 2^52.
        let tail = (bits ^ (above as u64).wrapping_neg()) >> (64 - BITS) | 1;
        let octave = tail.leading_zeros() - (64 - BITS + 1);
        if octave >= OCTAVES {
            return None;
        }
        // The leading one goes out to the left; the cell's number comes next, and then the place in the cell.
        let rest = tail << (64 - BITS + 2 + octave);
        let cell = (rest >> (64 - CELL_BITS)) as usize;
        let place = ((rest << CELL_BITS) >> (64 - BITS)) as f64 * (1.0 / (1u64 << BITS) as f64);
        let number = (above * OCTAVES as usize + octave as usize) * CELLS + cell;
        let x = value(&self.0[number], place);
        (!x.is_nan()).then_some(x)
    }
}

/// The cubic through values at 0, 1/3, 2/3 and 1.
fn through([a, b, c, d]: [f64; 4]) -> Cubic {
    [
        a,
        (-11.0 * a + 18.0 * b - 9.0 * c + 2.0 * d) / 2.0,
        (18.0 * a - 45.0 * b + 36.0 * c - 9.0 * d) / 2.0,
        (-9.0 * a + 27.0 * b - 27.0 * c + 9.0 * d) / 2.0,
    ]
}

#[inline]
fn value(cubic: &Cubic, t: f64) -> f64 {
    ((cubic[3] * t + cubic[2]) * t + cubic[1]) * t + cubic[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{mix, unit};

    /// Relative error of the table at many random probabilities, and how many of them it leaves to the function.
    fn compare(quantile: impl Fn(f64) -> f64) -> (f64, usize) {
        let table = Quantiles::new(&quantile);
        let (mut worst, mut asked) = (0.0f64, 0);
        for n in 0..100_000 {
            let bits = mix(n);
            match table.at(bits) {
                Some(x) => {
                    let exact = quantile(unit(bits));
                    worst = worst.max(((x - exact) / exact).abs());
                }
                None => asked += 1,
            }
        }
        (worst, asked)
    }

    #[test]
    fn a_table_is_its_function() {
        let normal = crate::model::distribution::normal_quantile;
        for sigma in [0.2, 1.0, 2.0] {
            let (worst, asked) = compare(|u| libm::exp(sigma * normal(u)));
            assert!(
                worst < 1.2 * TOLERANCE && asked < 100,
                "{sigma}: {worst:e}, {asked}"
            );
        }
        let (worst, asked) = compare(|u| -libm::log1p(-u));
        assert!(worst < 1.2 * TOLERANCE && asked < 100, "{worst:e}, {asked}");
        // A normal around 0 has no relative precision there.
        let (worst, asked) = compare(normal);
        assert!(
            worst < 1.2 * TOLERANCE && asked < 5_000,
            "{worst:e}, {asked}"
        );
    }

    #[test]
    fn what_no_cubic_follows_is_left_to_the_function() {
        let (worst, _) = compare(|u| if u < 0.3 { 1.0 } else { 2.0 });
        assert_eq!(worst, 0.0);
        let (worst, _) = compare(|u| libm::pow(1.0 - u, -20.0));
        assert!(worst < 1.2 * TOLERANCE, "{worst:e}");
    }

    #[test]
    fn a_table_rises_with_the_probability() {
        let table = Quantiles::new(|u| -libm::log1p(-u));
        let mut before = 0.0;
        for step in 1..(1u64 << 18) {
            let bits = step << 46;
            let x = table.at(bits).unwrap_or_else(|| -libm::log1p(-unit(bits)));
            assert!(x > before, "{x} after {before}, at {bits:x}");
            before = x;
        }
    }
}
