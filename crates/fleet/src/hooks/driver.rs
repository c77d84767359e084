//! Implements the driver traits for a rack.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use leases::host::FloatingIp;
use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::instance::{Instance, InstanceKind};
use leases::plan::{GuestOwner, Observed};

use super::HooksFleet;
use super::call::{RunningHook, Subject};
use super::config::Moment;
use super::ledger::{Handed, Part, Record, Seen};
use super::reservations::Item;
use super::shared::HostTurn;
use crate::site::Site;
use crate::{
    FleetError, Guests, HookedCall, Inventory, Isolation, Keeper, Machine, Network, OperationKey, Outcome,
    Power, UNCERTAIN,
};

type Answer = Result<Outcome, FleetError>;

impl HooksFleet {
    /// Waits for exclusive access to the host.
    async fn turn(&self, host: HostId) -> Result<HostTurn, FleetError> {
        self.shared.host_turn(host).await
    }

    /// Owner of a guest; `None` if the last check didn't see it on an adopted host. Refused for
    /// [`GuestOwner::Other`], which must not be touched.
    fn owner(&self, host: HostId, guest: GuestId) -> Result<Option<GuestOwner>, FleetError> {
        let ledger = self.ledger();
        let record = ledger.hosts.get(&host).filter(|record| record.site != Site::Elsewhere);
        let seen = record.and_then(|record| record.seen.as_ref());
        match seen.and_then(|seen| seen.guests.get(&guest)).map(|guest| guest.owner) {
            Some(GuestOwner::Other) => {
                Err(FleetError::Refused(format!("guest {guest} on host {host} is somebody else's")))
            }
            owner => Ok(owner),
        }
    }

    /// Whether the instance's guest can start on the host.
    fn may_have(&self, host: HostId, instance: &Instance) -> bool {
        match instance.kind {
            InstanceKind::Reserved { lease, reservation } => {
                let granted =
                    self.slots(host, reservation).is_some_and(|granted| granted.lease == Some(lease));
                let held = |record: &Record| {
                    !record.begun_release
                        && matches!(record.site, Site::Held { reservation: holder, .. } if holder == reservation)
                };
                granted || self.ledger().hosts.get(&host).is_some_and(held)
            }
            InstanceKind::Regular | InstanceKind::Preemptible => {
                let admits =
                    |record: &Record| !record.begun_release && record.site.admits(instance.backfills);
                self.ledger().hosts.get(&host).is_some_and(admits)
            }
        }
    }

    fn require(&self, moment: Moment) -> Result<(), FleetError> {
        if self.hooks.has(moment) {
            return Ok(());
        }
        Err(FleetError::Refused(format!("there is no hook {moment} in the configuration of the fleet")))
    }
}

#[async_trait]
impl Inventory for HooksFleet {
    async fn machines(&self) -> Result<Vec<Machine>, FleetError> {
        // Hosts that aren't adopted are checked only until they are known to be empty: once their guests are
        // gone, they can be adopted.
        let unknown: Vec<HostId> = {
            let ledger = self.ledger();
            let known = |host: &HostId| {
                let record = ledger.hosts.get(host);
                record.is_some_and(|record| {
                    let is_empty = |seen: &Seen| seen.guests.is_empty();
                    record.seen.as_ref().is_some_and(|seen| record.site != Site::Elsewhere || is_empty(seen))
                })
            };
            self.machines.keys().filter(|host| !known(host)).copied().collect()
        };
        self.check_all(unknown.into_iter()).await;
        let ledger = self.ledger();
        let machine = |machine: &Machine| {
            let seen = ledger.hosts.get(&machine.id).and_then(|record| record.seen.as_ref());
            seen.map_or_else(|| machine.clone(), |seen| seen.on(machine))
        };
        Ok(self.machines.values().map(machine).collect())
    }

    async fn networks(&self) -> Result<Vec<Network>, FleetError> {
        Ok(self.networks.clone())
    }

    async fn observe(
        &self,
        hosts: &BTreeSet<HostId>,
        _addresses: &[FloatingIp],
    ) -> Result<Observed, FleetError> {
        self.shared.read().await?;
        let there = hosts.iter().filter(|host| self.machines.contains_key(host));
        let taken_on: Vec<HostId> =
            there.copied().filter(|host| self.site(*host) != Site::Elsewhere).collect();
        self.check_all(taken_on.iter().copied()).await;
        let ledger = self.ledger();
        let seen = taken_on.iter().filter_map(|id| Some((*id, ledger.hosts.get(id)?.observed()?)));
        Ok(Observed {
            hosts: seen.collect(),
            floating_ips: ledger.floating_ips.iter().map(|(ip, handed)| (*ip, handed.holder())).collect(),
            ..Observed::default()
        })
    }

    fn running_hooks(&self) -> Vec<RunningHook> {
        self.hooks.running_hooks()
    }

    fn hooks_time(&self, call: HookedCall) -> Duration {
        self.hooks.time_for(call)
    }

    async fn keeper(&self) -> Result<Option<Keeper>, FleetError> {
        self.shared.read().await?;
        Ok(Some(self.ledger().keeper.clone()))
    }

    async fn set_keeper(&self, keeper: Keeper) -> Result<(), FleetError> {
        let turn = self.shared.turn(Part::Keeper).await?;
        self.shared.write(&turn, |ledger| ledger.keeper = keeper).await
    }
}

#[async_trait]
impl Isolation for HooksFleet {
    async fn adopt(&self, host: HostId) -> Answer {
        let turn = self.turn(host).await?;
        if self.site(host) != Site::Elsewhere {
            return Ok(Outcome::Done);
        }
        let seen = self.check(host).await?;
        let occupied = seen.guests.values().any(|guest| guest.owner != GuestOwner::Preemptible);
        if let Some(machine) = self.machines.get(&host).filter(|_| occupied) {
            return Err(FleetError::Refused(seen.on(machine).occupied()));
        }
        self.write_host(&turn, |record| record.begun_adopt = true).await?;
        self.hooks.call(Moment::OnAdopt, &self.subject(host)).await?;
        let end = |record: &mut Record| (record.site, record.begun_adopt) = (Site::FreePool, false);
        self.write_host(&turn, end).await?;
        Ok(Outcome::Done)
    }

    async fn abandon(&self, host: HostId) -> Answer {
        let turn = self.turn(host).await?;
        let (site, vacant, begun) = {
            let ledger = self.ledger();
            let known = |record: &Record| (record.site, record.slots.is_empty(), record.begun_adopt);
            ledger.hosts.get(&host).map(known).unwrap_or_default()
        };
        match site {
            Site::Elsewhere if !begun => return Ok(Outcome::Done),
            Site::Elsewhere => {}
            Site::FreePool if vacant => {}
            _ => return Err(FleetError::Refused(format!("host {host} is not in the free pool"))),
        }
        self.hooks.call(Moment::OnAbandon, &self.subject(host)).await?;
        let end = |record: &mut Record| (record.site, record.begun_adopt) = (Site::Elsewhere, false);
        self.write_host(&turn, end).await?;
        Ok(Outcome::Done)
    }

    async fn fence(&self, host: HostId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) { Ok(Outcome::Done) } else { self.fence_host(&turn, key).await }
    }

    async fn unfence(&self, host: HostId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) { Ok(Outcome::Done) } else { self.unfence_host(&turn, key).await }
    }

    async fn verify(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) { Ok(Outcome::Done) } else { self.verify_host(&turn, reservation, key).await }
    }

    async fn hold(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) { Ok(Outcome::Done) } else { self.hold_host(&turn, reservation, key).await }
    }

    async fn release(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) { Ok(Outcome::Done) } else { self.release_host(&turn, reservation, key).await }
    }

    async fn grant(
        &self,
        host: HostId,
        reservation: ReservationId,
        slots: u32,
        key: &OperationKey,
    ) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) {
            Ok(Outcome::Done)
        } else {
            self.grant_slots(&turn, reservation, slots, key).await
        }
    }

    async fn withdraw(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) { Ok(Outcome::Done) } else { self.withdraw_slots(&turn, reservation, key).await }
    }

    async fn assign(&self, ip: &FloatingIp, reservation: ReservationId, key: &OperationKey) -> Answer {
        let turn = self.shared.turn(Part::Addresses).await?;
        let known = self.ledger().floating_ips.get(&ip.id).copied();
        let others = known.is_some_and(|handed| handed.certain || handed.reservation != reservation);
        if self.is_late(key) || others {
            return Ok(Outcome::Done);
        }
        let handed = Handed { reservation, lease: key.lease, certain: false };
        self.shared.write(&turn, |ledger| ledger.floating_ips.insert(ip.id, handed)).await?;
        self.prepare(reservation, key).await?;
        let subject = Subject::address(ip.id, Some(ip)).of(reservation, key.lease);
        self.call(Moment::OnAssign, subject, key).await?;
        self.shared
            .write(&turn, |ledger| ledger.floating_ips.insert(ip.id, Handed { certain: true, ..handed }))
            .await?;
        Ok(Outcome::Done)
    }

    async fn unassign(
        &self,
        ip: FloatingIpId,
        known: Option<&FloatingIp>,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        let turn = self.shared.turn(Part::Addresses).await?;
        let has = self.ledger().floating_ips.get(&ip).copied();
        let concerned = |handed: &Handed| handed.reservation == reservation || handed.holder() == reservation;
        let Some(handed) = has.filter(concerned) else { return Ok(Outcome::Done) };
        if self.is_late(key) {
            return Ok(Outcome::Done);
        }
        debug_assert_ne!(handed.reservation, UNCERTAIN);
        let subject = Subject::address(ip, known).of(handed.reservation, handed.lease);
        self.call(Moment::OnUnassign, subject, key).await?;
        let (reservation, lease) = (handed.reservation, handed.lease);
        let _finished = self.finish(reservation, lease, Item::FloatingIp(ip), key).await?;
        self.shared.write(&turn, |ledger| ledger.floating_ips.remove(&ip)).await?;
        Ok(Outcome::Done)
    }
}

#[async_trait]
impl Guests for HooksFleet {
    async fn start(&self, host: HostId, instance: &Instance, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await?;
        if self.is_late(key) {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnStart)?;
        if !self.may_have(host, instance) {
            return Err(FleetError::Refused(format!("instance {} may not run on host {host}", instance.id)));
        }
        let subject = self.subject(host).instance(instance);
        let subject = match instance.kind {
            InstanceKind::Reserved { lease, reservation } => subject.of(reservation, Some(lease)),
            InstanceKind::Regular | InstanceKind::Preemptible => subject,
        };
        self.call(Moment::OnStart, subject, key).await?;
        Ok(Outcome::Done)
    }

    async fn destroy(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await?;
        if self.is_late(key) {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnDelete)?;
        // Called even for an unknown guest, which may have started since the last check.
        self.call(Moment::OnDelete, self.subject(host).guest(guest), key).await?;
        Ok(Outcome::Done)
    }

    async fn stop(&self, host: HostId, guest: GuestId, keep: bool, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        let stopping = |ledger: &super::Ledger| {
            ledger.hosts.get(&host).is_some_and(|record| record.stopping.contains_key(&guest))
        };
        if self.is_late(key) || self.owner(host, guest)?.is_none() || stopping(&self.ledger()) {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnStop)?;
        let subject = self.subject(host).guest(guest).kept(keep);
        self.call(Moment::OnStop, subject, key).await?;
        let now = self.clock.now();
        self.write_host(&turn, |record| _ = record.stopping.insert(guest, now)).await?;
        Ok(Outcome::Done)
    }

    async fn resume(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        let asked = self.ledger().hosts.get(&host).is_some_and(|record| record.stopping.contains_key(&guest));
        if self.is_late(key) || !asked {
            return Ok(Outcome::Done);
        }
        self.call(Moment::OnResume, self.subject(host).guest(guest), key).await?;
        self.write_host(&turn, |record| _ = record.stopping.remove(&guest)).await?;
        Ok(Outcome::Done)
    }

    async fn migrate(&self, host: HostId, guest: GuestId, to: HostId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await?;
        let there = {
            let ledger = self.ledger();
            ledger.hosts.get(&host).is_some_and(|record| {
                let seen = record.seen.as_ref().and_then(|seen| seen.guests.get(&guest));
                seen.is_some_and(|seen| record.site.lets_go(key.lease, seen.owner))
            })
        };
        if self.is_late(key) || !there {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnMigrate)?;
        let Some(target) = self.machines.get(&to).filter(|_| self.site(to) == Site::FreePool) else {
            return Err(FleetError::Refused(format!("host {to} is not in the free pool")));
        };
        self.call(Moment::OnMigrate, self.subject(host).guest(guest).to(target), key).await?;
        Ok(Outcome::Done)
    }

    async fn delete(&self, host: HostId, guest: GuestId, keep: bool, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await?;
        if self.is_late(key) || self.owner(host, guest)?.is_none() {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnDelete)?;
        let subject = self.subject(host).guest(guest).kept(keep);
        self.call(Moment::OnDelete, subject, key).await?;
        Ok(Outcome::Done)
    }

    async fn snapshot(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await?;
        let held = matches!(self.site(host), Site::Held { reservation: holder, .. } if holder == reservation);
        if self.is_late(key) || !held {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnSnapshot)?;
        let subject = self.subject(host).of(reservation, key.lease);
        self.call(Moment::OnSnapshot, subject, key).await?;
        Ok(Outcome::Done)
    }
}

#[async_trait]
impl Power for HooksFleet {
    fn switches_hosts(&self) -> bool {
        self.hooks.has(Moment::OnPowerOn) && self.hooks.has(Moment::OnPowerOff)
    }

    async fn power_on(&self, host: HostId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        if self.is_late(key) {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnPowerOn)?;
        self.call(Moment::OnPowerOn, self.subject(host), key).await?;
        self.write_host(&turn, |record| record.off = false).await?;
        Ok(Outcome::Done)
    }

    async fn power_off(&self, host: HostId, key: &OperationKey) -> Answer {
        let turn = self.turn(host).await?;
        let fenced = matches!(self.site(host), Site::Fenced { .. });
        let off = self.ledger().hosts.get(&host).is_some_and(|record| record.off);
        if self.is_late(key) || !fenced || off {
            return Ok(Outcome::Done);
        }
        self.require(Moment::OnPowerOff)?;
        let granted = self.ledger().hosts.get(&host).is_some_and(|record| !record.slots.is_empty());
        if granted || !self.check(host).await?.guests.is_empty() {
            return Err(FleetError::Refused(format!("host {host} is in use")));
        }
        self.call(Moment::OnPowerOff, self.subject(host), key).await?;
        self.write_host(&turn, |record| record.off = true).await?;
        Ok(Outcome::Done)
    }
}
