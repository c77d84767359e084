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

/// An address that may be leased.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FloatingIp {
    /// Its identifier, a UUID.
    pub id: String,
    /// The network.
    pub floating_network_id: String,
    /// The subnet that it lies in.
    pub subnet_id: String,
    /// The address.
    pub floating_ip_address: String,
    /// Whether it may be reserved.
    pub reservable: bool,
    /// When it was entered: UTC to the second.
    pub created_at: String,
    /// Always null: it is never changed.
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
    pub network: NetworkId,
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
