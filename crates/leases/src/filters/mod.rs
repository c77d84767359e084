//! Named filters for candidate hosts. They count the hosts each one removed, so a refusal can name the
//! condition to relax (CLS-07).

mod choice;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use self::choice::{CustomFilter, Filter, Filters};
use crate::hints::Hint;
use crate::host::Host;
use crate::length_limit::LengthLimit;
use crate::text::counted;
use crate::work::Budget;

/// A reason to rule a host out. Each variant documents the condition for passing. A host counts for the first
/// filter that removes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostFilter {
    /// The operator allows the host to be reserved.
    Reservable,
    /// A filter that the operator can disable.
    Named(Filter),
    /// Belongs to the largest group of equal hosts, if the lease requires equal hosts.
    Unlike,
    /// Is equal to the hosts that the lease has.
    UnlikeOwn,
    /// Passes the operator's own filter of this name.
    Custom(Arc<str>),
    /// Matches `hypervisor_properties`.
    HypervisorProperties,
    /// Matches `resource_properties`.
    ResourceProperties,
    /// Complies with a hint of the lease.
    Hint(Hint),
    /// Allows leases of this length.
    Length(LengthLimit),
    /// Has the traits that the flavor requires, and none that it forbids.
    Traits,
    /// Has no guests that can't be removed.
    Guests,
    /// Isn't leased at that time, including cleaning time.
    Calendar,
    /// Isn't allocated to another part of the same lease.
    OwnPart,
    /// Is on, or can be on in time.
    Power,
    /// Has capacity for at least one instance of the requested size.
    Room,
    /// Isn't part of the failure buffer.
    InReserve,
    /// Its place is known. A host in an unknown place can't cover for the failure of another place.
    Unplaced,
}

impl HostFilter {
    /// Description of the removed hosts, for reports.
    fn complaint(&self) -> &'static str {
        match self {
            Self::Reservable => "closed for new leases",
            Self::Named(filter) => filter.complaint(),
            Self::Unlike => "unlike the largest group of equal hosts (homogeneous, alike)",
            Self::UnlikeOwn => "unlike the lease's other hosts (homogeneous, alike)",
            Self::Custom(_) => "against the operator's rules",
            Self::HypervisorProperties => "not matching hypervisor_properties",
            Self::ResourceProperties => "not matching resource_properties",
            Self::Hint(_) => "against the hint",
            Self::Length(_) => "where leases must be shorter",
            Self::Traits => "without the flavor's traits",
            Self::Guests => "with guests of others",
            Self::Calendar => "leased at that time",
            Self::OwnPart => "taken by another part of this lease",
            Self::Power => "off, and not to be woken by then",
            Self::Room => "without room at that time",
            Self::InReserve => "needed in case others fail",
            Self::Unplaced => "without the property that says where they are",
        }
    }

    /// Name by which the operator can disable the filter, if that is possible.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(filter) => Some(filter.name()),
            Self::Custom(name) => Some(name),
            Self::HypervisorProperties | Self::ResourceProperties => Some(Filter::Json.name()),
            Self::Hint(hint) => Some(hint.name()),
            Self::Unlike | Self::UnlikeOwn => Some(Filter::Homogeneous.name()),
            Self::Reservable
            | Self::Length(_)
            | Self::Traits
            | Self::Guests
            | Self::Calendar
            | Self::OwnPart
            | Self::Power
            | Self::Room
            | Self::InReserve
            | Self::Unplaced => None,
        }
    }

    /// Whether a host removed by this filter could pass at another time.
    fn may_pass_later(&self) -> bool {
        match self {
            Self::Reservable
            | Self::Unlike
            | Self::UnlikeOwn
            | Self::Named(Filter::Compute)
            | Self::Hint(Hint::Location)
            | Self::Guests
            | Self::Calendar
            | Self::OwnPart
            | Self::Power
            | Self::Room
            | Self::InReserve => true,
            Self::Named(_)
            | Self::Custom(_)
            | Self::HypervisorProperties
            | Self::ResourceProperties
            | Self::Hint(_)
            | Self::Length(_)
            | Self::Traits
            | Self::Unplaced => false,
        }
    }
}

impl From<Filter> for HostFilter {
    fn from(filter: Filter) -> Self {
        Self::Named(filter)
    }
}

/// Counts of hosts considered and removed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FilterReport {
    pub considered: usize,
    /// Number of hosts removed by each filter. Filters that removed none are absent.
    pub removed: BTreeMap<HostFilter, usize>,
}

impl FilterReport {
    /// Number of hosts that passed.
    pub fn left(&self) -> usize {
        self.considered - self.removed.values().sum::<usize>()
    }

    /// The limit on lease length that keeps `needed` hosts from being found: without it there would be enough
    /// hosts at some time. If several limits apply, returns the most generous one.
    pub(crate) fn length_limit(&self, needed: u64) -> Option<&LengthLimit> {
        let mut possible = self.left();
        let mut too_long: usize = 0;
        let mut longest = None;
        for (filter, &count) in &self.removed {
            if let HostFilter::Length(limit) = filter {
                too_long += count;
                // Iteration is in ascending order, so the last limit is the longest.
                longest = Some(limit);
            } else if filter.may_pass_later() {
                possible += count;
            }
        }
        let is_cause = (possible as u64) < needed && needed <= (possible + too_long) as u64;
        longest.filter(|_| is_cause)
    }
}

impl fmt::Display for FilterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} left", self.left(), counted(self.considered as u64, "host", "hosts"))?;
        for (filter, count) in &self.removed {
            write!(f, ", {count} {}", filter.complaint())?;
            match filter {
                // These descriptions already name the field of the request.
                HostFilter::HypervisorProperties
                | HostFilter::ResourceProperties
                | HostFilter::Unlike
                | HostFilter::UnlikeOwn
                | HostFilter::Named(Filter::Homogeneous) => {}
                HostFilter::Length(limit) => write!(f, ": {limit}")?,
                filter => filter.name().map_or(Ok(()), |name| write!(f, " ({name})"))?,
            }
        }
        Ok(())
    }
}

/// A filter with its predicate.
pub(crate) type Judge<'a> = (HostFilter, &'a dyn Fn(&Host) -> bool);

/// Hosts that pass all filters, in the given order, and a report on the hosts that were removed. `objection`
/// is evaluated before `filters`. Each host costs `units` of the budget; hosts beyond it are left out.
pub(crate) fn screen<'a>(
    hosts: impl IntoIterator<Item = &'a Host>,
    (budget, units): (&Budget, u64),
    objection: &dyn Fn(&Host) -> Option<HostFilter>,
    filters: &[Judge<'_>],
) -> (Vec<&'a Host>, FilterReport) {
    let mut report = FilterReport::default();
    let mut passed = Vec::new();
    for host in hosts {
        if !budget.spend(units) {
            break;
        }
        report.considered += 1;
        let failed = || filters.iter().find(|(_, passes)| !passes(host)).map(|(filter, _)| filter.clone());
        match objection(host).or_else(failed) {
            Some(filter) => *report.removed.entry(filter).or_insert(0) += 1,
            None => passed.push(host),
        }
    }
    (passed, report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoped::Scope;
    use crate::testing::{host, minutes};
    use crate::work::UNLIMITED;

    #[test]
    fn cls_07_a_report_says_which_filter_removed_how_many_hosts() {
        let hosts: Vec<Host> = (1..=5).map(host).collect();
        let objection = |host: &Host| match host.id.0 {
            1 => Some(HostFilter::Custom("NoTestHosts".into())),
            2 | 4 => Some(Filter::Core.into()),
            _ => None,
        };
        let odd: Judge<'_> = (HostFilter::Calendar, &|host| host.id.0 != 5);
        let (passed, report) = screen(&hosts, (&UNLIMITED, 1), &objection, &[odd]);
        assert_eq!(passed.iter().map(|h| h.id.0).collect::<Vec<_>>(), [3]);
        let text = "1 of 5 hosts left, 2 with too few virtual CPUs (CoreFilter), \
                    1 against the operator's rules (NoTestHosts), 1 leased at that time";
        assert_eq!(report.to_string(), text);
    }

    #[test]
    fn a_limit_on_the_length_is_the_cause_if_others_could_not_be_found_at_any_time() {
        let limit = |pool: &str, longest| {
            let scope = Some(Scope::pool(pool));
            HostFilter::Length(LengthLimit { longest: minutes(longest), scope })
        };
        let report = |removed: &[(HostFilter, usize)]| FilterReport {
            considered: 6,
            removed: removed.iter().cloned().collect(),
        };
        let cause = |report: &FilterReport, needed| {
            report.length_limit(needed).and_then(|limit| limit.scope.as_ref()).map(Scope::to_string)
        };
        let (short, long, other) = (limit("a", 60), limit("b", 90), HostFilter::ResourceProperties);
        let all = report(&[(short.clone(), 2), (long, 1), (other.clone(), 3)]);
        assert_eq!(cause(&all, 1).as_deref(), Some("pool:b"), "the longest that it could be");
        assert_eq!(cause(&all, 4), None, "there are not as many");
        let busy = report(&[(short.clone(), 2), (HostFilter::Calendar, 1), (other.clone(), 3)]);
        assert_eq!((cause(&busy, 1), cause(&busy, 2).as_deref()), (None, Some("pool:a")));
        let text = report(&[(short, 2), (other, 4)]).to_string();
        let says = "0 of 6 hosts left, 4 not matching resource_properties, \
                    2 where leases must be shorter: at most 3600 seconds for its free pool (leases.max_duration)";
        assert_eq!(text, says);
    }
}
