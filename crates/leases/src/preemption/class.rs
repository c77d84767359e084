//! Classes of preemptible instances: what their owners can count on when they are preempted (PRE).

use jiff::SignedDuration;
use thiserror::Error;

/// How long names are at most, in characters.
const MOST_CHARACTERS: usize = 64;

/// What becomes of an instance that was preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// It is gone.
    Delete,
    /// What it had is kept, apart from its host; it can be started again from there, elsewhere.
    Stop,
}

impl EndState {
    /// Its name: `delete` or `stop`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Stop => "stop",
        }
    }

    /// The end state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Delete, Self::Stop].into_iter().find(|state| state.name() == name)
    }
}

/// What instances of one class can count on. Each instance keeps what its class was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: String,
    notice: SignedDuration,
    end_state: EndState,
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
    /// A class of that name, whose instances have so long between being asked to shut down and being deleted, or
    /// stopped.
    pub fn new(name: &str, notice: SignedDuration, end_state: EndState) -> Result<Self, ClassError> {
        let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name.is_empty() || name.chars().count() > MOST_CHARACTERS || !name.chars().all(allowed) {
            return Err(ClassError::Name);
        }
        if notice.is_negative() {
            return Err(ClassError::Notice);
        }
        Ok(Self { name: name.to_owned(), notice, end_state })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long an instance has between being asked to shut down and being deleted.
    pub fn notice(&self) -> SignedDuration {
        self.notice
    }

    /// What becomes of it after that.
    pub fn end_state(&self) -> EndState {
        self.end_state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_a_name_that_can_be_written_anywhere_and_no_negative_notice() {
        let second = SignedDuration::from_secs(1);
        assert_eq!(
            Class::new("batch-2.x_y", second, EndState::Delete).map(|class| class.notice()),
            Ok(second)
        );
        for name in ["", "a b", "a=b", "ä", &"x".repeat(65)] {
            assert_eq!(Class::new(name, second, EndState::Stop), Err(ClassError::Name), "{name}");
        }
        for state in [EndState::Delete, EndState::Stop] {
            assert_eq!(EndState::from_name(state.name()), Some(state));
        }
        assert_eq!(Class::new("a", -second, EndState::Stop), Err(ClassError::Notice));
    }
}
