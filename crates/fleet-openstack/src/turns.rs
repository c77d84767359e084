//! One at a time: whoever is at work on something has its turn, and others wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use leases::ids::{FloatingIpId, HostId, ReservationId};
use tokio::sync::OwnedMutexGuard;

/// At what one step is at work at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// A host.
    Host(HostId),
    /// A reservation as a whole. Whoever has the turn of a host may wait for it, but not the other way round.
    Reservation(ReservationId),
    /// An address.
    Address(FloatingIpId),
}

/// The turns that somebody has, or waits for.
#[derive(Debug)]
pub(crate) struct Turns<K>(Mutex<BTreeMap<K, Arc<tokio::sync::Mutex<()>>>>);

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Turns<K> {
    /// Waits until nobody else has the turn.
    pub(crate) async fn of(&self, key: K) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever waits for a turn, or has it, has a hand on it as well.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(key).or_default())
        };
        turn.lock_owned().await
    }
}
