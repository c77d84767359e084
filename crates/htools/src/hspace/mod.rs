//! `hspace`: computes how many instances fit (HT-hspace).

mod figures;
mod human;
mod machine;
mod show;

use std::io;

use cluster::{Cluster, DiskTemplate, Policy};
use placement::allocate::NoTargets;
use placement::capacity::{self, CapacityOptions, Filled, Ground, Rule, Shape};
use thiserror::Error;

use crate::frame;
use crate::io::{Io, SUCCESS};
use crate::options::{AllocSpec, Options, Program};
use crate::saving::{self, SaveError};
use crate::source::{self, SourceError};
use crate::tables;

use figures::{Resources, Usage};

#[derive(Debug, Error)]
enum HspaceError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error("null list of disk templates received from cluster")]
    NoTemplates,
    #[error("Empty list of specs received from the cluster")]
    NoSpecs,
    #[error("failure during allocation: {0}")]
    NoTargets(#[from] NoTargets),
    #[error("internal inconsistency, allocated ({listed}) != counted ({counted})")]
    Inconsistent { listed: usize, counted: usize },
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hspace, args, io, measure, |error| matches!(error, HspaceError::Output(_)))
}

/// Instance shapes to allocate.
struct Wanted {
    template: DiskTemplate,
    /// Initial shapes of tiered allocation, tried in turn.
    tiered: Vec<Shape>,
    /// Shape of standard allocation.
    standard: Shape,
}

impl Wanted {
    fn new(options: &Options, policy: &Policy) -> Result<Self, HspaceError> {
        let first = policy.disk_templates.first().ok_or(HspaceError::NoTemplates)?;
        let template = options.disk_template.unwrap_or(*first);
        let spindle_use = options.spindle_use.unwrap_or(policy.std.spindle_use);
        let given = |spec: &AllocSpec| Shape {
            memory_mib: spec.memory,
            disk_mib: spec.disk,
            vcpus: spec.cpus,
            spindles: spec.spindles,
            spindle_use,
            template,
            metadata_mib: 0,
        };
        let of_policy = |spec| Shape::of_spec(spec, spindle_use, template);
        Ok(Self {
            template,
            tiered: match &options.tiered_alloc {
                Some(spec) => vec![given(spec)],
                None => policy.minmax.iter().map(|pair| of_policy(&pair.max)).collect(),
            },
            standard: options.standard_alloc.as_ref().map_or_else(|| of_policy(&policy.std), given),
        })
    }
}

/// Result of tiered or standard allocation.
struct Phase {
    /// Nothing was placed because nodes already fail N+1.
    blocked: bool,
    filled: Filled,
    usage: Usage,
}

impl Phase {
    /// Prints and saves a filled cluster as options require. `name` is the phase's name in titles; in lower
    /// case, it's the suffix of the file name.
    fn new(
        name: &str,
        cluster: &Cluster,
        ground: &Ground,
        filled: Filled,
        options: &Options,
        io: &mut Io<'_>,
    ) -> Result<Self, HspaceError> {
        show::allocation_map(cluster, &filled, name, options.verbosity, io)?;
        print_nodes(cluster, options, &format!("{name} allocation"), io)?;
        if let Some(prefix) = &options.save {
            let lower = name.to_lowercase();
            let when = format!("after {lower} allocation");
            saving::save(&saving::whole(cluster), prefix, &lower, &when, io)?;
        }
        Ok(Self { blocked: ground.blocked(), filled, usage: Usage::of(cluster) })
    }
}

fn measure(options: &Options, io: &mut Io<'_>) -> Result<u8, HspaceError> {
    let mut cluster = source::load(options, io)?;
    source::apply_overrides(options, &mut cluster)?;
    let wanted = Wanted::new(options, &cluster.policy)?;
    let capacity = CapacityOptions {
        capacity_checks: !options.no_capacity_checks,
        rule: Rule::Hspace { accept_existing: options.accept_existing_errors },
        independent_groups: options.independent_groups,
        limit: usize::try_from(options.max_length).ok(),
    };
    show::suffix(&cluster, options.verbosity, io)?;
    print_nodes(&cluster, options, "Initial cluster", io)?;
    show::coefficients(&cluster, options.verbosity, io)?;
    let ground = Ground::survey(&mut cluster, wanted.template, &capacity);
    show::ground(&mut cluster, &ground, options, io)?;

    let resources = Resources::of(&cluster);
    let initial = Usage::of(&cluster);
    let report = Report { machine: options.machine_readable, resources, initial };
    report.start(io)?;
    let first = wanted.tiered.first().ok_or(HspaceError::NoSpecs)?;

    let mut filled_cluster = cluster.clone();
    let filled = capacity::tiered(&mut filled_cluster, &ground, &wanted.tiered, &capacity)?;
    let tiered = Phase::new("Tiered", &filled_cluster, &ground, filled, options, io)?;
    report.tiered(first, &tiered, io)?;

    let filled = capacity::fill(&mut cluster, &ground, &wanted.standard, &capacity)?;
    let standard = Phase::new("Standard", &cluster, &ground, filled, options, io)?;
    report.standard(&wanted.standard, &standard, cluster.instances.len(), io)?;
    Ok(SUCCESS)
}

/// Prints results for people or for scripts.
struct Report {
    machine: bool,
    resources: Resources,
    initial: Usage,
}

impl Report {
    fn start(&self, io: &mut Io<'_>) -> Result<(), HspaceError> {
        let text = if self.machine {
            machine::start(&self.resources, &self.initial)
        } else {
            human::start(&self.resources, &self.initial)
        };
        Ok(io.out.write_all(text.as_bytes())?)
    }

    fn tiered(&self, shape: &Shape, phase: &Phase, io: &mut Io<'_>) -> Result<(), HspaceError> {
        let text = if self.machine {
            machine::tiered(&self.resources, &self.initial, shape, phase)
        } else {
            human::tiered(&self.resources, &self.initial, shape, phase)
        };
        Ok(io.out.write_all(text.as_bytes())?)
    }

    /// `listed` is the number of instances in the filled cluster, including forthcoming ones.
    fn standard(
        &self,
        shape: &Shape,
        phase: &Phase,
        listed: usize,
        io: &mut Io<'_>,
    ) -> Result<(), HspaceError> {
        if !self.machine {
            let text = human::standard(&self.resources, &self.initial, shape, phase);
            return Ok(io.out.write_all(text.as_bytes())?);
        }
        io.out.write_all(machine::shape("SPEC", shape).as_bytes())?;
        let counted = phase.usage.instances;
        if listed != counted {
            // Forthcoming instances are listed but not on a node yet. Scripts that read the keys expect this
            // error.
            return Err(HspaceError::Inconsistent { listed, counted });
        }
        let text = machine::standard(&self.resources, &self.initial, phase);
        Ok(io.out.write_all(text.as_bytes())?)
    }
}

fn print_nodes(cluster: &Cluster, options: &Options, title: &str, io: &mut Io<'_>) -> io::Result<()> {
    if let Some(fields) = &options.print_nodes {
        let nodes: Vec<_> = cluster.node_indices().collect();
        let table = tables::node_table(cluster, &nodes, fields);
        write!(io.err, "\n{title} status:\n{table}\n")?;
    }
    Ok(())
}
