//! `cargo xtask size`: lines of code, comments and tests of each crate, and the ceiling.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use anyhow::Result;
use chores::arguments::Arguments;

use crate::limits::{Limits, PATH};
use crate::source::{Source, sources};

/// Lines that aren't empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    /// With macros and build scripts.
    code: usize,
    comments: usize,
    /// Code and comments of tests.
    tests: usize,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }
}

fn lines_of(source: &Source) -> Lines {
    let mut lines = Lines::default();
    let mut at = 0;
    for (text, code) in source.text.split('\n').zip(source.code.split('\n')) {
        let end = at + text.len();
        if !text.trim().is_empty() {
            if source.is_test(&(at..end)) {
                lines.tests += 1;
            } else if code.trim().is_empty() {
                lines.comments += 1;
            } else {
                lines.code += 1;
            }
        }
        at = end + 1;
    }
    lines
}

/// Lines of each area, and of all.
fn count() -> Result<(BTreeMap<String, Lines>, Lines)> {
    let mut areas = BTreeMap::<String, Lines>::new();
    let mut total = Lines::default();
    for source in sources()?.iter().filter(|source| source.language.is_code()) {
        let lines = lines_of(source);
        *areas.entry(source.area().to_owned()).or_default() += lines;
        total += lines;
    }
    Ok((areas, total))
}

pub fn main(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    let (areas, total) = count()?;
    println!("{:20} {:>8} {:>9} {:>8}", "", "code", "comments", "tests");
    for (name, lines) in areas.iter().map(|(name, lines)| (name.as_str(), lines)).chain([("total", &total)]) {
        println!("{name:20} {:8} {:9} {:8}", lines.code, lines.comments, lines.tests);
    }
    println!("{:20} {:8}  in {PATH}", "ceiling", Limits::read()?.code_lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Language;

    #[test]
    fn the_code_is_below_its_ceiling() {
        let (areas, total) = count().expect("lines");
        assert!(areas.len() > 20, "the crates are elsewhere: {areas:?}");
        let ceiling = Limits::read().expect("limits").code_lines;
        assert!(
            total.code <= ceiling,
            "{} lines of code, and the ceiling is {ceiling}: lower the code, or raise {} with a reason in the commit",
            total.code,
            PATH
        );
    }

    #[test]
    fn lines_are_counted_by_what_they_contain() {
        let text = "//! a\n\nfn b() { // c\n    \"d\n    e\";\n}\n#[cfg(test)]\nmod tests {\n    // f\n}\n";
        let source = Source::new("crates/a/src/lib.rs".to_owned(), Language::Rust, text.to_owned());
        assert_eq!(lines_of(&source), Lines { code: 4, comments: 1, tests: 4 });
        assert_eq!(source.area(), "a");
    }
}
