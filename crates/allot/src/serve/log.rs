//! The log, on standard error. Lines that can't be written are dropped: nothing here waits for the log's
//! reader or panics.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leases::text::is_control;
use tracing_subscriber::EnvFilter;

use super::error::ServeError;
use super::log_queue::LogQueue;
use crate::config::{LogFormat, TABLE};

/// Maximum time that the process waits for the log's reader when it ends.
const LAST_FLUSH: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Arc<LogQueue>> = OnceLock::new();

/// Starts the log. `level` is a filter as in the `tracing` crates: one level, or levels by module.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<(), ServeError> {
    let wrong = |reason: String| ServeError::Log { level: level.to_owned(), reason };
    // The demo's level isn't read as a setting, so it hasn't been checked yet.
    let setting = TABLE.iter().find(|setting| setting.key == "log.level");
    setting.map_or(Ok(()), |setting| setting.check(level)).map_err(wrong)?;
    let filter = EnvFilter::builder().parse(level).map_err(|error| wrong(error.to_string()))?;
    let queue = LogQueue::start(io::stderr(), |lines| tracing::warn!(lines, "log lines dropped"))?;
    let queue = QUEUE.get_or_init(|| queue);
    // It would print internal errors with `eprintln!`, which panics if standard error can't be written.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    match format {
        LogFormat::Text => {
            let colored = io::stderr().is_terminal();
            let lines = if colored { Lines::Colored } else { Lines::Plain };
            builder.with_ansi(colored).with_writer(move || Log { lines, queue }).init();
        }
        LogFormat::Json => {
            let writer = move || Log { lines: Lines::Json, queue };
            builder.json().flatten_event(true).with_writer(writer).init();
        }
    }
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Logs a panic. The standard hook would write to standard error and wait for its reader.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or_default();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(message, place, "panicked");
}

/// Waits up to `LAST_FLUSH` until the log is written. Must be called before the process ends.
pub(crate) fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(LAST_FLUSH);
    }
}

/// Prints the error that ends the process. Once the log has started it goes there, since the reader of
/// standard error can hang.
pub(crate) fn finish_with(error: &dyn std::error::Error, err: &mut dyn Write) {
    let text = format!("Error: {}\n", crate::shown::message(&error.to_string()));
    match QUEUE.get() {
        Some(queue) => queue.push(text.as_bytes()),
        None => _ = err.write_all(text.as_bytes()),
    }
    finish();
}

/// Format of the log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    Plain,
    /// With colors, which begin with an escape character. The formatter escapes that character in values.
    Colored,
    Json,
}

/// Escapes names from clients and machines, so that a terminal doesn't interpret them and each event stays
/// one line.
struct Log<'a> {
    lines: Lines,
    queue: &'a LogQueue,
}

impl Write for Log<'_> {
    /// The formatter passes each event in one call, with its line break.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.queue.push(line(&String::from_utf8_lossy(event), self.lines).as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Escapes an event.
fn line(event: &str, lines: Lines) -> String {
    let (text, end) = event.strip_suffix('\n').map_or((event, ""), |text| (text, "\n"));
    let mut written = String::with_capacity(event.len());
    for c in text.chars() {
        match lines {
            Lines::Colored if c == '\u{1b}' => written.push(c),
            _ if !is_control(c) => written.push(c),
            // All these characters have four digits, and writing to a string can't fail.
            Lines::Json => {
                let _ = write!(written, "\\u{:04x}", u32::from(c));
            }
            Lines::Plain | Lines::Colored => written.extend(c.escape_unicode()),
        }
    }
    written + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_a_terminal_does_not_obey() {
        let event = "INFO x name=a\u{1b}[31m\r\n2026 forged\u{202e}\u{9b}\n";
        let wanted = "INFO x name=a\\u{1b}[31m\\u{d}\\u{a}2026 forged\\u{202e}\\u{9b}\n";
        assert_eq!(line(event, Lines::Plain), wanted);
        assert_eq!(
            line("\u{1b}[32mINFO\u{1b}[0m a\nb\n", Lines::Colored),
            "\u{1b}[32mINFO\u{1b}[0m a\\u{a}b\n"
        );
    }

    #[test]
    fn json_stays_json() {
        let document = serde_json::json!({"name": "\u{1b}\u{7f}\u{202e}\u{2028}x"});
        let written = line(&format!("{document}\n"), Lines::Json);
        assert!(!written.trim_end().contains(is_control), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).expect("JSON"), document);
    }
}
