//! All spans, in memory: the reference model for the meaning of entries in a store.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::{Entries, Span};
use crate::ids::HostId;
use crate::window::Window;

/// Windows in which hosts were held, if they touch the period. Each pair of host and window occurs once, in
/// order.
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
    /// Positions of open spans by key.
    open: HashMap<String, usize>,
}

impl Ledger {
    /// All spans, in order of entry.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Applies the entries of a change: first changes to spans, then new spans. A change to an unknown span
    /// is ignored: the span was pruned, or predates accounting. A span with the key of an open one is
    /// ignored, too.
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

    /// Drops closed spans that ended before this time.
    pub fn prune(&mut self, before: Timestamp) {
        self.spans.retain(|span| span.open || span.window.end() >= before);
        let spans = self.spans.iter().enumerate().filter(|(_, span)| span.open);
        self.open = spans.map(|(place, span)| (span.key(), place)).collect();
    }
}
