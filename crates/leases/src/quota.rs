//! Quotas of a project: instances outside leases (PRE-10), and all its leases together ([`LeaseQuota`]).
//!
//! Preemptible instances are counted separately and have their own limits, because they use capacity that
//! would otherwise be idle. Instances in a lease are limited by the lease.

mod lease;

use std::fmt;

use jiff::SignedDuration;
use thiserror::Error;

pub use self::lease::{LeaseCounted, LeaseQuota, LeaseUse, OverLeaseQuota};
use crate::instance::{Instance, InstanceKind, InstanceStatus};
use crate::plan::GuestSize;
use crate::project::ProjectId;

/// Maximum use by a project at any time. `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub instances: Option<u64>,
    pub vcpus: Option<u64>,
    /// In MiB.
    pub memory_mib: Option<u64>,
}

/// Quotas of regular and of preemptible instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Quota of regular instances.
    pub regular: Quota,
    /// Quota of instances that are preempted for leases.
    pub preemptible: Quota,
    /// Limit on a project's use of preemptible instances over time, so that no project occupies all gaps for
    /// long.
    pub preemptible_usage: Option<UsageLimit>,
}

/// Maximum use by a project within any period of length `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageLimit {
    /// Virtual CPUs times hours of running.
    pub core_hours: u64,
    /// Length of the period.
    pub window: SignedDuration,
}

/// The project has used up its usage limit for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "Quota exceeded for preemptible instances: {used} core-hours were used in the last {window:#}, of {limit} that may be"
)]
pub struct OverUsage {
    /// Core-hours used, rounded down.
    pub used: u64,
    /// Maximum number of core-hours.
    pub limit: u64,
    /// Length of the period.
    pub window: SignedDuration,
}

impl UsageLimit {
    const US_PER_HOUR: u128 = 3_600_000_000;

    /// Whether a project can start more instances after using `cores_us` vCPU-microseconds in the last
    /// `window`.
    pub fn check(&self, cores_us: u128) -> Result<(), OverUsage> {
        let used = u64::try_from(cores_us / Self::US_PER_HOUR).unwrap_or(u64::MAX);
        let Self { core_hours: limit, window } = *self;
        if used < limit { Ok(()) } else { Err(OverUsage { used, limit, window }) }
    }
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Instances,
    Vcpus,
    /// In MiB.
    Memory,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instances => "instances",
            Self::Vcpus => "vCPUs",
            Self::Memory => "MiB of memory",
        })
    }
}

/// The project would exceed its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "Quota exceeded for {kind} instances: {used} of {limit} {what} are in use, and {asked} more are asked for"
)]
pub struct OverQuota {
    /// Name of the kind of instances.
    pub kind: &'static str,
    /// The resource that would be exceeded.
    pub what: Counted,
    /// Current use by the project.
    pub used: u64,
    /// Additional use requested.
    pub asked: u64,
    pub limit: u64,
}

impl Quotas {
    /// Checks whether the project can have one more instance of this kind and size in addition to
    /// `instances`. Instances in leases, instances that failed to start, and instances kept stopped don't
    /// count.
    pub fn check<'i>(
        &self,
        project: &ProjectId,
        (kind, size): (InstanceKind, GuestSize),
        instances: impl Iterator<Item = &'i Instance>,
    ) -> Result<(), OverQuota> {
        let quota = match kind {
            InstanceKind::Reserved { .. } => return Ok(()),
            InstanceKind::Regular => &self.regular,
            InstanceKind::Preemptible => &self.preemptible,
        };
        if *quota == Quota::default() {
            return Ok(());
        }
        let counts = |instance: &&Instance| {
            instance.kind == kind
                && instance.owner.project == *project
                && !matches!(instance.status, InstanceStatus::Error | InstanceStatus::Shelved)
        };
        let (mut count, mut vcpus, mut memory_mib) = (0, 0, 0);
        for instance in instances.filter(counts) {
            count += 1;
            vcpus += u64::from(instance.size.vcpus);
            memory_mib += u64::from(instance.size.memory_mib);
        }
        let limits = [
            (Counted::Instances, count, 1, quota.instances),
            (Counted::Vcpus, vcpus, size.vcpus.into(), quota.vcpus),
            (Counted::Memory, memory_mib, size.memory_mib.into(), quota.memory_mib),
        ];
        for (what, used, asked, limit) in limits {
            if let Some(limit) = limit.filter(|limit| used + asked > *limit) {
                return Err(OverQuota { kind: kind.name(), what, used, asked, limit });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{GuestId, HostId, LeaseId, ReservationId};
    use crate::project::{Owner, UserId};

    #[test]
    fn pre_10_a_project_may_use_so_much_in_a_window() {
        let limit = UsageLimit { core_hours: 2, window: SignedDuration::from_hours(24) };
        assert_eq!(limit.check(2 * 3_600_000_000 - 1), Ok(()));
        let over = limit.check(2 * 3_600_000_000).expect_err("all of it");
        let text = "Quota exceeded for preemptible instances: 2 core-hours were used in the last 24h, of 2 that may be";
        assert_eq!(over.to_string(), text);
    }

    const SIZE: GuestSize = GuestSize { vcpus: 4, memory_mib: 1024, disk_gib: 10 };

    fn instance(kind: InstanceKind, project: &str, status: InstanceStatus) -> Instance {
        let owner = Owner { project: ProjectId(project.into()), user: UserId("u".into()) };
        let new = Instance::new(GuestId(1), "web".to_owned(), owner, kind, SIZE, HostId(1));
        Instance { status, ..new }
    }

    #[test]
    fn pre_10_preemptible_instances_are_counted_apart_and_have_limits_of_their_own() {
        let (regular, preemptible) = (InstanceKind::Regular, InstanceKind::Preemptible);
        let reserved = InstanceKind::Reserved { lease: LeaseId(1), reservation: ReservationId(1) };
        let there = [
            instance(regular, "p", InstanceStatus::Active),
            instance(preemptible, "p", InstanceStatus::Building),
            instance(preemptible, "p", InstanceStatus::Active),
            // These don't count.
            instance(preemptible, "q", InstanceStatus::Active),
            instance(preemptible, "p", InstanceStatus::Error),
            instance(reserved, "p", InstanceStatus::Active),
        ];
        let project = ProjectId("p".into());
        let quotas = |regular, preemptible| Quotas { regular, preemptible, ..Quotas::default() };
        let of = |instances, vcpus, memory_mib| Quota { instances, vcpus, memory_mib };
        let said = |quotas: Quotas, kind| {
            let verdict = quotas.check(&project, (kind, SIZE), there.iter());
            verdict.err().map(|over| (over.what, over.used, over.limit))
        };
        let any = Quota::default();
        assert_eq!(said(quotas(any, any), preemptible), None);
        assert_eq!(said(quotas(of(Some(1), None, None), any), preemptible), None);
        let two = of(Some(2), None, None);
        assert_eq!(said(quotas(any, two), preemptible), Some((Counted::Instances, 2, 2)));
        assert_eq!(said(quotas(two, two), regular), None);
        assert_eq!(said(quotas(any, of(Some(3), Some(12), None)), preemptible), None, "as much as it may");
        let eleven = of(None, Some(11), None);
        assert_eq!(said(quotas(any, eleven), preemptible), Some((Counted::Vcpus, 8, 11)));
        let little = of(None, None, Some(2047));
        assert_eq!(said(quotas(little, any), regular), Some((Counted::Memory, 1024, 2047)));
        assert_eq!(said(quotas(little, little), reserved), None, "its lease is its limit");
    }
}
