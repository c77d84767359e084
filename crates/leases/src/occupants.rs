//! Records for auditors: which instances were observed on the hosts of a lease, which fence was in force, and when no
//! observation was made.
//!
//! A [`Watch`] compares each observation of a host with the previous one and records changes as [`Interval`]s, from the
//! first observation of an instance to the last. The first interval of a host begins at the end of its first
//! observation, which may have begun before the host was fenced. While nothing changes, only the time of the last
//! observation is updated ([`Changes::seen_until`]), at intervals. A restarted service continues the open intervals and
//! records the gap.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::{SignedDuration, Timestamp};

use crate::ids::{GuestId, HostId, LeaseId};
use crate::project::ProjectId;
use crate::window::Window;

/// Interval at which the time of the last look is recorded while nothing changes.
const RECORD_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// State of a host's fence from a lease's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// No project can start instances there. Instances of other tenants leave for the lease.
    Fenced,
    /// No project can start instances there, and only the lease's own instances were found.
    Verified,
    /// Only the lease's project can start instances there.
    Held,
    /// No fence, although the lease has the host: other projects can start instances there.
    Unfenced,
    /// The host is being taken back. The lease's project may still be able to start instances there.
    Releasing,
    /// The lease has given the host back.
    Released,
}

/// A fact that looks at a leased host establish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Fence(Fence),
    /// An instance, with its project if known.
    Instance(GuestId, Option<ProjectId>),
    /// Instances on the host weren't observed.
    Unseen,
}

impl Fence {
    const ALL: [Self; 6] =
        [Self::Fenced, Self::Verified, Self::Held, Self::Unfenced, Self::Releasing, Self::Released];

    fn name(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Verified => "verified",
            Self::Held => "held",
            Self::Unfenced => "unfenced",
            Self::Releasing => "releasing",
            Self::Released => "released",
        }
    }
}

impl Fact {
    /// Name in databases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fence(fence) => fence.name(),
            Self::Instance(..) => "instance",
            Self::Unseen => "unseen",
        }
    }

    /// `None` if the name is unknown. `instance` and `project` are ignored unless the fact is about an
    /// instance.
    pub fn from_parts(name: &str, instance: GuestId, project: Option<ProjectId>) -> Option<Self> {
        match name {
            "instance" => Some(Self::Instance(instance, project)),
            "unseen" => Some(Self::Unseen),
            _ => Fence::ALL.into_iter().find(|fence| fence.name() == name).map(Self::Fence),
        }
    }

    /// Instance and project, if the fact is about an instance.
    pub fn instance(&self) -> Option<(GuestId, Option<&ProjectId>)> {
        match self {
            Self::Instance(id, project) => Some((*id, project.as_ref())),
            Self::Fence(_) | Self::Unseen => None,
        }
    }
}

/// Period during which looks at a leased host saw the same fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Lease that has the host.
    pub lease: LeaseId,
    /// Project of the lease.
    pub project: ProjectId,
    pub host: HostId,
    pub fact: Fact,
    /// Whether this is the first record of the host in this lease.
    pub begins: bool,
    /// The beginning of the first look that saw it, or its end if records of the host begin with it; of [`Fact::Unseen`], the
    /// end of the last look before.
    pub start: Timestamp,
    /// End of the last look that saw the fact. For [`Fact::Unseen`], the beginning of the next look. `None`
    /// while the fact lasts.
    pub end: Option<Timestamp>,
}

/// Changes to record. `closed` must be recorded before `opened`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Open intervals that end. A host, lease and fact has at most one open interval.
    pub closed: Vec<Interval>,
    /// New intervals. Some have ended already.
    pub opened: Vec<Interval>,
    /// Everything seen until this time is recorded.
    pub seen_until: Option<Timestamp>,
}

impl Changes {
    /// Number of changed intervals.
    pub fn len(&self) -> usize {
        self.closed.len() + self.opened.len()
    }

    /// Whether no interval changes.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.opened.is_empty()
    }

    fn open(&mut self, interval: Interval) -> Interval {
        self.opened.push(interval.clone());
        interval
    }

    /// Ends an interval. If it isn't recorded yet, it is recorded with its end.
    fn close(&mut self, interval: Interval, end: Timestamp) {
        let end = Some(end.max(interval.start));
        match self.opened.iter_mut().rev().find(|new| **new == interval) {
            Some(new) => new.end = end,
            None => self.closed.push(Interval { end, ..interval }),
        }
    }
}

/// Result of a look at a host that a lease has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub lease: LeaseId,
    /// Project of the lease.
    pub project: ProjectId,
    pub fence: Fence,
    /// Instances on the host, with their projects if known. `None` if the fleet doesn't report instances.
    pub instances: Option<BTreeMap<GuestId, Option<ProjectId>>>,
}

/// A host of a lease, with its open intervals.
#[derive(Clone, Debug)]
struct Watched {
    project: ProjectId,
    fence: Option<Interval>,
    unseen: Option<Interval>,
    instances: BTreeMap<GuestId, Interval>,
    /// End of the last look at the host.
    seen_at: Timestamp,
}

impl Watched {
    fn new(project: ProjectId, seen_at: Timestamp) -> Self {
        Self { project, fence: None, unseen: None, instances: BTreeMap::new(), seen_at }
    }

    /// End of the last look that reported instances.
    fn instances_seen_at(&self) -> Timestamp {
        self.unseen.as_ref().map_or(self.seen_at, |unseen| unseen.start)
    }
}

/// Tracks leased hosts from look to look.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    hosts: BTreeMap<(HostId, LeaseId), Watched>,
    changes: Changes,
    /// The last [`Changes::seen_until`].
    recorded: Option<Timestamp>,
}

impl Watch {
    /// Continues from the open intervals and the last [`Changes::seen_until`]. Times after `now` were
    /// recorded before the clock was set back, and count as `now`.
    pub fn new(
        open: impl IntoIterator<Item = Interval>,
        seen_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let mut hosts: BTreeMap<(HostId, LeaseId), Watched> = BTreeMap::new();
        let seen_until = seen_until.map(|until| until.min(now));
        for interval in open {
            let interval = Interval { start: interval.start.min(now), ..interval };
            let seen_at = seen_until.unwrap_or(interval.start);
            let watched = hosts
                .entry((interval.host, interval.lease))
                .or_insert_with(|| Watched::new(interval.project.clone(), seen_at));
            // This host may have been recorded after the last look at another one.
            watched.seen_at = watched.seen_at.max(interval.start);
            match interval.fact {
                Fact::Fence(_) => watched.fence = Some(interval),
                Fact::Unseen => watched.unseen = Some(interval),
                Fact::Instance(id, _) => {
                    watched.instances.insert(id, interval);
                }
            }
        }
        Self { hosts, changes: Changes::default(), recorded: seen_until }
    }

    /// Whether any lease had the host at the last look.
    pub fn has(&self, host: HostId) -> bool {
        self.leases_on(host).next().is_some()
    }

    /// Whether this lease had the host at the last look.
    pub fn follows(&self, host: HostId, lease: LeaseId) -> bool {
        self.hosts.contains_key(&(host, lease))
    }

    fn leases_on(&self, host: HostId) -> impl Iterator<Item = LeaseId> {
        let keys = (host, LeaseId(0))..=(host, LeaseId(u128::MAX));
        self.hosts.range(keys).map(|((_, lease), _)| *lease)
    }

    /// Number of intervals to record.
    pub fn pending(&self) -> usize {
        self.changes.len()
    }

    /// Compares a look at a host with the previous one. `look` is its duration from beginning to end. `seen`
    /// is `None` if no lease has the host. A time between two looks longer than `longest_pause` is recorded
    /// as unseen.
    pub fn note(&mut self, host: HostId, look: Window, seen: Option<Seen>, longest_pause: SignedDuration) {
        let holder = seen.as_ref().map(|seen| seen.lease);
        let former: Vec<LeaseId> = self.leases_on(host).filter(|lease| Some(*lease) != holder).collect();
        for lease in former {
            self.release(host, lease, look, longest_pause);
        }
        let Some(seen) = seen else { return };
        let begins = !self.follows(host, seen.lease);
        let changes = &mut self.changes;
        let watched = self
            .hosts
            .entry((host, seen.lease))
            .or_insert_with(|| Watched::new(seen.project.clone(), look.end()));
        // Looks overlap, and the clock may have been set back.
        let start = look.start().max(watched.seen_at);
        let interval = |fact, start| Interval {
            lease: seen.lease,
            project: seen.project.clone(),
            host,
            fact,
            begins: false,
            start,
            end: None,
        };
        let fence = Fact::Fence(seen.fence);
        if watched.fence.as_ref().is_none_or(|before| before.fact != fence) {
            if let Some(before) = watched.fence.take() {
                changes.close(before, watched.seen_at);
            }
            watched.fence = Some(changes.open(Interval { begins, ..interval(fence, start) }));
        }
        if let Some(instances) = seen.instances {
            let seen_before = watched.instances_seen_at();
            let pause = interval(Fact::Unseen, watched.seen_at);
            end_pause(changes, watched, pause, start, longest_pause);
            let gone: Vec<GuestId> =
                watched.instances.keys().filter(|id| !instances.contains_key(id)).copied().collect();
            for instance in gone.iter().filter_map(|id| watched.instances.remove(id)) {
                changes.close(instance, seen_before);
            }
            for (id, project) in instances {
                let is_new_project =
                    |before: &Interval| project.is_some() && matches!(before.fact, Fact::Instance(_, None));
                match watched.instances.entry(id) {
                    Entry::Vacant(place) => {
                        place.insert(changes.open(interval(Fact::Instance(id, project), start)));
                    }
                    // While its project is unknown, an instance counts as another project's.
                    Entry::Occupied(mut place) if is_new_project(place.get()) => {
                        changes.close(place.get().clone(), seen_before);
                        place.insert(changes.open(interval(Fact::Instance(id, project), start)));
                    }
                    Entry::Occupied(_) => {}
                }
            }
        } else if watched.unseen.is_none() {
            watched.unseen = Some(changes.open(interval(Fact::Unseen, watched.seen_at)));
        }
        watched.seen_at = look.end().max(start);
    }

    /// Records that the lease no longer has the host.
    fn release(&mut self, host: HostId, lease: LeaseId, look: Window, longest_pause: SignedDuration) {
        let Some(mut watched) = self.hosts.remove(&(host, lease)) else { return };
        let start = look.start().max(watched.seen_at);
        let (seen_at, seen_before) = (watched.seen_at, watched.instances_seen_at());
        let interval = |fact, start, end| Interval {
            lease,
            project: watched.project.clone(),
            host,
            fact,
            begins: false,
            start,
            end,
        };
        let released = interval(Fact::Fence(Fence::Released), start, Some(look.end().max(start)));
        let pause = interval(Fact::Unseen, seen_at, None);
        end_pause(&mut self.changes, &mut watched, pause, start, longest_pause);
        self.forget(watched, seen_before);
        self.changes.opened.push(released);
    }

    /// Closes all open intervals of a host.
    fn forget(&mut self, watched: Watched, instances_seen_at: Timestamp) {
        let seen_at = watched.seen_at;
        for interval in watched.fence.into_iter().chain(watched.unseen) {
            self.changes.close(interval, seen_at);
        }
        for interval in watched.instances.into_values() {
            self.changes.close(interval, instances_seen_at);
        }
    }

    /// Marks hosts as unseen if the last look at them ended more than `longest_pause` before `time`, and stops following hosts
    /// that aren't `known` any more. `time` is the beginning of the first look that is under way, or else now.
    ///
    /// Returns whether hosts are left because there are `most` intervals to record.
    pub fn check_pauses(
        &mut self,
        time: Timestamp,
        longest_pause: SignedDuration,
        most: usize,
        known: impl Fn(HostId) -> bool,
    ) -> bool {
        let gone: Vec<_> = self.hosts.keys().filter(|(host, _)| !known(*host)).copied().collect();
        for key in gone {
            if self.pending() >= most {
                return true;
            }
            let Some(watched) = self.hosts.remove(&key) else { continue };
            let instances_seen_at = watched.instances_seen_at();
            self.forget(watched, instances_seen_at);
        }
        for ((host, lease), watched) in &mut self.hosts {
            if watched.unseen.is_none() && time.duration_since(watched.seen_at) > longest_pause {
                if self.changes.len() >= most {
                    return true;
                }
                let unseen = Interval {
                    lease: *lease,
                    project: watched.project.clone(),
                    host: *host,
                    fact: Fact::Unseen,
                    begins: false,
                    start: watched.seen_at,
                    end: None,
                };
                watched.unseen = Some(self.changes.open(unseen));
            }
        }
        false
    }

    /// Takes the changes to record now. If recording them fails, the watch must be rebuilt from the records.
    pub fn take_changes(&mut self) -> Option<Changes> {
        let looks = self.hosts.values().filter(|watched| watched.unseen.is_none());
        let seen_until = looks.map(|watched| watched.seen_at).min();
        let is_due = seen_until.is_some_and(|seen| {
            self.recorded.is_none_or(|recorded| seen.duration_since(recorded) >= RECORD_EVERY)
        });
        if self.changes.is_empty() && !is_due {
            return None;
        }
        self.recorded = seen_until.or(self.recorded);
        Some(Changes { seen_until, ..std::mem::take(&mut self.changes) })
    }

    /// Like [`Self::take_changes`], for a service that stops: always includes the time of the last look.
    pub fn take_last_changes(&mut self) -> Option<Changes> {
        self.recorded = None;
        self.take_changes()
    }
}

/// Ends the time without knowledge of instances at `start`. If it wasn't recorded as unseen but took longer
/// than `longest_pause`, records `pause` with its end.
fn end_pause(
    changes: &mut Changes,
    watched: &mut Watched,
    pause: Interval,
    start: Timestamp,
    longest_pause: SignedDuration,
) {
    if let Some(unseen) = watched.unseen.take() {
        changes.close(unseen, start);
    } else if start.duration_since(pause.start) > longest_pause {
        changes.opened.push(Interval { end: Some(start), ..pause });
    }
}
