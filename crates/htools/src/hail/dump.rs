//! Output of `-v` (the request) and `-v -v` (also the cluster's data) on standard error, in the notation of
//! the reference's records. Scripts and people search these lines for single fields.
//!
//! The reference has some figures twice: those of existing instances and, with `Forth` in their names, those
//! that include forthcoming instances. Where it doesn't maintain a figure, it prints the record's initial
//! value, and so does this module.

use std::cmp::Reverse;
use std::fmt::Write;

use cluster::{Cluster, Instance, InstanceIdx, InstanceStatus, NodeIdx, Policy, TagId, TagRules};
use serde_json::Value;

use crate::iallocator::{AllocateRequest, EvacuateMode, Request};
use crate::number;
use crate::report::{self, shown};

/// Parts of a message that only this output needs.
#[derive(Debug, Default)]
pub(super) struct Rest {
    message: Value,
    tags: Vec<String>,
}

impl Rest {
    /// From a valid message, with the cluster's tags.
    pub(super) fn of(message: &[u8], tags: &[String]) -> Self {
        Self { message: serde_json::from_slice(message).unwrap_or_default(), tags: tags.to_vec() }
    }

    /// Keeps only the request, for a cluster that doesn't come from the message.
    pub(super) fn of_other_cluster(mut self, tags: &[String]) -> Self {
        if let Some(message) = self.message.as_object_mut() {
            message.retain(|key, _| key == "request");
        }
        self.tags = tags.to_vec();
        self
    }
}

pub(super) fn request(cluster: &mut Cluster, request: &Request, rules: &TagRules, rest: &Rest) -> String {
    let asked = &rest.message["request"];
    let what = match request {
        Request::Allocate(new) => {
            let nodes = new.restrict_to_nodes.as_ref();
            let nodes = nodes.map(|nodes| list(nodes.iter().map(|node| shown(node))));
            let new_instance = new_instance(cluster, new, rules, &asked["nics"]);
            let details = details(new.required_nodes, new.group_name.as_deref());
            let nodes = nodes.map_or_else(|| "Nothing".to_owned(), |nodes| format!("(Just {nodes})"));
            format!("Allocate ({new_instance}) ({details}) {nodes}")
        }
        Request::MultiAllocate { instances, group_name } => {
            let of = |(position, new): (usize, &AllocateRequest)| {
                let interfaces = &asked["instances"][position]["nics"];
                let details = details(new.required_nodes, group_name.as_deref());
                format!("({},{details})", new_instance(cluster, new, rules, interfaces))
            };
            format!("MultiAllocate {}", list(instances.iter().enumerate().map(of)))
        }
        Request::Relocate { instance, required_nodes, relocate_from } => {
            let from = list(relocate_from.iter().map(|node| node.at().to_string()));
            format!("Relocate {} {} {from}", instance.at(), in_parentheses(*required_nodes))
        }
        Request::NodeEvacuate { instances, mode } => {
            let mode = match mode {
                EvacuateMode::PrimaryOnly => "ChangePrimary",
                EvacuateMode::SecondaryOnly => "ChangeSecondary",
                EvacuateMode::All => "ChangeAll",
            };
            format!("NodeEvacuate {} {mode}", indices(instances))
        }
        Request::ChangeGroup { instances, target_groups } => {
            let groups = list(target_groups.iter().map(|group| group.at().to_string()));
            format!("ChangeGroup {} {groups}", indices(instances))
        }
        Request::AllocateSecondary { instance } => format!("AllocateSecondary {}", instance.at()),
        // The reference has no such request.
        Request::MultiEvacuate { nodes } => {
            format!("MultiEvacuate {}", list(nodes.iter().map(|node| node.at().to_string())))
        }
    };
    format!("Received request: {what}\n")
}

pub(super) fn data(cluster: &Cluster, rest: &Rest) -> String {
    let groups = cluster.groups.iter().enumerate();
    let groups = groups.map(|(index, group)| format!("({index},{})", report::group(index, group)));
    let hypervisor =
        maybe(rest.message["enabled_hypervisors"][0].as_str().and_then(hypervisor).map(str::to_owned));
    let nodes = cluster.node_indices();
    let nodes = nodes.map(|index| format!("({},{})", index.at(), node(cluster, index, &hypervisor)));
    let instances = cluster.instance_indices().map(|index| {
        let instance = cluster.instance(index);
        let nodes = (instance.primary.at(), instance.secondary.map_or(-1, |node| node.at() as i64));
        let interfaces = &rest.message["instances"][&instance.name]["nics"];
        let (alias, places) = (cluster.alias(&instance.name), (nodes, index.at() as i64));
        let record = instance_record(cluster, instance, alias, places, interfaces);
        format!("({},{record})", index.at())
    });
    let tags = list(rest.tags.iter().map(|tag| shown(tag)));
    format!(
        "Received cluster data: ClusterData {{cdGroups = fromList {}, cdNodes = fromList {}, cdInstances = fromList {}, \
         cdTags = {tags}, cdIPolicy = {}}}\n",
        list(groups),
        list(nodes),
        list(instances),
        report::policy(&Policy::default())
    )
}

fn new_instance(
    cluster: &mut Cluster,
    new: &AllocateRequest,
    rules: &TagRules,
    interfaces: &Value,
) -> String {
    let mut instance = new.instance.clone();
    cluster.derive_tags(&mut instance, rules);
    // New instances have full names.
    instance_record(cluster, &instance, &instance.name, ((0, 0), -1), interfaces)
}

fn instance_record(
    cluster: &Cluster,
    instance: &Instance,
    alias: &str,
    ((primary, secondary), index): ((usize, i64), i64),
    interfaces: &Value,
) -> String {
    let status = match instance.status {
        InstanceStatus::AdminDown => "StatusDown",
        InstanceStatus::AdminOffline => "StatusOffline",
        InstanceStatus::ErrorDown => "ErrorDown",
        InstanceStatus::ErrorUp => "ErrorUp",
        InstanceStatus::ErrorNodeDown => "NodeDown",
        InstanceStatus::ErrorNodeOffline => "NodeOffline",
        InstanceStatus::Running => "Running",
        InstanceStatus::UserDown => "UserDown",
        InstanceStatus::ErrorWrongNode => "WrongNode",
    };
    let disks = instance.disks.iter().map(|disk| {
        let spindles = maybe(disk.spindles.map(in_parentheses));
        format!("Disk {{dskSize = {}, dskSpindles = {spindles}}}", disk.size)
    });
    let name = shown(&instance.name);
    let mut record = format!("Instance {{name = {name}, alias = {}", shown(alias));
    let _ = write!(
        record,
        ", mem = {}, dsk = {}, disks = {}, vcpus = {}, runSt = {status}, pNode = {primary}, sNode = {secondary}, \
         idx = {index}, util = {}, movable = {}, autoBalance = {}, diskTemplate = {}, spindleUse = {}, allTags = {}, \
         exclTags = {}, dsrdLocTags = fromList {}, locationScore = {}, arPolicy = ArNotEnabled, nics = {}, \
         forthcoming = {}}}",
        instance.memory,
        instance.disk,
        list(disks),
        instance.vcpus,
        load(&instance.utilisation),
        truth(instance.movable),
        truth(instance.auto_balance),
        report::constructor(instance.template),
        instance.spindle_use,
        list(instance.tags.iter().map(|tag| shown(tag))),
        list(instance.exclusion_tags.iter().map(|tag| shown(cluster.tag_name(*tag)))),
        tag_set(cluster, &instance.desired_locations),
        instance.location_score,
        list(interfaces.as_array().into_iter().flatten().map(interface)),
        truth(instance.forthcoming),
    );
    record
}

fn interface(interface: &Value) -> String {
    let text = |key: &str| maybe(interface[key].as_str().map(shown));
    let mode = interface["mode"].as_str().map(|mode| match mode {
        "bridged" => "Bridged",
        "routed" => "Routed",
        _ => "OpenVSwitch",
    });
    format!(
        "Nic {{mac = {}, ip = {}, mode = {}, link = {}, bridge = {}, network = {}}}",
        text("mac"),
        text("ip"),
        maybe(mode.map(str::to_owned)),
        text("link"),
        text("bridge"),
        text("network")
    )
}

fn node(cluster: &Cluster, index: NodeIdx, hypervisor: &str) -> String {
    let (node, state) = (cluster.node(index), cluster.state(index));
    let figures = &state.figures;
    let mut record =
        format!("Node {{name = {}, alias = {}", shown(&node.name), shown(cluster.alias(&node.name)));
    let mut field = |name: &str, value: &dyn std::fmt::Display| _ = write!(record, ", {name} = {value}");
    let ratio = number::show;
    field("tMem", &number::show(node.total_memory));
    field("nMem", &node.node_memory);
    field("iMem", &figures.instance_memory);
    field("fMem", &node.reported_free_memory);
    field("fMemForth", &figures.booked_free_memory);
    field("xMem", &node.missing_memory);
    field("tDsk", &number::show(node.total_disk));
    field("fDsk", &figures.free_disk);
    field("fDskForth", &figures.booked_free_disk);
    field("tCpu", &number::show(node.total_cpus));
    field("tCpuSpeed", &number::show(node.cpu_speed));
    field("nCpu", &node.node_cpus);
    field("uCpu", &figures.used_vcpus);
    field("uCpuForth", &figures.booked_used_vcpus);
    field("tSpindles", &node.total_spindles);
    field("fSpindles", &figures.free_spindles);
    field("fSpindlesForth", &figures.booked_free_spindles);
    let forthcoming = |is_there: &dyn Fn(&Instance) -> bool| {
        let all = cluster.instance_indices().rev().filter(|instance| is_there(cluster.instance(*instance)));
        indices(&all.collect::<Vec<_>>())
    };
    field("pList", &newest_first(&state.primaries));
    field("pListForth", &forthcoming(&|instance| instance.primary == index));
    field("sList", &newest_first(&state.secondaries));
    field("sListForth", &forthcoming(&|instance| instance.secondary == Some(index)));
    field("idx", &index.at());
    // Sorted by reserve, largest first. For equal reserves, the peer of the most recently added secondary
    // comes first.
    let came = |peer: NodeIdx| {
        state.secondaries.iter().rposition(|secondary| cluster.instance(*secondary).primary == peer)
    };
    let mut peers = state.peers.clone();
    peers.sort_by_key(|(peer, memory)| Reverse((*memory, came(*peer))));
    field("peers", &list(peers.iter().map(|(peer, memory)| format!("({},{memory})", peer.at()))));
    field("failN1", &truth(figures.fails_n1));
    field("failN1Forth", &truth(true));
    field("rMem", &figures.reserved_memory);
    field("rMemForth", &0);
    field("pMem", &ratio(figures.free_memory_ratio(node)));
    field("pMemForth", &ratio(figures.booked_free_memory_ratio(node)));
    field("pDsk", &ratio(figures.free_disk_ratio(node)));
    field("pDskForth", &ratio(figures.booked_free_disk_ratio(node)));
    field("pRem", &ratio(figures.reserved_memory_ratio(node)));
    field("pRemForth", &number::show(0.0));
    field("pCpu", &ratio(figures.vcpu_ratio(node)));
    field("pCpuForth", &ratio(figures.booked_vcpu_ratio(node)));
    field("mDsk", &number::show(0.0));
    field("loDsk", &node.min_free_disk);
    field("hiCpu", &node.max_vcpus);
    field("hiSpindles", &number::show(node.max_spindles));
    field("instSpindles", &number::show(figures.instance_spindles));
    field("instSpindlesForth", &number::show(figures.booked_instance_spindles));
    field("offline", &truth(node.offline));
    field("isMaster", &truth(node.master));
    field("nTags", &list(node.tags.iter().map(|tag| shown(tag))));
    field("utilPool", &load(&[1.0; 4]));
    field("utilLoad", &load(&figures.load));
    field("utilLoadForth", &load(&booked_load(cluster, index)));
    let counts = state.exclusion_tags.iter().map(|(tag, count)| (cluster.tag_name(*tag), *count));
    let counts = sorted(counts).into_iter().map(|(tag, count)| format!("({},{count})", shown(tag)));
    field("pTags", &format_args!("fromList {}", list(counts)));
    field("group", &node.group.at());
    field("iPolicy", &report::policy(&cluster.group(node.group).policy));
    field("exclStorage", &truth(node.exclusive_storage));
    field("migTags", &format_args!("fromList {}", tag_set(cluster, &node.migration.tags)));
    field("rmigTags", &format_args!("fromList {}", tag_set(cluster, &node.migration.receives)));
    field("locationTags", &format_args!("fromList {}", tag_set(cluster, &node.locations)));
    field("locationScore", &figures.location_score);
    let located = state
        .located_tags
        .iter()
        .map(|((location, tag), count)| ((cluster.tag_name(*location), cluster.tag_name(*tag)), *count));
    let located = sorted(located).into_iter();
    let located =
        located.map(|((location, tag), count)| format!("(({},{}),{count})", shown(location), shown(tag)));
    field("instanceMap", &format_args!("fromList {}", list(located)));
    field("hypervisor", &hypervisor);
    record.push('}');
    record
}

/// The node's load including forthcoming instances. Their secondaries only count towards the disk load.
fn booked_load(cluster: &Cluster, index: NodeIdx) -> [f64; 4] {
    let mut load = cluster.figures(index).load;
    for instance in cluster.instances.iter().filter(|instance| instance.forthcoming) {
        let [cpu, memory, disk, network] = instance.utilisation;
        let more = match (instance.primary == index, instance.secondary == Some(index)) {
            (true, _) => [cpu, memory, disk, network],
            (false, true) => [0.0, 0.0, disk, 0.0],
            (false, false) => continue,
        };
        load.iter_mut().zip(more).for_each(|(load, more)| *load += more);
    }
    load
}

fn hypervisor(name: &str) -> Option<&'static str> {
    let names = [
        ("kvm", "Kvm"),
        ("xen-pvm", "XenPvm"),
        ("chroot", "Chroot"),
        ("xen-hvm", "XenHvm"),
        ("lxc", "Lxc"),
        ("fake", "Fake"),
    ];
    names.into_iter().find(|(word, _)| *word == name).map(|(_, constructor)| constructor)
}

fn details(required_nodes: i64, group_name: Option<&str>) -> String {
    let group = match group_name {
        Some(name) => format!("(Just {})", shown(name)),
        None => "Nothing".to_owned(),
    };
    format!("AllocDetails {} {group}", in_parentheses(required_nodes))
}

fn load(load: &[f64; 4]) -> String {
    let [cpu, memory, disk, network] = load.map(number::show);
    format!("DynUtil {{cpuWeight = {cpu}, memWeight = {memory}, dskWeight = {disk}, netWeight = {network}}}")
}

fn tag_set(cluster: &Cluster, tags: &[TagId]) -> String {
    list(sorted(tags.iter().map(|tag| cluster.tag_name(*tag))).into_iter().map(shown))
}

/// Sorts names before they are quoted and escaped, which would change their order.
fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items
}

fn newest_first(instances: &[InstanceIdx]) -> String {
    list(instances.iter().rev().map(|index| index.at().to_string()))
}

fn indices(instances: &[InstanceIdx]) -> String {
    list(instances.iter().map(|index| index.at().to_string()))
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

fn maybe(value: Option<String>) -> String {
    value.map_or_else(|| "Nothing".to_owned(), |value| format!("Just {value}"))
}

/// A number as an argument: negative numbers are in parentheses.
fn in_parentheses(number: i64) -> String {
    if number < 0 { format!("({number})") } else { number.to_string() }
}

fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

#[cfg(test)]
mod tests {
    use cluster::{Cluster, DiskTemplate, Group, GroupIdx, LoadOptions, Node, Policy};

    use super::*;

    #[test]
    fn tags_are_in_the_order_of_their_text_and_not_of_their_escapes() {
        let group = Group {
            name: "g".to_owned(),
            uuid: "u".to_owned(),
            alloc_policy: cluster::AllocPolicy::Preferred,
            tags: Vec::new(),
            networks: Vec::new(),
            policy: Policy::default(),
        };
        let mut instance = Instance::new("i", DiskTemplate::Plain, NodeIdx(0));
        instance.tags = ["s:ü", "s:d", "s:d e"].map(str::to_owned).to_vec();
        let nodes = vec![Node::new("n", GroupIdx(0))];
        let tags = vec!["htools:iextags:s".to_owned()];
        let options = LoadOptions::default();
        let loaded = Cluster::load(vec![group], nodes, vec![instance], tags, Policy::default(), &options);
        let (cluster, _) = loaded.expect("the options select nothing");
        let record = node(&cluster, NodeIdx(0), "Nothing");
        let expected = r#"pTags = fromList [("s:d",1),("s:d e",1),("s:\252",1)]"#;
        assert!(record.contains(expected), "{record}");
    }
}
