//! Observes all hosts before decisions that promise hosts now.
//!
//! Observations of the whole fleet are `limits.observe_interval` apart. So the latest one can be that old,
//! and guests might have started since then on hosts that look empty. A decision that promises hosts from now
//! on asks for a look first, before it waits for a place or a lock. One look serves all decisions that wait
//! for it. If the fleet doesn't answer in time, the last observation is used and the response says so. Hosts
//! are observed again before they are handed over in any case.

use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use leases::lease::Lease;
use leases::terms::ReservationTerms;
use leases::work::Budget;
use store::StoreError;

use super::pause::Pause;
use super::progress::Progress;
use super::sight::{Observation, STALE, to_second};
use crate::service::Service;
use crate::state::State;
use crate::writing::Writer;

/// Maximum time that a decision waits for a look.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// Age of the latest observation, from a decision's point of view.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    /// Recent enough.
    Fresh,
    /// Too old, but a look is in progress or possible.
    Awaited,
    /// Too old, and the fleet doesn't answer.
    Stale,
}

impl Progress {
    fn has_fresh_sight(&self, now: Timestamp) -> bool {
        self.blind == 0 && self.sight.seen.is_some_and(|seen| seen.lasts(now))
    }

    /// Whether the last observation of all hosts began after `at`.
    pub(super) fn saw_hosts_after(&self, at: Timestamp) -> bool {
        self.sight.seen.is_some_and(|seen| at < seen.begin())
    }

    /// Requests a look at all hosts unless one is in progress. If it is too early for one, returns the time
    /// to ask again.
    pub(super) fn ask_for_look(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.blind > 0 || self.looks_at_hosts_since().is_some() {
            return None;
        }
        let pauses = [self.sight.seen, self.sight.failed].into_iter().flatten();
        let too_early = pauses.filter_map(|pause| pause.rest(now)).max();
        self.sight.wanted |= too_early.is_none();
        too_early
    }

    fn age_of_sight(&self, now: Timestamp) -> Age {
        if self.has_fresh_sight(now) {
            return Age::Fresh;
        }
        if let Some(began) = self.looks_at_hosts_since() {
            return if Pause::of(began, PATIENCE).lasts(now) { Age::Awaited } else { Age::Stale };
        }
        if self.blind > 0 || self.sight.failed.is_some_and(|failed| failed.lasts(now)) {
            return Age::Stale;
        }
        Age::Awaited
    }
}

impl Service {
    /// Waits for a fresh observation before a decision on reservations that start at `start`, if they start
    /// immediately and need hosts. Doesn't wait while the loop is stopped, because no looks happen then.
    pub(crate) async fn observe_for<'t>(
        &self,
        start: Timestamp,
        reservations: impl IntoIterator<Item = &'t ReservationTerms>,
    ) -> Observation {
        if self.promises_hosts_now(start, reservations) {
            self.observe_hosts().await
        } else {
            Observation::default()
        }
    }

    fn promises_hosts_now<'t>(
        &self,
        start: Timestamp,
        reservations: impl IntoIterator<Item = &'t ReservationTerms>,
    ) -> bool {
        let on_hosts = |terms: &ReservationTerms| !matches!(terms, ReservationTerms::FloatingIps(_));
        let soon = self.now().saturating_add(self.decider.settings.rules.deadlines.immediate);
        soon.is_ok_and(|soon| start < soon) && reservations.into_iter().any(on_hosts)
    }

    /// Decides for a [pass](Self::decided_by_pass) that allocates hosts to a lease. If the lease starts
    /// immediately and the observation isn't fresh, decides again after a look.
    pub(crate) async fn decided_by_pass_for_lease<T>(
        &self,
        find: impl Fn(&Budget) -> Option<T>,
        holds: impl Fn(&State, &T) -> bool,
        lease: impl Fn(&T) -> Option<&Lease>,
    ) -> Result<Option<(Writer<'_>, T)>, StoreError> {
        let tours = {
            let memos = &self.progress().memos;
            (memos.to_serve.clone(), memos.to_hasten.clone())
        };
        let Some((writer, found)) = self.decided_by_pass(&find, &holds).await? else { return Ok(None) };
        let now = self.now();
        let unseen = lease(&found).is_some_and(|lease| {
            let terms = lease.reservations.iter().map(|reservation| &reservation.terms);
            self.promises_hosts_now(lease.window.start(), terms) && !self.progress().has_fresh_sight(now)
        });
        if !unseen || !self.running.load(Ordering::Acquire) {
            return Ok(Some((writer, found)));
        }
        drop(writer);
        self.observe_hosts().await;
        {
            // Try the same lease again.
            let memos = &mut self.progress().memos;
            (memos.to_serve, memos.to_hasten) = tours;
        }
        self.decided_by_pass(find, holds).await
    }

    async fn observe_hosts(&self) -> Observation {
        let limit = self.now().saturating_add(PATIENCE).unwrap_or(Timestamp::MAX);
        let mut looked = self.looked.subscribe();
        while self.running.load(Ordering::Acquire) {
            let (age, needs_look) = {
                let mut progress = self.progress();
                let age = progress.age_of_sight(self.now());
                let needs_look = age == Age::Awaited && progress.looks_at_hosts_since().is_none();
                progress.sight.wanted |= needs_look;
                (age, needs_look)
            };
            match age {
                Age::Fresh => break,
                Age::Stale => return self.stale_observation(),
                Age::Awaited if needs_look => self.wake.notify_one(),
                Age::Awaited => {}
            }
            tokio::select! {
                biased;
                _ = looked.changed() => {}
                () = self.parts.clock.sleep_until(limit) => return self.stale_observation(),
            }
        }
        Observation::default()
    }

    /// Hint to add to the refusal of reservations that start at `start`, if it was decided on an old
    /// observation.
    pub(crate) fn stale_hint<'t>(
        &self,
        start: Timestamp,
        reservations: impl IntoIterator<Item = &'t ReservationTerms>,
    ) -> Option<String> {
        let promises = self.promises_hosts_now(start, reservations) && self.running.load(Ordering::Acquire);
        let stale = promises && self.progress().age_of_sight(self.now()) == Age::Stale;
        let since = stale.then(|| self.stale_observation().stale_since).flatten()?;
        Some(format!("{STALE} {}", to_second(since)))
    }

    fn stale_observation(&self) -> Observation {
        let seen = self.progress().sight.seen;
        // `None` before the first look: there is no observation to decide on.
        Observation { stale_since: seen.map(Pause::begin) }
    }
}
