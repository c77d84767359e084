//! Flavors that can be reserved.

use std::sync::Arc;

use leases::project::ProjectId;
use leases::terms::{Flavor, FlavorSize, InstanceSize};
use store::{FlavorRecord, Write};

use crate::service::Service;
use crate::types::{Caller, NotFound, ServiceError};

/// Access to flavors that can be reserved.
#[derive(Clone, Copy, Debug)]
pub struct Flavors<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Flavors<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    pub fn all(self) -> Vec<Arc<FlavorRecord>> {
        self.service.state().flavors.values().cloned().collect()
    }

    pub fn get(self, id: &str) -> Option<Arc<FlavorRecord>> {
        self.service.state().flavors.get(id).cloned()
    }

    /// A flavor of the cloud. `None` if it doesn't exist, the project may not use it, or its instances can't
    /// be reserved.
    pub async fn of_cloud(self, project: &ProjectId, id: &str) -> Result<Option<FlavorRecord>, ServiceError> {
        let found = self.service.parts.fleet.flavor(project, id).await;
        let found = found.map_err(|error| ServiceError::Fleet(error.to_string()))?;
        Ok(found.and_then(|flavor| {
            let instance = InstanceSize::new(flavor.vcpus, flavor.memory_mib, flavor.disk_gib).ok()?;
            Some(FlavorRecord {
                id: flavor.id,
                name: flavor.name,
                size: FlavorSize { instance, ephemeral_gib: flavor.ephemeral_gib },
                swap_mib: flavor.swap_mib,
                public: flavor.public,
                extra_specs: flavor.extra_specs,
                created_at: self.service.now(),
            })
        }))
    }

    /// Creates a flavor, or replaces the one with the same identifier. Rejects flavors that can't be
    /// reserved.
    pub async fn put(self, caller: &Caller, flavor: FlavorRecord) -> Result<Arc<FlavorRecord>, ServiceError> {
        Flavor::new(&flavor.id, flavor.size, &flavor.extra_specs)
            .map_err(|error| ServiceError::Invalid(error.to_string()))?;
        let writer = self.service.writer().await?;
        let entered = self.get(&flavor.id).map(|known| known.created_at);
        let record = FlavorRecord { created_at: entered.unwrap_or_else(|| self.service.now()), ..flavor };
        let action = if entered.is_some() { "flavor.update" } else { "flavor.create" };
        writer.write_one(caller, action, &record.id, Write::Flavor(record.clone())).await?;
        Ok(Arc::new(record))
    }

    /// Removes a flavor. Leases that use it keep it.
    pub async fn remove(self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let writer = self.service.writer().await?;
        if self.get(id).is_none() {
            return Err(ServiceError::NotFound(NotFound::Flavor(id.to_owned())));
        }
        writer.write_one(caller, "flavor.delete", id, Write::RemoveFlavor(id.to_owned())).await
    }
}
