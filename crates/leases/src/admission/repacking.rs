//! Moves leases that have not started to hosts that draw less power, so that the remaining hosts can stay off
//! (EN d). They keep their dates, terms and numbers of hosts.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::replanning::may_move;
use super::{Admission, Search, order};
use crate::energy::Figures;
use crate::ids::{HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::terms::ReservationTerms;

/// Minimum time between two moves of a lease to save power.
const ONCE_IN: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of leases for which one call searches hosts. Its duration doesn't grow with the number of
/// leases.
const LOOKS: usize = 20;

/// Conditions for moving a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepackRules {
    /// Leases that start before this instant aren't moved.
    pub settled: Timestamp,
    /// Minimum savings by a move, in milliwatt-seconds.
    pub least_milliwatt_seconds: u128,
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repacking {
    /// A lease with its new hosts, and the savings in milliwatt-seconds.
    pub repacked: Option<(Lease, u128)>,
    /// The last lease that was examined. The next search begins after it.
    pub looked_at: Option<LeaseId>,
}

impl Admission<'_> {
    /// Finds one lease that would draw less power on other hosts. Leases after `after` in the order of their
    /// identifiers come first. Finds nothing if power isn't saved.
    pub fn repack<'a>(
        &self,
        leases: impl IntoIterator<Item = &'a Lease>,
        after: Option<LeaseId>,
        rules: &RepackRules,
    ) -> Repacking {
        let Some(least) =
            self.facts.waking.as_ref().and_then(|_| self.inventory.hosts().filter_map(draws).min())
        else {
            return Repacking::default();
        };
        let worth_it = |lease: &&Lease| {
            let lately = |at: Timestamp| self.now.duration_since(at) < ONCE_IN;
            may_move(lease, rules.settled)
                && !lease.marks.repacked_at.is_some_and(lately)
                && self.saved(lease, least).is_some_and(|saved| saved >= rules.least_milliwatt_seconds.max(1))
        };
        let mut candidates: Vec<&Lease> = leases.into_iter().filter(worth_it).collect();
        candidates.sort_by_key(|lease| (Some(lease.id) <= after, lease.id));
        let mut looked_at = None;
        for lease in candidates.into_iter().take(LOOKS) {
            looked_at = Some(lease.id);
            if let Some(repacked) = self.settled_or_none(self.repacked(lease, rules)) {
                return Repacking { repacked: Some(repacked), looked_at };
            }
        }
        Repacking { repacked: None, looked_at }
    }

    /// Savings if each host of the lease drew only this much. `None` if a host's draw is unknown.
    fn saved(&self, lease: &Lease, milliwatts: u64) -> Option<u128> {
        let hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        let excess = hosts.map(|host| Some(self.draws(host)?.saturating_sub(milliwatts)));
        excess.sum::<Option<u64>>().map(|excess| for_as_long(lease, excess))
    }

    /// The lease on other hosts and the savings, if they suffice.
    fn repacked(&self, lease: &Lease, rules: &RepackRules) -> Option<(Lease, u128)> {
        // Guests outside of leases can stay forever.
        let avoided = &*self.facts.occupied;
        let admission = Admission { avoided, ..self.suited_to(lease.lease_type) }.on_behalf_of(lease);
        let mut search = Search::new(admission, lease.window, Some(lease.id));
        let mut repacked = lease.clone();
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        for position in order::hardest_first(&search, &asked) {
            let reservation = &mut repacked.reservations[position];
            if let (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) =
                (&reservation.terms, &reservation.allocation)
            {
                let found = search.hosts(position, terms, &BTreeSet::new()).ok()?;
                // Fewer hosts would draw less, but break the promise.
                if found.len() != held.len() || found.difference(held).any(|host| avoided.contains(host)) {
                    return None;
                }
                reservation.allocation = Allocation::Hosts(found);
            }
            search.take(&reservation.terms, &reservation.allocation);
        }
        let drawn = |lease: &Lease| {
            let hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
            hosts.map(|host| self.draws(host)).sum::<Option<u64>>()
        };
        let saved = for_as_long(lease, drawn(lease)?.checked_sub(drawn(&repacked)?)?);
        repacked.marks.repacked_at = Some(self.now);
        (saved >= rules.least_milliwatt_seconds.max(1)).then_some((repacked, saved))
    }

    fn draws(&self, host: HostId) -> Option<u64> {
        self.inventory.host(host).and_then(draws)
    }
}

/// Difference between the draw at work and off, in milliwatts. `None` if unknown.
fn draws(host: &crate::host::Host) -> Option<u64> {
    let figures = Figures::of(host);
    let at_work = figures.busy_milliwatts.or(figures.idle_milliwatts)?;
    Some(u64::from(at_work.saturating_sub(figures.off_milliwatts)))
}

fn for_as_long(lease: &Lease, milliwatts: u64) -> u128 {
    u128::from(milliwatts) * u128::try_from(lease.window.length().as_secs()).unwrap_or(0)
}
