//! Free pools: where hosts are that nobody leases (FP).
//!
//! Every host is in one, and stays in it while it is leased: it comes back to where it was. What a pool says of its hosts
//! is a capability of each of them, unless a host says otherwise of itself.

use std::collections::BTreeMap;

use crate::end_action::EndAction;
use crate::host::Host;
pub use crate::host::POOL_PROPERTY;
use crate::ids::FreePoolId;

/// The name of the pool that is always there, until somebody changes it: Blazar's for its only one.
pub const DEFAULT_NAME: &str = "freepool";

/// The free pool that a host comes from and goes back to, by its name at the time.
pub fn pool_of(host: &Host) -> &str {
    host.capabilities.get(POOL_PROPERTY).map_or(DEFAULT_NAME, String::as_str)
}

/// A free pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePool {
    /// Its identifier.
    pub id: FreePoolId,
    /// Its name; no other has it.
    pub name: String,
    /// What all its hosts are like, by the names of capabilities.
    pub extra_specs: BTreeMap<String, String>,
    /// What becomes of guests at the end of leases that do not say; what the service does by default if absent.
    pub end_action: Option<EndAction>,
}

impl FreePool {
    /// The pool of hosts for which no other was named. It is always there.
    pub const DEFAULT: FreePoolId = FreePoolId::DEFAULT;

    /// The host, with what its pool says of it.
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
    /// The pool that is always there, as it is until somebody changes it.
    fn default() -> Self {
        let name = DEFAULT_NAME.to_owned();
        Self { id: Self::DEFAULT, name, extra_specs: BTreeMap::new(), end_action: None }
    }
}

/// What becomes of guests at the end of a lease whose owner has not said: what the pools of its hosts say, and the
/// least disruptive of that if they differ. `default` is what the service does for pools that say nothing.
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
