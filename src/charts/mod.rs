//! Figures as SVG and PNG: 720 px wide, text of 12 px or more, colours safe for colour-blind readers, the same bytes for the same input.
//!
//! A figure is plain data, which can be kept and drawn again: each has a file with its data and its drawing. What they share is the page
//! (`canvas`), the places of labels (`labels`), the scales (`axis`). Nothing here runs or estimates anything: the data is made in
//! [`crate::report::figures`].

pub mod abort_latency;
mod axis;
mod canvas;
mod contours;
pub mod curves;
pub mod differences;
pub mod floor_ceiling_map;
pub mod hint_effect;
mod labels;
pub mod over_time;
pub mod poll_loops;
mod raster;
mod shades;
mod times;
pub mod trade_off;

pub use abort_latency::AbortLatency;
pub use curves::Curves;
pub use differences::{DifferenceRow, Differences};
pub use floor_ceiling_map::FloorCeilingMap;
pub use hint_effect::HintEffect;
pub use over_time::OverTime;
pub use poll_loops::{LoopRow, PollLoops};
pub use raster::png;
pub use trade_off::TradeOff;

use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

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

/// The data of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "figure", rename_all = "kebab-case")]
pub enum Figure {
    /// Rate against completion latency.
    TradeOff(TradeOff),
    /// Floors by ceilings.
    FloorCeilingMap(FloorCeilingMap),
    /// Metrics over what is varied.
    Curves(Curves),
    /// Distributions of abort latency.
    AbortLatency(AbortLatency),
    /// Rate and queues over time.
    OverTime(OverTime),
    /// Hints and the waits that follow.
    HintEffect(HintEffect),
    /// Paired differences between two policies.
    Differences(Differences),
    /// Many poll loops over one scenario.
    PollLoops(PollLoops),
}

impl Figure {
    /// The stem of its file's name.
    pub fn name(&self) -> &'static str {
        match self {
            Figure::TradeOff(_) => "trade-off",
            Figure::FloorCeilingMap(_) => "floor-ceiling-map",
            Figure::Curves(_) => "curves",
            Figure::AbortLatency(_) => "abort-latency",
            Figure::OverTime(_) => "over-time",
            Figure::HintEffect(_) => "hint-effect",
            Figure::Differences(_) => "differences",
            Figure::PollLoops(_) => "poll-loops",
        }
    }

    /// What it shows, for the line below it.
    pub fn caption(&self) -> &'static str {
        match self {
            Figure::TradeOff(_) => "Load against freshness",
            Figure::FloorCeilingMap(_) => {
                "Load over floor and ceiling, with lines of equal latency"
            }
            Figure::Curves(_) => "Each metric over what is varied",
            Figure::AbortLatency(_) => "How long an abort takes to give control back",
            Figure::OverTime(_) => "Rate and requests waiting over time",
            Figure::HintEffect(_) => "What came in, and what the policy made of it",
            Figure::Differences(_) => "Paired differences",
            Figure::PollLoops(_) => "Every poll loop over one fleet",
        }
    }

    /// The figure as SVG.
    ///
    /// # Errors
    /// [`ChartError`] where the data has nothing to show.
    pub fn svg(&self) -> Result<String, ChartError> {
        match self {
            Figure::TradeOff(figure) => trade_off::svg(figure),
            Figure::FloorCeilingMap(figure) => floor_ceiling_map::svg(figure),
            Figure::Curves(figure) => curves::svg(figure),
            Figure::AbortLatency(figure) => abort_latency::svg(figure),
            Figure::OverTime(figure) => over_time::svg(figure),
            Figure::HintEffect(figure) => hint_effect::svg(figure),
            Figure::Differences(figure) => differences::svg(figure),
            Figure::PollLoops(figure) => poll_loops::svg(figure),
        }
    }
}

/// What keeps a figure from being drawn.
#[derive(Debug, thiserror::Error)]
#[error("the figure could not be drawn: {0}")]
pub struct ChartError(String);

impl ChartError {
    fn new(error: impl std::fmt::Display) -> Self {
        ChartError(error.to_string())
    }
}
