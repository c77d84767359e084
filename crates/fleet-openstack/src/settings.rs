//! Settings of the driver.

use std::time::Duration;

use jiff::SignedDuration;

use crate::fence::Fence;

/// What the operator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What keeps others off the hosts of a lease.
    pub fence: Fence,
    /// Whether scheduler hints say which servers are preemptible. They are asked for with each server then, which needs Nova's
    /// microversion 2.100.
    pub hints: bool,
    /// The name of the free pool's aggregate: `aggregate_freepool_name` of blazar-nova. It is made if there is none.
    pub free_pool: String,
    /// How long Nova's schedulers may go by what they have read before a change.
    pub settle: Duration,
    /// How long a compute service has to be down, while most others are up, before its host has failed.
    pub failed_after: SignedDuration,
    /// How long a live migration may take before it is aborted; zero for as long as Nova lets it.
    pub migration_time: SignedDuration,
    /// How long it may take to make images of the servers on one host, or those of them that an attempt before did not
    /// make; what is not made then has failed.
    pub image_time: SignedDuration,
}

impl Default for Settings {
    /// `BlazarFilter`, the names that Blazar has by default, a minute for a host that is down, and an hour each for a
    /// migration and for images.
    fn default() -> Self {
        Self {
            fence: Fence::BlazarFilter,
            hints: false,
            free_pool: "freepool".to_owned(),
            settle: Duration::from_secs(1),
            failed_after: SignedDuration::from_mins(1),
            migration_time: SignedDuration::from_hours(1),
            image_time: SignedDuration::from_hours(1),
        }
    }
}
