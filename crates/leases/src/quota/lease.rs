//! Quota of all leases of a project together. Not in Blazar.

use std::fmt;

use jiff::SignedDuration;
use thiserror::Error;

use crate::lease::{Allocation, Lease};
use crate::terms::{ReservationTerms, Terms};
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

    /// Checks whether a lease with this use can be created or changed, given the project's `others` that aren't
    /// over. `before` is the current version of the lease, if it exists. A change that doesn't increase use is
    /// always allowed, so a lease can be reduced after the quota was.
    pub fn check<'l>(
        &self,
        before: Option<&Lease>,
        asked: &LeaseUse,
        others: impl Iterator<Item = &'l Lease>,
    ) -> Result<(), OverLeaseQuota> {
        let others: Vec<&Lease> = others.collect();
        let before = before.map(LeaseUse::from);
        if let Some(limit) = self.leases.filter(|_| before.is_none()) {
            within(LeaseCounted::Leases, others.len() as u64, 1, limit)?;
        }
        let more = |of: fn(&LeaseUse) -> u64| {
            before.is_none_or(|before| of(asked) > of(&before) || !before.covers(asked))
        };
        for (what, limit, of) in [
            (LeaseCounted::Hosts, self.hosts, LeaseUse::hosts as fn(&LeaseUse) -> u64),
            (LeaseCounted::Instances, self.instances, LeaseUse::instances),
        ] {
            if let Some(limit) = limit.filter(|_| of(asked) > 0 && more(of)) {
                let used = asked.window.map_or(0, |window| most_at_once(&others, &window, of));
                within(what, used, of(asked), limit)?;
            }
        }
        let seconds = asked.host_seconds();
        let grows = before.is_none_or(|before| seconds > before.host_seconds());
        if let Some(limit) = self.host_hours.filter(|_| seconds > 0 && grows) {
            let sum = |sum: u64, other: &&Lease| sum.saturating_add(LeaseUse::from(*other).host_seconds());
            let used = others.iter().fold(0, sum);
            if used.saturating_add(seconds) > limit.saturating_mul(SECONDS_PER_HOUR) {
                let (used, asked) = (used / SECONDS_PER_HOUR, seconds.div_ceil(SECONDS_PER_HOUR));
                return Err(OverLeaseQuota { what: LeaseCounted::HostHours, used, asked, limit });
            }
        }
        Ok(())
    }
}

/// Use of a lease, as far as quotas limit it.
#[derive(Clone, Copy, Debug)]
pub struct LeaseUse {
    /// `None` if the lease starts as soon as it can. Other leases don't count for its hosts at one time then.
    window: Option<Window>,
    length: SignedDuration,
    hosts: u64,
    instances: u64,
}

impl LeaseUse {
    /// Minimum use of a lease with these terms, whatever it is granted.
    pub fn least_of(terms: &Terms) -> Self {
        let (window, reservations) = (terms.window(), terms.reservations.iter());
        let least = Self::of_reservations(window, reservations);
        if terms.has_dates() { least } else { Self { window: None, ..least } }
    }

    /// Minimum use of a lease with these reservations.
    pub(crate) fn of_reservations<'t>(
        window: Window,
        reservations: impl Iterator<Item = &'t ReservationTerms>,
    ) -> Self {
        let (mut hosts, mut instances) = (0_u64, 0_u64);
        for terms in reservations {
            match terms {
                ReservationTerms::Hosts(terms) => hosts += u64::from(terms.min()),
                ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => {
                    instances += u64::from(terms.number());
                }
                ReservationTerms::FloatingIps(_) => {}
            }
        }
        Self { window: Some(window), length: window.length(), hosts, instances }
    }

    fn hosts(&self) -> u64 {
        self.hosts
    }

    /// Number of instances with reserved capacity.
    fn instances(&self) -> u64 {
        self.instances
    }

    fn host_seconds(&self) -> u64 {
        self.hosts.saturating_mul(u64::try_from(self.length.as_secs()).unwrap_or(0))
    }

    /// Whether the other use lies within the window of this one.
    fn covers(&self, other: &Self) -> bool {
        self.window.zip(other.window).is_some_and(|(own, other)| own.covers(&other))
    }
}

impl From<&Lease> for LeaseUse {
    fn from(lease: &Lease) -> Self {
        Self {
            window: Some(lease.window),
            length: lease.window.length(),
            hosts: sum_of(lease, |allocation| matches!(allocation, Allocation::Hosts(_))),
            instances: sum_of(lease, |allocation| matches!(allocation, Allocation::Slots(_))),
        }
    }
}

fn within(what: LeaseCounted, used: u64, asked: u64, limit: u64) -> Result<(), OverLeaseQuota> {
    if used.saturating_add(asked) > limit { Err(OverLeaseQuota { what, used, asked, limit }) } else { Ok(()) }
}

fn sum_of(lease: &Lease, counts: fn(&Allocation) -> bool) -> u64 {
    let given = lease.reservations.iter().map(|reservation| &reservation.allocation);
    given.filter(|allocation| counts(allocation)).map(Allocation::amount).sum()
}

/// Maximum at any one time within the window of the sum of `of` over all leases.
fn most_at_once(leases: &[&Lease], window: &Window, of: fn(&LeaseUse) -> u64) -> u64 {
    let within = leases.iter().filter(|lease| lease.window.overlaps(window));
    // At equal times, ends sort before starts: windows are half-open.
    let mut changes: Vec<(jiff::Timestamp, i8, u64)> = within
        .flat_map(|lease| {
            let amount = of(&LeaseUse::from(*lease));
            [(lease.window.start(), 1, amount), (lease.window.end(), -1, amount)]
        })
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
    use crate::lease_type::LeaseType;
    use crate::terms::HostsTerms;
    use crate::testing::{at, lease, window};

    fn check(
        quota: LeaseQuota,
        before: Option<&Lease>,
        asked: &Lease,
        others: &[Lease],
    ) -> Option<(LeaseCounted, u64, u64, u64)> {
        let over = quota.check(before, &asked.into(), others.iter()).err()?;
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
        let over = quota.check(None, &(&asked).into(), others.iter()).expect_err("too much").to_string();
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

    #[test]
    fn a_request_counts_with_the_least_that_it_can_get() {
        let hosts = ReservationTerms::Hosts(HostsTerms::new(2, 9).expect("a range"));
        let terms = Terms::new(window(0, 60), None, vec![hosts.clone(), hosts]).expect("terms");
        let others = [lease(1, window(0, 60), &[1, 2])];
        let check = |limit, terms: &Terms| {
            let quota = LeaseQuota { hosts: Some(limit), ..LeaseQuota::default() };
            let over = quota.check(None, &LeaseUse::least_of(terms), others.iter()).err()?;
            Some((over.used, over.asked))
        };
        assert_eq!((check(5, &terms), check(6, &terms)), (Some((2, 4)), None));
        let soon = terms.of_type(LeaseType::BestEffort { deadline: at(100) });
        assert_eq!(
            (check(3, &soon), check(4, &soon)),
            (Some((0, 4)), None),
            "it can start after the other one"
        );
    }
}
