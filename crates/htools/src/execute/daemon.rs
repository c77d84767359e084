//! Submitting jobs and waiting for them.

use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use thiserror::Error;

use super::annotation::Annotation;
use crate::luxi::{Client, LuxiError};
use crate::opcode::OpCode;

/// How long after its submission a job is asked for first; this doubles from time to time.
const FIRST_POLL: Duration = Duration::from_millis(500);
/// The longest pause between two questions.
const LONGEST_POLL: Duration = Duration::from_secs(15);

/// The number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobId(pub(crate) u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JobId {
    /// Daemons write it as a number, or as a string of digits.
    fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_u64().map(Self),
            Value::String(text) => text.parse().ok().map(Self),
            _ => None,
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobStatus {
    /// Not looked at yet.
    Queued,
    /// For locks.
    Waiting,
    /// Asked to stop, not stopped yet.
    Canceling,
    /// Being worked on.
    Running,
    /// Stopped on request.
    Canceled,
    /// Done.
    Success,
    /// Failed.
    Error,
}

impl JobStatus {
    const ALL: [Self; 7] = [
        Self::Queued,
        Self::Waiting,
        Self::Canceling,
        Self::Running,
        Self::Canceled,
        Self::Success,
        Self::Error,
    ];

    /// The daemon's word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Canceling => "canceling",
            Self::Running => "running",
            Self::Canceled => "canceled",
            Self::Success => "success",
            Self::Error => "error",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the job will not change any more.
    pub(crate) fn finished(self) -> bool {
        matches!(self, Self::Canceled | Self::Success | Self::Error)
    }
}

/// Why a job was not submitted, or its state is unknown.
#[derive(Debug, Error)]
pub(crate) enum DaemonError {
    /// The daemon did not answer, or refused to.
    #[error(transparent)]
    Luxi(#[from] LuxiError),
    /// Some job was refused; those before it run nevertheless.
    #[error("the job was refused: {reason}{}", also(.accepted))]
    Refused {
        /// The daemon's reason.
        reason: String,
        /// What it accepted with the same request.
        accepted: Vec<JobId>,
    },
    /// The answer has not the form that it must have.
    #[error("{method}: unexpected answer {answer}")]
    Unexpected {
        /// What was called.
        method: &'static str,
        /// What came back.
        answer: Value,
    },
    /// The daemon has no such job, or no longer.
    #[error("job {0} is not known")]
    UnknownJob(JobId),
}

fn also(accepted: &[JobId]) -> String {
    match accepted {
        [] => String::new(),
        jobs => format!(" (submitted with it, and not waited for: {})", id_list(jobs)),
    }
}

/// Numbers of jobs, separated by commas.
pub(crate) fn id_list(jobs: &[JobId]) -> String {
    let numbers: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    numbers.join(",")
}

/// A master daemon, as far as jobs go.
pub(crate) trait Daemon {
    /// Connects again, so that a daemon which was restarted during a long wait does no harm.
    fn reconnect(&mut self) -> Result<(), DaemonError>;

    /// Submits jobs; their numbers, in the same order.
    fn submit(&mut self, jobs: &[Vec<OpCode>], annotation: &Annotation) -> Result<Vec<JobId>, DaemonError>;

    /// How far jobs are, in the same order.
    fn statuses(&mut self, jobs: &[JobId]) -> Result<Vec<JobStatus>, DaemonError>;
}

/// Time, as far as waiting goes.
pub(crate) trait Clock {
    /// What time it is.
    fn now(&self) -> SystemTime;

    /// Waits.
    fn sleep(&mut self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&mut self, duration: Duration) {
        thread::sleep(duration);
    }
}

/// Waits until all jobs are finished; asks less and less often.
pub(crate) fn wait(
    jobs: &[JobId],
    daemon: &mut dyn Daemon,
    clock: &mut dyn Clock,
) -> Result<Vec<JobStatus>, DaemonError> {
    let mut pause = FIRST_POLL;
    loop {
        clock.sleep(pause);
        let statuses = daemon.statuses(jobs)?;
        if statuses.iter().all(|status| status.finished()) {
            return Ok(statuses);
        }
        pause = LONGEST_POLL.min(pause * 2);
    }
}

/// The daemon that listens at a socket.
#[derive(Debug)]
pub(crate) struct LuxiDaemon {
    socket: PathBuf,
    connection: Option<Client>,
}

impl LuxiDaemon {
    /// Connects only when it is needed.
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket, connection: None }
    }

    fn call(&mut self, method: &'static str, arguments: &str) -> Result<Value, DaemonError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(Client::connect(&self.socket)?),
        };
        Ok(connection.call(method, arguments)?)
    }
}

impl Daemon for LuxiDaemon {
    fn reconnect(&mut self) -> Result<(), DaemonError> {
        self.connection = Some(Client::connect(&self.socket)?);
        Ok(())
    }

    fn submit(&mut self, jobs: &[Vec<OpCode>], annotation: &Annotation) -> Result<Vec<JobId>, DaemonError> {
        let method = "SubmitManyJobs";
        let answer = self.call(method, &format!("[{}]", annotation.json(jobs)))?;
        submitted(jobs.len(), &answer)?.ok_or(DaemonError::Unexpected { method, answer })
    }

    fn statuses(&mut self, jobs: &[JobId]) -> Result<Vec<JobStatus>, DaemonError> {
        let method = "QueryJobs";
        let answer = self.call(method, &format!("[[{}],[\"status\"]]", id_list(jobs)))?;
        statuses_of(jobs, &answer)?.ok_or(DaemonError::Unexpected { method, answer })
    }
}

/// Reads `[[true, 7], [false, "reason"]]`; nothing if it is anything else, or too short or too long.
fn submitted(count: usize, answer: &Value) -> Result<Option<Vec<JobId>>, DaemonError> {
    let Some(entries) = answer.as_array().filter(|entries| entries.len() == count) else { return Ok(None) };
    let mut accepted = Vec::new();
    let mut refused = None;
    for entry in entries {
        let Some([Value::Bool(success), detail]) = entry.as_array().map(Vec::as_slice) else {
            return Ok(None);
        };
        match (success, detail) {
            (true, id) => match JobId::from_json(id) {
                Some(id) => accepted.push(id),
                None => return Ok(None),
            },
            (false, Value::String(reason)) => _ = refused.get_or_insert_with(|| reason.clone()),
            (false, other) => _ = refused.get_or_insert_with(|| other.to_string()),
        }
    }
    match refused {
        Some(reason) => Err(DaemonError::Refused { reason, accepted }),
        None => Ok(Some(accepted)),
    }
}

/// Reads `[["success"], ["running"]]`; nothing if it is anything else, or too short or too long.
fn statuses_of(jobs: &[JobId], answer: &Value) -> Result<Option<Vec<JobStatus>>, DaemonError> {
    let Some(rows) = answer.as_array().filter(|rows| rows.len() == jobs.len()) else { return Ok(None) };
    let mut statuses = Vec::new();
    for (row, job) in rows.iter().zip(jobs) {
        if row.is_null() {
            return Err(DaemonError::UnknownJob(*job));
        }
        let Some([Value::String(name)]) = row.as_array().map(Vec::as_slice) else { return Ok(None) };
        match JobStatus::from_name(name) {
            Some(status) => statuses.push(status),
            None => return Ok(None),
        }
    }
    Ok(Some(statuses))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_jobs_come_as_numbers_or_as_text() {
        let ids = submitted(2, &json!([[true, 7], [true, "8"]])).unwrap();
        assert_eq!(ids, Some(vec![JobId(7), JobId(8)]));
    }

    #[test]
    fn a_refusal_names_what_was_accepted_nevertheless() {
        let error = submitted(2, &json!([[true, 7], [false, "queue full"]])).unwrap_err();
        let text = "the job was refused: queue full (submitted with it, and not waited for: 7)";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn answers_of_another_form_are_no_numbers_of_jobs() {
        for answer in
            [json!(17), json!([]), json!([[true, 7], [true, 8]]), json!([[true, -1]]), json!([[7, true]])]
        {
            assert_eq!(submitted(1, &answer).unwrap(), None, "{answer}");
        }
    }

    #[test]
    fn answers_of_another_form_are_no_states() {
        let job = [JobId(7)];
        for answer in
            [json!(17), json!([]), json!([["running"], ["running"]]), json!([["idle"]]), json!([[1]])]
        {
            assert_eq!(statuses_of(&job, &answer).unwrap(), None, "{answer}");
        }
        assert_eq!(statuses_of(&job, &json!([null])).unwrap_err().to_string(), "job 7 is not known");
    }
}
