//! A rack without a cloud: programs that are run, or web hooks that are called, when a host changes hands.
//!
//! Which machines there are and what is called when is in the [configuration](HooksConfig). A moment without a
//! hook passes without one; so the least is `on_hold` and `on_release`. An example, as TOML:
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
//! **What a hook is told.** A program gets a JSON object on its standard input, a web hook the same by POST:
//! `moment`, and what applies of the rest (`docs/machines.md` has all fields, and the moments); what does not is null. A
//! program has most of them in its environment as well: `ALLOT_MOMENT`, `ALLOT_HOST` (the name), `ALLOT_LEASE`.
//!
//! **What it answers.** A program's status 0 and a web hook's 2xx mean that it is done. Anything else is tried
//! again later; the last line of what was said is shown as the reason. A hook that takes too long is broken off,
//! a program killed
//! with whatever it has started and left in its process group. The limit is 60 seconds if none is given, for checks 10.
//!
//! **What it must stand.** Being called again for what is done already: after a crash, a lost answer or a failure
//! a hook is repeated, never left out. If `on_hold` was begun and the lease does not want the host any more,
//! `on_release` follows, so that one must stand undoing what was done by half or not at all. If `on_release` was begun
//! and the lease wants the host after all, it is repeated until it succeeds, and only then `on_hold` follows. After `on_release` the
//! host is in the free pool; `on_unfence` does not follow. The same goes for `on_prepare` and `on_finish`, which are called
//! for a reservation as a whole, and for `on_adopt` and `on_abandon`.
//!
//! **Several services** that hand over the same machines have the same configuration, and with it the same
//! `state_file`, on a file system that all of them reach and that has locks (a local one if they run on one
//! machine). One hook at a time is called for a host, whichever of them calls it. If one dies in the middle, what
//! its hook still does is not waited for: another one repeats it, perhaps beside it.
//!
//! **`check`** answers on its standard output, or in the body:
//! `{"healthy": true, "guests": [{"id": UUID, "name": TEXT, "owner": "preemptible"|"lease"|"other", "lease": UUID}]}`.
//! Everything but `id` and `owner` may be left out; no answer at all means that the host works and nothing runs
//! there. A lease's guest without a `lease` belongs to whom the host was given. If the check fails, the health of
//! the host is unknown; that it has failed is said only by `"healthy": false`. Hosts are checked whenever they are
//! looked at, so it should be quick. Without `check` every host works and is empty. To remove guests takes
//! `on_stop` and `on_delete` as well.
//!
//! **Instances** that are started through the service (`POST /v1/instances`) take `on_start` and `on_delete`. `on_start`
//! gets what is to be started, and returns when it is there; `check` reports the guest under the same `id`, as
//! `"lease"` if a lease is given, as `"preemptible"` if that is the `guest_kind`, else as `"other"`. `on_delete` may come for a guest that is not there.
//! With `"backfills": UUID` a preemptible one is started on a host of that lease, whose owner lets it.
//! With `"end_state": "stop"`, which `on_start`, `on_stop` and `on_delete` get for preemptible instances of such classes, what
//! the guest had is kept when it is off the host. `on_start` with `"resumes": UUID` goes on with what is kept of that guest, and fails
//! if nothing is; `on_delete` without an end state removes that as well.
//!
//! **Moving guests**, of others out of a best-effort lease's way, a lease's own when it ends, or preemptible ones to
//! another gap, takes `on_migrate`, and that `check` says of them what
//! they use and what it takes: beside the above `"project": TEXT, "vcpus": 2, "memory_mib": 4096, "disk_gib": 20,
//! "movable": {}`. Without `movable` a guest stays where it is. In `movable` may be `"copied_disk_gib"` (0: storage that
//! both hosts reach), `"downtime_ms"`, `"priority"`, `"requires"` (traits) and `"apart"` (groups of which no two guests
//! may be on one host). `on_migrate` returns when the guest is on its new host.
//!
//! **Saving power** takes `on_power_off`, which returns when the host is off, and `on_power_on`, which returns when it
//! has power and need not wait until it has booted: `check` says `"healthy": true` once it has. While a host is off
//! or boots, `check` may fail. If it can ask the host's management controller it may say `"power": "on"` or
//! `"power": "off"` as well; otherwise what was switched last counts.

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

/// So many hosts are checked at once.
const CHECKS_AT_ONCE: usize = 16;

/// A fleet whose machines change hands by hooks.
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
    /// The fleet of that configuration, as its file says. A host that is not configured any more is not there;
    /// what is known of it stays in the file.
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

    /// Changes what is known of a host, and returns when it is written down.
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
        // Written down with what is done under it.
        ledger.keeper.fence = ledger.keeper.fence.max(key.fence);
        ledger.fences.is_late(key)
    }

    fn subject(&self, host: HostId) -> Subject {
        self.machines.get(&host).map(Subject::host).unwrap_or_default()
    }

    /// Calls the hook of that moment, if there is one.
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

    /// Takes a host back that may have been handed over to another reservation than that.
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

    /// Until the hook has succeeded the host counts as one that is being taken back, so that the lease says what
    /// it waits for, and gets the host only from the beginning if it wants it after all.
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

    /// Looks at a host, if there is a hook for that, and notes what it sees.
    async fn check(&self, host: HostId) -> Result<Seen, FleetError> {
        if !self.hooks.has(Moment::Check) {
            return Ok(Seen::default());
        }
        let Some(machine) = self.machines.get(&host) else { return Ok(Seen::default()) };
        // It is never closed.
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

    /// Looks at hosts. Of one that cannot be looked at that is noted.
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
