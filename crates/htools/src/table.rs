//! Text tables (HT-tables).

use std::fmt::Write;

/// Formats rows under optional headers. Columns are as wide as their longest cell.
///
/// Columns are right-aligned if `numeric` is true. Lines keep their trailing padding. Cells beyond the end of
/// `numeric` or of the headers are dropped.
pub fn format_table(
    headers: Option<&[&str]>,
    rows: &[Vec<String>],
    numeric: &[bool],
    indent: usize,
) -> String {
    let mut widths: Vec<usize> = match headers {
        Some(headers) => headers.iter().map(|h| h.chars().count()).collect(),
        None => vec![0; numeric.len()],
    };
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        out.extend(std::iter::repeat_n(' ', indent));
        for ((cell, width), numeric) in cells.zip(&widths).zip(numeric) {
            // Writing to a string cannot fail.
            let _ = if *numeric { write!(out, " {cell:>width$}") } else { write!(out, " {cell:<width$}") };
        }
        out.push('\n');
    };
    if let Some(headers) = headers {
        line(&mut headers.iter().copied());
    }
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables() {
        let check = |headers: Option<&[&str]>, rows: &[&[&str]], indent: usize, expect: &str| {
            let rows: Vec<Vec<String>> =
                rows.iter().map(|r| r.iter().map(|&c| c.to_owned()).collect()).collect();
            assert_eq!(format_table(headers, &rows, &[false, true], indent), expect);
        };
        check(None, &[], 0, "");
        check(Some(&["Name", "n"]), &[], 1, "  Name n\n");
        check(Some(&["N", "n"]), &[&["abc", "1"], &["ü", "100"]], 0, " N     n\n abc   1\n ü   100\n");
        check(None, &[&["a", ""], &["", "22"]], 2, "   a   \n     22\n");
    }
}
