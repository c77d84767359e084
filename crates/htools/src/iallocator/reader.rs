//! Context for reading a message and for locating errors in it.

use super::dialect::Dialect;
use super::error::{Owner, ProtocolError};
use crate::json::{Flaw, Step, complete};

/// The message's text and dialect.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) dialect: Dialect,
}

impl Reader<'_> {
    /// Adds the object to a complaint. `path` and `steps` both lead to it.
    pub(super) fn error(self, flaw: Flaw, owner: Owner, path: &str, steps: &[Step]) -> ProtocolError {
        let Flaw { unnamed, mut complaint } = flaw;
        complete(&mut complaint, self.text, &mut steps.to_vec());
        let owner = if unnamed { Owner::Unnamed } else { owner };
        ProtocolError::Data { owner, path: path.to_owned(), complaint }
    }

    /// Like [`Self::error`], for an entry of a top-level dictionary.
    pub(super) fn entry_error(
        self,
        flaw: Flaw,
        owner: fn(String) -> Owner,
        dict: &'static str,
        entry: (usize, &str),
    ) -> ProtocolError {
        let (position, name) = entry;
        let steps = [Step::Key(dict), Step::At(position)];
        self.error(flaw, owner(name.to_owned()), &format!("{dict}/{name}"), &steps)
    }
}
