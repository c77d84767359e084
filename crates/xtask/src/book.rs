//! Tests of the documentation as a book: links lead to a page and a heading, and `docs/SUMMARY.md` has every
//! page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use chores::places::root;
use regex::Regex;

use crate::source::texts_in;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Directories of pages.
const SHELVES: [&str; 6] = ["tutorials", "how-to", "reference", "explanation", "adr", "contributing"];

/// A guide for each kind of reader, which the README must name.
const GUIDES: [&str; 7] = [
    "docs/tutorials/first-lease.md",
    "docs/tutorials/own-machines.md",
    "docs/tutorials/use-preemptible-instances.md",
    "docs/tutorials/ganeti.md",
    "docs/how-to/openstack.md",
    "docs/how-to/replace-blazar.md",
    "docs/how-to/replace-blazar-in-containers.md",
];

/// Pages that have moved, so that a wrong link can name the new place.
const MOVED: [(&str, &str); 30] = [
    ("docs/COMPARE.md", "docs/reference/differences.md"),
    ("docs/benchmarks.md", "docs/reference/benchmarks.md"),
    ("docs/calendar.md", "docs/reference/calendar-api.md"),
    ("docs/configuration.md", "docs/reference/configuration.md"),
    ("docs/console.md", "docs/how-to/console.md"),
    ("docs/energy.md", "docs/how-to/save-power.md"),
    ("docs/failure-buffer.md", "docs/how-to/survive-failures.md"),
    ("docs/features.md", "docs/reference/features.md"),
    ("docs/filters.md", "docs/reference/filters.md"),
    ("docs/from-blazar.md", "docs/how-to/replace-blazar.md"),
    ("docs/ganeti.md", "docs/tutorials/ganeti.md"),
    ("docs/housekeeping.md", "docs/how-to/housekeeping.md"),
    ("docs/instances.md", "docs/how-to/instances.md"),
    ("docs/lease-command-line.md", "docs/reference/command-line.md"),
    ("docs/lease-types.md", "docs/explanation/lease-types.md"),
    ("docs/limits.md", "docs/reference/limits.md"),
    ("docs/machines.md", "docs/tutorials/own-machines.md"),
    ("docs/negotiation.md", "docs/how-to/negotiate.md"),
    ("docs/openstack.md", "docs/how-to/openstack.md"),
    ("docs/operations.md", "docs/how-to/operations.md"),
    ("docs/pools.md", "docs/reference/pools.md"),
    ("docs/preemptible.md", "docs/how-to/offer-preemptible-instances.md"),
    ("docs/programs.md", "docs/reference/ganeti-programs.md"),
    ("docs/questions.md", "docs/how-to/drain-whatif-fit.md"),
    ("docs/serving.md", "docs/how-to/run-the-service.md"),
    ("docs/sources.md", "docs/reference/cluster-sources.md"),
    ("docs/threat-model.md", "docs/explanation/threat-model.md"),
    ("docs/usage.md", "docs/how-to/usage-and-billing.md"),
    ("docs/using-preemptible.md", "docs/tutorials/use-preemptible-instances.md"),
    ("docs/workloads.md", "docs/reference/workloads.md"),
];

/// Files that name pages that don't exist.
const EXEMPT: [&str; 2] = ["crates/xtask/src/book.rs", "crates/xtask/src/words.rs"];

/// Text of all files with one of these endings, by path from the root.
fn texts(endings: &[&str]) -> BTreeMap<String, String> {
    let root = root();
    let mut texts = BTreeMap::new();
    for file in texts_in(&root, endings).expect("the files") {
        let path = file.strip_prefix(&root).expect("a path below the root").to_string_lossy().into_owned();
        texts.insert(path, fs::read_to_string(&file).expect("UTF-8"));
    }
    texts
}

/// Lines that aren't in a block of code.
fn prose(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            lines.push(line);
        }
    }
    lines
}

/// Targets of the links on a page, except addresses of other sites.
fn links(text: &str) -> Vec<&str> {
    let rests = prose(text).into_iter().flat_map(|line| line.split("](").skip(1));
    rests.filter_map(|rest| rest.split(')').next()).filter(|link| !link.contains(':')).collect()
}

/// Anchors of a page's headings, as GitHub and mdBook derive them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let Some(title) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        else {
            continue;
        };
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// Path from the root of a link's file.
fn target_of(page: &str, file: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The place of a page that has moved, for a message.
fn moved(path: &str) -> String {
    fn name(path: &str) -> Option<&str> {
        path.rsplit('/').next()
    }
    let found = MOVED.iter().find(|(old, _)| name(old) == name(path));
    found.map_or_else(String::new, |(_, new)| format!(" (now {new})"))
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let pages = texts(&["md"]);
    let mut dead = Vec::new();
    let mut count = 0;
    for (page, text) in &pages {
        for link in links(text) {
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { target_of(page, file) };
            if !root().join(&target).exists() {
                dead.push(format!("{page}: {link}: no such file{}", moved(&target)));
            } else if !anchor.is_empty()
                && pages.get(&target).is_none_or(|text| !anchors(text).contains(anchor))
            {
                dead.push(format!("{page}: {link}: no such heading"));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(count > 400, "{count} links");
}

#[test]
fn pages_that_code_and_messages_name_exist() {
    let path = Regex::new("docs/[A-Za-z0-9/_-]+\\.md").expect("a pattern");
    let mut missing = Vec::new();
    for (file, text) in texts(&["rs", "ts", "tsx", "py", "toml", "yaml", "json", "service", "md"]) {
        if EXEMPT.contains(&file.as_str()) {
            continue;
        }
        for found in path.find_iter(&text).map(|found| found.as_str()) {
            if !root().join(found).exists() {
                missing.push(format!("{file}: {found}{}", moved(found)));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_summary_has_every_page_once() {
    let pages = texts(&["md"]);
    let mut listed: Vec<String> =
        links(&pages[SUMMARY]).into_iter().map(|link| target_of(SUMMARY, link)).collect();
    listed.sort();
    let pages: Vec<String> =
        pages.into_keys().filter(|page| page.starts_with("docs/") && page != SUMMARY).collect();
    let missing: Vec<&String> = pages.iter().filter(|page| !listed.contains(page)).collect();
    assert!(missing.is_empty(), "not in {SUMMARY}: {missing:?}");
    assert_eq!(listed, pages, "a page is twice in {SUMMARY}");
    for page in &pages {
        let shelf = page.split('/').nth(1).unwrap_or_default();
        assert!(SHELVES.contains(&shelf), "{page} is on no shelf: {SHELVES:?}");
    }
}

#[test]
fn the_readme_names_a_guide_for_every_reader() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let links = links(&readme);
    for guide in GUIDES {
        assert!(links.contains(&guide), "README.md doesn't link {guide}");
    }
    assert!(links.contains(&SUMMARY), "README.md doesn't link {SUMMARY}");
}

#[test]
fn decisions_name_code_that_exists() {
    let mut missing = Vec::new();
    for (page, text) in texts(&["md"]).into_iter().filter(|(page, _)| page.starts_with("docs/adr/")) {
        let named = text.split('`').skip(1).step_by(2).filter(|name| name.starts_with("crates/"));
        missing
            .extend(named.filter(|name| !root().join(name).exists()).map(|name| format!("{page}: {name}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn moved_pages_are_at_their_new_places() {
    for (old, new) in MOVED {
        assert!(!root().join(old).exists(), "{old} is back");
        assert!(root().join(new).exists(), "{new} has moved on");
    }
}

#[test]
fn links_and_anchors_are_read_as_a_browser_reads_them() {
    let page = "# A page\n## N+1 at first **(own)**\n```sh\n# [no](link)\n```\n## `check`\n## A page\n\
                See [a](b.md#c), [d](https://example.org/e) and [f\ng](../h.md).\n";
    assert_eq!(links(page), ["b.md#c", "../h.md"]);
    let wanted = ["a-page", "a-page-1", "check", "n1-at-first-own"];
    assert_eq!(anchors(page).iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    assert_eq!(target_of("docs/how-to/a.md", "../reference/b.md"), "docs/reference/b.md");
    assert_eq!(target_of("README.md", "docs/a.md"), "docs/a.md");
    assert_eq!(moved("docs/how-to/serving.md"), " (now docs/how-to/run-the-service.md)");
    assert_eq!(moved("docs/how-to/none.md"), "");
}
