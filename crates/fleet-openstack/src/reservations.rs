//! Preparation of reservations as a whole. Each has an aggregate of its name. An instance reservation also
//! has a private flavor, a resource class and, if it has an affinity, a server group, all as Blazar's users
//! know them. Each server with the flavor uses one of the class.
//!
//! The aggregate is created and marked first and deleted last, so anything that a crash leaves behind is
//! found. Once all objects exist, the aggregate notes the recipe that they were made for.

use std::collections::BTreeMap;

use fleet::{FleetError, LeaseFacts, OperationKey, Outcome};
use leases::ids::ReservationId;
use leases::plan::Recipe;
use leases::preemption::PROPERTY;
use leases::terms::{Affinity, Flavor as LeasedFlavor, FlavorSize, InstanceSize, ReservationTerms};

use crate::OpenStackFleet;
use crate::cloud::nova::NewFlavor;
use crate::drift::{Remedy, specs_of};
use crate::fence::Whole;
use crate::ids::{FLAVOR, resource_class};
use crate::isolation::copy_of;
use crate::pools::{self, Pool};
use crate::turns::Turn;
use crate::wire::{Aggregate, Flavor};

type Answer = Result<Outcome, FleetError>;

impl OpenStackFleet {
    pub(crate) async fn prepare_reservation(&self, reservation: ReservationId, key: &OperationKey) -> Answer {
        let (_, recipe) = wanted(reservation, key)?;
        let whole = if recipe == Recipe::default() { Whole::Hosts } else { Whole::Slots };
        self.ensured_all(whole, reservation, key, true).await?;
        self.memory().watch.undone(|remedy| *remedy == Remedy::Prepare(reservation));
        Ok(Outcome::Done)
    }

    /// The aggregate of a reservation that is completely prepared. If `known`, the aggregates that were
    /// looked at, doesn't have one with a note of that, prepares the reservation.
    pub(crate) async fn ensured(
        &self,
        known: &[Aggregate],
        whole: Whole,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Aggregate, FleetError> {
        let (_, recipe) = wanted(reservation, key)?;
        let recipe = if whole == Whole::Hosts { Recipe::default() } else { recipe };
        match self.complete(known, reservation, recipe) {
            Some(pool) => Ok(pool.clone()),
            None => self.ensured_all(whole, reservation, key, false).await,
        }
    }

    /// The reservation's aggregate among these, if it notes that preparation is complete.
    fn complete<'a>(
        &self,
        known: &'a [Aggregate],
        reservation: ReservationId,
        recipe: Recipe,
    ) -> Option<&'a Aggregate> {
        let mut own = known.iter().filter_map(Pool::of).filter(|pool| pool.reservation == reservation);
        let found = own.find(|pool| pool.complete(&self.settings.fence) == Some(recipe))?;
        Some(found.aggregate)
    }

    /// Creates missing objects, including objects that were deleted by another program. With `again`, also
    /// restores changed objects, regardless of the notes.
    async fn ensured_all(
        &self,
        whole: Whole,
        reservation: ReservationId,
        key: &OperationKey,
        again: bool,
    ) -> Result<Aggregate, FleetError> {
        let (facts, recipe) = wanted(reservation, key)?;
        let recipe = if whole == Whole::Hosts { Recipe::default() } else { recipe };
        let fence = &self.settings.fence;
        let _turn = self.turns.of(Turn::Reservation(reservation)).await;
        let name = reservation.to_string();
        let zone = pools::wanted_zone(reservation, whole);
        // Creating it is cheaper than listing: most often it doesn't exist, and a list includes the
        // aggregates of all leases.
        let (pool, fresh) = self.cloud.ensure_aggregate(&name, zone.as_deref()).await?;
        let complete = self.complete(std::slice::from_ref(&pool), reservation, recipe).is_some();
        if complete && !again {
            return Ok(pool);
        }
        let project = &facts.project.0;
        let of_fence = fence.of_reservation(&pool, reservation, whole, project);
        let of_fence = of_fence.into_iter().map(|(key, value)| (key, Some(value)));
        if whole == Whole::Hosts {
            let mut metadata = pools::whole_hosts(project, key.lease);
            if let Some(named) = fence.flavors() {
                metadata.extend(self.flavors_of_hosts(reservation, &pool, named, key, project).await?);
            }
            metadata.extend(pools::completion(recipe, None).into_iter().chain(of_fence));
            self.cloud.set_metadata(pool.id, &metadata).await?;
            self.rezone(&pool, zone).await?;
            return Ok(pool);
        }
        let mut metadata = pools::instances(reservation, project, key.lease);
        metadata.extend(of_fence);
        if !complete {
            metadata.extend(pools::incompletion());
        }
        self.mark(&pool, metadata).await?;
        self.rezone(&pool, zone).await?;
        self.make_flavor(reservation, facts, recipe).await?;
        if !fresh {
            self.cloud.restrict_flavor(&name, project).await?;
        }
        let group = self.server_group(&pool, fresh, recipe.affinity).await?;
        let completion = pools::completion(recipe, group.as_deref());
        if complete {
            self.mark(&pool, completion).await?;
        } else {
            self.cloud.set_metadata(pool.id, &completion).await?;
        }
        Ok(pool)
    }

    /// Puts the aggregate into that availability zone, in case its zone was changed. Nova refuses to do so
    /// while its hosts have servers.
    async fn rezone(&self, pool: &Aggregate, zone: Option<String>) -> Result<(), FleetError> {
        if pool.availability_zone == zone {
            return Ok(());
        }
        let metadata = BTreeMap::from([("availability_zone".to_owned(), zone)]);
        self.cloud.set_metadata(pool.id, &metadata).await
    }

    /// Creates the flavors of a host reservation and returns the metadata that must still be written. Flavors
    /// are noted before they are created, so they are found even after a crash.
    async fn flavors_of_hosts(
        &self,
        reservation: ReservationId,
        pool: &Aggregate,
        named: &[String],
        key: &OperationKey,
        project: &str,
    ) -> Result<BTreeMap<String, Option<String>>, FleetError> {
        let flavors = self.flavors_to_copy(named).await?;
        let ids: Vec<String> = flavors.iter().map(|flavor| copy_of(reservation, &flavor.id)).collect();
        let before: Vec<String> = pools::flavors(pool).map(str::to_owned).collect();
        for id in before.iter().filter(|id| !ids.contains(id)) {
            self.cloud.delete_flavor(id).await?;
        }
        let noted = pools::note_flavors(pool, &ids);
        let mut metadata = pools::whole_hosts(project, key.lease);
        metadata.extend(noted.clone());
        self.mark(pool, metadata).await?;
        self.copy_flavors(reservation, pool, flavors, project, !before.is_empty()).await?;
        Ok(noted)
    }

    async fn make_flavor(
        &self,
        reservation: ReservationId,
        facts: &LeaseFacts,
        recipe: Recipe,
    ) -> Result<(), FleetError> {
        let (id, class) = (reservation.to_string(), resource_class(reservation));
        let name = format!("{FLAVOR}{id}");
        let of_size = NewFlavor {
            id: &id,
            name: &name,
            vcpus: recipe.size.vcpus,
            memory_mib: recipe.size.memory_mib,
            disk_gib: recipe.size.disk_gib,
            ephemeral_gib: 0,
            swap_mib: 0,
        };
        let (flavor, mut specs) = match facts.reservation.as_ref().map(|(_, terms)| terms) {
            Some(ReservationTerms::Flavor(asked)) => {
                let leased = &asked.flavor;
                match self.cloud.flavor(&leased.id).await?.filter(|now| asks_for(now, leased)) {
                    Some(now) => (copied(&now, of_size), now.extra_specs),
                    None => rebuilt(leased, of_size),
                }
            }
            Some(ReservationTerms::Instances(asked)) => {
                (NewFlavor { ephemeral_gib: asked.ephemeral_gib(), ..of_size }, asked.extra_specs())
            }
            _ => (of_size, BTreeMap::new()),
        };
        // Servers with this flavor are part of the lease, and not preemptible.
        specs.remove(PROPERTY);
        specs.extend(specs_of(reservation, &self.settings.fence));
        self.cloud.ensure_class(&class).await?;
        self.cloud.ensure_flavor(flavor, &specs).await?;
        // Servers find no host until the aggregate has its first one.
        self.cloud.allow_flavor(&id, &facts.project.0).await
    }

    /// The server group for that affinity. `None` without an affinity. An earlier attempt might have created
    /// the group without noting it.
    async fn server_group(
        &self,
        pool: &Aggregate,
        fresh: bool,
        affinity: Affinity,
    ) -> Result<Option<String>, FleetError> {
        let policy = match affinity {
            Affinity::Any => return Ok(None),
            Affinity::OneHost => "affinity",
            Affinity::DistinctHosts => "anti-affinity",
        };
        let name = format!("{FLAVOR}{}", pool.name);
        if let Some(noted) = pools::server_group(pool) {
            let named = self.cloud.server_groups(&name).await?;
            let is_own = named.iter().any(|known| known == noted);
            if is_own || (named.is_empty() && self.cloud.has_server_group(noted).await?) {
                return Ok(Some(noted.to_owned()));
            }
        }
        self.cloud.ensure_server_group(&name, policy, fresh).await.map(Some)
    }

    pub(crate) async fn finish_reservation(&self, reservation: ReservationId) -> Answer {
        let _turn = self.turns.of(Turn::Reservation(reservation)).await;
        let fence = &self.settings.fence;
        let (name, zone) = (reservation.to_string(), pools::zone_of(reservation));
        let all = self.cloud.aggregates().await?;
        let gate = all.iter().find(|aggregate| aggregate.name == pools::gate_of(reservation)).cloned();
        let Some(pool) = all.into_iter().find(|aggregate| aggregate.name == name) else {
            return Ok(Outcome::Done);
        };
        let noted = Pool::of(&pool).and_then(|pool| pool.slot_hosts().next());
        let waiting = gate.as_ref().and_then(|gate| gate.hosts.first());
        if let Some(host) = pool.hosts.first().or(waiting).map(String::as_str).or(noted) {
            return Err(FleetError::Unavailable(format!("host {host} is still in aggregate {name}")));
        }
        if pool.availability_zone.as_deref() == Some(&zone) {
            self.clear_isolation(&pool).await?;
        } else {
            let complete = Pool::of(&pool).and_then(|pool| pool.complete(fence)).is_some();
            let groups = match pools::server_group(&pool) {
                Some(noted) => vec![noted.to_owned()],
                None if complete => Vec::new(),
                // A crash might have happened before it was noted.
                None => self.cloud.server_groups(&format!("{FLAVOR}{name}")).await?,
            };
            for group in groups {
                self.cloud.delete_server_group(&group).await?;
            }
            self.cloud.delete_flavor(&name).await?;
            self.cloud.delete_class(&resource_class(reservation)).await?;
        }
        if let Some(gate) = gate {
            self.cloud.delete_aggregate(gate.id).await?;
        }
        self.cloud.delete_aggregate(pool.id).await?;
        Ok(Outcome::Done)
    }
}

fn copied<'a>(now: &Flavor, named: NewFlavor<'a>) -> NewFlavor<'a> {
    NewFlavor {
        vcpus: now.vcpus,
        memory_mib: now.ram,
        disk_gib: now.disk,
        ephemeral_gib: now.ephemeral,
        swap_mib: now.swap,
        ..named
    }
}

/// A flavor with the sizes and extra specs that were leased, for a flavor that has been changed or deleted in
/// Nova since then.
fn rebuilt<'a>(leased: &LeasedFlavor, of_size: NewFlavor<'a>) -> (NewFlavor<'a>, BTreeMap<String, String>) {
    let resources = leased.resources();
    let others = resources.other.iter().map(|(class, amount)| (format!("resources:{}", class.0), *amount));
    // Nova requires every flavor to have a vCPU, even for a lease without vCPUs.
    let none = (resources.vcpus == 0).then(|| ("resources:VCPU".to_owned(), 0));
    let traits = leased.traits();
    let required = traits.required.iter().map(|name| (format!("trait:{name}"), "required".to_owned()));
    let forbidden = traits.forbidden.iter().map(|name| (format!("trait:{name}"), "forbidden".to_owned()));
    let amounts = others.chain(none).map(|(key, amount)| (key, amount.to_string()));
    (NewFlavor { vcpus: of_size.vcpus.max(1), ..of_size }, amounts.chain(required).chain(forbidden).collect())
}

/// Whether the flavor requests exactly the leased resources.
fn asks_for(flavor: &Flavor, leased: &LeasedFlavor) -> bool {
    let instance = InstanceSize::new(flavor.vcpus, flavor.ram, flavor.disk);
    let now = instance.and_then(|instance| {
        let size = FlavorSize { instance, ephemeral_gib: flavor.ephemeral };
        LeasedFlavor::new(leased.id.clone(), size, &flavor.extra_specs)
    });
    now.is_ok_and(|now| now == *leased)
}

/// Facts about the lease, and the recipe of the reservation.
fn wanted(reservation: ReservationId, key: &OperationKey) -> Result<(&LeaseFacts, Recipe), FleetError> {
    let facts = key.facts.as_deref();
    let wanted = facts.and_then(|facts| {
        let (_, terms) = facts.reservation.as_ref().filter(|(id, _)| *id == reservation)?;
        Some((facts, Recipe::of(terms)?))
    });
    let unknown = || FleetError::Refused(format!("reservation {reservation} is not known any more"));
    wanted.ok_or_else(unknown)
}
