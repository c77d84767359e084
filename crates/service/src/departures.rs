//! When preemptible instances make way: noted with each as soon as a lease of its host is known, and told to its owner
//! (seed 004, spec §6).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::Admission;
use leases::ids::HostId;
use leases::instance::{Departure, Instance, InstanceKind, InstanceStatus};
use store::{Commit, InstanceRecord, StoreError, Write};

use crate::Service;
use crate::instances::change;
use crate::notices;
use crate::state::State;
use crate::writing::Writer;

impl Service {
    /// When an instance makes way for a lease of its host that starts then.
    fn departure_for(&self, instance: &Instance, start: Timestamp) -> Departure {
        let rules = &self.settings.plan_rules;
        Departure::for_lease(rules.asks_at(start, rules.notice(instance.class.as_ref())), start)
    }

    /// When an instance that is to be started there makes way, if it is preemptible and a lease of its host is known.
    pub(crate) fn departure_of_new(
        &self,
        state: &State,
        new: &Instance,
        now: Timestamp,
    ) -> Option<Departure> {
        let host = state.inventory.host(new.host).filter(|_| new.kind == InstanceKind::Preemptible)?;
        let all = state.instances.iter().map(|record| &record.instance).filter(|other| stays(other));
        let there = all.filter(|other| other.host == new.host).chain([new]);
        let admission = Admission::new(&state.calendar, &state.inventory, &self.settings.rules, now);
        let starts = |id| state.leases.get(id).map(|record| record.lease.window.start());
        admission.making_way(host, there, starts).get(&new.id).map(|start| self.departure_for(new, *start))
    }

    /// Tells owners of preemptible instances when these make way, and when they need not after all. Says whether there was
    /// anything to tell.
    pub(crate) async fn announce(&self, writer: &Writer<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let known = self.state().revision;
        if self.progress().announced == Some(known) {
            return Ok(false);
        }
        let changes = self.departures(now);
        if changes.is_empty() {
            self.progress().announced = Some(known);
            return Ok(false);
        }
        let commit_of = |changes: &[Changed]| Commit {
            writes: changes.iter().map(|(_, write)| write.clone()).collect(),
            notifications: changes
                .iter()
                .filter_map(|(before, write)| notices::of_instance(before, write, None, now))
                .collect(),
            ..Commit::new(now)
        };
        let tell = |(before, _): &Changed| {
            tracing::info!(instance = %before.instance.id, "a preemptible instance makes way at another time");
        };
        writer.commit_all_or_each(&changes, commit_of, tell).await
    }

    /// Instances that make way at another time than is noted.
    fn departures(&self, now: Timestamp) -> Vec<Changed> {
        let state = self.state();
        let mut by_host: BTreeMap<HostId, Vec<&Arc<InstanceRecord>>> = BTreeMap::new();
        for record in state.instances.iter().filter(|record| stays(&record.instance)) {
            by_host.entry(record.instance.host).or_default().push(record);
        }
        let preemptible = |record: &Arc<InstanceRecord>| record.instance.kind == InstanceKind::Preemptible;
        by_host.retain(|_, there| there.iter().any(|record| preemptible(record)));
        let admission = Admission::new(&state.calendar, &state.inventory, &self.settings.rules, now);
        let starts = |id| state.leases.get(id).map(|record| record.lease.window.start());
        let mut changes = Vec::new();
        for (host, there) in by_host {
            let Some(host) = state.inventory.host(host) else { continue };
            let leaving = admission.making_way(host, there.iter().map(|record| &record.instance), starts);
            let open =
                |record: &&Arc<InstanceRecord>| preemptible(record) && !record.instance.leaves_anyway();
            for record in there.into_iter().filter(open) {
                let known = record.instance.departure;
                let start = leaving.get(&record.instance.id);
                let departure = start.map(|start| self.departure_for(&record.instance, *start));
                let departure = departure.map(|new| known.filter(|known| known.is_at(&new)).unwrap_or(new));
                let after = Instance { departure, ..record.instance.clone() };
                if after != record.instance {
                    changes.push((Arc::clone(record), change(record, after, now)));
                }
            }
        }
        changes
    }
}

/// Whether it is beside all leases, and goes on to be.
fn stays(instance: &Instance) -> bool {
    instance.kind.lease().is_none()
        && matches!(instance.status, InstanceStatus::Building | InstanceStatus::Active)
}

/// An instance as it was, and what is written.
type Changed = (Arc<InstanceRecord>, Write);
