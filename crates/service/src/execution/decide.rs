//! The decision of a cycle: all passes in order, and one commit of their changes.

use jiff::Timestamp;
use store::StoreError;

use super::Execution;
use super::draft::{Decision, Draft, PassReport};
use crate::decider::Decider;
use crate::deciding::beside_requests;
use crate::entries::Committed;
use crate::writing::Writer;

/// One pass of a cycle. It decides on the state that includes the changes of earlier passes.
#[derive(Debug)]
pub(super) struct Pass {
    name: &'static str,
    decide: fn(&Decider, &mut Draft),
}

const fn pass(name: &'static str, decide: fn(&Decider, &mut Draft)) -> Pass {
    Pass { name, decide }
}

/// Passes that change records.
pub(super) const FIRST: [Pass; 11] = [
    pass("observations", Decider::record_hosts),
    pass("power changes", Decider::settle_power),
    // After settling power, which marks hosts as failed.
    pass("healing", Decider::heal),
    pass("expired offers and requests", Decider::expire),
    // After healing, which replaces hosts of leases.
    pass("outdated hunts", Decider::replan_hunt),
    pass("end migrations", Decider::depart),
    pass("moves to hosts of leases", Decider::withdraw_moves),
    pass("restarts of preempted instances", Decider::start_queued),
    // After all allocations to leases and instances.
    pass("preemption times", Decider::announce),
    pass("guests that can stay", Decider::tell_resumed),
    // For instances that must leave.
    pass("other gaps for instances", Decider::relocate),
];

/// Passes that plan steps, and change records accordingly.
pub(super) const PLANNING: [Pass; 4] = [
    pass("plan", Decider::plan_steps),
    // After the plan: a host that a lease has given up can be switched off.
    pass("power switching", Decider::switch_hosts),
    pass("power", Decider::power_steps),
    pass("housekeeping", Decider::keep_house),
];

impl Execution<'_> {
    /// Commits the changes of a decision.
    pub(super) async fn commit_decision(
        self,
        writer: &Writer<'_>,
        decision: &mut Decision,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        let committed = writer.commit_entries(std::mem::take(&mut decision.entries), now).await?;
        if committed.rest {
            return Ok(committed);
        }
        // The next observation finds rejected changes again.
        self.service.progress().unrecorded.retain(|host| !decision.recorded.contains(host));
        Ok(committed)
    }
}

impl Decider {
    /// Runs these passes, without commits or requests to the fleet.
    pub(super) fn go_through<'p>(
        &self,
        mut draft: Draft,
        passes: impl IntoIterator<Item = &'p Pass>,
    ) -> Decision {
        beside_requests(|| {
            for Pass { name, decide } in passes {
                draft.go_through(name, self, *decide);
            }
            let decision = draft.decided();
            for report in decision.passes.iter().filter(|report| report.changes > 0 || report.unfinished) {
                let PassReport { pass, changes, unfinished, .. } = report;
                tracing::debug!(pass, changes, unfinished, "pass decided");
            }
            decision
        })
    }
}
