//! A fleet over time: one panel above the other, a curve per server class.

use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Panel {
    /// The quantity and its unit.
    pub label: String,
    /// A curve for each group.
    pub curves: Vec<Curve>,
}

/// One group of a panel.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The group.
    pub label: String,
    /// (s, value), ascending.
    pub points: Vec<(f64, f64)>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Its start, s.
    pub from_s: f64,
    /// Its end, s.
    pub to_s: f64,
}

const HEAD: u32 = 34;
const PANEL: u32 = 230;
const FOOT: u32 = 22;
/// Curves beyond so many would have no colour of their own.
const MOST_CURVES: usize = PALETTE.len();

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
    let height = HEAD + PANEL * figure.panels.len() as u32 + FOOT;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        draw(&root, figure, end, height).map_err(ChartError::new)?;
        root.present().map_err(ChartError::new)?;
    }
    Ok(text)
}

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(
    root: &DrawingArea<SVGBackend<'a>, Shift>,
    figure: &OverTime,
    end: f64,
    height: u32,
) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let (rest, foot) = root.split_vertically(height - FOOT);
    let (head, rest) = rest.split_vertically(HEAD);
    let small = ("sans-serif", 12).into_font();
    foot.draw(&Text::new(
        figure.provenance.clone(),
        (12, 2),
        small.color(&BLACK.mix(0.6)),
    ))?;
    let heading = ("sans-serif", 16).into_font().color(&BLACK);
    head.draw(&Text::new(figure.title.clone(), (12, 8), heading))?;
    let areas = rest.split_evenly((figure.panels.len(), 1));
    for (i, (area, panel)) in areas.iter().zip(&figure.panels).enumerate() {
        let place = (i == 0, i + 1 == figure.panels.len());
        draw_panel(area, panel, &figure.bands, end, place)?;
    }
    Ok(())
}

fn draw_panel<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    panel: &Panel,
    bands: &[Band],
    end: f64,
    (first, last): (bool, bool),
) -> Result<(), Failure<'a>> {
    let values = panel.curves.iter().flat_map(|c| &c.points).map(|p| p.1);
    let top = values.fold(10.0, f64::max) * 1.6;
    let mut chart = ChartBuilder::on(area)
        .margin(4)
        .margin_right(120)
        .x_label_area_size(if last { 44 } else { 24 })
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..end, (1.0..top).log_scale().with_key_points(tens(top)))?;
    let mut mesh = chart.configure_mesh();
    mesh.y_desc(panel.label.clone())
        .x_label_formatter(&|v| crate::report::format::number(Some(*v)))
        .y_label_formatter(&|v| match *v {
            v if v <= 1.0 => "≤ 1".into(),
            v => crate::report::format::number(Some(v)),
        })
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12));
    if last {
        mesh.x_desc("time (s)");
    }
    mesh.draw()?;
    let small = ("sans-serif", 12).into_font();
    for (i, band) in bands.iter().enumerate() {
        let (from, to) = (band.from_s.min(end), band.to_s.min(end));
        let shade = BLACK.mix(0.10).filled();
        chart.draw_series([Rectangle::new([(from, 1.0), (to, top)], shade)])?;
        if i == 0 && first {
            let label = Text::new(
                "outage",
                (to + end * 0.005, top / 1.3),
                small.color(&BLACK.mix(0.7)),
            );
            chart.draw_series([label])?;
        }
    }
    // Direct labels at the right end, apart from each other.
    let mut ends: Vec<(usize, f64)> = panel
        .curves
        .iter()
        .map(|c| c.points.last())
        .enumerate()
        .map(|(i, last)| (i, last.map_or(1.0, |p| p.1.max(1.0))))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let apart = top.powf(0.085);
    let mut below = 0.0;
    for (i, value) in ends {
        let colour = PALETTE[i];
        let curve = &panel.curves[i];
        let points = curve.points.iter().map(|(x, y)| (*x, y.max(1.0)));
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        let at = value.max(below);
        below = at * apart;
        let place = chart.backend_coord(&(end, at));
        area_label(area, &curve.label, place, colour)?;
    }
    Ok(())
}

/// A label at a place of the whole figure, beside the plot.
fn area_label<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    label: &str,
    place: (i32, i32),
    colour: RGBColor,
) -> Result<(), Failure<'a>> {
    let base = area.get_base_pixel();
    let at = (place.0 - base.0 + 6, place.1 - base.1 - 7);
    let style = ("sans-serif", 13).into_font().color(&colour);
    area.draw(&Text::new(label.to_string(), at, style))
}

/// The powers of ten up to `top`.
fn tens(top: f64) -> Vec<f64> {
    (0..=top.log10().floor() as i32)
        .map(|e| 10f64.powi(e))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(windows: u32) -> OverTime {
        let points = (0..windows)
            .map(|t| (f64::from(t), f64::from(t * t)))
            .collect();
        OverTime {
            title: "calm & flood".into(),
            panels: vec![Panel {
                label: "rate (1/s)".into(),
                curves: vec![Curve {
                    label: "store".into(),
                    points,
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
    fn the_same_input_gives_the_same_bytes_and_outages_are_marked() {
        let text = svg(&figure(10)).unwrap();
        assert_eq!(text, svg(&figure(10)).unwrap());
        assert!(text.contains("outage") && text.contains("calm &amp; flood"));
    }

    #[test]
    fn a_figure_of_one_window_is_an_error() {
        assert!(svg(&figure(1)).is_err());
    }
}
