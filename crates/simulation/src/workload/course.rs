//! The course of a job, from its submission to its end.

use super::trace::Job;

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Not requested yet, or waiting.
    None,
    AsAsked,
    AfterWaiting,
    Later,
    Shorter,
    FewerHosts,
    Refused,
}

/// Hosts and time that a lease was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    /// Start of the lease. A best-effort lease's start can still change until it is active.
    pub start_ms: i64,
    pub length_ms: i64,
    pub hosts: u32,
}

/// A job and its state so far. Times are milliseconds from the beginning of the trace.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub job: Job,
    pub answer: Answer,
    pub promise: Option<Promise>,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
}
