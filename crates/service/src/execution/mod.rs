//! The loop: observe, heal, plan, commit, carry out, and again.
//!
//! A cycle ([`Execution::cycle`]) decides and hands out tasks: steps, looks at the fleet, and other work that
//! can take long. Each task is carried out on its own ([`Execution::perform`]), and its result is noted
//! ([`Execution::note`]) for the next cycle. A cycle itself never waits for the fleet, so a slow step or a
//! slow observation delays nothing else (W3). The driver of the cycles, which is the loop or a simulation,
//! controls every task. No state here determines the next action, so a crash at any point costs nothing (W4).

mod adoption;
mod backoff;
pub(crate) mod claimed;
mod claims;
mod cycle;
mod decide;
mod dirty_set;
pub(crate) mod draft;
mod fresh;
mod guests;
mod hasten;
mod heard;
mod hearing;
mod housekeeping;
mod look;
pub(crate) mod memos;
mod observe;
mod occupants;
pub(crate) mod pass_cursor;
mod passes;
pub(crate) mod pause;
mod plan;
pub(crate) mod progress;
mod rehearsal;
pub(crate) mod sight;
mod steps;
mod tidying;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet::{FleetError, Outcome};
use futures::FutureExt as _;
use jiff::Timestamp;
use leases::ids::HostId;
use store::StoreError;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

pub use self::draft::PassReport;
pub use self::look::Look;
pub use self::observe::Looked;
pub use self::steps::{ClaimedStep, Performed, StepUnderWay};
use crate::hosts::Hosts;
use crate::refusals::UNWRITTEN;
use crate::service::Service;
use crate::writing::Writer;

/// Time that the loop waits for more events after another service has committed or a step has ended.
const GATHER: Duration = Duration::from_millis(10);

/// Maximum number of consecutive cycles with the write lock before clients get it.
const MOST_IN_A_ROW: usize = 3;

/// Work outside of cycles: requests to the fleet, and decisions that can take long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    Step(ClaimedStep),
    /// Observe the fleet.
    Look(Look),
    /// Return a removed host to the fleet.
    Abandon(HostId),
    /// Take on a host again that the service has lost.
    Adopt(HostId),
    /// Try waiting requests and leases again.
    Pass,
}

impl Task {
    /// Result of a task that panicked: a failure. It lets the task be retried without waiting for its time
    /// limit.
    fn failed(self) -> Done {
        tracing::error!(task = ?self, "task panicked, retrying");
        let error = FleetError::Unavailable("internal error, see the log".to_owned());
        match self {
            Self::Step(step) => Done::Step(Performed { step, answer: Err(error) }),
            Self::Look(look) => Done::Look(Looked::failed(look, error)),
            Self::Abandon(host) => Done::Abandoned(host, Err(error)),
            Self::Adopt(host) => Done::Adopted(host, Err(error)),
            Self::Pass => Done::Passed(false),
        }
    }
}

/// Result of a task.
#[derive(Clone, Debug)]
pub enum Done {
    Step(Performed),
    Look(Looked),
    /// Response to returning a removed host.
    Abandoned(HostId, Result<Outcome, FleetError>),
    /// Response to taking on a host again.
    Adopted(HostId, Result<Outcome, FleetError>),
    /// Whether a pass over waiting requests and leases changed anything.
    Passed(bool),
}

/// Result of a cycle.
#[derive(Debug)]
pub struct Cycle {
    /// Tasks to carry out now, independently of each other.
    pub tasks: Vec<Task>,
    /// Reports of the passes; empty if no decision was possible.
    pub passes: Vec<PassReport>,
    /// Time of the next cycle, unless a task is noted or a call changes something before then.
    pub wake_at: Timestamp,
    /// The store failed, so the cycle did nothing. Changes don't trigger an earlier retry.
    pub failed: bool,
    /// There was more to write or to remove than a transaction may hold. The next cycle continues, after
    /// clients that wait for the write lock.
    pub partial: bool,
}

/// Cycles of the loop, and their tasks.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Execution<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Carries out a task. The caller must [note](Self::note) the result.
    pub async fn perform(self, task: Task) -> Done {
        match task {
            Task::Step(step) => Done::Step(self.perform_step(step).await),
            Task::Look(look) => Done::Look(self.look(look).await),
            Task::Abandon(host) => Done::Abandoned(host, Hosts::of(self.service).abandon(host).await),
            Task::Adopt(host) => Done::Adopted(host, self.adopt_again(host).await),
            Task::Pass => Done::Passed(self.pass().await),
        }
    }

    /// Notes the result of a task for the next cycle.
    pub fn note(self, done: Done) {
        {
            let mut progress = self.service.progress();
            progress.told.clear();
            progress.told_of_instances.clear();
        }
        match done {
            Done::Step(performed) => self.note_step(performed),
            Done::Look(looked) => self.note_look(looked),
            Done::Abandoned(host, answer) => Hosts::of(self.service).note_abandoned(host, answer),
            Done::Adopted(host, answer) => self.note_adopted(host, answer),
            Done::Passed(moved) => self.note_pass(moved),
        }
    }
}

/// Runs the loop. Returns after `stop` becomes true and running steps have ended or timed out. A panic ends
/// one turn and leaves all tasks running.
pub(crate) async fn run(service: Arc<Service>, mut stop: watch::Receiver<bool>) {
    let _running = Running::new(&service.running);
    let mut tasks = Tasks::of(&service);
    // A dropped sender also means to stop.
    while !*stop.borrow_and_update() && stop.has_changed().is_ok() {
        let turn = AssertUnwindSafe(turn(&service, &mut tasks, &mut stop)).catch_unwind().await;
        if turn.is_err() {
            pause_after_panic(&service, &mut stop).await;
        }
    }
    // Record now, because this service could lose the recording role before the last steps end.
    Execution::of(&service).record_last_looks().await;
    tasks.end().await;
    if let Err(error) = record_last_outcomes(&service).await {
        tracing::warn!(%error, "step outcomes not recorded, repeating steps");
    }
    Execution::of(&service).write_refusals(UNWRITTEN).await;
}

/// Runs cycles, then waits for the next event.
async fn turn(service: &Service, tasks: &mut Tasks, stop: &mut watch::Receiver<bool>) {
    let mut cycle = cycles_in_a_row(service, tasks).await;
    Execution::of(service).end_cycle(&mut cycle).await;
    if !cycle.failed {
        service.running.store(true, Ordering::Release);
    }
    tokio::select! {
        biased;
        _ = stop.changed() => {}
        () = tasks.noted() => tasks.gather().await,
        () = service.wake.notified(), if !cycle.failed => {}
        () = news(service), if !cycle.failed => {}
        () = service.parts.clock.sleep_until(cycle.wake_at) => {}
    }
}

/// The service isn't ready until a cycle succeeds again.
async fn pause_after_panic(service: &Service, stop: &mut watch::Receiver<bool>) {
    service.running.store(false, Ordering::Release);
    // The panic might have happened between a commit and the update of memory.
    service.contradicted.store(true, Ordering::Release);
    let retry_at = service.progress().retry_at(service.now());
    tracing::error!(%retry_at, "loop panicked, retrying");
    tokio::select! {
        biased;
        _ = stop.changed() => {}
        () = service.parts.clock.sleep_until(retry_at) => {}
    }
}

/// Runs a cycle, and with the same write lock the cycles that follow immediately. So a lease that starts now
/// doesn't wait for commits of clients in between. Begins the tasks of each cycle.
async fn cycles_in_a_row(service: &Service, tasks: &mut Tasks) -> Cycle {
    let execution = Execution::of(service);
    let writer = writer_meanwhile(service, tasks).await;
    let mut in_a_row = 1;
    loop {
        let mut cycle = execution.cycle_with(writer.as_ref()).await;
        for task in std::mem::take(&mut cycle.tasks) {
            tasks.begin(task);
        }
        if cycle.failed || cycle.partial || cycle.wake_at > service.now() || in_a_row == MOST_IN_A_ROW {
            return cycle;
        }
        in_a_row += 1;
        tasks.begin_looks();
    }
}

/// Waits for the write lock for a cycle. While waiting, begins looks and notes results of tasks. A starting
/// lease takes several steps, and results that arrive before the lock don't have to wait for it once more.
async fn writer_meanwhile<'a>(service: &'a Service, tasks: &mut Tasks) -> Result<Writer<'a>, StoreError> {
    let mut writer = std::pin::pin!(Execution::of(service).writer_for_cycle());
    loop {
        tasks.begin_looks();
        tokio::select! {
            biased;
            () = tasks.noted() => {}
            writer = &mut writer => return writer,
        }
    }
}

async fn record_last_outcomes(service: &Service) -> Result<(), StoreError> {
    let writer = service.loop_writer().await?;
    Execution::of(service).record_outcomes(&writer).await.map(drop)
}

/// Returns when another service has committed something since the last cycle. This service's own commits wake
/// the loop if they matter. If the store can't be watched, never returns, and cycles run at their own times.
async fn news(service: &Service) {
    while !service.progress().others_committed {
        let known = service.state().revision;
        if let Err(error) = service.parts.store.wait_for_change(known).await {
            tracing::debug!(%error, "store watch failed");
            std::future::pending::<()>().await;
        }
        // The change might be our own commit, which memory is about to show.
        drop(service.memory().await);
        if service.state().revision == known {
            break;
        }
    }
    // One commit is often followed by more, and one cycle can handle them together.
    tokio::time::sleep(GATHER).await;
}

/// Tasks in progress, or with results that were not noted.
struct Tasks {
    service: Arc<Service>,
    steps: JoinSet<Done>,
    /// Separate, because the shutdown doesn't wait for them.
    others: JoinSet<Done>,
}

impl Tasks {
    fn of(service: &Arc<Service>) -> Self {
        Self { service: Arc::clone(service), steps: JoinSet::new(), others: JoinSet::new() }
    }

    fn begin(&mut self, task: Task) {
        let tasks = if matches!(task, Task::Step(_)) { &mut self.steps } else { &mut self.others };
        let service = Arc::clone(&self.service);
        tasks.spawn(async move {
            let performed = Execution::of(&service).perform(task.clone());
            AssertUnwindSafe(performed).catch_unwind().await.unwrap_or_else(|_| task.failed())
        });
    }

    fn begin_looks(&mut self) {
        for look in Execution::of(&self.service).looks(self.service.now()) {
            self.begin(Task::Look(look));
        }
    }

    /// Waits for a task to end and notes it, along with all other tasks that have ended by then. Never
    /// returns while no task is running.
    async fn noted(&mut self) {
        let execution = Execution::of(&self.service);
        tokio::select! {
            biased;
            Some(done) = self.steps.join_next() => note_all(execution, done, &mut self.steps),
            Some(done) = self.others.join_next() => note_all(execution, done, &mut self.others),
            else => std::future::pending().await,
        }
    }

    /// Notes further steps that end within [`GATHER`]. Steps that begin together often end together.
    async fn gather(&mut self) {
        let steps = async {
            while !self.steps.is_empty() {
                self.noted().await;
            }
        };
        // Steps that take longer wake the loop when they end.
        let _ = tokio::time::timeout(GATHER, steps).await;
    }

    /// Waits for steps and aborts all other tasks.
    async fn end(mut self) {
        self.others.abort_all();
        while let Some(done) = self.steps.join_next().await {
            note_all(Execution::of(&self.service), done, &mut self.steps);
        }
    }
}

/// Notes a task and all other tasks that have ended by then.
fn note_all(execution: Execution<'_>, first: Result<Done, JoinError>, tasks: &mut JoinSet<Done>) {
    let mut next = Some(first);
    while let Some(done) = next {
        match done {
            Ok(done) => execution.note(done),
            // The task is tried again after its time limit.
            Err(error) => tracing::error!(%error, "task lost"),
        }
        next = tasks.try_join_next();
    }
}

/// Sets the flag while the loop runs.
struct Running<'a>(&'a AtomicBool);

impl<'a> Running<'a> {
    fn new(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
