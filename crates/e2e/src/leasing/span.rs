//! Instants and spans, in milliseconds.

use jiff::Timestamp;

/// An instant, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// The time between two instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Millis,
    pub to: Millis,
}

impl Millis {
    pub fn now() -> Self {
        Self(Timestamp::now().as_millisecond())
    }

    /// Milliseconds since `earlier`; negative if that is later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl Span {
    /// Duration in milliseconds.
    pub fn millis(self) -> i64 {
        self.to.since(self.from)
    }

    /// Duration of the overlap with `other`, in milliseconds.
    pub fn in_common(self, other: Self) -> i64 {
        self.to.min(other.to).since(self.from.max(other.from)).max(0)
    }
}
