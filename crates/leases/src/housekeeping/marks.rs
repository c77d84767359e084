//! What housekeeping has done about a lease, as it is kept with the lease.

use jiff::Timestamp;

/// What housekeeping has done about a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// An instance was seen in it, or its owner wants to keep it without one.
    pub used: bool,
    /// When its owner was warned that nobody uses it.
    pub unused_warned_at: Option<Timestamp>,
    /// When it was ended because nobody used it.
    pub reclaimed_at: Option<Timestamp>,
    /// The start that its owner was reminded of.
    pub start_reminded: Option<Timestamp>,
    /// The end that its owner was reminded of.
    pub end_reminded: Option<Timestamp>,
    /// How many of its hosts were exchanged because its owner wanted it so.
    pub swaps: u32,
    /// When it was last given other hosts that draw less.
    pub repacked_at: Option<Timestamp>,
}

impl Marks {
    /// Marks a lease as used if its owner was warned. Any change of the lease does this.
    pub(crate) fn keep(&mut self) {
        self.used |= self.unused_warned_at.is_some();
    }
}
