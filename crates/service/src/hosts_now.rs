//! Hosts with what runs on them at present, and where each guest could be moved: what questions of placement are about.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use leases::host::{Health, Host};
use leases::ids::{GuestId, HostId, LeaseId};
use leases::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost, Place};
use leases::resources::Resources;
use leases::window::Window;

use crate::hosts::Hosts;
use crate::state::State;
use crate::types::ServiceError;

/// What it costs to look at a host, and at a guest or a booking.
const HOST: u64 = 100;
const GUEST: u64 = 40;

/// A host with what runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNow {
    /// Its identifier.
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// Guests move among the hosts of one group only.
    pub group: HostGroup,
    /// What guests may use of it.
    pub capacity: Resources,
    /// What is not free, beside what `guests` use: by preemptible instances, which leave for leases, and for instances
    /// that a lease has room for and that are not there yet.
    pub taken: Resources,
    /// Whether it works and is on.
    pub works: bool,
    /// Whether guests may be moved there: not while the operator has closed it, it changes hands, or a lease is about to
    /// get it.
    pub receives: bool,
    /// Guests that are not preempted for leases.
    pub guests: Vec<GuestNow>,
}

/// Hosts among which guests may be moved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostGroup {
    /// Those of the free pool of that name that no lease has.
    Pool(String),
    /// Those that a lease has.
    Lease(LeaseId),
}

/// A guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestNow {
    /// Its identifier.
    pub id: GuestId,
    /// What it uses.
    pub size: GuestSize,
    /// Whether it may be moved, as far as is known, to any host of its group that has room.
    pub movable: bool,
    /// Groups of guests of which no two may be on one host.
    pub apart: BTreeSet<String>,
}

impl Hosts<'_> {
    /// All hosts that were observed, by identifier.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] if that takes too much work; [`ServiceError::Gone`].
    pub async fn seen(self) -> Result<Vec<HostNow>, ServiceError> {
        self.service
            .consider(|budget| {
                let (state, observed, now) =
                    (self.service.snapshot(), self.service.observed(), self.service.now());
                let minute = Window::starting(now, SignedDuration::from_mins(1));
                let soon =
                    Window::new(now, self.service.decider.settings.plan_rules.horizon(now).max(minute.end()));
                let soon = soon.unwrap_or(minute);
                let mut hosts = Vec::new();
                for host in state.inventory.hosts() {
                    let Some(seen) = observed.hosts.get(&host.id) else { continue };
                    let looked_at = seen.guests.len() + state.calendar.near(host.id, &soon);
                    if !budget.spend(HOST + GUEST * looked_at as u64) {
                        let message = "To look at all hosts takes more work than it may";
                        return Err(ServiceError::Invalid(message.to_owned()));
                    }
                    hosts.push(host_now(&state, host, seen, &soon));
                }
                respect_traits(&state, &observed, &mut hosts);
                Ok(hosts)
            })
            .await
    }
}

fn host_now(state: &State, host: &Host, seen: &ObservedHost, soon: &Window) -> HostNow {
    let now = soon.start();
    let mut whole = state.calendar.bookings_in(host.id, *soon).filter(|(_, booking)| booking.used.is_none());
    let first = whole.next().map(|(window, booking)| (window.start() <= now, booking));
    let held = first.filter(|(begun, booking)| *begun && seen.place == Place::Held(booking.reservation));
    let held = held.map(|(_, booking)| booking.lease);
    let works = seen.health == Health::Up && host.health == Health::Up && host.power.is_on();
    let free = seen.place == Place::FreePool && host.reservable && first.is_none();
    HostNow {
        id: host.id,
        name: host.name.clone(),
        group: match held {
            Some(lease) => HostGroup::Lease(lease),
            None => HostGroup::Pool(state.free_pool(host.pool).name.clone()),
        },
        capacity: host.capacity(),
        taken: taken(state, host.id, seen, soon),
        works,
        receives: works && (free || held.is_some()),
        guests: seen.guests.iter().filter(|guest| stays(guest)).map(|guest| guest_now(guest, held)).collect(),
    }
}

fn stays(guest: &Guest) -> bool {
    guest.owner != GuestOwner::Preemptible
}

/// What is used by preemptible instances, and kept for instances of leases that are not there yet.
fn taken(state: &State, host: HostId, seen: &ObservedHost, soon: &Window) -> Resources {
    let mut taken = state.calendar.peak_use(host, soon, None);
    for guest in seen.guests.iter().filter(|guest| matches!(guest.owner, GuestOwner::Lease(_))) {
        taken.subtract(1, &guest.size.resources());
    }
    for guest in seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible) {
        taken.add(1, &guest.size.resources());
    }
    taken
}

/// A guest of a lease may be moved among hosts that the lease has whole: elsewhere there is no room that is its own.
fn guest_now(guest: &Guest, held: Option<LeaseId>) -> GuestNow {
    let at_home = match guest.owner {
        GuestOwner::Lease(lease) => held == Some(lease),
        GuestOwner::Other | GuestOwner::Preemptible => held.is_none(),
    };
    let mobility = guest.mobility.as_ref();
    GuestNow {
        id: guest.id,
        size: guest.size,
        movable: at_home && guest.moving_to.is_none() && mobility.is_some(),
        apart: mobility.map(|mobility| mobility.apart.clone()).unwrap_or_default(),
    }
}

/// A guest that not every host of its group suits stays: a group knows no traits.
fn respect_traits(state: &State, observed: &Observed, hosts: &mut [HostNow]) {
    let mut common: BTreeMap<HostGroup, BTreeSet<String>> = BTreeMap::new();
    for host in hosts.iter().filter(|host| host.receives) {
        let Some(traits) = state.inventory.host(host.id).map(|host| &host.traits) else { continue };
        match common.get_mut(&host.group) {
            Some(common) => common.retain(|name| traits.contains(name)),
            None => _ = common.insert(host.group.clone(), traits.clone()),
        }
    }
    for host in hosts {
        let everywhere = common.get(&host.group);
        let seen = observed.hosts.get(&host.id).into_iter().flat_map(|seen| &seen.guests);
        for (guest, seen) in host.guests.iter_mut().zip(seen.filter(|guest| stays(guest))) {
            let mut required = seen.mobility.iter().flat_map(|mobility| &mobility.requires);
            guest.movable &=
                required.all(|name| everywhere.is_some_and(|everywhere| everywhere.contains(name)));
        }
    }
}
