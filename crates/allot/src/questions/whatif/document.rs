//! The answer as one JSON document.

use cluster::Cluster;
use placement::drain::{DrainStep, Plan, Stay};
use placement::whatif::{Added, Refusal, Room, Summary};
use serde::Serialize;

use super::rescue::Rescue;
use super::{Answer, offender};
use crate::questions::print::{self, MoveEntry, ShapeEntry};

#[derive(Serialize)]
pub(super) struct Document<'a> {
    question: &'static str,
    changes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rescue: Option<RescueEntry<'a>>,
    created: Vec<AddedEntry<'a>>,
    moves: Vec<MoveEntry<'a>>,
    before: SummaryEntry<'a>,
    after: SummaryEntry<'a>,
    score_changes: Vec<ComponentEntry>,
}

#[derive(Serialize)]
struct RescueEntry<'a> {
    restarted: Vec<MoveEntry<'a>>,
    lost: Vec<LostEntry<'a>>,
    /// Stopped instances that can move to other nodes.
    stopped_moved: Vec<MoveEntry<'a>>,
    /// Stopped instances that cannot be started until a node is back.
    stopped_lost: Vec<LostEntry<'a>>,
    mirrors_rebuilt: Vec<MoveEntry<'a>>,
    without_mirror: Vec<LostEntry<'a>>,
    /// Instances that don't exist yet, but are planned for the lost nodes.
    planned: Vec<&'a str>,
}

#[derive(Serialize)]
struct LostEntry<'a> {
    instance: &'a str,
    reason: String,
}

#[derive(Serialize)]
struct AddedEntry<'a> {
    wanted: usize,
    shape: ShapeEntry,
    placed: Vec<PlacedEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Serialize)]
struct PlacedEntry<'a> {
    instance: &'a str,
    nodes: Vec<&'a str>,
}

#[derive(Serialize)]
struct SummaryEntry<'a> {
    score: f64,
    online_nodes: usize,
    instances: usize,
    failing_n1: Vec<&'a str>,
    not_evacuable: Vec<&'a str>,
    free_memory_mib: i64,
    free_disk_mib: i64,
    free_vcpus: Option<i64>,
    room: Vec<RoomEntry>,
    violations: Vec<ViolationEntry<'a>>,
}

#[derive(Serialize)]
struct RoomEntry {
    shape: ShapeEntry,
    count: usize,
    /// Whether counting ended because no more fit, not because of the limit.
    exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Serialize)]
struct ViolationEntry<'a> {
    name: &'a str,
    rule: String,
}

#[derive(Serialize)]
struct ComponentEntry {
    component: &'static str,
    before: f64,
    after: f64,
    weighted: f64,
}

impl<'a> Document<'a> {
    pub(super) fn new(answer: &'a Answer<'a>) -> Self {
        let changes = htools::report::component_changes(&answer.now.values, &answer.then.values);
        let after = answer.after;
        Self {
            question: "whatif",
            changes: answer.described(),
            rescue: answer.enacted.rescue.as_ref().map(|plan| rescue(after, plan)),
            created: answer.enacted.added.iter().map(|a| added(after, a)).collect(),
            moves: answer.enacted.moves.iter().map(|s| MoveEntry::new(after, s)).collect(),
            before: summary(answer.before, &answer.now),
            after: summary(after, &answer.then),
            score_changes: changes
                .into_iter()
                .map(|(component, before, after, weighted)| ComponentEntry {
                    component,
                    before,
                    after,
                    weighted,
                })
                .collect(),
        }
    }
}

fn rescue<'a>(cluster: &'a Cluster, plan: &Plan) -> RescueEntry<'a> {
    let moves = |steps: &[&DrainStep]| steps.iter().map(|s| MoveEntry::new(cluster, &s.step)).collect();
    let stays = |stays: &[&Stay]| {
        let entry = |s: &&Stay| LostEntry {
            instance: &cluster.instance(s.instance).name,
            reason: s.obstacle.to_string(),
        };
        stays.iter().map(entry).collect()
    };
    let rescue = Rescue::new(cluster, plan);
    RescueEntry {
        restarted: moves(&rescue.restarts),
        lost: stays(&rescue.lost),
        stopped_moved: moves(&rescue.stopped_moves),
        stopped_lost: stays(&rescue.stopped_lost),
        mirrors_rebuilt: moves(&rescue.mirrors),
        without_mirror: stays(&rescue.bare),
        planned: rescue.planned.iter().map(|i| cluster.instance(*i).name.as_str()).collect(),
    }
}

fn words(cluster: &Cluster, refusal: Option<&Refusal>) -> Option<String> {
    refusal.map(|r| print::refusal(cluster, r, None))
}

fn added<'a>(cluster: &'a Cluster, added: &Added) -> AddedEntry<'a> {
    let placed = |p: &placement::capacity::Placement| PlacedEntry {
        instance: &cluster.instance(p.instance).name,
        nodes: print::node_names(cluster, (p.primary, p.secondary)),
    };
    AddedEntry {
        wanted: added.wanted,
        shape: ShapeEntry::new(&added.shape),
        placed: added.placed.iter().map(placed).collect(),
        refused: words(cluster, added.refused.as_ref()),
    }
}

fn summary<'a>(cluster: &'a Cluster, summary: &Summary) -> SummaryEntry<'a> {
    let room = |room: &Room| RoomEntry {
        shape: ShapeEntry::new(&room.shape),
        count: room.count,
        exact: room.refused.is_some(),
        refused: words(cluster, room.refused.as_ref()),
    };
    let health = print::HealthEntry::new(cluster, &summary.health);
    SummaryEntry {
        score: summary.values.score(),
        online_nodes: summary.online_nodes,
        instances: summary.instances,
        failing_n1: health.failing_n1,
        not_evacuable: health.not_evacuable,
        free_memory_mib: summary.free_memory_mib,
        free_disk_mib: summary.free_disk_mib,
        free_vcpus: summary.free_vcpus,
        room: summary.rooms.iter().map(room).collect(),
        violations: summary
            .violations
            .iter()
            .map(|(who, what)| ViolationEntry { name: offender(cluster, *who), rule: what.to_string() })
            .collect(),
    }
}
