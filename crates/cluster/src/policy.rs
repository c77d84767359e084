//! Instance policies: allowed instance sizes, and limits on over-committing nodes.

use crate::figures::FailMode;
use crate::instance::{DiskTemplate, Instance};

/// An instance size in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ISpec {
    /// MiB.
    pub memory_size: i64,
    pub cpu_count: i64,
    /// Size of each disk, MiB.
    pub disk_size: i64,
    pub disk_count: i64,
    /// Number of network interfaces. Placement never checks it.
    pub nic_count: i64,
    pub spindle_use: i64,
}

impl ISpec {
    /// Built-in minimum and standard size.
    pub const DEFAULT_MIN: Self =
        Self { memory_size: 128, cpu_count: 1, disk_size: 1024, disk_count: 1, nic_count: 1, spindle_use: 1 };
    /// Built-in maximum size.
    pub const DEFAULT_MAX: Self = Self {
        memory_size: 32_768,
        cpu_count: 8,
        disk_size: 1_048_576,
        disk_count: 16,
        nic_count: 8,
        spindle_use: 12,
    };
}

/// An interval of allowed sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinMax {
    /// Inclusive.
    pub min: ISpec,
    /// Inclusive.
    pub max: ISpec,
}

/// Limits on the instances and nodes of a cluster or group.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Default size of an instance.
    pub std: ISpec,
    /// Allowed intervals. An instance must be in one of them; an empty list allows every size.
    pub minmax: Vec<MinMax>,
    /// Allowed disk templates, in the order given.
    pub disk_templates: Vec<DiskTemplate>,
    /// Limit of virtual CPUs per physical CPU; negative for no limit.
    pub vcpu_ratio: f64,
    /// Limit of instance spindles per node spindle.
    pub spindle_ratio: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            std: ISpec::DEFAULT_MIN,
            minmax: vec![MinMax { min: ISpec::DEFAULT_MIN, max: ISpec::DEFAULT_MAX }],
            disk_templates: DiskTemplate::ALL.to_vec(),
            vcpu_ratio: 4.0,
            spindle_ratio: 32.0,
        }
    }
}

impl Policy {
    /// Checks a new instance against the policy (HT-policy).
    ///
    /// `exclusive_storage` is the flag of the intended primary.
    ///
    /// # Errors
    ///
    /// The failure for the *first* interval, if the instance is in none.
    pub fn check(&self, instance: &Instance, exclusive_storage: bool) -> Result<(), FailMode> {
        let mut first_failure = None;
        let fits = self.minmax.is_empty()
            || self.minmax.iter().any(|pair| {
                let fit = below(&pair.min, instance, exclusive_storage)
                    .and_then(|()| above(&pair.max, instance, exclusive_storage));
                match fit {
                    Ok(()) => true,
                    Err(failure) => {
                        first_failure.get_or_insert(failure);
                        false
                    }
                }
            });
        if !fits {
            return Err(first_failure.unwrap_or(FailMode::Internal));
        }
        if self.disk_templates.contains(&instance.template) { Ok(()) } else { Err(FailMode::Disk) }
    }
}

/// Refuses an instance with a figure below the minimum.
fn below(min: &ISpec, instance: &Instance, exclusive_storage: bool) -> Result<(), FailMode> {
    compare(instance, exclusive_storage, |value, field| value < field(min))
}

/// Refuses an instance with a figure above the maximum.
fn above(max: &ISpec, instance: &Instance, exclusive_storage: bool) -> Result<(), FailMode> {
    compare(instance, exclusive_storage, |value, field| value > field(max))
}

/// Applies `violates(value, field of the spec)` to each figure, in the reference's order.
fn compare(
    instance: &Instance,
    exclusive_storage: bool,
    violates: impl Fn(i64, fn(&ISpec) -> i64) -> bool,
) -> Result<(), FailMode> {
    let refuse = |bad: bool, mode: FailMode| if bad { Err(mode) } else { Ok(()) };
    refuse(violates(instance.memory, |s| s.memory_size), FailMode::Memory)?;
    refuse(instance.disks.iter().any(|d| violates(d.size, |s| s.disk_size)), FailMode::Disk)?;
    refuse(violates(instance.vcpus, |s| s.cpu_count), FailMode::Cpu)?;
    let spindles_bad = if exclusive_storage {
        instance.total_spindles().is_none_or(|n| violates(n, |s| s.spindle_use))
    } else {
        violates(instance.spindle_use, |s| s.spindle_use)
    };
    refuse(spindles_bad, FailMode::Spindles)?;
    let disk_count_bad = instance.template != DiskTemplate::Diskless
        && violates(instance.disks.len() as i64, |s| s.disk_count);
    refuse(disk_count_bad, FailMode::DiskCount)
}
