//! Reads secrets from a terminal, with a prompt and without echo, or from a pipe.

use std::io::{self, IsTerminal, Stdin};

use htools::io::Io;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};

/// Reads a secret from standard input, without the line break. On a terminal it prompts with `name`. `twice`
/// prompts again, for secrets where a typo would go unnoticed.
pub(crate) fn read(name: &str, twice: bool, io: &mut Io<'_>) -> Result<SecretString, String> {
    let failed = |error: io::Error| format!("cannot read standard input: {error}");
    let terminal = io::stdin();
    if !terminal.is_terminal() {
        let mut text = String::new();
        io.stdin.read_to_string(&mut text).map_err(failed)?;
        return Ok(without_end(&text));
    }
    let _hidden = Hidden::new(&terminal).map_err(failed)?;
    let secret = ask(name, io).map_err(failed)?;
    if twice && ask("Again", io).map_err(failed)?.expose_secret() != secret.expose_secret() {
        return Err("the two entries differ, try again".to_owned());
    }
    Ok(secret)
}

fn ask(name: &str, io: &mut Io<'_>) -> io::Result<SecretString> {
    write!(io.err, "{name}: ")?;
    io.err.flush()?;
    let line = read_line(io)?;
    // The line break wasn't echoed either.
    writeln!(io.err)?;
    String::from_utf8(line).map(|line| without_end(&line)).map_err(io::Error::other)
}

/// Reads a line without its line break, byte by byte, so that nothing of the next line is consumed.
pub(crate) fn read_line(io: &mut Io<'_>) -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while io.stdin.read(&mut byte)? == 1 && byte != *b"\n" {
        line.push(byte[0]);
    }
    Ok(line)
}

fn without_end(text: &str) -> SecretString {
    SecretString::from(text.trim_end_matches(['\r', '\n']))
}

/// Turns off the echo of a terminal until it is dropped.
struct Hidden<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn new(terminal: &'a Stdin) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // If this fails, the terminal is gone.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}
