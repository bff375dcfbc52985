//! `pollpace fit`: logs in, a scenario out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pollpace::logs::format::Kind;
use pollpace::logs::ids::Ids;
use pollpace::logs::scenario::Choice;
use pollpace::logs::{self, files, fitted, table};
use pollpace::scenario::units::Duration;

use super::{DONE, print, progress};

#[derive(Args)]
pub struct FitArgs {
    /// The logs: JSON-RPC lines or CSV (docs/fitting.md); several are read in turn, as one
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Write scenario.toml, its CSV files and fit.json into this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What the logs are
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Ids are hashed with this, so that the same id has the same hash in another fit; a random salt where left out
    #[arg(long, value_name = "TEXT")]
    salt: Option<String>,
    /// Hash the names of tenants and servers, too
    #[arg(long)]
    hash_names: bool,
    /// The policy of the hosts, by name; an envelope read off the waits where left out
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The hosts' request timeout, as in 30s; where left out, longer than every answer in the log took, where any poll was refused or not answered
    #[arg(long, value_name = "DURATION", value_parser = timeout, conflicts_with = "policy")]
    timeout: Option<Duration>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// By the first line of each file
    Auto,
    /// JSON-RPC lines: dumps of stdio or of a proxy
    JsonRpc,
    /// CSV with a header
    Csv,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match Duration::parse(text) {
        Ok(Duration(0)) => Err("a timeout is longer than 0".into()),
        parsed => parsed,
    }
}

pub fn run(args: &FitArgs) -> anyhow::Result<u8> {
    let ids = args.salt.as_deref().map_or_else(Ids::random, Ids::salted);
    let kind = match args.format {
        Format::Auto => None,
        Format::JsonRpc => Some(Kind::JsonRpc),
        Format::Csv => Some(Kind::Csv),
    };
    let bytes = args
        .logs
        .iter()
        .filter_map(|log| std::fs::metadata(log).ok());
    let bar = progress(bytes.map(|m| m.len()).sum(), "bytes", args.quiet);
    let log = logs::read(&args.logs, kind, ids, |read| bar.inc(read));
    bar.finish_and_clear();
    let log = log?;
    let renamed = RefCell::new(BTreeMap::new());
    let name = |kind: &str, name: &str| match args.hash_names {
        true => ids.name(kind, name),
        false => {
            let usable = logs::usable_name(name);
            if usable != name {
                renamed
                    .borrow_mut()
                    .insert(name.to_string(), usable.clone());
            }
            usable
        }
    };
    let fitted = fitted::fit(&log, name)?;
    let choice = Choice {
        named: args.policy.clone(),
        timeout: args.timeout,
    };
    let (names, warnings) = files::write(&args.out, &log, &fitted, &choice)?;
    if args.quiet {
        return Ok(DONE);
    }
    print(table::text(&log, &fitted, &choice).as_bytes())?;
    if !warnings.is_empty() {
        tell!("{}\n", warnings.trim_end());
    }
    for (label, name) in renamed.into_inner() {
        tell!(
            "{label:?} is called {name} in the scenario, where names have letters, digits, - and _ only"
        );
    }
    if args.salt.is_none() {
        tell!("ids are hashed with a random salt; --salt makes hashes that can be compared");
    }
    let scenario = args.out.join(files::SCENARIO);
    tell!(
        "wrote {} in {}; now: pollpace run {}",
        names.join(", "),
        args.out.display(),
        super::quoted(&scenario.display().to_string())
    );
    Ok(DONE)
}
