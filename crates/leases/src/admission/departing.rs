//! Where guests of a lease go that is over, if they are to leave its hosts (CLS-09).

use std::collections::BTreeSet;

use super::Admission;
use crate::hunt::{Moving, Preferred, Scene};
use crate::ids::HostId;
use crate::lease::Lease;
use crate::work::Budget;

impl Admission<'_> {
    /// The lease with a plan of where its guests go, if it has none that holds. As many of its hosts are cleared as can
    /// be, at the least cost; on the others everybody stays.
    pub fn departure(&self, lease: &Lease) -> Option<Lease> {
        let surroundings = lease.departing().then(|| self.facts.surroundings())?;
        let booked = |host| self.booked(host, None);
        if !surroundings.stranded(lease, self.inventory, booked) {
            return None;
        }
        let hosts = surroundings.left_to_clear(lease);
        let (rules, whose) = (&self.rules.hunting, Moving::Own(lease.id));
        let scene = Scene::new(rules, self.inventory, &surroundings, whose, booked);
        let planned = most_cleared(&scene, &hosts, self.budget).hunt();
        let hunt = match &lease.hunt {
            Some(before) => before.continued_by(planned, surroundings.observed),
            None => planned,
        };
        let departing = lease.clone().hunting(Some(hunt));
        self.settled_or_none((departing != *lease).then_some(departing))
    }
}

/// The scene after as many of the hosts have been cleared as can be: where more can be cleared, fewer can.
fn most_cleared<'a>(scene: &Scene<'a>, hosts: &BTreeSet<HostId>, budget: &Budget) -> Scene<'a> {
    let attempt = |wanted| {
        let mut attempt = scene.clone();
        attempt.clear(hosts, (wanted, wanted), &Preferred::default(), budget).ok().map(|_| attempt)
    };
    let (mut most, mut least, mut above) = (None, 0, hosts.len() + 1);
    // All of them, as a rule.
    let mut wanted = hosts.len();
    while least + 1 < above {
        match attempt(wanted) {
            Some(cleared) => (most, least) = (Some(cleared), wanted),
            None => above = wanted,
        }
        wanted = least + (above - least) / 2;
    }
    most.unwrap_or_else(|| scene.clone())
}
