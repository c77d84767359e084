//! Paged lists in order of creation. The cost of a page depends on its own length, not on the number of
//! records.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{GuestId, LeaseId, SeriesId};
use leases::instance::Instance;
use leases::lease::Lease;
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use store::{InstanceRecord, LeaseRecord};

use crate::sorted::Sorted;
use crate::types::LeaseFilter;

/// Maximum number of records that a page examines. A filter by one field has an index, but a filter that
/// combines several can reject most of the records it examines.
const MOST_LOOKED_AT: usize = 4096;

/// Position of a record in lists: by creation, then by identifier. It never changes while the record exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Microseconds since 1970, the precision of stores.
    created_us: i64,
    id: u128,
}

impl Position {
    fn new(created_at: Timestamp, id: u128) -> Self {
        Self { created_us: created_at.as_microsecond(), id }
    }
}

/// The identifier, which clients pass as the marker of the last record they have seen.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LeaseId(self.id).fmt(f)
    }
}

impl From<&LeaseRecord> for Position {
    fn from(record: &LeaseRecord) -> Self {
        Self::new(record.created_at, record.lease.id.0)
    }
}

impl From<&InstanceRecord> for Position {
    fn from(record: &InstanceRecord) -> Self {
        Self::new(record.created_at, record.instance.id.0)
    }
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Records in order of creation.
    pub items: Vec<Arc<T>>,
    /// Position after which the list continues, or `None` at its end. A page that has examined many records
    /// ends early, with fewer records than requested.
    pub next: Option<Position>,
    /// Number of records examined.
    pub looked_at: usize,
}

/// Collects all pages of a list.
pub(crate) fn whole<T>(page: impl Fn(Option<Position>) -> Page<T>) -> Vec<Arc<T>> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let Page { items, next, .. } = page(after);
        all.extend(items);
        after = next;
        if after.is_none() {
            return all;
        }
    }
}

/// Common field values of a group of records.
#[derive(Clone, Copy, Hash)]
enum Group<'a> {
    All,
    Status(LeaseStatus),
    Name(&'a str),
    Series(SeriesId),
    InLease(LeaseId),
    Project(&'a ProjectId),
    ProjectStatus(&'a ProjectId, LeaseStatus),
    ProjectName(&'a ProjectId, &'a str),
}

impl Group<'_> {
    /// Hash of the group. Groups can collide, so readers of an order check each record against the filter.
    fn key(self) -> u64 {
        // Deterministic across runs.
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn of_lease(lease: &Lease) -> impl Iterator<Item = Group<'_>> {
        let project = &lease.owner.project;
        let usual = [
            Group::All,
            Group::Status(lease.status),
            Group::Name(&lease.name),
            Group::Project(project),
            Group::ProjectStatus(project, lease.status),
            Group::ProjectName(project, &lease.name),
        ];
        usual.into_iter().chain(lease.series.map(Group::Series))
    }

    fn of_instance(instance: &Instance) -> impl Iterator<Item = Group<'_>> {
        let usual = [Group::All, Group::Project(&instance.owner.project)];
        usual.into_iter().chain(instance.kind.lease().map(Group::InLease))
    }

    /// The smallest group that contains all records that match the filter, judged without counting.
    fn for_filter(filter: &LeaseFilter) -> Group<'_> {
        match (&filter.series, &filter.name, &filter.project, filter.status) {
            (Some(series), ..) => Group::Series(*series),
            (None, Some(name), Some(project), _) => Group::ProjectName(project, name),
            (None, Some(name), None, _) => Group::Name(name),
            (None, None, Some(project), Some(status)) => Group::ProjectStatus(project, status),
            (None, None, Some(project), None) => Group::Project(project),
            (None, None, None, Some(status)) => Group::Status(status),
            (None, None, None, None) => Group::All,
        }
    }
}

/// Records by group, each group in order of creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order(Sorted<(u64, Position)>);

impl Order {
    pub fn put_lease(&mut self, record: &LeaseRecord) {
        let position = Position::from(record);
        Group::of_lease(&record.lease).for_each(|group| self.0.insert((group.key(), position)));
    }

    pub fn remove_lease(&mut self, record: &LeaseRecord) {
        self.remove(Group::of_lease(&record.lease), Position::from(record));
    }

    pub fn put_instance(&mut self, record: &InstanceRecord) {
        let position = Position::from(record);
        Group::of_instance(&record.instance).for_each(|group| self.0.insert((group.key(), position)));
    }

    pub fn remove_instance(&mut self, record: &InstanceRecord) {
        self.remove(Group::of_instance(&record.instance), Position::from(record));
    }

    fn remove<'a>(&mut self, groups: impl Iterator<Item = Group<'a>>, position: Position) {
        for group in groups {
            self.0.remove(&(group.key(), position));
        }
    }

    pub fn leases(&self) -> impl Iterator<Item = LeaseId> {
        self.after(Group::All, None).map(|position| LeaseId(position.id))
    }

    /// Leases of a project. Hash collisions can add leases of other projects.
    pub fn leases_of(&self, project: &ProjectId) -> impl Iterator<Item = LeaseId> + use<'_> {
        self.after(Group::Project(project), None).map(|position| LeaseId(position.id))
    }

    fn after(&self, group: Group<'_>, after: Option<Position>) -> impl Iterator<Item = Position> + use<'_> {
        let key = group.key();
        let from = match after {
            Some(position) => Bound::Excluded((key, position)),
            None => Bound::Included((key, Position { created_us: i64::MIN, id: 0 })),
        };
        self.0.from(from).take_while(move |(other, _)| *other == key).map(|(_, position)| position)
    }

    /// At most `limit` matching leases after a position.
    pub fn page_of_leases<'a>(
        &self,
        filter: &LeaseFilter,
        after: Option<Position>,
        limit: usize,
        get: impl Fn(LeaseId) -> Option<&'a Arc<LeaseRecord>>,
    ) -> Page<LeaseRecord> {
        let positions = self.after(Group::for_filter(filter), after);
        let get = |position: Position| get(LeaseId(position.id));
        page(positions, limit, get, |record| match &filter.project {
            Some(project) if record.lease.owner.project != *project => Wanted::Foreign,
            _ if filter.lets_through(&record.lease) => Wanted::Yes,
            _ => Wanted::No,
        })
    }

    /// At most `limit` instances after a position. `project` and `lease` filter them if given.
    pub fn page_of_instances<'a>(
        &self,
        project: Option<&ProjectId>,
        lease: Option<LeaseId>,
        after: Option<Position>,
        limit: usize,
        get: impl Fn(GuestId) -> Option<&'a Arc<InstanceRecord>>,
    ) -> Page<InstanceRecord> {
        let group = match (lease, project) {
            (Some(lease), _) => Group::InLease(lease),
            (None, Some(project)) => Group::Project(project),
            (None, None) => Group::All,
        };
        let get = |position: Position| get(GuestId(position.id));
        page(self.after(group, after), limit, get, |record| {
            if project.is_some_and(|project| record.instance.owner.project != *project) {
                Wanted::Foreign
            } else if lease.is_some_and(|lease| record.instance.kind.lease() != Some(lease)) {
                Wanted::No
            } else {
                Wanted::Yes
            }
        })
    }
}

/// Whether a record is part of a list.
enum Wanted {
    Yes,
    No,
    /// Not part of the list, and owned by another project. A page doesn't end at such a record, because its
    /// identifier would be the marker for the next page.
    Foreign,
}

fn page<'a, T: 'a>(
    positions: impl Iterator<Item = Position>,
    limit: usize,
    get: impl Fn(Position) -> Option<&'a Arc<T>>,
    wanted: impl Fn(&T) -> Wanted,
) -> Page<T> {
    let mut page = Page { items: Vec::new(), next: None, looked_at: 0 };
    let mut last = None;
    for position in positions {
        let Some(record) = get(position) else { continue };
        page.looked_at += 1;
        let wanted = wanted(record);
        let full = matches!(wanted, Wanted::Yes) && page.items.len() >= limit;
        if last.is_some() && (full || page.looked_at > MOST_LOOKED_AT) {
            page.next = last;
            break;
        }
        match wanted {
            Wanted::Yes => page.items.push(Arc::clone(record)),
            Wanted::No => {}
            Wanted::Foreign => continue,
        }
        last = Some(position);
    }
    page
}

#[cfg(test)]
mod tests;
