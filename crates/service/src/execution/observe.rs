//! Looking at the fleet: at all of it now and then, and at what was touched at once.

use std::collections::{BTreeMap, BTreeSet};

use fleet::Machine;
use jiff::{SignedDuration, Timestamp};
use leases::host::{Health, Host};
use leases::ids::HostId;
use leases::plan::{Observed, ObservedHost};
use store::{Commit, HostRecord, StoreError, Write};

use super::cycle::{LONGEST_RETRY, backoff};
use crate::hosts::refreshed;
use crate::writing::{Writer, decide_again};
use crate::{Service, ServiceError};

/// Not more often than this a fleet is asked again that does not answer.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);

impl Service {
    /// Looks at what is due. Machines are returned if all of them were looked at. A fleet that does not answer
    /// is no error: plans go on with what was seen last, but conclude nothing from what is not there.
    pub(super) async fn observe(&self, now: Timestamp) -> Option<BTreeMap<HostId, Machine>> {
        let (all, hosts, addresses, retry) = {
            let progress = self.progress();
            // Later than a whole interval from now it can only be because the clock was set back.
            let latest = now + self.settings.observe_interval.max(LONGEST_RETRY);
            let all = progress.look_at_all_at.is_none_or(|at| at <= now || at > latest);
            let (hosts, addresses) = progress.to_look_at();
            (all, hosts, addresses, progress.blind > 0)
        };
        let looked = if all {
            self.look_at_all().await.map(Some)
        } else if retry || (hosts.is_empty() && !addresses) {
            return None;
        } else {
            self.look_at_some(hosts).await.map(|()| None)
        };
        let mut progress = self.progress();
        match looked {
            Ok(machines) => {
                progress.blind = 0;
                if machines.is_some() {
                    progress.seen_at = Some(now);
                    progress.look_at_all_at = Some(now + self.settings.observe_interval);
                }
                machines
            }
            Err(error) => {
                tracing::warn!(%error, "the fleet cannot be looked at");
                progress.look_at_all_at = Some(now + backoff(FIRST_RETRY, progress.blind));
                progress.blind = progress.blind.saturating_add(1);
                None
            }
        }
    }

    async fn look_at_all(&self) -> Result<BTreeMap<HostId, Machine>, ServiceError> {
        let machines = self.in_time(self.parts.fleet.machines()).await?;
        let hosts: BTreeSet<HostId> = self.state().inventory.hosts().map(|host| host.id).collect();
        let observed = self.in_time(self.parts.fleet.observe(&hosts)).await?;
        let mut progress = self.progress();
        progress.looked_at(&hosts);
        progress.observed = observed;
        Ok(machines.into_iter().map(|machine| (machine.id, machine)).collect())
    }

    async fn look_at_some(&self, hosts: BTreeSet<HostId>) -> Result<(), ServiceError> {
        let seen = self.in_time(self.parts.fleet.observe(&hosts)).await?;
        let mut progress = self.progress();
        progress.looked_at(&hosts);
        for host in &hosts {
            progress.observed.hosts.remove(host);
        }
        progress.observed.hosts.extend(seen.hosts);
        progress.observed.floating_ips = seen.floating_ips;
        Ok(())
    }

    /// Enters what was seen of hosts into their records: health, and the sizes of machines (spec W30).
    pub(super) async fn refresh_hosts(
        &self,
        writer: &Writer<'_>,
        machines: Option<&BTreeMap<HostId, Machine>>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let changed = self.changed_hosts(machines, now);
        if changed.is_empty() {
            return Ok(());
        }
        let mut commit = Commit::new(now);
        for host in changed {
            let Some(before) = self.host(host.id) else { continue };
            if before.host.health != host.health {
                tracing::info!(host = %host.id, name = host.name, health = ?host.health, "the health of a host changes");
            }
            commit.writes.push(Write::Host {
                record: Box::new(HostRecord {
                    host,
                    version: before.version.next(),
                    created_at: before.created_at,
                    updated_at: Some(now),
                }),
                expected: Some(before.version),
            });
        }
        match writer.commit(commit).await.map_err(decide_again) {
            Ok(()) => Ok(()),
            Err(Err(ServiceError::Store(error))) => Err(error),
            Err(refused) => {
                // The next look at the fleet finds the same again.
                tracing::warn!(?refused, "what was seen of hosts is not recorded this time");
                Ok(())
            }
        }
    }

    /// Hosts that are not as they are on record.
    fn changed_hosts(&self, machines: Option<&BTreeMap<HostId, Machine>>, now: Timestamp) -> Vec<Host> {
        let state = self.state();
        let mut progress = self.progress();
        if self.out_of_sight(progress.seen_at, now) {
            for host in progress.observed.hosts.values_mut() {
                host.health = Health::Unknown;
            }
        }
        let mut changed: BTreeMap<HostId, Host> = match machines {
            Some(machines) => {
                refreshed(&state.inventory, machines).into_iter().map(|host| (host.id, host)).collect()
            }
            None => BTreeMap::new(),
        };
        for host in state.inventory.hosts() {
            let now = changed.get(&host.id).unwrap_or(host);
            let health = health(&progress.observed, host.id);
            if now.health != health {
                let now = Host { health, ..now.clone() };
                changed.insert(host.id, now);
            }
        }
        changed.retain(|id, host| state.inventory.host(*id) != Some(host));
        changed.into_values().collect()
    }

    /// Whether nothing was heard of the fleet for so long that nobody knows how its hosts are.
    fn out_of_sight(&self, seen_at: Option<Timestamp>, now: Timestamp) -> bool {
        seen_at.is_some_and(|seen| now.duration_since(seen) > self.settings.unknown_after)
    }
}

/// A host that the fleet does not know has failed for whoever leases it.
fn health(observed: &Observed, host: HostId) -> Health {
    observed.hosts.get(&host).map_or(Health::Failed, |seen: &ObservedHost| seen.health)
}
