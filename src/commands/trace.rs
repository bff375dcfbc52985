//! `pollpace trace`: the story of one task.

use anyhow::bail;
use clap::{Args, ValueEnum};
use pollpace::engine::{self, trace::Follow};
use pollpace::model::Model;
use pollpace::report::trace;

use super::{DONE, ScenarioArgs, print, stop_on_interrupt};

#[derive(Args)]
pub struct TraceArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Which task: the Nth created in the run, or the Nth of the tenant class given
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    task: u64,
    /// Only tasks of this tenant class
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// The replication
    #[arg(long, default_value_t = 0)]
    replication: u32,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// A table
    Table,
    /// CSV, one row per poll or event
    Csv,
}

pub fn run(args: &TraceArgs) -> anyhow::Result<u8> {
    let scenario = args.scenario.load(&args.scenario.overrides())?;
    let model = Model::new(&scenario);
    let tenant = match &args.tenant {
        None => None,
        Some(name) => match model.tenants.iter().position(|t| t.name == *name) {
            Some(at) => Some(at as u16),
            None => {
                let names: Vec<&str> = model.tenants.iter().map(|t| t.name.as_str()).collect();
                return Err(super::Wrong(format!(
                    "there is no tenant \"{name}\"; the tenants are: {}",
                    names.join(", ")
                ))
                .into());
            }
        },
    };
    let follow = Follow {
        tenant,
        number: args.task,
    };
    let outcome = engine::run(
        &model,
        args.replication,
        Some(follow),
        &*stop_on_interrupt()?,
    )?;
    let Some(story) = outcome.story else {
        bail!("the engine told no story")
    };
    let Some((class, member, ordinal, server_class, server)) = story.subject else {
        let of = args
            .tenant
            .as_ref()
            .map_or(String::new(), |t| format!(" of tenant \"{t}\""));
        let found = format!(
            "replication {} creates fewer than {} tasks{of}; ask for an earlier one",
            args.replication, args.task
        );
        return Err(super::Wrong(found).into());
    };
    if args.format == Format::Csv {
        print(&trace::csv(&story))?;
        return Ok(DONE);
    }
    let (tenant, server_class) = (
        &model.tenants[class as usize],
        &model.servers[server_class as usize],
    );
    let head = format!(
        "task {ordinal} of member {} of tenant {}, on server {} of {}, policy {}, replication {}\n",
        member - tenant.first_member,
        tenant.name,
        server - server_class.first,
        server_class.name,
        model.policies[tenant.policy].name,
        args.replication,
    );
    print(format!("{head}{}\n", trace::table(&story)).as_bytes())?;
    Ok(DONE)
}
