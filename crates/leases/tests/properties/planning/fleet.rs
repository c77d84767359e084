//! A fleet that performs steps. Guests start on their own, and hosts fail.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use leases::host::{Health, Inventory};
use leases::ids::{GuestId, HostId, ReservationId};
use leases::lease::{EndAction, Lease};
use leases::plan::{Action, Guest, GuestOwner, Observed, ObservedHost, Place};

use super::Choices;

pub struct Fleet {
    observed: Observed,
    /// Guests sent to a host while it was in the free pool, invisible until they arrive. They are the reason
    /// why a host is checked again after it was fenced.
    landing: Vec<(HostId, Guest)>,
    grace: SignedDuration,
    preemptible: BTreeSet<GuestId>,
    next: u128,
}

impl Fleet {
    pub fn new(inventory: &Inventory, grace: SignedDuration) -> Self {
        let hosts: BTreeMap<_, _> = inventory.hosts().map(|host| (host.id, ObservedHost::free())).collect();
        let observed = Observed { hosts, ..Observed::default() };
        Self { observed, landing: Vec::new(), grace, preemptible: BTreeSet::new(), next: 1 }
    }

    pub fn observe(&self) -> Observed {
        self.observed.clone()
    }

    pub fn place(&self, host: HostId) -> Place {
        self.observed.hosts[&host].place
    }

    pub fn slots(&self, host: HostId, reservation: ReservationId) -> Option<u32> {
        self.observed.hosts[&host].slots.get(&reservation).copied()
    }

    pub fn all_slots(&self, host: HostId) -> BTreeMap<ReservationId, u32> {
        self.observed.hosts[&host].slots.clone()
    }

    pub fn is_preemptible(&self, guest: GuestId) -> bool {
        self.preemptible.contains(&guest)
    }

    /// Hosts outside the free pool, or with granted slots.
    pub fn not_free(&self) -> Vec<HostId> {
        let free = |host: &ObservedHost| host.place == Place::FreePool && host.slots.is_empty();
        self.observed.hosts.iter().filter(|(_, host)| !free(host)).map(|(id, _)| *id).collect()
    }

    fn pick(&mut self, choices: &mut Choices) -> (HostId, &mut ObservedHost) {
        let position = usize::from(choices.below(self.observed.hosts.len() as u16));
        let (id, host) = self.observed.hosts.iter_mut().nth(position).expect("within the number of hosts");
        (*id, host)
    }

    pub fn fail(&mut self, choices: &mut Choices) {
        self.pick(choices).1.health = Health::Failed;
    }

    pub fn recover(&mut self, choices: &mut Choices) {
        self.pick(choices).1.health = Health::Up;
    }

    pub fn recover_all(&mut self) {
        for (host, guest) in std::mem::take(&mut self.landing) {
            self.land(host, guest);
        }
        self.observed.hosts.values_mut().for_each(|host| host.health = Health::Up);
    }

    /// Sends a preemptible guest to a host that is open to it. The guest might arrive later.
    pub fn land_preemptible(&mut self, choices: &mut Choices) {
        let id = GuestId(self.next);
        self.next += 1;
        let (host, observed) = self.pick(choices);
        if observed.place != Place::FreePool {
            return;
        }
        let guest = Guest::new(id, GuestOwner::Preemptible);
        self.preemptible.insert(id);
        if choices.below(2) == 0 {
            self.land(host, guest);
        } else {
            self.landing.push((host, guest));
        }
    }

    fn land(&mut self, host: HostId, guest: Guest) {
        self.host(host).guests.push(guest);
    }

    fn host(&mut self, host: HostId) -> &mut ObservedHost {
        self.observed.hosts.get_mut(&host).expect("a host of the fleet")
    }

    /// Lets projects start guests where they can, in leases that delete their guests at the end.
    pub fn start_guests_of_leases(&mut self, leases: &[Lease], choices: &mut Choices) {
        let id = GuestId(self.next);
        self.next += 1;
        let (_, host) = self.pick(choices);
        let can_use = |lease: &&Lease| {
            let reservation = |id| lease.reservation(id).is_some();
            let holds = matches!(host.place, Place::Held(holder) if reservation(holder));
            (holds || host.slots.keys().any(|id| reservation(*id)))
                && lease.end_action == EndAction::DeleteGuests
        };
        if let Some(lease) = leases.iter().find(can_use) {
            let owner = GuestOwner::Lease(lease.id);
            host.guests.push(Guest::new(id, owner));
        }
    }

    /// Performs an action, or returns an error. An inapplicable action has no effect.
    pub fn perform(&mut self, action: Action, now: Timestamp) -> Result<(), &'static str> {
        match action {
            // All hosts are on in this test.
            Action::PowerOn(_) | Action::PowerOff(_) | Action::Prepare(_) | Action::Finish(_) => {}
            Action::Fence(id) => {
                let host = self.working(id)?;
                if host.place == Place::FreePool {
                    host.place = Place::Fenced { verified_for: None };
                }
            }
            Action::StopGuest(id, guest) => {
                let host = self.working(id)?;
                if let Some(guest) = host.guests.iter_mut().find(|g| g.id == guest) {
                    guest.stopping_since.get_or_insert(now);
                }
            }
            Action::ResumeGuest(id, guest) => {
                let host = self.working(id)?;
                if let Some(guest) = host.guests.iter_mut().find(|g| g.id == guest) {
                    guest.stopping_since = None;
                }
            }
            Action::DeleteGuest(id, guest) => self.delete(id, guest, now)?,
            Action::MoveGuest(..) => unreachable!("nobody hunts here"),
            Action::SetRatios(..) => unreachable!("hosts are not over-committed here"),
            Action::StartGuest(..) | Action::DestroyGuest(..) => unreachable!("there are no instances"),
            Action::Verify(id, reservation) => self.verify(id, reservation)?,
            Action::Hold(id, reservation) => {
                let host = self.working(id)?;
                if host.place == (Place::Fenced { verified_for: Some(reservation) }) {
                    host.place = Place::Held(reservation);
                }
            }
            Action::Release(id, reservation) => {
                let host = self.working(id)?;
                if host.place == Place::Held(reservation) {
                    host.place = Place::FreePool;
                }
            }
            Action::Unfence(id) => {
                let host = self.working(id)?;
                if matches!(host.place, Place::Fenced { .. }) {
                    host.place = Place::FreePool;
                }
            }
            Action::Grant(id, reservation, count) => {
                self.working(id)?.slots.insert(reservation, count);
            }
            Action::Withdraw(id, reservation) => {
                self.working(id)?.slots.remove(&reservation);
            }
            Action::Assign(ip, reservation) => {
                self.observed.floating_ips.entry(ip).or_insert(reservation);
            }
            Action::Unassign(ip, reservation) => {
                if self.observed.floating_ips.get(&ip) == Some(&reservation) {
                    self.observed.floating_ips.remove(&ip);
                }
            }
            Action::Snapshot(id, _) => {
                self.working(id)?;
            }
        }
        Ok(())
    }

    fn working(&mut self, host: HostId) -> Result<&mut ObservedHost, &'static str> {
        let host = self.host(host);
        if host.health == Health::Failed { Err("host is down") } else { Ok(host) }
    }

    fn delete(&mut self, id: HostId, guest: GuestId, now: Timestamp) -> Result<(), &'static str> {
        let grace = self.grace;
        let host = self.working(id)?;
        for found in host.guests.iter().filter(|g| g.id == guest) {
            if found.owner == GuestOwner::Preemptible {
                let since = found.stopping_since.expect("asked to shut down first");
                assert!(now.duration_since(since) >= grace, "deleted before its grace time has passed");
            }
            assert_ne!(found.owner, GuestOwner::Other);
        }
        host.guests.retain(|g| g.id != guest);
        Ok(())
    }

    /// Verifies a fenced host. Guests on their way have arrived by now.
    fn verify(&mut self, id: HostId, reservation: ReservationId) -> Result<(), &'static str> {
        self.working(id)?;
        let (landed, flying) =
            std::mem::take(&mut self.landing).into_iter().partition::<Vec<_>, _>(|(host, _)| *host == id);
        self.landing = flying;
        for (host, guest) in landed {
            self.land(host, guest);
        }
        let preemptible = |guest: &Guest| guest.owner == GuestOwner::Preemptible;
        let host = self.host(id);
        if matches!(host.place, Place::Fenced { .. }) && !host.guests.iter().any(preemptible) {
            host.place = Place::Fenced { verified_for: Some(reservation) };
        }
        Ok(())
    }

    /// Checks that only guests of the lease run on a host held by its reservation.
    pub fn assert_only_own_guests_on_held_hosts(&self, leases: &[Lease]) {
        for (id, host) in &self.observed.hosts {
            let Place::Held(holder) = host.place else { continue };
            let Some(lease) = leases.iter().find(|lease| lease.reservation(holder).is_some()) else {
                continue;
            };
            for guest in &host.guests {
                assert_eq!(guest.owner, GuestOwner::Lease(lease.id), "guest on host {id}");
            }
        }
    }
}
