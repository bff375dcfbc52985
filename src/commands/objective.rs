//! Metrics, groups and bounds on them, as on the command line.

use pollpace::catalogue;
use pollpace::scenario::checks;
use pollpace::scenario::written::Objective;

use super::Wrong;

/// Is there a metric of this name? `flag` is where it was given.
pub fn metric(flag: &str, name: &str) -> Result<(), Wrong> {
    if catalogue::position(name).is_some() {
        return Ok(());
    }
    Err(Wrong(format!(
        "{flag}: there is no metric \"{name}\": {}",
        checks::metric_meant(name)
    )))
}

/// Is there a group of this name? `flag` is where it was given.
pub fn group(flag: &str, name: &str, groups: &[String]) -> Result<(), Wrong> {
    if groups.iter().any(|group| group == name) {
        return Ok(());
    }
    let known: Vec<&str> = groups.iter().map(String::as_str).collect();
    let help = checks::suggestion(name, &known, "groups");
    Err(Wrong(format!(
        "{flag}: there is no group \"{name}\": {help}"
    )))
}

/// A bound: `completion_latency_p99_ms<=3000`, `tenant.agents:abort_latency_p99_ms<=500`.
pub fn objective(text: &str, groups: &[String]) -> Result<Objective, Wrong> {
    let flag = format!("--objective {text}");
    let found = ["<=", ">="]
        .into_iter()
        .find_map(|op| Some((op, text.split_once(op)?)));
    let Some((operator, (subject, value))) = found else {
        return Err(Wrong(format!(
            "{flag}: write it as in 'completion_latency_p99_ms<=3000'"
        )));
    };
    let bound = value.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let bound = bound.ok_or_else(|| Wrong(format!("{flag}: \"{}\" is no number", value.trim())))?;
    let (over, name) = subject
        .trim()
        .rsplit_once(':')
        .unwrap_or(("fleet", subject.trim()));
    metric(&flag, name)?;
    group(&flag, over, groups)?;
    let upper = operator == "<=";
    Ok(Objective {
        metric: name.into(),
        over: over.into(),
        max: upper.then_some(bound),
        min: (!upper).then_some(bound),
    })
}
