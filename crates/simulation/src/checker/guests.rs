//! Which guests a step is allowed to stop, delete or move.

use fleet::simulated::SimulatedFleet;
use jiff::Timestamp;
use leases::ids::HostId;
use leases::lease::Lease;
use leases::plan::{Action, Guest, GuestOwner, Place};
use leases::status::LeaseStatus;
use service::ClaimedStep;

use super::Checker;
use crate::verdict::Verdict;

impl Checker {
    /// Checks a claimed step before it is carried out.
    pub fn claimed(&mut self, step: &ClaimedStep, fleet: &SimulatedFleet, now: Timestamp) -> Verdict {
        match step.claim.action {
            Action::Release(host, reservation) => {
                self.released.insert((host, reservation));
            }
            Action::StopGuest(host, guest) | Action::DeleteGuest(host, guest) => {
                let seen = fleet.look(host);
                let owner = seen.and_then(|seen| seen.guests.into_iter().find(|g| g.id == guest));
                if let Some(guest) = owner {
                    self.check_removal(step, &guest, (host, fleet))?;
                }
            }
            Action::MoveGuest(host, guest, to) => {
                let seen = fleet.look(host);
                if let Some(guest) = seen.and_then(|seen| seen.guests.into_iter().find(|g| g.id == guest)) {
                    self.check_move(step, &guest, (host, to), now)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A guest is removed only for a lease that needs its place, or at the end of its own lease.
    fn check_removal(
        &self,
        step: &ClaimedStep,
        guest: &Guest,
        (host, fleet): (HostId, &SimulatedFleet),
    ) -> Verdict {
        let has = |lease: &Lease| lease.reservations.iter().any(|r| r.allocation.hosts().contains(&host));
        let removable = match guest.owner {
            GuestOwner::Other => false,
            // Services that share a store can lag behind: one may not know yet that the lease has changed.
            GuestOwner::Preemptible => match step.lease {
                // A lease that already holds the host removes guests from it only after their departure was
                // decided.
                Some(id) => {
                    let held = |lease: &Lease| holds(fleet, lease, host);
                    let before = self.before.get(&id).map(|record| &record.lease);
                    let asked = self.displaced.contains(&guest.id);
                    self.several || before.is_some_and(|lease| has(lease) && (asked || !held(lease)))
                }
                None => self.displaced.contains(&guest.id),
            },
            GuestOwner::Lease(owner) => self.before.get(&owner).is_some_and(|r| r.lease.end_action.deletes()),
        };
        if removable {
            Ok(())
        } else {
            let lease = step.lease.and_then(|id| self.before.get(&id)).map(|record| &record.lease);
            let place = fleet.look(host).map(|seen| seen.place);
            Err(format!(
                "{} on {place:?} although it is of {:?}, for {lease:?}",
                step.claim.action, guest.owner
            ))
        }
    }

    /// A guest moves only as its lease's migration plan says, either out of the way of a hunting lease or at
    /// its own lease's end, and only to a host without a lease.
    fn check_move(
        &self,
        step: &ClaimedStep,
        guest: &Guest,
        (from, to): (HostId, HostId),
        now: Timestamp,
    ) -> Verdict {
        if guest.owner == GuestOwner::Preemptible {
            // The move was recorded before it was claimed. The claiming service may have read it before it
            // was withdrawn.
            return if self.relocated.contains(&(guest.id, to)) {
                Ok(())
            } else {
                Err(format!("{} although nobody has decided that", step.claim.action))
            };
        }
        let lease = step.lease.and_then(|id| self.before.get(&id)).map(|record| &record.lease);
        // One of several services may not know yet that the lease has changed. A move that is under way may
        // continue.
        if self.several || guest.moving_to == Some(to) {
            return Ok(());
        }
        let has =
            |lease: &Lease, host| lease.reservations.iter().any(|r| r.allocation.hosts().contains(&host));
        let needed = lease.is_some_and(|lease| {
            let own = guest.owner == GuestOwner::Lease(lease.id);
            (lease.status == LeaseStatus::Starting || (lease.departing() && own))
                && lease
                    .hunt
                    .as_ref()
                    .is_some_and(|hunt| hunt.move_of(guest.id, from).is_some_and(|m| m.to == to))
                && has(lease, from)
        });
        if !needed {
            return Err(format!("{} without need: {lease:?}", step.claim.action));
        }
        let others = self.before.values().map(|record| &record.lease).filter(|lease| lease.keeps_resources());
        let keeps = |lease: &&Lease| has(lease, to) && now < lease.window.end() && !lease.window.is_empty();
        match others.into_iter().find(keeps) {
            Some(lease) => Err(format!("{} although lease {} has that host", step.claim.action, lease.id)),
            None => Ok(()),
        }
    }
}

/// Whether a reservation of the lease both has the host and holds it. A reservation can still hold a host
/// that was given to another one.
fn holds(fleet: &SimulatedFleet, lease: &Lease, host: HostId) -> bool {
    let place = fleet.look(host).map(|seen| seen.place);
    lease.reservations.iter().any(|reservation| {
        place == Some(Place::Held(reservation.id)) && reservation.allocation.hosts().contains(&host)
    })
}
