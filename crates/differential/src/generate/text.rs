//! A generated cluster in the text format (`-t FILE`).

use std::fmt::Write;

use super::model::{Cluster, Instance, Node, Policy, Spec};

/// Content of the file.
pub fn render(cluster: &Cluster) -> String {
    let mut out = String::new();
    for group in &cluster.groups {
        let (tags, networks) = (group.tags.join(","), group.networks.join(","));
        line(&mut out, &[&group.name, &group.uuid, group.alloc_policy, &tags, &networks]);
    }
    out.push('\n');
    for node in &cluster.nodes {
        render_node(&mut out, cluster, node);
    }
    out.push('\n');
    for instance in &cluster.instances {
        render_instance(&mut out, cluster, instance);
    }
    out.push('\n');
    for tag in &cluster.tags {
        line(&mut out, &[tag]);
    }
    out.push('\n');
    if let Some(policy) = &cluster.policy {
        render_policy(&mut out, "", policy);
    }
    for group in &cluster.groups {
        if let Some(policy) = &group.policy {
            render_policy(&mut out, &group.name, policy);
        }
    }
    out
}

fn line(out: &mut String, fields: &[&str]) {
    out.push_str(&fields.join("|"));
    out.push('\n');
}

fn render_node(out: &mut String, cluster: &Cluster, node: &Node) {
    let known = |text: String| if node.unknown { "?".to_owned() } else { text };
    let fields = [
        node.name.clone(),
        known(float(node.total_memory)),
        known(node.system_memory.to_string()),
        known(node.free_memory.to_string()),
        known(float(node.total_disk)),
        known(node.free_disk.to_string()),
        known(float(node.cpus)),
        node.role.to_string(),
        cluster.groups[node.group].uuid.clone(),
        node.spindles.to_string(),
        node.tags.join(","),
        yes_no(node.exclusive).to_owned(),
        node.free_spindles.to_string(),
        node.system_cpus.to_string(),
        float(node.cpu_speed),
    ];
    line(out, &fields.each_ref().map(String::as_str));
}

fn render_instance(out: &mut String, cluster: &Cluster, instance: &Instance) {
    let spindles = instance.spindles.map_or("-".to_owned(), |s| s.to_string());
    let fields = [
        instance.name.clone(),
        instance.memory.to_string(),
        instance.disk.to_string(),
        instance.vcpus.to_string(),
        instance.status.to_owned(),
        yes_no(instance.auto_balance).to_owned(),
        cluster.nodes[instance.primary].name.clone(),
        instance.secondary.map_or(String::new(), |s| cluster.nodes[s].name.clone()),
        instance.template.to_owned(),
        instance.tags.join(","),
        instance.spindle_use.to_string(),
        spindles,
        yes_no(instance.forthcoming).to_owned(),
    ];
    line(out, &fields.each_ref().map(String::as_str));
}

fn yes_no(value: bool) -> &'static str {
    if value { "Y" } else { "N" }
}

/// A number as written in the text format.
fn float(value: f64) -> String {
    if value.is_infinite() { value.to_string().replace("inf", "Infinity") } else { value.to_string() }
}

fn spec(spec: &Spec) -> String {
    spec.map(|n| n.to_string()).join(",")
}

fn render_policy(out: &mut String, owner: &str, policy: &Policy) {
    let bounds: Vec<String> =
        policy.bounds.iter().map(|(min, max)| format!("{};{}", spec(min), spec(max))).collect();
    writeln!(
        out,
        "{owner}|{}|{}|{}|{}|{}",
        spec(&policy.standard),
        bounds.join(";"),
        policy.templates.join(","),
        float(policy.vcpu_ratio),
        float(policy.spindle_ratio)
    )
    .expect("writing to a string");
}
