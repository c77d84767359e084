//! Contents of a calendar chart, independent of how it is drawn.

use jiff::Timestamp;

/// A chart with one row per host and time from left to right.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub from: Timestamp,
    pub to: Timestamp,
    pub now: Timestamp,
    pub rows: Vec<Row>,
}

/// A host with its bars.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub name: String,
    /// Value of the grouping property, empty if the host has none. `None` if rows aren't grouped.
    pub group: Option<String>,
    pub state: State,
    pub bars: Vec<Bar>,
}

/// Whether a host accepts new leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fine,
    /// The host has failed, is closed or in maintenance.
    Failed,
}

/// A lease, held offer or maintenance window on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// Lease identifier, or empty if the user isn't allowed to see the lease.
    pub lease: String,
    pub name: String,
    pub project: String,
    pub status: String,
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Chart {
    /// Whether any part of the bar is within the chart.
    pub(super) fn shows(&self, bar: &Bar) -> bool {
        bar.start < self.to && self.from < bar.end
    }

    /// Leases in the chart that the user is allowed to see, one bar each, ordered by start.
    pub(super) fn leases(&self) -> Vec<&Bar> {
        let mut bars: Vec<&Bar> =
            self.rows.iter().flat_map(|row| &row.bars).filter(|bar| self.shows(bar)).collect();
        bars.sort_by(|a, b| (a.start, &a.name, &a.lease).cmp(&(b.start, &b.name, &b.lease)));
        let mut seen = std::collections::BTreeSet::new();
        bars.retain(|bar| !bar.lease.is_empty() && seen.insert(&bar.lease));
        bars
    }

    /// Packs the bars of a row into as few lanes as possible without overlaps. A host can have capacity for
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
