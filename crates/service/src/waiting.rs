//! Clients and listeners that wait for notifications. A commit wakes the clients and listeners that can see
//! one of its notifications.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leases::project::ProjectId;
use store::NewNotification;
use tokio::sync::watch;

/// Waiting clients and listeners by project. The key `None` has the clients that wait for notifications of
/// all projects.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Projects>);

#[derive(Debug, Default)]
struct Projects {
    by_project: BTreeMap<Option<ProjectId>, watch::Sender<()>>,
    /// Number of the last notification examined after another service's commit.
    examined: u64,
}

impl Waiting {
    fn projects(&self) -> MutexGuard<'_, Projects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the last notification examined after another service's commit. `None` if no client waits.
    pub fn examined(&self) -> Option<u64> {
        let projects = self.projects();
        projects.by_project.values().any(|news| !news.is_closed()).then_some(projects.examined)
    }

    pub fn set_examined(&self, number: u64) {
        self.projects().examined = number;
    }

    pub fn subscribe(&self, project: Option<&ProjectId>) -> watch::Receiver<()> {
        let mut projects = self.projects();
        projects.by_project.retain(|_, news| !news.is_closed());
        projects.by_project.entry(project.cloned()).or_default().subscribe()
    }

    /// Wakes the clients and listeners that can see one of these notifications.
    pub fn wake<'n>(&self, notifications: impl IntoIterator<Item = &'n NewNotification>) {
        let projects = self.projects();
        let mut any = false;
        for notification in notifications {
            any = true;
            if let Some(news) = projects.by_project.get(&Some(notification.project.clone())) {
                news.send_replace(());
            }
        }
        if let Some(news) = projects.by_project.get(&None).filter(|_| any) {
            news.send_replace(());
        }
    }

    pub fn wake_all(&self) {
        for news in self.projects().by_project.values() {
            news.send_replace(());
        }
    }
}
