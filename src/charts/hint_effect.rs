//! What came in and what the policy made of it: bad hints by class, sane ones over their whole range.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, extent};
use super::canvas::{Canvas, EDGE, GREY, GRID, Hold, Page, Px, TEXT, cut, page, stroke, width};
use super::times::{time, time_ticks, times};
use super::{ChartError, PALETTE, WIDTH};

/// What the figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HintEffect {
    /// The heading.
    pub title: String,
    /// A panel each.
    pub policies: Vec<PolicyEffect>,
    /// The line at the foot.
    pub provenance: String,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyEffect {
    /// Its name, and who follows it.
    pub label: String,
    /// Its floor, ms.
    pub floor_ms: Option<f64>,
    /// Its ceiling, ms.
    pub ceiling_ms: Option<f64>,
    /// The classes of bad hints, from top to bottom.
    pub bad: Vec<BadHint>,
    /// Sane hints, ascending.
    pub sane: Vec<SaneHint>,
    /// The share of answers whose hint was sane; `None` where there were none.
    pub sane_share: Option<f64>,
    /// Where the sane ones lay: least ms, greatest ms, share of them.
    pub seen: Vec<(f64, f64, f64)>,
}

/// A class of bad hints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BadHint {
    /// The class, with the hint that was tried.
    pub label: String,
    /// What becomes of it.
    pub effect: Effect,
    /// The share of answers that had such a hint; `None` where there were none.
    pub share: Option<f64>,
}

/// A sane hint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaneHint {
    /// The hint, ms.
    pub hint_ms: f64,
    /// What becomes of it.
    pub effect: Effect,
}

/// What a policy makes of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A wait, over all that the jitter may draw.
    Waits {
        /// The shortest, ms.
        low_ms: f64,
        /// That of the middle draw, ms.
        middle_ms: f64,
        /// The longest, ms.
        high_ms: f64,
    },
    /// It never polls again.
    Forever,
    /// The loop ends with an error.
    Error,
    /// The answer is rejected, and the loop ends.
    Rejected,
}

impl Effect {
    fn words(self) -> String {
        match self {
            Effect::Waits {
                low_ms, high_ms, ..
            } if low_ms < high_ms => {
                format!("{} to {}", time(low_ms), time(high_ms))
            }
            Effect::Waits { low_ms, .. } => time(low_ms),
            Effect::Forever => "waits for ever".into(),
            Effect::Error => "ends with an error".into(),
            Effect::Rejected => "answer rejected".into(),
        }
    }

    /// A tight loop, or none at all.
    fn harms(self) -> bool {
        match self {
            Effect::Waits { low_ms, .. } => low_ms < TIGHT_MS,
            _ => true,
        }
    }
}

/// Waits below this are a near-tight loop.
const TIGHT_MS: f64 = 20.0;
/// The greatest sane hint, ms.
const GREATEST: f64 = 2_147_483_647.0;
const ROW: i32 = 21;
const HEAD: i32 = 46;
const AXIS: i32 = 52;
/// Right ends of the columns class and share, left end of the column of waits, ends of the plot.
const CLASS: i32 = 150;
const SHARE: i32 = 204;
const WAITS: i32 = 216;
const PLOT: (i32, i32) = (434, WIDTH as i32 - 20);
/// Height of the bars that show where hints lay.
const BARS: f64 = 46.0;

/// Draws the figure.
///
/// # Errors
/// [`ChartError`] where there is no policy with a hint, or the backend fails.
pub fn svg(figure: &HintEffect) -> Result<String, ChartError> {
    if figure.policies.is_empty() || figure.policies.iter().any(|p| p.sane.is_empty()) {
        return Err(ChartError("there is no policy to show".into()));
    }
    let notes = "left: bad hints; right: sane ones; band: what the jitter may draw; grey line: the hint itself; bars: where the hints lay; orange words: waits under 20 ms or without end";
    let about = Page {
        title: &figure.title,
        notes: vec![notes.into()],
        provenance: &figure.provenance,
    };
    let heights: Vec<i32> = figure.policies.iter().map(height).collect();
    page(&about, heights.iter().sum(), |canvas, top| {
        let mut y = top;
        for (policy, height) in figure.policies.iter().zip(&heights) {
            draw_strip(canvas, policy, y)?;
            draw_plot(canvas, policy, (y + 30, y + height - AXIS))?;
            y += height;
        }
        Ok(())
    })
}

fn height(policy: &PolicyEffect) -> i32 {
    HEAD + (ROW * policy.bad.len() as i32).max(150) + AXIS
}

/// The bad hints in words.
fn draw_strip(canvas: &Canvas<'_>, policy: &PolicyEffect, top: i32) -> Result<(), ChartError> {
    let label = cut(&policy.label, WIDTH as i32 - 2 * EDGE, TEXT + 1);
    canvas.text((EDGE, top + 12), &label, TEXT + 1, BLACK, Hold::Left)?;
    let y = top + 34;
    canvas.text((EDGE, y), "hint", TEXT, GREY, Hold::Left)?;
    canvas.text((SHARE, y), "answers", TEXT, GREY, Hold::Right)?;
    canvas.text((WAITS, y), "becomes a wait of", TEXT, GREY, Hold::Left)?;
    let sane = (policy.sane_share, "sane (right)".to_string());
    let bad = policy.bad.iter().map(|b| (b.share, b.label.clone()));
    for (i, (share, label)) in (0..).zip(bad.chain([sane])) {
        let y = top + HEAD + ROW * i + ROW / 2;
        canvas.line(
            [(EDGE, y - ROW / 2), (PLOT.0 - 70, y - ROW / 2)],
            stroke(GRID, 1),
        )?;
        canvas.text(
            (EDGE, y),
            &cut(&label, CLASS - EDGE, TEXT),
            TEXT,
            BLACK,
            Hold::Left,
        )?;
        let colour = if share.is_some_and(|s| s > 0.0) {
            BLACK
        } else {
            RGBColor(120, 120, 120)
        };
        canvas.text((SHARE, y), &percent(share), TEXT, colour, Hold::Right)?;
        if let Some(bad) = policy.bad.get(i as usize) {
            let colour = if bad.effect.harms() {
                PALETTE[1]
            } else {
                BLACK
            };
            canvas.text((WAITS, y), &bad.effect.words(), TEXT, colour, Hold::Left)?;
        }
    }
    Ok(())
}

/// The sane hints on axes.
fn draw_plot(
    canvas: &Canvas<'_>,
    policy: &PolicyEffect,
    (top, bottom): (i32, i32),
) -> Result<(), ChartError> {
    let waits = policy.sane.iter().filter_map(|s| match s.effect {
        Effect::Waits {
            low_ms, high_ms, ..
        } => Some([low_ms, high_ms]),
        _ => None,
    });
    let bounds = [policy.floor_ms, policy.ceiling_ms].into_iter().flatten();
    let values = waits.flatten().chain(bounds).filter(|v| *v > 0.0);
    let (low, high) = extent(values).unwrap_or((1.0, GREATEST));
    let frame = Frame {
        x: Axis::log((1.0, GREATEST), PLOT),
        y: Axis::log((low.min(high / 10.0) / 1.6, high * 1.6), (bottom, top)),
        x_label: "sane hint",
        y_label: "",
        x_ticks: times(&[1.0, 100.0, 1e4, 3.6e6, 8.64e8]),
        y_ticks: Vec::new(),
    };
    let frame = Frame {
        y_ticks: time_ticks(&frame.y),
        ..frame
    };
    frame.draw(canvas)?;
    draw_seen(canvas, policy, &frame)?;
    let identity = [1.0, GREATEST].map(|v| v.clamp(low / 1.6, high * 1.6));
    canvas.line(
        identity.map(|v| (frame.x.at(v), frame.y.at(v))),
        stroke(RGBColor(150, 150, 150), 1),
    )?;
    for (bound, name) in [(policy.ceiling_ms, "ceiling"), (policy.floor_ms, "floor")] {
        let Some(bound) = bound.filter(|b| frame.y.has(*b)) else {
            continue;
        };
        let y = frame.y.at(bound);
        canvas.dashed(&[(PLOT.0, y), (PLOT.1, y)], (3.0, 3.0), stroke(GREY, 1))?;
        let words = format!("{name} {}", time(bound));
        match name {
            "ceiling" => canvas.text((PLOT.0 + 6, y - 9), &words, TEXT, GREY, Hold::Left)?,
            _ => canvas.text((PLOT.1 - 4, y + 10), &words, TEXT, GREY, Hold::Right)?,
        }
    }
    draw_policy(canvas, policy, &frame)
}

/// The policy's waits: a band and a line; words where there are none.
fn draw_policy(
    canvas: &Canvas<'_>,
    policy: &PolicyEffect,
    frame: &Frame<'_>,
) -> Result<(), ChartError> {
    let (_, top, _, bottom) = frame.corners();
    let place = |hint: f64, wait: f64| (frame.x.at(hint), frame.y.at(wait));
    for run in policy
        .sane
        .chunk_by(|a, b| kind(a.effect) == kind(b.effect))
    {
        let waits: Vec<(f64, f64, f64, f64)> = run
            .iter()
            .filter_map(|s| match s.effect {
                Effect::Waits {
                    low_ms,
                    middle_ms,
                    high_ms,
                } => Some((s.hint_ms, low_ms, middle_ms, high_ms)),
                _ => None,
            })
            .collect();
        if waits.is_empty() {
            let middle = (frame.x.at(run[0].hint_ms) + frame.x.at(run[run.len() - 1].hint_ms)) / 2;
            let words = run[0].effect.words();
            let half = width(&words, TEXT) / 2;
            let x = middle.clamp(PLOT.0 + half + 4, PLOT.1 - half - 4);
            canvas.text(
                (x, (top + bottom) / 2),
                &words,
                TEXT,
                PALETTE[1],
                Hold::Middle,
            )?;
            continue;
        }
        let above = waits.iter().map(|w| place(w.0, w.3));
        let below = waits.iter().rev().map(|w| place(w.0, w.1));
        let band: Vec<Px> = above.chain(below).collect();
        canvas.area(band, PALETTE[0].mix(0.22).filled())?;
        canvas.line(waits.iter().map(|w| place(w.0, w.2)), stroke(PALETTE[0], 2))?;
    }
    Ok(())
}

/// Bars at the foot of the plot, where the hints of the answers lay.
fn draw_seen(
    canvas: &Canvas<'_>,
    policy: &PolicyEffect,
    frame: &Frame<'_>,
) -> Result<(), ChartError> {
    let (_, _, _, bottom) = frame.corners();
    let most = policy.seen.iter().map(|s| s.2).fold(0.0, f64::max);
    for (low, high, share) in policy.seen.iter().filter(|s| s.2 > 0.0) {
        let height = (BARS * share / most).ceil() as i32;
        let (from, to) = (
            frame.x.at(*low),
            frame.x.at(*high).max(frame.x.at(*low) + 2),
        );
        canvas.rectangle(
            [(from, bottom - height), (to, bottom - 1)],
            PALETTE[5].mix(0.6).filled(),
        )?;
    }
    Ok(())
}

fn kind(effect: Effect) -> u8 {
    match effect {
        Effect::Waits { .. } => 0,
        Effect::Forever => 1,
        Effect::Error => 2,
        Effect::Rejected => 3,
    }
}

/// A share in percent; very small ones are not nothing.
fn percent(share: Option<f64>) -> String {
    match share {
        None => "–".into(),
        Some(0.0) => "none".into(),
        Some(s) if s < 0.001 => "< 0.1 %".into(),
        Some(s) => format!("{:.1} %", 100.0 * s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(effect: Effect) -> HintEffect {
        let waits = |ms: f64| Effect::Waits {
            low_ms: 0.9 * ms,
            middle_ms: ms,
            high_ms: 1.1 * ms,
        };
        let sane = [1.0f64, 500.0, 5000.0, 1e9].map(|hint_ms| SaneHint {
            hint_ms,
            effect: if hint_ms > 1e6 {
                effect
            } else {
                waits(hint_ms.clamp(500.0, 5000.0))
            },
        });
        HintEffect {
            title: "a <title>".into(),
            policies: vec![PolicyEffect {
                label: "envelope & more".into(),
                floor_ms: Some(500.0),
                ceiling_ms: Some(5000.0),
                bad: vec![BadHint {
                    label: "zero".into(),
                    effect,
                    share: Some(0.06),
                }],
                sane: sane.to_vec(),
                sane_share: Some(0.94),
                seen: vec![(100.0, 200.0, 0.5), (200.0, 400.0, 0.5)],
            }],
            provenance: "here".into(),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_words_where_there_is_no_wait() {
        for (effect, words) in [
            (Effect::Forever, "waits for ever"),
            (Effect::Error, "ends with an error"),
            (Effect::Rejected, "answer rejected"),
            (
                Effect::Waits {
                    low_ms: 0.0,
                    middle_ms: 0.0,
                    high_ms: 0.0,
                },
                "0 ms",
            ),
        ] {
            let text = svg(&figure(effect)).unwrap();
            assert_eq!(text, svg(&figure(effect)).unwrap());
            assert!(text.contains(words) && text.contains("a &lt;title&gt;"));
            assert!(text.contains("ceiling 5 s") && text.contains("6.0 %"));
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
    }

    #[test]
    fn a_figure_without_policies_is_an_error() {
        assert!(
            svg(&HintEffect {
                policies: Vec::new(),
                ..figure(Effect::Error)
            })
            .is_err()
        );
    }
}
