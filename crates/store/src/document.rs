//! Plain records: no other record refers to them. Stores keep them as documents: all kinds in one table, each
//! row with the name of its kind, an identifier and JSON.
//!
//! Only this module knows the kinds; stores and the model don't. A new kind needs its record, its JSON
//! (`encoding/document.rs`), a line in each `match` here, its variants of [`Write`], and its lists in
//! [`Snapshot`] and [`Delta`](crate::Delta). It needs no migration, because services that don't know a kind
//! leave its documents alone. If such services must not run anymore, a migration raises
//! `compatibility.oldest`.

use std::fmt;

use crate::encoding::{
    Unreadable, flavor_from_json, flavor_json, preemptible_project_from_json, preemptible_project_json,
    property_from_json, property_json,
};
use crate::{CommitError, FlavorRecord, PreemptibleProjectRecord, PropertyRecord, Snapshot, Write};

/// A kind of plain records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// Flavors, by identifier.
    Flavor,
    /// Properties, by name.
    Property,
    /// Projects whose instances are preemptible, by pattern.
    PreemptibleProject,
}

impl DocumentKind {
    pub const ALL: [Self; 3] = [Self::Flavor, Self::Property, Self::PreemptibleProject];

    /// Name of the kind in databases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flavor => "flavor",
            Self::Property => "property",
            Self::PreemptibleProject => "preemptible-project",
        }
    }

    /// The kind with this name. `None` if this version doesn't know it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn key(self, id: impl Into<String>) -> DocumentKey {
        DocumentKey { kind: self, id: id.into() }
    }
}

/// Kind and identifier of a plain record, together unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey {
    pub kind: DocumentKind,
    pub id: String,
}

/// The record's name in errors.
impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.id;
        match self.kind {
            DocumentKind::Flavor => write!(f, "flavor {id}"),
            DocumentKind::Property => write!(f, "property {id}"),
            DocumentKind::PreemptibleProject => write!(f, "pattern {id} of projects"),
        }
    }
}

/// A plain record of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    Flavor(FlavorRecord),
    Property(PropertyRecord),
    PreemptibleProject(PreemptibleProjectRecord),
}

impl Document {
    pub fn key(&self) -> DocumentKey {
        match self {
            Self::Flavor(record) => DocumentKind::Flavor.key(&record.id),
            Self::Property(record) => DocumentKind::Property.key(&record.name),
            Self::PreemptibleProject(record) => {
                DocumentKind::PreemptibleProject.key(record.pattern.to_string())
            }
        }
    }

    /// The record as JSON, without its identifier.
    pub fn body(&self) -> String {
        match self {
            Self::Flavor(record) => flavor_json(record),
            Self::Property(record) => property_json(record),
            Self::PreemptibleProject(record) => preemptible_project_json(record),
        }
    }

    /// Parses a row with these columns. `None` if this version doesn't know the kind.
    pub fn read(kind: &str, id: String, body: &str) -> Result<Option<Self>, Unreadable> {
        let read = |kind| {
            Ok(match kind {
                DocumentKind::Flavor => Self::Flavor(flavor_from_json(id, body)?),
                DocumentKind::Property => Self::Property(property_from_json(id, body)?),
                DocumentKind::PreemptibleProject => {
                    Self::PreemptibleProject(preemptible_project_from_json(&id, body)?)
                }
            })
        };
        DocumentKind::from_name(kind).map(read).transpose()
    }
}

/// A change of a plain record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    /// Adds the record, or replaces the one with its kind and identifier.
    Put(Document),
    /// Removes the record. Rejected if it doesn't exist.
    Remove(DocumentKey),
}

impl CommitError {
    /// The plain record no longer exists.
    pub fn stale_document(key: &DocumentKey) -> Self {
        Self::Stale { what: key.to_string() }
    }
}

impl Write {
    /// The change of a plain record; `None` if the write changes something else.
    pub fn document(&self) -> Option<DocumentChange> {
        use DocumentChange::{Put, Remove};
        Some(match self {
            Self::Flavor(record) => Put(Document::Flavor(record.clone())),
            Self::RemoveFlavor(id) => Remove(DocumentKind::Flavor.key(id)),
            Self::Property(record) => Put(Document::Property(record.clone())),
            Self::PreemptibleProject(record) => Put(Document::PreemptibleProject(record.clone())),
            Self::RemovePreemptibleProject(pattern) => {
                Remove(DocumentKind::PreemptibleProject.key(pattern.to_string()))
            }
            Self::Lease { .. }
            | Self::ForgetLease { .. }
            | Self::FreePool { .. }
            | Self::RemoveFreePool { .. }
            | Self::Host { .. }
            | Self::RemoveHost { .. }
            | Self::AddFloatingIp(_)
            | Self::RemoveFloatingIp(_)
            | Self::Instance { .. }
            | Self::ForgetInstance { .. } => return None,
        })
    }
}

impl From<Document> for Write {
    fn from(document: Document) -> Self {
        match document {
            Document::Flavor(record) => Self::Flavor(record),
            Document::Property(record) => Self::Property(record),
            Document::PreemptibleProject(record) => Self::PreemptibleProject(record),
        }
    }
}

impl Snapshot {
    /// All plain records, grouped by kind.
    pub fn documents(&self) -> impl Iterator<Item = Document> + use<'_> {
        let flavors = self.flavors.iter().cloned().map(Document::Flavor);
        let properties = self.properties.iter().cloned().map(Document::Property);
        let projects = self.preemptible_projects.iter().cloned().map(Document::PreemptibleProject);
        flavors.chain(properties).chain(projects)
    }

    /// Appends a plain record to the list of its kind.
    pub fn add_document(&mut self, document: Document) {
        match document {
            Document::Flavor(record) => self.flavors.push(record),
            Document::Property(record) => self.properties.push(record),
            Document::PreemptibleProject(record) => self.preemptible_projects.push(record),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_a_kind_that_is_not_known_is_left_alone() {
        assert_eq!(Document::read("quota", "a".into(), "no JSON of ours"), Ok(None));
        assert!(Document::read("flavor", "a".into(), "no JSON of ours").is_err());
        for kind in DocumentKind::ALL {
            assert_eq!(DocumentKind::from_name(kind.name()), Some(kind));
        }
    }
}
