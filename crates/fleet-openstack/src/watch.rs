//! Memory between comparisons of the cloud with the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::{Difference, Wanted};
use leases::ids::{HostId, ReservationId};
use leases::plan::{ObservedHost, Prepared};

use crate::drift::{self, Found, Remedy};
use crate::pools;
use crate::sight::Sight;
use crate::wire::Provider;

/// An object that takes a request of its own: the access to a flavor, or the inventories of a provider.
#[derive(Debug)]
pub(crate) enum Read {
    Access(String),
    Slots(Provider),
}

/// Memory from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) wanted: Arc<Wanted>,
    /// Differences found by the last look.
    found: BTreeSet<Found>,
    /// Remedies for the differences that the last two looks have both found.
    due: BTreeSet<Remedy>,
    /// Projects with access to a flavor, as last read.
    pub(crate) access: BTreeMap<String, BTreeSet<String>>,
    /// Generation and total of each class of the providers for slots, as last read.
    pub(crate) slots: BTreeMap<String, (u64, BTreeMap<String, u64>)>,
    /// The last flavor in the rotation that reads access lists.
    turn: String,
}

impl Watch {
    /// Chooses at most `most` of these flavors and providers to read. Providers are read when their
    /// generation has changed, and leave half of the reads to flavors. Flavors with known differences come
    /// first, then the remaining flavors in rotation.
    pub(crate) fn choose(
        &mut self,
        flavors: &BTreeSet<String>,
        providers: Vec<Provider>,
        most: usize,
    ) -> Vec<Read> {
        self.access.retain(|id, _| flavors.contains(id));
        let known = |provider: &Provider| self.slots.get(&provider.name).map(|(generation, _)| *generation);
        let changed = providers.into_iter().filter(|provider| known(provider) != Some(provider.generation));
        let mut providers: Vec<Read> = changed.map(Read::Slots).collect();
        let suspects: BTreeSet<&String> = flavors
            .iter()
            .filter(|id| self.found.iter().any(|found| found.difference.what.contains(id.as_str())))
            .collect();
        let others = flavors.range(self.turn.clone()..).filter(|id| **id > self.turn);
        let others = others.chain(flavors.iter().filter(|id| **id <= self.turn));
        let others: Vec<&String> = others.filter(|id| !suspects.contains(id)).collect();
        let rest = providers.split_off(providers.len().min(most / 2));
        let room = most.saturating_sub(providers.len());
        let mut flavors: Vec<&String> = suspects.into_iter().chain(others).collect();
        flavors.truncate(room);
        if let Some(last) = flavors.last() {
            self.turn = (*last).clone();
        }
        let flavors = flavors.into_iter().cloned().map(Read::Access);
        let mut chosen: Vec<Read> = providers.into_iter().chain(flavors).chain(rest).collect();
        chosen.truncate(most);
        chosen
    }

    /// Records the differences that a look has found, and the remedies that are now due.
    pub(crate) fn note(&mut self, found: Vec<Found>) {
        let found: BTreeSet<Found> = found.into_iter().collect();
        for Found { difference, .. } in found.difference(&self.found) {
            let Difference { what, reservation, is_undone, .. } = difference;
            let reservation = reservation.map(|id| id.to_string());
            tracing::warn!(what, reservation, is_undone, "cloud differs from the store");
        }
        for Found { difference, .. } in self.found.difference(&found) {
            tracing::info!(what = difference.what, "cloud agrees with the store again");
        }
        self.due = found.intersection(&self.found).map(|found| found.remedy).collect();
        self.found = found;
    }

    /// Forgets the remedies that a step has applied. If the difference is still there, the next look finds it
    /// again.
    pub(crate) fn undone(&mut self, which: impl Fn(&Remedy) -> bool) {
        self.due.retain(|remedy| !which(remedy));
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        self.found.iter().map(|found| found.difference.clone()).collect()
    }

    /// Whether the keys of the free pool must be set.
    pub(crate) fn frees(&self) -> bool {
        self.due.contains(&Remedy::FreePool)
    }

    /// Reports the number of slots that exist where slots are due to be granted again, so that the step is
    /// planned.
    pub(crate) fn doubt(&self, hosts: &mut BTreeMap<HostId, ObservedHost>) {
        for remedy in &self.due {
            if let Remedy::Grant(host, reservation, seen) = remedy
                && let Some(host) = hosts.get_mut(host)
            {
                host.slots.insert(*reservation, *seen);
            }
        }
    }

    /// Reports stored reservations as incomplete if they are due to be prepared again, and otherwise as
    /// complete.
    pub(crate) fn doubt_reservations(&self, sight: &Sight, prepared: &mut BTreeMap<ReservationId, Prepared>) {
        for (reservation, _, aggregate) in drift::prepared(&self.wanted, &sight.aggregates) {
            if let Some(prepared) = prepared.get_mut(&reservation) {
                let due = self.due.contains(&Remedy::Prepare(reservation));
                prepared.complete = pools::noted_recipe(aggregate).filter(|_| !due);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flavors(count: usize) -> BTreeSet<String> {
        (0..count).map(|number| format!("f{number:03}")).collect()
    }

    fn providers(count: usize) -> Vec<Provider> {
        let provider =
            |number| Provider { uuid: format!("u{number}"), name: format!("p{number}"), generation: 1 };
        (0..count).map(provider).collect()
    }

    fn names(read: Vec<Read>) -> Vec<String> {
        let name = |read| match read {
            Read::Access(id) => id,
            Read::Slots(provider) => provider.name,
        };
        read.into_iter().map(name).collect()
    }

    #[test]
    fn flavors_have_half_of_the_reads_in_turn_and_providers_are_read_when_they_have_changed() {
        let mut watch = Watch::default();
        let (some, many) = (flavors(5), providers(9));
        assert_eq!(names(watch.choose(&some, many.clone(), 4)), ["p0", "p1", "f000", "f001"]);
        assert_eq!(names(watch.choose(&some, many, 4)), ["p0", "p1", "f002", "f003"]);
        watch.slots.insert("p0".to_owned(), (1, BTreeMap::new()));
        assert_eq!(names(watch.choose(&some, providers(1), 4)), ["f004", "f000", "f001", "f002"]);
        watch.slots.insert("p0".to_owned(), (0, BTreeMap::new()));
        assert_eq!(names(watch.choose(&BTreeSet::new(), providers(3), 4)), ["p0", "p1", "p2"]);
        assert_eq!(watch.choose(&some, providers(9), usize::MAX).len(), 14);
    }

    #[test]
    fn a_flavor_that_was_different_is_read_first() {
        let mut watch = Watch::default();
        let some = flavors(9);
        let what = "projects with access to flavor f007: none, expected p".to_owned();
        let difference = Difference { reservation: None, host: None, what, for_owner: "", is_undone: true };
        watch.note(vec![Found { difference, remedy: Remedy::None }]);
        for rest in ["f000", "f001"] {
            assert_eq!(names(watch.choose(&some, Vec::new(), 2)), ["f007", rest]);
        }
    }
}
