//! `hcheck`: reports faults of a cluster, and which of them balancing would fix (HT-hcheck).

mod health;
mod json;
mod show;

use std::io;

use cluster::Cluster;
use placement::balance::{BalanceOptions, Balancer};
use placement::groups::inhabited;
use thiserror::Error;

use crate::frame;
use crate::io::{FAILURE, Io, SUCCESS};
use crate::options::{Options, Program};
use crate::source::{self, SourceError};
use health::{Scope, health};
use show::Phase;

/// Exit status for faults that balancing can fix.
const NEEDS_BALANCING: u8 = FAILURE;

#[derive(Debug, Error)]
enum HcheckError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hcheck, args, io, check, |error| matches!(error, HcheckError::Output(_)))
}

fn check(options: &Options, io: &mut Io<'_>) -> Result<u8, HcheckError> {
    let mut cluster = source::load(options, io)?;
    source::apply_overrides(options, &mut cluster)?;
    let scope =
        |group| Scope { group, nodes: cluster.nodes_of(group), instances: cluster.instances_of(group) };
    let scopes: Vec<Scope> = inhabited(&cluster).into_iter().map(scope).collect();
    let initial = health(&mut cluster, &scopes, options, None);
    let wanted = initial.needs_balancing && !options.no_simulation;
    if options.json {
        let last = wanted.then(|| {
            balance(&mut cluster, &scopes, options);
            health(&mut cluster, &scopes, options, Some(&initial))
        });
        let checks = !options.no_capacity_checks;
        let document = json::document(&cluster, &scopes, &initial, last.as_ref(), checks)?;
        io.out.write_all(document.as_bytes())?;
        return Ok(if wanted { NEEDS_BALANCING } else { SUCCESS });
    }
    show::introduction(&cluster, &initial, options, io)?;
    show::health(&cluster, &scopes, &initial, Phase::Initial, options, io)?;
    if wanted {
        balance(&mut cluster, &scopes, options);
        let last = health(&mut cluster, &scopes, options, Some(&initial));
        show::health(&cluster, &scopes, &last, Phase::Final, options, io)?;
    } else if options.machine_readable {
        show::health(&cluster, &scopes, &initial, Phase::Final, options, io)?;
    }
    show::end(options, io)?;
    Ok(if wanted { NEEDS_BALANCING } else { SUCCESS })
}

/// Balances every group that isn't well balanced.
fn balance(cluster: &mut Cluster, scopes: &[Scope], options: &Options) {
    for scope in scopes {
        let mut run = Balancer::new(cluster, &scope.nodes, &scope.instances, BalanceOptions::from(options));
        if !run.well_balanced() {
            while run.step().is_some() {}
        }
    }
}
