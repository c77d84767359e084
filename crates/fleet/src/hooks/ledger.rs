//! The driver's knowledge of its machines. It is saved before a hook is called, so that possible effects are
//! known after a crash, and again after the hook succeeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use leases::host::Health;
use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use leases::plan::{Guest, GuestOwner, GuestSize, Mobility, ObservedHost, Place, Powered};
use leases::project::ProjectId;
use serde::{Deserialize, Serialize};

use crate::late::Fences;
use crate::saved::{by_id, id, id_or_none};
use crate::site::Site;
use crate::{Keeper, Machine, UNCERTAIN};

/// A part of the fleet that only one task of one service can change at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Host(HostId),
    /// All floating IPs.
    Addresses,
    /// The store that the fleet belongs to.
    Keeper,
    /// The reservations of a [share](Part::of).
    Reservations(u8),
}

/// Number of shares of reservations. Reservations of different shares are prepared and finished concurrently.
const SHARES: u8 = 16;

impl Part {
    /// Share of a reservation.
    pub(super) fn of(reservation: ReservationId) -> Self {
        Self::Reservations((reservation.0 % u128::from(SHARES)) as u8)
    }

    pub(super) fn shares() -> impl Iterator<Item = Self> {
        (0..SHARES).map(Self::Reservations)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(f, "host {host}"),
            Self::Addresses => f.write_str("addresses"),
            Self::Keeper => f.write_str("keeper"),
            Self::Reservations(share) => write!(f, "reservations {share}"),
        }
    }
}

/// The complete state of a rack.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ledger {
    /// Number of changes since the start of the process.
    #[serde(skip)]
    pub(super) version: u64,
    /// Changes by this process that aren't in the file yet.
    #[serde(skip)]
    pub(super) changed: BTreeSet<Part>,
    #[serde(with = "by_id")]
    pub(super) hosts: BTreeMap<HostId, Record>,
    #[serde(with = "by_id")]
    pub(super) floating_ips: BTreeMap<FloatingIpId, Handed>,
    /// Reservations for which `on_prepare` was begun, and whether it has succeeded.
    #[serde(default, with = "by_id")]
    pub(super) prepared: BTreeMap<ReservationId, bool>,
    #[serde(skip)]
    pub(super) fences: Fences,
    #[serde(default)]
    pub(super) keeper: Keeper,
}

/// Saved state of a host, and its last check.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) site: Site,
    /// `on_adopt` was begun and has not succeeded.
    #[serde(default)]
    pub(super) begun_adopt: bool,
    /// `on_fence` or `on_unfence` was begun and has not succeeded. Fenced in the planner's view.
    pub(super) uncertain_fence: bool,
    /// Reservation for which `on_hold` was begun and has not succeeded.
    pub(super) begun_hold: Option<Handed>,
    /// `on_release` was begun for the holder and has not succeeded.
    #[serde(default)]
    pub(super) begun_release: bool,
    #[serde(with = "by_id")]
    pub(super) slots: BTreeMap<ReservationId, Granted>,
    /// Guests that were asked to shut down, and the time.
    #[serde(with = "by_id")]
    pub(super) stopping: BTreeMap<GuestId, Timestamp>,
    /// The host was switched off.
    #[serde(default)]
    pub(super) off: bool,
    /// Result of the last check.
    #[serde(skip)]
    pub(super) seen: Option<Seen>,
}

/// Reservation that a host or an address is handed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handed {
    #[serde(with = "id")]
    pub(super) reservation: ReservationId,
    #[serde(with = "id_or_none")]
    pub(super) lease: Option<LeaseId>,
    /// Whether the hook has succeeded.
    pub(super) certain: bool,
}

/// Slots of a host that a reservation can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Granted {
    #[serde(with = "id_or_none")]
    pub(super) lease: Option<LeaseId>,
    /// 0 until a hook succeeds, so that slots are granted again or withdrawn.
    pub(super) count: u32,
}

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) health: Health,
    pub(super) guests: BTreeMap<GuestId, SeenGuest>,
    /// Whether the check reports guests at all.
    pub(super) reports_guests: bool,
    /// `None` if the check doesn't report power.
    pub(super) powered: Option<Powered>,
}

impl Seen {
    /// The machine with the checked health and guests.
    pub(super) fn on(&self, machine: &Machine) -> Machine {
        let guests = self.guests.iter().map(|(id, guest)| (*id, guest.name.clone())).collect();
        Machine { health: self.health, guests, ..machine.clone() }
    }
}

/// A guest in the result of a check.
#[derive(Clone, Debug)]
pub(super) struct SeenGuest {
    pub(super) name: String,
    pub(super) owner: GuestOwner,
    pub(super) project: Option<ProjectId>,
    pub(super) size: GuestSize,
    pub(super) mobility: Option<Mobility>,
}

impl Ledger {
    /// Merges the state that another service has written, except for parts with unsaved changes. Results of
    /// checks stay, because they aren't saved.
    pub(super) fn take_in(&mut self, theirs: Self) {
        for (host, record) in theirs.hosts {
            if !self.changed.contains(&Part::Host(host)) {
                let ours = self.hosts.entry(host).or_default();
                *ours = Record { seen: ours.seen.take(), ..record };
            }
        }
        if !self.changed.contains(&Part::Addresses) {
            self.floating_ips = theirs.floating_ips;
        }
        let ours = |reservation: &ReservationId| self.changed.contains(&Part::of(*reservation));
        let (kept, other) = (std::mem::take(&mut self.prepared), theirs.prepared);
        let kept = kept.into_iter().filter(|(reservation, _)| ours(reservation));
        let other = other.into_iter().filter(|(reservation, _)| !ours(reservation));
        self.prepared = kept.chain(other).collect();
        if !self.changed.contains(&Part::Keeper) {
            let fence = self.keeper.fence.max(theirs.keeper.fence);
            self.keeper = Keeper { fence, ..theirs.keeper };
        }
    }
}

impl Record {
    /// The planner's view; `None` if the host was not adopted.
    pub(super) fn observed(&self) -> Option<ObservedHost> {
        let seen = self.seen.as_ref();
        let guest = |(id, guest): (&GuestId, &SeenGuest)| Guest {
            id: *id,
            owner: guest.owner,
            stopping_since: self.stopping.get(id).copied(),
            project: guest.project.clone(),
            size: guest.size,
            launched_at: None,
            moving_to: None,
            has_shut_down: false,
            copied_percent: None,
            mobility: guest.mobility.clone(),
        };
        let place = match self.site.place()? {
            Place::Held(reservation) if self.begun_release => Place::Releasing(reservation),
            place => place,
        };
        Some(ObservedHost {
            place,
            health: seen.map_or(Health::Up, |seen| seen.health),
            guests: seen.into_iter().flat_map(|seen| &seen.guests).map(guest).collect(),
            reports_guests: seen.is_some_and(|seen| seen.reports_guests),
            slots: self.slots.iter().map(|(reservation, granted)| (*reservation, granted.count)).collect(),
            powered: seen.and_then(|seen| seen.powered).unwrap_or(self.powered()),
            overcommit: None,
        })
    }

    /// Power according to the last switch.
    fn powered(&self) -> Powered {
        if self.off { Powered::Off } else { Powered::On }
    }

    /// Records the result of a check. `None` is a failed check, after which the last known guests stay.
    pub(super) fn note(&mut self, seen: Option<Seen>) {
        if let Some(seen) = seen {
            self.stopping.retain(|guest, _| seen.guests.contains_key(guest));
            self.seen = Some(seen);
        } else {
            let seen = self.seen.get_or_insert_default();
            (seen.health, seen.powered) = (Health::Unknown, None);
        }
    }
}

impl Handed {
    /// The reservation that the planner sees as the holder.
    pub(super) fn holder(&self) -> ReservationId {
        if self.certain { self.reservation } else { UNCERTAIN }
    }
}
