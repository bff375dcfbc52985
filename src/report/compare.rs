//! Two scenarios side by side: table, CSV, figure.

use std::fmt::Write;

use super::columns::{Column, row};
use super::files::csv_text;
use super::table::{align_numbers, plain_table};
use super::{Provenance, format};
use crate::charts::{DifferenceRow, Differences};
use crate::experiment::Estimate;
use crate::experiment::compare::Difference;

/// The metrics that are shown where no others are asked for.
pub const METRICS: [&str; 9] = [
    "tasks_get_rate_mean_per_s",
    "tasks_get_rate_1s_peak_per_s",
    "completion_latency_mean_ms",
    "completion_latency_p50_ms",
    "completion_latency_p99_ms",
    "abort_latency_p50_ms",
    "abort_latency_p99_ms",
    "useless_share",
    "leaked_polls",
];

/// Which two scenarios are compared, and how.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The first.
    pub a: Provenance,
    /// The second.
    pub b: Provenance,
    /// Replications of each.
    pub replications: usize,
    /// Level of the intervals.
    pub confidence: f64,
}

impl Sides {
    /// A side in a line: its file, and what was overridden.
    fn name(side: &Provenance) -> String {
        match side.parameters.as_str() {
            "" => side.scenario.clone(),
            parameters => format!("{} · {parameters}", side.scenario),
        }
    }

    /// The line at the foot.
    fn foot(&self) -> String {
        format!(
            "{} replications · seed {} · scenarios {} and {} · pollpace {}",
            self.replications,
            self.a.seed,
            self.a.scenario_hash,
            self.b.scenario_hash,
            self.a.version
        )
    }
}

/// The table of the differences that are asked for.
pub fn text(shown: &[&Difference], sides: &Sides) -> String {
    let mut out = format!(
        "A  {}\nB  {}\n",
        Sides::name(&sides.a),
        Sides::name(&sides.b)
    );
    let mut table = plain_table();
    table.set_header(["", "A", "B", "B − A", "change", "paired interval"]);
    for d in shown {
        let label = match d.group.as_str() {
            "fleet" => d.metric.clone(),
            group => format!("{} ({group})", d.metric),
        };
        let doubt = if d.is_clear() || d.is_exact() {
            ""
        } else {
            "~ "
        };
        let difference = match d.difference.mean {
            Some(_) => format!("{doubt}{}", format::estimate(&d.difference)),
            None => format::number(None),
        };
        table.add_row([
            label,
            format::number(d.a.mean),
            format::number(d.b.mean),
            difference,
            change(d),
            interval(d),
        ]);
    }
    align_numbers(&mut table);
    let _ = writeln!(
        out,
        "{table}\nMeans, and {} % intervals of the paired differences (Student's t over {} replications, which meet the same tasks)\n\
         ~ no clear difference: the interval holds 0, or there is none; – undefined: without a sample in a replication, or censored\n\
         paired interval: against that of independent runs (r is the correlation); exact: the same difference in every replication",
        sides.confidence * 100.0,
        sides.replications,
    );
    let _ = writeln!(out, "\n{}", sides.foot());
    out
}

/// The change in percent, with its sign.
fn change(d: &Difference) -> String {
    match d.change_percent() {
        Some(0.0) => "0 %".into(),
        Some(percent) => format!("{percent:+.1} %"),
        None => format::number(None),
    }
}

/// How the interval compares with that of independent runs.
fn interval(d: &Difference) -> String {
    let r = d
        .correlation
        .map_or(String::new(), |r| format!(" (r {r:.2})"));
    match d.narrower() {
        _ if d.is_exact() => "exact".into(),
        Some(times) if times >= 1.0 => format!("{times:.1} × narrower{r}"),
        Some(times) => format!("{:.1} × wider{r}", 1.0 / times),
        None => format::number(None),
    }
}

row! {
    struct Row<'a> {
        scenario_a: &'a str,
        parameters_a: &'a str,
        scenario_b: &'a str,
        parameters_b: &'a str,
        group: &'a str,
        metric: &'a str,
        a: Option<f64>,
        b: Option<f64>,
        difference: Option<f64>,
        lo: Option<f64>,
        hi: Option<f64>,
        change_percent: Option<f64>,
        unpaired_half_width: Option<f64>,
        correlation: Option<f64>,
        confidence: f64,
        replications: usize,
        seed: u64,
        scenario_hash_a: &'a str,
        scenario_hash_b: &'a str,
        version: &'a str,
    }
}

/// The columns of `differences.csv`.
pub fn columns() -> Vec<Column> {
    Row::columns()
}

/// `differences.csv`: one row per group and metric.
pub fn csv(differences: &[Difference], sides: &Sides) -> Vec<u8> {
    csv_text(differences.iter().map(|d| Row {
        scenario_a: &sides.a.scenario,
        parameters_a: &sides.a.parameters,
        scenario_b: &sides.b.scenario,
        parameters_b: &sides.b.parameters,
        group: &d.group,
        metric: &d.metric,
        a: d.a.mean,
        b: d.b.mean,
        difference: d.difference.mean,
        lo: d.difference.lo,
        hi: d.difference.hi,
        change_percent: d.change_percent(),
        unpaired_half_width: d.unpaired_half_width,
        correlation: d.correlation,
        confidence: sides.confidence,
        replications: sides.replications,
        seed: sides.a.seed,
        scenario_hash_a: &sides.a.scenario_hash,
        scenario_hash_b: &sides.b.scenario_hash,
        version: &sides.a.version,
    }))
}

/// The figure of the differences that are asked for; what is undefined is left out.
pub fn figure(shown: &[&Difference], sides: &Sides) -> Differences {
    let row = |d: &&Difference| {
        let Estimate { mean, lo, hi, .. } = d.difference;
        let mean = mean?;
        let (label, unit) = words(&d.metric);
        let group = match d.group.as_str() {
            "fleet" => String::new(),
            group => format!(" ({group})"),
        };
        Some(DifferenceRow {
            label: format!("{label}{group}"),
            unit: unit.into(),
            a_mean: d.a.mean?,
            b_mean: d.b.mean?,
            difference: (lo.unwrap_or(mean), mean, hi.unwrap_or(mean)),
        })
    };
    Differences {
        title: format!(
            "From A to B: paired differences, {} % intervals",
            sides.confidence * 100.0
        ),
        a: Sides::name(&sides.a),
        b: Sides::name(&sides.b),
        rows: shown.iter().filter_map(row).collect(),
        provenance: sides.foot(),
    }
}

/// A metric in words, and its unit.
fn words(metric: &str) -> (String, &'static str) {
    let units = [("_ms", "ms"), ("_per_s", "1/s"), ("_s", "s")];
    let found = units
        .iter()
        .find_map(|(suffix, unit)| Some((metric.strip_suffix(suffix)?, *unit)));
    let (stem, unit) = found.unwrap_or((metric, ""));
    let stem = match stem.strip_prefix("tasks_get") {
        Some(rest) => format!("tasks/get{rest}"),
        None => stem.to_string(),
    };
    (stem.replace('_', " "), unit)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn metrics_are_told_in_words() {
        for (metric, label, unit) in [
            (
                "tasks_get_rate_1s_peak_per_s",
                "tasks/get rate 1s peak",
                "1/s",
            ),
            ("completion_latency_p99_ms", "completion latency p99", "ms"),
            ("breaker_open_s", "breaker open", "s"),
            ("leaked_polls", "leaked polls", ""),
        ] {
            assert_eq!(words(metric), (label.to_string(), unit));
        }
    }
}
