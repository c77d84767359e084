//! Where a host is, and how it gets elsewhere: the rules that all drivers share.

use leases::ids::{LeaseId, ReservationId};
use leases::plan::{GuestOwner, Place};
use serde::{Deserialize, Serialize};

use crate::saved::{id, id_or_none};

/// Where a host is. Beside what the planner sees it says whether the host was taken on at all, and for which
/// lease it is held, which is whose the guests are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Site {
    /// None of the service's business.
    #[default]
    Elsewhere,
    /// [`Place::FreePool`].
    FreePool,
    /// [`Place::Fenced`].
    Fenced {
        /// As there.
        #[serde(with = "id_or_none")]
        verified_for: Option<ReservationId>,
    },
    /// [`Place::Held`].
    Held {
        /// As there.
        #[serde(with = "id")]
        reservation: ReservationId,
        /// Its lease.
        #[serde(with = "id_or_none")]
        lease: Option<LeaseId>,
    },
}

impl Site {
    /// As the planner sees it, if the host was taken on.
    pub(crate) fn place(self) -> Option<Place> {
        match self {
            Self::Elsewhere => None,
            Self::FreePool => Some(Place::FreePool),
            Self::Fenced { verified_for } => Some(Place::Fenced { verified_for }),
            Self::Held { reservation, .. } => Some(Place::Held(reservation)),
        }
    }

    /// Whether guests of that owner are moved away from it on behalf of that lease: to get the host, or room on it, or
    /// to give it back. Preemptible ones are preempted for leases wherever they are.
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

    /// Whether instances that are part of no lease may be started on it: on one of the free pool, and preemptible ones
    /// on one of the lease that lets them, if one does.
    pub(crate) fn admits(self, backfills: Option<LeaseId>) -> bool {
        match self {
            Self::FreePool => true,
            Self::Held { lease, .. } => lease.is_some() && lease == backfills,
            Self::Fenced { .. } | Self::Elsewhere => false,
        }
    }

    /// After it was fenced.
    #[must_use]
    pub(crate) fn fenced(self) -> Self {
        if self == Self::FreePool { Self::Fenced { verified_for: None } } else { self }
    }

    /// After it was unfenced.
    #[must_use]
    pub(crate) fn unfenced(self) -> Self {
        if matches!(self, Self::Fenced { .. }) { Self::FreePool } else { self }
    }

    /// After it was looked at, and only guests of the reservation's lease were found.
    #[must_use]
    pub(crate) fn verified(self, reservation: ReservationId) -> Self {
        match self {
            Self::Fenced { .. } => Self::Fenced { verified_for: Some(reservation) },
            other => other,
        }
    }

    /// After it was handed to the reservation.
    #[must_use]
    pub(crate) fn held(self, reservation: ReservationId, lease: Option<LeaseId>) -> Self {
        match self {
            Self::Fenced { verified_for: Some(verified) } if verified == reservation => {
                Self::Held { reservation, lease }
            }
            other => other,
        }
    }

    /// After it was taken back from the reservation.
    #[must_use]
    pub(crate) fn released(self, from: ReservationId) -> Self {
        match self {
            Self::Held { reservation, .. } if reservation == from => Self::FreePool,
            other => other,
        }
    }
}
