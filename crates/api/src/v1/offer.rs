//! Offers, and requests on the waitlist, in answers (CLS-10). Not in Blazar.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use leases::lease as domain;
use leases::standing::Standing;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::LeaseRecord;
use utoipa::ToSchema;

use super::date::rfc_3339;
use super::error::RequestError;
use super::lease::Lease;
use super::lease_dates::read_duration;

/// Maximum time for which a client can have offers held.
const LONGEST_HOLD: SignedDuration = SignedDuration::from_mins(15);

/// Alternative to a rejected request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// Identifier, for accepting the offer; null if the offer isn't held, so no capacity is reserved for it.
    pub id: Option<String>,
    /// Position among the held offers to the caller, counted from 1. Offers of the newest rejection come
    /// first. Null if the offer isn't held or was made to another user.
    pub number: Option<u64>,
    /// Difference from the request: `later_start`, `shorter_duration`, `fewer_hosts`, `other_pool` or
    /// `longer_timeout`.
    pub kind: String,
    /// Time until which the offer can be accepted; null if it isn't held.
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
    /// Identifier of the lease that would change; null for a new lease.
    pub lease_id: Option<String>,
    /// The offered lease. If the offer for a new lease is accepted, the lease has the identifier of the
    /// offer.
    pub lease: Lease,
    /// Identifiers of the hosts that are reserved until `expires_at`. Only for callers who can see
    /// allocations of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_ids: Option<Vec<String>>,
}

impl Offer {
    /// The offer in a record, without a number. `None` if the record isn't an offer. `held`: capacity is
    /// reserved for it. `shows_hosts`: the caller may see its hosts.
    pub fn new(record: &LeaseRecord, held: bool, shows_hosts: bool) -> Option<Self> {
        let Standing::Offered { until, kind, of, .. } = record.lease.standing else { return None };
        let lease = domain::Lease { id: of.unwrap_or(record.lease.id), ..record.lease.clone() };
        Some(Self {
            id: held.then(|| record.lease.id.to_string()),
            number: None,
            kind: kind.name().to_owned(),
            expires_at: held.then(|| rfc_3339(until)),
            lease_id: of.map(|lease| lease.to_string()),
            lease: Lease::from(&LeaseRecord { lease, ..record.clone() }),
            host_ids: (held && shows_hosts).then(|| hosts_of(record)),
        })
    }
}

/// Reads the time for which offers will be held, from that query parameter.
pub fn read_hold(parameter: &'static str, text: &str) -> Result<SignedDuration, RequestError> {
    let time = read_duration(parameter, &Value::from(text))?;
    let too_long = || RequestError::malformed(parameter, "a duration of at most 15 minutes, such as 10m");
    if time <= LONGEST_HOLD { Ok(time) } else { Err(too_long()) }
}

fn hosts_of(record: &LeaseRecord) -> Vec<String> {
    let hosts = record.lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
    hosts.collect::<BTreeSet<_>>().into_iter().map(|host| host.to_string()).collect()
}

/// A request on the waitlist.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WaitlistEntry {
    /// Identifier of the request, and of the lease that it becomes.
    pub id: String,
    /// Position on the waitlist, counted from 1. Requests of other projects count as well.
    pub place: u64,
    /// Latest start. The request is dropped if it hasn't started by then.
    #[schema(format = "date-time")]
    pub expires_at: String,
    /// Earliest start of a request that can start at any time within a window; null for fixed dates.
    #[schema(format = "date-time")]
    pub earliest_start_date: Option<String>,
    /// Latest end of a request that can start at any time within a window; null for fixed dates.
    #[schema(format = "date-time")]
    pub latest_end_date: Option<String>,
    /// The requested lease.
    pub lease: Lease,
}

impl WaitlistEntry {
    /// The waitlist entry at that place. `None` if the record isn't a waiting request.
    pub fn new(place: usize, record: &LeaseRecord) -> Option<Self> {
        let Standing::Waiting { until, within } = record.lease.standing else { return None };
        Some(Self {
            id: record.lease.id.to_string(),
            place: place as u64,
            expires_at: rfc_3339(until),
            earliest_start_date: within.map(|window| rfc_3339(window.start())),
            latest_end_date: within.map(|window| rfc_3339(window.end())),
            lease: Lease::from(record),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_held_for_a_quarter_of_an_hour_at_most() {
        for (text, seconds) in [("10m", 600), ("PT15M", 900), ("90s", 90)] {
            assert_eq!(read_hold("hold_for", text).ok(), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
        for text in ["16m", "901s", "1h", "P1D"] {
            let refused = read_hold("hold_for", text).expect_err(text);
            let named = matches!(&refused, RequestError::Malformed { expected, .. } if expected.contains("15 minutes"));
            assert!(named, "{text}: {refused}");
        }
        for text in ["0s", "-1m", "10", "soon"] {
            assert!(read_hold("hold_for", text).is_err(), "{text}");
        }
    }
}
