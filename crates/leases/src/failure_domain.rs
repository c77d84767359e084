//! Failure domains, and the spare capacity with which a lease survives the failure of any one of them (its
//! failure buffer).
//!
//! A reservation of `n` hosts that survives the failure of a domain gets at most `c` hosts in each domain and
//! `n + c` in total, so `n` remain whichever domain fails. `c` is the smallest possible number, which costs
//! least.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::extra_specs::MAX_LENGTH;
use crate::text::as_written;

/// Hosts that are assumed to fail together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureDomain {
    /// Each host fails by itself.
    Host,
    /// Hosts with the same value of this property, such as their rack. Hosts without a value could share a
    /// place, so they count as one domain.
    Place(String),
}

/// Invalid failure domain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FailureDomainError {
    /// The name is empty or too long.
    #[error("a failure domain is host, or a property of hosts, of {MAX_LENGTH} characters at most")]
    Name,
}

impl FailureDomain {
    /// `host`, or the property's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Host => "host",
            Self::Place(property) => property,
        }
    }

    /// Property that defines the domain; `None` for single hosts.
    pub fn property(&self) -> Option<&str> {
        match self {
            Self::Host => None,
            Self::Place(property) => Some(property),
        }
    }
}

impl fmt::Display for FailureDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&as_written(self.name()))
    }
}

impl FromStr for FailureDomain {
    type Err = FailureDomainError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.trim() {
            "host" => Ok(Self::Host),
            "" => Err(FailureDomainError::Name),
            name if as_written(name).chars().count() > MAX_LENGTH => Err(FailureDomainError::Name),
            name => Ok(Self::Place(name.to_owned())),
        }
    }
}

/// Remainder if the domain with the largest count fails.
pub(crate) fn left(in_each: impl IntoIterator<Item = u64>) -> u64 {
    let (sum, most) =
        in_each.into_iter().fold((0_u64, 0), |(sum, most), count| (sum + count, count.max(most)));
    sum - most
}

/// Capacity in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Supply {
    /// Amount that the reservation keeps there in any case.
    pub kept: u64,
    /// Further amount available to the reservation.
    pub free: u64,
}

/// Amounts for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub total: u64,
    /// Maximum in a single domain.
    pub in_one: u64,
}

/// Smallest quota with which `wanted` remain whichever domain fails. If that is impossible, the quota with
/// which the most remain.
pub(crate) fn quota(supply: &[Supply], wanted: u64) -> Quota {
    let all = |supply: &Supply| supply.kept + supply.free;
    let total = |in_one: u64| supply.iter().map(|supply| all(supply).min(in_one)).sum::<u64>();
    let left = |in_one: u64| total(in_one) - in_one;
    let least = supply.iter().map(|supply| supply.kept).max().unwrap_or(0);
    let most = supply.iter().map(all).max().unwrap_or(0);
    let wanted = wanted.min(left(most));
    // Up to the size of the largest domain, `left` never decreases as `in_one` grows: each domain with more
    // capacity adds one, and there is at least one such domain to make up for the one subtracted.
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if left(middle) >= wanted { high = middle } else { low = middle + 1 }
    }
    Quota { total: wanted + low, in_one: low }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tries all amounts in all domains. Returns the smallest total with which `wanted` remain, and the
    /// maximum that can remain.
    fn tried(supply: &[Supply], wanted: u64) -> (Option<u64>, u64) {
        let mut ways: Vec<Vec<u64>> = vec![vec![]];
        for Supply { kept, free } in supply {
            ways = ways
                .iter()
                .flat_map(|way| (*kept..=kept + free).map(|count| [way.as_slice(), &[count]].concat()))
                .collect();
        }
        let enough = ways.iter().filter(|way| left(way.iter().copied()) >= wanted);
        let least = enough.map(|way| way.iter().sum()).min();
        (least, ways.iter().map(|way| left(way.iter().copied())).max().unwrap_or(0))
    }

    proptest! {
        #[test]
        fn fb_a_it_is_the_least_with_which_enough_are_left(
            supply in prop::collection::vec((0_u64..3, 0_u64..4), 0..5),
            wanted in 0_u64..9,
        ) {
            let supply: Vec<Supply> = supply.into_iter().map(|(kept, free)| Supply { kept, free }).collect();
            let (least, most) = tried(&supply, wanted);
            let found = quota(&supply, wanted);
            prop_assert!(supply.iter().all(|supply| supply.kept <= found.in_one));
            let can_be: u64 = supply.iter().map(|s| (s.kept + s.free).min(found.in_one)).sum();
            prop_assert!(found.total <= can_be);
            if let Some(least) = least {
                // The kept amounts can exceed the quota.
                prop_assert_eq!(found.total.max(supply.iter().map(|s| s.kept).sum()), least);
            } else {
                prop_assert_eq!(found.total - found.in_one, most);
            }
        }
    }

    #[test]
    fn fb_a_four_hosts_that_survive_the_loss_of_a_rack() {
        let racks = |count: usize| vec![Supply { kept: 0, free: 10 }; count];
        for (count, total, in_one) in [(1, 0, 0), (2, 8, 4), (3, 6, 2), (4, 6, 2), (5, 5, 1)] {
            assert_eq!(quota(&racks(count), 4), Quota { total, in_one }, "{count} racks");
        }
        assert_eq!(left([2, 2, 2]), 4);
    }

    #[test]
    fn domains_are_hosts_or_properties_of_them() {
        assert_eq!("host".parse(), Ok(FailureDomain::Host));
        assert_eq!(" rack ".parse(), Ok(FailureDomain::Place("rack".to_owned())));
        for wrong in ["", " ", &"x".repeat(MAX_LENGTH + 1)] {
            assert_eq!(wrong.parse::<FailureDomain>(), Err(FailureDomainError::Name), "{wrong}");
        }
    }
}
