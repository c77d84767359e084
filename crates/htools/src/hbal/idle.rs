//! Explanations for a run without moves (`--explain`).

use cluster::{Cluster, DiskTemplate, MirrorClass, PINNED};
use placement::explain::words;
use placement::idle::{Best, Idle};

use crate::commands;
use crate::number::fixed;
use crate::options::Options;

/// Reasons, one sentence each.
pub(super) fn reasons(cluster: &Cluster, idle: &Idle, options: &Options) -> Vec<String> {
    let mut reasons: Vec<String> =
        idle.not_mirrored.iter().map(|(template, count)| not_mirrored(*template, *count)).collect();
    let mut add = |count: usize, why: &str| {
        if count > 0 {
            reasons.push(format!("{} {why}", instances(count)));
        }
    };
    add(idle.without_secondary, "cannot be moved: no secondary node (give them one)");
    add(
        idle.pinned,
        &format!("may not be moved: pinned by the tag {PINNED} (gnt-instance remove-tags takes it away)"),
    );
    add(
        idle.left_out,
        "may not be moved: auto_balance is off (gnt-instance modify -B auto_balance=true), or options leave them out",
    );
    add(idle.without_moves, "cannot be moved: the options, or a lack of online nodes, leave no move to try");
    if idle.refused.total() > 0 {
        reasons.push(refused(cluster, idle));
    }
    reasons.extend(idle.best.map(|best| gain(cluster, best, options)));
    if idle.is_optimal {
        let least = options.min_score;
        reasons.push(format!("the score is not more than --min-score {least} above the best possible"));
    }
    if idle.is_limited {
        reasons.push("--max-length=0 allows no move".to_owned());
    }
    reasons
}

fn instances(count: usize) -> String {
    if count == 1 { "1 instance".to_owned() } else { format!("{count} instances") }
}

fn not_mirrored(template: DiskTemplate, count: usize) -> String {
    format!("{} cannot be moved: {}", instances(count), of_template(template))
}

/// Explains why balancing never moves instances of a disk template.
pub(super) fn of_template(template: DiskTemplate) -> String {
    let name = template.name();
    match template.mirror() {
        MirrorClass::None => {
            format!("{name} disks are on one node only (gnt-instance modify -t drbd makes a mirror)")
        }
        _ => format!("{name} instances never are"),
    }
}

fn refused(cluster: &Cluster, idle: &Idle) -> String {
    let each: Vec<String> =
        idle.refused.reasons().map(|(mode, count)| format!("{} ({count})", words(mode))).collect();
    let total = idle.refused.total();
    let moves = if total == 1 { "1 move is".to_owned() } else { format!("{total} moves are") };
    let least = idle.least_short.map(|(short, node, instance)| {
        let node = cluster.alias(&cluster.node(node).name);
        let instance = cluster.alias(&cluster.instance(instance).name);
        format!("; {node} lacks least: {short} MiB of memory for {instance}")
    });
    format!("{moves} refused: {}{}", each.join(", "), least.unwrap_or_default())
}

fn gain(cluster: &Cluster, best: Best, options: &Options) -> String {
    let name = cluster.alias(&cluster.instance(best.instance).name);
    let action = commands::action(cluster, best.mov);
    if best.gain > 0.0 {
        let gain = fixed(best.gain, 8);
        let less = if best.gains_enough {
            String::new()
        } else {
            format!(", less than --min-gain {}", options.min_gain)
        };
        format!("the best move ({name}: {action}) would gain {gain}{less}")
    } else {
        let loss = fixed(-best.gain, 8);
        format!("no possible move makes the score less; the best ({name}: {action}) would add {loss}")
    }
}
