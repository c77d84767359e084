//! `hbal --search=deep`: its output, and its reproducibility.

use htools::io::{FAILURE, SUCCESS};
use serde_json::Value;

use crate::failure_tags::text;
use crate::program::{Ran, hbal, moves};

const NODES: [(&str, &str); 4] = [("n1", ""), ("n2", ""), ("n3", ""), ("n4", "")];

/// A cluster with all instances on two of four nodes.
fn lopsided() -> String {
    let names: Vec<String> = (1..=8).map(|number| format!("i{number}")).collect();
    let place = |(number, name)| {
        let (primary, secondary) = if number % 3 == 0 { ("n2", "n1") } else { ("n1", "n2") };
        (name, primary, secondary, "")
    };
    let instances: Vec<_> = names.iter().map(String::as_str).enumerate().map(place).collect();
    text(&[], &NODES, &instances)
}

fn deep(options: &[&str]) -> Ran {
    let ran = hbal(&lopsided(), &[&["--search=deep", "--search-rounds=20"], options].concat());
    assert_eq!(ran.status, SUCCESS, "{}", ran.err);
    ran
}

fn document(options: &[&str]) -> Value {
    serde_json::from_str(&deep(&[&["--json"], options].concat()).out).expect("the result is JSON")
}

#[test]
fn the_summary_tells_what_the_moves_take_and_what_they_would_without_the_search() {
    let ran = deep(&[]);
    let lines: Vec<&str> = ran.out.lines().rev().take(2).collect();
    assert!(lines[1].starts_with(&format!("This takes {} moves, ", moves(&ran).len())), "{}", ran.out);
    assert!(lines[0].starts_with("(without --search=deep: "), "{}", ran.out);
}

#[test]
fn the_deep_search_repeats_itself_and_follows_its_seed() {
    assert_eq!(deep(&["--search-seed=7"]).out, deep(&["--search-seed=7", "--threads=1"]).out);
}

#[test]
fn the_document_has_the_cost_beside_the_moves_and_the_usual_result() {
    let document = document(&[]);
    let usual = serde_json::from_str::<Value>(&hbal(&lopsided(), &["--json"]).out).expect("JSON");
    let (found, greedy) = (&document["deep"]["cost"], &document["deep"]["greedy"]);
    let number = |document: &Value| document["moves"].as_array().map(|moves| moves.len() as u64);
    assert_eq!(found["moves"].as_u64(), number(&document));
    assert_eq!(greedy["cost"]["moves"].as_u64(), number(&usual));
    assert_eq!(greedy["score"], usual["final"]["score"]);
    assert!(document["final"]["score"].as_f64() <= usual["final"]["score"].as_f64());
    assert!(usual.get("deep").is_none());
}

#[test]
fn commands_are_printed_for_the_moves_that_are_listed() {
    let ran = deep(&["-C"]);
    let migrated = moves(&ran).iter().filter(|line| line.ends_with("a=f")).count();
    let commands = ran.out.matches("gnt-instance replace-disks").count();
    assert!(commands + migrated >= moves(&ran).len(), "{}", ran.out);
    assert!(ran.out.contains("echo jobset 1, "), "{}", ran.out);
}

#[test]
fn limits_of_moves_and_of_copies_are_kept() {
    assert_eq!(moves(&deep(&["-l", "2"])).len(), 2);
    let document = document(&["--max-copies=1"]);
    assert!(document["deep"]["cost"]["copies"].as_u64() <= Some(1), "{document}");
}

#[test]
fn with_as_many_copies_as_usual_only_migrations_may_be_more() {
    let document = document(&["--max-copies=usual"]);
    let copies = |path: &str| document.pointer(path).and_then(Value::as_u64).expect("a number of copies");
    assert!(copies("/deep/cost/copies") <= copies("/deep/greedy/cost/copies"), "{document}");
    assert_eq!(moves(&deep(&["--max-copies=usual", "-l", "1"])).len(), 1);
}

#[test]
fn effort_is_more_than_nothing() {
    for option in [
        "--search-time=0",
        "--search-time=x",
        "--search-rounds=0",
        "--search-seed=-1",
        "--max-copies=-1",
        "--max-copies=many",
    ] {
        assert_eq!(hbal(&lopsided(), &["--search=deep", option]).status, FAILURE, "{option}");
    }
}
