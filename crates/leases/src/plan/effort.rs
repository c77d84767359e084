//! What is being gathered while a plan is made: steps, what leases wait for, and when to look again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use thiserror::Error;

use super::World;
use super::step::{Action, Step};
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease::Lease;
use crate::status::EventStatus;

/// Why a lease does not get on. The order is that of importance to its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Waiting {
    /// Something is tried again and again.
    #[error("could not {action}, {times} time(s) so far: {message}")]
    Retrying {
        /// What.
        action: Action,
        /// How often it failed.
        times: u32,
        /// What the fleet said.
        message: String,
    },
    /// A guest that must not be touched is on a host.
    #[error("guest {guest} is on host {host} and cannot be removed")]
    GuestInTheWay {
        /// The host.
        host: HostId,
        /// The guest.
        guest: GuestId,
    },
    /// Preemptible guests are on a host that were asked to shut down too late to have gone by now. It is not said until
    /// when: each has its own time.
    #[error("preemptible instances on host {0} have their time to shut down")]
    Leaving(HostId),
    /// Nothing could be found for a reservation.
    #[error("nothing is available for reservation {0}")]
    NothingAllocated(ReservationId),
    /// A host is being switched on.
    #[error("host {0} is being switched on")]
    Booting(HostId),
    /// A host is down.
    #[error("host {0} is down")]
    HostFailed(HostId),
    /// A host is not in the fleet any more.
    #[error("host {0} is not in the fleet")]
    HostGone(HostId),
    /// Another lease's end comes first.
    #[error("host {0} is being taken back from another lease")]
    TakingBack(HostId),
    /// The same of an address.
    #[error("floating IP {0} is being taken back from another lease")]
    TakingBackFloatingIp(FloatingIpId),
}

/// A plan in the making.
pub(super) struct Effort<'a> {
    pub(super) world: World<'a>,
    steps: BTreeMap<Action, Step>,
    waiting: BTreeMap<LeaseId, Waiting>,
    wake_at: Option<Timestamp>,
}

impl<'a> Effort<'a> {
    pub(super) fn new(world: World<'a>) -> Self {
        Self { world, steps: BTreeMap::new(), waiting: BTreeMap::new(), wake_at: None }
    }

    /// Adds a step. If it failed before it waits its time, and its lease says so.
    pub(super) fn step(&mut self, action: Action, lease: Option<LeaseId>) {
        let mut not_before = self.world.now;
        if let Some(failures) = self.world.history.failures.get(&action) {
            not_before = self.world.rules.backoff.next_attempt(failures).max(self.world.now);
            self.wake(not_before);
            if let Some(lease) = lease {
                let (times, message) = (failures.times, failures.message.clone());
                self.waits(lease, Waiting::Retrying { action, times, message });
            }
        }
        self.steps.insert(action, Step { action, lease, not_before });
    }

    /// Notes what a lease waits for; the most important reason counts.
    pub(super) fn waits(&mut self, lease: LeaseId, waiting: Waiting) {
        self.waiting
            .entry(lease)
            .and_modify(|known| {
                if waiting < *known {
                    *known = waiting.clone();
                }
            })
            .or_insert(waiting);
    }

    /// Asks for another plan at that instant, or now if it has passed.
    pub(super) fn wake(&mut self, at: Timestamp) {
        let at = at.max(self.world.now);
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    /// Why the lease does not get on. One that could not start, or was ended because nobody
    /// used it, keeps saying why.
    pub(super) fn reason(&self, lease: &Lease) -> Option<String> {
        if lease.events.start == EventStatus::Error || lease.marks.reclaimed_at.is_some() {
            return lease.reason.clone();
        }
        self.waiting.get(&lease.id).map(ToString::to_string)
    }

    pub(super) fn finish(self) -> (Vec<Step>, Option<Timestamp>) {
        (self.steps.into_values().collect(), self.wake_at)
    }
}
