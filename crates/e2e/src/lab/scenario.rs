//! The cluster's scenario: every way in which Ganeti calls an iallocator, and every tool on live data.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail, ensure};
use chores::tally::Tally;
use differential::compare;
use differential::known;
use differential::mask::mask;

use super::ganeti::cluster::Lab;

/// Runs the scenario, and counts differences from the reference.
///
/// # Errors
///
/// The cluster itself failed to do its part.
pub fn run(lab: &Lab) -> Result<Tally> {
    allocate(lab)?;
    relocate(lab)?;
    exclusive_storage(lab)?;
    change_group(lab)?;
    let mut tally = compare_tools(lab, "after allocations")?;
    balance(lab, &mut tally)?;
    repair(lab, &mut tally)?;
    Ok(tally)
}

const CREATE: [&str; 7] =
    ["gnt-instance", "add", "-o", "noop", "--no-ip-check", "--no-name-check", "--no-wait-for-sync"];

fn create(lab: &Lab, words: &[&str]) -> Result<()> {
    lab.must(&[&CREATE[..], words].concat()).map(drop)
}

fn allocate(lab: &Lab) -> Result<()> {
    lab.tell("groups");
    lab.must(&["gnt-group", "add", "g2"])?;
    lab.must(&["gnt-group", "assign-nodes", "g2", "node5", "node6"])?;
    lab.tell("instance add, drbd");
    for name in ["vm1", "vm2"] {
        create(lab, &["-g", "default", "-t", "drbd", "-s", "10G", "-B", "memory=2048,vcpus=2", name])?;
    }
    lab.tell("batch-create");
    let member = |name: &str| {
        format!(
            r#"{{"instance_name":"{name}","mode":"create","disk_template":"drbd","disks":[{{"size":10240}}],
            "nics":[{{}}],"beparams":{{"memory":1024,"vcpus":1}},"os_type":"noop","hypervisor":"fake",
            "ip_check":false,"name_check":false}}"#
        )
    };
    let batch = lab.file("batch.json", &format!("[{},{}]", member("vm5"), member("vm6")))?;
    lab.must(&["gnt-instance", "batch-create", &batch])?;
    ensure!(!lab.instance("pnode", "vm6")?.is_empty(), "vm6 was not placed");
    lab.tell("instance add, dry run");
    create(lab, &["--dry-run", "-t", "plain", "-s", "10G", "-B", "memory=2048,vcpus=2", "vm9"])
}

fn relocate(lab: &Lab) -> Result<()> {
    lab.tell("replace-disks");
    let before = lab.instance("snodes", "vm1")?;
    lab.must(&["gnt-instance", "replace-disks", "-I", ".", "vm1"])?;
    ensure!(lab.instance("snodes", "vm1")? != before, "vm1 kept its secondary {before}");
    lab.tell("node evacuate, primaries");
    let node = lab.instance("pnode", "vm2")?;
    lab.must(&["gnt-node", "evacuate", "-f", "-p", "-I", ".", &node])?;
    ensure!(lab.instance("pnode", "vm2")? != node, "vm2 is still on {node}");
    lab.tell("node evacuate, secondaries");
    let node = lab.instance("snodes", "vm2")?;
    lab.must(&["gnt-node", "evacuate", "-f", "-s", "-I", ".", &node])?;
    ensure!(lab.instance("snodes", "vm2")? != node, "vm2 is still mirrored on {node}");
    lab.tell("conversion to drbd");
    create(lab, &["-g", "default", "-t", "plain", "-s", "10G", "-B", "memory=2048,vcpus=2", "vm3"])?;
    lab.must(&["gnt-instance", "shutdown", "vm3"])?;
    lab.must(&["gnt-instance", "modify", "-t", "drbd", "-I", ".", "--no-wait-for-sync", "vm3"])?;
    ensure!(!lab.instance("snodes", "vm3")?.is_empty(), "vm3 has no secondary");
    lab.must(&["gnt-instance", "startup", "vm3"]).map(drop)
}

fn exclusive_storage(lab: &Lab) -> Result<()> {
    lab.tell("exclusive storage");
    lab.must(&["gnt-group", "modify", "--node-parameters", "exclusive_storage=true", "g2"])?;
    let disk = "0:size=10G,spindles=1";
    create(lab, &["-t", "plain", "-g", "g2", "--disk", disk, "-B", "memory=1024,vcpus=1", "vm4"])?;
    let spindles = lab.instance("disk.spindles", "vm4")?;
    ensure!(spindles == "[1]", "vm4 has spindles {spindles}");
    lab.must(&["gnt-instance", "remove", "-f", "vm4"])?;
    lab.must(&["gnt-group", "modify", "--node-parameters", "exclusive_storage=false", "g2"]).map(drop)
}

fn change_group(lab: &Lab) -> Result<()> {
    lab.tell("change-group");
    lab.must(&["gnt-instance", "change-group", "--to", "g2", "vm1"])?;
    ensure!(lab.instance("pnode.group", "vm1")? == "g2", "vm1 is not in g2");
    lab.tell("group evacuate");
    lab.must(&["gnt-group", "evacuate", "--to", "default", "g2"])?;
    ensure!(lab.instance("pnode.group", "vm1")? == "default", "vm1 is still in g2");
    Ok(())
}

/// Runs every tool on live data, the reference's and ours on the same state.
fn compare_tools(lab: &Lab, when: &str) -> Result<Tally> {
    lab.tell(&format!("tools {when}"));
    let runs: &[&[&str]] = &[
        &["hbal", "-L", "-G", "default", "-C", "-p"],
        &["hbal", "-m", "node1", "-G", "default", "-C", "-p"],
        &["hbal", "-L", "-G", "g2"],
        &["hinfo", "-L", "-vv", "-p", "--print-instances"],
        &["hinfo", "-m", "node1"],
        &["hcheck", "-L", "--machine-readable"],
        &["hcheck", "-m", "node1"],
        &["hspace", "-L", "-l", "20", "--machine-readable"],
        &["hspace", "-m", "node1", "-l", "20"],
        &["hroller", "-L", "--print-moves"],
        &["hroller", "-m", "node1", "-G", "default"],
        &["hsqueeze", "-L", "-C"],
        &["harep", "-L", "--dry-run"],
    ];
    let mut tally = Tally::default();
    for run in runs {
        let (program, arguments) = (run[0], &run[1..]);
        // Masked below: a repair that would be submitted has a random name and a timestamp.
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let theirs = lab.ran(&[&[format!("/usr/bin/{program}").as_str()], arguments].concat())?;
        let mine = lab.ran(&[&[lab.program(program).as_str()], arguments].concat())?;
        let found = compare::bytes(
            "exit status",
            format!("{:?}", theirs.status).as_bytes(),
            format!("{:?} {}", mine.status, if mine.status == theirs.status { "" } else { &mine.stderr })
                .trim_end()
                .as_bytes(),
        );
        let found = found.or_else(|| {
            compare::bytes(
                "standard output",
                mask(&theirs.stdout, since).as_bytes(),
                mask(&mine.stdout, since).as_bytes(),
            )
        });
        tally.count(found.is_none());
        if let Some(found) = found {
            println!("{}\n{found}", run.join(" "));
        }
    }
    scan(lab, &mut tally)?;
    println!("tools {when}: {tally}");
    Ok(tally)
}

/// Compares the files that `hscan` writes, and the table that it prints.
fn scan(lab: &Lab, tally: &mut Tally) -> Result<()> {
    let reference = "/usr/bin/hscan".to_owned();
    for arguments in [&["-L"][..], &["node1"]] {
        let mut results = Vec::new();
        for program in [&reference, &lab.program("hscan")] {
            let directory = lab.empty_directory("scan")?;
            let place = directory.to_string_lossy().into_owned();
            let ran = lab.ran(&[&[program.as_str(), "-d", &place], arguments].concat())?;
            results.push((ran.status, ran.stdout, files(&directory)?));
        }
        let [(_, _, theirs), (_, _, ours)] = [&results[0], &results[1]];
        let files = theirs.len() == ours.len()
            && theirs.iter().zip(ours).all(|((name, theirs), (our_name, ours))| {
                name == our_name && known::same_file(name, theirs.as_bytes(), ours.as_bytes())
            });
        let equal = files && results[0].0 == results[1].0 && results[0].1 == results[1].1;
        tally.count(equal);
        if !equal {
            println!(
                "hscan {}\n  reference: {:?}\n  ours: {:?}",
                arguments.join(" "),
                results[0],
                results[1]
            );
        }
    }
    Ok(())
}

fn files(directory: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?));
    }
    files.sort();
    Ok(files)
}

/// Creates an imbalance, and has our `hbal` fix it through the master daemon.
fn balance(lab: &Lab, tally: &mut Tally) -> Result<()> {
    lab.tell("imbalance");
    for name in ["vm21", "vm22", "vm23"] {
        let shape = ["-t", "drbd", "-n", "node1:node2", "-s", "20G", "-B", "memory=3072,vcpus=2", name];
        create(lab, &shape)?;
    }
    *tally += compare_tools(lab, "with an imbalance")?;
    lab.tell("hbal -L -X");
    let before = lab.must(&[&lab.program("hbal"), "-L", "-G", "default"])?;
    ensure!(before.contains("Cluster score improved"), "nothing to balance:\n{before}");
    let done = lab.must(&[&lab.program("hbal"), "-L", "-G", "default", "-X"])?;
    ensure!(done.contains("Got job IDs"), "no jobs were submitted:\n{done}");
    println!("{}", done.trim_end());
    let after = lab.must(&[&lab.program("hbal"), "-L", "-G", "default"])?;
    tally.count(after.contains("No solution found") || after.contains("well balanced"));
    Ok(())
}

/// Takes a node offline, and has our `harep` repair the instances that lost their mirror.
fn repair(lab: &Lab, tally: &mut Tally) -> Result<()> {
    lab.tell("harep");
    let (broken, node) = mirrored_off_the_master(lab)?;
    let primaries = lab.must(&["gnt-node", "list", "--no-headers", "-o", "pinst_list", &node])?;
    for name in primaries.trim().split(',').filter(|name| !name.is_empty()) {
        lab.must(&["gnt-instance", "migrate", "-f", name])?;
    }
    lab.must(&["gnt-cluster", "add-tags", "ganeti:watcher:autorepair:fix-storage"])?;
    lab.must(&["gnt-node", "modify", "-O", "yes", &node])?;
    *tally += compare_tools(lab, "with a node offline")?;
    lab.tell("harep repairs");
    // The first run submits the jobs; the second one, after they have ended, records their success.
    let first = lab.must(&[&lab.program("harep"), "-L", "--job-delay", "0"])?;
    ensure!(first.contains("Executing"), "no instance was repaired:\n{first}");
    for _ in 0..60 {
        let jobs = lab.must(&["gnt-job", "list", "--no-headers", "-o", "status"])?;
        if jobs.lines().all(|status| !matches!(status.trim(), "queued" | "waiting" | "running")) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let second = lab.must(&[&lab.program("harep"), "-L", "--job-delay", "0"])?;
    println!("{}", second.trim_end());
    ensure!(lab.instance("snodes", &broken)? != node, "{broken} is still mirrored on {node}");
    Ok(())
}

/// An instance with its secondary on another node than the master, and that node, which can go offline.
fn mirrored_off_the_master(lab: &Lab) -> Result<(String, String)> {
    for name in ["vm1", "vm2", "vm3", "vm5", "vm6"] {
        let node = lab.instance("snodes", name)?;
        if node != "node1" {
            return Ok((name.to_owned(), node));
        }
    }
    bail!("all mirrors are on the master node")
}
