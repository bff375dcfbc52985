//! Many poll loops over one scenario: load, completion latency and abort latency of each, and what the worst hints make of them.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, extent};
use super::canvas::{Canvas, EDGE, GREY, GRID, Hold, Page, TEXT, cut, page, stroke};
use super::{ChartError, PALETTE};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PollLoops {
    /// The heading.
    pub title: String,
    /// The fleet, in a line; empty where it has no title.
    pub fleet: String,
    /// From top to bottom.
    pub rows: Vec<LoopRow>,
    /// The line at the foot.
    pub provenance: String,
}

/// One poll loop. What is undefined is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// Its name.
    pub name: String,
    /// Is it the scenario's own?
    pub own: bool,
    /// `tasks/get` rate: the mean, and the mean with hints that are all 0; 1/s.
    pub rate_per_s: [Option<f64>; 2],
    /// Completion latency: the median and the 99th percentile; s.
    pub completion_s: [Option<f64>; 2],
    /// Abort latency: the 99th percentile, and that with hints that are all huge; s.
    pub abort_s: [Option<f64>; 2],
}

const ROW: i32 = 19;
const HEAD: i32 = 44;
const AXIS: i32 = 22;
const LEFT: i32 = 254;
const PANEL: i32 = 134;
const GAP: i32 = 26;
/// Values below this stand at the low end of their axis.
const LEAST_S: f64 = 0.001;

/// A panel: its heading, the words for its two marks, and its values.
type Panel = (
    &'static str,
    [&'static str; 2],
    fn(&LoopRow) -> [Option<f64>; 2],
);

const PANELS: [Panel; 3] = [
    ("tasks/get per s", ["mean", "all hints 0"], |r| r.rate_per_s),
    ("completion, s", ["p50", "p99"], |r| r.completion_s),
    ("abort, s", ["p99", "all hints huge"], |r| r.abort_s),
];

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where there is no row, or the backend fails.
pub fn svg(figure: &PollLoops) -> Result<String, ChartError> {
    if figure.rows.is_empty() {
        return Err(ChartError("there is no poll loop to compare".into()));
    }
    let about = Page {
        title: &figure.title,
        notes: [
            figure.fleet.as_str(),
            "Every host runs the loop of a row. Times of 1 ms or less stand at the left end; what is undefined has no mark.",
        ]
        .into_iter()
        .filter(|note| !note.is_empty())
        .map(String::from)
        .collect(),
        provenance: &figure.provenance,
    };
    let rows = figure.rows.len() as i32;
    page(&about, HEAD + ROW * rows + AXIS, |canvas, top| {
        let (first, last) = (top + HEAD, top + HEAD + ROW * rows);
        for (row, y) in figure
            .rows
            .iter()
            .zip((first + ROW / 2..).step_by(ROW as usize))
        {
            let label = cut(&row.name, LEFT - EDGE - 12, TEXT);
            let colour = if row.own { PALETTE[1] } else { BLACK };
            canvas.text((EDGE, y), &label, TEXT, colour, Hold::Left)?;
            canvas.line(
                [(LEFT, y), (LEFT + 3 * PANEL + 2 * GAP, y)],
                stroke(GRID, 1),
            )?;
        }
        for (number, panel) in (0..).zip(&PANELS) {
            let left = LEFT + number * (PANEL + GAP);
            draw_panel(canvas, &figure.rows, panel, (left, top), (first, last))?;
        }
        Ok(())
    })
}

fn draw_panel(
    canvas: &Canvas<'_>,
    rows: &[LoopRow],
    (heading, marks, values): &Panel,
    (left, top): (i32, i32),
    (first, last): (i32, i32),
) -> Result<(), ChartError> {
    let right = left + PANEL;
    let middle = (left + right) / 2;
    canvas.text((middle, top + 8), heading, TEXT + 1, BLACK, Hold::Middle)?;
    key(canvas, (left, top + 28), marks)?;
    let all = rows.iter().flat_map(values).flatten();
    let (low, high) = extent(all.map(|v| v.max(LEAST_S))).unwrap_or((0.1, 10.0));
    let x = Axis::log((low / 1.4, high * 1.4), (left, right));
    let frame = Frame {
        x,
        y: Axis::linear((0.0, 1.0), (last, first)),
        x_label: "",
        y_label: "",
        x_ticks: decades(low / 1.4, high * 1.4),
        y_ticks: Vec::new(),
    };
    frame.draw_x(canvas)?;
    for (row, y) in rows.iter().zip((first + ROW / 2..).step_by(ROW as usize)) {
        let colour = if row.own { PALETTE[1] } else { PALETTE[0] };
        let [usual, worst] = values(row).map(|v| v.map(|v| x.at(v.max(LEAST_S))));
        if let (Some(a), Some(b)) = (usual, worst) {
            canvas.line([(a, y), (b, y)], stroke(colour.mix(0.5), 1))?;
        }
        if let Some(at) = worst {
            canvas.line([(at, y - 5), (at, y + 5)], stroke(colour, 2))?;
        }
        if let Some(at) = usual {
            canvas.circle((at, y), 4, colour.filled())?;
        }
    }
    Ok(())
}

/// What the marks of a panel mean.
fn key(canvas: &Canvas<'_>, (left, y): (i32, i32), marks: &[&str; 2]) -> Result<(), ChartError> {
    canvas.circle((left + 4, y), 4, PALETTE[0].filled())?;
    canvas.text((left + 12, y), marks[0], TEXT, GREY, Hold::Left)?;
    let second = left + 24 + super::canvas::width(marks[0], TEXT);
    canvas.line([(second, y - 5), (second, y + 5)], stroke(PALETTE[0], 2))?;
    canvas.text((second + 7, y), marks[1], TEXT, GREY, Hold::Left)
}

/// Powers of ten inside, every second or third one where there are many.
fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let (from, to) = (
        libm::log10(low).ceil() as i32,
        libm::log10(high).floor() as i32,
    );
    let step = match to - from {
        0..=3 => 1,
        4..=5 => 2,
        _ => 3,
    };
    (from..=to)
        .step_by(step)
        .map(|power| libm::exp10(f64::from(power)))
        .map(|v| (v, super::axis::short(v)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, rate: f64) -> LoopRow {
        LoopRow {
            name: name.into(),
            own: name == "own",
            rate_per_s: [Some(rate), Some(50.0 * rate)],
            completion_s: [Some(0.5), None],
            abort_s: [Some(0.0), Some(2e6)],
        }
    }

    fn figure() -> PollLoops {
        PollLoops {
            title: "a & b".into(),
            fleet: "many".into(),
            rows: vec![row("own", 3.0), row("a <loop>", 20.0)],
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_extremes_are_drawn() {
        let text = svg(&figure()).unwrap();
        assert_eq!(text, svg(&figure()).unwrap());
        assert!(text.contains("a &amp; b") && text.contains("a &lt;loop&gt;"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
        // Two marks of the load in each row and in the key, one of the completion, two of the abort.
        assert_eq!(text.matches("<circle").count(), 2 * 3 + 3);
    }

    #[test]
    fn a_figure_without_rows_is_an_error() {
        let none = PollLoops {
            rows: Vec::new(),
            ..figure()
        };
        assert!(svg(&none).is_err());
    }
}
