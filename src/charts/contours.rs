//! Lines of equal value over a grid of cells, some of which may be missing.
//!
//! A cell has its value in its middle; between the middles it is interpolated along both axes, and beyond the outer ones it stays. Cells that are missing
//! count as the mean of their neighbours, so that lines reach the borders of those that are there; they are drawn in these alone.

use std::collections::BTreeMap;

use super::axis::{Axis, extent};

/// Values of cells; cell (x, y) reaches from (x, y) to (x + 1, y + 1).
pub(super) struct Field {
    columns: usize,
    rows: usize,
    values: Vec<Option<f64>>,
}

/// A point on the grid.
type At = (f64, f64);

impl Field {
    /// A field without values.
    pub fn new(columns: usize, rows: usize) -> Self {
        Field {
            columns,
            rows,
            values: vec![None; columns * rows],
        }
    }

    /// Sets the value of a cell.
    pub fn set(&mut self, x: usize, y: usize, value: Option<f64>) {
        self.values[y * self.columns + x] = value;
    }

    fn cell(&self, x: usize, y: usize) -> Option<f64> {
        self.values[y * self.columns + x]
    }

    /// The same field with every missing cell filled from its neighbours, those next to known ones first.
    fn filled(&self) -> Vec<f64> {
        let mut known = self.values.clone();
        let around = |at: usize, end: usize| at.saturating_sub(1)..=(at + 1).min(end - 1);
        while known.iter().any(Option::is_none) && known.iter().any(Option::is_some) {
            let mean = |i: usize| {
                let (x, y) = (i % self.columns, i / self.columns);
                let near =
                    around(y, self.rows).flat_map(|j| around(x, self.columns).map(move |i| (i, j)));
                let values: Vec<f64> = near
                    .filter_map(|(i, j)| known[j * self.columns + i])
                    .collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            known = (0..known.len())
                .map(|i| known[i].or_else(|| mean(i)))
                .collect();
        }
        known.into_iter().map(|v| v.unwrap_or(0.0)).collect()
    }

    /// The value at a place, from a filled field.
    fn at(&self, filled: &[f64], (x, y): At) -> f64 {
        let split = |place: f64, cells: usize| {
            let place = (place - 0.5).clamp(0.0, (cells - 1) as f64);
            let first = (place as usize).min(cells.saturating_sub(2));
            (first, (first + 1).min(cells - 1), place - first as f64)
        };
        let ((x0, x1, u), (y0, y1, v)) = (split(x, self.columns), split(y, self.rows));
        let cell = |x: usize, y: usize| filled[y * self.columns + x];
        let row = |y: usize| cell(x0, y) * (1.0 - u) + cell(x1, y) * u;
        row(y0) * (1.0 - v) + row(y1) * v
    }
}

/// Each cell is cut into so many squares along both axes, and these into two triangles.
const CUTS: usize = 4;

/// Round values inside the range of a field, and a limit if it lies there; the limit is marked.
pub(super) fn levels(field: &Field, limit: Option<f64>) -> Vec<(f64, bool)> {
    let Some((low, high)) = extent(field.values.iter().flatten().copied()) else {
        return Vec::new();
    };
    if high - low <= 0.02 * high.abs() {
        return Vec::new();
    }
    let inside = |v: &f64| *v > low && *v < high;
    let limit = limit.filter(inside);
    let axis = match low > 0.0 {
        true => Axis::log((low, high), (0, 240)),
        false => Axis::linear((low, high), (0, 240)),
    };
    let round = axis.ticks(40, false).into_iter().filter(inside);
    let apart = round.filter(|v| limit.is_none_or(|l| (v - l).abs() > 0.12 * l.abs()));
    apart
        .map(|v| (v, false))
        .chain(limit.map(|l| (l, true)))
        .collect()
}

/// The lines where a field has the value `level`, each from end to end.
pub(super) fn lines(field: &Field, level: f64) -> Vec<Vec<At>> {
    let filled = field.filled();
    let side = 1.0 / CUTS as f64;
    let node = |i: usize, j: usize| {
        let at = (i as f64 * side, j as f64 * side);
        (at, field.at(&filled, at))
    };
    let mut segments = Vec::new();
    for j in 0..field.rows * CUTS {
        for i in (0..field.columns * CUTS).filter(|i| field.cell(i / CUTS, j / CUTS).is_some()) {
            let (a, b, c, d) = (
                node(i, j),
                node(i + 1, j),
                node(i + 1, j + 1),
                node(i, j + 1),
            );
            segments.extend(cross([a, b, c], level));
            segments.extend(cross([a, c, d], level));
        }
    }
    join(segments)
}

/// Where a triangle is crossed.
fn cross(triangle: [(At, f64); 3], level: f64) -> Option<(At, At)> {
    let mut points = (0..3).filter_map(|k| {
        let (a, b) = (triangle[k], triangle[(k + 1) % 3]);
        // The same edge gives the same bits from both sides.
        let (a, b) = if a.0 < b.0 { (a, b) } else { (b, a) };
        if (a.1 >= level) == (b.1 >= level) {
            return None;
        }
        let t = (level - a.1) / (b.1 - a.1);
        Some((a.0.0 + (b.0.0 - a.0.0) * t, a.0.1 + (b.0.1 - a.0.1) * t))
    });
    let pair = points.next().zip(points.next());
    pair.filter(|(a, b)| a != b)
}

/// Segments put end to end.
fn join(segments: Vec<(At, At)>) -> Vec<Vec<At>> {
    let key = |p: At| (p.0.to_bits(), p.1.to_bits());
    let mut ends: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    for (i, (a, b)) in segments.iter().enumerate() {
        ends.entry(key(*a)).or_default().push(i);
        ends.entry(key(*b)).or_default().push(i);
    }
    let mut used = vec![false; segments.len()];
    let walk = |from: At, used: &mut Vec<bool>| {
        let mut line = vec![from];
        let mut at = from;
        while let Some(i) = ends[&key(at)].iter().copied().find(|i| !used[*i]) {
            used[i] = true;
            let (a, b) = segments[i];
            at = if key(a) == key(at) { b } else { a };
            line.push(at);
        }
        line
    };
    let mut lines = Vec::new();
    // From the ends first; what is left are rings.
    let open = segments
        .iter()
        .flat_map(|(a, b)| [*a, *b])
        .filter(|p| ends[&key(*p)].len() == 1);
    let starts: Vec<At> = open.chain(segments.iter().map(|s| s.0)).collect();
    for start in starts {
        let line = walk(start, &mut used);
        if line.len() > 1 {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(rows: &[&[Option<f64>]]) -> Field {
        let mut field = Field::new(rows[0].len(), rows.len());
        for (y, row) in rows.iter().enumerate() {
            row.iter()
                .enumerate()
                .for_each(|(x, v)| field.set(x, y, *v));
        }
        field
    }

    #[test]
    fn a_line_crosses_the_whole_grid_at_its_value() {
        let field = field(&[&[Some(1.0); 3], &[Some(3.0); 3]]);
        let found = lines(&field, 2.0);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].iter().all(|p| (p.1 - 1.0).abs() < 1e-9),
            "{found:?}"
        );
        let (first, last) = (found[0][0], found[0][found[0].len() - 1]);
        assert_eq!((first.0.min(last.0), first.0.max(last.0)), (0.0, 3.0));
    }

    #[test]
    fn missing_cells_end_a_line_and_a_peak_has_a_ring() {
        let (l, h) = (Some(0.0), Some(9.0));
        let found = lines(&field(&[&[l, l, None], &[h, h, None]]), 4.5);
        assert!(found.len() == 1 && found[0].iter().all(|p| p.0 <= 2.0));
        let ring = lines(&field(&[&[l, l, l], &[l, h, l], &[l, l, l]]), 4.5);
        assert_eq!(ring.len(), 1);
        assert_eq!(ring[0][0], ring[0][ring[0].len() - 1]);
    }

    #[test]
    fn levels_are_round_lie_inside_and_mark_the_limit() {
        let field = field(&[&[Some(900.0), Some(5200.0)]]);
        assert_eq!(
            levels(&field, Some(3000.0)),
            [
                (1000.0, false),
                (2000.0, false),
                (5000.0, false),
                (3000.0, true)
            ]
        );
        assert!(levels(&field, Some(9000.0)).iter().all(|l| !l.1));
    }

    #[test]
    fn equal_values_have_no_line() {
        assert!(levels(&field(&[&[Some(5.0), Some(5.0), None]]), None).is_empty());
        assert!(lines(&field(&[&[Some(5.0), Some(5.0)]]), 5.0).is_empty());
    }
}
