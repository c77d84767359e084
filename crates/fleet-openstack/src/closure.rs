//! Reasons for a disabled compute service, as Nova stores them. The driver keeps the progress of a handover
//! in this text, so that the cloud itself has it after a crash and for other services. Services disabled with
//! any other text were not disabled by the driver.

use leases::ids::ReservationId;

use crate::ids::parse_uuid;

/// Prefix of all of the driver's reasons.
const OURS: &str = "allot: ";
const CHANGING: &str = "changing hands";
const EMPTY_FOR: &str = "changing hands, empty for ";
const TAKING_BACK: &str = "taking back from ";
const SAVING: &str = "saving power";

/// The driver's reason for disabling a compute service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closure {
    /// The host is fenced.
    Changing,
    /// The host is fenced, and was found empty except for servers of that reservation's lease.
    EmptyFor(ReservationId),
    /// The host returns from that reservation to the free pool.
    TakingBack(ReservationId),
    /// The host is fenced and switched off. It is off once the service is down.
    Saving,
}

impl Closure {
    /// The value of Nova's `disabled_reason`.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Changing => format!("{OURS}{CHANGING}"),
            Self::EmptyFor(reservation) => format!("{OURS}{EMPTY_FOR}{reservation}"),
            Self::TakingBack(reservation) => format!("{OURS}{TAKING_BACK}{reservation}"),
            Self::Saving => format!("{OURS}{SAVING}"),
        }
    }

    /// `None` if the driver didn't write the text. An unreadable text with the driver's prefix becomes
    /// [`Self::Changing`], since every handover can continue from a fenced host.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix(OURS)?;
        let reservation = |prefix| text.strip_prefix(prefix).and_then(parse_uuid).map(ReservationId);
        if text == SAVING {
            return Some(Self::Saving);
        }
        let taking_back = || reservation(TAKING_BACK).map(Self::TakingBack);
        Some(reservation(EMPTY_FOR).map(Self::EmptyFor).or_else(taking_back).unwrap_or(Self::Changing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_others_write_is_theirs() {
        let reservation = ReservationId(0xecdc_c9ea_d38d_4032_a9e3_3a8d_bcc0_6753);
        for closure in [
            Closure::Changing,
            Closure::EmptyFor(reservation),
            Closure::TakingBack(reservation),
            Closure::Saving,
        ] {
            let text = closure.text();
            assert_eq!(Closure::read(&text), Some(closure));
            assert!(text.len() <= 255, "Nova takes no more");
        }
        assert_eq!(Closure::read("maintenance"), None);
        assert_eq!(Closure::read(""), None);
        assert_eq!(Closure::read("allot: changing hands, empty for nobody"), Some(Closure::Changing));
    }
}
