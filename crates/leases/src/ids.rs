//! Identifiers. Callers supply them; this crate never generates any.

use std::fmt;

macro_rules! uuid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            /// The usual form with hyphens, lower case.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // In parts: formatting 128 bits at once takes several times as long, and lists have many.
                let bits = |above: u32, width: u32| (self.0 >> above) as u64 & (u64::MAX >> (64 - width));
                let (a, b, c, d, e) = (bits(96, 32), bits(80, 16), bits(64, 16), bits(48, 16), bits(0, 48));
                write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
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
    /// UUID of a lease.
    LeaseId
);
uuid!(
    /// UUID of a reservation within a lease.
    ReservationId
);
uuid!(
    /// UUID of a floating IP.
    FloatingIpId
);
uuid!(
    /// UUID of a guest: an instance that runs on a host.
    GuestId
);
uuid!(
    /// UUID of a free pool.
    FreePoolId
);
uuid!(
    /// UUID of a set of offers that were made together.
    OffersId
);
uuid!(
    /// UUID of a series of recurring leases.
    SeriesId
);

impl FreePoolId {
    /// The default free pool, which always exists.
    pub const DEFAULT: Self = Self(1);
}

/// Identifier of a host. It is a number, because Blazar's clients treat identifiers as names unless they are
/// decimal (API-clients).
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
