//! `pollpace run`: a scenario's replications, a table, files.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use pollpace::experiment;
use pollpace::report::{Provenance, files, table};

use super::{DONE, INTERRUPTED, NOT_MET, ScenarioArgs, pool, print, progress, stop_on_interrupt};

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Write summary.csv, replications.csv, timeseries.csv, summary.json, alerts.json and figures into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write figures as PNG, too
    #[arg(long, requires = "out")]
    png: bool,
    /// Override the number of replications
    #[arg(long)]
    replications: Option<u32>,
    /// Threads to use; all cores where left out (the results are the same)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// A readable table
    Table,
    /// The content of summary.json
    Json,
    /// The content of summary.csv
    Csv,
}

pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let mut overrides = args.scenario.overrides();
    overrides.extend(args.replications.map(|n| format!("run.replications={n}")));
    let scenario = args.scenario.load(&overrides)?;
    let provenance = Provenance::new(&args.scenario.name(), &overrides, &scenario);
    let stop = stop_on_interrupt()?;
    let bar = progress(
        u64::from(scenario.run.replications.0),
        "replications",
        args.quiet,
    );
    let results = pool(args.threads)?.install(|| experiment::run(&scenario, &stop, |_| bar.inc(1)));
    bar.finish_and_clear();
    let results = results?;
    if results.interrupted {
        let done = results.replications.len();
        tell!(
            "interrupted after {done} of {} replications; what is finished is kept",
            scenario.run.replications.0
        );
    }
    if let Some(folder) = &args.out
        && !results.replications.is_empty()
    {
        let names = files::write_run(folder, &results, &scenario, &provenance, args.png)
            .context("the results could not be kept")?;
        if !args.quiet {
            tell!("wrote {} in {}", names.join(", "), folder.display());
        }
    }
    if !args.quiet && !results.replications.is_empty() {
        match args.format {
            Format::Table => print(table::run(&results, &scenario, &provenance).as_bytes())?,
            Format::Json => print(&files::summary_json(&results, &scenario, &provenance))?,
            Format::Csv => print(&files::summary_csv(&results, &scenario, &provenance))?,
        }
    }
    Ok(match () {
        () if results.interrupted => INTERRUPTED,
        () if results.verdicts.iter().all(|v| v.met) => DONE,
        () => NOT_MET,
    })
}
