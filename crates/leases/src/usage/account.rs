//! Usage entries that follow from changes to leases and instances.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::event::{of_instance, of_lease};
use super::{By, Entries, Held, PREEMPTIBLE, Query, Size, Span, SpanChange, Sum, sums};
use crate::free_pool::pool_of;
use crate::host::Host;
use crate::ids::HostId;
use crate::instance::{Instance, InstanceKind, InstanceStatus};
use crate::lease::{Allocation, EventStatuses, Lease};
use crate::status::{EventStatus, LeaseStatus};
use crate::terms::ReservationTerms;
use crate::window::Window;

/// Collects entries for changes made at the same time.
#[derive(Debug)]
pub struct Account<H> {
    now: Timestamp,
    hosts: H,
    entries: Entries,
}

/// Open spans by key. Their ends follow from the lease.
type Holdings = BTreeMap<String, Span>;

impl<'h, H: Fn(HostId) -> Option<&'h Host>> Account<H> {
    /// An account of changes at `now`. `hosts` returns hosts in their state at that time.
    pub fn new(now: Timestamp, hosts: H) -> Self {
        Self { now, hosts, entries: Entries::default() }
    }

    /// Records a change of a lease. `before` is `None` for a new lease, `after` is `None` for a forgotten
    /// one.
    pub fn lease(&mut self, before: Option<&Lease>, after: Option<&Lease>) {
        self.entries.events.extend(of_lease(before, after, self.now));
        let (was, is) = (before.filter(|lease| holds(lease)), after.filter(|lease| holds(lease)));
        let same = |was: &Lease, is: &Lease| {
            let pairs = || was.reservations.iter().zip(&is.reservations);
            was.window.end() == is.window.end()
                && was.reservations.len() == is.reservations.len()
                && pairs().all(|(was, is)| was.id == is.id && was.allocation == is.allocation)
        };
        match (was, is) {
            (None, None) => {}
            (Some(was), Some(is)) if same(was, is) => {}
            _ => {
                let held = |lease: Option<&Lease>| lease.map(|lease| self.held_by(lease)).unwrap_or_default();
                let (was, is) = (held(was), held(is));
                self.enter(was, is);
            }
        }
    }

    /// Records a change of an instance or of its lease. Each version comes with the lease that it belongs to,
    /// if any.
    pub fn instance(
        &mut self,
        before: Option<(&Instance, Option<&Lease>)>,
        after: Option<(&Instance, Option<&Lease>)>,
    ) {
        let alone = |side: Option<(&'_ Instance, _)>| side.map(|(instance, _)| instance.clone());
        let (was, is) = (alone(before), alone(after));
        if was != is {
            self.entries.events.extend(of_instance(was.as_ref(), is.as_ref(), self.now));
        }
        let used = |side: Option<(&Instance, Option<&Lease>)>| {
            let span = side.and_then(|(instance, lease)| self.used_by(instance, lease));
            span.map(|span| (span.key(), span)).into_iter().collect::<Holdings>()
        };
        let (was, mut is) = (used(before), used(after));
        // An instance that was running already continues: on another host, or outside its lease after the
        // end.
        let ran = before.is_some_and(|(instance, _)| instance.status == InstanceStatus::Active);
        for span in is.values_mut() {
            span.begins &= !ran;
        }
        self.enter(was, is);
    }

    /// The entries to record.
    pub fn entries(self) -> Entries {
        self.entries
    }

    /// Records the difference between two sets of holdings.
    fn enter(&mut self, mut was: Holdings, is: Holdings) {
        for (key, mut span) in is {
            let before = was.remove(&key);
            let end = span.window.end();
            if let Some(before) = &before {
                let old_end = before.window.end();
                let alike = (before.size, before.host, before.lease) == (span.size, span.host, span.lease);
                if alike && old_end == end {
                    continue;
                }
                // A span that is already over isn't reopened: the time in between belongs to no owner.
                if alike && self.now < old_end {
                    self.entries.changed.push(SpanChange { key, end: end.max(self.now), closes: false });
                    continue;
                }
                self.entries.changed.push(SpanChange { key, end: self.now, closes: true });
                span.begins = false;
            }
            span.window = window_until(self.now, end);
            self.entries.opened.push(span);
        }
        let over = was.into_keys().map(|key| SpanChange { key, end: self.now, closes: true });
        self.entries.changed.extend(over);
    }

    /// Everything that a lease holds, until its end.
    fn held_by(&self, lease: &Lease) -> Holdings {
        let whole = Span {
            held: Held::Lease,
            host: None,
            pool: None,
            flavor: flavor_of(lease).map(str::to_owned),
            size: Size::ONE,
            lease: Some(lease.id),
            reservation: None,
            owner: lease.owner.clone(),
            lease_type: Some(lease.lease_type.name().to_owned()),
            begins: true,
            window: window_until(lease.window.start(), lease.window.end()),
            open: true,
        };
        let mut spans = vec![];
        for reservation in &lease.reservations {
            let flavor = reservation.terms.flavor().map(str::to_owned);
            let part = Span { reservation: Some(reservation.id), flavor, ..whole.clone() };
            let on = |id: HostId, held, size| {
                let host = (self.hosts)(id);
                let pool = host.map(|host| pool_of(host).to_owned());
                Span { held, host: Some(id), pool, size, ..part.clone() }
            };
            match &reservation.allocation {
                Allocation::Hosts(hosts) => spans.extend(hosts.iter().map(|id| {
                    let size = (self.hosts)(*id).map(|host| Size::of(1, &host.capacity()));
                    on(*id, Held::Host, size.unwrap_or(Size::ONE))
                })),
                Allocation::Slots(slots) => {
                    let each = reservation.terms.slots().map(|slots| slots.size).unwrap_or_default();
                    let room = |(id, count): (&HostId, &u32)| {
                        on(*id, Held::Room, Size::of(u64::from(*count), &each))
                    };
                    spans.extend(slots.iter().map(room));
                }
                Allocation::FloatingIps(ips) => {
                    spans.extend(ips.iter().map(|id| Span { held: Held::Address(*id), ..part.clone() }));
                }
            }
        }
        spans.push(Span { pool: pool_of_most(&spans), ..whole });
        spans.into_iter().map(|span| (span.key(), span)).collect()
    }

    /// Usage by a running instance. For an instance in a lease, until the end of the lease.
    fn used_by(&self, instance: &Instance, lease: Option<&Lease>) -> Option<Span> {
        if instance.status != InstanceStatus::Active {
            return None;
        }
        let part_of = instance.kind.lease();
        let lease = part_of.and(lease);
        if part_of.is_some() && !lease.is_some_and(holds) {
            return None;
        }
        let reservation = match instance.kind {
            InstanceKind::Reserved { reservation, .. } => Some(reservation),
            InstanceKind::Regular | InstanceKind::Preemptible => None,
        };
        let start = lease.map_or(self.now, |lease| lease.window.start());
        let terms = lease.zip(reservation).and_then(|(lease, id)| Some(&lease.reservation(id)?.terms));
        Some(Span {
            held: Held::Instance(instance.id),
            host: Some(instance.host),
            pool: (self.hosts)(instance.host).map(|host| pool_of(host).to_owned()),
            flavor: terms.and_then(ReservationTerms::flavor).map(str::to_owned),
            size: Size::of(1, &instance.size.resources()),
            lease: part_of,
            reservation,
            owner: instance.owner.clone(),
            lease_type: match instance.kind {
                InstanceKind::Preemptible => Some(PREEMPTIBLE.to_owned()),
                _ => lease.map(|lease| lease.lease_type.name().to_owned()),
            },
            begins: true,
            window: window_until(start, lease.map_or(Timestamp::MAX, |lease| lease.window.end())),
            open: true,
        })
    }
}

/// The free pool with most of these hosts; on a tie, the first by name. The lease is counted under it.
fn pool_of_most(spans: &[Span]) -> Option<String> {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for pool in spans.iter().filter_map(|span| span.pool.as_deref()) {
        *hosts.entry(pool).or_default() += 1;
    }
    let (pool, _) = hosts.into_iter().max_by_key(|(pool, hosts)| (*hosts, Reverse(*pool)))?;
    Some(pool.to_owned())
}

/// The flavor of a lease's capacity, if it is all of one flavor and the lease has no whole hosts.
fn flavor_of(lease: &Lease) -> Option<&str> {
    let on_hosts = lease.reservations.iter().map(|reservation| &reservation.terms);
    let mut on_hosts = on_hosts.filter(|terms| !matches!(terms, ReservationTerms::FloatingIps(_)));
    let flavor = on_hosts.next()?.flavor()?;
    on_hosts.all(|other| other.flavor() == Some(flavor)).then_some(flavor)
}

/// Whether the lease holds its allocation.
pub fn holds(lease: &Lease) -> bool {
    matches!(lease.status, LeaseStatus::Active | LeaseStatus::Updating)
        && lease.events.start == EventStatus::Done
        && lease.events.end == EventStatus::Undone
}

/// The window from `start` to `end`, empty if `end` is earlier. Truncated to microseconds, as in stores.
pub(super) fn window_until(start: Timestamp, end: Timestamp) -> Window {
    let kept = |at: Timestamp| Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
    let start = kept(start);
    Window::starting(start, kept(end).duration_since(start))
}

/// Expected usage by a lease if it starts on time and isn't changed. Time before `now` doesn't count.
pub fn foreseen<'h>(
    lease: &Lease,
    by: By,
    now: Timestamp,
    hosts: impl Fn(HostId) -> Option<&'h Host>,
) -> Vec<Sum> {
    let mut going = lease.clone();
    going.status = LeaseStatus::Active;
    going.events = EventStatuses { start: EventStatus::Done, ..EventStatuses::UNDONE };
    let start = lease.window.start().max(now);
    let mut account = Account::new(start, hosts);
    account.lease(None, Some(&going));
    let period = window_until(start, lease.window.end());
    let query = Query { periods: vec![period], by, ..Query::default() };
    sums(&account.entries().opened, &query)
}
