//! Prepared reservations of simulated clouds. Only a record is made, and no objects.

use std::collections::BTreeMap;

use leases::ids::ReservationId;
use leases::plan::{GuestSize, Prepared, Recipe};
use leases::terms::Affinity;

use super::state::{Made, State};
use crate::{FleetError, OperationKey, Outcome};

impl State {
    pub(super) fn prepare(&mut self, id: ReservationId, key: &OperationKey) -> Result<Outcome, FleetError> {
        let facts = key.facts.as_deref().and_then(|facts| facts.reservation.as_ref());
        let Some(recipe) = facts.and_then(|(_, terms)| Recipe::of(terms)) else {
            return Err(FleetError::Refused(format!("nobody said what reservation {id} is of")));
        };
        let highest = self.reservations.values().map(|made| made.number).max();
        let known = self.reservations.get(&id).map(|made| made.number);
        let number = known.unwrap_or_else(|| highest.map_or(1, |highest| highest.saturating_add(1)));
        let GuestSize { vcpus, memory_mib, disk_gib } = recipe.size;
        let affinity = match recipe.affinity {
            Affinity::Any => None,
            Affinity::OneHost => Some(true),
            Affinity::DistinctHosts => Some(false),
        };
        self.reservations.insert(id, Made { number, vcpus, memory_mib, disk_gib, affinity });
        Ok(Outcome::Done)
    }

    pub(super) fn finish(&mut self, id: ReservationId) -> Outcome {
        self.reservations.remove(&id);
        Outcome::Done
    }

    pub(super) fn prepared(&self) -> BTreeMap<ReservationId, Prepared> {
        let prepared = |(id, made): (&ReservationId, &Made)| {
            let Made { number, vcpus, memory_mib, disk_gib, affinity } = *made;
            let size = GuestSize { vcpus, memory_mib, disk_gib };
            let recipe = Recipe { size, affinity: Affinity::from(affinity) };
            let server_group = affinity.map(|_| format!("group-{number}"));
            let flavors = Vec::new();
            (
                *id,
                Prepared {
                    marked: true,
                    complete: Some(recipe),
                    aggregate: Some(number),
                    server_group,
                    flavors,
                },
            )
        };
        self.reservations.iter().map(prepared).collect()
    }
}
