//! The part of Neutron that the driver uses.

use serde_json::{Value, json};

use super::state::{State, uuid};
use super::{Asked, Reply};

/// The external network. Its allocation pool ends before the addresses that tests lease.
pub const NETWORK: &str = "0e000000-0000-4000-8000-000000000001";

#[derive(Clone, Debug)]
pub struct FloatingIp {
    pub address: String,
    pub project: String,
    pub tags: Vec<String>,
}

pub fn answer(state: &mut State, asked: &Asked<'_>) -> Reply {
    match (asked.method.as_str(), asked.path.as_slice()) {
        ("GET", ["v2.0", "networks"]) => (200, json!({"networks": [{"id": NETWORK}]})),
        ("GET", ["v2.0", "subnets"]) => (200, json!({"subnets": [subnet()]})),
        ("GET", ["v2.0", "floatingips"]) => {
            let wanted = |ip: &FloatingIp| {
                asked.pairs.contains(&("floating_ip_address".to_owned(), ip.address.clone()))
            };
            let found = state.floating_ips.iter().filter(|(_, ip)| wanted(ip)).map(shown);
            (200, json!({"floatingips": found.collect::<Vec<_>>()}))
        }
        ("POST", ["v2.0", "floatingips"]) => create(state, &asked.body["floatingip"]),
        ("PUT", ["v2.0", "floatingips", id, "tags"]) => match state.floating_ips.get_mut(*id) {
            Some(ip) => {
                let tags = asked.body["tags"].as_array().into_iter().flatten();
                ip.tags = tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
                (200, json!({"tags": ip.tags}))
            }
            None => missing(id),
        },
        ("DELETE", ["v2.0", "floatingips", id]) => match state.floating_ips.remove(*id) {
            Some(_) => (204, Value::Null),
            None => missing(id),
        },
        _ => (
            404,
            json!({"NeutronError": {"type": "HTTPNotFound", "message": "Nothing is here.", "detail": ""}}),
        ),
    }
}

fn missing(id: &str) -> Reply {
    let message = format!("Floating IP {id} could not be found");
    (404, json!({"NeutronError": {"type": "FloatingIPNotFound", "message": message, "detail": ""}}))
}

fn subnet() -> Value {
    json!({
        "id": "0e000000-0000-4000-8000-000000000002", "name": "public-v4", "network_id": NETWORK, "ip_version": 4,
        "cidr": "203.0.113.0/24", "gateway_ip": "203.0.113.1", "enable_dhcp": false,
        "allocation_pools": [{"start": "203.0.113.2", "end": "203.0.113.101"}],
    })
}

fn shown((id, ip): (&String, &FloatingIp)) -> Value {
    json!({
        "id": id, "floating_ip_address": ip.address, "floating_network_id": NETWORK, "fixed_ip_address": null,
        "port_id": null, "router_id": null, "status": "DOWN", "description": "", "tags": ip.tags,
        "project_id": ip.project, "tenant_id": ip.project,
    })
}

fn create(state: &mut State, wanted: &Value) -> Reply {
    let text = |field: &str| wanted[field].as_str().unwrap_or_default().to_owned();
    let address = text("floating_ip_address");
    if state.floating_ips.values().any(|ip| ip.address == address) {
        let message = format!("IP address {address} already allocated in subnet public-v4");
        let error = json!({"type": "IpAddressAlreadyAllocated", "message": message, "detail": ""});
        return (409, json!({"NeutronError": error}));
    }
    let id = uuid(state.number());
    let made = FloatingIp { address, project: text("project_id"), tags: Vec::new() };
    let answer = shown((&id, &made));
    state.floating_ips.insert(id, made);
    (201, json!({"floatingip": answer}))
}
