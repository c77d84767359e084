//! Unknown names of nodes, instances and groups are answered with similar ones.

use htools::io::FAILURE;

use crate::failure_tags::text;
use crate::program::{Ran, hbal, hcheck, hroller};

const NODES: [(&str, &str); 3] = [("node1.x", ""), ("node2.x", ""), ("other.x", "")];
const INSTANCES: [(&str, &str, &str, &str); 2] = [("web.x", "node1.x", "", ""), ("db.x", "node2.x", "", "")];

fn refused(ran: &Ran) -> &str {
    assert_eq!((ran.status, ran.out.as_str()), (FAILURE, ""), "{}", ran.err);
    ran.err.trim_end()
}

#[test]
fn similar_names_are_suggested_wherever_a_name_is_taken() {
    let cluster = text(&[], &NODES, &INSTANCES);
    let ran = hcheck(&cluster, &["-O", "node3"]);
    assert_eq!(
        refused(&ran),
        "Error: wrong node name(s) set as offline: node3; did you mean node1.x or node2.x?"
    );
    for option in ["--select-instances=wbe,db", "--exclude-instances=wbe,db"] {
        let ran = hbal(&cluster, &[option]);
        assert_eq!(
            refused(&ran),
            "Error: failed to load data, aborting: Unknown instance(s): [\"wbe\"]; did you mean web.x?"
        );
    }
    let ran = hroller(&cluster, &["--force", "-G", "h"]);
    assert!(ran.err.ends_with("Error: Cannot find target group h; did you mean g?\n"), "{}", ran.err);
    let ran = hroller(&cluster, &["--force", "-G", "elsewhere"]);
    assert!(ran.err.ends_with("Error: Cannot find target group elsewhere\n"), "{}", ran.err);
}
