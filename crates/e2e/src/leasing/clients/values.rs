//! Assertions on values and tables, with errors that show both sides.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Checks a member of a JSON object.
pub fn is(value: &Value, member: &str, wanted: impl Into<Value>) -> Result<()> {
    let wanted = wanted.into();
    ensure!(value[member] == wanted, "{member} is {} instead of {wanted}: {value}", value[member]);
    Ok(())
}

/// Checks that two values are equal.
#[expect(clippy::needless_pass_by_value, reason = "most callers pass a literal")]
pub fn same<A: PartialEq<B> + std::fmt::Debug, B: std::fmt::Debug>(found: A, wanted: B) -> Result<()> {
    ensure!(found == wanted, "found {found:?} instead of {wanted:?}");
    Ok(())
}

/// The string member `name` of each item; "?" if it isn't a string.
pub fn members<'a>(items: &'a [Value], name: &str) -> Vec<&'a str> {
    items.iter().map(|item| item[name].as_str().unwrap_or("?")).collect()
}

/// Column titles of a printed table.
pub fn columns(table: &str) -> Result<Vec<&str>> {
    let titles =
        table.lines().find(|line| line.starts_with('|')).with_context(|| format!("no table: {table}"))?;
    Ok(titles.trim_matches('|').split('|').map(str::trim).collect())
}

/// Cells of a column, by row.
pub fn column<'a>(table: &'a str, title: &str) -> Result<Vec<&'a str>> {
    let at = columns(table)?.iter().position(|&found| found == title);
    let at = at.with_context(|| format!("no column {title}: {table}"))?;
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(1);
    Ok(rows.filter_map(|row| row.trim_matches('|').split('|').nth(at)).map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_by_column() {
        let table =
            "+----+------+\n| id | name |\n+----+------+\n| 1  | a    |\n| 2  | b    |\n+----+------+\n";
        assert_eq!(columns(table).unwrap(), ["id", "name"]);
        assert_eq!(column(table, "name").unwrap(), ["a", "b"]);
        assert!(column(table, "x").is_err());
    }
}
