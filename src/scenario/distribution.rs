//! Distributions as a planner writes them, over durations (`"2ms"`) or over plain numbers (milliseconds on the wire).

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::diagnostics::nearest;
use super::fields::{
    Field, Number, Positive, Reader, Span, Weight, choose, forms, object, property,
};
use super::tree::{Node, Value};
use super::units::{Duration, LONGEST, MS};

/// What a distribution is over: how a value is written, and what it is worth as a float (ns, or as it stands).
pub trait Unit: Field + Copy + PartialEq + std::fmt::Debug + Send + Sync {
    /// The value as a float in the inner unit.
    fn inner(self) -> f64;
    /// The inner value of a number in a CSV column whose unit is given (only durations have one).
    fn from_column(x: f64, unit: Option<Duration>) -> f64;
    /// Whether values below zero have a meaning.
    const SIGNED: bool;
}

impl Unit for Duration {
    fn inner(self) -> f64 {
        self.0 as f64
    }
    fn from_column(x: f64, unit: Option<Duration>) -> f64 {
        x * unit.map_or(MS as f64, |u| u.0 as f64)
    }
    const SIGNED: bool = false;
}

impl Unit for Number {
    fn inner(self) -> f64 {
        self.0
    }
    fn from_column(x: f64, _unit: Option<Duration>) -> f64 {
        x
    }
    const SIGNED: bool = true;
}

/// A distribution, with bounds. Draws outside the bounds are set to the bound; a normal is truncated instead (its draws are
/// conditioned on lying inside; a lower bound of 0 is its default for durations).
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution<U: Unit> {
    /// Which kind, with its parameters.
    pub kind: Kind<U>,
    /// Smallest value.
    pub min: Option<U>,
    /// Largest value.
    pub max: Option<U>,
}

/// The kinds of distribution, with the parameters that textbooks give them.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<U: Unit> {
    /// Always the same value.
    Constant(U),
    /// Uniform on [low, high).
    Uniform { low: U, high: U },
    /// Exponential.
    Exponential { mean: U },
    /// Normal, truncated to the bounds.
    Normal { mean: U, sd: U },
    /// Log-normal: ln X has mean ln(median) and standard deviation sigma.
    Lognormal {
        median: f64,
        sigma: f64,
        written: Written<U>,
    },
    /// Gamma: mean = shape × scale.
    Gamma {
        shape: f64,
        scale: f64,
        written: Written<U>,
    },
    /// Weibull.
    Weibull { scale: U, shape: Positive },
    /// Pareto (type I): smallest value, tail exponent.
    Pareto { smallest: U, shape: Positive },
    /// One of several, by weight.
    Mixture(Vec<(Weight, Distribution<U>)>),
    /// The values of a CSV column, each as likely as the others.
    Empirical(Empirical),
}

/// The two ways of giving a log-normal or a gamma.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Written<U> {
    /// By median (log-normal) or scale (gamma), and shape.
    Natural(U, f64),
    /// By mean and coefficient of variation.
    MeanCv(U, f64),
}

/// A column of measured values.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    /// The CSV file.
    pub file: String,
    /// The column's name.
    pub column: String,
    /// What 1 in the column means; milliseconds where it is left out.
    pub unit: Option<Duration>,
    /// The values in the inner unit, ascending.
    pub sorted: Arc<[f64]>,
}

const KINDS: &[&str] = &[
    "constant",
    "uniform",
    "exponential",
    "normal",
    "lognormal",
    "gamma",
    "weibull",
    "pareto",
    "mixture",
    "empirical",
];

impl<U: Unit> Distribution<U> {
    /// Always `value`.
    pub fn constant(value: U) -> Self {
        Distribution {
            kind: Kind::Constant(value),
            min: None,
            max: None,
        }
    }

    fn parameters(node: &Node, keys: &[&str], reader: &mut Reader) -> Option<()> {
        let entries = reader.table(
            node,
            &format!("write {{ {} }}", keys.join(" = …, ") + " = …"),
        )?;
        reader.unknown_keys(entries, keys);
        Some(())
    }

    fn read_kind(key: &str, node: &Node, reader: &mut Reader) -> Option<Kind<U>> {
        let positive = |x: U, key: &str, reader: &mut Reader| Self::positive(x, key, node, reader);
        match key {
            "constant" => U::read(node, reader).map(Kind::Constant),
            "uniform" => {
                Self::parameters(node, &["low", "high"], reader)?;
                let (low, high) = (
                    reader.required::<U>(node, "low"),
                    reader.required::<U>(node, "high"),
                );
                let (low, high) = (low?, high?);
                if low.inner() > high.inner() {
                    let place = &node.get("high").unwrap_or(node).place;
                    reader.error(
                        place,
                        "`high` is below `low`",
                        "an empty range",
                        "swap them",
                    );
                    return None;
                }
                Some(Kind::Uniform { low, high })
            }
            "exponential" => {
                Self::parameters(node, &["mean"], reader)?;
                let mean = reader.required(node, "mean")?;
                Some(Kind::Exponential {
                    mean: positive(mean, "mean", reader)?,
                })
            }
            "normal" => {
                Self::parameters(node, &["mean", "sd"], reader)?;
                let (mean, sd) = (reader.required(node, "mean"), reader.required(node, "sd"));
                Some(Kind::Normal {
                    mean: mean?,
                    sd: positive(sd?, "sd", reader)?,
                })
            }
            "lognormal" | "gamma" => Self::read_two_ways(key, node, reader),
            "weibull" => {
                Self::parameters(node, &["scale", "shape"], reader)?;
                let (scale, shape) = (
                    reader.required(node, "scale"),
                    reader.required(node, "shape"),
                );
                Some(Kind::Weibull {
                    scale: positive(scale?, "scale", reader)?,
                    shape: shape?,
                })
            }
            "pareto" => {
                Self::parameters(node, &["smallest", "shape"], reader)?;
                let (smallest, shape) = (
                    reader.required(node, "smallest"),
                    reader.required(node, "shape"),
                );
                Some(Kind::Pareto {
                    smallest: positive(smallest?, "smallest", reader)?,
                    shape: shape?,
                })
            }
            "mixture" => Self::read_mixture(node, reader).map(Kind::Mixture),
            _ => read_empirical(node, reader, U::from_column, U::SIGNED).map(Kind::Empirical),
        }
    }

    fn positive(x: U, key: &str, node: &Node, reader: &mut Reader) -> Option<U> {
        if x.inner() > 0.0 {
            return Some(x);
        }
        let place = &node.get(key).unwrap_or(node).place;
        reader.error(
            place,
            format!("`{key}` must be above zero"),
            "not above zero",
            format!("write it as in {}", U::example()),
        );
        None
    }

    fn read_two_ways(key: &str, node: &Node, reader: &mut Reader) -> Option<Kind<U>> {
        let (first, second) = if key == "lognormal" {
            ("median", "sigma")
        } else {
            ("scale", "shape")
        };
        let all = [first, second, "mean", "cv"];
        let entries = reader.table(
            node,
            &format!("write {{ {first} = …, {second} = … }} or {{ mean = …, cv = … }}"),
        )?;
        reader.unknown_keys(entries, &all);
        // The last key says which way; what it was laid over may have been the other.
        let given = entries.iter().map(|(k, _)| k);
        let mut given: Vec<_> = given.filter(|k| all.contains(&&*k.name)).collect();
        let last = given.pop();
        let by_mean = match last {
            Some(last) => last.name == "mean" || last.name == "cv",
            None => reader.is_misspelt("mean") || reader.is_misspelt("cv"),
        };
        let keys = if by_mean {
            ["mean", "cv"]
        } else {
            [first, second]
        };
        if let Some(last) = last
            && let Some(stray) = given
                .iter()
                .find(|k| k.layer == last.layer && !keys.contains(&&*k.name))
        {
            reader.error(
                &last.place,
                format!("`{}` and `{}` do not go together", stray.name, last.name),
                "given in two ways",
                format!("give {first} and {second}, or mean and cv"),
            );
            return None;
        }
        let size = reader.required::<U>(node, keys[0]);
        let spread = reader.required::<Positive>(node, keys[1]);
        let (size, spread) = (Self::positive(size?, keys[0], node, reader)?, spread?.0);
        let written = if by_mean {
            Written::MeanCv(size, spread)
        } else {
            Written::Natural(size, spread)
        };
        let size = size.inner();
        Some(match (key, by_mean) {
            ("lognormal", false) => Kind::Lognormal {
                median: size,
                sigma: spread,
                written,
            },
            ("lognormal", true) => {
                let variance = libm::log1p(spread * spread);
                Kind::Lognormal {
                    median: size / libm::sqrt(1.0 + spread * spread),
                    sigma: libm::sqrt(variance),
                    written,
                }
            }
            (_, false) => Kind::Gamma {
                shape: spread,
                scale: size,
                written,
            },
            (_, true) => {
                let shape = 1.0 / (spread * spread);
                Kind::Gamma {
                    shape,
                    scale: size / shape,
                    written,
                }
            }
        })
    }

    fn read_mixture(node: &Node, reader: &mut Reader) -> Option<Vec<(Weight, Self)>> {
        let Value::Array(items) = &node.value else {
            reader.mismatch(
                node,
                "a list",
                "write mixture = [{ weight = 3, of = \"1s\" }, …]",
            );
            return None;
        };
        let parts: Vec<Option<(Weight, Self)>> = items
            .iter()
            .enumerate()
            .map(|(i, item)| {
                reader.within(&i.to_string(), |reader| {
                    Self::parameters(item, &["weight", "of"], reader)?;
                    let weight = reader.required(item, "weight");
                    let of = reader.required(item, "of");
                    Some((weight?, of?))
                })
            })
            .collect();
        let parts: Vec<(Weight, Self)> = parts.into_iter().collect::<Option<_>>()?;
        weights_sum(parts.iter().map(|(w, _)| w.0), node, reader).then_some(parts)
    }
}

/// Reports weights that sum to zero.
pub fn weights_sum(weights: impl Iterator<Item = f64>, node: &Node, reader: &mut Reader) -> bool {
    let sum: f64 = weights.sum();
    let (wrong, right) = if sum == 0.0 {
        (
            "the weights sum to zero",
            "give at least one of them a weight above 0",
        )
    } else if sum.is_infinite() {
        (
            "the weights have no finite sum",
            "only their ratios count: make them smaller",
        )
    } else {
        return true;
    };
    reader.error(&node.place, wrong, "nothing could be drawn", right);
    false
}

impl<U: Unit> Field for Distribution<U> {
    fn read(node: &Node, reader: &mut Reader) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            if let Value::Array(_) | Value::Boolean(_) = node.value {
                reader.mismatch(
                    node,
                    "a distribution",
                    "write a constant, or a table such as { exponential = { mean = … } }",
                );
                return None;
            }
            return U::read(node, reader).map(Self::constant);
        };
        let (min, max) = (
            reader.optional::<U>(node, "min"),
            reader.optional::<U>(node, "max"),
        );
        let kinds: Vec<_> = entries
            .iter()
            .filter(|(k, _)| k.name != "min" && k.name != "max")
            .cloned()
            .collect();
        if kinds.is_empty() && !entries.is_empty() {
            reader.error(
                &node.place,
                "bounds need a distribution",
                "found only bounds",
                format!("write {}", forms(&[], KINDS)),
            );
            return None;
        }
        let only = Node {
            value: Value::Table(kinds),
            place: node.place.clone(),
        };
        let (key, value) = choose(&only, reader, &[], KINDS)?;
        let kind = reader.within(key, |reader| Self::read_kind(key, value, reader));
        let (kind, min, max) = (kind?, min?, max?);
        if let (Some(low), Some(high)) = (min, max)
            && low.inner() > high.inner()
        {
            let place = &node.get("max").unwrap_or(node).place;
            reader.error(place, "`max` is below `min`", "an empty range", "swap them");
            return None;
        }
        Some(Distribution { kind, min, max })
    }

    fn write(&self) -> Option<toml::Value> {
        let table = |entries: Vec<(&str, Option<toml::Value>)>| {
            toml::Value::Table(
                entries
                    .into_iter()
                    .filter_map(|(k, v)| Some((k.to_string(), v?)))
                    .collect(),
            )
        };
        let float = |x: f64| Some(toml::Value::Float(x));
        let (key, value) = match &self.kind {
            Kind::Constant(value) if self.min.is_none() && self.max.is_none() => {
                return value.write();
            }
            Kind::Constant(value) => ("constant", value.write()?),
            Kind::Uniform { low, high } => (
                "uniform",
                table(vec![("low", low.write()), ("high", high.write())]),
            ),
            Kind::Exponential { mean } => ("exponential", table(vec![("mean", mean.write())])),
            Kind::Normal { mean, sd } => (
                "normal",
                table(vec![("mean", mean.write()), ("sd", sd.write())]),
            ),
            Kind::Lognormal {
                written: Written::Natural(median, sigma),
                ..
            } => (
                "lognormal",
                table(vec![("median", median.write()), ("sigma", float(*sigma))]),
            ),
            Kind::Lognormal {
                written: Written::MeanCv(mean, cv),
                ..
            } => (
                "lognormal",
                table(vec![("mean", mean.write()), ("cv", float(*cv))]),
            ),
            Kind::Gamma {
                written: Written::Natural(scale, shape),
                ..
            } => (
                "gamma",
                table(vec![("scale", scale.write()), ("shape", float(*shape))]),
            ),
            Kind::Gamma {
                written: Written::MeanCv(mean, cv),
                ..
            } => (
                "gamma",
                table(vec![("mean", mean.write()), ("cv", float(*cv))]),
            ),
            Kind::Weibull { scale, shape } => (
                "weibull",
                table(vec![("scale", scale.write()), ("shape", shape.write())]),
            ),
            Kind::Pareto { smallest, shape } => (
                "pareto",
                table(vec![
                    ("smallest", smallest.write()),
                    ("shape", shape.write()),
                ]),
            ),
            Kind::Mixture(parts) => {
                let parts = parts
                    .iter()
                    .map(|(w, of)| table(vec![("weight", w.write()), ("of", of.write())]));
                ("mixture", toml::Value::Array(parts.collect()))
            }
            Kind::Empirical(e) => ("empirical", e.write()),
        };
        Some(table(vec![
            (key, Some(value)),
            ("min", self.min.and_then(|u| u.write())),
            ("max", self.max.and_then(|u| u.write())),
        ]))
    }

    fn example() -> String {
        U::example()
    }

    fn schema() -> serde_json::Value {
        let of = |keys: &[(&str, serde_json::Value)], doc: &str| {
            let names: Vec<&str> = keys.iter().map(|(k, _)| *k).collect();
            object(
                keys.iter()
                    .map(|(k, s)| (k.to_string(), s.clone()))
                    .collect(),
                &names,
                doc,
            )
        };
        let (u, p) = (U::schema, Positive::schema);
        let recursive = json!({ "description": "a distribution again: a constant, or a table such as { exponential = { mean = … } }" });
        let kinds = json!({
            "constant": u(),
            "uniform": of(&[("low", u()), ("high", u())], "uniform on [low, high)"),
            "exponential": of(&[("mean", u())], "exponential"),
            "normal": of(&[("mean", u()), ("sd", u())], "normal, truncated to the bounds"),
            "lognormal": { "anyOf": [of(&[("median", u()), ("sigma", p())], "log-normal"), of(&[("mean", u()), ("cv", p())], "log-normal")] },
            "gamma": { "anyOf": [of(&[("scale", u()), ("shape", p())], "gamma"), of(&[("mean", u()), ("cv", p())], "gamma")] },
            "weibull": of(&[("scale", u()), ("shape", p())], "Weibull"),
            "pareto": of(&[("smallest", u()), ("shape", p())], "Pareto, type I"),
            "mixture": { "type": "array", "items": of(&[("weight", Weight::schema()), ("of", recursive)], "a part and its weight") },
            "empirical": Empirical::schema(),
            "min": property(u(), "draws below are set to this", None),
            "max": property(u(), "draws above are set to this", None),
        });
        json!({ "anyOf": [u(), { "type": "object", "properties": kinds, "additionalProperties": false, "minProperties": 1, "maxProperties": 3 }] })
    }
}

impl Empirical {
    /// How it could be written, for messages.
    pub const EXAMPLE: &str = "{ file = \"measured.csv\", column = \"ms\" }";

    /// As it would be written.
    pub fn write(&self) -> toml::Value {
        let mut table = toml::Table::new();
        table.insert("file".into(), toml::Value::String(self.file.clone()));
        table.insert("column".into(), toml::Value::String(self.column.clone()));
        if let Some(unit) = self.unit.and_then(|u| u.write()) {
            table.insert("unit".into(), unit);
        }
        toml::Value::Table(table)
    }

    /// The JSON Schema of its form.
    pub fn schema() -> serde_json::Value {
        let properties = json!({
            "file": { "type": "string", "description": "a CSV file with a header line; the path is taken from the scenario file" },
            "column": { "type": "string" },
            "unit": property(Duration::schema(), "what 1 in the column means; 1ms where left out", None),
        });
        json!({ "type": "object", "properties": properties, "required": ["file", "column"], "additionalProperties": false })
    }
}

/// Reads `{ file, column, unit }` and the column itself.
pub fn read_empirical(
    node: &Node,
    reader: &mut Reader,
    inner: fn(f64, Option<Duration>) -> f64,
    signed: bool,
) -> Option<Empirical> {
    let entries = reader.table(node, &format!("write {}", Empirical::EXAMPLE))?;
    reader.unknown_keys(entries, &["file", "column", "unit"]);
    let (file, column) = (
        reader.required::<String>(node, "file"),
        reader.required::<String>(node, "column"),
    );
    let unit = reader.optional::<Span>(node, "unit");
    let (file, column, unit) = (file?, column?, unit?.map(|u| u.0));
    match read_column(Path::new(&file), &column, signed) {
        Ok(values) => {
            let mut sorted: Vec<f64> = values.into_iter().map(|x| inner(x, unit)).collect();
            sorted.sort_by(f64::total_cmp);
            let largest = sorted.last().copied().unwrap_or_default();
            if !signed && largest > LONGEST.0 as f64 {
                let place = &node.get("column").unwrap_or(node).place;
                reader.error(
                    place,
                    format!("{file} has times beyond {LONGEST} (100 years)"),
                    "too long for a duration",
                    "say what 1 in the column means, as in unit = \"1us\"",
                );
                return None;
            }
            Some(Empirical {
                file,
                column,
                unit,
                sorted: sorted.into(),
            })
        }
        Err((key, wrong, right)) => {
            let place = &node.get(key).unwrap_or(node).place;
            reader.error(place, wrong, "cannot be used", right);
            None
        }
    }
}

/// The numbers of one CSV column; an error names the key at fault, what is wrong and what would be right.
fn read_column(
    file: &Path,
    column: &str,
    signed: bool,
) -> Result<Vec<f64>, (&'static str, String, String)> {
    let show = file.display();
    let unreadable = |e: csv::Error| {
        let right = "it must be a CSV file with a header line; its path is taken from the folder of the scenario file";
        ("file", format!("cannot read {show}: {e}"), right.into())
    };
    let mut csv = csv::Reader::from_path(file).map_err(unreadable)?;
    let headers: Vec<String> = csv
        .headers()
        .map_err(unreadable)?
        .iter()
        .map(|h| h.trim().to_string())
        .collect();
    let Some(index) = headers.iter().position(|h| h == column) else {
        let right = match nearest(column, headers.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("its columns are: {}", headers.join(", ")),
        };
        return Err(("column", format!("{show} has no column `{column}`"), right));
    };
    let mut values = Vec::new();
    for record in csv.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = record.get(index).unwrap_or("").trim();
        match cell.parse::<f64>() {
            Ok(x) if x.is_finite() && (signed || x >= 0.0) => values.push(x),
            _ => {
                let right = if signed {
                    "finite numbers"
                } else {
                    "finite numbers, 0 or above"
                };
                return Err((
                    "column",
                    format!("{show} line {line}: `{cell}` is not a usable number"),
                    format!("the column holds {right}"),
                ));
            }
        }
    }
    if values.is_empty() {
        return Err((
            "file",
            format!("{show} has no rows"),
            "a distribution needs at least one value".into(),
        ));
    }
    Ok(values)
}

/// The recorded times of a CSV column, ascending, in ns.
pub fn read_times(node: &Node, reader: &mut Reader) -> Option<Empirical> {
    read_empirical(
        node,
        reader,
        |x, unit| x * unit.map_or(1e9, |u| u.0 as f64),
        false,
    )
}
