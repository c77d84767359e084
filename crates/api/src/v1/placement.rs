//! Questions about a Ganeti cluster, which the request includes or the operator has named, or about the
//! service's own fleet. The options are those of the commands `allot hbal`, `drain`, `whatif` and `fit`. Not
//! in Blazar.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::error::RequestError;
use super::fields::{Fields, boolean, count, list, strict_text};
use super::limits::Limits;

/// A question about a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementQuestion {
    /// Moves that balance a group (`hbal`).
    Balance,
    /// Whether nodes can be emptied.
    Drain,
    /// State of the cluster after changes.
    Whatif,
    /// Number of instances of a shape that fit.
    Fit,
}

impl PlacementQuestion {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Balance, Self::Drain, Self::Whatif, Self::Fit];

    /// Name in addresses, and of the answer's field.
    pub fn name(self) -> &'static str {
        match self {
            Self::Balance => "balance",
            Self::Drain => "drain",
            Self::Whatif => "whatif",
            Self::Fit => "fit",
        }
    }

    /// Name of the command that answers it.
    pub fn command(self) -> &'static str {
        if self == Self::Balance { "hbal" } else { self.name() }
    }

    /// The fields that only this question has.
    fn options(self) -> &'static [Field] {
        match self {
            Self::Balance => &BALANCE,
            Self::Drain => &DRAIN,
            Self::Whatif => &WHATIF,
            Self::Fit => &FIT,
        }
    }
}

/// A field of a question, its kind, and the corresponding option of the command.
type Field = (&'static str, Kind, &'static str);

/// The way in which a field becomes arguments of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text, after the option.
    Text,
    /// A number, after the option.
    Number,
    /// A count, after the option.
    Count,
    /// The option, if it is true.
    On,
    /// The option, if it is false.
    Off,
    /// The option for each text of a list.
    Each,
    /// Required arguments without an option.
    Operands,
    /// One required argument without an option.
    Operand,
}

/// Fields of all questions, which change the view of the cluster.
const VIEW: [Field; 4] = [
    ("offline", Kind::Each, "--offline"),
    ("max_cpu", Kind::Number, "--max-cpu"),
    ("min_disk", Kind::Number, "--min-disk"),
    ("n1_initial", Kind::Text, "--n1-initial"),
];
const BALANCE: [Field; 6] = [
    ("group", Kind::Text, "--group"),
    ("moves", Kind::Count, "--max-length"),
    ("disk_moves", Kind::Off, "--no-disk-moves"),
    ("instance_moves", Kind::Off, "--no-instance-moves"),
    ("evacuate", Kind::On, "--evac-mode"),
    ("ignore_soft_errors", Kind::On, "--ignore-soft-errors"),
];
const DRAIN: [Field; 4] = [
    ("nodes", Kind::Operands, ""),
    ("reboot", Kind::On, "--reboot"),
    ("disk_moves", Kind::Off, "--no-disk-moves"),
    ("ignore_soft_errors", Kind::On, "--ignore-soft-errors"),
];
const WHATIF: [Field; 10] = [
    ("lose", Kind::Each, "--lose"),
    ("add_nodes", Kind::Each, "--add-nodes"),
    ("resize", Kind::Each, "--resize"),
    ("add_instances", Kind::Each, "--add-instances"),
    ("remove_instances", Kind::Each, "--remove-instance"),
    ("rebalance", Kind::On, "--rebalance"),
    ("disk_template", Kind::Text, "--disk-template"),
    ("capacity_checks", Kind::Off, "--no-capacity-checks"),
    ("independent_groups", Kind::On, "--independent-groups"),
    ("limit", Kind::Count, "--limit"),
];
const FIT: [Field; 7] = [
    ("shape", Kind::Operand, ""),
    ("count", Kind::Count, "--count"),
    ("disk_template", Kind::Text, "--disk-template"),
    ("group", Kind::Text, "--group"),
    ("capacity_checks", Kind::Off, "--no-capacity-checks"),
    ("independent_groups", Kind::On, "--independent-groups"),
    ("limit", Kind::Count, "--limit"),
];

/// The cluster that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedCluster {
    /// The cluster to which the operator has given this name.
    Named(String),
    /// The hosts that the service leases.
    Fleet,
    /// A cluster in the text format.
    Text(String),
    /// Answers of the remote API, each with the name of its file.
    Rapi([(&'static str, String); 4]),
}

/// A question about a cluster, ready for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRequest {
    /// About which cluster.
    pub cluster: AskedCluster,
    /// Options of the command. A request can't use them to name the source of a cluster.
    pub options: Vec<String>,
    /// Arguments after the options, which are never parsed as options.
    pub operands: Vec<String>,
}

impl PlacementRequest {
    /// Reads the body of `POST /placement/...`. The limits apply to everything except the cluster's
    /// description, which can be as large as the body.
    pub fn read(question: PlacementQuestion, body: Value, limits: &Limits) -> Result<Self, RequestError> {
        let Value::Object(mut object) = body else {
            return Err(RequestError::malformed("body", "a JSON object"));
        };
        let cluster = cluster(&mut object)?;
        let body = Value::Object(object);
        limits.check(&body)?;
        let (mut options, mut operands) = (Vec::new(), Vec::new());
        let mut fields = Fields::body(&body)?;
        for (name, kind, option) in question.options().iter().chain(&VIEW) {
            let Some(value) = fields.given(name) else {
                if matches!(kind, Kind::Operand | Kind::Operands) {
                    return Err(RequestError::Missing((*name).to_owned()));
                }
                continue;
            };
            match kind {
                Kind::Text => options.push(format!("{option}={}", strict_text(name, value)?)),
                Kind::Count => options.push(format!("{option}={}", count(name, value, 0)?)),
                Kind::Number => {
                    let number = value.as_f64().ok_or_else(|| RequestError::malformed(*name, "a number"))?;
                    options.push(format!("{option}={number}"));
                }
                Kind::On | Kind::Off => {
                    if boolean(name, value)? == (*kind == Kind::On) {
                        options.push((*option).to_owned());
                    }
                }
                Kind::Each => {
                    for value in list(name, Some(value))? {
                        options.push(format!("{option}={}", strict_text(name, value)?));
                    }
                }
                Kind::Operands => {
                    for value in list(name, Some(value))? {
                        operands.push(strict_text(name, value)?);
                    }
                    if operands.is_empty() {
                        return Err(RequestError::malformed(*name, "a list of at least one name"));
                    }
                }
                Kind::Operand => operands.push(strict_text(name, value)?),
            }
        }
        fields.finish()?;
        Ok(Self { cluster, options, operands })
    }
}

/// Removes the cluster from a body, in which it is one of `cluster`, `fleet`, `text` and `rapi`.
fn cluster(object: &mut Map<String, Value>) -> Result<AskedCluster, RequestError> {
    let mut given = ["cluster", "fleet", "text", "rapi"].into_iter().filter_map(|name| {
        let value = object.remove(name).filter(|value| !value.is_null())?;
        Some((name, value))
    });
    let first = given.next();
    if let Some((more, _)) = given.next() {
        return Err(RequestError::malformed(more, "absent: give one of cluster, fleet, text and rapi"));
    }
    match first {
        Some(("cluster", Value::String(name))) => Ok(AskedCluster::Named(name)),
        Some(("fleet", Value::Bool(true))) => Ok(AskedCluster::Fleet),
        Some(("fleet", _)) => Err(RequestError::malformed("fleet", "true, or absent")),
        Some(("text", Value::String(text))) => Ok(AskedCluster::Text(text)),
        Some(("rapi", Value::Object(mut documents))) => {
            let mut document = |name: &'static str, file: &'static str| {
                let value =
                    documents.remove(name).ok_or_else(|| RequestError::Missing(format!("rapi.{name}")))?;
                Ok::<_, RequestError>((file, value.to_string()))
            };
            let all = [
                document("groups", "groups.json")?,
                document("nodes", "nodes.json")?,
                document("instances", "instances.json")?,
                document("info", "info.json")?,
            ];
            match documents.keys().next() {
                Some(name) => Err(RequestError::Unknown {
                    parameter: format!("rapi.{name}"),
                    known: vec!["groups", "nodes", "instances", "info"],
                }),
                None => Ok(AskedCluster::Rapi(all)),
            }
        }
        Some(("rapi", _)) => Err(RequestError::malformed("rapi", "an object")),
        Some((name, _)) => Err(RequestError::malformed(name, "text")),
        None => Err(RequestError::Missing("cluster, fleet, text or rapi".to_owned())),
    }
}

/// Responses of a cluster's remote API, version 2.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RapiDocuments {
    /// Response to `/2/groups?bulk=1`.
    pub groups: Value,
    /// Response to `/2/nodes?bulk=1`.
    pub nodes: Value,
    /// Response to `/2/instances?bulk=1`.
    pub instances: Value,
    /// Response to `/2/info`.
    pub info: Value,
}

macro_rules! questions {
    ($( $(#[doc = $doc:literal])+ $name:ident { $( $(#[doc = $about:literal])+ $field:ident: $kind:ty, )+ } )+) => { $(
        $(#[doc = $doc])+
        ///
        /// Exactly one of `cluster`, `fleet`, `text` and `rapi` selects the cluster.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Name of a cluster, as configured by the operator.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cluster: Option<String>,
            /// True selects the service's own fleet: its hosts as nodes, and their guests as instances.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub fleet: Option<bool>,
            /// Description of a cluster in Ganeti's text format, as written by `hscan` and `hbal -S`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schema(max_length = 8_388_608, pattern = r"^[\s\S]*$")]
            pub text: Option<String>,
            /// Description of a cluster by its remote API.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rapi: Option<RapiDocuments>,
            /// Names of nodes to treat as offline.
            #[serde(default)]
            pub offline: Vec<String>,
            /// Maximum number of virtual CPUs per physical CPU. Default: the policy's limit.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub max_cpu: Option<f64>,
            /// Minimum share of each node's disk that stays free, from 0 to 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub min_disk: Option<f64>,
            /// Kind of free memory that decides which nodes fail N+1 before any changes: `recorded` or
            /// `reported`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub n1_initial: Option<String>,
            $( $(#[doc = $about])+
            #[serde(default)]
            pub $field: $kind, )+
        }
    )+ };
}

questions! {
    /// Question: which moves balance a group? Equivalent to `allot hbal`.
    BalanceQuestion {
        /// Name of the group. Can be omitted if only one group has nodes.
        group: Option<String>,
        /// Maximum number of moves.
        moves: Option<u32>,
        /// Whether disks can be copied. Default: true.
        disk_moves: Option<bool>,
        /// Whether instances can be migrated. Default: true.
        instance_moves: Option<bool>,
        /// Whether to move only instances on offline nodes. Default: false.
        evacuate: Option<bool>,
        /// Whether to ignore limits that are exceeded already. Default: false.
        ignore_soft_errors: Option<bool>,
    }
    /// Question: can nodes be emptied? Equivalent to `allot drain`.
    DrainQuestion {
        /// Names of the nodes to empty, at least one.
        nodes: Vec<String>,
        /// Whether the nodes will only be restarted. Default: false.
        reboot: Option<bool>,
        /// Whether disks can be copied. Default: true.
        disk_moves: Option<bool>,
        /// Whether to accept moves that violate policies, exclusion tags or N+1, if they are violated
        /// already. Default: false.
        ignore_soft_errors: Option<bool>,
    }
    /// Question: how would changes affect the cluster? Equivalent to `allot whatif`. Requires at least one
    /// change.
    WhatifQuestion {
        /// Names of nodes that fail.
        lose: Vec<String>,
        /// Empty nodes to add, each as `COUNT,DISK,RAM,CPUS[,SPINDLES][@GROUP]`.
        add_nodes: Vec<String>,
        /// Instances to resize, each as `INSTANCE:mem=SIZE,vcpus=N,disk=SIZE`.
        resize: Vec<String>,
        /// Instances to create, each as `COUNT,DISK,RAM,CPUS[,TEMPLATE]`.
        add_instances: Vec<String>,
        /// Names of instances to remove.
        remove_instances: Vec<String>,
        /// Whether to balance the groups after the changes. Default: false.
        rebalance: Option<bool>,
        /// Disk template of the instances that capacity is counted for.
        disk_template: Option<String>,
        /// Whether to place instances only if every node can still be emptied. Default: true.
        capacity_checks: Option<bool>,
        /// Whether to check redundancy in each group separately. Default: false.
        independent_groups: Option<bool>,
        /// Maximum number of instances of a size to count capacity for.
        limit: Option<u32>,
    }
    /// Question: how many instances of a shape fit? Equivalent to `allot fit`.
    FitQuestion {
        /// Shape of an instance: `DISK,RAM,CPUS[,SPINDLES]`. Required.
        shape: String,
        /// Number of instances that must fit.
        count: Option<u32>,
        /// Disk template of the instances.
        disk_template: Option<String>,
        /// Name of the group to place instances in. Default: all groups.
        group: Option<String>,
        /// Whether to place instances only if every node can still be emptied. Default: true.
        capacity_checks: Option<bool>,
        /// Whether to check redundancy in each group separately. Default: false.
        independent_groups: Option<bool>,
        /// Maximum number of instances to count.
        limit: Option<u32>,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::PartialSchema;

    use super::*;

    fn read(question: PlacementQuestion, body: Value) -> Result<PlacementRequest, RequestError> {
        PlacementRequest::read(question, body, &Limits::default())
    }

    #[test]
    fn fields_become_options_and_text_never_becomes_one() {
        let asked = json!({"text": "a|b", "nodes": ["-S/etc/x", "n1"], "reboot": true, "disk_moves": false,
            "ignore_soft_errors": false, "offline": ["n2", "--json"], "max_cpu": 4.5});
        let read = read(PlacementQuestion::Drain, asked).expect("a question");
        assert_eq!(read.cluster, AskedCluster::Text("a|b".to_owned()));
        assert_eq!(
            read.options,
            ["--reboot", "--no-disk-moves", "--offline=n2", "--offline=--json", "--max-cpu=4.5"]
        );
        assert_eq!(read.operands, ["-S/etc/x", "n1"]);
    }

    #[test]
    fn a_cluster_is_named_or_sent_and_nothing_else() {
        for (body, message) in [
            (json!({}), "Missing parameter cluster, fleet, text or rapi"),
            (json!({"text": "a", "cluster": "b"}), "Malformed parameter text"),
            (json!({"text": 1}), "Malformed parameter text"),
            (json!({"fleet": true, "cluster": "b"}), "Malformed parameter fleet"),
            (json!({"fleet": false}), "Malformed parameter fleet"),
            (json!({"rapi": {"groups": []}}), "Missing parameter rapi.nodes"),
            (
                json!({"rapi": {"groups": [], "nodes": [], "instances": [], "info": {}, "x": 1}}),
                "Unknown parameter rapi.x",
            ),
            (json!({"master": "192.0.2.1"}), "Missing parameter cluster, fleet, text or rapi"),
            (json!({"text": "", "master": "192.0.2.1"}), "Unknown parameter master"),
            (
                json!({"text": "", "group": "a\u{0}b"}),
                "Malformed parameter group: it has the control character U+0000",
            ),
            (json!([]), "Malformed parameter body"),
        ] {
            let error = read(PlacementQuestion::Balance, body).expect_err("it is wrong");
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(
            read(PlacementQuestion::Drain, json!({"text": "", "nodes": []}))
                .expect_err("no node")
                .to_string(),
            "Malformed parameter nodes"
        );
        let missing = read(PlacementQuestion::Fit, json!({"text": ""})).expect_err("no shape");
        assert_eq!(missing.to_string(), "Missing parameter shape");
    }

    #[test]
    fn the_document_has_every_field_that_is_read_and_no_other() {
        let schemas = [
            BalanceQuestion::schema(),
            DrainQuestion::schema(),
            WhatifQuestion::schema(),
            FitQuestion::schema(),
        ];
        for (question, schema) in PlacementQuestion::ALL.into_iter().zip(schemas) {
            let schema = serde_json::to_value(schema).expect("JSON");
            let mut described: Vec<&str> =
                schema["properties"].as_object().expect("properties").keys().map(String::as_str).collect();
            let mut known = vec!["cluster", "fleet", "text", "rapi"];
            known.extend(question.options().iter().chain(&VIEW).map(|(name, ..)| name));
            described.sort_unstable();
            known.sort_unstable();
            assert_eq!(described, known, "{question:?}");
        }
    }
}
