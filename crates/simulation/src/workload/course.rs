//! What becomes of a job.

use super::trace::Job;

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was not made yet, or waits.
    None,
    AsAsked,
    AfterWaiting,
    Later,
    Shorter,
    FewerHosts,
    Refused,
}

/// What somebody was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    /// The start, as it was when the lease started, or as it is.
    pub start_ms: i64,
    pub length_ms: i64,
    pub hosts: u32,
}

/// What becomes of a job. Times are milliseconds from the beginning of the trace.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub job: Job,
    pub answer: Answer,
    pub promise: Option<Promise>,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
}
