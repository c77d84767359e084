//! Tests are independent of the code under test: no crate of chores depends on a crate of the engine, so that
//! a fault there can't hide itself from a comparison.

use std::fs;
use std::path::Path;

/// Crates of chores. Each can depend on those before it.
const CHORES: [&str; 6] = ["chores", "advisories", "differential", "e2e", "bench", "xtask"];

/// The only other allowed crate: a database server.
const TOOL: &str = "scratch-postgres";

#[test]
fn no_crate_of_chores_depends_on_what_it_tests() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
    for (position, name) in CHORES.iter().enumerate() {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a manifest");
        let sections = manifest
            .split("\n[")
            .filter(|section| section.split(']').next().is_some_and(|title| title.ends_with("dependencies")));
        let words = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().trim().to_owned();
        let known: Vec<String> = sections.flat_map(|section| section.lines().skip(1).map(words)).collect();
        assert!(known.iter().any(|one| one == "anyhow"), "the dependencies of {name} are written otherwise");
        for one in known.iter().filter(|one| !one.is_empty() && crates.join(one).is_dir()) {
            let may = CHORES[..position].contains(&one.as_str()) || one == TOOL;
            assert!(may, "{name} depends on {one}");
        }
    }
}
