//! Existing and requested instances, whose descriptions have the same keys.

use std::borrow::Cow;

use cluster::{Disk, DiskTemplate, Instance, InstanceStatus, NodeIdx};

use super::dialect::Dialect;
use crate::json::{Complaint, Cursor, Flaw, Json, Read, Syntax, each, json_record, record};

json_record!(
    /// An instance as written in a message.
    RawInstance<'t>, Complaint::NotObject, {
        "nodes" => nodes: NodeNames<'t>,
        "memory" => memory: i64,
        "vcpus" => vcpus: i64,
        "disk_space_total" => disk_space_total: i64,
        "disks" => disks: Disks,
        "disk_template" => disk_template: DiskTemplate,
        "tags" => tags: Vec<String>,
        "spindle_use" => spindle_use: i64,
        "nics" => nics: Networks,
        "admin_state" => admin_state: AdminState,
        "admin_up" => admin_up: bool,
        "should_run" => should_run: bool,
        "forthcoming" => forthcoming: bool,
    }
);

/// Primary and secondary of an instance. Any further nodes are ignored.
#[derive(Debug, Default)]
pub(super) struct NodeNames<'t> {
    pub(super) primary: Option<Cow<'t, str>>,
    pub(super) secondary: Option<Cow<'t, str>>,
}

impl<'t> Json<'t> for NodeNames<'t> {
    fn unfit() -> Complaint {
        Complaint::Kind("list")
    }

    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut names = Self::default();
        let read = each(cursor, |name| {
            if names.primary.is_none() {
                names.primary = Some(name);
            } else if names.secondary.is_none() {
                names.secondary = Some(name);
            }
        })?;
        Ok(match read {
            Ok(()) => Ok(names),
            Err(Complaint::Element { index, .. }) => {
                Err(Complaint::Element { index, inner: Box::new(Complaint::NotName) })
            }
            Err(other) => Err(other),
        })
    }
}

#[derive(Debug)]
pub(super) struct Disks(Vec<Disk>);

json_record!(RawDisk, Complaint::NotObject, {
    "size" => size: i64,
    "spindles" => spindles: i64,
});

impl<'t> Json<'t> for Disk {
    fn unfit() -> Complaint {
        Complaint::NotObject
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut raw: RawDisk = record(cursor)?;
        let mut read = || {
            let size = raw.size.required("size")?;
            Ok(Self { size, spindles: raw.spindles.optional("spindles")? })
        };
        Ok(read().map_err(|flaw: Flaw| flaw.complaint))
    }
}

impl<'t> Json<'t> for Disks {
    fn unfit() -> Complaint {
        Complaint::not_array()
    }

    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut disks = Vec::new();
        Ok(each(cursor, |disk| {
            // Most instances have one disk, and a message can have very many instances.
            if disks.is_empty() {
                disks.reserve_exact(1);
            }
            disks.push(disk);
        })?
        .map(|()| Self(disks)))
    }
}

/// Networks of an instance's interfaces. The interfaces' other values are ignored.
#[derive(Debug)]
pub(super) struct Networks(Vec<String>);

json_record!(RawInterface<'t>, Complaint::NotObject, {
    "mac" => mac: Ignored,
    "ip" => ip: Ignored,
    "mode" => mode: Mode,
    "link" => link: Ignored,
    "bridge" => bridge: Ignored,
    "network" => network: Cow<'t, str>,
});

/// A string whose value is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ignored;

impl<'t> Json<'t> for Ignored {
    fn unfit() -> Complaint {
        Complaint::Kind("String")
    }

    fn from_text(_: Cow<'t, str>) -> Read<Self> {
        Ok(Self)
    }
}

/// A valid mode of an interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode;

impl<'t> Json<'t> for Mode {
    fn unfit() -> Complaint {
        Complaint::Kind("String")
    }

    fn from_text(text: Cow<'t, str>) -> Read<Self> {
        match text.as_ref() {
            "bridged" | "routed" | "openvswitch" => Ok(Self),
            _ => Err(Complaint::NicMode),
        }
    }
}

/// Removes the key from a complaint about an unknown mode.
fn unknown_mode(flaw: Flaw) -> Flaw {
    match flaw.complaint {
        Complaint::Field { inner, .. } if *inner == Complaint::NicMode => (*inner).into(),
        complaint => complaint.into(),
    }
}

struct Interface {
    network: Option<String>,
}

impl Interface {
    fn from_raw(mut raw: RawInterface<'_>) -> Result<Self, Flaw> {
        raw.mac.optional("mac")?;
        raw.ip.optional("ip")?;
        raw.link.optional("link")?;
        raw.bridge.optional("bridge")?;
        let network = raw.network.optional("network")?.map(Cow::into_owned);
        raw.mode.optional("mode").map_err(unknown_mode)?;
        Ok(Self { network })
    }
}

impl<'t> Json<'t> for Interface {
    fn unfit() -> Complaint {
        Complaint::NotObject
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let raw: RawInterface<'t> = record(cursor)?;
        Ok(Self::from_raw(raw).map_err(|flaw| flaw.complaint))
    }
}

impl<'t> Json<'t> for Networks {
    fn unfit() -> Complaint {
        Complaint::not_array()
    }

    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut networks = Vec::new();
        let read = each(cursor, |interface: Interface| networks.extend(interface.network))?;
        Ok(read.map(|()| Self(networks)))
    }
}

/// Intended state of an instance. Unknown states mean that it should run.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdminState(InstanceStatus);

impl<'t> Json<'t> for AdminState {
    fn unfit() -> Complaint {
        Complaint::NotWord("AdminState")
    }

    fn from_text(text: Cow<'t, str>) -> Read<Self> {
        Ok(Self(match text.as_ref() {
            "down" => InstanceStatus::AdminDown,
            "offline" => InstanceStatus::AdminOffline,
            _ => InstanceStatus::Running,
        }))
    }
}

impl RawInstance<'_> {
    /// Builds the instance with this name. Its primary is a placeholder.
    pub(super) fn finish(&mut self, name: String, dialect: Dialect) -> Result<Instance, Flaw> {
        let space = match dialect {
            Dialect::Current => Some(self.disk_space_total.required("disk_space_total")?),
            Dialect::Version2 => self.disk_space_total.optional("disk_space_total")?,
        };
        let disks = self.disks.required("disks")?.0;
        let memory = self.memory.required("memory")?;
        let vcpus = self.vcpus.required("vcpus")?;
        let tags = match dialect {
            Dialect::Current => self.tags.required("tags")?,
            Dialect::Version2 => self.tags.optional("tags")?.unwrap_or_default(),
        };
        let template = self.disk_template.required("disk_template")?;
        let disk = space.unwrap_or_else(|| disks.iter().map(|disk| disk.size).sum());
        let mut instance =
            Instance { memory, vcpus, disks, disk, tags, ..Instance::new(name, template, NodeIdx(0)) };
        let running = self.admin_state.lenient().map(|state| state.0);
        if dialect == Dialect::Current {
            instance.spindle_use = self.spindle_use.required("spindle_use")?;
            instance.networks = self.nics.required("nics")?.0;
            instance.status = running.unwrap_or(InstanceStatus::Running);
        } else {
            instance.spindle_use = self.spindle_use.optional("spindle_use")?.unwrap_or(1);
            instance.networks = self.nics.optional("nics")?.map_or_else(Vec::new, |nics| nics.0);
            let should_run = self.admin_up.lenient().or(self.should_run.lenient()).unwrap_or(true);
            let assumed = if should_run { InstanceStatus::Running } else { InstanceStatus::AdminDown };
            instance.status = running.unwrap_or(assumed);
        }
        instance.forthcoming = self.forthcoming.lenient().unwrap_or(false);
        Ok(instance)
    }
}
