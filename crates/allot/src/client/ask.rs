//! Prompts on the terminal.

use std::io::{self, IsTerminal};

use htools::io::Io;

use crate::secret;

/// Whether a person can answer prompts: standard input and standard error are terminals. Standard output can
/// be redirected.
pub(crate) fn may_type() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether a person can answer prompts and also sees the results.
pub(crate) fn is_interactive() -> bool {
    may_type() && io::stdout().is_terminal()
}

/// Whether to prompt about results: all three streams are terminals and `--no-input` isn't given.
pub(crate) fn may_ask(no_input: bool) -> bool {
    !no_input && is_interactive()
}

/// Prints a question to standard error and reads one line, trimmed. Returns an empty string at the end of
/// input.
pub(crate) fn ask(question: &str, io: &mut Io<'_>) -> io::Result<String> {
    io.out.flush()?;
    write!(io.err, "{question} ")?;
    io.err.flush()?;
    Ok(String::from_utf8_lossy(&secret::read_line(io)?).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_read_after_the_question() {
        let mut input: &[u8] = b" yes \r\nnext\n";
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut answer = || {
            let mut io = Io { stdin: &mut input, out: &mut out, err: &mut err };
            ask("Sure?", &mut io).expect("an answer")
        };
        assert_eq!([answer(), answer(), answer()], ["yes", "next", ""]);
        assert_eq!(err, b"Sure? Sure? Sure? ");
    }
}
