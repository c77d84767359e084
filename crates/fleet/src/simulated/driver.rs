//! Implements the driver traits for a simulated fleet: delays calls and responses.

use std::collections::BTreeSet;

use super::timing::later;
use async_trait::async_trait;
use jiff::Timestamp;
use leases::host::FloatingIp;
use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::instance::Instance;
use leases::lease_pool::Ratios;
use leases::plan::{Action, Observed};
use rand::Rng;
use tokio::sync::oneshot;

use super::apply::Call;
use super::faults::{Fault, about};
use super::{Inner, SimulatedFleet};
use crate::state_file::Extent;
use crate::{
    Difference, FleetError, Guests, Inventory, Isolation, Keeper, Machine, Network, OperationKey, Outcome,
    Power, UNCERTAIN,
};

type Answer = Result<Outcome, FleetError>;

impl SimulatedFleet {
    /// Sends a call and waits for its response on the fleet's clock. The call takes effect even if the caller
    /// stops waiting.
    pub(super) async fn call(&self, call: Call) -> Answer {
        let (at, mut answer, lost) = self.send(call);
        let answer = loop {
            self.clock.sleep_until(at).await;
            self.lock().advance(self.clock.now());
            match answer.try_recv() {
                Ok(answer) => break answer,
                Err(oneshot::error::TryRecvError::Closed) => break Ok(Outcome::Done),
                // The clock was set back in the meantime.
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
        };
        self.save().await?;
        lost.map_or(answer, Err)
    }

    /// Sends a call. Returns its arrival time, a receiver for the response, and the error that replaces the
    /// response if there is a fault.
    fn send(&self, call: Call) -> (Timestamp, oneshot::Receiver<Answer>, Option<FleetError>) {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.advance(now);
        let fault = inner.fault(&call);
        let Inner { state, rules, faults, .. } = &mut *inner;
        let at = later(now, rules.timing.call.draw(&mut state.draw()));
        let again_at = later(at, faults.late_by.draw(&mut state.draw()));
        let (caller, answer) = oneshot::channel();
        let lost = fault.and_then(|fault| error_of(fault, &call));
        match fault {
            None | Some(Fault::TimeOutAfter) => inner.send(at, call, Some(caller)),
            // Dropping the caller closes the receiver.
            Some(Fault::Refuse | Fault::TimeOutBefore) => {}
            Some(Fault::Panic) => panic!("the driver panics (simulated)"),
            Some(Fault::Late) => inner.send(again_at, call, None),
            Some(Fault::Duplicate) => {
                inner.send(at, call.clone(), Some(caller));
                inner.send(again_at, call, None);
            }
        }
        (at, answer, lost)
    }

    /// Waits for the duration of a query. Fails if the query gets no response.
    async fn ask(&self) -> Result<(), FleetError> {
        let now = self.clock.now();
        let (at, answered) = {
            let mut inner = self.lock();
            inner.questions += 1;
            let Inner { state, rules, faults, .. } = &mut *inner;
            let at = later(now, rules.timing.question.draw(&mut state.draw()));
            (at, state.draw().random::<f64>() >= faults.unanswered)
        };
        self.clock.sleep_until(at).await;
        if !answered {
            return Err(FleetError::Unavailable("no answer (simulated)".to_owned()));
        }
        self.lock().advance(self.clock.now());
        self.save().await
    }

    /// Writes the state to its file, if there is one and something changed.
    async fn save(&self) -> Result<(), FleetError> {
        let Some(file) = &self.file else { return Ok(()) };
        let version = self.lock().version;
        let current = |extent| {
            let mut inner = self.lock();
            let state = match extent {
                Extent::Whole => inner.state.take_all(),
                Extent::Changes => inner.state.take_changes(),
            };
            (inner.version, state)
        };
        Ok(file.keep(current, version).await?)
    }

    async fn act(&self, action: Action, key: &OperationKey) -> Answer {
        self.call(Call::Act(action, key.clone())).await
    }
}

/// The error that replaces the response, if any.
fn error_of(fault: Fault, call: &Call) -> Option<FleetError> {
    let (verb, host) = about(call);
    let what = match host {
        Some(host) => format!("{verb:?} of host {host}"),
        None => format!("{verb:?}"),
    };
    match fault {
        Fault::Refuse => Some(FleetError::Refused(format!("{what} was refused (simulated)"))),
        Fault::TimeOutBefore | Fault::TimeOutAfter | Fault::Late => {
            Some(FleetError::Unavailable(format!("{what} timed out (simulated)")))
        }
        Fault::Duplicate | Fault::Panic => None,
    }
}

#[async_trait]
impl Inventory for SimulatedFleet {
    async fn machines(&self) -> Result<Vec<Machine>, FleetError> {
        self.ask().await?;
        let inner = self.lock();
        let there = self.machines.values().filter_map(|machine| {
            let host = inner.state.hosts.get(&machine.id)?;
            let guests = host.guests.iter().map(|(id, guest)| (*id, guest.name.clone())).collect();
            Some(Machine { health: host.health(), guests, ..machine.clone() })
        });
        Ok(there.collect())
    }

    async fn networks(&self) -> Result<Vec<Network>, FleetError> {
        self.ask().await?;
        Ok(self.networks.clone())
    }

    async fn observe(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<Observed, FleetError> {
        self.ask().await?;
        let inner = self.lock();
        let overcommits = inner.rules.prepares;
        let seen =
            hosts.iter().filter_map(|id| Some((*id, inner.state.hosts.get(id)?.observed(overcommits)?)));
        let assigned = inner.state.floating_ips.iter().map(|(ip, assigned)| (*ip, assigned.reservation));
        let taken = addresses.iter().filter(|ip| inner.taken.contains(&ip.address));
        Ok(Observed {
            hosts: seen.collect(),
            floating_ips: taken.map(|ip| (ip.id, UNCERTAIN)).chain(assigned).collect(),
            reservations: inner.state.prepared(),
        })
    }

    async fn locate(&self, guest: GuestId) -> Result<Option<HostId>, FleetError> {
        self.ask().await?;
        let inner = self.lock();
        let mut hosts = inner.state.hosts.iter();
        Ok(hosts.find(|(_, host)| host.guests.contains_key(&guest)).map(|(id, _)| *id))
    }

    async fn differences(&self) -> Vec<Difference> {
        self.lock().differences.clone()
    }

    async fn all_differences(&self) -> Result<Vec<Difference>, FleetError> {
        Ok(self.differences().await)
    }

    fn obstacle(&self) -> Option<&'static str> {
        self.lock().obstacle
    }

    async fn keeper(&self) -> Result<Option<Keeper>, FleetError> {
        Ok(Some(self.lock().state.keeper.clone()))
    }

    async fn set_keeper(&self, keeper: Keeper) -> Result<(), FleetError> {
        {
            let mut inner = self.lock();
            inner.state.keeper = keeper;
            inner.version += 1;
        }
        self.save().await
    }
}

#[async_trait]
impl Isolation for SimulatedFleet {
    fn prepares(&self) -> bool {
        self.lock().rules.prepares
    }

    async fn prepare(&self, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Prepare(reservation), key).await
    }

    async fn finish(&self, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Finish(reservation), key).await
    }

    async fn adopt(&self, host: HostId) -> Answer {
        self.call(Call::Adopt(host)).await
    }

    async fn abandon(&self, host: HostId) -> Answer {
        self.call(Call::Abandon(host)).await
    }

    async fn fence(&self, host: HostId, key: &OperationKey) -> Answer {
        self.act(Action::Fence(host), key).await
    }

    async fn unfence(&self, host: HostId, key: &OperationKey) -> Answer {
        self.act(Action::Unfence(host), key).await
    }

    async fn verify(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Verify(host, reservation), key).await
    }

    async fn hold(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Hold(host, reservation), key).await
    }

    async fn release(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Release(host, reservation), key).await
    }

    async fn grant(
        &self,
        host: HostId,
        reservation: ReservationId,
        slots: u32,
        key: &OperationKey,
    ) -> Answer {
        self.act(Action::Grant(host, reservation, slots), key).await
    }

    async fn set_ratios(
        &self,
        host: HostId,
        reservation: ReservationId,
        ratios: Ratios,
        key: &OperationKey,
    ) -> Answer {
        self.act(Action::SetRatios(host, reservation, ratios), key).await
    }

    async fn withdraw(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Withdraw(host, reservation), key).await
    }

    async fn assign(&self, ip: &FloatingIp, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Assign(ip.id, reservation), key).await
    }

    async fn unassign(
        &self,
        ip: FloatingIpId,
        _known: Option<&FloatingIp>,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        self.act(Action::Unassign(ip, reservation), key).await
    }
}

#[async_trait]
impl Guests for SimulatedFleet {
    async fn start(&self, host: HostId, instance: &Instance, key: &OperationKey) -> Answer {
        self.call(Call::Start(host, Box::new(instance.clone()), key.clone())).await
    }

    async fn destroy(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Answer {
        self.act(Action::DestroyGuest(host, guest), key).await
    }

    // Each guest records at its start whether it is kept.
    async fn stop(&self, host: HostId, guest: GuestId, _keep: bool, key: &OperationKey) -> Answer {
        self.act(Action::StopGuest(host, guest), key).await
    }

    async fn resume(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Answer {
        self.act(Action::ResumeGuest(host, guest), key).await
    }

    async fn migrate(&self, host: HostId, guest: GuestId, to: HostId, key: &OperationKey) -> Answer {
        self.act(Action::MoveGuest(host, guest, to), key).await
    }

    async fn delete(&self, host: HostId, guest: GuestId, _keep: bool, key: &OperationKey) -> Answer {
        self.act(Action::DeleteGuest(host, guest), key).await
    }

    async fn snapshot(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.act(Action::Snapshot(host, reservation), key).await
    }
}

#[async_trait]
impl Power for SimulatedFleet {
    fn switches_hosts(&self) -> bool {
        true
    }

    async fn power_on(&self, host: HostId, key: &OperationKey) -> Answer {
        self.act(Action::PowerOn(host), key).await
    }

    async fn power_off(&self, host: HostId, key: &OperationKey) -> Answer {
        self.act(Action::PowerOff(host), key).await
    }
}
