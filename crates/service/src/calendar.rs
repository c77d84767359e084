//! Calendar of hosts, limited to the information that the caller may see. Zoomed in, it has bars for leases
//! and instances; zoomed out, the reserved fraction per interval.

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

/// Work units per listed host, per booking, and per started or ended lease.
const HOST: u64 = 10;
const BOOKING: u64 = 40;
const LEASE: u64 = 30;
/// Work units per interval of a bucketed row.
const SPAN: u64 = 4;

/// A page ends early at the host with which it reaches one of these limits of bars, intervals or work units.
/// So cheap pages don't wait long for an expensive one.
const MOST_BARS: usize = 2_000;
const MOST_SPANS: usize = 40_000;
const PAGE_WORK: u64 = 1_000_000;

/// A request for a page of the calendar.
#[derive(Clone, Debug)]
pub struct CalendarQuestion {
    pub within: Window,
    /// Only hosts of this pool; `None` for all.
    pub pool: Option<FreePoolId>,
    /// Property to sort hosts by; hosts without it come last. `None` sorts by identifier.
    pub group_by: Option<String>,
    /// Return the average reserved fraction of intervals of this length, instead of bars.
    pub bucket: Option<SignedDuration>,
    /// Start after this host in the sort order.
    pub after: Option<HostId>,
    /// Maximum number of hosts.
    pub limit: usize,
    pub viewer: CalendarViewer,
}

/// The caller's project and permissions.
#[derive(Clone, Debug)]
pub struct CalendarViewer {
    /// Leases, instances and offers of this project are the caller's own.
    pub project: ProjectId,
    /// Whether the caller sees names, projects and kinds of other projects' leases and instances.
    pub all_leases: bool,
    /// Whether the caller sees names and power states of all hosts. Without it, only names of hosts that the
    /// caller's own leases have.
    pub all_hosts: bool,
}

impl CalendarViewer {
    fn knows(&self, project: &ProjectId) -> bool {
        self.all_leases || self.project == *project
    }
}

/// A page of the calendar.
#[derive(Clone, Debug)]
pub struct CalendarPage {
    pub now: Timestamp,
    /// Revision of the store that the page shows.
    pub revision: u64,
    /// In the requested order.
    pub hosts: Vec<CalendarHost>,
    /// Leases that bars refer to by position.
    pub leases: Vec<Arc<LeaseRecord>>,
    /// Marker for the next page: the last host of this one. `None` on the last page.
    pub next: Option<HostId>,
}

/// A host in the calendar.
#[derive(Clone, Debug)]
pub struct CalendarHost {
    pub id: HostId,
    /// `None` if the caller may not know it.
    pub name: Option<String>,
    /// Name of its free pool.
    pub pool: String,
    /// Value of the property that hosts are sorted by.
    pub group: Option<String>,
    pub status: CalendarStatus,
    /// Whether the host is on or booting; `None` if the caller may not know.
    pub power: Option<bool>,
    pub row: CalendarRow,
}

/// Current status of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalendarStatus {
    /// Available for leases.
    Open,
    /// Not reservable: new leases don't get it.
    Closed,
    Failed,
    /// Under maintenance: its maintenance lease has started.
    Maintenance,
}

/// The row of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalendarRow {
    /// Sorted by start.
    Bars(Vec<Bar>),
    /// Reserved fraction of each interval, in thousandths.
    Buckets(Vec<u16>),
}

/// A time span in which a lease, an offer or an instance occupies a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bar {
    /// Can be before the requested window.
    pub start: Timestamp,
    /// `None` if the end is unknown.
    pub end: Option<Timestamp>,
    pub kind: BarKind,
    /// Position in [`CalendarPage::leases`]; `None` if the caller may not know the lease.
    pub lease: Option<usize>,
    /// Number of reserved slots, or 1 for an instance. `None` for whole hosts, and if the caller may not
    /// know.
    pub instances: Option<u64>,
    /// Whether it occupies the whole host.
    pub whole: bool,
}

/// Content of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarKind {
    Lease,
    /// Capacity that is kept free for an offer.
    Offer,
    /// Booked maintenance.
    Maintenance,
    /// An instance outside all leases that is not preemptible.
    Instance,
    /// A preemptible instance. Its bar ends when it is asked to leave, if that is known.
    Preemptible,
    /// A lease or an instance that the caller may not know.
    Other,
}

/// A reservation that has, or had, a share of a host.
struct Held<'a> {
    record: &'a Arc<LeaseRecord>,
    reservation: &'a Reservation,
    window: Window,
}

/// Access to the calendar and to availability.
#[derive(Clone, Copy, Debug)]
pub struct CalendarView<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> CalendarView<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Revision of the state in memory. It rises with every change.
    pub fn revision(self) -> u64 {
        self.service.state().revision.number
    }

    /// Waits until the revision of the state in memory differs from `revision`.
    pub async fn changed_since(self, revision: u64) {
        // Subscribed first, so that no change is missed between the check and the wait.
        let mut changes = self.service.changes.subscribe();
        while self.revision() == revision {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether any host has the property and it isn't hidden. For the caller, a hidden property must look
    /// like a property without hosts.
    pub fn is_shown(self, property: &str) -> bool {
        let has = |host: &Host| host.property(property).is_some();
        !self.is_hidden(property) && self.service.state().inventory.hosts().any(has)
    }

    /// Whether the property is hidden from lists, or has projects as values.
    pub fn is_hidden(self, property: &str) -> bool {
        let hidden = self.service.state().properties.get(property).is_some_and(|property| property.private);
        hidden || property == leases::host::TENANTS
    }

    /// A page of the calendar: reservations of hosts within a past or future window, and instances outside
    /// leases.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] if it takes too much work or the host in `after` doesn't exist;
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

/// Inputs of a page.
struct Drawing<'a> {
    state: &'a State,
    question: &'a CalendarQuestion,
    /// Owner of maintenance leases.
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

    /// Charges work units to the budget.
    fn spend(&self, units: u64) -> Result<(), ServiceError> {
        if self.budget.spend(units) {
            return Ok(());
        }
        let text = "The calendar takes more work than it may: ask for a shorter time, or for fewer hosts";
        Err(ServiceError::Invalid(text.to_owned()))
    }

    /// Hosts of the page in order, plus one if there are more than `limit`.
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

    /// Shares of these hosts that started or ended leases have or had, if the window begins in the past. The
    /// calendar that decisions use only looks ahead.
    fn begun(&self, hosts: &BTreeSet<HostId>) -> Result<BTreeMap<HostId, Vec<Held<'a>>>, ServiceError> {
        let mut found: BTreeMap<HostId, Vec<Held<'a>>> = BTreeMap::new();
        let within = &self.question.within;
        if within.start() >= self.now {
            return Ok(found);
        }
        let leases = &self.state.leases;
        // A lease that was over before the window hasn't changed since then.
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

    /// Instances outside leases on these hosts.
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
            // Ended leases still have bookings while their hosts are cleaned. Started leases are in `begun`
            // already if the window begins in the past.
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

    /// Capacity that is kept free on a host for offers that the caller may know. Offers don't take capacity
    /// from leases, so other projects' offers are not shown.
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

    /// Bars of a host, sorted by start.
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

    /// Bar of an instance; `None` if the caller may not know the instance or it is outside the window.
    fn bar_of(&self, record: &InstanceRecord) -> Option<Bar> {
        let instance = &record.instance;
        let known = self.question.viewer.knows(&instance.owner.project);
        let preemptible = instance.kind == InstanceKind::Preemptible;
        let kind = match (preemptible, known) {
            (true, true) => BarKind::Preemptible,
            // It doesn't take capacity from leases.
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

/// Best known start of an instance on its host: its launch, or else its creation.
fn since(record: &InstanceRecord) -> Timestamp {
    record.instance.launched_at.unwrap_or(record.created_at)
}

/// Capacity used by an instance that is not preemptible. Its end is unknown.
fn staying(record: &InstanceRecord) -> Option<Reserved> {
    let instance = &record.instance;
    let stays = instance.kind == InstanceKind::Regular;
    let window = Window::new(since(record), Timestamp::MAX).ok().filter(|_| stays)?;
    Some(Reserved { window, used: Some(instance.size.resources()) })
}

/// Leases in the order in which bars first refer to them.
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
    /// Share of the host. `None` if the reservation holds no capacity on it.
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

/// Part of a host that a lease has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Whole,
    /// Number of slots for instances.
    Slots(u32),
}

/// Window in which the lease has or had its allocation. For an ended or failed lease, it ends at the last
/// change of the lease at the latest.
fn extent(record: &LeaseRecord, now: Timestamp) -> Window {
    let lease = &record.lease;
    if lease.keeps_resources() {
        return lease.window;
    }
    let until = record.updated_at.unwrap_or(record.created_at).min(now);
    // A lease that never started had no hosts.
    let until = if lease.events.start == EventStatus::Done { until } else { Timestamp::MIN };
    lease.window.before(until)
}
