//! What keeps others off the hosts of a lease: what each fence reads of aggregates, and what it can tell of servers.

use std::collections::{BTreeMap, BTreeSet};

use leases::ids::ReservationId;
use leases::preemption::{Mark, ProjectPattern};
use leases::project::ProjectId;

use crate::ids::FLAVOR;
use crate::wire::{Aggregate, Server};

/// How the keys begin by which Nova's isolation of tenants knows whose an aggregate is: one project each.
pub(crate) const TENANT: &str = "filter_tenant_id";

/// The name of the flavor that `AggregateTypeAffinityFilter` lets in.
const FLAVORS: &str = "instance_type";

/// What is no project: nobody may use the aggregate.
const NOBODY: &str = "allot:nobody";

/// How the keys begin by which Nova's isolated aggregates say what servers have to require: a trait each.
const TRAIT: &str = "trait:";

/// Their value.
const REQUIRED: &str = "required";

/// How all traits of the service begin.
pub(crate) const OUR_TRAITS: &str = "CUSTOM_ALLOT_";

/// The trait of all hosts that were taken on. Flavors or images of preemptible servers require it, and flavors of room for
/// instances.
pub(crate) const FREE: &str = "CUSTOM_ALLOT_FREE_POOL";

/// A trait that no host has.
const NOWHERE: &str = "CUSTOM_ALLOT_NOBODY";

/// The key of an aggregate of a reservation that says for which fence it was prepared, if that needs more than keys.
const PREPARED_FOR: &str = "allot:fence";

/// The trait of hosts of a reservation, whose aggregate that is. The UUID of an aggregate is nobody's to see but an
/// administrator's, unlike the identifier of the reservation, which the name of a zone tells everybody: whoever knows a trait
/// can require it by a property of an image.
pub(crate) fn trait_of(aggregate: &Aggregate) -> String {
    format!("{OUR_TRAITS}{}", aggregate.uuid.to_uppercase().replace('-', "_"))
}

/// What a flavor, or an aggregate, has that requires a trait.
pub(crate) fn required(name: &str) -> (String, String) {
    (format!("{TRAIT}{name}"), REQUIRED.to_owned())
}

/// What a reservation is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// Whole hosts.
    Hosts,
    /// Room for instances.
    Slots,
}

/// What keeps others off the hosts of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `BlazarFilter` of blazar-nova, which goes by the aggregates.
    BlazarFilter,
    /// The filter of `contrib/nova`, which asks the service.
    AllotFilter {
        /// Whether anybody's servers may run in the free pool, and hosts are taken on with servers.
        open_pool: bool,
        /// Projects whose servers are preemptible unless a request says otherwise. None in an open pool, where servers that are
        /// there already would become preemptible.
        projects: Vec<ProjectPattern>,
    },
    /// Nova's own isolation of tenants, which goes by the projects that the metadata of aggregates names.
    Tenant {
        /// The identifiers of the projects whose servers are preemptible. They and nobody else may use the free pool.
        preemptible: BTreeSet<String>,
    },
    /// Nova's isolated aggregates: hosts of a lease have a trait that servers have to require, by a flavor that only the
    /// lease's project may use.
    Traits {
        /// The flavors, by identifier or name, that leases of hosts get a copy of; nothing stands for all public ones.
        flavors: Vec<String>,
        /// Whether images and volumes mark servers as preemptible, by requiring the trait of the free pool. Nova doesn't list
        /// that property, so every server on a host of the free pool counts as marked.
        images: bool,
    },
}

impl Fence {
    /// What it can see of a request that says that the server is preemptible.
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

    /// Whether it goes by what Placement knows of aggregates. Nova tells Placement who is in them, but does not insist.
    pub(crate) fn reads_placement(&self) -> bool {
        matches!(self, Self::Tenant { .. } | Self::Traits { .. })
    }

    /// Which flavors leases of hosts get a copy of, if they need any.
    pub(crate) fn flavors(&self) -> Option<&[String]> {
        match self {
            Self::Traits { flavors, .. } => Some(flavors),
            Self::BlazarFilter | Self::AllotFilter { .. } | Self::Tenant { .. } => None,
        }
    }

    /// What flavors for room on hosts of the free pool have beside what all of these have.
    pub(crate) fn of_flavor(&self) -> Option<(String, String)> {
        self.flavors().map(|_| required(FREE))
    }

    /// Whether every server on a host of the free pool is preemptible, whatever let it in.
    pub(crate) fn marks_by_place(&self) -> bool {
        matches!(self, Self::Traits { images: true, .. })
    }

    /// Whether a server that is in no lease is preemptible, wherever it is.
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

    /// What it reads of the aggregate of a reservation beside what all of these have.
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
            // The project is let in with the reservation's flavor only: others of its servers would take what is not its own.
            (Self::Tenant { .. }, Whole::Slots) => {
                BTreeMap::from([owner, (FLAVORS.to_owned(), format!("{FLAVOR}{reservation}"))])
            }
            (Self::Traits { .. }, whole) => {
                let prepared = (PREPARED_FOR.to_owned(), "traits".to_owned());
                // Nova tells Placement of all that are closed with every server that is started: of those with hosts is enough.
                let closed = whole == Whole::Hosts && !aggregate.hosts.is_empty();
                let closed = closed.then(|| required(&trait_of(aggregate)));
                [prepared].into_iter().chain(closed).collect()
            }
        }
    }

    /// What it reads of an aggregate that is nobody's.
    pub(crate) fn of_nobody(&self) -> BTreeMap<String, String> {
        match self {
            Self::BlazarFilter | Self::AllotFilter { .. } => BTreeMap::new(),
            Self::Tenant { .. } => BTreeMap::from([(TENANT.to_owned(), NOBODY.to_owned())]),
            Self::Traits { .. } => BTreeMap::from([required(NOWHERE)]),
        }
    }

    /// What is to change in the free pool's aggregate, whose metadata that is: it is nobody's but for preemptible servers.
    /// What another fence has written goes.
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
