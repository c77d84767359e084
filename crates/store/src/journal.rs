//! Journals: records that are written with commits, and expire by age and by size per project.

use std::collections::BTreeMap;
use std::fmt;

use leases::project::ProjectId;

use crate::write_size::{ROW, WriteSize};
use crate::{AuditRecord, NewNotification, StoreError};

/// A journal. Its size is counted for each project separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Journal {
    /// Audit records of users who aren't administrators.
    Audit,
    Notifications,
    /// Audit records that expire by age only ([`AuditRecord::protected`]).
    ProtectedAudit,
}

impl Journal {
    pub const ALL: [Self; 3] = [Self::Audit, Self::Notifications, Self::ProtectedAudit];

    /// The name in databases and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Notifications => "notifications",
            Self::ProtectedAudit => "protected_audit",
        }
    }

    /// The journal with this name; `None` if the name is unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|journal| journal.name() == name)
    }

    /// Whether the oldest records of a project are removed when the project exceeds its limit.
    pub fn expires_by_size(self) -> bool {
        self != Self::ProtectedAudit
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Size of one project's records in a journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalSize {
    pub journal: Journal,
    /// The project. Its name is empty for records without a project.
    pub project: ProjectId,
    /// Number of records.
    pub records: u64,
    /// Bytes of the records: their text, and a fixed number for the rest of each record.
    pub bytes: u64,
}

impl JournalSize {
    /// Reads a database row. Fails if the journal is unknown.
    pub fn from_row(journal: &str, project: ProjectId, records: i64, bytes: i64) -> Result<Self, StoreError> {
        let unknown = || StoreError::Corrupt(format!("there is no journal {journal:?}"));
        let journal = Journal::from_name(journal).ok_or_else(unknown)?;
        Ok(Self { journal, project, records: records.cast_unsigned(), bytes: bytes.cast_unsigned() })
    }
}

/// Result of removing records of a project that exceeded its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Number of records.
    pub records: u64,
    /// Number of removed notifications that at least one listener had not received.
    pub undelivered: u64,
    /// Whether the project still exceeds its limit.
    pub more: bool,
}

impl Trimmed {
    /// The result of removing these records, pairs of number and bytes, to free `excess` bytes. `told` is the number of
    /// the last notification that all listeners have received; [`u64::MAX`] for other journals.
    pub fn of(removed: &[(u64, u64)], excess: u64, told: u64) -> Self {
        Self {
            records: removed.len() as u64,
            undelivered: removed.iter().filter(|(number, _)| *number > told).count() as u64,
            more: removed.iter().map(|(_, bytes)| bytes).sum::<u64>() < excess,
        }
    }
}

/// Selects the oldest records to remove so that `excess` bytes are freed. `records` are pairs of number and bytes,
/// oldest first. The selection ends after `part.rows` records, or with the record that reaches `part.bytes`. If there
/// is any excess, a small `part.bytes` still selects one record.
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

/// Size of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the database; 0 if unknown.
    pub bytes: u64,
    /// Unused bytes of the database.
    pub free_bytes: u64,
    /// Number of records by kind, for kinds that aren't kept in memory. Can be estimates.
    pub records: BTreeMap<&'static str, u64>,
}

impl NewNotification {
    /// Bytes that count toward the project's size in the journal.
    pub fn bytes(&self) -> u64 {
        bytes(&[&self.project.0, &self.event_type, &self.payload])
    }
}

impl AuditRecord {
    /// Bytes that count toward the project's size in the journal.
    pub fn bytes(&self) -> u64 {
        bytes(&[&self.user.0, &self.project.0, &self.request_id, &self.action, &self.object])
    }

    /// The journal that contains the record.
    pub fn journal(&self) -> Journal {
        if self.protected { Journal::ProtectedAudit } else { Journal::Audit }
    }
}

fn bytes(texts: &[&str]) -> u64 {
    ROW + texts.iter().map(|text| text.len() as u64).sum::<u64>()
}
