//! Facts that a guest may know about itself: its lease and its preemption time.

use std::collections::BTreeSet;
use std::sync::Arc;

use leases::ids::{GuestId, HostId, ReservationId};
use leases::instance::{Departure, InstanceKind};
use leases::lease::Allocation;
use leases::plan::{GuestOwner, Observed, ObservedHost, Place};
use store::LeaseRecord;

use crate::deciding::beside_requests;
use crate::instances::Instances;
use crate::leasing::Leases;
use crate::lifetimes::expiry;
use crate::types::ServiceError;

/// Facts about a guest that runs or is being started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestFacts {
    /// `None` if it is outside all leases.
    pub lease: Option<Arc<LeaseRecord>>,
    /// The reservation of that lease that provides its capacity, if known.
    pub reservation: Option<ReservationId>,
    /// Whether it is preempted for leases.
    pub preemptible: bool,
    /// Preemption time, if a lease that needs its place is known or its lifetime is limited. The guest can
    /// stay until the end of its notice.
    pub departure: Option<Departure>,
}

impl Instances<'_> {
    /// Facts about a guest; `None` if it isn't on any host of the service. If it was not observed yet, asks
    /// the fleet, because guests read this when they boot.
    ///
    /// # Errors
    /// [`ServiceError::Fleet`] if the fleet doesn't answer.
    pub async fn facts(self, id: GuestId) -> Result<Option<GuestFacts>, ServiceError> {
        if let Some(record) = self.get(id) {
            let instance = &record.instance;
            let (lease, reservation) = match instance.kind {
                InstanceKind::Reserved { lease, reservation } => {
                    (Leases::of(self.service).get(lease), Some(reservation))
                }
                InstanceKind::Regular | InstanceKind::Preemptible => (None, None),
            };
            let preemptible = instance.kind == InstanceKind::Preemptible;
            let notice = self.notice(instance);
            let departure = self.departure(instance).map(|departure| departure.for_owner(notice));
            return Ok(Some(GuestFacts { lease, reservation, preemptible, departure }));
        }
        let known = self.facts_among(&self.service.observed(), id);
        if known.is_some() {
            return Ok(known);
        }
        let Some(host) = self.service.in_time(self.service.parts.fleet.locate(id)).await? else {
            return Ok(None);
        };
        let observed =
            self.service.in_time(self.service.parts.fleet.observe(&BTreeSet::from([host]), &[])).await?;
        Ok(self.facts_among(&observed, id))
    }

    /// Facts about an observed guest that was not started through the service.
    fn facts_among(self, observed: &Observed, id: GuestId) -> Option<GuestFacts> {
        let mut all = observed
            .hosts
            .iter()
            .flat_map(|(host, seen)| seen.guests.iter().map(move |guest| (host, seen, guest)));
        let (host, seen, guest) = all.find(|(.., guest)| guest.id == id)?;
        Some(match guest.owner {
            GuestOwner::Lease(lease) => {
                let lease = Leases::of(self.service).get(lease);
                let reservation = lease.as_deref().and_then(|lease| reservation_of(lease, *host, seen));
                GuestFacts { lease, reservation, ..GuestFacts::default() }
            }
            GuestOwner::Preemptible => {
                let now = self.service.now();
                let departure = beside_requests(|| {
                    self.service.decider.departure_of_foreign(
                        &self.service.snapshot(),
                        (*host, seen),
                        id,
                        now,
                    )
                });
                let rules = &self.service.decider.settings.plan_rules;
                let expiry = expiry(rules, guest.launched_at, None);
                let departure = departure.into_iter().chain(expiry).min_by_key(|known| known.asked_at);
                let departure = departure.map(|departure| departure.for_owner(rules.notice(None)));
                GuestFacts { preemptible: true, departure, ..GuestFacts::default() }
            }
            GuestOwner::Other => GuestFacts::default(),
        })
    }
}

/// The reservation that provides the capacity for a guest of this lease on this host. `None` if several are
/// possible.
pub(crate) fn reservation_of(
    record: &LeaseRecord,
    host: HostId,
    seen: &ObservedHost,
) -> Option<ReservationId> {
    let own = |id: ReservationId| record.lease.reservation(id).is_some();
    if let Place::Held(holder) = seen.place {
        return own(holder).then_some(holder);
    }
    let mut there = record.lease.reservations.iter().filter(|own| match &own.allocation {
        Allocation::Slots(slots) => slots.contains_key(&host),
        Allocation::Hosts(hosts) => hosts.contains(&host),
        Allocation::FloatingIps(_) => false,
    });
    let first = there.next()?;
    there.next().is_none().then_some(first.id)
}
