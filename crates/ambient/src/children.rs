//! Child processes that end with all of their descendants: when nobody waits for them any longer, and with this process,
//! however it ends.
//!
//! A helper starts each of them: the program itself in another mode. Descendants that lose their parents become its
//! children, whatever session or group they are in, so that it finds all of them. The kernel tells it when the thread
//! ends that it was started from, so that thread lasts as long as this process.

use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit, setpriority_process};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The program as which the helper is invoked. Its arguments are the process that it belongs to, limits as
/// [`Limits::to_argument`] writes them or an empty word, then a program with its arguments.
pub const HELPER: &str = "allot-helper";

/// The helper's exit status if a program can't be started, as a shell's is. The reason is on standard error.
pub const NOT_STARTED: u8 = 127;

static HELPER_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Starts all children through a program that is the helper if it is invoked as [`HELPER`]. Without it, only the process
/// groups of children end with them, and nothing ends with this process.
pub fn use_helper(program: PathBuf) {
    // All callers name the program that runs.
    let _ = HELPER_PROGRAM.set(program);
}

/// Resources that a child, and each of its descendants, may take. They write no files and run with low priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Seconds of processor time.
    pub cpu_seconds: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

impl Limits {
    /// Other processes come first.
    const NICENESS: i32 = 10;

    /// As an argument of the helper.
    pub fn to_argument(self) -> String {
        format!("{},{}", self.cpu_seconds, self.memory_bytes)
    }

    /// Reads such an argument.
    pub fn from_argument(text: &str) -> Option<Self> {
        let (cpu, memory) = text.split_once(',')?;
        Some(Self { cpu_seconds: cpu.parse().ok()?, memory_bytes: memory.parse().ok()? })
    }

    /// Limits a process; `None` is this one.
    pub fn apply(self, process: Option<Pid>) -> io::Result<()> {
        let both = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
        let seconds = self.cpu_seconds;
        let limits = [
            (Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds + 1) }),
            (Resource::Data, both(self.memory_bytes)),
            (Resource::Core, both(0)),
            (Resource::Fsize, both(0)),
        ];
        for (resource, limit) in limits {
            match prlimit(process, resource, limit) {
                // A process that has ended needs none.
                Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(io::Error::other(format!("cannot limit {resource:?}: {error}"))),
            }
        }
        // Only a courtesy to others.
        let _ = setpriority_process(process, Self::NICENESS);
        Ok(())
    }
}

/// A child that isn't started yet.
#[derive(Debug)]
pub struct ChildCommand {
    /// To be given arguments, environment, directory and streams.
    pub command: Command,
    limits: Option<Limits>,
    helper: bool,
}

impl ChildCommand {
    /// One that runs a program.
    pub fn new(program: impl AsRef<OsStr>, limits: Option<Limits>) -> Self {
        let Some(helper) = HELPER_PROGRAM.get() else {
            return Self { command: Command::new(program), limits, helper: false };
        };
        let mut command = Command::new(helper);
        command.arg0(HELPER).arg(std::process::id().to_string());
        command.arg(limits.map(Limits::to_argument).unwrap_or_default()).arg(program);
        Self { command, limits, helper: true }
    }

    /// Starts it, or only the helper: see [`NOT_STARTED`].
    pub async fn spawn(self) -> io::Result<RunningChild> {
        let runtime = Handle::current();
        let (tell, started) = oneshot::channel();
        on_lasting_thread(Box::new(move || {
            let _entered = runtime.enter();
            // If nobody waits for the answer any longer, it is dropped, which ends the child.
            let _ = tell.send(self.spawn_here());
        }))?;
        started.await.unwrap_or_else(|_| Err(io::Error::other("the start of a process was given up")))
    }

    fn spawn_here(mut self) -> io::Result<RunningChild> {
        let child = self.command.process_group(0).spawn()?;
        let running = RunningChild { child, helper: self.helper };
        if let (Some(limits), false) = (self.limits, self.helper)
            && let Some(process) = running.process()
        {
            limits.apply(Some(process))?;
        }
        Ok(running)
    }
}

/// A child that runs. Its descendants are killed when it ends, and all of them when this value is dropped.
#[derive(Debug)]
pub struct RunningChild {
    /// To be waited for.
    pub child: Child,
    helper: bool,
}

impl RunningChild {
    /// Its number, until it was waited for: then the number may be another's.
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id()?.cast_signed())
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        if let Some(process) = self.process() {
            // The helper kills the others, and then ends.
            let signal = if self.helper { Signal::TERM } else { Signal::KILL };
            // It fails if there is none of them any more.
            let _ = kill_process_group(process, signal);
        }
    }
}

type Task = Box<dyn FnOnce() + Send>;

/// Runs tasks, one after another, on a thread that lasts as long as this process.
fn on_lasting_thread(task: Task) -> io::Result<()> {
    static TASKS: Mutex<Option<Sender<Task>>> = Mutex::new(None);
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = match &mut *tasks {
        Some(sender) => sender,
        none => {
            let (sender, receiver) = mpsc::channel::<Task>();
            std::thread::Builder::new().name("children".to_owned()).spawn(move || {
                for task in receiver {
                    // If the thread ended, all helpers would.
                    let _ = catch_unwind(AssertUnwindSafe(task));
                }
            })?;
            none.insert(sender)
        }
    };
    sender.send(task).map_err(|_| io::Error::other("the thread that starts processes has ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        let limits = Limits { cpu_seconds: 20, memory_bytes: 1 << 30 };
        assert_eq!(Limits::from_argument(&limits.to_argument()), Some(limits));
        assert_eq!(Limits::from_argument(""), None);
    }
}
