//! Explains which bounds of a policy an instance violates, and by how much.
//!
//! The check itself is [`cluster::Policy::check`]. This module repeats it to find the violated bound.

use std::fmt;

use cluster::{DiskTemplate, ISpec, Instance, MinMax, Policy};

/// A property of an instance that lies outside one of the policy's intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// Name with its article, as in a sentence: `the memory`.
    what: String,
    /// `None` if unknown.
    value: Option<i64>,
    /// Allowed minimum.
    least: i64,
    /// Allowed maximum.
    most: i64,
    unit: &'static str,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, least, most, unit } = self;
        let verb = if what.starts_with("disk") { "has" } else { "is" };
        match value {
            Some(value) => write!(f, "{what} {verb} {value}{unit}")?,
            None => write!(f, "{what} is not known")?,
        }
        write!(f, ", the policy wants {least} to {most}")
    }
}

/// Reason why a policy rejects an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The instance is in none of the policy's intervals. Lists the first violated bound of each interval.
    Sizes(Vec<OutOfBounds>),
    /// The disk template isn't allowed.
    Template { wanted: DiskTemplate, allowed: Vec<DiskTemplate> },
}

impl Objection {
    /// Finds the reason why `policy` rejects `instance` on a node with or without exclusive storage; `None`
    /// if it accepts it.
    pub fn find(policy: &Policy, instance: &Instance, exclusive_storage: bool) -> Option<Self> {
        policy.check(instance, exclusive_storage).err()?;
        let bounds = policy.minmax.iter().map(|pair| violated(pair, instance, exclusive_storage));
        let all: Option<Vec<OutOfBounds>> = bounds.collect();
        match all {
            Some(violated) if !violated.is_empty() => Some(Self::Sizes(violated)),
            _ => Some(Self::Template { wanted: instance.template, allowed: policy.disk_templates.clone() }),
        }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sizes(violated) => {
                let mut each: Vec<String> = violated.iter().map(ToString::to_string).collect();
                each.dedup();
                write!(f, "{}", each.join("; or "))
            }
            Self::Template { wanted, allowed } => {
                let names: Vec<&str> = allowed.iter().map(|template| template.name()).collect();
                write!(f, "the policy allows no {}", wanted.name())?;
                match names.as_slice() {
                    [] => Ok(()),
                    [one] => write!(f, ", only {one}"),
                    [first @ .., last] => write!(f, ", only {} and {last}", first.join(", ")),
                }
            }
        }
    }
}

/// First property of an instance that an interval rejects. Minimums are checked before maximums, as in the
/// policy check.
fn violated(pair: &MinMax, instance: &Instance, exclusive_storage: bool) -> Option<OutOfBounds> {
    let figures = figures(instance, exclusive_storage);
    let too_small = |figure: &&Figure| figure.value.is_none_or(|value| value < (figure.field)(&pair.min));
    let too_large = |figure: &&Figure| figure.value.is_none_or(|value| value > (figure.field)(&pair.max));
    let found = figures.iter().find(too_small).or_else(|| figures.iter().find(too_large))?;
    Some(OutOfBounds {
        what: found.what.clone(),
        value: found.value,
        least: (found.field)(&pair.min),
        most: (found.field)(&pair.max),
        unit: found.unit,
    })
}

struct Figure {
    what: String,
    value: Option<i64>,
    unit: &'static str,
    field: fn(&ISpec) -> i64,
}

/// Checked properties, in order.
fn figures(instance: &Instance, exclusive_storage: bool) -> Vec<Figure> {
    let figure = |what: &str, value, unit, field| Figure { what: what.to_owned(), value, unit, field };
    let mut all = vec![figure("the memory", Some(instance.memory), " MiB", |s| s.memory_size)];
    for (number, disk) in instance.disks.iter().enumerate() {
        all.push(figure(&format!("disk {number}"), Some(disk.size), " MiB", |s| s.disk_size));
    }
    all.push(figure("the number of virtual CPUs", Some(instance.vcpus), "", |s| s.cpu_count));
    let (what, spindles) = if exclusive_storage {
        ("the number of spindles", instance.total_spindles())
    } else {
        ("the use of spindles", Some(instance.spindle_use))
    };
    all.push(figure(what, spindles, "", |s| s.spindle_use));
    if instance.template != DiskTemplate::Diskless {
        all.push(figure("the number of disks", Some(instance.disks.len() as i64), "", |s| s.disk_count));
    }
    all
}

#[cfg(test)]
mod tests {
    use cluster::{Disk, NodeIdx};

    use super::*;

    fn instance(memory: i64, disks: &[i64]) -> Instance {
        let disks: Vec<Disk> = disks.iter().map(|size| Disk { size: *size, spindles: Some(1) }).collect();
        Instance { memory, disks, vcpus: 1, ..Instance::new("i", DiskTemplate::Plain, NodeIdx(0)) }
    }

    fn told(policy: &Policy, instance: &Instance) -> Option<String> {
        Objection::find(policy, instance, false).map(|objection| objection.to_string())
    }

    #[test]
    fn the_bound_is_named_with_both_figures() {
        let policy = Policy::default();
        assert_eq!(told(&policy, &instance(1024, &[2048])), None);
        let small = told(&policy, &instance(1024, &[2048, 512]));
        assert_eq!(small.as_deref(), Some("disk 1 has 512 MiB, the policy wants 1024 to 1048576"));
        let large = told(&policy, &instance(65_536, &[2048]));
        assert_eq!(large.as_deref(), Some("the memory is 65536 MiB, the policy wants 128 to 32768"));
        let none = told(&policy, &instance(1024, &[]));
        assert_eq!(none.as_deref(), Some("the number of disks is 0, the policy wants 1 to 16"));
    }

    #[test]
    fn every_interval_is_told_and_templates_come_last() {
        let mut policy = Policy::default();
        let mut larger = policy.minmax[0];
        larger.min.memory_size = 40_000;
        larger.max.memory_size = 50_000;
        policy.minmax.push(larger);
        let told_of = told(&policy, &instance(36_000, &[2048])).unwrap_or_default();
        assert!(told_of.contains("wants 128 to 32768; or the memory is 36000 MiB"), "{told_of}");
        let policy = Policy {
            disk_templates: vec![DiskTemplate::Rbd, DiskTemplate::Drbd, DiskTemplate::Ext],
            ..Policy::default()
        };
        let refused = told(&policy, &instance(1024, &[2048]));
        assert_eq!(refused.as_deref(), Some("the policy allows no plain, only rbd, drbd and ext"));
    }
}
