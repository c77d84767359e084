//! Half-open intervals of time, `[start, end)` in UTC.
//!
//! Half-open is what makes a lease that ends at 12:00 and one that starts at 12:00 neighbours (W16). The
//! API's rule that dates have no seconds stays at the edge: here every instant is as good as any other.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

/// An interval that ends before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a window cannot end ({end}) before it starts ({start})")]
pub struct Backwards {
    /// The start as given.
    pub start: Timestamp,
    /// The end as given.
    pub end: Timestamp,
}

/// The instants from `start` up to, but not including, `end`.
///
/// A window may be empty (`start == end`): a lease that was cut short in the minute of its start has one. An
/// empty window contains nothing and overlaps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    start: Timestamp,
    end: Timestamp,
}

impl Window {
    /// All of time.
    pub const ALWAYS: Self = Self { start: Timestamp::MIN, end: Timestamp::MAX };

    /// The window from `start` to `end`.
    pub fn new(start: Timestamp, end: Timestamp) -> Result<Self, Backwards> {
        if start <= end { Ok(Self { start, end }) } else { Err(Backwards { start, end }) }
    }

    /// The window of that length from `start`, cut at the end of time; empty if the length is negative.
    pub fn starting(start: Timestamp, length: SignedDuration) -> Self {
        Self { start, end: later(start, length.max(SignedDuration::ZERO)) }
    }

    /// The first instant.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// The first instant that is not in the window any more.
    pub fn end(&self) -> Timestamp {
        self.end
    }

    /// How long it is.
    pub fn length(&self) -> SignedDuration {
        self.end.duration_since(self.start)
    }

    /// Whether no instant is in it.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether the instant is in it.
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.start <= instant && instant < self.end
    }

    /// Whether some instant is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// Whether every instant of `other` is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// The part that is not before `instant`; empty if all of it is.
    #[must_use]
    pub fn since(&self, instant: Timestamp) -> Self {
        Self { start: self.start.max(instant).min(self.end), end: self.end }
    }

    /// The part that is before `instant`; empty if none of it is.
    #[must_use]
    pub fn before(&self, instant: Timestamp) -> Self {
        Self { start: self.start, end: self.end.min(instant).max(self.start) }
    }

    /// The window with a margin on both sides, cut at the ends of time.
    ///
    /// An empty window stays empty: there is nothing to clean up around it.
    #[must_use]
    pub fn widened(&self, margin: SignedDuration) -> Self {
        if self.is_empty() {
            return *self;
        }
        Self { start: earlier(self.start, margin), end: later(self.end, margin) }
    }
}

/// The first instant without seconds from this one on, or the last one there is.
pub fn next_minute(instant: Timestamp) -> Timestamp {
    const MINUTE: SignedDuration = SignedDuration::from_mins(1);
    let over = instant.as_nanosecond().rem_euclid(MINUTE.as_nanos());
    match i64::try_from(over) {
        Ok(over) if over > 0 => later(instant, MINUTE - SignedDuration::from_nanos(over)),
        _ => instant,
    }
}

/// An instant as clients may write it, in UTC.
pub(crate) fn minute(at: Timestamp) -> String {
    format!("{} UTC", at.strftime("%Y-%m-%d %H:%M"))
}

/// The instant that much later, or the last one there is.
pub(crate) fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The instant that much earlier, or the first one there is.
pub(crate) fn earlier(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: i64, end: i64) -> Window {
        let at = |second| Timestamp::from_second(second).expect("in range");
        Window::new(at(start), at(end)).expect("forwards")
    }

    #[test]
    fn neighbours_do_not_overlap() {
        assert!(!window(0, 10).overlaps(&window(10, 20)));
        assert!(window(0, 11).overlaps(&window(10, 20)));
    }

    #[test]
    fn an_empty_window_overlaps_nothing_not_even_around_itself() {
        assert!(!window(5, 5).overlaps(&window(0, 10)));
        assert!(!window(0, 10).overlaps(&window(5, 5)));
        assert!(window(5, 5).widened(SignedDuration::from_secs(3)).is_empty());
    }

    #[test]
    fn a_window_cannot_run_backwards() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        assert!(Window::new(at(1), at(0)).is_err());
        assert!(Window::starting(at(1), SignedDuration::from_secs(-5)).is_empty());
    }

    #[test]
    fn margins_stop_at_the_ends_of_time() {
        let all = Window::ALWAYS.widened(SignedDuration::from_hours(1));
        assert_eq!(all, Window::ALWAYS);
    }

    #[test]
    fn the_rest_of_a_window_starts_no_earlier_and_is_empty_when_it_is_over() {
        assert_eq!(window(0, 10).since(window(4, 4).start()), window(4, 10));
        assert_eq!(window(5, 10).since(window(4, 4).start()), window(5, 10));
        assert!(window(0, 10).since(window(12, 12).start()).is_empty());
    }
}
