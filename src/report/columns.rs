//! The columns of the result files: their names, types and meaning, as they are written and as they are published.
//!
//! Each file's head is made from the same list as its schema. Types come from the values themselves (the macro `row`), meanings from one table by name, and
//! those of metrics from the [`catalogue`].

use serde_json::{Map, Value, json};

use super::decision::SHOWN;
use super::{compare, files, policies};
use crate::catalogue;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number, 0 or above.
    Whole,
    /// A number.
    Number,
    /// `true` or `false`.
    Truth,
}

/// A column of a result file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// What stands in it.
    pub kind: Kind,
    /// Is there a value in every row? An empty cell is undefined.
    pub required: bool,
    /// What it means.
    pub doc: String,
}

impl Column {
    /// A column of values of the type `T`, its meaning being that of its name.
    pub fn of<T: Cell>(name: &str) -> Self {
        let meant = |name: &str| MEANINGS.iter().find(|(known, _)| *known == name);
        // Of one of two sides that are compared.
        let side = name.strip_suffix("_a").or(name.strip_suffix("_b"));
        let known = meant(name).or(side.and_then(meant));
        Column {
            name: name.into(),
            kind: T::KIND,
            required: T::REQUIRED,
            doc: known.map_or(String::new(), |(_, doc)| doc.to_string()),
        }
    }

    /// The same with another meaning.
    fn meaning(mut self, doc: impl Into<String>) -> Self {
        self.doc = doc.into();
        self
    }

    /// The unit, by the end of its name.
    fn unit(&self) -> Option<&'static str> {
        let name = self.name.trim_end_matches("_lo").trim_end_matches("_hi");
        [
            ("_ms", "ms"),
            ("_per_s", "1/s"),
            ("_s", "s"),
            ("_percent", "%"),
        ]
        .into_iter()
        .find_map(|(end, unit)| name.ends_with(end).then_some(unit))
    }

    /// Its field of a Table Schema.
    fn field(&self) -> Value {
        let mut field = Map::new();
        let kind = match self.kind {
            Kind::Text => "string",
            Kind::Whole => "integer",
            Kind::Number => "number",
            Kind::Truth => "boolean",
        };
        field.insert("name".into(), json!(self.name));
        field.insert("type".into(), json!(kind));
        field.insert("description".into(), json!(self.doc));
        if let Some(unit) = self.unit() {
            field.insert("unit".into(), json!(unit));
        }
        let mut constraints = Map::new();
        // An empty text is a value for those who write it and none for those who read it.
        if self.required && !self.name.starts_with("parameters") {
            constraints.insert("required".into(), json!(true));
        }
        if self.kind == Kind::Whole {
            constraints.insert("minimum".into(), json!(0));
        }
        match &*self.name {
            "scenario_hash" | "scenario_hash_a" | "scenario_hash_b" | "fingerprint" => {
                constraints.insert("pattern".into(), json!("[0-9a-f]{16}"));
            }
            "metric" => {
                constraints.insert("enum".into(), json!(catalogue::names()));
            }
            "group" => {
                constraints.insert("pattern".into(), json!("fleet|(tenant|server)\\..+"));
            }
            _ => {}
        }
        if !constraints.is_empty() {
            field.insert("constraints".into(), constraints.into());
        }
        field.into()
    }
}

/// A value of a row.
pub trait Cell {
    /// What it is in a table.
    const KIND: Kind;
    /// Is it always there?
    const REQUIRED: bool = true;
}

macro_rules! cells {
    ($($Type:ty => $Kind:ident),*) => { $( impl Cell for $Type { const KIND: Kind = Kind::$Kind; } )* };
}
cells!(str => Text, String => Text, u32 => Whole, u64 => Whole, usize => Whole, f64 => Number, bool => Truth);

impl<T: Cell + ?Sized> Cell for &T {
    const KIND: Kind = T::KIND;
    const REQUIRED: bool = T::REQUIRED;
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const REQUIRED: bool = false;
}

/// Defines a row of a result file: what is written, and its columns.
macro_rules! row {
    ($(#[doc = $doc:literal])* struct $Row:ident<$life:lifetime> { $( $field:ident : $Type:ty ),* $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(serde::Serialize)]
        struct $Row<$life> { $( $field: $Type ),* }

        impl<$life> $Row<$life> {
            fn columns() -> Vec<$crate::report::columns::Column> {
                vec![ $( $crate::report::columns::Column::of::<$Type>(stringify!($field)) ),* ]
            }
        }
    };
}
pub(crate) use row;

/// The columns of `cells.csv`, these being the parameters of the sweep.
pub fn cells(parameters: &[&str]) -> Vec<Column> {
    let mut columns = vec![Column::of::<usize>("cell")];
    columns.extend(of_parameters(parameters));
    columns.extend(["feasible", "chosen"].map(Column::of::<bool>));
    columns.extend(
        catalogue::names()
            .iter()
            .flat_map(|metric| estimate(metric)),
    );
    columns.extend(repeat_with());
    columns
}

/// The columns of `results.csv`, these being the parameters of the sweep.
pub fn results(parameters: &[&str]) -> Vec<Column> {
    let mut columns = vec![Column::of::<usize>("cell")];
    columns.extend(of_parameters(parameters));
    columns.push(Column::of::<u32>("replication"));
    columns.extend(["group", "metric"].map(Column::of::<&str>));
    columns.push(Column::of::<Option<f64>>("value"));
    columns.push(Column::of::<&str>("fingerprint"));
    columns.extend(repeat_with());
    columns
}

/// The columns of `optimum.csv`, these being the parameters of the search.
pub fn optimum(parameters: &[&str]) -> Vec<Column> {
    let mut columns = vec![Column::of::<usize>("point")];
    columns.extend(of_parameters(parameters));
    columns.extend(["best", "feasible"].map(Column::of::<bool>));
    columns.push(Column::of::<Option<f64>>("violation"));
    columns.push(Column::of::<Option<f64>>("cost"));
    columns.extend(SHOWN.iter().flat_map(|metric| estimate(metric)));
    columns.extend(repeat_with());
    columns
}

/// The columns of a metric of the fleet: mean and interval.
fn estimate(metric: &str) -> [Column; 3] {
    let column = |end: &str| Column::of::<Option<f64>>(&format!("{metric}{end}"));
    let doc = catalogue::position(metric).map_or(String::new(), |at| catalogue::docs()[at].clone());
    [
        column("").meaning(format!("{doc}: mean over the replications")),
        column("_lo").meaning("lower end of the interval of that mean"),
        column("_hi").meaning("upper end of the interval of that mean"),
    ]
}

fn of_parameters(names: &[&str]) -> impl Iterator<Item = Column> {
    names
        .iter()
        .map(|name| Column::of::<&str>(name).meaning("value of this axis of the sweep"))
}

/// What is needed to repeat a row of a sweep.
fn repeat_with() -> [Column; 5] {
    [
        Column::of::<&str>("experiment"),
        Column::of::<usize>("replications"),
        Column::of::<u64>("seed"),
        Column::of::<&str>("scenario_hash"),
        Column::of::<&str>("version"),
    ]
}

/// What stands in the columns that are no metrics.
const MEANINGS: [(&str, &str); 38] = [
    ("a", "mean of the first side"),
    ("b", "mean of the second side"),
    ("best", "is it the best point of the search?"),
    (
        "cell",
        "number of the cell, from 0, in the order of the plan",
    ),
    (
        "change_percent",
        "the difference by the mean of the first side",
    ),
    (
        "chosen",
        "is it the recommended cell? none is while cells are missing",
    ),
    ("confidence", "level of the interval"),
    ("correlation", "of the two sides over the replications"),
    (
        "cost",
        "what the search makes least, the load where nothing else is named; undefined where the metric is",
    ),
    ("defined", "replications in which the metric is defined"),
    (
        "difference",
        "mean of the second side less that of the first, in each replication",
    ),
    ("experiment", "file name of the experiment"),
    (
        "feasible",
        "does every objective hold at the unfavourable end of its interval?",
    ),
    (
        "fingerprint",
        "of the replication's polls, in hexadecimal: equal where every poll is",
    ),
    ("group", "the whole fleet, a tenant class or a server class"),
    (
        "held_connections",
        "long polls held, averaged over the window; undefined for a tenant class",
    ),
    (
        "hi",
        "upper end of the interval; undefined with fewer than two replications",
    ),
    (
        "leaked_loops",
        "loops that run after their abort, averaged over the window",
    ),
    (
        "lo",
        "lower end of the interval; undefined with fewer than two replications",
    ),
    (
        "mean",
        "mean over the replications in which the metric is defined; undefined where it is censored in one",
    ),
    (
        "metric",
        "name of the metric; its unit is the end of the name",
    ),
    (
        "parameters",
        "what was overridden, path=value, with `; ` between",
    ),
    (
        "point",
        "number of the point, from 0, in the order of the search",
    ),
    (
        "queue_length",
        "requests waiting, averaged over the window; undefined for a tenant class",
    ),
    ("replication", "number of the replication, from 0"),
    ("replications", "finished replications"),
    ("scenario", "file name of the scenario"),
    ("scenario_hash", "of the resolved scenario, in hexadecimal"),
    ("seed", "the seed"),
    ("tasks_get_rate_100ms_peak_per_s", "the busiest 100 ms"),
    (
        "tasks_get_rate_per_s",
        "`tasks/get` sent in the window, mean over the replications",
    ),
    (
        "unpaired_half_width",
        "half the interval that independent runs would give",
    ),
    (
        "value",
        "value of the metric in the replication; undefined without a sample, or where it is censored",
    ),
    ("version", "of the program"),
    (
        "violation",
        "by how much it misses objectives, as shares of their bounds, summed; 0 where it meets all",
    ),
    (
        "preset",
        "the poll loop; empty for the scenario's own policies",
    ),
    ("window_s", "length of the window"),
    ("window_start_s", "start of the window"),
];

/// The published schema of the result files: a Data Package with a Table Schema for each file (<https://datapackage.org>). A sweep's
/// tables have a column more for each of its parameters, behind `cell`.
pub fn schema() -> Value {
    json!({
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "pollpace-results",
        "title": "pollpace results",
        "version": env!("CARGO_PKG_VERSION"),
        "resources": [
            file("cells", "a row per cell of a sweep; behind `cell` stands a column of text for each axis", &cells(&[]), &["cell"], true),
            file("results", "a row per cell of a sweep, replication, group and metric; behind `cell` stands a column of text for each axis", &results(&[]), &["cell", "replication", "group", "metric"], true),
            file("optimum", "a row per point of a search; behind `point` stands a column of text for each axis", &optimum(&[]), &["point"], true),
            file("summary", "a row per group and metric of a run", &files::summary_columns(), &["group", "metric"], false),
            file("replications", "a row per replication, group and metric of a run", &files::replications_columns(), &["replication", "group", "metric"], false),
            file("timeseries", "a row per group and window of a run, warm-up included", &files::timeseries_columns(), &["group", "window_start_s"], false),
            file("policies", "a row per poll loop, group and metric of many that are compared", &policies::columns(), &["preset", "group", "metric"], false),
            file("differences", "a row per group and metric of two scenarios that are compared", &compare::columns(), &["group", "metric"], false),
        ],
    })
}

/// The resource of a file.
fn file(name: &str, doc: &str, columns: &[Column], key: &[&str], more: bool) -> Value {
    let mut schema = json!({
        "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
        "fields": columns.iter().map(Column::field).collect::<Vec<_>>(),
        "primaryKey": key,
        "missingValues": [""],
    });
    if more {
        // All of these, and there may be others.
        schema["fieldsMatch"] = json!("subset");
    }
    json!({
        "name": name,
        "path": format!("{name}.csv"),
        "description": doc,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": schema,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_says_what_it_means() {
        for columns in [
            cells(&["floor"]),
            results(&["floor"]),
            optimum(&["floor"]),
            files::summary_columns(),
            files::replications_columns(),
            files::timeseries_columns(),
            compare::columns(),
            policies::columns(),
        ] {
            for column in &columns {
                assert!(
                    !column.doc.is_empty() && !column.doc.starts_with('…'),
                    "{column:?}"
                );
            }
            assert_eq!(columns.last().map(|c| c.name.as_str()), Some("version"));
        }
    }

    #[test]
    fn units_stand_at_the_end_of_a_name() {
        let unit = |name: &str| Column::of::<f64>(name).unit();
        assert_eq!(unit("gap_p99_ms_lo"), Some("ms"));
        assert_eq!(unit("tasks_get_rate_mean_per_s"), Some("1/s"));
        assert_eq!(unit("window_start_s"), Some("s"));
        assert_eq!(unit("aborts"), None);
    }
}
