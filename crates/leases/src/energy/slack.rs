//! How many hosts of a pool are free and not needed, over time.

use jiff::Timestamp;

use crate::window::Window;

/// A step function of time: so many from an instant to the next, and the last up to the end.
#[derive(Clone, Debug)]
pub(super) struct Slack {
    steps: Vec<(Timestamp, i64)>,
    end: Timestamp,
}

impl Slack {
    /// How many are left of `reserve` fewer than there are windows, at each instant of `within`.
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
        Self { steps, end: within.end() }
    }

    fn first_after(&self, at: Timestamp) -> usize {
        self.steps.partition_point(|(step, _)| *step <= at)
    }

    /// The parts of the window in which there is some.
    pub fn pieces(&self, window: &Window) -> Vec<Window> {
        let mut pieces: Vec<Window> = Vec::new();
        if window.is_empty() {
            return pieces;
        }
        for index in self.first_after(window.start()).saturating_sub(1)..self.steps.len() {
            let (from, value) = self.steps[index];
            if from >= window.end() {
                break;
            }
            let until = self.steps.get(index + 1).map_or(self.end, |(next, _)| *next);
            let (from, until) = (from.max(window.start()), until.min(window.end()));
            if value <= 0 || from >= until {
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

    /// One fewer in that window, whose ends are steps.
    pub fn take(&mut self, window: &Window) {
        let first = self.first_after(window.start()).saturating_sub(1);
        let inside = self.steps[first..].iter_mut().take_while(|(at, _)| *at < window.end());
        inside.for_each(|(_, value)| *value -= 1);
    }
}
