//! Compares the objects of leases in the cloud with the store. Each look at the whole cloud reads lists, and some of the objects
//! that must be read one by one, in rotation. A difference is logged when it is first seen and undone if the next look still
//! finds it, so an operator who has changed something on purpose reads about it first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::{Difference, FleetError, Wanted};
use futures::{StreamExt as _, TryStreamExt as _, future, stream, try_join};
use leases::ids::{HostId, ReservationId};
use leases::plan::{ObservedHost, Prepared};

use crate::OpenStackFleet;
use crate::drift::{self, Found, Remedy, Seen};
use crate::ids::slots_provider;
use crate::pools;
use crate::sight::Sight;
use crate::wire::{Aggregate, Provider};

/// How many objects a look reads one by one.
pub(crate) const READS: usize = 50;

/// How many of them at once.
const AT_ONCE: usize = 8;

/// An object that is read on its own: the access to a flavor, or the inventories of a provider.
#[derive(Debug)]
pub(crate) enum Read {
    Access(String),
    Slots(Provider),
}

/// Memory from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) wanted: Arc<Wanted>,
    /// Differences that the last look has found.
    found: BTreeSet<Found>,
    /// Remedies of differences that two looks in a row have found.
    due: BTreeSet<Remedy>,
    /// The projects that may use a flavor, when that was last read.
    access: BTreeMap<String, BTreeSet<String>>,
    /// What a provider of slots had of each class, and its generation then.
    slots: BTreeMap<String, (u64, BTreeMap<String, u64>)>,
    /// The last flavor whose access was read in its turn.
    turn: String,
}

impl Watch {
    /// Chooses at most `most` of these flavors and providers to read. Providers are read when their generation has changed, and
    /// leave half of the reads to flavors. Flavors that were different come first, then the others in rotation.
    fn choose(&mut self, flavors: &BTreeSet<String>, providers: Vec<Provider>, most: usize) -> Vec<Read> {
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

    /// Notes the differences of a look, and which of them are due to be undone.
    fn note(&mut self, found: Vec<Found>) {
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

    /// A step has undone a difference. If it is still there, the next look finds it again.
    pub(crate) fn undone(&mut self, which: impl Fn(&Remedy) -> bool) {
        self.due.retain(|remedy| !which(remedy));
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        self.found.iter().map(|found| found.difference.clone()).collect()
    }

    /// Whether the free pool's keys are to be set.
    fn frees(&self) -> bool {
        self.due.contains(&Remedy::FreePool)
    }

    /// Reports slots as they are where they are due to be granted again, so that the step is planned.
    pub(crate) fn doubt(&self, hosts: &mut BTreeMap<HostId, ObservedHost>) {
        for remedy in &self.due {
            if let Remedy::Grant(host, reservation, seen) = remedy
                && let Some(host) = hosts.get_mut(host)
            {
                host.slots.insert(*reservation, *seen);
            }
        }
    }

    /// Reports stored reservations as incomplete where they are due to be prepared again, and the others as complete.
    pub(crate) fn doubt_reservations(&self, sight: &Sight, prepared: &mut BTreeMap<ReservationId, Prepared>) {
        for (reservation, _, aggregate) in drift::prepared(&self.wanted, &sight.aggregates) {
            if let Some(prepared) = prepared.get_mut(&reservation) {
                let due = self.due.contains(&Remedy::Prepare(reservation));
                prepared.complete = pools::noted_recipe(aggregate).filter(|_| !due);
            }
        }
    }
}

impl OpenStackFleet {
    /// Aggregates, with owners as the store has them.
    pub(crate) async fn aggregates(&self) -> Result<Vec<Aggregate>, FleetError> {
        let seen = self.cloud.aggregates().await?;
        Ok(drift::as_stored(&self.wanted(), seen))
    }

    pub(crate) fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.memory().watch.wanted)
    }

    /// Compares the cloud, whose aggregates were listed, with the store. Without an answer nothing is concluded.
    pub(crate) async fn watch(&self, seen: &[Aggregate]) {
        match self.found(seen, READS).await {
            Ok(found) => self.memory().watch.note(found),
            Err(error) => tracing::warn!(%error, "cloud not compared with the store"),
        }
        if self.memory().watch.frees() {
            match self.free_pool(seen).await {
                Ok(_) => self.memory().watch.undone(|remedy| *remedy == Remedy::FreePool),
                Err(error) => tracing::warn!(%error, "keys of the free pool not set"),
            }
        }
    }

    /// All differences. Every object is read for that.
    pub(crate) async fn differences_now(&self) -> Result<Vec<Difference>, FleetError> {
        let seen = self.cloud.aggregates().await?;
        let found = self.found(&seen, usize::MAX).await?;
        Ok(found.into_iter().map(|found| found.difference).collect())
    }

    async fn found(&self, aggregates: &[Aggregate], most: usize) -> Result<Vec<Found>, FleetError> {
        let wanted = self.wanted();
        let names = self.memory().all_names().clone();
        let mut wanted_flavors: BTreeSet<String> = BTreeSet::new();
        let mut wanted_providers: BTreeSet<String> = BTreeSet::new();
        let mut wants_groups = false;
        for (_, want, aggregate) in drift::prepared(&wanted, aggregates) {
            wanted_flavors.extend(drift::flavors_of(want, aggregate));
            let hosts = want.slots.keys().filter_map(|host| names.get(host));
            wanted_providers.extend(hosts.map(|names| slots_provider(&names.hypervisor)));
            wants_groups |= drift::has_group(want);
        }
        let cloud = &self.cloud;
        let (flavors, groups, mut providers) = try_join!(
            async { if wanted_flavors.is_empty() { Ok(Vec::new()) } else { cloud.flavors().await } },
            async { if wants_groups { cloud.all_server_groups().await } else { Ok(Vec::new()) } },
            async { if wanted_providers.is_empty() { Ok(Vec::new()) } else { cloud.providers().await } },
        )?;
        let flavors: BTreeMap<_, _> = flavors.into_iter().map(|flavor| (flavor.id.clone(), flavor)).collect();
        let groups: BTreeMap<_, _> = groups.into_iter().map(|group| (group.id, group.name)).collect();
        wanted_flavors.retain(|id| flavors.contains_key(id));
        providers.retain(|provider| wanted_providers.contains(&provider.name));
        {
            let watch = &mut self.memory().watch;
            let there: BTreeSet<&String> = providers.iter().map(|provider| &provider.name).collect();
            watch.slots.retain(|name, _| there.contains(name));
            let gone = wanted_providers.iter().filter(|name| !there.contains(name));
            watch.slots.extend(gone.map(|name| (name.clone(), (0, BTreeMap::new()))));
        }
        let chosen = self.memory().watch.choose(&wanted_flavors, providers, most);
        stream::iter(chosen.into_iter().map(|read| self.read(read)))
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| future::ready(Ok(())))
            .await?;
        let (access, slots) = {
            let watch = &self.memory().watch;
            let slots = watch.slots.iter().map(|(name, (_, slots))| (name.clone(), slots.clone()));
            (watch.access.clone(), slots.collect())
        };
        let seen = Seen {
            aggregates,
            free_pool: &self.settings.free_pool,
            fence: &self.settings.fence,
            names: &names,
            flavors: &flavors,
            access: &access,
            groups: &groups,
            slots: &slots,
        };
        Ok(drift::compare(&wanted, seen))
    }

    async fn read(&self, read: Read) -> Result<(), FleetError> {
        match read {
            Read::Access(id) => {
                let projects = self.cloud.projects_of_flavor(&id).await?;
                self.memory().watch.access.insert(id, projects);
            }
            Read::Slots(provider) => {
                let inventories = self.cloud.inventories(&provider.uuid).await?;
                let totals = inventories.into_iter().map(|(class, inventory)| (class, inventory.total));
                let seen = (provider.generation, totals.collect());
                self.memory().watch.slots.insert(provider.name, seen);
            }
        }
        Ok(())
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
