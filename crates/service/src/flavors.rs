//! Flavors that instances may be reserved room for.

use std::sync::Arc;

use leases::terms::Flavor;
use store::{Commit, FlavorRecord, Write};

use crate::writing::{Writer, audit, decide_again, overtaken};
use crate::{Caller, NotFound, Service, ServiceError};

impl Service {
    /// All flavors.
    pub fn flavors(&self) -> Vec<Arc<FlavorRecord>> {
        self.state().flavors.values().cloned().collect()
    }

    /// A flavor.
    pub fn flavor(&self, id: &str) -> Option<Arc<FlavorRecord>> {
        self.state().flavors.get(id).cloned()
    }

    /// Enters a flavor, or exchanges the one of that identifier. One that no reservation could be made of is
    /// refused.
    pub async fn put_flavor(
        &self,
        caller: &Caller,
        flavor: FlavorRecord,
    ) -> Result<Arc<FlavorRecord>, ServiceError> {
        Flavor::new(&flavor.id, flavor.size, &flavor.extra_specs)
            .map_err(|error| ServiceError::Invalid(error.to_string()))?;
        let writer = self.writer().await?;
        let entered = self.flavor(&flavor.id).map(|known| known.created_at);
        let record = FlavorRecord { created_at: entered.unwrap_or_else(|| self.now()), ..flavor };
        let action = if entered.is_some() { "flavor.update" } else { "flavor.create" };
        self.write_flavor(&writer, caller, action, &record.id, Write::Flavor(record.clone())).await?;
        Ok(Arc::new(record))
    }

    /// Takes a flavor away. Leases that have it keep it.
    pub async fn remove_flavor(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let writer = self.writer().await?;
        if self.flavor(id).is_none() {
            return Err(ServiceError::NotFound(NotFound::Flavor(id.to_owned())));
        }
        self.write_flavor(&writer, caller, "flavor.delete", id, Write::RemoveFlavor(id.to_owned())).await
    }

    async fn write_flavor(
        &self,
        writer: &Writer<'_>,
        caller: &Caller,
        action: &str,
        id: &str,
        write: Write,
    ) -> Result<(), ServiceError> {
        let now = self.now();
        let mut commit = Commit::new(now);
        commit.audit.push(audit(caller, now, action, &id));
        commit.writes.push(write);
        let committed = writer.commit(commit).await;
        committed.map_err(|error| decide_again(error).err().unwrap_or_else(overtaken))
    }
}
