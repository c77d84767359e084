//! Differences between store and fleet that the loop doesn't correct by itself: machines that only the store
//! or only the fleet has, for example after a backup was restored or a machine was removed, and steps that
//! keep failing.
//!
//! Work in progress is not drift: the loop carries out the steps of leases.

mod cloud;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use fleet::{HookedCall, Machine, OperationKey};
use leases::host::Host;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::lease_pool::Ratios;
use leases::plan::{Action, GuestOwner, Observed, Place};
use leases::project::ProjectId;
use leases::terms::ReservationTerms;
use store::{Commit, HostRecord};

use crate::deciding::beside_requests;
use crate::execution::Execution;
use crate::hosts::Hosts;
use crate::hosts::refreshed;
use crate::leasing::Leases;
use crate::projects::Projects;
use crate::service::Service;
use crate::state::State;
use crate::types::{Caller, ServiceError};
use crate::writing::audit;

/// A difference between store and fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// The machine's clock is wrong, so no changes are made.
    WrongClock {
        /// The fault and its remedy.
        message: String,
    },
    /// The fleet has machines held for leases that the store has never known, so no changes are made.
    ForeignFleet {
        /// The fault and its remedy.
        message: String,
    },
    /// The fleet doesn't have the machine of a host in the store.
    MachineGone { host: HostId, name: String },
    /// The machine of a host in the store was not handed to the service.
    NotTakenOn { host: HostId, name: String },
    /// The service has a machine that isn't a host in the store.
    Stray {
        host: HostId,
        name: String,
        /// State of the machine's handover.
        place: Place,
    },
    /// A guest is on a host that it may not use, because a lease of another project has the host or its free
    /// pool is closed.
    ForeignGuest {
        host: HostId,
        name: String,
        /// The first such guest on the host.
        guest: GuestId,
        /// Project of that guest, if the fleet knows it.
        project: Option<ProjectId>,
        /// Number of further such guests.
        more: usize,
        /// Whether a lease has the host. If not, it is in a free pool that is only for preemptible guests.
        held: bool,
    },
    /// A machine differs from its record.
    Changed {
        host: HostId,
        name: String,
        /// Properties that differ, in words.
        what: String,
        /// The machine as observed.
        machine: Box<Machine>,
    },
    /// A leased host doesn't have the overcommit ratios that its lease sets.
    Overruled {
        host: HostId,
        name: String,
        /// The reservation that has the host.
        reservation: ReservationId,
        /// Ratios set by the lease.
        ratios: Ratios,
        /// The actual ratios and the remedy.
        message: String,
    },
    /// An object of a lease in the cloud, or a key of the free pool, differs from the store.
    Cloud {
        /// `None` if the difference isn't about a host.
        host: Option<HostId>,
        /// Name of the lease; `None` if the difference isn't about one.
        lease: Option<String>,
        /// The difference, in words.
        what: String,
        /// Whether the loop corrects it.
        is_undone: bool,
        /// Guests of other projects on the hosts of the lease, with their projects.
        guests: Vec<(GuestId, Option<ProjectId>)>,
    },
    /// A deleted project still has leases.
    Ownerless {
        project: ProjectId,
        /// At least one.
        leases: Vec<LeaseId>,
        /// Name of the first lease.
        first: String,
    },
    /// A step has failed and hasn't succeeded since.
    StepFails {
        step: String,
        /// Number of failures.
        times: u32,
        /// Error of the last failure.
        message: String,
    },
}

impl Drift {
    /// Short name of the kind, for clients.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WrongClock { .. } => "wrong_clock",
            Self::ForeignFleet { .. } => "foreign_fleet",
            Self::MachineGone { .. } => "machine_gone",
            Self::NotTakenOn { .. } => "not_taken_on",
            Self::Stray { .. } => "stray",
            Self::ForeignGuest { .. } => "foreign_guest",
            Self::Changed { .. } => "changed",
            Self::Overruled { .. } => "overruled",
            Self::Cloud { .. } => "cloud_differs",
            Self::Ownerless { .. } => "ownerless",
            Self::StepFails { .. } => "step_fails",
        }
    }

    /// The machine that differs, if it is about one.
    pub fn host(&self) -> Option<HostId> {
        match self {
            Self::MachineGone { host, .. }
            | Self::NotTakenOn { host, .. }
            | Self::Stray { host, .. }
            | Self::ForeignGuest { host, .. }
            | Self::Changed { host, .. }
            | Self::Overruled { host, .. } => Some(*host),
            Self::Cloud { host, .. } => *host,
            Self::StepFails { .. }
            | Self::Ownerless { .. }
            | Self::WrongClock { .. }
            | Self::ForeignFleet { .. } => None,
        }
    }

    /// Whether [`Repairs::repair`] can correct it.
    pub fn repairable(&self) -> bool {
        matches!(
            self,
            Self::NotTakenOn { .. }
                | Self::Stray { .. }
                | Self::Changed { .. }
                | Self::Overruled { .. }
                | Self::Ownerless { .. }
        )
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongClock { message } | Self::ForeignFleet { message } => f.write_str(message),
            Self::MachineGone { name, .. } => {
                write!(
                    f,
                    "host {name} can be leased, but the fleet has no such machine: bring it back, or delete the host"
                )
            }
            Self::NotTakenOn { name, .. } => {
                write!(
                    f,
                    "host {name} can be leased, but its machine was not handed to the service: a repair hands it over"
                )
            }
            Self::Stray { name, place, .. } => {
                let place = match place {
                    Place::FreePool => "in the free pool",
                    Place::Fenced { .. } => "fenced",
                    Place::Held(_) => "held for a lease",
                    Place::Releasing(_) => "being taken back from a lease",
                };
                write!(
                    f,
                    "machine {name} is {place}, but isn't a host of the service: a repair returns it to the fleet"
                )
            }
            Self::ForeignGuest { name, guest, project, more, held, .. } => {
                let of = project.as_ref().map(|project| format!(" of project {project}")).unwrap_or_default();
                let others = if *more == 0 { String::new() } else { format!(" (and {more} more)") };
                let place = if *held {
                    "which is leased by another project"
                } else {
                    "in a free pool that is closed to it"
                };
                write!(
                    f,
                    "guest {guest}{of}{others} is on host {name}, {place}: it stayed after a lease, an administrator put it there, \
                     or the fence does not work; move it or delete it"
                )
            }
            Self::Changed { name, what, .. } => {
                write!(f, "machine {name} has other {what} than is on record: a repair records them")
            }
            Self::Cloud { lease, what, is_undone, guests, .. } => {
                if let Some(lease) = lease {
                    write!(f, "lease {lease}: ")?;
                }
                f.write_str(what)?;
                for (number, (guest, project)) in guests.iter().enumerate() {
                    let of = project.as_ref().map(|project| format!(" of project {project}"));
                    let before = if number == 0 { "; on its hosts: " } else { ", " };
                    write!(f, "{before}guest {guest}{}", of.unwrap_or_default())?;
                }
                f.write_str(if *is_undone { "; the service undoes it within two rounds" } else { "" })
            }
            Self::Overruled { message, .. } => write!(f, "{message}; a repair restores the lease's setting"),
            Self::Ownerless { project, leases, first } => {
                let others = if leases.len() == 1 {
                    String::new()
                } else {
                    format!(" (and {} more)", leases.len() - 1)
                };
                write!(
                    f,
                    "lease {first}{others} is of project {project}, which was deleted: a repair deletes it"
                )
            }
            Self::StepFails { step, times, message } => {
                let tries = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
                write!(f, "the step \"{step}\" has failed {tries} and is tried again: {message}")
            }
        }
    }
}

/// Finds and repairs drift.
#[derive(Clone, Copy, Debug)]
pub struct Repairs<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Repairs<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Compares all machines with the store, and looks for leases of deleted projects if `projects` is given.
    /// Changes nothing.
    pub async fn drift(self, projects: Option<&dyn Projects>) -> Result<Vec<Drift>, ServiceError> {
        let _alone = self.service.comparison.lock().await;
        self.service.parts.fleet.look_closely().await;
        if self.service.knows_whose() {
            self.expect().await;
        }
        let machines = self.service.in_time(self.service.parts.fleet.machines()).await?;
        let all: BTreeSet<HostId> = machines.iter().map(|machine| machine.id).collect();
        let observed =
            self.service.in_time(self.service.parts.fleet.observe(&all, &self.service.addresses())).await?;
        self.service.in_time(Box::pin(self.service.look_whose(&machines))).await?;
        let (clock, fleet) = self.service.suspensions();
        let state = self.service.snapshot();
        let open_pool = self.service.decider.settings.open_pool;
        let mut found = beside_requests(|| {
            let mut found = compare(&state.hosts, &machines, &observed);
            found.extend(changed(&state, &machines));
            found.extend(foreign_guests(&state.hosts, &observed, open_pool));
            found
        });
        found.extend(self.overruled(&state, &observed).await?);
        found.extend(self.cloud_differences(&state, &observed).await?);
        if let Some(projects) = projects {
            found.extend(self.ownerless(projects).await);
        }
        found.extend(self.failing(&state));
        if fleet.is_some() {
            // These machines belong to another store, which `ForeignFleet` reports once.
            found.retain(|drift| !matches!(drift, Drift::Stray { .. }));
        }
        let fleet = fleet.map(|message| Drift::ForeignFleet { message });
        let clock = clock.map(|message| Drift::WrongClock { message });
        Ok(clock.into_iter().chain(fleet).chain(found).collect())
    }

    /// Leased hosts with other overcommit ratios than their leases.
    async fn overruled(self, state: &State, observed: &Observed) -> Result<Vec<Drift>, ServiceError> {
        let held = observed.hosts.iter().filter_map(|(host, seen)| {
            let Place::Held(reservation) = seen.place else { return None };
            let lease = state.leases.of_reservation(reservation).and_then(|id| state.leases.get(id))?;
            let ReservationTerms::Hosts(terms) = &lease.lease.reservation(reservation)?.terms else {
                return None;
            };
            let wanted = terms.pool.ratios;
            (wanted != Ratios::default()).then_some((*host, (reservation, wanted)))
        });
        let held: BTreeMap<HostId, (ReservationId, Ratios)> = held.collect();
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let found =
            self.service.in_time(self.service.parts.fleet.overruled(&held.keys().copied().collect())).await?;
        let drift = |(host, message): (HostId, String)| {
            let (reservation, ratios) = *held.get(&host)?;
            let name = state.hosts.get(&host)?.host.name.clone();
            Some(Drift::Overruled { host, name, reservation, ratios, message })
        };
        Ok(found.into_iter().filter_map(drift).collect())
    }

    /// Failed steps that are still wanted. Steps for leases, instances and hosts that are gone don't count.
    fn failing(self, state: &State) -> Vec<Drift> {
        let progress = self.service.progress();
        let failing = state.history.failures.iter().filter(|(action, _)| progress.is_wanted(**action));
        let said = failing.map(|(action, failures)| Drift::StepFails {
            step: action.named(Some(&state.inventory)),
            times: failures.times,
            message: failures.message.clone(),
        });
        said.collect()
    }

    /// Repairs repairable drift and returns the rest.
    ///
    /// A host that is being taken on right now can look like a stray machine and be given back. The next
    /// check then reports it as missing.
    pub async fn repair(
        self,
        caller: &Caller,
        projects: Option<&dyn Projects>,
    ) -> Result<Vec<Drift>, ServiceError> {
        for drift in self.drift(projects).await?.iter().filter(|drift| drift.repairable()) {
            drop(self.service.writer().await?);
            if let Err(error) = self.repair_one(caller, drift).await {
                tracing::warn!(%drift, %error, "drift repair failed");
                continue;
            }
            // Changes of leases have audit records of their own.
            let Some(host) = drift.host() else { continue };
            let writer = self.service.writer().await?;
            let now = self.service.now();
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "host.repair", &host));
            if let Err(error) = writer.commit(commit).await {
                tracing::warn!(%error, "drift repair not recorded");
            }
        }
        self.service.wake.notify_one();
        self.drift(projects).await
    }

    async fn repair_one(self, caller: &Caller, drift: &Drift) -> Result<(), ServiceError> {
        match drift {
            Drift::NotTakenOn { host, .. } => Hosts::of(self.service).adopt(*host).await,
            Drift::Stray { host, place, .. } => self.give_back(*host, *place).await,
            Drift::Changed { machine, .. } => {
                let machines = BTreeMap::from([(machine.id, Machine::clone(machine))]);
                let writer = self.service.writer().await?;
                Ok(Execution::of(self.service).record_machines(&writer, machines).await?)
            }
            Drift::Overruled { host, reservation, ratios, .. } => {
                let key = self.repair_key();
                self.service
                    .in_time(self.service.parts.fleet.set_ratios(*host, *reservation, *ratios, &key))
                    .await
                    .map(drop)
            }
            Drift::Ownerless { leases, .. } => self.delete_ownerless(caller, leases).await,
            Drift::MachineGone { .. }
            | Drift::ForeignGuest { .. }
            | Drift::Cloud { .. }
            | Drift::StepFails { .. }
            | Drift::WrongClock { .. }
            | Drift::ForeignFleet { .. } => Ok(()),
        }
    }

    /// Leases of deleted projects that have not ended. Empty if deleted projects can't be determined; the
    /// reason is logged.
    pub(crate) async fn ownerless(self, projects: &dyn Projects) -> Vec<Drift> {
        let mut leases: BTreeMap<ProjectId, Vec<(LeaseId, String)>> = BTreeMap::new();
        let state = self.service.snapshot();
        let all = state.leases.going().chain(state.leases.pending()).map(|record| &record.lease);
        // A lease that is ending needs no repair.
        for lease in all.filter(|lease| !lease.ending()) {
            let of_project = leases.entry(lease.owner.project.clone()).or_default();
            of_project.push((lease.id, lease.name.clone()));
        }
        if leases.is_empty() {
            return Vec::new();
        }
        let deleted = match projects.deleted(&leases.keys().cloned().collect()).await {
            Ok(deleted) => deleted,
            Err(error) => {
                tracing::warn!(error, "deleted projects not looked for");
                return Vec::new();
            }
        };
        let gone = leases.into_iter().filter(|(project, _)| deleted.contains(project));
        gone.filter_map(|(project, leases)| {
            let first = leases.first()?.1.clone();
            Some(Drift::Ownerless { project, first, leases: leases.into_iter().map(|(id, _)| id).collect() })
        })
        .collect()
    }

    pub(crate) async fn delete_ownerless(
        self,
        caller: &Caller,
        leases: &[LeaseId],
    ) -> Result<(), ServiceError> {
        for lease in leases {
            match Leases::of(self.service).delete(caller, *lease).await {
                // The lease has ended in the meantime, or was already deleted.
                Ok(()) | Err(ServiceError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A unique key outside all claims. No delayed operation can have the same one.
    fn repair_key(self) -> OperationKey {
        let key = format!("repair {:032x}", self.service.parts.ids.uuid());
        OperationKey { key, ..OperationKey::default() }
    }

    /// Returns a machine to the fleet in any state of its handover. No lease can have it, because the store
    /// doesn't know it.
    async fn give_back(self, host: HostId, place: Place) -> Result<(), ServiceError> {
        let key = self.repair_key();
        let fleet = &self.service.parts.fleet;
        match place {
            Place::FreePool => {}
            Place::Fenced { .. } => {
                let step = HookedCall::Step(Action::Unfence(host));
                self.service.in_time_for(step, fleet.unfence(host, &key)).await?;
            }
            Place::Held(holder) | Place::Releasing(holder) => {
                let step = HookedCall::Step(Action::Release(host, holder));
                self.service.in_time_for(step, fleet.release(host, holder, &key)).await?;
            }
        }
        self.service.in_time_for(HookedCall::Abandon, fleet.abandon(host)).await.map(drop)
    }
}

/// Differences in which hosts exist, by host.
fn compare(
    hosts: &BTreeMap<HostId, Arc<HostRecord>>,
    machines: &[Machine],
    observed: &Observed,
) -> Vec<Drift> {
    let machines: BTreeMap<HostId, &Machine> = machines.iter().map(|machine| (machine.id, machine)).collect();
    let mut found = Vec::new();
    for (&host, record) in hosts {
        let name = record.host.name.clone();
        if !machines.contains_key(&host) {
            found.push(Drift::MachineGone { host, name });
        } else if !observed.hosts.contains_key(&host) {
            found.push(Drift::NotTakenOn { host, name });
        }
    }
    for (&host, seen) in observed.hosts.iter().filter(|(host, _)| !hosts.contains_key(host)) {
        let name = machines.get(&host).map_or_else(|| host.to_string(), |machine| machine.name.clone());
        found.push(Drift::Stray { host, name, place: seen.place });
    }
    found
}

/// Machines with other properties than their records, by host. Health is not compared because it changes all
/// the time.
fn changed(state: &State, machines: &[Machine]) -> Vec<Drift> {
    let machines: BTreeMap<HostId, Machine> =
        machines.iter().map(|machine| (machine.id, machine.clone())).collect();
    let mut found = Vec::new();
    for now in refreshed(state, &machines) {
        let Some(before) = state.hosts.get(&now.id).map(|record| &record.host) else { continue };
        let size = |host: &Host| (host.vcpus, host.memory_mib, host.disk_gib);
        let hypervisor =
            |host: &Host| (host.cpu_info.clone(), host.hypervisor_type.clone(), host.hypervisor_version);
        let different = [
            (size(before) != size(&now), "sizes"),
            (before.other_resources != now.other_resources, "resources"),
            (before.traits != now.traits, "traits"),
            (hypervisor(before) != hypervisor(&now), "facts of its hypervisor"),
            (before.availability_zone != now.availability_zone, "availability zones"),
        ];
        let what: Vec<&str> = different.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        if !what.is_empty() {
            let (host, name, what) = (now.id, before.name.clone(), what.join(" and "));
            let machine = machines.get(&host).cloned().map(Box::new);
            found.extend(machine.map(|machine| Drift::Changed { host, name, what, machine }));
        }
    }
    found
}

/// Guests on hosts where the fence should keep them out, by host.
fn foreign_guests(
    hosts: &BTreeMap<HostId, Arc<HostRecord>>,
    observed: &Observed,
    open_pool: bool,
) -> Vec<Drift> {
    let mut found = Vec::new();
    for (&host, seen) in &observed.hosts {
        let held = matches!(seen.place, Place::Held(_));
        let closed = held || (seen.place == Place::FreePool && !open_pool);
        let mut foreign = seen.guests.iter().filter(|guest| closed && guest.owner == GuestOwner::Other);
        if let (Some(first), Some(record)) = (foreign.next(), hosts.get(&host)) {
            let (name, project) = (record.host.name.clone(), first.project.clone());
            let (guest, more) = (first.id, foreign.count());
            found.push(Drift::ForeignGuest { host, name, guest, project, more, held });
        }
    }
    found
}

#[cfg(test)]
mod tests {

    use leases::plan::{Guest, ObservedHost};
    use store::Version;

    use super::*;

    fn one_host() -> BTreeMap<HostId, Arc<HostRecord>> {
        let host = Host::new(HostId(1), "node1", 8, 4096, 100);
        let at = jiff::Timestamp::UNIX_EPOCH;
        let record = HostRecord { host, version: Version::FIRST, created_at: at, updated_at: None };
        BTreeMap::from([(HostId(1), Arc::new(record))])
    }

    #[test]
    fn guests_are_foreign_on_hosts_of_leases_and_in_closed_free_pools() {
        let found = |place, owner, open_pool| {
            let project = Some(ProjectId("p1".to_owned()));
            let guest = |id| Guest { project: project.clone(), ..Guest::new(GuestId(id), owner) };
            let guests = vec![guest(7), guest(8)];
            let host = ObservedHost { place, guests, ..ObservedHost::free() };
            let observed = Observed { hosts: BTreeMap::from([(HostId(1), host)]), ..Observed::default() };
            foreign_guests(&one_host(), &observed, open_pool)
        };
        let held = Place::Held(ReservationId(1));
        for (place, open_pool) in [(held, true), (held, false), (Place::FreePool, false)] {
            let said = found(place, GuestOwner::Other, open_pool).pop().expect("it is noticed").to_string();
            assert!(said.contains("of project p1 (and 1 more) is on host node1"), "{said}");
            assert_eq!(found(place, GuestOwner::Preemptible, open_pool), []);
        }
        assert_eq!(found(Place::FreePool, GuestOwner::Other, true), []);
        assert_eq!(
            found(Place::Fenced { verified_for: None }, GuestOwner::Other, false),
            [],
            "it is on its way"
        );
    }

    #[test]
    fn a_difference_in_the_cloud_names_the_lease_and_guests_of_others() {
        let guest = |id, project: Option<&str>| (GuestId(id), project.map(|id| ProjectId(id.to_owned())));
        let mut drift = Drift::Cloud {
            host: None,
            lease: Some("mine".to_owned()),
            what: "key k of aggregate a is x, expected y".to_owned(),
            is_undone: true,
            guests: vec![guest(1, Some("p1")), guest(2, None)],
        };
        let guests = format!("guest {} of project p1, guest {}", GuestId(1), GuestId(2));
        assert_eq!(
            drift.to_string(),
            format!(
                "lease mine: key k of aggregate a is x, expected y; on its hosts: {guests}; the service undoes it within two \
                 rounds"
            )
        );
        assert!(!drift.repairable());
        if let Drift::Cloud { lease, is_undone, guests, .. } = &mut drift {
            (*lease, *is_undone) = (None, false);
            guests.clear();
        }
        assert_eq!(drift.to_string(), "key k of aggregate a is x, expected y");
    }

    #[test]
    fn a_host_whose_machine_the_fleet_does_not_have_is_noticed() {
        let found = compare(&one_host(), &[], &Observed::default());
        assert_eq!(found, [Drift::MachineGone { host: HostId(1), name: "node1".to_owned() }]);
        assert!(!found[0].repairable());
    }
}
