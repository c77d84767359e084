//! Pending leases move to other hosts if that makes a new request possible. Exhaustive on small fleets.

use std::collections::{BTreeMap, BTreeSet};

use leases::admission::{Admission, Replanned, Rules, Wanted};
use leases::calendar::Calendar;
use leases::host::{Host, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::HostId;
use leases::lease::{Allocation, Lease};
use leases::requirement::{Operator, Requirement};
use leases::terms::{HostsTerms, ReservationTerms, Terms};

use crate::generate::{at, given, new_lease, project, window};

/// Limits on hosts and leases.
const HOSTS: usize = 5;
const LEASES: usize = 4;
/// All windows on a grid of three steps.
const WINDOWS: [(i64, i64); 6] = [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)];

/// A kind of lease: its window, and whether it needs hosts with the property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    window: usize,
    special: bool,
}

/// A pending lease: its kind and number of hosts.
type Waiting = (Kind, usize);

impl Kind {
    /// All kinds, or only those without requirements.
    fn all(special: bool) -> Vec<Self> {
        let kinds = |special| (0..WINDOWS.len()).map(move |window| Self { window, special });
        kinds(false).chain(special.then(|| kinds(true)).into_iter().flatten()).collect()
    }

    /// Bitmask of the grid steps it covers.
    fn steps(self) -> u8 {
        let (start, end) = WINDOWS[self.window];
        (start..end).map(|step| 1 << step).sum()
    }

    fn window(self) -> leases::window::Window {
        let (start, end) = WINDOWS[self.window];
        window(60 + 10 * start, 60 + 10 * end)
    }

    fn terms(self, count: u32) -> ReservationTerms {
        let special = Requirement::compare(Operator::Equal, "gpu", "a").expect("well formed");
        let requirement = if self.special { special } else { Requirement::NONE };
        ReservationTerms::Hosts(HostsTerms::new(count, count).expect("a range").requiring(requirement))
    }
}

/// A fleet of `hosts` hosts. The first `special` ones have the property.
#[derive(Clone, Copy, Debug)]
struct Fleet {
    hosts: usize,
    special: usize,
}

impl Fleet {
    fn suits(self, host: usize, kind: Kind) -> bool {
        host < self.special || !kind.special
    }

    fn inventory(self) -> Inventory {
        let host = |number: usize| {
            let mut host = Host::new(HostId(number as u64), format!("node{number}"), 4, 1000, 1000);
            if number < self.special {
                host.capabilities.insert("gpu".to_owned(), "a".to_owned());
            }
            host
        };
        Inventory::new((0..self.hosts).map(host), [])
    }

    /// Hosts that suit the kind and aren't taken by other leases at the same time.
    fn free(self, kind: Kind, leases: &[Waiting], on: &[Vec<usize>]) -> Vec<usize> {
        let suiting = (0..self.hosts).filter(|host| self.suits(*host, kind));
        let beside = |host: &usize| {
            let mut there = leases.iter().zip(on).filter(|(_, on)| on.contains(host));
            there.all(|((lease, _), _)| lease.steps() & kind.steps() == 0)
        };
        suiting.filter(beside).collect()
    }

    /// All valid allocations for the leases, up to symmetry.
    fn places(self, leases: &[Waiting]) -> Vec<Vec<Vec<usize>>> {
        let Some(((kind, count), before)) = leases.split_last() else { return vec![Vec::new()] };
        let mut all: BTreeMap<_, Vec<Vec<usize>>> = BTreeMap::new();
        for on in self.places(before) {
            let free = self.free(*kind, before, &on);
            for hosts in subsets(&free, *count) {
                let on: Vec<Vec<usize>> = on.iter().cloned().chain([hosts]).collect();
                all.entry(self.up_to_symmetry(leases, &on)).or_insert(on);
            }
        }
        all.into_values().collect()
    }

    /// The kinds of leases on each host, sorted so that swapping equal hosts, or leases of the same kind,
    /// makes no difference.
    fn up_to_symmetry(self, leases: &[Waiting], on: &[Vec<usize>]) -> Vec<(bool, Vec<Kind>)> {
        let of_host = |host: usize| {
            let there = leases.iter().zip(on).filter(|(_, on)| on.contains(&host));
            (host < self.special, there.map(|((kind, _), _)| *kind).collect())
        };
        let mut hosts: Vec<(bool, Vec<Kind>)> = (0..self.hosts).map(of_host).collect();
        hosts.sort_unstable();
        hosts
    }

    /// Decides each request that has too few free hosts now, although another allocation of the leases leaves
    /// enough. Returns the number of requests.
    fn judge(self, leases: &[Waiting]) -> u64 {
        let kinds = Kind::all(self.special > 0);
        let all = self.places(leases);
        let inventory = self.inventory();
        let mut requests = 0;
        for kind in kinds {
            let free: Vec<usize> = all.iter().map(|on| self.free(kind, leases, on).len()).collect();
            let most = free.iter().copied().max().unwrap_or(0);
            for (on, free) in all.iter().zip(free) {
                for count in free + 1..=most {
                    requests += 1;
                    self.request(&inventory, (leases, on), kind, count as u32);
                }
            }
        }
        requests
    }

    fn request(
        self,
        inventory: &Inventory,
        (waiting, on): (&[Waiting], &[Vec<usize>]),
        kind: Kind,
        count: u32,
    ) {
        let mut leases = Vec::new();
        for (number, ((kind, count), on)) in (1..).zip(waiting.iter().zip(on)) {
            let hosts = Allocation::Hosts(on.iter().map(|host| HostId(*host as u64)).collect());
            leases.push(given(number, kind.window(), kind.terms(*count as u32), hosts));
        }
        let calendar = Calendar::default().with_leases(&leases, at(0)).expect("free");
        let (rules, facts) = (Rules::default(), HostFacts::nothing());
        let admission = Admission::new(&calendar, inventory, &rules, &facts, at(0));
        let terms = Terms::new(kind.window(), None, vec![kind.terms(count)]).expect("terms");
        let decide = |admission: &Admission<'_>| {
            let grant = admission.grant(&project(), &terms)?;
            Ok(Lease::new(new_lease(99, 1), grant.terms, grant.allocations, None))
        };
        let lack = decide(&admission).expect_err("too few are free");
        let wanted = Wanted::for_new(&project(), &terms);
        let replanned = admission.replan(&leases, at(0), (&wanted, &lack), decide, |lease| lease);
        let Some(Replanned { decided, moved }) = replanned else {
            panic!("{self:?}: {count} hosts for {kind:?} beside {waiting:?} on {on:?}: {lack:?}");
        };
        assert_eq!(decided.reservations[0].allocation.amount(), u64::from(count));
        let ids: BTreeSet<_> = moved.iter().map(|lease| lease.id).collect();
        let stay = leases.iter().filter(|lease| !ids.contains(&lease.id));
        for lease in &moved {
            let before = leases.iter().find(|before| before.id == lease.id).expect("one of them");
            assert!(lease.has_as_much_as(before) && lease.window == before.window, "{lease:?}");
            let special = waiting[lease.id.0 as usize - 1].0.special;
            let suits = |host: &HostId| !special || (host.0 as usize) < self.special;
            assert!(lease.reservations[0].allocation.hosts().iter().all(suits), "{lease:?}");
        }
        let all = stay.chain(&moved).chain([&decided]);
        Calendar::default().with_leases(all, at(0)).expect("no host is given twice");
    }
}

/// All subsets with `count` members.
fn subsets(of: &[usize], count: usize) -> Vec<Vec<usize>> {
    let Some(fewer) = count.checked_sub(1) else { return vec![Vec::new()] };
    let after = |first: usize| subsets(&of[first + 1..], fewer).into_iter().map(move |rest| (first, rest));
    let all = (0..of.len()).flat_map(after);
    all.map(|(first, rest)| [of[first]].into_iter().chain(rest).collect()).collect()
}

/// All multisets of `count` leases.
fn sets(kinds: &[Waiting], count: usize) -> Vec<Vec<Waiting>> {
    let Some(fewer) = count.checked_sub(1) else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for set in sets(kinds, fewer) {
        let larger = kinds.iter().filter(|kind| set.last().is_none_or(|last| last <= kind));
        all.extend(larger.map(|kind| set.iter().copied().chain([*kind]).collect()));
    }
    all
}

/// Judges all fleets of this size, with leases of one and two hosts. In the largest sets of leases, the
/// number of two-host leases is limited, more strictly for more hosts, because exhaustive tests would take
/// minutes.
fn judge_all(hosts: usize) {
    let mut requests = 0;
    for special in 0..hosts {
        let fleet = Fleet { hosts, special };
        let kinds = Kind::all(special > 0);
        let waiting: Vec<Waiting> = kinds.iter().flat_map(|kind| [(*kind, 1), (*kind, 2)]).collect();
        for count in 1..=LEASES {
            let most = if count < LEASES { count } else { HOSTS - hosts };
            for leases in sets(&waiting, count) {
                if leases.iter().filter(|(_, hosts)| *hosts > 1).count() <= most {
                    requests += fleet.judge(&leases);
                }
            }
        }
    }
    assert!(requests > 0);
    println!("{requests} requests on {hosts} hosts");
}

#[test]
fn cls_10_d_no_request_is_refused_that_moves_could_serve_on_up_to_four_hosts() {
    (2..HOSTS).for_each(judge_all);
}

#[test]
fn cls_10_d_no_request_is_refused_that_moves_could_serve_on_five_hosts() {
    judge_all(HOSTS);
}
