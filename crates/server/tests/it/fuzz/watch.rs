//! Invariants that must hold after every request.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use leases::ids::{FloatingIpId, HostId};
use leases::lease::Allocation;
use leases::resources::Resources;
use leases::window::Window;
use serde_json::Value;
use service::{LeaseFilter, Service};
use store::{Revision, Store};

use super::requests::{Drawn, encoded};
use crate::site::{Answer, Site, request};

/// Collections, and the field that has an entry in responses.
const COLLECTIONS: [(&str, &str); 5] = [
    ("/v1/leases", "lease"),
    ("/v1/os-hosts", "host"),
    ("/v1/floatingips", "floatingip"),
    ("/v1/flavors", "flavor"),
    ("/v1/freepools", "freepool"),
];

/// Lists that together show all objects.
const LISTS: [&str; 7] = [
    "/v1/leases",
    "/v1/os-hosts",
    "/v1/os-hosts/allocations",
    "/v1/os-hosts/properties?detail=1&all=1",
    "/v1/floatingips",
    "/v1/flavors",
    "/v1/notifications",
];

/// Everything in the store except records of failed logins, which are written independently of responses.
pub async fn stored(store: &dyn Store) -> String {
    let mut archive = store.export().await.expect("the store can be read");
    archive.audit.retain(|record| record.action != "login.fail");
    archive.snapshot.revision = Revision::default();
    format!("{archive:#?}")
}

/// Everything that the API shows.
pub async fn shown(site: &Site) -> Vec<String> {
    let mut shown = Vec::new();
    for path in LISTS {
        shown.push(get(site, path).await.text);
    }
    shown
}

async fn get(site: &Site, path: &str) -> Answer {
    site.send(request(Method::GET, path, "admin", None)).await
}

/// Whether a response with this status can mean that something changed. Dry runs never have an effect, but
/// held offers have one even if the request is rejected.
pub fn took_effect(drawn: &Drawn, status: StatusCode) -> bool {
    let asks = matches!(drawn.method, Method::GET | Method::HEAD | Method::OPTIONS);
    (status.is_success() || drawn.holds_offers()) && !asks && !drawn.is_dry_run()
}

/// An object in a response must be found in the same form, and a deleted object must be gone.
pub async fn check_told(site: &Site, drawn: &Drawn, answer: &Answer) -> Result<(), String> {
    for (collection, name) in COLLECTIONS {
        let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        if drawn.template == collection || drawn.template.starts_with(&format!("{collection}/{{")) {
            if let Some(id) = body[name]["id"].as_str() {
                let found = get(site, &format!("{collection}/{}", encoded(id))).await;
                if found.status != 200 || found.json() != body {
                    return Err(format!("answered {body}, but then shows {}", found.text));
                }
            }
            // Hosts of a free pool have no path of their own to be read.
            if drawn.method == Method::DELETE && !drawn.template.ends_with("/hosts/{host_id}") {
                let path = drawn.address.split('?').next().unwrap_or_default();
                let found = get(site, path).await;
                if found.status != 404 && found.json()[name]["status"] != "DELETING" {
                    return Err(format!("was deleted, but {path} shows {}", found.text));
                }
            }
        }
    }
    Ok(())
}

/// Nothing is allocated to two leases at the same time, and the slots of a host fit on it.
pub fn check_bookings(service: &Service) -> Result<(), String> {
    let mut whole: BTreeMap<HostId, Vec<Window>> = BTreeMap::new();
    let mut shared: BTreeMap<HostId, Vec<(Window, Resources)>> = BTreeMap::new();
    let mut addresses: BTreeMap<FloatingIpId, Vec<Window>> = BTreeMap::new();
    for record in service.leases().all(&LeaseFilter::default()) {
        let window = record.lease.window;
        for own in record.lease.reservations.iter().filter(|_| record.lease.keeps_resources()) {
            match &own.allocation {
                Allocation::Hosts(hosts) => {
                    for host in hosts {
                        whole.entry(*host).or_default().push(window);
                    }
                }
                Allocation::FloatingIps(ips) => {
                    for ip in ips {
                        addresses.entry(*ip).or_default().push(window);
                    }
                }
                Allocation::Slots(slots) => {
                    let size = own.terms.slots().expect("slots are of instances").size;
                    for (host, count) in slots {
                        let mut used = Resources::default();
                        used.add(*count, &size);
                        shared.entry(*host).or_default().push((window, used));
                    }
                }
            }
        }
    }
    apart("host", &whole)?;
    apart("address", &addresses)?;
    for (id, used) in &shared {
        let taken = whole.get(id).into_iter().flatten();
        if taken.clone().any(|window| used.iter().any(|(other, _)| window.overlaps(other))) {
            return Err(format!("host {id} has slots while it is leased as a whole"));
        }
        let host =
            service.hosts().get(*id).ok_or_else(|| format!("host {id} is reserved, but there is none"))?;
        // The sum is highest when one of the slots starts.
        for (start, _) in used {
            let mut together = Resources::default();
            let going = used.iter().filter(|(window, _)| window.contains(start.start()));
            going.for_each(|(_, used)| together.add(1, used));
            if !together.fits_into(&host.host.capacity()) {
                return Err(format!("host {id} has slots that need {together:?}"));
            }
        }
    }
    Ok(())
}

fn apart<K: std::fmt::Debug>(what: &str, taken: &BTreeMap<K, Vec<Window>>) -> Result<(), String> {
    for (id, windows) in taken {
        let again = |(i, window): (usize, &Window)| windows[..i].iter().any(|other| other.overlaps(window));
        if windows.iter().enumerate().any(again) {
            return Err(format!("{what} {id:?} is in two leases at once: {windows:?}"));
        }
    }
    Ok(())
}
