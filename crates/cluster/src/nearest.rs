//! Suggestions for misspelled words and names.

use strsim::{levenshtein, osa_distance};

/// Maximum number of letters that are compared.
const MOST_LETTERS: usize = 64;
/// Maximum number of names in a question.
const MOST_NAMES: usize = 3;
/// Maximum number of unknown names for which similar ones are searched.
const MOST_UNKNOWN: usize = 8;

/// The number of letters that a candidate may differ in: one, plus a quarter of the word.
fn tolerance(word: &str) -> usize {
    1 + word.len() / 4
}

/// The most similar candidate. `None` if it differs from `word` in more than one letter plus a quarter of the
/// word.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(MOST_LETTERS).collect();
    let measured = candidates.into_iter().map(|candidate| (levenshtein(&word, candidate), candidate));
    let (letters, candidate) = measured.min_by_key(|(letters, _)| *letters)?;
    (letters <= tolerance(&word)).then_some(candidate)
}

/// The end of an error about unknown names: `; did you mean node1 or node2?`. Empty if no name is similar.
///
/// Names are compared without the components that an unknown name leaves out, so `nod1` is similar to
/// `node1.example.org`.
pub fn did_you_mean<'a>(unknown: &[&str], names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut meant: Vec<&str> = Vec::new();
    for word in unknown.iter().take(MOST_UNKNOWN) {
        for name in nearest_names(word, &names) {
            if !meant.contains(&name) {
                meant.push(name);
            }
        }
    }
    meant.truncate(MOST_NAMES);
    match meant.as_slice() {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// All names that are equally similar, in the given order, up to [`MOST_NAMES`].
fn nearest_names<'a>(word: &str, names: &[&'a str]) -> Vec<&'a str> {
    let word: String = word.chars().take(MOST_LETTERS).collect();
    let components = word.split('.').count();
    let mut least = tolerance(&word);
    let mut found = Vec::new();
    for &name in names {
        let end = name.match_indices('.').nth(components - 1).map_or(name.len(), |(at, _)| at);
        let compared = &name[..end];
        // Letters have at most four bytes, so a longer name differs too much.
        if compared.len() > 4 * (MOST_LETTERS + least) {
            continue;
        }
        let letters = osa_distance(&word, compared);
        if letters < least {
            found.clear();
            least = letters;
        }
        if letters == least && found.len() < MOST_NAMES {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_wrong_letters_are_forgiven() {
        let names = ["lease", "leasepool", "host", "calendar"];
        for (word, meant) in
            [("leases", Some("lease")), ("calender", Some("calendar")), ("hots", Some("host")), ("xyz", None)]
        {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
        assert_eq!(nearest(&"lease".repeat(1000), names), None);
    }

    #[test]
    fn similar_names_are_suggested_without_the_components_that_were_left_out() {
        let names = ["web.example.org", "db1.example.org", "db2.example.org", "db3.example.org"];
        let meant = |unknown: &[&str]| did_you_mean(unknown, names);
        assert_eq!(meant(&["wb"]), "; did you mean web.example.org?");
        assert_eq!(meant(&["wev.exmple.org"]), "; did you mean web.example.org?");
        assert_eq!(meant(&["db"]), "; did you mean db1.example.org, db2.example.org or db3.example.org?");
        assert_eq!(meant(&["db11", "wb"]), "; did you mean db1.example.org or web.example.org?");
        for strange in ["", "xyzzy", ".", "web.example.org.other.domain.of.the.world"] {
            assert_eq!(meant(&[strange]), "", "{strange}");
        }
        let long = "db".repeat(100_000);
        assert_eq!(did_you_mean(&["db1", long.as_str()], [long.as_str(), "é"]), "");
    }
}
