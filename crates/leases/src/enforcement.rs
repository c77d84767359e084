//! Limits that the operator sets on leases (spec §3.7): the length, and when a lease may be extended.
//!
//! Asking an external service is the server's. Both limits are checked before anything is chosen or changed.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::project::ProjectId;
use crate::window::{Window, earlier};

/// The limits.
#[derive(Clone, Debug, Default)]
pub struct Enforcement {
    /// The longest lease; no limit if absent.
    pub max_lease_duration: Option<SignedDuration>,
    /// Projects without limits.
    pub exempt_projects: BTreeSet<ProjectId>,
    /// How long before its end a lease may be extended, by up to the longest duration again. If absent, a lease
    /// may be extended at any time, and its whole length is limited.
    pub extension_window: Option<SignedDuration>,
}

/// Which limit is exceeded. Texts are Blazar's and Chameleon's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EnforcementError {
    /// Too long.
    #[error(
        "Lease duration of {asked_seconds} seconds must be less than or equal to the maximum lease duration \
         of {allowed_seconds} seconds."
    )]
    TooLong {
        /// What was asked for: the length of the lease, or of its extension within the extension window.
        asked_seconds: i64,
        /// What is allowed.
        allowed_seconds: i64,
    },
    /// Too early to extend it.
    #[error("Lease can only be extended within {window_seconds} seconds of the leases current end time.")]
    TooEarlyToExtend {
        /// How long before the end it may be extended.
        window_seconds: i64,
    },
}

impl Enforcement {
    /// Whether the project may have a new lease for that window.
    pub fn check_create(&self, project: &ProjectId, window: &Window) -> Result<(), EnforcementError> {
        if self.exempt_projects.contains(project) { Ok(()) } else { self.check_length(window.length()) }
    }

    /// Whether the project may change a lease's window.
    ///
    /// A change that makes a lease end no later and last no longer is never refused: it could otherwise not be
    /// shortened after the limit was lowered.
    pub fn check_update(
        &self,
        project: &ProjectId,
        before: &Window,
        after: &Window,
        now: Timestamp,
    ) -> Result<(), EnforcementError> {
        let shrinks = after.end() <= before.end() && after.length() <= before.length();
        if shrinks || self.exempt_projects.contains(project) {
            return Ok(());
        }
        match self.extension_window {
            Some(window) if after.start() == before.start() => {
                if now < earlier(before.end(), window) {
                    return Err(EnforcementError::TooEarlyToExtend { window_seconds: window.as_secs() });
                }
                self.check_length(after.end().duration_since(before.end()))
            }
            _ => self.check_length(after.length()),
        }
    }

    fn check_length(&self, length: SignedDuration) -> Result<(), EnforcementError> {
        match self.max_lease_duration {
            Some(max) if length > max => Err(EnforcementError::TooLong {
                asked_seconds: length.as_secs(),
                allowed_seconds: max.as_secs(),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, minutes, window};

    fn project() -> ProjectId {
        ProjectId("p".into())
    }

    fn limits(extension_window: Option<i64>) -> Enforcement {
        Enforcement {
            max_lease_duration: Some(minutes(60)),
            exempt_projects: BTreeSet::from([ProjectId("vip".into())]),
            extension_window: extension_window.map(minutes),
        }
    }

    #[test]
    fn a_lease_of_the_longest_duration_is_allowed_and_a_longer_one_is_not() {
        assert_eq!(limits(None).check_create(&project(), &window(0, 60)), Ok(()));
        let refused = limits(None).check_create(&project(), &window(0, 61)).expect_err("too long");
        let text = "Lease duration of 3660 seconds must be less than or equal to the maximum lease duration \
                    of 3600 seconds.";
        assert_eq!(refused.to_string(), text);
        assert_eq!(limits(None).check_create(&ProjectId("vip".into()), &window(0, 61)), Ok(()));
    }

    #[test]
    fn an_extension_counts_the_whole_lease_unless_there_is_a_window_for_it() {
        let extend = |limits: Enforcement, now, end| {
            limits.check_update(&project(), &window(0, 60), &window(0, end), at(now))
        };
        assert!(extend(limits(None), 0, 61).is_err());
        assert_eq!(extend(limits(Some(10)), 50, 120), Ok(()));
        assert!(extend(limits(Some(10)), 50, 121).is_err());
        let early = extend(limits(Some(10)), 49, 120);
        assert_eq!(early, Err(EnforcementError::TooEarlyToExtend { window_seconds: 600 }));
    }

    #[test]
    fn a_lease_that_is_too_long_already_can_be_shortened() {
        let limits = limits(Some(10));
        assert_eq!(limits.check_update(&project(), &window(0, 500), &window(0, 400), at(0)), Ok(()));
    }
}
