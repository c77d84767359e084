//! Tests of the protocol on hand-written messages. Expected texts are those of Ganeti's `hail`.

mod current;
mod errors;
mod responses;
mod robustness;
mod version2;

use super::{Message, ProtocolError, parse};

/// A small message in the current dialect, with a placeholder for the request.
const CURRENT: &str = r#"{"version":2,"cluster_name":"c","cluster_tags":["t"],"enabled_hypervisors":["kvm","fake"],
"nodegroups":{"g-1":{"name":"g1","alloc_policy":"preferred","networks":["net"],"tags":[],"ipolicy":{
"std":{"memory-size":128,"cpu-count":1,"disk-size":1024,"disk-count":1,"nic-count":1,"spindle-use":1},
"minmax":[],"disk-templates":["drbd","plain"],"vcpu-ratio":4.0,"spindle-ratio":32.0}}},
"nodes":{
"n2.ex.com":{"group":"g-1","offline":false,"drained":false,"ndparams":{"spindle_count":1,"exclusive_storage":false},"total_memory":16384,"reserved_memory":1024,"free_memory":14000,"total_disk":100000,"free_disk":90000,"total_cpus":8,"reserved_cpus":1,"free_spindles":0},
"n1.ex.com":{"group":"g-1","offline":false,"drained":true,"vm_capable":null,"ndparams":{"exclusive_storage":true},"total_memory":16384,"reserved_memory":1024,"free_memory":14000,"total_disk":100000,"free_disk":90000,"total_cpus":8,"reserved_cpus":1,"free_spindles":3,"total_spindles":5,"tags":["x"]},
"n3.ex.com":{"group":"g-1","offline":true,"drained":false,"ndparams":{"spindle_count":9,"exclusive_storage":false},"tags":null}},
"instances":{
"i2.ex.com":{"nodes":["n2.ex.com","n1.ex.com"],"memory":1024,"vcpus":1,"disk_space_total":1152,"disks":[{"mode":"rw","size":1024,"spindles":null}],"disk_template":"drbd","tags":["a"],"spindle_use":1,"nics":[{"ip":null,"mode":"bridged","network":"net"}],"admin_state":"down"},
"i1.ex.com":{"nodes":["n1.ex.com"],"memory":512,"vcpus":2,"disk_space_total":1024,"disks":[{"size":1024,"spindles":2}],"disk_template":"plain","tags":[],"spindle_use":1,"nics":[]}},
"request":REQUEST}"#;

const RELOCATE: &str =
    r#"{"type":"relocate","name":"i2.ex.com","required_nodes":1,"relocate_from":["n1.ex.com"]}"#;

fn current(request: &str) -> String {
    CURRENT.replace("REQUEST", request)
}

fn read(text: &str) -> Result<Message, ProtocolError> {
    parse(text.as_bytes())
}

fn read_ok(text: &str) -> Message {
    read(text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// Replaces a passage of the message. Panics if it isn't there.
fn changed(from: &str, to: &str) -> String {
    let text = current(RELOCATE);
    assert!(text.contains(from), "no {from}");
    text.replacen(from, to, 1)
}
