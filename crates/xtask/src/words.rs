//! Keeps retired phrases out of comments, messages, help and documentation.

use std::fs;
use std::path::PathBuf;

use chores::places::root;

use crate::criteria::texts_in;

/// Retired phrases in lower case, with their replacements.
const RETIRED: [(&str, &str); 17] = [
    ("make way", "be preempted"),
    ("makes way", "is preempted"),
    ("made way", "was preempted"),
    ("making way", "being preempted"),
    ("for ever", "forever"),
    ("anew", "again"),
    ("in vain", "without result, or failed"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("forestalled", "conflict"),
    ("come to its end", "end"),
    ("comes to its end", "ends"),
    ("came to its end", "ended"),
    ("come to an end", "end"),
    ("comes to an end", "ends"),
    ("laid down", "set"),
];

/// Files that must keep them: migrations can't be changed, nor the texts that their tests expect.
const EXEMPT: [&str; 3] = [
    "crates/store-sqlite/src/tests.rs",
    "crates/store-postgres/tests/it/schema.rs",
    "crates/xtask/src/words.rs",
];

/// Pages, directories and file extensions to check.
const PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
const DIRECTORIES: [&str; 5] = ["crates", "docs", "contrib", "console/src", "console/tests"];
const ENDINGS: [&str; 6] = ["rs", "md", "ts", "tsx", "py", "toml"];

/// Retired phrases in a text, with the number of the line in which each begins. A phrase can span lines of a
/// comment.
fn retired(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_start().trim_start_matches(['/', '!', '*', '#', '>']);
        let of_line = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        words.extend(of_line.filter(|word| !word.is_empty()).map(|word| (number, word.to_lowercase())));
    }
    let mut found = Vec::new();
    for (phrase, instead) in RETIRED {
        let phrase_words: Vec<&str> = phrase.split(' ').collect();
        for some in words.windows(phrase_words.len()) {
            if some.iter().map(|(_, word)| word.as_str()).eq(phrase_words.iter().copied()) {
                found.push((some[0].0, phrase, instead));
            }
        }
    }
    found
}

#[test]
fn no_text_has_a_retired_phrase() {
    let mut files: Vec<PathBuf> = PAGES.iter().map(|page| root().join(page)).collect();
    files.extend(DIRECTORIES.iter().flat_map(|directory| texts_in(&root().join(directory), &ENDINGS)));
    assert!(files.len() > 500, "the texts are elsewhere");
    let mut wrong = Vec::new();
    for path in files {
        let name = path.strip_prefix(root()).expect("of the project").display().to_string();
        if EXEMPT.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a text");
        wrong.extend(
            retired(&text)
                .into_iter()
                .map(|(line, phrase, instead)| format!("{name}:{line}: \"{phrase}\": write \"{instead}\"")),
        );
    }
    assert!(wrong.is_empty(), "{} retired phrases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_retired_phrase_is_found_in_any_case_over_lines_and_as_a_whole_only() {
    let text =
        "/// It Makes\n/// way for a lease, and is planned anew.\nfn hunt_anew() { amend(\"recommend\") }\n";
    let found: Vec<(usize, &str)> =
        retired(text).into_iter().map(|(line, phrase, _)| (line, phrase)).collect();
    assert_eq!(found, [(1, "makes way"), (2, "anew")]);
}
