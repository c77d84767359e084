//! Classes of preemptible instances: the guarantees their owners have when they are preempted (PRE).

use jiff::SignedDuration;
use thiserror::Error;

/// Maximum length of class names, in characters.
const MOST_CHARACTERS: usize = 64;

/// End state of a preempted instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// It is deleted.
    Delete,
    /// Its data is kept, but not its host. It can be started again elsewhere.
    Stop,
}

impl EndState {
    /// The name: `delete` or `stop`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Stop => "stop",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Delete, Self::Stop].into_iter().find(|state| state.name() == name)
    }
}

/// Guarantees shared by a class of instances. Each instance keeps a copy of its class from the time of the
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: String,
    notice: SignedDuration,
    end_state: EndState,
}

/// Reason why a class is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClassError {
    /// Empty, too long, or with characters other than letters, digits, `-`, `_` and `.`.
    #[error(
        "a class of preemptible instances is called by 1 to {MOST_CHARACTERS} letters, digits, '-', '_' or '.'"
    )]
    Name,
    /// Negative notice.
    #[error("the notice of a class of preemptible instances can't be negative")]
    Notice,
}

impl Class {
    /// A class with `notice` between the request to shut down and the deletion or stop of an instance.
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

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Time between the request to shut down and the deletion of an instance.
    pub fn notice(&self) -> SignedDuration {
        self.notice
    }

    /// State of an instance after the notice.
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
