//! Limits on failed logins, and their audit records.
//!
//! Two limits apply: one for a user at an address, so that an attacker elsewhere can't lock the user out, and
//! one for the address as a whole, so that one password can't be tried on all users. Behind a proxy, users
//! share an address. A user without recent failures is checked even if the limit of the address is used up.
//!
//! Every failure is logged and counted. The audit log gets the first failure of a user at an address, and
//! then one record per [`AUDIT_EVERY`] with the number of failures since the last record. Across all users it
//! gets a short burst, and then one record per [`AUDIT_EVERY_OF_ALL`]. So password guessing doesn't fill the
//! store.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ambient::Stopwatch;

use crate::rate::Limiter;

/// Time until a user at an address may fail once more.
const ONE_MORE: Duration = Duration::from_secs(10);

/// Limit of an address, as a multiple of the limit of a user there.
const ADDRESS_FACTOR: u32 = 10;

/// Minimum interval between audit records of a user at an address.
const AUDIT_EVERY: Duration = Duration::from_mins(10);

/// Limits on audit records of all users: burst, and interval after the burst.
const AUDIT_AT_ONCE: u32 = 50;
const AUDIT_EVERY_OF_ALL: Duration = Duration::from_mins(1);

/// Maximum number of pairs of user and address that are tracked for the audit log.
const MOST_NOTED: usize = 10_000;

/// Maximum length of a displayed name, in characters.
const LONGEST_NAME: usize = 64;

/// Network and user identifier. The identifier is empty for all unknown users.
type Pair = (IpAddr, String);

/// Tracks failed logins.
#[derive(Debug)]
pub(crate) struct Failures {
    limits: Option<(Limiter<Pair>, Limiter<IpAddr>)>,
    since: Stopwatch,
    noted: Mutex<HashMap<(Option<IpAddr>, String), Noted>>,
    records: Limiter<()>,
}

/// Last audit record of a user at an address, and failures since then.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    last: Option<Duration>,
    since_then: u64,
}

impl Failures {
    /// `at_once` is the number of failures in a row that a user at an address is allowed; 0 is unlimited.
    pub fn new(at_once: u32) -> Self {
        let rate = 1.0 / ONE_MORE.as_secs_f64();
        let limits = (at_once > 0).then(|| {
            let factor = f64::from(ADDRESS_FACTOR);
            let at_once = f64::from(at_once);
            (Limiter::of(rate, at_once), Limiter::of(rate * factor, at_once * factor))
        });
        Self {
            limits,
            since: Stopwatch::start(),
            noted: Mutex::default(),
            records: Limiter::of(1.0 / AUDIT_EVERY_OF_ALL.as_secs_f64(), f64::from(AUDIT_AT_ONCE)),
        }
    }

    /// Counts an attempt as failed until [`Self::succeeded`] is called. Over the limit, returns the time
    /// until the next attempt.
    pub fn begin(&self, peer: Option<IpAddr>, user: Option<&str>) -> Result<(), Duration> {
        let (Some((pairs, addresses)), Some(peer)) = (&self.limits, peer) else { return Ok(()) };
        let (pair, network) = pair(peer, user);
        let first = pairs.take_with(pair.clone())?;
        match addresses.take(network) {
            Err(wait) if !first => {
                pairs.give_back(&pair);
                Err(wait)
            }
            _ => Ok(()),
        }
    }

    /// Takes back a failure that [`Self::begin`] has counted.
    pub fn succeeded(&self, peer: Option<IpAddr>, user: Option<&str>) {
        if let (Some((pairs, addresses)), Some(peer)) = (&self.limits, peer) {
            let (pair, network) = pair(peer, user);
            pairs.give_back(&pair);
            addresses.give_back(&network);
        }
    }

    /// Records a failure. If it is due for an audit record, returns the number of failures that the record
    /// covers.
    pub fn note(&self, peer: Option<IpAddr>, name: &str) -> Option<u64> {
        self.note_at(peer, name, self.since.elapsed())
    }

    fn note_at(&self, peer: Option<IpAddr>, name: &str, now: Duration) -> Option<u64> {
        let is_old = |noted: &Noted| noted.last.is_none_or(|last| now.saturating_sub(last) >= AUDIT_EVERY);
        let mut all = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (peer.map(network), shown(name));
        if all.len() >= MOST_NOTED && !all.contains_key(&key) {
            all.retain(|_, noted| !is_old(noted));
            if all.len() >= MOST_NOTED {
                return None;
            }
        }
        let noted = all.entry(key).or_default();
        noted.since_then += 1;
        if !is_old(noted) || self.records.take(()).is_err() {
            return None;
        }
        noted.last = Some(now);
        Some(std::mem::take(&mut noted.since_then))
    }
}

/// All unknown user names share one entry, so that they can't exhaust memory.
fn pair(peer: IpAddr, user: Option<&str>) -> (Pair, IpAddr) {
    let network = network(peer);
    ((network, user.unwrap_or_default().to_owned()), network)
}

/// An IPv6 client controls its whole /64, so that counts as one address.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// A name from a client, made safe for logs and the audit log: escaped, on one line, and truncated.
pub(crate) fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(LONGEST_NAME).flat_map(char::escape_debug).collect();
    if name.chars().nth(LONGEST_NAME).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn wrong_passwords_of_a_user_are_limited_at_one_address_only() {
        let failures = Failures::new(3);
        for _ in 0..3 {
            assert_eq!(failures.begin(Some(address(1)), Some("bo")), Ok(()));
        }
        assert!(failures.begin(Some(address(1)), Some("bo")).is_err());
        assert_eq!(failures.begin(Some(address(2)), Some("bo")), Ok(()), "bo is not kept out from elsewhere");
        assert_eq!(failures.begin(Some(address(1)), Some("eve")), Ok(()));
        for _ in 0..9 {
            assert_eq!(failures.begin(Some(address(3)), Some("bo")), Ok(()));
            failures.succeeded(Some(address(3)), Some("bo"));
        }
    }

    #[test]
    fn an_address_that_tries_all_users_has_one_attempt_for_each() {
        let failures = Failures::new(2);
        for user in 0..10 {
            for _ in 0..2 {
                assert_eq!(failures.begin(Some(address(1)), Some(&user.to_string())), Ok(()));
            }
        }
        assert_eq!(failures.begin(Some(address(1)), Some("x")), Ok(()), "who was not wrong is checked");
        assert!(failures.begin(Some(address(1)), Some("x")).is_err());
        assert_eq!(failures.begin(Some(address(2)), Some("x")), Ok(()));
    }

    #[test]
    fn names_that_nobody_has_are_one_and_so_are_addresses_of_a_network() {
        let failures = Failures::new(1);
        let peer = |text: &str| Some(text.parse().expect("an address"));
        assert_eq!(failures.begin(peer("2001:db8::1"), None), Ok(()));
        assert!(failures.begin(peer("2001:db8::2"), None).is_err());
        assert!(failures.begin(peer("2001:db8::ffff:0:1"), None).is_err());
        assert_eq!(failures.begin(peer("2001:db8:0:1::1"), None), Ok(()));
    }

    #[test]
    fn the_audit_log_has_few_records_however_many_failures_there_are() {
        let failures = Failures::new(0);
        let at = Duration::from_secs;
        assert_eq!(failures.note_at(Some(address(1)), "bo", at(0)), Some(1));
        for second in 0..500 {
            assert_eq!(failures.note_at(Some(address(1)), "bo", at(second)), None);
        }
        assert_eq!(failures.note_at(Some(address(1)), "bo", at(600)), Some(501));
        let written = (0..100_000).filter(|n| failures.note_at(None, &n.to_string(), at(601)).is_some());
        assert!(written.count() <= AUDIT_AT_ONCE as usize);
        assert!(failures.noted.lock().expect("no panic").len() <= MOST_NOTED);
    }

    #[test]
    fn a_name_is_shown_in_one_line_and_not_too_long() {
        assert_eq!(shown("a\n\u{1b}[31m\u{202e}\"é"), "a\\n\\u{1b}[31m\\u{202e}\\\"é");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), LONGEST_NAME + 1);
    }
}
