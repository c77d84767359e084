//! Finds the single policy bound that prevents a placement.

use cluster::{Cluster, DiskTemplate, GroupIdx, ISpec, NodeIdx, Policy};

use super::crowd::Crowd;
use super::remedy::{Action, Bound, PolicyChange, Remedy};
use crate::capacity::Shape;

/// Changes to a single bound in a group's policy that make room, each as small as possible.
pub(super) fn remedies(crowd: &Crowd) -> Vec<Remedy> {
    crowd.groups().into_iter().flat_map(|group| of_group(crowd, group)).collect()
}

fn of_group(crowd: &Crowd, group: GroupIdx) -> Vec<Remedy> {
    let policy = &crowd.filled.group(group).policy;
    let exclusive = crowd.ground.iter().any(|n| {
        let node = crowd.filled.node(*n);
        node.group == group && node.exclusive_storage
    });
    if policy.check(&crowd.shape.instance(""), exclusive).is_err() {
        let change = size_bound(policy, group, &crowd.shape, exclusive);
        return change.and_then(|(change, policy)| adopt(crowd, change, policy)).into_iter().collect();
    }
    [Bound::VcpuRatio, Bound::SpindleRatio]
        .into_iter()
        .filter_map(|bound| ratio(crowd, group, bound))
        .collect()
}

fn adopt(crowd: &Crowd, change: PolicyChange, policy: Policy) -> Option<Remedy> {
    let mut changed = crowd.filled.clone();
    changed.groups[change.group.at()].policy = policy;
    crowd.remedy(Action::Policy(change), &changed)
}

/// Bound, the shape's value for it, and the policy field to compare with.
type Checked = (Bound, i64, fn(&mut ISpec) -> &mut i64);

/// Returns the only bound that rejects the shape, and the policy with that bound changed.
fn size_bound(
    policy: &Policy,
    group: GroupIdx,
    shape: &Shape,
    exclusive: bool,
) -> Option<(PolicyChange, Policy)> {
    let spindles = if exclusive { shape.spindles } else { shape.spindle_use };
    let mut figures: Vec<Checked> = vec![
        (Bound::Memory, shape.memory_mib, |s| &mut s.memory_size),
        (Bound::Disk, shape.disk_mib, |s| &mut s.disk_size),
        (Bound::Vcpus, shape.vcpus, |s| &mut s.cpu_count),
        (Bound::SpindleUse, spindles, |s| &mut s.spindle_use),
    ];
    if shape.template != DiskTemplate::Diskless {
        figures.push((Bound::Disks, 1, |s| &mut s.disk_count));
    }
    let allowed = policy.disk_templates.contains(&shape.template);
    let mut found = None;
    for position in 0..policy.minmax.len() {
        let mut changed = policy.clone();
        let pair = &mut changed.minmax[position];
        let mut broken = Vec::new();
        for (bound, wanted, field) in &figures {
            for (spec, violated) in [
                (&mut pair.min, (|wanted, limit| wanted < limit) as fn(i64, i64) -> bool),
                (&mut pair.max, |wanted, limit| wanted > limit),
            ] {
                let limit = field(spec);
                if violated(*wanted, *limit) {
                    broken.push((*bound, *limit, *wanted));
                    *limit = *wanted;
                }
            }
        }
        match (broken.as_slice(), allowed) {
            ([], _) => {
                found = None;
                break;
            }
            ([(bound, from, to)], true) if found.is_none() => {
                let (from, to) = (Some(*from as f64), Some(*to as f64));
                found = Some((PolicyChange { group, bound: *bound, from, to, template: None }, changed));
            }
            _ => {}
        }
    }
    if found.is_some() || allowed {
        return found;
    }
    let mut changed = policy.clone();
    changed.disk_templates.push(shape.template);
    let template = Some(shape.template);
    Some((PolicyChange { group, bound: Bound::Template, from: None, to: None, template }, changed))
}

/// Smallest ratio, rounded up to hundredths, with which one more instance fits.
fn ratio(crowd: &Crowd, group: GroupIdx, bound: Bound) -> Option<Remedy> {
    let policy = &crowd.filled.group(group).policy;
    let from = if bound == Bound::VcpuRatio { policy.vcpu_ratio } else { policy.spindle_ratio };
    let needed = |n: &NodeIdx| {
        let (node, figures) = (crowd.filled.node(*n), crowd.filled.figures(*n));
        let ratio = if bound == Bound::VcpuRatio {
            let used = figures.used_vcpus.max(figures.booked_used_vcpus) + crowd.shape.vcpus;
            used as f64 / node.total_cpus
        } else {
            let used = figures.instance_spindles.max(figures.booked_instance_spindles);
            (used + crowd.shape.spindle_use as f64) / node.total_spindles as f64
        };
        (ratio * 100.0).ceil() / 100.0
    };
    let of_group = crowd.ground.iter().filter(|n| crowd.filled.node(**n).group == group);
    let mut candidates: Vec<f64> = of_group.map(needed).filter(|r| r.is_finite() && *r > from).collect();
    candidates.sort_by(f64::total_cmp);
    candidates.dedup();
    let enough = |to: f64| crowd.room(&with_ratio(&crowd.filled, group, bound, to), 1) > 0;
    if !candidates.last().is_some_and(|largest| enough(*largest)) {
        return None;
    }
    // A larger ratio never makes fewer instances fit, so binary search works.
    let first = candidates.partition_point(|to| !enough(*to));
    let to = *candidates.get(first)?;
    let change = PolicyChange { group, bound, from: Some(from), to: Some(to), template: None };
    crowd.remedy(Action::Policy(change), &with_ratio(&crowd.filled, group, bound, to))
}

fn with_ratio(cluster: &Cluster, group: GroupIdx, bound: Bound, ratio: f64) -> Cluster {
    let mut changed = cluster.clone();
    let policy = &mut changed.groups[group.at()].policy;
    if bound == Bound::VcpuRatio {
        policy.vcpu_ratio = ratio;
    } else {
        policy.spindle_ratio = ratio;
    }
    for node in changed.nodes.iter_mut().filter(|n| n.group == group) {
        if bound == Bound::VcpuRatio {
            node.limit_vcpus(ratio);
        } else {
            node.max_spindles = ratio * node.total_spindles as f64;
        }
    }
    changed
}
