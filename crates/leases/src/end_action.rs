//! End actions: the fate of guests when their lease ends.

/// Fate of a lease's guests at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EndAction {
    /// Delete the guests, as Blazar does.
    #[default]
    DeleteGuests,
    /// Leave the guests in place; only the hosts leave the lease.
    KeepGuests,
    /// Make an image of each guest on the lease's hosts, then delete the guests.
    SnapshotGuests,
    /// Migrate guests on the lease's hosts to hosts without a lease where possible; the rest stay.
    MoveGuests,
}

impl EndAction {
    /// Rank by disruption to guests; 0 is the least disruptive.
    pub(crate) fn disruption(self) -> u32 {
        match self {
            Self::KeepGuests => 0,
            Self::MoveGuests => 1,
            Self::SnapshotGuests => 2,
            Self::DeleteGuests => 3,
        }
    }

    /// Whether the action requires a reservation of whole hosts. Images are made of all guests on a host, and
    /// only a leased whole host is sure to get no new guests of other tenants while its own are moved away.
    pub fn needs_whole_hosts(self) -> bool {
        matches!(self, Self::SnapshotGuests | Self::MoveGuests)
    }

    /// Whether no guest remains after the end.
    pub fn deletes(self) -> bool {
        match self {
            Self::DeleteGuests | Self::SnapshotGuests => true,
            Self::KeepGuests | Self::MoveGuests => false,
        }
    }
}
