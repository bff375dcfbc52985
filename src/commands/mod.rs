//! One file per subcommand: arguments in, exit code out.

/// Writes a line to standard error; where nobody can read it, the work goes on.
macro_rules! tell {
    ($($part:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

mod check;
mod choose;
mod compare;
mod conclude;
mod experiment;
mod fit;
mod gate;
mod objective;
mod optimise;
mod plot;
mod policies;
mod run;
mod sweep;
mod trace;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pollpace::engine::RunError;
use pollpace::experiment::optimise::OptimiseError;
use pollpace::experiment::plan::Experiment;
use pollpace::experiment::sweep::{PilotError, SweepError};
use pollpace::logs::LogError;
use pollpace::report::columns;
use pollpace::scenario::{self, LoadError, Loaded, Rejected, Scenario};

/// Done.
pub const DONE: u8 = 0;
/// Done, but an objective is not met.
pub const NOT_MET: u8 = 1;
/// The input is wrong.
pub const WRONG_INPUT: u8 = 2;
/// The program failed: a file could not be written, say.
pub const FAILED: u8 = 3;
/// Stopped by Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Which floor and which ceiling should a host put around a server's pollInterval?
///
/// pollpace simulates a fleet of hosts that poll durable tasks, and tells the load, the completion latency and the abort latency of
/// each choice. Without a subcommand it does its main job on an embedded fleet: a grid of floors and ceilings, the recommended
/// pair, figures, and a page for a design document, all in the folder output.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 done; 1 done, but an objective is not met; 2 the input is wrong; 3 a failure of the program; 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and show what the fleet does
    Run(run::RunArgs),
    /// Tell the story of one task, poll by poll
    Trace(trace::TraceArgs),
    /// Validate a scenario and print it as understood, with all defaults
    Check(check::CheckArgs),
    /// Run the cells of an experiment and recommend one
    Sweep(sweep::SweepArgs),
    /// Choose a cell of a sweep, and show what stands behind the choice
    Choose(choose::ChooseArgs),
    /// Find the best floor and ceiling between the points of a grid
    Optimise(optimise::OptimiseArgs),
    /// Compare two scenarios under common random numbers: paired differences, with intervals
    Compare(compare::CompareArgs),
    /// May these policies be deployed? Six conditions, four trips
    Gate(gate::GateArgs),
    /// The poll loops of real hosts that come with the program
    Policies(policies::PoliciesArgs),
    /// Make a scenario of logs: what hosts, proxies or servers have written down
    Fit(fit::FitArgs),
    /// Put parts of a sweep together
    Merge(sweep::MergeArgs),
    /// Draw the figures of a folder again from their data
    Plot(plot::PlotArgs),
    /// Print the schema of a kind of file
    Schema {
        /// Of which files
        #[arg(value_enum, default_value_t = Files::Scenario)]
        of: Files,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Files that have a schema.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Files {
    /// Scenarios: a JSON Schema
    Scenario,
    /// Experiments: a JSON Schema
    Experiment,
    /// The CSV files of sweeps and runs: a Data Package of Table Schemas
    Results,
}

/// A scenario file with overrides.
#[derive(Args, Clone)]
pub struct ScenarioArgs {
    /// The scenario file
    file: PathBuf,
    /// Override any value: --set policy.envelope.floor=500ms (may be repeated)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Override the seed
    #[arg(long)]
    seed: Option<u64>,
}

impl ScenarioArgs {
    /// The overrides, seed included.
    fn overrides(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("run.seed={seed}"));
        self.set.iter().cloned().chain(seed).collect()
    }

    /// The scenario's name in results: its file's.
    fn name(&self) -> String {
        self.file.file_name().map_or_else(
            || self.file.display().to_string(),
            |n| n.to_string_lossy().into(),
        )
    }

    /// Reads the scenario, printing its warnings.
    fn load(&self, overrides: &[String]) -> anyhow::Result<Scenario> {
        let Loaded { scenario, warnings } = scenario::load(&self.file, overrides)?;
        if !warnings.is_empty() {
            tell!("{}\n", warnings.trim_end());
        }
        Ok(scenario)
    }
}

/// Runs the program and gives its exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => sweep::main_job(),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Trace(args)) => trace::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Sweep(args)) => sweep::run(&args),
        Some(Command::Choose(args)) => choose::run(&args),
        Some(Command::Optimise(args)) => optimise::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Gate(args)) => gate::run(&args),
        Some(Command::Policies(args)) => policies::run(&args),
        Some(Command::Fit(args)) => fit::run(&args),
        Some(Command::Merge(args)) => sweep::merge(&args),
        Some(Command::Plot(args)) => plot::run(&args),
        Some(Command::Schema { of }) => schema(of),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pollpace", &mut script);
            print(&script).map(|()| DONE)
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            match error.downcast_ref() {
                // Its text is a report of its own.
                Some(LoadError::Rejected(rejected)) => tell!("{rejected}"),
                _ if error.is::<Rejected>() => tell!("{error}"),
                _ => tell!("error: {error:#}"),
            }
            ExitCode::from(code_of(&error))
        }
    }
}

/// An argument that does not fit the scenario.
#[derive(Debug)]
struct Wrong(String);

impl std::error::Error for Wrong {}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Wrong input is told from failures of the program.
fn code_of(error: &anyhow::Error) -> u8 {
    let mut causes = error.chain();
    if causes.any(|cause| matches!(cause.downcast_ref(), Some(RunError::Interrupted))) {
        return INTERRUPTED;
    }
    let wrong_input = error.chain().any(|cause| {
        let cause = match cause.downcast_ref() {
            Some(SweepError::Run { error, .. }) => &**error as &(dyn std::error::Error + 'static),
            _ => cause,
        };
        cause.is::<Rejected>()
            || cause.is::<Wrong>()
            || cause.is::<LoadError>()
            || matches!(
                cause.downcast_ref(),
                Some(OptimiseError::Axes(_) | OptimiseError::Load(_))
            )
            || cause.is::<PilotError>()
            || matches!(
                cause.downcast_ref(),
                Some(error) if !matches!(error, LogError::Write(_))
            )
            || matches!(
                cause.downcast_ref(),
                Some(
                    RunError::NoTime { .. }
                        | RunError::NoArrival { .. }
                        | RunError::EventLimit { .. }
                )
            )
    });
    if wrong_input { WRONG_INPUT } else { FAILED }
}

fn schema(of: Files) -> anyhow::Result<u8> {
    let schema = match of {
        Files::Scenario => Scenario::json_schema(),
        Files::Experiment => Experiment::json_schema(),
        Files::Results => columns::schema(),
    };
    let mut text = serde_json::to_vec_pretty(&schema)?;
    text.push(b'\n');
    print(&text)?;
    Ok(DONE)
}

/// Writes to standard output; a reader that has gone away is no failure.
fn print(text: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// A flag that Ctrl-C sets. A second Ctrl-C ends the program at once.
fn stop_on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

/// A word of a shell's command.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A progress bar over `total` units, shown on a terminal after a second.
fn progress(total: u64, unit: &str, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template(&format!(
        "{{bar:30}} {{pos}}/{{len}} {unit}  {{per_sec}}  {{eta}} left"
    ));
    if let Ok(style) = style {
        bar.set_style(style);
    }
    if !quiet {
        let later = bar.downgrade();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            if let Some(bar) = later.upgrade()
                && !bar.is_finished()
            {
                // Draws nothing where standard error is no terminal.
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_millis(200));
            }
        });
    }
    bar
}

/// A pool of so many threads; all cores where the number is not given.
fn pool(threads: Option<u16>) -> anyhow::Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .build()
        .context("cannot start threads")
}
