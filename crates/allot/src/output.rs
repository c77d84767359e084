//! Standard output. Any write can fail, and the failure of the last one may only appear when it's flushed.

use std::io::{self, ErrorKind, Write};

/// A writer that remembers its first failure.
///
/// Programs end early if they can't write. The reason is printed once, at the end. A closed pipe (`| head`)
/// doesn't count, since its reader wants no more.
pub(crate) struct Output<W> {
    inner: W,
    /// The first failure, apart from closed pipes and interrupted writes.
    pub(crate) failed: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, failed: None }
    }

    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done
            && self.failed.is_none()
            && !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted)
        {
            self.failed = Some(copy(error));
        }
        done
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.inner.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.inner.flush();
        self.note(done)
    }
}

fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Text of an error, without the number that the standard library appends.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(28))
        }
    }

    #[test]
    fn the_first_failure_is_remembered_but_for_a_reader_that_went_away() {
        let mut out = Output::new(Failing(ErrorKind::BrokenPipe));
        assert!(out.write(b"a").is_err() && out.failed.is_none());
        assert!(out.flush().is_err());
        let full = out.failed.expect("a failure");
        assert_eq!(reason(&full), "No space left on device");
    }
}
