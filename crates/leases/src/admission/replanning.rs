//! Decisions that move other leases to other hosts ([`super::moves`]).

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Admission, Refusal, Resource, Search, Wanted, order};
use crate::calendar::Calendar;
use crate::ids::HostId;
use crate::lease::{Allocation, Lease, Reservation};
use crate::lease_type::LeaseType;
use crate::status::LeaseStatus;
use crate::terms::ReservationTerms;
use crate::window::Window;

/// Cost to copy the data of a host or a lease, and to change it.
const COPYING: u64 = 50;

/// Cost of a look at a possibly movable lease.
const LOOKING: u64 = 5;

/// A decision, and the leases that move for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replanned<T> {
    pub decided: T,
    /// Leases with their new hosts.
    pub moved: Vec<Lease>,
}

impl Admission<'_> {
    /// Repeats a decision after some of the `others` have moved to different hosts. `None` if that doesn't
    /// help.
    ///
    /// `lack` is the refusal of `wanted`. `lease` returns the lease that a decision makes or changes, which
    /// isn't in `others`. A lease can move if it starts at `settled` or later and has whole hosts at fixed
    /// dates.
    pub fn replan<'a, T>(
        &self,
        others: impl IntoIterator<Item = &'a Lease>,
        settled: Timestamp,
        (wanted, lack): (&Wanted, &Refusal),
        decide: impl Fn(&Admission<'_>) -> Result<T, Refusal>,
        lease: impl Fn(&T) -> &Lease,
    ) -> Option<Replanned<T>> {
        if self.budget.stopped().is_some() {
            return None;
        }
        let window = wanted.window();
        let near = window.widened(self.calendar.cleaning_time());
        let all: Vec<&Lease> = others.into_iter().collect();
        let mut others = all.clone();
        others.retain(|other| other.window.overlaps(&near));
        // Each lease is sorted by its dates, and its hosts are removed from a copy of the calendar.
        let hosts =
            others.iter().map(|other| other.reservations.iter().map(|r| r.allocation.amount()).sum::<u64>());
        let work = COPYING * (self.inventory.hosts().len() as u64 + hosts.sum::<u64>() + others.len() as u64)
            + LOOKING * all.len() as u64;
        if !self.budget.spend(work) || self.too_few_hosts(&others, settled, &window, lack) {
            return None;
        }
        self.remembering(|admission| {
            let moved = admission.replan_by_moves(&all, settled, (wanted, lack), &decide, &lease);
            let replanned = moved.or_else(|| {
                // Moves apply to whole hosts one by one. For instances and addresses, decide without the
                // movable leases first.
                wanted.is_mixed().then(|| admission.replan_without(others, settled, decide, lease)).flatten()
            });
            admission.settled_or_none(replanned)
        })
    }

    /// Whether at some instant all hosts together are too few, however they are distributed. This check is
    /// quick, and where hosts are scarce it explains most refusals.
    pub(super) fn too_few_hosts(
        &self,
        others: &[&Lease],
        settled: Timestamp,
        window: &Window,
        lack: &Refusal,
    ) -> bool {
        let Refusal::NotEnough { resource: Resource::Hosts(_), needed, .. } = lack.cause() else {
            return false;
        };
        let mut changes = Vec::new();
        for other in others {
            let common = other.window.since(window.start().max(self.now)).before(window.end());
            let count = least_hosts(other, may_move(other, settled));
            if !common.is_empty() {
                // At the same instant, ends come before starts.
                changes.extend([(common.start(), i128::from(count)), (common.end(), -i128::from(count))]);
            }
        }
        changes.sort_unstable();
        let sum = |sum: &mut i128, (_, change): (Timestamp, i128)| {
            *sum += change;
            Some(*sum)
        };
        let most = changes.into_iter().scan(0, sum).max().unwrap_or(0);
        most + i128::from(*needed) > self.inventory.hosts().count() as i128
    }

    /// Decides as if the movable leases had no hosts, and then finds hosts for the displaced ones.
    pub(super) fn replan_without<T>(
        &self,
        others: Vec<&Lease>,
        settled: Timestamp,
        decide: impl Fn(&Admission<'_>) -> Result<T, Refusal>,
        lease: impl Fn(&T) -> &Lease,
    ) -> Option<Replanned<T>> {
        let mut movable = others;
        movable.retain(|other| may_move(other, settled));
        if movable.is_empty() {
            return None;
        }
        let mut without = self.calendar.clone();
        without.remove_all(&movable.iter().map(|other| other.id).collect());
        // Prefer hosts that don't displace other leases.
        let mut avoided: BTreeSet<HostId> = movable.iter().flat_map(|other| hosts_of(other)).collect();
        avoided.extend(self.avoided);
        let decided = decide(&Admission { calendar: &without, avoided: &avoided, ..*self }).ok()?;
        let new = lease(&decided);
        let mut displaced = movable;
        displaced.retain(|other| self.collides(other, new));
        let mut calendar = self.calendar.clone();
        calendar.remove_all(&displaced.iter().map(|other| other.id).collect());
        calendar.put(new, self.now).ok()?;
        displaced
            .sort_by_key(|other| (std::cmp::Reverse(hosts_of(other).len()), other.window.start(), other.id));
        let mut moved = Vec::new();
        for other in displaced {
            let other = self.on_other_hosts(&calendar, other)?;
            calendar.put(&other, self.now).ok()?;
            moved.push(other);
        }
        Some(Replanned { decided, moved })
    }

    /// Whether the new lease displaces the other one.
    fn collides(&self, other: &Lease, new: &Lease) -> bool {
        let cleaned = new.window.since(self.now).widened(self.calendar.cleaning_time());
        other.window.overlaps(&cleaned) && !hosts_of(other).is_disjoint(&hosts_of(new))
    }

    /// The lease with hosts that are free in this calendar. It keeps its own hosts that are still free.
    fn on_other_hosts(&self, calendar: &Calendar, lease: &Lease) -> Option<Lease> {
        let admission = Admission { calendar, ..self.suited_to(lease.lease_type) }.on_behalf_of(lease);
        let mut search = Search::new(admission, lease.window, Some(lease.id));
        let mut moved = lease.clone();
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        for position in order::hardest_first(&search, &asked) {
            let reservation = &mut moved.reservations[position];
            if let (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) =
                (&reservation.terms, &reservation.allocation)
            {
                reservation.allocation = Allocation::Hosts(search.hosts(position, terms, held).ok()?);
            }
            search.take(&reservation.terms, &reservation.allocation);
        }
        Some(moved)
    }
}

/// Whether a lease can get other hosts: it is complete, and no steps have been taken for it yet.
pub(super) fn may_move(lease: &Lease, settled: Timestamp) -> bool {
    lease.status == LeaseStatus::Pending
        && lease.window.start() >= settled
        && !matches!(lease.lease_type, LeaseType::Immediate { .. })
        && lease.hunt.is_none()
        && !lease.degraded()
        && lease.keeps_resources()
        && lease.reservations.iter().all(|r| !matches!(r.allocation, Allocation::Slots(_)))
}

/// Lower bound on the number of whole hosts of a lease.
fn least_hosts(lease: &Lease, movable: bool) -> u64 {
    let count = |reservation: &Reservation| match (&reservation.terms, &reservation.allocation) {
        (ReservationTerms::Hosts(terms), Allocation::Hosts(_)) if movable => terms.min().into(),
        (_, Allocation::Hosts(held)) if lease.keeps_resources() => held.len() as u64,
        _ => 0,
    };
    lease.reservations.iter().map(count).sum()
}

fn hosts_of(lease: &Lease) -> BTreeSet<HostId> {
    lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()).collect()
}
