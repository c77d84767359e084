//! Sockets, TLS, and the end.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsAcceptor;
use futures::FutureExt as _;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use thiserror::Error;
use tokio::sync::watch;

use crate::app::App;
use crate::certificates::{Certificates, tls_config};
use crate::config_error::ConfigError;
use crate::connections::{Greet, Seat};
use crate::router::router;

/// Longest head of a request, in bytes. Heads are short; what is sent is in bodies.
const LONGEST_HEAD: usize = 1 << 16;
/// So many requests at once on one connection of HTTP/2.
const MOST_STREAMS: u32 = 64;

/// Why the server does not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The socket broke.
    #[error("cannot serve: {0}")]
    Io(#[from] std::io::Error),
}

/// Takes the address that the settings name. With port 0, the system chooses one: ask the listener.
pub fn bind(app: &App) -> Result<TcpListener, ServeError> {
    let address = app.inner.config.listen;
    app.check_address(address)?;
    TcpListener::bind(address).map_err(|error| ServeError::Listen { address, error })
}

/// Serves until `stop` becomes true, and then until running requests have been answered or their time is up.
pub async fn serve(app: App, listener: TcpListener, stop: watch::Receiver<bool>) -> Result<(), ServeError> {
    app.check_address(listener.local_addr()?)?;
    listener.set_nonblocking(true)?;
    let limits = app.inner.config.limits;
    let handle = Handle::new();
    let grace = limits.stop_time;
    // Runs beside the server. In a task of its own, a panic would go unnoticed.
    let stopping = stop_later(stop, app.clone(), handle.clone(), grace);
    let tls = app.inner.config.tls.as_ref().map(tls_config).transpose()?.map(|tls| {
        let certificates = app.inner.certificates.get_or_init(|| Certificates::new(&tls));
        Certificates::replace(certificates, tls);
        certificates.config().clone()
    });
    let patience = limits.read_time;
    let seat = Seat { places: Arc::clone(&app.inner.places), patience };
    let service = router(app).into_make_service_with_connect_info::<SocketAddr>();
    let mut server = axum_server::from_tcp(listener)?.handle(handle);
    limit_http(server.http_builder(), patience);
    let serving = async {
        if let Some(tls) = tls {
            let inner = RustlsAcceptor::new(tls).handshake_timeout(patience).acceptor(seat);
            server.acceptor(Greet { inner, patience }).serve(service).await
        } else {
            server.acceptor(Greet { inner: seat, patience }).serve(service).await
        }
    };
    tokio::try_join!(serving, stopping.map(Ok))?;
    Ok(())
}

/// Closes connections on which no whole head of a request comes in time: otherwise a few clients that send a
/// byte now and then could keep all others out. And keeps small what is in memory for each of them.
fn limit_http(builder: &mut Builder<TokioExecutor>, patience: Duration) {
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(LONGEST_HEAD);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(patience).keep_alive_timeout(patience);
    http2.max_concurrent_streams(MOST_STREAMS).max_header_list_size(LONGEST_HEAD as u32);
    http2.max_send_buf_size(LONGEST_HEAD);
}

async fn stop_later(mut stop: watch::Receiver<bool>, app: App, handle: Handle<SocketAddr>, grace: Duration) {
    // If nobody is left to say so, that is a stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
    app.inner.stopping.send_replace(true);
    handle.graceful_shutdown(Some(grace));
}
