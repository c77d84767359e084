//! Identifiers in `OpenStack`'s notation.

use leases::ids::ReservationId;

/// Parses a UUID with hyphens.
pub(crate) fn parse_uuid(text: &str) -> Option<u128> {
    let hyphens = [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    if text.len() != 36 || !hyphens {
        return None;
    }
    let digits = text.replace('-', "");
    let plain = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u128::from_str_radix(&digits, 16).ok()).flatten()
}

/// Prefix of the names of reservations' flavors.
pub(crate) const FLAVOR: &str = "reservation:";

/// Resource class of an instance reservation. Each of its servers uses one unit.
pub(crate) fn resource_class(reservation: ReservationId) -> String {
    format!("CUSTOM_RESERVATION_{}", reservation.to_string().to_uppercase().replace('-', "_"))
}

/// Name of the provider for reservations' slots, which is below the host's own provider. The name is
/// Blazar's.
pub(crate) fn slots_provider(provider: &str) -> String {
    format!("blazar_{provider}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_read_and_written_as_openstack_has_them() {
        let text = "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";
        let id = parse_uuid(text).map(ReservationId).expect("a UUID");
        assert_eq!(id.to_string(), text);
        assert_eq!(resource_class(id), "CUSTOM_RESERVATION_ECDCC9EA_D38D_4032_A9E3_3A8DBCC06753");
        for none in
            ["", "freepool", "ecdcc9ead38d4032a9e33a8dbcc06753", "ecdcc9ea-d38d-4032-a9e3-3a8dbcc0675\u{e9}"]
        {
            assert_eq!(parse_uuid(none), None, "{none}");
        }
    }
}
