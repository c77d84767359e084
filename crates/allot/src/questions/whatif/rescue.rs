//! Instances and mirrors of lost nodes, grouped by outcome.

use cluster::{Cluster, InstanceIdx, Move};
use htools::io::Io;
use placement::drain::{DrainStep, Obstacle, Plan, Role, Stay};

use crate::questions::drain::UNPIN;
use crate::questions::{QuestionError, print};

/// Steps and stays of a plan. Stopped instances are separate, because they don't add to the downtime.
pub(super) struct Rescue<'a> {
    /// Starts of running instances on other nodes.
    pub restarts: Vec<&'a DrainStep>,
    /// Running instances that are down until a node is back.
    pub lost: Vec<&'a Stay>,
    /// Moves of stopped instances to other nodes.
    pub stopped_moves: Vec<&'a DrainStep>,
    /// Stopped instances that cannot be started until a node is back.
    pub stopped_lost: Vec<&'a Stay>,
    /// New mirrors.
    pub mirrors: Vec<&'a DrainStep>,
    /// Instances that stay without a mirror.
    pub bare: Vec<&'a Stay>,
    /// Forthcoming instances that need other nodes.
    pub planned: &'a [InstanceIdx],
}

/// Whether only its pin keeps an instance from being started elsewhere.
fn is_down_by_pin(cluster: &Cluster, stay: &Stay) -> bool {
    let mirror = cluster.instance(stay.instance).secondary;
    stay.obstacle == Obstacle::Pinned
        && !cluster.unreadable(stay.instance)
        && mirror.is_none_or(|mirror| cluster.node(mirror).online())
}

impl<'a> Rescue<'a> {
    pub(super) fn new(cluster: &Cluster, plan: &'a Plan) -> Self {
        let runs = |index: InstanceIdx| cluster.instance(index).uses_memory();
        let (mirrors, moves): (Vec<_>, Vec<_>) =
            plan.steps.iter().partition(|s| matches!(s.step.mov, Move::ReplaceSecondary(_)));
        let (primaries, bare): (Vec<_>, Vec<_>) = plan.stays.iter().partition(|s| s.role == Role::Primary);
        let (restarts, stopped_moves) = moves.into_iter().partition(|s| runs(s.step.instance));
        let (lost, stopped_lost) = primaries.into_iter().partition(|s| runs(s.instance));
        Self { restarts, lost, stopped_moves, stopped_lost, mirrors, bare, planned: &plan.planned }
    }

    /// `is_balanced` tells whether balancing moves an instance afterwards.
    pub(super) fn print(
        &self,
        cluster: &Cluster,
        is_balanced: impl Fn(InstanceIdx) -> bool,
        io: &mut Io<'_>,
    ) -> Result<(), QuestionError> {
        let alias = |i: InstanceIdx| cluster.alias(&cluster.instance(i).name);
        let end = if self.restarts.is_empty() { '.' } else { ':' };
        let restarts = print::count(self.restarts.len(), "instance");
        writeln!(io.out, "\n{restarts} can be started elsewhere{end}")?;
        for step in &self.restarts {
            let how = if step.step.mov == Move::Failover { "its mirror" } else { "shared storage" };
            let node = cluster.alias(&cluster.node(step.step.to.0).name);
            writeln!(io.out, "  {} on {node} ({how})", alias(step.step.instance))?;
        }
        let (pinned, lost): (Vec<&Stay>, Vec<&Stay>) =
            self.lost.iter().copied().partition(|stay| is_down_by_pin(cluster, stay));
        if !pinned.is_empty() {
            let stay = if pinned.len() == 1 { "stays" } else { "stay" };
            writeln!(io.out, "{} {stay} down because of a pin:", print::count(pinned.len(), "instance"))?;
            for stay in pinned {
                writeln!(io.out, "  {}: {} ({UNPIN})", alias(stay.instance), stay.obstacle)?;
            }
        }
        if !lost.is_empty() {
            let count = print::count(lost.len(), "instance");
            writeln!(io.out, "{count} will not run again until a node is back:")?;
            for stay in lost {
                writeln!(io.out, "  {}: {}", alias(stay.instance), stay.obstacle)?;
            }
        }
        self.print_stopped(cluster, io)?;
        if !self.planned.is_empty() {
            let count = print::count(self.planned.len(), "planned instance");
            let names = print::instance_names(cluster, self.planned);
            let need = if self.planned.len() == 1 { "needs" } else { "need" };
            writeln!(io.out, "{count} {need} other nodes: {names}.")?;
        }
        writeln!(
            io.out,
            "{} can be built again on other nodes.",
            print::count(self.mirrors.len(), "mirror")
        )?;
        if !self.bare.is_empty() {
            let stay = if self.bare.len() == 1 { "stays" } else { "stay" };
            writeln!(io.out, "{} {stay} without a mirror:", print::count(self.bare.len(), "instance"))?;
            for stay in &self.bare {
                let later = if is_balanced(stay.instance) { ", until the groups are balanced" } else { "" };
                writeln!(io.out, "  {}: {}{later}", alias(stay.instance), stay.obstacle)?;
            }
        }
        Ok(())
    }

    fn print_stopped(&self, cluster: &Cluster, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let moved: Vec<InstanceIdx> = self.stopped_moves.iter().map(|s| s.step.instance).collect();
        let lost: Vec<InstanceIdx> = self.stopped_lost.iter().map(|s| s.instance).collect();
        for (instances, what) in
            [(moved, "can move to other nodes"), (lost, "cannot be started until a node is back")]
        {
            if !instances.is_empty() {
                let count = print::count(instances.len(), "stopped instance");
                let names = print::instance_names(cluster, &instances);
                writeln!(io.out, "{count} {what}: {names}.")?;
            }
        }
        Ok(())
    }
}
