//! Limits import cycles: within a crate, files should depend on each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of files in a cycle.
const MOST: usize = 3;

/// Maximum number of cycles in all crates.
const MOST_CIRCLES: usize = 8;

/// Larger cycles that are allowed: a crate, a file in the cycle, and the reason.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("placement", "allocate", "whether a node may fail is found out by placing its instances elsewhere"),
    ("placement", "balance", "the bound of the search is of the balancer's own figures"),
];

/// The modules that each module imports from. Names are as in `leasing::create`; the crate's root is the
/// empty name.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// A `use`: whether it is a re-export, and the paths it names.
type Use = (bool, Vec<String>);

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates").to_owned()
}

/// Collects the files below a directory, by module name.
fn modules(directory: &Path, above: &str, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let name = if above.is_empty() { stem.clone() } else { format!("{above}::{stem}") };
        if path.is_dir() {
            modules(&path, &name, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let root = matches!(stem.as_str(), "lib" | "main" | "mod");
            found.insert(if root { above.to_owned() } else { name }, path);
        }
    }
}

/// The code of a file without comments and without the tests at its end.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Expands `use a::{b, c::{d, e}}` into single paths.
fn paths(tree: &str, above: &str, found: &mut Vec<String>) {
    let (mut depth, mut begin) = (0, 0);
    let mut parts = Vec::new();
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[begin..]);
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        match part.strip_suffix('}').and_then(|part| part.split_once('{')) {
            Some((prefix, inner)) => paths(inner, &format!("{above}{}", prefix.trim()), found),
            None => found.push(format!("{above}{part}")),
        }
    }
}

/// The module of this crate that a path in `module` refers to: the deepest known one.
fn target(path: &str, module: &str, known: &BTreeMap<String, PathBuf>) -> Option<String> {
    let mut words: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut at: Vec<&str> = module.split("::").filter(|word| !word.is_empty()).collect();
    match words[0] {
        "crate" => at.clear(),
        "self" => {}
        "super" => {
            while words.first() == Some(&"super") {
                at.pop();
                words.remove(0);
            }
            words.insert(0, "self");
        }
        child => {
            at.push(child);
            if words.len() < 2 || !known.contains_key(&at.join("::")) {
                return None;
            }
        }
    }
    at.extend(words.into_iter().skip(1));
    while !known.contains_key(&at.join("::")) {
        at.pop()?;
    }
    Some(at.join("::")).filter(|found| found != module)
}

/// The `use` items of a file, with the paths they name. Renamed items keep their original name.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (before, rest) in code.match_indices("use ").map(|(at, _)| code.split_at(at)) {
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let Some((tree, _)) = rest["use ".len()..].split_once(';') else { continue };
        if line.is_empty() || line.starts_with("pub") {
            let mut named = Vec::new();
            paths(tree, "", &mut named);
            found.push((line.starts_with("pub"), named));
        }
    }
    found
}

/// The module that a path refers to, and the name of the item in it.
fn item<'p>(path: &'p str, module: &str, known: &BTreeMap<String, PathBuf>) -> Option<(String, &'p str)> {
    let path = path.split(" as ").next().unwrap_or(path).trim();
    Some((target(path, module, known)?, path.rsplit("::").next().unwrap_or(path)))
}

fn imports(source: &Path) -> Imports {
    let mut known = BTreeMap::new();
    modules(source, "", &mut known);
    let read = |(module, path): (&String, &PathBuf)| {
        let text = fs::read_to_string(path).expect("a source file");
        (module.clone(), uses(&code(&text)))
    };
    let all: BTreeMap<String, Vec<Use>> = known.iter().map(read).collect();
    // An import of a re-exported item depends on the file that defines it.
    let mut reexports: BTreeMap<(String, &str), String> = BTreeMap::new();
    for (module, uses) in &all {
        for path in uses.iter().filter(|(reexport, _)| *reexport).flat_map(|(_, paths)| paths) {
            if let Some((from, name)) = item(path, module, &known) {
                reexports.insert((module.clone(), name), from);
            }
        }
    }
    let of = |(module, uses): (&String, &Vec<Use>)| {
        let named = uses.iter().filter(|(reexport, _)| !reexport).flat_map(|(_, paths)| paths);
        let origin = |(mut at, name): (String, &str)| {
            while let Some(from) = reexports.get(&(at.clone(), name)) {
                at.clone_from(from);
            }
            at
        };
        let targets = named.filter_map(|path| item(path, module, &known)).map(origin);
        (module.clone(), targets.filter(|target| target != module).collect())
    };
    all.iter().map(of).collect()
}

/// All modules reachable from a module.
fn reached<'a>(from: &'a str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(next) = left.pop() {
        left.extend(imports[next].iter().map(String::as_str).filter(|target| found.insert(*target)));
    }
    found
}

/// Groups of modules that can all reach each other.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<&str>> {
    let all: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reached(module, imports))).collect();
    let mut found = BTreeSet::new();
    for (module, reached) in &all {
        let both = reached.iter().copied().filter(|other| all[other].contains(module));
        found.insert(both.collect::<BTreeSet<&str>>());
    }
    found.retain(|circle| circle.len() > 1);
    found
}

#[test]
fn circles_of_files_are_few_and_small() {
    let (mut wrong, mut all) = (Vec::new(), Vec::new());
    let mut exceptions: BTreeSet<(&str, &str)> =
        EXCEPTIONS.iter().map(|(of, file, _)| (*of, *file)).collect();
    let mut files = 0;
    for entry in fs::read_dir(crates()).expect("the crates") {
        let path = entry.expect("a crate").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if !path.join("src").is_dir() {
            continue;
        }
        let imports = imports(&path.join("src"));
        files += imports.len();
        let found = circles(&imports);
        all.extend(
            found.iter().map(|circle| format!("{name}: {}", Vec::from_iter(circle.clone()).join(", "))),
        );
        for circle in found.into_iter().filter(|circle| circle.len() > MOST) {
            let before = exceptions.len();
            exceptions.retain(|(of, file)| *of != name || !circle.contains(file));
            if exceptions.len() == before {
                wrong.push(format!("{name}: {}", Vec::from_iter(circle).join(", ")));
            }
        }
    }
    assert!(files > 500, "the files are elsewhere: {files}");
    assert!(wrong.is_empty(), "circles of more than {MOST} files:\n{}", wrong.join("\n"));
    assert!(all.len() <= MOST_CIRCLES, "more than {MOST_CIRCLES} circles:\n{}", all.join("\n"));
    assert!(exceptions.is_empty(), "these are no exceptions any more: {exceptions:?}");
}

#[test]
fn imports_are_read_as_they_are_written() {
    let mut found = Vec::new();
    paths("crate::a::{self, b::{C, d}, E as F}", "", &mut found);
    assert_eq!(found, ["crate::a::self", "crate::a::b::C", "crate::a::b::d", "crate::a::E as F"]);
    let known = ["", "a", "a::b", "c"].map(|name| (name.to_owned(), PathBuf::new())).into();
    let leads = |path, module| target(path, module, &known);
    assert_eq!(leads("crate::a::b::C", "c").as_deref(), Some("a::b"));
    assert_eq!(leads("crate::Thing", "c").as_deref(), Some(""));
    assert_eq!(leads("super::Thing", "a::b").as_deref(), Some("a"));
    assert_eq!(leads("super::super::c::Thing", "a::b").as_deref(), Some("c"));
    assert_eq!(leads("b::Thing", "a").as_deref(), Some("a::b"));
    assert_eq!(leads("std::fmt", "a"), None);
    assert_eq!(leads("self::b::Thing", "a").as_deref(), Some("a::b"));
}

#[test]
fn what_is_re_exported_or_behind_the_declaration_of_tests_is_seen() {
    let text = "#[cfg(test)]\nmod tests;\n\npub use self::b::{C, D as E};\nuse crate::f::G;\n// use x::y;\n";
    let found = uses(&code(text));
    let expected = [(true, vec!["self::b::C", "self::b::D as E"]), (false, vec!["crate::f::G"])];
    assert_eq!(
        found,
        expected.map(|(reexport, paths)| (reexport, paths.into_iter().map(str::to_owned).collect()))
    );
    let inside = "use a::b;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
    assert_eq!(uses(&code(inside)).len(), 1);
}

#[test]
fn a_circle_is_found() {
    let import = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect());
    let imports =
        [import("a", &["b"]), import("b", &["c"]), import("c", &["a", "d"]), import("d", &[])].into();
    assert_eq!(circles(&imports), [["a", "b", "c"].into()].into());
}
