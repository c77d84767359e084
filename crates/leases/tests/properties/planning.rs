//! Random histories of leases and machines. Steps fail, replies are lost, steps arrive late, the process dies
//! between any two steps, hosts fail, and guests start at the last moment. Even so, no host is in two leases,
//! no foreign guest runs in an active lease, no guest is deleted too early, and every lease ends.

mod fleet;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Admission, Changes, HealingInterval, Rules, heal_all};
use leases::calendar::Calendar;
use leases::host::{Health, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::{HostId, LeaseId};
use leases::lease::{Allocation, Lease};
use leases::plan::{Action, Backoff, History, LeaseChange, Place, Plan, PlanRules, Step, World, plan};
use leases::resources::Resources;
use leases::status::LeaseStatus;
use leases::terms::{BeforeEndAction, HostsTerms, ReservationTerms, Terms};
use leases::window::Window;
use proptest::prelude::*;

use self::fleet::Fleet;
use crate::generate::{HORIZON, HOSTS, asked, at, cases, inventory, new_lease, project, windows};

/// Identifier of a lease without any obstacles.
const LAST: u128 = 1000;

/// Choices of a history, consumed one after another; 0 when used up. A shorter list makes a simpler history,
/// so failing histories shrink.
struct Choices(std::vec::IntoIter<u16>);

impl Choices {
    fn below(&mut self, limit: u16) -> u16 {
        self.0.next().unwrap_or(0) % limit
    }

    /// True once in `times`, and never when the choices are used up.
    fn once_in(&mut self, times: u16) -> bool {
        self.below(times) == times - 1
    }
}

struct Play {
    choices: Choices,
    now: Timestamp,
    inventory: Inventory,
    calendar: Calendar,
    rules: Rules,
    facts: HostFacts<'static>,
    plan_rules: PlanRules,
    leases: Vec<Lease>,
    fleet: Fleet,
    history: History,
    /// Steps of earlier plans that can still arrive.
    late: Vec<Step>,
    /// Whether failures have stopped.
    calm: bool,
}

impl Play {
    fn new(leases: &[(Window, Vec<ReservationTerms>)], choices: Vec<u16>) -> Self {
        let inventory = inventory();
        let plan_rules = PlanRules {
            grace: SignedDuration::from_secs(90),
            backoff: Backoff { first: SignedDuration::from_secs(20), longest: SignedDuration::from_mins(3) },
            before_end: BeforeEndAction::Snapshot,
            snapshot_attempts: 2,
            ..PlanRules::default()
        };
        let rules = Rules { before_end_lead: Some(SignedDuration::from_mins(2)), ..Rules::default() };
        let fleet = Fleet::new(&inventory, plan_rules.grace);
        let mut world = Self {
            choices: Choices(choices.into_iter()),
            now: at(0),
            inventory,
            calendar: Calendar::new(SignedDuration::from_mins(1)),
            rules,
            plan_rules,
            facts: HostFacts::nothing(),
            leases: Vec::new(),
            fleet,
            history: History::default(),
            late: Vec::new(),
            calm: false,
        };
        for (number, (window, asked)) in leases.iter().enumerate() {
            world.admit(number as u128 + 1, *window, asked);
        }
        world
    }

    fn admit(&mut self, number: u128, window: Window, asked: &[ReservationTerms]) {
        let terms = Terms::new(window, None, asked.to_vec()).expect("terms");
        let Ok(given) = self.admission().decide(&project(), &terms) else { return };
        let lease = Lease::new(new_lease(number, given.len()), terms, given, self.rules.before_end_lead);
        self.calendar.put(&lease, self.now).expect("admitted");
        self.leases.push(lease);
    }

    fn admission(&self) -> Admission<'_> {
        Admission::new(&self.calendar, &self.inventory, &self.rules, &self.facts, self.now)
    }

    /// An unplanned event.
    fn surprise(&mut self) {
        match self.choices.below(9) {
            1 => self.fleet.land_preemptible(&mut self.choices),
            2 => self.fleet.start_guests_of_leases(&self.leases, &mut self.choices),
            3 => self.fleet.fail(&mut self.choices),
            4 => self.fleet.recover(&mut self.choices),
            5 if self.choices.once_in(4) => {
                if let Some(position) = self.pick() {
                    let deleted = self.leases[position].deleted(self.now);
                    self.commit(&deleted);
                }
            }
            6 => {
                if let Some(position) = self.pick() {
                    let end = at(i64::from(self.choices.below(HORIZON as u16 + 20)));
                    let changes = Changes { end: Some(end), ..Changes::default() };
                    let updated = self.admission().update(&self.leases[position], &changes);
                    if let Ok(updated) = updated {
                        self.commit(&updated.lease);
                    }
                }
            }
            7 if !self.late.is_empty() => {
                let position = usize::from(self.choices.below(self.late.len() as u16));
                let step = self.late.swap_remove(position);
                // The sender doesn't wait for a reply anymore.
                let _unheard = self.fleet.perform(step.action, self.now);
            }
            _ => {}
        }
    }

    fn pick(&mut self) -> Option<usize> {
        let count = self.leases.len() as u16;
        (count > 0).then(|| usize::from(self.choices.below(count)))
    }

    fn commit(&mut self, new: &Lease) {
        self.calendar.put(new, self.now).expect("no conflict");
        assert!(new.status == LeaseStatus::Deleting || new.consistent(), "{new:?}");
        for lease in self.leases.iter_mut().filter(|lease| lease.id == new.id) {
            assert!(lease.status == new.status || lease.status.may_become(new.status), "{lease:?} {new:?}");
            *lease = new.clone();
        }
    }

    fn plan(&mut self) -> Plan {
        let observed = self.fleet.observe();
        for (host, seen) in &observed.hosts {
            self.inventory.host_mut(*host).expect("there").health = seen.health;
        }
        let (calendar, inventory) = (&mut self.calendar, &self.inventory);
        let healing = HealingInterval::default();
        for lease in heal_all(calendar, inventory, &self.rules, &self.facts, &self.leases, healing, self.now)
        {
            self.commit(&lease);
        }
        let world = World::new(&observed, &self.history, &self.plan_rules, self.now);
        let plan = plan(&self.leases, world);
        for change in &plan.changes {
            match change {
                LeaseChange::Becomes(lease) => {
                    let starts = lease.status == LeaseStatus::Active
                        && self.leases.iter().any(|l| l.id == lease.id && l.status == LeaseStatus::Starting);
                    assert!(!starts || lease.window.is_empty() || self.holds_everything(lease), "{lease:?}");
                    self.commit(lease);
                }
                LeaseChange::Forgotten(id) => {
                    assert!(self.leases.iter().any(|l| l.id == *id && l.status == LeaseStatus::Deleting));
                    self.leases.retain(|lease| lease.id != *id);
                }
            }
        }
        self.calendar.prune(self.now);
        self.assert_needed(&plan);
        plan
    }

    fn holds_everything(&self, lease: &Lease) -> bool {
        lease.reservations.iter().all(|reservation| match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                hosts.iter().all(|host| self.fleet.place(*host) == Place::Held(reservation.id))
            }
            Allocation::Slots(slots) => {
                slots.iter().all(|(host, count)| self.fleet.slots(*host, reservation.id) == Some(*count))
            }
            Allocation::FloatingIps(_) => true,
        })
    }

    /// Checks that preemptible guests are stopped or deleted only for a lease that wants their host.
    fn assert_needed(&self, plan: &Plan) {
        for step in &plan.steps {
            let (Action::StopGuest(host, guest) | Action::DeleteGuest(host, guest)) = step.action else {
                continue;
            };
            if self.fleet.is_preemptible(guest) {
                let has =
                    |lease: &Lease| lease.reservations.iter().any(|r| r.allocation.hosts().contains(&host));
                let current = |lease: &&Lease| {
                    matches!(lease.status, LeaseStatus::Starting | LeaseStatus::Active)
                        || lease.window.contains(self.now)
                };
                assert!(self.leases.iter().filter(current).any(has), "{step:?}");
            }
        }
    }

    /// Performs due steps in any order. Some fail, some replies are lost, and the process can die between
    /// steps.
    fn perform(&mut self, plan: &Plan) {
        let mut due: Vec<Step> = plan.due(self.now).cloned().collect();
        while !due.is_empty() {
            if !self.calm && self.choices.once_in(8) {
                self.late.extend(due);
                return;
            }
            let step = due.swap_remove(usize::from(self.choices.below(due.len() as u16)));
            if !self.calm && self.choices.once_in(6) {
                self.history.failed(step.action, self.now, "timed out");
                continue;
            }
            self.assert_applicable(step.action);
            let done = self.fleet.perform(step.action, self.now);
            let reply_lost = !self.calm && self.choices.once_in(6);
            match done {
                Ok(()) if !reply_lost => self.history.succeeded(step.action, self.now),
                Ok(()) => self.history.failed(step.action, self.now, "connection reset"),
                Err(message) => self.history.failed(step.action, self.now, message),
            }
            self.assert_invariants();
        }
    }

    /// Checks that a newly planned step does no harm: a host is verified before it is held, and slots are
    /// granted only if they fit.
    fn assert_applicable(&self, action: Action) {
        match action {
            Action::Hold(host, reservation) => {
                let verified = Place::Fenced { verified_for: Some(reservation) };
                assert_eq!(self.fleet.place(host), verified);
            }
            Action::Grant(host, reservation, count) => {
                let mut granted = self.fleet.all_slots(host);
                granted.insert(reservation, count);
                let mut used = Resources::default();
                for (reservation, count) in granted {
                    let mut known = self.leases.iter().filter_map(|lease| lease.reservation(reservation));
                    let size = known.next().and_then(|r| r.terms.slots()).map(|slots| slots.size);
                    used.add(count, &size.unwrap_or_default());
                }
                let capacity = self.inventory.host(host).expect("there").capacity();
                assert!(used.vcpus <= capacity.vcpus && used.memory_mib <= capacity.memory_mib, "{action}");
            }
            _ => {}
        }
    }

    fn assert_invariants(&self) {
        self.fleet.assert_only_own_guests_on_held_hosts(&self.leases);
        let mut taken: BTreeSet<HostId> = BTreeSet::new();
        let running = |lease: &&Lease| lease.keeps_resources() && lease.window.contains(self.now);
        for lease in self.leases.iter().filter(running) {
            for reservation in &lease.reservations {
                if let Allocation::Hosts(hosts) = &reservation.allocation {
                    assert!(hosts.iter().all(|host| taken.insert(*host)), "{hosts:?} are given twice");
                }
            }
        }
    }

    /// A period with failures.
    fn storm(&mut self) {
        while self.now < at(HORIZON + 25) {
            for _ in 0..self.choices.below(3) {
                self.surprise();
                self.assert_invariants();
            }
            let plan = self.plan();
            self.perform(&plan);
            let seconds = [5, 30, 60, 300][usize::from(self.choices.below(4))];
            self.now += SignedDuration::from_secs(seconds);
        }
    }

    /// The calm after the storm: every lease ends, driven only by the plans' wake-up times.
    fn calm_down(&mut self) {
        self.calm = true;
        self.late.clear();
        self.fleet.recover_all();
        // Every other lease has ended or is deleted by then.
        self.plan();
        let (start, length) = (self.now + SignedDuration::from_mins(30), SignedDuration::from_mins(10));
        let one = ReservationTerms::Hosts(HostsTerms::new(1, HOSTS as u32).expect("a range"));
        self.admit(LAST, Window::starting(start, length), &[one]);
        for _ in 0..2000 {
            let plan = self.plan();
            let due = plan.due(self.now).count();
            self.perform(&plan);
            match plan.wake_at {
                _ if due > 0 => {}
                Some(wake_at) => {
                    assert!(wake_at >= self.now);
                    self.now = wake_at;
                }
                None => return,
            }
        }
        panic!("does not come to rest");
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn no_history_breaks_a_promise_and_every_lease_comes_to_its_end(
        leases in proptest::collection::vec((windows(), proptest::collection::vec(asked(), 1..3)), 1..10),
        choices in proptest::collection::vec(any::<u16>(), 0..1500),
    ) {
        let mut history = Play::new(&leases, choices);
        history.storm();
        history.calm_down();
        let last: Vec<LeaseStatus> =
            history.leases.iter().filter(|l| l.id == LeaseId(LAST)).map(|l| l.status).collect();
        prop_assert_eq!(last, [LeaseStatus::Terminated]);
        let unfinished: Vec<(LeaseId, LeaseStatus)> =
            history.leases.iter().filter(|l| !l.over()).map(|l| (l.id, l.status)).collect();
        prop_assert_eq!(unfinished, []);
        let left = history.fleet.not_free();
        prop_assert_eq!(left, Vec::<HostId>::new());
        prop_assert!(history.inventory.hosts().all(|host| host.health == Health::Up));
    }
}
