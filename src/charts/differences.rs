//! Two policies, metric by metric: the paired difference with its interval.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, extent, short};
use super::canvas::{Canvas, EDGE, GREY, GRID, Hold, Page, TEXT, cut, page, stroke};
use super::{ChartError, PALETTE};
use crate::report::format;

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Differences {
    /// The heading.
    pub title: String,
    /// The first of the two.
    pub a: String,
    /// The second of the two.
    pub b: String,
    /// From top to bottom.
    pub rows: Vec<DifferenceRow>,
    /// The line at the foot.
    pub provenance: String,
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferenceRow {
    /// The metric, in words or by name.
    pub label: String,
    /// Its unit; empty where it has none.
    pub unit: String,
    /// The mean of the first.
    pub a_mean: f64,
    /// The mean of the second.
    pub b_mean: f64,
    /// Second less first: lower end, mean, upper end; in the metric's unit.
    pub difference: (f64, f64, f64),
}

impl DifferenceRow {
    /// The difference as a share of the first's mean, %; `None` where that is 0.
    fn percent(&self) -> Option<(f64, f64, f64)> {
        let of = |x: f64| 100.0 * x / self.a_mean.abs();
        let (lo, mean, hi) = self.difference;
        let all = (of(lo), of(mean), of(hi));
        (all.0.is_finite() && all.1.is_finite() && all.2.is_finite()).then_some(all)
    }

    /// Does the interval leave 0 out?
    fn significant(&self) -> bool {
        self.difference.0 > 0.0 || self.difference.2 < 0.0
    }

    fn means(&self) -> String {
        let (a, b) = (short(self.a_mean), short(self.b_mean));
        format!("{a} → {b} {}", self.unit).trim_end().to_string()
    }

    fn told(&self) -> String {
        let (lo, mean, hi) = self.difference;
        let half = (hi - lo) / 2.0;
        let sign = if mean > 0.0 { "+" } else { "" };
        match half > 0.0 && half.is_finite() {
            true => format!("{sign}{} ± {}", short(mean), format::half_width(half)),
            false => format!("{sign}{}", short(mean)),
        }
    }
}

const ROW: i32 = 38;
const HEAD: i32 = 22;
const AXIS: i32 = 44;
const LEFT: i32 = 256;
const RIGHT: i32 = 536;
/// Differences beyond so many percent are drawn at the edge, as arrows.
const MOST: f64 = 200.0;

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where there is no row, or the backend fails.
pub fn svg(figure: &Differences) -> Result<String, ChartError> {
    if figure.rows.is_empty() {
        return Err(ChartError("there is no metric to compare".into()));
    }
    let about = Page {
        title: &figure.title,
        notes: vec![
            format!("A: {}", figure.a),
            format!("B: {}; in colour where the interval leaves 0 out", figure.b),
        ],
        provenance: &figure.provenance,
    };
    let rows = figure.rows.len() as i32;
    page(&about, HEAD + ROW * rows + AXIS, |canvas, top| {
        let ends = figure.rows.iter().filter_map(DifferenceRow::percent);
        let ends = ends.flat_map(|(lo, _, hi)| [lo.clamp(-MOST, MOST), hi.clamp(-MOST, MOST)]);
        let (low, high) = extent(ends.chain([0.0])).unwrap_or((-1.0, 1.0));
        let pad = ((high - low) * 0.08).max(0.5);
        let x = Axis::linear((low - pad, high + pad), (LEFT, RIGHT));
        let (first, last) = (top + HEAD, top + HEAD + ROW * rows);
        let frame = Frame {
            x,
            y: Axis::linear((0.0, 1.0), (last, first)),
            x_label: "B − A, % of A's mean",
            y_label: "",
            x_ticks: Vec::new(),
            y_ticks: Vec::new(),
        };
        frame.draw_x(canvas)?;
        canvas.text(
            (RIGHT + 14, top + 10),
            "A → B, difference",
            TEXT,
            GREY,
            Hold::Left,
        )?;
        let zero = x.at(0.0);
        canvas.line([(zero, first), (zero, last)], stroke(BLACK, 1))?;
        for (i, row) in figure.rows.iter().enumerate() {
            draw_row(canvas, row, &x, first + ROW * i as i32 + ROW / 2)?;
        }
        Ok(())
    })
}

fn draw_row(canvas: &Canvas<'_>, row: &DifferenceRow, x: &Axis, y: i32) -> Result<(), ChartError> {
    let colour = match row.significant() {
        false => RGBColor(130, 130, 130),
        true if row.difference.1 < 0.0 => PALETTE[0],
        true => PALETTE[1],
    };
    let label = cut(&row.label, LEFT - EDGE - 12, TEXT);
    canvas.text((EDGE, y), &label, TEXT, BLACK, Hold::Left)?;
    canvas.line(
        [(EDGE, y + ROW / 2), (LEFT - 6, y + ROW / 2)],
        stroke(GRID, 1),
    )?;
    canvas.text((RIGHT + 14, y - 8), &row.means(), TEXT, BLACK, Hold::Left)?;
    canvas.text(
        (RIGHT + 14, y + 8),
        &row.told(),
        TEXT,
        if row.significant() { colour } else { GREY },
        Hold::Left,
    )?;
    let Some((lo, mean, hi)) = row.percent() else {
        return canvas.text(
            ((LEFT + RIGHT) / 2, y),
            "A is 0: no share",
            TEXT,
            GREY,
            Hold::Middle,
        );
    };
    let inside = |v: f64| v.clamp(-MOST, MOST);
    canvas.line(
        [(x.at(inside(lo)), y), (x.at(inside(hi)), y)],
        stroke(colour, 3),
    )?;
    let at = x.at(inside(mean));
    if mean.abs() <= MOST {
        return canvas.circle((at, y), 5, colour.filled());
    }
    let (tip, back) = if mean > 0.0 {
        (at + 8, at - 4)
    } else {
        (at - 8, at + 4)
    };
    canvas.area(
        vec![(tip, y), (back, y - 7), (back, y + 7)],
        colour.filled(),
    )?;
    let (place, hold) = if mean > 0.0 {
        (back - 6, Hold::Right)
    } else {
        (back + 6, Hold::Left)
    };
    canvas.text(
        (place, y - 11),
        &format!("{} %", short(mean)),
        TEXT,
        colour,
        hold,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, a_mean: f64, difference: (f64, f64, f64)) -> DifferenceRow {
        DifferenceRow {
            label: label.into(),
            unit: "ms".into(),
            a_mean,
            b_mean: a_mean + difference.1,
            difference,
        }
    }

    fn figure() -> Differences {
        Differences {
            title: "a & b".into(),
            a: "floor 1s".into(),
            b: "floor 2s".into(),
            rows: vec![
                row("less", 100.0, (-12.0, -10.0, -8.0)),
                row("none", 50.0, (0.0, 0.0, 0.0)),
                row("from <nothing>", 0.0, (1.0, 2.0, 3.0)),
                row("huge", 1e-9, (1e9, 2e9, 3e9)),
            ],
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_extremes_are_drawn() {
        let text = svg(&figure()).unwrap();
        assert_eq!(text, svg(&figure()).unwrap());
        assert!(text.contains("a &amp; b") && text.contains("from &lt;nothing&gt;"));
        assert!(text.contains("A is 0: no share") && text.contains("-10 ± 2"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn a_figure_without_rows_is_an_error() {
        assert!(
            svg(&Differences {
                rows: Vec::new(),
                ..figure()
            })
            .is_err()
        );
    }

    #[test]
    fn an_interval_that_touches_zero_is_not_significant() {
        assert!(!row("", 1.0, (0.0, 0.1, 0.2)).significant());
        assert!(row("", 1.0, (0.01, 0.1, 0.2)).significant());
        assert!(row("", 1.0, (-0.2, -0.1, -0.01)).significant());
    }
}
