//! Checks the table of options in `docs/how-to/replace-blazar.md`.
#![cfg(test)]

use std::fmt::Write;

use super::options::rows;
use crate::config::document::check_generated;

const BEGIN: &str = "<!-- options: generated, see crates/allot/src/import -->\n";
const END: &str = "<!-- end of options -->\n";

fn table() -> String {
    let mut text = String::from("\n| section | option | counterpart |\n| --- | --- | --- |\n");
    for (section, names, counterpart) in rows() {
        let name = |name: &str| if name == "*" { "all others".to_owned() } else { format!("`{name}`") };
        let names: Vec<String> = names.into_iter().map(name).collect();
        let _ = writeln!(text, "| `[{section}]` | {} | {counterpart} |", names.join(", "));
    }
    text.push('\n');
    text
}

#[test]
fn the_document_has_every_option_of_blazar_as_it_is_taken_over() {
    check_generated("docs/how-to/replace-blazar.md", [BEGIN, END], &table());
}
