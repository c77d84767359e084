//! Allocation of whole hosts.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::waking::Thrift;
use super::{Refusal, Resource, Search};
use crate::calendar::Fit;
use crate::filters::{FilterReport, HostFilter, screen};
use crate::host::Host;
use crate::host_facts::Loss;
use crate::ids::HostId;
use crate::scarcity::Scarcity;
use crate::terms::HostsTerms;

impl Search<'_> {
    /// Hosts for a reservation, up to the maximum: hosts in `held` that still match, then the best free ones
    /// (W14).
    ///
    /// `Candidate` has the order. Its main criteria are the smallest gap in a host's calendar ([`Fit`]), then
    /// the most common properties, then the lowest identifier.
    pub(super) fn hosts(
        &self,
        position: usize,
        asked: &HostsTerms,
        held: &BTreeSet<HostId>,
    ) -> Result<BTreeSet<HostId>, Refusal> {
        let most = asked.max() as usize;
        // A changed lease can usually keep its hosts, so try these first.
        let of_held = held.iter().filter_map(|id| self.admission.inventory.host(*id));
        let (mut kept, _) = self.free_among(of_held, asked);
        kept.retain(|fit| !self.is_doubtful(fit.host));
        let kept = self.alike(kept, asked, held);
        let none = BTreeSet::new();
        if self.could_count(&kept, asked) >= most {
            return Ok(self.joined(&none, &kept, most, asked, held));
        }
        let (free, mut report) = self.free_hosts(asked);
        let all = free.len();
        let free = self.alike(free, asked, held);
        if free.len() < all {
            let keeps_own = free.iter().any(|fit| held.contains(&fit.host));
            *report.removed.entry(self.togetherness(asked, keeps_own)).or_insert(0) += all - free.len();
        }
        let found = self.could_count(&free, asked);
        if found < free.len() {
            report.removed.insert(self.uncounted(&free, asked), free.len() - found);
        }
        if found < asked.min() as usize {
            let (needed, found) = (asked.min().into(), found as u64);
            return Err(Refusal::NotEnough { position, resource: Resource::Hosts(report), needed, found });
        }
        // Avoided and doubtful hosts only count toward the minimum: having more hosts is not worth waiting
        // for.
        let welcome = |fit: &&Fit| held.contains(&fit.host) || !self.avoids(fit.host);
        let welcome: Vec<Fit> = free.iter().filter(welcome).copied().collect();
        let most = most.min(self.could_count(&welcome, asked).max(asked.min() as usize));
        Ok(self.joined(&none, &free, most, asked, held))
    }

    /// Hosts that match and are free, and the number of hosts removed by each filter.
    pub(super) fn free_hosts(&self, asked: &HostsTerms) -> (Vec<Fit>, FilterReport) {
        self.free_among(self.admission.inventory.hosts(), asked)
    }

    /// Hosts that match at `start`, whether free or booked.
    pub(super) fn matching<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a Host>,
        asked: &HostsTerms,
        start: Timestamp,
    ) -> (Vec<&'a Host>, FilterReport) {
        let admission = &self.admission;
        let unsuited = admission.unsuited(asked);
        screen(
            hosts,
            admission.screening(asked.properties.specs()),
            &|host| {
                let unsuited = self.objection(host, start).or_else(|| unsuited(host));
                unsuited.or_else(|| admission.too_long(host, None))
            },
            &[(HostFilter::Guests, &|host| {
                !admission.occupied(host.id, start) || (self.keeps_own && self.has(host.id))
            })],
        )
    }

    fn free_among<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a Host>,
        asked: &HostsTerms,
    ) -> (Vec<Fit>, FilterReport) {
        let (mut matching, mut report) = self.matching(hosts, asked, self.window.start());
        let all = matching.len();
        matching.retain(|host| !self.taken(host.id));
        if matching.len() < all {
            report.removed.insert(HostFilter::OwnPart, all - matching.len());
        }
        let future = self.future();
        let fit = |host: &Host| {
            let calendar = self.admission.calendar;
            calendar.fit(host.id, &self.window, &future, self.own)
        };
        let mut free: Vec<Fit> = matching.iter().filter_map(|host| fit(host)).collect();
        if free.len() < matching.len() {
            report.removed.insert(HostFilter::Calendar, matching.len() - free.len());
        }
        let all = free.len();
        free.retain(|fit| self.can_be_on(fit.host));
        if free.len() < all {
            report.removed.insert(HostFilter::Power, all - free.len());
        }
        (free, report)
    }

    pub(super) fn avoids(&self, host: HostId) -> bool {
        self.admission.avoided.contains(&host) || self.is_doubtful(host)
    }

    fn is_doubtful(&self, host: HostId) -> bool {
        self.admission.inventory.host(host).is_some_and(|host| self.admission.is_doubtful(host))
    }

    fn offered(&self, host: HostId) -> bool {
        !self.admission.facts.offered.host_free(host, &self.cleaned(), None)
    }

    /// The first `count` of [`Self::ranked`].
    pub(super) fn best(&self, free: &[Fit], count: usize, held: &BTreeSet<HostId>) -> BTreeSet<HostId> {
        if count >= free.len() {
            return free.iter().map(|fit| fit.host).collect();
        }
        let mut candidates = self.candidates(free, held);
        candidates.select_nth_unstable(count);
        candidates.into_iter().take(count).map(|candidate| candidate.host).collect()
    }

    /// All free hosts, best first.
    pub(super) fn ranked(&self, free: &[Fit], held: &BTreeSet<HostId>) -> impl Iterator<Item = HostId> {
        let mut candidates = self.candidates(free, held);
        candidates.sort_unstable();
        candidates.into_iter().map(|candidate| candidate.host)
    }

    fn candidates(&self, free: &[Fit], held: &BTreeSet<HostId>) -> Vec<Candidate> {
        let candidate = |fit: &Fit| Candidate {
            doubtful: self.is_doubtful(fit.host),
            new: !held.contains(&fit.host),
            avoided: self.admission.avoided.contains(&fit.host),
            occupied: self.admission.facts.occupied.contains(&fit.host),
            late: self.late(fit.host),
            loss: self.admission.facts.losses.of_lease(fit.host, self.window.start()),
            offered: self.offered(fit.host),
            thrift: self.thrift(fit.host),
            gap: fit.gap,
            before: fit.before,
            scarcity: self.admission.inventory.scarcity(fit.host),
            host: fit.host,
        };
        free.iter().map(candidate).collect()
    }
}

/// Sort key for free hosts; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The host is closed, or may not work by then.
    doubtful: bool,
    /// Hosts that the reservation already holds are kept.
    new: bool,
    /// An instance outside of leases runs there, perhaps forever.
    avoided: bool,
    /// A guest that can't be removed is there now.
    occupied: bool,
    /// The host is off and can't be ready in time.
    late: bool,
    /// Preemptible guests that would have to leave.
    loss: Loss,
    /// The host is held for an offer that was not accepted yet.
    offered: bool,
    /// If power is saved, hosts that draw little come first.
    thrift: Thrift,
    /// Then the best fit, see [`Fit`].
    gap: SignedDuration,
    before: SignedDuration,
    /// Hosts with common properties come first, so that rare ones are left for leases that need them.
    scarcity: Scarcity,
    host: HostId,
}
