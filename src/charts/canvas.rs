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

#[cfg(test)]
mod tests {
    use super::*;

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
