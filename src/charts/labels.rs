//! Where labels stand: apart from each other, and not on what they name.

use super::canvas::{Px, TEXT, width};

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
    fn a_label_finds_a_free_place_inside_or_none() {
        let page = [0, 0, 200, 100];
        let mut places = Places::default();
        places.take((100, 50), 5);
        let first = places.find((100, 50), "label", page).unwrap();
        let second = places.find((100, 50), "label", page).unwrap();
        assert!(first.0 > 100 && first != second);
        assert_eq!(places.find((100, 50), &"wide ".repeat(9), page), None);
        places.take_rectangle(page);
        assert_eq!(places.find((100, 50), "label", page), None);
    }

    #[test]
    fn labels_do_not_stand_on_lines() {
        let mut places = Places::default();
        places.take_line(&[(110, 0), (110, 100)]);
        let (x, _) = places.find((100, 50), "label", [0, 0, 200, 100]).unwrap();
        assert!(x + width("label", TEXT) < 110 || x > 110);
    }
}
