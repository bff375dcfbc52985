//! Small multiples: a row for each metric, a column for each thing that is varied, a line for each value of the others.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, extent};
use super::canvas::{Canvas, EDGE, GREY, Hold, Page, Px, TEXT, cut, page, stroke, width};
use super::labels::apart;
use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The heading.
    pub title: String,
    /// The metrics, from top to bottom.
    pub metrics: Vec<CurvesMetric>,
    /// From left to right, two at most.
    pub columns: Vec<CurvesColumn>,
    /// The line at the foot.
    pub provenance: String,
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesMetric {
    /// The metric and its unit.
    pub label: String,
    /// What objectives ask of it.
    pub limits: Vec<f64>,
}

/// What varies along the x axes of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesColumn {
    /// The column's heading: what is varied, and what has a line.
    pub heading: String,
    /// What x is, with its unit.
    pub x_label: String,
    /// The values of x and their words, ascending; words alone where they are no numbers, and then x counts them from 0.
    pub x: Vec<(f64, String)>,
    /// Are the words categories, without numbers?
    pub categories: bool,
    /// The lines.
    pub lines: Vec<CurvesLine>,
}

/// One value of what is not on the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesLine {
    /// The value.
    pub label: String,
    /// Is it the choice's?
    pub chosen: bool,
    /// For each metric, its points by ascending x.
    pub points: Vec<Vec<CurvesPoint>>,
    /// For each metric, (x, value) of a closed form by ascending x; empty where there is none.
    pub closed_form: Vec<Vec<(f64, f64)>>,
}

/// One cell of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesPoint {
    /// What is varied.
    pub x: f64,
    /// Lower end, mean, upper end.
    pub value: (f64, f64, f64),
    /// Is it the choice?
    pub chosen: bool,
}

/// Lines beyond so many would have no colour of their own; black is for closed forms.
pub const MOST_LINES: usize = PALETTE.len() - 1;

const PANEL: i32 = 118;
const GAP: i32 = 42;
const HEADING: i32 = 22;
const AXIS: i32 = 40;

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where there is no point, more than two columns or [`MOST_LINES`] lines, or the backend fails.
pub fn svg(figure: &Curves) -> Result<String, ChartError> {
    let metrics = figure.metrics.len();
    let lines = || figure.columns.iter().flat_map(|c| &c.lines);
    if lines().all(|l| l.points.iter().all(Vec::is_empty)) {
        return Err(ChartError("there is no point with a defined value".into()));
    }
    let fits = |l: &CurvesLine| l.points.len() == metrics && l.closed_form.len() == metrics;
    if figure.columns.len() > 2 || !lines().all(fits) {
        return Err(ChartError("its columns do not fit its metrics".into()));
    }
    if figure.columns.iter().any(|c| c.lines.len() > MOST_LINES) {
        return Err(ChartError(format!(
            "there are more than {MOST_LINES} lines"
        )));
    }
    let closed = lines().any(|l| l.closed_form.iter().any(|c| !c.is_empty()));
    let limits = figure.metrics.iter().any(|m| !m.limits.is_empty());
    let chosen = lines()
        .flat_map(|l| l.points.iter().flatten())
        .any(|p| p.chosen);
    let below = (0..metrics).any(|row| {
        let axis = y_axis(figure, row, (1, 0));
        lines().any(|l| l.points[row].iter().any(|p| axis.cuts(p.value.1)))
    });
    let words = [
        (true, "bands: confidence intervals"),
        (chosen, "circled: the choice"),
        (limits, "grey dashes: objectives"),
        (closed, "black dashes: closed form"),
        (below, "values below an axis stand on it"),
    ];
    let told: Vec<&str> = words.iter().filter(|w| w.0).map(|w| w.1).collect();
    let about = Page {
        title: &figure.title,
        notes: vec![told.join("; ")],
        provenance: &figure.provenance,
    };
    let body = HEADING + (PANEL + GAP) * metrics as i32 + AXIS - GAP / 2;
    page(&about, body, |canvas, top| {
        let columns = figure.columns.len().max(1) as i32;
        let room = (WIDTH as i32 - 2 * EDGE) / columns;
        for (i, column) in (0..).zip(&figure.columns) {
            draw_column(canvas, figure, column, (EDGE + room * i, room - 8), top)?;
        }
        Ok(())
    })
}

fn draw_column(
    canvas: &Canvas<'_>,
    figure: &Curves,
    column: &CurvesColumn,
    (left, room): (i32, i32),
    top: i32,
) -> Result<(), ChartError> {
    let heading = cut(&column.heading, room, TEXT + 1);
    canvas.text((left, top + 10), &heading, TEXT + 1, BLACK, Hold::Left)?;
    let most = if figure.columns.len() > 1 { 74 } else { 190 };
    let widest = column
        .lines
        .iter()
        .map(|l| width(&l.label, TEXT))
        .max()
        .unwrap_or(0);
    let beside = widest.min(most) + 10;
    let (x0, x1) = (left + 56, left + room - beside);
    let last = figure.metrics.len().saturating_sub(1);
    for (row, metric) in figure.metrics.iter().enumerate() {
        let y = top + HEADING + (PANEL + GAP) * row as i32 + 18;
        canvas.text(
            (left + 8, y - 10),
            &cut(&metric.label, room - 8, TEXT),
            TEXT,
            BLACK,
            Hold::Left,
        )?;
        let panel = Panel {
            metric,
            row,
            column,
            x: x_axis(column, (x0, x1)),
            y: y_axis(figure, row, (y + PANEL, y)),
        };
        panel.draw(canvas, row == last, beside)?;
    }
    Ok(())
}

/// Logarithmic where the values span a decade.
fn x_axis(column: &CurvesColumn, (from, to): (i32, i32)) -> Axis {
    let inner = (from + 8, to - 8);
    let (low, high) = extent(column.x.iter().map(|x| x.0)).unwrap_or((0.0, 1.0));
    if column.categories {
        return Axis::linear((low - 0.5, high + 0.5), inner);
    }
    if low > 0.0 && high >= 8.0 * low {
        Axis::log((low, high), inner)
    } else {
        Axis::linear((low, high), inner)
    }
}

/// The same for all columns of a metric, logarithmic where the means above 0 span a decade.
fn y_axis(figure: &Curves, row: usize, pixels: (i32, i32)) -> Axis {
    let points = || {
        figure
            .columns
            .iter()
            .flat_map(|c| &c.lines)
            .flat_map(|l| &l.points[row])
    };
    let means = extent(points().map(|p| p.value.1)).unwrap_or((0.0, 1.0));
    let limits = figure.metrics[row].limits.iter().copied();
    let near = |v: &f64| means.1 > 0.0 && *v <= means.1 * 4.0 && *v >= means.0 / 4.0;
    let shown = extent(
        points()
            .flat_map(|p| [p.value.0, p.value.2])
            .chain(limits.filter(near)),
    );
    let (low, high) = shown.filter(|s| *s != (0.0, 0.0)).unwrap_or((0.0, 1.0));
    // Nothing at all among much is no reason to crowd the rest.
    let some = extent(points().map(|p| p.value.1).filter(|v| *v > 0.0)).unwrap_or((1.0, 1.0));
    if means.0 >= 0.0 && some.1 >= 10.0 * some.0 {
        let least = some.0.max(some.1 * 1e-4);
        Axis::log((low.max(least / 2.0) / 1.1, high * 1.1), pixels)
    } else {
        let low = if low >= 0.0 && low < 0.5 * high {
            0.0
        } else {
            low - (high - low) * 0.08
        };
        Axis::linear((low, high + (high - low) * 0.08), pixels)
    }
}

struct Panel<'f> {
    metric: &'f CurvesMetric,
    row: usize,
    column: &'f CurvesColumn,
    x: Axis,
    y: Axis,
}

impl Panel<'_> {
    fn draw(&self, canvas: &Canvas<'_>, last: bool, beside: i32) -> Result<(), ChartError> {
        let frame = Frame {
            x: self.x,
            y: self.y,
            x_label: if last { &self.column.x_label } else { "" },
            y_label: "",
            x_ticks: self.ticks(),
            y_ticks: Vec::new(),
        };
        frame.draw(canvas)?;
        let (left, _, right, _) = frame.corners();
        for limit in self.metric.limits.iter().filter(|l| self.y.has(**l)) {
            let y = self.y.at(*limit);
            canvas.dashed(&[(left, y), (right, y)], (5.0, 4.0), stroke(GREY, 1))?;
        }
        for (i, line) in self.column.lines.iter().enumerate() {
            self.band(canvas, line, self.own(i))?;
        }
        for (i, line) in self.column.lines.iter().enumerate() {
            self.line(canvas, line, self.own(i))?;
        }
        self.names(canvas, beside)
    }

    /// The values of x that have room for their words; round numbers where most have none.
    fn ticks(&self) -> Vec<(f64, String)> {
        let room = |a: &(f64, String), b: &(f64, String)| {
            self.x.at(b.0) - self.x.at(a.0) >= (width(&a.1, TEXT) + width(&b.1, TEXT)) / 2 + 6
        };
        let mut shown: Vec<(f64, String)> = Vec::new();
        let (low, high) = self.x.span();
        let share = (high - low + 16) / self.column.x.len().max(1) as i32;
        for (x, words) in &self.column.x {
            let words = match self.column.categories {
                true => cut(words, share.max(70), TEXT),
                false => words.clone(),
            };
            let tick = (*x, words);
            if shown.last().is_none_or(|last| room(last, &tick)) {
                shown.push(tick);
            }
        }
        shown
    }

    fn at(&self, x: f64, value: f64, beside: i32) -> Px {
        (self.x.at(x) + beside, self.y.at(value))
    }

    /// The colour of a line, and how far beside its x it stands: the points of a category stand side by side.
    fn own(&self, line: usize) -> (RGBColor, i32) {
        let from_middle = 2 * line as i32 - (self.column.lines.len() as i32 - 1);
        (
            PALETTE[line],
            if self.column.categories {
                5 * from_middle
            } else {
                0
            },
        )
    }

    fn band(
        &self,
        canvas: &Canvas<'_>,
        line: &CurvesLine,
        (colour, beside): (RGBColor, i32),
    ) -> Result<(), ChartError> {
        let points = &line.points[self.row];
        let above = points.iter().map(|p| self.at(p.x, p.value.2, beside));
        let below = points.iter().rev().map(|p| self.at(p.x, p.value.0, beside));
        if self.column.categories || points.len() < 2 {
            for p in points {
                let ends = [
                    self.at(p.x, p.value.0, beside),
                    self.at(p.x, p.value.2, beside),
                ];
                canvas.line(ends, stroke(colour.mix(0.5), 3))?;
            }
            return Ok(());
        }
        canvas.area(above.chain(below).collect(), colour.mix(0.18).filled())
    }

    fn line(
        &self,
        canvas: &Canvas<'_>,
        line: &CurvesLine,
        (colour, beside): (RGBColor, i32),
    ) -> Result<(), ChartError> {
        let points = &line.points[self.row];
        let thick = if line.chosen { 3 } else { 2 };
        let way = points.iter().map(|p| self.at(p.x, p.value.1, beside));
        if !self.column.categories {
            canvas.line(way, stroke(colour, thick))?;
        }
        for p in points {
            let at = self.at(p.x, p.value.1, beside);
            canvas.circle(at, 3, colour.filled())?;
            if p.chosen {
                canvas.circle(at, 7, stroke(BLACK, 2))?;
            }
        }
        let closed: Vec<Px> = line.closed_form[self.row]
            .iter()
            .map(|(x, v)| self.at(*x, *v, beside))
            .collect();
        canvas.dashed(&closed, (4.0, 3.0), stroke(BLACK, 1))
    }

    /// Names beside the right ends of the lines.
    fn names(&self, canvas: &Canvas<'_>, beside: i32) -> Result<(), ChartError> {
        let right = self.x.span().1 + 8;
        let drawn: Vec<(usize, i32)> = self
            .column
            .lines
            .iter()
            .enumerate()
            .filter_map(|(i, l)| Some((i, self.y.at(l.points[self.row].last()?.value.1))))
            .collect();
        let wanted: Vec<i32> = drawn.iter().map(|d| d.1).collect();
        let (top, bottom) = self.y.span();
        for ((i, _), y) in drawn.iter().zip(apart(&wanted, 14, (top + 4, bottom + 6))) {
            let label = cut(&self.column.lines[*i].label, beside - 4, TEXT);
            canvas.text((right + 5, y), &label, TEXT, PALETTE[*i], Hold::Left)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64]) -> Curves {
        let points: Vec<CurvesPoint> = values
            .iter()
            .zip(1..)
            .map(|(v, x)| CurvesPoint {
                x: f64::from(x),
                value: (v * 0.9, *v, v * 1.1),
                chosen: x == 2,
            })
            .collect();
        let line = |label: &str| CurvesLine {
            label: label.into(),
            chosen: label == "2s",
            points: vec![points.clone()],
            closed_form: vec![points.iter().map(|p| (p.x, p.value.1)).collect()],
        };
        Curves {
            title: "a <title>".into(),
            metrics: vec![CurvesMetric {
                label: "load (1/s)".into(),
                limits: vec![5.0],
            }],
            columns: vec![CurvesColumn {
                heading: "over the floor, a line per ceiling".into(),
                x_label: "floor".into(),
                x: points.iter().map(|p| (p.x, format!("{}s", p.x))).collect(),
                categories: false,
                lines: vec![line("2s"), line("5s")],
            }],
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_says_what_is_drawn() {
        let text = svg(&figure(&[9.0, 4.0, 2.0])).unwrap();
        assert_eq!(text, svg(&figure(&[9.0, 4.0, 2.0])).unwrap());
        for words in [
            "a &lt;title&gt;",
            "closed form",
            "circled: the choice",
            "objectives",
            "5s",
        ] {
            assert!(text.contains(words), "{words}");
        }
    }

    #[test]
    fn a_zero_among_large_values_stands_on_a_logarithmic_axis() {
        let text = svg(&figure(&[0.0, 3.0, 900.0])).unwrap();
        assert!(text.contains("values below an axis stand on it"));
        assert!(
            !svg(&figure(&[1.0, 3.0, 900.0]))
                .unwrap()
                .contains("stand on it")
        );
    }

    #[test]
    fn odd_values_are_drawn() {
        for values in [
            &[7.0][..],
            &[0.0, 0.0],
            &[3.0, 3.0, 3.0],
            &[1e-300, 1e300],
            &[0.0, 1e12],
        ] {
            let text = svg(&figure(values)).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{values:?}");
        }
    }

    #[test]
    fn a_figure_without_points_or_with_too_many_lines_is_an_error() {
        assert!(svg(&figure(&[])).is_err());
        let mut many = figure(&[1.0, 2.0]);
        let line = many.columns[0].lines[0].clone();
        many.columns[0].lines = vec![line; MOST_LINES + 1];
        assert!(svg(&many).is_err());
    }
}
