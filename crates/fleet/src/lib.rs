//! What runs the machines: traits that drivers implement, and two drivers.
//!
//! A driver does as it is told and says what it sees. It decides nothing, knows no leases' terms and never sees
//! the store. Every call that changes something is an *ensure*: doing it twice is doing it once; one that comes
//! late, when it does not apply any more, has no effect and counts as done ([`leases::plan::Action`] says when
//! each applies). Each carries an operation key and the fence of the claim that it is carried out under.
//!
//! - [`Inventory`]: which machines and networks there are, and what is on them.
//! - [`Isolation`]: who may start guests on a host, and who may use an address.
//! - [`Guests`]: starting, stopping, moving, deleting and imaging guests.
//! - [`Power`]: switching hosts on and off.
//!
//! [`simulated`] is a fleet in memory, seeded and scriptable. [`hooks`] runs programs or calls web hooks when a
//! host changes hands, for a rack without a cloud. [`conformance`] holds every driver to the same promises.

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

/// A machine of the fleet, whether it may be leased or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its identifier, a decimal number to the API's clients.
    pub id: HostId,
    /// Its name: `hypervisor_hostname`.
    pub name: String,
    /// The name of its compute service.
    pub service_name: String,
    /// Virtual CPUs that instances may use.
    pub vcpus: u32,
    /// Memory that instances may use, MiB.
    pub memory_mib: u32,
    /// Disk that instances may use, GiB.
    pub disk_gib: u32,
    /// Other resources by Placement's class, reserve and allocation ratio applied.
    pub other_resources: BTreeMap<String, u64>,
    /// Traits, by Placement's names.
    pub traits: BTreeSet<String>,
    /// The CPU's description: JSON text.
    pub cpu_info: String,
    /// The hypervisor: `QEMU`.
    pub hypervisor_type: String,
    /// Its version as a number: `2010001`.
    pub hypervisor_version: u64,
    /// Empty if unknown.
    pub availability_zone: String,
    /// Whether it works.
    pub health: Health,
    /// Guests that run there now, with their names.
    pub guests: Vec<(GuestId, String)>,
}

impl Machine {
    /// That guests run there, in Blazar's words and Python's notation (API-hosts).
    pub fn occupied(&self) -> String {
        let guest = |(id, name): &(GuestId, String)| format!("{{'name': '{name}', 'uuid': '{id}'}}");
        let guests: Vec<String> = self.guests.iter().map(guest).collect();
        format!("Servers [[{}]] found for host {}", quoted_list(&guests, ", "), Quoted(&self.name))
    }
}

/// A network that floating IPs may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its identifier.
    pub id: NetworkId,
    /// Its subnets.
    pub subnets: Vec<Subnet>,
}

/// A flavor that the cloud has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudFlavor {
    /// Its identifier.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Root disk, GiB.
    pub disk_gib: u32,
    /// Second disk, GiB.
    pub ephemeral_gib: u32,
    /// Swap, MiB.
    pub swap_mib: u32,
    /// Whether every project may use it.
    pub public: bool,
    /// Extra specs.
    pub extra_specs: BTreeMap<String, String>,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Its identifier.
    pub id: String,
    /// Its first address and the number of leading bits: `203.0.113.0/24`.
    pub cidr: (IpAddr, u8),
    /// Its gateway.
    pub gateway: Option<IpAddr>,
    /// Ranges that others take addresses from, both ends included.
    pub allocation_pools: Vec<(IpAddr, IpAddr)>,
}

/// For which store the fleet was changed last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// The store; empty while none was named.
    pub store: String,
    /// The highest fence of a call.
    pub fence: u64,
}

/// Stands for a reservation where it is not known for which one an address was handed out, if it was: the planner,
/// which does not know it, has the address taken back before it is handed out again.
pub const UNCERTAIN: ReservationId = ReservationId(0);

/// How a call that changes something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is so.
    Done,
    /// It will be so; look again.
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

/// Which machines there are, and what is on them.
#[async_trait]
pub trait Inventory: Send + Sync {
    /// All machines.
    async fn machines(&self) -> Result<Vec<Machine>, FleetError>;

    /// All networks that floating IPs may come from.
    async fn networks(&self) -> Result<Vec<Network>, FleetError>;

    /// A flavor of the cloud's that the project may use, if there is one of that identifier. Fleets without a cloud
    /// have none.
    async fn flavor(&self, _project: &ProjectId, _id: &str) -> Result<Option<CloudFlavor>, FleetError> {
        Ok(None)
    }

    /// What is on these hosts, and who has which address. A host that the fleet does not know, or that was not
    /// adopted, is absent. `addresses` are all that may be leased: a cloud knows them by nothing else.
    async fn observe(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<Observed, FleetError>;

    /// The host that a guest is on or is being started on, if the driver knows guests that others start. It may be one that
    /// was not adopted.
    async fn locate(&self, _guest: GuestId) -> Result<Option<HostId>, FleetError> {
        Ok(None)
    }

    /// All machines, and what is on these hosts: one round. For drivers that see both in the same answers; the
    /// others are asked for one after the other.
    async fn survey(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<(Vec<Machine>, Observed), FleetError> {
        Ok((self.machines().await?, self.observe(hosts, addresses).await?))
    }

    /// Hooks that the driver has called and that have not answered.
    fn running_hooks(&self) -> Vec<hooks::RunningHook> {
        Vec::new()
    }

    /// Maximum duration of all hooks of a call together, by their own time limits. The service gives the call no less time.
    fn hooks_time(&self, _call: HookedCall) -> Duration {
        Duration::ZERO
    }

    /// What is kept of machines since it seldom changes is compared with the machines at the next look.
    async fn look_closely(&self) {}

    /// What the store has. This is called before each look at the whole fleet, once the fleet is known to belong to the store.
    async fn expect(&self, _wanted: Wanted) {}

    /// Differences from [what is stored](Self::expect) that the last look at the whole fleet has found.
    async fn differences(&self) -> Vec<Difference> {
        Vec::new()
    }

    /// Differences as they are now. Everything is read for that, whereas a look reads some of it in turn.
    async fn all_differences(&self) -> Result<Vec<Difference>, FleetError> {
        Ok(Vec::new())
    }

    /// Why hosts can't be handed over until an operator sets it right, such as a login that was refused. It is part of a
    /// public answer, so it names nobody. `None` if no such reason is known.
    fn obstacle(&self) -> Option<&'static str> {
        None
    }

    /// For which store the fleet was changed last, if the driver keeps that where it keeps what it did.
    async fn keeper(&self) -> Result<Option<Keeper>, FleetError> {
        Ok(None)
    }

    /// From now on the fleet belongs to that store, which has given out no higher fence than that.
    async fn set_keeper(&self, _keeper: Keeper) -> Result<(), FleetError> {
        Ok(())
    }
}

/// Who may start guests where. See [`Action`] for when each applies.
#[async_trait]
pub trait Isolation: Send + Sync {
    /// The fleet is as the operator's settings have it before anything else is done: the service asks for that after each
    /// start, once it is known that the fleet is its own.
    async fn set_up(&self) -> Result<(), FleetError> {
        Ok(())
    }
    /// Whether reservations need something as a whole, beside what they get of hosts, and what there is of it is
    /// [observed](Observed::reservations). They are prepared and finished then. It is asked when the service starts.
    fn prepares(&self) -> bool {
        false
    }
    /// Whether whole hosts need flavors of their own, which are prepared: whoever asks for hosts waits for them.
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
    /// Whether a host may be taken on although guests are there.
    fn adopts_with_guests(&self) -> bool {
        false
    }
    /// The host is to be in the free pool from now on, for [`Inventory::observe`] to be asked about. Refused if
    /// a guest runs there that may not run in the free pool, unless hosts are
    /// [taken on with guests](Self::adopts_with_guests).
    async fn adopt(&self, host: HostId) -> Result<Outcome, FleetError>;
    /// The host is none of the service's business any more. Refused unless it is in the free pool.
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
    /// [`Action::SetRatios`]; asked for only of hosts that are [observed](leases::plan::ObservedHost::overcommit) to have
    /// any.
    async fn set_ratios(
        &self,
        _host: HostId,
        _reservation: ReservationId,
        _ratios: Ratios,
        _key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        Ok(Outcome::Done)
    }
    /// Those of the hosts whose ratios are not as they were told, since somebody else sets them: how they are, and what to
    /// do about it. This takes a closer look than [`Inventory::observe`].
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
    /// [`Action::Unassign`]; with what is known of the address, which may be nothing any more.
    async fn unassign(
        &self,
        ip: FloatingIpId,
        known: Option<&FloatingIp>,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
}

/// What can be done to guests.
#[async_trait]
pub trait Guests: Send + Sync {
    /// What operators can do about a guest that isn't deleted; `{guest}` stands for its identifier.
    fn remedy(&self) -> Option<&'static str> {
        None
    }
    /// [`Action::StartGuest`]: the guest of that instance, on that host; from what is kept of the one that it resumes,
    /// if it does. Refused if the host is fenced or somebody else's, or has no room. A guest that was started before is
    /// not started again: it may have ended since.
    async fn start(
        &self,
        host: HostId,
        instance: &Instance,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::DestroyGuest`], and what is kept of it. From then on it cannot be started any more by a call that is
    /// late.
    async fn destroy(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::StopGuest`]. When it has shut down, what it had is to be kept, if that is said, for an instance that
    /// [resumes](Instance::resumes) it; otherwise it is gone.
    async fn stop(
        &self,
        host: HostId,
        guest: GuestId,
        keep: bool,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::ResumeGuest`].
    async fn resume(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::MoveGuest`]. Refused if the other host has no room for it, is fenced or has been handed over, or if
    /// the guest is moving elsewhere.
    async fn migrate(
        &self,
        host: HostId,
        guest: GuestId,
        to: HostId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError>;
    /// [`Action::DeleteGuest`]. Kept as with [`Self::stop`], it is only not on its host any more.
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

/// Switching hosts. Whether a host has power is [observed](leases::plan::ObservedHost::powered).
#[async_trait]
pub trait Power: Send + Sync {
    /// Whether hosts can be switched here at all. It is asked when the service starts.
    fn switches_hosts(&self) -> bool;
    /// [`Action::PowerOn`]. Done once it has power; it may still boot then, and is observed as failed meanwhile.
    async fn power_on(&self, host: HostId, key: &OperationKey) -> Result<Outcome, FleetError>;
    /// [`Action::PowerOff`]. Done once it is off. Refused if a guest is there or somebody has slots; a host that is
    /// not fenced stays on.
    async fn power_off(&self, host: HostId, key: &OperationKey) -> Result<Outcome, FleetError>;
}

/// A whole driver.
pub trait Fleet: Inventory + Isolation + Guests + Power + fmt::Debug {}

impl<T: Inventory + Isolation + Guests + Power + fmt::Debug> Fleet for T {}

/// What is known of that which a step is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The instance whose guest is to be started, or to be preempted, if it is one's.
    pub instance: Option<&'a Instance>,
    /// The address, if it may be leased still.
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
