//! Size of an instance.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::error::TermsError;
use crate::resources::Resources;

/// Size of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceSize {
    vcpus: NonZeroU32,
    memory_mib: NonZeroU32,
    disk_gib: u32,
}

impl InstanceSize {
    /// Requires at least one virtual CPU and some memory; disk can be 0. Blazar accepts zero CPUs, and even
    /// -1.
    pub fn new(vcpus: u32, memory_mib: u32, disk_gib: u32) -> Result<Self, TermsError> {
        let vcpus = NonZeroU32::new(vcpus).ok_or(TermsError::EmptySize("vcpus"))?;
        let memory_mib = NonZeroU32::new(memory_mib).ok_or(TermsError::EmptySize("memory_mb"))?;
        Ok(Self { vcpus, memory_mib, disk_gib })
    }

    pub fn vcpus(&self) -> u32 {
        self.vcpus.get()
    }

    /// In MiB.
    pub fn memory_mib(&self) -> u32 {
        self.memory_mib.get()
    }

    /// In GiB.
    pub fn disk_gib(&self) -> u32 {
        self.disk_gib
    }

    /// Resources that one instance uses on its host.
    pub fn resources(&self) -> Resources {
        Resources {
            vcpus: self.vcpus().into(),
            memory_mib: self.memory_mib().into(),
            disk_gib: self.disk_gib.into(),
            other: BTreeMap::new(),
        }
    }
}
