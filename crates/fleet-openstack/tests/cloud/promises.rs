//! Runs the conformance suite of drivers.

use std::time::Duration;

use async_trait::async_trait;
use fleet::Fleet;
use fleet::conformance::{self, Subject};
use fleet_openstack::{Fence, OpenStackFleet};
use leases::host::{FloatingIp, NetworkId};
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;
use leases::project::ProjectId;

use crate::standin::{NETWORK, Standin};

/// The project with preemptible servers.
pub const SPOT: &str = "spot";

struct Pretended {
    cloud: Standin,
    fleet: OpenStackFleet,
}

pub fn guest(id: &str) -> GuestId {
    GuestId(u128::from_str_radix(&id.replace('-', ""), 16).expect("a UUID"))
}

#[async_trait]
impl Subject for Pretended {
    fn fleet(&self) -> &dyn Fleet {
        &self.fleet
    }

    async fn guest_appears(&self, host: HostId, owner: GuestOwner) -> GuestId {
        let preemptible = owner == GuestOwner::Preemptible;
        let project = if preemptible { SPOT } else { "another" };
        guest(&self.cloud.state().boot(&format!("host{host}"), project, preemptible))
    }

    async fn guest_sets_out(&self, host: HostId) -> GuestId {
        let mut state = self.cloud.state();
        let id = state.boot(&format!("host{host}"), SPOT, true);
        state.servers.get_mut(&id).expect("a server").listed = false;
        guest(&id)
    }

    async fn guests_land(&self) {
        self.cloud.state().servers.values_mut().for_each(|server| server.listed = true);
    }

    async fn guest_ends(&self, guest: GuestId) {
        self.cloud.state().servers.remove(&guest.to_string());
    }

    async fn wait(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    fn project(&self) -> ProjectId {
        ProjectId("mine".to_owned())
    }

    fn address(&self) -> FloatingIp {
        FloatingIp { network: NetworkId(NETWORK.to_owned()), ..conformance::address() }
    }
}

async fn promises_are_kept_with(fence: Fence) {
    conformance::all(async || {
        let cloud = Standin::with(2, fence.clone()).await;
        let fleet = cloud.fleet();
        Pretended { cloud, fleet }
    })
    .await;
}

#[tokio::test]
async fn the_driver_keeps_the_promises_of_all_drivers() {
    promises_are_kept_with(Fence::BlazarFilter).await;
}

#[tokio::test]
async fn it_keeps_them_with_isolation_of_tenants() {
    promises_are_kept_with(Fence::Tenant { preemptible: [SPOT.to_owned()].into() }).await;
}

#[tokio::test]
async fn it_keeps_them_with_traits() {
    promises_are_kept_with(Fence::Traits { flavors: Vec::new(), images: false }).await;
}

#[tokio::test]
async fn it_keeps_them_where_hooks_switch_hosts() {
    conformance::all(async || {
        let cloud = Standin::start(2).await;
        let fleet = cloud.fleet().with_power(cloud.power());
        Pretended { cloud, fleet }
    })
    .await;
}
