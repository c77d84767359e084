//! Compares the objects of leases in the cloud with the store. Each look at the whole cloud reads lists, and
//! in rotation some of the objects that take a request each. A difference is logged when it is first seen and
//! undone if the next look still finds it, so an operator that has changed an object on purpose is warned
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::{Difference, FleetError, Wanted};
use futures::{StreamExt as _, TryStreamExt as _, future, stream, try_join};

use crate::OpenStackFleet;
use crate::drift::{self, Found, Remedy, Seen};
use crate::ids::slots_provider;
use crate::watch::Read;
use crate::wire::Aggregate;

/// Number of objects that a look reads with a request each.
pub(crate) const READS: usize = 50;

/// Number of these requests at the same time.
const AT_ONCE: usize = 8;

impl OpenStackFleet {
    /// Aggregates, with the owners that the store has.
    pub(crate) async fn aggregates(&self) -> Result<Vec<Aggregate>, FleetError> {
        let seen = self.cloud.aggregates().await?;
        Ok(drift::as_stored(&self.wanted(), seen))
    }

    pub(crate) fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.memory().watch.wanted)
    }

    /// Compares the cloud with the store, based on the listed aggregates. If a request fails, the last result
    /// stays.
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

    /// All differences. Reads every object.
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
