//! Lookup by name or alias.

use thiserror::Error;

/// A name that matches no record, or more than one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("Wrong number of elems found with name {0}")]
pub struct LookupError(pub String);

/// Longest common suffix of the names that starts with a dot; empty if there is none.
///
/// Aliases are names without it.
pub fn common_suffix<'a>(names: impl IntoIterator<Item = &'a str>) -> &'a str {
    let mut names = names.into_iter();
    let Some(first) = names.next() else { return "" };
    let mut suffix = first;
    for name in names {
        let equal = suffix.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
        let mut start = suffix.len() - equal;
        while !suffix.is_char_boundary(start) {
            start += 1;
        }
        suffix = &suffix[start..];
        if suffix.is_empty() {
            return "";
        }
    }
    suffix.find('.').map_or("", |dot| &suffix[dot..])
}
