//! Times between what happened, in milliseconds.

use jiff::Timestamp;

/// An instant, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// From one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub from: Millis,
    /// Its end.
    pub to: Millis,
}

impl Millis {
    /// The present.
    pub fn now() -> Self {
        Self(Timestamp::now().as_millisecond())
    }

    /// How many milliseconds it is later than that; negative if it is earlier.
    pub fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl Span {
    /// How long it is, in milliseconds.
    pub fn millis(self) -> i64 {
        self.to.since(self.from)
    }

    /// How many milliseconds it has in common with that one.
    pub fn in_common(self, other: Self) -> i64 {
        self.to.min(other.to).since(self.from.max(other.from)).max(0)
    }
}
