//! Free pools: where hosts stay while they aren't leased (FP).
//!
//! Every host belongs to one pool. It keeps its pool while it is leased and returns there. A pool's extra
//! specs are capabilities of each of its hosts, unless a host overrides them.

use std::collections::BTreeMap;

use crate::end_action::EndAction;
use crate::host::Host;
pub use crate::host::POOL_PROPERTY;
use crate::ids::FreePoolId;

/// Initial name of the default pool: the name of Blazar's only pool.
pub const DEFAULT_NAME: &str = "freepool";

/// Current name of the host's free pool.
pub fn pool_of(host: &Host) -> &str {
    host.capabilities.get(POOL_PROPERTY).map_or(DEFAULT_NAME, String::as_str)
}

/// A free pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePool {
    pub id: FreePoolId,
    /// Unique name.
    pub name: String,
    /// Capabilities shared by all hosts of the pool.
    pub extra_specs: BTreeMap<String, String>,
    /// End action for leases that don't choose one; `None` means the service's default.
    pub end_action: Option<EndAction>,
}

impl FreePool {
    /// Pool of hosts without an assigned pool. It always exists.
    pub const DEFAULT: FreePoolId = FreePoolId::DEFAULT;

    /// Adds the pool's name and extra specs to the host's capabilities. The host's own values take precedence
    /// over extra specs.
    #[must_use]
    pub fn describe(&self, mut host: Host) -> Host {
        for (name, value) in &self.extra_specs {
            host.capabilities.entry(name.clone()).or_insert_with(|| value.clone());
        }
        host.capabilities.insert(POOL_PROPERTY.to_owned(), self.name.clone());
        host
    }
}

impl Default for FreePool {
    /// The default pool before any change by the operator.
    fn default() -> Self {
        let name = DEFAULT_NAME.to_owned();
        Self { id: Self::DEFAULT, name, extra_specs: BTreeMap::new(), end_action: None }
    }
}

/// End action of a lease that doesn't specify one. Takes it from the pools of the lease's hosts; if they
/// differ, the least disruptive action wins. `default` applies to pools without an end action.
pub fn end_action_of<'a>(pools: impl IntoIterator<Item = &'a FreePool>, default: EndAction) -> EndAction {
    let actions = pools.into_iter().map(|pool| pool.end_action.unwrap_or(default));
    actions.min_by_key(|action| action.disruption()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;

    fn pool(end_action: Option<EndAction>) -> FreePool {
        let specs =
            [("rack", "r1"), ("ssd", "true")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        FreePool { extra_specs: specs.into(), end_action, name: "fast".to_owned(), ..FreePool::default() }
    }

    #[test]
    fn fp_hosts_inherit_what_their_pool_says_and_say_otherwise_themselves() {
        let mut own = host(1);
        own.capabilities.insert("rack".to_owned(), "r7".to_owned());
        let described = pool(None).describe(own);
        let property = |name| described.property(name).map(std::borrow::Cow::into_owned);
        assert_eq!(property("rack").as_deref(), Some("r7"));
        assert_eq!(property("ssd").as_deref(), Some("true"));
        assert_eq!(property(POOL_PROPERTY).as_deref(), Some("fast"));
    }

    #[test]
    fn cls_09_the_default_is_that_of_the_pool_and_the_least_disruptive_of_several() {
        let default = EndAction::DeleteGuests;
        let of = |actions: &[Option<EndAction>]| {
            let pools: Vec<FreePool> = actions.iter().map(|action| pool(*action)).collect();
            end_action_of(&pools, default)
        };
        assert_eq!(of(&[]), default);
        assert_eq!(of(&[None]), default);
        assert_eq!(of(&[Some(EndAction::SnapshotGuests), None]), EndAction::SnapshotGuests);
        assert_eq!(
            of(&[Some(EndAction::MoveGuests), Some(EndAction::SnapshotGuests)]),
            EndAction::MoveGuests
        );
        assert_eq!(of(&[Some(EndAction::MoveGuests), Some(EndAction::KeepGuests)]), EndAction::KeepGuests);
    }
}
