//! Hosts of a reservation that must be alike, in one place, or each in a different place (CLS-05, CLS-11).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Search;
use crate::calendar::Fit;
use crate::filters::{Filter, HostFilter};
use crate::hints::{Hint, Location, place};
use crate::ids::HostId;
use crate::terms::HostsTerms;

/// The values of the properties that must be equal, and the place if all hosts must be in one place. Hosts
/// are alike if their kinds are equal.
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

    /// The filter to report for hosts that were left out because they don't go together with the chosen ones. With `keeps_own`
    /// the lease has some of the chosen ones.
    pub(super) fn togetherness(&self, asked: &HostsTerms, keeps_own: bool) -> HostFilter {
        match (self.must_match(asked), keeps_own) {
            (true, true) => HostFilter::UnlikeOwn,
            (true, false) => HostFilter::Unlike,
            (false, _) => HostFilter::Hint(Hint::Location),
        }
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

    /// Narrows free hosts to a set that can serve the reservation together.
    ///
    /// If all must be alike, the set contains a single kind. A kind with enough hosts wins, then the kind
    /// with more hosts that the reservation already holds, then the kind with more hosts toward the maximum.
    /// Among equals the rarest kind wins, so that large groups stay whole. If each host must be in a
    /// different place, the set has one host per place.
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

    /// The best host of each place, if each host must be in a different one.
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

    /// Checks the `different` location hint. Always true without it.
    pub(super) fn are_apart(&self, hosts: &BTreeSet<HostId>) -> bool {
        let places: BTreeSet<Cow<'_, str>> = hosts.iter().map(|host| self.place(*host)).collect();
        self.location() != Some(Location::Different) || places.len() == hosts.len()
    }

    /// Sets of hosts that can serve a reservation: one per kind if hosts must be alike, otherwise a single
    /// set.
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

    /// Narrows free hosts to matches for the `kept` ones: of the same kind if all must be alike, and in other
    /// places if each must be in a different one.
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

    /// The hosts that differ from the most common kind, if all must be alike.
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
