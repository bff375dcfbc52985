//! A page of pixels: heading, notes, a body, the provenance at the foot; lines, shapes and text on it.
//!
//! Text is measured by the widths of DejaVu Sans, which is wider than what most readers have, so that what fits here fits everywhere.

use plotters::coord::Shift;
use plotters::element::Drawable;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{ChartError, WIDTH};

/// A place on the page.
pub(super) type Px = (i32, i32);

/// Size of ordinary text, px.
pub(super) const TEXT: i32 = 12;
/// Left and right of everything.
pub(super) const EDGE: i32 = 12;
/// Of thin lines and secondary text.
pub(super) const GREY: RGBColor = RGBColor(90, 90, 90);
/// Of the lines behind the data.
pub(super) const GRID: RGBColor = RGBColor(224, 224, 224);

/// Plotters writes the em of a font as 1.24 of what SVG calls its size.
const EM: f64 = 1.24;
const TITLE: i32 = 16;
const NOTE: i32 = 13;

/// What surrounds the body of a figure.
pub(super) struct Page<'t> {
    /// The heading, over two lines at most.
    pub title: &'t str,
    /// Lines below it.
    pub notes: Vec<String>,
    /// The line at the foot, over three lines at most.
    pub provenance: &'t str,
}

/// Where text is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hold {
    /// Its left end, in the middle of its height.
    Left,
    /// Its right end.
    Right,
    /// Its middle.
    Middle,
}

/// The area that is drawn on.
pub(super) struct Canvas<'a>(DrawingArea<SVGBackend<'a>, Shift>);

/// Draws a page whose body is so many pixels high. `body` is told where it starts.
pub(super) fn page(
    page: &Page<'_>,
    body_px: i32,
    body: impl FnOnce(&Canvas<'_>, i32) -> Result<(), ChartError>,
) -> Result<String, ChartError> {
    let room = WIDTH as i32 - 2 * EDGE;
    let title = wrap(page.title, room, TITLE, 2);
    let notes: Vec<String> = page
        .notes
        .iter()
        .flat_map(|n| wrap(n, room, NOTE, 2))
        .collect();
    let foot = wrap(page.provenance, room, TEXT, 3);
    let head = 10 + 21 * title.len() as i32 + 18 * notes.len() as i32;
    let height = head + body_px + 16 * foot.len() as i32 + 10;
    let mut text = String::new();
    {
        let size = (WIDTH, height as u32);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(ChartError::new)?;
        let canvas = Canvas(root);
        let mut y = 18;
        for line in &title {
            canvas.text((EDGE, y), line, TITLE, BLACK, Hold::Left)?;
            y += 21;
        }
        for line in &notes {
            canvas.text((EDGE, y - 1), line, NOTE, RGBColor(50, 50, 50), Hold::Left)?;
            y += 18;
        }
        body(&canvas, head)?;
        let mut y = head + body_px + 10;
        for line in &foot {
            canvas.text((EDGE, y), line, TEXT, GREY, Hold::Left)?;
            y += 16;
        }
        canvas.0.present().map_err(ChartError::new)?;
    }
    Ok(text)
}

impl Canvas<'_> {
    fn draw<E>(&self, element: &E) -> Result<(), ChartError>
    where
        for<'b> &'b E: plotters::element::PointCollection<'b, Px>,
        E: for<'b> Drawable<SVGBackend<'b>>,
    {
        self.0.draw(element).map_err(ChartError::new)
    }

    /// A line through points, those that would stand on the same pixel left out.
    pub fn line(
        &self,
        points: impl IntoIterator<Item = Px>,
        style: ShapeStyle,
    ) -> Result<(), ChartError> {
        let points = thin(points.into_iter());
        if points.len() < 2 {
            return Ok(());
        }
        self.draw(&PathElement::new(points, style))
    }

    /// A broken line: so many pixels drawn, so many left out.
    pub fn dashed(
        &self,
        points: &[Px],
        (on, off): (f64, f64),
        style: ShapeStyle,
    ) -> Result<(), ChartError> {
        let (mut left, mut drawn) = (on, true);
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let (dx, dy) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
            let length = libm::hypot(dx, dy);
            let at = |d: f64| {
                let share = if length > 0.0 { d / length } else { 0.0 };
                (
                    a.0 + (dx * share).round() as i32,
                    a.1 + (dy * share).round() as i32,
                )
            };
            let mut from = 0.0;
            while from < length {
                let to = length.min(from + left);
                if drawn {
                    self.line([at(from), at(to)], style)?;
                }
                left -= to - from;
                from = to;
                if left <= 1e-9 {
                    drawn = !drawn;
                    left = if drawn { on } else { off };
                }
            }
        }
        Ok(())
    }

    /// A rectangle between two corners.
    pub fn rectangle(&self, corners: [Px; 2], style: ShapeStyle) -> Result<(), ChartError> {
        self.draw(&Rectangle::new(corners, style))
    }

    /// The outline of a rectangle between two corners.
    pub fn outline(&self, [a, b]: [Px; 2], style: ShapeStyle) -> Result<(), ChartError> {
        let around = vec![a, (b.0, a.1), b, (a.0, b.1), a, (b.0, a.1)];
        self.draw(&PathElement::new(around, style))
    }

    /// A filled area.
    pub fn area(&self, points: Vec<Px>, style: ShapeStyle) -> Result<(), ChartError> {
        self.draw(&Polygon::new(points, style))
    }

    /// A circle.
    pub fn circle(&self, at: Px, radius: i32, style: ShapeStyle) -> Result<(), ChartError> {
        self.draw(&Circle::new(at, radius, style))
    }

    /// A line of text, in the middle of its height at `at`.
    pub fn text(
        &self,
        at: Px,
        text: &str,
        size: i32,
        colour: RGBColor,
        hold: Hold,
    ) -> Result<(), ChartError> {
        self.write(at, text, size, colour, hold, FontTransform::None)
    }

    /// A line of text from bottom to top.
    pub fn upright(&self, at: Px, text: &str, size: i32) -> Result<(), ChartError> {
        let turned = FontTransform::Rotate270;
        self.write(at, text, size, BLACK, Hold::Middle, turned)
    }

    fn write(
        &self,
        at: Px,
        text: &str,
        size: i32,
        colour: RGBColor,
        hold: Hold,
        transform: FontTransform,
    ) -> Result<(), ChartError> {
        let h = match hold {
            Hold::Left => HPos::Left,
            Hold::Right => HPos::Right,
            Hold::Middle => HPos::Center,
        };
        // Control characters are none of XML's.
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = text.chars().map(clean).collect();
        let style = ("sans-serif", f64::from(size) * EM)
            .into_font()
            .transform(transform)
            .color(&colour)
            .pos(Pos::new(h, VPos::Center));
        self.draw(&Text::new(text, at, style))
    }
}

/// A line of this colour and width.
pub(super) fn stroke(colour: impl Color, width: u32) -> ShapeStyle {
    colour.stroke_width(width)
}

/// Points without those that repeat their neighbour's pixel; of many in one column, the first, the extremes and the last.
fn thin(points: impl Iterator<Item = Px>) -> Vec<Px> {
    let mut out: Vec<Px> = Vec::new();
    for p in points {
        let n = out.len();
        if n > 0 && out[n - 1] == p {
            continue;
        }
        let one_way =
            |a: Px, b: Px, c: Px| a.0 == b.0 && b.0 == c.0 && (b.1 - a.1) * (c.1 - b.1) >= 0;
        if n > 1 && one_way(out[n - 2], out[n - 1], p) {
            out[n - 1] = p;
        } else {
            out.push(p);
        }
    }
    out
}

/// How wide a text is about, px: never less than in Arial or DejaVu Sans.
pub(super) fn width(text: &str, size: i32) -> i32 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | ' ' | '\'' | '|' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '·' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 1.0,
        'A'..='Z' => 0.75,
        '0'..='9' | 'a'..='z' => 0.635,
        c if (c as u32) < 0x1100 => 0.78,
        c if (0x2000..0x2E80).contains(&(c as u32)) => 0.84,
        _ => 1.05,
    };
    let ems: f64 = text.chars().map(em).sum();
    (ems * f64::from(size)).ceil() as i32
}

/// A text cut to a width, with `…` where something is left out.
pub(super) fn cut(text: &str, room: i32, size: i32) -> String {
    if width(text, size) <= room {
        return text.to_string();
    }
    let mut kept: String = text.to_string();
    while kept.pop().is_some() && width(&kept, size) + size > room {}
    format!("{}…", kept.trim_end())
}

/// A text in lines of so many pixels, at most so many of them; what does not fit is cut.
pub(super) fn wrap(text: &str, room: i32, size: i32, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while words.peek().is_some() && lines.len() < most {
        let last = lines.len() + 1 == most;
        let mut line = String::new();
        while let Some(word) = words.peek() {
            let longer = format!("{line}{}{word}", if line.is_empty() { "" } else { " " });
            if !last && !line.is_empty() && width(&longer, size) > room {
                break;
            }
            line = longer;
            words.next();
        }
        lines.push(cut(&line, room, size));
    }
    lines
}

/// Moves places so far apart that `gap` lies between two, keeping their order and as near as may be to where they were, inside `low..=high` where
/// they fit.
pub(super) fn apart(wanted: &[i32], gap: i32, (low, high): (i32, i32)) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|i| wanted[*i]);
    let mut at: Vec<i32> = order.iter().map(|i| wanted[*i]).collect();
    // Each group that touches stands around the middle of where its members would be.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for y in &at {
        let mut group = (f64::from(*y), 1usize);
        while let Some((middle, n)) = groups.last().copied() {
            let half = |n: usize| (n - 1) as f64 / 2.0 * f64::from(gap);
            if group.0 - half(group.1) - middle - half(n) >= f64::from(gap) {
                break;
            }
            groups.pop();
            let all = n + group.1;
            let sum = middle * n as f64 + group.0 * group.1 as f64;
            group = (sum / all as f64, all);
        }
        groups.push(group);
    }
    let mut i = 0;
    for (middle, n) in groups {
        let first = middle - (n - 1) as f64 / 2.0 * f64::from(gap);
        for k in 0..n {
            at[i] = (first + k as f64 * f64::from(gap)).round() as i32;
            i += 1;
        }
    }
    let mut floor = low;
    for y in &mut at {
        *y = (*y).max(floor);
        floor = *y + gap;
    }
    let mut roof = high;
    for y in at.iter_mut().rev() {
        *y = (*y).min(roof);
        roof = *y - gap;
    }
    let mut out = vec![0; wanted.len()];
    order.iter().zip(at).for_each(|(i, y)| out[*i] = y);
    out
}

/// Rectangles that are taken: labels find a free place around what they name.
#[derive(Default)]
pub(super) struct Places(Vec<[i32; 4]>);

impl Places {
    /// Takes a square around a point.
    pub fn take(&mut self, at: Px, half: i32) {
        self.0
            .push([at.0 - half, at.1 - half, at.0 + half, at.1 + half]);
    }

    /// Takes what lies under a line.
    pub fn take_line(&mut self, points: &[Px]) {
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let steps = ((b.0 - a.0).abs().max((b.1 - a.1).abs()) / 4).max(1);
            for k in 0..=steps {
                self.take(
                    (a.0 + (b.0 - a.0) * k / steps, a.1 + (b.1 - a.1) * k / steps),
                    2,
                );
            }
        }
    }

    /// Takes a rectangle: left, top, right, bottom.
    pub fn take_rectangle(&mut self, rectangle: [i32; 4]) {
        self.0.push(rectangle);
    }

    /// A free place for a text near a point and inside `[left, top, right, bottom]`, and takes it: where to hold its left end. `None` where all places
    /// near are taken.
    pub fn find(&mut self, near: Px, text: &str, within: [i32; 4]) -> Option<Px> {
        let (w, h) = (width(text, TEXT), 15);
        let around = [10, 18].into_iter().flat_map(|d| {
            [
                (d, -d / 2),
                (d, d / 2),
                (d, 0),
                (-w / 2, -d - 3),
                (-w / 2, d + 3),
                (-w - d, d / 2),
                (-w - d, -d / 2),
            ]
        });
        let mut rectangles = around.map(|(dx, dy)| {
            let (x, y) = (near.0 + dx, near.1 + dy);
            [x, y - h / 2, x + w, y + h / 2]
        });
        let inside = |r: &[i32; 4]| {
            r[0] >= within[0] && r[1] >= within[1] && r[2] <= within[2] && r[3] <= within[3]
        };
        let touch =
            |a: &[i32; 4], b: &[i32; 4]| a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
        let free = rectangles.find(|r| inside(r) && !self.0.iter().any(|t| touch(r, t)))?;
        self.0.push(free);
        Some((free[0], (free[1] + free[3]) / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_do_not_touch() {
        assert_eq!(apart(&[100, 10, 50], 14, (0, 200)), [100, 10, 50]);
        assert_eq!(apart(&[50, 50, 50], 14, (0, 200)), [36, 50, 64]);
        assert_eq!(apart(&[0, 1, 2], 10, (0, 200)), [0, 10, 20]);
        assert_eq!(apart(&[199, 200, 200], 10, (0, 200)), [180, 190, 200]);
    }

    #[test]
    fn what_does_not_fit_is_wrapped_and_then_cut() {
        assert_eq!(wrap("one two", 500, 12, 2), ["one two"]);
        assert_eq!(wrap("one two three", 60, 12, 2).len(), 2);
        let lines = wrap(&"word ".repeat(100), 100, 12, 2);
        assert!(lines.len() == 2 && lines[1].ends_with('…'), "{lines:?}");
        assert!(lines.iter().all(|l| width(l, 12) <= 100));
        assert!(width(&cut(&"w".repeat(500), 100, 12), 12) <= 100);
    }

    #[test]
    fn a_column_of_many_points_keeps_its_extremes() {
        let points = [(0, 5), (0, 9), (0, 2), (0, 2), (0, 1), (1, 1)];
        assert_eq!(thin(points.into_iter()), [(0, 5), (0, 9), (0, 1), (1, 1)]);
    }
}
