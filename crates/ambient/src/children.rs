//! Child processes that end together with all of their descendants. They are killed when their [`RunningChild`] is
//! dropped, and when this process ends for any reason.
//!
//! Each child is started by a helper process, which is this program in another mode. The helper adopts descendants
//! whose parents end, even those in other sessions and process groups, so it can find and kill all of them. The kernel
//! signals the helper when the thread that started it ends. So helpers are started from a thread that lasts as long as
//! this process.

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

/// Name under which the program is invoked as the helper. Its arguments are the process ID of the service,
/// limits in the format of [`Limits::to_argument`] or an empty string, and a program with its arguments.
pub const HELPER: &str = "allot-helper";

/// Exit status of the helper if the program can't be started, like a shell's. The reason is on standard error.
pub const NOT_STARTED: u8 = 127;

static HELPER_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Makes `program` the helper of all later children. It must act as the helper when it is invoked as [`HELPER`].
/// Without a helper, only a child's process group is killed with it, and children aren't killed when this process ends.
pub fn use_helper(program: PathBuf) {
    // A second call has no effect: all callers pass the program that is running.
    let _ = HELPER_PROGRAM.set(program);
}

/// Resource limits of a child and of each of its descendants. They also can't write files, and run with low priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub cpu_seconds: u64,
    pub memory_bytes: u64,
}

impl Limits {
    /// Gives other processes priority.
    const NICENESS: i32 = 10;

    pub fn to_argument(self) -> String {
        format!("{},{}", self.cpu_seconds, self.memory_bytes)
    }

    /// Parses the format of [`Self::to_argument`].
    pub fn from_argument(text: &str) -> Option<Self> {
        let (cpu, memory) = text.split_once(',')?;
        Some(Self { cpu_seconds: cpu.parse().ok()?, memory_bytes: memory.parse().ok()? })
    }

    /// Applies the limits to a process; `None` is this process.
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
                // A process that has ended needs no limits.
                Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(io::Error::other(format!("cannot limit {resource:?}: {error}"))),
            }
        }
        // A failure is harmless: the limits apply without a lower priority, too.
        let _ = setpriority_process(process, Self::NICENESS);
        Ok(())
    }
}

/// A child that isn't started yet.
#[derive(Debug)]
pub struct ChildCommand {
    /// Callers add arguments, environment, directory and streams. The program is the helper, if there is one.
    pub command: Command,
    limits: Option<Limits>,
    helper: bool,
}

impl ChildCommand {
    pub fn new(program: impl AsRef<OsStr>, limits: Option<Limits>) -> Self {
        let Some(helper) = HELPER_PROGRAM.get() else {
            return Self { command: Command::new(program), limits, helper: false };
        };
        let mut command = Command::new(helper);
        command.arg0(HELPER).arg(std::process::id().to_string());
        command.arg(limits.map(Limits::to_argument).unwrap_or_default()).arg(program);
        Self { command, limits, helper: true }
    }

    /// Starts the child. With a helper, success only means that the helper was started: see [`NOT_STARTED`].
    pub async fn spawn(self) -> io::Result<RunningChild> {
        let runtime = Handle::current();
        let (tell, started) = oneshot::channel();
        on_lasting_thread(Box::new(move || {
            let _entered = runtime.enter();
            // If the caller no longer waits for the child, the child is dropped and so killed.
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

/// A running child. Its descendants are killed when it ends. The child and its descendants are killed when this value
/// is dropped.
#[derive(Debug)]
pub struct RunningChild {
    /// The process to wait for: the helper, if there is one.
    pub child: Child,
    helper: bool,
}

impl RunningChild {
    /// The process ID; `None` once the process has been waited for, because the ID can then belong to another process.
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id()?.cast_signed())
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        if let Some(process) = self.process() {
            // The helper kills all descendants, and then ends.
            let signal = if self.helper { Signal::TERM } else { Signal::KILL };
            // Fails if no process of the group is left.
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
                    // A panic must not end this thread: the kernel would signal all helpers to end.
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
