//! Keys of tokens in a file of the operator's: a line each. The first signs, all are accepted.

use std::path::Path;

use ring::hmac;

use super::file::AuthFileError;
use super::hash::fingerprint;

/// A key is at least so long, in bytes: 32 random ones in base64 or hexadecimal digits are longer.
const SHORTEST: usize = 32;

/// A key of the file.
#[derive(Clone, Debug)]
pub(crate) struct FileKey {
    /// What tokens call it.
    pub name: String,
    /// The key; its own `Debug` does not show it.
    pub key: hmac::Key,
}

/// Reads all keys; empty lines and those after `#` count for nothing.
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
