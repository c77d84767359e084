//! Messages in the current dialect.

use cluster::{GroupIdx, InstanceIdx, InstanceStatus, NodeIdx};

use super::{RELOCATE, changed, current, read_ok};
use crate::iallocator::{Dialect, EvacuateMode, Request};

#[test]
fn order_is_that_of_the_text() {
    let message = read_ok(&current(RELOCATE));
    assert_eq!(message.dialect, Dialect::Current);
    let nodes: Vec<&str> = message.data.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(nodes, ["n2.ex.com", "n1.ex.com", "n3.ex.com"]);
    let instances: Vec<&str> = message.data.instances.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(instances, ["i2.ex.com", "i1.ex.com"]);
    assert_eq!(message.data.tags, ["t"]);
}

#[test]
fn nodes_that_are_not_live_have_no_figures() {
    let data = read_ok(&current(RELOCATE)).data;
    let [online, drained, offline] = data.nodes.as_slice() else { panic!() };
    assert!(!online.offline && drained.offline && offline.offline);
    assert_eq!((drained.total_spindles, drained.reported_free_spindles, drained.node_cpus), (5, 3, 1));
    assert_eq!((offline.total_spindles, offline.total_memory, offline.node_cpus), (9, 0.0, 0));
    assert!(data.nodes.iter().all(|n| n.kvm && !n.master));
}

#[test]
fn kvm_is_the_first_hypervisor_or_none() {
    for (list, kvm) in [(r#"["kvm"]"#, true), (r#"["fake","kvm"]"#, false), ("[]", false)] {
        let message = read_ok(&changed(r#"["kvm","fake"]"#, list));
        assert_eq!(message.data.nodes[0].kvm, kvm, "{list}");
    }
}

#[test]
fn instances_have_their_nodes_and_state() {
    let data = read_ok(&current(RELOCATE)).data;
    let [drbd, plain] = data.instances.as_slice() else { panic!() };
    assert_eq!((drbd.primary, drbd.secondary), (NodeIdx(0), Some(NodeIdx(1))));
    assert_eq!((plain.primary, plain.secondary), (NodeIdx(1), None));
    assert_eq!((drbd.status, plain.status), (InstanceStatus::AdminDown, InstanceStatus::Running));
    assert_eq!((drbd.disks[0].spindles, plain.disks[0].spindles), (None, Some(2)));
    assert_eq!(drbd.networks, ["net"]);
    assert!(drbd.auto_balance && !drbd.forthcoming);
}

#[test]
fn unknown_states_mean_up() {
    for (state, status) in [
        (r#""offline""#, InstanceStatus::AdminOffline),
        (r#""up""#, InstanceStatus::Running),
        (r#""foo""#, InstanceStatus::Running),
        ("5", InstanceStatus::Running),
        ("null", InstanceStatus::Running),
    ] {
        let message = read_ok(&changed(r#""admin_state":"down""#, &format!(r#""admin_state":{state}"#)));
        assert_eq!(message.data.instances[0].status, status, "{state}");
    }
}

#[test]
fn numbers_are_rounded_half_to_even() {
    for (written, memory) in [
        ("1024.5", 1024),
        ("1025.5", 1026),
        ("-0.5", 0),
        ("-3.5", -4),
        ("1E2", 100),
        ("0.1e1", 1),
        ("-7", -7),
        ("1e30", 1 << 40),
        ("99999999999999999999", 1 << 40),
    ] {
        let message = read_ok(&changed(r#""memory":1024"#, &format!(r#""memory":{written}"#)));
        assert_eq!(message.data.instances[0].memory, memory, "{written}");
    }
}

#[test]
fn first_key_wins_and_records_of_the_same_name_stay() {
    let message = read_ok(&changed(r#""memory":1024"#, r#""memory":7,"memory":1024"#));
    assert_eq!(message.data.instances[0].memory, 7);
    let message = read_ok(&changed(r#""i1.ex.com":{"#, r#""i2.ex.com":{"#));
    assert_eq!(message.data.instances.len(), 2);
    // As in the reference, the last one wins.
    let Request::Relocate { instance, .. } = message.request else { panic!() };
    assert_eq!(instance, InstanceIdx(1));
}

#[test]
fn strings_are_unescaped() {
    let message = read_ok(&changed(r#"["t"]"#, r#"["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é"]"#));
    assert_eq!(message.data.tags, ["\"\\/\u{8}\u{c}\n\r\té😀é"]);
}

#[test]
fn leading_white_space_and_mark_are_accepted() {
    for lead in [" \n\t", "\u{feff}"] {
        read_ok(&format!("{lead}{}\n ", current(RELOCATE)));
    }
}

#[test]
fn requests_are_resolved() {
    let cases = [
        (
            RELOCATE.replace("n1.ex.com", "n1"),
            Request::Relocate {
                instance: InstanceIdx(0),
                required_nodes: 1,
                relocate_from: vec![NodeIdx(1)],
            },
        ),
        (
            r#"{"type":"node-evacuate","instances":["i1","i1.ex.com"],"evac_mode":"primary-only"}"#
                .to_owned(),
            Request::NodeEvacuate {
                instances: vec![InstanceIdx(1), InstanceIdx(1)],
                mode: EvacuateMode::PrimaryOnly,
            },
        ),
        (
            r#"{"type":"change-group","instances":["i2"],"target_groups":["g1","g-1"]}"#.to_owned(),
            Request::ChangeGroup {
                instances: vec![InstanceIdx(0)],
                target_groups: vec![GroupIdx(0), GroupIdx(0)],
            },
        ),
        (
            r#"{"type":"allocate-secondary","name":"i1.ex.com"}"#.to_owned(),
            Request::AllocateSecondary { instance: InstanceIdx(1) },
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(read_ok(&current(&request)).request, expected, "{request}");
    }
}

const SHAPE: &str = r#""name":"new","required_nodes":2,"memory":1024,"vcpus":1,"disk_space_total":2176,"disks":[{"size":1024}],"disk_template":"drbd","tags":["q"],"spindle_use":3,"nics":[]"#;

#[test]
fn allocations_describe_an_instance() {
    let request =
        format!(r#"{{"type":"allocate",{SHAPE},"group_name":"gx","restrict-to-nodes":["n1.ex.com"]}}"#);
    let Request::Allocate(new) = read_ok(&current(&request)).request else { panic!() };
    assert_eq!((new.instance.name.as_str(), new.instance.disk, new.required_nodes), ("new", 2176, 2));
    assert_eq!(new.instance.spindle_use, 3);
    assert_eq!(new.group_name.as_deref(), Some("gx"));
    assert_eq!(new.restrict_to_nodes, Some(vec!["n1.ex.com".to_owned()]));
}

#[test]
fn multi_allocations_take_the_group_of_the_request() {
    let request = format!(
        r#"{{"type":"multi-allocate","group_name":"g1","instances":[{{{SHAPE},"group_name":3,"restrict-to-nodes":3}}]}}"#
    );
    let Request::MultiAllocate { instances, group_name } = read_ok(&current(&request)).request else {
        panic!()
    };
    assert_eq!(group_name.as_deref(), Some("g1"));
    assert_eq!((instances[0].group_name.clone(), instances[0].restrict_to_nodes.clone()), (None, None));
}
