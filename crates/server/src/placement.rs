//! Answers to questions about clusters: each is a process of the program's own, as the commands `allot hbal`, `drain`,
//! `whatif` and `fit` are, so that the answers are the same, and whatever somebody sends costs a bounded share of the
//! machine: processor time, memory, what is written. When the client leaves, the process ends.

pub(crate) mod fleet;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use api::v1::{AskedCluster, PlacementQuestion, PlacementRequest};
use axum::body::Bytes;
use axum::http::StatusCode;
use leases::text::Quoted;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit, setpriority_process};
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::PlacementConfig;
use crate::error::ApiError;
use crate::rate::Client;
use crate::unanswered::{Asked, Unanswered};

/// So many questions are taken on at once, for each that is computed: the others wait.
const TAKEN_ON: usize = 8;

/// Most bytes of an answer.
const MOST_ANSWERED: u64 = 16 << 20;
/// Most bytes of a complaint.
const MOST_COMPLAINED: u64 = 1 << 16;

/// Requests for leases come first.
const NICENESS: i32 = 10;

/// How long a process may take beyond its processor time: a named cluster is asked over the network.
const PATIENCE: Duration = Duration::from_secs(90);

/// Who may ask now, and what is computed.
#[derive(Debug)]
pub(crate) struct Placement {
    config: PlacementConfig,
    /// One question of each user.
    by_user: Arc<Unanswered>,
    taken_on: Arc<Semaphore>,
    computed: Semaphore,
}

/// A question that is taken on, until it is dropped.
pub(crate) struct TakenOn {
    _own: Arc<Asked>,
    _of_all: OwnedSemaphorePermit,
}

impl Placement {
    pub fn new(config: PlacementConfig) -> Self {
        let at_once = config.at_once.clamp(1, Semaphore::MAX_PERMITS / TAKEN_ON);
        Self {
            config,
            by_user: Unanswered::new(1),
            taken_on: Arc::new(Semaphore::new(at_once * TAKEN_ON)),
            computed: Semaphore::new(at_once),
        }
    }

    /// The names of clusters.
    pub fn clusters(&self) -> impl Iterator<Item = &String> {
        self.config.clusters.keys()
    }

    /// The longest body with a cluster.
    pub fn cluster_bytes(&self) -> usize {
        self.config.cluster_bytes
    }

    /// Takes a question on before it is read, so that what waits is bounded; refuses if too many are.
    pub fn take_on(&self, client: Client) -> Result<TakenOn, ApiError> {
        let of_all = Arc::clone(&self.taken_on).try_acquire_owned().ok();
        let taken_on = self.by_user.ask(client).zip(of_all);
        let taken_on = taken_on.map(|(own, of_all)| TakenOn { _own: own, _of_all: of_all });
        taken_on.ok_or_else(ApiError::too_many_at_once)
    }

    /// The answer: a JSON document, as the command prints it.
    pub async fn answer(
        &self,
        question: PlacementQuestion,
        request: &PlacementRequest,
    ) -> Result<Bytes, ApiError> {
        let Some(program) = &self.config.program else {
            let message = "This service answers no questions about clusters";
            return Err(ApiError::new(StatusCode::NOT_FOUND, message));
        };
        let directory = Described::new(&request.cluster).await?;
        let source = match &request.cluster {
            AskedCluster::Named(name) => self.config.clusters.get(name).cloned().ok_or_else(|| {
                let message = format!("Malformed parameter cluster: there is no {}", Quoted(name));
                ApiError::new(StatusCode::BAD_REQUEST, message)
            })?,
            // What the fleet is like has been written down as text.
            AskedCluster::Text(_) | AskedCluster::Fleet => {
                format!("--text-data={}", directory.path().join(TEXT).display())
            }
            AskedCluster::Rapi(_) => format!("--master=file://{}", directory.path().display()),
        };
        let Ok(_turn) = self.computed.acquire().await else { return Err(ApiError::internal()) };
        let mut command = Command::new(program);
        command.arg0("allot").arg(question.command()).arg("--json").arg(source).args(&request.options);
        if question == PlacementQuestion::Balance {
            command.arg("--explain");
        }
        if !request.operands.is_empty() {
            command.arg("--").args(&request.operands);
        }
        // No setting of the service is one of the question, and the directory has no path of the client's.
        command.env_clear().current_dir(directory.path()).kill_on_drop(true);
        // Otherwise the program's allocator has a gigabyte from the beginning, which the bound of its memory counts.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            tracing::error!(%error, program = %program.display(), "a question about a cluster was not begun");
            ApiError::internal()
        })?;
        self.limit(&child)?;
        let time = self.config.compute_time * 4 + PATIENCE;
        let ended = tokio::time::timeout(time, listen(child)).await;
        let ended = ended.unwrap_or_else(|_| Ok(Ended::of_signal(Signal::XCPU))).map_err(|error| {
            tracing::error!(%error, "a question about a cluster broke off");
            ApiError::internal()
        })?;
        self.read(question, request, &directory, ended)
    }

    /// Bounds what the process may take. It begins with as little as to be loaded meanwhile.
    fn limit(&self, child: &Child) -> Result<(), ApiError> {
        let process = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // One that has ended already needs none.
        let Some(process) = process else { return Ok(()) };
        let both = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
        let seconds = self.config.compute_time.as_secs().max(1);
        let time = Rlimit { current: Some(seconds), maximum: Some(seconds + 1) };
        let memory = both(u64::from(self.config.memory_mib.max(16)) << 20);
        let limits = [
            (Resource::Cpu, time),
            (Resource::Data, memory),
            (Resource::Core, both(0)),
            (Resource::Fsize, both(0)),
        ];
        for (resource, limit) in limits {
            match prlimit(Some(process), resource, limit) {
                Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => {
                    tracing::error!(%error, ?resource, "a question about a cluster cannot be limited");
                    return Err(ApiError::internal());
                }
            }
        }
        // Only a courtesy to others.
        let _ = setpriority_process(Some(process), NICENESS);
        Ok(())
    }

    /// What came of it.
    fn read(
        &self,
        question: PlacementQuestion,
        request: &PlacementRequest,
        directory: &Described,
        ended: Ended,
    ) -> Result<Bytes, ApiError> {
        let bad = |message: String| ApiError::new(StatusCode::BAD_REQUEST, message);
        let setting = |error: ApiError, name: &str| {
            error.adding_hint(Some(format!("the operator's setting is placement.{name}")))
        };
        if let Some(signal) = ended.signal {
            if signal == Signal::XCPU.as_raw() || signal == Signal::KILL.as_raw() {
                let seconds = self.config.compute_time.as_secs();
                let message = format!(
                    "The question takes more than {seconds} s of computing: ask about fewer nodes or instances, or for \
                     fewer moves"
                );
                return Err(setting(bad(message), "compute_time"));
            }
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
        if ended.said.len() as u64 > MOST_ANSWERED {
            return Err(bad(format!("The answer would be longer than {MOST_ANSWERED} bytes: ask for less")));
        }
        // `drain` and `fit` say no with a status of their own.
        if !ended.said.is_empty() && serde_json::from_slice::<IgnoredAny>(&ended.said).is_ok() {
            return Ok(ended.said.into());
        }
        let complaint = complaint(&ended.complained, directory.path());
        if let AskedCluster::Named(name) = &request.cluster
            && complaint.contains("failed to load data")
        {
            // Where it is and what it answered is the operator's.
            tracing::warn!(cluster = name, error = complaint, "a named cluster was not read");
            let message = format!("The cluster {} cannot be read at present", Quoted(name));
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        Err(bad(if complaint.is_empty() { "The question has no answer".to_owned() } else { complaint }))
    }
}

/// The name of a text file with a cluster.
const TEXT: &str = "cluster.data";

/// A directory with the description of a cluster, as long as it is needed.
struct Described(tempfile::TempDir);

impl Described {
    async fn new(cluster: &AskedCluster) -> Result<Self, ApiError> {
        let failed = |error: std::io::Error| {
            tracing::error!(%error, "a cluster cannot be written down");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The cluster cannot be written down")
        };
        let directory = tempfile::Builder::new().prefix("allot-cluster-").tempdir().map_err(failed)?;
        let write = async |name: &str, text: &str| {
            tokio::fs::write(directory.path().join(name), text).await.map_err(failed)
        };
        match cluster {
            AskedCluster::Named(_) | AskedCluster::Fleet => {}
            AskedCluster::Text(text) => write(TEXT, text).await?,
            AskedCluster::Rapi(documents) => {
                for (name, text) in documents {
                    write(name, text).await?;
                }
            }
        }
        Ok(Self(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A process that has ended.
struct Ended {
    said: Vec<u8>,
    complained: Vec<u8>,
    signal: Option<i32>,
}

impl Ended {
    fn of_signal(signal: Signal) -> Self {
        Self { said: Vec::new(), complained: Vec::new(), signal: Some(signal.as_raw()) }
    }
}

/// Reads what a process says until it ends.
async fn listen(mut child: Child) -> std::io::Result<Ended> {
    use std::os::unix::process::ExitStatusExt;
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    tokio::try_join!(hear(out, MOST_ANSWERED + 1, &mut said), hear(err, MOST_COMPLAINED, &mut complained))?;
    let status = child.wait().await?;
    Ok(Ended { said, complained, signal: status.signal() })
}

/// Keeps so much of what is said. What says more finds its stream closed.
async fn hear(from: Option<impl AsyncRead + Unpin>, most: u64, kept: &mut Vec<u8>) -> std::io::Result<()> {
    if let Some(from) = from {
        from.take(most).read_to_end(kept).await?;
    }
    Ok(())
}

/// What a command complained of, in a line, without the path that only the service knows, and without what it found odd
/// about the cluster.
fn complaint(said: &[u8], directory: &Path) -> String {
    let text = String::from_utf8_lossy(said);
    let text = text.replace(&format!("{}/", directory.display()), "");
    let odd = |line: &&str| line.starts_with("Warning:") || line.starts_with("- ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !odd(line));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("Error: ").unwrap_or(line)).collect();
    lines.join("; ")
}
