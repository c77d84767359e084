//! Who has which hosts when, host by host, as far as the caller may know: bars from near, and how much is reserved from
//! afar.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::host::{Health, Host};
use leases::ids::{FreePoolId, HostId, LeaseId};
use leases::instance::InstanceKind;
use leases::lease::{Allocation, Reservation};
use leases::occupancy::{Reserved, occupancy, spans};
use leases::project::ProjectId;
use leases::resources::Resources;
use leases::status::{EventStatus, LeaseStatus};
use leases::window::Window;
use leases::work::Budget;
use store::{InstanceRecord, LeaseRecord};

use crate::service::Service;
use crate::state::State;
use crate::types::ServiceError;

/// What it costs to look at a host in a list, at a booking, and at a lease that may be over.
const HOST: u64 = 10;
const BOOKING: u64 = 40;
const LEASE: u64 = 30;
/// What a span costs.
const SPAN: u64 = 4;

/// A page ends early with a host with which it has so many bars or spans, or has cost so much work, so that a page of
/// little does not wait long for one of much.
const MOST_BARS: usize = 2_000;
const MOST_SPANS: usize = 40_000;
const PAGE_WORK: u64 = 1_000_000;

/// What is asked of the calendar.
#[derive(Clone, Debug)]
pub struct CalendarQuestion {
    /// Which time.
    pub within: Window,
    /// Hosts of this pool only.
    pub pool: Option<FreePoolId>,
    /// Hosts are ordered by this property, those without it last; by identifier if absent.
    pub group_by: Option<String>,
    /// How much is reserved on average in spans of this length, instead of what is reserved.
    pub bucket: Option<SignedDuration>,
    /// Hosts after this one in that order.
    pub after: Option<HostId>,
    /// So many hosts at most.
    pub limit: usize,
    /// Who asks.
    pub viewer: CalendarViewer,
}

/// Who asks for a calendar, and what they may know.
#[derive(Clone, Debug)]
pub struct CalendarViewer {
    /// The project whose leases, instances and offers are the caller's own.
    pub project: ProjectId,
    /// Whether those of others may be known: names, projects, what they are.
    pub all_leases: bool,
    /// Whether names and power of hosts may be known, beside those that the caller's own leases have.
    pub all_hosts: bool,
}

impl CalendarViewer {
    fn knows(&self, project: &ProjectId) -> bool {
        self.all_leases || self.project == *project
    }
}

/// A part of the calendar.
#[derive(Clone, Debug)]
pub struct CalendarPage {
    /// As of when.
    pub now: Timestamp,
    /// As of which state of the store.
    pub revision: u64,
    /// Hosts in order.
    pub hosts: Vec<CalendarHost>,
    /// The leases that bars refer to.
    pub leases: Vec<Arc<LeaseRecord>>,
    /// The last of these hosts, if there are more.
    pub next: Option<HostId>,
}

/// A host in the calendar.
#[derive(Clone, Debug)]
pub struct CalendarHost {
    /// Its identifier.
    pub id: HostId,
    /// Its name, if the caller may know it.
    pub name: Option<String>,
    /// Its pool's name.
    pub pool: String,
    /// The value of the property that hosts are ordered by.
    pub group: Option<String>,
    /// How it is at present.
    pub status: CalendarStatus,
    /// Whether it is on, or on its way, if the caller may know.
    pub power: Option<bool>,
    /// What is on it.
    pub row: CalendarRow,
}

/// How a host is at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalendarStatus {
    /// It can be leased.
    Open,
    /// No new lease is given it.
    Closed,
    /// It has failed.
    Failed,
    /// It is being maintained.
    Maintenance,
}

/// What is on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalendarRow {
    /// By start.
    Bars(Vec<Bar>),
    /// How much is reserved in each span, in thousandths.
    Buckets(Vec<u16>),
}

/// A time during which something is on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bar {
    /// From when, also if that is before the time that is asked about.
    pub start: Timestamp,
    /// Until when; none if that is not known.
    pub end: Option<Timestamp>,
    /// What.
    pub kind: BarKind,
    /// The position of the lease, if the caller may know it.
    pub lease: Option<usize>,
    /// How many instances it has room for, or is, if the caller may know.
    pub instances: Option<u64>,
    /// Whether it has the whole host.
    pub whole: bool,
}

/// What is on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarKind {
    /// A lease.
    Lease,
    /// What is kept free for an offer.
    Offer,
    /// Maintenance that was booked.
    Maintenance,
    /// An instance that is part of no lease, and stays.
    Instance,
    /// An instance that is preempted for leases; it ends when it is asked to leave, as far as is known.
    Preemptible,
    /// What the caller may not know.
    Other,
}

/// What a lease has, or had, of a host.
struct Held<'a> {
    record: &'a Arc<LeaseRecord>,
    reservation: &'a Reservation,
    window: Window,
}

/// What is booked and what is free, by host and time.
#[derive(Clone, Copy, Debug)]
pub struct CalendarView<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> CalendarView<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Which state of the store is in memory: it rises with every change.
    pub fn revision(self) -> u64 {
        self.service.state().revision.number
    }

    /// Returns when the state of the store in memory is another than that.
    pub async fn changed_since(self, revision: u64) {
        // Subscribed first, so that none is missed between looking and waiting.
        let mut changes = self.service.changes.subscribe();
        while self.revision() == revision {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether a host has the property and it isn't hidden. A hidden property must look like one that no host has.
    pub fn is_shown(self, property: &str) -> bool {
        let has = |host: &Host| host.property(property).is_some();
        !self.is_hidden(property) && self.service.state().inventory.hosts().any(has)
    }

    /// Whether the property is hidden from lists, or has projects as values.
    pub fn is_hidden(self, property: &str) -> bool {
        let hidden = self.service.state().properties.get(property).is_some_and(|property| property.private);
        hidden || property == leases::host::TENANTS
    }

    /// A part of the calendar: what leases have of hosts within a window, past or to come, and what else is on them.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] if that takes too much work, or if there is no host after which it is to begin;
    /// [`ServiceError::Gone`].
    pub async fn page(self, question: &CalendarQuestion) -> Result<CalendarPage, ServiceError> {
        self.service
            .consider(|budget| {
                let state = self.service.snapshot();
                let maintenance = self.service.decider.settings.housekeeping.maintenance_project.as_ref();
                Drawing { state: &state, question, maintenance, now: self.service.now(), budget }.page()
            })
            .await
    }
}

/// What a page is made of.
struct Drawing<'a> {
    state: &'a State,
    question: &'a CalendarQuestion,
    /// The project that maintenance is booked for.
    maintenance: Option<&'a ProjectId>,
    now: Timestamp,
    budget: &'a Budget,
}

impl<'a> Drawing<'a> {
    fn page(&self) -> Result<CalendarPage, ServiceError> {
        let CalendarQuestion { limit, .. } = *self.question;
        let mut rest = self.hosts()?;
        let more = rest.len() > limit;
        rest.truncate(limit);
        let asked: BTreeSet<HostId> = rest.iter().map(|host| host.id).collect();
        let mut begun = self.begun(&asked)?;
        let mut instances = self.instances(&asked)?;
        let (mut hosts, mut leases) = (Vec::new(), LeaseTable::default());
        let (mut bars, mut spans) = (0, 0);
        let last = rest.last().map(|host| host.id);
        let mut next = last.filter(|_| more);
        for host in rest {
            let held = begun.remove(&host.id).unwrap_or_default();
            let instances = instances.remove(&host.id).unwrap_or_default();
            let drawn = self.host(host, held, &instances, &mut leases)?;
            match &drawn.row {
                CalendarRow::Bars(drawn) => bars += drawn.len(),
                CalendarRow::Buckets(drawn) => spans += drawn.len(),
            }
            let id = drawn.id;
            hosts.push(drawn);
            let full = bars >= MOST_BARS || spans >= MOST_SPANS || self.budget.spent() >= PAGE_WORK;
            if full && Some(id) != last {
                next = Some(id);
                break;
            }
        }
        Ok(CalendarPage {
            now: self.now,
            revision: self.state.revision.number,
            hosts,
            leases: leases.leases,
            next,
        })
    }

    /// Charges work.
    fn spend(&self, units: u64) -> Result<(), ServiceError> {
        if self.budget.spend(units) {
            return Ok(());
        }
        let text = "The calendar takes more work than it may: ask for a shorter time, or for fewer hosts";
        Err(ServiceError::Invalid(text.to_owned()))
    }

    /// Hosts in order, from the one on that the page begins with: one more than fit, if there are more.
    fn hosts(&self) -> Result<Vec<&'a Host>, ServiceError> {
        let CalendarQuestion { pool, group_by, after, limit, .. } = self.question;
        let wanted = |host: &&Host| pool.is_none_or(|pool| host.pool == pool);
        let missing = |after: &HostId| ServiceError::Invalid(format!("marker {after} is not in the list"));
        let inventory = &self.state.inventory;
        if let Some(after) = after
            && inventory.host(*after).is_none()
        {
            return Err(missing(after));
        }
        self.spend(HOST * inventory.hosts().len() as u64)?;
        let Some(property) = group_by else {
            let rest = inventory.hosts().filter(|host| after.is_none_or(|after| host.id > after));
            return Ok(rest.filter(wanted).take(limit.saturating_add(1)).collect());
        };
        let key = |host: &Host| {
            let group = host.property(property);
            (group.is_none(), group.map(Cow::into_owned), host.id)
        };
        let first = after.and_then(|after| inventory.host(after)).map(key);
        let mut keyed: Vec<_> = inventory.hosts().filter(wanted).map(|host| (key(host), host)).collect();
        keyed.retain(|(key, _)| first.as_ref().is_none_or(|first| key > first));
        keyed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        keyed.truncate(limit.saturating_add(1));
        Ok(keyed.into_iter().map(|(_, host)| host).collect())
    }

    /// What leases that have begun, or are over, have or had of these hosts, as far as the window is in the past: the
    /// calendar that decisions go by looks forward only.
    fn begun(&self, hosts: &BTreeSet<HostId>) -> Result<BTreeMap<HostId, Vec<Held<'a>>>, ServiceError> {
        let mut found: BTreeMap<HostId, Vec<Held<'a>>> = BTreeMap::new();
        let within = &self.question.within;
        if within.start() >= self.now {
            return Ok(found);
        }
        let leases = &self.state.leases;
        // What was over before then was not changed since.
        for record in leases.going().chain(leases.ended_since(within.start())) {
            let lease = &record.lease;
            let window = extent(record, self.now);
            self.spend(LEASE)?;
            if !window.overlaps(within) {
                continue;
            }
            for reservation in &lease.reservations {
                let mut note = |host: &HostId| {
                    if hosts.contains(host) {
                        found.entry(*host).or_default().push(Held { record, reservation, window });
                    }
                };
                self.spend(reservation.allocation.amount())?;
                match &reservation.allocation {
                    Allocation::Hosts(hosts) => hosts.iter().for_each(&mut note),
                    Allocation::Slots(slots) => slots.keys().for_each(&mut note),
                    Allocation::FloatingIps(_) => {}
                }
            }
        }
        Ok(found)
    }

    /// Instances that are part of no lease and on these hosts.
    fn instances(
        &self,
        hosts: &BTreeSet<HostId>,
    ) -> Result<BTreeMap<HostId, Vec<&'a Arc<InstanceRecord>>>, ServiceError> {
        let mut found: BTreeMap<HostId, Vec<&Arc<InstanceRecord>>> = BTreeMap::new();
        for record in self.state.instances.iter() {
            self.spend(HOST)?;
            let instance = &record.instance;
            let counts = instance.kind.lease().is_none() && instance.needs_place();
            if counts && hosts.contains(&instance.host) {
                found.entry(instance.host).or_default().push(record);
            }
        }
        Ok(found)
    }

    fn host(
        &self,
        host: &'a Host,
        mut held: Vec<Held<'a>>,
        instances: &[&Arc<InstanceRecord>],
        leases: &mut LeaseTable,
    ) -> Result<CalendarHost, ServiceError> {
        let CalendarQuestion { within, viewer, bucket, group_by, .. } = self.question;
        self.spend(HOST + BOOKING * self.state.calendar.near(host.id, within) as u64)?;
        let past = within.start() < self.now;
        let coming = self.state.calendar.bookings_in(host.id, within.since(within.start().max(self.now)));
        held.extend(coming.filter_map(|(_, booking)| {
            let record = self.state.leases.get(booking.lease)?;
            // What is over is being cleaned; what goes on is known from its beginning on, if that is asked for.
            let counts =
                record.lease.keeps_resources() && !(past && record.lease.status != LeaseStatus::Pending);
            let reservation = record.lease.reservation(booking.reservation).filter(|_| counts)?;
            Some(Held { record, reservation, window: record.lease.window })
        }));
        let maintained = held.iter().any(|held| {
            let project = &held.record.lease.owner.project;
            self.maintenance == Some(project) && held.window.contains(self.now)
        });
        let own = held.iter().any(|held| held.record.lease.owner.project == viewer.project);
        let offered = self.offered(host.id);
        let row = match bucket {
            Some(length) => {
                self.spend(SPAN * spans(within, *length).unwrap_or(0))?;
                let reserved = held.iter().chain(&offered).filter_map(|held| held.reserved(host.id));
                let reserved: Vec<Reserved> =
                    reserved.chain(instances.iter().filter_map(|record| staying(record))).collect();
                CalendarRow::Buckets(occupancy(&reserved, &host.capacity(), within, *length))
            }
            None => CalendarRow::Bars(self.bars(host, &held, &offered, instances, leases)),
        };
        let status = match (host.health, maintained, host.reservable) {
            (Health::Failed, ..) => CalendarStatus::Failed,
            (_, true, _) => CalendarStatus::Maintenance,
            (.., false) => CalendarStatus::Closed,
            (.., true) => CalendarStatus::Open,
        };
        Ok(CalendarHost {
            id: host.id,
            name: (viewer.all_hosts || own).then(|| host.name.clone()),
            pool: self.state.free_pool(host.pool).name.clone(),
            group: group_by.as_ref().and_then(|name| host.property(name)).map(Cow::into_owned),
            status,
            power: viewer.all_hosts.then(|| host.power.is_on()),
            row,
        })
    }

    /// What is kept free on a host for offers that the caller may know of. Offers take nothing from anybody, so those of
    /// others are nobody's business.
    fn offered(&self, host: HostId) -> Vec<Held<'a>> {
        let CalendarQuestion { within, viewer, .. } = self.question;
        let offered = self.state.offered.bookings_in(host, within.since(within.start().max(self.now)));
        let known = offered.filter_map(|(_, booking)| {
            let record = self.state.proposals.get(booking.lease)?;
            let reservation = record.lease.reservation(booking.reservation)?;
            let known = viewer.knows(&record.lease.owner.project);
            known.then_some(Held { record, reservation, window: record.lease.window })
        });
        known.collect()
    }

    /// What is on a host within the window, by start.
    fn bars(
        &self,
        host: &Host,
        held: &[Held<'a>],
        offered: &[Held<'a>],
        instances: &[&Arc<InstanceRecord>],
        leases: &mut LeaseTable,
    ) -> Vec<Bar> {
        let viewer = &self.question.viewer;
        let of_lease = |held: &Held<'a>| {
            let owner = &held.record.lease.owner.project;
            let known = viewer.knows(owner);
            let kind = match (known, self.maintenance == Some(owner)) {
                (_, true) => BarKind::Maintenance,
                (true, false) => BarKind::Lease,
                (false, false) => BarKind::Other,
            };
            let lease = known.then(|| leases.position(held.record));
            held.bar(host.id, kind, lease, known)
        };
        let mut bars: Vec<Bar> = held.iter().filter_map(of_lease).collect();
        bars.extend(offered.iter().filter_map(|held| held.bar(host.id, BarKind::Offer, None, true)));
        bars.extend(instances.iter().filter_map(|record| self.bar_of(record)));
        bars.sort_unstable();
        bars
    }

    /// That of an instance, if the caller may know that there is one.
    fn bar_of(&self, record: &InstanceRecord) -> Option<Bar> {
        let instance = &record.instance;
        let known = self.question.viewer.knows(&instance.owner.project);
        let preemptible = instance.kind == InstanceKind::Preemptible;
        let kind = match (preemptible, known) {
            (true, true) => BarKind::Preemptible,
            // It takes nothing from anybody.
            (true, false) => return None,
            (false, true) => BarKind::Instance,
            (false, false) => BarKind::Other,
        };
        let start = since(record);
        let end = instance.departure.map(|departure| departure.asked_at.max(start));
        let within = &self.question.within;
        let seen = start < within.end() && end.is_none_or(|end| within.start() < end);
        let instances = known.then_some(1);
        seen.then_some(Bar { start, end, kind, lease: None, instances, whole: false })
    }
}

/// Since when an instance is on its host, as far as is known.
fn since(record: &InstanceRecord) -> Timestamp {
    record.instance.launched_at.unwrap_or(record.created_at)
}

/// What an instance takes that is not preempted: nobody knows until when.
fn staying(record: &InstanceRecord) -> Option<Reserved> {
    let instance = &record.instance;
    let stays = instance.kind == InstanceKind::Regular;
    let window = Window::new(since(record), Timestamp::MAX).ok().filter(|_| stays)?;
    Some(Reserved { window, used: Some(instance.size.resources()) })
}

/// Leases in the order in which bars refer to them first.
#[derive(Default)]
struct LeaseTable {
    leases: Vec<Arc<LeaseRecord>>,
    positions: HashMap<LeaseId, usize>,
}

impl LeaseTable {
    fn position(&mut self, record: &Arc<LeaseRecord>) -> usize {
        *self.positions.entry(record.lease.id).or_insert_with(|| {
            self.leases.push(Arc::clone(record));
            self.leases.len() - 1
        })
    }
}

impl Held<'_> {
    /// What it has of the host, if it has something.
    fn share(&self, host: HostId) -> Option<Share> {
        match &self.reservation.allocation {
            Allocation::Hosts(_) => Some(Share::Whole),
            Allocation::Slots(slots) => Some(Share::Slots(*slots.get(&host)?)),
            Allocation::FloatingIps(_) => None,
        }
    }

    fn bar(&self, host: HostId, kind: BarKind, lease: Option<usize>, known: bool) -> Option<Bar> {
        let share = self.share(host)?;
        let instances = match share {
            Share::Slots(count) if known => Some(u64::from(count)),
            _ => None,
        };
        let (start, end) = (self.window.start(), Some(self.window.end()));
        Some(Bar { start, end, kind, lease, instances, whole: share == Share::Whole })
    }

    fn reserved(&self, host: HostId) -> Option<Reserved> {
        let used = match self.share(host)? {
            Share::Whole => None,
            Share::Slots(count) => {
                let size = self.reservation.terms.slots().map(|terms| terms.size).unwrap_or_default();
                let mut used = Resources::default();
                used.add(count, &size);
                Some(used)
            }
        };
        Some(Reserved { window: self.window, used })
    }
}

/// What a lease has of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// All of it.
    Whole,
    /// Room for so many instances.
    Slots(u32),
}

/// When the lease has what it was given, or had it: one that is over or has failed not after its last change.
fn extent(record: &LeaseRecord, now: Timestamp) -> Window {
    let lease = &record.lease;
    if lease.keeps_resources() {
        return lease.window;
    }
    let until = record.updated_at.unwrap_or(record.created_at).min(now);
    // One that never began had nothing.
    let until = if lease.events.start == EventStatus::Done { until } else { Timestamp::MIN };
    lease.window.before(until)
}
