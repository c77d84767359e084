//! CPU loads that monitoring daemons measured (`--mond`, formats spec §3.6, algorithms spec §2.7).
//!
//! Every node's daemon is asked ([`ask`]), or a file stands in for their answers (`--mond-data`, [`parse`]). What
//! they deliver replaces the assumed CPU utilisation, but only if it is complete.

mod network;

use std::collections::HashMap;

use cluster::Cluster;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

pub use network::{Answers, PORT, ask};

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

/// What is wrong with a file of reports.
#[derive(Debug, Error)]
pub enum MondError {
    /// Not JSON.
    #[error("Parsing MonD's answer: Malformed JSON: {0}")]
    Json(serde_json::Error),
    /// Not a list.
    #[error("Parsing MonD's answer: Unable to read list")]
    NotAList,
    /// An element of the list is no object.
    #[error("Parsing MonD's answer: Unable to read JSObject")]
    NotAnObject,
    /// An element does not name its node.
    #[error("Parsing node's name: key 'node' not found or not a string")]
    Node,
    /// An element's reports are wrong.
    #[error("Parsing node's reports: key 'reports': {0}")]
    Reports(String),
}

/// Reads the answers of all nodes. Keys beside `node` and `reports` are ignored, unknown keys in reports not.
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

/// Why measured loads are not used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingData {
    /// A node has no usable report; this includes offline ones.
    #[error("Didn't receive an answer by all MonDs, {}'s data will be ignored.", .0.name())]
    Nodes(Collector),
    /// Reports do not cover these instances.
    #[error("No CPU information available for [{}]", quoted(.0))]
    Instances(Vec<String>),
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(",")
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

/// Replaces the cluster's CPU utilisation by what the reports say, or changes nothing.
pub fn apply(
    cluster: &mut Cluster,
    answers: &[NodeReports],
    collector: Collector,
) -> Result<(), MissingData> {
    let missing = MissingData::Nodes(collector);
    // Of several answers for a node the last counts, of several reports in it the first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;
    use cluster::LoadOptions;

    const CLUSTER: &str = "\
g1|u1|preferred||

n1|32768|0|22000|100000|50000|4|M|u1|1||N|0|1|1.0
n2|32768|0|32000|100000|50000|4|Y|u1|1||N|0|1|1.0

i1|100|1000|3|running|Y|n1|n2|drbd||1|-|N
i2|100|1000|2|running|Y|n1|n2|drbd||1|-|N
i3|100|1000|2|running|Y|n2|n1|drbd||1|-|N
i4|100|1000|2|ADMIN_down|Y|n2|n1|drbd||1|-|Y


";

    fn report(name: &str, data: &str) -> String {
        format!(
            r#"{{"name":"{name}","version":"B","format_version":1,"timestamp":5,"kind":0,"data":{data}}}"#
        )
    }

    fn cpu(total: f64) -> String {
        report("cpu-avg-load", &format!(r#"{{"cpu_number":1,"cpus":[{total}],"cpu_total":{total}}}"#))
    }

    fn node(name: &str, reports: &[String]) -> String {
        format!(r#"{{"node":"{name}","reports":[{}]}}"#, reports.join(","))
    }

    #[test]
    fn loads_are_applied_or_ignored() {
        let check = |nodes: &[String], collector, expect: Result<(&[f64], &[f64]), &str>| {
            let (mut cluster, _) = text::parse(CLUSTER).unwrap().load(&LoadOptions::default()).unwrap();
            let answers = parse(&format!("[{}]", nodes.join(","))).unwrap();
            let done = apply(&mut cluster, &answers, collector).map_err(|e| e.to_string());
            let node_loads: Vec<f64> = cluster.states.iter().map(|s| s.figures.load[0]).collect();
            let instance_loads: Vec<f64> = cluster.instances.iter().map(|i| i.utilisation[0]).collect();
            match expect {
                Ok((nodes, instances)) => {
                    assert_eq!(done, Ok(()));
                    assert_eq!((node_loads.as_slice(), instance_loads.as_slice()), (nodes, instances));
                }
                Err(message) => {
                    assert_eq!(done, Err(message.to_owned()));
                    assert_eq!((node_loads, instance_loads), (vec![2.0, 1.0], vec![1.0; 4]));
                }
            }
        };
        let incomplete = "Didn't receive an answer by all MonDs, cpu-avg-load's data will be ignored.";
        let both: (&[f64], &[f64]) = (&[3.0, 1.5], &[1.5, 1.0, 1.0, 1.0]);
        check(&[node("n1", &[cpu(3.0)]), node("n2", &[cpu(1.5)])], Collector::Cpu, Ok(both));
        let last = [node("n1", &[cpu(9.0)]), node("n1", &[cpu(3.0), cpu(8.0)]), node("n2", &[cpu(1.5)])];
        check(&last, Collector::Cpu, Ok(both));
        check(&[], Collector::Cpu, Err(incomplete));
        check(&[node("n1", &[cpu(3.0)])], Collector::Cpu, Err(incomplete));
        let unusable = report("cpu-avg-load", r#"{"cpu_number":1,"cpus":[],"cpu_total":1,"more":1}"#);
        check(&[node("n1", &[cpu(3.0)]), node("n2", &[unusable])], Collector::Cpu, Err(incomplete));

        let xen = |data| report("xen-cpu-avg-load", data);
        let loads = [node("n1", &[xen(r#"{"i1":0.5,"i3":0.25}"#)]), node("n2", &[xen(r#"{"i2":1,"i4":4}"#)])];
        check(&loads, Collector::XenCpu, Ok((&[1.5, 0.25], &[0.5, 1.0, 0.25, 4.0])));
        let some = [node("n1", &[xen(r#"{"i1":0.5}"#)]), node("n2", &[xen(r#"{"i2":1}"#)])];
        check(&some, Collector::XenCpu, Err("No CPU information available for [\"i3\",\"i4\"]"));
        check(
            &[node("n1", &[cpu(3.0)]), node("n2", &[cpu(1.5)])],
            Collector::XenCpu,
            Err("Didn't receive an answer by all MonDs, xen-cpu-avg-load's data will be ignored."),
        );
    }

    #[test]
    fn mistakes() {
        let check = |text: &str, expect: &str| {
            let message = parse(text).map(|_| ()).map_err(|e| e.to_string()).unwrap_err();
            assert!(message.starts_with(expect), "{message}");
        };
        check("{", "Parsing MonD's answer: Malformed JSON: ");
        check("{}", "Parsing MonD's answer: Unable to read list");
        check("[1]", "Parsing MonD's answer: Unable to read JSObject");
        check(r#"[{"reports":[]}]"#, "Parsing node's name: key 'node' not found");
        check(r#"[{"node":"n"}]"#, "Parsing node's reports: key 'reports': not found");
        for (old, new) in [
            (r#""version""#, r#""extra""#),
            ("\"kind\":0", "\"kind\":2"),
            ("\"kind\":0", "\"kind\":0,\"category\":\"foo\""),
            ("\"kind\":0", "\"kind\":0,\"extra\":1"),
            ("\"timestamp\":5", "\"timestamp\":\"5\""),
        ] {
            let text = format!("[{}]", node("n", &[cpu(1.0).replace(old, new)]));
            check(&text, "Parsing node's reports: key 'reports': ");
        }
        let category = cpu(1.0).replace("\"kind\"", "\"category\":\"storage\",\"kind\"");
        assert_eq!(
            parse(&format!("[{}]", node("n", &[category]))).unwrap()[0].reports[0].category,
            Some(Category::Storage)
        );
        assert!(
            parse(&format!("[{}]", node("n", &[cpu(1.0)]).replace("{\"node", "{\"extra\":1,\"node"))).is_ok()
        );
    }
}
