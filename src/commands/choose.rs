//! `pollpace choose`: the feasible cell of a sweep with the least load, and what stands behind the choice.

use std::path::PathBuf;

use clap::Args;
use pollpace::catalogue;
use pollpace::experiment::choose::{LOAD, choose_by, judge_by};
use pollpace::experiment::store::Store;
use pollpace::report::{Provenance, sweep as report};
use pollpace::scenario::checks;
use pollpace::scenario::written::Objective;

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
    let metrics = catalogue::names();
    if !metrics.contains(&args.least) {
        let known: Vec<&str> = metrics.iter().map(String::as_str).collect();
        return Err(Wrong(format!(
            "--least: there is no metric \"{}\": {}",
            args.least,
            near(&args.least, &known)
        ))
        .into());
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

fn near(word: &str, known: &[&str]) -> String {
    match pollpace::scenario::diagnostics::nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "metrics are named as in cells.csv".into(),
    }
}

/// A bound as on the command line.
fn objective(text: &str, groups: &[String]) -> Result<Objective, Wrong> {
    let wrong = |why: String| Wrong(format!("--objective {text}: {why}"));
    let found = ["<=", ">="]
        .into_iter()
        .find_map(|op| Some((op, text.split_once(op)?)));
    let Some((operator, (subject, value))) = found else {
        return Err(wrong(
            "write it as in 'completion_latency_p99_ms<=3000'".into(),
        ));
    };
    let bound: f64 = value
        .trim()
        .parse()
        .map_err(|_| wrong(format!("\"{}\" is no number", value.trim())))?;
    let (over, metric) = subject
        .trim()
        .rsplit_once(':')
        .unwrap_or(("fleet", subject.trim()));
    let names = catalogue::names();
    if !names.iter().any(|name| name == metric) {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(wrong(format!(
            "there is no metric \"{metric}\": {}",
            near(metric, &known)
        )));
    }
    if !groups.iter().any(|group| group == over) {
        return Err(wrong(format!(
            "there is no group \"{over}\": the groups are {}",
            groups.join(", ")
        )));
    }
    let upper = operator == "<=";
    Ok(Objective {
        metric: metric.into(),
        over: over.into(),
        max: upper.then_some(bound),
        min: (!upper).then_some(bound),
    })
}
