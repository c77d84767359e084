//! Record of housekeeping actions, stored with the lease.

use jiff::Timestamp;

/// Housekeeping actions on a lease so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// An instance was seen in the lease, or its owner wants to keep it without one.
    pub used: bool,
    /// Time of the warning that the lease is unused.
    pub unused_warned_at: Option<Timestamp>,
    /// Time at which the lease was ended because it was unused.
    pub reclaimed_at: Option<Timestamp>,
    /// Start that the owner was last reminded of.
    pub start_reminded: Option<Timestamp>,
    /// End that the owner was last reminded of.
    pub end_reminded: Option<Timestamp>,
    /// Number of hosts replaced at the owner's request.
    pub swaps: u32,
    /// Last time the lease got other hosts with a lower power draw.
    pub repacked_at: Option<Timestamp>,
}

impl Marks {
    /// Marks a lease as used if its owner was warned. Any change of the lease does this.
    pub(crate) fn keep(&mut self) {
        self.used |= self.unused_warned_at.is_some();
    }
}
