//! Queries to the nodes' daemons over the network.

use std::time::Duration;

use cluster::Cluster;

use super::report::{Collector, NodeReports, Report};
use crate::http::{Http, HttpError, Limits, SetupError, Trust};

/// Default port of monitoring daemons.
pub const PORT: u16 = 1815;

/// Reports are small and ready to send. A daemon that needs longer counts as down.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), total: Duration::from_secs(10), most_bytes: 1 << 24 };

/// Number of nodes queried at the same time. The reference queries one after another, which takes long if
/// many nodes don't answer.
const AT_ONCE: usize = 64;

/// Answers of the daemons.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// Valid answers.
    pub reports: Vec<NodeReports>,
    /// Nodes that did not answer, in node order.
    pub silent: Vec<String>,
}

/// Queries the daemons of all nodes, including offline ones, at the nodes' names.
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
            // The daemon answered, but the answer is unusable.
            Err(HttpError::TooLong(_)) => {}
            Err(_) => answers.silent.push(node.name.clone()),
        }
    }
    Ok(answers)
}

/// Parses an answer; `None` if it's invalid. Like the reference, doesn't check the report's name, because the
/// URL already names the report.
fn report(node: &str, body: &[u8], collector: Collector) -> Option<NodeReports> {
    let report: Report = serde_json::from_slice(body).ok()?;
    let report = Report { name: collector.name().to_owned(), ..report };
    Some(NodeReports { node: node.to_owned(), reports: vec![report] })
}
