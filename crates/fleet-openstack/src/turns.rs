//! Turns: only one step at a time works on an object, and the next steps wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use leases::ids::{FloatingIpId, HostId, ReservationId};
use tokio::sync::OwnedMutexGuard;

/// An object that one step at a time works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    Host(HostId),
    /// A reservation as a whole. A step that has a host's turn can wait for a reservation's turn, but not the
    /// reverse.
    Reservation(ReservationId),
    Address(FloatingIpId),
}

/// The turns that steps have or wait for.
#[derive(Debug)]
pub(crate) struct Turns<K>(Mutex<BTreeMap<K, Arc<tokio::sync::Mutex<()>>>>);

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Turns<K> {
    /// Waits until the turn is free.
    pub(crate) async fn of(&self, key: K) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Every step that has the turn or waits for it also has a reference to it.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(key).or_default())
        };
        turn.lock_owned().await
    }
}
