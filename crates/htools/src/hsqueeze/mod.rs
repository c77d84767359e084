//! `hsqueeze`: finds nodes to power off, or to power on when capacity is short (HT-hsqueeze).

mod show;

use std::io;

use cluster::Cluster;
use placement::jobs::job_sets;
use placement::squeeze::{self, Action, Plan, SqueezeOptions};
use thiserror::Error;

use crate::commands;
use crate::execute::{self, ExecuteError, JobSet};
use crate::frame;
use crate::io::{Io, SUCCESS};
use crate::options::{Options, Program};
use crate::saving::{self, SaveError};
use crate::source::{self, SourceError};

#[derive(Debug, Error)]
enum HsqueezeError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hsqueeze, args, io, squeeze, |error| {
        matches!(
            error,
            HsqueezeError::Output(_)
                | HsqueezeError::Save(SaveError::Output(_))
                | HsqueezeError::Execute(ExecuteError::Output(_))
        )
    })
}

fn squeeze(options: &Options, io: &mut Io<'_>) -> Result<u8, HsqueezeError> {
    let mut cluster = source::load(options, io)?;
    if let Some(prefix) = &options.save {
        saving::save(&saving::whole(&cluster), prefix, "original", "before hsqueeze run", io)?;
    }
    if options.verbosity > 1 {
        show::candidates(&cluster, io)?;
    }
    let wanted = SqueezeOptions {
        minimal_resources: options.minimal_resources,
        target_resources: options.target_resources,
        count_offline: !options.ignore_offline,
    };
    let plan = squeeze::squeeze(&mut cluster, &wanted);
    show::plan(&cluster, &plan, options, io)?;
    print_commands(&cluster, &plan, options, io)?;
    if options.exec && plan.action != Action::Nothing {
        let (what, sets) = jobs(&cluster, &plan);
        execute::carry_out(Program::Hsqueeze, &what, &sets, options, io)?;
    }
    if let Some(prefix) = &options.save {
        let when = match plan.action {
            Action::SwitchOn { .. } => "after hsqueeze expansion",
            Action::SwitchOff => "after hsqueeze run",
            Action::Nothing => "after hsqueeze doing nothing",
        };
        saving::save(&saving::whole(&cluster), prefix, "squeezed", when, io)?;
    }
    Ok(SUCCESS)
}

/// Description of the plan, and its job sets. Nodes are powered on before the moves, or off after them.
fn jobs(cluster: &Cluster, plan: &Plan) -> (String, Vec<JobSet>) {
    let mut moves = execute::moves(cluster, &job_sets(cluster, &plan.steps), "Moving");
    let count = plan.nodes.len();
    if plan.action == Action::SwitchOff {
        moves.extend(execute::switch_off(cluster, &plan.nodes));
        return (format!("condensing by {count} nodes"), moves);
    }
    moves.insert(0, execute::switch_on(cluster, &plan.nodes));
    (format!("expanding by {count} nodes"), moves)
}

fn print_commands(
    cluster: &Cluster,
    plan: &Plan,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<(), HsqueezeError> {
    let Some(where_to) = &options.print_commands else { return Ok(()) };
    let lines = show::commands(cluster, plan);
    let mut script = commands::script(&lines);
    if plan.action == Action::Nothing {
        // The reference omits the final newline of this line.
        script.pop();
    }
    Ok(commands::print(where_to, "Commands to run:", &lines, &script, io)?)
}
