//! Moving preemptible instances to another gap instead of having them leave (PRE-06).

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
    /// Another host for an instance that is preempted, which nobody else has for longer than that, if its guest can be
    /// there before it would be asked to leave; of several the one that nobody has for longest. `observed` has
    /// [guests to come](super::guests_to_come) as well.
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

    /// Whether an instance can still be moved where it is to be: the host may have it, and nobody has it for longer
    /// than that, by the clock of whoever has chosen it.
    pub fn may_go_on_to(
        &self,
        (instance, to): (&Instance, HostId),
        least: SignedDuration,
        (observed, history): (&Observed, &History),
    ) -> bool {
        let Some(host) = self.inventory.host(to) else { return false };
        // What one has just chosen would else be taken back by whoever has a clock that is ahead, by turns forever.
        let least = least.saturating_sub(FENCE_TOLERANCE).max(SignedDuration::ZERO);
        let within = Within::Gap(&instance.owner.project, least);
        self.fits(within, host, observed.hosts.get(&to)).is_ok()
            && failed_destinations(history, instance.id).all(|failed| failed != to)
    }
}

/// Whether the host has what the guest requires, and nobody that it is kept apart from.
fn may_have(host: &Host, (guest, mobility): (&Guest, &Mobility), observed: &Observed) -> bool {
    let shares_group = |other: &Guest| {
        let apart = other.mobility.iter().flat_map(|other| &other.apart);
        other.id != guest.id && apart.into_iter().any(|group| mobility.apart.contains(group))
    };
    let met = observed.hosts.get(&host.id).is_some_and(|seen| seen.guests.iter().any(shares_group));
    !met && mobility.requires.iter().all(|required| host.traits.contains(required))
}
