//! The loop: observe, heal, plan, commit, carry out, and again.
//!
//! A cycle ([`Execution::cycle`]) decides and hands out tasks: steps, looks at the fleet, and what may take long. Each is
//! carried out on its own ([`Execution::perform`]) and what came of it is noted ([`Execution::note`]) for the next cycle. A
//! cycle itself never waits for the fleet. So a slow step, or a fleet that is slow to say what is there, delays nobody
//! else (W3), and whoever drives the cycles, the loop or a simulation, has every task in its hands. Nothing here remembers
//! what must happen next: a crash at any point costs nothing (W4).

mod adoption;
mod backoff;
pub(crate) mod claimed;
mod claims;
mod cycle;
mod decide;
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
mod passes;
pub(crate) mod pause;
mod plan;
pub(crate) mod progress;
mod rehearsal;
pub(crate) mod sight;
mod steps;
mod tidying;
mod touched;
pub(crate) mod tour;

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

/// How long the loop waits for more after others have committed something, or after a step has ended.
const GATHER: Duration = Duration::from_millis(10);

/// So many cycles at most have the write lock before clients have it.
const MOST_IN_A_ROW: usize = 3;

/// Something that is done on its own, beside the cycles: what the fleet is asked for, and what may take long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Carry out a step.
    Step(ClaimedStep),
    /// Say what is there.
    Look(Look),
    /// Have a host back that was removed.
    Abandon(HostId),
    /// Hand a host to the service again that it does not have any more.
    Adopt(HostId),
    /// Go over what waits, whether it can be had by now.
    Pass,
}

impl Task {
    /// The outcome if carrying the task out panicked: a failure, so that the task is tried again and nothing waits for
    /// its outcome until its time ends.
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

/// A task that was carried out, or not.
#[derive(Clone, Debug)]
pub enum Done {
    /// A step.
    Step(Performed),
    /// A look at the fleet.
    Look(Looked),
    /// A host that was removed was to be had back.
    Abandoned(HostId, Result<Outcome, FleetError>),
    /// A host was to be taken on again.
    Adopted(HostId, Result<Outcome, FleetError>),
    /// It was gone over what waits; whether anything came of it.
    Passed(bool),
}

/// What came of a cycle.
#[derive(Debug)]
pub struct Cycle {
    /// What to carry out now, each on its own.
    pub tasks: Vec<Task>,
    /// What was decided, pass by pass; nothing if nothing could be.
    pub passes: Vec<PassReport>,
    /// When to go through the next cycle, unless something happens before: a task is noted, or something is
    /// changed by a call.
    pub wake_at: Timestamp,
    /// The store did not work, so nothing else was done; changes are no reason to try again earlier.
    pub failed: bool,
    /// There was more to write than a transaction may hold, or more to forget. The next cycle goes on, after clients that
    /// wait for the write lock.
    pub partial: bool,
}

/// The cycles of the loop, and the tasks that they hand out.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Execution<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Has the fleet carry out a task. What came of it is to be [noted](Self::note).
    pub async fn perform(self, task: Task) -> Done {
        match task {
            Task::Step(step) => Done::Step(self.perform_step(step).await),
            Task::Look(look) => Done::Look(self.look(look).await),
            Task::Abandon(host) => Done::Abandoned(host, Hosts::of(self.service).abandon(host).await),
            Task::Adopt(host) => Done::Adopted(host, self.adopt_again(host).await),
            Task::Pass => Done::Passed(self.pass().await),
        }
    }

    /// Notes what came of a task; the next cycle goes on from there.
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

/// The loop: returns when `stop` becomes true, after steps that are running have ended or their time is up. A panic ends
/// one turn and none of the tasks.
pub(crate) async fn run(service: Arc<Service>, mut stop: watch::Receiver<bool>) {
    let _running = Running::new(&service.running);
    let mut tasks = Tasks::of(&service);
    // If nobody is left to say so, that is a stop as well.
    while !*stop.borrow_and_update() && stop.has_changed().is_ok() {
        let turn = AssertUnwindSafe(turn(&service, &mut tasks, &mut stop)).catch_unwind().await;
        if turn.is_err() {
            pause_after_panic(&service, &mut stop).await;
        }
    }
    tasks.end().await;
    if let Err(error) = record_last_outcomes(&service).await {
        tracing::warn!(%error, "step outcomes not recorded, repeating steps");
    }
    Execution::of(&service).record_last_looks().await;
    Execution::of(&service).write_refusals(UNWRITTEN).await;
}

/// Goes through cycles, and waits until there is something for the next one.
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

/// Until a cycle succeeds again, the service isn't ready.
async fn pause_after_panic(service: &Service, stop: &mut watch::Receiver<bool>) {
    service.running.store(false, Ordering::Release);
    // The panic may have come between a commit and the change of the memory.
    service.contradicted.store(true, Ordering::Release);
    let retry_at = service.progress().retry_at(service.now());
    tracing::error!(%retry_at, "loop panicked, retrying");
    tokio::select! {
        biased;
        _ = stop.changed() => {}
        () = service.parts.clock.sleep_until(retry_at) => {}
    }
}

/// Goes through a cycle, and with the same write lock through those that follow from it at once: what starts now does not
/// wait for what clients commit in between. Begins what they hand out.
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

/// Waits for the write lock for a cycle. Meanwhile looks are begun, and what comes of tasks is noted: a lease that starts
/// takes several steps, and what is known of each when the lock is there need not wait for it once more.
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

/// Returns when somebody else has committed something since the last cycle: what we commit ourselves wakes the loop if it
/// matters. If it cannot be said when that is, cycles go on at their own times.
async fn news(service: &Service) {
    while !service.progress().others_committed {
        let known = service.state().revision;
        if let Err(error) = service.parts.store.wait_for_change(known).await {
            tracing::debug!(%error, "store watch failed");
            std::future::pending::<()>().await;
        }
        // It may be our own, which is about to be shown.
        drop(service.memory().await);
        if service.state().revision == known {
            break;
        }
    }
    // Who commits once does so again soon, and one cycle does for all of it.
    tokio::time::sleep(GATHER).await;
}

/// Tasks that were begun and have not been noted.
struct Tasks {
    service: Arc<Service>,
    steps: JoinSet<Done>,
    /// Apart, because nobody waits for these at the end.
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

    /// Waits for a task, and notes it with all others that have ended meanwhile. Never returns while none is under way.
    async fn noted(&mut self) {
        let execution = Execution::of(&self.service);
        tokio::select! {
            biased;
            Some(done) = self.steps.join_next() => note_all(execution, done, &mut self.steps),
            Some(done) = self.others.join_next() => note_all(execution, done, &mut self.others),
            else => std::future::pending().await,
        }
    }

    /// Notes further steps that end within [`GATHER`], because steps that begin together often end together.
    async fn gather(&mut self) {
        let steps = async {
            while !self.steps.is_empty() {
                self.noted().await;
            }
        };
        // Steps that take longer wake the loop when they end.
        let _ = tokio::time::timeout(GATHER, steps).await;
    }

    /// Waits for the steps and gives up the rest.
    async fn end(mut self) {
        self.others.abort_all();
        while let Some(done) = self.steps.join_next().await {
            note_all(Execution::of(&self.service), done, &mut self.steps);
        }
    }
}

/// Notes a task, and with it all others that have ended meanwhile.
fn note_all(execution: Execution<'_>, first: Result<Done, JoinError>, tasks: &mut JoinSet<Done>) {
    let mut next = Some(first);
    while let Some(done) = next {
        match done {
            Ok(done) => execution.note(done),
            // Its time ends, and then it is tried again.
            Err(error) => tracing::error!(%error, "task lost"),
        }
        next = tasks.try_join_next();
    }
}

/// Shows that the loop runs, as long as it does.
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
