//! Abort latency: how it is distributed, a row for each manner of waiting, ceiling or tenant class.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, extent, short};
use super::canvas::{Canvas, EDGE, GREY, Hold, Page, TEXT, cut, page, stroke, width};
use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbortLatency {
    /// The heading.
    pub title: String,
    /// From top to bottom.
    pub rows: Vec<AbortRow>,
    /// What an objective allows of a quantile, ms, and of which: `p99`.
    pub limit_ms: Option<(f64, String)>,
    /// The line at the foot.
    pub provenance: String,
}

/// A distribution, ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbortRow {
    /// What it is of.
    pub label: String,
    /// Is it the choice's?
    pub chosen: bool,
    /// The least.
    pub min_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// 90 % are at most this.
    pub p90_ms: f64,
    /// 95 % are at most this.
    pub p95_ms: f64,
    /// 99 % are at most this; `None` where censored.
    pub p99_ms: Option<f64>,
    /// The greatest; `None` where censored.
    pub max_ms: Option<f64>,
}

const ROW: i32 = 34;
const HEAD: i32 = 24;
const AXIS: i32 = 44;
const RIGHT: i32 = WIDTH as i32 - 150;

/// Draws the figure. The axis is logarithmic where the values span more than a decade and a half; values too small for it stand at its low end.
///
/// # Errors
/// [`ChartError`] where there is no row, or the backend fails.
pub fn svg(figure: &AbortLatency) -> Result<String, ChartError> {
    if figure.rows.is_empty() {
        return Err(ChartError("no abort has settled".into()));
    }
    let chosen = figure.rows.iter().any(|r| r.chosen);
    let bold = if chosen {
        "; in colour: the choice"
    } else {
        ""
    };
    let about = Page {
        title: &figure.title,
        notes: vec![format!(
            "thin: least to greatest; thick: p50 to p95; ticks: p50, p90, p95, p99{bold}"
        )],
        provenance: &figure.provenance,
    };
    let rows = figure.rows.len() as i32;
    let widest = figure
        .rows
        .iter()
        .map(|r| width(&r.label, TEXT))
        .max()
        .unwrap_or(0);
    let left = (EDGE + widest + 14).clamp(110, 290);
    page(&about, HEAD + ROW * rows + AXIS, |canvas, top| {
        let (first, last) = (top + HEAD, top + HEAD + ROW * rows);
        let x = x_axis(figure, (left + 6, RIGHT));
        let frame = Frame {
            x,
            y: Axis::linear((0.0, 1.0), (last, first)),
            x_label: "abort latency (ms)",
            y_label: "",
            x_ticks: Vec::new(),
            y_ticks: Vec::new(),
        };
        frame.draw_x(canvas)?;
        canvas.text(
            (RIGHT + 14, top + 10),
            "p50 / p99 (ms)",
            TEXT,
            GREY,
            Hold::Left,
        )?;
        draw_limit(canvas, figure, &x, (top, last))?;
        for (i, row) in figure.rows.iter().enumerate() {
            let y = first + ROW * i as i32 + ROW / 2;
            draw_row(canvas, row, &x, (left, y), chosen)?;
        }
        Ok(())
    })
}

/// The line of the objective from the head to the axis.
fn draw_limit(
    canvas: &Canvas<'_>,
    figure: &AbortLatency,
    x: &Axis,
    (top, last): (i32, i32),
) -> Result<(), ChartError> {
    let Some((limit, of)) = figure.limit_ms.as_ref().filter(|l| x.has(l.0)) else {
        return Ok(());
    };
    let at = x.at(*limit);
    let line = [(at, top + HEAD - 2), (at, last)];
    canvas.dashed(&line, (5.0, 4.0), stroke(GREY, 2))?;
    let words = format!("objective: {of} ≤ {} ms", short(*limit));
    let fits = at + width(&words, TEXT) <= RIGHT;
    let hold = if fits { Hold::Left } else { Hold::Right };
    canvas.text((at, top + 10), &words, TEXT, GREY, hold)
}

fn x_axis(figure: &AbortLatency, pixels: (i32, i32)) -> Axis {
    let values = |r: &AbortRow| {
        let known = [
            Some(r.min_ms),
            Some(r.p50_ms),
            Some(r.p90_ms),
            Some(r.p95_ms),
            r.p99_ms,
            r.max_ms,
        ];
        known.into_iter().flatten()
    };
    let all = || figure.rows.iter().flat_map(values);
    let (_, high) = extent(all()).unwrap_or((0.0, 1.0));
    let limit = figure.limit_ms.as_ref().map(|l| l.0);
    let top = high.max(
        limit
            .filter(|l| *l < high * 20.0 || high <= 0.0)
            .unwrap_or(0.0),
    );
    let low = extent(all().filter(|v| *v > 0.0)).map_or(0.0, |e| e.0);
    if low > 0.0 && top / low > 30.0 {
        // A least value of nanoseconds would leave no room for the rest.
        Axis::log((low.max(top * 1e-6), top * 1.1), pixels)
    } else {
        Axis::linear((0.0, if top > 0.0 { top * 1.05 } else { 1.0 }), pixels)
    }
}

fn draw_row(
    canvas: &Canvas<'_>,
    row: &AbortRow,
    x: &Axis,
    (left, y): (i32, i32),
    choice: bool,
) -> Result<(), ChartError> {
    let colour = if row.chosen || !choice {
        PALETTE[0]
    } else {
        RGBColor(110, 110, 110)
    };
    let label = cut(&row.label, left - EDGE - 6, TEXT);
    canvas.text((EDGE, y), &label, TEXT, BLACK, Hold::Left)?;
    let known = row.max_ms.or(row.p99_ms).unwrap_or(row.p95_ms);
    canvas.line([(x.at(row.min_ms), y), (x.at(known), y)], stroke(colour, 1))?;
    for end in [Some(row.min_ms), row.max_ms].into_iter().flatten() {
        canvas.line([(x.at(end), y - 3), (x.at(end), y + 3)], stroke(colour, 1))?;
    }
    let (from, to) = (x.at(row.p50_ms), x.at(row.p95_ms).max(x.at(row.p50_ms) + 1));
    canvas.rectangle([(from, y - 5), (to, y + 5)], colour.mix(0.55).filled())?;
    let quantiles = [
        Some(row.p50_ms),
        Some(row.p90_ms),
        Some(row.p95_ms),
        row.p99_ms,
    ];
    for (q, half) in quantiles.into_iter().zip([9, 6, 6, 9]) {
        if let Some(q) = q {
            canvas.line(
                [(x.at(q), y - half), (x.at(q), y + half)],
                stroke(colour, 2),
            )?;
        }
    }
    let p99 = row.p99_ms.map_or("–".to_string(), short);
    let words = format!("{} / {p99}", short(row.p50_ms));
    canvas.text((RIGHT + 14, y), &words, TEXT, BLACK, Hold::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, unit: f64) -> AbortRow {
        AbortRow {
            label: label.into(),
            chosen: false,
            min_ms: 0.0,
            p50_ms: unit,
            p90_ms: 2.0 * unit,
            p95_ms: 3.0 * unit,
            p99_ms: Some(4.0 * unit),
            max_ms: None,
        }
    }

    fn figure(rows: Vec<AbortRow>) -> AbortLatency {
        AbortLatency {
            title: "a <title>".into(),
            rows,
            limit_ms: Some((500.0, "p99".into())),
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_names_are_escaped() {
        let rows = || {
            vec![
                row("checked after sleep & 2s", 900.0),
                row("interruptible", 0.0),
            ]
        };
        let text = svg(&figure(rows())).unwrap();
        assert_eq!(text, svg(&figure(rows())).unwrap());
        assert!(text.contains("a &lt;title&gt;") && text.contains("after sleep &amp; 2s"));
        assert!(text.contains("objective: p99 ≤ 500") && text.contains("900 / 3,600"));
    }

    #[test]
    fn odd_values_are_drawn() {
        for unit in [0.0, 1e-9, 1.0, 1e15] {
            let text = svg(&figure(vec![row("a", unit), row("b", 1.0)])).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
    }

    #[test]
    fn a_figure_without_rows_is_an_error() {
        assert!(svg(&figure(Vec::new())).is_err());
    }
}
