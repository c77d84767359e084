//! Settings of the driver.

use std::time::Duration;

use jiff::SignedDuration;

use crate::fence::Fence;

/// The operator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub fence: Fence,
    /// Whether scheduler hints mark servers as preemptible. The driver then requests the hints of all
    /// servers, which needs Nova's microversion 2.100.
    pub hints: bool,
    /// Name of the free pool's aggregate: `aggregate_freepool_name` of blazar-nova. It is created if it
    /// doesn't exist.
    pub free_pool: String,
    /// Time for which Nova's schedulers can use outdated data after a change.
    pub settle: Duration,
    /// Time for which a compute service must be down, while most services are up, before its host has failed.
    pub failed_after: SignedDuration,
    /// Time after which a live migration is aborted. Zero leaves the limit to Nova.
    pub migration_time: SignedDuration,
    /// Time limit for the images of the servers on one host, or for the images that an earlier attempt didn't
    /// make. An image that isn't made by then has failed.
    pub image_time: SignedDuration,
}

impl Default for Settings {
    /// `BlazarFilter`, Blazar's default names, one second for schedulers to settle, one minute for a host
    /// that is down, and one hour each for a migration and for images.
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
