//! Why a lease is not made or not changed.

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

/// What there was not enough of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Whole hosts, and what became of all the others.
    Hosts(FilterReport),
    /// Slots for instances, and what became of hosts without any.
    Slots(FilterReport),
    /// Addresses of a network.
    FloatingIps,
}

impl Resource {
    /// As Blazar's messages call it; clients look for these words (API-clients).
    fn name(&self) -> &'static str {
        match self {
            Self::Hosts(_) | Self::Slots(_) => "hosts",
            Self::FloatingIps => "floating IPs",
        }
    }
}

/// How large a request is whose decision costs more than it may, so that its client knows what to make smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costly {
    /// How many units of work it may cost.
    pub limit: u64,
    /// How many reservations there are.
    pub reservations: usize,
    /// How many hosts, instances or addresses the largest of them wants.
    pub number: u32,
    /// With how many values its expressions and the hints of the lease compare.
    pub values: usize,
}

impl Costly {
    /// A request for these reservations in a lease with these hints.
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

/// Why a lease is not made or not changed. Texts are Blazar's where it has one (API-create to API-update), because
/// clients know them; [`Refusal::hint`] says more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The terms themselves are wrong.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// A limit of the operator is exceeded.
    #[error(transparent)]
    Enforcement(#[from] EnforcementError),
    /// The project would have more than it may.
    #[error(transparent)]
    Quota(#[from] OverLeaseQuota),
    /// Its hints cannot be had here.
    #[error(transparent)]
    Hints(#[from] HintError),
    /// The start is in the past.
    #[error("Start date must be later than current date")]
    StartInPast,
    /// It would have timed out before it was asked for.
    #[error("The timeout must be later than the current date")]
    DeadlineInPast,
    /// It would start when it has timed out.
    #[error("The start date must be earlier than the timeout")]
    StartAfterDeadline,
    /// Hosts of another region are asked for (CLS-05).
    #[error("Region {} is not served here: {}", Quoted(.asked), .own.as_ref().map_or_else(
        || "this service is of no region".to_owned(), |own| format!("this service is of region {own}")))]
    Region {
        /// What is asked for.
        asked: String,
        /// Where the service is, if the operator has said.
        own: Option<String>,
    },
    /// Something is asked for that nothing would hold hosts to (CLS-07).
    #[error("{} is not supported here: the operator has left {filter} out", Quoted(.property))]
    FilterLeftOut {
        /// What is asked for.
        property: String,
        /// What would look at it.
        filter: Filter,
    },
    /// There is not enough.
    #[error("Not enough {} available", .resource.name())]
    NotEnough {
        /// Which of the lease's reservations, counted from 0.
        position: usize,
        /// Of what.
        resource: Resource,
        /// How many are needed.
        needed: u64,
        /// How many could be had.
        found: u64,
    },
    /// It cannot wait for hosts, and they cannot be cleared either.
    #[error("{refusal}")]
    NoHunt {
        /// Why they are not to be had without moving anybody.
        refusal: Box<Refusal>,
        /// Why moving guests of others away does not help.
        hunt: HuntRefusal,
    },
    /// To find out costs more work than a request may ([`crate::work`]). Nothing is known of what could be had.
    #[error("{0}")]
    TooCostly(Costly),
    /// Nobody waits for the decision any more. It is no answer: nobody is there to read it.
    #[error("The request was canceled")]
    Canceled,
    /// An address that is required cannot be had.
    #[error("Not enough floating IPs available")]
    FloatingIpTaken(IpAddr),
    /// A started lease's start was to be changed (W11).
    #[error("Cannot modify the start date of already started leases")]
    Started,
    /// The lease is over (W12).
    #[error("Terminated leases can only be renamed")]
    Over,
    /// The new end is in the past, or before the start.
    #[error("End date must be later than current and start date")]
    EndInPast,
    /// The lease is being taken down, or something else is being done to it.
    #[error("Invalid lease status.")]
    Busy,
    /// The lease has no such reservations.
    #[error(
        "Please enter valid reservation IDs. Invalid reservation IDs are: {}",
        quoted_list(&.0.iter().map(ToString::to_string).collect::<Vec<_>>(), ",")
    )]
    UnknownReservations(Vec<ReservationId>),
    /// A reservation cannot become one of another type.
    #[error("resource_type cannot be updated")]
    ResourceType(ReservationId),
    /// A started lease would lose these hosts.
    #[error("Not enough hosts available")]
    WouldLoseHosts(Vec<HostId>),
    /// A started lease has more hosts than the change allows, and keeps them.
    #[error("Not enough hosts available")]
    WouldGiveBackHosts {
        /// The number of hosts that it has.
        held: u64,
        /// The maximum of the change.
        most: u64,
    },
    /// Of a started reservation of instances only the amount can be changed.
    #[error("An active reservation only accepts to update amount.")]
    OnlyAmount(ReservationId),
    /// A started lease would lose slots.
    #[error(
        "Instance reservation doesn't allow to reduce/replace reserved instance slots when the reservation \
         is in active status."
    )]
    WouldLoseSlots(ReservationId),
    /// A reservation of a flavor keeps its terms.
    #[error("Updating parameters for 'flavor:instance' type reservations is not yet supported.")]
    FlavorIsFixed(ReservationId),
    /// It could not have what it has until the end that is asked for, but until an earlier one.
    #[error("{refusal}")]
    EndsTooLate {
        /// What stands in the way of that end.
        refusal: Box<Refusal>,
        /// From when on others have what it would need.
        taken_from: Timestamp,
        /// The name of a lease of the same project that has it, if one has.
        taken_by: Option<String>,
        /// The latest end that it could have, to the minute.
        latest: Timestamp,
    },
    /// A reservation of addresses cannot be changed so.
    #[error("Floating IP reservation cannot be updated with requested parameters. {why}")]
    FloatingIps {
        /// The reservation.
        reservation: ReservationId,
        /// What cannot be done.
        why: &'static str,
    },
}

impl Refusal {
    /// What stands in the way, without what could be had instead.
    pub fn cause(&self) -> &Self {
        match self {
            Self::EndsTooLate { refusal, .. } => refusal.cause(),
            _ => self,
        }
    }

    /// What others have that a lease would need to go on.
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

    /// What the text of the error leaves out, if there is more to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Enforcement(limit) => Some(limit.hint()),
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
                "a lease that has started can't give hosts back: it has {}, and the change allows {most}; an earlier end is \
                 possible",
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
