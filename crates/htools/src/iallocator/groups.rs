//! Node groups and their policies.

use std::borrow::Cow;

use cluster::{AllocPolicy, Group, Policy};

use super::dialect::Dialect;
use super::legacy;
use crate::json::{Complaint, Flaw, json_record};

json_record!(
    /// A group as written in a message.
    RawGroup<'t>, Complaint::NotObject, {
        "name" => name: Cow<'t, str>,
        "alloc_policy" => alloc_policy: AllocPolicy,
        "networks" => networks: Vec<String>,
        "ipolicy" => ipolicy: Policy,
        "tags" => tags: Vec<String>,
    }
);

impl RawGroup<'_> {
    /// Whether the group lacks all keys that are newer than version 2.
    pub(super) fn is_of_version2(&self) -> bool {
        self.networks.is_absent() && self.ipolicy.is_absent() && self.tags.is_absent()
    }

    /// Builds the group with this UUID.
    pub(super) fn finish(&mut self, uuid: String, dialect: Dialect) -> Result<Group, Flaw> {
        let name = self.name.required("name")?.into_owned();
        let alloc_policy = self.alloc_policy.required("alloc_policy")?;
        let (networks, policy, tags) = match dialect {
            Dialect::Current => (
                self.networks.required("networks")?,
                self.ipolicy.required("ipolicy")?,
                self.tags.required("tags")?,
            ),
            Dialect::Version2 => (
                self.networks.optional("networks")?.unwrap_or_default(),
                self.ipolicy.optional("ipolicy")?.unwrap_or_else(legacy::policy),
                self.tags.optional("tags")?.unwrap_or_default(),
            ),
        };
        Ok(Group { name, uuid, alloc_policy, tags, networks, policy })
    }
}
