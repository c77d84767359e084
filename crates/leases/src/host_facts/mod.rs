//! What decisions know of hosts at the moment, beside what is reserved of them.

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

/// What is known of hosts at the moment. A decision is given all of it, and each question heeds what matters to it; what takes
/// long to work out is worked out when it is first asked for.
#[derive(Debug)]
pub struct HostFacts<'a> {
    /// Hosts with guests that nobody may remove. What starts at once or as soon as it can does without them; what has a
    /// date may hope that they are gone by then.
    pub occupied: Fact<'a, BTreeSet<HostId>>,
    /// Hosts that are chosen last: an instance that is part of no lease runs there, perhaps forever.
    pub avoided: &'a BTreeSet<HostId>,
    /// What is reserved for offers: of equally good hosts and addresses, these are allocated last.
    pub offered: &'a Calendar,
    /// Who is on hosts, and who is on the way there.
    pub guests: Fact<'a, Guests>,
    /// What became of earlier steps.
    pub history: &'a History,
    /// Leases that hunt: guests that are to go to a host count there already.
    pub hunting: Vec<&'a Lease>,
    /// Hosts that are not on, and when each is available if it is woken now ([`crate::energy::readiness`]); none if no
    /// power is saved here. If it is, hosts that draw least are allocated first.
    pub waking: Fact<'a, Option<BTreeMap<HostId, Timestamp>>>,
    /// Who would have to leave hosts that leases get.
    pub losses: Fact<'a, Losses>,
}

static NO_HOSTS: BTreeSet<HostId> = BTreeSet::new();
static NO_HISTORY: History = History { failures: BTreeMap::new(), done: BTreeMap::new() };
static NOTHING_RESERVED: Calendar = Calendar::NOTHING;

impl HostFacts<'static> {
    /// All hosts are on, and nobody is on them.
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
    /// What hunts go by.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { observed: &self.guests.observed, history: self.history, hunting: &self.hunting }
    }

    /// When the host is available if it is woken now; none if it is on.
    pub(crate) fn ready_at(&self, host: HostId) -> Option<Timestamp> {
        self.waking.as_ref()?.get(&host).copied()
    }
}

/// Who is on hosts.
#[derive(Debug, Default)]
pub struct Guests {
    /// What was seen, with guests where they will be.
    pub observed: Observed,
    used: BTreeMap<HostId, Resources>,
}

impl Guests {
    /// What guests use of the host; nothing is known of a host that is not there.
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

/// Something that is known, or worked out once it is asked for.
pub struct Fact<'a, T> {
    known: OnceLock<T>,
    find: Option<Box<dyn Fn() -> T + Send + Sync + 'a>>,
}

impl<'a, T> Fact<'a, T> {
    /// Nothing of the kind.
    pub fn nothing() -> Self {
        Self { known: OnceLock::new(), find: None }
    }

    /// Works it out when it is first asked for.
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
