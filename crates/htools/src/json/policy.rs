//! Instance policies, and the enumerations in groups, nodes and instances.

use std::borrow::Cow;

use cluster::{AllocPolicy, DiskTemplate, ISpec, InstanceStatus, MinMax, Policy};

use super::complaint::Complaint;
use super::cursor::{Cursor, Syntax};
use super::read::{Json, Read, Record, Slot, json_record};

impl Json<'_> for AllocPolicy {
    fn unfit() -> Complaint {
        Complaint::NotWord("AllocPolicy")
    }

    fn from_text(text: Cow<'_, str>) -> Read<Self> {
        Self::from_name(&text).ok_or_else(|| Complaint::Word { kind: "AllocPolicy", word: text.into_owned() })
    }
}

impl Json<'_> for DiskTemplate {
    fn unfit() -> Complaint {
        Complaint::NotWord("DiskTemplate")
    }

    fn from_text(text: Cow<'_, str>) -> Read<Self> {
        Self::from_name(&text)
            .ok_or_else(|| Complaint::Word { kind: "DiskTemplate", word: text.into_owned() })
    }
}

impl Json<'_> for InstanceStatus {
    fn unfit() -> Complaint {
        Complaint::NotWord("InstanceStatus")
    }

    fn from_text(text: Cow<'_, str>) -> Read<Self> {
        Self::from_name(&text)
            .ok_or_else(|| Complaint::Word { kind: "InstanceStatus", word: text.into_owned() })
    }
}

/// A hypervisor. Only KVM is treated differently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hypervisor {
    pub(crate) kvm: bool,
}

impl Json<'_> for Hypervisor {
    fn unfit() -> Complaint {
        Complaint::NotWord("Hypervisor")
    }

    fn from_text(text: Cow<'_, str>) -> Read<Self> {
        match text.as_ref() {
            "kvm" => Ok(Self { kvm: true }),
            "xen-pvm" | "chroot" | "xen-hvm" | "lxc" | "fake" => Ok(Self { kvm: false }),
            _ => Err(Complaint::Word { kind: "Hypervisor", word: text.into_owned() }),
        }
    }
}

json_record!(RawPolicy, Complaint::Kind("JSObject"), {
    "disk-templates" => disk_templates: Vec<DiskTemplate>,
    "minmax" => minmax: Vec<MinMax>,
    "spindle-ratio" => spindle_ratio: f64,
    "std" => std: ISpec,
    "vcpu-ratio" => vcpu_ratio: f64,
});

json_record!(RawMinMax, Complaint::Kind("JSObject"), {
    "max" => max: ISpec,
    "min" => min: ISpec,
});

json_record!(RawISpec, Complaint::Kind("JSObject"), {
    "cpu-count" => cpu_count: i64,
    "disk-count" => disk_count: i64,
    "disk-size" => disk_size: i64,
    "memory-size" => memory_size: i64,
    "nic-count" => nic_count: i64,
    "spindle-use" => spindle_use: i64,
});

/// Reads an object that must have no keys except its record's.
fn strict<'t, R: Record<'t>>(cursor: &mut Cursor<'t>, allowed: &[&'static str]) -> Result<Read<R>, Syntax> {
    let mut record = R::default();
    let mut found = Vec::new();
    cursor.object(|cursor, name| {
        if record.accept(&name, cursor)? {
            return Ok(());
        }
        found.push(name.into_owned());
        cursor.skip()
    })?;
    if found.is_empty() {
        return Ok(Ok(record));
    }
    found.sort_unstable();
    found.dedup();
    Ok(Err(Complaint::Superfluous { found, allowed: allowed.to_vec() }))
}

/// The value of a required key in a policy.
fn part<'t, T: Json<'t>>(mut slot: Slot<T>, key: &'static str) -> Read<T> {
    if let Slot::Absent = slot {
        return Err(Complaint::missing(key));
    }
    slot.element().map_err(|inner| Complaint::PolicyField { key, inner: Box::new(inner) })
}

impl<'t> Json<'t> for Policy {
    fn unfit() -> Complaint {
        RawPolicy::unfit()
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let allowed = ["disk-templates", "minmax", "spindle-ratio", "std", "vcpu-ratio"];
        let raw = strict::<RawPolicy>(cursor, &allowed)?;
        Ok(raw.and_then(|raw| {
            Ok(Self {
                minmax: part(raw.minmax, "minmax")?,
                std: part(raw.std, "std")?,
                disk_templates: part(raw.disk_templates, "disk-templates")?,
                vcpu_ratio: part(raw.vcpu_ratio, "vcpu-ratio")?,
                spindle_ratio: part(raw.spindle_ratio, "spindle-ratio")?,
            })
        }))
    }
}

impl<'t> Json<'t> for MinMax {
    fn unfit() -> Complaint {
        RawMinMax::unfit()
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let raw = strict::<RawMinMax>(cursor, &["max", "min"])?;
        Ok(raw.and_then(|raw| Ok(Self { min: part(raw.min, "min")?, max: part(raw.max, "max")? })))
    }
}

impl<'t> Json<'t> for ISpec {
    fn unfit() -> Complaint {
        RawISpec::unfit()
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let allowed = ["cpu-count", "disk-count", "disk-size", "memory-size", "nic-count", "spindle-use"];
        let raw = strict::<RawISpec>(cursor, &allowed)?;
        Ok(raw.and_then(|raw| {
            Ok(Self {
                memory_size: part(raw.memory_size, "memory-size")?,
                cpu_count: part(raw.cpu_count, "cpu-count")?,
                disk_size: part(raw.disk_size, "disk-size")?,
                disk_count: part(raw.disk_count, "disk-count")?,
                nic_count: part(raw.nic_count, "nic-count")?,
                spindle_use: part(raw.spindle_use, "spindle-use")?,
            })
        }))
    }
}
