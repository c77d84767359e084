//! One connection to a master daemon.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;

/// What ends a message; it occurs in no JSON text.
const END: u8 = 3;

/// How much patience there is with a daemon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long connecting may take.
    pub(super) connect: Duration,
    /// How long an answer may take from the request to its last byte.
    pub(super) answer: Duration,
    /// Longer answers are refused.
    pub(super) most_bytes: usize,
}

/// The largest clusters' answers are a tenth of what is accepted.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(30), answer: Duration::from_mins(3), most_bytes: 1 << 30 };

/// Why a call failed.
#[derive(Debug, Error)]
pub enum LuxiError {
    /// Nobody listens there.
    #[error("cannot connect to {path}: {source}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection broke or took too long.
    #[error("{method}: {source}")]
    Transfer {
        /// What was called.
        method: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The daemon closed the connection before it had answered.
    #[error("{0}: the connection was closed before the answer was complete")]
    CutOff(&'static str),
    /// The answer did not come, or not to its end, in time.
    #[error("{method}: no complete answer within {limit:?}")]
    TimedOut {
        /// What was called.
        method: &'static str,
        /// How long it may take.
        limit: Duration,
    },
    /// The answer is longer than any real one.
    #[error("{method}: the answer is longer than {limit} bytes")]
    TooLong {
        /// What was called.
        method: &'static str,
        /// How long it may be.
        limit: usize,
    },
    /// The answer is no message of this protocol.
    #[error("{method}: the answer cannot be read: {source}")]
    Malformed {
        /// What was called.
        method: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// The daemon refused.
    #[error("{}", refusal(.0))]
    Refused(Value),
}

#[derive(Deserialize)]
struct Answer {
    success: bool,
    #[serde(default)]
    result: Value,
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    limits: Limits,
    /// What was read beyond the last answer.
    ahead: Vec<u8>,
}

impl Client {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> Result<Self, LuxiError> {
        Self::connect_within(path, LIMITS)
    }

    pub(super) fn connect_within(path: &Path, limits: Limits) -> Result<Self, LuxiError> {
        let connect = || -> io::Result<UnixStream> {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            // On a Unix socket this bounds the wait for a place in the daemon's queue as well.
            socket.set_write_timeout(Some(limits.connect))?;
            socket.connect(&SockAddr::unix(path)?)?;
            socket.set_write_timeout(Some(limits.answer))?;
            Ok(UnixStream::from(std::os::fd::OwnedFd::from(socket)))
        };
        let stream = connect().map_err(|source| LuxiError::Connect { path: path.to_owned(), source })?;
        Ok(Self { stream, limits, ahead: Vec::new() })
    }

    /// Calls `method` and waits for its result. `arguments` is a JSON list, as a value or as text: a text keeps
    /// the order of keys.
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

    /// One message, without its end. A daemon that sends a byte now and then does not prolong the wait.
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

/// The daemon's reason in a person's words, as far as it is one of those it usually gives.
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
