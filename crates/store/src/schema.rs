//! Compatibility of services with versions of a database's schema.
//!
//! Schemas change in two steps (`crates/store-postgres/migrations/README.md`): a release adds everything that
//! its version needs, and a later release removes the parts that only old versions need. So two versions can
//! run side by side.

use thiserror::Error;

/// The schema of a database, as numbers of migrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Newest migration that was run.
    pub newest: i64,
    /// Oldest migration that a service must know to work with the database.
    pub oldest: i64,
}

/// The database has a later schema that this version can't work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this version of allot is too old for it: it knows schemas up to {known}, and one that knows schema {oldest} is \
     needed (the database has schema {found}); run a later version"
)]
pub struct Newer {
    /// Newest migration that was run.
    pub found: i64,
    /// Oldest migration that a version must know.
    pub oldest: i64,
    /// Newest migration that this version knows.
    pub known: i64,
}

impl Schema {
    /// Checks that a service that knows migrations up to `known` can work with the database.
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
