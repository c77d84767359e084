//! Answers questions about clusters. Each question runs in a process of the same program, like the commands
//! `allot hbal`, `drain`, `whatif` and `fit`. So the answers are the same, and any input costs a bounded
//! amount of processor time, memory and output. The process ends when the client disconnects.
//!
//! There are two lanes. Questions with short bodies run first, in slots of their own, each for one [`SLICE`].
//! A question that takes longer restarts in the lane for long bodies, so it never delays quick ones. In each
//! lane, a project has a share of the queue, so the users of one project can't fill it.

mod described;
pub(crate) mod fleet;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ambient::{ChildCommand, Limits, NOT_STARTED, RunningChild};
use api::v1::{AskedCluster, PlacementQuestion, PlacementRequest};
use axum::body::Bytes;
use axum::http::StatusCode;
use leases::project::{ProjectId, UserId};
use leases::text::{Quoted, quoted};
use rustix::process::Signal;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use described::Described;

use crate::config::PlacementConfig;
use crate::error::ApiError;
use crate::rate::Client;
use crate::unanswered::{Asked, Unanswered};

/// Long lane: admitted questions per compute slot, in total and for each project. Questions without a slot
/// wait.
const TAKEN_ON: usize = 8;
const TAKEN_ON_OF_PROJECT: usize = 2;

/// Size in bytes below which a body goes to the short lane.
const SHORT_BYTES: u64 = 100_000;

/// Short lane: number of admitted questions in total and for each project, and of questions computed at a
/// time.
const SHORT_TAKEN_ON: usize = 64;
const SHORT_TAKEN_ON_OF_PROJECT: usize = 16;
const SHORT_AT_ONCE: usize = 4;

/// Time and memory (MiB) of a question in the short lane.
const SLICE: Duration = Duration::from_secs(1);
const SLICE_MEMORY_MIB: u32 = 256;

/// Wall-clock limit of a computation, as a multiple of its processor time.
const WALL_FACTOR: u32 = 3;

/// Maximum length of an answer, in bytes.
const MOST_ANSWERED: u64 = 16 << 20;
/// Maximum length of the captured standard error, in bytes.
const MOST_COMPLAINED: u64 = 1 << 16;

/// Admits questions about clusters and computes the answers.
#[derive(Debug)]
pub(crate) struct Placement {
    config: PlacementConfig,
    /// Allows each user of a project one question at a time.
    by_user: Arc<Unanswered>,
    short: Lane,
    long: Lane,
}

/// A queue and the slots in which its questions are computed.
#[derive(Debug)]
struct Lane {
    by_project: Arc<Unanswered>,
    taken_on: Arc<Semaphore>,
    computed: Semaphore,
}

/// A question's place in the queue of a lane.
struct Queued {
    _of_project: Arc<Asked>,
    _of_all: OwnedSemaphorePermit,
}

impl Lane {
    fn new(taken_on: usize, of_project: usize, at_once: usize) -> Self {
        Self {
            by_project: Unanswered::new(of_project),
            taken_on: Arc::new(Semaphore::new(taken_on)),
            computed: Semaphore::new(at_once),
        }
    }

    fn queue(&self, project: &ProjectId) -> Result<Queued, ApiError> {
        let of_all = Arc::clone(&self.taken_on).try_acquire_owned().ok();
        // One key for all users of the project.
        let project = Client::User(UserId(String::new()), project.clone());
        let queued = self.by_project.ask(project).zip(of_all);
        let queued = queued.map(|(of_project, of_all)| Queued { _of_project: of_project, _of_all: of_all });
        queued.ok_or_else(ApiError::too_many_at_once)
    }
}

/// An admitted question. It leaves the queue when dropped.
pub(crate) struct TakenOn {
    project: ProjectId,
    is_short: bool,
    queued: Queued,
    _own: Arc<Asked>,
}

impl Placement {
    pub fn new(config: PlacementConfig) -> Self {
        let at_once = config.at_once.clamp(1, Semaphore::MAX_PERMITS / TAKEN_ON);
        Self {
            config,
            by_user: Unanswered::new(1),
            short: Lane::new(SHORT_TAKEN_ON, SHORT_TAKEN_ON_OF_PROJECT, SHORT_AT_ONCE),
            long: Lane::new(at_once * TAKEN_ON, at_once * TAKEN_ON_OF_PROJECT, at_once),
        }
    }

    pub fn clusters(&self) -> impl Iterator<Item = &String> {
        self.config.clusters.keys()
    }

    /// Maximum length of a body with a cluster, in bytes.
    pub fn cluster_bytes(&self) -> usize {
        self.config.cluster_bytes
    }

    /// Admits a question before its body is read, so the number of waiting questions is bounded. Rejects it
    /// if the queue is full. `bytes` is the declared length of the body, `None` if it isn't declared.
    pub fn take_on(&self, user: UserId, project: ProjectId, bytes: Option<u64>) -> Result<TakenOn, ApiError> {
        let client = Client::User(user, project.clone());
        let own = self.by_user.ask(client).ok_or_else(ApiError::too_many_at_once)?;
        let is_short = bytes.is_some_and(|bytes| bytes < SHORT_BYTES);
        let queued = if is_short { &self.short } else { &self.long }.queue(&project)?;
        Ok(TakenOn { project, is_short, queued, _own: own })
    }

    /// Computes the answer: the JSON document that the command prints.
    pub async fn answer(
        &self,
        question: PlacementQuestion,
        request: &PlacementRequest,
        mut taken_on: TakenOn,
    ) -> Result<Bytes, ApiError> {
        let Some(program) = &self.config.program else {
            let message = "This service answers no questions about clusters";
            return Err(ApiError::new(StatusCode::NOT_FOUND, message));
        };
        let named = match &request.cluster {
            AskedCluster::Named(name) => Some(self.config.clusters.get(name).ok_or_else(|| {
                let message = format!("Malformed parameter cluster: there is no {}", Quoted(name));
                ApiError::new(StatusCode::BAD_REQUEST, message)
            })?),
            _ => None,
        };
        let command = |directory: &Described, memory_mib: u32| {
            let source = named.cloned().unwrap_or_else(|| directory.source(&request.cluster));
            Self::command(program, self.limits(memory_mib), question, request, &source, directory)
        };
        let memory_mib = self.config.memory_mib;
        let mut described = None;
        if taken_on.is_short {
            let Ok(turn) = self.short.computed.acquire().await else { return Err(ApiError::internal()) };
            let directory = described.insert(Described::new(&request.cluster).await?);
            let ended = Self::run(command(directory, memory_mib.min(SLICE_MEMORY_MIB)), SLICE).await?;
            drop(turn);
            match ended {
                Some(ended) if ended.status.signal().is_none() => {
                    return self.read(question, request, directory, Some(ended));
                }
                _ => taken_on.queued = self.long.queue(&taken_on.project)?,
            }
        }
        let Ok(_turn) = self.long.computed.acquire().await else { return Err(ApiError::internal()) };
        // Each description keeps a file open, and open files are limited. So it is created only after the
        // wait.
        let directory = match described {
            Some(directory) => directory,
            None => Described::new(&request.cluster).await?,
        };
        let ended = Self::run(command(&directory, memory_mib), self.wall()).await?;
        self.read(question, request, &directory, ended)
    }

    /// Wall-clock limit of a computation in the long lane.
    fn wall(&self) -> Duration {
        self.config.compute_time.saturating_mul(WALL_FACTOR)
    }

    fn limits(&self, memory_mib: u32) -> Limits {
        Limits {
            cpu_seconds: self.config.compute_time.as_secs().max(1),
            memory_bytes: u64::from(memory_mib.max(16)) << 20,
        }
    }

    fn command(
        program: &Path,
        limits: Limits,
        question: PlacementQuestion,
        request: &PlacementRequest,
        source: &str,
        directory: &Described,
    ) -> ChildCommand {
        let mut child = ChildCommand::new(program, Some(limits));
        let command = &mut child.command;
        command.arg(question.command()).arg("--json").arg(source).args(&request.options);
        if question == PlacementQuestion::Balance {
            command.arg("--explain");
        }
        if !request.operands.is_empty() {
            command.arg("--").args(&request.operands);
        }
        // The service's environment must not act as options of the question, and relative paths from the
        // client must not lead to files of the service.
        command.env_clear().current_dir(directory.path());
        // Otherwise the program's allocator commits a gigabyte at the start, which counts toward the memory
        // limit.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        child
    }

    /// Runs a command to its end. `None` if it takes longer than `wall`.
    async fn run(command: ChildCommand, wall: Duration) -> Result<Option<Ended>, ApiError> {
        let child = command.spawn().await.map_err(|error| {
            tracing::error!(%error, "a question about a cluster was not begun");
            ApiError::internal()
        })?;
        let ended = tokio::time::timeout(wall, listen(child)).await;
        ended.ok().transpose().map_err(|error| {
            tracing::error!(%error, "a question about a cluster broke off");
            ApiError::internal()
        })
    }

    /// Interprets the outcome. `ended` is `None` if the time ran out.
    fn read(
        &self,
        question: PlacementQuestion,
        request: &PlacementRequest,
        directory: &Described,
        ended: Option<Ended>,
    ) -> Result<Bytes, ApiError> {
        let bad = |message: String| ApiError::new(StatusCode::BAD_REQUEST, message);
        let setting = |error: ApiError, name: &str| {
            error.adding_hint(Some(format!("the operator's setting is placement.{name}")))
        };
        let too_long = [Signal::XCPU, Signal::KILL].map(|signal| Some(signal.as_raw()));
        let ended = ended.filter(|ended| !too_long.contains(&ended.status.signal()));
        let Some(ended) = ended else {
            let seconds = self.config.compute_time.as_secs();
            let wall = self.wall().as_secs();
            let message = format!(
                "The question takes more than {seconds} s of computing, or {wall} s in all: ask about fewer nodes or \
                 instances, or for fewer moves"
            );
            return Err(setting(bad(message), "compute_time"));
        };
        if let Some(signal) = ended.status.signal() {
            if signal == Signal::ABORT.as_raw() {
                let mib = self.config.memory_mib;
                return Err(setting(
                    bad(format!("The question takes more than {mib} MiB of memory")),
                    "memory",
                ));
            }
            tracing::error!(signal, question = question.name(), "a question about a cluster broke off");
            return Err(ApiError::internal());
        }
        if ended.status.code() == Some(NOT_STARTED.into()) {
            let error = complaint(&ended.complained, directory.path());
            tracing::error!(error, "a question about a cluster was not begun");
            return Err(ApiError::internal());
        }
        if ended.said.len() as u64 > MOST_ANSWERED {
            return Err(bad(format!("The answer would be longer than {MOST_ANSWERED} bytes: ask for less")));
        }
        // `drain` and `fit` exit with a status of their own if the answer is no, so any JSON output is an
        // answer.
        if !ended.said.is_empty() && serde_json::from_slice::<IgnoredAny>(&ended.said).is_ok() {
            return Ok(ended.said.into());
        }
        let complaint = complaint(&ended.complained, directory.path());
        if let AskedCluster::Named(name) = &request.cluster
            && complaint.contains("failed to load data")
        {
            // The cluster's address and reply are for the operator only.
            tracing::warn!(cluster = name, error = quoted(&complaint), "a named cluster was not read");
            let message = format!("The cluster {} cannot be read at present", Quoted(name));
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        Err(bad(if complaint.is_empty() { "The question has no answer".to_owned() } else { complaint }))
    }
}

/// Status and output of a finished process.
struct Ended {
    said: Vec<u8>,
    complained: Vec<u8>,
    status: ExitStatus,
}

/// Reads the output of a process until it exits.
async fn listen(mut running: RunningChild) -> std::io::Result<Ended> {
    let child = &mut running.child;
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    tokio::try_join!(hear(out, MOST_ANSWERED + 1, &mut said), hear(err, MOST_COMPLAINED, &mut complained))?;
    let status = child.wait().await?;
    Ok(Ended { said, complained, status })
}

/// Keeps the first `most` bytes. A process that writes more finds its stream closed.
async fn hear(from: Option<impl AsyncRead + Unpin>, most: u64, kept: &mut Vec<u8>) -> std::io::Result<()> {
    if let Some(from) = from {
        from.take(most).read_to_end(kept).await?;
    }
    Ok(())
}

/// Error message of a command as one line, without its warnings about the cluster and without the path of the
/// service's temporary directory.
fn complaint(said: &[u8], directory: &Path) -> String {
    let text = String::from_utf8_lossy(said);
    let text = text.replace(&format!("{}/", directory.display()), "");
    let odd = |line: &&str| line.starts_with("Warning:") || line.starts_with("- ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !odd(line));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("Error: ").unwrap_or(line)).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement() -> Placement {
        Placement::new(PlacementConfig::default())
    }

    fn ask(placement: &Placement, number: usize, project: &str, bytes: Option<u64>) -> Option<TakenOn> {
        placement.take_on(UserId(number.to_string()), ProjectId(project.to_owned()), bytes).ok()
    }

    #[test]
    fn long_bodies_of_many_users_leave_the_queue_of_short_ones_alone() {
        let placement = placement();
        let bytes = |number: usize| [None, Some(SHORT_BYTES), Some(8 << 20)][number % 3];
        let long: Vec<_> =
            (0..16).filter_map(|user| ask(&placement, user, &user.to_string(), bytes(user))).collect();
        assert_eq!(long.len(), TAKEN_ON);
        assert!(ask(&placement, 20, "p", Some(SHORT_BYTES - 1)).is_some_and(|taken_on| taken_on.is_short));
    }

    #[test]
    fn users_of_one_project_have_a_share_of_each_queue() {
        let placement = placement();
        let own: Vec<_> = (0..100).filter_map(|user| ask(&placement, user, "p", None)).collect();
        assert_eq!(own.len(), TAKEN_ON_OF_PROJECT);
        let short: Vec<_> = (100..200).filter_map(|user| ask(&placement, user, "p", Some(10))).collect();
        assert_eq!(short.len(), SHORT_TAKEN_ON_OF_PROJECT);
        assert!(ask(&placement, 200, "q", None).is_some() && ask(&placement, 201, "q", Some(10)).is_some());
        drop((own, short));
        assert!(ask(&placement, 202, "p", None).is_some());
    }
}
