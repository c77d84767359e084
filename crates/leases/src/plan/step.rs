//! Steps: what is to be done to the machines, and what became of earlier attempts.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::host::Inventory;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease_pool::record::Ratios;
use crate::reason::{address_of, host_name};
use crate::window::later;

/// Something to be done. Each is an *ensure*: doing it twice is doing it once. Each says when it applies; one
/// that comes late, when it does not apply any more, has no effect and counts as done. So a step that was lost
/// in a network and turns up a day later does no harm. It is also the key under which attempts are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A host in the free pool: no new guest may land there.
    Fence(HostId),
    /// A guest on the host is asked to shut down.
    StopGuest(HostId, GuestId),
    /// A preemptible guest on the host, which was asked to shut down, may stay: it is started again if it has shut down
    /// since it was asked.
    ResumeGuest(HostId, GuestId),
    /// A guest on the host is deleted.
    DeleteGuest(HostId, GuestId),
    /// A guest on the first host goes to the second one while it runs. The first is fenced, or is held by the reservation of
    /// a lease that is over and whose guest it is, or is in the free pool and the guest is preemptible.
    MoveGuest(HostId, GuestId, HostId),
    /// The guest of an instance is started on the host, which its reservation holds or has slots of, or which is in
    /// the free pool.
    StartGuest(HostId, GuestId),
    /// The guest of an instance is destroyed, wherever it is and whosever, as its owner wants it.
    DestroyGuest(HostId, GuestId),
    /// A fenced host is looked at again, and is verified for the reservation if only guests of its lease are
    /// there.
    Verify(HostId, ReservationId),
    /// A host that is verified for the reservation goes to its project.
    Hold(HostId, ReservationId),
    /// A host that the reservation holds goes back to the free pool, over-committed as before.
    Release(HostId, ReservationId),
    /// A host that the reservation holds is over-committed so, and as before where nothing is said.
    SetRatios(HostId, ReservationId, Ratios),
    /// A fenced host goes back to the free pool.
    Unfence(HostId),
    /// The reservation's project may use so many slots of the host, whatever it could use before. One that
    /// comes late takes effect all the same; the next plan withdraws it.
    Grant(HostId, ReservationId, u32),
    /// The reservation's project may use no slots of the host.
    Withdraw(HostId, ReservationId),
    /// The reservation's project may use an address that nobody may use.
    Assign(FloatingIpId, ReservationId),
    /// The reservation's project may not use the address any more.
    Unassign(FloatingIpId, ReservationId),
    /// An image is made of each guest of the reservation on the host.
    Snapshot(HostId, ReservationId),
    /// A host is switched on. It boots then; that is not waited for.
    PowerOn(HostId),
    /// A fenced host is switched off on which nobody is, or has slots.
    PowerOff(HostId),
    /// What the reservation needs as a whole is made ([`super::Prepared`]). One that comes late takes effect all the same;
    /// the next plan finishes the reservation.
    Prepare(ReservationId),
    /// What was made for the reservation as a whole is taken away, once it has nothing of any host.
    Finish(ReservationId),
}

impl Action {
    /// Whether it is remembered that it succeeded.
    pub fn is_remembered(self) -> bool {
        matches!(self, Self::Snapshot(..) | Self::StartGuest(..) | Self::DestroyGuest(..))
    }

    /// The instance that it starts or destroys the guest of, if it does.
    pub fn instance(self) -> Option<GuestId> {
        match self {
            Self::StartGuest(_, guest) | Self::DestroyGuest(_, guest) => Some(guest),
            _ => None,
        }
    }

    /// The address that it is about, if it is about one.
    pub fn floating_ip(self) -> Option<FloatingIpId> {
        match self {
            Self::Assign(ip, _) | Self::Unassign(ip, _) => Some(ip),
            _ => None,
        }
    }

    /// The reservation that it is done for, or was held by, if it is about one.
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

    /// The hosts that it is about; none of addresses, and of reservations as a whole.
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
    /// The action in words, with the names of hosts as far as they are known.
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
    /// What to do.
    pub action: Action,
    /// For which lease, if for one.
    pub lease: Option<LeaseId>,
    /// Not earlier than this: a step that failed waits before it is tried again.
    pub not_before: Timestamp,
}

/// What is remembered of attempts at steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Actions that failed and have not succeeded since.
    pub failures: BTreeMap<Action, Failures>,
    /// When actions succeeded that leave nothing behind that is observed: snapshots; and starts and ends of guests of
    /// instances, since a guest that is not seen may have ended, or may not have been started.
    pub done: BTreeMap<Action, Timestamp>,
}

impl History {
    /// Notes a success.
    pub fn succeeded(&mut self, action: Action, at: Timestamp) {
        self.failures.remove(&action);
        if action.is_remembered() {
            self.done.insert(action, at);
        }
    }

    /// Notes a failure.
    pub fn failed(&mut self, action: Action, at: Timestamp, message: impl Into<String>) {
        let times = self.failures.get(&action).map_or(0, |failures| failures.times);
        let failures = Failures { times: times.saturating_add(1), last_at: at, message: message.into() };
        self.failures.insert(action, failures);
    }
}

/// How often an action failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// How many times in a row, at least 1.
    pub times: u32,
    /// When the last time.
    pub last_at: Timestamp,
    /// What the fleet said.
    pub message: String,
}

/// How long a failed step waits: the first time so long, then twice as long each time, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: SignedDuration,
    /// Never longer.
    pub longest: SignedDuration,
}

impl Backoff {
    /// When an action that failed so may be tried again.
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
