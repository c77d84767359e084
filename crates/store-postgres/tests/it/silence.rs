//! A server that goes silent, for example because its network is cut: connections stay open without answers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use store::{Store, StoreError};
use store_postgres::PostgresStore;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use crate::{SERVER, database, name, open};

/// Longer than it takes to notice a silent server, and shorter than the time limit of any operation.
const PATIENCE: Duration = Duration::from_mins(1);

/// A line to the server that can be cut.
#[derive(Clone)]
struct Line {
    address: SocketAddr,
    cut: watch::Sender<bool>,
    /// Whether a connection was cut for good because it tried to listen.
    deaf: watch::Sender<bool>,
}

impl Line {
    /// A line on which listening works or not.
    async fn new(listening: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let line = Self { address, cut: watch::Sender::new(false), deaf: watch::Sender::new(false) };
        let connecting = line.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connecting.clone().connect(client, listening));
            }
        });
        line
    }

    /// A store that reaches a new, empty database through the line.
    async fn store(&self) -> Arc<PostgresStore> {
        let url = format!("postgres://postgres@{}/{}?sslmode=disable", self.address, name(&database()));
        open(&url.parse().expect("an address")).await
    }

    async fn connect(self, client: TcpStream, listening: bool) {
        let server = UnixStream::connect(socket()).await.expect("it runs");
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::join!(self.pass(from_client, to_server, listening), self.pass(from_server, to_client, true));
    }

    /// Passes on bytes, and holds them back while the line is cut.
    async fn pass(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, listening: bool) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let bytes = &bytes[..count];
            if !listening && String::from_utf8_lossy(bytes).contains("LISTEN") {
                self.deaf.send_replace(true);
                std::future::pending::<()>().await;
            }
            let healed = self.cut.subscribe().wait_for(|cut| !cut).await.is_ok();
            if !healed || to.write_all(bytes).await.is_err() {
                return;
            }
        }
    }
}

/// The socket that the server listens on.
fn socket() -> PathBuf {
    let url = SERVER.url("any");
    let (_, directory) = url.split_once("?host=").expect("it is on a socket");
    PathBuf::from(directory).join(".s.PGSQL.5432")
}

async fn assert_told(store: &PostgresStore) {
    let told = tokio::time::timeout(PATIENCE, store.check()).await.expect("it is given up");
    assert!(matches!(told, Err(StoreError::Unavailable(_))), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_server_that_has_gone_silent_is_told_so_soon() {
    let line = Line::new(true).await;
    let store = line.store().await;
    store.check().await.expect("the server answers");
    line.cut.send_replace(true);
    assert_told(&store).await;
    line.cut.send_replace(false);
    store.check().await.expect("the server answers again");
}

#[tokio::test(flavor = "multi_thread")]
async fn also_if_it_went_silent_while_it_was_asked_to_tell_of_changes() {
    let line = Line::new(false).await;
    let store = line.store().await;
    store.check().await.expect("the server answers");
    line.deaf.subscribe().wait_for(|deaf| *deaf).await.expect("somebody wants to listen");
    line.cut.send_replace(true);
    assert_told(&store).await;
}
