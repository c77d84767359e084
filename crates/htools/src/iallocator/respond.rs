//! The answer: one line of JSON whose keys have a fixed order.

use crate::json::write::{list, text, texts};
use crate::opcode::OpCode;

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

fn pair(out: &mut String, (first, second): &(String, String)) {
    out.push('[');
    text(out, first);
    out.push(',');
    text(out, second);
    out.push(']');
}
