//! How firm a lease is: most are; some are only offered, or wait for their turn.

use jiff::Timestamp;

use crate::ids::{LeaseId, OffersId};
use crate::offer::kind::OfferKind;
use crate::window::Window;

/// How firm a lease is. Only a firm one is a lease to its owner and to the planner; the others are kept like leases, so
/// that whoever decides, and every store, goes by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Standing {
    /// It is a lease.
    #[default]
    Firm,
    /// It would be made, or another one would become it, if the caller who was refused something accepts. By itself it
    /// keeps nothing from others.
    Offered {
        /// Offers that were made together: at most one of them is accepted.
        group: OffersId,
        /// Until when it can be accepted.
        until: Timestamp,
        /// What is different from what was asked for.
        kind: OfferKind,
        /// The lease that would become it; none if a new one was asked for.
        of: Option<LeaseId>,
    },
    /// Keeps free what a group of offers needs.
    Kept {
        /// Which offers.
        group: OffersId,
        /// Until when.
        until: Timestamp,
    },
    /// It could not be had, and waits until it can. It keeps nothing from others.
    Waiting {
        /// When it has to start, or it is not wanted any more.
        until: Timestamp,
        /// In which time it may lie; none if its dates are fixed.
        within: Option<Window>,
    },
}

impl Standing {
    /// Whether it is a lease to its owner.
    pub fn is_firm(self) -> bool {
        self == Self::Firm
    }

    /// Whether what it was given can be kept from others at all.
    pub(crate) fn keeps_resources(self) -> bool {
        matches!(self, Self::Firm | Self::Kept { .. })
    }

    /// When it is forgotten by itself, if ever.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Firm => None,
            Self::Offered { until, .. } | Self::Kept { until, .. } | Self::Waiting { until, .. } => {
                Some(until)
            }
        }
    }

    /// The offers that it belongs to, if it does.
    pub fn group(self) -> Option<OffersId> {
        match self {
            Self::Offered { group, .. } | Self::Kept { group, .. } => Some(group),
            Self::Firm | Self::Waiting { .. } => None,
        }
    }
}
