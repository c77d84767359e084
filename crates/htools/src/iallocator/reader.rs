//! What goes along while a message is read, and how it is told where something is wrong.

use super::dialect::Dialect;
use super::error::{Owner, ProtocolError};
use crate::json::{Flaw, Step, complete};

/// What is needed to build everything, and to tell where something is wrong.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) dialect: Dialect,
}

impl Reader<'_> {
    /// Says which object a complaint is about; `path` and `steps` both lead to it.
    pub(super) fn error(self, flaw: Flaw, owner: Owner, path: &str, steps: &[Step]) -> ProtocolError {
        let Flaw { unnamed, mut complaint } = flaw;
        complete(&mut complaint, self.text, &mut steps.to_vec());
        let owner = if unnamed { Owner::Unnamed } else { owner };
        ProtocolError::Data { owner, path: path.to_owned(), complaint }
    }

    /// As [`Self::error`], for an element of a dictionary of the message.
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
