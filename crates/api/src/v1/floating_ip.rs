//! Floating IPs (API-hosts).

use std::net::IpAddr;

use leases::host::NetworkId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::FloatingIpRecord;
use utoipa::ToSchema;

use super::date::created_at;
use super::error::RequestError;
use super::fields::{Fields, text};
use super::reservation_request::address;

/// A floating IP that can be leased.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FloatingIp {
    /// Identifier of the floating IP, a UUID.
    pub id: String,
    /// Identifier of the network.
    pub floating_network_id: String,
    /// Identifier of the subnet that contains the address.
    pub subnet_id: String,
    /// The IP address.
    pub floating_ip_address: String,
    /// Whether the address can be reserved.
    pub reservable: bool,
    /// Time at which the address was added: UTC to the second.
    pub created_at: String,
    /// Always null, since floating IPs don't change.
    pub updated_at: Option<String>,
}

impl From<&FloatingIpRecord> for FloatingIp {
    fn from(record: &FloatingIpRecord) -> Self {
        let ip = &record.floating_ip;
        Self {
            id: ip.id.to_string(),
            floating_network_id: ip.network.0.clone(),
            subnet_id: record.subnet.clone(),
            floating_ip_address: ip.address.to_string(),
            reservable: ip.reservable,
            created_at: created_at(record.created_at),
            updated_at: None,
        }
    }
}

/// An address to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIpRequest {
    /// The network.
    pub network: NetworkId,
    /// The address.
    pub address: IpAddr,
}

impl FloatingIpRequest {
    /// Reads the body of `POST /floatingips`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        fields.require(&["floating_network_id", "floating_ip_address"])?;
        let network = text("floating_network_id", fields.required("floating_network_id")?)?;
        let address = address(fields.required("floating_ip_address")?)?;
        fields.finish()?;
        Ok(Self { network: NetworkId(network), address })
    }
}
