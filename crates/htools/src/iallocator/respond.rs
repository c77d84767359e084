//! Responses: one line of JSON with keys in a fixed order.

use crate::json::write::{list, text, texts};
use crate::opcode::OpCode;

/// Response to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Whether the request succeeded.
    pub success: bool,
    /// Text for the user.
    pub info: String,
    pub result: ResultValue,
}

/// Response to a request that succeeded.
pub fn success(detail: &str, result: ResultValue) -> Response {
    Response { success: true, info: format!("Request successful: {detail}"), result }
}

/// Response to a request that failed. Its result is always empty.
pub fn failure(detail: &str) -> Response {
    Response { success: false, info: format!("Request failed: {detail}"), result: ResultValue::Empty }
}

/// Result by type of request. All names are full names.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultValue {
    /// An empty list.
    Empty,
    /// Chosen nodes, primary first (allocate, relocate).
    Nodes(Vec<String>),
    /// Chosen node (allocate-secondary).
    Node(String),
    /// Moves (node-evacuate, change-group).
    Evacuation(Evacuation),
    /// Results for each new instance (multi-allocate).
    MultiAllocate {
        /// Instances and their nodes.
        allocated: Vec<(String, Vec<String>)>,
        /// Instances that don't fit, with reasons.
        failed: Vec<(String, String)>,
    },
    /// Instances and their new secondaries (multi-evacuate).
    NewSecondaries(Vec<(String, String)>),
}

/// Moves of an evacuation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evacuation {
    pub moved: Vec<Moved>,
    /// Instances that stay, with reasons.
    pub failed: Vec<(String, String)>,
    /// Operations for each moved instance, in order.
    pub jobs: Vec<Vec<OpCode>>,
}

/// New placement of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub instance: String,
    /// Name of the new group.
    pub group: String,
    /// New nodes, primary first.
    pub nodes: Vec<String>,
}

impl Response {
    /// The line to print, including the newline.
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
