//! The answer: one line of JSON whose keys have a fixed order.

use std::fmt::Write;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Whether the request could be met.
    pub success: bool,
    /// What to tell the user.
    pub info: String,
    /// What to do.
    pub result: ResultValue,
}

/// The result of a request that could be met.
pub fn success(detail: &str, result: ResultValue) -> Response {
    Response { success: true, info: format!("Request successful: {detail}"), result }
}

/// The answer to a request that could not be met; its result is always empty.
pub fn failure(detail: &str) -> Response {
    Response { success: false, info: format!("Request failed: {detail}"), result: ResultValue::Empty }
}

/// What to do, by type of request. All names are full names.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultValue {
    /// Nothing: the empty list.
    Empty,
    /// The nodes to use, primary first (allocate, relocate).
    Nodes(Vec<String>),
    /// The node to use (allocate-secondary).
    Node(String),
    /// Moves (node-evacuate, change-group).
    Evacuation(Evacuation),
    /// Nodes for each new instance (multi-allocate).
    MultiAllocate {
        /// Instances and their nodes.
        allocated: Vec<(String, Vec<String>)>,
        /// Instances and why there is no room for them.
        failed: Vec<(String, String)>,
    },
    /// Instances and their new secondaries (multi-evacuate).
    NewSecondaries(Vec<(String, String)>),
}

/// The moves that an evacuation needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evacuation {
    /// Where instances are to be.
    pub moved: Vec<Moved>,
    /// Instances that stay, and why.
    pub failed: Vec<(String, String)>,
    /// How to get there: for each moved instance the operations, in order.
    pub jobs: Vec<Vec<OpCode>>,
}

/// Where an instance is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The instance.
    pub instance: String,
    /// The name of its new group.
    pub group: String,
    /// Its new nodes, primary first.
    pub nodes: Vec<String>,
}

/// An operation of Ganeti.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpCode {
    /// Move an instance live.
    Migrate {
        /// The instance.
        instance: String,
        /// Where to; its secondary if not given.
        target: Option<String>,
    },
    /// Restart an instance elsewhere.
    Failover {
        /// The instance.
        instance: String,
        /// Where to; its secondary if not given.
        target: Option<String>,
    },
    /// Give an instance a new secondary.
    ReplaceDisks {
        /// The instance.
        instance: String,
        /// The new secondary.
        remote_node: String,
    },
}

impl OpCode {
    fn write(&self, out: &mut String) {
        match self {
            Self::Migrate { instance, target } => {
                open(out, "OP_INSTANCE_MIGRATE", instance);
                write_target(out, target.as_deref());
                out.push_str(
                    r#","allow_runtime_changes":false,"ignore_ipolicy":false,"cleanup":false,"allow_failover":true,"ignore_hvversions":true}"#,
                );
            }
            Self::Failover { instance, target } => {
                open(out, "OP_INSTANCE_FAILOVER", instance);
                out.push_str(r#","shutdown_timeout":120,"ignore_consistency":false"#);
                write_target(out, target.as_deref());
                out.push_str(r#","ignore_ipolicy":false,"cleanup":false}"#);
            }
            Self::ReplaceDisks { instance, remote_node } => {
                open(out, "OP_INSTANCE_REPLACE_DISKS", instance);
                out.push_str(
                    r#","early_release":false,"ignore_ipolicy":false,"mode":"replace_new_secondary","disks":[],"remote_node":"#,
                );
                text(out, remote_node);
                out.push('}');
            }
        }
    }
}

fn open(out: &mut String, operation: &str, instance: &str) {
    out.push_str(r#"{"OP_ID":"#);
    text(out, operation);
    out.push_str(r#","instance_name":"#);
    text(out, instance);
}

fn write_target(out: &mut String, target: Option<&str>) {
    if let Some(target) = target {
        out.push_str(r#","target_node":"#);
        text(out, target);
    }
}

impl Response {
    /// The line to print, its end included.
    pub fn to_line(&self) -> String {
        let mut out = String::new();
        out.push_str(if self.success { r#"{"success":true,"info":"# } else { r#"{"success":false,"info":"# });
        text(&mut out, &self.info);
        out.push_str(r#","result":"#);
        self.result.write(&mut out);
        out.push_str("}\n");
        out
    }
}

impl ResultValue {
    fn write(&self, out: &mut String) {
        match self {
            Self::Empty => out.push_str("[]"),
            Self::Nodes(nodes) => texts(out, nodes),
            Self::Node(node) => text(out, node),
            Self::NewSecondaries(moves) => list(out, moves, pair),
            Self::MultiAllocate { allocated, failed } => {
                out.push('[');
                list(out, allocated, |out, (instance, nodes)| {
                    out.push('[');
                    text(out, instance);
                    out.push(',');
                    texts(out, nodes);
                    out.push(']');
                });
                out.push(',');
                list(out, failed, pair);
                out.push(']');
            }
            Self::Evacuation(evacuation) => {
                out.push('[');
                list(out, &evacuation.moved, |out, moved| {
                    out.push('[');
                    text(out, &moved.instance);
                    out.push(',');
                    text(out, &moved.group);
                    out.push(',');
                    texts(out, &moved.nodes);
                    out.push(']');
                });
                out.push(',');
                list(out, &evacuation.failed, pair);
                out.push(',');
                list(out, &evacuation.jobs, |out, job| list(out, job, |out, op| op.write(out)));
                out.push(']');
            }
        }
    }
}

fn list<T>(out: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn texts(out: &mut String, items: &[String]) {
    list(out, items, |out, item| text(out, item));
}

fn pair(out: &mut String, (first, second): &(String, String)) {
    out.push('[');
    text(out, first);
    out.push(',');
    text(out, second);
    out.push(']');
}

/// Writes a string; only what JSON demands is escaped.
fn text(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
