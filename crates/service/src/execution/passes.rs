//! Passes over waiting work: requests on the waitlist, leases that might start earlier, and leases that might
//! get hosts with a lower power draw.
//!
//! Clients determine how long a pass takes, and nothing that is due depends on it. So a pass is a task
//! outside of cycles. It decides and commits like a client's request, after the loop's own commits.

use jiff::{SignedDuration, Timestamp};
use store::StoreError;

use super::Execution;
use super::Task;
use super::pass_cursor::Known;
use super::pause::Pause;
use crate::energy::PowerSaving;
use crate::service::Service;
use crate::waitlist::Waitlist;

/// Pause before an unfinished pass continues, including passes of cycles. Clients are served in between.
pub(super) const AGAIN_AFTER: SignedDuration = SignedDuration::from_millis(50);

/// Marks a pass as in progress until it ends in any way.
struct UnderWay<'a>(&'a Service);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.progress().pass_under_way = false;
    }
}

impl Execution<'_> {
    /// Time of the next pass. `None` if one is in progress or no request or lease is waiting.
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

    pub(super) fn begin_pass(self) -> Task {
        self.service.progress().pass_under_way = true;
        Task::Pass
    }

    /// Runs a pass. Returns whether it changed anything.
    pub(super) async fn pass(self) -> bool {
        let _under_way = UnderWay(self.service);
        match self.try_pass(self.service.now()).await {
            Ok(moved) => moved,
            Err(error) => {
                // The cause of a suspension was logged when it began.
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

    /// Notes the end of a pass. The next cycle begins another one if there is more to try.
    pub(super) fn note_pass(self, moved: bool) {
        let now = self.service.now();
        self.service.progress().memos.passed_without_result = (!moved).then(|| Pause::of(now, AGAIN_AFTER));
    }

    /// Whether a pass might change something.
    fn anything_to_try(self, now: Timestamp) -> bool {
        if self.service.decider.repack_due(now).is_some() {
            return true;
        }
        let state = self.service.snapshot();
        if state.proposals.waiting().next().is_none() && state.leases.waiting_for_hosts().next().is_none() {
            // Usually nothing waits. Return before the costlier checks below, because this runs in every
            // cycle.
            return false;
        }
        let occupied = self.service.decider.occupied(&state, &self.service.observed(), now);
        let known: Known = (state.revision, occupied);
        self.service.decider.any_waiting_to_try(&state, &known)
            || self.service.decider.any_to_hasten(&state, &known)
    }
}
