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

/// Delay before a job is first polled. It doubles with each poll.
const FIRST_POLL: Duration = Duration::from_millis(500);
/// Maximum delay between polls.
const LONGEST_POLL: Duration = Duration::from_secs(15);

/// A job's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobId(pub(crate) u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JobId {
    /// Reads a number or a string of digits: daemons write either.
    fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_u64().map(Self),
            Value::String(text) => text.parse().ok().map(Self),
            _ => None,
        }
    }
}

/// Status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobStatus {
    /// Not processed yet.
    Queued,
    /// Waiting for locks.
    Waiting,
    /// Cancellation was requested, but the job hasn't stopped yet.
    Canceling,
    Running,
    /// Stopped on request.
    Canceled,
    Success,
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

    /// The status in the daemon's words.
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

    /// Whether the status is final.
    pub(crate) fn finished(self) -> bool {
        matches!(self, Self::Canceled | Self::Success | Self::Error)
    }
}

/// Failed submission of jobs or query of their statuses.
#[derive(Debug, Error)]
pub(crate) enum DaemonError {
    /// The daemon did not answer, or returned an error.
    #[error(transparent)]
    Luxi(#[from] LuxiError),
    /// The daemon refused at least one job. Jobs that it accepted still run.
    #[error("the job was refused: {reason}{}", also(.accepted))]
    Refused {
        /// The daemon's reason for the first refused job.
        reason: String,
        /// Jobs accepted in the same request.
        accepted: Vec<JobId>,
    },
    /// The answer doesn't have the expected form.
    #[error("{method}: unexpected answer {answer}")]
    Unexpected { method: &'static str, answer: Value },
    /// The daemon doesn't know the job, or no longer does.
    #[error("job {0} is not known")]
    UnknownJob(JobId),
}

fn also(accepted: &[JobId]) -> String {
    match accepted {
        [] => String::new(),
        jobs => format!(" (submitted with it, and not waited for: {})", id_list(jobs)),
    }
}

/// Job numbers separated by commas.
pub(crate) fn id_list(jobs: &[JobId]) -> String {
    let numbers: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    numbers.join(",")
}

/// The job operations of a master daemon.
pub(crate) trait Daemon {
    /// Connects again, in case the daemon was restarted during a long wait.
    fn reconnect(&mut self) -> Result<(), DaemonError>;

    /// Submits jobs and returns their numbers in the same order.
    fn submit(&mut self, jobs: &[Vec<OpCode>], annotation: &Annotation) -> Result<Vec<JobId>, DaemonError>;

    /// Statuses of jobs, in the same order.
    fn statuses(&mut self, jobs: &[JobId]) -> Result<Vec<JobStatus>, DaemonError>;
}

/// Clock for timestamps and polling, simulated in tests.
pub(crate) trait Clock {
    fn now(&self) -> SystemTime;

    fn sleep(&mut self, duration: Duration);
}

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

/// Waits until all jobs are finished, and polls them less and less often.
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

/// The master daemon behind a LUXI socket.
#[derive(Debug)]
pub(crate) struct LuxiDaemon {
    socket: PathBuf,
    connection: Option<Client>,
}

impl LuxiDaemon {
    /// Connects on the first call.
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

/// Reads `[[true, 7], [false, "reason"]]`. `None` if the answer has another form or length.
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

/// Reads `[["success"], ["running"]]`. `None` if the answer has another form or length.
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
