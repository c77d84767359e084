//! Progress of a long search, as a line on a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time before the line appears.
const FIRST: Duration = Duration::from_secs(2);
/// Interval between updates of the line.
const EACH: Duration = Duration::from_secs(1);

/// Shows the elapsed time on standard error until it's dropped, if standard error is a terminal. Don't print
/// while it exists.
#[derive(Debug, Default)]
pub struct Progress(Option<Shown>);

#[derive(Debug)]
struct Shown {
    /// Percent of the work that is done; 0 if unknown.
    percent: Arc<AtomicU32>,
    /// Dropped to end the thread.
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Progress {
    /// Starts the display. `what` is a participle: "Searching".
    pub fn start(what: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let percent = Arc::new(AtomicU32::new(0));
        let (end, ended) = mpsc::channel();
        let shown = Arc::clone(&percent);
        let thread =
            thread::Builder::new().spawn(move || show(what, &shown, &ended, FIRST, &mut io::stderr()));
        Self(thread.ok().map(|thread| Shown { percent, end, thread }))
    }

    /// Updates the share of the work that is done, from 0 to 1.
    pub fn note(&self, share: f64) {
        if let Some(shown) = &self.0 {
            shown.percent.store((share.clamp(0.0, 1.0) * 100.0) as u32, Ordering::Relaxed);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(Shown { end, thread, .. }) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

/// Writes the line each second, and erases it at the end.
fn show(what: &str, percent: &AtomicU32, ended: &Receiver<()>, first: Duration, terminal: &mut dyn Write) {
    let begin = Instant::now();
    let mut wait = first;
    let mut is_shown = false;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let line = line(what, begin.elapsed(), percent.load(Ordering::Relaxed));
        let _ = write!(terminal, "\r{line}\x1b[K");
        let _ = terminal.flush();
        is_shown = true;
        wait = EACH;
    }
    if is_shown {
        let _ = write!(terminal, "\r\x1b[K");
        let _ = terminal.flush();
    }
}

fn line(what: &str, elapsed: Duration, percent: u32) -> String {
    let seconds = elapsed.as_secs();
    let time = if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    };
    let share = if percent == 0 { String::new() } else { format!(", {percent} %") };
    format!("{what} ... {time}{share}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_time_and_the_share() {
        assert_eq!(line("Searching", Duration::from_millis(3_900), 0), "Searching ... 3 s");
        assert_eq!(line("Searching", Duration::from_secs(125), 48), "Searching ... 2 min 5 s, 48 %");
    }

    /// A terminal that ends the search after the first write.
    struct Terminal {
        end: Option<Sender<()>>,
        written: Vec<u8>,
    }

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.end = None;
            Ok(())
        }
    }

    #[test]
    fn the_line_is_erased_at_the_end() {
        let (end, ended) = mpsc::channel();
        let mut terminal = Terminal { end: Some(end), written: Vec::new() };
        show("Searching", &AtomicU32::new(7), &ended, Duration::ZERO, &mut terminal);
        assert_eq!(String::from_utf8_lossy(&terminal.written), "\rSearching ... 0 s, 7 %\x1b[K\r\x1b[K");
    }

    #[test]
    fn a_short_search_shows_nothing() {
        let (end, ended) = mpsc::channel();
        drop(end);
        let mut terminal = Terminal { end: None, written: Vec::new() };
        show("Searching", &AtomicU32::new(7), &ended, FIRST, &mut terminal);
        assert!(terminal.written.is_empty());
    }
}
