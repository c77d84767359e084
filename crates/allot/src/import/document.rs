//! The table of `docs/from-blazar.md`.
#![cfg(test)]

use std::fmt::Write;

use super::options::{OPTIONS, said};

const BEGIN: &str = "<!-- options: generated, see crates/allot/src/import -->\n";
const END: &str = "<!-- end of options -->\n";

fn table() -> String {
    let mut text = String::from("\n| section | option | what becomes of it |\n| --- | --- | --- |\n");
    for known in OPTIONS {
        let name = if known.name == "*" { "all others".to_owned() } else { format!("`{}`", known.name) };
        let _ = writeln!(text, "| `[{}]` | {name} | {} |", known.section, said(known));
    }
    text.push('\n');
    text
}

/// With `ALLOT_BLESS` set, the document is written again.
#[test]
fn the_document_has_every_option_of_blazar_as_it_is_taken_over() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/from-blazar.md");
    let document = std::fs::read_to_string(path).expect("the document");
    let (before, rest) = document.split_once(BEGIN).expect("the mark where options begin");
    let (present, after) = rest.split_once(END).expect("the mark where options end");
    let wanted = table();
    if std::env::var_os("ALLOT_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{wanted}{END}{after}"))
            .expect("the document is written");
    } else {
        assert!(present == wanted, "docs/from-blazar.md is out of date: run this test with ALLOT_BLESS=1");
    }
}
