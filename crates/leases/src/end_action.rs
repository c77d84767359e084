//! What happens to guests at the end of a lease.

/// What happens to the guests of a lease when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EndAction {
    /// They are deleted, as Blazar does.
    #[default]
    DeleteGuests,
    /// They stay where they are; only the hosts leave the lease.
    KeepGuests,
    /// Images are made of those on its hosts, and then they are deleted.
    SnapshotGuests,
    /// Those on its hosts are moved to hosts that no lease has, as far as that is possible; the others stay.
    MoveGuests,
}

impl EndAction {
    /// How much it disturbs guests, to compare.
    pub(crate) fn disruption(self) -> u32 {
        match self {
            Self::KeepGuests => 0,
            Self::MoveGuests => 1,
            Self::SnapshotGuests => 2,
            Self::DeleteGuests => 3,
        }
    }

    /// Whether it is for whole hosts only: images are made of all guests on a host, and it is known of such hosts alone
    /// that nobody else is started there while guests are moved away.
    pub fn needs_whole_hosts(self) -> bool {
        matches!(self, Self::SnapshotGuests | Self::MoveGuests)
    }

    /// Whether none of its guests is left after its end.
    pub fn deletes(self) -> bool {
        match self {
            Self::DeleteGuests | Self::SnapshotGuests => true,
            Self::KeepGuests | Self::MoveGuests => false,
        }
    }
}
