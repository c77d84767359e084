//! Sockets, TLS, and graceful shutdown.

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

/// Maximum size of a request head, in bytes. Heads are short, because data is sent in bodies.
const LONGEST_HEAD: usize = 1 << 16;
/// Maximum number of concurrent requests on an HTTP/2 connection.
const MOST_STREAMS: u32 = 64;

/// Reason why the server can't serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The settings are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address is in use, or not one of this machine's.
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    /// The socket failed.
    #[error("cannot serve: {0}")]
    Io(#[from] std::io::Error),
}

/// Binds the configured address. With port 0, the system chooses the port; the listener has it.
pub fn bind(app: &App) -> Result<TcpListener, ServeError> {
    let address = app.inner.config.listen;
    app.check_address(address)?;
    TcpListener::bind(address).map_err(|error| ServeError::Listen { address, error })
}

/// Serves until `stop` becomes true, then until running requests are answered or the grace period is over.
pub async fn serve(app: App, listener: TcpListener, stop: watch::Receiver<bool>) -> Result<(), ServeError> {
    app.check_address(listener.local_addr()?)?;
    listener.set_nonblocking(true)?;
    let limits = app.inner.config.limits;
    let handle = Handle::new();
    let grace = limits.stop_time;
    // Polled together with the server. If it were a task of its own, a panic would go unnoticed.
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

/// Closes a connection if the next request head is not complete in time. Otherwise a few clients that send a
/// byte now and then could keep every other client out. Also limits the memory for each connection.
fn limit_http(builder: &mut Builder<TokioExecutor>, patience: Duration) {
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(LONGEST_HEAD);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(patience).keep_alive_timeout(patience);
    http2.max_concurrent_streams(MOST_STREAMS).max_header_list_size(LONGEST_HEAD as u32);
    http2.max_send_buf_size(LONGEST_HEAD);
}

async fn stop_later(mut stop: watch::Receiver<bool>, app: App, handle: Handle<SocketAddr>, grace: Duration) {
    // Stop as well if the sender was dropped.
    let _ = stop.wait_for(|stop| *stop).await;
    app.inner.stopping.send_replace(true);
    handle.graceful_shutdown(Some(grace));
}
