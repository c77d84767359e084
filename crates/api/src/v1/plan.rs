//! Migration plans, by which a lease gets hosts with other tenants' instances. Not in Blazar.

use leases::hunt::{Hunt, MoveState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Summary of a lease's migration plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanSummary {
    /// Number of hosts to clear.
    pub hosts_to_clear: u64,
    /// Number of instances to move to other hosts.
    pub instances_to_move: u64,
    /// Memory to copy, in MiB.
    pub memory_mb: u64,
    /// Disk to copy, in GiB.
    pub disk_gb: u64,
    /// Downtime of all instances together, in milliseconds.
    pub downtime_ms: u64,
    /// Time reserved for the moves, in seconds. If they take longer, the lease is shorter by the difference.
    pub expected_seconds: u64,
}

impl From<&Hunt> for PlanSummary {
    fn from(hunt: &Hunt) -> Self {
        Self {
            hosts_to_clear: hunt.cleared().len() as u64,
            instances_to_move: hunt.moves.len() as u64,
            memory_mb: hunt.cost.memory_mib,
            disk_gb: hunt.cost.disk_gib,
            downtime_ms: hunt.cost.downtime_ms,
            expected_seconds: hunt.allowance.as_secs().unsigned_abs(),
        }
    }
}

/// Migration plan of a lease, and its progress.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Identifier of the lease.
    pub lease_id: String,
    /// Summary of the plan; null if no instance is moved for the lease.
    pub summary: Option<PlanSummary>,
    /// Number of instances that have moved.
    pub moved: u64,
    /// Number of instances that are on neither their old nor their planned host.
    pub gone: u64,
    /// Moves, in order. Null for callers who can't see hosts, since the instances belong to other projects.
    pub moves: Option<Vec<PlannedMove>>,
}

/// Move of an instance.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedMove {
    /// Identifier of the instance.
    pub instance_id: String,
    /// Name of the old host.
    pub from_host: String,
    /// Name of the new host.
    pub to_host: String,
    /// State of the move: `waiting`, `moving`, `failing`, `moved`, or `gone`.
    pub state: String,
    /// Progress of a move in state `moving`, in percent; null if unknown.
    pub percent: Option<u8>,
}

impl PlannedMove {
    /// The name of that state.
    pub fn state_name(state: MoveState) -> &'static str {
        match state {
            MoveState::Waiting => "waiting",
            MoveState::Moving { .. } => "moving",
            MoveState::Failing => "failing",
            MoveState::Moved => "moved",
            MoveState::Gone => "gone",
        }
    }
}
