//! States of a host during a handover and their transitions, shared by all drivers.

use leases::ids::{LeaseId, ReservationId};
use leases::plan::{GuestOwner, Place};
use serde::{Deserialize, Serialize};

use crate::saved::{id, id_or_none};

/// State of a host. In addition to the planner's [`Place`], it records whether the host was adopted, and the
/// lease that holds it, which owns the guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Site {
    /// Not adopted.
    #[default]
    Elsewhere,
    /// [`Place::FreePool`].
    FreePool,
    /// [`Place::Fenced`].
    Fenced {
        #[serde(with = "id_or_none")]
        verified_for: Option<ReservationId>,
    },
    /// [`Place::Held`].
    Held {
        #[serde(with = "id")]
        reservation: ReservationId,
        /// The lease of the reservation.
        #[serde(with = "id_or_none")]
        lease: Option<LeaseId>,
    },
}

impl Site {
    /// The planner's view; `None` if the host was not adopted.
    pub(crate) fn place(self) -> Option<Place> {
        match self {
            Self::Elsewhere => None,
            Self::FreePool => Some(Place::FreePool),
            Self::Fenced { verified_for } => Some(Place::Fenced { verified_for }),
            Self::Held { reservation, .. } => Some(Place::Held(reservation)),
        }
    }

    /// Whether a guest of this owner can be moved away on behalf of this lease, which gets the host, gets
    /// slots on it, or returns it. Preemptible guests can be moved from any adopted host.
    pub(crate) fn lets_go(self, lease: Option<LeaseId>, owner: GuestOwner) -> bool {
        match self {
            Self::Fenced { .. } => true,
            Self::Held { lease: holder, .. } => {
                (holder.is_some() && holder == lease) || owner == GuestOwner::Preemptible
            }
            Self::FreePool => owner == GuestOwner::Preemptible,
            Self::Elsewhere => false,
        }
    }

    /// Whether an instance that isn't part of a lease can start on this host: in the free pool, or on a host
    /// of the lease that the instance backfills.
    pub(crate) fn admits(self, backfills: Option<LeaseId>) -> bool {
        match self {
            Self::FreePool => true,
            Self::Held { lease, .. } => lease.is_some() && lease == backfills,
            Self::Fenced { .. } | Self::Elsewhere => false,
        }
    }

    /// State after fencing. Unchanged unless the host is in the free pool.
    #[must_use]
    pub(crate) fn fenced(self) -> Self {
        if self == Self::FreePool { Self::Fenced { verified_for: None } } else { self }
    }

    /// State after unfencing. Unchanged unless the host is fenced.
    #[must_use]
    pub(crate) fn unfenced(self) -> Self {
        if matches!(self, Self::Fenced { .. }) { Self::FreePool } else { self }
    }

    /// State after a check found only guests of the reservation's lease. Unchanged unless the host is fenced.
    #[must_use]
    pub(crate) fn verified(self, reservation: ReservationId) -> Self {
        match self {
            Self::Fenced { .. } => Self::Fenced { verified_for: Some(reservation) },
            other => other,
        }
    }

    /// State after the handover to the reservation. Unchanged unless the host was verified for it.
    #[must_use]
    pub(crate) fn held(self, reservation: ReservationId, lease: Option<LeaseId>) -> Self {
        match self {
            Self::Fenced { verified_for: Some(verified) } if verified == reservation => {
                Self::Held { reservation, lease }
            }
            other => other,
        }
    }

    /// State after the reservation released the host. Unchanged unless the reservation holds it.
    #[must_use]
    pub(crate) fn released(self, from: ReservationId) -> Self {
        match self {
            Self::Held { reservation, .. } if reservation == from => Self::FreePool,
            other => other,
        }
    }
}
