//! Hosts with their current guests, and where each guest can be moved. Input for placement questions.

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

/// Work units per host, and per guest or booking.
const HOST: u64 = 100;
const GUEST: u64 = 40;

/// A host and its current guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNow {
    pub id: HostId,
    pub name: String,
    /// Guests can only move between hosts of the same group.
    pub group: HostGroup,
    /// Capacity for guests.
    pub capacity: Resources,
    /// Capacity used in addition to `guests`: by preemptible instances, which leave for leases, and by
    /// reserved slots without an instance yet.
    pub taken: Resources,
    /// Whether it is healthy and on.
    pub works: bool,
    /// Whether guests can be moved to it. False while the operator has closed it, its handover is in
    /// progress, or a lease is about to get it.
    pub receives: bool,
    /// Guests that aren't preemptible.
    pub guests: Vec<GuestNow>,
}

/// Hosts among which guests can be moved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostGroup {
    /// Hosts of the free pool with this name that no lease has.
    Pool(String),
    /// Hosts of a lease.
    Lease(LeaseId),
}

/// A guest and its options for a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestNow {
    pub id: GuestId,
    pub size: GuestSize,
    /// Whether, as far as is known, it can be moved to any host of its group with enough capacity.
    pub movable: bool,
    /// Anti-affinity groups: guests of a group must be on different hosts.
    pub apart: BTreeSet<String>,
}

impl Hosts<'_> {
    /// All observed hosts, sorted by identifier.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] if it takes too much work; [`ServiceError::Gone`].
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

/// Capacity used by preemptible instances, or reserved for instances of leases that don't exist yet.
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

/// A guest of a lease can only move between hosts that the lease has as a whole. Elsewhere its lease has no
/// capacity for the move.
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

/// Marks guests as immovable if a host of their group lacks a trait that they require, because groups don't
/// distinguish traits.
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
