//! The part of Placement that the driver uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::state::{Provider, State, uuid};
use super::{Asked, Reply};

pub fn answer(state: &mut State, asked: &Asked<'_>) -> Reply {
    match (asked.method.as_str(), asked.path.as_slice()) {
        ("GET", ["resource_providers"]) => list(state, asked),
        ("POST", ["resource_providers"]) => create(state, &asked.body),
        ("PUT", ["resource_classes", name]) => {
            let status = if state.classes.insert((*name).to_owned()) { 201 } else { 204 };
            (status, Value::Null)
        }
        ("PUT", ["traits", name]) => {
            let status = if state.traits.insert((*name).to_owned()) { 201 } else { 204 };
            (status, Value::Null)
        }
        ("GET", ["traits", name]) if state.traits.contains(*name) => (204, Value::Null),
        ("GET", ["resource_classes", name]) if state.classes.contains(*name) => (200, json!({"name": name})),
        ("DELETE", ["traits", name]) => {
            if state.providers.values().any(|provider| provider.traits.contains(*name)) {
                return error(409, "The trait is in use by a resource provider.", "placement.undefined_code");
            }
            if state.traits.remove(*name) { (204, Value::Null) } else { missing() }
        }
        ("DELETE", ["resource_classes", name]) if state.classes.remove(*name) => (204, Value::Null),
        (method, ["resource_providers", id, rest @ ..]) => {
            let on = state.providers.get(*id).filter(|other| other.root).map(|other| other.name.clone());
            let used = rest.last().is_some_and(|class| is_used(state, id, class));
            let Some(found) = state.providers.get_mut(*id) else { return missing() };
            match (method, rest) {
                ("GET", []) => (200, provider((&(*id).to_owned(), found))),
                ("GET", ["allocations"]) => {
                    let there = state.servers.iter().filter(|(_, server)| Some(&server.host) == on.as_ref());
                    let all: BTreeMap<&String, Value> = there
                        .map(|(id, _)| (id, json!({"resources": {"VCPU": 1}, "consumer_generation": 1})))
                        .collect();
                    (200, json!({"allocations": all, "resource_provider_generation": found.generation}))
                }
                ("GET", ["inventories"]) => {
                    let all: BTreeMap<&String, Value> =
                        found.inventories.keys().map(|class| (class, inventory(found, class))).collect();
                    (200, json!({"inventories": all, "resource_provider_generation": found.generation}))
                }
                ("POST", ["inventories"]) => {
                    let class = asked.body["resource_class"].as_str().unwrap_or_default().to_owned();
                    if found.inventories.contains_key(&class) {
                        return error(409, "Inventory already exists.", "placement.undefined_code");
                    }
                    let total = asked.body["total"].as_u64().unwrap_or_default();
                    found.inventories.insert(class.clone(), total);
                    found.generation += 1;
                    let mut answer = inventory(found, &class);
                    answer["resource_provider_generation"] = json!(found.generation);
                    (201, answer)
                }
                ("PUT", ["aggregates" | "traits"])
                    if asked.body["resource_provider_generation"] != found.generation =>
                {
                    error(409, "resource provider generation conflict", "placement.concurrent_update")
                }
                ("GET", ["aggregates"]) => (200, aggregates(found)),
                ("PUT", ["aggregates"]) => {
                    let wanted = asked.body["aggregates"].as_array().expect("a list").iter();
                    found.aggregates = wanted.map(|uuid| uuid.as_str().expect("a UUID").to_owned()).collect();
                    found.generation += 1;
                    (200, aggregates(found))
                }
                ("GET", ["traits"]) => (200, traits(found)),
                ("PUT", ["traits"]) => {
                    let wanted = asked.body["traits"].as_array().expect("a list").iter();
                    let wanted: BTreeSet<String> =
                        wanted.map(|name| name.as_str().expect("a name").to_owned()).collect();
                    if !wanted.is_subset(&state.traits) {
                        return error(400, "No such trait(s)", "placement.undefined_code");
                    }
                    found.traits = wanted;
                    found.generation += 1;
                    (200, traits(found))
                }
                ("DELETE", ["inventories", _]) if used => {
                    error(409, "Inventory in use.", "placement.inventory.inuse")
                }
                (_, ["inventories", class]) => one_inventory(found, asked, class),
                _ => missing(),
            }
        }
        _ => missing(),
    }
}

/// Whether a server with a reservation's flavor on the provider's host uses that class.
fn is_used(state: &State, provider: &str, class: &str) -> bool {
    let name = state.providers.get(provider).map(|provider| provider.name.as_str()).unwrap_or_default();
    let uses = |flavor: &str| {
        let id = flavor.strip_prefix("reservation:").unwrap_or_default();
        class == format!("CUSTOM_RESERVATION_{}", id.to_uppercase().replace('-', "_"))
    };
    state.servers.values().any(|server| name == format!("blazar_{}", server.host) && uses(&server.flavor))
}

fn error(status: u16, detail: &str, code: &str) -> Reply {
    (status, json!({"errors": [{"status": status, "title": "Error", "detail": detail, "code": code}]}))
}

fn missing() -> Reply {
    error(404, "The resource could not be found.", "placement.undefined_code")
}

fn provider((id, provider): (&String, &Provider)) -> Value {
    json!({"uuid": id, "name": provider.name, "generation": provider.generation, "links": []})
}

fn inventory(provider: &Provider, class: &str) -> Value {
    let total = provider.inventories.get(class).copied().unwrap_or_default();
    let ratio = provider.ratios.get(class).copied().unwrap_or(1.0);
    json!({
        "total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": ratio,
    })
}

fn aggregates(provider: &Provider) -> Value {
    json!({"aggregates": provider.aggregates, "resource_provider_generation": provider.generation})
}

fn traits(provider: &Provider) -> Value {
    json!({"traits": provider.traits, "resource_provider_generation": provider.generation})
}

fn list(state: &State, asked: &Asked<'_>) -> Reply {
    let is = |name: &str, has: &dyn Fn(&str) -> bool| asked.query.get(name).is_none_or(|value| has(value));
    if !is("required", &|name| state.traits.contains(name)) {
        return error(400, "No such trait(s)", "placement.undefined_code");
    }
    let found = state.providers.iter().filter(|(_, other)| {
        is("name", &|name| name == other.name)
            && is("required", &|name| other.traits.contains(name))
            && is("member_of", &|uuid| other.aggregates.contains(uuid))
    });
    (200, json!({"resource_providers": found.map(provider).collect::<Vec<_>>()}))
}

fn create(state: &mut State, body: &Value) -> Reply {
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    if state.providers.values().any(|other| other.name == name) {
        return error(409, "Conflicting resource provider name", "placement.duplicate_name");
    }
    let id = uuid(state.number());
    let made = Provider { name, ..Provider::default() };
    let answer = provider((&id, &made));
    state.providers.insert(id, made);
    (200, answer)
}

fn one_inventory(provider: &mut Provider, asked: &Asked<'_>, class: &str) -> Reply {
    let told = |provider: &Provider| {
        let mut answer = inventory(provider, class);
        answer["resource_provider_generation"] = json!(provider.generation);
        (200, answer)
    };
    match asked.method.as_str() {
        "GET" if provider.inventories.contains_key(class) => told(provider),
        // An inventory that doesn't exist is created with POST.
        "PUT" if !provider.inventories.contains_key(class) => {
            error(400, "No inventory of that class found.", "placement.undefined_code")
        }
        "PUT" => {
            if asked.body["resource_provider_generation"] != provider.generation {
                return error(409, "resource provider generation conflict", "placement.concurrent_update");
            }
            let total = asked.body["total"].as_u64().unwrap_or_default();
            provider.inventories.insert(class.to_owned(), total);
            // Missing fields get their default values.
            let ratio = asked.body["allocation_ratio"].as_f64().unwrap_or(1.0);
            provider.ratios.insert(class.to_owned(), ratio);
            provider.generation += 1;
            told(provider)
        }
        "DELETE" if provider.inventories.remove(class).is_some() => {
            provider.generation += 1;
            (204, Value::Null)
        }
        _ => missing(),
    }
}
