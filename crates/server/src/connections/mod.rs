//! Connections: how many there may be, and how long the other side may keep one without doing anything.
//!
//! ```text
//! TCP ─► place ─► patient ─► (TLS) ─► greeted ─► HTTP
//! ```
//!
//! A connection takes a place before anything is read from it ([`places`]). A client that takes none of an answer
//! ([`patient`]), or does not say which version of HTTP it speaks ([`greeted`]), loses it. What comes after that is
//! HTTP's own: heads and bodies have limits of time and size there.

mod greeted;
mod patient;
mod places;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::net::TcpStream;

use self::greeted::Greeted;
use self::patient::Patient;
pub(crate) use self::places::Places;

/// Gives connections their places, and watches what is written to them.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub places: Arc<Places>,
    pub patience: Duration,
}

impl<S> Accept<TcpStream, S> for Seat {
    type Stream = Patient<TcpStream>;
    type Service = S;
    type Future = std::future::Ready<io::Result<(Self::Stream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let place = stream.peer_addr().and_then(|address| {
            self.places.take(address.ip()).ok_or_else(|| io::Error::other("there are too many connections"))
        });
        // Whoever gets none is not answered: that would have to be read, by somebody who may not.
        std::future::ready(place.map(|place| (Patient::new(stream, self.patience, place), service)))
    }
}

/// Watches what a connection begins with, TLS having been taken off.
#[derive(Clone, Debug)]
pub(crate) struct Greet<A> {
    pub inner: A,
    pub patience: Duration,
}

impl<I, S, A> Accept<I, S> for Greet<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
{
    type Stream = Greeted<A::Stream>;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let (accepted, patience) = (self.inner.accept(stream, service), self.patience);
        Box::pin(async move {
            let (stream, service) = accepted.await?;
            Ok((Greeted::new(stream, patience), service))
        })
    }
}
