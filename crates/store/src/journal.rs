//! Journals: records that are written with commits and expire, by age, and by size for each project.

use std::collections::BTreeMap;
use std::fmt;

use leases::project::ProjectId;

use crate::write_size::{ROW, WriteSize};
use crate::{AuditRecord, NewNotification, StoreError};

/// A journal. Each project has a share of its own in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Journal {
    /// Audit records of members.
    Audit,
    /// Notifications.
    Notifications,
    /// Audit records that expire by age only ([`AuditRecord::protected`]).
    ProtectedAudit,
}

impl Journal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Audit, Self::Notifications, Self::ProtectedAudit];

    /// Its name in databases and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Notifications => "notifications",
            Self::ProtectedAudit => "protected_audit",
        }
    }

    /// The journal of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|journal| journal.name() == name)
    }

    /// Whether a project that has too much in it loses its oldest records.
    pub fn expires_by_size(self) -> bool {
        self != Self::ProtectedAudit
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The share of a project in a journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalSize {
    /// The journal.
    pub journal: Journal,
    /// The project; an empty name for records without one.
    pub project: ProjectId,
    /// Number of records.
    pub records: u64,
    /// Bytes of their texts, and a fixed number for the rest of each record.
    pub bytes: u64,
}

impl JournalSize {
    /// From a row of a database.
    pub fn from_row(journal: &str, project: ProjectId, records: i64, bytes: i64) -> Result<Self, StoreError> {
        let unknown = || StoreError::Corrupt(format!("there is no journal {journal:?}"));
        let journal = Journal::from_name(journal).ok_or_else(unknown)?;
        Ok(Self { journal, project, records: records.cast_unsigned(), bytes: bytes.cast_unsigned() })
    }
}

/// Records that were removed because their project has too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Number of records.
    pub records: u64,
    /// Those of them that are notifications of which some listener has not been told.
    pub undelivered: u64,
    /// Whether the project still has too many.
    pub more: bool,
}

/// The part of these records, oldest first, that is removed so that `excess` bytes are: numbers, and bytes of each. Never
/// nothing if there is any excess, and no more than `part` but for the last one.
pub fn to_remove(records: &[(u64, u64)], excess: u64, part: WriteSize) -> &[(u64, u64)] {
    let enough = excess.min(part.bytes.max(1));
    let mut removed = 0;
    let count = records.iter().take_while(|(_, bytes)| {
        let more = removed < enough;
        removed += bytes;
        more
    });
    let count = count.count().min(usize::try_from(part.rows).unwrap_or(usize::MAX));
    &records[..count]
}

/// How large a store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the database; 0 if it is not known.
    pub bytes: u64,
    /// Bytes of these that nothing is in.
    pub free_bytes: u64,
    /// Records by kind, of the kinds that are not kept in memory. May be estimates.
    pub records: BTreeMap<&'static str, u64>,
}

impl NewNotification {
    /// Bytes that count for the share of its project in the journal.
    pub fn bytes(&self) -> u64 {
        bytes(&[&self.project.0, &self.event_type, &self.payload])
    }
}

impl AuditRecord {
    /// Bytes that count for the share of its project in the journal.
    pub fn bytes(&self) -> u64 {
        bytes(&[&self.user.0, &self.project.0, &self.request_id, &self.action, &self.object])
    }

    /// The journal that it is in.
    pub fn journal(&self) -> Journal {
        if self.protected { Journal::ProtectedAudit } else { Journal::Audit }
    }
}

fn bytes(texts: &[&str]) -> u64 {
    ROW + texts.iter().map(|text| text.len() as u64).sum::<u64>()
}
