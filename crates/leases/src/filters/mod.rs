//! Filters that candidates pass, by name, with a count of what each removed: a refusal can then say which
//! condition to relax (CLS-07).

mod choice;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use self::choice::{CustomFilter, Filter, Filters};
use crate::hints::Hint;
use crate::host::Host;
use crate::text::counted;
use crate::work::Budget;

/// What can rule a host out. A host counts for the first that does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostFilter {
    /// The operator lets it be reserved.
    Reservable,
    /// One that the operator can leave out.
    Named(Filter),
    /// One that the operator has written, by its name.
    Custom(Arc<str>),
    /// It matches `hypervisor_properties`.
    HypervisorProperties,
    /// It matches `resource_properties`.
    ResourceProperties,
    /// It is as a hint of the lease wants it.
    Hint(Hint),
    /// It has the traits that the flavor requires, and none that it forbids.
    Traits,
    /// No guest is on it that nobody may remove.
    Guests,
    /// It is not leased to others in that time, cleaning time included.
    Calendar,
    /// No other part of the lease has it.
    OwnPart,
    /// It is on, or can be by then.
    Power,
    /// It has room for at least one instance of that size.
    Room,
    /// It need not be kept in case others fail.
    InReserve,
    /// It is known where it is, which has to be for others to be elsewhere.
    Unplaced,
}

impl HostFilter {
    /// What is wrong with a host that it removes.
    fn complaint(&self) -> &'static str {
        match self {
            Self::Reservable => "closed for new leases",
            Self::Named(filter) => filter.complaint(),
            Self::Custom(_) => "against the operator's rules",
            Self::HypervisorProperties => "not matching hypervisor_properties",
            Self::ResourceProperties => "not matching resource_properties",
            Self::Hint(_) => "against the hint",
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

    /// The name by which the operator can leave it out, if that is possible.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(filter) => Some(filter.name()),
            Self::Custom(name) => Some(name),
            Self::HypervisorProperties | Self::ResourceProperties => Some(Filter::Json.name()),
            Self::Hint(hint) => Some(hint.name()),
            Self::Reservable
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
}

impl From<Filter> for HostFilter {
    fn from(filter: Filter) -> Self {
        Self::Named(filter)
    }
}

/// What the filters left.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FilterReport {
    /// How many hosts there are.
    pub considered: usize,
    /// How many each filter removed; filters that removed none are absent.
    pub removed: BTreeMap<HostFilter, usize>,
}

impl FilterReport {
    /// How many hosts are left.
    pub fn left(&self) -> usize {
        self.considered - self.removed.values().sum::<usize>()
    }
}

impl fmt::Display for FilterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} left", self.left(), counted(self.considered as u64, "host", "hosts"))?;
        for (filter, count) in &self.removed {
            write!(f, ", {count} {}", filter.complaint())?;
            if let Some(name) = filter.name() {
                write!(f, " ({name})")?;
            }
        }
        Ok(())
    }
}

/// A filter and how it judges.
pub(crate) type Judge<'a> = (HostFilter, &'a dyn Fn(&Host) -> bool);

/// The hosts that pass all filters, in the order given, and what became of the others. What raises the first
/// objection, if anything does, comes before the filters. Each host costs so many units; the rest is left out once the
/// budget is used up.
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
    use crate::testing::host;
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
}
