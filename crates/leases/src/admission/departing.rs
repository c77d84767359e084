//! Migration of guests at the end of a lease (CLS-09).

use std::collections::BTreeSet;

use super::Admission;
use crate::hunt::{Moving, Preferred, Scene};
use crate::ids::HostId;
use crate::lease::Lease;
use crate::work::Budget;

impl Admission<'_> {
    /// Plans an end migration for a lease without a valid plan. Clears as many of its hosts as possible at
    /// the least cost; guests of the remaining hosts stay. `None` if nothing changes or the budget is used
    /// up.
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

/// The scene after clearing the maximum number of hosts, found by bisection: if some number can be cleared,
/// so can any smaller one.
fn most_cleared<'a>(scene: &Scene<'a>, hosts: &BTreeSet<HostId>, budget: &Budget) -> Scene<'a> {
    let attempt = |wanted| {
        let mut attempt = scene.clone();
        attempt.clear(hosts, (wanted, wanted), &Preferred::default(), budget).ok().map(|_| attempt)
    };
    let (mut most, mut least, mut above) = (None, 0, hosts.len() + 1);
    // Usually all hosts can be cleared.
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
