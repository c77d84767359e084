//! Times for maintenance: the earliest suitable gap in a host's calendar (HK).

use jiff::{SignedDuration, Timestamp};

use crate::calendar::Calendar;
use crate::ids::HostId;
use crate::window::{Window, earlier, later};

/// Requested maintenance of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceWish {
    pub length: SignedDuration,
    /// Time before and after it without any lease of the host.
    pub margin: SignedDuration,
    /// Earliest start.
    pub not_before: Timestamp,
    /// Latest end.
    pub before: Timestamp,
}

/// Earliest window on a host, starting on a full minute; `None` if no gap fits.
pub fn earliest_gap(calendar: &Calendar, host: HostId, wish: &MaintenanceWish) -> Option<Window> {
    let margin = wish.margin.max(calendar.cleaning_time());
    // Leases shortly before or after the period count as well.
    let around = Window::new(earlier(wish.not_before, margin), later(wish.before, margin)).ok()?;
    calendar.free_gaps(host, &around, None).into_iter().find_map(|gap| {
        let start = whole_minute(later(gap.start(), margin).max(wish.not_before));
        let end = later(start, wish.length);
        let fits = end <= wish.before && later(end, margin) <= gap.end();
        Window::new(start, end).ok().filter(|window| fits && !window.is_empty())
    })
}

/// Rounds up to a full minute, because dates in the API have no seconds (API-create).
fn whole_minute(at: Timestamp) -> Timestamp {
    let second = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    let missing = (60 - second.rem_euclid(60)) % 60;
    Timestamp::from_second(second + missing).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, lease, minutes, window};

    fn wish(length: i64, margin: i64, not_before: i64, before: i64) -> MaintenanceWish {
        MaintenanceWish {
            length: minutes(length),
            margin: minutes(margin),
            not_before: at(not_before),
            before: at(before),
        }
    }

    #[test]
    fn hk_c_maintenance_is_at_the_earliest_gap_with_its_margin() {
        let leases = [lease(1, window(0, 60), &[1]), lease(2, window(100, 200), &[1])];
        let calendar = Calendar::new(minutes(5)).with_leases(&leases, at(0)).expect("free");
        let found = |wish: MaintenanceWish| earliest_gap(&calendar, HostId(1), &wish);
        assert_eq!(found(wish(20, 10, 0, 500)), Some(window(70, 90)));
        assert_eq!(found(wish(21, 10, 0, 500)), Some(window(210, 231)), "the margin is on both sides");
        assert_eq!(found(wish(30, 0, 0, 500)), Some(window(65, 95)), "cleaning takes time as well");
        assert_eq!(found(wish(20, 10, 75, 500)), Some(window(210, 230)));
        assert_eq!(found(wish(20, 10, 0, 89)), None, "it has to be over by then");
        assert_eq!(found(wish(20, 10, 0, 90)), Some(window(70, 90)));
        let other = earliest_gap(&calendar, HostId(2), &wish(60, 10, 7, 500));
        assert_eq!(other, Some(window(7, 67)), "a host that nobody has is free at once");
    }

    #[test]
    fn hk_c_maintenance_begins_at_a_whole_minute() {
        let second = |second| Timestamp::from_second(second).expect("in range");
        assert_eq!([0, 1, 59, 60].map(|at| whole_minute(second(at))), [0, 60, 60, 60].map(second));
    }
}
