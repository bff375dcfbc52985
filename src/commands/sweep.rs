//! `pollpace sweep`, `pollpace merge`, and the main job: the cells of a plan, tables, a recommendation, a figure.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};

use anyhow::Context;
use clap::Args;
use indicatif::ProgressBar;
use pollpace::disk::write_whole;
use pollpace::experiment::plan::{Experiment, Plan};
use pollpace::experiment::store::{Store, VERSION};
use pollpace::experiment::sweep::{CellResult, Shard, Watch};
use pollpace::report::Provenance;
use pollpace::scenario;
use pollpace::scenario::units::Duration;
use serde::{Deserialize, Serialize};

use super::conclude::{Conclusion, Told};
use super::experiment::ExperimentFile;
use super::{DONE, INTERRUPTED, Wrong, pool, print, progress, quoted, stop_on_interrupt};

#[derive(Args)]
pub struct SweepArgs {
    /// The experiment file; experiments/floor-and-ceiling.toml is one to start from
    file: PathBuf,
    /// Keep results in this folder: what is there already is not run again
    #[arg(long, value_name = "DIR", default_value = "output")]
    out: PathBuf,
    /// Show the cells and what is still to be run, and run nothing
    #[arg(long)]
    list: bool,
    /// Run one part of the cells: 2/7 is the second of seven. With /7 the part comes from SLURM_ARRAY_TASK_ID (from 1) or JOB_COMPLETION_INDEX (from 0)
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Threads to use; all cores where left out (the results are the same)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Write figures as PNG, too
    #[arg(long)]
    png: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Args)]
pub struct MergeArgs {
    /// Folders of parts of one sweep
    #[arg(required = true)]
    parts: Vec<PathBuf>,
    /// Put everything together in this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write figures as PNG, too
    #[arg(long)]
    png: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// What a folder of results is of: enough to make its plan again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    version: String,
    /// The experiment's file name.
    pub name: String,
    experiment: String,
    /// The scenario in one text.
    scenario: String,
    /// Is it the main job, which needs no file?
    #[serde(default)]
    embedded: bool,
    /// Where the observation starts, if a pilot found it.
    warm_up: Option<String>,
    /// The keys of the cells, by which a changed file is known.
    cells: Vec<String>,
}

impl Kept {
    const FILE: &str = "plan.json";

    fn new(
        name: &str,
        experiment: &str,
        scenario: &str,
        plan: &Plan,
        cut: Option<Duration>,
    ) -> Self {
        Kept {
            version: VERSION.into(),
            name: name.into(),
            experiment: experiment.into(),
            scenario: scenario.into(),
            embedded: false,
            warm_up: cut.map(|cut| cut.to_string()),
            cells: keys(plan),
        }
    }

    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let file = folder.join(Self::FILE);
        let text = fs::read(&file).map_err(|e| {
            Wrong(format!(
                "{} holds no sweep: cannot read {}: {e}",
                folder.display(),
                Self::FILE
            ))
        })?;
        let kept: Kept = serde_json::from_slice(&text)
            .map_err(|e| Wrong(format!("{} is damaged: {e}", file.display())))?;
        if kept.version != VERSION {
            return Err(Wrong(format!(
                "{} was made by version {}, and this is {VERSION}: results of two versions are not mixed; run the sweep again into another folder",
                folder.display(),
                kept.version
            ))
            .into());
        }
        Ok(kept)
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_whole(&folder.join(Self::FILE), &text).context("the plan could not be kept")
    }

    pub fn plan(&self) -> anyhow::Result<Plan> {
        let experiment: Experiment = scenario::read(&self.name, &self.experiment)?;
        let load = |overrides: &[String]| {
            Ok(scenario::parse(&self.name, &self.scenario, overrides)?.scenario)
        };
        let mut plan = Plan::new(&self.name, experiment, load)?;
        if let Some(cut) = &self.warm_up {
            let damaged = |e| Wrong(format!("{} is damaged: warm_up: {e}", Self::FILE));
            plan.start_at(Duration::parse(cut).map_err(damaged)?)?;
        }
        if keys(&plan) != self.cells {
            return Err(Wrong(format!(
                "{} is damaged, or a file that its scenario names has changed: its cells are not those that were run",
                Self::FILE
            ))
            .into());
        }
        Ok(plan)
    }
}

/// The keys of a plan's cells, as kept.
fn keys(plan: &Plan) -> Vec<String> {
    let keys = plan.cells.iter().map(|cell| cell.key);
    keys.map(|key| format!("{key:016x}")).collect()
}

pub fn run(args: &SweepArgs) -> anyhow::Result<u8> {
    let file = ExperimentFile::open(&args.file)?;
    let mut plan = file.plan(args.quiet)?;
    let shard = args.shard.as_deref().map_or(Ok(Shard::WHOLE), shard)?;
    let stop = stop_on_interrupt()?;
    let cut = plan.find_warm_up(&stop)?;
    if let Some(cut) = cut
        && !args.quiet
    {
        tell!("MSER-5 on a pilot: observation starts at {cut}");
    }
    if args.list {
        return list(&plan, shard, &Store::new(&args.out));
    }
    let kept = Kept::new(&file.name, &file.text, &file.in_one_text()?, &plan, cut);
    let wishes = Wishes {
        threads: args.threads,
        png: args.png,
        quiet: args.quiet,
    };
    sweep(&plan, &kept, shard, &stop, &args.out, wishes)
}

const EMBEDDED_EXPERIMENT: &str = include_str!("../../experiments/floor-and-ceiling.toml");
const EMBEDDED_SCENARIO: &str = include_str!("../../models/mixed-fleet.toml");

/// The experiment and the scenario that the program brings along.
pub fn main_job() -> anyhow::Result<u8> {
    let name = "floor-and-ceiling.toml (embedded)";
    let experiment = scenario::read(name, EMBEDDED_EXPERIMENT)?;
    let load = |overrides: &[String]| {
        let loaded = scenario::parse("mixed-fleet.toml (embedded)", EMBEDDED_SCENARIO, overrides)?;
        Ok(loaded.scenario)
    };
    let plan = Plan::new(name, experiment, load)?;
    let file = "floor-and-ceiling.toml";
    let kept = Kept {
        embedded: true,
        ..Kept::new(file, EMBEDDED_EXPERIMENT, EMBEDDED_SCENARIO, &plan, None)
    };
    let (stop, out) = (stop_on_interrupt()?, Path::new("output"));
    let code = sweep(&plan, &kept, Shard::WHOLE, &stop, out, Wishes::default())?;
    if code != INTERRUPTED {
        print(NEXT.as_bytes())?;
    }
    Ok(code)
}

const NEXT: &str = "
What to try next
  look at all pairs                 output/report.html in a browser; output/trade-off.svg
  paste it into a design document   output/decision.md
  run the fleet with one pair       pollpace run models/mixed-fleet.toml --set policy.envelope.floor=1s
  find what lies between the pairs  pollpace optimise experiments/floor-and-ceiling.toml
  see one task, poll by poll        pollpace trace models/mixed-fleet.toml --tenant agents
  try floors and ceilings of yours  edit experiments/floor-and-ceiling.toml; pollpace sweep experiments/floor-and-ceiling.toml
  describe a fleet of yours         copy models/mixed-fleet.toml; pollpace check FILE shows it with all defaults
";

/// Puts the parts of a sweep together.
pub fn merge(args: &MergeArgs) -> anyhow::Result<u8> {
    let kept = Kept::read(&args.parts[0])?;
    for part in &args.parts[1..] {
        if Kept::read(part)? != kept {
            return Err(Wrong(format!(
                "{} and {} are of different sweeps: give the folders of one experiment and scenario",
                args.parts[0].display(),
                part.display()
            ))
            .into());
        }
    }
    if args.out.join(Kept::FILE).exists() && Kept::read(&args.out)? != kept {
        return Err(Wrong(format!(
            "{} holds another sweep: name another folder",
            args.out.display()
        ))
        .into());
    }
    let plan = kept.plan()?;
    let store = Store::new(&args.out);
    for part in &args.parts {
        // A part may have nothing to run.
        if part.join("units").exists() {
            store
                .take_over(part)
                .with_context(|| format!("cannot take over {}", part.display()))?;
        }
    }
    kept.write(&args.out)?;
    let stop = stop_on_interrupt()?;
    let bar = Bar(progress(0, "replications", args.quiet));
    let cells = plan.results(&store);
    let conclusion = conclusion(&plan, &kept, cells, &store, &args.out, args.png);
    conclusion.conclude(&stop, &bar, told(args.quiet))
}

/// What a sweep asks of its results: what the experiment and its scenario say.
fn conclusion<'a>(
    plan: &'a Plan,
    kept: &Kept,
    cells: Vec<CellResult>,
    store: &'a Store,
    out: &'a Path,
    png: bool,
) -> Conclusion<'a> {
    Conclusion {
        plan,
        cells,
        objectives: &plan.base.objective,
        cost: &plan.cost,
        provenance: Provenance::new(&kept.name, &[], &plan.base),
        commands: vec![match kept.embedded {
            true => "pollpace".into(),
            false => format!("pollpace sweep {}", quoted(&kept.name)),
        }],
        store,
        out,
        png,
    }
}

fn told(quiet: bool) -> Told {
    if quiet { Told::Nothing } else { Told::Sweep }
}

/// `2/7`, or `/7` where the environment says which part.
fn shard(text: &str) -> Result<Shard, Wrong> {
    let wrong = |why: &str| Wrong(format!("--shard {text}: {why}; write it as in --shard 2/7"));
    let (part, parts) = text
        .split_once('/')
        .ok_or_else(|| wrong("there is no slash"))?;
    let parts: usize = parts
        .trim()
        .parse()
        .map_err(|_| wrong("the number of parts is a whole number"))?;
    let from_environment = |name: &str| {
        env::var(name)
            .ok()
            .and_then(|v| v.trim().parse::<usize>().ok())
    };
    let part = match part.trim() {
        "" => from_environment("SLURM_ARRAY_TASK_ID")
            .or_else(|| from_environment("JOB_COMPLETION_INDEX").map(|i| i + 1))
            .ok_or_else(|| {
                wrong("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX says which part")
            })?,
        part => part
            .parse()
            .map_err(|_| wrong("the part is a whole number"))?,
    };
    if part == 0 || part > parts {
        return Err(wrong("the part is from 1 to the number of parts"));
    }
    Ok(Shard { part, parts })
}

/// The cells, and what is still to be run.
fn list(plan: &Plan, shard: Shard, store: &Store) -> anyhow::Result<u8> {
    let mut out = String::new();
    for cell in plan.cells.iter().filter(|c| shard.has(c.number)) {
        out.push_str(&format!("{}  {}\n", cell.number, cell.in_words()));
    }
    let (missing, all) = plan.missing(shard, store);
    let at_least = if plan.experiment.precision.is_some() {
        " at least"
    } else {
        ""
    };
    out.push_str(&format!(
        "{missing} of {all} replications{at_least} are still to be run\n"
    ));
    print(out.as_bytes())?;
    Ok(DONE)
}

/// The progress of a sweep, shown until it is dropped.
pub struct Bar(pub ProgressBar);

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Watch for Bar {
    fn plan(&self, units: u64) {
        self.0.inc_length(units);
    }
    fn done(&self) {
        self.0.inc(1);
    }
}

/// How a sweep is run and what is wanted of it.
#[derive(Clone, Copy, Default)]
struct Wishes {
    threads: Option<u16>,
    png: bool,
    quiet: bool,
}

fn sweep(
    plan: &Plan,
    kept: &Kept,
    shard: Shard,
    stop: &AtomicBool,
    out: &Path,
    Wishes {
        threads,
        png,
        quiet,
    }: Wishes,
) -> anyhow::Result<u8> {
    if out.join(Kept::FILE).exists() && Kept::read(out).ok().as_ref() != Some(kept) && !quiet {
        tell!(
            "{} held results of another sweep or version: they stay there, and are not used",
            out.display()
        );
    }
    // Before the work, so that a folder that cannot be written is told at once.
    kept.write(out)?;
    let store = Store::new(out);
    let (missing, all) = plan.missing(shard, &store);
    if missing < all && !quiet {
        tell!("{} of {all} replications are there already", all - missing);
    }
    let bar = Bar(progress(0, "replications", quiet));
    let pool = pool(threads)?;
    let cells = pool.install(|| plan.run(shard, &store, stop, &bar))?;
    if stop.load(Ordering::Relaxed) {
        tell!("interrupted; what is finished is kept, and the same command goes on with the rest");
        return Ok(INTERRUPTED);
    }
    if shard != Shard::WHOLE {
        if !quiet {
            let Shard { part, parts } = shard;
            tell!(
                "part {part} of {parts} is in {}: put them together with pollpace merge DIR… --out DIR",
                out.display()
            );
        }
        return Ok(DONE);
    }
    let conclusion = conclusion(plan, kept, cells, &store, out, png);
    pool.install(|| conclusion.conclude(stop, &bar, told(quiet)))
}
