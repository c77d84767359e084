//! Fleets with leases, drawn from a seed: requests come in one after another, time goes on, and the real admission answers.

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
/// What a request is for on average: hosts multiplied by hours.
const HOST_HOURS: u64 = 90;
/// Steps of the grid until the latest start.
const AHEAD: u64 = 48;
/// Time until hosts are closed or fail, and until the first refusal counts: some leases have started then.
const WARM_UP: SignedDuration = SignedDuration::from_hours(72);
/// Leases that start this soon don't move any more.
const SETTLED: SignedDuration = SignedDuration::from_mins(30);

/// The answer to a request.
pub enum Answer {
    /// The lease, and others with the hosts that they have instead.
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
    /// Time between two requests, at most.
    interval: SignedDuration,
    requests: u128,
}

impl Fleet {
    /// A fleet of that seed in which leases have started, and some hosts are closed or have failed.
    pub fn draw(seed: u64, hosts: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let inventory = Inventory::new((1..=hosts).map(|id| host(id, &mut numbers)), []);
        let cleaning = if numbers.percent(50) { 30 } else { 0 };
        // Requests are for 80 to 160 % of all hosts.
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

    /// Whether a lease can be moved: it waits for a start that isn't near, and only has whole hosts.
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

    /// The next request, after some time has passed.
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

    /// Some time passes: leases start and end.
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

    /// Asks for a lease, as the service does. Returns the answer and the work that it took.
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

    /// Whether the lease could be made without further moves after these ones.
    pub fn could_have(&self, terms: &Terms, moved: &[Lease]) -> Result<(), String> {
        let mut calendar = self.calendar.clone();
        calendar.put_all(moved, self.now).map_err(|conflict| conflict.to_string())?;
        let facts = HostFacts::nothing();
        let decided = self.decide(&self.admission(&calendar, &facts), terms);
        decided.map(|_| ()).map_err(|refusal| format!("{refusal} ({:?})", refusal.hint()))
    }

    /// Whether the lease and those that moved for it only have hosts that suit them and that no other lease has.
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

    /// Whether the host is usable, and has the properties that are asked for.
    pub fn suits(&self, host: HostId, terms: &HostsTerms) -> bool {
        let host = self.inventory.host(host).expect("there");
        host.reservable && host.health == Health::Up && terms.resource.matches(host)
    }

    /// The kind of a host: those of one kind are alike.
    pub fn kind(&self, host: HostId) -> &str {
        &self.inventory.host(host).expect("there").cpu_info
    }

    /// Enters what was given.
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

/// A host in one of three racks. A third of hosts have an accelerator, half of them twice the memory, some are older.
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

/// From one to six hosts, some of them with a property, or all alike.
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
