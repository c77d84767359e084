//! Asking the nodes' daemons over the network.

use std::time::Duration;

use cluster::Cluster;

use super::report::{Collector, NodeReports, Report};
use crate::http::{Http, HttpError, Limits, SetupError, Trust};

/// Where monitoring daemons listen.
pub const PORT: u16 = 1815;

/// A report is small and ready; whoever needs longer is not there.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), total: Duration::from_secs(10), most_bytes: 1 << 24 };

/// So many nodes are asked at the same time. The reference asks one after the other, and with many nodes that do
/// not answer, that is long.
const AT_ONCE: usize = 64;

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// The answers that could be read.
    pub reports: Vec<NodeReports>,
    /// Nodes that did not answer, in order.
    pub silent: Vec<String>,
}

/// Asks the daemons of all nodes, offline ones as well, at the nodes' names.
pub fn ask(cluster: &Cluster, collector: Collector, port: u16) -> Result<Answers, SetupError> {
    ask_within(cluster, collector, port, LIMITS)
}

pub(super) fn ask_within(
    cluster: &Cluster,
    collector: Collector,
    port: u16,
    limits: Limits,
) -> Result<Answers, SetupError> {
    let http = Http::new(limits, Trust::Anybody)?;
    let name = collector.name();
    let url = |node: &str| format!("http://{node}:{port}/1/report/default/{name}");
    let urls: Vec<String> = cluster.nodes.iter().map(|node| url(&node.name)).collect();
    let mut answers = Answers::default();
    for (node, answer) in cluster.nodes.iter().zip(http.get_all(&urls, AT_ONCE)) {
        match answer {
            Ok(body) => answers.reports.extend(report(&node.name, &body, collector)),
            // It is there, only what it says is of no use.
            Err(HttpError::TooLong(_)) => {}
            Err(_) => answers.silent.push(node.name.clone()),
        }
    }
    Ok(answers)
}

/// What a daemon said, if it can be read. The reference does not look at the name of a report that was asked
/// for by name.
fn report(node: &str, body: &[u8], collector: Collector) -> Option<NodeReports> {
    let report: Report = serde_json::from_slice(body).ok()?;
    let report = Report { name: collector.name().to_owned(), ..report };
    Some(NodeReports { node: node.to_owned(), reports: vec![report] })
}
