//! The trade-off: `tasks/get` rate against p99 completion latency, a line per ceiling, points by floor.

use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug)]
pub struct TradeOff {
    /// The heading.
    pub title: String,
    /// One line per ceiling.
    pub lines: Vec<Line>,
    /// The latency that an objective allows, ms.
    pub latency_limit_ms: Option<f64>,
    /// The line at the foot.
    pub provenance: String,
}

/// The points of one ceiling.
#[derive(Clone, Debug)]
pub struct Line {
    /// The ceiling.
    pub label: String,
    /// By ascending floor.
    pub points: Vec<Point>,
}

/// One floor of a line.
#[derive(Clone, Debug)]
pub struct Point {
    /// The floor.
    pub label: String,
    /// p99 completion latency: lower end, mean, upper end; ms.
    pub latency_ms: (f64, f64, f64),
    /// Rate: lower end, mean, upper end; 1/s.
    pub rate_per_s: (f64, f64, f64),
    /// Does it meet the objectives?
    pub feasible: bool,
    /// Is it the choice?
    pub chosen: bool,
}

impl TradeOff {
    /// The choice in words.
    fn choice(&self) -> String {
        let mut points = self
            .lines
            .iter()
            .flat_map(|l| l.points.iter().map(move |p| (l, p)));
        match points.find(|(_, p)| p.chosen) {
            Some((line, p)) => format!("circled: the choice, floor {} and {}", p.label, line.label),
            None => "no point meets every objective".into(),
        }
    }
}

const HEIGHT: u32 = 500;

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where there is no point to draw, or the backend fails.
pub fn svg(figure: &TradeOff) -> Result<String, ChartError> {
    let points = || figure.lines.iter().flat_map(|l| &l.points);
    let Some((x, y)) =
        span(points().map(|p| p.latency_ms)).zip(span(points().map(|p| p.rate_per_s)))
    else {
        return Err(ChartError(
            "there is no point with a defined latency".into(),
        ));
    };
    let limit = figure.latency_limit_ms;
    let x = (
        x.0.min(limit.unwrap_or(x.0)) / 1.15,
        x.1.max(limit.unwrap_or(x.1)) * 1.35,
    );
    let y = (y.0 / 1.25, y.1 * 1.25);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        draw(&root, figure, x, y).map_err(ChartError::new)?;
        root.present().map_err(ChartError::new)?;
    }
    Ok(text)
}

/// Least and greatest end of the intervals.
fn span(values: impl Iterator<Item = (f64, f64, f64)>) -> Option<(f64, f64)> {
    values.fold(None, |span, (lo, _, hi)| {
        let (least, greatest) = span.unwrap_or((f64::INFINITY, 0.0f64));
        Some((least.min(lo.max(1e-9)), greatest.max(hi)))
    })
}

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(
    root: &DrawingArea<SVGBackend<'a>, Shift>,
    figure: &TradeOff,
    x: (f64, f64),
    y: (f64, f64),
) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let (plot, foot) = root.split_vertically(HEIGHT - 22);
    let (head, plot) = plot.split_vertically(48);
    let small = ("sans-serif", 12).into_font();
    foot.draw(&Text::new(
        figure.provenance.clone(),
        (12, 2),
        small.clone().color(&BLACK.mix(0.6)),
    ))?;
    let heading = ("sans-serif", 16).into_font().color(&BLACK);
    head.draw(&Text::new(figure.title.clone(), (12, 8), heading))?;
    let below = ("sans-serif", 13).into_font().color(&BLACK.mix(0.8));
    head.draw(&Text::new(figure.choice(), (12, 30), below))?;
    let mut chart = ChartBuilder::on(&plot)
        .margin(4)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (x.0..x.1).log_scale().with_key_points(ticks(x)),
            (y.0..y.1).log_scale().with_key_points(ticks(y)),
        )?;
    chart
        .configure_mesh()
        .x_desc("completion latency, p99 (ms)")
        .y_desc("tasks/get rate of the fleet (1/s)")
        .x_label_formatter(&|v| crate::report::format::number(Some(*v)))
        .y_label_formatter(&|v| crate::report::format::number(Some(*v)))
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    if let Some(limit) = figure.latency_limit_ms {
        let grey = RGBColor(90, 90, 90);
        chart.draw_series(DashedLineSeries::new(
            [(limit, y.0), (limit, y.1)],
            5,
            4,
            grey.stroke_width(1),
        ))?;
        let label = format!(
            "objective: {} ms",
            crate::report::format::number(Some(limit))
        );
        chart.draw_series([Text::new(
            label,
            (limit * 1.01, y.1 / 1.03),
            small.clone().color(&grey),
        )])?;
    }
    for (i, line) in figure.lines.iter().enumerate() {
        let colour = PALETTE[i % PALETTE.len()];
        let means = line.points.iter().map(|p| (p.latency_ms.1, p.rate_per_s.1));
        chart.draw_series(LineSeries::new(means, colour.stroke_width(2)))?;
        for p in &line.points {
            let (at_x, at_y) = (p.latency_ms.1, p.rate_per_s.1);
            chart.draw_series([
                PathElement::new(
                    [(p.latency_ms.0.max(x.0), at_y), (p.latency_ms.2, at_y)],
                    colour.mix(0.5),
                ),
                PathElement::new(
                    [(at_x, p.rate_per_s.0.max(y.0)), (at_x, p.rate_per_s.2)],
                    colour.mix(0.5),
                ),
            ])?;
            // Filled where the objectives are met.
            let fill = if p.feasible {
                colour.filled()
            } else {
                WHITE.filled()
            };
            chart.draw_series([Circle::new((at_x, at_y), 4, fill)])?;
            chart.draw_series([Circle::new((at_x, at_y), 4, colour.stroke_width(2))])?;
        }
        // Direct labels: the ceiling beside the top of its line.
        if let Some(top) = line.points.first() {
            let label = format!(" {}", line.label);
            let place = (top.latency_ms.1, top.rate_per_s.1 * 1.13);
            chart.draw_series([Text::new(
                label,
                place,
                ("sans-serif", 13).into_font().color(&colour),
            )])?;
        }
    }
    for p in figure
        .lines
        .iter()
        .flat_map(|l| &l.points)
        .filter(|p| p.chosen)
    {
        let at = (p.latency_ms.1, p.rate_per_s.1);
        chart.draw_series([Circle::new(at, 9, BLACK.stroke_width(2))])?;
    }
    // The floors, once: beside the line that stands furthest to the right.
    let rightmost = figure
        .lines
        .iter()
        .filter(|l| !l.points.is_empty())
        .max_by(|a, b| {
            let latency = |l: &Line| l.points[0].latency_ms.1;
            latency(a).total_cmp(&latency(b))
        });
    for p in rightmost.iter().flat_map(|l| &l.points) {
        let at = (p.latency_ms.2 * 1.02, p.rate_per_s.1 * 1.03);
        let label = format!("floor {}", p.label);
        chart.draw_series([Text::new(label, at, small.clone().color(&BLACK.mix(0.7)))])?;
    }
    Ok(())
}

/// 1, 2 and 5 times the powers of ten inside a range.
fn ticks(range: (f64, f64)) -> Vec<f64> {
    let first = range.0.log10().floor() as i32;
    let last = range.1.log10().ceil() as i32;
    let all = (first..=last).flat_map(|e| [1.0, 2.0, 3.0, 5.0].map(|m| m * 10f64.powi(e)));
    all.filter(|v| (range.0..=range.1).contains(v)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> TradeOff {
        let point = |floor: f64| Point {
            label: format!("{floor} ms"),
            latency_ms: (floor * 2.0, floor * 2.1, floor * 2.2),
            rate_per_s: (9e4 / floor, 1e5 / floor, 1.1e5 / floor),
            feasible: floor < 500.0,
            chosen: floor == 250.0,
        };
        TradeOff {
            title: "a <title>".into(),
            lines: vec![Line {
                label: "ceiling 5 s".into(),
                points: [100.0, 250.0, 900.0].map(point).to_vec(),
            }],
            latency_limit_ms: Some(1000.0),
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_names_are_escaped() {
        let text = svg(&figure()).unwrap();
        assert_eq!(text, svg(&figure()).unwrap());
        assert!(text.contains("a &lt;title&gt;") && text.contains("the choice, floor 250 ms"));
    }

    #[test]
    fn a_figure_without_points_is_an_error() {
        assert!(
            svg(&TradeOff {
                lines: vec![],
                ..figure()
            })
            .is_err()
        );
    }
}
