//! `drain`, `whatif` and `fit` on small clusters, in text and in JSON.

use serde_json::Value;

use crate::shell::{allot, file};

/// Three nodes. The first has two mirrored instances, one without a mirror, and the mirror of another
/// instance.
const SMALL: &str = "\
g|u|preferred||

n1.x|16384|0|11264|100000|94832|8|M|u|1||N|0|0|1.0
n2.x|16384|0|16384|100000|98976|8|N|u|1||N|0|0|1.0
n3.x|16384|0|15360|100000|96880|8|N|u|1||N|0|0|1.0

db.x|2048|2048|1|running|Y|n1.x|n3.x|drbd||1|-|N
web.x|2048|1024|1|running|Y|n1.x|n2.x|drbd||1|-|N
log.x|1024|1024|1|running|Y|n1.x||plain||1|-|N
old.x|1024|1072|1|running|Y|n3.x|n1.x|drbd||1|-|N


|1024,1,1024,1,1,1|128,1,1024,1,1,1;8192,4,65536,16,8,12|drbd,plain|4.0|32.0
g|1024,1,1024,1,1,1|128,1,1024,1,1,1;8192,4,65536,16,8,12|drbd,plain|4.0|32.0
";

/// Eight mirrors must leave n3. The places of the first ones decide whether the last one fits.
const CROWDED: &str = "\
g0|u0|preferred||

n0.x|16384|0|7680|1000000|732864|32|M|u0|8||N|0|1|1.0
n1.x|16384|1024|6656|200000|163776|32|N|u0|8||N|0|1|1.0
n2.x|16384|1024|9216|400000|240768|16|N|u0|2||N|0|1|1.0
n3.x|16384|0|16384|1000000|794176|16|N|u0|4||N|0|1|1.0

i0.x|2048|51328|1|running|Y|n0.x|n2.x|drbd||1|-|N
i1.x|1024|20608|1|running|Y|n0.x|n3.x|drbd||1|-|N
i2.x|6144|10368|1|running|N|n1.x|n0.x|drbd||1|-|N
i3.x|1024|5120|2|running|Y|n0.x|n2.x|drbd||1|-|N
i4.x|1024|10368|4|running|Y|n1.x|n3.x|drbd||1|-|N
i5.x|2048|20608|1|running|Y|n2.x|n3.x|drbd||1|-|N
i6.x|1024|5120|1|running|Y|n1.x|n2.x|drbd||1|-|N
i7.x|2048|51328|1|running|Y|n0.x|n2.x|drbd||2|-|N
i8.x|2048|5120|2|running|Y|n2.x|n0.x|drbd||2|-|N
i9.x|512|51328|1|running|Y|n0.x|n3.x|drbd||1|-|N
i10.x|2048|20608|1|running|Y|n2.x|n3.x|drbd||2|-|N
i11.x|1024|51328|1|running|Y|n0.x|n3.x|drbd||1|-|N
i12.x|1024|20608|1|running|Y|n0.x|n3.x|drbd||1|-|N
i13.x|512|10368|2|running|Y|n1.x|n3.x|drbd||2|-|N


|1024,1,10240,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|drbd,plain,rbd,ext|4.0|32.0
g0|1024,1,10240,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|drbd,plain|4.0|3.0
";

/// n1 is dead. Two of its instances have their mirrors on n3.
const DEAD: &str = "\
default|u1|preferred||

n1|65536|2048|47104|1000000|849616|16|Y|u1|8||N|0|1|1.0
n2|65536|2048|55296|1000000|949872|16|M|u1|8||N|0|1|1.0
n3|65536|2048|55296|1000000|849616|16|N|u1|8||N|0|1|1.0

v1|8192|50128|4|ERROR_nodeoffline|Y|n1|n3|drbd||1|-|N
v2|8192|50128|4|ERROR_nodeoffline|Y|n1|n3|drbd||1|-|N
v3|8192|50128|4|running|Y|n2|n1|drbd||1|-|N
v4|8192|50128|4|running|Y|n3||plain||1|-|N


|1024,1,1024,1,1,1|128,1,1024,1,1,1;65536,8,1048576,16,8,12|drbd,plain|4.0|32.0
default|1024,1,1024,1,1,1|128,1,1024,1,1,1;65536,8,1048576,16,8,12|drbd,plain|4.0|32.0
";

fn json(arguments: &[&str], status: i32) -> Value {
    let ran = allot(&[arguments, &["--json"]].concat());
    assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).expect("the answer is JSON")
}

/// Removes trailing spaces from all lines.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn drain_lists_the_moves_and_what_stays() {
    let path = file("cluster", SMALL);
    let ran = allot(&["drain", "-t", &path, "n1"]);
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    same_text(&trimmed(&ran.out), include_str!("expected/drain.txt"));
    let document = json(&["drain", "-t", &path, "n1.x"], 1);
    assert_eq!(document["possible"], false);
    assert_eq!(document["stays"][0]["instance"], "log.x");
    assert_eq!(document["steps"].as_array().map(Vec::len), Some(5));
    assert_eq!(document["steps"][0]["commands"][0], "gnt-instance migrate -f db.x");
    assert_eq!(document["steps"][0]["copied_mib"], 0);
}

#[test]
fn a_node_without_anything_unmovable_can_be_emptied() {
    let path = file("cluster", SMALL);
    let document = json(&["drain", "-t", &path, "n3"], 0);
    assert_eq!((&document["possible"], &document["stays"]), (&true.into(), &Value::Array(Vec::new())));
    assert_eq!(allot(&["drain", "-t", &path, "n3"]).status, 0);
}

#[test]
fn pinned_instances_are_named_with_a_remedy_and_nothing_else_stays_for_them() {
    let cluster = SMALL.replace("n1.x|n2.x|drbd||", "n1.x|n2.x|drbd|allot:pinned|");
    let path = file("cluster", &cluster);
    let reason = "it is pinned by the tag allot:pinned";
    let remedy = "take the tag away with gnt-instance remove-tags";
    for (node, role, staying) in
        [("n1.x", "primary", &["web.x", "log.x"][..]), ("n2.x", "secondary", &["web.x"])]
    {
        let document = json(&["drain", "-t", &path, node], 1);
        let stays = document["stays"].as_array().expect("a list");
        let names: Vec<&str> = stays.iter().filter_map(|stay| stay["instance"].as_str()).collect();
        assert_eq!(names, staying, "{document}");
        for (field, value) in [("role", role), ("reason", reason), ("remedy", remedy)] {
            assert_eq!(stays[0][field], value, "{document}");
        }
    }
    let rebooted = allot(&["drain", "-t", &path, "n1", "--reboot"]);
    let line = format!("  web will stop on n1: {reason} ({remedy}, or stop it first)\n");
    assert!(rebooted.out.contains(&line), "{}", rebooted.out);
    let lost = allot(&["whatif", "-t", &path, "--lose", "n1"]);
    let pinned = format!("1 instance stays down because of a pin:\n  web: {reason} ({remedy})\n");
    assert!(lost.out.contains(&pinned), "{}", lost.out);
    let lost = allot(&["whatif", "-t", &path, "--lose", "n1,n2"]);
    assert!(!lost.out.contains("because of a pin"), "nothing can read its data: {}", lost.out);
}

/// If n1 died, the instance `scratch` couldn't be created again, because the policy doesn't allow it any
/// more.
const FORBIDDEN: &str = "\
default|u1|preferred||

n1|65536|2048|30720|2000000|1800000|16|M|u1|8||N|0|1|1.0
n2|65536|2048|55296|2000000|1899744|16|N|u1|8||N|0|1|1.0
n3|65536|2048|55296|2000000|1899744|16|N|u1|8||N|0|1|1.0

scratch|32768|200000|8|running|Y|n1||plain||1|-|N
web|8192|50128|4|running|Y|n2|n3|drbd||1|-|N
db|8192|50128|4|running|Y|n3|n2|drbd||1|-|N


|1024,1,10240,1,1,1|128,1,1024,1,1,1;16384,8,1048576,16,8,12|drbd,plain|4.0|32.0
default|1024,1,10240,1,1,1|128,1,1024,1,1,1;16384,8,1048576,16,8,12|drbd,plain|4.0|32.0
";

#[test]
fn mirrored_instances_are_refused_where_hail_refuses_them() {
    let path = file("cluster", FORBIDDEN);
    let ran = allot(&["fit", "-t", &path, "--disk-template", "drbd", "10g,2g,2", "--count", "4"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    let why = "already now there is no place for scratch (the memory is 32768 MiB, the policy wants 128 to 16384) if \
               n1 died";
    assert!(ran.out.contains(why), "{}", ran.out);
    assert!(ran.out.contains("without the capacity check (hail --no-capacity-checks): "), "{}", ran.out);
    let document = json(&["whatif", "-t", &path, "--add-instances", "2,10g,2g,2,drbd"], 0);
    assert_eq!(document["created"][0]["placed"], serde_json::json!([]), "{document}");
    assert_eq!(document["before"]["room"][0]["count"], 0, "{document}");
}

#[test]
fn a_node_that_fails_n1_stops_nothing_that_hail_would_place() {
    // n3 has no memory left for `old`, which needs none elsewhere because it's stopped.
    let failing = SMALL
        .replace("old.x|1024|1072|1|running|Y|n3.x|n1.x", "old.x|7000|1072|1|ADMIN_down|Y|n3.x|n1.x")
        .replace("n1.x|16384|0|11264", "n1.x|8192|0|3072");
    let path = file("cluster", &failing);
    let summary = json(&["whatif", "-t", &path, "--remove-instance", "log"], 0);
    assert_eq!(summary["before"]["failing_n1"], serde_json::json!(["n1.x"]), "{summary}");
    let document = json(&["fit", "-t", &path, "1g,1g,1", "--count", "1"], 0);
    assert_eq!(document["possible"], true, "{document}");
}

#[test]
fn unallocable_groups_are_named() {
    let path = file("cluster", &SMALL.replace("preferred", "unallocable"));
    let ran = allot(&["fit", "-t", &path, "1g,1g,1"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(ran.out.contains("group g is unallocable: nothing is placed there"), "{}", ran.out);
    assert!(ran.out.contains("gnt-group modify --alloc-policy=preferred g: "), "{}", ran.out);
    assert!(!ran.out.contains("online"), "{}", ran.out);
    // The allocation policy of a group doesn't matter to a request that names the group.
    assert_eq!(allot(&["fit", "-t", &path, "-G", "g", "1g,1g,1"]).status, 0);
}

#[test]
fn what_a_move_does_not_make_worse_is_no_reason_against_it() {
    // Each node has one spindle, and the policy allows two uses of it. n1 already has more.
    let over = SMALL.replace("|4.0|32.0", "|4.0|2.0");
    let path = file("cluster", &over);
    let document = json(&["drain", "-t", &path, "n3", "--reboot"], 0);
    assert_eq!(document["steps"][0]["action"], "f", "{document}");
}

#[test]
fn another_order_is_tried_before_the_answer_is_no() {
    let path = file("cluster", CROWDED);
    let document = json(&["drain", "-t", &path, "n3"], 0);
    assert_eq!(document["steps"].as_array().map(Vec::len), Some(8), "{document}");
}

#[test]
fn what_is_down_starts_before_any_disk_is_copied() {
    let path = file("cluster", DEAD);
    let commands = |ran: &str| -> Vec<String> {
        let lines = ran.lines().map(str::trim).filter(|line| line.starts_with("gnt-instance"));
        lines.map(|line| line.trim_start_matches("gnt-instance ").to_owned()).collect()
    };
    for arguments in [["drain", "-t", &path, "n1", "-C"], ["hbal", "-t", &path, "--repair-only", "-C"]] {
        let ran = allot(&arguments);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let commands = commands(&ran.out);
        assert_eq!(commands[..2], ["failover -f v1", "failover -f v2"], "{}", ran.out);
        assert!(!commands[2..].iter().any(|command| command.starts_with("failover")), "{}", ran.out);
        assert!(ran.out.contains("echo jobset 1, 2 jobs"), "{}", ran.out);
    }
}

#[test]
fn planned_instances_neither_stay_nor_run_again() {
    let planned = SMALL
        .lines()
        .map(|line| if line.starts_with("log.x") { line.replace("|N", "|Y") } else { line.to_owned() } + "\n")
        .collect::<String>();
    let path = file("cluster", &planned);
    let ran = allot(&["drain", "-t", &path, "n1"]);
    assert_eq!(ran.status, 0, "{}", ran.out);
    let told = "; 1 instance is planned for it (log): give it other nodes first.\n";
    assert!(ran.out.lines().next().is_some_and(|line| format!("{line}\n").ends_with(told)), "{}", ran.out);
    assert_eq!(json(&["drain", "-t", &path, "n1"], 0)["planned"], serde_json::json!(["log.x"]));
    let ran = allot(&["whatif", "-t", &path, "--lose", "n1"]);
    assert!(ran.out.contains("1 planned instance needs other nodes: log."), "{}", ran.out);
    assert!(!ran.out.contains("will not run again"), "{}", ran.out);
}

#[test]
fn for_a_reboot_mirrors_stay_and_no_disk_is_copied() {
    let path = file("cluster", SMALL);
    let document = json(&["drain", "-t", &path, "n3", "--reboot"], 0);
    let steps = document["steps"].as_array().expect("a list");
    assert_eq!(steps.len(), 1, "{document}");
    assert_eq!((&steps[0]["instance"], &steps[0]["action"]), (&"old.x".into(), &"f".into()));
}

#[test]
fn without_disk_moves_mirrors_stay_for_that_reason() {
    let path = file("cluster", SMALL);
    let document = json(&["drain", "-t", &path, "n3", "--no-disk-moves"], 1);
    let stays = document["stays"].as_array().expect("a list");
    assert_eq!(stays.len(), 2, "{document}");
    assert!(stays.iter().all(|s| s["role"] == "secondary"), "{document}");
}

#[test]
fn the_saved_cluster_is_the_one_after_the_moves() {
    let (path, saved) = (file("cluster", SMALL), file("saved", ""));
    assert_eq!(allot(&["drain", "-t", &path, "n3", "--save", &saved]).status, 0);
    let again = json(&["drain", "-t", &saved, "n3"], 0);
    assert_eq!(again["steps"], Value::Array(Vec::new()));
    assert_eq!((&again["nodes"][0]["primaries"], &again["nodes"][0]["secondaries"]), (&0.into(), &0.into()));
    // The saved cluster is complete, or hbal would warn.
    let balanced = allot(&["hbal", "-t", &saved]);
    assert_eq!((balanced.status, balanced.err.as_str()), (0, ""));
}

#[test]
fn whatif_compares_before_and_after() {
    let path = file("cluster", SMALL);
    let ran = allot(&["whatif", "-t", &path, "--lose", "n1"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    same_text(&trimmed(&ran.out), include_str!("expected/whatif.txt"));
    let document = json(&["whatif", "-t", &path, "--lose", "n1"], 0);
    assert_eq!(document["rescue"]["lost"][0]["instance"], "log.x");
    assert_eq!(document["rescue"]["restarted"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&document["before"]["online_nodes"], &document["after"]["online_nodes"]),
        (&3.into(), &2.into())
    );
}

#[test]
fn stopped_instances_are_neither_lost_nor_restarted() {
    let stopped = SMALL
        .replace("log.x|1024|1024|1|running", "log.x|1024|1024|1|ADMIN_down")
        .replace("web.x|2048|1024|1|running", "web.x|2048|1024|1|ADMIN_offline");
    let path = file("cluster", &stopped);
    let ran = allot(&["whatif", "-t", &path, "--lose", "n1"]);
    let told = "\n1 instance can be started elsewhere:\n  db on n3 (its mirror)\n\
                1 stopped instance can move to other nodes: web.\n\
                1 stopped instance cannot be started until a node is back: log.\n\
                3 mirrors can be built again on other nodes.\n";
    assert!(ran.out.contains(told), "{}", ran.out);
    let rescue = json(&["whatif", "-t", &path, "--lose", "n1"], 0)["rescue"].take();
    for (field, instances) in [
        ("restarted", &["db.x"][..]),
        ("lost", &[]),
        ("stopped_moved", &["web.x"]),
        ("stopped_lost", &["log.x"]),
    ] {
        let found: Vec<&str> = rescue[field]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["instance"].as_str())
            .collect();
        assert_eq!(found, instances, "{field}: {rescue}");
    }
}

#[test]
fn whatif_changes_what_it_is_told_to() {
    let path = file("cluster", SMALL);
    let changes = [
        "whatif",
        "-t",
        &path,
        "--remove-instance",
        "log",
        "--resize",
        "web:mem=4g,disk=2g,vcpus=2",
        "--add-nodes",
        "2,100g,16g,8",
        "--add-instances",
        "3,1g,1g,1,plain",
        "--rebalance",
    ];
    let document = json(&changes, 0);
    let (before, after) = (&document["before"], &document["after"]);
    assert_eq!((&before["instances"], &after["instances"]), (&4.into(), &6.into()));
    assert_eq!((&before["online_nodes"], &after["online_nodes"]), (&3.into(), &5.into()));
    assert_eq!(document["created"][0]["placed"].as_array().map(Vec::len), Some(3));
    let memory = |summary: &Value| summary["free_memory_mib"].as_i64().expect("a number");
    assert!(memory(after) > memory(before) + 24 * 1024, "{document}");
}

#[test]
fn fit_counts_and_says_what_would_make_room() {
    let path = file("cluster", SMALL);
    let ran = allot(&["fit", "-t", &path, "8g,8g,1"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    same_text(&trimmed(&ran.out), include_str!("expected/fit.txt"));
    let document = json(&["fit", "-t", &path, "8g,8g,1"], 0);
    let count = document["count"].as_u64().expect("a number");
    let places = document["places"].as_array().expect("a list");
    assert_eq!(places.iter().filter_map(|p| p["count"].as_u64()).sum::<u64>(), count);
    let wanted = |n: u64| allot(&["fit", "-t", &path, "8g,8g,1", "--count", &n.to_string()]);
    assert_eq!((wanted(count).status, wanted(count + 1).status), (0, 1));
    // Other pairs of nodes for the first instances might leave more room.
    let no = format!("NO: no way was found for more than {count} of {} instances (", count + 1);
    assert!(wanted(count + 1).out.starts_with(&no), "{}", wanted(count + 1).out);
    let proven = |arguments: &[&str]| {
        let mut all = vec!["fit", "-t", &path, "--count", "9"];
        all.extend(arguments);
        let ran = allot(&all);
        assert!(ran.out.starts_with("NO: only "), "{}", ran.out);
        assert_eq!(json(&all, 1)["proven"], true);
    };
    proven(&["8g,8g,1", "--disk-template", "plain", "--no-capacity-checks"]);
    proven(&["8g,64g,1"]);
    assert_eq!((&document["exact"], &document["proven"]), (&true.into(), &false.into()), "{document}");
    let plain = ["fit", "-t", &path, "1g,1g,1", "--disk-template", "plain", "--no-capacity-checks"];
    assert_eq!(json(&plain, 0)["proven"], true);
    let limited = json(&[&plain[..], &["--limit", "1"]].concat(), 0);
    assert_eq!((&limited["exact"], &limited["proven"]), (&false.into(), &false.into()), "{limited}");
}

#[test]
fn instances_without_memory_are_counted_up_to_a_limit_that_proves_nothing() {
    let unlimited =
        SMALL.replace("|128,1,1024,1,1,1;", "|0,0,0,0,0,0;").replace("drbd,plain|4.0|32.0", "rbd|1e6|1e6");
    let path = file("cluster", &unlimited);
    let fit = ["fit", "-t", &path, "0,0,1", "--no-capacity-checks", "--count", "70000"];
    let ran = allot(&fit);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.starts_with("NO: counting stopped at 65536 of 70000 instances, more may fit ("),
        "{}",
        ran.out
    );
    let document = json(&fit, 1);
    assert_eq!((&document["exact"], &document["proven"]), (&false.into(), &false.into()), "{document}");
    assert_eq!(document["refused"], Value::Null);
}

#[test]
fn a_bound_of_the_policy_is_named_with_what_it_must_be() {
    let path = file("cluster", SMALL);
    let document = json(&["fit", "-t", &path, "1g,9g,1", "--disk-template", "plain"], 1);
    let remedy = &document["remedies"][0];
    assert_eq!((&remedy["bound"], &remedy["to"]), (&"memory-size".into(), &9216.0.into()), "{document}");
    let document = json(&["fit", "-t", &path, "1g,1g,1", "--template", "rbd"], 1);
    let remedy = &document["remedies"][0];
    assert_eq!((&remedy["bound"], &remedy["template"]), (&"disk-templates".into(), &"rbd".into()));
}

#[test]
fn mistakes_are_told_apart_from_a_no() {
    let path = file("cluster", SMALL);
    for (arguments, complaint) in [
        (
            &["drain", "-t", &path, "n9"][..],
            "\"n9\" names no node of the cluster; did you mean n1.x, n2.x or n3.x?",
        ),
        (&["drain", "-t", &path], "NODE"),
        (&["drain", "n1"], "no cluster given; use one of -t, -L, -m, -I and --simulate"),
        (&["drain", "-t", "/nowhere", "n1"], "/nowhere"),
        (&["whatif", "-t", &path], "no change given"),
        (&["whatif", "-t", &path, "--lose", "n9"], "\"n9\" names no node"),
        (&["whatif", "-t", &path, "--remove-instance", "n1"], "\"n1\" names no instance"),
        (&["whatif", "-t", &path, "--resize", "wbe:mem=1g"], "; did you mean web.x?"),
        (&["whatif", "-t", &path, "--resize", "web:cpu=3"], "INSTANCE:mem=SIZE"),
        (
            &["whatif", "-t", &path, "--resize", "web:mem=1g", "--remove-instance", "web"],
            "removed and resized",
        ),
        (&["whatif", "-t", &path, "--add-nodes", "1,1g,1g,1@h"], "group of the cluster; did you mean g?"),
        (&["fit", "-t", &path, "1g,1g"], "DISK,RAM,CPUS"),
        (&["fit", "-t", &path, "1g,1x,1"], "Unknown unit 'x'"),
        (&["fit", "-t", &path, "1g,1g,1", "-G", "h"], "'h' doesn't name exactly one group"),
        (&["fit", "-t", &path, "1g,1g,1", "--disk-template", "tape"], "'tape', pass one of diskless, file"),
        (&["fit", "-t", &path, "1g,1g,1", "--static-kvm-node-memory=9999999999999"], "1099511627776"),
    ] {
        let ran = allot(arguments);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(complaint), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn the_path_of_a_socket_is_attached_as_for_ganetis_programs() {
    for question in [&["drain", "-L/nonexistent/s", "n1"][..], &["fit", "-L/nonexistent/s", "1g,1g,1"]] {
        let ran = allot(question);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("cannot connect to /nonexistent/s: "), "{}", ran.err);
    }
    let ran = allot(&["drain", "-L", "/nonexistent/s", "n1"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("-L/nonexistent/s"), "{}", ran.err);
}

/// A node with exactly as much free memory as it must keep for another node.
const EXACTLY: &str = "\
g|u|preferred||

n1|16384|0|14336|100000|98976|8|M|u|1||N|0|0|1.0
n2|16384|14336|2048|100000|98976|8|N|u|1||N|0|0|1.0

i1|2048|1024|1|running|Y|n1|n2|drbd||1|-|N

";

#[test]
fn the_environment_says_by_which_rule_nodes_fail_n1_at_first() {
    let path = file("cluster", EXACTLY);
    let failing = |rule: &str, options: &[&str]| {
        let line = [&["hcheck", "-t", &path, "--machine-readable", "--no-simulation"], options].concat();
        let ran = crate::shell::run(crate::shell::command().args(line).env("ALLOT_N1_INITIAL", rule));
        let count = ran.out.lines().find_map(|line| line.strip_prefix("HCHECK_INIT_CLUSTER_N1_FAIL="));
        (ran.status, count.map(str::to_owned).unwrap_or(ran.err))
    };
    assert_eq!(failing("reported", &[]), (0, "0".to_owned()));
    assert_eq!(failing("", &[]), (0, "0".to_owned()));
    assert_eq!(failing("recorded", &[]), (0, "1".to_owned()));
    assert_eq!(failing("recorded", &["--n1-initial=reported"]), (0, "0".to_owned()));
    let (status, told) = failing("recoded", &[]);
    assert_eq!(status, 1);
    assert!(told.contains("ALLOT_N1_INITIAL is \"recoded\": write reported or recorded"), "{told}");
    let drain = |rule: &str| {
        let line = ["drain", "-t", &path, "n1", "--json"];
        let ran = crate::shell::run(crate::shell::command().args(line).env("ALLOT_N1_INITIAL", rule));
        serde_json::from_str::<Value>(&ran.out).expect("JSON")["before"]["failing_n1"].clone()
    };
    assert_eq!((drain(""), drain("reported")), (serde_json::json!(["n2"]), serde_json::json!([])));
}

/// Two groups: in the first, both nodes fail N+1; the second is healthy.
const SICK: &str = "\
g1|u1|preferred||
g2|u2|preferred||

a1|16384|0|1024|100000|84640|8|M|u1|1||N|0|0|1.0
a2|16384|0|1024|100000|84640|8|N|u1|1||N|0|0|1.0
b1|16384|0|16384|100000|100000|8|N|u2|1||N|0|0|1.0
b2|16384|0|16384|100000|100000|8|N|u2|1||N|0|0|1.0

i1|15360|15360|1|running|Y|a1|a2|drbd||1|-|N
i2|15360|15360|1|running|Y|a2|a1|drbd||1|-|N

";

#[test]
fn nodes_of_other_groups_are_not_left_out_of_a_named_one() {
    let cluster = SICK
        .replace("g1|u1|preferred", "g1|u1|unallocable")
        .replace("b2|16384|0|16384|100000|100000|8|N", "b2|16384|0|16384|100000|100000|8|Y");
    let path = file("cluster", &cluster);
    let fit = |group: &[&str]| {
        let line = [&["fit", "-t", &path, "1g,1g,1", "--disk-template=drbd"], group].concat();
        json(&line, 1)["refused"].take()
    };
    assert_eq!(fit(&[]), "Not enough online nodes (group g1 is unallocable)");
    assert_eq!(fit(&["--group=g2"]), "Not enough online nodes");
}

#[test]
fn room_is_counted_once_for_a_policy_of_one_size() {
    let path = file("cluster", &SMALL.replace("8192,4,65536,16,8,12", "1024,1,1024,1,1,1"));
    let document = json(&["whatif", "-t", &path, "--remove-instance", "log"], 0);
    assert_eq!(document["before"]["room"].as_array().map(Vec::len), Some(1), "{document}");
    let ran = allot(&["whatif", "-t", &path, "--remove-instance", "log"]);
    assert_eq!(ran.out.matches("  room, ").count(), 1, "{}", ran.out);
    let intervals = "128,1,1024,1,1,1;8192,4,65536,16,8,12;128,1,1024,1,1,1;1024,1,1024,1,1,1";
    let path = file("cluster", &SMALL.replace("128,1,1024,1,1,1;8192,4,65536,16,8,12", intervals));
    let document = json(&["whatif", "-t", &path, "--remove-instance", "log"], 0);
    assert_eq!(document["before"]["room"][1]["shape"]["memory_mib"], 8192, "{document}");
}

#[test]
fn one_group_that_fails_n1_need_not_stop_all_others() {
    let path = file("cluster", SICK);
    // If a request names a group, only that group has to survive failures.
    assert_eq!(allot(&["fit", "-t", &path, "-G", "g2", "1g,1g,1"]).status, 0);
    let fit = ["fit", "-t", &path, "1g,1g,1"];
    let refused = allot(&fit);
    assert_eq!(refused.status, 1);
    assert!(
        refused.out.contains("without the capacity check (hail --no-capacity-checks): ")
            && refused.out.contains(" more in g2\n"),
        "{}",
        refused.out
    );
    for option in ["--independent-groups", "--no-capacity-checks"] {
        let document = json(&[&fit[..], &[option]].concat(), 0);
        assert!(document["count"].as_u64() > Some(10), "{document}");
        let document = json(&["whatif", "-t", &path, option, "--add-instances", "2,1g,1g,1"], 0);
        assert_eq!(document["created"][0]["placed"].as_array().map(Vec::len), Some(2), "{document}");
    }
    // The template of most instances.
    assert_eq!(json(&fit, 1)["shape"]["disk_template"], "drbd");
}

#[test]
fn an_ambiguous_name_is_told_with_what_it_could_be() {
    let twice = SMALL.replace("\n\ndb.x", "\nn1.y|16384|0|16384|100000|100000|8|N|u|1||N|0|0|1.0\n\ndb.x");
    let ran = allot(&["drain", "-t", &file("cluster", &twice), "n1"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("\"n1\" names 2 nodes of the cluster (n1.x, n1.y)"), "{}", ran.err);
    let ran = allot(&["whatif", "-t", &file("cluster", SMALL), "--add-nodes", "-1,1g,1g,1"]);
    assert!(ran.err.contains("'-1,1g,1g,1': count: expected a whole number from 0"), "{}", ran.err);
}

#[test]
fn every_question_has_help() {
    for question in ["drain", "whatif", "fit"] {
        let ran = allot(&["help", question]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        assert!(ran.out.contains("Exit status") && ran.out.contains("--json"), "{}", ran.out);
        assert!(allot(&["help"]).out.contains(question));
    }
}

/// Asserts that a text is as expected. If not, prints both in full.
fn same_text(text: &str, expected: &str) {
    assert!(text == expected, "got:\n{text}\nexpected:\n{expected}");
}
