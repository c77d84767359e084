//! The binary selects a program by its own name, by `HTOOLS`, or by its first argument.

use std::fs;
use std::os::unix::fs::symlink;

use crate::shell::{ALLOCATE, allot, command, file, fresh, named, request, run};

/// The help of a program, which tells programs apart.
fn help_of(program: &str) -> String {
    let ran = allot(&[program, "--help"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(!ran.out.is_empty());
    ran.out
}

#[test]
fn a_link_named_after_a_program_is_that_program() {
    for (name, program) in [("hail", "hail"), ("hbal", "hbal"), ("HBAL", "hbal")] {
        let link = fresh(name);
        symlink(env!("CARGO_BIN_EXE_allot"), &link).expect("links can be laid");
        let ran = run(named(&link).arg("--help"));
        assert_eq!((ran.status, ran.out), (0, help_of(program)), "{name}");
    }
}

#[test]
fn htools_names_the_program_in_any_case() {
    for name in ["hail", "HAIL", "Hail"] {
        let ran = run(command().env("HTOOLS", name).arg("--help"));
        assert_eq!((ran.status, ran.out), (0, help_of("hail")), "{name}");
    }
    assert_ne!(help_of("hail"), help_of("hbal"));
}

#[test]
fn htools_goes_before_the_name() {
    let link = fresh("hail");
    symlink(env!("CARGO_BIN_EXE_allot"), &link).expect("links can be laid");
    let ran = run(named(&link).env("HTOOLS", "hbal").arg("--help"));
    assert_eq!((ran.status, ran.out), (0, help_of("hbal")));
}

#[test]
fn allot_takes_the_program_from_its_first_argument() {
    let path = file("request", &request(ALLOCATE));
    let ran = allot(&["hail", &path]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.starts_with('{') && ran.out.contains("\"success\":true"), "{}", ran.out);
}

#[test]
fn an_unknown_personality_is_refused() {
    for name in ["hnothing", "", "allot"] {
        let ran = run(command().env("HTOOLS", name).arg("--help"));
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{name}");
        assert!(ran.err.contains("Unrecognised personality"), "{}", ran.err);
        assert!(ran.err.contains("hail") && ran.err.contains("hbal"), "{}", ran.err);
    }
}

#[test]
fn install_links_lays_a_link_for_each_program() {
    let directory = fresh("bin");
    fs::create_dir(&directory).expect("a new directory");
    let path = directory.to_str().expect("a plain path");
    // The second run renews the links.
    for _ in 0..2 {
        let ran = allot(&["install-links", path]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        for program in ["hail", "hbal"] {
            let ran = run(named(directory.join(program)).arg("--help"));
            assert_eq!((ran.status, ran.out), (0, help_of(program)));
        }
    }
}

#[test]
fn install_links_leaves_files_of_others_alone() {
    let directory = fresh("bin");
    fs::create_dir(&directory).expect("a new directory");
    fs::write(directory.join("hbal"), "mine").expect("a new file");
    let ran = allot(&["install-links", directory.to_str().expect("a plain path")]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("hbal"), "{}", ran.err);
    assert_eq!(fs::read_to_string(directory.join("hbal")).ok().as_deref(), Some("mine"));
    assert!(directory.join("hail").is_symlink());
}

#[test]
fn install_links_renews_only_links_to_allot() {
    let directory = fresh("bin");
    fs::create_dir_all(directory.join("old")).expect("a new directory");
    let at = |name: &str| directory.join(name);
    fs::write(at("htools"), "Ganeti's").expect("a new file");
    fs::write(at("old/allot"), "an older version").expect("a new file");
    fs::create_dir(at("allot")).expect("a new directory");
    let foreign = [("hail", "htools"), ("harep", "missing/htools"), ("hbal", "hbal"), ("hcheck", "allot")];
    let ours = [
        ("hinfo", "old/allot".to_owned()),
        ("hroller", "missing/allot".to_owned()),
        ("hscan", env!("CARGO_BIN_EXE_allot").to_owned()),
    ];
    for (name, target) in foreign {
        symlink(target, at(name)).expect("a new link");
    }
    for (name, target) in &ours {
        symlink(target, at(name)).expect("a new link");
    }
    let ran = allot(&["install-links", directory.to_str().expect("a plain path")]);
    assert_eq!(ran.status, 1);
    for (name, target) in foreign {
        assert_eq!(fs::read_link(at(name)).expect("a link").to_str(), Some(target));
        let error = format!("{}: is a link to {target}; it was left unchanged", at(name).display());
        assert!(ran.err.contains(&error), "{}", ran.err);
    }
    for name in ["hinfo", "hroller", "hscan", "hspace", "hsqueeze"] {
        let target = fs::canonicalize(at(name)).expect("a link to a file");
        assert_eq!(Some(target), fs::canonicalize(env!("CARGO_BIN_EXE_allot")).ok(), "{name}");
    }
}

#[test]
fn install_links_makes_the_one_directory_that_it_needs() {
    assert_eq!(allot(&["install-links"]).status, 2);
    assert_eq!(allot(&["install-links", "a", "b"]).status, 2);
    let missing = fresh("missing").join("deep");
    let ran = allot(&["install-links", missing.to_str().expect("a plain path")]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(missing.join("hbal").is_symlink());
    for help in ["--help", "-h"] {
        let ran = allot(&["install-links", help]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        assert!(ran.out.contains("Usage: allot install-links <DIR>"), "{}", ran.out);
    }
}
