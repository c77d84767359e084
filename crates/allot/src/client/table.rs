//! Tables. On a narrow terminal, columns of prose and dates are wrapped between words. Then columns with the same
//! value in all rows become a line above the table, and other columns are hidden in the order that the table
//! declares. Words are never broken, since people copy names and identifiers.

use std::collections::BTreeSet;
use std::rc::Rc;

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table as Drawn};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::dates::{of_answer, show, show_brief, show_seconds, zone_name};
use super::failure::ClientError;
use super::wire::is_uuid;
use crate::shown::{broken, width};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables; on a terminal with short IDs and dates, and only the columns that fit
    #[default]
    Table,
    /// Tables with all columns, full IDs and dates
    Wide,
    /// Comma-separated values, with all columns
    Csv,
    /// IDs or names, one per line
    Name,
    /// The service's JSON; errors are JSON as well, one line on standard error
    Json,
    /// The service's JSON as YAML
    Yaml,
}

/// Minimum width of a prose column, unless its content is narrower.
const LEAST_PROSE: usize = 12;
/// Minimum width of a column of dates: that of `2030-01-02`.
const DAY: usize = 10;
/// Minimum length of a shortened identifier. It is longer if two in a column would look the same.
const SHORT_ID: usize = 8;

/// Layout of results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    /// Width of the terminal, or `None` if the output isn't a terminal. Some programs report a width of 0,
    /// which means that it's unknown.
    pub width: Option<u16>,
    pub format: Format,
    /// Headings of the columns to show. `None` shows all.
    pub columns: Option<Rc<Vec<String>>>,
    pub no_header: bool,
}

impl Style {
    pub(crate) fn of_output(format: Format, columns: Option<Vec<String>>, no_header: bool) -> Self {
        Self { width: Drawn::new().width(), format, columns: columns.map(Rc::new), no_header }
    }

    /// Whether the output is a terminal.
    pub(crate) fn terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Maximum width of a line. Unlimited if the width is unknown.
    pub(crate) fn columns_of_terminal(&self) -> usize {
        self.width.filter(|width| *width > 0).map_or(usize::MAX, usize::from)
    }

    /// Whether identifiers and dates are shortened.
    pub(crate) fn is_brief(&self) -> bool {
        self.terminal() && self.format == Format::Table
    }
}

/// Type of a column, which determines how its cells are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Never broken.
    Word,
    /// Can be wrapped between words.
    Prose,
    /// Identifiers, or names in their place.
    Id,
    /// Dates in responses, shown to the minute.
    Date,
    /// Dates in responses, shown to the second.
    Time,
    /// Dates in responses, of which only the day is shown.
    Day,
    /// Dates in responses, of which only the month is shown.
    Month,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    heading: String,
    kind: Kind,
    /// Position in the order in which columns are hidden on a narrow terminal. `None` is never hidden.
    hidden: Option<u8>,
    /// Width below which other columns are hidden first.
    wanted: usize,
    names_row: bool,
}

impl Column {
    fn new(heading: &str, kind: Kind) -> Self {
        Self { heading: heading.to_owned(), kind, hidden: None, wanted: 0, names_row: false }
    }

    /// Hides the column as the nth one on a narrow terminal.
    pub(crate) fn hide(self, nth: u8) -> Self {
        Self { hidden: Some(nth), ..self }
    }

    /// Sets the width of a column of long prose below which other columns are hidden first.
    pub(crate) fn at_least(self, wanted: usize) -> Self {
        Self { wanted, ..self }
    }

    pub(crate) fn heading(&self) -> &str {
        &self.heading
    }

    /// Marks the column that names the row and is printed by `-o name`.
    pub(crate) fn key(self) -> Self {
        Self { names_row: true, ..self }
    }

    fn is_date(&self) -> bool {
        matches!(self.kind, Kind::Date | Kind::Time | Kind::Day | Kind::Month)
    }
}

pub(crate) fn word(heading: &str) -> Column {
    Column::new(heading, Kind::Word)
}

pub(crate) fn prose(heading: &str) -> Column {
    Column::new(heading, Kind::Prose)
}

pub(crate) fn id(heading: &str) -> Column {
    Column::new(heading, Kind::Id)
}

pub(crate) fn date(heading: &str) -> Column {
    Column::new(heading, Kind::Date)
}

pub(crate) fn time(heading: &str) -> Column {
    Column::new(heading, Kind::Time)
}

/// Column of starts of periods: `hour`, `day` or `month`.
pub(crate) fn period(heading: &str, length: &str) -> Column {
    let kind = match length {
        "month" => Kind::Month,
        "day" => Kind::Day,
        _ => Kind::Date,
    };
    Column::new(heading, kind)
}

#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Note to show instead of an empty table.
    none: Option<&'static str>,
    /// Whether other tables continue this one, so that its columns must not depend on its rows.
    paged: bool,
}

/// A table as text, with its notes.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub text: String,
    pub notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), none: None, paged: false }
    }

    /// Sets the note to show instead of an empty table.
    pub(crate) fn or(self, none: &'static str) -> Self {
        Self { none: Some(none), ..self }
    }

    /// Marks a table that other tables with the same columns continue.
    pub(crate) fn paged(self) -> Self {
        Self { paged: true, ..self }
    }

    /// Adds a row with one cell per column.
    pub(crate) fn add_row<C: ToString>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(|cell| cell.to_string()).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as written to a pipe, with times in UTC.
    #[cfg(test)]
    pub(crate) fn in_pipe(&self) -> String {
        let rendered = self.render(&Style::default(), &TimeZone::UTC, Timestamp::UNIX_EPOCH);
        rendered.expect("its columns are known").text
    }

    /// Lays out the table, without trailing spaces. Fails if a requested column doesn't exist.
    pub(crate) fn render(
        &self,
        style: &Style,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<Rendered, ClientError> {
        let columns = self.chosen(style)?;
        let mut notes = Vec::new();
        let none = self.none.filter(|_| self.is_empty() && style.format != Format::Csv);
        if let Some(none) = none {
            return Ok(Rendered { text: String::new(), notes: vec![none.to_owned()] });
        }
        let cells = |column: &usize| self.cells(*column, style.is_brief(), zone, now);
        let shown: Vec<Shown<'_>> = columns
            .iter()
            .map(|column| Shown { column: &self.columns[*column], cells: cells(column), width: 0 })
            .collect();
        let has_dates = |column: &usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(*column));
            self.columns[*column].is_date() && cells.any(|cell| of_answer(cell).is_some())
        };
        let dated = columns.iter().any(has_dates);
        let text = match style.format {
            Format::Name => shown[0].cells.join("\n"),
            Format::Csv => csv(&shown, self.rows.len(), style.no_header),
            _ => {
                let fits = style.format == Format::Wide || style.columns.is_some();
                let most = if fits { usize::MAX } else { style.columns_of_terminal() };
                // One row would become a line as a whole.
                let may_extract = !self.paged && !style.no_header && self.rows.len() > 1;
                let Fitted { shown, common, hidden } = fitted(shown, most, may_extract);
                if !hidden.is_empty() {
                    notes.push(format!("Hidden: {} (-o wide shows all columns)", hidden.join(", ")));
                }
                let drawn = drawn(&shown, self.rows.len(), style.no_header);
                let common = broken(&common.join(", "), most.saturating_sub(1)).replace('\n', "\n ");
                if common.is_empty() { drawn } else { format!(" {common}\n{drawn}") }
            }
        };
        if dated && style.format != Format::Name {
            notes.push(format!("Times are {}.", zone_name(zone)));
        }
        Ok(Rendered { text, notes })
    }

    /// Indices of the requested columns, or of all. For `-o name`, the column that names the row.
    fn chosen(&self, style: &Style) -> Result<Vec<usize>, ClientError> {
        if style.format == Format::Name {
            let key = self.columns.iter().position(|column| column.names_row);
            let none = || ClientError::Usage("-o name: these rows have no names".to_owned());
            return Ok(vec![key.ok_or_else(none)?]);
        }
        let Some(names) = &style.columns else { return Ok((0..self.columns.len()).collect()) };
        let chosen = names.iter().map(|name| {
            let mut columns = self.columns.iter();
            columns.position(|column| column.heading.eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
                let known: Vec<&str> = self.columns.iter().map(|column| column.heading.as_str()).collect();
                ClientError::Usage(format!("--columns {name}: this table has {}", known.join(", ")))
            })
        });
        chosen.collect()
    }

    /// Cells of a column as shown.
    fn cells(&self, column: usize, brief: bool, zone: &TimeZone, now: Timestamp) -> Vec<String> {
        let cells = || self.rows.iter().map(move |row| row.get(column).map_or("", String::as_str));
        let kind = self.columns[column].kind;
        let with_dates = |show: &dyn Fn(Timestamp) -> String| -> Vec<String> {
            cells().map(|cell| of_answer(cell).map_or_else(|| cell.to_owned(), show)).collect()
        };
        match (kind, brief) {
            (Kind::Date | Kind::Time, true) => {
                with_dates(&|at| show_brief(at, now, zone, kind == Kind::Time))
            }
            (Kind::Date, false) => with_dates(&|at| show(at, zone)),
            (Kind::Time, false) => with_dates(&|at| show_seconds(at, zone)),
            (Kind::Day | Kind::Month, _) => {
                let format = if kind == Kind::Day { "%Y-%m-%d" } else { "%Y-%m" };
                // The service splits periods in UTC if it isn't sent the name of a zone.
                let days = if zone.iana_name().is_some() { zone.clone() } else { TimeZone::UTC };
                with_dates(&|at| at.to_zoned(days.clone()).strftime(format).to_string())
            }
            (Kind::Id, true) => {
                let length = short_length(cells());
                let short = |cell: &str| {
                    if is_identifier(cell) { cell[..length].to_owned() } else { cell.to_owned() }
                };
                cells().map(short).collect()
            }
            (Kind::Prose, true) => cells().map(with_short_ids).collect(),
            (Kind::Id | Kind::Word | Kind::Prose, _) => cells().map(str::to_owned).collect(),
        }
    }
}

/// Whether the text is a UUID or an identifier of Keystone, which has no dashes.
pub(crate) fn is_identifier(cell: &str) -> bool {
    is_uuid(cell) || cell.len() == 32 && cell.bytes().all(|letter| letter.is_ascii_hexdigit())
}

/// Prefix length at which all identifiers differ, at least [`SHORT_ID`].
pub(crate) fn short_length<'a>(cells: impl Iterator<Item = &'a str>) -> usize {
    let ids: BTreeSet<&str> = cells.filter(|cell| is_identifier(cell)).collect();
    let pairs = ids.iter().zip(ids.iter().skip(1));
    let same = |(a, b): (&&str, &&str)| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count() + 1;
    pairs.map(same).max().unwrap_or(0).max(SHORT_ID)
}

/// Shortens identifiers in prose, which couldn't be wrapped to less than their length.
fn with_short_ids(prose: &str) -> String {
    let short = |word: &str| {
        let id = word.trim_end_matches([',', '.']);
        if is_identifier(id) { word.replace(id, &id[..SHORT_ID]) } else { word.to_owned() }
    };
    prose.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// A column with its cells as shown.
struct Shown<'t> {
    column: &'t Column,
    cells: Vec<String>,
    /// Width assigned to the column.
    width: usize,
}

impl Shown<'_> {
    /// Width at which no cell is wrapped.
    fn natural(&self) -> usize {
        self.cells.iter().chain([&self.column.heading]).map(|cell| width(cell)).max().unwrap_or(0)
    }

    /// Minimum width. Headings, prose and dates can be wrapped.
    fn least(&self) -> usize {
        let widest_word = |cell: &String| cell.split(' ').map(width).max().unwrap_or(0);
        let heading = widest_word(&self.column.heading);
        let words = || self.cells.iter().map(widest_word).max().unwrap_or(0).max(heading);
        match self.column.kind {
            Kind::Prose => words().max(LEAST_PROSE).min(self.natural()),
            // `Tue 18:00` stays on one line.
            Kind::Date | Kind::Time => words().max(DAY).min(self.natural()),
            Kind::Word | Kind::Id | Kind::Day | Kind::Month => {
                self.cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(heading)
            }
        }
    }

    /// Width below which other columns are hidden.
    fn wanted(&self) -> usize {
        self.column.wanted.min(self.natural()).max(self.least())
    }

    /// The value that all rows have, if it isn't empty.
    fn common(&self) -> Option<&str> {
        let first = self.cells.first().filter(|cell| !cell.is_empty() && !self.column.heading.is_empty())?;
        self.cells.iter().all(|cell| cell == first).then_some(first.as_str())
    }

    fn line(&self, cell: &str) -> String {
        if width(cell) > self.width { broken(cell, self.width) } else { cell.to_owned() }
    }
}

/// Columns that fit a width.
struct Fitted<'t> {
    shown: Vec<Shown<'t>>,
    /// `heading: value` of columns with the same value in all rows.
    common: Vec<String>,
    /// Headings of hidden columns.
    hidden: Vec<String>,
}

/// Removes columns until the others fit, and assigns their widths. Columns without content are hidden first.
/// Then those with the same value in all rows are extracted, then the others are hidden in the table's order.
fn fitted(mut shown: Vec<Shown<'_>>, most: usize, may_extract: bool) -> Fitted<'_> {
    let (mut common, mut hidden) = (Vec::new(), Vec::new());
    // Each cell has a space on either side.
    let wanted = |shown: &[Shown<'_>]| shown.iter().map(|shown| shown.wanted() + 2).sum::<usize>();
    let least = |shown: &[Shown<'_>]| shown.iter().map(|shown| shown.least() + 2).sum::<usize>();
    while wanted(&shown) > most {
        let is_empty =
            |shown: &Shown<'_>| !shown.cells.is_empty() && shown.cells.iter().all(String::is_empty);
        if let Some(at) = shown.iter().position(is_empty) {
            hidden.push(shown.remove(at).column.heading.clone());
            continue;
        }
        // Columns that are never hidden come last in this order.
        let rank = |at: &usize| shown[*at].column.hidden.unwrap_or(u8::MAX);
        let is_common = |at: &usize| may_extract && shown.len() > 1 && shown[*at].common().is_some();
        let extracted = (0..shown.len()).filter(is_common).min_by_key(rank);
        let can_hide = |at: &usize| shown[*at].column.hidden.is_some();
        let hideable = (0..shown.len()).filter(can_hide).min_by_key(rank);
        if let Some(at) = extracted {
            let removed = shown.remove(at);
            let heading = removed.column.heading.to_lowercase();
            common.push(format!("{heading}: {}", removed.common().unwrap_or_default().trim()));
        } else if let Some(at) = hideable {
            hidden.push(shown.remove(at).column.heading.clone());
        } else {
            break;
        }
    }
    let mut left = most.saturating_sub(least(&shown));
    for column in &mut shown {
        let more = (column.natural() - column.least()).min(left);
        left -= more;
        column.width = column.least() + more;
    }
    Fitted { shown, common, hidden }
}

fn drawn(shown: &[Shown<'_>], rows: usize, no_header: bool) -> String {
    let mut drawn = Drawn::new();
    drawn.load_style(NOTHING);
    drawn.set_content_arrangement(ContentArrangement::Disabled);
    if !no_header {
        drawn.set_header(shown.iter().map(|shown| shown.line(&shown.column.heading)));
    }
    for row in 0..rows {
        drawn.add_row(shown.iter().map(|shown| shown.line(&shown.cells[row])));
    }
    drawn.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Comma-separated values, quoted as in RFC 4180.
fn csv(shown: &[Shown<'_>], rows: usize, no_header: bool) -> String {
    let line = |cells: &mut dyn Iterator<Item = &String>| {
        let quoted = |cell: &String| cell.contains([',', '"', '\n', '\r']);
        let fields =
            cells.map(
                |cell| if quoted(cell) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() },
            );
        fields.collect::<Vec<_>>().join(",")
    };
    let header = (!no_header).then(|| line(&mut shown.iter().map(|shown| &shown.column.heading)));
    let rows = (0..rows).map(|row| line(&mut shown.iter().map(|shown| &shown.cells[row])));
    header.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
