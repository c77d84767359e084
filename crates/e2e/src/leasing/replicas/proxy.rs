//! A proxy between a service and its database. Its connections can be cut, stalled and restored.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use chores::listening::Listening;

/// Interval at which a stalled connection checks whether it can continue.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// State of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    /// Forwards all data.
    #[default]
    Whole,
    /// Accepts connections and data, but holds the data back.
    HeldUp,
    /// Closes existing and new connections.
    Cut,
}

/// Forwards TCP connections on a local port to a Unix socket, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    wire: Arc<Wire>,
    address: SocketAddr,
    _listening: Listening<SocketAddr>,
}

#[derive(Debug, Default)]
struct Wire {
    line: Mutex<Line>,
    /// Connections that can still be open.
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts a proxy in front of a Unix socket.
    pub fn before(socket: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on this machine")?;
        let address = listener.local_addr()?;
        let wire = Arc::new(Wire::default());
        let served = Arc::clone(&wire);
        let listening = Listening::start(
            address,
            |address| TcpStream::connect(address).is_ok(),
            move || listener.accept().map(|(stream, _)| stream),
            // If a connection can't be forwarded, it is closed, as if the server were down.
            move |stream| drop(served.serve(stream, &socket)),
        );
        Ok(Self { wire, address, _listening: listening })
    }

    /// The proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, line: Line) {
        *self.wire.line() = line;
        if line == Line::Cut {
            for stream in self.wire.open().drain(..) {
                // It can be closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Line::Cut);
    }
}

impl Wire {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: &Arc<Self>, client: TcpStream, socket: &Path) -> io::Result<()> {
        if *self.line() == Line::Cut {
            return Ok(());
        }
        client.set_nodelay(true)?;
        let server = UnixStream::connect(socket)?;
        self.open().push(client.try_clone()?);
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        let wire = Arc::clone(self);
        thread::spawn(move || {
            wire.pass_on(&from_client, &to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        let wire = Arc::clone(self);
        thread::spawn(move || {
            wire.pass_on(&server, &client);
            let _ = client.shutdown(Shutdown::Both);
        });
        Ok(())
    }

    /// Forwards data in one direction, until one side closes the connection.
    fn pass_on(&self, mut from: impl Read, mut to: impl Write) {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let length = match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            while *self.line() == Line::HeldUp {
                thread::sleep(BETWEEN_LOOKS);
            }
            if *self.line() == Line::Cut || to.write_all(&chunk[..length]).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A proxy to a server that echoes its input.
    fn echo(directory: &Path) -> Proxy {
        let socket = directory.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                thread::spawn(move || io::copy(&mut stream.try_clone().unwrap(), &mut stream));
            }
        });
        Proxy::before(socket).unwrap()
    }

    fn said_back(mut stream: &TcpStream, word: [u8; 4]) -> io::Result<()> {
        stream.write_all(&word)?;
        let mut heard = [0; 4];
        stream.read_exact(&mut heard)?;
        assert_eq!(heard, word);
        Ok(())
    }

    #[test]
    fn a_line_that_is_cut_breaks_connections_off_and_takes_new_ones_once_it_is_mended() {
        let directory = tempfile::tempdir().unwrap();
        let proxy = echo(directory.path());
        let stream = TcpStream::connect(proxy.address()).unwrap();
        said_back(&stream, *b"one.").unwrap();
        proxy.set(Line::Cut);
        assert!(said_back(&stream, *b"two.").is_err());
        proxy.set(Line::Whole);
        said_back(&TcpStream::connect(proxy.address()).unwrap(), *b"more").unwrap();
    }

    #[test]
    fn what_is_said_on_a_line_that_is_held_up_arrives_when_it_is_mended() {
        let directory = tempfile::tempdir().unwrap();
        let proxy = echo(directory.path());
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        said_back(&stream, *b"one.").unwrap();
        proxy.set(Line::HeldUp);
        stream.write_all(b"two.").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut heard = [0; 4];
        assert!(stream.read_exact(&mut heard).is_err(), "it is kept back");
        proxy.set(Line::Whole);
        stream.set_read_timeout(None).unwrap();
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"two.");
    }
}
