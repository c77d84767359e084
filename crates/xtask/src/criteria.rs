//! The table of acceptance criteria in the documentation names the tests that there are, and all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::places::root;

/// How names of tests of criteria begin, and where their table is.
const CRITERIA: [(&str, &str); 15] = [
    ("cls_", "docs/lease-types.md"),
    ("cls_10_", "docs/negotiation.md"),
    ("fb_", "docs/failure-buffer.md"),
    ("fp_", "docs/pools.md"),
    ("hk_", "docs/housekeeping.md"),
    ("lp_", "docs/pools.md"),
    ("pre_", "docs/preemptible.md"),
    ("energy_a_", "docs/energy.md"),
    ("energy_b_", "docs/energy.md"),
    ("energy_c_", "docs/energy.md"),
    ("energy_d_", "docs/energy.md"),
    ("energy_e_", "docs/energy.md"),
    ("energy_f_", "docs/energy.md"),
    ("energy_g_", "docs/energy.md"),
    ("energy_h_", "docs/energy.md"),
];

/// The longest of these that the name begins with.
fn prefix_of(name: &str) -> Option<&'static str> {
    let prefixes = CRITERIA.iter().map(|(prefix, _)| *prefix);
    prefixes.filter(|prefix| name.starts_with(prefix)).max_by_key(|prefix| prefix.len())
}

/// The names of tests of criteria in a text, which follow `before`.
fn names<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = String> + 'a {
    let starts = text.match_indices(before).map(move |(at, _)| &text[at + before.len()..]);
    let name = |rest: &str| {
        let letters = rest.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_');
        letters.collect::<String>()
    };
    starts.map(name).filter(|name| prefix_of(name).is_some())
}

/// All sources in a directory and those in it.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_tables_of_criteria_name_the_tests_that_there_are() {
    let files = sources(&root().join("crates"));
    let texts = files.iter().map(|file| fs::read_to_string(file).expect("a source"));
    let there: BTreeSet<String> = texts.flat_map(|text| names(&text, "fn ").collect::<Vec<_>>()).collect();
    for (prefix, table) in CRITERIA {
        let of = |name: &String| prefix_of(name) == Some(prefix);
        let text = fs::read_to_string(root().join(table)).expect("the table");
        let named: BTreeSet<String> = names(&text, "`").filter(of).collect();
        let there: BTreeSet<String> = there.iter().filter(|name| of(name)).cloned().collect();
        assert!(!there.is_empty(), "no tests of {prefix}");
        assert_eq!(named.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new(), "no such tests");
        assert_eq!(there.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "not in {table}");
    }
}
