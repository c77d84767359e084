//! Whole hosts.

use std::collections::BTreeSet;

use super::{Refusal, Resource, Search};
use crate::calendar::Fit;
use crate::filters::{FilterReport, HostFilter, screen};
use crate::host::Host;
use crate::ids::HostId;
use crate::terms::HostsTerms;

impl Search<'_> {
    /// Hosts for a reservation: those of `held` that still will do, then the best-fitting others, up to the
    /// maximum (spec W14).
    ///
    /// The best fit is the smallest gap in a host's calendar, then the lowest identifier ([`Fit`]).
    pub(super) fn hosts(
        &self,
        position: usize,
        asked: &HostsTerms,
        held: &BTreeSet<HostId>,
    ) -> Result<BTreeSet<HostId>, Refusal> {
        let (free, report) = self.free_hosts(asked);
        if free.len() < asked.min() as usize {
            return Err(Refusal::NotEnough {
                position,
                resource: Resource::Hosts(report),
                needed: asked.min().into(),
                found: free.len() as u64,
            });
        }
        Ok(self.best(&free, asked.max() as usize, held))
    }

    /// The hosts that fit the window best, `held` first.
    pub(super) fn best(&self, free: &[&Host], count: usize, held: &BTreeSet<HostId>) -> BTreeSet<HostId> {
        let future = self.future();
        let fit = |host| self.admission.calendar.fit(host, &self.window, &future, self.own);
        let mut candidates: Vec<Candidate> = free
            .iter()
            .filter_map(|host| Some(Candidate { new: !held.contains(&host.id), fit: fit(host.id)? }))
            .collect();
        candidates.sort_unstable();
        candidates.into_iter().take(count).map(|candidate| candidate.fit.host).collect()
    }

    /// Hosts that match and can be had, and what became of the others.
    pub(super) fn free_hosts(&self, asked: &HostsTerms) -> (Vec<&Host>, FilterReport) {
        screen(
            self.admission.inventory.hosts(),
            &[
                (HostFilter::HypervisorProperties, &|host| asked.hypervisor.matches(host)),
                (HostFilter::ResourceProperties, &|host| asked.resource.matches(host)),
                (HostFilter::Calendar, &|host| self.host_free(host.id)),
            ],
        )
    }
}

/// A host that could be taken; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Hosts that the reservation has already are kept.
    new: bool,
    /// Then the best fit.
    fit: Fit,
}
