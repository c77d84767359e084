//! Instance policies: what sizes an instance may have, and how far nodes may be over-committed.

use crate::figures::FailMode;
use crate::instance::{DiskTemplate, Instance};

/// One point of an instance policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ISpec {
    /// Memory, in MiB.
    pub memory_size: i64,
    /// Virtual CPUs.
    pub cpu_count: i64,
    /// Size of each disk, in MiB.
    pub disk_size: i64,
    /// Number of disks.
    pub disk_count: i64,
    /// Number of network interfaces (never checked by placement).
    pub nic_count: i64,
    /// Spindles.
    pub spindle_use: i64,
}

impl ISpec {
    /// The built-in minimum, which is the built-in standard as well.
    pub const DEFAULT_MIN: Self =
        Self { memory_size: 128, cpu_count: 1, disk_size: 1024, disk_count: 1, nic_count: 1, spindle_use: 1 };
    /// The built-in maximum.
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
    /// Lower bound, inclusive.
    pub min: ISpec,
    /// Upper bound, inclusive.
    pub max: ISpec,
}

/// An instance policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The standard size, used where a size is not given.
    pub std: ISpec,
    /// Allowed intervals; an instance must lie in one of them. No interval means no constraint.
    pub minmax: Vec<MinMax>,
    /// Allowed disk templates, in the order given.
    pub disk_templates: Vec<DiskTemplate>,
    /// Virtual CPUs allowed per physical CPU; negative means no limit.
    pub vcpu_ratio: f64,
    /// Instance spindles allowed per node spindle.
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
    /// `exclusive_storage` is the flag of the node that would be its primary. The failure is that of the
    /// *first* interval when none fits.
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

/// The instance is nowhere below the minimum.
fn below(min: &ISpec, instance: &Instance, exclusive_storage: bool) -> Result<(), FailMode> {
    compare(instance, exclusive_storage, |value, field| value < field(min))
}

/// The instance is nowhere above the maximum.
fn above(max: &ISpec, instance: &Instance, exclusive_storage: bool) -> Result<(), FailMode> {
    compare(instance, exclusive_storage, |value, field| value > field(max))
}

/// Applies `violates(value, field of the spec)` to each figure in the reference's order.
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
