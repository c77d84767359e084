//! Resources that leases had over time, computed from lease records alone. Sums of usage must equal them
//! (USE).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::LeaseId;
use leases::instance::InstanceStatus;
use leases::lease::{Allocation, Lease};
use leases::status::LeaseStatus;
use leases::usage::{By, Event, Kind, Query, Span, sums};
use leases::window::Window;
use store::Snapshot;

/// Numbers of hosts, slots and floating IPs.
type Amounts = [u128; 3];

/// Amounts that leases had over time.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Amounts that active leases have now, with their beginning and their latest end.
    has: BTreeMap<LeaseId, (Amounts, Timestamp, Timestamp)>,
    /// Amounts so far, times microseconds.
    had: BTreeMap<LeaseId, Amounts>,
}

impl Schedule {
    /// Follows the current leases. A lease's changes are dated by its last update.
    pub fn follow(&mut self, contents: &Snapshot) {
        for record in &contents.leases {
            let lease = &record.lease;
            let at = record.updated_at.unwrap_or(record.created_at);
            let now_has = (lease.status == LeaseStatus::Active).then(|| (amounts(lease), lease.window.end()));
            let had = self.has.get(&lease.id).map(|(amounts, _, end)| (*amounts, *end));
            if now_has != had {
                self.ends(lease.id, at);
                if let Some((amounts, end)) = now_has {
                    self.has.insert(lease.id, (amounts, at, end));
                }
            }
        }
    }

    fn ends(&mut self, lease: LeaseId, at: Timestamp) {
        if let Some((amounts, since, end)) = self.has.remove(&lease) {
            let time_us = end.min(at).max(since).duration_since(since).as_micros() as u128;
            let had = self.had.entry(lease).or_default();
            for (had, amount) in had.iter_mut().zip(amounts) {
                *had += amount * time_us;
            }
        }
    }

    /// Recorded usage equals what leases had.
    pub fn check(&self, usage: &[Span], now: Timestamp) -> Result<(), String> {
        let all = Window::new(Timestamp::MIN, now).map_err(|error| error.to_string())?;
        let query = Query { periods: vec![all], by: By { lease: true, ..By::default() }, ..Query::default() };
        let mut counted: BTreeMap<LeaseId, Amounts> = BTreeMap::new();
        for sum in sums(usage, &query) {
            let place = match sum.kind {
                Kind::Host => 0,
                Kind::Room => 1,
                Kind::Address => 2,
                Kind::Lease | Kind::Instance => continue,
            };
            if let Some(lease) = sum.group.lease {
                counted.entry(lease).or_default()[place] += sum.time_us * u128::from(sum.size.count);
            }
        }
        let leases: BTreeSet<&LeaseId> = self.had.keys().chain(counted.keys()).collect();
        for lease in leases {
            let of = |map: &BTreeMap<LeaseId, Amounts>| map.get(lease).copied().unwrap_or_default();
            let (had, counted) = (of(&self.had), of(&counted));
            if had != counted {
                return Err(format!("lease {lease} had {had:?}, but {counted:?} is counted (microseconds)"));
            }
        }
        Ok(())
    }
}

fn amounts(lease: &Lease) -> Amounts {
    let mut amounts = Amounts::default();
    for reservation in &lease.reservations {
        let place = match reservation.allocation {
            Allocation::Hosts(_) => 0,
            Allocation::Slots(_) => 1,
            Allocation::FloatingIps(_) => 2,
        };
        amounts[place] += u128::from(reservation.allocation.amount());
    }
    amounts
}

/// At the end, only running instances outside leases have open spans. Each lease that was ever ACTIVE has
/// events for its creation, its start and its end.
pub(crate) fn check_usage(contents: &Snapshot, usage: &[Span], events: &[Event]) -> Result<(), String> {
    let runs = |span: &Span| {
        contents.instances.iter().any(|record| {
            record.instance.status == InstanceStatus::Active
                && record.instance.kind.lease().is_none()
                && span.key() == format!("instance/{}", record.instance.id)
        })
    };
    if let Some(span) = usage.iter().find(|span| span.open && !runs(span)) {
        return Err(format!("the time is over, but this is still counted: {span:?}"));
    }
    let mut told: BTreeMap<LeaseId, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        if let Some(lease) = event.lease {
            told.entry(lease).or_default().insert(event.what.name());
        }
    }
    for span in usage.iter().filter(|span| span.held.kind() == Kind::Lease) {
        let said = span.lease.and_then(|lease| told.get(&lease)).cloned().unwrap_or_default();
        let ended = ["lease.ending", "lease.deleting"].iter().any(|end| said.contains(end));
        if !ended || !said.contains("lease.created") || !said.contains("lease.started") {
            return Err(format!("of lease {:?} there is only said {said:?}", span.lease));
        }
    }
    Ok(())
}
