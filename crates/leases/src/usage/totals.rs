//! Sums over spans.

use std::collections::BTreeMap;

use super::{Kind, Size, Span};
use crate::ids::LeaseId;
use crate::project::{ProjectId, UserId};
use crate::window::Window;

/// By what usage is summed, beside the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct By {
    /// By project.
    pub project: bool,
    /// By user.
    pub user: bool,
    /// By free pool.
    pub pool: bool,
    /// By flavor.
    pub flavor: bool,
    /// By lease.
    pub lease: bool,
    /// By type of lease.
    pub lease_type: bool,
}

/// What is to be summed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Query {
    /// In each of these periods, which may not overlap and come in their order.
    pub periods: Vec<Window>,
    /// By what.
    pub by: By,
    /// Of that project only.
    pub project: Option<ProjectId>,
    /// Of that user only.
    pub user: Option<UserId>,
    /// Of that pool only.
    pub pool: Option<String>,
    /// Of that lease only.
    pub lease: Option<LeaseId>,
}

impl Query {
    /// Whether it asks about such a span.
    pub fn wants(&self, span: &Span) -> bool {
        self.project.as_ref().is_none_or(|project| *project == span.owner.project)
            && self.user.as_ref().is_none_or(|user| *user == span.owner.user)
            && self.pool.as_ref().is_none_or(|pool| span.pool.as_ref() == Some(pool))
            && self.lease.is_none_or(|lease| span.lease == Some(lease))
    }
}

/// What sums are of. What they are not asked by is none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Group {
    /// Which of the periods, by its place.
    pub period: usize,
    /// The project.
    pub project: Option<ProjectId>,
    /// The user.
    pub user: Option<UserId>,
    /// The free pool; none of what is in none.
    pub pool: Option<String>,
    /// The flavor; none of what is of none.
    pub flavor: Option<String>,
    /// The lease; none of what is in none.
    pub lease: Option<LeaseId>,
    /// The type of the lease.
    pub lease_type: Option<String>,
}

/// How long things of one size were held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    /// By whom.
    pub group: Group,
    /// What.
    pub kind: Kind,
    /// Whether that is part of a lease: all but instances beside leases.
    pub leased: bool,
    /// How large each is.
    pub size: Size,
    /// For how long, all together, microseconds.
    pub time_us: u128,
    /// How many began.
    pub begun: u64,
}

/// Sums spans, as a store does.
pub fn sums<'a>(spans: impl IntoIterator<Item = &'a Span>, query: &Query) -> Vec<Sum> {
    let mut sums: BTreeMap<(Group, Kind, bool, Size), (u128, u64)> = BTreeMap::new();
    for span in spans.into_iter().filter(|span| query.wants(span)) {
        for (place, period) in query.periods.iter().enumerate() {
            let start = span.window.start();
            let both = span.window.since(period.start()).before(period.end());
            let begun = u64::from(span.begins && period.contains(start));
            if both.is_empty() && begun == 0 {
                continue;
            }
            let group = query.by.group(place, span);
            let sum = sums.entry((group, span.held.kind(), span.lease.is_some(), span.size)).or_default();
            sum.0 += u128::try_from(both.length().as_micros()).unwrap_or(0);
            sum.1 += begun;
        }
    }
    let sum =
        |((group, kind, leased, size), (time_us, begun))| Sum { group, kind, leased, size, time_us, begun };
    sums.into_iter().map(sum).collect()
}

impl By {
    fn group(self, period: usize, span: &Span) -> Group {
        Group {
            period,
            project: self.project.then(|| span.owner.project.clone()),
            user: self.user.then(|| span.owner.user.clone()),
            pool: span.pool.clone().filter(|_| self.pool),
            flavor: span.flavor.clone().filter(|_| self.flavor),
            lease: span.lease.filter(|_| self.lease),
            lease_type: span.lease_type.clone().filter(|_| self.lease_type),
        }
    }
}

/// CPUs, memory and disk, each times how long: microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Amounts {
    /// CPUs, times microseconds.
    pub cores_us: u128,
    /// Memory, MiB times microseconds.
    pub memory_mib_us: u128,
    /// Disk, GiB times microseconds.
    pub disk_gib_us: u128,
}

impl Amounts {
    fn add(&mut self, size: Size, time_us: u128) {
        self.cores_us += u128::from(size.cores) * time_us;
        self.memory_mib_us += u128::from(size.memory_mib) * time_us;
        self.disk_gib_us += u128::from(size.disk_gib) * time_us;
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cores_us: self.cores_us + other.cores_us,
            memory_mib_us: self.memory_mib_us + other.memory_mib_us,
            disk_gib_us: self.disk_gib_us + other.disk_gib_us,
        }
    }
}

/// What instances came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Instances {
    /// How many were started.
    pub started: u64,
    /// How many, times microseconds.
    pub count_us: u128,
    /// What they used of their hosts.
    pub amounts: Amounts,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Leases that started.
    pub leases_started: u64,
    /// Whole hosts, times microseconds.
    pub hosts_us: u128,
    /// What whole hosts have.
    pub of_hosts: Amounts,
    /// Slots of room for instances, times microseconds.
    pub slots_us: u128,
    /// What that room is of its hosts.
    pub of_room: Amounts,
    /// Addresses, times microseconds.
    pub addresses_us: u128,
    /// Instances in leases.
    pub in_leases: Instances,
    /// Instances beside all leases.
    pub beside_leases: Instances,
}

impl Totals {
    /// CPUs, memory and disk that were reserved: of whole hosts and of room on others.
    pub fn reserved(&self) -> Amounts {
        self.of_hosts.plus(self.of_room)
    }

    /// Adds what was held.
    pub fn add(&mut self, sum: &Sum) {
        let count_us = u128::from(sum.size.count) * sum.time_us;
        match sum.kind {
            Kind::Lease => self.leases_started += sum.begun,
            Kind::Host => {
                self.hosts_us += count_us;
                self.of_hosts.add(sum.size, sum.time_us);
            }
            Kind::Room => {
                self.slots_us += count_us;
                self.of_room.add(sum.size, sum.time_us);
            }
            Kind::Address => self.addresses_us += count_us,
            Kind::Instance => {
                let instances = if sum.leased { &mut self.in_leases } else { &mut self.beside_leases };
                instances.started += sum.begun;
                instances.count_us += count_us;
                instances.amounts.add(sum.size, sum.time_us);
            }
        }
    }
}

/// What it comes to, group by group, without those that come to nothing.
pub fn by_group(sums: &[Sum]) -> BTreeMap<Group, Totals> {
    let mut totals: BTreeMap<Group, Totals> = BTreeMap::new();
    for sum in sums {
        totals.entry(sum.group.clone()).or_default().add(sum);
    }
    totals.retain(|_, totals| *totals != Totals::default());
    totals
}
