//! `harep`: repairs broken instances as far as tags allow, and records repairs in tags (HT-harep).
//!
//! The submodules interpret tags and choose repairs without a daemon or a clock. This module queries the
//! daemon, submits jobs and prints.

mod date;
mod history;
mod policy;
mod problem;
mod record;

use std::collections::BTreeMap;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use cluster::Cluster;
use thiserror::Error;
use uuid::Uuid;

use self::history::{History, State, TagChange, Unfinished};
use self::policy::{RepairPolicy, RepairType};
use self::record::{Record, RepairResult};
use crate::execute::{
    Annotation, Clock, Daemon, DaemonError, JobId, JobStatus, LuxiDaemon, SystemClock, wait,
};
use crate::frame;
use crate::io::{Io, SUCCESS};
use crate::json::write::list;
use crate::opcode::{OpCode, Tagged};
use crate::options::{LuxiSocket, Options, Program};
use crate::report::shown;
use crate::source::{self, SourceError};

#[derive(Debug, Error)]
enum HarepError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("when parsing auto-repair tags: An unfinished repair was found in instance {instance}: {source}")]
    Unfinished { instance: String, source: Unfinished },
    #[error("could not check job status: {0}")]
    Status(#[source] DaemonError),
    #[error("Job submission error: {0}")]
    Submission(#[source] DaemonError),
    #[error("The following jobs failed: {}", failures(.0))]
    Failed(Vec<(JobId, JobStatus)>),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

fn failures(jobs: &[(JobId, JobStatus)]) -> String {
    let jobs: Vec<String> = jobs.iter().map(|(id, status)| format!("{id}=>{}", status.name())).collect();
    jobs.join(", ")
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Harep, args, io, repair_all, |error| matches!(error, HarepError::Output(_)))
}

fn repair_all(options: &Options, io: &mut Io<'_>) -> Result<u8, HarepError> {
    // Only a master daemon knows which nodes and instances are broken, so it's queried even without `-L`.
    let socket = options.luxi.clone().unwrap_or(LuxiSocket::Default);
    let daemon = LuxiDaemon::new(source::luxi_path(&socket));
    let options = &Options { luxi: Some(socket), ..options.clone() };
    let cluster = source::load(options, io)?;
    let mut histories = Vec::with_capacity(cluster.instances.len());
    for instance in &cluster.instances {
        let unfinished = |source| HarepError::Unfinished { instance: instance.name.clone(), source };
        histories.push(History::from_tags(&instance.tags).map_err(unfinished)?);
    }
    let mut run = Run { cluster: &cluster, options, daemon, clock: SystemClock, out: &mut *io.out };
    for (index, history) in histories.iter_mut().enumerate() {
        run.conclude(&cluster.instances[index].name, history)?;
    }
    for (index, history) in histories.iter_mut().enumerate() {
        run.repair(index, history)?;
    }
    let mut counts: BTreeMap<State, usize> = BTreeMap::new();
    for history in &histories {
        *counts.entry(history.state()).or_default() += 1;
    }
    let line = "-".repeat("Instance status count".len());
    writeln!(io.out, "{line}\nInstance status count\n{line}")?;
    for (state, count) in counts {
        writeln!(io.out, "{}: {count}", state.name())?;
    }
    Ok(SUCCESS)
}

/// A run, with its daemon, clock and output.
struct Run<'a> {
    cluster: &'a Cluster,
    options: &'a Options,
    daemon: LuxiDaemon,
    clock: SystemClock,
    out: &'a mut dyn io::Write,
}

impl Run<'_> {
    /// Ends a pending repair if its jobs are finished.
    fn conclude(&mut self, name: &str, history: &mut History) -> Result<(), HarepError> {
        let Some(jobs) = history.pending() else { return Ok(()) };
        let statuses = self.daemon.statuses(jobs).map_err(HarepError::Status)?;
        let before = history.state();
        let now = seconds_since_epoch(self.clock.now());
        let Some(change) = history.conclude(&statuses, now) else { return Ok(()) };
        writeln!(self.out, "Moving {name} from \"{}\" to \"{}\"", before.name(), history.state().name())?;
        self.change_tags(name, change)
    }

    /// Starts the repair that an instance needs, if its policy allows it.
    fn repair(&mut self, index: usize, history: &mut History) -> Result<(), HarepError> {
        let instance = &self.cluster.instances[index];
        let Some(kind) = problem::needed(self.cluster, instance) else { return Ok(()) };
        if history.state() != State::Healthy {
            return Ok(());
        }
        let group = self.cluster.group(self.cluster.node(instance.primary).group);
        let now = seconds_since_epoch(self.clock.now());
        let name = &instance.name;
        let (jobs, result) = match RepairPolicy::at(now, [&instance.tags, &group.tags, &self.cluster.tags]) {
            RepairPolicy::Enabled(most) if kind <= most => (self.begin(name, kind)?, None),
            RepairPolicy::Enabled(most) => {
                writeln!(
                    self.out,
                    "Not performing a repair of type {} on {name} because only repairs up to {} are allowed",
                    kind.constant(),
                    most.constant()
                )?;
                (Vec::new(), Some(RepairResult::NotPermitted))
            }
            policy => {
                writeln!(self.out, "Not repairing {name} because it's in state {}", state_of(policy))?;
                return Ok(());
            }
        };
        let now = seconds_since_epoch(self.clock.now());
        let change = history.note(Record::new(kind, Uuid::new_v4().to_string(), now, jobs, result));
        self.change_tags(name, change)
    }

    /// Submits the job of a repair without waiting for it. The next run checks its status.
    fn begin(&mut self, name: &str, kind: RepairType) -> Result<Vec<JobId>, HarepError> {
        writeln!(self.out, "Executing {} repair on {name}", kind.constant())?;
        let jobs = [problem::operations(kind, name, self.options.job_delay)];
        if self.options.dry_run {
            let mut json = String::new();
            list(&mut json, &jobs, |out, job| list(out, job, |out, op| op.write(out)));
            writeln!(self.out, "jobs: {json}")?;
            return Ok(Vec::new());
        }
        let annotation = self.annotation();
        self.daemon.submit(&jobs, &annotation).map_err(HarepError::Submission)
    }

    /// Adds a tag to an instance, then removes the tags it replaces. In this order, the state is never lost.
    fn change_tags(&mut self, name: &str, change: TagChange) -> Result<(), HarepError> {
        let annotation = self.annotation();
        writeln!(self.out, ">>> Adding the following tag to {name}:\n{}", shown(&change.add))?;
        let object = Tagged::Instance(name.to_owned());
        self.complete(OpCode::TagsSet { object: object.clone(), tags: vec![change.add] }, &annotation)?;
        if change.remove.is_empty() {
            return Ok(());
        }
        writeln!(self.out, ">>> Removing the following tags from {name}:")?;
        for tag in &change.remove {
            writeln!(self.out, "{}", shown(tag))?;
        }
        self.complete(OpCode::TagsDel { object, tags: change.remove }, &annotation)
    }

    /// Runs one operation and waits for it. With `--dry-run`, does nothing.
    fn complete(&mut self, op: OpCode, annotation: &Annotation) -> Result<(), HarepError> {
        self.out.flush()?;
        if self.options.dry_run {
            return Ok(());
        }
        let jobs = self.daemon.submit(&[vec![op]], annotation).map_err(HarepError::Submission)?;
        let statuses = wait(&jobs, &mut self.daemon, &mut self.clock).map_err(HarepError::Status)?;
        let mut failed: Vec<_> = jobs.into_iter().zip(statuses).collect();
        failed.retain(|(_, status)| *status != JobStatus::Success);
        if failed.is_empty() { Ok(()) } else { Err(HarepError::Failed(failed)) }
    }

    fn annotation(&self) -> Annotation {
        Annotation::new(Program::Harep, "automated repairs by harep", self.options, self.clock.now())
    }
}

/// The policy that prevents a repair, in the reference's notation.
fn state_of(policy: RepairPolicy) -> String {
    match policy {
        RepairPolicy::NotEnabled => "ArNotEnabled".to_owned(),
        RepairPolicy::SuspendedForever => "ArSuspended Forever".to_owned(),
        RepairPolicy::SuspendedUntil(time) => format!("ArSuspended (Until {})", date::local(time)),
        RepairPolicy::Enabled(most) => format!("ArEnabled {}", most.constant()),
    }
}

fn seconds_since_epoch(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed())
}
