//! Occupants of the hosts of a lease, in answers. Not in Blazar.

use leases::occupants::Interval;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Kind of intervals with an instance of another project than the lease's, or of an unknown one.
const FOREIGN_INSTANCE: &str = "foreign_instance";

/// What looks at a host of a lease saw, from the first one to the last one that saw the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OccupancyInterval {
    /// Its number: later ones have higher numbers.
    pub number: u64,
    /// The host, by its identifier.
    pub host_id: String,
    /// The host's name; null if the service doesn't have the host any more.
    pub host: Option<String>,
    /// `fenced`: nobody can start instances, and other tenants' instances leave. `verified`: nobody can start instances, and
    /// only instances of the lease were found. `held`: only the lease's project can start instances. `unfenced`: the lease has
    /// the host, but the fence is missing, so others can start instances. `releasing`: the host is being taken back.
    /// `released`: the lease has given it back. `instance`: an instance of the lease's project was there.
    /// `foreign_instance`: an instance of another project, or of an unknown one, was there. `unseen`: no look saw which
    /// instances were there.
    pub kind: String,
    /// The instance. Of other projects, only for those who may see hosts.
    pub instance_id: Option<String>,
    /// The instance's project, if it is known. Other projects, only for those who may see hosts.
    pub project_id: Option<String>,
    /// Beginning of the first look that saw it (end of a host's first look); of `unseen`, end of the look before. UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the last look that saw it; of `unseen`, beginning of the next look. Null while it lasts.
    #[schema(format = "date-time")]
    pub end: Option<String>,
    /// Whether records of the host in this lease begin here. If the first interval of a host doesn't say so, older ones have
    /// expired.
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
