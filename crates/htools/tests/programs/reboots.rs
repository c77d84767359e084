//! `hroller`: its output beyond the reference's, and the order of groups.

use htools::io::{FAILURE, SUCCESS};
use serde_json::{Value, json};

use crate::program::hroller;

/// Four nodes with one DRBD instance and one on shared storage.
const CLUSTER: &str = "\
g|u|preferred||

n1.x|16384|512|13824|204800|184320|8|M|u|1||N|0|1|1.0
n2.x|16384|512|15872|204800|184320|8|N|u|1|late|N|0|1|1.0
n3.x|16384|512|14848|204800|204800|8|N|u|1|late|N|0|1|1.0
n4.x|16384|512|15872|204800|204800|8|N|u|1||N|0|1|1.0

i1.x|2048|20480|2|running|Y|n1.x|n2.x|drbd||1|-|N
i2.x|1024|0|1|running|Y|n3.x||ext||1|-|N


";

#[test]
fn the_group_of_the_master_comes_last_and_the_master_at_its_end() {
    let ran = hroller(CLUSTER, &["--print-moves"]);
    assert_eq!(ran.status, SUCCESS, "{}", ran.err);
    assert_eq!(ran.out, "'Node Reboot Groups'\nn2.x\nn3.x,n4.x,n1.x\n  i2.x n2.x\n");
}

#[test]
fn the_document_says_what_the_lines_say() {
    for search in ["--search=exact", "--search=deep"] {
        let ran = hroller(CLUSTER, &["--json", "-v", "-v", "-v", search]);
        assert_eq!(ran.status, SUCCESS, "{}", ran.err);
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        let moved = json!({"instance": "i2.x", "from": ["n3.x"], "to": ["n2.x"]});
        let first = json!({"nodes": ["n2.x"], "moves": []});
        let last = json!({"nodes": ["n3.x", "n4.x", "n1.x"], "moves": [moved]});
        assert_eq!(document, json!({"groups": [first, last]}));
    }
}

#[test]
fn without_master_there_is_no_plan_unless_forced() {
    let text = CLUSTER.replace("|M|", "|N|");
    let refused = hroller(&text, &[]);
    assert_eq!((refused.status, refused.out.as_str()), (FAILURE, ""));
    assert_eq!(refused.err, "Error: No master node found (maybe not supported by backend).\n");
    assert_eq!(hroller(&text, &["--force"]).status, SUCCESS);
}
