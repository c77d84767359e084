//! Sizes and shapes on the command line. Units are those of `hspace`.

use cluster::{Cluster, DiskTemplate, GroupIdx, Node, Policy, did_you_mean};
use htools::data::LARGEST;
use htools::units::{self, UnitError};
use placement::capacity::Shape;
use placement::whatif::{NewNodes, Resize};
use thiserror::Error;

/// Mistake in a specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum SpecError {
    #[error("'{text}': expected {expected}")]
    Form { text: String, expected: &'static str },
    #[error("'{text}': {what}: {error}")]
    Size { text: String, what: &'static str, error: UnitError },
    #[error("'{text}': {what}: expected a whole number from 0 to {most}")]
    Range { text: String, what: &'static str, most: i64 },
    #[error("unknown disk template '{0}', pass one of {known}", known = DiskTemplate::names())]
    Template(String),
    #[error("'{name}' doesn't name exactly one group of the cluster{meant}")]
    Group {
        name: String,
        /// Question about similar names.
        meant: String,
    },
    #[error("the cluster has {0} groups; choose one for the new nodes (@GROUP)")]
    WhichGroup(usize),
    #[error("the policy allows no disk template for such instances; choose one (--disk-template)")]
    NoTemplate,
}

/// Maximum number of nodes or instances that one specification adds.
const MOST_NEW: i64 = 100_000;

/// Parser for the fields of a specification.
struct Parts<'a> {
    text: &'a str,
}

impl Parts<'_> {
    fn form(&self, expected: &'static str) -> SpecError {
        SpecError::Form { text: self.text.to_owned(), expected }
    }

    fn size(&self, what: &'static str, value: &str) -> Result<i64, SpecError> {
        let size = units::parse(value).map_err(|error| SpecError::Size {
            text: self.text.to_owned(),
            what,
            error,
        })?;
        if (0..=LARGEST).contains(&size) {
            Ok(size)
        } else {
            Err(SpecError::Range { text: self.text.to_owned(), what, most: LARGEST })
        }
    }

    fn number(&self, what: &'static str, value: &str, most: i64) -> Result<i64, SpecError> {
        let number = value.parse().ok().filter(|n| (0..=most).contains(n));
        number.ok_or_else(|| SpecError::Range { text: self.text.to_owned(), what, most })
    }

    fn count(&self, value: &str) -> Result<usize, SpecError> {
        self.number("count", value, MOST_NEW).map(|count| count as usize)
    }
}

/// The disk template of that name. Without a name, the template that the policy allows and most instances of
/// the cluster have, or else the first one allowed. If there is a disk, the template must have disks.
pub(super) fn template(
    name: Option<&str>,
    cluster: &Cluster,
    policy: &Policy,
    disk_mib: i64,
) -> Result<DiskTemplate, SpecError> {
    if let Some(name) = name {
        return DiskTemplate::from_name(name).ok_or_else(|| SpecError::Template(name.to_owned()));
    }
    let stores = |template: &DiskTemplate| disk_mib == 0 || *template != DiskTemplate::Diskless;
    let allowed: Vec<DiskTemplate> = policy.disk_templates.iter().copied().filter(stores).collect();
    let users =
        |template: &DiskTemplate| cluster.instances.iter().filter(|i| i.template == *template).count();
    // On a tie, the first one wins: `max_by_key` alone would take the last.
    allowed.iter().rev().copied().max_by_key(users).ok_or(SpecError::NoTemplate)
}

/// First field of a specification: the disk, in MiB.
pub(super) fn disk(text: &str) -> Result<i64, SpecError> {
    Parts { text }.size("disk", text.split(',').next().unwrap_or_default())
}

/// The group of that name, or the only one.
pub(super) fn group(cluster: &Cluster, name: Option<&str>) -> Result<GroupIdx, SpecError> {
    match (name, cluster.groups.len()) {
        (Some(name), _) => cluster.find_group(name).map_err(|_| SpecError::Group {
            name: name.to_owned(),
            meant: did_you_mean(&[name], cluster.groups.iter().map(|group| group.name.as_str())),
        }),
        (None, 1) => Ok(GroupIdx(0)),
        (None, several) => Err(SpecError::WhichGroup(several)),
    }
}

/// Reads `DISK,RAM,CPUS[,SPINDLES]`.
pub(super) fn shape(text: &str, template: DiskTemplate, policy: &Policy) -> Result<Shape, SpecError> {
    let parts = Parts { text };
    let fields: Vec<&str> = text.split(',').collect();
    let (disk, memory, cpus, spindles) = match *fields.as_slice() {
        [disk, memory, cpus] => (disk, memory, cpus, "1"),
        [disk, memory, cpus, spindles] => (disk, memory, cpus, spindles),
        _ => return Err(parts.form("DISK,RAM,CPUS[,SPINDLES]")),
    };
    Ok(Shape {
        disk_mib: parts.size("disk", disk)?,
        memory_mib: parts.size("memory", memory)?,
        vcpus: parts.number("virtual CPUs", cpus, LARGEST)?,
        spindles: parts.number("spindles", spindles, LARGEST)?,
        spindle_use: policy.std.spindle_use,
        template,
        metadata_mib: 0,
    }
    .as_requested())
}

/// Reads `COUNT,DISK,RAM,CPUS[,TEMPLATE]`.
pub(super) fn new_instances(text: &str, cluster: &Cluster) -> Result<(usize, Shape), SpecError> {
    let parts = Parts { text };
    let expected = "COUNT,DISK,RAM,CPUS[,TEMPLATE]";
    let fields: Vec<&str> = text.split(',').collect();
    let (count, sizes, name) = match *fields.as_slice() {
        [count, disk, memory, cpus] => (count, [disk, memory, cpus], None),
        [count, disk, memory, cpus, name] => (count, [disk, memory, cpus], Some(name)),
        _ => return Err(parts.form(expected)),
    };
    let policy = &cluster.policy;
    let template = template(name, cluster, policy, parts.size("disk", sizes[0])?)?;
    Ok((parts.count(count)?, shape(&sizes.join(","), template, policy)?))
}

/// Reads `COUNT,DISK,RAM,CPUS[,SPINDLES][@GROUP]`.
pub(super) fn new_nodes(text: &str, cluster: &Cluster) -> Result<NewNodes, SpecError> {
    let parts = Parts { text };
    let (sizes, name) = match text.split_once('@') {
        Some((sizes, name)) => (sizes, Some(name)),
        None => (text, None),
    };
    let fields: Vec<&str> = sizes.split(',').collect();
    let (count, disk, memory, cpus, spindles) = match *fields.as_slice() {
        [count, disk, memory, cpus] => (count, disk, memory, cpus, "1"),
        [count, disk, memory, cpus, spindles] => (count, disk, memory, cpus, spindles),
        _ => return Err(parts.form("COUNT,DISK,RAM,CPUS[,SPINDLES][@GROUP]")),
    };
    let (disk, memory) = (parts.size("disk", disk)?, parts.size("memory", memory)?);
    let cpus = parts.number("CPUs", cpus, LARGEST)?;
    let like = Node {
        total_memory: memory as f64,
        reported_free_memory: memory,
        total_disk: disk as f64,
        reported_free_disk: disk,
        total_cpus: cpus as f64,
        total_spindles: parts.number("spindles", spindles, LARGEST)?,
        ..Node::new("", group(cluster, name)?)
    };
    Ok(NewNodes { count: parts.count(count)?, like })
}

/// Reads `INSTANCE:mem=SIZE,vcpus=N,disk=SIZE`; each size is optional, but one must be there.
pub(super) fn resize(text: &str) -> Result<(&str, Resize), SpecError> {
    let parts = Parts { text };
    let form = || parts.form("INSTANCE:mem=SIZE,vcpus=N,disk=SIZE");
    let (name, sizes) = text.split_once(':').ok_or_else(form)?;
    let mut resize = Resize::default();
    for entry in sizes.split(',') {
        let (key, value) = entry.split_once('=').ok_or_else(form)?;
        match key {
            "mem" => resize.memory_mib = Some(parts.size("memory", value)?),
            "vcpus" => resize.vcpus = Some(parts.number("virtual CPUs", value, LARGEST)?),
            "disk" => resize.disk_mib = Some(parts.size("disk", value)?),
            _ => return Err(form()),
        }
    }
    Ok((name, resize))
}

#[cfg(test)]
mod tests {
    use cluster::{Group, Instance, LoadOptions, NodeIdx};

    use super::*;

    #[test]
    fn a_shape_is_written_as_for_hspace() {
        let policy = Policy::default();
        let read = |text| shape(text, DiskTemplate::Plain, &policy);
        let wanted = read("10g,2g,4").expect("a shape");
        assert_eq!((wanted.disk_mib, wanted.memory_mib, wanted.vcpus, wanted.spindles), (10_240, 2048, 4, 1));
        assert_eq!(read("1,2,3,4").map(|s| s.spindles), Ok(4));
        for wrong in ["", "1,2", "1,2,3,4,5", "1,2,x", "1,-2,3", "1x,2,3", "1,2,-3", "1,,3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn new_sizes_name_what_they_change() {
        let read = resize("web.x:mem=2g,disk=10");
        assert_eq!(read, Ok(("web.x", Resize { memory_mib: Some(2048), vcpus: None, disk_mib: Some(10) })));
        for wrong in ["web", "web:", "web:mem", "web:ram=1", "web:vcpus=1.5", "web:mem=-1"] {
            assert!(resize(wrong).is_err(), "{wrong}");
        }
    }

    /// A cluster with a policy and instances of these templates.
    fn cluster(allowed: Vec<DiskTemplate>, instances: &[DiskTemplate]) -> Cluster {
        let nodes = ["n1", "n2"].map(|name| Node::new(name, GroupIdx(0)));
        let instances = instances.iter().map(|template| Instance {
            secondary: (*template == DiskTemplate::Drbd).then_some(NodeIdx(1)),
            ..Instance::new("i", *template, NodeIdx(0))
        });
        let policy = Policy { disk_templates: allowed, ..Policy::default() };
        let groups = vec![Group { policy: policy.clone(), ..Group::new("g", "u") }];
        let loaded = Cluster::load(
            groups,
            nodes.into(),
            instances.collect(),
            Vec::new(),
            policy,
            &LoadOptions::default(),
        );
        loaded.expect("a cluster").0
    }

    #[test]
    fn the_usual_template_is_what_most_instances_have_and_has_disks_if_some_are_wanted() {
        use DiskTemplate::{Diskless, Drbd, Plain, Rbd};
        let usual = |allowed: &[DiskTemplate], instances: &[DiskTemplate], disk| {
            let cluster = cluster(allowed.to_vec(), instances);
            template(None, &cluster, &cluster.policy, disk)
        };
        assert_eq!(usual(&DiskTemplate::ALL, &[], 0), Ok(DiskTemplate::ALL[0]));
        assert_ne!(usual(&DiskTemplate::ALL, &[], 1024), Ok(Diskless));
        assert_eq!(usual(&[Diskless, Plain, Drbd], &[], 1024), Ok(Plain));
        assert_eq!(usual(&[Diskless, Plain, Drbd], &[Plain, Drbd, Drbd], 1024), Ok(Drbd));
        assert_eq!(usual(&[Diskless, Plain, Drbd], &[Plain, Drbd], 1024), Ok(Plain));
        assert_eq!(usual(&[Plain, Drbd], &[Rbd, Rbd, Drbd], 1024), Ok(Drbd));
        assert_eq!(usual(&[Diskless], &[], 1024), Err(SpecError::NoTemplate));
    }

    #[test]
    fn new_instances_have_the_usual_template_unless_another_is_given() {
        let cluster = cluster(vec![DiskTemplate::Rbd], &[]);
        let template = |text| new_instances(text, &cluster).map(|(count, shape)| (count, shape.template));
        assert_eq!(template("3,1g,1g,1"), Ok((3, DiskTemplate::Rbd)));
        assert_eq!(template("3,1g,1g,1,drbd"), Ok((3, DiskTemplate::Drbd)));
        assert_eq!(template("3,1g,1g,1,tape"), Err(SpecError::Template("tape".to_owned())));
    }
}
