//! `cargo xtask words`: how plain the English of each crate is, by kind of text, and the recorded limits.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;

use anyhow::Result;
use chores::arguments::Arguments;
use chores::places::root;
use chores::run::output_of;

use crate::limits::{Limits, PATH};
use crate::prose::{Count, Prose, words};
use crate::source::{Language, PieceKind, Source, is_name, item_end, sources};

/// Kinds of text by reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Comments,
    /// Doc comments that aren't help or API descriptions.
    DocComments,
    Errors,
    Logs,
    Help,
    Api,
    /// Other strings.
    Strings,
    /// Pages in Markdown.
    Docs,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Comments => "comments",
            Self::DocComments => "doc comments",
            Self::Errors => "errors",
            Self::Logs => "logs",
            Self::Help => "help",
            Self::Api => "API descriptions",
            Self::Strings => "other strings",
            Self::Docs => "docs",
        }
    }

    /// Kind of the strings in a call, macro, attribute or field of this name.
    fn of_strings_in(name: &str) -> Option<Self> {
        Some(match name {
            "error" | "bail!" | "anyhow!" | "ensure!" | "context" | "with_context" | "panic!"
            | "unreachable!" | "expect" | "Err" | "map_err" | "ok_or" | "ok_or_else" => Self::Errors,
            "error!" | "warn!" | "info!" | "debug!" | "trace!" => Self::Logs,
            "help" | "long_help" | "about" | "long_about" | "after_help" | "before_help" | "arg"
            | "command" => Self::Help,
            "description" | "summary" | "path" | "schema" | "param" | "response" | "into_params" => Self::Api,
            _ => return None,
        })
    }
}

/// Tables of options and settings: all their texts are help.
const HELP: [&str; 2] = ["crates/allot/src/config/table.rs", "crates/htools/src/options/table/"];

/// A comment, paragraph or string, on one line.
pub(crate) struct Passage {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) text: String,
    area: String,
    kind: Kind,
}

/// Names around a string, innermost first: of its field, and of the calls, macros and attributes.
fn names_around(code: &str, at: usize) -> Vec<&str> {
    /// Distance at which names no longer say anything about a string.
    const FARTHEST: usize = 2_000;
    let bytes = code.as_bytes();
    let name_before = |end: usize| {
        let macro_mark = usize::from(end > 0 && bytes[end - 1] == b'!');
        let letters = bytes[..end - macro_mark].iter().rev().take_while(|byte| is_name(**byte)).count();
        &code[end - macro_mark - letters..end]
    };
    let mut found = Vec::new();
    let before = code[..at].trim_end_matches(|c: char| c.is_ascii_whitespace() || c == '"' || c == '&');
    let of_field = before.strip_suffix([':', '=']).filter(|before| !before.ends_with([':', '=']));
    found.extend(of_field.map(|before| name_before(before.trim_end_matches(' ').len())));
    let mut depth = 0;
    for index in (at.saturating_sub(FARTHEST)..at).rev() {
        match bytes[index] {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth > 0 => depth -= 1,
            b'(' | b'[' | b'{' => found.push(name_before(code[..index].trim_end_matches(' ').len())),
            b';' if depth == 0 => break,
            _ => {}
        }
    }
    found
}

/// Items with doc comments that users read, as help or as descriptions of the API.
fn published(code: &str) -> Vec<(Range<usize>, Kind)> {
    const DERIVE: &str = "#[derive(";
    let mut found = Vec::new();
    for (at, _) in code.match_indices(DERIVE) {
        let Some((list, rest)) = code[at + DERIVE.len()..].split_once(')') else { continue };
        let mut names = list.split(',').filter_map(|path| path.trim().rsplit("::").next());
        let kind = names.find_map(|name| match name {
            "Parser" | "Args" | "Subcommand" | "ValueEnum" => Some(Kind::Help),
            "ToSchema" | "IntoParams" => Some(Kind::Api),
            _ => None,
        });
        // The bracket that closes the attribute isn't part of the item.
        found.extend(kind.map(|kind| (at..item_end(code, code.len() - rest.len() + 1), kind)));
    }
    found.extend(code.match_indices("#[utoipa::path(").map(|(at, _)| (at..at, Kind::Api)));
    found
}

/// A comment without its markers.
fn unmarked(comment: &str) -> String {
    let lines = comment.trim_matches(['/', '*', '!', '<', '-', '>', '#', '"']).lines();
    let words = lines.flat_map(|line| line.trim().trim_start_matches('*').split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// All texts of a file, except strings in tests, queries, and strings of fewer than three words.
pub(crate) fn texts(source: &Source) -> Vec<Passage> {
    let new = |kind, line, text| Passage {
        path: source.path.clone(),
        line,
        text,
        area: source.area().to_owned(),
        kind,
    };
    if source.language == Language::Markdown {
        return paragraphs(&source.text)
            .into_iter()
            .map(|(line, text)| new(Kind::Docs, line, text))
            .collect();
    }
    let is_help = HELP.iter().any(|table| source.path.starts_with(*table));
    let published = published(&source.code);
    let doc_kind = |range: &Range<usize>| {
        let of_item = published.iter().find(|(item, _)| {
            // In the item, or before its attributes.
            item.contains(&range.start)
                || range.end <= item.start && !source.code[range.end..item.start].contains([';', '{', '}'])
        });
        of_item.map_or(if is_help { Kind::Help } else { Kind::DocComments }, |(_, kind)| *kind)
    };
    let string_kind = |at| {
        let around = names_around(&source.code, at).into_iter().find_map(Kind::of_strings_in);
        if is_help { Kind::Help } else { around.unwrap_or(Kind::Strings) }
    };
    let mut found: Vec<Passage> = Vec::new();
    // Marker and line of the comment that the next line can continue.
    let mut above = None;
    let mut line = 1;
    let mut counted = 0;
    for piece in &source.pieces {
        let range = &piece.range;
        let raw = &source.text[range.clone()];
        line += source.text[counted..range.start].matches('\n').count();
        counted = range.start;
        let marker = ["///", "//!"].into_iter().find(|marker| raw.starts_with(*marker));
        match piece.kind {
            PieceKind::LineComment => {
                let text = unmarked(raw);
                let before = source.text[..range.start].rsplit('\n').next();
                let alone = before.is_some_and(|before| before.trim().is_empty());
                let continues = alone && above == Some((marker, line - 1));
                if let Some(last) = found.last_mut().filter(|_| continues) {
                    last.text = format!("{} {text}", last.text);
                } else {
                    let kind = match marker {
                        Some("///") => doc_kind(range),
                        Some(_) => Kind::DocComments,
                        None => Kind::Comments,
                    };
                    found.push(new(kind, line, text));
                }
                above = alone.then_some((marker, line));
            }
            PieceKind::BlockComment => {
                let is_doc = ["/**", "/*!", "\"\"\""].into_iter().any(|marker| raw.starts_with(marker));
                let kind = if is_doc { doc_kind(range) } else { Kind::Comments };
                found.push(new(kind, line, unmarked(raw)));
            }
            PieceKind::String => {
                let has_texts =
                    matches!(source.language, Language::Rust | Language::Script | Language::Python);
                if has_texts && raw.contains(' ') && !source.is_test(range) && !is_query(raw) {
                    let text = raw.replace("\\\n", " ").replace("\\n", " ");
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    if words(&text).count() >= 3 {
                        found.push(new(string_kind(range.start), line, text));
                    }
                }
            }
        }
    }
    found
}

fn is_query(text: &str) -> bool {
    let verb = text.split_whitespace().next().unwrap_or_default();
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "CREATE"].contains(&verb)
}

/// Paragraphs of a page with their first lines, without blocks of code, and with `X` for code in a line.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    let mut paragraph = None;
    for (line, number) in page.lines().zip(1..) {
        let fence = line.trim_start().starts_with("```");
        if fence || fenced || line.trim().is_empty() {
            found.extend(paragraph.take());
            fenced ^= fence;
        } else {
            let (_, text) = paragraph.get_or_insert((number, String::new()));
            *text += " ";
            *text += line;
        }
    }
    found.extend(paragraph);
    for (_, text) in &mut found {
        *text = without_code(text).split_whitespace().collect::<Vec<_>>().join(" ");
    }
    found
}

/// A text with `X` for code between backticks.
pub(crate) fn without_code(text: &str) -> String {
    text.split('`')
        .enumerate()
        .map(|(index, part)| if index.is_multiple_of(2) { part } else { "X" })
        .collect()
}

/// Texts of all files, except SQL: migrations can't be changed.
fn all() -> Result<Vec<Passage>> {
    Ok(sources()?.iter().filter(|source| source.language != Language::Sql).flat_map(texts).collect())
}

/// Counts of each area, and of each kind of text in it.
fn count<'t>(prose: &Prose, texts: &'t [Passage]) -> BTreeMap<(&'t str, Option<Kind>), Count> {
    let mut counts = BTreeMap::<_, Count>::new();
    for text in texts {
        let counted = prose.count(&text.text);
        for kind in [None, Some(text.kind)] {
            *counts.entry((text.area.as_str(), kind)).or_default() += counted;
        }
    }
    counts
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let worst = arguments.value("--worst", 0_usize)?;
    let record = arguments.switch("--record");
    let place = arguments.word().unwrap_or_default();
    arguments.finish()?;
    let prose = Prose::new()?;
    let texts = all()?;
    if worst > 0 {
        print_worst(&prose, &texts, worst, &place);
        return Ok(());
    }
    let counts = count(&prose, &texts);
    let mut limits = Limits::read()?;
    if record {
        let rates = counts.iter().filter(|((_, kind), _)| kind.is_none()).map(|((area, _), count)| {
            let rate = (count.rate() * 10.0).ceil() / 10.0;
            let recorded = limits.rates.get(*area).copied().unwrap_or(f64::INFINITY);
            ((*area).to_owned(), rate.min(recorded))
        });
        limits.rates = rates.collect();
        return limits.write();
    }
    println!("{:22} {:>8} {:>10} {:>9}", "", "words", "per 1,000", "limit");
    let mut kinds = BTreeMap::<Kind, Count>::new();
    for ((area, kind), count) in &counts {
        if let Some(kind) = kind {
            *kinds.entry(*kind).or_default() += *count;
            print_count(&format!("  {}", kind.name()), *count, None);
        } else {
            print_count(area, *count, limits.rates.get(*area));
        }
    }
    println!("all");
    for (kind, count) in kinds {
        print_count(&format!("  {}", kind.name()), count, None);
    }
    let mut subjects = Count::default();
    let log = output_of(Command::new("git").args(["log", "--format=%s"]).current_dir(root()))?;
    for subject in log.lines() {
        subjects += prose.count(subject);
    }
    print_count("  commit subjects", subjects, None);
    println!("The limits are in {PATH}. `cargo xtask words --record` lowers them to these rates.");
    Ok(())
}

fn print_count(name: &str, count: Count, limit: Option<&f64>) {
    let limit = limit.map(|limit| format!("{limit:.1}")).unwrap_or_default();
    println!("{name:22} {:8} {:10.1} {limit:>9}", count.words, count.rate());
}

/// Prints the texts of an area, or below a path, that have the most constructions for their length.
fn print_worst(prose: &Prose, texts: &[Passage], most: usize, place: &str) {
    let within = texts.iter().filter(|text| text.area == place || text.path.starts_with(place));
    let mut found: Vec<(usize, usize, &Passage)> = within
        .map(|text| (prose.count(&text.text), text))
        .filter(|(count, _)| count.hits > 0)
        .map(|(count, text)| (1000 * count.hits * count.hits / (count.words + 10), count.hits, text))
        .collect();
    found.sort_by_key(|(badness, _, _)| std::cmp::Reverse(*badness));
    for (_, hits, text) in found.into_iter().take(most) {
        println!("{}:{} ({hits})\n    {}\n", text.path, text.line, text.text);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::prose::script;

    #[test]
    fn no_crate_reads_worse_than_recorded() {
        let texts = all().expect("texts");
        assert!(texts.len() > 10_000, "the texts are elsewhere");
        let counts = count(&Prose::new().expect("patterns"), &texts);
        let limits = Limits::read().expect("limits").rates;
        let mut wrong = Vec::new();
        for ((area, kind), count) in counts {
            let limit = limits.get(area).copied().unwrap_or_default();
            if kind.is_none() && count.rate() > limit {
                wrong.push(format!(
                    "{area}: {:.2} unusual constructions per 1,000 words, the limit is {limit}: rewrite some \
                     of those that `cargo xtask words --worst 20 {area}` shows",
                    count.rate()
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{}\nThe limits are in {PATH}. `cargo xtask words --record` lowers them, and adds new crates.",
            wrong.join("\n")
        );
    }

    #[test]
    fn counts_are_those_of_the_shared_script() {
        const COUNT: &str = r#"
import sys
scope = {"__doc__": ""}
exec(open(sys.argv[1], encoding="utf8").read().rsplit("\nmain()", 1)[0], scope)
for text in open(sys.argv[2], encoding="utf8", newline="\n").read().split("\n"):
    print(len(scope["WORD"].findall(text)), len(scope["ALL"].findall(text)))
"#;
        // `cargo xtask test` reports the skipped check.
        let Some(script) = script() else { return };
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("texts");
        let texts: Vec<String> = all().expect("texts").into_iter().map(|text| text.text).collect();
        fs::write(&file, texts.join("\n")).expect("written");
        let mut python = Command::new("python3");
        let theirs = output_of(python.args(["-c", COUNT]).arg(script).arg(file)).expect("counts");
        let prose = Prose::new().expect("patterns");
        let mut compared = 0;
        for (text, theirs) in texts.iter().zip(theirs.lines()) {
            let ours = prose.count(text);
            assert_eq!(format!("{} {}", ours.words, ours.hits), theirs, "{text}");
            compared += 1;
        }
        assert_eq!(compared, texts.len());
    }

    #[test]
    fn texts_are_told_apart_by_their_readers() {
        let rust = r#"//! The first
//! of two.
/// A command.
#[derive(Clone, clap::Args)]
struct A {
    /// An option.
    b: u8, // Behind code.
}
/// A field.
#[derive(Debug, Error)]
#[error("it is wrong: {0}")]
struct C;
fn d() {
    info!(lease = 1, "lease has started");
    let e = E { help: "how it helps", f: g.context("no such thing")? };
    /* A
     * block. */
    h("SELECT a FROM b", "one two three", "two words");
}
"#;
        let told = |path: &str, language, text: &str| {
            let source = Source::new(path.to_owned(), language, text.to_owned());
            texts(&source).into_iter().map(|text| (text.kind, text.line, text.text)).collect::<Vec<_>>()
        };
        let expected = [
            (Kind::DocComments, 1, "The first of two."),
            (Kind::Help, 3, "A command."),
            (Kind::Help, 6, "An option."),
            (Kind::Comments, 7, "Behind code."),
            (Kind::DocComments, 9, "A field."),
            (Kind::Errors, 11, "it is wrong: {0}"),
            (Kind::Logs, 14, "lease has started"),
            (Kind::Help, 15, "how it helps"),
            (Kind::Errors, 15, "no such thing"),
            (Kind::Comments, 16, "A block."),
            (Kind::Strings, 18, "one two three"),
        ];
        let expected = expected.map(|(kind, line, text)| (kind, line, text.to_owned()));
        assert_eq!(told("crates/a/src/lib.rs", Language::Rust, rust), expected);
        let page = "# A\n\nb `c`\nd\n```text\ne\n```\nf\n";
        let expected =
            [(1, "# A"), (3, "b X d"), (8, "f")].map(|(line, text)| (Kind::Docs, line, text.to_owned()));
        assert_eq!(told("docs/a.md", Language::Markdown, page), expected);
    }
}
