//! Parsing of the four documents that describe a cluster.

use std::borrow::Cow;
use std::fmt;

use cluster::{AllocPolicy, DiskTemplate, Group, Instance, InstanceStatus, Node, NodeIdx, Policy};
use thiserror::Error;

use crate::data::ClusterData;
use crate::json::{
    Complaint, Cursor, Flaw, Hypervisor, Json, Read, Slot, Step, Syntax, complete, document, json_record,
};
use crate::live::{self, DanglingName, Groups, Info, Nodes};

/// Group of nodes without a group.
const NO_GROUP: &str = "00000000-0000-0000-0000-000000000000";

/// Documents as received.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// `/2/groups?bulk=1`
    pub groups: Vec<u8>,
    /// `/2/nodes?bulk=1`
    pub nodes: Vec<u8>,
    /// `/2/instances?bulk=1`
    pub instances: Vec<u8>,
    /// `/2/info`
    pub info: Vec<u8>,
}

/// Error in a document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// A document isn't JSON, or not of the expected type.
    #[error("Parsing {kind}: {reason}")]
    Document { kind: &'static str, reason: String },
    /// A value is missing or invalid.
    #[error("{owner}{}", complaint.printed())]
    Value { owner: Owner, complaint: Complaint },
    /// A name refers to no record.
    #[error(transparent)]
    Name(#[from] DanglingName),
}

/// The owner of an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A group, node or instance whose name cannot be read.
    New(&'static str),
    /// A group, by name.
    Group(String),
    /// A node, by name.
    Node(String),
    /// An instance, by name.
    Instance(String),
    Cluster,
    /// Omitted from the text, like in the reference.
    Unnamed,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(kind) => write!(f, "Parsing new {kind}: "),
            Self::Group(name) => write!(f, "Group '{name}': "),
            Self::Node(name) => write!(f, "Node '{name}', error while parsing data: "),
            Self::Instance(name) => write!(f, "Instance '{name}', error while parsing data: "),
            Self::Cluster => f.write_str("Parsing cluster data: "),
            Self::Unnamed => Ok(()),
        }
    }
}

json_record!(
    /// A group as written. Its networks are ignored, like in the reference.
    RawGroup<'t>, Complaint::Kind("JSObject"), {
        "name" => name: Cow<'t, str>,
        "uuid" => uuid: Cow<'t, str>,
        "alloc_policy" => alloc_policy: AllocPolicy,
        "ipolicy" => ipolicy: Policy,
        "tags" => tags: Vec<String>,
    }
);

json_record!(
    /// A node as written.
    RawNode<'t>, Complaint::Kind("JSObject"), {
        "name" => name: Cow<'t, str>,
        "offline" => offline: bool,
        "drained" => drained: bool,
        "vm_capable" => vm_capable: bool,
        "ndparams" => ndparams: RawParameters,
        "tags" => tags: Vec<String>,
        "group.uuid" => group: Cow<'t, str>,
        "mtotal" => total_memory: f64,
        "mnode" => node_memory: i64,
        "mfree" => free_memory: i64,
        "dtotal" => total_disk: f64,
        "dfree" => free_disk: i64,
        "ctotal" => total_cpus: f64,
        "cnos" => node_cpus: i64,
        "sptotal" => total_spindles: i64,
        "spfree" => free_spindles: i64,
    }
);

json_record!(
    /// A node's parameters as written.
    RawParameters, Complaint::NotObject, {
        "exclusive_storage" => exclusive_storage: bool,
        "spindle_count" => spindle_count: i64,
    }
);

json_record!(
    /// An instance as written.
    RawInstance<'t>, Complaint::Kind("JSObject"), {
        "name" => name: Cow<'t, str>,
        "disk_usage" => disk_usage: i64,
        "disk.sizes" => disk_sizes: Vec<i64>,
        "disk.spindles" => disk_spindles: Spindles,
        "beparams" => beparams: RawBackend,
        "oper_ram" => memory_in_use: i64,
        "pnode" => primary: Cow<'t, str>,
        "snodes" => secondaries: First<'t>,
        "status" => status: InstanceStatus,
        "tags" => tags: Vec<String>,
        "disk_template" => disk_template: DiskTemplate,
        "forthcoming" => forthcoming: bool,
    }
);

json_record!(
    /// An instance's backend parameters as written.
    RawBackend, Complaint::Kind("JSObject"), {
        "vcpus" => vcpus: i64,
        "auto_balance" => auto_balance: bool,
        "spindle_use" => spindle_use: i64,
        "memory" => memory: i64,
        "maxmem" => most_memory: i64,
    }
);

json_record!(
    /// Cluster-wide information as written.
    RawInfo<'t>, Complaint::Kind("JSObject"), {
        "master" => master: Cow<'t, str>,
        "tags" => tags: Vec<String>,
        "ipolicy" => ipolicy: Policy,
        "default_hypervisor" => default_hypervisor: Hypervisor,
    }
);

/// Spindles of each disk; `None` if unknown.
#[derive(Debug)]
pub(super) struct Spindles(Vec<Option<i64>>);

/// The first element of a list of names.
#[derive(Debug)]
pub(super) struct First<'t>(Option<Cow<'t, str>>);

impl<'t> Json<'t> for Spindles {
    fn unfit() -> Complaint {
        Complaint::Kind("list")
    }

    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut spindles = Vec::new();
        let mut read = Ok(());
        cursor.list(|cursor| {
            match Slot::<i64>::read(cursor)? {
                Slot::Is(count) => spindles.push(Some(count)),
                Slot::Null => spindles.push(None),
                mut other => read = Err(other.complaint()),
            }
            Ok(())
        })?;
        Ok(read.map(|()| Self(spindles)))
    }
}

impl<'t> Json<'t> for First<'t> {
    fn unfit() -> Complaint {
        Complaint::Kind("list")
    }

    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut first = None;
        let mut wrong = false;
        cursor.list(|cursor| {
            if first.is_some() || wrong {
                return cursor.skip();
            }
            match Slot::<Cow<'t, str>>::read(cursor)?.element() {
                Ok(name) => first = Some(name),
                Err(_) => wrong = true,
            }
            Ok(())
        })?;
        Ok(if wrong { Err(Complaint::NotName) } else { Ok(Self(first)) })
    }
}

/// Location of a record, for errors in its values.
struct Place<'t> {
    text: &'t str,
    /// Steps from the document to the record.
    steps: Vec<Step>,
}

impl Place<'_> {
    fn error(&self, owner: Owner, flaw: Flaw) -> DocumentError {
        let Flaw { unnamed, mut complaint } = flaw;
        complete(&mut complaint, self.text, &mut self.steps.clone());
        let owner = if unnamed { Owner::Unnamed } else { owner };
        DocumentError::Value { owner, complaint }
    }
}

fn parse<'t, T: Json<'t>>(kind: &'static str, text: &'t str) -> Result<T, DocumentError> {
    let slot: Result<Slot<T>, String> = document(text);
    let read = slot.and_then(|mut slot| slot.element().map_err(|complaint| complaint.to_string()));
    read.map_err(|reason| DocumentError::Document { kind, reason })
}

fn text<'b>(kind: &'static str, bytes: &'b [u8]) -> Result<&'b str, DocumentError> {
    std::str::from_utf8(bytes)
        .map_err(|error| DocumentError::Document { kind, reason: format!("not UTF-8: {error}") })
}

/// Parses a document that is a list. `read` converts a record and uses the place for errors.
fn records<'b, R: Json<'b>, T>(
    kind: &'static str,
    bytes: &'b [u8],
    mut read: impl FnMut(R, &Place<'b>) -> Result<T, DocumentError>,
) -> Result<Vec<T>, DocumentError> {
    let text = text(kind, bytes)?;
    let raw: Vec<R> = parse(kind, text)?;
    let read = |(at, raw)| read(raw, &Place { text, steps: vec![Step::At(at)] });
    raw.into_iter().enumerate().map(read).collect()
}

impl Documents {
    /// Builds the cluster from the documents.
    pub fn load(&self) -> Result<ClusterData, DocumentError> {
        let groups = self.groups()?;
        let nodes = self.nodes(&Groups::new(&groups))?;
        let instances = self.instances(&Nodes::new(&nodes))?;
        Ok(live::assemble(groups, nodes, instances, self.info()?)?)
    }

    fn groups(&self) -> Result<Vec<Group>, DocumentError> {
        records("group data", &self.groups, |mut raw: RawGroup<'_>, place| {
            let name = raw.name.required("name").map_err(|f| place.error(Owner::New("group"), f))?;
            let group = raw.finish(name.into_owned());
            group.map_err(|(name, flaw)| place.error(Owner::Group(name), flaw))
        })
    }

    fn nodes(&self, groups: &Groups) -> Result<Vec<Node>, DocumentError> {
        records("node data", &self.nodes, |mut raw: RawNode<'_>, place| {
            let name = raw.name.required("name").map_err(|f| place.error(Owner::New("node"), f))?;
            let wrong = |flaw| place.error(Owner::Node(name.clone().into_owned()), flaw);
            let uuid = raw.group.optional("group.uuid").map_err(|f| wrong(f.unnamed()))?;
            let group = groups.of(&name, uuid.as_deref().unwrap_or(NO_GROUP))?;
            let node = Node::new(name.clone(), group);
            raw.finish(node).map_err(wrong)
        })
    }

    fn instances(&self, nodes: &Nodes) -> Result<Vec<Instance>, DocumentError> {
        records("instance data", &self.instances, |mut raw: RawInstance<'_>, place| {
            let name = raw.name.required("name").map_err(|f| place.error(Owner::New("instance"), f))?;
            let wrong = |flaw| place.error(Owner::Instance(name.clone().into_owned()), flaw);
            let primary = nodes.of(&name, &raw.primary.required("pnode").map_err(wrong)?)?;
            let First(secondary) = raw.secondaries.required("snodes").map_err(wrong)?;
            let secondary = secondary.map(|node| nodes.of(&name, &node)).transpose()?;
            let mut instance = raw.finish(name.clone().into_owned(), primary).map_err(wrong)?;
            instance.secondary = secondary;
            Ok(instance)
        })
    }

    fn info(&self) -> Result<Info, DocumentError> {
        let text = text("cluster info", &self.info)?;
        let mut raw: RawInfo<'_> = parse("cluster info", text)?;
        let place = Place { text, steps: Vec::new() };
        raw.finish().map_err(|flaw| place.error(Owner::Cluster, flaw))
    }
}

impl RawGroup<'_> {
    fn finish(&mut self, name: String) -> Result<Group, (String, Flaw)> {
        let read = (|| {
            Ok((
                self.uuid.required("uuid")?.into_owned(),
                self.alloc_policy.required("alloc_policy")?,
                self.ipolicy.required("ipolicy")?,
                self.tags.required("tags")?,
            ))
        })();
        match read {
            Ok((uuid, alloc_policy, policy, tags)) => {
                Ok(Group { name, uuid, alloc_policy, tags, networks: Vec::new(), policy })
            }
            Err(flaw) => Err((name, flaw)),
        }
    }
}

impl RawNode<'_> {
    /// Completes a node that has only a name and a group. Nodes that cannot run instances can omit their
    /// resources, and any that they report are ignored.
    fn finish(&mut self, mut node: Node) -> Result<Node, Flaw> {
        let offline = self.offline.required("offline")?;
        let drained = self.drained.required("drained")?;
        let vm_capable = self.vm_capable.optional("vm_capable")?.unwrap_or(true);
        let mut parameters = self.ndparams.required("ndparams")?;
        let within = |flaw: Flaw| Flaw::from(Complaint::field("ndparams", flaw.complaint));
        node.exclusive_storage =
            parameters.exclusive_storage.required("exclusive_storage").map_err(within)?;
        node.tags = self.tags.required("tags")?;
        let live = !offline && vm_capable;
        node.set_flags(offline, drained, vm_capable);
        node.node_cpus = 0;
        if live {
            node.total_memory = self.total_memory.required("mtotal")?;
            node.node_memory = self.node_memory.required("mnode")?;
            node.reported_free_memory = self.free_memory.required("mfree")?;
            node.total_cpus = self.total_cpus.required("ctotal")?;
            node.node_cpus = self.node_cpus.required("cnos")?;
            node.total_disk = self.total_disk.optional("dtotal").map_err(Flaw::unnamed)?.unwrap_or(0.0);
            node.reported_free_disk = self.free_disk.optional("dfree").map_err(Flaw::unnamed)?.unwrap_or(0);
            node.reported_free_spindles =
                self.free_spindles.optional("spfree").map_err(Flaw::unnamed)?.unwrap_or(0);
        }
        node.total_spindles = match (node.exclusive_storage, live) {
            (false, _) => parameters.spindle_count.required("spindle_count").map_err(within)?,
            (true, true) => self.total_spindles.required("sptotal")?,
            (true, false) => 0,
        };
        Ok(node)
    }
}

impl RawInstance<'_> {
    fn finish(&mut self, name: String, primary: NodeIdx) -> Result<Instance, Flaw> {
        let within = |flaw: Flaw| Flaw::from(Complaint::field("beparams", flaw.complaint));
        let template = self.disk_template.required("disk_template")?;
        let mut instance = Instance::new(name, template, primary);
        instance.disk = self.disk_usage.required("disk_usage")?;
        let sizes = self.disk_sizes.required("disk.sizes")?;
        let Spindles(spindles) = self.disk_spindles.required("disk.spindles")?;
        instance.disks = live::disks(sizes, spindles);
        let mut backend = self.beparams.required("beparams")?;
        if self.memory_in_use.is_absent() {
            return Err(Complaint::missing("oper_ram").into());
        }
        instance.memory = match self.memory_in_use.lenient().or_else(|| backend.memory.lenient()) {
            Some(memory) => memory,
            None => backend.most_memory.required("maxmem").map_err(within)?,
        };
        instance.vcpus = backend.vcpus.required("vcpus").map_err(within)?;
        instance.auto_balance = backend.auto_balance.required("auto_balance").map_err(within)?;
        instance.spindle_use = backend.spindle_use.required("spindle_use").map_err(within)?;
        instance.status = self.status.required("status")?;
        instance.tags = self.tags.required("tags")?;
        instance.forthcoming = self.forthcoming.lenient().unwrap_or(false);
        Ok(instance)
    }
}

impl RawInfo<'_> {
    fn finish(&mut self) -> Result<Info, Flaw> {
        Ok(Info {
            master: self.master.required("master")?.into_owned(),
            tags: self.tags.required("tags")?,
            policy: self.ipolicy.required("ipolicy")?,
            kvm: self.default_hypervisor.required("default_hypervisor")?.kvm,
        })
    }
}
