//! The best point between the points of a grid, with far fewer runs than a grid as fine would take.
//!
//! Two points are compared by how far they miss the objectives, then by their cost (the rules of Deb 2000). Along one axis the better point is found by golden-section search
//! (Kiefer 1953), which serves a cost that has one valley, a bound on a metric that rises or falls along the axis (there it is a bisection, but for the ratio), and a feasible stretch between
//! two such bounds. With two axes, each point of the first is as good as the best of the second. All points meet the same tasks, durations and hints, so that the
//! comparisons are paired and a search is repeatable.

use std::sync::atomic::{AtomicBool, Ordering};

use super::jobs::{self, Job};
use super::plan::{Cell, Plan};
use super::store::{Store, scenario_key};
use super::sweep::{CellResult, SweepError, Watch};
use crate::scenario::units::Duration;
use crate::scenario::{LoadError, Scenario};

/// The golden section: the share that is left of a stretch after each step.
const SECTION: f64 = 0.618_033_988_749_894_9;
/// Steps of a search along one axis, at most.
const MOST_STEPS: u32 = 60;

/// A point of the search.
#[derive(Clone, Debug)]
pub struct Point {
    /// What was run: its number is that of the evaluation, from 0.
    pub cell: Cell,
    /// What came of it.
    pub result: CellResult,
    /// By how much it misses objectives, as shares of their bounds, summed; 0 where it meets all.
    pub violation: f64,
    /// Its cost.
    pub cost: f64,
}

impl Point {
    /// Is it better than another?
    fn beats(&self, other: &Point) -> bool {
        let by_violation = self.violation.total_cmp(&other.violation);
        by_violation.then(self.cost.total_cmp(&other.cost)).is_lt()
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// All points, in the order of their evaluation.
    pub points: Vec<Point>,
    /// Which of them is the best.
    pub best: usize,
    /// Cells of a grid over the same ranges whose neighbours are apart by the resolution.
    pub grid: u64,
}

/// Why there is no optimum.
#[derive(Debug, thiserror::Error)]
pub enum OptimiseError {
    /// The experiment has other axes.
    #[error(
        "optimise searches along one or two axes of durations that each have a path and at least two values, such as floor and ceiling; {0}"
    )]
    Axes(String),
    /// A point makes no scenario.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A run failed, or its result could not be kept.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// Someone asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What is searched along.
#[derive(Clone, Debug)]
struct Range {
    name: String,
    path: String,
    /// Logarithms of the least and the greatest value in ns.
    ends: (f64, f64),
}

/// Finds the point with the least cost that meets the objectives of the plan's scenario, between the least and the greatest values of its axes, to within the
/// ratio 1 + `resolution` along each. `load` reads the scenario with overrides.
///
/// # Errors
/// [`OptimiseError`]; the points that were run are kept in the store.
pub fn optimise(
    plan: &Plan,
    load: &dyn Fn(&[String]) -> Result<Scenario, LoadError>,
    resolution: f64,
    (store, stop, watch): (&Store, &AtomicBool, &impl Watch),
) -> Result<Optimum, OptimiseError> {
    let ranges = ranges(plan)?;
    let step = resolution.ln_1p();
    let grid = ranges
        .iter()
        .map(|r| ((r.ends.1 - r.ends.0) / step).ceil() as u64 + 1)
        .product();
    let mut search = Search {
        plan,
        load,
        ranges,
        resolution,
        store,
        stop,
        watch,
        points: Vec::new(),
        best: None,
    };
    let whole = search.ranges.get(1).map(|r| r.ends);
    let ends = search.ranges[0].ends;
    if let Some((from, to)) = allowed(ends, |x| search.any_allowed(x)) {
        search.along_first(from, to, whole)?;
    }
    let best = search.best.ok_or_else(|| {
        OptimiseError::Axes("the constraints leave nothing between their values".into())
    })?;
    Ok(Optimum {
        points: search.points,
        best,
        grid,
    })
}

/// The ranges of the axes.
fn ranges(plan: &Plan) -> Result<Vec<Range>, OptimiseError> {
    let wrong = |why: String| Err(OptimiseError::Axes(why));
    let axes = &plan.experiment.axis;
    if !plan.experiment.variant.is_empty() {
        return wrong("this experiment has variants".into());
    }
    if axes.is_empty() || axes.len() > 2 {
        return wrong(format!("this experiment has {}", axes.len()));
    }
    let mut ranges = Vec::new();
    for (at, axis) in axes.iter().enumerate() {
        let values = plan
            .cells
            .iter()
            .map(|c| Duration::parse(&c.parameters[at].1));
        let Ok(values) = values.collect::<Result<Vec<Duration>, _>>() else {
            return wrong(format!("axis \"{}\" has other values", axis.name));
        };
        let ends = values.iter().min().zip(values.iter().max());
        let (Some(path), Some((least, greatest))) = (&axis.path, ends) else {
            return wrong(format!("axis \"{}\" has no path", axis.name));
        };
        if least.0 == 0 || least == greatest {
            return wrong(format!(
                "axis \"{}\" is from {least} to {greatest}: its values are to be above 0 and apart",
                axis.name
            ));
        }
        ranges.push(Range {
            name: axis.name.clone(),
            path: path.clone(),
            ends: ((least.0 as f64).ln(), (greatest.0 as f64).ln()),
        });
    }
    Ok(ranges)
}

struct Search<'a, W: Watch> {
    plan: &'a Plan,
    load: &'a dyn Fn(&[String]) -> Result<Scenario, LoadError>,
    ranges: Vec<Range>,
    resolution: f64,
    store: &'a Store,
    stop: &'a AtomicBool,
    watch: &'a W,
    points: Vec<Point>,
    /// The best point so far.
    best: Option<usize>,
}

impl<W: Watch> Search<'_, W> {
    /// Along the first axis between two logarithms; each of its points is as good as the best along the second, where there is one.
    fn along_first(
        &mut self,
        from: f64,
        to: f64,
        second: Option<(f64, f64)>,
    ) -> Result<(), OptimiseError> {
        let mut known: Option<f64> = None;
        golden(from, to, self.resolution.ln_1p(), &mut |x, width| {
            let Some(whole) = second else {
                return self.evaluate(&[x]).map(|at| at.map(|at| self.key(at)));
            };
            let Some(whole) = allowed(whole, |y| self.allows(&[x, y])) else {
                return Ok(None);
            };
            // The best second value moves little between neighbours: look around that of the last, twice as far as the first axis still reaches.
            let around = known.map_or(whole, |y| {
                let within = |y: f64| y.clamp(whole.0, whole.1);
                (within(y - 2.0 * width), within(y + 2.0 * width))
            });
            // While the first axis is far from found, the second need not be found better.
            let step = (width / 20.0).max(self.resolution.ln_1p());
            let mut best = self.along_second(x, around, step)?;
            let at_edge = |y: f64| {
                let edge = 2.0 * step;
                (y - around.0 < edge && around.0 > whole.0)
                    || (around.1 - y < edge && around.1 < whole.1)
            };
            if best.is_none_or(|(y, _)| at_edge(y)) && around != whole {
                best = self.along_second(x, whole, step)?;
            }
            known = best.map(|(y, _)| y).or(known);
            Ok(best.map(|(_, key)| key))
        })?;
        Ok(())
    }

    /// The best value along the second axis for one of the first, and how good it is.
    fn along_second(
        &mut self,
        x: f64,
        (from, to): (f64, f64),
        step: f64,
    ) -> Result<Option<(f64, Goodness)>, OptimiseError> {
        golden(from, to, step, &mut |y, _| {
            let at = self.evaluate(&[x, y])?;
            Ok(at.map(|at| self.key(at)))
        })
    }

    /// The values at these logarithms, each with the name of its axis: rounded, and inside the range.
    fn parameters(&self, logarithms: &[f64]) -> Vec<(String, String)> {
        let digits = if self.resolution < 0.005 { 5 } else { 4 };
        let ranges = self.ranges.iter().zip(logarithms);
        let parameter = |(range, logarithm): (&Range, &f64)| {
            let ends = [range.ends.0, range.ends.1].map(|end| Duration(end.exp().round() as u64));
            let value = rounded(logarithm.exp(), digits).clamp(ends[0], ends[1]);
            (range.name.clone(), value.to_string())
        };
        ranges.map(parameter).collect()
    }

    /// Do the constraints allow the point at these logarithms?
    fn allows(&self, logarithms: &[f64]) -> bool {
        self.plan.allows(&self.parameters(logarithms))
    }

    /// Do they allow any point with this first value?
    fn any_allowed(&self, x: f64) -> bool {
        match self.ranges.get(1) {
            Some(second) => allowed(second.ends, |y| self.allows(&[x, y])).is_some(),
            None => self.allows(&[x]),
        }
    }

    fn key(&self, at: usize) -> Goodness {
        (self.points[at].violation, self.points[at].cost)
    }

    /// The point at these logarithms, run if it is not known yet; `None` where the constraints forbid it.
    fn evaluate(&mut self, logarithms: &[f64]) -> Result<Option<usize>, OptimiseError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(OptimiseError::Interrupted);
        }
        let parameters = self.parameters(logarithms);
        if let Some(at) = self
            .points
            .iter()
            .position(|p| p.cell.parameters == parameters)
        {
            return Ok(Some(at));
        }
        if !self.plan.allows(&parameters) {
            return Ok(None);
        }
        let sets = self.ranges.iter().zip(&parameters);
        let sets = sets.map(|(range, (_, value))| format!("{}={value}", range.path));
        let overrides = self.plan.overrides(sets.collect());
        let scenario = (self.load)(&overrides)?;
        let cell = Cell {
            number: self.points.len(),
            parameters,
            overrides,
            key: scenario_key(&scenario),
            scenario,
        };
        let point = self.run(cell)?;
        let at = self.points.len();
        if self.best.is_none_or(|best| point.beats(&self.points[best])) {
            self.best = Some(at);
        }
        self.points.push(point);
        Ok(Some(at))
    }

    fn run(&self, cell: Cell) -> Result<Point, OptimiseError> {
        let replications = self.plan.replications_at_first(&cell);
        let jobs: Vec<Job> = self.plan.jobs(&cell, replications, self.plan.worst_hints);
        jobs::complete(&jobs, self.store, self.stop, self.watch)?;
        let result = CellResult::gather(&jobs, self.store, &cell.scenario.objective);
        if !result.whole {
            return Err(OptimiseError::Interrupted);
        }
        Ok(Point {
            violation: result.violation(),
            cost: self.plan.cost.at(&result),
            cell,
            result,
        })
    }
}

/// The stretch between two logarithms in which values are allowed, as far as a hundred looks can tell; its ends are found by bisection.
fn allowed((from, to): (f64, f64), allows: impl Fn(f64) -> bool) -> Option<(f64, f64)> {
    const LOOKS: usize = 100;
    let at = |i: usize| from + (to - from) * i as f64 / LOOKS as f64;
    let first = (0..=LOOKS).find(|i| allows(at(*i)))?;
    let last = (0..=LOOKS).rfind(|i| allows(at(*i)))?;
    let edge = |mut inside: f64, mut outside: f64| {
        for _ in 0..40 {
            let middle = (inside + outside) / 2.0;
            if allows(middle) {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        inside
    };
    let low = if first == 0 {
        from
    } else {
        edge(at(first), at(first - 1))
    };
    let high = if last == LOOKS {
        to
    } else {
        edge(at(last), at(last + 1))
    };
    Some((low, high))
}

/// How good a point is: by how much it misses the objectives, then its cost; less is better.
type Goodness = (f64, f64);

fn better(a: Option<Goodness>, b: Option<Goodness>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).is_lt(),
        (a, None) => a.is_some(),
        (None, Some(_)) => false,
    }
}

/// Golden-section search for the best point between two logarithms, until the stretch is shorter than `step`. `look` tells how good a point is (`None` where it is not allowed), given the length
/// that the stretch then has. The ends are looked at too: a cost that only falls has its best point there.
fn golden<E>(
    from: f64,
    to: f64,
    step: f64,
    look: &mut dyn FnMut(f64, f64) -> Result<Option<Goodness>, E>,
) -> Result<Option<(f64, Goodness)>, E> {
    let (mut low, mut high) = (from, to);
    let mut best: Option<(f64, Goodness)> = None;
    let mut seen = |x: f64, width: f64, best: &mut Option<(f64, Goodness)>| {
        let found = look(x, width)?;
        if better(found, best.map(|(_, goodness)| goodness)) {
            *best = found.map(|goodness| (x, goodness));
        }
        Ok::<_, E>(found)
    };
    let mut left = high - SECTION * (high - low);
    let mut right = low + SECTION * (high - low);
    let mut at_left = seen(left, high - low, &mut best)?;
    let mut at_right = seen(right, high - low, &mut best)?;
    for _ in 0..MOST_STEPS {
        if high - low <= step {
            break;
        }
        if better(at_right, at_left) {
            low = left;
            (left, at_left) = (right, at_right);
            right = low + SECTION * (high - low);
            at_right = seen(right, high - low, &mut best)?;
        } else {
            high = right;
            (right, at_right) = (left, at_left);
            left = high - SECTION * (high - low);
            at_left = seen(left, high - low, &mut best)?;
        }
    }
    if low == from {
        seen(from, high - low, &mut best)?;
    }
    if high == to {
        seen(to, high - low, &mut best)?;
    }
    Ok(best)
}

/// A number of ns to so many significant digits.
fn rounded(ns: f64, digits: i32) -> Duration {
    let unit = 10f64.powi((ns.log10().floor() as i32 + 1 - digits).max(0));
    Duration(((ns / unit).round() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn best(look: impl Fn(f64) -> Option<Goodness>) -> (f64, usize) {
        let mut looks = 0;
        let found = golden::<Infallible>(0.0, 4.0, 0.01, &mut |x, _| {
            looks += 1;
            Ok(look(x))
        });
        (found.unwrap().unwrap().0, looks)
    }

    #[test]
    fn a_valley_a_bound_and_an_end_are_found() {
        let (x, looks) = best(|x| Some((0.0, (x - 1.3).powi(2))));
        assert!((x - 1.3).abs() < 0.01 && looks < 20, "{x} {looks}");
        // A cost that falls until a bound is missed.
        let (x, _) = best(|x| Some(((x - 2.7).max(0.0), -x)));
        assert!((2.69..=2.7).contains(&x), "{x}");
        // A thin feasible stretch between two bounds, far from the first points.
        let (x, _) = best(|x| Some(((x - 3.11).max(0.0) + (3.05 - x).max(0.0), x)));
        assert!((3.05..3.06).contains(&x), "{x}");
        assert_eq!(best(|x| Some((0.0, x))).0, 0.0);
        assert_eq!(best(|x| Some((0.0, -x))).0, 4.0);
    }

    #[test]
    fn the_allowed_stretch_is_found_wherever_it_lies() {
        let found = |low: f64, high: f64| allowed((0.0, 4.0), |x| (low..=high).contains(&x));
        for (low, high) in [(0.0, 4.0), (3.7, 3.9), (0.02, 0.3), (1.0, 4.0)] {
            let (from, to) = found(low, high).unwrap();
            assert!(
                (from - low).abs() < 1e-9 && (to - high).abs() < 1e-9,
                "{low} {high}"
            );
        }
        assert_eq!(found(5.0, 6.0), None);
    }

    #[test]
    fn values_are_rounded_to_digits() {
        assert_eq!(rounded(1_234_567_890.0, 4).to_string(), "1.235s");
        assert_eq!(rounded(19.6, 4), Duration(20));
        assert_eq!(rounded(12_345_678.0, 5).to_string(), "12.346ms");
    }
}
