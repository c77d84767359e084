//! Connections: limits on their number, and timeouts for inactive clients.
//!
//! ```text
//! TCP ─► place ─► patient ─► (TLS) ─► greeted ─► HTTP
//! ```
//!
//! A connection takes a place before any byte is read from it ([`places`]). It is closed if the client reads
//! nothing of a response ([`patient`]), or doesn't reveal its HTTP version in time ([`greeted`]). The HTTP
//! library limits time and size of heads and bodies after that.

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

/// Gives each connection a place, and closes it if writes stall.
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
        // Rejected connections get no response, because the client may never read it.
        std::future::ready(place.map(|place| (Patient::new(stream, self.patience, place), service)))
    }
}

/// Limits the time until a connection's HTTP version is known, after TLS.
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
