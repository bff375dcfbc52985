//! Areas of a map: shades of a quantity, and hatching.

use plotters::prelude::*;

use super::ChartError;
use super::canvas::{Canvas, Px, stroke};

/// Light to middling, the same order for every kind of colour vision and in grey; dark lines and text can be read on all of them.
const SHADES: [RGBColor; 5] = [
    RGBColor(255, 255, 229),
    RGBColor(224, 243, 219),
    RGBColor(178, 223, 205),
    RGBColor(130, 196, 214),
    RGBColor(95, 160, 208),
];
/// The colour of a depth from 0 to 1.
pub(super) fn shade(depth: f64) -> RGBColor {
    let place = depth.clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
    let i = (place as usize).min(SHADES.len() - 2);
    let part = place - i as f64;
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    let (a, b) = (SHADES[i], SHADES[i + 1]);
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Strokes from bottom left to top right over a rectangle.
pub(super) fn hatch(canvas: &Canvas<'_>, [a, b]: [Px; 2]) -> Result<(), ChartError> {
    let (w, h) = (b.0 - a.0, b.1 - a.1);
    let style = stroke(RGBColor(60, 60, 60).mix(0.45), 1);
    for start in (8..w + h).step_by(10) {
        // The stroke of all points whose distances from left and top sum to `start`.
        let from = if start <= h {
            (a.0, a.1 + start)
        } else {
            (a.0 + start - h, b.1)
        };
        let to = if start <= w {
            (a.0 + start, a.1)
        } else {
            (b.0, a.1 + start - w)
        };
        canvas.line([from, to], style)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_is_darker() {
        let light = |c: RGBColor| u32::from(c.0) + u32::from(c.1) + u32::from(c.2);
        let all: Vec<u32> = (0..=40)
            .map(|k| light(shade(f64::from(k) / 40.0)))
            .collect();
        assert!(all.windows(2).all(|pair| pair[0] > pair[1]), "{all:?}");
        assert_eq!(
            (shade(-1.0), shade(2.0)),
            (SHADES[0], SHADES[SHADES.len() - 1])
        );
    }
}
