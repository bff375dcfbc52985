//! Figures as SVG: 720 px wide, text of 12 px or more, colours safe for colour-blind readers, the same bytes for the same input.

pub mod differences;
pub mod over_time;
pub mod trade_off;

pub use differences::{DifferenceRow, Differences};
use plotters::style::RGBColor;

/// Width of a figure, px.
pub const WIDTH: u32 = 720;

/// The palette of Okabe and Ito (2008), its yellow left out: too pale for lines.
pub const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// What keeps a figure from being drawn.
#[derive(Debug, thiserror::Error)]
#[error("the figure could not be drawn: {0}")]
pub struct ChartError(String);

impl ChartError {
    fn new(error: impl std::fmt::Display) -> Self {
        ChartError(error.to_string())
    }
}
