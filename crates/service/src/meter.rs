//! Charges clients for the time that they use the store or hold the write lock.

use std::sync::atomic::{AtomicU64, Ordering};

use ambient::Clock;
use jiff::SignedDuration;

use crate::client::Client;
use crate::cost;
use crate::places::Places;

/// Measures the use of the store or of the write lock. When dropped, charges the current client for the
/// elapsed time, or for the counted work if that is more. If time is simulated, only work is counted.
pub(crate) struct Meter<'a> {
    places: &'a Places,
    clock: &'a dyn Clock,
    /// Steady time, which doesn't jump when the clock is set.
    begun: Option<SignedDuration>,
    work: AtomicU64,
}

impl<'a> Meter<'a> {
    pub fn start(places: &'a Places, clock: &'a dyn Clock) -> Self {
        Self { places, clock, begun: clock.steady(), work: AtomicU64::new(0) }
    }

    pub fn count(&self, work: u64) {
        self.work.fetch_add(work, Ordering::Relaxed);
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let passed = self.begun.zip(self.clock.steady());
        let took = passed.and_then(|(begun, now)| now.saturating_sub(begun).try_into().ok());
        let time = cost::of_time(took.unwrap_or_default());
        if let Some(client) = Client::current() {
            self.places.charge(&client.who(), time.max(*self.work.get_mut()));
        }
    }
}
