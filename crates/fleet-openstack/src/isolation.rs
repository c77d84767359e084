//! Isolated aggregates: hosts have traits that servers must require, and host leases have flavors that
//! require them. Does nothing for fences without traits.

use std::collections::{BTreeMap, BTreeSet};

use fleet::FleetError;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use leases::ids::ReservationId;
use leases::preemption::PROPERTY;

use crate::OpenStackFleet;
use crate::cloud::nova::NewFlavor;
use crate::fence::{FREE, required, trait_of};
use crate::ids::FLAVOR;
use crate::pools::Membership;
use crate::sight::Names;
use crate::wire::{Aggregate, Flavor};
use crate::{Look, pools};

/// Maximum number of flavors of a host lease. Each costs three requests to create.
const MOST_FLAVORS: usize = 50;

/// Maximum length of a flavor's identifier or name, characters.
const LONGEST: usize = 255;

/// Number of flavors created, or of changed hosts read, concurrently.
const AT_ONCE: usize = 8;

impl OpenStackFleet {
    fn isolates(&self) -> bool {
        self.settings.fence.flavors().is_some()
    }

    /// Adds a trait to the host, if the fence uses traits.
    pub(crate) async fn give_trait(&self, names: &Names, name: &str) -> Result<(), FleetError> {
        if !self.isolates() {
            return Ok(());
        }
        let provider = self.host_provider(names).await?;
        self.cloud.ensure_trait(name).await?;
        self.cloud.set_trait(&provider.uuid, name, true).await
    }

    /// Removes a trait from the host, if the fence uses traits.
    pub(crate) async fn take_trait(&self, names: &Names, name: &str) -> Result<(), FleetError> {
        if !self.isolates() {
            return Ok(());
        }
        match self.cloud.provider(&names.hypervisor).await? {
            Some(provider) => self.cloud.set_trait(&provider.uuid, name, false).await,
            None => Ok(()),
        }
    }

    /// Gives the host to the reservation. The host must have no server of another lease or project, and must
    /// not admit new ones.
    pub(crate) async fn let_owner_in(&self, pool: &Aggregate, look: &Look) -> Result<(), FleetError> {
        if self.isolates() {
            let name = trait_of(pool);
            self.give_trait(&look.names, &name).await?;
            let (key, value) = required(&name);
            self.mark(pool, BTreeMap::from([(key, Some(value))])).await?;
        }
        self.join(pool, look).await
    }

    /// Adds this fence's traits and metadata to hosts that were handed over with another fence.
    pub(crate) async fn isolate_all(&self, aggregates: &[Aggregate]) -> Result<(), FleetError> {
        if !self.isolates() {
            return Ok(());
        }
        let hypervisors = self.hypervisors().await?;
        let mut wanted: Vec<(Names, String)> = Vec::new();
        for hypervisor in hypervisors {
            let names = Names { service: hypervisor.service.host, hypervisor: hypervisor.hostname };
            let membership = Membership::of(aggregates, &self.settings.free_pool, &names.service);
            let adopted = membership.free || membership.holder.is_some() || membership.awaited_by.is_some();
            wanted.extend(adopted.then(|| (names.clone(), FREE.to_owned())));
            if let Some(pool) = membership.holder {
                let name = trait_of(pool.aggregate);
                let (key, value) = required(&name);
                self.mark(pool.aggregate, BTreeMap::from([(key, Some(value))])).await?;
                wanted.push((names, name));
            }
        }
        let of_service = |aggregate: &&Aggregate| {
            aggregate.name == self.settings.free_pool || pools::is_made_here(aggregate)
        };
        let providers = self.cloud.provider_ids().await?;
        let by_service: BTreeMap<&str, &str> =
            wanted.iter().map(|(names, _)| (names.service.as_str(), names.hypervisor.as_str())).collect();
        for aggregate in aggregates.iter().filter(of_service) {
            let members = self.cloud.members(&aggregate.uuid).await?;
            let hosts = aggregate.hosts.iter().filter_map(|host| by_service.get(host.as_str()));
            for provider in hosts.filter_map(|host| providers.get(*host)).filter(|id| !members.contains(*id))
            {
                self.cloud.ensure_member(provider, &aggregate.uuid).await?;
            }
        }
        let names: BTreeSet<&String> = wanted.iter().map(|(_, name)| name).collect();
        let mut have: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
        for name in names {
            self.cloud.ensure_trait(name).await?;
            have.insert(name, self.cloud.providers_with(name).await?);
        }
        let missing = wanted.iter().filter_map(|(names, name)| {
            let provider = providers.get(&names.hypervisor)?;
            (!have[name].contains(provider)).then(|| (provider.clone(), name.clone()))
        });
        let missing: Vec<(String, String)> = missing.collect();
        let given = missing.into_iter();
        let given = given.map(async |(provider, name)| self.cloud.set_trait(&provider, &name, true).await);
        stream::iter(given).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Flavors that a host reservation gets copies of: the named ones or, without names, the smallest public
    /// flavors that don't mark servers as preemptible.
    pub(crate) async fn flavors_to_copy(&self, named: &[String]) -> Result<Vec<Flavor>, FleetError> {
        let mut all = self.cloud.flavors().await?;
        all.retain(|flavor| !flavor.name.starts_with(FLAVOR));
        if named.is_empty() {
            all.retain(|flavor| flavor.public && !flavor.extra_specs.contains_key(PROPERTY));
            all.sort_by(|one, other| {
                let size = |flavor: &Flavor| (flavor.vcpus, flavor.ram, flavor.disk);
                (size(one), &one.id).cmp(&(size(other), &other.id))
            });
            all.truncate(MOST_FLAVORS);
            return Ok(all);
        }
        let is = |flavor: &Flavor, name: &String| flavor.id == *name || flavor.name == *name;
        if let Some(name) = named.iter().find(|name| !all.iter().any(|flavor| is(flavor, name))) {
            return Err(FleetError::Refused(format!(
                "Nova has no flavor {name}, of openstack.lease_flavors"
            )));
        }
        all.retain(|flavor| named.iter().any(|name| is(flavor, name)));
        Ok(all)
    }

    /// Copies flavors for servers on the hosts of a reservation. Only that project may use the copies.
    /// `again`: some might already exist.
    pub(crate) async fn copy_flavors(
        &self,
        reservation: ReservationId,
        pool: &Aggregate,
        flavors: Vec<Flavor>,
        project: &str,
        again: bool,
    ) -> Result<(), FleetError> {
        self.cloud.ensure_trait(&trait_of(pool)).await?;
        let made = stream::iter(flavors.into_iter().map(async |flavor| {
            let id = copy_of(reservation, &flavor.id);
            let copy = NewFlavor {
                id: &id,
                name: &format!("{FLAVOR}{}", copy_of(reservation, &flavor.name)),
                vcpus: flavor.vcpus,
                memory_mib: flavor.ram,
                disk_gib: flavor.disk,
                ephemeral_gib: flavor.ephemeral,
                swap_mib: flavor.swap,
            };
            let mut specs = flavor.extra_specs;
            specs.remove(PROPERTY);
            specs.extend([required(&trait_of(pool))]);
            self.cloud.ensure_flavor(copy, &specs).await?;
            self.cloud.allow_flavor(&id, project).await?;
            if again { self.cloud.restrict_flavor(&id, project).await } else { Ok(()) }
        }));
        made.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Deletes the flavors and the trait of a host reservation.
    pub(crate) async fn clear_isolation(&self, pool: &Aggregate) -> Result<(), FleetError> {
        let flavors: Vec<String> = pools::flavors(pool).map(str::to_owned).collect();
        let deleted = stream::iter(flavors.into_iter().map(async |id| self.cloud.delete_flavor(&id).await));
        deleted.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        if !self.isolates() {
            return Ok(());
        }
        let name = trait_of(pool);
        // A crash might have happened after a host left the aggregate and before it lost the trait.
        for provider in self.cloud.providers_with(&name).await? {
            self.cloud.set_trait(&provider, &name, false).await?;
        }
        self.cloud.delete_trait(&name).await
    }
}

/// Identifier or name of a reservation's copy of a flavor, cut to Nova's limit.
pub(crate) fn copy_of(reservation: ReservationId, flavor: &str) -> String {
    let room = LONGEST - FLAVOR.len();
    format!("{reservation}.{flavor}").chars().take(room).collect()
}
