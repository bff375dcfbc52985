//! `pollpace gate`: may this policy be deployed?

use clap::{Args, ValueEnum};
use pollpace::engine::RunError;
use pollpace::experiment::gate::{bounds_abort_latency, gate, replications};
use pollpace::report::{Provenance, gate as report};
use pollpace::scenario::units::Duration;
use pollpace::scenario::written::Objective;
use pollpace::scenario::{Scenario, checks};

use super::objective::objective;
use super::{
    DONE, INTERRUPTED, NOT_MET, ScenarioArgs, Wrong, pool, print, progress, stop_on_interrupt,
};

#[derive(Args)]
pub struct GateArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Override the number of replications of each condition
    #[arg(long)]
    replications: Option<u32>,
    /// A median gap below this is a near-tight loop; max(20ms, 2 median round trips) where left out
    #[arg(long, value_name = "DURATION", value_parser = Duration::parse)]
    tight_loop: Option<Duration>,
    /// A bound on an abort latency instead of the scenario's: 'abort_latency_p99_ms<=500', or 'tenant.agents:abort_latency_p99_ms<=500' (may be repeated)
    #[arg(long = "objective", value_name = "[GROUP:]METRIC<=VALUE")]
    objectives: Vec<String>,
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
    /// The verdict with its evidence
    Table,
    /// Everything: all findings, all metrics of all conditions
    Json,
}

pub fn run(args: &GateArgs) -> anyhow::Result<u8> {
    let mut overrides = args.scenario.overrides();
    overrides.extend(args.replications.map(|n| format!("run.replications={n}")));
    let scenario = args.scenario.load(&overrides)?;
    let objectives = objectives(&args.objectives, &scenario)?;
    let stop = stop_on_interrupt()?;
    let bar = progress(replications(&scenario), "replications", args.quiet);
    let put = || {
        gate(&scenario, &objectives, args.tight_loop, &stop, || {
            bar.inc(1)
        })
    };
    let answer = pool(args.threads)?.install(put);
    bar.finish_and_clear();
    let answer = match answer {
        Err(RunError::Interrupted) => {
            tell!("interrupted: there is no verdict from a part of the conditions");
            return Ok(INTERRUPTED);
        }
        answer => answer?,
    };
    if !args.quiet {
        let asked = args.objectives.iter().map(|o| format!("objective {o}"));
        let tight = args.tight_loop.map(|d| format!("tight loop {d}"));
        let said: Vec<String> = overrides.into_iter().chain(asked).chain(tight).collect();
        let provenance = Provenance::new(&args.scenario.name(), &said, &scenario);
        let confidence = scenario.run.confidence.0;
        match args.format {
            Format::Table => print(report::text(&answer, &scenario.title, &provenance).as_bytes())?,
            Format::Json => print(&report::json(
                &answer,
                &scenario.title,
                confidence,
                &provenance,
            ))?,
        }
    }
    Ok(if answer.passes() { DONE } else { NOT_MET })
}

/// The bounds on abort latencies: those given, or else the scenario's.
fn objectives(given: &[String], scenario: &Scenario) -> Result<Vec<Objective>, Wrong> {
    const EXAMPLE: &str = "--objective 'abort_latency_p99_ms<=500'";
    let groups = checks::groups(scenario);
    let mut objectives = Vec::new();
    for text in given {
        let asked = objective(text, &groups)?;
        if !bounds_abort_latency(&asked) {
            return Err(Wrong(format!(
                "--objective {text}: the gate asks for upper bounds on abort latencies only, as in {EXAMPLE}"
            )));
        }
        objectives.push(asked);
    }
    if given.is_empty() {
        let own = scenario.objective.iter();
        objectives.extend(own.filter(|o| bounds_abort_latency(o)).cloned());
    }
    if objectives.is_empty() {
        return Err(Wrong(format!(
            "the scenario says nothing of how long an abort may take, so the gate cannot judge it: add\n\n\
             [[objective]]\nmetric = \"abort_latency_p99_ms\"\nmax = 500\n\nto the scenario, or give {EXAMPLE}"
        )));
    }
    Ok(objectives)
}
