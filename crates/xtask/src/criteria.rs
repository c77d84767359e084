//! Tests of the documentation: its tables of acceptance criteria list exactly the tests that exist, and the
//! list of features has every identifier that is used anywhere.

use std::collections::BTreeSet;
use std::fs;

use chores::places::root;

use crate::source::texts_in;

/// Prefixes of names of tests of criteria, and the page with their table.
const CRITERIA: [(&str, &str); 15] = [
    ("cls_", "docs/explanation/lease-types.md"),
    ("cls_10_", "docs/how-to/negotiate.md"),
    ("fb_", "docs/how-to/survive-failures.md"),
    ("fp_", "docs/reference/pools.md"),
    ("hk_", "docs/how-to/housekeeping.md"),
    ("lp_", "docs/reference/pools.md"),
    ("pre_", "docs/how-to/offer-preemptible-instances.md"),
    ("energy_a_", "docs/how-to/save-power.md"),
    ("energy_b_", "docs/how-to/save-power.md"),
    ("energy_c_", "docs/how-to/save-power.md"),
    ("energy_d_", "docs/how-to/save-power.md"),
    ("energy_e_", "docs/how-to/save-power.md"),
    ("energy_f_", "docs/how-to/save-power.md"),
    ("energy_g_", "docs/how-to/save-power.md"),
    ("energy_h_", "docs/how-to/save-power.md"),
];

/// The longest of these prefixes that matches the name.
fn prefix_of(name: &str) -> Option<&'static str> {
    let prefixes = CRITERIA.iter().map(|(prefix, _)| *prefix);
    prefixes.filter(|prefix| name.starts_with(prefix)).max_by_key(|prefix| prefix.len())
}

/// Names in a text that follow `before`.
fn names<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = String> + 'a {
    let starts = text.match_indices(before).map(move |(at, _)| &text[at + before.len()..]);
    let name = |rest: &str| {
        let letters = rest.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_');
        letters.collect::<String>()
    };
    starts.map(name)
}

/// Names of tests of criteria in a text that follow `before`.
fn tests_of_criteria<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = String> + 'a {
    names(text, before).filter(|name| prefix_of(name).is_some())
}

/// Names of all functions in all crates.
fn functions() -> BTreeSet<String> {
    let files = texts_in(&root().join("crates"), &["rs"]).expect("the crates");
    let texts = files.iter().map(|file| fs::read_to_string(file).expect("a source"));
    texts.flat_map(|text| names(&text, "fn ").collect::<Vec<_>>()).collect()
}

#[test]
fn the_tables_of_criteria_name_the_tests_that_there_are() {
    let there = functions();
    for (prefix, table) in CRITERIA {
        let of = |name: &String| prefix_of(name) == Some(prefix);
        let text = fs::read_to_string(root().join(table)).expect("the table");
        let named: BTreeSet<String> = tests_of_criteria(&text, "`").filter(of).collect();
        let there: BTreeSet<String> = there.iter().filter(|name| of(name)).cloned().collect();
        assert!(!there.is_empty(), "no tests of {prefix}");
        assert_eq!(named.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new(), "no such tests");
        assert_eq!(there.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "not in {table}");
    }
}

const FEATURES: &str = "docs/reference/features.md";

/// Identifiers of features in a text, such as `API-create`, `CLS-03`, `PRE-03a`, `HT-hbal`, `W17`.
fn identifiers(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| is_identifier(word)).collect()
}

fn is_identifier(word: &str) -> bool {
    let number = |rest: &str| {
        let rest = rest.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(rest);
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())
    };
    let name = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
    match word.split_once('-') {
        Some(("API" | "HT", rest)) => name(rest),
        Some(("CLS" | "PRE" | "FP" | "LP", rest)) => number(rest),
        Some(_) => false,
        None => word.strip_prefix('W').is_some_and(|rest| rest.len() <= 2 && number(rest)),
    }
}

#[test]
fn each_feature_that_is_named_is_in_the_list_of_features() {
    let list = fs::read_to_string(root().join(FEATURES)).expect("the list");
    let known = identifiers(&list);
    let inside = |word: &str| word.starts_with("FP-") || word.starts_with("LP-");
    let mut files = texts_in(&root().join("crates"), &["rs"]).expect("the crates");
    files.retain(|file| !file.ends_with(file!().trim_start_matches("crates/")));
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let unknown: Vec<_> =
            identifiers(&text).into_iter().filter(|word| !known.contains(word) && !inside(word)).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?} is not in {FEATURES}", file.display());
        for elsewhere in ["spec §", "seed 00"] {
            assert!(
                !text.contains(elsewhere),
                "{}: {elsewhere:?} points out of the repository",
                file.display()
            );
        }
    }
}

#[test]
fn the_list_of_features_names_tests_that_there_are() {
    let list = fs::read_to_string(root().join(FEATURES)).expect("the list");
    let functions = functions();
    let quoted: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let mut named = 0;
    for quoted in quoted {
        if quoted.starts_with("crates/") {
            assert!(root().join(quoted).exists(), "{quoted} is not there");
        } else if is_test_of_a_fault(quoted) {
            assert!(functions.contains(quoted), "there is no test {quoted}");
        } else {
            continue;
        }
        named += 1;
    }
    assert!(named > 50, "{named} tests are named");
}

/// Whether this is the name of a test of a defect, such as `w1_...`.
fn is_test_of_a_fault(name: &str) -> bool {
    let number = name.strip_prefix('w').and_then(|rest| rest.split_once('_'));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}
