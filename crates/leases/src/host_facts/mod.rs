//! Host facts: the current state of hosts that decisions need, other than reservations.

mod losses;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use jiff::Timestamp;

pub(crate) use self::losses::Loss;
pub use self::losses::Losses;
use crate::calendar::Calendar;
use crate::hunt::Surroundings;
use crate::ids::HostId;
use crate::lease::Lease;
use crate::plan::{History, Observed, ObservedHost};
use crate::resources::Resources;

/// Current knowledge about hosts. A decision gets all facts, and each question uses the ones it needs.
/// Expensive facts are computed on first use.
#[derive(Debug)]
pub struct HostFacts<'a> {
    /// Hosts with guests that can't be removed. Leases that start now or as soon as possible avoid them.
    /// Leases with a start date assume that the guests are gone by then.
    pub occupied: Fact<'a, BTreeSet<HostId>>,
    /// Hosts that are chosen last: they run an instance outside any lease, possibly forever.
    pub avoided: &'a BTreeSet<HostId>,
    /// Capacity held for offers. Among equally good hosts and addresses, these are allocated last.
    pub offered: &'a Calendar,
    /// Guests on hosts and on their way to hosts.
    pub guests: Fact<'a, Guests>,
    /// Outcome of earlier steps.
    pub history: &'a History,
    /// Leases with a running hunt. Guests on their way to a host already count there.
    pub hunting: Vec<&'a Lease>,
    /// Hosts that aren't on, with the time each is available if it is woken now
    /// ([`crate::energy::readiness`]). `None` if power saving is disabled. If it is enabled, hosts with the
    /// lowest draw are allocated first.
    pub waking: Fact<'a, Option<BTreeMap<HostId, Timestamp>>>,
    /// Guests that would have to leave the hosts of new leases.
    pub losses: Fact<'a, Losses>,
}

static NO_HOSTS: BTreeSet<HostId> = BTreeSet::new();
static NO_HISTORY: History = History { failures: BTreeMap::new(), done: BTreeMap::new() };
static NOTHING_RESERVED: Calendar = Calendar::NOTHING;

impl HostFacts<'static> {
    /// Facts of a fleet whose hosts are all on and empty.
    pub fn nothing() -> Self {
        Self {
            occupied: Fact::nothing(),
            avoided: &NO_HOSTS,
            offered: &NOTHING_RESERVED,
            guests: Fact::nothing(),
            history: &NO_HISTORY,
            hunting: Vec::new(),
            waking: Fact::nothing(),
            losses: Fact::nothing(),
        }
    }
}

impl HostFacts<'_> {
    /// The facts that hunts need.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { observed: &self.guests.observed, history: self.history, hunting: &self.hunting }
    }

    /// Time the host is available if it is woken now; `None` if it is on.
    pub(crate) fn ready_at(&self, host: HostId) -> Option<Timestamp> {
        self.waking.as_ref()?.get(&host).copied()
    }
}

/// Guests by host, with their resource usage.
#[derive(Debug, Default)]
pub struct Guests {
    /// Observations, with each guest on the host where it will be.
    pub observed: Observed,
    used: BTreeMap<HostId, Resources>,
}

impl Guests {
    /// Resources used by guests on the host; `None` if the host wasn't observed.
    pub fn used(&self, host: HostId) -> Option<&Resources> {
        self.used.get(&host)
    }
}

impl From<Observed> for Guests {
    fn from(observed: Observed) -> Self {
        let used = observed.hosts.iter().map(|(id, host)| (*id, ObservedHost::used(host))).collect();
        Self { observed, used }
    }
}

/// A value that is known, or computed on first use.
pub struct Fact<'a, T> {
    known: OnceLock<T>,
    find: Option<Box<dyn Fn() -> T + Send + Sync + 'a>>,
}

impl<'a, T> Fact<'a, T> {
    /// The default value.
    pub fn nothing() -> Self {
        Self { known: OnceLock::new(), find: None }
    }

    /// Computes the value on first use.
    pub fn when_asked(find: impl Fn() -> T + Send + Sync + 'a) -> Self {
        Self { known: OnceLock::new(), find: Some(Box::new(find)) }
    }
}

impl<T> From<T> for Fact<'_, T> {
    fn from(known: T) -> Self {
        Self { known: known.into(), find: None }
    }
}

impl<T: Default> Deref for Fact<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.known.get_or_init(|| self.find.as_ref().map(|find| find()).unwrap_or_default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Fact<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known.fmt(f)
    }
}
