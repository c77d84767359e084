//! Leases that are to start as soon as they can: when hosts become free, those that wait move forward (spec CLS-03).

use jiff::Timestamp;
use store::StoreError;

use super::plan::Change;
use crate::Service;
use crate::writing::Writer;

impl Service {
    /// Moves a lease that waits to an earlier time, if there is one: in each cycle the one that was asked for first.
    /// Says whether there was any.
    pub(super) async fn hasten(&self, writer: &Writer<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let Some(change) = self.hastened(now) else { return Ok(false) };
        self.commit_changes(writer, vec![change], now).await
    }

    fn hastened(&self, now: Timestamp) -> Option<Change> {
        let state = self.state();
        state.leases.waiting_for_hosts().next()?;
        let occupied = self.progress().occupied();
        let known = (state.revision, occupied);
        if self.progress().tried_to_hasten.as_ref() == Some(&known) {
            return None;
        }
        let admission = self.admission(&state, Some(&known.1), now);
        let sooner = state.leases.waiting_for_hosts().find_map(|before| {
            let after = admission.sooner(&before.lease)?;
            Some(Change { before: before.clone(), after: Some(after) })
        });
        if sooner.is_none() {
            self.progress().tried_to_hasten = Some(known);
        }
        sooner
    }
}
