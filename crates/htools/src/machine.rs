//! Keys and values for scripts (`--machine-readable`, HT-hspace, HT-hcheck).

use std::borrow::Cow;

/// Quotes a value for a shell: in single quotes, unless it consists of letters, digits and dots.
///
/// Quotes in the value are not escaped: no name that Ganeti accepts has any.
pub(crate) fn quoted(value: &str) -> Cow<'_, str> {
    if value.chars().all(|c| c.is_alphanumeric() || c == '.') {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("'{value}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn only_plain_values_go_without_quotes() {
        for (value, expected) in
            [("", ""), ("1.5", "1.5"), ("a1", "a1"), ("-1", "'-1'"), ("a b", "'a b'"), ("u-1", "'u-1'")]
        {
            assert_eq!(quoted(value), expected);
        }
    }
}
