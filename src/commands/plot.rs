//! `pollpace plot`: the figures of a folder, drawn again from their data.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use pollpace::report::figures;

use super::{DONE, Wrong};

#[derive(Args)]
pub struct PlotArgs {
    /// A folder that run, sweep, choose or compare wrote with --out
    folder: PathBuf,
    /// Write figures as PNG, too
    #[arg(long)]
    png: bool,
    /// Write the figures into this folder; that of the data where left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &PlotArgs) -> anyhow::Result<u8> {
    let figures = figures::read(&args.folder).map_err(|e| Wrong(e.to_string()))?;
    let out = args.out.as_ref().unwrap_or(&args.folder);
    let names =
        figures::write(out, &figures, args.png).context("the figures could not be written")?;
    if !args.quiet {
        tell!("wrote {} in {}", names.join(", "), out.display());
    }
    Ok(DONE)
}
