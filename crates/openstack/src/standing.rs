//! Decides whether a session's token is used, renewed or replaced, and when a failed login is tried again.
//! Times are arguments, and nothing here does I/O.

use std::time::Duration;

/// Longest time before its end at which a token is renewed. It is a tenth of the lifetime if that is shorter.
const LONGEST_MARGIN: Duration = Duration::from_mins(10);

/// First and longest pause after a login that Keystone rejected. Keystone counts these, and too many can lock
/// the user out.
const AFTER_REFUSAL: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));

/// First and longest pause after a login without a result.
const AFTER_FAILURE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Times of a token's renewal and end, on a clock that can't be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    renew_at: Duration,
    end: Duration,
}

/// Validity of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The token is used.
    Good,
    /// One caller renews the token. All other callers use it, and so does that one if the renewal fails.
    Ending,
    /// The token can't be used.
    Over,
}

impl Term {
    /// For a token that was requested at `now` and is valid for `lifetime`.
    pub(crate) fn new(now: Duration, lifetime: Duration) -> Self {
        let margin = (lifetime / 10).min(LONGEST_MARGIN);
        let end = now.saturating_add(lifetime);
        Self { renew_at: end.saturating_sub(margin), end }
    }

    pub(crate) fn at(self, now: Duration) -> Standing {
        if now < self.renew_at {
            Standing::Good
        } else if now < self.end {
            Standing::Ending
        } else {
            Standing::Over
        }
    }
}

/// Consecutive failed logins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    count: u32,
    next: Duration,
    refused: bool,
}

impl Failures {
    /// Whether Keystone rejected at least one of them.
    pub(crate) fn is_refused(self) -> bool {
        self.refused
    }

    /// Whether a login is due at `now`.
    pub(crate) fn may_try(self, now: Duration) -> bool {
        now >= self.next
    }

    /// Adds a failure at `now`. `refused` tells whether Keystone rejected the login.
    pub(crate) fn failed(self, now: Duration, refused: bool) -> Self {
        let (first, longest) = if refused { AFTER_REFUSAL } else { AFTER_FAILURE };
        let pause = first.saturating_mul(2_u32.saturating_pow(self.count.min(16))).min(longest);
        Self {
            count: self.count.saturating_add(1),
            next: now.saturating_add(pause),
            refused: self.refused || refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        let hour = Term::new(seconds(100), seconds(3600));
        assert_eq!(hour.at(seconds(100)), Standing::Good);
        assert_eq!(hour.at(seconds(100 + 3239)), Standing::Good);
        assert_eq!(hour.at(seconds(100 + 3240)), Standing::Ending);
        assert_eq!(hour.at(seconds(100 + 3600)), Standing::Over);
        let day = Term::new(seconds(0), seconds(86400));
        assert_eq!(day.at(seconds(86400 - 601)), Standing::Good);
        assert_eq!(day.at(seconds(86400 - 600)), Standing::Ending);
        assert_eq!(Term::new(seconds(5), seconds(0)).at(seconds(5)), Standing::Over);
    }

    #[test]
    fn logins_that_fail_are_tried_ever_less_often() {
        let mut refused = Failures::default();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let now = refused.next;
            refused = refused.failed(now, true);
            assert!(!refused.may_try(now) && refused.may_try(refused.next));
            pauses.push(refused.next.as_secs() - now.as_secs());
        }
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
        let away = Failures::default().failed(seconds(0), false).failed(seconds(1), false);
        assert_eq!(away.next, seconds(3));
        assert!(!away.is_refused());
        let then_away = away.failed(seconds(3), true).failed(seconds(9), false);
        assert!(then_away.is_refused(), "nothing is known of the login since");
    }
}
