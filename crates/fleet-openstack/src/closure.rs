//! Why a compute service is disabled: the text that Nova keeps of it. It is where the driver keeps how far a handover
//! is, so that after a crash, or to another service, the cloud itself says so. Services that were disabled with any
//! other text are somebody else's business.

use leases::ids::ReservationId;

use crate::ids::parse_uuid;

/// What all of them begin with.
const OURS: &str = "allot: ";
const CHANGING: &str = "changing hands";
const EMPTY_FOR: &str = "changing hands, empty for ";
const TAKING_BACK: &str = "taking back from ";
const SAVING: &str = "saving power";

/// Why the driver has disabled a compute service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closure {
    /// The host is fenced.
    Changing,
    /// It is, and has been found empty but for servers of that reservation's lease.
    EmptyFor(ReservationId),
    /// It goes back from that reservation to the free pool.
    TakingBack(ReservationId),
    /// It is fenced, and is switched off: it is off when the service is down.
    Saving,
}

impl Closure {
    /// As Nova keeps it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Changing => format!("{OURS}{CHANGING}"),
            Self::EmptyFor(reservation) => format!("{OURS}{EMPTY_FOR}{reservation}"),
            Self::TakingBack(reservation) => format!("{OURS}{TAKING_BACK}{reservation}"),
            Self::Saving => format!("{OURS}{SAVING}"),
        }
    }

    /// None if the text is somebody else's. One of ours that cannot be read stands for a fenced host, which is where
    /// every handover can go on from.
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
