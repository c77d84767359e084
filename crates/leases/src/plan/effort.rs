//! State of a plan while it is made: steps, reasons why leases are blocked, and the next wake-up.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::step::{Action, Failures, Step};
use super::world::World;
use crate::host::Inventory;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease::Lease;
use crate::reason::{address_of, host_name, reason, tries};
use crate::window::minute;

/// Reason a lease is blocked. Ordered by importance to its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiting {
    /// An action has failed and is retried.
    Retrying {
        action: Action,
        /// Number of failures.
        times: u32,
        /// The fleet's last error message.
        message: String,
    },
    /// A guest that must not be removed is on a host.
    GuestInTheWay {
        host: HostId,
        guest: GuestId,
        /// Whether the lease can give the host back by asking for one host fewer.
        can_give_back: bool,
    },
    /// A guest is still on a host after it should have been deleted.
    NotDeleted {
        host: HostId,
        guest: GuestId,
        /// Time at which its deletion was due.
        since: Timestamp,
    },
    /// Preemptible guests on a host were asked to shut down too late to be gone by now. The reason gives no
    /// time, because each guest has its own.
    Leaving(HostId),
    /// A reservation has no allocation because nothing was available.
    NothingAllocated(ReservationId),
    /// A host is being switched on.
    Booting(HostId),
    /// A host is down.
    HostFailed(HostId),
    /// A host is no longer in the fleet, or hasn't been observed yet.
    HostGone(HostId),
    /// A host must be taken back from another lease first.
    TakingBack(HostId),
    /// An address must be taken back from another lease first.
    TakingBackFloatingIp(FloatingIpId),
    /// The lease is over, and its guests have stayed on a host, either because of its end action or because
    /// they could not be moved.
    GuestsStay(HostId),
}

impl Waiting {
    pub(super) fn retrying(action: Action, failures: &Failures) -> Self {
        Self::Retrying { action, times: failures.times, message: failures.message.clone() }
    }

    /// Reason shown on the lease ([`crate::reason`]). Administrators see everything. The owner sees neither
    /// identifiers of other tenants' guests nor messages of the fleet, and the name of a host only where it
    /// helps the owner to act.
    ///
    /// `remedy` is the one of [`World`].
    pub fn reason(&self, names: Option<&Inventory>, remedy: Option<&str>) -> String {
        let name = |host: &HostId| host_name(names, *host);
        match self {
            Self::Retrying { action, times, message } => {
                let (said, times) = (action.named(names), tries(*times));
                reason(
                    &format!("{} yet ({times})", failing(*action)),
                    &format!("could not {said} ({times}): {message}"),
                )
            }
            // Owners see the names of their lease's hosts anyway, and can act on this reason.
            Self::GuestInTheWay { host, guest, can_give_back } => reason(
                &format!(
                    "an instance of others that cannot be removed is on host {}, and no other host is free: {}ask the \
                     operator to move the instance",
                    name(host),
                    if *can_give_back { "ask for one host fewer, or " } else { "" }
                ),
                &format!(
                    "guest {guest} is on host {} and cannot be removed: move or delete it, or free another host",
                    name(host)
                ),
            ),
            Self::NotDeleted { host, guest, since } => {
                let remedy = remedy.map(|remedy| format!(": {}", remedy.replace(GUEST, &guest.to_string())));
                reason(
                    &format!(
                        "an instance on one of its hosts was to be deleted at {} and is still there, and no other host \
                         is free",
                        minute(*since)
                    ),
                    &format!(
                        "guest {guest} on host {} has not been deleted since {}{}",
                        name(host),
                        minute(*since),
                        remedy.unwrap_or_default()
                    ),
                )
            }
            Self::Leaving(host) => reason(
                "preemptible instances on one of its hosts are leaving",
                &format!("preemptible instances on host {} are leaving", name(host)),
            ),
            Self::NothingAllocated(id) => format!("nothing is available for reservation {id}"),
            Self::Booting(host) => reason(
                "one of its hosts is being switched on",
                &format!("host {} is being switched on", name(host)),
            ),
            Self::HostFailed(host) => {
                reason("one of its hosts is down", &format!("host {} is down", name(host)))
            }
            Self::HostGone(host) => reason(
                "one of its hosts is not seen in the fleet",
                &format!("host {} is not seen in the fleet", name(host)),
            ),
            Self::TakingBack(host) => reason(
                "one of its hosts is being taken back from another lease",
                &format!("host {} is being taken back from another lease", name(host)),
            ),
            Self::TakingBackFloatingIp(ip) => reason(
                "one of its addresses is being taken back from who had it",
                &format!("floating IP {} is being taken back from who had it", address_of(names, *ip)),
            ),
            Self::GuestsStay(host) => reason(
                "its instances have stayed; their hosts are closed for new leases as long as they are there",
                &format!(
                    "its instances have stayed on host {}, which is closed for new leases as long as they are there",
                    name(host)
                ),
            ),
        }
    }
}

/// Placeholder for the guest's identifier in [`World::remedy`].
const GUEST: &str = "{guest}";

/// Description of a failing action for the lease's owner.
fn failing(action: Action) -> &'static str {
    match action {
        Action::MoveGuest(..) => "an instance could not be moved out of the way",
        Action::StopGuest(..) | Action::DeleteGuest(..) => "a host could not be cleared of instances",
        Action::ResumeGuest(..) => "an instance that was asked to shut down could not be resumed",
        Action::StartGuest(..) => "an instance could not be started",
        Action::DestroyGuest(..) => "an instance could not be deleted",
        Action::Fence(_) | Action::Verify(..) | Action::Hold(..) | Action::Grant(..) => {
            "a host could not be handed over"
        }
        Action::Release(..) | Action::Unfence(_) | Action::Withdraw(..) => "a host could not be taken back",
        Action::SetRatios(..) => "allocation ratios of a host could not be set",
        Action::Assign(..) => "an address could not be handed over",
        Action::Unassign(..) => "an address could not be taken back",
        Action::Snapshot(..) => "images of instances could not be made",
        Action::PowerOn(_) | Action::PowerOff(_) => "a host could not be switched on or off",
        Action::Prepare(_) => "a reservation could not be prepared",
        Action::Finish(_) => "a reservation could not be finished",
    }
}

/// A plan while it is made.
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

    /// Adds a step. If it failed before, it waits for its backoff, and its lease reports the failure.
    pub(super) fn step(&mut self, action: Action, lease: Option<LeaseId>) {
        let mut not_before = self.world.now;
        if let Some(failures) = self.world.history.failures.get(&action) {
            not_before = self.world.rules.backoff.next_attempt(failures).max(self.world.now);
            self.wake(not_before);
            if let Some(lease) = lease {
                self.waits(lease, Waiting::retrying(action, failures));
            }
        }
        self.steps.insert(action, Step { action, lease, not_before });
    }

    /// Records a reason why a lease is blocked. The most important reason wins.
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

    /// Requests another plan at this time, or now if it has passed.
    pub(super) fn wake(&mut self, at: Timestamp) {
        let at = at.max(self.world.now);
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    /// Reason the lease is blocked, if it is.
    pub(super) fn reason(&self, lease: &Lease) -> Option<String> {
        if lease.keeps_reason() {
            return lease.reason.clone();
        }
        self.waiting.get(&lease.id).map(|waiting| waiting.reason(self.world.names, self.world.remedy))
    }

    pub(super) fn finish(self) -> (Vec<Step>, Option<Timestamp>) {
        (self.steps.into_values().collect(), self.wake_at)
    }
}
