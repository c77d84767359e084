//! Tables.

use comfy_table::presets::{NOTHING, UTF8_FULL_CONDENSED};
use comfy_table::{ContentArrangement, Table};

/// How results are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Columns of the terminal; none if it is not one, and lines are then never broken.
    pub width: Option<u16>,
}

impl Style {
    /// As standard output wants it.
    pub(crate) fn of_output() -> Self {
        Self { width: Table::new().width() }
    }

    /// Whether a person looks at it.
    pub(crate) fn terminal(self) -> bool {
        self.width.is_some()
    }

    /// A table with these headings: ruled on a terminal, columns and nothing else for a pipe.
    pub(crate) fn table(self, headings: &[&str]) -> Table {
        let mut table = Table::new();
        table.set_header(headings);
        if let Some(width) = self.width {
            table.load_style(UTF8_FULL_CONDENSED);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        } else {
            table.load_style(NOTHING);
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        table
    }
}

/// The table as text, without blanks at the ends of lines.
pub(crate) fn text(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
