//! Identifiers in addresses and requests.

use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId};

/// Parses a UUID in its usual form, since clients send what they were given.
pub(crate) fn parse_uuid(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 || !text.is_ascii() {
        return None;
    }
    let mut uuid = 0_u128;
    for (i, c) in text.chars().enumerate() {
        match (i, c) {
            (8 | 13 | 18 | 23, '-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            (_, c) => uuid = uuid << 4 | u128::from(c.to_digit(16)?),
        }
    }
    Some(uuid)
}

/// The lease of that identifier.
pub fn lease_id(text: &str) -> Option<LeaseId> {
    parse_uuid(text).map(LeaseId)
}

/// The instance of that identifier.
pub fn instance_id(text: &str) -> Option<GuestId> {
    parse_uuid(text).map(GuestId)
}

/// The floating IP of that identifier.
pub fn floating_ip_id(text: &str) -> Option<FloatingIpId> {
    parse_uuid(text).map(FloatingIpId)
}

/// The reservation of that identifier.
pub fn reservation_id(text: &str) -> Option<leases::ids::ReservationId> {
    parse_uuid(text).map(leases::ids::ReservationId)
}

/// The leases that recur of that identifier.
pub fn series_id(text: &str) -> Option<leases::ids::SeriesId> {
    parse_uuid(text).map(leases::ids::SeriesId)
}

/// The identifier of a host: decimal digits only.
pub fn host_id(text: &str) -> Option<HostId> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok().map(HostId) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_read_as_it_is_written() {
        let id = LeaseId(0xecdc_c9ea_d38d_4032_a9e3_3a8d_bcc0_6753);
        assert_eq!(lease_id(&id.to_string()), Some(id));
        for wrong in
            ["nosuch", "", "ecdcc9ea-d38d-4032-a9e3-3a8dbcc0675", "ecdcc9ea+d38d-4032-a9e3-3a8dbcc06753"]
        {
            assert_eq!(lease_id(wrong), None);
        }
        assert_eq!(host_id("7"), Some(HostId(7)));
        assert_eq!(host_id("+7"), None);
        assert_eq!(host_id("node7"), None);
    }
}
