//! Limits cycles of imports: within a crate, files and top-level modules should depend on each other in one
//! direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chores::places::root;
use regex::Regex;

use crate::source::{Language, separate, tests_in};

/// Maximum number of files or of top-level modules in a cycle.
const MOST: usize = 3;

/// Maximum number of cycles of files in all crates. Lower it when one is gone.
const MOST_CIRCLES: usize = 27;

/// Larger cycles of files that are allowed: the crate, a file in the cycle, its size, and the reason.
const FILES: [Exception; 11] = [
    ("allot", "client", 31, "it runs its commands, and they use its connection"),
    ("allot", "questions", 7, "it runs its commands, and they use its options"),
    ("differential", "generate::options", 10, "it draws the options of each program into its own type"),
    ("e2e", "lab::openstack", 25, "it runs its parts, and they use its cloud"),
    ("e2e", "leasing::clients", 4, "it runs its parts, and they use its service"),
    ("htools", "hbal", 5, "it runs its modes, and they use its options"),
    ("htools", "options::table", 4, "it joins its parts, which use its type of rows"),
    ("leases", "plan", 8, "it runs its parts, and they use its plan"),
    ("placement", "allocate", 5, "the check whether a node can fail places its instances elsewhere"),
    ("placement", "balance", 4, "the bound of the search is of the balancer's own figures"),
    ("store-postgres", "load", 5, "it loads parts, and they use its rows"),
];

/// Larger cycles of top-level modules that are allowed.
const MODULES: [Exception; 7] = [
    ("fleet", "site", 4, "the state file keeps types of the root, which has errors of hooks"),
    ("leases", "plan", 26, "records and decisions about them are in the same modules"),
    ("placement", "allocate", 4, "as for files"),
    ("placement", "balance", 4, "as for files"),
    ("server", "auth", 5, "errors of settings, limits and policy refer to one another"),
    ("service", "leasing", 19, "use cases and the loop share their state"),
    ("store", "memory", 7, "records, their encoding and the model of a store refer to one another"),
];

type Exception = (&'static str, &'static str, usize, &'static str);

/// The modules that each module depends on. Names are as in `leasing::create`; the crate's root is the
/// empty name.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Paths in a file: re-exported ones, and those in imports and in its code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    exported: Vec<String>,
    used: Vec<String>,
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
            let program_of_library = stem == "main" && directory.join("lib.rs").exists();
            let root = matches!(stem.as_str(), "lib" | "main" | "mod") && !program_of_library;
            found.insert(if root { above.to_owned() } else { name }, path);
        }
    }
}

/// The code of a file without comments, strings and tests.
fn code(text: &str) -> String {
    let (code, _) = separate(text, Language::Rust);
    let mut rest = 0;
    let mut kept = String::new();
    for tests in tests_in(&code) {
        kept += &code[rest..tests.start];
        rest = tests.end;
    }
    kept + &code[rest..]
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

/// The module of this crate that a path in `module` refers to, which is the deepest known one, and the name of
/// the item in it.
fn target(path: &str, module: &str, known: &BTreeMap<String, PathBuf>) -> Option<(String, String)> {
    let path = path.split(" as ").next().unwrap_or(path);
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
    let mut item = *at.last()?;
    while !known.contains_key(&at.join("::")) {
        item = at.pop()?;
    }
    Some((at.join("::"), item.to_owned())).filter(|(found, _)| found != module)
}

/// The paths in the code of a file. Renamed items keep their original name.
fn named(code: &str) -> Named {
    static USES: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^[ \t]*(pub(?:\([^)]*\))? )?use ([^;]*);"));
    static INLINE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:[A-Za-z_][A-Za-z0-9_]*\s*::\s*)+[A-Za-z_][A-Za-z0-9_]*"));
    let mut named = Named::default();
    for found in USES.captures_iter(code) {
        paths(&found[2], "", if found.get(1).is_some() { &mut named.exported } else { &mut named.used });
    }
    let rest = USES.replace_all(code, "");
    // `pub(in crate::a)` isn't a dependency.
    let inline = INLINE.find_iter(&rest).filter(|found| !rest[..found.start()].ends_with("(in "));
    named.used.extend(inline.map(|found| found.as_str().split_whitespace().collect::<String>()));
    named
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

fn imports(source: &Path) -> Imports {
    let mut known = BTreeMap::new();
    modules(source, "", &mut known);
    let read = |(module, path): (&String, &PathBuf)| {
        let text = fs::read_to_string(path).expect("a source file");
        (module.clone(), named(&code(&text)))
    };
    let all: BTreeMap<String, Named> = known.iter().map(read).collect();
    // A path to a re-exported item depends on the file that defines it.
    let mut reexports: BTreeMap<(String, String), String> = BTreeMap::new();
    for (module, named) in &all {
        for (from, name) in named.exported.iter().filter_map(|path| target(path, module, &known)) {
            reexports.insert((module.clone(), name), from);
        }
    }
    let origin = |mut place: (String, String)| {
        // Two modules can re-export the same name from each other.
        for _ in 0..reexports.len() {
            match reexports.get(&place) {
                Some(from) => place.0.clone_from(from),
                None => break,
            }
        }
        place.0
    };
    let of = |(module, named): (&String, &Named)| {
        let targets = named.used.iter().filter_map(|path| target(path, module, &known)).map(origin);
        (module.clone(), targets.filter(|target| target != module).collect())
    };
    all.iter().map(of).collect()
}

/// The same between top-level modules.
fn top_level(imports: &Imports) -> Imports {
    let top = |module: &String| module.split("::").next().unwrap_or_default().to_owned();
    let mut found = Imports::new();
    for (module, targets) in imports {
        let others = targets.iter().map(top).filter(|target| *target != top(module));
        found.entry(top(module)).or_default().extend(others);
    }
    found
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

/// Complains about cycles that are too large, and about exceptions that no longer hold.
fn check(circles: &[(String, BTreeSet<String>)], exceptions: &[Exception]) {
    let mut wrong = Vec::new();
    let mut unused: BTreeSet<&Exception> = exceptions.iter().collect();
    for (of, circle) in circles.iter().filter(|(_, circle)| circle.len() > MOST) {
        let allowed = exceptions.iter().find(|(name, module, ..)| name == of && circle.contains(*module));
        let members = circle.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match allowed {
            Some(exception) if exception.2 == circle.len() => {
                unused.remove(exception);
            }
            Some((_, _, size, _)) if *size > circle.len() => {
                wrong.push(format!("{of}: lower the exception from {size} to {}: {members}", circle.len()));
            }
            _ => wrong.push(format!("{of}: a cycle of {}: {members}", circle.len())),
        }
    }
    assert!(wrong.is_empty(), "cycles of more than {MOST}:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "unused exceptions, remove them: {unused:?}");
}

#[test]
fn cycles_are_few_and_small() {
    let mut files = Vec::new();
    let mut top = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(root().join("crates")).expect("the crates") {
        let path = entry.expect("a crate").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if !path.join("src").is_dir() {
            continue;
        }
        let imports = imports(&path.join("src"));
        count += imports.len();
        let owned = |circle: BTreeSet<&str>| {
            (name.clone(), circle.into_iter().map(str::to_owned).collect::<BTreeSet<String>>())
        };
        files.extend(circles(&imports).into_iter().map(owned));
        top.extend(circles(&top_level(&imports)).into_iter().map(owned));
    }
    assert!(count > 500, "the files are elsewhere: {count}");
    check(&files, &FILES);
    check(&top, &MODULES);
    assert!(files.len() <= MOST_CIRCLES, "more than {MOST_CIRCLES} cycles of files: {files:#?}");
}

#[test]
fn imports_are_read_as_they_are_written() {
    let mut found = Vec::new();
    paths("crate::a::{self, b::{C, d}, E as F}", "", &mut found);
    assert_eq!(found, ["crate::a::self", "crate::a::b::C", "crate::a::b::d", "crate::a::E as F"]);
    let known = ["", "a", "a::b", "c"].map(|name| (name.to_owned(), PathBuf::new())).into();
    let leads = |path, module| target(path, module, &known);
    let to = |module: &str, item: &str| Some((module.to_owned(), item.to_owned()));
    assert_eq!(leads("crate::a::b::C", "c"), to("a::b", "C"));
    assert_eq!(leads("crate::a::b::C::new", "c"), to("a::b", "C"));
    assert_eq!(leads("crate::Thing", "c"), to("", "Thing"));
    assert_eq!(leads("super::Thing as Other", "a::b"), to("a", "Thing"));
    assert_eq!(leads("super::super::c::Thing", "a::b"), to("c", "Thing"));
    assert_eq!(leads("b::Thing", "a"), to("a::b", "Thing"));
    assert_eq!(leads("std::fmt", "a"), None);
    assert_eq!(leads("self::b::Thing", "a"), to("a::b", "Thing"));
}

#[test]
fn paths_are_found_in_imports_and_in_code() {
    let text = "#[cfg(test)]\nmod tests;\n\npub use self::b::{C, D as E};\nuse crate::f::G;\n// use x::y;\n\
                pub(in crate::z) fn h() { crate::i\n::j::<super::K>(\"l::m\") }\n\
                #[cfg(test)]\nmod inside {\n    use super::*;\n}\nuse n::o;\n";
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let expected = Named {
        exported: owned(&["self::b::C", "self::b::D as E"]),
        used: owned(&["crate::f::G", "n::o", "crate::i::j", "super::K"]),
    };
    assert_eq!(named(&code(text)), expected);
}

#[test]
fn a_cycle_is_found() {
    let import = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect());
    let imports =
        [import("a", &["b"]), import("b", &["c"]), import("c", &["a", "d"]), import("d", &[])].into();
    assert_eq!(circles(&imports), [["a", "b", "c"].into()].into());
    let imports: Imports =
        [import("a", &["b::c"]), import("b", &[]), import("b::c", &[]), import("b::d", &["a", "b"])].into();
    assert_eq!(circles(&imports), BTreeSet::new());
    assert_eq!(circles(&top_level(&imports)), [["a", "b"].into()].into());
}

#[test]
#[should_panic(expected = "lower the exception from 5 to 4")]
fn an_exception_has_the_size_of_its_cycle() {
    let circle: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    check(&[("x".to_owned(), circle)], &[("x", "b", 5, "a reason")]);
}
