//! Shapes of the instances to place.

use cluster::{Disk, DiskTemplate, FailMode, ISpec, Instance, NodeIdx};

/// Resources of an instance to place, which has one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub memory_mib: i64,
    pub disk_mib: i64,
    pub vcpus: i64,
    /// Spindles of the disk. They count on nodes with exclusive storage.
    pub spindles: i64,
    /// Disk activity in spindles. It counts on nodes without exclusive storage.
    pub spindle_use: i64,
    pub template: DiskTemplate,
    /// Disk space for the mirror's metadata, MiB. `hspace` counts none, but requests do.
    pub metadata_mib: i64,
}

/// Metadata of a mirrored disk, MiB.
const METADATA_MIB: i64 = 128;

/// Step by which memory shrinks, MiB.
const MEMORY_STEP_MIB: i64 = 64;
/// Step by which disks shrink, MiB.
const DISK_STEP_MIB: i64 = 256;

impl Shape {
    /// Shape of an instance spec in a policy.
    pub fn of_spec(spec: &ISpec, spindle_use: i64, template: DiskTemplate) -> Self {
        Self {
            memory_mib: spec.memory_size,
            disk_mib: spec.disk_size,
            vcpus: spec.cpu_count,
            spindles: spec.spindle_use,
            spindle_use,
            template,
            metadata_mib: 0,
        }
    }

    /// The shape as counted in a request, with disk space for the mirror's metadata.
    #[must_use]
    pub fn as_requested(self) -> Self {
        let metadata_mib = if self.template == DiskTemplate::Drbd { METADATA_MIB } else { 0 };
        Self { metadata_mib, ..self }
    }

    /// A running instance of this shape, not placed yet.
    pub fn instance(&self, name: impl Into<String>) -> Instance {
        Instance {
            memory: self.memory_mib,
            disk: self.disk_mib + self.metadata_mib,
            disks: vec![Disk { size: self.disk_mib, spindles: Some(self.spindles) }],
            vcpus: self.vcpus,
            spindle_use: self.spindle_use,
            ..Instance::new(name, self.template, NodeIdx(0))
        }
    }

    /// Whether placing an instance never frees capacity, as one with negative sizes would.
    pub(super) fn only_takes(&self) -> bool {
        self.memory_mib >= 0 && self.disk_mib >= 0 && self.spindles >= 0
    }

    /// The next smaller shape in the resource that ran short; `None` if it cannot shrink.
    pub(super) fn shrunk(&self, short: FailMode) -> Option<Self> {
        let mut smaller = *self;
        let (size, step, least) = match short {
            FailMode::Memory => (&mut smaller.memory_mib, MEMORY_STEP_MIB, MEMORY_STEP_MIB),
            FailMode::Disk => (&mut smaller.disk_mib, DISK_STEP_MIB, DISK_STEP_MIB),
            FailMode::Cpu => (&mut smaller.vcpus, 1, 1),
            FailMode::Spindles => (&mut smaller.spindles, 1, 1),
            _ => return None,
        };
        *size -= step;
        (*size >= least).then_some(smaller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_shrinks_to_one_step_at_least() {
        let shape = Shape {
            memory_mib: 150,
            disk_mib: 768,
            vcpus: 2,
            spindles: 1,
            spindle_use: 3,
            template: DiskTemplate::Plain,
            metadata_mib: 0,
        };
        let series = |short| std::iter::successors(Some(shape), move |s| s.shrunk(short)).skip(1);
        assert_eq!(series(FailMode::Memory).map(|s| s.memory_mib).collect::<Vec<_>>(), [86]);
        assert_eq!(series(FailMode::Disk).map(|s| s.disk_mib).collect::<Vec<_>>(), [512, 256]);
        assert_eq!(series(FailMode::Cpu).map(|s| s.vcpus).collect::<Vec<_>>(), [1]);
        assert_eq!(series(FailMode::Spindles).count(), 0);
        assert_eq!(series(FailMode::Tags).count(), 0);
    }
}
