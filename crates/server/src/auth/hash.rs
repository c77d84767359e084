//! Hashes of tokens and passwords, which is all that files and memory hold of them.

use ambient::Ids;
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Why there is no hash.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot hash the password: {0}")]
pub struct HashError(String);

/// The SHA-256 of a token, in hexadecimal digits. Tokens are long and random, so a fast hash will do.
pub fn hash_token(token: &SecretString) -> String {
    hexadecimal(&digest(token.expose_secret().as_bytes()))
}

/// The argon2id hash of a password, with a salt of its own, as PHC string.
pub fn hash_password(password: &SecretString, ids: &dyn Ids) -> Result<String, HashError> {
    let error = |error: argon2::password_hash::Error| HashError(error.to_string());
    let salt = SaltString::encode_b64(&ids.uuid().to_be_bytes()).map_err(error)?;
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes(), &salt).map_err(error)?;
    Ok(hash.to_string())
}

/// Whether the password is that of the hash. Takes tens of milliseconds of a core.
pub(crate) fn verify_password(password: &SecretString, hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| {
        Argon2::default().verify_password(password.expose_secret().as_bytes(), &hash).is_ok()
    })
}

/// Whether that is an argon2 hash.
pub(crate) fn is_password_hash(hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| hash.algorithm.as_str().starts_with("argon2"))
}

/// The SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The bytes of a SHA-256 in hexadecimal digits.
pub(crate) fn read_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(digest)
}

/// The SHA-256 in hexadecimal digits of what identifies a request.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // Lengths keep parts apart.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hexadecimal(&hasher.finalize())
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use ambient::SeededIds;

    use super::*;

    #[test]
    fn a_password_is_that_of_its_hash_and_no_other() {
        let ids = SeededIds::new(1);
        let hash = hash_password(&"secret".into(), &ids).expect("a hash");
        assert!(hash.starts_with("$argon2id$") && is_password_hash(&hash));
        assert!(verify_password(&"secret".into(), &hash));
        assert!(!verify_password(&"Secret".into(), &hash));
        assert_ne!(hash, hash_password(&"secret".into(), &ids).expect("a hash"), "each has its own salt");
    }

    #[test]
    fn a_token_is_hashed_as_sha256sum_does() {
        let hash = hash_token(&"abc".into());
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(read_digest(&hash), Some(digest(b"abc")));
        assert_eq!(read_digest("ba"), None);
    }
}
