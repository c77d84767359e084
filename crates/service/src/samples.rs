//! Samples for metering: every half hour, the size of each active reservation and of the instances that run
//! in it.
//!
//! Samples aren't stored, and samples of a past half hour are no longer sent. The store keeps the position
//! that they have reached: the half hour, and the first 32 bits of the identifier of the last lease. So each
//! sample is sent once, even if services restart or share a store, unless a service dies while it sends.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::v1::Lease;
use jiff::Timestamp;
use leases::ids::{GuestId, LeaseId};
use leases::instance::{InstanceKind, InstanceStatus};
use leases::lease::Reservation;
use leases::plan::{GuestOwner, Observed};
use leases::usage::{Size, holds};
use store::{LeaseRecord, NewNotification, Notification};

use crate::deciding::beside_requests;
use crate::guest_facts::reservation_of;
use crate::meters::{self, Event};
use crate::notifications::Notifications;
use crate::state::State;

/// Seconds between two samples of a reservation.
const INTERVAL: i64 = 30 * 60;
/// Number of samples after which a part ends.
const SAMPLES_AT_ONCE: usize = 100;
/// Number of leases after which a part ends, active or not.
const LEASES_AT_ONCE: usize = 1000;
/// Number of bits of a position that refer to leases: 0 before the first lease, then 1 more than the first 32
/// bits of its identifier.
const LEASE_BITS: u32 = 33;
/// Value of these bits when all leases are done.
const ALL_LEASES: u64 = (1 << LEASE_BITS) - 1;

/// A part of a half hour's samples.
#[derive(Debug)]
pub struct Samples {
    /// Samples in order of their leases. The number of a sample is a position, reached after the last sample
    /// of its lease.
    pub samples: Vec<Notification>,
    /// Position after the last sample.
    pub position: u64,
}

impl Notifications<'_> {
    /// The next samples after a position. `None` if this half hour's samples are done, the store doesn't
    /// answer, the fleet hasn't been observed yet, or changes are suspended, for example because of a wrong
    /// clock.
    pub async fn samples(self, position: u64) -> Option<Samples> {
        let half_hour = self.service.now().as_second().div_euclid(INTERVAL);
        let at = Timestamp::from_second(half_hour * INTERVAL).ok()?;
        let begin = u64::try_from(half_hour).ok()? << LEASE_BITS;
        // The position is ahead if the clock was set back.
        if position >= begin | ALL_LEASES {
            return None;
        }
        // The loop logs the error.
        self.service.refresh().await.ok()?;
        if self.service.suspensions() != (None, None) {
            return None;
        }
        let observed = {
            let progress = self.service.progress();
            // Before the first observation, the instances in reservations are unknown.
            progress.seen_at?;
            Arc::clone(&progress.observed)
        };
        let state = self.service.snapshot();
        Some(beside_requests(|| samples_after(&state, &observed, position.max(begin), at)))
    }
}

/// Samples of the half hour that begins at `at`, after a position in it.
fn samples_after(state: &State, observed: &Observed, mut reached: u64, at: Timestamp) -> Samples {
    let begin = reached & !ALL_LEASES;
    let mut part = Samples { samples: Vec::new(), position: reached | ALL_LEASES };
    let from = u128::from(reached - begin).checked_mul(1 << 96).map(LeaseId);
    let going = from.into_iter().flat_map(|from| state.leases.going_from(from));
    for (looked_at, record) in going.enumerate() {
        let number = begin + 1 + (record.lease.id.0 >> 96) as u64;
        let full = part.samples.len() >= SAMPLES_AT_ONCE || looked_at >= LEASES_AT_ONCE;
        if full && number != reached {
            part.position = reached;
            break;
        }
        reached = number;
        // The lease's status can lag behind its window.
        if holds(&record.lease) && record.lease.window.contains(at) {
            let samples = samples_of(state, observed, record).into_iter();
            part.samples.extend(samples.map(|content| Notification { number, at, content }));
        }
    }
    part
}

fn samples_of(state: &State, observed: &Observed, record: &LeaseRecord) -> Vec<NewNotification> {
    let lease = Lease::from(record);
    let mut samples = Vec::new();
    for (shown, reservation) in lease.reservations.iter().zip(&record.lease.reservations) {
        let reserved = Size::of_reservation(reservation, |host| state.inventory.host(host));
        samples.push(meters::notification(Event::Exists, &lease, shown, reserved));
        let in_use = used(state, observed, record, reservation);
        if in_use.count > 0 {
            samples.push(meters::notification(Event::InUse(in_use), &lease, shown, reserved));
        }
    }
    samples
}

/// Number and size of the instances that run in a reservation, started by the service or by other means. An
/// instance isn't counted if its host has slots of several reservations of its lease, because its reservation
/// is unknown then.
fn used(state: &State, observed: &Observed, record: &LeaseRecord, reservation: &Reservation) -> Size {
    let lease = record.lease.id;
    // Keyed by identifier, because an instance that is being moved can be observed on two hosts.
    let mut sizes: BTreeMap<GuestId, Size> = BTreeMap::new();
    for record in state.instances.of_lease(lease).filter_map(|id| state.instances.get(id)) {
        let instance = &record.instance;
        let kind = InstanceKind::Reserved { lease, reservation: reservation.id };
        if instance.kind == kind && instance.status == InstanceStatus::Active {
            sizes.insert(instance.id, Size::of(1, &instance.size.resources()));
        }
    }
    for host in reservation.allocation.hosts() {
        let Some(seen) = observed.hosts.get(&host) else { continue };
        if reservation_of(record, host, seen) != Some(reservation.id) {
            continue;
        }
        let own = seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Lease(lease));
        for guest in own.filter(|guest| state.instances.get(guest.id).is_none()) {
            sizes.insert(guest.id, Size::of(1, &guest.size.resources()));
        }
    }
    sizes.into_values().fold(Size::default(), Size::plus)
}
