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

/// Content of `vendor_data2.json` in the server, below the name that Nova's configuration gives this service.
/// Empty if the server isn't on a host of the service.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Vendordata {
    /// Lease that the server is part of; absent if it isn't part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<VendordataLease>,
    /// Whether the server is preempted for leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// Time of the preemption notice, which asks the server to shut down; absent if no lease that needs its
    /// place is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub shutdown_date: Option<String>,
    /// Time by which the server is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub gone_date: Option<String>,
}

/// Lease of a server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct VendordataLease {
    /// Identifier of the lease.
    pub id: String,
    /// Name of the lease.
    pub name: String,
    /// Status of the lease: PENDING, ACTIVE and so on.
    pub status: String,
    /// Start of the lease.
    #[schema(format = "date-time")]
    pub start_date: String,
    /// End of the lease. The server is then treated as `end_action` requires.
    #[schema(format = "date-time")]
    pub end_date: String,
    /// Action on the lease's guests at its end: `delete`, `keep`, `snapshot` or `migrate`.
    pub end_action: String,
    /// Reservation that the server is part of; absent if several are possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
}

impl VendordataLease {
    /// That lease, and that reservation of it.
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
