//! Hosts of a reservation that must survive failures ([`crate::failure_domain`]).

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

    /// Kept and free resources by domain.
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

    /// Number that is left after the domain with the highest number fails.
    pub(super) fn left_of(&self, on: impl IntoIterator<Item = (HostId, u32)>, asked: &FailureDomain) -> u64 {
        let on = on.into_iter().map(|(host, count)| (host, count, 0));
        left(self.supply(on, asked).into_values().map(|supply| supply.kept))
    }

    /// Number of hosts that count. If the reservation must survive a failure, these are the hosts left after
    /// the worst failure.
    pub(super) fn counting(&self, hosts: impl IntoIterator<Item = HostId>, asked: &HostsTerms) -> usize {
        let hosts = hosts.into_iter();
        match &asked.properties.survives {
            None => hosts.count(),
            Some(domain) => self.left_of(hosts.map(|host| (host, 1)), domain) as usize,
        }
    }

    /// The filter to report for free hosts that don't count: they are in reserve for failures, or the places
    /// of all free hosts are unknown.
    pub(super) fn uncounted(&self, free: &[Fit], asked: &HostsTerms) -> HostFilter {
        let property = asked.properties.survives.as_ref().and_then(FailureDomain::property);
        let placed = |fit: &Fit| {
            let host = self.admission.inventory.host(fit.host);
            property.is_none_or(|property| host.is_some_and(|host| place(host, property).is_some()))
        };
        if free.iter().any(placed) { HostFilter::InReserve } else { HostFilter::Unplaced }
    }

    /// Number of free hosts that could count.
    pub(super) fn could_count(&self, free: &[Fit], asked: &HostsTerms) -> usize {
        self.counting(free.iter().map(|fit| fit.host), asked)
    }

    /// [`Self::counting`] for slots.
    pub(super) fn counting_slots(&self, slots: &BTreeMap<HostId, u32>, asked: &SlotsTerms<'_>) -> u64 {
        let slots = slots.iter().map(|(host, count)| (*host, *count));
        match asked.survives {
            None => slots.map(|(_, count)| u64::from(count)).sum(),
            Some(domain) => self.left_of(slots, domain),
        }
    }

    /// Limits on slots in total and per domain, so that `wanted` are left after the failure of any domain.
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

    /// Adds the fewest free hosts to `kept` with which `wanted` hosts [count](Self::counting), or as many as
    /// possible. Hosts of `held` come first, then the best ones.
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

/// Limits on the number of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub total: u32,
    /// Index of each host's domain in `more_in`.
    domains: BTreeMap<HostId, usize>,
    /// Number of slots that can still be added in each domain.
    more_in: Vec<u32>,
}

impl Limits {
    /// Number of slots that can still be added on the host.
    pub fn more_on(&self, host: HostId) -> u32 {
        let domain = self.domains.get(&host).and_then(|domain| self.more_in.get(*domain));
        domain.copied().unwrap_or(0)
    }

    /// Counts slots toward the limit of the host's domain.
    pub fn use_up(&mut self, host: HostId, count: u32) {
        let domain = self.domains.get(&host).and_then(|domain| self.more_in.get_mut(*domain));
        if let Some(more) = domain {
            *more -= count.min(*more);
        }
    }
}

impl HostsTerms {
    /// Minimum number of hosts, regardless of their domains.
    pub(super) fn least_in_all(&self) -> usize {
        self.min() as usize + usize::from(self.properties.survives.is_some())
    }
}
