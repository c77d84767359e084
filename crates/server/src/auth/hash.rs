//! Hashes of tokens and passwords. Files and memory hold only these, never the secrets themselves.

use ambient::Ids;
use argon2::password_hash::{PasswordHash, PasswordHasher, Salt, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// Minimum memory and work of a hash that causes no warning, in KiB. OWASP's weakest recommendation has 7 MiB
/// and five iterations.
const LEAST_MEMORY: u32 = 7 * 1024;
const LEAST_WORK: u64 = 7 * 1024 * 5;

/// Maximum memory of a hash, in KiB.
const MOST_MEMORY: u32 = 256 * 1024;

/// Failure to hash a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot hash the password: {0}")]
pub struct HashError(String);

/// SHA-256 of a token in hexadecimal. A fast hash is sufficient, because tokens are long and random.
pub fn hash_token(token: &SecretString) -> String {
    hexadecimal(&digest(token.expose_secret().as_bytes()))
}

/// Salted argon2id hash of a password as a PHC string.
pub fn hash_password(password: &SecretString, ids: &dyn Ids) -> Result<String, HashError> {
    if password.expose_secret().is_empty() {
        return Err(HashError("it is empty".to_owned()));
    }
    let error = |error: argon2::password_hash::Error| HashError(error.to_string());
    let salt = SaltString::encode_b64(&ids.uuid().to_be_bytes()).map_err(error)?;
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes(), &salt).map_err(error)?;
    Ok(hash.to_string())
}

/// Memory for computing hashes, about 20 MB. Reused, because the process would otherwise retain an allocation
/// of this size for every thread.
#[derive(Debug, Default)]
pub(crate) struct Memory(Vec<Block>);

/// Whether the password matches the hash. Takes tens of milliseconds of CPU time.
pub(crate) fn verify_password(password: &SecretString, hash: &str, memory: &mut Memory) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else { return false };
    verify(password, &hash, memory).unwrap_or(false)
}

fn verify(password: &SecretString, hash: &PasswordHash<'_>, Memory(blocks): &mut Memory) -> Option<bool> {
    let params = Params::try_from(hash).ok()?;
    let algorithm = Algorithm::try_from(hash.algorithm).ok()?;
    let version = hash.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
    let mut salt = [0; Salt::MAX_LENGTH];
    let salt = hash.salt?.decode_b64(&mut salt).ok()?;
    let expected = hash.hash?;
    let mut computed = vec![0; expected.len()];
    let needed = params.block_count();
    if blocks.len() < needed {
        blocks.resize(needed, Block::default());
    }
    let argon2 = Argon2::new(algorithm, version, params);
    let password = password.expose_secret().as_bytes();
    argon2.hash_password_into_with_memory(password, salt, &mut computed, &mut blocks[..needed]).ok()?;
    Some(bool::from(computed.ct_eq(expected.as_bytes())))
}

/// Strength of a configured password hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// Not an argon2 hash, or one with so much memory that a login could take down the service. Has the error
    /// message.
    Unusable(&'static str),
    /// So fast to compute that an attacker can try billions of passwords.
    Weak,
    /// As strong as recommended, or stronger.
    Fine,
}

pub(crate) fn strength(hash: &str) -> Strength {
    let argon2 = PasswordHash::new(hash).ok().filter(|hash| hash.algorithm.as_str().starts_with("argon2"));
    match argon2.map(|hash| Params::try_from(&hash)) {
        None | Some(Err(_)) => {
            Strength::Unusable("password_hash must be an argon2 hash, `$argon2id$...`: `allot hash password`")
        }
        Some(Ok(params)) if params.m_cost() > MOST_MEMORY => {
            Strength::Unusable("password_hash takes more than 256 MiB of memory (m=262144)")
        }
        Some(Ok(params)) if params.m_cost() < LEAST_MEMORY || work(&params) < LEAST_WORK => Strength::Weak,
        Some(Ok(_)) => Strength::Fine,
    }
}

/// Memory times iterations, in KiB.
fn work(params: &Params) -> u64 {
    u64::from(params.m_cost()) * u64::from(params.t_cost())
}

pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Parses a SHA-256 in hexadecimal. `None` unless it has 64 digits.
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

/// SHA-256 of a sequence of byte strings, in hexadecimal.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // Length prefixes keep different sequences from having the same bytes.
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
        assert!(hash.starts_with("$argon2id$"));
        assert_eq!(strength(&hash), Strength::Fine);
        let mut memory = Memory::default();
        assert!(verify_password(&"secret".into(), &hash, &mut memory));
        assert!(!verify_password(&"Secret".into(), &hash, &mut memory));
        assert!(verify_password(&"secret".into(), &hash, &mut memory), "in memory that was used");
        assert_ne!(hash, hash_password(&"secret".into(), &ids).expect("a hash"), "each has its own salt");
    }

    #[test]
    fn no_password_has_no_hash_and_a_weak_hash_is_seen() {
        assert!(hash_password(&"".into(), &SeededIds::new(1)).is_err());
        let hash =
            |parameters: &str| format!("$argon2id$v=19${parameters}$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA");
        for weak in ["m=8,t=1,p=1", "m=19456,t=1,p=1", "m=4096,t=100,p=1"] {
            assert_eq!(strength(&hash(weak)), Strength::Weak, "{weak}");
        }
        for fine in ["m=19456,t=2,p=1", "m=65536,t=3,p=4", "m=7168,t=5,p=1"] {
            assert_eq!(strength(&hash(fine)), Strength::Fine, "{fine}");
        }
        for unusable in [&hash("m=4194304,t=1,p=1"), "secret", "$scrypt$ln=16$c2FsdHNhbHQ$aGFzaGhhc2g", ""] {
            assert!(matches!(strength(unusable), Strength::Unusable(_)), "{unusable}");
        }
    }

    #[test]
    fn a_hash_of_another_kind_of_argon2_is_checked() {
        let hash =
            Argon2::new(Algorithm::Argon2i, Version::V0x10, Params::new(64, 2, 1, None).expect("sound"))
                .hash_password(b"pass", &SaltString::encode_b64(b"somesalt").expect("a salt"))
                .expect("a hash")
                .to_string();
        let mut memory = Memory::default();
        assert!(verify_password(&"pass".into(), &hash, &mut memory));
        assert!(!verify_password(&"Pass".into(), &hash, &mut memory));
    }

    #[test]
    fn a_token_is_hashed_as_sha256sum_does() {
        let hash = hash_token(&"abc".into());
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(read_digest(&hash), Some(digest(b"abc")));
        assert_eq!(read_digest("ba"), None);
    }
}
