//! Hosts of which somebody says that something has happened there: they are looked at before it is their time.

use std::collections::BTreeSet;

use super::Execution;

impl Execution<'_> {
    /// Has the hosts of these compute services looked at: somebody says that something has happened there. Names that
    /// are not known are passed over. A few hosts are looked at now; if there are more, this says so, and they are looked
    /// at when it is called again, so whoever calls it says how often the fleet is asked.
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
