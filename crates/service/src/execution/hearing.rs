//! Observes hosts early when a notification reports an event on them.

use std::collections::BTreeSet;

use super::Execution;

impl Execution<'_> {
    /// Requests a look at the hosts of these compute services, because an event was reported there. Unknown
    /// names are ignored. A few hosts are observed now. Returns true if there are more, which the next call
    /// observes: the caller determines how often the fleet is asked.
    pub fn hear_of(self, services: &BTreeSet<String>) -> bool {
        let state = self.service.state();
        let hosts = state.hosts.values().map(|record| &record.host);
        let named = hosts.filter(|host| services.contains(&host.service_name)).map(|host| host.id);
        let mut progress = self.service.progress();
        let more = progress.heard.add(named);
        if progress.heard.due {
            self.service.wake.notify_one();
        }
        more
    }
}
