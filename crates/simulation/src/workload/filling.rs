//! Preemptible instances that fill the gaps between leases.

use std::collections::BTreeMap;

use leases::ids::GuestId;
use leases::instance::InstanceStatus;
use leases::plan::GuestSize;
use leases::preemption::{Mark, Marked};
use service::{NewInstance, Placing, ServiceError};
use store::InstanceRecord;

use super::arrivals::{Arrival, Arrivals};
use super::figures::{Fill, hours};
use super::ground::MACHINE;
use crate::world::{World, caller};

const DISK_GIB: u32 = 10;
/// Project of the instances.
const OWNER: &str = "spot";

/// An accepted instance.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    vcpus: u32,
    launched_ms: Option<i64>,
    /// Its owner deleted it.
    deleted: bool,
}

/// Preemptible instances that arrive one after another.
#[derive(Debug)]
pub(super) struct Filling {
    arrivals: Arrivals,
    came: usize,
    accepted: BTreeMap<GuestId, Accepted>,
    core_ms: i64,
    lost_core_ms: i64,
    figures: Fill,
}

impl Filling {
    pub fn new(arrivals: Arrivals) -> Self {
        let (accepted, figures) = (BTreeMap::new(), Fill::default());
        Self { arrivals, came: 0, accepted, core_ms: 0, lost_core_ms: 0, figures }
    }

    pub fn next(&self) -> Option<Arrival> {
        self.arrivals.get(self.came)
    }

    /// Requests the next instance. Returns its identifier and its run time in seconds, or `None` if no host
    /// has capacity.
    pub async fn come(&mut self, world: &World) -> Result<Option<(GuestId, i64)>, ServiceError> {
        let Some(arrival) = self.next() else { return Ok(None) };
        self.came += 1;
        self.figures.requests += 1;
        // Larger ones would fit nowhere.
        let vcpus = arrival.vcpus.min(MACHINE.vcpus);
        let memory_mib = arrival.memory_mib.min(MACHINE.memory_mib);
        let size = Some(GuestSize { vcpus, memory_mib, disk_gib: DISK_GIB });
        let marked = Marked(vec![(Mark::Hint, true)]);
        let placing = Placing { size, marked, ..Placing::default() };
        let new = NewInstance { name: "vm".to_owned(), placing, requeue: false };
        match world.service.instances().create(&caller(OWNER), new).await {
            Ok(record) => {
                let id = record.instance.id;
                self.accepted.insert(id, Accepted { vcpus, launched_ms: None, deleted: false });
                Ok(Some((id, arrival.runs_s)))
            }
            Err(ServiceError::NoHost(_)) => {
                self.figures.refused += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an instance that has run its time, unless it's gone already.
    pub async fn finish(&mut self, world: &World, id: GuestId) -> Result<(), ServiceError> {
        let Some(accepted) = self.accepted.get_mut(&id) else { return Ok(()) };
        accepted.deleted = true;
        world.service.instances().delete(&caller(OWNER), id).await
    }

    /// Follows a change of an instance; `None` means that its record is gone.
    pub fn became(&mut self, id: GuestId, record: Option<&InstanceRecord>, now_ms: i64) {
        let Some(accepted) = self.accepted.get_mut(&id) else { return };
        let status = record.map(|record| record.instance.status);
        if status == Some(InstanceStatus::Active) && accepted.launched_ms.is_none() {
            accepted.launched_ms = Some(now_ms);
            self.figures.started += 1;
        }
        if status.is_some() {
            return;
        }
        let Accepted { vcpus, launched_ms, deleted } = *accepted;
        self.accepted.remove(&id);
        let used = launched_ms.map_or(0, |since| (now_ms - since) * i64::from(vcpus));
        self.core_ms += used;
        match (launched_ms, deleted) {
            (None, _) => self.figures.without_result += 1,
            (Some(_), true) => self.figures.done += 1,
            (Some(_), false) => {
                self.figures.preempted += 1;
                self.lost_core_ms += used;
            }
        }
    }

    /// Results until then. `leased_ms` is in node-milliseconds.
    pub fn figures(&self, now_ms: i64, leased_ms: i64, hosts: u32) -> Fill {
        let running = self.accepted.values().filter_map(|accepted| {
            accepted.launched_ms.map(|since| (now_ms - since) * i64::from(accepted.vcpus))
        });
        let core_ms = self.core_ms + running.sum::<i64>();
        let cores = i64::from(MACHINE.vcpus);
        let all_ms = (now_ms * i64::from(hosts) * cores).max(1);
        Fill {
            core_hours: hours(core_ms),
            lost_core_hours: hours(self.lost_core_ms),
            utilisation: (leased_ms * cores + core_ms) as f64 / all_ms as f64,
            ..self.figures
        }
    }
}
