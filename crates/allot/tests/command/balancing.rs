//! Balancing: the listing, the JSON document, explanations, and edge cases.

use serde_json::Value;

use crate::shell::{ALLOCATE, UNBALANCED, allot, file, request, request_with};

/// Moves of a listing: instance, nodes before, nodes after, score, action. Names have no suffix.
fn listed(out: &str) -> Vec<[String; 5]> {
    let moves = out.lines().filter_map(|line| line.split_once(" a="));
    moves
        .map(|(line, action)| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, instance, from, "=>", to, score] = words.as_slice() else { panic!("{line}") };
            [*instance, *from, *to, *score, action].map(str::to_owned)
        })
        .collect()
}

/// The moves in the JSON document, in the form of [`listed`].
fn documented(document: &Value) -> Vec<[String; 5]> {
    let alias = |name: &Value| name.as_str().expect("a name").trim_end_matches(".x").to_owned();
    let pair = |names: &Value| -> String {
        names.as_array().expect("a list").iter().map(alias).collect::<Vec<_>>().join(":")
    };
    let moves = document["moves"].as_array().expect("a list");
    moves
        .iter()
        .map(|entry| {
            let score = format!("{:.8}", entry["score"].as_f64().expect("a number"));
            let action = entry["action"].as_str().expect("a text").to_owned();
            [alias(&entry["instance"]), pair(&entry["from"]), pair(&entry["to"]), score, action]
        })
        .collect()
}

#[test]
fn the_document_has_the_moves_of_the_listing() {
    let path = file("cluster", UNBALANCED);
    let (text, json) = (allot(&["hbal", "-t", &path]), allot(&["hbal", "-t", &path, "--json"]));
    assert_eq!((text.status, json.status), (0, 0), "{}{}", text.err, json.err);
    let document: Value = serde_json::from_str(&json.out).expect("the document is JSON");
    let moves = listed(&text.out);
    assert!(!moves.is_empty(), "{}", text.out);
    assert_eq!(documented(&document), moves);
    assert_eq!((&document["nodes"], &document["instances"]), (&3.into(), &4.into()));
    let (first, last) = (&document["initial"]["score"], &document["final"]["score"]);
    assert!(first.as_f64() > last.as_f64());
    let score = format!("{:.8}", last.as_f64().expect("a number"));
    assert_eq!(moves.last().map(|m| m[3].clone()), Some(score));
}

#[test]
fn standard_output_has_nothing_but_the_document() {
    let cluster = file("cluster", UNBALANCED);
    let empty = file("cluster", "\n\n\n\n");
    for options in [
        &[&cluster[..], "--min-score=100"][..],
        &[&cluster, "-v", "-v", "-v", "-v", "-v"],
        &[&cluster, "-C"],
        &[&cluster, "-p", "--print-instances", "-l", "1"],
        &[&empty],
        &[&empty, "-v", "-v"],
    ] {
        let ran = allot(&[&["hbal", "--json", "-t"], options].concat());
        assert_eq!(ran.status, 0, "{options:?}: {}", ran.err);
        let document: Value = serde_json::from_str(&ran.out).expect("the document is JSON");
        assert_eq!(document["instances"], if options[0] == empty { 0.into() } else { Value::from(4) });
        assert!(document["moves"].is_array());
    }
}

#[test]
fn explanations_add_up_to_the_gain() {
    let path = file("cluster", UNBALANCED);
    let plain = allot(&["hbal", "-t", &path]);
    let explained = allot(&["hbal", "-t", &path, "--explain"]);
    assert_eq!(explained.status, 0, "{}", explained.err);
    assert_eq!(listed(&explained.out), listed(&plain.out));
    assert!(explained.out.lines().count() > plain.out.lines().count());
    let json = allot(&["hbal", "-t", &path, "--explain", "--json"]);
    let document: Value = serde_json::from_str(&json.out).expect("the document is JSON");
    let mut score = document["initial"]["score"].as_f64().expect("a number");
    for entry in document["moves"].as_array().expect("a list") {
        let changes = entry["changes"].as_array().expect("a list");
        let change: f64 = changes.iter().filter_map(|c| c["weighted"].as_f64()).sum();
        score += change;
        let after = entry["score"].as_f64().expect("a number");
        assert!((score - after).abs() < 1e-9, "{score} is not {after}");
        for change in changes {
            let name = change["component"].as_str().expect("a name");
            assert!(explained.out.contains(name), "{name} is not explained in the listing");
        }
    }
}

#[test]
fn a_request_as_source_loads_each_instance_once() {
    let path = file("request", &request(ALLOCATE));
    let ran = allot(&["hbal", "-I", &path, "-pname,tmem,fmem,pcnt", "-v"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("Loaded 2 nodes, 1 instances"), "{}", ran.out);
    let row = ran.err.lines().find(|line| line.contains("n1")).expect("a table of nodes");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(&words[words.len() - 3..], ["16384", "15360", "1"], "{row}");
}

#[test]
fn an_empty_cluster_needs_no_balancing() {
    for text in ["\n\n\n\n", "g|u|preferred||\n\n\n\n\n"] {
        let ran = allot(&["hbal", "-t", &file("cluster", text)]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert!(ran.out.contains("Cluster is empty, exiting."), "{}", ran.out);
    }
}

#[test]
fn a_mirrored_instance_without_secondary_is_left_where_it_is() {
    let text =
        UNBALANCED.replace("i1.x|1024|1024|1|running|Y|n1.x|n2.x|", "i1.x|1024|1024|1|running|Y|n1.x||");
    let path = file("cluster", &text);
    for options in [&["-v"][..], &["--evac-mode", "-O", "n1.x"], &["--ignore-soft-errors"], &["--json"]] {
        let ran = allot(&[&["hbal", "-t", path.as_str()][..], options].concat());
        assert_eq!(ran.status, 0, "{options:?}: {}", ran.err);
        assert!(listed(&ran.out).iter().all(|m| m[0] != "i1"), "{}", ran.out);
    }
}

#[test]
fn requests_about_a_mirrored_instance_without_secondary_are_answered() {
    let evacuate =
        |mode: &str| format!(r#"{{"type":"node-evacuate","instances":["i1"],"evac_mode":"{mode}"}}"#);
    let wanted = [
        ALLOCATE.to_owned(),
        evacuate("primary-only"),
        evacuate("secondary-only"),
        evacuate("all"),
        r#"{"type":"relocate","name":"i1","required_nodes":1,"relocate_from":["n2"]}"#.to_owned(),
        r#"{"type":"change-group","instances":["i1"],"target_groups":[]}"#.to_owned(),
        r#"{"type":"multi-evacuate","nodes":["n1"]}"#.to_owned(),
    ];
    for wanted in &wanted {
        let ran = allot(&["hail", &file("request", &request_with("drbd", wanted))]);
        assert_eq!(ran.status, 0, "{wanted}: {}", ran.err);
        let answer: Value = serde_json::from_str(&ran.out).expect("the answer is JSON");
        assert!(answer["success"].is_boolean() && answer["info"].is_string(), "{answer}");
    }
}
