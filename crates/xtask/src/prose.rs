//! Counts constructions that engineers rarely write. A high rate is a reason to read the text again, not a
//! proof that it is bad.

use std::iter::once;
use std::ops::AddAssign;
use std::path::PathBuf;

use anyhow::Result;
use chores::places;
use regex::Regex;

/// The constructions, one per line, as the shared script `prose.py` has them. [`EXEMPT`] replaces their look-around,
/// which `regex` doesn't have.
const PATTERNS: &str = include_str!("../prose.txt");

/// Beginnings that the look-around excludes, except for `there is no`.
const EXEMPT: &str = r"(?i)^(?:(?:what|where|when|why|how) to\b|what is new\b|may (?:list|read|hold|use|not be\b)|(?:is|are) no (?:longer|more)\b|none(?:[^ .,]|$))";

/// A text that matches the last construction, though [`EXEMPT`] excludes it from the first one.
const NEWS: &str = r"(?i)^what is new\b[^?]*$";

/// The shared script that counts the same, if it is there.
pub(crate) fn script() -> Option<PathBuf> {
    places::shared().map(|shared| shared.join("tools/prose.py")).filter(|script| script.is_file())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) words: usize,
    pub(crate) hits: usize,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.words += other.words;
        self.hits += other.hits;
    }
}

impl Count {
    /// Hits per 1,000 words.
    pub(crate) fn rate(self) -> f64 {
        1000.0 * self.hits as f64 / self.words.max(1) as f64
    }
}

pub(crate) struct Prose {
    patterns: Regex,
    exempt: Regex,
    news: Regex,
}

impl Prose {
    pub(crate) fn new() -> Result<Self> {
        let all: Vec<String> =
            PATTERNS.lines().map(|line| format!("(?:{})", without_lookaround(line))).collect();
        // Boundaries between letters of any script are slow to find.
        let patterns = format!("(?i){}", all.join("|")).replace(r"\b", r"(?-u:\b)");
        Ok(Self {
            patterns: Regex::new(&patterns)?,
            exempt: Regex::new(&EXEMPT.replace(r"\b", r"(?-u:\b)"))?,
            news: Regex::new(&NEWS.replace(r"\b", r"(?-u:\b)"))?,
        })
    }

    /// Counts words and constructions of a comment, paragraph or message on one line.
    pub(crate) fn count(&self, text: &str) -> Count {
        let mut hits = 0;
        let mut at = 0;
        while let Some(found) = self.patterns.find_at(text, at) {
            let (before, rest) = text.split_at(found.start());
            let there =
                before.as_bytes().last_chunk::<6>().is_some_and(|end| end.eq_ignore_ascii_case(b"there "))
                    && found.as_str().to_ascii_lowercase().contains(" no ");
            if !self.exempt.is_match(rest) && !there {
                hits += 1;
                at = found.end();
            } else if before.is_empty() && self.news.is_match(text) {
                hits += 1;
                break;
            } else {
                at = found.start() + 1;
            }
        }
        Count { words: words(text).count(), hits }
    }
}

/// Words of a text, as bytes.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    let parts = text.as_bytes().split(|byte| !byte.is_ascii_alphabetic() && *byte != b'\'');
    parts.filter(|word| !word.is_empty())
}

/// A pattern without its groups `(?!...)`, `(?<!...)` and `(?=...)`.
fn without_lookaround(pattern: &str) -> String {
    let mut parts = pattern.split("(?");
    let first = parts.next().unwrap_or_default();
    once(first).chain(parts.filter_map(|part| part.split_once(')')).map(|(_, rest)| rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructions_are_counted_with_their_exceptions() {
        let prose = Prose::new().expect("patterns");
        for (text, hits) in [
            ("Of what was had, none.", 3),
            ("What to do. What is new? It may use it. It is no longer so.", 0),
            ("What is new in this version", 1),
            ("There is no host, and there are no guests. It is no host", 1),
            ("Where leases are kept", 1),
            ("Where to look", 0),
            ("Where is it?", 0),
            ("nonetheless none", 0),
            ("Everything depends on whoever asks", 1),
        ] {
            assert_eq!(prose.count(text).hits, hits, "{text}");
        }
        assert_eq!(prose.count("It's 2 a-b, {0}").words, 3);
    }
}
