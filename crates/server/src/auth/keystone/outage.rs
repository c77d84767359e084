//! Whether Keystone is asked while it cannot be reached: now and then, by one request, so that the others are answered at
//! once. Decides only: times are given.

use std::time::Duration;

/// How often it is tried.
const PAUSE: Duration = Duration::from_secs(2);

/// That Keystone cannot be reached, if so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outage(Option<Since>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since {
    began: Duration,
    next: Duration,
}

impl Outage {
    /// Whether to ask at `now`. In an outage that is yes once in a while.
    pub(super) fn may_ask(&mut self, now: Duration) -> bool {
        match &mut self.0 {
            None => true,
            Some(since) if now < since.next => false,
            Some(since) => {
                since.next = now.saturating_add(PAUSE);
                true
            }
        }
    }

    /// Keystone could not be reached at `now`; whether that is new.
    pub(super) fn failed(&mut self, now: Duration) -> bool {
        let next = now.saturating_add(PAUSE);
        let began = self.0.map_or(now, |since| since.began);
        let new = self.0.is_none();
        self.0 = Some(Since { began, next });
        new
    }

    /// Keystone has answered at `now`; how long it had not, if that ends an outage.
    pub(super) fn answered(&mut self, now: Duration) -> Option<Duration> {
        self.0.take().map(|since| now.saturating_sub(since.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_an_outage_one_request_asks_now_and_then() {
        let at = Duration::from_secs;
        let mut outage = Outage::default();
        assert!(outage.may_ask(at(0)) && outage.may_ask(at(0)));
        assert!(outage.failed(at(5)));
        assert!(!outage.failed(at(5)), "one that was asked at the same time");
        assert!(!outage.may_ask(at(6)));
        assert!(outage.may_ask(at(7)) && !outage.may_ask(at(7)), "one of them");
        assert_eq!(outage.answered(at(9)), Some(at(4)));
        assert_eq!(outage.answered(at(9)), None);
        assert!(outage.may_ask(at(9)));
    }
}
