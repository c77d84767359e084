//! The leasing service and its client: one process serves on its own port, others send requests to it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::service::{Running, database};
use crate::shell::{command, file, fresh, run};

#[test]
fn a_lease_is_made_watched_changed_and_given_up() {
    let service = Running::start(&database(), &[]);
    assert!(service.says("host list").starts_with("There are no hosts."));
    service.says("host create r1-h01 r1-h02 r1-h03 --set rack=r1");
    service.says("host create r2-h01 --set rack=r2");
    assert_eq!(service.json("host list")["hosts"].as_array().map(Vec::len), Some(4));

    let made = service.says("lease create web --hosts 2-3 --where 'rack=r1 and vcpus>=16' --for 1d --wait");
    assert!(made.contains("ACTIVE") && made.contains("r1-h01, r1-h02, r1-h03"), "{made}");
    service.says("lease create later --hosts 1 --where rack=r2 --start +2d --for 12h");
    assert!(service.says("lease list --status pending").contains("later"));

    let would = service.says("lease create never --hosts 1 --for 1h --where rack=r2 --dry-run");
    assert!(would.contains("Lease never") && would.contains("Dry run: no changes were made."), "{would}");
    assert!(!service.says("lease list").contains("never"));
    let before = service.json("lease show web")["lease"]["end_date"].clone();
    service.says("lease update web --extend-by 1d --dry-run");
    assert_eq!(service.json("lease show web")["lease"]["end_date"], before);
    service.says("lease update web --extend-by 1d");
    assert_ne!(service.json("lease show web")["lease"]["end_date"], before);

    let chart = service.says("calendar --to +4d --plain --by rack");
    assert!(chart.contains("r1:\nr1-h01 [web====") && chart.contains("[later"), "{chart}");
    assert!(service.says("host allocations r2-h01").contains("later"));

    let refused = service.allot("lease create wide --hosts 9 --start +5d --for 2h");
    assert!(refused.out.contains("fewer hosts"), "{}", refused.out);
    assert!(
        refused.err.starts_with("Times are UTC.\nAccept one with `allot lease accept 1`."),
        "{}",
        refused.err
    );
    let offers = service.json("lease offers")["offers"].clone();
    let offer = offers[0]["id"].as_str().expect("it is held");
    assert!(service.says(&format!("lease accept {}", &offer[..8])).contains("4 hosts"));
    assert_eq!(service.json("lease offers")["offers"].as_array().map(Vec::len), Some(0));
    let waits = service.says("lease create patient --hosts 4 --start +5d --for 2h --waitlist");
    assert!(waits.contains("Added patient to the waitlist at position 1"), "{waits}");
    service.says("lease leave-waitlist patient");
    assert_eq!(service.says("lease waitlist"), "The waitlist is empty.\n");
    let flexible = service.says("lease create any --hosts 4 --start +5d --end +6d --for 3h");
    assert!(flexible.contains("lasts 3h"), "{flexible}");
    let recurs = "lease create unreal --hosts 1 --start +8d --for P1DT4H --every 1w --times 2";
    let would = service.says(&format!("{recurs} --dry-run"));
    assert_eq!(would.matches("unreal").count(), 2, "{would}");
    assert!(would.ends_with("Dry run: no changes were made.\n") && !would.contains("elete"), "{would}");
    assert!(!service.says("lease list").contains("unreal"));
    let seconds = service.allot("lease create never --hosts 1 --for 90s");
    assert!(seconds.status == 2 && seconds.err.contains("whole minutes"), "{}", seconds.err);
    let mistyped = service.allot("lease create never --hosts 1 --for 1h --where 'rak in (r1,r2)'");
    assert!(mistyped.err.contains("no host has a property rak; there is rack"), "{}", mistyped.err);
    let weekly = service.says("lease create course --hosts 1 --start +8d --for 2h --every 1w --times 3");
    assert_eq!(weekly.matches("course").count(), 3, "{weekly}");
    let series = service.json("lease list --name course")["leases"][0]["series_id"].clone();
    service.says(&format!("lease delete-series {}", series.as_str().expect("a series")));
    let some = service.allot("lease delete wide nosuch any");
    assert_eq!((some.status, some.out.as_str()), (1, "Lease wide is deleted.\nLease any is deleted.\n"));
    assert!(some.err.contains("nosuch: there is no lease \"nosuch\""), "{}", some.err);
    assert!(some.err.contains("1 of 3 failed"), "{}", some.err);
    service.says("lease delete later");
    service.says("lease update web --end now");
    assert!(service.says("lease wait web --status terminated").contains("TERMINATED"));
    let events = service.says("events");
    for event in
        ["lease.create", "lease.event.start_lease", "lease.update", "lease.event.end_lease", "lease.delete"]
    {
        assert!(events.contains(event), "{event} is missing:\n{events}");
    }
    assert_eq!(service.says("events --last 1").lines().count(), 2);
    let changes = service.says("audit --action lease.create");
    assert_eq!(changes.matches("lease.create").count(), 7, "{changes}");
    assert!(!changes.contains("host.create"), "{changes}");
    assert!(service.says("doctor").contains("agree"));
    service.says("host delete r2-h01");
    assert_eq!(service.stop(), 0);
}

#[test]
fn instances_of_sizes_and_flavors_and_addresses_are_leased() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01 r1-h02");
    service.says("flavor create small --vcpus 2 --memory 4G --disk 20");
    service.says("floatingip create public 203.0.113.110 203.0.113.111");
    let made = service.says(
        "lease create mixed --instances 2 --vcpus 4 --memory 8G --disk 20 --affinity apart --floating-ips 2 \
         --network public --for 2h --wait",
    );
    assert!(made.contains("2 instances of 4 vCPU, 8 GiB, 20 GiB") && made.contains("2 addresses"), "{made}");
    service.says("lease create flavored --instances 3 --flavor small --for 2h");
    let refused = service.allot("lease create more --floating-ips 1 --network public --for 1h");
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("Not enough floating IPs available"), "{}", refused.err);
    assert!(service.says("floatingip show 203.0.113.110").contains("public"));
    // A failure for one item doesn't keep the others from being processed.
    for (words, done) in [
        ("floatingip create public 203.0.113.10 203.0.113.112", "Address 203.0.113.112 can be leased."),
        ("floatingip delete 203.0.113.13 203.0.113.112", "Address 203.0.113.112 is removed."),
        ("flavor delete large small", "Flavor small is deleted."),
        ("leasepool delete nosuch norsuch", ""),
        ("instance delete nosuch norsuch", ""),
    ] {
        let some = service.allot(words);
        let failed = if done.is_empty() { "2 of 2" } else { "1 of 2" };
        assert_eq!((some.status, some.out.trim_end()), (1, done), "{words}: {}", some.err);
        assert!(some.err.contains(&format!("{failed} failed")), "{words}: {}", some.err);
    }
    assert!(service.says("flavor list").contains("There are no flavors"));
    let late = service.allot("lease create never --hosts 1 --end '9999-12-31 23:58'");
    assert!(late.status == 2 && late.err.contains("is later than the latest possible date"), "{}", late.err);
}

#[test]
fn cls_08_instances_run_in_a_lease_and_beside_it() {
    let service = Running::start(&database(), &["--simulated-timing", "immediate"]);
    service.says("host create r1-h01 r1-h02");
    service.says("lease create web --hosts 1 --for 2h --wait");
    let small = "--vcpus 2 --memory 4G --disk 20 --wait";
    let made = service.says(&format!("instance create db --lease web {small}"));
    assert!(made.contains("ACTIVE") && made.contains("4 GiB"), "{made}");
    service.says(&format!("instance create batch {small}"));
    assert_eq!(service.json("instance list")["instances"].as_array().map(Vec::len), Some(2));
    let of_lease = service.says("instance list --lease web");
    assert!(of_lease.contains("db") && !of_lease.contains("batch"), "{of_lease}");
    let places = service.json("instance list")["instances"].clone();
    assert_ne!(places[0]["host"], places[1]["host"]);
    let full = service.allot("instance create huge --lease web --vcpus 500 --memory 4G");
    assert_eq!(full.status, 1);
    assert!(full.err.contains("No host has room for 500 vCPUs"), "{}", full.err);
    service.says("instance delete db batch");
    while service.json("instance list")["instances"] != serde_json::json!([]) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(service.stop(), 0);
}

#[test]
fn fp_lp_pools_are_dealt_with_from_a_command_line() {
    let service =
        Running::start(&database(), &["--simulated-timing", "immediate", "--leases-end-action", "keep"]);
    service.says("host create r1-h01");
    let made = service.says("freepool create fast --spec ssd=yes --end-action migrate");
    assert!(made.contains("ssd=yes") && made.contains("migrate"), "{made}");
    let unknown = service.allot("freepool show slow");
    assert!(
        unknown.err.contains("there is no free pool \"slow\"\nHint: `allot freepool list`"),
        "{}",
        unknown.err
    );
    service.says("freepool add-host fast r1-h02 r1-h03");
    service.says("freepool rename fast quick");
    service.says("freepool update quick --spec rack=r9 --unset ssd");
    let shown = service.says("freepool show quick");
    assert!(shown.contains("rack=r9") && !shown.contains("ssd") && shown.contains("r1-h03"), "{shown}");
    let refused = service.allot("freepool delete quick");
    assert!(refused.status == 1 && refused.err.contains("2 host(s) are in it"), "{}", refused.err);
    let refused = service.allot("freepool add-host quick r1-h01 r1-h04");
    let wanted = "r1-h01 is in the pool freepool: move it with `allot freepool add-host --move quick r1-h01`";
    assert!(refused.status == 1 && refused.err.contains(wanted), "{}", refused.err);
    assert!(
        refused.out.contains("Host r1-h04 is in free pool quick."),
        "the others are tried: {}",
        refused.out
    );
    let number = service.json("host show r1-h04")["host"]["id"].clone();
    service.says("host update r1-h04 --set gpu=yes");
    service.says("freepool add-host --move freepool r1-h04");
    let moved = service.json("host show r1-h04")["host"].clone();
    assert_eq!((&moved["id"], &moved["gpu"]), (&number, &"yes".into()));
    assert!(service.says("freepool show freepool").contains("r1-h04"));
    service.says("host close r1-h01 r1-h04");
    assert_eq!(service.json("host show r1-h01")["host"]["reservable"], false);
    let closed = service.allot("lease create none --hosts 1 --where gpu=yes --for 1h");
    assert!(closed.err.contains("closed for new leases"), "{}", closed.err);
    service.says("host open r1-h04 r1-h01");
    service.says("host delete r1-h04");
    service.says("freepool remove-host quick r1-h03");
    service.says("lease create db --hosts 1 --where free_pool=quick --for 2h --wait");
    assert_eq!(service.json("lease show db")["lease"]["end_action"], "migrate", "as its pool says");
    let pool = service.json("leasepool list")["leasepools"][0]["id"].as_str().expect("an id").to_owned();
    service.says(&format!("leasepool rename {pool} mine"));
    let ratios = service.says("leasepool set mine --cpu-ratio 2 --ram-ratio 1.5");
    assert!(ratios.contains("mine") && ratios.contains("1.5"), "{ratios}");
    let none = service.allot("leasepool add-host mine");
    assert!(none.status == 1 && none.err.contains("1 not matching --where"), "{}", none.err);
    service.says("freepool add-host quick r1-h03");
    service.says("leasepool add-host mine");
    service.says("instance create web --lease db --vcpus 1 --memory 1G --wait");
    let shown = service.says("leasepool show mine");
    assert!(shown.contains("r1-h02") && shown.contains("r1-h03") && shown.contains("web"), "{shown}");
    let none = service.allot("leasepool create more --hosts 2 --for 1h");
    assert!(none.status == 1 && none.err.contains("Not enough hosts available"), "{}", none.err);
    service.says("leasepool delete mine");
    let made = service.says("leasepool create more --hosts 1 --for 1h --for-project physics");
    assert!(made.contains("more"), "{made}");
    let pools = service.json("leasepool list --of-project physics")["leasepools"].clone();
    assert_eq!((pools.as_array().map(Vec::len), &pools[0]["project_id"]), (Some(1), &"physics".into()));
    let lease = pools[0]["lease_id"].as_str().expect("an id").to_owned();
    assert_eq!(
        service.json(&format!("lease show {lease}"))["lease"]["end_action"],
        "keep",
        "as the service says"
    );
    assert_eq!(service.stop(), 0);
}

#[test]
fn cls_07_settings_name_the_region_and_filters_and_leases_are_held_to_them() {
    let custom = r#"NotTheSecond=["!=", "$hypervisor_hostname", "r1-h02"]"#;
    let settings = ["--region", "north", "--filters-custom", custom, "--filters-isolated-hosts", "r1-h03"];
    let service = Running::start(&database(), &settings);
    service.says("host create r1-h01 r1-h02 r1-h03 --set rack=r1");
    let asked = "--region north --host-vcpus 1 --alike --extra-spec 'capabilities:cpu_info:arch=<in> x86'";
    let made = service.says(&format!("lease create web --hosts 1 {asked} --for 1d --wait"));
    let wanted = "region north, at least 1 vCPU, all alike, capabilities:cpu_info:arch=<in> x86";
    assert!(made.contains(wanted) && made.contains("hosts        r1-h01\n"), "{made}");
    let refused = service.allot("lease create more --hosts 1 --for 1d");
    let hint = "0 of 3 hosts left, 1 kept from leases (IsolatedHostsFilter), \
                1 against the operator's rules (NotTheSecond), 1 leased at that time";
    assert!(refused.err.contains(hint), "{}", refused.err);
    let elsewhere = service.allot("lease create more --hosts 1 --region south --for 1d");
    assert!(elsewhere.err.contains("this service is of region north"), "{}", elsewhere.err);
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let database = database();
    let service = Running::start(&database, &[]);
    service.says("host create r1-h01");
    let made = service.json("lease create web --hosts 1 --for 1d --wait");
    assert_eq!(service.stop(), 0);
    let service = Running::start(&database, &[]);
    let lease = service.json("lease show web");
    assert_eq!(lease["lease"]["id"], made["lease"]["id"]);
    assert_eq!(lease["lease"]["status"], "ACTIVE");
}

#[test]
fn a_backup_that_was_made_of_a_running_service_is_a_database_to_go_on_with() {
    let database = database();
    let machines = format!("{}.fleet.json", database.trim_start_matches("sqlite://"));
    let service = Running::start(&database, &[]);
    service.says("host create r1-h01 r1-h02");
    let kept = service.json("lease create kept --hosts 1 --for 1d --wait");
    let copy = fresh("copy.db");
    let backup = || run(command().args(["database", "backup", "--database", &database]).arg(&copy));
    let made = backup();
    assert_eq!((made.status, made.err.as_str()), (0, ""));
    let told = format!("Copied from {database} to {}:\n        1 leases\n        2 hosts\n", copy.display());
    assert!(made.out.starts_with(&told) && made.out.ends_with(" KiB\n"), "{}", made.out);
    service.says("lease create later --hosts 1 --for 1d --wait");
    // An existing copy isn't overwritten, and a missing database isn't copied.
    let again = backup();
    assert!(again.status == 1 && again.err.contains("exists already"), "{}", again.err);
    let missing = run(command().args(["database", "backup", "--database", "sqlite:///nowhere/x.db", "y.db"]));
    assert!(missing.status == 1 && missing.err.contains("/nowhere/x.db"), "{}", missing.err);
    assert_eq!(service.stop(), 0);

    // The machines kept their state, in which a host belongs to a lease that the restored database doesn't
    // know. Nothing may be touched until the operator allows it.
    let restored =
        Running::start(&format!("sqlite://{}", copy.display()), &["--simulated-state-file", &machines]);
    let said = restored.allot("doctor");
    assert!(said.out.contains("1 host (r1-h0") && said.out.contains("--accept fleet"), "{}", said.out);
    assert!(!said.err.contains("--repair"), "{}", said.err);
    let refused = [
        ("doctor --repair", "older than what was last done"),
        ("lease create more --hosts 1 --for 1h", "an operator has looked"),
    ];
    for (refused, wanted) in refused {
        let ran = restored.allot(refused);
        assert!(ran.status != 0 && (ran.out + &ran.err).contains(wanted), "{refused}");
    }
    restored.says("doctor --accept fleet");
    let leases = restored.json("lease list");
    let leases = leases["leases"].as_array().expect("a list");
    assert_eq!(leases.iter().map(|lease| &lease["id"]).collect::<Vec<_>>(), [&kept["lease"]["id"]]);
    assert_eq!(leases[0]["status"], "ACTIVE");
    let more = restored.says("lease create more --hosts 1 --for 1h --wait");
    assert!(more.contains("ACTIVE"), "{more}");
    assert_eq!(restored.stop(), 0);
}

#[test]
fn the_exit_status_says_who_is_at_fault() {
    let service = Running::start("memory", &[]);
    let refused = service.allot("lease create web --hosts 2 --for 1h");
    assert_eq!(refused.status, 1, "{}", refused.err);
    assert!(refused.err.starts_with("Error: Not enough hosts available\n"), "{}", refused.err);
    assert_eq!(service.allot("lease show nosuch").status, 1);
    assert_eq!(service.allot("lease create web --hosts two --for 1h").status, 2);
    assert_eq!(service.allot("lease create web --hosts 2 --forever").status, 2);
    let url = service.url.clone();
    assert_eq!(service.stop(), 0);
    let ran = run(command().args(["lease", "list", "--url", &url]));
    assert_eq!(ran.status, 3);
    assert!(ran.err.contains("cannot reach the service") && ran.err.contains("Hint:"), "{}", ran.err);
}

/// A cloud that receives no requests.
const CLOUD: [&str; 8] = [
    "--fleet",
    "openstack",
    "--openstack-auth-url",
    "http://127.0.0.1:1/v3",
    "--openstack-username",
    "allot",
    "--openstack-secret-file",
    "/dev/null",
];

const FILTER: [&str; 2] = ["--openstack-fence", "allot-filter"];
const TENANT: [&str; 2] = ["--openstack-fence", "tenant"];
const TRAITS: [&str; 2] = ["--openstack-fence", "traits"];

#[test]
fn a_service_that_is_configured_wrongly_says_so_and_does_not_start() {
    let config = file("allot.toml", "\n[leases]\nmax_length = \"7d\"\n");
    let cases: [(&[&str], i32, &str); 19] = [
        (&["--config", &config], 2, "line 3: there is no setting leases.max_length"),
        (
            &["--fleet", "ganeti"],
            2,
            "--fleet: invalid value \"ganeti\": write simulated, openstack, or hooks:FILE",
        ),
        (&["--fleet", "openstack"], 1, "fleet: openstack needs openstack.auth_url"),
        (&["--openstack-fence", "trait"], 2, "write blazar-filter, allot-filter, tenant or traits"),
        (
            &[&CLOUD[..], &["--openstack-lease-flavors", "small"]].concat(),
            1,
            "openstack.lease_flavors: needs",
        ),
        (
            &[&CLOUD[..], &["--preemptible-marks", "flavor,hint"]].concat(),
            1,
            "preemptible.marks: has hint, which the fence blazar-filter cannot see: it sees flavor",
        ),
        (
            &[&CLOUD[..], &["--preemptible-projects", "spot-*"]].concat(),
            1,
            "preemptible.projects: cannot be used with the fence blazar-filter",
        ),
        (&[&CLOUD[..], &["--openstack-open-pool", "true"]].concat(), 1, "openstack.open_pool: needs"),
        (
            &[&CLOUD[..], &TENANT, &["--openstack-open-pool", "true"]].concat(),
            1,
            "openstack.open_pool: needs",
        ),
        (
            &[&CLOUD[..], &TENANT, &["--preemptible-marks", "flavor"]].concat(),
            1,
            "preemptible.marks: has flavor, which the fence tenant cannot see: it sees projects only",
        ),
        (
            &[&CLOUD[..], &TENANT, &["--preemptible-enabled", "true"]].concat(),
            1,
            "preemptible.enabled: needs preemptible.projects with the fence tenant",
        ),
        (
            &[&CLOUD[..], &TENANT, &["--preemptible-projects", "spot-*"]].concat(),
            1,
            "preemptible.projects: has spot-*: with the fence tenant write the identifiers",
        ),
        (
            &[&CLOUD[..], &FILTER, &["--openstack-open-pool", "true", "--preemptible-projects", "spot-*"]]
                .concat(),
            1,
            "preemptible.projects: cannot be used with openstack.open_pool",
        ),
        (
            &[&CLOUD[..], &TRAITS, &["--preemptible-marks", "flavor,image"]].concat(),
            1,
            "preemptible.marks: needs image and volume, or neither",
        ),
        (
            &[&CLOUD[..], &TRAITS, &["--preemptible-marks", "hint"]].concat(),
            1,
            "which the fence traits cannot see: it sees flavor, image, volume",
        ),
        (&["--auth", "keystone:users.toml"], 2, "write local-keystone:users.toml"),
        (&["--listen", "0.0.0.0:0"], 1, "listen on a loopback address"),
        (&["--tls-key", "key.pem"], 1, "tls.key: set tls.certificate as well"),
        (&["--nonsense"], 2, "--nonsense"),
    ];
    for (arguments, status, wanted) in cases {
        let ran = run(command().args(["serve", "--database", "memory"]).args(arguments));
        assert_eq!(ran.status, status, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(wanted), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn the_demonstration_has_leases_past_present_and_coming() {
    let directory = fresh("demo");
    let child = command()
        .args(["demo", "--listen", "127.0.0.1:0", "--directory"])
        .arg(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the binary runs");
    let mut service = Running { child, url: String::new() };
    let mut out = BufReader::new(service.child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    service.url = loop {
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).expect("text"), 0, "it does not serve:\n{text}");
        if let Some(url) = line.split_whitespace().find_map(|word| word.strip_suffix("/v1")) {
            break url.to_owned();
        }
        text.push_str(&line);
    };
    let leases = service.json("lease list");
    let statuses: Vec<&str> = leases["leases"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|lease| lease["status"].as_str())
        .collect();
    for status in ["TERMINATED", "ACTIVE", "PENDING"] {
        assert!(statuses.contains(&status), "{statuses:?}");
    }
    assert!(!statuses.contains(&"ERROR"), "{statuses:?}");
    let chart = service.says("calendar --from -2d --to +3d --by rack --plain");
    assert!(chart.contains("assembly-1") && chart.contains("lattice"), "{chart}");
    assert_eq!(service.stop(), 0);
}

#[test]
fn completions_and_manual_pages_are_made() {
    let ran = run(command().args(["completions", "bash"]));
    assert!(ran.status == 0 && ran.out.contains("complete -F _allot allot "), "{}", ran.err);
    let directory = fresh("man");
    let ran = run(command().arg("man").arg(&directory));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for page in ["allot.1", "allot-serve.1", "allot-lease-create.1", "allot-drain.1"] {
        assert!(directory.join(page).exists(), "{page} is missing");
    }
}

#[test]
fn manual_pages_replace_only_regular_files() {
    let directory = fresh("man");
    fs::create_dir(&directory).expect("a new directory");
    let text = fresh("text");
    fs::write(&text, "mine").expect("a new file");
    fs::write(directory.join("allot-drain.1"), "an older page").expect("a new file");
    let man = || run(command().arg("man").arg(&directory));
    assert_eq!(man().status, 0);
    let page = fs::read_to_string(directory.join("allot-drain.1")).expect("a page");
    assert!(page.contains("drain"), "{page}");
    fs::remove_file(directory.join("allot.1")).expect("a page");
    symlink(&text, directory.join("allot.1")).expect("a link");
    let ran = man();
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("allot.1 is not a regular file: move it away"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&text).ok().as_deref(), Some("mine"));
    let left = fs::read_dir(&directory).expect("a directory").flatten();
    let partial = left.map(|entry| entry.file_name()).find(|name| name.to_string_lossy().contains("partial"));
    assert_eq!(partial, None);
}

#[test]
fn usage_e_is_shown_as_a_table_and_handed_on_as_csv_and_json() {
    let service = Running::start(
        "memory",
        &["--usage-price-lease", "2.5", "--usage-currency", "EUR", "--usage-price-host-hour", "1"],
    );
    service.says("host create r1-h01");
    service.says("lease create first --hosts 1 --for 1h --wait");
    let table = service.says("usage --utc --by project,user");
    assert!(table.contains("PROJECT") && table.contains("HOST HOURS"), "{table}");
    let csv = service.says("usage --from 2020-01-01 --by project,lease --format csv");
    assert!(csv.starts_with("start,end,project_id,lease_id,leases_started,host_hours,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&service.says("usage --format json")).expect("JSON");
    assert_eq!(json["usage"][0]["leases_started"], 1, "{json}");
    let bill = service.says("usage billing");
    assert!(bill.contains("Total: 2.5") && bill.contains("EUR") && bill.contains("host-hour"), "{bill}");
    let lines = service.says("usage billing --format csv");
    assert!(lines.contains(",lease,1,lease,2.5,2.5"), "{lines}");
    let events = service.says("usage events --event lease.started");
    assert!(events.contains("lease.started") && events.contains("ACTIVE"), "{events}");
    assert!(service.says("usage events --after 1000").contains("No matching events."));
    let table = service.says("usage billing -o csv");
    assert!(table.starts_with("FROM,PROJECT,USER,LEASE,NAME,ITEM,QUANTITY,UNIT,PRICE,AMOUNT\n"), "{table}");
    let made = service.says("lease create later --hosts 1 --start +2d --for 2h");
    assert!(made.contains("  cost         4.50 EUR\n"), "{made}");
    let extended = service.says("lease extend later 1h");
    assert!(extended.contains("  cost         5.50 EUR\n"), "{extended}");
    let other = service.says("usage --of-project admn");
    assert!(other.contains("Did you mean project \"admin\"?"), "{other}");
    let wrong = service.allot("usage --by colour");
    assert_eq!(wrong.status, 2, "{}", wrong.out);
}

#[test]
fn values_and_names_that_nothing_has_are_noted_with_those_there_are() {
    let service = Running::start("memory", &[]);
    service.says("host create r1-h01 --set rack=r1");
    for (words, error) in [
        ("--where rack=r9", "Error: no host has rack=r9\nHint: values of rack: r1\n"),
        ("--network unknown", "Error: network \"unknown\" has no addresses for leases\nHint: "),
    ] {
        let ran = service.allot(&format!("availability {words}"));
        assert_eq!((ran.status, ran.err.starts_with(error)), (1, true), "{words}: {}", ran.err);
    }
    service.says("lease create web --hosts 1 --start +1d --for 1h");
    let none = service.says("lease list --name wep");
    assert_eq!(none, "No lease called \"wep\" found. Did you mean \"web\"?\n");
    let unknown = service.allot("lease show wep").err;
    assert!(unknown.contains("Hint: did you mean \"web\"? `allot lease list` shows all"), "{unknown}");
    assert!(service.says("events -o wide").starts_with(" TIME "));
}

#[test]
fn who_was_on_the_hosts_of_a_lease_is_shown() {
    let service = Running::start(&database(), &["--simulated-timing", "immediate"]);
    service.says("host create r1-h01");
    service.says("lease create web --hosts 1 --for 2h --wait");
    // It's recorded shortly after the lease is shown as active.
    let mut asked = (0..100).map(|_| service.says("lease occupancy web"));
    let shown = asked.find(|shown| shown.contains(" held")).expect("it is recorded");
    for text in ["r1-h01", "verified empty", "ongoing", "Observations are recorded until "] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let json = service.json("lease occupancy web");
    let first = &json["occupancy"][0];
    assert!(first["begins"] == true && first["host"] == "r1-h01", "{json}");
    service.says("lease create later --hosts 1 --start +2d --for 1h");
    assert!(service.says("lease occupancy later").contains("No observations are recorded"));
    assert_eq!(service.allot("lease occupancy nosuch").status, 1);
}

#[test]
fn energy_f_plans_reports_and_hosts_are_shown() {
    let service = Running::start(
        "memory",
        &["--energy-enabled", "true", "--simulated-timing", "immediate", "--limits-observe-interval", "1s"],
    );
    service.says("host create r1-h01 r1-h02 --set power_idle_watts=200");
    let until_off = || {
        for _ in 0..100 {
            let hosts = service.says("energy hosts --utc");
            if hosts.contains(" off ") {
                return hosts;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        panic!("no host is ever off");
    };
    let hosts = until_off();
    assert!(hosts.contains("r1-h01") && hosts.contains("300 s") && hosts.contains("200"), "{hosts}");
    let plan = service.says("energy plan --horizon 10h");
    assert!(plan.contains("Pool freepool: 1 of 2 hosts needed at most; 2.00 kWh can be saved."), "{plan}");
    assert!(plan.contains("Hosts are switched as planned.") && plan.contains("later"), "{plan}");
    let report = service.says("energy report --utc");
    assert!(report.contains("freepool") && report.contains("Saved: 0.0"), "{report}");
    assert!(report.contains("BUSY HOST HOURS") && report.contains("Used: 0."), "{report}");
    assert_eq!(service.json("energy plan")["mode"], "on");
    let refused = service.allot("host delete r1-h02");
    assert!(refused.status == 1 && refused.err.contains("power_saving"), "{}", refused.err);
    let wrong = service.allot("energy plan --horizon soon");
    assert_eq!(wrong.status, 1, "{}", wrong.out);
    assert_eq!(service.stop(), 0);
}

#[test]
fn cls_11_a_hints_are_listed_and_given_from_a_command_line() {
    let service =
        Running::start(&database(), &["--simulated-timing", "immediate", "--hints-least-hosts", "2"]);
    service.says("host create r1-h01 r1-h02 --set rack=r1");
    service.says("host create r2-h01 --set rack=r2");
    let listed = service.says("lease hints");
    assert!(listed.contains("same different") && listed.contains("At least 2 hosts must match"), "{listed}");
    let made = service.says(
        "lease create web --hosts 2 --for 2h --hint location=different --hint group=anti-affinity --wait",
    );
    assert!(made.contains("group=anti-affinity, location=different") && made.contains("r2-h01"), "{made}");
    let strict = service.allot("lease create late --hosts 1 --start +3h --for 1h --hint host=r1-h01");
    assert!(strict.status == 1 && strict.err.contains("too strict"), "{}", strict.err);
    let small = "--vcpus 1 --memory 1G --wait";
    service.says(&format!("instance create one --lease web {small}"));
    service.says(&format!("instance create two --lease web --different-host one {small}"));
    let with = service.allot(&format!("instance create three --lease web --same-host one {small}"));
    assert!(with.status == 1 && with.err.contains("No host is as the hint group wants it"), "{}", with.err);
    assert_eq!(service.stop(), 0);
}

#[test]
fn hk_housekeeping_is_dealt_with_from_a_command_line() {
    let settings = [
        "--simulated-timing",
        "immediate",
        "--housekeeping-swaps",
        "1",
        "--housekeeping-maintenance-project",
        "operators",
        "--housekeeping-default-properties",
        r#"["!=", "$gpu", "yes"]"#,
        "--leases-max-stack",
        "2d",
    ];
    let service = Running::start(&database(), &settings);
    service.says("host create r1-h01 --set gpu=yes");
    service.says("host create r1-h02 r1-h03 --set gpu=no");
    let made = service.says("lease create web --hosts 1 --for 1d --wait");
    assert!(made.contains("r1-h02") || made.contains("r1-h03"), "{made}");
    let long = service.allot("lease create more --hosts 1 --start +1d --for 2d");
    assert!(long.status == 1 && long.err.contains("Together with other leases"), "{}", long.err);
    let pool = service.json("leasepool list")["leasepools"][0]["id"].as_str().expect("an id").to_owned();
    let host = if made.contains("r1-h02") { "r1-h02" } else { "r1-h03" };
    service.says(&format!("leasepool swap-host {pool} {host}"));
    let planned = service.says("maintenance plan r1-h01 --freepool freepool --for 2h --before +3d");
    assert!(planned.contains("r1-h01") && planned.contains("r1-h03"), "{planned}");
    assert_eq!(service.json("lease list")["leases"].as_array().map(Vec::len), Some(1));
    service.says("maintenance book r1-h01 --for 2h --margin 5m --not-before +1h");
    let booked = service.says("lease list --of-project operators");
    assert!(booked.contains("maintenance of r1-h01"), "{booked}");
    assert!(service.says("maintenance list").contains(" r1-h01  "));
    let other = service.allot("maintenance cancel r1-h02");
    assert_eq!(other.status, 1, "{}", other.err);
    assert!(other.err.contains("there is no maintenance \"r1-h02\""), "{}", other.err);
    assert_eq!(service.says("maintenance cancel r1-h01"), "Maintenance of r1-h01 is canceled.\n");
    assert_eq!(service.says("maintenance list"), "No maintenance is booked.\n");
    assert_eq!(service.stop(), 0);
}
