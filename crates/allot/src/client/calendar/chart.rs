//! What is drawn, before it is known how.

use jiff::Timestamp;

/// A chart: hosts one below the other, time from left to right.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub from: Timestamp,
    pub to: Timestamp,
    pub now: Timestamp,
    pub rows: Vec<Row>,
}

/// A host.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub name: String,
    /// The value that it shares with its neighbours, if rows are grouped.
    pub group: Option<String>,
    pub state: State,
    pub bars: Vec<Bar>,
}

/// Whether a host takes new leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fine,
    /// It has failed, is closed or in maintenance.
    Failed,
}

/// A lease on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// The lease's identifier; empty if the user may not know the lease.
    pub lease: String,
    /// Its name.
    pub name: String,
    pub project: String,
    pub status: String,
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Chart {
    /// Whether any of a bar is within the chart.
    pub(super) fn shows(&self, bar: &Bar) -> bool {
        bar.start < self.to && self.from < bar.end
    }

    /// The leases in the chart that the user may know, one bar for each, in the order in which they begin.
    pub(super) fn leases(&self) -> Vec<&Bar> {
        let mut bars: Vec<&Bar> =
            self.rows.iter().flat_map(|row| &row.bars).filter(|bar| self.shows(bar)).collect();
        bars.sort_by(|a, b| (a.start, &a.name, &a.lease).cmp(&(b.start, &b.name, &b.lease)));
        let mut seen = std::collections::BTreeSet::new();
        bars.retain(|bar| !bar.lease.is_empty() && seen.insert(&bar.lease));
        bars
    }

    /// The bars of a row in as few lines as can be, such that none covers another: a host can have room for
    /// several leases at once.
    pub(super) fn lanes<'a>(&self, row: &'a Row) -> Vec<Vec<&'a Bar>> {
        let mut bars: Vec<&Bar> = row.bars.iter().filter(|bar| self.shows(bar)).collect();
        bars.sort_by(|a, b| (a.start, a.end, &a.lease).cmp(&(b.start, b.end, &b.lease)));
        bars.dedup_by(|a, b| a == b);
        let mut lanes: Vec<Vec<&Bar>> = vec![Vec::new()];
        for bar in bars {
            let free = |lane: &&mut Vec<&Bar>| lane.last().is_none_or(|last| last.end <= bar.start);
            match lanes.iter_mut().find(free) {
                Some(lane) => lane.push(bar),
                None => lanes.push(vec![bar]),
            }
        }
        lanes
    }
}
