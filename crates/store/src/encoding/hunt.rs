//! Migration plans of scavenger hunts as JSON documents.

use jiff::SignedDuration;
use leases::hunt::{Cost, Hunt, Move};
use leases::ids::{GuestId, HostId};
use serde::{Deserialize, Serialize};

use super::{Unreadable, from_hex, from_json, hex, json};

/// A new field needs a default, because older documents are still read.
#[derive(Serialize, Deserialize)]
struct Document {
    /// Guest in the format of [`hex`], source host, and target host.
    moves: Vec<(String, u64, u64)>,
    memory_mib: u64,
    disk_gib: u64,
    downtime_ms: u64,
    points: u64,
    allowance_s: i64,
}

pub fn hunt_json(hunt: &Hunt) -> String {
    let Cost { memory_mib, disk_gib, downtime_ms, points } = hunt.cost;
    let moves = hunt.moves.iter().map(|mov| (hex(mov.guest.0), mov.from.0, mov.to.0)).collect();
    let allowance_s = hunt.allowance.as_secs();
    json(&Document { moves, memory_mib, disk_gib, downtime_ms, points, allowance_s })
}

pub fn hunt_from_json(text: &str) -> Result<Hunt, Unreadable> {
    let document: Document = from_json("hunt", text)?;
    let Document { memory_mib, disk_gib, downtime_ms, points, .. } = document;
    let moves = document.moves.into_iter().map(|(guest, from, to)| {
        Ok(Move { guest: GuestId(from_hex(&guest)?), from: HostId(from), to: HostId(to) })
    });
    Ok(Hunt {
        moves: moves.collect::<Result<_, Unreadable>>()?,
        cost: Cost { memory_mib, disk_gib, downtime_ms, points },
        allowance: SignedDuration::from_secs(document.allowance_s),
    })
}
