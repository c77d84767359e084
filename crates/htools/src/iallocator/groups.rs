//! Node groups and their policies.

use std::borrow::Cow;

use cluster::{AllocPolicy, DiskTemplate, Group, ISpec, MinMax, Policy};

use super::Dialect;
use super::cursor::{Cursor, Syntax};
use super::error::{Complaint, Flaw};
use super::json::{Json, Read, Record, Slot, json_record};
use super::legacy;

json_record!(
    /// A group as it is written.
    RawGroup<'t>, Complaint::NotObject, {
        "name" => name: Cow<'t, str>,
        "alloc_policy" => alloc_policy: AllocPolicy,
        "networks" => networks: Vec<String>,
        "ipolicy" => ipolicy: Policy,
        "tags" => tags: Vec<String>,
    }
);

impl RawGroup<'_> {
    /// The group of that UUID.
    pub(super) fn finish(&mut self, uuid: String, dialect: Dialect) -> Result<Group, Flaw> {
        let name = self.name.required("name")?.into_owned();
        let alloc_policy = self.alloc_policy.required("alloc_policy")?;
        let (networks, tags, policy) = match dialect {
            Dialect::Current => (
                self.networks.required("networks")?,
                self.tags.required("tags")?,
                self.ipolicy.required("ipolicy")?,
            ),
            Dialect::Version2 => (
                self.networks.optional("networks")?.unwrap_or_default(),
                self.tags.optional("tags")?.unwrap_or_default(),
                self.ipolicy.optional("ipolicy")?.unwrap_or_else(legacy::policy),
            ),
        };
        Ok(Group { name, uuid, alloc_policy, tags, networks, policy })
    }
}

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

/// Reads an object that must hold no other keys than its record's.
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

/// The value of a key within a policy.
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
