//! Number of free hosts of a pool beyond the reserve, over time.

use jiff::Timestamp;

use crate::window::Window;

/// Number of steps in a block.
const BLOCK: usize = 64;

/// A step function of time. Each value holds until the next step, the last one until `end`.
#[derive(Clone, Debug)]
pub(super) struct Slack {
    /// Start and value of each step. The block's `taken` must be subtracted from the value.
    steps: Vec<(Timestamp, i64)>,
    /// Summaries of [`BLOCK`] steps each. With 10,000 hosts and a year of leases, a window spans thousands of
    /// steps.
    blocks: Vec<Block>,
    end: Timestamp,
}

#[derive(Clone, Debug)]
struct Block {
    /// Number of times that all steps of the block were taken at once.
    taken: i64,
    least: i64,
    most: i64,
}

impl Block {
    fn new(steps: &[(Timestamp, i64)], taken: i64) -> Self {
        let values = || steps.iter().map(|(_, value)| *value - taken);
        Self { taken, least: values().min().unwrap_or_default(), most: values().max().unwrap_or_default() }
    }

    /// Whether the value is positive in all steps of the block, or in no step.
    fn is_even(&self) -> bool {
        self.least > 0 || self.most <= 0
    }
}

impl Slack {
    /// Number of `free` windows that contain each instant of `within`, minus `reserve`.
    pub fn new(free: impl IntoIterator<Item = Window>, reserve: u32, within: Window) -> Self {
        let mut changes = vec![(within.start(), -i64::from(reserve))];
        for window in free {
            let window = window.since(within.start()).before(within.end());
            changes.push((window.start(), 1));
            changes.push((window.end(), -1));
        }
        changes.sort_unstable_by_key(|(at, _)| *at);
        let mut steps: Vec<(Timestamp, i64)> = Vec::new();
        let mut sum = 0;
        for (at, change) in changes {
            sum += change;
            match steps.last_mut() {
                Some((last, value)) if *last == at => *value = sum,
                _ => steps.push((at, sum)),
            }
        }
        steps.retain(|(at, _)| *at < within.end());
        let blocks = steps.chunks(BLOCK).map(|steps| Block::new(steps, 0)).collect();
        Self { steps, blocks, end: within.end() }
    }

    fn first_after(&self, at: Timestamp) -> usize {
        self.steps.partition_point(|(step, _)| *step <= at)
    }

    /// Parts of the window in which the value is positive. Adjacent parts are merged.
    pub fn pieces(&self, window: &Window) -> Vec<Window> {
        let mut pieces: Vec<Window> = Vec::new();
        if window.is_empty() {
            return pieces;
        }
        let mut next = self.first_after(window.start()).saturating_sub(1);
        while let Some(&(from, value)) = self.steps.get(next)
            && from < window.end()
        {
            let block = &self.blocks[next / BLOCK];
            next += if next.is_multiple_of(BLOCK) && block.is_even() { BLOCK } else { 1 };
            let until = self.steps.get(next).map_or(self.end, |(next, _)| *next);
            let (from, until) = (from.max(window.start()), until.min(window.end()));
            if value - block.taken <= 0 || from >= until {
                continue;
            }
            let begin = match pieces.last() {
                Some(last) if last.end() == from => pieces.pop().map_or(from, |last| last.start()),
                _ => from,
            };
            pieces.extend(Window::new(begin, until));
        }
        pieces
    }

    /// Subtracts 1 throughout the window, whose ends must be steps.
    pub fn take(&mut self, window: &Window) {
        let first = self.first_after(window.start()).saturating_sub(1);
        let end = self.steps.partition_point(|(at, _)| *at < window.end());
        for (number, block) in
            self.blocks.iter_mut().enumerate().take(end.div_ceil(BLOCK)).skip(first / BLOCK)
        {
            let whole = number * BLOCK..self.steps.len().min((number + 1) * BLOCK);
            let inside = first.max(whole.start)..end.min(whole.end);
            if inside == whole {
                block.taken += 1;
                block.least -= 1;
                block.most -= 1;
            } else {
                self.steps[inside].iter_mut().for_each(|(_, value)| *value -= 1);
                *block = Block::new(&self.steps[whole], block.taken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::window;

    fn some_windows() -> impl Strategy<Value = Vec<(i64, i64)>> {
        let one = (0_i64..400, 1_i64..400).prop_map(|(from, length)| (from, (from + length).min(400)));
        prop::collection::vec(one, 1..300)
    }

    proptest! {
        #[test]
        fn pieces_are_where_windows_outnumber_what_was_taken(
            free in some_windows(),
            asked in prop::collection::vec(any::<prop::sample::Index>(), 1..200),
            reserve in 0_u32..5,
        ) {
            let mut slack = Slack::new(free.iter().map(|(from, until)| window(*from, *until)), reserve, window(0, 400));
            let mut left = [-i64::from(reserve); 400];
            let range = |(from, until): (i64, i64)| usize::try_from(from).unwrap()..usize::try_from(until).unwrap();
            for free in &free {
                left[range(*free)].iter_mut().for_each(|left| *left += 1);
            }
            for asked in asked.iter().map(|asked| *asked.get(&free)) {
                let pieces = slack.pieces(&window(asked.0, asked.1));
                let minute = |at: Timestamp| at.as_second() / 60;
                let minutes: Vec<(i64, i64)> =
                    pieces.iter().map(|piece| (minute(piece.start()), minute(piece.end()))).collect();
                let inside = |minute| minutes.iter().any(|piece| (piece.0..piece.1).contains(&minute));
                for minute in asked.0..asked.1 {
                    prop_assert_eq!(inside(minute), left[usize::try_from(minute).unwrap()] > 0);
                }
                prop_assert!(minutes.windows(2).all(|pair| pair[0].1 < pair[1].0), "pieces that meet are one");
                for (piece, minutes) in pieces.iter().zip(minutes) {
                    slack.take(piece);
                    left[range(minutes)].iter_mut().for_each(|left| *left -= 1);
                }
            }
        }
    }
}
