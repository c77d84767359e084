//! Reports of monitoring daemons.

use serde::Deserialize;
use serde_json::Value;

/// The collector whose reports are used; exactly one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// Loads of nodes.
    Cpu,
    /// Loads of instances, as the Xen hypervisor measures them (`--mond-xen`).
    XenCpu,
}

impl Collector {
    /// Name of the collector in its reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu-avg-load",
            Self::XenCpu => "xen-cpu-avg-load",
        }
    }
}

/// All reports of a node's daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReports {
    /// Full name of the node.
    pub node: String,
    pub reports: Vec<Report>,
}

/// Subject of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    Instance,
    Storage,
    Daemon,
    Hypervisor,
}

/// Type of a report's data: measurements or a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub enum Kind {
    /// Measured values.
    Performance,
    /// A verdict.
    Status,
}

impl TryFrom<i64> for Kind {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        match number {
            0 => Ok(Self::Performance),
            1 => Ok(Self::Status),
            _ => Err(format!("kind {number} is neither 0 nor 1")),
        }
    }
}

/// Report of a collector.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Name of the collector.
    pub name: String,
    /// Version of the collector.
    pub version: String,
    /// Version of the data's format.
    pub format_version: i64,
    /// Time of the report, as the daemon gives it.
    pub timestamp: i64,
    #[serde(default)]
    pub category: Option<Category>,
    pub kind: Kind,
    /// The collector's data, parsed when it's used.
    pub data: Value,
}
