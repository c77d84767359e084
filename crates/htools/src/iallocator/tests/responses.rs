//! Responses as printed.

use crate::iallocator::{Evacuation, Moved, ResultValue, failure, success};
use crate::opcode::{NewSecondary, OpCode};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

#[test]
fn node_lists() {
    let response = success("success", ResultValue::Nodes(names(&["n4"])));
    assert_eq!(
        response.to_line(),
        "{\"success\":true,\"info\":\"Request successful: success\",\"result\":[\"n4\"]}\n"
    );
    let response = failure("FailMem");
    assert_eq!(
        response.to_line(),
        "{\"success\":false,\"info\":\"Request failed: FailMem\",\"result\":[]}\n"
    );
}

#[test]
fn other_shapes() {
    let pair = ("i".to_owned(), "x".to_owned());
    for (result, expected) in [
        (ResultValue::Empty, r"[]"),
        (ResultValue::Node("n3".to_owned()), r#""n3""#),
        (ResultValue::NewSecondaries(vec![pair.clone(), pair.clone()]), r#"[["i","x"],["i","x"]]"#),
        (
            ResultValue::MultiAllocate {
                allocated: vec![("a1".to_owned(), names(&["n3", "n2"]))],
                failed: vec![pair],
            },
            r#"[[["a1",["n3","n2"]]],[["i","x"]]]"#,
        ),
        (ResultValue::Evacuation(Evacuation::default()), "[[],[],[]]"),
    ] {
        let line = success("", result).to_line();
        assert_eq!(
            line,
            format!("{{\"success\":true,\"info\":\"Request successful: \",\"result\":{expected}}}\n")
        );
    }
}

#[test]
fn opcodes() {
    let i = || "i".to_owned();
    let evacuation = Evacuation {
        moved: vec![Moved { instance: i(), group: "g".to_owned(), nodes: names(&["a", "b"]) }],
        failed: Vec::new(),
        jobs: vec![
            vec![
                OpCode::Migrate { instance: i(), target: Some("n4".to_owned()) },
                OpCode::Migrate { instance: i(), target: None },
            ],
            vec![OpCode::ReplaceDisks { instance: i(), secondary: NewSecondary::Node("n4".to_owned()) }],
            vec![OpCode::Failover { instance: i(), target: Some("n4".to_owned()) }],
        ],
    };
    let migrate = r#""allow_runtime_changes":false,"ignore_ipolicy":false,"cleanup":false,"allow_failover":true,"ignore_hvversions":true}"#;
    let expected = [
        r#"[[["i","g",["a","b"]]],[],[[{"OP_ID":"OP_INSTANCE_MIGRATE","instance_name":"i","target_node":"n4","#,
        migrate,
        r#",{"OP_ID":"OP_INSTANCE_MIGRATE","instance_name":"i","#,
        migrate,
        r#"],[{"OP_ID":"OP_INSTANCE_REPLACE_DISKS","instance_name":"i","early_release":false,"ignore_ipolicy":false,"mode":"replace_new_secondary","disks":[],"remote_node":"n4"}]"#,
        r#",[{"OP_ID":"OP_INSTANCE_FAILOVER","instance_name":"i","shutdown_timeout":120,"ignore_consistency":false,"target_node":"n4","ignore_ipolicy":false,"cleanup":false}]]]"#,
    ]
    .concat();
    let line = success("", ResultValue::Evacuation(evacuation)).to_line();
    assert!(line.ends_with(&format!(",\"result\":{expected}}}\n")), "{line}");
}

#[test]
fn only_what_must_be_is_escaped() {
    let line =
        success("", ResultValue::Node("q\"\\/\u{1}\u{1f}\u{7f}\u{8}\u{c}\n\r\té😀".to_owned())).to_line();
    assert!(line.contains("\"q\\\"\\\\/\\u0001\\u001f\u{7f}\\b\\f\\n\\r\\té😀\""), "{line}");
}
