//! `pollpace compare`: two scenarios under common random numbers.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use pollpace::charts::Figure;
use pollpace::disk::write_whole;
use pollpace::experiment::compare::{Difference, compare};
use pollpace::experiment::{self, Results};
use pollpace::report::compare::{self as report, METRICS, Sides};
use pollpace::report::{Provenance, figures};
use pollpace::scenario::{self, Loaded, Scenario, checks};

use super::objective::{group, metric};
use super::{DONE, INTERRUPTED, pool, print, progress, stop_on_interrupt};

#[derive(Args)]
pub struct CompareArgs {
    /// The first scenario file
    a: PathBuf,
    /// The second; the same file again with --set-b compares two policies of one fleet
    b: PathBuf,
    /// Override any value in both: --set run.horizon=2min (may be repeated)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Override a value in the first
    #[arg(long = "set-a", value_name = "PATH=VALUE")]
    set_a: Vec<String>,
    /// Override a value in the second
    #[arg(long = "set-b", value_name = "PATH=VALUE")]
    set_b: Vec<String>,
    /// Override the seed, which is the same for both (that of the first where left out)
    #[arg(long)]
    seed: Option<u64>,
    /// Override the number of replications, likewise
    #[arg(long)]
    replications: Option<u32>,
    /// Show this metric instead of the usual ones and those of the objectives (may be repeated)
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Show this group: fleet, tenant.NAME or server.NAME; the fleet, and the groups of the objectives, where left out
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Write differences.csv (all metrics and groups) and a figure of what is shown into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the figure as PNG, too
    #[arg(long, requires = "out")]
    png: bool,
    /// Threads to use; all cores where left out (the results are the same)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// A scenario of the two, with what was overridden in it.
struct Side {
    loaded: Loaded,
    overrides: Vec<String>,
    name: String,
}

impl Side {
    fn provenance(&self) -> Provenance {
        Provenance::new(&self.name, &self.overrides, &self.loaded.scenario)
    }
}

impl CompareArgs {
    fn load(&self, file: &Path, own: &[String]) -> anyhow::Result<Side> {
        let mut overrides = [&self.set, own].concat();
        overrides.extend(self.seed.map(|seed| format!("run.seed={seed}")));
        overrides.extend(self.replications.map(|n| format!("run.replications={n}")));
        let name = file.file_name().unwrap_or(file.as_os_str());
        Ok(Side {
            loaded: scenario::load(file, &overrides)?,
            overrides,
            name: name.to_string_lossy().into(),
        })
    }

    /// What is shown, group by metric.
    fn shown<'d>(
        &self,
        differences: &'d [Difference],
        a: &Scenario,
        b: &Scenario,
    ) -> Vec<&'d Difference> {
        let group = self.group.as_deref();
        let mut wanted: Vec<(&str, &str)> = Vec::new();
        if self.metrics.is_empty() {
            wanted.extend(METRICS.map(|metric| (group.unwrap_or("fleet"), metric)));
            let objectives = a.objective.iter().chain(&b.objective);
            wanted.extend(objectives.map(|o| (group.unwrap_or(&o.over), o.metric.as_str())));
        } else {
            let metrics = self.metrics.iter();
            wanted.extend(metrics.map(|m| (group.unwrap_or("fleet"), m.as_str())));
        }
        let mut shown: Vec<&Difference> = Vec::new();
        for (group, metric) in wanted {
            let found = differences
                .iter()
                .find(|d| d.group == group && d.metric == metric);
            if let Some(d) = found
                && !shown.contains(&d)
            {
                shown.push(d);
            }
        }
        shown
    }
}

pub fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let a = args.load(&args.a, &args.set_a)?;
    let mut b = args.load(&args.b, &args.set_b)?;
    for name in &args.metrics {
        metric("--metric", name)?;
    }
    if let Some(name) = &args.group {
        let of_b = checks::groups(&b.loaded.scenario);
        let mut both = checks::groups(&a.loaded.scenario);
        both.retain(|group| of_b.contains(group));
        group("--group", name, &both)?;
    }
    let notes = align(&a.loaded.scenario, &mut b);
    if !args.quiet {
        tell_warnings(&a.loaded.warnings, &b.loaded.warnings);
        notes.iter().for_each(|note| tell!("{note}"));
    }
    let Some([of_a, of_b]) = run_both(args, [&a, &b])? else {
        tell!("interrupted: nothing is kept, because both have to be whole to be compared");
        return Ok(INTERRUPTED);
    };
    let (a, b, sides) = {
        let run = &a.loaded.scenario.run;
        let sides = Sides {
            a: a.provenance(),
            b: b.provenance(),
            replications: of_a.replications.len(),
            confidence: run.confidence.0,
        };
        (&a.loaded.scenario, &b.loaded.scenario, sides)
    };
    let differences = compare(&of_a, &of_b, sides.confidence)?;
    let shown = args.shown(&differences, a, b);
    if let Some(folder) = &args.out {
        let table = report::csv(&differences, &sides);
        write_whole(&folder.join("differences.csv"), &table)
            .context("the differences could not be kept")?;
        let figure = Figure::Differences(report::figure(&shown, &sides));
        let drawn =
            figures::write(folder, &[figure], args.png).context("the figure could not be kept")?;
        if !args.quiet {
            let names = drawn.join(", ");
            tell!("wrote differences.csv, {names} in {}", folder.display());
        }
    }
    if !args.quiet {
        print(report::text(&shown, &sides).as_bytes())?;
    }
    Ok(DONE)
}

/// Gives B the seed, the replications and the confidence of A, and says what that changed and what still differs.
fn align(a: &Scenario, b: &mut Side) -> Vec<String> {
    let (of_a, of_b) = (&a.run, &mut b.loaded.scenario.run);
    let mut notes = Vec::new();
    let mut taken_over = |key: &str, own: String, others: String| {
        notes.push(format!(
            "both run with run.{key}={own}, as A says (B says {others}): pairs need the same"
        ));
        b.overrides.push(format!("run.{key}={own}"));
    };
    if of_a.seed != of_b.seed {
        taken_over("seed", of_a.seed.to_string(), of_b.seed.to_string());
        of_b.seed = of_a.seed;
    }
    if of_a.replications != of_b.replications {
        let [own, others] = [of_a.replications.0, of_b.replications.0].map(|n| n.to_string());
        taken_over("replications", own, others);
        of_b.replications = of_a.replications;
    }
    if of_a.confidence != of_b.confidence {
        let [own, others] = [of_a.confidence.0, of_b.confidence.0].map(|x| x.to_string());
        taken_over("confidence", own, others);
        of_b.confidence = of_a.confidence;
    }
    if (of_a.warm_up, of_a.horizon) != (of_b.warm_up, of_b.horizon) {
        notes.push(format!(
            "A is observed from {} to {}, B from {} to {}: compare rates and latencies only, not counts and peaks",
            of_a.warm_up, of_a.horizon.0, of_b.warm_up, of_b.horizon.0
        ));
    }
    if a.hash() == b.loaded.scenario.hash() {
        notes.push(
            "A and B are the same scenario: change one of them, as in --set-b policy.NAME.floor=1s"
                .into(),
        );
    }
    notes
}

/// Warnings of both; once, where they are the same.
fn tell_warnings(a: &str, b: &str) {
    let mut warnings = vec![a, b];
    warnings.dedup();
    for text in warnings.iter().filter(|text| !text.is_empty()) {
        tell!("{}\n", text.trim_end());
    }
}

/// Runs both; `None` where they were interrupted.
fn run_both(args: &CompareArgs, sides: [&Side; 2]) -> anyhow::Result<Option<[Results; 2]>> {
    let stop = stop_on_interrupt()?;
    let replications = sides[0].loaded.scenario.run.replications.0;
    let bar = progress(2 * u64::from(replications), "replications", args.quiet);
    let mut results = Vec::new();
    for (side, letter) in sides.into_iter().zip(["A", "B"]) {
        let run = || experiment::run(&side.loaded.scenario, &stop, |_| bar.inc(1));
        let done = pool(args.threads)?.install(run);
        results.push(done.with_context(|| format!("{letter}, {}", side.name))?);
    }
    bar.finish_and_clear();
    let whole = results.iter().all(|r| !r.interrupted);
    Ok(<[Results; 2]>::try_from(results).ok().filter(|_| whole))
}
