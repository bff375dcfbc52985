//! `pollpace check`: the scenario as understood.

use clap::Args;

use super::{DONE, ScenarioArgs, print};

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
}

pub fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let scenario = args.scenario.load(&args.scenario.overrides())?;
    let head = format!(
        "# {} as understood, scenario {:016x}\n",
        args.scenario.name(),
        scenario.hash()
    );
    print(format!("{head}{}", scenario.to_toml()).as_bytes())?;
    Ok(DONE)
}
