//! Result of a check.

/// An error is a sentence that describes the violation.
pub(crate) type Verdict = Result<(), String>;
