//! A fleet in memory whose hosts and guests behave like real ones, driven by a clock and a seed.
//!
//! Nothing runs in the background. A future event (a guest boots or shuts down, a scripted event) takes
//! effect when the fleet is used after that time. So a run under a test's own clock is always the same.

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

/// Mutable state of a fleet.
struct Inner {
    state: State,
    rules: Rules,
    faults: Faults,
    planned: Vec<PlannedFault>,
    /// Calls in transit, by arrival time.
    calls: BTreeMap<(Timestamp, u64), Sent>,
    sent: u64,
    /// Addresses in use outside the leasing service.
    taken: BTreeSet<IpAddr>,
    /// Differences from the stored reservations.
    differences: Vec<Difference>,
    obstacle: Option<&'static str>,
    /// Number of changes of the state.
    version: u64,
    questions: u64,
}

/// A call in transit, and its waiting caller.
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
    /// Healthy, empty machines. All operations take effect at once, and there are no faults.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, layout: &Layout) -> Self {
        Self::with_state(clock, State::new(seed), layout)
    }

    /// Like [`Self::new`], but keeps the state of machines in a file, so that they survive the process. Calls
    /// in transit when the process ends are lost.
    pub fn persistent(
        path: &Path,
        clock: Arc<dyn Clock>,
        seed: u64,
        layout: &Layout,
    ) -> Result<Self, StateError> {
        let mut log = StateLog::new(path);
        let state = log.read()?.unwrap_or_else(|| State::new(seed));
        // A file that can't be written is an error now, not only at the first change.
        log.write(serde_json::to_value(&state).map_err(StateError::Encode)?)?;
        Ok(Self { file: Some(StateFile::new(log, "hosts")), ..Self::with_state(clock, state, layout) })
    }

    /// Whether a file has the state of a simulated fleet, or doesn't exist. The file isn't changed.
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

    /// Makes reservations require objects of their own, as in a cloud.
    #[must_use]
    pub fn preparing(self) -> Self {
        self.lock().rules.prepares = true;
        self
    }

    /// Makes guests stay on their hosts after a shutdown, as in a cloud, until they are deleted or started
    /// again.
    #[must_use]
    pub fn keeping_shut_off_guests(self) -> Self {
        self.lock().rules.stay_shut_off = true;
        self
    }

    /// Makes operations take time.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        self.lock().rules.timing = timing;
        self
    }

    /// Starts guests that come and go by themselves.
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

    /// Sets the grace time of preemptible guests, which [`SimulatedFleet::violations`] checks.
    #[must_use]
    pub fn with_grace(self, grace: SignedDuration) -> Self {
        self.lock().rules.grace = grace;
        self
    }

    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        self.set_faults(faults);
        self
    }

    /// Sets the probabilities of faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Plans a fault that certainly happens.
    pub fn plan_fault(&self, fault: PlannedFault) {
        self.lock().planned.push(fault);
    }

    /// Schedules an event.
    pub fn schedule(&self, at: Timestamp, happening: Happening) {
        self.lock().state.schedule(at, state::Event::Scripted(happening));
    }

    /// Makes an event happen now.
    pub fn happen(&self, happening: Happening) {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.advance(now);
        let Inner { state, rules, version, .. } = &mut *inner;
        state.happen(rules, happening, now);
        *version += 1;
        inner.advance(now);
    }

    /// Makes a host fail.
    pub fn fail(&self, host: HostId) {
        self.happen(Happening::HostFails(host));
    }

    /// Makes a host work again.
    pub fn recover(&self, host: HostId) {
        self.happen(Happening::HostRecovers(host));
    }

    /// Starts a guest as in [`Happening::GuestStarts`]. `None` if it can't start there.
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

    /// Current observation of an adopted host. Unlike a query by the service, it never fails.
    pub fn look(&self, host: HostId) -> Option<ObservedHost> {
        let inner = self.current();
        inner.state.hosts.get(&host)?.observed(inner.rules.prepares)
    }

    /// Prevents a host from booting until it [recovers](Self::recover).
    pub fn break_boots(&self, host: HostId) {
        self.happen(Happening::HostWillNotBoot(host));
    }

    /// Total duration that a host was off.
    pub fn off_for(&self, host: HostId) -> SignedDuration {
        let now = self.clock.now();
        self.current().state.hosts.get(&host).map_or(SignedDuration::ZERO, |host| host.supply.off_for(now))
    }

    /// Marks an address as in use outside the leasing service.
    pub fn take_address(&self, address: IpAddr) {
        self.lock().taken.insert(address);
    }

    /// Sets the differences to report, as if resources of leases were changed outside the service.
    pub fn differ(&self, differences: Vec<Difference>) {
        self.lock().differences = differences;
    }

    /// Sets the [obstacle](crate::Inventory::obstacle) that the fleet reports from now on.
    pub fn set_obstacle(&self, obstacle: Option<&'static str>) {
        self.lock().obstacle = obstacle;
    }

    /// Reservation whose project can use an address.
    pub fn holder_of(&self, ip: FloatingIpId) -> Option<ReservationId> {
        self.current().state.floating_ips.get(&ip).map(|assigned| assigned.reservation)
    }

    /// Whether a guest was started for an instance, or destroyed.
    pub fn is_instance(&self, guest: GuestId) -> bool {
        self.current().state.instances.contains_key(&guest)
    }

    /// Reservations that were prepared and are not finished.
    pub fn prepared(&self) -> Vec<ReservationId> {
        self.current().state.reservations.keys().copied().collect()
    }

    /// Guests that were stopped and kept.
    pub fn kept(&self) -> Vec<GuestId> {
        self.current().state.kept.keys().copied().collect()
    }

    /// Number of queries about the fleet so far.
    pub fn questions(&self) -> u64 {
        self.lock().questions
    }

    /// Number of images of guests made so far.
    pub fn images(&self) -> u64 {
        self.current().state.images
    }

    /// Promises that were broken since the start. Should be empty.
    pub fn violations(&self) -> Vec<Violation> {
        self.current().state.violations.clone()
    }

    /// Time of the next known event, to which a simulation can set its clock.
    pub fn next_event(&self) -> Option<Timestamp> {
        let inner = self.current();
        let call = inner.calls.first_key_value().map(|((at, _), _)| *at);
        [call, inner.state.next_event()].into_iter().flatten().min()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fleet after all events until now.
    fn current(&self) -> MutexGuard<'_, Inner> {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.advance(now);
        inner
    }
}

impl Inner {
    /// Applies all calls and events until `now`, in order of time.
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
                // Fails if the caller no longer waits. The call takes effect anyway.
                let _ = caller.send(result);
            }
        }
        changed |= self.state.advance(&self.rules, now);
        self.version += u64::from(changed);
    }

    /// Sends a call that arrives at `at`.
    fn send(
        &mut self,
        at: Timestamp,
        call: Call,
        caller: Option<oneshot::Sender<Result<Outcome, FleetError>>>,
    ) {
        self.sent += 1;
        self.calls.insert((at, self.sent), Sent { call, caller });
    }

    /// Fault of a call: a planned one, or a random one.
    fn fault(&mut self, call: &Call) -> Option<Fault> {
        faults::planned(&mut self.planned, call).or_else(|| self.faults.draw(&mut self.state.draw()))
    }
}
