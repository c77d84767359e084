//! Tags that affect placement: exclusion, location, migration, desired locations and pins (HT-tags).

use std::collections::HashMap;

use crate::ids::TagId;

/// Maps tags to identifiers.
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

    /// The tag's text. A linear search is enough, because only listings need it.
    pub(crate) fn name(&self, id: TagId) -> Option<&str> {
        self.ids.iter().find(|(_, known)| **known == id).map(|(tag, _)| tag.as_str())
    }
}

/// Prefix of instance tags that request a location, and of cluster tags that declare such prefixes.
const WISH: &str = "htools:desiredlocation:";
/// Cluster tag that makes instance tags with the prefix [`WISH`] effective.
const SPELLED_OUT_WISHES: &str = "allot:desiredlocation";

/// Tag of instances that stay on their nodes. Ganeti's tools don't know it.
pub const PINNED: &str = "allot:pinned";

/// Meaning of tags, as defined by cluster tags and options.
#[derive(Clone, Debug, Default)]
pub struct TagRules {
    /// Prefixes of instance tags: instances that share such a tag exclude each other on a node.
    pub exclusion_prefixes: Vec<String>,
    /// Prefixes of node tags that name a common cause of failure.
    pub location_prefixes: Vec<String>,
    /// Prefixes of instance tags that name a desired location of the primary.
    pub desired_location_prefixes: Vec<String>,
    /// Whether an instance tag `htools:desiredlocation:x` requests location x.
    pub spelled_out_wishes: bool,
    /// Prefixes of node tags that restrict migration.
    pub migration_prefixes: Vec<String>,
    /// Pairs (y, z): nodes tagged z can receive instances from nodes tagged y.
    pub allowed_migrations: Vec<(String, String)>,
}

impl TagRules {
    /// Reads the rules from the cluster's tags. `extra_exclusion` are prefixes from options, without the
    /// colon.
    ///
    /// Migration pairs have two accepted spellings: `htools:allowmigration:y::z`, and HT-tags'
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

    /// Desired locations as Ganeti reads them: instance tags with a prefix that the cluster declares. If the
    /// cluster opts in, also as HT-tags defines them: instance tags `htools:desiredlocation:x`, which Ganeti
    /// ignores.
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

/// The text after `head`, if it isn't empty.
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

/// A node's migration tags, and the tags from which it can receive instances. Both are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    pub tags: Vec<TagId>,
    /// Tags of nodes that it can receive instances from.
    pub receives: Vec<TagId>,
}

impl Migration {
    /// Whether an instance can migrate from a node with these tags to a node with `target`.
    pub fn allows(&self, target: &Self) -> bool {
        self.tags.iter().all(|t| target.receives.binary_search(t).is_ok())
    }
}

/// Size of the intersection of two sorted sets.
pub(crate) fn common(a: &[TagId], b: &[TagId]) -> i64 {
    a.iter().filter(|t| b.binary_search(t).is_ok()).count() as i64
}
