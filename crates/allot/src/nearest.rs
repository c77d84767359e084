//! Suggestions for misspelled words.

use strsim::levenshtein;

/// Maximum number of letters that are compared.
const MOST_LETTERS: usize = 64;

/// The most similar candidate. `None` if it differs from `word` in more than one letter plus a quarter of the
/// word.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(MOST_LETTERS).collect();
    let measured = candidates.into_iter().map(|candidate| (levenshtein(&word, candidate), candidate));
    let (letters, candidate) = measured.min_by_key(|(letters, _)| *letters)?;
    (letters <= 1 + word.len() / 4).then_some(candidate)
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
}
