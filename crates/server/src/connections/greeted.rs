//! Time limit for the first bytes of a connection.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// First bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that fails with a timeout unless the client's first bytes reveal its HTTP version in time. The
/// library that detects the version waits forever, and its own limits apply only after that.
#[derive(Debug)]
pub(crate) struct Greeted<S> {
    stream: S,
    /// `None` once the version is known.
    greeting: Option<Greeting>,
}

#[derive(Debug)]
struct Greeting {
    /// Number of bytes read so far, all of them part of the preface.
    read: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Greeted<S> {
    pub fn new(stream: S, patience: Duration) -> Self {
        let greeting = Greeting { read: 0, deadline: Box::pin(tokio::time::sleep(patience)) };
        Self { stream, greeting: Some(greeting) }
    }
}

impl Greeting {
    /// Whether the version is known after these bytes.
    fn ends_with(&mut self, bytes: &[u8]) -> bool {
        let expected = &PREFACE[self.read..];
        let compared = bytes.len().min(expected.len());
        self.read += compared;
        // At the end of the stream there is no version left to wait for.
        bytes.is_empty() || bytes[..compared] != expected[..compared] || self.read == PREFACE.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Greeted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let Some(greeting) = &mut self.greeting else { return read };
        match read {
            Poll::Ready(Ok(())) => {
                if greeting.ends_with(&buffer.filled()[before..]) {
                    self.greeting = None;
                }
                read
            }
            Poll::Ready(Err(_)) => read,
            Poll::Pending => match greeting.deadline.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Greeted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn pair() -> (Greeted<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(64);
        (Greeted::new(ours, PATIENCE), theirs)
    }

    /// Sends the bytes, three per patience, and then stalls.
    async fn drip(bytes: &'static [u8]) -> io::Result<Vec<u8>> {
        let (mut ours, mut theirs) = pair();
        let dripping = tokio::spawn(async move {
            for byte in bytes {
                tokio::time::sleep(PATIENCE / 3).await;
                if theirs.write_u8(*byte).await.is_err() {
                    break;
                }
            }
            tokio::time::sleep(100 * PATIENCE).await;
        });
        let mut read = Vec::new();
        let mut limited = (&mut ours).take(bytes.len() as u64);
        let result = limited.read_to_end(&mut read).await;
        dripping.abort();
        result.map(|_| read)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_given_up() {
        let (mut ours, _theirs) = pair();
        let error = ours.read_u8().await.expect_err("nothing is said");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_begins_like_http_2_and_does_not_go_on_is_given_up() {
        let error = drip(b"PRI * HTTP").await.expect_err("it takes too long");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_speaks_http_1_is_left_to_it() {
        assert_eq!(drip(b"GET / HTTP/1.1").await.expect("it is left alone"), b"GET / HTTP/1.1");
        assert_eq!(drip(b"PUT / HTTP/1.1").await.expect("it is left alone"), b"PUT / HTTP/1.1");
    }

    #[tokio::test(start_paused = true)]
    async fn the_whole_preface_makes_the_version_clear_however_it_is_cut() {
        for cut in 1..PREFACE.len() {
            let mut greeting = Greeting { read: 0, deadline: Box::pin(tokio::time::sleep(PATIENCE)) };
            assert!(!greeting.ends_with(&PREFACE[..cut]), "{cut}");
            assert!(greeting.ends_with(&[&PREFACE[cut..], b"more"].concat()), "{cut}");
        }
    }
}
