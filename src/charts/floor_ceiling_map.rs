//! The map of a grid: floors from left to right, ceilings from bottom to top, load as shade, latencies as lines of equal value.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{extent, short};
use super::canvas::{Canvas, EDGE, Hold, Page, Px, TEXT, page, stroke, width};
use super::contours::{self, Field};
use super::labels::{Places, apart};
use super::shades::{hatch, shade};
use super::{ChartError, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorCeilingMap {
    /// The heading.
    pub title: String,
    /// The floors, ascending.
    pub floors: Vec<String>,
    /// The ceilings, ascending.
    pub ceilings: Vec<String>,
    /// The cells that there are.
    pub cells: Vec<MapCell>,
    /// The completion latency that an objective allows at p99, ms.
    pub completion_limit_ms: Option<f64>,
    /// The abort latency that an objective allows at p99, ms.
    pub abort_limit_ms: Option<f64>,
    /// The line at the foot.
    pub provenance: String,
}

/// A floor with a ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapCell {
    /// Which floor.
    pub floor: usize,
    /// Which ceiling.
    pub ceiling: usize,
    /// Mean `tasks/get` rate, 1/s.
    pub load_per_s: Option<f64>,
    /// p99 completion latency, ms.
    pub completion_p99_ms: Option<f64>,
    /// p99 abort latency, ms.
    pub abort_p99_ms: Option<f64>,
    /// Does it meet the objectives? `None` where there are none.
    pub feasible: Option<bool>,
    /// Is it the choice?
    pub chosen: bool,
}

/// Lines of completion and of abort latency.
const COMPLETION: RGBColor = RGBColor(20, 20, 20);
const ABORT: RGBColor = RGBColor(166, 54, 3);
const LEFT: i32 = 92;
const RIGHT: i32 = WIDTH as i32 - 104;
const ABOVE: i32 = 44;
const BELOW: i32 = 44;
const DASHES: (f64, f64) = (7.0, 4.0);

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where no cell has a load, or the backend fails.
pub fn svg(figure: &FloorCeilingMap) -> Result<String, ChartError> {
    let loads = figure.cells.iter().filter_map(|c| c.load_per_s);
    let span = extent(loads).ok_or_else(|| ChartError("no cell has a load".into()))?;
    let inside = |c: &MapCell| c.floor < figure.floors.len() && c.ceiling < figure.ceilings.len();
    if !figure.cells.iter().all(inside) {
        return Err(ChartError("a cell lies outside the grid".into()));
    }
    let about = Page {
        title: &figure.title,
        notes: figure.notes(),
        provenance: &figure.provenance,
    };
    let rows = figure.ceilings.len() as i32;
    let height = (rows * 46).clamp(180, 520);
    page(&about, ABOVE + height + BELOW, |canvas, top| {
        let map = Map {
            figure,
            span,
            top: top + ABOVE,
            bottom: top + ABOVE + height,
        };
        map.shades(canvas)?;
        let ends = map.lines(canvas)?;
        map.scale(canvas, top + 12, &ends)?;
        let mut places = map.values(canvas)?;
        map.name_lines(canvas, ends, &mut places)?;
        map.axes(canvas)
    })
}

impl FloorCeilingMap {
    fn notes(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.cells.iter().any(|c| c.feasible == Some(false)) {
            told.push("hatched: misses an objective".to_string());
        }
        if let Some(cell) = self.cells.iter().find(|c| c.chosen) {
            let (floor, ceiling) = (&self.floors[cell.floor], &self.ceilings[cell.ceiling]);
            told.push(format!(
                "framed: the choice, floor {floor}, ceiling {ceiling}"
            ));
        }
        vec![told.join("; ")]
    }
}

/// The end of a line of equal latency.
struct End {
    at: Px,
    level: f64,
    bold: bool,
    colour: RGBColor,
}

impl End {
    /// Its value; that of an objective as a bound.
    fn words(&self) -> String {
        format!(
            "{}{} ms",
            if self.bold { "≤ " } else { "" },
            short(self.level)
        )
    }
}

struct Map<'f> {
    figure: &'f FloorCeilingMap,
    span: (f64, f64),
    top: i32,
    bottom: i32,
}

impl Map<'_> {
    /// The pixel of a place on the grid; cell k reaches from k to k + 1.
    fn at(&self, x: f64, y: f64) -> Px {
        let (nx, ny) = (
            self.figure.floors.len() as f64,
            self.figure.ceilings.len() as f64,
        );
        let right = LEFT + (f64::from(RIGHT - LEFT) * x / nx).round() as i32;
        let up = self.bottom - (f64::from(self.bottom - self.top) * y / ny).round() as i32;
        (right, up)
    }

    fn corners(&self, cell: &MapCell) -> [Px; 2] {
        let (x, y) = (cell.floor as f64, cell.ceiling as f64);
        let (a, b) = (self.at(x, y + 1.0), self.at(x + 1.0, y));
        [a, b]
    }

    /// How dark a load is, from 0 to 1.
    fn depth(&self, load: f64) -> f64 {
        let (low, high) = self.span;
        let share = if low > 0.0 && high / low > 4.0 {
            libm::log(load / low) / libm::log(high / low)
        } else {
            (load - low) / (high - low)
        };
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    /// The words and the gradient above the map.
    fn scale(&self, canvas: &Canvas<'_>, y: i32, ends: &[End]) -> Result<(), ChartError> {
        let low = format!("tasks/get rate {}", short(self.span.0));
        let high = format!("{} /s", short(self.span.1));
        canvas.text((EDGE, y), &low, TEXT, BLACK, Hold::Left)?;
        let from = EDGE + width(&low, TEXT) + 6;
        for k in 0..40 {
            let x = from + 2 * k;
            let colour = shade(f64::from(k) / 39.0);
            canvas.rectangle([(x, y - 6), (x + 2, y + 6)], colour.filled())?;
        }
        canvas.text((from + 86, y), &high, TEXT, BLACK, Hold::Left)?;
        let mut at = from + 86 + width(&high, TEXT) + 22;
        for (colour, words) in [
            (COMPLETION, "completion latency, p99"),
            (ABORT, "abort latency, p99"),
        ] {
            if !ends.iter().any(|e| e.colour == colour) {
                continue;
            }
            let style = stroke(colour, 2);
            match colour == ABORT {
                true => canvas.dashed(&[(at, y), (at + 28, y)], DASHES, style)?,
                false => canvas.line([(at, y), (at + 28, y)], style)?,
            }
            canvas.text((at + 34, y), words, TEXT, colour, Hold::Left)?;
            at += 34 + width(words, TEXT) + 14;
        }
        Ok(())
    }

    fn shades(&self, canvas: &Canvas<'_>) -> Result<(), ChartError> {
        for cell in &self.figure.cells {
            let corners = self.corners(cell);
            let colour = match cell.load_per_s {
                Some(load) => shade(self.depth(load)),
                None => RGBColor(245, 245, 245),
            };
            canvas.rectangle(corners, colour.filled())?;
            if cell.feasible == Some(false) {
                hatch(canvas, corners)?;
            }
            canvas.outline(corners, stroke(WHITE, 1))?;
        }
        for cell in self.figure.cells.iter().filter(|c| c.chosen) {
            let [a, b] = self.corners(cell);
            canvas.outline([a, b], stroke(WHITE, 6))?;
            canvas.outline([a, b], stroke(BLACK, 3))?;
        }
        Ok(())
    }

    /// Loads in the cells, where they fit, and where they stand.
    fn values(&self, canvas: &Canvas<'_>) -> Result<Places, ChartError> {
        let mut places = Places::default();
        let words = |c: &MapCell| c.load_per_s.map_or("–".to_string(), whole);
        let [a, b] = self.corners(&self.figure.cells[0]);
        let room = (b.0 - a.0 - 6, b.1 - a.1);
        let fits = |c: &MapCell| width(&words(c), TEXT) <= room.0 && room.1 >= 18;
        if !self.figure.cells.iter().all(fits) {
            return Ok(places);
        }
        for cell in &self.figure.cells {
            let [a, b] = self.corners(cell);
            let text = words(cell);
            let at = ((a.0 + b.0) / 2, (a.1 + 13).min((a.1 + b.1) / 2));
            let half = width(&text, TEXT) / 2 + 1;
            let back = cell
                .load_per_s
                .map_or(WHITE, |load| shade(self.depth(load)));
            let patch = [(at.0 - half, at.1 - 8), (at.0 + half, at.1 + 8)];
            canvas.rectangle(patch, back.filled())?;
            places.take_rectangle([patch[0].0, patch[0].1, patch[1].0, patch[1].1]);
            canvas.text(at, &text, TEXT, BLACK, Hold::Middle)?;
        }
        Ok(places)
    }

    /// Lines of equal latency, and where they end.
    fn lines(&self, canvas: &Canvas<'_>) -> Result<Vec<End>, ChartError> {
        let figure = self.figure;
        let completion = self.field(|c| c.completion_p99_ms);
        let abort = self.field(|c| c.abort_p99_ms);
        let mut ends = Vec::new();
        for (field, colour, limit, dashed) in [
            (&completion, COMPLETION, figure.completion_limit_ms, false),
            (&abort, ABORT, figure.abort_limit_ms, true),
        ] {
            for (level, bold) in contours::levels(field, limit) {
                for line in contours::lines(field, level) {
                    let points: Vec<Px> = line.iter().map(|(x, y)| self.at(*x, *y)).collect();
                    let style = stroke(colour, if bold { 3 } else { 1 });
                    if dashed {
                        canvas.dashed(&points, DASHES, style)?;
                    } else {
                        canvas.line(points.iter().copied(), style)?;
                    }
                    if let Some(at) = end_of(&points) {
                        ends.push(End {
                            at,
                            level,
                            bold,
                            colour,
                        });
                    }
                }
            }
        }
        Ok(ends)
    }

    fn field(&self, value: fn(&MapCell) -> Option<f64>) -> Field {
        let figure = self.figure;
        let mut field = Field::new(figure.floors.len(), figure.ceilings.len());
        for cell in &figure.cells {
            field.set(
                cell.floor,
                cell.ceiling,
                value(cell).filter(|v| v.is_finite()),
            );
        }
        field
    }

    /// Values beside the ends: to the right of those that end there, above those that end at the top; of the others, where no load stands.
    fn name_lines(
        &self,
        canvas: &Canvas<'_>,
        ends: Vec<End>,
        places: &mut Places,
    ) -> Result<(), ChartError> {
        let inside = |e: &End| e.at.0 < RIGHT - 2;
        let at_top = |e: &End| e.at.1 <= self.top + 2 && inside(e);
        let (up, rest): (Vec<End>, Vec<End>) = ends.into_iter().partition(at_top);
        let (within, right): (Vec<End>, Vec<End>) = rest.into_iter().partition(inside);
        let wanted: Vec<i32> = right.iter().map(|e| e.at.1).collect();
        let heights = apart(&wanted, 15, (self.top + 4, self.bottom - 4));
        for (end, y) in right.iter().zip(heights) {
            let text = end.words();
            let x = end.at.0 + 6;
            canvas.text((x, y), &text, TEXT, end.colour, Hold::Left)?;
            places.take_rectangle([x, y - 8, x + width(&text, TEXT), y + 8]);
        }
        let wanted: Vec<i32> = up.iter().map(|e| e.at.0).collect();
        let columns = apart(&wanted, 84, (LEFT + 20, RIGHT - 10));
        for (end, x) in up.iter().zip(columns) {
            let at = (x, self.top - 9);
            canvas.text(at, &end.words(), TEXT, end.colour, Hold::Middle)?;
        }
        let page = [LEFT, self.top, WIDTH as i32, self.bottom];
        for end in &within {
            let text = end.words();
            if let Some(at) = places.find(end.at, &text, page) {
                canvas.text(at, &text, TEXT, end.colour, Hold::Left)?;
            }
        }
        Ok(())
    }

    fn axes(&self, canvas: &Canvas<'_>) -> Result<(), ChartError> {
        let figure = self.figure;
        let every = |labels: &[String], room: i32| {
            let widest = labels.iter().map(|l| width(l, TEXT) + 8).max().unwrap_or(1);
            (widest as usize).div_ceil(room.max(1) as usize).max(1)
        };
        let column = (RIGHT - LEFT) / figure.floors.len().max(1) as i32;
        let step = every(&figure.floors, column);
        for (i, floor) in figure.floors.iter().enumerate().step_by(step) {
            let at = self.at(i as f64 + 0.5, 0.0);
            canvas.text((at.0, at.1 + 11), floor, TEXT, BLACK, Hold::Middle)?;
        }
        let row = (self.bottom - self.top) / figure.ceilings.len().max(1) as i32;
        let step = (16 / row.max(1) + 1).max(1) as usize;
        for (i, ceiling) in figure.ceilings.iter().enumerate().step_by(step) {
            let at = self.at(0.0, i as f64 + 0.5);
            canvas.text((at.0 - 7, at.1), ceiling, TEXT, BLACK, Hold::Right)?;
        }
        let middle = ((LEFT + RIGHT) / 2, self.bottom + 30);
        canvas.text(middle, "floor", TEXT + 1, BLACK, Hold::Middle)?;
        canvas.upright(
            (EDGE + 8, (self.top + self.bottom) / 2),
            "ceiling",
            TEXT + 1,
        )
    }
}

/// Where a line is named: its end further to the right; of a ring, the point furthest to the right.
fn end_of(points: &[Px]) -> Option<Px> {
    let (first, last) = (points.first()?, points.last()?);
    let key = |p: &&Px| (p.0, -p.1);
    match first == last {
        true => points.iter().max_by_key(key).copied(),
        false => [first, last].into_iter().max_by_key(key).copied(),
    }
}

/// A load for a cell: whole from 100 on.
fn whole(load: f64) -> String {
    if load >= 100.0 {
        short(load.round())
    } else {
        short((load * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(floors: usize, ceilings: usize) -> FloorCeilingMap {
        let cell = |(floor, ceiling): (usize, usize)| MapCell {
            floor,
            ceiling,
            load_per_s: Some(1e3 / (1.0 + floor as f64)),
            completion_p99_ms: Some(500.0 * (1.0 + ceiling as f64)),
            abort_p99_ms: (floor > 0).then_some(10.0 * floor as f64),
            feasible: Some(ceiling < 2),
            chosen: floor == 1 && ceiling == 1,
        };
        let pairs = (0..floors).flat_map(|f| (f..ceilings).map(move |c| (f, c)));
        FloorCeilingMap {
            title: "a <title>".into(),
            floors: (0..floors).map(|i| format!("{i}s")).collect(),
            ceilings: (0..ceilings).map(|i| format!("{i}s")).collect(),
            cells: pairs.map(cell).collect(),
            completion_limit_ms: Some(1200.0),
            abort_limit_ms: None,
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_limits_are_lines() {
        let text = svg(&figure(3, 4)).unwrap();
        assert_eq!(text, svg(&figure(3, 4)).unwrap());
        assert!(text.contains("a &lt;title&gt;") && text.contains("≤ 1,200 ms"));
        assert!(text.contains("framed: the choice, floor 1s, ceiling 1s"));
    }

    #[test]
    fn odd_grids_are_drawn() {
        for (floors, ceilings) in [(1, 1), (1, 20), (20, 20)] {
            let mut odd = figure(floors, ceilings);
            odd.cells[0].load_per_s = Some(0.0);
            odd.cells[0].completion_p99_ms = Some(1e300);
            let text = svg(&odd).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
    }

    #[test]
    fn a_map_without_loads_or_with_cells_outside_is_an_error() {
        assert!(
            svg(&FloorCeilingMap {
                cells: Vec::new(),
                ..figure(2, 2)
            })
            .is_err()
        );
        assert!(
            svg(&FloorCeilingMap {
                floors: Vec::new(),
                ..figure(2, 2)
            })
            .is_err()
        );
    }
}
