//! Standing of a lease: firm, offered, kept for an offer, or waiting.

use jiff::Timestamp;

use crate::ids::{LeaseId, OffersId};
use crate::offer::kind::OfferKind;
use crate::window::Window;

/// Standing of a lease. Only a firm lease is a lease to its owner and to the planner. The rest are stored
/// like leases, so every decision and every store accounts for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Standing {
    /// A real lease.
    #[default]
    Firm,
    /// An alternative to a refused request. If its caller accepts, it becomes a lease, or the new version of
    /// the lease `of`. It doesn't hold capacity itself.
    Offered {
        /// Offers made together. At most one of them is accepted.
        group: OffersId,
        /// Expiry time of the offer.
        until: Timestamp,
        /// Difference from the request.
        kind: OfferKind,
        /// Lease that it would change. `None` if the request was for a new lease.
        of: Option<LeaseId>,
    },
    /// Holds the capacity that a group of offers needs.
    Kept {
        group: OffersId,
        /// Expiry time of the offers.
        until: Timestamp,
    },
    /// A request on the waitlist, waiting for capacity. It doesn't hold any.
    Waiting {
        /// Latest useful start. The request is dropped if it hasn't started by then.
        until: Timestamp,
        /// Period in which it can be scheduled. `None` if its dates are fixed.
        within: Option<Window>,
    },
}

impl Standing {
    /// Whether it is a lease to its owner.
    pub fn is_firm(self) -> bool {
        self == Self::Firm
    }

    /// Whether its allocation can be withheld from other leases at all.
    pub(crate) fn keeps_resources(self) -> bool {
        matches!(self, Self::Firm | Self::Kept { .. })
    }

    /// Time at which it is dropped. `None` for a firm lease.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Firm => None,
            Self::Offered { until, .. } | Self::Kept { until, .. } | Self::Waiting { until, .. } => {
                Some(until)
            }
        }
    }

    /// The group of offers it belongs to.
    pub fn group(self) -> Option<OffersId> {
        match self {
            Self::Offered { group, .. } | Self::Kept { group, .. } => Some(group),
            Self::Firm | Self::Waiting { .. } => None,
        }
    }
}
