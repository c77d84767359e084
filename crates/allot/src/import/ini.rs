//! Files of settings of `OpenStack`'s services: sections, `name = value`, and values that go on in indented lines.

use thiserror::Error;

/// An option that a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub section: String,
    pub name: String,
    pub value: String,
    /// From 1.
    pub line: usize,
}

/// A line that is no part of such a file.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {reason}")]
pub(super) struct SyntaxError {
    pub line: usize,
    reason: &'static str,
}

/// Reads all options, in the order of the file. An option may be there several times.
pub(super) fn parse(text: &str) -> Result<Vec<Given>, SyntaxError> {
    let mut found: Vec<Given> = Vec::new();
    let mut section: Option<String> = None;
    // Whether an indented line would go on with the last option.
    let mut open = false;
    for (number, raw) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let line = number + 1;
        let wrong = |reason| SyntaxError { line, reason };
        let content = raw.trim();
        if content.is_empty() {
            open = false;
        } else if raw.starts_with(['#', ';']) {
            // A comment within a value does not end it.
        } else if raw.starts_with(char::is_whitespace) {
            let last = found.last_mut().filter(|_| open);
            let last = last.ok_or_else(|| wrong("this indented line goes on with no option"))?;
            last.value.push('\n');
            last.value.push_str(content);
        } else if let Some(name) = content.strip_prefix('[') {
            let name = name.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            section = Some(name.ok_or_else(|| wrong("a section is written as [name]"))?.to_owned());
            open = false;
        } else {
            let (name, value) = content
                .split_once(['=', ':'])
                .ok_or_else(|| wrong("an option is written as name = value"))?;
            let section = section.clone().ok_or_else(|| wrong("an option stands before any [section]"))?;
            let (name, value) = (name.trim().to_owned(), unquoted(value.trim()).to_owned());
            if name.is_empty() {
                return Err(wrong("an option has no name"));
            }
            found.push(Given { section, name, value, line });
            open = true;
        }
    }
    Ok(found)
}

/// The text between quotation marks, if it stands between two of a kind.
fn unquoted(value: &str) -> &str {
    let within = |mark: char| value.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<(String, String, String, usize)> {
        let given = parse(text).unwrap().into_iter();
        given.map(|given| (given.section, given.name, given.value, given.line)).collect()
    }

    fn option(section: &str, name: &str, value: &str, line: usize) -> (String, String, String, usize) {
        (section.to_owned(), name.to_owned(), value.to_owned(), line)
    }

    #[test]
    fn options_have_sections_values_and_lines() {
        let text =
            "# first\n[DEFAULT]\nhost = '10.0.0.1'\n; second\nport: 1234\n\n[physical:host]\nbefore_end =\n";
        let wanted = [
            option("DEFAULT", "host", "10.0.0.1", 3),
            option("DEFAULT", "port", "1234", 5),
            option("physical:host", "before_end", "", 8),
        ];
        assert_eq!(options(text), wanted);
    }

    #[test]
    fn an_indented_line_goes_on_with_a_value() {
        let text = "[manager]\r\nplugins = a,\r\n# not this\r\n  b\r\n";
        assert_eq!(options(text), [option("manager", "plugins", "a,\nb", 2)]);
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_line() {
        for (text, line) in
            [("host = x", 1), ("[a]\n\n  b", 3), ("[a\n", 1), ("[a]\nb", 2), ("[a]\n= b", 2), ("[]", 1)]
        {
            assert_eq!(parse(text).unwrap_err().line, line, "{text:?}");
        }
    }
}
