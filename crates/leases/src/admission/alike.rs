//! Hosts that are all alike, where a reservation wants that (spec CLS-05 and §5.7).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Search;
use crate::calendar::Fit;
use crate::filters::Filter;
use crate::ids::HostId;
use crate::terms::HostsTerms;

/// What hosts that are alike have in common: `cpu_info` and the type of the hypervisor.
type Kind<'a> = (&'a str, &'a str);

impl Search<'_> {
    fn wants_alike(&self, asked: &HostsTerms) -> bool {
        asked.properties.homogeneous && self.admission.rules.filters.applies(Filter::Homogeneous)
    }

    fn kind(&self, host: HostId) -> Kind<'_> {
        let host = self.admission.inventory.host(host);
        host.map_or(("", ""), |host| (host.cpu_info.as_str(), host.hypervisor_type.as_str()))
    }

    /// Of hosts that can be had, those of the kind that serves best, if all must be alike: enough of them, those
    /// that the reservation has already, many of what it wants. Of kinds that are equally good the rarest is used,
    /// so that large groups stay whole.
    pub(super) fn alike(&self, free: Vec<Fit>, asked: &HostsTerms, held: &BTreeSet<HostId>) -> Vec<Fit> {
        if !self.wants_alike(asked) {
            return free;
        }
        let mut kinds: BTreeMap<Kind<'_>, Vec<Fit>> = BTreeMap::new();
        for fit in free {
            kinds.entry(self.kind(fit.host)).or_default().push(fit);
        }
        let (least, most) = (asked.min() as usize, asked.max() as usize);
        let value = |fits: &Vec<Fit>| {
            let kept = fits.iter().filter(|fit| held.contains(&fit.host)).count();
            let count = fits.len();
            (count >= least, kept.min(most), count.min(most), Reverse(count))
        };
        kinds.into_values().min_by_key(|fits| Reverse(value(fits))).unwrap_or_default()
    }

    /// Sets of hosts of which a reservation can be served: all of them, or if all must be alike each kind by itself.
    pub(super) fn kinds(
        &self,
        free: impl IntoIterator<Item = HostId>,
        asked: &HostsTerms,
    ) -> Vec<BTreeSet<HostId>> {
        if !self.wants_alike(asked) {
            return vec![free.into_iter().collect()];
        }
        let mut kinds: BTreeMap<Kind<'_>, BTreeSet<HostId>> = BTreeMap::new();
        for host in free {
            kinds.entry(self.kind(host)).or_default().insert(host);
        }
        kinds.into_values().collect()
    }

    /// Of hosts that can be had, those that are like the ones that the reservation keeps, if all must be alike.
    pub(super) fn like(&self, free: Vec<Fit>, asked: &HostsTerms, kept: &BTreeSet<HostId>) -> Vec<Fit> {
        if !self.wants_alike(asked) {
            return free;
        }
        match self.common_kind(kept) {
            Some(kind) => free.into_iter().filter(|fit| self.kind(fit.host) == kind).collect(),
            None => self.alike(free, asked, kept),
        }
    }

    /// Those of these hosts that are unlike most of them, if all must be alike.
    pub(super) fn unlike(&self, hosts: &BTreeSet<HostId>, asked: &HostsTerms) -> BTreeSet<HostId> {
        if !self.wants_alike(asked) {
            return BTreeSet::new();
        }
        let common = self.common_kind(hosts);
        hosts.iter().copied().filter(|host| Some(self.kind(*host)) != common).collect()
    }

    fn common_kind(&self, hosts: &BTreeSet<HostId>) -> Option<Kind<'_>> {
        let mut counts: BTreeMap<Kind<'_>, usize> = BTreeMap::new();
        for host in hosts {
            *counts.entry(self.kind(*host)).or_insert(0) += 1;
        }
        counts.into_iter().min_by_key(|(_, count)| Reverse(*count)).map(|(kind, _)| kind)
    }
}
