//! Tags that steer placement: exclusion, location, migration, desired locations and pins (HT-tags).

use std::collections::HashMap;

use crate::ids::TagId;

/// Interns tag strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct TagTable {
    ids: HashMap<String, TagId>,
}

impl TagTable {
    pub(crate) fn intern(&mut self, tag: &str) -> TagId {
        if let Some(&id) = self.ids.get(tag) {
            return id;
        }
        let id = TagId::from_usize(self.ids.len());
        self.ids.insert(tag.to_owned(), id);
        id
    }

    /// The tag; only listings ask for it, so a search will do.
    pub(crate) fn name(&self, id: TagId) -> Option<&str> {
        self.ids.iter().find(|(_, known)| **known == id).map(|(tag, _)| tag.as_str())
    }
}

/// Head of the tags that express, or declare, wishes for a location.
const WISH: &str = "htools:desiredlocation:";
/// The cluster tag that makes instance tags spelled with [`WISH`] count.
const SPELLED_OUT_WISHES: &str = "allot:desiredlocation";

/// The tag of instances that stay on their nodes. Ganeti's tools know no such tag.
pub const PINNED: &str = "allot:pinned";

/// The rules that cluster tags and options define: which tags mean what.
#[derive(Clone, Debug, Default)]
pub struct TagRules {
    /// Instance tags with one of these prefixes exclude each other on a node.
    pub exclusion_prefixes: Vec<String>,
    /// Node tags with one of these prefixes name a common cause of failure.
    pub location_prefixes: Vec<String>,
    /// Instance tags with one of these prefixes are wishes for their primary's location.
    pub desired_location_prefixes: Vec<String>,
    /// Instance tags `htools:desiredlocation:x` are wishes for x.
    pub spelled_out_wishes: bool,
    /// Node tags with one of these prefixes restrict migration.
    pub migration_prefixes: Vec<String>,
    /// Pairs (y, z): a node tagged z receives instances from nodes tagged y.
    pub allowed_migrations: Vec<(String, String)>,
}

impl TagRules {
    /// Reads the rules from the cluster's tags; `extra_exclusion` are prefixes given as an option, to which a
    /// colon is added.
    ///
    /// Two spellings of the migration pair are accepted: `htools:allowmigration:y::z`, and the seed's
    /// `htools::allowmigration:y::z`.
    pub fn from_cluster_tags(tags: &[String], extra_exclusion: &[String]) -> Self {
        let mut rules = Self::default();
        rules.exclusion_prefixes.extend(extra_exclusion.iter().map(|p| format!("{p}:")));
        for tag in tags {
            if tag == SPELLED_OUT_WISHES {
                rules.spelled_out_wishes = true;
            } else if let Some(prefix) = strip(tag, "htools:iextags:") {
                rules.exclusion_prefixes.push(prefix.to_owned());
            } else if let Some(prefix) = strip(tag, WISH) {
                rules.desired_location_prefixes.push(prefix.to_owned());
            } else if let Some(prefix) = tag.strip_prefix("htools:nlocation:") {
                rules.location_prefixes.push(format!("{prefix}:"));
            } else if let Some(prefix) = tag.strip_prefix("htools:migration:") {
                rules.migration_prefixes.push(format!("{prefix}:"));
            } else if let Some(pair) = tag
                .strip_prefix("htools:allowmigration:")
                .or_else(|| tag.strip_prefix("htools::allowmigration:"))
                && let Some((from, to)) = pair.split_once("::")
                && !to.contains("::")
            {
                rules.allowed_migrations.push((from.to_owned(), to.to_owned()));
            }
        }
        rules
    }

    pub(crate) fn exclusion_tags(&self, tags: &[String], table: &mut TagTable) -> Vec<TagId> {
        select(tags, &self.exclusion_prefixes, table)
    }

    /// Wishes as Ganeti reads them (instance tags with a prefix that the cluster declares), and, if the cluster asks
    /// for it, as HT-tags has them (instance tags `htools:desiredlocation:x`, which Ganeti ignores).
    pub(crate) fn desired_locations(&self, tags: &[String], table: &mut TagTable) -> Vec<TagId> {
        let mut wishes = select(tags, &self.desired_location_prefixes, table);
        if self.spelled_out_wishes {
            wishes.extend(tags.iter().filter_map(|t| strip(t, WISH)).map(|t| table.intern(t)));
        }
        as_set(wishes)
    }

    pub(crate) fn locations(&self, tags: &[String], table: &mut TagTable) -> Vec<TagId> {
        as_set(select(tags, &self.location_prefixes, table))
    }

    pub(crate) fn migration(&self, tags: &[String], table: &mut TagTable) -> Migration {
        let own: Vec<&String> = tags
            .iter()
            .filter(|t| self.migration_prefixes.iter().any(|p| t.starts_with(p.as_str())))
            .collect();
        let mut receives: Vec<TagId> = own.iter().map(|t| table.intern(t)).collect();
        for (from, to) in &self.allowed_migrations {
            if own.contains(&to) {
                receives.push(table.intern(from));
            }
        }
        let own = own.iter().map(|t| table.intern(t)).collect();
        Migration { tags: as_set(own), receives: as_set(receives) }
    }
}

/// A prefix that is not empty; a trailing colon alone counts as empty.
fn strip<'a>(tag: &'a str, head: &str) -> Option<&'a str> {
    tag.strip_prefix(head).filter(|rest| !rest.is_empty())
}

fn select(tags: &[String], prefixes: &[String], table: &mut TagTable) -> Vec<TagId> {
    tags.iter()
        .filter(|t| prefixes.iter().any(|p| t.starts_with(p.as_str())))
        .map(|t| table.intern(t))
        .collect()
}

fn as_set(mut ids: Vec<TagId>) -> Vec<TagId> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// A node's migration tags, and the tags from which it may receive instances; both sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    /// Tags that the node carries.
    pub tags: Vec<TagId>,
    /// Tags of nodes that it may receive instances from.
    pub receives: Vec<TagId>,
}

impl Migration {
    /// Whether an instance may migrate from a node with `self` to one with `target`.
    pub fn allows(&self, target: &Self) -> bool {
        self.tags.iter().all(|t| target.receives.binary_search(t).is_ok())
    }
}

/// Size of the intersection of two sorted sets.
pub(crate) fn common(a: &[TagId], b: &[TagId]) -> i64 {
    a.iter().filter(|t| b.binary_search(t).is_ok()).count() as i64
}
