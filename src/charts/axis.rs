//! Scales from values to pixels, their ticks, and the frame of a plot.

use plotters::prelude::*;

use super::ChartError;
use super::canvas::{Canvas, GREY, GRID, Hold, TEXT, stroke, width};
use crate::report::format;

/// A scale, linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    from: i32,
    to: i32,
}

/// Values beyond these are drawn at the edge: pixels have no place for them.
const LEAST: f64 = 1e-12;
const MOST: f64 = 1e18;
/// Of tick labels.
const INK: RGBColor = RGBColor(40, 40, 40);

impl Axis {
    /// From `low` at pixel `from` to `high` at pixel `to`.
    pub fn linear((low, high): (f64, f64), (from, to): (i32, i32)) -> Self {
        let (low, high) = (low.clamp(-MOST, MOST), high.clamp(-MOST, MOST));
        let least = (low.abs().max(high.abs()) * 1e-6).max(LEAST);
        let (low, high) = if high - low < least {
            (
                low - low.abs().max(1.0) * 0.1,
                low + low.abs().max(1.0) * 0.1,
            )
        } else {
            (low, high)
        };
        Axis {
            low,
            high,
            log: false,
            from,
            to,
        }
    }

    /// The same, logarithmic; values at or below 0 stand at the low end.
    pub fn log((low, high): (f64, f64), (from, to): (i32, i32)) -> Self {
        let (low, high) = (low.clamp(LEAST, MOST), high.clamp(LEAST, MOST));
        let (low, high) = if high / low < 1.001 {
            (low / 1.5, low * 1.5)
        } else {
            (low, high)
        };
        Axis {
            low,
            high,
            log: true,
            from,
            to,
        }
    }

    /// The pixel of a value, inside the axis.
    pub fn at(&self, value: f64) -> i32 {
        let share = if self.log {
            libm::log(value.max(self.low) / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self.from + (share * f64::from(self.to - self.from)).round() as i32
    }

    /// Does a value lie on it?
    pub fn has(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Does a value lie below it?
    pub fn cuts(&self, value: f64) -> bool {
        value < self.low
    }

    /// Its pixels, the least first.
    pub fn span(&self) -> (i32, i32) {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// Round values at least so many pixels apart; where labels stand side by side, further apart than these are wide.
    pub fn ticks(&self, least_apart: i32, side_by_side: bool) -> Vec<f64> {
        let fits = |ticks: &[f64]| {
            ticks.windows(2).all(|pair| {
                let distance = (self.at(pair[1]) - self.at(pair[0])).abs();
                let needed = if side_by_side {
                    (width(&short(pair[0]), TEXT) + width(&short(pair[1]), TEXT)) / 2 + 8
                } else {
                    0
                };
                distance >= least_apart.max(needed)
            })
        };
        let candidates = if self.log {
            self.log_ticks()
        } else {
            Vec::new()
        };
        let best = candidates
            .into_iter()
            .find(|ticks| ticks.len() > 1 && fits(ticks));
        best.unwrap_or_else(|| {
            let linear = self.linear_ticks();
            linear
                .into_iter()
                .find(|ticks| fits(ticks))
                .unwrap_or_default()
        })
    }

    /// From many to few.
    fn log_ticks(&self) -> Vec<Vec<f64>> {
        let (first, last) = (
            libm::floor(libm::log10(self.low)) as i32,
            libm::ceil(libm::log10(self.high)) as i32,
        );
        let mantissas: [&[f64]; 4] = [&[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let dense = mantissas.iter().map(|m| (m.to_vec(), 1));
        let sparse = [2, 3, 4, 6].map(|step| (vec![1.0], step));
        dense
            .chain(sparse)
            .map(|(mantissas, step)| {
                let decades = (first..=last).filter(move |e| e.rem_euclid(step) == 0);
                decades
                    .flat_map(|e| {
                        mantissas
                            .iter()
                            .map(move |m| m * 10f64.powi(e))
                            .collect::<Vec<_>>()
                    })
                    .filter(|v| self.has(*v))
                    .collect()
            })
            .collect()
    }

    /// From many to few.
    fn linear_ticks(&self) -> Vec<Vec<f64>> {
        let span = self.high - self.low;
        let decade = libm::floor(libm::log10(span)) as i32;
        let steps = (decade - 1..=decade + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| (m, e)));
        steps
            .filter(|(m, e)| span / (m * 10f64.powi(*e)) <= 100.0)
            .map(|(m, e)| {
                let step = m * 10f64.powi(e);
                let first = (self.low / step - 1e-9).ceil();
                let last = (self.high / step + 1e-9).floor();
                let n = ((last - first) as i64).clamp(-1, 200);
                // Dividing keeps 0.3 from being 0.30000000000000004.
                let value = |k: i64| match e < 0 {
                    true => (first + k as f64) * m / 10f64.powi(-e),
                    false => (first + k as f64) * step,
                };
                (0..=n).map(value).collect()
            })
            .collect()
    }
}

/// A number for a tick or a label: four digits at most, large ones with k, M, G, T.
pub(super) fn short(x: f64) -> String {
    let sizes = [(1e12, " T"), (1e9, " G"), (1e6, " M")];
    if x.abs() >= 1e16 {
        return format!("{x:.0e}");
    }
    match sizes.iter().find(|(size, _)| x.abs() >= *size) {
        Some((size, word)) => format!("{}{word}", format::number(Some(x / size))),
        None => format::number(Some(x)),
    }
}

/// The frame of a plot: lines behind the data, ticks, what the axes are of.
pub(super) struct Frame<'t> {
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// Below the ticks of x; with an empty text there are ticks alone.
    pub x_label: &'t str,
    /// Left of the ticks of y, from bottom to top; nothing where empty.
    pub y_label: &'t str,
    /// Values of x that have a tick, with their words; round values where there are none.
    pub x_ticks: Vec<(f64, String)>,
    /// The same for y.
    pub y_ticks: Vec<(f64, String)>,
}

impl Frame<'_> {
    /// Its corners: left, top, right, bottom.
    pub fn corners(&self) -> (i32, i32, i32, i32) {
        let (x, y) = (self.x.span(), self.y.span());
        (x.0, y.0, x.1, y.1)
    }

    /// Draws it.
    pub fn draw(&self, canvas: &Canvas<'_>) -> Result<(), ChartError> {
        let (left, top, right, bottom) = self.corners();
        for (value, words) in words(&self.y_ticks, || self.y.ticks(18, false)) {
            let y = self.y.at(value);
            canvas.line([(left, y), (right, y)], stroke(GRID, 1))?;
            canvas.line([(left - 4, y), (left, y)], stroke(GREY, 1))?;
            canvas.text((left - 7, y), &words, TEXT, INK, Hold::Right)?;
        }
        if !self.y_label.is_empty() {
            canvas.upright((left - 60, (top + bottom) / 2), self.y_label, TEXT + 1)?;
        }
        self.draw_x(canvas)?;
        canvas.line([(left, top), (left, bottom)], stroke(GREY, 1))
    }

    /// Draws its x axis alone.
    pub fn draw_x(&self, canvas: &Canvas<'_>) -> Result<(), ChartError> {
        let (left, top, right, bottom) = self.corners();
        for (value, words) in words(&self.x_ticks, || self.x.ticks(30, true)) {
            let x = self.x.at(value);
            canvas.line([(x, top), (x, bottom)], stroke(GRID, 1))?;
            canvas.line([(x, bottom), (x, bottom + 4)], stroke(GREY, 1))?;
            canvas.text((x, bottom + 13), &words, TEXT, INK, Hold::Middle)?;
        }
        canvas.line([(left, bottom), (right, bottom)], stroke(GREY, 1))?;
        if !self.x_label.is_empty() {
            let middle = ((left + right) / 2, bottom + 31);
            canvas.text(middle, self.x_label, TEXT + 1, BLACK, Hold::Middle)?;
        }
        Ok(())
    }
}

/// The ticks given, or round ones.
fn words(given: &[(f64, String)], round: impl Fn() -> Vec<f64>) -> Vec<(f64, String)> {
    match given.is_empty() {
        true => round().into_iter().map(|v| (v, short(v))).collect(),
        false => given.to_vec(),
    }
}

/// The least and the greatest of the finite values; `None` where there are none.
pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|v| v.is_finite());
    finite.fold(None, |span, v| {
        let (low, high) = span.unwrap_or((v, v));
        Some((low.min(v), high.max(v)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_do_not_touch() {
        let axis = Axis::log((90.0, 2100.0), (0, 600));
        assert_eq!(
            axis.ticks(30, true),
            [100.0, 200.0, 300.0, 500.0, 1000.0, 2000.0]
        );
        assert_eq!(
            Axis::linear((0.0, 1.0), (100, 0)).ticks(18, false),
            [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        );
        // A narrow stretch of a logarithmic axis has linear ticks.
        assert_eq!(
            Axis::log((210.0, 240.0), (0, 100)).ticks(30, false),
            [210.0, 220.0, 230.0, 240.0]
        );
        for (low, high) in [
            (1e-300, 1e300),
            (5.0, 5.0),
            (0.0, 0.0),
            (-3.0, 7.0),
            (1e15, 2e15),
        ] {
            for axis in [
                Axis::log((low, high), (0, 300)),
                Axis::linear((low, high), (0, 300)),
            ] {
                let ticks = axis.ticks(30, true);
                assert!(
                    ticks.iter().all(|v| v.is_finite()),
                    "{low} {high} {ticks:?}"
                );
                assert!(ticks.len() < 60);
            }
        }
    }

    #[test]
    fn every_value_has_a_pixel_inside() {
        let axis = Axis::log((1.0, 100.0), (10, 210));
        let pixels = [0.0, 1.0, 10.0, 100.0, 1e9, f64::NAN, f64::INFINITY].map(|v| axis.at(v));
        assert_eq!(pixels, [10, 10, 110, 210, 210, 10, 210]);
    }

    #[test]
    fn large_numbers_are_short() {
        let shown = [0.5, 1500.0, 2e6, 2.147_483_647e9, 1e12, 1e18].map(short);
        assert_eq!(shown, ["0.5", "1,500", "2 M", "2.147 G", "1 T", "1e18"]);
    }
}
