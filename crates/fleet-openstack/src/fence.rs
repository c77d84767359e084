//! Mechanisms that keep other projects off leased hosts: the metadata each one reads from aggregates, and how
//! it recognizes preemptible servers.

use std::collections::{BTreeMap, BTreeSet};

use leases::ids::ReservationId;
use leases::preemption::{Mark, ProjectPattern};
use leases::project::ProjectId;

use crate::ids::FLAVOR;
use crate::wire::{Aggregate, Server};

/// Prefix of the metadata keys by which Nova's tenant isolation recognizes an aggregate's projects. Each key
/// names one project.
pub(crate) const TENANT: &str = "filter_tenant_id";

/// Metadata key with the name of the flavor that `AggregateTypeAffinityFilter` admits.
const FLAVORS: &str = "instance_type";

/// Replaces the project where no project may use the aggregate.
const NOBODY: &str = "allot:nobody";

/// Prefix of the metadata keys by which Nova's isolated aggregates name the traits that servers must require,
/// one trait for each key.
const TRAIT: &str = "trait:";

/// Value of the keys with the prefix `trait:`.
const REQUIRED: &str = "required";

/// Prefix of all traits of the service.
pub(crate) const OUR_TRAITS: &str = "CUSTOM_ALLOT_";

/// Trait of all adopted hosts. Flavors or images of preemptible servers require it, and so do flavors of
/// instance reservations.
pub(crate) const FREE: &str = "CUSTOM_ALLOT_FREE_POOL";

/// A trait that no host has.
const NOWHERE: &str = "CUSTOM_ALLOT_NOBODY";

/// Metadata key of a reservation's aggregate. It names the fence that the reservation was prepared for, if
/// that fence needs more than metadata.
const PREPARED_FOR: &str = "allot:fence";

/// Trait of the hosts in a reservation's aggregate. It contains the UUID of the aggregate because only
/// administrators can see that. The identifier of the reservation is public, since it is part of the zone's
/// name, and any user who knows a trait can require it with a property of an image.
pub(crate) fn trait_of(aggregate: &Aggregate) -> String {
    format!("{OUR_TRAITS}{}", aggregate.uuid.to_uppercase().replace('-', "_"))
}

/// The extra spec of a flavor, or metadata of an aggregate, that requires a trait.
pub(crate) fn required(name: &str) -> (String, String) {
    (format!("{TRAIT}{name}"), REQUIRED.to_owned())
}

/// Content of a reservation: whole hosts, or slots for instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    Hosts,
    Slots,
}

/// Mechanism that keeps other projects off leased hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `BlazarFilter` of blazar-nova, which reads the aggregates.
    BlazarFilter,
    /// The filter in `contrib/nova`, which asks the service.
    AllotFilter {
        /// Whether servers of any project may run in the free pool, and hosts are adopted with servers on
        /// them.
        open_pool: bool,
        /// Projects with servers that are preemptible unless a request says otherwise. Empty in an open pool,
        /// where existing servers would become preemptible.
        projects: Vec<ProjectPattern>,
    },
    /// Nova's own tenant isolation, which reads the projects in the metadata of aggregates.
    Tenant {
        /// IDs of the projects with preemptible servers. Only these projects may use the free pool.
        preemptible: BTreeSet<String>,
    },
    /// Nova's isolated aggregates: hosts of a lease have a trait that servers must require, with a flavor
    /// that only the lease's project may use.
    Traits {
        /// Flavors, by identifier or name, that host leases get copies of. Empty means all public ones.
        flavors: Vec<String>,
        /// Whether images and volumes mark servers as preemptible, by requiring the trait of the free pool. Nova doesn't list
        /// that property, so every server on a host of the free pool counts as marked.
        images: bool,
    },
}

impl Fence {
    /// Parts of a request that can tell this fence that a server is preemptible.
    pub fn marks(&self) -> &'static [Mark] {
        match self {
            Self::BlazarFilter => &[Mark::Flavor],
            Self::Traits { .. } => &[Mark::Flavor, Mark::Image, Mark::Volume],
            Self::AllotFilter { .. } => &[Mark::Hint, Mark::Flavor],
            Self::Tenant { .. } => &[],
        }
    }

    pub(crate) fn opens_pool(&self) -> bool {
        matches!(self, Self::AllotFilter { open_pool: true, .. })
    }

    /// Whether servers that are not preemptible can be moved to hosts of the free pool.
    pub(crate) fn moves_all(&self) -> bool {
        matches!(self, Self::AllotFilter { .. })
    }

    /// Whether the fence depends on aggregates in Placement. Nova passes their hosts on to Placement, but
    /// ignores failures.
    pub(crate) fn reads_placement(&self) -> bool {
        matches!(self, Self::Tenant { .. } | Self::Traits { .. })
    }

    /// Flavors that host leases get copies of. `None` if this fence doesn't use copies.
    pub(crate) fn flavors(&self) -> Option<&[String]> {
        match self {
            Self::Traits { flavors, .. } => Some(flavors),
            Self::BlazarFilter | Self::AllotFilter { .. } | Self::Tenant { .. } => None,
        }
    }

    /// Extra spec that this fence adds to the flavors of instance reservations.
    pub(crate) fn of_flavor(&self) -> Option<(String, String)> {
        self.flavors().map(|_| required(FREE))
    }

    /// Whether every server on a host of the free pool is preemptible, admitted by its flavor or by its image.
    pub(crate) fn marks_by_place(&self) -> bool {
        matches!(self, Self::Traits { images: true, .. })
    }

    /// Whether a server outside of leases is preemptible, regardless of its host.
    pub(crate) fn is_preemptible(&self, server: &Server) -> bool {
        match self {
            Self::BlazarFilter | Self::Traits { .. } => server.marked_preemptible() == Some(true),
            Self::AllotFilter { projects, .. } => server.marked_preemptible().unwrap_or_else(|| {
                let project = ProjectId(server.tenant_id.clone());
                projects.iter().any(|pattern| pattern.matches(&project))
            }),
            Self::Tenant { preemptible } => preemptible.contains(&server.tenant_id),
        }
    }

    /// Metadata that this fence adds to the aggregate of a reservation.
    pub(crate) fn of_reservation(
        &self,
        aggregate: &Aggregate,
        reservation: ReservationId,
        whole: Whole,
        project: &str,
    ) -> BTreeMap<String, String> {
        let owner = (TENANT.to_owned(), project.to_owned());
        match (self, whole) {
            (Self::BlazarFilter | Self::AllotFilter { .. }, _) => BTreeMap::new(),
            (Self::Tenant { .. }, Whole::Hosts) => BTreeMap::from([owner]),
            // Admit the project only with the reservation's flavor. Its other servers would use capacity
            // outside of the reservation.
            (Self::Tenant { .. }, Whole::Slots) => {
                BTreeMap::from([owner, (FLAVORS.to_owned(), format!("{FLAVOR}{reservation}"))])
            }
            (Self::Traits { .. }, whole) => {
                let prepared = (PREPARED_FOR.to_owned(), "traits".to_owned());
                // Nova sends Placement all isolated aggregates with every server that is started, so only
                // isolate those with hosts.
                let closed = whole == Whole::Hosts && !aggregate.hosts.is_empty();
                let closed = closed.then(|| required(&trait_of(aggregate)));
                [prepared].into_iter().chain(closed).collect()
            }
        }
    }

    /// Metadata of an aggregate that no project may use.
    pub(crate) fn of_nobody(&self) -> BTreeMap<String, String> {
        match self {
            Self::BlazarFilter | Self::AllotFilter { .. } => BTreeMap::new(),
            Self::Tenant { .. } => BTreeMap::from([(TENANT.to_owned(), NOBODY.to_owned())]),
            Self::Traits { .. } => BTreeMap::from([required(NOWHERE)]),
        }
    }

    /// Changes to the metadata of the free pool's aggregate, which only preemptible servers may use. Keys
    /// that another fence has written are removed.
    pub(crate) fn of_free_pool(
        &self,
        metadata: &BTreeMap<String, String>,
    ) -> BTreeMap<String, Option<String>> {
        let mut wanted = match self {
            Self::Traits { .. } => BTreeMap::from([required(FREE)]),
            Self::BlazarFilter | Self::AllotFilter { .. } | Self::Tenant { .. } => self.of_nobody(),
        };
        let isolates = matches!(self, Self::Tenant { .. });
        if let Self::Tenant { preemptible } = self {
            let key = |project: &String| (format!("{TENANT}:{project}"), project.clone());
            wanted.extend(preemptible.iter().map(key));
        }
        let was_isolated = metadata.get(TENANT).is_some_and(|owner| owner == NOBODY);
        let others = |key: &&String| {
            let isolating = key.starts_with(TENANT) && (isolates || was_isolated);
            (isolating || **key == required(FREE).0) && !wanted.contains_key(*key)
        };
        let gone: Vec<_> = metadata.keys().filter(others).map(|key| (key.clone(), None)).collect();
        let missing = wanted.into_iter().filter(|(key, value)| metadata.get(key) != Some(value));
        missing.map(|(key, value)| (key, Some(value))).chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_free_pool_is_nobodys_but_for_projects_whose_servers_are_preemptible() {
        let fence = |projects: &[&str]| Fence::Tenant {
            preemptible: projects.iter().map(|project| (*project).to_owned()).collect(),
        };
        let mut pool = texts(&[("allot:store", "s"), ("filter_tenant_id2", "somebody")]);
        let mut change = |fence: &Fence| {
            let changes = fence.of_free_pool(&pool);
            for (key, value) in &changes {
                match value {
                    Some(value) => pool.insert(key.clone(), value.clone()),
                    None => pool.remove(key),
                };
            }
            assert_eq!(fence.of_free_pool(&pool), BTreeMap::new(), "it is as it is to be");
            (changes.len(), pool.clone())
        };
        let nobody = ("filter_tenant_id", "allot:nobody");
        let closed = texts(&[("allot:store", "s"), nobody]);
        assert_eq!(change(&fence(&[])), (2, closed.clone()), "one that somebody else has let in is out");
        let (count, open) = change(&fence(&["p1", "p2"]));
        assert_eq!((count, open["filter_tenant_id:p1"].as_str()), (2, "p1"));
        let one = texts(&[("allot:store", "s"), nobody, ("filter_tenant_id:p2", "p2")]);
        assert_eq!(change(&fence(&["p2"])), (1, one));
        let isolated = texts(&[("allot:store", "s"), ("trait:CUSTOM_ALLOT_FREE_POOL", "required")]);
        assert_eq!(change(&Fence::Traits { flavors: Vec::new(), images: false }), (3, isolated));
        assert_eq!(change(&Fence::BlazarFilter), (1, texts(&[("allot:store", "s")])));
        let theirs = texts(&[("filter_tenant_id", "somebody")]);
        assert_eq!(Fence::BlazarFilter.of_free_pool(&theirs), BTreeMap::new(), "it is the operator's");
    }
}
