//! Test server with preset replies, with or without TLS, that records requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::Limits;

/// Limits that are long enough for an answer on a busy machine.
pub(crate) const PATIENT: Limits =
    Limits { connect: Duration::from_secs(20), total: Duration::from_secs(20), most_bytes: 1 << 20 };

/// Limits for answers that never complete.
pub(crate) const IMPATIENT: Limits = Limits { total: Duration::from_millis(150), ..PATIENT };

/// Reply to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A complete answer with this status and body.
    Document(u16, String),
    /// Raw bytes. Then the connection is closed.
    Bytes(Vec<u8>),
    /// An answer that never ends: one byte every 20 ms.
    Drip,
    /// No answer.
    Silence,
}

/// A server that runs until the process ends.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

pub(crate) struct Identity {
    pub(crate) certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

/// Self-signed certificate for these hosts.
pub(crate) fn identity(hosts: &[&str]) -> Identity {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(hosts).unwrap().self_signed(&key).unwrap();
    Identity { certificate, key }
}

impl Server {
    /// Starts a server without TLS.
    pub(crate) fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::run("127.0.0.1", None, reply)
    }

    /// Starts a server with TLS.
    pub(crate) fn start_tls(
        identity: &Identity,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate.der().clone()], key)
            .unwrap();
        Self::run("127.0.0.1", Some(Arc::new(config)), reply)
    }

    fn run(
        host: &str,
        tls: Option<Arc<ServerConfig>>,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, reply) = (heads.clone(), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, seen, reply, tls) = (stream.unwrap(), seen.clone(), reply.clone(), tls.clone());
                // A client that gives up ends only its own connection.
                thread::spawn(move || match tls {
                    None => serve(stream, &*reply, &seen),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        serve(StreamOwned::<_, TcpStream>::new(connection, stream), &*reply, &seen)
                    }
                });
            }
        });
        Self { port, heads }
    }

    /// Heads of all requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Answers requests on one connection until it's closed.
fn serve(
    mut stream: impl Read + Write,
    reply: &(impl Fn(&str) -> Reply + ?Sized),
    seen: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut head = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8(std::mem::take(&mut head)).ok()?;
        seen.lock().unwrap().push(text.clone());
        match reply(&text) {
            Reply::Document(status, body) => {
                let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
                stream.flush().ok()?;
            }
            Reply::Bytes(bytes) => {
                stream.write_all(&bytes).ok()?;
                stream.flush().ok()?;
                return None;
            }
            Reply::Drip => {
                stream.write_all(b"HTTP/1.1 200 Fine\r\nContent-Length: 1000000\r\n\r\n").ok()?;
                loop {
                    stream.write_all(b" ").ok()?;
                    stream.flush().ok()?;
                    thread::sleep(Duration::from_millis(20));
                }
            }
            Reply::Silence => thread::park(),
        }
    }
}
