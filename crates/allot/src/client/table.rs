//! Tables. On a terminal, a table is never wider than it: columns of prose are broken between words, and then whole
//! columns are left out. Words are not broken, since names and identifiers are there to be copied.

use std::rc::Rc;

use comfy_table::presets::{NOTHING, UTF8_FULL_CONDENSED};
use comfy_table::{ContentArrangement, Table as Drawn};

use super::failure::ClientError;

/// Columns that may be broken between words.
const PROSE: [&str; 11] = [
    "RESERVED",
    "HOSTS",
    "INSTANCES",
    "CAPABILITIES",
    "EXTRA SPECS",
    "VALUES",
    "NOT WITH",
    "MEANING",
    "REASON",
    "WHAT",
    "PROJECTS",
];
/// A column of prose is not made narrower than this, unless it has less.
const LEAST_PROSE: usize = 12;
/// Columns that are left out first; names are accepted wherever identifiers are.
const DISPENSABLE: [&str; 5] = ["ID", "REQUEST", "USER", "PROJECT", "HOLDS UNTIL"];

/// How results are laid out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    /// Columns of the terminal; none if it is not one. Some programs give theirs a width of 0, which says nothing.
    pub width: Option<u16>,
    /// All columns, however wide the terminal is.
    pub wide: bool,
    /// These columns and no others, by their headings.
    pub columns: Option<Rc<Vec<String>>>,
}

impl Style {
    /// As standard output wants it.
    pub(crate) fn of_output(wide: bool, columns: Option<Vec<String>>) -> Self {
        Self { width: Drawn::new().width(), wide, columns: columns.map(Rc::new) }
    }

    /// Whether a person looks at it.
    pub(crate) fn terminal(&self) -> bool {
        self.width.is_some()
    }

    /// A table with these headings.
    pub(crate) fn table<H: AsRef<str>>(&self, headings: &[H]) -> Table {
        let headings = headings.iter().map(|heading| heading.as_ref().to_owned()).collect();
        Table { style: self.clone(), headings, rows: Vec::new() }
    }
}

/// Headings and rows.
#[derive(Debug)]
pub(crate) struct Table {
    style: Style,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row: a cell for each heading.
    pub(crate) fn add_row<C: ToString>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(|cell| cell.to_string()).collect());
    }

    /// The columns that were asked for, or all.
    fn chosen(&self) -> Result<Vec<usize>, ClientError> {
        let Some(names) = &self.style.columns else { return Ok((0..self.headings.len()).collect()) };
        let chosen = names.iter().map(|name| {
            let same = |heading: &&String| plain(heading).eq_ignore_ascii_case(name.trim());
            self.headings.iter().position(|heading| same(&heading)).ok_or_else(|| {
                let known: Vec<&str> = self.headings.iter().map(|heading| plain(heading)).collect();
                ClientError::Usage(format!("--columns {name}: this table has {}", known.join(", ")))
            })
        });
        chosen.collect()
    }

    /// Columns a table on a terminal needs for a column of text.
    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.chain([&self.headings[column]]).map(|cell| width(cell)).max().unwrap_or(0)
    }

    /// The least that a column can do with.
    fn least(&self, column: usize) -> usize {
        let natural = self.natural(column);
        if !PROSE.contains(&plain(&self.headings[column])) {
            return natural;
        }
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let words = cells.chain([&self.headings[column]]).flat_map(|cell| cell.split(' ')).map(width);
        words.max().unwrap_or(0).max(LEAST_PROSE).min(natural)
    }

    /// The columns that fit, and how wide each is; the first is always there.
    fn fitted(&self, mut columns: Vec<usize>, most: usize) -> Vec<(usize, usize)> {
        // A cell has a blank on either side, and there is a line beside each.
        let total = |columns: &[usize], wide: &dyn Fn(usize) -> usize| {
            columns.iter().map(|column| wide(*column) + 3).sum::<usize>() + 1
        };
        let least = |column| self.least(column);
        while columns.len() > 1 && total(&columns, &least) > most {
            let by_name = DISPENSABLE.iter().find_map(|name| {
                columns.iter().skip(1).position(|column| plain(&self.headings[*column]) == *name)
            });
            columns.remove(by_name.map_or(columns.len() - 1, |place| place + 1));
        }
        let mut left = most.saturating_sub(total(&columns, &least));
        let widen = |column: usize| {
            let more = (self.natural(column) - self.least(column)).min(left);
            left -= more;
            (column, self.least(column) + more)
        };
        columns.into_iter().map(widen).collect()
    }
}

/// A heading without what is said in brackets.
fn plain(heading: &str) -> &str {
    heading.split(" (").next().unwrap_or(heading)
}

/// Columns that a text takes on a terminal.
fn width(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The text in lines that are at most so wide, broken between words.
fn broken(text: &str, most: usize) -> String {
    let (mut broken, mut taken) = (String::new(), 0);
    for word in text.split(' ') {
        if taken > 0 {
            let fits = taken + 1 + width(word) <= most;
            broken.push(if fits { ' ' } else { '\n' });
            taken = if fits { taken + 1 } else { 0 };
        }
        broken.push_str(word);
        taken += width(word);
    }
    broken
}

/// The table as text, without blanks at the ends of lines: ruled on a terminal, columns and nothing else for a pipe.
/// Fails if a column is asked for that it does not have.
pub(crate) fn text(table: &Table) -> Result<String, ClientError> {
    let chosen = table.chosen()?;
    let style = &table.style;
    let asked = style.wide || style.columns.is_some();
    let most = style.width.filter(|width| *width > 0 && !asked).map_or(usize::MAX, usize::from);
    let all = chosen.clone();
    let fitted = table.fitted(chosen, most);
    let mut drawn = Drawn::new();
    drawn.load_style(if style.terminal() { UTF8_FULL_CONDENSED } else { NOTHING });
    drawn.set_content_arrangement(ContentArrangement::Disabled);
    let cells = |row: &[String]| -> Vec<String> {
        let cell = |(column, most): &(usize, usize)| {
            let cell = row.get(*column).map_or("", String::as_str);
            if width(cell) > *most { broken(cell, *most) } else { cell.to_owned() }
        };
        fitted.iter().map(cell).collect()
    };
    drawn.set_header(cells(&table.headings));
    for row in &table.rows {
        drawn.add_row(cells(row));
    }
    let mut lines: Vec<String> = drawn.lines().map(|line| line.trim_end().to_owned()).collect();
    let missing = all.iter().filter(|column| fitted.iter().all(|(shown, _)| shown != *column));
    let missing: Vec<&str> = missing.map(|column| plain(&table.headings[*column])).collect();
    if !missing.is_empty() {
        lines.push(format!("Without {}, for want of room: -o wide shows all.", missing.join(", ")));
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";

    fn shown(style: &Style) -> String {
        let mut table = style.table(&["NAME", "PROJECT", "STATUS", "START (UTC)", "RESERVED", "ID"]);
        let reserved = "2 hosts, 4 instances of 2 vCPU, 4096 MiB, 20 GiB";
        table.add_row(["thermal-runs", "physics", "TERMINATED", "2026-11-22 03:32", reserved, ID]);
        text(&table).expect("its columns are known")
    }

    fn on_terminal(width: u16) -> String {
        shown(&Style { width: Some(width), ..Style::default() })
    }

    #[test]
    fn no_word_is_broken_however_narrow_the_terminal_is() {
        for width in (20..200).chain([u16::MAX]) {
            let text = on_terminal(width);
            let widest = text.lines().filter(|line| line.contains(['│', '┆'])).map(super::width).max();
            assert!(widest.is_some_and(|widest| widest <= usize::from(width)), "{width}:\n{text}");
            for word in ["thermal-runs", "physics", "TERMINATED", "2026-11-22 03:32", ID] {
                let begun = text.contains(&word[..5]);
                assert!(!begun || text.contains(word), "{width}:\n{text}");
            }
        }
    }

    #[test]
    fn identifiers_are_left_out_before_projects_and_that_is_said() {
        let at_80 = on_terminal(80);
        assert!(!at_80.contains(ID) && at_80.contains("physics"), "{at_80}");
        assert!(at_80.ends_with("Without ID, for want of room: -o wide shows all."), "{at_80}");
        let at_60 = on_terminal(60);
        assert!(!at_60.contains("physics") && at_60.contains("TERMINATED"), "{at_60}");
        for unknown in [u16::MAX, 0] {
            assert!(on_terminal(unknown).contains(ID), "{unknown}");
        }
    }

    #[test]
    fn wide_tables_and_chosen_columns_are_as_they_were_asked_for() {
        let wide = shown(&Style { width: Some(40), wide: true, columns: None });
        assert!(wide.contains(ID) && wide.contains("physics") && !wide.contains("Without"), "{wide}");
        let columns = Some(Rc::new(vec!["id".to_owned(), "start".to_owned()]));
        let chosen = shown(&Style { width: None, wide: false, columns });
        assert_eq!(chosen.lines().map(str::trim).collect::<Vec<_>>().len(), 2);
        assert!(chosen.contains(ID) && !chosen.contains("physics"), "{chosen}");
        assert!(chosen.find(ID) < chosen.find("2026"), "{chosen}");
        let unknown = Style { columns: Some(Rc::new(vec!["COLOR".to_owned()])), ..Style::default() };
        let refused = text(&unknown.table(&["NAME", "START (UTC)"])).expect_err("no such column").to_string();
        assert_eq!(refused, "--columns COLOR: this table has NAME, START");
    }

    #[test]
    fn a_pipe_gets_every_column_in_one_line_each() {
        let text = shown(&Style::default());
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(ID) && !text.contains('│'), "{text}");
    }
}
