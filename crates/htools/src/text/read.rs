//! Reading the text format.

use std::collections::HashMap;

use cluster::{
    AllocPolicy, Disk, DiskTemplate, Group, GroupIdx, ISpec, Instance, InstanceStatus, MinMax, Node, NodeIdx,
    Policy,
};

use super::error::{RowError, TextError};
use crate::data::{ClusterData, bounded, bounded_float};
use crate::json::quoted;
use crate::number::{read_float, read_int};

pub fn parse(text: &str) -> Result<ClusterData, TextError> {
    // A byte order mark, which some editors add, isn't a part of the first group's name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let sections = sections(text);
    let section = |number: usize| sections.get(number).map_or(&[][..], Vec::as_slice);
    if sections.len() < 4 && text.contains("\r\n") {
        return Err(TextError::CarriageReturns);
    }
    if sections.len() < 4 && text.trim_start().starts_with(['{', '[']) {
        return Err(TextError::Json);
    }
    if sections.len() < 4 {
        return Err(TextError::Sections(sections.len()));
    }
    let mut data = ClusterData { groups: rows(section(0), group)?, ..ClusterData::default() };
    let by_uuid: HashMap<String, GroupIdx> = data
        .groups
        .iter()
        .enumerate()
        .map(|(position, group)| (group.uuid.clone(), GroupIdx::from_usize(position)))
        .collect();
    data.nodes = rows(section(1), |fields| node(fields, &by_uuid))?;
    // If nodes have the same name, the last one wins.
    let by_name: HashMap<String, NodeIdx> = data
        .nodes
        .iter()
        .enumerate()
        .map(|(position, node)| (node.name.clone(), NodeIdx::from_usize(position)))
        .collect();
    data.instances = rows(section(2), |fields| instance(fields, &by_name))?;
    data.tags = section(3).iter().map(|(_, tag)| (*tag).to_owned()).collect();
    for (owner, policy) in rows(section(4), |fields| owned_policy(fields, &data.groups))? {
        match owner {
            Some(group) => data.groups[group].policy = policy,
            None => data.policy = policy,
        }
    }
    Ok(data)
}

/// Line number, from 1, and the line.
type Line<'a> = (usize, &'a str);

/// Splits a file at its empty lines. A file without lines has no section.
fn sections(text: &str) -> Vec<Vec<Line<'_>>> {
    let mut sections = Vec::new();
    for (position, line) in text.split_terminator('\n').enumerate() {
        if sections.is_empty() {
            sections.push(Vec::new());
        }
        if line.is_empty() {
            sections.push(Vec::new());
        } else if let Some(section) = sections.last_mut() {
            section.push((position + 1, line));
        }
    }
    sections
}

fn rows<T>(
    lines: &[Line<'_>],
    mut read: impl FnMut(&[&str]) -> Result<T, RowError>,
) -> Result<Vec<T>, TextError> {
    let mut fields = Vec::with_capacity(16);
    let mut rows = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        fields.clear();
        fields.extend(line.split('|'));
        rows.push(read(&fields).map_err(|error| TextError::Row { line: *number, error })?);
    }
    Ok(rows)
}

/// Elements of a list. An empty text is an empty list.
fn list(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).filter(move |_| !text.is_empty())
}

fn owned_list(text: &str) -> Vec<String> {
    list(text, ',').map(str::to_owned).collect()
}

fn incomplete(kind: &'static str, fields: &[&str]) -> RowError {
    RowError::Incomplete { kind, fields: quoted(fields) }
}

fn word<T>(prefix: &str, kind: &'static str, text: &str, known: Option<T>) -> Result<T, RowError> {
    known.ok_or_else(|| RowError::Word { prefix: prefix.to_owned(), kind, word: text.to_owned() })
}

fn group(fields: &[&str]) -> Result<Group, RowError> {
    let [name, uuid, alloc_policy, tags, rest @ ..] = fields else {
        return Err(incomplete("group", fields));
    };
    Ok(Group {
        name: (*name).to_owned(),
        uuid: (*uuid).to_owned(),
        alloc_policy: word("", "AllocPolicy", alloc_policy, AllocPolicy::from_name(alloc_policy))?,
        tags: owned_list(tags),
        networks: owned_list(rest.first().unwrap_or(&"")),
        policy: Policy::default(),
    })
}

fn node(fields: &[&str], groups: &HashMap<String, GroupIdx>) -> Result<Node, RowError> {
    let [
        name,
        total_memory,
        node_memory,
        free_memory,
        total_disk,
        free_disk,
        total_cpus,
        role,
        uuid,
        ref rest @ ..,
    ] = *fields
    else {
        return Err(incomplete("node", fields));
    };
    let Some(&group) = groups.get(uuid) else {
        return Err(RowError::UnknownGroup { group: uuid.to_owned(), node: name.to_owned() });
    };
    if fields[1..7].contains(&"?") {
        return Ok(Node { offline: true, total_spindles: 0, node_cpus: 0, ..Node::new(name, group) });
    }
    let int = |text: &str| read_int(name, text).map(bounded);
    let float = |text: &str| read_float(name, text).map(bounded_float);
    let optional = |position: usize, default| rest.get(position).copied().unwrap_or(default);
    // In the order in which the reference finds errors.
    Ok(Node {
        total_memory: float(total_memory)?,
        node_memory: int(node_memory)?,
        reported_free_memory: int(free_memory)?,
        total_disk: float(total_disk)?,
        reported_free_disk: int(free_disk)?,
        total_cpus: float(total_cpus)?,
        node_cpus: int(optional(4, "1"))?,
        total_spindles: int(optional(0, "1"))?,
        reported_free_spindles: int(optional(3, "0"))?,
        cpu_speed: float(optional(5, "1.0"))?,
        tags: owned_list(optional(1, "")),
        exclusive_storage: match optional(2, "N") {
            "Y" => true,
            "N" => false,
            other => {
                return Err(RowError::ExclusiveStorage { node: name.to_owned(), word: other.to_owned() });
            }
        },
        offline: role == "Y",
        master: role == "M",
        ..Node::new(name, group)
    })
}

fn instance(fields: &[&str], nodes: &HashMap<String, NodeIdx>) -> Result<Instance, RowError> {
    let [name, memory, disk, vcpus, status, auto_balance, primary, secondary, template, tags, ref rest @ ..] =
        *fields
    else {
        return Err(incomplete("instance", fields));
    };
    let find = |node: &str| {
        let unknown = || RowError::UnknownNode { node: node.to_owned(), instance: name.to_owned() };
        nodes.get(node).copied().ok_or_else(unknown)
    };
    let int = |text: &str| read_int(name, text).map(bounded);
    let flag = |what, text: &str| match text {
        "Y" => Ok(true),
        "N" => Ok(false),
        _ => Err(RowError::Flag { what, word: text.to_owned(), instance: name.to_owned() }),
    };
    let primary_index = find(primary)?;
    let secondary_index = if secondary.is_empty() { None } else { Some(find(secondary)?) };
    let memory = int(memory)?;
    let disk = int(disk)?;
    let vcpus = int(vcpus)?;
    let status = word("", "InstanceStatus", status, InstanceStatus::from_name(status))?;
    let auto_balance = flag("auto_balance", auto_balance)?;
    let prefix = || format!("Instance {name}: ");
    let template = match DiskTemplate::from_name(template) {
        Some(template) => template,
        None => word(&prefix(), "DiskTemplate", template, None)?,
    };
    let spindle_use = rest.first().map_or(Ok(1), |text| int(text))?;
    let spindles = match rest.get(1) {
        None | Some(&"-") => None,
        Some(text) => Some(int(text)?),
    };
    let forthcoming = rest.get(2).map_or(Ok(false), |text| flag("forthcoming", text))?;
    if template == DiskTemplate::Drbd && secondary_index == Some(primary_index) {
        return Err(RowError::SameNodes { instance: name.to_owned(), node: primary.to_owned() });
    }
    Ok(Instance {
        memory,
        disk,
        disks: vec![Disk { size: disk, spindles }],
        vcpus,
        status,
        auto_balance,
        secondary: secondary_index,
        tags: owned_list(tags),
        spindle_use,
        forthcoming,
        ..Instance::new(name, template, primary_index)
    })
}

/// Parses a policy and the position of its group, which is `None` for the cluster's policy.
fn owned_policy(fields: &[&str], groups: &[Group]) -> Result<(Option<usize>, Policy), RowError> {
    let [owner, std, minmax, templates, vcpu_ratio, spindle_ratio, ..] = *fields else {
        return Err(RowError::IncompletePolicy(quoted(fields)));
    };
    let std = spec(&format!("{owner}/stdspec"), std)?;
    let minmax = min_max(owner, minmax)?;
    let disk_templates = list(templates, ',')
        .map(|t| word("", "DiskTemplate", t, DiskTemplate::from_name(t)))
        .collect::<Result<_, _>>()?;
    let vcpu_ratio = read_float(&format!("{owner}/vcpu_ratio"), vcpu_ratio)?;
    let spindle_ratio = read_float(&format!("{owner}/spindle_ratio"), spindle_ratio)?;
    let policy = Policy { std, minmax, disk_templates, vcpu_ratio, spindle_ratio };
    if owner.is_empty() {
        return Ok((None, policy));
    }
    let mut matches = groups
        .iter()
        .enumerate()
        .filter(|(_, g)| g.name == owner || g.uuid == owner)
        .map(|(position, _)| position);
    match (matches.next(), matches.next()) {
        (Some(group), None) => Ok((Some(group), policy)),
        _ => Err(RowError::PolicyOwner(owner.to_owned())),
    }
}

fn min_max(owner: &str, text: &str) -> Result<Vec<MinMax>, RowError> {
    let specs: Vec<&str> = list(text, ';').collect();
    let (pairs, odd) = specs.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(RowError::OddSpecs(owner.to_owned()));
    }
    let pair = |[min, max]: &[&str; 2]| {
        Ok(MinMax {
            min: spec(&format!("{owner}/minspec"), min)?,
            max: spec(&format!("{owner}/maxspec"), max)?,
        })
    };
    pairs.iter().map(pair).collect()
}

fn spec(what: &str, text: &str) -> Result<ISpec, RowError> {
    let fields: Vec<&str> = list(text, ',').collect();
    let [memory, cpus, disk, disks, nics, spindles, ..] = *fields else {
        return Err(RowError::Spec { what: what.to_owned(), fields: quoted(&fields) });
    };
    let int = |name: &str, text| read_int(&format!("{what}/{name}"), text).map(bounded);
    Ok(ISpec {
        memory_size: int("memsize", memory)?,
        cpu_count: int("cpucount", cpus)?,
        disk_size: int("disksize", disk)?,
        disk_count: int("diskcount", disks)?,
        nic_count: int("niccount", nics)?,
        spindle_use: int("spindleuse", spindles)?,
    })
}
