//! Over-commitment of leased hosts: allocation ratios of their inventories in Placement.
//!
//! The previous ratio is noted in the reservation's aggregate first, and restored before the host leaves the
//! aggregate. Where `nova.conf` sets a ratio, `nova-compute` restores its own within a minute. The driver
//! checks for that when an operator asks.

use std::collections::{BTreeMap, BTreeSet};

use fleet::{FleetError, Outcome};
use leases::ids::{HostId, ReservationId};
use leases::lease_pool::{Ratio, Ratios};
use leases::plan::Place;

use crate::pools::Pool;
use crate::ratios::{CPU, Note, RAM, has_notes};
use crate::sight::Names;
use crate::wire::Inventory;
use crate::{Look, OpenStackFleet};

impl OpenStackFleet {
    pub(crate) async fn set_host_ratios(
        &self,
        host: HostId,
        reservation: ReservationId,
        ratios: Ratios,
    ) -> Result<Outcome, FleetError> {
        let look = self.look_at(host).await?;
        let pools = look.aggregates().iter().filter_map(Pool::of);
        let pool = pools.filter(|pool| pool.whole).find(|pool| pool.reservation == reservation);
        if let Some(pool) = pool.filter(|_| look.place == Some(Place::Held(reservation))) {
            self.over_commit(&look, &pool, ratios).await?;
        }
        Ok(Outcome::Done)
    }

    /// Sets the host's ratios. A ratio of `None` restores the host's ratio from before it joined the pool.
    pub(crate) async fn over_commit(
        &self,
        look: &Look,
        pool: &Pool<'_>,
        ratios: Ratios,
    ) -> Result<(), FleetError> {
        let host = look.host();
        let both = [(CPU, ratios.cpu), (RAM, ratios.ram)];
        let both = both.map(|(of, wanted)| (of, wanted, Note::of(pool, of[1], host)));
        let concerned = both.into_iter().filter(|(_, wanted, note)| wanted.is_some() || note.is_some());
        let concerned: Vec<_> = concerned.collect();
        if concerned.is_empty() {
            return Ok(());
        }
        let (provider, inventories) = self.inventories_of(&look.names).await?;
        for ([class, key, _], wanted, note) in concerned {
            let now = inventories.get(class).map(|inventory| inventory.allocation_ratio);
            let before = note.map_or(now.unwrap_or(1.0), |note| note.before);
            let noted = async |note: Option<Note>| {
                let note = BTreeMap::from([(format!("{key}{host}"), note.map(Note::text))]);
                self.cloud.set_metadata(pool.aggregate.id, &note).await
            };
            noted(Some(Note { ratio: None, before })).await?;
            // A host can lack the class, for example if all of its CPUs are dedicated. Then it can't be
            // over-committed.
            if now.is_some() {
                let ratio = wanted.map_or(before, Ratio::get);
                self.cloud.set_allocation_ratio(&provider, class, ratio).await?;
            }
            noted(wanted.map(|ratio| Note { ratio: Some(ratio), before })).await?;
        }
        Ok(())
    }

    /// UUID and inventories of a host's provider.
    async fn inventories_of(
        &self,
        names: &Names,
    ) -> Result<(String, BTreeMap<String, Inventory>), FleetError> {
        let provider = self.host_provider(names).await?.uuid;
        let inventories = self.cloud.inventories(&provider).await?;
        Ok((provider, inventories))
    }

    /// Hosts with other ratios in Placement than were set, with advice for the operator.
    pub(crate) async fn overruled_hosts(
        &self,
        hosts: &BTreeSet<HostId>,
    ) -> Result<BTreeMap<HostId, String>, FleetError> {
        let aggregates = self.cloud.aggregates().await?;
        let pools = aggregates.iter().filter_map(Pool::of).filter(|pool| pool.whole && has_notes(pool));
        let pools: Vec<Pool<'_>> = pools.collect();
        let mut overruled = BTreeMap::new();
        for &id in hosts {
            let names = self.names(id).await?;
            let host = names.service.as_str();
            let Some(pool) = pools.iter().find(|pool| pool.aggregate.hosts.contains(host)) else { continue };
            let (_, inventories) = self.inventories_of(&names).await?;
            for [class, key, option] in [CPU, RAM] {
                let Some(wanted) = Note::of(pool, key, host).and_then(|note| note.ratio) else { continue };
                let has = inventories.get(class).map(|inventory| inventory.allocation_ratio);
                if let Some(has) = has.filter(|has| Ratio::nearest(*has) != wanted) {
                    let text = format!(
                        "Placement has an allocation ratio of {has} for {class} of host {host}, and its lease one of {}: if \
                         nova.conf sets {option} there, use initial_{option} instead and restart nova-compute",
                        wanted.get()
                    );
                    overruled.entry(id).or_insert(text);
                }
            }
        }
        Ok(overruled)
    }
}
