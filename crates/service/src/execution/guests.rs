//! Counts guests of leases that were started in the cloud instead of through the service, for usage and for
//! listeners.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::ids::GuestId;
use leases::occupants::Watch;
use leases::plan::{GuestOwner, Observed};
use leases::usage::{Counted, Held, KnownGuests, Sighting};
use store::{Commit, CommitError, StoreError};

use super::Execution;
use super::memos::Counting;
use super::pause::Pause;
use crate::deciding::beside_requests;
use crate::guest_facts::reservation_of;
use crate::notices;
use crate::state::State;
use crate::writing::Writer;

/// Name of the role of the counting service where several share a store.
const ROLE: &str = "guests";
/// Duration of the role, in observations of all hosts with the pauses before them. Another service takes over
/// if this one doesn't renew the role in time.
const LOOKS: i32 = 3;
/// Maximum number of changes that a cycle commits.
const MOST_AT_ONCE: usize = 1000;

impl Execution<'_> {
    /// Counts guests after a look at all hosts. Returns whether there is more to do immediately.
    ///
    /// A failure of the store here doesn't keep the loop from carrying out leases.
    pub(super) async fn count_guests(self, writer: &Writer<'_>, looked: bool, now: Timestamp) -> bool {
        let goes_on = std::mem::take(&mut self.service.progress().guests_left);
        if !looked && !goes_on {
            return false;
        }
        let counting = self.service.progress().counting.take();
        match self.try_count_guests(writer, counting, now).await {
            Ok((counting, more)) => {
                let mut progress = self.service.progress();
                progress.counting = counting;
                progress.guests_left = more;
                more
            }
            Err(error) => {
                // The outcome of the write is unknown, so known guests are read from the store again.
                tracing::warn!(%error, "guests not counted");
                false
            }
        }
    }

    async fn try_count_guests(
        self,
        writer: &Writer<'_>,
        counting: Option<Counting>,
        now: Timestamp,
    ) -> Result<(Option<Counting>, bool), StoreError> {
        let Some(mut counting) = self.lead_counting(counting, now).await? else { return Ok((None, false)) };
        let (state, observed) = (self.service.snapshot(), self.service.observed());
        let looked_at = self.service.progress().seen_at.unwrap_or(now);
        let counted = beside_requests(|| {
            let seen = sightings(&state, &observed, &counting.known);
            counting.known.count((&seen, looked_at), MOST_AT_ONCE, now)
        });
        drop(state);
        let more = counted.is_full(MOST_AT_ONCE);
        if !counted.entries.is_empty() {
            match writer.commit(commit_of(&counted, now)).await {
                Ok(()) => {}
                Err(CommitError::Store(error)) => return Err(error),
                // The commit has no writes that could conflict.
                Err(_) => return Ok((None, false)),
            }
        }
        counting.known.take_over(counted);
        Ok((Some(counting), more))
    }

    /// Known guests, if this service has the role of counting.
    async fn lead_counting(
        self,
        counting: Option<Counting>,
        now: Timestamp,
    ) -> Result<Option<Counting>, StoreError> {
        let settings = &self.service.decider.settings;
        let turn = settings.observe_interval.saturating_add(self.service.progress().round_took);
        let role = Pause::of(now, turn.saturating_mul(LOOKS));
        // After the role has expired or the clock was set, memory is outdated: another service could have
        // counted.
        let counting = counting.filter(|counting| counting.role.lasts(now));
        if self.service.progress().shares_clock()
            && !self.service.parts.store.lead(ROLE, &settings.holder, now, role.end()).await?
        {
            return Ok(None);
        }
        if let Some(counting) = counting {
            return Ok(Some(Counting { role, ..counting }));
        }
        let store = &self.service.parts.store;
        // Read before the intervals, which must not be older.
        let seen_until = store.occupancy_seen_until().await?;
        let watch = Watch::new(store.open_occupancy().await?, seen_until, now);
        let open = store.open_usage().await?;
        let state = self.service.state();
        let of_guests = open.into_iter().filter(|span| match span.held {
            Held::Instance(id) => state.instances.get(id).is_none(),
            _ => false,
        });
        Ok(Some(Counting { known: KnownGuests::new(of_guests), watch, role }))
    }
}

/// All observed guests that were not started through the service.
fn sightings<'a>(
    state: &'a State,
    observed: &'a Observed,
    known: &KnownGuests,
) -> BTreeMap<GuestId, Sighting<'a>> {
    let mut sightings = BTreeMap::new();
    for (id, seen) in &observed.hosts {
        let Some(host) = state.inventory.host(*id) else { continue };
        let others = seen.guests.iter().filter(|guest| state.instances.get(guest.id).is_none());
        for guest in others {
            let sighting = match guest.owner {
                GuestOwner::Lease(lease) => match state.leases.get(lease) {
                    Some(record) => {
                        Sighting::of(&record.lease, reservation_of(record, *id, seen), host, guest.size)
                    }
                    None => Sighting::Outside,
                },
                GuestOwner::Preemptible | GuestOwner::Other => Sighting::Outside,
            };
            // A guest that is being moved can appear on two hosts. Prefer its known host.
            if known.host_of(guest.id) == Some(*id) {
                sightings.insert(guest.id, sighting);
            } else {
                sightings.entry(guest.id).or_insert(sighting);
            }
        }
    }
    sightings
}

fn commit_of(counted: &Counted, now: Timestamp) -> Commit {
    let mut commit = Commit::new(now);
    commit.usage = counted.entries.clone();
    let began = counted.began.iter().filter_map(notices::guest_started);
    let ended = counted.ended.iter().filter_map(notices::guest_ended);
    commit.notifications.extend(began.chain(ended));
    commit
}
