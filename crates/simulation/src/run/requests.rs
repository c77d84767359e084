//! Requests of clients in a simulation, and how their answers are judged.

use std::collections::BTreeSet;

use fleet::simulated::Happening;
use leases::admission::Refusal;
use leases::host::Health;
use leases::ids::{GuestId, HostId};
use leases::instance::{InstanceStatus, LeaseHint};
use leases::lease::{Allocation, Lease};
use leases::plan::GuestSize;
use leases::preemption::{Mark, Marked};
use leases::standing::Standing;
use leases::status::LeaseStatus;
use rand::Rng;
use rand::seq::IndexedRandom;
use service::{Hold, LeaseFilter, NewInstance, Placing, ServiceError};
use store::LeaseRecord;

use super::Simulation;
use super::ways::VCPUS;
use crate::traffic::Traffic;
use crate::world::caller;

/// With this many instances, new ones are started only now and then, to leave capacity for leases.
const MOST_INSTANCES: usize = 6;

impl Simulation {
    /// Makes one request.
    pub(super) async fn request(&mut self) -> Result<(), String> {
        self.asked = self.any();
        if let Some((offer, project)) = self.offered.take() {
            self.accept(&offer, project).await?;
            self.world.touched_one(self.asked);
            return Ok(());
        }
        if let Some(id) = self.regretted.take() {
            self.delete_instance(id).await;
            self.world.touched_one(self.asked);
            return Ok(());
        }
        let backfill = self.ways.settings.plan_rules.backfill;
        if self.rng.random_bool(if backfill { 0.5 } else { 0.25 }) {
            self.request_instance().await;
            self.world.touched_one(self.asked);
            return Ok(());
        }
        let leases = self.service().leases().all(&LeaseFilter::default());
        // Old leases are deleted now and then so that their number stays small.
        let over = leases.iter().filter(|record| record.lease.over()).count();
        if over > 10 {
            for record in leases.iter().filter(|record| record.lease.over()) {
                self.delete(record).await;
            }
        }
        let target = self.target.and_then(|id| leases.iter().find(|record| record.lease.id == id));
        let kind = self.rng.random_range(0..if target.is_some() { 4 } else { 10 });
        match target.or(leases.choose(&mut self.rng)) {
            Some(record) if target.is_some() && kind < 2 => self.delete(record).await,
            Some(record) if kind < 3 => self.change(record).await,
            Some(record) if kind < 4 => self.delete(record).await,
            _ => self.create().await,
        }
        self.world.touched_one(self.asked);
        Ok(())
    }

    /// The service that gets the current request.
    pub(super) fn service(&self) -> &service::Service {
        self.world.service_of(self.asked)
    }

    async fn create(&mut self) {
        let hosts = self.ways.layout.racks.iter().map(|rack| rack.machines).sum();
        let project = *["red", "green", "blue"].choose(&mut self.rng).unwrap_or(&"red");
        let now = self.world.now();
        let hunts = self.ways.others;
        let Some(mut new) = (Traffic { rng: &mut self.rng, now, hosts, hunts }).lease() else { return };
        if let Some(pools) = &mut self.pools {
            pools.narrow(&mut new);
        }
        if self.ways.settings.plan_rules.backfill {
            new.terms.backfill = self.rng.random_bool(0.8);
        }
        match self.service().leases().create(&caller(project), new.clone(), None).await {
            Ok(created) if !created.lease.lease.standing.is_firm() => {
                self.note(format!("waits: {}", created.lease.lease.id));
            }
            Ok(created) => {
                let lease = &created.lease.lease;
                self.note(format!("made: {} {:?} {:?}", lease.id, lease.window, lease.reservations));
                self.report.made += 1;
                self.checker.acknowledged(&created.lease);
            }
            Err(ServiceError::Store(_)) => self.report.uncertain += 1,
            Err(ServiceError::Refused(refusal)) if refusal.negotiable() => {
                self.report.refused += 1;
                let offers = self.service().offers().for_lease(&caller(project), &new, Hold::Default).await;
                let offers = offers.map(|offers| offers.offers).unwrap_or_default();
                let chosen = offers.choose(&mut self.rng).map(|offer| LeaseRecord::clone(offer));
                if let Some(offer) = &chosen {
                    self.note(format!("offered: {:?}", offer.lease));
                }
                self.offered = chosen.map(|offer| (offer, project));
            }
            Err(_) => self.report.refused += 1,
        }
    }

    /// Accepts an offer. It must succeed if the offer still holds and its hosts work. The service withdraws
    /// an offer when another project is given the resources reserved for it.
    async fn accept(&mut self, offer: &LeaseRecord, project: &str) -> Result<(), String> {
        let id = offer.lease.id;
        let withdrawn = self.service().offers().get(id).is_none();
        match self.service().offers().accept(&caller(project), id).await {
            Ok(accepted) => {
                self.note(format!("accepted: {:?}", accepted.lease));
                self.report.accepted += 1;
                self.report.made += 1;
                self.checker.acknowledged(&accepted);
                let (then, now) = (offer.lease.window, accepted.lease.window);
                let is_late = then.start() < now.start() && now.start() <= accepted.created_at;
                if now.end() == then.end() && (now.start() == then.start() || is_late) {
                    Ok(())
                } else {
                    Err(format!("{id} was offered for {then:?}, not {now:?}"))
                }
            }
            Err(ServiceError::Refused(Refusal::OfferedStartPassed(start)))
                if start < self.service().now() =>
            {
                Ok(())
            }
            Err(ServiceError::Store(_)) => {
                self.report.uncertain += 1;
                Ok(())
            }
            Err(error) => {
                let holds = offer.lease.standing.until().is_some_and(|until| self.service().now() < until);
                let healthy = |host| {
                    self.service().hosts().get(host).is_some_and(|record| record.host.health == Health::Up)
                };
                let mut hosts = offer.lease.reservations.iter().flat_map(|r| r.allocation.hosts());
                if holds && !withdrawn && hosts.all(healthy) {
                    return Err(format!("offer {id} does not hold: {error}"));
                }
                self.report.refused += 1;
                Ok(())
            }
        }
    }

    /// Checks that hosts reserved for offers aren't in any lease, and takes offers and waiting requests out
    /// of the leases that are judged.
    pub(super) fn follow_proposals(&mut self) -> Result<(), String> {
        let leases = std::mem::take(&mut self.contents.leases);
        let (firm, proposals): (Vec<_>, Vec<_>) =
            leases.into_iter().partition(|record| record.lease.standing.is_firm());
        let whole = |record: &LeaseRecord| -> BTreeSet<HostId> {
            let given = record.lease.reservations.iter().map(|reservation| &reservation.allocation);
            let whole = given.filter(|allocation| matches!(allocation, Allocation::Hosts(_)));
            whole.flat_map(Allocation::hosts).collect()
        };
        for kept in proposals.iter().filter(|record| record.lease.keeps_resources()) {
            let hosts = whole(kept);
            for lease in firm.iter().filter(|record| record.lease.keeps_resources()) {
                let both = hosts.intersection(&whole(lease)).next().copied();
                if let Some(host) = both.filter(|_| lease.lease.window.overlaps(&kept.lease.window)) {
                    return Err(format!("host {host} is reserved for an offer and in {}", lease.lease.id));
                }
            }
        }
        self.checker.offers(&proposals);
        let waiting = |record: &LeaseRecord| matches!(record.lease.standing, Standing::Waiting { .. });
        let now: BTreeSet<_> =
            proposals.iter().filter(|record| waiting(record)).map(|record| record.lease.id).collect();
        let served = firm.iter().filter(|record| self.waiting.contains(&record.lease.id)).count();
        self.report.served += served as u64;
        self.waiting = now;
        self.contents.leases = firm;
        Ok(())
    }

    async fn change(&mut self, record: &LeaseRecord) {
        let now = self.world.now();
        let hosts = self.ways.layout.racks.iter().map(|rack| rack.machines).sum();
        let mut changes = Traffic { rng: &mut self.rng, now, hosts, hunts: false }.change(&record.lease);
        if self.ways.settings.plan_rules.backfill && self.rng.random_bool(0.3) {
            changes.changes.backfill = Some(!record.lease.backfill);
        }
        let id = record.lease.id;
        self.note(format!("change of {id}: {:?}", changes.changes));
        match self.service().leases().update(&caller("red"), id, changes).await {
            Ok(changed) => self.checker.acknowledged(&changed),
            Err(ServiceError::Store(_)) => {
                self.report.uncertain += 1;
                self.checker.change_uncertain(id);
            }
            Err(_) => self.report.refused += 1,
        }
    }

    pub(super) async fn delete(&mut self, record: &LeaseRecord) {
        let id = record.lease.id;
        self.note(format!("deletion of {id}, {}", record.lease.status.name()));
        match self.service().leases().delete(&caller("red"), id).await {
            Ok(()) => self.checker.deleted(id, true),
            Err(ServiceError::Store(_)) => {
                self.report.uncertain += 1;
                self.checker.deleted(id, false);
            }
            // An earlier deletion with an unknown outcome may have succeeded.
            Err(_) => {}
        }
        self.world.touched_one(self.asked);
    }

    /// Starts an instance, deletes one, or shuts one down from within.
    async fn request_instance(&mut self) {
        let instances = self.service().instances().all(None, None);
        let most = if instances.len() < MOST_INSTANCES { 10 } else { 4 };
        match (instances.choose(&mut self.rng), self.rng.random_range(0..most)) {
            (Some(record), 0..=1) if record.instance.status == InstanceStatus::Shelved => {
                self.start_instance(record.instance.id).await;
            }
            (Some(record), 0..=2) => {
                self.delete_instance(record.instance.id).await;
            }
            (Some(record), 3) if record.instance.status == InstanceStatus::Active => {
                self.note(format!("instance {} ends by itself", record.instance.id));
                self.world.fleet.happen(Happening::GuestEnds(record.instance.id));
            }
            _ => self.create_instance().await,
        }
    }

    async fn delete_instance(&mut self, id: GuestId) {
        self.note(format!("deletion of instance {id}"));
        match self.service().instances().delete(&caller("red"), id).await {
            Ok(()) => self.checker.instance_deleted(id),
            Err(ServiceError::Store(_)) => self.report.uncertain += 1,
            // The instance is already gone.
            Err(_) => {}
        }
    }

    /// Starts a shelved instance again, as a new instance.
    async fn start_instance(&mut self, id: GuestId) {
        self.note(format!("instance {id} is started again"));
        match self.service().instances().start(&caller("red"), id).await {
            Ok(record) => {
                self.checker.instance_deleted(id);
                self.checker.instance_started(record.instance.id);
            }
            Err(ServiceError::Store(_)) => self.report.uncertain += 1,
            Err(_) => {}
        }
    }

    async fn create_instance(&mut self) {
        let leases = self.service().leases().all(&LeaseFilter::default());
        let active = |lease: &Lease| lease.status == LeaseStatus::Active;
        let active: Vec<&Lease> =
            leases.iter().map(|record| &record.lease).filter(|lease| active(lease)).collect();
        // Outside leases, preemptible instances run if they are allowed, and ordinary ones only in
        // simulations that have guests of other tenants anyway.
        let allowed = self.ways.settings.preemption.allowed;
        let beside = (self.ways.others || allowed) && self.rng.random_bool(0.4);
        let part = if beside { None } else { active.choose(&mut self.rng) };
        if part.is_none() && !beside {
            return;
        }
        let project = part.map_or_else(|| "red".to_owned(), |lease| lease.owner.project.0.clone());
        let memory_mib = 1024 << self.rng.random_range(0..4u32);
        let mut size = GuestSize { vcpus: self.rng.random_range(1..=4), memory_mib, disk_gib: 10 };
        let hint = part.map(|lease| LeaseHint::Lease(lease.id));
        let in_slots = |lease: &Lease| {
            leases::instance::reservation_for(lease, LeaseHint::Lease(lease.id))
                .is_some_and(|reservation| leases::admission::size_of_instances(&reservation.terms).is_some())
        };
        let preemptible = beside && allowed && (size.vcpus < 4 || !self.ways.others);
        let requeue = preemptible && size.vcpus < 3;
        let mark = (beside && allowed).then_some((Mark::Hint, preemptible));
        let marked = Marked(Vec::from_iter(mark));
        // The size selects the class, if there are enough classes. Without a class, the default notice
        // applies.
        let classes = &self.ways.settings.preemption.classes;
        let class = if preemptible { classes.get(size.vcpus as usize) } else { None };
        let class = class.map(|class| class.name().to_owned());
        if preemptible && self.ways.settings.plan_rules.backfill {
            // A few of these fill a host, so that some land on hosts of leases.
            size.vcpus *= VCPUS / 4;
        }
        let size = (!part.is_some_and(|lease| in_slots(lease))).then_some(size);
        let placing = Placing { size, hint, marked, class, ..Placing::default() };
        let new = NewInstance { name: "instance".to_owned(), placing, requeue };
        match self.service().instances().create(&caller(&project), new).await {
            Ok(record) => {
                self.note(format!("instance {:?}", record.instance));
                self.report.instances += 1;
                self.checker.instance_started(record.instance.id);
                self.regretted = self.rng.random_bool(0.4).then_some(record.instance.id);
            }
            Err(ServiceError::Store(_)) => self.report.uncertain += 1,
            Err(_) => self.report.refused += 1,
        }
    }
}
