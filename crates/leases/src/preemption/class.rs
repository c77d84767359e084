//! Classes of preemptible instances: what their owners can count on when they make way (spec §6, "notice time").

use jiff::SignedDuration;
use thiserror::Error;

/// How long names are at most, in characters.
const MOST_CHARACTERS: usize = 64;

/// What instances of one class can count on. Each instance keeps what its class was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: String,
    notice: SignedDuration,
}

/// Why there is no such class.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClassError {
    /// It cannot be called so.
    #[error(
        "a class of preemptible instances is called by 1 to {MOST_CHARACTERS} letters, digits, '-', '_' or '.'"
    )]
    Name,
    /// Nobody is given less than no time.
    #[error("the notice of a class of preemptible instances is no negative time")]
    Notice,
}

impl Class {
    /// A class of that name, whose instances have so long between being asked to shut down and being deleted.
    pub fn new(name: &str, notice: SignedDuration) -> Result<Self, ClassError> {
        let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name.is_empty() || name.chars().count() > MOST_CHARACTERS || !name.chars().all(allowed) {
            return Err(ClassError::Name);
        }
        if notice.is_negative() {
            return Err(ClassError::Notice);
        }
        Ok(Self { name: name.to_owned(), notice })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long an instance has between being asked to shut down and being deleted.
    pub fn notice(&self) -> SignedDuration {
        self.notice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_a_name_that_can_be_written_anywhere_and_no_negative_notice() {
        let second = SignedDuration::from_secs(1);
        assert_eq!(Class::new("batch-2.x_y", second).map(|class| class.notice()), Ok(second));
        for name in ["", "a b", "a=b", "ä", &"x".repeat(65)] {
            assert_eq!(Class::new(name, second), Err(ClassError::Name), "{name}");
        }
        assert_eq!(Class::new("a", -second), Err(ClassError::Notice));
    }
}
