//! State of a simulated fleet, and its future events. Nothing here waits or locks.

use std::collections::BTreeMap;

use super::timing::later;
use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use leases::lease_pool::{Ratio, Ratios};
use leases::plan;
use leases::plan::{GuestOwner, GuestSize, Mobility, Overcommit, Told};
use leases::project::ProjectId;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::background_load::{BackgroundLoad, Talker};
use super::hosts::Hosts;
use super::script::{Happening, SavedOwner};
use super::supply::Supply;
use super::timing::Timing;
use super::violation::Violation;
use crate::Keeper;
use crate::late::Fences;
use crate::saved::{Identifier as _, by_id, id, id_or_none, pairs};
use crate::site::Site;

/// Behavior of a simulated fleet. Set at each start and never saved, unlike [`State`].
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) timing: Timing,
    pub(super) background_load: BackgroundLoad,
    /// Grace time of preemptible guests whose class has no notice.
    pub(super) grace: SignedDuration,
    /// Whether reservations require objects of their own.
    pub(super) prepares: bool,
    /// Guests stay on their hosts after a shutdown, as in a cloud.
    pub(super) stay_shut_off: bool,
    /// Memory for guests, MiB.
    pub(super) memory_mib: BTreeMap<HostId, u64>,
}

/// The saved state of a simulated fleet.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    seed: u64,
    /// Number of random generators drawn so far.
    draws: u64,
    pub(super) hosts: Hosts<Host>,
    #[serde(with = "by_id")]
    pub(super) floating_ips: BTreeMap<FloatingIpId, Assigned>,
    #[serde(with = "pairs")]
    events: BTreeMap<(Timestamp, u64), Event>,
    /// Prepared reservations.
    #[serde(default, with = "by_id")]
    pub(super) reservations: BTreeMap<ReservationId, Made>,
    /// Number of events scheduled so far.
    numbered: u64,
    #[serde(skip)]
    pub(super) fences: Fences,
    #[serde(default)]
    pub(super) keeper: Keeper,
    /// Instances' guests that were started (with the end of their boot) or destroyed.
    #[serde(default, with = "by_id")]
    pub(super) instances: BTreeMap<GuestId, Timestamp>,
    /// Guests that were stopped and kept, and the time.
    #[serde(default, with = "by_id")]
    pub(super) kept: BTreeMap<GuestId, Timestamp>,
    /// Number of images of guests made so far.
    pub(super) images: u64,
    #[serde(skip)]
    pub(super) violations: Vec<Violation>,
}

/// Objects of a prepared reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    /// Number of the reservation, which its objects are named after.
    pub(super) number: u32,
    pub(super) vcpus: u32,
    pub(super) memory_mib: u32,
    pub(super) disk_gib: u32,
    /// Affinity in the API's notation.
    pub(super) affinity: Option<bool>,
}

/// Holder of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Assigned {
    #[serde(with = "id")]
    pub(super) reservation: ReservationId,
}

/// State of a host.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Host {
    pub(super) site: Site,
    #[serde(with = "SavedHealth")]
    pub(super) health: Health,
    #[serde(with = "by_id", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) guests: BTreeMap<GuestId, Guest>,
    #[serde(with = "by_id", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) slots: BTreeMap<ReservationId, Slots>,
    #[serde(with = "by_id", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) snapshots: BTreeMap<ReservationId, Snapshot>,
    /// Number of guests that are starting or moving here and aren't observed yet.
    pub(super) in_flight: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) supply: Supply,
    /// Over-commitment for the reservation that holds the host.
    #[serde(skip_serializing_if = "is_default")]
    pub(super) ratios: SavedRatios,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Ratios in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedRatios {
    cpu: Option<u32>,
    ram: Option<u32>,
}

impl From<Ratios> for SavedRatios {
    fn from(ratios: Ratios) -> Self {
        Self { cpu: ratios.cpu.map(Ratio::thousandths), ram: ratios.ram.map(Ratio::thousandths) }
    }
}

impl SavedRatios {
    /// The planner's view. Without a lease's ratio, the ratio is 1.
    fn observed(self) -> Overcommit {
        let told = |thousandths: Option<u32>| {
            let ratio = Some(Ratio::from_thousandths(thousandths?)?);
            Some(Told { ratio, before: Ratio::ONE })
        };
        Overcommit { cpu: told(self.cpu), ram: told(self.ram) }
    }
}

/// Slots of a host that a reservation's project can use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Slots {
    pub(super) count: u32,
    #[serde(with = "id_or_none")]
    pub(super) lease: Option<LeaseId>,
}

/// Images of a reservation's guests on a host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) fence: u64,
    pub(super) ready_at: Timestamp,
    /// Whether a call has reported the images as ready.
    pub(super) told: bool,
}

/// State of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Guest {
    pub(super) name: String,
    #[serde(with = "SavedOwner")]
    pub(super) owner: GuestOwner,
    /// `None` for guests that aren't instances and belong to a lease.
    #[serde(default)]
    pub(super) project: Option<String>,
    #[serde(default)]
    pub(super) vcpus: u32,
    pub(super) memory_mib: u32,
    #[serde(default)]
    pub(super) disk_gib: u32,
    /// Time to shut down, if the guest's class sets one.
    #[serde(default)]
    pub(super) notice: Option<SignedDuration>,
    /// The lease that allows the guest on one of its hosts.
    #[serde(default, with = "id_or_none")]
    pub(super) backfills: Option<LeaseId>,
    pub(super) stopping_since: Option<Timestamp>,
    /// The guest has shut down and stays on its host.
    #[serde(default)]
    pub(super) shut_off: bool,
    /// The guest's state is kept after it leaves its host.
    #[serde(default)]
    pub(super) kept: bool,
    pub(super) deleting: bool,
    #[serde(with = "id_or_none")]
    pub(super) moving_to: Option<HostId>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Health", rename_all = "snake_case")]
pub(super) enum SavedHealth {
    Up,
    Failed,
    Unknown,
}

/// A future event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// A guest is observed on its host.
    Lands {
        #[serde(with = "id")]
        host: HostId,
        #[serde(with = "id")]
        id: GuestId,
        guest: Guest,
    },
    /// A guest has ended or was deleted.
    Leaves {
        #[serde(with = "id")]
        id: GuestId,
    },
    /// A guest that was asked to shut down has done so.
    ShutsDown {
        #[serde(with = "id")]
        id: GuestId,
    },
    /// A migrating guest has arrived on its new host.
    Arrives {
        #[serde(with = "id")]
        from: HostId,
        #[serde(with = "id")]
        to: HostId,
        #[serde(with = "id")]
        id: GuestId,
    },
    /// A machine has booted.
    Boots {
        #[serde(with = "id")]
        host: HostId,
    },
    /// A scripted event.
    Scripted(Happening),
    /// A source of guests tries to start one. Files of earlier versions have the former name.
    #[serde(alias = "chatter")]
    BackgroundLoad(Talker),
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            draws: 0,
            hosts: Hosts::default(),
            floating_ips: BTreeMap::new(),
            events: BTreeMap::new(),
            reservations: BTreeMap::new(),
            numbered: 0,
            fences: Fences::default(),
            keeper: Keeper::default(),
            instances: BTreeMap::new(),
            kept: BTreeMap::new(),
            images: 0,
            violations: Vec::new(),
        }
    }

    /// The state as JSON, with only those hosts that may have changed since the last save. Removed hosts are
    /// `null`.
    pub(super) fn take_changes(&mut self) -> Result<Value, serde_json::Error> {
        let mut hosts = std::mem::take(&mut self.hosts);
        let changed = hosts.take_changed();
        let fields = serde_json::to_value(&*self);
        self.hosts = hosts;
        let entry = |id: HostId| Ok((id.text(), serde_json::to_value(self.hosts.get(&id))?));
        let entries: Result<Map<String, Value>, serde_json::Error> = changed.into_iter().map(entry).collect();
        let mut changes = fields?;
        changes["hosts"] = Value::Object(entries?);
        Ok(changes)
    }

    /// The state as JSON, with all hosts.
    pub(super) fn take_all(&mut self) -> Result<Value, serde_json::Error> {
        self.hosts.take_changed();
        serde_json::to_value(self)
    }

    /// A random generator for one purpose. It depends on the number of earlier generators, so a saved state
    /// continues the same sequence.
    pub(super) fn draw(&mut self) -> SmallRng {
        self.draws += 1;
        SmallRng::seed_from_u64(self.seed ^ self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A guest identifier with the version and variant of a random UUID.
    fn draw_guest_id(&mut self) -> GuestId {
        let number: u128 = self.draw().random();
        let variable = number & !(0xf << 76) & !(0x3 << 62);
        GuestId(variable | 0x4 << 76 | 0x2 << 62)
    }

    pub(super) fn schedule(&mut self, at: Timestamp, event: Event) {
        self.numbered += 1;
        self.events.insert((at, self.numbered), event);
    }

    /// Whether the next attempt of this source to start a guest is scheduled.
    pub(super) fn talks(&self, talker: Talker) -> bool {
        self.events.values().any(|event| matches!(event, Event::BackgroundLoad(who) if *who == talker))
    }

    pub(super) fn next_event(&self) -> Option<Timestamp> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the next event if it is due.
    fn due(&mut self, now: Timestamp) -> Option<(Timestamp, Event)> {
        let entry = self.events.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), event) = entry.remove_entry();
        Some((at, event))
    }

    /// Applies all events until `now`. Returns whether there were any.
    pub(super) fn advance(&mut self, rules: &Rules, now: Timestamp) -> bool {
        let mut happened = false;
        while let Some((at, event)) = self.due(now) {
            happened = true;
            match event {
                Event::Lands { host, id, guest } => self.land(host, id, guest, at),
                Event::Leaves { id } => self.remove(id, at),
                Event::ShutsDown { id } => self.shut_down(rules, id, at),
                Event::Arrives { from, to, id } => self.arrive(from, to, id),
                Event::Boots { host } => self.boot(host, at),
                Event::Scripted(happening) => self.happen(rules, happening, at),
                Event::BackgroundLoad(talker) => self.talk(rules, talker, at, now),
            }
        }
        happened
    }

    /// Memory that guests on the host, and guests moving there, leave free, MiB.
    pub(super) fn free_memory_mib(&self, rules: &Rules, id: HostId) -> u64 {
        let here = self.hosts.get(&id).into_iter().flat_map(|host| host.guests.values());
        let elsewhere = self.hosts.iter().filter(|(other, _)| **other != id);
        let moving = elsewhere.flat_map(|(_, host)| host.guests.values());
        let moving = moving.filter(|guest| guest.moving_to == Some(id));
        let used: u64 = here.chain(moving).map(|guest| u64::from(guest.memory_mib)).sum();
        rules.memory_mib.get(&id).copied().unwrap_or(0).saturating_sub(used)
    }

    pub(super) fn whereabouts(&self, guest: GuestId) -> Option<HostId> {
        self.hosts.iter().find(|(_, host)| host.guests.contains_key(&guest)).map(|(id, _)| *id)
    }

    /// Applies an event to the machines.
    pub(super) fn happen(&mut self, rules: &Rules, happening: Happening, at: Timestamp) {
        let set = |state: &mut Self, host, health| {
            if let Some(host) = state.hosts.get_mut(host) {
                host.health = health;
            }
        };
        match happening {
            Happening::HostFails(host) => set(self, host, Health::Failed),
            Happening::HostFallsSilent(host) => set(self, host, Health::Unknown),
            Happening::HostRecovers(host) => {
                set(self, host, Health::Up);
                if let Some(host) = self.hosts.get_mut(host) {
                    host.supply.repair();
                }
            }
            Happening::HostWillNotBoot(host) => {
                if let Some(host) = self.hosts.get_mut(host) {
                    host.supply.break_boots();
                }
            }
            Happening::HostVanishes(host) => {
                self.hosts.remove(host);
            }
            Happening::GuestStarts { host, owner, runs_for } => {
                self.start(rules, host, owner, runs_for, at);
            }
            Happening::GuestEnds(guest) => self.schedule(at, Event::Leaves { id: guest }),
        }
    }

    /// Removes a guest from its host.
    pub(super) fn remove(&mut self, id: GuestId, at: Timestamp) {
        let host = self.whereabouts(id).and_then(|host| self.hosts.get_mut(host));
        let gone = host.and_then(|host| host.guests.remove(&id));
        if gone.is_some_and(|gone| gone.kept) {
            self.kept.insert(id, at);
        }
    }

    /// Shuts a guest down.
    pub(super) fn shut_down(&mut self, rules: &Rules, id: GuestId, at: Timestamp) {
        if !rules.stay_shut_off {
            self.remove(id, at);
        } else if let Some(host) = self.whereabouts(id).and_then(|host| self.hosts.get_mut(host))
            && let Some(guest) = host.guests.get_mut(&id)
        {
            guest.shut_off = true;
        }
    }

    /// Cancels the shutdown of a guest.
    pub(super) fn cancel_shut_down(&mut self, guest: GuestId) {
        self.events.retain(|_, event| !matches!(event, Event::ShutsDown { id } if *id == guest));
    }

    /// Starts a guest on a host. `None` if the scheduler rejects guests of this owner there, or if there
    /// isn't enough memory for another project's guest.
    pub(super) fn start(
        &mut self,
        rules: &Rules,
        host: HostId,
        owner: GuestOwner,
        runs_for: Option<SignedDuration>,
        at: Timestamp,
    ) -> Option<GuestId> {
        if !self.hosts.get(&host)?.admits(owner) {
            return None;
        }
        let id = self.draw_guest_id();
        let boot = rules.timing.boot.draw(&mut self.draw());
        let power = self.draw().random_range(0..5u32);
        let guest = Guest {
            name: format!("vm-{}", &id.to_string()[..8]),
            owner,
            project: (!matches!(owner, GuestOwner::Lease(_))).then(|| "somebody".to_owned()),
            vcpus: 1 << power.saturating_sub(1),
            memory_mib: 1024 << power,
            disk_gib: 0,
            notice: None,
            backfills: None,
            stopping_since: None,
            shut_off: false,
            kept: false,
            deleting: false,
            moving_to: None,
        };
        if owner == GuestOwner::Other && self.free_memory_mib(rules, host) < u64::from(guest.memory_mib) {
            return None;
        }
        self.hosts.get_mut(host)?.in_flight += 1;
        if boot.is_zero() {
            self.land(host, id, guest, at);
        } else {
            self.schedule(later(at, boot), Event::Lands { host, id, guest });
        }
        if let Some(runs_for) = runs_for {
            self.schedule(later(at, boot.max(runs_for)), Event::Leaves { id });
        }
        Some(id)
    }

    /// Ends the start of a guest, which is lost if its host has failed.
    pub(super) fn land(&mut self, id: HostId, guest: GuestId, landing: Guest, at: Timestamp) {
        let Some(host) = self.hosts.get_mut(id) else { return };
        host.in_flight = host.in_flight.saturating_sub(1);
        if host.health() == Health::Failed {
            return;
        }
        if let Site::Held { lease, .. } = host.site
            && !is_of(landing.owner, lease)
            && (lease.is_none() || landing.backfills != lease)
        {
            self.violations.push(Violation::LandedOnHeldHost { host: id, guest, at });
        }
        if let Site::Fenced { verified_for: Some(_) } = host.site {
            self.violations.push(Violation::LandedAfterVerification { host: id, guest, at });
        }
        host.guests.insert(guest, landing);
    }
}

/// Whether a guest belongs to the lease.
pub(super) fn is_of(owner: GuestOwner, lease: Option<LeaseId>) -> bool {
    lease.is_some_and(|lease| owner == GuestOwner::Lease(lease))
}

impl Host {
    /// Number of guests here or coming here.
    pub(super) fn crowd(&self) -> usize {
        self.guests.len() + self.in_flight as usize
    }

    /// Whether the scheduler lets guests of this owner start here.
    pub(super) fn admits(&self, owner: GuestOwner) -> bool {
        if self.health() == Health::Failed {
            return false;
        }
        match (self.site, owner) {
            (Site::FreePool, GuestOwner::Preemptible)
            | (Site::Elsewhere | Site::FreePool, GuestOwner::Other) => true,
            (Site::FreePool, GuestOwner::Lease(_)) => {
                self.slots.values().any(|slots| is_of(owner, slots.lease))
            }
            (Site::Held { lease, .. }, owner) => is_of(owner, lease),
            (Site::Elsewhere | Site::Fenced { .. }, _) => false,
        }
    }

    /// The planner's view; `None` if the host was not adopted. `overcommits` tells whether the cloud can
    /// over-commit hosts.
    pub(super) fn observed(&self, overcommits: bool) -> Option<plan::ObservedHost> {
        let guest = |(id, guest): (&GuestId, &Guest)| plan::Guest {
            id: *id,
            owner: guest.owner,
            stopping_since: guest.stopping_since,
            project: guest.project.clone().map(ProjectId),
            size: GuestSize { vcpus: guest.vcpus, memory_mib: guest.memory_mib, disk_gib: guest.disk_gib },
            launched_at: None,
            moving_to: guest.moving_to,
            has_shut_down: guest.shut_off,
            copied_percent: None,
            mobility: Some(Mobility::default()),
        };
        Some(plan::ObservedHost {
            place: self.site.place()?,
            health: self.health(),
            reports_guests: true,
            guests: self.guests.iter().map(guest).collect(),
            slots: self.slots.iter().map(|(reservation, slots)| (*reservation, slots.count)).collect(),
            powered: self.powered(),
            overcommit: overcommits.then(|| self.ratios.observed()),
        })
    }
}
