//! How long what has failed waits before it is tried again.

use jiff::SignedDuration;

/// How long a cycle that failed waits the first time; then twice as long each time.
pub(super) const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
/// But never longer: so much later than the store come back leases that are due. To ask costs little.
pub(super) const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(4);

/// How long to wait after so many failures before this one.
pub(super) fn backoff(first: SignedDuration, longest: SignedDuration, failures: u32) -> SignedDuration {
    first.checked_mul(1 << failures.min(16)).unwrap_or(longest).min(longest)
}
