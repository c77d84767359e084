//! A rack without a cloud: each handover of a host runs programs or calls web hooks.
//!
//! The [configuration](HooksConfig) lists the machines and a hook for each moment. A moment without a hook
//! succeeds at once, so the minimum is `on_hold` and `on_release`. An example, as TOML:
//!
//! ```toml
//! state_file = "/var/lib/allot/rack.json"
//!
//! [[hosts]]
//! id = 1
//! name = "node1"
//! vcpus = 32
//! memory_mib = 131072
//! disk_gib = 1000
//!
//! [hooks.on_hold]
//! exec = ["/usr/local/lib/allot/hand-over", "--to-project"]
//! time_limit_seconds = 300
//!
//! [hooks.on_release]
//! webhook = "https://rack.example.org/release"
//! secret_header = { name = "Authorization", file = "/etc/allot/rack.secret" }
//!
//! [hooks.check]
//! exec = ["/usr/local/lib/allot/check"]
//! time_limit_seconds = 5
//! ```
//!
//! **Input.** A program reads a JSON object from standard input. A web hook receives the same object by POST.
//! It has `moment` and all other fields; fields that don't apply are null. `docs/tutorials/own-machines.md`
//! lists the fields and the moments. A program also has most fields in its environment: `ALLOT_MOMENT`,
//! `ALLOT_HOST` (the name), `ALLOT_LEASE`.
//!
//! **Result.** Status 0 of a program and 2xx of a web hook mean success. Anything else is retried later, and
//! the last line of the output is shown as the reason. A hook that exceeds its time limit is stopped, and a
//! program is killed with all of its descendants. The default limit is 60 seconds, or 10 for checks.
//!
//! **Repetition.** After a crash, a lost response or a failure, a hook is repeated, never skipped. So each
//! hook must accept being called for work that is already done. If `on_hold` was begun and the lease no
//! longer wants the host, `on_release` follows. It must be able to undo partial work, or none. If
//! `on_release` was begun and the lease wants the host again, it is repeated until it succeeds, and only then
//! `on_hold` follows. After `on_release`, the host is in the free pool; `on_unfence` doesn't follow. The same
//! rules apply to `on_prepare` and `on_finish`, which are called for a whole reservation, and to `on_adopt`
//! and `on_abandon`.
//!
//! **Several services** that hand over the same machines have the same configuration, including the
//! `state_file`. It must be on a file system that all of them can reach and that supports locks (a local one
//! if they run on one machine). Only one hook at a time is called for a host, across all services. If a
//! service dies during a hook, another service repeats the hook without waiting for the first call, so the
//! two can overlap.
//!
//! **`check`** responds on its standard output, or in the body:
//!
//! ```text
//! {"healthy": true, "guests": [{"id": UUID, "name": TEXT, "owner": "preemptible"|"lease"|"other", "lease": UUID}]}
//! ```
//!
//! Only `id` and `owner` are required. No output means that the host works and that its guests are unknown. A
//! lease's guest without `lease` belongs to the lease that holds the host. If the check fails, the health of
//! the host is unknown; only `"healthy": false` marks the host as failed. Each observation checks the hosts,
//! so the hook should be quick. Without `check`, every host counts as working and empty. Removing guests also
//! requires `on_stop` and `on_delete`.
//!
//! **Instances** that are started through the service (`POST /v1/instances`) require `on_start` and
//! `on_delete`. `on_start` receives the instance and returns once its guest is running. `check` reports the
//! guest under the same `id`: as `"lease"` if a lease was given, as `"preemptible"` if that was the
//! `guest_kind`, and as `"other"` otherwise. `on_delete` can be called for a guest that doesn't exist. With
//! `"backfills": UUID`, a preemptible instance starts on a host of that lease, whose owner allows it. With
//! `"end_state": "stop"`, the guest's state is kept after it leaves the host. `on_start`, `on_stop` and
//! `on_delete` receive it for preemptible instances of such classes. `on_start` with `"resumes": UUID`
//! continues from the kept state of that guest, and fails if there is none. `on_delete` without an end state
//! deletes the kept state, too.
//!
//! **Moving guests** requires `on_migrate`. Guests of other projects are moved out of the way of a
//! best-effort lease, a lease's own guests at its end, and preemptible guests to another gap. In addition,
//! `check` must report the usage and mobility of such guests:
//!
//! ```text
//! "project": TEXT, "vcpus": 2, "memory_mib": 4096, "disk_gib": 20, "movable": {}
//! ```
//!
//! A guest without `movable` can't be moved. Optional fields of `movable` are `"copied_disk_gib"` (0: both
//! hosts can reach the storage), `"downtime_ms"`, `"priority"`, `"requires"` (traits) and `"apart"` (groups
//! of which no two guests can be on one host). `on_migrate` returns once the guest is on its new host.
//!
//! **Saving power** requires `on_power_off`, which returns once the host is off, and `on_power_on`, which
//! returns once the host has power. It needn't wait for the boot: `check` reports `"healthy": true` after
//! that. While a host is off or boots, `check` may fail. If `check` can ask the host's management controller,
//! it can also report `"power": "on"` or `"power": "off"`. Otherwise, the last switch counts.

mod call;
mod check;
mod config;
mod driver;
mod ledger;
mod mistakes;
mod power;
mod reservations;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, MutexGuard};

use ambient::Clock;
use futures::future::join_all;
use leases::host::Health;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::GuestOwner;
use tokio::sync::Semaphore;

pub use self::call::RunningHook;
use self::call::{Hooks, Subject};
pub use self::config::{
    HookConfig, HooksConfig, HooksError, HostConfig, Moment, NetworkConfig, SecretHeader, SubnetConfig,
};
use self::ledger::{Granted, Handed, Ledger, Record, Seen};
pub use self::power::{PowerConfig, PowerHooks, PowerHooksConfig};
use self::reservations::Item;
use self::shared::{HostTurn, Shared};
use crate::site::Site;
use crate::{FleetError, Machine, Network, OperationKey, Outcome};

/// Maximum number of concurrent checks.
const CHECKS_AT_ONCE: usize = 16;

/// A fleet whose machines are handed over by hooks.
pub struct HooksFleet {
    clock: Arc<dyn Clock>,
    machines: BTreeMap<HostId, Machine>,
    networks: Vec<Network>,
    hooks: Hooks,
    shared: Arc<Shared>,
    checks: Semaphore,
}

impl fmt::Debug for HooksFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HooksFleet").field("machines", &self.machines.len()).finish_non_exhaustive()
    }
}

impl HooksFleet {
    /// Opens the fleet with the state from its file. A host that is no longer configured isn't part of the
    /// fleet, but its state stays in the file.
    pub fn open(config: &HooksConfig, clock: Arc<dyn Clock>) -> Result<Self, HooksError> {
        let machines = config.machines()?;
        let networks = config.networks()?;
        let hooks = Hooks::new(&config.hooks, &config.pass_environment)?;
        let shared = Shared::open(&config.state_file, machines.keys().copied())?;
        Ok(Self { clock, machines, networks, hooks, shared, checks: Semaphore::new(CHECKS_AT_ONCE) })
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared.ledger()
    }

    /// Changes a host's record. Returns once the change is in the file.
    async fn write_host<T>(
        &self,
        turn: &HostTurn,
        change: impl FnOnce(&mut Record) -> T,
    ) -> Result<T, FleetError> {
        self.shared.write_host(turn, change).await
    }

    fn site(&self, host: HostId) -> Site {
        self.ledger().hosts.get(&host).map(|record| record.site).unwrap_or_default()
    }

    fn is_late(&self, key: &OperationKey) -> bool {
        let mut ledger = self.ledger();
        // Saved with the next change under this fence.
        ledger.keeper.fence = ledger.keeper.fence.max(key.fence);
        ledger.fences.is_late(key)
    }

    fn subject(&self, host: HostId) -> Subject {
        self.machines.get(&host).map(Subject::host).unwrap_or_default()
    }

    /// Calls the moment's hook, if there is one.
    async fn call(&self, moment: Moment, subject: Subject, key: &OperationKey) -> Result<(), FleetError> {
        self.hooks.call(moment, &subject.under(key)).await.map(drop)
    }

    async fn fence_host(&self, turn: &HostTurn, key: &OperationKey) -> Result<Outcome, FleetError> {
        let begun = self.write_host(turn, |record| {
            record.uncertain_fence |= record.site == Site::FreePool;
            record.site = record.site.fenced();
            record.uncertain_fence
        });
        if begun.await? {
            self.make_fence_certain(turn, key).await?;
        }
        Ok(Outcome::Done)
    }

    async fn make_fence_certain(&self, turn: &HostTurn, key: &OperationKey) -> Result<(), FleetError> {
        let host = turn.host;
        self.call(Moment::OnFence, self.subject(host), key).await?;
        self.write_host(turn, |record| record.uncertain_fence = false).await
    }

    async fn unfence_host(&self, turn: &HostTurn, key: &OperationKey) -> Result<Outcome, FleetError> {
        let host = turn.host;
        if !matches!(self.site(host), Site::Fenced { .. }) {
            return Ok(Outcome::Done);
        }
        self.undo_hold(turn, None, key).await?;
        let begin = |record: &mut Record| {
            record.site = Site::Fenced { verified_for: None };
            record.uncertain_fence = true;
        };
        self.write_host(turn, begin).await?;
        self.call(Moment::OnUnfence, self.subject(host), key).await?;
        let end = |record: &mut Record| {
            record.site = Site::FreePool;
            record.uncertain_fence = false;
        };
        self.write_host(turn, end).await?;
        Ok(Outcome::Done)
    }

    /// Takes the host back from a reservation other than `but`, if a handover to it was begun.
    async fn undo_hold(
        &self,
        turn: &HostTurn,
        but: Option<ReservationId>,
        key: &OperationKey,
    ) -> Result<(), FleetError> {
        let host = turn.host;
        let begun = self.ledger().hosts.get(&host).and_then(|record| record.begun_hold);
        let Some(begun) = begun.filter(|begun| Some(begun.reservation) != but) else { return Ok(()) };
        let subject = self.subject(host).of(begun.reservation, begun.lease);
        self.call(Moment::OnRelease, subject, key).await?;
        let _finished = self.finish(begun.reservation, begun.lease, Item::Host(host), key).await?;
        self.write_host(turn, |record| record.begun_hold = None).await
    }

    async fn verify_host(
        &self,
        turn: &HostTurn,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        let host = turn.host;
        if !matches!(self.site(host), Site::Fenced { .. }) {
            return Ok(Outcome::Done);
        }
        if self.ledger().hosts.get(&host).is_some_and(|record| record.uncertain_fence) {
            self.make_fence_certain(turn, key).await?;
        }
        self.undo_hold(turn, Some(reservation), key).await?;
        let seen = self.check(host).await?;
        if seen.health == Health::Failed {
            return Err(FleetError::Unavailable(format!("host {host} does not work, says the hook check")));
        }
        let is_own = |owner| key.lease.is_some_and(|lease| owner == GuestOwner::Lease(lease));
        if seen.guests.values().all(|guest| is_own(guest.owner)) {
            self.write_host(turn, |record| record.site = record.site.verified(reservation)).await?;
        }
        Ok(Outcome::Done)
    }

    async fn hold_host(
        &self,
        turn: &HostTurn,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        let host = turn.host;
        let before = self.site(host);
        let after = before.held(reservation, key.lease);
        if after == before {
            return Ok(Outcome::Done);
        }
        let handed = Handed { reservation, lease: key.lease, certain: false };
        self.write_host(turn, |record| record.begun_hold = Some(handed)).await?;
        self.prepare(reservation, key).await?;
        let subject = self.subject(host).of(reservation, key.lease);
        self.call(Moment::OnHold, subject, key).await?;
        let end = |record: &mut Record| {
            record.site = after;
            record.begun_hold = None;
        };
        self.write_host(turn, end).await?;
        Ok(Outcome::Done)
    }

    /// Until the hook succeeds, the host counts as releasing. The lease then shows the host as its reason to
    /// wait. If the lease wants the host again, the handover starts from the beginning.
    async fn release_host(
        &self,
        turn: &HostTurn,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        let host = turn.host;
        let before = self.site(host);
        let after = before.released(reservation);
        if after == before {
            return Ok(Outcome::Done);
        }
        self.write_host(turn, |record| record.begun_release = true).await?;
        let lease = lease_of(before);
        self.call(Moment::OnRelease, self.subject(host).of(reservation, lease), key).await?;
        let _finished = self.finish(reservation, lease, Item::Host(host), key).await?;
        let end = |record: &mut Record| {
            record.site = after;
            record.begun_release = false;
        };
        self.write_host(turn, end).await?;
        Ok(Outcome::Done)
    }

    async fn grant_slots(
        &self,
        turn: &HostTurn,
        reservation: ReservationId,
        count: u32,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        let host = turn.host;
        if self.site(host) == Site::Elsewhere {
            return Ok(Outcome::Done);
        }
        let granted = |count| Granted { lease: key.lease, count };
        if self.slots(host, reservation) == Some(granted(count)) {
            return Ok(Outcome::Done);
        }
        let set = |count| move |record: &mut Record| _ = record.slots.insert(reservation, granted(count));
        self.write_host(turn, set(0)).await?;
        self.prepare(reservation, key).await?;
        let subject = self.subject(host).of(reservation, key.lease);
        self.call(Moment::OnGrant, Subject { slots: Some(count), ..subject }, key).await?;
        self.write_host(turn, set(count)).await?;
        Ok(Outcome::Done)
    }

    async fn withdraw_slots(
        &self,
        turn: &HostTurn,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        let host = turn.host;
        let Some(granted) = self.slots(host, reservation) else { return Ok(Outcome::Done) };
        let uncertain = Granted { count: 0, ..granted };
        self.write_host(turn, |record| _ = record.slots.insert(reservation, uncertain)).await?;
        let subject = self.subject(host).of(reservation, granted.lease);
        self.call(Moment::OnWithdraw, subject, key).await?;
        let _finished = self.finish(reservation, granted.lease, Item::Host(host), key).await?;
        self.write_host(turn, |record| _ = record.slots.remove(&reservation)).await?;
        Ok(Outcome::Done)
    }

    fn slots(&self, host: HostId, reservation: ReservationId) -> Option<Granted> {
        self.ledger().hosts.get(&host)?.slots.get(&reservation).copied()
    }

    /// Checks a host and records the result, if there is a hook for it.
    async fn check(&self, host: HostId) -> Result<Seen, FleetError> {
        if !self.hooks.has(Moment::Check) {
            return Ok(Seen::default());
        }
        let Some(machine) = self.machines.get(&host) else { return Ok(Seen::default()) };
        // The semaphore is never closed.
        let _permit = self.checks.acquire().await;
        let said = self.hooks.call(Moment::Check, &Subject::host(machine)).await;
        let mut ledger = self.ledger();
        let record = ledger.hosts.entry(host).or_default();
        let seen = said.and_then(|said| {
            check::read(&said, record).map_err(|error| {
                FleetError::Unavailable(format!("hook check of host {host} gave no answer to go by: {error}"))
            })
        });
        record.note(seen.as_ref().ok().cloned());
        seen
    }

    /// Checks hosts. A failed check is recorded as unknown health.
    async fn check_all(&self, hosts: impl Iterator<Item = HostId>) {
        join_all(hosts.map(|host| self.check(host))).await;
    }
}

fn lease_of(site: Site) -> Option<LeaseId> {
    match site {
        Site::Held { lease, .. } => lease,
        _ => None,
    }
}
