//! Delays before failed work is retried.

use jiff::SignedDuration;

/// Delay after the first failed cycle. It doubles with each further failure.
pub(super) const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
/// Maximum delay. After the store recovers, due leases are late by up to this much. Asking the store costs
/// little.
pub(super) const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(4);

/// Delay after a failure that follows `failures` earlier ones.
pub(super) fn backoff(first: SignedDuration, longest: SignedDuration, failures: u32) -> SignedDuration {
    first.checked_mul(1 << failures.min(16)).unwrap_or(longest).min(longest)
}
