//! What the driver knows of its machines. Written down before a hook is called, so that after a crash it is known
//! what may have been done, and after it has succeeded.

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

/// What only one at a time is at work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// A host.
    Host(HostId),
    /// All addresses.
    Addresses,
    /// For which store they are handed over.
    Keeper,
    /// Some of the reservations: those of that [share](Part::of).
    Reservations(u8),
}

/// Reservations are prepared and finished in so many shares at once.
const SHARES: u8 = 16;

impl Part {
    /// The share that the reservation is in.
    pub(super) fn of(reservation: ReservationId) -> Self {
        Self::Reservations((reservation.0 % u128::from(SHARES)) as u8)
    }

    /// All shares of reservations.
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

/// Everything.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ledger {
    /// Counts changes since the start.
    #[serde(skip)]
    pub(super) version: u64,
    /// What was changed here and is not written yet.
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
    /// For which store it was changed last.
    #[serde(default)]
    pub(super) keeper: Keeper,
}

/// A host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) site: Site,
    /// `on_adopt` was begun and has not succeeded.
    #[serde(default)]
    pub(super) begun_adopt: bool,
    /// It is fenced as far as the planner goes, but `on_fence` or `on_unfence` was begun and did not succeed.
    pub(super) uncertain_fence: bool,
    /// `on_hold` was begun for them and has not succeeded.
    pub(super) begun_hold: Option<Handed>,
    /// `on_release` was begun for whom it is held and has not succeeded.
    #[serde(default)]
    pub(super) begun_release: bool,
    #[serde(with = "by_id")]
    pub(super) slots: BTreeMap<ReservationId, Granted>,
    /// Guests that were asked to shut down.
    #[serde(with = "by_id")]
    pub(super) stopping: BTreeMap<GuestId, Timestamp>,
    /// It was switched off.
    #[serde(default)]
    pub(super) off: bool,
    /// What the last check said.
    #[serde(skip)]
    pub(super) seen: Option<Seen>,
}

/// To whom something is handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handed {
    #[serde(with = "id")]
    pub(super) reservation: ReservationId,
    #[serde(with = "id_or_none")]
    pub(super) lease: Option<LeaseId>,
    /// The hook has succeeded.
    pub(super) certain: bool,
}

/// Slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Granted {
    #[serde(with = "id_or_none")]
    pub(super) lease: Option<LeaseId>,
    /// 0 while it is not certain: then they are granted again, or withdrawn.
    pub(super) count: u32,
}

/// What was seen on a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) health: Health,
    pub(super) guests: BTreeMap<GuestId, SeenGuest>,
    /// Whether the check says what runs there.
    pub(super) reports_guests: bool,
    /// Whether it has power, if the check says so.
    pub(super) powered: Option<Powered>,
}

impl Seen {
    /// The machine as it was seen.
    pub(super) fn on(&self, machine: &Machine) -> Machine {
        let guests = self.guests.iter().map(|(id, guest)| (*id, guest.name.clone())).collect();
        Machine { health: self.health, guests, ..machine.clone() }
    }
}

/// A guest that was seen.
#[derive(Clone, Debug)]
pub(super) struct SeenGuest {
    pub(super) name: String,
    pub(super) owner: GuestOwner,
    pub(super) project: Option<ProjectId>,
    pub(super) size: GuestSize,
    pub(super) mobility: Option<Mobility>,
}

impl Ledger {
    /// Takes over what another service has written, but for what is being changed here. What was seen is not
    /// written, and stays.
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
    /// As the planner sees it, if it was taken on.
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

    /// As it was switched last.
    fn powered(&self) -> Powered {
        if self.off { Powered::Off } else { Powered::On }
    }

    /// Notes what a check has found. Without an answer the guests are those seen last.
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
    /// Whose the planner is to think it is.
    pub(super) fn holder(&self) -> ReservationId {
        if self.certain { self.reservation } else { UNCERTAIN }
    }
}
