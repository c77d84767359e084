//! A fleet in memory: hosts and guests that behave like real ones, by a clock and a seed.
//!
//! Nothing runs in the background. What is to happen at a time (a guest boots, shuts down, a script's event)
//! happens when the fleet is asked after that time. So a run under a test's own clock is the same every time.

mod apply;
mod background_load;
mod coming;
mod driver;
mod faults;
mod hosts;
mod instances;
mod layout;
mod power;
mod reservations;
mod script;
mod state;
mod supply;
#[cfg(test)]
mod tests;
mod timing;
mod violation;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ambient::Clock;
use jiff::{SignedDuration, Timestamp};
use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::plan::{GuestOwner, ObservedHost};
use tokio::sync::oneshot;

use self::apply::Call;
pub use self::background_load::BackgroundLoad;
pub use self::faults::{Fault, Faults, PlannedFault, Verb};
pub use self::layout::{Layout, Model, Rack};
pub use self::script::Happening;
use self::state::{Rules, State};
pub use self::timing::{Between, Timing};
pub use self::violation::Violation;
use crate::state_file::{StateError, StateFile, StateLog};
use crate::{Difference, FleetError, Machine, Network, Outcome};

/// A fleet in memory.
pub struct SimulatedFleet {
    clock: Arc<dyn Clock>,
    machines: BTreeMap<HostId, Machine>,
    networks: Vec<Network>,
    inner: Mutex<Inner>,
    file: Option<StateFile>,
}

/// What changes.
struct Inner {
    state: State,
    rules: Rules,
    faults: Faults,
    planned: Vec<PlannedFault>,
    /// Calls that are on their way, by when they arrive.
    calls: BTreeMap<(Timestamp, u64), Sent>,
    sent: u64,
    /// Addresses that somebody has who did not ask the leasing service.
    taken: BTreeSet<IpAddr>,
    /// Differences from what is stored.
    differences: Vec<Difference>,
    obstacle: Option<&'static str>,
    /// Counts changes of the state.
    version: u64,
    questions: u64,
}

/// A call on its way, and who waits for the answer.
struct Sent {
    call: Call,
    caller: Option<oneshot::Sender<Result<Outcome, FleetError>>>,
}

impl fmt::Debug for SimulatedFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedFleet").field("machines", &self.machines.len()).finish_non_exhaustive()
    }
}

impl SimulatedFleet {
    /// Healthy machines with nothing on them, where everything happens at once and nothing goes wrong.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, layout: &Layout) -> Self {
        Self::with_state(clock, State::new(seed), layout)
    }

    /// The same, with what is on the machines kept in a file: the machines do not notice that the process ends.
    /// Calls that are on their way at that moment are lost.
    pub fn persistent(
        path: &Path,
        clock: Arc<dyn Clock>,
        seed: u64,
        layout: &Layout,
    ) -> Result<Self, StateError> {
        let mut log = StateLog::new(path);
        let state = log.read()?.unwrap_or_else(|| State::new(seed));
        // A file that can't be written should be an error now and not only when something changes.
        log.write(serde_json::to_value(&state).map_err(StateError::Encode)?)?;
        Ok(Self { file: Some(StateFile::new(log, "hosts")), ..Self::with_state(clock, state, layout) })
    }

    /// Whether a file holds the state of such a fleet, or doesn't exist. The file isn't changed.
    pub fn check_file(path: &Path) -> Result<(), StateError> {
        StateLog::new(path).read::<State>().map(drop)
    }

    fn with_state(clock: Arc<dyn Clock>, mut state: State, layout: &Layout) -> Self {
        let machines = layout.machines();
        state.hosts.become_these(machines.keys().copied());
        let rules = Rules {
            timing: Timing::IMMEDIATE,
            background_load: BackgroundLoad::SILENCE,
            grace: leases::plan::PlanRules::default().grace,
            prepares: false,
            stay_shut_off: false,
            memory_mib: machines.values().map(|machine| (machine.id, machine.memory_mib.into())).collect(),
        };
        let inner = Inner {
            state,
            rules,
            faults: Faults::NONE,
            planned: Vec::new(),
            calls: BTreeMap::new(),
            sent: 0,
            taken: BTreeSet::new(),
            differences: Vec::new(),
            obstacle: None,
            version: 0,
            questions: 0,
        };
        Self { clock, machines, networks: layout.networks.clone(), inner: Mutex::new(inner), file: None }
    }

    /// Reservations need something as a whole, as in a cloud.
    #[must_use]
    pub fn preparing(self) -> Self {
        self.lock().rules.prepares = true;
        self
    }

    /// Guests that shut down stay on their hosts, as in a cloud, until they are deleted or started again.
    #[must_use]
    pub fn keeping_shut_off_guests(self) -> Self {
        self.lock().rules.stay_shut_off = true;
        self
    }

    /// Things take time.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        self.lock().rules.timing = timing;
        self
    }

    /// Guests come and go.
    #[must_use]
    pub fn with_background_load(self, background_load: BackgroundLoad) -> Self {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.rules.background_load = background_load;
        let Inner { state, rules, .. } = &mut *inner;
        state.begin_background_load(rules, now);
        drop(inner);
        self
    }

    /// The grace time that preemptible guests are to be given: [`SimulatedFleet::violations`] go by it.
    #[must_use]
    pub fn with_grace(self, grace: SignedDuration) -> Self {
        self.lock().rules.grace = grace;
        self
    }

    /// Things go wrong.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        self.set_faults(faults);
        self
    }

    /// Things go wrong from now on as said here.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Plans a fault that is sure to happen.
    pub fn plan_fault(&self, fault: PlannedFault) {
        self.lock().planned.push(fault);
    }

    /// Something is to happen at that time.
    pub fn schedule(&self, at: Timestamp, happening: Happening) {
        self.lock().state.schedule(at, state::Event::Scripted(happening));
    }

    /// Something happens now.
    pub fn happen(&self, happening: Happening) {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.advance(now);
        let Inner { state, rules, version, .. } = &mut *inner;
        state.happen(rules, happening, now);
        *version += 1;
        inner.advance(now);
    }

    /// A host stops working.
    pub fn fail(&self, host: HostId) {
        self.happen(Happening::HostFails(host));
    }

    /// A host works again.
    pub fn recover(&self, host: HostId) {
        self.happen(Happening::HostRecovers(host));
    }

    /// Somebody starts a guest, as [`Happening::GuestStarts`] says; `None` if it may not start there.
    pub fn start_guest(
        &self,
        host: HostId,
        owner: GuestOwner,
        runs_for: Option<SignedDuration>,
    ) -> Option<GuestId> {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.advance(now);
        let Inner { state, rules, version, .. } = &mut *inner;
        *version += 1;
        state.start(rules, host, owner, runs_for, now)
    }

    /// What is on a host that was taken on, as it is at the moment. Unlike a question of the service's this one
    /// never fails.
    pub fn look(&self, host: HostId) -> Option<ObservedHost> {
        let inner = self.current();
        inner.state.hosts.get(&host)?.observed(inner.rules.prepares)
    }

    /// A host will not come up when it is switched on, until it [recovers](Self::recover).
    pub fn break_boots(&self, host: HostId) {
        self.happen(Happening::HostWillNotBoot(host));
    }

    /// How long a host was off, all together.
    pub fn off_for(&self, host: HostId) -> SignedDuration {
        let now = self.clock.now();
        self.current().state.hosts.get(&host).map_or(SignedDuration::ZERO, |host| host.supply.off_for(now))
    }

    /// Somebody takes an address without the leasing service.
    pub fn take_address(&self, address: IpAddr) {
        self.lock().taken.insert(address);
    }

    /// Somebody has changed what leases have, or has changed it back.
    pub fn differ(&self, differences: Vec<Difference>) {
        self.lock().differences = differences;
    }

    /// From now on the fleet tells that [obstacle](fleet::Inventory::obstacle), or none.
    pub fn set_obstacle(&self, obstacle: Option<&'static str>) {
        self.lock().obstacle = obstacle;
    }

    /// The reservation whose project may use an address.
    pub fn holder_of(&self, ip: FloatingIpId) -> Option<ReservationId> {
        self.current().state.floating_ips.get(&ip).map(|assigned| assigned.reservation)
    }

    /// Whether the guest is that of an instance: it was started for one, or destroyed.
    pub fn is_instance(&self, guest: GuestId) -> bool {
        self.current().state.instances.contains_key(&guest)
    }

    /// Reservations for which something was made as a whole.
    pub fn prepared(&self) -> Vec<ReservationId> {
        self.current().state.reservations.keys().copied().collect()
    }

    /// Guests that were stopped and are kept.
    pub fn kept(&self) -> Vec<GuestId> {
        self.current().state.kept.keys().copied().collect()
    }

    /// Number of questions asked about the fleet so far.
    pub fn questions(&self) -> u64 {
        self.lock().questions
    }

    /// How many images of guests were made.
    pub fn images(&self) -> u64 {
        self.current().state.images
    }

    /// The promises that were broken since the start. There should be none.
    pub fn violations(&self) -> Vec<Violation> {
        self.current().state.violations.clone()
    }

    /// When something happens next, as far as it is known: a simulation may set its clock to then.
    pub fn next_event(&self) -> Option<Timestamp> {
        let inner = self.current();
        let call = inner.calls.first_key_value().map(|((at, _), _)| *at);
        [call, inner.state.next_event()].into_iter().flatten().min()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fleet as it is now.
    fn current(&self) -> MutexGuard<'_, Inner> {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.advance(now);
        inner
    }
}

impl Inner {
    /// Lets everything happen that does until now, calls among it.
    fn advance(&mut self, now: Timestamp) {
        let mut changed = false;
        while let Some(entry) = self.calls.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), sent) = entry.remove_entry();
            self.state.advance(&self.rules, at);
            let result = self.state.apply(&self.rules, &sent.call, at);
            changed = true;
            if let Some(caller) = sent.caller {
                // Nobody may be waiting any more; it was done all the same.
                let _ = caller.send(result);
            }
        }
        changed |= self.state.advance(&self.rules, now);
        self.version += u64::from(changed);
    }

    /// A call sets out, to arrive then.
    fn send(
        &mut self,
        at: Timestamp,
        call: Call,
        caller: Option<oneshot::Sender<Result<Outcome, FleetError>>>,
    ) {
        self.sent += 1;
        self.calls.insert((at, self.sent), Sent { call, caller });
    }

    /// What goes wrong with a call.
    fn fault(&mut self, call: &Call) -> Option<Fault> {
        faults::planned(&mut self.planned, call).or_else(|| self.faults.draw(&mut self.state.draw()))
    }
}
