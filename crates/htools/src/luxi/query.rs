//! Queries to the master daemon that read a cluster, and the parsing of their answers.

use std::fmt;

use cluster::{Group, Instance, Node, NodeIdx, Policy};
use serde_json::{Value, json};
use thiserror::Error;

use super::client::{Client, LuxiError};
use crate::data::ClusterData;
use crate::json::{Complaint, Hypervisor, Json, from_value};
use crate::live::{self, DanglingName, Groups, Info, Nodes};

const NODE_FIELDS: [&str; 18] = [
    "name",
    "mtotal",
    "mnode",
    "mfree",
    "dtotal",
    "dfree",
    "ctotal",
    "cnos",
    "offline",
    "drained",
    "vm_capable",
    "ndp/spindle_count",
    "group.uuid",
    "tags",
    "ndp/exclusive_storage",
    "sptotal",
    "spfree",
    "ndp/cpu_speed",
];

const INSTANCE_FIELDS: [&str; 14] = [
    "name",
    "disk_usage",
    "be/memory",
    "be/vcpus",
    "status",
    "pnode",
    "snodes",
    "tags",
    "be/auto_balance",
    "disk_template",
    "be/spindle_use",
    "disk.sizes",
    "disk.spindles",
    "forthcoming",
];

const GROUP_FIELDS: [&str; 5] = ["uuid", "name", "alloc_policy", "ipolicy", "tags"];

/// Error while reading a cluster.
#[derive(Debug, Error)]
pub enum QueryError {
    #[error(transparent)]
    Luxi(#[from] LuxiError),
    /// An answer doesn't have the expected form.
    #[error("{0}")]
    Form(String),
    /// A value is unavailable or invalid.
    #[error("{owner}{cause}")]
    Cell { owner: Owner, cause: Box<CellError> },
    /// A name refers to no record.
    #[error(transparent)]
    Name(#[from] DanglingName),
}

/// The owner of an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A group, node or instance whose name cannot be read.
    New(&'static str),
    /// An attribute of a named record.
    Attribute {
        /// `Node`, `Group` or `Instance`.
        kind: &'static str,
        name: String,
        attribute: &'static str,
    },
    Cluster,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(kind) => write!(f, "Parsing new {kind}: "),
            Self::Attribute { kind, name, attribute } => {
                write!(f, "{kind} '{name}', error while reading attribute '{attribute}': ")
            }
            Self::Cluster => f.write_str("Parsing cluster info: "),
        }
    }
}

/// Error in a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CellError {
    /// The daemon does not know the field.
    #[error("Unknown field")]
    UnknownField,
    /// The field has no value for this record.
    #[error("No data for a field")]
    NoData,
    /// The daemon could not determine the value.
    #[error("Ganeti reports unavailable data")]
    Unavailable,
    /// The daemon did not query the value because the node is offline.
    #[error("Ganeti reports resource as offline")]
    Offline,
    /// Undefined status.
    #[error("Cannot convert value '{0}', error: Invalid string value for type ResultStatus: {0}")]
    Status(String),
    /// The value has the wrong type.
    #[error("Cannot convert value '{value}', error: {complaint}")]
    Value { value: String, complaint: Complaint },
    /// The value is not a list.
    #[error("Expecting array, got '{0}'")]
    NotAList(String),
    /// A key of the cluster information is missing or invalid.
    #[error("{0}")]
    Key(Complaint),
}

/// Queries nodes, instances, cluster information and groups.
pub(super) fn load(client: &mut Client) -> Result<ClusterData, QueryError> {
    let mut query = |kind: &str, fields: &[&str]| client.call("Query", &json!([kind, fields, null]));
    let nodes = query("node", &NODE_FIELDS)?;
    let instances = query("instance", &INSTANCE_FIELDS)?;
    let info = client.call("QueryClusterInfo", &json!([]))?;
    let groups = client.call("Query", &json!(["group", GROUP_FIELDS, null]))?;
    cluster_from(&nodes, &instances, &info, &groups)
}

/// Builds the cluster from the four answers.
pub fn cluster_from(
    nodes: &Value,
    instances: &Value,
    info: &Value,
    groups: &Value,
) -> Result<ClusterData, QueryError> {
    let groups = rows(groups, &GROUP_FIELDS)?.iter().map(group).collect::<Result<Vec<_>, _>>()?;
    let by_uuid = Groups::new(&groups);
    let nodes = rows(nodes, &NODE_FIELDS)?;
    let nodes = nodes.iter().map(|row| node(row, &by_uuid)).collect::<Result<Vec<_>, _>>()?;
    let by_name = Nodes::new(&nodes);
    let instances = rows(instances, &INSTANCE_FIELDS)?;
    let instances = instances.iter().map(|row| instance(row, &by_name)).collect::<Result<Vec<_>, _>>()?;
    Ok(live::assemble(groups, nodes, instances, cluster_info(info)?)?)
}

/// A row of an answer, with a status and a value per field.
struct Row<'a> {
    fields: &'static [&'static str],
    cells: Vec<(&'a Value, &'a Value)>,
}

fn rows<'a>(answer: &'a Value, fields: &'static [&'static str]) -> Result<Vec<Row<'a>>, QueryError> {
    let form = |text: String| QueryError::Form(text);
    let Value::Object(answer) = answer else {
        return Err(form(format!("Invalid input, expected dict entry but got {}", excerpt(answer))));
    };
    let data = answer.get("data").ok_or_else(|| form("key 'data' not found in a query result".to_owned()))?;
    let Value::Array(data) = data else {
        return Err(form(format!("Invalid query result, expected array but got {}", excerpt(data))));
    };
    data.iter().map(|row| Row::new(row, fields)).collect()
}

impl<'a> Row<'a> {
    fn new(row: &'a Value, fields: &'static [&'static str]) -> Result<Self, QueryError> {
        let form =
            |what: &str, value| Err(QueryError::Form(format!("Invalid query {what} {}", excerpt(value))));
        let Value::Array(cells) = row else { return form("row, expected array but got", row) };
        if cells.len() != fields.len() {
            return form("row, with another number of fields than asked for:", row);
        }
        let mut pairs = Vec::with_capacity(cells.len());
        for cell in cells {
            match cell.as_array().map(Vec::as_slice) {
                Some([status, value]) => pairs.push((status, value)),
                _ => return form("field, expected (status, value) but got", cell),
            }
        }
        Ok(Self { fields, cells: pairs })
    }

    /// Value of a field, if its status is normal.
    fn value(&self, field: &str) -> Result<&'a Value, CellError> {
        let at = self.fields.iter().position(|name| *name == field);
        let Some((status, value)) = at.and_then(|at| self.cells.get(at)) else {
            return Err(CellError::UnknownField);
        };
        match from_value::<i64>(status) {
            Ok(0) => Ok(value),
            Ok(1) => Err(CellError::UnknownField),
            Ok(2) => Err(CellError::NoData),
            Ok(3) => Err(CellError::Unavailable),
            Ok(4) => Err(CellError::Offline),
            Ok(other) => Err(CellError::Status(other.to_string())),
            Err(complaint) => Err(CellError::Value { value: excerpt(status), complaint }),
        }
    }

    fn read<T: for<'t> Json<'t>>(&self, field: &str) -> Result<T, CellError> {
        convert(self.value(field)?)
    }

    fn name(&self, kind: &'static str) -> Result<String, QueryError> {
        let wrong = |cause| QueryError::Cell { owner: Owner::New(kind), cause: Box::new(cause) };
        self.read("name").map_err(wrong)
    }
}

fn convert<T: for<'t> Json<'t>>(value: &Value) -> Result<T, CellError> {
    from_value(value).map_err(|complaint| CellError::Value { value: excerpt(value), complaint })
}

/// The first 200 characters of a value, for messages.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Reads the attributes of one record. Errors name the record.
struct Attributes<'a, 'r> {
    kind: &'static str,
    name: &'a str,
    row: &'a Row<'r>,
}

impl<'r> Attributes<'_, 'r> {
    fn wrong(&self, attribute: &'static str, cause: CellError) -> QueryError {
        let owner = Owner::Attribute { kind: self.kind, name: self.name.to_owned(), attribute };
        QueryError::Cell { owner, cause: Box::new(cause) }
    }

    fn read<T: for<'t> Json<'t>>(&self, field: &'static str) -> Result<T, QueryError> {
        // Node parameters appear in errors under their own names.
        let label = match field {
            "ndp/spindle_count" => "spindles",
            "ndp/exclusive_storage" => "exclusive_storage",
            "ndp/cpu_speed" => "cpu_speed",
            other => other,
        };
        self.row.read(field).map_err(|cause| self.wrong(label, cause))
    }

    /// Reads a value; any error yields the default.
    fn lenient<T: for<'t> Json<'t> + Default>(&self, field: &str) -> T {
        self.row.read(field).unwrap_or_default()
    }

    fn list(&self, field: &'static str) -> Result<&'r [Value], QueryError> {
        let wrong = |cause| self.wrong(field, cause);
        let value = self.row.value(field).map_err(wrong)?;
        value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(CellError::NotAList(excerpt(value))))
    }
}

fn group(row: &Row<'_>) -> Result<Group, QueryError> {
    let name = row.name("group")?;
    let is = Attributes { kind: "Group", name: &name, row };
    Ok(Group {
        uuid: is.read("uuid")?,
        alloc_policy: is.read("alloc_policy")?,
        policy: is.read("ipolicy")?,
        tags: is.read("tags")?,
        networks: Vec::new(),
        name,
    })
}

/// Builds a node. Nodes that cannot run instances can omit their resources, and any that they report are
/// ignored.
fn node(row: &Row<'_>, groups: &Groups) -> Result<Node, QueryError> {
    let name = row.name("node")?;
    let is = Attributes { kind: "Node", name: &name, row };
    let (offline, vm_capable): (bool, bool) = (is.read("offline")?, is.read("vm_capable")?);
    let live = !offline && vm_capable;
    let drained: bool = is.read("drained")?;
    let mut node = Node::new(name.clone(), groups.of(&name, &is.read::<String>("group.uuid")?)?);
    node.set_flags(offline, drained, vm_capable);
    node.exclusive_storage = is.read("ndp/exclusive_storage")?;
    node.tags = is.read("tags")?;
    node.cpu_speed = is.read("ndp/cpu_speed")?;
    node.node_cpus = 0;
    if live {
        node.total_memory = is.read("mtotal")?;
        node.node_memory = is.read("mnode")?;
        node.reported_free_memory = is.read("mfree")?;
        node.total_cpus = is.read("ctotal")?;
        node.node_cpus = is.read("cnos")?;
        node.total_disk = is.lenient("dtotal");
        node.reported_free_disk = is.lenient("dfree");
        node.reported_free_spindles = is.lenient("spfree");
    }
    node.total_spindles = match (node.exclusive_storage, live) {
        (false, _) => is.read("ndp/spindle_count")?,
        (true, true) => is.read("sptotal")?,
        (true, false) => 0,
    };
    Ok(node)
}

fn instance(row: &Row<'_>, nodes: &Nodes) -> Result<Instance, QueryError> {
    let name = row.name("instance")?;
    let is = Attributes { kind: "Instance", name: &name, row };
    let find = |node: &str| nodes.of(&name, node);
    let primary: NodeIdx = find(&is.read::<String>("pnode")?)?;
    let mut instance = Instance::new(name.clone(), is.read("disk_template")?, primary);
    instance.secondary = is.read::<Vec<String>>("snodes")?.first().map(|node| find(node)).transpose()?;
    instance.disk = is.read("disk_usage")?;
    instance.memory = is.read("be/memory")?;
    instance.vcpus = is.read("be/vcpus")?;
    instance.status = is.read("status")?;
    instance.tags = is.read("tags")?;
    instance.auto_balance = is.read("be/auto_balance")?;
    instance.spindle_use = is.read("be/spindle_use")?;
    instance.forthcoming = is.read("forthcoming")?;
    let spindles = is.list("disk.spindles")?.iter().map(|count| match count {
        Value::Null => Ok(None),
        count => convert(count).map(Some).map_err(|cause| is.wrong("disk.spindles", cause)),
    });
    instance.disks = live::disks(is.read("disk.sizes")?, spindles.collect::<Result<_, _>>()?);
    Ok(instance)
}

fn cluster_info(info: &Value) -> Result<Info, QueryError> {
    fn key<T: for<'t> Json<'t>>(info: &Value, key: &'static str) -> Result<T, QueryError> {
        let read = match info.as_object() {
            None => Err(Complaint::Kind("JSObject")),
            Some(object) => match object.get(key) {
                None => Err(Complaint::Missing { key, present: object.keys().cloned().collect() }),
                Some(value) => from_value(value).map_err(|inner| Complaint::field(key, inner)),
            },
        };
        read.map_err(|complaint| {
            let cause = Box::new(CellError::Key(complaint));
            QueryError::Cell { owner: Owner::Cluster, cause }
        })
    }
    Ok(Info {
        master: key(info, "master")?,
        tags: key(info, "tags")?,
        policy: key::<Policy>(info, "ipolicy")?,
        kvm: key::<Hypervisor>(info, "default_hypervisor")?.kvm,
    })
}
