//! Hosts of a reservation that is to survive the failure of some of them ([`crate::failure_domain`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Search;
use crate::calendar::Fit;
use crate::failure_domain::{FailureDomain, Quota, Supply, left, quota};
use crate::filters::HostFilter;
use crate::hints::place;
use crate::ids::HostId;
use crate::terms::{HostsTerms, SlotsTerms};

/// One failure domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Domain<'a> {
    Host(HostId),
    Place(Cow<'a, str>),
}

impl Search<'_> {
    pub(super) fn domain(&self, host: HostId, asked: &FailureDomain) -> Domain<'_> {
        match asked {
            FailureDomain::Host => Domain::Host(host),
            FailureDomain::Place(property) => {
                let host = self.admission.inventory.host(host);
                Domain::Place(host.and_then(|host| place(host, property)).unwrap_or_default())
            }
        }
    }

    /// What each domain has, of what is kept on hosts and what could be had there beside it.
    fn supply(
        &self,
        on: impl IntoIterator<Item = (HostId, u32, u32)>,
        asked: &FailureDomain,
    ) -> BTreeMap<Domain<'_>, Supply> {
        let mut supply: BTreeMap<Domain<'_>, Supply> = BTreeMap::new();
        for (host, kept, free) in on {
            let there = supply.entry(self.domain(host, asked)).or_default();
            there.kept += u64::from(kept);
            there.free += u64::from(free);
        }
        supply
    }

    /// How many are left of so many on each host, if the domain that has most of them fails.
    pub(super) fn left_of(&self, on: impl IntoIterator<Item = (HostId, u32)>, asked: &FailureDomain) -> u64 {
        let on = on.into_iter().map(|(host, count)| (host, count, 0));
        left(self.supply(on, asked).into_values().map(|supply| supply.kept))
    }

    /// How many hosts of these count: those that are left whichever one domain fails, if the reservation is to survive
    /// that.
    pub(super) fn counting(&self, hosts: impl IntoIterator<Item = HostId>, asked: &HostsTerms) -> usize {
        let hosts = hosts.into_iter();
        match &asked.properties.survives {
            None => hosts.count(),
            Some(domain) => self.left_of(hosts.map(|host| (host, 1)), domain) as usize,
        }
    }

    /// Why hosts do not count that can be had: others may fail, or it is not known of any where it is.
    pub(super) fn uncounted(&self, free: &[Fit], asked: &HostsTerms) -> HostFilter {
        let property = asked.properties.survives.as_ref().and_then(FailureDomain::property);
        let placed = |fit: &Fit| {
            let host = self.admission.inventory.host(fit.host);
            property.is_none_or(|property| host.is_some_and(|host| place(host, property).is_some()))
        };
        if free.iter().any(placed) { HostFilter::InReserve } else { HostFilter::Unplaced }
    }

    /// How many hosts count of those that can be had.
    pub(super) fn could_count(&self, free: &[Fit], asked: &HostsTerms) -> usize {
        self.counting(free.iter().map(|fit| fit.host), asked)
    }

    /// The same of slots.
    pub(super) fn counting_slots(&self, slots: &BTreeMap<HostId, u32>, asked: &SlotsTerms<'_>) -> u64 {
        let slots = slots.iter().map(|(host, count)| (*host, *count));
        match asked.survives {
            None => slots.map(|(_, count)| u64::from(count)).sum(),
            Some(domain) => self.left_of(slots, domain),
        }
    }

    /// How many slots there are to be, in all and in each domain, so that so many are left whichever fails.
    pub(super) fn limits(
        &self,
        on: impl IntoIterator<Item = (HostId, u32, u32)> + Clone,
        wanted: u32,
        domain: &FailureDomain,
    ) -> Limits {
        let supply = self.supply(on.clone(), domain);
        let Quota { total, in_one } = quota(&supply.values().copied().collect::<Vec<_>>(), wanted.into());
        let number: BTreeMap<&Domain<'_>, usize> = supply.keys().zip(0..).collect();
        let number_of = |host| number.get(&self.domain(host, domain)).copied().unwrap_or_default();
        let at_most = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Limits {
            total: at_most(total),
            domains: on.into_iter().map(|(host, _, _)| (host, number_of(host))).collect(),
            more_in: vec![at_most(in_one); supply.len()],
        }
    }

    /// The hosts that it keeps, with the fewest of those that can be had so that `wanted` [count](Self::counting), or
    /// as many as can be: those of `held` first, then those that fit best.
    pub(super) fn joined(
        &self,
        kept: &BTreeSet<HostId>,
        free: &[Fit],
        wanted: usize,
        asked: &HostsTerms,
        held: &BTreeSet<HostId>,
    ) -> BTreeSet<HostId> {
        let mut hosts = kept.clone();
        let Some(domain) = &asked.properties.survives else {
            hosts.extend(self.best(free, wanted.saturating_sub(kept.len()), held));
            return hosts;
        };
        let on = kept.iter().map(|host| (*host, 1, 0)).chain(free.iter().map(|fit| (fit.host, 0, 1)));
        let mut supply = self.supply(on, domain);
        let Quota { total, in_one } = quota(&supply.values().copied().collect::<Vec<_>>(), wanted as u64);
        for host in self.ranked(free, held) {
            if hosts.len() as u64 >= total {
                break;
            }
            let there = supply.entry(self.domain(host, domain)).or_default();
            if there.kept < in_one && hosts.insert(host) {
                there.kept += 1;
            }
        }
        hosts
    }
}

/// How many slots there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// In all.
    pub total: u32,
    /// The number of the domain of each host.
    domains: BTreeMap<HostId, usize>,
    /// How many more there may be in each domain.
    more_in: Vec<u32>,
}

impl Limits {
    /// How many more there may be on the host.
    pub fn more_on(&self, host: HostId) -> u32 {
        let domain = self.domains.get(&host).and_then(|domain| self.more_in.get(*domain));
        domain.copied().unwrap_or(0)
    }

    /// So many are there.
    pub fn use_up(&mut self, host: HostId, count: u32) {
        let domain = self.domains.get(&host).and_then(|domain| self.more_in.get_mut(*domain));
        if let Some(more) = domain {
            *more -= count.min(*more);
        }
    }
}

impl HostsTerms {
    /// With fewer hosts than this it cannot be had, whatever they are.
    pub(super) fn least_in_all(&self) -> usize {
        self.min() as usize + usize::from(self.properties.survives.is_some())
    }
}
