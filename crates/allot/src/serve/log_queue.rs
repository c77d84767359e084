//! Writes the log from its own thread. If its reader hangs or is gone, or if the disk is full, log lines are
//! lost but requests are still answered.

use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of bytes that wait to be written.
const CAPACITY: usize = 1 << 20;

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(super) struct LogQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    lines: u64,
    /// Lines that were not written and not reported yet.
    dropped: u64,
    writing: bool,
}

impl LogQueue {
    /// Starts the thread. It calls `report` with the number of dropped lines once a write succeeds again.
    pub fn start(to: impl Write + Send + 'static, report: fn(u64)) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let own = Arc::clone(&queue);
        thread::Builder::new().name("log".to_owned()).spawn(move || own.write_forever(to, report))?;
        Ok(queue)
    }

    /// Appends a line, or drops it if too many bytes are waiting.
    pub fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.bytes.len() + line.len() > CAPACITY {
            waiting.dropped += 1;
            return;
        }
        waiting.bytes.extend_from_slice(line);
        waiting.lines += 1;
        drop(waiting);
        self.changed.notify_all();
    }

    /// Waits until all lines are written, up to `limit`.
    pub fn flush(&self, limit: Duration) {
        let unfinished = |waiting: &mut Waiting| waiting.writing || !waiting.bytes.is_empty();
        drop(self.changed.wait_timeout_while(self.waiting(), limit, unfinished));
    }

    fn write_forever(&self, mut to: impl Write, report: fn(u64)) {
        loop {
            let (bytes, lines) = self.take();
            // The thread is never started again, so a panic must not end it.
            let write = AssertUnwindSafe(|| to.write_all(&bytes).and_then(|()| to.flush()));
            let written = panic::catch_unwind(write).unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            let mut waiting = self.waiting();
            waiting.writing = false;
            let mut dropped = 0;
            if written.is_ok() {
                dropped = std::mem::take(&mut waiting.dropped);
            } else {
                waiting.dropped += lines;
            }
            drop(waiting);
            if dropped > 0 {
                let _ = panic::catch_unwind(|| report(dropped));
            }
            self.changed.notify_all();
        }
    }

    fn take(&self) -> (Vec<u8>, u64) {
        let idle = |waiting: &mut Waiting| waiting.bytes.is_empty();
        let mut waiting =
            self.changed.wait_while(self.waiting(), idle).unwrap_or_else(PoisonError::into_inner);
        waiting.writing = true;
        (std::mem::take(&mut waiting.bytes), std::mem::take(&mut waiting.lines))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Blocks each write until the test decides its result.
    struct Told {
        begun: Sender<Vec<u8>>,
        ends: Receiver<io::Result<()>>,
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.begun.send(bytes.to_vec()).expect("the test reads");
            self.ends.recv().expect("the test answers").map(|()| bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_hanging_reader_bounds_the_queue_and_dropped_lines_are_reported_after_a_success() {
        static REPORTED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
        let ((begun, writes), (answer, ends)) = (channel(), channel());
        let queue =
            LogQueue::start(Told { begun, ends }, |lines| REPORTED.lock().expect("no panic").push(lines));
        let queue = queue.expect("a thread");
        queue.push(b"first\n");
        assert_eq!(writes.recv().expect("a write"), b"first\n");
        let line = [b'x'; 1024];
        for _ in 0..1030 {
            queue.push(&line);
        }
        assert_eq!(queue.waiting().bytes.len(), CAPACITY);
        answer.send(Err(io::ErrorKind::BrokenPipe.into())).expect("it waits");
        assert_eq!(writes.recv().expect("a write").len(), CAPACITY);
        assert!(REPORTED.lock().expect("no panic").is_empty(), "nothing was written yet");
        answer.send(Ok(())).expect("it waits");
        queue.push(b"last\n");
        assert_eq!(writes.recv().expect("a write"), b"last\n");
        assert_eq!(*REPORTED.lock().expect("no panic"), [1 + 6]);
        // A hanging thread doesn't keep the process from ending.
        queue.flush(Duration::from_millis(1));
    }

    #[test]
    fn lines_are_written_after_a_write_that_panicked() {
        struct PanicsOnce {
            panicked: bool,
            written: Sender<Vec<u8>>,
        }

        impl Write for PanicsOnce {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                assert!(std::mem::replace(&mut self.panicked, true), "a write panics");
                self.written.send(bytes.to_vec()).expect("the test reads");
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (written, writes) = channel();
        let queue = LogQueue::start(PanicsOnce { panicked: false, written }, |_| {}).expect("a thread");
        queue.push(b"first\n");
        let lost = |waiting: &mut Waiting| waiting.dropped == 0;
        drop(queue.changed.wait_while(queue.waiting(), lost));
        queue.push(b"second\n");
        assert_eq!(writes.recv().expect("a write"), b"second\n");
    }
}
