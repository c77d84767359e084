//! Progress of images, which is kept in memory.

use std::collections::BTreeMap;

use fleet::FleetError;
use jiff::Timestamp;
use leases::ids::{GuestId, ReservationId};

use crate::wire::Server;

/// Progress of the images of the servers on a host.
#[derive(Clone, Debug)]
pub(crate) struct Imaging {
    pub(crate) reservation: ReservationId,
    /// The lease's `images_for`, which tells these images from those made for other moments.
    pub(crate) moment: Timestamp,
    /// Start of this attempt, which creates the missing images.
    pub(crate) since: Timestamp,
    pub(crate) servers: BTreeMap<GuestId, Stage>,
    /// The obstacle that was logged last.
    pub(crate) said: Option<FleetError>,
}

/// Progress of the image of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nova can't make it now.
    Busy,
    /// Nova was asked for it.
    Asked,
    Ready,
    Failed(FleetError),
}

impl Imaging {
    pub(crate) fn new(reservation: ReservationId, moment: Timestamp, now: Timestamp) -> Self {
        Self { reservation, moment, since: now, servers: BTreeMap::new(), said: None }
    }

    /// Value of the property that identifies the image of a server.
    pub(crate) fn made_for(&self, server: &Server) -> String {
        format!("{}/{}/{}", self.reservation, server.id, self.moment)
    }

    /// Ends an attempt and returns its error, if it failed. Images that aren't ready are made again in the
    /// next attempt.
    pub(crate) fn conclude(&mut self, late: Option<FleetError>) -> Option<FleetError> {
        let first = |stage: &Stage| if let Stage::Failed(error) = stage { Some(error.clone()) } else { None };
        let failed = self.servers.values().find_map(first).or(late);
        self.servers.retain(|_, stage| *stage == Stage::Ready);
        self.said = None;
        failed
    }
}
