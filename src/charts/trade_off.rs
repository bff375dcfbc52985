//! The trade-off: `tasks/get` rate against p99 completion latency, a line per ceiling, points by floor.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, extent, short};
use super::canvas::{Canvas, EDGE, GREY, Hold, Page, Px, TEXT, page, stroke};
use super::labels::Places;
use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TradeOff {
    /// The heading.
    pub title: String,
    /// One line per ceiling.
    pub lines: Vec<Line>,
    /// The latency that an objective allows, ms.
    pub latency_limit_ms: Option<f64>,
    /// The rate that an objective allows, 1/s.
    pub rate_limit_per_s: Option<f64>,
    /// The line at the foot.
    pub provenance: String,
}

/// The points of one ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The ceiling.
    pub label: String,
    /// By ascending floor.
    pub points: Vec<Point>,
}

/// One floor of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|l| &l.points)
    }
}

const HEIGHT: i32 = 400;
const AXIS: i32 = 42;
const LEFT: i32 = EDGE + 70;
const RIGHT: i32 = WIDTH as i32 - 24;
const SHADE: RGBColor = RGBColor(236, 246, 238);

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where there is no point to draw, or the backend fails.
pub fn svg(figure: &TradeOff) -> Result<String, ChartError> {
    let span = |value: fn(&Point) -> (f64, f64, f64), limit: Option<f64>| {
        let means = extent(figure.points().map(|p| value(p).1))?;
        let ends = figure.points().flat_map(|p| [value(p).0, value(p).2]);
        // Ends and limits far away from all means would leave them no room.
        let near = |v: &f64| *v >= means.0 / 10.0 && *v <= means.1 * 10.0;
        extent(ends.chain(limit).filter(near).chain([means.0, means.1]))
    };
    let x = span(|p| p.latency_ms, figure.latency_limit_ms);
    let y = span(|p| p.rate_per_s, figure.rate_limit_per_s);
    let Some((x, y)) = x.zip(y) else {
        return Err(ChartError(
            "there is no point with a defined latency".into(),
        ));
    };
    let about = Page {
        title: &figure.title,
        notes: vec![figure.choice()],
        provenance: &figure.provenance,
    };
    page(&about, HEIGHT + AXIS + 8, |canvas, top| {
        let frame = Frame {
            x: Axis::log((x.0 / 1.1, x.1 * 1.3), (LEFT, RIGHT)),
            y: Axis::log((y.0 / 1.15, y.1 * 1.2), (top + HEIGHT, top + 6)),
            x_label: "completion latency, p99 (ms)",
            y_label: "tasks/get rate of the fleet (1/s)",
            x_ticks: Vec::new(),
            y_ticks: Vec::new(),
        };
        let mut places = Places::default();
        shade(canvas, figure, &frame)?;
        frame.draw(canvas)?;
        limits(canvas, figure, &frame, &mut places)?;
        for (i, line) in figure.lines.iter().enumerate() {
            draw_line(canvas, line, &frame, PALETTE[i % PALETTE.len()])?;
        }
        for p in figure.points().filter(|p| p.chosen) {
            canvas.circle(at(p, &frame), 9, stroke(BLACK, 2))?;
        }
        names(canvas, figure, &frame, &mut places)
    })
}

fn at(p: &Point, frame: &Frame<'_>) -> Px {
    (frame.x.at(p.latency_ms.1), frame.y.at(p.rate_per_s.1))
}

/// The part that the objectives on the two axes leave.
fn shade(canvas: &Canvas<'_>, figure: &TradeOff, frame: &Frame<'_>) -> Result<(), ChartError> {
    if figure.latency_limit_ms.is_none() && figure.rate_limit_per_s.is_none() {
        return Ok(());
    }
    let (left, top, right, bottom) = frame.corners();
    let to = figure.latency_limit_ms.map_or(right, |l| frame.x.at(l));
    let from = figure.rate_limit_per_s.map_or(top, |l| frame.y.at(l));
    if to <= left || from >= bottom {
        return Ok(());
    }
    canvas.rectangle([(left, from), (to, bottom)], SHADE.filled())
}

/// The lines of the objectives.
fn limits(
    canvas: &Canvas<'_>,
    figure: &TradeOff,
    frame: &Frame<'_>,
    places: &mut Places,
) -> Result<(), ChartError> {
    let (left, top, right, bottom) = frame.corners();
    let style = stroke(GREY, 1);
    if let Some(limit) = figure.latency_limit_ms.filter(|l| frame.x.has(*l)) {
        let x = frame.x.at(limit);
        canvas.dashed(&[(x, top), (x, bottom)], (5.0, 4.0), style)?;
        places.take_rectangle([x - 2, top, x + 2, bottom]);
        let words = format!("objective: {} ms", short(limit));
        if let Some(place) = places.find((x, top + 8), &words, [left, top, right, bottom]) {
            canvas.text(place, &words, TEXT, GREY, Hold::Left)?;
        }
    }
    if let Some(limit) = figure.rate_limit_per_s.filter(|l| frame.y.has(*l)) {
        let y = frame.y.at(limit);
        canvas.dashed(&[(left, y), (right, y)], (5.0, 4.0), style)?;
        places.take_rectangle([left, y - 2, right, y + 2]);
        let words = format!("objective: {} /s", short(limit));
        if let Some(place) = places.find((right - 70, y), &words, [left, top, right, bottom]) {
            canvas.text(place, &words, TEXT, GREY, Hold::Left)?;
        }
    }
    Ok(())
}

fn draw_line(
    canvas: &Canvas<'_>,
    line: &Line,
    frame: &Frame<'_>,
    colour: RGBColor,
) -> Result<(), ChartError> {
    canvas.line(line.points.iter().map(|p| at(p, frame)), stroke(colour, 2))?;
    for p in &line.points {
        let (x, y) = at(p, frame);
        let thin = stroke(colour.mix(0.5), 1);
        canvas.line(
            [
                (frame.x.at(p.latency_ms.0), y),
                (frame.x.at(p.latency_ms.2), y),
            ],
            thin,
        )?;
        canvas.line(
            [
                (x, frame.y.at(p.rate_per_s.0)),
                (x, frame.y.at(p.rate_per_s.2)),
            ],
            thin,
        )?;
        // Filled where the objectives are met.
        let fill = if p.feasible { colour } else { WHITE };
        canvas.circle((x, y), 4, fill.filled())?;
        canvas.circle((x, y), 4, stroke(colour, 2))?;
    }
    Ok(())
}

/// The ceilings beside the tops of their lines; the floors once, beside the line that reaches furthest to the right.
fn names(
    canvas: &Canvas<'_>,
    figure: &TradeOff,
    frame: &Frame<'_>,
    places: &mut Places,
) -> Result<(), ChartError> {
    let (left, top, right, bottom) = frame.corners();
    let within = [left + 2, top - 4, right + 20, bottom - 2];
    for line in &figure.lines {
        let points: Vec<Px> = line.points.iter().map(|p| at(p, frame)).collect();
        places.take_line(&points);
        points.iter().for_each(|p| places.take(*p, 5));
    }
    for (i, line) in figure.lines.iter().enumerate() {
        let Some(top) = line.points.first().map(|p| at(p, frame)) else {
            continue;
        };
        // Where there is no room for the whole name, its value.
        let value = line.label.rsplit(' ').next().unwrap_or_default();
        let found = [line.label.as_str(), value]
            .into_iter()
            .find_map(|words| Some((words, places.find(top, words, within)?)));
        if let Some((words, place)) = found {
            let colour = PALETTE[i % PALETTE.len()];
            canvas.text(place, words, TEXT, colour, Hold::Left)?;
        }
    }
    let furthest = |l: &Line| l.points.iter().map(|p| at(p, frame).0).max();
    let rightmost = figure
        .lines
        .iter()
        .max_by_key(|l| (furthest(l), l.points.len()));
    for p in rightmost.iter().flat_map(|l| &l.points) {
        let words = format!("floor {}", p.label);
        let end = (frame.x.at(p.latency_ms.2), at(p, frame).1);
        if let Some(place) = places.find(end, &words, within) {
            canvas.text(place, &words, TEXT, GREY, Hold::Left)?;
        }
    }
    Ok(())
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
            rate_limit_per_s: Some(600.0),
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

    #[test]
    fn odd_values_are_drawn() {
        let mut odd = figure();
        odd.lines[0].points[0].latency_ms = (-1.0, 0.0, 1e300);
        odd.lines[0].points[1].rate_per_s = (0.0, 0.0, 0.0);
        let mut one = figure();
        one.lines[0].points.truncate(1);
        one.latency_limit_ms = Some(1e-300);
        for figure in [odd, one] {
            let text = svg(&figure).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
    }
}
