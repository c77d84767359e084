//! Detects outages of Keystone. Only validations of the service's own token count, because an error for a client's
//! token may be due to that token. Reads no clock: the caller passes the time.

use std::time::Duration;

/// How long the outcome of a probe counts. This is also the minimum interval between probes.
const PAUSE: Duration = Duration::from_secs(2);

/// Time of the last probe, and start of the outage if it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outage {
    began: Option<Duration>,
    probed: Option<Duration>,
}

impl Outage {
    /// Whether the last probe failed.
    pub(super) fn is_on(&self) -> bool {
        self.began.is_some()
    }

    /// Whether Keystone was available at the last probe; `None` without a recent probe.
    pub(super) fn recent(&self, now: Duration) -> Option<bool> {
        let probed = self.probed.filter(|probed| now.saturating_sub(*probed) < PAUSE);
        probed.map(|_| !self.is_on())
    }

    /// Records a probe that failed at `now`. Returns whether an outage begins.
    pub(super) fn failed(&mut self, now: Duration) -> bool {
        self.probed = Some(now);
        let begins = self.began.is_none();
        self.began.get_or_insert(now);
        begins
    }

    /// Records a probe that succeeded at `now`. Returns the duration of the outage that it ends, if any.
    pub(super) fn answered(&mut self, now: Duration) -> Option<Duration> {
        self.probed = Some(now);
        self.began.take().map(|began| now.saturating_sub(began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_a_probe_counts_for_a_moment() {
        let at = Duration::from_secs;
        let mut outage = Outage::default();
        assert_eq!((outage.is_on(), outage.recent(at(0))), (false, None));
        assert_eq!(outage.answered(at(1)), None);
        assert_eq!((outage.recent(at(2)), outage.recent(at(3))), (Some(true), None));
        assert!(outage.failed(at(5)));
        assert!(outage.is_on() && !outage.failed(at(7)), "it goes on");
        assert_eq!((outage.recent(at(8)), outage.recent(at(9))), (Some(false), None));
        assert_eq!(outage.answered(at(9)), Some(at(4)));
        assert_eq!((outage.is_on(), outage.recent(at(10))), (false, Some(true)));
    }
}
