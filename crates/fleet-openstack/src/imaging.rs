//! What is remembered of images that are being made.

use std::collections::BTreeMap;

use fleet::FleetError;
use jiff::Timestamp;
use leases::ids::{GuestId, ReservationId};

use crate::wire::Server;

/// How far the images of the servers on a host are.
#[derive(Clone, Debug)]
pub(crate) struct Imaging {
    pub(crate) reservation: ReservationId,
    /// The moment that they are made for.
    pub(crate) moment: Timestamp,
    /// Since when they are being made, all or those that are missing.
    pub(crate) since: Timestamp,
    pub(crate) servers: BTreeMap<GuestId, Stage>,
    /// What is in the way, which was said.
    pub(crate) said: Option<FleetError>,
}

/// How far the image of a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nova cannot make it now.
    Busy,
    /// Nova has been asked for it.
    Asked,
    Ready,
    Failed(FleetError),
}

impl Imaging {
    /// Images that nobody has asked for yet.
    pub(crate) fn new(reservation: ReservationId, moment: Timestamp, now: Timestamp) -> Self {
        Self { reservation, moment, since: now, servers: BTreeMap::new(), said: None }
    }

    /// What the image of that server is made for, as one text.
    pub(crate) fn made_for(&self, server: &Server) -> String {
        format!("{}/{}/{}", self.reservation, server.id, self.moment)
    }

    /// Why it has not gone, if it has not. Whatever is not ready is made once more then.
    pub(crate) fn conclude(&mut self, late: Option<FleetError>) -> Option<FleetError> {
        let first = |stage: &Stage| if let Stage::Failed(error) = stage { Some(error.clone()) } else { None };
        let failed = self.servers.values().find_map(first).or(late);
        self.servers.retain(|_, stage| *stage == Stage::Ready);
        self.said = None;
        failed
    }
}
