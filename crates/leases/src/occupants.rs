//! Occupants of leased hosts, for auditors: which instances were seen on the whole hosts of a lease, which fence kept others
//! away, and when nothing was seen.
//!
//! A [`Watch`] compares each look at a host with the look before it and records what changed as [`Interval`]s. An interval
//! begins with the first look that saw something and ends with the last one. The first look at a host of a lease may have
//! begun before the host was fenced, so these records begin with its end. While nothing changes, only the time of the last look
//! is recorded ([`Changes::seen_until`]), now and then. A service that starts again continues from the open intervals and knows
//! since when nobody has looked.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::{SignedDuration, Timestamp};

use crate::ids::{GuestId, HostId, LeaseId};
use crate::project::ProjectId;
use crate::window::Window;

/// How often the time of the last look is recorded while nothing changes.
const RECORD_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// A fence of a host, as a lease sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Nobody can start instances there. Other tenants' instances leave for the lease.
    Fenced,
    /// Nobody can start instances there, and nothing was found there but the lease's own instances.
    Verified,
    /// Only the lease's project can start instances there.
    Held,
    /// None, although the lease has the host: others can start instances there.
    Unfenced,
    /// The host is being taken back. The lease's project may still be able to start instances there.
    Releasing,
    /// The lease has given the host back.
    Released,
}

/// What looks at a host of a lease have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The fence.
    Fence(Fence),
    /// An instance, with its project if that is known.
    Instance(GuestId, Option<ProjectId>),
    /// No look saw which instances were there.
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
    /// The name in databases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fence(fence) => fence.name(),
            Self::Instance(..) => "instance",
            Self::Unseen => "unseen",
        }
    }

    /// The fact with that name; `None` if the name is unknown. Other facts than instances have no use for the rest.
    pub fn from_parts(name: &str, instance: GuestId, project: Option<ProjectId>) -> Option<Self> {
        match name {
            "instance" => Some(Self::Instance(instance, project)),
            "unseen" => Some(Self::Unseen),
            _ => Fence::ALL.into_iter().find(|fence| fence.name() == name).map(Self::Fence),
        }
    }

    /// The instance and its project, of a fact about an instance.
    pub fn instance(&self) -> Option<(GuestId, Option<&ProjectId>)> {
        match self {
            Self::Instance(id, project) => Some((*id, project.as_ref())),
            Self::Fence(_) | Self::Unseen => None,
        }
    }
}

/// How long looks at a host of a lease saw the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The lease that has the host.
    pub lease: LeaseId,
    /// The lease's project.
    pub project: ProjectId,
    /// The host.
    pub host: HostId,
    /// What was seen.
    pub fact: Fact,
    /// Whether records of the host in this lease begin here.
    pub begins: bool,
    /// The beginning of the first look that saw it, or its end if records of the host begin with it; of [`Fact::Unseen`], the
    /// end of the last look before.
    pub start: Timestamp,
    /// The end of the last look that saw it; of [`Fact::Unseen`], the beginning of the next look. `None` while it lasts.
    pub end: Option<Timestamp>,
}

/// Changes to record. First intervals are closed, then others are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Open intervals that end. There is at most one open interval of a host, lease and fact.
    pub closed: Vec<Interval>,
    /// New intervals. Some have an end already.
    pub opened: Vec<Interval>,
    /// All that was seen until then is recorded.
    pub seen_until: Option<Timestamp>,
}

impl Changes {
    /// Number of intervals.
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

    /// Ends an interval. One that isn't recorded yet is recorded with its end.
    fn close(&mut self, interval: Interval, end: Timestamp) {
        let end = Some(end.max(interval.start));
        match self.opened.iter_mut().rev().find(|new| **new == interval) {
            Some(new) => new.end = end,
            None => self.closed.push(Interval { end, ..interval }),
        }
    }
}

/// A host in the hands of a lease, as a look saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The lease.
    pub lease: LeaseId,
    /// The lease's project.
    pub project: ProjectId,
    /// The fence.
    pub fence: Fence,
    /// Instances on the host, with their projects if these are known. `None` if the fleet doesn't report them.
    pub instances: Option<BTreeMap<GuestId, Option<ProjectId>>>,
}

/// A host of a lease, with its open intervals.
#[derive(Clone, Debug)]
struct Watched {
    project: ProjectId,
    fence: Option<Interval>,
    unseen: Option<Interval>,
    instances: BTreeMap<GuestId, Interval>,
    /// The end of the last look at the host.
    seen_at: Timestamp,
}

impl Watched {
    fn new(project: ProjectId, seen_at: Timestamp) -> Self {
        Self { project, fence: None, unseen: None, instances: BTreeMap::new(), seen_at }
    }

    /// The end of the last look that saw which instances were there.
    fn instances_seen_at(&self) -> Timestamp {
        self.unseen.as_ref().map_or(self.seen_at, |unseen| unseen.start)
    }
}

/// Follows hosts of leases from look to look.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    hosts: BTreeMap<(HostId, LeaseId), Watched>,
    changes: Changes,
    /// The last [`Changes::seen_until`].
    recorded: Option<Timestamp>,
}

impl Watch {
    /// Continues from the open intervals and the last [`Changes::seen_until`]. Later times than `now` were recorded before the
    /// clock was set back, and count as `now`.
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
            // Something may have been recorded of this host after the last look at another one.
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

    /// Whether the host was in the hands of a lease at the last look.
    pub fn has(&self, host: HostId) -> bool {
        self.leases_on(host).next().is_some()
    }

    /// Whether the host was in the hands of that lease at the last look.
    pub fn follows(&self, host: HostId, lease: LeaseId) -> bool {
        self.hosts.contains_key(&(host, lease))
    }

    fn leases_on(&self, host: HostId) -> impl Iterator<Item = LeaseId> {
        let keys = (host, LeaseId(0))..=(host, LeaseId(u128::MAX));
        self.hosts.range(keys).map(|((_, lease), _)| *lease)
    }

    /// Number of intervals that are to be recorded.
    pub fn pending(&self) -> usize {
        self.changes.len()
    }

    /// Compares a look at a host, from its beginning to its end, with the look before it. `seen` is `None` if the host isn't in
    /// the hands of a lease. A longer time between two looks than `longest_pause` is recorded as unseen.
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
                    // Until its project is known, an instance counts as another project's.
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

    /// A look found that the lease doesn't have the host any more.
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

    /// Closes all intervals of a host.
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

    /// Takes what is to be recorded now. If that can't be recorded, the watch has to be made again from the records.
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

    /// The same when the service stops: the time of the last look is recorded however recently one was.
    pub fn take_last_changes(&mut self) -> Option<Changes> {
        self.recorded = None;
        self.take_changes()
    }
}

/// Which instances are on the host is seen again from `start` on. If that wasn't recorded as unseen but took too long, `pause`
/// is recorded with its end.
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
