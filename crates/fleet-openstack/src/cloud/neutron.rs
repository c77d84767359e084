//! Requests to Neutron.

use std::net::IpAddr;

use fleet::FleetError;
use leases::host::NetworkId;
use openstack::{Api, Call};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Cloud, Link, failed, has_next};
use crate::wire::{FloatingAddress, Subnet};

const NEUTRON: Api = Api::Network;

/// Version of Neutron's API: the path below the address in the catalog.
const V2: &str = "v2.0";

/// Maximum number of addresses or networks in one request, since a request line is limited to about 8,000
/// characters.
const AT_ONCE: usize = 100;

#[derive(Deserialize)]
struct Networks {
    networks: Vec<Identified>,
    #[serde(default)]
    networks_links: Vec<Link>,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

#[derive(Deserialize)]
struct Subnets {
    subnets: Vec<Subnet>,
    #[serde(default)]
    subnets_links: Vec<Link>,
}

#[derive(Deserialize)]
struct FloatingAddresses {
    floatingips: Vec<FloatingAddress>,
    #[serde(default)]
    floatingips_links: Vec<Link>,
}

#[derive(Deserialize)]
struct OneFloatingAddress {
    floatingip: FloatingAddress,
}

impl Cloud {
    /// IDs of the external networks; empty in a cloud without Neutron.
    pub(crate) async fn external_networks(&self) -> Result<Vec<String>, FleetError> {
        if !self.session.has(NEUTRON).await.map_err(failed)? {
            return Ok(Vec::new());
        }
        let call = Call::get(NEUTRON, "list external networks", &[V2, "networks"]);
        let call = call.with_query("router:external", "True").with_query("fields", "id");
        let entries = |page: Networks| (page.networks, has_next(&page.networks_links));
        let found = self.paged(call, entries, |last| last.id.clone()).await?;
        Ok(found.into_iter().map(|network| network.id).collect())
    }

    pub(crate) async fn subnets(&self, networks: &[String]) -> Result<Vec<Subnet>, FleetError> {
        let mut all = Vec::new();
        for some in networks.chunks(AT_ONCE) {
            let call = Call::get(NEUTRON, "list subnets", &[V2, "subnets"]);
            let call = some.iter().fold(call, |call, network| call.with_query("network_id", network));
            let entries = |page: Subnets| (page.subnets, has_next(&page.subnets_links));
            all.extend(self.paged(call, entries, |last| last.id.clone()).await?);
        }
        Ok(all)
    }

    /// Existing floating IPs with these addresses of a network, in any project.
    pub(crate) async fn floating_addresses(
        &self,
        network: &NetworkId,
        addresses: &[IpAddr],
    ) -> Result<Vec<FloatingAddress>, FleetError> {
        let mut all = Vec::new();
        for some in addresses.chunks(AT_ONCE) {
            let call = Call::get(NEUTRON, "list floating IPs", &[V2, "floatingips"]);
            let call = call.with_query("floating_network_id", &network.0);
            let named =
                |call: Call, address: &IpAddr| call.with_query("floating_ip_address", address.to_string());
            let call = some.iter().fold(call, named);
            let entries = |page: FloatingAddresses| (page.floatingips, has_next(&page.floatingips_links));
            all.extend(self.paged(call, entries, |last| last.id.clone()).await?);
        }
        Ok(all)
    }

    pub(crate) async fn create_floating_address(
        &self,
        network: &NetworkId,
        address: IpAddr,
        project: &str,
    ) -> Result<FloatingAddress, FleetError> {
        let call = Call::new(NEUTRON, "create floating IP", Method::POST, &[V2, "floatingips"]);
        let wanted = json!({
            "floating_network_id": network.0, "floating_ip_address": address, "project_id": project,
        });
        let made: OneFloatingAddress = self.ask(call.with_body(json!({"floatingip": wanted}))).await?;
        Ok(made.floatingip)
    }

    /// Replaces all tags of a floating IP.
    pub(crate) async fn set_tags(&self, id: &str, tags: &[String]) -> Result<(), FleetError> {
        let path = [V2, "floatingips", id, "tags"];
        let call = Call::new(NEUTRON, "set tags of a floating IP", Method::PUT, &path);
        self.send(call.with_body(json!({"tags": tags}))).await.map(drop)
    }

    /// Deletes a floating IP, even if it is associated with a port.
    pub(crate) async fn delete_floating_address(&self, id: &str) -> Result<(), FleetError> {
        let call = Call::new(NEUTRON, "delete floating IP", Method::DELETE, &[V2, "floatingips", id]);
        self.send_unless(call, &[404]).await.map(drop)
    }
}
