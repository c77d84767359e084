//! Changes that are committed together if they can be, and each on its own if not.

use store::Commit;

use crate::service::Service;

/// What else is to be done once something is committed.
pub(crate) type After = Box<dyn FnOnce(&Service) + Send>;

/// One change, which is committed whole or not at all.
pub(crate) struct Entry {
    pub commit: Commit,
    /// What is said and counted once it is committed.
    pub done: After,
}

impl Entry {
    /// A change of which something is said or counted once it is committed.
    pub fn new(commit: Commit, done: impl FnOnce(&Service) + Send + 'static) -> Self {
        Self { commit, done: Box::new(done) }
    }
}

/// Changes, by the pass that has decided them.
#[derive(Default)]
pub(crate) struct Entries {
    pub of_passes: Vec<Vec<Entry>>,
}

impl Entries {
    /// The changes of one pass.
    pub fn of(entries: Vec<Entry>) -> Self {
        Self { of_passes: vec![entries] }
    }
}

/// What became of changes.
pub(crate) struct Committed {
    /// Some were committed.
    pub any: bool,
    /// They were committed together.
    pub all: bool,
}
