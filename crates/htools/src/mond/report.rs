//! What monitoring daemons report.

use serde::Deserialize;
use serde_json::Value;

/// Which reports are used; exactly one kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// Loads of nodes.
    Cpu,
    /// Loads of instances, as the Xen hypervisor measures them (`--mond-xen`).
    XenCpu,
}

impl Collector {
    /// The name that its reports carry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu-avg-load",
            Self::XenCpu => "xen-cpu-avg-load",
        }
    }
}

/// Everything that one node's daemon answered.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReports {
    /// The node's full name.
    pub node: String,
    /// Its reports.
    pub reports: Vec<Report>,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// An instance.
    Instance,
    /// Storage.
    Storage,
    /// A daemon.
    Daemon,
    /// The hypervisor.
    Hypervisor,
}

/// How a report came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub enum Kind {
    /// Measured.
    Performance,
    /// Judged.
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

/// One report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The collector that made it.
    pub name: String,
    /// That collector's version.
    pub version: String,
    /// Version of the data's format.
    pub format_version: i64,
    /// When it was made.
    pub timestamp: i64,
    /// What it is about.
    #[serde(default)]
    pub category: Option<Category>,
    /// How it came about.
    pub kind: Kind,
    /// What it says; read when it is used.
    pub data: Value,
}
