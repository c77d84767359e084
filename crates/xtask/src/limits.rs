//! Limits of size and of prose, in `crates/xtask/limits.toml`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use chores::places::root;
use chores::run;

pub(crate) const PATH: &str = "crates/xtask/limits.toml";

const CEILING: &str = "code_lines";

pub(crate) struct Limits {
    /// Maximum number of lines of code.
    pub(crate) code_lines: usize,
    /// Maximum hits per 1,000 words of each area.
    pub(crate) rates: BTreeMap<String, f64>,
}

fn path() -> PathBuf {
    root().join(PATH)
}

impl Limits {
    pub(crate) fn read() -> Result<Self> {
        let text = fs::read_to_string(path()).with_context(|| format!("cannot read {PATH}"))?;
        let mut limits = Self { code_lines: 0, rates: BTreeMap::new() };
        for (name, value) in text.lines().filter_map(|line| line.split_once(" = ")) {
            let invalid = || format!("{PATH}: {name} cannot be '{value}'");
            if name == CEILING {
                limits.code_lines = value.parse().with_context(invalid)?;
            } else {
                limits.rates.insert(name.to_owned(), value.parse().with_context(invalid)?);
            }
        }
        Ok(limits)
    }

    pub(crate) fn write(&self) -> Result<()> {
        let mut text = format!(
            "# Maximum number of lines of code (`cargo xtask size`). Raise it by hand, with a reason in the commit.\n\
             {CEILING} = {}\n\n\
             # Maximum rate of unusual constructions per 1,000 words. `cargo xtask words --record` lowers them.\n\
             [prose]\n",
            self.code_lines
        );
        for (name, rate) in &self.rates {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} = {rate:.1}");
        }
        run::write(&path(), text.as_bytes())
    }
}
