//! `pollpace policies`: the poll loops of real hosts that come with the program.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use pollpace::charts::Figure;
use pollpace::disk::write_whole;
use pollpace::engine::RunError;
use pollpace::experiment::policies::{compare, replications, verdicts};
use pollpace::export::{Language, export};
use pollpace::report::{Provenance, figures, policies as report};
use pollpace::scenario::presets::{self, LoopKind, Preset};
use pollpace::scenario::{self, checks};

use super::{DONE, INTERRUPTED, ScenarioArgs, Wrong, pool, print, progress, stop_on_interrupt};

#[derive(Args)]
pub struct PoliciesArgs {
    #[command(subcommand)]
    command: Option<PoliciesCommand>,
}

#[derive(Subcommand)]
enum PoliciesCommand {
    /// List them (also without a subcommand): bounds, what bad hints become, first poll, backoff, abort, and what the gate says
    List(ListArgs),
    /// Show one in words and as TOML
    Show {
        /// The preset
        name: String,
    },
    /// Run each of them over one scenario, in the place of its policies
    Compare(CompareArgs),
    /// Print one as a small function without dependencies, which a host can paste
    Export {
        /// The preset; with --scenario, a policy of that scenario
        name: String,
        /// In which language
        #[arg(long, value_enum)]
        to: To,
        /// Export a policy of this scenario file
        #[arg(long, value_name = "FILE")]
        scenario: Option<PathBuf>,
    },
}

/// Languages of exports.
#[derive(Clone, Copy, ValueEnum)]
enum To {
    /// The parameters alone
    Json,
    /// TypeScript (ES2020)
    Typescript,
    /// Python (3.9 or later)
    Python,
}

#[derive(Args, Default)]
struct ListArgs {
    /// Threads to use; all cores where left out (the results are the same)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Args)]
struct CompareArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Override the number of replications
    #[arg(long)]
    replications: Option<u32>,
    /// Run this preset only (may be repeated); all loops of hosts and servers where left out
    #[arg(long = "policy", value_name = "NAME")]
    policies: Vec<String>,
    /// Write policies.csv (all metrics and groups) and the figure into this folder
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

pub fn run(args: &PoliciesArgs) -> anyhow::Result<u8> {
    match &args.command {
        None => list(&ListArgs::default()),
        Some(PoliciesCommand::List(args)) => list(args),
        Some(PoliciesCommand::Show { name }) => show(name),
        Some(PoliciesCommand::Compare(args)) => compare_all(args),
        Some(PoliciesCommand::Export { name, to, scenario }) => {
            export_one(name, *to, scenario.as_deref())
        }
    }
}

/// A preset by its name.
fn preset(name: &str) -> Result<(&'static str, &'static Preset), Wrong> {
    let found = presets::all().iter().find(|(known, _)| *known == name);
    found.map(|(name, preset)| (*name, preset)).ok_or_else(|| {
        let right = presets::suggestion(name);
        Wrong(format!("there is no preset called \"{name}\": {right}"))
    })
}

fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let all: Vec<_> = presets::all().iter().map(|(name, p)| (*name, p)).collect();
    let stop = stop_on_interrupt()?;
    let bar = progress(0, "replications", args.quiet);
    let verdicts = pool(args.threads)?.install(|| verdicts(&all, &stop, || bar.inc(1)))?;
    bar.finish_and_clear();
    match verdicts {
        Ok(verdicts) => print(report::table(&all, &verdicts).as_bytes())?,
        Err(RunError::Interrupted) => return Ok(INTERRUPTED),
        Err(error) => return Err(error.into()),
    }
    Ok(DONE)
}

fn show(name: &str) -> anyhow::Result<u8> {
    let (name, preset) = preset(name)?;
    let file = presets::text(name).unwrap_or_default();
    let policy = file.split_once("[policy]\n").map_or("", |(_, own)| own);
    let toml = format!(
        "# In a scenario: policy = \"{name}\", or a policy that extends it.\n[policy.\"{name}\"]\n{policy}"
    );
    print(format!("{}\n{toml}", report::words(name, preset)).as_bytes())?;
    Ok(DONE)
}

fn export_one(name: &str, to: To, scenario: Option<&Path>) -> anyhow::Result<u8> {
    let language = match to {
        To::Json => Language::Json,
        To::Typescript => Language::TypeScript,
        To::Python => Language::Python,
    };
    let text = match scenario {
        None => {
            let (name, preset) = preset(name)?;
            export(name, &preset.policy, &preset.limits, language)
        }
        Some(file) => {
            let scenario = scenario::load(file, &[])?.scenario;
            let policy = scenario.policy.get(name).ok_or_else(|| {
                let known: Vec<&str> = scenario.policy.keys().map(String::as_str).collect();
                let right = checks::suggestion(name, &known, "policies");
                Wrong(format!(
                    "{}: there is no [policy.{name}]: {right}",
                    file.display()
                ))
            })?;
            export(name, policy, &[], language)
        }
    };
    print(
        text.map_err(|refused| Wrong(refused.to_string()))?
            .as_bytes(),
    )?;
    Ok(DONE)
}

fn compare_all(args: &CompareArgs) -> anyhow::Result<u8> {
    let mut overrides = args.scenario.overrides();
    overrides.extend(args.replications.map(|n| format!("run.replications={n}")));
    let scenario = args.scenario.load(&overrides)?;
    let chosen: Vec<_> = if args.policies.is_empty() {
        let loops = presets::all().iter();
        let loops = loops.filter(|(_, p)| p.kind != LoopKind::NotALoop);
        loops.map(|(name, p)| (*name, p)).collect()
    } else {
        let named = args.policies.iter().map(|name| preset(name));
        let mut named: Vec<_> = named.collect::<Result<_, _>>()?;
        let mut seen = std::collections::BTreeSet::new();
        named.retain(|(name, _)| seen.insert(*name));
        named
    };
    if let Some(folder) = &args.out {
        // Before all the work.
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let stop = stop_on_interrupt()?;
    let bar = progress(
        replications(&scenario, chosen.len()),
        "replications",
        args.quiet,
    );
    let tried = pool(args.threads)?.install(|| compare(&scenario, &chosen, &stop, || bar.inc(1)));
    bar.finish_and_clear();
    let mut tried = match tried {
        Err(RunError::Interrupted) => {
            tell!("interrupted: nothing is kept, because all have to be whole to be compared");
            return Ok(INTERRUPTED);
        }
        tried => tried?,
    };
    report::by_load(&mut tried);
    let provenance = Provenance::new(&args.scenario.name(), &overrides, &scenario);
    if !args.quiet {
        let table = report::comparison(&tried, &scenario.title, &provenance);
        print(table.as_bytes())?;
    }
    if let Some(folder) = &args.out {
        let figure = report::figure(&tried, &scenario.title, &provenance);
        let write = || {
            std::fs::create_dir_all(folder)?;
            write_whole(
                &folder.join("policies.csv"),
                &report::csv(&tried, &provenance),
            )?;
            figures::write(folder, &[Figure::PollLoops(figure)], args.png)
        };
        let names = write().with_context(|| format!("cannot write into {}", folder.display()))?;
        if !args.quiet {
            let folder = folder.display();
            tell!("wrote policies.csv and {} into {folder}", names.join(", "));
        }
    }
    Ok(DONE)
}
