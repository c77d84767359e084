//! Reading and writing the text format.

use cluster::{
    AllocPolicy, Cluster, Disk, DiskTemplate, Group, GroupIdx, ISpec, Instance, InstanceStatus, LoadOptions,
    MinMax, Node, NodeIdx, Policy,
};
use proptest::prelude::*;

use super::*;
use crate::data::ClusterData;
use crate::data::bounded;

/// The worked example from the format's description, with its short rows completed.
const COMPLETE: &str = "\
g1|u1|preferred|a,,b,|
g2|u2|last_resort||net-1,net-2

n1|1000|0|900|10000|9000|4|M|u1|1||N|0|1|1.0
n2|1000|0|900|10000|9000|4|N|u2|2|x:y|Y|7|2|0.05
n3|0|0|0|0|0|0|Y|u1|0||N|0|0|1.0

i1|100|1000|1|running|Y|n1|n2|drbd|t,u|1|-|N
i2|100|1000|1|ADMIN_down|N|n1||plain||2|3|Y

htools:iextags:svc

|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|drbd,plain|4.0|32.0
g1|1,2,3,4,5,6||diskless|5.0e-2|1.0e7
g2|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|diskless,file,sharedfile,plain,blockdev,drbd,rbd,ext,gluster|4.0|32.0
";

fn load(text: &str) -> Cluster {
    parse(text).unwrap().load(&LoadOptions::default()).unwrap().0
}

fn rewrite(text: &str) -> String {
    let cluster = load(text);
    let nodes: Vec<_> = cluster.node_indices().collect();
    let instances: Vec<_> = cluster.instance_indices().collect();
    serialize(&cluster, &nodes, &instances)
}

#[test]
fn files_are_written_in_canonical_form() {
    let check = |text: &str, expect: &str| assert_eq!(rewrite(text), expect);
    check(COMPLETE, COMPLETE);
    check(COMPLETE.trim_end(), COMPLETE);
    check(
        "\n\n\n",
        "\n\n\n\n|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|diskless,file,sharedfile,plain,blockdev,drbd,rbd,ext,gluster|4.0|32.0\n",
    );
    let short = "g1|u1|preferred|\n\nn1|?|0|900|10000|9000|4|M|u1|8|t|Y\nn2|1000.5|0|900|1e4|9000|4|Z|u1\n\ni1|100|1000|1|running|Y|n2||plain|\n\n";
    let rows = "n1|0|0|0|0|0|0|Y|u1|0||N|0|0|1.0\nn2|1000|0|900|10000|9000|4|N|u1|1||N|0|1|1.0\n\ni1|100|1000|1|running|Y|n2||plain||1|-|N\n\n\n";
    assert!(rewrite(short).contains(rows), "{}", rewrite(short));
    assert!(rewrite(&format!("{COMPLETE}\nignored\n\nanything")).ends_with("|4.0|32.0\n"));
}

#[test]
fn parts_are_selected() {
    let cluster = load(COMPLETE);
    let text = serialize(&cluster, &[NodeIdx(1)], &[]);
    let expect = "net-2\n\nn2|1000|0|900|10000|9000|4|N|u2|2|x:y|Y|7|2|0.05\n\n\nhtools:";
    assert!(text.contains(expect), "{text}");
}

#[test]
fn equal_names_mean_the_last_node() {
    let text = "g|u|preferred|\n\nn|1|1|1|1|1|1|N|u\nn|1|1|1|1|1|1|N|u\n\ni|1|1|1|running|Y|n||plain|\n\n";
    assert_eq!(parse(text).unwrap().instances[0].primary, NodeIdx(1));
}

#[test]
fn mistakes() {
    let check = |text: &str, expect: &str| {
        assert_eq!(parse(text).map(|_| ()).map_err(|e| e.to_string()), Err(expect.to_owned()), "{text}");
    };
    for (text, sections) in [("", 0), ("\n", 2), ("g\n\nn", 2)] {
        check(text, &format!("Invalid format of the input file: {sections} sections instead of 4 or more"));
    }
    for (row, message) in [
        ("g1|u1|preferred", "Invalid/incomplete group data: '[\"g1\",\"u1\",\"preferred\"]'"),
        ("g1|u1|foo||", "Invalid string value for type AllocPolicy: \"foo\""),
    ] {
        check(&format!("{row}\n\n\n\n"), &format!("line 1: {message}"));
    }
    for (row, message) in [
        ("n3|1|2|3", "Invalid/incomplete node data: '[\"n3\",\"1\",\"2\",\"3\"]'"),
        ("n3|x|?|9|9|9|4|M|u9", "Unknown group 'u9' for node n3"),
        ("n3|x|y|9|9|9|4|M|u1|z", "n3: cannot parse string 'x'"),
        ("n3|12MB|y|9|9|9|4|M|u1|z", "n3: leftover characters when parsing '12MB': 'MB'"),
        ("n3|1|1|9|9|9|4|M|u1|a||Q|b|c|d", "n3: cannot parse string 'c'"),
        ("n3|1|1|9|9|9|4|M|u1|a||Q|b|1|d", "n3: cannot parse string 'a'"),
        ("n3|1|1|9|9|9|4|M|u1|1||Q|b|1|d", "n3: cannot parse string 'b'"),
        ("n3|1|1|9|9|9|4|M|u1|1||Q|1|1|d", "n3: cannot parse string 'd'"),
        ("n3|1|1|9|9|9|4|M|u1|1||x|1|1|1", "Invalid exclusive_storage value for node 'n3': x"),
    ] {
        check(&format!("g1|u1|preferred||\n\n{row}\n\n\n\n"), &format!("line 3: {message}"));
    }
    for (row, message) in [
        ("i1|x|y|z", "Invalid/incomplete instance data: '[\"i1\",\"x\",\"y\",\"z\"]'"),
        ("i1|x|y|z|up|Q|nx|n1|dr||", "Unknown node 'nx' for instance i1"),
        ("i1|x|y|z|up|Q|n1|nx|dr||", "Unknown node 'nx' for instance i1"),
        ("i1|x|y|z|up|Q|n1||dr||", "i1: cannot parse string 'x'"),
        ("i1|1|1|1|up|Q|n1||dr||", "Invalid string value for type InstanceStatus: \"up\""),
        ("i1|1|1|1|running|y|n1||dr||", "Invalid auto_balance value 'y' for instance i1"),
        (
            "i1|1|1|1|running|Y|n1||drbd8||",
            "Instance i1: Invalid string value for type DiskTemplate: \"drbd8\"",
        ),
        ("i1|1|1|1|running|Y|n1||drbd||x|y|z", "i1: cannot parse string 'x'"),
        ("i1|1|1|1|running|Y|n1|n1|drbd||1|-|n", "Invalid forthcoming value 'n' for instance i1"),
        ("i1|1|1|1|running|Y|n1|n1|drbd||1|-|N", "Instance i1 has same primary and secondary node - n1"),
    ] {
        let text = format!("g1|u1|preferred||\n\nn1|1|1|9|9|9|4|M|u1\n\n{row}\n\n");
        check(&text, &format!("line 5: {message}"));
    }
    for (row, message) in [
        ("gX|1,2|1;2;3|foo|x|y", "Invalid ispec data for gX/stdspec: [\"1\",\"2\"]"),
        ("gX|1,1,1,1,1,1|1;2;3|foo|x|y", "Odd number of min/max specs for gX"),
        ("g1|1,1,1,1,1,1|1;2|foo|x|y", "Invalid ispec data for g1/minspec: [\"1\"]"),
        ("g1|1,1,1,1,1,1||drbd,,plain|x|y", "Invalid string value for type DiskTemplate: \"\""),
        ("g1|1,1,1,1,1,1|||x|y", "g1/vcpu_ratio: cannot parse string 'x'"),
        ("gX|1,1,1,1,1,1|||1|1", "Wrong number of elems found with name gX"),
        ("|1,1,1,1,1,x|||1|1", "/stdspec/spindleuse: cannot parse string 'x'"),
        ("g1|1", "Invalid ipolicy data: '[\"g1\",\"1\"]'"),
    ] {
        check(&format!("g1|u1|preferred||\n\n\n\n\n{row}"), &format!("line 6: {message}"));
    }
}

fn tags() -> impl Strategy<Value = Vec<String>> {
    // A single empty tag cannot be distinguished from no tag.
    prop::collection::vec("[a-z:]{1,4}", 0..3)
}

fn spec() -> impl Strategy<Value = ISpec> {
    // Larger numbers are clamped when read.
    any::<[i64; 6]>().prop_map(|numbers| {
        let [memory_size, cpu_count, disk_size, disk_count, nic_count, spindle_use] = numbers.map(bounded);
        ISpec { memory_size, cpu_count, disk_size, disk_count, nic_count, spindle_use }
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let pairs = prop::collection::vec((spec(), spec()).prop_map(|(min, max)| MinMax { min, max }), 0..3);
    let templates = prop::sample::subsequence(DiskTemplate::ALL.to_vec(), 0..=9);
    let ratio = -1e9..1e9_f64;
    (spec(), pairs, templates, ratio.clone(), ratio).prop_map(
        |(std, minmax, disk_templates, vcpu_ratio, spindle_ratio)| Policy {
            std,
            minmax,
            disk_templates,
            vcpu_ratio,
            spindle_ratio,
        },
    )
}

fn node(position: usize) -> impl Strategy<Value = Node> {
    (any::<[i32; 6]>(), any::<[u16; 3]>(), any::<[bool; 3]>(), 0.0..9.0_f64, tags()).prop_map(
        move |(ints, totals, [offline, master, exclusive_storage], cpu_speed, tags)| Node {
            total_memory: f64::from(totals[0]),
            total_disk: f64::from(totals[1]),
            total_cpus: f64::from(totals[2]),
            node_memory: ints[0].into(),
            reported_free_memory: ints[1].into(),
            reported_free_disk: ints[2].into(),
            total_spindles: ints[3].into(),
            reported_free_spindles: ints[4].into(),
            node_cpus: ints[5].into(),
            offline,
            master: master && !offline,
            exclusive_storage,
            cpu_speed,
            tags,
            ..Node::new(format!("n{position}"), GroupIdx::from_usize(position % 2))
        },
    )
}

fn instance(position: usize) -> impl Strategy<Value = Instance> {
    let places = (0..3_u32, prop::option::of(0..3_u32));
    let kinds =
        (prop::sample::select(&DiskTemplate::ALL[..]), prop::sample::select(&InstanceStatus::ALL[..]));
    (any::<[i32; 4]>(), places, kinds, any::<[bool; 2]>(), any::<Option<i32>>(), tags()).prop_map(
        move |(
            ints,
            (primary, secondary),
            (template, status),
            [auto_balance, forthcoming],
            spindles,
            tags,
        )| {
            let disk = i64::from(ints[1]);
            Instance {
                memory: ints[0].into(),
                disk,
                disks: vec![Disk { size: disk, spindles: spindles.map(i64::from) }],
                vcpus: ints[2].into(),
                spindle_use: ints[3].into(),
                status,
                auto_balance,
                forthcoming,
                secondary: secondary.filter(|s| *s != primary).map(NodeIdx),
                tags,
                ..Instance::new(format!("i{position}"), template, NodeIdx(primary))
            }
        },
    )
}

fn cluster_data() -> impl Strategy<Value = ClusterData> {
    let group = |position: usize| {
        (prop::sample::select(&AllocPolicy::ALL[..]), tags(), tags(), policy()).prop_map(
            move |(alloc_policy, tags, networks, policy)| Group {
                name: format!("g{position}"),
                uuid: format!("u{position}"),
                alloc_policy,
                tags,
                networks,
                policy,
            },
        )
    };
    let nodes = (node(0), node(1), node(2));
    let instances = (instance(0), instance(1), instance(2), instance(3));
    ((group(0), group(1)), nodes, instances, tags(), policy()).prop_map(|(g, n, i, tags, policy)| {
        ClusterData {
            groups: vec![g.0, g.1],
            nodes: vec![n.0, n.1, n.2],
            instances: vec![i.0, i.1, i.2, i.3],
            tags,
            policy,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(data in cluster_data()) {
        let (cluster, _) = data.clone().load(&LoadOptions::default()).unwrap();
        let nodes: Vec<_> = cluster.node_indices().collect();
        let instances: Vec<_> = cluster.instance_indices().collect();
        let text = serialize(&cluster, &nodes, &instances);
        prop_assert_eq!(parse(&text), Ok(data));
    }

    #[test]
    fn reading_never_fails_otherwise(text in "[gnu1|,;\n?YN-]{0,200}") {
        let _ = parse(&text);
    }
}

#[test]
fn files_of_other_systems_and_formats_are_told_apart() {
    let complaint = |text: &str| parse(text).unwrap_err().to_string();
    assert!(complaint("g|u|preferred||\r\n\r\nn\r\n").contains("CR LF"));
    assert!(complaint("{\"a\": 1}\n").contains("this is JSON"));
    let data = parse("\u{feff}g|u|preferred||\n\nn1|?|?|?|?|?|?|Y|u\n\n\n\n").unwrap();
    assert_eq!(data.groups[0].name, "g");
}
