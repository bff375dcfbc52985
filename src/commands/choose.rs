//! `pollpace choose`: the feasible cell of a sweep with the least load, and what stands behind the choice.

use std::path::PathBuf;

use clap::Args;
use pollpace::experiment::choose::{LOAD, choose_by, judge_by};
use pollpace::experiment::store::Store;
use pollpace::report::{Provenance, sweep as report};
use pollpace::scenario::checks;

use super::objective::{metric, objective};
use super::sweep::Kept;
use super::{DONE, NOT_MET, Wrong, print};

#[derive(Args)]
pub struct ChooseArgs {
    /// A folder of results of `pollpace sweep` or `pollpace merge`
    folder: PathBuf,
    /// A bound instead of the scenario's objectives: 'completion_latency_p99_ms<=3000', or 'tenant.agents:abort_latency_p99_ms<=500' (may be repeated)
    #[arg(long = "objective", value_name = "[GROUP:]METRIC<=VALUE")]
    objectives: Vec<String>,
    /// The metric of the fleet that is to be least
    #[arg(long, value_name = "METRIC", default_value = LOAD)]
    least: String,
}

pub fn run(args: &ChooseArgs) -> anyhow::Result<u8> {
    let kept = Kept::read(&args.folder)?;
    let plan = kept.plan()?;
    metric("--least", &args.least)?;
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
    let mut cells = plan.results(&Store::new(&args.folder));
    let missing = cells.iter().filter(|cell| !cell.whole).count();
    if missing > 0 {
        return Err(Wrong(format!(
            "{missing} of {} cells are not finished: run the sweep to its end, or merge the missing parts",
            cells.len()
        ))
        .into());
    }
    judge_by(&plan, &mut cells, &objectives);
    let mut text = report::reasons(&plan, &cells, &objectives, &args.least);
    text.push_str(&format!(
        "\n{}\n",
        Provenance::new(&kept.name, &args.objectives, &plan.base).line()
    ));
    print(text.as_bytes())?;
    Ok(if choose_by(&cells, &args.least).is_some() {
        DONE
    } else {
        NOT_MET
    })
}
