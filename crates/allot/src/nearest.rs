//! The word that was meant, where a few letters are wrong.

/// Words are compared up to here.
const MOST_LETTERS: usize = 64;

/// The candidate that `word` differs from by few letters, if there is one.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(MOST_LETTERS).collect();
    let measured = candidates.into_iter().map(|candidate| (distance(&word, candidate), candidate));
    let (letters, candidate) = measured.min_by_key(|(letters, _)| *letters)?;
    (letters <= 1 + word.len() / 4).then_some(candidate)
}

/// How many letters must be put in, taken out or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for j in 0..b.len() {
            let change = corner + usize::from(letter != b[j]);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
