//! Figures from the clients' observations: duration of outages, and delays of leases beyond them.

use crate::leasing::span::{Millis, Span};

/// A lease that started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    pub lease: String,
    /// Start date, or the time of acknowledgment if that was later.
    pub due: Millis,
    /// Time at which a client first saw it ACTIVE.
    pub active: Millis,
}

impl Begun {
    /// Delay of the start, in milliseconds.
    pub fn late(&self) -> i64 {
        self.active.since(self.due)
    }

    /// Delay of the start without the time spent in outages, in milliseconds.
    pub fn late_beyond(&self, outages: &[Span]) -> i64 {
        let excused: i64 = outages.iter().map(|outage| outage.in_common(self.waited())).sum();
        self.late() - excused
    }

    /// Whether the lease waited during that outage.
    pub fn waited_in(&self, outage: Span) -> bool {
        outage.in_common(self.waited()) > 0
    }

    fn waited(&self) -> Span {
        Span { from: self.due, to: self.active }
    }
}

/// The longest interval without an accepted write that began after a fault and before the end of `window`.
/// `None` if no write was accepted after the fault.
pub fn outage(writes: &[Millis], window: Span) -> Option<Span> {
    let mut writes = writes.to_vec();
    writes.sort_unstable();
    let later = writes.partition_point(|write| *write <= window.from);
    let mut from = window.from;
    let mut longest: Option<Span> = None;
    for &to in &writes[later..] {
        if from > window.to {
            break;
        }
        if longest.is_none_or(|known| to.since(from) > known.millis()) {
            longest = Some(Span { from, to });
        }
        from = to;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: i64, to: i64) -> Span {
        Span { from: Millis(from), to: Millis(to) }
    }

    #[test]
    fn an_outage_is_the_longest_time_without_a_write_after_the_fault() {
        let writes = [10, 100, 110, 120, 500, 510, 2000].map(Millis);
        assert_eq!(outage(&writes, span(105, 600)), Some(span(510, 2000)));
        assert_eq!(outage(&writes, span(105, 505)), Some(span(120, 500)));
        assert_eq!(outage(&writes, span(0, 5)), Some(span(0, 10)));
        assert_eq!(outage(&writes, span(2000, 3000)), None);
    }

    #[test]
    fn the_time_in_which_nothing_could_be_written_excuses_a_late_lease_and_no_more() {
        let begun = |due, active| Begun { lease: String::new(), due: Millis(due), active: Millis(active) };
        let outages = [span(100, 200), span(1000, 1300)];
        assert_eq!(begun(150, 230).late_beyond(&outages), 30);
        assert_eq!(begun(50, 60).late_beyond(&outages), 10);
        assert_eq!(begun(90, 1350).late_beyond(&outages), 860);
        assert!(begun(150, 230).waited_in(outages[0]) && !begun(150, 230).waited_in(outages[1]));
    }
}
