//! Moving preemptible instances to another host instead of stopping them (PRE-06).

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::{Admission, Within};
use crate::hints::InstanceHints;
use crate::host::Host;
use crate::hunt::{Cost, DESTINATIONS, failed_destinations};
use crate::ids::HostId;
use crate::instance::Instance;
use crate::plan::{FENCE_TOLERANCE, Guest, History, Mobility, Observed};

impl Admission<'_> {
    /// A destination for an instance that is preempted. The host isn't booked within `least` from now, and
    /// the guest can arrive before it would be asked to leave. Among several, the host that stays unbooked
    /// for longest. `observed` includes [guests to come](super::guests_to_come).
    pub fn another_gap(
        &self,
        (instance, guest): (&Instance, &Guest),
        least: SignedDuration,
        (observed, history): (&Observed, &History),
    ) -> Option<HostId> {
        let (departure, mobility) = (instance.departure?, guest.mobility.as_ref()?);
        let (memory_mib, disk_gib) = (guest.size.memory_mib.into(), mobility.copied_disk_gib.into());
        let takes = self.rules.hunting.allowance(&Cost { memory_mib, disk_gib, ..Cost::default() });
        let mut not_on: BTreeSet<HostId> = failed_destinations(history, guest.id).collect();
        if departure.asked_at.duration_since(self.now) < takes || not_on.len() >= DESTINATIONS {
            return None;
        }
        not_on.insert(instance.host);
        let unfit = |host: &&Host| !may_have(host, (guest, mobility), observed);
        not_on.extend(self.inventory.hosts().filter(unfit).map(|host| host.id));
        let within = Within::Gap(&instance.owner.project, least);
        self.host_for(within, instance.size, &InstanceHints { on: None, not_on }, observed).ok()
    }

    /// Whether an instance can still move to its destination: the host can take it, and isn't booked within
    /// `least` by the clock of the service that has chosen it.
    pub fn may_go_on_to(
        &self,
        (instance, to): (&Instance, HostId),
        least: SignedDuration,
        (observed, history): (&Observed, &History),
    ) -> bool {
        let Some(host) = self.inventory.host(to) else { return false };
        // Without the tolerance, a service with a fast clock would revert a choice that was just made, and so
        // on forever.
        let least = least.saturating_sub(FENCE_TOLERANCE).max(SignedDuration::ZERO);
        let within = Within::Gap(&instance.owner.project, least);
        self.fits(within, host, observed.hosts.get(&to)).is_ok()
            && failed_destinations(history, instance.id).all(|failed| failed != to)
    }
}

/// Whether the host meets the guest's requirements, and has no guest from which it must be kept apart.
fn may_have(host: &Host, (guest, mobility): (&Guest, &Mobility), observed: &Observed) -> bool {
    let shares_group = |other: &Guest| {
        let apart = other.mobility.iter().flat_map(|other| &other.apart);
        other.id != guest.id && apart.into_iter().any(|group| mobility.apart.contains(group))
    };
    let met = observed.hosts.get(&host.id).is_some_and(|seen| seen.guests.iter().any(shares_group));
    !met && mobility.requires.iter().all(|required| host.traits.contains(required))
}
