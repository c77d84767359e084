//! Threads that accept connections, for servers that only pretend.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A listening thread; it ends with its owner.
#[derive(Debug)]
pub struct Listening<A> {
    address: A,
    connect: fn(&A) -> bool,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<A> Listening<A> {
    /// Gives all connections to `serve`, one after another. `connect` tells whether a connection to the address
    /// succeeds.
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

    /// Where it listens.
    pub fn address(&self) -> &A {
        &self.address
    }
}

impl<A> Drop for Listening<A> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // It waits for a connection, and now gets one.
        let woken = (self.connect)(&self.address);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            // A server that failed shows as a difference.
            let _ = thread.join();
        }
    }
}
