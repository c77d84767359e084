//! Reports from daemons on the network.

use cluster::LoadOptions;

use crate::http::fake::{IMPATIENT, PATIENT, Reply, Server};
use crate::mond::network::ask_within;
use crate::mond::*;
use crate::text;

/// Two nodes whose names are addresses of this machine.
fn cluster() -> Cluster {
    let text = "g1|u1|preferred||\n\n\
        127.0.0.1|32768|0|22000|100000|50000|4|M|u1|1||N|0|1|1.0\n\
        localhost|32768|0|32000|100000|50000|4|Y|u1|1||N|0|1|1.0\n\n\n\n";
    text::parse(text).unwrap().load(&LoadOptions::default()).unwrap().0
}

fn report(name: &str) -> String {
    format!(
        r#"{{"name":"{name}","version":"B","format_version":1,"timestamp":5,"category":null,"kind":0,"data":{{}}}}"#
    )
}

#[test]
fn every_node_is_asked_for_one_report() {
    let server = Server::start(|_| Reply::Document(200, report("cpu-avg-load")));
    let answers = ask_within(&cluster(), Collector::Cpu, server.port, PATIENT).unwrap();
    assert!(answers.silent.is_empty(), "{answers:?}");
    let nodes: Vec<&str> = answers.reports.iter().map(|answer| answer.node.as_str()).collect();
    assert_eq!(nodes, ["127.0.0.1", "localhost"]);
    assert!(
        server.heads().iter().all(|head| head.starts_with("GET /1/report/default/cpu-avg-load HTTP/1.1"))
    );

    ask_within(&cluster(), Collector::XenCpu, server.port, PATIENT).unwrap();
    assert!(server.heads()[2].starts_with("GET /1/report/default/xen-cpu-avg-load "));
}

#[test]
fn the_name_of_a_report_does_not_matter_on_the_network() {
    let server = Server::start(|_| Reply::Document(200, report("something")));
    let answers = ask_within(&cluster(), Collector::Cpu, server.port, PATIENT).unwrap();
    assert_eq!(answers.reports[0].reports[0].name, "cpu-avg-load");
}

#[test]
fn silence_and_nonsense_are_told_apart() {
    // The reference only reports nodes that don't answer.
    let server = Server::start(|head| {
        if head.contains("127.0.0.1") { Reply::Silence } else { Reply::Document(200, "{}".to_owned()) }
    });
    let answers = ask_within(&cluster(), Collector::Cpu, server.port, IMPATIENT).unwrap();
    assert_eq!((answers.reports.len(), answers.silent), (0, vec!["127.0.0.1".to_owned()]));

    let server = Server::start(|_| Reply::Document(404, report("cpu-avg-load")));
    let answers = ask_within(&cluster(), Collector::Cpu, server.port, PATIENT).unwrap();
    assert_eq!(answers.silent.len(), 2);
}
