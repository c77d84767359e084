//! Parses a message into a cluster and a request.

use std::collections::{HashMap, HashSet};

use cluster::{Group, GroupIdx, Instance, Node, NodeIdx, Policy};

use super::dialect::Dialect;
use super::error::{Owner, ProtocolError};
use super::groups::RawGroup;
use super::instances::{NodeNames, RawInstance};
use super::legacy;
use super::nodes::RawNode;
use super::reader::Reader;
use super::request::{RawRequest, Request};
use crate::data::ClusterData;
use crate::json::{Complaint, Cursor, Dict, Hashing, Hypervisor, Slot, Syntax, json_record};

/// A parsed message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub data: ClusterData,
    pub request: Request,
    pub dialect: Dialect,
}

json_record!(RawMessage<'t>, Complaint::Kind("JSObject"), {
    "cluster_tags" => cluster_tags: Vec<String>,
    "enabled_hypervisors" => enabled_hypervisors: Vec<Hypervisor>,
    "nodegroups" => nodegroups: Dict<'t, RawGroup<'t>>,
    "nodes" => nodes: Dict<'t, RawNode<'t>>,
    "instances" => instances: Dict<'t, RawInstance<'t>>,
    "request" => request: RawRequest<'t>,
});

/// The reference's error for a text that is neither an object nor a list.
const NO_DOCUMENT: &str = "Invalid JSON: a JSON text a serialized object or array at the top level.";

/// Parses a message. Names in the request are resolved; no figures are derived yet.
pub fn parse(json: &[u8]) -> Result<Message, ProtocolError> {
    let text = std::str::from_utf8(json).map_err(|e| ProtocolError::Syntax(e.to_string()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with(['{', '[']) {
        return Err(ProtocolError::Syntax(NO_DOCUMENT.to_owned()));
    }
    let mut slot = read_whole(text).map_err(|e| ProtocolError::Syntax(e.describe(text)))?;
    let raw = slot.element().map_err(|complaint| ProtocolError::Syntax(complaint.to_string()))?;
    Reader { text, dialect: dialect_of(&raw) }.message(raw)
}

fn read_whole(text: &str) -> Result<Slot<RawMessage<'_>>, Syntax> {
    let mut cursor = Cursor::new(text);
    let slot = Slot::read(&mut cursor)?;
    cursor.end()?;
    Ok(slot)
}

fn dialect_of(raw: &RawMessage) -> Dialect {
    let multi_evacuate = matches!(&raw.request, Slot::Is(request) if request.is_multi_evacuate());
    if multi_evacuate || raw.nodegroups.is_absent() || has_only_what_version2_has(raw) {
        Dialect::Version2
    } else {
        Dialect::Current
    }
}

/// Whether there are groups and all have only a name and an allocation policy, and all nodes lack parameters.
/// Every group and node of a current message has more keys, so a message that lacks only some of them is an
/// invalid current message.
fn has_only_what_version2_has(raw: &RawMessage) -> bool {
    let (Slot::Is(groups), Slot::Is(nodes)) = (&raw.nodegroups, &raw.nodes) else { return false };
    let old_group = |slot: &Slot<RawGroup<'_>>| matches!(slot, Slot::Is(group) if group.is_of_version2());
    let old_node = |slot: &Slot<RawNode<'_>>| matches!(slot, Slot::Is(node) if node.is_of_version2());
    !groups.0.is_empty()
        && groups.0.iter().all(|(_, slot)| old_group(slot))
        && nodes.0.iter().all(|(_, slot)| old_node(slot))
}

impl Reader<'_> {
    fn message(self, mut raw: RawMessage<'_>) -> Result<Message, ProtocolError> {
        // In the reference's order, so that the same error comes first.
        let top = |flaw| self.error(flaw, Owner::Message, "", &[]);
        let request = raw.request.required("request").map_err(top)?;
        let groups = match (self.dialect, raw.nodegroups) {
            (Dialect::Version2, Slot::Absent) => vec![legacy::group()],
            (_, mut slot) => self.groups(slot.required("nodegroups").map_err(top)?)?,
        };
        let mut nodes = self.nodes(raw.nodes.required("nodes").map_err(top)?, &groups)?;
        let raw_instances = raw.instances.required("instances").map_err(top)?;
        if self.dialect == Dialect::Version2 && groups.len() == 1 {
            add_unlisted(&mut nodes, &raw_instances);
        }
        let instances = self.instances(raw_instances, &nodes)?;
        let tags = raw.cluster_tags.required("cluster_tags").map_err(top)?;
        // Later versions added KVM's own memory, and the option that overrides it.
        if self.dialect == Dialect::Current {
            let hypervisors = raw.enabled_hypervisors.required("enabled_hypervisors").map_err(top)?;
            let kvm = hypervisors.first().is_some_and(|hypervisor| hypervisor.kvm);
            for node in &mut nodes {
                node.kvm = kvm;
            }
        }
        let data = ClusterData { groups, nodes, instances, tags, policy: Policy::default() };
        let request = self.request(request, &data)?;
        Ok(Message { data, request, dialect: self.dialect })
    }

    fn groups(self, dict: Dict<'_, RawGroup<'_>>) -> Result<Vec<Group>, ProtocolError> {
        let mut groups = Vec::with_capacity(dict.0.len());
        for (position, (uuid, mut slot)) in dict.0.into_iter().enumerate() {
            let group = match slot.element() {
                Ok(mut raw) => raw.finish(uuid.clone().into_owned(), self.dialect),
                Err(complaint) => Err(complaint.into()),
            };
            groups
                .push(group.map_err(|f| self.entry_error(f, Owner::Group, "nodegroups", (position, &uuid)))?);
        }
        Ok(groups)
    }

    fn nodes(self, mut dict: Dict<'_, RawNode<'_>>, groups: &[Group]) -> Result<Vec<Node>, ProtocolError> {
        let by_uuid: HashMap<&str, GroupIdx, Hashing> =
            groups.iter().enumerate().map(|(i, g)| (g.uuid.as_str(), GroupIdx::from_usize(i))).collect();
        let mut nodes = Vec::with_capacity(dict.0.len());
        for (position, (name, slot)) in dict.0.iter_mut().enumerate() {
            let wrong = |flaw| self.entry_error(flaw, Owner::Node, "nodes", (position, name));
            let Slot::Is(raw) = slot else {
                return Err(wrong(slot.complaint().into()));
            };
            // All nodes are in the implied group, even if they name another.
            let implied = self.dialect == Dialect::Version2
                && groups.len() == 1
                && (raw.group.is_absent() || groups[0].uuid == legacy::GROUP_UUID);
            let flags = raw.flags(self.dialect, implied).map_err(wrong)?;
            let group = match &flags.group {
                None => GroupIdx(0),
                Some(uuid) => {
                    by_uuid.get(uuid.as_ref()).copied().ok_or_else(|| ProtocolError::UnknownGroup {
                        group: uuid.clone().into_owned(),
                        node: name.clone().into_owned(),
                    })?
                }
            };
            let node = raw.finish(name.clone().into_owned(), group, &flags, self.dialect).map_err(wrong)?;
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn instances(
        self,
        mut dict: Dict<'_, RawInstance<'_>>,
        nodes: &[Node],
    ) -> Result<Vec<Instance>, ProtocolError> {
        // If nodes have the same name, the last one wins.
        let by_name: HashMap<&str, NodeIdx, Hashing> =
            nodes.iter().enumerate().map(|(i, n)| (n.name.as_str(), NodeIdx::from_usize(i))).collect();
        let mut instances = Vec::with_capacity(dict.0.len());
        for (position, (name, slot)) in dict.0.iter_mut().enumerate() {
            let wrong = |flaw| self.entry_error(flaw, Owner::Instance, "instances", (position, name));
            let find = |node: &str| {
                by_name.get(node).copied().ok_or_else(|| ProtocolError::UnknownNode {
                    node: node.to_owned(),
                    instance: name.clone().into_owned(),
                })
            };
            let Slot::Is(raw) = slot else {
                return Err(wrong(slot.complaint().into()));
            };
            let mut instance = raw.finish(name.clone().into_owned(), self.dialect).map_err(wrong)?;
            let NodeNames { primary, secondary } =
                raw.nodes.required("nodes").map_err(|flaw| wrong(flaw.unnamed()))?;
            let primary = primary.ok_or_else(|| ProtocolError::NoNodes(name.clone().into_owned()))?;
            instance.primary = find(&primary)?;
            instance.secondary = secondary.map(|node| find(&node)).transpose()?;
            instances.push(instance);
        }
        Ok(instances)
    }
}

/// Adds nodes that instances refer to but that are not listed.
///
/// The protocol's own example has such instances. Added without resources, these nodes keep the message
/// answerable.
fn add_unlisted(nodes: &mut Vec<Node>, instances: &Dict<'_, RawInstance<'_>>) {
    let mut missing = Vec::new();
    let mut seen: HashSet<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
    for (_, slot) in &instances.0 {
        if let Slot::Is(RawInstance { nodes: Slot::Is(names), .. }) = slot {
            for name in names.primary.iter().chain(&names.secondary) {
                if seen.insert(name) {
                    missing.push(legacy::unlisted(name, GroupIdx(0)));
                }
            }
        }
    }
    drop(seen);
    nodes.extend(missing);
}
