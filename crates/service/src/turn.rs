//! Pauses expensive decisions for cheap requests.
//!
//! A decision without the write lock takes up to 0.3 s of computing, and longer if processors are busy. Without
//! pauses, each cheap request would wait that long. So a client's decision is charged after every
//! [slice](leases::work::SLICE) of its work. If a cheap request is then next in the queue, the decision gives up its
//! place and waits for another one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use leases::work::Budget;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::client::Client;
use crate::places::{Kind, Place, Places, Who};

/// A decision's use of a place.
#[derive(Debug)]
pub(crate) struct Turn {
    places: Arc<Places>,
    who: Who,
    /// `None` during a pause.
    place: Mutex<Option<Place>>,
    charged: AtomicU64,
}

impl Turn {
    /// Begins a decision of the current client, or of the loop.
    pub fn begin(places: &Arc<Places>, place: Place) -> Arc<Self> {
        let who = Client::current().map_or(Who::Loop, |client| client.who());
        let place = Mutex::new(Some(place));
        Arc::new(Self { places: Arc::clone(places), who, place, charged: AtomicU64::new(0) })
    }

    /// A budget that pauses. The loop never pauses, nor does a runtime with one thread: that one would wait for
    /// itself.
    pub fn budget(self: &Arc<Self>, units: u64) -> Budget {
        let Some(runtime) = Handle::try_current().ok().filter(has_several_threads) else {
            return Budget::new(units);
        };
        if matches!(self.who, Who::Loop) {
            return Budget::new(units);
        }
        let turn = Arc::clone(self);
        Budget::with_pauses(units, move |spent| turn.pause(&runtime, spent))
    }

    fn pause(&self, runtime: &Handle, spent: u64) {
        let charged = self.charged.swap(spent, Ordering::Relaxed);
        if let Who::Client(Some((owner, _))) = &self.who {
            self.places.charge_beside(owner, spent.saturating_sub(charged));
        }
        if self.places.is_outranked(Kind::Read, &self.who) {
            self.set_place(None);
            let place = runtime.block_on(self.places.reenter(Kind::Read, self.who.clone()));
            self.set_place(Some(place));
        }
    }

    /// Charges the rest of the work, and then passes on the place.
    pub fn end(&self, work: u64) {
        self.places.charge_rest(&self.who, work, self.charged.load(Ordering::Relaxed));
        self.set_place(None);
    }

    fn set_place(&self, place: Option<Place>) {
        let mut held = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let passed_on = std::mem::replace(&mut *held, place);
        drop(held);
        drop(passed_on);
    }
}

/// Whether the runtime can wait on one thread while others work.
pub(crate) fn has_several_threads(runtime: &Handle) -> bool {
    runtime.runtime_flavor() == RuntimeFlavor::MultiThread
}
