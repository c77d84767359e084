//! Exit statuses: 0, 1 for wrong input, 2 for a wrong command line. In case of an error, standard output is
//! empty.

use crate::shell::{ALLOCATE, UNBALANCED, allot, file, fresh, request};

fn refused(args: &[&str], status: i32) {
    let ran = allot(args);
    assert_eq!(ran.status, status, "{args:?}: {}", ran.err);
    assert_eq!(ran.out, "", "{args:?}");
    assert!(!ran.err.is_empty(), "{args:?} says nothing");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    refused(&[], 2);
    refused(&["hnothing"], 2);
    refused(&["hail", "--no-such-option"], 2);
    refused(&["hbal", "--no-such-option"], 2);
    refused(&["hbal", "-t"], 2);
}

#[test]
fn a_wrong_value_ends_with_1() {
    let path = file("cluster", UNBALANCED);
    refused(&["hbal", "-t", &path, "-l", "many"], 1);
    refused(&["hbal", "-t", &path, "-g", "much"], 1);
}

#[test]
fn a_missing_file_ends_with_1() {
    let missing = fresh("missing");
    let missing = missing.to_str().expect("a plain path");
    refused(&["hail", missing], 1);
    refused(&["hbal", "-t", missing], 1);
    refused(&["hbal", "-I", missing], 1);
    refused(&["hail"], 1);
    refused(&["hbal"], 1);
}

#[test]
fn a_malformed_request_ends_with_1_and_no_answer() {
    let whole = request(ALLOCATE);
    for message in
        ["", "{", "[]", "null", "{}", &whole[..whole.len() - 1], &whole.replace("memory", "mammary")]
    {
        refused(&["hail", &file("request", message)], 1);
    }
}

#[test]
fn a_malformed_cluster_ends_with_1() {
    for text in ["", "g\n\nn\n\ni\n\n", &UNBALANCED.replace("n2.x|16384", "n2.x|lots")] {
        refused(&["hbal", "-t", &file("cluster", text)], 1);
    }
}

#[test]
fn a_request_that_cannot_be_granted_is_answered_all_the_same() {
    let wanted = ALLOCATE.replace("\"memory\":1024", "\"memory\":999999");
    let ran = allot(&["hail", &file("request", &request(&wanted))]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("the answer is JSON");
    assert_eq!((&answer["success"], &answer["result"]), (&false.into(), &serde_json::json!([])));
}

#[test]
fn a_request_may_come_from_standard_input() {
    let message = std::fs::File::open(file("request", &request(ALLOCATE))).expect("a file");
    let ran = crate::shell::run(crate::shell::command().args(["hail", "-"]).stdin(message));
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("\"success\":true"), "{}", ran.out);
}
