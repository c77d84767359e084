//! Requests to the allocator.

use std::borrow::Cow;

use cluster::{GroupIdx, Instance, InstanceIdx, LookupError, NodeIdx, common_suffix};

use super::dialect::Dialect;
use super::error::{Owner, ProtocolError};
use super::instances::RawInstance;
use super::reader::Reader;
use crate::data::ClusterData;
use crate::json::{Both, Complaint, Cursor, Flaw, Json, Read, Slot, Step, Syntax, json_record, record};

/// A request. Indices are positions in the message's [`ClusterData`].
#[derive(Clone, Debug, PartialEq)]
// A program handles one request, so its size doesn't matter.
#[allow(clippy::large_enum_variant)]
pub enum Request {
    /// Find nodes for a new instance.
    Allocate(AllocateRequest),
    /// Find nodes for several new instances.
    MultiAllocate {
        /// Instances without groups and restrictions of their own.
        instances: Vec<AllocateRequest>,
        /// Name or UUID of the only group to use. It's not resolved: an unknown group fails the request only
        /// when it's answered.
        group_name: Option<String>,
    },
    /// Find a new secondary for an instance or, with shared storage, a new primary.
    Relocate {
        instance: InstanceIdx,
        /// Number of nodes to find. Only 1 is supported.
        required_nodes: i64,
        /// Nodes that the instance leaves.
        relocate_from: Vec<NodeIdx>,
    },
    /// Move instances off their nodes within their groups.
    NodeEvacuate {
        /// Includes duplicates.
        instances: Vec<InstanceIdx>,
        mode: EvacuateMode,
    },
    /// Move instances to other groups.
    ChangeGroup {
        /// Includes duplicates.
        instances: Vec<InstanceIdx>,
        /// Empty for all groups except those of the instances.
        target_groups: Vec<GroupIdx>,
    },
    /// Find a secondary for an instance without one.
    AllocateSecondary { instance: InstanceIdx },
    /// Find a new secondary for every instance whose secondary is one of the nodes (protocol version 2 only).
    MultiEvacuate { nodes: Vec<NodeIdx> },
}

/// Request for one new instance.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocateRequest {
    /// The instance. Its primary is the placeholder `NodeIdx(0)`.
    pub instance: Instance,
    /// Number of nodes to find.
    pub required_nodes: i64,
    /// Name or UUID of the only group to use, not resolved.
    pub group_name: Option<String>,
    /// Full names of the only nodes to use; `None` for all.
    pub restrict_to_nodes: Option<Vec<String>>,
}

/// The nodes that an evacuated instance leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvacuateMode {
    PrimaryOnly,
    SecondaryOnly,
    /// Primary and secondary.
    All,
}

impl Json<'_> for EvacuateMode {
    fn unfit() -> Complaint {
        Complaint::NotWord("EvacMode")
    }

    fn from_text(text: Cow<'_, str>) -> Read<Self> {
        match text.as_ref() {
            "primary-only" => Ok(Self::PrimaryOnly),
            "secondary-only" => Ok(Self::SecondaryOnly),
            "all" => Ok(Self::All),
            _ => Err(Complaint::Word { kind: "EvacMode", word: text.into_owned() }),
        }
    }
}

json_record!(
    /// Keys of all types of requests, except those that describe an instance.
    RequestKeys<'t>, Complaint::Kind("JSObject"), {
        "type" => kind: Cow<'t, str>,
        "name" => name: Cow<'t, str>,
        "required_nodes" => required_nodes: i64,
        "relocate_from" => relocate_from: Vec<Cow<'t, str>>,
        "evac_mode" => evac_mode: EvacuateMode,
        "instances" => instances: Vec<Item<'t>>,
        "target_groups" => target_groups: Vec<Cow<'t, str>>,
        "group_name" => group_name: String,
        "restrict-to-nodes" => restrict_to_nodes: Vec<String>,
        "evac_nodes" => evac_nodes: Vec<Cow<'t, str>>,
        "nodes" => nodes: Vec<Cow<'t, str>>,
    }
);

/// A request as written in a message. Allocation requests also describe an instance.
#[derive(Debug)]
pub(super) struct RawRequest<'t>(Both<RequestKeys<'t>, RawInstance<'t>>);

impl<'t> Json<'t> for RawRequest<'t> {
    fn unfit() -> Complaint {
        Complaint::Kind("JSObject")
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        Ok(Ok(Self(record(cursor)?)))
    }
}

impl RawRequest<'_> {
    pub(super) fn is_multi_evacuate(&self) -> bool {
        matches!(&self.0.0.kind, Slot::Is(kind) if kind == "multi-evacuate")
    }
}

/// An element of a request's `instances`: a name, or a new instance.
#[derive(Debug)]
pub(super) enum Item<'t> {
    Name(Cow<'t, str>),
    New(Box<RawRequest<'t>>),
    Other,
}

impl<'t> Json<'t> for Item<'t> {
    fn unfit() -> Complaint {
        Complaint::Kind("String")
    }

    fn from_bool(_: bool) -> Read<Self> {
        Ok(Self::Other)
    }

    fn from_number(_: f64) -> Read<Self> {
        Ok(Self::Other)
    }

    fn from_text(text: Cow<'t, str>) -> Read<Self> {
        Ok(Self::Name(text))
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        Ok(RawRequest::from_object(cursor)?.map(|raw| Self::New(Box::new(raw))))
    }
}

impl Reader<'_> {
    pub(super) fn request(self, raw: RawRequest<'_>, data: &ClusterData) -> Result<Request, ProtocolError> {
        let Both(mut keys, shape) = raw.0;
        let steps = [Step::Key("request")];
        let wrong = |flaw| self.error(flaw, Owner::Request, "request", &steps);
        let kind = keys.kind.required("type").map_err(wrong)?;
        let lookup = Lookup::new(data, self.dialect);
        match kind.as_ref() {
            "allocate" => {
                let name = keys.name.required("name").map_err(wrong)?;
                let group = optional_name(keys.group_name).map_err(wrong)?;
                let nodes = keys.restrict_to_nodes.optional("restrict-to-nodes");
                let nodes = nodes.map_err(|flaw| wrong(flaw.unnamed()))?;
                let new = self.new_instance(Slot::Is(name), keys.required_nodes, shape, "request", &steps)?;
                Ok(Request::Allocate(AllocateRequest { group_name: group, restrict_to_nodes: nodes, ..new }))
            }
            "multi-allocate" => {
                let group_name = optional_name(keys.group_name).map_err(wrong)?;
                let items = keys.instances.required("instances").map_err(wrong)?;
                let instances = self.new_instances(items)?;
                Ok(Request::MultiAllocate { instances, group_name })
            }
            "relocate" => {
                let name = keys.name.required("name").map_err(wrong)?;
                let required_nodes = keys.required_nodes.required("required_nodes").map_err(wrong)?;
                let from = keys.relocate_from.required("relocate_from").map_err(wrong)?;
                Ok(Request::Relocate {
                    instance: lookup.exact_instance(&name)?,
                    required_nodes,
                    relocate_from: from.iter().map(|n| lookup.node(n)).collect::<Result<_, _>>()?,
                })
            }
            "node-evacuate" => {
                let names = names(keys.instances).map_err(wrong)?;
                let mode = keys.evac_mode.required("evac_mode").map_err(wrong)?;
                Ok(Request::NodeEvacuate { instances: lookup.instances(&names)?, mode })
            }
            "change-group" => {
                let names = names(keys.instances).map_err(wrong)?;
                let groups = keys.target_groups.required("target_groups").map_err(wrong)?;
                Ok(Request::ChangeGroup {
                    instances: lookup.instances(&names)?,
                    target_groups: groups.iter().map(|g| lookup.group(g)).collect::<Result<_, _>>()?,
                })
            }
            "allocate-secondary" => {
                let name = keys.name.required("name").map_err(wrong)?;
                Ok(Request::AllocateSecondary { instance: lookup.exact_instance(&name)? })
            }
            "multi-evacuate" => {
                // The protocol's text says `nodes`, but its example and programs use `evac_nodes`.
                let given = if keys.evac_nodes.is_absent() && !keys.nodes.is_absent() {
                    keys.nodes.required("nodes")
                } else {
                    keys.evac_nodes.required("evac_nodes")
                };
                let nodes = given.map_err(wrong)?;
                let nodes = nodes.iter().map(|n| lookup.node(n)).collect::<Result<_, _>>()?;
                Ok(Request::MultiEvacuate { nodes })
            }
            _ => Err(ProtocolError::RequestType(kind.into_owned())),
        }
    }

    fn new_instance(
        self,
        mut name: Slot<Cow<'_, str>>,
        mut required_nodes: Slot<i64>,
        mut shape: RawInstance<'_>,
        path: &str,
        steps: &[Step],
    ) -> Result<AllocateRequest, ProtocolError> {
        let wrong = |flaw| self.error(flaw, Owner::Request, path, steps);
        let name = name.required("name").map_err(wrong)?.into_owned();
        let required_nodes = required_nodes.required("required_nodes").map_err(wrong)?;
        let owner = || Owner::Instance(name.clone());
        let instance = shape
            .finish(name.clone(), self.dialect)
            .map_err(|flaw| self.error(flaw, owner(), path, steps))?;
        Ok(AllocateRequest { instance, required_nodes, group_name: None, restrict_to_nodes: None })
    }

    fn new_instances(self, items: Vec<Item<'_>>) -> Result<Vec<AllocateRequest>, ProtocolError> {
        let mut instances = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let Item::New(raw) = item else {
                let inner = Box::new(Complaint::Kind("JSObject"));
                let complaint = Complaint::field("instances", Complaint::Element { index, inner });
                return Err(self.error(complaint.into(), Owner::Request, "request", &[]));
            };
            let Both(keys, shape) = raw.0;
            let steps = [Step::Key("request"), Step::Key("instances"), Step::At(index)];
            let path = format!("request/instances/{index}");
            instances.push(self.new_instance(keys.name, keys.required_nodes, shape, &path, &steps)?);
        }
        Ok(instances)
    }
}

fn optional_name(mut slot: Slot<String>) -> Result<Option<String>, Flaw> {
    slot.optional("group_name").map_err(Flaw::unnamed)
}

fn names(mut slot: Slot<Vec<Item<'_>>>) -> Result<Vec<Cow<'_, str>>, Flaw> {
    let items = slot.required("instances")?;
    let mut names = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        if let Item::Name(name) = item {
            names.push(name);
        } else {
            let inner = Box::new(Complaint::Kind("String"));
            return Err(Complaint::field("instances", Complaint::Element { index, inner }).into());
        }
    }
    Ok(names)
}

/// Resolves names in a request.
struct Lookup<'d> {
    data: &'d ClusterData,
    dialect: Dialect,
    suffix: &'d str,
}

impl<'d> Lookup<'d> {
    fn new(data: &'d ClusterData, dialect: Dialect) -> Self {
        let nodes = data.nodes.iter().map(|n| n.name.as_str());
        let instances = data.instances.iter().map(|i| i.name.as_str());
        Self { data, dialect, suffix: common_suffix(nodes.chain(instances)) }
    }

    /// The instance with this full name. If there are several, the last one wins.
    fn exact_instance(&self, name: &str) -> Result<InstanceIdx, ProtocolError> {
        self.data
            .instances
            .iter()
            .rposition(|i| i.name == name)
            .map(InstanceIdx::from_usize)
            .ok_or_else(|| ProtocolError::UnknownInstance(name.to_owned()))
    }

    /// Instances with these names or aliases.
    fn instances(&self, names: &[Cow<'_, str>]) -> Result<Vec<InstanceIdx>, LookupError> {
        let find = |name: &Cow<'_, str>| {
            only(self.data.instances.iter().map(|i| self.is(&i.name, name)))
                .map(InstanceIdx::from_usize)
                .ok_or_else(|| LookupError(name.clone().into_owned()))
        };
        names.iter().map(find).collect()
    }

    /// The node with this name or alias. Version 2 prefers full names to aliases, and also accepts a leading
    /// part of the name that ends before a dot.
    fn node(&self, wanted: &str) -> Result<NodeIdx, LookupError> {
        let names = || self.data.nodes.iter().map(|n| n.name.as_str());
        let found = match self.dialect {
            Dialect::Current => only(names().map(|n| self.is(n, wanted))),
            Dialect::Version2 => only(names().map(|n| n == wanted))
                .or_else(|| only(names().map(|n| self.is(n, wanted))))
                .or_else(|| {
                    let continues = |rest: &str| rest.starts_with('.');
                    only(names().map(|n| n.strip_prefix(wanted).is_some_and(continues)))
                }),
        };
        found.map(NodeIdx::from_usize).ok_or_else(|| LookupError(wanted.to_owned()))
    }

    /// The group with this name or UUID.
    fn group(&self, wanted: &str) -> Result<GroupIdx, LookupError> {
        only(self.data.groups.iter().map(|g| g.name == wanted || g.uuid == wanted))
            .map(GroupIdx::from_usize)
            .ok_or_else(|| LookupError(wanted.to_owned()))
    }

    /// Whether `wanted` is `name` or its alias.
    fn is(&self, name: &str, wanted: &str) -> bool {
        name == wanted || name.strip_suffix(self.suffix) == Some(wanted)
    }
}

/// Position of the only hit; `None` unless there is exactly one.
fn only(hits: impl Iterator<Item = bool>) -> Option<usize> {
    let mut hits = hits.enumerate().filter_map(|(position, hit)| hit.then_some(position));
    match (hits.next(), hits.next()) {
        (Some(position), None) => Some(position),
        _ => None,
    }
}
