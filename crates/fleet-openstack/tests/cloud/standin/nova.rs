//! The part of Nova that the driver uses.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};

use super::migrations;
use super::state::{Aggregate, Host, Server, State, uuid};
use super::{Asked, Reply};

/// Nova's maximum number of entries per page.
const PAGE: usize = 1000;

pub fn answer(state: &mut State, asked: &Asked<'_>) -> Reply {
    let path = asked.path.as_slice();
    match (asked.method.as_str(), path) {
        ("GET", ["os-services"]) => services(state, asked),
        ("PUT", ["os-services", id]) => set_service(state, id, &asked.body),
        ("GET", ["os-hypervisors", "detail"]) => hypervisors(state, asked),
        ("GET", ["os-aggregates"]) => {
            let all: Vec<Value> = state.aggregates.iter().map(aggregate).collect();
            (200, json!({"aggregates": all}))
        }
        ("POST", ["os-aggregates"]) => create_aggregate(state, &asked.body["aggregate"]),
        ("DELETE", ["os-aggregates", id]) => delete_aggregate(state, id),
        ("POST", ["os-aggregates", id, "action"]) => act_on_aggregate(state, id, &asked.body),
        ("GET", ["servers", "detail"]) => {
            migrations::go_on(state);
            servers(state, asked)
        }
        ("GET", ["os-migrations"]) => migrations::list(state, asked),
        (_, ["servers", id, rest @ ..]) => one_server(state, asked.method, id, rest, &asked.body),
        (_, ["os-server-groups", rest @ ..]) => server_groups(state, asked.method, rest, &asked.body),
        (_, ["flavors", rest @ ..]) => flavors(state, asked.method, rest, &asked.body),
        _ => missing("Nothing is here"),
    }
}

fn missing(what: &str) -> Reply {
    (404, json!({"itemNotFound": {"code": 404, "message": format!("{what}.")}}))
}

/// Answer to an action that isn't possible in the server's state.
pub fn not_while(action: &str, server: &str, status: &str) -> Reply {
    conflict(&format!(
        "Cannot '{action}' instance {server} while it is in vm_state {}",
        status.to_lowercase()
    ))
}

pub fn conflict(what: &str) -> Reply {
    (409, json!({"conflictingRequest": {"code": 409, "message": what}}))
}

/// Nova's answer to a request that another one with the same name overtakes.
pub fn duplicate() -> Reply {
    let message = "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if \
                   possible.\n<class 'oslo_db.exception.DBDuplicateEntry'>";
    (500, json!({"computeFault": {"code": 500, "message": message}}))
}

/// Whether a POST to that path creates something that must be unique.
pub fn creates(path: &[&str]) -> bool {
    matches!(path, ["os-aggregates" | "flavors"] | ["flavors", _, "action"])
}

/// Whether the object that the POST creates already exists.
pub fn exists(state: &State, path: &[&str], body: &Value) -> bool {
    match path {
        ["os-aggregates"] => {
            let name = &body["aggregate"]["name"];
            state.aggregates.values().any(|other| *name == other.name.as_str())
        }
        ["flavors"] => body["flavor"]["id"].as_str().is_some_and(|id| state.flavors.contains_key(id)),
        [_, id, _] => {
            let project = body["addTenantAccess"]["tenant"].as_str().unwrap_or_default();
            state.flavors.get(*id).is_some_and(|projects| projects.contains(project))
        }
        _ => false,
    }
}

fn service((name, host): (&String, &Host)) -> Value {
    json!({
        "binary": "nova-compute", "host": name, "id": uuid(host.number), "zone": "nova",
        "status": if host.enabled { "enabled" } else { "disabled" },
        "state": if host.up { "up" } else { "down" },
        "updated_at": "2026-11-25T19:41:21.000000", "disabled_reason": host.reason, "forced_down": host.forced_down,
    })
}

fn services(state: &State, asked: &Asked<'_>) -> Reply {
    let wanted = asked.query.get("host");
    let found = state.hosts.iter().filter(|(name, _)| wanted.is_none_or(|wanted| *wanted == **name));
    (200, json!({"services": found.map(service).collect::<Vec<_>>()}))
}

fn set_service(state: &mut State, id: &str, body: &Value) -> Reply {
    let Some((name, host)) = state.hosts.iter_mut().find(|(_, host)| uuid(host.number) == id) else {
        return missing("Service could not be found");
    };
    host.enabled = body["status"] == "enabled";
    host.reason = body["disabled_reason"].as_str().map(str::to_owned);
    let (name, host) = (name.clone(), host.clone());
    (200, json!({"service": service((&name, &host))}))
}

fn hypervisors(state: &State, asked: &Asked<'_>) -> Reply {
    let after = asked.query.get("marker").and_then(|marker| marker.parse().ok()).unwrap_or(0);
    let mut all: Vec<(&String, &Host)> = state.hosts.iter().collect();
    all.sort_by_key(|(_, host)| host.number);
    let hypervisor = |(name, host): (&String, &Host)| {
        json!({
            "id": host.number, "hypervisor_hostname": name, "state": "up", "status": "enabled",
            "hypervisor_type": "fake", "hypervisor_version": 1000, "host_ip": "127.0.0.1",
            "service": {"id": host.number, "host": name, "disabled_reason": null},
            "vcpus": 10, "memory_mb": 8192, "local_gb": 1028, "cpu_info": {"arch": "x86_64"},
        })
    };
    let page: Vec<Value> =
        all.into_iter().filter(|(_, host)| host.number > after).take(PAGE).map(hypervisor).collect();
    let mut answer = json!({"hypervisors": page});
    if page_is_full(&answer["hypervisors"]) {
        answer["hypervisors_links"] = json!([{"rel": "next", "href": "http://nova/next"}]);
    }
    (200, answer)
}

fn page_is_full(list: &Value) -> bool {
    list.as_array().is_some_and(|list| list.len() == PAGE)
}

fn aggregate((id, aggregate): (&u64, &Aggregate)) -> Value {
    json!({
        "id": id, "uuid": uuid(*id), "name": aggregate.name, "hosts": aggregate.hosts,
        "metadata": aggregate.metadata, "created_at": "2026-11-25T19:38:36.000000", "updated_at": null,
        "deleted_at": null, "deleted": false, "availability_zone": aggregate.zone,
    })
}

fn create_aggregate(state: &mut State, wanted: &Value) -> Reply {
    let name = wanted["name"].as_str().unwrap_or_default().to_owned();
    if state.aggregates.values().any(|other| other.name == name) {
        return conflict(&format!("Aggregate {name} already exists."));
    }
    let id = state.number();
    let zone = wanted["availability_zone"].as_str().map(str::to_owned);
    let metadata = zone.iter().map(|zone| ("availability_zone".to_owned(), zone.clone())).collect();
    let made = Aggregate { name, zone, hosts: BTreeSet::new(), metadata };
    let mut answer = aggregate((&id, &made));
    // The answer to this request has neither of these.
    answer
        .as_object_mut()
        .expect("an object")
        .retain(|key, _| !["hosts", "metadata"].contains(&key.as_str()));
    state.aggregates.insert(id, made);
    (200, json!({"aggregate": answer}))
}

fn delete_aggregate(state: &mut State, id: &str) -> Reply {
    let id: u64 = id.parse().unwrap_or_default();
    match state.aggregates.get(&id) {
        None => missing("Aggregate could not be found"),
        Some(aggregate) if !aggregate.hosts.is_empty() => {
            (400, json!({"badRequest": {"code": 400, "message": "Host aggregate is not empty"}}))
        }
        Some(_) => {
            state.aggregates.remove(&id);
            (200, Value::Null)
        }
    }
}

fn act_on_aggregate(state: &mut State, id: &str, body: &Value) -> Reply {
    let number: u64 = id.parse().unwrap_or_default();
    let Some(before) = state.aggregates.get(&number).cloned() else {
        return missing("Aggregate could not be found");
    };
    let mut after = before.clone();
    if let Some(metadata) = body["set_metadata"]["metadata"].as_object() {
        for (key, value) in metadata {
            if key == "availability_zone" {
                after.zone = value.as_str().map(str::to_owned);
            }
            match value.as_str() {
                Some(value) => after.metadata.insert(key.clone(), value.to_owned()),
                None => after.metadata.remove(key),
            };
        }
    } else if let Some(host) = body["add_host"]["host"].as_str() {
        if before.hosts.contains(host) {
            return conflict(&format!("Aggregate {number} already has host {host}."));
        }
        let zone = |pool: &Aggregate| pool.zone.clone();
        let current = state.aggregates.values().find(|pool| pool.hosts.contains(host) && pool.zone.is_some());
        let current = current.and_then(zone);
        let used = state.servers.values().any(|server| server.host == host);
        let foreign = before.zone.is_some() && current != before.zone;
        if foreign && (current.is_some() || used) {
            return conflict(&format!(
                "Cannot add host to aggregate {number}. Reason: One or more hosts already in availability zone(s)."
            ));
        }
        after.hosts.insert(host.to_owned());
        if let Some(project) = state.arrives.take() {
            state.boot(host, project, false);
        }
        if !state.forgets_placement {
            state.provider_of(host).aggregates.insert(uuid(number));
        }
    } else if let Some(host) = body["remove_host"]["host"].as_str() {
        if !before.hosts.contains(host) {
            return missing(&format!("Cannot remove host {host} in aggregate {number}"));
        }
        let same_zone = |(id, other): (&u64, &Aggregate)| {
            *id != number && other.hosts.contains(host) && other.zone == before.zone
        };
        let leaves_zone = before.zone.is_some() && !state.aggregates.iter().any(same_zone);
        if leaves_zone && state.servers.values().any(|server| server.host == host) {
            return conflict(&format!(
                "Cannot remove host from aggregate {number}. Reason: The host cannot be removed from the aggregate as the \
                 availability zone of the host would change"
            ));
        }
        after.hosts.remove(host);
        state.provider_of(host).aggregates.remove(&uuid(number));
        if state.pools(host) == [before.name.clone()] && state.hosts[host].enabled {
            state.left_open.insert(host.to_owned());
        }
    } else {
        return (400, json!({"badRequest": {"code": 400, "message": "No such action."}}));
    }
    state.aggregates.insert(number, after.clone());
    (200, json!({"aggregate": aggregate((&number, &after))}))
}

fn server((id, server): (&String, &Server)) -> Value {
    let mut specs = json!(server.specs);
    if server.preemptible {
        specs["blazar:preemptible"] = json!("true");
    }
    json!({
        "id": id, "name": format!("server of {}", server.project), "tenant_id": server.project,
        "status": server.status,
        "flavor": {
            "vcpus": 1, "ram": 512, "disk": 1, "ephemeral": 0, "swap": 0, "original_name": server.flavor,
            "extra_specs": specs,
        },
        "OS-EXT-SRV-ATTR:host": server.listed.then_some(&server.host),
        "OS-EXT-STS:task_state": server.task,
        "created": "2026-11-30T02:39:54Z", "OS-SRV-USG:launched_at": "2026-11-30T04:00:00.000000",
        "progress": if server.task == Some("migrating") { 43 } else { 0 },
    })
}

fn servers(state: &State, asked: &Asked<'_>) -> Reply {
    let (host, after) = (asked.query.get("host"), asked.query.get("marker"));
    let found = state
        .servers
        .iter()
        .filter(|(_, server)| host.is_none_or(|host| server.host == *host && server.listed))
        .filter(|(id, _)| after.is_none_or(|after| *id > after));
    let mut page: Vec<Value> = Vec::new();
    for (id, found) in found.take(PAGE) {
        let mut entry = server((id, found));
        if asked.version == "compute 2.100" {
            entry["scheduler_hints"] =
                found.hinted.map_or(json!({}), |says| json!({"preemptible": [says.to_string()]}));
        }
        page.push(entry);
    }
    let mut answer = json!({"servers": page});
    if page_is_full(&answer["servers"]) {
        answer["servers_links"] = json!([{"rel": "next", "href": "http://nova/next"}]);
    }
    (200, answer)
}

fn one_server(state: &mut State, method: &Method, id: &str, rest: &[&str], body: &Value) -> Reply {
    let Some(found) = state.servers.get_mut(id) else { return missing("Instance could not be found") };
    match (method.as_str(), rest) {
        ("GET", []) => {
            let answer = json!({"server": server((&id.to_owned(), found))});
            if found.status == "DELETED" {
                state.slow_deletion = state.slow_deletion.saturating_sub(1);
                if state.slow_deletion == 0 {
                    state.servers.remove(id);
                }
            }
            (200, answer)
        }
        ("DELETE", []) => {
            found.status = "DELETED";
            if state.slow_deletion == 0 {
                state.servers.remove(id);
            }
            (204, Value::Null)
        }
        ("POST", ["action"]) if body.get("os-stop").is_some() => {
            if found.status != "ACTIVE" {
                return conflict("Cannot 'stop' instance while it is in vm_state stopped");
            }
            found.status = "SHUTOFF";
            (202, Value::Null)
        }
        ("POST", ["action"]) if body.get("os-start").is_some() => {
            if found.status != "SHUTOFF" {
                return conflict("Cannot 'start' instance while it is in vm_state active");
            }
            found.status = "ACTIVE";
            (202, Value::Null)
        }
        ("POST", ["action"]) if body.get("createImage").is_some() => {
            if !["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"].contains(&found.status) {
                return not_while("createImage", id, found.status);
            }
            let image = super::glance::create(state, &body["createImage"]);
            (202, json!({"image_id": image}))
        }
        // The token belongs to the service.
        ("POST", ["action"]) if body.get("migrate").is_some() => {
            migrations::begin(state, id, body["migrate"]["host"].as_str().expect("a host"), super::OWN_USER)
        }
        ("POST", ["action"]) if body.get("confirmResize").is_some() => migrations::confirm(state, id),
        ("POST", ["action"]) if body.get("os-migrateLive").is_some() => {
            let to = body["os-migrateLive"]["host"].as_str().expect("a host");
            migrations::begin_live(state, id, to, super::OWN_USER)
        }
        ("DELETE", ["migrations", number]) => migrations::abort(state, id, number),
        _ => (400, json!({"badRequest": {"code": 400, "message": "No such action."}})),
    }
}

fn server_groups(state: &mut State, method: &Method, rest: &[&str], body: &Value) -> Reply {
    let group = |(id, name): (&String, &String)| {
        json!({
            "id": id, "name": name, "policy": "anti-affinity", "rules": {}, "members": [], "project_id": "p1",
            "user_id": "u1",
        })
    };
    match (method.as_str(), rest) {
        ("GET", []) => {
            let all: Vec<Value> = state.server_groups.iter().map(group).collect();
            (200, json!({"server_groups": all}))
        }
        ("GET", [id]) if state.server_groups.contains_key(*id) => {
            let found = state.server_groups.get_key_value(*id).map(group);
            (200, json!({"server_group": found}))
        }
        ("POST", []) => {
            let name = body["server_group"]["name"].as_str().unwrap_or_default().to_owned();
            let id = uuid(state.number());
            state.server_groups.insert(id.clone(), name.clone());
            (200, json!({"server_group": group((&id, &name))}))
        }
        ("DELETE", [id]) if state.server_groups.remove(*id).is_some() => (204, Value::Null),
        _ => missing("Instance group could not be found"),
    }
}

fn public_flavor(id: &str, specs: &Value) -> Value {
    json!({"id": id, "name": id, "vcpus": 1, "ram": 512, "disk": 1, "OS-FLV-EXT-DATA:ephemeral": 0,
        "swap": 0, "os-flavor-access:is_public": true, "extra_specs": specs})
}

/// A flavor with dedicated CPUs. It isn't in any list.
fn pinned() -> Value {
    json!({"id": "pinned", "name": "pinned", "vcpus": 4, "ram": 2048, "disk": 5, "OS-FLV-EXT-DATA:ephemeral": 2,
        "swap": 64, "os-flavor-access:is_public": true,
        "extra_specs": {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "large", "blazar:preemptible": "true"}})
}

fn private_flavor(state: &State, id: &str) -> Value {
    let made = &state.sizes[id];
    let size = |field: &str| made[field].as_u64().unwrap_or_default();
    json!({"id": id, "name": made["name"], "vcpus": size("vcpus"), "ram": size("ram"), "disk": size("disk"),
        "OS-FLV-EXT-DATA:ephemeral": size("OS-FLV-EXT-DATA:ephemeral"), "swap": size("swap"),
        "os-flavor-access:is_public": false, "extra_specs": state.specs.get(id).cloned().unwrap_or_default()})
}

fn flavors(state: &mut State, method: &Method, rest: &[&str], body: &Value) -> Reply {
    match (method.as_str(), rest) {
        ("POST", []) => {
            let id = body["flavor"]["id"].as_str().unwrap_or_default().to_owned();
            let name = &body["flavor"]["name"];
            if state.flavors.keys().any(|other| *other == id || state.sizes[other]["name"] == *name) {
                return conflict(&format!("Flavor with name {id} already exists."));
            }
            if body["flavor"]["vcpus"].as_u64().is_none_or(|vcpus| vcpus == 0) {
                return (
                    400,
                    json!({"badRequest": {"code": 400, "message": "Invalid input for field/attribute vcpus."}}),
                );
            }
            state.flavors.insert(id.clone(), BTreeSet::new());
            state.sizes.insert(id.clone(), body["flavor"].clone());
            (200, json!({"flavor": {"id": id, "name": body["flavor"]["name"]}}))
        }
        ("GET", [id]) if state.flavors.contains_key(*id) => {
            (200, json!({"flavor": private_flavor(state, id)}))
        }
        ("GET", [id, "os-flavor-access"]) if state.flavors.contains_key(*id) => {
            let access = state.flavors[*id].iter();
            let access: Vec<Value> =
                access.map(|project| json!({"flavor_id": id, "tenant_id": project})).collect();
            (200, json!({"flavor_access": access}))
        }
        ("GET", ["pinned"]) => (200, json!({"flavor": pinned()})),
        ("GET", ["detail"]) => {
            let private = state.flavors.keys().map(|id| private_flavor(state, id));
            let all = [
                public_flavor("small", &json!({"hw:mem_page_size": "large"})),
                public_flavor("preempt", &json!({"blazar:preemptible": "true"})),
            ];
            (200, json!({"flavors": all.into_iter().chain(private).collect::<Vec<_>>()}))
        }
        ("POST", [id, "os-extra_specs"]) if state.flavors.contains_key(*id) => {
            let specs = body["extra_specs"].as_object().expect("specs").iter();
            let specs = specs.map(|(key, value)| (key.clone(), value.as_str().expect("text").to_owned()));
            state.specs.entry((*id).to_owned()).or_default().extend(specs);
            (200, body.clone())
        }
        ("POST", [id, "action"]) if body.get("removeTenantAccess").is_some() => {
            let project = body["removeTenantAccess"]["tenant"].as_str().unwrap_or_default();
            let removed = state.flavors.get_mut(*id).is_some_and(|projects| projects.remove(project));
            if removed { (200, json!({"flavor_access": []})) } else { missing("Flavor access not found") }
        }
        ("POST", [id, "action"]) => {
            let project = body["addTenantAccess"]["tenant"].as_str().unwrap_or_default().to_owned();
            let Some(projects) = state.flavors.get_mut(*id) else {
                return missing("Flavor could not be found");
            };
            if !projects.insert(project.clone()) {
                return conflict("Flavor access already exists");
            }
            (200, json!({"flavor_access": [{"flavor_id": id, "tenant_id": project}]}))
        }
        ("DELETE", [id]) if state.flavors.remove(*id).is_some() => {
            state.specs.remove(*id);
            (202, Value::Null)
        }
        _ => missing("Flavor could not be found"),
    }
}
