//! Checks the table of options in `docs/from-blazar.md`.
#![cfg(test)]

use std::fmt::Write;

use super::options::{OPTIONS, said};
use crate::config::document::check_generated;

const BEGIN: &str = "<!-- options: generated, see crates/allot/src/import -->\n";
const END: &str = "<!-- end of options -->\n";

fn table() -> String {
    let mut text = String::from("\n| section | option | counterpart |\n| --- | --- | --- |\n");
    for known in OPTIONS {
        let name = if known.name == "*" { "all others".to_owned() } else { format!("`{}`", known.name) };
        let _ = writeln!(text, "| `[{}]` | {name} | {} |", known.section, said(known));
    }
    text.push('\n');
    text
}

#[test]
fn the_document_has_every_option_of_blazar_as_it_is_taken_over() {
    check_generated("docs/from-blazar.md", [BEGIN, END], &table());
}
