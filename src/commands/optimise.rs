//! `pollpace optimise`: floor and ceiling between the points of a grid.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use pollpace::disk::write_whole;
use pollpace::experiment::optimise::{OptimiseError, Optimum, optimise};
use pollpace::experiment::plan::Plan;
use pollpace::experiment::store::Store;
use pollpace::report::{Provenance, fleet, format, optimum, table};

use super::experiment::ExperimentFile;
use super::sweep::Bar;
use super::{DONE, INTERRUPTED, NOT_MET, Wrong, pool, print, progress, stop_on_interrupt};

#[derive(Args)]
pub struct OptimiseArgs {
    /// The experiment file: the search goes from the least to the greatest value of its one or two axes, which are durations such as floor and ceiling
    file: PathBuf,
    /// Find each value to within this share of itself
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    resolution: f64,
    /// Keep results in this folder, and write optimum.csv there: what is there already is not run again
    #[arg(long, value_name = "DIR", default_value = "output")]
    out: PathBuf,
    /// Threads to use; all cores where left out (the results are the same)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &OptimiseArgs) -> anyhow::Result<u8> {
    if !(0.0001..=1.0).contains(&args.resolution) {
        return Err(Wrong(format!(
            "--resolution {}: it is from 0.0001 to 1, as in 0.01 for one per cent",
            args.resolution
        ))
        .into());
    }
    let file = ExperimentFile::open(&args.file)?;
    let mut plan = file.plan(args.quiet)?;
    if plan.base.objective.is_empty() {
        return Err(Wrong(
            "the scenario has no objectives, so every point is as good as another: add [[objective]]"
                .into(),
        )
        .into());
    }
    let stop = stop_on_interrupt()?;
    plan.find_warm_up(&stop)?;
    let store = Store::new(&args.out);
    let bar = Bar(progress(0, "replications", args.quiet));
    let load = |overrides: &[String]| file.load(overrides);
    let found = pool(args.threads)?
        .install(|| optimise(&plan, &load, args.resolution, (&store, &stop, &bar)));
    drop(bar);
    let found = match found {
        Err(OptimiseError::Interrupted) => {
            tell!("interrupted; what is finished is kept, and the same command goes on with it");
            return Ok(INTERRUPTED);
        }
        found => found?,
    };
    let provenance = Provenance::new(&file.name, &[], &plan.base);
    let written = write(&args.out, &plan, &found, &provenance);
    if !args.quiet {
        print(text(&plan, &found, args.resolution, &provenance).as_bytes())?;
    }
    written.context("the results could not be kept")?;
    if !args.quiet {
        tell!("wrote optimum.csv in {}", args.out.display());
    }
    let best = &found.points[found.best];
    Ok(if best.result.feasible() {
        DONE
    } else {
        NOT_MET
    })
}

fn write(out: &Path, plan: &Plan, found: &Optimum, provenance: &Provenance) -> std::io::Result<()> {
    write_whole(
        &out.join("optimum.csv"),
        &optimum::csv(plan, found, provenance),
    )
}

fn text(plan: &Plan, found: &Optimum, resolution: f64, provenance: &Provenance) -> String {
    let best = &found.points[found.best];
    let mut out = String::new();
    let verdict = match best.result.feasible() {
        true => "Best",
        false => "Nothing between these values meets every objective. Nearest to it",
    };
    let _ = writeln!(out, "{verdict}: {}", best.cell.in_words());
    let _ = writeln!(
        out,
        "  {}: {}",
        plan.cost,
        format::number(Some(best.cost).filter(|c| c.is_finite()))
    );
    let runs: usize = found
        .points
        .iter()
        .map(|p| p.result.replications.len())
        .sum();
    let _ = writeln!(
        out,
        "  found to within {} % in {} cells, {runs} replications; a grid as fine has {} cells",
        format::number(Some(100.0 * resolution)),
        found.points.len(),
        format::number(Some(found.grid as f64))
    );
    let _ = writeln!(
        out,
        "\n{}",
        table::objectives(&best.result.verdicts).trim_end()
    );
    let (toml, _) = fleet::snippets(plan, &best.cell);
    let _ = writeln!(out, "\n{toml}\n\n{}", provenance.line());
    out
}
