//! Filters that candidates pass, by name, with a count of what each removed: a refusal can then say which
//! condition to relax.

use std::collections::BTreeMap;
use std::fmt;

use crate::host::{Health, Host};

/// What can rule a host out. The order is the order of application; a host counts for the first that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostFilter {
    /// The operator lets it be reserved.
    Reservable,
    /// It works, as far as is known.
    Healthy,
    /// It matches `hypervisor_properties`.
    HypervisorProperties,
    /// It matches `resource_properties`.
    ResourceProperties,
    /// It has the traits that the flavor requires, and none that it forbids.
    Traits,
    /// No guest is on it that nobody may remove.
    Guests,
    /// It is not leased to others in that time, cleaning time included.
    Calendar,
    /// It has room for at least one instance of that size.
    Room,
}

impl HostFilter {
    /// What is wrong with a host that it removes.
    fn complaint(self) -> &'static str {
        match self {
            Self::Reservable => "not reservable",
            Self::Healthy => "not working",
            Self::HypervisorProperties => "not matching hypervisor_properties",
            Self::ResourceProperties => "not matching resource_properties",
            Self::Traits => "without the flavor's traits",
            Self::Guests => "with guests of others",
            Self::Calendar => "leased at that time",
            Self::Room => "without room at that time",
        }
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
        write!(f, "{} of {} hosts left", self.left(), self.considered)?;
        for (filter, count) in &self.removed {
            write!(f, ", {count} {}", filter.complaint())?;
        }
        Ok(())
    }
}

/// A filter and how it judges.
pub(crate) type Judge<'a> = (HostFilter, &'a dyn Fn(&Host) -> bool);

/// The hosts that pass all filters, in the order given, and what became of the others.
///
/// Reservable and healthy hosts only, whatever the other filters say.
pub(crate) fn screen<'a>(
    hosts: impl IntoIterator<Item = &'a Host>,
    filters: &[Judge<'_>],
) -> (Vec<&'a Host>, FilterReport) {
    let always: [Judge<'_>; 2] = [
        (HostFilter::Reservable, &|host| host.reservable),
        (HostFilter::Healthy, &|host| host.health == Health::Up),
    ];
    let mut report = FilterReport::default();
    let mut passed = Vec::new();
    for host in hosts {
        report.considered += 1;
        match always.iter().chain(filters).find(|(_, passes)| !passes(host)) {
            Some((filter, _)) => *report.removed.entry(*filter).or_insert(0) += 1,
            None => passed.push(host),
        }
    }
    (passed, report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;

    #[test]
    fn a_report_says_which_filter_removed_how_many_hosts() {
        let mut hosts: Vec<Host> = (1..=5).map(host).collect();
        hosts[0].reservable = false;
        hosts[1].health = Health::Failed;
        hosts[2].health = Health::Unknown;
        hosts[0].health = Health::Failed;
        let odd: Judge<'_> = (HostFilter::Calendar, &|host| host.id.0 % 2 == 1);
        let (passed, report) = screen(&hosts, &[odd]);
        assert_eq!(passed.iter().map(|h| h.id.0).collect::<Vec<_>>(), [5]);
        let text = "1 of 5 hosts left, 1 not reservable, 2 not working, 1 leased at that time";
        assert_eq!(report.to_string(), text);
    }
}
