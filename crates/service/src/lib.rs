//! The leasing service without HTTP.
//!
//! A [`Service`] keeps what the store holds in memory, decides with the crate `leases`, commits what was
//! decided, and only then shows it. Its loop ([`Service::run`]) observes the fleet, heals, plans, commits, and
//! carries out the steps that are due, each on its own, so that a slow one delays nobody else.
//!
//! Who may do what is the server's business: calls here are made on behalf of a [`Caller`] who may.

mod settings;
mod types;

use std::sync::Arc;

use ambient::{Clock, Ids};
use fleet::Fleet;
use leases::ids::{FloatingIpId, HostId, LeaseId};
use store::{FlavorRecord, FloatingIpRecord, HostRecord, LeaseRecord, Notification, PropertyRecord, Store};

pub use settings::Settings;
pub use types::{
    AllocationFilter, Caller, Created, Enforcer, EnforcerVerdict, GrantedLease, HostAllocation, HostSelector,
    IdempotencyKey, LeaseChanges, LeaseFilter, NewFloatingIp, NewLease, NotFound, OpenError, Property,
    ServiceError, Statistics,
};

/// What a service is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where things are kept.
    pub store: Arc<dyn Store>,
    /// What runs the machines.
    pub fleet: Arc<dyn Fleet>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New identifiers.
    pub ids: Arc<dyn Ids>,
    /// The external service that may refuse leases, if there is one (spec §3.7).
    pub enforcer: Option<Arc<dyn Enforcer>>,
}

/// The leasing service.
#[derive(Debug)]
pub struct Service {
    parts: Parts,
    settings: Settings,
}

#[expect(unused_variables, clippy::unused_async, clippy::unimplemented, reason = "contract")]
impl Service {
    /// Loads what the store holds and gives up claims of an earlier run.
    pub async fn open(parts: Parts, settings: Settings) -> Result<Arc<Self>, OpenError> {
        unimplemented!()
    }

    /// The loop: returns when `stop` becomes true, after steps that are running have ended or their time is up.
    pub async fn run(self: Arc<Self>, stop: tokio::sync::watch::Receiver<bool>) {
        unimplemented!()
    }

    /// The time that the service goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// A lease.
    pub fn lease(&self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        unimplemented!()
    }

    /// Leases, in the order of their creation.
    pub fn leases(&self, filter: &LeaseFilter) -> Vec<Arc<LeaseRecord>> {
        unimplemented!()
    }

    /// Makes a lease. A request with a key that was served before gets the same answer.
    pub async fn create_lease(
        &self,
        caller: &Caller,
        new: NewLease,
        key: Option<IdempotencyKey>,
    ) -> Result<Created, ServiceError> {
        unimplemented!()
    }

    /// Changes a lease.
    pub async fn update_lease(
        &self,
        caller: &Caller,
        id: LeaseId,
        changes: LeaseChanges,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        unimplemented!()
    }

    /// Deletes a lease. It is gone when this returns, unless taking its hosts back takes longer than
    /// [`Settings::delete_wait`]; then it is DELETING, and goes by itself.
    pub async fn delete_lease(&self, caller: &Caller, id: LeaseId) -> Result<(), ServiceError> {
        unimplemented!()
    }

    /// All hosts, by identifier.
    pub fn hosts(&self) -> Vec<Arc<HostRecord>> {
        unimplemented!()
    }

    /// A host.
    pub fn host(&self, id: HostId) -> Option<Arc<HostRecord>> {
        unimplemented!()
    }

    /// Takes a machine of the fleet on as a host that may be leased.
    pub async fn add_host(
        &self,
        caller: &Caller,
        which: HostSelector,
        capabilities: Vec<(String, String)>,
    ) -> Result<Arc<HostRecord>, ServiceError> {
        unimplemented!()
    }

    /// Sets capabilities of a host, or takes away those without a value. All or nothing.
    pub async fn update_host(
        &self,
        caller: &Caller,
        id: HostId,
        capabilities: Vec<(String, Option<String>)>,
    ) -> Result<Arc<HostRecord>, ServiceError> {
        unimplemented!()
    }

    /// Gives a host back to the fleet.
    pub async fn remove_host(&self, caller: &Caller, id: HostId) -> Result<(), ServiceError> {
        unimplemented!()
    }

    /// One entry for every host, or for one of them, with what is reserved of it.
    pub fn allocations(&self, filter: &AllocationFilter) -> Vec<HostAllocation> {
        unimplemented!()
    }

    /// The names and values of capabilities.
    pub fn properties(&self) -> Vec<Property> {
        unimplemented!()
    }

    /// Hides a property from lists, or shows it.
    pub async fn set_property_private(
        &self,
        caller: &Caller,
        name: &str,
        private: bool,
    ) -> Result<PropertyRecord, ServiceError> {
        unimplemented!()
    }

    /// All floating IPs.
    pub fn floating_ips(&self) -> Vec<Arc<FloatingIpRecord>> {
        unimplemented!()
    }

    /// A floating IP.
    pub fn floating_ip(&self, id: FloatingIpId) -> Option<Arc<FloatingIpRecord>> {
        unimplemented!()
    }

    /// Takes an address on that may be leased.
    pub async fn add_floating_ip(
        &self,
        caller: &Caller,
        new: NewFloatingIp,
    ) -> Result<Arc<FloatingIpRecord>, ServiceError> {
        unimplemented!()
    }

    /// Takes an address away.
    pub async fn remove_floating_ip(&self, caller: &Caller, id: FloatingIpId) -> Result<(), ServiceError> {
        unimplemented!()
    }

    /// All flavors.
    pub fn flavors(&self) -> Vec<Arc<FlavorRecord>> {
        unimplemented!()
    }

    /// A flavor.
    pub fn flavor(&self, id: &str) -> Option<Arc<FlavorRecord>> {
        unimplemented!()
    }

    /// Enters a flavor, or exchanges the one of that identifier.
    pub async fn put_flavor(
        &self,
        caller: &Caller,
        flavor: FlavorRecord,
    ) -> Result<Arc<FlavorRecord>, ServiceError> {
        unimplemented!()
    }

    /// Takes a flavor away. Leases that have it keep it.
    pub async fn remove_flavor(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        unimplemented!()
    }

    /// Notifications after that number, at most so many, oldest first.
    pub async fn notifications(&self, after: u64, limit: u32) -> Result<Vec<Notification>, ServiceError> {
        unimplemented!()
    }

    /// Returns when there may be a notification after that number.
    pub async fn notified(&self, after: u64) {
        unimplemented!()
    }

    /// Figures for metrics.
    pub fn statistics(&self) -> Statistics {
        unimplemented!()
    }

    /// Whether requests can be served: the store can be written to and the loop runs.
    pub async fn ready(&self) -> Result<(), ServiceError> {
        unimplemented!()
    }
}
