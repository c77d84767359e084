//! Actions of operators on free pools and their hosts in a simulation.

use std::collections::BTreeMap;

use leases::free_pool::FreePool;
use leases::ids::{FreePoolId, HostId, LeaseId, ReservationId};
use leases::lease_pool::{Ratio, pools as lease_pools};
use rand::Rng;
use rand::seq::IndexedRandom;
use service::{
    FreePoolChange, HostSelector, HostUpdate, LeaseFilter, LeasePoolChange, NewFreePool, ServiceError,
};

use super::Simulation;
use crate::pools::{Chore, NAMES, TIER, TIERS};
use crate::world::operator;

impl Simulation {
    /// Performs one action on pools and hosts, if there are several pools. The service can refuse it. The
    /// checks after every commit detect any wrong effect.
    pub(super) async fn tend_pools(&mut self) {
        let Some(mut pools) = self.pools.take() else { return };
        self.asked = self.any();
        let chore = pools.chore();
        let name = NAMES.choose(&mut pools.rng).copied().unwrap_or(NAMES[0]).to_owned();
        let specs: BTreeMap<String, String> = match pools.rng.random_range(0..=TIERS.len()) {
            tier if tier < TIERS.len() => BTreeMap::from([(TIER.to_owned(), TIERS[tier].to_owned())]),
            _ => BTreeMap::new(),
        };
        let known: Vec<FreePoolId> =
            self.service().free_pools().all().iter().map(|record| record.pool.id).collect();
        let pool = known.choose(&mut pools.rng).copied().unwrap_or(FreePool::DEFAULT);
        let operator = operator();
        let done = match chore {
            Chore::Create => {
                let new = NewFreePool { name: name.clone(), extra_specs: specs, end_action: None };
                self.service().free_pools().create(&operator, new).await.map(drop)
            }
            Chore::Rename => {
                let change = FreePoolChange { name: Some(name.clone()), ..FreePoolChange::default() };
                self.service().free_pools().update(&operator, pool, change).await.map(drop)
            }
            Chore::Specify => {
                let change = FreePoolChange { extra_specs: Some(specs), ..FreePoolChange::default() };
                self.service().free_pools().update(&operator, pool, change).await.map(drop)
            }
            Chore::Remove => self.service().free_pools().delete(&operator, pool).await,
            Chore::Move => {
                let hosts: Vec<HostId> = self.machines();
                match hosts.choose(&mut pools.rng) {
                    Some(host) => self.move_host(*host, pool).await,
                    None => Ok(()),
                }
            }
            Chore::OverCommit => {
                let mut ratio = || Some(Ratio::from_thousandths(pools.rng.random_range(0..4) * 1000));
                let change = LeasePoolChange { name: None, cpu_ratio: ratio(), ram_ratio: ratio() };
                match self.running_pools().choose(&mut pools.rng) {
                    Some((lease, pool)) => self.over_commit(*lease, *pool, change).await,
                    None => Ok(()),
                }
            }
            Chore::Transfer | Chore::Close | Chore::Open => {
                let hosts = self.service().hosts().all();
                match hosts.choose(&mut pools.rng).map(|record| record.host.id) {
                    Some(host) if chore == Chore::Transfer => {
                        self.service().free_pools().move_host(&operator, host, pool).await.map(drop)
                    }
                    Some(host) => {
                        let reservable = Some(chore == Chore::Open);
                        let change = HostUpdate { capabilities: Vec::new(), reservable };
                        self.service().hosts().update(&operator, host, change).await.map(drop)
                    }
                    None => Ok(()),
                }
            }
        };
        self.note(format!(
            "{chore:?} of a pool ({pool}, {name}): {:?}",
            done.as_ref().map_err(ToString::to_string)
        ));
        self.report.pool_changes += u64::from(done.is_ok());
        self.pools = Some(pools);
        self.world.touched_one(self.asked);
    }

    /// Lease pools of running leases.
    fn running_pools(&self) -> Vec<(LeaseId, ReservationId)> {
        let leases = self.service().leases().all(&LeaseFilter::default());
        let running = leases.iter().flat_map(|record| {
            lease_pools(&record.lease).map(|(reservation, _)| (record.lease.id, reservation.id))
        });
        running.collect()
    }

    /// Changes the overcommit ratios of a running reservation's hosts.
    async fn over_commit(
        &mut self,
        lease: LeaseId,
        pool: ReservationId,
        change: LeasePoolChange,
    ) -> Result<(), ServiceError> {
        let operator = operator();
        let changing = self.service().lease_pools().update(&operator, pool, change);
        let changed = self.world.wait_for(changing).await;
        match &changed {
            Ok(changed) => self.checker.acknowledged(changed),
            Err(ServiceError::Store(_)) => self.checker.change_uncertain(lease),
            Err(_) => {}
        }
        changed.map(drop)
    }

    /// All machines, whether or not they are in a pool now.
    fn machines(&self) -> Vec<HostId> {
        let racks = self.ways.layout.racks.iter();
        (1..=racks.map(|rack| u64::from(rack.machines)).sum()).map(HostId).collect()
    }

    /// Takes the host out of its pool, if it's in one, and adds it to `pool`.
    async fn move_host(&mut self, host: HostId, pool: FreePoolId) -> Result<(), ServiceError> {
        let operator = operator();
        if self.service().hosts().get(host).is_some() {
            let removed = self.service().hosts().remove_from_pool(&operator, host);
            self.world.wait_for(removed).await?;
        }
        let capabilities = self.ways.layout.capabilities(host).into_iter().collect();
        let added = self.service().hosts().add(&operator, HostSelector::Id(host), capabilities, pool);
        self.world.wait_for(added).await.map(drop)
    }
}
