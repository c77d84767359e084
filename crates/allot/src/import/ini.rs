//! Configuration files of `OpenStack`'s services: sections, `name = value`, and values that continue in
//! indented lines.

/// An option in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub section: String,
    pub name: String,
    pub value: String,
    /// From 1.
    pub line: usize,
}

/// An invalid line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misplaced {
    pub line: usize,
    pub reason: &'static str,
}

/// Parses all options, in the order of the file, and skips invalid lines. An option can occur several times.
pub(super) fn parse(text: &str) -> (Vec<Given>, Vec<Misplaced>) {
    let mut found: Vec<Given> = Vec::new();
    let mut misplaced = Vec::new();
    let mut section: Option<String> = None;
    // Whether an indented line would continue the last option.
    let mut open = false;
    for (number, raw) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let line = number + 1;
        let mut pass_over = |reason| misplaced.push(Misplaced { line, reason });
        let content = raw.trim();
        if content.is_empty() {
            open = false;
        } else if raw.starts_with(['#', ';']) {
            // A comment within a value doesn't end the value.
        } else if raw.starts_with(char::is_whitespace) {
            match found.last_mut().filter(|_| open) {
                Some(last) => {
                    last.value.push('\n');
                    last.value.push_str(content);
                }
                None => pass_over("this indented line goes on with no option"),
            }
        } else if let Some(name) = content.strip_prefix('[') {
            open = false;
            let is_comment = |rest: &str| rest.is_empty() || rest.starts_with(['#', ';']);
            let name = name.split_once(']').filter(|(_, rest)| is_comment(rest.trim_start()));
            let name = name.map(|(name, _)| name.trim()).filter(|name| !name.is_empty());
            // If the heading is invalid, the options below it must not count for the section above.
            section = name.map(str::to_owned);
            if name.is_none() {
                pass_over("a section is written as [name]");
            }
        } else {
            open = false;
            match (content.split_once(['=', ':']), &section) {
                (None, _) => pass_over("an option is written as name = value"),
                (_, None) => pass_over("an option stands before any [section]"),
                (Some((name, _)), _) if name.trim().is_empty() => pass_over("an option has no name"),
                (Some((name, value)), Some(section)) => {
                    let (name, value) = (name.trim().to_owned(), unquoted(value.trim()).to_owned());
                    found.push(Given { section: section.clone(), name, value, line });
                    open = true;
                }
            }
        }
    }
    (found, misplaced)
}

/// Removes matching quotation marks around a value.
fn unquoted(value: &str) -> &str {
    let within = |mark: char| value.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<(String, String, String, usize)> {
        let (given, misplaced) = parse(text);
        assert_eq!(misplaced, []);
        let given = given.into_iter();
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
    fn a_comment_can_follow_a_section() {
        for heading in ["[a] # why", "[ a ];", "[a]"] {
            assert_eq!(options(&format!("{heading}\nb = 1\n")), [option("a", "b", "1", 2)]);
        }
    }

    #[test]
    fn lines_that_are_no_options_are_passed_over() {
        for (text, line) in [
            ("host = x", 1),
            ("[a]\n\n  b", 3),
            ("[a\n", 1),
            ("[a]\nb", 2),
            ("[a]\n= b", 2),
            ("[]", 1),
            ("[a] b", 1),
        ] {
            let (given, misplaced) = parse(&format!("{text}\n[c]\nd = e\n"));
            assert_eq!((given.len(), misplaced.len(), misplaced[0].line), (1, 1, line), "{text:?}");
        }
        let (given, misplaced) = parse("[a]\nb = 1\n[c\nd = 2\n");
        assert_eq!((given.len(), misplaced.len()), (1, 2), "d is not an option of a");
    }
}
