//! Reads the project's files for `size`, `words` and the tests of rules: separates comments and strings from
//! code, and finds tests.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chores::places::root;

/// Directories of generated files.
const SKIPPED: [&str; 7] = ["target", "node_modules", ".git", "corpus", "artifacts", "dist", "__pycache__"];

/// A generated file. Its words are written in `api` and `server`.
const GENERATED: &str = "console/src/api/schema.ts";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    /// TypeScript and JavaScript.
    Script,
    Python,
    C,
    Sql,
    Style,
    Html,
    /// Settings and shell scripts.
    Settings,
    Markdown,
}

impl Language {
    fn of(path: &str) -> Option<Self> {
        Some(match path.rsplit(['.', '/']).next()? {
            "rs" => Self::Rust,
            "ts" | "tsx" | "mts" | "mjs" => Self::Script,
            "py" => Self::Python,
            "c" => Self::C,
            "sql" => Self::Sql,
            "css" => Self::Style,
            "html" => Self::Html,
            "toml" | "yaml" | "conf" | "service" | "sysusers" | "run" => Self::Settings,
            "md" => Self::Markdown,
            _ => return None,
        })
    }

    /// Whether its lines are counted as code.
    pub(crate) fn is_code(self) -> bool {
        !matches!(self, Self::Html | Self::Settings | Self::Markdown)
    }

    /// Markers: the begin of a comment until the end of the line, and both ends of a block. Empty if the
    /// language has no such comment.
    pub(crate) fn comments(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Rust | Self::Script | Self::C => ("//", "/*", "*/"),
            // Strings with three quotes are documentation.
            Self::Python => ("#", "\"\"\"", "\"\"\""),
            Self::Settings => ("#", "", ""),
            Self::Sql => ("--", "/*", "*/"),
            Self::Style => ("", "/*", "*/"),
            Self::Html => ("", "<!--", "-->"),
            Self::Markdown => ("", "", ""),
        }
    }

    /// The literal that begins at a place, if one does.
    fn literal(self, text: &str, at: usize) -> Option<Literal> {
        let bytes = text.as_bytes();
        match (self, bytes[at]) {
            (Self::Rust, b'r') => raw_string(text, at),
            (Self::Rust, b'\'') => character(bytes, at),
            (Self::Rust, b'"') | (Self::Script, b'`') => quoted(bytes, at, true),
            (Self::Script | Self::Python | Self::C | Self::Settings, b'"' | b'\'') | (Self::Sql, b'\'') => {
                quoted(bytes, at, false)
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    LineComment,
    BlockComment,
    String,
}

/// A comment with its markers, or a string without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    pub(crate) range: Range<usize>,
}

/// Content of a literal, its end, and its kind. `None` for a character.
type Literal = (Range<usize>, usize, Option<PieceKind>);

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Position of `wanted`, or the end of the text.
fn find(text: &str, from: usize, wanted: &str) -> usize {
    text[from..].find(wanted).map_or(text.len(), |at| from + at)
}

fn quoted(bytes: &[u8], at: usize, many_lines: bool) -> Option<Literal> {
    let mut end = at + 1;
    while *bytes.get(end)? != bytes[at] {
        match bytes[end] {
            b'\n' if !many_lines => return None,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    Some((at + 1..end, end + 1, Some(PieceKind::String)))
}

fn raw_string(text: &str, at: usize) -> Option<Literal> {
    let bytes = text.as_bytes();
    let mut before = bytes[..at].iter().rev();
    let mut previous = before.next();
    if matches!(previous, Some(b'b' | b'c')) {
        previous = before.next();
    }
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let start = at + 1 + hashes + 1;
    if previous.is_some_and(|byte| is_name(*byte)) || bytes.get(start - 1) != Some(&b'"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let end = find(text, start, &close);
    Some((start..end, (end + close.len()).min(text.len()), Some(PieceKind::String)))
}

/// A character in quotes, not a lifetime.
fn character(bytes: &[u8], at: usize) -> Option<Literal> {
    let rest = &bytes[at + 1..];
    let length = match rest.first()? {
        b'\\' => 2 + rest.get(2..)?.iter().position(|byte| *byte == b'\'')?,
        first => first.leading_ones().max(1) as usize,
    };
    (rest.get(length) == Some(&b'\'')).then(|| (at + 1..at + 1 + length, at + length + 2, None))
}

/// End of a block comment. Blocks nest in Rust.
fn block_end(text: &str, at: usize, language: Language) -> usize {
    let (_, open, close) = language.comments();
    let mut from = at + open.len();
    let mut end = find(text, from, close);
    loop {
        let behind = (end + close.len()).min(text.len());
        let inner = find(text, from, open);
        if language != Language::Rust || inner >= end {
            return behind;
        }
        from = inner + open.len();
        end = find(text, behind, close);
    }
}

/// The text with spaces for comments and quotes for literals, of the same length and with the same lines;
/// and the comments and strings.
pub(crate) fn separate(text: &str, language: Language) -> (String, Vec<Piece>) {
    let (line, open, _) = language.comments();
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !matches!(bytes[at], b'/' | b'-' | b'#' | b'<' | b'"' | b'\'' | b'`' | b'r') {
            at += 1;
            continue;
        }
        let begins = |marker: &str| !marker.is_empty() && bytes[at..].starts_with(marker.as_bytes());
        // A `#` inside a word begins no comment.
        let after_space = line != "#" || at == 0 || bytes[at - 1].is_ascii_whitespace();
        let (kind, range, end, fill) = if begins(line) && after_space {
            let end = find(text, at, "\n");
            (Some(PieceKind::LineComment), at..end, end, b' ')
        } else if begins(open) {
            let end = block_end(text, at, language);
            (Some(PieceKind::BlockComment), at..end, end, b' ')
        } else if let Some((range, end, kind)) = language.literal(text, at) {
            (kind, range, end, b'"')
        } else {
            at += 1;
            continue;
        };
        for byte in &mut code[at..end] {
            if !byte.is_ascii_whitespace() {
                *byte = fill;
            }
        }
        pieces.extend(kind.map(|kind| Piece { kind, range }));
        at = end;
    }
    (String::from_utf8_lossy(&code).into_owned(), pieces)
}

/// End of the item that begins at a place: behind its block or its semicolon.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (byte, at) in code.as_bytes()[from..].iter().zip(from..) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth < 0 {
                    return at;
                }
                if depth == 0 && *byte == b'}' {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Items that only tests have.
pub(crate) fn tests_in(code: &str) -> Vec<Range<usize>> {
    const TESTS: &str = "#[cfg(test)]";
    if code.contains("#![cfg(test)]") {
        return iter::once(0..code.len()).collect();
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(TESTS).map(|at| from + at) {
        from = item_end(code, at + TESTS.len());
        found.push(at..from);
    }
    found
}

/// Modules that are declared in these items and are files, as paths without an ending.
fn test_modules(path: &str, code: &str, tests: &[Range<usize>]) -> Vec<String> {
    let stem = path.trim_end_matches(".rs");
    let roots = ["/mod", "/lib", "/main"];
    let above = roots.into_iter().find_map(|root| stem.strip_suffix(root)).unwrap_or(stem);
    let name = |range: &Range<usize>| {
        let (_, name) = code[range.clone()].strip_suffix(';')?.rsplit_once("mod ")?;
        Some(format!("{above}/{name}"))
    };
    tests.iter().filter_map(name).collect()
}

/// A file of the project.
pub(crate) struct Source {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) language: Language,
    pub(crate) text: String,
    pub(crate) code: String,
    pub(crate) pieces: Vec<Piece>,
    /// Parts that only tests have.
    pub(crate) tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: String, language: Language, text: String) -> Self {
        let (code, pieces) = separate(&text, language);
        let tests = if language == Language::Rust { tests_in(&code) } else { Vec::new() };
        Self { path, language, text, code, pieces, tests }
    }

    /// The crate, or the directory of other files.
    pub(crate) fn area(&self) -> &str {
        match self.path.split('/').collect::<Vec<_>>().as_slice() {
            ["crates", name, _, ..] => name,
            [first, _, ..] if !first.starts_with('.') => first,
            _ => "project",
        }
    }

    pub(crate) fn is_test(&self, range: &Range<usize>) -> bool {
        self.tests.iter().any(|test| test.start < range.end && range.start < test.end)
    }
}

/// Files with one of these endings, in a directory and its subdirectories.
pub(crate) fn texts_in(directory: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| format!("can't list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                found.extend(texts_in(&path, endings)?);
            }
        } else if endings.is_empty() || name.rsplit('.').next().is_some_and(|one| endings.contains(&one)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// All files of the project in a known language.
pub(crate) fn sources() -> Result<Vec<Source>> {
    let root = root();
    let mut found = Vec::new();
    let mut of_tests = BTreeSet::new();
    for file in texts_in(&root, &[])? {
        let path = file.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        let Some(language) = Language::of(&path).filter(|_| path != GENERATED) else { continue };
        let text = fs::read_to_string(&file).with_context(|| format!("can't read {path}"))?;
        let source = Source::new(path, language, text);
        of_tests.extend(test_modules(&source.path, &source.code, &source.tests));
        found.push(source);
    }
    for source in &mut found {
        let path = source.path.as_str();
        let declared = |module: &String| {
            path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if path.contains("/tests/")
            || path.ends_with("/tests.rs")
            || path.contains(".test.")
            || of_tests.iter().any(declared)
        {
            source.tests = iter::once(0..source.text.len()).collect();
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separated(text: &str, language: Language) -> (String, Vec<&str>) {
        let (code, pieces) = separate(text, language);
        (code, pieces.into_iter().map(|piece| &text[piece.range]).collect())
    }

    #[test]
    fn comments_and_strings_are_separated_from_code() {
        let rust = r##"let a = "b // \" c"; // d
/* e /* f */ g */ let h = r#"i " /* "#; // 'j
fn k<'l>(m: &'l str) -> char { '"' } let n = ('\'', 'ö'); // o"##;
        let (code, pieces) = separated(rust, Language::Rust);
        assert_eq!(
            pieces,
            ["b // \\\" c", "// d", "/* e /* f */ g */", "i \" /* ", "// 'j", "// o"],
            "in {code}"
        );
        assert_eq!(code.len(), rust.len());
        assert!(code.contains("fn k<'l>(m: &'l str) -> char { \"\"\" }"), "{code}");
        assert_eq!(separated("a(`b\n`, 'c'); // d\ne's", Language::Script).1, ["b\n", "c", "// d"]);
        assert_eq!(separated("a = '#' # b\nc#d", Language::Settings).1, ["#", "# b"]);
        assert_eq!(separated("\"\"\"a\nb\"\"\" # c", Language::Python).1, ["\"\"\"a\nb\"\"\"", "# c"]);
        assert_eq!(separated("SELECT 'a--b' -- c", Language::Sql).1, ["a--b", "-- c"]);
        assert_eq!(separated("a <!-- b --> c", Language::Html).1, ["<!-- b -->"]);
    }

    #[test]
    fn tests_are_found_by_their_declaration() {
        let code = "fn a() {}\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nmod c { fn d() {} }\nfn e() {}\n";
        let tests = tests_in(code);
        let parts: Vec<&str> = tests.iter().map(|range| &code[range.clone()]).collect();
        assert_eq!(parts, ["#[cfg(test)]\nmod b;", "#[cfg(test)]\nmod c { fn d() {} }"]);
        assert_eq!(test_modules("x/src/lib.rs", code, &tests), ["x/src/b"]);
        assert_eq!(test_modules("x/src/y.rs", code, &tests), ["x/src/y/b"]);
    }
}
