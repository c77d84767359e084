//! What a check finds.

/// Nothing, or what is wrong in a sentence.
pub(crate) type Verdict = Result<(), String>;
