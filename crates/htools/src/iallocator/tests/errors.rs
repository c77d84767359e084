//! Errors in messages have the reference's texts.

use super::{changed, current, read};

fn check(text: &str, expected: &str) {
    let error = read(text).map(|m| format!("{m:?}")).expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn values_of_the_message() {
    let keys =
        r#"["version","cluster_name","enabled_hypervisors","nodegroups","nodes","instances","request"]"#;
    let missing =
        format!("invalid iallocator message: key 'cluster_tags' not found, object contains only {keys}");
    check(&changed(r#""cluster_tags":["t"],"#, ""), &missing);
    for (from, to, expected) in [
        (r#"["t"]"#, "null", "invalid iallocator message: key 'cluster_tags': Unable to read list"),
        (r#"["t"]"#, "[1]", "invalid iallocator message: key 'cluster_tags': Unable to read String"),
        (
            r#"["kvm","#,
            r#"["zz","#,
            "invalid iallocator message: key 'enabled_hypervisors': Invalid string value for type Hypervisor: \"zz\"",
        ),
        (
            r#"["kvm","#,
            "[3,",
            "invalid iallocator message: key 'enabled_hypervisors': Can't parse value for 'Hypervisor': Unable to read String",
        ),
        (
            "\"alloc_policy\":\"preferred\"",
            "\"alloc_policy\":\"foo\"",
            "invalid data for group 'g-1': key 'alloc_policy': Invalid string value for type AllocPolicy: \"foo\"",
        ),
        (
            "\"cpu-count\":1,",
            "",
            "invalid data for group 'g-1': key 'ipolicy': Can't parse value for 'std': key 'cpu-count' not found, object contains only [\"memory-size\",\"disk-size\",\"disk-count\",\"nic-count\",\"spindle-use\"]",
        ),
        (
            "\"minmax\":[]",
            "\"minmax\":[],\"foo\":1",
            "invalid data for group 'g-1': key 'ipolicy': Superfluous dictionary keys: [\"foo\"], but only [\"disk-templates\",\"minmax\",\"spindle-ratio\",\"std\",\"vcpu-ratio\"] allowed.",
        ),
        (
            "\"minmax\":[],",
            "",
            "invalid data for group 'g-1': key 'ipolicy': key 'minmax' not found, object contains only [\"std\",\"disk-templates\",\"vcpu-ratio\",\"spindle-ratio\"]",
        ),
        (
            "\"vcpu-ratio\":4.0",
            "\"vcpu-ratio\":\"x\"",
            "invalid data for group 'g-1': key 'ipolicy': Can't parse value for 'vcpu-ratio': Unable to read Double",
        ),
        ("\"group\":\"g-1\"", "\"group\":\"x\"", "Unknown group 'x' for node n2.ex.com"),
        (
            "\"offline\":false",
            "\"offline\":0",
            "invalid data for node 'n2.ex.com': key 'offline': Unable to read Bool",
        ),
        (
            "\"spindle_count\":1,",
            "",
            "invalid data for node 'n2.ex.com': key 'spindle_count' not found, object contains only [\"exclusive_storage\"]",
        ),
        ("\"tags\":[\"x\"]", "\"tags\":\"x\"", "key 'tags': Unable to read list (nodes/n1.ex.com/tags)"),
        (
            "{\"spindle_count\":1,\"exclusive_storage\":false}",
            "3",
            "not an object (nodes/n2.ex.com/ndparams)",
        ),
    ] {
        check(&changed(from, to), expected);
    }
}

#[test]
fn values_of_instances() {
    let owner = "invalid data for instance 'i2.ex.com': ";
    for (from, to, expected) in [
        ("\"memory\":1024", "\"memory\":\"x\"", format!("{owner}key 'memory': Unable to read Int")),
        ("\"memory\":1024", "\"memory\":null", format!("{owner}key 'memory': Unable to read Int")),
        (
            "\"memory\":1024",
            "\"memory\":\"x\",\"memory\":1",
            format!("{owner}key 'memory': Unable to read Int"),
        ),
        (
            "\"drbd\",\"tags\"",
            "\"foo\",\"tags\"",
            format!("{owner}key 'disk_template': Invalid string value for type DiskTemplate: \"foo\""),
        ),
        (
            "\"size\":1024,",
            "",
            format!("{owner}key 'size' not found, object contains only [\"mode\",\"spindles\"]"),
        ),
        ("\"spindles\":null", "\"spindles\":{}", format!("{owner}key 'spindles': Unable to read Int")),
        (
            "[\"n2.ex.com\",\"n1.ex.com\"]",
            "[\"n2.ex.com\",\"zz\"]",
            "Unknown node 'zz' for instance i2.ex.com".to_owned(),
        ),
        ("[\"n2.ex.com\",\"n1.ex.com\"]", "[]", "empty node list for instance i2.ex.com".to_owned()),
        ("[\"n2.ex.com\",\"n1.ex.com\"]", "[1]", "Wrong JSON type (instances/i2.ex.com/nodes/0)".to_owned()),
        ("\"mode\":\"bridged\"", "\"mode\":\"foo\"", "invalid NIC mode in instance i2.ex.com".to_owned()),
        (
            "\"ip\":null",
            "\"ip\":1",
            "key 'ip': Unable to read String (instances/i2.ex.com/nics/0/ip)".to_owned(),
        ),
        (
            "\"nics\":[]",
            "\"nics\":5",
            "Invalid input, expected array but got 5 (instances/i1.ex.com/nics)".to_owned(),
        ),
    ] {
        check(&changed(from, to), &expected);
    }
}

#[test]
fn requests() {
    let request = "invalid request dict: ";
    for (written, expected) in [
        ("{}", format!("{request}key 'type' not found, object contains only []")),
        (r#"{"type":3}"#, format!("{request}key 'type': Unable to read String")),
        (r#"{"type":"foo"}"#, "Invalid request type 'foo'".to_owned()),
        (
            r#"{"type":"relocate","name":"i1","required_nodes":1,"relocate_from":[]}"#,
            "Unknown instance 'i1'".to_owned(),
        ),
        (
            r#"{"type":"relocate","name":"i1.ex.com","required_nodes":1,"relocate_from":["zz"]}"#,
            "Wrong number of elems found with name zz".to_owned(),
        ),
        (
            r#"{"type":"node-evacuate","instances":["i1"],"evac_mode":"foo"}"#,
            format!("{request}key 'evac_mode': Invalid string value for type EvacMode: \"foo\""),
        ),
        (
            r#"{"type":"node-evacuate","instances":[3],"evac_mode":"all"}"#,
            format!("{request}key 'instances': Unable to read String"),
        ),
        (
            r#"{"type":"change-group","instances":[],"target_groups":["zz"]}"#,
            "Wrong number of elems found with name zz".to_owned(),
        ),
        (
            r#"{"type":"multi-allocate","instances":[3]}"#,
            format!("{request}key 'instances': Unable to read JSObject"),
        ),
        (
            r#"{"type":"multi-allocate","instances":[{"name":"q"}]}"#,
            format!("{request}key 'required_nodes' not found, object contains only [\"name\"]"),
        ),
        (
            r#"{"type":"allocate","name":"q","required_nodes":1}"#,
            "invalid data for instance 'q': key 'disk_space_total' not found, object contains only [\"type\",\"name\",\"required_nodes\"]".to_owned(),
        ),
        (
            r#"{"type":"allocate","name":"q","group_name":3}"#,
            "key 'group_name': Unable to read String (request/group_name)".to_owned(),
        ),
    ] {
        check(&current(written), &expected);
    }
}

#[test]
fn text_that_is_not_json() {
    let head = "Parsing input IAllocator message: ";
    for (text, expected) in [
        ("", "Invalid JSON: a JSON text a serialized object or array at the top level."),
        (" 7", "Invalid JSON: a JSON text a serialized object or array at the top level."),
        ("{", "unexpected end at line 1 column 2"),
        ("[]", "Unable to read JSObject"),
        ("{} x", "Invalid tokens at end of JSON string at line 1 column 4"),
        ("{\"a\":01}", "invalid number at line 1 column 8"),
        ("{\"a\":1.}", "invalid number at line 1 column 8"),
        ("{\"a\":\n+1}", "invalid token at line 2 column 1"),
        ("{\"a\":\"\\x\"}", "invalid escape char at line 1 column 8"),
        ("{\"a\":\"\\ud83d\"}", "lone surrogate at line 1 column 13"),
        ("{\"a\":\"\t\"}", "Illegal unescaped character in string at line 1 column 7"),
        ("{\"a\":\"", "unterminated String at line 1 column 7"),
        ("{\"a\" 1}", "expected a colon at line 1 column 6"),
        ("{\"a\":1 2}", "expected a comma or a closing bracket at line 1 column 8"),
    ] {
        check(text, &format!("{head}{expected}"));
    }
    assert!(super::super::parse(b"{\"\xff\":1}").is_err());
    check(&"[".repeat(200), &format!("{head}nested too deeply at line 1 column 130"));
}

/// The order was determined by running the reference.
#[test]
fn of_several_things_that_are_wrong_the_first_is_said() {
    /// Checks that errors name these keys one after another, as each key is added.
    fn in_order(object: &str, shell: fn(&str) -> String, order: &[&str]) {
        let mut fields: Vec<String> = Vec::new();
        for key in order {
            let text = shell(&format!("{{{}}}", fields.join(",")));
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(&format!("key '{key}' not found")), "{object}: {key}: {error}");
            let value = match *key {
                "offline" | "drained" | "exclusive_storage" => "false",
                "group" => "\"g-1\"",
                "ndparams" => r#"{"spindle_count":1,"exclusive_storage":false}"#,
                "name" => "\"n\"",
                "type" => "\"allocate\"",
                "alloc_policy" => "\"preferred\"",
                "disk_template" => "\"plain\"",
                "disks" | "tags" | "nics" | "networks" => "[]",
                "ipolicy" => {
                    r#"{"std":{"memory-size":1,"cpu-count":1,"disk-size":1,"disk-count":1,"nic-count":1,"spindle-use":1},"minmax":[],"disk-templates":["plain"],"vcpu-ratio":4.0,"spindle-ratio":32.0}"#
                }
                _ => "1",
            };
            fields.push(format!("\"{key}\":{value}"));
        }
    }
    let of_instance =
        ["disk_space_total", "disks", "memory", "vcpus", "tags", "disk_template", "spindle_use", "nics"];
    in_order(
        "node",
        |object| changed(r#""nodes":{"#, &format!(r#""nodes":{{"n0":{object},"#)),
        &[
            "offline",
            "drained",
            "group",
            "ndparams",
            "free_spindles",
            "total_memory",
            "reserved_memory",
            "free_memory",
            "total_disk",
            "free_disk",
            "total_cpus",
            "reserved_cpus",
        ],
    );
    let nodes = [of_instance.as_slice(), &["nodes"]].concat();
    in_order(
        "instance",
        |object| changed(r#""instances":{"#, &format!(r#""instances":{{"i0":{object},"#)),
        &nodes,
    );
    let groups = ["name", "alloc_policy", "networks", "ipolicy", "tags"];
    in_order(
        "group",
        |object| changed(r#""nodegroups":{"#, &format!(r#""nodegroups":{{"g-0":{object},"#)),
        &groups,
    );
    let request = [["type", "name", "required_nodes"].as_slice(), &of_instance].concat();
    in_order("request", current, &request);
    // Keys of the message itself: the request, then the parts with all their values, then the rest.
    let mut text = changed(r#""cluster_tags":["t"],"enabled_hypervisors":["kvm","fake"],"#, "");
    let steps = [
        (
            "key 'offline' not found",
            r#""n2.ex.com":{"group":"g-1","offline":false,"#,
            r#""n2.ex.com":{"group":"g-1","#,
        ),
        ("key 'name' not found", r#""name":"g1","#, ""),
    ];
    check(
        &text,
        "invalid iallocator message: key 'cluster_tags' not found, object contains only [\"version\",\"cluster_name\",\"nodegroups\",\"nodes\",\"instances\",\"request\"]",
    );
    for (said, from, to) in steps {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let text = text.replacen(r#""request":"#, r#""asked":"#, 1);
    assert!(read(&text).expect_err(&text).to_string().contains("key 'request' not found"));
}
