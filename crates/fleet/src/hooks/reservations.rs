//! Hooks for whole reservations: `on_prepare` before a reservation gets its first resource, and `on_finish`
//! after it has lost its last one. Only one runs at a time for each reservation.

use leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};

use super::HooksFleet;
use super::call::Subject;
use super::config::Moment;
use super::ledger::{Ledger, Part};
use super::shared::Turn;
use crate::site::Site;
use crate::{FleetError, OperationKey};

/// A resource that a reservation is about to get, or has just lost. The ledger has the reservation as its
/// owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A host, or slots on it.
    Host(HostId),
    FloatingIp(FloatingIpId),
}

impl HooksFleet {
    /// Prepares the reservation unless it is prepared. The resource that it is about to get must already be
    /// in the ledger, which keeps other tasks from finishing the reservation.
    pub(super) async fn prepare(
        &self,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Result<(), FleetError> {
        if !self.has_reservation_hooks() {
            return Ok(());
        }
        let turn = self.shared.turn(Part::of(reservation)).await?;
        if self.ledger().prepared.get(&reservation) == Some(&true) {
            return Ok(());
        }
        let set = |done| move |ledger: &mut Ledger| _ = ledger.prepared.insert(reservation, done);
        self.shared.write(&turn, set(false)).await?;
        let subject = Subject::default().of(reservation, key.lease);
        self.call(Moment::OnPrepare, subject, key).await?;
        self.shared.write(&turn, set(true)).await
    }

    /// Finishes the reservation if `last` is its only resource, which a hook has taken back. The caller must
    /// hold the returned turn until the ledger has the resource as free: then only one resource can be the
    /// last.
    pub(super) async fn finish(
        &self,
        reservation: ReservationId,
        lease: Option<LeaseId>,
        last: Item,
        key: &OperationKey,
    ) -> Result<Option<Turn>, FleetError> {
        if !self.has_reservation_hooks() {
            return Ok(None);
        }
        let turn = self.shared.turn(Part::of(reservation)).await?;
        let due = {
            let ledger = self.ledger();
            ledger.prepared.contains_key(&reservation) && !self.has_beside(&ledger, reservation, last)
        };
        if due {
            let subject = Subject::default().of(reservation, lease);
            self.call(Moment::OnFinish, subject, key).await?;
            self.shared.write(&turn, |ledger| ledger.prepared.remove(&reservation)).await?;
        }
        Ok(Some(turn))
    }

    fn has_reservation_hooks(&self) -> bool {
        self.hooks.has(Moment::OnPrepare) || self.hooks.has(Moment::OnFinish)
    }

    /// Whether the reservation has, or may have, another resource. Hosts that are no longer configured don't
    /// count.
    fn has_beside(&self, ledger: &Ledger, reservation: ReservationId, item: Item) -> bool {
        let others = |host: &HostId| item != Item::Host(*host) && self.machines.contains_key(host);
        let host = ledger.hosts.iter().filter(|(host, _)| others(host)).any(|(_, record)| {
            let held = matches!(record.site, Site::Held { reservation: holder, .. } if holder == reservation);
            let begun = record.begun_hold.is_some_and(|begun| begun.reservation == reservation);
            held || begun || record.slots.contains_key(&reservation)
        });
        let mut ips = ledger.floating_ips.iter().filter(|(ip, _)| item != Item::FloatingIp(**ip));
        host || ips.any(|(_, handed)| handed.reservation == reservation)
    }
}
