//! Generates the tables of `docs/reference/configuration.md`.
#![cfg(test)]

use std::fmt::Write;

use super::{Configuration, TABLE};

const BEGIN: &str = "<!-- settings: generated, see crates/allot/src/config -->\n";
const END: &str = "<!-- end of settings -->\n";

/// One table per section of the configuration file.
fn tables() -> String {
    let defaults = Configuration::default();
    let mut text = String::new();
    let mut section = None;
    for setting in TABLE {
        if section != Some(setting.section()) {
            section = Some(setting.section());
            let of_file = match setting.section() {
                "" => String::new(),
                name => format!(": section `[{name}]`"),
            };
            let _ = writeln!(text, "\n### {}{of_file}\n", setting.heading());
            text.push_str("| key | flag | variable | default | meaning |\n| --- | --- | --- | --- | --- |\n");
        }
        let name = setting.key.rsplit('.').next().unwrap_or_default();
        let default = match &*setting.text(&defaults) {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        let _ = writeln!(
            text,
            "| `{name}` | `--{} {}` | `{}` | {default} | {} |",
            setting.flag(),
            setting.value_name,
            setting.variable(),
            setting.help.trim()
        );
    }
    text.push('\n');
    text
}

/// Checks that a page of the documentation has `wanted` between two marks. With `ALLOT_BLESS` set, writes it
/// there instead.
pub(crate) fn check_generated(page: &str, [begin, end]: [&str; 2], wanted: &str) {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(&path).expect("the document");
    let (before, rest) = document.split_once(begin).expect("the mark where it begins");
    let (present, after) = rest.split_once(end).expect("the mark where it ends");
    if std::env::var_os("ALLOT_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{wanted}{end}{after}"))
            .expect("the document is written");
    } else {
        assert!(present == wanted, "{page} is out of date: run this test with ALLOT_BLESS=1");
    }
}

#[test]
fn the_document_has_every_setting_as_it_is() {
    check_generated("docs/reference/configuration.md", [BEGIN, END], &tables());
}
