//! Which versions of a database's schema a service works with.
//!
//! Schemas change in two steps (`crates/store-postgres/migrations/README.md`): what a new version needs is added
//! first, and what only old versions need is removed in a later release. So two versions run side by side.

use thiserror::Error;

/// The schema that a database has, in numbers of migrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The newest that was run.
    pub newest: i64,
    /// The oldest that a service has to know to work with it.
    pub oldest: i64,
}

/// It is of a later version, and this one cannot work with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this version of allot is too old for it: it knows schemas up to {known}, and one that knows schema {oldest} is \
     needed (the database has schema {found}); run a later version"
)]
pub struct Newer {
    /// The newest migration that was run.
    pub found: i64,
    /// The oldest that a version has to know.
    pub oldest: i64,
    /// The newest that this version knows.
    pub known: i64,
}

impl Schema {
    /// Whether a service that knows migrations up to that one works with it.
    pub fn check(self, known: i64) -> Result<(), Newer> {
        if self.oldest > known {
            Err(Newer { found: self.newest, oldest: self.oldest, known })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_works_with_all_services_that_know_its_oldest_migration() {
        let schema = Schema { newest: 7, oldest: 5 };
        assert_eq!(schema.check(4), Err(Newer { found: 7, oldest: 5, known: 4 }));
        assert_eq!([5, 6, 7, 8].map(|known| schema.check(known)), [Ok(()); 4]);
    }
}
