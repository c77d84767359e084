//! Leases compared with what their owners were told.

use leases::lease::{EndAction, Lease};
use leases::lease_type::LeaseType;

/// Whether the lease is what its owner was told, except for changes that happen by themselves.
pub(super) fn same_terms(told: &Lease, is: &Lease) -> bool {
    let terms = |lease: &Lease| -> Vec<_> {
        lease.reservations.iter().map(|reservation| (reservation.id, reservation.terms.clone())).collect()
    };
    let same_window = match is.lease_type {
        // A best-effort lease starts as soon as it can and lasts as long as requested, except when its hunt
        // takes longer than its allowance: then it's shorter. A lease that waited for its hosts and found
        // them occupied has no allowance at all. If a lease moves its own guests at its end, its records no
        // longer show whether it hunted.
        LeaseType::BestEffort { .. } if is.hunt.is_some() || is.end_action == EndAction::MoveGuests => {
            let within = is.hunt.as_ref().is_none_or(|hunt| hunt.allowance.is_zero())
                || is.window.end() <= told.window.end();
            within && is.window.length() <= told.window.length()
        }
        LeaseType::BestEffort { .. } => told.window.length() == is.window.length(),
        LeaseType::Schedule | LeaseType::Immediate { .. } => told.window == is.window,
    };
    told.name == is.name && told.owner == is.owner && same_window && terms(told) == terms(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    use jiff::SignedDuration;
    use leases::hunt::Hunt;
    use leases::terms::{HostsTerms, ReservationTerms};

    use crate::testing::{self, at};

    /// A best-effort lease whose window is now between these minutes.
    fn lease(window: (i64, i64), allowance: Option<i64>) -> Lease {
        let asked = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
        let lease_type = LeaseType::BestEffort { deadline: at(600) };
        let lease = Lease { lease_type, ..testing::lease(1, asked, 1, window) };
        let hunt = |minutes| Hunt { allowance: SignedDuration::from_mins(minutes), ..Hunt::default() };
        lease.hunting(allowance.map(hunt))
    }

    #[test]
    fn a_lease_may_start_at_another_time_but_is_as_long_as_it_was_asked_for() {
        let told = lease((30, 90), None);
        assert!(same_terms(&told, &lease((0, 60), None)));
        assert!(same_terms(&told, &lease((60, 120), None)));
        assert!(!same_terms(&told, &lease((30, 80), None)));
        assert!(!same_terms(&told, &lease((30, 100), None)));
    }

    #[test]
    fn a_lease_that_finds_its_hosts_occupied_may_be_shorter_and_never_longer_nor_later_than_its_allowance() {
        let waited = lease((30, 90), None);
        assert!(same_terms(&waited, &lease((60, 120), Some(0))), "it has moved before it hunted");
        assert!(same_terms(&waited, &lease((65, 120), Some(0))));
        assert!(!same_terms(&waited, &lease((60, 121), Some(0))));
        let hunted = lease((0, 62), Some(2));
        assert!(same_terms(&hunted, &lease((1, 61), Some(2))));
        assert!(!same_terms(&hunted, &lease((5, 65), Some(2))), "beyond what it was allowed");
    }
}
