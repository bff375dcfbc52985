//! `pollpace choose`: the feasible cell of a sweep with the least cost, and what stands behind the choice.

use std::path::PathBuf;

use clap::Args;
use pollpace::experiment::choose::judge_by;
use pollpace::experiment::cost::Cost;
use pollpace::experiment::store::Store;
use pollpace::experiment::sweep::Shard;
use pollpace::experiment::worst_hint;
use pollpace::report::Provenance;
use pollpace::scenario::checks;

use super::conclude::{Conclusion, Told};
use super::objective::objective;
use super::sweep::{Bar, Kept};
use super::{Wrong, pool, progress, quoted, stop_on_interrupt};

#[derive(Args)]
pub struct ChooseArgs {
    /// A folder of results of `pollpace sweep` or `pollpace merge`
    folder: PathBuf,
    /// A bound instead of the scenario's objectives: 'completion_latency_p99_ms<=3000', or 'tenant.agents:abort_latency_p99_ms<=500' (may be repeated)
    #[arg(long = "objective", value_name = "[GROUP:]METRIC<=VALUE")]
    objectives: Vec<String>,
    /// What is to be least, instead of what the experiment says: a metric of the fleet, or a weighted sum such as 'tasks_get_rate_mean_per_s + 0.5 * completion_latency_p99_ms'
    #[arg(long, value_name = "COST")]
    least: Option<String>,
    /// Write decision.md, report.html, tables and figures into this folder; that of the results where left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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

pub fn run(args: &ChooseArgs) -> anyhow::Result<u8> {
    let kept = Kept::read(&args.folder)?;
    let mut plan = kept.plan()?;
    if let Some(least) = &args.least {
        let cost: Result<Cost, _> = least.parse();
        plan.cost = cost.map_err(|e| Wrong(format!("--least: {e}")))?;
    }
    let objectives = match &args.objectives[..] {
        [] => plan.base.objective.clone(),
        given => given
            .iter()
            .map(|text| objective(text, &checks::groups(&plan.base)))
            .collect::<Result<_, _>>()?,
    };
    if objectives.is_empty() {
        return Err(Wrong("the scenario has no objectives: give one, as in --objective 'completion_latency_p99_ms<=3000'".into()).into());
    }
    let store = Store::new(&args.folder);
    whole(&plan.results(&store))?;
    // Questions about the worst hints need runs that the sweep may not have made.
    plan.worst_hints |= worst_hint::asked(&objectives) || plan.cost.asks_for_worst_hints();
    let stop = stop_on_interrupt()?;
    let bar = Bar(progress(0, "replications", args.quiet));
    let pool = pool(args.threads)?;
    let mut cells = pool.install(|| plan.run(Shard::WHOLE, &store, &stop, &bar))?;
    judge_by(&plan, &mut cells, &objectives);
    let conclusion = Conclusion {
        plan: &plan,
        cells,
        objectives: &objectives,
        cost: &plan.cost,
        provenance: Provenance::new(&kept.name, &asked(args), &plan.base),
        commands: commands(args, &kept.name),
        store: &store,
        out: args.out.as_ref().unwrap_or(&args.folder),
        png: args.png,
    };
    let told = if args.quiet {
        Told::Nothing
    } else {
        Told::Choice
    };
    pool.install(|| conclusion.conclude(&stop, &bar, told))
}

/// All cells have to be there: a choice from a part is none.
fn whole(cells: &[pollpace::experiment::sweep::CellResult]) -> Result<(), Wrong> {
    let missing = cells.iter().filter(|cell| !cell.whole).count();
    if missing == 0 {
        return Ok(());
    }
    Err(Wrong(format!(
        "{missing} of {} cells are not finished: run the sweep to its end, or merge the missing parts",
        cells.len()
    )))
}

/// What was asked instead of what the experiment says.
fn asked(args: &ChooseArgs) -> Vec<String> {
    let least = args.least.iter().map(|least| format!("least {least}"));
    args.objectives.iter().cloned().chain(least).collect()
}

/// What makes the choice again.
fn commands(args: &ChooseArgs, experiment: &str) -> Vec<String> {
    let folder = quoted(&args.folder.display().to_string());
    let experiment = quoted(experiment);
    let mut choose = format!("pollpace choose {folder}");
    for objective in &args.objectives {
        choose.push_str(&format!(" --objective {}", quoted(objective)));
    }
    if let Some(least) = &args.least {
        choose.push_str(&format!(" --least {}", quoted(least)));
    }
    vec![
        format!("pollpace sweep {experiment} --out {folder}"),
        choose,
    ]
}
