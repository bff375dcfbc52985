//! `pollpace sweep`, and the main job: a grid of floors and ceilings, a recommendation, a figure.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use clap::Args;
use pollpace::charts::trade_off;
use pollpace::disk::write_whole;
use pollpace::experiment::grid::{Grid, choose};
use pollpace::report::{Provenance, grid as report};
use pollpace::scenario;

use super::{DONE, INTERRUPTED, NOT_MET, pool, print, progress, stop_on_interrupt};

#[derive(Args)]
pub struct SweepArgs {
    /// The grid file; experiments/floor-and-ceiling.toml is one to start from
    file: PathBuf,
    /// Write cells.csv and trade-off.svg into this folder
    #[arg(long, value_name = "DIR", default_value = "output")]
    out: PathBuf,
    /// Threads to use; all cores where left out (the results are the same)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &SweepArgs) -> anyhow::Result<u8> {
    let grid = Grid::load(&args.file)?;
    let name = args
        .file
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into());
    sweep(&grid, &name, &args.out, args.threads, args.quiet)
}

const EMBEDDED_GRID: &str = include_str!("../../experiments/floor-and-ceiling.toml");
const EMBEDDED_SCENARIO: &str = include_str!("../../models/mixed-fleet.toml");

/// The grid and the scenario that the program brings along.
pub fn main_job() -> anyhow::Result<u8> {
    let file = scenario::read("floor-and-ceiling.toml (embedded)", EMBEDDED_GRID)?;
    let load = |overrides: &[String]| {
        let loaded = scenario::parse("mixed-fleet.toml (embedded)", EMBEDDED_SCENARIO, overrides)?;
        Ok(loaded.scenario)
    };
    let grid = Grid::new("floor-and-ceiling.toml (embedded)", file, load)?;
    let code = sweep(
        &grid,
        "floor-and-ceiling.toml",
        Path::new("output"),
        None,
        false,
    )?;
    if code != INTERRUPTED {
        print(NEXT.as_bytes())?;
    }
    Ok(code)
}

const NEXT: &str = "
What to try next
  look at the curve                 output/trade-off.svg
  run the fleet with one pair       pollpace run models/mixed-fleet.toml --set policy.envelope.floor=1s
  see one task, poll by poll        pollpace trace models/mixed-fleet.toml --tenant agents
  try floors and ceilings of yours  edit experiments/floor-and-ceiling.toml; pollpace sweep experiments/floor-and-ceiling.toml
  describe a fleet of yours         copy models/mixed-fleet.toml; pollpace check FILE shows it with all defaults
";

fn sweep(
    grid: &Grid,
    name: &str,
    out: &Path,
    threads: Option<u16>,
    quiet: bool,
) -> anyhow::Result<u8> {
    let provenance = Provenance::new(name, &[], &grid.base);
    let stop = stop_on_interrupt()?;
    let bar = progress(grid.replications(), "replications", quiet);
    let cells = pool(threads)?.install(|| grid.run(&stop, |_| bar.inc(1)));
    bar.finish_and_clear();
    let cells = cells?;
    let interrupted = stop.load(Ordering::Relaxed);
    if interrupted {
        tell!(
            "interrupted after {} whole cells; what is finished is kept",
            cells.len()
        );
    }
    if !cells.is_empty() {
        let written = (|| -> anyhow::Result<()> {
            write_whole(
                &out.join("cells.csv"),
                &report::cells_csv(&cells, &provenance),
            )?;
            let figure = trade_off::svg(&report::figure(grid, &cells, &provenance))?;
            write_whole(&out.join("trade-off.svg"), figure.as_bytes())?;
            Ok(())
        })();
        if !quiet {
            print(report::text(grid, &cells, interrupted, &provenance).as_bytes())?;
        }
        written.context("the results could not be kept")?;
        if !quiet {
            tell!("wrote cells.csv and trade-off.svg in {}", out.display());
        }
    }
    Ok(match () {
        () if interrupted => INTERRUPTED,
        () if grid.base.objective.is_empty() || choose(&cells).is_some() => DONE,
        () => NOT_MET,
    })
}
