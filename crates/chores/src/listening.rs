//! Threads that accept connections, for fake servers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A listening thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Listening<A> {
    address: A,
    connect: fn(&A) -> bool,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<A> Listening<A> {
    /// Passes connections to `serve`, one after another. `connect` tries to connect to the address and
    /// returns whether that succeeds.
    pub fn start<S>(
        address: A,
        connect: fn(&A) -> bool,
        accept: impl Fn() -> io::Result<S> + Send + 'static,
        serve: impl Fn(S) + Send + 'static,
    ) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = thread::spawn(move || {
            while let Ok(stream) = accept() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                serve(stream);
            }
        });
        Self { address, connect, over, thread: Some(thread) }
    }

    pub fn address(&self) -> &A {
        &self.address
    }
}

impl<A> Drop for Listening<A> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread, which waits for a connection.
        let woken = (self.connect)(&self.address);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            // A panic of the server shows up as a difference in the test.
            let _ = thread.join();
        }
    }
}
