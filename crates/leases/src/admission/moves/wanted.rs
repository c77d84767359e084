//! Requests for whole hosts for which other leases can make room.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::assignment::Way;
use super::super::{Admission, Search};
use crate::hints::Hints;
use crate::ids::{HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::project::ProjectId;
use crate::status::LeaseStatus;
use crate::terms::{HostsTerms, ReservationTerms, Terms};
use crate::window::Window;

/// A request for whole hosts by a new or changed lease.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The lease that is changed. `None` for a new one.
    pub(super) own: Option<LeaseId>,
    pub(super) window: Window,
    project: ProjectId,
    hints: Arc<Hints>,
    /// Type of a new lease. It decides whether guests on hosts matter.
    lease_type: Option<LeaseType>,
    /// Reservations of whole hosts, each with its current hosts.
    parts: Vec<(HostsTerms, BTreeSet<HostId>)>,
    /// All hosts of the lease.
    pub(super) held: BTreeSet<HostId>,
    /// The lease has started, so it keeps its hosts.
    started: bool,
    /// The lease also reserves instances or addresses.
    mixed: bool,
}

impl Wanted {
    pub fn for_new(project: &ProjectId, terms: &Terms) -> Self {
        let nothing = Allocation::Hosts(BTreeSet::new());
        let reservations = terms.reservations.iter().map(|terms| (terms, &nothing));
        let of_new = Self::new(project, &terms.hints, terms.window(), reservations);
        Self { lease_type: Some(terms.lease_type), ..of_new }
    }

    /// The hosts for a lease with its current window and terms, replacing its current hosts.
    pub fn for_lease(lease: &Lease) -> Self {
        let reservations = lease.reservations.iter().map(|r| (&r.terms, &r.allocation));
        let of_lease = Self::new(&lease.owner.project, &lease.hints, lease.window, reservations);
        Self { own: Some(lease.id), started: lease.status != LeaseStatus::Pending, ..of_lease }
    }

    fn new<'a>(
        project: &ProjectId,
        hints: &Arc<Hints>,
        window: Window,
        reservations: impl Iterator<Item = (&'a ReservationTerms, &'a Allocation)>,
    ) -> Self {
        let (mut parts, mut mixed) = (Vec::new(), false);
        for reservation in reservations {
            match reservation {
                (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) => {
                    parts.push((terms.clone(), held.clone()));
                }
                _ => mixed = true,
            }
        }
        let held = parts.iter().flat_map(|(_, held)| held.iter().copied()).collect();
        Self {
            own: None,
            window,
            project: project.clone(),
            hints: hints.clone(),
            lease_type: None,
            parts,
            held,
            started: false,
            mixed,
        }
    }

    /// Sets the terms of a lease to the number of whole hosts that it has.
    pub(in crate::admission) fn as_many(lease: &Lease) -> Lease {
        let mut lease = lease.clone();
        for reservation in &mut lease.reservations {
            if let ReservationTerms::Hosts(asked) = &reservation.terms
                && asked.properties.survives.is_none()
            {
                let count =
                    u32::try_from(reservation.allocation.amount()).unwrap_or(u32::MAX).max(asked.min());
                if let Ok(terms) = asked.clone().with_range(count, count) {
                    reservation.terms = ReservationTerms::Hosts(terms);
                }
            }
        }
        lease
    }

    pub fn window(&self) -> Window {
        self.window
    }

    pub(in crate::admission) fn is_mixed(&self) -> bool {
        self.mixed
    }

    pub(super) fn admission<'a>(&'a self, admission: Admission<'a>) -> Admission<'a> {
        let suited = self.lease_type.map_or(admission, |lease_type| admission.suited_to(lease_type));
        let length = self.window.since(admission.now).length();
        suited.asked_by(&self.project).hinted(&self.hints).lasting(length)
    }

    pub(super) fn ways(&self, admission: Admission<'_>) -> Vec<Vec<Way>> {
        let search = Search::new(self.admission(admission), self.window, self.own);
        let mut ways = Vec::new();
        for (terms, held) in &self.parts {
            let kept = if self.started { held.len() } else { 0 };
            if kept > 0 {
                let hosts = held.iter().map(|host| (*host, 0)).collect();
                ways.push(vec![Way { hosts, in_one: usize::MAX, need: kept }]);
            }
            let need = (terms.min() as usize).saturating_sub(kept);
            if need == 0 {
                continue;
            }
            let (matching, _) = search.matching(admission.inventory.hosts(), terms, self.window.start());
            let hosts = matching.into_iter().map(|host| host.id);
            let hosts =
                hosts.filter(|host| search.can_be_on(*host) && !(self.started && held.contains(host)));
            if kept > 0 {
                let hosts = hosts.map(|host| (host, 0)).collect();
                ways.push(vec![Way { hosts, in_one: usize::MAX, need }]);
            } else {
                ways.push(search.ways(hosts, terms, held));
            }
        }
        ways
    }
}
