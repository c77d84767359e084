//! Data about a Nova server for the server itself, in the form in which Nova requests it (`DynamicJSON`).

use leases::ids::{GuestId, ReservationId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::LeaseRecord;
use utoipa::ToSchema;

use super::date::rfc_3339;
use super::end_action::end_action_name;
use super::error::RequestError;
use super::id::instance_id;

/// What a server sees as `vendor_data2.json`, below the name that Nova's configuration gives to this service. Empty if it is
/// on no host of the service.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Vendordata {
    /// The lease that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<VendordataLease>,
    /// Whether leases preempt it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// When it is asked to shut down, if a lease that needs its place is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub shutdown_date: Option<String>,
    /// When it is gone at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub gone_date: Option<String>,
}

/// The lease of a server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct VendordataLease {
    /// Its identifier.
    pub id: String,
    pub name: String,
    /// PENDING, ACTIVE and so on.
    pub status: String,
    /// When it starts.
    #[schema(format = "date-time")]
    pub start_date: String,
    /// When it ends: what becomes of the server then, its end action says.
    #[schema(format = "date-time")]
    pub end_date: String,
    /// `delete`, `keep`, `snapshot` or `migrate`.
    pub end_action: String,
    /// The reservation whose place the server takes; absent if that may be one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
}

impl VendordataLease {
    pub fn new(record: &LeaseRecord, reservation: Option<ReservationId>) -> Self {
        let lease = &record.lease;
        Self {
            id: lease.id.to_string(),
            name: lease.name.clone(),
            status: lease.status.name().to_owned(),
            start_date: rfc_3339(lease.window.start()),
            end_date: rfc_3339(lease.window.end()),
            end_action: end_action_name(lease.end_action).to_owned(),
            reservation_id: reservation.map(|id| id.to_string()),
        }
    }
}

/// Reads the server's identifier. Nova sends more: the project, the image, the user data.
///
/// # Errors
/// If the identifier is missing or invalid.
pub fn read_vendordata_request(body: &Value) -> Result<GuestId, RequestError> {
    const NAME: &str = "instance-id";
    let value = body.get(NAME).ok_or_else(|| RequestError::Missing(NAME.to_owned()))?;
    value.as_str().and_then(instance_id).ok_or_else(|| RequestError::malformed(NAME, "a UUID"))
}
