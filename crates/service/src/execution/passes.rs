//! Passes over what waits: requests on the waitlist, leases that might start sooner, leases that might draw less power.
//!
//! How long they take is up to clients, and nothing that is due depends on them. So a pass is a task beside the cycles,
//! which decides and commits as a client's request does, and goes after what the loop itself commits.

use jiff::{SignedDuration, Timestamp};
use store::StoreError;

use super::Execution;
use super::Task;
use super::pause::Pause;
use super::tour::Known;
use crate::energy::PowerSaving;
use crate::service::Service;
use crate::waitlist::Waitlist;

/// When a pass goes on that has come to no end, of those in cycles as well: clients are served meanwhile.
pub(super) const AGAIN_AFTER: SignedDuration = SignedDuration::from_millis(50);

/// Shows that a pass is under way, until it ends in whatever way.
struct UnderWay<'a>(&'a Service);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.progress().pass_under_way = false;
    }
}

impl Execution<'_> {
    /// When the next pass begins; none if one is under way or nothing would come of it.
    pub(super) fn next_pass(self, now: Timestamp) -> Option<Timestamp> {
        let paused_until = {
            let progress = self.service.progress();
            if progress.pass_under_way {
                return None;
            }
            progress.memos.passed_without_result.and_then(|pause| pause.rest(now))
        };
        self.anything_to_try(now).then(|| paused_until.unwrap_or(now))
    }

    /// Begins the pass that is due.
    pub(super) fn begin_pass(self) -> Task {
        self.service.progress().pass_under_way = true;
        Task::Pass
    }

    /// Goes over what waits. Says whether anything came of it.
    pub(super) async fn pass(self) -> bool {
        let _under_way = UnderWay(self.service);
        match self.try_pass(self.service.now()).await {
            Ok(moved) => moved,
            Err(error) => {
                // What suspends everything was said when it began.
                if !matches!(error, StoreError::Suspended(_)) {
                    tracing::error!(%error, "store failed, retrying");
                }
                false
            }
        }
    }

    async fn try_pass(self, now: Timestamp) -> Result<bool, StoreError> {
        Ok(Waitlist::of(self.service).promote(now).await?
            | self.hasten(now).await?
            | PowerSaving::of(self.service).repack(now).await?)
    }

    /// Notes what came of a pass; the next cycle begins another one, if there is more to try.
    pub(super) fn note_pass(self, moved: bool) {
        let now = self.service.now();
        self.service.progress().memos.passed_without_result = (!moved).then(|| Pause::of(now, AGAIN_AFTER));
    }

    /// Whether something may come of a pass.
    fn anything_to_try(self, now: Timestamp) -> bool {
        if self.service.decider.repack_due(now).is_some() {
            return true;
        }
        let state = self.service.snapshot();
        if state.proposals.waiting().next().is_none() && state.leases.waiting_for_hosts().next().is_none() {
            // As nearly always, so that what follows is not found out in every cycle.
            return false;
        }
        let occupied = self.service.decider.occupied(&state, &self.service.observed(), now);
        let known: Known = (state.revision, occupied);
        self.service.decider.any_waiting_to_try(&state, &known)
            || self.service.decider.any_to_hasten(&state, &known)
    }
}
