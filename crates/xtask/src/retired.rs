//! Keeps retired phrases and British spelling out of comments, messages, help and documentation.

use std::collections::BTreeSet;

use regex::Regex;

use crate::source::{Language, sources};
use crate::words::{texts, without_code};

/// Retired phrases in lower case, with their replacements.
const RETIRED: [(&str, &str); 17] = [
    ("make way", "be preempted"),
    ("makes way", "is preempted"),
    ("made way", "was preempted"),
    ("making way", "being preempted"),
    ("for ever", "forever"),
    ("anew", "again"),
    ("in vain", "without result, or failed"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("forestalled", "conflict"),
    ("come to its end", "end"),
    ("comes to its end", "ends"),
    ("came to its end", "ended"),
    ("come to an end", "end"),
    ("comes to an end", "ends"),
    ("laid down", "set"),
];

/// Files that must keep them. Migrations can't be changed, nor the texts that their tests expect.
const EXEMPT: [&str; 3] = [
    "crates/store-sqlite/src/tests.rs",
    "crates/store-postgres/tests/it/schema.rs",
    "crates/xtask/src/retired.rs",
];

/// Retired phrases in a text, with the number of the line in which each begins. A phrase can span lines of a
/// comment.
fn retired(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_start().trim_start_matches(['/', '!', '*', '#', '>']);
        let of_line = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        words.extend(of_line.filter(|word| !word.is_empty()).map(|word| (number, word.to_lowercase())));
    }
    let mut found = Vec::new();
    for (phrase, instead) in RETIRED {
        let phrase_words: Vec<&str> = phrase.split(' ').collect();
        for some in words.windows(phrase_words.len()) {
            if some.iter().map(|(_, word)| word.as_str()).eq(phrase_words.iter().copied()) {
                found.push((some[0].0, phrase, instead));
            }
        }
    }
    found
}

#[test]
fn no_text_has_a_retired_phrase() {
    let mut wrong = Vec::new();
    for source in sources().expect("the sources") {
        if !EXEMPT.contains(&source.path.as_str()) && source.language != Language::Sql {
            let found = retired(&source.text).into_iter();
            wrong.extend(found.map(|(line, phrase, instead)| {
                format!("{}:{line}: \"{phrase}\": write \"{instead}\"", source.path)
            }));
        }
    }
    assert!(wrong.is_empty(), "{} retired phrases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_retired_phrase_is_found_in_any_case_over_lines_and_as_a_whole_only() {
    let text =
        "/// It Makes\n/// way for a lease, and is planned anew.\nfn hunt_anew() { amend(\"recommend\") }\n";
    let found: Vec<(usize, &str)> =
        retired(text).into_iter().map(|(line, phrase, _)| (line, phrase)).collect();
    assert_eq!(found, [(1, "makes way"), (2, "anew")]);
}

/// British spelling, except of words that are spelled both ways in America.
const BRITISH: &str = r"(?i)(?-u:\b)(?:un|re|de|dis|mis)?(?:(?:author|categor|character|custom|emphas|final|general|initial|local|maxim|minim|modern|normal|optim|organ|parallel|penal|priorit|random|real|recogn|serial|special|stabil|standard|summar|synchron|token|util|visual)is(?:e[drs]?|ing|able|ations?)|(?:behavi|col|fav|flav|harb|hon|hum|lab|neighb|rum|vap)our\w*|(?:cancel|channel|dial|equal|label|level|marshal|model|signal|total|travel|tunnel)l(?:ed|ing|ers?)|(?:cent|met|fib|lit)res?|catalogues?|licences?|(?:def|off)ence|grey|whilst|amongst|learnt|spelt|artefacts?|judgements?|programmes?|analys(?:ed|ing)|(?:fulfil|enrol|instal)(?:s|ment)?)(?-u:\b)";

/// Files with British words that must stay: texts of Ganeti's tools.
const GANETI: [(&str, &str); 2] =
    [("crates/allot/src/main.rs", "Unrecognised"), ("crates/htools/src/source.rs", "utilisation")];

/// Files with British words that can be changed.
const LEFT: [(&str, &str); 2] = [("console/vite.config.ts", "licence"), ("deny.toml", "licences")];

#[test]
fn the_spelling_is_american() {
    let british = Regex::new(BRITISH).expect("a list");
    let mut exceptions: BTreeSet<(&str, &str)> = GANETI.into_iter().chain(LEFT).collect();
    let allowed = exceptions.clone();
    let mut wrong = Vec::new();
    for source in sources().expect("the sources") {
        for text in texts(&source) {
            for word in british.find_iter(&without_code(&text.text)).map(|found| found.as_str()) {
                let place = (text.path.as_str(), word);
                exceptions.retain(|(path, british)| *path != place.0 || *british != place.1);
                if !allowed.contains(&place) {
                    wrong.push(format!("{}:{}: {word}", text.path, text.line));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "British spelling:\n{}", wrong.join("\n"));
    assert!(exceptions.is_empty(), "unused exceptions, remove them: {exceptions:?}");
}

#[test]
fn british_words_are_found_in_their_forms() {
    let british = Regex::new(BRITISH).expect("a list");
    for word in ["Colours", "recolouring", "serialises", "unrecognised", "cancelled", "centre", "fulfil"] {
        assert!(british.is_match(word), "{word}");
    }
    for word in ["color", "promise", "canceled", "fulfill", "realistic", "four", "optimistic", "towards"] {
        assert!(!british.is_match(word), "{word}");
    }
}
