//! `hsqueeze --ignore-offline`: offline nodes need no capacity.

use htools::io::SUCCESS;

use crate::program::hsqueeze;

/// Two idle nodes, and an offline node that reports no resources.
const CLUSTER: &str = "\
g|u|preferred||

n1|16384|0|15360|100000|100000|8|M|u|1||N|0|0|1.0
n2|16384|0|16384|100000|100000|8|N|u|1||N|0|0|1.0
n3|?|?|?|?|?|?|Y|u

i1|1024|1024|1|running|Y|n1||rbd||1|-|N


";

#[test]
fn an_offline_node_without_figures_makes_every_cluster_too_full_as_in_the_reference() {
    let ran = hsqueeze(CLUSTER, &[]);
    assert_eq!((ran.status, ran.out.as_str()), (SUCCESS, "'Nodes to online'\n"));
}

#[test]
fn unless_offline_nodes_need_no_room() {
    let ran = hsqueeze(CLUSTER, &["--ignore-offline"]);
    assert_eq!((ran.status, ran.out.as_str()), (SUCCESS, "'Nodes to offline'\nn2\n"));
}

#[test]
fn online_nodes_need_room_whatever_the_options() {
    let ran = hsqueeze(CLUSTER, &["--ignore-offline", "--minimal-resources=1000"]);
    assert_eq!((ran.status, ran.out.as_str()), (SUCCESS, "'Nodes to online'\n"));
}
