//! A connection to a master daemon.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;

/// Byte that ends a message. JSON texts don't contain it.
const END: u8 = 3;

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time limit for connecting.
    pub(super) connect: Duration,
    /// Time limit from the request to the last byte of the answer.
    pub(super) answer: Duration,
    /// Maximum size of an answer.
    pub(super) most_bytes: usize,
}

/// Answers of the largest clusters have a tenth of the maximum size.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(30), answer: Duration::from_mins(3), most_bytes: 1 << 30 };

/// Failed connection or call.
#[derive(Debug, Error)]
pub enum LuxiError {
    /// Connecting failed, for example because no daemon listens at the socket.
    #[error("cannot connect to {path}: {source}")]
    Connect { path: PathBuf, source: io::Error },
    /// The connection broke, or sending took too long.
    #[error("{method}: {source}")]
    Transfer { method: &'static str, source: io::Error },
    /// The daemon closed the connection before the answer was complete.
    #[error("{0}: the connection was closed before the answer was complete")]
    CutOff(&'static str),
    /// The answer was not complete in time.
    #[error("{method}: no complete answer within {limit:?}")]
    TimedOut { method: &'static str, limit: Duration },
    /// The answer exceeds the size limit, which no real answer does.
    #[error("{method}: the answer is longer than {limit} bytes")]
    TooLong {
        method: &'static str,
        /// In bytes.
        limit: usize,
    },
    /// The answer isn't a message of this protocol.
    #[error("{method}: the answer cannot be read: {source}")]
    Malformed { method: &'static str, source: serde_json::Error },
    /// The daemon refused the call, with this reason.
    #[error("{}", refusal(.0))]
    Refused(Value),
}

#[derive(Deserialize)]
struct Answer {
    success: bool,
    #[serde(default)]
    result: Value,
}

/// A connection to a master daemon.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    limits: Limits,
    /// Bytes read beyond the last answer.
    ahead: Vec<u8>,
}

impl Client {
    pub fn connect(path: &Path) -> Result<Self, LuxiError> {
        Self::connect_within(path, LIMITS)
    }

    pub(super) fn connect_within(path: &Path, limits: Limits) -> Result<Self, LuxiError> {
        let connect = || -> io::Result<UnixStream> {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            // On a Unix socket, this also limits the wait for a place in the daemon's queue.
            socket.set_write_timeout(Some(limits.connect))?;
            socket.connect(&SockAddr::unix(path)?)?;
            socket.set_write_timeout(Some(limits.answer))?;
            Ok(UnixStream::from(std::os::fd::OwnedFd::from(socket)))
        };
        let stream = connect().map_err(|source| LuxiError::Connect { path: path.to_owned(), source })?;
        Ok(Self { stream, limits, ahead: Vec::new() })
    }

    /// Calls `method` and waits for its result. `arguments` is a JSON list, as a value or as text; only a
    /// text keeps the order of keys.
    pub fn call(
        &mut self,
        method: &'static str,
        arguments: &(impl Display + ?Sized),
    ) -> Result<Value, LuxiError> {
        let transfer = |source| LuxiError::Transfer { method, source };
        let mut message = format!("{{\"method\":\"{method}\",\"args\":{arguments}}}").into_bytes();
        message.push(END);
        self.stream.write_all(&message).map_err(transfer)?;
        let answer = self.answer(method)?;
        let answer: Answer =
            serde_json::from_slice(&answer).map_err(|source| LuxiError::Malformed { method, source })?;
        if answer.success { Ok(answer.result) } else { Err(LuxiError::Refused(answer.result)) }
    }

    /// Reads one message and drops its end byte. A daemon that sends single bytes doesn't extend the time
    /// limit.
    fn answer(&mut self, method: &'static str) -> Result<Vec<u8>, LuxiError> {
        let transfer = |source| LuxiError::Transfer { method, source };
        let late = || LuxiError::TimedOut { method, limit: self.limits.answer };
        let deadline = Instant::now() + self.limits.answer;
        let mut bytes = std::mem::take(&mut self.ahead);
        let mut seen = 0;
        let mut buffer = vec![0; 1 << 16];
        loop {
            if let Some(at) = bytes[seen..].iter().position(|byte| *byte == END) {
                self.ahead = bytes.split_off(seen + at + 1);
                bytes.pop();
                return Ok(bytes);
            }
            seen = bytes.len();
            if seen > self.limits.most_bytes {
                return Err(LuxiError::TooLong { method, limit: self.limits.most_bytes });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            self.stream.set_read_timeout(Some(left)).map_err(transfer)?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(LuxiError::CutOff(method)),
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(late());
                }
                Err(error) => return Err(transfer(error)),
            }
        }
    }
}

/// The daemon's reason in readable form. Unknown kinds of reasons are printed as they are.
fn refusal(reason: &Value) -> String {
    let kinds = [
        ("resolver_error", "ECodeResolver"),
        ("insufficient_resources", "ECodeNoRes"),
        ("temp_insufficient_resources", "ECodeTempNoRes"),
        ("wrong_input", "ECodeInval"),
        ("wrong_state", "ECodeState"),
        ("unknown_entity", "ECodeNoEnt"),
        ("already_exists", "ECodeExists"),
        ("resource_not_unique", "ECodeNotUnique"),
        ("internal_error", "ECodeFault"),
        ("environment_error", "ECodeEnviron"),
    ];
    let known = || {
        let [Value::String(class), Value::Array(details)] = reason.as_array()?.as_slice() else {
            return None;
        };
        match (class.as_str(), details.as_slice()) {
            ("OpPrereqError", [Value::String(message), Value::String(kind)]) => {
                let kind = kinds.iter().find(|(name, _)| name == kind)?.1;
                Some(format!(
                    "Failure: prerequisites not met for this operation:\n\
                     error type: {kind}, error details:\n{message}"
                ))
            }
            ("OpExecError", [Value::String(message)]) => {
                Some(format!("Failure: command execution error:\n{message}"))
            }
            _ => None,
        }
    };
    known().unwrap_or_else(|| format!("Unhandled Ganeti error: {reason}"))
}
