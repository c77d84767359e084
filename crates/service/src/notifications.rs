//! Stored notifications, and each listener's position in them.

use jiff::{SignedDuration, Timestamp};
use leases::project::ProjectId;
use store::Notification;

use crate::service::Service;
use crate::types::ServiceError;

/// Maximum number of other services' notifications that are read to find the projects they are about. If
/// there are more, all waiting requests are woken.
const EXAMINED: u32 = 100;

/// Stored notifications, and each listener's position in them.
#[derive(Clone, Copy, Debug)]
pub struct Notifications<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Notifications<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// At most `limit` notifications after that number, oldest first. `None` means all projects.
    pub async fn after(
        self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, ServiceError> {
        self.service.store_read(self.service.parts.store.notifications(project, after, limit)).await
    }

    /// Number of the last notification of any project.
    pub async fn last(self) -> Result<u64, ServiceError> {
        // Reading one row of an index is too cheap to wait for a place.
        Ok(self.service.parts.store.last_notification().await?)
    }

    /// Number of the last notification delivered to this listener, initially 0.
    pub async fn delivered(self, listener: &str) -> Result<u64, ServiceError> {
        Ok(self.service.parts.store.delivered(listener).await?)
    }

    /// Records the number of the last notification delivered to this listener.
    pub async fn set_delivered(self, listener: &str, number: u64) -> Result<(), ServiceError> {
        Ok(self.service.parts.store.set_delivered(listener, number).await?)
    }

    /// Claims a role among the services that share the store, for `term` from now. Returns whether this
    /// service has the role. A `term` of zero gives it up.
    pub async fn lead(self, role: &str, term: SignedDuration) -> Result<bool, ServiceError> {
        let now = self.service.now();
        let until = now.checked_add(term).unwrap_or(Timestamp::MAX);
        Ok(self.service.parts.store.lead(role, &self.service.decider.settings.holder, now, until).await?)
    }

    /// Returns when there might be a notification after that number, of that project, or of any project if
    /// `None`.
    ///
    /// Commits without such a notification cost nothing, however many clients wait.
    pub async fn wait_after(self, project: Option<&ProjectId>, after: u64) {
        // Subscribes first, so that no notification is missed between the query and the wait.
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
    /// Wakes requests that wait for notifications committed by other services. A single query serves all
    /// requests.
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
