//! Fleets with leases, drawn from a seed: time passes, requests arrive one after another, and the real
//! admission answers them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Admission, Refusal, Replanned, Rules, Wanted};
use leases::calendar::Calendar;
use leases::host::{Health, Host, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease::{EndAction, Lease, NewLease};
use leases::lease_type::LeaseType;
use leases::project::{Owner, ProjectId, UserId};
use leases::requirement::{Operator, Requirement};
use leases::status::LeaseStatus;
use leases::terms::{Affinity, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms, Terms};
use leases::window::Window;
use leases::work::{Budget, DEFAULT_UNITS};

use crate::numbers::Numbers;

/// Leases start and end on a grid of these hours.
const GRID_HOURS: i64 = 3;
/// Lengths of leases, in steps of the grid: hours, a day, a week.
const LENGTHS: [i64; 9] = [1, 2, 3, 4, 8, 8, 16, 24, 56];
/// Average size of a request: hosts multiplied by hours.
const HOST_HOURS: u64 = 90;
/// Maximum time until a request's start, in steps of the grid.
const AHEAD: u64 = 48;
/// Time until hosts are closed or fail, and until refusals count. By then, some leases have started.
const WARM_UP: SignedDuration = SignedDuration::from_hours(72);
/// Leases that start sooner than this don't move any more.
const SETTLED: SignedDuration = SignedDuration::from_mins(30);

/// Answer to a request.
pub enum Answer {
    /// The lease, and the leases that moved for it with their new hosts.
    Given { lease: Box<Lease>, moved: Vec<Lease> },
    /// There aren't enough hosts.
    Refused,
}

/// Hosts, and leases on them.
pub struct Fleet {
    numbers: Numbers,
    pub inventory: Inventory,
    pub calendar: Calendar,
    leases: BTreeMap<LeaseId, Lease>,
    rules: Rules,
    now: Timestamp,
    /// Maximum time between two requests.
    interval: SignedDuration,
    requests: u128,
}

impl Fleet {
    /// Draws a fleet in which leases have started, and some hosts are closed or have failed.
    pub fn draw(seed: u64, hosts: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let inventory = Inventory::new((1..=hosts).map(|id| host(id, &mut numbers)), []);
        let cleaning = if numbers.percent(50) { 30 } else { 0 };
        // Requests add up to 80 to 160 % of all hosts.
        let load = 80 + numbers.below(81);
        let interval = SignedDuration::from_mins((2 * 60 * HOST_HOURS * 100 / (hosts * load)) as i64);
        let mut fleet = Self {
            numbers,
            inventory,
            calendar: Calendar::new(SignedDuration::from_mins(cleaning)),
            leases: BTreeMap::new(),
            rules: Rules::default(),
            now: Timestamp::UNIX_EPOCH,
            interval,
            requests: 0,
        };
        while fleet.now < Timestamp::UNIX_EPOCH + WARM_UP {
            let terms = fleet.next_request();
            let (answer, _) = fleet.answer(&terms);
            fleet.enter(answer);
        }
        for id in 1..=hosts {
            let state = fleet.numbers.below(20);
            let host = fleet.inventory.host_mut(HostId(id)).expect("there");
            host.reservable = state != 0;
            host.health = if state == 1 { Health::Failed } else { Health::Up };
        }
        fleet
    }

    /// Whether a lease can be moved: it's pending, its start isn't near, and it has only whole hosts. An
    /// immediate lease can't move.
    pub fn may_move(&self, lease: &Lease) -> bool {
        lease.status == LeaseStatus::Pending
            && lease.window.start() >= self.now + SETTLED
            && !matches!(lease.lease_type, LeaseType::Immediate { .. })
            && lease.reservations.iter().all(|r| matches!(r.terms, ReservationTerms::Hosts(_)))
    }

    pub fn movable(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values().filter(|lease| self.may_move(lease))
    }

    pub fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// Lets some time pass and draws the next request.
    pub fn next_request(&mut self) -> Terms {
        self.pass();
        self.requests += 1;
        let numbers = &mut self.numbers;
        let step = SignedDuration::from_hours(GRID_HOURS);
        let steps = self.now.duration_since(Timestamp::UNIX_EPOCH).as_hours() / GRID_HOURS;
        let start = Timestamp::UNIX_EPOCH + step * (1 + steps + numbers.below(AHEAD) as i64) as i32;
        let length = step * LENGTHS[numbers.below(LENGTHS.len() as u64) as usize] as i32;
        let window = Window::starting(start, length);
        let hosts = self.inventory.hosts().len() as u64;
        if numbers.percent(5) {
            let instances = ReservationTerms::Instances(InstancesTerms {
                size: InstanceSize::new(8, 8000, 10).expect("a size"),
                amount: NonZeroU32::new(1 + numbers.below(4) as u32).expect("some"),
                affinity: Affinity::Any,
                requirement: Requirement::NONE,
                survives: None,
                extras: None,
            });
            return Terms::new(window, None, vec![instances]).expect("terms");
        }
        let parts = if numbers.percent(10) { 2 } else { 1 };
        let reservations = (0..parts).map(|_| ReservationTerms::Hosts(of_hosts(hosts, numbers))).collect();
        let terms = Terms::new(window, None, reservations).expect("terms");
        if numbers.percent(5) {
            let deadline = start + SignedDuration::from_hours(48);
            return terms.of_type(LeaseType::BestEffort { deadline });
        }
        terms
    }

    /// Lets some time pass: leases start and end.
    fn pass(&mut self) {
        let minutes = self.numbers.below(1 + self.interval.as_mins() as u64) as i64;
        self.now += SignedDuration::from_mins(minutes);
        let (now, cleaning) = (self.now, self.calendar.cleaning_time());
        self.calendar.prune(now);
        self.leases.retain(|_, lease| lease.window.end() + cleaning > now);
        for lease in self.leases.values_mut().filter(|lease| lease.window.start() <= now) {
            lease.status = LeaseStatus::Active;
        }
    }

    /// Requests a lease, as the service does. Returns the answer and the work it took.
    pub fn answer(&self, terms: &Terms) -> (Answer, u64) {
        let (facts, budget) = (HostFacts::nothing(), Budget::new(DEFAULT_UNITS));
        let admission = self.admission(&self.calendar, &facts).with_budget(&budget);
        let answer = match self.decide(&admission, terms) {
            Ok(lease) => Answer::Given { lease: Box::new(lease), moved: Vec::new() },
            Err(refusal) if terms.has_dates() && refusal.is_lack() => {
                let wanted = Wanted::for_new(&project(), terms);
                let others = self.leases.values().filter(|lease| lease.status == LeaseStatus::Pending);
                let decide = |admission: &Admission<'_>| self.decide(admission, terms);
                let settled = self.now + SETTLED;
                match admission.replan(others, settled, (&wanted, &refusal), decide, |lease| lease) {
                    Some(Replanned { decided, moved }) => Answer::Given { lease: Box::new(decided), moved },
                    None => Answer::Refused,
                }
            }
            Err(_) => Answer::Refused,
        };
        (answer, budget.spent())
    }

    /// Whether the request would be granted after these moves, without further ones.
    pub fn could_have(&self, terms: &Terms, moved: &[Lease]) -> Result<(), String> {
        let mut calendar = self.calendar.clone();
        calendar.put_all(moved, self.now).map_err(|conflict| conflict.to_string())?;
        let facts = HostFacts::nothing();
        let decided = self.decide(&self.admission(&calendar, &facts), terms);
        decided.map(|_| ()).map_err(|refusal| format!("{refusal} ({:?})", refusal.hint()))
    }

    /// Checks that the lease and the leases that moved for it have only suitable hosts, and no host that
    /// another lease has.
    pub fn check(&self, lease: &Lease, moved: &[Lease]) -> Result<(), String> {
        let ids: BTreeSet<LeaseId> = moved.iter().map(|lease| lease.id).collect();
        let stay = self.leases.values().filter(|lease| !ids.contains(&lease.id));
        let calendar = Calendar::new(self.calendar.cleaning_time());
        let calendar = calendar.with_leases(stay.chain(moved).chain([lease]), self.now);
        let calendar = calendar.map_err(|conflict| conflict.to_string())?;
        for lease in moved.iter().chain([lease]) {
            let cleaned = lease.window.widened(calendar.cleaning_time());
            for reservation in &lease.reservations {
                let ReservationTerms::Hosts(terms) = &reservation.terms else { continue };
                let before = self.lease(lease.id).and_then(|lease| lease.reservation(reservation.id));
                let kept = before.map(|before| before.allocation.hosts()).unwrap_or_default();
                let hosts = reservation.allocation.hosts();
                let suits = |host: &HostId| kept.contains(host) || self.suits(*host, terms);
                let is_free = |host: &HostId| calendar.host_free(*host, &cleaned, Some(lease.id));
                if let Some(host) = hosts.iter().find(|host| !suits(host) || !is_free(host)) {
                    return Err(format!("lease {} can't have host {host}", lease.id));
                }
                let kinds: BTreeSet<&str> = hosts.iter().map(|host| self.kind(*host)).collect();
                if terms.properties.homogeneous && kinds.len() > 1 {
                    return Err(format!("lease {} has hosts that differ", lease.id));
                }
            }
        }
        Ok(())
    }

    /// Whether the host is usable and has the requested properties.
    pub fn suits(&self, host: HostId, terms: &HostsTerms) -> bool {
        let host = self.inventory.host(host).expect("there");
        host.reservable && host.health == Health::Up && terms.resource.matches(host)
    }

    /// Kind of a host. Hosts of the same kind are equal.
    pub fn kind(&self, host: HostId) -> &str {
        &self.inventory.host(host).expect("there").cpu_info
    }

    /// Records the leases of an answer.
    pub fn enter(&mut self, answer: Answer) {
        let Answer::Given { lease, moved } = answer else { return };
        let mut given = moved;
        given.push(*lease);
        self.calendar.put_all(&given, self.now).expect("no host is given twice");
        self.leases.extend(given.into_iter().map(|lease| (lease.id, lease)));
    }

    fn admission<'a>(&'a self, calendar: &'a Calendar, facts: &'a HostFacts<'a>) -> Admission<'a> {
        Admission::new(calendar, &self.inventory, &self.rules, facts, self.now)
    }

    fn decide(&self, admission: &Admission<'_>, terms: &Terms) -> Result<Lease, Refusal> {
        let grant = admission.grant(&project(), terms)?;
        let new = NewLease {
            id: LeaseId(self.requests),
            name: String::new(),
            owner: Owner { project: project(), user: UserId("user".to_owned()) },
            end_action: EndAction::DeleteGuests,
            reservations: (0..grant.allocations.len() as u128)
                .map(|position| ReservationId(10 * self.requests + position))
                .collect(),
        };
        Ok(Lease::new(new, grant.terms, grant.allocations, None))
    }
}

fn project() -> ProjectId {
    ProjectId("project".to_owned())
}

/// A host in one of three racks. A third of all hosts have an accelerator, half have twice the memory, and
/// some are older.
fn host(id: u64, numbers: &mut Numbers) -> Host {
    let memory_mib = if numbers.percent(50) { 256_000 } else { 512_000 };
    let mut host = Host::new(HostId(id), format!("node{id}"), 64, memory_mib, 4000);
    if numbers.percent(33) {
        host.capabilities.insert("gpu".to_owned(), "a".to_owned());
    }
    host.capabilities.insert("rack".to_owned(), (id % 3).to_string());
    host.cpu_info = if numbers.percent(40) { "old" } else { "new" }.to_owned();
    host
}

/// Terms for one to six hosts, sometimes with a maximum two above. Some require a property, some require
/// equal hosts.
fn of_hosts(hosts: u64, numbers: &mut Numbers) -> HostsTerms {
    let min = match numbers.below(20) {
        0..9 => 1,
        9..14 => 2,
        14..17 => 3,
        17..19 => 4,
        _ => 6,
    };
    let max = if numbers.percent(10) { min + 2 } else { min };
    let compare = |operator, name: &str, value: String| Requirement::compare(operator, name, value);
    let requirement = match numbers.below(20) {
        0..10 => Ok(Requirement::NONE),
        10..13 => compare(Operator::Equal, "gpu", "a".to_owned()),
        13..15 => compare(Operator::GreaterOrEqual, "memory_mb", "500000".to_owned()),
        15..17 => compare(Operator::NotEqual, "rack", numbers.below(3).to_string()),
        17 => compare(Operator::Equal, "rack", numbers.below(3).to_string()),
        _ => {
            let names = (0..2 * min).map(|_| format!("node{}", 1 + numbers.below(hosts))).collect();
            Requirement::one_of("hypervisor_hostname", names)
        }
    };
    let mut terms = HostsTerms::new(min, max).expect("a range").requiring(requirement.expect("well formed"));
    if min > 1 && numbers.percent(15) {
        Arc::make_mut(&mut terms.properties).homogeneous = true;
    }
    terms
}
