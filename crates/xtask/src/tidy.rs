//! Tidiness rules that no compiler checks: file sizes, first lines of modules, forbidden words.

use std::fs;
use std::path::PathBuf;

use chores::places::root;

use crate::source::texts_in;

/// Maximum number of lines. Longer files must be split by concept.
const MOST_LINES: usize = 700;

fn all_good(extensions: &[&str], what: &str, good: impl Fn(&str) -> bool) {
    let files = texts_in(&root(), extensions).expect("the files");
    assert!(!files.is_empty(), "no files to look at");
    let is_bad = |path: &PathBuf| !good(&fs::read_to_string(path).expect("UTF-8"));
    let bad: Vec<String> =
        files.iter().filter(|path| is_bad(path)).map(|path| path.display().to_string()).collect();
    assert!(bad.is_empty(), "{what}:\n{}", bad.join("\n"));
}

#[test]
fn files_are_short() {
    let what = format!("longer than {MOST_LINES} lines: split it by concept");
    all_good(&["rs"], &what, |content| content.lines().count() <= MOST_LINES);
}

#[test]
fn modules_say_what_they_are_for() {
    let starts = |content: &str| content.starts_with("//!") || content.starts_with("#![no_main]\n//!");
    all_good(&["rs"], "does not start with `//!`", starts);
}

/// Whether every code block in comments is marked as something other than Rust.
fn has_no_doc_tests(content: &str) -> bool {
    let comments = content.lines().map(str::trim_start).filter_map(|line| {
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).map(str::trim_start)
    });
    let mut fences = comments.filter_map(|line| line.strip_prefix("```"));
    // Every second fence closes a block.
    let mut opening = std::iter::from_fn(|| fences.next().inspect(|_| _ = fences.next()));
    opening.all(|kind| ["text", "toml", "json", "console", "ignore"].contains(&kind))
}

#[test]
fn no_comment_has_code_that_nothing_runs() {
    // Doc tests would need another build of every library.
    all_good(&["rs"], "has a doc test, which nothing runs: make it a unit test", has_no_doc_tests);
    assert!(has_no_doc_tests("//! ```text\n//! a\n//! ```\n/// ```toml\n/// ```\n"));
    for runs in ["/// ```\n/// f()\n/// ```\n", "//! ```text\n//! ```\n//! ```rust\n//! ```\n"] {
        assert!(!has_no_doc_tests(runs), "{runs}");
    }
}

#[test]
fn nothing_is_left_to_do() {
    let word = concat!("to", "do!(");
    all_good(&["rs"], "contains a macro that only reminds", |content| !content.contains(word));
}

#[test]
fn no_path_of_one_machine() {
    let path = concat!("/wo", "rk/");
    all_good(&["rs", "toml", "md"], "contains a path that only exists on one machine", |content| {
        !content.contains(path)
    });
}
