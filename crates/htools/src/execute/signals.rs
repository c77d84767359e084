//! Signals that stop a run while jobs are running.

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

/// Watches for signals until the program ends. SIGINT stops after the current job set, SIGTERM at once.
#[derive(Debug)]
pub(super) struct Watch {
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    /// Starts a thread that waits for the signals.
    ///
    /// The thread must answer at once, even while the program waits for a daemon and has standard output in
    /// use, so it writes to its own copy of standard output. Earlier output is already there, because
    /// [`super::run`] flushes it.
    pub(super) fn start(announce: bool) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let mut out =
            announce.then(|| io::stdout().as_fd().try_clone_to_owned()).transpose()?.map(File::from);
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        let mut say = move |line: &str| {
            if let Some(out) = &mut out {
                // Stopping must work even if standard output is closed.
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

    /// Whether SIGINT was received.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
