//! Statistics for metrics, and readiness.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use leases::energy::PowerState;
use leases::host::{Health, Host};
use leases::instance::InstanceKind;

use crate::readiness::NotReady;
use crate::service::Service;
use crate::types::Statistics;

impl Service {
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.progress().statistics();
        let state = self.snapshot();
        let by_status = state.leases.by_status().iter().filter(|(_, count)| **count > 0);
        statistics.leases = by_status.map(|(status, count)| (*status, *count)).collect();
        statistics.degraded_leases = state.leases.degraded().len() as u64;
        statistics.hosts = state.hosts.len() as u64;
        let failed = state.inventory.hosts().filter(|host| host.health == Health::Failed);
        statistics.failed_hosts = failed.count() as u64;
        let off = |host: &&Host| matches!(host.power.state, PowerState::Off { .. });
        statistics.off_hosts = state.inventory.hosts().filter(off).count() as u64;
        statistics.instances = state.instances.iter().count() as u64;
        statistics.floating_ips = state.floating_ips.len() as u64;
        for record in state.instances.iter() {
            let instance = &record.instance;
            let counts = instance.kind == InstanceKind::Preemptible && instance.needs_place();
            statistics.preemptible_instances += u64::from(counts);
            statistics.departing_instances += u64::from(counts && instance.departure.is_some());
        }
        let progress = self.progress();
        let failing = state.history.failures.keys().filter(|action| progress.is_wanted(**action));
        statistics.failing_steps = failing.count() as u64;
        drop(progress);
        statistics.degraded = u64::from(self.fleet_obstacle().is_some());
        let (writers, readers) = self.places.waiting();
        (statistics.waiting_writers, statistics.waiting_decisions) = (writers as u64, readers as u64);
        (statistics.decisions_too_costly, statistics.decisions_canceled) = self.ended.counts();
        statistics
    }

    /// Whether requests can be served: the store accepts writes, its clock agrees, and the loop runs. Doesn't
    /// wait for decisions, and waits for the store for at most 2 s. The result for the store can be one
    /// second old.
    pub async fn ready(self: &Arc<Self>) -> Result<(), NotReady> {
        let service = Arc::clone(self);
        let clock = &self.parts.clock;
        let now = clock.steady().unwrap_or_else(|| clock.now().as_duration());
        self.readiness.answer(now, async move { service.check_store().await }).await?;
        if self.running.load(Ordering::Acquire) { Ok(()) } else { Err(NotReady::LoopStopped) }
    }

    /// Reason why no lease starts or ends although requests can be served: the fleet needs an operator,
    /// hasn't been observed since the service started, or hasn't been observed for `unknown_after`.
    pub fn fleet_obstacle(&self) -> Option<&'static str> {
        self.parts.fleet.obstacle().or_else(|| {
            let progress = self.progress();
            let never = progress.seen_at.is_none() && progress.blind > 0;
            let unseen = never || self.decider.out_of_sight(progress.seen_at, self.now());
            unseen.then_some("the fleet does not answer (the log says why)")
        })
    }

    async fn check_store(&self) -> Result<(), NotReady> {
        let store = async {
            self.parts.store.check().await?;
            self.refuse_suspended().await?;
            self.update().await
        };
        store.await.map_err(|error| NotReady::Store(Arc::new(error)))
    }
}
