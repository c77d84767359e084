//! CPU loads measured by monitoring daemons (`--mond`, HT-loads).
//!
//! Loads come from every node's daemon ([`ask`]) or from a file with their answers (`--mond-data`,
//! [`parse`]). They replace the assumed CPU utilization, but only if they are complete.

mod network;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use cluster::Cluster;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::json::quoted;

pub use network::{Answers, PORT, ask};
pub use report::{Category, Collector, Kind, NodeReports, Report};

/// Error in a file of reports.
#[derive(Debug, Error)]
pub enum MondError {
    /// Invalid JSON.
    #[error("Parsing MonD's answer: Malformed JSON: {0}")]
    Json(serde_json::Error),
    /// Not a list.
    #[error("Parsing MonD's answer: Unable to read list")]
    NotAList,
    /// An element of the list isn't an object.
    #[error("Parsing MonD's answer: Unable to read JSObject")]
    NotAnObject,
    /// An element doesn't name its node.
    #[error("Parsing node's name: key 'node' not found or not a string")]
    Node,
    #[error("Parsing node's reports: key 'reports': {0}")]
    Reports(String),
}

/// Parses the answers of all nodes. Keys other than `node` and `reports` are ignored, but unknown keys in
/// reports are errors.
pub fn parse(text: &str) -> Result<Vec<NodeReports>, MondError> {
    let Value::Array(elements) = serde_json::from_str(text).map_err(MondError::Json)? else {
        return Err(MondError::NotAList);
    };
    elements.into_iter().map(node_reports).collect()
}

fn node_reports(element: Value) -> Result<NodeReports, MondError> {
    let Value::Object(mut element) = element else { return Err(MondError::NotAnObject) };
    let Some(Value::String(node)) = element.remove("node") else { return Err(MondError::Node) };
    let reports = element.remove("reports").ok_or_else(|| MondError::Reports("not found".to_owned()))?;
    let reports = Vec::deserialize(reports).map_err(|error| MondError::Reports(error.to_string()))?;
    Ok(NodeReports { node, reports })
}

/// Reason why the measured loads are incomplete. All of them are ignored then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingData {
    /// A node, online or offline, has no usable report.
    #[error("Didn't receive an answer by all MonDs, {}'s data will be ignored.", .0.name())]
    Nodes(Collector),
    /// Reports don't cover these instances.
    #[error("No CPU information available for [{}]", quoted(.0))]
    Instances(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuLoad {
    #[serde(rename = "cpu_number")]
    _cpu_number: i64,
    #[serde(rename = "cpus")]
    _cpus: Vec<f64>,
    cpu_total: f64,
}

/// Replaces the cluster's CPU utilization with reported loads. On error, changes nothing.
pub fn apply(
    cluster: &mut Cluster,
    answers: &[NodeReports],
    collector: Collector,
) -> Result<(), MissingData> {
    let missing = MissingData::Nodes(collector);
    // A node's last answer wins, but its first report of the collector.
    let by_node: HashMap<&str, &NodeReports> = answers.iter().map(|a| (a.node.as_str(), a)).collect();
    let data: Option<Vec<&Value>> = cluster
        .nodes
        .iter()
        .map(|node| {
            let reports = &by_node.get(node.name.as_str())?.reports;
            reports.iter().find(|r| r.name == collector.name()).map(|r| &r.data)
        })
        .collect();
    let data = data.ok_or_else(|| missing.clone())?;
    match collector {
        Collector::Cpu => {
            let loads: Result<Vec<f64>, _> =
                data.into_iter().map(|d| CpuLoad::deserialize(d).map(|load| load.cpu_total)).collect();
            cluster.set_node_cpu_load(&loads.map_err(|_| missing)?);
        }
        Collector::XenCpu => {
            let mut by_instance = HashMap::new();
            for load in data {
                by_instance.extend(HashMap::<String, f64>::deserialize(load).map_err(|_| missing.clone())?);
            }
            let loads = instance_loads(cluster, &by_instance)?;
            cluster.set_instance_cpu_load(&loads);
        }
    }
    Ok(())
}

fn instance_loads(cluster: &Cluster, by_instance: &HashMap<String, f64>) -> Result<Vec<f64>, MissingData> {
    let names = || cluster.instances.iter().map(|i| &i.name);
    let loads: Vec<f64> = names().filter_map(|name| by_instance.get(name)).copied().collect();
    if loads.len() == cluster.instances.len() {
        return Ok(loads);
    }
    Err(MissingData::Instances(names().filter(|name| !by_instance.contains_key(*name)).cloned().collect()))
}
