//! Records for auditors: which instances were observed on hosts that leases have as a whole.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::occupants::{Fence, Seen, Watch};
use leases::plan::{Guest, GuestOwner, ObservedHost, Place};
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use leases::window::Window;

use super::Execution;
use crate::deciding::beside_requests;
use crate::state::State;

/// Number of intervals after which a cycle leaves further hosts to the next one.
const MOST_AT_ONCE: usize = 1000;
/// Maximum number of turns in which a stopping service records the rest.
const MOST_LAST_TURNS: usize = 20;
/// Maximum time between two looks at a host that doesn't count as unseen, in multiples of
/// [`crate::Settings::observe_interval`].
const LONGEST_PAUSE: i32 = 2;

impl Execution<'_> {
    /// Records new observations, if this service has the role of counting guests. Returns whether there is
    /// more to record immediately.
    ///
    /// If the store fails, its records are read again, and the time until then counts as unseen.
    pub(super) async fn record_occupants(self, now: Timestamp) -> bool {
        let (mut sighted, observed, looks_until, mut counting) = {
            // Taken together, so that the observations match the looks.
            let mut progress = self.service.progress();
            let goes_on = std::mem::take(&mut progress.occupants_left);
            let sighted = std::mem::take(&mut progress.sighted);
            if sighted.is_empty() && !goes_on {
                return false;
            }
            let Some(counting) = progress.counting.take_if(|counting| counting.role.lasts(now)) else {
                return false;
            };
            // A running look can take longer than the longest pause.
            let looks_until = progress.looks_began().map_or(now, |began| began.min(now));
            (sighted, Arc::clone(&progress.observed), looks_until, counting)
        };
        let watch = &mut counting.watch;
        let (changes, pauses_left) = {
            let (state, observed) = (self.service.snapshot(), observed);
            let longest_pause = self.service.decider.settings.observe_interval.saturating_mul(LONGEST_PAUSE);
            beside_requests(|| {
                while watch.pending() < MOST_AT_ONCE
                    && let Some((host, look)) = sighted.pop_first()
                {
                    // A host that the fleet doesn't know now counts as unseen after a while.
                    let Some(seen) = observed.hosts.get(&host) else { continue };
                    let seen = seen_host(&state, watch, host, seen, now);
                    if seen.is_some() || watch.has(host) {
                        watch.note(host, look, seen, longest_pause);
                    }
                }
                // Hosts that are left to the next cycle were observed, so check pauses only after the last
                // host.
                let pauses_left = sighted.is_empty()
                    && watch.check_pauses(looks_until, longest_pause, MOST_AT_ONCE, |host| {
                        state.hosts.contains_key(&host)
                    });
                (watch.take_changes(), pauses_left)
            })
        };
        if let Some(changes) = changes {
            if !counting.role.lasts(self.service.now()) {
                // Another service might be recording by now.
                return false;
            }
            if let Err(error) = self.service.parts.store.record_occupancy(&changes).await {
                tracing::warn!(%error, "occupants of leased hosts not recorded");
                return false;
            }
        }
        let mut progress = self.service.progress();
        progress.counting = Some(counting);
        progress.occupants_left = pauses_left;
        let more = pauses_left || !sighted.is_empty();
        for (host, look) in sighted {
            // Another look might have ended in the meantime.
            progress.sighted.entry(host).or_insert(look);
        }
        more
    }
}

impl Execution<'_> {
    /// Records the last observations when the service stops, so that the gap in the records begins at that
    /// time.
    pub(super) async fn record_last_looks(self) {
        for _ in 0..MOST_LAST_TURNS {
            if !self.record_occupants(self.service.now()).await {
                break;
            }
        }
        let now = self.service.now();
        let counting = self.service.progress().counting.take_if(|counting| counting.role.lasts(now));
        let Some(mut counting) = counting else { return };
        let Some(changes) = counting.watch.take_last_changes() else { return };
        if let Err(error) = self.service.parts.store.record_occupancy(&changes).await {
            tracing::warn!(%error, "last looks at leased hosts not recorded");
        }
    }
}

/// The host as observed, if it belongs to a lease.
fn seen_host(
    state: &State,
    watch: &Watch,
    host: HostId,
    seen: &ObservedHost,
    now: Timestamp,
) -> Option<Seen> {
    let of = |reservation: ReservationId| state.leases.of_reservation(reservation);
    let (lease, fence) = match seen.place {
        Place::FreePool if !watch.has(host) => return None,
        // A host that the lease was about to get doesn't belong to it yet. A host that it had has lost its
        // fence.
        Place::FreePool => {
            let lease = lease_on(state, host, now).filter(|lease| watch.follows(host, *lease))?;
            (lease, Fence::Unfenced)
        }
        Place::Fenced { verified_for: None } => (lease_on(state, host, now)?, Fence::Fenced),
        Place::Fenced { verified_for: Some(reservation) } => (of(reservation)?, Fence::Verified),
        Place::Held(reservation) => (of(reservation)?, Fence::Held),
        Place::Releasing(reservation) => (of(reservation)?, Fence::Releasing),
    };
    let project = state.leases.get(lease)?.lease.owner.project.clone();
    // For a host that doesn't answer, fleets repeat the last observation.
    let reports = seen.reports_guests && seen.health != Health::Unknown;
    let instances = || seen.guests.iter().map(|guest| (guest.id, project_of(state, guest))).collect();
    Some(Seen { lease, project, fence, instances: reports.then(instances) })
}

/// The lease that has the whole host or is about to get it. Either the lease is starting, or it is active and
/// the host is new or has lost its fence.
fn lease_on(state: &State, host: HostId, now: Timestamp) -> Option<LeaseId> {
    let present = Window::starting(now, SignedDuration::from_micros(1));
    let mut bookings = state.calendar.bookings_in(host, present).map(|(_, booking)| booking);
    let lease = bookings.find(|booking| booking.used.is_none())?.lease;
    let status = state.leases.get(lease)?.lease.status;
    matches!(status, LeaseStatus::Starting | LeaseStatus::Active | LeaseStatus::Updating).then_some(lease)
}

/// The project of a guest: as reported by the fleet, or else from the record of the instance or of its lease.
fn project_of(state: &State, guest: &Guest) -> Option<ProjectId> {
    let of_instance = || Some(state.instances.get(guest.id)?.instance.owner.project.clone());
    let of_lease = || match guest.owner {
        GuestOwner::Lease(lease) => Some(state.leases.get(lease)?.lease.owner.project.clone()),
        GuestOwner::Preemptible | GuestOwner::Other => None,
    };
    guest.project.clone().or_else(of_instance).or_else(of_lease)
}
