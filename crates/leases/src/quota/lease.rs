//! Quota of all leases of a project together. Not in Blazar.

use std::fmt;

use thiserror::Error;

use crate::lease::{Allocation, Lease};
use crate::window::Window;

/// Maximum of all leases of a project that aren't over. `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseQuota {
    /// Number of leases.
    pub leases: Option<u64>,
    /// Whole hosts at any one time.
    pub hosts: Option<u64>,
    /// Whole hosts times the hours from start to end of their lease.
    pub host_hours: Option<u64>,
    /// Instances with reserved capacity at any one time.
    pub instances: Option<u64>,
}

/// A limited quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseCounted {
    Leases,
    Hosts,
    /// Whole hosts times hours.
    HostHours,
    /// Instances with reserved capacity.
    Instances,
}

impl fmt::Display for LeaseCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leases => "leases",
            Self::Hosts => "hosts at one time",
            Self::HostHours => "host-hours",
            Self::Instances => "instances at one time",
        })
    }
}

/// The project's leases would exceed their quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("Quota exceeded for leases: {used} of {limit} {what} are in use, and {asked} are asked for")]
pub struct OverLeaseQuota {
    /// The quantity that would be exceeded.
    pub what: LeaseCounted,
    /// Use by the project's other leases. Hours are rounded down.
    pub used: u64,
    /// Use by this lease. Hours are rounded up.
    pub asked: u64,
    /// Limit for all leases together.
    pub limit: u64,
}

const SECONDS_PER_HOUR: u64 = 3600;

impl LeaseQuota {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Checks whether the lease can be created or changed, given the project's `others` that aren't over.
    /// `before` is the current version of the lease, if it exists. A change that doesn't increase use is
    /// always allowed, so a lease can be reduced after the quota was.
    pub fn check<'l>(
        &self,
        before: Option<&Lease>,
        lease: &Lease,
        others: impl Iterator<Item = &'l Lease>,
    ) -> Result<(), OverLeaseQuota> {
        let others: Vec<&Lease> = others.collect();
        if let Some(limit) = self.leases.filter(|_| before.is_none()) {
            within(LeaseCounted::Leases, others.len() as u64, 1, limit)?;
        }
        let more = |of: fn(&Lease) -> u64| {
            before.is_none_or(|before| of(lease) > of(before) || !before.window.covers(&lease.window))
        };
        for (what, limit, of) in [
            (LeaseCounted::Hosts, self.hosts, hosts as fn(&Lease) -> u64),
            (LeaseCounted::Instances, self.instances, instances),
        ] {
            if let Some(limit) = limit.filter(|_| of(lease) > 0 && more(of)) {
                within(what, most_at_once(&others, &lease.window, of), of(lease), limit)?;
            }
        }
        let asked = host_seconds(lease);
        let grows = before.is_none_or(|before| asked > host_seconds(before));
        if let Some(limit) = self.host_hours.filter(|_| asked > 0 && grows) {
            let used = others.iter().fold(0_u64, |sum, other| sum.saturating_add(host_seconds(other)));
            if used.saturating_add(asked) > limit.saturating_mul(SECONDS_PER_HOUR) {
                let (used, asked) = (used / SECONDS_PER_HOUR, asked.div_ceil(SECONDS_PER_HOUR));
                return Err(OverLeaseQuota { what: LeaseCounted::HostHours, used, asked, limit });
            }
        }
        Ok(())
    }
}

fn within(what: LeaseCounted, used: u64, asked: u64, limit: u64) -> Result<(), OverLeaseQuota> {
    if used.saturating_add(asked) > limit { Err(OverLeaseQuota { what, used, asked, limit }) } else { Ok(()) }
}

fn hosts(lease: &Lease) -> u64 {
    sum_of(lease, |allocation| matches!(allocation, Allocation::Hosts(_)))
}

/// Number of instances with reserved capacity.
fn instances(lease: &Lease) -> u64 {
    sum_of(lease, |allocation| matches!(allocation, Allocation::Slots(_)))
}

fn sum_of(lease: &Lease, counts: fn(&Allocation) -> bool) -> u64 {
    let given = lease.reservations.iter().map(|reservation| &reservation.allocation);
    given.filter(|allocation| counts(allocation)).map(Allocation::amount).sum()
}

fn host_seconds(lease: &Lease) -> u64 {
    let seconds = u64::try_from(lease.window.length().as_secs()).unwrap_or(0);
    hosts(lease).saturating_mul(seconds)
}

/// Maximum at any one time within the window of the sum of `of` over all leases.
fn most_at_once(leases: &[&Lease], window: &Window, of: fn(&Lease) -> u64) -> u64 {
    let within = leases.iter().filter(|lease| lease.window.overlaps(window));
    // At equal times, ends sort before starts: windows are half-open.
    let mut changes: Vec<(jiff::Timestamp, i8, u64)> = within
        .flat_map(|lease| [(lease.window.start(), 1, of(lease)), (lease.window.end(), -1, of(lease))])
        .collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0_u64, 0);
    for (_, sign, amount) in changes {
        now = if sign < 0 { now.saturating_sub(amount) } else { now.saturating_add(amount) };
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lease, window};

    fn check(
        quota: LeaseQuota,
        before: Option<&Lease>,
        asked: &Lease,
        others: &[Lease],
    ) -> Option<(LeaseCounted, u64, u64, u64)> {
        let over = quota.check(before, asked, others.iter()).err()?;
        Some((over.what, over.used, over.asked, over.limit))
    }

    #[test]
    fn the_leases_of_a_project_may_be_so_many() {
        let quota = LeaseQuota { leases: Some(2), ..LeaseQuota::default() };
        let (first, second, third) =
            (lease(1, window(0, 60), &[1]), lease(2, window(0, 60), &[2]), lease(3, window(0, 60), &[3]));
        assert_eq!(check(quota, None, &second, std::slice::from_ref(&first)), None);
        let others = [first.clone(), second.clone()];
        assert_eq!(check(quota, None, &third, &others), Some((LeaseCounted::Leases, 2, 1, 2)));
        assert_eq!(check(quota, Some(&second), &second, &[first]), None, "a change makes none more");
        assert_eq!(check(LeaseQuota::default(), None, &third, &others), None);
    }

    #[test]
    fn they_may_have_so_many_hosts_at_one_time() {
        let quota = LeaseQuota { hosts: Some(3), ..LeaseQuota::default() };
        let others = [lease(1, window(0, 60), &[1, 2]), lease(2, window(60, 120), &[1, 2])];
        assert_eq!(check(quota, None, &lease(3, window(30, 90), &[3]), &others), None);
        let asked = lease(3, window(30, 90), &[3, 4]);
        assert_eq!(check(quota, None, &asked, &others), Some((LeaseCounted::Hosts, 2, 2, 3)));
        assert_eq!(
            check(quota, None, &lease(3, window(120, 180), &[1, 2, 3]), &others),
            None,
            "at another time"
        );
        let larger = lease(3, window(30, 90), &[3, 4, 5]);
        assert_eq!(check(quota, Some(&larger), &asked, &others), None, "a lease may always become smaller");
        let later = lease(3, window(40, 100), &[3, 4]);
        assert!(check(quota, Some(&asked), &later, &others).is_some());
    }

    #[test]
    fn they_may_have_so_many_host_hours() {
        let quota = LeaseQuota { host_hours: Some(10), ..LeaseQuota::default() };
        let others = [lease(1, window(0, 120), &[1, 2]), lease(2, window(600, 690), &[1])];
        assert_eq!(check(quota, None, &lease(3, window(0, 270), &[3]), &others), None);
        let asked = lease(3, window(0, 271), &[3]);
        assert_eq!(check(quota, None, &asked, &others), Some((LeaseCounted::HostHours, 5, 5, 10)));
        assert_eq!(check(quota, Some(&asked), &lease(3, window(9, 280), &[3]), &others), None, "no more");
        let over = quota.check(None, &asked, others.iter()).expect_err("too much").to_string();
        assert_eq!(over, "Quota exceeded for leases: 5 of 10 host-hours are in use, and 5 are asked for");
    }

    #[test]
    fn they_may_have_room_for_so_many_instances_at_one_time() {
        let with_slots = |number, window, slots: u32| {
            let mut lease = lease(number, window, &[]);
            lease.reservations[0].allocation = Allocation::Slots([(crate::ids::HostId(1), slots)].into());
            lease
        };
        let quota = LeaseQuota { instances: Some(8), hosts: Some(0), ..LeaseQuota::default() };
        let others = [with_slots(1, window(0, 60), 5)];
        assert_eq!(check(quota, None, &with_slots(2, window(0, 60), 3), &others), None);
        let asked = with_slots(2, window(0, 60), 4);
        assert_eq!(check(quota, None, &asked, &others), Some((LeaseCounted::Instances, 5, 4, 8)));
    }
}
