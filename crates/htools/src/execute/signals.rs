//! Being asked to stop, while jobs run.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::io::USAGE;

/// Watches for SIGINT (finish the current set, then stop) and SIGTERM (stop now) until the program ends.
#[derive(Debug)]
pub(super) struct Watch {
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    /// Starts a thread that waits for the signals. It answers at once, even while the program waits for a
    /// daemon, so it has to write by itself, to its own copy of standard output: the program's is in use.
    /// Everything printed before is there already, since [`super::run`] flushes what it prints.
    pub(super) fn start(announce: bool) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let mut out =
            announce.then(|| io::stdout().as_fd().try_clone_to_owned()).transpose()?.map(File::from);
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        let mut say = move |line: &str| {
            if let Some(out) = &mut out {
                // A reader that went away does not make stopping impossible.
                let _ = writeln!(out, "{line}");
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in &mut signals {
                if signal == SIGTERM {
                    say("Double cancel request, exiting now...");
                    process::exit(i32::from(USAGE));
                }
                say("Cancel request registered, will exit at the end of the current job set...");
                flag.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(Self { interrupted })
    }

    /// Whether SIGINT came.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
