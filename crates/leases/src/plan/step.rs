//! Steps on machines, and the outcomes of earlier attempts.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::host::Inventory;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease_pool::record::Ratios;
use crate::reason::{address_of, host_name};
use crate::window::later;

/// An operation on a machine. Each is an *ensure*: performing it twice has the effect of performing it once.
/// Each states its precondition; an action that arrives when the precondition no longer holds has no effect
/// and counts as done. So a request that was lost in the network and turns up a day later does no harm.
/// Attempts are recorded under the action as key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Closes a host in the free pool to new guests.
    Fence(HostId),
    /// Asks a guest on the host to shut down.
    StopGuest(HostId, GuestId),
    /// Lets a preemptible guest on the host stay after it was asked to shut down. It is started again if it
    /// has shut down since.
    ResumeGuest(HostId, GuestId),
    /// Deletes a guest on the host.
    DeleteGuest(HostId, GuestId),
    /// Live-migrates a guest from the first host to the second. The first host is fenced; or it is held by a
    /// reservation of the guest's own lease, which is over; or it is in the free pool and the guest is
    /// preemptible.
    MoveGuest(HostId, GuestId, HostId),
    /// Starts the guest of an instance on the host. Its reservation holds the host or has slots there, or the
    /// host is in the free pool.
    StartGuest(HostId, GuestId),
    /// Destroys the guest of an instance at its owner's request, regardless of who holds the host and of the
    /// guest's [`super::GuestOwner`].
    DestroyGuest(HostId, GuestId),
    /// Inspects a fenced host again and verifies it for the reservation if only guests of its lease are
    /// there.
    Verify(HostId, ReservationId),
    /// Hands a host verified for the reservation to its project.
    Hold(HostId, ReservationId),
    /// Returns a host that the reservation holds to the free pool and restores its allocation ratios.
    Release(HostId, ReservationId),
    /// Sets the allocation ratios of a host that the reservation holds. An absent ratio is restored.
    SetRatios(HostId, ReservationId, Ratios),
    /// Returns a fenced host to the free pool.
    Unfence(HostId),
    /// Lets the reservation's project use this number of slots on the host, replacing any earlier number.
    /// Takes effect even if it arrives late; the next plan withdraws the slots.
    Grant(HostId, ReservationId, u32),
    /// Removes all slots of the reservation's project on the host.
    Withdraw(HostId, ReservationId),
    /// Lets the reservation's project use a floating IP that is unassigned.
    Assign(FloatingIpId, ReservationId),
    /// Ends the use of the floating IP by the reservation's project.
    Unassign(FloatingIpId, ReservationId),
    /// Makes an image of each of the reservation's guests on the host.
    Snapshot(HostId, ReservationId),
    /// Powers a host on. The action doesn't wait until it has booted.
    PowerOn(HostId),
    /// Powers off a fenced host that has no guests and no granted slots.
    PowerOff(HostId),
    /// Makes everything the reservation needs as a whole ([`super::Prepared`]). Takes effect even if it
    /// arrives late; the next plan finishes the reservation.
    Prepare(ReservationId),
    /// Removes everything made for the reservation as a whole, once it has nothing left on any host.
    Finish(ReservationId),
}

impl Action {
    /// Whether [`History::done`] records its success.
    pub fn is_remembered(self) -> bool {
        matches!(self, Self::Snapshot(..) | Self::StartGuest(..) | Self::DestroyGuest(..))
    }

    /// Instance started or destroyed by it.
    pub fn instance(self) -> Option<GuestId> {
        match self {
            Self::StartGuest(_, guest) | Self::DestroyGuest(_, guest) => Some(guest),
            _ => None,
        }
    }

    pub fn floating_ip(self) -> Option<FloatingIpId> {
        match self {
            Self::Assign(ip, _) | Self::Unassign(ip, _) => Some(ip),
            _ => None,
        }
    }

    /// Reservation that it serves, or that loses its hold.
    pub fn reservation(self) -> Option<ReservationId> {
        match self {
            Self::Verify(_, id)
            | Self::Hold(_, id)
            | Self::Release(_, id)
            | Self::SetRatios(_, id, _)
            | Self::Grant(_, id, _)
            | Self::Withdraw(_, id)
            | Self::Assign(_, id)
            | Self::Unassign(_, id)
            | Self::Snapshot(_, id)
            | Self::Prepare(id)
            | Self::Finish(id) => Some(id),
            _ => None,
        }
    }

    /// Hosts it involves. Empty for floating IPs and for reservations as a whole.
    pub fn hosts(self) -> impl Iterator<Item = HostId> {
        let (host, other) = match self {
            Self::Fence(host)
            | Self::StopGuest(host, _)
            | Self::ResumeGuest(host, _)
            | Self::DeleteGuest(host, _)
            | Self::StartGuest(host, _)
            | Self::DestroyGuest(host, _)
            | Self::Verify(host, _)
            | Self::Hold(host, _)
            | Self::Release(host, _)
            | Self::SetRatios(host, ..)
            | Self::Unfence(host)
            | Self::Grant(host, _, _)
            | Self::Withdraw(host, _)
            | Self::Snapshot(host, _)
            | Self::PowerOn(host)
            | Self::PowerOff(host) => (Some(host), None),
            Self::MoveGuest(host, _, to) => (Some(host), Some(to)),
            Self::Assign(..) | Self::Unassign(..) | Self::Prepare(_) | Self::Finish(_) => (None, None),
        };
        host.into_iter().chain(other)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(None))
    }
}

impl Action {
    /// Describes the action, with host names if known.
    pub fn named(&self, names: Option<&Inventory>) -> String {
        let mut hosts = self.hosts().map(|id| host_name(names, id));
        let (host, to) = (hosts.next().unwrap_or_default(), hosts.next().unwrap_or_default());
        match self {
            Self::Fence(_) => format!("fence host {host}"),
            Self::StopGuest(_, guest) => format!("stop guest {guest} on host {host}"),
            Self::ResumeGuest(_, guest) => format!("resume guest {guest} on host {host}"),
            Self::DeleteGuest(_, guest) => format!("delete guest {guest} on host {host}"),
            Self::StartGuest(_, guest) => format!("start guest {guest} on host {host}"),
            Self::DestroyGuest(_, guest) => format!("destroy guest {guest} on host {host}"),
            Self::MoveGuest(_, guest, _) => format!("move guest {guest} from host {host} to host {to}"),
            Self::Verify(_, reservation) => {
                format!("verify that host {host} is empty for reservation {reservation}")
            }
            Self::Hold(_, reservation) => format!("hand host {host} to reservation {reservation}"),
            Self::Release(_, reservation) => {
                format!("take host {host} back from reservation {reservation}")
            }
            Self::SetRatios(_, reservation, _) => {
                format!("set allocation ratios of host {host} for reservation {reservation}")
            }
            Self::Unfence(_) => format!("unfence host {host}"),
            Self::Grant(_, reservation, slots) => {
                format!("grant {slots} slots of host {host} to reservation {reservation}")
            }
            Self::Withdraw(_, reservation) => {
                format!("withdraw host {host} from reservation {reservation}")
            }
            Self::Assign(ip, reservation) => {
                format!("assign floating IP {} to reservation {reservation}", address_of(names, *ip))
            }
            Self::Unassign(ip, reservation) => {
                format!("take floating IP {} back from reservation {reservation}", address_of(names, *ip))
            }
            Self::Snapshot(_, reservation) => {
                format!("snapshot guests of reservation {reservation} on host {host}")
            }
            Self::PowerOn(_) => format!("switch host {host} on"),
            Self::PowerOff(_) => format!("switch host {host} off"),
            Self::Prepare(reservation) => format!("prepare reservation {reservation}"),
            Self::Finish(reservation) => format!("finish reservation {reservation}"),
        }
    }
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub action: Action,
    /// The lease it serves, if there is exactly one.
    pub lease: Option<LeaseId>,
    /// Earliest time to perform it: a failed step waits before it is retried.
    pub not_before: Timestamp,
}

/// Recorded outcomes of attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Actions that failed and haven't succeeded since.
    pub failures: BTreeMap<Action, Failures>,
    /// Success times of actions that leave nothing observable behind: snapshots, and starts and ends of
    /// instances' guests. A guest that isn't observed might have ended or might never have been started.
    pub done: BTreeMap<Action, Timestamp>,
}

impl History {
    pub fn succeeded(&mut self, action: Action, at: Timestamp) {
        self.failures.remove(&action);
        if action.is_remembered() {
            self.done.insert(action, at);
        }
    }

    pub fn failed(&mut self, action: Action, at: Timestamp, message: impl Into<String>) {
        let times = self.failures.get(&action).map_or(0, |failures| failures.times);
        let failures = Failures { times: times.saturating_add(1), last_at: at, message: message.into() };
        self.failures.insert(action, failures);
    }
}

/// Record of an action's consecutive failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// Consecutive failures, at least 1.
    pub times: u32,
    /// Time of the last failure.
    pub last_at: Timestamp,
    /// The fleet's error message.
    pub message: String,
}

/// Delay before a failed step is retried. It doubles with each failure, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub first: SignedDuration,
    /// Maximum delay.
    pub longest: SignedDuration,
}

impl Backoff {
    /// Earliest time to retry an action with these failures.
    pub fn next_attempt(&self, failures: &Failures) -> Timestamp {
        let doublings = failures.times.saturating_sub(1).min(30);
        let delay = self.first.checked_mul(1 << doublings).unwrap_or(SignedDuration::MAX);
        later(failures.last_at, delay.min(self.longest))
    }
}

impl Default for Backoff {
    /// From five seconds to five minutes.
    fn default() -> Self {
        Self { first: SignedDuration::from_secs(5), longest: SignedDuration::from_mins(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn w22_the_delay_doubles_up_to_a_limit() {
        let mut history = History::default();
        let action = Action::Fence(HostId(1));
        let backoff = Backoff::default();
        let mut delays = Vec::new();
        for _ in 0..9 {
            history.failed(action, at(0), "no route");
            delays.push(backoff.next_attempt(&history.failures[&action]).duration_since(at(0)).as_secs());
        }
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        history.succeeded(action, at(1));
        assert_eq!(history, History::default());
    }
}
