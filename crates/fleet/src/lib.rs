//! Drivers of machines: the traits that every driver implements, and two drivers.
//!
//! A driver carries out steps and reports observations. It decides nothing and never reads the store: all it
//! knows of leases is in the [`OperationKey`] of a call and in [`Wanted`].
//!
//! - [`Inventory`]: machines, networks, and observations of them.
//! - [`Isolation`]: hands hosts, slots and floating IPs to reservations, and takes them back.
//! - [`Guests`]: starts, stops, moves, deletes and images guests.
//! - [`Power`]: switches hosts on and off.
//!
//! A type with all four traits is a [`Fleet`].
//!
//! ```text
//! Inventory::observe ──► leases::plan ──► Action ──perform──► Isolation, Guests, Power ──► Outcome
//!         ▲                                                                                   │
//!         └──────────────────────────── Pending: observe again ◄──────────────────────────────┘
//! ```
//!
//! The service observes hosts, plans, and carries out each step with [`perform`], which calls the trait
//! method of the step's [`Action`].
//!
//! Every call that changes something is an *ensure*. Repeating it has no further effect. A late call, which
//! no longer applies, has no effect and counts as done; [`Action`] says when each one applies. Each call
//! carries an operation key and the fence of its claim. [`Fences`] detects calls of older claims.
//!
//! - [`simulated`] is a fleet in memory, seeded and scriptable.
//! - [`hooks`] runs programs or calls web hooks when a host changes hands, for a rack without a cloud.
//! - [`conformance`] is the test suite that every driver passes. Start reading there: it shows what a driver
//!   has to do.
//!
//! The driver for OpenStack is the crate `fleet-openstack`.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod conformance;
mod error;
pub mod hooks;
mod late;
mod operation_key;
mod saved;
pub mod simulated;
mod site;
mod state_file;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use leases::host::{FloatingIp, Health, NetworkId};
use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::instance::Instance;
use leases::lease_pool::Ratios;
use leases::plan::{Action, Observed};
use leases::project::ProjectId;
use leases::text::{Quoted, quoted_list};
use serde::{Deserialize, Serialize};

pub use error::FleetError;
pub use late::Fences;
pub use operation_key::{LeaseFacts, OperationKey};
pub use state_file::StateError;
pub use wanted::{Difference, Wanted, WantedReservation};

/// A machine of the fleet, leasable or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// A decimal number to API clients.
    pub id: HostId,
    /// Nova's `hypervisor_hostname`.
    pub name: String,
    /// Name of its compute service.
    pub service_name: String,
    /// Virtual CPUs available to instances.
    pub vcpus: u32,
    /// Memory available to instances, MiB.
    pub memory_mib: u32,
    /// Disk available to instances, GiB.
    pub disk_gib: u32,
    /// Other resources by Placement's resource class, with reserve and allocation ratio applied.
    pub other_resources: BTreeMap<String, u64>,
    /// Placement's trait names.
    pub traits: BTreeSet<String>,
    /// CPU description: JSON text.
    pub cpu_info: String,
    /// For example `QEMU`.
    pub hypervisor_type: String,
    /// Hypervisor version as a number: `2010001`.
    pub hypervisor_version: u64,
    /// Empty if unknown.
    pub availability_zone: String,
    pub health: Health,
    /// Guests running now, with their names.
    pub guests: Vec<(GuestId, String)>,
}

impl Machine {
    /// Error message for a host with running guests, in Blazar's wording and Python's notation (API-hosts).
    pub fn occupied(&self) -> String {
        let guest = |(id, name): &(GuestId, String)| format!("{{'name': '{name}', 'uuid': '{id}'}}");
        let guests: Vec<String> = self.guests.iter().map(guest).collect();
        format!("Servers [[{}]] found for host {}", quoted_list(&guests, ", "), Quoted(&self.name))
    }
}

/// A network that can provide floating IPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pub id: NetworkId,
    pub subnets: Vec<Subnet>,
}

/// A flavor of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudFlavor {
    pub id: String,
    pub name: String,
    pub vcpus: u32,
    pub memory_mib: u32,
    /// Root disk, GiB.
    pub disk_gib: u32,
    /// Second disk, GiB.
    pub ephemeral_gib: u32,
    pub swap_mib: u32,
    /// Whether every project can use it.
    pub public: bool,
    pub extra_specs: BTreeMap<String, String>,
}

/// A subnet of a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    pub id: String,
    /// First address and prefix length: `203.0.113.0/24`.
    pub cidr: (IpAddr, u8),
    pub gateway: Option<IpAddr>,
    /// Ranges that are allocated outside the service, both ends included.
    pub allocation_pools: Vec<(IpAddr, IpAddr)>,
}

/// The store that the fleet was last changed for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Identifier of the store; empty before the first one is recorded.
    pub store: String,
    /// Highest fence of any call.
    pub fence: u64,
}

/// Placeholder for the reservation of an address when it is unknown whether the address was handed out, or to
/// which reservation. The planner doesn't know this reservation, so it takes the address back before handing
/// it out again.
pub const UNCERTAIN: ReservationId = ReservationId(0);

/// Result of a call that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The change is in effect.
    Done,
    /// The change is in progress: observe again.
    Pending,
}

/// A call that may run hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookedCall {
    /// [`Isolation::adopt`].
    Adopt,
    /// [`Isolation::abandon`].
    Abandon,
    /// [`perform`], for that step.
    Step(Action),
}

/// Machines, networks, and observations of them.
#[async_trait]
pub trait Inventory: Send + Sync {
    async fn machines(&self) -> Result<Vec<Machine>, FleetError>;

    /// Networks that can provide floating IPs.
    async fn networks(&self) -> Result<Vec<Network>, FleetError>;

    /// A flavor that the project can use; `None` if the cloud has no such flavor. Fleets without a cloud have
    /// no flavors.
    async fn flavor(&self, _project: &ProjectId, _id: &str) -> Result<Option<CloudFlavor>, FleetError> {
        Ok(None)
    }

    /// Observes these hosts and the holders of addresses. Unknown hosts and hosts that were not adopted are
    /// omitted. `addresses` must list all leasable addresses, because a cloud can't find them otherwise.
    async fn observe(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<Observed, FleetError>;

    /// The host that runs or is starting a guest, which can be a host that was not adopted. `None` from
    /// drivers that don't track guests started outside the service.
    async fn locate(&self, _guest: GuestId) -> Result<Option<HostId>, FleetError> {
        Ok(None)
    }

    /// All machines, and observations of these hosts, as one round. For drivers that get both from the same
    /// responses; by default, one query follows the other.
    async fn survey(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<(Vec<Machine>, Observed), FleetError> {
        Ok((self.machines().await?, self.observe(hosts, addresses).await?))
    }

    /// Hooks that were called and haven't returned.
    fn running_hooks(&self) -> Vec<hooks::RunningHook> {
        Vec::new()
    }

    /// Maximum duration of all hooks of a call together, by their own time limits. The service gives the call no less time.
    fn hooks_time(&self, _call: HookedCall) -> Duration {
        Duration::ZERO
    }

    /// Makes the next observation compare cached facts of machines, which seldom change, with the machines.
    async fn look_closely(&self) {}

    /// Passes the stored reservations to the driver. Called before each observation of the whole fleet, once
    /// the fleet is known to belong to the store.
    async fn expect(&self, _wanted: Wanted) {}

    /// Differences from [the stored reservations](Self::expect) that the last observation of the whole fleet
    /// found.
    async fn differences(&self) -> Vec<Difference> {
        Vec::new()
    }

    /// Current differences. Reads everything, whereas an observation reads some parts in turn.
    async fn all_differences(&self) -> Result<Vec<Difference>, FleetError> {
        Ok(Vec::new())
    }

    /// Reason why hosts can't be handed over until an operator intervenes, such as a refused login. It is
    /// part of a public response, so it must not name any user or project. `None` if there is no known
    /// reason.
    fn obstacle(&self) -> Option<&'static str> {
        None
    }

    /// The store that the fleet was last changed for. `None` if the driver doesn't record it along with its
    /// other state.
    async fn keeper(&self) -> Result<Option<Keeper>, FleetError> {
        Ok(None)
    }

    /// Assigns the fleet to a store, whose highest fence so far is `keeper.fence`.
    async fn set_keeper(&self, _keeper: Keeper) -> Result<(), FleetError> {
        Ok(())
    }
}

/// Access of projects to hosts and addresses. See [`Action`] for when each step applies.
#[async_trait]
pub trait Isolation: Send + Sync {
    /// Applies the operator's settings to the fleet. The service calls this after each start, once the fleet
    /// is known to be its own and before any other change.
    async fn set_up(&self) -> Result<(), FleetError> {
        Ok(())
    }
    /// Whether reservations need objects of their own in addition to hosts, which are
    /// [observed](Observed::reservations). If so, reservations are prepared and finished. The service asks at
    /// startup.
    fn prepares(&self) -> bool {
        false
    }
    /// Whether reservations of whole hosts need prepared flavors. If so, requests for hosts wait for them.
    fn has_flavors_for_hosts(&self) -> bool {
        false
    }
    /// [`Action::Prepare`].
    async fn prepare(&self, _reservation: ReservationId, _key: &OperationKey) -> Result<Outcome, FleetError> {
        Ok(Outcome::Done)
    }
    /// [`Action::Finish`].
    async fn finish(&self, _reservation: ReservationId, _key: &OperationKey) -> Result<Outcome, FleetError> {
        Ok(Outcome::Done)
    }
    /// Whether a host can be adopted while guests run on it.
    fn adopts_with_guests(&self) -> bool {
        false
    }
    /// Adds the host to the free pool, so that [`Inventory::observe`] includes it. Refused if a guest runs
    /// there that isn't allowed in the free pool, unless [guests don't prevent
    /// adoption](Self::adopts_with_guests).
    async fn adopt(&self, host: HostId) -> Result<Outcome, FleetError>;
    /// Removes the host from the service's control. Refused unless it is in the free pool.
    async fn abandon(&self, host: HostId) -> Result<Outcome, FleetError>;
    /// [`Action::Fence`].
    async fn fence(&self, host: HostId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::Unfence`].
    async fn unfence(&self, host: HostId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::Verify`].
    async fn verify(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::Hold`].
    async fn hold(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::Release`].
    async fn release(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::SetRatios`]. Called only for hosts whose observation has
    /// [ratios](leases::plan::ObservedHost::overcommit).
    async fn set_ratios(
        &self,
        _host: HostId,
        _reservation: ReservationId,
        _ratios: Ratios,
        _key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        Ok(Outcome::Done)
    }
    /// Hosts whose ratios differ from the configured ones because something else sets them. The text has the
    /// current ratios and a remedy. This takes a closer look than [`Inventory::observe`].
    async fn overruled(&self, _hosts: &BTreeSet<HostId>) -> Result<BTreeMap<HostId, String>, FleetError> {
        Ok(BTreeMap::new())
    }
    /// [`Action::Grant`].
    async fn grant(
        &self,
        host: HostId,
        reservation: ReservationId,
        slots: u32,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::Withdraw`].
    async fn withdraw(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::Assign`].
    async fn assign(
        &self,
        ip: &FloatingIp,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::Unassign`]. `known` is `None` if the address is no longer leasable.
    async fn unassign(
        &self,
        ip: FloatingIpId,
        known: Option<&FloatingIp>,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
}

/// Operations on guests.
#[async_trait]
pub trait Guests: Send + Sync {
    /// Advice for operators when a guest can't be deleted; `{guest}` stands for its identifier.
    fn remedy(&self) -> Option<&'static str> {
        None
    }
    /// [`Action::StartGuest`]. Starts the instance's guest on the host, from the kept state of the guest that
    /// it [resumes](Instance::resumes), if any. Refused if the host is fenced, held by another reservation,
    /// or full. A guest that was started before isn't started again, because it may have ended since.
    async fn start(
        &self,
        host: HostId,
        instance: &Instance,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::DestroyGuest`]. Also deletes the guest's kept state. Afterwards, a late call can't start the
    /// guest again.
    async fn destroy(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::StopGuest`]. If `keep` is set, the guest's state survives the shutdown for an instance that
    /// [resumes](Instance::resumes) it. Otherwise, it is deleted.
    async fn stop(
        &self,
        host: HostId,
        guest: GuestId,
        keep: bool,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::ResumeGuest`].
    async fn resume(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::MoveGuest`]. Refused if the target host is full, fenced or handed over, or if the guest is
    /// moving to another host.
    async fn migrate(
        &self,
        host: HostId,
        guest: GuestId,
        to: HostId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::DeleteGuest`]. With `keep`, as in [`Self::stop`], the guest only leaves its host.
    async fn delete(
        &self,
        host: HostId,
        guest: GuestId,
        keep: bool,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::Snapshot`].
    async fn snapshot(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
}

/// Power of hosts. The current state is [observed](leases::plan::ObservedHost::powered).
#[async_trait]
pub trait Power: Send + Sync {
    /// Whether hosts can be switched at all. The service asks at startup.
    fn switches_hosts(&self) -> bool;
    /// [`Action::PowerOn`]. Done once the host has power. It is observed as failed while it boots.
    async fn power_on(&self, host: HostId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::PowerOff`]. Done once the host is off. Refused if the host has guests or granted slots. A
    /// host that isn't fenced stays on.
    async fn power_off(&self, host: HostId, key: &OperationKey) -> Result<Outcome, FleetError>;
}

/// A complete driver.
pub trait Fleet: Inventory + Isolation + Guests + Power + fmt::Debug {}

impl<T: Inventory + Isolation + Guests + Power + fmt::Debug> Fleet for T {}

/// The objects of a step, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The instance whose guest is started or preempted. `None` if the guest isn't an instance's.
    pub instance: Option<&'a Instance>,
    /// `None` if the address is no longer leasable.
    pub address: Option<&'a FloatingIp>,
}

/// Carries out a step of a plan.
pub async fn perform(
    fleet: &dyn Fleet,
    action: Action,
    about: About<'_>,
    key: &OperationKey,
) -> Result<Outcome, FleetError> {
    let About { instance, address } = about;
    let keep = instance.is_some_and(Instance::is_kept);
    match action {
        Action::StartGuest(host, _) => match instance {
            Some(instance) => fleet.start(host, instance, key).await,
            None => Err(FleetError::Refused("the instance is not wanted any more".to_owned())),
        },
        Action::DestroyGuest(host, guest) => fleet.destroy(host, guest, key).await,
        Action::Fence(host) => fleet.fence(host, key).await,
        Action::Unfence(host) => fleet.unfence(host, key).await,
        Action::Verify(host, reservation) => fleet.verify(host, reservation, key).await,
        Action::Hold(host, reservation) => fleet.hold(host, reservation, key).await,
        Action::Release(host, reservation) => fleet.release(host, reservation, key).await,
        Action::SetRatios(host, reservation, ratios) => {
            fleet.set_ratios(host, reservation, ratios, key).await
        }
        Action::Grant(host, reservation, slots) => fleet.grant(host, reservation, slots, key).await,
        Action::Withdraw(host, reservation) => fleet.withdraw(host, reservation, key).await,
        Action::Assign(_, reservation) => match address {
            Some(address) => fleet.assign(address, reservation, key).await,
            None => Err(FleetError::Refused("the address cannot be leased any more".to_owned())),
        },
        Action::Unassign(ip, reservation) => fleet.unassign(ip, address, reservation, key).await,
        Action::StopGuest(host, guest) => fleet.stop(host, guest, keep, key).await,
        Action::ResumeGuest(host, guest) => fleet.resume(host, guest, key).await,
        Action::MoveGuest(host, guest, to) => fleet.migrate(host, guest, to, key).await,
        Action::DeleteGuest(host, guest) => fleet.delete(host, guest, keep, key).await,
        Action::Snapshot(host, reservation) => fleet.snapshot(host, reservation, key).await,
        Action::PowerOn(host) => fleet.power_on(host, key).await,
        Action::PowerOff(host) => fleet.power_off(host, key).await,
        Action::Prepare(reservation) => fleet.prepare(reservation, key).await,
        Action::Finish(reservation) => fleet.finish(reservation, key).await,
    }
}
