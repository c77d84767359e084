//! Average share of a host that is reserved, in spans of equal length: a condensed calendar.

use jiff::{SignedDuration, Timestamp};

use crate::resources::Resources;
use crate::window::Window;

/// A whole host, in thousandths.
pub const WHOLE: u16 = 1000;

/// A booking of a whole host, or of resources on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub window: Window,
    /// Reserved resources; `None` means the whole host.
    pub used: Option<Resources>,
}

/// Number of spans of this length in the window, counted from its start. The window's end can cut the last
/// one short. `None` if `length` isn't positive.
pub fn spans(within: &Window, length: SignedDuration) -> Option<u64> {
    let (all, one) = (within.length().as_micros(), length.as_micros());
    (one > 0).then(|| u64::try_from((all + one - 1) / one).unwrap_or(u64::MAX))
}

/// Average reserved share of a host with this capacity, for each span of the window, in thousandths. Rounded
/// up, so a span with any reservation is never 0. If parts of several resources are reserved, the one with
/// the largest share counts. Empty if `length` isn't positive.
pub fn occupancy(
    reserved: &[Reserved],
    capacity: &Resources,
    within: &Window,
    length: SignedDuration,
) -> Vec<u16> {
    let Some(count) = spans(within, length) else { return Vec::new() };
    // Microseconds since the start of the window are cheaper than timestamps here, and there are many.
    let since_start = |at: Timestamp| at.duration_since(within.start()).as_micros();
    let (all, one) = (since_start(within.end()), length.as_micros());
    let mut totals = vec![0_i128; usize::try_from(count).unwrap_or(usize::MAX)];
    for (part, share) in shares(reserved, capacity, within) {
        let (start, end) = (since_start(part.start()), since_start(part.end()));
        let first = usize::try_from(start / one).unwrap_or(usize::MAX);
        let mut span_start = start / one * one;
        for total in totals.iter_mut().skip(first) {
            if span_start >= end {
                break;
            }
            let both = end.min(span_start + one) - start.max(span_start);
            *total += i128::from(share) * both;
            span_start += one;
        }
    }
    let mut rest = all;
    let average = |total: i128| {
        let length = one.min(rest).max(1);
        rest -= one;
        u16::try_from((total + length - 1) / length).unwrap_or(WHOLE).min(WHOLE)
    };
    totals.into_iter().map(average).collect()
}

/// Parts of the window with reservations, in order, with the reserved share of the host.
fn shares(reserved: &[Reserved], capacity: &Resources, within: &Window) -> Vec<(Window, u16)> {
    let mut turns: Vec<(Timestamp, bool, &Reserved)> = Vec::new();
    for one in reserved.iter().filter(|one| one.window.overlaps(within)) {
        turns.push((one.window.start().max(within.start()), true, one));
        turns.push((one.window.end().min(within.end()), false, one));
    }
    turns.sort_by_key(|(at, begins, _)| (*at, *begins));
    let (mut whole, mut used, mut since) = (0_u32, Resources::default(), within.start());
    let mut parts = Vec::new();
    for (at, begins, one) in turns {
        let share = if whole > 0 { WHOLE } else { largest_share(&used, capacity) };
        if let Ok(part) = Window::new(since, at)
            && !part.is_empty()
            && share > 0
        {
            parts.push((part, share));
        }
        since = at;
        match (&one.used, begins) {
            (None, true) => whole += 1,
            (None, false) => whole -= 1,
            (Some(size), true) => used.add(1, size),
            (Some(size), false) => used.subtract(1, size),
        }
    }
    parts
}

/// Share of the most used resource, rounded up.
fn largest_share(used: &Resources, capacity: &Resources) -> u16 {
    let share = |(used, there): (u64, u64)| match (used, there) {
        (0, _) => 0,
        (_, 0) => WHOLE,
        (used, there) => {
            let share = (u128::from(used) * u128::from(WHOLE)).div_ceil(u128::from(there));
            u16::try_from(share).unwrap_or(WHOLE).min(WHOLE)
        }
    };
    let common = [
        (used.vcpus, capacity.vcpus),
        (used.memory_mib, capacity.memory_mib),
        (used.disk_gib, capacity.disk_gib),
    ];
    let others = used.other.iter();
    let others = others.map(|(class, used)| (*used, capacity.other.get(class).copied().unwrap_or(0)));
    common.into_iter().chain(others).map(share).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{minutes, window};

    fn vcpus(vcpus: u64) -> Resources {
        Resources { vcpus, ..Resources::default() }
    }

    fn reserved((start, end, used): (i64, i64, Option<u64>)) -> Reserved {
        Reserved { window: window(start, end), used: used.map(vcpus) }
    }

    #[test]
    fn what_is_reserved_for_a_part_of_a_span_counts_in_part_and_is_never_nothing() {
        let whole = [reserved((30, 60, None)), reserved((100, 101, None))];
        let found = |length| occupancy(&whole, &vcpus(10), &window(0, 110), minutes(length));
        assert_eq!(found(60), [500, 20], "the last span has 50 minutes");
        assert_eq!(found(30), [0, 1000, 0, 50]);
        assert_eq!(found(500), [282], "31 of 110 minutes");
        assert_eq!(found(0), []);
        let short = [reserved((0, 1, None))];
        assert_eq!(occupancy(&short, &vcpus(10), &window(0, 100_000), minutes(100_000)), [1]);
    }

    #[test]
    fn of_several_resources_the_one_counts_of_which_most_is_used() {
        let size = Resources { vcpus: 1, memory_mib: 512, ..Resources::default() };
        let capacity = Resources { vcpus: 10, memory_mib: 1024, ..Resources::default() };
        let one = [Reserved { window: window(0, 60), used: Some(size) }];
        assert_eq!(occupancy(&one, &capacity, &window(0, 60), minutes(60)), [500]);
        assert_eq!(occupancy(&one, &vcpus(10), &window(0, 60), minutes(60)), [1000], "there is no memory");
    }

    proptest! {
        /// Compares with a recount that checks all reservations for every minute.
        #[test]
        fn occupancy_is_what_a_recount_finds(
            drawn in prop::collection::vec((-20_i64..120, 0_i64..60, prop::option::of(1_u64..8)), 0..12),
            start in -10_i64..40,
            length in 1_i64..120,
            span in 1_i64..70,
        ) {
            let all: Vec<(i64, i64, Option<u64>)> =
                drawn.iter().map(|(start, length, used)| (*start, start + length, *used)).collect();
            let end = start + length;
            let share_at = |minute: i64| {
                let now = all.iter().filter(|(start, end, _)| *start <= minute && minute < *end);
                let (mut whole, mut used) = (false, 0);
                for (_, _, vcpus) in now {
                    match vcpus {
                        None => whole = true,
                        Some(vcpus) => used += vcpus,
                    }
                }
                if whole { 1000 } else { (used * 1000).div_ceil(16).min(1000) }
            };
            let mut expected = Vec::new();
            let mut from = start;
            while from < end {
                let until = (from + span).min(end);
                let total: u64 = (from..until).map(share_at).sum();
                expected.push(u16::try_from(total.div_ceil((until - from).unsigned_abs())).expect("at most 1000"));
                from += span;
            }
            let all: Vec<Reserved> = all.into_iter().map(reserved).collect();
            let found = occupancy(&all, &vcpus(16), &window(start, end), minutes(span));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(spans(&window(start, end), minutes(span)), Some(((length + span - 1) / span).unsigned_abs()));
        }
    }
}
