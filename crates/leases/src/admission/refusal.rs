//! Reasons to refuse a lease or a change.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use thiserror::Error;

use crate::enforcement::EnforcementError;
use crate::filters::{Filter, FilterReport};
use crate::hints::{HintError, Hints};
use crate::hunt::HuntRefusal;
use crate::ids::{HostId, ReservationId};
use crate::quota::OverLeaseQuota;
use crate::terms::{ReservationTerms, TermsError};
use crate::text::{Quoted, counted, quoted_list};
use crate::window::minute;

/// The kind of resource that is short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Whole hosts, with the number of hosts that each filter removed.
    Hosts(FilterReport),
    /// Slots for instances, with the number of hosts that each filter removed.
    Slots(FilterReport),
    FloatingIps,
}

impl Resource {
    /// The name in Blazar's messages. Clients look for these words (API-clients).
    fn name(&self) -> &'static str {
        match self {
            Self::Hosts(_) | Self::Slots(_) => "hosts",
            Self::FloatingIps => "floating IPs",
        }
    }
}

/// Size of a request that exceeds its budget, so that the client knows what to reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costly {
    /// Budget, in units of work.
    pub limit: u64,
    pub reservations: usize,
    /// Number of hosts, instances or addresses in the largest reservation.
    pub number: u32,
    /// Number of values that its expressions and the lease's hints compare with.
    pub values: usize,
}

impl Costly {
    /// Measures a request for these reservations in a lease with these hints.
    pub fn new(asked: &[&ReservationTerms], hints: Option<&Hints>, limit: u64) -> Self {
        let of_hints = hints.map_or(0, |hints| hints.query.values());
        let size = |terms: &ReservationTerms| (terms.number(), terms.values() + of_hints);
        let sizes = asked.iter().map(|terms| size(terms));
        let largest = sizes.max_by_key(|(number, values)| *number as usize + values);
        let (number, values) = largest.unwrap_or_default();
        Self { limit, reservations: asked.len(), number, values }
    }
}

impl fmt::Display for Costly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The request takes more than {} units of work to decide: ask for fewer leases, reservations or instances at \
             once, or compare with fewer values",
            self.limit
        )
    }
}

/// The reason why a lease or a change is refused. Texts are Blazar's where it has one (API-create to
/// API-update), because clients know them. [`Refusal::hint`] has the details.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The terms are invalid.
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error(transparent)]
    Enforcement(#[from] EnforcementError),
    #[error(transparent)]
    Quota(#[from] OverLeaseQuota),
    /// The quota refuses the request, and there isn't enough capacity either.
    #[error("{quota}")]
    QuotaAndLack { quota: OverLeaseQuota, lack: Box<Refusal> },
    /// The hints can't be used here.
    #[error(transparent)]
    Hints(#[from] HintError),
    #[error("Start date must be later than current date")]
    StartInPast,
    /// The start of an accepted offer has passed, and the request was for exactly that start.
    #[error("The offered start, {}, has passed: send the request again", minute(*.0))]
    OfferedStartPassed(Timestamp),
    /// The lease would have timed out before the request.
    #[error("The timeout must be later than the current date")]
    DeadlineInPast,
    /// The lease would start after its timeout.
    #[error("The start date must be earlier than the timeout")]
    StartAfterDeadline,
    /// The request names another region (CLS-05).
    #[error("Region {} is not served here: {}", Quoted(.asked), .own.as_ref().map_or_else(
        || "this service is of no region".to_owned(), |own| format!("this service is of region {own}")))]
    Region {
        asked: String,
        /// The service's region, if configured.
        own: Option<String>,
    },
    /// A requested property that no filter checks, so hosts would not be held to it (CLS-07).
    #[error("{} is not supported here: the operator has left {filter} out", Quoted(.property))]
    FilterLeftOut {
        property: String,
        /// The filter that would check it.
        filter: Filter,
    },
    /// Not enough resources are available.
    #[error("Not enough {} available", .resource.name())]
    NotEnough {
        /// Position of the reservation in the lease, from 0.
        position: usize,
        resource: Resource,
        needed: u64,
        /// Number that could be allocated.
        found: u64,
    },
    /// The lease can't wait for hosts, and a hunt can't clear them either.
    #[error("{refusal}")]
    NoHunt {
        /// The refusal without a hunt.
        refusal: Box<Refusal>,
        /// The reason why moving guests of other projects doesn't help.
        hunt: HuntRefusal,
    },
    /// The decision exceeds the limit on work for a request ([`crate::work`]). Whether it could be granted is
    /// unknown.
    #[error("{0}")]
    TooCostly(Costly),
    /// The client no longer waits for the decision, so the answer has no reader.
    #[error("The request was canceled")]
    Canceled,
    /// A required address is taken.
    #[error("Not enough floating IPs available")]
    FloatingIpTaken(IpAddr),
    /// The start of a started lease can't change (W11).
    #[error("Cannot modify the start date of already started leases")]
    Started,
    /// The lease is over (W12).
    #[error("Terminated leases can only be renamed")]
    Over,
    #[error("End date must be later than current and start date")]
    EndInPast,
    /// The lease is being taken down, or another operation is in progress.
    #[error("Invalid lease status.")]
    Busy,
    #[error(
        "Please enter valid reservation IDs. Invalid reservation IDs are: {}",
        quoted_list(&.0.iter().map(ToString::to_string).collect::<Vec<_>>(), ",")
    )]
    UnknownReservations(Vec<ReservationId>),
    #[error("resource_type cannot be updated")]
    ResourceType(ReservationId),
    /// A started lease would lose these hosts.
    #[error("Not enough hosts available")]
    WouldLoseHosts(Vec<HostId>),
    /// A started lease has more hosts than the change allows, and keeps them. Those that block its start are given back.
    #[error("Not enough hosts available")]
    WouldGiveBackHosts {
        held: u64,
        /// Maximum number of hosts after the change.
        most: u64,
    },
    /// A started reservation of instances can only change its amount.
    #[error("An active reservation only accepts to update amount.")]
    OnlyAmount(ReservationId),
    /// A started lease would lose slots.
    #[error(
        "Instance reservation doesn't allow to reduce/replace reserved instance slots when the reservation \
         is in active status."
    )]
    WouldLoseSlots(ReservationId),
    #[error("Updating parameters for 'flavor:instance' type reservations is not yet supported.")]
    FlavorIsFixed(ReservationId),
    /// The lease can't keep its resources until the requested end, but can until an earlier one.
    #[error("{refusal}")]
    EndsTooLate {
        /// The obstacle to the requested end.
        refusal: Box<Refusal>,
        /// The instant from which on other leases have booked the resources.
        taken_from: Timestamp,
        /// Name of a lease of the same project that has booked them, if there is one.
        taken_by: Option<String>,
        /// The latest possible end, to the minute.
        latest: Timestamp,
    },
    /// The reservation of addresses doesn't allow this change.
    #[error("Floating IP reservation cannot be updated with requested parameters. {why}")]
    FloatingIps { reservation: ReservationId, why: &'static str },
}

impl Refusal {
    /// The obstacle, without alternatives.
    pub fn cause(&self) -> &Self {
        match self {
            Self::EndsTooLate { refusal, .. } => refusal.cause(),
            _ => self,
        }
    }

    /// The taken resources that the lease would need to go on.
    fn taken(&self) -> &'static str {
        match self {
            Self::WouldLoseHosts(hosts) if hosts.len() == 1 => "its host is taken",
            Self::FloatingIps { .. }
            | Self::FloatingIpTaken(_)
            | Self::NotEnough { resource: Resource::FloatingIps, .. } => "its addresses are taken",
            Self::NotEnough { resource: Resource::Slots(_), .. } => "its room is taken",
            _ => "its hosts are taken",
        }
    }

    /// Details that the error text leaves out, if there are any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Enforcement(limit) => Some(limit.hint()),
            Self::QuotaAndLack { lack, .. } => {
                let details = lack.hint().map(|hint| format!(": {hint}")).unwrap_or_default();
                Some(format!("beside the quota: {lack}{details}"))
            }
            Self::NotEnough { resource, needed, found, .. } => Some(match resource {
                Resource::Hosts(report) => {
                    format!("{} needed: {report}", counted(*needed, "host", "hosts"))
                }
                Resource::Slots(report) => {
                    let instances = counted(*needed, "instance", "instances");
                    format!("{instances} needed, {found} fit: {report}")
                }
                Resource::FloatingIps => {
                    format!("{} needed, {found} free", counted(*needed, "address", "addresses"))
                }
            }),
            Self::NoHunt { refusal, hunt } => {
                let first = refusal.hint().map(|hint| format!("{hint}; ")).unwrap_or_default();
                Some(format!("{first}{hunt}"))
            }
            Self::TooCostly(Costly { reservations, number, values, .. }) => Some(format!(
                "of {} the largest asks for {number} and compares with {}",
                counted(*reservations as u64, "reservation", "reservations"),
                counted(*values as u64, "value", "values"),
            )),
            Self::FloatingIpTaken(address) => Some(format!("{address} is not free at that time")),
            Self::WouldLoseHosts(hosts) => {
                let (of, do_not) = if hosts.len() == 1 { ("one", "does") } else { ("some", "do") };
                Some(format!(
                    "a lease that has started keeps its hosts, and {of} of them {do_not} not fit the change"
                ))
            }
            Self::WouldGiveBackHosts { held, most } => Some(format!(
                "a lease that has started can't give hosts back, except those that block its start: it has {}, and the change \
                 allows {most}; an earlier end is possible",
                counted(*held, "host", "hosts")
            )),
            Self::EndsTooLate { refusal, taken_from, taken_by, latest } => Some(format!(
                "{}{} from {} on, the latest possible end is {}",
                refusal.taken(),
                taken_by
                    .as_ref()
                    .map(|name| format!(" by the project's lease {}", Quoted(name)))
                    .unwrap_or_default(),
                minute(*taken_from),
                minute(*latest)
            )),
            _ => None,
        }
    }
}
