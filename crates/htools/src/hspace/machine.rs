//! Results for scripts, as keys and values.

use std::cmp::Reverse;
use std::fmt::{Display, Write};

use cluster::FailMode;
use placement::capacity::{Placement, Shape};

use super::Phase;
use super::figures::{Resources, Usage};
use crate::number::{fixed, show};

/// Lines `HTS_KEY=VALUE`.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Adds a line. Values are quoted unless they consist of letters, digits and dots.
    fn add(&mut self, key: &str, value: impl Display) {
        let value = value.to_string();
        let plain = value.chars().all(|c| c.is_alphanumeric() || c == '.');
        let quote = if plain { "" } else { "'" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "HTS_{key}={quote}{value}{quote}");
    }

    fn add_usage(&mut self, prefix: &str, usage: &Usage, resources: &Resources) {
        let mut add = |key: &str, value: &dyn Display| self.add(&format!("{prefix}_{key}"), value);
        add("SCORE", &fixed(usage.score, 8));
        add("INST_CNT", &usage.instances);
        add("MEM_FREE", &usage.free_memory_mib);
        add("MEM_AVAIL", &usage.available_memory_mib);
        add("MEM_RESVD", &(usage.free_memory_mib - usage.available_memory_mib));
        add("MEM_INST", &usage.instance_memory_mib);
        add("MEM_OVERHEAD", &usage.overhead_mib);
        add("MEM_EFF", &fixed(usage.memory_efficiency(resources), 8));
        add("DSK_FREE", &usage.free_disk_mib);
        add("DSK_AVAIL", &usage.available_disk_mib);
        add("DSK_RESVD", &(usage.free_disk_mib - usage.available_disk_mib));
        add("DSK_INST", &usage.used_disk_mib);
        add("DSK_EFF", &fixed(usage.disk_efficiency(resources), 8));
        add("SPN_FREE", &usage.free_spindles);
        add("SPN_INST", &usage.used_spindles);
        add("SPN_EFF", &fixed(usage.spindle_efficiency(resources), 8));
        add("CPU_INST", &usage.used_vcpus);
        add("CPU_EFF", &fixed(usage.vcpu_efficiency(resources), 8));
        add("MNODE_MEM_AVAIL", &usage.most_memory_mib);
        add("MNODE_DSK_AVAIL", &usage.most_disk_mib);
    }

    fn add_key_metrics(&mut self, name: &str, cpu: i64, npu: f64, [memory, disk, spindles]: [i64; 3]) {
        self.add(&format!("KM_{name}_CPU"), cpu);
        self.add(&format!("KM_{name}_NPU"), show(npu));
        self.add(&format!("KM_{name}_MEM"), memory);
        self.add(&format!("KM_{name}_DSK"), disk);
        self.add(&format!("KM_{name}_SPN"), spindles);
    }
}

/// The cluster before allocation.
pub(super) fn start(resources: &Resources, initial: &Usage) -> String {
    let mut lines = Lines::default();
    lines.add("CLUSTER_MEM", fixed(resources.memory_mib, 0));
    lines.add("CLUSTER_DSK", fixed(resources.disk_mib, 0));
    lines.add("CLUSTER_CPU", fixed(resources.cpus, 0));
    lines.add("CLUSTER_VCPU", resources.vcpus);
    lines.add("CLUSTER_SPN", resources.spindles);
    lines.add("CLUSTER_NODES", resources.nodes);
    lines.add_usage("INI", initial, resources);
    lines.0
}

/// A shape. `prefix` starts its keys.
pub(super) fn shape(prefix: &str, shape: &Shape) -> String {
    let mut lines = Lines::default();
    let mut add = |key: &str, value: &dyn Display| lines.add(&format!("{prefix}_{key}"), value);
    add("MEM", &shape.memory_mib);
    add("DSK", &shape.disk_mib);
    add("CPU", &shape.vcpus);
    add("SPN", &shape.spindles);
    add("RQN", &shape.template.required_nodes());
    add("DISK_TEMPLATE", &shape.template.name());
    lines.0
}

/// Results of tiered allocation.
pub(super) fn tiered(resources: &Resources, initial: &Usage, first: &Shape, phase: &Phase) -> String {
    let mut lines = Lines(shape("TSPEC_INI", first));
    let last = &phase.usage;
    lines.add_usage("TRL", last, resources);
    let sizes: Vec<String> = phase
        .filled
        .placed
        .chunk_by(|a: &Placement, b| a.shape == b.shape)
        .map(|run| {
            let Shape { memory_mib, disk_mib, vcpus, spindles, .. } = run[0].shape;
            format!("{memory_mib},{disk_mib},{vcpus},{spindles}={}", run.len())
        })
        .collect();
    lines.add("TSPEC", sizes.join(" "));
    let used = [initial.instance_memory_mib, initial.used_disk_mib, initial.used_spindles];
    lines.add_key_metrics("USED", initial.used_vcpus, initial.used_cpus, used);
    let after = [last.instance_memory_mib, last.used_disk_mib, last.used_spindles];
    let pool = [0, 1, 2].map(|k| after[k] - used[k]);
    lines.add_key_metrics(
        "POOL",
        last.used_vcpus - initial.used_vcpus,
        last.used_cpus - initial.used_cpus,
        pool,
    );
    let all = [resources.memory_mib as i64, resources.disk_mib as i64, resources.spindles];
    let left = [0, 1, 2].map(|k| all[k] - after[k]);
    lines.add_key_metrics("UNAV", resources.vcpus - last.used_vcpus, resources.cpus - last.used_cpus, left);
    lines.0
}

/// Results of standard allocation. Its shape is printed before.
pub(super) fn standard(resources: &Resources, initial: &Usage, phase: &Phase) -> String {
    let mut lines = Lines::default();
    let last = &phase.usage;
    lines.add_usage("FIN", last, resources);
    lines.add("ALLOC_USAGE", fixed(initial.instances as f64 / last.instances as f64, 8));
    lines.add("ALLOC_INSTANCES", phase.filled.placed.len());
    let reasons = reasons(phase);
    let key = |mode: FailMode| mode.to_string().to_uppercase();
    if let Some((mode, _)) = reasons.first() {
        lines.add("ALLOC_FAIL_REASON", key(*mode));
    }
    for (mode, count) in reasons {
        lines.add(&format!("ALLOC_{}_CNT", key(mode)), count);
    }
    lines.add("OK", 1);
    lines.0
}

/// Reasons why another instance was refused, most frequent first; ties are in order. If nothing was tried
/// because nodes fail N+1, that is the only reason. Otherwise all reasons are listed. Empty if no instance
/// was requested.
pub(super) fn reasons(phase: &Phase) -> Vec<(FailMode, u64)> {
    let Some(failures) = &phase.filled.failures else { return Vec::new() };
    let mut reasons: Vec<(FailMode, u64)> = FailMode::ALL.map(|mode| (mode, failures.count(mode))).to_vec();
    if phase.blocked {
        reasons.retain(|(mode, _)| *mode == FailMode::N1);
    }
    reasons.sort_by_key(|(_, count)| Reverse(*count));
    reasons
}
