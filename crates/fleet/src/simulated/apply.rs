//! Effects of calls on a simulated fleet.

use super::timing::later;
use jiff::Timestamp;
use leases::host::Health;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::instance::Instance;
use leases::plan::{Action, GuestOwner, Place};

use super::state::{Assigned, Event, Host, Rules, SavedRatios, Slots, Snapshot, State, is_of};
use super::violation::Violation;
use crate::site::Site;
use crate::{FleetError, OperationKey, Outcome};

/// A call that changes something.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// A step of a plan.
    Act(Action, OperationKey),
    /// [`crate::Isolation::adopt`].
    Adopt(HostId),
    /// [`crate::Isolation::abandon`].
    Abandon(HostId),
    /// [`crate::Guests::start`].
    Start(HostId, Box<Instance>, OperationKey),
}

impl State {
    /// Carries out a call. A late call has no effect.
    pub(super) fn apply(
        &mut self,
        rules: &Rules,
        call: &Call,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        if let Call::Act(_, key) | Call::Start(_, _, key) = call {
            self.keeper.fence = self.keeper.fence.max(key.fence);
        }
        match call {
            Call::Adopt(host) => self.adopt(*host),
            Call::Abandon(host) => self.abandon(*host),
            Call::Act(_, key) | Call::Start(_, _, key) if self.fences.is_late(key) => Ok(Outcome::Done),
            Call::Start(host, instance, _) => self.start_instance(rules, *host, instance, now),
            Call::Act(action, key) => self.act(rules, *action, key, now),
        }
    }

    fn adopt(&mut self, id: HostId) -> Result<Outcome, FleetError> {
        let host = self.known(id)?;
        if host.site != Site::Elsewhere {
            return Ok(Outcome::Done);
        }
        let alone = host.in_flight == 0;
        let guests: Vec<_> = host.guests.iter().map(|(id, guest)| (*id, guest.owner)).collect();
        // An instance's guest can stay: it was started while the host was in the free pool.
        let may_stay = |(id, owner)| owner == GuestOwner::Preemptible || self.instances.contains_key(&id);
        if !alone || !guests.into_iter().all(may_stay) {
            return Err(FleetError::Refused(format!("a guest runs on host {id}")));
        }
        self.known(id)?.site = Site::FreePool;
        Ok(Outcome::Done)
    }

    fn abandon(&mut self, id: HostId) -> Result<Outcome, FleetError> {
        let host = self.known(id)?;
        match host.site {
            Site::Elsewhere => {}
            Site::FreePool if host.slots.is_empty() => host.site = Site::Elsewhere,
            _ => return Err(FleetError::Refused(format!("host {id} is not in the free pool"))),
        }
        Ok(Outcome::Done)
    }

    fn act(
        &mut self,
        rules: &Rules,
        action: Action,
        key: &OperationKey,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        match action {
            Action::Assign(ip, reservation) => {
                self.floating_ips.entry(ip).or_insert(Assigned { reservation });
                Ok(Outcome::Done)
            }
            Action::Unassign(ip, reservation) => {
                if self.floating_ips.get(&ip) == Some(&Assigned { reservation }) {
                    self.floating_ips.remove(&ip);
                }
                Ok(Outcome::Done)
            }
            Action::Fence(id) => self.move_to(id, Site::fenced),
            Action::Unfence(id) => self.move_to(id, Site::unfenced),
            Action::Release(id, reservation) => {
                let host = self.working(id)?;
                host.site = host.site.released(reservation);
                if holder(host.site).is_none() {
                    host.ratios = SavedRatios::default();
                }
                Ok(Outcome::Done)
            }
            Action::SetRatios(id, reservation, ratios) => {
                let host = self.working(id)?;
                if holder(host.site) == Some(reservation) {
                    host.ratios = ratios.into();
                }
                Ok(Outcome::Done)
            }
            Action::Hold(id, reservation) => self.hold(id, reservation, key.lease, now),
            Action::Verify(id, reservation) => self.verify(id, reservation, key.lease),
            Action::Grant(id, reservation, count) => {
                let host = self.working(id)?;
                if host.site != Site::Elsewhere {
                    host.slots.insert(reservation, Slots { count, lease: key.lease });
                }
                Ok(Outcome::Done)
            }
            Action::Withdraw(id, reservation) => {
                self.working(id)?.slots.remove(&reservation);
                Ok(Outcome::Done)
            }
            Action::StopGuest(id, guest) => self.stop(rules, id, guest, now),
            Action::ResumeGuest(id, guest) => self.resume(id, guest, key),
            Action::MoveGuest(id, guest, to) => self.migrate(rules, (id, guest, to), key.lease, now),
            Action::DeleteGuest(id, guest) => self.delete(rules, id, guest, now),
            Action::StartGuest(..) => {
                Err(FleetError::Refused("nobody said what is to be started".to_owned()))
            }
            Action::DestroyGuest(id, guest) => self.destroy(rules, id, guest, now),
            Action::Snapshot(id, reservation) => self.snapshot(rules, id, reservation, key, now),
            Action::PowerOn(id) => self.power_on(rules, id, now),
            Action::PowerOff(id) => self.power_off(id, now),
            Action::Prepare(id) => self.prepare(id, key),
            Action::Finish(id) => Ok(self.finish(id)),
        }
    }

    pub(super) fn known(&mut self, id: HostId) -> Result<&mut Host, FleetError> {
        self.hosts.get_mut(id).ok_or_else(|| FleetError::Refused(format!("host {id} is not in the fleet")))
    }

    pub(super) fn working(&mut self, id: HostId) -> Result<&mut Host, FleetError> {
        let host = self.known(id)?;
        if host.health() == Health::Failed {
            return Err(FleetError::Unavailable(format!("host {id} does not answer")));
        }
        Ok(host)
    }

    fn move_to(&mut self, id: HostId, to: impl FnOnce(Site) -> Site) -> Result<Outcome, FleetError> {
        let host = self.working(id)?;
        host.site = to(host.site);
        Ok(Outcome::Done)
    }

    /// Verifies a fenced host. Pending while guests that were started before the fencing are still coming up.
    fn verify(
        &mut self,
        id: HostId,
        reservation: ReservationId,
        lease: Option<LeaseId>,
    ) -> Result<Outcome, FleetError> {
        let host = self.working(id)?;
        if matches!(host.site, Site::Fenced { .. }) {
            if host.in_flight > 0 {
                return Ok(Outcome::Pending);
            }
            if host.guests.values().all(|guest| is_of(guest.owner, lease)) {
                host.site = host.site.verified(reservation);
            }
        }
        Ok(Outcome::Done)
    }

    fn hold(
        &mut self,
        id: HostId,
        reservation: ReservationId,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        let host = self.working(id)?;
        let before = host.site;
        host.site = before.held(reservation, lease);
        if host.site != before {
            let foreign = host.guests.iter().filter(|(_, guest)| !is_of(guest.owner, lease));
            let foreign: Vec<GuestId> = foreign.map(|(guest, _)| *guest).collect();
            let violation = |guest| Violation::HeldWithForeignGuest { host: id, guest, at: now };
            self.violations.extend(foreign.into_iter().map(violation));
        }
        Ok(Outcome::Done)
    }

    fn stop(
        &mut self,
        rules: &Rules,
        id: HostId,
        guest: GuestId,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        let host = self.working(id)?;
        if host.site == Site::Elsewhere {
            return Ok(Outcome::Done);
        }
        let Some(stopping) = host.guests.get_mut(&guest) else { return Ok(Outcome::Done) };
        if stopping.owner == GuestOwner::Other {
            self.violations.push(Violation::TouchedForeignGuest { host: id, guest, at: now });
        } else if stopping.stopping_since.is_none() {
            stopping.stopping_since = Some(now);
            let takes = rules.timing.shut_down.draw(&mut self.draw());
            if takes.is_zero() {
                self.shut_down(rules, guest, now);
            } else {
                self.schedule(later(now, takes), Event::ShutsDown { id: guest });
            }
        }
        Ok(Outcome::Done)
    }

    /// Lets a guest stay that was asked to shut down.
    fn resume(&mut self, id: HostId, guest: GuestId, key: &OperationKey) -> Result<Outcome, FleetError> {
        self.fences.resume(id, guest, key);
        let host = self.working(id)?;
        if let Some(resumed) = host.guests.get_mut(&guest).filter(|guest| !guest.deleting) {
            (resumed.stopping_since, resumed.shut_off) = (None, false);
            self.cancel_shut_down(guest);
        }
        Ok(Outcome::Done)
    }

    fn delete(
        &mut self,
        rules: &Rules,
        id: HostId,
        guest: GuestId,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        let host = self.working(id)?;
        if host.site == Site::Elsewhere {
            return Ok(Outcome::Done);
        }
        let Some(deleted) = host.guests.get_mut(&guest) else { return Ok(Outcome::Done) };
        if deleted.deleting {
            return Ok(Outcome::Pending);
        }
        let (asked_at, notice) = (deleted.stopping_since, deleted.notice.unwrap_or(rules.grace));
        match deleted.owner {
            GuestOwner::Other => {
                self.violations.push(Violation::TouchedForeignGuest { host: id, guest, at: now });
                return Err(FleetError::Refused(format!("guest {guest} is somebody else's")));
            }
            GuestOwner::Preemptible if asked_at.is_none_or(|at| later(at, notice) > now) => {
                deleted.deleting = true;
                self.violations.push(Violation::DeletedBeforeGrace { host: id, guest, asked_at, at: now });
            }
            GuestOwner::Preemptible | GuestOwner::Lease(_) => deleted.deleting = true,
        }
        Ok(self.begin_deletion(rules, guest, now))
    }

    /// Removes the guest after a random duration.
    pub(super) fn begin_deletion(&mut self, rules: &Rules, guest: GuestId, now: Timestamp) -> Outcome {
        let takes = rules.timing.deletion.draw(&mut self.draw());
        self.leave(guest, later(now, takes), now);
        if takes.is_zero() { Outcome::Done } else { Outcome::Pending }
    }

    /// Removes the guest at that time.
    fn leave(&mut self, guest: GuestId, at: Timestamp, now: Timestamp) {
        if at > now {
            self.schedule(at, Event::Leaves { id: guest });
        } else {
            self.remove(guest, now);
        }
    }

    /// Makes images of a reservation's guests. Once a claim has been told that they are ready, a call with
    /// the same claim makes no new ones. A newer claim does.
    fn snapshot(
        &mut self,
        rules: &Rules,
        id: HostId,
        reservation: ReservationId,
        key: &OperationKey,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        let host = self.working(id)?;
        if !matches!(host.site, Site::Held { reservation: holder, .. } if holder == reservation) {
            return Ok(Outcome::Done);
        }
        if let Some(snapshot) = host.snapshots.get_mut(&reservation)
            && (!snapshot.told || key.fence <= snapshot.fence)
        {
            if now < snapshot.ready_at {
                return Ok(Outcome::Pending);
            }
            *snapshot = Snapshot { told: true, fence: key.fence, ..*snapshot };
            return Ok(Outcome::Done);
        }
        let guests = host.guests.values().filter(|guest| is_of(guest.owner, key.lease)).count();
        let mut rng = self.draw();
        // One after another, as a disk would.
        let ready_at = (0..guests).fold(now, |at, _| later(at, rules.timing.snapshot.draw(&mut rng)));
        let told = ready_at <= now;
        self.images += guests as u64;
        self.working(id)?.snapshots.insert(reservation, Snapshot { fence: key.fence, ready_at, told });
        Ok(if told { Outcome::Done } else { Outcome::Pending })
    }

    /// Moves a guest to another host. It stays on its old host until all its memory is copied.
    fn migrate(
        &mut self,
        rules: &Rules,
        (from, guest, to): (HostId, GuestId, HostId),
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        let host = self.working(from)?;
        let Some(moving) = host.guests.get(&guest).cloned() else { return Ok(Outcome::Done) };
        if !host.site.lets_go(lease, moving.owner) {
            return Ok(Outcome::Done);
        }
        match moving.moving_to {
            Some(target) if target == to => return Ok(Outcome::Pending),
            Some(target) => {
                return Err(FleetError::Refused(format!("guest {guest} is moving to host {target}")));
            }
            None => {}
        }
        if self.working(to)?.site != Site::FreePool {
            return Err(FleetError::Refused(format!("guest {guest} may not run on host {to}")));
        }
        if self.free_memory_mib(rules, to) < u64::from(moving.memory_mib) {
            return Err(FleetError::Refused(format!("host {to} has no room for guest {guest}")));
        }
        // A verification of the target host waits for the guest.
        self.working(to)?.in_flight += 1;
        if let Some(moving) = self.working(from)?.guests.get_mut(&guest) {
            moving.moving_to = Some(to);
        }
        let millis = (u64::from(moving.memory_mib) * 1000)
            .checked_div(rules.timing.migration_mib_per_second.into())
            .unwrap_or(0);
        if millis == 0 {
            self.arrive(from, to, guest);
            return Ok(Outcome::Done);
        }
        let at = later(now, jiff::SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)));
        self.schedule(at, Event::Arrives { from, to, id: guest });
        Ok(Outcome::Pending)
    }

    /// Completes a migration, unless one of the two hosts has failed or the guest has ended.
    pub(super) fn arrive(&mut self, from: HostId, to: HostId, guest: GuestId) {
        let works = |host: &Host| host.health() != Health::Failed;
        let source_works = self.hosts.get(&from).is_some_and(works);
        let Some(target) = self.hosts.get_mut(to) else {
            if let Some(stays) = self.hosts.get_mut(from).and_then(|host| host.guests.get_mut(&guest)) {
                stays.moving_to = None;
            }
            return;
        };
        target.in_flight = target.in_flight.saturating_sub(1);
        let arrives = source_works && works(target);
        let Some(source) = self.hosts.get_mut(from) else { return };
        let Some(moving) = source.guests.get_mut(&guest) else { return };
        moving.moving_to = None;
        if arrives
            && let Some(moved) = source.guests.remove(&guest)
            && let Some(target) = self.hosts.get_mut(to)
        {
            target.guests.insert(guest, moved);
        }
    }
}

fn holder(site: Site) -> Option<ReservationId> {
    site.place().and_then(Place::holder)
}
