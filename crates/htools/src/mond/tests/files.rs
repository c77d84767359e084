//! Reports from files, and their effect on a cluster.

use cluster::LoadOptions;

use crate::mond::*;
use crate::text;

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
    format!(r#"{{"name":"{name}","version":"B","format_version":1,"timestamp":5,"kind":0,"data":{data}}}"#)
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
