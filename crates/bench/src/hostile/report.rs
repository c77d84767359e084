//! Measurements of an attack and their limits.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::Answers;
use super::cost::PerRequest;
use super::load::{Others, Waits};

/// Maximum latency of ordinary users, and maximum delay of a lease's start.
pub const WAIT: Duration = Duration::from_millis(500);
/// Number of columns in the table, and how many of these are latencies.
const IN_TABLE: usize = 8;
const USUAL: usize = 5;
/// Maximum growth of memory, in bytes.
const MEMORY: f64 = 200e6;
/// Limits of the bytes that a request stores and writes: per lease, per allocated host, instance or address, and per
/// byte of its body.
const KEPT: [f64; 3] = [16.0 * 1024.0, 1024.0, 4.0];
const WRITTEN: [f64; 3] = [64.0 * 1024.0, 8.0 * 1024.0, 4.0];

/// Measurements of an attack.
#[derive(Debug, Default)]
pub struct Row {
    pub fleet: String,
    pub name: String,
    /// Reason why no input was accepted, or why the cost could not be measured.
    pub refusal: Option<String>,
    /// Fraction of the maximum list length that the service accepted.
    pub scale: f64,
    pub others: Others,
    pub answers: Answers,
    /// Growth of resident memory, in bytes.
    pub memory: f64,
    /// `None` for requests that change nothing.
    pub cost: Option<PerRequest>,
    pub allocations: f64,
    /// Number of times that each lease changes.
    pub changes: f64,
}

/// A measurement: its name, its text in the table, its JSON value and, if it exceeds its limit, a description.
struct Figure {
    name: &'static str,
    shown: String,
    value: Value,
    exceeds: Option<String>,
}

impl Row {
    pub fn heading() -> String {
        format!(
            "{:<36}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>8}{:>8}\n{:<36}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>8}{:>8}",
            "worst latency in seconds",
            "create",
            "calend.",
            "dry run",
            "readyz",
            "start",
            "memory",
            "kept",
            "written",
            "! exceeds its limit",
            "",
            "",
            "",
            "",
            "",
            "MB",
            "KiB",
            "KiB",
        )
    }

    pub fn line(&self) -> String {
        let name: String = self.name.chars().take(35).collect();
        let figure = |figure: &Figure| {
            let width = if figure.name == "memory" { 6 } else { 7 };
            let mark = if figure.exceeds.is_some() { '!' } else { ' ' };
            format!("{:>width$}{mark}", figure.shown)
        };
        let figures: String = self.figures().iter().take(IN_TABLE).map(figure).collect();
        format!("{name:<36}{figures}").trim_end().to_owned()
    }

    /// Describes the measurements that exceed their limits, one per line.
    pub fn exceeded(&self) -> Vec<String> {
        let figures = self.figures().into_iter();
        let figures = figures.filter_map(|figure| Some(format!("{}: {}", figure.name, figure.exceeds?)));
        let all = figures.chain(self.refusals()).chain(self.refusal.clone());
        all.map(|text| format!("{}, {}: {text}", self.fleet, self.name)).collect()
    }

    fn waits(&self) -> impl Iterator<Item = (&'static str, &Waits, Duration)> {
        let Others { creation, calendar, dry_run, readyz, start, more } = &self.others;
        let usual = [
            ("creation", creation),
            ("calendar", calendar),
            ("dry run", dry_run),
            ("readyz", readyz),
            ("due start", start),
        ];
        let more = more.iter().map(|(name, wanted, waits)| (*name, waits, *wanted));
        usual.into_iter().map(|(name, waits)| (name, waits, WAIT)).chain(more)
    }

    fn refusals(&self) -> impl Iterator<Item = String> {
        self.waits().filter_map(|(name, waits, _)| {
            let first = waits.refused.first()?;
            Some(format!("{name}: {} requests of ordinary users failed: {first}", waits.refused.len()))
        })
    }

    fn figures(&self) -> Vec<Figure> {
        let wait = |(name, waits, wanted): (&'static str, &Waits, Duration)| {
            let worst = waits.worst();
            let late = worst.filter(|worst| *worst > wanted);
            Figure {
                name,
                shown: worst.map_or("-".to_owned(), |worst| format!("{:.2}", worst.as_secs_f64())),
                value: json!({"worst_s": worst.map(|worst| worst.as_secs_f64()), "count": waits.times.len(),
                              "failed": waits.refused.len()}),
                exceeds: late
                    .map(|late| format!("{:.2} s, wanted {}", late.as_secs_f64(), wanted.as_secs_f64())),
            }
        };
        let mut figures: Vec<Figure> = self.waits().map(wait).collect();
        let more = figures.split_off(USUAL);
        figures.push(Figure {
            name: "memory",
            shown: format!("{:.0}", self.memory / 1e6),
            value: json!({"growth_bytes": self.memory}),
            exceeds: (self.memory > MEMORY).then(|| format!("{:.0} MB, wanted 200", self.memory / 1e6)),
        });
        let bytes = |name, value: fn(&PerRequest) -> f64, limits: [f64; 3]| {
            let value = self.cost.as_ref().map(value);
            let allowed = self.cost.as_ref().map_or(0.0, |cost| self.allowed(cost, limits));
            let much = value.filter(|value| *value > allowed);
            Figure {
                name,
                shown: value.map_or("-".to_owned(), |value| format!("{:.0}", value / 1024.0)),
                value: json!({"bytes": value, "allowed": self.cost.map(|_| allowed)}),
                exceeds: much.map(|much| {
                    format!("{:.0} KiB a request, wanted {:.0}", much / 1024.0, allowed / 1024.0)
                }),
            }
        };
        figures.push(bytes("kept", |cost| cost.bytes.kept, KEPT));
        figures.push(bytes("written", |cost| cost.bytes.written, WRITTEN));
        figures.extend(more);
        figures
    }

    /// A request without leases has the budget of a single lease.
    fn allowed(&self, cost: &PerRequest, [lease, allocation, body]: [f64; 3]) -> f64 {
        let leases = cost.bytes.leases.max(1.0);
        leases * self.changes * (lease + allocation * self.allocations) + body * cost.body
    }

    pub fn json(&self) -> Value {
        let figures = self.figures().into_iter().map(|figure| (figure.name.replace(' ', "_"), figure.value));
        json!({
            "fleet": self.fleet,
            "attacker": self.name,
            "figures": figures.collect::<serde_json::Map<_, _>>(),
            "requests_measured": self.cost.map(|cost| cost.requests),
            "body_bytes": self.cost.map(|cost| cost.body),
            "share_of_largest": self.scale,
            "answers": self.answers,
            "exceeded": self.exceeded(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::cost::Bytes;

    #[test]
    fn figures_beyond_what_is_wanted_are_marked_and_listed() {
        let waits = |milliseconds: &[u64]| Waits {
            times: milliseconds.iter().map(|&time| Duration::from_millis(time)).collect(),
            refused: Vec::new(),
        };
        let bytes = Bytes { kept: 20.0 * 1024.0, written: 70.0 * 1024.0, leases: 0.0 };
        let mut row = Row {
            fleet: "6 hosts".to_owned(),
            name: "POST /v1/leases".to_owned(),
            memory: 1e6,
            allocations: 1.0,
            changes: 1.0,
            cost: Some(PerRequest { requests: 100, body: 10.0, bytes }),
            ..Row::default()
        };
        row.others.creation = waits(&[3, 700, 2]);
        row.others.calendar = waits(&[499]);
        let line = row.line();
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        assert_eq!(words, ["0.70!", "0.50", "-", "-", "-", "1", "20!", "70"]);
        assert!(Row::heading().lines().all(|line| line.len() <= 100) && row.line().len() <= 100);
        let exceeded = row.exceeded();
        assert_eq!(exceeded[0], "6 hosts, POST /v1/leases: creation: 0.70 s, wanted 0.5");
        assert_eq!(exceeded[1], "6 hosts, POST /v1/leases: kept: 20 KiB a request, wanted 17");
        assert_eq!(exceeded.len(), 2);
        row.others.readyz.refused.push("503".to_owned());
        assert_eq!(row.exceeded().len(), 3);
    }
}
