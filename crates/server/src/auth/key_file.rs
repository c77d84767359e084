//! Signing keys of tokens from an operator's file with one key per line. The first key signs, and all are
//! accepted.

use std::path::Path;

use ring::hmac;

use super::file::AuthFileError;
use super::hash::fingerprint;

/// Minimum length of a key in bytes. 32 random bytes are longer in base64 or hexadecimal.
const SHORTEST: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct FileKey {
    /// Identifies the key in tokens.
    pub name: String,
    /// `Debug` of this type doesn't print the secret.
    pub key: hmac::Key,
}

/// Reads all keys. Skips empty lines and lines that begin with `#`.
pub(crate) fn read(path: &Path) -> Result<Vec<FileKey>, AuthFileError> {
    let unreadable = |error| AuthFileError::Unreadable { path: path.to_owned(), error };
    let wrong = |line: usize, message: &str| AuthFileError::Form {
        path: path.to_owned(),
        line: Some(line),
        message: message.to_owned(),
    };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (mut keys, mut mistakes) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        if line.len() < SHORTEST {
            let short = "the key is shorter than 32 characters: write `openssl rand -hex 32`";
            mistakes.push(wrong(number + 1, short));
            continue;
        }
        let name = fingerprint(&[b"name of a key", line.as_bytes()])[..16].to_owned();
        keys.push(FileKey { name, key: hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes()) });
    }
    AuthFileError::all(mistakes)?;
    if keys.is_empty() { Err(wrong(1, "there is no key: write one a line")) } else { Ok(keys) }
}
