//! Random requests of projects.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use fleet::simulated::Layout;
use jiff::{SignedDuration, Timestamp};
use leases::admission::{Changes, FloatingIpsChange, HostsChange, InstancesChange, TermsChange};
use leases::failure_domain::FailureDomain;
use leases::lease::{EndAction, Lease};
use leases::lease_type::LeaseType;
use leases::requirement::{Operator, Requirement};
use leases::terms::{
    Affinity, Flavor, FlavorSize, FlavorTerms, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms,
    ReservationTerms, Terms,
};
use leases::window::Window;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use service::{LeaseChanges, NewLease};
use store::Wording;

/// Draws requests.
#[derive(Debug)]
pub(crate) struct Traffic<'a> {
    pub rng: &'a mut SmallRng,
    pub now: Timestamp,
    pub hosts: u32,
    /// Some requests are for more hosts than are empty, as soon as possible.
    pub hunts: bool,
}

impl Traffic<'_> {
    /// A new lease, or `None` if the drawn terms are invalid.
    pub fn lease(&mut self) -> Option<NewLease> {
        if self.hunts && self.chance(0.3) {
            return self.hunt();
        }
        let minute = Timestamp::from_second(self.now.as_second() / 60 * 60).ok()?;
        let lease_type = self.lease_type();
        let at_once = matches!(lease_type, LeaseType::Immediate { .. });
        let start = if at_once || self.chance(0.4) { minute } else { minute + self.minutes(1, 3 * 24 * 60) };
        let length = if self.chance(0.7) { self.minutes(1, 12 * 60) } else { self.minutes(60, 4 * 24 * 60) };
        let window = Window::new(start, start + length).ok()?;
        let before_end = self.chance(0.1).then(|| start + length / 2);
        let count = *[0, 1, 1, 1, 1, 1, 2, 3].choose(self.rng)?;
        let reservations: Vec<_> = (0..count).filter_map(|_| self.reservation()).collect();
        let wording = vec![Wording::default(); reservations.len()];
        let terms = Terms::new(window, before_end, reservations).ok()?.of_type(lease_type);
        let end_action = match self.rng.random_range(0..20) {
            0 => Some(EndAction::KeepGuests),
            1 => Some(EndAction::SnapshotGuests),
            2 if self.hunts => Some(EndAction::MoveGuests),
            _ => None,
        };
        Some(NewLease {
            asked_at: self.now,
            name: "new".to_owned(),
            terms,
            wording,
            end_action,
            waits: self.chance(0.3),
        })
    }

    /// A best-effort lease of many hosts.
    fn hunt(&mut self) -> Option<NewLease> {
        let minute = Timestamp::from_second(self.now.as_second() / 60 * 60).ok()?;
        let window = Window::starting(minute, self.minutes(30, 12 * 60));
        let min = self.rng.random_range(1..=self.hosts * 2 / 3);
        let terms = HostsTerms::new(min, min + self.rng.random_range(0..=1)).ok()?;
        let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(terms)]).ok()?;
        let deadline = self.now + self.minutes(5, 6 * 60);
        let (terms, wording) = (terms.of_type(LeaseType::BestEffort { deadline }), vec![Wording::default()]);
        let end_action = Some(EndAction::DeleteGuests);
        Some(NewLease {
            asked_at: self.now,
            name: "hunt".to_owned(),
            terms,
            wording,
            end_action,
            waits: false,
        })
    }

    fn lease_type(&mut self) -> LeaseType {
        match self.rng.random_range(0..10) {
            0 => LeaseType::Immediate { deadline: self.now + SignedDuration::from_secs(30) },
            1..=2 => LeaseType::BestEffort { deadline: self.now + self.minutes(1, 2 * 24 * 60) },
            _ => LeaseType::Schedule,
        }
    }

    fn reservation(&mut self) -> Option<ReservationTerms> {
        let amount = NonZeroU32::new(self.rng.random_range(1..=6))?;
        Some(match self.rng.random_range(0..10) {
            0..=4 => {
                let min = self.rng.random_range(1..=self.hosts.div_ceil(2));
                let max = self.rng.random_range(min..=self.hosts);
                let mut terms = HostsTerms::new(min, max).ok()?;
                if self.chance(0.2) {
                    terms = terms.requiring(Requirement::compare(Operator::Equal, "rack", "r1").ok()?);
                }
                std::sync::Arc::make_mut(&mut terms.properties).survives = self.survived();
                ReservationTerms::Hosts(terms)
            }
            5..=6 => ReservationTerms::Instances(InstancesTerms {
                size: self.size()?,
                amount,
                affinity: *[Affinity::Any, Affinity::Any, Affinity::OneHost, Affinity::DistinctHosts]
                    .choose(self.rng)?,
                requirement: Requirement::NONE,
                survives: self.survived(),
                extras: None,
            }),
            7 => {
                let size = FlavorSize { instance: self.size()?, ephemeral_gib: 1 };
                let flavor = Flavor::new("f", size, &std::collections::BTreeMap::new()).ok()?;
                ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives: self.survived() })
            }
            _ => {
                let amount = self.rng.random_range(0..=3);
                ReservationTerms::FloatingIps(
                    FloatingIpsTerms::new(Layout::public_network().id, amount, []).ok()?,
                )
            }
        })
    }

    /// Failure domain that a reservation must survive, if any.
    fn survived(&mut self) -> Option<FailureDomain> {
        // Separate random numbers, so that nothing else drawn from the seed depends on these.
        let mut rng = SmallRng::seed_from_u64(self.now.as_nanosecond() as u64);
        match rng.random_range(0..10) {
            0 => Some(FailureDomain::Host),
            1 => Some(FailureDomain::Place("rack".to_owned())),
            _ => None,
        }
    }

    fn size(&mut self) -> Option<InstanceSize> {
        InstanceSize::new(self.rng.random_range(1..=9), 1024, 10).ok()
    }

    pub fn change(&mut self, lease: &Lease) -> LeaseChanges {
        let mut changes = Changes::default();
        match self.rng.random_range(0..10) {
            0 => changes.name = Some(format!("name{}", self.rng.random_range(0..100))),
            1..=4 => changes.end = Some(lease.window.end() + self.minutes(-6 * 60, 24 * 60)),
            5 => changes.end = Timestamp::from_second(self.now.as_second() / 60 * 60).ok(),
            6 => changes.start = Some(lease.window.start() + self.minutes(-6 * 60, 6 * 60)),
            7 => {
                let shift = self.minutes(-6 * 60, 48 * 60);
                changes.start = Some(lease.window.start() + shift);
                changes.end = Some(lease.window.end() + shift);
            }
            _ => {
                if let Some(reservation) = lease.reservations.choose(self.rng) {
                    let change = self.terms_change(&reservation.terms);
                    changes.reservations.push((reservation.id, change));
                }
            }
        }
        LeaseChanges { asked_at: self.now, changes, wording: BTreeMap::new() }
    }

    fn terms_change(&mut self, terms: &ReservationTerms) -> TermsChange {
        let number = self.rng.random_range(1..=self.hosts);
        match terms {
            ReservationTerms::Hosts(_) => {
                let min = self.chance(0.3).then_some(number);
                TermsChange::Hosts(HostsChange { min, max: Some(number), ..HostsChange::default() })
            }
            ReservationTerms::Instances(_) => TermsChange::Instances(InstancesChange {
                amount: NonZeroU32::new(number),
                size: if self.chance(0.3) { self.size() } else { None },
                ..InstancesChange::default()
            }),
            ReservationTerms::Flavor(_) => TermsChange::Flavor,
            ReservationTerms::FloatingIps(_) => TermsChange::FloatingIps(FloatingIpsChange {
                amount: Some(number.min(3)),
                ..FloatingIpsChange::default()
            }),
        }
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn minutes(&mut self, least: i64, most: i64) -> SignedDuration {
        SignedDuration::from_mins(self.rng.random_range(least..=most))
    }
}
