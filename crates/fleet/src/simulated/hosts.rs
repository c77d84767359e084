//! Hosts of a simulated fleet, with a record of changes since they were last saved.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use leases::ids::HostId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::saved::by_id;

/// Hosts by identifier. The methods here are the only way to change hosts, and record possible changes.
#[derive(Debug, Default)]
pub(super) struct Hosts<H> {
    all: BTreeMap<HostId, H>,
    changed: BTreeSet<HostId>,
}

impl<H> Deref for Hosts<H> {
    type Target = BTreeMap<HostId, H>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<H: Default> Hosts<H> {
    pub(super) fn get_mut(&mut self, id: HostId) -> Option<&mut H> {
        let host = self.all.get_mut(&id)?;
        self.changed.insert(id);
        Some(host)
    }

    pub(super) fn remove(&mut self, id: HostId) {
        self.all.remove(&id);
        self.changed.insert(id);
    }

    /// Adds missing hosts and removes hosts that aren't in `ids`.
    pub(super) fn become_these(&mut self, ids: impl IntoIterator<Item = HostId>) {
        let ids: BTreeSet<HostId> = ids.into_iter().collect();
        let gone: Vec<HostId> = self.all.keys().copied().filter(|id| !ids.contains(id)).collect();
        for id in gone {
            self.remove(id);
        }
        for id in ids {
            self.all.entry(id).or_insert_with(|| {
                self.changed.insert(id);
                H::default()
            });
        }
    }

    /// Hosts that may have changed since the last call, including removed hosts.
    pub(super) fn take_changed(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.changed)
    }
}

impl<H: Serialize> Serialize for Hosts<H> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        by_id::serialize(&self.all, serializer)
    }
}

impl<'de, H: Deserialize<'de>> Deserialize<'de> for Hosts<H> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self { all: by_id::deserialize(from)?, changed: BTreeSet::new() })
    }
}
