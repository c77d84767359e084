//! Tables of nodes, instances and metrics, and warnings about a cluster (HT-tables).

use std::fmt::Write;

use cluster::{Cluster, Figures, Inconsistency, InstanceIdx, Node, NodeIdx, NodeState};

use crate::number::{fixed, show};
use crate::options::FieldSelection;
use crate::table::format_table;

const GIB: i64 = 1024;

/// Fields of nodes that are shown by default.
const DEFAULT_FIELDS: [&str; 22] = [
    "status", "name", "tmem", "nmem", "imem", "xmem", "fmem", "umem", "rmem", "tdsk", "fdsk", "tcpu", "ucpu",
    "pcnt", "scnt", "pfmem", "pfdsk", "rcpu", "cload", "mload", "dload", "nload",
];

/// Source of the values in a row.
struct Row<'a> {
    cluster: &'a Cluster,
    index: NodeIdx,
    node: &'a Node,
    state: &'a NodeState,
    figures: &'a Figures,
    /// A new instance without an index, shown as -1.
    unnumbered: Option<InstanceIdx>,
}

/// A column of the table of nodes.
struct Column {
    field: &'static str,
    header: &'static str,
    numeric: bool,
    value: fn(&Row<'_>) -> String,
}

const fn column(
    field: &'static str,
    header: &'static str,
    numeric: bool,
    value: fn(&Row<'_>) -> String,
) -> Column {
    Column { field, header, numeric, value }
}

static COLUMNS: &[Column] = &[
    column("idx", "Index", true, |r| format!("{:4}", r.index.0)),
    column("name", "Name", false, |r| r.cluster.alias(&r.node.name).to_owned()),
    column("fqdn", "Name", false, |r| r.node.name.clone()),
    column("status", "F", false, |r| status(r).to_owned()),
    column("tmem", "t_mem", true, |r| float(5, 0, r.node.total_memory)),
    column("nmem", "n_mem", true, |r| int(5, r.node.node_memory)),
    column("imem", "i_mem", true, |r| int(5, r.figures.instance_memory)),
    column("xmem", "x_mem", true, |r| int(5, r.node.missing_memory)),
    column("fmem", "f_mem", true, |r| int(5, r.node.reported_free_memory)),
    column("umem", "u_mem", true, |r| int(5, r.figures.unallocated_memory(r.node))),
    column("rmem", "r_mem", true, |r| int(5, r.figures.reserved_memory)),
    column("amem", "a_mem", true, |r| int(5, r.figures.available_memory(r.node))),
    column("tdsk", "t_dsk", true, |r| float(5, 0, r.node.total_disk / GIB as f64)),
    column("fdsk", "f_dsk", true, |r| int(5, r.figures.free_disk.div_euclid(GIB))),
    column("tcpu", "pcpu", true, |r| float(4, 0, r.node.total_cpus)),
    column("ucpu", "vcpu", true, |r| int(4, r.figures.used_vcpus)),
    column("pcnt", "pcnt", true, |r| int(3, r.state.primaries.len() as i64)),
    column("scnt", "scnt", true, |r| int(3, r.state.secondaries.len() as i64)),
    column("plist", "primaries", true, |r| latest_first(&r.state.primaries, r.unnumbered)),
    column("slist", "secondaries", true, |r| latest_first(&r.state.secondaries, r.unnumbered)),
    column("pfmem", "p_fmem", true, |r| float(6, 4, r.figures.free_memory_ratio(r.node))),
    column("pfdsk", "p_fdsk", true, |r| float(6, 4, r.figures.free_disk_ratio(r.node))),
    column("rcpu", "r_cpu", true, |r| float(5, 2, r.figures.vcpu_ratio(r.node))),
    column("cload", "lCpu", true, |r| float(5, 3, r.figures.load[0])),
    column("mload", "lMem", true, |r| float(5, 3, r.figures.load[1])),
    column("dload", "lDsk", true, |r| float(5, 3, r.figures.load[2])),
    column("nload", "lNet", true, |r| float(5, 3, r.figures.load[3])),
    column("ptags", "PrimaryTags", false, exclusion_tags),
    column("peermap", "PeerMap", false, peers),
    column("spindle_count", "NodeSpindles", true, |r| r.node.total_spindles.to_string()),
    column("hi_spindles", "MaxSpindles", true, |r| show(r.node.max_spindles)),
    column("inst_spindles", "InstSpindles", true, |r| show(r.figures.instance_spindles)),
];

static UNKNOWN: Column = column("", "<unknown field>", false, |_| "<unknown field>".to_owned());

fn float(width: usize, decimals: usize, value: f64) -> String {
    format!("{:>width$}", fixed(value, decimals))
}

fn int(width: usize, value: i64) -> String {
    format!("{value:width$}")
}

fn status(row: &Row<'_>) -> &'static str {
    match (row.node.offline, row.figures.fails_n1) {
        (true, _) => "-",
        (false, true) => "*",
        (false, false) => " ",
    }
}

fn latest_first(list: &[InstanceIdx], unnumbered: Option<InstanceIdx>) -> String {
    let number = |index: &InstanceIdx| match unnumbered {
        Some(new) if new == *index => "-1".to_owned(),
        _ => index.0.to_string(),
    };
    format!("[{}]", list.iter().rev().map(number).collect::<Vec<_>>().join(","))
}

fn exclusion_tags(row: &Row<'_>) -> String {
    let counts = row.state.exclusion_tags.iter();
    let mut counts: Vec<_> = counts.map(|(tag, count)| (row.cluster.tag_name(*tag), count)).collect();
    counts.sort_unstable();
    counts.iter().map(|(tag, count)| format!("{tag}={count}")).collect::<Vec<_>>().join(",")
}

/// Sorted by reserve, largest first. For equal reserves, the peer of the most recently added secondary comes
/// first.
fn peers(row: &Row<'_>) -> String {
    let mirrors = &row.state.secondaries;
    let latest = |peer| mirrors.iter().rposition(|i| row.cluster.instance(*i).primary == peer);
    let mut peers: Vec<_> =
        row.state.peers.iter().map(|&(peer, memory)| (memory, latest(peer), peer.0)).collect();
    peers.sort_unstable_by(|a, b| b.cmp(a));
    let pairs: Vec<String> = peers.iter().map(|(memory, _, node)| format!("({node},{memory})")).collect();
    format!("[{}]", pairs.join(","))
}

fn columns(fields: &FieldSelection) -> Vec<&'static Column> {
    let default = || DEFAULT_FIELDS.into_iter();
    let names: Vec<&str> = match fields {
        FieldSelection::Default => default().collect(),
        FieldSelection::DefaultAnd(more) => default().chain(more.iter().map(String::as_str)).collect(),
        FieldSelection::Only(fields) => fields.iter().map(String::as_str).collect(),
    };
    names.iter().map(|name| COLUMNS.iter().find(|c| c.field == *name).unwrap_or(&UNKNOWN)).collect()
}

/// Table of nodes, one row each in the given order, without a title.
pub fn node_table(cluster: &Cluster, nodes: &[NodeIdx], fields: &FieldSelection) -> String {
    node_table_with(cluster, nodes, fields, None)
}

/// Like [`node_table`]. The instance `unnumbered` is new and shown with the index -1.
pub fn node_table_with(
    cluster: &Cluster,
    nodes: &[NodeIdx],
    fields: &FieldSelection,
    unnumbered: Option<InstanceIdx>,
) -> String {
    let columns = columns(fields);
    let headers: Vec<&str> = columns.iter().map(|c| c.header).collect();
    let numeric: Vec<bool> = columns.iter().map(|c| c.numeric).collect();
    let row = |&index: &NodeIdx| -> Vec<String> {
        let (node, state) = (cluster.node(index), cluster.state(index));
        let row = Row { cluster, index, node, state, figures: &state.figures, unnumbered };
        columns.iter().map(|c| (c.value)(&row)).collect()
    };
    let rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    format_table(Some(&headers), &rows, &numeric, 0)
}

/// Table of instances and their nodes, one row each in the given order, without a title.
pub fn instance_table(cluster: &Cluster, instances: &[InstanceIdx]) -> String {
    let headers = [
        "F", "Name", "Pri_node", "Sec_node", "Auto_bal", "vcpu", "mem", "dsk", "lCpu", "lMem", "lDsk", "lNet",
    ];
    let numeric: Vec<bool> = (0..headers.len()).map(|position| position > 4).collect();
    let row = |&index: &InstanceIdx| {
        let instance = cluster.instance(index);
        let node_name = |node: NodeIdx| cluster.node(node).name.clone();
        let mut row = vec![
            if instance.status.running() { "R" } else { " " }.to_owned(),
            instance.name.clone(),
            node_name(instance.primary),
            instance.secondary.map(node_name).unwrap_or_default(),
            if instance.auto_balance { "Y" } else { "N" }.to_owned(),
            int(3, instance.vcpus),
            int(5, instance.memory),
            int(5, instance.disk.div_euclid(GIB)),
        ];
        row.extend(instance.utilisation.iter().map(|u| float(5, 3, *u)));
        row
    };
    let rows: Vec<Vec<String>> = instances.iter().map(row).collect();
    format_table(Some(&headers), &rows, &numeric, 0)
}

/// Warnings about inconsistent nodes; empty if there are none.
pub fn inconsistency_warnings(cluster: &Cluster, inconsistencies: &[Inconsistency]) -> String {
    let mut out = String::new();
    if inconsistencies.is_empty() {
        return out;
    }
    out.push_str("Warning: cluster has inconsistent data:\n");
    for inconsistency in inconsistencies {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "  - node {} is missing {} MB ram and {} GB disk",
            cluster.node(inconsistency.node).name,
            inconsistency.missing_memory,
            inconsistency.missing_disk.div_euclid(GIB),
        );
    }
    out.push('\n');
    out
}

/// Table of score components: name, value and weight.
pub fn metric_table(values: &[(&'static str, f64, f64)]) -> String {
    let row = |(name, value, weight): &(&'static str, f64, f64)| {
        vec![(*name).to_owned(), fixed(*value, 8), format!("x{}", fixed(*weight, 2))]
    };
    let rows: Vec<Vec<String>> = values.iter().map(row).collect();
    format_table(Some(&["Field", "Value", "Weight"]), &rows, &[false, true, true], 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;
    use cluster::LoadOptions;

    const CLUSTER: &str = "\
g1|u1|preferred||

n1.x.y|16384|512|13824|204800|143360|8|M|u1|1|rack:r1|N|0|1|1.0
n2.x.y|16384|512|0|204800|143360|8|N|u1|2||N|0|1|1.0
n3.x.y|?|0|0|0|0|0|N|u1

i1.x.y|2048|40960|2|running|Y|n1.x.y|n2.x.y|drbd|svc:b,svc:a|1|-|N
i2.x.y|1024|10239|12|ADMIN_down|N|n1.x.y||plain|svc:a|3|-|N

htools:iextags:svc

";

    fn load() -> (Cluster, Vec<Inconsistency>) {
        text::parse(CLUSTER).unwrap().load(&LoadOptions::default()).unwrap()
    }

    #[test]
    fn nodes() {
        let (cluster, _) = load();
        let nodes: Vec<_> = cluster.node_indices().collect();
        let check = |fields: &str, expect: &str| {
            assert_eq!(node_table(&cluster, &nodes, &FieldSelection::from_argument(Some(fields))), expect);
        };
        check(
            "",
            " F Name t_mem n_mem i_mem x_mem f_mem u_mem r_mem t_dsk f_dsk pcpu vcpu pcnt scnt p_fmem p_fdsk \
             r_cpu  lCpu  lMem  lDsk  lNet
   n1   16384   512  2048     0 13824 13824     0   200   140    8   15    2    0 0.8438 0.7000  \
             1.88 2.000 2.000 2.000 2.000
 * n2   16384   512     0 15872     0     0  2048   200   140    8    1    0    1 0.0000 0.7000  \
             0.12 0.000 0.000 1.000 0.000
 - n3       0     0     0     0     0     0     0     0     0    0    0    0    0    NaN 1.0000   \
             NaN 0.000 0.000 0.000 0.000
",
        );
        check(
            "idx,fqdn,amem,plist,slist,ptags,peermap",
            " Index Name   a_mem primaries secondaries PrimaryTags     PeerMap   
     0 n1.x.y 13824     [1,0]          [] svc:a=2,svc:b=1 []        
     1 n2.x.y     0        []         [0]                 [(0,2048)]
     2 n3.x.y     0        []          []                 []        
",
        );
        check(
            "spindle_count,hi_spindles,inst_spindles,x",
            " NodeSpindles MaxSpindles InstSpindles <unknown field>
            1        32.0          4.0 <unknown field>
            2        64.0          1.0 <unknown field>
            0         0.0          0.0 <unknown field>
",
        );
        assert!(
            node_table(&cluster, &[], &FieldSelection::from_argument(Some("+x")))
                .ends_with(" lNet <unknown field>\n")
        );
    }

    #[test]
    fn instances() {
        let (cluster, _) = load();
        let instances: Vec<_> = cluster.instance_indices().collect();
        assert_eq!(
            instance_table(&cluster, &instances),
            " F Name   Pri_node Sec_node Auto_bal vcpu   mem   dsk  lCpu  lMem  lDsk  lNet
 R i1.x.y n1.x.y   n2.x.y   Y           2  2048    40 1.000 1.000 1.000 1.000
   i2.x.y n1.x.y            N          12  1024     9 1.000 1.000 1.000 1.000
"
        );
    }

    #[test]
    fn warnings() {
        let (cluster, inconsistencies) = load();
        assert_eq!(
            inconsistency_warnings(&cluster, &inconsistencies),
            "Warning: cluster has inconsistent data:
  - node n2.x.y is missing 15872 MB ram and 20 GB disk
  - node n1.x.y is missing 0 MB ram and 10 GB disk

"
        );
        assert_eq!(inconsistency_warnings(&cluster, &[]), "");
    }

    #[test]
    fn metrics() {
        assert_eq!(metric_table(&[]), "   Field Value Weight\n");
        assert_eq!(
            metric_table(&[("free_mem_cv", 0.5, 0.5), ("offline_all_cnt", 2.0, 4.0)]),
            "   Field                Value Weight
   free_mem_cv     0.50000000  x0.50
   offline_all_cnt 2.00000000  x4.00
"
        );
    }
}
