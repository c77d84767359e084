//! Identifiers. They come from outside: nothing here makes one up.

use std::fmt;

macro_rules! uuid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            /// The usual form with hyphens, lower case.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let hex = format!("{:032x}", self.0);
                let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
                write!(f, "{a}-{b}-{c}-{d}-{e}")
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

uuid!(
    /// A lease, as a UUID.
    LeaseId
);
uuid!(
    /// A reservation of a lease, as a UUID.
    ReservationId
);
uuid!(
    /// A floating IP, as a UUID.
    FloatingIpId
);
uuid!(
    /// A guest: an instance that runs on a host, as a UUID.
    GuestId
);

/// A host. Blazar's clients take an identifier for a name unless it is decimal (spec §2.4), so it is a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_id_reads_like_a_uuid_and_a_host_id_like_a_number() {
        let id = LeaseId(0xecdc_c9ea_d38d_4032_a9e3_3a8d_bcc0_6753);
        assert_eq!(id.to_string(), "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753");
        assert_eq!(HostId(7).to_string(), "7");
    }
}
