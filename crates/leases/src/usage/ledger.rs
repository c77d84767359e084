//! All spans, as a store keeps them: the model of what entries mean.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::{Entries, Span};
use crate::ids::HostId;
use crate::window::Window;

/// When something was held on hosts, as far as it touches that time: each host and each window once, in order.
pub fn held_hosts(spans: &[Span], period: &Window) -> Vec<(HostId, Window)> {
    let touches = |span: &&Span| span.window.end() > period.start() && span.window.start() < period.end();
    let held = spans.iter().filter(touches).filter_map(|span| Some((span.host?, span.window)));
    let bounds: BTreeSet<_> = held.map(|(host, window)| (host, window.start(), window.end())).collect();
    let held = bounds
        .into_iter()
        .map(|(host, start, end)| (host, Window::starting(start, end.duration_since(start))));
    held.collect()
}

/// All spans.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    spans: Vec<Span>,
    /// Those that are open, by their keys.
    open: HashMap<String, usize>,
}

impl Ledger {
    /// All spans, in the order in which they were entered.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Enters what a change has brought: first spans change, then others are opened. A change of a span that there
    /// is not is passed over: it was forgotten, or is of a time before there were any. Nor is one opened that is open.
    pub fn enter(&mut self, entries: &Entries) {
        for change in &entries.changed {
            let Some(place) = self.open.get(&change.key) else { continue };
            if let Some(span) = self.spans.get_mut(*place) {
                let (start, end) = (span.window.start(), change.end_of(span.window));
                span.window = Window::starting(start, end.duration_since(start));
                span.open = !change.closes;
            }
            if change.closes {
                self.open.remove(&change.key);
            }
        }
        for span in &entries.opened {
            if span.open {
                let key = span.key();
                if self.open.contains_key(&key) {
                    continue;
                }
                self.open.insert(key, self.spans.len());
            }
            self.spans.push(span.clone());
        }
    }

    /// Forgets spans that are over and ended before that time.
    pub fn prune(&mut self, before: Timestamp) {
        self.spans.retain(|span| span.open || span.window.end() >= before);
        let spans = self.spans.iter().enumerate().filter(|(_, span)| span.open);
        self.open = spans.map(|(place, span)| (span.key(), place)).collect();
    }
}
