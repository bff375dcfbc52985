//! A sweep's plan: axes over the values of a scenario, and the cells that they span.
//!
//! The same tasks, durations and hints meet every cell (common random numbers), because a cell changes values, not the keys of draws.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cost::Cost;
use super::store::scenario_key;
use super::worst_hint;
use crate::catalogue::{is_worst_hint, position};
use crate::scenario::checks::{MAX_REPLICATIONS, metric_meant};
use crate::scenario::fields::{Count, Field, Reader, Share, choice, record};
use crate::scenario::tree::{Node, Value};
use crate::scenario::units::Duration;
use crate::scenario::{self, LoadError, Scenario};

/// Columns of the results that are no axes.
const RESERVED: [&str; 13] = [
    "cell",
    "feasible",
    "chosen",
    "replication",
    "replications",
    "group",
    "metric",
    "value",
    "fingerprint",
    "experiment",
    "seed",
    "scenario_hash",
    "version",
];

/// Cells that one plan can hold.
pub const MAX_CELLS: usize = 100_000;

record! {
    /// A sweep over the values of a scenario.
    pub struct Experiment {
        /// The question, in a line.
        title: String = String::new(),
        /// The scenario file; the path is taken from this file's folder.
        scenario: String,
        /// Overrides for every cell, `path=value`.
        set: Vec<String>,
        /// What is varied: the cells are the product of all axes.
        axis: Vec<Axis>,
        /// Named alternatives, one more axis.
        variant: Vec<Variant>,
        /// Cells that break one of these are left out: `floor <= ceiling`, with names of axes, durations or numbers.
        constraints: Vec<String>,
        /// Replications of each cell; the scenario's where left out.
        replications: Option<Count>,
        /// Replications until the intervals are narrow enough, instead of a fixed number.
        precision: Option<Precision>,
        /// What is least at the choice: a metric of the fleet, or a weighted sum such as `tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms`. The load where left out.
        least: Option<String>,
        /// Metrics that tables and figures show besides load, completion latency and abort latency.
        show: Vec<String>,
        /// Where observation starts.
        warm_up: WarmUp = WarmUp::AsWritten,
    }
}

impl Experiment {
    /// The JSON Schema (draft 2020-12) of an experiment file.
    pub fn json_schema() -> serde_json::Value {
        let serde_json::Value::Object(mut schema) = <Experiment as Field>::schema() else {
            unreachable!("a record is an object");
        };
        schema.insert(
            "$schema".into(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        schema.insert("title".into(), "pollpace experiment".into());
        schema.into()
    }
}

record! {
    /// One thing that is varied.
    pub struct Axis {
        /// Its name: a column of the results, and a word of constraints.
        name: String,
        /// The path of the value in the scenario.
        path: Option<String>,
        /// Its values.
        values: Vec<Literal>,
        /// Its values, as a range.
        range: Option<Range>,
        /// Several paths whose values go together, the first of each with the first of the others; instead of `path`.
        zip: BTreeMap<String, Vec<Literal>>,
    }
}

record! {
    /// Values from one to another.
    pub struct Range {
        /// The first.
        from: Literal,
        /// The last.
        to: Literal,
        /// How many, both ends included.
        points: Option<Count>,
        /// The distance between two.
        step: Option<Literal>,
        /// How they are spaced.
        scale: Scale = Scale::Linear,
    }
}

choice! {
    /// How the values of a range are spaced.
    pub enum Scale {
        words {
            /// Evenly.
            "linear" => Linear,
            /// By equal ratios, rounded to three digits.
            "logarithmic" => Logarithmic,
        }
        tables {}
    }
}

record! {
    /// A named alternative.
    pub struct Variant {
        /// Its name.
        name: String,
        /// Its overrides, `path=value`.
        set: Vec<String>,
    }
}

record! {
    /// How narrow the intervals have to be.
    pub struct Precision {
        /// The metrics of the fleet that it is asked of.
        metrics: Vec<String>,
        /// Half-width of the interval ÷ mean, at most.
        relative_half_width: Share = Share(0.02),
        /// Replications at least.
        min: Count = Count(5),
        /// Replications at most.
        max: Count = Count(200),
    }
}

choice! {
    /// Where observation starts.
    pub enum WarmUp {
        words {
            /// Where the scenario says.
            "as_written" => AsWritten,
            /// Where MSER-5 cuts the `tasks/get` rate of a pilot run of the first cell; the same for all cells.
            "mser5" => Mser5,
        }
        tables {}
    }
}

/// A value as it would stand in the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal(pub toml::Value);

impl Field for Literal {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        if let Value::Datetime(_) = node.value {
            reader.mismatch(
                node,
                "a value of a scenario",
                "write it as in \"500ms\" or 8",
            );
            return None;
        }
        Some(Literal(node.plain()))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(self.0.clone())
    }
    fn example() -> String {
        "\"500ms\"".into()
    }
    fn schema() -> serde_json::Value {
        serde_json::json!({ "description": "a value as it would stand in the scenario" })
    }
}

impl Literal {
    /// As a cell of a table shows it: text without quotes.
    pub fn shown(&self) -> String {
        match &self.0 {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Its size, for constraints and ranges: ns of a duration, or the number.
    fn size(&self) -> Option<Size> {
        match &self.0 {
            toml::Value::String(text) => Duration::parse(text).ok().map(|d| Size::Time(d.0 as f64)),
            toml::Value::Integer(i) => Some(Size::Number(*i as f64)),
            toml::Value::Float(x) => Some(Size::Number(*x)),
            _ => None,
        }
    }
}

/// A size that can be compared with others of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Time(f64),
    Number(f64),
}

impl Size {
    fn parse(text: &str) -> Option<Self> {
        let time = Duration::parse(text).ok().map(|d| Size::Time(d.0 as f64));
        time.or_else(|| text.parse().ok().map(Size::Number))
    }

    /// A literal of the same kind.
    fn literal(self, value: f64) -> Literal {
        Literal(match self {
            Size::Time(_) => toml::Value::String(Duration(value.round() as u64).to_string()),
            Size::Number(_) if value.fract() == 0.0 && value.abs() < 1e15 => {
                toml::Value::Integer(value as i64)
            }
            Size::Number(_) => toml::Value::Float(value),
        })
    }

    /// The two as numbers, where they are of one kind.
    fn both(self, other: Size) -> Option<(f64, f64)> {
        match (self, other) {
            (Size::Time(a), Size::Time(b)) | (Size::Number(a), Size::Number(b)) => Some((a, b)),
            _ => None,
        }
    }
}

/// One combination of values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its number, from 0, in the order of the plan.
    pub number: usize,
    /// What is varied, and the value here, in the order of the axes.
    pub parameters: Vec<(String, String)>,
    /// The overrides that make it.
    pub overrides: Vec<String>,
    /// The scenario with them.
    pub scenario: Scenario,
    /// By which its units are found: see [`super::store::scenario_key`].
    pub key: u64,
}

/// A plan ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As written.
    pub experiment: Experiment,
    /// The scenario without a cell's overrides.
    pub base: Scenario,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// What combinations of values have to keep.
    constraints: Vec<Constraint>,
    /// What is least at the choice.
    pub cost: Cost,
    /// Is every cell run under the worst hints, too?
    pub worst_hints: bool,
}

/// The values of one axis: what is shown, and the overrides.
type Values = Vec<(String, Vec<String>)>;

impl Plan {
    /// Prepares the cells of the experiment `file`, called `name`, whose scenario `load` reads with overrides.
    ///
    /// # Errors
    /// What is wrong with the experiment, with its scenario, or with that under the overrides of a cell.
    pub fn new(
        name: &str,
        experiment: Experiment,
        load: impl Fn(&[String]) -> Result<Scenario, LoadError>,
    ) -> Result<Self, LoadError> {
        let wrong = |wrong: String| LoadError::Experiment {
            path: name.into(),
            wrong,
        };
        let base = load(&experiment.set)?;
        let axes = axes(&experiment).map_err(wrong)?;
        let all = axes
            .iter()
            .try_fold(1usize, |n, (_, v)| n.checked_mul(v.len()));
        if all.is_none_or(|n| n > MAX_CELLS) {
            return Err(wrong(format!(
                "more than {MAX_CELLS} cells: give the axes fewer values"
            )));
        }
        let constraints: Vec<Constraint> = experiment
            .constraints
            .iter()
            .map(|text| Constraint::parse(text, &axes))
            .collect::<Result<_, String>>()
            .map_err(wrong)?;
        let mut cells = Vec::new();
        for combination in product(&axes) {
            let value = |axis: &str| {
                let found = combination.iter().find(|(name, _, _)| *name == axis);
                found.map_or("", |(_, shown, _)| *shown)
            };
            if !constraints.iter().all(|c| c.holds(value)) {
                continue;
            }
            let sets = combination.iter().flat_map(|(_, _, set)| set.iter());
            let overrides = experiment.overrides(sets.cloned().collect());
            let scenario = load(&overrides)?;
            cells.push(Cell {
                key: scenario_key(&scenario),
                number: cells.len(),
                parameters: combination
                    .iter()
                    .map(|(axis, shown, _)| (axis.to_string(), shown.to_string()))
                    .collect(),
                scenario,
                overrides,
            });
        }
        let least = experiment.least.as_deref().map(str::parse::<Cost>);
        let cost = least
            .transpose()
            .map_err(|e| wrong(format!("least: {e}")))?;
        let cost = cost.unwrap_or_default();
        if let Some(metric) = experiment.show.iter().find(|m| position(m).is_none()) {
            return Err(wrong(format!(
                "show: there is no metric \"{metric}\": {}",
                metric_meant(metric)
            )));
        }
        if cells.is_empty() {
            return Err(wrong(
                "the constraints leave no cell: loosen them, or give the axes more values".into(),
            ));
        }
        if let Some(precision) = &experiment.precision {
            if let Some(metric) = precision.metrics.iter().find(|m| position(m).is_none()) {
                return Err(wrong(format!(
                    "precision: there is no metric \"{metric}\": {}",
                    metric_meant(metric)
                )));
            }
            if precision.min.0 < 2 {
                return Err(wrong(
                    "precision: `min` is at least 2, or there is no interval".into(),
                ));
            }
            if precision.max.0 > MAX_REPLICATIONS {
                return Err(wrong(format!(
                    "precision: `max` is at most {MAX_REPLICATIONS}"
                )));
            }
            if precision.min.0 > precision.max.0 {
                return Err(wrong("precision: `min` is above `max`".into()));
            }
        }
        Ok(Plan {
            constraints,
            worst_hints: worst_hint::asked(&base.objective)
                || cost.asks_for_worst_hints()
                || experiment.asks_for_worst_hints(),
            cost,
            experiment,
            base,
            cells,
        })
    }

    /// Reads an experiment file and its scenario.
    ///
    /// # Errors
    /// What is wrong with either.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| LoadError::Io {
            path: name.clone(),
            error,
        })?;
        let experiment: Experiment = scenario::read(&name, &text)?;
        let scenario = path
            .parent()
            .unwrap_or(Path::new(""))
            .join(&experiment.scenario);
        Self::new(&name, experiment, |overrides| {
            scenario::load(&scenario, overrides).map(|l| l.scenario)
        })
    }

    /// Do the constraints allow these values, each with the name of its axis?
    pub fn allows(&self, parameters: &[(String, String)]) -> bool {
        let value = |axis: &str| {
            let found = parameters.iter().find(|(name, _)| name == axis);
            found.map_or("", |(_, shown)| shown.as_str())
        };
        self.constraints.iter().all(|c| c.holds(value))
    }

    /// The overrides of a cell that sets these.
    pub fn overrides(&self, sets: Vec<String>) -> Vec<String> {
        let mut overrides = self.experiment.overrides(sets);
        // Where a pilot cut, all cells start.
        let cut = self.cells[0].overrides.iter();
        overrides.extend(cut.filter(|set| set.starts_with("run.warm_up=")).cloned());
        overrides
    }

    /// The names of what is varied.
    pub fn parameters(&self) -> Vec<&str> {
        let first = self.cells.first().map(|c| &c.parameters);
        first
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

impl Experiment {
    /// Does it ask for metrics of the worst hints?
    fn asks_for_worst_hints(&self) -> bool {
        let precise = self.precision.iter().flat_map(|p| &p.metrics);
        let mut asked = precise.chain(&self.show);
        asked.any(|metric| is_worst_hint(metric))
    }

    /// The overrides of a cell that sets these.
    fn overrides(&self, sets: Vec<String>) -> Vec<String> {
        let replications = self
            .replications
            .map(|n| format!("run.replications={}", n.0));
        let fixed = self.set.iter().cloned();
        fixed.chain(sets).chain(replications).collect()
    }
}

/// Every axis with its values; the variants are the first one.
fn axes(experiment: &Experiment) -> Result<Vec<(String, Values)>, String> {
    let mut axes = Vec::new();
    if !experiment.variant.is_empty() {
        let values = experiment
            .variant
            .iter()
            .map(|v| (v.name.clone(), v.set.clone()));
        axes.push(("variant".to_string(), values.collect()));
    }
    for axis in &experiment.axis {
        axes.push((axis.name.clone(), axis.resolve()?));
    }
    let mut seen = BTreeSet::new();
    for (name, values) in &axes {
        if !seen.insert(name) {
            return Err(format!(
                "two axes are called \"{name}\": give each its own name"
            ));
        }
        let usable = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let taken = RESERVED.contains(&name.as_str()) || position(name).is_some();
        if name.is_empty() || !name.chars().all(usable) || taken {
            return Err(format!(
                "{name:?} is no usable name of an axis: it is a column of the results; use letters, digits, - and _, no name of a metric, and none of {}",
                RESERVED.join(", ")
            ));
        }
        if values.is_empty() {
            return Err(format!("axis \"{name}\" has no values"));
        }
        let mut shown = BTreeSet::new();
        if let Some((twice, _)) = values.iter().find(|(value, _)| !shown.insert(value)) {
            return Err(format!(
                "axis \"{name}\" has {twice} twice: its cells could not be told apart"
            ));
        }
    }
    vary_once(experiment)?;
    Ok(axes)
}

/// No value may be varied by two axes, for the last would win; nor what is no part of a run.
fn vary_once(experiment: &Experiment) -> Result<(), String> {
    let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
    for axis in &experiment.axis {
        let own = axis.path.iter().chain(axis.zip.keys());
        for path in own.map(String::as_str) {
            if let Some(other) = paths.insert(path, &axis.name) {
                return Err(format!(
                    "axes \"{other}\" and \"{}\" both vary {path}: remove one",
                    axis.name
                ));
            }
            if path == "objective" || path.starts_with("objective.") {
                return Err(format!(
                    "axis \"{}\": objectives are asked of the results, not varied; ask others with pollpace choose --objective",
                    axis.name
                ));
            }
            if path == "run.replications" {
                return Err(format!(
                    "axis \"{}\": the number of replications is no part of the fleet; use `replications` or `precision`",
                    axis.name
                ));
            }
        }
    }
    Ok(())
}

impl Axis {
    fn resolve(&self) -> Result<Values, String> {
        let name = &self.name;
        if !self.zip.is_empty() {
            if self.path.is_some() || self.range.is_some() || !self.values.is_empty() {
                return Err(format!(
                    "axis \"{name}\": `zip` stands instead of path, values and range"
                ));
            }
            let lengths: BTreeSet<usize> = self.zip.values().map(Vec::len).collect();
            if lengths.len() > 1 {
                return Err(format!(
                    "axis \"{name}\": the lists of `zip` are of different lengths"
                ));
            }
            let n = lengths.first().copied().unwrap_or(0);
            let value = |i: usize| {
                let shown: Vec<String> = self.zip.values().map(|v| v[i].shown()).collect();
                let set = self
                    .zip
                    .iter()
                    .map(|(path, v)| assignment(path, &v[i]))
                    .collect();
                (shown.join(" / "), set)
            };
            return Ok((0..n).map(value).collect());
        }
        let Some(path) = &self.path else {
            return Err(format!(
                "axis \"{name}\" needs a path, as in path = \"policy.envelope.floor\""
            ));
        };
        let values = match (&self.range, self.values.is_empty()) {
            (Some(range), true) => range
                .values()
                .map_err(|e| format!("axis \"{name}\": {e}"))?,
            (None, false) => self.values.clone(),
            _ => return Err(format!("axis \"{name}\" needs either values or a range")),
        };
        Ok(values
            .iter()
            .map(|v| (v.shown(), vec![assignment(path, v)]))
            .collect())
    }
}

fn assignment(path: &str, value: &Literal) -> String {
    format!("{path}={}", value.0)
}

impl Range {
    fn values(&self) -> Result<Vec<Literal>, String> {
        let ends = self.from.size().zip(self.to.size());
        let Some((kind, (from, to))) = ends.and_then(|(a, b)| Some((a, a.both(b)?))) else {
            return Err("a range is from one duration or number to another of its kind".into());
        };
        if from > to {
            return Err("the range's `from` is above its `to`".into());
        }
        let log = self.scale == Scale::Logarithmic;
        if log && from <= 0.0 {
            return Err("a logarithmic range begins above 0".into());
        }
        let values: Vec<f64> = match (&self.points, &self.step) {
            (Some(points), None) => {
                let last = f64::from(points.0.max(2) - 1);
                if points.0 as usize > MAX_CELLS {
                    return Err(format!("a range has at most {MAX_CELLS} points"));
                }
                let at = |i: u32| match f64::from(i) / last {
                    0.0 => from,
                    1.0 => to,
                    u if log => round_to_digits(3, from * (to / from).powf(u)),
                    u => from + (to - from) * u,
                };
                (0..points.0).map(at).collect()
            }
            (None, Some(step)) if !log => {
                let step = step.size().and_then(|s| kind.both(s)).map(|(_, step)| step);
                let Some(step) = step.filter(|step| *step > 0.0) else {
                    return Err("the step is above 0, and of the kind of the ends".into());
                };
                let n = ((to - from) / step * (1.0 + 1e-12)).floor();
                if n > MAX_CELLS as f64 {
                    return Err("the step is too small".into());
                }
                // Twelve digits: 0.1 + 0.2 is 0.3.
                let at = |i: u32| round_to_digits(12, from + step * f64::from(i));
                (0..=n as u32).map(at).collect()
            }
            _ => return Err("a range has `points`, or (if linear) a `step`".into()),
        };
        Ok(values.into_iter().map(|v| kind.literal(v)).collect())
    }
}

fn round_to_digits(digits: usize, x: f64) -> f64 {
    // By way of text, so that the result is the nearest float to the decimal number.
    format!("{x:.*e}", digits - 1).parse().unwrap_or(x)
}

/// A cell in the making: axis, what is shown, overrides.
type Combination<'a> = Vec<(&'a str, &'a str, &'a [String])>;

/// All combinations, the last axis running fastest.
fn product(axes: &[(String, Values)]) -> Vec<Combination<'_>> {
    let mut all: Vec<Combination<'_>> = vec![Vec::new()];
    for (name, values) in axes {
        let mut longer = Vec::with_capacity(all.len() * values.len());
        for start in &all {
            for (shown, set) in values {
                let mut combination = start.clone();
                combination.push((name, shown, set));
                longer.push(combination);
            }
        }
        all = longer;
    }
    all
}

/// A comparison of two axes, or of an axis with a value.
#[derive(Clone, Debug)]
struct Constraint {
    left: Side,
    right: Side,
    operator: &'static str,
}

#[derive(Clone, Debug)]
enum Side {
    Axis(String),
    Value(Size),
}

const OPERATORS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

impl Constraint {
    fn parse(text: &str, axes: &[(String, Values)]) -> Result<Self, String> {
        let found = OPERATORS
            .into_iter()
            .find_map(|op| Some((op, text.split_once(op)?)));
        let Some((operator, (left, right))) = found else {
            return Err(format!(
                "constraint \"{text}\": write it as in \"floor <= ceiling\""
            ));
        };
        let side = |word: &str| {
            let word = word.trim();
            if axes.iter().any(|(name, _)| name == word) {
                return Ok(Side::Axis(word.into()));
            }
            let size = Size::parse(word.trim_matches('"')).map(Side::Value);
            size.ok_or_else(|| {
                let names: Vec<&str> = axes.iter().map(|(name, _)| name.as_str()).collect();
                format!(
                    "constraint \"{text}\": \"{word}\" is no axis ({}), duration or number",
                    names.join(", ")
                )
            })
        };
        Ok(Constraint {
            left: side(left)?,
            right: side(right)?,
            operator,
        })
    }

    /// Does a combination keep it, of which `text` gives the value on each axis? Values that cannot be compared differ.
    fn holds<'v>(&self, text: impl Fn(&str) -> &'v str) -> bool {
        let size = |side: &Side| match side {
            Side::Axis(axis) => Size::parse(text(axis)),
            Side::Value(size) => Some(*size),
        };
        let compared = size(&self.left)
            .zip(size(&self.right))
            .and_then(|(a, b)| a.both(b));
        let Some((a, b)) = compared else {
            let same = matches!((&self.left, &self.right), (Side::Axis(a), Side::Axis(b)) if text(a) == text(b));
            return (self.operator == "!=") != same;
        };
        match self.operator {
            "<=" => a <= b,
            ">=" => a >= b,
            "==" => a == b,
            "!=" => a != b,
            "<" => a < b,
            _ => a > b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, LoadError> {
        let experiment = scenario::read("experiment", &format!("scenario = \"-\"\n{text}"))?;
        let load = |overrides: &[String]| {
            Ok(scenario::parse("test", crate::experiment::tests::SMALL, overrides)?.scenario)
        };
        Plan::new("experiment", experiment, load)
    }

    fn shown(plan: &Plan) -> Vec<String> {
        let value = |c: &Cell| {
            c.parameters
                .iter()
                .map(|(_, v)| v.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        plan.cells.iter().map(value).collect()
    }

    #[test]
    fn cells_are_the_product_of_the_axes_within_the_constraints() {
        let plan = plan(
            r#"
            constraints = ["floor <= ceiling", "floor != 2s"]
            axis = [
              { name = "floor", path = "policy.p.floor", values = ["500ms", "1s", "2s"] },
              { name = "ceiling", path = "policy.p.ceiling", values = ["900ms", "4s"] },
            ]
            "#,
        )
        .unwrap();
        assert_eq!(shown(&plan), ["500ms 900ms", "500ms 4s", "1s 4s"]);
        let floor = |c: &Cell| c.scenario.policy["p"].floor.unwrap().to_string();
        assert_eq!(
            plan.cells.iter().map(floor).collect::<Vec<_>>(),
            ["500ms", "500ms", "1s"]
        );
        assert_eq!(plan.parameters(), ["floor", "ceiling"]);
    }

    #[test]
    fn ranges_are_linear_logarithmic_or_by_step() {
        let values = |range: &str| {
            let text = format!(
                "axis = [{{ name = \"floor\", path = \"policy.p.floor\", range = {range} }}]"
            );
            plan(&text).map(|p| shown(&p)).map_err(|e| e.to_string())
        };
        let ok = |range: &str| values(range).unwrap().join(" ");
        assert_eq!(
            ok(r#"{ from = "100ms", to = "10s", points = 5, scale = "logarithmic" }"#),
            "100ms 316ms 1s 3.16s 10s"
        );
        assert_eq!(
            ok(r#"{ from = "1s", to = "2s", points = 3 }"#),
            "1s 1.5s 2s"
        );
        assert_eq!(
            ok(r#"{ from = "1s", to = "2s", step = "400ms" }"#),
            "1s 1.4s 1.8s"
        );
        assert!(
            values(r#"{ from = "1s", to = 2, points = 3 }"#)
                .unwrap_err()
                .contains("of its kind")
        );
        assert!(
            values(r#"{ from = "1s", to = "2s" }"#)
                .unwrap_err()
                .contains("`points`")
        );
    }

    #[test]
    fn numbers_variants_and_zipped_axes() {
        let plan = plan(
            r#"
            set = ["run.horizon=5s"]
            variant = [{ name = "raw", set = ["policy.p.jitter=none"] }, { name = "spread", set = ["policy.p.jitter=full"] }]
            axis = [{ name = "size", zip = { "tenant.t.count" = [1, 2], "server.s.count" = [3, 4] } }]
            "#,
        )
        .unwrap();
        assert_eq!(
            shown(&plan),
            ["raw 3 / 1", "raw 4 / 2", "spread 3 / 1", "spread 4 / 2"]
        );
        assert_eq!(plan.cells[3].scenario.tenant[0].count.0, 2);
        assert_eq!(plan.cells[3].scenario.server[0].count.0, 4);
        assert!(
            plan.cells
                .iter()
                .all(|c| c.scenario.run.horizon.0.to_string() == "5s")
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wrong = |text: &str| plan(text).unwrap_err().to_string();
        assert!(wrong(r#"axis = [{ name = "a", values = [1] }]"#).contains("needs a path"));
        assert!(
            wrong(r#"axis = [{ name = "a", path = "tenant.t.count" }]"#)
                .contains("either values or a range")
        );
        assert!(wrong(r#"constraints = ["flor <= 5"]"#).contains("is no axis"));
        assert!(
            wrong(r#"axis = [{ name = "a", path = "policy.p.flor", values = ["1s"] }]"#)
                .contains("did you mean")
        );
        assert!(wrong("constraints = [\"1 > 2\"]").contains("leave no cell"));
        assert!(
            wrong(r#"precision = { metrics = ["tasks"], min = 9, max = 3 }"#)
                .contains("above `max`")
        );
    }
}
