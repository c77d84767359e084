//! Priority, comment and reason, attached to every operation.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::json::write::{list, text};
use crate::opcode::OpCode;
use crate::options::{Options, Priority, Program, version_text};

/// Priority, comment and reason of submitted operations.
#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    priority: Priority,
    comment: String,
    program: Program,
    reason: String,
    since_epoch_ns: u128,
}

impl Annotation {
    /// Annotation for operations of `program`. `what` describes their purpose and starts the comment.
    pub(crate) fn new(program: Program, what: &str, options: &Options, now: SystemTime) -> Self {
        let version = version_text();
        let called = || format!("{} {version} called", program.name());
        Self {
            priority: options.priority.unwrap_or(Priority::Normal),
            comment: format!("{what} {version}"),
            program,
            reason: options.reason.clone().unwrap_or_else(called),
            // A clock set before 1970 counts as the epoch.
            since_epoch_ns: now.duration_since(UNIX_EPOCH).map_or(0, |duration| duration.as_nanos()),
        }
    }

    /// Jobs as JSON: a list of lists of operations.
    pub(crate) fn json(&self, jobs: &[Vec<OpCode>]) -> String {
        let mut out = String::new();
        list(&mut out, jobs, |out, job| list(out, job, |out, op| self.write(out, op)));
        out
    }

    fn write(&self, out: &mut String, op: &OpCode) {
        let priority = match self.priority {
            Priority::Low => 10,
            Priority::Normal => 0,
            Priority::High => -10,
        };
        // Writing to a string cannot fail.
        let _ = write!(out, r#"{{"priority":{priority},"depends":null,"comment":"#);
        text(out, &self.comment);
        out.push_str(r#","reason":[["#);
        text(out, self.program.name());
        out.push(',');
        text(out, &self.reason);
        let _ = write!(out, ",{}]],", self.since_epoch_ns);
        op.write_members(out);
        out.push('}');
    }
}
