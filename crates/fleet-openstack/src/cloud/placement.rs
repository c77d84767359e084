//! Requests to Placement.

use std::collections::{BTreeMap, BTreeSet};

use fleet::FleetError;
use openstack::{Api, Call, ErrorKind, Microversion};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Cloud, Creation, failed};
use crate::wire::{Inventory, Provider};

/// Microversion of all requests: Train.
const PLACEMENT: Api = Api::Placement(Microversion { major: 1, minor: 36 });

/// Attempts at a change that Placement rejects because the provider has changed since it was read.
const ATTEMPTS: usize = 5;

/// Maximum size of a list of providers, bytes.
const MOST_BYTES: usize = 64 << 20;

#[derive(Deserialize)]
struct Providers {
    resource_providers: Vec<Provider>,
}

#[derive(Deserialize)]
struct Allocations {
    allocations: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Inventories {
    inventories: BTreeMap<String, Inventory>,
}

/// Aggregates or traits of a provider.
#[derive(Deserialize)]
struct Seen {
    #[serde(alias = "aggregates", alias = "traits")]
    entries: BTreeSet<String>,
    resource_provider_generation: u64,
}

/// The set that is read or changed, and the names of its calls.
#[derive(Clone, Copy)]
struct SetOf {
    name: &'static str,
    show: &'static str,
    change: &'static str,
}

const AGGREGATES: SetOf = SetOf {
    name: "aggregates",
    show: "show aggregates of a provider",
    change: "set aggregates of a provider",
};
const TRAITS: SetOf = SetOf { name: "traits", show: "show traits", change: "set traits" };

#[derive(Deserialize)]
struct Generation {
    resource_provider_generation: u64,
    #[serde(default)]
    total: u64,
}

impl Cloud {
    pub(crate) async fn providers(&self) -> Result<Vec<Provider>, FleetError> {
        let call = Call::get(PLACEMENT, "list resource providers", &["resource_providers"]);
        self.ask::<Providers>(call.at_most(MOST_BYTES)).await.map(|answer| answer.resource_providers)
    }

    /// UUIDs of all resource providers, by name.
    pub(crate) async fn provider_ids(&self) -> Result<BTreeMap<String, String>, FleetError> {
        Ok(self.providers().await?.into_iter().map(|provider| (provider.name, provider.uuid)).collect())
    }

    pub(crate) async fn provider(&self, name: &str) -> Result<Option<Provider>, FleetError> {
        let call = Call::get(PLACEMENT, "find resource provider", &["resource_providers"]);
        let found = self.ask::<Providers>(call.with_query("name", name)).await?.resource_providers;
        Ok(found.into_iter().find(|provider| provider.name == name))
    }

    /// The provider with that name, created below `parent` if it doesn't exist.
    pub(crate) async fn ensure_provider(
        &self,
        name: &str,
        parent: &Provider,
    ) -> Result<Provider, FleetError> {
        if let Some(found) = self.provider(name).await? {
            return Ok(found);
        }
        let _turn = self.turn_for(name).await;
        let call = Call::new(PLACEMENT, "create resource provider", Method::POST, &["resource_providers"]);
        let call = call.with_body(json!({"name": name, "parent_provider_uuid": parent.uuid}));
        let conflict = match self.create(call).await? {
            Creation::Created(_) => None,
            Creation::Conflict(error) => Some(error),
        };
        let missing =
            || FleetError::Unavailable(format!("placement: resource provider {name} was deleted just now"));
        self.provider(name).await?.ok_or_else(|| conflict.unwrap_or_else(missing))
    }

    /// Identifiers of the servers and migrations with allocations of a provider. A server that is being built
    /// has them before Nova reports its host.
    pub(crate) async fn consumers(&self, provider: &str) -> Result<BTreeSet<String>, FleetError> {
        let path = ["resource_providers", provider, "allocations"];
        let call = Call::get(PLACEMENT, "list allocations of a provider", &path);
        let answer: Allocations = self.ask(call.at_most(MOST_BYTES)).await?;
        Ok(answer.allocations.into_keys().collect())
    }

    pub(crate) async fn inventories(
        &self,
        provider: &str,
    ) -> Result<BTreeMap<String, Inventory>, FleetError> {
        let path = ["resource_providers", provider, "inventories"];
        let call = Call::get(PLACEMENT, "show inventories", &path);
        self.ask::<Inventories>(call).await.map(|answer| answer.inventories)
    }

    pub(crate) async fn traits(&self, provider: &str) -> Result<BTreeSet<String>, FleetError> {
        let path = ["resource_providers", provider, TRAITS.name];
        self.ask::<Seen>(Call::get(PLACEMENT, TRAITS.show, &path)).await.map(|answer| answer.entries)
    }

    /// Adds a provider to an aggregate. Both are UUIDs.
    pub(crate) async fn ensure_member(&self, provider: &str, aggregate: &str) -> Result<(), FleetError> {
        self.change_set(AGGREGATES, provider, |members| members.insert(aggregate.to_owned())).await
    }

    /// Applies `change` to a set of the provider and writes it back. `change` returns whether it changed
    /// anything.
    async fn change_set(
        &self,
        set: SetOf,
        provider: &str,
        change: impl Fn(&mut BTreeSet<String>) -> bool,
    ) -> Result<(), FleetError> {
        let path = ["resource_providers", provider, set.name];
        for _ in 0..ATTEMPTS {
            let mut seen: Seen = self.ask(Call::get(PLACEMENT, set.show, &path)).await?;
            if !change(&mut seen.entries) {
                return Ok(());
            }
            let generation = seen.resource_provider_generation;
            let body = json!({set.name: seen.entries, "resource_provider_generation": generation});
            let call = Call::new(PLACEMENT, set.change, Method::PUT, &path);
            // On 409, the provider was changed after it was read.
            if self.send_unless(call.with_body(body), &[409]).await?.is_some() {
                return Ok(());
            }
        }
        Err(others(set.change))
    }

    /// UUIDs of the providers in an aggregate, which is also a UUID.
    pub(crate) async fn members(&self, aggregate: &str) -> Result<BTreeSet<String>, FleetError> {
        self.providers_that(("member_of", aggregate)).await
    }

    /// UUIDs of the providers with that trait.
    pub(crate) async fn providers_with(&self, name: &str) -> Result<BTreeSet<String>, FleetError> {
        self.providers_that(("required", name)).await
    }

    async fn providers_that(
        &self,
        (query, value): (&'static str, &str),
    ) -> Result<BTreeSet<String>, FleetError> {
        let call = Call::get(PLACEMENT, "list resource providers", &["resource_providers"]);
        // Placement answers 400 if the trait doesn't exist.
        let call = call.with_query(query, value).at_most(MOST_BYTES);
        let Some(answer) = self.send_unless(call, &[400]).await? else { return Ok(BTreeSet::new()) };
        let found: Providers = answer.json().map_err(failed)?;
        Ok(found.resource_providers.into_iter().map(|provider| provider.uuid).collect())
    }

    pub(crate) async fn ensure_trait(&self, name: &str) -> Result<(), FleetError> {
        let path = ["traits", name];
        self.ensure_named(Call::new(PLACEMENT, "create trait", Method::PUT, &path), &path).await
    }

    /// Deletes a custom trait, unless a provider has it.
    pub(crate) async fn delete_trait(&self, name: &str) -> Result<(), FleetError> {
        let call = Call::new(PLACEMENT, "delete trait", Method::DELETE, &["traits", name]);
        self.send_unless(call, &[404, 409]).await.map(drop)
    }

    /// Adds the trait to the provider, or removes it.
    pub(crate) async fn set_trait(&self, provider: &str, name: &str, has: bool) -> Result<(), FleetError> {
        let change = |traits: &mut BTreeSet<String>| {
            if has { traits.insert(name.to_owned()) } else { traits.remove(name) }
        };
        self.change_set(TRAITS, provider, change).await
    }

    /// Creates a custom resource class unless it exists.
    pub(crate) async fn ensure_class(&self, class: &str) -> Result<(), FleetError> {
        let path = ["resource_classes", class];
        self.ensure_named(Call::new(PLACEMENT, "create resource class", Method::PUT, &path), &path).await
    }

    /// Creates the trait or class at that path unless it exists.
    async fn ensure_named(&self, call: Call, path: &[&str; 2]) -> Result<(), FleetError> {
        let _turn = self.turn_for(path[1]).await;
        let show = Call::get(PLACEMENT, "check that the new object exists", path);
        self.ensure(call, async || Ok(self.send_unless(show, &[404]).await?.is_some())).await
    }

    /// Deletes a custom resource class, unless it is used.
    pub(crate) async fn delete_class(&self, class: &str) -> Result<(), FleetError> {
        let path = ["resource_classes", class];
        let call = Call::new(PLACEMENT, "delete resource class", Method::DELETE, &path);
        self.send_unless(call, &[404, 409]).await.map(drop)
    }

    /// Sets the total of a class that a provider has. Each server can use at most one.
    pub(crate) async fn set_inventory(
        &self,
        provider: &str,
        class: &str,
        total: u32,
    ) -> Result<(), FleetError> {
        let path = ["resource_providers", provider, "inventories"];
        let of_class = [&path[..], &[class]].concat();
        let mut wanted = json!({
            "total": total, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0,
        });
        let mut conflict = None;
        for _ in 0..ATTEMPTS {
            let current = Call::get(PLACEMENT, "show inventory", &of_class);
            let call = if let Some(answer) = self.send_unless(current, &[404]).await? {
                let seen: Generation = answer.json().map_err(failed)?;
                if seen.total == u64::from(total) {
                    return Ok(());
                }
                wanted["resource_provider_generation"] = json!(seen.resource_provider_generation);
                Call::new(PLACEMENT, "set inventory", Method::PUT, &of_class)
            } else {
                wanted["resource_class"] = json!(class);
                Call::new(PLACEMENT, "create inventory", Method::POST, &path)
            };
            match self.session.call(&call.with_body(wanted.clone())).await {
                Ok(_) => return Ok(()),
                // Another client has changed the provider or created the same inventory.
                Err(error) if matches!(error.status(), Some(409 | 500)) => conflict = Some(failed(error)),
                Err(error) => return Err(failed(error)),
            }
            wanted.as_object_mut().into_iter().for_each(|fields| _ = fields.remove("resource_class"));
        }
        Err(conflict.unwrap_or_else(|| others("set inventory")))
    }

    /// Sets the allocation ratio of a provider's inventory. The rest of the inventory stays.
    pub(crate) async fn set_allocation_ratio(
        &self,
        provider: &str,
        class: &str,
        ratio: f64,
    ) -> Result<(), FleetError> {
        let path = ["resource_providers", provider, "inventories", class];
        for _ in 0..ATTEMPTS {
            let mut inventory: serde_json::Value =
                self.ask(Call::get(PLACEMENT, "show inventory", &path)).await?;
            if inventory["allocation_ratio"].as_f64() == Some(ratio) {
                return Ok(());
            }
            inventory["allocation_ratio"] = json!(ratio);
            let call = Call::new(PLACEMENT, "set inventory", Method::PUT, &path).with_body(inventory);
            // On 409, the provider was changed after it was read.
            if self.send_unless(call, &[409]).await?.is_some() {
                return Ok(());
            }
        }
        Err(others("set inventory"))
    }

    /// Deletes the inventory of a class. `false` if servers still use it.
    pub(crate) async fn delete_inventory(&self, provider: &str, class: &str) -> Result<bool, FleetError> {
        let path = ["resource_providers", provider, "inventories", class];
        let call = Call::new(PLACEMENT, "delete inventory", Method::DELETE, &path);
        match self.session.call(&call).await {
            Err(error) if matches!(error.kind, ErrorKind::InUse(_)) => Ok(false),
            Err(error) if error.status() != Some(404) => Err(failed(error)),
            Ok(_) | Err(_) => Ok(true),
        }
    }
}

/// Every attempt was rejected because of changes by other clients.
fn others(what: &str) -> FleetError {
    FleetError::Unavailable(format!(
        "placement: {what}: each attempt conflicted with another change of the provider"
    ))
}
