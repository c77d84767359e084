//! Migration plans, by which a lease gets hosts with other tenants' instances. Not in Blazar.

use leases::hunt::{Hunt, MoveState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is planned for a lease, in short.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanSummary {
    /// Hosts to clear.
    pub hosts_to_clear: u64,
    /// Instances to move to other hosts.
    pub instances_to_move: u64,
    /// Memory to copy, MiB.
    pub memory_mb: u64,
    /// Disk to copy, GiB.
    pub disk_gb: u64,
    /// How long all of them together stand still, milliseconds.
    pub downtime_ms: u64,
    /// How long it may take, seconds. The lease lasts that much less if it takes longer.
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

/// What is planned for a lease, and how far it is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The lease.
    pub lease_id: String,
    /// In short; null if nobody is moved for it.
    pub summary: Option<PlanSummary>,
    /// Instances that have moved.
    pub moved: u64,
    /// Instances that are neither where they were nor where they were to go.
    pub gone: u64,
    /// The moves in their order; null to callers who may not see hosts, since the instances belong to others.
    pub moves: Option<Vec<PlannedMove>>,
}

/// A move.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedMove {
    /// The instance.
    pub instance_id: String,
    /// The host that it is moved from.
    pub from_host: String,
    /// The host that it is moved to.
    pub to_host: String,
    /// `waiting`, `moving`, `failing`, `moved`, or `gone`.
    pub state: String,
    /// Of one that is moving, how much is on the other host already, percent; null if the cloud does not say.
    pub percent: Option<u8>,
}

impl PlannedMove {
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
