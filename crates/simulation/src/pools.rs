//! Free pools in simulations: operators create, rename, change and delete them and move, close and open their
//! hosts, and leases keep the hosts of the pools that they asked for (docs/reference/pools.md). The checks read
//! the store and share no code with what they judge.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use leases::free_pool::{DEFAULT_NAME, FreePool};
use leases::ids::{FreePoolId, HostId, LeaseId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::requirement::{Operator, Requirement, RequirementError};
use leases::status::LeaseStatus;
use leases::terms::ReservationTerms;
use leases::usage::{By, Kind, Query, Span, sums};
use leases::window::Window;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use service::NewLease;
use store::{HostRecord, Snapshot};

use crate::verdict::Verdict;

pub(crate) const NAMES: [&str; 4] = ["p1", "p2", "p3", DEFAULT_NAME];
/// Property that only pools set for their hosts.
pub(crate) const TIER: &str = "tier";
/// Values of that property.
pub(crate) const TIERS: [&str; 2] = ["fast", "slow"];

/// Average interval between changes of pools.
const CHORE_EVERY_S: i64 = 4 * 3600;

/// A requirement on the pool of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// The pool has that name when the host is allocated.
    Name(&'static str),
    /// The pool has that tier as long as the lease has the host.
    Tier(&'static str),
}

impl Wish {
    fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(Self::Name).chain(TIERS.into_iter().map(Self::Tier))
    }

    fn requirement(self) -> Result<Requirement, RequirementError> {
        match self {
            Self::Name(name) => Requirement::compare(Operator::Equal, "free_pool", name),
            Self::Tier(tier) => Requirement::compare(Operator::Equal, TIER, tier),
        }
    }

    /// The wish that a reservation was made with, if any.
    fn of(terms: &ReservationTerms) -> Option<Self> {
        let ReservationTerms::Hosts(hosts) = terms else { return None };
        Self::all().find(|wish| wish.requirement().as_ref() == Ok(&hosts.resource))
    }
}

/// An operator's action on pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    Create,
    Rename,
    Specify,
    Remove,
    /// Take a host without leases out of its pool, and add it to another one.
    Move,
    /// Transfer a host to another pool with everything on it.
    Transfer,
    /// Close a host for new leases.
    Close,
    /// Open it again.
    Open,
    /// Change the overcommit ratios of a running lease's hosts.
    OverCommit,
}

/// Pools of leased hosts at the time of allocation.
type Given = BTreeMap<(LeaseId, HostId), FreePoolId>;

/// Remembers the pools of leased hosts between checks, and draws the operators' actions.
#[derive(Debug)]
pub(crate) struct PoolWatch {
    /// Separate random numbers, so that pools change the rest of a simulation only through their effects.
    pub rng: SmallRng,
    given: Given,
    /// Names of pools at the last check.
    called: BTreeMap<FreePoolId, String>,
    counted: PoolSchedule,
}

impl PoolWatch {
    /// One simulation in four has several pools. `None` for all other seeds.
    pub fn of(seed: u64) -> Option<Self> {
        let rng = SmallRng::seed_from_u64(seed ^ 0x70_6f_6f_6c);
        (seed % 4 == 3).then(|| Self {
            rng,
            given: Given::new(),
            called: BTreeMap::new(),
            counted: PoolSchedule::default(),
        })
    }

    /// Draws the time of the next action.
    pub fn next(&mut self, now: Timestamp) -> Timestamp {
        now + SignedDuration::from_secs(self.rng.random_range(60..2 * CHORE_EVERY_S))
    }

    /// Draws the next action.
    pub fn chore(&mut self) -> Chore {
        let all = [
            Chore::Create,
            Chore::Rename,
            Chore::Specify,
            Chore::Remove,
            Chore::Move,
            Chore::Transfer,
            Chore::Transfer,
            Chore::Close,
            Chore::Open,
            Chore::Open,
            Chore::OverCommit,
            Chore::OverCommit,
        ];
        all.choose(&mut self.rng).copied().unwrap_or(Chore::Move)
    }

    /// Makes some requests for hosts ask for hosts of a pool.
    pub fn narrow(&mut self, new: &mut NewLease) {
        for terms in &mut new.terms.reservations {
            let wishes: Vec<Wish> = Wish::all().collect();
            let wish = wishes.choose(&mut self.rng).copied();
            if let ReservationTerms::Hosts(hosts) = terms
                && hosts.resource == Requirement::NONE
                && self.rng.random_bool(0.5)
                && let Some(Ok(requirement)) = wish.map(Wish::requirement)
            {
                hosts.resource = requirement;
            }
        }
    }

    /// Hosts of leases are in pools that the leases asked for.
    pub fn check(&mut self, contents: &Snapshot, now: Timestamp) -> Verdict {
        let pools = Pools::of(contents);
        let mut given = Given::new();
        // Leases that are ending are skipped: they are given nothing any more, and may have failed and
        // released their hosts before. If a lease's end passed while no service ran, its hosts only have to
        // be taken back. A lease that was changed to end at its start never has its hosts, so an operator is
        // free to move them.
        let has = |lease: &&Lease| {
            let has_time = !lease.window.is_empty() && lease.window.end() > now;
            lease.keeps_resources() && !lease.ending() && has_time
        };
        for lease in contents.leases.iter().map(|record| &record.lease).filter(has) {
            for (reservation, host) in hosts_of(lease) {
                let (id, known) = ((lease.id, host), self.given.get(&(lease.id, host)));
                let pool = pools
                    .of_host(host)
                    .ok_or_else(|| format!("lease {} has host {host}, which is in no pool", lease.id))?;
                let terms = lease.reservation(reservation).map(|own| &own.terms);
                let wish = terms.and_then(Wish::of);
                if matches!(wish, Some(Wish::Name(_))) && known.is_some_and(|known| *known != pool) {
                    return Err(format!("host {host} of lease {} has gone to another pool", lease.id));
                }
                match wish {
                    // The pool may have been renamed between the allocation and this check.
                    Some(Wish::Name(name))
                        if known.is_none()
                            && pools.name(pool) != name
                            && self.called_before(pool) != Some(name) =>
                    {
                        let is = pools.name(pool);
                        return Err(format!(
                            "lease {} wants hosts of {name}, and has {host} of {is}",
                            lease.id
                        ));
                    }
                    Some(Wish::Tier(tier)) if pools.tier(pool) != Some(tier) => {
                        let is = pools.tier(pool);
                        return Err(format!("lease {} wants {tier} hosts, and {host} is {is:?}", lease.id));
                    }
                    _ => {}
                }
                given.insert(id, pool);
            }
        }
        self.given = given;
        self.called = pools.names.iter().map(|(pool, (name, _))| (*pool, (*name).to_owned())).collect();
        self.counted.follow(contents, &pools);
        Ok(())
    }

    /// The pool's name at the last check.
    fn called_before(&self, pool: FreePoolId) -> Option<&str> {
        // The default pool has no record before it is renamed.
        let always_there = (pool == FreePool::DEFAULT).then_some(DEFAULT_NAME);
        self.called.get(&pool).map(String::as_str).or(always_there)
    }

    /// Recorded usage by pool equals what leases had.
    pub fn check_usage(&self, usage: &[Span], now: Timestamp) -> Verdict {
        self.counted.check(usage, now)
    }
}

/// Hosts that a lease has as a whole, by reservation.
fn hosts_of(lease: &Lease) -> impl Iterator<Item = (ReservationId, HostId)> {
    lease.reservations.iter().flat_map(|reservation| {
        let whole = matches!(reservation.allocation, Allocation::Hosts(_));
        let hosts = reservation.allocation.hosts().into_iter().filter(move |_| whole);
        hosts.map(|host| (reservation.id, host)).collect::<Vec<_>>()
    })
}

/// Pools and hosts as recorded in the store.
struct Pools<'a> {
    names: BTreeMap<FreePoolId, (&'a str, Option<&'a str>)>,
    hosts: BTreeMap<HostId, &'a HostRecord>,
}

impl<'a> Pools<'a> {
    fn of(contents: &'a Snapshot) -> Self {
        let said = |record: &'a store::FreePoolRecord| {
            let pool = &record.pool;
            (pool.id, (pool.name.as_str(), pool.extra_specs.get(TIER).map(String::as_str)))
        };
        let hosts = contents.hosts.iter().map(|record| (record.host.id, record));
        Self { names: contents.free_pools.iter().map(said).collect(), hosts: hosts.collect() }
    }

    fn of_host(&self, host: HostId) -> Option<FreePoolId> {
        self.hosts.get(&host).map(|record| record.host.pool)
    }

    /// A pool without a record is the default pool.
    fn name(&self, pool: FreePoolId) -> &'a str {
        self.names.get(&pool).map_or(DEFAULT_NAME, |(name, _)| name)
    }

    fn tier(&self, pool: FreePoolId) -> Option<&'a str> {
        self.names.get(&pool).and_then(|(_, tier)| *tier)
    }
}

/// A lease's use of a host: name of the pool when it began, its beginning, and its latest end.
type Holding = (String, Timestamp, Timestamp);

/// Use of hosts by leases over time, by pool name.
#[derive(Debug, Default)]
struct PoolSchedule {
    has: BTreeMap<(LeaseId, HostId), Holding>,
    /// Host-time used so far, in microseconds.
    had: BTreeMap<(LeaseId, String), u128>,
}

impl PoolSchedule {
    /// Follows the current leases. A lease's changes are dated by its last update.
    fn follow(&mut self, contents: &Snapshot, pools: &Pools<'_>) {
        for record in &contents.leases {
            let lease = &record.lease;
            let at = record.updated_at.unwrap_or(record.created_at);
            let active = lease.status == LeaseStatus::Active;
            let hosts: BTreeSet<HostId> = hosts_of(lease).filter(|_| active).map(|(_, host)| host).collect();
            let known = (lease.id, HostId(0))..=(lease.id, HostId(u64::MAX));
            let known: Vec<HostId> = self.has.range(known).map(|((_, host), _)| *host).collect();
            for host in known {
                self.go_on(lease, host, hosts.contains(&host), at);
            }
            for host in hosts {
                let name = pools.of_host(host).map_or(DEFAULT_NAME, |pool| pools.name(pool));
                let new = || (name.to_owned(), at, lease.window.end());
                self.has.entry((lease.id, host)).or_insert_with(new);
            }
        }
    }

    /// Continues the use of a host, perhaps with another end, or ends it.
    fn go_on(&mut self, lease: &Lease, host: HostId, goes_on: bool, at: Timestamp) {
        let id = (lease.id, host);
        let Some((name, since, end)) = self.has.get(&id).cloned() else { return };
        if goes_on && end == lease.window.end() {
            return;
        }
        let time = end.min(at).max(since).duration_since(since);
        *self.had.entry((lease.id, name.clone())).or_default() += time.as_micros() as u128;
        if goes_on {
            self.has.insert(id, (name, at, lease.window.end()));
        } else {
            self.has.remove(&id);
        }
    }

    fn check(&self, usage: &[Span], now: Timestamp) -> Verdict {
        let all = Window::new(Timestamp::MIN, now).map_err(|error| error.to_string())?;
        let by = By { lease: true, pool: true, ..By::default() };
        let mut counted: BTreeMap<(LeaseId, String), u128> = BTreeMap::new();
        for sum in sums(usage, &Query { periods: vec![all], by, ..Query::default() }) {
            if let (Kind::Host, Some(lease), Some(pool)) = (sum.kind, sum.group.lease, sum.group.pool) {
                *counted.entry((lease, pool)).or_default() += sum.time_us * u128::from(sum.size.count);
            }
        }
        let both: BTreeSet<_> = self.had.keys().chain(counted.keys()).collect();
        for key in both {
            let of = |map: &BTreeMap<(LeaseId, String), u128>| map.get(key).copied().unwrap_or_default();
            let (had, counted) = (of(&self.had), of(&counted));
            if had != counted {
                let (lease, pool) = key;
                return Err(format!("lease {lease} had {had} of pool {pool}, but {counted} is counted"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use leases::host::Host;
    use leases::terms::HostsTerms;
    use store::{FreePoolRecord, LeaseRecord, Version};

    use crate::testing::lease;

    /// An instant within the lease.
    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    /// A lease of host 1 with that wish, and one pool per tuple of host, name and tier.
    fn contents(wish: Wish, pools: &[(u64, &str, Option<&str>)]) -> Snapshot {
        let at = Timestamp::UNIX_EPOCH;
        let hosts =
            HostsTerms::new(1, 1).expect("a range").requiring(wish.requirement().expect("well formed"));
        let lease = lease(1, ReservationTerms::Hosts(hosts), 1, (0, 60));
        let mut contents = Snapshot::default();
        contents.leases.push(LeaseRecord::new(lease, BTreeMap::new(), at));
        for (number, (host, name, tier)) in (10..).zip(pools) {
            let id = FreePoolId(number);
            let specs = tier.map(|tier| (TIER.to_owned(), tier.to_owned()));
            let pool = FreePool {
                id,
                name: (*name).to_owned(),
                extra_specs: specs.into_iter().collect(),
                end_action: None,
            };
            let (version, created_at, updated_at) = (Version::FIRST, at, None);
            contents.free_pools.push(FreePoolRecord { pool, version, created_at, updated_at });
            let host = Host { pool: id, ..Host::new(HostId(*host), "h", 1, 1, 1) };
            contents.hosts.push(HostRecord { host, version, created_at, updated_at });
        }
        contents
    }

    fn watch() -> PoolWatch {
        PoolWatch::of(3).expect("a seed with pools")
    }

    #[test]
    fn a_host_of_another_pool_than_was_asked_for_is_noticed() {
        let (name, tier) = (Wish::Name("p1"), Wish::Tier("fast"));
        let said = |wish, pools: &[_]| watch().check(&contents(wish, pools), AT).expect_err("wrong");
        assert!(said(name, &[(1, "p2", None)]).contains("wants hosts of p1, and has 1 of p2"));
        assert!(said(name, &[(2, "p1", None)]).contains("which is in no pool"));
        assert!(said(tier, &[(1, "p1", Some("slow"))]).contains("wants fast hosts"));
        assert!(said(tier, &[(1, "p1", None)]).contains("wants fast hosts"));
    }

    #[test]
    fn a_pool_may_be_renamed_but_its_leased_hosts_stay_and_are_what_they_were() {
        let (name, tier) = (Wish::Name("p1"), Wish::Tier("fast"));
        let mut pools = watch();
        assert_eq!(pools.check(&contents(name, &[(1, "p1", None)]), AT), Ok(()));
        assert_eq!(pools.check(&contents(name, &[(1, "p2", None)]), AT), Ok(()), "it is only a name");
        let mut none = contents(name, &[(1, "p1", None)]);
        none.leases.clear();
        let mut renamed = watch();
        assert_eq!(renamed.check(&none, AT), Ok(()));
        let given = contents(name, &[(1, "p2", None)]);
        assert_eq!(renamed.check(&given, AT), Ok(()), "it was renamed after the host was given");
        let elsewhere = contents(name, &[(2, "p2", None), (1, "p1", None)]);
        assert!(pools.check(&elsewhere, AT).expect_err("wrong").contains("has gone to another pool"));
        let mut pools = watch();
        assert_eq!(pools.check(&contents(tier, &[(1, "p1", Some("fast"))]), AT), Ok(()));
        let as_good = contents(tier, &[(2, "p1", Some("fast")), (1, "p2", Some("fast"))]);
        assert_eq!(pools.check(&as_good, AT), Ok(()), "it is what was asked for there as well");
        assert!(pools.check(&contents(tier, &[(1, "p1", Some("slow"))]), AT).is_err());
    }

    #[test]
    fn hosts_of_a_lease_that_ends_when_it_starts_go_where_they_like() {
        let empty = |pools: &[_]| {
            let mut contents = contents(Wish::Name("p1"), pools);
            let start = AT + SignedDuration::from_mins(10);
            contents.leases[0].lease.window = Window::starting(start, SignedDuration::ZERO);
            contents
        };
        let mut pools = watch();
        assert_eq!(pools.check(&contents(Wish::Name("p1"), &[(1, "p1", None)]), AT), Ok(()));
        assert_eq!(pools.check(&empty(&[(1, "p2", None), (2, "p1", None)]), AT), Ok(()));
        assert_eq!(pools.check(&empty(&[(2, "p2", None)]), AT), Ok(()));
    }

    #[test]
    fn usage_of_another_pool_is_noticed() {
        let mut active = contents(Wish::Name("p1"), &[(1, "p1", None)]);
        active.leases[0].lease.status = LeaseStatus::Active;
        let mut pools = watch();
        assert_eq!(pools.check(&active, AT), Ok(()));
        let mut over = active.clone();
        over.leases[0].lease.status = LeaseStatus::Terminated;
        over.leases[0].updated_at = Some(Timestamp::UNIX_EPOCH + SignedDuration::from_mins(10));
        assert_eq!(pools.check(&over, AT), Ok(()));
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(2);
        let text = pools.check_usage(&[], now).expect_err("nothing is counted");
        assert!(text.contains("had 600000000 of pool p1, but 0 is counted"), "{text}");
    }
}
