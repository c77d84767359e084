//! Hosts of a reservation that must be alike, in one place, or each in another (CLS-05, CLS-11 and CLS-05).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Search;
use crate::calendar::Fit;
use crate::filters::{Filter, HostFilter};
use crate::hints::{Hint, Location, place};
use crate::ids::HostId;
use crate::terms::HostsTerms;

/// What hosts that are alike have in common: the values of the properties that must be equal, and where they are if they
/// must be in one place.
type Kind<'a> = (Vec<Cow<'a, str>>, Cow<'a, str>);

impl Search<'_> {
    pub(super) fn location(&self) -> Option<Location> {
        self.admission.hints.and_then(|hints| hints.location)
    }

    fn must_match(&self, asked: &HostsTerms) -> bool {
        asked.properties.compares_hosts() && self.admission.rules.filters.applies(Filter::Homogeneous)
    }

    fn wants_alike(&self, asked: &HostsTerms) -> bool {
        self.must_match(asked) || self.location() == Some(Location::Same)
    }

    /// What to say of hosts that go with others, but not with those that are taken.
    pub(super) fn togetherness(&self, asked: &HostsTerms) -> HostFilter {
        if self.must_match(asked) { HostFilter::Unlike } else { HostFilter::Hint(Hint::Location) }
    }

    pub(super) fn place(&self, host: HostId) -> Cow<'_, str> {
        let host = self.admission.inventory.host(host);
        host.and_then(|host| place(host, &self.admission.rules.hints.location)).unwrap_or_default()
    }

    fn kind(&self, host: HostId, asked: &HostsTerms) -> Kind<'_> {
        let mut values = Vec::new();
        if self.must_match(asked) {
            self.admission.charge_comparison(asked);
            let found = self.admission.inventory.host(host);
            let value = |name| found.and_then(|host| host.property(name)).unwrap_or_default();
            values.extend(asked.properties.compared().map(value));
        }
        let same_place = self.location() == Some(Location::Same);
        (values, if same_place { self.place(host) } else { Cow::Borrowed("") })
    }

    /// Of hosts that can be had, those of the kind that serves best, if all must be alike: enough of them, those
    /// that the reservation has already, many of what it wants. Of kinds that are equally good the rarest is used,
    /// so that large groups stay whole. If each must be in another place, one of each place.
    pub(super) fn alike(&self, free: Vec<Fit>, asked: &HostsTerms, held: &BTreeSet<HostId>) -> Vec<Fit> {
        if !self.wants_alike(asked) {
            return self.apart(free, held);
        }
        let mut kinds: BTreeMap<Kind<'_>, Vec<Fit>> = BTreeMap::new();
        for fit in free {
            kinds.entry(self.kind(fit.host, asked)).or_default().push(fit);
        }
        let (least, most) = (asked.min() as usize, asked.max() as usize);
        let value = |fits: &Vec<Fit>| {
            let kept = fits.iter().filter(|fit| held.contains(&fit.host)).count();
            let count = self.could_count(fits, asked);
            (count >= least, kept.min(most), count.min(most), Reverse(fits.len()))
        };
        let kinds = kinds.into_values().map(|fits| self.apart(fits, held));
        kinds.min_by_key(|fits| Reverse(value(fits))).unwrap_or_default()
    }

    /// The best of each place, if each host must be in another.
    fn apart(&self, free: Vec<Fit>, held: &BTreeSet<HostId>) -> Vec<Fit> {
        if self.location() != Some(Location::Different) {
            return free;
        }
        let mut places: BTreeMap<Cow<'_, str>, Vec<Fit>> = BTreeMap::new();
        for fit in free {
            places.entry(self.place(fit.host)).or_default().push(fit);
        }
        let best = |fits: Vec<Fit>| {
            let best = self.best(&fits, 1, held);
            fits.into_iter().find(|fit| best.contains(&fit.host))
        };
        places.into_values().filter_map(best).collect()
    }

    /// Whether each of these hosts is in another place, if they must be.
    pub(super) fn are_apart(&self, hosts: &BTreeSet<HostId>) -> bool {
        let places: BTreeSet<Cow<'_, str>> = hosts.iter().map(|host| self.place(*host)).collect();
        self.location() != Some(Location::Different) || places.len() == hosts.len()
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
            kinds.entry(self.kind(host, asked)).or_default().insert(host);
        }
        kinds.into_values().collect()
    }

    /// Of hosts that can be had, those that go with the ones that the reservation keeps: like them, if all must be
    /// alike, and elsewhere, if each must be in another place.
    pub(super) fn like(&self, mut free: Vec<Fit>, asked: &HostsTerms, kept: &BTreeSet<HostId>) -> Vec<Fit> {
        if self.location() == Some(Location::Different) {
            let places: BTreeSet<Cow<'_, str>> = kept.iter().map(|host| self.place(*host)).collect();
            free.retain(|fit| kept.contains(&fit.host) || !places.contains(&self.place(fit.host)));
        }
        if !self.wants_alike(asked) {
            return self.apart(free, kept);
        }
        match self.common_kind(kept, asked) {
            Some(kind) => {
                free.retain(|fit| self.kind(fit.host, asked) == kind);
                self.apart(free, kept)
            }
            None => self.alike(free, asked, kept),
        }
    }

    /// Those of these hosts that are unlike most of them, if all must be alike.
    pub(super) fn unlike(&self, hosts: &BTreeSet<HostId>, asked: &HostsTerms) -> BTreeSet<HostId> {
        if !self.wants_alike(asked) {
            return BTreeSet::new();
        }
        let common = self.common_kind(hosts, asked);
        hosts.iter().copied().filter(|host| Some(self.kind(*host, asked)) != common).collect()
    }

    fn common_kind(&self, hosts: &BTreeSet<HostId>, asked: &HostsTerms) -> Option<Kind<'_>> {
        let mut counts: BTreeMap<Kind<'_>, usize> = BTreeMap::new();
        for host in hosts {
            *counts.entry(self.kind(*host, asked)).or_insert(0) += 1;
        }
        counts.into_iter().min_by_key(|(_, count)| Reverse(*count)).map(|(kind, _)| kind)
    }
}
