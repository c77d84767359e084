//! Decides whether and when a call is sent again. Nothing here waits or draws random numbers.

use std::time::Duration;

/// Limits of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts, including the first. 0 counts as 1.
    pub attempts: u32,
    /// Approximate pause after the first attempt. Each further pause is twice as long.
    pub first_pause: Duration,
    /// Longest pause. If a service requests a longer one (`Retry-After`), the call fails at once and the
    /// caller gets the requested pause.
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, first_pause: Duration::from_millis(250), longest_pause: Duration::from_secs(5) }
    }
}

/// Failure of an attempt, as far as retries depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There was no connection, so the request wasn't sent.
    NotSent,
    /// The request was sent, and there was no response.
    NoAnswer,
    /// Status of the response, and its `Retry-After`.
    Status(u16, Option<Duration>),
}

impl Retry {
    /// Pause before the next attempt, after `done` attempts. `None` if there must be no further attempt.
    /// `random` is any number: it spreads the retries of clients that failed together.
    pub(crate) fn pause(
        self,
        done: u32,
        failure: Failure,
        repeatable: bool,
        random: u64,
    ) -> Option<Duration> {
        if done >= self.attempts.max(1) {
            return None;
        }
        let (again, wanted) = match failure {
            Failure::NotSent => (true, None),
            Failure::NoAnswer => (repeatable, None),
            // A request that exceeds a rate limit has no effect.
            Failure::Status(429, wanted) => (true, wanted),
            Failure::Status(502..=504, wanted) => (repeatable, wanted),
            Failure::Status(..) => (false, None),
        };
        if !again || wanted.is_some_and(|wanted| wanted > self.longest_pause) {
            return None;
        }
        let doubled = self.first_pause.saturating_mul(2_u32.saturating_pow(done.saturating_sub(1).min(16)));
        let full = doubled.min(self.longest_pause);
        // Between half of the pause and all of it.
        let share = (random % 1024) as u32;
        let pause = full / 2 + full / 2048 * share;
        Some(wanted.map_or(pause, |wanted| wanted.saturating_add(pause / 4).max(pause)))
    }
}

/// Parses `Retry-After` in seconds. Dates aren't supported.
pub(crate) fn retry_after(value: &str) -> Option<Duration> {
    value.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Retry =
        Retry { attempts: 4, first_pause: Duration::from_millis(100), longest_pause: Duration::from_secs(1) };

    #[test]
    fn pauses_double_up_to_the_longest_and_differ() {
        let pause =
            |done, random| RULES.pause(done, Failure::NotSent, false, random).map(|pause| pause.as_millis());
        assert_eq!(
            [pause(1, 0), pause(2, 0), pause(3, 0), pause(4, 0)],
            [Some(50), Some(100), Some(200), None]
        );
        assert!(pause(1, 1023).is_some_and(|pause| (95..=100).contains(&pause)));
        let many = Retry { attempts: 100, ..RULES };
        assert_eq!(many.pause(90, Failure::NotSent, true, 0), Some(Duration::from_millis(500)));
    }

    #[test]
    fn what_may_have_been_done_is_sent_again_only_if_it_may_be() {
        let again = |failure, repeatable| RULES.pause(1, failure, repeatable, 0).is_some();
        for (failure, if_not_repeatable, if_repeatable) in [
            (Failure::NotSent, true, true),
            (Failure::NoAnswer, false, true),
            (Failure::Status(429, None), true, true),
            (Failure::Status(503, None), false, true),
            (Failure::Status(504, None), false, true),
            (Failure::Status(500, None), false, false),
            (Failure::Status(409, None), false, false),
            (Failure::Status(404, None), false, false),
        ] {
            assert_eq!(
                (again(failure, false), again(failure, true)),
                (if_not_repeatable, if_repeatable),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn a_service_is_waited_for_as_long_as_it_wants_but_not_too_long() {
        let pause =
            |seconds| RULES.pause(1, Failure::Status(503, Some(Duration::from_secs(seconds))), true, 0);
        assert!(pause(1).is_some_and(|pause| pause >= Duration::from_secs(1)));
        assert_eq!(pause(2), None);
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }
}
