//! Periods in which something isn't tried again.

use jiff::{SignedDuration, Timestamp};

/// A period in which something isn't tried again.
///
/// It also ends when the clock is set back to before its beginning. Otherwise it would last for as long as
/// the clock was ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    from: Timestamp,
    until: Timestamp,
}

impl Pause {
    /// Starts now and lasts for `length`.
    pub fn of(now: Timestamp, length: SignedDuration) -> Self {
        Self::until(now, now.saturating_add(length).unwrap_or(Timestamp::MAX))
    }

    pub fn until(now: Timestamp, until: Timestamp) -> Self {
        Self { from: now, until }
    }

    pub fn begin(self) -> Timestamp {
        self.from
    }

    pub fn end(self) -> Timestamp {
        self.until
    }

    pub fn lasts(self, now: Timestamp) -> bool {
        self.rest(now).is_some()
    }

    /// Its end, or `None` if it is over.
    pub fn rest(self, now: Timestamp) -> Option<Timestamp> {
        (self.from <= now && now < self.until).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_at_its_time_or_when_the_clock_is_set_back() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let pause = Pause::of(at(100), SignedDuration::from_secs(10));
        let rest = [99, 100, 109, 110].map(|second| pause.rest(at(second)));
        assert_eq!(rest, [None, Some(at(110)), Some(at(110)), None]);
    }
}
