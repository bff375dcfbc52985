//! A fleet over time: one panel above the other, a curve per server class.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, short};
use super::canvas::{Canvas, EDGE, GREY, Hold, Page, Px, TEXT, cut, page, stroke};
use super::labels::apart;
use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// The heading.
    pub title: String,
    /// From top to bottom.
    pub panels: Vec<Panel>,
    /// Stretches of time that are shaded: outages.
    pub bands: Vec<Band>,
    /// The line at the foot.
    pub provenance: String,
}

/// One quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// The quantity and its unit.
    pub label: String,
    /// A curve for each group.
    pub curves: Vec<Curve>,
}

/// One group of a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The group.
    pub label: String,
    /// (s, value), ascending.
    pub points: Vec<(f64, f64)>,
    /// (s, value) of the busiest 100 ms around each point, ascending; empty where the panel has none.
    pub peaks: Vec<(f64, f64)>,
    /// What the group can take; `None` where nothing limits it.
    pub limit: Option<f64>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Its start, s.
    pub from_s: f64,
    /// Its end, s.
    pub to_s: f64,
}

const PANEL: i32 = 190;
const ABOVE: i32 = 32;
const AXIS: i32 = 40;
const GAP: i32 = 16;
const LEFT: i32 = EDGE + 64;
const RIGHT: i32 = WIDTH as i32 - 118;
/// Curves beyond so many would have no colour of their own.
const MOST_CURVES: usize = PALETTE.len();
/// A limit so many times above the data is told in words, not drawn.
const FAR: f64 = 50.0;

/// Draws the figure. Values below 1 stand on the axis: scales are logarithmic, so that a flood and a calm fleet can be read in one panel.
///
/// # Errors
/// [`ChartError`] where there are no points, more curves than colours, or the backend fails.
pub fn svg(figure: &OverTime) -> Result<String, ChartError> {
    let curves = || figure.panels.iter().flat_map(|p| &p.curves);
    let times = || curves().flat_map(|c| c.points.iter().map(|p| p.0));
    let end = times().fold(0.0, f64::max);
    if end <= 0.0 {
        return Err(ChartError("there are too few windows".into()));
    }
    if figure.panels.iter().any(|p| p.curves.len() > MOST_CURVES) {
        return Err(ChartError(format!(
            "there are more than {MOST_CURVES} server classes"
        )));
    }
    let words = [
        (
            curves().any(|c| !c.peaks.is_empty()),
            "thin: the busiest 100 ms of each window",
        ),
        (
            curves().any(|c| c.limit.is_some()),
            "dashes: what the servers can take",
        ),
        (!figure.bands.is_empty(), "shaded: outages"),
    ];
    let told: Vec<&str> = words.iter().filter(|w| w.0).map(|w| w.1).collect();
    let about = Page {
        title: &figure.title,
        notes: vec![told.join("; ")],
        provenance: &figure.provenance,
    };
    let panels = figure.panels.len() as i32;
    page(
        &about,
        (ABOVE + PANEL + GAP) * panels - GAP + AXIS,
        |canvas, top| {
            for (i, panel) in (0..).zip(&figure.panels) {
                let y = top + ABOVE + (ABOVE + PANEL + GAP) * i;
                draw_panel(canvas, panel, &figure.bands, end, y, i + 1 == panels)?;
            }
            Ok(())
        },
    )
}

fn draw_panel(
    canvas: &Canvas<'_>,
    panel: &Panel,
    bands: &[Band],
    end: f64,
    top: i32,
    last: bool,
) -> Result<(), ChartError> {
    let values = panel
        .curves
        .iter()
        .flat_map(|c| c.points.iter().chain(&c.peaks))
        .map(|p| p.1);
    let most = values.fold(10.0, f64::max);
    let known = panel.curves.iter().filter_map(|c| c.limit);
    let highest = known.filter(|l| *l <= most * FAR).fold(most, f64::max);
    let frame = Frame {
        x: Axis::linear((0.0, end), (LEFT, RIGHT)),
        y: Axis::log((1.0, highest * 1.4), (top + PANEL, top)),
        x_label: if last { "time (s)" } else { "" },
        y_label: "",
        x_ticks: Vec::new(),
        y_ticks: Vec::new(),
    };
    for band in bands {
        let (from, to) = (frame.x.at(band.from_s), frame.x.at(band.to_s.min(end)));
        canvas.rectangle(
            [(from, top), (to, top + PANEL)],
            RGBColor(225, 225, 225).filled(),
        )?;
    }
    frame.draw(canvas)?;
    canvas.text(
        (EDGE + 8, top - 17),
        &panel.label,
        TEXT + 1,
        BLACK,
        Hold::Left,
    )?;
    let at = |p: &(f64, f64)| (frame.x.at(p.0), frame.y.at(p.1));
    for (i, curve) in panel.curves.iter().enumerate() {
        canvas.line(curve.peaks.iter().map(at), stroke(PALETTE[i].mix(0.55), 1))?;
    }
    for (i, curve) in panel.curves.iter().enumerate() {
        canvas.line(curve.points.iter().map(at), stroke(PALETTE[i], 2))?;
    }
    let limits = limits(panel);
    for (limit, colour) in limits.iter().filter(|l| frame.y.has(l.0)) {
        let y = frame.y.at(*limit);
        canvas.dashed(&[(LEFT, y), (RIGHT, y)], (6.0, 4.0), stroke(*colour, 1))?;
    }
    name_curves(canvas, panel, &limits, &frame, at)
}

/// The limits of a panel, one that several classes share once.
fn limits(panel: &Panel) -> Vec<(f64, RGBColor)> {
    let mut limits: Vec<(f64, RGBColor)> = Vec::new();
    for (i, curve) in panel.curves.iter().enumerate() {
        let Some(limit) = curve.limit else { continue };
        match limits.iter_mut().find(|l| l.0 == limit) {
            Some(same) => same.1 = GREY,
            None => limits.push((limit, PALETTE[i])),
        }
    }
    limits
}

/// Direct labels at the right: curves and their limits, apart from each other.
fn name_curves(
    canvas: &Canvas<'_>,
    panel: &Panel,
    limits: &[(f64, RGBColor)],
    frame: &Frame<'_>,
    at: impl Fn(&(f64, f64)) -> Px,
) -> Result<(), ChartError> {
    let (_, top, right, bottom) = frame.corners();
    let mut names: Vec<(i32, String, RGBColor)> = Vec::new();
    for (i, curve) in panel.curves.iter().enumerate() {
        let y = curve.points.last().map_or(bottom, |p| at(p).1);
        names.push((y, curve.label.clone(), PALETTE[i]));
    }
    for (limit, colour) in limits {
        let above = if frame.y.has(*limit) { "" } else { " ↑" };
        names.push((
            frame.y.at(*limit),
            format!("limit {}{above}", short(*limit)),
            *colour,
        ));
    }
    let wanted: Vec<i32> = names.iter().map(|n| n.0).collect();
    for ((_, label, colour), y) in names.iter().zip(apart(&wanted, 15, (top + 4, bottom - 2))) {
        let label = cut(label, WIDTH as i32 - right - 12, TEXT);
        canvas.text((right + 8, y), &label, TEXT, *colour, Hold::Left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(windows: u32) -> OverTime {
        let points: Vec<(f64, f64)> = (0..windows)
            .map(|t| (f64::from(t), f64::from(t * t)))
            .collect();
        OverTime {
            title: "calm & flood".into(),
            panels: vec![Panel {
                label: "rate (1/s)".into(),
                curves: vec![Curve {
                    label: "store".into(),
                    peaks: points.iter().map(|(t, v)| (*t, 3.0 * v)).collect(),
                    points,
                    limit: Some(200.0),
                }],
            }],
            bands: vec![Band {
                from_s: 2.0,
                to_s: 4.0,
            }],
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_outages_and_limits_are_marked() {
        let text = svg(&figure(10)).unwrap();
        assert_eq!(text, svg(&figure(10)).unwrap());
        for words in ["outage", "calm &amp; flood", "limit 200", "busiest 100 ms"] {
            assert!(text.contains(words), "{words}");
        }
    }

    #[test]
    fn a_limit_far_above_is_told_and_does_not_flatten_the_curves() {
        let mut far = figure(10);
        far.panels[0].curves[0].limit = Some(1e9);
        let text = svg(&far).unwrap();
        assert!(text.contains("limit 1 G ↑"));
    }

    #[test]
    fn a_figure_of_one_window_is_an_error() {
        assert!(svg(&figure(1)).is_err());
    }
}
