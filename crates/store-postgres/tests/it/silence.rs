//! A server that goes silent, as when its network is cut: no connection ends, and none gets an answer.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use store::{Store, StoreError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use crate::{SERVER, database, name, open};

/// Longer than it takes to find a server silent, and shorter than anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A line to the server that can be cut.
struct Line {
    address: SocketAddr,
    cut: watch::Sender<bool>,
}

impl Line {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let line = Self { address: listener.local_addr().expect("bound"), cut: watch::Sender::new(false) };
        let cut = line.cut.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, cut.clone()));
            }
        });
        line
    }
}

/// The socket that the server listens on.
fn socket() -> PathBuf {
    let url = SERVER.url("any");
    let (_, directory) = url.split_once("?host=").expect("it is on a socket");
    PathBuf::from(directory).join(".s.PGSQL.5432")
}

async fn connect(client: TcpStream, cut: watch::Receiver<bool>) {
    let server = UnixStream::connect(socket()).await.expect("it runs");
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::join!(pass(from_client, to_server, cut.clone()), pass(from_server, to_client, cut));
}

/// Passes on what comes, and waits with it while the line is cut.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut cut: watch::Receiver<bool>,
) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let healed = cut.wait_for(|cut| !cut).await.is_ok();
        if !healed || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_server_that_has_gone_silent_is_told_so_soon() {
    let line = Line::new().await;
    let url = format!("postgres://postgres@{}/{}?sslmode=disable", line.address, name(&database()));
    let store = open(&url.parse().expect("an address")).await;
    store.check().await.expect("the server answers");
    line.cut.send_replace(true);
    let told = tokio::time::timeout(PATIENCE, store.check()).await.expect("it is given up");
    assert!(matches!(told, Err(StoreError::Unavailable(_))), "{told:?}");
    line.cut.send_replace(false);
    store.check().await.expect("the server answers again");
}
