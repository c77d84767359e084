//! Notifications as the store keeps them, and how far listeners have been told.

use jiff::{SignedDuration, Timestamp};
use store::Notification;

use crate::service::Service;
use crate::types::ServiceError;

/// Notifications, and how far listeners have been told.
#[derive(Clone, Copy, Debug)]
pub struct Notifications<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Notifications<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Notifications after that number, at most so many, oldest first.
    pub async fn after(self, after: u64, limit: u32) -> Result<Vec<Notification>, ServiceError> {
        Ok(self.service.parts.store.notifications(after, limit).await?)
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

    /// Returns when there may be a notification after that number.
    pub async fn wait_after(self, after: u64) {
        // Subscribed first, so that none is missed between looking and waiting.
        let mut changes = self.service.changes.subscribe();
        while self.service.parts.store.notifications(after, 1).await.is_ok_and(|found| found.is_empty()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
