//! Operations in Ganeti's jobs, and their JSON (HT-jobs, HT-hsqueeze, HT-harep).

use cluster::{Cluster, Instance, Move, NodeIdx};

use crate::json::write::{text, texts};
use crate::number::show;

/// The allocator that Ganeti asks for new nodes of repaired instances.
const REPAIR_ALLOCATOR: &str = "hail";

/// An operation of a Ganeti job.
#[derive(Clone, Debug, PartialEq)]
pub enum OpCode {
    /// Migrate an instance live.
    Migrate {
        instance: String,
        /// `None` for the instance's secondary.
        target: Option<String>,
    },
    /// Restart an instance on another node.
    Failover {
        instance: String,
        /// `None` for the instance's secondary.
        target: Option<String>,
    },
    /// Give an instance a new secondary.
    ReplaceDisks { instance: String, secondary: NewSecondary },
    /// Recreate an instance's disks, empty, on nodes that the allocator chooses.
    RecreateDisks { instance: String },
    /// Reinstall an instance's operating system.
    Reinstall { instance: String },
    /// Wait on the master node.
    TestDelay { seconds: f64 },
    /// Add tags to an object.
    TagsSet { object: Tagged, tags: Vec<String> },
    /// Remove tags from an object.
    TagsDel { object: Tagged, tags: Vec<String> },
    /// Mark a node offline or online.
    NodeSetOffline { node: String, offline: bool },
    /// Power nodes on or off.
    NodePower { nodes: Vec<String>, on: bool },
}

/// The new secondary of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewSecondary {
    /// A node, by name.
    Node(String),
    /// A node that the allocator chooses.
    Allocated,
}

/// An object with tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// A node, by name.
    Node(String),
    /// An instance, by name.
    Instance(String),
}

/// Operations that carry out a move.
pub(crate) fn of_move(cluster: &Cluster, instance: &Instance, mov: Move) -> Vec<OpCode> {
    let node_name = |node: NodeIdx| cluster.node(node).name.clone();
    let over = |target: Option<NodeIdx>| {
        let (name, target) = (instance.name.clone(), target.map(node_name));
        // A forthcoming instance doesn't run, so it cannot migrate.
        if instance.forthcoming {
            OpCode::Failover { instance: name, target }
        } else {
            OpCode::Migrate { instance: name, target }
        }
    };
    let replace = |target: NodeIdx| OpCode::ReplaceDisks {
        instance: instance.name.clone(),
        secondary: NewSecondary::Node(node_name(target)),
    };
    match mov {
        Move::Failover => vec![over(None)],
        Move::FailoverTo(t) => vec![over(Some(t))],
        Move::ReplaceSecondary(t) => vec![replace(t)],
        Move::ReplaceAndFailover(t) => vec![replace(t), over(None)],
        Move::ReplacePrimary(t) => vec![over(None), replace(t), over(None)],
        Move::FailoverAndReplace(t) => vec![over(None), replace(t)],
    }
}

impl OpCode {
    /// Writes the operation as a JSON object.
    pub(crate) fn write(&self, out: &mut String) {
        out.push('{');
        self.write_members(out);
        out.push('}');
    }

    /// Writes the members of the JSON object, without its braces.
    pub(crate) fn write_members(&self, out: &mut String) {
        match self {
            Self::Migrate { instance, target } => {
                of_instance(out, "OP_INSTANCE_MIGRATE", instance);
                write_target(out, target.as_deref());
                out.push_str(concat!(
                    r#","allow_runtime_changes":false,"ignore_ipolicy":false,"cleanup":false"#,
                    r#","allow_failover":true,"ignore_hvversions":true"#
                ));
            }
            Self::Failover { instance, target } => {
                of_instance(out, "OP_INSTANCE_FAILOVER", instance);
                out.push_str(r#","shutdown_timeout":120,"ignore_consistency":false"#);
                write_target(out, target.as_deref());
                out.push_str(r#","ignore_ipolicy":false,"cleanup":false"#);
            }
            Self::ReplaceDisks { instance, secondary } => {
                of_instance(out, "OP_INSTANCE_REPLACE_DISKS", instance);
                out.push_str(concat!(
                    r#","early_release":false,"ignore_ipolicy":false"#,
                    r#","mode":"replace_new_secondary","disks":[]"#
                ));
                match secondary {
                    NewSecondary::Node(node) => {
                        out.push_str(r#","remote_node":"#);
                        text(out, node);
                    }
                    NewSecondary::Allocated => write_allocator(out),
                }
            }
            Self::RecreateDisks { instance } => {
                of_instance(out, "OP_INSTANCE_RECREATE_DISKS", instance);
                out.push_str(r#","disks":[],"nodes":[]"#);
                write_allocator(out);
            }
            Self::Reinstall { instance } => {
                of_instance(out, "OP_INSTANCE_REINSTALL", instance);
                out.push_str(r#","force_variant":false"#);
            }
            Self::TestDelay { seconds } => {
                open(out, "OP_TEST_DELAY", "duration");
                out.push_str(&duration(*seconds));
                out.push_str(concat!(
                    r#","on_master":true,"on_nodes":[],"repeat":0"#,
                    r#","interruptible":false,"no_locks":false"#
                ));
            }
            Self::TagsSet { object, tags } => write_tags(out, "OP_TAGS_SET", object, tags),
            Self::TagsDel { object, tags } => write_tags(out, "OP_TAGS_DEL", object, tags),
            Self::NodeSetOffline { node, offline } => {
                open(out, "OP_NODE_SET_PARAMS", "node_name");
                text(out, node);
                out.push_str(r#","force":false,"offline":"#);
                out.push_str(if *offline { "true" } else { "false" });
                out.push_str(r#","auto_promote":false"#);
            }
            Self::NodePower { nodes, on } => {
                open(out, "OP_OOB_COMMAND", "node_names");
                texts(out, nodes);
                out.push_str(r#","command":"#);
                text(out, if *on { "power-on" } else { "power-off" });
                out.push_str(r#","timeout":60,"ignore_status":false,"power_delay":2"#);
            }
        }
    }
}

/// Writes the operation's name and the key of the first parameter.
fn open(out: &mut String, operation: &str, key: &str) {
    out.push_str(r#""OP_ID":"#);
    text(out, operation);
    out.push(',');
    text(out, key);
    out.push(':');
}

fn of_instance(out: &mut String, operation: &str, instance: &str) {
    open(out, operation, "instance_name");
    text(out, instance);
}

fn write_target(out: &mut String, target: Option<&str>) {
    if let Some(target) = target {
        out.push_str(r#","target_node":"#);
        text(out, target);
    }
}

fn write_allocator(out: &mut String) {
    out.push_str(r#","iallocator":"#);
    text(out, REPAIR_ALLOCATOR);
}

fn write_tags(out: &mut String, operation: &str, object: &Tagged, tags: &[String]) {
    let (kind, name) = match object {
        Tagged::Node(name) => ("node", name),
        Tagged::Instance(name) => ("instance", name),
    };
    open(out, operation, "kind");
    text(out, kind);
    out.push_str(r#","tags":"#);
    texts(out, tags);
    out.push_str(r#","name":"#);
    text(out, name);
}

/// Seconds as JSON; whole seconds without decimals.
fn duration(seconds: f64) -> String {
    // JSON has no infinity, so it becomes the largest finite number.
    let seconds = seconds.min(f64::MAX);
    if seconds.fract() == 0.0 { format!("{seconds:.0}") } else { show(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(op: &OpCode) -> String {
        let mut out = String::new();
        op.write(&mut out);
        out
    }

    #[test]
    fn durations_have_decimals_only_where_they_need_them() {
        let delay = |seconds| json(&OpCode::TestDelay { seconds });
        for (seconds, shown) in [(10.0, "10"), (2.5, "2.5"), (0.01, "1.0e-2"), (1e9, "1000000000")] {
            assert!(delay(seconds).starts_with(&format!(r#"{{"OP_ID":"OP_TEST_DELAY","duration":{shown},"#)));
        }
        assert!(!delay(f64::INFINITY).contains("inf"));
    }

    #[test]
    fn a_repair_leaves_the_choice_of_nodes_to_the_allocator() {
        let op = OpCode::ReplaceDisks { instance: "i".to_owned(), secondary: NewSecondary::Allocated };
        assert!(json(&op).ends_with(r#""disks":[],"iallocator":"hail"}"#));
        let op = OpCode::RecreateDisks { instance: "i".to_owned() };
        assert!(json(&op).ends_with(r#""disks":[],"nodes":[],"iallocator":"hail"}"#));
    }
}
