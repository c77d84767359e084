//! `allot lease plan` shows the migrations planned for a lease.

use serde::Deserialize;
use serde_json::Value;

use super::identify;
use crate::client::dates::length;
use crate::client::table::{Table, id, word};
use crate::client::wire::{PlanSummary, read};
use crate::client::{ClientError, Session};

/// Migration plan of a lease.
#[derive(Debug, Deserialize)]
struct Plan {
    #[serde(default)]
    summary: Option<PlanSummary>,
    #[serde(default)]
    moved: u64,
    #[serde(default)]
    gone: u64,
    #[serde(default)]
    moves: Option<Vec<Move>>,
}

#[derive(Debug, Deserialize)]
pub(in crate::client) struct Move {
    instance_id: String,
    from_host: String,
    to_host: String,
    state: String,
    #[serde(default)]
    percent: Option<u8>,
}

impl Move {
    /// State, with the progress in percent if known.
    fn state(&self) -> String {
        self.percent.map_or_else(|| self.state.clone(), |percent| format!("{} ({percent} %)", self.state))
    }
}

pub(super) async fn run(lease: &str, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = identify(lease, session).await?;
    let answer: Value = session.connection.get(&format!("/v1/leases/{id}/plan"), &[]).await?;
    if session.wants_document() {
        return session.print_json(&answer);
    }
    let plan: Plan = read(&answer, "plan")?;
    session.done(&progress(&plan))?;
    plan.moves.map_or(Ok(()), |moves| session.print_table(&table(moves)))
}

fn progress(plan: &Plan) -> String {
    let Some(summary) = &plan.summary else { return "No instances move for this lease.".to_owned() };
    let left = summary.instances_to_move.saturating_sub(plan.moved + plan.gone);
    let gone = if plan.gone == 0 { String::new() } else { format!(", {} already gone", plan.gone) };
    format!("{}\n{} moved{gone}, {left} to go", summary.text(), plan.moved)
}

pub(in crate::client) fn table(moves: Vec<Move>) -> Table {
    let mut table = Table::new([id("INSTANCE").key(), word("FROM").hide(1), word("TO"), word("STATE")]);
    for mov in moves {
        let state = mov.state();
        table.add_row([mov.instance_id, mov.from_host, mov.to_host, state]);
    }
    table
}

impl PlanSummary {
    /// Summarizes the plan in one line.
    pub(in crate::client) fn text(&self) -> String {
        let count = |number: u64, noun: &str| {
            let plural = if number == 1 { "" } else { "s" };
            format!("{number} {noun}{plural}")
        };
        let disk =
            if self.disk_gb == 0 { String::new() } else { format!(" and {} GiB of disk", self.disk_gb) };
        let seconds = i64::try_from(self.expected_seconds).unwrap_or(i64::MAX);
        format!(
            "{} to clear, {} to move: {} MiB of memory{disk} to copy, expected to take at most {}",
            count(self.hosts_to_clear, "host"),
            count(self.instances_to_move, "instance"),
            self.memory_mb,
            length(jiff::SignedDuration::from_secs(seconds)),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(moves: &Value) -> Plan {
        let plan = json!({
            "lease_id": "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753",
            "summary": {"hosts_to_clear": 1, "instances_to_move": 2, "memory_mb": 6144, "disk_gb": 20,
                        "downtime_ms": 600, "expected_seconds": 120},
            "moved": 1, "gone": 0, "moves": moves,
        });
        serde_json::from_value(plan).expect("a plan")
    }

    #[test]
    fn a_plan_is_shown_with_how_far_it_is() {
        let mov = |id: &str, state: &str, percent: Option<u8>| {
            json!({
                "instance_id": id, "from_host": "node1", "to_host": "node2", "state": state, "percent": percent,
            })
        };
        let moves = json!([mov("one", "moved", None), mov("two", "moving", Some(43))]);
        let plan = plan(&moves);
        let wanted = "\
1 host to clear, 2 instances to move: 6144 MiB of memory and 20 GiB of disk to copy, expected to take at most 2m
1 moved, 1 to go";
        assert_eq!(progress(&plan), wanted);
        let wanted = "\x20INSTANCE  FROM   TO     STATE
 one       node1  node2  moved
 two       node1  node2  moving (43 %)";
        assert_eq!(table(plan.moves.expect("moves")).in_pipe(), wanted);
    }
}
