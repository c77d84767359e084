//! Half-open time intervals `[start, end)` in UTC.
//!
//! Because they are half-open, a lease that ends at 12:00 and a lease that starts at 12:00 don't overlap
//! (W16). The API's rule that dates have no seconds is enforced at the edge; here, any timestamp is valid.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

/// Error for an interval that ends before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a window cannot end ({end}) before it starts ({start})")]
pub struct Backwards {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// The interval from `start` up to, but not including, `end`.
///
/// A window can be empty (`start == end`), for example if a lease was cut short in the minute of its start.
/// An empty window contains nothing and overlaps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    start: Timestamp,
    end: Timestamp,
}

impl Window {
    pub const ALWAYS: Self = Self { start: Timestamp::MIN, end: Timestamp::MAX };

    pub fn new(start: Timestamp, end: Timestamp) -> Result<Self, Backwards> {
        if start <= end { Ok(Self { start, end }) } else { Err(Backwards { start, end }) }
    }

    /// The window of this length from `start`, clamped to the maximum timestamp. Empty if the length is
    /// negative.
    pub fn starting(start: Timestamp, length: SignedDuration) -> Self {
        Self { start, end: later(start, length.max(SignedDuration::ZERO)) }
    }

    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// Exclusive end.
    pub fn end(&self) -> Timestamp {
        self.end
    }

    pub fn length(&self) -> SignedDuration {
        self.end.duration_since(self.start)
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn contains(&self, instant: Timestamp) -> bool {
        self.start <= instant && instant < self.end
    }

    /// Whether both windows share at least one instant.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// Whether this window contains all of `other`. True for any empty `other`.
    pub fn covers(&self, other: &Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// The part that isn't before `instant`. Empty if there is no such part.
    #[must_use]
    pub fn since(&self, instant: Timestamp) -> Self {
        Self { start: self.start.max(instant).min(self.end), end: self.end }
    }

    /// The part before `instant`. Empty if there is no such part.
    #[must_use]
    pub fn before(&self, instant: Timestamp) -> Self {
        Self { start: self.start, end: self.end.min(instant).max(self.start) }
    }

    /// The window extended by a margin on both sides, clamped to the range of timestamps.
    ///
    /// An empty window stays empty: it needs no cleaning time around it.
    #[must_use]
    pub fn widened(&self, margin: SignedDuration) -> Self {
        if self.is_empty() {
            return *self;
        }
        Self { start: earlier(self.start, margin), end: later(self.end, margin) }
    }
}

/// Rounds up to a full minute. Saturates at the maximum timestamp.
pub fn next_minute(instant: Timestamp) -> Timestamp {
    const MINUTE: SignedDuration = SignedDuration::from_mins(1);
    let over = instant.as_nanosecond().rem_euclid(MINUTE.as_nanos());
    match i64::try_from(over) {
        Ok(over) if over > 0 => later(instant, MINUTE - SignedDuration::from_nanos(over)),
        _ => instant,
    }
}

/// Formats a time the way clients can write it, in UTC.
pub(crate) fn minute(at: Timestamp) -> String {
    format!("{} UTC", at.strftime("%Y-%m-%d %H:%M"))
}

/// Saturating addition.
pub(crate) fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Saturating subtraction.
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
