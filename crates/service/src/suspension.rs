//! Suspension of all changes: while the machine's clock is wrong, or while the fleet is held for leases that
//! the store never knew. The log reports each once, and `/readyz` and `allot doctor` show it. It ends when
//! the cause is corrected or an operator accepts it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ambient::{Bounds, Reading, Trust};
use fleet::{FleetError, Keeper, Machine};
use jiff::SignedDuration;
use leases::ids::HostId;
use leases::plan::{GuestOwner, Observed, ObservedHost, Place};
use leases::text::quoted;
use store::{Commit, Origin, StoreError};

use crate::clock_watch::{Belonging, Watch};
use crate::service::Service;
use crate::state::State;
use crate::types::{Caller, ServiceError};
use crate::writing::audit;

/// Time without a running service after which the log reports it.
const LONG: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of host names in a message.
const SHOWN: usize = 5;

/// Message to clients if the fleet belongs to another store.
const FOREIGN_FLEET: &str = "the fleet is held for leases that this database knows nothing of, so nothing is changed before \
                             an operator has looked; `allot doctor` says what is held";

/// Suspension that an operator can accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptable {
    /// The machine's clock is right.
    Clock,
    /// The fleet belongs to this store. Resources held for leases that the store doesn't know become ordinary
    /// differences.
    Fleet,
}

impl Service {
    /// Wall clock and steady clock. `None` without a steady clock.
    fn reading(&self) -> Option<Reading> {
        let steady = self.parts.clock.steady()?;
        Some(Reading { wall: self.parts.clock.now(), steady })
    }

    /// Compares the clock with the steady clock, which can't be set. If the store has its own clock, that is
    /// a better reference.
    pub(crate) async fn watch_clock(&self) -> Result<(), StoreError> {
        let Some(now) = self.reading() else { return Ok(()) };
        if self.progress().clock.is_none() {
            let watch = Box::pin(self.begin_watch(now)).await?;
            self.progress().clock.get_or_insert(watch);
        }
        let mark = {
            let mut progress = self.progress();
            let Some(watch) = &mut progress.clock else { return Ok(()) };
            watch.judge(now)?;
            watch.due_mark()
        };
        if let Some(mark) = mark {
            Box::pin(self.parts.store.set_clock_mark(&mark)).await?;
        }
        Ok(())
    }

    /// Starts watching the clock, based on its last stored reading and on the time of the newest record.
    async fn begin_watch(&self, now: Reading) -> Result<Watch, StoreError> {
        let store = &self.parts.store;
        let mark = store.clock_mark().await?;
        let last = store.audit(1).await?.first().map(|record| record.at);
        let newest = mark.as_ref().map(|mark| mark.at).max(last);
        let boot = self.parts.clock.boot().unwrap_or_default();
        let earlier = mark.filter(|mark| !boot.is_empty() && mark.boot == boot);
        let earlier = earlier.map(|mark| Reading { wall: mark.at, steady: mark.steady });
        let bounds = Bounds {
            jump: self.decider.settings.longest_clock_skew,
            absence: self.decider.settings.longest_absence,
        };
        let mut trust = Trust::new(bounds, newest, earlier, now);
        if let Some(newest) = newest
            && now.wall.duration_since(newest) > LONG
            && trust.judge(now).is_ok()
        {
            tracing::warn!(%newest, "store long unused, carrying out overdue work");
        }
        Ok(Watch::new(trust, boot))
    }

    /// Rejects changes while the clock is wrong or the fleet belongs to another store.
    pub(crate) async fn refuse_suspended(&self) -> Result<(), StoreError> {
        if !self.progress().shares_clock() {
            self.watch_clock().await?;
        }
        self.refuse_foreign_fleet()
    }

    /// Rejects changes while the fleet belongs to another store.
    fn refuse_foreign_fleet(&self) -> Result<(), StoreError> {
        match &self.progress().belonging {
            Belonging::Unknown | Belonging::Belongs => Ok(()),
            // Clients see this text, so it doesn't list the held resources.
            Belonging::Foreign(_) => Err(StoreError::Suspended(FOREIGN_FLEET.to_owned())),
        }
    }

    /// Reasons of a suspension because of the clock, and because of the fleet.
    pub(crate) fn suspensions(&self) -> (Option<String>, Option<String>) {
        let progress = self.progress();
        let clock = progress.clock.as_ref().and_then(Watch::wrong).map(str::to_owned);
        let fleet = match &progress.belonging {
            Belonging::Foreign(why) => Some(why.clone()),
            Belonging::Unknown | Belonging::Belongs => None,
        };
        (clock, fleet)
    }

    pub(crate) fn knows_whose(&self) -> bool {
        self.progress().belonging == Belonging::Belongs
    }

    /// Checks whether the fleet belongs to this store, unless that is already known. It does if it was never
    /// changed for another store or under a later claim than this store knows of. In case of doubt, the fleet
    /// is left alone while it holds anything for leases that the store doesn't know.
    pub(crate) async fn look_whose(&self, machines: &[Machine]) -> Result<(), FleetError> {
        if self.knows_whose() {
            return Ok(());
        }
        let unavailable = |error: StoreError| FleetError::Unavailable(error.to_string());
        let Some(origin) = self.parts.store.origin().await.map_err(unavailable)? else {
            self.parts.fleet.set_up().await?;
            self.progress().belonging = Belonging::Belongs;
            return Ok(());
        };
        let keeper = self.parts.fleet.keeper().await?;
        if let Some(doubt) = doubt(&origin, keeper.as_ref()) {
            let mut all: BTreeSet<HostId> = machines.iter().map(|machine| machine.id).collect();
            all.extend(self.state().hosts.keys());
            let observed = self.parts.fleet.observe(&all, &self.addresses()).await?;
            let unknown = Unknown::of(&self.state(), &observed, machines);
            if let Some(unknown) = unknown {
                let why = format!(
                    "{doubt}, and {unknown}, which this store knows nothing of; nothing of the fleet is touched before \
                     the right database is back, or an operator says that this is it (`allot doctor --accept fleet`)"
                );
                let mut progress = self.progress();
                if progress.belonging == Belonging::Unknown {
                    tracing::error!(%why, "fleet belongs to another store");
                }
                // An operator might have accepted it since.
                if progress.belonging != Belonging::Belongs {
                    progress.belonging = Belonging::Foreign(why);
                }
                return Ok(());
            }
        }
        self.keep_fleet(&origin, keeper.as_ref()).await?;
        self.parts.fleet.set_up().await?;
        if matches!(
            std::mem::replace(&mut self.progress().belonging, Belonging::Belongs),
            Belonging::Foreign(_)
        ) {
            tracing::info!("fleet belongs to this store");
        }
        Ok(())
    }

    /// Makes the driver record which store the fleet belongs to.
    async fn keep_fleet(&self, origin: &Origin, keeper: Option<&Keeper>) -> Result<(), FleetError> {
        let Some(keeper) = keeper else { return Ok(()) };
        let ours = Keeper {
            store: origin.id.clone().unwrap_or_default(),
            fence: keeper.fence.min(origin.last_fence),
        };
        if *keeper == ours { Ok(()) } else { self.parts.fleet.set_keeper(ours).await }
    }

    /// Accepts the clock or the fleet on behalf of an operator.
    pub async fn accept(&self, caller: &Caller, what: Acceptable) -> Result<(), ServiceError> {
        let action = match what {
            Acceptable::Clock => {
                let now = self.reading();
                let mut progress = self.progress();
                if let (Some(watch), Some(now)) = (&mut progress.clock, now) {
                    watch.accept(now);
                }
                drop(progress);
                tracing::warn!(user = quoted(&caller.user.0), "clock accepted");
                "clock.accept"
            }
            Acceptable::Fleet => {
                if let Some(origin) = self.parts.store.origin().await? {
                    // Other services can share this store, and not every driver records which store its fleet
                    // belongs to. Those services accept a store that has been used as the fleet's store, so
                    // mark it as used.
                    let origin = Origin { last_fence: self.parts.store.take_fence().await?, ..origin };
                    let keeper = self.in_time(self.parts.fleet.keeper()).await?;
                    self.in_time(self.keep_fleet(&origin, keeper.as_ref())).await?;
                }
                self.in_time(self.parts.fleet.set_up()).await?;
                self.progress().belonging = Belonging::Belongs;
                tracing::warn!(user = quoted(&caller.user.0), "fleet accepted");
                "fleet.accept"
            }
        };
        // If something else still suspends changes, there is no audit record, but the acceptance is valid.
        if let Ok(writer) = self.writer().await {
            let now = self.now();
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, action, &""));
            if let Err(error) = writer.commit(commit).await {
                tracing::warn!(%error, "audit record lost");
            }
        }
        self.wake.notify_one();
        Ok(())
    }
}

/// Reason to doubt that the fleet belongs to the store.
fn doubt(origin: &Origin, keeper: Option<&Keeper>) -> Option<String> {
    let named = keeper.filter(|keeper| !keeper.store.is_empty());
    if let (Some(keeper), Some(id)) = (named, &origin.id)
        && keeper.store != *id
    {
        return Some(format!(
            "the fleet was changed for the store {}, and this is the store {id}",
            keeper.store
        ));
    }
    if keeper.is_some_and(|keeper| keeper.fence > origin.last_fence) {
        return Some("this store is older than what was last done to the fleet".to_owned());
    }
    (origin.last_fence == 0).then(|| "this store is new and has never handed over a host".to_owned())
}

/// Resources that the fleet holds for unknown leases and hosts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Unknown {
    hosts: Vec<String>,
    guests: usize,
    addresses: usize,
}

impl Unknown {
    fn of(state: &State, observed: &Observed, machines: &[Machine]) -> Option<Self> {
        let mut unknown = Self::default();
        for (id, seen) in &observed.hosts {
            let guests = seen.guests.iter().filter(|guest| match guest.owner {
                GuestOwner::Lease(lease) => state.leases.get(lease).is_none(),
                GuestOwner::Preemptible | GuestOwner::Other => false,
            });
            let guests = guests.count();
            if guests > 0 || has_unknown(state, *id, seen) {
                let name = machines.iter().find(|machine| machine.id == *id);
                unknown.hosts.push(name.map_or_else(|| id.to_string(), |machine| machine.name.clone()));
            }
            unknown.guests += guests;
        }
        let reservations = observed.floating_ips.values();
        unknown.addresses = reservations.filter(|id| state.leases.of_reservation(**id).is_none()).count();
        (unknown != Self::default()).then_some(unknown)
    }
}

/// Whether a host is handed over, partly or entirely, to a reservation that the store doesn't know.
fn has_unknown(state: &State, host: HostId, seen: &ObservedHost) -> bool {
    let place = match seen.place {
        Place::FreePool => false,
        Place::Fenced { .. } => !state.hosts.contains_key(&host),
        Place::Held(holder) | Place::Releasing(holder) => state.leases.of_reservation(holder).is_none(),
    };
    place || seen.slots.keys().any(|holder| state.leases.of_reservation(*holder).is_none())
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let mut text = String::new();
        if !self.hosts.is_empty() {
            let (count, names) =
                (self.hosts.len(), self.hosts.iter().take(SHOWN).cloned().collect::<Vec<_>>());
            write!(text, "{count} host{} ({}", plural(count), names.join(", "))?;
            text.push_str(if count > SHOWN { ", ...)" } else { ")" });
        }
        for (count, what) in [(self.guests, "guest"), (self.addresses, "floating IP")] {
            if count > 0 {
                let and = if text.is_empty() { "" } else { " and " };
                write!(text, "{and}{count} {what}{}", plural(count))?;
            }
        }
        write!(f, "it holds {text} for leases")
    }
}
