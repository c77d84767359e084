//! Messages of protocol version 2, from the examples in its document.

use cluster::{GroupIdx, InstanceIdx, InstanceStatus, LoadOptions, NodeIdx};

use super::read_ok;
use crate::iallocator::{Dialect, Request};

/// Cluster in the examples of the protocol's document.
const EXAMPLE: &str = r#"{"cluster_tags":[],"request":REQUEST,"cluster_name":"cluster1.example.com","instances":{
"instance1.example.com":{"tags":[],"should_run":false,"disks":[{"mode":"w","size":64},{"mode":"w","size":512}],
"nics":[{"ip":null,"mac":"aa:00:00:00:60:bf","bridge":"xen-br0"}],"vcpus":1,"disk_template":"plain","memory":128,
"nodes":["nodee1.com"],"os":"debootstrap+default"},
"instance2.example.com":{"tags":[],"should_run":false,"disks":[{"mode":"w","size":512},{"mode":"w","size":256}],
"nics":[{"ip":null,"mac":"aa:00:00:55:f8:38","bridge":"xen-br0"}],"vcpus":1,"disk_template":"drbd","memory":512,
"nodes":["node2.example.com","node3.example.com"],"os":"debootstrap+default"}},
"version":1,"nodes":{
"node1.example.com":{"total_disk":858276,"primary_ip":"198.51.100.1","secondary_ip":"192.0.2.1","tags":[],
"free_memory":3505,"free_disk":856740,"total_memory":4095},
"node2.example.com":{"total_disk":858240,"primary_ip":"198.51.100.2","secondary_ip":"192.0.2.2","tags":["test"],
"free_memory":3505,"free_disk":848320,"total_memory":4095},
"node3.example.com.com":{"total_disk":572184,"primary_ip":"198.51.100.3","secondary_ip":"192.0.2.3","tags":[],
"free_memory":3505,"free_disk":570648,"total_memory":4095}}}"#;

const ALLOCATE: &str = r#"{"required_nodes":2,"name":"instance3.example.com","tags":["type:test","owner:foo"],
"type":"allocate","disks":[{"mode":"w","size":1024},{"mode":"w","size":2048}],
"nics":[{"ip":null,"mac":"00:11:22:33:44:55","bridge":null}],"vcpus":1,"disk_template":"drbd","memory":2048,
"disk_space_total":3328,"os":"debootstrap+default"}"#;

const RELOCATE: &str = r#"{"relocate_from":["node3.example.com"],"required_nodes":1,"type":"relocate",
"name":"instance2.example.com","disk_space_total":832}"#;

fn example(request: &str) -> String {
    EXAMPLE.replace("REQUEST", request)
}

#[test]
fn allocation_of_the_example() {
    let message = read_ok(&example(ALLOCATE));
    assert_eq!(message.dialect, Dialect::Version2);
    let Request::Allocate(new) = &message.request else { panic!() };
    assert_eq!((new.instance.disk, new.instance.spindle_use, new.required_nodes), (3328, 1, 2));
    let data = message.data;
    assert_eq!((data.groups.len(), data.groups[0].name.as_str()), (1, "default"));
    // The two unlisted nodes come last, in order of the instances.
    let nodes: Vec<(&str, bool)> = data.nodes.iter().map(|n| (n.name.as_str(), n.offline)).collect();
    assert_eq!(
        nodes,
        [
            ("node1.example.com", false),
            ("node2.example.com", false),
            ("node3.example.com.com", false),
            ("nodee1.com", true),
            ("node3.example.com", true),
        ]
    );
    let [plain, drbd] = data.instances.as_slice() else { panic!() };
    assert_eq!((plain.disk, plain.status), (576, InstanceStatus::AdminDown));
    assert_eq!((drbd.primary, drbd.secondary), (NodeIdx(1), Some(NodeIdx(4))));
}

#[test]
fn figures_are_finite() {
    let data = read_ok(&example(ALLOCATE)).data;
    let (cluster, _) = data.load(&LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    for index in cluster.node_indices().filter(|n| cluster.node(*n).online()) {
        let (node, figures) = (cluster.node(index), &cluster.state(index).figures);
        assert!(figures.vcpu_ratio(node) < 1e-3);
        assert!(figures.free_memory_ratio(node).is_finite() && figures.free_disk_ratio(node).is_finite());
        assert!(node.max_vcpu_ratio < 0.0 && node.max_spindles > 1e3);
    }
}

#[test]
fn relocation_of_the_example() {
    let Request::Relocate { instance, required_nodes, relocate_from } = read_ok(&example(RELOCATE)).request
    else {
        panic!()
    };
    // Full names take precedence over aliases, such as the one of node3.example.com.com.
    assert_eq!((instance, required_nodes, relocate_from), (InstanceIdx(1), 1, vec![NodeIdx(4)]));
}

#[test]
fn evacuation_of_the_example() {
    for request in [
        r#"{"evac_nodes":["node2"],"type":"multi-evacuate"}"#,
        r#"{"nodes":["node2"],"type":"multi-evacuate"}"#,
        r#"{"evac_nodes":["node2.example.com"],"nodes":["node1"],"type":"multi-evacuate"}"#,
    ] {
        let message = read_ok(&example(request));
        assert_eq!(message.request, Request::MultiEvacuate { nodes: vec![NodeIdx(1)] }, "{request}");
    }
    // Matches node3.example.com and node3.example.com.com.
    assert!(super::read(&example(r#"{"evac_nodes":["node3"],"type":"multi-evacuate"}"#)).is_err());
}

#[test]
fn groups_may_be_given() {
    let groups = r#"{"cluster_tags":[],"nodegroups":{"u":{"name":"g","alloc_policy":"unallocable"}},"#;
    let request = r#"{"evac_nodes":["node2"],"type":"multi-evacuate"}"#;
    let text = example(request).replacen(r#"{"cluster_tags":[],"#, groups, 1);
    let message = read_ok(&text);
    assert_eq!(message.dialect, Dialect::Version2);
    assert_eq!((message.data.groups[0].uuid.as_str(), message.data.groups[0].policy.vcpu_ratio), ("u", -1.0));
    // Allocations have the same form.
    let text = example(ALLOCATE).replacen(r#"{"cluster_tags":[],"#, groups, 1);
    let message = read_ok(&text);
    assert_eq!((message.dialect, message.data.groups[0].uuid.as_str()), (Dialect::Version2, "u"));
}

#[test]
fn messages_with_something_newer_are_of_the_current_dialect() {
    let groups = r#"{"cluster_tags":[],"nodegroups":{"u":{"name":"g","alloc_policy":"unallocable","#;
    let complaint = |newer: &str, of_nodes: &str| {
        let groups = format!("{groups}{newer}}}}},").replacen(",}", "}", 1);
        let text = example(ALLOCATE).replacen(r#"{"cluster_tags":[],"#, &groups, 1);
        let text = text.replacen(r#""total_disk":858276,"#, &format!(r#""total_disk":858276,{of_nodes}"#), 1);
        super::read(&text).expect_err("groups are incomplete").to_string()
    };
    let lacks = |keys: &str| {
        format!("invalid data for group 'u': key 'networks' not found, object contains only [{keys}]")
    };
    let few = r#""name","alloc_policy""#;
    assert_eq!(complaint("", r#""ndparams":{},"#), lacks(few));
    assert_eq!(complaint(r#""tags":[]"#, ""), lacks(&format!(r#"{few},"tags""#)));
}

/// Groups and nodes as the text of the protocol's document describes them.
#[test]
fn groups_and_nodes_as_the_text_has_them() {
    let groups = r#"{"cluster_tags":[],"enabled_hypervisors":["xen-pvm"],
"nodegroups":{"u":{"name":"first","alloc_policy":"preferred"},"v":{"name":"second","alloc_policy":"last_resort"}},"#;
    let node = r#""total_cpus":4,"master_candidate":true,"drained":false,"offline":false,"i_pri_memory":0,
"i_pri_up_memory":0,"group":"u","total_disk":"#;
    let text = example(ALLOCATE).replacen(r#"{"cluster_tags":[],"#, groups, 1);
    let text = text.replace("node3.example.com.com", "node3.example.com").replace("nodee1", "node1.example");
    let text = text.replace(r#""total_disk":"#, node).replace("should_run", "admin_up");
    // According to a footnote, offline nodes report no resources.
    let text = text.replacen(r#""offline":false"#, r#""offline":true"#, 1);
    let text = text.replacen(r#""total_disk":858276,"#, "", 1).replacen(r#""free_memory":3505,"#, "", 1);
    let message = read_ok(&text);
    let nodes = message.data.nodes.iter();
    let nodes: Vec<_> = nodes.map(|n| (n.group, n.offline, n.total_cpus.to_string())).collect();
    let node = |offline, cpus: &str| (GroupIdx(0), offline, cpus.to_owned());
    assert_eq!(
        (message.dialect, nodes),
        (Dialect::Version2, vec![node(true, "0"), node(false, "4"), node(false, "4")])
    );
    assert_eq!(message.data.groups.len(), 2);
}

#[test]
fn states_in_any_spelling() {
    for (state, status) in [
        (r#""admin_up":true"#, InstanceStatus::Running),
        (r#""admin_up":false"#, InstanceStatus::AdminDown),
        (r#""should_run":true"#, InstanceStatus::Running),
        (r#""admin_state":"offline""#, InstanceStatus::AdminOffline),
        (r#""x":0"#, InstanceStatus::Running),
    ] {
        let text = example(ALLOCATE).replacen(r#""should_run":false"#, state, 1);
        assert_eq!(read_ok(&text).data.instances[0].status, status, "{state}");
    }
}
