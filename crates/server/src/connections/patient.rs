//! Timeout for clients that don't read their responses.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::places::Place;

/// A stream that fails with a timeout if a write makes no progress for `patience`. It holds the connection's
/// place.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Deadline of a blocked write. `None` while writes succeed.
    deadline: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

impl<S> Patient<S> {
    pub fn new(stream: S, patience: Duration, place: Place) -> Self {
        Self { stream, patience, deadline: None, _place: place }
    }

    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let patience = self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::super::Places;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);
    const NEARLY: Duration = Duration::from_secs(29);

    fn pair() -> (Patient<DuplexStream>, DuplexStream) {
        let place = Places::new(1, 1).take(IpAddr::from([192, 0, 2, 1])).expect("a place");
        let (ours, theirs) = duplex(4);
        (Patient::new(ours, PATIENCE, place), theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (mut ours, _theirs) = pair();
        let error = ours.write_all(b"too much").await.expect_err("nobody takes it");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_a_little_now_and_then_is_not() {
        let (mut ours, mut theirs) = pair();
        let taking = tokio::spawn(async move {
            let mut taken = [0; 1];
            for _ in 0..8 {
                tokio::time::sleep(NEARLY).await;
                theirs.read_exact(&mut taken).await.expect("more to come");
            }
            theirs
        });
        ours.write_all(b"too much").await.expect("it is taken");
        taking.await.expect("no panic");
    }
}
