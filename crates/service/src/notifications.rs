//! Notifications as the store keeps them, and how far listeners have been told.

use jiff::{SignedDuration, Timestamp};
use leases::project::ProjectId;
use store::Notification;

use crate::service::Service;
use crate::types::ServiceError;

/// Maximum number of notifications of other services that are read to find out which projects they are about. If
/// there are more, everybody is woken.
const EXAMINED: u32 = 100;

/// Notifications, and how far listeners have been told.
#[derive(Clone, Copy, Debug)]
pub struct Notifications<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Notifications<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// At most `limit` notifications after that number, oldest first; those of all projects unless one is given.
    pub async fn after(
        self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, ServiceError> {
        self.service.store_read(self.service.parts.store.notifications(project, after, limit)).await
    }

    /// The number of the last notification of any project.
    pub async fn last(self) -> Result<u64, ServiceError> {
        // One row of an index costs too little to wait for a place.
        Ok(self.service.parts.store.last_notification().await?)
    }

    /// The number of the last notification that this listener has been told; 0 at first.
    pub async fn delivered(self, listener: &str) -> Result<u64, ServiceError> {
        Ok(self.service.parts.store.delivered(listener).await?)
    }

    /// Notes how far a listener has been told.
    pub async fn set_delivered(self, listener: &str, number: u64) -> Result<(), ServiceError> {
        Ok(self.service.parts.store.set_delivered(listener, number).await?)
    }

    /// Whether this service has that role among those that share the store, for so long from now on; for no time,
    /// it gives it up.
    pub async fn lead(self, role: &str, term: SignedDuration) -> Result<bool, ServiceError> {
        let now = self.service.now();
        let until = now.checked_add(term).unwrap_or(Timestamp::MAX);
        Ok(self.service.parts.store.lead(role, &self.service.decider.settings.holder, now, until).await?)
    }

    /// Returns when there may be a notification of that project, or of any, after that number.
    ///
    /// Commits without such a notification cost nothing, however many clients wait.
    pub async fn wait_after(self, project: Option<&ProjectId>, after: u64) {
        // Subscribed first, so that none is missed between looking and waiting.
        let mut news = self.service.waiting.subscribe(project);
        while self
            .service
            .parts
            .store
            .notifications(project, after, 1)
            .await
            .is_ok_and(|found| found.is_empty())
        {
            if news.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Service {
    /// Wakes those that wait for a notification which another service has committed. One query for all that wait.
    pub(crate) async fn wake_for_others(&self) {
        let Some(examined) = self.waiting.examined() else { return };
        let store = &self.parts.store;
        let (last, found) = match store.last_notification().await {
            Ok(last) => (last, store.notifications(None, examined, EXAMINED).await),
            Err(error) => (examined, Err(error)),
        };
        self.waiting.set_examined(last);
        match found {
            Ok(found) if found.len() < EXAMINED as usize => {
                self.waiting.wake(found.iter().map(|one| &one.content));
            }
            _ => self.waiting.wake_all(),
        }
    }
}
