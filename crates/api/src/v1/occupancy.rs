//! Occupants of the hosts of a lease, in answers. Not in Blazar.

use leases::occupants::Interval;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Kind of intervals with an instance of another project than the lease's, or of an unknown one.
const FOREIGN_INSTANCE: &str = "foreign_instance";

/// Period during which observations of a leased host were the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OccupancyInterval {
    /// Number of the interval. Numbers increase over time.
    pub number: u64,
    /// Identifier of the host.
    pub host_id: String,
    /// Name of the host; null if the service no longer has the host.
    pub host: Option<String>,
    /// Observation. `fenced`: instances can't be started on the host, and instances of other projects leave.
    /// `verified`: instances can't be started on the host, and only instances of the lease were found.
    /// `held`: only the lease's project can start instances. `unfenced`: the lease has the host, but the
    /// fence is missing, so other projects can start instances. `releasing`: the host is being taken back
    /// from the lease. `released`: the lease has returned the host. `instance`: an instance of the lease's
    /// project was on the host. `foreign_instance`: an instance of another or an unknown project was on the
    /// host. `unseen`: the instances on the host weren't observed.
    pub kind: String,
    /// Identifier of the instance. For instances of other projects, null unless the caller can see hosts.
    pub instance_id: Option<String>,
    /// Project of the instance; null if unknown. For other projects, null unless the caller can see hosts.
    pub project_id: Option<String>,
    /// Beginning of the first observation in the interval, or its end if it is the first observation of the
    /// host. For `unseen`, end of the previous observation. UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the last observation in the interval. For `unseen`, beginning of the next observation. Null
    /// while it lasts.
    #[schema(format = "date-time")]
    pub end: Option<String>,
    /// Whether this is the first interval of the host in the lease. If the first returned interval of a host
    /// doesn't say so, older ones have expired.
    pub begins: bool,
}

impl OccupancyInterval {
    /// The interval with that number, on a host with that name. `show_others`: the reader may know about
    /// instances of other projects.
    pub fn new(number: u64, interval: &Interval, host: Option<String>, show_others: bool) -> Self {
        let Interval { host: host_id, fact, begins, start, end, .. } = interval;
        let instance = fact.instance();
        let is_foreign = instance.is_some_and(|(_, project)| project != Some(&interval.project));
        let kind = if is_foreign { FOREIGN_INSTANCE } else { fact.name() };
        let shown = instance.filter(|_| show_others || !is_foreign);
        Self {
            number,
            host_id: host_id.to_string(),
            host,
            kind: kind.to_owned(),
            instance_id: shown.map(|(id, _)| id.to_string()),
            project_id: shown.and_then(|(_, project)| project).map(ToString::to_string),
            start: start.to_string(),
            end: end.map(|end| end.to_string()),
            begins: *begins,
        }
    }
}
